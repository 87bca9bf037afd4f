//! The output of a turn as one block, from its logs.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::{FoldingStyle, RunText, StreamWriters};
use crate::printable::printable;
use crate::record::logs::{LogReader, LogWriter, Logs};
use crate::report::size::bytes;
use crate::run::event::{Ending, Failure, Outcome, Turns};
use crate::run::turn::{Turn, TurnIndex};

/// How much of a failure's output is printed again at the end.
const LAST_LINES: usize = 200;
const LAST_BYTES: u64 = 64 << 10;

/// How much of the output of all failures.
const MOST_FAILURES: usize = 20;
const MOST_BYTES: u64 = 256 << 10;

/// The logs of a run, by turn.
pub struct RunLogs {
    logs: Logs,
    /// The location of the logs as seen from the project, and the id of the run, if they are kept.
    place: Option<(PathBuf, String)>,
}

impl RunLogs {
    /// Writes logs. `place` is their location as seen from the project, and the id of the run, if
    /// they are kept.
    pub fn new(logs: Logs, place: Option<(PathBuf, String)>) -> Self {
        RunLogs { logs, place }
    }

    pub fn writer(&self, index: TurnIndex, turn: &Turn, attempt: u32) -> LogWriter {
        self.logs
            .writer(index.get() + 1, turn.stack.as_str(), attempt)
    }

    /// Returns the id of the run, if its logs are kept.
    pub fn run(&self) -> Option<&str> {
        let (_, run) = self.place.as_ref()?;
        Some(run)
    }

    fn reader(
        &self,
        turns: &Turns,
        turn: TurnIndex,
        attempt: u32,
    ) -> io::Result<Option<LogReader>> {
        let stack = turns[turn].stack.as_str();
        self.logs.reader(turn.get() + 1, stack, attempt)
    }

    /// Returns the location of the last attempt's log, made printable, if it is kept.
    pub fn place(&self, turns: &Turns, ending: &Ending) -> Option<String> {
        let (directory, _) = self.place.as_ref()?;
        let stack = turns[ending.turn].stack.as_str();
        let position = ending.turn.get() + 1;
        let file = self.logs.file(position, stack, ending.attempts);
        if !file.exists() {
            return None;
        }
        let place = directory.join(file.file_name()?);
        Some(printable(&place.to_string_lossy()).into_owned())
    }

    /// Returns a line about the size of the left-out part of a log, and how to see it.
    fn left_out(&self, turns: &Turns, ending: &Ending, left_out: u64) -> String {
        let size = bytes(left_out);
        match (self.place(turns, ending), &self.place) {
            (Some(place), Some((_, run))) => {
                let path = &turns[ending.turn].stack;
                let path = crate::printable::command_line(&[path.as_str().into()]);
                format!(
                    "orch: {size} before this are in {place}, or: orch runs logs {run} {path}\n"
                )
            }
            _ => format!("orch: {size} before this are left out\n"),
        }
    }

    /// Returns a line about how to see the failures that are not repeated.
    fn not_again(&self, number: usize) -> String {
        let (failures, are, their) = match number {
            1 => ("failure", "is", "its log is"),
            _ => ("failures", "are", "their logs are"),
        };
        let place = self
            .place
            .as_ref()
            .map(|(directory, run)| {
                let place = directory.to_string_lossy();
                let place = printable(&place);
                format!("; {their} in {place}, or: orch runs logs {run} --failed")
            })
            .unwrap_or_default();
        format!("orch: {number} more {failures} {are} not shown again{place}\n")
    }
}

/// Prints the output of commands, one turn at a time.
pub struct Groups {
    folding: FoldingStyle,
    /// The number of sections that have had marks.
    n_parts: usize,
    /// Failures with output, and whether anything was printed after the last one.
    failures: Vec<Ending>,
    is_last: bool,
}

impl Groups {
    pub fn new(folding: FoldingStyle) -> Self {
        Groups {
            folding,
            n_parts: 0,
            failures: Vec::new(),
            is_last: false,
        }
    }

    /// Prints a turn that has ended: a title, and the output of all attempts. `failed` has the
    /// failures of all but the last attempt. Without `has_title`, prints only output.
    pub fn print(
        &mut self,
        ending: &Ending,
        failed: &[(Failure, Duration)],
        text: RunText,
        logs: &RunLogs,
        has_title: bool,
        writers: &mut StreamWriters,
    ) {
        let is_failure = matches!(ending.outcome, Outcome::Failed(_));
        let mut readers = Vec::new();
        let mut problem = None;
        for attempt in 1..=ending.attempts {
            match logs.reader(text.turns, ending.turn, attempt) {
                Ok(reader) => readers.push((attempt, reader)),
                Err(error) => problem = Some(error),
            }
        }
        let title = text.ended(ending);
        let is_silent = readers.iter().all(|(_, reader)| reader.is_none());
        let mut after = None;
        if is_silent {
            if has_title {
                writers.say(&format!("{title}\n"));
            }
        } else if has_title {
            after = Some(self.open(&title, is_failure, writers));
        }
        for (attempt, reader) in readers {
            if ending.attempts > 1 && !is_silent {
                writers.say(&match failed.get(attempt as usize - 1) {
                    Some((failure, elapsed)) => {
                        text.attempt_failed(ending.turn, attempt, failure, *elapsed)
                    }
                    None => text.last_attempt(ending.turn, attempt),
                });
            }
            if let Some(reader) = reader
                && let Err(error) = writers.log(reader)
            {
                problem = Some(error);
            }
        }
        if let Some(error) = problem {
            let path = text.path(ending.turn);
            writers.say(&format!("orch: {path}: its log cannot be read: {error}\n"));
        }
        if let Some(after) = after.filter(|after| !after.is_empty()) {
            writers.mark(&after);
        }
        self.is_last = is_failure && !is_silent;
        if self.is_last {
            self.failures.push(ending.clone());
        }
    }

    /// Records that something else was printed.
    pub fn interrupted(&mut self) {
        self.is_last = false;
    }

    /// Repeats the end of each failure's output, as far as there is room, unless there is only one
    /// and it was printed last. Interrupted turns are left out. Call it once, before the summary.
    pub fn print_failures(
        &mut self,
        text: RunText,
        logs: &RunLogs,
        interrupted: &HashSet<TurnIndex>,
        writers: &mut StreamWriters,
    ) {
        let mut failures = std::mem::take(&mut self.failures);
        let last = failures.last().map(|ending| ending.turn);
        failures.retain(|ending| !interrupted.contains(&ending.turn));
        let is_last = |ending: &Ending| self.is_last && Some(ending.turn) == last;
        if !matches!(&failures[..], [only] if is_last(only)) {
            let mut room = MOST_BYTES;
            for (index, ending) in failures.iter().enumerate() {
                if index == MOST_FAILURES || room < LAST_BYTES {
                    writers.say(&logs.not_again(failures.len() - index));
                    break;
                }
                let title = text.ended(ending);
                let after = self.open(&title, true, writers);
                match print_end(ending, text.turns, logs, writers) {
                    Ok(n_bytes) => room = room.saturating_sub(n_bytes),
                    Err(error) => {
                        let path = text.path(ending.turn);
                        writers.say(&format!("orch: {path}: its log cannot be read: {error}\n"));
                    }
                }
                if !after.is_empty() {
                    writers.mark(&after);
                }
            }
        }
        if self.n_parts > 0 {
            writers.mark(self.folding.after_all());
        }
    }

    /// Prints the title of a section, with marks if there are any. Returns the end of the section.
    fn open(&mut self, title: &str, is_open: bool, writers: &mut StreamWriters) -> String {
        if self.folding == FoldingStyle::None {
            writers.say(&format!("{title}\n"));
            return String::new();
        }
        self.n_parts += 1;
        let plain = anstream::adapter::strip_str(title).to_string();
        let (before, after) = self.folding.marks(&plain, is_open, self.n_parts);
        writers.mark(&before);
        after
    }
}

/// Prints the end of the last attempt's output. Returns the number of bytes, at most [`LAST_BYTES`].
fn print_end(
    ending: &Ending,
    turns: &Turns,
    logs: &RunLogs,
    writers: &mut StreamWriters,
) -> io::Result<u64> {
    let Some(mut log) = logs.reader(turns, ending.turn, ending.attempts)? else {
        return Ok(0);
    };
    let start = log.tail(LAST_LINES, LAST_BYTES)?;
    if start > 0 {
        writers.say(&logs.left_out(turns, ending, start));
        log.skip_to(start)?;
    }
    writers.log(log)
}
