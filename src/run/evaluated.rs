//! What policies answered when a turn had ended, and what became of that.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::path::StackPath;
use crate::policy::PolicyOutput;
use crate::run::turn::TurnIndex;

/// The state of a turn, as policies know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnState {
    /// It has not started.
    Queued,
    /// It is asked what it would change.
    Planning,
    /// It would change something, and nobody has approved that: nothing was done.
    Unconfirmed,
    /// The command of a tracked run is running.
    Applying,
    /// The command of a task is running.
    Performing,
    /// It has succeeded.
    Finished,
    Failed,
    /// It was interrupted when the run was.
    Stopped,
    /// It never started, since the plan was not approved.
    Discarded,
    /// It never started, since another one failed.
    Canceled,
    /// It never started, since it runs after a failed one, or the run ended before.
    Skipped,
}

impl TurnState {
    /// All states.
    pub const ALL: [TurnState; 11] = [
        TurnState::Queued,
        TurnState::Planning,
        TurnState::Unconfirmed,
        TurnState::Applying,
        TurnState::Performing,
        TurnState::Finished,
        TurnState::Failed,
        TurnState::Stopped,
        TurnState::Discarded,
        TurnState::Canceled,
        TurnState::Skipped,
    ];

    /// Returns the word that policies know it by.
    pub fn word(self) -> &'static str {
        match self {
            TurnState::Queued => "QUEUED",
            TurnState::Planning => "PLANNING",
            TurnState::Unconfirmed => "UNCONFIRMED",
            TurnState::Applying => "APPLYING",
            TurnState::Performing => "PERFORMING",
            TurnState::Finished => "FINISHED",
            TurnState::Failed => "FAILED",
            TurnState::Stopped => "STOPPED",
            TurnState::Discarded => "DISCARDED",
            TurnState::Canceled => "CANCELED",
            TurnState::Skipped => "SKIPPED",
        }
    }
}

/// What policies have answered to the end of a turn, and what became of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEvaluation {
    /// The turn; none if it was one of a run that this one resumes.
    pub turn: Option<TurnIndex>,
    /// The stack of the turn.
    pub stack: StackPath,
    /// The run of the turn and which turn of its stack it was there, from 1, if that is another run.
    pub earlier: Option<(String, u32)>,
    /// How it ended.
    pub state: TurnState,
    /// What each policy has answered, in the order of their names.
    pub policies: Vec<PolicyAnswer>,
    /// The turns that were added.
    pub queued: Vec<Follow>,
    /// Turns that were to come anyway.
    pub joined: Vec<Follow>,
    /// What was asked for and does not follow.
    pub dropped: Vec<DroppedFollowUp>,
}

impl TurnEvaluation {
    /// Returns whether the run has failed because of this.
    pub fn is_problem(&self) -> bool {
        let mut policies = self.policies.iter();
        let mut dropped = self.dropped.iter();
        policies.any(|policy| policy.problem.is_some() && !policy.is_ignored)
            || dropped.any(|dropped| {
                matches!(
                    dropped.why,
                    WhyDropped::Limit { .. } | WhyDropped::Ambiguous { .. }
                )
            })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyAnswer {
    /// Its name.
    pub policy: String,
    /// What it answered; nothing if it failed.
    pub answer: PolicyOutput,
    /// How it failed, if it did.
    pub problem: Option<String>,
    /// Whether such a failure is no failure of the run.
    pub is_ignored: bool,
    /// How long it took.
    pub elapsed: Duration,
}

/// An error of a policy when a turn ended, or a stack that a policy asks for but that does not
/// follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyProblem {
    /// How bad it is.
    pub severity: ProblemSeverity,
    /// What it is.
    pub text: String,
}

/// The severity of a problem with policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProblemSeverity {
    /// The user asked for it: `--exclude`.
    Note,
    /// It does not fail the run.
    Warning,
    /// It fails the run.
    Error,
}

/// A turn that follows another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    pub turn: TurnIndex,
    pub stack: StackPath,
    /// The policies that ask for it.
    pub policies: Vec<String>,
}

/// Why a turn was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowReason {
    /// The policies that ask for it.
    pub policies: Vec<String>,
    /// The stack of the turn that it follows.
    pub stack: StackPath,
    /// That turn; none if it was one of a run that this one resumes.
    pub after: Option<TurnIndex>,
    /// The run of that turn and which turn of its stack it was there, from 1, if that is another run.
    pub earlier: Option<(String, u32)>,
}

/// What was asked for and does not follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedFollowUp {
    /// What policies have named.
    pub name: String,
    pub policies: Vec<String>,
    /// Why it does not follow.
    pub why: WhyDropped,
}

/// Why something does not follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyDropped {
    /// No stack has that name.
    Unknown,
    /// The name is the id of one stack and the path of another.
    Ambiguous { stacks: [StackPath; 2] },
    /// The run leaves the stack out.
    Excluded,
    /// A setting allows no more.
    Limit {
        setting: &'static str,
        /// How many it allows.
        allowed: u32,
        /// What led to it: `/c ← retry ← /c`.
        chain: String,
    },
}
