//! The part of a plan that a job of a work order applies, and the gate before it.
//!
//! An engine may start a job too early, again, or after a failure. So nothing of a stack starts before everything that
//! it waits for is recorded as done.

use std::collections::{BTreeMap, BTreeSet};

use super::Apply;
use super::verified::VerifiedPlan;
use crate::change::EntryIndex;
use crate::context::from_read;
use crate::error::Result;
use crate::exit::ExitStatus;
use crate::path::StackPath;
use crate::plan::stale::{DoneOperations, OperationKey, has_attempted};
use crate::printable::printable;
use crate::project::stack::Stacks;
use crate::state::document::{Document, Entry, Lock};
use crate::state::shared::OrderJob;

/// An operation of a plan.
pub type PlanOperation = (StackPath, OperationKey);

/// The part of a plan that a job applies.
pub struct PlanPart {
    pub job: OrderJob,
    /// Its operations, in order, each with the operations right before it.
    pub operations: Vec<(PlanOperation, Vec<PriorOperation>)>,
    /// The operations of each job of the work order.
    pub jobs: BTreeMap<String, Vec<PlanOperation>>,
    /// Whether nothing starts after a failure in any job.
    pub stops: bool,
    /// Whether it also records the stacks without operations: once, after the jobs.
    pub records: bool,
}

/// An operation right before another one.
#[derive(Debug, Clone)]
pub struct PriorOperation {
    pub operation: PlanOperation,
    /// Whether it must have succeeded; else, it must only have ended.
    pub must_succeed: bool,
}

/// A part of a plan after the gate.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenPart {
    /// The operations that may run, or have.
    pub(super) open: BTreeSet<PlanOperation>,
    /// Whether stacks without operations are recorded.
    pub(super) records: bool,
    /// The stacks of the others.
    skipped: BTreeMap<StackPath, SkipReason>,
}

/// What is left for the workers of a work order.
#[derive(Debug, Default)]
pub struct WorkLeft {
    /// The operation to start next, by its position in the part.
    pub next: Option<usize>,
    /// Whether other workers are busy, so that more may be open later.
    pub is_waiting: bool,
}

/// Why a job skips a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// It runs after this stack, which has not succeeded.
    Waits(StackPath),
    /// This stack of another job has failed, and nothing starts after a failure.
    Stopped(StackPath),
}

impl SkipReason {
    /// Returns the warning that a stack was skipped.
    pub fn warning(&self, stack: &StackPath) -> String {
        let stack = printable(stack.as_str());
        match self {
            SkipReason::Waits(before) => format!(
                "{stack} was skipped: it runs after {}, which has not succeeded",
                printable(before.as_str())
            ),
            SkipReason::Stopped(failed) => format!(
                "{stack} was skipped: {} has failed, and nothing starts after a failure",
                printable(failed.as_str())
            ),
        }
    }
}

impl PlanPart {
    /// Returns the entry of an operation's stack if the plan has attempted the stack, and the attempt has ended.
    fn attempted<'d>(
        &self,
        stacks: &'d Stacks,
        document: &'d Document,
        plan: &'d str,
    ) -> impl Fn(&PlanOperation) -> Option<&'d Entry> {
        let pairs = EntryIndex::new(stacks, document);
        move |(stack, _)| {
            let key = stacks.find(stack).and_then(|stack| pairs.key(stack));
            let entry = document.stacks.get(key.unwrap_or(stack.as_str()));
            entry.filter(|entry| entry.intent.is_none() && has_attempted(entry, plan))
        }
    }

    /// Returns the operations that may run: those that wait for nothing outside of the part, or for what is recorded.
    pub(super) fn open(
        &self,
        stacks: &Stacks,
        document: &Document,
        plan: &str,
        progress: &DoneOperations,
    ) -> OpenPart {
        let attempted = self.attempted(stacks, document, plan);
        let has_ended = |operation: &PlanOperation| attempted(operation).is_some();
        let has_failed = |operation: &&PlanOperation| {
            let has_failed = attempted(operation).is_some_and(|entry| !entry.has_succeeded());
            has_failed && !progress.done.contains(operation)
        };
        let others = self.jobs.iter().filter(|(job, _)| **job != self.job.job);
        let mut others = others.flat_map(|(_, operations)| operations);
        let failed = others.find(has_failed).filter(|_| self.stops);
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
                (Some(missing), _) => Some(SkipReason::Waits(missing.operation.0.clone())),
                (None, Some((failed, _))) => Some(SkipReason::Stopped(failed.clone())),
                (None, None) => None,
            };
            match reason {
                None => _ = part.open.insert(operation.clone()),
                Some(reason) => _ = part.skipped.insert(operation.0.clone(), reason),
            }
        }
        part
    }
}

impl Apply<'_> {
    /// Returns the job, and the jobs of its work order with operations left.
    pub(super) fn job(&self, progress: &DoneOperations) -> Option<OrderJob> {
        let part = self.part?;
        let is_left =
            |operations: &[PlanOperation]| operations.iter().any(|it| !progress.done.contains(it));
        let left = part
            .jobs
            .iter()
            .filter(|(_, operations)| is_left(operations));
        Some(OrderJob {
            left: left.map(|(job, _)| job.clone()).collect(),
            ..part.job.clone()
        })
    }

    /// Returns what a worker can do next.
    pub fn look(&self) -> Result<WorkLeft> {
        let verified = self.verify(None, None)?;
        let (Some(part), Some(document)) = (self.part, &verified.document) else {
            return Ok(WorkLeft::default());
        };
        let stacks = &verified.context.project.stacks;
        let plan = &self.saved.plan.id;
        let lock = document.lock.as_ref();
        let shared = lock
            .filter(|lock| part.job.holds(lock))
            .and_then(|it| it.shared.as_ref());
        let running: BTreeMap<String, Lock> = shared
            .into_iter()
            .flat_map(|shared| &shared.jobs)
            .filter_map(|(job, lock)| Some((job.clone(), *lock.clone()?)))
            .collect();
        let attempted = part.attempted(stacks, document, plan);
        let is_running = |operation: &PlanOperation| {
            running
                .keys()
                .any(|job| part.jobs.get(job).is_some_and(|it| it.contains(operation)))
        };
        let is_free = |operation: &PlanOperation| {
            let has_failed = attempted(operation).is_some_and(|entry| !entry.has_succeeded());
            !verified.progress.done.contains(operation) && !is_running(operation) && !has_failed
        };
        let open = part.open(stacks, document, plan, &verified.progress);
        // Within one look, what an operation of the part waits for is not done yet.
        let is_next = |(operation, before): &&(PlanOperation, Vec<PriorOperation>)| {
            let is_done = |it: &PriorOperation| {
                verified.progress.done.contains(&it.operation)
                    || !it.must_succeed && attempted(&it.operation).is_some()
            };
            open.open.contains(operation) && is_free(operation) && before.iter().all(is_done)
        };
        let next = part.operations.iter().position(|it| is_next(&it));
        let mut is_waiting = false;
        if next.is_none() {
            let mut context = self.terminal.load()?;
            let backend = &context.opened()?.backend;
            for lock in running.values() {
                let record = backend.record(&lock.run).map_err(from_read)?;
                let age = record.and_then(|(_, age)| age);
                is_waiting |= age.is_none_or(|age| age < lock.lease());
            }
        }
        Ok(WorkLeft { next, is_waiting })
    }

    /// Returns the stacks of all jobs whose operations are not done, each with whether it has failed.
    pub fn unfinished(&self) -> Result<BTreeMap<StackPath, bool>> {
        let verified = self.verify(None, None)?;
        let stacks = &verified.context.project.stacks;
        let document = verified.document.as_ref();
        let pairs = document.map(|document| EntryIndex::new(stacks, document));
        let has_failed = |path: &StackPath| {
            let key = stacks.find(path).zip(pairs.as_ref());
            let key = key.and_then(|(stack, pairs)| pairs.key(stack));
            let entry = document.and_then(|it| it.stacks.get(key.unwrap_or(path.as_str())));
            entry.is_some_and(|entry| has_attempted(entry, &self.saved.plan.id))
        };
        let all = self
            .part
            .iter()
            .flat_map(|part| part.jobs.values().flatten());
        let left = all.filter(|it| !verified.progress.done.contains(it));
        Ok(left
            .map(|(path, _)| (path.clone(), has_failed(path)))
            .collect())
    }

    /// Returns the exit status of a job, and reports the stacks that the gate has skipped.
    pub(super) fn after_gate(&self, verified: &VerifiedPlan, status: ExitStatus) -> ExitStatus {
        let skipped = verified.part.iter().flat_map(|part| &part.skipped);
        let mut status = status;
        for (stack, reason) in skipped {
            self.notices.warning(&reason.warning(stack));
            if let ExitStatus::Success | ExitStatus::Run(0) = status {
                status = ExitStatus::Run(1);
            }
        }
        status
    }
}
