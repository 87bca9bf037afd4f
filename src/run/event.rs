//! What a run tells the world: events as they happen, and how each stack ended.

use std::fmt;
use std::time::Duration;

use crate::project::stack::StackIndex;
use crate::record::journal;

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// The command is about to start in a stack.
    Started {
        /// The stack.
        stack: StackIndex,
        /// Which attempt this is, from 1.
        attempt: u32,
    },
    /// An attempt failed, and another one follows.
    Retrying {
        /// The stack.
        stack: StackIndex,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How it failed.
        failure: Failure,
        /// The time it took.
        elapsed: Duration,
        /// The time until the next attempt.
        wait: Duration,
    },
    /// An attempt has taken too long and is interrupted.
    TimedOut {
        /// The stack.
        stack: StackIndex,
        /// How long it may take.
        timeout: Duration,
        /// How long it has now to end by itself.
        grace: Duration,
    },
    /// The run has taken too long: nothing new starts, and what runs is interrupted.
    RunTimedOut {
        /// How long it may take.
        timeout: Duration,
        /// How long commands have now to end by themselves.
        grace: Duration,
        /// The stacks whose command is running.
        running: Vec<StackIndex>,
    },
    /// A command that took too long has not ended after its interrupt, and is killed.
    Killed(StackIndex),
    /// Not all output of an attempt was kept, or shown.
    OutputLost {
        /// The stack.
        stack: StackIndex,
        /// Why.
        problem: String,
    },
    /// `orch` was asked to stop.
    Interrupted {
        /// The number of the signal.
        signal: i32,
        /// What `orch` does about it.
        reaction: Reaction,
        /// The stacks whose command is running.
        running: Vec<StackIndex>,
    },
    /// It is known how a stack ended, or that it will not run.
    Ended(Ending),
}

/// What is done about a signal: each further one is more severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reaction {
    /// Nothing new starts; each running command is interrupted once and may end by itself.
    Interrupt,
    /// The running commands are asked to terminate.
    Terminate,
    /// The running commands are killed.
    Kill,
}

/// How a stack ended, and after how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The stack.
    pub stack: StackIndex,
    /// How it ended.
    pub outcome: Outcome,
    /// The time from the first attempt to the end of the last; zero if it did not run.
    pub elapsed: Duration,
    /// How often its command was started; none if it did not run.
    pub attempts: u32,
}

/// How a stack ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The command exited with 0.
    Succeeded,
    /// The command did not succeed.
    Failed(Failure),
    /// The stack runs after a failed one.
    Skipped {
        /// The failed stack.
        cause: StackIndex,
    },
    /// The run ended before its turn came.
    Cancelled(CancelCause),
}

/// How a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It exited with this status.
    Exited(i32),
    /// It was ended by this signal.
    Signalled(i32),
    /// It took longer than this, and was interrupted for that.
    TimedOut(Duration),
    /// The run took longer than this, and it was interrupted for that.
    RunTimedOut(Duration),
    /// It asked for the terminal, which it does not have, and was interrupted for that.
    WantedTerminal,
    /// It could not be started; the text says why.
    NotStarted(String),
    /// It was started, and how it ended cannot be known; the text says why.
    Lost(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        journal::Failure::from(self).fmt(f)
    }
}

/// Why the run ended before a stack's turn came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelCause {
    /// Another stack failed.
    Failed(StackIndex),
    /// A signal of this number arrived.
    Signal(i32),
    /// The run took longer than this.
    RunTimedOut(Duration),
    /// Nothing was running, and nothing could start: a mistake in `orch`.
    Stuck,
}

/// A run that is over.
#[derive(Debug, Clone, Default)]
pub struct RunSummary {
    /// How each selected stack ended, in the order in which that became known.
    pub endings: Vec<Ending>,
    /// The first signal that arrived.
    pub signal: Option<i32>,
    /// The time from beginning to end.
    pub elapsed: Duration,
}

impl RunSummary {
    /// Says whether everything that was wanted was done.
    pub fn is_success(&self) -> bool {
        let mut outcomes = self.endings.iter().map(|ending| &ending.outcome);
        outcomes.all(|outcome| *outcome == Outcome::Succeeded)
    }

    /// Returns the stacks whose turn never came although nothing stopped the run: a mistake in
    /// `orch`, which must never look like success.
    pub fn stuck(&self) -> impl Iterator<Item = StackIndex> {
        let is_stuck = |ending: &&Ending| ending.outcome == Outcome::Cancelled(CancelCause::Stuck);
        self.endings
            .iter()
            .filter(is_stuck)
            .map(|ending| ending.stack)
    }
}
