//! What can be typed. Nothing here does anything.

mod run;
mod runs;
mod select;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use self::run::{AttemptArgs, Jobs, LimitArg, OnErrorArg, OutputArg, RunArgs};
pub(crate) use self::runs::{
    ListRunsArgs, LogsArgs, PruneArgs, RunsArgs, RunsCommand, ShowRunArgs,
};
use self::select::PRECEDENCE;
pub(crate) use self::select::{ChangeSource, Depth, NeighbourArgs, SelectArgs};

/// Finds the stacks of an infrastructure monorepo, puts them in order and runs a command in each
///
/// A stack is a directory with a `stack {}` block in a file ending in .tm, .tm.hcl or .orch.hcl.
/// Terramate projects work as they are.
#[derive(Debug, Parser)]
#[command(
    name = "orch",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    propagate_version = false,
    after_help = "\
Examples:
  orch list                           the stacks at and below the current directory
  orch list --order --why             in the order of a run, with the reasons
  orch run terraform plan             run a command in each of them, in order
  orch run --tags prod -- make deploy only in stacks tagged `prod`
  orch list --changed --why           what has changed, and because of which file
  orch run --resume                   what the last run left undone
  orch runs show                      how the last run went, stack by stack
  orch why prod/network --changed     the whole story of one stack
  orch -C prod graph | dot -Tsvg      draw what runs before what

Exit status:
  0 done, or nothing to do              1 a command failed
  3 the configuration is wrong          4 refused: unknown base, safeguard, other run
  5 the surroundings failed             64 the command line is wrong
  128+n ended by signal n"
)]
pub(crate) struct Cli {
    /// Work in this directory instead of the current one
    ///
    /// Can be repeated: each is relative to the one before.
    #[arg(short = 'C', long = "chdir", value_name = "DIR", global = true)]
    pub(crate) chdir: Vec<PathBuf>,

    /// Tell on stderr what is going on; more with -vv and -vvv
    ///
    /// `ORCH_LOG` gives finer control: `ORCH_LOG=debug`, or `ORCH_LOG=orch::run::execute=trace`.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(ListArgs),
    Run(Box<RunArgs>),
    Runs(RunsArgs),
    Why(WhyArgs),
    Graph(GraphArgs),
    Trigger(TriggerArgs),
    Validate(ValidateArgs),
    Env(EnvArgs),
    Completions(CompletionsArgs),
}

/// List stacks, one per line
///
/// Paths are relative to the current directory. Stacks at and below it are listed that pass the
/// filters, and what these want: exactly the stacks that `run` would act on.
#[derive(Debug, Args)]
#[command(after_long_help = PRECEDENCE)]
pub(crate) struct ListArgs {
    /// In the order of a run instead of path order
    #[arg(long, visible_alias = "run-order")]
    pub(crate) order: bool,

    /// Say why each stack is in the list
    #[arg(long)]
    pub(crate) why: bool,

    /// The stacks that the base has and the project no longer has, instead of those it has
    ///
    /// Those below the current directory that --match and --exclude leave. Nothing else is known of
    /// them. --base and --fetch work as with --changed.
    #[arg(
        long,
        group = "since",
        conflicts_with_all = [
            "order", "why", "stacks_from", "tags", "no_tags", "no_recursive", "NeighbourArgs"
        ]
    )]
    pub(crate) removed: bool,

    /// How to write the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// Tell the whole story of one stack
///
/// Whether it is selected and by which rule, or what leaves it out; its inputs and, with --changed,
/// which of them have changed; what it runs after and before; and what would select it. The flags are
/// those of `list`.
#[derive(Debug, Args)]
#[command(after_help = WHY_EXAMPLES, after_long_help = format!("{WHY_EXAMPLES}\n\n{PRECEDENCE}"))]
pub(crate) struct WhyArgs {
    /// The stack: a path relative to the current directory, or from the project root with a `/`
    #[arg(value_name = "STACK")]
    pub(crate) stack: String,

    /// How to write the story
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

const WHY_EXAMPLES: &str = "\
Examples:
  orch why prod/network
  orch why /prod/network --changed
  orch why . --changed --tags prod";

/// Draw which stack runs before which
///
/// An arrow leads from what runs earlier to what runs later and says who demands it. Cycles are
/// drawn in red.
#[derive(Debug, Args)]
#[command(after_long_help = PRECEDENCE)]
pub(crate) struct GraphArgs {
    /// The language of the drawing
    #[arg(long, value_enum, default_value_t = GraphFormat::Dot)]
    pub(crate) format: GraphFormat,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// Let a stack count as changed, or not, without a change of its own
///
/// Writes a trigger file, as Terramate does: `/.tmtriggers/<path of the stack>/<kind>-<uuid>.tm.hcl`.
/// It counts as long as it differs from the base. Who asked for it becomes part of the reason.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orch trigger prod/network --reason 'rotate the certificates'
  orch trigger --recursive /prod --tags data
  orch trigger --ignore-change prod/network --reason 'only comments have changed'")]
pub(crate) struct TriggerArgs {
    /// The directory of the stack: from the project root if it begins with `/`
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,

    /// All stacks at and below the directory
    #[arg(long)]
    pub(crate) recursive: bool,

    /// Let them count as changed, which is what happens anyway
    #[arg(long, conflicts_with = "ignore_change")]
    pub(crate) change: bool,

    /// Let them not count as changed, whatever has changed
    #[arg(long)]
    pub(crate) ignore_change: bool,

    /// Why
    #[arg(long, value_name = "TEXT", value_parser = not_blank)]
    pub(crate) reason: Option<String>,

    /// Only stacks with these tags: `a:b` both, `a,b` either (can be repeated: either)
    #[arg(long, value_name = "FILTER", requires = "recursive")]
    pub(crate) tags: Vec<String>,

    /// No stacks with any of these tags (can be repeated)
    #[arg(long, value_name = "TAG,…", requires = "recursive")]
    pub(crate) no_tags: Vec<String>,
}

/// Check everything that can be wrong with the configuration
///
/// All stacks of the project are checked, and all trigger files, wherever the command is started, and
/// warnings count as errors. Triggers of what is no stack are left alone: they stay behind when stacks
/// go, and `--changed` warns of those that would count.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// How to write what is wrong
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Show what a run adds to the environment of each stack
///
/// `ORCH_RUN_ID`, which is new in each run, is not shown.
#[derive(Debug, Args)]
#[command(after_long_help = PRECEDENCE)]
pub(crate) struct EnvArgs {
    /// How to write the environment
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// Print a completion script for a shell
///
/// For bash: source <(orch completions bash)
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Takes a text that says something.
fn not_blank(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        return Err("it says nothing");
    }
    Ok(text.to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Graphviz
    Dot,
    /// Mermaid, which GitHub and GitLab draw in Markdown
    Mermaid,
    /// For programs
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
