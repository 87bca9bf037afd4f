//! Replaces the document, with retries if another writer was faster.

use std::time::Duration;

use super::super::backend::{Backend, PutOutcome, ReadDocument};
use super::super::document::Document;
use super::super::store::{PutCondition, StoreError, Version};
use super::super::timeline::Succession;
use super::{LockError, read};

/// How often to retry a write after another writer was faster.
const ATTEMPTS: usize = 50;

/// Attempts a write until it is done; an attempt that returns nothing was forestalled. Returns
/// nothing if all were. Fails if an attempt fails.
pub(in crate::state) fn attempts<T, E>(
    mut attempt: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    for _ in 0..ATTEMPTS {
        let done = attempt()?;
        if done.is_some() {
            return Ok(done);
        }
    }
    Ok(None)
}

/// Does the same, and fails if all attempts were too late. Fails if an attempt fails, or another
/// writer was faster each time.
pub(in crate::state) fn retry<T, E: From<LockError>>(
    backend: &Backend,
    attempt: impl FnMut() -> Result<Option<T>, E>,
) -> Result<T, E> {
    let busy = || LockError::Busy(backend.address()).into();
    attempts(attempt)?.ok_or_else(busy)
}

/// A document that was read, to become the next one.
pub(in crate::state) struct LockDraft {
    pub(in crate::state) document: Document,
    pub(in crate::state) version: Version,
    /// How long ago it was put.
    pub(in crate::state) age: Option<Duration>,
    bytes: Vec<u8>,
    succession: Succession,
}

impl LockDraft {
    /// Reads the document, which must exist. Returns `None` if it was replaced meanwhile.
    pub(in crate::state) fn read(backend: &Backend) -> Result<Option<Self>, LockError> {
        let read = read(backend)?;
        let Some(succession) = backend.succession(&read)? else {
            return Ok(None);
        };
        let ReadDocument {
            document,
            bytes,
            version,
            age,
        } = read;
        Ok(Some(LockDraft {
            document,
            version,
            age,
            bytes,
            succession,
        }))
    }

    /// Gives the document the serial that it will have once it is written.
    pub(in crate::state) fn succeed(&mut self) {
        self.document.succeed(&self.succession);
    }

    /// Makes a backup of the document, and replaces it. Returns the new document and its version, unless another
    /// writer was faster.
    pub(in crate::state) fn write(
        self,
        backend: &Backend,
    ) -> Result<Option<(Document, Version)>, StoreError> {
        backend.back_up(&self.succession, &self.bytes)?;
        self.write_without_backup(backend)
    }

    /// Does the same without a backup: the stacks have not changed.
    pub(in crate::state) fn write_without_backup(
        self,
        backend: &Backend,
    ) -> Result<Option<(Document, Version)>, StoreError> {
        let condition = PutCondition::Unchanged(self.version);
        Ok(match backend.swap(&self.document, &condition)? {
            PutOutcome::Done(version) => Some((self.document, version)),
            PutOutcome::Refused(_) => None,
        })
    }
}
