//! Folders of `.orch` that one process uses for itself: they go with it, and those of killed processes are
//! swept up.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::context::Context;
use crate::error::{ErrorContext as _, Result};
use crate::folder::{GuardedFolder, Unusable};
use crate::project::discover::RootRule;

/// The folder of `.orch` for answers and plans while they are made: both may hold secrets.
pub const PLANS: &str = "plans";

/// How the names of these folders begin.
const PREFIX: &str = "orch-";

/// The file of such a folder that is locked while it is used.
const IN_USE: &str = "in-use";

/// How old a folder is, at least, that was never in use: one that was just made may be about to be.
const NEVER_USED: Duration = Duration::from_mins(10);

/// A folder that only its owner can look into, and that goes when this is dropped.
pub struct PrivateFolder {
    folder: TempDir,
    /// Locked, so that nobody takes the folder for one that a killed process has left.
    _in_use: File,
}

impl PrivateFolder {
    /// Makes a folder in a place of `.orch`; where there is no project, or it cannot be written, where the system
    /// has these.
    pub fn of(context: &Context, place: &str) -> Result<Self> {
        let failed = "failed to make room in `.orch`";
        let place: Option<PathBuf> = if context.rule == RootRule::WorkingDirectory {
            None
        } else {
            let folder = GuardedFolder::create(&context.project.root);
            match folder.and_then(|folder| folder.private_directory(place)) {
                // The checkout cannot be written.
                Err(Unusable::Io { error, .. }) if is_read_only(&error) => None,
                directory => Some(directory.context(failed)?),
            }
        };
        Self::inside(place.as_deref()).context(failed)
    }

    /// Makes a folder in another one, or where the system has these.
    pub fn inside(place: Option<&Path>) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = match place {
            Some(place) => builder.tempdir_in(place),
            None => builder.tempdir(),
        }?;
        // Nobody sees it before it is locked.
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

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn is_read_only(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

/// Removes the folders in a place that killed processes have left, each after `tidy` has seen it.
/// The others are in use: somebody may be thinking about the plan in one.
pub fn sweep(place: &Path, tidy: &dyn Fn(&Path)) {
    for entry in place.read_dir().into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_ours || !is_folder {
            continue;
        }
        // Held while it is removed.
        if let Some(_left) = left(&entry.path()) {
            tidy(&entry.path());
            // What cannot be removed is tried again by the next command.
            _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Gives the lock of a file to the processes that this one starts, too: what a killed process has started may
/// still be at work in its folder.
#[cfg(unix)]
fn share(file: &File) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty())?)
}

/// What is started on Windows inherits nothing.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
fn share(_file: &File) -> io::Result<()> {
    Ok(())
}

/// A folder that is not in use any more: its file, which is locked, if it ever was.
struct Left(#[expect(dead_code, reason = "kept for its lock")] Option<File>);

/// Takes over a folder whose process is gone, and all that it has started.
fn left(folder: &Path) -> Option<Left> {
    match File::open(folder.join(IN_USE)) {
        Ok(file) => file.try_lock().is_ok().then_some(Left(Some(file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let age = folder
                .metadata()
                .and_then(|it| it.modified())
                .ok()
                .and_then(|made| made.elapsed().ok());
            age.is_some_and(|age| age > NEVER_USED)
                .then_some(Left(None))
        }
        Err(_) => None,
    }
}
