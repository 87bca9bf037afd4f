//! Recorded generations of stacks that are not current.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::inputs::Inputs;
use crate::path::Generation;

/// A generation of a stack that is not the current one: another one has replaced it, or it has never been
/// finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeposedGeneration {
    pub generation: Generation,
    pub commit: Option<String>,
    /// The newest commit known to have the same inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// Its backend, if known.
    pub backend: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Its inputs, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Inputs>,
    /// The generations of other stacks that its environment used, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub generations: BTreeMap<String, Generation>,
    /// Whether a user confirmed that no stack uses it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
