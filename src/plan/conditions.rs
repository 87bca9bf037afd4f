//! The stacks with work that an entry waits for, because they decide its action.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::path::StackPath;
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::selection::graph::{Graph, Precedence};

/// The most stacks that a condition names: a group of thousands may have thousands before it.
const MAX_NAMED: usize = 20;

/// The nearest stacks with work that an entry runs after, looking through stacks without work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkBefore {
    /// The first of them by path.
    pub stacks: Vec<StackPath>,
    pub has_more: bool,
}

impl WorkBefore {
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }
}

/// Returns the condition of each stack that runs after stacks with work. No stack with work may be
/// in a cycle. Linear in the size of the graph.
pub fn conditions(
    project: &Project,
    graph: &Graph,
    stacks: &[StackIndex],
    working: &BTreeSet<StackIndex>,
) -> BTreeMap<StackIndex, WorkBefore> {
    if working.is_empty() {
        return BTreeMap::new();
    }
    let mut is_working = vec![false; graph.n_nodes()];
    for stack in working {
        is_working[stack.get()] = true;
    }
    let precedence = Precedence::new(graph);
    let mut pending = precedence.pending();
    let mut ready: Vec<usize> = (0..pending.len())
        .filter(|&node| pending[node] == 0)
        .collect();
    // By node: the lowest preceding stacks with work, one more than is named.
    let mut before: Vec<Vec<StackIndex>> = vec![Vec::new(); pending.len()];
    while let Some(node) = ready.pop() {
        let own = is_working[node].then(|| [StackIndex::new(node)]);
        for successor in precedence.successors(node) {
            let next = successor.node as usize;
            let known = std::mem::take(&mut before[next]);
            let more = own.as_ref().map_or(&*before[node], |own| &own[..]);
            before[next] = lowest(known, more);
            pending[next] -= 1;
            if pending[next] == 0 {
                ready.push(next);
            }
        }
    }
    let condition = |&stack: &StackIndex| {
        let before = &before[stack.get()];
        let path = |&stack: &StackIndex| project.stacks[stack].path.clone();
        let condition = WorkBefore {
            stacks: before.iter().take(MAX_NAMED).map(path).collect(),
            has_more: before.len() > MAX_NAMED,
        };
        (!before.is_empty()).then_some((stack, condition))
    };
    stacks.iter().filter_map(condition).collect()
}

/// Merges two sorted lists and keeps the lowest.
fn lowest(known: Vec<StackIndex>, more: &[StackIndex]) -> Vec<StackIndex> {
    if more.is_empty() || known == more {
        return known;
    }
    let mut all = known;
    all.extend(more);
    all.sort_unstable();
    all.dedup();
    all.truncate(MAX_NAMED + 1);
    all
}
