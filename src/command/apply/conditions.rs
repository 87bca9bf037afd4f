//! Checks the conditions of an apply's stacks, as far as possible before it begins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Apply;
use crate::context::Context;
use crate::error::{ErrorContext as _, Result};
use crate::plan::Purpose;
use crate::plan::checks::{Checked, Checker, MentionedStacks, SelfValue, StackOutputs, mentioned};
use crate::plan::entry::{AskedAction, PlanMode};
use crate::plan::planner::{OutputReader, RunOrigin};
use crate::plan::verify::RemainingWork;
use crate::project::lifecycle::ConditionKind;
use crate::project::stack::StackIndex;
use crate::state::document::Document;

impl Apply<'_> {
    /// Checks the conditions of stacks with turns, and reports failed preconditions. Reads the
    /// outputs of stacks without turns that conditions need, or may need. Marks the turns that make
    /// other outputs known. Returns the checker for the rest of the run, if needed. Destroyed
    /// and refreshed stacks have no conditions to check. `may_add` says whether turns may be added.
    pub(super) fn check_conditions<'l>(
        &self,
        context: &'l Context,
        document: Option<&Document>,
        to_do: &mut RemainingWork<'_>,
        may_add: bool,
    ) -> Result<Option<Checker<'l>>> {
        let applied: Vec<StackIndex> = to_do
            .stacks
            .iter()
            .filter(|it| it.work.apply)
            .filter_map(|it| it.stack.here())
            .collect();
        let has_any = |stack: &StackIndex| !context.project.rules_of(*stack).conditions.is_empty();
        let has_own = self.saved.plan.mode == PlanMode::Normal && applied.iter().any(has_any);
        // Any stack may be added.
        let mut others = context.project.stacks.iter().map(|(stack, _)| stack);
        let may_have = may_add && others.any(|stack| has_any(&stack));
        if !has_own && !may_have {
            return Ok(None);
        }
        let applied = if has_own { applied } else { Vec::new() };
        let reader = OutputReader {
            context,
            tools: &self.tools(),
            jobs: self.jobs,
            document,
            origin: RunOrigin {
                purpose: Purpose::Plan,
                base: None,
                is_recorded: true,
            },
        };
        let generations = Arc::new(self.generations(context));
        let environments = context.evaluator().in_generations(generations);
        let mut checker = context.checker(&environments)?;
        for &stack in &applied {
            checker.set(stack, StackOutputs::Later);
        }
        let kinds = [
            (ConditionKind::Precondition, SelfValue::Nothing),
            (ConditionKind::Postcondition, SelfValue::Later),
        ];
        let mut looked_at = BTreeSet::new();
        let mut unknown = BTreeSet::new();
        for (kind, itself) in kinds {
            let stacks: Vec<_> = applied.iter().map(|&stack| (stack, itself)).collect();
            let found = decided(&reader, &mut checker, kind, &stacks)?;
            for (stack, of_stack) in &found {
                let MentionedStacks {
                    stacks,
                    itself,
                    computes,
                } = mentioned(&context.project, *stack, &of_stack.open);
                looked_at.extend(itself.then_some(*stack));
                looked_at.extend(applied.iter().filter(|it| computes || stacks.contains(it)));
                unknown.extend(stacks.into_iter().filter(|it| !checker.knows(*it)));
            }
            if kind == ConditionKind::Precondition {
                context.show_failed(found.values().flat_map(|it| &it.failed));
                note_failed(to_do, &found);
            }
        }
        reader.read(&unknown, &mut checker)?;
        checker.end_reading();
        for stack in &mut to_do.stacks {
            if let Some(here) = stack.stack.here() {
                // An added stack may name any other.
                stack.checks.needs_outputs = may_have || looked_at.contains(&here);
                stack.checks.has_postconditions = stack.asked != AskedAction::Refresh
                    && checker.has_any(here, ConditionKind::Postcondition);
            }
        }
        Ok(Some(checker))
    }
}

/// Checks conditions, reading the outputs that they need. Returns those that do not all hold.
fn decided<'l>(
    reader: &OutputReader<'_, '_>,
    checker: &mut Checker<'l>,
    kind: ConditionKind,
    stacks: &[(StackIndex, SelfValue)],
) -> Result<BTreeMap<StackIndex, Checked<'l>>> {
    loop {
        let found = checker
            .check_all(kind, stacks)
            .context("failed to check conditions")?;
        let needed: BTreeSet<StackIndex> =
            found.values().flat_map(|it| &it.needed).copied().collect();
        if needed.is_empty() {
            return Ok(found);
        }
        reader.read(&needed, checker)?;
    }
}

/// Stores in stacks why their preconditions fail.
fn note_failed(to_do: &mut RemainingWork<'_>, checked: &BTreeMap<StackIndex, Checked<'_>>) {
    for stack in &mut to_do.stacks {
        let checked = stack.stack.here().and_then(|here| checked.get(&here));
        let failed = checked.and_then(|checked| checked.failed.first());
        stack.checks.failed = failed.map(|check| check.text.clone());
    }
}
