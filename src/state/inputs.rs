//! What stacks were made of, as it is on record: digests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a stack was made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// The version of the rules that decide what counts, and a digest of the settings behind them.
    pub rules: String,
    /// The digest of everything that counts.
    pub digest: String,
    /// Digests of its parts, which only explain.
    #[serde(default)]
    pub parts: BTreeMap<String, String>,
    /// What was left without what `ignore_changes` left out, if that left out anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedInputs>,
    /// What this program does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What is left of the inputs of a stack without those that its `ignore_changes` leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedInputs {
    /// The entries of the list, sorted.
    pub ignored: Vec<String>,
    /// The digest of what is left.
    pub digest: String,
    /// What this program does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
