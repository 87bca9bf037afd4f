//! The one order of a plan: what is brought forward and what is destroyed, each after what it has to
//! wait for.
//!
//! Each rule is a function that adds edges between operations. Its edges hold through stacks without
//! work and through groups, which become nodes at which nothing happens. What is on record, and what a
//! rule asks for that may be relaxed, counts as far as it closes no cycle; what is left out is told.

mod acyclic;
mod recorded;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

pub use self::recorded::{Record, Recorded, RecordedEdge};
use self::rules::{Edge, Operations, Waits};
use crate::run::schedule::{Elsewhere, Schedule};
use crate::run::turn::{Operation, TurnIndex};
use crate::selection::graph::Precedence;

/// What a plan does with one stack; with both, the stack is replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// What the stack stands for is destroyed.
    pub destroy: bool,
    /// What the stack stands for is brought forward.
    pub apply: bool,
}

/// An operation of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackOperation {
    /// The number of the stack.
    pub stack: usize,
    /// [`Operation::Apply`] or [`Operation::Destroy`].
    pub operation: Operation,
}

/// What was left out, since it would have closed a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relaxed {
    /// A constraint on record: newer ones contradict it.
    Recorded(RecordedEdge),
    /// What a rule asks for: the rules before it contradict it. The nodes are those of the constraints on
    /// record.
    Rule {
        /// The number of the rule. 4: the user is brought forward before what it used is destroyed; 5: the
        /// user is destroyed before what it used is brought forward.
        rule: u8,
        /// The stack that ran after the other; all of a group, where its stacks are too many to tell.
        user: u32,
        /// The stack that it ran after.
        used: u32,
    },
}

/// Stacks that are replaced in another order than to be destroyed before anything that they run after changes.
#[derive(Debug, Clone, Default)]
pub struct Turnarounds {
    /// Those that are made anew before the old ones are destroyed: the number of each, and that of the old one, which is
    /// not in the tree. No other stack that one of them runs after in the tree may be destroyed and brought forward.
    pub made_first: Vec<(usize, usize)>,
    /// Those of which it is known only when their time has come: each is destroyed right before it is made anew.
    pub late: BTreeSet<usize>,
}

/// The operations of a plan in one order.
#[derive(Debug)]
pub struct Order {
    /// The operations, in the sequence of a serial run in which each succeeds.
    pub sequence: Vec<StackOperation>,
    /// What waits for what. The first nodes are the operations of the sequence; at the others nothing
    /// happens.
    pub precedence: Precedence,
    /// What was left out: first what is on record, then what rules ask for.
    pub relaxed: Vec<Relaxed>,
    /// Breaks ties, by position in the sequence: the lower goes first.
    ranks: Vec<u32>,
}

impl Order {
    /// Orders the work on stacks. `tree` is what the tree says runs after what, and `recorded` the same on
    /// record. Both number the stacks of the tree first, in path order. The latter goes on with stacks that
    /// are not in the tree; there may be work on them, too, which can only be to destroy them. Both may have
    /// groups beyond their stacks.
    ///
    /// # Panics
    ///
    /// If the constraints are not over these stacks.
    pub fn new(works: &[Work], tree: &Precedence, recorded: &Recorded) -> Self {
        Order::with_ties(works, tree, recorded, &Turnarounds::default(), |stack| {
            stack
        })
    }

    /// Does what [`Self::new`] does for stacks that are not all numbered in path order: `ties` has the place
    /// of each in that. `turnarounds` are stacks that are replaced in another order than others.
    ///
    /// # Panics
    ///
    /// As [`Self::new`] does.
    pub fn with_ties(
        works: &[Work],
        tree: &Precedence,
        recorded: &Recorded,
        turnarounds: &Turnarounds,
        ties: impl Fn(usize) -> usize,
    ) -> Self {
        let Turnarounds { made_first, late } = turnarounds;
        let n_stacks = works.len();
        assert!(tree.n_stacks() <= n_stacks, "one numbering for all");
        assert!(recorded.n_stacks >= n_stacks, "one numbering for all");
        let mut gone = works[tree.n_stacks()..].iter();
        assert!(!gone.any(|work| work.apply), "nobody says how to make it");
        let (users, mut relaxed) = recorded.acyclic();
        let mut operations = Operations::new(works, late);
        operations.apply_what_is_needed_first(tree);
        operations.destroy_users_first(&users);
        operations.destroy_before_the_replacement();
        operations.apply_before_the_old_one_goes(made_first);
        operations.apply_users_before_what_goes(&users);
        operations.destroy_users_before_a_change(&users, made_first);
        let waits = operations.waits();
        relaxed.extend_from_slice(&waits.relaxed);
        Order::of(&operations.list, &waits, relaxed, ties)
    }

    /// Puts operations in the sequence that is asked for. They are listed by stack; of those that may come
    /// next, the one comes whose stack has the lowest tie.
    fn of(
        list: &[StackOperation],
        waits: &Waits,
        relaxed: Vec<Relaxed>,
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
        let number = |edge: &Edge| (edge.from, edge.to, edge.spreads_failure);
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
        Order {
            sequence: order.iter().map(|&operation| list[operation]).collect(),
            precedence: Precedence::from_edges(n_operations, count, edges),
            relaxed,
            ranks: order.iter().map(|&operation| rank_of[operation]).collect(),
        }
    }

    /// Returns the schedule of a run of the operations in which others may be added for any stack of the tree, and
    /// the node of its first stack: those of the others follow. An operation counts for the node of its stack. What
    /// is added waits for what brings forward the stacks that its own runs after, and is waited for likewise; for
    /// what destroys a stack it waits only if that has started.
    ///
    /// # Panics
    ///
    /// If the constraints of the tree are not over the stacks that were ordered.
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
        let mut elsewhere: BTreeMap<usize, Vec<Elsewhere>> = BTreeMap::new();
        for (number, operation) in self.sequence.iter().enumerate() {
            if operation.stack < tree.n_stacks() {
                let turns = elsewhere.entry(base + operation.stack).or_default();
                turns.push(Elsewhere {
                    turn: TurnIndex::new(number),
                    is_loose: operation.operation == Operation::Destroy,
                });
            }
        }
        let ranked = self.ranks.iter().copied().enumerate();
        let schedule = Schedule::new(precedence, ranked);
        (schedule.with_elsewhere(elsewhere), base)
    }

    /// Returns what breaks ties between something that is added for a stack and the operations, by stack: it goes
    /// after those of stacks that come before its own in path order, and of its own.
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

    /// Returns the schedule of a run of the operations. Its turns are numbered as the sequence is, and so
    /// are their nodes.
    pub fn schedule(&self) -> Schedule {
        let ranked = self.ranks.iter().copied().enumerate();
        Schedule::new(self.precedence.clone(), ranked)
    }
}
