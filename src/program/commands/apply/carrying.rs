//! A plan that is to be carried out, and how.

use std::path::PathBuf;

use orch::context::RollbackFlags;
use orch::plan::SavedPlan;
use orch::plan::archive::Archive;
use orch::run::safeguard::Disabled;

use super::CarryingArgs;
use super::approve::Approval;
use crate::program::commands::follow_flags::FollowFlags;
use crate::program::commands::plan::PlanningArgs;
use crate::program::commands::released::ReleaseSamples;

/// A plan to carry out.
pub(super) struct Carrying<'a> {
    pub(super) chdir: &'a [PathBuf],
    pub(super) args: &'a CarryingArgs,
    pub(super) planning: &'a PlanningArgs,
    pub(super) saved: &'a SavedPlan,
    /// The plans of the tools.
    pub(super) archive: Option<&'a Archive>,
    pub(super) approval: Approval,
    pub(super) allows_new_changes: bool,
    /// Whether it goes on with what has begun.
    pub(super) resumes: bool,
    /// The safeguards that are disabled.
    pub(super) disabled: &'a Disabled,
    /// The inputs that policies of a module want to be kept, with `--released`.
    pub(super) release_samples: ReleaseSamples,
    /// Whether it comes from a file; else it has just been made, and the safeguards were checked before.
    pub(super) is_from_file: bool,
    pub(super) rollback: RollbackFlags,
    /// How policies take part, and the texts that they get.
    pub(super) policies: FollowFlags,
}
