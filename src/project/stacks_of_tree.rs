//! The stacks of a tree such as that of a commit, without anything else that is said about them.

use std::path::Path;

use super::load::{LoadTreeError, pool};
use crate::path::{ProjectPath, StackPath};
use crate::project::discover::{self, FileTree, Files};
use crate::project::problems::Problems;
use crate::project::stack::{self, Declared, FOR_EACH};

/// The stacks of a tree.
pub(crate) struct StacksOfTree {
    /// Their paths, in any order.
    pub(crate) stacks: Vec<StackPath>,
    /// The directories whose `for_each` has no value, or one that depends on files: these may be
    /// missing if only part of the tree was read.
    pub(crate) unknown: Vec<ProjectPath>,
}

/// Returns the stacks of a tree. Problems in the files do not matter: a directory that could not be read
/// then was not a stack then.
pub(crate) fn stacks_of_tree(
    root: &Path,
    tree: &dyn FileTree,
) -> Result<StacksOfTree, LoadTreeError> {
    pool()?.install(|| {
        let files = Files::of_tree(root, tree)?;
        let found = discover::read(&files, &mut Problems::default());
        let mut all = StacksOfTree {
            stacks: Vec::new(),
            unknown: Vec::new(),
        };
        for directory in found.directories {
            let (path, parsed) = (directory.path, directory.files);
            match stack::declared_with(&parsed, &[FOR_EACH], &path, &files) {
                None => {}
                Some(Declared::Stack(stack)) => all.stacks.push(stack.path),
                Some(Declared::Instances { stacks, reads, .. }) => {
                    all.stacks
                        .extend(stacks.into_iter().map(|stack| stack.path));
                    if !reads.is_empty() {
                        all.unknown.push(path);
                    }
                }
                Some(Declared::Unknown) => all.unknown.push(path),
            }
        }
        Ok(all)
    })
}
