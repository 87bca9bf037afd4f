//! Files with the mode and the id of their content, as git records them.

use std::collections::HashSet;

use super::{CommitId, GitError, Repository, blob_id};
use crate::path::ProjectPath;

/// A file, link or submodule as git records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFile {
    /// Its path. Bytes that are not UTF-8 are replaced; no stack's path has any.
    pub path: ProjectPath,
    pub mode: RecordedMode,
    /// The id of the blob; for a submodule, that of its commit.
    pub id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedMode {
    File,
    Executable,
    Link,
    Repository,
}

impl RecordedMode {
    pub fn as_str(self) -> &'static str {
        match self {
            RecordedMode::File => "100644",
            RecordedMode::Executable => "100755",
            RecordedMode::Link => "120000",
            RecordedMode::Repository => "160000",
        }
    }
}

impl Repository {
    pub fn recorded(&self, commit: &CommitId) -> Result<Vec<RecordedFile>, GitError> {
        self.recorded_below(commit, &[ProjectPath::root()])
    }

    /// Returns those of some files that a commit has, in any order.
    pub fn recorded_files(
        &self,
        commit: &CommitId,
        files: &[ProjectPath],
    ) -> Result<Vec<RecordedFile>, GitError> {
        self.ask(
            |library| library.recorded_files(commit, &self.prefix, files),
            |program| {
                let root = [ProjectPath::root()];
                let mut recorded = program.recorded(commit, &self.prefix, &root)?;
                let wanted: HashSet<&ProjectPath> = files.iter().collect();
                recorded.retain(|file| wanted.contains(&file.path));
                Ok(recorded)
            },
        )
    }

    /// Returns the files, links and submodules at any depth below some directories that a commit has, in any
    /// order.
    pub fn recorded_below(
        &self,
        commit: &CommitId,
        directories: &[ProjectPath],
    ) -> Result<Vec<RecordedFile>, GitError> {
        ask!(self, recorded(commit, &self.prefix, directories))
    }

    /// Returns the ids that git would give the contents of plain files on disk, in the order asked for;
    /// `None` for a file that has been replaced by something else.
    ///
    /// As for [`Self::status`], the `git` program is asked first: libgit2 runs no filters, which change
    /// the content.
    pub fn ids_on_disk(&self, files: &[ProjectPath]) -> Result<Vec<Option<String>>, GitError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        match self.program.ids_on_disk(&self.prefix, files) {
            Err(GitError::Start(_)) => {}
            asked => return asked,
        }
        let id = |file: &ProjectPath| blob_id(&self.program.place(&self.prefix, file));
        files.iter().map(id).collect()
    }
}
