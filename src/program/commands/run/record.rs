//! What a run leaves on disk: the lock while it is going on, and its journal.
//!
//! That neither can be kept is no reason not to run: it is said once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use orch::diagnostic::{Code, Diagnostic};
use orch::git::{GitError, Repository};
use orch::project::discover::RootRule;
use orch::project::environment::Environment;
use orch::project::stack::StackIndex;
use orch::record::journal::{
    Argument, BaseRecord, Entry, FORMAT, Header, Holder, Journal, Locking, ProjectLock,
    RecordFolder, Runs, Settings, TagLimit, Unusable, arguments,
};
use orch::run::event::{RunEvent, Sink, Turns};
use orch::run::journaled::{self, milliseconds};
use orch::selection::graph::digest;
use orch::source::Sources;
use tracing::debug;
use uuid::Uuid;

use super::holder::{held, note_killed};
use super::{Ready, RunArgs, on_error};
use crate::program::commands::Loaded;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Runs that are kept; older ones are removed when one begins.
const KEPT_RUNS: usize = 50;

/// What is kept of a run that is going on.
pub(super) struct Recording {
    turns: Turns,
    journal: Option<Journal>,
    has_complained: bool,
    lock: Option<ProjectLock>,
}

/// Takes the lock and begins the journal.
///
/// # Errors
///
/// If another run is going on.
pub(super) fn begin(loaded: &Loaded, header: &Header, allow_concurrent: bool) -> Result<Recording> {
    let mut recording = Recording {
        turns: Turns::default(),
        journal: None,
        has_complained: false,
        lock: None,
    };
    if loaded.rule == RootRule::WorkingDirectory {
        // That has been said.
        return Ok(recording);
    }
    let place = match RecordFolder::create(&loaded.project.root) {
        Ok(place) => place,
        Err(why) => {
            complain(Some(&why), Some(&why));
            return Ok(recording);
        }
    };
    let no_lock = match ProjectLock::lock(&place, &Holder::of(header)) {
        Ok(Locking::Ours { lock, killed }) => {
            recording.lock = Some(lock);
            if !allow_concurrent {
                check_alone(&place, header)?;
            }
            check_resumed_once(&place, header)?;
            let killed = killed.filter(|killed| header.resumes.as_ref() != Some(&killed.run));
            if let Some(killed) = killed {
                note_killed(&place, &killed);
            }
            None
        }
        Ok(Locking::Held(_)) if allow_concurrent => {
            check_resumed_once(&place, header)?;
            None
        }
        Ok(Locking::Held(other)) => return Err(held(&place, other, header)),
        Err(why) => Some(why),
    };
    let no_journal = match Journal::create(&place, header) {
        Ok(journal) => {
            recording.journal = Some(journal);
            None
        }
        Err(why) => Some(why),
    };
    complain(no_lock.as_ref(), no_journal.as_ref());
    if recording.journal.is_some() {
        prune(place, &header.run);
    }
    Ok(recording)
}

/// Refuses if another run is going on without the lock, which had been taken when that one began.
fn check_alone(place: &RecordFolder, header: &Header) -> Result<()> {
    let Ok(runs) = Runs::find(place.clone()) else {
        return Ok(());
    };
    let Some(other) = runs.alive() else {
        return Ok(());
    };
    let other = runs.brief(other).ok();
    let holder = other.map(|other| Holder::of(&other.header));
    Err(held(place, holder, header))
}

/// Refuses if another run went on with the same one before this one had the lock: what is left to do
/// is no longer what was looked up.
fn check_resumed_once(place: &RecordFolder, header: &Header) -> Result<()> {
    let Some((earlier, runs)) = header.resumes.as_ref().zip(Runs::find(place.clone()).ok()) else {
        return Ok(());
    };
    match runs.resumed_by(earlier) {
        None => Ok(()),
        Some(other) => Err(ProgramError::refused(format!(
            "run {other} has just resumed run {earlier}"
        ))
        .hint(format!(
            "see what is left to do with `orch runs show {other}`, and resume that"
        ))),
    }
}

impl Recording {
    /// Returns the folder of the run, if it has one.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.journal.as_ref().map(Journal::folder)
    }
}

impl Sink for Recording {
    fn event(&mut self, event: &RunEvent) -> io::Result<()> {
        self.turns.follow(event);
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let Some(recorded) = journaled::event(event, &self.turns) else {
            return Ok(());
        };
        let written = journal.write(&Entry::new(Timestamp::now(), recorded));
        if matches!(event, RunEvent::RunFinished(_)) {
            // The journal is complete, and its lock given back, before somebody else may begin.
            self.journal = None;
            self.lock = None;
        }
        match written {
            Err(error) if !std::mem::replace(&mut self.has_complained, true) => {
                Err(io::Error::other(format!(
                    "the journal of this run cannot be written any more: {error}; the run goes on, and `--resume` may later run again what succeeds from now on"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Returns what the journal of a run begins with.
pub(super) fn header(loaded: &Loaded, args: &RunArgs, run: &Ready) -> Header {
    let resumed = run.resumed.as_ref();
    let environments = run
        .sequence
        .iter()
        .map(|stack| &run.tasks[stack].environment);
    let stacks = &loaded.project.stacks;
    let paths = |of: &[StackIndex]| -> Vec<String> {
        let path = |stack: &StackIndex| stacks[*stack].path.to_string();
        of.iter().map(path).collect()
    };
    let base = run.since.map(|since| BaseRecord {
        commit: since.base.commit.to_string(),
        reason: since.base.reason.clone(),
    });
    Header {
        format: FORMAT,
        run: run.id.clone(),
        orch: env!("CARGO_PKG_VERSION").to_owned(),
        at: Timestamp::now(),
        host: host(),
        process: std::process::id(),
        arguments: std::env::args_os().skip(1).map(Argument).collect(),
        directory: loaded.directory.to_string(),
        resumes: resumed.map(|resumed| resumed.run.clone()),
        command: arguments(&args.command),
        order: match resumed {
            Some(resumed) => paths(&resumed.undone(&run.sequence)),
            None => paths(&run.sequence),
        },
        left_out: resumed.map_or(Vec::new(), |resumed| paths(&resumed.left_out)),
        direction: run.direction.into(),
        settings: settings(args),
        base: base.or_else(|| resumed?.base.clone()),
        head: head(&loaded.project.root).unwrap_or_else(|error| {
            debug!(%error, "HEAD cannot be read");
            None
        }),
        uncommitted: run.uncommitted.clone(),
        graph: digest(stacks, &loaded.references),
        environment: names(environments),
    }
}

fn settings(args: &RunArgs) -> Settings {
    let milliseconds = |duration: Option<Duration>| duration.map(milliseconds);
    let limits = args.limit.iter().map(|limit| TagLimit {
        tag: limit.tag.clone(),
        at_once: limit.at_once.get(),
    });
    Settings {
        on_error: on_error(args).into(),
        jobs: args.parallel.map_or(1, |jobs| jobs.0.get()),
        limits: limits.collect(),
        timeout_ms: milliseconds(args.attempts.timeout),
        run_timeout_ms: milliseconds(args.attempts.run_timeout),
        grace_ms: milliseconds(args.attempts.grace),
        retries: args.attempts.retries,
        retry_on_exit: args.attempts.retry_on_exit.clone(),
        retry_on_output: args.attempts.retry_on_output.clone(),
        retry_backoff_ms: milliseconds(args.attempts.retry_backoff),
    }
}

/// Returns the id of a run that is to begin.
pub(super) fn new_id(root: &Path) -> String {
    let place = RecordFolder::find(root).ok().flatten();
    let runs = place.and_then(|place| Runs::find(place).ok());
    runs.map_or_else(|| Uuid::now_v7().to_string(), |runs| runs.new_id())
}

/// Returns how long the same command took in stacks in the past, as far as that is on record.
pub(super) fn past_durations(loaded: &Loaded, command: &[OsString]) -> HashMap<String, Duration> {
    let place = RecordFolder::find(&loaded.project.root).ok().flatten();
    let Some(runs) = place.and_then(|place| Runs::find(place).ok()) else {
        return HashMap::new();
    };
    runs.past_durations(command)
}

/// Returns the names of the variables that commands get, sorted; of different environments, those
/// that any of them has.
fn names<'e>(environments: impl Iterator<Item = &'e Environment>) -> Vec<String> {
    let host: BTreeSet<String> = std::env::vars_os()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .collect();
    let mut set: BTreeSet<&str> = BTreeSet::new();
    let mut removed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut n_environments = 0;
    for environment in environments {
        n_environments += 1;
        for (name, value) in environment {
            match value {
                Some(_) => _ = set.insert(name),
                None => *removed.entry(name).or_default() += 1,
            }
        }
    }
    let inherited = host.iter().map(String::as_str);
    set.extend(inherited.filter(|name| removed.get(name) != Some(&n_environments)));
    set.into_iter().map(str::to_owned).collect()
}

/// Returns the commit of HEAD; nothing outside of git and before the first commit.
///
/// # Errors
///
/// If git cannot tell.
fn head(root: &Path) -> Result<Option<String>, GitError> {
    let head = Repository::open(root).and_then(|repository| repository.commit("HEAD"));
    match head {
        Ok(head) => Ok(head.map(|head| head.to_string())),
        Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn host() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

fn warn(message: &str) {
    console::diagnostics(
        [&Diagnostic::warning(Code::Unprotected, message)],
        &Sources::default(),
    );
}

/// Says what cannot be kept, why, and what that means.
fn complain(no_lock: Option<&Unusable>, no_journal: Option<&Unusable>) {
    let unprotected = "nothing keeps a second run from starting";
    match (no_lock, no_journal) {
        (None, None) => {}
        (Some(_), Some(why)) => warn(&format!(
            "this run is not recorded: {why}; it cannot be resumed, and {unprotected}"
        )),
        (None, Some(why)) => warn(&format!(
            "this run is not recorded: {why}; it cannot be resumed"
        )),
        (Some(why), None) => warn(&format!("there is no lock: {why}; {unprotected}")),
    }
}

/// Removes the oldest runs; this one, which is going on, stays.
fn prune(place: RecordFolder, run: &str) {
    let runs = match Runs::find(place) {
        Ok(runs) => runs,
        Err(error) => return debug!(%error, "no runs to remove"),
    };
    let pruned = runs.prune(KEPT_RUNS);
    runs.remove_unbegun(run);
    debug!(removed = pruned.removed.len(), "old runs removed");
    if let Some((run, error)) = pruned.problems.first() {
        console::note(&format!("the old run {run} cannot be removed: {error}"));
    }
}
