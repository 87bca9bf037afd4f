//! Flags of `orch run` about policies.

use clap::{Args, ValueEnum};
use orch::project::policy::PolicyRun;

#[derive(Debug, Args)]
#[command(next_help_heading = "Policies")]
pub(crate) struct PolicyFlags {
    /// Evaluate trigger policies after each stack
    ///
    /// The stacks that they name run as follow-ups, selected or not. Follow-ups of a failure ignore
    /// --on-error. See `orch help policies`.
    #[arg(
        long,
        value_enum,
        value_name = "AS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "tracked"
    )]
    pub(crate) policies: Option<PoliciesArg>,

    /// Run this command in follow-ups, instead of the command of the run
    #[arg(long, value_name = "COMMAND")]
    pub(crate) followup: Option<String>,

    /// Pass this text to policies, in `run.user_provided_metadata` (can be repeated)
    #[arg(long, value_name = "TEXT")]
    pub(crate) metadata: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PoliciesArg {
    /// Tracked runs, which deploy
    Tracked,
    /// Tasks; needs --followup
    Task,
    /// No policy is evaluated
    Off,
}

impl From<PoliciesArg> for PolicyRun {
    fn from(policies: PoliciesArg) -> Self {
        match policies {
            PoliciesArg::Tracked => PolicyRun::Tracked,
            PoliciesArg::Task => PolicyRun::Task,
            PoliciesArg::Off => PolicyRun::Off,
        }
    }
}
