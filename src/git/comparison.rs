//! The comparison of two trees: libgit2's own would load the index first, which takes longer.

use std::cmp::Ordering;

use git2::{Error, FileMode, Tree, TreeEntry};

use super::{ChangedFile, FileChange, FileState, project_path};

pub(super) struct TreeComparison<'r> {
    pub(super) repository: &'r git2::Repository,
    /// The path of the compared trees, from the project root.
    pub(super) path: Vec<u8>,
    pub(super) files: Vec<ChangedFile>,
}

impl TreeComparison<'_> {
    /// Compares two trees; one that is missing is empty.
    pub(super) fn trees(
        &mut self,
        old: Option<&Tree<'_>>,
        new: Option<&Tree<'_>>,
    ) -> Result<(), Error> {
        let mut old = old.into_iter().flat_map(Tree::iter).peekable();
        let mut new = new.into_iter().flat_map(Tree::iter).peekable();
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => tree_order(old, new),
            };
            match order {
                Ordering::Less => self.entry(old.next().as_ref(), None)?,
                Ordering::Greater => self.entry(None, new.next().as_ref())?,
                Ordering::Equal => self.entry(old.next().as_ref(), new.next().as_ref())?,
            }
        }
    }

    /// Compares what two trees have under one name. A directory is compared only with a directory.
    fn entry(
        &mut self,
        old: Option<&TreeEntry<'_>>,
        new: Option<&TreeEntry<'_>>,
    ) -> Result<(), Error> {
        let Some(either) = old.or(new) else {
            return Ok(());
        };
        if let (Some(old), Some(new)) = (old, new)
            && old.id() == new.id()
            && mode(old) == mode(new)
        {
            return Ok(());
        }
        let length = self.path.len();
        if length > 0 {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(either.name_bytes());
        if mode(either) == FileMode::Tree {
            let tree = |entry: Option<&TreeEntry<'_>>| {
                let tree = entry.map(|entry| self.repository.find_tree(entry.id()));
                tree.transpose()
            };
            let (old, new) = (tree(old)?, tree(new)?);
            self.trees(old.as_ref(), new.as_ref())?;
        } else {
            let change = match (old.map(mode), new.map(mode)) {
                (Some(FileMode::Commit), _) | (_, Some(FileMode::Commit)) => FileChange::Repository,
                (None, _) => FileChange::Added,
                (Some(FileMode::Link), None) => FileChange::DeletedLink,
                (_, None) => FileChange::Deleted,
                (Some(FileMode::Link), Some(FileMode::Link)) => FileChange::Modified,
                (Some(FileMode::Link), _) | (_, Some(FileMode::Link)) => FileChange::Retyped,
                _ => FileChange::Modified,
            };
            self.files
                .extend(project_path(&self.path, "").map(|path| ChangedFile {
                    path,
                    change,
                    state: FileState::Committed,
                }));
        }
        self.path.truncate(length);
        Ok(())
    }
}

/// Compares entries in the order of a tree: by name, where the name of a directory ends in a slash.
fn tree_order(a: &TreeEntry<'_>, b: &TreeEntry<'_>) -> Ordering {
    let key = |entry: &TreeEntry<'_>| (mode(entry) == FileMode::Tree).then_some(b'/');
    let bytes = |entry| {
        TreeEntry::name_bytes(entry)
            .iter()
            .copied()
            .chain(key(entry))
    };
    bytes(a).cmp(bytes(b))
}

/// Returns the normalised mode of an entry; old repositories have odd ones.
pub(super) fn mode(entry: &TreeEntry<'_>) -> FileMode {
    match entry.filemode() & 0o170_000 {
        0o040_000 => FileMode::Tree,
        0o120_000 => FileMode::Link,
        0o160_000 => FileMode::Commit,
        _ if entry.filemode() & 0o100 != 0 => FileMode::BlobExecutable,
        _ => FileMode::Blob,
    }
}
