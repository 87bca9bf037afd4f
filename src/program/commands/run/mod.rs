//! `orch run`

mod again;
mod arguments;
mod carried_out;
pub(super) mod command;
mod destroy_order;
mod dry_run;
mod events;
mod exit_codes;
mod followed;
pub(super) mod holder;
pub(super) mod output;
mod policy_flags;
mod record_flags;
pub(super) mod recorded;
mod report;
mod resume;
pub(super) mod safeguard_flags;
pub(super) mod safeguards;
mod settings;
mod state;
mod stray_flags;
mod tool_plans;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::anyhow;
use orch::context::{Context, MARK_ROOT};
use orch::exit::ExitStatus;
use orch::folder::GuardedFolder;
use orch::printable::{command_line, printable};
use orch::project::Problems;
use orch::project::config::Safeguard;
use orch::project::policy::PolicyRun;
use orch::project::stack::StackIndex;
use orch::record::journal::BaseRecord;
use orch::report::failure_text;
use orch::run::begun::{BeginError, EndedRun};
use orch::run::event::RunSummary;
use orch::run::execute::LookupError;
use orch::run::order::{Direction, Order};
use orch::run::request::{PrepareError, PreparedRun, RunRequest, Typed};
use orch::run::run_command::RunCommand;
use orch::run::safeguard::{Disabled, guards};
use orch::run::settings::RunSettings;
use orch::run::violations::OF_STATUS;
use orch::selection::select::Selection;
use orch::state::writer::Ended;
use orch::workspace::LocatedProject;

use self::again::Again;
pub(crate) use self::arguments::RunArgs;
pub(super) use self::arguments::jobs;
use self::carried_out::CarriedOut;
use self::destroy_order::DestroyGuard;
use self::events::EventArgs;
use self::followed::FollowedRun;
use self::output::How;
pub(crate) use self::recorded::flag_on_record;
use self::resume::Resumed;
use super::follower::EarlierWorkflow;
use super::reports::Reports;
use super::{CyclesAre, Filters, Loaded, ReadStatus, Reads, find_project, note_unmarked};
use crate::program::console;
use crate::program::error::{ProgramError, Result};
use crate::program::github::Github;

pub(super) fn run(chdir: &[PathBuf], args: &RunArgs) -> Result<ExitStatus> {
    let filters = Filters::of_run(chdir, &args.select)?;
    check_command(args)?;
    stray_flags::note(args);
    let descriptor = args.events.descriptor()?;
    let events = args.events.file(chdir)?;
    let mut reports = args.reports.check(chdir, events.as_deref())?;
    if !args.dry_run {
        reports = reports.with_step_summary();
    }
    let disabled = safeguards::of_run(args)?;
    let found = find(chdir, args)?;
    let mut loaded = Loaded::of(found, None, reads(args, &disabled))?;
    let change = filters.change().cloned();
    loaded.check(change.as_ref())?;
    let mut resumed = resume::resumed(&mut loaded, args)?;
    let workflow = resumed.as_mut().and_then(|resumed| resumed.workflow.take());
    let (selection, query) = if let Some(resumed) = &resumed {
        (resumed.run.selection(), None)
    } else {
        let query = loaded.query(filters)?;
        (loaded.select(&query), Some(query))
    };
    let destroys = DestroyGuard::new(&disabled, resumed.as_ref());
    let ready = Ready::new(&mut loaded, args, &selection, resumed, &reports, None)?;
    let excluded = loaded.excluded(query.as_ref());
    let mut followed = ready.followed(&mut loaded, args, &excluded, workflow.as_ref())?;
    let Ready { run, command } = &ready;
    let how = How::new(args, run.jobs(), &run.attempts)?;
    if !ready.spares_protected(&loaded, args.dry_run)? {
        return Ok(ExitStatus::Refused);
    }
    if args.dry_run {
        destroys.warn(&mut loaded, args, &ready)?;
        if let Some(followed) = &mut followed {
            followed.recall(&mut loaded, run, None)?;
        }
        return dry_run::dry_run(&loaded, &ready, followed, &reports);
    }
    if !ready.is_safe(&mut loaded, &disabled) {
        return Ok(ExitStatus::Refused);
    }
    how.note_reports(args);
    let uncommitted = loaded.uncommitted();
    let selected = ready.run.sequence.clone();
    let (ready, mut kept) = match state::take(&mut loaded, args, (run, command), destroys)? {
        None => (ready, None),
        Some(mut kept) => {
            let again = Again {
                args,
                query,
                reports: &reports,
                disabled: &disabled,
            };
            let (ready, plan) = again.prepare(&mut loaded, &mut kept, &selection, ready)?;
            (ready, Some((plan, kept)))
        }
    };
    if followed.is_some() && ready.run.sequence != selected {
        followed = ready.followed(&mut loaded, args, &excluded, workflow.as_ref())?;
    }
    if let Some(followed) = &mut followed {
        let document = kept.as_ref().map(|(_, kept)| kept.document());
        followed.recall(&mut loaded, &ready.run, document)?;
    }
    if let (Some(followed), Some((plan, kept))) = (&mut followed, &mut kept) {
        plan.add_followups(kept.followups(&mut loaded, &ready.run, followed)?);
    }
    let carried_out = CarriedOut {
        chdir,
        args,
        reports: &reports,
        how,
        kept,
        followed,
        uncommitted,
        stream: EventArgs::stream(descriptor, events)?,
    };
    carried_out.carry_out(&loaded, ready)
}

/// A run that has been prepared, and its command.
struct Ready {
    run: PreparedRun,
    command: RunCommand,
}

impl Ready {
    /// Prepares a run of the selected stacks. If there is nothing to run, only the exit status is left. `id` is the id that it has already.
    fn new(
        loaded: &mut Loaded,
        args: &RunArgs,
        selection: &Selection,
        resumed: Option<Resumed>,
        reports: &Reports,
        id: Option<String>,
    ) -> Result<Self> {
        loaded.check_cycles(CyclesAre::ErrorsWithin(selection));
        let (environments, command) = command::prepared(loaded, args, selection, resumed.as_ref())?;
        loaded.report()?;
        let is_open = resumed.as_ref().is_some_and(|resumed| resumed.is_open);
        if !is_open {
            loaded.check_not_empty(selection, args.fail_if_empty)?;
        }
        if selection.is_empty() && !is_open {
            let status = nothing_to_do(loaded, args, selection, command, resumed, reports);
            return Err(status.into());
        }
        settings::check_limits(loaded, &args.limit)?;
        let request = RunRequest {
            environments,
            id,
            ..request(loaded, args, selection, command.clone(), resumed)
        };
        match request.prepare(&loaded.project) {
            Ok(mut run) => {
                loaded.ask_tools(&mut run, &command);
                Ok(Ready { run, command })
            }
            Err(PrepareError::Settings(error)) => Err(settings::explained(loaded, error)),
            Err(PrepareError::Programs(missing)) => {
                show_missing(loaded, &missing);
                Err(ExitStatus::External.into())
            }
        }
    }

    /// Returns whether the run destroys nothing that is protected, or only shows what it would run; says what it
    /// would destroy.
    fn spares_protected(&self, loaded: &Loaded, is_only_shown: bool) -> Result<bool> {
        if !loaded.destroys_protected(&self.run, &self.command, None)? {
            return Ok(true);
        }
        console::note(if is_only_shown {
            "the run would be refused"
        } else {
            "nothing was run"
        });
        Ok(is_only_shown)
    }

    /// Returns what it takes to let policies follow the run, if they do.
    fn followed(
        &self,
        loaded: &mut Loaded,
        args: &RunArgs,
        excluded: &BTreeSet<StackIndex>,
        resumed: Option<&EarlierWorkflow>,
    ) -> Result<Option<FollowedRun>> {
        let mode = followed::mode(loaded, args, self, resumed)?;
        if mode == PolicyRun::Off {
            return Ok(None);
        }
        // What was found before has been shown.
        loaded.problems = Problems::default();
        let followed = FollowedRun::prepare(loaded, args, mode, self, excluded, resumed)?;
        loaded.report()?;
        Ok(Some(followed))
    }

    /// Returns whether no safeguard forbids the run; says which does.
    fn is_safe(&self, loaded: &mut Loaded, disabled: &Disabled) -> bool {
        let read_only = &loaded.project.settings.read_only;
        let is_guarded = |words: &[OsString]| guards(words, disabled, read_only);
        !self.command.any(&self.run.sequence, is_guarded) || loaded.is_safe(disabled)
    }
}

/// Explains why a run does not begin.
///
/// A run of drivers cannot run beside others.
pub(super) fn begin_error(error: BeginError, can_be_beside: bool) -> ProgramError {
    match error {
        BeginError::Files(error) => anyhow::Error::new(error).into(),
        BeginError::Signals(error) => anyhow::Error::new(error)
            .context("failed to receive signals")
            .into(),
        BeginError::Busy(busy) => holder::explained(busy, can_be_beside),
    }
}

/// Ends a run in which nothing is to be done.
fn nothing_to_do(
    loaded: &Loaded,
    args: &RunArgs,
    selection: &Selection,
    command: RunCommand,
    resumed: Option<Resumed>,
    reports: &Reports,
) -> ExitStatus {
    let done = match &resumed {
        Some(resumed) if resumed.tells_of_changes(args) => ExitStatus::Run(2),
        _ => ExitStatus::Success,
    };
    if reports.is_empty() {
        return done;
    }
    let mut request = request(loaded, args, selection, command, resumed);
    // No setting is wrong where nothing runs.
    request.settings = RunSettings::default();
    let status = report::nothing(loaded, request, args.dry_run, reports);
    if status.number() == 0 { done } else { status }
}

/// Returns what of git is needed.
fn reads(args: &RunArgs, disabled: &Disabled) -> Reads {
    if args.resume.is_wanted() {
        // What has changed since decides whether the run can be resumed.
        return Reads::CHANGES;
    }
    let reads = Reads::for_selection(&args.select);
    if args.dry_run {
        return reads;
    }
    let is_off = |safeguard: &Safeguard| disabled.is_off(*safeguard);
    let is_unguarded =
        OF_STATUS.iter().all(is_off) || !args.eval && !guards(&args.command, disabled, &[]);
    // The journal names what is not committed, whether or not safeguards are off.
    let reads = reads.with_status(if is_unguarded {
        ReadStatus::Rough
    } else {
        ReadStatus::Exact
    });
    if args.record.no_record {
        reads
    } else {
        // A run on record has the digests of inputs.
        reads.with_listing()
    }
}

/// Shows failures where stacks are declared, in GitHub Actions, given the stack of each turn; none for one that
/// is not in the tree.
pub(super) fn annotate(loaded: &Loaded, sequence: &[Option<StackIndex>], summary: &RunSummary) {
    let Some(github) = Github::detect(&loaded.project.root) else {
        return;
    };
    let failures = summary.endings.iter().filter_map(|ending| {
        let stack = (*sequence.get(ending.turn.get())?)?;
        let stack = &loaded.project.stacks[stack];
        Some((stack.path.as_str(), stack.span, failure_text(ending)?))
    });
    github.failures(failures, &loaded.project.sources);
}

/// Returns what the command line asks to be run in a selection, without the environments.
fn request(
    loaded: &Loaded,
    args: &RunArgs,
    selection: &Selection,
    command: RunCommand,
    resumed: Option<Resumed>,
) -> RunRequest {
    let base = selection.since().map(BaseRecord::of);
    let forward = || Order::new(&loaded.graph, selection);
    let (order, direction, settings, earlier) = match resumed {
        Some(Resumed { run, settings, .. }) => {
            let settings = args.settings().or(settings);
            let (order, direction) = (run.order(&loaded.graph), run.direction);
            (order, direction, settings, Some(run))
        }
        None if args.reverse => (forward(), Direction::Reverse, args.settings(), None),
        None => (forward(), Direction::Forward, args.settings(), None),
    };
    RunRequest {
        command,
        order,
        direction,
        settings,
        environments: Vec::new(),
        resumes: earlier,
        base,
        typed: Typed {
            arguments: std::env::args_os().skip(1).collect(),
            directory: loaded.directory.clone(),
        },
        id: None,
    }
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
    note_unmarked(
        &found,
        if args.dry_run {
            ""
        } else {
            ", and this run is not recorded: it cannot be resumed, and nothing keeps a second run from starting"
        },
    );
    if !args.dry_run
        && found.is_marked()
        && let Ok(Some(place)) = GuardedFolder::find(&found.root)
    {
        // What is wrong with it is said when the run begins.
        _ = place.hide();
    }
    Ok(found)
}

/// Returns the exit status after a run; says what could not be put on record.
fn exit_status(
    loaded: &Loaded,
    sequence: &[StackIndex],
    run: &str,
    ended: &EndedRun,
) -> Result<ExitStatus> {
    let summary = &ended.summary;
    let is_lost = is_lost(ended.state.as_ref(), run);
    let stuck = summary.stuck().map(|turn| sequence[turn.get()]);
    let stuck: Vec<StackIndex> = stuck.collect();
    if !stuck.is_empty() {
        return Err(anyhow!(
            "{} could not start although nothing was running; this is a bug in orch, please report it",
            loaded.names(&stuck)
        )
        .into());
    }
    if is_lost && summary.signal.is_none() {
        return Ok(ExitStatus::External);
    }
    Ok(ExitStatus::Run(summary.exit_status()))
}

/// Shows which programs are missing, and where.
pub(super) fn show_missing(context: &Context, missing: &BTreeMap<LookupError, Vec<StackIndex>>) {
    for (error, stacks) in missing {
        console::error(error);
        console::note(&format!(
            "needed in {}; nothing was run",
            context.names(stacks)
        ));
    }
}

/// Says what could not be put on record; returns whether anything could not.
pub(super) fn is_lost(ended: Option<&Ended>, run: &str) -> bool {
    let Some(Ended::Lost { loss, unkept }) = ended else {
        return false;
    };
    let error = anyhow::anyhow!("not everything is on record: {loss}");
    console::error(error.as_ref());
    console::note(&match unkept {
        None => {
            format!(
                "once it can be written, `orch state recover {run}` puts what is missing on record"
            )
        }
        Some(problem) => format!(
            "what is missing cannot be recovered, as it could not be kept on this machine either: {problem}"
        ),
    });
    true
}
