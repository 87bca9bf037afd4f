//! A command that is exported: what can be refused before any job runs.

use super::destroys::DestroyGuard;
use super::{Prepared, PreparedCommand, RunOptions, policies, recorder};
use crate::context::{Context, follow_moves};
use crate::error::Result;
use crate::exit::ExitStatus;
use crate::project::policy::PolicyRun;
use crate::selection::select::Selection;

impl Context {
    /// Refuses a command as `orch run` would: a job sees only its own stacks. Returns how policies treat it. The jobs
    /// check programs, the working tree, and variables that are not set here.
    pub(in crate::command) fn check_exported(
        &mut self,
        options: &RunOptions,
        selection: &Selection,
    ) -> Result<PolicyRun> {
        let prepared = match PreparedCommand::new(self, options, selection, None, None)? {
            Prepared::Run(prepared) => prepared,
            Prepared::Nothing(_) => return Ok(PolicyRun::Off),
        };
        let mode = policies::mode(self, options, &prepared, None)?;
        let PreparedCommand { run, command } = &prepared;
        if self.destroyed_in_run(run, command)?.is_empty() {
            return Ok(mode);
        }
        let mut document = if recorder::is_recorded(self, &prepared)? {
            Some(self.read_document()?)
        } else {
            None
        };
        if let Some(document) = &mut document {
            follow_moves(&self.project.stacks, document);
        }
        if self.destroys_protected(run, command, document.as_ref())? {
            self.notices.note("nothing was exported");
            return Err(ExitStatus::Refused.into());
        }
        DestroyGuard::new(self, options, None).check(self, run, command, document.as_ref())?;
        Ok(mode)
    }
}
