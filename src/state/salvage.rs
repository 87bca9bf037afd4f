//! Reads as much as possible of a damaged or missing run record.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::backend::{Backend, BackendReadError};
use super::document::{Document, Entry, Lock, Unreadable};
use super::run_record::RunChanges;
use super::store::Version;

#[derive(Debug)]
pub struct Damage {
    /// Names the record for people.
    pub address: String,
    pub why: Fault,
    /// The stacks with unreadable entries; `None` if the stacks of the record are unknown.
    pub lost: Option<Vec<String>>,
}

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It cannot be read, or not all of it.
    #[error(transparent)]
    Unreadable(Unreadable),
    /// It does not exist, and a run has one as long as it holds the lock.
    #[error("it is missing")]
    Missing,
    /// It was written under another lock, or for another document.
    #[error("it does not belong to the lock")]
    Foreign,
}

/// A run record as it was found.
pub(super) struct FoundRecord {
    pub(super) record: Option<RunChanges>,
    pub(super) damage: Option<Damage>,
    /// The version of the object, if it exists.
    pub(super) version: Option<Version>,
    /// How long ago it was put, by the clock of the store.
    pub(super) age: Option<Duration>,
}

/// Reads the record of a run as far as it can be read, if it exists. Fails if the store cannot be
/// asked, or a later version of `orch` wrote the record.
pub(super) fn find(backend: &Backend, run: &str) -> Result<Option<FoundRecord>, BackendReadError> {
    let (address, object) = backend.record_object(run)?;
    let Some(object) = object else {
        return Ok(None);
    };
    let (version, age) = (Some(object.version), object.age);
    let (record, damage) = match RunChanges::parse(&object.bytes) {
        Ok(record) => (Some(record), None),
        Err(why @ Unreadable::Newer(_)) => return Err(BackendReadError::Newer { address, why }),
        Err(why @ Unreadable::Damaged(_)) => {
            let (record, lost) = readable(&object.bytes);
            let why = Fault::Unreadable(why);
            (record, Some(Damage { address, why, lost }))
        }
    };
    Ok(Some(FoundRecord {
        record,
        damage,
        version,
        age,
    }))
}

/// Reads the record of the run that holds the lock of a document. A record that is missing, or
/// belongs to another lock, is damage: the run may have recorded something that is lost. Returns
/// nothing if the lock has been freed since the document was read. Fails if the store cannot be
/// asked, or a later version of `orch` wrote the record.
pub(super) fn of_lock(
    backend: &Backend,
    document: &Document,
    lock: &Lock,
) -> Result<Option<FoundRecord>, BackendReadError> {
    let found = find(backend, &lock.run)?;
    let is_of_lock =
        |record: &RunChanges| record.code == lock.code && record.lineage == document.lineage;
    let (why, found) = match found {
        Some(found) if found.record.as_ref().is_none_or(is_of_lock) => return Ok(Some(found)),
        Some(found) => (Fault::Foreign, Some(found)),
        None => (Fault::Missing, None),
    };
    // A run frees its lock before it removes its record.
    let current = backend.read()?.map(|read| read.document);
    if current.is_none_or(|current| current.lock_with(&lock.code).is_none()) {
        return Ok(None);
    }
    let address = backend.record_address(&lock.run);
    Ok(Some(FoundRecord {
        record: None,
        damage: Some(Damage {
            address,
            why,
            lost: None,
        }),
        version: found.as_ref().and_then(|found| found.version.clone()),
        age: found.and_then(|found| found.age),
    }))
}

/// Returns a damaged record without the unreadable entries, and the stacks of those, as far as either is known.
fn readable(bytes: &[u8]) -> (Option<RunChanges>, Option<Vec<String>>) {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(bytes) else {
        return (None, None);
    };
    let stacks = match fields.insert("stacks".to_owned(), Value::Object(Map::new())) {
        Some(Value::Object(stacks)) => Some(stacks),
        _ => None,
    };
    // Only the copy on the run's own machine has this field.
    fields.remove("before");
    let mut record: Option<RunChanges> = serde_json::from_value(Value::Object(fields)).ok();
    let Some(stacks) = stacks else {
        return (record, None);
    };
    let mut lost = Vec::new();
    let mut whole: BTreeMap<String, Option<Entry>> = BTreeMap::new();
    for (key, entry) in stacks {
        match serde_json::from_value(entry) {
            Ok(entry) if record.is_some() => _ = whole.insert(key, entry),
            _ => lost.push(key),
        }
    }
    if let Some(record) = &mut record {
        record.stacks = whole;
    }
    (record, Some(lost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record() -> Value {
        json!({
            "format": 1, "lineage": "l", "serial": 3, "code": "c", "run": "r", "sequence": 7,
            "at": "2026-01-02T03:04:05Z",
            "stacks": { "/a": null, "/b": { "name": 1 }, "/c": { "name": "c" } },
        })
    }

    fn read(record: &Value) -> (Option<Vec<String>>, Option<Vec<String>>) {
        let (record, lost) = readable(record.to_string().as_bytes());
        let kept = record.map(|record| record.stacks.into_keys().collect());
        (kept, lost)
    }

    fn keys(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|&key| key.to_owned()).collect()
    }

    #[test]
    fn entries_that_can_be_read_are_kept() {
        assert_eq!(
            read(&record()),
            (Some(keys(&["/a", "/c"])), Some(keys(&["/b"])))
        );
    }

    #[test]
    fn nothing_is_kept_of_a_record_that_does_not_say_whose_it_is() {
        let mut record = record();
        record["code"] = json!(1);
        assert_eq!(read(&record), (None, Some(keys(&["/a", "/b", "/c"]))));
    }

    #[test]
    fn which_stacks_are_lost_may_be_unknown() {
        let mut record = record();
        record["stacks"] = json!([]);
        assert_eq!(read(&record), (Some(keys(&[])), None));
        assert_eq!(read(&json!("x")), (None, None));
        assert!(matches!(readable(b"{\"format\":1,"), (None, None)));
    }
}
