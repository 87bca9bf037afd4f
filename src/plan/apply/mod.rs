//! Applies a plan: its turns in one order, and the decisions while they run.
//!
//! A turn that has work and waits for no other work applies the plan that was shown. A turn after
//! stacks with work is planned again when it begins, and applied if the new plan stays within the
//! shown one. This module asks for no approval and knows no plan files.

mod changed;
mod director;
mod followups;
mod steps;
mod turn;
mod updated;
mod within;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use self::changed::ChangedOutputs;
use self::director::ReadInputs;
pub use self::director::{ApplyDirector, KeptGeneration};
pub use self::followups::{ApplyFollowUps, FollowUpStack};
use self::steps::commands;
use self::turn::ApplyTurn;
use self::updated::UpdatedStacks;
pub use self::within::{ShownChanges, UnshownChanges};
use super::ask::{attempts_of, folder_of, limits};
use super::code::PlanCode;
use super::commands::{CannotAsk, CommandPreparation, PLAN_FILE};
use super::entry::AskedAction;
use super::order::{OperationOrder, StackWork};
use super::planned::PlannedOrder;
use super::stack::PlanStack;
use super::succession::LeavingUser;
use crate::context::used_outputs::{UsedDigests, UsedOutputs};
use crate::driver::{Driver, Outputs};
use crate::path::StackPath;
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::run::execute::{Execution, Task};
use crate::run::schedule::{OnError, Schedule};
use crate::run::settings::RunSettings;
use crate::run::turn::{Operation, Turn};
use crate::selection::graph::{Graph, Precedence};
use crate::selection::reference::References;
use crate::state::document::Document;

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ApplyStack<'p> {
    pub stack: PlanStack,
    pub driver: Driver<'p>,
    pub shown: ShownChanges,
    /// The action that its driver is asked for if it is planned again.
    pub asked: AskedAction,
    pub work: StackWork,
    pub is_conditional: bool,
    pub is_planned: bool,
    /// Whether its tool's plan covers everything, with nothing deferred or left out.
    pub is_complete: bool,
    pub has_plan: bool,
    pub backend: Option<String>,
    pub outputs_before: Option<Outputs>,
    /// Its outputs if nothing is done, if known.
    pub outputs: Option<Outputs>,
    pub recorded: Option<BTreeMap<String, String>>,
    /// The serial of an earlier attempt that may have updated it without succeeding.
    pub attempted: Option<u64>,
    /// The outputs that it was applied with, if they are known.
    pub used: Option<UsedDigests>,
    /// Whether it is recorded although nothing is done.
    pub is_recorded: bool,
    pub checks: TurnChecks,
    /// The digests of the outputs that it was applied with, by name in `replace_triggered_by`.
    pub triggered_by: BTreeMap<String, String>,
    /// Whether new changes, if allowed, may destroy resources that were not shown.
    pub may_destroy_resources: bool,
    /// Whether the plan leaves open that its triggers replace it.
    pub has_open_triggers: bool,
    /// Whether it is destroyed right before it is applied if its triggers have changed by then.
    pub is_late: bool,
    /// Whether it was planned with mocks of its inputs.
    pub is_mocked: bool,
    /// The stacks with a new generation in this plan that its environment is computed from.
    pub generations: BTreeSet<StackIndex>,
    /// For an old generation: the stacks that must be applied before it is destroyed.
    pub leaving: Vec<LeavingUser>,
}

#[derive(Debug, Clone, Default)]
pub struct TurnChecks {
    /// Why a precondition is already known to fail.
    pub failed: Option<String>,
    pub has_postconditions: bool,
    /// Whether conditions may need its outputs.
    pub needs_outputs: bool,
    /// Whether policies are asked about it: they see the values of its tool's state after the apply.
    pub needs_state: bool,
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct ApplyOptions<'a> {
    pub run: &'a str,
    /// The folder for plans and answers; only its owner can read it.
    pub folder: &'a Path,
    /// Whether `init` runs even if it has run before.
    pub init: bool,
    pub extra: &'a [OsString],
    pub jobs: NonZeroUsize,
    pub on_error: OnError,
    pub allows_new_changes: bool,
    /// Whether part of the plan may already have been applied.
    pub is_partly_applied: bool,
    pub keeps_state: bool,
    pub may_add: bool,
    /// Whether the plan was rejected: none of its turns starts.
    pub is_rejected: bool,
    /// The exit status if every turn succeeds: other than 0 if the plan left out stacks with work.
    pub left_out_status: u8,
    /// The stacks with work that were applied before: others may not have used their outputs yet.
    pub done: &'a [StackIndex],
    pub lock_timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
pub struct ApplyProject<'a, 'p> {
    pub codes: PlanCode<'a, 'p>,
    pub graph: &'a Graph,
    pub references: &'p References,
    pub document: Option<&'a Document>,
}

pub struct PreparedApply<'a, 'p> {
    pub execution: Execution,
    pub tasks: Vec<Vec<Task>>,
    pub director: ApplyDirector<'a, 'p>,
    pub turns: Vec<(PlanStack, Operation)>,
    pub places: Option<TurnPlaces>,
}

pub struct TurnPlaces {
    /// The node of the first stack; the others follow in order.
    pub first: usize,
    pub ranks: Vec<u32>,
}

/// Prepares an apply: orders its turns, evaluates commands, finds programs. `put_plan` copies the
/// shown plan of a stack's tool to a path. If it fails, nothing may run.
pub fn prepare<'a, 'p>(
    surroundings: ApplyProject<'a, 'p>,
    stacks: &[ApplyStack<'p>],
    used_outputs: UsedOutputs<'p>,
    options: &ApplyOptions<'_>,
    put_plan: &mut dyn FnMut(&StackPath, &Path) -> io::Result<()>,
) -> Result<PreparedApply<'a, 'p>, CannotAsk> {
    let ApplyProject {
        codes,
        graph,
        references,
        document,
    } = surroundings;
    let project = codes.tree.project;
    let planned = ordered(codes, graph, document, stacks);
    let by_path = stacks.iter().map(|stack| (codes.path(stack.stack), stack));
    let by_path: BTreeMap<&StackPath, &ApplyStack<'p>> = by_path.collect();
    let mut preparation = CommandPreparation::new(codes, options.run).waiting(options.lock_timeout);
    let mut turns = Vec::new();
    let mut states = Vec::new();
    let mut tasks = Vec::new();
    let mut attempts = Vec::new();
    let order = &planned.order;
    let operations = planned.operations(project).into_iter();
    for (number, (operation, at)) in order.sequence.iter().zip(operations).enumerate() {
        let Some(&stack) = by_path.get(&at.stack) else {
            continue;
        };
        let folder = folder_of(options.folder, number);
        fs::create_dir_all(&folder).map_err(CannotAsk::Folder)?;
        let mut state = ApplyTurn::new(stack.clone(), operation.operation, folder, codes);
        let (extra, keeps_state) = (options.extra, options.keeps_state);
        let commands = commands(&mut preparation, &mut state, extra, keeps_state);
        let Some(commands) = commands else {
            continue;
        };
        if state.has_plan {
            put_plan(&state.path, &state.folder.join(PLAN_FILE)).map_err(CannotAsk::Folder)?;
        }
        let (steps, of_turn) = state.take(commands);
        turns.push(Turn {
            stack: state.path.clone(),
            operation: state.operation,
            steps: steps.into(),
        });
        attempts.push(attempts_of(codes, state.stack.stack));
        tasks.push(of_turn);
        states.push(state);
    }
    preparation.finish()?;
    let mut changed = ChangedOutputs::new(graph);
    for &stack in options.done {
        changed.set(stack, true);
    }
    let settings = RunSettings::default();
    let stacks = states.iter().map(|state| state.stack.stack);
    let mut limits = limits(project, &settings, stacks);
    let (schedule, places) = if options.may_add {
        let (schedule, places) = TurnPlaces::of(order, project, graph);
        for (limit, of_stacks) in limits.iter_mut().zip(settings.limits(project)) {
            let nodes = of_stacks.nodes.iter();
            limit.nodes.extend(nodes.map(|stack| places.first + stack));
        }
        (schedule, Some(places))
    } else {
        (order.schedule(), None)
    };
    let pairs = states.iter();
    Ok(PreparedApply {
        places,
        turns: pairs.map(|it| (it.stack.stack, it.operation)).collect(),
        execution: Execution {
            schedule: schedule
                .on_error(options.on_error)
                .at_once(options.jobs, &limits),
            turns,
            attempts,
            timeout: None,
            grace: settings.grace(),
            detailed_exit_code: false,
            had_changes: false,
            left_out_status: options.left_out_status,
            n_earlier: 0,
            is_rejected: options.is_rejected,
        },
        tasks,
        director: ApplyDirector {
            turns: states,
            run: options.run.to_owned(),
            changed,
            used_outputs,
            updated: UpdatedStacks::new(project, references, document),
            inputs: ReadInputs::new(codes.inputs),
            applied: BTreeMap::new(),
            destroyed: BTreeSet::new(),
            kept: Vec::new(),
            init: options.init,
            allows_new_changes: options.allows_new_changes,
            is_partly_applied: options.is_partly_applied,
            unread: Vec::new(),
            partial: Vec::new(),
            checker: None,
            followups: None,
            guard: None,
            failed_checks: Vec::new(),
        },
    })
}

fn ordered(
    codes: PlanCode<'_, '_>,
    graph: &Graph,
    document: Option<&Document>,
    stacks: &[ApplyStack<'_>],
) -> PlannedOrder {
    let project = codes.tree.project;
    let mut works = vec![StackWork::default(); project.stacks.len()];
    let of_tree = stacks.iter();
    for (stack, work) in of_tree.filter_map(|it| Some((it.stack.here()?, it.work))) {
        works[stack.get()] = work;
    }
    let removed = stacks
        .iter()
        .filter(|it| it.stack.here().is_none())
        .map(|it| codes.path(it.stack).as_str())
        .collect();
    let late = stacks
        .iter()
        .filter(|it| it.is_late)
        .filter_map(|it| Some(it.stack.here()?.get()))
        .collect();
    PlannedOrder::with_late(project, graph, document, &works, (&removed, &late))
}

impl TurnPlaces {
    /// Returns the schedule of an order to which turns may be added, and their places.
    pub fn of(order: &OperationOrder, project: &Project, graph: &Graph) -> (Schedule, Self) {
        let (schedule, first) = order.schedule_with_stacks(&Precedence::new(graph));
        let ranks = order.ranks_of_stacks(project.stacks.len());
        (schedule, TurnPlaces { first, ranks })
    }

    /// Returns the node and the rank of a turn that is added for a stack.
    pub fn of_stack(&self, stack: StackIndex) -> (usize, u32) {
        (self.first + stack.get(), self.ranks[stack.get()])
    }
}
