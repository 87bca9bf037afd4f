//! The records of an apply: before and after each turn, and of stacks without one.

use std::collections::{BTreeMap, BTreeSet};

use super::todo::{RemainingWork, follows_other_rules};
use crate::change::EntryIndex;
use crate::context::used_outputs::UsedOutputs;
use crate::git::CommitId;
use crate::path::StackPath;
use crate::plan::SavedPlan;
use crate::plan::entry::{PlanMode, PlannedAction as Planned};
use crate::plan::stack::PlanStack;
use crate::project::Project;
use crate::project::environment::Environments;
use crate::project::stack::{StackIndex, StackMode};
use crate::run::state::{Effect, Findings, NewEntry, NewGeneration, StatePlan};
use crate::run::state_lock::{StateLock, declared};
use crate::run::turn::Operation;
use crate::selection::graph::Graph;
use crate::state::document::{Document, RunAction};
use crate::state::writer::Change;

/// The digests of the outputs of stacks without a turn, if known.
pub type RecordedOutputs = BTreeMap<StackIndex, Option<BTreeMap<String, String>>>;

/// Returns the outputs that are recorded without a turn. `plan` is the id of the plan: its parts record the same.
pub fn recorded_outputs(
    project: &Project,
    document: Option<&Document>,
    todo: &RemainingWork<'_>,
    plan: &str,
) -> RecordedOutputs {
    let Some(document) = document else {
        return RecordedOutputs::new();
    };
    let records = todo.records.iter().map(|record| {
        let entry = document.stacks.get(key(project, record.stack).as_str());
        (record.stack, record.outputs(entry, plan))
    });
    records.collect()
}

/// Returns the digests of the outputs that stacks are applied with, including those to record.
pub fn used_outputs<'p>(
    project: &'p Project,
    graph: &Graph,
    document: Option<&Document>,
    recorded: &RecordedOutputs,
) -> UsedOutputs<'p> {
    let keys = document.map(|document| (document, EntryIndex::new(&project.stacks, document)));
    let mut used = UsedOutputs::new(project, graph, |stack| {
        let (document, keys) = keys.as_ref()?;
        document.stacks[keys.key(stack)?].outputs.as_ref()
    });
    for (stack, outputs) in recorded {
        used.set(*stack, outputs.as_ref());
    }
    used
}

fn key(project: &Project, stack: StackIndex) -> String {
    project.stacks[stack].path.to_string()
}

pub struct ApplyRecording<'a, 'p> {
    /// The environments of the stacks, with their generations after the apply.
    pub environments: &'a Environments<'p>,
    pub project: &'p Project,
    pub lock: &'a StateLock,
    pub saved: &'a SavedPlan,
    pub run: &'a str,
    pub removed: &'a [StackPath],
}

impl ApplyRecording<'_, '_> {
    /// Returns the records of each turn, and those to write at once.
    pub fn plan(
        &self,
        turns: &[(PlanStack, Operation)],
        drivers: &[&str],
        todo: &RemainingWork<'_>,
        used: &mut UsedOutputs<'_>,
    ) -> StatePlan {
        let late: BTreeSet<StackIndex> = todo
            .stacks
            .iter()
            .filter(|it| it.is_late)
            .filter_map(|it| it.stack.here())
            .collect();
        let mut destroyed = BTreeSet::new();
        let turns = turns.iter().zip(drivers);
        let records = turns.map(|(&(stack, operation), driver)| {
            let action = match operation {
                Operation::Destroy => RunAction::Destroy,
                Operation::Apply if self.saved.plan.mode == PlanMode::RefreshOnly => {
                    RunAction::Refresh
                }
                _ => RunAction::Apply,
            };
            let stack = match stack {
                PlanStack::Here(stack) => stack,
                PlanStack::Removed(position) => return self.removed(position, driver),
            };
            let mut record = self.record(stack, action, driver);
            if record.action == RunAction::Refresh && record.earlier.is_none() {
                // It was not applied before, and is not applied now.
                return None;
            }
            // If the apply decides a replacement, that is known only later.
            if operation == Operation::Destroy && !late.contains(&stack) {
                destroyed.insert(stack);
            } else if destroyed.contains(&stack) {
                // None of the recorded resources will be left.
                record.earlier = None;
            }
            Some(record)
        });
        let records = records.collect();
        StatePlan::new(records).with_changes(self.changes(todo, used))
    }

    /// Returns the record of a removed stack that is destroyed: its declarations do not change.
    fn removed(&self, position: usize, driver: &str) -> Option<NewEntry> {
        let path = self.removed.get(position)?;
        let key = path.current().to_string();
        let entry = self.lock.document().stacks.get(&key)?;
        let inputs = entry.applied.as_ref().and_then(|it| it.inputs.clone());
        Some(NewEntry {
            action: RunAction::Destroy,
            command: format!("{driver} {}", RunAction::Destroy.word()),
            command_position: 0,
            commit: self.lock.head().map(CommitId::to_string),
            seen: None,
            is_dirty: false,
            inputs: inputs.unwrap_or_default(),
            triggers: Vec::new(),
            generations: BTreeMap::new(),
            declared: entry.clone(),
            earlier: Some(entry.clone()),
            plan: Some(self.saved.plan.id.clone()),
            order: self.lock.document().order().map(str::to_owned),
            is_made_anew: false,
            made: None,
            destroyed: path.generation(),
            key,
            unknown: None,
            plan_file: None,
            places: Vec::new(),
        })
    }

    fn record(&self, stack: StackIndex, action: RunAction, driver: &str) -> NewEntry {
        let command = format!("{driver} {}", action.word());
        let mut record = self.lock.record(self.environments, stack, action, command);
        record.plan = Some(self.saved.plan.id.clone());
        let entry = self.saved.plan.entry(&self.project.stacks[stack].path);
        let is_replaced = entry.is_some_and(|entry| entry.action == Planned::Replace);
        let made = entry.and_then(|entry| entry.generation);
        record.is_made_anew = is_replaced && made.is_none() && record.action == RunAction::Apply;
        let rest = self.saved.stack(&self.project.stacks[stack].path);
        record.made = made.map(|generation| NewGeneration {
            generation,
            backend: rest.and_then(|rest| rest.backend.clone()),
            driver: driver.to_owned(),
        });
        record
    }

    /// Returns the records without a turn: adopted and unchanged stacks, and changed declarations.
    fn changes(
        &self,
        todo: &RemainingWork<'_>,
        used: &mut UsedOutputs<'_>,
    ) -> Vec<(String, Change)> {
        let document = self.lock.document();
        let mut changes = Vec::new();
        for only in &todo.records {
            let key = key(self.project, only.stack);
            let entry = document.stacks.get(&key);
            if only.is_missing {
                if entry.is_some() {
                    changes.push((key, Change::Destroyed));
                }
                continue;
            }
            if !only.is_complete {
                // Its tool was asked about only a part of the stack.
                continue;
            }
            let record = self.record(only.stack, RunAction::Apply, only.driver.name);
            let stack = &self.project.stacks[only.stack];
            let change = record.unchanged(
                self.run,
                Findings {
                    driver: Some(only.driver.name.to_owned()),
                    backend: only.backend.clone(),
                    mode: (stack.mode == StackMode::Read).then(|| "read".to_owned()),
                    outputs: only.outputs(entry, &self.saved.plan.id),
                    used: Some(used.of(only.stack)),
                    is_complete: only.is_complete,
                    // A stack without a tool changes with its inputs.
                    effect: match entry {
                        Some(_) if only.driver.is_none() && !only.is_settled => Effect::Updated,
                        _ => Effect::Nothing,
                    },
                    has_failed_checks: false,
                },
            );
            changes.push((key, change));
        }
        for path in &todo.forgotten {
            let key = path.current().to_string();
            if document.stacks.contains_key(&key) {
                let destroyed = path.generation().map(Change::DestroyedGeneration);
                changes.push((key, destroyed.unwrap_or(Change::Destroyed)));
            }
        }
        let declared = todo.declared.iter();
        changes.extend(declared.filter_map(|&stack| self.declaration(stack)));
        changes
    }

    fn declaration(&self, stack: StackIndex) -> Option<(String, Change)> {
        let key = key(self.project, stack);
        let mut entry = self.lock.document().stacks.get(&key)?.clone();
        let now = declared(self.project, stack, self.lock.head());
        entry.id = now.id;
        entry.name = now.name;
        entry.tags = now.tags;
        entry.after = now.after;
        entry.before = now.before;
        entry.lifecycle = now.lifecycle;
        let inputs = self.lock.inputs(stack);
        // The inputs are equal but follow the current rules. Ignored differences were not applied.
        if let Some(recorded) = entry.applied.as_mut().and_then(|it| it.inputs.as_mut())
            && (recorded.digest == inputs.digest
                || follows_other_rules(&entry.lifecycle, recorded, &inputs.rules))
        {
            *recorded = inputs;
        }
        Some((key, Change::Put(Box::new(entry))))
    }
}
