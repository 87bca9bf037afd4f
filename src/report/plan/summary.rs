//! The sentences that summarize a plan.

use super::MAX_NAMED;
use crate::plan::entry::PlanMode;
use crate::plan::{Plan, StackTotals, Totals, UnplannedRemovals};
use crate::printable::{count, listed};

/// Summarizes a plan: `Plan: 2 to update, 1 blocked. Resources: 3 to create, 1 to destroy.`
pub(super) fn summary(plan: &Plan) -> String {
    let Totals { stacks, resources } = plan.totals();
    let is_refresh = plan.mode == PlanMode::RefreshOnly;
    let (mut to_do, others) = (to_do(&stacks), others(plan, &stacks));
    match plan.followups.as_ref().map(|it| it.turns.len()) {
        None | Some(0) => {}
        Some(1) => to_do.push("1 follow-up".to_owned()),
        Some(several) => to_do.push(format!("{several} follow-ups")),
    }
    let mut text = match (&*to_do, &*others) {
        ([], []) if is_refresh => "Plan: no drift.".to_owned(),
        ([], []) => "Plan: nothing to do.".to_owned(),
        ([], others) if is_refresh => format!("Plan: no drift. {}.", others.join(", ")),
        ([], others) => format!("Plan: nothing to do. {}.", others.join(", ")),
        (to_do, others) => format!("Plan: {}.", [to_do, others].concat().join(", ")),
    };
    let words = if is_refresh {
        [
            "created",
            "changed",
            "destroyed",
            "forgotten",
            "imported",
            "moved",
        ]
    } else {
        [
            "to create",
            "to change",
            "to destroy",
            "to forget",
            "to import",
            "to move",
        ]
    };
    let numbers = [
        resources.create,
        resources.update,
        resources.delete,
        resources.forget,
        resources.import,
        resources.moved,
    ];
    let mut parts: Vec<String> = counted(numbers.into_iter().zip(words));
    if !parts.is_empty() {
        parts.extend(match resources.unknown_in {
            0 => None,
            1 => Some("unknown in 1 stack".to_owned()),
            several => Some(format!("unknown in {several} stacks")),
        });
        text += &format!(" Resources: {}.", parts.join(", "));
    }
    text
}

/// Names the options that the user passed to the tools, and the stacks that are therefore planned only in part.
pub(super) fn tool_options(plan: &Plan) -> Option<String> {
    let options = &plan.options.tool_options;
    if options.is_empty() {
        return None;
    }
    let partial = plan.partial();
    let of = if partial.is_empty() {
        String::new()
    } else {
        let names = partial.iter().map(|stack| stack.as_str());
        format!(": only a part of {}", listed(names, MAX_NAMED))
    };
    Some(format!("Planned with {}{of}.", options.join(" ")))
}

/// Counts the stacks that an apply may change.
fn to_do(stacks: &StackTotals) -> Vec<String> {
    counted(
        [
            (stacks.create, "to create"),
            (stacks.update, "to update"),
            (stacks.replace, "to replace"),
            (stacks.delete, "to delete"),
            (stacks.adopt, "to adopt"),
            (stacks.forget, "to forget"),
            (stacks.drifted, "drifted"),
            (stacks.undecided, "known after apply"),
            (stacks.failed, "failed"),
            (stacks.blocked, "blocked"),
        ]
        .into_iter(),
    )
}

fn others(plan: &Plan, stacks: &StackTotals) -> Vec<String> {
    let counted_things = |number: usize, thing: &str, what: &str| {
        (number > 0).then(|| format!("{} {what}", count(number, thing)))
    };
    let mut parts = counted(
        [
            (stacks.read, "to read"),
            (stacks.unchanged, "unchanged"),
            (stacks.without_driver, "without a driver"),
        ]
        .into_iter(),
    );
    let UnplannedRemovals {
        out_of_scope,
        left_out,
    } = plan.removals;
    let dependents = plan.dependents_out_of_scope;
    parts.extend(counted_things(left_out, "removal", "left out"));
    parts.extend(counted_things(out_of_scope, "removal", "out of scope"));
    parts.extend(counted_things(dependents, "dependent", "out of scope"));
    parts
}

/// Returns the numbers that are not zero, each with its words.
fn counted<N: Default + PartialEq + std::fmt::Display>(
    parts: impl Iterator<Item = (N, &'static str)>,
) -> Vec<String> {
    let parts = parts.filter(|(number, _)| *number != N::default());
    parts
        .map(|(number, what)| format!("{number} {what}"))
        .collect()
}
