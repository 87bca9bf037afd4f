//! How the stacks of a plan are named: by their index in this commit, or among its removals.

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
