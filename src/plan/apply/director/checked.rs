//! Conditions during an apply: preconditions before a turn's first step, postconditions after its
//! last.

use std::sync::Arc;

use super::ApplyDirector;
use crate::driver::{ChangeCounts, OutputValues};
use crate::plan::apply::turn::{ApplyMode, ApplyTurn};
use crate::plan::ask::NoAnswer;
use crate::plan::checks::{Checked, Checker, FailedCheck, SelfValue, StackOutputs};
use crate::plan::entry::{AskedAction, PlannedAction};
use crate::plan::read_outputs::{lacks_state, no_outputs, printed, refreshed};
use crate::project::lifecycle::ConditionKind;
use crate::project::stack::StackMode;
use crate::run::event::Failure;
use crate::run::turn::Operation;

impl<'p> ApplyDirector<'_, 'p> {
    pub fn check_with(&mut self, checker: Checker<'p>) {
        self.checker = Some(checker);
    }

    pub fn failed_checks(&self) -> &[FailedCheck] {
        &self.failed_checks
    }

    pub(super) fn check_before(&mut self, number: usize) -> Result<(), Failure> {
        let turn = &self.turns[number];
        // A destroy or a refresh has no conditions. A replaced stack is checked when it is recreated, unless a
        // condition is already known to fail.
        if turn.operation == Operation::Destroy || turn.asked == AskedAction::Refresh {
            return Ok(());
        }
        self.check(number, ConditionKind::Precondition, &SelfValue::Nothing)
    }

    /// Checks the postconditions of a stack whose turn has otherwise succeeded.
    pub(super) fn check_after(&mut self, number: usize) -> Result<(), Failure> {
        self.learn(number);
        let itself = self.turns[number].itself();
        let checked = self.check(number, ConditionKind::Postcondition, &itself);
        self.turns[number].attempt.has_failed_checks = checked.is_err();
        checked
    }

    fn check(
        &mut self,
        number: usize,
        kind: ConditionKind,
        itself: &SelfValue,
    ) -> Result<(), Failure> {
        let stack = self.turns[number].stack.stack.here();
        let (Some(checker), Some(stack)) = (&self.checker, stack) else {
            return Ok(());
        };
        let Checked { failed, open, .. } = checker.check(kind, stack, itself);
        let why = match failed.first() {
            Some(first) => first.text.clone(),
            None if !open.is_empty() => {
                format!("{} cannot be decided: outputs are not known", kind.word())
            }
            None => return Ok(()),
        };
        self.failed_checks.extend(failed);
        Err(Failure::Condition(why))
    }

    /// Stores the printed outputs of a turn as those of its stack.
    pub(super) fn learn(&mut self, number: usize) {
        let turn = &self.turns[number];
        let (Some(checker), Some(stack)) = (&mut self.checker, turn.stack.stack.here()) else {
            return;
        };
        if !turn.stack.checks.needs_outputs || turn.operation == Operation::Destroy {
            return;
        }
        let outputs = match no_outputs(Some(&turn.stack.driver)) {
            Some(why) => StackOutputs::Unreadable(why),
            None => match turn.output_values() {
                Ok(values) => StackOutputs::Values(Arc::new(values)),
                Err(problem) => StackOutputs::Unreadable(problem.to_string()),
            },
        };
        checker.set(stack, outputs);
    }
}

impl ApplyTurn<'_> {
    fn output_values(&self) -> Result<OutputValues, NoAnswer> {
        let driver = &self.stack.driver;
        let values = printed(driver, &self.folder)?;
        let mode = match self.operation {
            Operation::Plan => StackMode::Read,
            _ => StackMode::Manage,
        };
        if lacks_state(driver, mode, &values) {
            return refreshed(&self.folder);
        }
        Ok(values)
    }

    /// Returns the values of `self` in the postconditions.
    fn itself(&self) -> SelfValue {
        let action = match (self.operation, self.has_acted) {
            (Operation::Plan, _) => PlannedAction::Read,
            (_, false) if self.asked == AskedAction::Create => PlannedAction::Adopt,
            (_, false) => PlannedAction::NoOp,
            (_, true) => match self.stack.shown.action {
                Some(shown) if shown.is_work() => shown,
                _ if self.asked == AskedAction::Create => PlannedAction::Create,
                _ => PlannedAction::Update,
            },
        };
        let answer = self.attempt.answer.as_ref();
        let changes = match self.attempt.course {
            _ if !self.has_acted => Some(ChangeCounts::default()),
            ApplyMode::Replanned => answer.and_then(|answer| answer.counts),
            ApplyMode::ShownPlan => self.stack.shown.counts,
            ApplyMode::Nothing | ApplyMode::Unplanned => None,
        };
        SelfValue::Done {
            action: action.word(),
            changes,
        }
    }
}
