//! Carrying a plan out: its turns in one order, and what is decided while they run.
//!
//! A turn of a stack with work and nothing before it carries out the plan that was shown. Any other one is
//! decided when its time has come: after stacks with work it is planned anew, and carried out if that is
//! within what was shown. This module asks nobody for approval, and knows nothing of files with plans.

mod changed;
mod director;
mod shown_plan;
mod updated;
mod within;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use self::changed::ChangedOutputs;
pub use self::director::ApplyDirector;
use self::director::{Attempted, TurnState};
use self::updated::Updated;
pub use self::within::{NotShown, Shown};
use super::ask::{attempts_of, folder_of, limits};
use super::code::{Codes, PlanStack};
use super::commands::{CannotAsk, PLAN_FILE, Preparation};
use super::entry::Asked;
use super::order::Work;
use super::planned::PlannedOrder;
use super::upstream::Upstream;
use crate::driver::{Driver, Outputs, PlanKind, StepPlan, StepRole};
use crate::path::StackPath;
use crate::project::stack::{StackIndex, StackMode};
use crate::run::execute::{Execution, Task};
use crate::run::schedule::OnError;
use crate::run::settings::RunSettings;
use crate::run::turn::{Operation, Step, Turn};
use crate::selection::graph::Graph;
use crate::selection::reference::References;
use crate::state::document::Document;

/// A stack that an apply has turns for.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ApplyStack<'p> {
    /// The stack.
    pub stack: PlanStack,
    /// Its driver.
    pub driver: Driver<'p>,
    /// What was shown of it.
    pub shown: Shown,
    /// The action that its driver is asked for where it is planned anew.
    pub asked: Asked,
    /// What is done.
    pub work: Work,
    /// Whether it runs after stacks with work.
    pub is_conditional: bool,
    /// Whether its tool could say what it would do.
    pub is_planned: bool,
    /// Whether its tool's plan has everything.
    pub is_complete: bool,
    /// Whether the plan of its tool is there that was shown.
    pub has_plan: bool,
    /// Where its tool keeps its own state, if that is known.
    pub backend: Option<String>,
    /// Its outputs before the apply, as far as they are known.
    pub outputs_before: Option<Outputs>,
    /// Its outputs where nothing is done, as far as they are known.
    pub outputs: Option<Outputs>,
    /// Its outputs on record.
    pub recorded: Option<BTreeMap<String, String>>,
    /// Whether it goes on record although nothing is to be done.
    pub is_recorded: bool,
    /// What is known of conditions.
    pub checks: TurnChecks,
    /// The outputs that it was applied with, by what names them in `replace_triggered_by`: their digests.
    pub triggered_by: BTreeMap<String, String>,
}

/// What is known of conditions before a stack has its turn.
#[derive(Debug, Clone, Default)]
pub struct TurnChecks {
    /// Why a precondition of the stack does not hold, if one is known not to.
    pub failed: Option<String>,
    /// Whether the stack has postconditions.
    pub has_postconditions: bool,
    /// Whether conditions may need its outputs.
    pub is_looked_at: bool,
}

/// How a plan is carried out.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct ApplyOptions<'a> {
    /// The id of the run.
    pub run: &'a str,
    /// The folder for plans and answers; only its owner can look into it.
    pub folder: &'a Path,
    /// Whether `init` runs in any case.
    pub init: bool,
    /// The words that every `plan` gets.
    pub extra: &'a [OsString],
    /// How many stacks are worked on at once.
    pub jobs: NonZeroUsize,
    /// What happens after a failure.
    pub on_error: OnError,
    /// Whether changes are carried out that were not shown.
    pub allows_new_changes: bool,
    /// Whether a part of the plan may have been carried out already.
    pub is_again: bool,
    /// Whether the state is kept.
    pub keeps_state: bool,
    /// The stacks with work that has been done already: others may not know their outputs.
    pub done: &'a [StackIndex],
}

/// Where a plan is carried out.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a, 'p> {
    /// The project, and the code of stacks that were removed.
    pub codes: Codes<'a, 'p>,
    /// The constraints of the project.
    pub graph: &'a Graph,
    /// The references of the project.
    pub references: &'p References,
    /// What is on record, if the project keeps a state.
    pub document: Option<&'a Document>,
}

/// What is needed to carry a plan out.
#[derive(Debug)]
pub struct Applying<'p> {
    /// The turns.
    pub execution: Execution,
    /// Their commands.
    pub tasks: Vec<Vec<Task>>,
    /// What decides while they run.
    pub director: ApplyDirector<'p>,
    /// The stack and the operation of each turn.
    pub turns: Vec<(PlanStack, Operation)>,
}

/// Prepares to carry a plan out: orders its turns, evaluates commands, looks programs up. `put_plan` puts
/// the plan of a stack's tool that was shown at a place.
///
/// # Errors
///
/// If any of that fails; then nothing is to be run.
pub fn prepare<'p>(
    surroundings: Surroundings<'_, 'p>,
    stacks: &[ApplyStack<'p>],
    upstream: Upstream,
    options: &ApplyOptions<'_>,
    put_plan: &mut dyn FnMut(&StackPath, &Path) -> io::Result<()>,
) -> Result<Applying<'p>, CannotAsk> {
    let Surroundings {
        codes,
        graph,
        references,
        document,
    } = surroundings;
    let project = codes.tree.project;
    let mut works = vec![Work::default(); project.stacks.len()];
    for (stack, work) in stacks
        .iter()
        .filter_map(|it| Some((it.stack.here()?, it.work)))
    {
        works[stack.get()] = work;
    }
    let gone = stacks.iter().filter(|it| it.stack.here().is_none());
    let gone = gone.map(|it| codes.path(it.stack).as_str()).collect();
    let planned = PlannedOrder::of(project, graph, document, &works, &gone);
    let by_path = stacks.iter().map(|stack| (codes.path(stack.stack), stack));
    let by_path: BTreeMap<&StackPath, &ApplyStack<'p>> = by_path.collect();
    let mut preparation = Preparation::new(codes, options.run);
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
        let mut state = TurnState::new(stack.clone(), operation.operation, folder, codes);
        let Some(commands) = commands(&mut preparation, &mut state, options) else {
            continue;
        };
        if state.has_plan {
            put_plan(&state.path, &state.folder.join(PLAN_FILE)).map_err(CannotAsk::Folder)?;
        }
        let mut steps = Vec::with_capacity(commands.len());
        let mut of_turn = Vec::with_capacity(commands.len());
        for (role, step, task) in commands {
            if role == Role::Driver(StepRole::Plan) {
                state.plan.clone_from(&task);
            }
            state.roles.push(role);
            steps.push(step);
            of_turn.extend(task);
        }
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
    let limits = limits(project, &settings, stacks);
    Ok(Applying {
        turns: states
            .iter()
            .map(|state| (state.stack.stack, state.operation))
            .collect(),
        execution: Execution {
            schedule: order
                .schedule()
                .on_error(options.on_error)
                .at_once(options.jobs, &limits),
            turns,
            attempts,
            timeout: None,
            grace: settings.grace(),
            detailed_exit_code: false,
            had_changes: false,
            n_earlier: 0,
        },
        tasks,
        director: ApplyDirector {
            turns: states,
            run: options.run.to_owned(),
            changed,
            upstream,
            updated: Updated::new(project, references),
            init: options.init,
            allows_new_changes: options.allows_new_changes,
            is_again: options.is_again,
            unread: Vec::new(),
            checker: None,
            failed_checks: Vec::new(),
        },
    })
}

/// What a step of a turn is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A command of the driver.
    Driver(StepRole),
    /// The intent is confirmed.
    Confirm,
    /// The postconditions are checked.
    Check,
}

/// The steps of a turn: what each is for, with its command.
type Steps = Vec<(Role, Step, Option<Task>)>;

/// Returns the steps of a turn with their commands; `None` if something is wrong.
fn commands(
    preparation: &mut Preparation<'_, '_>,
    state: &mut TurnState<'_>,
    options: &ApplyOptions<'_>,
) -> Option<Steps> {
    let ApplyStack {
        stack,
        driver,
        ref checks,
        ..
    } = state.stack;
    let TurnChecks {
        has_postconditions,
        is_looked_at,
        ..
    } = *checks;
    let place = preparation.place(stack, &driver, state.asked, state.folder.clone())?;
    state.initialized = place.initialized().map(Path::to_owned);
    let mut before: Vec<StepPlan<'_>> = driver.init().into_iter().collect();
    before.extend(driver.asking(state.kind, &place.plan_file(), options.extra));
    let mut acting: Vec<StepPlan<'_>> = Vec::new();
    if state.operation != Operation::Ask {
        let destroys = state.operation == Operation::Destroy;
        acting.extend(driver.acting(destroys, &place.plan_file()));
        if !destroys {
            acting.extend(driver.outputs());
        }
    } else if driver.tool.is_none() || is_looked_at {
        // The tools have them in their plans, but for values that are secret.
        acting.extend(driver.outputs());
    }
    let mut all = Vec::new();
    let mut add = |step: StepPlan<'_>, all: &mut Steps| {
        let role = Role::Driver(step.role);
        let (step, task) = preparation.command(step, &place)?;
        all.push((role, step, Some(task)));
        Some(())
    };
    for step in before {
        add(step, &mut all)?;
    }
    if options.keeps_state && state.operation != Operation::Ask {
        all.push((Role::Confirm, Step::Confirmation, None));
    }
    for step in acting {
        add(step, &mut all)?;
    }
    if has_postconditions && state.operation != Operation::Destroy {
        all.push((Role::Check, Step::Check, None));
    }
    Some(all)
}

impl<'p> TurnState<'p> {
    fn new(
        stack: ApplyStack<'p>,
        operation: Operation,
        folder: PathBuf,
        codes: Codes<'_, '_>,
    ) -> Self {
        let (code, index) = codes.of(stack.stack);
        let of_stack = &code.project.stacks[index];
        let is_read = of_stack.mode == StackMode::Read;
        let (operation, kind, asked) = match operation {
            Operation::Destroy => (operation, PlanKind::Destroy, Asked::Delete),
            _ if is_read => (Operation::Ask, PlanKind::RefreshOnly, Asked::Read),
            _ if stack.work.destroy => (operation, PlanKind::Normal, Asked::Create),
            _ => (operation, PlanKind::Normal, stack.asked),
        };
        // The plan of a replace is that of its first half.
        let is_shown = operation != Operation::Ask
            && stack.shown.action.is_some()
            && (operation == Operation::Destroy || !stack.work.destroy);
        TurnState {
            has_plan: stack.has_plan && is_shown,
            is_as_shown: is_shown && (stack.has_plan || stack.driver.tool.is_none()),
            path: codes.path(stack.stack).clone(),
            stack,
            operation,
            kind,
            asked,
            roles: Vec::new(),
            initialized: None,
            folder,
            root: code.project.root.clone(),
            plan: None,
            attempt: Attempted::default(),
            has_acted: false,
        }
    }
}
