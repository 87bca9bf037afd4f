//! The output of commands, on disk.
//!
//! Each attempt in a stack has a file that holds both streams in order, for people to read and search. After the
//! first output on stderr, an index beside it has a line for each change of the stream (`1234 stderr`: from byte 1234
//! on), so that the two can be distinguished. Each line is written before the bytes that it is about, so a log whose
//! writer was killed reads back like any other. An attempt that printed nothing has no files.
//!
//! The name of a file follows from the place of the stack in its run, its path and the attempt, so nothing else is
//! needed to find it.

mod reader;
mod writer;

use std::io;
use std::path::{Path, PathBuf};

pub use self::reader::LogReader;
pub use self::writer::LogWriter;
use crate::path::KeyFilter;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

#[derive(Debug, Clone)]
pub struct Logs {
    directory: PathBuf,
    /// The directories with the logs of later turns, each with the number of turns before these.
    later: Vec<(usize, PathBuf)>,
}

impl Logs {
    pub fn new(directory: PathBuf) -> Self {
        Logs {
            directory,
            later: Vec::new(),
        }
    }

    /// Adds a directory with the logs of all turns after so many: of a run that continues this one.
    #[must_use]
    pub fn continued(mut self, n_turns: usize, directory: PathBuf) -> Self {
        self.later.push((n_turns, directory));
        self
    }

    /// Returns the file of an attempt, which need not exist: one that printed nothing has none.
    /// `position` is the place of the stack in the order of its run, from 1; `stack` is its path;
    /// attempts count from 1.
    pub fn file(&self, position: usize, stack: &str, attempt: u32) -> PathBuf {
        let mut later = self.later.iter().rev();
        let later = later.find(|(n_turns, _)| *n_turns < position);
        let (before, directory) = later.map_or((0, &self.directory), |(n, it)| (*n, it));
        directory.join(file_name(position - before, stack, attempt))
    }

    /// Returns the index beside a file of a log, which need not exist: without one, all is stdout.
    pub fn index(log: &Path) -> PathBuf {
        index_of(log)
    }

    /// Returns the output of an attempt and the index of its streams, or `None` if it printed nothing.
    pub fn content(
        &self,
        position: usize,
        stack: &str,
        attempt: u32,
    ) -> io::Result<Option<(Vec<u8>, String)>> {
        let file = self.file(position, stack, attempt);
        let read = |file: &Path| match std::fs::read(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        };
        let Some(output) = read(&file)? else {
            return Ok(None);
        };
        let index = read(&index_of(&file))?.unwrap_or_default();
        Ok(Some((output, String::from_utf8_lossy(&index).into_owned())))
    }

    pub fn writer(&self, position: usize, stack: &str, attempt: u32) -> LogWriter {
        LogWriter::new(self.file(position, stack, attempt))
    }

    /// Returns the output of an attempt so far, or `None` if it printed nothing.
    pub fn reader(
        &self,
        position: usize,
        stack: &str,
        attempt: u32,
    ) -> io::Result<Option<LogReader>> {
        LogReader::open(&self.file(position, stack, attempt))
    }
}

/// The maximum length of the stack in a file name, in bytes. It is for people; the number before it makes the name
/// unique.
const LONGEST_NAME: usize = 100;

/// Returns the name of the log of an attempt: `0007-prod-network.log`, `0007-prod-network.2.log`; for an
/// instance, `0007-prod-network-eu.log`.
fn file_name(position: usize, stack: &str, attempt: u32) -> String {
    let safe = |character: char| match character {
        'A'..='Z' | 'a'..='z' | '0'..='9' | '.' | '_' | '-' => character,
        _ => '-',
    };
    let shown = match KeyFilter::split(stack.trim_start_matches('/')) {
        (directory, Some(KeyFilter::One(key))) => format!("{directory}-{key}"),
        _ => stack.trim_start_matches('/').to_owned(),
    };
    let path: String = shown.chars().take(LONGEST_NAME).map(safe).collect();
    let path = if path.is_empty() { "root" } else { &path };
    match attempt {
        1 => format!("{position:04}-{path}.log"),
        attempt => format!("{position:04}-{path}.{attempt}.log"),
    }
}

fn index_of(log: &Path) -> PathBuf {
    log.with_added_extension("streams")
}

#[cfg(test)]
mod tests;
