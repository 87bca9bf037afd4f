//! A project as it is on disk, with what git and the host say of it.

use std::collections::BTreeSet;

use super::computed::HostEnvironment;
use super::error::ChangeError;
use super::files::ChangedFiles;
use super::meaning;
use super::trigger;
use super::uncounted::{Counted, Ignores};
use crate::git::{ChangedFile, CommitId, Repository};
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::discover::Listing;

/// A project as it is now.
#[derive(Clone, Copy)]
pub struct Present<'a> {
    pub project: &'a Project,
    /// Its files.
    pub listing: &'a Listing,
    /// The repository that it lies in.
    pub repository: &'a Repository,
    /// What is not committed.
    pub uncommitted: &'a UncommittedChanges,
    /// The environment of `orch`.
    pub host: &'a HostEnvironment,
}

/// How the working tree differs from HEAD, and which of the differences count.
#[derive(Debug, Default)]
pub struct UncommittedChanges {
    /// What is not committed.
    pub status: Vec<ChangedFile>,
    /// Which of it counts as changed.
    pub counted: Counted,
    /// Files that git reports as changed although they are as they were at the base.
    pub same: BTreeSet<ProjectPath>,
}

impl Present<'_> {
    /// Returns the files that differ from a commit and count, without triggers, and notes which configuration files
    /// say the same.
    pub(super) fn files_since(&self, commit: &CommitId) -> Result<ChangedFiles, ChangeError> {
        let mut files = match self.repository.commit("HEAD")? {
            Some(head) => self.repository.differences(commit, &head)?,
            None => Vec::new(),
        };
        let UncommittedChanges {
            status, counted, ..
        } = self.uncommitted;
        let counts = |file: &&ChangedFile| counted.off(file.state).is_none();
        files.extend(status.iter().filter(counts).cloned());
        let (files, _) = ChangedFiles::new(files).without(&trigger::directory());
        let (files, _) = Ignores::of(self.project).split(files);
        meaning::with_same(*self, commit, files)
    }
}
