//! Finds stacks that exist in the base but no longer in the tree.
//!
//! A stack is removed when its block or its directory is, or when a mark above it now keeps it out of
//! the project. Only directories where a change may have done that are examined in the base.

use std::collections::BTreeSet;

use super::error::ChangeError;
use super::files::ChangedFiles;
use crate::git::{CommitId, CommitTree, FileChange, Repository, TreeScope};
use crate::path::ProjectPath;
use crate::project::discover::{is_configuration, is_skip_mark};
use crate::project::{self, Project};

/// Returns the removed stacks, by path. `status` has those of the changed files that are not
/// committed, though earlier changes of them may be.
pub(super) fn removed(
    project: &Project,
    repository: &Repository,
    base: &CommitId,
    changed: &ChangedFiles,
    status: &ChangedFiles,
) -> Result<Vec<ProjectPath>, ChangeError> {
    // Directories that lost configuration, and those that may be hidden now though they did not.
    let mut lost_configuration: BTreeSet<ProjectPath> = BTreeSet::new();
    let mut hidden: BTreeSet<ProjectPath> = BTreeSet::new();
    for file in changed.iter() {
        let directory = file.path.parent().unwrap_or_else(ProjectPath::root);
        let name = file.path.basename();
        if is_skip_mark(name.as_ref()) && file.change != FileChange::Deleted {
            hidden.insert(directory);
        } else if is_configuration(name.as_ref()) {
            if project.nested_projects.contains(&directory) {
                hidden.insert(directory.clone());
            }
            if file.change != FileChange::Added {
                lost_configuration.insert(directory);
            }
        }
    }
    let is_stack = |directory: &ProjectPath| project.stacks.at(directory.as_str()).is_some();
    lost_configuration.retain(|directory| !is_stack(directory));
    let mut gone = stacks(project, base, &lost_configuration, &hidden)?;
    gone.retain(|directory| !is_stack(directory));
    let is_uncommitted = |directory: &ProjectPath| {
        let mut files = status.below(directory);
        files.any(|file| {
            let is_here = file.path.parent().as_ref() == Some(directory);
            is_here && is_configuration(file.path.basename().as_ref())
        })
    };
    // A sparse checkout omits stacks that HEAD still has; those are not removed.
    let is_hidden = |directory: &ProjectPath| hidden.iter().any(|it| directory.is_at_or_below(it));
    let unsure = gone.iter();
    let unsure = unsure.filter(|directory| !is_hidden(directory) && !is_uncommitted(directory));
    let unsure: BTreeSet<ProjectPath> = unsure.cloned().collect();
    if !unsure.is_empty()
        && let Some(head) = repository.commit("HEAD")?
    {
        for alive in stacks(project, &head, &unsure, &BTreeSet::new())? {
            gone.remove(&alive);
        }
    }
    Ok(gone.into_iter().collect())
}

/// Returns the stacks that a commit has in some directories, and at or below others.
fn stacks(
    project: &Project,
    commit: &CommitId,
    directories: &BTreeSet<ProjectPath>,
    trees: &BTreeSet<ProjectPath>,
) -> Result<BTreeSet<ProjectPath>, ChangeError> {
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
    let repository = Repository::open(&project.root)?;
    let tree = CommitTree::new(repository, commit.clone()).within(scope);
    let stacks = project::stacks_of_tree(&project.root, &tree)?;
    let is_meant = |stack: &ProjectPath| {
        directories.contains(stack) || trees.iter().any(|tree| stack.is_at_or_below(tree))
    };
    Ok(stacks.into_iter().filter(is_meant).collect())
}
