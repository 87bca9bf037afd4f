//! The inputs that `ignore_changes` excludes from a plan.

use std::collections::BTreeSet;

use super::{Planning, RecordedState, StackToPlan, StacksToPlan};
use crate::change::StackStatus;
use crate::context::Context;
use crate::plan::entry::IgnoredInputs;
use crate::project::lifecycle::IgnoredChanges;
use crate::project::stack::StackIndex;

pub(super) fn ignored<'a>(
    context: &'a Context,
    subject: &'a StackToPlan<'_>,
    recorded: &'a RecordedState,
) -> Option<IgnoredInputs<'a>> {
    let stack = subject.stack;
    let rule = context.project.rules_of(stack).ignore_changes?;
    let (file, line) = context.project.sources.file_and_line(rule.span);
    let names = recorded.statuses.ignored.get(&stack);
    Some(IgnoredInputs {
        names: names.map_or(&[], Vec::as_slice),
        inputs: &subject.ignored_inputs,
        is_all: rule.value == IgnoredChanges::All,
        file,
        line,
    })
}

/// Returns the stacks that may change. Excludes those that ignore all changes and exist unchanged.
pub(super) fn may_change(
    planning: Planning<'_>,
    subjects: &StacksToPlan<'_>,
    working: &BTreeSet<StackIndex>,
) -> Vec<StackIndex> {
    let stays = |stack: &StackIndex| {
        let recorded = planning.recorded;
        let status = recorded.and_then(|recorded| recorded.statuses.stacks.get(stack));
        let rule = planning.context.project.rules_of(*stack).ignore_changes;
        status == Some(&StackStatus::Applied)
            && rule.is_some_and(|rule| rule.value == IgnoredChanges::All)
    };
    let stacks = subjects.all.iter().map(|subject| subject.stack);
    stacks
        .filter(|stack| working.contains(stack) || !stays(stack))
        .collect()
}

pub(super) fn note_without_state(planning: Planning<'_>, subjects: &StacksToPlan<'_>) {
    if planning.recorded.is_some() {
        return;
    }
    let context = planning.context;
    let mut rules = subjects
        .all
        .iter()
        .filter_map(|subject| context.project.rules_of(subject.stack).ignore_changes);
    if let Some(first) = rules.next() {
        let place = context.project.sources.line(first.span);
        context.notices.note(&format!(
            "`ignore_changes` has no effect without a state ({place}); see `orch help state`"
        ));
    }
}
