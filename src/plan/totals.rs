//! Totals of a plan: stacks by action, and changed resources.

use serde::Serialize;

use super::Plan;
use super::entry::{PlanEntry, PlanMode, PlannedAction};
use crate::driver::ChangeCounts;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Each stack counted once.
    pub stacks: StackTotals,
    /// Resources of stacks with work; with `--refresh-only`, the drifted ones.
    pub resources: ResourceTotals,
}

/// Stacks by action. Replaces and deletes are approved by number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct StackTotals {
    pub create: usize,
    pub update: usize,
    pub replace: usize,
    pub delete: usize,
    pub adopt: usize,
    pub read: usize,
    pub forget: usize,
    /// Known only during the apply.
    pub undecided: usize,
    pub failed: usize,
    pub blocked: usize,
    pub drifted: usize,
    pub unchanged: usize,
    pub without_driver: usize,
}

/// Resources by change. A replaced resource counts as created and as destroyed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ResourceTotals {
    pub create: u64,
    pub update: u64,
    pub delete: u64,
    /// Removed from their tool's state, but not destroyed.
    pub forget: u64,
    /// Added to their tool's state.
    pub import: u64,
    /// Moved to another address without changes.
    #[serde(rename = "move")]
    pub moved: u64,
    /// The number of stacks with unknown changes.
    pub unknown_in: usize,
}

impl PlanEntry {
    /// Returns how many resources change, if known. A replaced stack's tool has planned only the
    /// destroy, so each of its resources counts as created again.
    pub fn resource_counts(&self) -> Option<ChangeCounts> {
        let counts = self.counts?;
        if self.action != PlannedAction::Replace || self.generation.is_some() {
            return Some(counts);
        }
        Some(ChangeCounts {
            add: counts.add.max(counts.remove),
            ..counts
        })
    }
}

impl Plan {
    pub fn totals(&self) -> Totals {
        let is_refresh = self.mode == PlanMode::RefreshOnly;
        let mut totals = Totals::default();
        let Totals { stacks, resources } = &mut totals;
        stacks.failed = self.failed.len();
        stacks.without_driver = self.without_driver;
        for row in self.rows() {
            let entry = row.entry;
            let action = row.action();
            let total = match action {
                _ if entry.blocked.is_some() => &mut stacks.blocked,
                _ if entry.is_undecided() => &mut stacks.undecided,
                _ if is_refresh && entry.has_drifted => &mut stacks.drifted,
                PlannedAction::NoOp => &mut stacks.unchanged,
                PlannedAction::Create => &mut stacks.create,
                PlannedAction::Adopt => &mut stacks.adopt,
                PlannedAction::Update => &mut stacks.update,
                PlannedAction::Replace => &mut stacks.replace,
                PlannedAction::Delete => &mut stacks.delete,
                PlannedAction::Read => &mut stacks.read,
                PlannedAction::Forget => &mut stacks.forget,
            };
            *total += 1;
            let is_drift = is_refresh && entry.has_drifted;
            if entry.blocked.is_some() || !(action.is_work() || is_drift) {
                continue;
            }
            for entry in row.entries() {
                let Some(counts) = entry.resource_counts() else {
                    resources.unknown_in += 1;
                    continue;
                };
                resources.create += counts.add;
                resources.update += counts.change;
                resources.delete += counts.remove;
                for resource in &entry.resources {
                    let action = resource.action();
                    match &*action {
                        "forget" => resources.forget += 1,
                        "move" => resources.moved += 1,
                        _ => {}
                    }
                    // Plans of earlier versions have only the action.
                    let is_imported = resource.is_imported || action == "import";
                    resources.import += u64::from(is_imported);
                }
            }
        }
        totals
    }
}

#[cfg(test)]
mod tests;
