//! The arguments of `orch run`, besides those that select stacks.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::{ArgGroup, Args, ValueEnum};
use orch::project::attempt::{MAX_ATTEMPTS, patterns};
use orch::project::config::{SafeguardKeyword, TagLimit};
use orch::project::tag::tag_problem;
use orch::run::schedule::OnError;
use orch::run::settings::RunSettings;

use super::flags::{EventArgs, ExitCodeArgs, PolicyFlags, RecordArgs, SafeguardArgs, SharingArgs};
use super::recorded::{RECORDED, SELECTION};
use crate::program::commands::reports::ReportArgs;
use crate::program::commands::selection_flags::{SEE_SELECTION, SelectArgs};

/// Clap would require a command beside `--resume`.
const RUN_USAGE: &str = "orch run [OPTIONS] [--] COMMAND…
       orch run [OPTIONS] --resume [RUN]";

const RUN_EXAMPLES: &str = "\
Examples:
  orch run terraform plan
  orch run --dry-run -- terraform apply -auto-approve
  orch run --changed -- terraform apply -auto-approve
  orch run --changed --include-dependents --exclude 'sandbox/**' terraform plan
  orch run -j 8 --on-error skip-dependents -- terraform apply -auto-approve
  orch run --reverse terraform destroy
  orch run --eval -- terraform plan -var 'region=${global.region}'
  orch run --resume                   continue the last run
  orch run -- sh -c 'echo $ORCH_STACK_PATH'";

/// Run a command in each stack, in order
///
/// The command runs without a shell, in the directory of the stack. If one command runs at a time,
/// it has the terminal of orch. Messages of orch go to stderr. A program given as a relative path
/// is looked up in the stack directory. Put flags of orch before the command: words after it belong
/// to the command.
///
/// After the first Ctrl-C or SIGTERM, nothing new starts, and each running command gets the signal
/// exactly once. A second signal terminates the commands, and a third one kills them.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(override_usage = RUN_USAGE, after_help = RUN_EXAMPLES, after_long_help = format!("{RUN_EXAMPLES}\n\n{SEE_SELECTION}"))]
pub(crate) struct RunArgs {
    /// The command and its arguments
    #[arg(
        required_unless_present_any = ["resume", "only_failed"],
        trailing_var_arg = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,

    /// Evaluate each word of the command for each stack, as in `'${global.region}'`
    ///
    /// A word is a template, like the text between the quotes of a string: `"` and `\` are written `\"`
    /// and `\\`. orch evaluates the command for every selected stack before the first one starts;
    /// --dry-run shows the result. See `orch help environment`.
    #[arg(long)]
    pub(crate) eval: bool,

    /// Run in exactly the opposite order
    #[arg(long)]
    pub(crate) reverse: bool,

    /// Exit with status 4 if no stack is selected
    #[arg(long, conflicts_with = "earlier")]
    pub(crate) fail_if_empty: bool,

    /// Print the commands without running them
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Run up to N commands at once; `auto` is one for each processor [default: 1]
    ///
    /// A stack starts as soon as all stacks that it runs after are done and there is room; the
    /// lowest path starts first. Parallel commands have no terminal: a command that asks for one
    /// fails.
    #[arg(short = 'j', long, value_name = "N|auto", value_parser = jobs)]
    pub(crate) parallel: Option<NonZeroUsize>,

    /// Run at most N stacks with this tag at once (can be repeated)
    ///
    /// Overrides `concurrency = { TAG = N }` in `config.run` for the same tag.
    #[arg(long, value_name = "TAG=N", value_parser = limit)]
    pub(crate) limit: Vec<TagLimit>,

    /// How to continue after a command fails [default: stop]
    ///
    /// None of these interrupts running commands. With --reverse, stacks that the failed one
    /// depends on are always skipped.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) on_error: Option<OnErrorArg>,

    /// The same as --on-error continue; with `=false`, as --on-error stop
    #[arg(
        long,
        conflicts_with = "on_error",
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true
    )]
    pub(crate) continue_on_error: Option<bool>,

    #[command(flatten)]
    pub(crate) attempts: AttemptArgs,

    #[command(flatten)]
    pub(crate) exit_codes: ExitCodeArgs,

    /// How to show the output of commands
    ///
    /// Unless it is `live`, orch also keeps the output for `orch runs logs`. On a terminal, the
    /// last lines show the running stacks; in the logs of CI systems, the output of stacks that
    /// succeeded is folded. See `orch help output`.
    #[arg(
        long,
        value_enum,
        default_value_t = OutputArg::Auto,
        value_name = "HOW",
        help_heading = "Output"
    )]
    pub(crate) output: OutputArg,

    /// Give each command a terminal of its own to print to
    ///
    /// For programs that use colors only on a terminal. Stdout and stderr become one stream, and
    /// stdin is empty. Cannot be used with --output live.
    #[arg(long, help_heading = "Output")]
    pub(crate) pty: bool,

    /// Print nothing but the output of commands unless something goes wrong
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) safeguards: SafeguardArgs,

    #[command(flatten)]
    pub(crate) reports: ReportArgs,

    #[command(flatten)]
    pub(crate) events: EventArgs,

    #[command(flatten)]
    pub(crate) sharing: SharingArgs,

    #[command(flatten)]
    pub(crate) resume: ResumeArgs,

    #[command(flatten)]
    pub(crate) record: RecordArgs,

    /// How long to wait for the state lock
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero)]
    pub(crate) lock_timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) policies: PolicyFlags,

    #[command(flatten)]
    pub(crate) disable_checks: DisableCheckArgs,

    #[command(flatten)]
    pub(crate) cloud: CloudArgs,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// Terramate's old names of some values of --disable-safeguards, for scripts that still use them.
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
    /// Returns the corresponding values.
    pub(crate) fn keywords(&self) -> impl Iterator<Item = SafeguardKeyword> {
        let flags = [
            (
                self.disable_check_git_untracked,
                SafeguardKeyword::GitUntracked,
            ),
            (
                self.disable_check_git_uncommitted,
                SafeguardKeyword::GitUncommitted,
            ),
            (
                self.disable_check_git_remote,
                SafeguardKeyword::GitOutOfSync,
            ),
            (self.disable_check_gen_code, SafeguardKeyword::OutdatedCode),
        ];
        flags
            .into_iter()
            .filter_map(|(is_set, keyword)| is_set.then_some(keyword))
    }
}

/// Flags with which Terramate reports a run to its cloud. They have no effect.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct CloudArgs {
    #[arg(long, hide = true, alias = "cloud-sync-deployment")]
    sync_deployment: bool,

    #[arg(long, hide = true, alias = "cloud-sync-drift-status")]
    sync_drift_status: bool,

    #[arg(long, hide = true, alias = "cloud-sync-preview")]
    sync_preview: bool,

    #[arg(long = "terragrunt", hide = true)]
    _terragrunt: bool,

    #[arg(
        long = "terraform-plan-file",
        alias = "tofu-plan-file",
        hide = true,
        value_name = "FILE"
    )]
    _plan_file: Option<String>,

    #[arg(
        long = "layer",
        alias = "cloud-sync-layer",
        hide = true,
        value_name = "NAME"
    )]
    _layer: Option<String>,
}

impl CloudArgs {
    /// Returns the flag that would have reported the run.
    pub(crate) fn reporting(&self) -> Option<&'static str> {
        let flags = [
            (self.sync_deployment, "--sync-deployment"),
            (self.sync_drift_status, "--sync-drift-status"),
            (self.sync_preview, "--sync-preview"),
        ];
        let mut flags = flags.into_iter();
        flags.find_map(|(is_set, flag)| is_set.then_some(flag))
    }
}

/// Timeouts and retries of commands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Attempts")]
pub(crate) struct AttemptArgs {
    /// Interrupt a command that takes longer than this, as in `90s` or `1h 30m`
    ///
    /// A command that has not ended after --grace is killed. Either way, it has failed and is not
    /// retried. Replaces `timeout` in the configuration. If the command has the terminal, Ctrl-C after
    /// that interrupts it a second time.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    /// Start nothing new and interrupt running commands when the whole run takes longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) run_timeout: Option<Duration>,

    /// How long an interrupted command may take to end after a timeout [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero)]
    pub(crate) grace: Option<Duration>,

    /// Retry a failed command up to N times
    ///
    /// The exit status must be one of --retry-on-exit, or the output must match --retry-on-output;
    /// without these flags, the conditions of `retry` in the configuration apply. orch never
    /// retries after a timeout or a signal, or once the run is ending.
    #[arg(long, value_name = "N", value_parser = retries())]
    pub(crate) retries: Option<u32>,

    /// Retry after these exit statuses
    ///
    /// This flag and --retry-on-output together replace both conditions of the configuration.
    #[arg(long, value_name = "STATUS,…", value_delimiter = ',', value_parser = exit_status())]
    pub(crate) retry_on_exit: Vec<i32>,

    /// Retry if a line of output matches this regular expression (can be repeated)
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub(crate) retry_on_output: Vec<String>,

    /// Wait this long before the second attempt, and twice as long each time [default: 10s]
    ///
    /// At most five minutes. A stack that waits keeps its slot of --parallel.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero)]
    pub(crate) retry_backoff: Option<Duration>,
}

impl AttemptArgs {
    /// Returns the settings of these flags only.
    pub(crate) fn settings(&self) -> RunSettings {
        RunSettings {
            timeout: self.timeout,
            run_timeout: self.run_timeout,
            grace: self.grace,
            retries: self.retries,
            retry_on_exit: self.retry_on_exit.clone(),
            retry_on_output: self.retry_on_output.clone(),
            retry_backoff: self.retry_backoff,
            ..RunSettings::default()
        }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Resuming", group = ArgGroup::new("earlier").multiple(true))]
pub(crate) struct ResumeArgs {
    /// Run again what has not succeeded in an earlier run, with the same command and order
    ///
    /// RUN is `last` (the default), `last~1` for the run before it, or a unique beginning or end of
    /// a run id. The run keeps its flags (--parallel, --on-error, --timeout, …) unless you give
    /// them again, but not those for the display (--output, --pty, --quiet). Refused if the graph
    /// of the stacks, or a stack that had succeeded, has changed since. See `orch help resume`.
    #[arg(
        long,
        value_name = "RUN",
        num_args = 0..=1,
        default_missing_value = "last",
        group = "earlier",
        conflicts_with_all = RECORDED,
        conflicts_with_all = SELECTION
    )]
    pub(crate) resume: Option<String>,

    /// Run only the stacks that failed in the last run, or in the run of --resume
    #[arg(
        long,
        group = "earlier",
        conflicts_with_all = RECORDED,
        conflicts_with_all = SELECTION
    )]
    pub(crate) only_failed: bool,

    /// Resume even if the graph of the stacks or a stack that had succeeded has changed since
    ///
    /// Stacks that no longer exist are left out.
    #[arg(long, requires = "earlier")]
    pub(crate) allow_stale: bool,

    /// Run even if another run is in progress in the project, or may be
    #[arg(long)]
    pub(crate) allow_concurrent: bool,
}

impl ResumeArgs {
    /// Returns whether an earlier run is to be resumed.
    pub(crate) fn is_wanted(&self) -> bool {
        self.resume.is_some() || self.only_failed
    }
}

/// Parses a number of commands that run at once.
pub(in crate::program::commands) fn jobs(text: &str) -> Result<NonZeroUsize, &'static str> {
    if text == "auto" {
        let one = NonZeroUsize::MIN;
        return Ok(std::thread::available_parallelism().unwrap_or(one));
    }
    text.parse().map_err(|_| "not `auto` or a number from 1")
}

/// Parses a tag with the number of its stacks that run at once.
fn limit(text: &str) -> Result<TagLimit, String> {
    let parts = text.split_once('=').filter(|(tag, _)| !tag.is_empty());
    let (tag, number) = parts.ok_or("not of the form TAG=N")?;
    if let Some(problem) = tag_problem(tag) {
        return Err(format!("`{tag}` is not a tag: {problem}"));
    }
    let at_once = number.parse().map_err(|_| "N is a number from 1")?;
    let tag = tag.to_owned();
    Ok(TagLimit { tag, at_once })
}

/// Parses a number of retries.
fn retries() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(0..i64::from(MAX_ATTEMPTS))
}

/// Parses the exit status of a failure.
fn exit_status() -> impl TypedValueParser<Value = i32> {
    clap::value_parser!(i32).range(1..=255)
}

/// Parses a regular expression for output.
fn pattern(text: &str) -> Result<String, String> {
    match patterns(&[text]) {
        Ok(_) => Ok(text.to_owned()),
        Err((_, problem)) => Err(problem),
    }
}

/// Parses a positive duration, such as `90s` or `1h 30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let duration = duration_or_zero(text)?;
    if duration.is_zero() {
        return Err("it must be longer than zero".to_owned());
    }
    Ok(duration)
}

fn duration_or_zero(text: &str) -> Result<Duration, String> {
    orch::duration::parse(text)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputArg {
    /// Live if one command runs at a time, outside CI, and orch need not read its output; else grouped
    Auto,
    /// Commands have the streams of orch, stdin included; one at a time only
    Live,
    /// The output of each stack in one piece, when it has ended; failures are repeated at the end
    Grouped,
    /// Each line as it comes, after the path of the stack
    Prefixed,
    /// Like grouped, but failed stacks only
    Errors,
    /// No output of commands
    None,
}

impl OnErrorArg {
    pub(crate) fn on_error(self) -> OnError {
        match self {
            OnErrorArg::Stop => OnError::Stop,
            OnErrorArg::SkipDependents => OnError::SkipDependents,
            OnErrorArg::Continue => OnError::Continue,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnErrorArg {
    /// Start nothing new
    Stop,
    /// Skip stacks that run after the failed one, and run the rest
    SkipDependents,
    /// Run everything
    Continue,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::commands::neighbour_flags::NEIGHBOURS;
    use clap::Command;

    #[test]
    fn whatever_selects_stacks_excludes_resuming() {
        let mut all = SelectArgs::augment_args(Command::new("all").disable_help_flag(true));
        all.build(); // only then do groups know who is in them
        let mut groups = all.get_groups();
        let neighbours: Vec<_> = groups
            .find(|group| group.get_id() == NEIGHBOURS)
            .expect("it has one")
            .get_args()
            .collect();
        let is_neighbour = |id: &clap::Id| neighbours.contains(&id);
        for arg in all.get_arguments() {
            let id = arg.get_id();
            // It also fetches commits that the state names.
            let is_fetch = id.as_str() == "fetch";
            let is_known = SELECTION.contains(&id.as_str()) || is_neighbour(id) || is_fetch;
            assert!(is_known, "{id}");
        }
    }
}
