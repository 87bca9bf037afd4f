//! `orch run`

mod arguments;
mod attempts;
mod holder;
mod output;
mod record;
mod resume;
mod safeguards;
mod tasks;

use std::collections::HashMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use orch::change::Since;
use orch::printable::{command_line, printable};
use orch::project::attempt::Attempts;
use orch::project::config::Safeguard;
use orch::project::stack::StackIndex;
use orch::record::journal::{RecordFolder, UncommittedFile};
use orch::run::event::{RunEvent, RunSummary, Sink as _};
use orch::run::execute::{Commands, Execution, Inbox, Task, execute, make_room};
use orch::run::order::{Direction, Order};
use orch::run::resume::ResumedRun;
use orch::run::schedule::{Limit, OnError};
use orch::run::turn::{Step, Turn, TurnIndex};

use self::arguments::OnErrorArg;
pub(crate) use self::arguments::{RunArgs, flag_on_record};
use self::output::{How, Output, Shown, advertise_colour};
use self::tasks::{show_missing, tasks};
use super::{CyclesAre, Filters, Loaded, LocatedProject, MARK_ROOT, Reads, find_project};
use crate::program::commands::format::Format;
use crate::program::console;
use crate::program::error::{ProgramError, Result};
use crate::program::exit::ExitStatus;

/// How long a command that took too long has to end after its interrupt: what terraform takes to give
/// up its lock, with plenty to spare.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

pub(super) fn run(chdir: &[PathBuf], mut args: RunArgs) -> Result<ExitStatus> {
    let filters = Filters::new(chdir, &args.select)?;
    check_command(&args)?;
    let disabled = safeguards::disabled(&args)?;
    let is_off = |safeguard: &Safeguard| disabled.is_off(*safeguard);
    let found = find(chdir, &args)?;
    let reads = if args.resume.is_wanted() {
        // What has changed since decides whether the run can be resumed.
        Reads::Changes
    } else {
        match Reads::for_selection(&args.select) {
            Reads::Configuration if args.dry_run => Reads::Configuration,
            // The journal names what is not committed, whether or not safeguards are off.
            Reads::Configuration if safeguards::OF_STATUS.iter().all(is_off) => Reads::Record,
            Reads::Configuration => Reads::Status,
            reads => reads,
        }
    };
    let mut loaded = Loaded::of(found, Format::Text, reads)?;
    if let Some(status) = loaded.check()? {
        return Ok(status);
    }
    let resumed = resume::resumed(&mut loaded, &mut args)?;
    let args = &args;
    let selection = if let Some(resumed) = &resumed {
        resumed.selection()
    } else {
        let query = loaded.query(filters)?;
        loaded.select(&query)
    };
    loaded.check_cycles(CyclesAre::ErrorsWithin(&selection));
    let environments = loaded.environments(selection.stacks());
    if let Some(status) = loaded.report()? {
        return Ok(status);
    }
    if selection.is_empty() {
        return Ok(ExitStatus::Success);
    }
    let order = match &resumed {
        Some(resumed) => resumed.order(&loaded.graph),
        None => Order::new(&loaded.graph, &selection),
    };
    let direction = if args.reverse {
        Direction::Reverse
    } else {
        Direction::Forward
    };
    let sequence = order.sequence_of_turns(direction);
    let attempts = attempts::attempts(&loaded, &args.attempts, &sequence)?;
    let limits = attempts::limits(&loaded, &args.limit)?;
    let jobs = args.parallel.map_or(NonZeroUsize::MIN, |jobs| jobs.0);
    let how = How::new(args, jobs, &attempts)?;
    let run_id = record::new_id(&loaded.project.root);
    let tasks = match tasks(&loaded, &args.command, environments, &run_id) {
        Ok(tasks) => tasks,
        Err(missing) => {
            show_missing(&loaded, &missing);
            return Ok(ExitStatus::External);
        }
    };
    if args.dry_run {
        return show(&loaded, &sequence, &command_line(&args.command));
    }
    if !loaded.is_safe(&disabled) {
        return Ok(ExitStatus::Refused);
    }
    make_room(jobs.get().min(sequence.len())).map_err(anyhow::Error::new)?;
    let run = Ready {
        id: run_id,
        order,
        direction,
        sequence,
        attempts,
        limits,
        jobs,
        how,
        tasks,
        resumed,
        uncommitted: loaded.uncommitted(),
        since: selection.since(),
    };
    carry_out(&loaded, args, run)
}

/// Checks that there is a command, and only one: that of an earlier run cannot be said anew.
fn check_command(args: &RunArgs) -> Result<()> {
    let Some(name) = args.command.first() else {
        return Ok(());
    };
    if args.resume.is_wanted() {
        let flag = match &args.resume.resume {
            Some(run) => format!("--resume {run}"),
            None => "--only-failed".to_owned(),
        };
        return Err(ProgramError::usage(format!(
            "with `{}`, the command comes from the earlier run: `{}` cannot be given",
            printable(&flag),
            command_line(&args.command)
        )));
    }
    if name.is_empty() {
        return Err(ProgramError::usage("the name of the program is empty"));
    }
    Ok(())
}

/// Finds the project, in a state in which git can be asked about it.
fn find(chdir: &[PathBuf], args: &RunArgs) -> Result<LocatedProject> {
    let found = find_project(chdir)?;
    if !found.is_marked() && args.resume.is_wanted() {
        return Err(ProgramError::refused("there is no run to resume: nothing marks the root of a project here, so none is recorded").hint(MARK_ROOT));
    }
    found.note_unmarked(if args.dry_run {
        ""
    } else {
        ", and this run is not recorded: it cannot be resumed, and nothing keeps a second run from starting"
    });
    if !args.dry_run
        && found.is_marked()
        && let Ok(Some(place)) = RecordFolder::find(&found.root)
    {
        // What is wrong with it is said when the run begins.
        _ = place.hide();
    }
    Ok(found)
}

/// A run that nothing is in the way of.
struct Ready<'a> {
    id: String,
    order: Order,
    direction: Direction,
    /// The stacks, in the sequence of a serial run.
    sequence: Vec<StackIndex>,
    attempts: Vec<Attempts>,
    limits: Vec<Limit>,
    jobs: NonZeroUsize,
    how: How,
    tasks: HashMap<StackIndex, Task>,
    /// The run that it resumes.
    resumed: Option<ResumedRun>,
    /// What was not committed, if that is known.
    uncommitted: Option<Vec<UncommittedFile>>,
    /// What changes were measured from.
    since: Option<&'a Since>,
}

/// Runs, records and shows it.
fn carry_out(loaded: &Loaded, args: &RunArgs, run: Ready<'_>) -> Result<ExitStatus> {
    let header = record::header(loaded, args, &run);
    // From now on signals are heard by the run, which its journal tells of.
    let inbox = Inbox::with_signals().context("failed to receive signals")?;
    let mut recording = record::begin(loaded, &header, args.resume.allow_concurrent)?;
    let mut output = Output::new(
        loaded,
        Shown {
            how: run.how,
            command: command_line(&args.command),
            is_quiet: args.quiet,
            jobs: run.jobs,
            run_id: &run.id,
            logs: recording.folder().map(|folder| folder.join("logs")),
            past: &|| record::past_durations(loaded, &args.command),
        },
    )?;
    let schedule = run.order.schedule(run.direction, on_error(args));
    let steps: Arc<[Step]> = [Step::Command("command".into())].into();
    let stacks = &loaded.project.stacks;
    let turn = |stack: &StackIndex| Turn::of_command(stacks[*stack].path.clone(), &steps);
    let execution = Execution {
        schedule: schedule.at_once(run.jobs, &run.limits),
        turns: run.sequence.iter().map(turn).collect(),
        attempts: run.attempts,
        timeout: args.attempts.run_timeout,
        grace: args.attempts.grace.unwrap_or(DEFAULT_GRACE),
    };
    let colours = output.has_colours();
    let task = |turn: TurnIndex, _| {
        let task = run.tasks[&run.sequence[turn.get()]].clone();
        if colours {
            advertise_colour(task)
        } else {
            task
        }
    };
    let mut commands = Commands::new(task, output.streams());
    let summary = execute(execution, &mut commands, &inbox, &mut |event| {
        // What is about to start is on record before it starts.
        let recorded = recording.event(event);
        let shown = output.event(event);
        for error in [recorded, shown].into_iter().filter_map(Result::err) {
            _ = output.event(&RunEvent::NotKept(error.to_string()));
        }
    });
    drop(commands);
    // From now on a signal ends what is left to say, and changes nothing.
    drop(inbox);
    output.end();
    let stuck = summary.stuck().map(|turn| run.sequence[turn.get()]);
    let stuck: Vec<StackIndex> = stuck.collect();
    if !stuck.is_empty() {
        return Err(anyhow!(
            "{} could not start although nothing was running; this is a mistake in orch, please report it",
            loaded.names(&stuck)
        ).into());
    }
    Ok(exit_status(&summary))
}

fn exit_status(summary: &RunSummary) -> ExitStatus {
    match summary.signal {
        _ if summary.stuck().next().is_some() => ExitStatus::External,
        Some(signal) => ExitStatus::Signal(signal),
        None if summary.is_success() => ExitStatus::Success,
        None => ExitStatus::CommandFailed,
    }
}

/// Prints what would run.
fn show(loaded: &Loaded, sequence: &[StackIndex], command: &str) -> Result<ExitStatus> {
    let mut out = console::stdout();
    for &stack in sequence {
        let path = printable(loaded.project.stacks[stack].path.as_str());
        writeln!(out, "{path}: {command}")?;
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

fn on_error(args: &RunArgs) -> OnError {
    match args.on_error {
        _ if args.continue_on_error == Some(true) => OnError::Continue,
        None | Some(OnErrorArg::Stop) => OnError::Stop,
        Some(OnErrorArg::SkipDependents) => OnError::SkipDependents,
        Some(OnErrorArg::Continue) => OnError::Continue,
    }
}
