//! The steps of an apply's turns, and their commands.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use super::turn::{ApplyStepRole, ApplyTurn};
use super::{ApplyStack, TurnChecks};
use crate::driver::{PlanKind, StepPlan, StepRole};
use crate::plan::ask::is_partial;
use crate::plan::commands::{CommandPreparation, step_of};
use crate::plan::entry::AskedAction;
use crate::plan::inputs::{InputSource, StackInputs};
use crate::run::execute::Task;
use crate::run::turn::{Operation, Step};

/// Each step with its role and command.
pub(super) type Steps = Vec<(ApplyStepRole, Step, Option<Task>)>;

pub(super) struct PlannedStep<'p> {
    pub(super) role: ApplyStepRole,
    command: PlannedCommand<'p>,
}

enum PlannedCommand<'p> {
    /// Of the driver of the stack.
    Own(StepPlan<'p>),
    /// In another stack, whose outputs it prints.
    Source(InputSource<'p>),
    None,
}

impl PlannedStep<'_> {
    pub(super) fn step(&self) -> Step {
        match (&self.command, self.role) {
            (PlannedCommand::Own(command), _) => step_of(command),
            (PlannedCommand::Source(source), _) => {
                Step::CommandWith(source.name.as_str().into(), Arc::default())
            }
            (PlannedCommand::None, ApplyStepRole::Confirm) => Step::Confirmation,
            (PlannedCommand::None, _) => Step::Check,
        }
    }
}

/// Returns the steps of a turn. Its tool writes a plan file; `plan` gets the extra arguments.
pub(super) fn steps<'p>(
    state: &ApplyTurn<'p>,
    inputs: Option<&StackInputs<'p>>,
    plan_file: &Path,
    extra: &[OsString],
    keeps_state: bool,
) -> Vec<PlannedStep<'p>> {
    let ApplyStack {
        driver, ref checks, ..
    } = state.stack;
    let TurnChecks {
        has_postconditions,
        needs_outputs,
        ..
    } = *checks;
    let mut before: Vec<StepPlan<'p>> = driver.init().into_iter().collect();
    before.extend(driver.asking(state.kind, plan_file, extra));
    let mut acting: Vec<StepPlan<'p>> = Vec::new();
    if state.operation != Operation::Plan {
        let destroys = state.operation == Operation::Destroy;
        acting.extend(match state.kind {
            PlanKind::RefreshOnly => driver.accepting_drift(plan_file),
            PlanKind::Normal | PlanKind::Destroy => driver.acting(destroys, plan_file),
        });
        if !destroys {
            acting.extend(driver.outputs());
            acting.extend(driver.state().filter(|_| state.stack.checks.needs_state));
        }
    } else if driver.tool.is_none() || needs_outputs {
        // The tools' plans contain the outputs, except for sensitive values.
        acting.extend(driver.outputs());
    }
    let of_driver = |command: StepPlan<'p>| PlannedStep {
        role: ApplyStepRole::Driver(command.role),
        command: PlannedCommand::Own(command),
    };
    let without = |role: ApplyStepRole| PlannedStep {
        role,
        command: PlannedCommand::None,
    };
    let is_confirmed = keeps_state && state.operation != Operation::Plan;
    let is_checked = has_postconditions && state.operation != Operation::Destroy;
    let needed = inputs.map(|inputs| (inputs, inputs.needed(state.stack.stack)));
    let reading = needed.into_iter().flat_map(|(inputs, positions)| {
        let of_position = |position| PlannedStep {
            role: ApplyStepRole::Input(position),
            command: PlannedCommand::Source(inputs.source(position).clone()),
        };
        positions.into_iter().map(of_position)
    });
    let before = reading.chain(before.into_iter().map(of_driver));
    let confirmed = is_confirmed.then(|| without(ApplyStepRole::Confirm));
    let acting = acting.into_iter().map(of_driver);
    let checked = is_checked.then(|| without(ApplyStepRole::Check));
    let all = before.chain(confirmed).chain(acting);
    all.chain(checked).collect()
}

/// Returns the steps of a turn with their commands; `None` if there are problems.
pub(super) fn commands<'p>(
    preparation: &mut CommandPreparation<'_, 'p>,
    state: &mut ApplyTurn<'p>,
    extra: &[OsString],
    keeps_state: bool,
) -> Option<Steps> {
    let ApplyStack { stack, driver, .. } = state.stack;
    let place = preparation.place(stack, &driver, state.asked, state.folder.clone())?;
    state.initialized = place.initialized().map(Path::to_owned);
    let mut all = Vec::new();
    let inputs = preparation.inputs();
    for planned in steps(state, inputs, &place.plan_file(), extra, keeps_state) {
        let step = planned.step();
        let task = match planned.command {
            PlannedCommand::Own(command) => Some(preparation.command(command, &place)?),
            PlannedCommand::Source(source) => {
                let (stack, folder) = (source.stack, state.folder.clone());
                let place = preparation.place(stack, &source.driver, AskedAction::Read, folder)?;
                Some(Task {
                    answer: Some(state.input_file(source.position)),
                    ..preparation.command(source.command, &place)?
                })
            }
            PlannedCommand::None => None,
        };
        if planned.role == ApplyStepRole::Driver(StepRole::Plan) {
            state.is_partial = is_partial(&driver, extra, task.as_ref());
        }
        all.push((planned.role, step, task));
    }
    Some(all)
}

impl ApplyTurn<'_> {
    /// Stores the steps in the turn; returns them and their commands.
    pub(super) fn take(&mut self, steps: Steps) -> (Vec<Step>, Vec<Task>) {
        let mut taken = Vec::with_capacity(steps.len());
        let mut tasks = Vec::with_capacity(steps.len());
        for (role, step, task) in steps {
            if role == ApplyStepRole::Driver(StepRole::Plan) {
                self.plan.clone_from(&task);
            }
            self.roles.push(role);
            taken.push(step);
            tasks.extend(task);
        }
        (taken, tasks)
    }
}
