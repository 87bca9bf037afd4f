//! Turns that are added to an apply: each plans its stack when it begins, and applies the plan if
//! that is approved.
//!
//! The user never saw a plan for these turns, so an approval covers any change that they make. None
//! of them destroys its stack. This module does not know who adds them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::steps::{commands, steps};
use super::turn::{ApplyStepRole, ApplyTurn, FollowUpState};
use super::within::ShownChanges;
use super::{ApplyStack, TurnChecks};
use crate::driver::Driver;
use crate::plan::code::PlanCode;
use crate::plan::commands::CommandPreparation;
use crate::plan::entry::AskedAction;
use crate::plan::order::StackWork;
use crate::plan::stack::PlanStack;
use crate::project::lifecycle::ConditionKind;
use crate::project::stack::StackIndex;
use crate::run::execute::Task;
use crate::run::turn::{Operation, Step};

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct FollowUpStack<'p> {
    pub driver: Driver<'p>,
    /// Why the stack must not be touched, if so.
    pub problem: Option<String>,
    /// Whether none of it exists, as far as known.
    pub is_new: bool,
    pub backend: Option<String>,
    pub recorded: Option<BTreeMap<String, String>>,
    /// The digests of the outputs that it was applied with, by name in `replace_triggered_by`.
    pub triggered_by: BTreeMap<String, String>,
    pub is_approved: bool,
    pub may_destroy_resources: bool,
    /// Whether policies are asked about its turns: they see the values of its tool's state.
    pub needs_state: bool,
}

pub struct ApplyFollowUps<'a, 'p> {
    pub codes: PlanCode<'a, 'p>,
    pub run: String,
    /// The folder for plans and answers; only its owner can read it.
    pub folder: PathBuf,
    pub extra: Vec<OsString>,
    pub keeps_state: bool,
    pub stacks: Vec<FollowUpStack<'p>>,
    pub lock_timeout: Option<Duration>,
}

/// The outputs and the backend to record for an applied stack.
pub(super) type AppliedOutputs<'a> = (&'a Option<BTreeMap<String, String>>, &'a Option<String>);

impl<'p> ApplyFollowUps<'_, 'p> {
    pub(super) fn is_destroyed(&mut self, stack: StackIndex) {
        let known = &mut self.stacks[stack.get()];
        known.is_new = true;
        (known.backend, known.recorded) = (None, None);
    }

    pub(super) fn is_applied(&mut self, stack: StackIndex, (outputs, backend): AppliedOutputs<'_>) {
        let known = &mut self.stacks[stack.get()];
        known.is_new = false;
        known.recorded.clone_from(outputs);
        known.backend.clone_from(backend);
    }

    /// Returns a stack's turn as far as known now. `needs_outputs`: conditions may need its outputs.
    pub(super) fn turn(
        &self,
        stack: StackIndex,
        folder: PathBuf,
        needs_outputs: bool,
    ) -> ApplyTurn<'p> {
        let known = &self.stacks[stack.get()];
        let rules = self.codes.tree.project.rules_of(stack);
        let mut conditions = rules.conditions.iter();
        let stack = ApplyStack {
            stack: PlanStack::Here(stack),
            driver: known.driver,
            shown: ShownChanges {
                action: None,
                counts: None,
                resources: Vec::new(),
                changes: None,
                is_provisional: true,
            },
            asked: if known.is_new {
                AskedAction::Create
            } else {
                AskedAction::Update
            },
            work: StackWork {
                destroy: false,
                apply: true,
            },
            is_conditional: true,
            is_planned: false,
            is_complete: true,
            has_plan: false,
            backend: known.backend.clone(),
            outputs_before: None,
            used: None,
            outputs: None,
            attempted: None,
            recorded: known.recorded.clone(),
            is_recorded: true,
            checks: TurnChecks {
                failed: None,
                has_postconditions: conditions.any(|it| it.kind == ConditionKind::Postcondition),
                needs_outputs,
                needs_state: known.needs_state,
            },
            triggered_by: known.triggered_by.clone(),
            may_destroy_resources: known.may_destroy_resources,
            has_open_triggers: false,
            is_late: false,
            is_mocked: false,
            generations: BTreeSet::new(),
            leaving: Vec::new(),
        };
        ApplyTurn {
            followup: Some(FollowUpState {
                is_approved: known.is_approved,
                tasks: None,
            }),
            ..ApplyTurn::new(stack, Operation::Apply, folder, self.codes)
        }
    }

    pub(super) fn steps(&self, turn: &ApplyTurn<'p>) -> Vec<(ApplyStepRole, Step)> {
        let mut planned: Vec<(ApplyStepRole, Step)> = steps(
            turn,
            self.codes.inputs,
            Path::new(""),
            &[],
            self.keeps_state,
        )
        .iter()
        .map(|it| (it.role, it.step()))
        .collect();
        let stack = turn.stack.stack.here();
        let problem = stack.and_then(|it| self.stacks[it.get()].problem.as_ref());
        if problem.is_some() {
            // It fails before its first step, so it needs one.
            planned = vec![(ApplyStepRole::Check, Step::Check)];
        }
        planned
    }

    /// Makes the commands of a turn that is about to begin.
    pub(super) fn prepared(&self, mut turn: ApplyTurn<'p>) -> ApplyTurn<'p> {
        let tasks = self.tasks(&mut turn);
        if let Some(followup) = &mut turn.followup {
            followup.tasks = Some(tasks);
        }
        turn
    }

    fn tasks(&self, turn: &mut ApplyTurn<'p>) -> Result<Vec<Task>, String> {
        let stack = turn.stack.stack.here();
        if let Some(problem) = stack.and_then(|it| self.stacks[it.get()].problem.clone()) {
            return Err(problem);
        }
        fs::create_dir_all(&turn.folder)
            .map_err(|error| format!("its folder cannot be created: {error}"))?;
        let mut preparation =
            CommandPreparation::new(self.codes, &self.run).waiting(self.lock_timeout);
        let found = commands(&mut preparation, turn, &self.extra, self.keeps_state);
        preparation.finish().map_err(|cannot| cannot.to_string())?;
        let (_, tasks) = turn.take(found.unwrap_or_default());
        Ok(tasks)
    }
}
