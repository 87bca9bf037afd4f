//! What can be typed after `orch runs`.

use clap::{Args, Subcommand};

use super::Format;

/// Look at earlier runs, which are on record in `.orch/runs`
///
/// RUN is the beginning of a run id; `last`, or nothing, is the newest.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  orch runs list                       what ran, when, and how it ended
  orch runs show                       the last run, stack by stack
  orch runs logs last --failed         what the commands printed that failed in it
  orch runs logs 01a1ffb4 /prod/network
  orch runs show --format json | jq -r '.stacks[] | select(.state == \"failed\").path'
  orch runs prune --keep 10"
)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    pub(crate) command: RunsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    List(ListRunsArgs),
    Show(ShowRunArgs),
    Logs(LogsArgs),
    Prune(PruneArgs),
}

/// List all runs, the newest first: when they began, how they ended, how long they took
#[derive(Debug, Args)]
pub(crate) struct ListRunsArgs {
    /// How to write the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Tell how a run went: what it was to do, and how each stack ended
#[derive(Debug, Args)]
pub(crate) struct ShowRunArgs {
    /// The beginning of a run id, or `last`
    #[arg(value_name = "RUN", default_value = "last", hide_default_value = true)]
    pub(crate) run: String,

    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Print what commands printed: stdout to stdout, stderr to stderr
///
/// All attempts, in the order of the run. There are no logs of commands that had the terminal of orch
/// (--output live).
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The beginning of a run id, or `last`
    #[arg(value_name = "RUN", default_value = "last", hide_default_value = true)]
    pub(crate) run: String,

    /// Only of these stacks: paths relative to the current directory, or from the project root
    #[arg(value_name = "STACK")]
    pub(crate) stacks: Vec<String>,

    /// Only of stacks that failed
    #[arg(long)]
    pub(crate) failed: bool,
}

/// Remove old runs with their logs
///
/// Each run does that, too, and keeps 50. A run that is going on always stays.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// How many of the newest runs stay
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) keep: usize,
}
