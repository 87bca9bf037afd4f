//! The lock in the document: its holder, and when others may take it over.
//!
//! A holder rewrites its run record as a heartbeat, dated by the store's clock. Whoever takes a lock over first
//! replaces that record by a tombstone, so that a holder that is still alive can write nothing more.

mod acquire;
mod draft;
mod queue;
mod unlock;

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

pub use self::acquire::{LockApplication, Locked, WaitReason, lock};
pub(super) use self::draft::{LockDraft, attempts, retry};
pub use self::unlock::{RemovedLock, UnlockError, Unlocking, unlock};
use super::backend::{Backend, BackendReadError, PutOutcome, ReadDocument};
use super::clock::Clock;
use super::document::{Document, Lock};
use super::holder::Presence;
use super::lease::ALIVE;
use super::run_record::{BrokenLock, RunChanges};
use super::salvage::{self, Damage, FoundRecord};
use super::store::{PutCondition, StoreError};
use super::written::{RunWrite, Tally};
use crate::author::{self, Author};
use crate::duration::local_time;
use crate::printable::printable;

/// How long the processes of a killed run may take to end, and a process to take or free the lock.
const GRACE: Duration = Duration::from_secs(1);

const UNLOCK: &str = "unlock";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockConflict {
    /// The lock; `None` while its holder is taking or freeing it.
    pub lock: Option<Lock>,
    /// How long ago the holder was heard of last, by the clock of the store.
    pub silence: Option<Duration>,
    /// When that was, by the clock of this machine.
    pub heard: Option<Timestamp>,
    /// Whether its `orch` has ended on this machine, but one of its commands has not.
    pub is_outlived: bool,
}

/// Describes the holder: the user, the place, since when, and the last heartbeat.
impl Display for LockConflict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(lock) = &self.lock else {
            return f.write_str("another process of this machine");
        };
        let Lock {
            run,
            action,
            by,
            host,
            process,
            ci,
            since,
            ..
        } = lock;
        write!(
            f,
            "{} on {}, process {process}, {} in run {} since {}",
            printable(by),
            printable(host),
            printable(action.word()),
            printable(run),
            local_time(*since)
        )?;
        if let Some(heard) = self.heard {
            write!(f, ", last heartbeat at {}", local_time(heard))?;
        }
        match ci {
            Some(ci) => write!(f, ", {}", printable(ci)),
            None => Ok(()),
        }
    }
}

impl LockConflict {
    /// Returns the time until the lock expires without another heartbeat.
    pub fn until_expiry(&self) -> Option<Duration> {
        let expires = self.lock.as_ref()?.expires()?;
        Some(expires.saturating_sub(self.silence?))
    }
}

/// Why a write did not take place.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(transparent)]
    Read(#[from] BackendReadError),
    #[error("no state at `{0}`")]
    Missing(String),
    /// Another run writes.
    #[error("the state is locked")]
    Held(Box<LockConflict>),
    /// A job has another code than the lock of its own work order.
    #[error("the work order has locked the state with another secret")]
    OtherSecret(Box<Lock>),
    /// The lock could be taken over, but the record of its holder is damaged.
    #[error("the run record `{}` cannot be used: {}", .1.address, .1.why)]
    Damaged(Box<Lock>, Damage),
    /// Another writer was faster each time.
    #[error("`{0}` was changed by others before each attempt to write it; try again")]
    Busy(String),
}

impl From<StoreError> for LockError {
    fn from(error: StoreError) -> Self {
        LockError::Read(error.into())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeoverReason {
    /// Its run was killed on this machine, and all its processes have ended.
    Killed,
    /// Its run sent no heartbeat for this long.
    Expired(Duration),
    /// A forced unlock was interrupted.
    Broken,
}

impl TakeoverReason {
    fn reason(self) -> Option<String> {
        match self {
            TakeoverReason::Killed | TakeoverReason::Broken => None,
            TakeoverReason::Expired(expires) => {
                let expires = crate::duration::exact(expires);
                Some(format!("the run sent no heartbeat for {expires}"))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenOver {
    pub lock: Lock,
    pub why: TakeoverReason,
}

/// The lock of a document, after an attempt to free it.
pub(super) enum FreedLock {
    Unlocked,
    Over(Box<TakenOver>),
    /// Its holder wrote at the same time: read again.
    Raced,
}

/// Reads the document, which must exist.
pub(super) fn read(backend: &Backend) -> Result<ReadDocument, LockError> {
    let read = backend.read()?;
    read.ok_or_else(|| LockError::Missing(backend.address()))
}

/// Frees the lock of a document in memory if it may be taken over; from then on its holder can
/// write nothing. The document already has the serial of the write. `age` is the time since the
/// document was written. With `is_dry`, nothing is written. Fails if another run holds the lock, or
/// the record of a dead one is damaged.
pub(super) fn free(
    backend: &Backend,
    document: &mut Document,
    age: Option<Duration>,
    presence: &Presence,
    by: (&Author, Timestamp),
    is_dry: bool,
) -> Result<FreedLock, LockError> {
    let Some(lock) = document.lock.clone() else {
        return Ok(FreedLock::Unlocked);
    };
    if lock.shared.is_none() {
        return free_holder(backend, document, lock, age, presence, by, is_dry);
    }
    // The lock of a work order is held until it expires, also while none of its jobs runs.
    let expires = lock.expires();
    let silent = |silence: Duration| expires.filter(|expires| silence >= *expires);
    let Some(expires) = age.and_then(silent) else {
        return Err(LockError::Held(Box::new(held_since(lock, age, by.1))));
    };
    // None is written if any is alive.
    for is_dry in [true, is_dry] {
        let mut rest = document.clone();
        for job in lock.holders() {
            let freed = free_holder(backend, &mut rest, job.clone(), None, presence, by, is_dry)?;
            if let FreedLock::Raced = freed {
                return Ok(FreedLock::Raced);
            }
        }
        rest.lock = None;
        if !is_dry {
            *document = rest;
        }
    }
    if is_dry {
        document.lock = None;
    }
    let why = TakeoverReason::Expired(expires);
    Ok(FreedLock::Over(Box::new(TakenOver { lock, why })))
}

/// Frees the lock of a job in that of its work order, if an earlier run of the job has died. Fails
/// if the job runs, or the record of a dead one is damaged.
fn free_job(
    backend: &Backend,
    document: &mut Document,
    job: &str,
    by: (&Author, Timestamp),
) -> Result<FreedLock, LockError> {
    let shared = document.lock.as_ref().and_then(|lock| lock.shared.as_ref());
    let Some(own) = shared.and_then(|shared| shared.jobs.get(job)?.clone()) else {
        return Ok(FreedLock::Unlocked);
    };
    // A job may run again soon after it was killed, so that it always expires.
    let own = Lock {
        expires: Some(own.lease().as_secs()),
        ..*own
    };
    let presence = &Presence::Unknown;
    free_holder(backend, document, own, None, presence, by, false)
}

/// Frees a lock that a single run holds.
fn free_holder(
    backend: &Backend,
    document: &mut Document,
    lock: Lock,
    age: Option<Duration>,
    presence: &Presence,
    (author, now): (&Author, Timestamp),
    is_dry: bool,
) -> Result<FreedLock, LockError> {
    let Some(found) = salvage::of_lock(backend, document, &lock)? else {
        return Ok(FreedLock::Raced);
    };
    let is_here = lock.host == author.host;
    let is_dead =
        is_here && matches!(presence, Presence::Alone(claim) if claim.proves_end_of(&lock.run));
    let silence = silence(Some(&found), age);
    let is_over = |expires: &Duration| silence.is_some_and(|silence| silence >= *expires);
    let why = if is_dead {
        TakeoverReason::Killed
    } else if is_broken(&found) {
        TakeoverReason::Broken
    } else if let Some(expires) = lock.expires().filter(is_over) {
        TakeoverReason::Expired(expires)
    } else {
        // Only the code of the order unlocks the lock of a job.
        let outer = document.lock.as_ref();
        let code = outer.map_or_else(|| lock.code.clone(), |outer| outer.code.clone());
        let held = held_since(Lock { code, ..lock }, silence, now);
        return Err(LockError::Held(Box::new(LockConflict {
            is_outlived: is_here && is_outlived(presence, held.lock.as_ref()),
            ..held
        })));
    };
    if let Some(damage) = found.damage {
        return Err(LockError::Damaged(Box::new(lock), damage));
    }
    if !is_dry && !fence(backend, document, &lock, &found, author, now)? {
        return Ok(FreedLock::Raced);
    }
    let record = found.record.as_ref();
    settle(document, &lock, record, author, now, why.reason());
    Ok(FreedLock::Over(Box::new(TakenOver { lock, why })))
}

/// Returns whether a run has ended on this machine, while something that it started has not.
fn is_outlived(presence: &Presence, lock: Option<&Lock>) -> bool {
    let (Presence::Another(holder), Some(lock)) = (presence, lock) else {
        return false;
    };
    holder.is(&lock.run) && author::has_ended(lock.process)
}

/// Returns whether processes of this machine hold the lock of a document, if one may. Processes of a killed run get
/// some time to end.
pub(super) fn presence(
    backend: &Backend,
    document: &Document,
    author: &Author,
    clock: &dyn Clock,
) -> Presence {
    let lock = document.lock.as_ref();
    if lock.is_none_or(|lock| lock.host != author.host) {
        return Presence::Unknown;
    }
    let begun = clock.elapsed();
    loop {
        let presence = backend.presence();
        let is_late = clock.elapsed().saturating_sub(begun) >= GRACE;
        if is_late || !is_outlived(&presence, lock) {
            return presence;
        }
        clock.sleep(GRACE / 50);
    }
}

/// Returns the time since the last sign of a holder: it writes its record, and sometimes the document.
fn silence(found: Option<&FoundRecord>, age: Option<Duration>) -> Option<Duration> {
    match found {
        Some(found) if found.version.is_some() => {
            // An unreadable age of the record means an unknown time.
            Some(found.age?.min(age.unwrap_or(Duration::MAX)))
        }
        _ => age,
    }
}

fn is_broken(found: &FoundRecord) -> bool {
    let record = found.record.as_ref();
    record.is_some_and(|record| record.broken.is_some())
}

/// Returns when a holder was heard of whose record was put so long ago.
pub fn heard(age: Option<Duration>, now: Timestamp) -> Option<Timestamp> {
    let age = SignedDuration::try_from(age?).ok()?;
    now.checked_sub(age).ok()
}

fn held_since(lock: Lock, silence: Option<Duration>, now: Timestamp) -> LockConflict {
    LockConflict {
        lock: Some(lock),
        silence,
        heard: heard(silence, now),
        is_outlived: false,
    }
}

/// Returns the error that another run holds the lock of a document of this age. Fails if the time
/// of its last heartbeat is unknown.
pub fn held_by_other(
    backend: &Backend,
    lock: Lock,
    age: Option<Duration>,
    now: Timestamp,
) -> Result<LockError, LockError> {
    let found = salvage::find(backend, &lock.run)?;
    let silence = silence(found.as_ref(), age);
    Ok(LockError::Held(Box::new(held_since(lock, silence, now))))
}

/// Puts a tombstone in place of a run record, after which its run can write nothing. Returns
/// whether no one wrote at the same time. Fails if the store fails.
fn fence(
    backend: &Backend,
    document: &Document,
    lock: &Lock,
    found: &FoundRecord,
    author: &Author,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let Some(version) = found.version.clone() else {
        // A run without a record can write none.
        return Ok(true);
    };
    let new = || RunChanges::new(document, lock.code.clone(), lock.run.clone(), now);
    let record = found.record.clone().unwrap_or_else(new);
    if record.broken.is_some() {
        return Ok(true);
    }
    let tombstone = RunChanges {
        sequence: record.sequence + 1,
        broken: Some(BrokenLock {
            by: author.by.clone(),
            at: now,
        }),
        ..record
    };
    let condition = PutCondition::Unchanged(version);
    let swap = backend.swap_record(&tombstone, &condition)?;
    Ok(matches!(swap, PutOutcome::Done(_)))
}

/// Merges the record of a holder into the document, and frees its lock. The document already has the serial of the
/// write.
fn settle(
    document: &mut Document,
    lock: &Lock,
    record: Option<&RunChanges>,
    author: &Author,
    at: Timestamp,
    reason: Option<String>,
) {
    let stacks = record.map(|record| &record.stacks);
    if let Some(stacks) = stacks {
        document.merge(stacks);
    }
    document.interrupt(&lock.run, at);
    document.release(&lock.code);
    let gone = stacks
        .into_iter()
        .flatten()
        .filter(|(_, entry)| entry.is_none())
        .map(|(key, _)| (key.as_str(), None));
    let left = document
        .stacks
        .iter()
        .map(|(key, entry)| (key.as_str(), Some(entry)));
    let write = Tally::of(&lock.run, left.chain(gone)).written(RunWrite {
        run: &lock.run,
        by: &author.by,
        what: UNLOCK,
        at,
        reason,
    });
    document.remember(write);
}
