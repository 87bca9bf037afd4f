//! Finds the run to resume, and the work that is left of it.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use crate::folder::{GuardedFolder, Unusable};
use crate::project::stack::{StackIndex, Stacks};
use crate::record::journal::{
    BaseRecord, FindError, Header, JournalError, Liveness, PLAN_FOLLOW_UPS, RunRecord, Runs,
    UnreadRun,
};
use crate::run::order::{Direction, RunOrder};
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

/// Why a run cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// There is none.
    #[error("no run to resume: this project has no recorded runs")]
    NoRuns,
    /// The argument is unknown or ambiguous.
    #[error("in --resume: {0}; `orch runs list` lists all runs")]
    Find(FindError),
    /// It has not ended.
    #[error("run {0} is still in progress")]
    Alive(String),
    /// It is unknown whether it has ended.
    #[error(
        "run {0} may still be in progress: neither its journal nor its process shows that it has ended"
    )]
    MayBeAlive(String),
    /// A later `orch` wrote its journal.
    #[error("the journal of run {run} cannot be read: {error}")]
    Newer { run: String, error: JournalError },
    /// A word in its journal means nothing to this version.
    #[error("run {run} cannot be resumed: its {what} `{word}` is unknown to this orch")]
    UnknownWord {
        run: String,
        /// The meaning of the word.
        what: &'static str,
        word: String,
        /// The version that wrote it.
        orch: String,
    },
    /// Its journal cannot be read.
    #[error("failed to read the journal of run {run}")]
    Unreadable {
        run: String,
        #[source]
        error: JournalError,
    },
    /// A later run, which may have resumed it, cannot be read.
    #[error(transparent)]
    UnreadLater(UnreadRun),
    /// It ran a job of a work order, or its follow-ups.
    #[error("run {0} cannot be resumed: it is part of a work order")]
    PartOfWorkOrder(String),
    /// It was not one of `orch run`.
    #[error("run {run} cannot be resumed: it is a run of `orch {purpose}`")]
    Other {
        run: String,
        /// The command that it ran.
        purpose: String,
    },
    #[error("the journal of run {0} is damaged: it has no command")]
    NoCommand(String),
    /// No journal can be read.
    #[error("no earlier run can be read")]
    Unusable(#[from] Unusable),
}

impl EarlierRun {
    /// Finds the run that the user names, or the latest one that resumed it: its succeeded stacks
    /// do not run again. Fails if there is none, it has not ended, or its journal cannot be read.
    /// With `may_be_alive`, a run whose end is unknown has ended.
    pub fn find(root: &Path, named: &str, may_be_alive: bool) -> Result<Self, ResumeError> {
        let runs = GuardedFolder::find(root)?
            .map(Runs::find)
            .transpose()?
            .ok_or(ResumeError::NoRuns)?;
        let named = runs.id(named).map_err(|error| match error {
            FindError::NoRuns => ResumeError::NoRuns,
            error => ResumeError::Find(error),
        })?;
        let record = newest(&runs, named, may_be_alive)?;
        let run = &record.header.run;
        if record.header.part_of.is_some() {
            return Err(ResumeError::PartOfWorkOrder(run.to_owned()));
        }
        if let Some(purpose) = &record.header.purpose {
            return Err(ResumeError::Other {
                run: run.to_owned(),
                purpose: match purpose.as_str() {
                    PLAN_FOLLOW_UPS => "plan".to_owned(),
                    purpose => purpose.to_owned(),
                },
            });
        }
        let command = record.header.command.first();
        if command.is_none_or(|name| name.0.is_empty()) {
            return Err(ResumeError::NoCommand(run.to_owned()));
        }
        Ok(EarlierRun {
            named: (named != run).then(|| named.to_owned()),
            done: done(&runs, &record)?,
            record,
        })
    }

    /// Finds a run of a work order: that of its jobs, or one of follow-ups. Fails if it has not
    /// ended, or its journal cannot be read.
    pub fn of_order(root: &Path, run: &str) -> Result<Self, ResumeError> {
        let runs = GuardedFolder::find(root)?
            .map(Runs::find)
            .transpose()?
            .ok_or(ResumeError::NoRuns)?;
        let record = ended(&runs, run, false)?;
        Ok(EarlierRun {
            named: None,
            done: done(&runs, &record)?,
            record,
        })
    }

    /// Returns the recorded runs that it resumed, the first one first. Fails if the journal of one
    /// of them cannot be read.
    pub fn resumed(&self, root: &Path) -> Result<Vec<RunRecord>, ResumeError> {
        let Some(runs) = GuardedFolder::find(root)?.map(Runs::find).transpose()? else {
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

/// Reads the latest run that resumed this one, or this one itself.
fn newest(runs: &Runs, named: &str, may_be_alive: bool) -> Result<RunRecord, ResumeError> {
    let mut run = named;
    while let Some(next) = runs.resumed_by(run).map_err(ResumeError::UnreadLater)? {
        run = next;
    }
    ended(runs, run, may_be_alive)
}

/// Reads a run that has ended.
fn ended(runs: &Runs, run: &str, may_be_alive: bool) -> Result<RunRecord, ResumeError> {
    let liveness = runs.liveness(run);
    if liveness == Liveness::Alive {
        return Err(ResumeError::Alive(run.to_owned()));
    }
    let record = runs.record(run).map_err(|error| {
        let run = run.to_owned();
        match error {
            error @ JournalError::Newer { .. } => ResumeError::Newer { run, error },
            error => ResumeError::Unreadable { run, error },
        }
    })?;
    if liveness == Liveness::Unknown && !may_be_alive {
        return Err(ResumeError::MayBeAlive(run.to_owned()));
    }
    Ok(record)
}

/// Returns the runs that a run resumed and that are still recorded, the latest first.
fn resumed_by(runs: &Runs, record: &RunRecord) -> Result<Vec<RunRecord>, ResumeError> {
    let mut records = Vec::new();
    let mut seen = HashSet::from([record.header.run.clone()]);
    let mut earlier = record.header.resumes.clone();
    // Only a forged journal can resume one that resumes it.
    while let Some(run) = earlier.filter(|run| seen.insert(run.clone())) {
        let record = match runs.record(&run) {
            Ok(record) => record,
            Err(error) if error.is_missing() => break,
            Err(error) => return Err(ResumeError::Unreadable { run, error }),
        };
        let before = record.header.resumes.clone();
        records.push(record);
        earlier = before;
    }
    Ok(records)
}

fn done(runs: &Runs, record: &RunRecord) -> Result<EarlierResults, ResumeError> {
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
            part_of: header.part_of.clone(),
            direction: direction
                .map_err(|word| ResumeError::unknown_word(header, "direction", word))?,
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

impl ResumeError {
    /// Returns the error for a word of a journal that this version doesn't know; `what` is its meaning.
    pub fn unknown_word(header: &Header, what: &'static str, word: &str) -> Self {
        ResumeError::UnknownWord {
            run: header.run.clone(),
            what,
            word: word.to_owned(),
            orch: header.orch.clone(),
        }
    }
}
