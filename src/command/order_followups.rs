//! The follow-ups of a work order: when its jobs have ended, policies evaluate each result once, and what they ask for
//! runs on one machine. That run resumes the one of the order.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::begin::resume_error;
use super::workflow::EarlierWorkflow;
use crate::context::{Context, from_store};
use crate::error::{Error, ErrorContext as _, Result};
use crate::exit::ExitStatus;
use crate::export::{OrderedTask, WorkOrder};
use crate::folder::GuardedFolder;
use crate::notice::Notices;
use crate::printable::{count, printable};
use crate::project::Project;
use crate::record::journal::{OnErrorRecord, RunRecord, Runs};
use crate::record::results::{ClaimEnd, ResultClaim, RunCopy};
use crate::run::evaluated::TurnState;
use crate::run::resume::{EarlierRun, ResumedRun};
use crate::run::workflow::WorkflowTurn;
use crate::state::backend::Backend;
use crate::state::results::{ResultName, StoredClaim};

/// A result: the position of its turn in the work order, and the number of the attempt; 0 if the turn never started.
type ResultId = (usize, u32);

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
    /// Runs whose follow-ups may be missing, each with what is known of it.
    incomplete: Vec<String>,
    /// How many results are not evaluated before the others of the order have succeeded.
    n_held: usize,
}

/// The results that a run is about to evaluate.
pub struct Claim {
    store: Backend,
    order: String,
    number: usize,
    results: Vec<ResultId>,
}

/// What earlier runs have evaluated: the last run for each result, and what is known of its end.
struct Claimed {
    n_claims: usize,
    /// The run of the last claim.
    last: Option<String>,
    runs: HashMap<ResultId, ClaimingRun>,
}

#[derive(Clone)]
struct ClaimingRun {
    run: String,
    /// The exit status; `None` if it has not ended, as far as is known.
    status: Option<u8>,
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
    /// How many results are not evaluated before the others of the order have succeeded.
    n_held: usize,
}

impl Context {
    /// Returns the follow-ups of a work order whose jobs have ended; `None` if policies are off, or no job has begun.
    ///
    /// # Errors
    ///
    /// If this is not the commit of the order, the results cannot be read, or another run follows them now.
    pub fn order_follow_ups(&mut self, order: &WorkOrder) -> Result<Option<OrderFollowUps>> {
        if order.policies.is_none() {
            return Ok(None);
        }
        self.check_commit(order)?;
        let Some(store) = self.results_store()? else {
            return Ok(None);
        };
        // Before the copies of runs: a run sends its copy before its claim ends.
        let claimed = Claimed::read(&store, &order.run)?;
        let Some(files) = self.fetch_from(&store, &order.run)? else {
            return Ok(None);
        };
        let runs = OrderRuns::read(&self.project, &order.run, &claimed)?;
        let mut workflow = runs.workflow(&self.project)?;
        let results = files.latest().results;
        let Unevaluated {
            turns,
            results: claiming,
            n_held,
        } = unevaluated(order, &runs, &workflow, &results, &claimed);
        let is_left = !turns.is_empty() || runs.rest.n_undone() > 0;
        let remarks = FollowUpRemarks {
            incomplete: claimed.doubts(&runs, is_left),
            n_held,
        };
        workflow.earlier.unevaluated = turns;
        if let OrderedTask::Plan { .. } = order.task {
            mark_unknown(&mut workflow, |turn| results.contains_key(turn));
        }
        let open = is_left.then(|| OpenFollowUps {
            rest: runs.rest,
            workflow,
            claim: Claim {
                store,
                order: order.run.clone(),
                number: claimed.n_claims,
                results: claiming,
            },
        });
        Ok(Some(OrderFollowUps { open, remarks }))
    }
}

impl OrderRuns {
    fn read(project: &Project, run: &str, claimed: &Claimed) -> Result<Self> {
        let last = EarlierRun::of_order(&project.root, run).map_err(resume_error)?;
        let runs = OrderRuns::until(project, last)?;
        if claimed.last.as_deref().is_none_or(|last| runs.has(last)) {
            return Ok(runs);
        }
        // A run on another machine may continue the follow-ups on this one.
        let jobs = EarlierRun::of_jobs(&project.root, run).map_err(resume_error)?;
        OrderRuns::until(project, jobs)
    }

    /// Reads the runs up to the last one.
    fn until(project: &Project, last: EarlierRun) -> Result<Self> {
        let rest = ResumedRun::new(&last, &project.stacks, false).map_err(resume_error)?;
        let mut records = last.resumed(&project.root).map_err(resume_error)?;
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

    fn has(&self, run: &str) -> bool {
        self.records.iter().any(|it| it.header.run == run)
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
    let holds = order.settings.on_error != OnErrorRecord::Continue
        && !earlier.turns[..n_turns].iter().all(has_succeeded);
    let unevaluated: HashSet<usize> = earlier.unevaluated.iter().copied().collect();
    let mut left = Unevaluated::default();
    for &position in &earlier.ended {
        let mut is_open = unevaluated.contains(&position);
        if position < n_turns {
            let attempt = latest.get(&position).map_or(0, |name| name.attempt);
            let result = (position, attempt);
            match claimed.runs.get(&result) {
                Some(by) if !runs.has(&by.run) => continue,
                Some(_) => {}
                None if holds && earlier.turns[position].state == TurnState::Finished => {
                    left.n_held += 1;
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
    left
}

/// Marks the changes of turns as unknown whose jobs have not asked the policies about them.
fn mark_unknown(workflow: &mut EarlierWorkflow, is_of_job: impl Fn(&usize) -> bool) {
    let earlier = &mut workflow.earlier;
    for &position in earlier.unevaluated.iter().filter(|it| is_of_job(it)) {
        let turn = &mut earlier.turns[position];
        if turn.answers.is_none() {
            let why = "its changes are unknown, because its job ended before it asked the policies";
            turn.facts.unknown = Some(why.to_owned());
        }
    }
}

impl Claimed {
    /// Reads the claims on the results of a work order.
    fn read(store: &Backend, order: &str) -> Result<Self> {
        let damaged = || format!("failed to read the results of run {order}");
        let claims = store.claims(order).map_err(from_store)?;
        let n_claims = claims.len();
        let mut runs = HashMap::new();
        let mut last = None;
        for StoredClaim { claim, end } in claims {
            let ResultClaim { run, results, .. } = ResultClaim::parse(&claim).context(damaged())?;
            let end = end.map(|end| ClaimEnd::parse(&end)).transpose();
            let end = end.context(damaged())?;
            if end == Some(ClaimEnd { status: None }) {
                continue;
            }
            let by = ClaimingRun {
                run,
                status: end.and_then(|it| it.status),
            };
            last = Some(by.run.clone());
            runs.extend(results.into_iter().map(|result| (result, by.clone())));
        }
        Ok(Claimed {
            n_claims,
            last,
            runs,
        })
    }

    /// Returns why follow-ups may be missing: of runs on other machines, and if nothing `is_left` here, of the last
    /// one on this machine.
    fn doubts(&self, runs: &OrderRuns, is_left: bool) -> Vec<String> {
        let elsewhere = self.runs.values().filter(|by| !runs.has(&by.run));
        let mut doubts: BTreeSet<String> = elsewhere.filter_map(ClaimingRun::doubt).collect();
        if let (false, [_, .., last]) = (is_left, &runs.records[..]) {
            let status = last.finished.as_ref().map(|finished| finished.status);
            let run = last.header.run.clone();
            doubts.extend(ClaimingRun { run, status }.doubt());
        }
        doubts.into_iter().collect()
    }
}

impl ClaimingRun {
    /// Returns why follow-ups may be missing, if they may.
    fn doubt(&self) -> Option<String> {
        let run = printable(&self.run);
        match self.status {
            Some(0 | 2) => None,
            Some(status) => Some(format!("run {run} exited with {status}")),
            None => Some(format!("run {run} has not ended, or was killed")),
        }
    }
}

impl FollowUpRemarks {
    /// Prints the remarks. Returns whether follow-ups may be missing.
    pub fn show(&self, notices: &Notices) -> bool {
        if self.n_held > 0 {
            notices.note(&format!(
                "the policies of {} are evaluated when all other stacks have succeeded",
                count(self.n_held, "stack")
            ));
        }
        for why in &self.incomplete {
            notices.warning(&format!("follow-ups may be missing: {why}"));
        }
        if !self.incomplete.is_empty() {
            notices.help(
                "run `orch finish` again on the machine of that run, or look with `orch plan`",
            );
        }
        !self.incomplete.is_empty()
    }
}

impl Claim {
    /// Claims the results for a run that is about to begin. Returns whether no other run was faster.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub fn put(&self, run: &str) -> Result<bool> {
        let claim = ResultClaim::new(run.to_owned(), self.results.clone());
        let put = self
            .store
            .put_claim(&self.order, self.number, &claim.to_bytes());
        put.map_err(from_store)
    }

    /// Records how the run ended, and sends it to other machines. If it never began, another one may evaluate the results.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub fn end(&self, context: &Context, run: &str, status: Option<ExitStatus>) -> Result<()> {
        let folder = GuardedFolder::find(&context.project.root).map_err(Error::external)?;
        let runs = folder.clone().map(Runs::find).transpose();
        // A journal that cannot be read shows that it began.
        let has_begun = |runs: Runs| {
            let record = runs.record(run);
            !record.is_err_and(|error| error.is_missing())
        };
        let has_begun = runs.map_err(Error::external)?.is_some_and(has_begun);
        let folder = folder.filter(|_| has_begun);
        let status = match (status, folder) {
            (Some(status), Some(folder)) => {
                let copy = RunCopy::read(&folder, run).map_err(Error::external)?;
                let put = self.store.put_run(&self.order, run, &copy.to_bytes());
                put.map_err(from_store)?;
                Some(status.number())
            }
            // Its end is unknown.
            (None, Some(_)) => return Ok(()),
            (_, None) => None,
        };
        let end = ClaimEnd { status }.to_bytes();
        let put = self.store.end_claim(&self.order, self.number, &end);
        put.map_err(from_store)
    }
}
