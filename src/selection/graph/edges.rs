//! The graph as a list of edges, for code that merges several graphs.

use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;

use super::{Graph, Node, OriginKind};
use crate::project::stack::StackIndex;

/// An edge between two nodes. The first nodes are the stacks, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphEdge {
    pub earlier: u32,
    pub later: u32,
    /// The kind of constraint, and the stack that declares it or is nested; `None` for an edge between a
    /// group and its member or part.
    pub declared: Option<(OriginKind, StackIndex)>,
}

impl Graph {
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
}
