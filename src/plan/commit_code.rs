//! The code of a commit, for stacks that were removed: their configuration, environment and driver are those
//! of the commit that was applied to them.

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

/// A commit that is checked out. The checkout goes when this is dropped.
pub struct CommitCode {
    pub project: Project,
    listing: Listing,
    digests: InputDigests,
    /// The path of the project in the repository, `/`-separated.
    prefix: String,
    /// The files, from the top of the repository, that filters should have made which are not there.
    unfilled: BTreeMap<String, String>,
    /// Kept: the checkout goes with it.
    _worktree: Worktree,
}

/// Why the code of a commit cannot be used for a stack.
#[derive(Debug, thiserror::Error)]
pub enum NoCode {
    /// Git does not check it out, or cannot tell what is in it.
    #[error("its commit cannot be checked out: {0}")]
    Git(#[from] GitError),
    /// Its files cannot be read.
    #[error("the files of its commit cannot be read")]
    Read,
    /// The configuration of the commit is wrong.
    #[error("the configuration of its commit is wrong: {0}")]
    Configuration(String),
    /// The commit does not have the stack.
    #[error("the commit that was applied does not have it")]
    Nothing,
    /// What counted as an input then cannot be compared.
    #[error("this version of orch cannot tell whether its commit has what was applied")]
    Rules,
    /// Its inputs are not those on record.
    #[error("its commit has other files than those that were applied")]
    Inputs,
    /// A file needs a filter of git that is not there.
    #[error("`{0}` needs the filter `{1}` of git, which is not installed")]
    Filter(String, String),
    #[error("it has no driver in its commit")]
    Driver,
    /// The state of its tool is not on this machine.
    #[error("the state of its tool is not on this machine: `{0}` is missing")]
    LocalState(String),
    /// The state of its tool cannot be linked in.
    #[error("the state of its tool cannot be used from its commit: {0}")]
    Link(#[from] io::Error),
}

impl From<ChangeError> for NoCode {
    fn from(_: ChangeError) -> Self {
        NoCode::Read
    }
}

/// Returns a problem of a project in words, after the file and the line that have it.
fn located(problem: &Diagnostic, project: &Project) -> String {
    let place = match (problem.labels.first(), &problem.file) {
        (Some(label), _) => project.sources.line(label.span),
        (None, Some(file)) => file.relative().to_owned(),
        (None, None) => return problem.message.clone(),
    };
    format!("{place}: {}", problem.message)
}

impl CommitCode {
    /// Checks out a commit in a directory that does not exist yet, and reads the project in it.
    ///
    /// # Errors
    ///
    /// If git does not do that, or the configuration of the commit is wrong.
    pub fn check_out(
        repository: &Repository,
        commit: &CommitId,
        path: &Path,
    ) -> Result<Self, NoCode> {
        let worktree = repository.check_out(commit, path)?;
        let path = dunce::canonicalize(worktree.path())?;
        let prefix = repository.prefix();
        // Without the slash at its end, which an empty path would leave as well.
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

    /// Returns a stack that is on record under a key, if the commit has what was applied.
    ///
    /// # Errors
    ///
    /// If it has not, or a part of it is missing in the checkout.
    pub fn stack(&self, path: &StackPath, entry: &Entry) -> Result<StackIndex, NoCode> {
        let stack = self.project.stacks.find(path).ok_or(NoCode::Nothing)?;
        let applied = entry.applied.as_ref();
        // What was imported has no inputs on record.
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
        if recorded.rules != self.digests.rules {
            return Err(NoCode::Rules);
        }
        if self.digests.are(stack, recorded) {
            Ok(())
        } else {
            Err(NoCode::Inputs)
        }
    }

    /// Returns the driver of a stack, given the one on record.
    ///
    /// # Errors
    ///
    /// If it has none.
    pub fn driver(
        &self,
        stack: StackIndex,
        recorded: Option<&str>,
        on_path: ToolsOnPath,
    ) -> Result<Driver<'_>, NoCode> {
        driver_of(&self.project, &self.listing, stack, recorded, on_path).ok_or(NoCode::Driver)
    }

    /// Links the state that a tool keeps in the tree into the checkout, so that the tool changes it where it
    /// is, whatever becomes of the checkout. `root` is the root of the tree, `backend` what is on record.
    ///
    /// # Errors
    ///
    /// If it is not there, or cannot be linked.
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
        // Terraform writes a copy of the last state beside it.
        let backup = |state: &Path| PathBuf::from(format!("{}.backup", state.display()));
        Ok(replace_by_link(&backup(&here), &backup(&there))?)
    }
}

/// Finds the state that a tool keeps in the tree: where it is from the root of the tree, and the file. None if the tool
/// does not keep its state there. `root` is the root of the tree, `backend` what is on record.
///
/// # Errors
///
/// If it is not there.
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
        // It is the same from everywhere.
        let is_there = path.is_absolute() && path.is_file();
        return if is_there { Ok(None) } else { Err(missing()) };
    }
    let here = root.join(path);
    // A link could lead anywhere.
    let is_file = here.symlink_metadata().is_ok_and(|it| it.is_file());
    let is_within = dunce::canonicalize(&here).is_ok_and(|real| real == here);
    if !is_file || !is_within {
        return Err(missing());
    }
    Ok(Some((place, here)))
}

/// Makes the directories of a path below another one; returns whether all of them are real ones: a link of the
/// commit could lead out of the checkout.
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

/// Puts a link to a file in a place, whose directory is a real one, instead of the file that may be there: git
/// may have it, but what counts is in the tree.
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
