//! `orch runs logs`

use std::collections::HashSet;

use anyhow::Context as _;
use clap::Args;
use orch::command::stack_arg::StackArg;
use orch::context::{missing_quotes, quoted_key};
use orch::exit::ExitStatus;
use orch::path::ProjectPath;
use orch::printable::printable;
use orch::record::journal::{RunRecord, Runs};
use orch::record::logs::Stream;

use super::{FoundRun, found};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Print the output of a run's commands: stdout to stdout, stderr to stderr
///
/// Prints all attempts, in the order of the run. Commands that had the terminal of orch (--output live)
/// have no logs.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// `last`, `last~1`, or a unique beginning or end of a run id
    #[arg(value_name = "RUN", default_value = "last", hide_default_value = true)]
    pub(crate) run: String,

    /// Print only the output of these stacks: paths relative to the current directory, or from the
    /// project root; a directory with `for_each` means all its instances, `'net["dev"]'` one of them
    #[arg(value_name = "STACK")]
    pub(crate) stacks: Vec<String>,

    /// Print only the output of failed stacks
    #[arg(long)]
    pub(crate) failed: bool,
}

pub(super) fn logs(
    runs: Option<&Runs>,
    directory: &ProjectPath,
    args: &LogsArgs,
) -> Result<ExitStatus> {
    let FoundRun { record, logs, .. } = found(runs, &args.run)?;
    let run = &record.header.run;
    let wanted = wanted(&record, directory, &args.stacks)?;
    let mut writers = console::writers();
    let mut has_printed = false;
    for stack in &record.stacks {
        let is_wanted = wanted.is_empty() || wanted.contains(&stack.path);
        if !is_wanted || args.failed && !stack.state.is_failure() {
            continue;
        }
        for attempt in &stack.attempts {
            let Some(number) = record.turn_number(&stack.path, attempt.turn) else {
                continue;
            };
            let (turn, attempt) = (attempt.turn, attempt.number);
            let failed = || format!("failed to read the log of `{}`", printable(&stack.path));
            let log = logs.reader(number + 1, &stack.path, attempt);
            let Some(log) = log.with_context(failed)? else {
                continue;
            };
            has_printed = true;
            let mut heading = format!("orch: {}", printable(&stack.path));
            if let Some(turn) = turn {
                heading += &format!(", turn {turn}");
            }
            if stack.attempts.len() > 1 {
                heading += &format!(", attempt {attempt}");
            }
            writers.lines(Stream::Stderr, format!("{heading}\n").as_bytes());
            writers.log(log).with_context(failed)?;
            writers.end_text();
            if let Some(problem) = writers.take_problem() {
                return Err(problem.into());
            }
        }
    }
    if !has_printed {
        console::note(&format!(
            "run {run} has no such logs: its commands printed nothing, used `--output live`, or did not run"
        ));
    }
    Ok(ExitStatus::Success)
}

fn wanted(
    record: &RunRecord,
    directory: &ProjectPath,
    written: &[String],
) -> Result<HashSet<String>> {
    let known = || record.stacks.iter().map(|stack| stack.path.as_str());
    let mut wanted = HashSet::new();
    for written in written {
        let arg = StackArg::new(directory, written);
        let meant = arg.among(known());
        if !meant.is_empty() {
            wanted.extend(meant.into_iter().map(str::to_owned));
            continue;
        }
        let is_known =
            |quoted: &String| !StackArg::new(directory, quoted).among(known()).is_empty();
        if let Some(quoted) = quoted_key(written).filter(is_known) {
            let message = format!("`{}`: {}", printable(written), missing_quotes(quoted));
            return Err(ProgramError::usage(message));
        }
        let path = arg.from_root();
        let mut message = format!(
            "`{}` is not a stack of run {}",
            printable(&path),
            record.header.run
        );
        if let Some(hint) = arg.did_you_mean(known()) {
            message += &format!("; {hint}");
        }
        return Err(ProgramError::usage(message));
    }
    Ok(wanted)
}
