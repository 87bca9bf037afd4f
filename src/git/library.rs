//! Questions that libgit2 answers.

mod history;
mod tree;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use git2::{
    Commit, Delta, Error, ErrorClass, ErrorCode, FileMode, ObjectType, Oid, RepositoryOpenFlags,
    Status, StatusEntry, StatusOptions, SubmoduleIgnore, SubmoduleStatus, Tree,
};

use super::comparison::{TreeComparison, mode};
use super::{
    ChangedFile, CommitId, FileChange, FileState, is_hexadecimal, project_path, repository_path,
};
use crate::path::ProjectPath;

/// The directories that a search for the repository does not go above.
const NO_CEILINGS: &[&str] = &[];

pub(super) struct Library(git2::Repository);

impl CommitId {
    fn from_oid(oid: Oid) -> Self {
        CommitId(oid.to_string())
    }
}

/// Returns whether an error means that a revision names nothing here, rather than that it cannot be
/// read. An id may name a commit that is missing; the commit of HEAD or a branch must exist.
pub(super) fn is_absent(error: &Error, revision: &str) -> bool {
    use ErrorCode::{Ambiguous, InvalidSpec, NotFound, Peel, UnbornBranch};
    match error.code() {
        NotFound if error.class() == ErrorClass::Odb => is_hexadecimal(revision),
        code => matches!(
            code,
            NotFound | UnbornBranch | InvalidSpec | Peel | Ambiguous
        ),
    }
}

fn is_same(a: &Path, b: &Path) -> bool {
    match (dunce::canonicalize(a), dunce::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn is_no_entry(error: &Error) -> bool {
    error.code() == ErrorCode::NotFound && error.class() == ErrorClass::Tree
}

fn optional<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Library {
    /// Opens the repository of a directory that has a `.git`; with its top level, if it has one.
    pub(super) fn open(directory: &Path) -> Result<(Self, Option<PathBuf>), Error> {
        // Unlike `open`, this heeds where a `.git` file was found: there is the top level.
        let flags = RepositoryOpenFlags::NO_SEARCH;
        let repository = git2::Repository::open_ext(directory, flags, NO_CEILINGS)?;
        if is_same(repository.path(), directory) {
            // libgit2 took the directory itself for a repository: its `.git` is not one.
            let message = format!("`{}` is broken", directory.join(".git").display());
            return Err(Error::new(
                ErrorCode::NotFound,
                ErrorClass::Repository,
                message,
            ));
        }
        let top = repository.workdir().map(Path::to_path_buf);
        Ok((Library(repository), top))
    }

    /// Opens the same repository again; `None` if that does not work.
    pub(super) fn reopened(self) -> Option<Self> {
        let (library, _) = Self::open(self.0.workdir()?).ok()?;
        Some(library)
    }

    /// Parses the full name of an object, which may be a SHA-256 one.
    fn oid(&self, digits: &str) -> Result<Oid, Error> {
        Oid::from_str_ext(digits, self.0.object_format())
    }

    fn find(&self, commit: &CommitId) -> Result<Commit<'_>, Error> {
        self.0.find_commit(self.oid(commit.as_str())?)
    }

    pub(super) fn commit(&self, revision: &str) -> Result<CommitId, Error> {
        let commit = self.0.revparse_single(revision)?.peel_to_commit()?;
        Ok(CommitId::from_oid(commit.id()))
    }

    pub(super) fn parents(&self, commit: &CommitId) -> Result<Vec<CommitId>, Error> {
        // The header has the parents that a shallow clone pretends not to know.
        let commit = self.find(commit)?;
        let header = commit.raw_header_bytes().split(|&byte| byte == b'\n');
        header
            .filter_map(|line| line.strip_prefix(b"parent "))
            .map(|parent| {
                let parent = str::from_utf8(parent).unwrap_or_default();
                self.oid(parent).map(CommitId::from_oid)
            })
            .collect()
    }

    pub(super) fn merge_base(&self, a: &CommitId, b: &CommitId) -> Result<Option<CommitId>, Error> {
        let base = self
            .0
            .merge_base(self.oid(a.as_str())?, self.oid(b.as_str())?);
        // In a shallow clone it fails at the boundary, where git continues.
        match base {
            Err(error) if self.has_no_merge_base(&error) && !self.is_shallow()? => Ok(None),
            base => base.map(CommitId::from_oid).map(Some),
        }
    }

    /// Returns whether an error means that two commits have no common ancestor in this clone.
    pub(super) fn has_no_merge_base(&self, error: &Error) -> bool {
        let is_cut_off = error.class() == ErrorClass::Odb && self.is_shallow().unwrap_or(false);
        error.code() == ErrorCode::NotFound && (error.class() == ErrorClass::Merge || is_cut_off)
    }

    pub(super) fn branch(&self) -> Result<Option<String>, Error> {
        let head = self.0.find_reference("HEAD")?;
        let branch = match head.symbolic_target()? {
            Some(target) => target.strip_prefix("refs/heads/"),
            None => None,
        };
        Ok(branch.map(str::to_owned))
    }

    pub(super) fn branches(&self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        for branch in self.0.branches(Some(git2::BranchType::Local))? {
            let (branch, _) = branch?;
            names.push(String::from_utf8_lossy(branch.name_bytes()?).into_owned());
        }
        Ok(names)
    }

    pub(super) fn tags(&self) -> Result<Vec<String>, Error> {
        let names = self.0.tag_names(None)?;
        let names = (0..names.len()).filter_map(|index| names.get_bytes(index));
        Ok(names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect())
    }

    pub(super) fn remotes(&self) -> Result<Vec<String>, Error> {
        let remotes = self.0.remotes()?;
        let names = (0..remotes.len()).filter_map(|index| remotes.get_bytes(index));
        Ok(names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect())
    }

    pub(super) fn remote_head(&self, remote: &str) -> Result<Option<String>, Error> {
        let name = format!("refs/remotes/{remote}/HEAD");
        let Some(head) = optional(self.0.find_reference(&name))? else {
            return Ok(None);
        };
        let Some(target) = head.symbolic_target()? else {
            return Ok(None);
        };
        let branch = target.strip_prefix(&format!("refs/remotes/{remote}/"));
        Ok(branch.map(str::to_owned))
    }

    pub(super) fn config(&self, name: &str) -> Result<Option<String>, Error> {
        optional(self.0.config()?.get_string(name))
    }

    pub(super) fn head_log(&self) -> PathBuf {
        self.0.path().join("logs/HEAD")
    }

    pub(super) fn has_references(&self) -> Result<bool, Error> {
        self.0
            .references()?
            .next()
            .transpose()
            .map(|one| one.is_some())
    }

    pub(super) fn is_shallow(&self) -> Result<bool, Error> {
        // libgit2 looks beside HEAD, where a linked worktree does not have it.
        let boundary = self.0.commondir().join("shallow");
        match boundary.metadata() {
            Ok(file) => Ok(file.len() > 0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::from_str(&format!("{}: {error}", boundary.display()))),
        }
    }

    /// Returns the tree of a directory of a commit; `None` if there is no such directory.
    fn tree(&self, commit: &CommitId, path: &str) -> Result<Option<Tree<'_>>, Error> {
        let tree = self.find(commit)?.tree()?;
        if path.is_empty() {
            return Ok(Some(tree));
        }
        let entry = match tree.get_path(Path::new(path)) {
            Ok(entry) => entry,
            Err(error) if is_no_entry(&error) => return Ok(None),
            // As when a tree on the way is missing in a partial clone.
            Err(error) => return Err(error),
        };
        match entry.kind() {
            Some(ObjectType::Tree) => self.0.find_tree(entry.id()).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn differs_outside(
        &self,
        old: &CommitId,
        new: &CommitId,
        prefix: &str,
    ) -> Result<bool, Error> {
        let (mut old, mut new) = (self.find(old)?.tree()?, self.find(new)?.tree()?);
        for name in prefix.split('/') {
            let others = |tree: &Tree<'_>| -> Vec<(Vec<u8>, Oid, i32)> {
                let entries = tree.iter();
                let others = entries.filter(|entry| entry.name_bytes() != name.as_bytes());
                others
                    .map(|entry| (entry.name_bytes().to_vec(), entry.id(), entry.filemode()))
                    .collect()
            };
            if others(&old) != others(&new) {
                return Ok(true);
            }
            let below = |tree: &Tree<'_>| {
                let entry = tree.get_name(name)?;
                let is_tree = entry.kind() == Some(ObjectType::Tree);
                is_tree.then(|| self.0.find_tree(entry.id()))
            };
            (old, new) = match (below(&old), below(&new)) {
                (Some(old), Some(new)) => (old?, new?),
                _ => return Ok(false),
            };
        }
        Ok(false)
    }

    pub(super) fn differences(
        &self,
        old: &CommitId,
        new: &CommitId,
        prefix: &str,
    ) -> Result<Vec<ChangedFile>, Error> {
        let (old, new) = (self.tree(old, prefix)?, self.tree(new, prefix)?);
        let mut comparison = TreeComparison {
            repository: &self.0,
            path: Vec::new(),
            files: Vec::new(),
        };
        comparison.trees(old.as_ref(), new.as_ref())?;
        Ok(comparison.files)
    }

    pub(super) fn status(&self, prefix: &str) -> Result<Vec<ChangedFile>, Error> {
        let mut options = StatusOptions::new();
        options
            .include_untracked(true)
            .recurse_untracked_dirs(true)
            .include_ignored(false);
        if !prefix.is_empty() {
            options.pathspec(prefix).disable_pathspec_match(true);
        }
        let statuses = self.0.statuses(Some(&mut options))?;
        let mut not_checked_out: Option<HashSet<Vec<u8>>> = None;
        let mut files = Vec::new();
        for entry in statuses.iter() {
            let Some(path) = project_path(entry.path_bytes(), prefix) else {
                continue;
            };
            let mut status = entry.status();
            if status.contains(Status::WT_DELETED) {
                // libgit2 reports files outside of a sparse checkout as deleted.
                let paths = match &mut not_checked_out {
                    Some(paths) => paths,
                    unknown => unknown.insert(self.not_checked_out()?),
                };
                if paths.contains(entry.path_bytes()) {
                    status.remove(Status::WT_DELETED);
                }
                if status.is_empty() {
                    continue;
                }
            }
            if status.contains(Status::INDEX_DELETED | Status::WT_NEW) {
                // It is no longer in the index but still there: git reports both.
                files.push(ChangedFile {
                    path: path.clone(),
                    change: FileChange::Added,
                    state: FileState::Untracked,
                });
            }
            let is_untracked = status == Status::WT_NEW;
            files.push(ChangedFile {
                path,
                change: status_change(&entry, status),
                state: if is_untracked {
                    FileState::Untracked
                } else {
                    FileState::Uncommitted
                },
            });
        }
        self.add_ignored_submodules(prefix, &mut files)?;
        Ok(files)
    }

    pub(super) fn ignored(
        &self,
        prefix: &str,
        files: &[ProjectPath],
    ) -> Result<Vec<ProjectPath>, Error> {
        let mut ignored = Vec::new();
        for file in files {
            if self.0.is_path_ignored(repository_path(file, prefix))? {
                ignored.push(file.clone());
            }
        }
        Ok(ignored)
    }

    /// Adds submodules that have moved or changed although git is configured to ignore them: libgit2's
    /// status leaves them out and has no option to include them.
    fn add_ignored_submodules(
        &self,
        prefix: &str,
        files: &mut Vec<ChangedFile>,
    ) -> Result<(), Error> {
        let changed = SubmoduleStatus::WD_MODIFIED
            | SubmoduleStatus::WD_INDEX_MODIFIED
            | SubmoduleStatus::WD_WD_MODIFIED
            | SubmoduleStatus::WD_UNTRACKED;
        for submodule in self.0.submodules()? {
            let place = submodule.path().to_string_lossy();
            let Some(path) = project_path(place.as_bytes(), prefix) else {
                continue;
            };
            if files.iter().any(|file| file.path == path) {
                continue;
            }
            let status = self.0.submodule_status(&place, SubmoduleIgnore::None)?;
            if status.intersects(changed) {
                files.push(ChangedFile {
                    path,
                    change: FileChange::Repository,
                    state: FileState::Uncommitted,
                });
            }
        }
        Ok(())
    }

    /// Returns the files that are not in the working tree because the checkout is sparse.
    fn not_checked_out(&self) -> Result<HashSet<Vec<u8>>, Error> {
        let skipped = git2::IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
        let index = self.0.index()?;
        let entries = index
            .iter()
            .filter(|entry| entry.flags_extended & skipped != 0);
        Ok(entries.map(|entry| entry.path).collect())
    }

    pub(super) fn files_in(
        &self,
        commit: &CommitId,
        prefix: &str,
        directories: &[ProjectPath],
    ) -> Result<Vec<Vec<String>>, Error> {
        let names = directories.iter().map(|directory| {
            let tree = self.tree(commit, &repository_path(directory, prefix))?;
            let entries = tree.iter().flat_map(Tree::iter);
            let files = entries.filter(is_file);
            let mut names: Vec<String> = files
                .filter_map(|entry| entry.name().ok().map(str::to_owned))
                .collect();
            names.sort_unstable();
            Ok(names)
        });
        names.collect()
    }

    pub(super) fn contents(
        &self,
        ids: &[&str],
        max_bytes: u32,
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let objects = self.0.odb()?;
        let content = |id: &&str| {
            let id = self.oid(id)?;
            // Looks at the size first: a large file is not worth unpacking.
            let (size, _) = objects.read_header(id)?;
            if size > max_bytes as usize {
                return Ok(None);
            }
            Ok(Some(self.0.find_blob(id)?.content().to_vec()))
        };
        ids.iter().map(content).collect()
    }

    pub(super) fn read(
        &self,
        commit: &CommitId,
        prefix: &str,
        files: &[ProjectPath],
    ) -> Result<Vec<Vec<u8>>, Error> {
        let tree = self.find(commit)?.tree()?;
        let contents = files.iter().map(|file| {
            let entry = tree.get_path(Path::new(&repository_path(file, prefix)))?;
            Ok(self.0.find_blob(entry.id())?.content().to_vec())
        });
        contents.collect()
    }
}

/// Returns a file or link of a directory.
fn is_file(entry: &git2::TreeEntry<'_>) -> bool {
    matches!(mode(entry), FileMode::Blob | FileMode::BlobExecutable)
}

fn status_change(entry: &StatusEntry<'_>, status: Status) -> FileChange {
    let deltas = [entry.head_to_index(), entry.index_to_workdir()];
    let was = |mode| {
        let mut deltas = deltas.iter().flatten();
        deltas.any(|delta| delta.old_file().mode() == mode)
    };
    let is_repository = deltas.iter().flatten().any(|delta| {
        // An untracked directory is only reported as such if it is another repository.
        let is_untracked =
            || delta.status() == Delta::Untracked && entry.path_bytes().ends_with(b"/");
        [delta.old_file(), delta.new_file()]
            .iter()
            .any(|file| file.mode() == FileMode::Commit)
            || is_untracked()
    });
    if is_repository {
        FileChange::Repository
    } else if status.contains(Status::CONFLICTED) {
        FileChange::Conflicted
    } else if status.intersects(Status::INDEX_DELETED | Status::WT_DELETED) {
        if was(FileMode::Link) {
            FileChange::DeletedLink
        } else {
            FileChange::Deleted
        }
    } else if status.intersects(Status::INDEX_NEW | Status::WT_NEW) {
        FileChange::Added
    } else if status.intersects(Status::INDEX_TYPECHANGE | Status::WT_TYPECHANGE) {
        FileChange::Retyped
    } else {
        FileChange::Modified
    }
}
