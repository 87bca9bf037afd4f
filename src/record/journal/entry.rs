//! The lines of a journal after the header: one for each transition.
//!
//! They have their own types but for [`PolicyOutput`], so that changes elsewhere in `orch` cannot silently change the
//! format. A later `orch` may add words and kinds within the format. These are preserved, and are no damage.

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::header::Word;
use crate::policy::PolicyOutput;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    pub at: Timestamp,
    /// The number of the stack's turn, from 1; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The operation of that turn; absent if it runs the command of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The number of the step, from 1; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    #[serde(flatten)]
    pub event: Event,
}

impl JournalEntry {
    /// Returns a line about the first turn of a stack, or about the whole run.
    pub fn new(at: Timestamp, event: Event) -> Self {
        JournalEntry {
            at,
            turn: None,
            operation: None,
            step: None,
            event,
        }
    }
}

/// What happened. Stacks are named by their paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A turn was added to those of the header.
    Added {
        stack: String,
        /// Why, if policies ask for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        follows: Option<ReasonRecord>,
    },
    Started {
        stack: String,
        attempt: u32,
    },
    StepStarted {
        stack: String,
    },
    /// An attempt failed, and another one follows.
    Retrying {
        stack: String,
        attempt: u32,
        failure: FailureRecord,
        elapsed_ms: u64,
        wait_ms: u64,
    },
    /// An attempt has taken too long and is interrupted.
    TimedOut {
        stack: String,
        timeout_ms: u64,
        grace_ms: u64,
    },
    RunTimedOut {
        timeout_ms: u64,
        grace_ms: u64,
        running: Vec<String>,
    },
    /// A command that took too long is killed.
    Killed {
        stack: String,
    },
    /// Some output was not stored or shown.
    OutputLost {
        stack: String,
        problem: String,
    },
    /// `orch` was asked to stop.
    Interrupted {
        signal: i32,
        reaction: Word<Reaction>,
        running: Vec<String>,
    },
    /// The result of a stack is known.
    Ended(EndedTurnRecord),
    Evaluated(EvaluatedRecord),
    Finished(Finished),
    /// An unknown kind, with all its fields.
    #[serde(untagged)]
    Other(#[serde(deserialize_with = "unknown_event")] Map<String, Value>),
}

impl Event {
    /// Returns the stack that it is about.
    pub(super) fn stack(&self) -> Option<&str> {
        match self {
            Event::Added { stack, .. }
            | Event::Started { stack, .. }
            | Event::StepStarted { stack }
            | Event::Retrying { stack, .. }
            | Event::TimedOut { stack, .. }
            | Event::Killed { stack }
            | Event::OutputLost { stack, .. } => Some(stack),
            Event::Ended(ended) => Some(&ended.stack),
            Event::Evaluated(evaluated) => Some(&evaluated.stack),
            Event::RunTimedOut { .. }
            | Event::Interrupted { .. }
            | Event::Finished(_)
            | Event::Other(_) => None,
        }
    }
}

/// The words of the events that this version knows.
pub(super) const EVENTS: [&str; 12] = [
    "added",
    "step-started",
    "started",
    "retrying",
    "timed-out",
    "run-timed-out",
    "killed",
    "output-lost",
    "interrupted",
    "ended",
    "evaluated",
    "finished",
];

/// Reads an event of a kind that this version does not know. A known kind only gets here with damaged fields, which
/// is an error: ignoring it could mean running a command twice.
fn unknown_event<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Map<String, Value>, D::Error> {
    let fields = Map::deserialize(deserializer)?;
    match fields.get("event").and_then(Value::as_str) {
        None => Err(D::Error::custom("it has no `event`")),
        Some(word) if EVENTS.contains(&word) => Err(D::Error::custom("its fields are damaged")),
        Some(_) => Ok(fields),
    }
}

/// The reaction to a signal. Each further signal is handled more severely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reaction {
    /// Nothing new starts; each running command is interrupted once and may end by itself.
    Interrupt,
    /// The running commands are asked to terminate.
    Terminate,
    /// The running commands are killed.
    Kill,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedTurnRecord {
    pub stack: String,
    pub outcome: OutcomeRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<CauseRecord>,
    /// The time from the first attempt to the end of the last.
    pub elapsed_ms: u64,
    /// The number of times its command was started.
    pub attempts: u32,
    /// The changes that it made or would make, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangeSummary>,
}

/// The changes that a command made or would make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSummary {
    #[serde(rename = "any")]
    pub has_changes: bool,
    /// The numbers of affected resources, if known.
    #[serde(flatten)]
    pub resources: Option<ResourceCounts>,
}

/// The number of resources for each action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceCounts {
    /// They are created, possibly in place of others.
    pub add: u64,
    /// They are updated in place.
    pub change: u64,
    pub destroy: u64,
    /// They exist, and their management begins.
    pub import: u64,
    /// They exist, and their management ends.
    pub forget: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeRecord {
    Succeeded,
    Failed,
    /// It was added, and would change something that was not approved: nothing was done.
    Unconfirmed,
    /// It runs after a failed stack.
    Skipped,
    /// The run ended before the turn started.
    Cancelled,
    #[serde(untagged)]
    Other(String),
}

impl OutcomeRecord {
    pub fn word(&self) -> &str {
        match self {
            OutcomeRecord::Succeeded => "succeeded",
            OutcomeRecord::Failed => "failed",
            OutcomeRecord::Unconfirmed => "unconfirmed",
            OutcomeRecord::Skipped => "skipped",
            OutcomeRecord::Cancelled => "cancelled",
            OutcomeRecord::Other(word) => word,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FailureRecord {
    Exited {
        status: i32,
    },
    Signalled {
        signal: i32,
    },
    /// It exited as if it had succeeded.
    Interrupted {
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
    Refused {
        problem: String,
    },
    Condition {
        problem: String,
    },
    WantedTerminal,
    Lost {
        problem: String,
    },
    #[serde(untagged)]
    Other(Value),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CauseRecord {
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
    Rejected,
    StateLost,
    Stuck,
    /// It succeeded because another run had done it before.
    Done {
        /// That run, or its work order, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
    },
    #[serde(untagged)]
    Other(Value),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    pub status: u8,
    /// The time from beginning to end.
    pub elapsed_ms: u64,
    #[serde(flatten)]
    pub counts: Counts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub succeeded: usize,
    pub failed: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unconfirmed: usize,
    pub skipped: usize,
    pub cancelled: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Counts {
    pub fn total(&self) -> usize {
        self.succeeded + self.failed + self.unconfirmed + self.skipped + self.cancelled
    }

    pub fn add(&mut self, outcome: &OutcomeRecord) {
        match outcome {
            OutcomeRecord::Succeeded => self.succeeded += 1,
            OutcomeRecord::Failed => self.failed += 1,
            OutcomeRecord::Skipped => self.skipped += 1,
            OutcomeRecord::Cancelled => self.cancelled += 1,
            OutcomeRecord::Unconfirmed => self.unconfirmed += 1,
            OutcomeRecord::Other(_) => {}
        }
    }
}

/// The answers of policies to the end of a turn, and their effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluatedRecord {
    pub stack: String,
    /// The run of the turn, if that is one that this run resumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// How the turn ended, in the words of policies.
    pub state: String,
    pub policies: Vec<PolicyAnswer>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued: Vec<FollowRecord>,
    /// Turns that would have run anyway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<FollowRecord>,
    /// Requested follow-ups that do not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedRecord>,
}

/// The answer of one policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyAnswer {
    pub policy: String,
    /// Its answer; empty if it failed.
    #[serde(flatten)]
    pub answer: PolicyOutput,
    /// How it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether its failure doesn't fail the run.
    #[serde(skip)]
    pub is_ignored: bool,
    pub elapsed_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowRecord {
    pub stack: String,
    /// The number of its stack's turn, from 1; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    pub policies: Vec<String>,
}

/// A requested follow-up that does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedRecord {
    pub name: String,
    pub policies: Vec<String>,
    /// The reason: `unknown`, `excluded`, or the setting with the limit.
    pub why: String,
    /// The chain that led to it, if a limit is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonRecord {
    pub policies: Vec<String>,
    pub stack: String,
    /// The run of that turn, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The number of its stack's turn, from 1; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
}
