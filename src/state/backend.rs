//! The document in its store, with all that lies beside it.
//!
//! ```text
//! acme-infra/prod.json               the document
//! acme-infra/prod.run-01a2….json     what a run has changed
//! acme-infra/prod.backups/412.json   an earlier document
//! acme-infra/prod.queue/….json       a run that waits for the lock
//! acme-infra/prod.orders/01a2….json  the run of a work order
//! acme-infra/prod.results/01a2…/     the results of its turns
//! ```

use std::time::Duration;

use jiff::Timestamp;

use super::document::{Document, MAX_SERIAL, Unreadable};
use super::holder::{HolderFile, Presence};
use super::run_record::RunChanges;
use super::store::{
    PutCondition, PutError, Store, StoreError, StoreFailure, StoredObject, Version,
};

/// The objects of one document.
pub struct Backend {
    store: Box<dyn Store>,
    /// The key of the document, without `.json`.
    base: String,
    backups: usize,
    /// The file that the holder of the lock keeps locked on its machine.
    holder: Option<HolderFile>,
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A store may hold credentials.
        let mut shown = f.debug_struct("Backend");
        shown.field("base", &self.base).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
pub struct ReadDocument {
    pub document: Document,
    pub bytes: Vec<u8>,
    pub version: Version,
    /// How long ago it was put, by the clock of the store.
    pub age: Option<Duration>,
}

/// Why something in the backend cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BackendReadError {
    /// The store cannot be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A later version of `orch` wrote it.
    #[error("`{address}` cannot be used: {why}")]
    Newer { address: String, why: Unreadable },
    #[error("`{address}` cannot be used: {why}")]
    Damaged {
        address: String,
        why: Unreadable,
        /// The address of the newest backup, if there is one.
        backup: Option<String>,
    },
}

pub(super) enum PutOutcome {
    Done(Version),
    /// It is something else.
    Refused(Option<StoredObject>),
}

impl Backend {
    /// Returns the backend of the document with the key `base`, without `.json`.
    pub fn new(store: Box<dyn Store>, base: String, backups: usize) -> Self {
        Backend {
            store,
            base,
            backups,
            holder: None,
        }
    }

    /// Sets the file that the holder of the lock keeps locked on its machine.
    #[must_use]
    pub(super) fn with_holder(self, holder: HolderFile) -> Self {
        Backend {
            holder: Some(holder),
            ..self
        }
    }

    /// Returns the name of the document for people.
    pub fn address(&self) -> String {
        self.store.address(&self.key())
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(super) fn beside(&self, name: &str) -> String {
        format!("{}.{name}", self.base)
    }

    fn key(&self) -> String {
        format!("{}.json", self.base)
    }

    fn record_key(&self, run: &str) -> String {
        format!("{}.run-{run}.json", self.base)
    }

    fn backup_key(&self, serial: u64) -> String {
        format!("{}.backups/{serial}.json", self.base)
    }

    /// Reads the document, if it exists. Fails if the store cannot be asked, or the document cannot
    /// be used.
    pub fn read(&self) -> Result<Option<ReadDocument>, BackendReadError> {
        let Some(object) = self.store.get(&self.key())? else {
            return Ok(None);
        };
        self.understood(object).map(Some)
    }

    /// Returns whether there is anything where the document belongs.
    pub(super) fn exists(&self) -> Result<bool, StoreError> {
        Ok(self.object()?.is_some())
    }

    /// Returns the object at the address of the document, readable or not.
    pub(super) fn object(&self) -> Result<Option<StoredObject>, StoreError> {
        self.store.get(&self.key())
    }

    pub(super) fn understood(
        &self,
        object: StoredObject,
    ) -> Result<ReadDocument, BackendReadError> {
        let StoredObject {
            bytes,
            version,
            age,
        } = object;
        let document = Document::parse(&bytes).map_err(|why| {
            self.unusable(&self.key(), why, || {
                // Without a list of backups, the damage is still the error to report.
                let serial = *self.backups().ok()?.last()?;
                Some(self.store.address(&self.backup_key(serial)))
            })
        })?;
        Ok(ReadDocument {
            document,
            bytes,
            version,
            age,
        })
    }

    fn unusable(
        &self,
        key: &str,
        why: Unreadable,
        backup: impl FnOnce() -> Option<String>,
    ) -> BackendReadError {
        let address = self.store.address(key);
        match why {
            Unreadable::Newer(_) => BackendReadError::Newer { address, why },
            Unreadable::Damaged(_) => BackendReadError::Damaged {
                address,
                why,
                backup: backup(),
            },
        }
    }

    /// Reads the record of a run, if it exists, and how long ago it was put by the clock of the
    /// store. Fails if the store cannot be asked, or the record cannot be used.
    pub fn record(
        &self,
        run: &str,
    ) -> Result<Option<(RunChanges, Option<Duration>)>, BackendReadError> {
        let key = self.record_key(run);
        let Some(object) = self.store.get(&key)? else {
            return Ok(None);
        };
        let record = RunChanges::parse(&object.bytes);
        let record = record.map_err(|why| self.unusable(&key, why, || None))?;
        Ok(Some((record, object.age)))
    }

    pub(super) fn record_address(&self, run: &str) -> String {
        self.store.address(&self.record_key(run))
    }

    /// Returns the name of a run record for people, and its object, readable or not.
    pub(super) fn record_object(
        &self,
        run: &str,
    ) -> Result<(String, Option<StoredObject>), StoreError> {
        let key = self.record_key(run);
        let object = self.store.get(&key)?;
        Ok((self.store.address(&key), object))
    }

    /// Returns the serials of the backups, oldest first.
    pub fn backups(&self) -> Result<Vec<u64>, StoreError> {
        let prefix = format!("{}.backups/", self.base);
        let keys = self.store.list(&prefix)?;
        let serial = |key: &String| {
            let name = key.strip_prefix(&prefix)?.strip_suffix(".json")?;
            let serial: u64 = name.parse().ok()?;
            (serial <= MAX_SERIAL).then_some(serial)
        };
        let mut serials: Vec<u64> = keys.iter().filter_map(serial).collect();
        serials.sort_unstable();
        Ok(serials)
    }

    /// Reads a backup, if it exists. Fails if the store cannot be asked, or the backup cannot be
    /// used.
    pub fn backup(&self, serial: u64) -> Result<Option<Document>, BackendReadError> {
        let key = self.backup_key(serial);
        let Some(object) = self.store.get(&key)? else {
            return Ok(None);
        };
        let document = Document::parse(&object.bytes);
        let document = document.map_err(|why| self.unusable(&key, why, || None))?;
        Ok(Some(document))
    }

    pub(super) fn keeps_no_backups(&self) -> bool {
        self.backups == 0
    }

    pub(super) fn backup_object(&self, serial: u64) -> Result<Option<StoredObject>, StoreError> {
        self.store.get(&self.backup_key(serial))
    }

    /// Puts a backup if the condition holds.
    pub(super) fn put_backup(
        &self,
        serial: u64,
        bytes: &[u8],
        condition: &PutCondition,
    ) -> Result<Version, PutError> {
        self.store.put(&self.backup_key(serial), bytes, condition)
    }

    /// Removes the oldest of these backups beyond the limit.
    pub(super) fn remove_oldest(&self, serials: &[u64]) {
        let excess = serials.len().saturating_sub(self.backups);
        for serial in &serials[..excess] {
            // Some buckets forbid removal.
            _ = self.store.delete(&self.backup_key(*serial));
        }
    }

    /// Puts the document if the condition holds.
    pub(super) fn swap(
        &self,
        document: &Document,
        condition: &PutCondition,
    ) -> Result<PutOutcome, StoreError> {
        self.swap_bytes(&self.key(), &document.to_bytes(), condition)
    }

    /// Puts a run record if the condition holds.
    pub(super) fn swap_record(
        &self,
        record: &RunChanges,
        condition: &PutCondition,
    ) -> Result<PutOutcome, StoreError> {
        let key = self.record_key(&record.run);
        self.swap_bytes(&key, &record.to_bytes(), condition)
    }

    /// Puts an object if the condition holds. If the answer was lost, or a refusal may be that of a repeated request,
    /// reading decides: no two writes have the same bytes.
    pub(super) fn swap_bytes(
        &self,
        key: &str,
        bytes: &[u8],
        condition: &PutCondition,
    ) -> Result<PutOutcome, StoreError> {
        let lost = match self.store.put(key, bytes, condition) {
            Ok(version) => return Ok(PutOutcome::Done(version)),
            Err(PutError::Refused) => None,
            Err(PutError::Unknown(error)) => Some(error),
        };
        let found = self.store.get(key)?;
        if let Some(object) = &found
            && object.bytes == bytes
        {
            return Ok(PutOutcome::Done(object.version.clone()));
        }
        let is_untouched = match condition {
            PutCondition::Absent => found.is_none(),
            PutCondition::Unchanged(version) => found
                .as_ref()
                .is_some_and(|found| found.version == *version),
        };
        match lost {
            // It may still arrive: a retry recognises it by its bytes.
            Some(error) if is_untouched => Err(error),
            _ => Ok(PutOutcome::Refused(found)),
        }
    }

    /// Removes the record of a run, which was merged into the document. If that fails, the next holder of the lock
    /// removes it.
    pub(super) fn delete_record(&self, run: &str) {
        _ = self.store.delete(&self.record_key(run));
    }

    /// Removes the records of all other runs. Only the holder of a lock that it does not share may do so.
    pub(super) fn delete_other_records(&self, run: &str) {
        let own = self.record_key(run);
        let prefix = format!("{}.run-", self.base);
        for key in self.store.list(&prefix).unwrap_or_default() {
            if key != own {
                _ = self.store.delete(&key);
            }
        }
    }

    /// Returns the version of the document, if it exists.
    pub(super) fn version(&self) -> Result<Option<Version>, StoreError> {
        self.store.version(&self.key())
    }

    /// Returns the time by the clock of the store, if it reports one.
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.store.time()
    }

    /// Returns whether processes of this machine hold the lock.
    pub(super) fn presence(&self) -> Presence {
        let holder = self.holder.as_ref();
        holder.map_or(Presence::Unknown, HolderFile::presence)
    }

    fn queue(&self) -> String {
        format!("{}.queue/", self.base)
    }

    fn ticket_key(&self, ticket: &str) -> String {
        format!("{}{ticket}.json", self.queue())
    }

    /// Returns the tickets of the waiting runs in order; none if they are unknown.
    pub(super) fn tickets(&self) -> Vec<String> {
        let queue = self.queue();
        let keys = self.store.list(&queue).unwrap_or_default();
        let ticket = |key: &String| {
            let name = key.strip_prefix(&queue)?;
            name.strip_suffix(".json").map(str::to_owned)
        };
        keys.iter().filter_map(ticket).collect()
    }

    /// Puts a ticket. Without it, the run only waits longer.
    pub(super) fn put_ticket(&self, ticket: &str) {
        _ = self
            .store
            .put(&self.ticket_key(ticket), b"{}", &PutCondition::Absent);
    }

    /// Removes a ticket. A leftover one only delays others.
    pub(super) fn delete_ticket(&self, ticket: &str) {
        _ = self.store.delete(&self.ticket_key(ticket));
    }

    /// Returns the error that the store refuses to put the document although there is none.
    pub(super) fn refused_document(&self) -> StoreError {
        self.refused(&self.key())
    }

    /// Returns the error that the store refuses a write whose condition holds.
    fn refused(&self, key: &str) -> StoreError {
        StoreError {
            doing: "write",
            address: self.store.address(key),
            problem: "the store refuses the write, although no one else has written".to_owned(),
            failure: StoreFailure::Transient,
        }
    }

    /// Checks that the store refuses a second creation, and a put over a replaced version. Returns whether the store
    /// is known to keep no earlier versions.
    pub(super) fn probe(&self, nonce: &str) -> Result<Probe, StoreError> {
        let key = format!("{}.probe-{nonce}.json", self.base);
        let probe = || {
            // The bytes identify the write.
            let put = |text: &str, condition: &PutCondition| {
                let text = format!("{nonce} {text}");
                self.swap_bytes(&key, text.as_bytes(), condition)
            };
            let first = match put("1", &PutCondition::Absent)? {
                PutOutcome::Done(version) => version,
                PutOutcome::Refused(Some(_)) => return Ok(Probe::Ignored),
                PutOutcome::Refused(None) => return Err(self.refused(&key)),
            };
            if let PutOutcome::Done(_) = put("2", &PutCondition::Absent)? {
                return Ok(Probe::Ignored);
            }
            let old = PutCondition::Unchanged(first.clone());
            match put("3", &old)? {
                PutOutcome::Done(_) => {}
                PutOutcome::Refused(Some(found)) if found.version != first => {
                    return Ok(Probe::Ignored);
                }
                PutOutcome::Refused(_) => return Err(self.refused(&key)),
            }
            if let PutOutcome::Done(_) = put("4", &old)? {
                return Ok(Probe::Ignored);
            }
            Ok(Probe::Kept {
                number: first.number.is_some(),
            })
        };
        let result = probe();
        _ = self.store.delete(&key);
        result
    }
}

/// How a store treats conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    /// It puts objects whose condition does not hold.
    Ignored,
    Kept {
        /// Whether its versions have numbers.
        number: bool,
    },
}
