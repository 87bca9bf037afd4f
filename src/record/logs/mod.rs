//! The output of commands, on disk.
//!
//! Each attempt in a stack has a file that holds both streams in order, for people to read and search. After the
//! first output on stderr, an index beside it has a line for each change of the stream (`1234 stderr`: from byte 1234
//! on), so that the two can be distinguished. Each line is written before the bytes that it is about, so a log whose
//! writer was killed reads back like any other. An attempt that printed nothing has no files.
//!
//! The name of a file follows from the place of the stack in its run, its path and the attempt, so nothing else is
//! needed to find it.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

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

/// The longest line of an index: twenty digits, a space and a word.
const LONGEST_ENTRY: u64 = 32;

/// The output of an attempt, in order.
///
/// If its index is damaged, the rest counts as stdout.
pub struct LogReader {
    log: File,
    index: Option<BufReader<File>>,
    stream: Stream,
    offset: u64,
    length: u64,
    /// The start and the stream of the next entry of the index.
    next: Option<(u64, Stream)>,
}

impl LogReader {
    /// Opens a log. Later output is not read.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        let Some(log) = open(path)? else {
            return Ok(None);
        };
        // The length is read first: the index then covers all bytes up to it.
        let length = log.metadata()?.len();
        let index = open(&index_of(path))?.map(BufReader::new);
        let mut reader = LogReader {
            log,
            index,
            stream: Stream::Stdout,
            offset: 0,
            length,
            next: None,
        };
        reader.advance()?;
        Ok(Some(reader))
    }

    pub fn skip_to(&mut self, offset: u64) -> io::Result<()> {
        self.offset = offset.min(self.length);
        self.log.seek(SeekFrom::Start(self.offset))?;
        self.catch_up()
    }

    /// Reads the next bytes, all of one stream. Returns the stream and how many there are, or `None`
    /// at the end.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<(Stream, usize)>> {
        self.catch_up()?;
        let end = self
            .next
            .map_or(self.length, |(start, _)| start.min(self.length));
        let left = usize::try_from(end - self.offset).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        loop {
            match self.log.read(&mut buffer[..wanted]) {
                Ok(0) => return Ok(None), // also where somebody has cut it short
                Ok(length) => {
                    self.offset += length as u64;
                    return Ok(Some((self.stream, length)));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the start of the last lines: at most this many lines, and at most this many bytes before the end. If
    /// not even one line fits, it is within that line, at a character boundary.
    pub fn tail(&mut self, lines: usize, bytes: u64) -> io::Result<u64> {
        let start = self.length.saturating_sub(bytes);
        let mut last = Vec::new();
        self.log.seek(SeekFrom::Start(start))?;
        (&self.log)
            .take(self.length - start)
            .read_to_end(&mut last)?;
        self.log.seek(SeekFrom::Start(self.offset))?;
        // The end of the last line does not begin another one.
        let text = last.strip_suffix(b"\n").unwrap_or(&last);
        let mut ends = memchr::memrchr_iter(b'\n', text);
        let begin = match ends.nth(lines - 1) {
            Some(end) => end + 1,
            None if start == 0 => 0,
            None => match memchr::memchr(b'\n', text) {
                Some(end) => end + 1,
                None => last
                    .iter()
                    .take(4)
                    .take_while(|&&byte| byte & 0xc0 == 0x80)
                    .count(),
            },
        };
        Ok(start + begin as u64)
    }

    /// Applies the entries of the index up to the current offset.
    fn catch_up(&mut self) -> io::Result<()> {
        while let Some((start, stream)) = self.next
            && start <= self.offset
        {
            self.stream = stream;
            self.advance()?;
            if self.next.is_some_and(|(next, _)| next < start) {
                self.damaged();
            }
        }
        Ok(())
    }

    /// Reads the next entry of the index.
    fn advance(&mut self) -> io::Result<()> {
        self.next = None;
        let Some(index) = &mut self.index else {
            return Ok(());
        };
        let mut line = Vec::new();
        index.take(LONGEST_ENTRY).read_until(b'\n', &mut line)?;
        // An incomplete last line is about bytes that were never written.
        if !line.ends_with(b"\n") && (line.len() as u64) < LONGEST_ENTRY {
            self.index = None;
            return Ok(());
        }
        let entry = str::from_utf8(&line).ok().and_then(|line| {
            let (start, stream) = line.strip_suffix('\n')?.split_once(' ')?;
            let stream = match stream {
                "stdout" => Stream::Stdout,
                "stderr" => Stream::Stderr,
                _ => return None,
            };
            Some((start.parse().ok()?, stream))
        });
        match entry {
            Some(entry) => self.next = Some(entry),
            None => self.damaged(),
        }
        Ok(())
    }

    fn damaged(&mut self) {
        self.index = None;
        self.next = Some((self.offset, Stream::Stdout));
    }
}

/// Opens a file, if it exists and is regular. There may be a link to anywhere, or a pipe without a writer.
fn open(path: &Path) -> io::Result<Option<File>> {
    let check = |metadata: &Metadata| {
        if metadata.is_file() {
            Ok(())
        } else {
            Err(io::Error::other("it is not a regular file"))
        }
    };
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    let open = || -> io::Result<File> {
        check(&path.symlink_metadata()?)?;
        let file = options.open(path)?;
        // It may have been put there since.
        check(&file.metadata()?)?;
        Ok(file)
    };
    match open() {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub struct LogWriter {
    path: PathBuf,
    log: Option<File>,
    index: Option<File>,
    stream: Stream,
    length: u64,
}

impl LogWriter {
    pub(super) fn new(path: PathBuf) -> Self {
        LogWriter {
            path,
            log: None,
            index: None,
            stream: Stream::Stdout,
            length: 0,
        }
    }

    /// Returns the writer that appends to the log of another writer, which may not exist yet.
    pub fn resume(path: PathBuf) -> io::Result<Self> {
        let mut writer = LogWriter::new(path);
        let append = |path: &Path| match OpenOptions::new().append(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        };
        writer.log = append(&writer.path)?;
        if let Some(log) = &writer.log {
            writer.length = log.metadata()?.len();
        }
        let index = index_of(&writer.path);
        writer.index = append(&index)?;
        if writer.index.is_some() {
            let changes = std::fs::read_to_string(&index)?;
            if changes
                .lines()
                .last()
                .is_some_and(|it| it.ends_with("stderr"))
            {
                writer.stream = Stream::Stderr;
            }
        }
        Ok(writer)
    }

    /// Returns the file, which need not exist.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the next bytes of a stream. Nothing is held back.
    ///
    /// If they cannot be written, or only in part. The log must not be written to after that.
    pub fn write(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if stream != self.stream {
            let index = match &mut self.index {
                Some(index) => index,
                none => none.insert(create(&index_of(&self.path))?),
            };
            let name = match stream {
                Stream::Stdout => "stdout",
                Stream::Stderr => "stderr",
            };
            // One call, so that a line is written as a whole.
            index.write_all(format!("{} {name}\n", self.length).as_bytes())?;
            self.stream = stream;
        }
        let log = match &mut self.log {
            Some(log) => log,
            none => none.insert(create(&self.path)?),
        };
        log.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// Creates a file that only its owner can read, and its directory. Anything that exists, a link
/// included, is left alone.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match (options.open(path), path.parent()) {
        (Err(error), Some(directory)) if error.kind() == io::ErrorKind::NotFound => {
            let mut builder = DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(directory)?;
            options.open(path)
        }
        (opened, _) => opened,
    }
}

#[cfg(test)]
mod tests;
