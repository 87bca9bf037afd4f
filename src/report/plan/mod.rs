//! A plan as text, JSON and Markdown.

mod json;
mod markdown;
mod text;

use std::borrow::Cow;

pub use json::write_plan_json;
pub use markdown::{ToolText, ToolTexts, write_plan_markdown};
pub use text::{write_plan, write_plan_entry};

use crate::driver::Counts;
use crate::path::StackPath;
use crate::plan::entry::{Action, PlanEntry, Removed};
use crate::plan::{Condition, Plan};
use crate::printable::printable;

/// How many stacks a condition names.
const MAX_NAMED: usize = 3;

/// Returns the sign of an entry.
fn sign(entry: &PlanEntry) -> &'static str {
    if entry.blocked.is_some() {
        return "!";
    }
    if entry.is_undecided() {
        return "?";
    }
    match entry.action {
        Action::NoOp => " ",
        Action::Create => "+",
        Action::Adopt => "=",
        Action::Update => "~",
        Action::Replace if entry.generation.is_some() => "+/-",
        Action::Replace => "-/+",
        Action::Delete => "-",
        Action::Read => "<",
        Action::Forget => "x",
    }
}

/// Returns the path of an entry's stack, with the one that it has on record if that is another one.
fn moved(entry: &PlanEntry) -> String {
    // What is done tells of the generation, if anything is done.
    let path = match &entry.blocked {
        Some(_) => entry.stack.clone(),
        None => entry.stack.current(),
    };
    let path = printable(path.as_str());
    match &entry.previous_path {
        Some(previous) => format!("{path} (was {})", printable(previous)),
        None => path.into_owned(),
    }
}

/// Returns what is done, with the generation that it is done with, unless the stack has only one.
fn action(entry: &PlanEntry) -> Cow<'static, str> {
    let word = match (entry.is_planned, entry.is_undecided()) {
        (false, _) => "failed",
        (true, true) => "",
        (true, false) => entry.action.word(),
    };
    match (entry.stack.generation(), entry.generation, &entry.removed) {
        (Some(generation), _, Some(Removed::Unfinished)) => {
            format!("{word} (unfinished generation {generation})").into()
        }
        (Some(generation), ..) => format!("{word} (old generation {generation})").into(),
        (None, Some(made), _) => format!("{word} (generation {made} first)").into(),
        (None, None, _) => word.into(),
    }
}

/// Returns numbers of resources: `+4 ~0 -0`.
fn counts_text(counts: &Counts) -> String {
    let Counts {
        add,
        change,
        remove,
    } = counts;
    format!("+{add} ~{change} -{remove}")
}

/// Says what replaces a stack if it changes: `; replaced if /cluster#endpoint changes`. Empty if nothing does.
fn replaced_if(entry: &PlanEntry) -> String {
    let names = entry.replaced_if.iter().take(MAX_NAMED).map(String::as_str);
    let mut names: Vec<&str> = names.collect();
    if entry.replaced_if.len() > MAX_NAMED {
        names.push("another one");
    }
    match names.as_slice() {
        [] => String::new(),
        names => format!("; replaced if {} changes", names.join(" or ")),
    }
}

/// Says why something is done, or why it is not known yet: `main.tf differs; planned again after /net`,
/// `known after /net`.
fn reason(entry: &PlanEntry) -> String {
    let mut text = if entry.is_undecided() && entry.is_planned {
        format!("known after {}", named(entry))
    } else {
        entry.reason.text.clone()
    };
    text += &replaced_if(entry);
    if entry.is_provisional() || !entry.is_planned {
        text += &format!("; planned again after {}", named(entry));
    }
    text
}

/// Names the stacks that an entry waits for.
fn named(entry: &PlanEntry) -> String {
    let Condition { stacks, has_more } = &entry.after;
    let first = stacks.iter().take(MAX_NAMED);
    let mut names: Vec<&str> = first.map(StackPath::as_str).collect();
    let more = match stacks.len() - names.len() {
        more if *has_more => format!("more than {more} others"),
        more => format!("{more} more"),
    };
    if stacks.len() > MAX_NAMED {
        names.push(&more);
    }
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
        None => String::new(),
    }
}

/// Returns whether an entry is worth a line: something is done, cannot be done, or was found.
fn is_shown(entry: &PlanEntry) -> bool {
    let has_drifted = || {
        let counts = entry.counts.as_ref();
        counts.is_some_and(|counts| *counts != Counts::default())
    };
    entry.action != Action::NoOp
        || entry.blocked.is_some()
        || entry.is_undecided()
        || entry.previous_path.is_some()
        || has_drifted()
}

/// Returns the sentence that sums a plan up.
fn summary(plan: &Plan) -> String {
    let count = |action: Action| plan.count(action);
    let blocked = plan.entries.iter().filter(|it| it.blocked.is_some());
    let undecided = plan.entries.iter().filter(|it| it.is_undecided());
    let (undecided, unplanned): (Vec<_>, Vec<_>) = undecided.partition(|it| it.is_planned);
    let mut parts = vec![
        format!("{} to create", count(Action::Create)),
        format!("{} to update", count(Action::Update)),
        format!("{} to replace", count(Action::Replace)),
        format!("{} to delete", count(Action::Delete)),
    ];
    for (number, what) in [
        (count(Action::Adopt), "to put on record"),
        (count(Action::Read), "to read"),
        (count(Action::Forget), "to take off the record"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    }
    let mut others = Vec::new();
    for (number, what) in [
        (undecided.len(), "to decide"),
        (blocked.count(), "blocked"),
        (plan.failed.len() + unplanned.len(), "failed"),
    ] {
        if number > 0 {
            others.push(format!("{number} {what}"));
        }
    }
    others.push(format!("{} unchanged", count(Action::NoOp)));
    if plan.without_driver > 0 {
        others.push(format!("{} without a driver", plan.without_driver));
    }
    for (number, what) in [
        (plan.removals.left_out, "left out"),
        (plan.removals.out_of_scope, "out of scope"),
    ] {
        if number > 0 {
            let plural = if number == 1 { "" } else { "s" };
            others.push(format!("{number} removal{plural} {what}"));
        }
    }
    format!("Plan: {}; {}.", parts.join(", "), others.join(", "))
}
