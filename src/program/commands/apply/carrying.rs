//! A plan that is to be carried out, and how.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use orch::plan::SavedPlan;
use orch::plan::archive::Archive;
use orch::plan::stale::Progress;
use orch::run::safeguard::Disabled;

use super::CarryingArgs;
use super::approve::Approval;
use crate::program::commands::plan::PlanningArgs;

/// Where the plans of the tools are.
pub(super) enum Plans<'a> {
    /// In files, as the plan counts them.
    Files(&'a [PathBuf]),
    /// In the file with the whole plan.
    Archive(&'a Archive),
}

impl Plans<'_> {
    /// Puts one of them at a place.
    pub(super) fn put(&self, plan: usize, to: &Path) -> io::Result<()> {
        match self {
            Plans::Files(files) => {
                let from = files.get(plan).ok_or(io::ErrorKind::NotFound)?;
                fs::rename(from, to)
            }
            Plans::Archive(archive) => archive.extract(plan, to).map_err(io::Error::other),
        }
    }
}

/// A plan to carry out.
pub(super) struct Carrying<'a> {
    pub(super) chdir: &'a [PathBuf],
    pub(super) args: &'a CarryingArgs,
    pub(super) planning: &'a PlanningArgs,
    pub(super) saved: &'a SavedPlan,
    pub(super) plans: Plans<'a>,
    pub(super) approval: Approval,
    pub(super) allows_new_changes: bool,
    /// What has been done of it, as far as journals tell.
    pub(super) progress: Progress,
    /// Whether it goes on with what has begun.
    pub(super) resumes: bool,
    /// The safeguards that are disabled, if they have not been checked: the plan comes from a file then.
    pub(super) disabled: Option<&'a Disabled>,
}
