//! The sequence of a plan, including stacks that the apply decides.

use std::collections::BTreeMap;

use crate::context::Context;
use crate::path::StackPath;
use crate::plan::PlannedOrder;
use crate::plan::entry::{PlanEntry, PlannedAction};
use crate::project::stack::StackIndex;
use crate::state::document::Document;

impl Context {
    /// Returns the stacks that an apply changes or decides, in sequence; empty if none is
    /// undecided.
    pub(super) fn sequence(
        &self,
        document: Option<&Document>,
        steps: Vec<(StackIndex, PlannedAction)>,
        removed: &BTreeMap<String, PlannedAction>,
        entries: &[PlanEntry],
    ) -> Vec<StackPath> {
        let undecided: Vec<_> = entries
            .iter()
            .filter(|entry| entry.is_undecided())
            .filter_map(|entry| self.project.stacks.find(&entry.stack))
            .map(|stack| (stack, PlannedAction::Update))
            .collect();
        if undecided.is_empty() {
            return Vec::new();
        }
        let all = steps.into_iter().chain(undecided);
        let order = PlannedOrder::new(&self.project, &self.graph, document, all, removed);
        let operations = order.operations(&self.project).into_iter();
        operations.map(|operation| operation.stack).collect()
    }
}
