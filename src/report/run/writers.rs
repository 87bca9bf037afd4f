//! The two streams for all output, which may lead to the same place.

use std::io::{self, Write};

use super::terminal::Filter;
use crate::record::logs::{LogReader, Stream};

/// How much of a log is printed at once.
const BUFFER: usize = 128 << 10;

/// The streams for commands' output and messages of `orch`.
///
/// Everything is flushed at once, so that the order is right if both streams lead to one file. A
/// broken stream is not written to again: a reader that exits must not stop a run.
pub struct StreamWriters {
    stdout: StreamWriter,
    stderr: StreamWriter,
    has_colours: bool,
    n_writes: u64,
    room: Vec<u8>,
}

pub struct StreamWriter {
    to: Box<dyn Write + Send>,
    filter: Filter,
    is_at_line_start: bool,
    is_broken: bool,
    /// The error, until it is reported.
    problem: Option<io::Error>,
}

impl StreamWriter {
    pub fn new(to: impl Write + Send + 'static, filter: Filter) -> Self {
        StreamWriter {
            to: Box::new(to),
            filter,
            is_at_line_start: true,
            is_broken: false,
            problem: None,
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else {
            return;
        };
        if self.is_broken {
            return;
        }
        self.is_at_line_start = *last == b'\n';
        if let Err(error) = self.to.write_all(bytes).and_then(|()| self.to.flush()) {
            self.is_broken = true;
            self.problem = Some(error);
        }
    }

    fn end_text(&mut self) {
        let end = self.filter.end();
        let was_at_line_start = self.is_at_line_start;
        self.write(&end);
        self.is_at_line_start = was_at_line_start;
    }

    fn end_line(&mut self) {
        if !self.is_at_line_start {
            self.write(b"\n");
        }
    }
}

impl StreamWriters {
    /// Writes to these streams. `has_colours` says whether messages of `orch` may have colours.
    pub fn new(stdout: StreamWriter, stderr: StreamWriter, has_colours: bool) -> Self {
        StreamWriters {
            stdout,
            stderr,
            has_colours,
            n_writes: 0,
            room: Vec::new(),
        }
    }

    /// Returns the number of writes, which shows whether anything was written in between.
    pub fn n_writes(&self) -> u64 {
        self.n_writes
    }

    /// Returns the filter of a stream, to be used elsewhere for [`StreamWriters::lines`].
    pub fn filter(&self, stream: Stream) -> Filter {
        match stream {
            Stream::Stdout => self.stdout.filter.fresh(),
            Stream::Stderr => self.stderr.filter.fresh(),
        }
    }

    fn writer(&mut self, stream: Stream) -> &mut StreamWriter {
        self.n_writes += 1;
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    /// Prints the next bytes of a command's output, filtered.
    pub fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let mut room = std::mem::take(&mut self.room);
        let writer = self.writer(stream);
        let mut filter = std::mem::replace(&mut writer.filter, Filter::Untouched);
        writer.write(filter.clean(bytes, &mut room));
        writer.filter = filter;
        self.room = room;
    }

    /// Prints the rest of a log, filtered. Returns the number of bytes that were left.
    pub fn log(&mut self, mut log: LogReader) -> io::Result<u64> {
        let mut buffer = vec![0; BUFFER];
        let mut n_bytes = 0;
        while let Some((stream, length)) = log.read(&mut buffer)? {
            self.output(stream, &buffer[..length]);
            n_bytes += length as u64;
        }
        Ok(n_bytes)
    }

    /// Prints lines that were cleaned before.
    pub fn lines(&mut self, stream: Stream, lines: &[u8]) {
        self.writer(stream).write(lines);
    }

    /// Ends the output of a command: the next output begins a line.
    pub fn end_output(&mut self) {
        for writer in [&mut self.stdout, &mut self.stderr] {
            writer.end_text();
            writer.end_line();
        }
    }

    /// Ends the output of a command without adding a byte to it, except on a terminal, where the
    /// next output begins a line.
    pub fn end_text(&mut self) {
        for writer in [&mut self.stdout, &mut self.stderr] {
            writer.end_text();
            if writer.filter.is_for_terminal() {
                writer.end_line();
            }
        }
    }

    /// Writes messages of `orch` to stderr, with colours if they are wanted.
    pub fn say(&mut self, text: &str) {
        if self.has_colours {
            self.mark(text);
        } else {
            self.mark(&anstream::adapter::strip_str(text).to_string());
        }
    }

    /// Writes lines for machines to stderr, unchanged.
    pub fn mark(&mut self, text: &str) {
        self.end_output();
        self.writer(Stream::Stderr).write(text.as_bytes());
    }

    /// Returns why a stream cannot be written to; only once.
    pub fn take_problem(&mut self) -> Option<io::Error> {
        let of_stdout = self.stdout.problem.take();
        of_stdout.or_else(|| self.stderr.problem.take())
    }

    /// Reports on stderr, once, that stdout cannot be written to, unless it was merely closed by its
    /// reader.
    pub fn report_problem(&mut self) {
        if let Some(error) = self.stdout.problem.take()
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.say(&format!(
                "orch: cannot write to stdout: {error}; the run continues\n"
            ));
        }
    }
}
