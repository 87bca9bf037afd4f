//! Allows one run at a time in a project.
//!
//! The kernel owns the lock, on the file `.orch/lock`, which is never removed and names the holder. It is released
//! when its last process ends, so a killed run needs no cleanup. A run that ends normally empties the file; a
//! non-empty file of a free lock means that the previous run was killed.
//!
//! Commands inherit the lock. If `orch` is killed, its commands keep running, and nothing else may start before they
//! have ended. At the end of a run the lock is released explicitly for all processes: one that a command leaves
//! behind on purpose does not hold it.
//!
//! A job of a work order holds this lock only while it begins: after that, others of the order may run beside it. It
//! then holds the file `lock` in the folder of its run, in the same way.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tracing::debug;

use super::header::{Argument, Header};
use crate::author::has_ended;
use crate::folder::{GuardedFolder, NAME, Unusable, failed, let_commands_inherit};
use crate::on_disk::if_there;

const FILE: &str = "lock";

/// The file that a run keeps locked while it begins.
const GATE: &str = "lock.begin";

/// The most that is read of the file; a command line may be long.
const MAX_BYTES: u64 = 4 << 20;

/// How long the processes of a killed `orch` may take to end.
pub(super) const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LockHolder {
    pub run: String,
    pub process: u32,
    pub host: String,
    pub command: Vec<Argument>,
    /// The purpose of the run, if it is not only its command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Whether it is a job of a work order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_job: bool,
    pub since: Timestamp,
}

impl LockHolder {
    pub fn of(header: &Header) -> Self {
        LockHolder {
            run: header.run.clone(),
            process: header.process,
            host: header.host.clone(),
            command: header.command.clone(),
            purpose: header.purpose.clone(),
            is_job: header.is_job(),
            since: header.at,
        }
    }
}

pub enum Locking {
    Ours {
        lock: RunLock,
        /// The run that had it before and was killed.
        killed: Option<LockHolder>,
    },
    /// Another run has it, whose name may be missing or not written yet.
    Held(Option<LockHolder>),
    /// The file of the lock cannot be opened, so another run may have it.
    Unopened(Unusable),
}

/// The lock of a run, which is held while this value exists.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl RunLock {
    /// Returns whether a project has the file of the lock, or may have: then another run may hold the lock.
    pub fn may_exist(root: &Path) -> bool {
        let looked = if_there(root.join(NAME).join(FILE).symlink_metadata());
        !matches!(looked, Ok(None))
    }

    /// Waits until no other run is starting. None can start until the returned file is closed. Otherwise a job might be
    /// refused because another one is starting.
    pub fn wait_to_begin(place: &GuardedFolder) -> Option<File> {
        let gate = place.open(GATE, &mut options()).ok()?;
        gate.lock().ok()?;
        Some(gate)
    }

    /// Takes the lock of a job that is about to begin, in the folder of its run.
    pub fn of_job(place: &GuardedFolder, run: &str) -> Result<Self, Unusable> {
        let path = of_run(run);
        let options = &mut OpenOptions::new();
        let file = place.open(&path, options.write(true).create_new(true))?;
        // Others only check whether it is locked.
        file.lock()
            .and_then(|()| let_commands_inherit(&file))
            .map_err(|error| failed("lock", &path, error))?;
        Ok(RunLock { file })
    }

    pub fn lock(place: &GuardedFolder, holder: &LockHolder) -> Result<Locking, Unusable> {
        let mut file = match place.open(FILE, &mut options()) {
            Ok(file) => file,
            Err(why @ Unusable::Io { .. }) if place.may_have(FILE) => {
                return Ok(Locking::Unopened(why));
            }
            Err(why) => return Err(why),
        };
        let begun = Instant::now();
        while let Err(error) = file.try_lock() {
            if let TryLockError::Error(error) = error {
                return Err(failed("lock", ".orch/lock", error));
            }
            let other = read(&mut file);
            let is_killed = other
                .as_ref()
                .is_some_and(|it| it.host == holder.host && has_ended(it.process));
            if !is_killed || begun.elapsed() > GRACE {
                return Ok(Locking::Held(other));
            }
            thread::sleep(GRACE / 50);
        }
        let killed = read(&mut file);
        let_commands_inherit(&file).map_err(|error| failed("hand down", ".orch/lock", error))?;
        let lock = RunLock { file };
        // On a full disk the file does not name the holder, but the lock is held.
        if let Err(error) = lock.describe(holder) {
            debug!(%error, "the lock does not name its holder");
        }
        Ok(Locking::Ours { lock, killed })
    }

    /// Returns the run that has the lock, or whose commands have it.
    pub fn held_by(place: &GuardedFolder) -> Option<String> {
        // A run that begins must find it free.
        let _gate = RunLock::wait_to_begin(place)?;
        let mut file = place.open(FILE, OpenOptions::new().read(true)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => read(&mut file).map(|holder| holder.run),
            _ => None,
        }
    }

    fn describe(&self, holder: &LockHolder) -> io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&serde_json::to_vec(holder)?)
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // If the run did not end normally, commands may be running.
        if !std::thread::panicking() {
            _ = self.file.set_len(0);
            _ = self.file.unlock();
        }
    }
}

/// Returns the path of the file that a job, and its commands after it, keep locked.
pub(super) fn of_run(run: &str) -> String {
    format!("runs/{run}/{FILE}")
}

/// Returns how to open a file of the lock, which need not exist.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options
}

/// Reads the holder of the lock, if the file names it.
fn read(file: &mut File) -> Option<LockHolder> {
    let mut text = Vec::new();
    file.rewind().ok()?;
    file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
