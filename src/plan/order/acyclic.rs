//! Leaves out of a list of links what closes a cycle with those before it.

use petgraph::graph::DiGraph;
use petgraph::visit::DfsPostOrder;

/// How much may be looked at to find out which members of groups close cycles. Beyond that, a link to
/// or from a group is left out as a whole, so that thousands of links to a group of thousands do not
/// take quadratic time.
const MAX_EFFORT: usize = 200_000;

/// That one node comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Whether it only says that a node belongs to a group: what comes before or after the group as a
    /// whole does so for each of its members.
    pub(super) is_membership: bool,
}

/// A link or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) from: u32,
    pub(super) to: u32,
    /// The position of the link in the list.
    pub(super) link: usize,
}

/// Links without a cycle, and the rest, each in the sequence of the list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Acyclic {
    /// What forms no cycle.
    pub(super) kept: Vec<Part>,
    /// What would close one with those kept before it.
    pub(super) left_out: Vec<Part>,
}

impl Acyclic {
    /// Takes one link after the other, as far as it closes no cycle with those taken before. Of a link
    /// to or from groups only the pairs of members are left out that close one. The first `n_single`
    /// nodes are no groups.
    ///
    /// That is linear where there is no cycle. Where there is one, a link of it may cost a search in the
    /// part of the graph between its ends.
    pub(super) fn new(n_single: usize, n_nodes: usize, links: &[Link]) -> Self {
        let mut sorted = Sorted::new(n_nodes, links);
        let mut members: Option<Members> = None;
        let mut effort = 0;
        let mut acyclic = Acyclic::default();
        for (position, &Link { from, to, .. }) in links.iter().enumerate() {
            let part = |from, to| Part {
                from,
                to,
                link: position,
            };
            if sorted.add(from, to) {
                acyclic.kept.push(part(from, to));
                continue;
            }
            let members = members.get_or_insert_with(|| Members::new(n_single, n_nodes, links));
            let Some(pairs) = members.pairs(from, to, &mut effort) else {
                acyclic.left_out.push(part(from, to));
                continue;
            };
            for (from, to) in pairs {
                let is_kept = sorted.add(from, to);
                let parts = if is_kept {
                    &mut acyclic.kept
                } else {
                    &mut acyclic.left_out
                };
                parts.push(part(from, to));
            }
        }
        acyclic
    }
}

/// A graph that grows, with a topological order of it: the algorithm of Pearce and Kelly. (That of
/// petgraph recurses, and overflows the stack on long chains.)
struct Sorted {
    /// The place of each node in the order.
    places: Vec<usize>,
    successors: Vec<Vec<u32>>,
    predecessors: Vec<Vec<u32>>,
    is_seen: Vec<bool>,
}

impl Sorted {
    /// Starts without links, in an order that those to come rarely contradict: where all of them form
    /// no cycle, never.
    fn new(n_nodes: usize, links: &[Link]) -> Self {
        let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(n_nodes, links.len());
        for _ in 0..n_nodes {
            graph.add_node(());
        }
        graph.extend_with_edges(links.iter().map(|link| (link.from, link.to)));
        let mut places = vec![0; n_nodes];
        let mut free = (0..n_nodes).rev();
        let mut search = DfsPostOrder::empty(&graph);
        for start in graph.node_indices() {
            search.move_to(start);
            while let Some(node) = search.next(&graph) {
                places[node.index()] = free.next().expect("each node is met once");
            }
        }
        Sorted {
            places,
            successors: vec![Vec::new(); n_nodes],
            predecessors: vec![Vec::new(); n_nodes],
            is_seen: vec![false; n_nodes],
        }
    }

    /// Adds a link, unless it closes a cycle; returns whether it did.
    fn add(&mut self, from: u32, to: u32) -> bool {
        let (first, last) = (self.places[to as usize], self.places[from as usize]);
        if from == to {
            return false;
        }
        if first < last {
            // What comes after `to`, as far as it stands before `from`, has to move behind what comes
            // before `from`.
            let after = reached(&self.successors, to, &mut self.is_seen, |node| {
                self.places[node as usize] <= last
            });
            if after.contains(&from) {
                return false;
            }
            let before = reached(&self.predecessors, from, &mut self.is_seen, |node| {
                self.places[node as usize] >= first
            });
            self.place(before, after);
        }
        self.successors[from as usize].push(to);
        self.predecessors[to as usize].push(from);
        true
    }

    /// Gives the places that all these nodes have first to `before`, then to `after`, each in its order.
    fn place(&mut self, mut before: Vec<u32>, mut after: Vec<u32>) {
        before.sort_unstable_by_key(|&node| self.places[node as usize]);
        after.sort_unstable_by_key(|&node| self.places[node as usize]);
        let nodes = [before, after].concat();
        let places = nodes.iter().map(|&node| self.places[node as usize]);
        let mut places: Vec<usize> = places.collect();
        places.sort_unstable();
        for (node, place) in nodes.into_iter().zip(places) {
            self.places[node as usize] = place;
        }
    }
}

/// Returns a node and all that can be reached from it through such nodes. `is_seen` holds for no node,
/// before and after it.
fn reached(
    neighbours: &[Vec<u32>],
    start: u32,
    is_seen: &mut [bool],
    is_within: impl Fn(u32) -> bool,
) -> Vec<u32> {
    let mut found = vec![start];
    is_seen[start as usize] = true;
    let mut next = 0;
    while let Some(&node) = found.get(next) {
        next += 1;
        for &neighbour in &neighbours[node as usize] {
            let is_new = !is_seen[neighbour as usize] && is_within(neighbour);
            if is_new {
                is_seen[neighbour as usize] = true;
                found.push(neighbour);
            }
        }
    }
    for &node in &found {
        is_seen[node as usize] = false;
    }
    found
}

/// What belongs to groups.
struct Members {
    n_single: usize,
    /// By group: the nodes that it comes after.
    before: Vec<Vec<u32>>,
    /// By group: the nodes that it comes before.
    after: Vec<Vec<u32>>,
    is_seen: Vec<bool>,
}

impl Members {
    fn new(n_single: usize, n_nodes: usize, links: &[Link]) -> Self {
        let mut before = vec![Vec::new(); n_nodes];
        let mut after = vec![Vec::new(); n_nodes];
        for link in links.iter().filter(|link| link.is_membership) {
            before[link.to as usize].push(link.from);
            after[link.from as usize].push(link.to);
        }
        Members {
            n_single,
            before,
            after,
            is_seen: vec![false; n_nodes],
        }
    }

    /// Returns the pairs of nodes that a link stands for, or none if it stands for itself, or for too
    /// many.
    fn pairs(&mut self, from: u32, to: u32, effort: &mut usize) -> Option<Vec<(u32, u32)>> {
        let is_single = |node: u32| (node as usize) < self.n_single;
        if is_single(from) && is_single(to) || *effort > MAX_EFFORT {
            return None;
        }
        let mut members = |node: u32, neighbours: &[Vec<u32>]| {
            if is_single(node) {
                return vec![node];
            }
            let mut found = reached(neighbours, node, &mut self.is_seen, |_| true);
            *effort += found.len();
            found.retain(|&node| is_single(node));
            found.sort_unstable();
            found
        };
        let first = members(from, &self.before);
        let then = members(to, &self.after);
        *effort += first.len() * then.len();
        let pairs = first.iter().flat_map(|&from| {
            let pair = move |&to| (from, to);
            then.iter().map(pair)
        });
        (*effort <= MAX_EFFORT).then(|| pairs.collect())
    }
}
