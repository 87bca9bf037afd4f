//! The graph of constraints: which stack runs before which, and why.
//!
//! It covers all stacks of the project, and comes from nesting, `before`, `after`,
//! `replace_triggered_by`, and data that a stack uses of another one.
//! A directory or tag that names several stacks is a node of its own, with one edge to or from each of its
//! stacks and one for each reference, so m references to n stacks cost m + n edges, not m × n.
//!
//! A [`Graph`] may have cycles, which [`Graph::cycles`] finds. A [`Precedence`] is acyclic and has what
//! ordering and scheduling need. The graph does not know which stacks are selected.

mod build;
mod cycle;
mod digest;
mod explain;
mod neighbours;
mod precedence;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::hash::{Hash, Hasher};

pub use cycle::{Cycle, Cycles, Hop};
pub use digest::digest;
pub use neighbours::{NeighbourStep, SearchDirection};
use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
pub use precedence::Precedence;

use crate::project::stack::{DataKind, StackIndex};
use crate::source::Span;

/// The kind of declaration by which one stack runs before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OriginKind {
    /// The later stack lies below the earlier one.
    Nesting,
    /// The earlier stack names the later one in `before`.
    Before,
    /// The later stack names the earlier one in `after`.
    After,
    /// The later stack names the earlier one in `replace_triggered_by`.
    ReplaceTriggeredBy,
    /// The later stack uses data of the earlier one.
    Data(DataKind),
}

impl fmt::Display for OriginKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OriginKind::Nesting => "nesting",
            OriginKind::Before => "before",
            OriginKind::After => "after",
            OriginKind::ReplaceTriggeredBy => "replace_triggered_by",
            OriginKind::Data(kind) => return kind.fmt(f),
        })
    }
}

/// The place of a constraint; for nesting, the `stack` block of the inner stack.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    pub kind: OriginKind,
    pub span: Span,
    /// Its position among those of its kind: by stack, and as written there.
    position: usize,
}

impl Origin {
    /// Sorts the origins of a constraint. The instances of a directory share each of theirs.
    fn sort(origins: &mut Vec<Origin>) {
        origins.sort_unstable_by_key(|it| (it.kind, it.position));
        let mut seen = HashSet::new();
        origins.retain(|it| seen.insert(*it));
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.span) == (other.kind, other.span)
    }
}

impl Eq for Origin {}

impl Hash for Origin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind, self.span).hash(state);
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    Stack(StackIndex),
    /// Several stacks that a reference names together, with a description.
    Group(String),
    /// A part of a group: see `Builder::all_but_one`.
    Part,
}

/// All constraints of a project. An edge leads from the stack that runs earlier to the one that runs later.
/// Edges between a group and its stacks have no origin.
#[derive(Debug, Default)]
pub struct Graph {
    graph: DiGraph<Node, Option<Origin>>,
    n_stacks: usize,
}

/// A stack that runs before or after another one, with only unselected stacks in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelatedStack {
    pub stack: StackIndex,
    /// The origins of the constraints, from the earlier stack to the later one; several if several references
    /// agree, or if unselected stacks lie in between.
    pub origins: Vec<Origin>,
    /// The unselected stacks in between, from the earlier stack to the later one, at most sixteen.
    pub via: Vec<StackIndex>,
}

impl Graph {
    fn node(stack: StackIndex) -> NodeIndex<u32> {
        NodeIndex::new(stack.get())
    }

    /// Returns the stack of a node, or `None` for a group.
    fn stack(&self, node: NodeIndex<u32>) -> Option<StackIndex> {
        (node.index() < self.n_stacks).then(|| StackIndex::new(node.index()))
    }

    /// Returns the selected stacks that must run before `stack`, or that may run only after it, in path
    /// order. Constraints through unselected stacks count.
    ///
    /// To search from many stacks, use [`Self::searches`].
    pub fn relatives(
        &self,
        stack: StackIndex,
        towards: SearchDirection,
        is_selected: impl Fn(StackIndex) -> bool,
    ) -> Vec<RelatedStack> {
        let search = Searches {
            graph: self,
            towards,
            is_end: |node| self.stack(node).is_some_and(&is_selected),
            // For one search, following dead ends costs less than finding them.
            leads: vec![true; self.graph.node_count()],
        };
        search.from(stack)
    }

    /// Prepares searches for selected stacks in one direction from many stacks.
    pub fn searches(
        &self,
        towards: SearchDirection,
        is_selected: impl Fn(StackIndex) -> bool,
    ) -> Searches<'_, impl Fn(NodeIndex) -> bool> {
        self.searches_to(towards, move |node| {
            self.stack(node).is_some_and(&is_selected)
        })
    }

    fn searches_to<F: Fn(NodeIndex) -> bool>(
        &self,
        towards: SearchDirection,
        is_end: F,
    ) -> Searches<'_, F> {
        let back = match towards {
            SearchDirection::Dependencies => SearchDirection::Dependents,
            SearchDirection::Dependents => SearchDirection::Dependencies,
        };
        let mut leads = vec![false; self.graph.node_count()];
        let ends = self.graph.node_indices().filter(|node| is_end(*node));
        let mut open: Vec<NodeIndex> = ends.collect();
        while let Some(node) = open.pop() {
            for (next, _) in self.edges_towards(node, back) {
                if !std::mem::replace(&mut leads[next.index()], true) {
                    open.push(next);
                }
            }
        }
        Searches {
            graph: self,
            towards,
            is_end,
            leads,
        }
    }

    /// Returns the nodes and arrows to draw for the selected stacks. A group that would take thousands of
    /// arrows between single stacks is drawn as a node of its own.
    pub fn arrows(&self, is_selected: impl Fn(StackIndex) -> bool) -> Vec<Arrow> {
        let degree = |node, direction| self.graph.edges_directed(node, direction).count();
        let n_parts = self
            .graph
            .node_weights()
            .filter(|node| **node == Node::Part)
            .count();
        let ends: Vec<bool> = self
            .graph
            .node_indices()
            .map(|node| match &self.graph[node] {
                Node::Stack(stack) => is_selected(*stack),
                Node::Group(_) => {
                    let pairs =
                        degree(node, Direction::Incoming) * degree(node, Direction::Outgoing);
                    pairs > MAX_DRAWN_PAIRS
                }
                Node::Part => n_parts > MAX_DRAWN_PAIRS,
            })
            .collect();
        let searches = self.searches_to(SearchDirection::Dependencies, |node: NodeIndex| {
            ends[node.index()]
        });
        let components = self.components();
        let mut arrows = Vec::new();
        for to in self.graph.node_indices().filter(|node| ends[node.index()]) {
            for (from, route) in searches.ends(to) {
                arrows.push(Arrow {
                    from: self.end(from),
                    to: self.end(to),
                    origins: route.origins,
                    via: route.via,
                    in_cycle: components[from.index()] == components[to.index()],
                });
            }
        }
        arrows
    }

    fn end(&self, node: NodeIndex) -> ArrowEnd {
        match &self.graph[node] {
            Node::Stack(stack) => ArrowEnd::Stack(*stack),
            Node::Group(name) => ArrowEnd::Group(node.index(), name.clone()),
            Node::Part => ArrowEnd::Group(node.index(), String::new()),
        }
    }

    /// Returns the strongly connected component of each node, as a number.
    fn components(&self) -> Vec<usize> {
        let mut components = vec![0; self.graph.node_count()];
        for component in kosaraju_scc(&self.graph) {
            for &node in &component {
                components[node.index()] = component[0].index();
            }
        }
        components
    }

    /// Follows the path from `node` back to the start of a search. `origin` belongs to its last edge.
    fn route(
        &self,
        origin: Option<Origin>,
        mut node: NodeIndex,
        start: NodeIndex,
        next: &HashMap<NodeIndex, (NodeIndex, Vec<Origin>)>,
    ) -> Route {
        let mut route = Route {
            origins: Vec::from_iter(origin),
            via: Vec::new(),
        };
        while node != start && route.via.len() < MAX_VIA {
            let (onwards, origins) = &next[&node];
            route.via.extend(self.stack(node));
            route.origins.extend(origins);
            node = *onwards;
        }
        route
    }

    /// Returns the number of nodes: stacks, groups and parts of groups.
    pub fn n_nodes(&self) -> usize {
        self.graph.node_count()
    }

    /// Returns the name of a group; `None` for a stack or a part of a group.
    pub fn group_name(&self, node: u32) -> Option<&str> {
        match self.graph.node_weight(NodeIndex::from(node))? {
            Node::Group(name) => Some(name),
            Node::Stack(_) | Node::Part => None,
        }
    }

    /// Returns all edges, in the same order for the same stacks and references.
    pub fn edges(&self) -> impl Iterator<Item = GraphEdge> {
        let node = |index: NodeIndex| u32::try_from(index.index()).expect("it counts in 32 bits");
        self.graph.edge_references().map(move |edge| {
            let declaring = |kind: OriginKind| match kind {
                OriginKind::Before => edge.source(),
                OriginKind::After
                | OriginKind::ReplaceTriggeredBy
                | OriginKind::Data(_)
                | OriginKind::Nesting => edge.target(),
            };
            GraphEdge {
                earlier: node(edge.source()),
                later: node(edge.target()),
                declared: edge.weight().and_then(|origin| {
                    let stack = self.stack(declaring(origin.kind))?;
                    Some((origin.kind, stack))
                }),
            }
        })
    }

    /// Returns the wave of each stack of the project, meaningful only for selected stacks.
    pub fn waves(&self, is_selected: impl Fn(StackIndex) -> bool) -> Vec<Wave> {
        let components = self.components();
        let mut sizes = vec![0_u32; components.len()];
        for &component in &components {
            sizes[component] += 1;
        }
        let is_step = |node: usize| node < self.n_stacks && is_selected(StackIndex::new(node));
        // A cycle without selected stacks orders its neighbours like any other stack.
        let mut is_unknown = vec![false; components.len()];
        for (node, &component) in components.iter().enumerate() {
            is_unknown[component] |= sizes[component] > 1 && is_step(node);
        }
        let precedence = Precedence::of(self, &components);
        let mut pending = precedence.pending();
        let mut waves = vec![0_u32; components.len()];
        let mut ready: Vec<usize> = (0..components.len())
            .filter(|&node| pending[node] == 0)
            .collect();
        while let Some(node) = ready.pop() {
            let next_wave = waves[node] + u32::from(is_step(node));
            for next in precedence.successors(node) {
                let next = next.node as usize;
                waves[next] = waves[next].max(next_wave);
                is_unknown[next] |= is_unknown[node];
                pending[next] -= 1;
                if pending[next] == 0 {
                    ready.push(next);
                }
            }
        }
        let wave = |(stack, &component): (usize, &usize)| {
            if sizes[component] > 1 {
                Wave::InCycle
            } else if is_unknown[stack] {
                Wave::AfterCycle
            } else {
                Wave::Number(waves[stack])
            }
        };
        components
            .iter()
            .enumerate()
            .take(self.n_stacks)
            .map(wave)
            .collect()
    }
}

/// Searches for selected stacks in one direction.
pub struct Searches<'g, F> {
    graph: &'g Graph,
    towards: SearchDirection,
    is_end: F,
    /// Whether each node leads to an end; others are not followed.
    leads: Vec<bool>,
}

impl<F: Fn(NodeIndex) -> bool> Searches<'_, F> {
    /// Returns the same as [`Graph::relatives`].
    pub fn from(&self, stack: StackIndex) -> Vec<RelatedStack> {
        let start = Graph::node(stack);
        let mut found = self.ends(start);
        found.remove(&start);
        let stacks = found
            .into_iter()
            .filter_map(|(node, route)| Some((self.graph.stack(node)?, route)));
        stacks
            .map(
                |(
                    stack,
                    Route {
                        mut origins,
                        mut via,
                    },
                )| {
                    if self.towards == SearchDirection::Dependents && !via.is_empty() {
                        origins.reverse();
                        via.reverse();
                    }
                    RelatedStack {
                        stack,
                        origins,
                        via,
                    }
                },
            )
            .collect()
    }

    /// Follows the edges from a node to the nearest ends.
    fn ends(&self, start: NodeIndex) -> BTreeMap<NodeIndex, Route> {
        let graph = self.graph;
        let mut found: BTreeMap<NodeIndex, Route> = BTreeMap::new();
        // The next node on the path back to the start, with the origin of the edge.
        let mut next: HashMap<NodeIndex, (NodeIndex, Vec<Origin>)> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for (source, origin) in graph.edges_towards(node, self.towards) {
                if !(self.is_end)(source) {
                    if source != start && self.leads[source.index()] {
                        let (onwards, origins) = next.entry(source).or_insert_with(|| {
                            queue.push_back(source);
                            (node, Vec::new())
                        });
                        if *onwards == node {
                            origins.extend(origin);
                        }
                    }
                } else if let Some(known) = found.get_mut(&source) {
                    // Another path adds origins only if no stack lies in between.
                    if known.via.is_empty() {
                        let route = graph.route(origin, node, start, &next);
                        if route.via.is_empty() {
                            known.origins.extend(route.origins);
                        }
                    }
                } else {
                    found.insert(source, graph.route(origin, node, start, &next));
                }
            }
        }
        for route in found.values_mut().filter(|route| route.via.is_empty()) {
            Origin::sort(&mut route.origins);
        }
        found
    }
}

/// The maximum number of named stacks in between. A chain of thousands must not be repeated for each pair of
/// ends.
const MAX_VIA: usize = 16;

/// The maximum number of arrows between single stacks that replace a group in a drawing.
const MAX_DRAWN_PAIRS: usize = 1_000;

/// The path from a node to the start of a search.
#[derive(Debug, Clone, Default)]
struct Route {
    origins: Vec<Origin>,
    via: Vec<StackIndex>,
}

#[derive(Debug, Clone)]
pub struct Arrow {
    pub from: ArrowEnd,
    pub to: ArrowEnd,
    /// The origins of the constraint; empty between a group and its stacks.
    pub origins: Vec<Origin>,
    pub via: Vec<StackIndex>,
    pub in_cycle: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArrowEnd {
    Stack(StackIndex),
    /// A group by number and name; parts of a group have no name.
    Group(usize, String),
}

/// An edge between two nodes. The first nodes are the stacks, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphEdge {
    pub earlier: u32,
    pub later: u32,
    /// The kind of constraint, and the stack that declares it or is nested; `None` for an edge between a
    /// group and its member or part.
    pub declared: Option<(OriginKind, StackIndex)>,
}

/// When a stack can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wave {
    /// After this many selected stacks on the longest path to it.
    Number(u32),
    /// After stacks of a cycle in which a stack is selected.
    AfterCycle,
    /// Never: it waits for itself.
    InCycle,
}
