//! The run record, beside the document: the changes of a run that are not merged yet.
//!
//! A write costs as much as the run touched, while the document is as large as the project.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::document::{Document, Entry, FORMAT, Unreadable, parse, to_bytes};
use super::keys;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunChanges {
    pub format: u32,
    pub lineage: String,
    /// The serial of the document that the changes are about.
    pub serial: u64,
    pub code: String,
    pub run: String,
    /// How many times the record has been written.
    pub sequence: u64,
    pub at: Timestamp,
    /// The changed stacks, as whole entries; `None` for removed ones.
    #[serde(deserialize_with = "keys::by_path")]
    pub stacks: BTreeMap<String, Option<Entry>>,
    /// Who has taken the lock away; from then on the run writes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<BrokenLock>,
    /// Only in the copy on the run's own machine: the same stacks as they were before.
    #[serde(
        default,
        deserialize_with = "keys::by_path",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub before: BTreeMap<String, Option<Entry>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Who has taken a lock away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenLock {
    pub by: String,
    pub at: Timestamp,
}

impl RunChanges {
    /// Returns the record of a run that has changed nothing yet.
    pub(super) fn new(document: &Document, code: String, run: String, at: Timestamp) -> Self {
        RunChanges {
            format: FORMAT,
            lineage: document.lineage.clone(),
            serial: document.serial,
            code,
            run,
            sequence: 1,
            at,
            stacks: BTreeMap::new(),
            broken: None,
            before: BTreeMap::new(),
            other: Map::new(),
        }
    }

    /// Reads a record. Fails if it is damaged, or a later version wrote it.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        parse(bytes, |record: &RunChanges| record.format)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self)
    }
}
