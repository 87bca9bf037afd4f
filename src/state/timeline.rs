//! Decides which backups belong to the history of a document.
//!
//! A user may restore an earlier document, for instance from the versions of a bucket. Later writes then form an
//! abandoned timeline. The next write detects that, because backups have the serial of the document or higher ones.
//! It gives the backup and the next document serials above all of them, and the document remembers the abandoned
//! serials. So the newest backups are always those of the document, and no backup of another timeline counts as an
//! earlier version of it.

use super::backend::{Backend, BackendReadError, ReadDocument};
use super::document::Document;
use super::document::{AbandonedSerials, is_abandoned};
use super::store::{PutCondition, PutError, StoreError};

/// How many serials to skip if the last used one is unknown: more than one run gives the document after its backup.
pub(super) const GAP: u64 = 1000;

/// How often a document is looked at that changes meanwhile.
const ATTEMPTS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    pub serial: u64,
    /// Whether it belongs to an abandoned timeline, and not to the past of the document.
    pub is_abandoned: bool,
}

/// The serials for the next write of a document.
pub(super) struct Succession {
    /// The serial of the next document.
    pub(super) serial: u64,
    /// The serial of the backup of the document.
    pub(super) backup: u64,
    pub(super) abandoned: Vec<AbandonedSerials>,
    pub(super) backups: Vec<u64>,
}

impl Document {
    /// Turns a document into the next one, which is about to be changed and written.
    pub(super) fn succeed(&mut self, succession: &Succession) {
        self.serial = succession.serial;
        self.abandoned.clone_from(&succession.abandoned);
    }
}

impl Backend {
    /// Returns the serials for the next write of a document; `None` if it was replaced meanwhile.
    pub(super) fn succession(&self, read: &ReadDocument) -> Result<Option<Succession>, StoreError> {
        let serial = read.document.serial;
        let mut succession = Succession {
            serial: serial + 1,
            backup: serial,
            abandoned: read.document.abandoned.clone(),
            backups: Vec::new(),
        };
        if self.keeps_no_backups() {
            return Ok(Some(succession));
        }
        succession.backups = self.backups()?;
        let newest = succession.backups.last().copied();
        let Some(newest) = newest.filter(|newest| *newest >= serial) else {
            return Ok(Some(succession));
        };
        let copy = self.backup_object(serial)?;
        if newest == serial && copy.is_some_and(|copy| copy.bytes == read.bytes) {
            return Ok(Some(succession));
        }
        // A faster writer has backed up this document and later ones.
        let now = self.object()?;
        if now.is_none_or(|now| now.version != read.version) {
            return Ok(None);
        }
        succession.backup = newest + GAP;
        succession.serial = succession.backup + 1;
        let abandoned = AbandonedSerials::between(serial, succession.backup);
        succession.abandoned.push(abandoned);
        Ok(Some(succession))
    }

    /// Copies the document before it is replaced, and removes the oldest copies, of its own timeline and of the
    /// abandoned ones.
    pub(super) fn back_up(&self, succession: &Succession, bytes: &[u8]) -> Result<(), StoreError> {
        if self.keeps_no_backups() {
            return Ok(());
        }
        match self.put_backup(succession.backup, bytes, &PutCondition::Absent) {
            // An earlier copy has the same content.
            Ok(_) | Err(PutError::Refused) => {}
            Err(PutError::Unknown(error)) => return Err(error),
        }
        let mut backups = succession.backups.clone();
        if !backups.contains(&succession.backup) {
            backups.push(succession.backup);
        }
        let is_abandoned = |backup: &u64| is_abandoned(&succession.abandoned, *backup);
        let (abandoned, own): (Vec<u64>, Vec<u64>) = backups.into_iter().partition(is_abandoned);
        self.remove_oldest(&own);
        self.remove_oldest(&abandoned);
        Ok(())
    }

    /// Returns the backups with their timelines, oldest first. If the document cannot be read, the newest backup
    /// decides.
    pub fn backups_by_timeline(&self) -> Result<Vec<Backup>, StoreError> {
        let mut found = None;
        for _ in 0..ATTEMPTS {
            match self.read() {
                Ok(Some(read)) => {
                    found = self.succession(&read)?;
                    if found.is_some() {
                        break;
                    }
                }
                Ok(None)
                | Err(BackendReadError::Damaged { .. } | BackendReadError::Newer { .. }) => break,
                Err(BackendReadError::Store(error)) => return Err(error),
            }
        }
        let serials = self.backups()?;
        let abandoned = match found {
            Some(succession) => succession.abandoned,
            None => self.abandoned_by_newest(&serials)?,
        };
        let backup = |serial: u64| Backup {
            serial,
            is_abandoned: is_abandoned(&abandoned, serial),
        };
        Ok(serials.into_iter().map(backup).collect())
    }

    /// Returns the abandoned timelines of the newest readable backup, which always belongs to the document.
    pub(super) fn abandoned_by_newest(
        &self,
        serials: &[u64],
    ) -> Result<Vec<AbandonedSerials>, StoreError> {
        for &serial in serials.iter().rev() {
            let document = match self.backup(serial) {
                Ok(Some(document)) => document,
                Ok(None)
                | Err(BackendReadError::Damaged { .. } | BackendReadError::Newer { .. }) => {
                    continue;
                }
                Err(BackendReadError::Store(error)) => return Err(error),
            };
            let mut abandoned = document.abandoned;
            if document.serial < serial {
                // It was put back.
                abandoned.push(AbandonedSerials::between(document.serial, serial));
            }
            return Ok(abandoned);
        }
        Ok(Vec::new())
    }
}
