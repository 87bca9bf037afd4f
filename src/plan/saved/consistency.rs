//! Checks that a plan from a file is consistent: everything that is applied must be shown.
//!
//! The file is untrusted, and its digests do not prove its origin.

use std::collections::{BTreeMap, BTreeSet};

use super::{SavedPlan, SavedStack};
use crate::driver::{ChangeCounts, steering};
use crate::path::StackPath;
use crate::plan::entry::{PlanEntry, PlanMode, PlannedAction, Removed};
use crate::plan::planned::{Plan, PlannedOperation};
use crate::printable::printable;

/// Checks a plan from a file with so many tools' plans; the error is for a message.
pub(super) fn check(saved: &SavedPlan, n_plans: usize) -> Result<(), String> {
    let plan = &saved.plan;
    if let Some(stack) = out_of_order(plan.entries.iter().map(|entry| &entry.stack)) {
        return Err(format!("the entry of {stack} is not in its place"));
    }
    if let Some(stack) = out_of_order(saved.stacks.iter().map(|it| &it.stack)) {
        return Err(format!(
            "the inputs of the entry of {stack} are out of place"
        ));
    }
    for entry in &plan.entries {
        check_entry(entry, plan.mode)?;
    }
    let mut failed = plan.failed.iter();
    if let Some(failed) = failed.find(|failed| plan.entry(&failed.stack).is_some()) {
        let stack = name(&failed.stack);
        return Err(format!("{stack} failed to plan, but has an entry"));
    }
    check_stacks(plan, &saved.stacks)?;
    check_plans(&saved.stacks, n_plans)?;
    check_forgotten(&plan.entries, saved)?;
    check_operations(&plan.entries, &plan.operations)?;
    let mut words = saved.extra.iter();
    match words.find_map(|word| steering(&word.0)) {
        None => Ok(()),
        Some(option) => Err(format!(
            "its arguments for the tools have `-{option}`, which changes the plan that is shown"
        )),
    }
}

fn name(stack: &StackPath) -> String {
    format!("`{}`", printable(stack.as_str()))
}

fn out_of_order<'a>(stacks: impl Iterator<Item = &'a StackPath> + Clone) -> Option<String> {
    let mut pairs = stacks.clone().zip(stacks.skip(1));
    pairs.find(|(a, b)| a >= b).map(|(_, stack)| name(stack))
}

fn check_entry(entry: &PlanEntry, mode: PlanMode) -> Result<(), String> {
    let stack = name(&entry.stack);
    let action = entry.action;
    if entry.blocked.is_some() && action != PlannedAction::NoOp {
        let action = action.word();
        return Err(format!(
            "the entry of {stack} is blocked, and says `{action}`"
        ));
    }
    check_removed(entry)?;
    let fits = match mode {
        _ if entry.removed.is_some() => mode != PlanMode::RefreshOnly,
        PlanMode::Normal => action != PlannedAction::Delete,
        PlanMode::Destroy => matches!(
            action,
            PlannedAction::Delete | PlannedAction::NoOp | PlannedAction::Read
        ),
        PlanMode::RefreshOnly => matches!(action, PlannedAction::NoOp | PlannedAction::Read),
    };
    if !fits {
        let (action, mode) = (action.word(), mode.word());
        return Err(format!(
            "the entry of {stack} says `{action}`, and the mode of the plan is `{mode}`"
        ));
    }
    if mode != PlanMode::Normal && !entry.after.is_empty() {
        let mode = mode.word();
        return Err(format!(
            "the entry of {stack} is planned later, and the mode of the plan is `{mode}`"
        ));
    }
    if !entry.is_planned && !entry.is_undecided() {
        return Err(format!(
            "the entry of {stack} is neither planned nor planned later"
        ));
    }
    Ok(())
}

/// Checks that removed stacks are destroyed or forgotten only with proof, and no others are
/// forgotten.
fn check_removed(entry: &PlanEntry) -> Result<(), String> {
    let (stack, action) = (name(&entry.stack), entry.action);
    let is_generation = matches!(
        entry.removed,
        Some(Removed::Replaced { .. } | Removed::Unfinished)
    );
    let is_missing = matches!(entry.removed, Some(Removed::Block { .. }));
    if is_generation && entry.stack.generation().is_none()
        || entry.stack.generation().is_some() && !is_generation && !is_missing
        || entry.generation.is_some() && action != PlannedAction::Replace
    {
        return Err(format!("the entry of {stack} is of another generation"));
    }
    let fits = match (&entry.removed, action) {
        (None, _) => action != PlannedAction::Forget,
        (Some(Removed::Doubtful | Removed::Unknown | Removed::Unproven), _) => {
            entry.blocked.is_some()
        }
        (Some(removed), PlannedAction::Delete) if removed.leaves() => false,
        (Some(_), PlannedAction::Delete | PlannedAction::Forget) => true,
        (Some(_), _) => entry.blocked.is_some(),
    };
    if fits {
        return Ok(());
    }
    let what = match entry.removed {
        None => "is in the project",
        Some(Removed::Doubtful | Removed::Unknown | Removed::Unproven) => "was not removed",
        Some(_) => "was removed",
    };
    let action = action.word();
    Err(format!("the entry of {stack} says `{action}`, and {what}"))
}

/// Checks that exactly the entries that may be applied have facts that they depend on.
fn check_stacks(plan: &Plan, stacks: &[SavedStack]) -> Result<(), String> {
    let entries = &plan.entries;
    let by_stack: BTreeMap<&StackPath, &PlanEntry> =
        entries.iter().map(|entry| (&entry.stack, entry)).collect();
    for of_stack in stacks {
        let stack = name(&of_stack.stack);
        match by_stack.get(&of_stack.stack) {
            None => return Err(format!("{stack} is applied, and has no entry")),
            Some(entry) if entry.blocked.is_some() => {
                return Err(format!("{stack} is applied, and its entry is blocked"));
            }
            Some(_) => {}
        }
    }
    let known: BTreeSet<&StackPath> = stacks.iter().map(|it| &it.stack).collect();
    let has_effect = |entry: &&PlanEntry| {
        let has_work = entry.action != PlannedAction::NoOp || entry.is_undecided();
        entry.blocked.is_none() && (has_work || plan.accepts_drift(entry))
    };
    let mut effective = entries.iter().filter(has_effect);
    match effective.find(|entry| !known.contains(&entry.stack)) {
        None => Ok(()),
        Some(entry) => Err(format!(
            "the inputs of the entry of {} are missing",
            name(&entry.stack)
        )),
    }
}

/// Checks that each stack has a tool's plan of its own.
fn check_plans(stacks: &[SavedStack], n_plans: usize) -> Result<(), String> {
    let mut used = BTreeSet::new();
    for of_stack in stacks {
        let Some(plan) = of_stack.plan else { continue };
        let stack = name(&of_stack.stack);
        if plan >= n_plans {
            return Err(format!("the plan {plan} of {stack} is not in the file"));
        }
        if !used.insert(plan) {
            return Err(format!(
                "the plan {plan} of {stack} is that of another stack too"
            ));
        }
    }
    Ok(())
}

/// Checks that forgotten stacks are not known to exist.
fn check_forgotten(entries: &[PlanEntry], saved: &SavedPlan) -> Result<(), String> {
    let is_there = |entry: &&PlanEntry| {
        let of_stack = saved.stack(&entry.stack);
        let counts = entry.counts.unwrap_or_default();
        !entry.resources.is_empty()
            || counts != ChangeCounts::default()
            || of_stack.is_some_and(|it| it.plan.is_some())
    };
    let mut forgotten = entries
        .iter()
        .filter(|it| it.action == PlannedAction::Forget);
    match forgotten.find(is_there) {
        None => Ok(()),
        Some(entry) => Err(format!(
            "the entry of {} says `forget`, and its tool has a plan for what exists",
            name(&entry.stack)
        )),
    }
}

fn check_operations(entries: &[PlanEntry], operations: &[PlannedOperation]) -> Result<(), String> {
    let of_entries = entries.iter().flat_map(|entry| {
        let kinds: &[bool] = match entry.action {
            PlannedAction::Delete => &[true],
            PlannedAction::Replace if entry.generation.is_some() => &[false],
            PlannedAction::Replace => &[false, true],
            PlannedAction::Create | PlannedAction::Update => &[false],
            PlannedAction::NoOp
            | PlannedAction::Adopt
            | PlannedAction::Read
            | PlannedAction::Forget => &[],
        };
        kinds.iter().map(|&destroys| (&entry.stack, destroys))
    });
    let mut expected: Vec<(&StackPath, bool)> = of_entries.collect();
    let mut found: Vec<(&StackPath, bool)> = operations
        .iter()
        .map(|it| (&it.stack, it.destroys))
        .collect();
    expected.sort_unstable();
    found.sort_unstable();
    if expected == found {
        return Ok(());
    }
    let mut pairs = expected.iter().zip(&found);
    let differing = pairs.find(|(a, b)| a != b).map(|(a, b)| a.min(b));
    let shorter = expected.len().min(found.len());
    let differing = differing.or_else(|| expected.get(shorter).or_else(|| found.get(shorter)));
    let stack = differing.map(|(stack, _)| name(stack)).unwrap_or_default();
    Err(format!(
        "the operations on {stack} are not those of its entry"
    ))
}

#[cfg(test)]
mod tests;
