//! Drops from a list of links those that close a cycle with earlier ones.

use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::DfsPostOrder;

/// Bounds the search for group members that close cycles. Beyond it, a group's link is dropped as a
/// whole, so that thousands of links to a group of thousands do not take quadratic time.
const MAX_EFFORT: usize = 200_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OrderLink {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Whether it ties a node to a group as a member: the group's links hold for each member.
    pub(super) is_membership: bool,
}

/// A link or part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkPart {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) link: usize,
}

/// The links by outcome, each list in the original order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Acyclic {
    /// These form no cycle.
    pub(super) kept: Vec<LinkPart>,
    /// Each of these would close a cycle with kept ones before it.
    pub(super) left_out: Vec<LinkPart>,
}

impl Acyclic {
    /// Keeps the links in order, except those that close a cycle with kept ones. Of a link of
    /// groups, only the pairs of members that close a cycle are dropped. The first `n_single` nodes
    /// are no groups.
    ///
    /// Linear without cycles. Each link in a cycle may cost a search between its ends.
    pub(super) fn new(n_single: usize, n_nodes: usize, links: &[OrderLink]) -> Self {
        let mut sorted = TopologicalOrder::new(n_nodes, links);
        let mut members: Option<GroupMembers> = None;
        let mut effort = 0;
        let mut acyclic = Acyclic::default();
        for (position, &OrderLink { from, to, .. }) in links.iter().enumerate() {
            let part = |from, to| LinkPart {
                from,
                to,
                link: position,
            };
            if sorted.add(from, to) {
                acyclic.kept.push(part(from, to));
                continue;
            }
            let members =
                members.get_or_insert_with(|| GroupMembers::new(n_single, n_nodes, links));
            let Some((first, then)) = members.of_link(from, to, &mut effort) else {
                acyclic.left_out.push(part(from, to));
                continue;
            };
            let is_forward = then.len() <= first.len();
            let (few, many) = if is_forward {
                (then, first)
            } else {
                (first, then)
            };
            for one in few {
                let beyond = sorted.beyond(one, is_forward);
                for &other in &many {
                    let (from, to) = if is_forward {
                        (other, one)
                    } else {
                        (one, other)
                    };
                    if beyond.binary_search(&other).is_ok() {
                        acyclic.left_out.push(part(from, to));
                    } else {
                        sorted.add(from, to);
                        acyclic.kept.push(part(from, to));
                    }
                }
            }
        }
        acyclic
    }
}

/// A topological order after Pearce and Kelly. (petgraph's recurses and overflows on long chains.)
struct TopologicalOrder {
    places: Vec<usize>,
    successors: Vec<Vec<u32>>,
    predecessors: Vec<Vec<u32>>,
    is_seen: Vec<bool>,
}

impl TopologicalOrder {
    /// Starts without links, in an order that rarely needs to change, and never if the links form
    /// no cycle. Otherwise the order satisfies the longest acyclic prefix of the links, and the
    /// others where these leave a choice.
    fn new(n_nodes: usize, links: &[OrderLink]) -> Self {
        let mut order = reverse_post_order(links, (0..n_nodes).rev());
        if !agrees(&order, links) {
            let starts: Vec<usize> = order.iter().rev().copied().collect();
            let (mut agreed, mut contradictory) = (0, links.len());
            while agreed + 1 < contradictory {
                let middle = agreed.midpoint(contradictory);
                let found = reverse_post_order(&links[..middle], starts.iter().copied());
                if agrees(&found, &links[..middle]) {
                    (agreed, order) = (middle, found);
                } else {
                    contradictory = middle;
                }
            }
        }
        TopologicalOrder {
            places: places(&order),
            successors: vec![Vec::new(); n_nodes],
            predecessors: vec![Vec::new(); n_nodes],
            is_seen: vec![false; n_nodes],
        }
    }

    /// Adds a link unless it closes a cycle; returns whether it was added.
    fn add(&mut self, from: u32, to: u32) -> bool {
        let (first, last) = (self.places[to as usize], self.places[from as usize]);
        if from == to {
            return false;
        }
        if first < last {
            // Successors of `to` that come before `from` move behind the predecessors of `from`.
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

    /// Returns a node and its transitive successors, or predecessors, by number.
    fn beyond(&mut self, node: u32, is_forward: bool) -> Vec<u32> {
        let neighbours = if is_forward {
            &self.successors
        } else {
            &self.predecessors
        };
        let mut found = reached(neighbours, node, &mut self.is_seen, |_| true);
        found.sort_unstable();
        found
    }

    /// Gives all positions of these nodes first to `before`, then to `after`, keeping each order.
    fn place(&mut self, mut before: Vec<u32>, mut after: Vec<u32>) {
        before.sort_unstable_by_key(|&node| self.places[node as usize]);
        after.sort_unstable_by_key(|&node| self.places[node as usize]);
        let nodes = [before, after].concat();
        let mut places: Vec<usize> = nodes
            .iter()
            .map(|&node| self.places[node as usize])
            .collect();
        places.sort_unstable();
        for (node, place) in nodes.into_iter().zip(places) {
            self.places[node as usize] = place;
        }
    }
}

/// Returns the nodes in reverse post-order of a depth-first search from each of `starts`: a
/// topological order, if the links form no cycle.
fn reverse_post_order(
    links: &[OrderLink],
    starts: impl ExactSizeIterator<Item = usize>,
) -> Vec<usize> {
    let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(starts.len(), links.len());
    for _ in 0..starts.len() {
        graph.add_node(());
    }
    graph.extend_with_edges(links.iter().map(|link| (link.from, link.to)));
    let mut order = Vec::with_capacity(starts.len());
    let mut search = DfsPostOrder::empty(&graph);
    for start in starts {
        search.move_to(NodeIndex::new(start));
        while let Some(node) = search.next(&graph) {
            order.push(node.index());
        }
    }
    order.reverse();
    order
}

fn agrees(order: &[usize], links: &[OrderLink]) -> bool {
    let places = places(order);
    let place = |node: u32| places[node as usize];
    let mut links = links.iter();
    links.all(|link| place(link.from) < place(link.to))
}

fn places(order: &[usize]) -> Vec<usize> {
    let mut places = vec![0; order.len()];
    for (place, &node) in order.iter().enumerate() {
        places[node] = place;
    }
    places
}

/// Returns the nodes reachable through nodes that pass. `is_seen` is all false before and after.
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

struct GroupMembers {
    n_single: usize,
    /// By group: its members that come before it.
    before: Vec<Vec<u32>>,
    /// By group: its members that come after it.
    after: Vec<Vec<u32>>,
    is_seen: Vec<bool>,
}

impl GroupMembers {
    fn new(n_single: usize, n_nodes: usize, links: &[OrderLink]) -> Self {
        let mut before = vec![Vec::new(); n_nodes];
        let mut after = vec![Vec::new(); n_nodes];
        let is_group = |node: u32| node as usize >= n_single;
        for link in links.iter().filter(|link| link.is_membership) {
            if is_group(link.to) {
                before[link.to as usize].push(link.from);
            }
            if is_group(link.from) {
                after[link.from as usize].push(link.to);
            }
        }
        GroupMembers {
            n_single,
            before,
            after,
            is_seen: vec![false; n_nodes],
        }
    }

    /// Expands a link to pairs of nodes; `None` if that is unnecessary or too expensive.
    fn of_link(&mut self, from: u32, to: u32, effort: &mut usize) -> Option<(Vec<u32>, Vec<u32>)> {
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
        (*effort <= MAX_EFFORT).then_some((first, then))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(from: u32, to: u32) -> OrderLink {
        OrderLink {
            from,
            to,
            is_membership: false,
        }
    }

    fn membership(from: u32, to: u32) -> OrderLink {
        OrderLink {
            is_membership: true,
            ..link(from, to)
        }
    }

    fn ends(parts: &[LinkPart]) -> Vec<(u32, u32)> {
        parts.iter().map(|part| (part.from, part.to)).collect()
    }

    #[test]
    fn acyclic_drops_links_that_close_long_cycles() {
        let n = 100_000;
        let mut links: Vec<OrderLink> = (1..n).map(|node| link(node - 1, node)).collect();
        links.push(link(n - 1, 0));
        links.push(link(0, n - 1));
        links.push(link(7, 7));
        let acyclic = Acyclic::new(n as usize, n as usize, &links);
        assert_eq!(ends(&acyclic.left_out), [(n - 1, 0), (7, 7)]);
        assert_eq!(acyclic.kept.len(), links.len() - 2);
    }

    #[test]
    fn acyclic_drops_only_group_members_that_close_cycles() {
        // The group 4 holds 0 and 1 and comes before 2; 5 comes after 2 and holds 1 and 3.
        let (first, then) = ([0, 1], [1, 3]);
        let members = first.map(|node| membership(node, 4));
        let others = then.map(|node| membership(5, node));
        let links = [members, others].concat();
        let with = |more: &[OrderLink]| {
            let acyclic = Acyclic::new(4, 6, &[&links, more].concat());
            (ends(&acyclic.kept[links.len()..]), ends(&acyclic.left_out))
        };
        assert_eq!(
            with(&[link(2, 1), link(4, 2)]),
            (vec![(2, 1), (0, 2)], vec![(1, 2)])
        );
        assert_eq!(
            with(&[link(1, 2), link(2, 5)]),
            (vec![(1, 2), (2, 3)], vec![(2, 1)])
        );
        assert_eq!(
            with(&[link(4, 2), link(2, 5)]),
            (vec![(4, 2), (2, 3)], vec![(2, 1)])
        );
    }

    #[test]
    fn acyclic_drops_whole_group_links_beyond_its_bound() {
        // Each member of one group precedes the other group, and vice versa.
        let n = 400;
        let (group, other) = (2 * n, 2 * n + 1);
        let mut links: Vec<OrderLink> = (0..n).map(|node| membership(node, group)).collect();
        links.extend((n..2 * n).map(|node| membership(node, other)));
        links.extend((n..2 * n).map(|node| link(group, node)));
        links.extend((0..n).map(|node| link(other, node)));
        let n_nodes = 2 * n as usize + 2;
        let acyclic = Acyclic::new(n_nodes - 2, n_nodes, &links);
        assert_eq!(acyclic.kept.len(), 3 * n as usize);
        let left_out = ends(&acyclic.left_out);
        assert_eq!(left_out.first(), Some(&(n, 0)), "one by one at first");
        assert_eq!(left_out.last(), Some(&(other, n - 1)));
    }
}
