//! How long a command may take in a stack, and when it is tried again.
//!
//! Values and decisions only: the run loop keeps time, and whoever reads a command's output shows it
//! to an [`OutputWatch`].

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use regex::bytes::RegexSet;

use crate::event::{Failure, Stream};

/// What a stack allows its command.
#[derive(Debug, Clone, Default)]
pub struct Attempts {
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// When a failed attempt is followed by another.
    pub retry: Option<Arc<Retry>>,
}

/// When a failed attempt is followed by another.
#[derive(Debug, Clone)]
pub struct Retry {
    /// How many attempts there are in all.
    pub attempts: NonZeroU32,
    /// The time before the second attempt; it doubles with each further one, up to
    /// [`MAX_BACKOFF`].
    pub backoff: Duration,
    /// Exit statuses after which it is worth trying again.
    pub on_exit: Vec<i32>,
    /// What a line of output has if it is worth trying again.
    pub on_output: RegexSet,
}

/// The time before the second attempt where none is given.
pub const DEFAULT_BACKOFF: Duration = Duration::from_secs(10);

/// The longest time between two attempts, unless the first one is longer already.
pub const MAX_BACKOFF: Duration = Duration::from_mins(5);

impl Retry {
    /// Returns how long to wait before the next attempt, or `None` if there is none.
    ///
    /// Only a command that ended by itself is tried again: not one that was ended by a signal or
    /// took too long, since nobody knows what it left behind.
    pub fn wait(&self, attempt: u32, failure: &Failure, output_matches: bool) -> Option<Duration> {
        let Failure::Exited(status) = failure else {
            return None;
        };
        let is_worth_it = self.on_exit.contains(status) || output_matches;
        (attempt < self.attempts.get() && is_worth_it).then(|| {
            let factor = 2_u32.saturating_pow(attempt - 1);
            let longest = self.backoff.max(MAX_BACKOFF);
            self.backoff.saturating_mul(factor).min(longest)
        })
    }
}

/// Longest piece of a line that is looked at as one.
const LONGEST_LINE: usize = 64 << 10;

/// Looks for the patterns of a [`Retry`] in the lines of both streams, as they come.
#[derive(Debug)]
pub struct OutputWatch {
    retry: Arc<Retry>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    has_matched: bool,
}

impl OutputWatch {
    /// Returns what watches the output of one attempt, unless no pattern is given.
    pub fn new(attempts: &Attempts) -> Option<Self> {
        let retry = attempts.retry.as_ref()?;
        (!retry.on_output.is_empty()).then(|| OutputWatch {
            retry: retry.clone(),
            stdout: Vec::new(),
            stderr: Vec::new(),
            has_matched: false,
        })
    }

    /// Looks at the next bytes of a stream.
    pub fn output(&mut self, stream: Stream, mut bytes: &[u8]) {
        if self.has_matched {
            return;
        }
        let line = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let patterns = &self.retry.on_output;
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            line.extend_from_slice(&bytes[..end]);
            self.has_matched |= patterns.is_match(line);
            line.clear();
            bytes = &bytes[end + 1..];
        }
        line.extend_from_slice(bytes);
        if line.len() >= LONGEST_LINE {
            self.has_matched |= patterns.is_match(line);
            line.clear();
        }
    }

    /// Says whether a line had one of the patterns; to be asked when the output has ended.
    pub fn has_matched(&self) -> bool {
        let is_match = |line: &Vec<u8>| self.retry.on_output.is_match(line);
        self.has_matched || [&self.stdout, &self.stderr].into_iter().any(is_match)
    }
}

/// Understands a duration as people write it: `90s`, `1h 30m`.
///
/// # Errors
///
/// If it is not one; the text says what is wrong.
pub fn duration(text: &str) -> Result<Duration, String> {
    let bad = || "not a duration like `90s` or `1h 30m`".to_owned();
    let duration: jiff::SignedDuration = text.parse().map_err(|_| bad())?;
    Duration::try_from(duration).map_err(|_| bad())
}
