//! Follows a stack through the modules that it uses.

use std::collections::{HashMap, VecDeque};

use super::chain::MAX_CHAIN;
use super::node::InputNode;
use crate::change::cause::Use;

/// Visits all nodes that a node uses, nearest first, each once.
pub(super) struct NodeWalk {
    start: usize,
    reached: HashMap<usize, ReachedNode>,
    open: VecDeque<usize>,
}

struct ReachedNode {
    user: usize,
    /// The index of the edge from its user.
    edge: usize,
    /// The number of edges from the start.
    n_edges: usize,
    /// The node up to which the chain is kept; this one, unless the chain is too long.
    kept: usize,
}

impl NodeWalk {
    pub(super) fn new(start: usize) -> Self {
        NodeWalk {
            start,
            reached: HashMap::new(),
            open: VecDeque::from([start]),
        }
    }

    /// Returns the next node, skipping unwanted ones.
    pub(super) fn next(
        &mut self,
        nodes: &[InputNode],
        is_wanted: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let user = self.open.pop_front()?;
        let before = self.reached.get(&user);
        let n_edges = before.map_or(0, |reached| reached.n_edges) + 1;
        let kept_before = before.map_or(user, |reached| reached.kept);
        for (edge, target) in nodes[user].edges.iter().map(|edge| edge.target).enumerate() {
            if target == self.start || self.reached.contains_key(&target) || !is_wanted(target) {
                continue;
            }
            let is_far = n_edges > MAX_CHAIN;
            let reached = ReachedNode {
                user,
                edge,
                n_edges,
                kept: if is_far { kept_before } else { target },
            };
            self.reached.insert(target, reached);
            self.open.push_back(target);
        }
        Some(user)
    }

    /// Returns the chain from the start to a visited node.
    pub(super) fn way<'n>(&self, nodes: &'n [InputNode], node: usize) -> Vec<&'n Use> {
        let mut at = self.reached.get(&node).map_or(node, |reached| reached.kept);
        let mut edges = Vec::new();
        while let Some(reached) = self.reached.get(&at) {
            edges.push(&nodes[reached.user].edges[reached.edge]);
            at = reached.user;
        }
        edges.iter().rev().flat_map(|edge| &edge.steps).collect()
    }
}
