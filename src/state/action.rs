//! What runs do to stacks.

use serde::{Deserialize, Serialize};

/// What a run does to the stacks that it is recorded for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
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

impl Action {
    pub fn word(&self) -> &str {
        match self {
            Action::Apply => "apply",
            Action::Destroy => "destroy",
            Action::Refresh => "refresh",
            Action::Other(word) => word,
        }
    }
}
