//! The graph as a list of edges, for those who put several graphs together.

use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;

use super::{Graph, Node, OriginKind};
use crate::project::stack::StackIndex;

/// An edge between two nodes, of which the first are the stacks, by their index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphEdge {
    /// The node that comes first.
    pub earlier: u32,
    /// The node that comes after it.
    pub later: u32,
    /// The kind of constraint, and the stack that declares it, or is nested; none for an edge that ties a
    /// group to a stack or a part of it.
    pub declared: Option<(OriginKind, StackIndex)>,
}

impl Graph {
    /// Returns the number of nodes: stacks, groups and parts of groups.
    pub fn n_nodes(&self) -> usize {
        self.graph.node_count()
    }

    /// Returns the name of a node that stands for several stacks; none for a stack, and for a part of a
    /// group.
    pub fn group_name(&self, node: u32) -> Option<&str> {
        match self.graph.node_weight(NodeIndex::from(node))? {
            Node::Group(name) => Some(name),
            Node::Stack(_) | Node::Part => None,
        }
    }

    /// Returns all edges, in the same sequence for the same stacks and references.
    pub fn edges(&self) -> impl Iterator<Item = GraphEdge> {
        let node = |index: NodeIndex| u32::try_from(index.index()).expect("it counts in 32 bits");
        self.graph.edge_references().map(move |edge| {
            let declaring = |kind: OriginKind| match kind {
                OriginKind::Before => edge.source(),
                OriginKind::After | OriginKind::ReplaceTriggeredBy | OriginKind::Nesting => {
                    edge.target()
                }
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
