//! A file that differs, as git reports it.

use crate::path::ProjectPath;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangedFile {
    /// Its path. Bytes that are not UTF-8 are replaced; no stack's path has any.
    pub path: ProjectPath,
    pub change: FileChange,
    pub state: FileState,
}

/// The change of a file. A renamed file is deleted at one path and added at another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileChange {
    Added,
    Deleted,
    /// A deleted link. Patterns may have matched files behind it.
    DeletedLink,
    /// Its content or its permissions differ.
    Modified,
    /// Its type has changed, for example from a file to a link.
    Retyped,
    /// A merge has left it in conflict.
    Conflicted,
    /// It is a submodule, at another commit or with changes inside.
    Repository,
}

impl FileChange {
    pub fn is_deletion(self) -> bool {
        matches!(self, FileChange::Deleted | FileChange::DeletedLink)
    }

    /// Returns whether a pattern may match, or may have matched, files below the path.
    pub fn may_hide_files(self) -> bool {
        matches!(
            self,
            FileChange::Repository | FileChange::DeletedLink | FileChange::Retyped
        )
    }

    pub fn word(self) -> &'static str {
        match self {
            FileChange::Added => "added",
            FileChange::Deleted | FileChange::DeletedLink => "deleted",
            FileChange::Modified => "modified",
            FileChange::Retyped => "type changed",
            FileChange::Conflicted => "conflicted",
            FileChange::Repository => "submodule",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileState {
    /// Part of a commit since the base.
    Committed,
    /// In the index or in the working tree only.
    Uncommitted,
    /// Untracked.
    Untracked,
}
