//! Removes a lock by its code.

use super::super::backend::{Backend, BackendReadError};
use super::super::clock::Clock;
use super::super::document::{Document, Lock};
use super::super::salvage::{self, Damage};
use super::super::store::StoreError;
use super::{
    ALIVE, LockConflict, LockDraft, LockError, fence, held_since, is_broken, retry, settle, silence,
};
use crate::author::Author;

/// The default reason if the record of the holder is discarded.
const RECORD_LOST: &str = "the run record was damaged or missing";

/// Why a lock was not taken away.
#[derive(Debug, thiserror::Error)]
pub enum UnlockError {
    /// The document cannot be read or written.
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("the state is not locked")]
    NotLocked,
    #[error("the state is locked with another code")]
    WrongCode(Box<LockConflict>),
    /// The last heartbeat is recent, or its time is unknown.
    #[error("the holder of the lock may still be running")]
    Alive(Box<LockConflict>),
    /// Some of the holder's record cannot be read.
    #[error("the run record `{}` cannot be used: {}", .1.address, .1.why)]
    Damaged(Box<Lock>, Damage),
}

impl From<BackendReadError> for UnlockError {
    fn from(error: BackendReadError) -> Self {
        UnlockError::Lock(error.into())
    }
}

impl From<StoreError> for UnlockError {
    fn from(error: StoreError) -> Self {
        UnlockError::Lock(error.into())
    }
}

#[derive(Debug, Clone)]
pub struct Unlocking {
    pub code: String,
    /// Also from a holder who was heard of just now, or whose run record is damaged or missing.
    pub force: bool,
    /// Why, in the user's words.
    pub reason: Option<String>,
    pub dry_run: bool,
}

pub struct RemovedLock {
    pub lock: Lock,
    /// The document without it.
    pub document: Document,
    /// The unreadable part of the holder's record, which is lost.
    pub damage: Option<Damage>,
}

/// Removes the lock of its holder, which can write nothing from then on. Its record is merged, and
/// its open intents count as interrupted. Fails if the lock has another code, if its holder may be
/// alive, if its record is damaged or missing, or if the document cannot be written.
pub fn unlock(
    backend: &Backend,
    unlocking: &Unlocking,
    author: &Author,
    clock: &dyn Clock,
) -> Result<RemovedLock, UnlockError> {
    let mut damage = None;
    let (lock, document) = retry(backend, || {
        let Some(mut draft) = LockDraft::read(backend)? else {
            return Ok(None);
        };
        let document = &draft.document;
        let lock = document.lock.clone().ok_or(UnlockError::NotLocked)?;
        let now = clock.now();
        let mut holders = Vec::new();
        for holder in lock.holders() {
            let Some(mut found) = salvage::of_lock(backend, document, holder)? else {
                return Ok(None); // the holder has just freed it
            };
            // Other jobs write the document, too.
            let age = draft.age.filter(|_| lock.shared.is_none());
            let silence = silence(Some(&found), age);
            let is_broken = is_broken(&found);
            // Once a tombstone has replaced the record, that is whole.
            if let Some(found) = found.damage.take() {
                damage = Some(found);
            }
            let held = || Box::new(held_since(lock.clone(), silence, now));
            if lock.code != unlocking.code {
                return Err(UnlockError::WrongCode(held()));
            }
            if !unlocking.force
                && let Some(damage) = damage.take()
            {
                return Err(UnlockError::Damaged(Box::new(holder.clone()), damage));
            }
            // Others may take the lock over once it has expired.
            let lease = holder.lease().min(ALIVE);
            let is_silent = silence.is_some_and(|silence| silence >= lease);
            if !unlocking.force && !is_broken && !is_silent {
                return Err(UnlockError::Alive(held()));
            }
            holders.push((holder.clone(), found));
        }
        if lock.code != unlocking.code {
            let held = held_since(lock, draft.age, now);
            return Err(UnlockError::WrongCode(Box::new(held)));
        }
        for (holder, found) in &holders {
            if !unlocking.dry_run && !fence(backend, document, holder, found, author, now)? {
                return Ok(None); // the holder wrote at the same time
            }
        }
        draft.succeed();
        let lost = || damage.as_ref().map(|_| RECORD_LOST.to_owned());
        let reason = unlocking.reason.clone().or_else(lost);
        for (holder, found) in &holders {
            let record = found.record.as_ref();
            settle(
                &mut draft.document,
                holder,
                record,
                author,
                now,
                reason.clone(),
            );
        }
        if lock.shared.is_some() {
            settle(&mut draft.document, &lock, None, author, now, reason);
        }
        if unlocking.dry_run {
            return Ok(Some((lock, draft.document)));
        }
        let written = draft.write(backend)?;
        Ok(written.map(|(document, _)| (lock, document)))
    })?;
    if !unlocking.dry_run {
        for holder in lock.holders() {
            backend.delete_record(&holder.run);
        }
    }
    Ok(RemovedLock {
        lock,
        document,
        damage,
    })
}
