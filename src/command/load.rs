//! Finds and loads the project of a command. A worker loads it once for all of its stacks.

use std::cell::RefCell;
use std::path::Path;

use tracing::{debug, info};

use crate::context::{Context, GitReader, GitState, MARK_ROOT};
use crate::error::{Error, ErrorContext as _, ErrorKind, Result, with_causes};
use crate::git::{CommitId, missing_submodules};
use crate::notice::Notices;
use crate::path::ProjectPath;
use crate::printable::printable;
use crate::project::{Problems, discover};
use crate::workspace::LocatedProject;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    pub status: ReadStatus,
    /// Whether the listing of possible inputs is read.
    pub listing: bool,
    /// Whether all data that stacks use of each other is looked for.
    pub data: bool,
}

/// How much of git's status is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadStatus {
    Nothing,
    /// An inexact status, for the journal only.
    Rough,
    Exact,
}

impl Reads {
    pub const CONFIGURATION: Reads = Reads {
        status: ReadStatus::Nothing,
        listing: false,
        data: false,
    };
    pub const INPUTS: Reads = Reads {
        status: ReadStatus::Nothing,
        listing: true,
        data: false,
    };
    pub const CHANGES: Reads = Reads {
        status: ReadStatus::Exact,
        listing: true,
        data: false,
    };

    #[must_use]
    pub fn with_listing(self) -> Self {
        Reads {
            listing: true,
            ..self
        }
    }

    #[must_use]
    pub fn with_data(self, data: bool) -> Self {
        Reads { data, ..self }
    }

    #[must_use]
    pub fn with_status(self, status: ReadStatus) -> Self {
        Reads {
            status: self.status.max(status),
            ..self
        }
    }
}

/// Finds the project around a directory.
pub fn find_project(directory: &Path) -> Result<LocatedProject> {
    let wrong =
        |why: &str| Error::usage(format!("cannot change to `{}`: {why}", directory.display()));
    let current = dunce::canonicalize(directory).map_err(|error| wrong(&error.to_string()))?;
    if !current.is_dir() {
        let why = "not a directory";
        return Err(Error::usage(format!(
            "cannot change to `{}`: {why}",
            current.display()
        )));
    }
    let (root, rule) = discover::find_root(&current)
        .map_err(|error| Error::new(ErrorKind::Configuration, error))?;
    info!(root = %root.display(), ?rule, "project root");
    let directory = ProjectPath::from_host(&root, &current);
    let directory =
        directory.context(format!("the path of `{}` is not UTF-8", current.display()))?;
    Ok(LocatedProject {
        root,
        rule,
        directory,
    })
}

/// Notes that nothing marks the root; `meaning` is a consequence.
pub fn note_unmarked(notices: &Notices, found: &LocatedProject, meaning: &str) {
    if !found.is_marked() {
        notices.note(&format!(
            "nothing marks the root of a project here, so it is `{}`{meaning}; {MARK_ROOT}",
            found.root.display()
        ));
    }
}

impl Context {
    /// Loads a project, reading git at the same time if requested.
    pub fn load(found: LocatedProject, reads: Reads, notices: Notices) -> Result<Self> {
        note_missing_submodules(&notices, &found.root);
        let is_rough = reads.status == ReadStatus::Rough;
        let git = match reads.status {
            ReadStatus::Nothing => GitState::Unread,
            ReadStatus::Rough | ReadStatus::Exact => {
                GitState::Reading(GitReader::start(&found.root, is_rough))
            }
        };
        let mut problems = Problems::default();
        let workspace = found
            .load(reads.listing, reads.data, &mut problems)
            .context("failed to read the project")?;
        debug!(
            files = workspace.project.sources.len(),
            stacks = workspace.project.stacks.len(),
            "project loaded"
        );
        Ok(Context::new(workspace, problems, git, notices))
    }
}

/// Notes that stacks may be missing because submodules are not checked out.
fn note_missing_submodules(notices: &Notices, root: &Path) {
    let missing = match missing_submodules(root) {
        Ok(missing) => missing,
        Err(error) => {
            let error = with_causes(&error);
            notices.note(&format!(
                "failed to look for submodules, so stacks may be missing: {error}"
            ));
            return;
        }
    };
    let path = |it: &ProjectPath| format!("`{}`", printable(it.relative()));
    let submodules = match missing.as_slice() {
        [] => return,
        [only] => format!("the submodule {} is not checked out", path(only)),
        [first, rest @ ..] => {
            format!(
                "the submodule {} and {} more are not checked out",
                path(first),
                rest.len()
            )
        }
    };
    notices.note(&format!(
        "{submodules}, so stacks may be missing; run `git submodule update --init --recursive`"
    ));
}

/// A loaded project with its inputs, for as long as HEAD is the same.
#[derive(Default)]
pub struct KeptProject {
    kept: RefCell<Option<Context>>,
    head: RefCell<Option<CommitId>>,
}

impl KeptProject {
    /// Returns the kept project, or loads it if there is none or HEAD has moved since. Fails if it
    /// cannot be loaded, or git cannot be asked.
    pub fn load<E: From<Error>>(
        &self,
        load: impl FnOnce() -> Result<Context, E>,
    ) -> Result<Context, E> {
        if let Some(context) = self.take()? {
            return Ok(context);
        }
        let mut context = load()?;
        *self.head.borrow_mut() = context.head()?;
        Ok(context)
    }

    /// Returns the kept project, if there is one and HEAD has not moved since it was loaded.
    pub(super) fn take(&self) -> Result<Option<Context>, Error> {
        let Some(mut context) = self.kept.take() else {
            return Ok(None);
        };
        let is_same = context.head()? == *self.head.borrow();
        // They have been shown.
        context.problems = Problems::default();
        Ok(is_same.then_some(context))
    }

    pub fn keep(&self, context: Context) {
        *self.kept.borrow_mut() = Some(context);
    }
}
