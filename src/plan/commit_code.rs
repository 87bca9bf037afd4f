//! Loads the code of an older commit. Removed stacks are destroyed with the configuration,
//! environment and driver of the commit that last applied them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::change::{ChangeError, InputDigests, digests};
use crate::diagnostic::Diagnostic;
use crate::driver::{Driver, ToolsOnPath, driver_of, local_state};
use crate::git::{CommitId, GitError, Repository, Worktree};
use crate::path::StackPath;
use crate::project::discover::Listing;
use crate::project::stack::StackIndex;
use crate::project::{Problems, Project};
use crate::state::document::{Entry, Inputs};

/// A checkout of a commit, removed on drop.
pub struct CommitCode {
    pub project: Project,
    listing: Listing,
    digests: InputDigests,
    /// The project's path in the repository, `/`-separated.
    prefix: String,
    /// Files that git filters should have written but did not, by path in the repository.
    unfilled: BTreeMap<String, String>,
    /// Keeps the checkout until drop.
    _worktree: Worktree,
}

#[derive(Debug, thiserror::Error)]
pub enum NoCode {
    #[error("its commit cannot be checked out: {0}")]
    Git(#[from] GitError),
    #[error("the files of its commit cannot be read")]
    Read,
    #[error("the configuration of its commit is wrong: {0}")]
    Configuration(String),
    #[error("the applied commit does not have it")]
    Nothing,
    /// This version does not know that commit's input rules.
    #[error("this version of orch cannot check whether its commit has the applied inputs")]
    Rules,
    #[error("the files of its commit differ from the applied ones")]
    Inputs,
    #[error("`{0}` needs the filter `{1}` of git, which is not installed")]
    Filter(String, String),
    #[error("its commit has no driver for it")]
    Driver,
    #[error("the state of its tool is not on this machine: `{0}` is missing")]
    LocalState(String),
    #[error("the state of its tool cannot be used from its commit: {0}")]
    Link(#[from] io::Error),
}

impl From<ChangeError> for NoCode {
    fn from(_: ChangeError) -> Self {
        NoCode::Read
    }
}

fn located(problem: &Diagnostic, project: &Project) -> String {
    let place = match (problem.labels.first(), &problem.file) {
        (Some(label), _) => project.sources.line(label.span),
        (None, Some(file)) => file.relative().to_owned(),
        (None, None) => return problem.message.clone(),
    };
    format!("{place}: {}", problem.message)
}

impl CommitCode {
    /// Checks out a commit into a new directory and loads its project.
    pub fn check_out(
        repository: &Repository,
        commit: &CommitId,
        path: &Path,
    ) -> Result<Self, NoCode> {
        let worktree = repository.check_out(commit, path)?;
        let path = dunce::canonicalize(worktree.path())?;
        let prefix = repository.prefix();
        // Drops the trailing slash of an empty prefix.
        let root: PathBuf = path.join(prefix).components().collect();
        let mut problems = Problems::default();
        let loaded = Project::load_with_listing(&root, &mut problems);
        let (project, listing) = loaded.map_err(|_| NoCode::Read)?;
        if let Some(first) = problems.diagnostics.iter().find(|it| it.is_error()) {
            return Err(NoCode::Configuration(located(first, &project)));
        }
        if !problems.errors.is_empty() {
            return Err(NoCode::Read);
        }
        let own = Repository::open(&root)?;
        let digests = digests(&project, &listing, &own, &[], &mut Problems::default())?;
        Ok(CommitCode {
            project,
            listing,
            digests,
            prefix: prefix.to_owned(),
            unfilled: worktree.unfilled()?,
            _worktree: worktree,
        })
    }

    /// Returns the stack at a path if the commit has exactly the configuration that was applied.
    pub fn stack(&self, path: &StackPath, entry: &Entry) -> Result<StackIndex, NoCode> {
        let stack = self.project.stacks.find(path).ok_or(NoCode::Nothing)?;
        let applied = entry.applied.as_ref();
        // An imported stack has no recorded inputs.
        if let Some(inputs) = applied.and_then(|applied| applied.inputs.as_ref()) {
            self.compare(stack, inputs)?;
        }
        let directory = format!("{}{}/", self.prefix, path.directory());
        let directory = directory.trim_start_matches('/');
        let mut unfilled = self.unfilled.range(directory.to_owned()..);
        match unfilled.next() {
            Some((file, filter)) if file.starts_with(directory) => {
                Err(NoCode::Filter(file.clone(), filter.clone()))
            }
            _ => Ok(stack),
        }
    }

    fn compare(&self, stack: StackIndex, recorded: &Inputs) -> Result<(), NoCode> {
        if recorded.rules != self.digests.stacks[&stack].inputs.rules {
            return Err(NoCode::Rules);
        }
        if self.digests.are(stack, recorded) {
            Ok(())
        } else {
            Err(NoCode::Inputs)
        }
    }

    pub fn driver(
        &self,
        stack: StackIndex,
        recorded: Option<&str>,
        on_path: ToolsOnPath,
    ) -> Result<Driver<'_>, NoCode> {
        driver_of(&self.project, &self.listing, stack, recorded, on_path).ok_or(NoCode::Driver)
    }

    /// Links a tool's local state into the checkout. The tool then changes the original, and
    /// removing the checkout loses nothing. `root` is the root of the working tree, `backend` the
    /// recorded backend.
    pub fn link_local_state(&self, root: &Path, backend: &str) -> Result<(), NoCode> {
        let Some((place, here)) = find_local_state(root, backend)? else {
            return Ok(());
        };
        let path = Path::new(place);
        let missing = || NoCode::LocalState(place.to_owned());
        let there = self.project.root.join(path);
        let directory = path.parent().ok_or_else(missing)?;
        if !make_directories(&self.project.root, directory)? {
            return Err(missing());
        }
        replace_by_link(&here, &there)?;
        // Terraform writes a backup beside the state.
        let backup = |state: &Path| PathBuf::from(format!("{}.backup", state.display()));
        Ok(replace_by_link(&backup(&here), &backup(&there))?)
    }
}

/// Finds a tool's local state in the working tree: its path from the stack, and the file. `None` if
/// the state is not local. Fails if the file does not exist.
pub fn find_local_state<'b>(
    root: &Path,
    backend: &'b str,
) -> Result<Option<(&'b str, PathBuf)>, NoCode> {
    let Some(place) = local_state(backend) else {
        return Ok(None);
    };
    let path = Path::new(place);
    let missing = || NoCode::LocalState(place.to_owned());
    let is_inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !is_inside {
        // An absolute path needs no link.
        let is_there = path.is_absolute() && path.is_file();
        return if is_there { Ok(None) } else { Err(missing()) };
    }
    let here = root.join(path);
    // A link may lead outside the project.
    let is_file = here.symlink_metadata().is_ok_and(|it| it.is_file());
    let is_within = dunce::canonicalize(&here).is_ok_and(|real| real == here);
    if !is_file || !is_within {
        return Err(missing());
    }
    Ok(Some((place, here)))
}

/// Creates the directories of a path below `root`. Returns whether all are real directories: a link
/// in the commit could lead out of the checkout.
fn make_directories(root: &Path, path: &Path) -> io::Result<bool> {
    let mut directory = root.to_owned();
    for part in path.components() {
        directory.push(part);
        match directory.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(&directory)?,
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Links to a file from a path in a real directory. Replaces any file there: git may have a copy,
/// but the original in the working tree is authoritative.
fn replace_by_link(target: &Path, at: &Path) -> io::Result<()> {
    match at.symlink_metadata() {
        Ok(_) if at.read_link().is_ok_and(|it| it == target) => return Ok(()),
        Ok(_) => fs::remove_file(at)?,
        Err(_) => {}
    }
    link(target, at)
}

#[cfg(unix)]
fn link(target: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

#[cfg(windows)]
fn link(target: &Path, at: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target, at)
}
