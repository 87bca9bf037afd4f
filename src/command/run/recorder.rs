//! Whether and how a run is recorded in the state.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::destroys::DestroyGuard;
use super::policies::PreparedRunPolicies;
use super::{PreparedCommand, RunOptions};
use crate::change::CountedStates;
use crate::context::{Context, RollbackFlags, follow_moves};
use crate::error::{Error, ErrorKind, Result};
use crate::notice::Notices;
use crate::path::StackPath;
use crate::project::config::{RecordKind, RecordPatterns};
use crate::project::environment::{Environments, lookup};
use crate::project::host::host_variable;
use crate::project::stack::StackIndex;
use crate::project::tool_use::{ToolUse, wrapped_tool};
use crate::run::execute::{Inbox, Task};
use crate::run::request::PreparedRun;
use crate::run::run_command::RunCommand;
use crate::run::state::{NewEntry, StatePlan};
use crate::run::state_lock::{LockRequest, Lockable, StateLock, check_keys};
use crate::run::tool::{AppliedPlan, ToolPlace};
use crate::state::document::{Document, RunAction};

/// The fix if the state prevents the run.
const NO_RECORD: &str = "to run without recording, add `--no-record`";

/// A run that holds the lock of the state. If it does not begin, the lock is released on drop.
pub(super) struct HeldState {
    lock: StateLock,
    flags: RollbackFlags,
    destroys: DestroyGuard,
}

/// The recorded action of each turn.
type Actions = Vec<Option<RecordedAs>>;

/// The recorded action of a command.
struct RecordedAs {
    action: RunAction,
    /// The pattern or program that determines the action.
    command: String,
    /// The position of the first recorded command among those of the turn.
    position: usize,
    /// Why the command may do only part of the action, or nothing.
    unknown: Option<String>,
    plan_file: Option<Box<AppliedPlan>>,
    /// The backends that it makes its tool use.
    places: Vec<ToolPlace>,
}

impl RecordedAs {
    /// Returns the action of two commands, one after the other.
    fn followed_by(self, next: Self) -> Self {
        let unknown = match (&self.plan_file, &next.plan_file) {
            // Only one of them is looked at.
            (Some(first), Some(_)) => Some(first.name.clone()),
            _ => None,
        };
        RecordedAs {
            position: match self.plan_file {
                None if next.plan_file.is_some() => next.position,
                _ => self.position,
            },
            unknown: self.unknown.or(next.unknown).or(unknown),
            plan_file: next.plan_file.or(self.plan_file),
            places: [self.places, next.places].concat(),
            action: next.action,
            command: next.command,
        }
    }

    fn record(
        self,
        lock: &StateLock,
        environments: &Environments<'_>,
        stack: StackIndex,
    ) -> NewEntry {
        let record = lock.record(environments, stack, self.action, self.command);
        NewEntry {
            command_position: self.position,
            unknown: self.unknown,
            plan_file: self.plan_file,
            places: self.places,
            ..record
        }
    }
}

/// Locks the state, if a command of the run is recorded, or that of a possible follow-up. Refuses a run that
/// would destroy too early.
pub(super) fn lock(
    context: &mut Context,
    options: &RunOptions,
    PreparedCommand { run, command }: &PreparedCommand,
    destroys: DestroyGuard,
    followed: Option<&PreparedRunPolicies>,
) -> Result<Option<HeldState>> {
    let recorder = Recorder::new(context, run)?;
    let actions = recorder.and_then(|recorder| {
        let actions = recorder.actions(run, command);
        recorder.note_wrapped(&context.notices, run, command, &actions);
        let mut stacks = context.project.stacks.iter();
        let is_recorded = actions.iter().any(Option::is_some)
            || followed.is_some_and(|followed| {
                stacks.any(|(stack, _)| recorder.followup(followed, stack).is_some())
            });
        is_recorded.then_some(actions)
    });
    let Some(actions) = actions else {
        destroys.check(context, run, command, None)?;
        if options.rollback.fetches && !options.is_about_changes {
            return Err(Error::usage(
                "`--fetch` has no effect without `--changed` in a run that is not recorded",
            ));
        }
        return Ok(None);
    };
    let with_hint = |error: Error| match error.kind() {
        ErrorKind::Configuration => error.hint(NO_RECORD),
        _ => error,
    };
    let read = context.read_and_digest(CountedStates::default());
    let mut document = read.map_err(with_hint)?;
    follow_moves(&context.project.stacks, &mut document);
    // A refused run needs no lock.
    let flags = options.rollback;
    destroys.check(context, run, command, Some(&document))?;
    context.refuse_protected(run, command, &document)?;
    // The first job is refused if a later one would be.
    let unbegun = options.job.iter().flat_map(|job| &job.unbegun).copied();
    let stacks: BTreeSet<StackIndex> = recorded(run, &actions).into_iter().chain(unbegun).collect();
    let stacks: Vec<StackIndex> = stacks.into_iter().collect();
    check_stacks(context, flags, &document, &stacks)?;
    let of_turns = || actions.iter().flatten().map(|it| &it.action);
    // Follow-ups never destroy.
    let destroys_all =
        of_turns().next().is_some() && of_turns().all(|it| *it == RunAction::Destroy);
    let action = if destroys_all {
        RunAction::Destroy
    } else {
        RunAction::Apply
    };
    let request = LockRequest {
        run: &run.id,
        action: &action,
        timeout: options.lock_timeout,
        job: options.job.as_ref().map(|job| &job.order),
    };
    let lock = Lockable::new(context, &document)?.lock(&context.project, &request)?;
    Ok(Some(HeldState {
        lock,
        flags,
        destroys,
    }))
}

/// Returns whether the state records a command of a run.
pub(super) fn is_recorded(
    context: &Context,
    PreparedCommand { run, command }: &PreparedCommand,
) -> Result<bool> {
    let recorder = Recorder::new(context, run)?;
    Ok(recorder.is_some_and(|it| it.actions(run, command).iter().any(Option::is_some)))
}

fn recorded(run: &PreparedRun, actions: &Actions) -> Vec<StackIndex> {
    let turns = run.sequence.iter().zip(actions);
    let recorded = turns.filter(|(_, action)| action.is_some());
    recorded.map(|(&stack, _)| stack).collect()
}

fn check_stacks(
    context: &mut Context,
    flags: RollbackFlags,
    document: &Document,
    stacks: &[StackIndex],
) -> Result<()> {
    check_keys(&context.project.stacks, document, stacks)?;
    context.refuse_rollbacks(document, stacks, flags)
}

struct Recorder {
    root: PathBuf,
    /// The action that the flags set for all commands.
    forced: Option<RunAction>,
    patterns: RecordPatterns,
}

impl Recorder {
    /// Returns the recorder of a run; `None` if there is no state, or the flags turn recording off.
    fn new(context: &Context, run: &PreparedRun) -> Result<Option<Self>> {
        let project = &context.project;
        let forced = match run.recording() {
            Some(RecordKind::Apply) => Some(RunAction::Apply),
            Some(RecordKind::Destroy) => Some(RunAction::Destroy),
            Some(RecordKind::Never) => return Ok(None),
            None => None,
        };
        let Some(block) = &project.settings.state else {
            if forced.is_some() {
                return Err(Error::refused(
                    "`--record` was given, and this project keeps no state",
                )
                .hint("see `orch help state`"));
            }
            return Ok(None);
        };
        let patterns = block.patterns(&host_variable).map_err(|problems| {
            context.notices.diagnostics(&problems, &project.sources);
            let error = "the configuration of the state is wrong";
            Error::new(ErrorKind::Configuration, error).hint(NO_RECORD)
        })?;
        let root = project.root.clone();
        Ok(Some(Recorder {
            root,
            forced,
            patterns,
        }))
    }

    /// Returns the recorded action of a command, given its arguments as written, its task, and the
    /// plan file that it applies if known.
    fn recorded(
        &self,
        words: &[OsString],
        task: &Task,
        asked: Option<&AppliedPlan>,
    ) -> Option<RecordedAs> {
        let variable = |name: &str| lookup(&task.environment, name);
        let found = self.patterns.recognize(words, variable);
        // A pattern that names an option is more specific.
        let expected = found.as_ref().map_or(&[][..], |found| found.options);
        let uses = ToolUse::all(words, variable);
        let is_expected = |option: &str| expected.iter().any(|it| it == option);
        let partial = uses
            .iter()
            .find_map(|it| it.partial(&task.directory, is_expected));
        let (action, command) = match (&self.forced, found) {
            (Some(action), _) => {
                // Never its arguments, which may be secret.
                let program = Path::new(words.first()?).file_name()?;
                (action.clone(), program.to_string_lossy().into_owned())
            }
            (None, found) => {
                let found = found?;
                let action = match found.recorded {
                    RecordKind::Apply => RunAction::Apply,
                    RecordKind::Destroy => RunAction::Destroy,
                    RecordKind::Never => return None,
                };
                (action, found.pattern.to_owned())
            }
        };
        let plan_file = match asked {
            Some(asked) => Some(asked.clone()),
            None => AppliedPlan::of(&uses, task),
        };
        let action = match plan_file.as_ref().and_then(AppliedPlan::destroys) {
            Some(true) => RunAction::Destroy,
            _ => action,
        };
        Some(RecordedAs {
            action,
            command,
            position: 0,
            unknown: partial.map(|option| format!("-{option}")),
            plan_file: plan_file.map(Box::new),
            places: ToolPlace::all(&uses, task, &self.root),
        })
    }

    /// Returns the recorded action of a turn, given its commands: that of the last one that is recorded. The plan
    /// file is that of the first command, if it is known.
    fn recorded_turn(
        &self,
        commands: &[Vec<OsString>],
        tasks: &[Task],
        asked: Option<&AppliedPlan>,
    ) -> Option<RecordedAs> {
        let all = commands.iter().zip(tasks).enumerate();
        let mut recorded = all.filter_map(|(position, (words, task))| {
            let asked = asked.filter(|_| position == 0);
            let recorded = self.recorded(words, task, asked)?;
            Some(RecordedAs {
                position,
                ..recorded
            })
        });
        let first = recorded.next()?;
        Some(recorded.fold(first, RecordedAs::followed_by))
    }

    fn followup(&self, followed: &PreparedRunPolicies, stack: StackIndex) -> Option<RecordedAs> {
        let commands = followed.command.commands(stack);
        self.recorded_turn(commands, followed.tasks(stack)?, None)
    }

    /// Returns the recorded action of each turn.
    fn actions(&self, run: &PreparedRun, command: &RunCommand) -> Actions {
        let turns = run.sequence.iter().zip(&run.tasks).zip(&run.plan_files);
        let recorded = turns.map(|((&stack, tasks), plan)| {
            self.recorded_turn(command.commands(stack), tasks, plan.as_ref())
        });
        recorded.collect()
    }

    /// Notes unrecorded commands that seem to wrap one that would be recorded.
    fn note_wrapped(
        &self,
        notices: &Notices,
        run: &PreparedRun,
        command: &RunCommand,
        actions: &Actions,
    ) {
        let turns = run.sequence.iter().zip(&run.tasks).zip(actions);
        let unrecorded = turns.filter(|(_, action)| action.is_none());
        let commands =
            unrecorded.flat_map(|((&stack, tasks), _)| command.commands(stack).iter().zip(tasks));
        let mut wrapped = commands.filter_map(|(words, task)| {
            let variable = |name: &str| lookup(&task.environment, name);
            let wrapped = wrapped_tool(words)?;
            let is_known = self.patterns.recognize(words, variable).is_some();
            (!is_known).then(|| (wrapped, task.name.to_string_lossy()))
        });
        if let Some((wrapped, program)) = wrapped.next() {
            notices.note(&format!(
                "this run takes no lock and is not recorded in the state: orch does not see `{wrapped}` behind `{program}`\nto record it, add `--record` or `--record=destroy`, or list the command in `record` of the block `state`; its list `never` turns this note off"
            ));
        }
    }
}

impl HeldState {
    /// Returns the document as of the locking.
    pub(super) fn document(&self) -> &Document {
        self.lock.document()
    }

    pub(super) fn inbox(&mut self) -> Option<Inbox> {
        self.lock.inbox()
    }

    /// Returns the records of each turn. Fails if the document, as of the locking, does not allow
    /// the run.
    pub(super) fn plan(
        &mut self,
        context: &mut Context,
        PreparedCommand { run, command }: &PreparedCommand,
    ) -> Result<StatePlan> {
        let recorder = Recorder::new(context, run)?;
        let actions = recorder.map(|recorder| recorder.actions(run, command));
        let actions = actions.unwrap_or_else(|| run.sequence.iter().map(|_| None).collect());
        let document = self.lock.document();
        self.destroys.check(context, run, command, Some(document))?;
        context.refuse_protected(run, command, document)?;
        check_stacks(context, self.flags, document, &recorded(run, &actions))?;
        let turns = run.sequence.iter().zip(actions);
        let environments = context.evaluator();
        let records = turns
            .map(|(&stack, recorded)| Some(recorded?.record(&self.lock, &environments, stack)));
        Ok(StatePlan::new(records.collect()))
    }

    /// Returns the records of the follow-ups, by stack. A stack that would be rolled back is no
    /// follow-up. Fails if the configuration of the state is invalid, or git fails.
    pub(super) fn followups(
        &self,
        context: &mut Context,
        run: &PreparedRun,
        followed: &mut PreparedRunPolicies,
    ) -> Result<HashMap<StackPath, NewEntry>> {
        let Some(recorder) = Recorder::new(context, run)? else {
            return Ok(HashMap::new());
        };
        let environments = context.evaluator();
        let stacks = context.project.stacks.iter();
        let mut records: BTreeMap<StackIndex, _> = stacks
            .filter_map(|(stack, declared)| {
                let record_as = recorder.followup(followed, stack)?;
                let record = record_as.record(&self.lock, &environments, stack);
                Some((stack, (declared.path.clone(), record)))
            })
            .collect();
        drop(environments);
        if !self.flags.allows {
            let stacks: Vec<StackIndex> = records.keys().copied().collect();
            let found = context.rollbacks(self.lock.document(), &stacks, self.flags)?;
            for (stack, rollback) in found {
                followed.refuse(stack, rollback.why_with_fetch());
                records.remove(&stack);
            }
        }
        Ok(records.into_values().collect())
    }

    pub(super) fn into_lock(self) -> StateLock {
        self.lock
    }
}
