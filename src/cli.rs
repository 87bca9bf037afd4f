//! What can be typed. Nothing here does anything.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

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
  orch -C prod graph | dot -Tsvg      draw what runs before what

Exit status:
  0 done, or nothing to do     1 a command failed         3 the configuration is wrong
  4 refused: unknown base      5 the surroundings failed  64 the command line is wrong
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
    /// `ORCH_LOG` gives finer control: `ORCH_LOG=debug`, or `ORCH_LOG=orch::execute=trace`.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(ListArgs),
    Run(RunArgs),
    Graph(GraphArgs),
    Validate(ValidateArgs),
    Env(EnvArgs),
    Completions(CompletionsArgs),
}

/// Which stacks a command acts on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectArgs {
    /// Only stacks that have changed since the base
    ///
    /// A stack has changed if a file has that lies in it, or that it watches, imports, links to or
    /// uses in its Terraform or Terragrunt files. What is not committed counts as well.
    ///
    /// The base is the commit that the CI provider names; else, on the default branch at the tip of
    /// the remote, the first parent of HEAD; else the merge base of HEAD and the default branch. If it
    /// cannot be known, orch refuses.
    #[arg(short, long)]
    pub(crate) changed: bool,

    /// Compare with this revision: exactly with it, not with a merge base
    #[arg(
        short = 'B',
        long,
        value_name = "REV",
        visible_alias = "git-change-base",
        requires = "changed",
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    pub(crate) base: Option<String>,

    /// Run the `git fetch` that is needed to know the base
    #[arg(long, requires = "changed")]
    pub(crate) fetch: bool,

    /// Let these count as changed, whatever the configuration says
    #[arg(
        long,
        value_enum,
        value_name = "WHAT,…",
        value_delimiter = ',',
        requires = "changed"
    )]
    pub(crate) enable_change_detection: Vec<ChangeSource>,

    /// Do not let these count as changed, whatever the configuration says
    #[arg(
        long,
        value_enum,
        value_name = "WHAT,…",
        value_delimiter = ',',
        requires = "changed"
    )]
    pub(crate) disable_change_detection: Vec<ChangeSource>,

    /// Only stacks with these tags: `a:b` both, `a,b` either (can be repeated: either)
    #[arg(long, value_name = "FILTER")]
    pub(crate) tags: Vec<String>,

    /// No stacks with any of these tags (can be repeated)
    #[arg(long, value_name = "TAG,…")]
    pub(crate) no_tags: Vec<String>,

    /// Only the stack of the current directory, not those below it
    #[arg(long)]
    pub(crate) no_recursive: bool,
}

/// List stacks, one per line
///
/// Paths are relative to the current directory. Stacks at and below it are listed that pass the
/// filters, and what these want: exactly the stacks that `run` would act on.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// In the order of a run instead of path order
    #[arg(long, visible_alias = "run-order")]
    pub(crate) order: bool,

    /// Say why each stack is in the list
    #[arg(long)]
    pub(crate) why: bool,

    /// How to write the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// Run a command in each stack, in order
///
/// The command runs without a shell, in the directory of the stack, with the terminal of orch. What
/// orch itself says goes to stderr. A program given as a path is taken from the stack directory.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(after_help = "\
Examples:
  orch run terraform plan
  orch run --dry-run -- terraform apply -auto-approve
  orch run --changed -- terraform apply -auto-approve
  orch run --reverse terraform destroy
  orch run --on-error skip-dependents -- sh -c 'echo $ORCH_STACK_PATH'")]
pub(crate) struct RunArgs {
    /// In exactly the opposite order
    #[arg(long)]
    pub(crate) reverse: bool,

    /// Print what would run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// What to do after a command failed
    #[arg(long, value_enum, default_value_t = OnErrorArg::Stop, value_name = "WHAT")]
    pub(crate) on_error: OnErrorArg,

    /// The same as --on-error continue
    #[arg(long, conflicts_with = "on_error")]
    pub(crate) continue_on_error: bool,

    /// Say nothing unless something goes wrong
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// Draw which stack runs before which
///
/// An arrow leads from what runs earlier to what runs later and says who demands it. Cycles are
/// drawn in red.
#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    /// The language of the drawing
    #[arg(long, value_enum, default_value_t = GraphFormat::Dot)]
    pub(crate) format: GraphFormat,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// Check everything that can be wrong with the configuration
///
/// All stacks of the project are checked, wherever the command is started, and warnings count as
/// errors.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChangeSource {
    /// Files that git does not know
    GitUntracked,
    /// What differs from HEAD
    GitUncommitted,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnErrorArg {
    /// Start nothing new
    Stop,
    /// Skip what runs after the failed stack, and go on elsewhere
    SkipDependents,
    /// Run everything
    Continue,
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
