//! A job of a work order that applies a part of a plan: what is left for it, and what the gate has skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::Timestamp;

use super::Apply;
use super::part::{
    PlanOperation, PlanPart, PriorOperation, WorkLeft, attempted, entries, turns_of,
};
use super::verified::{LoadedProject, VerifiedPlan};
use crate::change::EntryIndex;
use crate::context::{Context, from_read, from_store};
use crate::error::{ErrorContext as _, Result};
use crate::exit::ExitStatus;
use crate::export::WorkOrder;
use crate::path::StackPath;
use crate::plan::planner::EndedOutput;
use crate::plan::stale::{DoneOperations, has_attempted};
use crate::record::journal::remove_run;
use crate::run::results::OrderResults;
use crate::run::started::EndedRun;
use crate::state::document::{Document, Lock, OrderJob};
use crate::state::results::ResultName;

/// The operations of a part, as the state has them.
struct Glance {
    /// The operations that may start, by position.
    open: Vec<usize>,
    /// Whether one has neither begun nor ended.
    is_any_left: bool,
    /// The recorded locks of running jobs, by job.
    running: BTreeMap<String, Lock>,
}

/// Returns the jobs that are alive.
fn alive(verified: &mut VerifiedPlan, running: BTreeMap<String, Lock>) -> Result<BTreeSet<String>> {
    let mut alive = BTreeSet::new();
    if running.is_empty() {
        return Ok(alive);
    }
    let backend = &verified.context.opened()?.backend;
    for (job, lock) in running {
        let record = backend.record(&lock.run).map_err(from_read)?;
        let age = record.and_then(|(_, age)| age);
        if age.is_none_or(|age| age < lock.lease()) {
            alive.insert(job);
        }
    }
    Ok(alive)
}

/// Sends to the store the operations of a part that runs outside of the work order have done.
fn send_done(part: &PlanPart, document: &Document, verified: &VerifiedPlan) -> Result<()> {
    let entry = entries(&verified.context.project.stacks, document);
    let PlanPart { outline, .. } = part;
    let turn_of = turns_of(outline);
    let own = part.operations.iter().map(|(operation, _)| operation);
    let all = part.jobs.values().flatten().filter(|_| part.records);
    let done = own.chain(all);
    let done = done.filter(|it| verified.progress.done.contains(it));
    let done = done.filter_map(|operation| {
        let last = entry(operation).and_then(|entry| entry.last.as_ref());
        let by = last.and_then(|last| last.order.as_ref().or(last.run.as_ref()));
        if by == Some(&outline.run) {
            return None;
        }
        Some((turn_of(operation)?, by))
    });
    let done: Vec<_> = done.collect();
    if done.is_empty() {
        return Ok(());
    }
    let Some(store) = verified.context.results_store()? else {
        return Ok(());
    };
    // A destroyed stack has no entry: then the results show whether a job has done it.
    let files = store.result_files(&outline.run).map_err(from_store)?;
    let (known, marked) = (files.latest(), files.done());
    let turns = done.iter().map(|(turn, _)| *turn);
    let turns = turns.filter(|turn| known.results.contains_key(turn));
    let succeeded = verified
        .context
        .succeeded_turns(&outline.run, &turns.collect())?;
    for (turn, by) in done {
        if succeeded.contains(&turn) || marked.contains_key(&turn) {
            continue;
        }
        let result = outline.done(turn, by.map(String::as_str), Timestamp::now());
        let bytes = result.to_bytes().context("failed to write a result")?;
        // After the attempts that have failed.
        let attempt = known
            .of(turn)
            .map_or(0, |name| name.attempt.saturating_add(1));
        let name = ResultName { turn, attempt };
        let put = store.put_done(&outline.run, name, &bytes);
        put.map_err(from_store)?;
    }
    Ok(())
}

/// Removes the run of a job whose results are in the store.
pub(super) fn remove_sent(root: &Path, run: &str, ended: &EndedRun, output: EndedOutput) {
    drop(output);
    if ended.is_elsewhere() {
        remove_run(root, run);
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

    pub fn complete_jobs(&self, code: &str, jobs: &[String]) -> Result<()> {
        let LoadedProject { mut context, .. } = self.load(true)?;
        context.complete_jobs(code, jobs)?;
        if let Some(kept) = self.kept {
            kept.keep(context);
        }
        Ok(())
    }

    /// Ends the job that only records stacks, and frees the lock of the work order.
    pub fn free_order(&self, part: &PlanPart, order: &WorkOrder, secret: &str) -> Result<()> {
        let wait = self.lock_timeout.unwrap_or_default();
        let LoadedProject { mut context, .. } = self.load(true)?;
        context.complete_jobs(&part.job.code, std::slice::from_ref(&part.job.job))?;
        context.free_order(order, secret, wait)?;
        if let Some(kept) = self.kept {
            kept.keep(context);
        }
        Ok(())
    }

    /// Returns what a worker can do next. It does not start the operations that have failed for it again.
    pub fn look(&self, failed: &BTreeSet<usize>) -> Result<WorkLeft> {
        let mut verified = self.verify(None, None)?;
        let Some(Glance {
            open,
            is_any_left,
            running,
        }) = self.glance(&verified)
        else {
            return Ok(WorkLeft::default());
        };
        let has_none = open.iter().all(|operation| failed.contains(operation));
        let is_waiting = has_none && is_any_left && !alive(&mut verified, running)?.is_empty();
        self.end(verified);
        Ok(WorkLeft { open, is_waiting })
    }

    fn glance(&self, verified: &VerifiedPlan) -> Option<Glance> {
        let (part, document) = (self.part?, verified.document.as_ref()?);
        let stacks = &verified.context.project.stacks;
        let plan = &self.saved.plan.id;
        let lock = document.lock.as_ref();
        let shared = lock
            .filter(|lock| part.job.holds(lock))
            .and_then(|it| it.shared.as_ref());
        let running: BTreeMap<&String, &Lock> = shared
            .into_iter()
            .flat_map(|shared| &shared.jobs)
            .filter_map(|(job, lock)| Some((job, lock.as_deref()?)))
            .collect();
        let attempted = attempted(stacks, document, plan);
        let taken = running.keys().filter_map(|job| part.jobs.get(*job));
        let taken: BTreeSet<&PlanOperation> = taken.flatten().collect();
        let is_free = |operation: &PlanOperation| {
            let has_failed = attempted(operation).is_some_and(|entry| !entry.has_succeeded());
            !verified.progress.done.contains(operation) && !taken.contains(operation) && !has_failed
        };
        let opened = part.open(stacks, document, plan, &verified.progress);
        // Within one look, what an operation of the part waits for is not done yet.
        let may_start = |(operation, before): &(PlanOperation, Vec<PriorOperation>)| {
            let is_done = |it: &PriorOperation| {
                verified.progress.done.contains(&it.operation)
                    || !it.must_succeed && attempted(&it.operation).is_some()
            };
            opened.open.contains(operation) && is_free(operation) && before.iter().all(is_done)
        };
        let all = part.operations.iter().enumerate();
        let open = all.filter(|(_, it)| may_start(it));
        Some(Glance {
            open: open.map(|(position, _)| position).collect(),
            is_any_left: part.operations.iter().any(|(it, _)| is_free(it)),
            running: running
                .into_iter()
                .map(|(job, lock)| (job.clone(), lock.clone()))
                .collect(),
        })
    }

    /// Returns the stacks of all jobs whose operations are neither done nor running, each with whether it has failed.
    pub fn unfinished(&self) -> Result<BTreeMap<StackPath, bool>> {
        let mut verified = self.verify(None, None)?;
        let running = self.glance(&verified).map(|glance| glance.running);
        let alive = alive(&mut verified, running.unwrap_or_default())?;
        let stacks = &verified.context.project.stacks;
        let document = verified.document.as_ref();
        let pairs = document.map(|document| EntryIndex::new(stacks, document));
        let has_failed = |path: &StackPath| {
            let key = stacks.find(path).zip(pairs.as_ref());
            let key = key.and_then(|(stack, pairs)| pairs.key(stack));
            let entry = document.and_then(|it| it.stacks.get(key.unwrap_or(path.as_str())));
            entry.is_some_and(|entry| has_attempted(entry, &self.saved.plan.id))
        };
        let jobs = self.part.iter().flat_map(|part| &part.jobs);
        let all = jobs.filter(|(job, _)| !alive.contains(*job));
        let all = all.flat_map(|(_, operations)| operations);
        let left = all.filter(|it| !verified.progress.done.contains(it));
        let left = left.map(|(path, _)| (path.clone(), has_failed(path)));
        let left = left.collect();
        self.send_done(&verified);
        self.end(verified);
        Ok(left)
    }

    /// Returns where the results of a job go.
    pub(super) fn results(&self, context: &Context) -> Result<Option<OrderResults>> {
        let of_part = self
            .part
            .map(|part| context.order_results(&part.outline, None));
        Ok(of_part.transpose()?.flatten())
    }

    /// Sends the operations of the part that other runs have done. After a worker, or for `orch finish`, sends those of all jobs.
    fn send_done(&self, verified: &VerifiedPlan) {
        let Some((part, document)) = self.part.zip(verified.document.as_ref()) else {
            return;
        };
        if let Err(error) = send_done(part, document, verified) {
            let why = error.message();
            self.notices.warning(&format!(
                "failed to send which stacks were already done, so reports will not show them: {why}"
            ));
        }
    }

    pub(super) fn ended(&self, verified: VerifiedPlan, status: ExitStatus) -> ExitStatus {
        let status = self.after_gate(&verified, status);
        self.end(verified);
        status
    }

    /// Returns the exit status of a job, and reports the stacks that the gate has skipped.
    pub(super) fn after_gate(&self, verified: &VerifiedPlan, status: ExitStatus) -> ExitStatus {
        self.send_done(verified);
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
