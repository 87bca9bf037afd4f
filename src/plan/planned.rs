//! The plan: all entries, and what is known of how they were made.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::{Action, PlanEntry, PlanMode};
use crate::change::AppliedBase;
use crate::path::StackPath;
use crate::project::stack::StackIndex;
use crate::selection::graph::{Graph, Towards};

/// What an apply would do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its id: that of the run that has made it.
    pub id: String,
    /// What it was made for.
    pub mode: PlanMode,
    /// The commit of HEAD.
    pub commit: Option<String>,
    /// The document that it was made with.
    pub state: Option<AppliedBase>,
    /// The entries, by path.
    pub entries: Vec<PlanEntry>,
    /// The stacks whose tools failed.
    pub failed: Vec<FailedAsk>,
    /// How many selected stacks have no driver.
    pub without_driver: usize,
}

/// A stack whose tool could not say what it would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAsk {
    /// The stack.
    pub stack: StackPath,
    /// Why.
    pub why: String,
}

impl Plan {
    /// Returns whether there is anything to apply.
    pub fn is_applyable(&self) -> bool {
        let is_work = |entry: &PlanEntry| entry.blocked.is_none() && entry.action != Action::NoOp;
        self.failed.is_empty()
            && self.mode != PlanMode::RefreshOnly
            && self.entries.iter().any(is_work)
    }

    /// Returns whether it has everything: nothing failed, is blocked, or was left out by a tool.
    pub fn is_complete(&self) -> bool {
        let is_complete = |entry: &PlanEntry| entry.blocked.is_none() && entry.is_complete;
        self.failed.is_empty() && self.entries.iter().all(is_complete)
    }

    /// Returns whether an entry is something else than a no-op.
    pub fn has_changes(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| {
            entry.action != Action::NoOp || entry.blocked.is_some() || entry.is_undecided()
        })
    }

    /// Returns how many entries have an action and are neither blocked nor undecided.
    pub fn count(&self, action: Action) -> usize {
        let entries = self.entries.iter();
        let settled = entries.filter(|entry| entry.blocked.is_none() && !entry.is_undecided());
        settled.filter(|entry| entry.action == action).count()
    }
}

/// Returns for each stack the stacks with work that it runs after, nearest first through those without.
pub fn conditions(
    graph: &Graph,
    stacks: &[StackIndex],
    working: &BTreeSet<StackIndex>,
) -> BTreeMap<StackIndex, Vec<StackIndex>> {
    let mut conditions = BTreeMap::new();
    if working.is_empty() {
        return conditions;
    }
    // Only these can run after one with work.
    let reached = graph.neighbours(working.iter().copied(), Towards::Dependents, None);
    for &stack in stacks {
        if !reached.contains_key(&stack) {
            continue;
        }
        let before = graph.relatives(stack, Towards::Dependencies, |it| working.contains(&it));
        let before: Vec<StackIndex> = before.into_iter().map(|it| it.stack).collect();
        if !before.is_empty() {
            conditions.insert(stack, before);
        }
    }
    conditions
}
