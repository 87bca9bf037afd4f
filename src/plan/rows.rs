//! The rows of a plan: its entries in printing order.

use std::collections::{BTreeMap, HashMap};

use super::Plan;
use super::entry::{PlanEntry, PlannedAction, Removed};
use crate::path::StackPath;

#[derive(Debug, Clone, Copy)]
pub struct PlanRow<'a> {
    pub entry: &'a PlanEntry,
    /// The entry of the old generation, destroyed once the new one exists.
    pub old: Option<&'a PlanEntry>,
}

impl PlanRow<'_> {
    pub fn entries(&self) -> impl Iterator<Item = &PlanEntry> {
        [self.entry].into_iter().chain(self.old)
    }

    /// Returns the action for the whole stack: if its old generation is kept, it is only created.
    pub fn action(&self) -> PlannedAction {
        match self.entry.action {
            PlannedAction::Replace if !self.entry.destroys() && self.old.is_none() => {
                PlannedAction::Create
            }
            action => action,
        }
    }
}

/// The position of an entry in an apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RowPosition {
    /// First, since other stacks use its outputs.
    Read,
    At(usize),
    /// Never applied: at most the state changes.
    None,
    /// Never applied, despite changes.
    Blocked,
}

impl Plan {
    /// Returns the rows: read-only stacks; those with operations in serial order, a replaced stack
    /// at its destroy; those without operations; blocked ones. Ties are broken by path.
    pub fn rows(&self) -> Vec<PlanRow<'_>> {
        let mut turns: HashMap<&StackPath, usize> = HashMap::new();
        for (turn, stack) in self.in_sequence().enumerate() {
            turns.entry(stack).or_insert(turn);
        }
        let turn = |entry: &PlanEntry| match turns.get(&entry.stack) {
            _ if entry.blocked.is_some() => RowPosition::Blocked,
            Some(&turn) => RowPosition::At(turn),
            None if entry.action == PlannedAction::Read => RowPosition::Read,
            None => RowPosition::None,
        };
        let old = self.replaced_generations();
        let is_old = |entry: &PlanEntry| {
            let old = entry
                .stack
                .generation()
                .and(old.get(&entry.stack.current()));
            old.is_some_and(|old| std::ptr::eq(*old, entry))
        };
        let entries = self.entries.iter().filter(|entry| !is_old(entry));
        let mut rows: Vec<PlanRow<'_>> = entries
            .map(|entry| PlanRow {
                entry,
                old: entry.generation.and(old.get(&entry.stack)).copied(),
            })
            .collect();
        rows.sort_by_key(|row| turn(row.entry));
        rows
    }

    /// Returns the stacks of operations and undecided entries in serial order, some of them twice.
    fn in_sequence(&self) -> impl Iterator<Item = &StackPath> {
        let is_whole = !self.sequence.is_empty();
        let operations = self
            .operations
            .iter()
            .filter(move |_| !is_whole)
            .map(|operation| &operation.stack);
        self.sequence.iter().chain(operations)
    }

    /// Returns the generations that this plan replaces, by stack.
    fn replaced_generations(&self) -> BTreeMap<StackPath, &PlanEntry> {
        let old = self.entries.iter().filter_map(|entry| {
            let Some(Removed::Replaced { by }) = entry.removed else {
                return None;
            };
            let stack = entry.stack.current();
            let made = self.entry(&stack)?.generation;
            (entry.action == PlannedAction::Delete && made == Some(by)).then_some((stack, entry))
        });
        old.collect()
    }
}

#[cfg(test)]
pub(super) mod tests;
