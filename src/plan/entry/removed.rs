//! Why a stack may be destroyed.

use serde::{Deserialize, Serialize};

use crate::path::Generation;

/// The proof that a stack was removed, or its absence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Removed {
    /// This commit deletes its block.
    Commit(String),
    /// Its key is no longer in `for_each`.
    Key,
    /// A `removed` block names it.
    Block {
        /// Relative to the project root.
        file: String,
        /// From 1.
        line: usize,
        destroys: bool,
    },
    Replaced {
        by: Generation,
    },
    /// A generation that was never finished.
    Unfinished,
    /// HEAD lacks it, but it may be another stack now, or be on the default branch: blocked.
    Doubtful,
    /// It is in the state but not in this commit; nothing proves its removal.
    Unproven,
}

impl Removed {
    pub fn leaves(&self) -> bool {
        matches!(
            self,
            Removed::Block {
                destroys: false,
                ..
            }
        )
    }
}
