//! The files of a run: its journal and, while it is in progress, the lock.
//!
//! A run that cannot be recorded still runs.

use std::collections::HashSet;
use std::path::Path;
use std::{fs, io};

use jiff::Timestamp;
use tracing::debug;

use crate::diagnostic::{Code, Diagnostic};
use crate::duration::local_time;
use crate::error::{Error, ErrorContext as _, Result};
use crate::folder::{GuardedFolder, Unusable};
use crate::notice::Notices;
use crate::printable::{command_line, listed, printable};
use crate::record::journal::{
    Header, Journal, JournalError, KEPT_RUNS, Liveness, LockHolder, Locking, RunLock, RunRecord,
    Runs, UnreadRun,
};
use crate::run::event::{RunEvent, Turns};
use crate::run::event_stream::EventStream;
use crate::run::journaled;
use crate::run::results::{ResultSender, UnsentResult};
use crate::run::turn::TurnIndex;
use crate::source::Sources;
use crate::state::document::Entry;

/// How many stacks a message names.
const MAX_NAMED: usize = 5;

/// How to continue an apply.
pub(super) const RESUME_APPLY_HINT: &str =
    "`orch plan` shows what is left; `orch apply FILE --resume` continues the plan in a file";

/// The record of a run in progress, and the other recipients of the lines of its journal.
#[derive(Debug, Default)]
pub struct Recording {
    turns: Turns,
    followers: Followers,
    journal: Option<Journal>,
    lock: Option<RunLock>,
    has_complained: bool,
}

/// A recipient of the lines of the journal besides its file, whether or not there is a file.
#[derive(Debug, Default)]
pub struct Followers {
    /// The record of all lines, for reports.
    pub record: Option<RunRecord>,
    /// A file or pipe outside the project's record.
    pub stream: Option<EventStream>,
    /// The results of the turns, if the run is a job of a work order.
    pub(super) results: Option<ResultSender>,
}

/// What the recipients of the journal have to report at the end.
#[derive(Debug, Default)]
pub struct EndedRecording {
    /// The record, if there is a recipient for it.
    pub record: Option<RunRecord>,
    /// Why the last lines did not reach the stream.
    pub problem: Option<io::Error>,
}

/// Which runs may be in progress when a run starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    None {
        /// Whether the command has the flag `--allow-concurrent`, so that hints may name it.
        has_flag: bool,
    },
    /// The run is a job of a work order: jobs of the same order with other stacks.
    Jobs,
    Any,
}

impl Recording {
    /// Takes the lock of the project at `root` and begins the journal. Fails if the run may not begin now.
    pub fn begin(
        root: &Path,
        header: &Header,
        beside: Concurrency,
        notices: &Notices,
    ) -> Result<Self> {
        let allow_concurrent = beside == Concurrency::Any;
        let folder = match GuardedFolder::create(root) {
            Ok(folder) => folder,
            Err(why @ Unusable::Io { .. }) if !allow_concurrent && RunLock::may_exist(root) => {
                return Err(no_lock(why, beside));
            }
            Err(why) => {
                begin_without_record(notices, header, why, true)?;
                return Ok(Recording::default());
            }
        };
        let mut killed_before = None;
        // Dropped after the recording: a refused run still holds the lock of the project, which would refuse others.
        let _gate = RunLock::wait_to_begin(&folder);
        let mut recording = Recording::default();
        let unlocked = match RunLock::lock(&folder, &LockHolder::of(header)) {
            Ok(Locking::Ours { lock, killed }) => {
                recording.lock = Some(lock);
                if !allow_concurrent {
                    check_alone(&folder, header, beside)?;
                }
                check_resumed_once(&folder, header)?;
                let killed = killed.filter(|killed| header.resumes.as_ref() != Some(&killed.run));
                killed_before = killed.filter(|killed| is_unfinished(&folder, killed));
                None
            }
            Ok(Locking::Held(_)) if allow_concurrent => {
                check_resumed_once(&folder, header)?;
                None
            }
            Ok(Locking::Held(holder)) => {
                return Err(held(&folder, holder, header, beside, &[]));
            }
            Ok(Locking::Unopened(why)) if allow_concurrent => {
                check_resumed_once(&folder, header)?;
                Some(why)
            }
            Ok(Locking::Unopened(why)) => return Err(no_lock(why, beside)),
            Err(why) => Some(why),
        };
        let created = Journal::create(&folder, header);
        if let Some(killed) = &killed_before {
            note_killed(notices, killed);
        }
        match (created, unlocked) {
            (Ok(journal), unlocked) => {
                recording.journal = Some(journal);
                if beside == Concurrency::Jobs
                    && recording.lock.is_some()
                    && let Ok(lock) = RunLock::of_job(&folder, &header.run)
                {
                    // Otherwise the job keeps that of the project, so that it runs alone.
                    recording.lock = Some(lock);
                }
                if let Some(why) = unlocked {
                    let warning = format!("the run has no lock: {why}; {UNPROTECTED}");
                    warn(notices, warning);
                }
                prune(folder, &header.run, notices);
            }
            (Err(why), unlocked) => {
                begin_without_record(notices, header, why, unlocked.is_some())?;
            }
        }
        Ok(recording)
    }

    /// Returns the folder of the run, if it has one.
    pub fn folder(&self) -> Option<&Path> {
        self.journal.as_ref().map(Journal::folder)
    }

    /// Also sends the lines of the journal to others, from now on.
    pub fn follow(&mut self, followers: Followers) {
        self.followers = followers;
    }

    /// Notes the entry of a stack before its turn, given as the stack and whether the turn destroys it.
    pub(super) fn note_earlier(&mut self, turn: (&str, bool), earlier: &Entry) {
        if let Some(results) = &mut self.followers.results {
            results.note_earlier(turn, earlier);
        }
    }

    pub fn event(&mut self, event: &RunEvent) -> Vec<io::Error> {
        self.turns.follow(event);
        let Followers {
            record,
            stream,
            results,
        } = &mut self.followers;
        let has_none = record.is_none() && stream.is_none() && results.is_none();
        if self.journal.is_none() && has_none {
            return Vec::new();
        }
        let Some(entry) = journaled::entry(Timestamp::now(), event, &self.turns) else {
            return Vec::new();
        };
        let mut problems = Vec::new();
        if let Some(journal) = &mut self.journal
            && let Err(error) = journal.write(&entry)
            && !std::mem::replace(&mut self.has_complained, true)
        {
            problems.push(io::Error::other(format!(
                "the journal of this run can no longer be written: {error}; the run continues, but `--resume` may later repeat stacks that succeed from now on"
            )));
        }
        if let Some(stream) = stream {
            let written = stream.write(&entry);
            problems.extend(written.map_err(|error| unread(&error)).err());
        }
        if let Some(results) = results {
            results.line(event, &entry, &self.turns);
        }
        if let Some(record) = record {
            record.add(entry);
        }
        let is_finished = matches!(event, RunEvent::RunFinished(_));
        // A job keeps its lock until its results are sent: another run of it must see what is done.
        if is_finished && self.followers.results.is_none() {
            // The journal is complete, and its lock given back, before another run may begin.
            self.journal = None;
            self.lock = None;
        }
        problems
    }

    /// Removes the journal of a run that has started nothing.
    pub fn discard(mut self) {
        if let Some(journal) = self.journal.take() {
            let folder = journal.folder().to_owned();
            drop((self.lock.take(), journal));
            // A leftover journal would look like that of a killed run.
            _ = fs::remove_dir_all(folder);
        }
    }

    /// Returns whether results of the turns are sent.
    pub(super) fn sends_results(&self) -> bool {
        self.followers.results.is_some()
    }

    /// Returns the turns whose results were sent since the last call.
    pub(super) fn sent(&self) -> impl Iterator<Item = TurnIndex> {
        let results = self.followers.results.iter();
        results.flat_map(ResultSender::sent)
    }

    /// Waits until the results are sent. Returns those that are only on this machine, and the turns of the others;
    /// `None` if none are sent.
    pub(super) fn end_results(&mut self) -> Option<(Vec<UnsentResult>, Vec<TurnIndex>)> {
        self.followers.results.take().map(ResultSender::end)
    }

    /// Waits until everything is written.
    pub fn end(self) -> EndedRecording {
        let Followers { record, stream, .. } = self.followers;
        let ended = stream.map_or(Ok(()), |mut stream| stream.end());
        // Before the journal: otherwise the job would look as if only its commands were left.
        drop(self.lock);
        EndedRecording {
            record,
            problem: ended.map_err(|error| unread(&error)).err(),
        }
    }
}

fn unread(error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "`--events` can no longer be written: {error}; the run continues"
    ))
}

/// Finds the runs; none if their folder is not a directory, because no run can be recorded there. If they cannot be
/// listed, one of them may be in progress.
fn runs(folder: &GuardedFolder) -> Result<Option<Runs>> {
    match Runs::find(folder.clone()) {
        Ok(runs) => Ok(Some(runs)),
        Err(error @ Unusable::Io { .. }) => {
            Err(error).context("failed to look for runs in progress")
        }
        Err(Unusable::Link(_) | Unusable::WrongKind(..)) => Ok(None),
    }
}

/// Refuses if another run is in progress without the lock, which was unavailable when that one began.
fn check_alone(folder: &GuardedFolder, header: &Header, beside: Concurrency) -> Result<()> {
    let Some(runs) = runs(folder)? else {
        return Ok(());
    };
    let is_of_order = |other: &Header| {
        beside == Concurrency::Jobs && other.is_job() && other.part_of == header.part_of
    };
    let may_be_beside =
        |other: &Header| is_of_order(other) && common_stacks(header, other).is_empty();
    match runs.in_progress(may_be_beside) {
        None => Ok(()),
        Some((run, Liveness::Unknown)) => {
            let hint = format!("if it has ended, remove `.orch/runs/{run}`");
            Err(may_be_alive_error(run).hint(beside.hint(&hint, ',')))
        }
        Some((other, _)) => {
            let other = runs.header(other).ok();
            let common = other.iter().filter(|other| is_of_order(other));
            let common: Vec<&str> = common
                .flat_map(|other| common_stacks(header, other))
                .collect();
            let holder = other.as_ref().map(LockHolder::of);
            Err(held(folder, holder, header, beside, &common))
        }
    }
}

/// Returns the stacks that two runs have in common.
fn common_stacks<'h>(header: &'h Header, other: &Header) -> Vec<&'h str> {
    let all: HashSet<&String> = other.order.iter().collect();
    let stacks = header.order.iter().filter(|stack| all.contains(stack));
    stacks.map(String::as_str).collect()
}

/// Refuses if another run resumed the same run before this one took the lock: this selection is then outdated. Claims
/// guard the follow-ups of a work order instead.
fn check_resumed_once(folder: &GuardedFolder, header: &Header) -> Result<()> {
    if header.part_of.is_some() {
        return Ok(());
    }
    let Some((run, runs)) = header.resumes.as_ref().zip(runs(folder)?) else {
        return Ok(());
    };
    match runs.resumed_by(run).map_err(unread_later_error)? {
        None => Ok(()),
        Some(by) => Err(
            Error::refused(format!("run {by} has just resumed run {run}")).hint(format!(
                "`orch runs show {by}` shows what is left: resume that run"
            )),
        ),
    }
}

impl Concurrency {
    /// Returns a hint that ends with the flag, if it would help.
    fn hint(self, hint: &str, separator: char) -> String {
        let beside = "or run at the same time with `--allow-concurrent`";
        if self == (Concurrency::None { has_flag: true }) {
            format!("{hint}{separator} {beside}")
        } else {
            hint.to_owned()
        }
    }
}

fn no_lock(why: Unusable, beside: Concurrency) -> Error {
    let hint = "make `.orch` and its files readable and writable";
    Error::described("another run may hold the lock", why).hint(beside.hint(hint, ','))
}

pub(super) fn may_be_alive_error(run: &str) -> Error {
    Error::refused(format!(
        "run {run} may still be in progress: neither its journal nor its process shows that it has ended"
    ))
}

/// Returns the error of a later run that cannot be read, and may have resumed the same one.
pub(super) fn unread_later_error(unread: UnreadRun) -> Error {
    let hint = format!(
        "it may have resumed the run: make its journal readable, or remove `.orch/runs/{}` if it did not",
        unread.run
    );
    Error::external(unread).hint(hint)
}

/// Returns the error of a lock that another run holds, or that a killed run has left to its commands. `common` are the
/// stacks that both run, if both are jobs of one work order.
fn held(
    folder: &GuardedFolder,
    holder: Option<LockHolder>,
    header: &Header,
    beside: Concurrency,
    common: &[&str],
) -> Error {
    let wait = match beside {
        Concurrency::Jobs => "wait until it has ended, then run the job again".to_owned(),
        _ => beside.hint("wait until it has ended", ','),
    };
    let Some(holder) = holder else {
        return Error::refused("another run is in progress in this project; its id is unknown")
            .hint(wait);
    };
    let run = described(&holder);
    let killed = Runs::find(folder.clone()).ok().and_then(|runs| {
        let liveness = runs.liveness(&holder.run);
        let is_gone = matches!(liveness, Liveness::Gone | Liveness::Outlived);
        // A run without a journal may still be alive.
        runs.record(&holder.run).ok().filter(|_| is_gone)
    });
    if let Some(record) = killed {
        let then = |what: &str| beside.hint(&format!("wait until it has ended, then {what}"), ';');
        let hint = match holder.purpose {
            _ if holder.is_job => then("run the job again"),
            None if beside != Concurrency::Jobs => {
                then(&format!("run `orch run --resume {}`", holder.run))
            }
            _ => wait,
        };
        let job = if holder.is_job {
            "a job of a work order, "
        } else {
            ""
        };
        return Error::refused(format!(
            "orch was killed during {job}run {run}, but {} is still running",
            what_runs(&record)
        ))
        .hint(hint);
    }
    let elsewhere = if holder.host == header.host {
        String::new()
    } else {
        format!(" on {}", printable(&holder.host))
    };
    let process = holder.process;
    let what = match common {
        [] if holder.is_job => "a job of a work order is in progress in this project".to_owned(),
        [] => "another run is in progress in this project".to_owned(),
        stacks => {
            let stacks = listed(stacks.iter().map(|stack| printable(stack)), MAX_NAMED);
            format!("a job of this work order is already running {stacks}")
        }
    };
    let message = format!("{what}: {run}, process {process}{elsewhere}");
    if beside == (Concurrency::None { has_flag: true })
        && std::env::var("ORCH_RUN_ID").is_ok_and(|ours| ours == holder.run)
    {
        return Error::refused(format!(
            "{message}; this orch was started by one of its commands"
        ))
        .hint("if that is intended, add `--allow-concurrent`");
    }
    Error::refused(message).hint(wait)
}

/// Describes a run: its id, command and start.
fn described(holder: &LockHolder) -> String {
    let words: Vec<_> = holder.command.iter().map(|word| word.0.clone()).collect();
    format!(
        "{} (`{}`, begun {})",
        printable(&holder.run),
        command_line(&words),
        local_time(holder.since)
    )
}

/// Describes what may still run. The lock does not show whether a command of the run or a process
/// that it left behind holds it.
fn what_runs(record: &RunRecord) -> String {
    let stacks: Vec<_> = record.started().map(printable).collect();
    match &stacks[..] {
        [] => "a process that it started".to_owned(),
        [stack] => format!("its command in {stack}, or a process that it started,"),
        stacks => {
            let stacks = listed(stacks.iter(), MAX_NAMED);
            format!("one of its commands in {stacks}, or a process that they started,")
        }
    }
}

const UNPROTECTED: &str = "a second run can start at the same time";

fn warn(notices: &Notices, warning: String) {
    notices.diagnostics(
        &[Diagnostic::warning(Code::Unprotected, warning)],
        &Sources::default(),
    );
}

/// Warns that a run is not recorded. Refuses the follow-ups of a work order, which would look as if they had never begun
/// and would run again.
fn begin_without_record(
    notices: &Notices,
    header: &Header,
    why: Unusable,
    is_unlocked: bool,
) -> Result<()> {
    if header.part_of.is_some() && header.resumes.is_some() {
        let hint = "make `.orch` and its files writable, and run `orch finish` again";
        return Err(Error::described("follow-ups cannot be recorded", why).hint(hint));
    }
    let unprotected = if is_unlocked {
        format!(", and {UNPROTECTED}")
    } else {
        String::new()
    };
    let warning = format!("this run is not recorded: {why}; it cannot be resumed{unprotected}");
    warn(notices, warning);
    Ok(())
}

/// Notes that the previous run was killed, and how to continue it.
fn note_killed(notices: &Notices, killed: &LockHolder) {
    let hint = match killed.purpose.as_deref() {
        None => format!("`orch run --resume {}` resumes it", killed.run),
        Some("apply") => RESUME_APPLY_HINT.to_owned(),
        // The later run repeats the evaluation.
        Some(_) => return,
    };
    let run = described(killed);
    notices.note(&format!("orch was killed during run {run}; {hint}"));
}

fn is_unfinished(folder: &GuardedFolder, killed: &LockHolder) -> bool {
    let runs = Runs::find(folder.clone()).map_err(JournalError::from);
    match runs.and_then(|runs| runs.record(&killed.run)) {
        // A job is run again instead.
        Ok(record) => record.finished.is_none() && record.header.part_of.is_none(),
        Err(error) => !error.is_missing(),
    }
}

/// Removes the oldest runs, but not this one.
fn prune(folder: GuardedFolder, run: &str, notices: &Notices) {
    let runs = match Runs::find(folder) {
        Ok(runs) => runs,
        Err(error) => {
            debug!(%error, "no runs to remove");
            return;
        }
    };
    let pruned = runs.prune(KEPT_RUNS);
    runs.remove_unbegun(run);
    debug!(removed = pruned.removed.len(), "old runs removed");
    if let Some((run, error)) = pruned.problems.first() {
        notices.note(&format!("the old run {run} cannot be removed: {error}"));
    }
}
