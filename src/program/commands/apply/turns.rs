//! From the entries of a plan to what is done with each stack.

use std::collections::BTreeMap;

use orch::change::Pairs;
use orch::driver::{Driver, Outputs};
use orch::path::StackPath;
use orch::plan::apply::{ApplyStack, Shown};
use orch::plan::entry::{Action, Asked, PlanEntry, PlanMode};
use orch::plan::order::Work;
use orch::plan::stale::{OperationKey, Progress};
use orch::plan::{SavedPlan, SavedStack};
use orch::project::Project;
use orch::project::stack::{StackIndex, StackMode};
use orch::state::document::{Document, Entry};

/// What an apply does with the stacks of a plan.
pub(super) struct Todo<'p> {
    /// The stacks with turns.
    pub(super) stacks: Vec<ApplyStack<'p>>,
    /// The stacks that are only put on record.
    pub(super) records: Vec<RecordOnly<'p>>,
}

/// A stack that is only put on record.
pub(super) struct RecordOnly<'p> {
    pub(super) stack: StackIndex,
    pub(super) driver: Driver<'p>,
    pub(super) backend: Option<String>,
    pub(super) outputs: Option<Outputs>,
    /// Whether nothing exists, and the record goes.
    pub(super) is_gone: bool,
    /// Whether all of the stack is as its configuration says.
    pub(super) is_complete: bool,
}

impl Todo<'_> {
    /// Returns how many stacks are destroyed.
    pub(super) fn n_destroys(&self) -> usize {
        self.stacks.iter().filter(|it| it.work.destroy).count()
    }
}

/// Returns what is left to do of a plan.
pub(super) fn todo<'p>(
    project: &'p Project,
    saved: &SavedPlan,
    document: Option<&Document>,
    progress: &Progress,
) -> Todo<'p> {
    let entries: BTreeMap<&StackPath, &PlanEntry> = saved
        .plan
        .entries
        .iter()
        .map(|entry| (&entry.stack, entry))
        .collect();
    let pairs = document.map(|document| Pairs::new(&project.stacks, document));
    let mut todo = Todo {
        stacks: Vec::new(),
        records: Vec::new(),
    };
    for of_stack in &saved.stacks {
        let found = entries.get(&of_stack.stack).copied();
        let stack = project.stacks.find(&of_stack.stack);
        let driver = Driver::named(project, &of_stack.driver);
        let (Some(entry), Some(stack), Some(driver)) = (found, stack, driver) else {
            continue;
        };
        let recorded = document.zip(pairs.as_ref()).and_then(|(document, pairs)| {
            let key = pairs.key(stack)?;
            document.stacks.get(key)
        });
        let done = |operation| {
            let key = (of_stack.stack.clone(), operation);
            progress.done.contains(&key)
        };
        let is_conditional = !entry.after.is_empty() && !driver.is_none();
        let (destroys, applies) = match entry.action {
            Action::Delete => (true, false),
            Action::Replace => (true, true),
            Action::Create | Action::Update => (false, true),
            Action::NoOp | Action::Adopt | Action::Read => (false, is_conditional),
        };
        let work = Work {
            destroy: destroys && !done(OperationKey::Destroy),
            apply: applies && !done(OperationKey::Apply),
        };
        if !destroys && !applies {
            if !done(OperationKey::Apply) {
                todo.records.push(RecordOnly {
                    stack,
                    driver,
                    backend: of_stack.backend.clone(),
                    outputs: of_stack.outputs.clone(),
                    is_gone: saved.plan.mode == PlanMode::Destroy,
                    is_complete: entry.is_complete,
                });
            }
            continue;
        }
        if work == Work::default() {
            continue;
        }
        let is_new = document.is_some() && of_stack.record.is_none();
        let is_new = is_new || entry.action == Action::Create;
        let is_read = project.stacks[stack].mode == StackMode::Read;
        todo.stacks.push(ApplyStack {
            stack,
            driver,
            shown: Shown {
                action: (!entry.is_undecided()).then_some(entry.action),
                counts: entry.counts,
                resources: entry.resources.clone(),
                changes: of_stack.changes.clone(),
            },
            asked: if is_new { Asked::Create } else { Asked::Update },
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
            is_recorded: is_read || recorded.is_none_or(|recorded| !is_settled(recorded, of_stack)),
        });
    }
    todo
}

/// Returns whether a stack is on record as it is.
fn is_settled(recorded: &Entry, of_stack: &SavedStack) -> bool {
    let applied = recorded.applied.as_ref();
    let inputs = applied.and_then(|applied| applied.inputs.as_ref());
    let is_same = inputs
        .zip(of_stack.inputs.as_ref())
        .is_some_and(|(a, b)| a.rules == b.rules && a.digest == b.digest);
    is_same && recorded.has_succeeded() && recorded.intent.is_none()
}
