//! `orch run`

mod attempts;
mod tasks;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use orch::execute::{Commands, Inbox, Plan, Streams, execute};
use orch::order::{Direction, Order};
use orch::printable::{command_line, printable};
use orch::report::RunText;
use orch::safeguard::Safeguard;
use orch::schedule::OnError;
use uuid::Uuid;

use self::tasks::{show_missing, tasks};
use super::{CyclesAre, Filters, Loaded, Reads, UsageError, safeguards};
use crate::cli::{Format, OnErrorArg, RunArgs};
use crate::console;
use crate::exit::ExitStatus;

/// How long a command that took too long has to end after its interrupt: what terraform takes to give
/// up its lock, with plenty to spare.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

pub(super) fn run(chdir: &[PathBuf], args: &RunArgs) -> anyhow::Result<ExitStatus> {
    let filters = Filters::new(chdir, &args.select)?;
    if args
        .command
        .first()
        .is_some_and(|program| program.is_empty())
    {
        return Err(UsageError("the name of the program is empty".to_owned()).into());
    }
    let disabled = safeguards::disabled(args)?;
    let is_off = |safeguard: &Safeguard| disabled.is_off(*safeguard);
    let reads = match Reads::for_selection(&args.select) {
        Reads::Configuration if !args.dry_run && !safeguards::OF_STATUS.iter().all(is_off) => {
            Reads::Status
        }
        reads => reads,
    };
    let loaded = Loaded::new(chdir, Format::Text, reads)?;
    if let Some(status) = loaded.check()? {
        return Ok(status);
    }
    let wish = loaded.wish(filters)?;
    let selection = loaded.select(&wish);
    loaded.check_cycles(CyclesAre::ErrorsWithin(&selection));
    let environments = loaded.environments(selection.stacks());
    if let Some(status) = loaded.report()? {
        return Ok(status);
    }
    if selection.is_empty() {
        return Ok(ExitStatus::Success);
    }
    let order = Order::new(&loaded.graph, &selection);
    let mut sequence = order.sequence.clone();
    let direction = if args.reverse {
        sequence.reverse();
        Direction::Reverse
    } else {
        Direction::Forward
    };
    let run_id = Uuid::now_v7().to_string();
    let tasks = match tasks(loaded, &args.command, environments, &run_id) {
        Ok(tasks) => tasks,
        Err(missing) => {
            show_missing(loaded, &missing);
            return Ok(ExitStatus::Surroundings);
        }
    };
    let command = command_line(&args.command);
    if args.dry_run {
        let mut out = console::stdout();
        for &stack in &sequence {
            let path = printable(loaded.project.stacks[stack].path.as_str());
            writeln!(out, "{path}: {command}")?;
        }
        out.flush()?;
        return Ok(ExitStatus::Success);
    }
    if !loaded.is_safe(&disabled) {
        return Ok(ExitStatus::Refused);
    }
    let on_error = match args.on_error {
        _ if args.continue_on_error => OnError::Continue,
        None | Some(OnErrorArg::Stop) => OnError::Stop,
        Some(OnErrorArg::SkipDependents) => OnError::SkipDependents,
        Some(OnErrorArg::Continue) => OnError::Continue,
    };
    let plan = Plan {
        schedule: order
            .schedule(direction, on_error)
            .at_once(args.parallel.map_or(NonZeroUsize::MIN, |jobs| jobs.0), &[]),
        attempts: attempts::attempts(&args.attempts, &sequence),
        timeout: args.attempts.run_timeout,
        grace: args.attempts.grace.unwrap_or(DEFAULT_GRACE),
        sequence,
    };
    let mut text = RunText::new(
        console::stderr(),
        &loaded.project.stacks,
        command,
        args.quiet,
    );
    let mut commands = Commands {
        task: Box::new(|stack| tasks[&stack].clone()),
        streams: Streams::Live,
    };
    let inbox = Inbox::with_signals().context("failed to receive signals")?;
    // A stderr that does not work must not stop a run.
    let summary = execute(plan, &mut commands, inbox, &mut |event| {
        _ = text.event(event);
    });
    _ = text.summary(&summary);
    Ok(match summary.signal {
        Some(signal) => ExitStatus::Signal(signal),
        None if summary.is_success() => ExitStatus::Success,
        None => ExitStatus::CommandFailed,
    })
}
