//! The folder `.orch` at the project root, and folders that are treated like it. Anyone may have put anything into
//! them.
//!
//! Links in it are not followed: writes must not reach another place, and the file that makes git ignore the folder
//! must not hide files of others there.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::on_disk::if_there;

pub const NAME: &str = ".orch";

/// The file that makes git ignore it.
const IGNORE: &str = ".gitignore";

/// The folder, which exists.
#[derive(Debug, Clone)]
pub struct GuardedFolder {
    folder: PathBuf,
    /// Its name in messages.
    shown: String,
}

/// Why the folder cannot be written or read. Paths are relative to the project root.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("`{0}` is a symbolic link, which orch does not follow")]
    Link(String),
    /// A file or directory has the wrong kind.
    #[error("`{0}` is not a {1}")]
    WrongKind(String, &'static str),
    #[error("failed to {doing} `{path}`: {error}")]
    Io {
        doing: &'static str,
        path: String,
        error: io::Error,
    },
}

impl GuardedFolder {
    /// Returns the folder of a project, if it has one. Fails if something else has this name.
    pub fn find(root: &Path) -> Result<Option<Self>, Unusable> {
        let folder = root.join(NAME);
        let shown = NAME.to_owned();
        Ok(is_directory(&folder, NAME)?.then_some(GuardedFolder { folder, shown }))
    }

    /// Returns a directory of the user's choice as such a folder, if it exists. Links in its path
    /// are followed. Fails if it is not a directory.
    pub fn find_at(directory: &Path) -> Result<Option<Self>, Unusable> {
        let shown = directory.display().to_string();
        match directory.metadata() {
            Ok(metadata) if metadata.is_dir() => Ok(Some(GuardedFolder {
                folder: directory.to_owned(),
                shown,
            })),
            Ok(_) => Err(Unusable::WrongKind(shown, "directory")),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("look at", &shown, error)),
        }
    }

    /// Does what [`Self::find_at`] does, and creates the directory if there is none.
    pub fn create_at(directory: &Path) -> Result<Self, Unusable> {
        let shown = directory.display().to_string();
        let create = || match Self::find_at(directory)? {
            None => fs::create_dir_all(directory).map_err(|error| failed("create", &shown, error)),
            Some(_) => Ok(()),
        };
        create()?;
        let folder = directory.to_owned();
        Ok(GuardedFolder { folder, shown })
    }

    /// Returns the folder of a project, and creates it if it is missing. Git ignores it from the beginning, and only
    /// its owner can read it: commands may print secrets.
    pub fn create(root: &Path) -> Result<Self, Unusable> {
        let folder = root.join(NAME);
        make_directory(&folder, NAME)?;
        let shown = NAME.to_owned();
        let place = GuardedFolder { folder, shown };
        place.hide()?;
        Ok(place)
    }

    /// Makes git ignore the folder, even if a killed process or a full disk left an empty file for that, or none. A
    /// file with content is left alone.
    pub fn hide(&self) -> Result<(), Unusable> {
        match self.open(IGNORE, OpenOptions::new().read(true)) {
            Ok(file) if file.metadata().is_ok_and(|metadata| metadata.len() > 0) => return Ok(()),
            Ok(_) => {}
            Err(Unusable::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {}
            Err(other) => return Err(other),
        }
        // Written atomically: otherwise git might show the folder, and safeguards would refuse each further run.
        let new = format!("{IGNORE}.{}", std::process::id());
        let options = &mut OpenOptions::new();
        let mut file = self.open(&new, options.write(true).create(true).truncate(true))?;
        let place = self.folder.join(&new);
        file.write_all(b"*\n")
            .and_then(|()| fs::rename(&place, self.folder.join(IGNORE)))
            .map_err(|error| {
                _ = fs::remove_file(&place);
                failed("write", ".orch/.gitignore", error)
            })
    }

    /// Returns the path of a directory of the folder, if it exists. `path` has no links above it.
    pub(crate) fn directory(&self, path: &str) -> Result<Option<PathBuf>, Unusable> {
        let mut directory = self.folder.clone();
        let mut shown = self.shown.clone();
        for name in path.split('/') {
            directory.push(name);
            shown = format!("{shown}/{name}");
            if !is_directory(&directory, &shown)? {
                return Ok(None);
            }
        }
        Ok(Some(directory))
    }

    /// Creates a directory of the folder, and those above it, if they are missing.
    pub(crate) fn make_directory(&self, path: &str) -> Result<PathBuf, Unusable> {
        let mut directory = self.folder.clone();
        let mut shown = self.shown.clone();
        for name in path.split('/') {
            directory.push(name);
            shown = format!("{shown}/{name}");
            make_directory(&directory, &shown)?;
        }
        Ok(directory)
    }

    /// Creates a directory of the folder that only its owner can read, if it is missing.
    pub fn private_directory(&self, path: &str) -> Result<PathBuf, Unusable> {
        self.make_directory(path)
    }

    /// Opens a file of the folder; only its owner can read a new one. The caller has checked its directory.
    pub(crate) fn open(&self, path: &str, options: &mut OpenOptions) -> Result<File, Unusable> {
        let file = self.folder.join(path);
        let shown = self.shown(path);
        match file.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => return Err(Unusable::Link(shown)),
            // Opening a pipe would wait for its other end.
            Ok(metadata) if !metadata.is_file() => {
                return Err(Unusable::WrongKind(shown, "file"));
            }
            _ => {}
        }
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
        options
            .open(&file)
            .map_err(|error| failed("open", &shown, error))
    }

    /// Returns whether something has this path, or may have it.
    pub(crate) fn may_have(&self, path: &str) -> bool {
        let looked = if_there(self.folder.join(path).symlink_metadata());
        !matches!(looked, Ok(None))
    }

    fn shown(&self, path: &str) -> String {
        format!("{}/{path}", self.shown)
    }

    fn has_directory_of(&self, path: &str) -> Result<bool, Unusable> {
        match path.rsplit_once('/') {
            Some((directory, _)) => Ok(self.directory(directory)?.is_some()),
            None => Ok(true),
        }
    }

    /// Reads a file, if it exists.
    pub(crate) fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Unusable> {
        if !self.has_directory_of(path)? {
            return Ok(None);
        }
        let mut file = match self.open(path, OpenOptions::new().read(true)) {
            Ok(file) => file,
            Err(Unusable::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        let read = file.read_to_end(&mut bytes);
        read.map_err(|error| failed("read", &self.shown(path), error))?;
        Ok(Some(bytes))
    }

    /// Returns when a file was written, if it exists.
    pub(crate) fn modified(&self, path: &str) -> Result<Option<SystemTime>, Unusable> {
        let modified = self
            .folder
            .join(path)
            .symlink_metadata()
            .and_then(|it| it.modified());
        match modified {
            Ok(modified) => Ok(Some(modified)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("look at", &self.shown(path), error)),
        }
    }

    /// Writes a file atomically in an existing directory: readers see the old bytes or the new ones, even after a
    /// power cut. Only one process at a time may write it; a leftover of a killed one is overwritten.
    pub(crate) fn replace(&self, path: &str, bytes: &[u8]) -> Result<(), Unusable> {
        let file = self.folder.join(path);
        if file
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_symlink())
        {
            return Err(Unusable::Link(self.shown(path)));
        }
        let new = format!("{path}.new");
        let place = self.folder.join(&new);
        let options = &mut OpenOptions::new();
        let mut opened = self.open(&new, options.write(true).create(true).truncate(true))?;
        let written = opened
            .write_all(bytes)
            .and_then(|()| opened.sync_all())
            .and_then(|()| fs::rename(&place, &file))
            .and_then(|()| sync_directory(&file));
        written.map_err(|error| {
            _ = fs::remove_file(&place);
            failed("write", &self.shown(path), error)
        })
    }

    /// Removes a file, which need not exist.
    pub(crate) fn remove(&self, path: &str) -> Result<(), Unusable> {
        if !self.has_directory_of(path)? {
            return Ok(());
        }
        match fs::remove_file(self.folder.join(path)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(failed("remove", &self.shown(path), error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the paths of the files in a directory of the folder, in order; an empty path is the
    /// folder itself.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<String>, Unusable> {
        let (directory, prefix) = match path {
            "" => (self.folder.clone(), String::new()),
            path => match self.directory(path)? {
                Some(directory) => (directory, format!("{path}/")),
                None => return Ok(Vec::new()),
            },
        };
        let unread = |error| failed("read", &self.shown(path), error);
        let mut files = Vec::new();
        for entry in fs::read_dir(directory).map_err(unread)? {
            let entry = entry.map_err(unread)?;
            if entry.file_type().is_ok_and(|kind| kind.is_file())
                && let Ok(name) = entry.file_name().into_string()
            {
                files.push(prefix.clone() + &name);
            }
        }
        files.sort_unstable();
        Ok(files)
    }
}

/// Waits until the directory entries of a file are on the disk.
#[cfg(unix)]
fn sync_directory(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// Windows offers no way to wait for that.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
fn sync_directory(_file: &Path) -> io::Result<()> {
    Ok(())
}

fn is_directory(directory: &Path, shown: &str) -> Result<bool, Unusable> {
    match directory.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => Err(Unusable::Link(shown.to_owned())),
        Ok(metadata) if metadata.is_dir() => Ok(true),
        Ok(_) => Err(Unusable::WrongKind(shown.to_owned(), "directory")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed("look at", shown, error)),
    }
}

fn make_directory(directory: &Path, shown: &str) -> Result<(), Unusable> {
    if is_directory(directory, shown)? {
        return Ok(());
    }
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no modes"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(directory) {
        Ok(()) => Ok(()),
        // Another run was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            is_directory(directory, shown).map(drop)
        }
        Err(error) => Err(failed("create", shown, error)),
    }
}

pub(crate) fn failed(doing: &'static str, path: &str, error: io::Error) -> Unusable {
    let path = path.to_owned();
    Unusable::Io { doing, path, error }
}

/// Lets commands that are started from now on inherit a file, and with it the lock on it.
#[cfg(unix)]
pub(crate) fn let_commands_inherit(file: &File) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty())?)
}

/// Does nothing on this system.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
pub(crate) fn let_commands_inherit(_file: &File) -> io::Result<()> {
    Ok(())
}
