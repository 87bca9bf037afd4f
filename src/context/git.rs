//! The repository and its uncommitted files, read once per command.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tracing::debug;

use super::Context;
use super::own_files::without_own_files;
use crate::error::{Error, ErrorContext as _, Result};
use crate::git::{ChangedFile, CommitId, GitError, Repository};

/// Reads git on another thread while this one reads the project.
///
/// The thread owns its data, and only a caller that needs the snapshot waits for it. A command that
/// ends early because of the configuration does not wait for git.
pub struct GitReader(thread::JoinHandle<Result<GitSnapshot, GitError>>);

/// The repository and its uncommitted files at one moment.
pub struct GitSnapshot {
    pub repository: Repository,
    pub status: Result<Vec<ChangedFile>, Arc<GitError>>,
    /// Whether the status may be inexact.
    pub is_rough: bool,
}

/// Git, as far as it has been read.
#[derive(Default)]
pub enum GitState {
    #[default]
    Unread,
    Reading(GitReader),
    Read(GitSnapshot),
}

impl GitState {
    pub fn is_unread(&self) -> bool {
        matches!(self, GitState::Unread)
    }

    /// Returns the snapshot, taking it first if needed. After an error, git is read again.
    pub fn read(&mut self, root: &Path) -> Result<&mut GitSnapshot, GitError> {
        let snapshot = match std::mem::take(self) {
            GitState::Unread => read(root, false)?,
            GitState::Reading(reader) => reader.join()?,
            GitState::Read(snapshot) => snapshot,
        };
        *self = GitState::Read(snapshot);
        Ok(self.known_mut().expect("it has just been read"))
    }

    pub fn known(&self) -> Option<&GitSnapshot> {
        match self {
            GitState::Read(snapshot) => Some(snapshot),
            GitState::Unread | GitState::Reading(_) => None,
        }
    }

    pub(super) fn known_mut(&mut self) -> Option<&mut GitSnapshot> {
        match self {
            GitState::Read(snapshot) => Some(snapshot),
            GitState::Unread | GitState::Reading(_) => None,
        }
    }
}

/// Returns the uncommitted files without those that `orch` has written, which are no work in progress.
pub fn exact_status(repository: &Repository, root: &Path) -> Result<Vec<ChangedFile>, GitError> {
    let status = repository.status()?;
    Ok(without_own_files(root, status))
}

fn read(root: &Path, is_rough: bool) -> Result<GitSnapshot, GitError> {
    let repository = Repository::open(root)?;
    let status = if is_rough {
        repository
            .rough_status()
            .map(|files| without_own_files(root, files))
    } else {
        exact_status(&repository, root)
    };
    debug!("status read");
    Ok(GitSnapshot {
        repository,
        status: status.map_err(Arc::new),
        is_rough,
    })
}

impl GitReader {
    /// Starts to read; with `is_rough`, the status may be inexact.
    pub fn start(root: &Path, is_rough: bool) -> Self {
        let root: PathBuf = root.to_path_buf();
        GitReader(thread::spawn(move || read(&root, is_rough)))
    }

    fn join(self) -> Result<GitSnapshot, GitError> {
        match self.0.join() {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Context {
    pub fn git(&mut self) -> Result<&mut GitSnapshot, GitError> {
        self.git.read(&self.workspace.project.root)
    }

    /// Returns the snapshot if git has been read.
    pub fn known_git(&self) -> Result<&GitSnapshot> {
        self.git.known().context("git was read")
    }

    /// Returns the commit of HEAD; `None` outside of git and before the first commit.
    pub fn head(&mut self) -> Result<Option<CommitId>> {
        let failed = "failed to ask git for HEAD";
        match self.git() {
            Ok(git) => git.repository.commit("HEAD").context(failed),
            Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => Ok(None),
            Err(error) => Err(Error::described(failed, error)),
        }
    }
}
