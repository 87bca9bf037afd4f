//! What can be typed after `orch run`, besides what selects stacks.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use orch::safeguard::Keyword;

use super::select::{PRECEDENCE, SelectArgs};

const RUN_EXAMPLES: &str = "\
Examples:
  orch run terraform plan
  orch run --dry-run -- terraform apply -auto-approve
  orch run --changed -- terraform apply -auto-approve
  orch run --changed --include-dependents --exclude 'sandbox/**' terraform plan
  orch run -j 8 --on-error skip-dependents -- terraform apply -auto-approve
  orch run --reverse terraform destroy
  orch run -- sh -c 'echo $ORCH_STACK_PATH'";

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

    /// How many commands run at once; `auto` is one for each processor [default: 1]
    ///
    /// A stack starts as soon as everything it runs after is done and there is room; among those
    /// that could start, the lowest path goes first.
    #[arg(short = 'j', long, value_name = "N|auto")]
    pub(crate) parallel: Option<Jobs>,

    /// What to do after a command failed [default: stop]
    ///
    /// With --reverse, a failure keeps what the failed stack depends on from running in each case.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) on_error: Option<OnErrorArg>,

    /// The same as --on-error continue
    #[arg(long, conflicts_with = "on_error")]
    pub(crate) continue_on_error: bool,

    #[command(flatten)]
    pub(crate) attempts: AttemptArgs,

    /// Say nothing unless something goes wrong
    #[arg(short, long, help_heading = "Output")]
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

/// How long commands may take.
#[derive(Debug, Args)]
#[command(next_help_heading = "Attempts")]
pub(crate) struct AttemptArgs {
    /// Interrupt a command that takes longer than this, as in `90s` or `1h 30m`
    ///
    /// It has then the time of --grace to end, and is killed after that.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    /// Start nothing new and interrupt what runs when the whole run takes longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) run_timeout: Option<Duration>,

    /// How long a command that took too long has to end after its interrupt [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero)]
    pub(crate) grace: Option<Duration>,
}

/// How many commands run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Jobs(pub(crate) NonZeroUsize);

impl FromStr for Jobs {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" {
            let one = NonZeroUsize::MIN;
            return Ok(Jobs(std::thread::available_parallelism().unwrap_or(one)));
        }
        let jobs = text.parse().map_err(|_| "not `auto` or a number from 1")?;
        Ok(Jobs(jobs))
    }
}

/// Understands `90s`, `1h 30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let duration = duration_or_zero(text)?;
    if duration.is_zero() {
        return Err("it must be longer than nothing".to_owned());
    }
    Ok(duration)
}

fn duration_or_zero(text: &str) -> Result<Duration, String> {
    orch::attempt::duration(text)
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnErrorArg {
    /// Start nothing new
    Stop,
    /// Skip what runs after the failed stack, and go on elsewhere
    SkipDependents,
    /// Run everything
    Continue,
}
