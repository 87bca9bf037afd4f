//! The graph of constraints: which stack runs before which, and who says so.
//!
//! Built over all stacks of the project, from nesting, `before` and `after`. A directory or tag that
//! names several stacks is a node of its own, with one edge to or from each of its stacks and one
//! for each reference, so m references to n stacks cost m + n edges and not m × n.
//!
//! A [`Graph`] may have cycles; [`Graph::cycles`] finds them, and [`Precedence`] is what of an acyclic one
//! order and scheduling need. What is selected is not known here.

mod cycle;
mod precedence;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;

use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

pub use cycle::{Cycle, Cycles, Hop};
pub use precedence::Precedence;

use crate::path::ProjectPath;
use crate::reference::{Reference, ReferenceKind, References, TagGroupIndex, Target};
use crate::source::Span;
use crate::stack::{StackIndex, Stacks};

/// What says that one stack runs before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OriginKind {
    /// The later stack lies below the earlier one.
    Nesting,
    /// The earlier stack names the later one in `before`.
    Before,
    /// The later stack names the earlier one in `after`.
    After,
}

impl fmt::Display for OriginKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OriginKind::Nesting => "nesting",
            OriginKind::Before => "before",
            OriginKind::After => "after",
        })
    }
}

/// Who says so, and where: for nesting, the `stack` block of the inner stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The kind.
    pub kind: OriginKind,
    /// The place.
    pub span: Span,
}

/// A node of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A stack.
    Stack(StackIndex),
    /// Several stacks that are referred to together; the text says which.
    Group(String),
    /// A part of a group: see `all_but_one` in this module.
    Part,
}

/// All constraints of a project. An edge leads from what runs earlier to what runs later; the edges
/// that tie a group to its stacks have no origin.
#[derive(Debug, Default)]
pub struct Graph {
    graph: DiGraph<Node, Option<Origin>>,
    n_stacks: usize,
}

/// A stack that runs earlier than another, with nothing but unselected stacks in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predecessor {
    /// The earlier stack.
    pub stack: StackIndex,
    /// Who says so, from the earlier stack to the later one; more than one where several say the
    /// same, or where unselected stacks lie in between.
    pub origins: Vec<Origin>,
    /// The unselected stacks in between, from the earlier stack to the later one.
    pub via: Vec<StackIndex>,
}

impl Graph {
    /// Builds the graph.
    pub fn new(stacks: &Stacks, references: &References) -> Self {
        let mut builder = Builder::new(stacks, references);
        builder.nesting();
        builder.single_stacks();
        builder.directories(OriginKind::After);
        builder.directories(OriginKind::Before);
        builder.tags();
        Graph {
            graph: builder.graph,
            n_stacks: stacks.len(),
        }
    }

    /// Returns the node of a stack.
    fn node(stack: StackIndex) -> NodeIndex<u32> {
        NodeIndex::new(stack.get())
    }

    /// Returns the stack of a node, or `None` for a group.
    fn stack(&self, node: NodeIndex<u32>) -> Option<StackIndex> {
        (node.index() < self.n_stacks).then(|| StackIndex::new(node.index()))
    }

    /// Returns the stacks that must have run before `stack` may, among those that `is_selected`
    /// says, in path order. Constraints through unselected stacks count.
    pub fn predecessors(
        &self,
        stack: StackIndex,
        is_selected: impl Fn(StackIndex) -> bool,
    ) -> Vec<Predecessor> {
        let is_end = |node| self.stack(node).is_some_and(&is_selected);
        let mut found = self.earlier(Self::node(stack), is_end);
        found.remove(&Self::node(stack));
        let stacks = found
            .into_iter()
            .filter_map(|(node, way)| Some((self.stack(node)?, way)));
        stacks
            .map(|(stack, Way { origins, via })| Predecessor {
                stack,
                origins,
                via,
            })
            .collect()
    }

    /// Returns the nodes and arrows to draw for the selected stacks. A group that would take
    /// thousands of arrows between single stacks is drawn as a node of its own.
    pub fn arrows(&self, is_selected: impl Fn(StackIndex) -> bool) -> Vec<Arrow> {
        let degree = |node, direction| self.graph.edges_directed(node, direction).count();
        let n_parts = self
            .graph
            .node_weights()
            .filter(|node| **node == Node::Part)
            .count();
        let is_end = |node: NodeIndex| match &self.graph[node] {
            Node::Stack(stack) => is_selected(*stack),
            Node::Group(_) => {
                let pairs = degree(node, Direction::Incoming) * degree(node, Direction::Outgoing);
                pairs > MAX_DRAWN_PAIRS
            }
            Node::Part => n_parts > MAX_DRAWN_PAIRS,
        };
        let knots = self.knots();
        let mut arrows = Vec::new();
        for to in self.graph.node_indices().filter(|&node| is_end(node)) {
            for (from, way) in self.earlier(to, is_end) {
                arrows.push(Arrow {
                    from: self.end(from),
                    to: self.end(to),
                    origins: way.origins,
                    via: way.via,
                    in_cycle: knots[from.index()] == knots[to.index()],
                });
            }
        }
        arrows
    }

    fn end(&self, node: NodeIndex) -> End {
        match &self.graph[node] {
            Node::Stack(stack) => End::Stack(*stack),
            Node::Group(name) => End::Group(node.index(), name.clone()),
            Node::Part => End::Group(node.index(), String::new()),
        }
    }

    /// Returns, for each node, a number that it shares with the nodes that it is in a cycle with.
    fn knots(&self) -> Vec<usize> {
        let mut knots = vec![0; self.graph.node_count()];
        for component in kosaraju_scc(&self.graph) {
            for &node in &component {
                knots[node.index()] = component[0].index();
            }
        }
        knots
    }

    /// Goes against the edges from a node, through everything that is no end, up to the next ends.
    fn earlier(
        &self,
        node: NodeIndex,
        is_end: impl Fn(NodeIndex) -> bool,
    ) -> BTreeMap<NodeIndex, Way> {
        let mut found: BTreeMap<NodeIndex, Way> = BTreeMap::new();
        let mut visited: HashSet<NodeIndex> = HashSet::new();
        let mut queue = VecDeque::from([(node, Way::default())]);
        while let Some((node, way)) = queue.pop_front() {
            for edge in self.graph.edges_directed(node, Direction::Incoming) {
                let source = edge.source();
                let mut way = way.clone();
                way.origins.splice(0..0, *edge.weight());
                if is_end(source) {
                    let found = found.entry(source).or_insert_with(|| Way {
                        via: way.via,
                        ..Way::default()
                    });
                    for origin in way.origins {
                        if !found.origins.contains(&origin) {
                            found.origins.push(origin);
                        }
                    }
                } else if visited.insert(source) {
                    way.via.splice(0..0, self.stack(source));
                    queue.push_back((source, way));
                }
            }
        }
        for way in found.values_mut() {
            // Edges come in the reverse order of their making.
            if way.via.is_empty() {
                way.origins
                    .sort_by_key(|origin| (origin.kind, origin.span.start));
            }
        }
        found
    }
}

/// Arrows between single stacks that a group may stand for when drawn.
const MAX_DRAWN_PAIRS: usize = 1_000;

/// What lies between a node and an earlier one, from the earlier one on.
#[derive(Debug, Clone, Default)]
struct Way {
    origins: Vec<Origin>,
    via: Vec<StackIndex>,
}

/// An arrow of the drawn graph.
#[derive(Debug, Clone)]
pub struct Arrow {
    /// What runs earlier.
    pub from: End,
    /// What runs later.
    pub to: End,
    /// Who says so; none where a group is tied to its stacks.
    pub origins: Vec<Origin>,
    /// The unselected stacks in between.
    pub via: Vec<StackIndex>,
    /// Whether the arrow is part of a cycle.
    pub in_cycle: bool,
}

/// What an arrow connects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A stack.
    Stack(StackIndex),
    /// A group, by a number of its own and its name; parts of a group have no name.
    Group(usize, String),
}

/// Names a group; what comes after all of a directory is not what comes before any of it.
fn group_name(kind: OriginKind, named: &str) -> String {
    match kind {
        OriginKind::Before => format!("any of {named}"),
        OriginKind::After | OriginKind::Nesting => format!("all of {named}"),
    }
}

struct Builder<'a> {
    stacks: &'a Stacks,
    references: &'a References,
    graph: DiGraph<Node, Option<Origin>>,
}

impl<'a> Builder<'a> {
    fn new(stacks: &'a Stacks, references: &'a References) -> Self {
        let n_edges = stacks.len() + references.list.len();
        let mut graph = DiGraph::with_capacity(stacks.len(), n_edges);
        for (index, _) in stacks.iter() {
            graph.add_node(Node::Stack(index));
        }
        Builder {
            stacks,
            references,
            graph,
        }
    }

    fn nesting(&mut self) {
        for (index, stack) in self.stacks.iter() {
            if let Some(parent) = self.stacks.nearest_above(&stack.path) {
                let origin = Origin {
                    kind: OriginKind::Nesting,
                    span: stack.span,
                };
                self.graph
                    .add_edge(Graph::node(parent), Graph::node(index), Some(origin));
            }
        }
    }

    /// Returns the references of one kind, with the origin that they give an edge.
    fn references(
        &self,
        kind: OriginKind,
    ) -> impl Iterator<Item = (&'a Reference, Origin)> + use<'a> {
        self.references.list.iter().filter_map(move |reference| {
            let own = match reference.kind {
                ReferenceKind::After => OriginKind::After,
                ReferenceKind::Before => OriginKind::Before,
                ReferenceKind::Wants | ReferenceKind::WantedBy => return None,
            };
            (own == kind).then_some((
                reference,
                Origin {
                    kind,
                    span: reference.span,
                },
            ))
        })
    }

    /// Adds "`named` before `declaring`", or the reverse for `before`.
    fn constrain(
        &mut self,
        named: NodeIndex,
        declaring: NodeIndex,
        kind: OriginKind,
        origin: Option<Origin>,
    ) {
        match kind {
            OriginKind::Before => self.graph.add_edge(declaring, named, origin),
            OriginKind::After | OriginKind::Nesting => {
                self.graph.add_edge(named, declaring, origin)
            }
        };
    }

    fn single_stacks(&mut self) {
        for kind in [OriginKind::After, OriginKind::Before] {
            for (reference, origin) in self.references(kind) {
                if let Target::Stack(named) = reference.target {
                    self.constrain(
                        Graph::node(named),
                        Graph::node(reference.from),
                        kind,
                        Some(origin),
                    );
                }
            }
        }
    }

    /// Adds a node for each directory that is referred to. Each stack is tied to the nearest of them
    /// and each of them to the next one above, so that nested directories stay linear too.
    fn directories(&mut self, kind: OriginKind) {
        let mut nodes: BTreeMap<&ProjectPath, NodeIndex> = BTreeMap::new();
        for (reference, origin) in self.references(kind) {
            if let Target::Directory(directory) = &reference.target {
                let graph = &mut self.graph;
                let node = *nodes.entry(directory).or_insert_with(|| {
                    graph.add_node(Node::Group(group_name(kind, directory.as_str())))
                });
                self.constrain(node, Graph::node(reference.from), kind, Some(origin));
            }
        }
        if nodes.is_empty() {
            return;
        }
        let by_text: HashMap<&str, NodeIndex> = nodes
            .iter()
            .map(|(path, &node)| (path.as_str(), node))
            .collect();
        let nearest = |path: &ProjectPath| {
            path.ancestors()
                .find_map(|ancestor| by_text.get(ancestor).copied())
        };
        for (directory, &node) in &nodes {
            if let Some(above) = nearest(directory) {
                self.constrain(node, above, kind, None);
            }
        }
        for (index, stack) in self.stacks.iter() {
            let own = by_text.get(stack.path.as_str()).copied();
            if let Some(node) = own.or_else(|| nearest(&stack.path)) {
                self.constrain(Graph::node(index), node, kind, None);
            }
        }
    }

    fn tags(&mut self) {
        for kind in [OriginKind::After, OriginKind::Before] {
            let references = self.references;
            let mut groups: HashMap<TagGroupIndex, TagNodes> = HashMap::new();
            for (reference, origin) in self.references(kind) {
                let Target::Tag(group) = reference.target else {
                    continue;
                };
                let members = &references.tag_group(group).members;
                let nodes = groups.entry(group).or_default();
                let declaring = Graph::node(reference.from);
                let Ok(position) = members.binary_search(&reference.from) else {
                    let node = *nodes.all.get_or_insert_with(|| {
                        let filter = &references.tag_group(group).filter;
                        let node = self
                            .graph
                            .add_node(Node::Group(group_name(kind, &format!("tag:{filter}"))));
                        for &member in members {
                            self.constrain(Graph::node(member), node, kind, None);
                        }
                        node
                    });
                    self.constrain(node, declaring, kind, Some(origin));
                    continue;
                };
                if nodes.parts.is_none() {
                    nodes.parts = Some(self.all_but_one(members, kind));
                }
                let Some((prefixes, suffixes)) = &nodes.parts else {
                    continue;
                };
                let before = position.checked_sub(1).map(|position| prefixes[position]);
                let after = suffixes.get(position + 1).copied();
                for part in before.into_iter().chain(after) {
                    self.constrain(part, declaring, kind, Some(origin));
                }
            }
        }
    }

    /// Adds nodes for "the first n members" and "all members from the n-th on".
    ///
    /// A stack that carries the tag it refers to means all others. Two such nodes together leave
    /// exactly one member out, so this too takes a linear number of edges.
    fn all_but_one(
        &mut self,
        members: &[StackIndex],
        kind: OriginKind,
    ) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
        let chain = |builder: &mut Self, members: &mut dyn Iterator<Item = &StackIndex>| {
            let mut nodes: Vec<NodeIndex> = Vec::new();
            for &member in members {
                let node = builder.graph.add_node(Node::Part);
                if let Some(&last) = nodes.last() {
                    builder.constrain(last, node, kind, None);
                }
                builder.constrain(Graph::node(member), node, kind, None);
                nodes.push(node);
            }
            nodes
        };
        let prefixes = chain(self, &mut members.iter());
        let mut suffixes = chain(self, &mut members.iter().rev());
        suffixes.reverse();
        (prefixes, suffixes)
    }
}

/// The nodes of one tag group.
#[derive(Default)]
struct TagNodes {
    /// For stacks outside the group.
    all: Option<NodeIndex>,
    /// For members: prefixes and suffixes.
    parts: Option<(Vec<NodeIndex>, Vec<NodeIndex>)>,
}
