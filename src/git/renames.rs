//! Files that git considers renamed.

use super::{CommitId, GitError, Repository};
use crate::path::ProjectPath;

/// How many files on each side are compared with each other. Above that, only identical files are paired.
pub(super) const RENAME_LIMIT: usize = 4000;

/// A file that lies elsewhere in a later commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rename {
    /// Where it was.
    pub from: ProjectPath,
    /// Where it is.
    pub to: ProjectPath,
}

impl Repository {
    /// Returns the files at or below some directories of the project that git guesses to have been renamed
    /// between two commits, in any order.
    ///
    /// # Errors
    ///
    /// If git cannot answer.
    pub fn renames(
        &self,
        old: &CommitId,
        new: &CommitId,
        directories: &[ProjectPath],
    ) -> Result<Vec<Rename>, GitError> {
        if old == new || directories.is_empty() {
            return Ok(Vec::new());
        }
        self.ask(
            |library| library.renames(old, new, &self.prefix, directories),
            |program| program.renames(old, new, &self.prefix, directories),
        )
    }
}
