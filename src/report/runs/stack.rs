//! A stack of a run, for reports.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use super::ShownRun;
use crate::duration;
use crate::printable::printable;
use crate::record::journal::{
    AttemptRecord, CauseRecord, ChangeSummary, EndedTurnRecord, OutcomeRecord, RunStatus,
    StackRecord, StackState, run_folder,
};
use crate::record::logs::{LogReader, Logs};
use crate::report::failure::{REJECTED, STATE_LOST, after, failed, signal_name};

#[derive(Debug, Clone, Copy)]
pub(in crate::report) struct ShownStack<'a> {
    run: &'a ShownRun,
    pub(in crate::report) record: &'a StackRecord,
}

impl ShownRun {
    pub(in crate::report) fn stacks(&self) -> impl Iterator<Item = ShownStack<'_>> {
        let records = self.record.stacks.iter();
        records.map(|record| ShownStack { run: self, record })
    }
}

impl<'a> ShownStack<'a> {
    pub(in crate::report) fn outcome(self) -> &'a str {
        self.run.word(&self.record.state)
    }

    pub(in crate::report) fn ended(self) -> Option<&'a EndedTurnRecord> {
        match &self.record.state {
            StackState::Ended(ended) => Some(ended),
            _ => None,
        }
    }

    /// Returns what it changed, or would change, if known.
    pub(in crate::report) fn changes(self) -> Option<&'a ChangeSummary> {
        self.ended()?.changes.as_ref()
    }

    /// Returns why it did not succeed, or did not run, if so, as a clause without control characters.
    pub(in crate::report) fn cause(self) -> Option<String> {
        let state = self.run.state;
        Some(match &self.record.state {
            StackState::LeftOut => "left out by --only-failed".to_owned(),
            StackState::Waiting => match state {
                RunStatus::DryRun => return None,
                RunStatus::Running | RunStatus::Unknown => "its turn has not come yet".to_owned(),
                RunStatus::Killed => "orch was killed before its turn came".to_owned(),
                _ => "the run ended before its turn came".to_owned(),
            },
            StackState::Started { attempt, .. } => {
                let nth = nth(*attempt);
                match state {
                    RunStatus::Running => format!("its command is running{nth}"),
                    RunStatus::Unknown => {
                        format!("its command is running{nth}, or orch was killed while it ran")
                    }
                    _ => format!("orch was killed while its command ran{nth}"),
                }
            }
            StackState::Ended(ended) if ended.outcome == OutcomeRecord::Succeeded => {
                return how_ended(ended);
            }
            StackState::Ended(ended) if ended.outcome == OutcomeRecord::Unconfirmed => {
                "its changes wait for approval".to_owned()
            }
            StackState::Ended(ended) => {
                how_ended(ended).unwrap_or_else(|| "the cause is not recorded".to_owned())
            }
        })
    }

    /// Returns when its first attempt began, if it did.
    pub(in crate::report) fn started_at(self) -> Option<Timestamp> {
        self.record.attempts.first().map(|attempt| attempt.began)
    }

    /// Returns the failed stack because of which this one did not run.
    pub(in crate::report) fn failed_before(self) -> Option<&'a str> {
        match self.ended()?.cause.as_ref()? {
            CauseRecord::Failed { stack } => Some(stack),
            _ => None,
        }
    }

    /// Returns how long it took, if it ran and has ended.
    pub(in crate::report) fn elapsed(self) -> Option<Duration> {
        let ended = self.ended().filter(|ended| ended.attempts > 0)?;
        Some(Duration::from_millis(ended.elapsed_ms))
    }

    /// Returns the number that the log of an attempt is named after, from 1.
    fn log_position(self, attempt: &AttemptRecord) -> Option<usize> {
        let record = &self.run.record;
        let number = record.turn_number(&self.record.path, attempt.turn);
        number.map(|number| number + 1)
    }

    /// Returns the log of an attempt, if it has printed anything and its output was captured. Fails
    /// if there is a file that cannot be read.
    pub(in crate::report) fn log(
        self,
        logs: &Logs,
        attempt: &AttemptRecord,
    ) -> io::Result<Option<LogReader>> {
        match self.log_position(attempt) {
            Some(position) => logs.reader(position, &self.record.path, attempt.number),
            None => Ok(None),
        }
    }

    /// Returns the path of an attempt's log in the project; `None` if there is no log, or if it does
    /// not outlive the run.
    pub(in crate::report) fn log_place(
        self,
        logs: &Logs,
        attempt: &AttemptRecord,
    ) -> Option<String> {
        let file = self.log_file(logs, attempt)?;
        let place = file.strip_prefix(&self.run.folder).ok()?;
        let place = run_folder(Path::new(""), &self.run.record.header.run).join(place);
        let is_there = file.symlink_metadata().is_ok_and(|file| file.is_file());
        is_there.then(|| place.to_string_lossy().replace('\\', "/"))
    }

    /// Returns the file that has the log of an attempt, whether or not it exists.
    pub(in crate::report) fn log_file(
        self,
        logs: &Logs,
        attempt: &AttemptRecord,
    ) -> Option<PathBuf> {
        Some(logs.file(
            self.log_position(attempt)?,
            &self.record.path,
            attempt.number,
        ))
    }
}

/// Returns why a stack that has ended did not succeed, or did not run, if recorded.
pub(in crate::report) fn how_ended(ended: &EndedTurnRecord) -> Option<String> {
    if let Some(failure) = &ended.failure {
        let elapsed = Duration::from_millis(ended.elapsed_ms);
        return Some(failed(failure, &after("after", ended.attempts, elapsed)));
    }
    Some(match ended.cause.as_ref()? {
        CauseRecord::Failed { stack } if ended.outcome == OutcomeRecord::Skipped => {
            format!("runs after {}, which failed", printable(stack))
        }
        CauseRecord::Failed { stack } => {
            format!("the run stopped when {} failed", printable(stack))
        }
        CauseRecord::Signal { signal } => {
            format!("the run was interrupted by {}", signal_name(*signal))
        }
        CauseRecord::RunTimedOut { timeout_ms } => format!(
            "the run took longer than {}",
            duration::exact(Duration::from_millis(*timeout_ms))
        ),
        CauseRecord::Rejected => REJECTED.to_owned(),
        CauseRecord::StateLost => STATE_LOST.to_owned(),
        CauseRecord::Stuck => "nothing ran before it, and it could not start".to_owned(),
        CauseRecord::Done { run: Some(run) } => format!("already done by run {}", printable(run)),
        CauseRecord::Done { run: None } => "already done".to_owned(),
        CauseRecord::Other(cause) => match cause["kind"].as_str() {
            Some(kind) => format!("`{}`, which this orch does not know", printable(kind)),
            None => "for a reason that this orch does not know".to_owned(),
        },
    })
}

/// Returns which attempt it is, if it is not the first.
pub(super) fn nth(attempt: u32) -> String {
    match attempt {
        0 | 1 => String::new(),
        more => format!(", attempt {more}"),
    }
}
