//! What plans are made for.

use serde::{Deserialize, Serialize};

/// What a plan is made for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanMode {
    /// To apply the configuration.
    #[default]
    Normal,
    /// To delete all that exists.
    Destroy,
    /// To see what has drifted, or to accept it; nothing else is changed.
    RefreshOnly,
}

impl PlanMode {
    /// Returns the mode that flags ask for.
    pub fn of_flags(destroy: bool, refresh_only: bool) -> Self {
        match (destroy, refresh_only) {
            (true, _) => PlanMode::Destroy,
            (_, true) => PlanMode::RefreshOnly,
            _ => PlanMode::Normal,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            PlanMode::Normal => "normal",
            PlanMode::Destroy => "destroy",
            PlanMode::RefreshOnly => "refresh-only",
        }
    }
}
