//! The further lines of a journal: one for each transition.
//!
//! They have types of their own, so that a change of the events cannot silently change the format.
//! Kinds of things that a later `orch` may add within the format are read as [`Event::Other`] and the
//! like.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::read::Counts;
use crate::project::stack::{StackIndex, Stacks};
use crate::run::event::{self, CancelCause, Ending, Reaction, RunEvent, RunSummary};

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened. Stacks go by their paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(
    missing_docs,
    reason = "the fields are those of `RunEvent`, times in ms"
)]
pub enum Event {
    /// The command is about to start; attempts count from 1.
    Started { stack: String, attempt: u32 },
    /// An attempt failed, and another one follows.
    Retrying {
        stack: String,
        attempt: u32,
        failure: Failure,
        elapsed_ms: u64,
        wait_ms: u64,
    },
    /// An attempt has taken too long and is interrupted.
    TimedOut {
        stack: String,
        timeout_ms: u64,
        grace_ms: u64,
    },
    /// The run has taken too long.
    RunTimedOut {
        timeout_ms: u64,
        grace_ms: u64,
        running: Vec<String>,
    },
    /// A command that took too long is killed.
    Killed { stack: String },
    /// Not all output was kept, or shown.
    OutputLost { stack: String, problem: String },
    /// `orch` was asked to stop.
    Interrupted {
        signal: i32,
        reaction: Reaction,
        running: Vec<String>,
    },
    /// It is known how a stack ended.
    Ended(Ended),
    /// The run is over.
    Finished(Finished),
    /// Something that this version does not know.
    #[serde(other)]
    Other,
}

/// How a stack ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The stack.
    pub stack: String,
    /// How it ended.
    pub outcome: Outcome,
    /// How it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Why it did not run, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The time from the first attempt to the end of the last.
    pub elapsed_ms: u64,
    /// How often its command was started.
    pub attempts: u32,
}

/// How a stack ended, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the words of `event::Outcome`")]
pub enum Outcome {
    Succeeded,
    Failed,
    Skipped,
    Cancelled,
    /// One that this version does not know.
    #[serde(other)]
    Other,
}

impl Outcome {
    /// Returns the word.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed => "failed",
            Outcome::Skipped => "skipped",
            Outcome::Cancelled => "cancelled",
            Outcome::Other => "unknown",
        }
    }
}

/// How a command failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the cases of `event::Failure`, times in ms")]
pub enum Failure {
    Exited {
        status: i32,
    },
    Signalled {
        signal: i32,
    },
    TimedOut {
        timeout_ms: u64,
    },
    RunTimedOut {
        timeout_ms: u64,
    },
    NotStarted {
        problem: String,
    },
    WantedTerminal,
    Lost {
        problem: String,
    },
    /// One that this version does not know.
    #[serde(other)]
    Other,
}

/// Why a stack did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[expect(
    missing_docs,
    reason = "the cases of `event::CancelCause`, times in ms"
)]
pub enum Cause {
    /// Another stack failed; a skipped one runs after it.
    Failed {
        stack: String,
    },
    Signal {
        signal: i32,
    },
    RunTimedOut {
        timeout_ms: u64,
    },
    Stuck,
    /// One that this version does not know.
    #[serde(other)]
    Other,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// The exit status of `orch`.
    pub status: u8,
    /// The time from beginning to end.
    pub elapsed_ms: u64,
    /// How many stacks ended in which way.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Returns a duration in whole milliseconds.
pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Event {
    /// Returns what a journal has of an event of the run loop.
    pub fn new(event: &RunEvent, stacks: &Stacks) -> Self {
        let path = |stack: StackIndex| stacks[stack].path.to_string();
        let paths = |of: &[StackIndex]| of.iter().copied().map(path).collect();
        match event {
            RunEvent::Started { stack, attempt } => Event::Started {
                stack: path(*stack),
                attempt: *attempt,
            },
            RunEvent::Retrying {
                stack,
                attempt,
                failure,
                elapsed,
                wait,
            } => Event::Retrying {
                stack: path(*stack),
                attempt: *attempt,
                failure: failure.into(),
                elapsed_ms: milliseconds(*elapsed),
                wait_ms: milliseconds(*wait),
            },
            RunEvent::TimedOut {
                stack,
                timeout,
                grace,
            } => Event::TimedOut {
                stack: path(*stack),
                timeout_ms: milliseconds(*timeout),
                grace_ms: milliseconds(*grace),
            },
            RunEvent::RunTimedOut {
                timeout,
                grace,
                running,
            } => Event::RunTimedOut {
                timeout_ms: milliseconds(*timeout),
                grace_ms: milliseconds(*grace),
                running: paths(running),
            },
            RunEvent::Killed(stack) => Event::Killed {
                stack: path(*stack),
            },
            RunEvent::OutputLost { stack, problem } => Event::OutputLost {
                stack: path(*stack),
                problem: problem.clone(),
            },
            RunEvent::Interrupted {
                signal,
                reaction,
                running,
            } => Event::Interrupted {
                signal: *signal,
                reaction: *reaction,
                running: paths(running),
            },
            RunEvent::Ended(ending) => Event::Ended(Ended::new(ending, stacks)),
        }
    }
}

impl Finished {
    /// Returns what a journal has of the end of a run, given the exit status of `orch`.
    pub fn new(summary: &RunSummary, status: u8) -> Self {
        let mut counts = Counts::default();
        for ending in &summary.endings {
            counts.add(match ending.outcome {
                event::Outcome::Succeeded => Outcome::Succeeded,
                event::Outcome::Failed(_) => Outcome::Failed,
                event::Outcome::Skipped { .. } => Outcome::Skipped,
                event::Outcome::Cancelled(_) => Outcome::Cancelled,
            });
        }
        Finished {
            status,
            elapsed_ms: milliseconds(summary.elapsed),
            counts,
        }
    }
}

impl Ended {
    fn new(ending: &Ending, stacks: &Stacks) -> Self {
        let path = |stack: StackIndex| stacks[stack].path.to_string();
        let (outcome, failure, cause) = match &ending.outcome {
            event::Outcome::Succeeded => (Outcome::Succeeded, None, None),
            event::Outcome::Failed(failure) => (Outcome::Failed, Some(failure.into()), None),
            event::Outcome::Skipped { cause } => {
                let stack = path(*cause);
                (Outcome::Skipped, None, Some(Cause::Failed { stack }))
            }
            event::Outcome::Cancelled(cause) => {
                let cause = match *cause {
                    CancelCause::Failed(stack) => Cause::Failed { stack: path(stack) },
                    CancelCause::Signal(signal) => Cause::Signal { signal },
                    CancelCause::RunTimedOut(timeout) => Cause::RunTimedOut {
                        timeout_ms: milliseconds(timeout),
                    },
                    CancelCause::Stuck => Cause::Stuck,
                };
                (Outcome::Cancelled, None, Some(cause))
            }
        };
        Ended {
            stack: path(ending.stack),
            outcome,
            failure,
            cause,
            elapsed_ms: milliseconds(ending.elapsed),
            attempts: ending.attempts,
        }
    }
}

impl From<&event::Failure> for Failure {
    fn from(failure: &event::Failure) -> Self {
        match failure {
            event::Failure::Exited(status) => Failure::Exited { status: *status },
            event::Failure::Signalled(signal) => Failure::Signalled { signal: *signal },
            event::Failure::TimedOut(timeout) => Failure::TimedOut {
                timeout_ms: milliseconds(*timeout),
            },
            event::Failure::RunTimedOut(timeout) => Failure::RunTimedOut {
                timeout_ms: milliseconds(*timeout),
            },
            event::Failure::NotStarted(problem) => Failure::NotStarted {
                problem: problem.clone(),
            },
            event::Failure::WantedTerminal => Failure::WantedTerminal,
            event::Failure::Lost(problem) => Failure::Lost {
                problem: problem.clone(),
            },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = match self {
            Failure::Exited { status } => event::Failure::Exited(*status),
            Failure::Signalled { signal } => event::Failure::Signalled(*signal),
            Failure::TimedOut { timeout_ms } => {
                event::Failure::TimedOut(Duration::from_millis(*timeout_ms))
            }
            Failure::RunTimedOut { timeout_ms } => {
                event::Failure::RunTimedOut(Duration::from_millis(*timeout_ms))
            }
            Failure::NotStarted { problem } => event::Failure::NotStarted(problem.clone()),
            Failure::WantedTerminal => event::Failure::WantedTerminal,
            Failure::Lost { problem } => event::Failure::Lost(problem.clone()),
            Failure::Other => return f.write_str("for a reason that this orch does not know"),
        };
        known.fmt(f)
    }
}
