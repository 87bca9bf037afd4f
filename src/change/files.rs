//! The files that differ from the base, and the lookups that the rules need.

use std::collections::BTreeSet;

use crate::git::{ChangedFile, FileChange};
use crate::path::ProjectPath;
use crate::project::stack::Stacks;

/// The files that differ from the base.
#[derive(Debug, Clone, Default)]
pub struct ChangedFiles {
    /// By path, each path once.
    in_path_order: Vec<ChangedFile>,
    /// The configuration files with the same canonical text as at the base.
    same: BTreeSet<ProjectPath>,
}

impl ChangedFiles {
    /// Collects files in any order. Of several changes of one file, the one closest to the base counts.
    pub fn new(mut files: Vec<ChangedFile>) -> Self {
        files.sort_unstable_by(|a, b| (&a.path, a.state).cmp(&(&b.path, b.state)));
        files.dedup_by(|later, kept| later.path == kept.path);
        ChangedFiles {
            in_path_order: files,
            same: BTreeSet::new(),
        }
    }

    /// Marks configuration files that have the same canonical text as at the base.
    #[must_use]
    pub fn with_unchanged(self, same: BTreeSet<ProjectPath>) -> Self {
        ChangedFiles { same, ..self }
    }

    /// Returns whether a file is a configuration file with the same canonical text as at the base.
    pub(super) fn is_unchanged(&self, path: &ProjectPath) -> bool {
        self.same.contains(path)
    }

    /// Splits off the configuration files with the same canonical text as at the base, which count only where
    /// a file counts by its bytes.
    pub(super) fn split_unchanged(&self) -> (Self, Self) {
        let files = self.clone().with_unchanged(BTreeSet::new());
        files.partition(|file| !self.is_unchanged(&file.path))
    }

    pub fn iter(&self) -> impl Iterator<Item = &ChangedFile> {
        self.in_path_order.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.in_path_order.is_empty()
    }

    pub fn at(&self, path: &str) -> Option<&ChangedFile> {
        let index = self
            .in_path_order
            .binary_search_by(|file| file.path.as_str().cmp(path));
        index.ok().map(|index| &self.in_path_order[index])
    }

    pub fn below(&self, directory: &ProjectPath) -> impl Iterator<Item = &ChangedFile> {
        let prefix = directory.prefix_of_below();
        let start = self
            .in_path_order
            .partition_point(|file| *file.path.as_str() < *prefix);
        self.in_path_order[start..]
            .iter()
            .take_while(move |file| file.path.as_str().starts_with(&prefix))
    }

    /// Returns a change that may alter what is found at `path`: of the file itself, of something below it, or
    /// of a link or submodule above it.
    pub fn touching(&self, path: &ProjectPath) -> Option<&ChangedFile> {
        if self.is_empty() {
            return None;
        }
        self.touching_above(path)
            .or_else(|| self.below(path).next())
    }

    /// Returns a change of the file itself, or of a link or submodule above it.
    pub fn touching_above(&self, path: &ProjectPath) -> Option<&ChangedFile> {
        let mut places = std::iter::once(path.as_str()).chain(path.ancestors());
        places.find_map(|location| self.at(location))
    }

    /// Splits off the files at or below a directory.
    pub(super) fn without(self, directory: &ProjectPath) -> (Self, Self) {
        let is_there = |file: &ChangedFile| file.path.is_at_or_below(directory);
        self.partition(|file| !is_there(file))
    }

    /// Splits off the files that are not to be kept.
    pub(super) fn partition(self, keep: impl FnMut(&ChangedFile) -> bool) -> (Self, Self) {
        let (kept, others) = self.in_path_order.into_iter().partition(keep);
        let files = |in_path_order| ChangedFiles {
            in_path_order,
            same: self.same.clone(),
        };
        (files(kept), files(others))
    }

    /// Removes the files that are also among `others`.
    pub(super) fn except(mut self, others: &ChangedFiles) -> Self {
        self.in_path_order
            .retain(|file| others.at(file.path.as_str()).is_none());
        self
    }

    /// Adds `others`.
    pub(super) fn and(mut self, others: ChangedFiles) -> Self {
        self.in_path_order.extend(others.in_path_order);
        ChangedFiles::new(self.in_path_order)
    }
}

/// Returns the stacks that own a changed file: the nearest stack at or above it. For a nested repository, all
/// stacks in it.
pub(super) fn stacks_of<'s>(
    file: &ChangedFile,
    stacks: &'s Stacks,
) -> impl Iterator<Item = crate::project::stack::StackIndex> + use<'s> {
    let inside = (file.change == FileChange::Repository)
        .then(|| stacks.at_or_below(&file.path))
        .into_iter()
        .flatten();
    inside.chain(stacks.nearest_above(&file.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::FileState;

    fn path(text: &str) -> ProjectPath {
        ProjectPath::root().resolve(text).unwrap()
    }

    fn files(paths: &[&str]) -> ChangedFiles {
        let file = |text: &&str| ChangedFile {
            path: path(text),
            change: FileChange::Modified,
            state: FileState::Committed,
        };
        ChangedFiles::new(paths.iter().map(file).collect())
    }

    #[test]
    fn a_sibling_with_the_same_prefix_is_not_touched() {
        let files = files(&["/a-b/x", "/ab", "/link"]);
        let touching = |text: &str| {
            files
                .touching(&path(text))
                .map(|file| file.path.to_string())
        };
        assert_eq!(touching("/a"), None);
        assert_eq!(touching("/a-b"), Some("/a-b/x".into()));
        assert_eq!(touching("/a-b/x"), Some("/a-b/x".into()));
        assert_eq!(touching("/link/deep/below"), Some("/link".into()));
        assert_eq!(touching("/"), Some("/a-b/x".into()));
    }
}
