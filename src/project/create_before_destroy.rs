//! Stacks that have `create_before_destroy` because a dependent has it. `selection` finds them.

use crate::path::StackPath;
use crate::source::Span;

/// `create_before_destroy` of a stack that a dependent forces on it, as in Terraform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForcedCreateBeforeDestroy {
    pub from: StackPath,
    /// The place of the rule, if it is in the project.
    pub span: Option<Span>,
}
