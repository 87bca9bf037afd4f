//! What becomes of stacks that are gone from the tree.

use std::collections::{BTreeMap, BTreeSet};

use super::super::order;
use super::super::repository::Repository;
use super::super::scene::{Block, Content, Driver, PATHS, Record, Seen, Snapshot};
use super::{Evidence, Expected, Model, Places, StackStatus, Why, why};

/// A stack that goes, if nothing keeps it.
#[derive(Debug, Clone)]
pub(super) struct Removal {
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
    pub(super) fn entry(&self, repository: &Repository) -> Expected {
        let action = self.action.filter(|_| self.blocked.is_none());
        let by = self
            .by
            .iter()
            .flatten()
            .map(|&it| repository.ids[it].clone());
        let removed: BTreeSet<String> = by.collect();
        // HEAD has removed it, but not for the default branch, or not for good.
        let is_doubt =
            |why: &String| why.starts_with("it looks moved") || why.contains(" has it at commit ");
        let is_doubtful = self.blocked.iter().flatten().all(is_doubt);
        // Another clone may have the commit.
        let is_elsewhere = |why: &String| why.ends_with(" is not in this clone");
        let is_unknown = self.blocked.iter().flatten().all(is_elsewhere);
        let unproven = match (is_doubtful, is_unknown) {
            (true, _) => "doubtful",
            (false, true) => "unknown",
            (false, false) => "unproven",
        };
        let unproven = || BTreeSet::from([unproven.to_owned()]);
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

    pub(super) fn needs_code(&self) -> bool {
        self.blocked.is_none() && self.action.is_none()
    }
}

impl Model<'_> {
    /// What is known of a removal before anybody is asked.
    pub(super) fn removal(&self, key: usize, evidence: &Evidence) -> Removal {
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
        if seen.is_some() && entry.backend.is_none() && entry.is_interrupted {
            blocked = Some(why("its last apply was interrupted"));
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
    pub(super) fn read_code(&self, key: usize, removal: &mut Removal) {
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
                "this version of orch cannot check whether its commit has the applied inputs",
            ));
            return;
        }
        let block = snapshot[key].block().expect("there is evidence");
        let answered = match block.driver {
            Driver::Placed | Driver::Vacant => Some(block.place),
            _ => None,
        };
        if entry.backend.is_none() {
            self.block_by_command(block, removal);
        }
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
            removal.block(why("its backend differs from the recorded one"));
        }
        removal.backend = entry.backend.or(answered);
    }

    /// Keeps a stack whose driver does not say where its state is if its command may also destroy another stack: of
    /// the tree, of the default branch, or a recorded one that is not here.
    fn block_by_command(&self, block: &Block, removal: &mut Removal) {
        // The last word of the command that destroys, without what is just the directory.
        let word = |block: &Block| match block.driver {
            Driver::Blind => Some(format!("t{}", block.text)),
            Driver::Calm => Some(format!("n{}", block.place)),
            Driver::Eager => Some(format!("in n{}", block.place)),
            Driver::Empty => Some("its directory".to_owned()),
            Driver::Placed | Driver::Vacant | Driver::Lasting | Driver::None => None,
        };
        let Some(own) = word(block) else { return };
        let name = block.driver.name();
        let is_same = |snapshot: &Snapshot, path: usize| {
            let block = snapshot[path].block().filter(|block| !block.is_read);
            block.and_then(word).as_ref() == Some(&own)
        };
        let place = |path: usize, place: &str| {
            let is_here = self.scene.working[path].block().is_some();
            let place = if is_here { "" } else { place };
            format!("{}{place}", PATHS[path])
        };
        let same = |other: &str| {
            format!(
                "its `destroy` command also destroys {other}, and its driver `{name}` has no `backend`"
            )
        };
        let mut texts = Why::new();
        for (path, name) in PATHS.iter().enumerate() {
            if is_same(&self.scene.working, path) {
                texts.insert(same(name));
            }
            let tip = self.scene.published.filter(|tip| *tip != self.scene.head);
            if tip.is_some_and(|tip| is_same(self.snapshot(tip), path)) {
                texts.insert(same(&place(path, ", which origin/main has")));
            }
        }
        for (&path, evidence) in &self.evidence {
            let entry = &self.scene.record[&path];
            let is_ignored = entry.is_read || entry.driver == Some(Driver::None);
            let is_absent = matches!(evidence, Evidence::None(_));
            if !is_absent || is_ignored {
                continue;
            }
            let commit = match (&entry.applied, entry.last) {
                (Some(applied), _) if applied.seen == Seen::None => applied.commit,
                (Some(applied), _) => applied.seen,
                (None, Some((_, last))) => Seen::At(last),
                (None, None) => Seen::None,
            };
            let snapshot = match commit {
                Seen::At(commit) => Some(self.snapshot(commit)),
                Seen::None | Seen::Lost => None,
            };
            let snapshot = snapshot.filter(|snapshot| {
                let is_broken = |it: &Content| matches!(it, Content::Broken(_));
                !snapshot.iter().any(is_broken) && snapshot[path].block().is_some()
            });
            match snapshot {
                Some(snapshot) if is_same(snapshot, path) => {
                    texts.insert(same(&place(path, ", which is recorded")));
                }
                None if entry.driver.is_none_or(|driver| driver == block.driver) => {
                    let other = place(path, ", which is recorded,");
                    texts.insert(format!("its driver `{name}` has no `backend`, and the `destroy` command of {other} is unknown: "));
                }
                _ => {}
            }
        }
        if !texts.is_empty() {
            removal.block(texts);
        }
    }

    /// Keeps stacks whose states others have, or may have.
    pub(super) fn block_by_backends(
        &self,
        removals: &mut BTreeMap<usize, Removal>,
        places: &Places,
    ) {
        let record = &self.scene.record;
        for (&key, removal) in removals {
            let Some(own) = removal.backend.filter(|_| removal.may_go()) else {
                continue;
            };
            // Its driver says so whether it is asked or not.
            let said = |path: usize| {
                let block = self.block(path);
                let says = matches!(block.driver, Driver::Placed | Driver::Vacant);
                says.then_some(block.place)
            };
            let of_tree = places
                .iter()
                .filter(|(path, place)| place.0 == Some(own) || said(**path) == Some(own));
            let of_tree = of_tree.map(|(path, _)| {
                format!(
                    "it has the same backend as {}, which is in the project",
                    PATHS[*path]
                )
            });
            let of_record = self
                .evidence
                .keys()
                .filter(|other| **other != key && record[other].backend == Some(own));
            let of_record = of_record
                .map(|other| format!("it has the same recorded backend as {}", PATHS[*other]));
            let unknown = self.tree().into_iter().filter(|&path| {
                let block = self.block(path);
                let is_recorded = self.statuses[&path] == StackStatus::Applied
                    && self
                        .entry(path)
                        .is_some_and(|entry| entry.backend.is_some());
                let is_alike = match record[&key].driver {
                    None => block.driver != Driver::None,
                    Some(driver) => {
                        driver == block.driver && matches!(driver, Driver::Placed | Driver::Vacant)
                    }
                };
                !block.is_read && said(path).is_none() && !is_recorded && is_alike
            });
            let unknown = unknown.map(|path| format!("{} may have the same backend", PATHS[path]));
            let reasons: [Why; 3] = [of_tree.collect(), of_record.collect(), unknown.collect()];
            if let Some(why) = reasons.into_iter().find(|why| !why.is_empty()) {
                removal.block(why);
            }
        }
    }

    /// Keeps what something runs after that stays as it is: again and again, until nothing more is kept.
    pub(super) fn keep_what_is_used(
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
                format!("{} runs after it, and is kept", PATHS[*path])
            });
            removals
                .get_mut(&key)
                .expect("it is planned")
                .block(texts.collect());
        }
    }
}
