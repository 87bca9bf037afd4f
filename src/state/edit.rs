//! Changes of an unlocked document: one write each.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regex::bytes::Regex;
use serde_json::Map;
use uuid::Uuid;

use super::backend::{Backend, BackendReadError, Probe, PutOutcome, ReadDocument};
use super::clock::Clock;
use super::document::{AbandonedSerials, is_abandoned};
use super::document::{Document, FORMAT, Write, WrittenStacks};
use super::lock::{FreedLock, LockDraft, LockError, attempts, free, presence, read, retry};
use super::store::{PutCondition, StoreError};
use super::timeline::{GAP, Succession};
use crate::author::Author;

/// Why a document was not changed: the change itself, or the write.
#[derive(Debug)]
pub enum EditError<E> {
    /// The document cannot be written.
    Lock(LockError),
    Refused(E),
}

impl<E> From<LockError> for EditError<E> {
    fn from(error: LockError) -> Self {
        EditError::Lock(error)
    }
}

impl<E> From<StoreError> for EditError<E> {
    fn from(error: StoreError) -> Self {
        EditError::Lock(error.into())
    }
}

/// A change of the document by a command.
#[derive(Debug, Clone)]
pub struct DocumentEdit<'a> {
    pub author: &'a Author,
    /// The name of the change in the history.
    pub what: &'static str,
    /// Why, in the user's words.
    pub reason: Option<String>,
    pub dry_run: bool,
}

impl DocumentEdit<'_> {
    fn write(&self, at: Timestamp, stacks: WrittenStacks) -> Write {
        Write {
            serial: 0,
            at,
            by: self.author.by.clone(),
            run: None,
            what: self.what.to_owned(),
            reason: self.reason.clone(),
            applied: 0,
            failed: 0,
            destroyed: 0,
            stacks,
            other: Map::new(),
        }
    }

    /// Changes the document and returns the new one. `change` may be called several times, each
    /// time with the current document; it sees the serial of the new document. Fails if the change
    /// is refused, if a run holds the lock, or if the document cannot be written.
    pub fn make<T, E>(
        &self,
        backend: &Backend,
        clock: &dyn Clock,
        change: impl Fn(&mut Document, Timestamp) -> Result<T, E>,
    ) -> Result<(T, Document), EditError<E>> {
        retry(backend, || {
            let now = clock.now();
            let Some(mut draft) = LockDraft::read(backend)? else {
                return Ok(None);
            };
            draft.succeed();
            let (document, age) = (&mut draft.document, draft.age);
            let presence = presence(backend, document, self.author, clock);
            let by = (self.author, now);
            let freed = match free(backend, document, age, &presence, by, self.dry_run)? {
                FreedLock::Unlocked => None,
                FreedLock::Over(taken_over) => Some(taken_over.lock),
                FreedLock::Raced => return Ok(None),
            };
            let before = document.stacks.clone();
            let result = change(document, now).map_err(EditError::Refused)?;
            let stacks = WrittenStacks::of_edit(&before, &document.stacks);
            document.remember(self.write(now, stacks));
            if self.dry_run {
                return Ok(Some((result, draft.document)));
            }
            let Some((document, _)) = draft.write(backend)? else {
                return Ok(None);
            };
            if let Some(lock) = freed {
                for holder in lock.holders() {
                    backend.delete_record(&holder.run);
                }
            }
            Ok(Some((result, document)))
        })
    }
}

/// Changes a document in which no run holds the lock, without a backup and without an entry in its
/// history: the write only adds knowledge about stacks, which did not change. Fails if the change
/// is refused, or if the document cannot be written.
pub fn touch<E>(
    backend: &Backend,
    change: impl Fn(&mut Document) -> Result<(), E>,
) -> Result<(), EditError<E>> {
    retry(backend, || {
        let ReadDocument {
            mut document,
            version,
            ..
        } = read(backend)?;
        if document.lock.is_some() {
            return Ok(Some(()));
        }
        document.serial += 1;
        change(&mut document).map_err(EditError::Refused)?;
        let swap = backend.swap(&document, &PutCondition::Unchanged(version))?;
        Ok(matches!(swap, PutOutcome::Done(_)).then_some(()))
    })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The project, as configured.
    pub project: String,
    /// The namespace, as configured.
    pub namespace: String,
    /// The path of the project in its repository.
    pub root: String,
}

/// Why there is no new document.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The store cannot be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is something already.
    #[error("`{0}` exists")]
    Exists(String),
    #[error(
        "the store of `{0}` does not support conditional writes, so concurrent runs would overwrite each other"
    )]
    Unconditional(String),
}

pub struct NewDocument {
    pub document: Document,
    /// Whether the store numbers versions of an object.
    pub is_numbered: bool,
    /// The newest backup of a document that was there before.
    pub backup: Option<u64>,
}

/// Creates the document. Its serial is greater than that of any earlier document at this address.
/// Fails if there is one, if the store cannot be asked, or if it cannot keep writers from
/// overwriting each other.
pub fn init(
    backend: &Backend,
    binding: &Binding,
    edit: &DocumentEdit<'_>,
    clock: &dyn Clock,
) -> Result<NewDocument, InitError> {
    let now = clock.now();
    let lineage = Uuid::new_v4().to_string();
    let Binding {
        project,
        namespace,
        root,
    } = binding.clone();
    let mut document = Document {
        format: FORMAT,
        project,
        namespace,
        root,
        lineage,
        serial: 1,
        lock: None,
        stacks: BTreeMap::new(),
        history: Vec::new(),
        abandoned: Vec::new(),
        keys_as_read: BTreeMap::new(),
        other: Map::new(),
    };
    if backend.exists()? {
        return Err(InitError::Exists(backend.address()));
    }
    let backups = backend.backups()?;
    if let (Some(&from), Some(&to)) = (backups.first(), backups.last()) {
        document.serial += to + GAP;
        let to = to + GAP;
        document.abandoned.push(AbandonedSerials { from, to });
    }
    let backup = backups.last().copied();
    document.remember(edit.write(now, WrittenStacks::default()));
    if edit.dry_run {
        return Ok(NewDocument {
            document,
            is_numbered: true,
            backup,
        });
    }
    let is_numbered = match backend.probe(&document.lineage)? {
        Probe::Ignored => return Err(InitError::Unconditional(backend.address())),
        Probe::Kept { number } => number,
    };
    let written = attempts(|| match backend.swap(&document, &PutCondition::Absent)? {
        PutOutcome::Done(_) => Ok(Some(())),
        PutOutcome::Refused(Some(_)) => Err(InitError::Exists(backend.address())),
        PutOutcome::Refused(None) => Ok(None),
    })?;
    written.ok_or_else(|| backend.refused_document())?;
    Ok(NewDocument {
        document,
        is_numbered,
        backup,
    })
}

/// Returns the highest serial in the text of a document that is damaged.
fn highest_serial(text: &[u8]) -> u64 {
    let serials = Regex::new(r#""serial"\s*:\s*([0-9]{1,15})\b"#).expect("the pattern is right");
    let serials = serials.captures_iter(text).filter_map(|found| {
        let digits = std::str::from_utf8(found.get(1)?.as_bytes()).ok()?;
        digits.parse().ok()
    });
    serials.max().unwrap_or_default()
}

/// Why a backup was not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The document cannot be written.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// There is no such backup; these are there.
    #[error("no backup {0}")]
    Unknown(u64, Vec<u64>),
    /// It is not part of the past of the document.
    #[error(
        "backup {0} belongs to an abandoned timeline, and is not an earlier version of the document"
    )]
    Abandoned(u64),
}

impl From<StoreError> for RestoreError {
    fn from(error: StoreError) -> Self {
        RestoreError::Lock(error.into())
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Restoration {
    pub serial: u64,
    /// Whether it may belong to an abandoned timeline.
    pub may_be_abandoned: bool,
}

/// Replaces the document, even a damaged or missing one, by a backup, with a new serial greater
/// than all earlier ones. Returns the new document. Fails if there is no such backup, or it belongs
/// to an abandoned timeline; if a run holds the lock, or if the document cannot be written.
pub fn restore(
    backend: &Backend,
    restoration: Restoration,
    edit: &DocumentEdit<'_>,
    clock: &dyn Clock,
) -> Result<Document, RestoreError> {
    let serial = restoration.serial;
    retry(backend, || {
        let now = clock.now();
        let serials = backend.backups()?;
        let backup = backend.backup(serial).map_err(LockError::from)?;
        let Some(mut document) = backup else {
            return Err(RestoreError::Unknown(serial, serials));
        };
        let newest = serials.last().copied().unwrap_or(serial);
        let lost = |last: u64| -> Result<Succession, StoreError> {
            let mut abandoned = backend.abandoned_by_newest(&serials)?;
            let (from, to) = (newest + 1, last.max(newest) + GAP);
            abandoned.push(AbandonedSerials { from, to });
            Ok(Succession {
                serial: to + 1,
                backup: to + 1,
                abandoned,
                backups: serials.clone(),
            })
        };
        let (condition, succession, current) = match backend.object()? {
            None => (PutCondition::Absent, lost(0)?, None),
            Some(object) => {
                let condition = PutCondition::Unchanged(object.version.clone());
                let written = highest_serial(&object.bytes);
                match backend.understood(object) {
                    Ok(read) => {
                        let Some(succession) = backend.succession(&read)? else {
                            return Ok(None);
                        };
                        let mut current = read.document.clone();
                        let presence = presence(backend, &current, edit.author, clock);
                        let by = (edit.author, now);
                        let freed =
                            free(backend, &mut current, read.age, &presence, by, edit.dry_run)?;
                        if let FreedLock::Raced = freed {
                            return Ok(None);
                        }
                        (condition, succession, Some(read))
                    }
                    Err(BackendReadError::Damaged { .. }) => (condition, lost(written)?, None),
                    Err(other) => return Err(LockError::from(other).into()),
                }
            }
        };
        if is_abandoned(&succession.abandoned, serial) && !restoration.may_be_abandoned {
            return Err(RestoreError::Abandoned(serial));
        }
        document.succeed(&succession);
        document.lock = None;
        let mut stacks = WrittenStacks::default();
        if let Some(read) = &current {
            // Later writes happened nevertheless.
            document.history.clone_from(&read.document.history);
            stacks = WrittenStacks::of_edit(&read.document.stacks, &document.stacks);
        }
        document.remember(edit.write(now, stacks));
        if edit.dry_run {
            return Ok(Some(document));
        }
        if let Some(read) = &current {
            backend.back_up(&succession, &read.bytes)?;
        }
        let PutOutcome::Done(_) = backend.swap(&document, &condition)? else {
            return Ok(None);
        };
        if current.is_none() {
            // If this document is lost too, its backup has the serial.
            let own = Succession {
                backup: document.serial,
                ..succession
            };
            _ = backend.back_up(&own, &document.to_bytes());
        }
        Ok(Some(document))
    })
}
