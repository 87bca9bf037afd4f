//! One run at a time in a project.
//!
//! The lock is the kernel's, on the file `.orch/lock`, which stays where it is and says who holds it.
//! It is given back when the last process ends that has it: so nothing has to be tidied up after a
//! run that was killed. A run that ends by itself empties the file; who gets the lock and finds
//! something in it knows that the run before was killed.
//!
//! Commands inherit the lock. If `orch` is killed, a command goes on, and so nothing else may start
//! before it has ended. At the end of a run the lock is given back explicitly, whoever has it: a
//! process that a command leaves behind on purpose does not hold it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tracing::debug;

use super::folder::{RecordFolder, Unusable, failed};
use super::header::{Argument, Header};

const FILE: &str = "lock";

/// What is read of the file at most; a command line may be long.
const MAX_BYTES: u64 = 4 << 20;

/// Who holds the lock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Holder {
    /// The run id.
    pub run: String,
    /// The process id of `orch`.
    pub process: u32,
    /// The machine.
    pub host: String,
    /// The command and its arguments.
    pub command: Vec<Argument>,
    /// When the run began.
    pub since: Timestamp,
}

impl Holder {
    /// Returns how a run with this header calls itself.
    pub fn of(header: &Header) -> Self {
        Holder {
            run: header.run.clone(),
            process: header.process,
            host: header.host.clone(),
            command: header.command.clone(),
            since: header.at,
        }
    }
}

/// What came of trying to get the lock.
#[derive(Debug)]
pub enum Locking {
    /// It is ours.
    Ours {
        /// The lock.
        lock: ProjectLock,
        /// Who had it before and was killed.
        killed: Option<Holder>,
    },
    /// Somebody else has it, who may not have said (yet, or for want of room) who that is.
    Held(Option<Holder>),
}

/// The lock, as long as it lives.
#[derive(Debug)]
pub struct ProjectLock {
    file: File,
}

impl ProjectLock {
    /// Tries to get the lock.
    ///
    /// # Errors
    ///
    /// If there cannot be one: the file cannot be opened, or the file system has no locks.
    pub fn lock(place: &RecordFolder, holder: &Holder) -> Result<Locking, Unusable> {
        let options = &mut OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = place.open(FILE, options)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Locking::Held(read(&mut file))),
            Err(TryLockError::Error(error)) => return Err(failed("lock", ".orch/lock", error)),
        }
        let killed = read(&mut file);
        let_commands_inherit(&file).map_err(|error| failed("hand down", ".orch/lock", error))?;
        let lock = ProjectLock { file };
        // On a full disk it does not say whose it is, and is held all the same.
        if let Err(error) = lock.describe(holder) {
            debug!(%error, "the lock does not say who holds it");
        }
        Ok(Locking::Ours { lock, killed })
    }

    fn describe(&self, holder: &Holder) -> io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&serde_json::to_vec(holder)?)
    }
}

impl Drop for ProjectLock {
    fn drop(&mut self) {
        // Where the run did not come to its end, commands may be running.
        if !std::thread::panicking() {
            _ = self.file.set_len(0);
            _ = self.file.unlock();
        }
    }
}

/// Reads who holds the lock, if that is there and can be understood.
fn read(file: &mut File) -> Option<Holder> {
    let mut text = Vec::new();
    file.rewind().ok()?;
    file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(unix)]
fn let_commands_inherit(file: &File) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty())?)
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
fn let_commands_inherit(_file: &File) -> io::Result<()> {
    Ok(())
}
