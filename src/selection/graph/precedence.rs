//! The graph for ordering and scheduling: acyclic, and reduced to which nodes wait for which.

use petgraph::visit::EdgeRef;

use super::Graph;

/// Which nodes wait for which. Nodes below [`Precedence::n_stacks`] are stacks, the others groups.
///
/// It is acyclic if it is built from a [`Graph`]: a cycle of stacks becomes a single node. A selection with a
/// stack of a cycle is refused earlier. For any other selection, the cycle is an unselected node through
/// which constraints hold.
#[derive(Debug, Clone)]
pub struct Precedence {
    n_stacks: usize,
    /// The start of each node's successors in `successors`, and the end of the last ones.
    offsets: Vec<u32>,
    successors: Vec<Successor>,
}

/// A node that waits for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Successor {
    pub node: u32,
    /// Whether a failure of the other one skips it. If not, the constraint only orders.
    pub spreads_failure: bool,
}

impl Precedence {
    /// Reduces a graph. Failures spread along all of its constraints.
    pub fn new(graph: &Graph) -> Self {
        Self::of(graph, &graph.components())
    }

    /// Reduces a graph with these [`Graph::components`].
    pub(super) fn of(graph: &Graph, component: &[usize]) -> Self {
        let inner = &graph.graph;
        let n_nodes = inner.node_count();
        let edges = inner.edge_references().filter_map(|edge| {
            let (from, to) = (
                component[edge.source().index()],
                component[edge.target().index()],
            );
            let node = |index| u32::try_from(index).expect("petgraph counts nodes in 32 bits");
            (from != to).then(|| (node(from), node(to), true))
        });
        Self::from_edges(graph.n_stacks, n_nodes, edges)
    }

    /// Builds a precedence from edges: from which node, to which, and whether a failure spreads along it. The
    /// edges must not form a cycle, whose nodes would wait forever.
    pub fn from_edges(
        n_stacks: usize,
        n_nodes: usize,
        edges: impl Iterator<Item = (u32, u32, bool)> + Clone,
    ) -> Self {
        let mut offsets = vec![0_u32; n_nodes + 1];
        for (from, ..) in edges.clone() {
            offsets[from as usize + 1] += 1;
        }
        for node in 0..n_nodes {
            offsets[node + 1] += offsets[node];
        }
        let mut next = offsets.clone();
        let nobody = Successor {
            node: 0,
            spreads_failure: false,
        };
        let mut successors = vec![nobody; offsets[n_nodes] as usize];
        for (from, node, spreads_failure) in edges {
            let position = &mut next[from as usize];
            successors[*position as usize] = Successor {
                node,
                spreads_failure,
            };
            *position += 1;
        }
        Precedence {
            n_stacks,
            offsets,
            successors,
        }
    }

    /// Returns the same with every constraint reversed.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let edges = (0..self.n_nodes()).flat_map(|from| {
            let from_node = u32::try_from(from).expect("was made from 32 bits");
            let reverse = move |to: &Successor| (to.node, from_node, to.spreads_failure);
            self.successors(from).iter().map(reverse)
        });
        Self::from_edges(self.n_stacks, self.n_nodes(), edges)
    }

    pub fn n_nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    pub fn n_stacks(&self) -> usize {
        self.n_stacks
    }

    /// Returns the nodes that wait for a node, possibly with repetitions.
    pub fn successors(&self, node: usize) -> &[Successor] {
        &self.successors[self.offsets[node] as usize..self.offsets[node + 1] as usize]
    }

    /// Returns the number of nodes that each node waits for, counting repetitions.
    pub fn pending(&self) -> Vec<u32> {
        let mut pending = vec![0; self.n_nodes()];
        for successor in &self.successors {
            pending[successor.node as usize] += 1;
        }
        pending
    }

    /// Returns for each node whether it is, or transitively waits for, one of some nodes.
    pub fn reached(&self, from: impl Iterator<Item = usize>) -> Vec<bool> {
        let mut is_reached = vec![false; self.n_nodes()];
        let mut open: Vec<usize> = from.collect();
        for &node in &open {
            is_reached[node] = true;
        }
        while let Some(node) = open.pop() {
            for successor in self.successors(node) {
                let next = successor.node as usize;
                if !std::mem::replace(&mut is_reached[next], true) {
                    open.push(next);
                }
            }
        }
        is_reached
    }

    /// Returns all nodes that transitively wait for a node, and the node itself, each with whether a failure
    /// of the node spreads to it.
    pub fn reach(&self, node: usize) -> Vec<(usize, bool)> {
        let mut is_reached: Vec<Option<bool>> = vec![None; self.n_nodes()];
        let mut found = vec![node];
        is_reached[node] = Some(true);
        let mut open = vec![node];
        while let Some(from) = open.pop() {
            for successor in self.successors(from) {
                let to = successor.node as usize;
                let spreads = successor.spreads_failure && is_reached[from] == Some(true);
                match is_reached[to] {
                    None => found.push(to),
                    Some(false) if spreads => {} // reached again, now by a failure too
                    Some(_) => continue,
                }
                is_reached[to] = Some(spreads);
                open.push(to);
            }
        }
        found.sort_unstable();
        let spreads = |node: usize| is_reached[node] == Some(true);
        found
            .into_iter()
            .map(|node| (node, spreads(node)))
            .collect()
    }
}
