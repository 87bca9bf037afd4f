//! Stacks that have `create_before_destroy` because of others. This module doesn't know how it spreads.

use crate::path::StackPath;
use crate::source::Span;

/// From where `create_before_destroy` extends to a stack: something that runs after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeFirst {
    /// The stack that has the rule.
    pub from: StackPath,
    /// The place of the rule, if it is in the project.
    pub span: Option<Span>,
}
