//! The way from one stack through the modules that it uses.

use std::collections::{HashMap, VecDeque};

use super::graph::{Graph, MAX_CHAIN, Node};
use super::terraform::{self, place_read, touch_read};
use super::tree::Tree;
use crate::change::{Inputs, Use};

/// Goes from one node to all that it uses, nearest first, each once.
pub(super) struct Walk {
    start: usize,
    /// By node, how it was reached.
    reached: HashMap<usize, Reached>,
    open: VecDeque<usize>,
}

/// How a node was reached.
struct Reached {
    user: usize,
    /// The index of the edge of the user.
    edge: usize,
    /// The edges from the start.
    n_edges: usize,
    /// The node up to which the way is told; this one, unless that is too far.
    told: usize,
}

impl Walk {
    pub(super) fn new(start: usize) -> Self {
        Walk {
            start,
            reached: HashMap::new(),
            open: VecDeque::from([start]),
        }
    }

    /// Goes on to the next node, and leaves out those that are not wanted.
    pub(super) fn next(
        &mut self,
        nodes: &[Node],
        is_wanted: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let user = self.open.pop_front()?;
        let before = self.reached.get(&user);
        let n_edges = before.map_or(0, |reached| reached.n_edges) + 1;
        let told_before = before.map_or(user, |reached| reached.told);
        for (edge, target) in nodes[user].edges.iter().map(|edge| edge.target).enumerate() {
            if target == self.start || self.reached.contains_key(&target) || !is_wanted(target) {
                continue;
            }
            let is_far = n_edges > MAX_CHAIN;
            let reached = Reached {
                user,
                edge,
                n_edges,
                told: if is_far { told_before } else { target },
            };
            self.reached.insert(target, reached);
            self.open.push_back(target);
        }
        Some(user)
    }

    /// Returns how one gets from the start to a node that has been reached.
    pub(super) fn way<'n>(&self, nodes: &'n [Node], node: usize) -> Vec<&'n Use> {
        let mut at = self.reached.get(&node).map_or(node, |reached| reached.told);
        let mut edges = Vec::new();
        while let Some(reached) = self.reached.get(&at) {
            edges.push(&nodes[reached.user].edges[reached.edge]);
            at = reached.user;
        }
        edges.iter().rev().flat_map(|edge| &edge.steps).collect()
    }
}

impl<'a> Graph<'a> {
    /// Adds everything that the only candidate, and the modules that it uses, have recorded.
    pub(super) fn add_inputs(&self, tree: &Tree<'a>, inputs: &mut Inputs) {
        let candidate = 0;
        self.add_inputs_from(candidate, inputs, |way, node, inputs| {
            for read in &node.root_reads {
                let path = terraform::root_read(tree, &self.nodes[candidate].path, read);
                let Some(path) = path else {
                    continue;
                };
                let pattern = read.pattern.as_deref();
                let touch = touch_read(tree, &path, pattern);
                if let Some(place) = place_read(path, pattern) {
                    inputs.add(place, way, std::slice::from_ref(&read.step), touch);
                }
            }
        });
        // Terragrunt runs a module in a copy of its directory: nothing there is relative to the stack.
        if let Some(&unit) = self.units.get(&candidate) {
            self.add_inputs_from(unit, inputs, |_, _, _| {});
        }
    }

    fn add_inputs_from(
        &self,
        start: usize,
        inputs: &mut Inputs,
        add_others: impl Fn(&[&Use], &Node, &mut Inputs),
    ) {
        let mut walk = Walk::new(start);
        while let Some(index) = walk.next(&self.nodes, |_| true) {
            let way = walk.way(&self.nodes, index);
            let node = &self.nodes[index];
            for met in node.recorded() {
                inputs.add(met.place.clone(), &way, &met.steps, met.touch.clone());
            }
            add_others(&way, node, inputs);
        }
    }
}
