//! What the code of a stack says about the data of others, before anyone knows which stacks these are.

use std::sync::Arc;

use crate::path::ProjectPath;
use crate::project::stack::DataKind;
use crate::source::Span;

#[derive(Debug, Clone)]
pub(super) struct CodeUse {
    pub(super) kind: DataKind,
    /// The stack that is meant; `None` if that cannot be determined.
    pub(super) place: Option<UsedPlace>,
    pub(super) file: ProjectPath,
    pub(super) text: Arc<str>,
    pub(super) span: Span,
}

/// How code names the stack whose data it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UsedPlace {
    /// By its directory: the first of these that is a stack.
    Directories(Vec<ProjectPath>),
    Backend(String),
}

#[derive(Debug, Default)]
pub(super) struct CodeData {
    pub(super) uses: Vec<CodeUse>,
    /// The backends that the Terraform files may configure, as far as they can be determined.
    pub(super) backends: Vec<String>,
}
