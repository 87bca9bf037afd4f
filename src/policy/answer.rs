//! The answer of a policy.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// What a policy asks for. Journals record it as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyOutput {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub trigger: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub flag: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub reset_flag: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sample: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prints: Vec<String>,
}
