//! The project without the counted changes.
//!
//! A changed file has its content at the base. All other files are as they are now, including those with
//! uncounted changes, so that these make no difference.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;

use crate::change::error::ChangeError;
use crate::change::files::ChangedFiles;
use crate::git::{CommitId, CommitTree, Repository, TreeScope};
use crate::on_disk::if_there;
use crate::path::ProjectPath;
use crate::project::discover::{FileTree, SKIP_MARKS, TreeEntry, is_skip_mark};
use crate::project::{self, FileReadError, LoadTreeError, Problems, Project};
use crate::source::{FileId, SourceFile};

/// The id prefix of an unchanged file, followed by its index among the sources.
const PRESENT: &str = "present ";

/// The files of the project without the counted changes.
pub(super) struct EarlierTree<'a> {
    present: &'a Project,
    changed: &'a ChangedFiles,
    directories: &'a BTreeSet<ProjectPath>,
    links: &'a BTreeMap<ProjectPath, ProjectPath>,
    /// The changed files at the base.
    commit: CommitTree,
    entries: Vec<TreeEntry>,
}

impl<'a> EarlierTree<'a> {
    /// Finds the configuration files in some directories, which must include their ancestors and every
    /// directory with changed configuration. `links` are the changed configuration files behind links.
    pub(super) fn new(
        present: &'a Project,
        base: &CommitId,
        changed: &'a ChangedFiles,
        directories: &'a BTreeSet<ProjectPath>,
        links: &'a BTreeMap<ProjectPath, ProjectPath>,
    ) -> Result<Self, ChangeError> {
        let parents: BTreeSet<ProjectPath> = changed
            .iter()
            .filter_map(|file| file.path.parent())
            .collect();
        // Only the base knows the content of a directory that a mark hides now.
        let mut hidden: Vec<ProjectPath> = Vec::new();
        for file in changed.iter() {
            if is_skip_mark(file.path.basename().as_ref()) && is_there(&present.root, &file.path)? {
                hidden.extend(file.path.parent());
            }
        }
        let scope = TreeScope {
            directories: parents.iter().cloned().collect(),
            trees: hidden.clone(),
        };
        let repository = Repository::open(&present.root)?;
        let commit = CommitTree::new(repository, base.clone()).within(scope);
        let mut entries = commit.entries().map_err(LoadTreeError::Tree)?;
        let is_wanted = |path: &str| {
            let path = ProjectPath::from_normal(path);
            let is_hidden = || {
                hidden
                    .iter()
                    .any(|directory| path.is_at_or_below(directory))
            };
            changed.at(path.as_str()).is_some() || is_hidden()
        };
        entries.retain(|entry| {
            str::from_utf8(&entry.path).is_ok_and(|path| is_wanted(&format!("/{path}")))
        });
        // The marks that exclude some of these directories from the project.
        let around: BTreeSet<ProjectPath> = parents
            .iter()
            .flat_map(|directory| {
                let own = std::iter::once(directory.as_str());
                own.chain(directory.ancestors())
            })
            .map(ProjectPath::from_normal)
            .collect();
        let marks = around
            .iter()
            .flat_map(|directory| SKIP_MARKS.map(|mark| directory.join(mark)));
        for mark in marks {
            if changed.touching_above(&mark).is_none() && is_there(&present.root, &mark)? {
                entries.push(entry(&mark, String::new()));
            }
        }
        // A link counts as a file with the content of its target.
        let linked: Vec<TreeEntry> = links
            .iter()
            .filter_map(|(link, end)| {
                let end = end.relative().as_bytes();
                let found = entries.iter().find(|entry| entry.path == end)?;
                Some(entry(link, found.id.clone()))
            })
            .collect();
        entries.extend(linked);
        for (number, file) in present.sources.files().enumerate() {
            let mut above = file.path.ancestors();
            let is_in = above
                .next()
                .is_some_and(|parent| directories.contains(parent));
            let is_changed =
                changed.touching_above(&file.path).is_some() || links.contains_key(&file.path);
            if is_in && !is_changed {
                entries.push(entry(&file.path, format!("{PRESENT}{number}")));
            }
        }
        Ok(EarlierTree {
            present,
            changed,
            directories,
            links,
            commit,
            entries,
        })
    }

    /// Loads the project without reporting its problems.
    pub(super) fn load(&self) -> Result<Project, ChangeError> {
        let mut ignored = Problems::default();
        Ok(project::Project::load_tree(
            self.root(),
            self,
            &mut ignored,
        )?)
    }

    pub(super) fn covers(&self, directory: &ProjectPath) -> bool {
        self.directories.contains(directory)
    }

    fn root(&self) -> &'a Path {
        &self.present.root
    }

    fn source(&self, id: &str) -> Option<&'a SourceFile> {
        let number = id.strip_prefix(PRESENT)?.parse().ok()?;
        Some(self.present.sources.file(FileId(number)))
    }
}

fn is_there(root: &Path, mark: &ProjectPath) -> Result<bool, FileReadError> {
    let found = if_there(mark.to_host(root).symlink_metadata()).map_err(|source| FileReadError {
        path: mark.relative().to_owned(),
        source,
    });
    Ok(found?.is_some())
}

fn entry(path: &ProjectPath, id: String) -> TreeEntry {
    TreeEntry {
        path: path.relative().as_bytes().to_vec(),
        id,
        is_link: false,
    }
}

impl FileTree for EarlierTree<'_> {
    fn entries(&self) -> io::Result<Vec<TreeEntry>> {
        Ok(self.entries.clone())
    }

    fn read(&self, ids: &[&str], max_bytes: u32) -> io::Result<Vec<Option<Vec<u8>>>> {
        let of_base: Vec<&str> = ids
            .iter()
            .copied()
            .filter(|id| self.source(id).is_none())
            .collect();
        let contents = self.commit.read(&of_base, max_bytes)?;
        let contents: HashMap<&str, Option<Vec<u8>>> = of_base.into_iter().zip(contents).collect();
        let content = |id: &&str| match self.source(id) {
            Some(file) => Some(file.text.clone().into_bytes()),
            None => contents.get(id).cloned().flatten(),
        };
        Ok(ids.iter().map(content).collect())
    }

    fn is_as_on_disk(&self, path: &ProjectPath) -> bool {
        self.changed.touching_above(path).is_none() && !self.links.contains_key(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_mark_that_cannot_be_looked_at_is_not_absent() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("circle", folder.path().join("circle")).unwrap();
        let mark = |directory: &str| ProjectPath::root().join(directory).join(".tmskip");
        assert!(!is_there(folder.path(), &mark("none")).unwrap());
        let error = is_there(folder.path(), &mark("circle")).unwrap_err();
        assert_eq!(error.to_string(), "failed to read `circle/.tmskip`");
    }
}
