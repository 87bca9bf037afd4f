//! Stacks that fail to plan, and the stacks that an apply therefore leaves out.

use std::collections::{BTreeMap, BTreeSet};

use super::Planning;
use super::ask::{AskEnd, AskedTools};
use super::entries::Decisions;
use super::removals::Removals;
use super::subjects::StacksToPlan;
use super::tools::RunOrigin;
use crate::context::{Context, PLANS as FOLDER, PrivateFolder};
use crate::driver::Driver;
use crate::error::Result;
use crate::path::StackPath;
use crate::plan::ask::{AskOptions, prepare_validation};
use crate::plan::code::PlanCode;
use crate::plan::entry::{PlanMode, PlannedAction};
use crate::plan::{PlannedOrder, WorkBefore};
use crate::project::stack::StackIndex;
use crate::run::event::Outcome;
use crate::run::request::new_id;
use crate::state::document::Document;

/// The decisions on stacks and on removed ones, and why stacks are blocked.
pub(super) type PlanParts<'a, 'd> = (
    &'a mut Decisions,
    &'a mut Removals<'d>,
    &'a mut BTreeMap<StackIndex, String>,
);

pub(super) struct FailingStacks {
    mode: PlanMode,
    /// Those that run after stacks with work, but fail for another reason.
    pub(super) invalid: BTreeSet<StackIndex>,
    stacks: BTreeSet<StackIndex>,
    conditional: BTreeSet<StackIndex>,
}

impl Planning<'_> {
    /// Finds the stacks that fail. `runs_after` are the stacks with work that each stack runs after.
    pub(super) fn failing(
        self,
        subjects: &StacksToPlan<'_>,
        settled: &Decisions,
        runs_after: &BTreeMap<StackIndex, WorkBefore>,
        asked: &AskedTools,
    ) -> Result<FailingStacks> {
        let unknown = subjects
            .all
            .iter()
            .filter(|it| settled.is_unknown(it.stack))
            .map(|it| (it.stack, it.driver));
        let (open, failed): (Vec<_>, Vec<_>) =
            unknown.partition(|(stack, _)| runs_after.contains_key(stack));
        let invalid = invalid(self, asked, open)?;
        let failed = failed.into_iter().map(|(stack, _)| stack);
        Ok(FailingStacks {
            mode: self.request.options.mode,
            stacks: failed.chain(invalid.iter().copied()).collect(),
            invalid,
            conditional: runs_after.keys().copied().collect(),
        })
    }
}

/// Returns the stacks that certainly fail: their answer is unusable, or their configuration
/// invalid.
fn invalid(
    planning: Planning<'_>,
    asked: &AskedTools,
    failed: Vec<(StackIndex, Driver<'_>)>,
) -> Result<BTreeSet<StackIndex>> {
    if failed.is_empty() {
        return Ok(BTreeSet::new());
    }
    let Planning {
        context, request, ..
    } = planning;
    let path = |stack: StackIndex| &context.project.stacks[stack].path;
    let end = |it: &(StackIndex, Driver<'_>)| asked.end(path(it.0));
    let (mut invalid, open): (Vec<_>, Vec<_>) = failed.into_iter().partition(|it| match end(it) {
        Some(AskEnd::Answered) => true,
        Some(AskEnd::NotPlanned) => is_refused(asked, path(it.0)),
        Some(AskEnd::PlanFailed) | None => false,
    });
    let open: Vec<_> = open
        .into_iter()
        .filter(|it| end(it) == Some(AskEnd::PlanFailed))
        .collect();
    let id = new_id(&context.project.root);
    let place = PrivateFolder::of(context, FOLDER)?;
    let options = AskOptions::new(&id, place.path(), request.jobs);
    let environments = context.evaluator();
    let codes = PlanCode::of_tree(&context.project, &environments);
    let asking = prepare_validation(codes, &open, &options)
        .map_err(|cannot| request.tools.refuse(context, cannot))?;
    let turns = asking.execution.turns.clone();
    if !turns.is_empty() {
        let origin = RunOrigin {
            is_recorded: false,
            ..planning.origin()
        };
        let asked = request.tools.run(context, &options, origin, asking)?;
        let refused: BTreeSet<&StackPath> = asked
            .summary
            .endings
            .iter()
            .filter(|ending| matches!(ending.outcome, Outcome::Failed(_)))
            .map(|ending| &turns[ending.turn.get()].stack)
            .collect();
        invalid.extend(
            open.iter()
                .filter(|(stack, _)| refused.contains(path(*stack))),
        );
    }
    Ok(invalid.into_iter().map(|(stack, _)| stack).collect())
}

/// How much of a log is read.
const LONGEST_LOG: usize = 1 << 20;

/// Returns whether a tool says that it cannot be initialized with this configuration, whatever the state of other
/// stacks is.
fn is_refused(asked: &AskedTools, stack: &StackPath) -> bool {
    let Some((Ok(mut log), _)) = asked.log(stack) else {
        return false;
    };
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(Some((_, length))) = log.read(&mut buffer)
        && text.len() < LONGEST_LOG
    {
        text.extend(&buffer[..length]);
    }
    let text = String::from_utf8_lossy(&text);
    // The tools wrap their lines.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let refusals = [
        "configuration must be valid before initialization",
        "Unsupported Terraform Core version",
        "Unsupported OpenTofu Core version",
    ];
    refusals.iter().any(|refusal| text.contains(refusal))
}

impl FailingStacks {
    pub(super) fn with(mut self, stacks: impl Iterator<Item = StackIndex>) -> Self {
        self.stacks.extend(stacks);
        self
    }

    /// Blocks the stacks that an apply would skip if these stacks and the failed removals failed.
    pub(super) fn leave_out(
        &self,
        context: &Context,
        subjects: &StacksToPlan<'_>,
        document: Option<&Document>,
        (settled, removals, blocked): PlanParts<'_, '_>,
    ) {
        for (path, cause) in self.skipped_after(context, subjects, settled, removals, document) {
            let why = format!("runs after {cause}, which failed to plan");
            if let Some(stack) = context.project.stacks.find(&path) {
                settled.block(stack, &why);
                blocked.insert(stack, why);
            } else if let Some(removal) = removals.of_key(path.as_str()) {
                removal.block(why, "");
            }
        }
    }

    /// Returns the stacks that an apply would skip, each with the failed one.
    fn skipped_after(
        &self,
        context: &Context,
        subjects: &StacksToPlan<'_>,
        settled: &Decisions,
        removals: &Removals<'_>,
        document: Option<&Document>,
    ) -> BTreeMap<StackPath, StackPath> {
        let (project, graph) = (&context.project, &context.graph);
        let mut failed: BTreeSet<&StackPath> = removals.failed.keys().collect();
        failed.extend(self.stacks.iter().map(|it| &project.stacks[*it].path));
        if failed.is_empty() {
            return BTreeMap::new();
        }
        let mut actions: BTreeMap<StackIndex, PlannedAction> = settled.steps(subjects).collect();
        let work = match self.mode {
            PlanMode::Destroy => PlannedAction::Delete,
            PlanMode::Normal | PlanMode::RefreshOnly => PlannedAction::Update,
        };
        for stack in self.conditional.iter().chain(&self.stacks) {
            let action = actions.entry(*stack).or_insert(work);
            if !action.is_work() {
                *action = work;
            }
        }
        let mut removed = removals.actions();
        let failed_removals = removals.failed.keys();
        removed.extend(failed_removals.map(|path| (path.to_string(), PlannedAction::Delete)));
        let actions = actions.into_iter();
        PlannedOrder::new(project, graph, document, actions, &removed)
            .skipped_after(project, &failed)
    }
}
