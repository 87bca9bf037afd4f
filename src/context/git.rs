//! Git as a command sees it: the repository, and what is not committed.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;

use tracing::debug;

use super::Context;
use crate::error::{Error, ErrorContext as _, Result};
use crate::git::{ChangedFile, CommitId, FileState, GitError, Repository};

/// The state of git, which another thread reads while this one reads the project.
///
/// The thread owns all that it needs, and only a caller that needs the state waits for it: a command
/// that ends early because of the configuration does not wait for git.
pub struct GitReader(thread::JoinHandle<Result<GitState, GitError>>);

pub struct GitState {
    pub repository: Repository,
    pub status: Result<Vec<ChangedFile>, GitError>,
    /// Whether the status need not be exact.
    pub is_rough: bool,
}

/// Returns what is not committed, without saved plans: these are no work in progress.
pub fn exact_status(repository: &Repository, root: &Path) -> Result<Vec<ChangedFile>, GitError> {
    let status = repository.status()?;
    Ok(without_plans(root, status))
}

fn without_plans(root: &Path, mut status: Vec<ChangedFile>) -> Vec<ChangedFile> {
    status.retain(|file| {
        file.state != FileState::Untracked || !is_saved_plan(&file.path.to_host(root))
    });
    status
}

fn read(root: &Path, is_rough: bool) -> Result<GitState, GitError> {
    let repository = Repository::open(root)?;
    let status = if is_rough {
        repository
            .rough_status()
            .map(|files| without_plans(root, files))
    } else {
        exact_status(&repository, root)
    };
    debug!("status read");
    Ok(GitState {
        repository,
        status,
        is_rough,
    })
}

impl GitReader {
    /// Starts to read; the status need not be exact if `is_rough`.
    pub fn start(root: &Path, is_rough: bool) -> Self {
        let root: PathBuf = root.to_path_buf();
        GitReader(thread::spawn(move || read(&root, is_rough)))
    }

    pub(super) fn join(self) -> Result<GitState, GitError> {
        match self.0.join() {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Context {
    /// Returns the state of git. Must be called once.
    pub fn read(&mut self) -> Result<GitState, GitError> {
        match (self.read.take(), self.reading.take()) {
            (Some(read), _) => Ok(read),
            (None, Some(reading)) => reading.join(),
            (None, None) => read(&self.project.root, false),
        }
    }

    /// Returns the commit of HEAD; nothing outside of git and before the first commit.
    pub fn head(&mut self) -> Result<Option<CommitId>> {
        let failed = "failed to ask git for HEAD";
        let read = match self.read() {
            Ok(read) => read,
            Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => return Ok(None),
            Err(error) => return Err(Error::described(failed, error)),
        };
        let head = read.repository.commit("HEAD").context(failed);
        self.read = Some(read);
        head
    }
}

/// What a saved plan ends with.
pub(crate) const PLAN_MARK: &str = "orch plan ";

/// Returns whether a file is a saved plan, by its last bytes: such a file is no work in progress.
fn is_saved_plan(file: &Path) -> bool {
    let found = || -> io::Result<bool> {
        if !file.symlink_metadata()?.is_file() {
            return Ok(false);
        }
        let mut file = std::fs::File::open(file)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(128)))?;
        let mut end = Vec::new();
        file.take(128).read_to_end(&mut end)?;
        Ok(memchr::memmem::find(&end, PLAN_MARK.as_bytes()).is_some())
    };
    found().unwrap_or(false)
}
