//! Stacks that are not selected although a plan may change what they depend on.

use std::collections::BTreeSet;

use super::Planning;
use super::entries::{Decisions, ignores_changes};
use super::subjects::{Drivers, StacksToPlan};
use crate::path::StackPath;
use crate::plan::conditions;
use crate::plan::entry::PlanMode;
use crate::printable::{listed, printable};
use crate::project::driver::NONE;
use crate::project::stack::{StackIndex, StackMode};
use crate::selection::graph::SearchDirection;
use crate::selection::select::NeighbourChoice;

const MAX_NAMED: usize = 3;

impl Planning<'_> {
    /// Counts the unselected stacks that exist and run after stacks with work, and notes how to
    /// select them. Stacks that the user leaves out by name do not count. With a state, recorded
    /// stacks exist; without one, every stack with a driver.
    pub(super) fn unselected_dependents(
        self,
        subjects: &StacksToPlan<'_>,
        settled: &Decisions,
    ) -> usize {
        let Planning {
            context,
            request,
            query,
            ..
        } = self;
        let has_chosen = query.neighbours.iter().any(|reach| {
            reach.towards == SearchDirection::Dependents && reach.verb != NeighbourChoice::Include
        });
        if request.options.mode != PlanMode::Normal || request.only.is_some() || has_chosen {
            return 0;
        }
        let selected: BTreeSet<StackIndex> = subjects.all.iter().map(|it| it.stack).collect();
        let project = &context.project;
        let unselected: Vec<StackIndex> = project
            .stacks
            .iter()
            .filter(|(stack, it)| {
                !selected.contains(stack) && it.mode == StackMode::Manage && !query.excludes(it)
            })
            .map(|(stack, _)| stack)
            .collect();
        // The outputs of a stack may differ although it has no work.
        let mut changing = settled.working();
        changing.extend(subjects.outputs.keys());
        let mut after = conditions(project, &context.graph, &unselected, &changing);
        if after.is_empty() {
            return 0;
        }
        let document = self.document();
        let drivers = Drivers::new(context, document);
        let is_managed = |stack: StackIndex| match document {
            Some(_) => drivers
                .entry(stack)
                .is_some_and(|(_, entry)| entry.driver.as_deref() != Some(NONE)),
            None => drivers.of(stack).is_some_and(|driver| !driver.is_none()),
        };
        after.retain(|stack, _| is_managed(*stack) && !ignores_changes(self, *stack));
        let (number, stacks, are, them) = match after.len() {
            0 => return 0,
            1 => (1, "stack that runs", "is", "it"),
            several => (several, "stacks that run", "are", "them"),
        };
        let before: BTreeSet<&StackPath> = after.values().flat_map(|it| &it.stacks).collect();
        let before = before
            .iter()
            .map(|path| format!("`{}`", printable(path.as_str())));
        let before = listed(before.collect::<Vec<_>>().iter(), MAX_NAMED);
        context.notices.note(&format!(
            "{number} {stacks} after {before} {are} not selected: to plan {them} too, add `--include-dependents`"
        ));
        number
    }
}
