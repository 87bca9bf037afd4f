//! The report of a run in the format of Terragrunt's run report (version 4), for programs that read
//! it.

use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer as _};

use super::runs::{ShownRun, ShownStack};
use crate::printable::printable;
use crate::project::tool_options::TOOLS;
use crate::record::journal::{Argument, OutcomeRecord, RunStatus, StackState};

/// A run in Terragrunt's sense: what happened in one stack. Unknown values are left out.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Unit {
    name: String,
    started: String,
    ended: String,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cmd: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
}

/// Writes a run as an array of JSON objects.
pub(super) fn write_terragrunt_json(out: &mut impl Write, run: &ShownRun) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::pretty(&mut *out);
    let mut units = serializer.serialize_seq(Some(run.record.stacks.len()))?;
    for stack in run.stacks() {
        units.serialize_element(&unit(run, stack))?;
    }
    units.end()?;
    writeln!(out)
}

pub(super) fn write_terragrunt_csv(out: &mut impl Write, run: &ShownRun) -> io::Result<()> {
    writeln!(out, "Name,Started,Ended,Result,Reason,Cause,Ref,Cmd,Args")?;
    for stack in run.stacks() {
        let unit = unit(run, stack);
        let cells = [
            &unit.name,
            &unit.started,
            &unit.ended,
            unit.result,
            unit.reason.unwrap_or_default(),
            unit.cause.as_deref().unwrap_or_default(),
            "",
            unit.cmd.as_deref().unwrap_or_default(),
            &unit.args.join("|"),
        ];
        writeln!(out, "{}", cells.map(cell).join(","))?;
    }
    Ok(())
}

/// Returns a cell, in quotation marks if it needs them.
fn cell(text: &str) -> String {
    if text.contains(['"', ',']) || text.starts_with(' ') || text.ends_with(' ') {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

fn unit(run: &ShownRun, stack: ShownStack) -> Unit {
    let record = &run.record;
    let (result, reason, cause) = result(run, stack);
    let (cmd, args) = command(&record.header.command);
    // Without such a time, use that of the decision, or of the last event.
    let ended = stack.record.ended_at.unwrap_or(record.last);
    let started = stack.started_at().unwrap_or(ended);
    let time = |time: Timestamp| time.to_string();
    Unit {
        name: name(&stack.record.path),
        started: time(started),
        ended: time(ended),
        result,
        reason,
        cause,
        cmd,
        args,
    }
}

/// Returns the path of a stack relative to the project root.
fn name(path: &str) -> String {
    match path.trim_start_matches('/') {
        "" => ".".to_owned(),
        relative => printable(relative).into_owned(),
    }
}

/// Returns how a stack ended: the result, and the reason if Terragrunt has a word for it.
fn result(
    run: &ShownRun,
    stack: ShownStack,
) -> (&'static str, Option<&'static str>, Option<String>) {
    let cause = stack.cause();
    match &stack.record.state {
        StackState::Ended(ended) => match ended.outcome {
            OutcomeRecord::Succeeded if ended.attempts > 1 => {
                ("succeeded", Some("retry succeeded"), None)
            }
            OutcomeRecord::Succeeded => ("succeeded", None, None),
            OutcomeRecord::Skipped => match stack.failed_before() {
                Some(before) => ("early exit", Some("ancestor error"), Some(name(before))),
                None => ("early exit", None, cause),
            },
            OutcomeRecord::Unconfirmed | OutcomeRecord::Cancelled => ("early exit", None, cause),
            OutcomeRecord::Failed | OutcomeRecord::Other(_) => ("failed", Some("run error"), cause),
        },
        StackState::Started { .. } if run.state == RunStatus::Running => ("excluded", None, cause),
        StackState::Started { .. } => ("failed", Some("run error"), cause),
        StackState::LeftOut => ("excluded", None, cause),
        StackState::Waiting => match cause {
            Some(cause) => ("early exit", None, Some(cause)),
            None => (
                "excluded",
                None,
                Some(run.word(&stack.record.state).to_owned()),
            ),
        },
    }
}

/// Returns the command and its arguments. For programs like terraform, the command is the subcommand.
fn command(words: &[Argument]) -> (Option<String>, Vec<String>) {
    let is_known = |word: &Argument| {
        let name = Path::new(&word.0).file_stem();
        name.is_some_and(|name| TOOLS.iter().any(|it| name == *it))
    };
    let words = match words {
        [program, rest @ ..] if !rest.is_empty() && is_known(program) => rest,
        words => words,
    };
    let mut words = words.iter().map(|word| {
        let word = word.0.to_string_lossy();
        printable(&word).into_owned()
    });
    (words.next(), words.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_quotation_marks_where_it_needs_them() {
        assert_eq!(cell("a b"), "a b");
        assert_eq!(cell("a,b"), "\"a,b\"");
        assert_eq!(cell("a \"b\""), "\"a \"\"b\"\"\"");
        assert_eq!(cell(" a"), "\" a\"");
    }

    #[test]
    fn terraform_action_is_its_command() {
        let parts = |line: &str| {
            let words = line.split(' ').map(|word| Argument(word.into()));
            let (command, arguments) = command(&words.collect::<Vec<_>>());
            format!("{}: {}", command.unwrap_or_default(), arguments.join(" "))
        };
        assert_eq!(
            parts("terraform apply -auto-approve"),
            "apply: -auto-approve"
        );
        assert_eq!(parts("/usr/bin/tofu plan"), "plan: ");
        assert_eq!(parts("terraform"), "terraform: ");
        assert_eq!(parts("make deploy"), "make: deploy");
    }
}
