//! Runs whose steps depend on earlier results of the same run.
//!
//! A [`Director`] decides which steps of a turn are needed when the turn is due, and what is recorded of it. This
//! module doesn't know how it decides.

use std::cell::RefCell;

use super::event::{Ending, Failure};
use super::execute::{Executor, Settlement, SettlementSender, StepStart, Task, UpcomingStep};
use super::state::Findings;
use super::turn::{Turn, TurnIndex};
use super::workflow::TurnFacts;

/// Decides during a run.
pub trait Director {
    /// Returns whether a step cannot start yet; see [`Executor::is_held`].
    fn is_held(&mut self, _step: &UpcomingStep<'_>) -> bool {
        false
    }

    /// Returns whether there is anything to do in a step that is about to start. Fails if the
    /// attempt fails instead.
    fn is_needed(&mut self, step: &UpcomingStep<'_>) -> Result<bool, Failure>;

    /// Learns that an attempt has failed, and that another one will follow.
    fn retries(&mut self, _turn: TurnIndex) {}

    /// Receives the result of a turn. Returns the findings to record with it; `None` if only the outcome is recorded.
    fn ended(&mut self, ending: &Ending) -> Option<Findings>;

    /// Receives an added turn: the next by number.
    fn added(&mut self, _turn: &Turn) {}

    /// Returns the command of a step of a turn that was added.
    fn task(&mut self, _turn: TurnIndex, _step: usize) -> Result<Task, Failure> {
        unreachable!("who adds turns knows their commands")
    }

    /// Adapts the command of a step to the results so far.
    fn amend(&self, _turn: TurnIndex, _task: &mut Task) {}

    /// Returns whether a turn ends without doing something that needed approval and had none.
    fn is_unconfirmed(&self, _turn: TurnIndex) -> bool {
        false
    }

    fn facts(&self, _ending: &Ending) -> TurnFacts {
        TurnFacts::default()
    }
}

/// The director of a run, if it has one. Two places ask it, one after the other.
pub(super) type SharedDirector<'a, 'd> = &'a RefCell<Option<&'d mut dyn Director>>;

pub(super) struct DirectedExecutor<'a, 'd, E> {
    pub(super) executor: E,
    pub(super) director: SharedDirector<'a, 'd>,
}

impl<E: Executor> Executor for DirectedExecutor<'_, '_, E> {
    type Command = E::Command;

    fn is_held(&mut self, step: &UpcomingStep<'_>) -> bool {
        match self.director.borrow_mut().as_mut() {
            Some(director) => director.is_held(step),
            None => self.executor.is_held(step),
        }
    }

    fn is_needed(&mut self, step: &UpcomingStep<'_>) -> Result<bool, Failure> {
        match self.director.borrow_mut().as_mut() {
            Some(director) => director.is_needed(step),
            None => self.executor.is_needed(step),
        }
    }

    fn start(&mut self, start: StepStart<'_, E::Command>) -> Result<E::Command, Failure> {
        self.executor.start(start)
    }

    fn is_unconfirmed(&self, turn: TurnIndex) -> bool {
        let director = self.director.borrow();
        director
            .as_ref()
            .is_some_and(|director| director.is_unconfirmed(turn))
    }

    fn settle(&mut self, ending: &Ending, later: SettlementSender) -> Option<Settlement> {
        self.executor.settle(ending, later)
    }
}
