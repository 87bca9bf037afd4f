//! Resuming an earlier run: which run is meant, what is left of it, and whether what succeeded in it
//! still holds.
//!
//! What has changed since is found by the rules of `--changed`, from the commit and the uncommitted
//! files that the run began with. Whether to resume a run all the same is for the caller to decide,
//! who also reads the project and asks git for its status.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use crate::change::base::{Base, BaseRule};
use crate::change::{self, ChangeError, Changes, Counted, SwitchedOff, Uncommitted};
use crate::git::{ChangedFile, CommitId, FileChange, FileState, GitError, Repository, blob_id};
use crate::path::ProjectPath;
use crate::project::discover::Listing;
use crate::project::stack::{StackIndex, Stacks};
use crate::project::{Problems, Project};
use crate::record::journal::{
    BaseRecord, FindError, Header, Liveness, ReadError, Record, RecordFolder, Runs,
    UncommittedFile, Unusable,
};
use crate::run::order::{Direction, Order};
use crate::selection::graph::{Graph, digest};
use crate::selection::reference::References;
use crate::selection::select::Selection;

/// A run on record that is to be resumed.
#[derive(Debug)]
pub struct EarlierRun {
    /// What its journal says.
    pub record: Record,
    /// The run that the user named, if this is another one that resumed it.
    pub named: Option<String>,
    /// The stacks that have succeeded in it, and in those that it resumed itself.
    succeeded: HashSet<String>,
}

/// Why a run cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// There is none.
    #[error("there is no run to resume: none of this project is on record")]
    NoRuns,
    /// It is not clear which one is meant.
    #[error("in --resume: {0}; `orch runs list` has them all")]
    Find(FindError),
    /// It has not ended.
    #[error("run {0} is still going on")]
    Alive(String),
    /// A later `orch` wrote its journal.
    #[error("the journal of run {run} cannot be understood: {error}")]
    Newer {
        /// The run.
        run: String,
        /// What is wrong with it.
        error: ReadError,
    },
    /// A word in its journal means nothing to this version.
    #[error("run {run} cannot be resumed: its {what} is `{word}`, which this orch does not know")]
    UnknownWord {
        /// The run.
        run: String,
        /// What the word says.
        what: &'static str,
        /// The word.
        word: String,
        /// The version that wrote it.
        orch: String,
    },
    /// Its journal cannot be read.
    #[error("failed to read the journal of run {run}")]
    Unreadable {
        /// The run.
        run: String,
        /// What is wrong with it.
        #[source]
        error: ReadError,
    },
    /// Its journal has no command.
    #[error("the journal of run {0} is damaged: it has no command")]
    NoCommand(String),
    /// No journal can be read.
    #[error("no earlier run can be read")]
    Unusable(#[from] Unusable),
}

impl EarlierRun {
    /// Finds the run that the user names, or the one that resumed it last: what succeeded there is not
    /// to run again.
    ///
    /// # Errors
    ///
    /// If there is none, it has not ended, or its journal cannot be read.
    pub fn find(root: &Path, named: &str) -> Result<Self, ResumeError> {
        let runs = RecordFolder::find(root)?.map(Runs::find).transpose()?;
        let runs = runs.ok_or(ResumeError::NoRuns)?;
        let named = runs.id(named).map_err(|error| match error {
            FindError::NoRuns => ResumeError::NoRuns,
            error => ResumeError::Find(error),
        })?;
        let run = newest_of(&runs, named);
        if runs.liveness(run) == Liveness::Alive {
            return Err(ResumeError::Alive(run.to_owned()));
        }
        let record = runs.record(run).map_err(|error| {
            let run = run.to_owned();
            match error {
                error @ ReadError::Newer { .. } => ResumeError::Newer { run, error },
                error => ResumeError::Unreadable { run, error },
            }
        })?;
        let command = record.header.command.first();
        if command.is_none_or(|name| name.0.is_empty()) {
            return Err(ResumeError::NoCommand(run.to_owned()));
        }
        Ok(EarlierRun {
            named: (named != run).then(|| named.to_owned()),
            succeeded: succeeded(&runs, &record),
            record,
        })
    }

    fn has_succeeded(&self, stack: StackIndex, stacks: &Stacks) -> bool {
        self.succeeded.contains(stacks[stack].path.as_str())
    }
}

/// Returns the run that resumed this one last.
fn newest_of<'r>(runs: &'r Runs, named: &'r str) -> &'r str {
    let mut seen = HashSet::from([named]);
    let mut id = named;
    // Only a forged journal resumes one that resumes it.
    while let Some(next) = runs.resumed_by(id).filter(|next| seen.insert(next)) {
        id = next;
    }
    id
}

/// Returns the stacks that have succeeded in a run, and in those that it resumed as far as they are
/// still on record.
fn succeeded(runs: &Runs, record: &Record) -> HashSet<String> {
    let mut succeeded = HashSet::new();
    let mut add = |record: &Record| {
        let stacks = record.stacks.iter();
        let done = stacks.filter(|stack| stack.state.is_success());
        succeeded.extend(done.map(|stack| stack.path.clone()));
    };
    add(record);
    let mut seen = HashSet::from([record.header.run.clone()]);
    let mut earlier = record.header.resumes.clone();
    while let Some(run) = earlier.filter(|run| seen.insert(run.clone())) {
        let Ok(record) = runs.record(&run) else {
            break;
        };
        add(&record);
        earlier = record.header.resumes;
    }
    succeeded
}

/// What is left of an earlier run.
#[derive(Debug)]
pub struct ResumedRun {
    /// The id of that run.
    pub run: String,
    /// The stacks that have not succeeded, in the sequence in which that run would have had them.
    undone: Vec<StackIndex>,
    /// Those of them that are not to run now.
    pub left_out: Vec<StackIndex>,
    /// Stacks that have not succeeded and are no more.
    pub gone: Vec<String>,
    /// What changes were measured from.
    pub base: Option<BaseRecord>,
    /// Which way it goes.
    pub direction: Direction,
}

impl ResumedRun {
    /// Finds what is left of a run; with `only_failed`, what had not failed is left out for now.
    ///
    /// # Errors
    ///
    /// If only a later `orch` knows which way the run goes.
    pub fn new(
        earlier: &EarlierRun,
        stacks: &Stacks,
        only_failed: bool,
    ) -> Result<Self, ResumeError> {
        let header = &earlier.record.header;
        let direction = Direction::recorded(&header.direction);
        let mut rest = ResumedRun {
            run: header.run.clone(),
            undone: Vec::new(),
            left_out: Vec::new(),
            gone: Vec::new(),
            base: header.base.clone(),
            direction: direction
                .map_err(|word| ResumeError::unknown_word(header, "direction", word))?,
        };
        let mut seen = HashSet::new();
        let recorded = earlier.record.stacks.iter();
        for stack in recorded.filter(|stack| !stack.state.is_success()) {
            match stacks.at(&stack.path) {
                None => rest.gone.push(stack.path.clone()),
                // A journal that orch wrote has each of them once.
                Some(index) if !seen.insert(index) => {}
                Some(index) => {
                    rest.undone.push(index);
                    if only_failed && !stack.state.is_failure() {
                        rest.left_out.push(index);
                    }
                }
            }
        }
        Ok(rest)
    }

    /// Returns how many stacks have not succeeded, those that are left out included.
    pub fn n_undone(&self) -> usize {
        self.undone.len()
    }

    /// Returns the stacks to run.
    pub fn selection(&self) -> Selection {
        Selection::recorded(self.sequence())
    }

    /// Returns them in the order that they had.
    pub fn order(&self, graph: &Graph) -> Order {
        let mut forward = self.sequence();
        if self.direction == Direction::Reverse {
            forward.reverse();
        }
        Order::recorded(graph, &forward)
    }

    /// Returns all that is undone as the new run has it, given the sequence of that: what it leaves
    /// out stays where it was.
    pub fn undone(&self, sequence: &[StackIndex]) -> Vec<StackIndex> {
        let left_out: HashSet<StackIndex> = self.left_out.iter().copied().collect();
        let mut sequence = sequence.iter();
        let mut next = |stack: &StackIndex| {
            if left_out.contains(stack) {
                Some(*stack)
            } else {
                sequence.next().copied()
            }
        };
        self.undone.iter().filter_map(&mut next).collect()
    }

    fn sequence(&self) -> Vec<StackIndex> {
        let left_out: HashSet<StackIndex> = self.left_out.iter().copied().collect();
        let undone = self.undone.iter().copied();
        undone.filter(|stack| !left_out.contains(stack)).collect()
    }
}

impl ResumeError {
    /// Returns that a word of a journal means nothing to this version; `what` says what the word is.
    pub fn unknown_word(header: &Header, what: &'static str, word: &str) -> Self {
        ResumeError::UnknownWord {
            run: header.run.clone(),
            what,
            word: word.to_owned(),
            orch: header.orch.clone(),
        }
    }
}

/// A repository, and how its working tree differs from HEAD.
#[derive(Clone, Copy)]
pub struct WorkingTree<'a> {
    /// The repository.
    pub repository: &'a Repository,
    /// What is not committed.
    pub status: &'a [ChangedFile],
}

/// What has changed since an earlier run.
#[derive(Debug, Default)]
pub struct Moved {
    /// Whether the graph is another.
    pub graph: bool,
    /// Where HEAD was, and where it is, if it has moved.
    pub head: Option<(CommitId, CommitId)>,
    /// Whether any file has changed.
    pub files: bool,
    /// The stacks that have changed, by path.
    pub stacks: Vec<MovedStack>,
    /// Why it cannot be known which stacks have changed.
    pub unknown: Option<UnknownChanges>,
}

/// A stack that has changed since an earlier run.
#[derive(Debug)]
pub struct MovedStack {
    /// The stack.
    pub stack: StackIndex,
    /// A file because of which it counts as changed.
    pub file: ProjectPath,
    /// Whether it had succeeded.
    pub had_succeeded: bool,
}

/// Why it cannot be known what has changed since an earlier run.
#[derive(Debug, thiserror::Error)]
pub enum UnknownChanges {
    /// git does not tell HEAD.
    #[error("HEAD cannot be read: {0}")]
    Head(#[source] GitError),
    /// git does not tell what is not committed.
    #[error("the state of the working tree cannot be known: {0}")]
    Status(#[source] GitError),
    /// There was a commit then or is one now, and not both.
    #[error("HEAD was {} then and is {} now", commit(.then.as_deref()), commit(.now.as_deref()))]
    NoCommit {
        /// HEAD then.
        then: Option<String>,
        /// HEAD now.
        now: Option<String>,
    },
    /// The commit is not present.
    #[error("HEAD was {} then, which this clone does not have", commit(Some(.0.as_str())))]
    Missing(String),
    /// The files that differ cannot be told.
    #[error("what has changed cannot be known: {0}")]
    Changes(#[source] ChangeError),
}

fn commit(id: Option<&str>) -> String {
    match id {
        Some(id) => format!("`{}`", id.get(..7).unwrap_or(id)),
        None => "no commit".to_owned(),
    }
}

impl Moved {
    /// Returns the stacks that had succeeded and have changed since.
    pub fn invalidated(&self) -> impl Iterator<Item = &MovedStack> {
        self.stacks.iter().filter(|moved| moved.had_succeeded)
    }

    /// Returns whether the run can be resumed as if nothing had changed.
    pub fn is_harmless(&self) -> bool {
        !self.graph && self.unknown.is_none() && self.invalidated().next().is_none()
    }
}

impl EarlierRun {
    /// Finds what has changed since: in the graph, and in the files of stacks. Without a repository
    /// there is nothing to compare files with. Adds what is suspicious to `problems`, as `--changed`
    /// does.
    pub fn moved(
        &self,
        project: &Project,
        listing: &Listing,
        references: &References,
        working_tree: Result<Option<WorkingTree<'_>>, UnknownChanges>,
        problems: &mut Problems,
    ) -> Moved {
        let mut moved = Moved {
            graph: digest(&project.stacks, references) != self.record.header.graph,
            ..Moved::default()
        };
        let compared = working_tree
            .and_then(|tree| self.compare(project, listing, tree, &mut moved, problems));
        moved.unknown = compared.err();
        moved
    }

    /// Adds the files and stacks that have changed since to what has moved.
    fn compare(
        &self,
        project: &Project,
        listing: &Listing,
        working_tree: Option<WorkingTree<'_>>,
        moved: &mut Moved,
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
        let recorded = header.uncommitted.as_deref().unwrap_or_default();
        let (same, status) = since(recorded, tree.status, &project.root);
        if then == *now && status.is_empty() {
            return Ok(());
        }
        moved.head = (then != *now).then(|| (then.clone(), now.clone()));
        let settings = &project.settings;
        let off = |counts: bool| (!counts).then_some(SwitchedOff::Configuration);
        let counted = Counted {
            untracked: off(settings.untracked),
            uncommitted: off(settings.uncommitted),
        };
        let base = Base {
            commit: then,
            rule: BaseRule::Named,
            reason: format!("HEAD of run {}", header.run),
        };
        let repository = tree.repository;
        let uncommitted = Uncommitted {
            status,
            counted,
            same,
        };
        let changes = change::find(project, listing, repository, base, uncommitted, problems);
        let changes = changes.map_err(UnknownChanges::Changes)?;
        moved.files = !changes.files.is_empty();
        moved.stacks = self.stacks_of(&changes, &project.stacks);
        Ok(())
    }

    /// Returns the stacks of the run that have changed, by path.
    fn stacks_of(&self, changes: &Changes, stacks: &Stacks) -> Vec<MovedStack> {
        let recorded = self.record.stacks.iter().map(|stack| stack.path.as_str());
        let of_run: HashSet<&str> = recorded.collect();
        let own = changes.stacks.iter();
        let own = own.map(|(stack, cause)| (*stack, &cause.file.path));
        let triggered = changes.triggered.iter();
        let triggered = triggered
            .filter(|(stack, _)| !changes.stacks.contains_key(stack))
            .map(|(stack, trigger)| (*stack, &trigger.file));
        let mut moved: Vec<MovedStack> = own
            .chain(triggered)
            .filter(|(stack, _)| !changes.dismissed.contains_key(stack))
            .map(|(stack, file)| MovedStack {
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

/// Returns the commit that a journal names, if it is present.
fn present(repository: &Repository, recorded: &str) -> Result<CommitId, UnknownChanges> {
    let missing = || UnknownChanges::Missing(recorded.to_owned());
    let commit = CommitId::new(recorded).ok_or_else(missing)?;
    let present = repository.commit(commit.as_str());
    match present.map_err(UnknownChanges::Head)? {
        Some(present) if present == commit => Ok(commit),
        _ => Err(missing()),
    }
}

/// At most so many files, of so many bytes in all, are read to tell later whether they have changed.
/// There are more only where somebody runs over build results that git is not told to ignore.
const MAX_FILES: usize = 1000;
const MAX_BYTES: u64 = 64 << 20;

/// Returns the files that are not committed, as a journal names them.
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
        });
    }
    recorded
}

/// Returns the id of what a file has in it, if that can be known.
fn content(file: &ChangedFile, root: &Path) -> Option<String> {
    // What is not UTF-8 in a name has been replaced, so the file cannot be found by it.
    let is_found = !file.path.as_str().contains(char::REPLACEMENT_CHARACTER);
    let is_blob = file.change != FileChange::Repository;
    (is_found && is_blob)
        .then(|| blob_id(&file.path.to_host(root)))
        .flatten()
}

/// Compares the working tree with the uncommitted files that a journal names. Returns those that are
/// as they were, whether or not they are committed by now, and the status without them, but with
/// those that differ from what they were.
fn since(
    recorded: &[UncommittedFile],
    status: &[ChangedFile],
    root: &Path,
) -> (BTreeSet<ProjectPath>, Vec<ChangedFile>) {
    let mut same = BTreeSet::new();
    let mut differing = Vec::new();
    for recorded in recorded {
        // The journal may have been written by anybody.
        let Ok(path) = ProjectPath::root().resolve(&recorded.path) else {
            continue;
        };
        let file = ChangedFile {
            path,
            change: FileChange::Modified,
            state: FileState::Uncommitted,
        };
        if recorded.blob.is_some() && recorded.blob == content(&file, root) {
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
