//! Cycles: stacks that wait for each other.
//!
//! Every reference and every stack on a cycle is part of some reported cycle, and every cycle is a shortest
//! one through some reference or stack. So the reported cycles show everything that a user can change. (A
//! list of all cycles could be exponentially long.) Nesting needs no cycle of its own: the user always breaks
//! a cycle at a reference.

use std::collections::{HashMap, HashSet, VecDeque};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;

use super::{Graph, Origin, OriginKind};
use crate::project::stack::StackIndex;

/// The maximum number of reported cycles of one component; the rest are counted.
pub(super) const MAX_CYCLES: usize = 50;

/// The maximum number of edges that the search for short cycles examines in one component. Beyond that, it
/// takes any cycles, so that a component of thousands of stacks does not take quadratic time.
const MAX_EFFORT: usize = 100_000;

type Edge = (NodeIndex, NodeIndex);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    pub from: StackIndex,
    pub to: StackIndex,
    pub origins: Vec<Origin>,
}

/// Stacks of which each must run before the next, and the last before the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// The steps; the first starts at the smallest path.
    pub hops: Vec<Hop>,
}

/// The cycles of a strongly connected component: stacks that can all reach each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycles {
    /// In path order.
    pub stacks: Vec<StackIndex>,
    /// Cycles that cover its constraints.
    pub cycles: Vec<Cycle>,
    pub is_cut: bool,
}

impl Graph {
    /// Returns all cycles by component, the smallest paths first.
    pub fn cycles(&self) -> Vec<Cycles> {
        let mut found: Vec<Cycles> = kosaraju_scc(&self.graph)
            .into_iter()
            .filter(|component| component.len() > 1)
            .map(|component| self.cycles_of(&component))
            .collect();
        found.sort_by(|a, b| a.stacks.cmp(&b.stacks));
        found
    }

    fn cycles_of(&self, component: &[NodeIndex]) -> Cycles {
        let inside: HashSet<NodeIndex> = component.iter().copied().collect();
        let mut stacks: Vec<StackIndex> = component
            .iter()
            .filter_map(|&node| self.stack(node))
            .collect();
        stacks.sort_unstable();
        let references = self.references_in(component, &inside);
        // Short cycles first, since a long one may contain everything in a short one.
        let mut effort = 0;
        let mut searched: Vec<Vec<NodeIndex>> = Vec::new();
        for &(from, to) in &references {
            if effort > MAX_EFFORT {
                break;
            }
            searched.push(self.shortest_path(to, from, &inside, &mut effort));
        }
        let rest = references[searched.len()..]
            .iter()
            .map(|&edge| (edge, None));
        let mut candidates: Vec<_> = references
            .iter()
            .copied()
            .zip(searched.into_iter().map(Some))
            .collect();
        candidates.sort_by_cached_key(|(_, path)| self.n_stacks_of(path.as_deref()));
        let mut covered: HashSet<Edge> = HashSet::new();
        let mut cycles = Vec::new();
        let mut is_cut = false;
        for (edge, path) in candidates.into_iter().chain(rest) {
            if covered.contains(&edge) {
                continue;
            }
            if cycles.len() == MAX_CYCLES {
                is_cut = true;
                break;
            }
            let (from, to) = edge;
            let path = path.unwrap_or_else(|| self.shortest_path(to, from, &inside, &mut effort));
            covered.extend(
                path.iter()
                    .copied()
                    .zip(path.iter().copied().cycle().skip(1)),
            );
            cycles.push(self.cycle(&path));
        }
        // One path through a group covers its references, but names only one of its stacks.
        let mut named: HashSet<StackIndex> = HashSet::new();
        for cycle in &cycles {
            named.extend(cycle.hops.iter().map(|hop| hop.from));
        }
        for &stack in &stacks {
            if is_cut || named.contains(&stack) {
                continue;
            }
            if cycles.len() == MAX_CYCLES {
                is_cut = true;
                break;
            }
            let node = Self::node(stack);
            let next = self
                .graph
                .neighbors(node)
                .filter(|next| inside.contains(next))
                .min()
                .expect("a stack of a cycle has a successor in it");
            let cycle = self.cycle(&self.shortest_path(next, node, &inside, &mut effort));
            named.extend(cycle.hops.iter().map(|hop| hop.from));
            cycles.push(cycle);
        }
        cycles.sort_by_cached_key(|cycle| {
            let stacks = cycle.hops.iter().map(|hop| hop.from);
            (cycle.hops.len(), stacks.collect::<Vec<_>>())
        });
        Cycles {
            stacks,
            cycles,
            is_cut,
        }
    }

    /// Returns the edges of a component that references declare, each once.
    fn references_in(&self, component: &[NodeIndex], inside: &HashSet<NodeIndex>) -> Vec<Edge> {
        let is_reference = |origin: &Option<Origin>| {
            origin.is_some_and(|origin| origin.kind != OriginKind::Nesting)
        };
        let mut references: Vec<Edge> = component
            .iter()
            .flat_map(|&node| self.graph.edges(node))
            .filter(|edge| is_reference(edge.weight()) && inside.contains(&edge.target()))
            .map(|edge| (edge.source(), edge.target()))
            .collect();
        references.sort_unstable();
        references.dedup();
        references
    }

    fn n_stacks_of(&self, path: Option<&[NodeIndex]>) -> usize {
        let nodes = path.unwrap_or_default().iter();
        nodes.filter(|&&node| self.stack(node).is_some()).count()
    }

    /// Returns a path through as few stacks as possible, both ends included; of several, one through low
    /// stack paths. Adds the examined edges to `effort`.
    fn shortest_path(
        &self,
        start: NodeIndex,
        end: NodeIndex,
        inside: &HashSet<NodeIndex>,
        effort: &mut usize,
    ) -> Vec<NodeIndex> {
        let mut came_from: HashMap<NodeIndex, NodeIndex> = HashMap::from([(start, start)]);
        // Groups add nothing to the length, so they are passed before the next stacks.
        let mut queue = VecDeque::from([start]);
        let mut stacks: Vec<NodeIndex> = Vec::new();
        while !came_from.contains_key(&end) {
            let Some(node) = queue.pop_front() else {
                stacks.sort_unstable();
                queue.extend(stacks.drain(..));
                continue;
            };
            let neighbours = self.graph.neighbors(node);
            let mut next: Vec<NodeIndex> =
                neighbours.filter(|next| inside.contains(next)).collect();
            *effort += next.len();
            next.sort_unstable();
            for next in next {
                came_from.entry(next).or_insert_with(|| {
                    match self.stack(next) {
                        Some(_) => stacks.push(next),
                        None => queue.push_back(next),
                    }
                    node
                });
            }
        }
        let mut path = vec![end];
        while path[path.len() - 1] != start {
            path.push(came_from[&path[path.len() - 1]]);
        }
        path.reverse();
        path
    }

    /// Turns a closed path over nodes into hops between stacks.
    fn cycle(&self, path: &[NodeIndex]) -> Cycle {
        let smallest = path
            .iter()
            .enumerate()
            .filter_map(|(position, &node)| Some((self.stack(node)?, position)))
            .min()
            .map_or(0, |(_, position)| position);
        let mut closed: Vec<NodeIndex> = path[smallest..]
            .iter()
            .chain(&path[..smallest])
            .copied()
            .collect();
        closed.push(closed[0]);
        let mut hops: Vec<Hop> = Vec::new();
        let mut origins = Vec::new();
        let mut from = None;
        for pair in closed.windows(2) {
            from = self.stack(pair[0]).or(from);
            origins.extend(
                self.graph
                    .edges_connecting(pair[0], pair[1])
                    .filter_map(|edge| *edge.weight()),
            );
            if let (Some(from), Some(to)) = (from, self.stack(pair[1])) {
                Origin::sort(&mut origins);
                hops.push(Hop {
                    from,
                    to,
                    origins: std::mem::take(&mut origins),
                });
            }
        }
        Cycle { hops }
    }
}
