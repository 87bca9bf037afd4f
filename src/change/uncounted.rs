//! Files that differ from the base and do not count: changes in their state are disabled, or the
//! configuration ignores them.

use std::collections::HashMap;

use super::cause::SwitchedOff;
use super::files::ChangedFiles;
use super::trigger::{self, TriggerFile, TriggerKind};
use crate::git::{ChangedFile, FileChange, FileState};
use crate::path::ProjectPath;
use crate::project::stack::StackIndex;
use crate::project::{Ignore, Problems, Project};

/// The uncommitted changes that count: all that are not disabled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountedStates {
    /// The setting that disables untracked files.
    pub untracked: Option<SwitchedOff>,
    /// The setting that disables uncommitted changes.
    pub uncommitted: Option<SwitchedOff>,
}

impl CountedStates {
    /// Returns the setting that disables changes in a state.
    pub fn off(self, state: FileState) -> Option<SwitchedOff> {
        match state {
            FileState::Committed => None,
            FileState::Uncommitted => self.uncommitted,
            FileState::Untracked => self.untracked,
        }
    }
}

/// The files that differ from the base and do not count. A file is in at most one of these lists, and in none
/// if another change of it counts. Those in `same` may still count for stacks that read their bytes.
#[derive(Debug, Clone, Default)]
pub struct UncountedFiles {
    pub counted: CountedStates,
    /// Files that would count if changes in their state were not disabled.
    pub off: ChangedFiles,
    /// Files that the configuration ignores, in any state.
    pub ignored: ChangedFiles,
    /// Trigger files whose state is disabled.
    pub triggers: ChangedFiles,
    /// Configuration files with the same canonical text as at the base.
    pub same: ChangedFiles,
}

impl UncountedFiles {
    pub fn count(&self) -> usize {
        let all = [&self.off, &self.ignored, &self.triggers, &self.same];
        all.into_iter().map(|files| files.iter().count()).sum()
    }

    /// Returns the first file that would trigger a stack if the file counted.
    pub fn trigger_of(&self, project: &Project, stack: StackIndex) -> Option<&ChangedFile> {
        let path = &project.stacks[stack].path;
        // Problems in an uncounted file are not reported.
        let mut ignored = Problems::default();
        let mut files = self.triggers.iter();
        files.find(|file| {
            !file.change.is_deletion()
                && trigger::directory_of(&file.path) == *path.directory()
                && matches!(
                    trigger::read(&project.root, &file.path, &mut ignored),
                    TriggerFile::Trigger(statement) if statement.kind == TriggerKind::Changed
                        && (statement.key.is_none() || statement.key.as_ref() == path.key())
                )
        })
    }
}

/// The `ignore` entries of the configuration, by directory.
pub(super) struct IgnoreEntries<'p>(HashMap<&'p str, &'p [Ignore]>);

impl<'p> IgnoreEntries<'p> {
    pub(super) fn of(project: &'p Project) -> Self {
        let scopes = project
            .scopes
            .iter()
            .filter(|(_, scope)| !scope.ignore.is_empty());
        IgnoreEntries(
            scopes
                .map(|(directory, scope)| (directory.as_str(), &*scope.ignore))
                .collect(),
        )
    }

    /// Returns the nearest entry that matches a file.
    pub(super) fn find(&self, file: &ChangedFile) -> Option<&'p Ignore> {
        self.find_at(&file.path, file.change == FileChange::Repository)
    }

    /// Returns the nearest entry that matches a file or repository at a path.
    pub(super) fn find_at(&self, path: &ProjectPath, is_repository: bool) -> Option<&'p Ignore> {
        let mut entries = path
            .ancestors()
            .filter_map(|above| self.0.get(above))
            .flat_map(|entries| entries.iter());
        entries.find(|Ignore { pattern, .. }| {
            pattern.matches(path) || is_repository && pattern.matches_all_below(path)
        })
    }

    pub(super) fn split(&self, files: ChangedFiles) -> (ChangedFiles, ChangedFiles) {
        if self.0.is_empty() {
            return (files, ChangedFiles::default());
        }
        files.partition(|file| self.find(file).is_none())
    }
}
