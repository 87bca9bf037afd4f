//! What policies have answered, as a journal has it.

use serde::{Deserialize, Serialize};

/// What policies have answered to the end of a turn, and what became of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluatedRecord {
    pub stack: String,
    /// The run of the turn, if that is one that this run resumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// How the turn ended, in the words of policies.
    pub state: String,
    pub policies: Vec<PolicyRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued: Vec<FollowRecord>,
    /// Turns that were to come anyway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<FollowRecord>,
    /// What was asked for and does not follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRecord {
    pub policy: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trigger: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flag: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reset_flag: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sample: bool,
    /// The output of `print`, a text for each call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prints: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    pub elapsed_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowRecord {
    pub stack: String,
    /// Which turn of that it is, from 1; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    pub policies: Vec<String>,
}

/// What was asked for and does not follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedRecord {
    /// What policies have named.
    pub name: String,
    pub policies: Vec<String>,
    /// Why: `unknown`, `excluded`, or the setting that allows no more.
    pub why: String,
    /// What led to it, if a setting allows no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonRecord {
    pub policies: Vec<String>,
    /// The stack of the turn that it follows.
    pub stack: String,
    /// The run of that turn, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Which turn of that it is, from 1; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
}
