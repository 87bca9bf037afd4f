//! A plan as text, JSON and Markdown.

mod followups;
mod json;
mod markdown;
mod resources;
mod row;
mod summary;
mod text;

use std::borrow::Cow;
use std::io;

pub use json::write_plan_json;
pub use markdown::write_plan_markdown;
pub use text::{PlanDetails, write_plan, write_plan_entry};

use self::row::Row;
use crate::driver::ChangeCounts;
use crate::path::StackPath;
use crate::plan::entry::{PlanEntry, PlannedAction, Removed};
use crate::plan::{Plan, WorkBefore};
use crate::printable::printable;
use crate::record::logs::LogReader;

pub struct ToolText {
    pub log: io::Result<LogReader>,
    /// The offset of the plan; `None` if the tool failed, since all of the output may explain that.
    pub plan_from: Option<u64>,
}

pub struct ToolTexts<'a> {
    /// Returns the output for a stack, if there is any. It may be called several times.
    pub of: &'a dyn Fn(&StackPath) -> Option<ToolText>,
    /// Returns the command that shows all of it, if there is one.
    pub shown_by: &'a dyn Fn(&StackPath) -> Option<String>,
    /// The run in which the tools ran, if it is recorded.
    pub run: Option<&'a str>,
}

const MAX_NAMED: usize = 3;

fn sign(entry: &PlanEntry) -> &'static str {
    if entry.blocked.is_some() {
        return "!";
    }
    if entry.is_undecided() {
        return "?";
    }
    match entry.action {
        PlannedAction::NoOp => " ",
        PlannedAction::Create => "+",
        PlannedAction::Adopt => "=",
        PlannedAction::Update => "~",
        PlannedAction::Replace if entry.generation.is_some() => "+/-",
        PlannedAction::Replace => "-/+",
        PlannedAction::Delete => "-",
        PlannedAction::Read => "<",
        PlannedAction::Forget => "x",
    }
}

/// Returns the path of an entry's stack, with its recorded path if it was moved.
fn moved(entry: &PlanEntry) -> String {
    // If there is an action, it names the generation.
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

/// Returns the action, with its generation if the stack has several.
fn action(entry: &PlanEntry) -> Cow<'static, str> {
    let word = if entry.is_undecided() {
        ""
    } else {
        entry.action.word()
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
fn counts_text(counts: &ChangeCounts) -> String {
    let ChangeCounts {
        add,
        change,
        remove,
    } = counts;
    format!("+{add} ~{change} -{remove}")
}

/// Describes what would replace a stack: `; replaced if /cluster#endpoint changes`. Empty if
/// nothing would.
fn replaced_if(entry: &PlanEntry) -> String {
    let mut names: Vec<&str> = entry
        .replaced_if
        .iter()
        .take(MAX_NAMED)
        .map(String::as_str)
        .collect();
    if entry.replaced_if.len() > MAX_NAMED {
        names.push("another one");
    }
    match names.as_slice() {
        [] => String::new(),
        names => format!("; replaced if {} changes", names.join(" or ")),
    }
}

/// Describes why an entry has its action, or why that is unknown yet: `main.tf differs; planned
/// again after /net`, `known after /net`. If its tool failed, the cause is part of it.
fn reason(entry: &PlanEntry) -> String {
    let why = &entry.reason.text;
    let mut text = match (entry.is_undecided(), entry.is_planned) {
        (false, _) => why.clone(),
        (true, true) => format!("known after {}", named(entry)),
        (true, false) => format!("known after {}; cannot be planned yet: {why}", named(entry)),
    };
    text += &replaced_if(entry);
    if !entry.mocked.is_empty() {
        text += &format!("; planned with mocks of {}", entry.mocked.join(", "));
    }
    if entry.is_provisional() {
        text += &format!("; planned again after {}", named(entry));
    }
    text
}

fn named(entry: &PlanEntry) -> String {
    let WorkBefore { stacks, has_more } = &entry.after;
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

/// Returns whether an entry is worth a line: it has an action, a problem or drift.
fn is_shown(entry: &PlanEntry) -> bool {
    entry.action != PlannedAction::NoOp
        || entry.blocked.is_some()
        || entry.is_undecided()
        || entry.previous_path.is_some()
        || entry.has_drifted
}

/// Returns the rows to print, and the stacks that failed after them.
fn shown_rows(plan: &Plan) -> impl Iterator<Item = Row<'_>> {
    let rows = plan.rows().into_iter().filter(|row| is_shown(row.entry));
    let failed = plan.failed.iter().map(Row::Failed);
    rows.map(Row::Entry).chain(failed)
}
