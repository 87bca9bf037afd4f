//! Lifecycle rules: protection of a stack's resources, and conditions before and after a run.
//!
//! A rule is in the `lifecycle` block of a stack, or in `config.lifecycle` of any directory, for the stacks at and
//! below it. This module doesn't know which rules apply to a stack, and enforces nothing.

pub(crate) mod block;
mod mentions;
mod resources;

use std::fmt;
use std::sync::Arc;

pub use self::mentions::{Mentions, SELF, STACKS};
pub use self::resources::ProtectedResources;
use crate::language::syntax::Expr;
use crate::project::sharing::INPUT;
use crate::source::{Span, Spanned};

/// The rules that one place states: the block of a stack, or those of a directory.
#[derive(Debug, Clone, Default)]
pub struct Lifecycle {
    /// `prevent_destroy`: nothing that the stack has built is destroyed.
    pub prevent_destroy: Option<Spanned<bool>>,
    /// `prevent_resource_destroy`: these resources are neither destroyed nor replaced.
    pub prevent_resource_destroy: Option<Spanned<ProtectedResources>>,
    /// `create_before_destroy`: a replacement is created before the old stack is destroyed.
    pub create_before_destroy: Option<Spanned<bool>>,
    /// `ignore_changes`: inputs whose changes bring about nothing. The place is that of the attribute's
    /// value.
    pub ignore_changes: Option<Spanned<IgnoredChanges>>,
    /// `replace_triggered_by`, in the order written. Only the block of a stack has any.
    pub replace_triggered_by: Vec<Spanned<ReplaceTrigger>>,
    /// `precondition` and `postcondition` blocks, in the order written.
    pub conditions: Vec<Arc<Condition>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IgnoredChanges {
    /// `all`: every input.
    All,
    /// These, in the order written.
    Inputs(Vec<Spanned<IgnoredInput>>),
}

impl IgnoredChanges {
    /// Returns the entries as they are written, with `all` as the only one for every input.
    pub fn words(&self) -> Vec<String> {
        match self {
            IgnoredChanges::All => vec![block::ALL.to_owned()],
            IgnoredChanges::Inputs(inputs) => {
                inputs.iter().map(|input| input.value.to_string()).collect()
            }
        }
    }

    /// Returns whether a variable of the stack's environment is left out.
    pub fn leaves_out_variable(&self, name: &str) -> bool {
        self.leaves_out(|it| matches!(it, IgnoredInput::Variable(variable) if variable == name))
    }

    /// Returns whether an `input` of the stack is left out.
    pub fn leaves_out_input(&self, name: &str) -> bool {
        self.leaves_out(|it| matches!(it, IgnoredInput::Input(input) if input == name))
    }

    fn leaves_out(&self, is_meant: impl Fn(&IgnoredInput) -> bool) -> bool {
        match self {
            IgnoredChanges::All => true,
            IgnoredChanges::Inputs(inputs) => inputs.iter().any(|input| is_meant(&input.value)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IgnoredInput {
    /// Files that match a glob: relative to the stack, or from the project root if it starts with `/`.
    Files(String),
    /// `env.NAME`: a variable that the configuration sets.
    Variable(String),
    /// `input.NAME`: the outputs of another stack that an `input` block uses.
    Input(String),
}

impl fmt::Display for IgnoredInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IgnoredInput::Files(glob) => f.write_str(glob),
            IgnoredInput::Variable(name) => write!(f, "{}.{name}", block::ENV),
            IgnoredInput::Input(name) => write!(f, "{INPUT}.{name}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplaceTrigger {
    /// The reference, as in `after`.
    pub reference: String,
    /// The output after `#`, if only that one counts.
    pub output: Option<String>,
}

/// When a condition must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionKind {
    /// Before anything is done with the stack.
    Precondition,
    /// After it has been done.
    Postcondition,
}

impl ConditionKind {
    pub fn word(self) -> &'static str {
        match self {
            ConditionKind::Precondition => "precondition",
            ConditionKind::Postcondition => "postcondition",
        }
    }
}

/// A `precondition` or `postcondition` block.
#[derive(Debug)]
pub struct Condition {
    pub kind: ConditionKind,
    /// The condition, evaluated for each stack.
    pub condition: Expr,
    /// The message if it is false, evaluated for each stack.
    pub error_message: Expr,
    pub span: Span,
}

impl Lifecycle {
    pub fn is_empty(&self) -> bool {
        let Lifecycle {
            prevent_destroy,
            prevent_resource_destroy,
            create_before_destroy,
            ignore_changes,
            replace_triggered_by,
            conditions,
        } = self;
        prevent_destroy.is_none()
            && prevent_resource_destroy.is_none()
            && create_before_destroy.is_none()
            && ignore_changes.is_none()
            && replace_triggered_by.is_empty()
            && conditions.is_empty()
    }
}
