//! The events of a run, and the results of its turns.
//!
//! A [`Sink`] shows or stores events. This module doesn't know which sinks exist.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::ops::Index;
use std::sync::Arc;
use std::time::Duration;

use crate::path::StackPath;
use crate::record::journal::ChangeSummary;
pub use crate::record::journal::Reaction;
use crate::run::evaluated::{FollowReason, TurnEvaluation};
use crate::run::turn::{Turn, TurnIndex};

/// Shows or stores events of a run.
pub trait Sink {
    /// Takes the next event. Fails if it cannot be stored; the run continues and informs the other
    /// sinks.
    fn event(&mut self, event: &RunEvent) -> io::Result<()>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// The run has begun: the first event.
    RunStarted {
        /// The turns it begins with, in the sequence of a serial run.
        turns: Arc<[Turn]>,
    },
    Added {
        turn: TurnIndex,
        added: Turn,
        /// Why, if policies ask for it.
        follows: Option<FollowReason>,
    },
    /// The first step of a turn is about to start.
    Started {
        turn: TurnIndex,
        /// Which attempt this is, from 1.
        attempt: u32,
    },
    /// A further step of the attempt is about to start.
    StepStarted {
        turn: TurnIndex,
        /// Its position among the steps of the turn.
        step: usize,
    },
    /// An attempt failed, and another one follows.
    Retrying {
        turn: TurnIndex,
        /// The attempt that failed, from 1.
        attempt: u32,
        failure: Failure,
        elapsed: Duration,
        /// The time until the next attempt.
        wait: Duration,
    },
    /// An attempt has taken too long and is interrupted.
    TimedOut {
        turn: TurnIndex,
        /// How long it may take.
        timeout: Duration,
        /// How long it has to end by itself.
        grace: Duration,
    },
    /// A command has asked for the terminal, which it does not have, and is interrupted.
    WantsTerminal {
        turn: TurnIndex,
        /// How long it has to end by itself.
        grace: Duration,
    },
    /// The run has taken too long: nothing new starts, and what runs is interrupted.
    RunTimedOut {
        /// How long it may take.
        timeout: Duration,
        /// How long commands have to end by themselves.
        grace: Duration,
        running: Vec<TurnIndex>,
    },
    /// A command that took too long has not ended after its interrupt, and is killed.
    Killed(TurnIndex),
    /// Some output of an attempt was not stored or shown.
    OutputLost {
        turn: TurnIndex,
        problem: String,
    },
    /// `orch` was asked to stop.
    Interrupted {
        /// The number of the signal.
        signal: i32,
        /// What `orch` does about it.
        reaction: Reaction,
        running: Vec<TurnIndex>,
        is_evaluating: bool,
    },
    /// The result of a turn is known, or that it will not run.
    Ended(Ending),
    Evaluated(Arc<TurnEvaluation>),
    /// Events can no longer be stored; the text says where, and why.
    NotKept(String),
    /// The run is over: the last event.
    RunFinished(Arc<RunSummary>),
}

/// How a turn ended, and after how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    pub turn: TurnIndex,
    pub outcome: Outcome,
    /// The time from the first attempt to the end of the last; zero if it did not run.
    pub elapsed: Duration,
    /// How often its command was started; none if it did not run.
    pub attempts: u32,
    /// The changes that it made, or would make, if it succeeded and they are known.
    pub changes: Option<ChangeSummary>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Succeeded,
    /// A step did not succeed.
    Failed(Failure),
    /// It was added and has unapproved changes, so nothing was done.
    Unconfirmed,
    /// It comes after a failed one.
    Skipped {
        cause: TurnIndex,
    },
    /// The run ended before it could start.
    Cancelled(CancelCause),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    Exited(i32),
    /// It was ended by this signal.
    Signalled(i32),
    /// It was interrupted because of this signal, and exited as if it had succeeded.
    Interrupted(i32),
    /// It took longer than this, and was interrupted for that.
    TimedOut(Duration),
    /// The run took longer than this, and it was interrupted for that.
    RunTimedOut(Duration),
    /// It asked for the terminal, which it does not have, and was interrupted for that.
    WantedTerminal,
    /// It could not be started; the text says why.
    NotStarted(String),
    /// It did not run, because something forbids it; the text says what.
    Refused(String),
    /// A condition of the stack does not hold; the text says which, without a secret.
    Condition(String),
    /// It was started, and how it ended cannot be known; the text says why.
    Lost(String),
}

impl Failure {
    /// Returns whether the command was started.
    pub fn may_have_effect(&self) -> bool {
        !matches!(
            self,
            Failure::NotStarted(_) | Failure::Refused(_) | Failure::Condition(_)
        )
    }
}

/// Why the run ended before a turn could start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelCause {
    Failed(TurnIndex),
    Signal(i32),
    /// The run took longer than this.
    RunTimedOut(Duration),
    /// The plan was not approved.
    Rejected,
    /// The state can no longer be written.
    StateLost,
    /// Nothing was running, and nothing could start: a mistake in `orch`.
    Stuck,
}

impl CancelCause {
    /// Returns whether turns that answer a failure still start.
    pub fn is_answered(self) -> bool {
        matches!(self, CancelCause::Failed(_) | CancelCause::Rejected)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct RunSummary {
    /// How each turn ended, in the order in which that became known.
    pub endings: Vec<Ending>,
    /// Failed turns that do not count, since another turn was added in their place.
    pub replaced: BTreeSet<TurnIndex>,
    /// The first signal that arrived.
    pub signal: Option<i32>,
    /// The time from beginning to end.
    pub elapsed: Duration,
    /// Whether the exit status shows whether there are changes.
    pub detailed_exit_code: bool,
    /// Whether there were changes in a run that this one resumes.
    pub had_changes: bool,
    /// Whether some results could not be recorded in the state.
    pub is_state_lost: bool,
    /// Whether the run kept an old generation because only the user may allow its destruction.
    pub is_refused: bool,
    /// Whether a policy failed, or a limit dropped a follow-up.
    pub has_policy_problem: bool,
    /// The exit status if every turn succeeds: other than 0 if the plan left out stacks with work.
    pub left_out_status: u8,
}

impl RunSummary {
    /// Returns whether everything that was requested is done.
    pub fn is_success(&self) -> bool {
        self.has_ended_well() && !self.has_policy_problem
    }

    /// Returns whether every turn succeeded, was left unconfirmed, or was replaced by another one.
    pub fn has_ended_well(&self) -> bool {
        self.undone().next().is_none()
    }

    /// Returns how the other turns ended, in the order in which that became known.
    pub fn undone(&self) -> impl Iterator<Item = &Ending> {
        self.endings.iter().filter(|ending| {
            !matches!(ending.outcome, Outcome::Succeeded | Outcome::Unconfirmed)
                && !self.replaced.contains(&ending.turn)
        })
    }

    /// Returns whether a turn made or would make changes, as far as is known. Counts turns of a run that this one
    /// resumes.
    pub fn has_changes(&self) -> bool {
        let mut changes = self.endings.iter().filter_map(|ending| ending.changes);
        self.had_changes || changes.any(|changes| changes.has_changes)
    }

    /// Returns the exit status of `orch` after this run: 0 if everything was done, or 2 if there are
    /// changes and the exit status shows them; 1 if a command failed; 4 if something was refused; 128 + n if signal
    /// n ended the run, whatever the commands returned; and 5 if the state was lost, or after a mistake in `orch` itself.
    pub fn exit_status(&self) -> u8 {
        match self.status_of_turns() {
            0 => self.left_out_status,
            status => status,
        }
    }

    /// Returns the exit status without regard to stacks that the plan left out.
    pub fn status_of_turns(&self) -> u8 {
        match self.signal {
            _ if self.stuck().next().is_some() => 5,
            Some(signal) => 128 + u8::try_from(signal).unwrap_or(127),
            None if self.is_state_lost => 5,
            None if self.is_success() && self.is_refused => 4,
            None if self.is_success() && self.detailed_exit_code && self.has_changes() => 2,
            None if self.is_success() => 0,
            None => 1,
        }
    }

    /// Returns the turns that never started although nothing stopped the run: a mistake in `orch`,
    /// which must never look like success.
    pub fn stuck(&self) -> impl Iterator<Item = TurnIndex> {
        let is_stuck = |ending: &&Ending| ending.outcome == Outcome::Cancelled(CancelCause::Stuck);
        let stuck = self.endings.iter().filter(is_stuck);
        stuck.map(|ending| ending.turn)
    }
}

/// The turns of a run, as its events report them.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    all: Vec<Turn>,
    /// Which turn of its stack each is, from 1.
    positions: Vec<u32>,
    /// How many turns each stack has.
    counts: HashMap<StackPath, u32>,
}

impl Turns {
    /// Adds the turns of an event.
    pub fn follow(&mut self, event: &RunEvent) {
        match event {
            RunEvent::RunStarted { turns } => *self = turns.iter().cloned().collect(),
            RunEvent::Added { added, .. } => self.add(added.clone()),
            _ => {}
        }
    }

    fn add(&mut self, turn: Turn) {
        let count = self.counts.entry(turn.stack.clone()).or_default();
        *count += 1;
        self.positions.push(*count);
        self.all.push(turn);
    }

    /// Returns which turn of its stack a turn is, from 1.
    pub fn position_at_stack(&self, turn: TurnIndex) -> u32 {
        self.positions[turn.get()]
    }

    /// Returns all of them by number.
    pub fn iter(&self) -> impl Iterator<Item = (TurnIndex, &Turn)> {
        let numbered = self.all.iter().enumerate();
        numbered.map(|(number, turn)| (TurnIndex::new(number), turn))
    }
}

impl FromIterator<Turn> for Turns {
    fn from_iter<I: IntoIterator<Item = Turn>>(turns: I) -> Self {
        let mut all = Turns::default();
        turns.into_iter().for_each(|turn| all.add(turn));
        all
    }
}

impl Index<TurnIndex> for Turns {
    type Output = Turn;

    fn index(&self, turn: TurnIndex) -> &Turn {
        &self.all[turn.get()]
    }
}
