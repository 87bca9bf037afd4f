//! The data that a stack uses of other stacks.

use std::fmt;

use crate::path::StackPath;
use crate::source::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataKind {
    /// An `input` block names it.
    Input,
    /// A `dependency` block of Terragrunt names it.
    Dependency,
    /// A `dependencies` block of Terragrunt names it: for the order alone, no data is used.
    Dependencies,
    /// A `terraform_remote_state` data source has its backend.
    RemoteState,
    /// A condition or a variable of its environment names it: `stacks["/network"]`.
    Expression,
}

impl DataKind {
    /// Returns whether data is used, and not only the order declared.
    pub fn is_data(self) -> bool {
        self != DataKind::Dependencies
    }
}

/// As in configuration.
impl fmt::Display for DataKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataKind::Input => "input",
            DataKind::Dependency => "dependency",
            DataKind::Dependencies => "dependencies",
            DataKind::RemoteState => "terraform_remote_state",
            DataKind::Expression => "stacks",
        })
    }
}

/// A place where a stack uses data of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackUse {
    pub kind: DataKind,
    pub stack: StackPath,
    /// Whether the stack runs after the other one because of this.
    pub orders: bool,
    pub span: Span,
}
