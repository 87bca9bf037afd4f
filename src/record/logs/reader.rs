//! Reads the log of an attempt.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::{Stream, index_of};

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
