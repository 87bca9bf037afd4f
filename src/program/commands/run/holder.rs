//! What is said of who holds the lock of the project, or held it when they were killed.

use orch::printable::{command_line, printable};
use orch::record::journal::{Header, Holder, Liveness, Record, RecordFolder, Runs};
use orch::report::local_time;

use crate::program::console;
use crate::program::error::ProgramError;

/// Stacks that a message names.
const MAX_NAMED: usize = 5;

/// Says that the run before was killed, unless nothing of it is left to do.
pub(super) fn note_killed(place: &RecordFolder, killed: &Holder) {
    let record = Runs::find(place.clone())
        .ok()
        .and_then(|runs| runs.record(&killed.run).ok());
    if record.is_none_or(|record| record.finished.is_some()) {
        return;
    }
    console::note(&format!(
        "orch was killed in run {}; `orch run --resume {}` resumes it",
        described(killed),
        killed.run
    ));
}

/// Describes a run: its id, command and beginning.
fn described(holder: &Holder) -> String {
    let words: Vec<_> = holder.command.iter().map(|word| word.0.clone()).collect();
    format!(
        "{} (`{}`, begun {})",
        printable(&holder.run),
        command_line(&words),
        local_time(holder.since)
    )
}

/// Explains who holds the lock.
pub(super) fn held(place: &RecordFolder, holder: Option<Holder>, header: &Header) -> ProgramError {
    let wait = "wait until it has ended, or run all the same with `--allow-concurrent`";
    let Some(holder) = holder else {
        return ProgramError::refused(
            "another run is going on in this project, and has not said which",
        )
        .hint(wait.to_owned());
    };
    let run = described(&holder);
    let left_behind = Runs::find(place.clone()).ok().and_then(|runs| {
        let is_gone = runs.liveness(&holder.run) == Liveness::Gone;
        // A run without a journal is no less alive.
        runs.record(&holder.run).ok().filter(|_| is_gone)
    });
    if let Some(record) = left_behind {
        return ProgramError::refused(format!(
                "orch was killed in run {run}, but {} is still running",
                what_runs(&record)
            )).hint(format!(
                "wait until that has ended, then resume the run with `orch run --resume {}`; or run all the same with `--allow-concurrent`",
                holder.run
            ));
    }
    let elsewhere = if holder.host == header.host {
        String::new()
    } else {
        format!(" on {}", printable(&holder.host))
    };
    let process = holder.process;
    let message =
        format!("another run is going on in this project: {run}, process {process}{elsewhere}");
    if std::env::var("ORCH_RUN_ID").is_ok_and(|ours| ours == holder.run) {
        return ProgramError::refused(format!(
            "{message}; this orch was started by one of its commands"
        ))
        .hint("if that is meant to be, add `--allow-concurrent`");
    }
    ProgramError::refused(message).hint(wait.to_owned())
}

/// Names what may still run. Who holds the lock cannot be known: a command, or a process that it has
/// left behind.
fn what_runs(record: &Record) -> String {
    let mut stacks: Vec<String> = record
        .started()
        .map(|stack| printable(stack).into_owned())
        .collect();
    match stacks.len() {
        0 => "something that it started".to_owned(),
        1 => format!(
            "something that its command in {} started, or the command itself,",
            stacks[0]
        ),
        all => {
            if all > MAX_NAMED {
                stacks.truncate(MAX_NAMED);
                stacks.push(format!("{} more", all - MAX_NAMED));
            }
            let last = stacks.pop().unwrap_or_default();
            format!(
                "something that its commands in {} and {last} started, or one of them,",
                stacks.join(", ")
            )
        }
    }
}
