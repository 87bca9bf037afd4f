//! A run that holds the lock of the state, and what it knows of the stacks that it puts on record.

use std::time::Duration;

use anyhow::Context as _;
use orch::change::{Pairs, relocate};
use orch::context::{FoundMove, Opened, follow_all, from_edit, from_lock};
use orch::error::Error;
use orch::folder::GuardedFolder;
use orch::git::CommitId;
use orch::printable::printable;
use orch::project::Project;
use orch::project::config::BackendConfig;
use orch::project::environment::Environments;
use orch::project::stack::{StackIndex, Stacks};
use orch::run::begun::BegunRun;
use orch::run::execute::Inbox;
use orch::run::state::{StackRecord, StatePlan};
use orch::state::clock::SystemClock;
use orch::state::document::{Action, Document, Inputs};
use orch::state::edit::touch;
use orch::state::heartbeat::Heartbeat;
use orch::state::lock::{LockApplication, lock};
use orch::state::writer::{Ended, LocalCopy, Pauses, Report, StateWriter};

use crate::program::commands::Loaded;
use crate::program::commands::state::evidence::{Evidence, inputs};
use crate::program::commands::state::waiting::{WaitNotes, WaitingClock, note_taken_over};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// The lock of the state. Unless its run begins, it is freed when this is dropped.
pub(in crate::program::commands) struct StateLock {
    /// None once the run has begun.
    held: Option<HeldLock>,
    evidence: Evidence,
    /// Receives signals since before the lock was taken: none may end the process and leave it.
    inbox: Option<Inbox>,
}

struct HeldLock {
    heartbeat: Heartbeat,
    pauses: Pauses,
}

/// What it takes to lock the state.
pub(in crate::program::commands) struct LockRequest<'a> {
    /// The run.
    pub(in crate::program::commands) run: &'a str,
    /// What it does.
    pub(in crate::program::commands) action: &'a Action,
    /// How long to wait while another run holds the lock.
    pub(in crate::program::commands) timeout: Duration,
}

/// A state that can be locked.
pub(in crate::program::commands) struct Lockable {
    opened: Opened,
    evidence: Evidence,
    moves: Vec<FoundMove>,
}

impl Lockable {
    /// Gets ready to lock the state. The document has been read, and entries follow their stacks in it.
    pub(in crate::program::commands) fn new(
        loaded: &mut Loaded,
        document: &Document,
    ) -> Result<Self> {
        let evidence = Evidence::new(loaded, document)?;
        let opened = loaded.state.take().context("the state was opened")?;
        Ok(Lockable {
            opened,
            evidence,
            moves: Vec::new(),
        })
    }

    /// Also makes the entries follow that a plan has found elsewhere.
    pub(in crate::program::commands) fn following(self, moves: Vec<FoundMove>) -> Self {
        Lockable { moves, ..self }
    }

    /// Records that HEAD has the inputs of the stacks that are as they were applied, if that is news and no run
    /// holds the lock: such a run does so itself.
    pub(in crate::program::commands) fn move_seen(self, project: &Project, document: &Document) {
        let stacks = &project.stacks;
        if document.lock.is_some() || !self.evidence.move_seen(stacks, &mut document.clone()) {
            return;
        }
        let moved = touch(&self.opened.backend, |document| {
            self.opened.relocate(project, document)?;
            self.evidence.move_seen(stacks, document);
            Ok(())
        });
        if let Err(error) = moved.map_err(from_edit::<Error>) {
            console::note(&format!(
                "failed to record that HEAD has what was applied: {}",
                error.message()
            ));
        }
    }

    /// Takes the lock.
    pub(in crate::program::commands) fn lock(
        self,
        project: &Project,
        request: &LockRequest<'_>,
    ) -> Result<StateLock> {
        let Lockable {
            opened,
            evidence,
            moves,
        } = self;
        let amend = |document: &mut Document| {
            // If that is impossible, it still is below.
            _ = relocate(project, document);
            follow_all(&project.stacks, &moves, document);
            _ = evidence.move_seen(&project.stacks, document);
        };
        let inbox = Inbox::with_signals().context("failed to receive signals")?;
        let notes = WaitNotes::default();
        let application = LockApplication {
            run: request.run,
            action: request.action,
            author: &opened.author,
            expires: opened.config.lock_expires,
            timeout: request.timeout,
            amend: &amend,
            note: &|reason| notes.note(&reason),
        };
        let clock = WaitingClock {
            system: SystemClock::default(),
            inbox: &inbox,
        };
        let locked = lock(&opened.backend, &application, &clock).map_err(from_lock)?;
        if let Some(taken_over) = &locked.taken_over {
            note_taken_over(taken_over);
        }
        let checked = opened.check(project, &mut locked.document.clone());
        let pauses = match opened.config.backend {
            BackendConfig::Local(_) => Pauses::LOCAL,
            _ => Pauses::REMOTE,
        };
        let heartbeat = Heartbeat::start(opened.backend, locked, pauses.sign_of_life);
        let heartbeat = heartbeat.context("failed to start a thread")?;
        let lock = StateLock {
            held: Some(HeldLock { heartbeat, pauses }),
            evidence,
            inbox: Some(inbox),
        };
        checked?;
        Ok(lock)
    }
}

/// Checks that no other stack is on record at the paths of some stacks.
pub(in crate::program::commands) fn check_keys(
    stacks: &Stacks,
    document: &Document,
    recorded: &[StackIndex],
) -> Result<()> {
    let pairs = Pairs::new(stacks, document);
    let taken = recorded.iter().find(|&&stack| {
        let path = stacks[stack].path.as_str();
        document.stacks.contains_key(path) && pairs.key(stack) != Some(path)
    });
    let Some(&taken) = taken else { return Ok(()) };
    let path = printable(stacks[taken].path.as_str());
    Err(ProgramError::refused(format!(
        "another stack is on record at `{path}`: it has another id, and is not in this project"
    ))
    .hint(format!(
        "if it still exists, give it a key of its own with `orch state move {path} NEW`; if nothing of it exists any more, run `orch state forget {path}`"
    )))
}

impl StateLock {
    /// Returns the document as it was when the lock was taken.
    pub(in crate::program::commands) fn document(&self) -> &Document {
        let held = self.held.as_ref();
        let held = held.expect("the run has not begun");
        &held.heartbeat.locked().document
    }

    /// Moves the entries that a plan, made under the lock, has found at other paths.
    pub(in crate::program::commands) fn follow(&mut self, stacks: &Stacks, moves: &[FoundMove]) {
        if let Some(held) = &mut self.held {
            follow_all(stacks, moves, &mut held.heartbeat.locked_mut().document);
        }
    }

    /// Looks at the stacks again: they may have changed while the lock was waited for.
    pub(in crate::program::commands) fn look_again(&mut self, loaded: &mut Loaded) -> Result<()> {
        self.evidence = Evidence::new(loaded, self.document())?;
        Ok(())
    }

    /// Returns the inputs of a stack.
    pub(in crate::program::commands) fn inputs(&self, stack: StackIndex) -> Inputs {
        let digests = &self.evidence.digests;
        inputs(&digests.rules, &digests.stacks[&stack])
    }

    /// Returns the commit of HEAD.
    pub(in crate::program::commands) fn head(&self) -> Option<&CommitId> {
        self.evidence.head.as_ref()
    }

    /// Gives away what receives signals.
    pub(in crate::program::commands) fn inbox(&mut self) -> Option<Inbox> {
        self.inbox.take()
    }

    /// Returns what a command records of a stack.
    pub(in crate::program::commands) fn record(
        &self,
        environments: &Environments<'_>,
        stack: StackIndex,
        action: Action,
        command: String,
    ) -> StackRecord {
        (self.evidence).record(environments, stack, action, command, self.document())
    }

    /// Makes a run that has begun keep the state.
    pub(in crate::program::commands) fn begin(
        mut self,
        begun: BegunRun,
        plan: StatePlan,
        project: &Project,
        run: &str,
    ) -> Result<BegunRun> {
        // A run that is not recorded has no folder for the copy, which has been reported.
        let folder = match begun.folder() {
            Some(_) => GuardedFolder::find(&project.root).map_err(anyhow::Error::from)?,
            None => None,
        };
        let copy = folder.map(|folder| LocalCopy::of(folder, run));
        let held = self.held.take().context("the lock is held")?;
        let HeldLock { heartbeat, pauses } = held;
        let (backend, locked) = heartbeat.stop();
        let begun = begun.keep_state(plan, |reports| {
            let report = move |report| {
                tell(&report);
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
        Ok(begun.context("failed to start the thread that writes the state")?)
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
        let report = |report| tell(&report);
        let started = StateWriter::start(backend, locked, None, pauses, clock, report);
        // If it cannot be freed now, the holder is dead soon, and the next run on this host takes it over.
        _ = started.map(|writer| writer.finish(None));
    }
}

/// Frees the lock of a run that has begun, and cannot go on.
pub(in crate::program::commands) fn or_give_up<T>(
    begun: BegunRun,
    result: Result<T>,
) -> Result<(BegunRun, T)> {
    match result {
        Ok(value) => Ok((begun, value)),
        Err(error) => {
            begun.give_up();
            Err(error)
        }
    }
}

/// Says that a run waits for the backend.
fn tell(report: &Report) {
    if *report == Report::Slow {
        console::note(
            "waiting for the backend of the state, which has not answered for some seconds",
        );
    }
}

/// Says what could not be put on record; returns whether anything could not.
pub(in crate::program::commands) fn is_lost(ended: Option<&Ended>, run: &str) -> bool {
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
