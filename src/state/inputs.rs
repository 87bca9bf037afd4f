//! The recorded inputs of stacks: digests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// The version of the rules for inputs, and a digest of the settings behind them.
    pub rules: String,
    /// The digest of everything that counts.
    pub digest: String,
    /// Digests of its parts, only for explanations.
    #[serde(default)]
    pub parts: BTreeMap<String, String>,
    /// The remaining inputs without those of `ignore_changes`, if it excludes any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedInputs>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The inputs of a stack without those that its `ignore_changes` excludes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedInputs {
    /// The entries of the list, sorted.
    pub ignored: Vec<String>,
    pub digest: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
