//! `orch run --resume` and `--only-failed`: what an earlier run left undone.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use orch::printable::printable;
use orch::project::stack::StackIndex;
use orch::record::journal::{
    BaseRecord, FindError, Header, Liveness, Place, ReadError, Record, Runs, StackRecord,
};
use orch::run::order::{Direction, Order};
use orch::run::schedule::OnError;
use orch::selection::graph::{Graph, digest};
use orch::selection::select::Selection;

use super::arguments::{Jobs, LimitArg, OnErrorArg, RunArgs};
use super::record::head;
use crate::program::commands::{Loaded, count};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// What an earlier run left undone.
pub(super) struct Earlier {
    /// The id of that run.
    pub(super) run: String,
    /// The stacks that have not succeeded, in the sequence in which that run would have had them.
    undone: Vec<StackIndex>,
    /// Those of them that are not wanted now.
    pub(super) left_out: Vec<StackIndex>,
    /// What changes were measured from.
    pub(super) base: Option<BaseRecord>,
    direction: Direction,
}

impl Earlier {
    /// Finds the run that the user means, if any, and takes over what they do not say anew: the
    /// command, the direction, and how the run goes. Says so if nothing is left to do.
    pub(super) fn find(loaded: &Loaded, args: &mut RunArgs) -> Result<Option<Self>> {
        let wanted = match (&args.resume.resume, args.resume.only_failed) {
            (Some(wanted), _) => wanted.clone(),
            (None, true) => "last".to_owned(),
            (None, false) => return Ok(None),
        };
        let record = read(loaded, &wanted)?;
        let run = record.header.run.clone();
        check(loaded, &record.header, args.resume.allow_stale)?;
        let mut seen = HashSet::new();
        let mut undone = Vec::new();
        let mut left_out = Vec::new();
        let mut gone = Vec::new();
        let left = |stack: &&StackRecord| !stack.state.is_success();
        for stack in record.stacks.iter().filter(left) {
            match loaded.project.stacks.at(&stack.path) {
                None => gone.push(stack.path.as_str()),
                // A journal that orch wrote has each of them once.
                Some(index) if !seen.insert(index) => {}
                Some(index) => {
                    undone.push(index);
                    if args.resume.only_failed && !stack.state.is_failure() {
                        left_out.push(index);
                    }
                }
            }
        }
        tell_gone(&gone, &run, args.resume.allow_stale)?;
        tell_rest(&run, undone.len(), left_out.len(), gone.len());
        let direction = take_over(args, &record.header)?;
        Ok(Some(Earlier {
            run,
            undone,
            left_out,
            base: record.header.base,
            direction,
        }))
    }

    /// Returns the stacks to run.
    pub(super) fn selection(&self) -> Selection {
        Selection::recorded(self.sequence())
    }

    /// Returns them in the order that they had.
    pub(super) fn order(&self, graph: &Graph) -> Order {
        let mut forward = self.sequence();
        if self.direction == Direction::Reverse {
            forward.reverse();
        }
        Order::recorded(graph, &forward)
    }

    /// Returns all that is undone as the new run has it, given the sequence of that: what it leaves
    /// out stays where it was.
    pub(super) fn undone(&self, sequence: &[StackIndex]) -> Vec<StackIndex> {
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

/// Reads the journal of a run that has ended.
fn read(loaded: &Loaded, wanted: &str) -> Result<Record> {
    let place = Place::find(&loaded.project.root);
    let runs = place.and_then(|place| place.map(Runs::find).transpose());
    let Some(runs) = runs.context("no earlier run can be read")? else {
        return Err(no_runs());
    };
    let id = match runs.id(wanted) {
        Ok(id) => newest_of(&runs, id),
        Err(FindError::NoRuns) => return Err(no_runs()),
        Err(error) => {
            let message = format!("in --resume: {error}; `orch runs list` has them all");
            return Err(ProgramError::usage(message));
        }
    };
    if runs.liveness(id) == Liveness::Alive {
        return Err(ProgramError::refused(format!("run {id} is still going on"))
            .hint("wait until it has ended"));
    }
    match runs.record(id) {
        Ok(record)
            if record
                .header
                .command
                .first()
                .is_none_or(|name| name.0.is_empty()) =>
        {
            Err(anyhow!("the journal of run {id} is damaged: it has no command").into())
        }
        Err(error @ ReadError::Newer { .. }) => Err(ProgramError::refused(format!(
            "the journal of run {id} cannot be understood: {error}"
        ))
        .hint("resume it with the orch that wrote it")),
        record => Ok(record.with_context(|| format!("failed to read the journal of run {id}"))?),
    }
}

/// Returns the run that went on with this one last: what succeeded there is not to run again.
fn newest_of<'r>(runs: &'r Runs, wanted: &'r str) -> &'r str {
    let mut seen = HashSet::from([wanted]);
    let mut id = wanted;
    // Only a forged journal resumes one that resumes it.
    while let Some(next) = runs.resumed_by(id).filter(|next| seen.insert(next)) {
        id = next;
    }
    if id != wanted {
        console::note(&format!(
            "run {wanted} was gone on with in run {id}, which is now resumed"
        ));
    }
    id
}

fn no_runs() -> ProgramError {
    ProgramError::refused("there is no run to go on with: none of this project is on record")
        .hint("start one with `orch run COMMAND`")
}

/// Refuses if what was decided then would be decided otherwise now.
fn check(loaded: &Loaded, header: &Header, allow_stale: bool) -> Result<()> {
    let short = |commit: &Option<String>| match commit {
        Some(commit) => format!("`{}`", printable(commit.get(..7).unwrap_or(commit))),
        None => "no commit".to_owned(),
    };
    let mut changes = Vec::new();
    match head(&loaded.project.root) {
        Ok(head) if head == header.head => {}
        Ok(head) => {
            let (then, now) = (short(&header.head), short(&head));
            changes.push(format!("HEAD was {then} then and is {now} now"));
        }
        Err(error) => changes.push(format!("HEAD cannot be read: {error}")),
    }
    if digest(&loaded.project.stacks, &loaded.references) != header.graph {
        changes.push(
            "the graph is another: stacks, `after` or `before` have changed since".to_owned(),
        );
    }
    if changes.is_empty() {
        return Ok(());
    }
    let changes = changes.join("; ");
    let run = &header.run;
    if allow_stale {
        console::note(&format!("going on with run {run} all the same: {changes}"));
        return Ok(());
    }
    Err(
        ProgramError::refused(format!("run {run} cannot be resumed as it was: {changes}"))
            .hint("start a new run, or go on all the same with `--allow-stale`"),
    )
}

/// Says which stacks are no more.
fn tell_gone(gone: &[&str], run: &str, allow_stale: bool) -> Result<()> {
    let Some(first) = gone.first() else {
        return Ok(());
    };
    let mut names = format!("`{}`", printable(first));
    if gone.len() > 1 {
        names += &format!(" and {} more", gone.len() - 1);
    }
    let what = format!(
        "of run {run}, {names} {} no more",
        if gone.len() == 1 { "is" } else { "are" }
    );
    if allow_stale {
        console::note(&format!("{what}: left out"));
        return Ok(());
    }
    Err(ProgramError::refused(what).hint("start a new run, or leave them out with `--allow-stale`"))
}

/// Says what is left to do where that is not what one would expect.
fn tell_rest(run: &str, undone: usize, left_out: usize, gone: usize) {
    let help = format!("`orch run --resume {run}` runs all that is left");
    if undone == 0 && gone > 0 {
        console::note(&format!(
            "nothing is left to do of run {run}: what had not succeeded is no more"
        ));
    } else if undone == 0 {
        console::note(&format!(
            "nothing is left to do of run {run}: everything has succeeded"
        ));
    } else if undone == left_out {
        let undone = count(undone, "stack");
        console::note(&format!(
            "nothing failed in run {run}, though {undone} did not run to the end; {help}"
        ));
    } else if left_out > 0 {
        let left_out = count(left_out, "stack");
        console::note(&format!(
            "left out for now: {left_out} of run {run} that did not fail, and did not run to the end either; `orch run --resume` goes on with what is left"
        ));
    }
}

/// Takes over what is not given anew. Returns which way the run went.
fn take_over(args: &mut RunArgs, header: &Header) -> Result<Direction> {
    let unknown = |word: &str, what: &str| {
        ProgramError::refused(format!(
            "run {} cannot be resumed: its {what} is `{}`, which this orch does not know",
            header.run,
            printable(word)
        ))
    };
    let direction = Direction::recorded(&header.direction).map_err(|word| {
        let wrote = printable(&header.orch);
        unknown(word, "direction").hint(format!(
            "resume it with orch {wrote}, which wrote its journal"
        ))
    })?;
    let milliseconds = |known: Option<u64>| known.map(Duration::from_millis);
    let settings = &header.settings;
    args.command = header.command.iter().map(|word| word.0.clone()).collect();
    args.reverse = direction == Direction::Reverse;
    if args.on_error.is_none() && args.continue_on_error.is_none() {
        let on_error = OnError::recorded(&settings.on_error);
        let on_error = on_error.map_err(|word| {
            unknown(word, "`--on-error`").hint("say what to do after a failure with `--on-error`")
        })?;
        args.on_error = Some(match on_error {
            OnError::Stop => OnErrorArg::Stop,
            OnError::SkipDependents => OnErrorArg::SkipDependents,
            OnError::Continue => OnErrorArg::Continue,
        });
    }
    let jobs = NonZeroUsize::new(settings.jobs).map(Jobs);
    args.parallel = args.parallel.or(jobs);
    for limit in &settings.limits {
        let is_given = args.limit.iter().any(|given| given.tag == limit.tag);
        if let (false, Some(at_once)) = (is_given, NonZeroUsize::new(limit.at_once)) {
            let tag = limit.tag.clone();
            args.limit.push(LimitArg { tag, at_once });
        }
    }
    let attempts = &mut args.attempts;
    attempts.timeout = attempts.timeout.or(milliseconds(settings.timeout_ms));
    attempts.run_timeout = attempts
        .run_timeout
        .or(milliseconds(settings.run_timeout_ms));
    attempts.grace = attempts.grace.or(milliseconds(settings.grace_ms));
    attempts.retries = attempts.retries.or(settings.retries);
    attempts.retry_backoff = attempts
        .retry_backoff
        .or(milliseconds(settings.retry_backoff_ms));
    if attempts.retry_on_exit.is_empty() && attempts.retry_on_output.is_empty() {
        attempts.retry_on_exit.clone_from(&settings.retry_on_exit);
        attempts
            .retry_on_output
            .clone_from(&settings.retry_on_output);
    }
    Ok(direction)
}
