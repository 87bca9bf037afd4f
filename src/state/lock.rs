//! The lock in the document: who takes it, who has it, and what becomes of what a holder leaves behind.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Map;
use uuid::Uuid;

use super::backend::{Backend, Read, ReadError, Swap};
use super::clock::Clock;
use super::document::{Action, Document, Lock};
use super::run_record::{Broken, RunRecord};
use super::salvage::{self, Damage, FoundRecord};
use super::store::{Condition, Presence, StoreError, Version};
use super::written::{RunWrite, Tally};
use crate::author::Author;

/// How often a write is tried again that somebody else has forestalled.
pub(super) const ATTEMPTS: usize = 50;

/// How often a lock that another run holds is looked at.
const POLL: Duration = Duration::from_secs(5);

/// A holder who was heard of so recently is alive.
const ALIVE: SignedDuration = SignedDuration::from_mins(2);

/// What the history calls it when a lock is taken away.
const UNLOCK: &str = "unlock";

/// The reason of one that gives up what the holder has recorded, unless there is another.
const RECORD_LOST: &str = "the run record was damaged";

/// A lock that another run holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The lock; none if its holder is just taking or freeing it.
    pub lock: Option<Lock>,
    /// When the holder was heard of last.
    pub heard: Option<Timestamp>,
}

/// Why a write did not take place.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The backend cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no document.
    #[error("there is no document at `{0}`")]
    Missing(String),
    /// Another run writes.
    #[error("the state is locked")]
    Held(Box<Held>),
    /// The holder is dead, and what it has left is damaged.
    #[error("the run record `{}` cannot be used: {}", .1.address, .1.why)]
    Damaged(Box<Lock>, Damage),
    /// Somebody else was faster each time.
    #[error("`{0}` changes faster than it can be written")]
    Busy(String),
}

impl From<StoreError> for LockError {
    fn from(error: StoreError) -> Self {
        LockError::Read(error.into())
    }
}

/// The lock, held, and the document as its holder has read it.
#[derive(Debug)]
pub struct Locked {
    /// The document, with the lock in it.
    pub document: Document,
    /// The run before this one, if it was killed on this machine and its lock was taken over.
    pub taken_over: Option<Lock>,
    pub(super) version: Version,
    pub(super) lock: Lock,
    pub(super) record: RunRecord,
    pub(super) record_version: Version,
    pub(super) presence: Presence,
}

/// Takes the lock for a run, or waits until it is free, for at most so long. The same write makes what `amend`
/// changes in the document.
///
/// # Errors
///
/// If it cannot be taken; if there is no document; if it is still held when the time is over.
pub fn lock(
    backend: &Backend,
    run: &str,
    action: &Action,
    author: &Author,
    timeout: Duration,
    clock: &dyn Clock,
    amend: &dyn Fn(&mut Document),
) -> Result<Locked, LockError> {
    let start = clock.elapsed();
    loop {
        let held = match try_lock(backend, run, action, author, clock, amend) {
            Err(LockError::Held(held)) => held,
            other => return other,
        };
        let left = (start + timeout).saturating_sub(clock.elapsed());
        if left.is_zero() {
            return Err(LockError::Held(held));
        }
        clock.sleep(left.min(POLL));
    }
}

fn try_lock(
    backend: &Backend,
    run: &str,
    action: &Action,
    author: &Author,
    clock: &dyn Clock,
    amend: &dyn Fn(&mut Document),
) -> Result<Locked, LockError> {
    let code = Uuid::new_v4().to_string();
    for attempt in 1..=ATTEMPTS {
        let read = read(backend)?;
        let Some(succession) = backend.succession(&read)? else {
            continue;
        };
        let Read {
            mut document,
            bytes,
            version,
        } = read;
        document.succeed(&succession);
        let freed = free(backend, &mut document, author, clock.now())?;
        let (taken_over, presence) = match freed {
            Some((lock, presence)) => (Some(lock), presence),
            None => (None, backend.presence()?),
        };
        if matches!(presence, Presence::Another) {
            return Err(held(backend, None)?);
        }
        let lock = Lock {
            code: code.clone(),
            run: run.to_owned(),
            action: action.clone(),
            by: author.by.clone(),
            host: author.host.clone(),
            process: author.process,
            ci: author.ci.clone(),
            since: clock.now(),
            other: Map::new(),
        };
        amend(&mut document);
        document.lock = Some(lock.clone());
        // From here on there is always a record that a tombstone can replace.
        let mut record = RunRecord::new(&document, code.clone(), run.to_owned(), clock.now());
        record.sequence = attempt as u64;
        let record_version = match backend.swap_record(&record, &Condition::Absent)? {
            Swap::Done(version) => version,
            // What is there is ours, from an answer that was lost, or where nothing can be removed.
            Swap::Refused(Some(found)) => {
                let ours = Condition::Unchanged(found.version);
                match backend.swap_record(&record, &ours)? {
                    Swap::Done(version) => version,
                    Swap::Refused(_) => continue,
                }
            }
            Swap::Refused(None) => continue,
        };
        let give_up = |error: StoreError| {
            backend.delete_record(run);
            error
        };
        let backed_up = backend.back_up(&succession, &bytes);
        backed_up.map_err(give_up)?;
        let condition = Condition::Unchanged(version);
        match backend.swap(&document, &condition).map_err(give_up)? {
            Swap::Done(version) => {
                backend.delete_other_records(run);
                return Ok(Locked {
                    document,
                    taken_over,
                    version,
                    lock,
                    record,
                    record_version,
                    presence,
                });
            }
            Swap::Refused(_) => backend.delete_record(run),
        }
    }
    Err(LockError::Busy(backend.address()))
}

/// Reads the document, which must exist.
pub(super) fn read(backend: &Backend) -> Result<Read, LockError> {
    let read = backend.read()?;
    read.ok_or_else(|| LockError::Missing(backend.address()))
}

/// Frees a document in memory if its holder has died on this machine; returns the lock that it had, and
/// what keeps other processes from doing the same. The serial of the document is already that of the
/// write.
///
/// # Errors
///
/// If another run holds the lock, or what the dead one has left is damaged.
pub(super) fn free(
    backend: &Backend,
    document: &mut Document,
    author: &Author,
    now: Timestamp,
) -> Result<Option<(Lock, Presence)>, LockError> {
    let Some(lock) = document.lock.clone() else {
        return Ok(None);
    };
    let presence = if lock.host == author.host {
        backend.presence()?
    } else {
        Presence::Unknown
    };
    if !matches!(presence, Presence::Alone(_)) {
        return Err(held(backend, Some(lock))?);
    }
    let found = salvage::find(backend, &lock.run)?;
    let record = match found {
        Some(FoundRecord {
            damage: Some(damage),
            ..
        }) => return Err(LockError::Damaged(Box::new(lock), damage)),
        found => found.and_then(|found| found.record),
    };
    settle(document, &lock, record.as_ref(), author, now, None);
    Ok(Some((lock, presence)))
}

/// Returns the error that another run holds the lock.
///
/// # Errors
///
/// If it cannot be known when that was heard of.
pub(super) fn held_by_other(backend: &Backend, lock: Lock) -> Result<LockError, LockError> {
    Ok(held(backend, Some(lock))?)
}

/// Returns who holds a lock and when they were heard of.
fn held(backend: &Backend, lock: Option<Lock>) -> Result<LockError, ReadError> {
    let found = match &lock {
        Some(lock) => salvage::find(backend, &lock.run)?,
        None => None,
    };
    let heard = found.and_then(|found| found.record).map(|record| record.at);
    Ok(LockError::Held(Box::new(Held {
        heard: heard.or(lock.as_ref().map(|lock| lock.since)),
        lock,
    })))
}

/// Merges what a holder has left into the document, and frees its lock. The serial of the document is
/// already that of the write.
fn settle(
    document: &mut Document,
    lock: &Lock,
    record: Option<&RunRecord>,
    author: &Author,
    at: Timestamp,
    reason: Option<String>,
) {
    let record = record.filter(|record| is_of(record, document, lock));
    let stacks = record.map(|record| &record.stacks);
    if let Some(stacks) = stacks {
        document.merge(stacks);
    }
    document.interrupt(&lock.run, at);
    document.lock = None;
    let gone = stacks.into_iter().flatten();
    let gone = gone.filter(|(_, entry)| entry.is_none());
    let gone = gone.map(|(key, _)| (key.as_str(), None));
    let left = document.stacks.iter();
    let left = left.map(|(key, entry)| (key.as_str(), Some(entry)));
    let write = Tally::of(&lock.run, left.chain(gone)).written(RunWrite {
        run: &lock.run,
        by: &author.by,
        what: UNLOCK,
        at,
        reason,
    });
    document.remember(write);
}

/// Returns whether a record belongs to the lock of a document.
fn is_of(record: &RunRecord, document: &Document, lock: &Lock) -> bool {
    record.code == lock.code && record.lineage == document.lineage
}

/// Why a lock was not taken away.
#[derive(Debug, thiserror::Error)]
pub enum UnlockError {
    /// The document cannot be read or written.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Nobody holds the lock.
    #[error("the state is not locked")]
    NotLocked,
    /// Somebody else holds it.
    #[error("the state is locked with another code")]
    WrongCode(Box<Held>),
    /// The holder was heard of just now.
    #[error("the holder of the lock was heard of just now")]
    Alive(Box<Held>),
    /// What the holder has recorded cannot all be read.
    #[error("the run record `{}` cannot be used: {}", .1.address, .1.why)]
    Damaged(Box<Lock>, Damage),
}

impl From<ReadError> for UnlockError {
    fn from(error: ReadError) -> Self {
        UnlockError::Lock(error.into())
    }
}

impl From<StoreError> for UnlockError {
    fn from(error: StoreError) -> Self {
        UnlockError::Lock(error.into())
    }
}

/// How a lock is taken away.
#[derive(Debug, Clone)]
pub struct Unlocking {
    /// The code of the lock.
    pub code: String,
    /// Also from a holder who was heard of just now, or whose run record is damaged.
    pub force: bool,
    /// Why, in the user's words.
    pub reason: Option<String>,
    /// Nothing is written.
    pub dry_run: bool,
}

/// A lock that was taken away.
#[derive(Debug)]
pub struct Unlocked {
    /// The lock.
    pub lock: Lock,
    /// The document without it.
    pub document: Document,
    /// What could not be read of what the holder had recorded, and is lost.
    pub damage: Option<Damage>,
}

/// Takes a lock away from its holder, who can write nothing from then on. What they have recorded is
/// merged; what they have begun counts as interrupted.
///
/// # Errors
///
/// If the lock has another code, if its holder may be alive, if what they have recorded is damaged, or if
/// the document cannot be written.
pub fn unlock(
    backend: &Backend,
    unlocking: &Unlocking,
    author: &Author,
    clock: &dyn Clock,
) -> Result<Unlocked, UnlockError> {
    let mut damage = None;
    for _ in 0..ATTEMPTS {
        let read = read(backend)?;
        let Some(succession) = backend.succession(&read)? else {
            continue;
        };
        let Read {
            mut document,
            bytes,
            version: replaced_version,
        } = read;
        let lock = document.lock.clone().ok_or(UnlockError::NotLocked)?;
        let (record, version) = match salvage::find(backend, &lock.run)? {
            None => (None, None),
            Some(found) => {
                // Once a tombstone has replaced the record, that is whole.
                damage = found.damage.or(damage);
                (found.record, Some(found.version))
            }
        };
        let heard = record.as_ref().map(|record| record.at);
        let held = || {
            Box::new(Held {
                lock: Some(lock.clone()),
                heard: heard.or(Some(lock.since)),
            })
        };
        if lock.code != unlocking.code {
            return Err(UnlockError::WrongCode(held()));
        }
        let now = clock.now();
        let age = now.duration_since(heard.unwrap_or(lock.since));
        let is_broken = record
            .as_ref()
            .is_some_and(|record| record.broken.is_some());
        if !unlocking.force
            && let Some(damage) = damage
        {
            return Err(UnlockError::Damaged(Box::new(lock), damage));
        }
        if !unlocking.force && !is_broken && age < ALIVE {
            return Err(UnlockError::Alive(held()));
        }
        if let Some(version) = version
            && !is_broken
            && !unlocking.dry_run
        {
            let record = record.clone().unwrap_or_else(|| {
                RunRecord::new(&document, lock.code.clone(), lock.run.clone(), now)
            });
            let tombstone = RunRecord {
                sequence: record.sequence + 1,
                broken: Some(Broken {
                    by: author.by.clone(),
                    at: now,
                }),
                ..record
            };
            let condition = Condition::Unchanged(version);
            match backend.swap_record(&tombstone, &condition)? {
                Swap::Done(_) => {}
                // The holder wrote at the same time.
                Swap::Refused(_) => continue,
            }
        }
        document.succeed(&succession);
        let lost = || damage.as_ref().map(|_| RECORD_LOST.to_owned());
        let reason = unlocking.reason.clone().or_else(lost);
        settle(&mut document, &lock, record.as_ref(), author, now, reason);
        if unlocking.dry_run {
            return Ok(Unlocked {
                lock,
                document,
                damage,
            });
        }
        backend.back_up(&succession, &bytes)?;
        let condition = Condition::Unchanged(replaced_version);
        if let Swap::Done(_) = backend.swap(&document, &condition)? {
            backend.delete_record(&lock.run);
            return Ok(Unlocked {
                lock,
                document,
                damage,
            });
        }
    }
    Err(LockError::Busy(backend.address()).into())
}
