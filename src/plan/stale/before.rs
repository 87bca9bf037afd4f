//! Stacks whose predecessors have changed since a plan was made.

use std::collections::{BTreeMap, VecDeque};

use super::{DoneOperations, OperationKey, PlanFacts, Stale, is_of_plan, mark, serial};
use crate::path::StackPath;
use crate::plan::saved::SavedPlan;
use crate::project::stack::StackIndex;
use crate::selection::graph::{Precedence, SearchDirection};

/// For each stack, one that it runs after, directly or not, and that others have changed since.
#[derive(Debug, Default)]
pub(super) struct ChangedBefore {
    /// By node of the graph; empty if nothing has changed.
    of_node: Vec<Option<StackIndex>>,
}

impl ChangedBefore {
    fn get(&self, stack: StackIndex) -> Option<StackIndex> {
        self.of_node.get(stack.get()).copied().flatten()
    }
}

impl PlanFacts<'_> {
    /// Returns the marks of stacks in a run that was in progress when the plan was made, or had
    /// been killed. Removing the run's lock does not change them.
    pub fn unfinished(&self) -> BTreeMap<StackPath, String> {
        let lock = self
            .present
            .document
            .and_then(|document| document.lock.as_ref());
        let Some(lock) = lock else {
            return BTreeMap::new();
        };
        let stacks = self.present.project.stacks.iter();
        let of_run = stacks.filter_map(|(stack, declared)| {
            let entry = self
                .entry(stack)
                .filter(|entry| lock.holders().any(|holder| entry.is_of(&holder.run)))?;
            Some((declared.path.clone(), mark(entry)))
        });
        of_run.collect()
    }

    fn is_newer(&self, saved: &SavedPlan, stack: StackIndex) -> bool {
        let Some(entry) = self.entry(stack) else {
            return false;
        };
        let serial = serial(saved);
        let applied = entry.applied.as_ref().map_or(0, |applied| applied.serial);
        let last = entry.last.as_ref().map_or(0, |last| last.serial);
        let refreshed = entry.refreshed.as_ref().map_or(0, |it| it.serial);
        let is_newer =
            applied > serial || last > serial || refreshed > serial || entry.intent.is_some();
        let path = &self.present.project.stacks[stack].path;
        is_newer && saved.unfinished.get(path) != Some(&mark(entry))
    }

    /// Returns whether others have changed a stack since a plan was made, given its progress.
    fn is_changed(&self, saved: &SavedPlan, progress: &DoneOperations, stack: StackIndex) -> bool {
        let Some(entry) = self.entry(stack) else {
            return false;
        };
        if self.is_tainted_since(saved, entry) {
            return true;
        }
        let path = &self.present.project.stacks[stack].path;
        let is_done = |operation| progress.done.contains(&(path.clone(), operation));
        let is_ours = is_of_plan(entry, &saved.plan.id)
            || progress.is_in_its_runs(entry)
            || is_done(OperationKey::Apply)
            || is_done(OperationKey::Destroy);
        !is_ours && self.is_newer(saved, stack)
    }

    /// Returns for each stack the changes by others before it since a plan was made.
    pub(super) fn changed_before(
        &self,
        saved: &SavedPlan,
        progress: &DoneOperations,
    ) -> ChangedBefore {
        let stacks = self.present.project.stacks.iter().map(|(stack, _)| stack);
        let changed = stacks.filter(|&stack| self.is_changed(saved, progress, stack));
        let mut open: VecDeque<(usize, StackIndex)> =
            changed.map(|stack| (stack.get(), stack)).collect();
        if open.is_empty() {
            return ChangedBefore::default();
        }
        let precedence = Precedence::new(self.present.graph);
        let mut of_node = vec![None; precedence.n_nodes()];
        while let Some((node, changed)) = open.pop_front() {
            for successor in precedence.successors(node) {
                let next = successor.node as usize;
                if of_node[next].is_none() {
                    of_node[next] = Some(changed);
                    open.push_back((next, changed));
                }
            }
        }
        ChangedBefore { of_node }
    }

    /// Checks the stacks that one runs after. Others must not have changed them, and its direct
    /// predecessors must still be recorded.
    pub(super) fn check_before(
        &mut self,
        saved: &SavedPlan,
        path: &StackPath,
        stack: StackIndex,
        progress: &DoneOperations,
        changed: &ChangedBefore,
    ) -> Option<Stale> {
        let stacks = &self.present.project.stacks;
        if let Some(changed) = changed.get(stack) {
            let changed = stacks[changed].path.clone();
            return Some(Stale::Before(path.clone(), Some(changed)));
        }
        let planned = saved.stack(path)?.records_before.as_ref();
        if self.records_before(stack).as_ref() == planned {
            return None;
        }
        let graph = self.present.graph;
        let before = graph.relatives(stack, SearchDirection::Dependencies, |it| {
            self.entry(it).is_some()
        });
        let mut before = before.iter().map(|relative| relative.stack);
        let is_destroyed = |done: &(StackPath, OperationKey)| done.1 == OperationKey::Destroy;
        // Operations of the plan, by it or by others, explain the difference.
        let explains = before.any(|before| self.is_newer(saved, before))
            || progress.done.iter().any(is_destroyed);
        (!explains).then(|| Stale::Before(path.clone(), None))
    }
}
