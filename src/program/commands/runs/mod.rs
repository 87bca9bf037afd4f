//! `orch runs`

mod logs;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use orch::command::stack_arg::StackArg;
use orch::context::MARK_ROOT;
use orch::error::ErrorKind;
use orch::exit::ExitStatus;
use orch::folder::GuardedFolder;
use orch::path::ProjectPath;
use orch::printable::{count, printable};
use orch::record::journal::{Brief, FindError, RunRecord, RunStatus, Runs, WholeRun};
use orch::record::logs::Logs;
use orch::report::{
    ListedRun, ShownRun, write_run, write_run_json, write_run_refusal_json, write_runs,
    write_runs_json,
};

use self::logs::LogsArgs;
use super::format::Format;
use super::reports::ReportArgs;
use super::{CommandContext, Reads, find_project};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Show or remove earlier runs, which are recorded in `.orch/runs`
///
/// RUN is `last` (the newest run, and the default), `last~1` (the one before it), or a unique
/// beginning or end of a run id.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  orch runs list                       recent runs and how they ended
  orch runs show                       the last run, stack by stack
  orch runs logs last --failed         the output of its failed commands
  orch runs logs 01a1ffb4 /prod/network
  orch runs show --format json | jq -r '.stacks[] | select(.state == \"failed\").path'
  orch runs report --report out.json   a report of the last run
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
    Report(ReportRunArgs),
    Prune(PruneArgs),
}

/// List all runs, newest first: when they began, how long they took, how they ended
#[derive(Debug, Args)]
pub(crate) struct ListRunsArgs {
    /// The format of the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Show a run, and how each stack ended
#[derive(Debug, Args)]
pub(crate) struct ShowRunArgs {
    /// `last`, `last~1`, or a unique beginning or end of a run id
    #[arg(value_name = "RUN", default_value = "last", hide_default_value = true)]
    pub(crate) run: String,

    /// The format of the record
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Write reports of a run, even one that was killed or is in progress
#[derive(Debug, Args)]
pub(crate) struct ReportRunArgs {
    /// `last`, `last~1`, or a unique beginning or end of a run id
    #[arg(value_name = "RUN", default_value = "last", hide_default_value = true)]
    pub(crate) run: String,

    #[command(flatten)]
    pub(crate) reports: ReportArgs,
}

/// Remove old runs with their logs
///
/// Each run also removes old runs and keeps 50. Runs that are in progress, or have something to
/// recover (`orch help state`), are never removed.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// How many of the newest runs to keep
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) keep: usize,
}

pub(super) fn runs(chdir: &[PathBuf], command: &RunsCommand) -> Result<ExitStatus> {
    let format = match command {
        RunsCommand::List(args) => args.format,
        RunsCommand::Show(args) => args.format,
        RunsCommand::Logs(_) | RunsCommand::Report(_) | RunsCommand::Prune(_) => Format::Text,
    };
    let result = dispatch(chdir, command);
    if let Err(error) = &result
        && matches!(error.kind(), ErrorKind::Refused | ErrorKind::Usage)
        && format == Format::Json
    {
        let is_list = matches!(command, RunsCommand::List(_));
        let mut out = console::stdout();
        write_run_refusal_json(&mut out, &error.message(), is_list)?;
        out.flush()?;
    }
    result
}

fn dispatch(chdir: &[PathBuf], command: &RunsCommand) -> Result<ExitStatus> {
    let found = find_project(chdir)?;
    if !found.is_marked() {
        return Err(ProgramError::refused(
            "no runs are recorded: nothing marks the root of a project here",
        )
        .hint(MARK_ROOT.to_owned()));
    }
    if !matches!(command, RunsCommand::Prune(_)) {
        fetch(chdir, &found.root, wanted(command));
    }
    let runs = all(&found.root)?;
    match command {
        RunsCommand::List(args) => list(runs.as_ref(), args),
        RunsCommand::Show(args) => show(runs.as_ref(), args),
        RunsCommand::Logs(args) => {
            check_run(runs.as_ref(), &found.directory, &args.run)?;
            logs::logs(runs.as_ref(), &found.directory, args)
        }
        RunsCommand::Report(args) => report(chdir, runs.as_ref(), args),
        RunsCommand::Prune(args) => prune(runs.as_ref(), args),
    }
}

/// Returns the run that a command shows, if it shows one.
fn wanted(command: &RunsCommand) -> Option<&str> {
    match command {
        RunsCommand::Show(args) => Some(&args.run),
        RunsCommand::Logs(args) => Some(&args.run),
        RunsCommand::Report(args) => Some(&args.run),
        RunsCommand::List(_) | RunsCommand::Prune(_) => None,
    }
}

/// Brings the runs of work orders, whose jobs ran on any machine, from the store of the state to this one.
fn fetch(chdir: &[PathBuf], root: &Path, wanted: Option<&str>) {
    let is_id = |wanted: &&str| !wanted.starts_with("last");
    let wanted = wanted.filter(is_id);
    // A run of this machine needs no store.
    if let Some(wanted) = wanted
        && let Ok(Some(runs)) = all(root)
        && let Ok(id) = runs.id(wanted)
        && let Ok(brief) = runs.brief(id)
        && brief.header.part_of.is_none()
    {
        return;
    }
    let fetch = || -> Result<()> {
        let mut context = CommandContext::new(chdir, None, Reads::CONFIGURATION)?;
        if context.problems.has_errors() && context.project.settings.state.is_none() {
            return Ok(());
        }
        context.check(None)?;
        Ok(context.fetch_order_runs(wanted)?)
    };
    if let Err(error) = fetch() {
        let why = error.message();
        console::warning(&if error.is_silent() {
            "runs of work orders on other machines may be missing".to_owned()
        } else {
            format!("runs of work orders on other machines may be missing: {why}")
        });
    }
}

/// Returns the runs of a project, if it has any.
fn all(root: &Path) -> Result<Option<Runs>> {
    let place = GuardedFolder::find(root).context("no runs can be read")?;
    let runs = place.map(Runs::find).transpose();
    Ok(runs.context("no runs can be read")?)
}

/// A recorded run.
struct FoundRun {
    record: RunRecord,
    logs: Logs,
    state: RunStatus,
    folder: PathBuf,
}

fn found(runs: Option<&Runs>, wanted: &str) -> Result<FoundRun> {
    let runs = runs.ok_or_else(no_runs)?;
    let id = match runs.id(wanted) {
        Ok(id) => id,
        Err(FindError::NoRuns) => return Err(no_runs()),
        Err(error) => return Err(ProgramError::usage(error.to_string())),
    };
    let whole = runs
        .whole(id)
        .with_context(|| format!("failed to read the journal of run {id}"))?;
    let last = whole.follow_ups.last().map_or(id, |(_, run)| run);
    let state = whole.status(runs.liveness(last));
    let WholeRun {
        record,
        follow_ups,
        unread,
        ..
    } = whole;
    for (later, why) in unread {
        console::warning(&format!(
            "the journal of run {later}, which may be a follow-up of this run, cannot be read: {why}"
        ));
    }
    let logs = |run: &str| -> Result<PathBuf> {
        // Something else may occupy the path.
        let folder = runs.logs(run).context("no logs can be read")?;
        Ok(folder.unwrap_or_else(|| runs.folder(run).join("logs")))
    };
    let mut all = Logs::new(logs(id)?);
    for (n_turns, run) in &follow_ups {
        all = all.continued(*n_turns, logs(run)?);
    }
    Ok(FoundRun {
        record,
        logs: all,
        state,
        folder: runs.folder(id),
    })
}

fn no_runs() -> ProgramError {
    ProgramError::refused(FindError::NoRuns.to_string()).hint("start one with `orch run COMMAND`")
}

/// Detects a stack in the place of the run, and suggests its logs of the last run.
fn check_run(runs: Option<&Runs>, directory: &ProjectPath, written: &str) -> Result<()> {
    let Some(runs) = runs else {
        return Ok(());
    };
    // A short name may be the end of an id.
    let lower = written.to_ascii_lowercase();
    let is_no_run = match runs.id(written) {
        Ok(id) => id.ends_with(&lower) && !id.starts_with(&lower),
        Err(error) => matches!(error, FindError::Unknown(_)),
    };
    if is_no_run
        && let stack = StackArg::new(directory, written).from_root()
        && let Some(Ok(last)) = runs.id("last").ok().map(|last| runs.record(last))
        && last.stacks.iter().any(|known| known.path == stack)
    {
        let written = printable(written);
        return Err(ProgramError::usage(format!(
            "no run has an id that begins with `{written}`; for the logs of stack `{stack}`, run `orch runs logs last {written}`"
        )));
    }
    Ok(())
}

fn list(runs: Option<&Runs>, args: &ListRunsArgs) -> Result<ExitStatus> {
    let ids = runs.map_or(&[][..], Runs::ids);
    let read = |id: &String| {
        let id = id.clone();
        let brief = runs?.brief(&id);
        let is_part = |brief: &Brief| runs.is_some_and(|runs| runs.has_whole(&brief.header));
        let is_shown = !brief.as_ref().is_ok_and(is_part);
        is_shown.then_some(ListedRun { id, brief })
    };
    let listed: Vec<ListedRun> = ids.iter().filter_map(read).collect();
    if listed.is_empty() {
        console::note("no run of this project is recorded");
    }
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_runs(&mut out, &listed)?,
        Format::Json => write_runs_json(&mut out, &listed)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

/// Returns the run that the user names, in the form for reports, and its logs.
pub(super) fn shown_in(root: &Path, wanted: &str) -> Result<(ShownRun, Logs)> {
    shown(all(root)?.as_ref(), wanted)
}

fn shown(runs: Option<&Runs>, wanted: &str) -> Result<(ShownRun, Logs)> {
    let FoundRun {
        record,
        logs,
        state,
        folder,
    } = found(runs, wanted)?;
    let earlier = runs.map(|runs| runs.earlier_in_workflow(&record));
    let earlier = earlier.unwrap_or_default();
    Ok((ShownRun::new(record, earlier, state, folder), logs))
}

fn show(runs: Option<&Runs>, args: &ShowRunArgs) -> Result<ExitStatus> {
    let (shown, _) = shown(runs, &args.run)?;
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_run(&mut out, &shown)?,
        Format::Json => write_run_json(&mut out, &shown)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

fn report(chdir: &[PathBuf], runs: Option<&Runs>, args: &ReportRunArgs) -> Result<ExitStatus> {
    let reports = args.reports.check(chdir, None)?;
    if reports.is_empty() {
        return Err(ProgramError::usage("`orch runs report` needs `--report`"));
    }
    let (shown, logs) = shown(runs, &args.run)?;
    Ok(if reports.write(&shown, &logs) {
        ExitStatus::Success
    } else {
        ExitStatus::External
    })
}

fn prune(runs: Option<&Runs>, args: &PruneArgs) -> Result<ExitStatus> {
    let Some(runs) = runs else {
        console::note("no run of this project is recorded");
        return Ok(ExitStatus::Success);
    };
    let pruned = runs.prune(args.keep);
    let mut out = console::stdout();
    for id in &pruned.removed {
        writeln!(out, "removed {id}")?;
    }
    out.flush()?;
    let left = count(pruned.left, "run");
    console::note(&match pruned.removed.len() {
        0 => format!("nothing to remove: {left} recorded"),
        removed => format!("{} removed, {left} left", count(removed, "run")),
    });
    for (id, error) in &pruned.problems {
        let what = format!("run {id} cannot be removed");
        console::error(anyhow::anyhow!("{error}").context(what).as_ref());
    }
    Ok(if pruned.problems.is_empty() {
        ExitStatus::Success
    } else {
        ExitStatus::External
    })
}
