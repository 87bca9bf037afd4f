//! The files of a run: its journal and, while it is in progress, the lock.
//!
//! A run that cannot be recorded still runs. The reason is data, which the caller shows.

use std::path::Path;
use std::{fs, io};

use jiff::Timestamp;
use tracing::debug;

use crate::folder::{GuardedFolder, Unusable};
use crate::record::journal::{
    Header, Journal, JournalError, KEPT_RUNS, Liveness, LockHolder, Locking, ProjectLock,
    RunRecord, Runs, UnreadRun,
};
use crate::run::event::{RunEvent, Turns};
use crate::run::event_stream::EventStream;
use crate::run::journaled;
use crate::run::results::{ResultSender, UnsentResult};

/// The record of a run in progress, and the other recipients of the lines of its journal.
#[derive(Debug, Default)]
pub struct Recording {
    turns: Turns,
    followers: Followers,
    journal: Option<Journal>,
    lock: Option<ProjectLock>,
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
    /// The results that are only on this machine; `None` if no results were sent.
    pub unsent: Option<Vec<UnsentResult>>,
}

pub enum RecordingNote {
    /// The previous run was killed and is unfinished.
    Killed(LockHolder),
    /// A second run can start, because there is no lock.
    NoLock(Unusable),
    NoJournal(Unusable),
    /// There is no lock, and the run is not recorded.
    Nothing(Unusable),
    /// An old run cannot be removed.
    NotRemoved {
        run: String,
        error: io::Error,
    },
}

/// Why a run may not begin now.
pub enum Busy {
    /// Another run is in progress, or was killed and left running processes.
    Held {
        /// The holder of the lock, if known.
        holder: Option<Box<LockHolder>>,
        killed: Option<Box<RunRecord>>,
        /// Whether it runs on another machine.
        is_elsewhere: bool,
    },
    /// Another run resumed the same one before this one had the lock, so the work that is left has changed.
    Resumed { run: String, by: String },
    /// The runs cannot be listed, so one of them may be in progress.
    Unlisted(Unusable),
    /// The file of the lock cannot be opened, so another run may hold the lock.
    NoLock(Unusable),
    /// It is unknown whether this run has ended.
    MayBeAlive(String),
    /// A later run, which may have resumed the same one, cannot be read.
    Unread(UnreadRun),
}

impl Recording {
    /// Takes the lock of the project at `root` and begins the journal, and returns notes about
    /// that. With `allow_concurrent`, another run may be in progress. Fails if the run may not
    /// begin now.
    pub fn begin(
        root: &Path,
        header: &Header,
        allow_concurrent: bool,
    ) -> Result<(Self, Vec<RecordingNote>), Busy> {
        let mut recording = Recording::default();
        let mut notes = Vec::new();
        let folder = match GuardedFolder::create(root) {
            Ok(folder) => folder,
            Err(why @ Unusable::Io { .. }) if !allow_concurrent && ProjectLock::may_exist(root) => {
                return Err(Busy::NoLock(why));
            }
            Err(why) => {
                notes.push(RecordingNote::Nothing(why));
                return Ok((recording, notes));
            }
        };
        let no_lock = match ProjectLock::lock(&folder, &LockHolder::of(header)) {
            Ok(Locking::Ours { lock, killed }) => {
                recording.lock = Some(lock);
                if !allow_concurrent {
                    check_alone(&folder, header)?;
                }
                check_resumed_once(&folder, header)?;
                let killed = killed.filter(|killed| header.resumes.as_ref() != Some(&killed.run));
                let killed = killed.filter(|killed| is_unfinished(&folder, killed));
                notes.extend(killed.map(RecordingNote::Killed));
                None
            }
            Ok(Locking::Held(_)) if allow_concurrent => {
                check_resumed_once(&folder, header)?;
                None
            }
            Ok(Locking::Held(holder)) => return Err(held(&folder, holder, header)),
            Ok(Locking::Unopened(why)) if allow_concurrent => {
                check_resumed_once(&folder, header)?;
                Some(why)
            }
            Ok(Locking::Unopened(why)) => return Err(Busy::NoLock(why)),
            Err(why) => Some(why),
        };
        let no_journal = match Journal::create(&folder, header) {
            Ok(journal) => {
                recording.journal = Some(journal);
                None
            }
            Err(why) => Some(why),
        };
        notes.extend(match (no_lock, no_journal) {
            (None, None) => None,
            (Some(_), Some(why)) => Some(RecordingNote::Nothing(why)),
            (None, Some(why)) => Some(RecordingNote::NoJournal(why)),
            (Some(why), None) => Some(RecordingNote::NoLock(why)),
        });
        if recording.journal.is_some() {
            notes.extend(prune(folder, &header.run));
        }
        Ok((recording, notes))
    }

    /// Returns the folder of the run, if it has one.
    pub fn folder(&self) -> Option<&Path> {
        self.journal.as_ref().map(Journal::folder)
    }

    /// Also sends the lines of the journal to others, from now on.
    pub fn follow(&mut self, followers: Followers) {
        self.followers = followers;
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
        if matches!(event, RunEvent::RunFinished(_)) {
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
            drop(journal);
            // A leftover journal would look like that of a killed run.
            _ = fs::remove_dir_all(folder);
        }
    }

    /// Waits until everything is written.
    pub fn end(self) -> EndedRecording {
        let Followers {
            record,
            stream,
            results,
        } = self.followers;
        let ended = stream.map_or(Ok(()), |mut stream| stream.end());
        EndedRecording {
            record,
            problem: ended.map_err(|error| unread(&error)).err(),
            unsent: results.map(ResultSender::end),
        }
    }
}

fn unread(error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "`--events` can no longer be written: {error}; the run continues"
    ))
}

/// Finds the runs; none if their folder is not a directory, because no run can be recorded there.
fn runs(folder: &GuardedFolder) -> Result<Option<Runs>, Busy> {
    match Runs::find(folder.clone()) {
        Ok(runs) => Ok(Some(runs)),
        Err(error @ Unusable::Io { .. }) => Err(Busy::Unlisted(error)),
        Err(Unusable::Link(_) | Unusable::WrongKind(..)) => Ok(None),
    }
}

/// Refuses if another run is in progress without the lock, which was unavailable when that one began.
fn check_alone(folder: &GuardedFolder, header: &Header) -> Result<(), Busy> {
    let Some(runs) = runs(folder)? else {
        return Ok(());
    };
    match runs.in_progress() {
        None => Ok(()),
        Some((run, Liveness::Unknown)) => Err(Busy::MayBeAlive(run.to_owned())),
        Some((other, _)) => {
            let other = runs.brief(other).ok();
            let holder = other.map(|other| LockHolder::of(&other.header));
            Err(held(folder, holder, header))
        }
    }
}

/// Refuses if another run has resumed the same one.
fn check_resumed_once(folder: &GuardedFolder, header: &Header) -> Result<(), Busy> {
    let Some((run, runs)) = header.resumes.as_ref().zip(runs(folder)?) else {
        return Ok(());
    };
    match runs.resumed_by(run).map_err(Busy::Unread)? {
        None => Ok(()),
        Some(by) => Err(Busy::Resumed {
            run: run.clone(),
            by: by.to_owned(),
        }),
    }
}

fn held(folder: &GuardedFolder, holder: Option<LockHolder>, header: &Header) -> Busy {
    let killed = holder.as_ref().and_then(|holder| {
        let runs = Runs::find(folder.clone()).ok()?;
        let is_gone = runs.liveness(&holder.run) == Liveness::Gone;
        // A run without a journal may still be alive.
        runs.record(&holder.run).ok().filter(|_| is_gone)
    });
    Busy::Held {
        is_elsewhere: holder
            .as_ref()
            .is_some_and(|holder| holder.host != header.host),
        killed: killed.map(Box::new),
        holder: holder.map(Box::new),
    }
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
fn prune(folder: GuardedFolder, run: &str) -> Option<RecordingNote> {
    let runs = match Runs::find(folder) {
        Ok(runs) => runs,
        Err(error) => {
            debug!(%error, "no runs to remove");
            return None;
        }
    };
    let pruned = runs.prune(KEPT_RUNS);
    runs.remove_unbegun(run);
    debug!(removed = pruned.removed.len(), "old runs removed");
    let (run, error) = pruned.problems.into_iter().next()?;
    Some(RecordingNote::NotRemoved { run, error })
}
