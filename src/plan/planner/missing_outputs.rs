//! Triggers without effect: they name outputs that their stacks do not have.

use std::collections::BTreeSet;

use super::ask::AskedTools;
use super::subjects::{Drivers, StacksToPlan};
use crate::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::driver::Outputs;
use crate::plan::checks::list_of_outputs;
use crate::project::driver::DriverStep;
use crate::project::stack::StackIndex;
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
}
