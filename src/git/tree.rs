//! The files of a project as a commit has them.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{CommitId, GitError, Repository};
use crate::path::ProjectPath;
use crate::project::discover::{FileTree, TreeEntry};

pub struct CommitTree {
    repository: Mutex<Repository>,
    commit: CommitId,
    scope: Option<TreeScope>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct TreeScope {
    /// Directories whose own files are wanted.
    pub(crate) directories: Vec<ProjectPath>,
    /// Directories whose whole contents are wanted, too.
    pub(crate) trees: Vec<ProjectPath>,
}

impl CommitTree {
    pub fn new(repository: Repository, commit: CommitId) -> Self {
        CommitTree {
            repository: Mutex::new(repository),
            commit,
            scope: None,
        }
    }

    #[must_use]
    pub(crate) fn within(self, scope: TreeScope) -> Self {
        CommitTree {
            scope: Some(scope),
            ..self
        }
    }

    fn repository(&self) -> MutexGuard<'_, Repository> {
        self.repository
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileTree for CommitTree {
    fn entries(&self) -> io::Result<Vec<TreeEntry>> {
        let repository = self.repository();
        let entries = repository.entries(&self.commit, self.scope.as_ref());
        entries.map_err(io::Error::other)
    }

    fn read(&self, ids: &[&str], max_bytes: u32) -> io::Result<Vec<Option<Vec<u8>>>> {
        let contents = self.repository().contents(ids, max_bytes);
        contents.map_err(io::Error::other)
    }
}

impl Repository {
    /// Returns the files and links of a commit that lie in the project; submodules are none.
    fn entries(
        &self,
        commit: &CommitId,
        scope: Option<&TreeScope>,
    ) -> Result<Vec<TreeEntry>, GitError> {
        ask!(self, entries(commit, &self.prefix, scope))
    }

    /// Returns the contents of files; `None` for those that are larger than `max_bytes`.
    pub(super) fn contents(
        &self,
        ids: &[&str],
        max_bytes: u32,
    ) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        ask!(self, contents(ids, max_bytes))
    }
}
