//! What can be typed. Nothing here does anything.

mod select;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use orch::safeguard::Keyword;

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
  orch why prod/network --changed     the whole story of one stack
  orch -C prod graph | dot -Tsvg      draw what runs before what

Exit status:
  0 done, or nothing to do              1 a command failed
  3 the configuration is wrong          4 refused: unknown base, safeguard
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

const RUN_EXAMPLES: &str = "\
Examples:
  orch run terraform plan
  orch run --dry-run -- terraform apply -auto-approve
  orch run --changed -- terraform apply -auto-approve
  orch run --changed --include-dependents --exclude 'sandbox/**' terraform plan
  orch run --reverse terraform destroy
  orch run --on-error skip-dependents -- sh -c 'echo $ORCH_STACK_PATH'";

/// Run a command in each stack, in order
///
/// The command runs without a shell, in the directory of the stack, with the terminal of orch. What
/// orch itself says goes to stderr. A program given as a path is taken from the stack directory.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(after_help = RUN_EXAMPLES, after_long_help = format!("{RUN_EXAMPLES}\n\n{PRECEDENCE}"))]
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

    /// Run in spite of these safeguards
    ///
    /// Before the first command starts, orch refuses to run if a file of the project is not known to
    /// git (`git-untracked`) or differs from what is committed (`git-uncommitted`), and, if the
    /// configuration enables that, if HEAD lacks what the remote's default branch has
    /// (`git-out-of-sync`).
    ///
    /// Files of the repository outside of the project do not count, also if a stack uses them, as a
    /// module at `../../modules`: put the project root where the modules are.
    ///
    /// Without this flag, the variable `ORCH_DISABLE_SAFEGUARDS` or `TM_DISABLE_SAFEGUARDS` counts,
    /// then `config.disable_safeguards`.
    #[arg(
        long,
        value_name = "WHAT,…",
        value_delimiter = ',',
        value_parser = keyword_parser(),
        help_heading = "Safeguards"
    )]
    pub(crate) disable_safeguards: Vec<Keyword>,

    /// The same as --disable-safeguards=all
    #[arg(
        short = 'X',
        overrides_with = "disable_all_safeguards",
        help_heading = "Safeguards"
    )]
    pub(crate) disable_all_safeguards: bool,

    #[command(flatten)]
    pub(crate) disable_checks: DisableCheckArgs,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// What Terramate once called some of --disable-safeguards, for scripts that still say so.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct DisableCheckArgs {
    #[arg(long, hide = true, overrides_with = "disable_check_git_untracked")]
    disable_check_git_untracked: bool,

    #[arg(long, hide = true, overrides_with = "disable_check_git_uncommitted")]
    disable_check_git_uncommitted: bool,

    #[arg(long, hide = true, overrides_with = "disable_check_git_remote")]
    disable_check_git_remote: bool,

    #[arg(long, hide = true, overrides_with = "disable_check_gen_code")]
    disable_check_gen_code: bool,
}

impl DisableCheckArgs {
    /// Returns what they are called now.
    pub(crate) fn keywords(&self) -> impl Iterator<Item = Keyword> {
        let flags = [
            (self.disable_check_git_untracked, Keyword::GitUntracked),
            (self.disable_check_git_uncommitted, Keyword::GitUncommitted),
            (self.disable_check_git_remote, Keyword::GitOutOfSync),
            (self.disable_check_gen_code, Keyword::OutdatedCode),
        ];
        flags
            .into_iter()
            .filter_map(|(is_set, keyword)| is_set.then_some(keyword))
    }
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

/// Understands the names of safeguards, which the library has.
fn keyword_parser() -> impl TypedValueParser<Value = Keyword> {
    let explained = Keyword::ALL.map(|keyword| {
        PossibleValue::new(keyword.name()).help(match keyword {
            Keyword::All => "Every safeguard",
            Keyword::None => "None: all are on, except others in this list",
            Keyword::Git => "The three about git",
            Keyword::GitUntracked => "Files that git does not know",
            Keyword::GitUncommitted => "What differs from HEAD",
            Keyword::GitOutOfSync => "HEAD lacks what the remote's default branch has",
            Keyword::OutdatedCode => "Nothing: orch generates no code, Terramate does",
        })
    });
    PossibleValuesParser::new(explained)
        .try_map(|name| Keyword::parse(&name).ok_or("not a safeguard"))
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
