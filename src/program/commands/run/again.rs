//! What a run does once it holds the lock of the state.

use orch::exit::ExitStatus;
use orch::project::Problems;
use orch::run::safeguard::Disabled;
use orch::run::state::StatePlan;
use orch::selection::select::{Query, Selection, select};

use super::state::KeptState;
use super::{Ready, RunArgs};
use crate::program::commands::Loaded;
use crate::program::commands::reports::Reports;
use crate::program::console;
use crate::program::error::Result;

/// What it takes to select anew once the lock of the state is held: another run may have written meanwhile.
pub(super) struct Again<'a> {
    pub(super) args: &'a RunArgs,
    /// The selection; none if it comes from an earlier run.
    pub(super) query: Option<Query>,
    pub(super) reports: &'a Reports,
    pub(super) disabled: &'a Disabled,
}

impl Again<'_> {
    /// Returns the run that is to begin, and what is put on record of it. If nothing is to be run, only the exit
    /// status is left.
    pub(super) fn prepare(
        self,
        loaded: &mut Loaded,
        kept: &mut KeptState,
        before: &Selection,
        ready: Ready,
    ) -> Result<(Ready, StatePlan)> {
        let ready = self.select(loaded, kept, before, ready)?;
        let plan = kept.plan(loaded, &ready.run, &ready.command)?;
        Ok((ready, plan))
    }

    /// Returns the run of what the document selects now that the lock is held; the same as before if that
    /// is the same.
    fn select(
        &self,
        loaded: &mut Loaded,
        kept: &KeptState,
        before: &Selection,
        ready: Ready,
    ) -> Result<Ready> {
        let query = match &self.query {
            Some(query) => loaded.by_document(query, kept.document())?,
            None => None,
        };
        let Some(query) = query else {
            return Ok(ready);
        };
        let project = &loaded.project;
        let selection = select(&project.stacks, &loaded.references, &loaded.graph, &query);
        if selection.stacks().eq(before.stacks()) {
            return Ok(ready);
        }
        console::note(&format!(
            "another run has written the state meanwhile: {}",
            match selection.len() {
                0 => "nothing is left to do".to_owned(),
                1 => "1 stack is selected now".to_owned(),
                stacks => format!("{stacks} stacks are selected now"),
            }
        ));
        // These have been shown.
        loaded.problems = Problems::default();
        let id = Some(ready.run.id);
        let again = Ready::new(loaded, self.args, &selection, None, self.reports, id)?;
        if !again.spares_protected(loaded, false)? || !again.is_safe(loaded, self.disabled) {
            return Err(ExitStatus::Refused.into());
        }
        Ok(again)
    }
}
