//! Carrying a plan out: its turns in one order, and what is decided while they run.
//!
//! A turn of a stack with work and nothing before it carries out the plan that was shown. Any other one is
//! decided when its time has come: after stacks with work it is planned anew, and carried out if that is
//! within what was shown. This module asks nobody for approval, and knows nothing of files with plans.

mod changed;
mod director;
mod facts;
mod followups;
mod shown_plan;
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
pub use self::director::{ApplyDirector, KeptGeneration};
pub use self::followups::{FollowUpStack, FollowUps};
use self::steps::commands;
use self::turn::TurnState;
use self::updated::Updated;
pub use self::within::{NotShown, Shown};
use super::ask::{attempts_of, folder_of, limits};
use super::code::{Codes, PlanStack};
use super::commands::{CannotAsk, PLAN_FILE, Preparation};
use super::entry::Asked;
use super::order::{Order, Work};
use super::planned::PlannedOrder;
use super::succession::Leaving;
use super::upstream::Upstream;
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

/// A stack that an apply has turns for.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ApplyStack<'p> {
    pub stack: PlanStack,
    pub driver: Driver<'p>,
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
    /// Whether resources may be destroyed that were not shown, if changes may be that were not.
    pub may_destroy_resources: bool,
    /// Whether it is destroyed right before it is applied if others have changed by then that replace it.
    pub is_late: bool,
    /// The stacks that get another generation in this plan, if its environment is computed from that.
    pub generations: BTreeSet<StackIndex>,
    /// If it is an old generation: the stacks that have to be applied before it is destroyed.
    pub leaving: Vec<Leaving>,
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
    /// Whether turns may be added.
    pub may_add: bool,
    /// Whether nobody has approved the plan: none of its turns starts.
    pub is_rejected: bool,
    /// The stacks with work that has been done already: others may not know their outputs.
    pub done: &'a [StackIndex],
    /// How long tools wait for the locks of their own states.
    pub lock_timeout: Option<Duration>,
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
pub struct Applying<'a, 'p> {
    /// The turns.
    pub execution: Execution,
    /// Their commands.
    pub tasks: Vec<Vec<Task>>,
    /// What decides while they run.
    pub director: ApplyDirector<'a, 'p>,
    pub turns: Vec<(PlanStack, Operation)>,
    /// Where turns may be added, if they may.
    pub places: Option<Places>,
}

/// Where turns of the stacks of the tree may be added to an apply.
#[derive(Debug)]
pub struct Places {
    /// The node of the first stack; those of the others follow.
    pub first: usize,
    /// What breaks ties, by stack.
    pub ranks: Vec<u32>,
}

/// Prepares to carry a plan out: orders its turns, evaluates commands, looks programs up. `put_plan` puts
/// the plan of a stack's tool that was shown at a place.
///
/// # Errors
///
/// If any of that fails; then nothing is to be run.
pub fn prepare<'a, 'p>(
    surroundings: Surroundings<'a, 'p>,
    stacks: &[ApplyStack<'p>],
    upstream: Upstream,
    options: &ApplyOptions<'_>,
    put_plan: &mut dyn FnMut(&StackPath, &Path) -> io::Result<()>,
) -> Result<Applying<'a, 'p>, CannotAsk> {
    let Surroundings {
        codes,
        graph,
        references,
        document,
    } = surroundings;
    let project = codes.tree.project;
    let planned = ordered(codes, graph, document, stacks);
    let by_path = stacks.iter().map(|stack| (codes.path(stack.stack), stack));
    let by_path: BTreeMap<&StackPath, &ApplyStack<'p>> = by_path.collect();
    let mut preparation = Preparation::new(codes, options.run).waiting(options.lock_timeout);
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
        let (schedule, places) = Places::of(order, project, graph);
        for (limit, of_stacks) in limits.iter_mut().zip(settings.limits(project)) {
            let nodes = of_stacks.nodes.iter();
            limit.nodes.extend(nodes.map(|stack| places.first + stack));
        }
        (schedule, Some(places))
    } else {
        (order.schedule(), None)
    };
    Ok(Applying {
        places,
        turns: states
            .iter()
            .map(|state| (state.stack.stack, state.operation))
            .collect(),
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
            n_earlier: 0,
            is_rejected: options.is_rejected,
        },
        tasks,
        director: ApplyDirector {
            turns: states,
            run: options.run.to_owned(),
            changed,
            upstream,
            updated: Updated::new(project, references),
            applied: BTreeMap::new(),
            destroyed: BTreeSet::new(),
            kept: Vec::new(),
            init: options.init,
            allows_new_changes: options.allows_new_changes,
            is_again: options.is_again,
            unread: Vec::new(),
            checker: None,
            followups: None,
            guard: None,
            failed_checks: Vec::new(),
        },
    })
}

/// Orders the work on stacks.
fn ordered(
    codes: Codes<'_, '_>,
    graph: &Graph,
    document: Option<&Document>,
    stacks: &[ApplyStack<'_>],
) -> PlannedOrder {
    let project = codes.tree.project;
    let mut works = vec![Work::default(); project.stacks.len()];
    let of_tree = stacks.iter();
    for (stack, work) in of_tree.filter_map(|it| Some((it.stack.here()?, it.work))) {
        works[stack.get()] = work;
    }
    let gone = stacks.iter().filter(|it| it.stack.here().is_none());
    let gone = gone.map(|it| codes.path(it.stack).as_str()).collect();
    let late = stacks.iter().filter(|it| it.is_late);
    let late = late.filter_map(|it| Some(it.stack.here()?.get())).collect();
    PlannedOrder::with_late(project, graph, document, &works, (&gone, &late))
}

impl Places {
    /// Returns the schedule of an order to which turns may be added, and where.
    pub fn of(order: &Order, project: &Project, graph: &Graph) -> (Schedule, Self) {
        let (schedule, first) = order.schedule_with_stacks(&Precedence::new(graph));
        let ranks = order.ranks_of_stacks(project.stacks.len());
        (schedule, Places { first, ranks })
    }

    /// Returns the node and the rank of a turn that is added for a stack.
    pub fn of_stack(&self, stack: StackIndex) -> (usize, u32) {
        (self.first + stack.get(), self.ranks[stack.get()])
    }
}
