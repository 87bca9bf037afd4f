//! The follow-ups of a work order: when its jobs have ended, policies evaluate each result once, and what they ask for
//! runs on one machine. That run resumes the one of the order.

use std::collections::{HashMap, HashSet};

use super::begin::resume_error;
use super::workflow::EarlierWorkflow;
use crate::context::{Context, from_store};
use crate::error::{Error, ErrorContext as _, Result};
use crate::exit::ExitStatus;
use crate::export::{OrderedTask, WorkOrder};
use crate::folder::GuardedFolder;
use crate::notice::Notices;
use crate::printable::{count, printable};
use crate::record::journal::{OnErrorRecord, RunRecord, Runs};
use crate::record::results::{ClaimEnd, ResultClaim};
use crate::run::evaluated::TurnState;
use crate::run::resume::{EarlierRun, ResumedRun};
use crate::state::backend::Backend;
use crate::state::results::StoredClaim;

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
    runs: HashMap<ResultId, ClaimingRun>,
}

#[derive(Clone)]
struct ClaimingRun {
    run: String,
    end: Option<ClaimEnd>,
}

impl Context {
    /// Returns the follow-ups of a work order whose jobs have ended; `None` if policies are off, or no job has begun.
    ///
    /// After a failure, nothing new starts on one machine, or nothing that runs after it. So unless `--on-error` is
    /// `continue`, what succeeded is not evaluated before the rest of the order has.
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
        let Some(files) = self.fetch_from(&store, &order.run)? else {
            return Ok(None);
        };
        let project = &self.project;
        let earlier = EarlierRun::of_order(&project.root, &order.run).map_err(resume_error)?;
        let rest = ResumedRun::new(&earlier, &project.stacks, false).map_err(resume_error)?;
        let mut records = earlier.resumed(&project.root).map_err(resume_error)?;
        let rest = if records.is_empty() {
            rest.without_stacks()
        } else {
            rest
        };
        records.push(earlier.record);
        let records: Vec<&RunRecord> = records.iter().collect();
        let mut last = records.iter().rev();
        let last = last.find_map(|it| it.header.policies.clone());
        let last = last.context("the policies of the work order are not in its results")?;
        let mut workflow = EarlierWorkflow::new(project, &records, last);
        // The commit is that of the order.
        workflow.allows_changed_policies = true;
        let latest = files.latest();
        let result = |turn: usize| {
            let name = latest.results.get(&turn);
            (turn, name.map_or(0, |name| name.attempt))
        };
        let Claimed { n_claims, runs } = claimed(&store, &order.run)?;
        let n_turns = records[0].turns.len();
        let turns = &workflow.earlier.turns;
        let holds = order.settings.on_error != OnErrorRecord::Continue
            && !turns[..n_turns].iter().all(|turn| {
                let last = workflow.earlier.last(&turn.path);
                last.is_some_and(|(_, last)| last.state.lets_others_run())
            });
        let unevaluated: HashSet<usize> = workflow.earlier.unevaluated.iter().copied().collect();
        let is_here = |run: &str| records.iter().any(|it| it.header.run == run);
        let mut remarks = FollowUpRemarks::default();
        let mut results = Vec::new();
        let is_open = |position: &usize| {
            if *position >= n_turns {
                return unevaluated.contains(position);
            }
            let result = result(*position);
            let is_open = match runs.get(&result) {
                Some(by) if !is_here(&by.run) => return false,
                Some(_) => unevaluated.contains(position),
                None if holds && turns[*position].state == TurnState::Finished => {
                    remarks.n_held += 1;
                    return false;
                }
                None => true,
            };
            results.push(result);
            is_open
        };
        let ended = workflow.earlier.ended.iter().copied();
        let open: Vec<usize> = ended.filter(is_open).collect();
        for by in runs.values().filter(|by| !is_here(&by.run)) {
            remarks.incomplete.extend(by.doubt());
        }
        remarks.incomplete.sort_unstable();
        remarks.incomplete.dedup();
        let is_left = !open.is_empty() || rest.n_undone() > 0;
        if let (false, [_, .., last]) = (is_left, &records[..]) {
            let end = last.finished.as_ref().map(|finished| ClaimEnd {
                status: finished.status,
            });
            let run = last.header.run.clone();
            remarks.incomplete.extend(ClaimingRun { run, end }.doubt());
        }
        workflow.earlier.unevaluated = open;
        if let OrderedTask::Plan { .. } = order.task {
            let has_result = |position: &usize| latest.results.contains_key(position);
            mark_unknown(&mut workflow, |it| *it < n_turns && has_result(it));
        }
        let open = is_left.then(|| OpenFollowUps {
            rest,
            workflow,
            claim: Claim {
                store,
                order: order.run.clone(),
                number: n_claims,
                results,
            },
        });
        Ok(Some(OrderFollowUps { open, remarks }))
    }
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

/// Reads the claims on the results of a work order.
fn claimed(store: &Backend, order: &str) -> Result<Claimed> {
    let damaged = || format!("failed to read the results of run {order}");
    let claims = store.claims(order).map_err(from_store)?;
    let n_claims = claims.len();
    let mut runs = HashMap::new();
    for StoredClaim { claim, end } in claims {
        let ResultClaim { run, results, .. } = ResultClaim::parse(&claim).context(damaged())?;
        let end = end.map(|end| ClaimEnd::parse(&end)).transpose();
        let by = ClaimingRun {
            run,
            end: end.context(damaged())?,
        };
        runs.extend(results.into_iter().map(|result| (result, by.clone())));
    }
    Ok(Claimed { n_claims, runs })
}

impl ClaimingRun {
    /// Returns why follow-ups may be missing, if they may.
    fn doubt(&self) -> Option<String> {
        let run = printable(&self.run);
        match self.end {
            Some(ClaimEnd { status: 0 | 2 }) => None,
            Some(ClaimEnd { status }) => Some(format!("run {run} exited with {status}")),
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
    /// Claims the results for a run that is about to begin.
    ///
    /// # Errors
    ///
    /// If another run was faster, or the store cannot be written.
    pub fn put(&self, run: &str) -> Result<()> {
        let claim = ResultClaim::new(run.to_owned(), self.results.clone());
        let put = self
            .store
            .put_claim(&self.order, self.number, &claim.to_bytes());
        if put.map_err(from_store)? {
            return Ok(());
        }
        Err(
            Error::refused("another `orch finish` has evaluated these policies meanwhile")
                .hint("run `orch finish` again"),
        )
    }

    /// Records how the run ended. If it never began, another one may evaluate the results.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub fn end(&self, context: &Context, run: &str, status: Option<ExitStatus>) -> Result<()> {
        if let Some(status) = status {
            let end = ClaimEnd {
                status: status.number(),
            };
            let put = self
                .store
                .end_claim(&self.order, self.number, &end.to_bytes());
            return put.map_err(from_store);
        }
        let folder = GuardedFolder::find(&context.project.root).map_err(Error::external)?;
        let runs = folder
            .map(Runs::find)
            .transpose()
            .map_err(Error::external)?;
        // A journal that cannot be read shows that it began.
        let has_begun = runs.is_some_and(|runs| {
            let record = runs.record(run);
            !record.is_err_and(|error| error.is_missing())
        });
        if has_begun {
            return Ok(());
        }
        let removed = self.store.remove_claim(&self.order, self.number);
        removed.map_err(from_store)
    }
}
