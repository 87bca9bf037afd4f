//! Lifecycle rules that this version does not carry out: a plan that they are about is refused, since it would
//! do something else than they say.

use orch::diagnostic::{Code, Diagnostic};
use orch::plan::checks::is_checkable;
use orch::plan::entry::{Action, PlanMode};
use orch::project::stack::StackIndex;
use orch::selection::graph::Precedence;
use orch::source::Span;

use super::entries::Settled;
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

    /// Refuses to destroy what is to be made anew first; returns the exit status if a plan would.
    pub(super) fn refuse_destroy_first(&self, settled: &Settled) -> Option<ExitStatus> {
        let says = |stack: StackIndex| {
            let rule = self.project.rules_of(stack).create_before_destroy?;
            rule.value.then_some(rule.span)
        };
        let stacks = &self.project.stacks;
        let saying = stacks.iter().filter(|(stack, _)| says(*stack).is_some());
        let saying: Vec<usize> = saying.map(|(stack, _)| stack.get()).collect();
        if saying.is_empty() {
            return None;
        }
        // What such a stack runs after is made first as well.
        let precedence = Precedence::new(&self.graph);
        let is_first = precedence.reversed().reached(saying.into_iter());
        let replaced = settled.actions().filter_map(|(stack, action)| {
            (action == Action::Replace && is_first[stack.get()]).then_some(stack)
        });
        let refusals = replaced.filter_map(|stack| {
            let after = precedence.reached(std::iter::once(stack.get()));
            let mut after = stacks.iter().filter(|(other, _)| after[other.get()]);
            let own = says(stack).map(|span| (stack, span));
            let (by, span) =
                own.or_else(|| after.find_map(|(other, _)| Some((other, says(other)?))))?;
            let (path, by) = (&stacks[stack].path, &stacks[by].path);
            Some(refusal(
                format!("`{path}` would be destroyed before it is made anew"),
                span,
                &format!(
                    "`{by}` says that it is made first, which this version of orch cannot do yet"
                ),
                "leave the stack out with `--exclude`, or take the rule out",
            ))
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
