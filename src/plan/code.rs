//! The stacks of a plan, and the code that their commands run in: that of the tree or, for a stack that was
//! removed, that of a commit.

use crate::path::StackPath;
use crate::project::Project;
use crate::project::environment::Environments;
use crate::project::stack::{Stack, StackIndex};

/// A stack of a plan. Those of the tree come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanStack {
    /// A stack of the tree.
    Here(StackIndex),
    /// A stack that was removed, by its position among those of the plan.
    Removed(usize),
}

impl PlanStack {
    /// Returns the stack, if it is in the tree.
    pub fn here(self) -> Option<StackIndex> {
        match self {
            PlanStack::Here(stack) => Some(stack),
            PlanStack::Removed(_) => None,
        }
    }
}

/// A project whose commands run.
#[derive(Debug, Clone, Copy)]
pub struct Code<'a, 'p> {
    pub project: &'p Project,
    /// The environments of its stacks.
    pub environments: &'a Environments<'p>,
}

/// A stack that was removed, or a generation of a stack that is not current.
#[derive(Debug, Clone, Copy)]
pub struct RemovedCode<'a, 'p> {
    /// The project in which it still is.
    pub code: Code<'a, 'p>,
    pub stack: StackIndex,
    /// What is destroyed: the stack, or a generation of it.
    pub path: &'a StackPath,
    /// The workspace that its tool used, if that is on record and not the usual one.
    pub workspace: Option<&'a str>,
}

/// The stacks of a plan with their code.
#[derive(Debug, Clone, Copy)]
pub struct Codes<'a, 'p> {
    pub tree: Code<'a, 'p>,
    /// The stacks that were removed.
    pub removed: &'a [RemovedCode<'a, 'p>],
}

impl<'a, 'p> Codes<'a, 'p> {
    pub fn of(&self, stack: PlanStack) -> (Code<'a, 'p>, StackIndex) {
        match stack {
            PlanStack::Here(stack) => (self.tree, stack),
            PlanStack::Removed(position) => {
                let RemovedCode { code, stack, .. } = self.removed[position];
                (code, stack)
            }
        }
    }

    /// Returns the workspace that the tool of a stack that was removed has used, if that is not the usual one.
    pub(super) fn workspace(&self, stack: PlanStack) -> Option<&'a str> {
        match stack {
            PlanStack::Here(_) => None,
            PlanStack::Removed(position) => self.removed[position].workspace,
        }
    }

    /// Returns what is known of a stack.
    pub fn stack(&self, stack: PlanStack) -> &'p Stack {
        let (code, stack) = self.of(stack);
        &code.project.stacks[stack]
    }

    pub fn path(&self, stack: PlanStack) -> &'a StackPath
    where
        'p: 'a,
    {
        match stack {
            PlanStack::Here(stack) => &self.tree.project.stacks[stack].path,
            PlanStack::Removed(position) => self.removed[position].path,
        }
    }
}
