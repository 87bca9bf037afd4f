//! The history of a document: its writes, who made them, and how many stacks each changed.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many writes the history remembers.
pub(super) const KEPT_HISTORY: usize = 200;

/// A write that changed entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The serial that the document got.
    pub serial: u64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: String,
    /// The run, if it was one.
    pub run: Option<String>,
    /// What was done: the action of a run, or a command of `orch state`.
    pub what: String,
    /// Why, in the user's words.
    pub reason: Option<String>,
    /// How many stacks were applied.
    pub applied: usize,
    /// How many failed.
    pub failed: usize,
    /// How many were destroyed.
    pub destroyed: usize,
    /// What this program does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
