//! Digests of the outputs that a stack is applied with: those of its direct predecessors.
//!
//! A group, or a stack without outputs, is replaced by its own direct predecessors. One digest
//! covers all outputs. It depends only on them and on the constraints between their stacks.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::ascii::hex;
use crate::path::StackPath;
use crate::printable::first_of;
use crate::project::stack::{StackIndex, Stacks};
use crate::selection::graph::{Graph, Precedence};

pub struct Upstream {
    paths: Vec<StackPath>,
    /// By stack number: the digest of its outputs.
    own: Vec<Option<String>>,
    forward: Precedence,
    backward: Precedence,
    /// By node: the digest of its predecessors. Once computed, so are those that it depends on.
    before: Vec<Option<DigestSum>>,
}

/// A digest of a multiset: the sum of its members' digests, so grouping makes no difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DigestSum([u64; 4]);

impl DigestSum {
    /// Returns the digest of one member.
    fn single(kind: u8, parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update([kind]);
        for part in parts {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let hash = hasher.finalize();
        let mut words = hash.chunks_exact(8);
        DigestSum(std::array::from_fn(|_| {
            let word = words.next().and_then(|word| word.try_into().ok());
            u64::from_le_bytes(word.expect("a digest has 32 bytes"))
        }))
    }

    fn add(&mut self, other: DigestSum) {
        for (word, more) in self.0.iter_mut().zip(other.0) {
            *word = word.wrapping_add(more);
        }
    }

    fn subtract(&mut self, other: DigestSum) {
        for (word, less) in self.0.iter_mut().zip(other.0) {
            *word = word.wrapping_sub(less);
        }
    }

    fn to_bytes(self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

pub fn outputs_digest(outputs: &BTreeMap<String, String>) -> String {
    let parts: Vec<&[u8]> = outputs
        .iter()
        .flat_map(|(name, value)| [name, value])
        .map(String::as_bytes)
        .collect();
    digits(DigestSum::single(b'o', &parts))
}

fn digits(sum: DigestSum) -> String {
    hex(&sum.to_bytes()[..16])
}

impl Upstream {
    /// Takes each stack's [`outputs_digest`], by number; `None` if unknown, or if it has no
    /// outputs.
    pub fn new(graph: &Graph, stacks: &Stacks, mut own: Vec<Option<String>>) -> Self {
        let forward = Precedence::new(graph);
        let backward = forward.reversed();
        own.resize(stacks.len(), None);
        Upstream {
            paths: stacks.iter().map(|(_, stack)| stack.path.clone()).collect(),
            own: own.into_iter().map(some_outputs).collect(),
            before: vec![None; forward.n_nodes()],
            forward,
            backward,
        }
    }

    /// Sets the digest of a stack's outputs. Dependent digests are dropped and computed again on
    /// demand.
    pub fn set(&mut self, stack: StackIndex, own: Option<String>) {
        let own = some_outputs(own);
        if self.own[stack.get()] == own {
            return;
        }
        self.own[stack.get()] = own;
        let mut changed = vec![stack.get()];
        while let Some(node) = changed.pop() {
            for successor in self.forward.successors(node) {
                let node = successor.node as usize;
                // If it was not computed, no later one was.
                if self.before[node].take().is_some() && self.is_passed(node) {
                    changed.push(node);
                }
            }
        }
    }

    /// Returns the combined digest of the outputs that a stack is applied with.
    pub fn of(&mut self, stack: StackIndex) -> String {
        digits(self.sum(stack))
    }

    fn sum(&mut self, stack: StackIndex) -> DigestSum {
        let mut open = vec![stack.get()];
        while let Some(&node) = open.last() {
            if self.before[node].is_some() {
                open.pop();
                continue;
            }
            let known = open.len();
            let mut sum = DigestSum::default();
            for predecessor in self.backward.successors(node) {
                let predecessor = predecessor.node as usize;
                match self.contribution(predecessor) {
                    Some(seen) => sum.add(seen),
                    None => open.push(predecessor),
                }
            }
            if open.len() == known {
                self.before[node] = Some(sum);
            }
        }
        self.before[stack.get()].expect("it was just computed")
    }

    /// Like [`Self::of`], but with `others` instead of the digests of direct predecessors that have outputs. Outputs
    /// that also reach the stack through a group still count there.
    pub fn replacing(
        &mut self,
        stack: StackIndex,
        others: &BTreeMap<StackIndex, String>,
    ) -> String {
        let mut sum = self.sum(stack);
        for predecessor in self.backward.successors(stack.get()) {
            let node = predecessor.node as usize;
            let own = self.own.get(node).and_then(Option::as_ref);
            if let (Some(own), Some(other)) = (own, others.get(&StackIndex::new(node))) {
                sum.subtract(self.single(node, own));
                sum.add(self.single(node, other));
            }
        }
        digits(sum)
    }

    /// Returns the stacks whose outputs a stack is applied with, and the stacks without known outputs between them.
    pub fn sources(&self, stack: StackIndex) -> (Vec<StackIndex>, Vec<StackIndex>) {
        let mut is_seen = vec![false; self.before.len()];
        let mut open = vec![stack.get()];
        let (mut sources, mut passed) = (Vec::new(), Vec::new());
        while let Some(node) = open.pop() {
            for predecessor in self.backward.successors(node) {
                let node = predecessor.node as usize;
                if std::mem::replace(&mut is_seen[node], true) {
                    continue;
                }
                if !self.is_passed(node) {
                    sources.push(StackIndex::new(node));
                    continue;
                }
                open.push(node);
                if node < self.own.len() {
                    passed.push(StackIndex::new(node));
                }
            }
        }
        sources.sort_unstable();
        passed.sort_unstable();
        (sources, passed)
    }

    /// Returns whether a node is replaced by its predecessors: a group, or a stack without outputs.
    fn is_passed(&self, node: usize) -> bool {
        self.own.get(node).is_none_or(Option::is_none)
    }

    /// Returns the contribution of a stack with outputs.
    fn single(&self, node: usize, own: &str) -> DigestSum {
        let path = self.paths[node].to_string();
        DigestSum::single(b's', &[path.as_bytes(), own.as_bytes()])
    }

    /// Returns a node's contribution; `None` if its predecessors have to be computed first.
    fn contribution(&self, node: usize) -> Option<DigestSum> {
        match self.own.get(node) {
            Some(Some(own)) => Some(self.single(node, own)),
            // Many paths may lead to the same stacks; a sum over paths could overflow to the old
            // sum.
            Some(None) => self.before[node].map(|before| {
                if before == DigestSum::default() {
                    before
                } else {
                    DigestSum::single(b'v', &[&before.to_bytes()])
                }
            }),
            None => self.before[node],
        }
    }
}

/// Returns a message about changed outputs of these stacks, or of unknown ones.
pub fn outputs_differ(of: &[&StackPath]) -> String {
    if of.is_empty() {
        return "outputs of stacks that it runs after differ".to_owned();
    }
    let of = first_of(of.iter().map(|stack| stack.as_str()), 1);
    format!("outputs of {of} differ")
}

/// Drops the digest of no outputs.
fn some_outputs(own: Option<String>) -> Option<String> {
    own.filter(|own| *own != outputs_digest(&BTreeMap::new()))
}
