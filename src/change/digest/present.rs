//! The files that count as inputs, as git would record them now.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use crate::change::trigger;
use crate::change::uncounted::IgnoreEntries;
use crate::git::{
    ChangedFile, CommitId, GitError, RecordedFile, RecordedMode, Repository, blob_id, is_blob,
    is_executable,
};
use crate::on_disk::if_there;
use crate::path::ProjectPath;
use crate::project::Project;

/// The files, links and submodules of a project, without ignored files and triggers.
pub(super) struct PresentFiles {
    in_path_order: Vec<PresentFile>,
}

/// A file of HEAD or of the working tree.
pub(super) struct PresentFile {
    pub(super) path: ProjectPath,
    /// The mode and the content id; `None` if it was deleted.
    recorded: Option<(RecordedMode, String)>,
    /// Whether HEAD has the same content and mode.
    pub(super) is_committed: bool,
}

impl PresentFile {
    /// Returns the line to digest; `None` if it was deleted.
    pub(super) fn line(&self) -> Option<String> {
        let (mode, id) = self.recorded.as_ref()?;
        let (path, mode) = (self.path.as_str(), mode.as_str());
        Some(format!("{path}\0{mode} {id}\n"))
    }

    /// Returns the line to digest for a canonical text, whatever the permissions; `None` if it was deleted.
    pub(super) fn canonical_line(&self, said: &str) -> Option<String> {
        self.recorded.as_ref()?;
        let (path, mode) = (self.path.as_str(), RecordedMode::File.as_str());
        Some(format!("{path}\0{mode} says\n{said}"))
    }

    /// Returns whether it is a regular file that exists.
    pub(super) fn is_plain(&self) -> bool {
        let mode = self.recorded.as_ref().map(|(mode, _)| mode);
        matches!(mode, Some(RecordedMode::File | RecordedMode::Executable))
    }

    pub(super) fn has_content(&self, bytes: &[u8]) -> bool {
        let id = self.recorded.as_ref().map(|(_, id)| id);
        id.is_some_and(|id| is_blob(id, bytes))
    }

    pub(super) fn is_repository(&self) -> bool {
        matches!(self.recorded, Some((RecordedMode::Repository, _)))
    }
}

impl PresentFiles {
    /// Reads HEAD, and the files that differ from it from disk. `status` has the counted uncommitted changes.
    pub(super) fn read(
        project: &Project,
        repository: &Repository,
        head: Option<&CommitId>,
        status: &[ChangedFile],
    ) -> Result<Self, GitError> {
        let recorded = match head {
            Some(head) => repository.recorded(head)?,
            None => Vec::new(),
        };
        let committed = recorded
            .into_iter()
            .map(|RecordedFile { path, mode, id }| PresentFile {
                path,
                recorded: Some((mode, id)),
                is_committed: true,
            });
        let mut uncommitted: HashMap<ProjectPath, PresentFile> = HashMap::new();
        let mut plain: Vec<ProjectPath> = Vec::new();
        for changed in status {
            let path = &changed.path;
            let place = path.to_host(&project.root);
            let recorded = recorded_on_disk(&place)?;
            if matches!(
                recorded,
                Some((RecordedMode::File | RecordedMode::Executable, _))
            ) {
                plain.push(path.clone());
            }
            uncommitted.insert(
                path.clone(),
                PresentFile {
                    path: path.clone(),
                    recorded,
                    is_committed: false,
                },
            );
        }
        plain.sort_unstable();
        plain.dedup();
        let ids = repository.ids_on_disk(&plain)?;
        for (path, id) in plain.iter().zip(ids) {
            if let Some(file) = uncommitted.get_mut(path) {
                let mode = file.recorded.take().map(|(mode, _)| mode);
                file.recorded = mode.zip(id);
            }
        }
        let ignores = IgnoreEntries::of(project);
        let triggers = trigger::directory();
        let counts = |file: &PresentFile| {
            !file.path.is_at_or_below(&triggers)
                && ignores.find_at(&file.path, file.is_repository()).is_none()
        };
        let committed = committed.filter(|file| !uncommitted.contains_key(&file.path));
        let mut in_path_order: Vec<PresentFile> = committed.filter(&counts).collect();
        in_path_order.extend(uncommitted.into_values().filter(counts));
        // Names that are not UTF-8 may have become equal.
        let order = |a: &PresentFile, b: &PresentFile| {
            a.path.cmp(&b.path).then_with(|| a.line().cmp(&b.line()))
        };
        in_path_order.sort_unstable_by(order);
        Ok(PresentFiles { in_path_order })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PresentFile> {
        self.in_path_order.iter()
    }

    pub(super) fn at(&self, path: &str) -> Option<&PresentFile> {
        let index = self
            .in_path_order
            .binary_search_by(|file| file.path.as_str().cmp(path));
        index.ok().map(|index| &self.in_path_order[index])
    }

    /// Returns the files below a directory, by path.
    pub(super) fn below(&self, directory: &ProjectPath) -> impl Iterator<Item = &PresentFile> {
        let prefix = directory.prefix_of_below();
        let start = self
            .in_path_order
            .partition_point(|file| *file.path.as_str() < *prefix);
        self.in_path_order[start..]
            .iter()
            .take_while(move |file| file.path.as_str().starts_with(&prefix))
    }
}

/// Returns what git would record for a place on disk; for a regular file, without its id.
fn recorded_on_disk(place: &Path) -> Result<Option<(RecordedMode, String)>, GitError> {
    let unreadable = |error: io::Error| GitError::Unreadable(place.to_owned(), error);
    let Some(found) = if_there(place.symlink_metadata()).map_err(unreadable)? else {
        return Ok(None);
    };
    if found.is_symlink() {
        return Ok(blob_id(place)?.map(|id| (RecordedMode::Link, id)));
    }
    if found.is_dir() {
        // A submodule counts by its commit, and by whether it differs from the one at HEAD.
        let head = git_head(place)?;
        return Ok(Some((RecordedMode::Repository, format!("{head} changed"))));
    }
    let mode = match is_executable(place) {
        Some(true) => RecordedMode::Executable,
        _ => RecordedMode::File,
    };
    Ok(Some((mode, String::new())))
}

/// Returns the commit of a nested repository; empty if it has none.
fn git_head(place: &Path) -> Result<String, GitError> {
    let head = match Repository::open(place) {
        Ok(repository) => repository.commit("HEAD")?,
        Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => None,
        Err(error) => return Err(error),
    };
    Ok(head.map_or_else(String::new, |head| head.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_file_or_repository_that_cannot_be_read_is_not_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("circle", place("circle")).unwrap();
        std::fs::create_dir(place("sub")).unwrap();
        std::os::unix::fs::symlink(".git", place("sub/.git")).unwrap();
        assert!(recorded_on_disk(&place("none")).unwrap().is_none());
        for name in ["circle/file", "sub"] {
            let error = recorded_on_disk(&place(name)).unwrap_err();
            assert!(error.to_string().ends_with("cannot be read"), "{error}");
        }
    }
}
