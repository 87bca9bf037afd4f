//! A turn that has been started and has not ended.

use std::time::Instant;

use super::{Control, Signal};
use crate::record::journal::ChangeSummary;
use crate::run::event::{Failure, Reaction};
use crate::run::turn::TurnIndex;

/// A turn that has been started and has not ended.
pub(super) struct ActiveTurn<C> {
    pub(super) stage: TurnStage,
    pub(super) phase: Phase<C>,
}

/// A turn whose next step cannot start yet.
pub(super) struct HeldTurn<C> {
    pub(super) turn: TurnIndex,
    pub(super) stage: TurnStage,
    /// The command of the step before.
    pub(super) previous: Option<C>,
}

#[derive(Clone, Copy)]
pub(super) struct TurnStage {
    pub(super) begun: Instant,
    /// The latest attempt, from 1, and when it began.
    pub(super) attempt: u32,
    pub(super) attempt_begun: Instant,
    /// The latest step of that attempt.
    pub(super) step: usize,
    pub(super) has_started: bool,
    pub(super) has_command: bool,
    /// The latest changes that a step of that attempt reported.
    pub(super) changes: Option<ChangeSummary>,
}

pub(super) enum Phase<C> {
    Running {
        command: C,
        is_interrupted: bool,
        /// Why the command is interrupted, if not because of a signal.
        overdue: Option<Failure>,
    },
    /// The next attempt is yet to come; the last one failed like this.
    Waiting(Failure),
}

impl<C> ActiveTurn<C> {
    /// Returns whether this attempt is running, and if a step is given, that step.
    pub(super) fn is_running(&self, attempt: u32, step: Option<usize>) -> bool {
        self.stage.attempt == attempt
            && step.is_none_or(|step| step == self.stage.step)
            && matches!(self.phase, Phase::Running { .. })
    }

    /// Returns whether it is running and may still succeed.
    pub(super) fn is_on_time(&self, attempt: u32, step: Option<usize>) -> bool {
        self.is_running(attempt, step) && self.overdue().is_none()
    }

    /// Returns whether its command may have been interrupted.
    pub(super) fn is_interrupted(&self) -> bool {
        matches!(
            self.phase,
            Phase::Running {
                is_interrupted: true,
                ..
            }
        )
    }

    /// Returns why its command is interrupted, if not because of a signal.
    pub(super) fn overdue(&self) -> Option<Failure> {
        match &self.phase {
            Phase::Running { overdue, .. } => overdue.clone(),
            Phase::Waiting(_) => None,
        }
    }
}

impl<C: Control> Phase<C> {
    pub(super) fn running(command: C) -> Self {
        Phase::Running {
            command,
            is_interrupted: false,
            overdue: None,
        }
    }

    pub(super) fn into_command(self) -> Option<C> {
        match self {
            Phase::Running { command, .. } => Some(command),
            Phase::Waiting(_) => None,
        }
    }

    /// Interrupts, at most once, terminates or kills the command, if one is running.
    pub(super) fn react(&mut self, reaction: Reaction, signal: Option<&Signal>) {
        let Phase::Running {
            command,
            is_interrupted,
            ..
        } = self
        else {
            return;
        };
        if reaction != Reaction::Interrupt || !*is_interrupted {
            *is_interrupted |= command.react(reaction, signal);
        }
    }
}
