//! Finds the run to resume, and the work that is left of it.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use crate::error::{Error, ErrorContext as _, Result};
use crate::folder::GuardedFolder;
use crate::printable::printable;
use crate::project::stack::{StackIndex, Stacks};
use crate::record::journal::{
    BaseRecord, FindError, Header, JournalError, Liveness, PLAN_FOLLOW_UPS, RunRecord, Runs,
};
use crate::run::order::{Direction, RunOrder};
use crate::run::recording::{APPLY_IS_LEFT, perhaps_alive, unread_later};
use crate::selection::graph::Graph;
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
    /// With `may_be_alive`, a run whose end is unknown has ended.
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
                "apply" => ("apply", APPLY_IS_LEFT),
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
    pub fn of_order(root: &Path, run: &str) -> Result<Self> {
        let runs = recorded_runs(root)?.ok_or_else(no_runs)?;
        let record = ended(&runs, run, false)?;
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
    while let Some(next) = runs.resumed_by(run).map_err(unread_later)? {
        run = next;
    }
    ended(runs, run, may_be_alive)
}

/// Reads a run that has ended.
fn ended(runs: &Runs, run: &str, may_be_alive: bool) -> Result<RunRecord> {
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
        return Err(perhaps_alive(run).hint("if it has ended, add `--allow-concurrent`"));
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
