//! What the history proves about recorded stacks that are not in the project.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::super::repository::{LOST, files, files_of};
use super::super::scene::{
    Block, Content, Driver, Entry, PATHS, Seen, Snapshot, ancestors, is_at_or_below,
};
use super::record::pairs;
use super::{Ambiguous, Evidence, Model, Why, why};

impl Model<'_> {
    /// What the history proves about a recorded stack.
    pub(super) fn evidence(&self, key: usize, entry: &Entry) -> Evidence {
        let (scene, head) = (self.scene, &self.head);
        let short = |commit: usize| self.repository.short(commit);
        // Files that differ from HEAD there, and cannot be read as it is there.
        for (path, content) in head.iter().enumerate() {
            if matches!(content, Content::Broken(_)) {
                let file = &own(content, path)[0];
                return Evidence::None(why(format!(
                    "`{file}` of commit {} cannot be parsed",
                    short(scene.head)
                )));
            }
        }
        if head[key].block().is_some() {
            return Evidence::None(why("its deletion is not committed"));
        }
        let rest = rest(head, key);
        if !rest.is_empty() {
            let texts = rest
                .iter()
                .map(|file| format!("its code is still there: HEAD has `{file}`"));
            return Evidence::None(texts.collect());
        }
        let Some(applied) = &entry.applied else {
            return Evidence::None(why(
                "no apply of it succeeded, so the code that created it is unknown",
            ));
        };
        let known = match applied.seen {
            Seen::None if applied.is_dirty => {
                return Evidence::None(why("it was applied with inputs that were not committed"));
            }
            Seen::None => applied.commit,
            seen => seen,
        };
        let commit = match known {
            Seen::None => unreachable!("each has a commit"),
            Seen::Lost => {
                return Evidence::None(why(format!(
                    "the applied commit {} is not in this clone",
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
            let is_on_branch = scene
                .branch
                .is_some_and(|it| ancestors(&scene.commits, it).contains(&seen));
            let lacks = format!("HEAD lacks the applied commit {}", short(seen));
            return Evidence::None(why(match (is_published, is_on_branch, scene.published) {
                (true, ..) => format!(
                    "HEAD is behind origin/main: it lacks the applied commit {}",
                    short(seen)
                ),
                (false, true, Some(_)) => format!("{lacks}, which is on origin/feature"),
                (false, true, None) => format!("{lacks}, which is only on the local branch work"),
                (false, false, _) => format!("{lacks}, which is on no branch in this clone"),
            }));
        }
        if self.snapshot(seen)[key].block().is_none() {
            return Evidence::None(why(format!(
                "the applied commit {} does not have it",
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
                "no commit since {} deletes it (a merge may have lost it)",
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

    /// The removed stacks, each with the commits that may have deleted it and the one that was applied.
    fn removed(&self) -> BTreeMap<usize, (BTreeSet<usize>, usize)> {
        let removed = self.evidence.iter().filter_map(|(&key, it)| match it {
            Evidence::Removed(deletions, seen) => Some((key, (deletions.clone(), *seen))),
            Evidence::None(_) => None,
        });
        removed.collect()
    }

    /// Takes the evidence back of stacks that look moved: at HEAD, or as the commit has it that deletes the stack.
    pub(super) fn block_moved(&mut self) -> Result<(), Ambiguous> {
        let removed = self.removed();
        let gone: BTreeSet<usize> = removed.keys().copied().collect();
        let tree = &self.scene.working;
        let mut moved: BTreeMap<usize, Why> = BTreeMap::new();
        for (&key, (deletions, seen)) in &removed {
            let by_seen = gone.iter().filter(|it| removed[it].1 == *seen);
            let by_seen: BTreeSet<usize> = by_seen.copied().collect();
            let steps = (self.snapshot(*seen), &self.head);
            let at_head = self.looks_moved(key, steps, &by_seen, tree)?;
            moved.entry(key).or_default().extend(at_head);
            for &deletion in deletions {
                let with = gone.iter().filter(|it| removed[it].0.contains(&deletion));
                let with: BTreeSet<usize> = with.copied().collect();
                let parent = self.scene.commits[deletion].parents[0];
                let steps = (self.snapshot(parent), self.snapshot(deletion));
                let then = self.looks_moved(key, steps, &with, tree)?;
                // Any of its deletions may be the one that counts, and any of those of the others.
                if !then.is_empty() && with.iter().any(|it| removed[it].0.len() > 1) {
                    return Err(Ambiguous);
                }
                moved.entry(key).or_default().extend(then);
            }
        }
        for (key, places) in moved {
            if !places.is_empty() {
                let texts = places.iter().map(|to| format!("it looks moved to `{to}`"));
                self.evidence.insert(key, Evidence::None(texts.collect()));
            }
        }
        Ok(())
    }

    /// Where most of the content of a removed stack lies in a later snapshot, if that is the directory of a stack
    /// that may be it.
    fn looks_moved(
        &self,
        key: usize,
        (before, after): (&Snapshot, &Snapshot),
        gone: &BTreeSet<usize>,
        tree: &Snapshot,
    ) -> Result<BTreeSet<String>, Ambiguous> {
        let nearest = |path: usize, is_one: &dyn Fn(usize) -> bool| {
            let above = (0..PATHS.len()).filter(|&it| is_at_or_below(path, it) && is_one(it));
            above.max()
        };
        let is_gone = |path: usize| gone.contains(&path);
        let is_stack = |path: usize| tree[path].block().is_some();
        let counts = |name: &str| !is_configuration(name);
        let (before, after) = (files(before), files(after));
        let mut all = 0;
        // What is surely found in each place, and what may be.
        let mut found: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for (name, (path, file)) in &before {
            if nearest(*path, &is_gone) != Some(key) || after.contains_key(name) || !counts(name) {
                continue;
            }
            all += file.text.len();
            for (now, (to, other)) in &after {
                if before.contains_key(now) || !counts(now) || !file.is_like(other) {
                    continue;
                }
                let Some(to) = nearest(*to, &is_stack) else {
                    continue;
                };
                let (surely, maybe) = found.entry(to).or_default();
                // All stacks have it, so git takes any of them.
                if file.alike.1 == "common" {
                    *maybe += file.text.len();
                } else {
                    *surely += file.text.len();
                }
            }
        }
        let mut moved = BTreeSet::new();
        for (to, (surely, maybe)) in found {
            if !self.may_be(key, to, tree) {
                continue;
            }
            if 2 * surely >= all {
                moved.insert(PATHS[to].to_owned());
            } else if 2 * (surely + maybe) >= all {
                return Err(Ambiguous);
            }
        }
        Ok(moved)
    }

    /// Whether a stack may be a removed one that was moved.
    fn may_be(&self, key: usize, to: usize, tree: &Snapshot) -> bool {
        let entry = &self.scene.record[&key];
        let keys = pairs(tree, &self.scene.record);
        let recorded = keys.get(&to).map(|key| &self.scene.record[key]);
        let is_applied = recorded.is_some_and(|it| it.applied.is_some());
        let is_told_apart =
            entry.backend.is_some() || entry.is_read || entry.driver == Some(Driver::None);
        let has_id = tree[to].block().and_then(Block::id).is_some();
        !(entry.id.is_some() && has_id || is_applied && is_told_apart)
    }

    /// Takes the evidence back of stacks that the default branch has.
    pub(super) fn block_on_default_branch(&mut self) -> Result<(), Ambiguous> {
        let Some(tip) = self.scene.published.filter(|tip| *tip != self.scene.head) else {
            return Ok(());
        };
        let (there, short) = (self.snapshot(tip), self.repository.short(tip).to_owned());
        let broken: Why = (0..PATHS.len())
            .filter(|&path| matches!(there[path], Content::Broken(_)))
            .flat_map(|path| own(&there[path], path))
            .map(|file| format!("`{file}` of commit {short} cannot be parsed"))
            .collect();
        let has = |place: &str| format!("origin/main has it at commit {short}: `{place}`");
        let removed = self.removed();
        for (&key, (_, seen)) in &removed {
            let mut places: BTreeSet<String> = rest(there, key).into_iter().collect();
            if there[key].block().is_some() {
                places = own(&there[key], key).into_iter().collect();
                places.retain(|file| is_configuration(file));
            }
            if places.is_empty() {
                let id = self.scene.record[&key].id;
                let same = (0..PATHS.len())
                    .filter(|&path| id.is_some() && there[path].block().and_then(Block::id) == id);
                places = same.map(|path| PATHS[path][1..].to_owned()).collect();
            }
            if places.is_empty() && broken.is_empty() {
                let by_seen = removed.iter().filter(|(_, it)| it.1 == *seen);
                let by_seen: BTreeSet<usize> = by_seen.map(|(key, _)| *key).collect();
                let steps = (self.snapshot(*seen), there);
                let looks = self.looks_moved(key, steps, &by_seen, there)?;
                places = looks.into_iter().map(|to| to[1..].to_owned()).collect();
            }
            if !broken.is_empty() {
                self.evidence.insert(key, Evidence::None(broken.clone()));
            } else if !places.is_empty() {
                let texts = places.iter().map(|place| has(place));
                self.evidence.insert(key, Evidence::None(texts.collect()));
            }
        }
        Ok(())
    }
}

/// The files of a directory.
fn own(content: &Content, path: usize) -> Vec<String> {
    let names = files_of(content).into_keys();
    let names = names.map(|name| format!("{}/{name}", &PATHS[path][1..]));
    names.collect()
}

/// The files that a snapshot has of the directory of a stack, without those of stacks nested in it.
fn rest(snapshot: &Snapshot, key: usize) -> Vec<String> {
    let is_nested = |path: usize| path != key && snapshot[path].block().is_some();
    let rest = (0..PATHS.len()).filter(|&path| is_at_or_below(path, key) && !is_nested(path));
    rest.flat_map(|path| own(&snapshot[path], path)).collect()
}

/// Returns whether a file is configuration, or the lock file of Terraform.
fn is_configuration(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|it| it == "hcl")
}
