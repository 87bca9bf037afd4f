//! The progress of a plan, as far as the state shows it.

use std::collections::{BTreeMap, BTreeSet};

use super::{CurrentFacts, DoneOperations, LastRun, OperationKey, PlanFacts};
use super::{is_of_plan, is_up_to_date, last_of_plan, mark, same, serial};
use crate::context::used_outputs::{UsedDigests, UsedOutputs};
use crate::plan::entry::{PlanEntry, PlanMode, PlannedAction};
use crate::plan::saved::{SavedPlan, SavedStack};
use crate::plan::triggers::recorded_trigger;
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::selection::graph::{SearchDirection, Wave};
use crate::selection::reference::{Reference, ReferenceKind};
use crate::state::document::{Document, Entry, RunAction as Written, Write};

/// Returns the keys of stacks whose last operation failed in a run of the plan, but not as part of
/// the plan. Runs with journals in `here` do not count: the journals are more precise.
pub fn failed_beside<'d>(document: &'d Document, plan: &str, here: &[String]) -> Vec<&'d str> {
    let run_of = |entry: &Entry| -> Option<String> {
        let intent = entry.intent.as_ref().map(|intent| intent.run.clone());
        intent.or_else(|| entry.last.as_ref()?.run.clone())
    };
    let entries = document.stacks.values();
    let ours = entries.filter(|entry| is_of_plan(entry, plan));
    let runs: BTreeSet<String> = ours.filter_map(run_of).collect();
    let is_beside = |(_, entry): &(&String, &Entry)| {
        !is_up_to_date(entry)
            && !is_of_plan(entry, plan)
            && run_of(entry).is_some_and(|run| runs.contains(&run) && !here.contains(&run))
    };
    let beside = document.stacks.iter().filter(is_beside);
    beside.map(|(key, _)| key.as_str()).collect()
}

/// Returns the last run of a plan, as far as the state has it.
pub fn last_run(document: &Document, plan: &str) -> Option<LastRun> {
    let of_plan = document.stacks.values().filter_map(|entry| {
        let last = entry.last.as_ref().filter(|_| is_of_plan(entry, plan))?;
        Some((last.at, last.run.as_ref()?))
    });
    let (at, run) = of_plan.max()?;
    Some(LastRun {
        run: run.clone(),
        at,
        has_succeeded: false,
    })
}

impl PlanFacts<'_> {
    /// Adds the operations that are done according to the state: by this plan, or equal ones by
    /// others.
    pub(super) fn add_done(
        &self,
        saved: &SavedPlan,
        of_stack: &SavedStack,
        stack: StackIndex,
        action: PlannedAction,
        progress: &mut DoneOperations,
    ) {
        if self.present.document.is_none() {
            return;
        }
        let plan = &saved.plan.id;
        let path = &of_stack.stack;
        let destroys = destroys(saved, action);
        let Some(entry) = self.entry(stack) else {
            if destroys && self.is_destroyed(saved, of_stack, progress) {
                progress.done.insert((path.clone(), OperationKey::Destroy));
            }
            return;
        };
        let mut add = |operation| progress.done.insert((path.clone(), operation));
        if saved.plan.mode == PlanMode::RefreshOnly && action != PlannedAction::Read {
            // No other run can have done it: a later apply leaves a different state of the tool.
            let refreshed = entry.refreshed.as_ref();
            if refreshed.is_some_and(|it| it.plan.as_deref() == Some(plan)) {
                add(OperationKey::Apply);
                progress.has_begun = true;
            }
            progress.has_begun |= last_of_plan(entry, plan).is_some();
            return;
        }
        let applied = entry.applied.as_ref();
        let is_ours = applied.is_some_and(|applied| applied.plan.as_deref() == Some(plan));
        let last = last_of_plan(entry, plan);
        if last == Some(&Written::Apply) {
            // A replaced stack is destroyed first.
            if action == PlannedAction::Replace && (is_ours || applied.is_none()) {
                add(OperationKey::Destroy);
            }
            // A part that the plan was limited to is done as well.
            if (is_up_to_date(entry) || entry.is_unknown()) && entry.tainted.is_none() {
                add(OperationKey::Apply);
            }
        }
        progress.has_begun |= is_ours || last.is_some();
        if last.is_some() || destroys || entry.tainted.is_some() {
            return;
        }
        if Some(mark(entry)) == of_stack.record {
            return;
        }
        let inputs = applied.and_then(|applied| applied.inputs.as_ref());
        let is_same = inputs.is_some_and(|inputs| same(of_stack.inputs.as_ref(), inputs));
        // A run that has accepted drift since has applied nothing.
        let refreshed = entry.refreshed.as_ref();
        let is_refreshed = refreshed.is_some_and(|it| it.serial > serial(saved));
        if is_same && is_up_to_date(entry) && !is_refreshed {
            progress.done.insert((path.clone(), OperationKey::Apply));
        }
    }

    /// Returns whether an unrecorded stack was destroyed since the plan was made. An entry can also
    /// be removed without a destroy.
    pub(super) fn is_destroyed(
        &self,
        saved: &SavedPlan,
        of_stack: &SavedStack,
        progress: &DoneOperations,
    ) -> bool {
        let destroy = (of_stack.stack.clone(), OperationKey::Destroy);
        if progress.journaled.contains(&destroy) {
            return true;
        }
        let (Some(document), Some(_)) = (self.present.document, &of_stack.record) else {
            return false;
        };
        let serial = serial(saved);
        let history = &document.history;
        let is_known = history.first().is_some_and(|first| first.serial <= serial);
        let mut since = history.iter().filter(|write| write.serial > serial);
        let forgets = since.clone().any(Write::forgets);
        // A killed run has not yet recorded which stacks it destroyed.
        let destroys = document.lock.is_some() || since.any(|write| write.destroyed > 0);
        is_known && !forgets && destroys
    }

    /// Adds the entries without work of a started plan: their records are unchanged.
    pub(super) fn add_silent(
        &mut self,
        saved: &SavedPlan,
        here: &[(&SavedStack, StackIndex)],
        progress: &mut DoneOperations,
    ) {
        let plan = saved.plan.id.as_str();
        let of_plan = |&(_, stack): &(&SavedStack, StackIndex)| {
            self.entry(stack)
                .is_some_and(|entry| is_of_plan(entry, plan))
        };
        // If drift was not accepted yet, the record has not changed.
        if saved.plan.mode == PlanMode::RefreshOnly || !here.iter().any(of_plan) {
            return;
        }
        let has_ended = |entry: &PlanEntry| {
            let done = |operation| progress.done.contains(&(entry.stack.clone(), operation));
            match entry.action {
                PlannedAction::Delete => done(OperationKey::Destroy),
                _ => !entry.action.is_work() || done(OperationKey::Apply),
            }
        };
        let all_have_ended = saved.plan.entries.iter().all(has_ended);
        let mut silent = Vec::new();
        // Undecided entries that are not done, and whether their records are unchanged.
        let mut undecided: BTreeMap<StackIndex, (&PlanEntry, bool)> = BTreeMap::new();
        for &(of_stack, stack) in here {
            let key = (of_stack.stack.clone(), OperationKey::Apply);
            let entry = saved.plan.entry(&of_stack.stack);
            let Some(entry) = entry.filter(|it| !it.action.is_work()) else {
                continue;
            };
            if progress.done.contains(&key) {
                continue;
            }
            let is_unchanged = self.record(stack) == of_stack.record;
            if entry.is_undecided() {
                undecided.insert(stack, (entry, is_unchanged));
            } else if is_unchanged && !self.present.records_last {
                // Such entries are recorded before anything else happens.
                silent.push(key);
            }
        }
        let graph = self.present.graph;
        let mut in_order: Vec<StackIndex> = undecided.keys().copied().collect();
        if !in_order.is_empty() {
            let waves = graph.waves(|stack| undecided.contains_key(&stack));
            in_order.sort_by_key(|stack| match waves[stack.get()] {
                Wave::Number(number) => number,
                Wave::AfterCycle | Wave::InCycle => u32::MAX,
            });
        }
        let mut open: BTreeSet<StackIndex> = BTreeSet::new();
        for stack in in_order {
            let (entry, is_unchanged) = undecided[&stack];
            let after = &entry.after;
            let mut named = after
                .stacks
                .iter()
                .filter_map(|path| saved.plan.entry(path));
            let is_decided = all_have_ended || !after.has_more && named.all(has_ended);
            // A stack that failed to plan also leaves the records of later stacks unchanged.
            let is_waiting = || {
                let before = graph.relatives(stack, SearchDirection::Dependencies, |it| {
                    undecided.contains_key(&it)
                });
                before.iter().any(|relative| open.contains(&relative.stack))
            };
            let is_decided = is_decided && self.uses_current_generations(stack);
            let is_silent = is_unchanged && is_decided && !self.is_triggered(entry, stack);
            if is_silent && !is_waiting() && self.has_its_outputs(stack, plan) {
                silent.push((entry.stack.clone(), OperationKey::Apply));
            } else {
                open.insert(stack);
            }
        }
        progress.done.extend(silent);
    }

    /// Returns whether a trigger that its plan leaves open has fired, or may have.
    fn is_triggered(&self, entry: &PlanEntry, stack: StackIndex) -> bool {
        let applied = self.entry(stack).and_then(|entry| entry.applied.as_ref());
        let Some(applied) = applied.filter(|_| !entry.replaced_if.is_empty()) else {
            return false;
        };
        let CurrentFacts {
            project: Project { stacks, .. },
            references,
            ..
        } = self.present;
        let is_trigger =
            |it: &&Reference| it.from == stack && it.kind == ReferenceKind::ReplaceTriggeredBy;
        let mut triggers = references.list.iter().filter(is_trigger);
        triggers.any(|reference| {
            let mut named = references.named(reference, stacks).into_iter();
            named.any(|named| {
                let (Some(key), Some(entry)) = (self.key(named), self.entry(named)) else {
                    return false;
                };
                let of_named = (&stacks[named], key, entry);
                recorded_trigger(applied, reference, of_named, entry.known_outputs()).is_some()
            })
        })
    }

    /// Returns whether the generations that it was applied with are still current.
    fn uses_current_generations(&self, stack: StackIndex) -> bool {
        let applied = self.entry(stack).and_then(|entry| entry.applied.as_ref());
        let mut used = applied.iter().flat_map(|applied| &applied.generations);
        used.all(|(key, generation)| {
            let now = self.present.document.and_then(|it| it.stacks.get(key));
            now.is_none_or(|now| now.generation == *generation)
        })
    }

    /// Returns whether it was applied with the recorded outputs, so that no new plan has failed.
    fn has_its_outputs(&mut self, stack: StackIndex, plan: &str) -> bool {
        let CurrentFacts {
            project,
            graph,
            document: Some(document),
            ..
        } = self.present
        else {
            return false;
        };
        let before = graph.relatives(stack, SearchDirection::Dependencies, |it| {
            self.entry(it).is_some()
        });
        let is_known = before.iter().all(|relative| {
            let entry = self.entry(relative.stack);
            entry.is_some_and(|entry| entry.known_outputs().is_some() || !is_of_plan(entry, plan))
        });
        let applied = self.entry(stack).and_then(|entry| entry.applied.as_ref());
        let Some(before) = applied.and_then(UsedDigests::of) else {
            return false;
        };
        let pairs = self.pairs.as_ref();
        let used = self.outputs.get_or_insert_with(|| {
            UsedOutputs::new(project, graph, |stack| {
                document.stacks[pairs?.key(stack)?].outputs.as_ref()
            })
        });
        is_known && used.differences(stack, &before).is_none()
    }
}

/// Returns whether the entry of a stack destroys it, to replace it or permanently.
pub(super) fn destroys(saved: &SavedPlan, action: PlannedAction) -> bool {
    let is_missing = saved.plan.mode == PlanMode::Destroy && action == PlannedAction::NoOp;
    is_missing || matches!(action, PlannedAction::Delete | PlannedAction::Replace)
}
