//! Changes since an earlier run.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::earlier::EarlierRun;
use crate::change::base::{Base, BaseRule};
use crate::change::{
    self, ChangeError, Changes, CountedStates, CurrentProject, HostEnvironment, SwitchedOff,
    UncommittedChanges,
};
use crate::git::{
    ChangedFile, CommitId, FileChange, FileState, GitError, Repository, blob_id, is_executable,
};
use crate::path::ProjectPath;
use crate::project::discover::Listing;
use crate::project::stack::{StackIndex, Stacks};
use crate::project::{Problems, Project};
use crate::record::journal::UncommittedFile;
use crate::selection::graph::digest;
use crate::selection::reference::References;

/// A repository, and how its working tree differs from HEAD.
#[derive(Clone, Copy)]
pub struct WorkingTree<'a> {
    pub repository: &'a Repository,
    pub status: &'a [ChangedFile],
    /// The host environment, which expressions may use.
    pub host: &'a HostEnvironment,
}

#[derive(Debug, Default)]
pub struct ChangesSinceRun {
    pub graph: bool,
    /// The old and the new HEAD, if it has moved.
    pub head: Option<(CommitId, CommitId)>,
    pub files: bool,
    /// The stacks that have changed, by path.
    pub stacks: Vec<ChangedStack>,
    /// Why it is unknown which stacks have changed.
    pub unknown: Option<UnknownChanges>,
}

#[derive(Debug)]
pub struct ChangedStack {
    pub stack: StackIndex,
    /// The file that makes it count as changed.
    pub file: ProjectPath,
    pub had_succeeded: bool,
}

/// Why the changes since an earlier run are unknown.
#[derive(Debug, thiserror::Error)]
pub enum UnknownChanges {
    #[error("HEAD cannot be read: {0}")]
    Head(#[source] GitError),
    #[error("the status of the working tree is unknown: {0}")]
    Status(#[source] Arc<GitError>),
    /// There was a commit then or is one now, and not both.
    #[error("HEAD was {} then, and is now {}", commit(.then.as_deref()), commit(.now.as_deref()))]
    NoCommit {
        then: Option<String>,
        now: Option<String>,
    },
    /// The journal does not name the files that were not committed.
    #[error("its journal lacks the files that were uncommitted then")]
    Uncommitted,
    /// The commit is not present.
    #[error("HEAD was {} then, which is not in this clone", commit(Some(.0.as_str())))]
    Missing(String),
    /// The list of differing files is unavailable.
    #[error("the changes cannot be determined: {0}")]
    Changes(#[source] ChangeError),
}

fn commit(id: Option<&str>) -> String {
    match id {
        Some(id) => format!("`{}`", id.get(..7).unwrap_or(id)),
        None => "no commit".to_owned(),
    }
}

impl ChangesSinceRun {
    /// Returns the stacks that had succeeded and have changed since.
    pub fn invalidated(&self) -> impl Iterator<Item = &ChangedStack> {
        self.stacks.iter().filter(|moved| moved.had_succeeded)
    }

    /// Returns whether nothing changed that matters for resuming.
    pub fn is_harmless(&self) -> bool {
        !self.graph && self.unknown.is_none() && self.invalidated().next().is_none()
    }
}

impl EarlierRun {
    /// Finds the changes since: in the graph, and in the files of stacks. Without a repository, files are not
    /// compared. Adds problems as `--changed` does.
    pub fn changes(
        &self,
        project: &Project,
        listing: &Listing,
        references: &References,
        working_tree: Result<Option<WorkingTree<'_>>, UnknownChanges>,
        problems: &mut Problems,
    ) -> ChangesSinceRun {
        let mut moved = ChangesSinceRun {
            graph: digest(&project.stacks, references) != self.record.header.graph,
            ..ChangesSinceRun::default()
        };
        let compared = working_tree
            .and_then(|tree| self.compare(project, listing, tree, &mut moved, problems));
        moved.unknown = compared.err();
        moved
    }

    /// Adds the changed files and stacks.
    fn compare(
        &self,
        project: &Project,
        listing: &Listing,
        working_tree: Option<WorkingTree<'_>>,
        moved: &mut ChangesSinceRun,
        problems: &mut Problems,
    ) -> Result<(), UnknownChanges> {
        let header = &self.record.header;
        let now = match &working_tree {
            Some(tree) => tree.repository.commit("HEAD"),
            None => Ok(None),
        };
        let now = now.map_err(UnknownChanges::Head)?;
        let then = header.head.clone();
        let (Some(tree), Some(then), Some(now)) = (working_tree, &then, &now) else {
            let now = now.map(|now| now.to_string());
            return match (&then, &now) {
                (None, None) => Ok(()),
                _ => Err(UnknownChanges::NoCommit { then, now }),
            };
        };
        let then = present(tree.repository, then)?;
        let recorded = header
            .uncommitted
            .as_deref()
            .ok_or(UnknownChanges::Uncommitted)?;
        let (same, status) = since(recorded, tree.status, &project.root);
        if then == *now && status.is_empty() {
            return Ok(());
        }
        moved.head = (then != *now).then(|| (then.clone(), now.clone()));
        let settings = &project.settings;
        let off = |counts: bool| (!counts).then_some(SwitchedOff::Configuration);
        let counted = CountedStates {
            untracked: off(settings.untracked),
            uncommitted: off(settings.uncommitted),
        };
        let base = Base {
            commit: then,
            rule: BaseRule::Named,
            reason: format!("HEAD of run {}", header.run),
        };
        let uncommitted = UncommittedChanges {
            status,
            counted,
            same,
        };
        let present = CurrentProject {
            project,
            listing,
            repository: tree.repository,
            uncommitted: &uncommitted,
            host: tree.host,
        };
        let changes = change::find(present, base, problems).map_err(UnknownChanges::Changes)?;
        moved.files = !changes.files.is_empty();
        moved.stacks = self.stacks_of(&changes, &project.stacks);
        Ok(())
    }

    /// Returns the stacks of the run that have changed, by path.
    fn stacks_of(&self, changes: &Changes, stacks: &Stacks) -> Vec<ChangedStack> {
        let recorded = self.record.stacks.iter().map(|stack| stack.path.as_str());
        let of_run: HashSet<&str> = recorded.collect();
        let own = changes
            .stacks
            .iter()
            .map(|(stack, cause)| (*stack, &cause.file.path));
        let triggered = changes
            .triggered
            .iter()
            .filter(|(stack, _)| !changes.stacks.contains_key(stack))
            .map(|(stack, trigger)| (*stack, &trigger.file));
        let mut moved: Vec<ChangedStack> = own
            .chain(triggered)
            .filter(|(stack, _)| !changes.dismissed.contains_key(stack))
            .map(|(stack, file)| ChangedStack {
                stack,
                file: file.clone(),
                had_succeeded: self.has_succeeded(stack, stacks),
            })
            .filter(|moved| {
                moved.had_succeeded || of_run.contains(stacks[moved.stack].path.as_str())
            })
            .collect();
        moved.sort_unstable_by_key(|moved| moved.stack);
        moved
    }
}

/// Returns the commit of a journal, if this clone has it.
fn present(repository: &Repository, recorded: &str) -> Result<CommitId, UnknownChanges> {
    let missing = || UnknownChanges::Missing(recorded.to_owned());
    let commit = CommitId::new(recorded).ok_or_else(missing)?;
    let present = repository.commit(commit.as_str());
    match present.map_err(UnknownChanges::Head)? {
        Some(present) if present == commit => Ok(commit),
        _ => Err(missing()),
    }
}

/// The limits for hashing uncommitted files. Only runs over build results that git doesn't ignore have more.
const MAX_FILES: usize = 1000;
const MAX_BYTES: u64 = 64 << 20;

pub fn uncommitted(root: &Path, status: &[ChangedFile]) -> Vec<UncommittedFile> {
    let (mut n_files, mut n_bytes) = (0, 0);
    let mut recorded: Vec<UncommittedFile> = Vec::with_capacity(status.len());
    for file in status {
        let place = file.path.to_host(root);
        n_files += 1;
        n_bytes += place.symlink_metadata().map_or(0, |file| file.len());
        let is_small = n_files <= MAX_FILES && n_bytes <= MAX_BYTES;
        recorded.push(UncommittedFile {
            path: file.path.to_string(),
            blob: is_small.then(|| content(file, root)).flatten(),
            executable: is_executable(&place),
        });
    }
    recorded
}

/// Returns the id of a file's content, if it is known.
fn content(file: &ChangedFile, root: &Path) -> Option<String> {
    // Invalid UTF-8 in the name was replaced, so the file cannot be found by it.
    let is_found = !file.path.as_str().contains(char::REPLACEMENT_CHARACTER);
    let is_blob = file.change != FileChange::Repository;
    if !is_found || !is_blob {
        return None;
    }
    // A file that cannot be read counts as changed.
    blob_id(&file.path.to_host(root)).unwrap_or(None)
}

/// Compares the working tree with the uncommitted files of a journal. Returns the unchanged ones, committed since or
/// not, and the status without these, but with those that have changed.
fn since(
    recorded: &[UncommittedFile],
    status: &[ChangedFile],
    root: &Path,
) -> (BTreeSet<ProjectPath>, Vec<ChangedFile>) {
    let mut same = BTreeSet::new();
    let mut differing = Vec::new();
    for recorded in recorded {
        // A journal may be forged.
        let Ok(path) = ProjectPath::root().resolve(&recorded.path) else {
            continue;
        };
        let file = ChangedFile {
            path,
            change: FileChange::Modified,
            state: FileState::Uncommitted,
        };
        let has_same_mode = || match recorded.executable {
            None => true, // a link, or not on record
            then => then == is_executable(&file.path.to_host(root)),
        };
        let has_same_content = || recorded.blob.is_some() && recorded.blob == content(&file, root);
        if has_same_content() && has_same_mode() {
            same.insert(file.path);
        } else {
            differing.push(file);
        }
    }
    let is_new = |file: &&ChangedFile| !same.contains(&file.path);
    let mut files: Vec<ChangedFile> = status.iter().filter(is_new).cloned().collect();
    let known: HashSet<ProjectPath> = files.iter().map(|file| file.path.clone()).collect();
    files.extend(
        differing
            .into_iter()
            .filter(|file| !known.contains(&file.path)),
    );
    (same, files)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(path: &str, change: FileChange) -> ChangedFile {
        ChangedFile {
            path: ProjectPath::root().resolve(path).unwrap(),
            change,
            state: FileState::Uncommitted,
        }
    }

    #[test]
    fn uncommitted_files_are_compared_with_what_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        write("same", "1");
        write("edited", "1");
        write("reverted", "1");
        write("deleted", "1");
        write("big", "");
        let big = fs::File::options().write(true).open(root.join("big"));
        big.unwrap().set_len(MAX_BYTES + 1).unwrap();
        fs::create_dir(root.join("nested")).unwrap();
        let then = [
            file("/same", FileChange::Modified),
            file("/gone", FileChange::Deleted),
            file("/back", FileChange::Deleted),
            file("/edited", FileChange::Modified),
            file("/reverted", FileChange::Modified),
            file("/deleted", FileChange::Modified),
            file("/nested", FileChange::Repository),
            file("/name\u{fffd}", FileChange::Added),
            file("/big", FileChange::Added),
        ];
        let recorded = uncommitted(root, &then);
        write("edited", "2");
        write("reverted", "0");
        write("back", "1");
        write("new", "1");
        fs::remove_file(root.join("deleted")).unwrap();
        let now = [
            file("/same", FileChange::Modified),
            file("/edited", FileChange::Modified),
            file("/new", FileChange::Added),
            file("/nested", FileChange::Repository),
        ];
        let (same, status) = since(&recorded, &now, root);
        let same: Vec<&str> = same.iter().map(ProjectPath::as_str).collect();
        assert_eq!(same, ["/gone", "/same"]);
        let mut changed: Vec<&str> = status.iter().map(|file| file.path.as_str()).collect();
        changed.sort_unstable();
        assert_eq!(
            changed,
            [
                "/back",
                "/big",
                "/deleted",
                "/edited",
                "/name\u{fffd}",
                "/nested",
                "/new",
                "/reverted"
            ]
        );
    }
}
