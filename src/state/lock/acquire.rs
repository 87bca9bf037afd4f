//! Taking the lock, and waiting for it.

use std::fs::File;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use serde_json::Map;
use uuid::Uuid;

use super::super::backend::{Backend, BackendReadError, PutOutcome};
use super::super::clock::{Clock, Moment};
use super::super::document::{Document, Lock, OrderJob, RunAction};
use super::super::holder::{FileHolder, LockedFile, Presence};
use super::super::run_record::RunChanges;
use super::super::store::{PutCondition, RETRY_TIMEOUT, StoreError, Version};
use super::queue::{QueuePlace, jittered};
use super::{
    FreedLock, GRACE, LockConflict, LockDraft, LockError, TakenOver, free, free_job, retry,
};
use crate::author::Author;

/// How long to wait before something is tried again that failed.
const RETRY: Duration = Duration::from_secs(1);

pub struct LockApplication<'a> {
    pub run: &'a str,
    pub action: &'a RunAction,
    pub author: &'a Author,
    /// After how long without a heartbeat others may take the lock over.
    pub expires: Option<Duration>,
    /// How long to wait while others hold it.
    pub timeout: Duration,
    /// The job that the run is, if it shares the lock of a work order.
    pub job: Option<&'a OrderJob>,
    /// Further changes of the write that takes the lock.
    pub amend: &'a dyn Fn(&mut Document),
    /// Called each time with the reason for waiting.
    pub note: &'a dyn Fn(WaitReason<'_>),
}

#[derive(Debug)]
pub enum WaitReason<'a> {
    Held(&'a LockConflict),
    /// The lock is free, and this many runs have waited for longer.
    Behind(usize),
    Failing(&'a StoreError),
}

/// The held lock, and the document that its holder read.
#[derive(Debug)]
pub struct Locked {
    pub document: Document,
    /// The lock before this one, if it was taken over.
    pub taken_over: Option<TakenOver>,
    pub(in crate::state) version: Version,
    pub(in crate::state) lock: Lock,
    pub(in crate::state) record: RunChanges,
    pub(in crate::state) record_version: Version,
    /// Before this moment, no one can have taken it over.
    pub(in crate::state) sure: Moment,
    /// Keeps other processes on this machine from taking the lock over.
    pub(in crate::state) claim: Option<LockedFile>,
}

/// Takes the lock for a run, or waits until it is free. Transient failures of the store are retried
/// as long as during a run. Fails if it cannot be taken; if there is no document; if it is still
/// held after the timeout.
pub fn lock(
    backend: &Backend,
    application: &LockApplication<'_>,
    clock: &dyn Clock,
) -> Result<Locked, LockError> {
    let start = clock.elapsed();
    let mut acquisition = Acquisition {
        backend,
        application,
        clock,
        code: Uuid::new_v4().to_string(),
        place: QueuePlace::new(backend, application.run),
        taken_over: None,
        left_behind: None,
        has_waited: false,
        writes: 0,
        sure: Moment::now(clock),
    };
    let (mut claim, mut failing) = (None, None);
    loop {
        let left = (start + application.timeout).saturating_sub(clock.elapsed());
        let attempt = match acquisition.attempt(claim.take(), left.is_zero()) {
            Err(LockError::Read(BackendReadError::Store(error))) if error.is_transient() => {
                let now = clock.elapsed();
                let since = *failing.get_or_insert(now);
                if now.saturating_sub(since) >= RETRY_TIMEOUT {
                    return Err(error.into());
                }
                (application.note)(WaitReason::Failing(&error));
                clock.sleep(jittered(RETRY));
                continue;
            }
            attempt => attempt?,
        };
        failing = None;
        match attempt {
            Attempt::Locked(locked) => return Ok(*locked),
            Attempt::Behind(ahead) => {
                (application.note)(WaitReason::Behind(ahead));
                acquisition.place.join(clock);
                clock.sleep(acquisition.place.pause(Duration::ZERO).min(left));
            }
            Attempt::Changing(..) if left.is_zero() && acquisition.left_behind.is_some() => {
                return Err(LockError::Held(Box::default()));
            }
            Attempt::Changing(holder, version) => {
                let last = holder.last;
                claim = acquisition.await_process(holder.file, GRACE);
                acquisition.left_behind = Some((last, version));
            }
            Attempt::Held(held, HeldBy::Process(file))
                if held.is_outlived && !acquisition.has_waited =>
            {
                acquisition.has_waited = true;
                claim = acquisition.await_process(file, GRACE);
            }
            Attempt::Held(held, _) if left.is_zero() => return Err(LockError::Held(held)),
            Attempt::Held(held, holder) => {
                (application.note)(WaitReason::Held(&held));
                let most = held.until_expiry().map_or(left, |expiry| left.min(expiry));
                match holder {
                    HeldBy::Process(file) => claim = acquisition.await_process(file, most),
                    HeldBy::Version(version) => acquisition.await_change(&version, most),
                }
            }
        }
    }
}

/// Returns a lock if the work order of a job holds it.
fn of_order<'l>(held: &'l LockConflict, job: Option<&OrderJob>) -> Option<&'l Lock> {
    let (lock, job) = held.lock.as_ref().zip(job)?;
    (lock.run == job.run).then_some(lock)
}

enum Attempt {
    Locked(Box<Locked>),
    /// The lock is free, and so many others are first.
    Behind(usize),
    Held(Box<LockConflict>, HeldBy),
    /// The lock is free, and a process of this machine is about to take it, or has just freed it.
    Changing(FileHolder, Version),
}

/// Who holds the lock, and so the event that frees it.
enum HeldBy {
    /// The file that a process of this machine keeps locked.
    Process(File),
    Version(Version),
}

struct Acquisition<'a> {
    backend: &'a Backend,
    application: &'a LockApplication<'a>,
    clock: &'a dyn Clock,
    /// The code of the lock to be: a document that has it was written by this run.
    code: String,
    place: QueuePlace<'a>,
    taken_over: Option<TakenOver>,
    /// The run whose processes kept the holder file locked for some time, while the lock was free and the document
    /// did not change. They have outlived the run and are not waited for. The file then doesn't show whether this run
    /// is alive.
    left_behind: Option<(String, Version)>,
    /// Whether the processes of a killed run were given time to end.
    has_waited: bool,
    /// How many records were written: no two have the same bytes.
    writes: u64,
    /// When the last of them was sent.
    sure: Moment,
}

impl Acquisition<'_> {
    /// Tries to take the lock. `is_last` means that tickets of others no longer count.
    fn attempt(&mut self, claim: Option<LockedFile>, is_last: bool) -> Result<Attempt, LockError> {
        // A job looks for itself, once it knows whose lock it is.
        let is_job = self.application.job.is_some();
        let mut presence = match claim.filter(|_| !is_job) {
            Some(claim) => Presence::Alone(claim),
            None if is_job => Presence::Unknown,
            None => self.backend.presence(),
        };
        let mut is_freed = false;
        retry(self.backend, || {
            self.attempt_once(&mut presence, &mut is_freed, is_last)
        })
    }

    /// Makes one attempt. `is_freed` means that an earlier one freed the lock of another run.
    fn attempt_once(
        &mut self,
        presence: &mut Presence,
        is_freed: &mut bool,
        is_last: bool,
    ) -> Result<Option<Attempt>, LockError> {
        let Some(mut draft) = LockDraft::read(self.backend)? else {
            return Ok(None);
        };
        if let Some(lock) = draft.document.lock_with(&self.code).cloned() {
            // The answer to the write that took it was lost.
            let locked = self.locked(draft.document, draft.version, lock, None, presence)?;
            return Ok(Some(Attempt::Locked(Box::new(locked))));
        }
        draft.succeed();
        let by = (self.application.author, self.clock.now());
        let age = draft.age;
        let job = self.application.job;
        if job.is_some() {
            *presence = self.presence_beside_jobs(&draft.document);
        }
        let shares =
            job.is_some_and(|job| draft.document.lock.as_ref().is_some_and(|it| job.holds(it)));
        let freed = match job.filter(|_| shares) {
            Some(job) => free_job(self.backend, &mut draft.document, &job.job, by),
            None => free(self.backend, &mut draft.document, age, presence, by, false),
        };
        match freed {
            Ok(FreedLock::Unlocked) => self.taken_over = None,
            Ok(FreedLock::Raced) => return Ok(None),
            Ok(FreedLock::Over(taken_over)) => {
                *is_freed = true;
                self.taken_over = Some(*taken_over);
            }
            Err(LockError::Held(held)) if shares && job.is_some_and(|job| job.is_chosen) => {
                return Err(LockError::Held(held));
            }
            Err(LockError::Held(held)) => {
                if let Some(lock) = of_order(&held, job).filter(|_| !shares) {
                    return Err(LockError::OtherSecret(Box::new(lock.clone())));
                }
                let run = held.lock.as_ref().map(|lock| lock.run.as_str());
                let is_holder = |holder: &FileHolder| run.is_some_and(|run| holder.is(run));
                let by = match std::mem::replace(presence, Presence::Unknown) {
                    Presence::Another(holder) if is_holder(&holder) => HeldBy::Process(holder.file),
                    _ => HeldBy::Version(draft.version),
                };
                return Ok(Some(Attempt::Held(held, by)));
            }
            Err(error) => return Err(error),
        }
        match std::mem::replace(presence, Presence::Unknown) {
            Presence::Another(holder) => {
                let seen = (holder.last.clone(), draft.version.clone());
                if !*is_freed && self.left_behind.as_ref() != Some(&seen) {
                    return Ok(Some(Attempt::Changing(holder, draft.version)));
                }
            }
            // The file shows who holds the lock alone.
            Presence::Alone(claim) if job.is_none() => *presence = Presence::Alone(claim),
            Presence::Alone(_) | Presence::Unknown => {}
        }
        if !is_last && !shares && !self.place.is_next(self.clock) {
            return Ok(Some(Attempt::Behind(self.place.ahead())));
        }
        let lock = self.new_lock();
        (self.application.amend)(&mut draft.document);
        match job {
            None => draft.document.lock = Some(lock.clone()),
            Some(job) => draft.document.admit(job, lock.clone()),
        }
        // From here on there is always a record that a tombstone can replace.
        if let Presence::Alone(claim) = &*presence {
            claim.note(&lock.run);
        }
        let record = self.put_record(&draft.document)?;
        if record.is_none() {
            return Ok(None);
        }
        let written = if shares {
            draft.write_without_backup(self.backend)?
        } else {
            draft.write(self.backend)?
        };
        if let Some((document, version)) = written {
            let locked = self.locked(document, version, lock, record, presence)?;
            return Ok(Some(Attempt::Locked(Box::new(locked))));
        }
        self.backend.delete_record(self.application.run);
        Ok(None)
    }

    /// Returns whether processes of this machine hold a lock that jobs do not share. Leaves the file to others: jobs
    /// run at the same time, and the end of a run stays proved.
    fn presence_beside_jobs(&self, document: &Document) -> Presence {
        let lock = document.lock.as_ref();
        if lock.is_none_or(|lock| lock.shared.is_some()) {
            return Presence::Unknown;
        }
        let presence = self.backend.presence();
        if let Presence::Alone(claim) = &presence {
            claim.release();
        }
        presence
    }

    fn new_lock(&self) -> Lock {
        let LockApplication {
            run,
            action,
            author,
            expires,
            ..
        } = self.application;
        Lock {
            code: self.code.clone(),
            run: (*run).to_owned(),
            action: (*action).clone(),
            by: author.by.clone(),
            host: author.host.clone(),
            process: author.process,
            ci: author.ci.clone(),
            since: self.clock.now(),
            expires: expires.map(|expires| expires.as_secs()),
            shared: None,
            other: Map::new(),
        }
    }

    /// Writes the run record, over any existing one: an answer may have been lost, and some stores cannot remove
    /// objects. Returns `None` if another write interfered.
    fn put_record(
        &mut self,
        document: &Document,
    ) -> Result<Option<(RunChanges, Version)>, LockError> {
        self.writes += 1;
        self.sure = Moment::now(self.clock);
        let (run, now) = (self.application.run.to_owned(), self.clock.now());
        let mut record = RunChanges::new(document, self.code.clone(), run, now);
        record.sequence = self.writes;
        let mut condition = PutCondition::Absent;
        loop {
            match self.backend.swap_record(&record, &condition)? {
                PutOutcome::Done(version) => return Ok(Some((record, version))),
                PutOutcome::Refused(Some(found)) if condition == PutCondition::Absent => {
                    condition = PutCondition::Unchanged(found.version);
                }
                PutOutcome::Refused(_) => return Ok(None),
            }
        }
    }

    /// Returns the new lock of the document, and removes leftovers of earlier runs.
    fn locked(
        &mut self,
        document: Document,
        version: Version,
        lock: Lock,
        record: Option<(RunChanges, Version)>,
        presence: &mut Presence,
    ) -> Result<Locked, LockError> {
        let claim = match std::mem::replace(presence, Presence::Unknown) {
            Presence::Alone(claim) => Some(claim),
            _ => None,
        };
        let record = match record {
            Some(record) => Some(record),
            None => self.put_record(&document)?,
        };
        let Some((record, record_version)) = record else {
            return Err(LockError::Busy(self.backend.address()));
        };
        // Another job of the order may have joined since.
        if self.application.job.is_none() {
            self.backend.delete_other_records(&lock.run);
        }
        Ok(Locked {
            document,
            taken_over: self.taken_over.take(),
            version,
            lock,
            record,
            record_version,
            sure: self.sure,
            claim,
        })
    }

    /// Waits until a process of this machine and its children end or free the lock; the kernel reports it.
    fn await_process(&self, file: File, most: Duration) -> Option<LockedFile> {
        let until = self.clock.elapsed() + most;
        let left = || until.saturating_sub(self.clock.elapsed());
        let (sender, receiver) = mpsc::channel();
        let wake = self.clock.alarm();
        let is_woken = wake.is_some();
        let waiting = thread::Builder::new().spawn(move || {
            if file.lock().is_ok() {
                // If no one waits any more, this closes the file, which unlocks it.
                _ = sender.send(file);
            }
            if let Some(wake) = wake {
                wake();
            }
        });
        if waiting.is_err() {
            self.clock.sleep(jittered(RETRY).min(left()));
            return None;
        }
        if !is_woken {
            let file = receiver.recv_timeout(left()).ok();
            return file.and_then(|file| LockedFile::of(file).ok());
        }
        loop {
            match receiver.try_recv() {
                Ok(file) => return LockedFile::of(file).ok(),
                Err(TryRecvError::Disconnected) => {
                    self.clock.sleep(jittered(RETRY).min(left()));
                    return None;
                }
                Err(TryRecvError::Empty) if left().is_zero() => return None,
                Err(TryRecvError::Empty) => self.clock.sleep(left()),
            }
        }
    }

    /// Waits until the document changes.
    fn await_change(&mut self, seen: &Version, most: Duration) {
        self.place.join(self.clock);
        self.place.note_held();
        let begun = self.clock.elapsed();
        loop {
            let waited = self.clock.elapsed().saturating_sub(begun);
            let left = most.saturating_sub(waited);
            self.clock.sleep(self.place.pause(waited).min(left));
            let is_over = left.is_zero();
            let found = self.backend.version();
            if is_over || !matches!(found, Ok(Some(found)) if found == *seen) {
                return;
            }
        }
    }
}
