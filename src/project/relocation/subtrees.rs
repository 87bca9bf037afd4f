//! Recorded stacks as a tree of directories, in which whole subtrees move.

use std::collections::BTreeMap;

use crate::path::{InstanceKey, ProjectPath, StackPath};

/// The place of a directory in [`Subtrees`].
type Node = usize;

/// The directories with recorded stacks, at their new places.
pub(super) struct Subtrees<'a> {
    recorded: Vec<&'a StackPath>,
    directories: Vec<Directory<'a>>,
    root: Node,
}

#[derive(Default)]
struct Directory<'a> {
    below: BTreeMap<&'a str, Node>,
    /// The stacks in it, each with its new key and its position among the recorded ones.
    stacks: Vec<(Option<&'a InstanceKey>, usize)>,
}

impl<'a> Subtrees<'a> {
    pub(super) fn new(recorded: impl IntoIterator<Item = &'a StackPath>) -> Self {
        let mut subtrees = Subtrees {
            recorded: recorded.into_iter().collect(),
            directories: vec![Directory::default()],
            root: 0,
        };
        for at in 0..subtrees.recorded.len() {
            let stack = subtrees.recorded[at];
            let node = subtrees.made(stack.directory());
            subtrees.directories[node].stacks.push((stack.key(), at));
        }
        subtrees
    }

    pub(super) fn move_one(&mut self, from: &'a StackPath, to: &'a StackPath) {
        let Some(node) = self.find(from.directory()) else {
            return;
        };
        let stacks = std::mem::take(&mut self.directories[node].stacks);
        let (taken, left): (Vec<_>, Vec<_>) =
            stacks.into_iter().partition(|(key, _)| *key == from.key());
        self.directories[node].stacks = left;
        if !taken.is_empty() {
            let taken = taken.into_iter().map(|(_, at)| (to.key(), at));
            let node = self.made(to.directory());
            self.directories[node].stacks.extend(taken);
        }
    }

    /// Moves everything at and below a directory. If it is moved into itself, stacks that are there already are not
    /// moved.
    pub(super) fn move_all(&mut self, from: &'a ProjectPath, to: &'a ProjectPath) {
        let is_inside = to.is_at_or_below(from);
        let staying = is_inside.then(|| self.detach(to)).flatten();
        if let Some(taken) = self.detach(from) {
            self.attach(taken, to);
        }
        if let Some(staying) = staying {
            self.attach(staying, to);
        }
    }

    /// Returns the stacks that are not where they were recorded.
    pub(super) fn moved(self) -> BTreeMap<&'a StackPath, StackPath> {
        let mut moved = BTreeMap::new();
        let mut open = vec![(self.root, ProjectPath::root())];
        while let Some((node, path)) = open.pop() {
            let directory = &self.directories[node];
            for &(key, at) in &directory.stacks {
                let recorded = self.recorded[at];
                let now = match key {
                    Some(key) => StackPath::instance(path.clone(), key.clone()),
                    None => path.clone().into(),
                };
                if *recorded != now {
                    moved.insert(recorded, now);
                }
            }
            let below = directory.below.iter();
            open.extend(below.map(|(name, node)| (*node, path.join(name))));
        }
        moved
    }

    fn find(&self, path: &ProjectPath) -> Option<Node> {
        let mut names = path.components();
        names.try_fold(self.root, |node, name| {
            self.directories[node].below.get(name).copied()
        })
    }

    /// Returns a directory, and creates it if necessary.
    fn made(&mut self, path: &'a ProjectPath) -> Node {
        let mut node = self.root;
        for name in path.components() {
            let next = self.directories.len();
            let found = *self.directories[node].below.entry(name).or_insert(next);
            if found == next {
                self.directories.push(Directory::default());
            }
            node = found;
        }
        node
    }

    /// Cuts a directory off with all below it.
    fn detach(&mut self, path: &'a ProjectPath) -> Option<Node> {
        let node = self.find(path)?;
        let Some(parent) = path.ancestors().next() else {
            self.root = self.directories.len();
            self.directories.push(Directory::default());
            return Some(node);
        };
        let parent = self.find(&ProjectPath::from_normal(parent))?;
        self.directories[parent].below.remove(path.basename());
        Some(node)
    }

    /// Attaches a detached directory, and merges it into an existing one.
    fn attach(&mut self, node: Node, path: &'a ProjectPath) {
        // Of each pair, the smaller one is emptied into the other, so a chain of blocks costs little.
        let mut open = vec![(self.made(path), node)];
        while let Some((stays, goes)) = open.pop() {
            let Directory {
                mut below,
                mut stacks,
            } = std::mem::take(&mut self.directories[goes]);
            let kept = &mut self.directories[stays];
            if kept.below.len() < below.len() {
                std::mem::swap(&mut kept.below, &mut below);
            }
            if kept.stacks.len() < stacks.len() {
                std::mem::swap(&mut kept.stacks, &mut stacks);
            }
            kept.stacks.append(&mut stacks);
            for (name, node) in below {
                let same = *kept.below.entry(name).or_insert(node);
                if same != node {
                    open.push((same, node));
                }
            }
        }
    }
}
