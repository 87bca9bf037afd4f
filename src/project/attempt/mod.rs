//! How long a command may take in a stack, which exit statuses count as success, and when it is retried.
//!
//! The configuration of these is an [`AttemptSettings`], which `block` reads. This module doesn't run commands.

pub(crate) mod block;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use regex::bytes::{Regex, RegexSet};

/// The time limit and the retries of a stack's command.
#[derive(Debug, Clone, Default)]
pub struct Attempts {
    pub timeout: Option<Duration>,
    /// When a failed attempt is followed by another.
    pub retry: Option<Arc<Retry>>,
    pub exit_codes: ExitCodes,
}

impl Attempts {
    /// Returns whether the output of a failed attempt decides whether another one follows.
    pub fn needs_output(&self) -> bool {
        let retry = self.retry.as_ref();
        retry.is_some_and(|retry| retry.attempts.get() > 1 && !retry.on_output.is_empty())
    }
}

/// The configuration of attempts in one directory, for the stacks at and below it.
#[derive(Debug, Clone, Default)]
pub struct AttemptSettings {
    pub timeout: Option<Timeout>,
    /// `retry`, as a whole.
    pub retry: Option<Arc<Retry>>,
    /// `success_exit_codes`, `changes_exit_codes` and `success_on_interrupt`.
    pub exit_codes: ExitCodes,
}

/// The meaning of a command's exit statuses, from the configuration or flags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitCodes {
    /// Those that count as success, besides 0 and those that mean changes.
    pub success: Option<Arc<[i32]>>,
    /// Those that count as success and mean that there are changes.
    pub changes: Option<Arc<[i32]>>,
    /// Whether they mean the same after an interrupt.
    pub success_on_interrupt: Option<bool>,
}

impl ExitCodes {
    /// Fills in unset values.
    #[must_use]
    pub fn or(self, other: &ExitCodes) -> Self {
        ExitCodes {
            success: self.success.or_else(|| other.success.clone()),
            changes: self.changes.or_else(|| other.changes.clone()),
            success_on_interrupt: self.success_on_interrupt.or(other.success_on_interrupt),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == ExitCodes::default()
    }

    /// Returns whether a command that exits with this status has succeeded.
    pub fn is_success(&self, status: i32) -> bool {
        let has = |codes: &Option<Arc<[i32]>>| {
            let codes = codes.as_ref();
            codes.is_some_and(|codes| codes.contains(&status))
        };
        status == 0 || has(&self.success) || has(&self.changes)
    }

    /// Returns whether a successful command with this status has found or made changes; `None` if no
    /// status means that.
    pub fn has_changes(&self, status: i32) -> Option<bool> {
        let changes = self.changes.as_ref().filter(|codes| !codes.is_empty());
        changes.map(|codes| codes.contains(&status))
    }
}

/// The configured time limit of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// No longer than this.
    After(Duration),
    /// No limit, regardless of directories above: `null`.
    Never,
}

impl AttemptSettings {
    /// Fills in unset values from a directory further up.
    #[must_use]
    pub fn or(self, outer: &AttemptSettings) -> Self {
        AttemptSettings {
            timeout: self.timeout.or(outer.timeout),
            retry: self.retry.or_else(|| outer.retry.clone()),
            exit_codes: self.exit_codes.or(&outer.exit_codes),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.timeout.is_none() && self.retry.is_none() && self.exit_codes.is_empty()
    }
}

impl From<AttemptSettings> for Attempts {
    fn from(settings: AttemptSettings) -> Self {
        let timeout = match settings.timeout {
            Some(Timeout::After(timeout)) => Some(timeout),
            Some(Timeout::Never) | None => None,
        };
        Attempts {
            timeout,
            retry: settings.retry,
            exit_codes: settings.exit_codes,
        }
    }
}

/// When a failed attempt is followed by another.
#[derive(Debug, Clone)]
pub struct Retry {
    pub attempts: NonZeroU32,
    /// The time before the second attempt; it doubles with each further one, up to
    /// [`MAX_BACKOFF`].
    pub backoff: Duration,
    /// Exit statuses to retry after.
    pub on_exit: Vec<i32>,
    /// Patterns of output lines to retry after.
    pub on_output: RegexSet,
}

/// The default time before the second attempt.
pub const DEFAULT_BACKOFF: Duration = Duration::from_secs(10);

pub const MAX_ATTEMPTS: u32 = 100;

/// The longest time between two attempts, unless the first one is already longer.
pub const MAX_BACKOFF: Duration = Duration::from_mins(5);

/// Compiles patterns of output.
///
/// The position of the first that is not a regular expression, or would match every output, and its problem.
pub fn patterns<T: AsRef<str>>(texts: &[T]) -> Result<RegexSet, (usize, String)> {
    for (index, text) in texts.iter().map(AsRef::as_ref).enumerate() {
        if text.is_empty() {
            return Err((index, "an empty pattern matches every line".to_owned()));
        }
        if let Err(error) = Regex::new(text) {
            return Err((index, one_line(&error.to_string())));
        }
    }
    RegexSet::new(texts).map_err(|error| (texts.len() - 1, one_line(&error.to_string())))
}

/// Returns the explanation of an invalid pattern without its drawing.
fn one_line(explanation: &str) -> String {
    let last = explanation.lines().last().unwrap_or_default();
    let text = last.strip_prefix("error: ").unwrap_or(last);
    text.trim().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::patterns;

    #[test]
    fn a_broken_pattern_is_explained_in_one_line() {
        let problem = |texts: &[&str]| patterns(texts).unwrap_err();
        assert_eq!(problem(&["a", "(b"]), (1, "unclosed group".to_owned()));
        let (index, huge) = problem(&["(a{1000}){1000}"]);
        assert_eq!(index, 0);
        assert!(
            huge.contains("size limit") && !huge.contains('\n'),
            "{huge}"
        );
        assert!(patterns(&[""]).is_err());
    }
}
