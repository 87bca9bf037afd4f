//! Writes the log of an attempt.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Stream, index_of};

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
