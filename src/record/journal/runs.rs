//! All recorded runs of a project.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use uuid::{NoContext, Timestamp, Uuid};

use super::entry::{Counts, EndedTurnRecord, Finished};
use super::header::{Header, PLAN_FOLLOW_UPS};
use super::lock::{GRACE, of_run};
use super::read::{JournalError, read, read_ends, read_lines};
use super::record::{RunRecord, StackState};
use super::whole::WholeRun;
use super::write::{FILE, NEW_FILE};
use crate::author::{has_ended, host};
use crate::exit::is_success;
use crate::folder::{GuardedFolder, NAME, Unusable, failed};
use crate::on_disk::if_there;
use crate::printable::listed;
use crate::state::writer::LocalCopy;

/// Where the runs are, below `.orch`.
const FOLDER: &str = "runs";

/// How many runs are kept; older ones are removed when one begins.
pub const KEPT_RUNS: usize = 50;

/// How many runs are read to learn how long stacks took in the past.
const MAX_PAST: usize = 10;

pub struct Runs {
    place: GuardedFolder,
    folder: PathBuf,
    ids: Vec<String>,
    /// The same, and those that are about to begin, or never began since their `orch` was killed.
    folders: Vec<String>,
    /// Read once.
    follow_ups: OnceCell<FollowUps>,
}

/// The runs of follow-ups of all work orders.
#[derive(Default)]
struct FollowUps {
    /// By the run of the order, the oldest first.
    of_orders: HashMap<String, Vec<String>>,
    /// The runs whose journals cannot be read, each with the reason.
    unread: Vec<(String, String)>,
}

/// Whether a run is in progress, that is, whether its `orch` is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    Alive,
    /// It is a job of a work order whose `orch` was killed, and something that it started is still running.
    Outlived,
    Gone,
    /// Its journal cannot be opened; or the file system has no locks, and its process cannot be checked.
    Unknown,
}

/// How a run went, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    Running,
    Succeeded,
    Failed,
    Interrupted,
    /// `orch` was killed, or the machine went down.
    Killed,
    /// It has not finished, and it is unknown whether it is in progress; or its follow-ups cannot be read.
    Unknown,
    DryRun,
}

impl RunStatus {
    pub fn word(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Succeeded => "succeeded",
            RunStatus::Failed => "failed",
            RunStatus::Interrupted => "interrupted",
            RunStatus::Killed => "killed",
            RunStatus::Unknown => "unfinished",
            RunStatus::DryRun => "dry run",
        }
    }

    /// Returns how a run with this header went that ended like this, or has not ended.
    pub fn new(header: &Header, finished: Option<&Finished>, liveness: Liveness) -> Self {
        match (finished, liveness) {
            // Its jobs run elsewhere.
            (None, Liveness::Gone) if header.is_of_work_order() => RunStatus::Unknown,
            (Some(finished), _) => match finished.status {
                status if is_success(status) => RunStatus::Succeeded,
                128.. => RunStatus::Interrupted,
                _ => RunStatus::Failed,
            },
            (None, Liveness::Alive) => RunStatus::Running,
            (None, Liveness::Gone | Liveness::Outlived) => RunStatus::Killed,
            (None, Liveness::Unknown) => RunStatus::Unknown,
        }
    }
}

impl WholeRun {
    /// Returns how the run went. Follow-ups that cannot be read may have failed.
    pub fn status(&self, liveness: Liveness) -> RunStatus {
        match RunStatus::new(&self.record.header, self.record.finished.as_ref(), liveness) {
            RunStatus::Succeeded if !self.unread.is_empty() => RunStatus::Unknown,
            status => status,
        }
    }
}

pub struct Brief {
    pub header: Header,
    pub state: RunStatus,
    /// How many stacks it has, those included that were added.
    pub stacks: usize,
    pub counts: Counts,
    pub elapsed: Option<Duration>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    #[error("no run of this project is recorded")]
    NoRuns,
    /// The name is empty, as if from an unset variable.
    #[error("RUN is empty; write `last`, `last~1`, or the beginning or end of a run id")]
    Empty,
    #[error("no run `{0}`: {1} recorded")]
    TooOld(String, usize),
    /// No id begins or ends like that.
    #[error("no run has an id that begins or ends with `{0}`")]
    Unknown(String),
    /// Several ids do; these, the newest first.
    #[error("several runs have ids that begin or end with `{0}`: {list}", list = candidates(.1))]
    Ambiguous(String, Vec<String>),
}

/// How many ids an ambiguous name lists.
const MAX_CANDIDATES: usize = 10;

/// Lists the ids that an ambiguous name may mean.
fn candidates(ids: &[String]) -> String {
    listed(ids.iter().map(|id| format!("`{id}`")), MAX_CANDIDATES)
}

/// Returns how many runs are newer than the one that `last` or `last~N` means.
fn age(wanted: &str) -> Option<usize> {
    match wanted.strip_prefix("last")? {
        "" => Some(0),
        // More than there can be is more than there are.
        age => {
            let digits = age.strip_prefix('~')?;
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse().unwrap_or(usize::MAX))
        }
    }
}

#[derive(Debug, Default)]
pub struct PrunedRuns {
    pub removed: Vec<String>,
    pub left: usize,
    /// The runs that could not be removed, and why.
    pub problems: Vec<(String, io::Error)>,
}

/// A run whose journal cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read the journal of run {run}")]
pub struct UnreadRun {
    pub run: String,
    #[source]
    pub error: JournalError,
}

impl Runs {
    /// Finds the runs of a project. Anything else in their folder is left alone.
    pub fn find(place: GuardedFolder) -> Result<Self, Unusable> {
        let mut folders = Vec::new();
        let folder = place.directory(FOLDER)?;
        if let Some(folder) = &folder {
            let unread = |error| failed("read", ".orch/runs", error);
            for entry in fs::read_dir(folder).map_err(unread)? {
                let entry = entry.map_err(unread)?;
                if let Ok(name) = entry.file_name().into_string()
                    && Uuid::try_parse(&name).is_ok_and(|id| id.to_string() == name)
                    && let Some(kind) = if_there(entry.file_type()).map_err(unread)?
                    && kind.is_dir()
                {
                    folders.push(name);
                }
            }
        }
        // Ids begin with the time.
        folders.sort_unstable_by(|a, b| b.cmp(a));
        let folder = folder.unwrap_or_default();
        // Reading a journal without permission reports the reason.
        let has_journal = |id: &&String| place.may_have(&format!("{FOLDER}/{id}/{FILE}"));
        Ok(Runs {
            ids: folders.iter().filter(has_journal).cloned().collect(),
            folders,
            place,
            folder,
            follow_ups: OnceCell::new(),
        })
    }

    pub fn ids(&self) -> &[String] {
        &self.ids
    }

    /// Returns the id of a new run. It is above all others, also if the clock was put back: the last
    /// run is the newest.
    pub fn new_id(&self) -> String {
        let id = Uuid::now_v7().to_string();
        let newest = self.folders.first().filter(|newest| **newest > id);
        newest.and_then(|newest| after(newest)).unwrap_or(id)
    }

    /// Returns the newest run that is in progress or whose commands are still running; without one, the newest run that
    /// may be in progress. Ignores runs with a header that `may_be_beside` accepts.
    pub fn in_progress(&self, may_be_beside: impl Fn(&Header) -> bool) -> Option<(&str, Liveness)> {
        let mut unknown = None;
        for id in &self.ids {
            let may_be_beside = || self.header(id).is_ok_and(|header| may_be_beside(&header));
            if self.liveness(id) == Liveness::Gone || may_be_beside() {
                continue;
            }
            match self.liveness_after_grace(id) {
                Liveness::Gone => {}
                Liveness::Unknown => unknown = unknown.or(Some((id.as_str(), Liveness::Unknown))),
                liveness => return Some((id, liveness)),
            }
        }
        unknown
    }

    /// Returns whether a run is in progress, after the commands of a killed one had time to end.
    fn liveness_after_grace(&self, id: &str) -> Liveness {
        let begun = Instant::now();
        loop {
            let liveness = self.liveness(id);
            if liveness != Liveness::Outlived || begun.elapsed() > GRACE {
                return liveness;
            }
            thread::sleep(GRACE / 50);
        }
    }

    pub fn header(&self, id: &str) -> Result<Header, JournalError> {
        Ok(read_ends(self.open(id)?)?.0)
    }

    /// Returns the ids of the runs that `last` and `last~N` count, newest first, without those that are part of
    /// another run. Reads headers lazily.
    pub fn by_age(&self) -> impl Iterator<Item = &str> {
        let is_part = |id: &&String| {
            let ends = self.open(id).ok().and_then(|file| read_ends(file).ok());
            ends.is_some_and(|(header, _)| {
                header.purpose.as_deref() == Some(PLAN_FOLLOW_UPS) || self.has_whole(&header)
            })
        };
        let ids = self.ids.iter().filter(move |id| !is_part(id));
        ids.map(String::as_str)
    }

    /// Returns whether a run is a job of a work order, and the run of that order is here as well.
    pub fn has_whole(&self, job: &Header) -> bool {
        let whole = job.part_of.as_ref().filter(|whole| **whole != job.run);
        whole.is_some_and(|whole| self.ids.contains(whole))
    }

    /// Returns the id that the user means: `last` is the newest run, `last~1` the one before it; else a
    /// beginning or an end that only one id has.
    pub fn id(&self, wanted: &str) -> Result<&str, FindError> {
        if wanted.is_empty() {
            return Err(FindError::Empty);
        }
        if let Some(age) = age(wanted) {
            return match self.by_age().nth(age) {
                Some(id) => Ok(id),
                None if self.ids.is_empty() => Err(FindError::NoRuns),
                None => Err(FindError::TooOld(wanted.to_owned(), self.by_age().count())),
            };
        }
        let lower = wanted.to_ascii_lowercase();
        let is_meant = |id: &&String| id.starts_with(&lower) || id.ends_with(&lower);
        let mut found = self.ids.iter().filter(is_meant);
        match (found.next(), found.next()) {
            (None, _) => Err(FindError::Unknown(wanted.to_owned())),
            (Some(id), None) => Ok(id),
            (Some(first), Some(second)) => {
                let mut candidates = vec![first.clone(), second.clone()];
                candidates.extend(found.cloned());
                Err(FindError::Ambiguous(wanted.to_owned(), candidates))
            }
        }
    }

    pub fn folder(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    pub fn logs(&self, id: &str) -> Result<Option<PathBuf>, Unusable> {
        self.place.directory(&format!("{FOLDER}/{id}/logs"))
    }

    pub fn record(&self, id: &str) -> Result<RunRecord, JournalError> {
        let mut record = read(self.open(id)?)?;
        // The name of the folder is the id, regardless of the journal.
        id.clone_into(&mut record.header.run);
        Ok(record)
    }

    /// Reads a journal, and for the run of a work order those of its follow-ups.
    pub fn whole(&self, id: &str) -> Result<WholeRun, JournalError> {
        let mut whole = WholeRun::new(self.record(id)?);
        if !whole.record.header.is_of_work_order() {
            return Ok(whole);
        }
        let FollowUps { of_orders, unread } = self.follow_ups.get_or_init(|| self.all_follow_ups());
        let unread = unread.iter().filter(|(later, _)| later.as_str() > id);
        whole.unread = unread.cloned().collect();
        for later in of_orders.get(id).into_iter().flatten() {
            match self
                .open(later)
                .map_err(JournalError::from)
                .and_then(read_lines)
            {
                Ok((header, lines)) => whole.add(&header, lines),
                Err(error) if error.is_missing() => {}
                Err(error) => whole.unread.push((later.clone(), error.to_string())),
            }
        }
        Ok(whole)
    }

    fn all_follow_ups(&self) -> FollowUps {
        let mut all = FollowUps::default();
        // Oldest first: ids are ordered by start time.
        for id in self.ids.iter().rev() {
            match self
                .open(id)
                .map_err(JournalError::from)
                .and_then(read_ends)
            {
                // A job resumes none.
                Ok((header, _)) if header.resumes.is_some() => {
                    if let Some(order) = header.part_of {
                        all.of_orders.entry(order).or_default().push(id.clone());
                    }
                }
                Ok(_) => {}
                Err(error) if error.is_missing() => {}
                Err(error) => all.unread.push((id.clone(), error.to_string())),
            }
        }
        all
    }

    /// Returns whether a run is so old that the next run would remove it.
    pub fn is_outdated(&self, id: &str) -> bool {
        let oldest = self.ids.get(KEPT_RUNS - 1);
        oldest.is_some_and(|oldest| id < oldest.as_str())
    }

    /// Reads as much of a journal as a list needs: only both ends if the run has finished.
    pub fn brief(&self, id: &str) -> Result<Brief, JournalError> {
        // A run may end after this check, but it cannot begin again.
        let liveness = self.liveness(id);
        let (header, mut finished) = read_ends(self.open(id)?)?;
        let n_stacks = header.order.len();
        let n_turns = n_stacks.saturating_sub(header.left_out.len());
        let (state, stacks, counts) = match &finished {
            Some(it) if it.counts.total() == n_turns && !header.is_of_work_order() => {
                let state = RunStatus::new(&header, finished.as_ref(), liveness);
                (state, n_stacks, it.counts)
            }
            // A stack may have had several turns, and others may have been added.
            _ => {
                let whole = self.whole(id)?;
                let state = whole.status(liveness);
                let WholeRun { mut record, .. } = whole;
                record.show_unresolved_failures();
                finished.clone_from(&record.finished);
                (state, record.stacks.len(), record.counts())
            }
        };
        Ok(Brief {
            stacks,
            state,
            header,
            counts,
            elapsed: finished.map(|finished| Duration::from_millis(finished.elapsed_ms)),
        })
    }

    /// Returns the run that resumed this one, if there is one: its succeeded stacks are done. Fails
    /// if the journal of a later run cannot be read, since that run may be the one.
    pub fn resumed_by(&self, id: &str) -> Result<Option<&str>, UnreadRun> {
        // Newest first; ids are ordered by start time.
        for later in self.ids.iter().take_while(|later| later.as_str() > id) {
            let ends = self.open(later).map_err(JournalError::from);
            match ends.and_then(read_ends) {
                Ok((header, _)) if header.resumes.as_deref() == Some(id) => return Ok(Some(later)),
                Ok(_) => {}
                // Another process has removed it since.
                Err(error) if error.is_missing() => {}
                Err(error) => {
                    let run = later.clone();
                    return Err(UnreadRun { run, error });
                }
            }
        }
        Ok(None)
    }

    /// Returns the earlier runs of the same workflow, the latest first; none if no policy followed them. Unreadable
    /// runs are left out.
    pub fn earlier_in_workflow(&self, record: &RunRecord) -> Vec<RunRecord> {
        let run = record.header.run.as_str();
        let of = |header: &Header| Some(header.policies.as_ref()?.workflow.clone());
        let Some(workflow) = of(&record.header).filter(|first| *first != run) else {
            return Vec::new();
        };
        // Ids are ordered by start time.
        let may_belong = |id: &&String| (workflow.as_str()..run).contains(&id.as_str());
        let earlier = |id: &String| {
            let (header, _) = read_ends(self.open(id).ok()?).ok()?;
            let belongs = of(&header).is_some_and(|first| first == workflow);
            belongs.then(|| self.record(id).ok()).flatten()
        };
        let ids = self.ids.iter().filter(may_belong);
        ids.filter_map(earlier).collect()
    }

    /// Returns whether a run is in progress, as far as is known. A run without a journal is not.
    pub fn liveness(&self, id: &str) -> Liveness {
        let file = match self.open(id).map_err(JournalError::from) {
            Ok(file) => file,
            Err(error) if error.is_missing() => return Liveness::Gone,
            Err(_) => return Liveness::Unknown,
        };
        match file.try_lock_shared() {
            Ok(()) => self.liveness_of_commands(id),
            Err(TryLockError::WouldBlock) => Liveness::Alive,
            Err(TryLockError::Error(_)) => match read_ends(file) {
                Ok((_, Some(_))) => Liveness::Gone,
                Ok((header, None)) if header.host == host() && has_ended(header.process) => {
                    Liveness::Gone
                }
                _ => Liveness::Unknown,
            },
        }
    }

    /// Returns whether commands of a run are still running although its `orch` has ended. Only jobs have a lock of their own.
    fn liveness_of_commands(&self, id: &str) -> Liveness {
        let lock = self.place.open(&of_run(id), OpenOptions::new().read(true));
        match lock.map(|lock| lock.try_lock_shared()) {
            Ok(Ok(())) => Liveness::Gone,
            Ok(Err(TryLockError::WouldBlock)) => Liveness::Outlived,
            Err(Unusable::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                Liveness::Gone
            }
            _ => Liveness::Unknown,
        }
    }

    /// Removes all runs but the newest ones, those that are or may be in progress, and those that have
    /// left something to recover.
    pub fn prune(&self, keep: usize) -> PrunedRuns {
        let mut pruned = PrunedRuns {
            left: self.ids.len(),
            ..PrunedRuns::default()
        };
        for id in self.ids.iter().skip(keep) {
            if self.liveness(id) != Liveness::Gone || self.is_to_recover(id) {
                continue;
            }
            match fs::remove_dir_all(self.folder(id)) {
                Ok(()) => pruned.removed.push(id.clone()),
                // Another process has removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    pruned.problems.push((id.clone(), error));
                    continue;
                }
            }
            pruned.left -= 1;
        }
        pruned
    }

    /// Returns whether a run has recorded something that is not in the state.
    fn is_to_recover(&self, id: &str) -> bool {
        let copy = LocalCopy::FILE;
        self.place.may_have(&format!("{FOLDER}/{id}/{copy}"))
    }

    /// Removes leftovers of runs that never began, if they are older than a run that begins now: newer ones may be
    /// about to begin.
    pub fn remove_unbegun(&self, now: &str) {
        let has_begun = |id: &String| self.ids.contains(id);
        let is_kept = |id: &String| self.is_beginning(id) || self.is_to_recover(id);
        for id in &self.folders {
            if id.as_str() < now && !has_begun(id) && !is_kept(id) {
                // A folder that cannot be removed does no harm.
                _ = fs::remove_dir_all(self.folder(id));
            }
        }
    }

    /// Returns whether a run without a journal is about to have one, or has one by now.
    fn is_beginning(&self, id: &str) -> bool {
        if self.place.may_have(&format!("{FOLDER}/{id}/{FILE}")) {
            return true;
        }
        let path = format!("{FOLDER}/{id}/{NEW_FILE}");
        match self.place.open(&path, OpenOptions::new().read(true)) {
            Ok(file) => file.try_lock_shared().is_err(),
            Err(Unusable::Io { error, .. }) => error.kind() != io::ErrorKind::NotFound,
            Err(_) => false,
        }
    }

    /// Returns how long each stack took when it last succeeded in a run with such a header. Reads only the newest
    /// runs, and ignores unreadable ones.
    pub fn past_durations(&self, is_alike: impl Fn(&Header) -> bool) -> HashMap<String, Duration> {
        let mut durations = HashMap::new();
        for id in self.ids.iter().take(MAX_PAST) {
            let Ok(record) = self.record(id) else {
                continue;
            };
            if !is_alike(&record.header) {
                continue;
            }
            for stack in record.stacks {
                if stack.state.is_success()
                    && let StackState::Ended(EndedTurnRecord { elapsed_ms, .. }) = stack.state
                {
                    let elapsed = Duration::from_millis(elapsed_ms);
                    durations.entry(stack.path).or_insert(elapsed);
                }
            }
        }
        durations
    }

    fn open(&self, id: &str) -> Result<fs::File, Unusable> {
        let path = format!("{FOLDER}/{id}/{FILE}");
        // Who holds the lock may call themselves anything, `../..` for example.
        if !self.ids.iter().any(|known| known == id) {
            return Err(failed("open", &path, io::ErrorKind::NotFound.into()));
        }
        self.place.open(&path, OpenOptions::new().read(true))
    }
}

/// Returns the folder of a run in a project, whether or not it exists.
pub fn run_folder(root: &Path, id: &str) -> PathBuf {
    root.join(NAME).join(FOLDER).join(id)
}

/// Removes a run of this process, unless it has left something to recover.
pub fn remove_run(root: &Path, id: &str) {
    let folder = run_folder(root, id);
    if let Ok(None) = if_there(folder.join(LocalCopy::FILE).symlink_metadata()) {
        // A leftover one does no harm.
        _ = fs::remove_dir_all(folder);
    }
}

/// Returns an id a millisecond after another one, if that has a time.
fn after(id: &str) -> Option<String> {
    let (seconds, nanoseconds) = Uuid::try_parse(id).ok()?.get_timestamp()?.to_unix();
    let later = Duration::new(seconds, nanoseconds) + Duration::from_millis(1);
    let later = Timestamp::from_unix(NoContext, later.as_secs(), later.subsec_nanos());
    let later = Uuid::new_v7(later).to_string();
    // After the largest time, the order starts again.
    (later.as_str() > id).then_some(later)
}
