//! The settings of a run that are given explicitly: by flags, or by the run that is resumed. The
//! configuration decides about the others, and then the defaults here.

use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use regex::bytes::RegexSet;

use crate::project::Project;
use crate::project::attempt::{Attempts, DEFAULT_BACKOFF, ExitCodes, Retry, patterns};
use crate::project::config::{RecordKind, TagLimit};
use crate::project::stack::StackIndex;
use crate::run::run_command::RunCommand;
use crate::run::schedule::{Limit, OnError};
use crate::run::terraform;

/// How long a command that took too long has to end after its interrupt: what terraform takes to give
/// up its lock, with plenty to spare.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// The settings of a run that are given explicitly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSettings {
    /// What happens after a failure.
    pub on_error: Option<OnError>,
    /// How many turns run at once.
    pub jobs: Option<NonZeroUsize>,
    /// How many of those with a tag, each tag once.
    pub limits: Vec<TagLimit>,
    /// How long an attempt may take.
    pub timeout: Option<Duration>,
    /// How long the run may take.
    pub run_timeout: Option<Duration>,
    /// How long a command that took too long has to end after its interrupt.
    pub grace: Option<Duration>,
    /// How often a failed command is tried again.
    pub retries: Option<u32>,
    /// After which exit statuses.
    pub retry_on_exit: Vec<i32>,
    /// After which output.
    pub retry_on_output: Vec<String>,
    /// The time before the second attempt.
    pub retry_backoff: Option<Duration>,
    /// What exit statuses mean.
    pub exit_codes: ExitCodes,
    /// Whether the exit status of the run shows whether there are changes.
    pub detailed_exit_code: bool,
    /// What the state records the run as, whatever its command is.
    pub recording: Option<RecordKind>,
}

/// Why settings cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingsError {
    /// A pattern of `retry_on_output` is wrong.
    Pattern {
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Retries are wanted for stacks, and nothing says after which failures.
    NoRetryCondition {
        /// How many.
        retries: u32,
        /// The stacks; at least one.
        stacks: Vec<StackIndex>,
    },
    /// Something is said about retries, and no stack of the run is tried again.
    NothingIsRetried {
        /// The setting, with the name of its flag.
        setting: &'static str,
    },
}

impl RunSettings {
    /// Adds what `earlier` says, where nothing is said here. Conditions of retries go together.
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
        self
    }

    /// Returns what happens after a failure: unless said otherwise, the run stops.
    pub fn on_error(&self) -> OnError {
        self.on_error.unwrap_or(OnError::Stop)
    }

    /// Returns how many turns run at once: unless said otherwise, one.
    pub fn jobs(&self) -> NonZeroUsize {
        self.jobs.unwrap_or(NonZeroUsize::MIN)
    }

    /// Returns how long a command has to end after its interrupt.
    pub fn grace(&self) -> Duration {
        self.grace.unwrap_or(DEFAULT_GRACE)
    }

    /// Returns how many turns of which stacks may run at once: as said here, and as the project's
    /// `concurrency` says for other tags.
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

    /// Returns what each of these stacks allows its command, in their sequence. What is said here
    /// replaces what is configured, each setting by itself; where nobody says which exit statuses
    /// mean changes, those do that the command is known for.
    ///
    /// # Errors
    ///
    /// If what is said about retries cannot be applied.
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
        let known_of = |command: &[OsString]| {
            let is_plan = terraform::has_detailed_exit_code(command);
            ExitCodes {
                changes: is_plan.then(|| [2].into()),
                ..ExitCodes::default()
            }
        };
        let known = known_of(command.given());
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
                let evaluated = command.is_evaluated();
                let own = evaluated.then(|| known_of(command.of(stack)));
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

    /// Returns what exit statuses mean, given the configuration and the defaults of the command.
    fn exit_codes_or(&self, configured: &ExitCodes, known: &ExitCodes) -> ExitCodes {
        self.exit_codes.clone().or(configured).or(known)
    }

    /// Returns the first setting that is about retries and does not ask for them.
    fn about_retries(&self) -> Option<&'static str> {
        let settings = [
            (!self.retry_on_exit.is_empty(), "retry-on-exit"),
            (!self.retry_on_output.is_empty(), "retry-on-output"),
            (self.retry_backoff.is_some(), "retry-backoff"),
        ];
        let mut said = settings.into_iter().filter(|(is_said, _)| *is_said);
        said.next().map(|(_, setting)| setting)
    }

    /// Returns when a stack is tried again for which this is configured.
    fn retry(
        &self,
        configured: Option<&Arc<Retry>>,
        on_output: &RegexSet,
    ) -> Result<Option<Arc<Retry>>, NoCondition> {
        // As many as are wanted after the first; one attempt is none that follows another.
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

/// Another attempt is wanted, and nothing says when.
struct NoCondition;
