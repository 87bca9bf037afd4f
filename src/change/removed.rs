//! Finds stacks that exist in the base but no longer in the tree.
//!
//! A stack is removed when its block or its directory is, when `for_each` no longer has its key, or when a
//! mark above it now keeps it out of the project. Only the directories where a change may have done that
//! are examined in the base.

use std::collections::BTreeSet;

use memchr::memmem;

use super::error::ChangeError;
use super::files::ChangedFiles;
use crate::git::{CommitId, CommitTree, FileChange, GitError, Repository, TreeScope};
use crate::path::{ProjectPath, StackPath};
use crate::project::discover::{CONFIGURATION, FileTree, is_configuration, is_skip_mark};
use crate::project::function_files::FileRead;
use crate::project::stack::FOR_EACH;
use crate::project::{self, LoadTreeError, Project, StacksOfTree};

/// Returns the removed stacks, by path. `status` has those of the changed files that are not
/// committed, though earlier changes of them may be.
pub(super) fn removed(
    project: &Project,
    repository: &Repository,
    base: &CommitId,
    changed: &ChangedFiles,
    status: &ChangedFiles,
) -> Result<Vec<StackPath>, ChangeError> {
    // Directories that lost configuration, and those that may be hidden now though they did not.
    let mut lost_configuration: BTreeSet<ProjectPath> = BTreeSet::new();
    let mut hidden: BTreeSet<ProjectPath> = BTreeSet::new();
    // Directories of plain stacks that are still there, but that may have had instances.
    let mut edited: BTreeSet<ProjectPath> = BTreeSet::new();
    for file in changed.iter() {
        let directory = file.path.parent().unwrap_or_else(ProjectPath::root);
        let name = file.path.basename();
        if is_skip_mark(name.as_ref()) && file.change != FileChange::Deleted {
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
    let mut gone = stacks(project, base, &lost_configuration, &hidden)?;
    gone.retain(|path| !is_stack(path));
    let reading_uncommitted = reading_for_each(project, status);
    let is_uncommitted = |path: &StackPath| {
        let mut files = status.below(path.directory());
        let is_configured = files.any(|file| {
            let is_here = file.path.parent().as_ref() == Some(path.directory());
            is_here && is_configuration(file.path.basename().as_ref())
        });
        is_configured || reading_uncommitted.contains(path.directory())
    };
    // A sparse checkout omits stacks that HEAD still has; those are not removed.
    let is_hidden = |path: &StackPath| {
        let mut hidden = hidden.iter();
        hidden.any(|it| path.directory().is_at_or_below(it))
    };
    let unsure = gone.iter();
    let unsure = unsure.filter(|it| !is_hidden(it) && !is_uncommitted(it));
    let unsure: BTreeSet<ProjectPath> = unsure.map(|path| path.directory().clone()).collect();
    if !unsure.is_empty()
        && let Some(head) = repository.commit("HEAD")?
    {
        for alive in stacks(project, &head, &unsure, &BTreeSet::new())? {
            gone.remove(&alive);
        }
    }
    Ok(gone.into_iter().collect())
}

/// Returns the directories, of those given, whose configuration mentions `for_each` in a commit.
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
    let tree = CommitTree::new(Repository::open(&project.root)?, commit.clone()).within(scope);
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

/// Returns the directories whose `for_each` reads a file that has changed.
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
    let empty = project.without_instances.iter();
    let empty = empty.filter(|it| it.reads.iter().any(|read| is_touched(&read.read)));
    instances
        .chain(empty.map(|it| it.directory.clone()))
        .collect()
}

/// Returns the stacks that a commit has in some directories, and at or below others.
fn stacks(
    project: &Project,
    commit: &CommitId,
    directories: &BTreeSet<ProjectPath>,
    trees: &BTreeSet<ProjectPath>,
) -> Result<BTreeSet<StackPath>, ChangeError> {
    if directories.is_empty() && trees.is_empty() {
        return Ok(BTreeSet::new());
    }
    // The directories above decide whether a directory belongs to the project.
    let mut read = directories.clone();
    for directory in directories.iter().chain(trees) {
        read.extend(directory.ancestors().map(ProjectPath::from_normal));
    }
    let scope = TreeScope {
        directories: read.into_iter().collect(),
        trees: trees.iter().cloned().collect(),
    };
    let tree = || -> Result<CommitTree, GitError> {
        Ok(CommitTree::new(
            Repository::open(&project.root)?,
            commit.clone(),
        ))
    };
    let is_meant = |directory: &ProjectPath| {
        directories.contains(directory) || trees.iter().any(|tree| directory.is_at_or_below(tree))
    };
    let mut found = project::stacks_of_tree(&project.root, &tree()?.within(scope))?;
    if found.unknown.iter().any(is_meant) {
        // A function may read a file elsewhere.
        found = project::stacks_of_tree(&project.root, &tree()?)?;
    }
    let StacksOfTree { stacks, .. } = found;
    let stacks = stacks.into_iter();
    Ok(stacks.filter(|path| is_meant(path.directory())).collect())
}
