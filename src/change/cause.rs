//! Why a stack counts as changed, and what it depends on.

use std::fmt;

use crate::git::ChangedFile;
use crate::path::ProjectPath;
use crate::pattern::Pattern;
use crate::project::{Ignore, Project};
use crate::source::Span;

/// Why a stack counts as changed: a file, and how the stack depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeCause {
    pub file: ChangedFile,
    /// The steps from the stack to the file; empty if the file is the stack's own.
    pub chain: Vec<Use>,
}

/// Something that a stack depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Where it is.
    pub location: InputLocation,
    /// The steps from the stack to it; empty for the stack's own directory.
    pub chain: Vec<Use>,
    pub change: Option<ChangedFile>,
    /// The links that lead from it to the change, if the change is elsewhere.
    pub links: Vec<Use>,
    /// Changes of it that do not count, once [`super::add_uncounted`] has looked for them.
    pub uncounted: Vec<UncountedChange>,
    /// What `ignore_changes` leaves out of it, once [`super::mark_ignored`] has looked.
    pub ignored: Ignored,
}

/// What `ignore_changes` leaves out of an input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ignored {
    #[default]
    Nothing,
    /// Whatever these entries match there, as written.
    Matching(Vec<String>),
    /// All of it.
    All,
}

/// Where an input is, whether or not anything exists there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InputLocation {
    /// A file, or a directory with everything below it.
    Path(ProjectPath),
    /// The files that a pattern matches.
    Matching(Pattern),
}

impl fmt::Display for InputLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputLocation::Path(path) => write!(f, "{path}"),
            InputLocation::Matching(pattern) => write!(f, "{pattern}"),
        }
    }
}

/// One step from a stack towards a file that it depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// What makes the file an input.
    pub kind: UseKind,
    /// Where that is written; of a link, the link itself.
    pub location: Location,
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
    /// This variable of `run.env` is computed from it.
    Environment {
        /// The variable.
        name: Box<str>,
        /// Whether the definition is the one that the base has.
        was: bool,
    },
    /// This attribute of the `stack` block is computed from it.
    Attribute(Box<str>),
    /// This global is computed from it.
    Global {
        /// The global: `global.region`.
        name: Box<str>,
        /// Whether the definition is the one that the base has.
        was: bool,
    },
    /// This `let` is computed from it.
    Let {
        /// The name: `let.region`.
        name: Box<str>,
        /// Whether the definition is the one that the base has.
        was: bool,
    },
    /// It hid the stack at the base: a skip mark, or a file that made a directory above it a project.
    Hidden,
    /// It adds a stack to `terramate.stacks.list` or removes one.
    StackList,
}

/// A place in a file of the project, which need not be one of [`crate::source::Sources`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub file: ProjectPath,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
}

impl Location {
    pub(super) fn of(span: Span, project: &Project) -> Self {
        let (file, position) = project.sources.locate(span);
        Location {
            file: file.path.clone(),
            line: Some(position.line),
        }
    }
}

/// A change of an input that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncountedChange {
    pub file: ChangedFile,
    /// The links that lead from the input to the file, if it is elsewhere.
    pub links: Vec<Use>,
    /// Why it does not count.
    pub why: WhyUncounted,
}

/// Why a change does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyUncounted {
    /// Changes of its state are switched off.
    Off(SwitchedOff),
    /// This entry of `config.change_detection.ignore` matches the file.
    Ignored {
        /// The entry, as written.
        entry: String,
        /// Where it is written.
        location: Location,
    },
    /// It is a configuration file in which nothing has changed that is an input of a stack.
    NoInput,
}

impl WhyUncounted {
    /// Returns the reason for a file that an entry ignores.
    pub(super) fn ignored(by: &Ignore, project: &Project) -> Self {
        WhyUncounted::Ignored {
            entry: by.written.value.clone(),
            location: Location::of(by.written.span, project),
        }
    }
}

/// What switches changes off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchedOff {
    /// `--disable-change-detection`.
    Flag,
    /// `config.change_detection.git`.
    Configuration,
}
