//! Turns the entries of a plan into the remaining work on each stack.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::EntryIndex;
use crate::context::Context;
use crate::context::used_outputs::{UsedDigests, UsedOutputs};
use crate::driver::{Driver, Outputs};
use crate::path::StackPath;
use crate::plan::apply::{ApplyStack, ShownChanges, TurnChecks};
use crate::plan::entry::{AskedAction, PlanEntry, PlanMode, PlannedAction};
use crate::plan::order::StackWork;
use crate::plan::stack::PlanStack;
use crate::plan::stale::{DoneOperations, OperationKey};
use crate::plan::{Plan, SavedPlan, SavedStack};
use crate::project::Project;
use crate::project::driver::DriverStep;
use crate::project::stack::{StackIndex, StackMode};
use crate::run::state_lock::declared;
use crate::state::document::{Document, Entry, Inputs, unknown_outputs};
use crate::state::rules::RecordedRules;

pub struct RemainingWork<'p> {
    pub stacks: Vec<ApplyStack<'p>>,
    pub records: Vec<RecordOnly<'p>>,
    pub removed: Vec<ToDestroy<'p>>,
    /// The removed stacks that are only removed from the state.
    pub forgotten: Vec<StackPath>,
    /// The stacks whose work is already done.
    pub done: Vec<StackIndex>,
    /// The unchanged stacks whose declarations differ from the recorded ones.
    pub declared: Vec<StackIndex>,
}

#[derive(Clone, Copy)]
pub struct ToDestroy<'s> {
    pub entry: &'s PlanEntry,
    pub rest: &'s SavedStack,
}

impl ToDestroy<'_> {
    /// Returns the stack for an apply: its index among the removed stacks, and its driver.
    pub fn stack<'p>(&self, position: usize, driver: Driver<'p>) -> ApplyStack<'p> {
        ApplyStack {
            stack: PlanStack::Removed(position),
            driver,
            shown: ShownChanges::of(self.entry, self.rest.changes.clone()),
            asked: AskedAction::Delete,
            work: StackWork {
                destroy: true,
                apply: false,
            },
            is_conditional: false,
            is_planned: true,
            is_complete: self.entry.is_complete,
            has_plan: self.rest.plan.is_some(),
            backend: self.rest.backend.clone(),
            outputs_before: None,
            outputs: None,
            recorded: None,
            attempted: None,
            used: None,
            is_recorded: true,
            checks: TurnChecks::default(),
            triggered_by: BTreeMap::new(),
            may_destroy_resources: true,
            has_open_triggers: false,
            is_late: false,
            is_mocked: false,
            generations: BTreeSet::new(),
            leaving: Vec::new(),
        }
    }
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct RecordOnly<'p> {
    pub stack: StackIndex,
    pub driver: Driver<'p>,
    pub backend: Option<String>,
    pub outputs: Option<Outputs>,
    /// Whether it is recorded with its current inputs.
    pub is_settled: bool,
    pub is_shown: bool,
    /// Whether none of it exists, so that its entry is removed.
    pub is_missing: bool,
    /// Whether all of the stack matches its configuration.
    pub is_complete: bool,
}

impl RecordOnly<'_> {
    /// Returns the digests of the outputs to record, if they are known, given the recorded entry and the id of the plan.
    pub fn outputs(&self, entry: Option<&Entry>, plan: &str) -> Option<BTreeMap<String, String>> {
        let earlier = entry.and_then(|entry| entry.outputs.as_ref());
        // Somebody else or a failed attempt may have changed them.
        let is_pending = !self.is_settled || entry.is_some_and(|entry| !entry.has_succeeded());
        match &self.outputs {
            Some(outputs) => Some(outputs.recorded(plan, earlier, is_pending)),
            None if is_pending && !self.driver.is_none() => Some(unknown_outputs(plan)),
            None => earlier.cloned(),
        }
    }
}

impl<'p> RemainingWork<'p> {
    /// Adds a removed stack, unless it is done.
    fn add_removed(
        &mut self,
        entry: &'p PlanEntry,
        rest: &'p SavedStack,
        progress: &DoneOperations,
    ) {
        let destroyed = (rest.stack.clone(), OperationKey::Destroy);
        if progress.done.contains(&destroyed) {
            return;
        }
        match entry.action {
            PlannedAction::Delete => self.removed.push(ToDestroy { entry, rest }),
            _ => self.forgotten.push(rest.stack.clone()),
        }
    }

    /// Keeps only these operations, and the changes of records.
    pub fn keep_only(
        &mut self,
        project: &Project,
        operations: &BTreeSet<(StackPath, OperationKey)>,
    ) {
        let has = |stack: &StackPath, operation| operations.contains(&(stack.clone(), operation));
        self.stacks.retain_mut(|it| {
            let Some(stack) = it.stack.here() else {
                return false;
            };
            let path = &project.stacks[stack].path;
            it.work.destroy &= has(path, OperationKey::Destroy);
            it.work.apply &= has(path, OperationKey::Apply);
            it.is_late &= it.work.apply;
            it.work != StackWork::default()
        });
        self.removed
            .retain(|it| has(&it.entry.stack, OperationKey::Destroy));
    }

    /// Drops all changes of records: nothing of the plan is approved.
    pub fn keep_records(&mut self) {
        self.records.clear();
        self.forgotten.clear();
        self.declared.clear();
    }

    /// Drops the changes of some stacks' records.
    pub fn leave_out(&mut self, project: &Project, stacks: &BTreeSet<StackPath>) {
        let is_left_out = |stack: StackIndex| stacks.contains(&project.stacks[stack].path);
        self.records.retain(|it| !is_left_out(it.stack));
        self.declared.retain(|&stack| !is_left_out(stack));
        self.forgotten.retain(|path| !stacks.contains(path));
    }

    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
            && self.removed.is_empty()
            && self.forgotten.is_empty()
            && self.records.is_empty()
            && self.declared.is_empty()
    }

    /// Returns whether only the state is updated, and nothing that the plan shows is done.
    pub fn is_silent(&self) -> bool {
        self.stacks.is_empty()
            && self.removed.is_empty()
            && self.forgotten.is_empty()
            && !self.records.iter().any(|record| record.is_shown)
    }

    /// Returns whether there is work besides undecided stacks and reads.
    pub fn has_work(&self) -> bool {
        let has_turns = self.stacks.iter().any(|it| it.shown.action.is_some());
        let is_recorded = self.records.iter().any(|record| record.is_shown);
        has_turns || is_recorded || !self.removed.is_empty() || !self.forgotten.is_empty()
    }

    pub fn recorded(&self) -> impl Iterator<Item = StackIndex> {
        let with_turns = self.stacks.iter().filter_map(|it| it.stack.here());
        with_turns.chain(self.records.iter().map(|it| it.stack))
    }

    /// Drops the stacks whose record is up to date: `--full` asks these, too.
    pub fn leave_out_recorded(
        &mut self,
        project: &Project,
        document: Option<&Document>,
        used: &mut UsedOutputs<'_>,
    ) {
        let Some(document) = document else { return };
        self.records.retain(|record| {
            let stack = &project.stacks[record.stack];
            let Some(entry) = document.stacks.get(stack.path.as_str()) else {
                return !record.is_missing;
            };
            let applied = entry.applied.as_ref();
            let knows_backend = record.backend.is_none() || record.backend == entry.backend;
            let is_up_to_date = !record.is_missing
                && record.is_settled
                && knows_backend
                && entry.driver.as_deref() == Some(record.driver.name)
                && record.outputs(Some(entry), "") == entry.outputs
                && applied.and_then(UsedDigests::of) == Some(used.of(record.stack))
                && is_declared(entry, &declared(project, record.stack, None));
            !is_up_to_date
        });
    }

    /// Sets whether the apply may replace stacks that the plan does not replace.
    pub fn allow_late(&mut self, is_allowed: bool) {
        for stack in self.stacks.iter_mut().filter(|it| it.is_late) {
            stack.is_late = is_allowed;
            stack.work.destroy |= is_allowed;
        }
    }

    /// Returns how many stacks the apply destroys, and how many more it may have to replace.
    pub fn n_destroying(&self) -> (usize, usize) {
        let n_destroys = self.stacks.iter().filter(|it| it.work.destroy).count();
        let n_late = self.stacks.iter().filter(|it| it.is_late).count();
        (n_destroys + self.removed.len(), n_late)
    }
}

/// Returns the remaining work, given the state and the progress of the plan.
pub fn to_do<'p>(
    context: &'p Context,
    saved: &'p SavedPlan,
    document: Option<&Document>,
    progress: &DoneOperations,
) -> RemainingWork<'p> {
    let mut to_do = todo(&context.project, saved, document, progress);
    if saved.plan.mode != PlanMode::RefreshOnly
        && let Some(document) = document
    {
        to_do.declared = declares_otherwise(context, saved, document);
    }
    to_do
}

/// Returns unchanged stacks whose recorded declarations differ, or whose inputs follow other rules.
fn declares_otherwise(
    context: &Context,
    saved: &SavedPlan,
    document: &Document,
) -> Vec<StackIndex> {
    let Some(input_digests) = &context.state.input_digests else {
        return Vec::new();
    };
    let stacks = &context.project.stacks;
    let pairs = EntryIndex::new(stacks, document);
    let entries = saved.plan.entries.iter();
    let unchanged =
        entries.filter(|entry| entry.blocked.is_none() && saved.stack(&entry.stack).is_none());
    let is_other = |&stack: &StackIndex| {
        let entry = pairs.key(stack).map(|key| &document.stacks[key]);
        entry.is_some_and(|entry| {
            let applied = entry.applied.as_ref();
            let inputs = applied.and_then(|applied| applied.inputs.as_ref());
            let now = declared(&context.project, stack, None);
            let rules = &input_digests.stacks[&stack].inputs.rules;
            let other = |inputs| follows_other_rules(&now.lifecycle, inputs, rules);
            !is_declared(entry, &now) || inputs.is_some_and(other)
        })
    };
    let found = unchanged.filter_map(|entry| stacks.find(&entry.stack));
    found.filter(is_other).collect()
}

fn todo<'p>(
    project: &'p Project,
    saved: &'p SavedPlan,
    document: Option<&Document>,
    progress: &DoneOperations,
) -> RemainingWork<'p> {
    let pairs = document.map(|document| EntryIndex::new(&project.stacks, document));
    let mut todo = RemainingWork {
        stacks: Vec::new(),
        records: Vec::new(),
        removed: Vec::new(),
        forgotten: Vec::new(),
        done: Vec::new(),
        declared: Vec::new(),
    };
    for of_stack in &saved.stacks {
        let found = saved.plan.entry(&of_stack.stack);
        if let Some(entry) = found.filter(|entry| entry.removed.is_some()) {
            todo.add_removed(entry, of_stack, progress);
            continue;
        }
        let stack = project.stacks.find(&of_stack.stack);
        let driver = Driver::named(project, &of_stack.driver);
        let (Some(entry), Some(stack), Some(driver)) = (found, stack, driver) else {
            continue;
        };
        let recorded = document.zip(pairs.as_ref()).and_then(|(document, pairs)| {
            let key = pairs.key(stack)?;
            document.stacks.get(key)
        });
        let done = |operation| (progress.done).contains(&(of_stack.stack.clone(), operation));
        let is_conditional = !entry.after.is_empty();
        let Some((destroys, applies)) = destroys_and_applies(&saved.plan, entry) else {
            continue;
        };
        let work = StackWork {
            destroy: destroys && !done(OperationKey::Destroy),
            apply: applies && !done(OperationKey::Apply),
        };
        if !destroys && !applies {
            let is_missing = saved.plan.mode == PlanMode::Destroy
                && entry.action == PlannedAction::NoOp
                && project.stacks[stack].mode == StackMode::Manage
                && !driver.is_none();
            // Without a state there is nothing to record; a destroy only removes entries.
            let is_recorded = match saved.plan.mode {
                PlanMode::Destroy => is_missing && recorded.is_some(),
                PlanMode::Normal | PlanMode::RefreshOnly => document.is_some(),
            };
            if is_recorded && !done(OperationKey::Apply) {
                todo.records.push(RecordOnly {
                    stack,
                    driver,
                    backend: of_stack.backend.clone(),
                    outputs: of_stack.outputs.clone(),
                    is_settled: recorded
                        .is_some_and(|recorded| has_current_inputs(recorded, of_stack)),
                    is_shown: !matches!(entry.action, PlannedAction::NoOp | PlannedAction::Read),
                    is_missing,
                    is_complete: entry.is_complete,
                });
            }
            continue;
        }
        if work == StackWork::default() {
            todo.done.push(stack);
            continue;
        }
        let is_new = document.is_some() && of_stack.record.is_none();
        let is_made_anew = destroys && !work.destroy || entry.generation.is_some();
        let is_new = is_new || is_made_anew || entry.action == PlannedAction::Create;
        let is_read = project.stacks[stack].mode == StackMode::Read;
        todo.stacks.push(ApplyStack {
            stack: PlanStack::Here(stack),
            driver,
            shown: ShownChanges::of(entry, of_stack.changes.clone()),
            asked: match is_new {
                _ if saved.plan.accepts_drift(entry) => AskedAction::Refresh,
                true => AskedAction::Create,
                false => AskedAction::Update,
            },
            work,
            is_conditional,
            is_planned: entry.is_planned,
            is_complete: entry.is_complete,
            has_plan: of_stack.plan.is_some(),
            backend: (of_stack.backend.clone())
                .or_else(|| recorded.and_then(|recorded| recorded.backend.clone())),
            outputs_before: of_stack.outputs_before.clone(),
            outputs: of_stack.outputs.clone(),
            recorded: recorded.and_then(|recorded| recorded.outputs.clone()),
            attempted: recorded.and_then(|it| it.attempted),
            used: recorded.and_then(|it| UsedDigests::of(it.applied.as_ref()?)),
            is_recorded: is_read || recorded.is_none_or(|it| lacks(it, of_stack)),
            checks: TurnChecks::default(),
            triggered_by: recorded.map(triggered_by).unwrap_or_default(),
            may_destroy_resources: project.allows_resource_destroy(stack),
            has_open_triggers: !entry.replaced_if.is_empty(),
            is_late: !destroys && may_be_late(project, stack, entry, &driver),
            is_mocked: !entry.mocked.is_empty(),
            generations: BTreeSet::new(),
            leaving: Vec::new(),
        });
    }
    todo
}

/// Returns the digests of the outputs that a stack was applied with, by name in `replace_triggered_by`.
fn triggered_by(recorded: &Entry) -> BTreeMap<String, String> {
    let applied = recorded.applied.as_ref();
    applied
        .map(|applied| applied.triggered_by.clone())
        .unwrap_or_default()
}

/// Returns whether the apply may decide to replace the stack.
fn may_be_late(
    project: &Project,
    stack: StackIndex,
    entry: &PlanEntry,
    driver: &Driver<'_>,
) -> bool {
    let may_destroy = driver.has(DriverStep::Destroy) && !creates_first(project, stack);
    may_destroy && !entry.replaced_if.is_empty()
}

/// Returns whether a replace of the stack creates first, which needs a plan.
fn creates_first(project: &Project, stack: StackIndex) -> bool {
    let rule = project.rules_of(stack).create_before_destroy;
    rule.is_some_and(|rule| rule.value)
}

/// Returns whether an entry destroys, and whether it applies; `None` if not even the state changes.
fn destroys_and_applies(plan: &Plan, entry: &PlanEntry) -> Option<(bool, bool)> {
    let is_decided_later = !entry.after.is_empty();
    Some(match entry.action {
        PlannedAction::NoOp if plan.mode == PlanMode::RefreshOnly => {
            plan.accepts_drift(entry).then_some((false, true))?
        }
        PlannedAction::Delete => (true, false),
        PlannedAction::Replace => (entry.destroys(), true),
        PlannedAction::Create | PlannedAction::Update => (false, true),
        PlannedAction::NoOp
        | PlannedAction::Adopt
        | PlannedAction::Read
        | PlannedAction::Forget => (false, is_decided_later),
    })
}

/// Returns whether the inputs match but follow older rules; unknown if every input is ignored.
pub(super) fn follows_other_rules(
    lifecycle: &RecordedRules,
    recorded: &Inputs,
    rules: &str,
) -> bool {
    recorded.rules != rules && !lifecycle.ignores_all()
}

fn is_declared(entry: &Entry, now: &Entry) -> bool {
    entry.id == now.id
        && entry.name == now.name
        && entry.tags == now.tags
        && entry.after == now.after
        && entry.before == now.before
        && entry.lifecycle.is_same(&now.lifecycle)
}

/// Returns whether a record is outdated: it differs from the current stack, or lacks the outputs
/// that the stack was applied with, which show the progress of a plan.
fn lacks(recorded: &Entry, of_stack: &SavedStack) -> bool {
    let applied = recorded.applied.as_ref();
    let has_upstream = applied.is_some_and(|applied| applied.upstream.is_some());
    !has_upstream || !has_current_inputs(recorded, of_stack)
}

fn has_current_inputs(recorded: &Entry, of_stack: &SavedStack) -> bool {
    let applied = recorded.applied.as_ref();
    let inputs = applied.and_then(|applied| applied.inputs.as_ref());
    let is_same = inputs
        .zip(of_stack.inputs.as_ref())
        .is_some_and(|(a, b)| a.rules == b.rules && a.digest == b.digest);
    let is_marked =
        recorded.intent.is_some() || recorded.tainted.is_some() || recorded.refreshed.is_some();
    is_same && recorded.has_succeeded() && !is_marked
}
