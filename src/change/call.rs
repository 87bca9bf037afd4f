//! Calls of modules from a registry or through git.

use super::cause::{Location, Use};

/// A call of a module outside of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleCall {
    /// The label of the block; for Terragrunt, `terraform.source`.
    pub name: Box<str>,
    pub source: Box<str>,
    /// Whether a part follows that only Terraform can evaluate.
    pub is_open: bool,
    pub version: CallVersion,
    pub location: Location,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallVersion {
    Any,
    Constraint(Box<str>),
    /// Only Terraform can evaluate it.
    Unknown,
}

/// A call by a stack, or by a module that it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundCall {
    pub call: ModuleCall,
    /// The modules between the stack and the call; empty for the stack's own call.
    pub chain: Vec<Use>,
}
