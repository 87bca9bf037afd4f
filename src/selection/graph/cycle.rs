//! Cycles: stacks that wait for each other.
//!
//! Every reference and every stack that lies on a cycle is part of some reported cycle, and every
//! cycle is the shortest one through some edge. So the reported cycles show everything involved. (A
//! list of all cycles could be exponentially long.)

use std::collections::{HashMap, HashSet, VecDeque};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;

use super::{Graph, Origin};
use crate::project::stack::StackIndex;

/// How many cycles of one knot of stacks are reported; the rest are counted.
pub(super) const MAX_CYCLES: usize = 50;

/// One step of a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// The earlier stack.
    pub from: StackIndex,
    /// The later stack.
    pub to: StackIndex,
    /// The origin of the constraint.
    pub origins: Vec<Origin>,
}

/// Stacks of which each must run before the next, and the last before the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// The steps; the first starts at the smallest path.
    pub hops: Vec<Hop>,
}

/// The cycles of a knot: stacks that can all reach each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycles {
    /// The stacks, in path order.
    pub stacks: Vec<StackIndex>,
    /// Cycles that cover their constraints.
    pub cycles: Vec<Cycle>,
    /// Whether there are more.
    pub is_cut: bool,
}

impl Graph {
    /// Returns all cycles, by knot, the smallest paths first.
    pub fn cycles(&self) -> Vec<Cycles> {
        let mut knots: Vec<Cycles> = kosaraju_scc(&self.graph)
            .into_iter()
            .filter(|component| component.len() > 1)
            .map(|component| self.cycles_of(&component))
            .collect();
        knots.sort_by(|a, b| a.stacks.cmp(&b.stacks));
        knots
    }

    fn cycles_of(&self, component: &[NodeIndex]) -> Cycles {
        let inside: HashSet<NodeIndex> = component.iter().copied().collect();
        let mut stacks: Vec<StackIndex> = component
            .iter()
            .filter_map(|&node| self.stack(node))
            .collect();
        stacks.sort_unstable();
        let mut nodes: Vec<NodeIndex> = component.to_vec();
        nodes.sort_unstable();
        let mut covered: HashSet<(NodeIndex, NodeIndex)> = HashSet::new();
        let mut cycles = Vec::new();
        let mut is_cut = false;
        'search: for &node in &nodes {
            let mut edges: Vec<_> = self
                .graph
                .edges(node)
                .filter(|edge| edge.weight().is_some())
                .collect();
            edges.sort_by_key(EdgeRef::target);
            for edge in edges {
                let (from, to) = (edge.source(), edge.target());
                if !inside.contains(&to) || covered.contains(&(from, to)) {
                    continue;
                }
                if cycles.len() == MAX_CYCLES {
                    is_cut = true;
                    break 'search;
                }
                let path = self.shortest_path(to, from, &inside);
                covered.extend(
                    path.iter()
                        .copied()
                        .zip(path.iter().copied().cycle().skip(1)),
                );
                cycles.push(self.cycle(&path));
            }
        }
        // One path through a group covers what refers to it, but names only one of its stacks.
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
                .filter(|next| inside.contains(next));
            let next = next.min().expect("what is in a knot leads on in it");
            let cycle = self.cycle(&self.shortest_path(next, node, &inside));
            named.extend(cycle.hops.iter().map(|hop| hop.from));
            cycles.push(cycle);
        }
        cycles
            .sort_by_cached_key(|cycle| cycle.hops.iter().map(|hop| hop.from).collect::<Vec<_>>());
        Cycles {
            stacks,
            cycles,
            is_cut,
        }
    }

    /// Returns the nodes of a shortest path, both ends included.
    fn shortest_path(
        &self,
        start: NodeIndex,
        end: NodeIndex,
        inside: &HashSet<NodeIndex>,
    ) -> Vec<NodeIndex> {
        let mut came_from: HashMap<NodeIndex, NodeIndex> = HashMap::from([(start, start)]);
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            if node == end {
                break;
            }
            let mut next: Vec<NodeIndex> = self
                .graph
                .neighbors(node)
                .filter(|next| inside.contains(next))
                .collect();
            next.sort_unstable();
            for next in next {
                came_from.entry(next).or_insert_with(|| {
                    queue.push_back(next);
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
                origins.sort_by_key(|origin| (origin.kind, origin.span.file, origin.span.start));
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
