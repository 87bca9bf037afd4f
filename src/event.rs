//! What a run tells the world: events as they happen, and how each stack ended.

use std::fmt;
use std::time::Duration;

use crate::stack::StackIndex;

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// The command is about to start in a stack.
    Started(StackIndex),
    /// It is known how a stack ended, or that it will not run.
    Ended(Ending),
    /// `orch` was asked to stop.
    Interrupted {
        /// The number of the signal.
        signal: i32,
        /// What `orch` does about it.
        reaction: Reaction,
        /// The stacks whose command is running.
        running: Vec<StackIndex>,
    },
}

/// What is done about a signal: each further one is more severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reaction {
    /// Nothing new starts; the running command may end by itself.
    Wait,
    /// The running command is asked to terminate.
    Terminate,
    /// The running command is killed.
    Kill,
}

/// How a stack ended, and after how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The stack.
    pub stack: StackIndex,
    /// How it ended.
    pub outcome: Outcome,
    /// The time its command took; zero if it did not run.
    pub elapsed: Duration,
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
    /// It could not be started; the text says why.
    NotStarted(String),
    /// It was started, and how it ended cannot be known; the text says why.
    Lost(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Exited(status) => write!(f, "exit status {status}"),
            Failure::Signalled(signal) => write!(f, "ended by signal {signal}"),
            Failure::NotStarted(why) => write!(f, "could not be started: {why}"),
            Failure::Lost(why) => write!(f, "its end is unknown: {why}"),
        }
    }
}

/// Why the run ended before a stack's turn came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelCause {
    /// Another stack failed.
    Failed(StackIndex),
    /// A signal of this number arrived.
    Signal(i32),
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
    /// Says whether a command failed.
    pub fn has_failures(&self) -> bool {
        let mut outcomes = self.endings.iter().map(|ending| &ending.outcome);
        outcomes.any(|outcome| matches!(outcome, Outcome::Failed(_)))
    }
}
