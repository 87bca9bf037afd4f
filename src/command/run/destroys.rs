//! The safeguard `destroy-order` of a run.

use std::collections::BTreeSet;

use super::RunOptions;
use super::resumed::Resumed;
use crate::context::{Context, follow_moves};
use crate::error::{Error, Result};
use crate::plan::DestroyingRun;
use crate::project::config::{RecordKind, Safeguard};
use crate::project::stack::StackIndex;
use crate::run::request::PreparedRun;
use crate::run::run_command::RunCommand;
use crate::run::safeguard::{Disabled, Violation, is_on};
use crate::state::document::Document;

/// Refuses runs that destroy stacks before, or without, their dependents.
pub struct DestroyGuard {
    disabled: Disabled,
    /// The stacks that the resumed run, or other jobs of the work order, have destroyed before.
    done: BTreeSet<StackIndex>,
    is_resumed: bool,
}

impl DestroyGuard {
    pub(super) fn new(context: &Context, options: &RunOptions, resumed: Option<&Resumed>) -> Self {
        let done = match (resumed, &options.results) {
            (Some(resumed), _) => resumed.run.succeeded.clone(),
            // No stack starts before its dependents have been destroyed.
            (None, Some(results)) if options.is_reverse => {
                let turns = results.outline.turns.iter();
                let stacks = turns.filter_map(|turn| context.project.stacks.named(&turn.stack));
                stacks.collect()
            }
            (None, _) => BTreeSet::new(),
        };
        DestroyGuard {
            disabled: options.disabled.clone(),
            done,
            is_resumed: resumed.is_some(),
        }
    }

    /// Refuses a run that would destroy too early, given the document of the state if the run is
    /// recorded.
    pub(super) fn check(
        &self,
        context: &Context,
        run: &PreparedRun,
        command: &RunCommand,
        document: Option<&Document>,
    ) -> Result<()> {
        let mut violations = self.violations(context, run, command, document)?;
        let Some(last) = violations.pop() else {
            return Ok(());
        };
        for violation in &violations {
            context.notices.error(violation);
            context.notices.help(&self.help(violation));
        }
        let help = self.help(&last);
        Err(Error::refused(last.to_string()).hint(help))
    }

    /// Prints why the run of a dry run would be refused. `in_force` returns the safeguards that
    /// would have to be disabled.
    pub(super) fn warn(
        mut self,
        context: &mut Context,
        run: &PreparedRun,
        command: &RunCommand,
        in_force: impl FnOnce() -> Result<Disabled>,
    ) -> Result<()> {
        if context.destroyed_in_run(run, command)?.is_empty() {
            return Ok(());
        }
        self.disabled = in_force()?;
        let is_recorded =
            context.project.settings.state.is_some() && run.recording() != Some(RecordKind::Never);
        let document = is_recorded.then(|| context.read_document()).transpose().unwrap_or_else(|error| {
            context.notices.warning(&format!(
                "the state cannot be read, so all stacks that are not selected are assumed to exist: {}",
                error.message()
            ));
            None
        });
        let document = document.map(|mut document| {
            follow_moves(&context.project.stacks, &mut document);
            document
        });
        let violations = self.violations(context, run, command, document.as_ref())?;
        for violation in &violations {
            context.notices.error(violation);
            context.notices.help(&self.help(violation));
        }
        if !violations.is_empty() {
            context.notices.note("the run would be refused");
        }
        Ok(())
    }

    fn violations(
        &self,
        context: &Context,
        run: &PreparedRun,
        command: &RunCommand,
        document: Option<&Document>,
    ) -> Result<Vec<Violation>> {
        let configured = &context.project.settings.safeguards;
        if !is_on(Safeguard::DestroyOrder, &self.disabled, configured) {
            return Ok(Vec::new());
        }
        let destroyed: BTreeSet<StackIndex> = context
            .destroyed_in_run(run, command)?
            .into_iter()
            .map(|(stack, _)| stack)
            .collect();
        if destroyed.is_empty() {
            return Ok(Vec::new());
        }
        let others = run.sequence.iter().copied();
        let destroying = DestroyingRun {
            others: others.filter(|stack| !destroyed.contains(stack)).collect(),
            destroyed,
            done: self.done.clone(),
            direction: run.direction(),
        };
        Ok(destroying.violations(&context.project, &context.graph, document))
    }

    fn help(&self, violation: &Violation) -> String {
        let help = violation.help(&self.disabled);
        if self.is_resumed {
            // It keeps its direction and stacks.
            format!("start a new run: {help}")
        } else {
            help
        }
    }
}
