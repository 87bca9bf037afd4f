//! Whether what a plan says of stacks still holds that were removed from the tree.

use super::{Grounds, OperationKey, Progress, Stale, is_of_plan, last_of_plan, mark};
use crate::plan::saved::{SavedPlan, SavedStack};

impl Grounds<'_> {
    /// Checks the entry of a stack that was removed, and adds what has been done of it: only with evidence at
    /// HEAD it is destroyed.
    pub(super) fn check_removed(
        &self,
        saved: &SavedPlan,
        of_stack: &SavedStack,
        progress: &mut Progress,
    ) -> Option<Stale> {
        let path = of_stack.stack.clone();
        let plan = saved.plan.id.as_str();
        if self.stack(&path).is_some() {
            return Some(Stale::Back(path));
        }
        let Some(document) = self.present.document else {
            return Some(Stale::Record(path));
        };
        let Some(entry) = document.stacks.get(path.as_str()) else {
            return if self.is_destroyed(saved, of_stack, progress) {
                progress.done.insert((path, OperationKey::Destroy));
                None
            } else {
                Some(Stale::Record(path))
            };
        };
        progress.has_begun |= last_of_plan(entry, plan).is_some();
        if Some(mark(entry)) != of_stack.record && !is_of_plan(entry, plan) {
            return Some(Stale::Record(path));
        }
        let missing = self.present.missing.and_then(|it| it.get(path.as_str()));
        match missing.map(|missing| &missing.evidence) {
            // It is on record as a stack of the tree.
            None => Some(Stale::Back(path)),
            Some(Err(none)) => Some(Stale::NotRemoved(path, none.to_string())),
            Some(Ok(removal)) => {
                let leaves = removal.by.leaving().is_some();
                let entries = &saved.plan.entries;
                let planned = entries.binary_search_by(|entry| entry.stack.cmp(&path));
                let planned = planned.ok().and_then(|at| entries[at].removed.as_ref());
                let is_as_planned = planned.is_some_and(|planned| planned.leaves() == leaves);
                (!is_as_planned).then(|| Stale::Inputs(path, "its `removed` block".to_owned()))
            }
        }
    }
}
