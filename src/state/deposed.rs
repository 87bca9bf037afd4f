//! Generations of stacks on record that are not current.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::inputs::Inputs;
use crate::path::Generation;

/// A generation of a stack that is not the current one: another one has replaced it, or it has never been
/// finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deposed {
    /// Which one.
    pub generation: Generation,
    /// The commit that was applied to it.
    pub commit: Option<String>,
    /// The newest commit that is known to have the same inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// Where its tool keeps its own state, if that is known.
    pub backend: Option<String>,
    /// The name of its driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What it was made of; none if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Inputs>,
    /// The generations of other stacks that its environment was computed from, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub generations: BTreeMap<String, Generation>,
    /// Whether somebody has said that no stack uses it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
    /// What this program does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
