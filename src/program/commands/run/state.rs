//! Whether and how a run is put on record in the state.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use orch::change::{Counted, InputDigests, Pairs, trigger};
use orch::folder::GuardedFolder;
use orch::git::CommitId;
use orch::printable::printable;
use orch::project::Project;
use orch::project::config::{BackendConfig, Recorded};
use orch::project::stack::{StackIndex, Stacks};
use orch::run::begun::BegunRun;
use orch::run::execute::Inbox;
use orch::run::request::PreparedRun;
use orch::run::run_command::RunCommand;
use orch::run::state::{StackRecord, StatePlan};
use orch::state::backend::Backend;
use orch::state::clock::{Clock, SystemClock};
use orch::state::document::{Action, Document};
use orch::state::lock::{Locked, lock};
use orch::state::writer::{Ended, LocalCopy, Pauses, Report, StateWriter};

use super::RunArgs;
use super::rollback::RollbackGuard;
use crate::program::commands::Loaded;
use crate::program::commands::state::errors::from_lock;
use crate::program::commands::state::evidence::{Published, declared, inputs};
use crate::program::console;
use crate::program::error::{ErrorKind, ProgramError, Result};

/// The way out where the state is in the way.
const NO_RECORD: &str = "to run without putting it on record, add `--no-record`";

/// A run that holds the lock of the state. Unless it begins, the lock is freed when this is dropped.
pub(super) struct KeptState {
    /// None once the run has begun.
    held: Option<HeldLock>,
    evidence: Evidence,
    guard: RollbackGuard,
    /// Receives signals since before the lock was taken: none may end the process and leave it.
    inbox: Option<Inbox>,
}

struct HeldLock {
    backend: Backend,
    locked: Locked,
    pauses: Pauses,
}

/// A clock for waiting for the lock.
struct WaitingClock<'a> {
    system: SystemClock,
    inbox: &'a Inbox,
    has_told: Cell<bool>,
}

impl Clock for WaitingClock<'_> {
    fn elapsed(&self) -> Duration {
        self.system.elapsed()
    }

    fn now(&self) -> Timestamp {
        self.system.now()
    }

    fn sleep(&self, duration: Duration) {
        if !self.has_told.replace(true) {
            console::note(
                "another run holds the lock of the state, as `orch state show` tells; waiting for it",
            );
        }
        self.inbox.sleep(duration);
    }
}

/// What each turn is recorded as: the action, and the pattern or program that it is recorded by.
type Actions = Vec<Option<(Action, String)>>;

/// Takes the lock of the state, if a command of the run is recorded.
pub(super) fn take(
    loaded: &mut Loaded,
    args: &RunArgs,
    run: &PreparedRun,
    command: &RunCommand,
) -> Result<Option<KeptState>> {
    let Some(actions) = actions(loaded, run, command)? else {
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
    let mut guard = RollbackGuard::new(args.record.allow_rollback, args.select.fetch);
    check_stacks(loaded, &mut guard, &document, &recorded(run, &actions))?;
    let evidence = Evidence::new(loaded, &document)?;
    let mut each = actions.iter().flatten();
    let action = if each.any(|(action, _)| *action == Action::Apply) {
        Action::Apply
    } else {
        Action::Destroy
    };
    let stacks_here = &loaded.project.stacks;
    let amend = |document: &mut Document| {
        follow_moves(stacks_here, document);
        evidence.move_seen(stacks_here, document);
    };
    let opened = loaded.state.as_ref().context("the state was opened")?;
    let inbox = Inbox::with_signals().context("failed to receive signals")?;
    let locked = lock(
        &opened.backend,
        &run.id,
        &action,
        &opened.author,
        args.record.lock_timeout.unwrap_or_default(),
        &WaitingClock {
            system: SystemClock::default(),
            inbox: &inbox,
            has_told: Cell::new(false),
        },
        &amend,
    );
    let locked = locked.map_err(from_lock)?;
    if let Some(dead) = &locked.taken_over {
        console::note(&format!(
            "run {} was killed and left the lock of the state; what it had begun counts as interrupted",
            dead.run
        ));
    }
    let checked = opened.check(&loaded.project, &locked.document);
    let opened = loaded.state.take().context("the state was opened")?;
    let kept = KeptState {
        held: Some(HeldLock {
            pauses: match opened.config.backend {
                BackendConfig::Local(_) => Pauses::LOCAL,
                _ => Pauses::REMOTE,
            },
            backend: opened.backend,
            locked,
        }),
        evidence,
        inbox: Some(inbox),
        guard,
    };
    checked.map(|()| Some(kept))
}

/// Gives the entries of stacks that lie elsewhere now the keys of their new paths.
fn follow_moves(stacks: &Stacks, document: &mut Document) {
    let moved = Pairs::new(stacks, document).moved(stacks);
    document.rename(moved);
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
    guard: &mut RollbackGuard,
    document: &Document,
    stacks: &[StackIndex],
) -> Result<()> {
    check_keys(&loaded.project.stacks, document, stacks)?;
    guard.check(loaded, document, stacks)
}

/// Checks that no other stack is on record at the paths of some stacks.
fn check_keys(stacks: &Stacks, document: &Document, recorded: &[StackIndex]) -> Result<()> {
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

/// Returns what each turn is recorded as; `None` if no turn is recorded.
fn actions(loaded: &Loaded, run: &PreparedRun, command: &RunCommand) -> Result<Option<Actions>> {
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
    let of_turn = |(turn, &stack): (usize, &StackIndex)| {
        let words: &[OsString] = command.of(stack);
        if let Some(action) = forced.clone() {
            // Never its arguments, which may hold secrets.
            let program = std::path::Path::new(words.first()?).file_name()?;
            return Some((action, program.to_string_lossy().into_owned()));
        }
        let environment = &run.tasks[turn].environment;
        let variable = |name: &str| match environment.get(name) {
            Some(own) => own.clone(),
            None => std::env::var(name).ok(),
        };
        let (recorded, pattern) = patterns.recorded(words, variable)?;
        let action = match recorded {
            Recorded::Apply => Action::Apply,
            Recorded::Destroy => Action::Destroy,
            Recorded::Never => return None,
        };
        Some((action, pattern.to_owned()))
    };
    let actions: Actions = run.sequence.iter().enumerate().map(of_turn).collect();
    Ok(actions.iter().any(Option::is_some).then_some(actions))
}

/// What is known of the stacks before the first command of a run.
struct Evidence {
    digests: Rc<InputDigests>,
    head: Option<CommitId>,
    /// Whether the default branch of the remote has HEAD.
    is_published: bool,
    triggers: Vec<trigger::AskingTrigger>,
    /// The commits on record from which HEAD moves on: it is not older.
    outdated: BTreeSet<CommitId>,
}

impl Evidence {
    fn new(loaded: &mut Loaded, document: &Document) -> Result<Self> {
        let failed = "failed to ask git";
        let digests = loaded.digests_on_disk()?;
        loaded.opened()?;
        let opened = loaded.state.as_ref().context("it was opened")?;
        let repository = opened.repository.as_ref();
        let repository = repository.context("digests come from a repository")?;
        let settings = &loaded.project.settings;
        let head = repository.commit("HEAD").context(failed)?;
        let published = match &head {
            Some(head) => Published::of(repository, settings, head).context(failed)?,
            None => Published::No,
        };
        let mut outdated = BTreeSet::new();
        if let (Some(head), true) = (&head, published != Published::No) {
            let applied = document
                .stacks
                .values()
                .filter_map(|entry| entry.applied.as_ref());
            let seen = applied.filter_map(|applied| CommitId::new(applied.seen.as_deref()?));
            for seen in seen.collect::<BTreeSet<CommitId>>() {
                let is_here =
                    repository.commit(seen.as_str()).context(failed)?.as_ref() == Some(&seen);
                let is_outdated = if is_here {
                    !repository.is_ancestor(head, &seen).context(failed)?
                } else {
                    published == Published::Tip
                };
                if is_outdated {
                    outdated.insert(seen);
                }
            }
        }
        Ok(Evidence {
            digests,
            is_published: published != Published::No,
            head,
            triggers: trigger::asking(&loaded.project.root),
            outdated,
        })
    }

    /// Says of all stacks whose inputs are those on record that HEAD has them.
    fn move_seen(&self, stacks: &Stacks, document: &mut Document) {
        let Some(head) = self.head.as_ref().filter(|_| self.is_published) else {
            return;
        };
        let pairs = Pairs::new(stacks, document);
        let pairs: Vec<(StackIndex, String)> = pairs
            .iter()
            .map(|(stack, key)| (stack, key.to_owned()))
            .collect();
        for (stack, key) in pairs {
            let is_dirty = self
                .digests
                .stacks
                .get(&stack)
                .is_none_or(|now| now.is_dirty);
            let applied = document.stacks.get_mut(&key);
            let Some(applied) = applied.and_then(|entry| entry.applied.as_mut()) else {
                continue;
            };
            let is_same = applied.inputs.as_ref();
            let is_same = is_same.is_some_and(|inputs| self.digests.are(stack, inputs));
            let seen = applied.seen.as_deref().and_then(CommitId::new);
            let moves_on = seen.is_none_or(|seen| self.outdated.contains(&seen));
            if is_same && !is_dirty && moves_on {
                applied.seen = Some(head.to_string());
            }
        }
    }

    fn records(
        &self,
        project: &Project,
        run: &PreparedRun,
        actions: Actions,
        document: &Document,
    ) -> Vec<Option<StackRecord>> {
        let head = self.head.as_ref().map(CommitId::to_string);
        let record = |(stack, action): (&StackIndex, Option<(Action, String)>)| {
            let (action, command) = action?;
            let digest = self.digests.stacks.get(stack)?;
            let stack = &project.stacks[*stack];
            let key = stack.path.to_string();
            let asking = self.triggers.iter().filter(|it| it.concerns(&stack.path));
            let is_seen = self.is_published && !digest.is_dirty;
            Some(StackRecord {
                action,
                command,
                commit: head.clone(),
                seen: head.clone().filter(|_| is_seen),
                is_dirty: digest.is_dirty,
                inputs: inputs(&self.digests.rules, digest),
                triggers: asking.map(|it| it.file.to_string()).collect(),
                declared: declared(stack),
                earlier: document.stacks.get(&key).cloned(),
                key,
            })
        };
        run.sequence.iter().zip(actions).map(record).collect()
    }
}

impl KeptState {
    /// Returns the document as it was when the lock was taken.
    pub(super) fn document(&self) -> &Document {
        let held = self.held.as_ref();
        &held.expect("the run has not begun").locked.document
    }

    /// Gives away what receives signals.
    pub(super) fn inbox(&mut self) -> Option<Inbox> {
        self.inbox.take()
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
        let held = self.held.as_ref().context("the lock is held")?;
        let document = &held.locked.document;
        check_stacks(loaded, &mut self.guard, document, &recorded(run, &actions))?;
        let records = (self.evidence).records(&loaded.project, run, actions, document);
        Ok(StatePlan::new(records))
    }

    /// Makes a run that has begun keep the state.
    pub(super) fn begin(
        mut self,
        begun: BegunRun,
        plan: StatePlan,
        project: &Project,
        run: &str,
    ) -> Result<BegunRun> {
        let folder = GuardedFolder::find(&project.root).ok().flatten();
        let copy = folder.map(|folder| LocalCopy::of(folder, run));
        let held = self.held.take().context("the lock is held")?;
        let HeldLock {
            backend,
            locked,
            pauses,
        } = held;
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

impl Drop for KeptState {
    /// Frees the lock: nothing has happened.
    fn drop(&mut self) {
        let Some(held) = self.held.take() else {
            return;
        };
        let HeldLock {
            backend,
            locked,
            pauses,
        } = held;
        let clock = SystemClock::default();
        let report = |report| tell(&report);
        let started = StateWriter::start(backend, locked, None, pauses, clock, report);
        // If it cannot be freed now, the holder is dead soon, and the next run on this host takes it over.
        _ = started.map(|writer| writer.finish(None));
    }
}

/// Frees the lock of a run that has begun, and cannot go on.
pub(super) fn or_give_up<T>(begun: BegunRun, result: Result<T>) -> Result<(BegunRun, T)> {
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
