//! Files that a later commit lacks, and their new places according to git.

use super::{CommitId, GitError, Repository};
use crate::path::ProjectPath;

/// How similar two files must be, in percent, for git to call one renamed: its own default.
pub const SIMILARITY: u16 = 50;

/// How many files on each side are compared with each other. Above that, git may pair only identical files.
pub const RENAME_LIMIT: usize = 4000;

/// A file that a later commit lacks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Departure {
    pub from: ProjectPath,
    pub bytes: u64,
    /// The new file that git considers the same one, if there is one.
    pub to: Option<ProjectPath>,
}

impl Repository {
    /// Returns the files at or below some directories of the project that one commit has and a later one lacks,
    /// in any order. Only new files at or below these directories count as renamed.
    pub fn departures(
        &self,
        old: &CommitId,
        new: &CommitId,
        directories: &[ProjectPath],
    ) -> Result<Vec<Departure>, GitError> {
        if old == new || directories.is_empty() {
            return Ok(Vec::new());
        }
        self.ask(
            |library| library.departures(old, new, &self.prefix, directories),
            |program| program.departures(old, new, &self.prefix, directories),
        )
    }
}
