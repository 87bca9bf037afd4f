//! Evaluates the policies of a project when turns end, for any command.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use serde_json::value::RawValue;
use tracing::debug;

use crate::context::Context;
use crate::error::{Error, ErrorContext as _, Result};
use crate::folder::GuardedFolder;
use crate::notice::Notices;
use crate::path::StackPath;
use crate::printable::count;
use crate::project::Project;
use crate::project::policy::OnPolicyError;
use crate::project::stack::StackIndex;
use crate::record::journal::{EvaluatedTurn, PoliciesRecord, PolicyRecord, RunRecord};
use crate::record::samples::{Sample, Samples};
use crate::run::following::PreparedFollowUp;
use crate::run::policies::LoadedPolicies;
use crate::run::started::StartedRun;
use crate::run::workflow::{
    self, EarlierTurns, FollowedPolicy, Follower, RunFacts, StackInput, Workflow,
};
use crate::selection::attached::Attached;
use crate::selection::select::Query;

/// The journal's word for turns that deploy.
pub(crate) const TRACKED: &str = "tracked";

/// The journal's word for turns that accept drift.
pub(crate) const DRIFT: &str = "drift";

/// An earlier workflow that is continued.
pub(crate) struct EarlierWorkflow {
    /// Its last run's record of its policies.
    pub(crate) record: PoliciesRecord,
    /// The ids of its runs, in order.
    pub(crate) runs: Vec<String>,
    pub(crate) earlier: EarlierTurns,
    /// The last of its runs that a policy or a limit has failed.
    troubled: Option<String>,
}

/// Warns of turns that had ended when `orch` was killed, in a run that evaluates no policies.
pub(crate) fn warn_of_unevaluated(notices: &Notices, n_turns: usize) {
    if n_turns > 0 {
        notices.warning(&format!(
            "the policies of {} were not evaluated, so their follow-ups are lost",
            count(n_turns, "turn")
        ));
    }
}

/// Makes policies follow a run that has begun. They first evaluate turns of earlier runs, given by
/// position in the workflow. `n_reopened` turns at the end of the workflow are added at once.
pub(crate) fn follow(
    root: &Path,
    begun: StartedRun,
    mut follower: Follower,
    followups: Vec<PreparedFollowUp>,
    unevaluated: Vec<usize>,
    n_reopened: usize,
) -> Result<StartedRun> {
    if begun.folder().is_some()
        && let Ok(Some(place)) = GuardedFolder::find(root)
    {
        follower.keep_samples(place);
    }
    let result: io::Result<StartedRun> = begun.follow(follower, followups, unevaluated, n_reopened);
    result.context("failed to start the thread that asks policies")
}

/// Stores the inputs that a module's policies want to keep with the run: as samples of a turn 0,
/// before the first.
pub(crate) fn keep_release_samples(
    root: &Path,
    begun: &StartedRun,
    kept: &[(String, Box<RawValue>)],
) {
    if kept.is_empty() || begun.folder().is_none() {
        return;
    }
    let Ok(Some(place)) = GuardedFolder::find(root) else {
        return;
    };
    let samples = Samples::of_run(place, begun.id());
    for (policy, input) in kept {
        let policy = policy.clone();
        // A missing sample does not fail a run.
        if let Err(error) = samples.write(&Sample { turn: 0, policy }, input) {
            debug!(%error, "a sample cannot be kept");
        }
    }
}

impl Context {
    /// Returns the stacks that a query excludes: no policy adds them.
    pub(crate) fn excluded(&self, query: Option<&Query>) -> BTreeSet<StackIndex> {
        let Some(query) = query.filter(|query| !query.exclude.is_empty()) else {
            return BTreeSet::new();
        };
        let stacks = self.project.stacks.iter();
        let excluded = stacks.filter(|(_, stack)| query.excludes(stack));
        excluded.map(|(stack, _)| stack).collect()
    }

    pub fn excluded_paths(&self, query: &Query) -> Vec<StackPath> {
        let excluded = self
            .excluded(Some(query))
            .into_iter()
            .map(|stack| self.project.stacks[stack].path.clone());
        excluded.collect()
    }

    /// Returns the follower of a workflow with loaded policies.
    pub(crate) fn follower(
        &self,
        loaded: LoadedPolicies,
        facts: RunFacts,
        workflow: Workflow,
    ) -> Follower {
        let LoadedPolicies {
            worker,
            attached,
            policies,
        } = loaded;
        let project = &self.project;
        let inputs: Vec<(String, StackInput)> = project
            .stacks
            .iter()
            .map(|(_, stack)| {
                let input = StackInput::new(stack, &facts);
                (workflow::id(stack), input)
            })
            .collect();
        let blocks = project.policies.iter().zip(policies);
        let policies = blocks.map(|(block, policy)| {
            Some(FollowedPolicy {
                name: block.name.value.clone(),
                file: block.file.value.relative().to_owned(),
                number: policy?.number,
                timeout: block.timeout,
                is_ignored: block.on_error == OnPolicyError::Ignore,
            })
        });
        let all = project.stacks.iter();
        let attached = all.map(|(stack, _)| attached.to_stack(stack).to_vec());
        let (policies, attached) = (policies.collect(), attached.collect());
        Follower::new(worker, policies, attached, facts, inputs, workflow)
    }

    pub(crate) fn policy_digests(&self, loaded: &LoadedPolicies) -> BTreeMap<String, String> {
        let blocks = self.project.policies.iter().zip(&loaded.policies);
        let digests = blocks.filter_map(|(block, policy)| {
            let digest = policy.as_ref()?.digest.clone();
            Some((block.name.value.clone(), digest))
        });
        digests.collect()
    }
}

/// Checks that the policies are those of an earlier run.
pub(crate) fn check_digests(now: &PoliciesRecord, then: &PoliciesRecord) -> Result<()> {
    let names = then.digests.keys().chain(now.digests.keys());
    let mut changed = names.filter(|name| then.digests.get(*name) != now.digests.get(*name));
    match changed.next() {
        None => Ok(()),
        Some(name) => Err(Error::refused(format!(
            "the policy `{name}` has changed since the run that is resumed"
        ))),
    }
}

impl EarlierWorkflow {
    /// Takes the turns of a workflow's runs, the first run first.
    pub(crate) fn new(project: &Project, records: &[&RunRecord], record: PoliciesRecord) -> Self {
        let mut turns = EarlierTurns::new(records, &project.stacks);
        let attached = Attached::resolve(project, &mut Vec::new());
        let all = &turns.turns;
        let is_asked = |position: &usize| {
            let stack = all[*position].stack;
            stack.is_some_and(|stack| !attached.to_stack(stack).is_empty())
        };
        turns.unevaluated = turns.unevaluated.iter().copied().filter(is_asked).collect();
        let is_ignored = |name: &str| {
            let mut blocks = project.policies.iter();
            let block = blocks.find(|block| block.name.value == name);
            block.is_some_and(|block| block.on_error == OnPolicyError::Ignore)
        };
        let has_failed = |policy: &PolicyRecord| {
            let is_ignored = is_ignored(&policy.policy);
            policy.problem.is_some() && !is_ignored
        };
        let is_troubled = |record: &&&RunRecord| {
            record
                .evaluated
                .iter()
                .any(|EvaluatedTurn { evaluated, .. }| {
                    evaluated.policies.iter().any(has_failed)
                        || evaluated.dropped.iter().any(|it| it.chain.is_some())
                })
        };
        let troubled = records.iter().rev().find(is_troubled);
        let ids = records.iter().map(|record| record.header.run.clone());
        EarlierWorkflow {
            record,
            runs: ids.collect(),
            earlier: turns,
            troubled: troubled.map(|record| record.header.run.clone()),
        }
    }

    /// Warns of follow-ups that earlier runs missed: policies are not evaluated again, so they will
    /// not run now either.
    pub(crate) fn warn(&self, notices: &Notices) {
        if let Some(run) = &self.troubled {
            notices.warning(&format!(
                "a policy failed or a limit was reached in run {run}: `orch runs show {run}` lists the lost follow-ups"
            ));
        }
    }
}
