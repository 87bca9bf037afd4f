//! Messages about the lock and the record of a new run: what blocks it, and what cannot
//! be kept.

use orch::diagnostic::{Code, Diagnostic};
use orch::duration::local_time;
use orch::error::ErrorKind;
use orch::printable::{command_line, printable};
use orch::record::journal::{Holder, RunRecord, UnreadRun};
use orch::run::recording::{Busy, RecordingNote};
use orch::source::Sources;

use crate::program::console;
use crate::program::error::ProgramError;

/// How many stacks a message names.
const MAX_NAMED: usize = 5;

/// Shows what is worth telling about how a run is recorded.
pub(in crate::program::commands) fn show(note: &RecordingNote) {
    let unprotected = "nothing keeps a second run from starting";
    let warning = match note {
        RecordingNote::Killed(killed) => {
            let way_on = match killed.purpose.as_deref() {
                None => format!("`orch run --resume {}` resumes it", killed.run),
                Some("apply") => {
                    "`orch plan` shows what is left to do, and `orch apply FILE --resume` goes on with the plan of a file".to_owned()
                }
                // Whatever it was to find out is found out anew.
                Some(_) => return,
            };
            let run = described(killed);
            return console::note(&format!("orch was killed in run {run}; {way_on}"));
        }
        RecordingNote::NotRemoved { run, error } => {
            return console::note(&format!("the old run {run} cannot be removed: {error}"));
        }
        RecordingNote::NoLock(why) => format!("there is no lock: {why}; {unprotected}"),
        RecordingNote::NoJournal(why) => {
            format!("this run is not recorded: {why}; it cannot be resumed")
        }
        RecordingNote::Nothing(why) => {
            format!("this run is not recorded: {why}; it cannot be resumed, and {unprotected}")
        }
    };
    console::diagnostics(
        [&Diagnostic::warning(Code::Unprotected, warning)],
        &Sources::default(),
    );
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

/// Says what to do about a later run that may have resumed one, and cannot be read.
pub(super) fn unread_hint(unread: &UnreadRun) -> String {
    format!(
        "it may have resumed the run: make its journal readable, or remove `.orch/runs/{}` if it did not",
        unread.run
    )
}

/// Explains what blocks a run, which may be one that can run beside others.
pub(in crate::program::commands) fn explained(busy: Busy, can_be_beside: bool) -> ProgramError {
    let beside = if can_be_beside {
        ", or run beside it with `--allow-concurrent`"
    } else {
        ""
    };
    let wait = format!("wait until it has ended{beside}");
    let (holder, killed, is_elsewhere) = match busy {
        Busy::Resumed { run, by } => {
            return ProgramError::refused(format!("run {by} has just resumed run {run}")).hint(
                format!("see what is left to do with `orch runs show {by}`, and resume that"),
            );
        }
        Busy::Unlisted(error) => {
            let error = anyhow::Error::new(error).context("failed to look for runs in progress");
            return ProgramError::new(ErrorKind::External, error);
        }
        Busy::NoLock(error) => {
            let error = anyhow::Error::new(error).context("another run may hold the lock");
            return ProgramError::new(ErrorKind::External, error).hint(format!(
                "make `.orch` and its files readable and writable{beside}"
            ));
        }
        Busy::MayBeAlive(run) => {
            return ProgramError::refused(format!(
                "run {run} may still be in progress: neither its journal nor its process shows that it has ended"
            ))
            .hint(format!(
                "if it has ended, remove `.orch/runs/{run}`{beside}"
            ));
        }
        Busy::Unread(unread) => {
            let hint = unread_hint(&unread);
            return ProgramError::new(ErrorKind::External, unread.into()).hint(hint);
        }
        Busy::Held {
            holder: None,
            killed: _,
            is_elsewhere: _,
        } => {
            return ProgramError::refused(
                "another run is in progress in this project, and its id is not known",
            )
            .hint(wait);
        }
        Busy::Held {
            holder: Some(holder),
            killed,
            is_elsewhere,
        } => (holder, killed, is_elsewhere),
    };
    let run = described(&holder);
    if let Some(record) = killed {
        return ProgramError::refused(format!(
            "orch was killed in run {run}, but {} is still running",
            what_runs(&record)
        ))
        .hint(match holder.purpose {
            None if can_be_beside => format!(
                "wait until that has ended, then resume the run with `orch run --resume {}`; or run beside it with `--allow-concurrent`",
                holder.run
            ),
            None => format!(
                "wait until that has ended, then resume the run with `orch run --resume {}`",
                holder.run
            ),
            Some(_) => format!("wait until that has ended{beside}"),
        });
    }
    let elsewhere = if is_elsewhere {
        format!(" on {}", printable(&holder.host))
    } else {
        String::new()
    };
    let process = holder.process;
    let message =
        format!("another run is in progress in this project: {run}, process {process}{elsewhere}");
    if can_be_beside && std::env::var("ORCH_RUN_ID").is_ok_and(|ours| ours == holder.run) {
        return ProgramError::refused(format!(
            "{message}; this orch was started by one of its commands"
        ))
        .hint("if that is intended, add `--allow-concurrent`");
    }
    ProgramError::refused(message).hint(wait)
}

/// Names what may still run. Who holds the lock cannot be known: a command, or a process that it has
/// left behind.
fn what_runs(record: &RunRecord) -> String {
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
