//! Turns the flags of `orch run` into options of the library.

use orch::command::run::{PolicyOptions, ResumeOptions, RunOptions};
use orch::context::RollbackFlags;
use orch::run::run_command::CommandKind;
use orch::run::safeguard::Disabled;
use orch::run::schedule::OnError;
use orch::run::settings::RunSettings;

use super::arguments::{OnErrorArg, RunArgs};

impl RunArgs {
    /// Returns what the words of `orch run` are.
    pub(super) fn kind(&self) -> CommandKind {
        if self.eval {
            CommandKind::Template
        } else {
            CommandKind::Plain
        }
    }

    /// Returns the options, given what the words of the command are, and the disabled safeguards.
    pub(super) fn options(&self, kind: CommandKind, disabled: Disabled) -> RunOptions {
        let resume = self.resume.is_wanted().then(|| ResumeOptions {
            run: self.resume.resume.clone().unwrap_or("last".to_owned()),
            only_failed: self.resume.only_failed,
            allow_stale: self.resume.allow_stale,
        });
        RunOptions {
            command: self.command.clone(),
            kind,
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
            lock_timeout: self.lock_timeout.unwrap_or_default(),
            fails_if_empty: self.fail_if_empty,
            job: None,
            results: None,
            runs_elsewhere: false,
            disabled,
        }
    }

    fn settings(&self) -> RunSettings {
        let on_error = match self.continue_on_error {
            Some(true) => Some(OnError::Continue),
            Some(false) => Some(OnError::Stop),
            None => self.on_error.map(OnErrorArg::on_error),
        };
        RunSettings {
            on_error,
            jobs: self.parallel,
            limits: self.limit.clone(),
            exit_codes: self.exit_codes.exit_codes(),
            detailed_exit_code: self.exit_codes.detailed_exitcode,
            recording: self.record.recording(),
            sharing: self.sharing.sharing(),
            ..self.attempts.settings()
        }
    }
}
