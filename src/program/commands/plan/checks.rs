//! The preconditions of the stacks of a plan.

use std::collections::BTreeMap;

use anyhow::Context as _;
use orch::plan::FailedAsk;
use orch::plan::checks::{FailedCheck, failed_preconditions};
use orch::plan::entry::PlanMode;
use orch::project::stack::StackIndex;

use super::subjects::Subjects;
use crate::program::commands::standings::state_config;
use crate::program::commands::{Loaded, host_environment};
use crate::program::console;
use crate::program::error::Result;

impl Loaded {
    /// Returns the preconditions of stacks that do not hold, by stack.
    pub(in crate::program::commands) fn failed_preconditions(
        &self,
        stacks: &[StackIndex],
    ) -> Result<BTreeMap<StackIndex, Vec<FailedCheck>>> {
        let has_state = self.project.settings.state.is_some();
        let namespace = has_state.then(|| state_config(&self.project)).transpose()?;
        let namespace = namespace.as_ref().map(|config| config.namespace.as_str());
        let failed = failed_preconditions(&self.project, host_environment(), namespace, stacks);
        Ok(failed.context("failed to check conditions")?)
    }

    /// Leaves out the stacks whose preconditions do not hold, and shows these; returns them with why.
    pub(super) fn leave_out_failed(
        &self,
        subjects: &mut Subjects<'_>,
        mode: PlanMode,
    ) -> Result<Vec<FailedAsk>> {
        if mode != PlanMode::Normal {
            return Ok(Vec::new());
        }
        let stacks: Vec<StackIndex> = subjects.all.iter().map(|it| it.stack).collect();
        let failed = self.failed_preconditions(&stacks)?;
        self.show_failed(&failed);
        subjects.all.retain(|it| !failed.contains_key(&it.stack));
        let failed = failed.iter().filter_map(|(&stack, checks)| {
            Some(FailedAsk {
                stack: self.project.stacks[stack].path.clone(),
                why: checks.first()?.text.clone(),
            })
        });
        Ok(failed.collect())
    }

    /// Shows the conditions that do not hold.
    pub(in crate::program::commands) fn show_failed(
        &self,
        failed: &BTreeMap<StackIndex, Vec<FailedCheck>>,
    ) {
        let diagnostics = failed.values().flatten().map(|check| &check.diagnostic);
        console::diagnostics(diagnostics, &self.project.sources);
    }
}
