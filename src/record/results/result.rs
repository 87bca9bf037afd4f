//! The result of an attempt of a turn: a line of JSON, then the logs.

use serde::{Deserialize, Serialize};

use crate::record::journal::{Event, FORMAT, JournalEntry, OutcomeRecord, line};

/// The longest part of a log that is sent: its end.
pub(super) const LONGEST_LOG: usize = 8 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnResult {
    /// The run of its job.
    pub run: String,
    /// The position of the turn in its work order.
    pub turn: usize,
    /// What the journal of the job has about the turn.
    pub lines: Vec<JournalEntry>,
    pub logs: Vec<AttemptLog>,
}

/// The output of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptLog {
    pub attempt: u32,
    pub output: Vec<u8>,
    /// The index of its streams.
    pub streams: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    #[error("it has format {format}, written by orch {orch}; this orch reads format {FORMAT}")]
    Newer { format: u32, orch: String },
    #[error("it is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    #[error("it is incomplete")]
    Incomplete,
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct ResultHead {
    format: u32,
    orch: String,
    run: String,
    turn: usize,
    lines: Vec<JournalEntry>,
    logs: Vec<LogHead>,
}

#[derive(Serialize, Deserialize)]
struct LogHead {
    attempt: u32,
    bytes: usize,
    streams: String,
}

/// Refuses an object that a later version of `orch` wrote.
pub(super) fn check_format(json: &[u8]) -> Result<(), ResultError> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
        #[serde(default)]
        orch: String,
    }
    let Version { format, orch } = serde_json::from_slice(json)?;
    if format > FORMAT {
        return Err(ResultError::Newer { format, orch });
    }
    Ok(())
}

impl TurnResult {
    /// Returns whether the turn has ended with success.
    pub fn has_succeeded(&self) -> bool {
        let ends = self
            .lines
            .iter()
            .rev()
            .filter_map(|line| match &line.event {
                Event::Ended(ended) => Some(&ended.outcome),
                _ => None,
            });
        ends.take(1)
            .any(|outcome| *outcome == OutcomeRecord::Succeeded)
    }

    /// Returns whether it has the end of the turn. Of a killed attempt, only its beginning is known.
    pub fn has_ended(&self) -> bool {
        let mut lines = self.lines.iter();
        lines.any(|line| matches!(line.event, Event::Ended(_)))
    }

    /// # Errors
    ///
    /// If a line cannot be written.
    pub fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let logs = self.logs.iter().map(|log| LogHead {
            attempt: log.attempt,
            bytes: log.output.len(),
            streams: log.streams.clone(),
        });
        let mut bytes = line(&ResultHead {
            format: FORMAT,
            orch: env!("CARGO_PKG_VERSION").to_owned(),
            run: self.run.clone(),
            turn: self.turn,
            lines: self.lines.clone(),
            logs: logs.collect(),
        })?;
        for log in &self.logs {
            bytes.extend(&log.output);
        }
        Ok(bytes)
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, ResultError> {
        let end = memchr::memchr(b'\n', bytes).ok_or(ResultError::Incomplete)?;
        let (head, mut rest) = (&bytes[..end], &bytes[end + 1..]);
        check_format(head)?;
        let head: ResultHead = serde_json::from_slice(head)?;
        let mut logs = Vec::new();
        for log in head.logs {
            let (output, after) = rest
                .split_at_checked(log.bytes)
                .ok_or(ResultError::Incomplete)?;
            rest = after;
            logs.push(AttemptLog {
                attempt: log.attempt,
                output: output.to_owned(),
                streams: log.streams,
            });
        }
        Ok(TurnResult {
            run: head.run,
            turn: head.turn,
            lines: head.lines,
            logs,
        })
    }

    /// Returns it without the logs, and without the answers of policies, which may come later.
    #[must_use]
    pub(super) fn without_logs(&self) -> Self {
        TurnResult {
            run: self.run.clone(),
            turn: self.turn,
            lines: self.lines.clone(),
            logs: Vec::new(),
        }
    }
}
