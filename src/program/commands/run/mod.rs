//! `orch run`

pub(super) mod arguments;
mod dry_run;
mod execute;
pub(super) mod flags;
mod job;
mod options;
pub(super) mod output;
pub(super) mod recorded;
mod report;
pub(super) mod safeguards;
mod stray_flags;

use std::ffi::OsString;
use std::path::PathBuf;

use orch::command::run::{NothingToRun, Prepared, Resumed, SelectedRun};
use orch::context::MARK_ROOT;
use orch::exit::ExitStatus;
use orch::folder::GuardedFolder;
use orch::printable::{command_line, printable};
use orch::project::config::Safeguard;
use orch::run::run_command::CommandKind;
use orch::run::safeguard::{Disabled, guards};
use orch::run::violations::OF_STATUS;
use orch::workspace::LocatedProject;

pub(crate) use self::arguments::RunArgs;
pub(super) use self::arguments::jobs;
use self::flags::EventArgs;
pub(super) use self::job::CommandJobs;
use self::output::OutputMode;
pub(crate) use self::recorded::contradicting_flag;
use super::reports::Reports;
use super::{CommandContext, ReadStatus, Reads, find_project, note_unmarked};
use crate::program::error::{ProgramError, Result};
use crate::program::{console, notices};

pub(super) fn run(chdir: &[PathBuf], args: &RunArgs) -> Result<ExitStatus> {
    stray_flags::note(args);
    run_kind(chdir, args, args.kind())
}

/// Runs the script whose labels are in the place of the command.
pub(super) fn run_script(chdir: &[PathBuf], args: &RunArgs) -> Result<ExitStatus> {
    run_kind(chdir, args, CommandKind::Script)
}

fn run_kind(chdir: &[PathBuf], args: &RunArgs, kind: CommandKind) -> Result<ExitStatus> {
    let filters = args.select.request_with_state(chdir)?;
    check_command(args, kind)?;
    let descriptor = args.events.descriptor()?;
    let events = args.events.file(chdir)?;
    let mut reports = args.reports.check(chdir, events.as_deref())?;
    if !args.dry_run {
        reports = reports.with_step_summary();
    }
    let options = args.options(kind, safeguards::of_run(args)?);
    if let Some(flag) = args.cloud.reporting() {
        console::warning(&format!(
            "`{flag}` has no effect: orch does not report to Terramate Cloud; `orch runs` shows this run"
        ));
    }
    let found = find(chdir, args)?;
    let mut context = CommandContext::of(found, None, reads(args, kind, &options.disabled))?;
    let change = filters.change.clone();
    context.check(change.as_ref())?;
    let resumed = Resumed::find(&mut context, &options)?;
    let (selection, query) = if let Some(resumed) = &resumed {
        (resumed.run.selection(), None)
    } else {
        let query = context.ask(|context| context.query(filters))?;
        (context.select(&query), Some(query))
    };
    let selected = match SelectedRun::new(&mut context, &options, selection, query, resumed)? {
        Prepared::Run(selected) => selected,
        Prepared::Nothing(nothing) => return Ok(end(&context, nothing, args, &reports)),
    };
    let how = OutputMode::new(args, selected.run().jobs(), &selected.run().attempts)?;
    if args.dry_run {
        let in_force = || Ok(safeguards::in_force(args)?);
        let (prepared, followed) = selected.foresee(&mut context, in_force)?;
        return dry_run::dry_run(&context, &prepared, followed, &reports);
    }
    selected.check(&mut context)?;
    how.note_reports(args);
    let locked = match selected.lock(&mut context)? {
        Prepared::Run(locked) => locked,
        Prepared::Nothing(nothing) => return Ok(end(&context, nothing, args, &reports)),
    };
    let stream = EventArgs::stream(descriptor, events)?;
    execute::execute(chdir, args, &context, locked, how, stream, &reports)
}

/// Ends a run that has nothing to do.
fn end(
    context: &CommandContext,
    nothing: Box<NothingToRun>,
    args: &RunArgs,
    reports: &Reports,
) -> ExitStatus {
    let NothingToRun { request, status } = *nothing;
    if reports.is_empty() {
        return status;
    }
    let reported = report::nothing(context, request, args.dry_run, reports);
    match reported.number() {
        0 => status,
        _ => reported,
    }
}

/// Returns which parts of git the run reads.
fn reads(args: &RunArgs, kind: CommandKind, disabled: &Disabled) -> Reads {
    if args.resume.is_wanted() {
        // Changes since the earlier run decide whether it can be resumed.
        return Reads::CHANGES.with_data(args.select.neighbours.follow_data());
    }
    let reads = args.select.reads();
    if args.dry_run {
        return reads;
    }
    let is_off = |safeguard: &Safeguard| disabled.is_off(*safeguard);
    let is_plain = kind == CommandKind::Plain;
    let is_unguarded =
        OF_STATUS.iter().all(is_off) || is_plain && !guards(&args.command, disabled, &[]);
    // The journal lists uncommitted files, whether or not safeguards are disabled.
    let reads = reads.with_status(if is_unguarded {
        ReadStatus::Rough
    } else {
        ReadStatus::Exact
    });
    if args.record.no_record {
        reads
    } else {
        // A recorded run has the digests of inputs.
        reads.with_listing()
    }
}

/// Checks that there is a command, and only one: a resumed run has the command of the earlier run.
fn check_command(args: &RunArgs, kind: CommandKind) -> Result<()> {
    if args.command.is_empty() {
        return Ok(());
    }
    if args.resume.is_wanted() {
        let flag = match &args.resume.resume {
            Some(run) => format!("--resume {run}"),
            None => "--only-failed".to_owned(),
        };
        return Err(ProgramError::usage(format!(
            "with `{}`, the command is that of the earlier run: remove `{}`",
            printable(&flag),
            command_line(&args.command)
        )));
    }
    if kind != CommandKind::Script {
        check_program(&args.command)?;
    }
    Ok(())
}

/// Checks that a command names a program.
pub(super) fn check_program(command: &[OsString]) -> Result<()> {
    if command.first().is_some_and(|name| name.is_empty()) {
        return Err(ProgramError::usage("the name of the program is empty"));
    }
    Ok(())
}

/// Finds the project, and hides `.orch` from git before git is read.
fn find(chdir: &[PathBuf], args: &RunArgs) -> Result<LocatedProject> {
    let found = find_project(chdir)?;
    if !found.is_marked() && args.resume.is_wanted() {
        return Err(ProgramError::refused(
            "no run to resume: nothing marks the root of a project here, so none is recorded",
        )
        .hint(MARK_ROOT));
    }
    note_unmarked(
        &notices::of(&found.root),
        &found,
        if args.dry_run {
            ""
        } else {
            ", and this run is not recorded: it cannot be resumed, and a second run can start at the same time"
        },
    );
    if !args.dry_run
        && found.is_marked()
        && let Ok(Some(place)) = GuardedFolder::find(&found.root)
    {
        // The run reports the failure when it begins.
        _ = place.hide();
    }
    Ok(found)
}
