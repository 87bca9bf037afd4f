//! The order of a selection: the sequence of a serial run.
//!
//! [`Schedule`] has the rule; here every stack succeeds at once.

use crate::project::stack::StackIndex;
pub use crate::record::journal::Direction;
use crate::run::schedule::{OnError, Schedule};
use crate::selection::graph::{Graph, Precedence};
use crate::selection::select::Selection;

/// The stacks of a run in order.
pub struct RunOrder {
    precedence: Precedence,
    /// Breaks ties, by stack: the lowest runs first.
    rank: Vec<u32>,
    /// The stacks, in the sequence of a serial run.
    pub sequence: Vec<StackIndex>,
}

impl RunOrder {
    /// Orders a selection. No cycle of the graph may touch it; the caller has refused that.
    pub fn new(graph: &Graph, selection: &Selection) -> Self {
        let precedence = Precedence::new(graph);
        let rank = (0..).take(precedence.n_stacks()).collect(); // numbered in path order
        RunOrder::ranked(precedence, rank, selection.stacks())
    }

    /// Keeps the sequence of an earlier run, or a part of it, as tie-break. New constraints of the graph come first.
    /// No cycle may touch the stacks.
    pub fn recorded(graph: &Graph, sequence: &[StackIndex]) -> Self {
        let precedence = Precedence::new(graph);
        let n_stacks = precedence.n_stacks();
        let mut rank: Vec<u32> = (0..).skip(sequence.len()).take(n_stacks).collect();
        for (&stack, position) in sequence.iter().zip(0..) {
            rank[stack.get()] = position;
        }
        RunOrder::ranked(precedence, rank, sequence.iter().copied())
    }

    fn ranked(
        precedence: Precedence,
        rank: Vec<u32>,
        stacks: impl Iterator<Item = StackIndex>,
    ) -> Self {
        let stacks: Vec<StackIndex> = stacks.collect();
        let mut schedule = Schedule::new(precedence.clone(), ranked_nodes(&stacks, &rank));
        let mut sequence = Vec::new();
        while let Some(turn) = schedule.start_next() {
            sequence.push(stacks[turn.get()]);
            schedule.finish(turn, true);
            schedule.settle(turn, true);
        }
        assert!(schedule.is_over(), "every selected stack has its turn");
        RunOrder {
            precedence,
            rank,
            sequence,
        }
    }

    /// Returns the tie-break of a stack: the lowest runs first. In the order of an earlier run, stacks that it lacks
    /// come last.
    pub fn rank(&self, stack: StackIndex) -> u32 {
        self.rank[stack.get()]
    }

    /// Returns the stacks in the sequence of a serial run in this direction. Turns are numbered like this.
    pub fn sequence_of_turns(&self, direction: Direction) -> Vec<StackIndex> {
        let mut sequence = self.sequence.clone();
        if direction == Direction::Reverse {
            sequence.reverse();
        }
        sequence
    }

    /// Returns the constraints of a run in this direction: pairs of positions in `stacks`, the earlier stack first.
    /// Intermediate nodes have positions beyond the end of `stacks`.
    pub fn edges(&self, direction: Direction, stacks: &[StackIndex]) -> Vec<(usize, usize)> {
        let n_nodes = self.precedence.n_nodes();
        let mut number = vec![None; n_nodes];
        for (position, stack) in stacks.iter().enumerate() {
            number[stack.get()] = Some(position);
        }
        let selected = number.clone();
        let is_between = |precedence: &Precedence| {
            let mut is_reached = vec![false; n_nodes];
            let mut open: Vec<usize> = stacks.iter().map(|stack| stack.get()).collect();
            while let Some(from) = open.pop() {
                for successor in precedence.successors(from) {
                    let to = successor.node as usize;
                    if selected[to].is_none() && !std::mem::replace(&mut is_reached[to], true) {
                        open.push(to);
                    }
                }
            }
            is_reached
        };
        let after = is_between(&self.precedence);
        let before = is_between(&self.precedence.reversed());
        let mut next = stacks.len()..;
        for node in 0..n_nodes {
            if after[node] && before[node] {
                number[node] = next.next();
            }
        }
        let mut edges = Vec::new();
        for from in 0..n_nodes {
            for successor in self.precedence.successors(from) {
                if let (Some(from), Some(to)) = (number[from], number[successor.node as usize]) {
                    edges.push(match direction {
                        Direction::Forward => (from, to),
                        Direction::Reverse => (to, from),
                    });
                }
            }
        }
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// Returns what happens after a failure.
    ///
    /// In reverse, a stack runs before its dependencies, as when they are destroyed. If a stack could not be
    /// destroyed, its dependencies must be kept: after a failure they do not run, even with [`OnError::Continue`].
    pub fn on_error(direction: Direction, wanted: OnError) -> OnError {
        match (direction, wanted) {
            (Direction::Reverse, OnError::Continue) => OnError::SkipDependents,
            (_, wanted) => wanted,
        }
    }

    /// Returns the schedule of a run, with the turns of [`Self::sequence_of_turns`]; the node of a stack is its
    /// index. In reverse, constraints are reversed, and ties are broken so that a serial run is exactly the forward
    /// sequence from its end.
    pub fn schedule(&self, direction: Direction, on_error: OnError) -> Schedule {
        let stacks = self.sequence_of_turns(direction);
        let on_error = Self::on_error(direction, on_error);
        match direction {
            Direction::Forward => {
                let turns = ranked_nodes(&stacks, &self.rank);
                Schedule::new(self.precedence.clone(), turns).on_error(on_error)
            }
            Direction::Reverse => {
                let rank = positions(stacks.iter(), self.precedence.n_stacks());
                let turns = ranked_nodes(&stacks, &rank);
                Schedule::new(self.precedence.reversed(), turns).on_error(on_error)
            }
        }
    }
}

fn ranked_nodes(stacks: &[StackIndex], rank: &[u32]) -> impl Iterator<Item = (usize, u32)> {
    let nodes = stacks.iter().map(|stack| stack.get());
    nodes.map(|node| (node, rank[node]))
}

/// Returns the position of each stack in a sequence; 0 for those that are not in it.
fn positions<'s>(sequence: impl Iterator<Item = &'s StackIndex>, n_stacks: usize) -> Vec<u32> {
    let mut positions = vec![0; n_stacks];
    for (&stack, position) in sequence.zip(0..) {
        positions[stack.get()] = position;
    }
    positions
}
