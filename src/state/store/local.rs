//! A folder as a store.
//!
//! Writers take turns by a lock of the kernel on a file beside the objects. What is written is another
//! file until it is complete and on the disk; then it takes the name of the object.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::{Condition, Object, Presence, PutError, Store, StoreError, Version};
use crate::folder::{GuardedFolder, Unusable, failed};

/// Objects in a folder of this machine. A key is the path of a file in it.
#[derive(Debug)]
pub struct LocalStore {
    place: Place,
    /// What the names of the files that are locked begin with.
    base: String,
}

#[derive(Debug)]
enum Place {
    /// `.orch` in the project at this root.
    Own(PathBuf),
    /// A directory that the user has named.
    Named(PathBuf),
}

impl LocalStore {
    /// Returns the store in `.orch` of the project at a root. All keys begin with `base`.
    pub fn own(root: PathBuf, base: String) -> Self {
        let place = Place::Own(root);
        LocalStore { place, base }
    }

    /// Returns the store in a directory, which is created when something is put there. All keys begin
    /// with `base`.
    pub fn named(directory: PathBuf, base: String) -> Self {
        let place = Place::Named(directory);
        LocalStore { place, base }
    }

    fn find(&self) -> Result<Option<GuardedFolder>, Unusable> {
        match &self.place {
            Place::Own(root) => GuardedFolder::find(root),
            Place::Named(directory) => GuardedFolder::find_at(directory),
        }
    }

    /// Returns the folder, and creates the directory in it that a file lies in.
    fn create(&self, key: &str) -> Result<GuardedFolder, Unusable> {
        let folder = match &self.place {
            Place::Own(root) => GuardedFolder::create(root)?,
            Place::Named(directory) => GuardedFolder::create_at(directory)?,
        };
        if let Some((directory, _)) = key.rsplit_once('/') {
            folder.make_directory(directory)?;
        }
        Ok(folder)
    }

    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, Unusable> {
        match self.find()? {
            Some(folder) => folder.read(key),
            None => Ok(None),
        }
    }

    /// Opens a file that exists to be locked.
    fn lock_file(&self, kind: &str) -> Result<(File, String), Unusable> {
        let name = format!("{}.{kind}", self.base);
        let folder = self.create(&name)?;
        let options = &mut OpenOptions::new();
        let file = folder.open(&name, options.write(true).create(true).truncate(false))?;
        Ok((file, name))
    }

    fn error(&self, doing: &'static str, key: &str) -> impl Fn(Unusable) -> StoreError + use<> {
        let address = self.address(key);
        move |problem| StoreError {
            doing,
            address: address.clone(),
            problem: problem.to_string(),
        }
    }
}

fn version(bytes: &[u8]) -> Version {
    let digest = Sha256::digest(bytes);
    let digits = digest.iter().fold(String::new(), |digits, byte| {
        digits + &format!("{byte:02x}")
    });
    Version {
        tag: Some(digits),
        number: None,
    }
}

impl Store for LocalStore {
    fn get(&self, key: &str) -> Result<Option<Object>, StoreError> {
        let bytes = self.read(key).map_err(self.error("read", key))?;
        Ok(bytes.map(|bytes| Object {
            version: version(&bytes),
            bytes,
        }))
    }

    fn put(&self, key: &str, bytes: &[u8], condition: &Condition) -> Result<Version, PutError> {
        let put = || {
            let (lock, name) = self.lock_file("lock")?;
            lock.lock().map_err(|error| failed("lock", &name, error))?;
            let found = self.read(key)?.map(|found| version(&found));
            let holds = match condition {
                Condition::Absent => found.is_none(),
                Condition::Unchanged(seen) => found.as_ref() == Some(seen),
            };
            if holds {
                self.create(key)?.replace(key, bytes)?;
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
            let Some(folder) = self.find()? else {
                return Ok(());
            };
            // What another process is writing just now is not yet what it will be called.
            let (lock, name) = self.lock_file("lock")?;
            lock.lock().map_err(|error| failed("lock", &name, error))?;
            folder.remove(key)
        };
        delete().map_err(self.error("remove", key))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let (directory, _) = prefix.rsplit_once('/').unwrap_or_default();
        let list = || match self.find()? {
            Some(folder) => folder.list(directory),
            None => Ok(Vec::new()),
        };
        let mut keys = list().map_err(self.error("list", prefix))?;
        keys.retain(|key| key.starts_with(prefix));
        Ok(keys)
    }

    fn address(&self, key: &str) -> String {
        match &self.place {
            Place::Own(_) => format!("{}/{key}", crate::folder::NAME),
            Place::Named(directory) => directory.join(key).display().to_string(),
        }
    }

    fn presence(&self) -> Result<Presence, StoreError> {
        let error = self.error("lock", &self.base);
        let (file, name) = self.lock_file("holder").map_err(&error)?;
        match file.try_lock() {
            Ok(()) => Ok(Presence::Alone(file)),
            Err(TryLockError::WouldBlock) => Ok(Presence::Another),
            Err(TryLockError::Error(error)) => {
                Err(self.error("lock", &name)(failed("lock", &name, error)))
            }
        }
    }
}
