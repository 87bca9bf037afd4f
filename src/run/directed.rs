//! Runs whose steps depend on earlier results of the same run.
//!
//! A [`Director`] decides which steps of a turn are needed when the turn is due, and what is recorded of it. This
//! module doesn't know how it decides.

use std::cell::RefCell;
use std::rc::Rc;

use super::event::{Ending, Failure, Outcome, Reaction};
use super::execute::{
    Commands, Control, Executor, Running, Settlement, SettlementSender, Signal, StateAlarm,
    StepStart, Task, UpcomingStep,
};
use super::following::PolicyThread;
use super::state::{Findings, OpenIntent, RunState};
use super::turn::{Step, Turn, TurnIndex};
use super::workflow::TurnFacts;
use crate::state::job_lease::JobLease;

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

    /// Returns whether a turn has applied changes; see [`Executor::applies_changes`].
    fn applies_changes(&self, _turn: TurnIndex) -> bool {
        false
    }

    /// Returns whether the run kept an old generation because only the user may allow its destruction.
    fn has_refused(&self) -> bool {
        false
    }

    fn facts(&self, _ending: &Ending) -> TurnFacts {
        TurnFacts::default()
    }
}

/// Runs the steps of turns: the director decides which are needed, the state confirms intents before commands start, and
/// policies decide the effect of ends.
pub(super) struct TurnExecutor<'a, 'd> {
    pub(super) commands: Commands<'a>,
    pub(super) state: Option<Rc<RunState>>,
    /// The lease of the job, and the alarm that ends the run when it is lost. Nothing starts without it.
    pub(super) lease: Option<(&'a JobLease, StateAlarm)>,
    /// Shared with the task closure of the executor, which borrows it after this has given it back.
    pub(super) director: &'a RefCell<Option<&'d mut dyn Director>>,
    pub(super) following: &'a RefCell<Option<PolicyThread>>,
}

/// A step that is running.
pub(super) enum RunningStep {
    Command(Running),
    /// An intent that is not confirmed yet, with the previous command, whose log continues.
    Question(OpenIntent, Option<Running>),
}

impl Executor for TurnExecutor<'_, '_> {
    type Command = RunningStep;

    fn is_held(&mut self, step: &UpcomingStep<'_>) -> bool {
        if let Some((lease, alarm)) = &self.lease
            && let Some(why) = lease.lost()
        {
            alarm.ring(&why);
            return true;
        }
        let mut director = self.director.borrow_mut();
        director.as_mut().is_some_and(|it| it.is_held(step))
    }

    fn is_needed(&mut self, step: &UpcomingStep<'_>) -> Result<bool, Failure> {
        let mut director = self.director.borrow_mut();
        director.as_mut().map_or(Ok(true), |it| it.is_needed(step))
    }

    fn start(&mut self, mut start: StepStart<'_, RunningStep>) -> Result<RunningStep, Failure> {
        let previous = start.previous.take().and_then(|previous| match previous {
            RunningStep::Command(running) => Some(running),
            RunningStep::Question(_, before) => before,
        });
        let turn = start.index;
        if let Some(state) = &self.state
            && start.turn.steps.get(start.step) == Some(&Step::Confirmation)
        {
            let question = state.ask(turn, start.end);
            return Ok(RunningStep::Question(question, previous));
        }
        let running = self.commands.start(start, previous)?;
        if let Some(state) = &self.state {
            state.started(turn);
        }
        Ok(RunningStep::Command(running))
    }

    fn is_unconfirmed(&self, turn: TurnIndex) -> bool {
        let director = self.director.borrow();
        director.as_ref().is_some_and(|it| it.is_unconfirmed(turn))
    }

    fn applies_changes(&self, turn: TurnIndex) -> bool {
        let director = self.director.borrow();
        director.as_ref().is_some_and(|it| it.applies_changes(turn))
    }

    fn has_refused(&self) -> bool {
        let director = self.director.borrow();
        director.as_ref().is_some_and(|it| it.has_refused())
    }

    fn settle(&mut self, ending: &Ending, later: SettlementSender) -> Option<Settlement> {
        match self.following.borrow_mut().as_mut() {
            Some(following) => following.ended(ending, later),
            None => Some(Settlement::by_itself(ending.outcome == Outcome::Succeeded)),
        }
    }
}

impl Control for RunningStep {
    fn react(&self, reaction: Reaction, signal: Option<&Signal>) -> bool {
        match self {
            RunningStep::Command(running) => running.react(reaction, signal),
            RunningStep::Question(question, _) => {
                question.withdraw();
                true
            }
        }
    }
}
