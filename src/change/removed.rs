//! Stacks that the base had and the tree no longer has.
//!
//! A stack is gone when its block is, its directory, or when a mark above it now keeps it out of the
//! project. Only directories where a change can have done that are looked at in the base.

use std::collections::{BTreeMap, BTreeSet};

use super::files::ChangedFiles;
use crate::git::{CommitId, FileChange, GitError, Repository};
use crate::language::parse::parse;
use crate::language::syntax::Body;
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::discover::{declares_root, is_configuration, is_skip_mark};
use crate::source::FileId;

/// Returns the removed stacks, by path. `status` has those of the changed files that are not
/// committed, though earlier changes of them may be.
pub(super) fn removed(
    project: &Project,
    repository: &Repository,
    base: &CommitId,
    changed: &ChangedFiles,
    status: &ChangedFiles,
) -> Result<Vec<ProjectPath>, GitError> {
    // Directories that lost configuration, and trees that may be hidden now though they did not.
    let mut bereft: BTreeSet<ProjectPath> = BTreeSet::new();
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
                bereft.insert(directory);
            }
        }
    }
    let mut below = BTreeSet::new();
    for directory in &hidden {
        below.extend(repository.directories_below(base, directory)?);
    }
    let is_candidate = |directory: &ProjectPath| {
        let is_entered = !directory.components().any(|name| name.starts_with('.'));
        is_entered && project.stacks.at(directory.as_str()).is_none()
    };
    bereft.retain(|directory| is_candidate(directory) && !below.contains(directory));
    below.retain(is_candidate);
    let candidates: Vec<ProjectPath> = bereft.iter().chain(&below).cloned().collect();
    let mut gone = Tree::read(repository, base, &candidates)?.stacks(&candidates);
    let is_uncommitted = |directory: &ProjectPath| {
        let mut files = status.below(directory);
        files.any(|file| {
            let is_here = file.path.parent().as_ref() == Some(directory);
            is_here && is_configuration(file.path.basename().as_ref())
        })
    };
    // A sparse checkout leaves stacks out that HEAD still has: those are not gone.
    let unsure: Vec<ProjectPath> = gone
        .iter()
        .filter(|directory| bereft.contains(*directory) && !is_uncommitted(directory))
        .cloned()
        .collect();
    if !unsure.is_empty()
        && let Some(head) = repository.commit("HEAD")?
    {
        for alive in Tree::read(repository, &head, &unsure)?.stacks(&unsure) {
            gone.remove(&alive);
        }
    }
    Ok(gone.into_iter().collect())
}

/// The configuration of some directories of a commit, and of all directories above them.
#[derive(Default)]
struct Tree {
    bodies: BTreeMap<ProjectPath, Vec<Body>>,
    marked: BTreeSet<ProjectPath>,
}

impl Tree {
    fn read(
        repository: &Repository,
        commit: &CommitId,
        directories: &[ProjectPath],
    ) -> Result<Self, GitError> {
        let mut tree = Tree::default();
        if directories.is_empty() {
            return Ok(tree);
        }
        let mut all: BTreeSet<ProjectPath> = directories.iter().cloned().collect();
        for directory in directories {
            all.extend(directory.ancestors().map(ProjectPath::from_normal));
        }
        let all: Vec<ProjectPath> = all.into_iter().collect();
        let mut files = Vec::new();
        for (directory, names) in all.iter().zip(repository.files_in(commit, &all)?) {
            for name in names {
                if is_skip_mark(name.as_ref()) {
                    tree.marked.insert(directory.clone());
                } else if is_configuration(name.as_ref()) {
                    files.push(directory.join(&name));
                }
            }
        }
        let texts = repository.read(commit, &files)?;
        for (file, text) in files.iter().zip(texts) {
            let text = String::from_utf8_lossy(&text);
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            // What could not be read then was no stack then.
            if let Ok(body) = parse(FileId(0), text) {
                let directory = file.parent().unwrap_or_else(ProjectPath::root);
                tree.bodies.entry(directory).or_default().push(body);
            }
        }
        Ok(tree)
    }

    /// Returns those of the directories that are stacks.
    fn stacks(&self, directories: &[ProjectPath]) -> BTreeSet<ProjectPath> {
        let is_stack = |directory: &&ProjectPath| self.is_stack(directory);
        directories.iter().filter(is_stack).cloned().collect()
    }

    fn is_stack(&self, directory: &ProjectPath) -> bool {
        let bodies = |directory: &str| self.bodies.get(directory).into_iter().flatten();
        // The mark of the root leaves the root's own configuration in force.
        let is_skipped = |above: &str| {
            let is_marked = self.marked.contains(above) && !directory.is_root();
            is_marked || above != "/" && bodies(above).any(declares_root)
        };
        let own = directory.as_str();
        let mut chain = std::iter::once(own).chain(directory.ancestors());
        !chain.any(is_skipped) && bodies(own).any(|body| body.blocks("stack").next().is_some())
    }
}
