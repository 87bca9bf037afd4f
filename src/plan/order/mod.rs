//! The order of a plan: applies and destroys, each after those that it must wait for.
//!
//! Each rule is a function that adds edges between operations. Edges hold through stacks without
//! work and through groups, which become empty nodes. Recorded constraints and relaxable rules
//! apply unless they close a cycle; dropped edges are reported.

mod acyclic;
mod recorded;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

pub use self::recorded::{NamedConstraints, RecordNode, RecordedConstraints, RecordedEdge};
use self::rules::{Operations, RuleEdge, Waits};
use crate::run::schedule::{CoveringTurn, Schedule};
use crate::run::turn::{Operation, TurnIndex};
use crate::selection::graph::Precedence;

/// The work on a stack: if both, it is replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackWork {
    pub destroy: bool,
    pub apply: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackOperation {
    pub stack: usize,
    /// [`Operation::Apply`] or [`Operation::Destroy`].
    pub operation: Operation,
}

/// An edge that was dropped because it would have closed a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RelaxedEdge {
    /// A recorded constraint that newer ones contradict.
    Recorded(RecordedEdge),
    /// An edge of a rule that earlier rules contradict, between nodes of the recorded constraints.
    Rule {
        /// 4: the user is applied before the used stack is destroyed; 5: the user is destroyed
        /// before the used stack is applied.
        rule: u8,
        /// The dependent stack, or its group if there are too many.
        user: u32,
        used: u32,
    },
}

/// Replaced stacks that are not destroyed before any stack changes that they run after.
#[derive(Debug, Clone, Default)]
pub struct ReplacementOrder {
    /// Stacks that are created before the old ones are destroyed: the number of each, and of the
    /// old generation, which is not in this commit. No other stack that one of them runs after may
    /// be replaced.
    pub created_first: Vec<(usize, usize)>,
    /// Stacks that the apply may have to replace: each is destroyed right before it is recreated.
    pub late: BTreeSet<usize>,
}

#[derive(Debug)]
pub struct OperationOrder {
    pub sequence: Vec<StackOperation>,
    /// The dependencies. The first nodes are the operations in sequence; the others are empty.
    pub precedence: Precedence,
    /// The dropped edges: recorded constraints first, then rules.
    pub relaxed: Vec<RelaxedEdge>,
    /// Breaks ties by position in the sequence: lowest first.
    ranks: Vec<u32>,
}

impl OperationOrder {
    /// Orders the work on stacks. `tree` is the precedence of this commit, `recorded` that of the
    /// state. Both number the stacks of this commit first, in path order. `recorded` continues with
    /// removed stacks, which can only be destroyed. Both may have groups after their stacks. Panics
    /// if they are about other stacks.
    pub fn new(works: &[StackWork], tree: &Precedence, recorded: &RecordedConstraints) -> Self {
        OperationOrder::with_ties(
            works,
            tree,
            recorded,
            &ReplacementOrder::default(),
            |stack| stack,
        )
    }

    /// Like [`Self::new`], for stacks that are not all numbered in path order: `ties` has the
    /// position of each in it. Panics like [`Self::new`].
    pub fn with_ties(
        works: &[StackWork],
        tree: &Precedence,
        recorded: &RecordedConstraints,
        replacements: &ReplacementOrder,
        ties: impl Fn(usize) -> usize,
    ) -> Self {
        let ReplacementOrder {
            created_first,
            late,
        } = replacements;
        let n_stacks = works.len();
        assert!(tree.n_stacks() <= n_stacks, "one numbering for all");
        assert!(recorded.n_stacks >= n_stacks, "one numbering for all");
        let mut removed = works[tree.n_stacks()..].iter();
        assert!(
            !removed.any(|work| work.apply),
            "removed stacks cannot be applied"
        );
        let (users, mut relaxed) = recorded.acyclic();
        let mut operations = Operations::new(works, late);
        operations.apply_dependencies_first(tree);
        operations.destroy_users_first(&users);
        operations.destroy_before_replacement();
        operations.apply_before_destroying_old_generation(created_first);
        operations.apply_users_before_destroy(&users);
        operations.destroy_users_before_change(&users, created_first);
        let waits = operations.waits();
        relaxed.extend_from_slice(&waits.relaxed);
        OperationOrder::of(&operations.list, &waits, relaxed, ties)
    }

    /// Puts operations in sequence; of those that are ready, the lowest tie is first.
    fn of(
        list: &[StackOperation],
        waits: &Waits,
        relaxed: Vec<RelaxedEdge>,
        ties: impl Fn(usize) -> usize,
    ) -> Self {
        let n_operations = list.len();
        let mut by_tie: Vec<usize> = (0..n_operations).collect();
        by_tie.sort_by_key(|&operation| (ties(list[operation].stack), operation));
        let mut rank_of: Vec<u32> = vec![0; n_operations];
        for (operation, rank) in by_tie.into_iter().zip(0..) {
            rank_of[operation] = rank;
        }
        let count = waits.n_nodes;
        let edges = &waits.edges;
        let number = |edge: &RuleEdge| (edge.from, edge.to, edge.spreads_failure);
        let precedence = Precedence::from_edges(n_operations, count, edges.iter().map(number));
        let turns = rank_of.iter().copied().enumerate();
        let mut schedule = Schedule::new(precedence, turns);
        let mut order = Vec::with_capacity(n_operations);
        let mut positions: Vec<u32> = (0..).take(count).collect();
        for position in 0.. {
            let Some(turn) = schedule.start_next() else {
                break;
            };
            positions[turn.get()] = position;
            order.push(turn.get());
            schedule.finish(turn, true);
            schedule.settle(turn, true);
        }
        assert!(schedule.is_over(), "every operation has its turn");
        let edges = edges.iter().map(|edge| {
            let place = |node: u32| positions[node as usize];
            (place(edge.from), place(edge.to), edge.spreads_failure)
        });
        OperationOrder {
            sequence: order.iter().map(|&operation| list[operation]).collect(),
            precedence: Precedence::from_edges(n_operations, count, edges),
            relaxed,
            ranks: order.iter().map(|&operation| rank_of[operation]).collect(),
        }
    }

    /// Returns the schedule of a run to which operations may be added for any stack of this commit,
    /// and the node of its first stack; the others follow. An operation belongs to the node of its
    /// stack. An added one waits for applies of the stacks that its own runs after, and their
    /// dependents wait for it. It waits for a destroy only if that has started. Panics if `tree` is
    /// about other stacks.
    pub fn schedule_with_stacks(&self, tree: &Precedence) -> (Schedule, usize) {
        let base = self.precedence.n_nodes();
        let all = |precedence: &Precedence, first: usize| {
            let mut edges = Vec::new();
            for node in 0..precedence.n_nodes() {
                let successors = precedence.successors(node).iter();
                edges.extend(successors.map(|to| {
                    let shifted = |node: usize| u32::try_from(node + first).unwrap_or(u32::MAX);
                    let ends = (shifted(node), shifted(to.node as usize));
                    (ends.0, ends.1, to.spreads_failure)
                }));
            }
            edges
        };
        let edges = [all(&self.precedence, 0), all(tree, base)].concat();
        let n_nodes = base + tree.n_nodes();
        let n_operations = self.sequence.len();
        let precedence = Precedence::from_edges(n_operations, n_nodes, edges.into_iter());
        let mut elsewhere: BTreeMap<usize, Vec<CoveringTurn>> = BTreeMap::new();
        for (number, operation) in self.sequence.iter().enumerate() {
            if operation.stack < tree.n_stacks() {
                let turns = elsewhere.entry(base + operation.stack).or_default();
                turns.push(CoveringTurn {
                    turn: TurnIndex::new(number),
                    is_loose: operation.operation == Operation::Destroy,
                });
            }
        }
        let ranked = self.ranks.iter().copied().enumerate();
        let schedule = Schedule::new(precedence, ranked).needing(self.destroys());
        (schedule.with_elsewhere(elsewhere), base)
    }

    /// Returns the ranks of added operations, by stack: after those of the stack and of lower
    /// paths.
    pub fn ranks_of_stacks(&self, n_stacks: usize) -> Vec<u32> {
        let mut last = vec![None; n_stacks];
        for (operation, rank) in self.sequence.iter().zip(&self.ranks) {
            if let Some(last) = last.get_mut(operation.stack) {
                *last = (*last).max(Some(*rank));
            }
        }
        let mut highest = 0;
        let ranks = last.into_iter().map(|own: Option<u32>| {
            highest = own.map_or(highest, |own| highest.max(own));
            highest
        });
        ranks.collect()
    }

    /// Returns the schedule of a run. Its turns and nodes have the numbers of the sequence.
    pub fn schedule(&self) -> Schedule {
        let ranked = self.ranks.iter().copied().enumerate();
        Schedule::new(self.precedence.clone(), ranked).needing(self.destroys())
    }

    /// Returns the turns that destroy. What could not be destroyed may still need what comes after it.
    fn destroys(&self) -> impl Iterator<Item = TurnIndex> {
        let turns = self.sequence.iter().enumerate();
        let destroys = turns.filter(|(_, it)| it.operation == Operation::Destroy);
        destroys.map(|(number, _)| TurnIndex::new(number))
    }
}
