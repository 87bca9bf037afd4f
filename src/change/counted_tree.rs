//! The project as it would be if the uncommitted changes that do not count had not been made.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use super::files::ChangedFiles;
use crate::git::CommitTree;
use crate::path::ProjectPath;
use crate::project::discover::{FileTree, TreeEntry};

/// The start of the id of a file that is as the working tree has it; its path follows.
const ON_DISK: &str = "on disk ";

/// The files of HEAD; those that have changed since, and count, are as the working tree has them.
pub(super) struct CountedTree<'a> {
    pub(super) root: &'a Path,
    pub(super) head: CommitTree,
    /// The uncommitted changes that count.
    pub(super) status: &'a ChangedFiles,
}

impl CountedTree<'_> {
    fn entry(&self, path: &ProjectPath) -> Option<TreeEntry> {
        let lies_at = |path: &ProjectPath| path.to_host(self.root).symlink_metadata();
        // Below a link lies what belongs elsewhere.
        let mut above = path.ancestors().map(ProjectPath::from_normal);
        if !above.all(|directory| lies_at(&directory).is_ok_and(|it| it.is_dir())) {
            return None;
        }
        let metadata = lies_at(path).ok()?;
        (metadata.is_file() || metadata.is_symlink()).then(|| TreeEntry {
            path: path.relative().as_bytes().to_vec(),
            id: format!("{ON_DISK}{}", path.relative()),
            is_link: metadata.is_symlink(),
        })
    }

    /// Returns the content of a file; nothing if it is larger than `max_bytes`, or cannot be read.
    fn content(&self, path: &str, max_bytes: u32) -> Option<Vec<u8>> {
        let file = File::open(self.root.join(path)).ok()?;
        let mut content = Vec::new();
        let most = u64::from(max_bytes);
        file.take(most + 1).read_to_end(&mut content).ok()?;
        (content.len() as u64 <= most).then_some(content)
    }
}

impl FileTree for CountedTree<'_> {
    fn entries(&self) -> io::Result<Vec<TreeEntry>> {
        let mut entries = self.head.entries()?;
        entries.retain(|entry| {
            let path = str::from_utf8(&entry.path);
            path.is_ok_and(|path| self.status.at(&format!("/{path}")).is_none())
        });
        entries.extend(self.status.iter().filter_map(|file| self.entry(&file.path)));
        Ok(entries)
    }

    fn read(&self, ids: &[&str], max_bytes: u32) -> io::Result<Vec<Option<Vec<u8>>>> {
        let of_head = ids.iter().copied().filter(|id| !id.starts_with(ON_DISK));
        let of_head: Vec<&str> = of_head.collect();
        let mut of_head = self.head.read(&of_head, max_bytes)?.into_iter();
        let content = |id: &&str| match id.strip_prefix(ON_DISK) {
            Some(path) => self.content(path, max_bytes),
            None => of_head.next().flatten(),
        };
        Ok(ids.iter().map(content).collect())
    }
}
