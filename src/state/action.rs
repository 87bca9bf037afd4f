//! The actions of runs on stacks.

use serde::{Deserialize, Serialize};

/// The action of a run on its recorded stacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunAction {
    Apply,
    Destroy,
    /// It accepts drift.
    Refresh,
    /// Something that a later version does.
    #[serde(untagged)]
    Other(String),
}

impl RunAction {
    pub fn word(&self) -> &str {
        match self {
            RunAction::Apply => "apply",
            RunAction::Destroy => "destroy",
            RunAction::Refresh => "refresh",
            RunAction::Other(word) => word,
        }
    }
}
