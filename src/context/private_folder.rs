//! Folders in `.orch` that one process uses. They are removed with the process; those of killed
//! processes are removed later.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::context::Context;
use crate::error::{ErrorContext as _, Result};
use crate::folder::{GuardedFolder, Unusable};
use crate::project::discover::RootRule;

/// The folder in `.orch` for answers and plans while they are made. Both may contain secrets.
pub const PLANS: &str = "plans";

/// The prefix of these folders' names.
const PREFIX: &str = "orch-";

/// The file in such a folder that is locked while the folder is in use.
const IN_USE: &str = "in-use";

/// The minimum age of a folder without a lock file that is removed: a newer one may be about to get
/// its lock.
const NEVER_USED: Duration = Duration::from_mins(10);

/// A folder that only its owner can read, removed on drop.
pub struct PrivateFolder {
    folder: TempDir,
    /// Locked, so that no other process removes the folder as a leftover.
    _in_use: File,
}

impl PrivateFolder {
    /// Creates a folder below `.orch`. Without a project, or if that is not writable, creates it in
    /// the system's temporary directory.
    pub fn of(context: &Context, place: &str) -> Result<Self> {
        let failed = "failed to make room in `.orch`";
        let place: Option<PathBuf> = if context.rule == RootRule::WorkingDirectory {
            None
        } else {
            let folder = GuardedFolder::create(&context.project.root);
            match folder.and_then(|folder| folder.private_directory(place)) {
                // The checkout is read-only.
                Err(Unusable::Io { error, .. }) if is_read_only(&error) => None,
                directory => Some(directory.context(failed)?),
            }
        };
        Self::inside(place.as_deref()).context(failed)
    }

    /// Creates a folder in another one, or in the system's temporary directory.
    pub fn inside(place: Option<&Path>) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = match place {
            Some(place) => builder.tempdir_in(place),
            None => builder.tempdir(),
        }?;
        // Other processes see it only once it is locked.
        let new = folder.path().join("in-use.new");
        let in_use = File::create_new(&new)?;
        in_use.lock()?;
        share(&in_use)?;
        fs::rename(new, folder.path().join(IN_USE))?;
        Ok(PrivateFolder {
            folder,
            _in_use: in_use,
        })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn is_read_only(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

/// Removes the folders that killed processes have left, each after `tidy` has seen it. The others
/// are in use: a user may be reading the plan in one.
pub fn sweep(place: &Path, tidy: &dyn Fn(&Path)) {
    for entry in place.read_dir().into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_ours || !is_folder {
            continue;
        }
        // Held while the folder is removed.
        if let Some(_leftover) = claim_leftover(&entry.path()) {
            tidy(&entry.path());
            // The next command tries again.
            _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Shares the lock of a file with child processes: those of a killed process may still work in its
/// folder.
#[cfg(unix)]
fn share(file: &File) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty())?)
}

/// Child processes on Windows inherit no handles.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
fn share(_file: &File) -> io::Result<()> {
    Ok(())
}

/// A folder that is no longer in use, with its locked file if it ever was.
struct Leftover(#[expect(dead_code, reason = "kept for its lock")] Option<File>);

/// Takes over a folder whose process, and all its children, have ended.
fn claim_leftover(folder: &Path) -> Option<Leftover> {
    match File::open(folder.join(IN_USE)) {
        Ok(file) => file.try_lock().is_ok().then_some(Leftover(Some(file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let age = folder
                .metadata()
                .and_then(|it| it.modified())
                .ok()
                .and_then(|made| made.elapsed().ok());
            age.is_some_and(|age| age > NEVER_USED)
                .then_some(Leftover(None))
        }
        Err(_) => None,
    }
}
