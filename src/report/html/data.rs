//! The data of a run that the page contains.

use serde::Serialize;

use super::log::LogFile;
use super::timeline::{RunTimeline, Time};
use crate::record::journal::{AttemptRecord, Counts, RunStatus};
use crate::report::failure::failed;
use crate::report::resources::changes_text;
use crate::report::runs::{Causes, Followed, ShownRun, ShownStack, facts, policy_problems};

#[derive(Serialize)]
pub(super) struct PageData<'a> {
    id: &'a str,
    state: &'static str,
    /// Milliseconds since 1970.
    began: i64,
    elapsed_ms: Option<u64>,
    jobs: usize,
    /// Further facts, each with its name.
    facts: Vec<(&'static str, String)>,
    /// Problems with policies, as sentences.
    problems: Vec<String>,
    stacks: Vec<StackData<'a>>,
    /// The dependencies, by positions in `stacks`; positions beyond its end are those of `between`.
    edges: Vec<(usize, usize)>,
    between: Vec<usize>,
    critical: Vec<usize>,
}

#[derive(Serialize)]
struct StackData<'a> {
    path: &'a str,
    state: &'a str,
    /// The cause of its outcome.
    detail: Option<String>,
    wave: usize,
    #[serde(flatten)]
    time: Option<Time>,
    changes: Option<String>,
    /// Whether there are changes, if known.
    changed: Option<bool>,
    /// Its turns that followed others.
    follows: Vec<Followed<'a>>,
    attempts: Vec<AttemptData>,
}

#[derive(Serialize)]
struct AttemptData {
    number: u32,
    start: i64,
    elapsed_ms: Option<u64>,
    /// How it failed, and further notes.
    notes: Vec<String>,
    /// The id of the element with its log.
    log: Option<String>,
    bytes: u64,
}

impl<'a> PageData<'a> {
    /// `logs` are in the order of the stacks, and then of their attempts.
    pub(super) fn new(run: &'a ShownRun, logs: &[LogFile<'_>]) -> Self {
        let record = &run.record;
        let course = RunTimeline::new(record);
        let causes = Causes::new(run);
        let mut logs = logs.iter().peekable();
        let stacks = run.stacks().enumerate().map(|(position, stack)| {
            let attempts = stack
                .record
                .attempts
                .iter()
                .enumerate()
                .map(|(nth, attempt)| {
                    let log = logs.next_if(|log| (log.stack, log.nth) == (position, nth));
                    attempt_data(run, attempt, log)
                })
                .collect();
            let (wave, time) = (course.waves[position], course.times[position]);
            let follows = causes.of(&stack.record.path);
            stack_data(stack, wave, time, follows, attempts)
        });
        PageData {
            id: &record.header.run,
            state: run.state.word(),
            began: record.header.at.as_millisecond(),
            elapsed_ms: record.finished.as_ref().map(|finished| finished.elapsed_ms),
            jobs: record.header.settings.jobs,
            facts: facts(run),
            problems: policy_problems(record),
            stacks: stacks.collect(),
            edges: course.edges,
            between: course.between,
            critical: course.critical,
        }
    }
}

fn stack_data<'a>(
    stack: ShownStack<'a>,
    wave: usize,
    time: Option<Time>,
    follows: Vec<Followed<'a>>,
    attempts: Vec<AttemptData>,
) -> StackData<'a> {
    StackData {
        path: &stack.record.path,
        state: stack.outcome(),
        detail: stack.cause(),
        wave,
        time,
        changes: stack.changes().map(changes_text),
        changed: stack.changes().map(|changes| changes.has_changes),
        follows,
        attempts,
    }
}

fn attempt_data(run: &ShownRun, attempt: &AttemptRecord, log: Option<&LogFile<'_>>) -> AttemptData {
    let milliseconds = |time: std::time::Duration| u64::try_from(time.as_millis()).ok();
    let mut notes = Vec::new();
    notes.extend(attempt.failure.as_ref().map(|failure| failed(failure, "")));
    if attempt.elapsed.is_none() && run.state != RunStatus::Running {
        notes.push("its end is not recorded".to_owned());
    }
    if attempt.was_killed {
        notes.push("killed, since it did not end when interrupted".to_owned());
    }
    let lost = attempt.output_lost.as_ref();
    notes.extend(lost.map(|problem| format!("not all output was kept: {problem}")));
    let start = attempt.began.duration_since(run.record.header.at);
    AttemptData {
        number: attempt.number,
        start: i64::try_from(start.as_millis()).unwrap_or_default(),
        elapsed_ms: attempt.elapsed.and_then(milliseconds),
        notes: notes.iter().map(|note| note.trim().to_owned()).collect(),
        log: log.map(LogFile::id),
        bytes: log.map_or(0, |log| log.length),
    }
}

pub(super) fn headline(run: &ShownRun) -> String {
    let record = &run.record;
    let (counts, total) = (record.counts(), record.stacks.len());
    let stacks = |n: usize| format!("{n} {}", if n == 1 { "stack" } else { "stacks" });
    let of_all = format!("of {}", stacks(total));
    let Counts {
        succeeded,
        failed,
        unconfirmed,
        skipped,
        cancelled,
    } = counts;
    let ended = succeeded + failed + unconfirmed + skipped + cancelled;
    let word = run.state.word();
    match run.state {
        RunStatus::DryRun => format!("{word}: {} would run", stacks(total)),
        _ if total == 0 => format!("{word}: there was no stack to run in"),
        RunStatus::Succeeded if counts.succeeded == total => format!("{word}: {}", stacks(total)),
        RunStatus::Succeeded => format!("{word}: {} {of_all}", counts.succeeded),
        RunStatus::Failed => format!("{word}: {} {of_all}", counts.failed),
        RunStatus::Interrupted => format!("{word}: {} {of_all} succeeded", counts.succeeded),
        RunStatus::Running => format!("{word}: {ended} {of_all} have ended so far"),
        RunStatus::Killed | RunStatus::Unknown => format!("{word}: {ended} {of_all} had ended"),
    }
}
