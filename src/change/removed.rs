//! Finds stacks that the base has and the project lacks.
//!
//! A stack is removed when its block or its directory is, when `for_each` no longer has its key, or when a
//! mark above it excludes it from the project. Uncounted changes neither remove stacks nor hide removals by
//! other changes. Only directories where a change may have removed a stack are read at the base.

use std::collections::BTreeSet;

use memchr::memmem;

use super::counted_tree::CountedTree;
use super::error::ChangeError;
use super::files::ChangedFiles;
use crate::git::{CommitId, CommitTree, FileChange, GitError, Repository, TreeScope};
use crate::path::{ProjectPath, StackPath};
use crate::project::discover::{CONFIGURATION, FileTree, is_configuration, is_skip_mark};
use crate::project::function_files::FileRead;
use crate::project::stack::FOR_EACH;
use crate::project::{self, LoadTreeError, Project, StacksOfTree};

pub(super) struct Differences<'a> {
    pub(super) changed: &'a ChangedFiles,
    /// The counted files with uncommitted changes; earlier changes may be committed.
    pub(super) status: &'a ChangedFiles,
    /// The files with uncounted uncommitted changes.
    pub(super) off: &'a ChangedFiles,
}

/// Returns the removed stacks, by path.
pub(super) fn removed(
    project: &Project,
    repository: &Repository,
    base: &CommitId,
    files: &Differences<'_>,
) -> Result<Vec<StackPath>, ChangeError> {
    let Differences {
        changed,
        status,
        off,
    } = files;
    // Directories that lost configuration, and those that may be hidden now.
    let mut lost_configuration: BTreeSet<ProjectPath> = BTreeSet::new();
    let mut hidden: BTreeSet<ProjectPath> = BTreeSet::new();
    // Directories of plain stacks that still exist but may have had instances.
    let mut edited: BTreeSet<ProjectPath> = BTreeSet::new();
    // An uncounted change may hide another one from the project.
    for file in changed.iter().chain(off.iter()) {
        let directory = file.path.parent().unwrap_or_else(ProjectPath::root);
        let name = file.path.basename();
        if is_skip_mark(name.as_ref()) && !file.change.is_deletion() {
            hidden.insert(directory);
        } else if is_configuration(name.as_ref()) {
            if project.nested_projects.contains(&directory) {
                hidden.insert(directory.clone());
            }
            let here = project.stacks.at(directory.as_str()).first();
            match here.map(|stack| project.stacks[stack].path.key()) {
                // A new file may be the one with `for_each`.
                Some(Some(_)) => _ = lost_configuration.insert(directory),
                _ if file.change == FileChange::Added => {}
                Some(None) => _ = edited.insert(directory),
                None => _ = lost_configuration.insert(directory),
            }
        }
    }
    lost_configuration.extend(having_for_each(project, base, edited)?);
    lost_configuration.extend(reading_for_each(project, changed));
    let is_stack = |path: &StackPath| project.stacks.find(path).is_some();
    let tree = |commit: &CommitId, scope| commit_tree(project, commit, scope);
    let of_base = |scope| tree(base, scope);
    let mut gone = stacks(project, &of_base, &lost_configuration, &hidden)?;
    gone.retain(|path| !is_stack(path));
    // A sparse checkout, or an uncounted change, hides stacks that still exist.
    if !gone.is_empty()
        && let Some(head) = repository.commit("HEAD")?
    {
        let directories: BTreeSet<ProjectPath> =
            gone.iter().map(|path| path.directory().clone()).collect();
        let counted = |scope| {
            Ok(CountedTree {
                root: &project.root,
                head: tree(&head, scope)?,
                status,
            })
        };
        for alive in stacks(project, &counted, &directories, &BTreeSet::new())? {
            gone.remove(&alive);
        }
    }
    Ok(gone.into_iter().collect())
}

/// Returns the given directories whose configuration mentions `for_each` in a commit.
fn having_for_each(
    project: &Project,
    commit: &CommitId,
    directories: BTreeSet<ProjectPath>,
) -> Result<BTreeSet<ProjectPath>, ChangeError> {
    if directories.is_empty() {
        return Ok(directories);
    }
    let scope = TreeScope {
        directories: directories.into_iter().collect(),
        trees: Vec::new(),
    };
    let tree = commit_tree(project, commit, Some(scope))?;
    let entries = tree.entries().map_err(LoadTreeError::Tree)?.into_iter();
    let files = entries.filter_map(|entry| {
        let path = ProjectPath::from_normal(&format!("/{}", str::from_utf8(&entry.path).ok()?));
        is_configuration(path.basename().as_ref()).then_some((path, entry.id))
    });
    let (paths, ids): (Vec<ProjectPath>, Vec<String>) = files.unzip();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let texts = tree
        .read(&ids, CONFIGURATION.bytes)
        .map_err(LoadTreeError::Tree)?;
    let finder = memmem::Finder::new(FOR_EACH);
    let mentions = |text: &Option<Vec<u8>>| {
        let text = text.as_deref().unwrap_or_default();
        finder.find(text).is_some()
    };
    let files = paths.iter().zip(&texts);
    let mentioning = files.filter(|(_, text)| mentions(text));
    Ok(mentioning.filter_map(|(path, _)| path.parent()).collect())
}

/// Returns the directories whose `for_each` reads a changed file.
fn reading_for_each(project: &Project, changed: &ChangedFiles) -> Vec<ProjectPath> {
    let is_touched = |read: &FileRead| match read {
        FileRead::Path(path) => changed.touching(path).is_some(),
        FileRead::Matching(directory, _) => changed.touching(directory).is_some(),
    };
    let instances = project.stacks.iter().filter_map(|(_, stack)| {
        stack.path.key()?;
        let mut reads = stack.reads.iter();
        let is_touched =
            reads.any(|read| &*read.attribute.text == FOR_EACH && is_touched(&read.read));
        is_touched.then(|| stack.path.directory().clone())
    });
    let empty = project
        .without_instances
        .iter()
        .filter(|it| it.reads.iter().any(|read| is_touched(&read.read)));
    instances
        .chain(empty.map(|it| it.directory.clone()))
        .collect()
}

/// Returns the files of a commit, all or those in scope.
fn commit_tree(
    project: &Project,
    commit: &CommitId,
    scope: Option<TreeScope>,
) -> Result<CommitTree, GitError> {
    let tree = CommitTree::new(Repository::open(&project.root)?, commit.clone());
    Ok(match scope {
        Some(scope) => tree.within(scope),
        None => tree,
    })
}

/// Returns the stacks of a tree in some directories, and at or below others. `tree` returns the files, all or
/// those in scope.
fn stacks<T: FileTree>(
    project: &Project,
    tree: &impl Fn(Option<TreeScope>) -> Result<T, GitError>,
    directories: &BTreeSet<ProjectPath>,
    trees: &BTreeSet<ProjectPath>,
) -> Result<BTreeSet<StackPath>, ChangeError> {
    if directories.is_empty() && trees.is_empty() {
        return Ok(BTreeSet::new());
    }
    // The directories above decide whether a directory is part of the project.
    let mut read = directories.clone();
    for directory in directories.iter().chain(trees) {
        read.extend(directory.ancestors().map(ProjectPath::from_normal));
    }
    let scope = TreeScope {
        directories: read.into_iter().collect(),
        trees: trees.iter().cloned().collect(),
    };
    let is_meant = |directory: &ProjectPath| {
        directories.contains(directory) || trees.iter().any(|tree| directory.is_at_or_below(tree))
    };
    let mut found = project::stacks_of_tree(&project.root, &tree(Some(scope))?)?;
    if found.unknown.iter().any(is_meant) {
        // A function may read a file outside of these directories.
        found = project::stacks_of_tree(&project.root, &tree(None)?)?;
    }
    let StacksOfTree { stacks, .. } = found;
    let stacks = stacks.into_iter();
    Ok(stacks.filter(|path| is_meant(path.directory())).collect())
}
