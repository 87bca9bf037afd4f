//! Warnings of a plan: triggers without effect, and conditions that two stacks have on the same
//! infrastructure.

use std::collections::{BTreeMap, BTreeSet};

use super::ask::AskedTools;
use super::subjects::{Drivers, StacksToPlan};
use crate::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::driver::Outputs;
use crate::plan::backends::StackBackend;
use crate::plan::checks::list_of_outputs;
use crate::printable::printable;
use crate::project::driver::DriverStep;
use crate::project::lifecycle::Condition;
use crate::project::stack::{StackIndex, StackMode};
use crate::selection::reference::{ReferenceKind, ReferenceTarget};
use crate::state::document::Document;

impl Context {
    /// Warns of outputs in `replace_triggered_by` that are known not to exist.
    pub(super) fn warn_of_missing_outputs(
        &self,
        subjects: &StacksToPlan<'_>,
        document: Option<&Document>,
        asked: &AskedTools,
    ) {
        let drivers = Drivers::new(self, document);
        let planned: BTreeSet<StackIndex> = subjects.all.iter().map(|it| it.stack).collect();
        let mut warnings = Vec::new();
        for reference in &self.references.list {
            let (Some(output), ReferenceTarget::Stack(named)) =
                (&reference.output, &reference.target)
            else {
                continue;
            };
            if reference.kind != ReferenceKind::ReplaceTriggeredBy
                || !planned.contains(&reference.from)
            {
                continue;
            }
            let path = &self.project.stacks[*named].path;
            let warn = |message: String, label: &str| {
                let warning = Diagnostic::warning(Code::UnknownName, message);
                warning.label(reference.span, format!("{label}, so this replaces nothing"))
            };
            if let Some(driver) = drivers.of(*named)
                && !driver.has(DriverStep::Outputs)
            {
                let message = format!("the outputs of `{path}` are unknown");
                let label = format!("its driver `{}` has no `outputs`", driver.name);
                warnings.push(warn(message, &label));
                continue;
            }
            let answer = asked.answers.get(path).and_then(|it| it.as_ref().ok());
            let now = answer.and_then(|answer| answer.outputs.as_ref());
            let before = answer.and_then(|answer| answer.outputs_before.as_ref());
            let recorded = drivers.entry(*named).and_then(|it| it.1.outputs.as_ref());
            if now.is_none() && recorded.is_none() {
                continue;
            }
            let read = now.into_iter().chain(before).flat_map(Outputs::names);
            let recorded = recorded
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str());
            let known: BTreeSet<&str> = read.chain(recorded).collect();
            if known.contains(output.as_str()) {
                continue;
            }
            let note = list_of_outputs(known.iter().copied());
            let message = format!("`{path}` has no output `{output}`");
            let warning = warn(message, "it has no such output").note(note);
            warnings.push(warning.did_you_mean(output, known));
        }
        self.notices.annotated(&warnings, &self.project.sources);
    }

    /// Warns of conditions on read-only stacks that the managing stacks have, too. Those of the
    /// managing stack are enough, since reading waits for it. Conditions that both inherit do not
    /// count.
    pub(super) fn warn_of_readers(
        &self,
        subjects: &StacksToPlan<'_>,
        places: &BTreeMap<StackIndex, StackBackend>,
    ) {
        let mode = |stack: StackIndex| self.project.stacks[stack].mode;
        let conditions = |stack: StackIndex| self.project.rules_of(stack).conditions;
        let readers: Vec<(StackIndex, &str)> = subjects
            .all
            .iter()
            .map(|subject| subject.stack)
            .filter(|&it| mode(it) == StackMode::Read)
            .filter(|&it| !conditions(it).is_empty())
            .filter_map(|it| Some((it, places.get(&it)?.backend()?)))
            .collect();
        if readers.is_empty() {
            return;
        }
        let managed: BTreeMap<&str, StackIndex> = places
            .iter()
            .filter_map(|(&stack, place)| {
                let is_managed = mode(stack) == StackMode::Manage;
                Some((place.backend().filter(|_| is_managed)?, stack))
            })
            .collect();
        let pairs = readers.into_iter().filter_map(|(reader, backend)| {
            let &keeper = managed.get(backend)?;
            let (of_reader, of_keeper) = (conditions(reader), conditions(keeper));
            let has_own = |own: &[&Condition], others: &[&Condition]| {
                let is_shared =
                    |it: &&Condition| others.iter().any(|other| std::ptr::eq(*it, *other));
                !own.iter().all(is_shared)
            };
            let both = has_own(&of_reader, &of_keeper) && has_own(&of_keeper, &of_reader);
            both.then_some((reader, keeper, backend))
        });
        let path = |stack: StackIndex| &self.project.stacks[stack].path;
        for (reader, keeper, backend) in pairs.take(MAX_WARNINGS) {
            let (reader, keeper) = (path(reader), path(keeper));
            self.notices.warning(&printable(&format!(
                "{reader} and {keeper} have conditions on the same infrastructure, `{backend}`; keep those of {keeper}, and let {reader} run after it"
            )));
        }
    }
}

const MAX_WARNINGS: usize = 10;
