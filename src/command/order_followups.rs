//! The follow-ups of a work order: when its jobs have ended, policies evaluate each result once, and what they ask for
//! runs on one machine. That run resumes the one of the order.
//!
//! A run claims the results that it evaluates. A claim needs the end of the one before it: then all machines continue
//! the same run.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::workflow::EarlierWorkflow;
use crate::context::{Context, from_lock, from_read, from_store};
use crate::error::{Error, ErrorContext as _, Result};
use crate::exit::is_success;
use crate::export::{OrderedTask, WorkOrder};
use crate::folder::GuardedFolder;
use crate::notice::Notices;
use crate::printable::{count, printable};
use crate::project::Project;
use crate::record::journal::{OnError, RunRecord};
use crate::record::results::{ClaimEnd, ResultClaim, RunCopy};
use crate::run::evaluated::TurnState;
use crate::run::resume::{EarlierRun, ResumedRun};
use crate::run::workflow::{EarlierTurns, WorkflowTurn};
use crate::state::backend::Backend;
use crate::state::lock::{LockError, held_by_other};
use crate::state::results::{ResultName, StoredClaim};

/// A result: the position of its turn in the work order, and the number of the attempt; 0 if the turn never started.
type ResultId = (usize, u32);

/// How often to check whether a claim has ended.
const INTERVAL: Duration = Duration::from_millis(500);

/// A work order whose jobs have ended.
#[derive(Clone, Copy)]
pub struct EndedOrder<'a> {
    pub order: &'a WorkOrder,
    /// Whether to evaluate the results of killed runs again.
    pub retries_killed: bool,
}

/// The follow-ups of a work order whose jobs have ended.
pub struct OrderFollowUps {
    /// `None` if none is left.
    pub open: Option<OpenFollowUps>,
    pub remarks: FollowUpRemarks,
}

/// What is left to evaluate and to run.
pub struct OpenFollowUps {
    /// The follow-ups that an earlier `orch finish` on this machine left open.
    pub(super) rest: ResumedRun,
    pub(super) workflow: EarlierWorkflow,
    pub claim: Claim,
}

/// What a user should know besides.
#[derive(Debug, Default)]
pub struct FollowUpRemarks {
    /// Runs that were killed, so that their follow-ups may be missing.
    killed: BTreeSet<String>,
    /// The last run, if it has not succeeded, and its exit status; `None` if it was killed after a policy had failed.
    failed: Option<(String, Option<u8>)>,
    /// How many stacks have policies that wait until the rest of the order succeeds.
    n_held: usize,
}

/// The results that a run is about to evaluate.
pub struct Claim {
    store: Backend,
    order: String,
    number: usize,
    results: Vec<ResultId>,
    /// The number of the open claim of a killed run. It ends only once this run holds the lock, which proves that the
    /// killed one is over.
    killed: Option<usize>,
}

/// What earlier runs have evaluated.
struct Claimed {
    n_claims: usize,
    /// The claim that has no end.
    open: Option<(usize, ResultClaim)>,
    /// The last complete run. It resumed the one before it.
    last: Option<String>,
    /// The runs that were killed after it: they may have run what it left.
    killed: BTreeSet<String>,
    /// The last complete run of each result; if it has none, the first one that was killed.
    runs: HashMap<ResultId, String>,
}

/// The runs of a work order on this machine.
struct OrderRuns {
    /// That of its jobs, then those of its follow-ups.
    records: Vec<RunRecord>,
    /// What the last one left of its follow-ups.
    rest: ResumedRun,
}

/// What is left to evaluate.
#[derive(Default)]
struct Unevaluated {
    /// The positions of the turns.
    turns: Vec<usize>,
    /// The results that no run on another machine has evaluated.
    results: Vec<ResultId>,
    /// How many stacks have policies that wait until the rest of the order succeeds.
    n_held: usize,
}

impl Context {
    /// Refuses if the policies that follow the jobs of a work order cannot be loaded: only its last job needs them, after
    /// everything was applied.
    ///
    /// # Errors
    ///
    /// Also if the policies cannot be read.
    pub fn check_policies(&mut self) -> Result<()> {
        let others = std::mem::take(&mut self.problems);
        self.load_policies_of_stacks()?;
        self.report()?;
        self.problems = others;
        Ok(())
    }

    /// Returns the follow-ups of a work order whose jobs have ended; `None` if policies are off, or no job has begun.
    ///
    /// # Errors
    ///
    /// If HEAD is not the commit of the order, the results cannot be read, or another run still evaluates them after `wait`.
    pub fn order_follow_ups(
        &mut self,
        ended: EndedOrder<'_>,
        wait: Duration,
    ) -> Result<Option<OrderFollowUps>> {
        let EndedOrder {
            order,
            retries_killed,
        } = ended;
        if order.policies.is_none() {
            return Ok(None);
        }
        self.check_commit(order)?;
        let Some(store) = self.results_store()? else {
            return Ok(None);
        };
        // Before the copies of runs: a run sends its copy before its claim ends.
        let mut claimed = Claimed::read(&store, &order.run)?;
        let mut unmarked = None;
        while let Some((number, claim)) = claimed.open.take() {
            if !self.end_claim(&store, ended, (number, &claim), wait)? {
                unmarked = Some((number, claim.run));
                break;
            }
            claimed = Claimed::read(&store, &order.run)?;
        }
        let Some(files) = self.fetch_from(&store, &order.run, &mut None, Some(order))? else {
            return Ok(None);
        };
        let mut runs = OrderRuns::read(&self.project, claimed.last.as_ref().unwrap_or(&order.run))?;
        if retries_killed {
            claimed.runs.retain(|_, run| runs.has(run));
            claimed.killed.clear();
        }
        let mut workflow = runs.workflow(&self.project)?;
        runs.forget_superseded(&mut workflow.earlier);
        let results = files.latest().results;
        let Unevaluated {
            turns,
            results: claiming,
            n_held,
        } = unevaluated(order, &runs, &workflow, &results, &claimed);
        let is_left = !turns.is_empty() || runs.rest.n_undone() > 0;
        // A killed run may have run some of the rest.
        let is_left = is_left && claimed.killed.is_empty();
        let is_latest =
            |(position, attempt): &ResultId| attempt_of(&results, *position) == *attempt;
        let of_latest = claimed.runs.into_iter().filter(|(it, _)| is_latest(it));
        let killed = of_latest.map(|(_, run)| run).filter(|run| !runs.has(run));
        let remarks = FollowUpRemarks {
            killed: claimed.killed.into_iter().chain(killed).collect(),
            failed: runs.failed(&workflow).filter(|_| !is_left),
            n_held,
        };
        workflow.earlier.unevaluated = turns;
        if let OrderedTask::Plan { .. } = order.task {
            let done = files.done();
            mark_unknown(&mut workflow, |turn| {
                if done.contains_key(&turn) {
                    Some("another run applied it")
                } else {
                    let reason = "its job ended before it evaluated the policies";
                    results.contains_key(&turn).then_some(reason)
                }
            });
        }
        if let Some((number, run)) = unmarked.as_ref().filter(|_| !is_left) {
            // Nothing takes the lock.
            if let Some(held) = self.held_lock(run)? {
                return Err(from_lock(held));
            }
            put_killed(&store, &order.run, *number)?;
        }
        let open = is_left.then(|| OpenFollowUps {
            rest: runs.rest,
            workflow,
            claim: Claim {
                store,
                order: order.run.clone(),
                number: claimed.n_claims,
                results: claiming,
                killed: unmarked.map(|(number, _)| number),
            },
        });
        Ok(Some(OrderFollowUps { open, remarks }))
    }

    /// Ends an open claim if the copy of its run is in the store, or its journal is on this machine. Otherwise, waits
    /// until the machine of the run ends it. Returns false if the user says with `--retry-killed` that it never will.
    fn end_claim(
        &mut self,
        store: &Backend,
        ended: EndedOrder<'_>,
        (number, claim): (usize, &ResultClaim),
        wait: Duration,
    ) -> Result<bool> {
        let (order, run) = (&ended.order.run, &claim.run);
        let begun = Instant::now();
        let mut is_noted = false;
        while store
            .claim_end(order, number)
            .map_err(from_store)?
            .is_none()
        {
            let is_sent = store.has_run(order, run).map_err(from_store)?;
            let folder = GuardedFolder::find(&self.project.root).map_err(Error::external)?;
            if !is_sent && folder.is_some_and(|folder| RunCopy::is_here(&folder, run)) {
                EarlierRun::of_order(&self.project.root, run, ended.retries_killed)?;
                self.send_run(store, order, (number, run))?;
                return Ok(true);
            }
            if is_sent {
                let put = store.put_claim_end(order, number, &ClaimEnd::Sent.to_bytes());
                return put.map(|_| true).map_err(from_store);
            }
            if ended.retries_killed {
                return Ok(false);
            }
            let run = printable(run);
            if begun.elapsed() >= wait {
                let host = printable(&claim.host);
                return Err(Error::refused(format!(
                    "the follow-up run {run} on {host} is still running or was killed"
                ))
                .hint("wait until it ends; if it was killed, run `orch finish --retry-killed`"));
            }
            if !is_noted {
                self.notices.note(&format!("waiting for run {run} to end"));
                is_noted = true;
            }
            thread::sleep(INTERVAL);
        }
        Ok(true)
    }

    /// Sends an ended run of this machine and ends its claim. Returns false if another machine has already ended the claim.
    fn send_run(&self, store: &Backend, order: &str, (number, run): (usize, &str)) -> Result<bool> {
        let folder = GuardedFolder::find(&self.project.root).map_err(Error::external)?;
        let end = match folder.filter(|folder| RunCopy::is_here(folder, run)) {
            Some(folder) => {
                let copy = RunCopy::read(&folder, run).map_err(Error::external)?;
                let put = store.put_run(order, run, &copy.to_bytes());
                put.map_err(|error| {
                    from_store(error)
                        .hint("run `orch finish` again on this machine: it sends the run")
                })?;
                ClaimEnd::Sent
            }
            None => ClaimEnd::NeverBegan,
        };
        let put = store.put_claim_end(order, number, &end.to_bytes());
        put.map_err(from_store)
    }

    /// Returns the error that a run holds the lock of the state, unless the lock has expired.
    fn held_lock(&mut self, run: &str) -> Result<Option<LockError>> {
        if self.project.settings.state.is_none() {
            return Ok(None);
        }
        let opened = self.opened()?;
        let Some(read) = opened.backend.read().map_err(from_read)? else {
            return Ok(None);
        };
        let lock = read.document.lock.filter(|lock| lock.run == run);
        let held =
            lock.map(|lock| held_by_other(&opened.backend, lock, read.age, Timestamp::now()));
        let held = held.transpose().map_err(from_lock)?;
        let is_over = |held: &LockError| match held {
            LockError::Held(held) => held.until_expiry() == Some(Duration::ZERO),
            _ => false,
        };
        Ok(held.filter(|held| !is_over(held)))
    }
}

impl OrderRuns {
    /// Reads the runs of a work order up to the last one: that of its jobs, or of follow-ups.
    fn read(project: &Project, last: &str) -> Result<Self> {
        // Jobs have no process here, and the claim of a run of follow-ups has ended.
        let last = EarlierRun::of_order(&project.root, last, true)?;
        let rest = ResumedRun::new(&last, &project.stacks, false)?;
        let mut records = last.resumed(&project.root)?;
        // Jobs are run again instead.
        let rest = if records.is_empty() {
            rest.without_stacks()
        } else {
            rest
        };
        records.push(last.record);
        Ok(OrderRuns { records, rest })
    }

    fn workflow(&self, project: &Project) -> Result<EarlierWorkflow> {
        let records: Vec<&RunRecord> = self.records.iter().collect();
        let mut last = records.iter().rev();
        let last = last.find_map(|it| it.header.policies.clone());
        let last = last.context("the policies of the work order are not in its results")?;
        let mut workflow = EarlierWorkflow::new(project, &records, last);
        // The commit is that of the order.
        workflow.allows_changed_policies = true;
        Ok(workflow)
    }

    /// Forgets follow-ups that failed before a job of their stack succeeded.
    fn forget_superseded(&mut self, earlier: &mut EarlierTurns) {
        let [of_jobs, follow_ups @ ..] = &self.records[..] else {
            return;
        };
        let begins = follow_ups.iter().map(|it| (&*it.header.run, it.header.at));
        let begins: HashMap<&str, Timestamp> = begins.collect();
        let ends = of_jobs.stacks.iter().map(|it| (&*it.path, it.ended_at));
        let ends: HashMap<&str, Option<Timestamp>> = ends.collect();
        let mut seen = HashSet::new();
        for position in (0..of_jobs.turns.len()).rev() {
            let turn = &earlier.turns[position];
            let (path, stack) = (turn.path.clone(), turn.stack);
            // A stack that is replaced has two turns.
            if !seen.insert(path.clone()) || turn.state != TurnState::Finished {
                continue;
            }
            let ended = ends.get(path.as_str()).copied().flatten();
            let is_earlier = earlier.last(&path).is_some_and(|(_, last)| {
                let has_failed = matches!(last.state, TurnState::Failed | TurnState::Stopped);
                let began = begins.get(last.run()).copied();
                has_failed && began.is_some() && began < ended
            });
            if is_earlier {
                earlier.supersede(path, position);
                if let Some(stack) = stack {
                    self.rest.forget(stack);
                }
            }
        }
    }

    fn has(&self, run: &str) -> bool {
        self.records.iter().any(|it| it.header.run == run)
    }

    /// Returns the last run of follow-ups, if it has not succeeded, and its exit status.
    fn failed(&self, workflow: &EarlierWorkflow) -> Option<(String, Option<u8>)> {
        let [_, .., last] = &self.records[..] else {
            return None;
        };
        let status = last.finished.as_ref().map(|finished| finished.status);
        let has_failed = match status {
            Some(status) => !is_success(status),
            None => workflow.troubled.is_some(),
        };
        has_failed.then(|| (last.header.run.clone(), status))
    }
}

/// Returns what is left to evaluate, given the latest results by turn.
///
/// After a failure, nothing new starts on one machine, or nothing that runs after it. So unless `--on-error` is
/// `continue`, what succeeded is not evaluated before the rest of the order has.
fn unevaluated(
    order: &WorkOrder,
    runs: &OrderRuns,
    workflow: &EarlierWorkflow,
    latest: &BTreeMap<usize, ResultName>,
    claimed: &Claimed,
) -> Unevaluated {
    let earlier = &workflow.earlier;
    let n_turns = order.turns.len();
    let has_succeeded = |turn: &WorkflowTurn| {
        let last = earlier.last(&turn.path);
        last.is_some_and(|(_, last)| last.state.lets_others_run())
    };
    let holds = order.settings.on_error.known() != Ok(OnError::Continue)
        && !earlier.turns[..n_turns].iter().all(has_succeeded);
    let unevaluated: HashSet<usize> = earlier.unevaluated.iter().copied().collect();
    let mut left = Unevaluated::default();
    let mut held = BTreeSet::new();
    for &position in &earlier.ended {
        let mut is_open = unevaluated.contains(&position);
        if position < n_turns {
            let result = (position, attempt_of(latest, position));
            match claimed.runs.get(&result) {
                Some(run) if !runs.has(run) => continue,
                Some(_) => {}
                None if holds && earlier.turns[position].state == TurnState::Finished => {
                    held.insert(&earlier.turns[position].path);
                    continue;
                }
                None => is_open = true,
            }
            left.results.push(result);
        }
        if is_open {
            left.turns.push(position);
        }
    }
    left.n_held = held.len();
    left
}

/// Returns the latest attempt of a turn; 0 if it never started.
fn attempt_of(latest: &BTreeMap<usize, ResultName>, position: usize) -> u32 {
    latest.get(&position).map_or(0, |name| name.attempt)
}

/// Marks the changes of turns as unknown if no job evaluated the policies for them. `reason` returns why, by position.
fn mark_unknown(workflow: &mut EarlierWorkflow, reason: impl Fn(usize) -> Option<&'static str>) {
    let earlier = &mut workflow.earlier;
    for &position in &earlier.unevaluated {
        let turn = &mut earlier.turns[position];
        if let Some(reason) = reason(position).filter(|_| turn.answers.is_none()) {
            let why = format!("its changes are unknown because {reason}");
            turn.facts.unknown = Some(why);
        }
    }
}

impl Claimed {
    /// Reads the claims on the results of a work order.
    fn read(store: &Backend, order: &str) -> Result<Self> {
        let damaged = || format!("failed to read the results of run {order}");
        let claims = store.claims(order).map_err(from_store)?;
        let mut claimed = Claimed {
            n_claims: claims.len(),
            open: None,
            last: None,
            killed: BTreeSet::new(),
            runs: HashMap::new(),
        };
        for (number, StoredClaim { claim, end }) in claims.into_iter().enumerate() {
            let claim = ResultClaim::parse(&claim).context(damaged())?;
            let end = end.map(|end| ClaimEnd::parse(&end)).transpose();
            let end = end.context(damaged())?;
            let ResultClaim { run, results, .. } = &claim;
            match end {
                Some(ClaimEnd::NeverBegan) => {}
                Some(ClaimEnd::Sent) => {
                    claimed.last = Some(run.clone());
                    claimed.killed.clear();
                    let results = results.iter().map(|result| (*result, run.clone()));
                    claimed.runs.extend(results);
                }
                Some(ClaimEnd::Killed) => {
                    claimed.killed.insert(run.clone());
                    for result in results {
                        let owner = claimed.runs.entry(*result);
                        owner.or_insert_with(|| run.clone());
                    }
                }
                None => {
                    claimed.open = Some((number, claim));
                    return Ok(claimed);
                }
            }
        }
        Ok(claimed)
    }
}

impl FollowUpRemarks {
    /// Returns whether the policies of some stacks wait for other stacks. Follow-ups may have run those since.
    pub fn is_any_held(&self) -> bool {
        self.n_held > 0
    }

    /// Prints the remarks. Returns whether follow-ups may be missing.
    pub fn show(&self, notices: &Notices) -> bool {
        if self.n_held > 0 {
            notices.note(&format!(
                "the policies of {} are evaluated when all other stacks have succeeded",
                count(self.n_held, "stack")
            ));
        }
        for run in &self.killed {
            let run = printable(run);
            notices.warning(&format!("follow-ups may be missing: run {run} was killed"));
        }
        if !self.killed.is_empty() {
            notices.help(
                "`orch plan` shows what is left; `orch finish --retry-killed` evaluates the policies again, and may run follow-ups twice",
            );
        }
        if let Some((run, status)) = &self.failed {
            let run = printable(run);
            let how = match status {
                Some(status) => format!("exited with {status}"),
                None => "was killed after a policy had failed".to_owned(),
            };
            notices.warning(&format!("follow-ups may be missing: run {run} {how}"));
            notices.help(&format!("`orch runs show {run}` lists them"));
        }
        self.n_held > 0 || !self.killed.is_empty() || self.failed.is_some()
    }
}

/// Marks the run of a claim as killed. Returns false if the claim already has an end.
fn put_killed(store: &Backend, order: &str, number: usize) -> Result<bool> {
    let put = store.put_claim_end(order, number, &ClaimEnd::Killed.to_bytes());
    put.map_err(from_store)
}

impl Claim {
    /// Claims the results for a run that is about to begin, and holds the lock if the state records it. Returns whether no other run was faster.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub fn put(&self, run: &str) -> Result<bool> {
        if let Some(killed) = self.killed
            && !put_killed(&self.store, &self.order, killed)?
        {
            return Ok(false);
        }
        let claim = ResultClaim::new(run.to_owned(), self.results.clone());
        let put = self
            .store
            .put_claim(&self.order, self.number, &claim.to_bytes());
        put.map_err(from_store)
    }

    /// Sends the run to the store and ends the claim. If the run never began, another run can claim the results.
    ///
    /// # Errors
    ///
    /// If the store cannot be written, or another machine marked the run as killed.
    pub fn end(&self, context: &Context, run: &str) -> Result<()> {
        if context.send_run(&self.store, &self.order, (self.number, run))? {
            return Ok(());
        }
        let run = printable(run);
        let what = format!("another `orch finish --retry-killed` marked run {run} as killed");
        Err(Error::refused(what).hint("`orch plan` shows what is left"))
    }
}
