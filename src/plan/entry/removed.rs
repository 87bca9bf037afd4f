//! How it is known that what is destroyed is not wanted any more.

use serde::{Deserialize, Serialize};

use crate::path::Generation;

/// How it is known that a stack was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Removed {
    /// This commit deletes its block.
    Commit(String),
    /// Its key is not in `for_each` any more.
    Key,
    /// A `removed` block says so.
    Block {
        /// The file of the block, relative to the project root.
        file: String,
        /// The line in it, from 1.
        line: usize,
        /// Whether what the stack has made is destroyed; else it stays.
        destroys: bool,
    },
    /// Another generation of the stack takes its place, or has taken it.
    Replaced {
        /// Which one.
        by: Generation,
    },
    /// It is a generation of the stack that has never been finished.
    Unfinished,
    /// HEAD has removed it, but it may be another stack now, or the default branch may have it: it is blocked.
    Doubtful,
    /// It is not known: it is on record, and not in the tree.
    Unproven,
}

impl Removed {
    /// Returns whether what the stack has made stays as it is.
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
