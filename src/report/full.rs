//! The report of a run as JSON, with all its data.

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::SerializeSeq as _;
use serde_json::{Map, Value};

use super::document::FORMAT;
use super::runs::{Causes, Followed, ShownRun, ShownStack};
use crate::record::journal::Word;
use crate::record::journal::{
    Argument, AttemptRecord, BaseRecord, ChangeSummary, Counts, Direction, EvaluatedTurn,
    StackState, Stop,
};
use crate::record::logs::Logs;

#[derive(Serialize)]
struct ReportJson<'a> {
    format: u32,
    run: RunJson<'a>,
    stacks: StacksJson<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    evaluated: &'a [EvaluatedTurn],
}

#[derive(Serialize)]
struct RunJson<'a> {
    id: &'a str,
    state: &'static str,
    status: Option<u8>,
    command: &'a [Argument],
    arguments: &'a [Argument],
    directory: &'a str,
    started_at: String,
    ended_at: Option<String>,
    /// The time of the last recorded event.
    last_at: String,
    elapsed_ms: Option<u64>,
    direction: &'a Word<Direction>,
    head: Option<&'a str>,
    base: Option<&'a BaseRecord>,
    resumes: Option<&'a str>,
    orch: &'a str,
    host: &'a str,
    counts: CountsJson,
    stops: &'a [Stop],
}

#[derive(Serialize)]
struct CountsJson {
    stacks: usize,
    #[serde(flatten)]
    ended: Counts,
    left_out: usize,
    changed: usize,
}

/// The stacks, written one by one.
struct StacksJson<'a>(&'a ShownRun, &'a Logs);

#[derive(Serialize)]
struct StackJson<'a> {
    path: &'a str,
    outcome: &'a str,
    cause: Option<Value>,
    attempts: Vec<LoggedAttemptJson<'a>>,
    started_at: Option<String>,
    ended_at: Option<String>,
    elapsed_ms: Option<u64>,
    changes: Option<&'a ChangeSummary>,
    log: Option<String>,
    /// Its turns that followed others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    follows: Vec<Followed<'a>>,
}

#[derive(Serialize)]
struct LoggedAttemptJson<'a> {
    #[serde(flatten)]
    attempt: &'a AttemptRecord,
    log: Option<String>,
}

impl Serialize for StacksJson<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let StacksJson(run, logs) = self;
        let mut stacks = serializer.serialize_seq(Some(run.record.stacks.len()))?;
        let causes = Causes::new(run);
        for stack in run.stacks() {
            let follows = causes.of(&stack.record.path);
            stacks.serialize_element(&stack_json(stack, logs, follows))?;
        }
        stacks.end()
    }
}

fn stack_json<'a>(stack: ShownStack<'a>, logs: &Logs, follows: Vec<Followed<'a>>) -> StackJson<'a> {
    let record = stack.record;
    let attempts: Vec<LoggedAttemptJson> = record
        .attempts
        .iter()
        .map(|attempt| LoggedAttemptJson {
            attempt,
            log: stack.log_place(logs, attempt),
        })
        .collect();
    StackJson {
        path: &record.path,
        outcome: stack.outcome(),
        cause: cause_json(stack),
        log: attempts.last().and_then(|attempt| attempt.log.clone()),
        attempts,
        started_at: stack.started_at().map(|time| time.to_string()),
        ended_at: record.ended_at.map(|time| time.to_string()),
        elapsed_ms: stack.ended().map(|ended| ended.elapsed_ms),
        changes: stack.changes(),
        follows,
    }
}

/// Returns why a stack did not succeed: the kind with its fields for programs, and the message for
/// people.
fn cause_json(stack: ShownStack) -> Option<Value> {
    let message = stack.cause()?;
    let word = |word: &str| serde_json::json!({ "kind": word });
    let cause = match &stack.record.state {
        StackState::LeftOut => word("left-out"),
        StackState::Waiting => word("not-run"),
        StackState::Started { .. } => word("not-ended"),
        StackState::Ended(ended) => {
            let failure = ended.failure.as_ref().map(serde_json::to_value);
            let cause = || ended.cause.as_ref().map(serde_json::to_value);
            failure.or_else(cause)?.unwrap_or_default()
        }
    };
    let mut fields = match cause {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.insert("message".to_owned(), message.into());
    Some(Value::Object(fields))
}

pub(super) fn write_report_json(
    out: &mut impl Write,
    run: &ShownRun,
    logs: &Logs,
) -> io::Result<()> {
    let record = &run.record;
    let header = &record.header;
    let finished = record.finished.as_ref();
    let has_changes =
        |stack: &ShownStack| stack.changes().is_some_and(|changes| changes.has_changes);
    let report = ReportJson {
        format: FORMAT,
        run: RunJson {
            id: &header.run,
            state: run.state.word(),
            status: finished.map(|finished| finished.status),
            command: &header.command,
            arguments: &header.arguments,
            directory: &header.directory,
            started_at: header.at.to_string(),
            ended_at: finished.map(|_| record.last.to_string()),
            last_at: record.last.to_string(),
            elapsed_ms: finished.map(|finished| finished.elapsed_ms),
            direction: &header.direction,
            head: header.head.as_deref(),
            base: header.base.as_ref(),
            resumes: header.resumes.as_deref(),
            orch: &header.orch,
            host: &header.host,
            counts: CountsJson {
                stacks: record.stacks.len(),
                ended: record.counts(),
                left_out: header.left_out.len(),
                changed: run.stacks().filter(has_changes).count(),
            },
            stops: &record.stops,
        },
        stacks: StacksJson(run, logs),
        evaluated: &record.evaluated,
    };
    let mut serializer = serde_json::Serializer::pretty(&mut *out);
    report.serialize(&mut serializer)?;
    writeln!(out)
}
