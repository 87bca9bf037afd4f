//! Writes the output of one attempt to its log and, if requested, line by line to stdout and
//! stderr.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use orch::record::logs::{LogWriter, Stream};
use orch::report::{Filter, PrefixedLines, StreamWriters};
use orch::run::execute::Recorder;

pub(super) struct AttemptRecorder {
    log: LogWriter,
    /// Why the log is incomplete.
    problem: Option<io::Error>,
    prefixed: Option<Prefixed>,
}

struct Prefixed {
    writers: Arc<Mutex<StreamWriters>>,
    stdout: (Filter, PrefixedLines),
    stderr: (Filter, PrefixedLines),
    /// A reused buffer.
    room: Vec<u8>,
    lines: Vec<u8>,
}

impl AttemptRecorder {
    /// Writes to a log. `prefixed` is the prefix of lines, and the streams to print them to.
    pub(super) fn new(
        log: LogWriter,
        prefixed: Option<(String, Arc<Mutex<StreamWriters>>)>,
    ) -> Self {
        AttemptRecorder {
            log,
            problem: None,
            prefixed: prefixed.map(|(prefix, writers)| Prefixed::new(&prefix, writers)),
        }
    }
}

impl Recorder for AttemptRecorder {
    fn log(&self) -> &Path {
        self.log.path()
    }

    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if self.problem.is_none() {
            self.problem = self.log.write(stream, bytes).err();
        }
        // The output can be shown even if the disk is full.
        if let Some(prefixed) = &mut self.prefixed {
            prefixed.output(stream, bytes);
        }
    }

    fn end(&mut self) -> io::Result<()> {
        if let Some(prefixed) = &mut self.prefixed {
            prefixed.end();
        }
        self.problem.take().map_or(Ok(()), Err)
    }
}

impl Prefixed {
    fn new(prefix: &str, writers: Arc<Mutex<StreamWriters>>) -> Self {
        let filtered = |stream| {
            let writers = writers.lock().unwrap_or_else(PoisonError::into_inner);
            let filter = writers.filter(stream);
            let lines = PrefixedLines::new(format!("{prefix} | "), filter.is_for_terminal());
            (filter, lines)
        };
        Prefixed {
            stdout: filtered(Stream::Stdout),
            stderr: filtered(Stream::Stderr),
            writers,
            room: Vec::new(),
            lines: Vec::new(),
        }
    }

    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let (filter, lines) = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        lines.add(filter.clean(bytes, &mut self.room), &mut self.lines);
        self.print(stream);
    }

    fn end(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let (filter, lines) = match stream {
                Stream::Stdout => &mut self.stdout,
                Stream::Stderr => &mut self.stderr,
            };
            lines.add(&filter.end(), &mut self.lines);
            lines.end(&mut self.lines);
            self.print(stream);
        }
    }

    fn print(&mut self, stream: Stream) {
        if !self.lines.is_empty() {
            let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
            writers.lines(stream, &self.lines);
            self.lines.clear();
        }
    }
}
