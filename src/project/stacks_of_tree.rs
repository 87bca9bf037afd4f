//! The stacks of a tree such as that of a commit, without other configuration.

use std::path::Path;

use memchr::memmem;

use super::load::{LoadTreeError, pool};
use crate::language::parse::parse;
use crate::path::{ProjectPath, StackPath};
use crate::project::discover::{self, FileTree, SourceTree, decode};
use crate::project::problems::Problems;
use crate::project::stack::{self, Declared, FOR_EACH};
use crate::source::FileId;

pub(crate) struct StacksOfTree {
    /// Their paths, in any order.
    pub(crate) stacks: Vec<StackPath>,
    /// The directories whose `for_each` has no value, or one that depends on files: these may be
    /// missing if only part of the tree was read.
    pub(crate) unknown: Vec<ProjectPath>,
    /// The directories whose `for_each` has a value.
    pub(crate) with_for_each: Vec<ProjectPath>,
    /// The files that could not be read or parsed completely.
    pub(crate) broken: Vec<ProjectPath>,
}

/// Returns the stacks of a tree. Problems in the files do not matter: a directory that could not be read
/// then was not a stack then.
pub(crate) fn stacks_of_tree(
    root: &Path,
    tree: &dyn FileTree,
) -> Result<StacksOfTree, LoadTreeError> {
    pool()?.install(|| {
        let files = SourceTree::of_tree(root, tree)?;
        let found = discover::read(&files, &mut Problems::default());
        let mut all = StacksOfTree {
            stacks: Vec::new(),
            unknown: Vec::new(),
            with_for_each: Vec::new(),
            broken: found.broken,
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
                        all.unknown.push(path.clone());
                    }
                    all.with_for_each.push(path);
                }
                Some(Declared::Unknown) => all.unknown.push(path),
            }
        }
        Ok(all)
    })
}

/// Returns whether a configuration file with this content has a `stack` block; `None` if it cannot be
/// parsed. Must run on a thread of [`pool`], as deeply nested files need its room.
pub(crate) fn has_stack_block(content: Vec<u8>) -> Option<bool> {
    const STACK: &str = "stack";
    // Most files that have none do not even have the word.
    if memmem::find(&content, STACK.as_bytes()).is_none() {
        return Some(false);
    }
    let body = parse(FileId(0), &decode(content).ok()?).ok()?;
    let has_block = body.blocks(STACK).next().is_some();
    Some(has_block)
}

/// Returns whether a configuration file with this content can be parsed. Must run on a thread of [`pool`].
pub(crate) fn is_parsable(content: Vec<u8>) -> bool {
    let text = decode(content);
    text.is_ok_and(|text| parse(FileId(0), &text).is_ok())
}
