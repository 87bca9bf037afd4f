//! The history of a document: its writes, their authors, and their effects on stacks.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The serial that the document got.
    pub serial: u64,
    pub at: Timestamp,
    pub by: String,
    pub run: Option<String>,
    /// The action of a run, or a command of `orch state`.
    pub what: String,
    /// Why, in the user's words.
    pub reason: Option<String>,
    pub applied: usize,
    pub failed: usize,
    pub destroyed: usize,
    #[serde(default, skip_serializing_if = "WrittenStacks::is_empty")]
    pub stacks: WrittenStacks,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The stacks of a write, by path. All removed entries are named, because nothing else mentions them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WrittenStacks {
    /// The first of those that were applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<String>,
    /// The first of those that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destroyed: Vec<String>,
    /// Those whose entries a command has changed or added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Those whose entries a command has removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

impl WrittenStacks {
    fn is_empty(&self) -> bool {
        *self == WrittenStacks::default()
    }
}
