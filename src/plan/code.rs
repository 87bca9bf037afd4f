//! Where the commands of a plan's stacks come from: this commit, or for removed stacks an older one.

use super::inputs::StackInputs;
use super::stack::{PlanStack, RemovedCode, StackCode};
use crate::path::StackPath;
use crate::project::Project;
use crate::project::environment::Environments;
use crate::project::stack::{Stack, StackIndex};

#[derive(Debug, Clone, Copy)]
pub struct PlanCode<'a, 'p> {
    pub tree: StackCode<'a, 'p>,
    pub removed: &'a [RemovedCode<'a, 'p>],
    /// The inputs that the turns of an apply read.
    pub inputs: Option<&'a StackInputs<'p>>,
}

impl<'a, 'p> PlanCode<'a, 'p> {
    /// Returns the code of the stacks of this commit, without inputs.
    pub fn of_tree(project: &'p Project, environments: &'a Environments<'p>) -> Self {
        PlanCode {
            tree: StackCode {
                project,
                environments,
            },
            removed: &[],
            inputs: None,
        }
    }

    pub fn of(&self, stack: PlanStack) -> (StackCode<'a, 'p>, StackIndex) {
        match stack {
            PlanStack::Here(stack) => (self.tree, stack),
            PlanStack::Removed(position) => {
                let RemovedCode { code, stack, .. } = self.removed[position];
                (code, stack)
            }
        }
    }

    /// Returns the recorded workspace of a removed stack's tool, unless it is the default.
    pub(super) fn workspace(&self, stack: PlanStack) -> Option<&'a str> {
        match stack {
            PlanStack::Here(_) => None,
            PlanStack::Removed(position) => self.removed[position].workspace,
        }
    }

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
