//! Builds the graph from stacks and references.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use petgraph::graph::{DiGraph, NodeIndex};

use super::{Graph, Node, Origin, OriginKind};
use crate::path::{KeyFilter, ProjectPath};
use crate::project::stack::{StackIndex, Stacks};
use crate::selection::reference::{Reference, ReferenceKind, ReferenceTarget, References};

impl Graph {
    pub fn new(stacks: &Stacks, references: &References) -> Self {
        let mut builder = Builder::new(stacks, references);
        builder.nesting();
        builder.single_stacks();
        builder.directories(OriginKind::After);
        builder.directories(OriginKind::Before);
        builder.groups();
        Graph {
            graph: builder.graph,
            n_stacks: stacks.len(),
        }
    }

    /// Returns the graph of the data that stacks use of each other, as far as it was looked for.
    pub fn of_data(stacks: &Stacks) -> Self {
        let references = References::of_data(stacks);
        let mut builder = Builder::new(stacks, &references);
        builder.single_stacks();
        Graph {
            graph: builder.graph,
            n_stacks: stacks.len(),
        }
    }
}

/// Returns the name of a group. A directory has two: one for what runs before it, one for what runs after it.
fn group_name(kind: OriginKind, named: &str) -> String {
    match kind {
        OriginKind::Before => format!("any of {named}"),
        OriginKind::After
        | OriginKind::ReplaceTriggeredBy
        | OriginKind::Data(_)
        | OriginKind::Nesting => {
            format!("all of {named}")
        }
    }
}

struct Builder<'a> {
    stacks: &'a Stacks,
    references: &'a References,
    graph: DiGraph<Node, Option<Origin>>,
    /// The nodes for all instances of a directory, by kind and directory.
    instances: HashMap<(OriginKind, ProjectPath), NodeIndex>,
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
            instances: HashMap::new(),
        }
    }

    /// Connects each stack to those that it is nested in: in each directory above it, to the instance with
    /// its key, or else to all stacks there. The instance with its key, or a stack without one, waits for
    /// everything above that the stack waits for. Several instances may not, since other keys may exist
    /// further up.
    fn nesting(&mut self) {
        for (index, stack) in self.stacks.iter() {
            let key = stack.path.key();
            let origin = Origin {
                kind: OriginKind::Nesting,
                span: stack.span,
                position: index.get(),
            };
            let mut directory = stack.path.directory();
            loop {
                let parents = self.stacks.nearest_above(directory);
                let Some(first) = parents.first() else {
                    break;
                };
                directory = self.stacks[first].path.directory();
                let own = key.map(|key| KeyFilter::One(key.clone()));
                let own: Vec<StackIndex> = own
                    .map(|own| self.stacks.instances(&parents, &own))
                    .into_iter()
                    .flatten()
                    .collect();
                let is_plain = self.stacks[first].path.key().is_none();
                let parents = match own[..] {
                    [] => vec![self.instances(directory, OriginKind::Nesting)],
                    _ => own.iter().map(|&parent| Graph::node(parent)).collect(),
                };
                let kind = OriginKind::Nesting;
                for parent in parents {
                    self.constrain(parent, Graph::node(index), kind, Some(origin));
                }
                if !own.is_empty() || is_plain {
                    break;
                }
            }
        }
    }

    /// Returns the node of the only stack in a directory, or the node for all instances there.
    fn instances(&mut self, directory: &ProjectPath, kind: OriginKind) -> NodeIndex {
        let stacks = self.stacks.at(directory.as_str());
        if let Some(only) = stacks.only() {
            return Graph::node(only);
        }
        let key = (kind, directory.clone());
        if let Some(&known) = self.instances.get(&key) {
            return known;
        }
        let name = group_name(kind, &format!("{directory}{}", KeyFilter::Any));
        let node = self.graph.add_node(Node::Group(name));
        for stack in stacks {
            self.constrain(Graph::node(stack), node, kind, None);
        }
        self.instances.insert(key, node);
        node
    }

    /// Returns the references by which stacks run after or before others, with the origin for their edges.
    fn references(
        &self,
        kind: OriginKind,
    ) -> impl Iterator<Item = (&'a Reference, Origin)> + use<'a> {
        let references = self.references.list.iter().enumerate();
        references.filter_map(move |(position, reference)| {
            let (as_in, own) = match reference.kind {
                ReferenceKind::After => (OriginKind::After, OriginKind::After),
                ReferenceKind::ReplaceTriggeredBy => {
                    (OriginKind::After, OriginKind::ReplaceTriggeredBy)
                }
                ReferenceKind::Data(kind) => (OriginKind::After, OriginKind::Data(kind)),
                ReferenceKind::Before => (OriginKind::Before, OriginKind::Before),
                ReferenceKind::Wants | ReferenceKind::WantedBy => return None,
            };
            (as_in == kind).then_some((
                reference,
                Origin {
                    kind: own,
                    span: reference.span,
                    position,
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
            OriginKind::After
            | OriginKind::ReplaceTriggeredBy
            | OriginKind::Data(_)
            | OriginKind::Nesting => self.graph.add_edge(named, declaring, origin),
        };
    }

    fn single_stacks(&mut self) {
        for kind in [OriginKind::After, OriginKind::Before] {
            for (reference, origin) in self.references(kind) {
                if let ReferenceTarget::Stack(named) = reference.target {
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

    /// Adds a node for each directory that a reference names. Each stack is connected to the nearest of these
    /// directories, and each of them to the next one above, so that nested directories stay linear too.
    fn directories(&mut self, kind: OriginKind) {
        let children = self.children(kind);
        let mut directories: BTreeSet<&str> = BTreeSet::new();
        for (reference, _) in self.references(kind) {
            if let ReferenceTarget::Directory(directory) = &reference.target {
                directories.insert(directory.as_str());
            }
        }
        let children_of_all = children.values().flatten();
        let crowded = children_of_all.filter(|(_, child)| child.is_crowded);
        directories.extend(crowded.map(|(&path, _)| path));
        if directories.is_empty() && children.is_empty() {
            return;
        }
        let mut nodes: HashMap<&str, NodeIndex> = HashMap::new();
        for &directory in &directories {
            let name = group_name(kind, directory);
            nodes.insert(directory, self.graph.add_node(Node::Group(name)));
        }
        let nearest = |path: &ProjectPath| {
            let mut above = path.ancestors();
            above.find_map(|above| nodes.get(above).copied())
        };
        for &directory in &directories {
            if let Some(above) = nearest(&ProjectPath::from_normal(directory)) {
                self.constrain(nodes[directory], above, kind, None);
            }
        }
        for (index, stack) in self.stacks.iter() {
            let directory = stack.path.directory();
            let own = nodes.get(directory.as_str()).copied();
            if let Some(node) = own.or_else(|| nearest(directory)) {
                self.constrain(Graph::node(index), node, kind, None);
            }
        }
        for (reference, origin) in self.references(kind) {
            if let ReferenceTarget::Directory(directory) = &reference.target {
                let node = nodes[directory.as_str()];
                self.constrain(node, Graph::node(reference.from), kind, Some(origin));
            }
        }
        self.enclosing(kind, &children, &nodes);
    }

    /// Returns the directories between a directory that a reference names and the stack in it that declares
    /// the reference, each with its children that contain stacks.
    fn children(&self, kind: OriginKind) -> BTreeMap<&'a str, BTreeMap<&'a str, Child>> {
        let mut children: BTreeMap<&str, BTreeMap<&str, Child>> = BTreeMap::new();
        for (reference, _) in self.references(kind) {
            if let ReferenceTarget::Enclosing(directory) = &reference.target {
                let path = self.stacks[reference.from].path.directory();
                for (directory, _) in steps_down(directory, path) {
                    children.entry(directory).or_default();
                }
            }
        }
        if children.is_empty() {
            return children;
        }
        for (first, stack) in self.stacks.iter() {
            for (directory, child) in steps_down(&ProjectPath::root(), stack.path.directory()) {
                let Some(children) = children.get_mut(directory) else {
                    continue;
                };
                let is_crowded = false;
                let known = children.entry(child);
                known
                    .and_modify(|child| child.is_crowded = true)
                    .or_insert(Child { first, is_crowded });
            }
        }
        children
    }

    /// Connects stacks to directories that contain them: to everything at or below such a directory, except
    /// for everything at or below the stack.
    ///
    /// Everything outside of a child of a directory consists of everything outside of the directory, the
    /// stack at it, and its other children. So each directory on the path needs one node.
    fn enclosing(
        &mut self,
        kind: OriginKind,
        children: &BTreeMap<&'a str, BTreeMap<&'a str, Child>>,
        groups: &HashMap<&str, NodeIndex>,
    ) {
        let mut parts: HashMap<&str, (HashMap<&str, usize>, Parts)> = HashMap::new();
        for (&directory, children) in children {
            let node = |(path, child): (&&str, &Child)| {
                if child.is_crowded {
                    groups[path]
                } else {
                    Graph::node(child.first)
                }
            };
            let nodes: Vec<NodeIndex> = children.iter().map(node).collect();
            let positions = children.keys().copied().zip(0..).collect();
            parts.insert(directory, (positions, self.all_but_one(&nodes, kind)));
        }
        let mut outside: HashMap<(&ProjectPath, &str), NodeIndex> = HashMap::new();
        for (reference, origin) in self.references(kind) {
            let ReferenceTarget::Enclosing(enclosing) = &reference.target else {
                continue;
            };
            let mut last = None;
            for (directory, child) in
                steps_down(enclosing, self.stacks[reference.from].path.directory())
            {
                let node = *outside.entry((enclosing, child)).or_insert_with(|| {
                    let node = self.graph.add_node(Node::Part);
                    let has_own = self.stacks.at(directory).first().is_some();
                    let path = ProjectPath::from_normal(directory);
                    let own = has_own.then(|| self.instances(&path, kind));
                    let (positions, parts) = &parts[directory];
                    let siblings = parts.without(positions[child]);
                    for inside in last.into_iter().chain(own).chain(siblings) {
                        self.constrain(inside, node, kind, None);
                    }
                    node
                });
                last = Some(node);
            }
            if let Some(node) = last {
                self.constrain(node, Graph::node(reference.from), kind, Some(origin));
            }
        }
    }

    /// Adds the constraints of references to tags, and to the instances in a directory.
    fn groups(&mut self) {
        for kind in [OriginKind::After, OriginKind::Before] {
            let references = self.references;
            let mut groups: HashMap<&ReferenceTarget, GroupNodes> = HashMap::new();
            for (reference, origin) in self.references(kind) {
                let target = &reference.target;
                if !matches!(
                    target,
                    ReferenceTarget::Tag(_) | ReferenceTarget::Instances(_)
                ) {
                    continue;
                }
                let nodes = groups.entry(target).or_insert_with(|| GroupNodes {
                    members: references.members(target, self.stacks),
                    all: None,
                    parts: None,
                });
                let declaring = Graph::node(reference.from);
                let Ok(position) = nodes.members.binary_search(&reference.from) else {
                    let node = match (nodes.all, target) {
                        (Some(node), _) => node,
                        (None, ReferenceTarget::Tag(group)) => {
                            let filter = &references.tag_group(*group).filter;
                            let name = group_name(kind, &format!("tag:{filter}"));
                            let node = self.graph.add_node(Node::Group(name));
                            for &member in &nodes.members {
                                self.constrain(Graph::node(member), node, kind, None);
                            }
                            node
                        }
                        (None, ReferenceTarget::Instances(directory)) => {
                            self.instances(directory, kind)
                        }
                        (None, _) => continue,
                    };
                    nodes.all = Some(node);
                    self.constrain(node, declaring, kind, Some(origin));
                    continue;
                };
                if nodes.parts.is_none() {
                    let members: Vec<NodeIndex> =
                        nodes.members.iter().copied().map(Graph::node).collect();
                    nodes.parts = Some(self.all_but_one(&members, kind));
                }
                for part in nodes.parts.iter().flat_map(|parts| parts.without(position)) {
                    self.constrain(part, declaring, kind, Some(origin));
                }
            }
        }
    }

    /// Adds nodes for "the first n of some nodes" and "all of them from the n-th on".
    ///
    /// A stack that refers to its own group means all other members. Two such nodes together leave out
    /// exactly one member, so this takes a linear number of edges too.
    fn all_but_one(&mut self, members: &[NodeIndex], kind: OriginKind) -> Parts {
        let chain = |builder: &mut Self, members: &mut dyn Iterator<Item = &NodeIndex>| {
            let mut nodes: Vec<NodeIndex> = Vec::new();
            for &member in members {
                let node = builder.graph.add_node(Node::Part);
                if let Some(&last) = nodes.last() {
                    builder.constrain(last, node, kind, None);
                }
                builder.constrain(member, node, kind, None);
                nodes.push(node);
            }
            nodes
        };
        let prefixes = chain(self, &mut members.iter());
        let mut suffixes = chain(self, &mut members.iter().rev());
        suffixes.reverse();
        Parts { prefixes, suffixes }
    }
}

struct GroupNodes {
    /// In path order.
    members: Vec<StackIndex>,
    /// For stacks outside of the group.
    all: Option<NodeIndex>,
    parts: Option<Parts>,
}

/// Nodes for the prefixes and the suffixes of a list of nodes.
struct Parts {
    prefixes: Vec<NodeIndex>,
    suffixes: Vec<NodeIndex>,
}

impl Parts {
    /// Returns the nodes that together stand for the list without one position.
    fn without(&self, position: usize) -> impl Iterator<Item = NodeIndex> + use<> {
        let before = position
            .checked_sub(1)
            .map(|position| self.prefixes[position]);
        let after = self.suffixes.get(position + 1).copied();
        before.into_iter().chain(after)
    }
}

/// The stacks in a child of a directory.
struct Child {
    first: StackIndex,
    is_crowded: bool,
}

/// Returns the steps from a directory down to a path in it, each as a directory and its child; empty if they
/// are the same.
fn steps_down<'p>(directory: &ProjectPath, path: &'p ProjectPath) -> Vec<(&'p str, &'p str)> {
    let shortest = directory.as_str().len();
    let above = path.ancestors().take_while(|above| above.len() >= shortest);
    let mut child = path.as_str();
    let mut steps: Vec<(&str, &str)> = above
        .map(|above| (above, std::mem::replace(&mut child, above)))
        .collect();
    steps.reverse();
    steps
}
