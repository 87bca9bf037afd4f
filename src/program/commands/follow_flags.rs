//! The policy flags of `orch plan` and `orch apply`.

use clap::{Args, ValueEnum};
use orch::plan::SavedPolicies;

use super::Loaded;
use super::policy_files::LoadedPolicies;
use crate::program::error::{ProgramError, Result};

/// Whether policies follow an apply.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Policies")]
pub(crate) struct FollowFlags {
    /// Whether trigger policies say what follows each turn [default: tracked]
    ///
    /// `orch plan` shows what follows if all turns succeed. `orch apply` plans a follow-up when its turn comes, and
    /// applies it if its stack has `autodeploy = true`, or with --auto-approve unless FILE is given. Otherwise, the
    /// changes are planned again at the end, and that plan is kept for a later `orch apply`. A plan in a file keeps
    /// this flag and --metadata. See `orch help policies`.
    #[arg(
        long,
        value_enum,
        value_name = "AS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "tracked"
    )]
    pub(crate) policies: Option<FollowArg>,

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

impl FollowFlags {
    fn is_off(&self) -> bool {
        self.policies == Some(FollowArg::Off)
    }

    /// Returns the flags that a plan in a file keeps.
    pub(super) fn saved(&self) -> SavedPolicies {
        SavedPolicies {
            is_off: self.is_off(),
            metadata: self.metadata.clone(),
        }
    }

    /// Returns the flags that count for the apply of a plan in a file: those of the plan, unless others are given.
    pub(super) fn or_saved(&self, saved: &SavedPolicies) -> Self {
        let is_off = saved.is_off.then_some(FollowArg::Off);
        let mut flags = FollowFlags {
            policies: self.policies.or(is_off),
            metadata: self.metadata.clone(),
        };
        if flags.metadata.is_empty() && !flags.is_off() {
            flags.metadata.clone_from(&saved.metadata);
        }
        flags
    }
}

impl Loaded {
    /// Loads the policies that follow an apply, if any does. What is wrong with them goes to the problems.
    pub(super) fn apply_policies(&mut self, flags: &FollowFlags) -> Result<Option<LoadedPolicies>> {
        if flags.is_off() {
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
