//! `orch run`, from the request to the exit status.

mod command;
mod destroys;
mod exported;
mod options;
mod policies;
mod recorder;
mod reselect;
mod resumed;
mod sharing;
mod tool_plans;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use self::command::EvaluatedCommand;
pub use self::destroys::DestroyGuard;
pub use self::options::{
    JobResults, PolicyOptions, ResumeOptions, RunJob, RunOptions, SeenAttempts,
};
pub(super) use self::options::{changed_meanwhile, records_of};
pub use self::policies::PreparedRunPolicies;
pub(super) use self::policies::patterns;
use self::recorder::HeldState;
pub use self::resumed::Resumed;
use self::sharing::SharingStacks;
use super::workflow::EarlierWorkflow;
use super::{RunOutput, RunSession, annotate, is_lost};
use crate::context::{Context, CyclesAre};
use crate::diagnostic::Code;
use crate::error::{Error, Result};
use crate::exit::ExitStatus;
use crate::project::Problems;
use crate::project::discover::RootRule;
use crate::project::policy::PolicyRun;
use crate::project::script::labels;
use crate::project::stack::StackIndex;
use crate::record::journal::{BaseRecord, RunRecord, UncommittedFile};
use crate::record::logs::Logs;
use crate::report::CommandLines;
use crate::run::directed::Director;
use crate::run::event_stream::EventStream;
use crate::run::execute::{LookupError, Task};
use crate::run::order::{Direction, RunOrder};
use crate::run::recording::Concurrency;
use crate::run::request::{Invocation, PrepareError, PreparedRun, RunRequest};
use crate::run::run_command::{CommandKind, RunCommand};
use crate::run::safeguard::{Disabled, guards};
use crate::run::settings::RunSettings;
use crate::run::sharing::SharedInputs;
use crate::run::started::{BeginOptions, EndedRun};
use crate::run::state::StatePlan;
use crate::selection::select::{Query, Selection};

/// A command in the selected stacks, with all checks that need no lock.
pub struct PreparedCommand {
    pub run: PreparedRun,
    pub command: RunCommand,
}

pub enum Prepared<T> {
    Run(T),
    Nothing(Box<NothingToRun>),
}

pub struct NothingToRun {
    pub request: RunRequest,
    pub status: ExitStatus,
}

impl PreparedCommand {
    /// Prepares a run of the selected stacks. `id` is the run's id, if it already has one.
    fn new(
        context: &mut Context,
        options: &RunOptions,
        selection: &Selection,
        resumed: Option<Resumed>,
        id: Option<String>,
    ) -> Result<Prepared<Self>> {
        let (words, kind) = match &resumed {
            Some(resumed) => (&resumed.command, resumed.kind),
            None => (&options.command, options.kind),
        };
        let with_script = match kind {
            CommandKind::Script => Some(context.with_script(&labels(words), selection)?),
            CommandKind::Plain | CommandKind::Template => None,
        };
        let selection = with_script.as_ref().unwrap_or(selection);
        context.check_cycles(CyclesAre::ErrorsWithin(selection));
        let stacks: Vec<StackIndex> = selection.stacks().collect();
        let EvaluatedCommand {
            environments,
            command,
            sharing,
            mut problems,
        } = command::evaluated(context, words, kind, &stacks)?;
        if options.runs_elsewhere {
            problems.retain(|it| it.diagnostic.code != Code::UnsetVariable);
        }
        context.add_shared(problems);
        context.report()?;
        let is_open = resumed.as_ref().is_some_and(|resumed| resumed.is_open);
        if !is_open && options.fails_if_empty && selection.is_empty() {
            return Err(Error::refused(
                "no stack is selected, and `--fail-if-empty` is given",
            ));
        }
        if selection.is_empty() && !is_open {
            let nothing = nothing(context, options, selection, command, resumed);
            return Ok(Prepared::Nothing(Box::new(nothing)));
        }
        options.check_limits(context)?;
        let mut request = RunRequest {
            environments,
            id,
            ..request(context, options, selection, command.clone(), resumed)
        };
        let settings = &mut request.settings;
        settings.sharing = settings.sharing.or(sharing);
        match request.prepare(&context.project) {
            Ok(mut run) => {
                if !options.runs_elsewhere {
                    context.ask_tools(&mut run, &command);
                }
                Ok(Prepared::Run(PreparedCommand { run, command }))
            }
            Err(PrepareError::Settings(error)) => Err(options::explained(context, error)),
            Err(PrepareError::Programs(missing)) => {
                show_missing(context, &missing);
                Err(ExitStatus::External.into())
            }
        }
    }

    /// Refuses a run that would destroy a protected stack, or violates a safeguard.
    fn check(&self, context: &mut Context, disabled: &Disabled) -> Result<()> {
        if context.destroys_protected(&self.run, &self.command, None)? {
            context.notices.note("nothing was run");
            return Err(ExitStatus::Refused.into());
        }
        let read_only = &context.project.settings.read_only;
        let is_guarded = |words: &[OsString]| guards(words, disabled, read_only);
        if self.command.any(&self.run.sequence, is_guarded) && !context.is_safe(disabled) {
            return Err(ExitStatus::Refused.into());
        }
        Ok(())
    }

    /// Prepares the policies of the run, if they are on.
    fn followed(
        &self,
        context: &mut Context,
        options: &RunOptions,
        excluded: &BTreeSet<StackIndex>,
        resumed: Option<&EarlierWorkflow>,
    ) -> Result<Option<PreparedRunPolicies>> {
        let mode = policies::mode(context, options, self, resumed)?;
        if mode == PolicyRun::Off {
            return Ok(None);
        }
        // Earlier problems have been shown.
        context.problems = Problems::default();
        let followed =
            PreparedRunPolicies::prepare(context, options, mode, self, excluded, resumed)?;
        context.report()?;
        Ok(Some(followed))
    }
}

fn nothing(
    context: &Context,
    options: &RunOptions,
    selection: &Selection,
    command: RunCommand,
    resumed: Option<Resumed>,
) -> NothingToRun {
    let status = match &resumed {
        Some(resumed) if resumed.reports_changes(options) => ExitStatus::Run(2),
        _ => ExitStatus::Success,
    };
    let mut request = request(context, options, selection, command, resumed);
    // Settings cannot be wrong if nothing runs.
    request.settings = RunSettings::default();
    NothingToRun { request, status }
}

/// Returns the request for a run of a selection, without the environments.
fn request(
    context: &Context,
    options: &RunOptions,
    selection: &Selection,
    command: RunCommand,
    resumed: Option<Resumed>,
) -> RunRequest {
    let base = selection.since().map(BaseRecord::of);
    let forward = || RunOrder::new(&context.graph, selection);
    let options_settings = options.settings.clone();
    let (order, direction, settings, earlier) = match resumed {
        Some(Resumed { run, settings, .. }) => {
            let settings = options_settings.or(settings);
            let (order, direction) = (run.order(&context.graph), run.direction);
            (order, direction, settings, Some(run))
        }
        None if options.is_reverse => (forward(), Direction::Reverse, options_settings, None),
        None => (forward(), Direction::Forward, options_settings, None),
    };
    RunRequest {
        command,
        order,
        direction,
        settings,
        environments: Vec::new(),
        resumes: earlier,
        base,
        invocation: Invocation {
            arguments: std::env::args_os().skip(1).collect(),
            directory: context.directory.clone(),
        },
        id: None,
        runs_elsewhere: options.runs_elsewhere,
    }
}

/// Prints the missing programs and the stacks that need them.
pub fn show_missing(context: &Context, missing: &BTreeMap<LookupError, Vec<StackIndex>>) {
    for (error, stacks) in missing {
        context.notices.error(error);
        context.notices.note(&format!(
            "needed in {}; nothing was run",
            context.names(stacks)
        ));
    }
}

/// A run that was prepared for a selection and has not begun.
pub struct SelectedRun<'o> {
    options: &'o RunOptions,
    selection: Selection,
    /// `None` if the selection comes from an earlier run.
    query: Option<Query>,
    prepared: PreparedCommand,
    destroys: DestroyGuard,
    /// The stacks that no policy adds.
    excluded: BTreeSet<StackIndex>,
    workflow: Option<EarlierWorkflow>,
    followed: Option<PreparedRunPolicies>,
}

impl<'o> SelectedRun<'o> {
    /// Prepares the run of a selection, which comes from a query or a resumed run.
    pub fn new(
        context: &mut Context,
        options: &'o RunOptions,
        selection: Selection,
        query: Option<Query>,
        mut resumed: Option<Resumed>,
    ) -> Result<Prepared<Self>> {
        let workflow = resumed.as_mut().and_then(|resumed| resumed.workflow.take());
        let destroys = DestroyGuard::new(context, options, resumed.as_ref());
        let prepared = match PreparedCommand::new(context, options, &selection, resumed, None)? {
            Prepared::Run(prepared) => prepared,
            Prepared::Nothing(nothing) => return Ok(Prepared::Nothing(nothing)),
        };
        let excluded = context.excluded(query.as_ref());
        let followed = prepared.followed(context, options, &excluded, workflow.as_ref())?;
        Ok(Prepared::Run(SelectedRun {
            options,
            selection,
            query,
            prepared,
            destroys,
            excluded,
            workflow,
            followed,
        }))
    }

    pub fn run(&self) -> &PreparedRun {
        &self.prepared.run
    }

    /// Refuses a run that would destroy a protected stack, or violates a safeguard.
    pub fn check(&self, context: &mut Context) -> Result<()> {
        let run = &self.prepared.run;
        let shared = SharingStacks::new(context, run, self.followed.is_some())?;
        if let Some(shared) = shared {
            shared.prepare(context, run)?;
        }
        self.prepared.check(context, &self.options.disabled)
    }

    /// Returns the run for a dry run, and prints why it would be refused. `in_force` returns the
    /// safeguards that would have to be disabled.
    pub fn foresee(
        self,
        context: &mut Context,
        in_force: impl FnOnce() -> Result<Disabled>,
    ) -> Result<(PreparedCommand, Option<PreparedRunPolicies>)> {
        let SelectedRun {
            prepared,
            destroys,
            mut followed,
            ..
        } = self;
        let PreparedCommand { run, command } = &prepared;
        if context.destroys_protected(run, command, None)? {
            context.notices.note("the run would be refused");
        }
        destroys.warn(context, run, command, in_force)?;
        if let Some(followed) = &mut followed {
            followed.recall(context, run, None)?;
        }
        Ok((prepared, followed))
    }

    /// Locks the state if the run is recorded there, and selects again.
    pub fn lock(self, context: &mut Context) -> Result<Prepared<LockedRun>> {
        let uncommitted = context.uncommitted();
        let SelectedRun {
            options,
            selection,
            query,
            prepared,
            destroys,
            excluded,
            workflow,
            mut followed,
        } = self;
        let sequence = prepared.run.sequence.clone();
        let lock = recorder::lock(context, options, &prepared, destroys, followed.as_ref())?;
        let (prepared, mut held) = match lock {
            None => (prepared, None),
            Some(mut held) => {
                if let Some(job) = &options.job {
                    job.check(&context.project.stacks, held.document())?;
                }
                let reselected = reselect::select(
                    context,
                    options,
                    query.as_ref(),
                    &held,
                    &selection,
                    prepared,
                )?;
                let prepared = match reselected {
                    Prepared::Run(prepared) => prepared,
                    Prepared::Nothing(nothing) => return Ok(Prepared::Nothing(nothing)),
                };
                let plan = held.plan(context, &prepared)?;
                (prepared, Some((plan, held)))
            }
        };
        if followed.is_some() && prepared.run.sequence != sequence {
            followed = prepared.followed(context, options, &excluded, workflow.as_ref())?;
        }
        if let Some(followed) = &mut followed {
            let document = held.as_ref().map(|(_, held)| held.document());
            followed.recall(context, &prepared.run, document)?;
            if let Some((plan, held)) = &mut held {
                plan.add_followups(held.followups(context, &prepared.run, followed)?);
            }
        }
        let shared = SharingStacks::new(context, &prepared.run, followed.is_some())?;
        Ok(Prepared::Run(LockedRun {
            prepared,
            held,
            followed,
            uncommitted,
            shared,
            results: options.results.clone(),
            allow_concurrent: options.allow_concurrent,
        }))
    }
}

/// A run that is about to begin. It holds the lock of the state if it is recorded there.
pub struct LockedRun {
    prepared: PreparedCommand,
    held: Option<(StatePlan, HeldState)>,
    followed: Option<PreparedRunPolicies>,
    uncommitted: Option<Vec<UncommittedFile>>,
    /// `None` if no outputs are shared.
    shared: Option<SharingStacks>,
    /// The results of the work order, if it is a job of one.
    results: Option<JobResults>,
    allow_concurrent: bool,
}

impl LockedRun {
    pub fn id(&self) -> &str {
        &self.prepared.run.id
    }

    /// Returns the commands of the turns and of all possible follow-ups.
    pub fn tasks_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        let followed = self
            .followed
            .iter_mut()
            .flat_map(PreparedRunPolicies::tasks_mut);
        self.prepared.run.tasks.iter_mut().flatten().chain(followed)
    }

    /// Begins the run. `is_reported` says whether a report will be written; its journal is also
    /// written to `events`.
    pub fn begin(
        self,
        context: &Context,
        is_reported: bool,
        events: Option<EventStream>,
    ) -> Result<BegunCommand<'_>> {
        let LockedRun {
            prepared: PreparedCommand { mut run, command },
            mut held,
            followed,
            ..
        } = self;
        if let Some(followed) = &followed {
            followed.complete(&mut run)?;
        }
        let inputs = self.shared.map(|it| it.prepare(context, &run));
        let inputs = inputs.transpose()?;
        let (sequence, jobs) = (run.sequence.clone(), run.jobs());
        let is_job = self.results.is_some();
        let is_of_order = is_job || run.follows_order();
        let results = self.results.as_ref();
        let results = results.map(|it| context.order_results(&it.outline, it.lease.clone()));
        let circumstances = BeginOptions {
            is_recorded: context.rule != RootRule::WorkingDirectory,
            notices: &context.notices,
            beside: match self.allow_concurrent {
                _ if is_job => Concurrency::Jobs,
                true => Concurrency::Any,
                false => Concurrency::None {
                    has_flag: !is_of_order,
                },
            },
            uncommitted: self.uncommitted,
            is_reported,
            events,
            results: results.transpose()?.flatten(),
            inbox: held.as_mut().and_then(|(_, held)| held.inbox()),
        };
        let begun = run.begin(&context.project, &context.references, circumstances);
        let mut session = RunSession::new(context, begun?);
        if let Some(results) = &self.results {
            context.check_attempts(results)?;
        }
        if let Some((plan, held)) = held {
            session.keep_state(held.into_lock(), plan)?;
        }
        session.keep_release_samples(&context.release_samples);
        if let Some(inputs) = &inputs {
            session.precede(inputs.steps());
        }
        let mut lines = CommandLines::new(&command, &sequence);
        if let Some(followed) = followed {
            let stacks = &context.project.stacks;
            let have_own = followed.have_own_command();
            lines = lines.with_followup(&followed.command, stacks, have_own);
            followed.follow(&mut session)?;
        }
        Ok(BegunCommand {
            session,
            sequence,
            command,
            jobs,
            lines,
            inputs,
            is_of_order,
        })
    }
}

/// A run that has begun, before its first command.
pub struct BegunCommand<'c> {
    session: RunSession<'c>,
    sequence: Vec<StackIndex>,
    pub command: RunCommand,
    pub jobs: NonZeroUsize,
    pub lines: CommandLines,
    inputs: Option<SharedInputs<'c>>,
    /// Whether it is a job of a work order, or runs its follow-ups.
    is_of_order: bool,
}

pub struct EndedCommand {
    pub status: Result<ExitStatus>,
    /// Its record, if a report will be written.
    pub record: Option<RunRecord>,
    /// The logs, if the output was captured.
    pub logs: Option<Logs>,
    /// The id of the run, if it can be resumed.
    pub resumable: Option<String>,
    /// The folder of the run, if the store has all of it.
    sent: Option<PathBuf>,
    /// Keeps the logs until drop.
    output: crate::plan::planner::EndedOutput,
}

impl EndedCommand {
    /// Removes the folder of a job that has succeeded, whose results are in the store. Call it after the reports.
    pub fn tidy(self) {
        drop(self.output);
        if let Some(folder) = self.sent {
            // A leftover one does no harm.
            _ = fs::remove_dir_all(folder);
        }
    }
}

impl BegunCommand<'_> {
    pub fn id(&self) -> &str {
        self.session.id()
    }

    /// Returns the folder of the run, if it is recorded.
    pub fn folder(&self) -> Option<&Path> {
        self.session.folder()
    }

    /// Runs the commands until all have ended.
    pub fn execute(self, output: Box<dyn RunOutput + '_>) -> Result<EndedCommand> {
        let BegunCommand {
            session,
            sequence,
            mut inputs,
            is_of_order,
            ..
        } = self;
        let context = session.context;
        let run = session.id().to_owned();
        let folder = session.folder().map(Path::to_owned);
        let is_kept = folder.is_some();
        let director = inputs.as_mut().map(|inputs| inputs as &mut dyn Director);
        let (ended, mut output) = session.execute(output, &mut [], director)?;
        if let Some(inputs) = &inputs {
            sharing::note_unread(context, inputs);
        }
        let stacks: Vec<Option<StackIndex>> = sequence.iter().copied().map(Some).collect();
        annotate(context, &stacks, &ended.summary);
        let status = exit_status(context, &sequence, &run, &ended);
        let summary = &ended.summary;
        // Lost records of the state have to be recovered first.
        // A job, or `orch finish`, is run again instead.
        let is_resumable =
            is_kept && !is_of_order && !summary.is_state_lost && !summary.has_ended_well();
        Ok(EndedCommand {
            status,
            logs: output.logs.take(),
            resumable: is_resumable.then_some(run),
            sent: folder.filter(|_| ended.is_elsewhere()),
            record: ended.record,
            output,
        })
    }
}

/// Returns the exit status of a run, and prints what could not be recorded.
fn exit_status(
    context: &Context,
    sequence: &[StackIndex],
    run: &str,
    ended: &EndedRun,
) -> Result<ExitStatus> {
    let summary = &ended.summary;
    let is_lost = is_lost(context, ended, run);
    let stuck: Vec<StackIndex> = summary.stuck().map(|turn| sequence[turn.get()]).collect();
    if !stuck.is_empty() {
        return Err(Error::external(format!(
            "{} could not start although nothing was running; this is a bug in orch, please report it",
            context.names(&stuck)
        )));
    }
    if is_lost && summary.signal.is_none() {
        return Ok(ExitStatus::External);
    }
    Ok(ExitStatus::Run(summary.exit_status()))
}
