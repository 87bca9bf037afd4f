//! Whether and when a failed command is retried.
//!
//! Decisions only: the run loop keeps time, and the reader of a command's output passes it to an [`OutputWatch`].

use std::sync::Arc;
use std::time::Duration;

use anstream::adapter::StripBytes;
use regex::bytes::RegexSet;

use crate::project::attempt::{Attempts, MAX_BACKOFF, Retry};
use crate::record::logs::Stream;
use crate::run::event::Failure;

/// Returns how long to wait before the next attempt, or `None` if there is none.
///
/// Only commands that ended by themselves are retried: the effect of one that was signalled or timed out is unknown.
pub(super) fn wait(
    retry: &Retry,
    attempt: u32,
    failure: &Failure,
    output_matches: bool,
) -> Option<Duration> {
    let Failure::Exited(status) = failure else {
        return None;
    };
    let is_worth_it = retry.on_exit.contains(status) || output_matches;
    (attempt < retry.attempts.get() && is_worth_it).then(|| {
        let factor = 2_u32.saturating_pow(attempt - 1);
        let longest = retry.backoff.max(MAX_BACKOFF);
        retry.backoff.saturating_mul(factor).min(longest)
    })
}
/// A longer line is matched in pieces.
const LONGEST_LINE: usize = 64 << 10;

/// How much each further piece of a line repeats of the one before, so that a match across the border is
/// found unless it is longer.
const OVERLAP: usize = 4 << 10;

/// Matches the patterns of a [`Retry`] against the lines of both streams, as they come, without colours
/// and other escape sequences.
pub(super) struct OutputWatch {
    retry: Arc<Retry>,
    stdout: Line,
    stderr: Line,
    has_matched: bool,
}

/// The line that a stream is in, or the latest piece of it.
#[derive(Debug, Default)]
struct Line {
    text: Vec<u8>,
    /// Knows whether the next bytes belong to an escape sequence; none continues in the next line.
    strip: StripBytes,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        for text in self.strip.strip_next(bytes) {
            self.text.extend_from_slice(text);
        }
    }

    /// Returns whether it matches one of the patterns. `$` matches before the end of a Windows line, too.
    fn matches(&self, patterns: &RegexSet) -> bool {
        let text = &self.text;
        patterns.is_match(text.strip_suffix(b"\r").unwrap_or(text))
    }

    /// Makes room for the next line.
    fn end(&mut self) {
        self.text.clear();
        self.strip = StripBytes::default();
    }
}

impl OutputWatch {
    /// Returns the watch for the output of one attempt, unless no pattern is given.
    pub(super) fn new(attempts: &Attempts) -> Option<Self> {
        let retry = attempts.retry.as_ref()?;
        (!retry.on_output.is_empty()).then(|| OutputWatch {
            retry: retry.clone(),
            stdout: Line::default(),
            stderr: Line::default(),
            has_matched: false,
        })
    }

    /// Looks at the next bytes of a stream.
    pub(super) fn output(&mut self, stream: Stream, mut bytes: &[u8]) {
        if self.has_matched {
            return;
        }
        let line = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let patterns = &self.retry.on_output;
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            line.push(&bytes[..end]);
            self.has_matched |= line.matches(patterns);
            line.end();
            bytes = &bytes[end + 1..];
        }
        line.push(bytes);
        if line.text.len() >= LONGEST_LINE {
            self.has_matched |= line.matches(patterns);
            line.text.drain(..line.text.len() - OVERLAP);
        }
    }

    /// Returns whether a line matched one of the patterns; to be called once the output has ended.
    pub(super) fn has_matched(&self) -> bool {
        let patterns = &self.retry.on_output;
        self.has_matched || self.stdout.matches(patterns) || self.stderr.matches(patterns)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::project::attempt::{DEFAULT_BACKOFF, patterns};

    fn retry(attempts: u32, on_exit: &[i32], on_output: &[&str]) -> Retry {
        Retry {
            attempts: NonZeroU32::new(attempts).unwrap(),
            backoff: DEFAULT_BACKOFF,
            on_exit: on_exit.to_vec(),
            on_output: patterns(on_output).unwrap(),
        }
    }

    #[test]
    fn only_a_command_that_ended_by_itself_is_tried_again() {
        let retry = retry(3, &[7], &[]);
        let wait = |failure| super::wait(&retry, 1, &failure, true);
        assert!(wait(Failure::Exited(1)).is_some());
        assert_eq!(wait(Failure::Signalled(9)), None);
        assert_eq!(wait(Failure::TimedOut(Duration::ZERO)), None);
        assert_eq!(wait(Failure::RunTimedOut(Duration::ZERO)), None);
        assert_eq!(wait(Failure::NotStarted(String::new())), None);
        assert_eq!(wait(Failure::Lost(String::new())), None);
    }

    #[test]
    fn either_condition_is_enough_and_attempts_are_counted() {
        let retry = retry(3, &[7], &[]);
        assert_eq!(wait(&retry, 1, &Failure::Exited(6), false), None);
        assert!(wait(&retry, 1, &Failure::Exited(7), false).is_some());
        assert!(wait(&retry, 2, &Failure::Exited(6), true).is_some());
        assert_eq!(wait(&retry, 3, &Failure::Exited(7), true), None);
    }

    #[test]
    fn waits_double_up_to_a_longest_one() {
        let mut retry = retry(100, &[1], &[]);
        let waits = |retry: &Retry| -> Vec<u64> {
            let wait = |attempt| super::wait(retry, attempt, &Failure::Exited(1), false);
            let attempts = [1, 2, 3, 6, 99];
            attempts.map(|it| wait(it).unwrap().as_secs()).to_vec()
        };
        assert_eq!(waits(&retry), [10, 20, 40, 300, 300]);
        retry.backoff = Duration::from_mins(10);
        assert_eq!(waits(&retry), [600; 5]);
        retry.backoff = Duration::ZERO;
        assert_eq!(waits(&retry), [0; 5]);
    }

    fn watch(pattern: &str, pieces: &[(Stream, &str)]) -> bool {
        let attempts = Attempts {
            retry: Some(Arc::new(retry(2, &[], &[pattern]))),
            ..Attempts::default()
        };
        let mut watch = OutputWatch::new(&attempts).unwrap();
        for (stream, bytes) in pieces {
            watch.output(*stream, bytes.as_bytes());
        }
        watch.has_matched()
    }

    #[test]
    fn patterns_match_within_lines_however_they_come() {
        use Stream::{Stderr, Stdout};
        assert!(watch("^busy$", &[(Stdout, "a\nbu"), (Stdout, "sy\nb\n")]));
        assert!(watch("^busy$", &[(Stderr, "busy")]), "without its end");
        assert!(watch("^busy$", &[(Stdout, "busy\r\n")]), "of Windows");
        assert!(!watch("busy", &[(Stdout, "bu"), (Stderr, "sy\n")]));
        assert!(!watch("a.*b", &[(Stdout, "a\nb\n")]));
        assert!(!watch("x", &[]));
    }

    #[test]
    fn patterns_match_text_without_its_escape_sequences() {
        use Stream::Stdout;
        let error = "\x1b[31mError: \x1b[0m\x1b[0m\x1b[1mbusy\x1b[0m";
        assert!(watch("^Error: busy$", &[(Stdout, error)]));
        for middle in 0..error.len() {
            let (begin, end) = error.split_at(middle);
            assert!(watch("^Error: busy$", &[(Stdout, begin), (Stdout, end)]));
        }
        assert!(!watch("31", &[(Stdout, error)]));
        assert!(watch(
            "^b\u{fc}sy$",
            &[(Stdout, "\x1b]0;title\nb\u{fc}sy\n")]
        ));
    }

    #[test]
    fn what_lies_across_the_pieces_of_a_long_line_is_found() {
        use Stream::Stdout;
        let long = "-".repeat(LONGEST_LINE - 2);
        assert!(watch(
            "busy",
            &[(Stdout, &long), (Stdout, "bu"), (Stdout, "sy")]
        ));
        assert!(watch("^busy", &[(Stdout, &long), (Stdout, "--\nbusy")]));
    }
}
