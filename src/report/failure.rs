//! Describes how a command failed, for a running run and for a recorded one.

use std::time::Duration;

use crate::duration;
use crate::printable::printable;
use crate::record::journal::FailureRecord;

/// The cause for stacks that did not start because the state was lost.
pub(super) const STATE_LOST: &str =
    "the state could no longer be written, or the job lost its lease";

/// The cause for stacks that did not start because the plan was rejected.
pub(super) const REJECTED: &str = "the plan was not approved";

/// Returns how a command failed; `after` is the duration: `after 3.2s`.
pub(super) fn failed(failure: &FailureRecord, after: &str) -> String {
    let exact = |milliseconds: u64| duration::exact(Duration::from_millis(milliseconds));
    let how = match failure {
        FailureRecord::Exited { status } => format!("exit status {status}"),
        FailureRecord::Signalled { signal } => format!("ended by {}", signal_name(*signal)),
        FailureRecord::Interrupted { signal } => format!("interrupted by {}", signal_name(*signal)),
        // Its limit is no measured duration, and the two side by side would read as one.
        FailureRecord::TimedOut { timeout_ms } => {
            format!("took longer than {}, ended", exact(*timeout_ms))
        }
        FailureRecord::RunTimedOut { timeout_ms } => {
            format!("the run took longer than {}, ended", exact(*timeout_ms))
        }
        FailureRecord::NotStarted { problem } => format!("could not be started: {problem}"),
        FailureRecord::Refused { problem } | FailureRecord::Condition { problem } => {
            problem.clone()
        }
        FailureRecord::WantedTerminal => {
            "asked for the terminal (commands have it only in the foreground, with `-j 1 --output live`)"
                .to_owned()
        }
        FailureRecord::Lost { problem } => format!("its end is unknown: {problem}"),
        FailureRecord::Other(failure) => match failure["kind"].as_str() {
            Some(kind) => format!("`{kind}`, which is unknown to this orch,"),
            None => "in a way that is unknown to this orch,".to_owned(),
        },
    };
    format!("{} {after}", printable(&how))
}

/// Returns a duration, and the number of attempts if there were several; `preposition` is for a
/// single one.
pub(super) fn after(preposition: &str, attempts: u32, elapsed: Duration) -> String {
    let elapsed = duration::show(elapsed);
    match attempts {
        0 | 1 => format!("{preposition} {elapsed}"),
        attempts => format!("after {attempts} attempts in {elapsed}"),
    }
}

/// Returns the name of a signal that has the same number on every system, else its number.
pub(super) fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
