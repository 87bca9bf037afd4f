//! `orch job` and `orch finish`: one job of a work order, and the end of all.
//!
//! The jobs share the lock of the state: it belongs to the order, so that no other run changes a stack in between.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::apply::{PlanOperation, PlanPart, PriorOperation, SkipReason, WorkLeft};
use super::run::{JobResults, RunJob, SeenAttempts, changed_meanwhile, patterns, records_of};
use crate::ascii::hex;
use crate::change::EntryIndex;
use crate::context::{Context, from_lock, from_read, from_store, state_config};
use crate::error::{Error, ErrorContext as _, Result};
use crate::export::{Engine, OrderedJob, OrderedOperation, OrderedTurn, Predecessor, WorkOrder};
use crate::path::StackPath;
use crate::plan::stale::OperationKey;
use crate::printable::printable;
use crate::project::config::{BackendConfig, LocalBackend, RecordKind};
use crate::project::discover::RootRule;
use crate::project::environment::{Environment, lookup};
use crate::project::stack::StackIndex;
use crate::record::results::{OrderOutline, TurnResult};
use crate::run::request::head;
use crate::run::results::{OrderResults, StartMarks};
use crate::run::schedule::OnError;
use crate::run::settings::RunSettings;
use crate::run::workflow::now;
use crate::selection::graph::digest;
use crate::state::backend::Backend;
use crate::state::document::{AttemptOutcome, Entry, Intent, OrderJob};
use crate::state::job_lease::JobLease;
use crate::state::open::{open, open_without_state};
use crate::state::results::LatestAttempts;
use crate::state::shared;

/// The variable with a secret of the pipeline, which only its jobs know.
pub const SECRET: &str = "ORCH_ORDER_SECRET";

/// The job that ends a work order.
const FINISH: &str = "finish";

/// Returns a job of a work order.
///
/// # Errors
///
/// If the order has no such job.
pub fn find<'o>(order: &'o WorkOrder, id: &str) -> Result<&'o OrderedJob> {
    order.job(id).ok_or_else(|| {
        let job = printable(id);
        Error::usage(format!("the work order has no job `{job}`"))
            .hint("write the pipeline and the work order again, with one `orch export`")
    })
}

/// Returns the code of the lock of a work order: all its jobs know it, and no one who lacks the secret.
pub fn code(order: &WorkOrder, secret: &str) -> String {
    let digest = Sha256::digest(format!("{}\0{secret}", order.id()));
    hex(&digest[..16])
}

/// Returns a job for the lock of its work order.
fn order_job(order: &WorkOrder, job: &str, secret: &str) -> OrderJob {
    OrderJob {
        order: order.id().to_owned(),
        run: order.run.clone(),
        code: code(order, secret),
        job: job.to_owned(),
        left: Vec::new(),
        is_chosen: order.jobs.is_empty(),
    }
}

/// Returns the jobs of a work order; one for each turn if equal workers share them.
fn jobs(order: &WorkOrder) -> Vec<OrderedJob> {
    if !order.jobs.is_empty() {
        return order.jobs.clone();
    }
    (0..order.turns.len()).map(turn_job).collect()
}

/// Returns the job of a single turn.
pub fn turn_job(turn: usize) -> OrderedJob {
    OrderedJob {
        id: format!("turn-{turn}"),
        turns: vec![turn],
        needs: Vec::new(),
    }
}

/// Returns all turns of a work order as one job, for a look at their progress.
pub fn all_turns(order: &WorkOrder) -> OrderedJob {
    OrderedJob {
        id: "all".to_owned(),
        turns: (0..order.turns.len()).collect(),
        needs: Vec::new(),
    }
}

/// Returns the part of a plan that a job applies; without a job, the one that only records stacks.
pub fn part(order: &WorkOrder, job: Option<&OrderedJob>, secret: &str, stops: bool) -> PlanPart {
    let predecessors = order.predecessors();
    let operation = |turn: usize| operation_of(&order.turns[turn]);
    let turns = job.map_or(&[][..], |job| &job.turns);
    let operations = turns.iter().map(|&turn| {
        let before = predecessors.of(turn).into_iter();
        let before = before.map(|it| PriorOperation {
            operation: operation(it.turn),
            must_succeed: it.must_succeed,
        });
        (operation(turn), before.collect())
    });
    let jobs = jobs(order).into_iter().filter(|job| !job.turns.is_empty());
    let jobs: BTreeMap<String, Vec<PlanOperation>> = jobs
        .map(|job| {
            let operations = job.turns.iter().map(|&turn| operation(turn));
            (job.id.clone(), operations.collect())
        })
        .collect();
    let id = job.map_or(FINISH, |job| &job.id);
    PlanPart {
        job: order_job(order, id, secret),
        operations: operations.collect(),
        jobs,
        stops,
        records: job.is_none(),
        outline: Arc::new(order.outline(true)),
    }
}

fn operation_of(turn: &OrderedTurn) -> PlanOperation {
    let key = match turn.operation {
        OrderedOperation::Destroy => OperationKey::Destroy,
        OrderedOperation::Run | OrderedOperation::Apply => OperationKey::Apply,
    };
    (turn.stack.clone(), key)
}

/// The state of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnProgress {
    /// It has not started, as far as is known.
    Left,
    /// It runs; or it was killed, if only the results show what has begun.
    Running,
    /// Its job was killed: what it has done is unknown.
    Killed,
    Failed,
    Done,
}

/// Returns the intent of a job of this order in a stack. Intents of other runs do not count.
fn begun_in<'e>(order: &WorkOrder, entry: &'e Entry) -> Option<&'e Intent> {
    let intent = entry.intent.as_ref();
    intent.filter(|intent| intent.order.as_ref() == Some(&order.run))
}

/// Returns a failed turn of other jobs, if nothing new starts after a failure.
fn failed_turn<'o>(
    order: &'o WorkOrder,
    states: &[TurnProgress],
    own: &[usize],
) -> Result<Option<&'o StackPath>> {
    let settings = order.run_settings().map_err(Error::refused)?;
    if settings.on_error() != OnError::Stop {
        return Ok(None);
    }
    let has_failed = |turn: &usize| {
        let has_failed = matches!(states[*turn], TurnProgress::Failed | TurnProgress::Killed);
        has_failed && !own.contains(turn)
    };
    let failed = (0..states.len()).find(has_failed);
    Ok(failed.map(|turn| &order.turns[turn].stack))
}

/// Returns whether a turn has ended as the next one needs it, given the states of all turns.
fn is_met(before: &Predecessor, states: &[TurnProgress]) -> bool {
    match states[before.turn] {
        TurnProgress::Done => true,
        TurnProgress::Failed => !before.must_succeed,
        TurnProgress::Left | TurnProgress::Running | TurnProgress::Killed => false,
    }
}

/// Returns what a worker can do next, given the states of all turns.
///
/// # Errors
///
/// If a later version of `orch` wrote the settings of the order.
pub fn next_turn(order: &WorkOrder, states: &[TurnProgress]) -> Result<WorkLeft> {
    let predecessors = order.predecessors();
    if failed_turn(order, states, &[])?.is_some() {
        return Ok(WorkLeft::default());
    }
    let left = (0..states.len()).filter(|turn| states[*turn] == TurnProgress::Left);
    let open = left.filter(|turn| predecessors.of(*turn).iter().all(|it| is_met(it, states)));
    let is_any_left = states.contains(&TurnProgress::Left);
    Ok(WorkLeft {
        open: open.collect(),
        is_waiting: is_any_left && states.contains(&TurnProgress::Running),
    })
}

/// The turns of a job after the gate.
pub struct OpenTurns {
    /// The stacks to run, in order.
    pub stacks: Vec<StackIndex>,
    /// The others that are not done.
    pub skipped: BTreeMap<StackPath, SkipReason>,
    pub job: RunJob,
    /// The attempts that the gate has seen, if they show what is done.
    pub seen: Option<SeenAttempts>,
}

/// The progress of a work order, as the state has it.
pub struct OrderProgress {
    /// By turn.
    pub turns: Vec<TurnProgress>,
    /// The records of all stacks.
    records: BTreeMap<StackPath, Option<String>>,
}

impl Context {
    /// Returns how the state records a command, if it does.
    ///
    /// # Errors
    ///
    /// If the configuration of the state is wrong.
    pub fn records(
        &self,
        words: &[OsString],
        settings: &RunSettings,
    ) -> Result<Option<RecordKind>> {
        let kind = self.recognized(words, settings)?;
        Ok(kind.filter(|kind| self.is_recorded(Some(*kind))))
    }

    /// Returns whether the state records a command of this kind.
    pub(super) fn is_recorded(&self, kind: Option<RecordKind>) -> bool {
        let has_state = self.project.settings.state.is_some();
        has_state && kind.is_some_and(|kind| kind != RecordKind::Never)
    }

    /// Returns what a command does, if a flag or a pattern says so.
    ///
    /// # Errors
    ///
    /// If the configuration of the state is wrong.
    pub(super) fn recognized(
        &self,
        words: &[OsString],
        settings: &RunSettings,
    ) -> Result<Option<RecordKind>> {
        if settings.recording.is_some() {
            return Ok(settings.recording);
        }
        let host = |name: &str| lookup(&Environment::new(), name);
        let patterns = patterns(self)?;
        Ok(patterns.recognize(words, host).map(|it| it.recorded))
    }

    /// Returns the state of each turn of a command that the state records.
    ///
    /// # Errors
    ///
    /// If this is not the commit of the work order, or the state cannot be read.
    pub fn progress(
        &mut self,
        order: &WorkOrder,
        recorded: Option<RecordKind>,
    ) -> Result<OrderProgress> {
        self.check_commit(order)?;
        let Some(recorded) = recorded else {
            return Ok(OrderProgress {
                turns: vec![TurnProgress::Left; order.turns.len()],
                records: BTreeMap::new(),
            });
        };
        let opened = self.opened()?;
        let document = opened.read_once()?;
        let lock = document.lock.as_ref();
        let shared = lock.and_then(|lock| lock.shared.as_ref());
        let shared = shared.filter(|it| it.order == order.id());
        let mut running = BTreeSet::new();
        let mut busy = BTreeSet::new();
        for (job, lock) in shared.into_iter().flat_map(|shared| &shared.jobs) {
            let Some(lock) = lock else { continue };
            let record = opened.backend.record(&lock.run).map_err(from_read)?;
            let age = record.and_then(|(_, age)| age);
            if age.is_none_or(|age| age < lock.lease()) {
                running.insert(lock.run.clone());
                busy.insert(job);
            }
        }
        let jobs = jobs(order).into_iter();
        let taken = jobs.filter(|job| busy.contains(&job.id));
        let taken: BTreeSet<usize> = taken.flat_map(|job| job.turns).collect();
        let pairs = EntryIndex::new(&self.project.stacks, &document);
        let entry = |turn: &OrderedTurn| {
            let key = pairs.key(self.project.stacks.find(&turn.stack)?)?;
            document.stacks.get(key)
        };
        let is_in_order = |entry: &Entry| {
            let of_entry = entry.last.as_ref().and_then(|last| last.order.as_ref());
            of_entry == Some(&order.run)
        };
        // The results show what the state no longer does: other runs may have changed or destroyed the stack since.
        let asks_without_entry = recorded == RecordKind::Destroy || document.may_lack_stacks(0);
        let is_asked = |turn: &OrderedTurn| match entry(turn) {
            None => asks_without_entry,
            Some(entry) => begun_in(order, entry).is_none() && !is_in_order(entry),
        };
        let asked = (0..order.turns.len()).filter(|&turn| is_asked(&order.turns[turn]));
        let mut results = vec![TurnProgress::Left; order.turns.len()];
        let follow_ups = self.add_results(&order.run, &asked.collect(), &mut results)?;
        if recorded != RecordKind::Destroy {
            // Other runs have used the stack since its job was killed; or the job begins just now.
            let begun = results
                .iter_mut()
                .filter(|it| **it == TurnProgress::Running);
            begun.for_each(|it| *it = TurnProgress::Left);
        }
        let is_followed = |entry: &Entry| {
            let run = entry.last.as_ref().and_then(|last| last.run.as_ref());
            run.is_some_and(|run| follow_ups.contains(run))
        };
        let state = |position: usize, turn: &OrderedTurn| {
            let Some(entry) = entry(turn) else {
                return results[position];
            };
            if let Some(intent) = begun_in(order, entry) {
                return if running.contains(&intent.run) {
                    TurnProgress::Running
                } else {
                    TurnProgress::Killed
                };
            }
            let last = entry.last.as_ref().map(|last| &last.outcome);
            let is_done = match last {
                Some(AttemptOutcome::Succeeded) => recorded != RecordKind::Destroy,
                // Its command succeeded.
                Some(AttemptOutcome::Unknown) => is_in_order(entry),
                _ => false,
            };
            let of_order = results[position];
            let is_repaired = of_order != TurnProgress::Left && is_followed(entry);
            match is_in_order(entry) || is_repaired {
                // Other runs may have applied another commit, or run another command.
                false => of_order,
                true if is_done => TurnProgress::Done,
                true => TurnProgress::Failed,
            }
        };
        let states = order.turns.iter().enumerate();
        let states = states.map(|(position, turn)| match state(position, turn) {
            // Its job has begun.
            TurnProgress::Left if taken.contains(&position) => TurnProgress::Running,
            state => state,
        });
        let turns = states.collect();
        let stacks = order.turns.iter().map(|turn| &turn.stack);
        Ok(OrderProgress {
            turns,
            records: records_of(&self.project.stacks, &document, stacks),
        })
    }

    /// Refuses if HEAD is not the commit of the work order, or the stacks or their order have changed.
    ///
    /// # Errors
    ///
    /// Also if git cannot be asked.
    pub fn check_commit(&self, order: &WorkOrder) -> Result<()> {
        let here = head(&self.project.root).context("failed to ask git for HEAD")?;
        let graph = digest(&self.project.stacks, &self.references);
        if order.commit != here {
            let then = order.commit.as_deref().unwrap_or("no commit");
            let problem = format!("the work order was written at {then}, which is not HEAD");
            return Err(Error::refused(problem)
                .hint("check out that commit, or start a new pipeline with `orch export`"));
        }
        if order.graph != graph {
            let problem = "the stacks or their order have changed since the work order was written";
            return Err(Error::refused(problem).hint(
                "revert uncommitted changes of the configuration, or start a new pipeline with `orch export`",
            ));
        }
        Ok(())
    }

    /// Returns the turns of a job that may run its command.
    ///
    /// A stack waits for those before it, which must have succeeded, or only ended with `--on-error continue`: as the
    /// state records it, or else by the results of other jobs. If this machine does not see these, only the engine knows.
    ///
    /// # Errors
    ///
    /// If this is not the commit of the work order, or the state cannot be read.
    pub fn open_turns(
        &mut self,
        order: &WorkOrder,
        job: &OrderedJob,
        secret: &str,
        recorded: Option<RecordKind>,
    ) -> Result<OpenTurns> {
        let OrderProgress {
            turns: mut states,
            mut records,
        } = self.progress(order, recorded)?;
        let seen = self.seen_attempts(order, job, recorded)?;
        let predecessors = order.predecessors();
        let is_gated = recorded.is_some() || self.sees_results(order)?;
        if recorded.is_none() && is_gated {
            let before = job.turns.iter().flat_map(|&turn| predecessors.of(turn));
            let known = before.map(|it| it.turn).chain(job.turns.iter().copied());
            self.add_results(&order.run, &known.collect(), &mut states)?;
        }
        let unbegun = if states.iter().all(|it| *it == TurnProgress::Left) {
            let all = order.turns.iter();
            let stacks = all.filter_map(|turn| self.project.stacks.find(&turn.stack));
            stacks.collect()
        } else {
            Vec::new()
        };
        let own = job.turns.iter().map(|&turn| &order.turns[turn].stack);
        let own: BTreeSet<&StackPath> = own.collect();
        records.retain(|stack, _| own.contains(stack));
        let is_left = |&turn: &usize| states[turn] != TurnProgress::Done;
        let left = jobs(order)
            .into_iter()
            .filter(|job| job.turns.iter().any(is_left));
        let mut open = OpenTurns {
            stacks: Vec::new(),
            skipped: BTreeMap::new(),
            job: RunJob {
                order: OrderJob {
                    left: left.map(|job| job.id).collect(),
                    ..order_job(order, &job.id, secret)
                },
                unbegun,
                records,
            },
            seen,
        };
        let failed = failed_turn(order, &states, &job.turns)?;
        let mut is_open = vec![false; order.turns.len()];
        for &turn in job.turns.iter().filter(|turn| is_left(turn)) {
            let path = &order.turns[turn].stack;
            let mut before = predecessors.of(turn).into_iter().filter(|_| is_gated);
            let missing = before.find(|it| !is_open[it.turn] && !is_met(it, &states));
            let reason = missing.map(|it| SkipReason::Waits {
                before: order.turns[it.turn].stack.clone(),
                must_succeed: it.must_succeed,
            });
            // What has begun before is not new.
            let stopped = failed.filter(|_| states[turn] == TurnProgress::Left);
            if let Some(reason) = reason.or(stopped.cloned().map(SkipReason::Stopped)) {
                open.skipped.insert(path.clone(), reason);
                continue;
            }
            is_open[turn] = true;
            let stack = self.project.stacks.find(path);
            open.stacks.push(stack.context("the graph is the same")?);
        }
        Ok(open)
    }

    /// Returns the latest attempts at the turns of a job, unless the state records them.
    fn seen_attempts(
        &self,
        order: &WorkOrder,
        job: &OrderedJob,
        recorded: Option<RecordKind>,
    ) -> Result<Option<SeenAttempts>> {
        let store = match recorded {
            None => self.results_store()?,
            Some(_) => None,
        };
        let Some(store) = store else { return Ok(None) };
        let files = store.result_files(&order.run).map_err(from_store)?;
        Ok(Some(SeenAttempts {
            turns: job.turns.clone(),
            latest: files.latest(),
        }))
    }

    /// Refuses a job if another run of it has run a stack since the gate.
    pub(super) fn check_attempts(&self, results: &JobResults) -> Result<()> {
        let Some(SeenAttempts { turns, latest }) = &results.seen else {
            return Ok(());
        };
        let Some(store) = self.results_store()? else {
            return Ok(());
        };
        let outline = &results.outline;
        let files = store.result_files(&outline.run).map_err(from_store)?;
        let now = files.latest();
        let attempts = |it: &LatestAttempts, turn: usize| {
            (it.results.get(&turn).copied(), it.begun.get(&turn).copied())
        };
        let is_new = |turn: &&usize| attempts(&now, **turn) != attempts(latest, **turn);
        match turns.iter().find(is_new) {
            None => Ok(()),
            Some(&turn) => Err(changed_meanwhile("run", &outline.turns[turn].stack)),
        }
    }

    /// Returns where the results of a job go, which may have a lease.
    pub(super) fn order_results(
        &self,
        outline: &Arc<OrderOutline>,
        lease: Option<Arc<JobLease>>,
    ) -> Result<Option<OrderResults>> {
        let Some(backend) = self.results_store()? else {
            return Ok(None);
        };
        let has_marks = !outline.is_recorded || self.hands_results_on()?;
        let marks = match self.results_store()?.filter(|_| has_marks) {
            Some(store) => {
                // Other machines may have earlier attempts, and the engine puts all files into one folder.
                let now = u32::try_from(now() / 1_000_000_000).unwrap_or(u32::MAX);
                let files = store.result_files(&outline.run).map_err(from_store)?;
                // The clocks of machines differ.
                let after = files.last_attempt().saturating_add(1);
                Some(StartMarks {
                    store,
                    first_attempt: now.max(after),
                })
            }
            None => None,
        };
        Ok(Some(OrderResults {
            outline: Arc::clone(outline),
            backend,
            marks,
            lease,
        }))
    }

    /// Opens the store with the results of work orders: beside the state, or where it would be. `None` if nothing
    /// marks the root of the project, so it keeps nothing.
    pub(super) fn results_store(&self) -> Result<Option<Backend>> {
        if !self.has_results() {
            return Ok(None);
        }
        let root = &self.project.root;
        if self.project.settings.state.is_none() {
            return Ok(Some(open_without_state(root)));
        }
        let config = state_config(&self.project, &self.notices)?;
        open(&config, root).map(Some).map_err(from_store)
    }

    /// Returns whether results of jobs are kept: something marks the root of the project.
    pub fn has_results(&self) -> bool {
        self.rule != RootRule::WorkingDirectory
    }

    /// Returns whether a job sees the results of those before it.
    pub(super) fn sees_results(&self, order: &WorkOrder) -> Result<bool> {
        // The others hand on results only to the last job.
        let is_handed_on = matches!(order.engine, Engine::Gitlab | Engine::Make);
        Ok(self.has_results() && (is_handed_on || !self.hands_results_on()?))
    }

    /// Returns which of these turns of a work order, given as its run, have succeeded by their latest results.
    pub(super) fn succeeded_turns(
        &self,
        order: &str,
        turns: &BTreeSet<usize>,
    ) -> Result<BTreeSet<usize>> {
        let n_turns = turns.last().map_or(0, |last| last + 1);
        let mut states = vec![TurnProgress::Left; n_turns];
        self.add_results(order, turns, &mut states)?;
        let turns = turns.iter().copied();
        Ok(turns
            .filter(|turn| states[*turn] == TurnProgress::Done)
            .collect())
    }

    /// Sets the states of some turns of a work order, given as its run, by their latest results. Returns the runs of its
    /// follow-ups that are in the store, if it was read.
    fn add_results(
        &self,
        order: &str,
        turns: &BTreeSet<usize>,
        states: &mut [TurnProgress],
    ) -> Result<BTreeSet<String>> {
        if turns.is_empty() {
            return Ok(BTreeSet::new());
        }
        let Some(store) = self.results_store()? else {
            return Ok(BTreeSet::new());
        };
        let files = store.result_files(order).map_err(from_store)?;
        let follow_ups = files.runs().map(|(run, _)| run.to_owned()).collect();
        let LatestAttempts { mut results, begun } = files.latest();
        for turn in begun.keys().filter(|turn| turns.contains(turn)) {
            states[*turn] = TurnProgress::Running;
        }
        results.retain(|turn, _| turns.contains(turn) && !begun.contains_key(turn));
        let files: Vec<String> = results.values().map(|name| name.file()).collect();
        let found = store.read_results(order, &files).map_err(from_store)?;
        for (turn, bytes) in results.into_keys().zip(found) {
            let Some(bytes) = bytes else {
                continue;
            };
            let damaged = || format!("failed to read a result of run {order}");
            let result = TurnResult::parse(&bytes).context(damaged())?;
            states[turn] = if result.has_succeeded() {
                TurnProgress::Done
            } else {
                TurnProgress::Failed
            };
        }
        Ok(follow_ups)
    }

    /// Returns whether the engine has to hand on the results of jobs: the project has no state that other machines see.
    pub(super) fn hands_results_on(&self) -> Result<bool> {
        if self.project.settings.state.is_none() {
            return Ok(self.has_results());
        }
        let config = state_config(&self.project, &self.notices)?;
        Ok(config.backend == BackendConfig::Local(LocalBackend::default()))
    }

    /// Records in the state that jobs have succeeded. The last one frees the lock of its work order.
    ///
    /// # Errors
    ///
    /// If the state cannot be read or written.
    pub fn complete_jobs(&mut self, code: &str, jobs: &[String]) -> Result<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        let opened = self.opened()?;
        shared::complete(&opened.backend, code, jobs).map_err(from_lock)
    }
}
