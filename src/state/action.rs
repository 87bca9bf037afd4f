//! What runs do to stacks.

use serde::{Deserialize, Serialize};

/// What a run does to the stacks that it is recorded for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunAction {
    /// It brings about what the configuration says.
    Apply,
    /// It removes what is there.
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
