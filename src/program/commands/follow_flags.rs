//! The policy flags of `orch plan` and `orch apply`.

use clap::{Args, ValueEnum};
use orch::plan::SavedPolicies;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Policies")]
pub(crate) struct FollowFlags {
    /// Whether trigger policies are evaluated [default: tracked]
    ///
    /// `orch plan` shows the follow-ups of a successful apply. `orch apply` plans a follow-up when
    /// it starts, and applies it if its stack has `autodeploy = true`, or with --auto-approve and
    /// no FILE. Other follow-ups are planned at the end, and that plan is kept for a later `orch
    /// apply`. A plan in a file keeps this flag and --metadata. See `orch help followups`.
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

    /// Returns the flags that a plan file stores.
    pub(super) fn saved(&self) -> SavedPolicies {
        SavedPolicies {
            is_off: self.is_off(),
            metadata: self.metadata.clone(),
        }
    }

    /// Returns the flags for the apply of a plan file: the stored ones, unless they are overridden.
    pub(super) fn or_saved(&self, saved: &SavedPolicies) -> SavedPolicies {
        let is_off = match self.policies {
            Some(policies) => policies == FollowArg::Off,
            None => saved.is_off,
        };
        let metadata = if self.metadata.is_empty() && !is_off {
            &saved.metadata
        } else {
            &self.metadata
        };
        SavedPolicies {
            is_off,
            metadata: metadata.clone(),
        }
    }
}
