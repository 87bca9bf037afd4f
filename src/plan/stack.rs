//! The stacks of a plan: those of this commit, and removed ones with the code of an earlier commit.

use crate::driver::Driver;
use crate::path::StackPath;
use crate::project::Project;
use crate::project::environment::Environments;
use crate::project::sharing::InputBlock;
use crate::project::stack::StackIndex;

/// A stack of a plan. Those of this commit come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanStack {
    Here(StackIndex),
    /// A removed stack, by its index in the plan's removals.
    Removed(usize),
}

impl PlanStack {
    /// Returns the stack if it is in this commit.
    pub fn here(self) -> Option<StackIndex> {
        match self {
            PlanStack::Here(stack) => Some(stack),
            PlanStack::Removed(_) => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct StackCode<'a, 'p> {
    pub project: &'p Project,
    pub environments: &'a Environments<'p>,
}

/// A removed stack, or an old generation of a stack.
#[derive(Debug, Clone, Copy)]
pub struct RemovedCode<'a, 'p> {
    /// In the project of a commit that still has the stack.
    pub code: StackCode<'a, 'p>,
    pub stack: StackIndex,
    /// The path to destroy: the stack's, or that of one of its generations.
    pub path: &'a StackPath,
    pub driver: Driver<'p>,
    /// The recorded workspace of its tool, unless it is the default.
    pub workspace: Option<&'a str>,
}

impl<'p> RemovedCode<'_, 'p> {
    pub fn inputs(&self) -> &'p [InputBlock] {
        self.code.project.inputs_of(self.stack)
    }
}
