//! The one order of a plan, from pairs of stacks and their closure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::scene::{INNER, OUTER, PATHS, Record, Snapshot, is_at_or_below};

/// A stack: of the tree, by path, or recorded alone, by key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    Tree(usize),
    Gone(usize),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) destroys: bool,
    pub(super) applies: bool,
}

/// What comes first, and what comes after it.
type Ways = BTreeSet<(Node, Node)>;

#[derive(Debug)]
pub(super) struct Case {
    nodes: Vec<Node>,
    /// In the tree.
    tree: Ways,
    /// On record, without what newer declarations contradict.
    recorded: Ways,
    works: BTreeMap<Node, Work>,
}

/// The serial of what the tree declares and nobody has recorded.
const NEWEST: u64 = u64::MAX;

/// Adds the ways that lead through some of the stacks.
fn closed(ways: &Ways, through: impl Fn(Node) -> bool) -> Ways {
    let mut all = ways.clone();
    loop {
        let mut more = all.clone();
        for &(first, middle) in &all {
            if through(middle) {
                more.extend(
                    all.iter()
                        .filter(|way| way.0 == middle)
                        .map(|way| (first, way.1)),
                );
            }
        }
        if more == all {
            return all;
        }
        all = more;
    }
}

impl Case {
    /// Returns what the order depends on: the tree, the record, and the key of each stack that has one.
    pub(super) fn new(tree: &Snapshot, record: &Record, keys: &BTreeMap<usize, usize>) -> Self {
        let in_tree: Vec<usize> = (0..PATHS.len())
            .filter(|&it| tree[it].block().is_some())
            .collect();
        let after = |path: usize| {
            let after = tree[path].block().map_or(0, |block| block.after);
            (0..PATHS.len()).filter(move |it| after & (1 << it) != 0)
        };
        let mut constraints = Ways::new();
        let mut newest = Vec::new();
        for &path in &in_tree {
            for name in after(path) {
                for &other in in_tree
                    .iter()
                    .filter(|&&it| it != path && is_at_or_below(it, name))
                {
                    let way = (Node::Tree(other), Node::Tree(path));
                    constraints.insert(way);
                    if !keys.contains_key(&path) {
                        newest.push((NEWEST, way));
                    }
                }
            }
        }
        if [OUTER, INNER].iter().all(|it| in_tree.contains(it)) {
            constraints.insert((Node::Tree(OUTER), Node::Tree(INNER)));
        }

        // Where the stacks are as the record has them: at its keys, or where nobody has recorded them.
        let mut places: BTreeMap<usize, Node> = BTreeMap::new();
        for &key in record.keys() {
            let stack = keys.iter().find(|(_, it)| **it == key);
            places.insert(
                key,
                stack.map_or(Node::Gone(key), |(path, _)| Node::Tree(*path)),
            );
        }
        for &path in in_tree.iter().filter(|it| !keys.contains_key(it)) {
            places.entry(path).or_insert(Node::Tree(path));
        }
        let mut declared = newest;
        for (key, entry) in record {
            let own = places[key];
            for (names, is_after) in [(&entry.after, true), (&entry.before, false)] {
                for name in names {
                    for (_, &other) in places
                        .iter()
                        .filter(|(path, _)| is_at_or_below(**path, *name))
                    {
                        if other != own {
                            let way = if is_after { (other, own) } else { (own, other) };
                            declared.push((entry.serial, way));
                        }
                    }
                }
            }
        }
        let mut recorded = Ways::new();
        if let (Some(&outer), Some(&inner)) = (places.get(&OUTER), places.get(&INNER)) {
            recorded.insert((outer, inner));
        }
        declared.sort_by_key(|(serial, _)| Reverse(*serial));
        for (_, (first, then)) in declared {
            if !closed(&recorded, |_| true).contains(&(then, first)) {
                recorded.insert((first, then));
            }
        }
        let gone = places
            .values()
            .copied()
            .filter(|node| matches!(node, Node::Gone(_)));
        Case {
            nodes: in_tree
                .iter()
                .map(|&path| Node::Tree(path))
                .chain(gone)
                .collect(),
            tree: constraints,
            recorded,
            works: BTreeMap::new(),
        }
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn with(self, works: BTreeMap<Node, Work>) -> Self {
        Case { works, ..self }
    }

    /// What came before what recorded, directly or through some of the stacks.
    pub(super) fn ways_through(&self, through: impl Fn(Node) -> bool) -> Ways {
        closed(&self.recorded, through)
    }

    fn work(&self, node: Node) -> Work {
        self.works.get(&node).copied().unwrap_or_default()
    }

    /// Returns the operations in their order, given what is said not to be kept to: the effect, what came
    /// earlier and what later. Each of these has to be asked for, and to close a cycle.
    pub(super) fn operations(
        &self,
        relaxed: &[(String, usize, usize)],
    ) -> Result<Vec<(usize, bool)>, String> {
        let tree = closed(&self.tree, |_| true);
        let recorded = closed(&self.recorded, |_| true);
        let mut operations: Vec<(Node, bool)> = Vec::new();
        for &node in &self.nodes {
            let work = self.work(node);
            operations.extend(work.destroys.then_some((node, true)));
            operations.extend(work.applies.then_some((node, false)));
        }
        let path = |node: Node| match node {
            Node::Tree(path) | Node::Gone(path) => path,
        };
        operations.sort_by_key(|&(node, destroys)| (path(node), !destroys));
        let mut waits: BTreeSet<(usize, usize)> = BTreeSet::new();
        for (first, &(a, destroys_a)) in operations.iter().enumerate() {
            for (then, &(b, destroys_b)) in operations.iter().enumerate() {
                let must = match (destroys_a, destroys_b) {
                    (false, false) => tree.contains(&(a, b)),
                    (true, true) => recorded.contains(&(b, a)),
                    (true, false) => a == b,
                    (false, true) => false,
                };
                if must {
                    waits.insert((first, then));
                }
            }
        }
        // What may be left out, the user first: what stays leaves before what it used goes, also through others that
        // stay, and what goes does so before what it used is changed.
        let near = closed(&self.recorded, |node| self.work(node) == Work::default());
        let staying = closed(&self.recorded, |node| {
            let work = self.work(node);
            work.applies || !work.destroys
        });
        let position = |operation: (Node, bool)| {
            operations
                .iter()
                .position(|it| *it == operation)
                .expect("it is planned")
        };
        let mut relaxed: BTreeSet<(&str, usize, usize)> = relaxed
            .iter()
            .map(|(effect, earlier, later)| (effect.as_str(), *earlier, *later))
            .collect();
        for (effect, leaves, ways) in [
            ("destroyed-first", true, &staying),
            ("changed-first", false, &near),
        ] {
            let mut left_out = Vec::new();
            for &(used, user) in ways {
                let (u, v) = (self.work(user), self.work(used));
                let is_asked = if leaves {
                    u.applies && v.destroys && !v.applies
                } else {
                    u.destroys && v.applies
                };
                if !is_asked {
                    continue;
                }
                let ends = (position((user, !leaves)), position((used, leaves)));
                if relaxed.remove(&(effect, path(used), path(user))) {
                    left_out.push(ends);
                } else {
                    waits.insert(ends);
                }
            }
            let all = close(&waits);
            if let Some((first, then)) = left_out
                .iter()
                .find(|(first, then)| !all.contains(&(*then, *first)))
            {
                return Err(format!(
                    "{:?} need not come after {:?}",
                    operations[*first], operations[*then]
                ));
            }
        }
        if !relaxed.is_empty() {
            return Err(format!("nothing asks for {relaxed:?}"));
        }
        let mut sequence = Vec::new();
        let mut done: BTreeSet<usize> = BTreeSet::new();
        while done.len() < operations.len() {
            let is_free = |next: &usize| {
                !done.contains(next)
                    && waits
                        .iter()
                        .all(|(first, then)| then != next || done.contains(first))
            };
            let Some(next) = (0..operations.len()).find(is_free) else {
                return Err(format!("a cycle is left: {waits:?} of {operations:?}"));
            };
            done.insert(next);
            sequence.push((path(operations[next].0), operations[next].1));
        }
        Ok(sequence)
    }
}

fn close(waits: &BTreeSet<(usize, usize)>) -> BTreeSet<(usize, usize)> {
    let mut all = waits.clone();
    loop {
        let more = all.iter().flat_map(|&(first, middle)| {
            let next = all.iter().filter(move |way| way.0 == middle);
            next.map(move |way| (first, way.1))
        });
        let more: BTreeSet<(usize, usize)> = more.collect();
        if more.is_subset(&all) {
            return all;
        }
        all.extend(more);
    }
}
