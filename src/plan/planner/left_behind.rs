//! Finds the stacks that a destroy keeps although they depend on destroyed ones.

use std::collections::{BTreeMap, BTreeSet};

use super::Drivers;
use crate::context::Context;
use crate::error::Error;
use crate::notice::Notices;
use crate::path::StackPath;
use crate::plan::entry::{PlanEntry, PlannedAction};
use crate::plan::order::NamedConstraints;
use crate::plan::removal::is_only_forgotten;
use crate::plan::{DestroyOutcome, LeftBehind, Plan, left_behind};
use crate::printable::printable;
use crate::project::stack::{StackIndex, StackMode};
use crate::state::document::Document;

const MAX_NAMED: usize = 10;

impl Context {
    /// Returns the kept stacks, by path, that run after destroyed ones.
    ///
    /// With a state, recorded stacks exist, even after a failed apply. Without one, every stack
    /// with a driver exists. A stack that the plan found missing does not exist. Stacks with the
    /// driver `none`, and stacks that are only read, are never destroyed.
    pub fn left_behind(&self, plan: &Plan, document: Option<&Document>) -> Vec<LeftBehind> {
        let stacks = &self.project.stacks;
        let mut destroyed = BTreeSet::new();
        let mut is_found = BTreeMap::new();
        for entry in &plan.entries {
            let Some(stack) = stacks.find(&entry.stack) else {
                continue;
            };
            if entry.action == PlannedAction::Delete && entry.blocked.is_none() {
                destroyed.insert(stack);
            }
            is_found.insert(stack, entry.blocked.is_some());
        }
        let is_missing =
            |entry: &PlanEntry| entry.removed.is_some() && entry.action == PlannedAction::Delete;
        if destroyed.is_empty() && !plan.entries.iter().any(is_missing) {
            return Vec::new();
        }
        let drivers = Drivers::new(self, document);
        let exists = |stack: StackIndex| {
            let driver = drivers.of(stack);
            if stacks[stack].mode == StackMode::Read || driver.is_some_and(|it| it.is_none()) {
                return false;
            }
            // The tools of blocked stacks were not asked.
            is_found.get(&stack).copied().unwrap_or(true)
                && match document {
                    Some(_) => drivers.entry(stack).is_some(),
                    None => driver.is_some(),
                }
        };
        let fate = |stack| {
            if destroyed.contains(&stack) {
                DestroyOutcome::Destroyed
            } else if exists(stack) {
                DestroyOutcome::Kept
            } else {
                DestroyOutcome::Missing
            }
        };
        let record = NamedConstraints::new(&self.project, &self.graph, document);
        let of_gone = |key: &str| {
            let entry = StackPath::parse(key).and_then(|path| plan.entry(&path));
            let action = entry.filter(|it| it.blocked.is_none()).map(|it| it.action);
            let recorded = document.and_then(|document| document.stacks.get(key));
            match action {
                Some(PlannedAction::Delete) => DestroyOutcome::Destroyed,
                Some(PlannedAction::Forget) => DestroyOutcome::Missing,
                _ if recorded.is_some_and(is_only_forgotten) => DestroyOutcome::Missing,
                _ => DestroyOutcome::Kept,
            }
        };
        left_behind(&self.project, &self.graph, &record, fate, of_gone)
    }
}

/// The fix if a stack is kept.
const FIX: &str = "add `--include-dependents` to destroy them too; if they no longer exist, run `orch state forget`";

/// Refuses the apply if any stack is kept.
pub fn refuse_left_behind(left_behind: &[LeftBehind]) -> Option<Error> {
    let first = left_behind.first()?;
    let (kept, destroyed) = (printable(&first.kept), printable(&first.destroyed));
    let dependents = left_behind
        .iter()
        .filter(|it| it.destroyed == first.destroyed)
        .count();
    let depend = match dependents - 1 {
        0 => format!("`{kept}` depends on it"),
        more => format!("{dependents} stacks depend on it: `{kept}` and {more} more"),
    };
    let others = match left_behind.len() - dependents {
        0 => String::new(),
        more => format!("; {more} more stacks depend on others that would be destroyed"),
    };
    let what = format!("cannot destroy `{destroyed}`: {depend}{others}");
    Some(Error::refused(what).hint(FIX))
}

pub fn warn_of_left_behind(notices: &Notices, left_behind: &[LeftBehind]) {
    for LeftBehind { kept, destroyed } in left_behind.iter().take(MAX_NAMED) {
        let (kept, destroyed) = (printable(kept), printable(destroyed));
        notices.warning(&format!(
            "`{kept}` depends on `{destroyed}`, which would be destroyed: an apply is refused"
        ));
    }
    if let Some(more @ 1..) = left_behind.len().checked_sub(MAX_NAMED) {
        notices.warning(&format!(
            "{more} more stacks are kept and depend on destroyed ones"
        ));
    }
    if !left_behind.is_empty() {
        notices.help(FIX);
    }
}
