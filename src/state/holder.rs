//! The file that the holder of a lock keeps locked on its machine, and that names its run.
//!
//! The kernel owns the lock, and the commands of a run inherit it: if `orch` is killed, it is held until they have
//! ended too. A run that ends normally releases it for all of them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};

use tracing::debug;

use super::store::FolderLocation;
use crate::folder::{Unusable, failed, let_commands_inherit};

/// The most that is read of the file.
const MAX_BYTES: u64 = 100;

pub(super) struct HolderFile {
    place: FolderLocation,
    name: String,
}

/// The state of the lock file on this machine.
pub(super) enum Presence {
    Unknown,
    /// None that has locked the file, as long as the claim exists.
    Alone(LockedFile),
    Another(FileHolder),
}

/// The file, locked by this process and the commands that it starts.
#[derive(Debug)]
pub(super) struct LockedFile {
    file: File,
    last: String,
}

/// The file, locked by others.
pub(super) struct FileHolder {
    pub(super) file: File,
    /// The last run that had it locked.
    pub(super) last: String,
}

impl HolderFile {
    pub(super) fn new(place: FolderLocation, name: String) -> Self {
        HolderFile { place, name }
    }

    /// Tries to lock the file.
    pub(super) fn presence(&self) -> Presence {
        self.try_lock().unwrap_or_else(|error| {
            debug!(%error, "the file of the holder cannot be locked");
            Presence::Unknown
        })
    }

    fn try_lock(&self) -> Result<Presence, Unusable> {
        let folder = self.place.create(&self.name)?;
        let options = &mut OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = folder.open(&self.name, options)?;
        let unread = |error| failed("read", &self.name, error);
        match file.try_lock() {
            Ok(()) => Ok(Presence::Alone(LockedFile::of(file).map_err(unread)?)),
            Err(TryLockError::WouldBlock) => {
                let last = last_run(&mut file).map_err(unread)?;
                Ok(Presence::Another(FileHolder { file, last }))
            }
            Err(TryLockError::Error(error)) => Err(failed("lock", &self.name, error)),
        }
    }
}

fn last_run(file: &mut File) -> io::Result<String> {
    let mut last = String::new();
    file.rewind()?;
    file.take(MAX_BYTES).read_to_string(&mut last)?;
    Ok(last)
}

impl LockedFile {
    /// Returns the claim of a process that has locked the file. Fails if the file cannot be used.
    pub(super) fn of(mut file: File) -> io::Result<Self> {
        let last = last_run(&mut file)?;
        let_commands_inherit(&file)?;
        Ok(LockedFile { file, last })
    }

    /// Returns whether nothing is left on this machine of a run: it had the file locked last.
    pub(super) fn proves_end_of(&self, run: &str) -> bool {
        self.last == run
    }

    /// Lets others lock the file.
    pub(super) fn release(&self) {
        _ = self.file.unlock();
    }

    /// Writes the run that has the file locked.
    pub(super) fn note(&self, run: &str) {
        let mut file = &self.file;
        // If that fails, the file proves nothing.
        _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(run.as_bytes()));
    }
}

impl FileHolder {
    /// Returns whether a run has the file locked, or something that it started.
    pub(super) fn is(&self, run: &str) -> bool {
        self.last == run
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // If the run did not end normally, commands may be running.
        if !std::thread::panicking() {
            self.release();
        }
    }
}
