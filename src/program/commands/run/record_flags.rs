//! Flags about recording a run in the state.

use clap::{Args, ValueEnum};
use orch::project::config::RecordKind;

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Record the run in the state, as an apply or as a destroy, with any command
    ///
    /// By default, the patterns of `record` in the configuration of the state decide. See `orch
    /// help recording`.
    #[arg(
        long,
        value_enum,
        value_name = "ACTION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "apply"
    )]
    pub(crate) record: Option<RecordAs>,

    /// Do not record the run in the state
    #[arg(long, conflicts_with = "record")]
    pub(crate) no_record: bool,

    /// Apply HEAD even to stacks last applied from a commit that HEAD lacks, which reverts that
    /// commit
    ///
    /// Without it, such a run is refused. See `orch help state`.
    #[arg(long, conflicts_with = "no_record")]
    pub(crate) allow_rollback: bool,
}

impl RecordArgs {
    pub(crate) fn recording(&self) -> Option<RecordKind> {
        match self.record {
            Some(RecordAs::Apply) => Some(RecordKind::Apply),
            Some(RecordAs::Destroy) => Some(RecordKind::Destroy),
            None => self.no_record.then_some(RecordKind::Never),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordAs {
    /// It applies the configuration
    Apply,
    /// It destroys the resources
    Destroy,
}
