//! Whether and how a run is put on record in the state.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;

use orch::change::Counted;
use orch::path::StackPath;
use orch::project::Project;
use orch::project::config::{RecordPatterns, Recorded};
use orch::project::environment::Environment;
use orch::project::stack::StackIndex;
use orch::run::begun::BegunRun;
use orch::run::execute::Inbox;
use orch::run::request::PreparedRun;
use orch::run::run_command::RunCommand;
use orch::run::state::{StackRecord, StatePlan};
use orch::state::document::{Action, Document};

use super::RunArgs;
use super::destroy_order::DestroyGuard;
use super::followed::FollowedRun;
use crate::program::commands::Loaded;
use crate::program::commands::rollback::RollbackFlags;
use crate::program::commands::state::held::{
    LockRequest, Lockable, StateLock, check_keys, follow_moves,
};
use crate::program::console;
use crate::program::error::{ErrorKind, ProgramError, Result};

/// The way out where the state is in the way.
const NO_RECORD: &str = "to run without putting it on record, add `--no-record`";

/// A run that holds the lock of the state. Unless it begins, the lock is freed when this is dropped.
pub(super) struct KeptState {
    lock: StateLock,
    flags: RollbackFlags,
    destroys: DestroyGuard,
}

/// What each turn is recorded as: the action, and the pattern or program that it is recorded by.
type Actions = Vec<Option<(Action, String)>>;

/// Takes the lock of the state, if a command of the run is recorded. Refuses a run that would destroy too early.
pub(super) fn take(
    loaded: &mut Loaded,
    args: &RunArgs,
    (run, command): (&PreparedRun, &RunCommand),
    destroys: DestroyGuard,
) -> Result<Option<KeptState>> {
    let Some(actions) = actions(loaded, run, command)? else {
        destroys.check(loaded, run, command, None)?;
        if args.select.fetch && !args.select.changed {
            return Err(ProgramError::usage(
                "`--fetch` has no effect without `--changed` in a run that is not put on record in a state",
            ));
        }
        return Ok(None);
    };
    let what = |error: ProgramError| match error.kind() {
        ErrorKind::Configuration => error.hint(NO_RECORD),
        _ => error,
    };
    let mut document = loaded.read_and_digest(Counted::default()).map_err(what)?;
    follow_moves(&loaded.project.stacks, &mut document);
    // What is refused needs no lock.
    let flags = RollbackFlags {
        allows: args.record.allow_rollback,
        fetches: args.select.fetch,
    };
    destroys.check(loaded, run, command, Some(&document))?;
    check_stacks(loaded, flags, &document, &recorded(run, &actions))?;
    let mut each = actions.iter().flatten();
    let action = if each.any(|(action, _)| *action == Action::Apply) {
        Action::Apply
    } else {
        Action::Destroy
    };
    let timeout = args.record.lock_timeout.unwrap_or_default();
    let request = LockRequest {
        run: &run.id,
        action: &action,
        timeout,
    };
    let lock = Lockable::new(loaded, &document)?.lock(&loaded.project, &request)?;
    Ok(Some(KeptState {
        lock,
        flags,
        destroys,
    }))
}

/// Returns the stacks of a run that are recorded.
fn recorded(run: &PreparedRun, actions: &Actions) -> Vec<StackIndex> {
    let turns = run.sequence.iter().zip(actions);
    let recorded = turns.filter(|(_, action)| action.is_some());
    recorded.map(|(&stack, _)| stack).collect()
}

/// Checks that a document lets some stacks be put on record.
fn check_stacks(
    loaded: &mut Loaded,
    flags: RollbackFlags,
    document: &Document,
    stacks: &[StackIndex],
) -> Result<()> {
    check_keys(&loaded.project.stacks, document, stacks)?;
    loaded.refuse_rollbacks(document, stacks, flags)
}

/// Which commands are recorded.
struct Recorder {
    /// What every command is recorded as.
    forced: Option<Action>,
    patterns: RecordPatterns,
}

impl Recorder {
    /// Returns which commands of a run are recorded; none if there is no state, or the run says so.
    fn new(loaded: &Loaded, run: &PreparedRun) -> Result<Option<Self>> {
        let project = &loaded.project;
        let forced = match run.recording() {
            Some(Recorded::Apply) => Some(Action::Apply),
            Some(Recorded::Destroy) => Some(Action::Destroy),
            Some(Recorded::Never) => return Ok(None),
            None => None,
        };
        let Some(block) = &project.settings.state else {
            if forced.is_some() {
                return Err(ProgramError::refused(
                    "`--record` was given, and this project keeps no state",
                )
                .hint("see `orch help state`"));
            }
            return Ok(None);
        };
        let host = |name: &str| std::env::var(name).ok();
        let patterns = block.patterns(&host).map_err(|problems| {
            console::diagnostics(problems.iter(), &project.sources);
            let error = anyhow::anyhow!("the configuration of the state is wrong");
            ProgramError::new(ErrorKind::Configuration, error).hint(NO_RECORD)
        })?;
        Ok(Some(Recorder { forced, patterns }))
    }

    /// Returns what a command with this environment is recorded as.
    fn action(&self, words: &[OsString], environment: &Environment) -> Option<(Action, String)> {
        if let Some(action) = self.forced.clone() {
            // Never its arguments, which may hold secrets.
            let program = std::path::Path::new(words.first()?).file_name()?;
            return Some((action, program.to_string_lossy().into_owned()));
        }
        let variable = |name: &str| match environment.get(name) {
            Some(own) => own.clone(),
            None => std::env::var(name).ok(),
        };
        let (recorded, pattern) = self.patterns.recorded(words, variable)?;
        let action = match recorded {
            Recorded::Apply => Action::Apply,
            Recorded::Destroy => Action::Destroy,
            Recorded::Never => return None,
        };
        Some((action, pattern.to_owned()))
    }
}

/// Returns what each turn is recorded as; `None` if no turn is recorded.
fn actions(loaded: &Loaded, run: &PreparedRun, command: &RunCommand) -> Result<Option<Actions>> {
    let Some(recorder) = Recorder::new(loaded, run)? else {
        return Ok(None);
    };
    let of_turn = |(turn, &stack): (usize, &StackIndex)| {
        recorder.action(command.of(stack), &run.tasks[turn].environment)
    };
    let actions: Actions = run.sequence.iter().enumerate().map(of_turn).collect();
    Ok(actions.iter().any(Option::is_some).then_some(actions))
}

impl KeptState {
    /// Returns the document as it was when the lock was taken.
    pub(super) fn document(&self) -> &Document {
        self.lock.document()
    }

    /// Gives away what receives signals.
    pub(super) fn inbox(&mut self) -> Option<Inbox> {
        self.lock.inbox()
    }

    /// Returns what is put on record of each turn.
    ///
    /// # Errors
    ///
    /// If the document, as it was when the lock was taken, does not let the run begin.
    pub(super) fn plan(
        &mut self,
        loaded: &mut Loaded,
        run: &PreparedRun,
        command: &RunCommand,
    ) -> Result<StatePlan> {
        let actions = actions(loaded, run, command)?;
        let actions = actions.unwrap_or_else(|| vec![None; run.sequence.len()]);
        let document = self.lock.document();
        self.destroys.check(loaded, run, command, Some(document))?;
        check_stacks(loaded, self.flags, document, &recorded(run, &actions))?;
        let turns = run.sequence.iter().zip(actions);
        let records = turns.map(|(&stack, action)| {
            let (action, command) = action?;
            self.lock.record(&loaded.project, stack, action, command)
        });
        Ok(StatePlan::new(records.collect()))
    }

    /// Returns what is put on record of what policies ask for, by stack. A stack that would be rolled back does not
    /// follow.
    ///
    /// # Errors
    ///
    /// If the configuration of the state is wrong, or git cannot answer.
    pub(super) fn followups(
        &self,
        loaded: &mut Loaded,
        run: &PreparedRun,
        followed: &mut FollowedRun,
    ) -> Result<HashMap<StackPath, StackRecord>> {
        let Some(recorder) = Recorder::new(loaded, run)? else {
            return Ok(HashMap::new());
        };
        let stacks = loaded.project.stacks.iter();
        let records = stacks.filter_map(|(stack, declared)| {
            let task = followed.task(stack)?;
            let (action, command) =
                recorder.action(followed.command.of(stack), &task.environment)?;
            let record = self.lock.record(&loaded.project, stack, action, command)?;
            Some((stack, (declared.path.clone(), record)))
        });
        let mut records: BTreeMap<StackIndex, _> = records.collect();
        if !self.flags.allows {
            let stacks: Vec<StackIndex> = records.keys().copied().collect();
            let found = loaded.rollbacks(self.lock.document(), &stacks, self.flags)?;
            for (stack, rollback) in found {
                followed.refuse(stack, rollback.why_with_fetch());
                records.remove(&stack);
            }
        }
        Ok(records.into_values().collect())
    }

    /// Makes a run that has begun keep the state.
    pub(super) fn begin(
        self,
        begun: BegunRun,
        plan: StatePlan,
        project: &Project,
        run: &str,
    ) -> Result<BegunRun> {
        self.lock.begin(begun, plan, project, run)
    }
}
