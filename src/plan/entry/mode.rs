//! The purpose of a plan.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanMode {
    #[default]
    Normal,
    Destroy,
    /// To show or accept drift; nothing else changes.
    RefreshOnly,
}

impl PlanMode {
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
