//! Which recorded stacks the `moved` and `removed` blocks of HEAD move or remove.

use std::collections::{BTreeMap, HashSet};

use super::proof::{NoProof, RemovedBy, RemovingBlock};
use crate::change::error::ChangeError;
use crate::change::present::CurrentProject;
use crate::git::{CommitId, CommitTree, Repository};
use crate::path::StackPath;
use crate::project::relocation::RemovedBlock;
use crate::project::{Problems, Project};

/// The `moved` and `removed` blocks that cover missing stacks.
pub(super) struct RelocationBlocks<'p> {
    project: &'p Project,
    destinations: BTreeMap<&'p StackPath, StackPath>,
    /// The `from` texts of the `removed` blocks that HEAD has too.
    committed: HashSet<String>,
}

impl<'p> RelocationBlocks<'p> {
    /// Finds the blocks that cover some stacks.
    pub(super) fn read(
        present: CurrentProject<'p>,
        head: &CommitId,
        stacks: impl Iterator<Item = &'p StackPath> + Clone,
    ) -> Result<Self, ChangeError> {
        let project = present.project;
        let mut given_up = RelocationBlocks {
            project,
            destinations: project.moves.destinations(stacks.clone()),
            committed: HashSet::new(),
        };
        let blocks: Vec<&RemovedBlock> = stacks.filter_map(|it| given_up.written(it)).collect();
        if blocks.is_empty() {
            return Ok(given_up);
        }
        // Imports of the file, and marks that hide its directory, must be committed too.
        let repository = Repository::open(&project.root)?;
        let tree = CommitTree::new(repository, head.clone());
        let at_head = Project::load_tree(&project.root, &tree, &mut Problems::default())?;
        let committed = blocks.into_iter().filter(|block| {
            let there = at_head.removed.of(&block.from.value);
            there.is_some_and(|there| there.says_the_same(block))
                && block.in_tree(&at_head.stacks).next().is_none()
        });
        given_up.committed = committed
            .map(|block| block.from.value.to_string())
            .collect();
        Ok(given_up)
    }

    /// Returns the path of a recorded stack, and its new path if a block moves it.
    pub(super) fn places<'a>(
        &'a self,
        stack: &'a StackPath,
    ) -> impl Iterator<Item = &'a StackPath> {
        std::iter::once(stack).chain(self.destinations.get(stack))
    }

    /// Returns the `removed` block that covers a stack, committed or not.
    fn written(&self, stack: &StackPath) -> Option<&'p RemovedBlock> {
        // A moved stack was not removed at its old path.
        let now = self.destinations.get(stack).unwrap_or(stack);
        self.project.removed.of(now)
    }

    /// Returns whether a `removed` block keeps the stack's resources.
    pub(super) fn leaves(&self, stack: &StackPath) -> bool {
        self.written(stack).is_some_and(|block| !block.destroy)
    }

    /// Returns what removed a stack, if a block did. Fails if a block makes it doubtful that the
    /// stack was removed.
    pub(super) fn block(&self, stack: &StackPath) -> Result<Option<RemovedBy>, NoProof> {
        let sources = &self.project.sources;
        let Some(block) = self.written(stack) else {
            let moved = self.project.moves.from(stack);
            return match (self.destinations.get(stack), moved) {
                (Some(now), Some(moved)) => {
                    Err(NoProof::MovedAway(now.clone(), sources.line(moved.span)))
                }
                _ => Ok(None),
            };
        };
        if !self.committed.contains(block.from.value.as_str()) {
            return Err(NoProof::BlockNotCommitted(sources.line(block.span)));
        }
        let (file, line) = sources.file_and_line(block.span);
        Ok(Some(RemovedBy::Block(RemovingBlock {
            file: file.to_owned(),
            line,
            destroys: block.destroy,
        })))
    }
}
