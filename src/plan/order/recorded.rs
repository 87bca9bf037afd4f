//! The order of stacks that the state has recorded.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::acyclic::{Acyclic, OrderLink};
use super::{RelaxedEdge, StackWork};
use crate::change::EntryIndex;
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::selection::graph::{Graph, GraphEdge, OriginKind, Precedence};
use crate::selection::recorded::RecordedStacks;
use crate::state::document::{Document, Entry, UNMERGED};

/// The recorded constraints. The first nodes are the stacks of this commit, numbered as in its
/// graph; then come removed stacks, then groups, numbered as in the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedConstraints {
    /// Including removed stacks.
    pub n_stacks: usize,
    pub n_nodes: usize,
    /// Of several edges with one serial, the first counts as the newest.
    pub edges: Vec<RecordedEdge>,
}

/// A recorded constraint. An edge between a stack and a group holds for each stack of the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordedEdge {
    pub earlier: u32,
    pub later: u32,
    /// The serial of its record; `None` for nesting and group membership, which always hold.
    pub serial: Option<u64>,
}

impl RecordedConstraints {
    /// Returns this commit's constraints, for projects without recorded ones.
    pub fn as_in_the_tree(tree: &Precedence) -> Self {
        let edges = (0..tree.n_nodes()).zip(0..).flat_map(|(node, earlier)| {
            let successors = tree.successors(node).iter();
            successors.map(move |successor| RecordedEdge {
                earlier,
                later: successor.node,
                serial: None,
            })
        });
        RecordedConstraints {
            n_stacks: tree.n_stacks(),
            n_nodes: tree.n_nodes(),
            edges: edges.collect(),
        }
    }

    /// Returns the edges on paths between two stacks with work, at least one of which is destroyed.
    /// Cycles on such a path are included whole.
    #[must_use]
    pub(crate) fn between(&self, works: &[StackWork]) -> Self {
        let pairs = self
            .edges
            .iter()
            .map(|edge| (edge.earlier, edge.later, true));
        let onwards = Precedence::from_edges(self.n_stacks, self.n_nodes, pairs);
        let backwards = onwards.reversed();
        let destroyed = || (0..works.len()).filter(|&stack| works[stack].destroy);
        let working = || (0..works.len()).filter(|&stack| works[stack] != StackWork::default());
        let after_destroyed = onwards.reached(destroyed());
        let after_working = onwards.reached(working());
        let before_destroyed = backwards.reached(destroyed());
        let before_working = backwards.reached(working());
        let is_between = |edge: &RecordedEdge| {
            let (earlier, later) = (edge.earlier as usize, edge.later as usize);
            after_destroyed[earlier] && before_working[later]
                || after_working[earlier] && before_destroyed[later]
        };
        let edges = self.edges.iter().copied();
        RecordedConstraints {
            edges: edges.filter(is_between).collect(),
            ..*self
        }
    }

    /// Returns the precedence, without constraints that would close a cycle with newer ones.
    pub fn precedence(&self) -> Precedence {
        let (Users { n_nodes, pairs }, _) = self.acyclic();
        let pairs = pairs.iter().map(|&(used, user)| (used, user, true));
        Precedence::from_edges(self.n_stacks, n_nodes, pairs)
    }

    /// Splits off the constraints that would close a cycle with newer ones, newest first.
    pub(super) fn acyclic(&self) -> (Users, Vec<RelaxedEdge>) {
        let mut edges: Vec<&RecordedEdge> = self.edges.iter().collect();
        edges.sort_by_key(|edge| Reverse(edge.serial.unwrap_or(u64::MAX)));
        let link = |edge: &&RecordedEdge| OrderLink {
            from: edge.earlier,
            to: edge.later,
            is_membership: edge.serial.is_none(),
        };
        let links: Vec<OrderLink> = edges.iter().map(link).collect();
        let Acyclic { kept, left_out } = Acyclic::new(self.n_stacks, self.n_nodes, &links);
        let left_out = left_out.into_iter().map(|part| {
            RelaxedEdge::Recorded(RecordedEdge {
                earlier: part.from,
                later: part.to,
                serial: edges[part.link].serial,
            })
        });
        let users = Users {
            n_nodes: self.n_nodes,
            pairs: kept.into_iter().map(|part| (part.from, part.to)).collect(),
        };
        (users, left_out.collect())
    }
}

pub(super) struct Users {
    pub(super) n_nodes: usize,
    /// Pairs of the earlier and the later node.
    pub(super) pairs: Vec<(u32, u32)>,
}

pub struct NamedConstraints<'d> {
    pub recorded: RecordedConstraints,
    /// The keys of recorded stacks that this commit lacks: the nodes after this commit's stacks.
    pub removed: Vec<&'d str>,
    /// The names of the groups, which are the last nodes; `None` for a part of one.
    groups: Vec<Option<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordNode<'d> {
    Here(StackIndex),
    /// A recorded stack that this commit lacks, by key.
    Removed(&'d str),
    /// A group, by its position among these.
    Group(usize),
}

impl<'d> NamedConstraints<'d> {
    /// Reads the declarations and the nesting that each apply recorded. An entry belongs to its
    /// stack in this commit, wherever that was moved. Constraints hold through removed stacks.
    ///
    /// A stack of this commit that is not recorded may still exist, and recorded stacks may refer
    /// to it: its declarations here count as the newest record. Without a document, that applies to
    /// every stack.
    pub fn new(project: &Project, tree: &Graph, document: Option<&'d Document>) -> Self {
        match document {
            Some(document) => Self::of(project, tree, document),
            None => NamedConstraints {
                recorded: RecordedConstraints::as_in_the_tree(&Precedence::new(tree)),
                removed: Vec::new(),
                groups: names_of_groups(tree, project.stacks.len()),
            },
        }
    }

    fn of(project: &Project, tree: &Graph, document: &'d Document) -> Self {
        let n_in_tree = project.stacks.len();
        let pairs = EntryIndex::new(&project.stacks, document);
        let by_key: HashMap<&str, StackIndex> =
            pairs.iter().map(|(stack, key)| (key, stack)).collect();
        let is_new = |stack: StackIndex| pairs.key(stack).is_none();
        let others = project
            .stacks
            .iter()
            .filter_map(|(index, stack)| is_new(index).then_some(stack));
        let stacks = RecordedStacks::new(document, others);

        let mut removed = Vec::new();
        let mut numbers: Vec<u32> = Vec::with_capacity(stacks.graph.n_nodes());
        for (_, path, key) in stacks.iter() {
            let stack = match key {
                Some(key) => by_key.get(key).copied(),
                None => project.stacks.find(path),
            };
            numbers.push(number(match (stack, key) {
                (Some(stack), _) => stack.get(),
                (None, key) => {
                    removed.extend(key);
                    n_in_tree + removed.len() - 1
                }
            }));
        }
        let n_stacks = n_in_tree + removed.len();
        let mut groups = names_of_groups(&stacks.graph, numbers.len());
        numbers.extend((n_stacks..n_stacks + groups.len()).map(number));

        let serial = |stack| {
            let entry = document.stacks.get(stacks.key(stack)?)?;
            Some(serial(entry, document))
        };
        let recorded = stacks.graph.edges().map(|edge| RecordedEdge {
            earlier: numbers[edge.earlier as usize],
            later: numbers[edge.later as usize],
            serial: match edge.declared {
                None | Some((OriginKind::Nesting, _)) => None,
                Some((_, stack)) => serial(stack),
            },
        });
        let mut edges: Vec<RecordedEdge> = recorded.collect();

        let declared_by_new = |edge: GraphEdge| {
            let declared = edge
                .declared
                .filter(|(kind, _)| *kind != OriginKind::Nesting);
            declared.is_some_and(|(_, stack)| is_new(stack))
        };
        if tree.edges().any(declared_by_new) {
            let first = n_stacks + groups.len();
            groups.extend(names_of_groups(tree, n_in_tree));
            let node = |node: u32| match (node as usize).checked_sub(n_in_tree) {
                Some(group) => number(first + group),
                None => node,
            };
            edges.extend(tree.edges().filter_map(|edge| {
                let serial = match edge.declared {
                    None => None,
                    // The recorded graph has the nesting of all stacks.
                    Some((OriginKind::Nesting, _)) => return None,
                    Some((_, stack)) if is_new(stack) => Some(document.serial.saturating_add(1)),
                    Some(_) => return None,
                };
                Some(RecordedEdge {
                    earlier: node(edge.earlier),
                    later: node(edge.later),
                    serial,
                })
            }));
        }
        NamedConstraints {
            recorded: RecordedConstraints {
                n_stacks,
                n_nodes: n_stacks + groups.len(),
                edges,
            },
            removed,
            groups,
        }
    }

    fn n_here(&self) -> usize {
        self.recorded.n_stacks - self.removed.len()
    }

    pub fn node(&self, node: usize) -> RecordNode<'d> {
        match node.checked_sub(self.n_here()) {
            None => RecordNode::Here(StackIndex::new(node)),
            Some(position) => match self.removed.get(position) {
                Some(key) => RecordNode::Removed(key),
                None => RecordNode::Group(node - self.recorded.n_stacks),
            },
        }
    }

    /// Returns the nodes of the recorded stacks that this commit lacks, by key.
    pub fn removed_nodes(&self) -> impl Iterator<Item = (usize, &'d str)> {
        (self.n_here()..).zip(self.removed.iter().copied())
    }

    pub fn removed_node(&self, key: &str) -> Option<usize> {
        let mut nodes = self.removed_nodes();
        nodes.find(|(_, it)| *it == key).map(|(node, _)| node)
    }

    pub fn name(&self, project: &Project, node: usize) -> String {
        match self.node(node) {
            RecordNode::Here(stack) => project.stacks[stack].path.to_string(),
            RecordNode::Removed(key) => key.to_owned(),
            RecordNode::Group(group) => {
                let name = self.groups[group].clone();
                name.unwrap_or_else(|| "some of a group".to_owned())
            }
        }
    }
}

fn names_of_groups(graph: &Graph, first: usize) -> Vec<Option<String>> {
    let groups = (first..graph.n_nodes()).map(number);
    groups
        .map(|node| graph.group_name(node).map(str::to_owned))
        .collect()
}

/// Returns the serial of a stack's recorded declarations: its last apply, or its first attempt.
fn serial(entry: &Entry, document: &Document) -> u64 {
    let applied = entry.applied.as_ref().map(|applied| applied.serial);
    let serial = applied.or(entry.last.as_ref().map(|last| last.serial));
    let serial = serial.filter(|&serial| serial != UNMERGED);
    serial.unwrap_or(document.serial)
}

fn number(node: usize) -> u32 {
    u32::try_from(node).expect("there are fewer than 2³² nodes")
}
