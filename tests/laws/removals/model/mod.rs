//! What a plan has to say: decided from complete snapshots of all commits, with sets and loops.

mod evidence;
mod record;
mod removal;

use std::collections::{BTreeMap, BTreeSet};

use self::record::pairs;
use self::removal::Removal;
use super::order;
use super::repository::{File, Repository, files};
use super::scene::{
    Block, Content, Driver, Entry, Mode, PATHS, Request, Scene, Seen, Snapshot, ancestors,
    is_at_or_below,
};

/// Why nothing is done with a stack: any of these texts, or one that begins like one.
pub(super) type Why = BTreeSet<String>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) action: &'static str,
    pub(super) blocked: Option<Why>,
    pub(super) previous: Option<usize>,
    /// What may be said to have removed it; nothing of a stack of the tree.
    pub(super) removed: Option<BTreeSet<String>>,
}

/// What a plan has to say.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) entries: BTreeMap<usize, Expected>,
    pub(super) order: order::Case,
    /// How many stacks that are gone are out of its scope, and left out.
    pub(super) unplanned: (usize, usize),
}

/// What is known of a recorded stack that belongs to no stack of the tree.
#[derive(Debug, Clone)]
enum Evidence {
    /// These commits, any of which may be named, delete the stack. The code is that of the commit.
    Removed(BTreeSet<usize>, usize),
    None(Why),
}

/// How a stack of the tree stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StackStatus {
    Never,
    Pending,
    Failed,
    Tainted,
    Applied,
}

impl StackStatus {
    fn word(self) -> &'static str {
        match self {
            StackStatus::Never | StackStatus::Pending => "pending",
            StackStatus::Failed | StackStatus::Tainted => "failed",
            StackStatus::Applied => "applied",
        }
    }
}

fn why(text: impl Into<String>) -> Why {
    Why::from([text.into()])
}

/// Where the tools of stacks of the tree keep their states: what is recorded, and what is known now.
type Places = BTreeMap<usize, (Option<usize>, Option<usize>)>;

/// Where more than one answer is right, since git guesses or chooses: nothing can be said of the scene.
#[derive(Debug)]
pub(super) struct Ambiguous;

pub(super) struct Model<'s> {
    /// The earlier paths of stacks that have moved.
    before: BTreeMap<usize, usize>,
    scene: &'s Scene,
    repository: &'s Repository,
    head: Snapshot,
    in_head: BTreeSet<usize>,
    /// The key of each stack of the tree that is recorded.
    keys: BTreeMap<usize, usize>,
    evidence: BTreeMap<usize, Evidence>,
    statuses: BTreeMap<usize, StackStatus>,
    ahead: BTreeMap<usize, Why>,
}

/// Returns the stack that is nearest to a directory.
fn nearest(tree: &Snapshot, path: usize) -> Option<usize> {
    (0..PATHS.len())
        .filter(|&above| is_at_or_below(path, above) && tree[above].block().is_some())
        .max()
}

/// Returns the files that differ between snapshots.
fn differing(before: &Snapshot, after: &Snapshot) -> BTreeSet<String> {
    let (before, after) = (files(before), files(after));
    let names = before.keys().chain(after.keys());
    let differing = names.filter(|name| before.get(*name) != after.get(*name));
    differing.cloned().collect()
}

/// Returns the directories whose files differ between snapshots, apart from some: of the stack that is nearest to
/// each.
fn changed(
    tree: &Snapshot,
    steps: &[(&Snapshot, &Snapshot)],
    same: &BTreeSet<String>,
) -> BTreeSet<usize> {
    let mut changed = BTreeSet::new();
    for (before, after) in steps {
        let (before, after) = (files(before), files(after));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names {
            if before.get(name) == after.get(name) || same.contains(name) {
                continue;
            }
            let (path, _) = before.get(name).or(after.get(name)).unwrap();
            changed.extend(nearest(tree, *path));
        }
    }
    changed
}

/// Returns what a configuration file says without comments and what is no input; nothing if it is damaged.
fn said(file: Option<&(usize, File)>) -> Option<Vec<&str>> {
    let text = file.map_or("", |(_, file)| &*file.text);
    if !text.is_empty() && !text.contains("\n}\n") {
        return None;
    }
    let is_no_input = |line: &&str| {
        let mut others = ["#", "  description", "  tags", "  after"].into_iter();
        !others.any(|other| line.starts_with(other))
    };
    Some(text.lines().filter(is_no_input).collect())
}

/// Returns the configuration files that say the same in the first and the last snapshot.
fn same(steps: &[(&Snapshot, &Snapshot)]) -> BTreeSet<String> {
    let (Some((first, _)), Some((_, last))) = (steps.first(), steps.last()) else {
        return BTreeSet::new();
    };
    let (first, last) = (files(first), files(last));
    let names = first.keys().chain(last.keys());
    let configuration = names.filter(|name| name.ends_with(".tm.hcl"));
    let same = configuration.filter(|name| {
        let before = said(first.get(*name));
        before.is_some() && before == said(last.get(*name))
    });
    same.cloned().collect()
}

impl<'s> Model<'s> {
    /// Returns the model of a scene; none if its configuration is wrong.
    pub(super) fn new(
        scene: &'s Scene,
        repository: &'s Repository,
        moves: &BTreeMap<usize, usize>,
    ) -> Result<Option<Self>, Ambiguous> {
        if scene
            .working
            .iter()
            .any(|it| matches!(it, Content::Broken(_)))
        {
            return Ok(None);
        }
        let keys = pairs(&scene.working, &scene.record);
        let mut before: BTreeMap<usize, usize> = moves.clone();
        before.extend(keys.iter().filter(|(path, key)| path != key));
        let mut model = Model {
            before,
            scene,
            repository,
            head: scene.commits[scene.head].snapshot,
            in_head: ancestors(&scene.commits, scene.head),
            keys,
            evidence: BTreeMap::new(),
            statuses: BTreeMap::new(),
            ahead: BTreeMap::new(),
        };
        for &path in &model.tree() {
            let status = model.status(path);
            model.statuses.insert(path, status);
            if status != StackStatus::Applied
                && let Some(why) = model.is_ahead(path)?
            {
                model.ahead.insert(path, why);
            }
        }
        for (&key, entry) in &scene.record {
            if !model.keys.values().any(|&it| it == key) {
                let evidence = model.evidence(key, entry);
                model.evidence.insert(key, evidence);
            }
        }
        model.block_moved()?;
        model.block_on_default_branch()?;
        Ok(Some(model))
    }

    fn tree(&self) -> Vec<usize> {
        (0..PATHS.len())
            .filter(|&path| self.scene.working[path].block().is_some())
            .collect()
    }

    fn block(&self, path: usize) -> &Block {
        self.scene.working[path]
            .block()
            .expect("it is in the project")
    }

    /// The entry of a stack of the tree.
    fn entry(&self, path: usize) -> Option<&'s Entry> {
        self.keys.get(&path).map(|key| &self.scene.record[key])
    }

    fn snapshot(&self, commit: usize) -> &'s Snapshot {
        &self.scene.commits[commit].snapshot
    }

    /// The steps from a commit to the working tree.
    fn steps(&self, commit: usize) -> [(&Snapshot, &Snapshot); 2] {
        [
            (self.snapshot(commit), &self.head),
            (&self.head, &self.scene.working),
        ]
    }

    fn status(&self, path: usize) -> StackStatus {
        let Some(entry) = self.entry(path) else {
            return StackStatus::Never;
        };
        if entry.is_interrupted {
            return StackStatus::Failed;
        }
        if entry.is_tainted {
            return StackStatus::Tainted;
        }
        if entry.last.is_some_and(|(succeeded, _)| !succeeded) {
            return StackStatus::Failed;
        }
        let Some(applied) = &entry.applied else {
            return StackStatus::Never;
        };
        let clean = if applied.is_dirty {
            applied.seen
        } else {
            applied.commit
        };
        match clean {
            Seen::At(commit) => {
                let steps = self.steps(commit);
                let same = same(&steps);
                if changed(&self.scene.working, &steps, &same).contains(&path) {
                    StackStatus::Pending
                } else {
                    StackStatus::Applied
                }
            }
            _ => StackStatus::Pending,
        }
    }

    /// Why a plan would revert a commit that was applied and that HEAD lacks.
    fn is_ahead(&self, path: usize) -> Result<Option<Why>, Ambiguous> {
        let Some(entry) = self.entry(path) else {
            return Ok(None);
        };
        let applied = entry.applied.as_ref();
        // Each with the one after which it counts, and whether more was applied than it has.
        let mut named: Vec<(Seen, Seen, bool)> = Vec::new();
        if let Some((succeeded, last)) = entry.last
            && (!succeeded || applied.map(|it| it.commit) != Some(Seen::At(last)))
        {
            named.push((Seen::At(last), Seen::None, false));
        }
        if let Some(applied) = applied {
            if applied.commit != applied.seen {
                named.push((applied.commit, applied.seen, applied.is_dirty));
            }
            named.push((applied.seen, Seen::None, false));
        }
        for (commit, after, is_dirty) in named {
            let commit = match (commit, after) {
                (Seen::Lost, Seen::None) => {
                    let short = &self.repository.id(Seen::Lost).unwrap()[..7];
                    return Ok(Some(why(format!(
                        "the last applied commit {short} is not in this clone"
                    ))));
                }
                (Seen::None | Seen::Lost, _) | (_, Seen::Lost) => continue,
                (Seen::At(commit), _) => commit,
            };
            let before = ancestors(&self.scene.commits, commit);
            if matches!(after, Seen::At(after) if !before.contains(&after)) {
                continue;
            }
            if !self.in_head.contains(&commit) && self.lacks(path, commit, is_dirty)? {
                let is_behind = before.contains(&self.scene.head);
                let how = if is_behind { "is behind" } else { "lacks" };
                let short = self.repository.short(commit);
                let text = format!("HEAD {how} the last applied commit {short}");
                return Ok(Some(why(text)));
            }
        }
        Ok(None)
    }

    /// Whether a commit has changes of a stack that are not here, of which HEAD has nothing. What a stack
    /// used is unknown, so a file that is nowhere any more may have been part of it.
    fn lacks(&self, path: usize, commit: usize, is_dirty: bool) -> Result<bool, Ambiguous> {
        let commits = &self.scene.commits;
        let common = ancestors(commits, commit);
        let common: BTreeSet<usize> = common.intersection(&self.in_head).copied().collect();
        let is_newest = |it: &&usize| {
            common
                .iter()
                .all(|other| other == *it || !ancestors(commits, *other).contains(it))
        };
        let there = self.snapshot(commit);
        let (of_commit, here) = (files(there), files(&self.scene.working));
        let mut not_here = differing(there, &self.head);
        not_here.extend(differing(&self.head, &self.scene.working));
        not_here.retain(|name| of_commit.contains_key(name) || here.contains_key(name));
        let basename = |name: &str| name.rsplit('/').next().unwrap().to_owned();
        // The new files with a content.
        let copies = |file: &File| {
            let new = here
                .iter()
                .filter(|(new, (_, it))| !of_commit.contains_key(*new) && it.text == file.text);
            new.map(|(name, (directory, _))| (name.clone(), *directory))
                .collect::<Vec<_>>()
        };
        let is_of_stack = |directory| nearest(&self.scene.working, directory) == Some(path);
        let now = &PATHS[path][1..];
        // Where a file of its earlier directory is now.
        let place_now = |name: &str| {
            let then = &PATHS[*self.before.get(&path).filter(|then| **then != path)?][1..];
            let rest = name.strip_prefix(then)?.strip_prefix('/')?;
            Some(format!("{now}/{rest}"))
        };
        let newest = common.iter().filter(is_newest);
        let answers = newest.map(|&parting| {
            let before = files(self.snapshot(parting));
            let changed = differing(self.snapshot(parting), there);
            is_dirty
                || changed.iter().any(|name| match of_commit.get(name) {
                    Some((directory, file)) => {
                        let copies = copies(file).into_iter();
                        let mut copies = copies.filter(|(it, _)| {
                            !here.contains_key(name) && basename(it) == basename(name)
                        });
                        let is_copied = match place_now(name) {
                            Some(now) => copies.any(|(it, _)| it == now),
                            None => copies.any(|(_, it)| is_at_or_below(it, path)),
                        };
                        let is_there = here.values().any(|(it, _)| is_at_or_below(*it, *directory));
                        let may_be_renamed = before.contains_key(name) || !is_there;
                        let is_missing = !here.contains_key(name) && may_be_renamed;
                        let is_moved = place_now(name).is_some();
                        not_here.contains(name)
                            && (is_of_stack(*directory) || !is_copied && (is_missing || is_moved))
                    }
                    None if not_here.contains(name) => is_of_stack(before[name].0),
                    None => {
                        let copies = copies(&before[name].1);
                        copies.into_iter().any(|(_, it)| is_of_stack(it))
                            || place_now(name).is_some_and(|now| here.contains_key(&now))
                    }
                })
        });
        let answers: BTreeSet<bool> = answers.collect();
        match answers.len() {
            0 => Ok(true),
            1 => Ok(answers.contains(&true)),
            _ => Err(Ambiguous),
        }
    }

    fn is_selected(&self, path: usize, request: &Request) -> bool {
        let block = self.block(path);
        let has_changed = request.base.is_none_or(|base| {
            let steps = self.steps(base);
            changed(&self.scene.working, &steps, &same(&steps)).contains(&path)
        });
        has_changed && passes(path, block.is_tagged, self.statuses[&path].word(), request)
    }

    fn missing_passes(&self, key: usize, request: &Request) -> bool {
        let status = match self.evidence[&key] {
            Evidence::Removed(..) => "removed",
            Evidence::None(_) => "absent",
        };
        // Deleted since the base.
        let has_changed = request
            .base
            .is_none_or(|base| self.snapshot(base)[key].block().is_some());
        has_changed && passes(key, self.scene.record[&key].is_tagged, status, request)
    }

    /// Where the tools of stacks of the tree keep their states: what is recorded, and what is known now.
    fn places(&self, selected: &BTreeSet<usize>) -> Places {
        let place = |path: usize| {
            let recorded = self.entry(path).and_then(|entry| entry.backend);
            let block = self.block(path);
            let says = matches!(block.driver, Driver::Placed | Driver::Vacant);
            (
                path,
                (
                    recorded,
                    (says && selected.contains(&path)).then_some(block.place),
                ),
            )
        };
        self.tree().into_iter().map(place).collect()
    }

    /// Whether the history of HEAD has a commit that was applied to a recorded stack, with the stack.
    fn had_any(&self) -> bool {
        let had = |key: usize, commit: Seen| match commit {
            Seen::At(commit) => {
                self.in_head.contains(&commit) && self.snapshot(commit)[key].block().is_some()
            }
            Seen::None | Seen::Lost => false,
        };
        let mut record = self.scene.record.iter();
        record.any(|(&key, entry)| {
            let applied = entry.applied.as_ref();
            applied.is_some_and(|it| had(key, it.seen) || had(key, it.commit))
        })
    }

    /// Returns what a plan has to say; else the exit status.
    pub(super) fn answer(&self, request: &Request) -> Result<Result<Answer, i32>, Ambiguous> {
        let record = &self.scene.record;
        // It may be the record of another project.
        if !record.is_empty() && self.keys.is_empty() && !self.had_any() {
            return Ok(Err(4));
        }
        if let Some(named) = &request.named {
            let is_known = |path: &usize| {
                self.scene.working[*path].block().is_some() || self.evidence.contains_key(path)
            };
            if !named.iter().all(is_known) {
                return Ok(Err(64));
            }
        }
        let tree = self.tree();
        let selected: BTreeSet<usize> = tree
            .iter()
            .copied()
            .filter(|&path| self.is_selected(path, request))
            .collect();
        // A stack that is not planned may have the same backend.
        let mut moves = self.moved_by_backend(&self.places(&tree.iter().copied().collect()));
        moves.retain(|path, _| selected.contains(path));
        // It has become another stack, even if that was at its path.
        let by_id = self.keys.iter().filter(|(path, key)| path != key);
        let mut previous: BTreeMap<usize, usize> = by_id.map(|(path, key)| (*path, *key)).collect();
        if moves.is_empty() {
            return Ok(self.answer_of(request, &selected, &previous));
        }
        // Everything recorded of a stack that has moved holds for it.
        let scene = Scene {
            record: self.amended(&moves),
            ..self.scene.clone()
        };
        let Some(model) = Model::new(&scene, self.repository, &moves)? else {
            return Ok(Err(3));
        };
        previous.extend(
            moves
                .iter()
                .filter(|(path, _)| model.keys.contains_key(*path)),
        );
        Ok(model.answer_of(request, &selected, &previous))
    }

    /// Like [`Self::answer`], for the selected stacks and given the keys of those that have moved.
    fn answer_of(
        &self,
        request: &Request,
        selected: &BTreeSet<usize>,
        previous: &BTreeMap<usize, usize>,
    ) -> Result<Answer, i32> {
        let (record, keys) = (&self.scene.record, &self.keys);
        let places = self.places(selected);

        // The stacks that a removal is about.
        let (mut out_of_scope, mut left_out) = (0, 0);
        let mut removals: BTreeMap<usize, Removal> = BTreeMap::new();
        for (&key, evidence) in &self.evidence {
            if request.mode == Mode::RefreshOnly || self.scene.working[key].block().is_some() {
                continue;
            }
            if !self.missing_passes(key, request) {
                out_of_scope += 1;
            } else if request.no_removals {
                left_out += 1;
            } else {
                removals.insert(key, self.removal(key, evidence));
            }
        }

        let mut entries: BTreeMap<usize, Expected> = BTreeMap::new();
        for &path in selected {
            let is_taken = record.contains_key(&path)
                && !keys.contains_key(&path)
                && !keys.values().any(|&key| key == path);
            let previous = previous.get(&path).copied();
            let entry = self.entry_of_tree(path, previous, is_taken, &places, request);
            entries.insert(path, entry);
        }

        self.block_by_backends(&mut removals, &places);
        for (&key, removal) in &mut removals {
            if removal.needs_code() {
                self.read_code(key, removal);
            }
        }
        self.block_by_backends(&mut removals, &places);

        let order = order::Case::new(&self.scene.working, record, keys);
        let of_tree: BTreeMap<usize, &'static str> = entries
            .iter()
            .filter(|(_, entry)| entry.blocked.is_none())
            .map(|(path, entry)| (*path, entry.action))
            .collect();
        self.keep_what_is_used(&mut removals, &order, &of_tree, record, keys);

        for (&key, removal) in &removals {
            entries.insert(key, removal.entry(self.repository));
        }
        // For a stack that is gone, or that HEAD lacks, the rule recorded counts. If HEAD cannot be read, all of the
        // tree is protected.
        let mut head = self.head.iter();
        let is_head_broken = head.any(|it| matches!(it, Content::Broken(_)));
        let is_in_head = |path: usize| {
            let own = self.block(path);
            let is_same = |it: &Block| own.has_id && it.has_id && it.text == own.text;
            let mut blocks = self.head.iter().filter_map(Content::block);
            self.head[path].block().is_some() || blocks.any(is_same)
        };
        let is_protected = |path: &usize| {
            if removals.contains_key(path) {
                record[path].is_protected
            } else {
                let entry = self.entry(*path).filter(|_| !is_in_head(*path));
                is_head_broken || entry.is_some_and(|entry| entry.is_protected)
            }
        };
        let mut destroyed = entries.iter().filter(|(path, entry)| {
            let destroys = matches!(entry.action, "delete" | "replace");
            entry.blocked.is_none() && destroys && is_protected(path)
        });
        if destroyed.next().is_some() {
            return Err(4);
        }
        let works = works(&entries);
        Ok(Answer {
            entries,
            order: order.with(works),
            unplanned: (out_of_scope, left_out),
        })
    }

    /// Returns the stacks that are recorded elsewhere, since their tools keep the same states; each with
    /// its key.
    fn moved_by_backend(&self, places: &Places) -> BTreeMap<usize, usize> {
        let record = &self.scene.record;
        let mut moves = BTreeMap::new();
        for &key in self.evidence.keys() {
            let Some(own) = record[&key].backend else {
                continue;
            };
            let others = self
                .evidence
                .keys()
                .filter(|other| record[other].backend == Some(own));
            let there: Vec<usize> = self
                .tree()
                .into_iter()
                .filter(|&path| !self.block(path).is_read)
                .filter(|path| places[path].1.or(places[path].0) == Some(own))
                .collect();
            if others.count() == 1
                && let [stack] = there[..]
                && !self.keys.contains_key(&stack)
            {
                moves.insert(stack, key);
            }
        }
        moves
    }

    /// What becomes of a stack of the tree, given the key where it was found, and whether another stack is
    /// recorded at its path.
    fn entry_of_tree(
        &self,
        path: usize,
        previous: Option<usize>,
        is_taken: bool,
        places: &Places,
        request: &Request,
    ) -> Expected {
        let block = self.block(path);
        let place = |path: usize| places[&path].1.or(places[&path].0);
        let mut reasons: Vec<Why> = Vec::new();
        if !block.is_read && request.mode != Mode::RefreshOnly {
            reasons.extend(self.ahead.get(&path).cloned());
        }
        if is_taken {
            reasons.push(why("another stack is recorded at its path, with the id `"));
        }
        if !block.is_read {
            if let (Some(recorded), Some(now)) = places[&path]
                && recorded != now
            {
                reasons.push(why("its backend differs from the recorded one"));
            }
            let others = self
                .tree()
                .into_iter()
                .filter(|&it| it != path && !self.block(it).is_read);
            let same = others.filter(|&it| place(it).is_some() && place(it) == place(path));
            let texts: Why = same
                .map(|it| format!("it has the same backend as {}", PATHS[it]))
                .collect();
            reasons.extend(Some(texts).filter(|texts| !texts.is_empty()));
        }
        let mut action = self.action(path, request);
        let cannot_destroy = matches!(block.driver, Driver::Lasting | Driver::None);
        if matches!(action, "delete" | "replace") && cannot_destroy {
            reasons.push(why(format!(
                "its driver `{}` has no `destroy`",
                block.driver.name()
            )));
        }
        let blocked = reasons.into_iter().next();
        if blocked.is_some() {
            action = "no-op";
        }
        Expected {
            action,
            blocked,
            previous,
            removed: None,
        }
    }

    /// What is done with a stack of the tree that is not blocked.
    fn action(&self, path: usize, request: &Request) -> &'static str {
        let block = self.block(path);
        let status = self.statuses[&path];
        if block.is_read {
            return "read";
        }
        let is_on_record = status != StackStatus::Never;
        let finds_something = match block.driver {
            Driver::Empty | Driver::Vacant => false,
            Driver::Eager => true,
            _ => is_on_record,
        };
        match request.mode {
            Mode::RefreshOnly => return "no-op",
            Mode::Destroy => {
                return match block.driver {
                    Driver::None => "no-op",
                    Driver::Blind => "delete",
                    _ if finds_something => "delete",
                    _ => "no-op",
                };
            }
            Mode::Normal => {}
        }
        if status == StackStatus::Tainted && is_on_record {
            return match block.driver {
                // Nothing is left to be replaced, and nothing is to be created.
                Driver::Empty | Driver::Vacant => "adopt",
                // No tool has made anything.
                Driver::None => "no-op",
                _ => "replace",
            };
        }
        if status == StackStatus::Applied {
            return "no-op";
        }
        match block.driver {
            Driver::Blind | Driver::Eager if is_on_record => "update",
            Driver::Blind | Driver::Eager => "create",
            _ if is_on_record => "no-op",
            _ => "adopt",
        }
    }
}

/// Returns whether a stack passes the filters that need no history.
fn passes(path: usize, is_tagged: bool, status: &str, request: &Request) -> bool {
    let is_in = |all: &[usize]| all.iter().any(|&above| is_at_or_below(path, above));
    request
        .directory
        .is_none_or(|above| is_at_or_below(path, above))
        && (request.matching.is_empty() || is_in(&request.matching))
        && !is_in(&request.exclude)
        && request.tagged.is_none_or(|tagged| tagged == is_tagged)
        && (request.statuses.is_empty() || request.statuses.contains(&status))
        && request
            .named
            .as_ref()
            .is_none_or(|named| named.contains(&path))
}

/// Returns what is to be done for entries.
fn works(entries: &BTreeMap<usize, Expected>) -> BTreeMap<order::Node, order::Work> {
    let work = |(&path, entry): (&usize, &Expected)| {
        let node = match entry.removed {
            Some(_) => order::Node::Gone(path),
            None => order::Node::Tree(path),
        };
        let work = order::Work {
            destroys: matches!(entry.action, "delete" | "replace"),
            applies: matches!(entry.action, "create" | "update" | "replace"),
        };
        (node, work)
    };
    entries.iter().map(work).collect()
}
