//! The safeguard `destroy-order` of a run.

use std::collections::BTreeSet;

use orch::context::follow_moves;
use orch::plan::DestroyingRun;
use orch::project::config::{Recorded, Safeguard};
use orch::project::stack::StackIndex;
use orch::run::request::PreparedRun;
use orch::run::run_command::RunCommand;
use orch::run::safeguard::{Disabled, Violation, is_on};
use orch::state::document::Document;

use super::resume::Resumed;
use super::{Ready, RunArgs, safeguards};
use crate::program::commands::Loaded;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Refuses runs that destroy stacks before, or without, those that run after them.
pub(super) struct DestroyGuard {
    disabled: Disabled,
    /// The stacks that the resumed run has destroyed, if one is resumed.
    done: Option<BTreeSet<StackIndex>>,
}

impl DestroyGuard {
    pub(super) fn new(disabled: &Disabled, resumed: Option<&Resumed>) -> Self {
        DestroyGuard {
            disabled: disabled.clone(),
            done: resumed.map(|resumed| resumed.run.succeeded.clone()),
        }
    }

    /// Refuses a run that would destroy too early, given the document of the state if the run is recorded.
    pub(super) fn check(
        &self,
        loaded: &Loaded,
        run: &PreparedRun,
        command: &RunCommand,
        document: Option<&Document>,
    ) -> Result<()> {
        let mut violations = self.violations(loaded, run, command, document)?;
        let Some(last) = violations.pop() else {
            return Ok(());
        };
        for violation in &violations {
            console::error(violation);
            console::help(&self.help(violation));
        }
        let help = self.help(&last);
        Err(ProgramError::refused(last.to_string()).hint(help))
    }

    /// Shows why the run of a dry run would be refused.
    pub(super) fn warn(mut self, loaded: &mut Loaded, args: &RunArgs, ready: &Ready) -> Result<()> {
        let Ready { run, command } = ready;
        if loaded.destroyed_in_run(run, command)?.is_empty() {
            return Ok(());
        }
        self.disabled = safeguards::in_force(args)?;
        let is_recorded =
            loaded.project.settings.state.is_some() && run.recording() != Some(Recorded::Never);
        let document = is_recorded.then(|| loaded.read_document()).transpose();
        let document = document.unwrap_or_else(|error| {
            console::warning(&format!(
                "the state cannot be read, so all stacks that are not selected are assumed to exist: {}",
                error.message()
            ));
            None
        });
        let document = document.map(|mut document| {
            follow_moves(&loaded.project.stacks, &mut document);
            document
        });
        let violations = self.violations(loaded, run, command, document.as_ref())?;
        for violation in &violations {
            console::error(violation);
            console::help(&self.help(violation));
        }
        if !violations.is_empty() {
            console::note("the run would be refused");
        }
        Ok(())
    }

    fn violations(
        &self,
        loaded: &Loaded,
        run: &PreparedRun,
        command: &RunCommand,
        document: Option<&Document>,
    ) -> Result<Vec<Violation>> {
        let configured = &loaded.project.settings.safeguards;
        if !is_on(Safeguard::DestroyOrder, &self.disabled, configured) {
            return Ok(Vec::new());
        }
        let destroyed = loaded.destroyed_in_run(run, command)?.into_iter();
        let destroyed: BTreeSet<StackIndex> = destroyed.map(|(stack, _)| stack).collect();
        if destroyed.is_empty() {
            return Ok(Vec::new());
        }
        let others = run.sequence.iter().copied();
        let destroying = DestroyingRun {
            others: others.filter(|stack| !destroyed.contains(stack)).collect(),
            destroyed,
            done: self.done.clone().unwrap_or_default(),
            direction: run.direction(),
        };
        Ok(destroying.violations(&loaded.project, &loaded.graph, document))
    }

    fn help(&self, violation: &Violation) -> String {
        let help = violation.help();
        match self.done {
            // A run that resumes another one keeps the direction and the stacks.
            Some(_) => format!("start a new run: {help}"),
            None => help,
        }
    }
}
