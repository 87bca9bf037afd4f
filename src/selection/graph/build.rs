//! Making the graph out of stacks and references.

use std::collections::{BTreeMap, HashMap};

use petgraph::graph::{DiGraph, NodeIndex};

use super::{Graph, Node, Origin, OriginKind};
use crate::path::ProjectPath;
use crate::project::stack::{StackIndex, Stacks};
use crate::selection::reference::{Reference, ReferenceKind, References, TagGroupIndex, Target};

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
