//! The interface to git: commits, their relations, and files that differ.
//!
//! libgit2 is asked first, in this process. If it fails (it reads neither reftables nor sparse or split indexes, and
//! fetches nothing for a partial clone), the `git` program is asked; without that, libgit2's error is reported. For
//! the status, the order is reversed; see [`Repository::status`].
//!
//! Only [`Repository::fetch`], [`Repository::set_remote_head`] and [`Repository::check_out`] write to the repository.
//! This module doesn't know bases or stacks.

/// Asks libgit2, or the `git` program if libgit2 cannot answer. Both have the same methods.
macro_rules! ask {
    ($repository:ident, $question:ident($($given:expr),*)) => {
        $repository.ask(
            |library| library.$question($($given),*),
            |program| program.$question($($given),*),
        )
    };
}

mod answer;
mod blob;
mod commit_id;
mod comparison;
mod error;
mod file;
mod history;
mod holdings;
mod library;
mod program;
mod recorded;
mod remote;
mod submodules;
mod tree;
mod worktree;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use tracing::debug;

pub use self::blob::{blob_id, is_blob, is_executable};
pub use self::commit_id::CommitId;
use self::error::instead_of;
pub use self::error::{GitError, command_line};
pub use self::file::{ChangedFile, FileChange, FileState};
pub use self::history::{BranchWith, CommitText, HistoryCommit};
pub use self::history::{Departure, RENAME_LIMIT, SIMILARITY};
pub use self::holdings::Holds;
pub(crate) use self::holdings::Search;
use self::library::Library;
use self::program::Program;
pub use self::recorded::{RecordedFile, RecordedMode};
pub use self::submodules::missing_submodules;
pub use self::tree::CommitTree;
pub(crate) use self::tree::TreeScope;
pub use self::worktree::Worktree;
use crate::path::ProjectPath;
use crate::project::discover;

/// Returns whether a text consists of hexadecimal digits, as the name of a commit does.
pub(crate) fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub struct Repository {
    /// The project root, relative to git's top level, `/`-separated; empty if they are the same.
    prefix: String,
    library: Option<Library>,
    program: Program,
}

impl Repository {
    /// Opens the repository whose working tree contains the project root, which must be absolute and
    /// free of links.
    pub fn open(root: &Path) -> Result<Self, GitError> {
        let place = match discover::git_top_level(root) {
            Ok(Some(place)) => place,
            Ok(None) => return Err(GitError::NoRepository(root.to_path_buf())),
            Err((git, error)) => return Err(GitError::Unreadable(git, error)),
        };
        let (library, top) = match Library::open(place) {
            Ok((library, top)) => (Some(library), top),
            Err(error) => {
                debug!(%error, "libgit2 cannot open the repository");
                let top = Program::new(place).top_level();
                (None, top.map_err(|failure| instead_of(error, failure))?)
            }
        };
        let canonical = |top: PathBuf| {
            dunce::canonicalize(&top).map_err(|error| GitError::Unreadable(top, error))
        };
        let place = top.map(canonical).transpose()?.and_then(|top| {
            let prefix = ProjectPath::from_host(&top, root)?.relative().to_owned();
            Some((top, prefix))
        });
        let Some((top, prefix)) = place else {
            return Err(GitError::NoWorkingTree(root.to_path_buf()));
        };
        debug!(top = %top.display(), %prefix, "repository opened");
        Ok(Repository {
            prefix,
            library,
            program: Program::new(&top),
        })
    }

    /// Returns the path of the project root from git's top level, `/`-separated; empty if they are the
    /// same.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Asks libgit2 and, if it cannot answer, the `git` program.
    fn ask<T>(
        &self,
        library: impl FnOnce(&Library) -> Result<T, git2::Error>,
        program: impl FnOnce(&Program) -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        let Some(own) = &self.library else {
            return program(&self.program);
        };
        library(own).or_else(|error| {
            debug!(%error, "libgit2 cannot read this, asking git");
            program(&self.program).map_err(|failure| instead_of(error, failure))
        })
    }

    /// Returns the commit that a revision names, or `None` if that commit is not present.
    pub fn commit(&self, revision: &str) -> Result<Option<CommitId>, GitError> {
        let Some(library) = &self.library else {
            return self.program.commit(revision);
        };
        let error = match library.commit(revision) {
            Ok(commit) => return Ok(Some(commit)),
            Err(error) => error,
        };
        debug!(%error, "libgit2 cannot read this, asking git");
        let is_absent = library::is_absent(&error, revision);
        match self
            .program
            .commit(revision)
            .map_err(|it| instead_of(error, it))
        {
            Err(GitError::Library(_)) if is_absent => Ok(None),
            // git treats an empty branch file as a missing branch.
            Ok(None) if !is_absent => Err(GitError::Damaged(revision.to_owned())),
            asked => asked,
        }
    }

    /// Returns the parents of a commit, whether they are present or cut off in a shallow clone.
    pub fn parents(&self, commit: &CommitId) -> Result<Vec<CommitId>, GitError> {
        ask!(self, parents(commit))
    }

    /// Returns the best common ancestor of two commits, or `None` if none is present.
    pub fn merge_base(&self, a: &CommitId, b: &CommitId) -> Result<Option<CommitId>, GitError> {
        let asked = ask!(self, merge_base(a, b));
        match asked {
            Err(GitError::Library(error))
                if self
                    .library
                    .as_ref()
                    .is_some_and(|it| it.has_no_merge_base(&error)) =>
            {
                Ok(None)
            }
            asked => asked,
        }
    }

    /// Returns the ends of the history of a commit: commits without parents, and the boundary of a shallow clone.
    pub fn ends(&self, commit: &CommitId) -> Result<Vec<CommitId>, GitError> {
        // libgit2 reports the missing parents, too, and only users who can fetch need this.
        self.program.ends(commit)
    }

    pub fn branch(&self) -> Result<Option<String>, GitError> {
        self.ask(Library::branch, Program::branch)
    }

    pub fn branches(&self) -> Result<Vec<String>, GitError> {
        self.ask(Library::branches, Program::branches)
    }

    /// Returns, for each of some present commits, a branch that contains it. Remote branches are preferred to local
    /// ones, and branches at the commit to others.
    pub fn branches_with(
        &self,
        commits: &BTreeSet<CommitId>,
    ) -> Result<BTreeMap<CommitId, BranchWith>, GitError> {
        // libgit2 would walk the history once for each branch.
        match self.program.branches_with(commits) {
            Err(GitError::Start(error)) => {
                debug!(%error, "there is no git to ask for branches");
                let unknown = commits.iter();
                Ok(unknown
                    .map(|it| (it.clone(), BranchWith::Unknown))
                    .collect())
            }
            asked => asked,
        }
    }

    pub fn tags(&self) -> Result<Vec<String>, GitError> {
        self.ask(Library::tags, Program::tags)
    }

    pub fn remotes(&self) -> Result<Vec<String>, GitError> {
        self.ask(Library::remotes, Program::remotes)
    }

    /// Returns the branch that a remote's HEAD pointed to when it was last seen, if it was.
    pub fn remote_head(&self, remote: &str) -> Result<Option<String>, GitError> {
        ask!(self, remote_head(remote))
    }

    pub fn config(&self, name: &str) -> Result<Option<String>, GitError> {
        ask!(self, config(name))
    }

    pub fn is_shallow(&self) -> Result<bool, GitError> {
        self.ask(Library::is_shallow, Program::is_shallow)
    }

    /// Returns the files of the project that differ between two commits, in any order.
    pub fn differences(
        &self,
        old: &CommitId,
        new: &CommitId,
    ) -> Result<Vec<ChangedFile>, GitError> {
        if old == new {
            return Ok(Vec::new());
        }
        ask!(self, differences(old, new, &self.prefix))
    }

    /// Returns whether files of the repository that lie outside the project differ between two commits.
    pub fn differs_outside(&self, old: &CommitId, new: &CommitId) -> Result<bool, GitError> {
        if old == new || self.prefix.is_empty() {
            return Ok(false);
        }
        ask!(self, differs_outside(old, new, &self.prefix))
    }

    /// Returns the files of the project that differ between HEAD, the index and the working tree, in any order.
    /// Ignored files are left out.
    ///
    /// The `git` program is asked first, if there is one: libgit2 ignores some negated rules of `.gitignore` and runs
    /// no filters (large files, encryption), so it misses files and reports changes that do not exist; and with tens
    /// of thousands of files it takes twice as long.
    pub fn status(&self) -> Result<Vec<ChangedFile>, GitError> {
        match self.program.status(&self.prefix) {
            Err(GitError::Start(error)) => debug!(%error, "there is no git to ask for the status"),
            asked => return asked,
        }
        self.rough_status()
    }

    /// Like [`Self::status`], but asks libgit2 first: where an extra or a missing file does no harm, this
    /// avoids starting a program.
    pub fn rough_status(&self) -> Result<Vec<ChangedFile>, GitError> {
        ask!(self, status(&self.prefix))
    }

    /// Returns which of some new files of the project git ignores, in the order asked for. The files may be tracked
    /// or not.
    ///
    /// As in [`Self::status`], which leaves these files out, the `git` program is asked first.
    pub fn ignored(&self, files: &[ProjectPath]) -> Result<Vec<ProjectPath>, GitError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        match self.program.ignored(&self.prefix, files) {
            Err(GitError::Start(error)) => debug!(%error, "there is no git to ask what it ignores"),
            asked => return asked,
        }
        ask!(self, ignored(&self.prefix, files))
    }

    /// Returns the files of a commit that lie directly in the given directories of the project: for
    /// each directory, their names, sorted. Links and submodules do not count as files.
    pub fn files_in(
        &self,
        commit: &CommitId,
        directories: &[ProjectPath],
    ) -> Result<Vec<Vec<String>>, GitError> {
        ask!(self, files_in(commit, &self.prefix, directories))
    }

    /// Returns the contents of files of a commit, in the order asked for.
    ///
    /// If git cannot answer, for example because one of the files does not exist.
    pub fn read(&self, commit: &CommitId, files: &[ProjectPath]) -> Result<Vec<Vec<u8>>, GitError> {
        ask!(self, read(commit, &self.prefix, files))
    }

    /// Returns the commit of a branch of a remote; `None` if there is no such branch. This needs the network, and
    /// never prompts.
    pub fn remote_tip(&self, remote: &str, branch: &str) -> Result<Option<CommitId>, GitError> {
        self.program.remote_tip(remote, branch)
    }

    /// Returns the branch that a remote's HEAD names now; `None` if it names none. This needs the network, with the
    /// user's terminal and credentials.
    pub fn ask_remote_head(&self, remote: &str) -> Result<Option<String>, GitError> {
        self.program.ask_remote_head(remote)
    }

    pub fn set_remote_head(&self, remote: &str, branch: &str) -> Result<(), GitError> {
        self.program.set_remote_head(remote, branch)
    }

    /// Returns whether a commit is part of the history of another one that is present.
    pub fn is_ancestor(&self, commit: &CommitId, of: &CommitId) -> Result<bool, GitError> {
        let is_present = self.commit(commit.as_str())?.as_ref() == Some(commit);
        if is_present && self.merge_base(commit, of)?.as_ref() == Some(commit) {
            return Ok(true);
        }
        if !self.is_shallow()? {
            return Ok(false);
        }
        // A commit at the boundary of a shallow clone still names its parents.
        for end in self.ends(of)? {
            if self.parents(&end)?.contains(commit) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether nothing was ever committed here, on any branch: HEAD has no history either.
    pub fn is_unborn(&self) -> Result<bool, GitError> {
        Ok(self.commit("HEAD")?.is_none()
            && !self.ask(Library::has_references, Program::has_references)?
            && !self.has_head_log()?)
    }

    fn has_head_log(&self) -> Result<bool, GitError> {
        let path = self.ask(|library| Ok(library.head_log()), Program::head_log)?;
        match path.metadata() {
            Ok(log) => Ok(log.len() > 0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(GitError::Unreadable(path, error)),
        }
    }

    /// Runs `git fetch` with these arguments, with the user's terminal and credentials. Its output is on stderr.
    pub fn fetch(&mut self, arguments: &[String]) -> Result<(), GitError> {
        self.program.fetch(arguments)?;
        // libgit2 may have cached the old history.
        self.library = self.library.take().and_then(Library::reopened);
        Ok(())
    }
}

/// Returns the project path for a path relative to git's top level; `None` if it is outside of the project.
fn project_path(path: &[u8], prefix: &str) -> Option<ProjectPath> {
    let inside = match prefix {
        "" => path,
        prefix => path.strip_prefix(prefix.as_bytes())?.strip_prefix(b"/")?,
    };
    // git gives a nested repository that it does not track with a trailing slash.
    let inside = inside.strip_suffix(b"/").unwrap_or(inside);
    Some(ProjectPath::from_normal(&format!(
        "/{}",
        String::from_utf8_lossy(inside)
    )))
}

/// Returns the path of a place in the project relative to git's top level.
fn repository_path(path: &ProjectPath, prefix: &str) -> String {
    match (prefix, path.relative()) {
        ("", path) => path.to_owned(),
        (prefix, "") => prefix.to_owned(),
        (prefix, path) => format!("{prefix}/{path}"),
    }
}
