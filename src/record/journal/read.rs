//! Reads a journal, however the `orch` that wrote it ended.
//!
//! An incomplete last line is ignored. Any other line that cannot be parsed is an error: guessing that a stack had
//! not succeeded would run its command twice.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};

use serde::Deserialize;

use super::entry::{Event, Finished, JournalEntry};
use super::header::{FORMAT, Header};
use super::record::RunRecord;
use crate::folder::Unusable;

/// The longest journal that is read: that of a hundred thousand stacks has less than a tenth of it.
pub(super) const MAX_BYTES: u64 = 512 << 20;

/// The size of the part at the end that is searched first for the last line; it is enough if the run has finished.
const TAIL_BYTES: u64 = 4 << 10;

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error(transparent)]
    Unusable(#[from] Unusable),
    #[error("failed to read it: {0}")]
    Io(#[from] io::Error),
    #[error("it is longer than {} MiB", MAX_BYTES >> 20)]
    TooLong,
    #[error("it has no header")]
    NoHeader,
    #[error("it has format {format}, written by orch {orch}; this orch reads format {FORMAT}")]
    Newer { format: u32, orch: String },
    #[error("line {line} is damaged at column {}", error.column())]
    Damaged {
        line: usize,
        error: serde_json::Error,
    },
}

impl JournalError {
    pub(crate) fn is_missing(&self) -> bool {
        let JournalError::Unusable(Unusable::Io { error, .. }) = self else {
            return false;
        };
        error.kind() == io::ErrorKind::NotFound
    }
}

pub(super) fn read(file: File) -> Result<RunRecord, JournalError> {
    let mut lines = JournalLines::new(file)?;
    let mut record = RunRecord::new(lines.header()?);
    while let Some(entry) = lines.entry()? {
        record.add(entry);
    }
    Ok(record)
}

/// Reads the header, and all lines.
pub(super) fn read_lines(file: File) -> Result<(Header, Vec<JournalEntry>), JournalError> {
    let mut lines = JournalLines::new(file)?;
    let header = lines.header()?;
    let mut entries = Vec::new();
    while let Some(entry) = lines.entry()? {
        entries.push(entry);
    }
    Ok((header, entries))
}

/// Reads only the header, and the result if the last line has it.
pub(super) fn read_ends(file: File) -> Result<(Header, Option<Finished>), JournalError> {
    let mut lines = JournalLines::new(file)?;
    let header = lines.header()?;
    let begin = lines.input.stream_position()?;
    let file = lines.input.get_mut().get_mut();
    let end = file.metadata()?.len();
    file.seek(SeekFrom::Start(begin.max(end.saturating_sub(TAIL_BYTES))))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    let last = tail.trim_ascii_end().rsplit(|&byte| byte == b'\n').next();
    let entry: Option<JournalEntry> = last.and_then(|line| serde_json::from_slice(line).ok());
    Ok(match entry.map(|entry| entry.event) {
        Some(Event::Finished(finished)) => (header, Some(finished)),
        _ => (header, None),
    })
}

struct JournalLines {
    input: BufReader<io::Take<File>>,
    buffer: Vec<u8>,
    number: usize,
}

impl JournalLines {
    fn new(file: File) -> Result<Self, JournalError> {
        if file.metadata()?.len() > MAX_BYTES {
            return Err(JournalError::TooLong);
        }
        Ok(JournalLines {
            // It may be growing.
            input: BufReader::with_capacity(64 << 10, file.take(MAX_BYTES)),
            buffer: Vec::new(),
            number: 0,
        })
    }

    /// Reads the next line. Returns whether there is a complete one.
    fn next(&mut self) -> io::Result<bool> {
        self.buffer.clear();
        self.number += 1;
        self.input.read_until(b'\n', &mut self.buffer)?;
        Ok(self.buffer.last() == Some(&b'\n'))
    }

    fn header(&mut self) -> Result<Header, JournalError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
            #[serde(default)]
            orch: String,
        }
        if !self.next()? {
            return Err(JournalError::NoHeader);
        }
        let damaged = |error| JournalError::Damaged { line: 1, error };
        let Version { format, orch } = serde_json::from_slice(&self.buffer).map_err(damaged)?;
        if format > FORMAT {
            return Err(JournalError::Newer { format, orch });
        }
        serde_json::from_slice(&self.buffer).map_err(damaged)
    }

    /// Reads the next entry; `None` at the end, or if only a part of one was written.
    fn entry(&mut self) -> Result<Option<JournalEntry>, JournalError> {
        let is_whole = self.next()?;
        match serde_json::from_slice(&self.buffer) {
            Ok(entry) => Ok(Some(entry)),
            Err(_) if !is_whole => Ok(None),
            Err(error) => {
                let line = self.number;
                Err(JournalError::Damaged { line, error })
            }
        }
    }
}
