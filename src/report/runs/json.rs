//! Recorded runs as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::causes::{AnsweredJson, Causes, Followed};
use super::{ListedRun, ShownRun};
use crate::record::journal::{
    Argument, AttemptRecord, CauseRecord, ChangeSummary, Counts, EvaluatedTurn, FailureRecord,
    Header, StackState, Stop,
};
use crate::report::document::{FORMAT, write_json_pretty};

#[derive(Serialize)]
struct ListedJson<'a> {
    id: &'a str,
    state: &'static str,
    #[serde(flatten)]
    known: Option<KnownJson<'a>>,
    problem: Option<String>,
}

#[derive(Serialize)]
struct KnownJson<'a> {
    at: String,
    command: &'a [Argument],
    resumes: Option<&'a str>,
    stacks: usize,
    #[serde(flatten)]
    counts: Counts,
    left_out: usize,
    elapsed_ms: Option<u128>,
}

pub fn write_runs_json(out: &mut impl Write, runs: &[ListedRun]) -> io::Result<()> {
    let runs = runs.iter().map(|run| match &run.brief {
        Ok(brief) => ListedJson {
            id: &run.id,
            state: brief.state.word(),
            known: Some(KnownJson {
                at: brief.header.at.to_string(),
                command: &brief.header.command,
                resumes: brief.header.resumes.as_deref(),
                stacks: brief.stacks,
                counts: brief.counts,
                left_out: brief.header.left_out.len(),
                elapsed_ms: brief.elapsed.map(|elapsed| elapsed.as_millis()),
            }),
            problem: None,
        },
        Err(error) => ListedJson {
            id: &run.id,
            state: "unreadable",
            known: None,
            problem: Some(error.to_string()),
        },
    });
    let runs: Vec<ListedJson> = runs.collect();
    write_json_pretty(out, &BTreeMap::from([("runs", runs)]))
}

#[derive(Serialize)]
struct RunJson<'a> {
    id: &'a str,
    state: &'static str,
    /// The exit status of `orch`.
    status: Option<u8>,
    elapsed_ms: Option<u64>,
    folder: String,
    #[serde(flatten)]
    counts: Counts,
    header: &'a Header,
    /// What stopped the run before its end.
    stops: &'a [Stop],
    stacks: Vec<StackRecordJson<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    evaluated: &'a [EvaluatedTurn],
}

/// The fields of a run that are not lists.
const RUN_VALUES: [&str; 10] = [
    "id",
    "state",
    "status",
    "elapsed_ms",
    "folder",
    "header",
    "succeeded",
    "failed",
    "skipped",
    "cancelled",
];

#[derive(Serialize)]
struct StackRecordJson<'a> {
    path: &'a str,
    state: &'a str,
    attempts: u32,
    elapsed_ms: Option<u64>,
    failure: Option<&'a FailureRecord>,
    cause: Option<&'a CauseRecord>,
    /// What it changed, or would change, if known.
    changes: Option<&'a ChangeSummary>,
    history: &'a [AttemptRecord],
}

/// Writes a run: the header of its journal, and how each stack ended.
pub fn write_run_json(out: &mut impl Write, run: &ShownRun) -> io::Result<()> {
    let record = &run.record;
    let stacks = run.stacks().map(|stack| {
        let ended = stack.ended();
        StackRecordJson {
            path: &stack.record.path,
            state: stack.outcome(),
            attempts: match stack.record.state {
                StackState::Started { attempt, .. } => attempt,
                _ => ended.map_or(0, |ended| ended.attempts),
            },
            elapsed_ms: ended.map(|ended| ended.elapsed_ms),
            failure: ended.and_then(|ended| ended.failure.as_ref()),
            cause: ended.and_then(|ended| ended.cause.as_ref()),
            changes: stack.changes(),
            history: &stack.record.attempts,
        }
    });
    let finished = record.finished.as_ref();
    let document = RunJson {
        id: &record.header.run,
        state: run.state.word(),
        status: finished.map(|finished| finished.status),
        elapsed_ms: finished.map(|finished| finished.elapsed_ms),
        folder: run.folder.to_string_lossy().into_owned(),
        counts: record.counts(),
        header: &record.header,
        stops: &record.stops,
        stacks: stacks.collect(),
        evaluated: &record.evaluated,
    };
    write_json_pretty(out, &document)
}

/// Writes why the turns of a stack in a run followed others.
pub fn write_causes_json(out: &mut impl Write, run: &ShownRun, stack: &str) -> io::Result<()> {
    #[derive(Serialize)]
    struct CausesJson<'a> {
        run: &'a str,
        path: &'a str,
        /// How the stack ended, in a word.
        state: Option<&'a str>,
        /// The turns that followed others.
        turns: Vec<AnsweredJson<'a>>,
    }
    let shown = run.stacks().find(|shown| shown.record.path == stack);
    let turns: Vec<Followed<'_>> = Causes::new(run).of(stack);
    let document = CausesJson {
        run: &run.record.header.run,
        path: stack,
        state: shown.map(super::ShownStack::outcome),
        turns: turns.iter().map(AnsweredJson::from).collect(),
    };
    write_json_pretty(out, &document)
}

/// Writes that a run or a stack of it is unknown, in place of its causes and in the form of other
/// refusals.
pub fn write_causes_refusal_json(out: &mut impl Write, problem: &str) -> io::Result<()> {
    write_refusal(out, problem, &["turns"], &["run", "path", "state"])
}

/// Writes that there is no such run, or no run to list, in the form of other refusals.
pub fn write_run_refusal_json(
    out: &mut impl Write,
    problem: &str,
    is_list: bool,
) -> io::Result<()> {
    if is_list {
        write_refusal(out, problem, &["runs"], &[])
    } else {
        write_refusal(out, problem, &["stops"], &RUN_VALUES)
    }
}

/// Writes a refusal with these empty lists and these values, which are null.
fn write_refusal(
    out: &mut impl Write,
    problem: &str,
    lists: &[&str],
    values: &[&str],
) -> io::Result<()> {
    let mut document = serde_json::json!({
        "format": FORMAT,
        "refused": { "problem": problem, "command": null },
        "stacks": [],
        "valid": true,
        "diagnostics": [],
        "errors": [],
    });
    for list in lists {
        document[list] = serde_json::json!([]);
    }
    for value in values {
        document[value] = serde_json::Value::Null;
    }
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}
