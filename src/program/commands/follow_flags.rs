//! The flags of `orch apply` that are about policies.

use clap::{Args, ValueEnum};

use super::Loaded;
use super::policy_files::LoadedPolicies;
use crate::program::error::{ProgramError, Result};

/// Whether policies follow an apply.
#[derive(Debug, Args)]
#[command(next_help_heading = "Policies")]
pub(crate) struct FollowFlags {
    /// Whether to evaluate trigger policies after each turn
    ///
    /// What they ask for is planned when its turn comes, and applied if its stack has `autodeploy = true`, or with
    /// --auto-approve unless FILE is given. Otherwise, the changes are planned again at the end, and that plan is
    /// kept for a later `orch apply`. See `orch help policies`.
    #[arg(
        long,
        value_enum,
        value_name = "AS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "tracked",
        default_value_t = FollowArg::Tracked
    )]
    pub(crate) policies: FollowArg,

    /// Pass this text to policies, in `run.user_provided_metadata` (can be repeated)
    #[arg(long, value_name = "TEXT")]
    pub(crate) metadata: Vec<String>,
}

/// What the turns of an apply are to policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FollowArg {
    /// Tracked runs, which deploy
    Tracked,
    /// No policy is evaluated
    Off,
}

impl Loaded {
    /// Loads the policies that follow an apply, if any does. What is wrong with them goes to the problems.
    pub(super) fn apply_policies(&mut self, flags: &FollowFlags) -> Result<Option<LoadedPolicies>> {
        if flags.policies == FollowArg::Off {
            if !flags.metadata.is_empty() {
                let what = "`--metadata` has no effect with `--policies=off`";
                return Err(ProgramError::usage(what));
            }
            return Ok(None);
        }
        if self.project.policies.is_empty() {
            return Ok(None);
        }
        let policies = self.load_policies(|attached, position| {
            attached.policies_of_stacks().contains(&position)
        })?;
        let is_any = !policies.attached.policies_of_stacks().is_empty();
        Ok(is_any.then_some(policies))
    }
}
