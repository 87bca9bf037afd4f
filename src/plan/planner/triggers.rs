//! Stacks that `replace_triggered_by` replaces because others change.

use std::collections::{BTreeMap, BTreeSet};

use super::entries::Decisions;
use super::subjects::{Drivers, StacksToPlan};
use crate::context::Context;
use crate::driver::are_incomparable;
use crate::plan::entry::{PlanMode, PlanReason, PlannedAction, ReasonSource};
use crate::plan::triggers::{ReplaceCause, TriggerFacts, TriggerOutlook, triggered};
use crate::project::stack::{StackIndex, StackMode};
use crate::state::document::{Document, Entry};

struct PlannedFacts<'a> {
    context: &'a Context,
    drivers: Drivers<'a, 'a>,
    courses: BTreeMap<StackIndex, TriggerOutlook>,
    /// The existing stacks, if the state does not have them.
    existing: Option<BTreeSet<StackIndex>>,
    /// The stacks whose tools have not answered.
    unanswered: BTreeSet<StackIndex>,
    /// The present outputs that differ from the recorded ones.
    outputs: &'a BTreeMap<StackIndex, Option<BTreeMap<String, String>>>,
}

impl PlannedFacts<'_> {
    /// Returns the digest of an output that a stack was applied with, if it was known.
    fn noted(&self, from: StackIndex, named: StackIndex, output: &str) -> Option<&str> {
        let applied = self.entry(from)?.applied.as_ref()?;
        let (key, _) = self.drivers.entry(named)?;
        let noted = applied.triggered_by.get(&format!("{key}#{output}"))?;
        Some(noted)
    }

    /// Returns the digest of an output as it is now, if that is known.
    fn output(&self, named: StackIndex, output: &str) -> Option<&str> {
        let outputs = match self.outputs.get(&named) {
            Some(present) => present.as_ref()?,
            None => self.entry(named)?.known_outputs()?,
        };
        Some(outputs.get(output).map_or("", String::as_str))
    }

    /// Returns whether an output that triggers a replacement may be unchanged.
    fn is_unsure(&self, from: StackIndex, trigger: &ReplaceCause<'_>) -> bool {
        let output = trigger.output.filter(|_| trigger.is_past);
        output.is_some_and(|output| {
            let noted = self.noted(from, trigger.stack, output);
            let now = self.output(trigger.stack, output);
            noted
                .zip(now)
                .is_none_or(|(noted, now)| are_incomparable(noted, now))
        })
    }

    fn entry(&self, stack: StackIndex) -> Option<&Entry> {
        self.drivers.entry(stack).map(|(_, entry)| entry)
    }
}

impl TriggerFacts for PlannedFacts<'_> {
    fn outlook(&self, stack: StackIndex) -> TriggerOutlook {
        self.courses
            .get(&stack)
            .copied()
            .unwrap_or(TriggerOutlook::Unchanged)
    }

    fn may_be_replaced(&self, stack: StackIndex) -> bool {
        let is_here = self.context.project.stacks[stack].mode == StackMode::Manage;
        let is_applied = match &self.existing {
            Some(existing) => existing.contains(&stack),
            None => self.entry(stack).is_some_and(|it| it.applied.is_some()),
        };
        is_here && is_applied && self.courses.contains_key(&stack)
    }

    fn changed(&self, stack: StackIndex) -> Option<u64> {
        self.entry(stack)?.may_have_changed()
    }

    fn applied(&self, stack: StackIndex) -> Option<u64> {
        let applied = self.entry(stack)?.applied.as_ref()?;
        Some(applied.serial)
    }

    fn output_differs(&self, from: StackIndex, named: StackIndex, output: &str) -> bool {
        match (self.noted(from, named, output), self.output(named, output)) {
            (Some(noted), Some(now)) => noted != now,
            // A tool that has yet to answer may print it.
            (Some(_), None) => !self.unanswered.contains(&named),
            // An attempt may have changed an output that is unknown since.
            (None, _) => {
                let attempted = self.entry(named).and_then(|named| named.attempted);
                attempted > self.applied(from)
            }
        }
    }
}

impl Context {
    /// Finds the stacks that are replaced because others change, and records the reasons. Returns
    /// those that would not be replaced otherwise. `settled`: the actions without triggers.
    pub(super) fn find_triggered(
        &self,
        subjects: &mut StacksToPlan<'_>,
        settled: &Decisions,
        document: Option<&Document>,
        mode: PlanMode,
    ) -> Vec<StackIndex> {
        if mode != PlanMode::Normal {
            return Vec::new();
        }
        let actions: BTreeMap<StackIndex, PlannedAction> = settled.actions().collect();
        let drivers = Drivers::new(self, document);
        let exists = |(stack, action): (&StackIndex, &PlannedAction)| {
            let exists = matches!(
                action,
                PlannedAction::NoOp | PlannedAction::Update | PlannedAction::Replace
            );
            exists.then_some(*stack)
        };
        let existing = document
            .is_none()
            .then(|| actions.iter().filter_map(exists).collect());
        let is_tainted = |stack: StackIndex| {
            let entry = drivers.entry(stack);
            entry.is_some_and(|(_, entry)| entry.tainted.is_some())
        };
        let courses = subjects.all.iter().map(|subject| {
            let action = actions.get(&subject.stack);
            let course = match action {
                _ if subject.blocked.is_some() => TriggerOutlook::Unchanged,
                Some(PlannedAction::Update | PlannedAction::Replace) => TriggerOutlook::Changes,
                Some(PlannedAction::Create | PlannedAction::Delete) => TriggerOutlook::Work,
                // A stack without a tool changes with its inputs, or on request.
                _ if subject.driver.is_none() => {
                    if settled.differs(subject.stack) || is_tainted(subject.stack) {
                        TriggerOutlook::Changes
                    } else {
                        TriggerOutlook::Unchanged
                    }
                }
                _ => TriggerOutlook::Open,
            };
            (subject.stack, course)
        });
        let courses = courses.collect();
        let known = PlannedFacts {
            context: self,
            drivers,
            courses,
            existing,
            unanswered: settled.unknown().collect(),
            outputs: &subjects.outputs,
        };
        let stacks = &self.project.stacks;
        let found = triggered(stacks, &self.graph, &self.references, &known);
        let mut replaced = Vec::new();
        for subject in &mut subjects.all {
            if subject.blocked.is_some() || subject.driver.is_none() {
                continue;
            }
            if let Some(trigger) = found.fired.get(&subject.stack) {
                let is_replaced = found.fired.contains_key(&trigger.stack);
                let is_unsure = known.is_unsure(subject.stack, trigger);
                let named = known.entry(trigger.stack);
                let is_unsure = is_unsure || named.is_some_and(|named| named.attempted.is_some());
                let reason = self.trigger_reason(trigger, (is_replaced, is_unsure), &actions);
                if subject.trigger.replace(reason).is_none() && !subject.is_replaced {
                    replaced.push(subject.stack);
                }
            } else if let Some(open) = found.open.get(&subject.stack) {
                subject.open_triggers = open.iter().map(|it| self.trigger_name(it)).collect();
            }
        }
        replaced
    }

    fn trigger_name(&self, trigger: &ReplaceCause<'_>) -> String {
        let stack = &self.project.stacks[trigger.stack].path;
        let output = trigger.output.map(|output| format!("#{output}"));
        format!("{stack}{}", output.unwrap_or_default())
    }

    fn trigger_reason(
        &self,
        trigger: &ReplaceCause<'_>,
        (is_replaced, is_unsure): (bool, bool),
        actions: &BTreeMap<StackIndex, PlannedAction>,
    ) -> PlanReason {
        let name = self.trigger_name(trigger);
        let text = match actions.get(&trigger.stack) {
            _ if trigger.is_past && is_unsure => {
                format!("{name} may have changed since it was applied")
            }
            _ if trigger.is_past => format!("{name} has changed since it was applied"),
            Some(PlannedAction::Update | PlannedAction::NoOp) if !is_replaced => {
                format!("{name} is updated")
            }
            _ => format!("{name} is replaced"),
        };
        let (file, line) = self.project.sources.file_and_line(trigger.span);
        PlanReason::new(ReasonSource::Config, text).at(Some(file), Some(line))
    }
}
