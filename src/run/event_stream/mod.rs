//! `--events`: the lines of a run's journal, for other programs that follow the run.
//!
//! A thread writes them, so that a slow or absent reader does not block the run.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use serde::Serialize;

#[cfg(not(unix))]
use self::other as platform;
#[cfg(unix)]
use self::unix as platform;
use crate::record::journal::line;

/// Where the lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A file, which is replaced if it exists.
    File(PathBuf),
    /// A descriptor that `orch` was started with.
    Descriptor(u32),
}

/// Opens the file or pipe behind a descriptor that `orch` was started with. Fails if it is not
/// open, or cannot be written to.
pub fn open_descriptor(number: u32) -> io::Result<File> {
    platform::open_descriptor(number)
}

impl Destination {
    /// Parses the argument of the user: `FILE` or `fd:N`. Fails if the text after `fd:` is not a
    /// number. Other commands take `-` for stdout, so it is not a file.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("fd:") {
            None if text.is_empty() => Err("the file name is empty".to_owned()),
            None if text == "-" => Err("write `fd:1` for stdout, or `./-` for a file".to_owned()),
            None => Ok(Destination::File(text.into())),
            Some(number) => match number.parse() {
                Ok(number) => Ok(Destination::Descriptor(number)),
                Err(_) => Err("N in `fd:N` is the number of a descriptor".to_owned()),
            },
        }
    }
}

/// Writes lines, each as soon as its event has happened.
#[derive(Debug)]
pub struct EventStream {
    /// `None` once a line could not be written.
    lines: Option<mpsc::Sender<Vec<u8>>>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl EventStream {
    /// Begins to write to an open file. Fails if no thread can be started.
    pub fn new(file: File) -> io::Result<Self> {
        Self::to(move || Ok(file))
    }

    /// Replaces a file as soon as there is a line: a run that does not begin leaves it alone. Fails
    /// if no thread can be started.
    pub fn replace(file: PathBuf) -> io::Result<Self> {
        Self::to(move || emptied(&file))
    }

    fn to(open: impl FnOnce() -> io::Result<File> + Send + 'static) -> io::Result<Self> {
        let (sender, lines) = mpsc::channel();
        let writer = thread::Builder::new().spawn(move || write(open, &lines))?;
        Ok(EventStream {
            lines: Some(sender),
            writer: Some(writer),
        })
    }

    /// Writes a line of the journal. Fails if an earlier line could not be written. It fails only
    /// once; later lines are dropped.
    pub fn write(&mut self, entry: &impl Serialize) -> io::Result<()> {
        let Some(lines) = &self.lines else {
            return Ok(());
        };
        if lines.send(line(entry)?).is_ok() {
            return Ok(());
        }
        self.end()
    }

    /// Waits until everything is written. Fails if a line could not be written, unless
    /// [`EventStream::write`] has already failed because of it.
    pub fn end(&mut self) -> io::Result<()> {
        self.lines = None;
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        writer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Opens a file at its end, and empties it unless it is a pipe or a device.
fn emptied(file: &Path) -> io::Result<File> {
    let file = File::options().append(true).create(true).open(file)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

fn write(
    open: impl FnOnce() -> io::Result<File>,
    lines: &mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    let Ok(first) = lines.recv() else {
        return Ok(());
    };
    let mut file = open()?;
    file.write_all(&first)?;
    // One call for each line, so that no reader gets a part of one.
    lines.iter().try_for_each(|line| file.write_all(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_a_file_or_a_descriptor() {
        let file = |name: &str| Ok(Destination::File(name.into()));
        assert_eq!(Destination::parse("events.jsonl"), file("events.jsonl"));
        assert_eq!(Destination::parse("./fd:3"), file("./fd:3"));
        assert_eq!(Destination::parse("fd:3"), Ok(Destination::Descriptor(3)));
        for bad in ["", "fd:", "fd:x", "fd:-1"] {
            assert!(Destination::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_failure_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "").unwrap();
        // A file that is open only for reading accepts no lines.
        let mut stream = EventStream::new(File::open(&path).unwrap()).unwrap();
        let told = (0..).find_map(|line| stream.write(&line).err());
        assert!(told.is_some());
        stream.write(&0).unwrap();
        stream.end().unwrap();
    }
}
