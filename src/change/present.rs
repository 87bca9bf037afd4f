//! A project on disk, with the facts from git and the host.

use std::collections::BTreeSet;

use super::computed::HostEnvironment;
use super::uncounted::CountedStates;
use crate::git::{ChangedFile, Repository};
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::discover::Listing;

#[derive(Clone, Copy)]
pub struct CurrentProject<'a> {
    pub project: &'a Project,
    pub listing: &'a Listing,
    pub repository: &'a Repository,
    pub uncommitted: &'a UncommittedChanges,
    pub host: &'a HostEnvironment,
}

/// The differences between the working tree and HEAD, and which of them count.
#[derive(Debug, Default)]
pub struct UncommittedChanges {
    pub status: Vec<ChangedFile>,
    pub counted: CountedStates,
    /// Files that git reports as changed although they are equal to the base.
    pub same: BTreeSet<ProjectPath>,
}
