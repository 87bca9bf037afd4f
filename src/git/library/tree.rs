//! The files of a commit, as libgit2 reports them.

use git2::{Error, FileMode, ObjectType, Tree};

use super::Library;
use crate::git::comparison::mode;
use crate::git::{CommitId, RecordedFile, RecordedMode, TreeScope, project_path, repository_path};
use crate::path::ProjectPath;
use crate::project::discover::TreeEntry;

impl Library {
    pub(in crate::git) fn entries(
        &self,
        commit: &CommitId,
        prefix: &str,
        scope: Option<&TreeScope>,
    ) -> Result<Vec<TreeEntry>, Error> {
        let root = [ProjectPath::root()];
        let (directories, trees) = match scope {
            Some(scope) => (&*scope.directories, &*scope.trees),
            None => (&[][..], &root[..]),
        };
        let mut entries = Vec::new();
        for directory in directories {
            let tree = self.tree(commit, &repository_path(directory, prefix))?;
            let path = directory.relative().as_bytes();
            for entry in tree.iter().flat_map(Tree::iter) {
                entries.extend(file_entry(&entry, path));
            }
        }
        self.walk(commit, prefix, trees, |entry, directory| {
            entries.extend(file_entry(entry, directory));
        })?;
        Ok(entries)
    }

    pub(in crate::git) fn recorded(
        &self,
        commit: &CommitId,
        prefix: &str,
        directories: &[ProjectPath],
    ) -> Result<Vec<RecordedFile>, Error> {
        let mut files = Vec::new();
        self.walk(commit, prefix, directories, |entry, directory| {
            files.extend(recorded_file(entry, directory));
        })?;
        Ok(files)
    }

    pub(in crate::git) fn recorded_files(
        &self,
        commit: &CommitId,
        prefix: &str,
        files: &[ProjectPath],
    ) -> Result<Vec<RecordedFile>, Error> {
        let mut found = Vec::new();
        for file in files {
            let Some(directory) = file.parent() else {
                continue;
            };
            if let Some(tree) = self.tree(commit, &repository_path(&directory, prefix))? {
                let entry = tree.get_name(file.basename());
                let path = directory.relative().as_bytes();
                found.extend(entry.and_then(|entry| recorded_file(&entry, path)));
            }
        }
        Ok(found)
    }

    /// Visits everything below some directories of a commit but the directories themselves.
    fn walk(
        &self,
        commit: &CommitId,
        prefix: &str,
        trees: &[ProjectPath],
        mut visit: impl FnMut(&git2::TreeEntry<'_>, &[u8]),
    ) -> Result<(), Error> {
        let mut open = Vec::new();
        for directory in trees {
            let tree = self.tree(commit, &repository_path(directory, prefix))?;
            open.extend(tree.map(|tree| (directory.relative().as_bytes().to_vec(), tree)));
        }
        while let Some((path, tree)) = open.pop() {
            for entry in &tree {
                if entry.kind() == Some(ObjectType::Tree) {
                    let below = join(&path, entry.name_bytes());
                    open.push((below, self.0.find_tree(entry.id())?));
                } else {
                    visit(&entry, &path);
                }
            }
        }
        Ok(())
    }
}

fn file_entry(entry: &git2::TreeEntry<'_>, directory: &[u8]) -> Option<TreeEntry> {
    let is_link = match mode(entry) {
        FileMode::Blob | FileMode::BlobExecutable => false,
        FileMode::Link => true,
        _ => return None,
    };
    Some(TreeEntry {
        path: join(directory, entry.name_bytes()),
        id: entry.id().to_string(),
        is_link,
    })
}

fn recorded_file(entry: &git2::TreeEntry<'_>, directory: &[u8]) -> Option<RecordedFile> {
    let mode = match mode(entry) {
        FileMode::Blob => RecordedMode::File,
        FileMode::BlobExecutable => RecordedMode::Executable,
        FileMode::Link => RecordedMode::Link,
        FileMode::Commit => RecordedMode::Repository,
        _ => return None,
    };
    Some(RecordedFile {
        path: project_path(&join(directory, entry.name_bytes()), "")?,
        mode,
        id: entry.id().to_string(),
    })
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match directory {
        [] => name.to_vec(),
        directory => [directory, b"/", name].concat(),
    }
}
