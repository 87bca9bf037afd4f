//! The project without its uncounted uncommitted changes.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use super::files::ChangedFiles;
use crate::git::CommitTree;
use crate::on_disk::if_there;
use crate::path::ProjectPath;
use crate::project::discover::{FileTree, TreeEntry};

/// The id prefix of a file of the working tree, followed by its path.
const ON_DISK: &str = "on disk ";

/// The files of HEAD, with counted changes from the working tree.
pub(super) struct CountedTree<'a> {
    pub(super) root: &'a Path,
    pub(super) head: CommitTree,
    pub(super) status: &'a ChangedFiles,
}

impl FileTree for CountedTree<'_> {
    fn entries(&self) -> io::Result<Vec<TreeEntry>> {
        let mut entries = self.head.entries()?;
        entries.retain(|entry| {
            let path = str::from_utf8(&entry.path);
            path.is_ok_and(|path| self.status.at(&format!("/{path}")).is_none())
        });
        let changed = self
            .status
            .iter()
            .filter_map(|file| entry(self.root, &file.path).transpose());
        entries.extend(changed.collect::<io::Result<Vec<TreeEntry>>>()?);
        Ok(entries)
    }

    fn read(&self, ids: &[&str], max_bytes: u32) -> io::Result<Vec<Option<Vec<u8>>>> {
        let of_head: Vec<&str> = ids
            .iter()
            .copied()
            .filter(|id| !id.starts_with(ON_DISK))
            .collect();
        let mut of_head = self.head.read(&of_head, max_bytes)?.into_iter();
        let content = |id: &&str| match id.strip_prefix(ON_DISK) {
            Some(path) => content(self.root, path, max_bytes),
            None => Ok(of_head.next().flatten()),
        };
        ids.iter().map(content).collect()
    }
}

/// Returns the file or link at a path in the working tree.
fn entry(root: &Path, path: &ProjectPath) -> io::Result<Option<TreeEntry>> {
    let at = |path: &ProjectPath| {
        let found = if_there(path.to_host(root).symlink_metadata());
        found.map_err(|error| unreadable(path.relative(), &error))
    };
    // Files below a link belong elsewhere.
    for above in path.ancestors().map(ProjectPath::from_normal) {
        if !at(&above)?.is_some_and(|it| it.is_dir()) {
            return Ok(None);
        }
    }
    let found = at(path)?.filter(|it| it.is_file() || it.is_symlink());
    Ok(found.map(|found| TreeEntry {
        path: path.relative().as_bytes().to_vec(),
        id: format!("{ON_DISK}{}", path.relative()),
        is_link: found.is_symlink(),
    }))
}

/// Returns the content of a file of the working tree; `None` if it is larger than `max_bytes`.
fn content(root: &Path, path: &str, max_bytes: u32) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    let most = u64::from(max_bytes);
    File::open(root.join(path))
        .and_then(|file| file.take(most + 1).read_to_end(&mut content))
        .map_err(|error| unreadable(path, &error))?;
    Ok((content.len() as u64 <= most).then_some(content))
}

fn unreadable(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("failed to read `{path}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_file_that_cannot_be_read_is_neither_absent_nor_large() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let long = ProjectPath::root().join(&"n".repeat(300));
        let error = entry(root, &long).unwrap_err().to_string();
        assert!(error.starts_with("failed to read `nnn"), "{error}");
        assert_eq!(
            entry(root, &ProjectPath::root().join("none")).unwrap(),
            None
        );
        std::fs::write(root.join("file"), "text").unwrap();
        assert_eq!(content(root, "file", 3).unwrap(), None);
        assert!(content(root, ".", 3).is_err());
    }
}
