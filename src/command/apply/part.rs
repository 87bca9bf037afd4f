//! The part of a plan that a job of a work order applies, and the gate before it.
//!
//! An engine may start a job too early, again, or after a failure. So nothing of a stack starts before everything that
//! it waits for is recorded as done.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::change::EntryIndex;
use crate::context::Context;
use crate::error::Result;
use crate::path::StackPath;
use crate::plan::stale::{DoneOperations, OperationKey, has_attempted};
use crate::printable::printable;
use crate::project::stack::Stacks;
use crate::record::results::OrderOutline;
use crate::state::document::{Document, Entry, OrderJob};

pub type PlanOperation = (StackPath, OperationKey);

pub struct PlanPart {
    pub job: OrderJob,
    /// Its operations, in order, each with the operations right before it.
    pub operations: Vec<(PlanOperation, Vec<PriorOperation>)>,
    /// The operations of each job of the work order.
    pub jobs: BTreeMap<String, Vec<PlanOperation>>,
    /// Whether nothing new starts after a failure in any job.
    pub stops: bool,
    /// Whether it also records the stacks without operations: once, after the jobs.
    pub records: bool,
    /// The turns of the work order, for their results.
    pub outline: Arc<OrderOutline>,
}

/// An operation right before another one.
#[derive(Debug, Clone)]
pub struct PriorOperation {
    pub operation: PlanOperation,
    /// Whether it must have succeeded; else, it must only have ended.
    pub must_succeed: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct OpenPart {
    /// The operations that may run, or have.
    pub(super) open: BTreeSet<PlanOperation>,
    /// Whether stacks without operations are recorded.
    pub(super) records: bool,
    pub(super) skipped: BTreeMap<StackPath, SkipReason>,
}

/// What is left for the workers of a work order.
#[derive(Debug, Default)]
pub struct WorkLeft {
    /// The operations that may start, by their positions in the part.
    pub open: Vec<usize>,
    /// Whether other workers are busy, so that more may be open later.
    pub is_waiting: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// It runs after a stack that has not succeeded, or not ended.
    Waits {
        before: StackPath,
        must_succeed: bool,
    },
    /// This stack of another job has failed, and nothing new starts after a failure.
    Stopped(StackPath),
}

impl SkipReason {
    pub fn warning(&self, stack: &StackPath) -> String {
        let stack = printable(stack.as_str());
        match self {
            SkipReason::Waits {
                before,
                must_succeed,
            } => {
                let before = printable(before.as_str());
                let what = if *must_succeed { "succeeded" } else { "ended" };
                format!("{stack} was skipped: it runs after {before}, which has not {what}")
            }
            SkipReason::Stopped(failed) => format!(
                "{stack} was skipped: {} has failed, and nothing new starts until it succeeds",
                printable(failed.as_str())
            ),
        }
    }
}

/// Returns the entry of an operation's stack.
pub(super) fn entries<'d>(
    stacks: &'d Stacks,
    document: &'d Document,
) -> impl Fn(&PlanOperation) -> Option<&'d Entry> {
    let pairs = EntryIndex::new(stacks, document);
    move |(stack, _)| {
        let key = stacks.find(stack).and_then(|stack| pairs.key(stack));
        document.stacks.get(key.unwrap_or(stack.as_str()))
    }
}

/// Returns a function that finds the turn of an operation.
pub(super) fn turns_of(outline: &OrderOutline) -> impl Fn(&PlanOperation) -> Option<usize> {
    let turns = outline.turns.iter().enumerate();
    let turns = turns.map(|(turn, it)| ((it.stack.as_str(), it.destroys), turn));
    let turns: HashMap<_, _> = turns.collect();
    move |(path, key)| {
        let destroys = *key == OperationKey::Destroy;
        turns.get(&(path.as_str(), destroys)).copied()
    }
}

/// Returns the entry of an operation's stack if a plan has attempted the stack, and the attempt has ended.
pub(super) fn attempted<'d>(
    stacks: &'d Stacks,
    document: &'d Document,
    plan: &'d str,
) -> impl Fn(&PlanOperation) -> Option<&'d Entry> {
    let entry = entries(stacks, document);
    move |operation| {
        entry(operation).filter(|entry| entry.intent.is_none() && has_attempted(entry, plan))
    }
}

impl PlanPart {
    /// Adds the operations that jobs have done in stacks that other runs have destroyed or forgotten since: the state no
    /// longer has them.
    pub(super) fn add_gone(
        &self,
        context: &Context,
        document: &Document,
        progress: &mut DoneOperations,
    ) -> Result<()> {
        let turn_of = turns_of(&self.outline);
        let entry = entries(&context.project.stacks, document);
        let gone = self.jobs.values().flatten();
        let gone = gone.filter(|operation| entry(operation).is_none());
        let gone = gone.filter_map(|operation| Some((turn_of(operation)?, operation)));
        let gone: BTreeMap<usize, &PlanOperation> = gone.collect();
        let turns = gone.keys().copied().collect();
        for turn in context.succeeded_turns(&self.outline.run, &turns)? {
            let operation = gone[&turn];
            progress.done.insert(operation.clone());
            if operation.1 == OperationKey::Apply {
                progress.gone.insert(operation.0.clone());
            }
        }
        Ok(())
    }

    /// Returns the operations that may run: those that wait for nothing outside of the part, or for what is recorded.
    pub(super) fn open(
        &self,
        stacks: &Stacks,
        document: &Document,
        plan: &str,
        progress: &DoneOperations,
    ) -> OpenPart {
        let attempted = attempted(stacks, document, plan);
        let has_ended = |operation: &PlanOperation| attempted(operation).is_some();
        let has_failed = |operation: &&PlanOperation| {
            let has_failed = attempted(operation).is_some_and(|entry| !entry.has_succeeded());
            has_failed && !progress.done.contains(operation)
        };
        let others = self.jobs.iter().filter(|(job, _)| **job != self.job.job);
        let mut others = others.flat_map(|(_, operations)| operations);
        let failed = others.find(has_failed).filter(|_| self.stops);
        let entry = entries(stacks, document);
        // It has failed, or was killed.
        let has_begun = |operation: &PlanOperation| {
            let of_plan = entry(operation).filter(|entry| has_attempted(entry, plan));
            of_plan.is_some_and(|entry| entry.intent.is_some() || !entry.has_succeeded())
        };
        let mut part = OpenPart {
            records: self.records,
            ..OpenPart::default()
        };
        for (operation, before) in &self.operations {
            let is_met = |it: &&PriorOperation| {
                progress.done.contains(&it.operation)
                    || part.open.contains(&it.operation)
                    || !it.must_succeed && has_ended(&it.operation)
            };
            let missing = before.iter().find(|it| !is_met(it));
            let reason = match (missing, failed) {
                _ if progress.done.contains(operation) => None,
                (Some(missing), _) => Some(SkipReason::Waits {
                    before: missing.operation.0.clone(),
                    must_succeed: missing.must_succeed,
                }),
                (None, Some((failed, _))) if !has_begun(operation) => {
                    Some(SkipReason::Stopped(failed.clone()))
                }
                (None, _) => None,
            };
            match reason {
                None => _ = part.open.insert(operation.clone()),
                Some(reason) => _ = part.skipped.insert(operation.0.clone(), reason),
            }
        }
        part
    }
}
