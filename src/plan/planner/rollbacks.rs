//! Stacks that a plan would roll back.

use std::collections::{BTreeMap, BTreeSet};

use super::PlanRequest;
use super::subjects::RecordedState;
use crate::change::{Rollback, StackStatus};
use crate::context::{Context, RollbackFlags};
use crate::error::Result;
use crate::plan::entry::PlanMode;
use crate::project::stack::{StackIndex, StackMode};
use crate::selection::select::Selection;

impl Context {
    pub(super) fn planned_rollbacks(
        &mut self,
        request: &PlanRequest<'_>,
        selection: &Selection,
        recorded: Option<&RecordedState>,
        replaced: &BTreeSet<StackIndex>,
    ) -> Result<BTreeMap<StackIndex, Rollback>> {
        // A refresh reverts nothing.
        let is_refresh = request.options.mode == PlanMode::RefreshOnly;
        let Some(recorded) = recorded.filter(|_| !is_refresh) else {
            return Ok(BTreeMap::new());
        };
        let is_planned = |stack: &StackIndex| {
            let is_applied = recorded.statuses.stacks.get(stack) == Some(&StackStatus::Applied);
            let is_asked = !is_applied || request.options.is_full || replaced.contains(stack);
            is_asked && self.project.stacks[*stack].mode == StackMode::Manage
        };
        let stacks: Vec<StackIndex> = selection.stacks().filter(is_planned).collect();
        let flags = RollbackFlags {
            allows: request.allow_rollback,
            fetches: request.fetches,
        };
        let found = self.rollbacks(&recorded.document, &stacks, flags)?;
        if !found.is_empty() && !flags.allows && request.only.is_none() {
            self.notices.help(
                "to plan stacks last applied from a commit that HEAD lacks, add `--allow-rollback`",
            );
        }
        Ok(found)
    }
}
