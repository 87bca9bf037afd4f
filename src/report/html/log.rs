//! The logs of a run, in script elements of their own.

use std::io::{self, Write};

use super::script_text::{write_bytes, write_json, write_replacement};
use crate::record::journal::AttemptRecord;
use crate::record::logs::{LogReader, Logs, Stream};
use crate::report::runs::{ShownRun, ShownStack};

/// How many bytes of a log the page contains; of a longer log, it has the beginning and the end.
/// Browsers are slow with larger pages, or do not open them at all.
const LONGEST: u64 = 32 << 20;

/// How many bytes of all logs together the page contains.
const LONGEST_TOGETHER: u64 = 256 << 20;

pub(super) struct LogFile<'a> {
    pub(super) stack: usize,
    /// The position of the attempt among those of the stack.
    pub(super) nth: usize,
    pub(super) length: u64,
    shown: ShownStack<'a>,
    attempt: &'a AttemptRecord,
}

impl LogFile<'_> {
    pub(super) fn id(&self) -> String {
        format!("log-{}-{}", self.stack, self.nth)
    }
}

pub(super) fn find<'a>(run: &'a ShownRun, logs: &Logs) -> Vec<LogFile<'a>> {
    let mut found = Vec::new();
    for (stack, shown) in run.stacks().enumerate() {
        for (nth, attempt) in shown.record.attempts.iter().enumerate() {
            // The log of a further turn has the position of that turn, which is not recorded.
            let file = match attempt.turn {
                None => shown.log_file(logs, attempt),
                Some(_) => None,
            };
            let length = file.and_then(|file| file.symlink_metadata().ok());
            found.extend(length.map(|file| LogFile {
                stack,
                nth,
                length: file.len(),
                shown,
                attempt,
            }));
        }
    }
    found
}

/// Writes an element for each log.
pub(super) fn write(out: &mut impl Write, files: &[LogFile<'_>], logs: &Logs) -> io::Result<()> {
    let kept = fair_share(files.iter().map(|file| file.length).collect());
    let mut buffer = vec![0; 64 << 10];
    for file in files {
        let id = file.id();
        write!(out, "\n<script type=\"application/json\" id=\"{id}\">{{")?;
        let problem = match file.shown.log(logs, file.attempt) {
            Ok(Some(mut log)) => write_log(out, &mut log, file.length, kept, &mut buffer)?,
            // It existed a moment ago.
            opened => {
                write!(out, "\"sections\":[]")?;
                opened.err()
            }
        };
        if let Some(problem) = problem {
            write!(out, ",\"problem\":")?;
            write_json(out, &problem.to_string())?;
        }
        write!(out, "}}</script>")?;
    }
    Ok(())
}

/// Returns the limit for each log that keeps all logs together within theirs.
fn fair_share(mut lengths: Vec<u64>) -> u64 {
    lengths.sort_unstable();
    let mut left = LONGEST_TOGETHER;
    let mut others = lengths.len() as u64;
    for length in lengths {
        let share = left / others;
        if length > share {
            return share.min(LONGEST);
        }
        left -= length;
        others -= 1;
    }
    LONGEST
}

/// Writes the sections of a log: all of it, or its beginning and its end. Returns the error if it
/// is not readable to its end.
fn write_log(
    out: &mut impl Write,
    log: &mut LogReader,
    length: u64,
    kept: u64,
    buffer: &mut [u8],
) -> io::Result<Option<io::Error>> {
    write!(out, "\"sections\":[")?;
    let mut problem = None;
    if length <= kept {
        // It may have grown since.
        problem = write_section(out, log, length, buffer)?;
    } else {
        let half = kept / 2;
        problem = problem.or(write_section(out, log, half, buffer)?);
        write!(out, ",")?;
        problem = problem.or(log.skip_to(length - half).err());
        problem = problem.or(write_section(out, log, half, buffer)?);
    }
    write!(out, "]")?;
    if length > kept {
        write!(out, ",\"omitted\":{}", length - kept / 2 * 2)?;
    }
    Ok(problem)
}

/// Writes the next bytes as an array of strings that alternate between stdout and stderr.
fn write_section(
    out: &mut impl Write,
    log: &mut LogReader,
    length: u64,
    buffer: &mut [u8],
) -> io::Result<Option<io::Error>> {
    let (mut stream, mut left, mut held) = (Stream::Stdout, length, 0_usize);
    let mut problem = None;
    write!(out, "[\"")?;
    while left > 0 {
        let room = usize::try_from(left).unwrap_or(usize::MAX);
        let end = buffer.len().min(held.saturating_add(room));
        let (from, read) = match log.read(&mut buffer[held..end]) {
            Ok(None) => break,
            Ok(Some((from, read))) => (from, read),
            Err(error) => {
                problem = Some(error);
                break;
            }
        };
        left -= read as u64;
        let end = held + read;
        let mut begin = 0;
        if from != stream {
            if held > 0 {
                write_replacement(out)?;
                begin = held;
            }
            write!(out, "\",\"")?;
            stream = from;
        }
        held = write_bytes(out, &buffer[begin..end])?;
        buffer.copy_within(end - held..end, 0);
    }
    if held > 0 {
        write_replacement(out)?;
    }
    write!(out, "\"]")?;
    Ok(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_logs_leave_room_to_long_ones() {
        assert_eq!(fair_share(vec![]), LONGEST);
        assert_eq!(fair_share(vec![u64::MAX]), LONGEST);
        assert_eq!(fair_share(vec![1; 1000]), LONGEST);
        let share = fair_share([vec![0; 500], vec![1 << 40; 32]].concat());
        assert_eq!(share, LONGEST_TOGETHER / 32);
    }
}
