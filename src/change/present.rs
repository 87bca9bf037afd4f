//! A project as it is on disk, with what git and the host say of it.

use std::collections::BTreeSet;

use super::computed::HostEnvironment;
use super::uncounted::Counted;
use crate::git::{ChangedFile, Repository};
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
