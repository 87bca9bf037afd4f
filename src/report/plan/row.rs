//! A row of a plan: the cells that text and Markdown share.

use std::borrow::Cow;

use super::{action, counts_text, reason, sign};
use crate::driver::ChangeCounts;
use crate::path::StackPath;
use crate::plan::checks::FailedCondition;
use crate::plan::entry::{PlanEntry, PlannedAction};
use crate::plan::{FailedAsk, PlanRow};

/// How many conditions of a stack are printed.
const MAX_CONDITIONS: usize = 5;

#[derive(Debug, Clone, Copy)]
pub(super) enum Row<'a> {
    Failed(&'a FailedAsk),
    Entry(PlanRow<'a>),
}

impl<'a> Row<'a> {
    pub(super) fn stack(&self) -> &'a StackPath {
        match self {
            Row::Failed(failed) => &failed.stack,
            Row::Entry(row) => &row.entry.stack,
        }
    }

    pub(super) fn sign(&self) -> &'static str {
        match self {
            Row::Failed(_) => "!",
            Row::Entry(row) => sign(row.entry),
        }
    }

    pub(super) fn action_and_reason(&self) -> (Cow<'static, str>, String) {
        match self {
            Row::Failed(failed) if failed.conditions.is_empty() => {
                ("failed".into(), failed.why.clone())
            }
            Row::Failed(failed) => {
                let conditions: Vec<String> = failed
                    .conditions
                    .iter()
                    .take(MAX_CONDITIONS)
                    .map(condition_text)
                    .collect();
                let more = failed.conditions.len().saturating_sub(MAX_CONDITIONS);
                let more = match more {
                    0 => String::new(),
                    more => format!("; and {more} more"),
                };
                ("failed".into(), conditions.join("; ") + &more)
            }
            Row::Entry(PlanRow { entry, .. }) => match &entry.blocked {
                Some(why) => ("blocked".into(), why.clone()),
                None => (action(entry), reason(entry)),
            },
        }
    }

    /// Returns whether the plan of its tool shows the changes.
    pub(super) fn shows_plan(&self) -> bool {
        match self {
            Row::Failed(_) => false,
            Row::Entry(PlanRow { entry, .. }) => {
                let is_decided = entry.blocked.is_none() && !entry.is_undecided();
                is_decided && entry.action != PlannedAction::Adopt
            }
        }
    }

    /// Returns the numbers of resources, if they are known and worth printing; `outputs only` if
    /// nothing else changes.
    pub(super) fn counts(&self) -> Option<String> {
        match self {
            Row::Entry(row) if row.entry.blocked.is_none() && !row.entry.is_undecided() => {
                let counts = row.entries().map(PlanEntry::resource_counts);
                let sum = counts.reduce(|sum, more| {
                    let (sum, more) = (sum?, more?);
                    Some(ChangeCounts {
                        add: sum.add + more.add,
                        change: sum.change + more.change,
                        remove: sum.remove + more.remove,
                    })
                });
                let sum = sum.flatten()?;
                let is_quiet = sum == ChangeCounts::default()
                    && row.entries().all(|entry| entry.resources.is_empty());
                let mut entries = row.entries();
                let has_outputs = entries.any(|entry| !entry.changed_outputs.is_empty());
                Some(if is_quiet && has_outputs && row.action().is_work() {
                    "outputs only".to_owned()
                } else {
                    counts_text(&sum)
                })
            }
            _ => None,
        }
    }
}

/// Describes a condition that does not hold: its place, and the values of the names in it.
fn condition_text(condition: &FailedCondition) -> String {
    let FailedCondition {
        file,
        line,
        message,
        values,
        ..
    } = condition;
    let values = values
        .iter()
        .map(|value| format!(", {}: {}", value.expression, value.text));
    format!("{message} ({file}:{line}{})", values.collect::<String>())
}
