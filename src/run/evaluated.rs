//! The answers of policies to the end of a turn, and their effect.

use serde::{Deserialize, Serialize};

use crate::path::StackPath;
use crate::record::journal::PolicyAnswer;
pub use crate::record::journal::TurnState;
use crate::run::turn::TurnIndex;

/// The answers of policies to the end of a turn, and their effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEvaluation {
    /// The turn; none if it was one of a run that this one resumes.
    pub turn: Option<TurnIndex>,
    pub stack: StackPath,
    /// The run of the turn and which turn of its stack it was there, from 1, if that is another run.
    pub earlier: Option<(String, u32)>,
    pub state: TurnState,
    /// The answer of each policy, by policy name.
    pub policies: Vec<PolicyAnswer>,
    pub queued: Vec<Follow>,
    /// Turns that would have run anyway.
    pub joined: Vec<Follow>,
    /// Requested follow-ups that do not run.
    pub dropped: Vec<DroppedFollowUp>,
}

impl TurnEvaluation {
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

/// An error of a policy, or a stack that a policy requests but that does not follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyProblem {
    pub severity: ProblemSeverity,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProblemSeverity {
    /// The user asked for it, with `--exclude`.
    Note,
    /// It does not fail the run.
    Warning,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    pub turn: TurnIndex,
    pub stack: StackPath,
    pub policies: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowReason {
    pub policies: Vec<String>,
    pub stack: StackPath,
    /// That turn; none if it was one of a run that this one resumes.
    pub after: Option<TurnIndex>,
    /// The run of that turn and which turn of its stack it was there, from 1, if that is another run.
    pub earlier: Option<(String, u32)>,
}

/// A requested follow-up that does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedFollowUp {
    pub name: String,
    pub policies: Vec<String>,
    pub why: WhyDropped,
}

/// Why something does not follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyDropped {
    Unknown,
    /// The name is the id of one stack and the path of another.
    Ambiguous {
        stacks: [StackPath; 2],
    },
    Excluded,
    /// A setting allows no more.
    Limit {
        setting: &'static str,
        allowed: u32,
        /// The chain that led to it: `/c ← retry ← /c`.
        chain: String,
    },
}
