//! The facts that a plan depends on: written to its file, and compared when it is applied.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::ask::AskedTools;
use super::removals::Removals;
use super::{StackToPlan, StacksToPlan};
use crate::change::{StackStatus, StackStatuses};
use crate::context::Context;
use crate::driver::{BadOutputs, Driver, Outputs};
use crate::path::StackPath;
use crate::plan::entry::{PlanEntry, PlannedAction};
use crate::plan::stale::{CurrentFacts, PlanFacts};
use crate::plan::triggers::{named_outputs, noted_outputs};
use crate::plan::{
    EnvironmentSource, PlannedStack, SavedEnvironment, SavedPlan, SavedProject, SavedStack,
};
use crate::state::document::Document;

/// Returns whether applying the entry acts, decides or records something.
fn has_effect(entry: &PlanEntry, is_pending: bool) -> bool {
    entry.blocked.is_none()
        && (entry.action != PlannedAction::NoOp || entry.is_undecided() || is_pending)
}

impl Context {
    /// Collects the facts that a plan depends on. Returns the tools' plans in the order of their
    /// indices. Fails if an output cannot be compared with the recorded one.
    pub(super) fn rest(
        &self,
        saved: &mut SavedPlan,
        subjects: &StacksToPlan<'_>,
        removals: &Removals<'_>,
        recorded: Option<(&Document, &StackStatuses)>,
        asked: &AskedTools,
    ) -> std::result::Result<Vec<PathBuf>, BadOutputs> {
        let document = recorded.map(|(document, _)| document);
        saved.project = document.map(|document| SavedProject {
            project: document.project.clone(),
            namespace: document.namespace.clone(),
            lineage: document.lineage.clone(),
        });
        let present = CurrentFacts {
            project: &self.project,
            graph: &self.graph,
            references: &self.references,
            digests: self.state.input_digests.as_deref(),
            document,
            missing: None,
            is_later: false,
            records_last: false,
        };
        let mut input_digests = PlanFacts::new(present);
        saved.unfinished = input_digests.unfinished();
        let subjects: BTreeMap<&StackPath, &StackToPlan<'_>> = subjects
            .all
            .iter()
            .map(|subject| (&self.project.stacks[subject.stack].path, subject))
            .collect();
        let mut plans = Vec::new();
        let named = named_outputs(&self.references);
        let recorded_outputs = document.map(|document| self.entries_of(document));
        for entry in &saved.plan.entries {
            let Some(subject) = subjects.get(&entry.stack) else {
                if let Some(removed) = removals.rest(entry, asked, &mut plans) {
                    saved.stacks.push(removed);
                }
                continue;
            };
            let stack = subject.stack;
            let answer = asked.answers.get(&entry.stack);
            let answer = answer.and_then(|answer| answer.as_ref().ok());
            let status = recorded.and_then(|(_, it)| it.stacks.get(&stack));
            let is_pending = asked.answers.contains_key(&entry.stack)
                || status.is_some_and(|status| *status != StackStatus::Applied);
            if !has_effect(entry, is_pending) {
                continue;
            }
            let compared = named.get(&stack);
            let recorded_entry = recorded_outputs.as_ref().and_then(|all| all.get(&stack));
            let noted = recorded_entry
                .filter(|(_, entry)| compared.is_some() && entry.known_outputs().is_none())
                .zip(document)
                .map(|((key, _), document)| noted_outputs(document, key));
            let recorded_digests = noted
                .as_ref()
                .or_else(|| recorded_entry.and_then(|(_, entry)| entry.outputs.as_ref()));
            let salted = |outputs: &Outputs| match compared {
                Some(compared) => outputs.salting(compared, recorded_digests, false),
                None => Ok(outputs.clone()),
            };
            let (before, after) = match answer {
                Some(answer) => (&answer.outputs_before, &answer.outputs),
                None => (&None, &None),
            };
            let outputs_before = before.as_ref().map(salted).transpose()?;
            let outputs = after.as_ref().map(salted).transpose()?;
            let plan = asked.plan_of(&entry.stack);
            let plan = plan.map(|plan| {
                plans.push(plan);
                plans.len() - 1
            });
            saved.stacks.push(SavedStack {
                stack: entry.stack.clone(),
                driver: subject.driver.name.to_owned(),
                inputs: input_digests.inputs(stack),
                order: input_digests.order(stack),
                record: input_digests.record(stack),
                records_before: input_digests.records_before(stack),
                backend: (subject
                    .made()
                    .map_or(&subject.backend, |next| &next.backend)
                    .clone())
                .or_else(|| answer.and_then(|answer| answer.backend.clone())),
                outputs_before,
                outputs,
                changes: answer.and_then(|answer| answer.changes.clone()),
                plan,
                tool_version: answer.and_then(|answer| answer.tool_version.clone()),
            });
        }
        saved.stacks.sort_by(|a, b| a.stack.cmp(&b.stack));
        Ok(plans)
    }

    /// Digests the current environment for comparison with the plan's.
    pub fn environment_of(&self, saved: &SavedPlan) -> SavedEnvironment {
        let entries = saved.plan.entries.iter();
        let made = entries.filter_map(|entry| Some((entry.stack.clone(), entry.generation?)));
        let generations = Arc::new(self.state.generations.with(made));
        let environments = self.evaluator().in_generations(generations);
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let host: BTreeMap<String, String> = std::env::vars_os()
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let source = EnvironmentSource {
            root: &self.project.root,
            environments: &environments,
            host: &host,
        };
        let stacks = saved.stacks.iter().filter_map(|it| {
            Some(PlannedStack {
                stack: self.project.stacks.find(&it.stack)?,
                driver: Driver::named(&self.project, &it.driver)?,
                inputs: it.inputs.as_ref(),
            })
        });
        match &saved.environment {
            Some(before) => before.now(source, stacks),
            None => SavedEnvironment::new(source, stacks),
        }
    }
}
