//! The explicit settings of a run: from flags, or from the run that is resumed. The configuration has the rest, and
//! then the defaults here.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use regex::bytes::RegexSet;

use crate::project::Project;
use crate::project::attempt::{Attempts, DEFAULT_BACKOFF, ExitCodes, Retry, patterns};
use crate::project::config::{RecordKind, TagLimit};
use crate::project::stack::StackIndex;
use crate::record::journal::Sharing;
use crate::run::run_command::RunCommand;
use crate::run::schedule::{Limit, OnError};
use crate::run::steps::known_exit_codes;

/// How long a command that took too long has to end after its interrupt: what terraform takes to give
/// up its lock, with plenty to spare.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSettings {
    pub on_error: Option<OnError>,
    /// How many turns run at once.
    pub jobs: Option<NonZeroUsize>,
    /// How many turns run at once, for each tag.
    pub limits: Vec<TagLimit>,
    /// How long an attempt may take.
    pub timeout: Option<Duration>,
    /// How long the run may take.
    pub run_timeout: Option<Duration>,
    /// How long a command that took too long has to end after its interrupt.
    pub grace: Option<Duration>,
    /// How often a failed command is retried.
    pub retries: Option<u32>,
    pub retry_on_exit: Vec<i32>,
    pub retry_on_output: Vec<String>,
    /// The time before the second attempt.
    pub retry_backoff: Option<Duration>,
    pub exit_codes: ExitCodes,
    /// Whether the exit status of the run shows whether there are changes.
    pub detailed_exit_code: bool,
    pub recording: Option<RecordKind>,
    pub sharing: Option<Sharing>,
}

/// Why settings cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingsError {
    /// A pattern of `retry_on_output` is wrong.
    Pattern { pattern: String, problem: String },
    /// Retries without a condition were requested for stacks.
    NoRetryCondition {
        retries: u32,
        stacks: Vec<StackIndex>,
    },
    /// A setting for retries has no effect, because no stack of the run is retried.
    NothingIsRetried {
        /// The setting, with the name of its flag.
        setting: &'static str,
    },
}

impl RunSettings {
    /// Adds the settings of `earlier` where none is set here. Conditions of retries are one setting.
    #[must_use]
    pub fn or(mut self, earlier: RunSettings) -> Self {
        self.on_error = self.on_error.or(earlier.on_error);
        self.jobs = self.jobs.or(earlier.jobs);
        for limit in earlier.limits {
            if self.limits.iter().all(|known| known.tag != limit.tag) {
                self.limits.push(limit);
            }
        }
        self.timeout = self.timeout.or(earlier.timeout);
        self.run_timeout = self.run_timeout.or(earlier.run_timeout);
        self.grace = self.grace.or(earlier.grace);
        self.retries = self.retries.or(earlier.retries);
        self.retry_backoff = self.retry_backoff.or(earlier.retry_backoff);
        if self.retry_on_exit.is_empty() && self.retry_on_output.is_empty() {
            self.retry_on_exit = earlier.retry_on_exit;
            self.retry_on_output = earlier.retry_on_output;
        }
        self.exit_codes = self.exit_codes.or(&earlier.exit_codes);
        self.detailed_exit_code |= earlier.detailed_exit_code;
        self.recording = self.recording.or(earlier.recording);
        self.sharing = self.sharing.or(earlier.sharing);
        self
    }

    /// Returns the reaction to failures; by default, the run stops.
    pub fn on_error(&self) -> OnError {
        self.on_error.unwrap_or(OnError::Stop)
    }

    /// Returns how many turns run at once; by default, one.
    pub fn jobs(&self) -> NonZeroUsize {
        self.jobs.unwrap_or(NonZeroUsize::MIN)
    }

    /// Returns how long a command has to end after its interrupt.
    pub fn grace(&self) -> Duration {
        self.grace.unwrap_or(DEFAULT_GRACE)
    }

    /// Returns the limits of turns at once, from these settings and, for other tags, the project's `concurrency`.
    pub fn limits(&self, project: &Project) -> Vec<Limit> {
        let is_said = |tag: &str| self.limits.iter().any(|limit| limit.tag == tag);
        let configured = project
            .settings
            .concurrency
            .iter()
            .map(|limit| &limit.value);
        let others = configured.filter(|limit| !is_said(&limit.tag));
        let limit = |limit: &TagLimit| {
            let stacks = project.stacks.with_tag(&limit.tag).iter();
            Limit {
                at_once: limit.at_once,
                nodes: stacks.map(|stack| stack.get()).collect(),
            }
        };
        self.limits.iter().chain(others).map(limit).collect()
    }

    /// Returns the limits and retries of each of these stacks, in their sequence. Each setting here
    /// replaces the configured one. If no exit statuses for changes are set, the known ones of the
    /// command apply. Fails if the settings for retries cannot be applied.
    pub fn attempts(
        &self,
        project: &Project,
        command: &RunCommand,
        stacks: &[StackIndex],
    ) -> Result<Vec<Attempts>, SettingsError> {
        let on_output = patterns(&self.retry_on_output).map_err(|(index, problem)| {
            let pattern = self.retry_on_output[index].clone();
            SettingsError::Pattern { pattern, problem }
        })?;
        let mut scopes = project.scopes.values();
        let is_configured = scopes.any(|scope| !scope.attempts.is_empty());
        let is_said =
            self.timeout.is_some() || self.retries.is_some() || self.about_retries().is_some();
        let known = known_exit_codes(command.given());
        let unconfigured = Attempts {
            exit_codes: self.exit_codes_or(&ExitCodes::default(), &known),
            ..Attempts::default()
        };
        let mut attempts = vec![unconfigured; stacks.len()];
        let mut without_condition = Vec::new();
        if is_configured || is_said || command.is_evaluated() {
            for (&stack, attempts) in stacks.iter().zip(&mut attempts) {
                let configured = project.attempts_of(stack);
                match self.retry(configured.retry.as_ref(), &on_output) {
                    Ok(retry) => attempts.retry = retry,
                    Err(NoCondition) => without_condition.push(stack),
                }
                attempts.timeout = self.timeout.or(configured.timeout);
                // Each of several commands has its own.
                let own = match command.commands(stack) {
                    [only] if command.is_evaluated() => Some(known_exit_codes(only)),
                    _ => None,
                };
                let known = own.as_ref().unwrap_or(&known);
                attempts.exit_codes = self.exit_codes_or(&configured.exit_codes, known);
            }
        }
        if !without_condition.is_empty() {
            return Err(SettingsError::NoRetryCondition {
                retries: self.retries.unwrap_or_default(),
                stacks: without_condition,
            });
        }
        match (self.about_retries(), self.retries) {
            (Some(setting), None) if attempts.iter().all(|it| it.retry.is_none()) => {
                Err(SettingsError::NothingIsRetried { setting })
            }
            _ => Ok(attempts),
        }
    }

    /// Returns the meaning of exit statuses, from the settings, the configuration and the defaults of the command.
    fn exit_codes_or(&self, configured: &ExitCodes, known: &ExitCodes) -> ExitCodes {
        self.exit_codes.clone().or(configured).or(known)
    }

    /// Returns the first setting that modifies retries without requesting them.
    fn about_retries(&self) -> Option<&'static str> {
        let settings = [
            (!self.retry_on_exit.is_empty(), "retry-on-exit"),
            (!self.retry_on_output.is_empty(), "retry-on-output"),
            (self.retry_backoff.is_some(), "retry-backoff"),
        ];
        let mut said = settings.into_iter().filter(|(is_said, _)| *is_said);
        said.next().map(|(_, setting)| setting)
    }

    fn retry(
        &self,
        configured: Option<&Arc<Retry>>,
        on_output: &RegexSet,
    ) -> Result<Option<Arc<Retry>>, NoCondition> {
        // `retries` counts the attempts after the first; with a single attempt there is no retry.
        let attempts = match self.retries {
            Some(retries) => NonZeroU32::MIN.saturating_add(retries),
            None => configured.map_or(NonZeroU32::MIN, |retry| retry.attempts),
        };
        if attempts.get() == 1 {
            return Ok(None);
        }
        if self.retries.is_none() && self.about_retries().is_none() {
            return Ok(configured.cloned());
        }
        let backoff = self.retry_backoff.or(configured.map(|retry| retry.backoff));
        let has_conditions = !self.retry_on_exit.is_empty() || !on_output.is_empty();
        let (on_exit, on_output) = match configured {
            Some(retry) if !has_conditions => (&retry.on_exit, &retry.on_output),
            _ => (&self.retry_on_exit, on_output),
        };
        if on_exit.is_empty() && on_output.is_empty() {
            return Err(NoCondition);
        }
        Ok(Some(Arc::new(Retry {
            attempts,
            backoff: backoff.unwrap_or(DEFAULT_BACKOFF),
            on_exit: on_exit.clone(),
            on_output: on_output.clone(),
        })))
    }
}

/// Retries were requested without a condition.
struct NoCondition;
