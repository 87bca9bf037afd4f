//! Stores of objects: a folder, or a bucket.
//!
//! A store replaces an object only if it is the version that the caller last saw, or absent, so no write is lost. It
//! doesn't know the content.

mod local;
#[cfg(feature = "remote-state")]
mod remote;
#[cfg(not(feature = "remote-state"))]
mod without_remote;

use std::time::Duration;

use jiff::Timestamp;

pub(super) use self::local::FolderLocation;
pub use self::local::LocalStore;
#[cfg(feature = "remote-state")]
pub(super) use self::remote::{azure, gcs, s3};
#[cfg(not(feature = "remote-state"))]
pub(super) use self::without_remote::{azure, gcs, s3};

/// Objects by key: `acme-infra/prod.json`.
pub trait Store: Send {
    /// Returns an object, if it exists.
    fn get(&self, key: &str) -> Result<Option<StoredObject>, StoreError>;

    /// Returns the contents of objects, each if it exists. A store may read several at once.
    fn get_all(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let get = |key: &String| Ok(self.get(key)?.map(|object| object.bytes));
        keys.iter().map(get).collect()
    }

    /// Returns the version of an object, if it exists.
    fn version(&self, key: &str) -> Result<Option<Version>, StoreError>;

    /// Returns the time by the clock of the store, as of its last answer, if it reports one.
    fn time(&self) -> Option<Timestamp>;

    /// Puts an object if the condition holds, and returns its new version. Fails if the condition
    /// does not hold, or the result is unknown.
    fn put(&self, key: &str, bytes: &[u8], condition: &PutCondition) -> Result<Version, PutError>;

    /// Removes an object, which need not exist. Fails if the store cannot be asked, or forbids
    /// removal.
    fn delete(&self, key: &str) -> Result<(), StoreError>;

    /// Returns the keys that begin with a text, in order.
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError>;

    /// Returns the name of an object for people: a path from the project root, or an address.
    fn address(&self, key: &str) -> String;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    pub bytes: Vec<u8>,
    pub version: Version,
    /// The time since it was written, by the clock of the store, if it reports one.
    pub age: Option<Duration>,
}

/// A version of an object, in the store's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Identifies the version or its content.
    pub tag: Option<String>,
    /// Identifies the version, in stores that keep several or count them.
    pub number: Option<String>,
}

/// When an object may be put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutCondition {
    /// It does not exist.
    Absent,
    /// It exists in this version.
    Unchanged(Version),
}

/// Why an object was not put, or may not have been.
#[derive(Debug)]
pub enum PutError {
    /// The condition does not hold.
    Refused,
    /// It may have been put, or not.
    Unknown(StoreError),
}

/// The store could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("failed to {doing} `{address}`: {problem}")]
pub struct StoreError {
    pub doing: &'static str,
    pub address: String,
    pub problem: String,
    pub failure: StoreFailure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFailure {
    /// It may be over soon: the network, or a store that is overloaded.
    Transient,
    NoBucket,
    /// The store lacks a feature that `orch` needs.
    NotImplemented,
    Other,
}

/// How long to retry requests to a failing store, before and during a run.
pub const RETRY_TIMEOUT: Duration = Duration::from_mins(1);

impl StoreError {
    /// Returns whether the failure may be over soon.
    pub fn is_transient(&self) -> bool {
        self.failure == StoreFailure::Transient
    }
}
