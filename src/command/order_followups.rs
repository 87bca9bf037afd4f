//! The follow-ups of a work order: when its jobs have ended, policies evaluate each result once, and what they ask for
//! runs on one machine. That run resumes the one of the order.

use std::collections::{HashMap, HashSet};

use super::begin::resume_error;
use super::workflow::EarlierWorkflow;
use crate::context::{Context, from_store};
use crate::error::{Error, ErrorContext as _, Result};
use crate::exit::ExitStatus;
use crate::export::WorkOrder;
use crate::folder::GuardedFolder;
use crate::notice::Notices;
use crate::printable::printable;
use crate::record::journal::{RunRecord, Runs};
use crate::record::results::{ClaimEnd, ResultClaim};
use crate::run::resume::{EarlierRun, ResumedRun};
use crate::state::backend::Backend;
use crate::state::results::StoredClaim;

/// A result: the position of its turn in the work order, and the number of the attempt; 0 if the turn never started.
type ResultId = (usize, u32);

/// The follow-ups of a work order whose jobs have ended.
pub struct OrderFollowUps {
    /// `None` if none is left.
    pub open: Option<OpenFollowUps>,
    /// Whether those that ran on another machine may be incomplete.
    pub are_incomplete: bool,
}

/// What is left to evaluate and to run.
pub struct OpenFollowUps {
    /// The follow-ups that an earlier `orch finish` on this machine left open.
    pub(super) rest: ResumedRun,
    pub(super) workflow: EarlierWorkflow,
    pub claim: Option<Claim>,
}

/// The results that a run is about to evaluate.
pub struct Claim {
    store: Backend,
    order: String,
    number: usize,
    results: Vec<ResultId>,
}

/// What earlier runs have evaluated.
struct Claimed {
    /// How many claims there are.
    n_claims: usize,
    /// The runs that have the results.
    runs: HashMap<ResultId, String>,
    /// Whether the follow-ups of a run on another machine may be incomplete.
    are_incomplete: bool,
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
        if !self.fetch_from(&store, &order.run)? {
            return Ok(None);
        }
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
        let claimed = claimed(&self.notices, &store, &order.run, &records)?;
        let latest = store.latest_attempts(&order.run).map_err(from_store)?;
        let result = |turn: usize| {
            let name = latest.results.get(&turn);
            (turn, name.map_or(0, |name| name.attempt))
        };
        let here: HashSet<&str> = records.iter().map(|it| it.header.run.as_str()).collect();
        let n_turns = records[0].turns.len();
        let unevaluated: HashSet<usize> = workflow.earlier.unevaluated.iter().copied().collect();
        let mut results = Vec::new();
        let is_open = |position: &usize| {
            if *position >= n_turns {
                return unevaluated.contains(position);
            }
            let result = result(*position);
            if let Some(run) = claimed.runs.get(&result) {
                return here.contains(run.as_str()) && unevaluated.contains(position);
            }
            results.push(result);
            true
        };
        let ended = workflow.earlier.ended.iter().copied();
        workflow.earlier.unevaluated = ended.filter(is_open).collect();
        let is_open = !workflow.earlier.unevaluated.is_empty() || rest.n_undone() > 0;
        let claim = (!results.is_empty()).then(|| Claim {
            store,
            order: order.run.clone(),
            number: claimed.n_claims,
            results,
        });
        Ok(Some(OrderFollowUps {
            open: is_open.then_some(OpenFollowUps {
                rest,
                workflow,
                claim,
            }),
            are_incomplete: claimed.are_incomplete,
        }))
    }
}

/// Reads the claims on the results of a work order. Warns of those of other machines whose follow-ups may be missing.
fn claimed(
    notices: &Notices,
    store: &Backend,
    order: &str,
    records: &[&RunRecord],
) -> Result<Claimed> {
    let damaged = || format!("failed to read the results of run {order}");
    let claims = store.claims(order).map_err(from_store)?;
    let mut claimed = Claimed {
        n_claims: claims.len(),
        runs: HashMap::new(),
        are_incomplete: false,
    };
    for StoredClaim { claim, end } in claims {
        let claim = ResultClaim::parse(&claim).context(damaged())?;
        let end = end.map(|end| ClaimEnd::parse(&end)).transpose();
        let is_here = records.iter().any(|it| it.header.run == claim.run);
        let run = printable(&claim.run);
        let problem = match end.context(damaged())? {
            _ if is_here => None,
            Some(ClaimEnd { status: 0 | 2 }) => None,
            Some(ClaimEnd { status }) => Some(format!("exited with {status}")),
            None => Some("has not ended, or was killed".to_owned()),
        };
        if let Some(problem) = problem {
            claimed.are_incomplete = true;
            notices.warning(&format!(
                "run {run} of another machine evaluated policies of this work order and {problem}, so follow-ups may be missing"
            ));
        }
        let run = &claim.run;
        let results = claim.results.into_iter();
        claimed
            .runs
            .extend(results.map(|result| (result, run.clone())));
    }
    Ok(claimed)
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
            Error::refused("another `orch finish` of this work order evaluates its policies")
                .hint("wait until it has ended"),
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
        let Some(folder) = GuardedFolder::find(&context.project.root).map_err(Error::external)?
        else {
            return Ok(());
        };
        let runs = Runs::find(folder).map_err(Error::external)?;
        match runs.record(run) {
            Err(error) if error.is_missing() => {
                let removed = self.store.remove_claim(&self.order, self.number);
                removed.map_err(from_store)
            }
            _ => Ok(()),
        }
    }
}
