//! Runs whose steps depend on what happened before in the same run.
//!
//! A [`Director`] says which steps of a turn are needed when its time has come, and what goes on record of
//! it. This module does not know what it decides by.

use std::cell::RefCell;

use super::event::{Ending, Failure};
use super::execute::{Executor, Settlement, SettlementSender, StepStart, Task, UpcomingStep};
use super::state::Findings;
use super::turn::{Turn, TurnIndex};
use super::workflow::TurnFacts;

/// Decides during a run.
pub trait Director {
    /// Returns whether there is anything to do in a step that is about to start.
    ///
    /// # Errors
    ///
    /// If the attempt fails instead.
    fn is_needed(&mut self, step: &UpcomingStep<'_>) -> Result<bool, Failure>;

    /// Hears how a turn ended, and returns what was found out that goes on record with it; `None` if nothing
    /// but the outcome does.
    fn ended(&mut self, ending: &Ending) -> Option<Findings>;

    /// Hears that a turn was added: the next by number.
    fn added(&mut self, _turn: &Turn) {}

    /// Returns the command of a step of a turn that was added.
    fn task(&mut self, _turn: TurnIndex, _step: usize) -> Result<Task, Failure> {
        unreachable!("who adds turns knows their commands")
    }

    /// Changes the command of a step that a turn began with, by what has happened since.
    fn amend(&self, _turn: TurnIndex, _task: &mut Task) {}

    /// Returns whether a turn that ends now has left undone what nobody has approved.
    fn is_unconfirmed(&self, _turn: TurnIndex) -> bool {
        false
    }

    /// Returns what is known of a turn that has just ended, for policies.
    fn facts(&self, _ending: &Ending) -> TurnFacts {
        TurnFacts::default()
    }
}

/// The director of a run, if it has one. It is asked from two places, one after the other.
pub(super) type SharedDirector<'a, 'd> = &'a RefCell<Option<&'d mut dyn Director>>;

/// Runs the steps that are needed.
pub(super) struct DirectedExecutor<'a, 'd, E> {
    pub(super) executor: E,
    pub(super) director: SharedDirector<'a, 'd>,
}

impl<E: Executor> Executor for DirectedExecutor<'_, '_, E> {
    type Command = E::Command;

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
