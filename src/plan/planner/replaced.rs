//! `--replace`: the stacks that it names, and those on which it has no effect.

use std::collections::BTreeSet;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::plan::entry::{PlanEntry, PlannedAction};
use crate::printable::printable;
use crate::project::stack::StackIndex;
use crate::project::tag::TagFilter;
use crate::selection::select::{PathFilter, Selection};

const MOST: usize = 10;

impl Context {
    /// Resolves `--replace`. Fails if a reference matches no selected stack.
    pub fn named_by(
        &self,
        written: &[String],
        selection: &Selection,
    ) -> Result<BTreeSet<StackIndex>> {
        let mut named = BTreeSet::new();
        for text in written {
            let wrong = |problem: &dyn std::fmt::Display| {
                Error::usage(format!("in --replace: `{text}`: {problem}"))
            };
            let stacks = self.project.stacks.iter();
            let mut found: Vec<StackIndex> = if let Some(tags) = text.strip_prefix("tag:") {
                let filter = TagFilter::parse(tags).map_err(|bad| wrong(&bad))?;
                let found = stacks.filter(|(_, stack)| filter.matches(|tag| stack.has_tag(tag)));
                found.map(|(stack, _)| stack).collect()
            } else {
                let filter = PathFilter::new(&self.directory, text).map_err(|bad| wrong(&bad))?;
                let found = stacks.filter(|(_, stack)| filter.matches(&stack.path));
                found.map(|(stack, _)| stack).collect()
            };
            if found.is_empty() {
                let is_path = !text.starts_with("tag:");
                let meant = is_path.then(|| self.meant_path("--replace", text));
                let meant = meant.unwrap_or_default();
                return Err(Error::usage(format!(
                    "in --replace: no stack `{text}`{meant}"
                )));
            }
            found.retain(|stack| selection.contains(*stack));
            if found.is_empty() {
                return Err(
                    Error::usage(format!("in --replace: `{text}` is not selected"))
                        .hint("select the stack too, or remove `--replace`"),
                );
            }
            named.extend(found);
        }
        Ok(named)
    }

    pub(super) fn warn_of_kept(&self, plan: &Plan, replaced: &BTreeSet<StackIndex>) {
        let kept = replaced.iter().filter_map(|stack| {
            let path = &self.project.stacks[*stack].path;
            let why = match plan.entry(path) {
                Some(entry) => kept_because(entry)?,
                // Stacks that fail to plan are reported separately.
                None if plan.failed.iter().any(|failed| failed.stack == *path) => return None,
                None => "it has no driver".to_owned(),
            };
            Some((path, why))
        });
        let kept: Vec<_> = kept.collect();
        for (path, why) in kept.iter().take(MOST) {
            self.notices.warning(&format!(
                "`--replace` has no effect on `{}`: {}",
                printable(path.as_str()),
                printable(why)
            ));
        }
        if let Some(more @ 1..) = kept.len().checked_sub(MOST) {
            self.notices
                .warning(&format!("`--replace` has no effect on {more} more stacks"));
        }
    }
}

/// Returns why an entry is not replaced, if so.
fn kept_because(entry: &PlanEntry) -> Option<String> {
    if let Some(why) = &entry.blocked {
        return Some(format!("it is blocked ({why})"));
    }
    Some(match entry.action {
        PlannedAction::Replace => return None,
        PlannedAction::Create => "the plan creates it".to_owned(),
        PlannedAction::Delete => "the plan deletes it".to_owned(),
        PlannedAction::Read => "it is only read".to_owned(),
        _ if !entry.is_planned => {
            "its tool failed; if the apply plans it again, nothing is replaced".to_owned()
        }
        _ => entry.reason.text.clone(),
    })
}
