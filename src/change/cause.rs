//! Why a stack counts as changed.

use crate::git::ChangedFile;
use crate::path::ProjectPath;
use crate::project::Project;
use crate::source::Span;

/// Why a stack counts as changed: a file, and how the stack comes to depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The file.
    pub file: ChangedFile,
    /// How one gets from the stack to the file; empty if the file is the stack's own.
    pub chain: Vec<Use>,
}

/// One step from a stack towards a file that it depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// What makes the file an input.
    pub kind: UseKind,
    /// Where that is written; of a link, the link itself.
    pub place: Place,
}

/// What makes a file an input of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UseKind {
    /// `watch` names it.
    Watch,
    /// It belongs to the module of this source, as written.
    Module(Box<str>),
    /// This Terraform function reads it.
    Read(Box<str>),
    /// A symbolic link leads to it.
    Link,
    /// `import` names it.
    Import,
    /// This block or function of Terragrunt reads it.
    Terragrunt(Box<str>),
}

/// A place in a file of the project, which need not be one of [`crate::source::Sources`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: ProjectPath,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
}

impl Place {
    pub(super) fn of(span: Span, project: &Project) -> Self {
        let (file, position) = project.sources.locate(span);
        Place {
            file: file.path.clone(),
            line: Some(position.line),
        }
    }
}
