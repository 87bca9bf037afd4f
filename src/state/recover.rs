//! Recovers the results that a run stored on its own machine but could not write to the backend.

use std::collections::BTreeMap;

use super::backend::Backend;
use super::clock::Clock;
use super::document::{Document, Entry};
use super::lock::{LockDraft, LockError, held_by_other, retry};
use super::run_record::RunChanges;
use super::salvage;
use super::store::StoreError;
use super::written::{RunWrite, Tally};
use crate::author::Author;

const RECOVER: &str = "recover";

#[derive(Debug, Clone, Default)]
pub struct Recovery {
    /// Stacks for which the record of the run wins over later writes.
    pub take: Vec<String>,
    /// Stacks for which the record of the run is discarded.
    pub drop: Vec<String>,
    /// Why, in the user's words.
    pub reason: Option<String>,
    pub dry_run: bool,
}

/// Why a run was not recovered.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The document cannot be read or written.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The record is about another document.
    #[error("the run recorded changes of another state")]
    Foreign,
    /// The run has recorded nothing about these stacks.
    #[error("the run recorded nothing about some stacks")]
    Unknown(Vec<String>),
    /// Others have written about these stacks since.
    #[error("other runs recorded some of these stacks since")]
    Conflicts(Vec<String>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct RecoveredRecords {
    /// The stacks whose records were merged into the document.
    pub merged: Vec<String>,
    pub document: Document,
}

impl From<StoreError> for RecoverError {
    fn from(error: StoreError) -> Self {
        RecoverError::Lock(error.into())
    }
}

/// Merges the record of a run that is not in progress, except for stacks that others have recorded
/// since. A lock that the run still holds is freed, and its open intents count as interrupted.
/// Fails if others have recorded a stack that is in neither `take` nor `drop`, if another run holds
/// the lock, or if the document cannot be written. Nothing is written then.
pub fn recover(
    backend: &Backend,
    record: &RunChanges,
    recovery: &Recovery,
    author: &Author,
    clock: &dyn Clock,
) -> Result<RecoveredRecords, RecoverError> {
    let named = recovery.take.iter().chain(&recovery.drop);
    let unknown: Vec<String> = named
        .filter(|key| !record.stacks.contains_key(*key))
        .cloned()
        .collect();
    if !unknown.is_empty() {
        return Err(RecoverError::Unknown(unknown));
    }
    retry(backend, || {
        let Some(mut draft) = LockDraft::read(backend)? else {
            return Ok(None);
        };
        let read = draft.document.clone();
        let document = &mut draft.document;
        if document.lineage != record.lineage {
            return Err(RecoverError::Foreign);
        }
        let was_locked = document.lock_with(&record.code).is_some();
        if let Some(lock) = document.lock.as_ref().filter(|_| !was_locked) {
            return Err(held_by_other(backend, lock.clone(), draft.age, clock.now())?.into());
        }
        draft.succeed();
        let document = &mut draft.document;
        if was_locked
            && let Some(found) = salvage::find(backend, &record.run).map_err(LockError::from)?
            && let Some(beside) = found.record
        {
            // The record on this machine has the parts that are damaged there.
            document.merge(&beside.stacks);
        }
        let mut missing = BTreeMap::new();
        let mut conflicts = Vec::new();
        for (key, entry) in &record.stacks {
            // A later withdrawn intent may be in the record beside the document.
            let found = document.stacks.get(key);
            let before = record.before.get(key).and_then(Option::as_ref);
            let is_own = found.is_some_and(|found| {
                found.is_of(&record.run) && is_as_left(found, before, entry.as_ref())
            });
            // A stack with a withdrawn intent has nothing to recover.
            let is_unchanged = entry.as_ref() == before && !is_own;
            if recovery.drop.contains(key)
                || is_unchanged
                || is_same(found, entry.as_ref())
                || is_interrupted(found, entry.as_ref(), &record.run)
            {
                continue;
            }
            let is_free = found == before || is_own;
            if is_free || recovery.take.contains(key) {
                missing.insert(key.clone(), entry.clone());
            } else {
                conflicts.push(key.clone());
            }
        }
        if !conflicts.is_empty() {
            return Err(RecoverError::Conflicts(conflicts));
        }
        if missing.is_empty() && !was_locked {
            return Ok(Some(RecoveredRecords {
                merged: Vec::new(),
                document: read,
            }));
        }
        document.merge(&missing);
        document.interrupt(&record.run, clock.now());
        document.release(&record.code);
        let is_merged = |key: &&String| document.stacks.get(*key) != read.stacks.get(*key);
        let merged: Vec<String> = record.stacks.keys().filter(is_merged).cloned().collect();
        let entry = |key: &'_ String| document.stacks.get(key);
        let tally = Tally::of(
            &record.run,
            merged.iter().map(|key| (key.as_str(), entry(key))),
        );
        let write = tally.written(RunWrite {
            run: &record.run,
            by: &author.by,
            what: RECOVER,
            at: clock.now(),
            reason: recovery.reason.clone(),
        });
        document.remember(write);
        if recovery.dry_run {
            let document = draft.document;
            return Ok(Some(RecoveredRecords { merged, document }));
        }
        let Some((document, _)) = draft.write(backend)? else {
            return Ok(None);
        };
        backend.delete_record(&record.run);
        Ok(Some(RecoveredRecords { merged, document }))
    })
}

/// Returns whether an entry is unchanged since a run, or whoever took its lock, wrote it: each part is from before
/// the run or from its record, except for what attempts leave.
fn is_as_left(found: &Entry, before: Option<&Entry>, recorded: Option<&Entry>) -> bool {
    if before.is_none() && (recorded.is_none() || found.applied.is_none()) {
        // The run was to destroy the stack, and its former path is unknown; or to create it, and the intent lacks
        // fields of the record.
        return found.tainted.is_none();
    }
    let intended = recorded.map(|recorded| Entry {
        applied: before.and_then(|before| before.applied.clone()),
        ..recorded.clone()
    });
    let mut as_left = [before, recorded, intended.as_ref()].into_iter().flatten();
    as_left.any(|entry| {
        let mut entry = Entry {
            last: found.last.clone(),
            intent: found.intent.clone(),
            attempted: found.attempted,
            outputs: match found.known_outputs() {
                Some(_) => entry.outputs.clone(),
                None => found.outputs.clone(),
            },
            ..entry.clone()
        };
        entry.number_like(found);
        entry == *found
    })
}

/// Returns whether the record of a run is in the document already, except that its intent was ended by others.
fn is_interrupted(found: Option<&Entry>, recorded: Option<&Entry>, run: &str) -> bool {
    let (Some(found), Some(recorded)) = (found, recorded) else {
        return false;
    };
    let ended = Entry {
        intent: None,
        last: found.last.clone(),
        ..recorded.clone()
    };
    recorded.intent.is_some() && found.is_of(run) && is_same(Some(found), Some(&ended))
}

/// Returns whether the record of a run is in the document already. Serials are set when merging.
fn is_same(found: Option<&Entry>, recorded: Option<&Entry>) -> bool {
    match (found, recorded) {
        (Some(found), Some(recorded)) => {
            let mut recorded = recorded.clone();
            recorded.number_like(found);
            *found == recorded
        }
        (found, recorded) => found.is_none() && recorded.is_none(),
    }
}
