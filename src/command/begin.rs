//! Messages about how a run is recorded, and why it cannot begin or be resumed.

use crate::diagnostic::{Code, Diagnostic};
use crate::duration::local_time;
use crate::error::{Error, ErrorKind};
use crate::notice::Notices;
use crate::printable::{command_line, listed, printable};
use crate::record::journal::{LockHolder, RunRecord, UnreadRun};
use crate::run::recording::{Busy, RecordingNote};
use crate::run::resume::ResumeError;
use crate::run::started::BeginError;
use crate::source::Sources;

const MAX_NAMED: usize = 5;

/// Prints notes about how a run is recorded.
pub(super) fn show(notices: &Notices, note: &RecordingNote) {
    let unprotected = "a second run can start at the same time";
    let warning = match note {
        RecordingNote::Killed(killed) => {
            let way_on = match killed.purpose.as_deref() {
                None => format!("`orch run --resume {}` resumes it", killed.run),
                Some("apply") => {
                    "`orch plan` shows what is left; `orch apply FILE --resume` continues the plan in a file".to_owned()
                }
                // The later run repeats the evaluation.
                Some(_) => return,
            };
            let run = described(killed);
            return notices.note(&format!("orch was killed during run {run}; {way_on}"));
        }
        RecordingNote::NotRemoved { run, error } => {
            return notices.note(&format!("the old run {run} cannot be removed: {error}"));
        }
        RecordingNote::NoLock(why) => format!("the run has no lock: {why}; {unprotected}"),
        RecordingNote::NoJournal(why) => {
            format!("this run is not recorded: {why}; it cannot be resumed")
        }
        RecordingNote::Nothing(why) => {
            format!("this run is not recorded: {why}; it cannot be resumed, and {unprotected}")
        }
    };
    notices.diagnostics(
        &[Diagnostic::warning(Code::Unprotected, warning)],
        &Sources::default(),
    );
}

/// Describes a run: its id, command and start.
fn described(holder: &LockHolder) -> String {
    let words: Vec<_> = holder.command.iter().map(|word| word.0.clone()).collect();
    format!(
        "{} (`{}`, begun {})",
        printable(&holder.run),
        command_line(&words),
        local_time(holder.since)
    )
}

/// Suggests what to do about an unreadable run that may have resumed this one.
fn unread_hint(unread: &UnreadRun) -> String {
    format!(
        "it may have resumed the run: make its journal readable, or remove `.orch/runs/{}` if it did not",
        unread.run
    )
}

/// Explains why a run cannot begin. A run of drivers cannot run in parallel with others.
pub(super) fn begin_error(error: BeginError, can_be_beside: bool) -> Error {
    match error {
        BeginError::Files(error) => Error::external(error),
        BeginError::Signals(error) => Error::described("failed to receive signals", error),
        BeginError::Thread(error) => Error::described("failed to start a thread", error),
        BeginError::Busy(busy) => busy_error(busy, can_be_beside),
    }
}

fn busy_error(busy: Busy, can_be_beside: bool) -> Error {
    let beside = if can_be_beside {
        ", or run at the same time with `--allow-concurrent`"
    } else {
        ""
    };
    let wait = format!("wait until it has ended{beside}");
    let (holder, killed, is_elsewhere) = match busy {
        Busy::Resumed { run, by } => {
            return Error::refused(format!("run {by} has just resumed run {run}")).hint(format!(
                "`orch runs show {by}` shows what is left: resume that run"
            ));
        }
        Busy::Unlisted(error) => {
            return Error::described("failed to look for runs in progress", error);
        }
        Busy::NoLock(error) => {
            return Error::described("another run may hold the lock", error).hint(format!(
                "make `.orch` and its files readable and writable{beside}"
            ));
        }
        Busy::MayBeAlive(run) => {
            return Error::refused(format!(
                "run {run} may still be in progress: neither its journal nor its process shows that it has ended"
            ))
            .hint(format!(
                "if it has ended, remove `.orch/runs/{run}`{beside}"
            ));
        }
        Busy::Unread(unread) => {
            let hint = unread_hint(&unread);
            return Error::external(unread).hint(hint);
        }
        Busy::Held {
            holder: None,
            killed: _,
            is_elsewhere: _,
        } => {
            return Error::refused("another run is in progress in this project; its id is unknown")
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
        return Error::refused(format!(
            "orch was killed during run {run}, but {} is still running",
            what_runs(&record)
        ))
        .hint(match holder.purpose {
            None if can_be_beside => format!(
                "wait until it has ended, then run `orch run --resume {}`; or run at the same time with `--allow-concurrent`",
                holder.run
            ),
            None => format!(
                "wait until it has ended, then run `orch run --resume {}`",
                holder.run
            ),
            Some(_) => format!("wait until it has ended{beside}"),
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
        return Error::refused(format!(
            "{message}; this orch was started by one of its commands"
        ))
        .hint("if that is intended, add `--allow-concurrent`");
    }
    Error::refused(message).hint(wait)
}

/// Describes what may still run. The lock does not show whether a command of the run or a process
/// that it left behind holds it.
fn what_runs(record: &RunRecord) -> String {
    let stacks: Vec<_> = record.started().map(printable).collect();
    match &stacks[..] {
        [] => "a process that it started".to_owned(),
        [stack] => format!("its command in {stack}, or a process that it started,"),
        stacks => {
            let stacks = listed(stacks.iter(), MAX_NAMED);
            format!("one of its commands in {stacks}, or a process that they started,")
        }
    }
}

/// Returns the error that a run cannot be resumed, with its fix.
pub(super) fn resume_error(error: ResumeError) -> Error {
    let (kind, hint) = match &error {
        ResumeError::Find(_) => (ErrorKind::Usage, None),
        ResumeError::NoRuns => {
            let hint = "start one with `orch run COMMAND`".to_owned();
            (ErrorKind::Refused, Some(hint))
        }
        ResumeError::Alive(_) => {
            let hint = "wait until it has ended".to_owned();
            (ErrorKind::Refused, Some(hint))
        }
        ResumeError::MayBeAlive(_) => {
            let hint = "if it has ended, add `--allow-concurrent`".to_owned();
            (ErrorKind::Refused, Some(hint))
        }
        ResumeError::Newer { .. } => {
            let hint = "resume it with the orch that wrote it".to_owned();
            (ErrorKind::Refused, Some(hint))
        }
        ResumeError::UnknownWord { orch, .. } => {
            let orch = printable(orch);
            let hint = format!("resume it with orch {orch}, which wrote its journal");
            (ErrorKind::Refused, Some(hint))
        }
        ResumeError::PartOfWorkOrder(_) => {
            let hint = "run its jobs again: they skip stacks that are done; `orch finish --work-order FILE` continues its follow-ups";
            (ErrorKind::Refused, Some(hint.to_owned()))
        }
        ResumeError::Other { purpose, .. } => {
            let hint = match purpose.as_str() {
                "apply" => {
                    "`orch plan` shows what is left; `orch apply FILE --resume` continues the plan in a file"
                }
                _ => "`orch runs list` lists all runs",
            };
            (ErrorKind::Refused, Some(hint.to_owned()))
        }
        ResumeError::UnreadLater(unread) => (ErrorKind::External, Some(unread_hint(unread))),
        ResumeError::Unreadable { .. } | ResumeError::NoCommand(_) | ResumeError::Unusable(_) => {
            (ErrorKind::External, None)
        }
    };
    let error = Error::new(kind, error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
