//! The neighbours of stacks: their dependencies and dependents, to a given depth.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU32;

use petgraph::Direction;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;

use super::{Graph, Origin};
use crate::project::stack::StackIndex;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SearchDirection {
    /// Towards the stacks that run before it.
    Dependencies,
    /// Towards the stacks that run after it.
    Dependents,
}

/// The step by which a search reaches a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighbourStep {
    /// The previous stack: a start of the search, or one reached earlier.
    pub from: StackIndex,
    pub origin: Origin,
    /// The number of steps from the start.
    pub distance: u32,
}

impl Graph {
    /// Returns the stacks that can be reached from `start` in at least one and at most `depth` steps,
    /// or any number without a `depth`, each with the last step of a shortest path. Stacks of `start`
    /// are included if they can be reached from others.
    ///
    /// A step is a constraint between two stacks, whether it names a stack or a group that contains
    /// it. The search takes time linear in the size of the graph.
    pub fn neighbours(
        &self,
        start: impl IntoIterator<Item = StackIndex>,
        towards: SearchDirection,
        depth: Option<NonZeroU32>,
    ) -> BTreeMap<StackIndex, NeighbourStep> {
        let mut reached: Vec<Option<NeighbourStep>> = vec![None; self.n_stacks];
        let mut level: Vec<StackIndex> = start.into_iter().collect();
        // The visited stacks and groups. A group leads to the same stacks from everywhere.
        let mut opened = vec![false; self.graph.node_count()];
        for &stack in &level {
            opened[stack.get()] = true;
        }
        let mut distance = 0;
        while !level.is_empty() && depth.is_none_or(|depth| distance < depth.get()) {
            distance += 1;
            let mut next = Vec::new();
            for from in level {
                let mut open = vec![(Self::node(from), None)];
                while let Some((node, said)) = open.pop() {
                    for (node, origin) in self.edges_towards(node, towards) {
                        let said = said.or(origin);
                        let is_new = !std::mem::replace(&mut opened[node.index()], true);
                        let Some(stack) = self.stack(node) else {
                            if is_new {
                                open.push((node, said));
                            }
                            continue;
                        };
                        let origin = said.expect("a way between two stacks has one reference");
                        reached[stack.get()].get_or_insert(NeighbourStep {
                            from,
                            origin,
                            distance,
                        });
                        if is_new {
                            next.push(stack);
                        }
                    }
                }
            }
            next.sort_unstable();
            level = next;
        }
        let reached = reached.into_iter().enumerate();
        reached
            .filter_map(|(stack, step)| Some((StackIndex::new(stack), step?)))
            .collect()
    }

    /// Returns the stacks one step away, by path, each with the origins of all constraints between the two.
    pub fn constraints(
        &self,
        stack: StackIndex,
        towards: SearchDirection,
    ) -> BTreeMap<StackIndex, Vec<Origin>> {
        let mut found: BTreeMap<StackIndex, Vec<Origin>> = BTreeMap::new();
        let start = (Self::node(stack), None);
        let mut seen = HashSet::from([start]);
        let mut open = vec![start];
        while let Some((node, said)) = open.pop() {
            for (next, origin) in self.edges_towards(node, towards) {
                let said = said.or(origin);
                if let Some(stack) = self.stack(next) {
                    found.entry(stack).or_default().extend(said);
                } else if seen.insert((next, said)) {
                    open.push((next, said));
                }
            }
        }
        for origins in found.values_mut() {
            Origin::sort(origins);
        }
        found
    }

    /// Returns the adjacent nodes, each with the origin of the edge.
    pub(super) fn edges_towards(
        &self,
        node: NodeIndex,
        towards: SearchDirection,
    ) -> impl Iterator<Item = (NodeIndex, Option<Origin>)> {
        let direction = match towards {
            SearchDirection::Dependencies => Direction::Incoming,
            SearchDirection::Dependents => Direction::Outgoing,
        };
        let edges = self.graph.edges_directed(node, direction);
        edges.map(move |edge| {
            let next = match towards {
                SearchDirection::Dependencies => edge.source(),
                SearchDirection::Dependents => edge.target(),
            };
            (next, *edge.weight())
        })
    }
}
