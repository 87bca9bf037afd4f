//! The settings of a run from its flags, and the checks on them.

use std::collections::HashSet;

use orch::diagnostic::closest;
use orch::project::config::{Recorded, TagLimit};
use orch::run::schedule::OnError;
use orch::run::settings::{RunSettings, SettingsError};

use super::arguments::{OnErrorArg, RunArgs};
use super::record_flags::RecordAs;
use crate::program::commands::Loaded;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

impl RunArgs {
    /// Returns how the run goes, as far as flags say so.
    pub(crate) fn settings(&self) -> RunSettings {
        let on_error = match self.on_error {
            _ if self.continue_on_error == Some(true) => Some(OnError::Continue),
            _ if self.continue_on_error == Some(false) => Some(OnError::Stop),
            Some(OnErrorArg::Stop) => Some(OnError::Stop),
            Some(OnErrorArg::SkipDependents) => Some(OnError::SkipDependents),
            Some(OnErrorArg::Continue) => Some(OnError::Continue),
            None => None,
        };
        let attempts = &self.attempts;
        RunSettings {
            on_error,
            jobs: self.parallel,
            limits: self.limit.clone(),
            timeout: attempts.timeout,
            run_timeout: attempts.run_timeout,
            grace: attempts.grace,
            retries: attempts.retries,
            retry_on_exit: attempts.retry_on_exit.clone(),
            retry_on_output: attempts.retry_on_output.clone(),
            retry_backoff: attempts.retry_backoff,
            exit_codes: self.exit_codes.exit_codes(),
            detailed_exit_code: self.exit_codes.detailed_exitcode,
            recording: match self.record.record {
                Some(RecordAs::Apply) => Some(Recorded::Apply),
                Some(RecordAs::Destroy) => Some(Recorded::Destroy),
                None => self.record.no_record.then_some(Recorded::Never),
            },
        }
    }
}

/// Explains why settings cannot be applied.
pub(super) fn explained(loaded: &Loaded, error: SettingsError) -> ProgramError {
    ProgramError::usage(match error {
        SettingsError::Pattern { pattern, problem } => {
            format!("in --retry-on-output: `{pattern}`: {problem}")
        }
        SettingsError::NoRetryCondition { retries, stacks } => format!(
            "--retries {retries} does not say which failures of {} to retry; add --retry-on-exit STATUS or --retry-on-output REGEX, or a `retry` block to the configuration",
            loaded.names(&stacks),
        ),
        SettingsError::NothingIsRetried { setting } => format!(
            "--{setting} has no effect without --retries N: no selected stack is configured to be retried"
        ),
    })
}

/// Checks that no tag is limited twice, and notes limits that limit nothing.
pub(super) fn check_limits(loaded: &Loaded, limits: &[TagLimit]) -> Result<()> {
    let stacks = &loaded.project.stacks;
    let mut seen = HashSet::new();
    for TagLimit { tag, at_once } in limits {
        if !seen.insert(tag.as_str()) {
            let message = format!("in --limit: `{tag}` is limited twice; remove one of them");
            return Err(ProgramError::usage(message));
        }
        if !stacks.has_tag(tag) {
            let meant = closest(tag, stacks.tags());
            let meant = meant.map_or(String::new(), |tag| format!("; did you mean `{tag}`?"));
            console::note(&format!(
                "`--limit {tag}={at_once}` limits nothing: no stack carries the tag{meant}"
            ));
        }
    }
    Ok(())
}
