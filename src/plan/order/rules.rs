//! The rules of the order, each a function that adds edges between operations.
//!
//! A(s) brings a stack s forward, D(s) destroys it.

use super::acyclic::{Acyclic, Link};
use super::recorded::Users;
use super::{Relaxed, StackOperation, Work};
use crate::run::turn::Operation;
use crate::selection::graph::Precedence;

/// What the edges of a rule have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    /// Its number. Of two that may be relaxed, the one with the lower number counts more.
    pub(super) number: u8,
    /// Whether a failure of what comes first reaches what comes after it.
    pub(super) spreads_failure: bool,
    /// Whether an edge is left out where it closes a cycle. The edges of all others form none.
    pub(super) may_be_relaxed: bool,
}

impl Rule {
    const fn strict(number: u8) -> Self {
        Rule {
            number,
            spreads_failure: true,
            may_be_relaxed: false,
        }
    }
}

/// That one node waits for another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) spreads_failure: bool,
    rule: Rule,
}

/// What waits for what, without a cycle.
#[derive(Debug)]
pub(super) struct Waits {
    /// The number of nodes, the operations in front.
    pub(super) n_nodes: usize,
    pub(super) edges: Vec<Edge>,
    /// What was left out.
    pub(super) relaxed: Vec<Relaxed>,
}

/// The operations of a plan, and what the rules say.
#[derive(Debug)]
pub(super) struct Operations {
    /// The operations, in the order that breaks ties. They are the first nodes.
    pub(super) list: Vec<StackOperation>,
    /// The number of nodes beyond them, at which nothing happens.
    n_between: usize,
    edges: Vec<Edge>,
    /// A(s), by stack.
    applies: Vec<Option<u32>>,
    /// D(s), by stack.
    destroys: Vec<Option<u32>>,
}

impl Operations {
    /// Lists the operations: by stack, D(s) before A(s).
    pub(super) fn new(works: &[Work]) -> Self {
        let mut list = Vec::new();
        let mut add = |is_wanted: bool, stack, operation| {
            is_wanted.then(|| {
                let node = u32::try_from(list.len()).expect("there are fewer than 2³² operations");
                list.push(StackOperation { stack, operation });
                node
            })
        };
        let mut destroys = Vec::with_capacity(works.len());
        let mut applies = Vec::with_capacity(works.len());
        for (stack, work) in works.iter().enumerate() {
            destroys.push(add(work.destroy, stack, Operation::Destroy));
            applies.push(add(work.apply, stack, Operation::Apply));
        }
        Operations {
            list,
            n_between: 0,
            edges: Vec::new(),
            applies,
            destroys,
        }
    }

    /// Rule 1: A(d) before A(s), where s runs after d in the tree.
    pub(super) fn apply_what_is_needed_first(&mut self, tree: &Precedence) {
        let edges = (0..tree.n_nodes()).zip(0..).flat_map(|(node, from)| {
            let successors = tree.successors(node).iter();
            successors.map(move |to| (from, to.node, to.spreads_failure))
        });
        let applies = self.applies.clone();
        let apply = |stack: usize| applies[stack];
        self.add(Rule::strict(1), tree.n_nodes(), edges, apply, apply);
    }

    /// Rule 2: D(s) before D(d), where s ran after d when it was recorded.
    pub(super) fn destroy_users_first(&mut self, users: &Users) {
        let edges = users.pairs.iter().map(|&(used, user)| (user, used, true));
        let destroys = self.destroys.clone();
        let destroy = |stack: usize| destroys[stack];
        self.add(Rule::strict(2), users.n_nodes, edges, destroy, destroy);
    }

    /// Rule 3: D(s) before A(s).
    pub(super) fn destroy_before_the_replacement(&mut self) {
        let rule = Rule::strict(3);
        for (destroy, apply) in self.destroys.iter().zip(&self.applies) {
            if let (&Some(from), &Some(to)) = (destroy, apply) {
                self.edges.push(Edge {
                    from,
                    to,
                    spreads_failure: rule.spreads_failure,
                    rule,
                });
            }
        }
    }

    /// Returns what waits for what, without what closes a cycle.
    pub(super) fn waits(&self) -> Waits {
        let n_operations = self.list.len();
        let n_nodes = n_operations + self.n_between;
        let operation = |node: u32| self.list.get(node as usize).copied();
        // What may be left out comes last. Of that, what does not end at an operation closes no cycle: it
        // only says for what the nodes in between stand.
        let mut edges: Vec<&Edge> = self.edges.iter().collect();
        let is_between = |edge: &Edge| edge.rule.may_be_relaxed && operation(edge.to).is_none();
        edges.sort_by_key(|edge| {
            let relaxed = edge.rule.may_be_relaxed.then_some(edge.rule.number);
            relaxed.map(|number| (number, !is_between(edge)))
        });
        let link = |edge: &&Edge| Link {
            from: edge.from,
            to: edge.to,
            is_membership: is_between(edge),
        };
        let links: Vec<Link> = edges.iter().map(link).collect();
        let Acyclic { kept, left_out } = Acyclic::new(n_operations, n_nodes, &links);
        let relaxed = left_out.into_iter().filter_map(|part| {
            Some(Relaxed::Rule {
                rule: edges[part.link].rule.number,
                earlier: operation(part.from),
                later: operation(part.to)?,
            })
        });
        let kept = kept.into_iter().map(|part| Edge {
            from: part.from,
            to: part.to,
            ..*edges[part.link]
        });
        let mut waits = Waits {
            n_nodes,
            edges: kept.collect(),
            relaxed: relaxed.collect(),
        };
        waits.leave_out_what_nothing_waits_through(n_operations);
        waits
    }

    /// Adds the edges of a rule that follows constraints: from which node, to which, and whether a
    /// failure spreads. `first` has the operation of a stack that what comes behind waits for, `then`
    /// the one that waits. Groups, and stacks with neither, are nodes at which nothing happens.
    fn add(
        &mut self,
        rule: Rule,
        n_nodes: usize,
        constraints: impl Iterator<Item = (u32, u32, bool)>,
        first: impl Fn(usize) -> Option<u32>,
        then: impl Fn(usize) -> Option<u32>,
    ) {
        let n_stacks = self.applies.len();
        let mut next = (self.list.len() + self.n_between)..;
        let nodes: Vec<(Option<u32>, Option<u32>)> = (0..n_nodes)
            .map(|node| {
                let is_stack = node < n_stacks;
                let ends = (
                    is_stack.then(|| first(node)).flatten(),
                    is_stack.then(|| then(node)).flatten(),
                );
                if ends != (None, None) {
                    return ends;
                }
                let between = next.next().and_then(|node| u32::try_from(node).ok());
                let between = between.expect("there are fewer than 2³² nodes");
                (Some(between), Some(between))
            })
            .collect();
        self.n_between = next.start - self.list.len();
        for (from, to, spreads) in constraints {
            if let (Some(from), Some(to)) = (nodes[from as usize].0, nodes[to as usize].1) {
                let spreads_failure = rule.spreads_failure && spreads;
                self.edges.push(Edge {
                    from,
                    to,
                    spreads_failure,
                    rule,
                });
            }
        }
    }
}

impl Waits {
    /// Leaves out nodes that do not lie between two operations, with their edges, and numbers the rest
    /// anew.
    fn leave_out_what_nothing_waits_through(&mut self, n_operations: usize) {
        let pairs = self.edges.iter().map(|edge| (edge.from, edge.to, true));
        let precedence = Precedence::from_edges(n_operations, self.n_nodes, pairs);
        let after = precedence.reached(0..n_operations);
        let before = precedence.reversed().reached(0..n_operations);
        let mut n_nodes = 0;
        let numbers = after.iter().zip(&before).map(|(after, before)| {
            let is_between = *after && *before;
            n_nodes += u32::from(is_between);
            is_between.then(|| n_nodes - 1)
        });
        let numbers: Vec<Option<u32>> = numbers.collect();
        self.edges.retain_mut(|edge| {
            let ends = (numbers[edge.from as usize], numbers[edge.to as usize]);
            let (Some(from), Some(to)) = ends else {
                return false;
            };
            (edge.from, edge.to) = (from, to);
            true
        });
        self.n_nodes = n_nodes as usize;
    }
}

#[cfg(test)]
mod tests;
