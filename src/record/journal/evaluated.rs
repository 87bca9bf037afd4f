//! The answers of policies in a journal.

use serde::{Deserialize, Serialize};

use crate::policy::PolicyOutput;

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
