//! Flags of `orch run` about exit statuses: those of commands, and its own.

use clap::Args;
use orch::project::attempt::ExitCodes;

#[derive(Debug, Args)]
#[command(next_help_heading = "Exit statuses")]
pub(crate) struct ExitCodeArgs {
    /// Exit statuses of commands that count as success, besides 0
    ///
    /// Replaces `success_exit_codes` in the configuration.
    #[arg(long, value_name = "STATUS,…", value_delimiter = ',', value_parser = exit_status())]
    success_exit_code: Vec<i32>,

    /// Exit statuses of commands that count as success with changes
    ///
    /// Replaces `changes_exit_codes` in the configuration. Unless this flag or the configuration names
    /// others, 2 is one of these for `plan -detailed-exitcode` of terraform, tofu and terragrunt.
    #[arg(long, value_name = "STATUS,…", value_delimiter = ',', value_parser = exit_status())]
    changes_exit_code: Vec<i32>,

    /// Exit with status 2 if nothing failed and any stack has changes
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
}

impl ExitCodeArgs {
    pub(crate) fn exit_codes(&self) -> ExitCodes {
        let said = |codes: &[i32]| (!codes.is_empty()).then(|| codes.into());
        ExitCodes {
            success: said(&self.success_exit_code),
            changes: said(&self.changes_exit_code),
            success_on_interrupt: None,
        }
    }
}

/// Parses the exit status of a command.
fn exit_status() -> impl clap::builder::TypedValueParser<Value = i32> {
    clap::value_parser!(i32).range(0..=255)
}
