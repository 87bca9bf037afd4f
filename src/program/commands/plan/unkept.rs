//! Lifecycle rules that this version does not carry out: a plan that they are about is refused, since it would
//! do something else than they say.

use orch::diagnostic::{Code, Diagnostic};
use orch::plan::checks::is_checkable;
use orch::plan::entry::PlanMode;
use orch::source::Span;

use super::subjects::Subjects;
use crate::program::commands::Loaded;
use crate::program::console;
use crate::program::exit::ExitStatus;

/// How many refusals are told.
const MAX_TOLD: usize = 10;

impl Loaded {
    /// Refuses to plan stacks with conditions that cannot be checked; returns the exit status if there are any.
    /// Nothing is checked of what is destroyed, or only looked at.
    pub(super) fn refuse_conditions(
        &self,
        subjects: &Subjects<'_>,
        mode: PlanMode,
    ) -> Option<ExitStatus> {
        if mode != PlanMode::Normal {
            return None;
        }
        let with_conditions = subjects.all.iter().filter_map(|subject| {
            let rules = self.project.rules_of(subject.stack);
            let mut conditions = rules.conditions.into_iter();
            let condition = conditions.find(|it| !is_checkable(it))?;
            Some((subject.stack, condition.kind.word(), condition.span))
        });
        let refusals = with_conditions.map(|(stack, word, span)| {
            let path = &self.project.stacks[stack].path;
            refusal(
                format!("the `{word}` of `{path}` cannot be checked"),
                span,
                "this version of orch checks only preconditions, and without outputs",
                "leave the stack out with `--exclude`, or take the condition out",
            )
        });
        self.refuse_all(refusals)
    }

    fn refuse_all(&self, refusals: impl Iterator<Item = Diagnostic>) -> Option<ExitStatus> {
        let told: Vec<Diagnostic> = refusals.take(MAX_TOLD + 1).collect();
        if told.is_empty() {
            return None;
        }
        console::diagnostics(told.iter().take(MAX_TOLD), &self.project.sources);
        if told.len() > MAX_TOLD {
            console::note("more stacks are refused like these");
        }
        Some(ExitStatus::Refused)
    }
}

fn refusal(message: String, span: Span, label: &str, help: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error(Code::Unsupported, message);
    diagnostic.label(span, label).help(help)
}
