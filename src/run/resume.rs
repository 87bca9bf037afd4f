//! Resumes an earlier run: finds the run, the work that is left, and changes since.
//!
//! Changes are found by the rules of `--changed`, from the commit and the uncommitted files of that run. The caller
//! decides whether to resume anyway, reads the project and asks git for its status.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use crate::change::base::{Base, BaseRule};
use crate::change::{
    self, ChangeError, Changes, CountedStates, CurrentProject, HostEnvironment, SwitchedOff,
    UncommittedChanges,
};
use crate::error::{Error, ErrorContext as _, Result};
use crate::folder::GuardedFolder;
use crate::git::{
    ChangedFile, CommitId, FileChange, FileState, GitError, Repository, blob_id, is_executable,
};
use crate::path::ProjectPath;
use crate::printable::printable;
use crate::project::discover::Listing;
use crate::project::stack::{StackIndex, Stacks};
use crate::project::{Problems, Project};
use crate::record::journal::{
    BaseRecord, FindError, Header, JournalError, Liveness, PLAN_FOLLOW_UPS, RunRecord, Runs,
    UncommittedFile,
};
use crate::run::order::{Direction, RunOrder};
use crate::run::recording::{RESUME_APPLY_HINT, may_be_alive_error, unread_later_error};
use crate::selection::graph::{Graph, digest};
use crate::selection::reference::References;
use crate::selection::select::Selection;

pub struct EarlierRun {
    pub record: RunRecord,
    /// The run that the user named, if this is another one that resumed it.
    pub named: Option<String>,
    done: EarlierResults,
}

/// The results of a run and of the recorded runs that it resumed.
#[derive(Debug, Default)]
struct EarlierResults {
    succeeded: HashSet<String>,
    had_changes: bool,
}

impl EarlierRun {
    /// Finds the run that the user names, or the latest one that resumed it: its succeeded stacks
    /// do not run again. Fails if there is none, it has not ended, or its journal cannot be read.
    /// With `may_be_alive`, a run whose end is unknown counts as ended.
    pub fn find(root: &Path, named: &str, may_be_alive: bool) -> Result<Self> {
        let runs = recorded_runs(root)?.ok_or_else(no_runs)?;
        let named = runs.id(named).map_err(|error| match error {
            FindError::NoRuns => no_runs(),
            error => Error::usage(format!(
                "in --resume: {error}; `orch runs list` lists all runs"
            )),
        })?;
        let record = newest(&runs, named, may_be_alive)?;
        let run = &record.header.run;
        if record.header.part_of.is_some() {
            return Err(Error::refused(format!(
                "run {run} cannot be resumed: it is part of a work order"
            ))
            .hint("run its jobs again: they skip stacks that are done; `orch finish --work-order FILE` continues its follow-ups"));
        }
        if let Some(purpose) = record.header.purpose.as_deref() {
            let (purpose, hint) = match purpose {
                PLAN_FOLLOW_UPS => ("plan", LISTS_RUNS),
                "apply" => ("apply", RESUME_APPLY_HINT),
                purpose => (purpose, LISTS_RUNS),
            };
            return Err(Error::refused(format!(
                "run {run} cannot be resumed: it is a run of `orch {purpose}`"
            ))
            .hint(hint));
        }
        let command = record.header.command.first();
        if command.is_none_or(|name| name.0.is_empty()) {
            return Err(Error::external(format!(
                "the journal of run {run} is damaged: it has no command"
            )));
        }
        Ok(EarlierRun {
            named: (named != run).then(|| named.to_owned()),
            done: done(&runs, &record)?,
            record,
        })
    }

    /// Finds a run of a work order: that of its jobs, or one of follow-ups. Fails if it has not
    /// ended, or its journal cannot be read.
    /// With `may_be_alive`, a run whose end is unknown counts as ended.
    pub fn of_order(root: &Path, run: &str, may_be_alive: bool) -> Result<Self> {
        let runs = recorded_runs(root)?.ok_or_else(no_runs)?;
        let record = ended(&runs, run, may_be_alive, "run `orch finish --retry-killed`")?;
        Ok(EarlierRun {
            named: None,
            done: done(&runs, &record)?,
            record,
        })
    }

    /// Returns the recorded runs that it resumed, the first one first. Fails if the journal of one
    /// of them cannot be read.
    pub fn resumed(&self, root: &Path) -> Result<Vec<RunRecord>> {
        let Some(runs) = recorded_runs(root)? else {
            return Ok(Vec::new());
        };
        let mut records = resumed_by(&runs, &self.record)?;
        records.reverse();
        Ok(records)
    }

    /// Returns whether a stack has succeeded in it, or in a run that it resumed itself.
    pub(super) fn has_succeeded(&self, stack: StackIndex, stacks: &Stacks) -> bool {
        self.done.succeeded.contains(stacks[stack].path.as_str())
    }
}

const LISTS_RUNS: &str = "`orch runs list` lists all runs";

fn recorded_runs(root: &Path) -> Result<Option<Runs>> {
    let folder = GuardedFolder::find(root);
    let runs = folder.and_then(|folder| folder.map(Runs::find).transpose());
    runs.context("no earlier run can be read")
}

fn no_runs() -> Error {
    Error::refused("no run to resume: this project has no recorded runs")
        .hint("start one with `orch run COMMAND`")
}

/// Reads the latest run that resumed this one, or this one itself.
fn newest(runs: &Runs, named: &str, may_be_alive: bool) -> Result<RunRecord> {
    let mut run = named;
    while let Some(next) = runs.resumed_by(run).map_err(unread_later_error)? {
        run = next;
    }
    ended(runs, run, may_be_alive, "add `--allow-concurrent`")
}

/// Reads a run that has ended. `fix` is the hint for a run that may have ended unnoticed.
fn ended(runs: &Runs, run: &str, may_be_alive: bool, fix: &str) -> Result<RunRecord> {
    let liveness = runs.liveness(run);
    if liveness == Liveness::Alive {
        return Err(Error::refused(format!("run {run} is still in progress"))
            .hint("wait until it has ended"));
    }
    let record = runs.record(run).map_err(|error| match error {
        JournalError::Newer { .. } => {
            Error::refused(format!("the journal of run {run} cannot be read: {error}"))
                .hint("resume it with the orch that wrote it")
        }
        error => unreadable(run, error),
    })?;
    if liveness == Liveness::Unknown && !may_be_alive {
        return Err(may_be_alive_error(run).hint(format!("if it has ended, {fix}")));
    }
    Ok(record)
}

/// Returns the runs that a run resumed and that are still recorded, the latest first.
fn resumed_by(runs: &Runs, record: &RunRecord) -> Result<Vec<RunRecord>> {
    let mut records = Vec::new();
    let mut seen = HashSet::from([record.header.run.clone()]);
    let mut earlier = record.header.resumes.clone();
    // Only a forged journal can resume one that resumes it.
    while let Some(run) = earlier.filter(|run| seen.insert(run.clone())) {
        let record = match runs.record(&run) {
            Ok(record) => record,
            Err(error) if error.is_missing() => break,
            Err(error) => return Err(unreadable(&run, error)),
        };
        let before = record.header.resumes.clone();
        records.push(record);
        earlier = before;
    }
    Ok(records)
}

fn unreadable(run: &str, error: JournalError) -> Error {
    Error::described(format!("failed to read the journal of run {run}"), error)
}

fn done(runs: &Runs, record: &RunRecord) -> Result<EarlierResults> {
    let mut all = EarlierResults::default();
    let mut add = |record: &RunRecord| {
        for stack in record.stacks.iter().filter(|it| it.state.is_success()) {
            all.succeeded.insert(stack.path.clone());
            all.had_changes |= stack.state.has_changes();
        }
    };
    add(record);
    resumed_by(runs, record)?.iter().for_each(add);
    Ok(all)
}

pub struct ResumedRun {
    pub run: String,
    /// The stacks that have not succeeded, in the sequence of that run.
    undone: Vec<StackIndex>,
    /// The undone stacks that do not run now.
    pub left_out: Vec<StackIndex>,
    /// Stacks that have not succeeded and no longer exist.
    pub gone: Vec<String>,
    pub base: Option<BaseRecord>,
    /// The run of the work order whose follow-ups the run executes, if any.
    pub part_of: Option<String>,
    pub direction: Direction,
    /// Whether a stack that has succeeded had changes.
    pub had_changes: bool,
    pub succeeded: BTreeSet<StackIndex>,
}

impl ResumedRun {
    /// Finds the work that is left of a run; with `only_failed`, only its failed stacks are
    /// selected. Fails if only a later `orch` knows the direction of the run.
    pub fn new(earlier: &EarlierRun, stacks: &Stacks, only_failed: bool) -> Result<Self> {
        let header = &earlier.record.header;
        let direction = header.direction.known();
        let mut rest = ResumedRun {
            run: header.run.clone(),
            undone: Vec::new(),
            left_out: Vec::new(),
            gone: Vec::new(),
            base: header.base.clone(),
            part_of: header.part_of.clone(),
            direction: direction.map_err(|word| {
                let orch = printable(&header.orch);
                Error::refused(unknown_word(header, "direction", word)).hint(format!(
                    "resume it with orch {orch}, which wrote its journal"
                ))
            })?,
            had_changes: earlier.done.had_changes,
            succeeded: stacks
                .iter()
                .map(|(stack, _)| stack)
                .filter(|stack| earlier.has_succeeded(*stack, stacks))
                .collect(),
        };
        let mut seen = HashSet::new();
        let recorded = earlier.record.stacks.iter();
        for stack in recorded.filter(|stack| !stack.state.is_success()) {
            match stacks.named(&stack.path) {
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

    /// Leaves out all stacks, so that only follow-ups run.
    #[must_use]
    pub fn without_stacks(self) -> Self {
        ResumedRun {
            undone: Vec::new(),
            gone: Vec::new(),
            ..self
        }
    }

    /// Leaves out a stack that has succeeded since.
    pub fn forget(&mut self, stack: StackIndex) {
        self.undone.retain(|undone| *undone != stack);
        self.succeeded.insert(stack);
    }

    /// Returns how many stacks have not succeeded, including those that are left out.
    pub fn n_undone(&self) -> usize {
        self.undone.len()
    }

    pub fn selection(&self) -> Selection {
        Selection::recorded(self.sequence())
    }

    pub fn order(&self, graph: &Graph) -> RunOrder {
        let mut forward = self.sequence();
        if self.direction == Direction::Reverse {
            forward.reverse();
        }
        RunOrder::recorded(graph, &forward)
    }

    /// Returns all undone stacks in the sequence of the new run; those that it leaves out keep their places.
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

/// Returns the message about a word of a journal that this version doesn't know; `what` is its meaning.
pub fn unknown_word(header: &Header, what: &str, word: &str) -> String {
    format!(
        "run {} cannot be resumed: its {what} `{word}` is unknown to this orch",
        header.run
    )
}

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
