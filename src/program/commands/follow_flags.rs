//! The flags that say whether policies follow an apply.

use clap::{Args, ValueEnum};
use orch::project::Problems;

use super::Loaded;
use super::policy_files::LoadedPolicies;
use crate::program::error::{ProgramError, Result};
use crate::program::exit::ExitStatus;

/// Whether policies follow an apply.
#[derive(Debug, Args)]
#[command(next_help_heading = "Policies")]
pub(crate) struct FollowFlags {
    /// Let trigger policies say what follows each turn, as they do by default, or not
    ///
    /// What they ask for is planned when its time has come, and applied if its stack has `autodeploy = true`,
    /// or with --auto-approve, unless FILE is given. Otherwise its plan is kept, and can be applied later. See `orch help
    /// policies`.
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

    /// Give policies this text, as `user_provided_metadata` (can be repeated)
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
    /// Loads the policies that follow an apply, if any does; the exit status if one is wrong.
    pub(super) fn apply_policies(
        &mut self,
        flags: &FollowFlags,
    ) -> Result<std::result::Result<Option<LoadedPolicies>, ExitStatus>> {
        if flags.policies == FollowArg::Off {
            if !flags.metadata.is_empty() {
                let what = "`--metadata` has no effect with `--policies=off`";
                return Err(ProgramError::usage(what));
            }
            return Ok(Ok(None));
        }
        if self.project.policies.is_empty() {
            return Ok(Ok(None));
        }
        // What was found before has been shown.
        self.problems = Problems::default();
        let policies = self.load_policies(|attached, position| {
            attached.policies_of_stacks().contains(&position)
        })?;
        if let Some(status) = self.report()? {
            return Ok(Err(status));
        }
        let is_any = !policies.attached.policies_of_stacks().is_empty();
        Ok(Ok(is_any.then_some(policies)))
    }
}
