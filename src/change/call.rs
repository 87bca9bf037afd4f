//! Calls of modules that are not directories of the project: from a registry, or through git.

use super::cause::{Location, Use};

/// A call of a module that is elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleCall {
    /// The label of its block; of Terragrunt, `terraform.source`.
    pub name: Box<str>,
    /// The text of the source, as far as it is text.
    pub source: Box<str>,
    /// Whether something follows the text that only Terraform knows.
    pub is_open: bool,
    pub version: CallVersion,
    /// Where its source is written.
    pub location: Location,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallVersion {
    /// There is none.
    Any,
    /// This text.
    Constraint(Box<str>),
    /// Something that only Terraform knows.
    Unknown,
}

/// A call that a stack makes, itself or in a module that it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundCall {
    pub call: ModuleCall,
    /// The modules on the way from the stack to it; empty if it is the stack's own.
    pub chain: Vec<Use>,
}
