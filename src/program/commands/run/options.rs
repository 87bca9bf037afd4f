//! Turns the flags of `orch run` into options of the library.

use orch::command::run::{PolicyOptions, ResumeOptions, RunOptions};
use orch::context::RollbackFlags;
use orch::project::config::RecordKind;
use orch::run::safeguard::Disabled;
use orch::run::schedule::OnError;
use orch::run::settings::RunSettings;

use super::arguments::{OnErrorArg, RunArgs};
use super::record_flags::RecordAs;

impl RunArgs {
    /// Returns the options, given the disabled safeguards.
    pub(super) fn options(&self, disabled: Disabled) -> RunOptions {
        let resume = self.resume.is_wanted().then(|| ResumeOptions {
            run: self.resume.resume.clone().unwrap_or("last".to_owned()),
            only_failed: self.resume.only_failed,
            allow_stale: self.resume.allow_stale,
        });
        RunOptions {
            command: self.command.clone(),
            is_eval: self.eval,
            is_reverse: self.reverse,
            settings: self.settings(),
            resume,
            allow_concurrent: self.resume.allow_concurrent,
            policies: PolicyOptions {
                mode: self.policies.policies.map(Into::into),
                followup: self.policies.followup.clone(),
                metadata: self.policies.metadata.clone(),
            },
            rollback: RollbackFlags {
                allows: self.record.allow_rollback,
                fetches: self.select.fetch,
            },
            is_about_changes: self.select.changed,
            lock_timeout: self.record.lock_timeout.unwrap_or_default(),
            fails_if_empty: self.fail_if_empty,
            disabled,
        }
    }

    fn settings(&self) -> RunSettings {
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
                Some(RecordAs::Apply) => Some(RecordKind::Apply),
                Some(RecordAs::Destroy) => Some(RecordKind::Destroy),
                None => self.record.no_record.then_some(RecordKind::Never),
            },
        }
    }
}
