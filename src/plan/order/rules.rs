//! The rules of the order: functions that add edges between operations.
//!
//! A(s) applies a stack s, D(s) destroys it.

use std::collections::{BTreeSet, HashSet};

use super::acyclic::{Acyclic, OrderLink};
use super::recorded::Users;
use super::{RelaxedEdge, StackOperation, StackWork};
use crate::run::turn::Operation;
use crate::selection::graph::Precedence;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    /// Of two rules that may be relaxed, the lower number takes precedence.
    pub(super) number: u8,
    /// Whether a failure of the first operation fails the second.
    pub(super) spreads_failure: bool,
    /// Whether an edge is dropped if it closes a cycle. All other edges form none.
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

    const fn relaxable(number: u8) -> Self {
        Rule {
            may_be_relaxed: true,
            ..Rule::strict(number)
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RuleEdge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) spreads_failure: bool,
    rule: Rule,
}

pub(super) struct Waits {
    /// The number of nodes; operations come first.
    pub(super) n_nodes: usize,
    pub(super) edges: Vec<RuleEdge>,
    pub(super) relaxed: Vec<RelaxedEdge>,
}

/// The operations of a plan, and the edges from the rules.
pub(super) struct Operations {
    /// In tie-breaking order. They are the first nodes.
    pub(super) list: Vec<StackOperation>,
    /// The empty nodes after them: the node of the constraints behind each.
    between: Vec<u32>,
    edges: Vec<RuleEdge>,
    applies: Vec<Option<u32>>,
    destroys: Vec<Option<u32>>,
    /// D(s) of stacks that the apply may have to replace, by stack: right before A(s).
    late_destroys: Vec<Option<u32>>,
}

impl Operations {
    /// Lists the operations: by stack, D(s) before A(s).
    pub(super) fn new(works: &[StackWork], late: &BTreeSet<usize>) -> Self {
        let mut list = Vec::new();
        let mut add = |is_wanted: bool, stack, operation| {
            is_wanted.then(|| {
                let node = number(list.len());
                list.push(StackOperation { stack, operation });
                node
            })
        };
        let mut destroys = Vec::with_capacity(works.len());
        let mut applies = Vec::with_capacity(works.len());
        let mut late_destroys = Vec::with_capacity(works.len());
        for (stack, work) in works.iter().enumerate() {
            let destroy = add(work.destroy, stack, Operation::Destroy);
            let is_late = late.contains(&stack);
            late_destroys.push(destroy.filter(|_| is_late));
            destroys.push(destroy.filter(|_| !is_late));
            applies.push(add(work.apply, stack, Operation::Apply));
        }
        Operations {
            list,
            between: Vec::new(),
            edges: Vec::new(),
            applies,
            destroys,
            late_destroys,
        }
    }

    /// Returns the first operation of a stack that is applied.
    fn begins(&self, stack: usize) -> Option<u32> {
        let late = self.late_destroys.get(stack).copied().flatten();
        late.or_else(|| self.applies.get(stack).copied().flatten())
    }

    /// Rule 1: A(d) before A(s), if s runs after d in this commit.
    pub(super) fn apply_dependencies_first(&mut self, tree: &Precedence) {
        let edges = (0..tree.n_nodes()).zip(0..).flat_map(|(node, from)| {
            let successors = tree.successors(node).iter();
            successors.map(move |to| (from, to.node, to.spreads_failure))
        });
        let applies = self.applies.clone();
        let begins: Vec<Option<u32>> = (0..applies.len()).map(|it| self.begins(it)).collect();
        // Its groups have the numbers of removed stacks.
        let of_tree = |node: usize| node < tree.n_stacks();
        let apply = |node: usize| of_tree(node).then(|| applies[node]).flatten();
        let begin = |node: usize| of_tree(node).then(|| begins[node]).flatten();
        self.add(Rule::strict(1), tree.n_nodes(), edges, apply, begin);
    }

    /// Rule 2: D(s) before D(d), if s ran after d when it was recorded.
    pub(super) fn destroy_users_first(&mut self, users: &Users) {
        let destroys = self.destroys.clone();
        let destroy = |node: usize| destroys.get(node).copied().flatten();
        self.add_of_users(Rule::strict(2), users, destroy, destroy);
    }

    /// Rule 3: D(s) before A(s).
    pub(super) fn destroy_before_replacement(&mut self) {
        let rule = Rule::strict(3);
        let destroys = self
            .destroys
            .iter()
            .zip(&self.late_destroys)
            .map(|(destroy, late)| destroy.or(*late));
        for (destroy, apply) in destroys.zip(&self.applies) {
            if let (Some(from), &Some(to)) = (destroy, apply) {
                self.edges.push(RuleEdge {
                    from,
                    to,
                    spreads_failure: rule.spreads_failure,
                    rule,
                });
            }
        }
    }

    /// Rule 3 reversed, if s is created first: A(s) before D(o), where o is the old generation.
    pub(super) fn apply_before_destroying_old_generation(
        &mut self,
        created_first: &[(usize, usize)],
    ) {
        let rule = Rule::strict(3);
        for &(made, old) in created_first {
            if let (Some(from), Some(to)) = (self.applies[made], self.destroys[old]) {
                self.edges.push(RuleEdge {
                    from,
                    to,
                    spreads_failure: rule.spreads_failure,
                    rule,
                });
            }
        }
    }

    /// Rule 4: A(s) before D(d), if s ran after d when it was recorded, directly or through kept
    /// stacks, and d is not replaced. A kept stack stops using d before d is destroyed. That
    /// includes an s that is replaced: if A(s) fails, its old configuration can still be restored.
    pub(super) fn apply_users_before_destroy(&mut self, users: &Users) {
        let (applies, destroys) = (self.applies.clone(), self.destroys.clone());
        let apply = |node: usize| applies.get(node).copied().flatten();
        let destroy = |node: usize| destroys.get(node).copied().flatten();
        let only_destroy = |node: usize| destroy(node).filter(|_| apply(node).is_none());
        let rule = Rule::relaxable(4);
        // A kept stack leads on to the stacks that it ran after, through an empty node of its own.
        let mut passed = vec![None; users.n_nodes];
        for (node, passed) in passed.iter_mut().enumerate() {
            if let Some(from) = apply(node) {
                let to = number(self.list.len() + self.between.len());
                self.between.push(number(node));
                *passed = Some(to);
                self.edges.push(RuleEdge {
                    from,
                    to,
                    spreads_failure: rule.spreads_failure,
                    rule,
                });
            }
        }
        let passed = |node: usize| passed[node];
        self.add_of_users(rule, users, passed, |node| {
            only_destroy(node).or_else(|| passed(node))
        });
    }

    /// Rule 5: D(s) before A(d), if s ran after d when it was recorded: nothing changes below a
    /// stack that is about to be destroyed. Failures do not spread, or a failed destroy would block
    /// all changes to d. A generation that is created beside the old one changes nothing that was
    /// in use.
    pub(super) fn destroy_users_before_change(
        &mut self,
        users: &Users,
        created_first: &[(usize, usize)],
    ) {
        let rule = Rule {
            spreads_failure: false,
            ..Rule::relaxable(5)
        };
        let destroys = self.destroys.clone();
        let begins: Vec<Option<u32>> = (0..destroys.len()).map(|it| self.begins(it)).collect();
        let apply = |node: usize| begins.get(node).copied().flatten();
        let destroy = |node: usize| destroys.get(node).copied().flatten();
        let made: HashSet<usize> = created_first.iter().map(|(made, _)| *made).collect();
        let changes = |node: usize| apply(node).filter(|_| !made.contains(&node));
        self.add_of_users(rule, users, destroy, changes);
    }

    /// Returns the dependencies without edges that close a cycle.
    pub(super) fn waits(&self) -> Waits {
        let n_operations = self.list.len();
        let n_nodes = n_operations + self.between.len();
        let operation = |node: u32| self.list.get(node as usize).copied();
        // Edges that may be dropped come last. Those that do not end at an operation close no
        // cycle: they only connect empty nodes.
        let mut edges: Vec<&RuleEdge> = self.edges.iter().collect();
        let is_between = |edge: &RuleEdge| edge.rule.may_be_relaxed && operation(edge.to).is_none();
        edges.sort_by_key(|edge| {
            let relaxed = edge.rule.may_be_relaxed.then_some(edge.rule.number);
            relaxed.map(|number| (number, !is_between(edge)))
        });
        let link = |edge: &&RuleEdge| OrderLink {
            from: edge.from,
            to: edge.to,
            is_membership: is_between(edge),
        };
        let links: Vec<OrderLink> = edges.iter().map(link).collect();
        let Acyclic { kept, left_out } = Acyclic::new(n_operations, n_nodes, &links);
        let recorded = |node: u32| match operation(node) {
            Some(operation) => number(operation.stack),
            None => self.between[node as usize - n_operations],
        };
        let relaxed = left_out.into_iter().map(|part| RelaxedEdge::Rule {
            rule: edges[part.link].rule.number,
            user: recorded(part.from),
            used: recorded(part.to),
        });
        // One stack may refer to another in several ways.
        let mut is_reported = HashSet::new();
        let relaxed = relaxed.filter(|relaxed| is_reported.insert(*relaxed));
        let kept = kept.into_iter().map(|part| RuleEdge {
            from: part.from,
            to: part.to,
            ..*edges[part.link]
        });
        let mut waits = Waits {
            n_nodes,
            edges: kept.collect(),
            relaxed: relaxed.collect(),
        };
        waits.drop_idle_nodes(n_operations);
        waits
    }

    /// Adds the edges of a rule from each stack to those that it used: see [`Self::add`].
    fn add_of_users(
        &mut self,
        rule: Rule,
        users: &Users,
        first: impl Fn(usize) -> Option<u32>,
        then: impl Fn(usize) -> Option<u32>,
    ) {
        let edges = users.pairs.iter().map(|&(used, user)| (user, used, true));
        self.add(rule, users.n_nodes, edges, first, then);
    }

    /// Adds the edges of a rule along constraints, given as from, to, and whether a failure
    /// spreads. `first` has the operation of a stack that others wait for, `then` the one that
    /// waits. Groups, and stacks with neither, become empty nodes.
    fn add(
        &mut self,
        rule: Rule,
        n_nodes: usize,
        constraints: impl Iterator<Item = (u32, u32, bool)>,
        first: impl Fn(usize) -> Option<u32>,
        then: impl Fn(usize) -> Option<u32>,
    ) {
        let nodes: Vec<(Option<u32>, Option<u32>)> = (0..n_nodes)
            .map(|node| {
                let ends = (first(node), then(node));
                if ends != (None, None) {
                    return ends;
                }
                let between = Some(number(self.list.len() + self.between.len()));
                self.between.push(number(node));
                (between, between)
            })
            .collect();
        for (from, to, spreads) in constraints {
            if let (Some(from), Some(to)) = (nodes[from as usize].0, nodes[to as usize].1) {
                let spreads_failure = rule.spreads_failure && spreads;
                self.edges.push(RuleEdge {
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
    /// Drops nodes that do not lie between two operations, and renumbers the rest.
    fn drop_idle_nodes(&mut self, n_operations: usize) {
        let pairs = self.edges.iter().map(|edge| (edge.from, edge.to, true));
        let precedence = Precedence::from_edges(n_operations, self.n_nodes, pairs);
        let after = precedence.reached(0..n_operations);
        let before = precedence.reversed().reached(0..n_operations);
        let mut n_nodes = 0;
        let numbers: Vec<Option<u32>> = after
            .iter()
            .zip(&before)
            .map(|(after, before)| {
                let is_between = *after && *before;
                n_nodes += u32::from(is_between);
                is_between.then(|| n_nodes - 1)
            })
            .collect();
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

fn number(node: usize) -> u32 {
    u32::try_from(node).expect("there are fewer than 2³² nodes")
}

#[cfg(test)]
mod tests;
