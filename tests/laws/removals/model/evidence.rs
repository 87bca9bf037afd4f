//! What the history proves about stacks on record that are not in the tree.

use std::collections::{BTreeMap, BTreeSet};

use super::super::repository::{LOST, files, files_of};
use super::super::scene::{Content, Entry, PATHS, Seen, Snapshot, ancestors, is_at_or_below};
use super::{Ambiguous, Evidence, Model, Why, why};

impl Model<'_> {
    /// What the history proves about a stack on record.
    pub(super) fn evidence(&self, key: usize, entry: &Entry) -> Evidence {
        let (scene, head) = (self.scene, &self.head);
        let short = |commit: usize| self.repository.short(commit);
        let is_nested = |file: usize| file != key && head[file].block().is_some();
        let own = |content: &Content, path: usize| {
            let names = files_of(content).into_keys();
            let names = names.map(|name| format!("{}/{name}", &PATHS[path][1..]));
            names.collect::<Vec<String>>()
        };
        // What differs from HEAD there, and cannot be read as it is there.
        for (path, content) in head.iter().enumerate() {
            if matches!(content, Content::Broken(_)) {
                let file = &own(content, path)[0];
                return Evidence::None(why(format!(
                    "`{file}` cannot be parsed as it is in commit {}",
                    short(scene.head)
                )));
            }
        }
        if head[key].block().is_some() {
            return Evidence::None(why("its deletion is not committed"));
        }
        let rest = (0..PATHS.len()).filter(|&path| is_at_or_below(path, key) && !is_nested(path));
        let rest: Vec<String> = rest.flat_map(|path| own(&head[path], path)).collect();
        if !rest.is_empty() {
            let texts = rest
                .iter()
                .map(|file| format!("its code is still there: HEAD has `{file}`"));
            return Evidence::None(texts.collect());
        }
        let Some(applied) = &entry.applied else {
            return Evidence::None(why(
                "no apply of it has succeeded, so nothing tells whose code made it",
            ));
        };
        let commit = match applied.seen {
            Seen::None if applied.is_dirty => {
                return Evidence::None(why("it was applied with inputs that were not committed"));
            }
            Seen::None => {
                return Evidence::None(why(
                    "it was applied from a commit that was never published",
                ));
            }
            Seen::Lost => {
                return Evidence::None(why(format!(
                    "commit {}, which was applied, is not in this clone",
                    &LOST[..7]
                )));
            }
            Seen::At(commit) => commit,
        };
        self.deleted_since(key, commit)
    }

    /// What the history proves about a stack since a commit that was applied to it.
    fn deleted_since(&self, key: usize, seen: usize) -> Evidence {
        let scene = self.scene;
        let short = |commit: usize| self.repository.short(commit);
        if !self.in_head.contains(&seen) {
            let is_published = scene
                .published
                .is_some_and(|it| ancestors(&scene.commits, it).contains(&seen));
            return Evidence::None(why(if is_published {
                format!(
                    "HEAD is behind origin/main: it lacks commit {}, which was applied",
                    short(seen)
                )
            } else {
                format!("HEAD lacks commit {}, which was applied", short(seen))
            }));
        }
        if self.snapshot(seen)[key].block().is_none() {
            return Evidence::None(why(format!(
                "commit {}, which was applied, does not have it",
                short(seen)
            )));
        }
        // Each commit that deletes it, against each of its parents.
        let earlier = ancestors(&scene.commits, seen);
        let mut deleting = BTreeSet::new();
        for &commit in self.in_head.difference(&earlier) {
            let parents = &scene.commits[commit].parents;
            let had = |parent: &usize| self.snapshot(*parent)[key].block().is_some();
            if !parents.is_empty()
                && parents.iter().all(had)
                && !self.snapshot(commit)[key].may_be_stack()
            {
                deleting.insert(commit);
            }
        }
        // After which it came back.
        let mut again = Vec::new();
        for &deletion in &deleting {
            for &later in &self.in_head {
                if ancestors(&scene.commits, later).contains(&deletion)
                    && self.snapshot(later)[key].may_be_stack()
                {
                    again.push((deletion, later));
                }
            }
        }
        let lasting = deleting
            .iter()
            .filter(|it| !again.iter().any(|(deletion, _)| deletion == *it));
        let lasting: BTreeSet<usize> = lasting.copied().collect();
        if deleting.is_empty() {
            Evidence::None(why(format!(
                "no commit since {} deletes it, at most a merge loses it",
                short(seen)
            )))
        } else if lasting.is_empty() {
            let texts = again.iter().map(|&(deletion, later)| {
                let (deletion, later) = (short(deletion), short(later));
                format!("commit {deletion} deleted it, but {later} has it again, and no commit deletes it after that")
            });
            Evidence::None(texts.collect())
        } else {
            Evidence::Removed(lasting, seen)
        }
    }

    /// Takes the evidence back where files lie in the directory of a stack that was never applied: at HEAD, or
    /// as the commit has it that deletes the stack.
    pub(super) fn block_moved(&mut self) -> Result<(), Ambiguous> {
        let is_applied = |path: usize| self.entry(path).is_some_and(|it| it.applied.is_some());
        let tree = self.tree().into_iter();
        let new: Vec<usize> = tree.filter(|&path| !is_applied(path)).collect();
        let mut by_seen: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut by_deletion: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut unclear = BTreeSet::new();
        for (&key, evidence) in &self.evidence {
            if let Evidence::Removed(deletions, seen) = evidence {
                by_seen.entry(*seen).or_default().push(key);
                for &deletion in deletions {
                    by_deletion.entry(deletion).or_default().push(key);
                }
                if deletions.len() > 1 {
                    unclear.insert(key);
                }
            }
        }
        let mut moved: BTreeMap<usize, Why> = BTreeMap::new();
        for (seen, gone) in by_seen {
            for (from, to) in moves(self.snapshot(seen), &self.head, &gone, &new) {
                moved.entry(from).or_default().insert(looks_moved(to));
            }
        }
        for (deletion, gone) in by_deletion {
            let parent = self.scene.commits[deletion].parents[0];
            let (before, after) = (self.snapshot(parent), self.snapshot(deletion));
            for (from, to) in moves(before, after, &gone, &new) {
                // Any of its deletions may be the one that counts.
                if gone.iter().any(|key| unclear.contains(key)) {
                    return Err(Ambiguous);
                }
                moved.entry(from).or_default().insert(looks_moved(to));
            }
        }
        for (key, why) in moved {
            self.evidence.insert(key, Evidence::None(why));
        }
        Ok(())
    }
}

fn looks_moved(to: usize) -> String {
    format!("it looks moved to `{}`", PATHS[to])
}

/// The stacks that are gone and those that are new between which files have moved.
fn moves(
    before: &Snapshot,
    after: &Snapshot,
    gone: &[usize],
    new: &[usize],
) -> BTreeSet<(usize, usize)> {
    let nearest = |path: usize, all: &[usize]| {
        let above = all.iter().filter(|&&above| is_at_or_below(path, above));
        above.copied().max()
    };
    let (before, after) = (files(before), files(after));
    let mut moves = BTreeSet::new();
    for (name, (path, file)) in &before {
        let (Some(from), false) = (nearest(*path, gone), after.contains_key(name)) else {
            continue;
        };
        for (now, (to, other)) in &after {
            let (Some(to), false) = (nearest(*to, new), before.contains_key(now)) else {
                continue;
            };
            if file.alike == other.alike {
                moves.insert((from, to));
            }
        }
    }
    moves
}
