//! Causes of changes, and the inputs of stacks.

use std::fmt;

use crate::git::ChangedFile;
use crate::path::ProjectPath;
use crate::pattern::FilePattern;
use crate::project::{Ignore, Project};
use crate::source::Span;

/// Why a stack counts as changed: a file, and how the stack depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeCause {
    pub file: ChangedFile,
    /// The steps from the stack to the file; empty for the stack's own files.
    pub chain: Vec<Use>,
}

/// Something that a stack depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    pub location: InputLocation,
    /// The steps from the stack to the input; empty for the stack's own directory.
    pub chain: Vec<Use>,
    pub change: Option<ChangedFile>,
    /// The links from the input to the changed file, if that is elsewhere.
    pub links: Vec<Use>,
    /// Its changes that do not count, set by [`super::add_uncounted`].
    pub uncounted: Vec<UncountedChange>,
    /// The parts that `ignore_changes` leaves out, set by [`super::mark_ignored`].
    pub ignored: Ignored,
}

/// What `ignore_changes` leaves out of an input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ignored {
    #[default]
    Nothing,
    /// The files that these entries match, as written.
    Matching(Vec<String>),
    All,
}

/// The place of an input, which may not exist.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InputLocation {
    /// A file, or a directory with everything below it.
    Path(ProjectPath),
    Matching(FilePattern),
}

impl fmt::Display for InputLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputLocation::Path(path) => write!(f, "{path}"),
            InputLocation::Matching(pattern) => write!(f, "{pattern}"),
        }
    }
}

/// One step from a stack to a file that it depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub kind: UseKind,
    /// Where the use is written; for a link, the link itself.
    pub location: Location,
}

/// The kind of use that makes a file an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UseKind {
    /// `watch` names it.
    Watch,
    /// It belongs to the module of this source, as written.
    Module(Box<str>),
    /// A Terraform function reads it.
    Read(Box<str>),
    /// A symbolic link leads to it.
    Link,
    /// `import` names it.
    Import,
    /// A block or function of Terragrunt reads it.
    Terragrunt(Box<str>),
    /// A variable of `run.env` depends on it.
    Environment {
        name: Box<str>,
        /// Whether this is the definition at the base.
        was: bool,
    },
    /// An attribute of the `stack` block depends on it.
    Attribute(Box<str>),
    Global {
        /// For example `global.region`.
        name: Box<str>,
        /// Whether this is the definition at the base.
        was: bool,
    },
    /// A `let` depends on it.
    Let {
        /// For example `let.region`.
        name: Box<str>,
        /// Whether this is the definition at the base.
        was: bool,
    },
    /// It hid the stack at the base: a skip mark, or a file that made a directory above it a separate
    /// project.
    Hidden,
    /// It adds a stack to `terramate.stacks.list` or removes one.
    StackList,
}

/// A place in a file of the project, which may be outside of [`crate::source::Sources`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub file: ProjectPath,
    /// From 1, if known.
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
    /// The links from the input to the file, if that is elsewhere.
    pub links: Vec<Use>,
    pub why: WhyUncounted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyUncounted {
    /// Changes in this state are disabled.
    Off(SwitchedOff),
    /// This entry of `config.change_detection.ignore` matches the file.
    Ignored {
        /// As written.
        entry: String,
        location: Location,
    },
    /// None of the changes in this configuration file concern an input.
    NoInput,
}

impl WhyUncounted {
    pub(super) fn ignored(by: &Ignore, project: &Project) -> Self {
        WhyUncounted::Ignored {
            entry: by.written.value.clone(),
            location: Location::of(by.written.span, project),
        }
    }
}

/// The setting that disables changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchedOff {
    /// `--disable-change-detection`.
    Flag,
    /// `config.change_detection.git`.
    Configuration,
}
