//! A job of a work order that applies a part of a plan: what is left for it, and what the gate has skipped.

use std::collections::{BTreeMap, BTreeSet};

use super::Apply;
use super::part::{PlanOperation, PriorOperation, WorkLeft, attempted};
use super::verified::VerifiedPlan;
use crate::change::EntryIndex;
use crate::context::from_read;
use crate::error::Result;
use crate::exit::ExitStatus;
use crate::path::StackPath;
use crate::plan::stale::{DoneOperations, has_attempted};
use crate::state::document::{Lock, OrderJob};

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
        let attempted = attempted(stacks, document, plan);
        let taken = running.keys().filter_map(|job| part.jobs.get(job));
        let taken: BTreeSet<&PlanOperation> = taken.flatten().collect();
        let is_free = |operation: &PlanOperation| {
            let has_failed = attempted(operation).is_some_and(|entry| !entry.has_succeeded());
            !verified.progress.done.contains(operation) && !taken.contains(operation) && !has_failed
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
