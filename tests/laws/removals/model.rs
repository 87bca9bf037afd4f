//! What a plan has to say: decided from complete snapshots of all commits, with sets and loops.

use std::collections::{BTreeMap, BTreeSet};

use super::order;
use super::repository::{LOST, Repository, files, files_of};
use super::scene::{
    Block, Content, Driver, Entry, Mode, PATHS, Record, Request, Scene, Seen, Snapshot, ancestors,
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

/// What is known of a stack on record that belongs to no stack of the tree.
#[derive(Debug, Clone)]
enum Evidence {
    /// These commits, any of which may be named, delete the stack. The code is that of the commit.
    Removed(BTreeSet<usize>, usize),
    None(Why),
}

/// How a stack of the tree stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Never,
    Pending,
    Failed,
    Tainted,
    Applied,
}

impl Standing {
    fn word(self) -> &'static str {
        match self {
            Standing::Never | Standing::Pending => "pending",
            Standing::Failed | Standing::Tainted => "failed",
            Standing::Applied => "applied",
        }
    }
}

fn why(text: impl Into<String>) -> Why {
    Why::from([text.into()])
}

/// Where the tools of stacks of the tree keep their states: what is on record, and what is known now.
type Places = BTreeMap<usize, (Option<usize>, Option<usize>)>;

/// Where more than one answer is right, since git guesses or chooses: nothing can be said of the scene.
#[derive(Debug)]
pub(super) struct Ambiguous;

pub(super) struct Model<'s> {
    scene: &'s Scene,
    repository: &'s Repository,
    head: Snapshot,
    in_head: BTreeSet<usize>,
    /// The key of each stack of the tree that is on record.
    keys: BTreeMap<usize, usize>,
    evidence: BTreeMap<usize, Evidence>,
    standings: BTreeMap<usize, Standing>,
    ahead: BTreeMap<usize, Why>,
}

/// Which entry belongs to which stack: the one with its id, else the one at its path, unless both have an id.
fn pairs(tree: &Snapshot, record: &Record) -> BTreeMap<usize, usize> {
    let mut keys = BTreeMap::new();
    for (path, content) in tree.iter().enumerate() {
        let Some(id) = content.block().and_then(Block::id) else {
            continue;
        };
        if let Some((&key, _)) = record.iter().find(|(_, entry)| entry.id == Some(id)) {
            keys.insert(path, key);
        }
    }
    for (path, content) in tree.iter().enumerate() {
        let (Some(block), Some(entry)) = (content.block(), record.get(&path)) else {
            continue;
        };
        let is_free = !keys.contains_key(&path) && !keys.values().any(|&key| key == path);
        if is_free && (block.id().is_none() || entry.id.is_none()) {
            keys.insert(path, path);
        }
    }
    keys
}

/// Returns the directories whose files differ between snapshots: of the stack that is nearest to each.
fn changed(tree: &Snapshot, steps: &[(&Snapshot, &Snapshot)]) -> BTreeSet<usize> {
    let mut changed = BTreeSet::new();
    for (before, after) in steps {
        let (before, after) = (files(before), files(after));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names {
            if before.get(name) == after.get(name) {
                continue;
            }
            let (path, _) = before.get(name).or(after.get(name)).unwrap();
            let nearest = (0..PATHS.len())
                .filter(|&above| is_at_or_below(*path, above) && tree[above].block().is_some())
                .max();
            changed.extend(nearest);
        }
    }
    changed
}

impl<'s> Model<'s> {
    /// Returns the model of a scene; none if its configuration is wrong.
    pub(super) fn new(
        scene: &'s Scene,
        repository: &'s Repository,
    ) -> Result<Option<Self>, Ambiguous> {
        if scene
            .working
            .iter()
            .any(|it| matches!(it, Content::Broken(_)))
        {
            return Ok(None);
        }
        let keys = pairs(&scene.working, &scene.record);
        let mut model = Model {
            scene,
            repository,
            head: scene.commits[scene.head].snapshot,
            in_head: ancestors(&scene.commits, scene.head),
            keys,
            evidence: BTreeMap::new(),
            standings: BTreeMap::new(),
            ahead: BTreeMap::new(),
        };
        for &path in &model.tree() {
            let standing = model.standing(path);
            model.standings.insert(path, standing);
            if standing != Standing::Applied
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
        model.block_moved();
        Ok(Some(model))
    }

    fn tree(&self) -> Vec<usize> {
        (0..PATHS.len())
            .filter(|&path| self.scene.working[path].block().is_some())
            .collect()
    }

    fn block(&self, path: usize) -> &Block {
        self.scene.working[path].block().expect("it is in the tree")
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

    fn standing(&self, path: usize) -> Standing {
        let Some(entry) = self.entry(path) else {
            return Standing::Never;
        };
        if entry.is_interrupted {
            return Standing::Failed;
        }
        if entry.is_tainted {
            return Standing::Tainted;
        }
        if entry.last.is_some_and(|(succeeded, _)| !succeeded) {
            return Standing::Failed;
        }
        let Some(applied) = &entry.applied else {
            return Standing::Never;
        };
        let clean = if applied.is_dirty {
            applied.seen
        } else {
            applied.commit
        };
        match clean {
            Seen::At(commit)
                if !changed(&self.scene.working, &self.steps(commit)).contains(&path) =>
            {
                Standing::Applied
            }
            _ => Standing::Pending,
        }
    }

    /// Why a plan would put back what a later commit has applied.
    fn is_ahead(&self, path: usize) -> Result<Option<Why>, Ambiguous> {
        let seen = self
            .entry(path)
            .and_then(|entry| Some(entry.applied.as_ref()?.seen));
        let Some(Seen::At(seen)) = seen else {
            return Ok(None);
        };
        if self.in_head.contains(&seen) {
            return Ok(None);
        }
        let commits = &self.scene.commits;
        let common = ancestors(commits, seen);
        let common: BTreeSet<usize> = common.intersection(&self.in_head).copied().collect();
        let is_newest = |it: &&usize| {
            common
                .iter()
                .all(|other| other == *it || !ancestors(commits, *other).contains(it))
        };
        let newest: Vec<usize> = common.iter().filter(is_newest).copied().collect();
        let answers = newest.iter().map(|&parting| {
            let mut steps = self.steps(parting).to_vec();
            if parting == self.scene.head {
                steps.clear();
            }
            !changed(&self.scene.working, &steps).contains(&path)
        });
        let answers: BTreeSet<bool> = answers.collect();
        if answers.len() > 1 {
            return Err(Ambiguous);
        }
        let short = self.repository.short(seen);
        Ok(answers
            .contains(&true)
            .then(|| why(format!("commit {short}, which HEAD lacks, was applied"))))
    }

    /// What the history proves about a stack on record.
    fn evidence(&self, key: usize, entry: &Entry) -> Evidence {
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

    /// Takes the evidence back where files lie in the directory of a stack that is not on record now.
    fn block_moved(&mut self) {
        let new: Vec<usize> = self
            .tree()
            .into_iter()
            .filter(|it| !self.keys.contains_key(it))
            .collect();
        let nearest = |path: usize, all: &[usize]| {
            all.iter()
                .copied()
                .filter(|&above| is_at_or_below(path, above))
                .max()
        };
        let after = files(&self.head);
        let mut moved: BTreeMap<usize, Why> = BTreeMap::new();
        let removed = self
            .evidence
            .iter()
            .filter_map(|(key, evidence)| match evidence {
                Evidence::Removed(_, seen) => Some((*key, *seen)),
                Evidence::None(_) => None,
            });
        let removed: Vec<(usize, usize)> = removed.collect();
        for &(_, seen) in &removed {
            let same = removed.iter().filter(|(_, other)| *other == seen);
            let gone: Vec<usize> = same.map(|(key, _)| *key).collect();
            let before = files(self.snapshot(seen));
            for (name, (path, file)) in &before {
                let (Some(from), false) = (nearest(*path, &gone), after.contains_key(name)) else {
                    continue;
                };
                for (now, (to, other)) in &after {
                    let (Some(to), false) = (nearest(*to, &new), before.contains_key(now)) else {
                        continue;
                    };
                    if file.alike == other.alike {
                        let text = format!("it looks moved to `{}`", PATHS[to]);
                        moved.entry(from).or_default().insert(text);
                    }
                }
            }
        }
        for (key, why) in moved {
            self.evidence.insert(key, Evidence::None(why));
        }
    }

    fn is_selected(&self, path: usize, request: &Request) -> bool {
        let block = self.block(path);
        let has_changed = request
            .base
            .is_none_or(|base| changed(&self.scene.working, &self.steps(base)).contains(&path));
        has_changed && passes(path, block.is_tagged, self.standings[&path].word(), request)
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

    /// Where the tools of stacks of the tree keep their states: what is on record, and what is known now.
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

    /// Returns what a plan has to say; else the exit status.
    pub(super) fn answer(&self, request: &Request) -> Result<Answer, i32> {
        let record = &self.scene.record;
        // It may be the record of another project.
        if !record.is_empty() && self.keys.is_empty() {
            return Err(4);
        }
        if let Some(named) = &request.named {
            let is_known = |path: &usize| {
                self.scene.working[*path].block().is_some() || self.evidence.contains_key(path)
            };
            if !named.iter().all(is_known) {
                return Err(64);
            }
        }
        let tree = self.tree();
        let selected: BTreeSet<usize> = tree
            .iter()
            .copied()
            .filter(|&path| self.is_selected(path, request))
            .collect();
        let places = self.places(&selected);
        let moves = self.moved_by_backend(&places);

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
            } else if !moves.values().any(|it| *it == key) {
                removals.insert(key, self.removal(key, evidence));
            }
        }

        // What is on record as it will be, where stacks have moved.
        let record = if moves.is_empty() {
            record.clone()
        } else {
            self.amended(&moves)
        };
        let keys = pairs(&self.scene.working, &record);

        let mut entries: BTreeMap<usize, Expected> = BTreeMap::new();
        for &path in &selected {
            let previous = moves.get(&path).copied();
            let is_taken = record.contains_key(&path)
                && !keys.contains_key(&path)
                && !keys.values().any(|&key| key == path);
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

        let order = order::Case::new(&self.scene.working, &record, &keys);
        let of_tree: BTreeMap<usize, &'static str> = entries
            .iter()
            .filter(|(_, entry)| entry.blocked.is_none())
            .map(|(path, entry)| (*path, entry.action))
            .collect();
        self.keep_what_is_used(&mut removals, &order, &of_tree, &record, &keys);

        for (&key, removal) in &removals {
            entries.insert(key, removal.entry(self.repository));
        }
        let works = works(&entries);
        Ok(Answer {
            entries,
            order: order.with(works),
            unplanned: (out_of_scope, left_out),
        })
    }

    /// Returns the stacks that are on record elsewhere, since their tools keep the same states; each with
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

    /// What becomes of a stack of the tree, given the key where it was found by its backend, and whether
    /// another stack is on record at its path.
    fn entry_of_tree(
        &self,
        path: usize,
        found: Option<usize>,
        is_taken: bool,
        places: &Places,
        request: &Request,
    ) -> Expected {
        let block = self.block(path);
        let place = |path: usize| places[&path].1.or(places[&path].0);
        let mut reasons: Vec<Why> = Vec::new();
        if !block.is_read {
            reasons.extend(self.ahead.get(&path).cloned());
        }
        if is_taken {
            reasons.push(why("another stack is on record at its path, with the id `"));
        }
        if !block.is_read {
            if let (Some(recorded), Some(now)) = places[&path]
                && recorded != now
            {
                reasons.push(why("another backend than recorded"));
            }
            let others = self
                .tree()
                .into_iter()
                .filter(|&it| it != path && !self.block(it).is_read);
            let same = others.filter(|&it| place(it).is_some() && place(it) == place(path));
            let texts: Why = same
                .map(|it| format!("the same backend as {}", PATHS[it]))
                .collect();
            reasons.extend(Some(texts).filter(|texts| !texts.is_empty()));
        }
        let mut action = self.action(path, found.is_some(), request);
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
        // It has become another stack, even if that was at its path.
        let own = self.keys.get(&path).copied().filter(|key| *key != path);
        Expected {
            action,
            blocked,
            previous: found.or(own),
            removed: None,
        }
    }

    /// What is done with a stack of the tree that is not blocked.
    fn action(&self, path: usize, is_moved: bool, request: &Request) -> &'static str {
        let block = self.block(path);
        let standing = self.standings[&path];
        if block.is_read {
            return "read";
        }
        let is_on_record = is_moved || standing != Standing::Never;
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
        if standing == Standing::Tainted && is_on_record {
            return match block.driver {
                Driver::Empty | Driver::Vacant => "create",
                _ => "replace",
            };
        }
        if standing == Standing::Applied {
            return "no-op";
        }
        match block.driver {
            Driver::Blind | Driver::Eager if is_on_record => "update",
            Driver::Blind | Driver::Eager => "create",
            _ if is_on_record => "no-op",
            _ => "adopt",
        }
    }

    /// What is known of a removal before anybody is asked.
    fn removal(&self, key: usize, evidence: &Evidence) -> Removal {
        let entry = &self.scene.record[&key];
        let (by, seen, mut blocked) = match evidence {
            Evidence::Removed(by, seen) => (Some(by.clone()), Some(*seen), None),
            Evidence::None(why) => (None, None, Some(why.clone())),
        };
        if let (Some(seen), None, Some((false, failed))) = (seen, entry.backend, entry.last) {
            let applied = entry.applied.as_ref().map(|applied| applied.commit);
            if failed != seen && applied != Some(Seen::At(failed)) {
                blocked = Some(why(format!(
                    "its last apply, of commit {}, failed",
                    self.repository.short(failed)
                )));
            }
        }
        let is_only_forgotten = entry.is_read || entry.driver == Some(Driver::None);
        let action = (is_only_forgotten && blocked.is_none()).then_some("forget");
        Removal {
            by,
            seen,
            blocked,
            action,
            backend: entry.backend,
        }
    }

    /// Finds out what the code of the commit does.
    fn read_code(&self, key: usize, removal: &mut Removal) {
        let entry = &self.scene.record[&key];
        let snapshot = self.snapshot(removal.seen.expect("there is evidence"));
        if snapshot.iter().any(|it| matches!(it, Content::Broken(_))) {
            removal.block(why("the configuration of its commit is wrong: "));
            return;
        }
        if entry
            .applied
            .as_ref()
            .is_some_and(|applied| applied.has_other_rules)
        {
            removal.block(why(
                "this version of orch cannot tell whether its commit has what was applied",
            ));
            return;
        }
        let block = snapshot[key].block().expect("there is evidence");
        let answered = match block.driver {
            Driver::Placed | Driver::Vacant => Some(block.place),
            _ => None,
        };
        match block.driver {
            Driver::Lasting => removal.block(why("its driver `lasting` has no `destroy`")),
            Driver::None | Driver::Empty | Driver::Vacant => removal.action = Some("forget"),
            Driver::Blind | Driver::Calm | Driver::Eager | Driver::Placed => {
                removal.action = Some("delete");
            }
        }
        if let (Some(recorded), Some(answered)) = (entry.backend, answered)
            && recorded != answered
        {
            removal.block(why("another backend than recorded"));
        }
        removal.backend = entry.backend.or(answered);
    }

    /// Keeps stacks whose states others have, or may have.
    fn block_by_backends(&self, removals: &mut BTreeMap<usize, Removal>, places: &Places) {
        let record = &self.scene.record;
        for (&key, removal) in removals {
            let Some(own) = removal.backend.filter(|_| removal.may_go()) else {
                continue;
            };
            let of_tree = places
                .iter()
                .filter(|(_, place)| place.1.or(place.0) == Some(own));
            let of_tree = of_tree.map(|(path, _)| {
                format!("the same backend as {}, which is in the tree", PATHS[*path])
            });
            let of_record = self
                .evidence
                .keys()
                .filter(|other| **other != key && record[other].backend == Some(own));
            let of_record =
                of_record.map(|other| format!("the same backend as {} on record", PATHS[*other]));
            let unknown = self.tree().into_iter().filter(|&path| {
                let block = self.block(path);
                let is_recorded = self.standings[&path] == Standing::Applied
                    && self
                        .entry(path)
                        .is_some_and(|entry| entry.backend.is_some());
                let is_alike = match record[&key].driver {
                    None => block.driver != Driver::None,
                    Some(driver) => {
                        driver == block.driver && matches!(driver, Driver::Placed | Driver::Vacant)
                    }
                };
                !block.is_read && places[&path].1.is_none() && !is_recorded && is_alike
            });
            let unknown = unknown.map(|path| format!("{} may have the same backend", PATHS[path]));
            let reasons: [Why; 3] = [of_tree.collect(), of_record.collect(), unknown.collect()];
            if let Some(why) = reasons.into_iter().find(|why| !why.is_empty()) {
                removal.block(why);
            }
        }
    }

    /// Keeps what something runs after that stays as it is: again and again, until nothing more is kept.
    fn keep_what_is_used(
        &self,
        removals: &mut BTreeMap<usize, Removal>,
        order: &order::Case,
        of_tree: &BTreeMap<usize, &'static str>,
        record: &Record,
        keys: &BTreeMap<usize, usize>,
    ) {
        #[derive(Clone, Copy, PartialEq)]
        enum Part {
            Goes,
            Holds,
            MovesAway,
            Nothing,
        }
        let mut parts: BTreeMap<order::Node, Part> = BTreeMap::new();
        for &node in order.nodes() {
            let part = match node {
                order::Node::Gone(key) => match removals.get(&key) {
                    Some(removal) if removal.may_go() => Part::Goes,
                    Some(removal) if removal.blocked.is_none() => Part::Nothing,
                    _ if record[&key].is_read || record[&key].driver == Some(Driver::None) => {
                        Part::Nothing
                    }
                    _ => Part::Holds,
                },
                order::Node::Tree(path) if self.block(path).is_read => Part::Nothing,
                order::Node::Tree(path) => match of_tree.get(&path) {
                    Some(&"delete") => Part::Goes,
                    Some(&"no-op") if self.block(path).driver == Driver::None => Part::Nothing,
                    Some(_) => Part::MovesAway,
                    None => match keys.get(&path) {
                        Some(key) if record[key].driver != Some(Driver::None) => Part::Holds,
                        _ => Part::Nothing,
                    },
                },
            };
            parts.insert(node, part);
        }
        if !parts.values().any(|part| *part == Part::Goes) {
            return;
        }
        // What runs after what, directly or through what does not exist.
        let ways = order.ways_through(|node| parts[&node] == Part::Nothing);
        let mut held: BTreeMap<order::Node, BTreeSet<order::Node>> = BTreeMap::new();
        loop {
            let mut more = held.clone();
            for &(used, user) in &ways {
                let holds = parts[&user] == Part::Holds || held.contains_key(&user);
                if parts[&used] == Part::Goes && holds {
                    more.entry(used).or_default().insert(user);
                }
            }
            if more == held {
                break;
            }
            held = more;
        }
        for (node, holders) in held {
            let order::Node::Gone(key) = node else {
                continue;
            };
            let texts = holders.iter().map(|holder| {
                let (order::Node::Gone(path) | order::Node::Tree(path)) = holder;
                format!("{} runs after it, and stays as it is", PATHS[*path])
            });
            removals
                .get_mut(&key)
                .expect("it is planned")
                .block(texts.collect());
        }
    }

    /// Returns what is on record once stacks have the entries that they were found at, and all the paths that
    /// they have now.
    fn amended(&self, moves: &BTreeMap<usize, usize>) -> Record {
        let keys = |wanted: &BTreeMap<usize, usize>, record: &Record| -> Record {
            // From the old key to the new one.
            let mut new: BTreeMap<usize, usize> =
                wanted.iter().map(|(path, key)| (*key, *path)).collect();
            loop {
                let taken = new
                    .iter()
                    .find(|(_, to)| record.contains_key(*to) && !new.contains_key(*to));
                let Some(taken) = taken.map(|(from, _)| *from) else {
                    break;
                };
                new.remove(&taken);
            }
            let follow = |names: &BTreeSet<usize>| -> BTreeSet<usize> {
                let mut now = BTreeSet::new();
                for &name in names {
                    let moving: Vec<usize> = new
                        .keys()
                        .copied()
                        .filter(|&it| is_at_or_below(it, name))
                        .collect();
                    let mut staying = record
                        .keys()
                        .filter(|it| is_at_or_below(**it, name) && !new.contains_key(*it));
                    if moving.is_empty() || staying.next().is_some() {
                        now.insert(name);
                    }
                    now.extend(moving.iter().map(|it| new[it]));
                }
                now
            };
            let renamed = record.iter().map(|(key, entry)| {
                let mut entry = entry.clone();
                if !new.is_empty() {
                    entry.after = follow(&entry.after);
                    entry.before = follow(&entry.before);
                }
                (new.get(key).copied().unwrap_or(*key), entry)
            });
            renamed.collect()
        };
        let record = keys(
            &self
                .keys
                .iter()
                .filter(|(path, key)| path != key)
                .map(|(a, b)| (*a, *b))
                .collect(),
            &self.scene.record,
        );
        let mut record = record;
        for (path, key) in moves {
            if let Some(entry) = record.get_mut(key) {
                entry.id = self.block(*path).id();
            }
        }
        keys(moves, &record)
    }
}

/// A stack that goes, if nothing keeps it.
#[derive(Debug, Clone)]
struct Removal {
    by: Option<BTreeSet<usize>>,
    seen: Option<usize>,
    blocked: Option<Why>,
    action: Option<&'static str>,
    backend: Option<usize>,
}

impl Removal {
    fn block(&mut self, why: Why) {
        self.blocked.get_or_insert(why);
    }

    fn may_go(&self) -> bool {
        self.blocked.is_none() && self.action != Some("forget")
    }

    /// Returns what is said of it.
    fn entry(&self, repository: &Repository) -> Expected {
        let action = self.action.filter(|_| self.blocked.is_none());
        let by = self
            .by
            .iter()
            .flatten()
            .map(|&it| repository.ids[it].clone());
        let removed: BTreeSet<String> = by.collect();
        let unproven = || BTreeSet::from(["unproven".to_owned()]);
        Expected {
            action: action.unwrap_or("no-op"),
            blocked: self.blocked.clone(),
            previous: None,
            removed: Some(if removed.is_empty() {
                unproven()
            } else {
                removed
            }),
        }
    }

    fn needs_code(&self) -> bool {
        self.blocked.is_none() && self.action.is_none()
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
