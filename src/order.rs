//! The order of a selection: the sequence of a serial run, and waves.
//!
//! The rule itself is [`Schedule`]'s; here it is driven with every stack succeeding at once.

use crate::graph::{Graph, Precedence};
use crate::schedule::{OnError, Schedule};
use crate::select::Selection;
use crate::stack::StackIndex;

/// A selection in order.
#[derive(Debug)]
pub struct Order {
    precedence: Precedence,
    /// The selected stacks, in the sequence of a serial run.
    pub sequence: Vec<StackIndex>,
}

/// Which way a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Along the constraints.
    Forward,
    /// Against them: the same sequence from its end.
    Reverse,
}

impl Order {
    /// Orders a selection. No cycle of the graph may touch it; the caller has refused that.
    pub fn new(graph: &Graph, selection: &Selection) -> Self {
        let precedence = Precedence::new(graph);
        let mut schedule = Schedule::new(
            precedence.clone(),
            selection,
            path_ranks(precedence.n_stacks()),
            OnError::Continue,
        );
        let mut sequence = Vec::with_capacity(selection.len());
        while let Some(stack) = schedule.start_next() {
            sequence.push(stack);
            schedule.finish(stack, true);
        }
        assert_eq!(
            sequence.len(),
            selection.len(),
            "every selected stack has its turn"
        );
        Order {
            precedence,
            sequence,
        }
    }

    /// Returns the schedule of a run over the selection. In reverse, constraints are turned round,
    /// and ties are broken so that a serial run is exactly the forward sequence from its end.
    pub fn schedule(
        &self,
        selection: &Selection,
        direction: Direction,
        on_error: OnError,
    ) -> Schedule {
        let n_stacks = self.precedence.n_stacks();
        match direction {
            Direction::Forward => Schedule::new(
                self.precedence.clone(),
                selection,
                path_ranks(n_stacks),
                on_error,
            ),
            Direction::Reverse => {
                let mut rank = vec![0; n_stacks];
                for (&stack, position) in self.sequence.iter().rev().zip(0..) {
                    rank[stack.get()] = position;
                }
                Schedule::new(self.precedence.reversed(), selection, rank, on_error)
            }
        }
    }

    /// Returns the wave of each stack of the sequence, from 0.
    pub fn waves(&self, selection: &Selection) -> Vec<u32> {
        let waves = self.precedence.waves(|stack| selection.contains(stack));
        self.sequence
            .iter()
            .map(|stack| waves[stack.get()])
            .collect()
    }
}

/// Stacks are numbered in path order.
fn path_ranks(n_stacks: usize) -> Vec<u32> {
    (0..).take(n_stacks).collect()
}
