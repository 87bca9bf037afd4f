//! A folder as a store.
//!
//! Writers take turns with a kernel lock on a file beside the objects. A new object is a temporary file until it is
//! complete and on the disk; then it is renamed.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{PutCondition, PutError, Store, StoreError, StoreFailure, StoredObject, Version};
use crate::ascii::hex;
use crate::folder::{GuardedFolder, Unusable, failed};

/// Objects in a folder of this machine. A key is the path of a file in it.
pub struct LocalStore {
    place: FolderLocation,
    /// The prefix of the lock file's name.
    base: String,
}

/// A folder, which need not exist.
#[derive(Debug, Clone)]
pub(in crate::state) enum FolderLocation {
    /// `.orch` in the project at this root.
    Own(PathBuf),
    /// A directory that the user has named.
    Named(PathBuf),
}

impl FolderLocation {
    /// Returns the folder, if it exists.
    pub(in crate::state) fn find(&self) -> Result<Option<GuardedFolder>, Unusable> {
        match self {
            FolderLocation::Own(root) => GuardedFolder::find(root),
            FolderLocation::Named(directory) => GuardedFolder::find_at(directory),
        }
    }

    /// Returns the folder, and creates the directory in it that a file lies in.
    pub(in crate::state) fn create(&self, key: &str) -> Result<GuardedFolder, Unusable> {
        let folder = match self {
            FolderLocation::Own(root) => GuardedFolder::create(root)?,
            FolderLocation::Named(directory) => GuardedFolder::create_at(directory)?,
        };
        if let Some((directory, _)) = key.rsplit_once('/') {
            folder.make_directory(directory)?;
        }
        Ok(folder)
    }

    /// Returns the name of a file for people.
    fn address(&self, key: &str) -> String {
        match self {
            FolderLocation::Own(_) => format!("{}/{key}", crate::folder::NAME),
            FolderLocation::Named(directory) => directory.join(key).display().to_string(),
        }
    }

    /// Returns the error that something cannot be done with a file.
    pub(in crate::state) fn error(
        &self,
        doing: &'static str,
        key: &str,
        problem: &Unusable,
    ) -> StoreError {
        let address = self.address(key);
        StoreError {
            doing,
            // The error already has the address.
            problem: match problem {
                Unusable::Io { error, path, .. } if address.ends_with(path) => error.to_string(),
                problem => problem.to_string(),
            },
            address,
            failure: StoreFailure::Other,
        }
    }
}

impl LocalStore {
    /// Returns the store in a folder. All keys begin with `base`.
    pub(in crate::state) fn new(place: FolderLocation, base: String) -> Self {
        LocalStore { place, base }
    }

    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, Unusable> {
        match self.place.find()? {
            Some(folder) => folder.read(key),
            None => Ok(None),
        }
    }

    /// Returns how long ago a file was written.
    fn age(&self, key: &str) -> Result<Option<Duration>, Unusable> {
        let Some(folder) = self.place.find()? else {
            return Ok(None);
        };
        let written = folder.modified(key)?;
        Ok(written.map(|written| {
            SystemTime::now()
                .duration_since(written)
                .unwrap_or_default()
        }))
    }

    /// Opens the file that writers lock in turn.
    fn lock_file(&self) -> Result<(File, String), Unusable> {
        let name = format!("{}.lock", self.base);
        let folder = self.place.create(&name)?;
        let options = &mut OpenOptions::new();
        let file = folder.open(&name, options.write(true).create(true).truncate(false))?;
        Ok((file, name))
    }

    fn error(&self, doing: &'static str, key: &str) -> impl Fn(Unusable) -> StoreError {
        move |problem| self.place.error(doing, key, &problem)
    }
}

fn version(bytes: &[u8]) -> Version {
    Version {
        tag: Some(hex(&Sha256::digest(bytes))),
        number: None,
    }
}

impl Store for LocalStore {
    fn get(&self, key: &str) -> Result<Option<StoredObject>, StoreError> {
        let error = self.error("read", key);
        let Some(bytes) = self.read(key).map_err(&error)? else {
            return Ok(None);
        };
        // Asked after reading: a write in between makes it look young, which is safe.
        let age = self.age(key).map_err(&error)?;
        Ok(Some(StoredObject {
            version: version(&bytes),
            bytes,
            age,
        }))
    }

    fn version(&self, key: &str) -> Result<Option<Version>, StoreError> {
        let bytes = self.read(key).map_err(self.error("read", key))?;
        Ok(bytes.map(|bytes| version(&bytes)))
    }

    fn time(&self) -> Option<Timestamp> {
        Some(Timestamp::now())
    }

    fn put(&self, key: &str, bytes: &[u8], condition: &PutCondition) -> Result<Version, PutError> {
        let put = || {
            let (lock, name) = self.lock_file()?;
            lock.lock().map_err(|error| failed("lock", &name, error))?;
            let found = self.read(key)?.map(|found| version(&found));
            let holds = match condition {
                PutCondition::Absent => found.is_none(),
                PutCondition::Unchanged(seen) => found.as_ref() == Some(seen),
            };
            if holds {
                self.place.create(key)?.replace(key, bytes)?;
            }
            Ok(holds)
        };
        match put() {
            Ok(true) => Ok(version(bytes)),
            Ok(false) => Err(PutError::Refused),
            Err(error) => Err(PutError::Unknown(self.error("write", key)(error))),
        }
    }

    fn delete(&self, key: &str) -> Result<(), StoreError> {
        let delete = || {
            let Some(folder) = self.place.find()? else {
                return Ok(());
            };
            // The object of another process is a temporary file until it is complete.
            let (lock, name) = self.lock_file()?;
            lock.lock().map_err(|error| failed("lock", &name, error))?;
            folder.remove(key)
        };
        delete().map_err(self.error("remove", key))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let (directory, _) = prefix.rsplit_once('/').unwrap_or_default();
        let list = || match self.place.find()? {
            Some(folder) => folder.list(directory),
            None => Ok(Vec::new()),
        };
        let mut keys = list().map_err(self.error("list", prefix))?;
        keys.retain(|key| key.starts_with(prefix));
        Ok(keys)
    }

    fn address(&self, key: &str) -> String {
        self.place.address(key)
    }
}
