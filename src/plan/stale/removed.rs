//! Whether a plan's entries of removed stacks are still valid.

use super::{
    DoneOperations, OperationKey, PlanFacts, Stale, is_of_plan, last_of_plan, mark,
    record_of_generation,
};
use crate::plan::saved::{SavedPlan, SavedStack};

impl PlanFacts<'_> {
    /// Checks the entry of a stack that is no longer recorded: it was destroyed or forgotten.
    fn check_unrecorded(
        &self,
        saved: &SavedPlan,
        of_stack: &SavedStack,
        progress: &mut DoneOperations,
    ) -> Option<Stale> {
        let path = of_stack.stack.clone();
        if self.is_destroyed(saved, of_stack, progress) {
            progress.done.insert((path, OperationKey::Destroy));
            None
        } else {
            Some(Stale::Record(path))
        }
    }

    /// Checks the entry of a generation that is or becomes old, and adds its progress.
    fn check_generation(
        &self,
        saved: &SavedPlan,
        of_stack: &SavedStack,
        progress: &mut DoneOperations,
    ) -> Option<Stale> {
        let path = of_stack.stack.clone();
        let generation = path.generation()?;
        let current = path.current();
        let entry = self.present.document?.stacks.get(current.as_str());
        let Some(entry) = entry else {
            return self.check_unrecorded(saved, of_stack, progress);
        };
        let Some(old) = entry.of_generation(generation) else {
            progress.done.insert((path, OperationKey::Destroy));
            return None;
        };
        let is_replaced = saved
            .plan
            .entry(&current)
            .is_some_and(|entry| entry.generation.is_some());
        if entry.generation == generation && !is_replaced {
            return Some(Stale::Back(path));
        }
        let is_same = of_stack.record.as_ref() == Some(&record_of_generation(&old));
        (!is_same).then_some(Stale::Record(path))
    }

    /// Checks the entry of a removed stack, which needs proof at HEAD, and adds its progress.
    pub(super) fn check_removed(
        &self,
        saved: &SavedPlan,
        of_stack: &SavedStack,
        progress: &mut DoneOperations,
    ) -> Option<Stale> {
        let path = of_stack.stack.clone();
        let plan = saved.plan.id.as_str();
        if self.stack(&path).is_some() {
            return Some(Stale::Back(path));
        }
        let Some(document) = self.present.document else {
            return Some(Stale::Record(path));
        };
        if path.generation().is_some() {
            return self.check_generation(saved, of_stack, progress);
        }
        let Some(entry) = document.stacks.get(path.as_str()) else {
            return self.check_unrecorded(saved, of_stack, progress);
        };
        progress.has_begun |= last_of_plan(entry, plan).is_some();
        if Some(mark(entry)) != of_stack.record && !is_of_plan(entry, plan) {
            return Some(Stale::Record(path));
        }
        let missing = self.present.missing.and_then(|it| it.get(path.as_str()));
        match missing.map(|missing| &missing.evidence) {
            // It is recorded as a stack of this commit.
            None => Some(Stale::Back(path)),
            Some(Err(none)) => Some(Stale::NotRemoved(path, none.to_string())),
            Some(Ok(removal)) => {
                let leaves = removal.by.leaving().is_some();
                let entries = &saved.plan.entries;
                let planned = entries
                    .binary_search_by(|entry| entry.stack.cmp(&path))
                    .ok()
                    .and_then(|at| entries[at].removed.as_ref());
                let is_as_planned = planned.is_some_and(|planned| planned.leaves() == leaves);
                (!is_as_planned).then(|| Stale::Inputs(path, "its `removed` block".to_owned()))
            }
        }
    }
}
