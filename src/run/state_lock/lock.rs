//! The state lock of a run, and the records of stacks.

use std::cell::Cell;
use std::time::Duration;

use jiff::Timestamp;

use super::snapshot::InputSnapshot;
use crate::change::{EntryIndex, relocate};
use crate::context::{
    Context, FoundMove, OpenedState, failing_note, follow_all, from_edit, from_lock,
};
use crate::duration::exact;
use crate::error::{Error, ErrorContext as _, Result};
use crate::folder::GuardedFolder;
use crate::git::CommitId;
use crate::notice::Notices;
use crate::printable::printable;
use crate::project::Project;
use crate::project::config::BackendConfig;
use crate::project::environment::Environments;
use crate::project::stack::{StackIndex, Stacks};
use crate::run::execute::Inbox;
use crate::run::started::StartedRun;
use crate::run::state::{NewEntry, StatePlan};
use crate::state::clock::{Clock, SystemClock};
use crate::state::document::{Document, Inputs, Lock, OrderJob, RunAction};
use crate::state::edit::touch;
use crate::state::heartbeat::Heartbeat;
use crate::state::lock::{LockApplication, TakenOver, TakeoverReason, WaitReason, lock};
use crate::state::writer::{LocalCopy, Pauses, Report, StateWriter};

/// The state lock. It is freed when this is dropped, unless the run has begun.
pub struct StateLock {
    /// None once the run has begun.
    held: Option<HeldLock>,
    inputs: InputSnapshot,
    /// Receives signals since before the lock was taken, so that none ends the process while it holds the lock.
    inbox: Option<Inbox>,
    notices: Notices,
}

struct HeldLock {
    heartbeat: Heartbeat,
    pauses: Pauses,
}

pub struct LockRequest<'a> {
    pub run: &'a str,
    pub action: &'a RunAction,
    /// How long to wait while another run holds the lock.
    pub timeout: Duration,
    /// The job that the run is, if it shares the lock of a work order.
    pub job: Option<&'a OrderJob>,
}

pub struct Lockable {
    opened: OpenedState,
    inputs: InputSnapshot,
    moves: Vec<FoundMove>,
}

impl Lockable {
    /// Prepares to lock the state. The document has been read, and its entries follow moved stacks.
    pub fn new(context: &mut Context, document: &Document) -> Result<Self> {
        let inputs = InputSnapshot::new(context, document)?;
        let opened = context
            .state
            .opened
            .take()
            .context("the state was opened")?;
        Ok(Lockable {
            opened,
            inputs,
            moves: Vec::new(),
        })
    }

    /// Also moves the entries that a plan found at other paths.
    #[must_use]
    pub fn following(self, moves: Vec<FoundMove>) -> Self {
        Lockable { moves, ..self }
    }

    /// Records that HEAD has the inputs of unchanged stacks, if that is new and no run holds the lock: such a run
    /// records it itself.
    pub fn record_newer_commits(self, project: &Project, document: &Document) {
        let stacks = &project.stacks;
        if document.lock.is_some()
            || !self
                .inputs
                .record_newer_commits(stacks, &mut document.clone())
        {
            return;
        }
        let moved = touch(&self.opened.backend, |document| {
            self.opened.relocate(project, document)?;
            self.inputs.record_newer_commits(stacks, document);
            Ok(())
        });
        if let Err(error) = moved.map_err(from_edit::<Error>) {
            self.opened.notices.note(&format!(
                "failed to record that HEAD has the applied inputs: {}",
                error.message()
            ));
        }
    }

    pub fn lock(self, project: &Project, request: &LockRequest<'_>) -> Result<StateLock> {
        let Lockable {
            opened,
            inputs,
            moves,
        } = self;
        let notices = opened.notices.clone();
        let amend = |document: &mut Document| {
            // If this is impossible, it is reported below.
            _ = relocate(project, document);
            follow_all(&project.stacks, &moves, document);
            _ = inputs.record_newer_commits(&project.stacks, document);
        };
        let inbox = Inbox::with_signals().context("failed to receive signals")?;
        let notes = WaitNotes::default();
        let application = LockApplication {
            run: request.run,
            action: request.action,
            author: &opened.author,
            expires: opened.config.lock_expires,
            timeout: request.timeout,
            job: request.job,
            amend: &amend,
            note: &|reason| notes.note(&notices, &reason),
        };
        let clock = WaitingClock {
            system: SystemClock::default(),
            inbox: &inbox,
        };
        let locked = lock(&opened.backend, &application, &clock).map_err(from_lock)?;
        if let Some(taken_over) = &locked.taken_over {
            note_taken_over(&notices, taken_over);
        }
        let checked = opened.check(project, &mut locked.document.clone());
        let pauses = match opened.config.backend {
            BackendConfig::Local(_) => Pauses::LOCAL,
            _ => Pauses::REMOTE,
        };
        let heartbeat = Heartbeat::start(opened.backend, locked, pauses.heartbeat)
            .context("failed to start a thread")?;
        let lock = StateLock {
            held: Some(HeldLock { heartbeat, pauses }),
            inputs,
            inbox: Some(inbox),
            notices,
        };
        checked?;
        Ok(lock)
    }
}

/// Checks that no other stack is recorded at the paths of some stacks.
pub fn check_keys(stacks: &Stacks, document: &Document, recorded: &[StackIndex]) -> Result<()> {
    let pairs = EntryIndex::new(stacks, document);
    let taken = recorded.iter().find(|&&stack| {
        let path = stacks[stack].path.as_str();
        document.stacks.contains_key(path) && pairs.key(stack) != Some(path)
    });
    let Some(&taken) = taken else { return Ok(()) };
    let path = printable(stacks[taken].path.as_str());
    Err(Error::refused(format!(
        "another stack is recorded at `{path}`, with another id; it is not in this project"
    ))
    .hint(format!(
        "if it still exists, run `orch state move {path} NEW`; if nothing of it exists, run `orch state forget {path}`"
    )))
}

impl StateLock {
    /// Returns the document as it was when the lock was taken.
    pub fn document(&self) -> &Document {
        let held = self.held.as_ref().expect("the run has not begun");
        &held.heartbeat.locked().document
    }

    /// Moves the entries that a plan, created under the lock, found at other paths.
    pub fn follow(&mut self, stacks: &Stacks, moves: &[FoundMove]) {
        if let Some(held) = &mut self.held {
            follow_all(stacks, moves, &mut held.heartbeat.locked_mut().document);
        }
    }

    /// Reads the stacks again: they may have changed while waiting for the lock.
    pub fn look_again(&mut self, context: &mut Context) -> Result<()> {
        self.inputs = InputSnapshot::new(context, self.document())?;
        Ok(())
    }

    pub fn inputs(&self, stack: StackIndex) -> Inputs {
        self.inputs.digests.stacks[&stack].recorded()
    }

    pub fn head(&self) -> Option<&CommitId> {
        self.inputs.head.as_ref()
    }

    pub fn inbox(&mut self) -> Option<Inbox> {
        self.inbox.take()
    }

    pub fn record(
        &self,
        environments: &Environments<'_>,
        stack: StackIndex,
        action: RunAction,
        command: String,
    ) -> NewEntry {
        self.inputs
            .record(environments, stack, action, command, self.document())
    }

    /// Makes a started run record its results in the state.
    pub fn begin(
        mut self,
        begun: StartedRun,
        plan: StatePlan,
        project: &Project,
        run: &str,
    ) -> Result<StartedRun> {
        // A run that is not recorded has no folder for the copy, which was already reported.
        let folder = match begun.folder() {
            Some(_) => GuardedFolder::find(&project.root).map_err(Error::external)?,
            None => None,
        };
        let copy = folder.map(|folder| LocalCopy::of(folder, run));
        let held = self.held.take().context("the lock is held")?;
        let HeldLock { heartbeat, pauses } = held;
        let (backend, locked) = heartbeat.stop();
        let notices = self.notices.clone();
        let begun = begun.keep_state(plan, |reports| {
            let report = move |report| {
                note_slow(&notices, &report);
                reports.take(report);
            };
            StateWriter::start(
                backend,
                locked,
                copy,
                pauses,
                SystemClock::default(),
                report,
            )
        });
        begun.context("failed to start the thread that writes the state")
    }
}

impl Drop for StateLock {
    /// Frees the lock: nothing has happened.
    fn drop(&mut self) {
        let Some(held) = self.held.take() else {
            return;
        };
        let HeldLock { heartbeat, pauses } = held;
        let (backend, locked) = heartbeat.stop();
        let clock = SystemClock::default();
        let notices = self.notices.clone();
        let report = move |report| note_slow(&notices, &report);
        let started = StateWriter::start(backend, locked, None, pauses, clock, report);
        // If it cannot be freed now, the holder will be dead soon, and the next run on this host takes the lock over.
        _ = started.map(|writer| writer.finish(None));
    }
}

/// Frees the lock of a started run that cannot continue.
pub fn or_give_up<T, E>(begun: StartedRun, result: Result<T, E>) -> Result<(StartedRun, T), E> {
    match result {
        Ok(value) => Ok((begun, value)),
        Err(error) => {
            begun.give_up();
            Err(error)
        }
    }
}

/// Notes that a run waits for the backend.
fn note_slow(notices: &Notices, report: &Report) {
    if let Report::Slow { problem } = report {
        notices.note(&match problem {
            Some(problem) => format!("waiting for the state backend: {}", printable(problem)),
            None => {
                "waiting for the state backend, which has not answered for some seconds".to_owned()
            }
        });
    }
}

pub(super) struct WaitingClock<'a> {
    pub(super) system: SystemClock,
    pub(super) inbox: &'a Inbox,
}

impl Clock for WaitingClock<'_> {
    fn elapsed(&self) -> Duration {
        self.system.elapsed()
    }

    fn now(&self) -> Timestamp {
        self.system.now()
    }

    fn sleep(&self, duration: Duration) {
        self.inbox.sleep(duration);
    }

    fn alarm(&self) -> Option<Box<dyn FnOnce() + Send>> {
        Some(Box::new(self.inbox.alarm()))
    }
}

/// Notes once why a run waits for the lock, and once that the backend fails.
#[derive(Default)]
pub(super) struct WaitNotes {
    has_told: Cell<bool>,
    has_failed: Cell<bool>,
}

impl WaitNotes {
    pub(super) fn note(&self, notices: &Notices, reason: &WaitReason<'_>) {
        let is_known = match reason {
            WaitReason::Failing(_) => &self.has_failed,
            WaitReason::Held(_) | WaitReason::Behind(_) => &self.has_told,
        };
        if is_known.replace(true) {
            return;
        }
        match reason {
            WaitReason::Failing(error) => notices.note(&failing_note(error)),
            WaitReason::Held(held) => {
                notices.note(&format!("waiting for the state lock, held by {held}"));
            }
            WaitReason::Behind(ahead) => notices.note(&format!(
                "waiting for the state lock behind {}",
                match ahead {
                    1 => "1 other run".to_owned(),
                    more => format!("{more} other runs"),
                }
            )),
        }
    }
}

pub(super) fn note_taken_over(notices: &Notices, taken_over: &TakenOver) {
    let Lock { run, by, host, .. } = &taken_over.lock;
    let [run, by, host] = [run, by, host].map(|text| printable(text));
    let what = match taken_over.why {
        TakeoverReason::Killed => format!("run {run} was killed while it held the state lock"),
        TakeoverReason::Broken => format!("the state lock of run {run} was removed"),
        TakeoverReason::Expired(expires) => format!(
            "the state lock was taken over from run {run} of {by} on {host}, which sent no heartbeat for {}",
            exact(expires)
        ),
    };
    notices.note(&format!(
        "{what}; its unfinished stacks count as interrupted"
    ));
}
