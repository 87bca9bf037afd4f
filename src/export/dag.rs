//! Directed graphs without cycles: a topological order, and the transitive reduction.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How many nodes the reduction looks for at once.
const BLOCK: usize = 1024;

const WORDS: usize = BLOCK / 64;

/// A graph whose edges lead from lower positions to higher ones.
#[derive(Debug)]
pub(super) struct Dag {
    /// The number of the node at each position.
    pub(super) nodes: Vec<usize>,
    /// The successors of each position, sorted.
    pub(super) successors: Vec<Vec<usize>>,
}

impl Dag {
    /// Puts the lowest node first that may stand there. Panics if there is a cycle.
    pub(super) fn new(n_nodes: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut successors: Vec<Vec<usize>> = vec![Vec::new(); n_nodes];
        let mut pending = vec![0_usize; n_nodes];
        for (from, to) in edges {
            successors[from].push(to);
            pending[to] += 1;
        }
        let free = (0..n_nodes).filter(|&node| pending[node] == 0);
        let mut ready: BinaryHeap<Reverse<usize>> = free.map(Reverse).collect();
        let mut nodes = Vec::with_capacity(n_nodes);
        let mut position = vec![0; n_nodes];
        while let Some(Reverse(node)) = ready.pop() {
            position[node] = nodes.len();
            nodes.push(node);
            for &next in &successors[node] {
                pending[next] -= 1;
                if pending[next] == 0 {
                    ready.push(Reverse(next));
                }
            }
        }
        assert_eq!(nodes.len(), n_nodes, "constraints have no cycle");
        let in_order = |node: &usize| {
            let mut after: Vec<usize> = successors[*node].iter().map(|&it| position[it]).collect();
            after.sort_unstable();
            after.dedup();
            after
        };
        Dag {
            successors: nodes.iter().map(in_order).collect(),
            nodes,
        }
    }

    /// Removes each edge whose ends another path connects. Works in blocks of nodes, so that memory
    /// does not grow with the square of their number.
    pub(super) fn reduce(&mut self) {
        let n_nodes = self.nodes.len();
        let mut is_redundant: Vec<Vec<bool>> = self
            .successors
            .iter()
            .map(|after| vec![false; after.len()])
            .collect();
        let mut below = vec![[0_u64; WORDS]; n_nodes];
        for start in (0..n_nodes).step_by(BLOCK) {
            let bit = |node: usize| {
                let place = node.checked_sub(start).filter(|place| *place < BLOCK)?;
                Some((place / 64, 1_u64 << (place % 64)))
            };
            for node in (0..n_nodes.min(start + BLOCK)).rev() {
                let mut reached = [0; WORDS];
                for &next in &self.successors[node] {
                    for (word, more) in reached.iter_mut().zip(below[next]) {
                        *word |= more;
                    }
                }
                for (&next, redundant) in self.successors[node].iter().zip(&mut is_redundant[node])
                {
                    *redundant |= bit(next).is_some_and(|(word, bit)| reached[word] & bit != 0);
                }
                for &next in &self.successors[node] {
                    if let Some((word, bit)) = bit(next) {
                        reached[word] |= bit;
                    }
                }
                below[node] = reached;
            }
            below.fill([0; WORDS]);
        }
        for (after, is_redundant) in self.successors.iter_mut().zip(is_redundant) {
            let mut is_redundant = is_redundant.into_iter();
            after.retain(|_| is_redundant.next() == Some(false));
        }
    }

    /// Returns how long the longest path takes, given how long each node takes. Other nodes take no time.
    pub(super) fn longest(&self, takes: &[u64]) -> u64 {
        let mut begin = vec![0_u64; self.nodes.len()];
        let mut longest = 0;
        for (position, node) in self.nodes.iter().enumerate() {
            let takes = takes.get(*node).copied().unwrap_or(0);
            let end = begin[position].saturating_add(takes);
            longest = longest.max(end);
            for &next in &self.successors[position] {
                begin[next] = begin[next].max(end);
            }
        }
        longest
    }

    /// Returns the predecessors of each position, sorted.
    pub(super) fn predecessors(&self) -> Vec<Vec<usize>> {
        let mut predecessors = vec![Vec::new(); self.nodes.len()];
        for (node, after) in self.successors.iter().enumerate() {
            for &next in after {
                predecessors[next].push(node);
            }
        }
        predecessors
    }

    /// Divides the positions into chains: each but the first of a chain only waits for the one
    /// before, which nothing else waits for. Returns the chain of each position; a chain has a higher
    /// number than those that it waits for. Positions that do not `join` are chains of their own.
    pub(super) fn chains(&self, joins: impl Fn(usize) -> bool) -> Vec<usize> {
        let predecessors = self.predecessors();
        let mut count = 0;
        let mut chains = Vec::with_capacity(self.nodes.len());
        for (position, before) in predecessors.iter().enumerate() {
            let chain = match before[..] {
                [only] if self.successors[only].len() == 1 && joins(only) && joins(position) => {
                    chains[only]
                }
                _ => {
                    count += 1;
                    count - 1
                }
            };
            chains.push(chain);
        }
        chains
    }
}
