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
use crate::record::journal::{EvaluatedTurn, PoliciesRecord, PolicyAnswer, RunRecord};
use crate::record::samples::{Sample, Samples};
use crate::run::following::PreparedFollowUp;
use crate::run::policies::LoadedPolicies;
use crate::run::started::StartedRun;
use crate::run::workflow::{
    self, EarlierTurns, FollowedPolicy, Follower, RunFacts, StackInput, StackNames, Workflow,
    WorkflowTurn,
};
use crate::selection::attached::PolicyAttachments;
use crate::selection::select::Query;

/// A request for the policies of a run.
pub(crate) struct PolicyRequest<'a> {
    pub(crate) run: &'a str,
    pub(crate) kind: &'static str,
    /// The command of follow-ups, if it is not the command of the run.
    pub(crate) followup: Option<&'a String>,
    pub(crate) metadata: &'a [String],
    /// The stacks that never follow.
    pub(crate) excluded: Vec<String>,
    /// The workflow that the run continues.
    pub(crate) earlier: Option<&'a EarlierWorkflow>,
    /// The fix if a policy has changed since then.
    pub(crate) if_changed: &'static str,
}

/// The policies of a run that is about to begin.
pub(crate) struct PreparedPolicies {
    pub(crate) follower: Follower,
    /// What each stack would do as a follow-up.
    pub(crate) followups: Vec<PreparedFollowUp>,
    /// The turns of earlier runs that policies evaluate first, by position in the workflow.
    pub(crate) unevaluated: Vec<usize>,
    /// How many unfinished turns of earlier runs are added at once.
    pub(crate) n_reopened: usize,
    /// The journal's record of the policies.
    pub(crate) record: PoliciesRecord,
}

/// An earlier workflow that is continued.
pub(crate) struct EarlierWorkflow {
    /// Its last run's record of its policies.
    pub(crate) record: PoliciesRecord,
    /// The ids of its runs, in order.
    pub(crate) runs: Vec<String>,
    pub(crate) earlier: EarlierTurns,
    /// The last of its runs that a policy or a limit has failed.
    pub(super) troubled: Option<String>,
    /// Whether the policies may have changed since.
    pub(crate) allows_changed_policies: bool,
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

/// Makes policies follow a run that has begun.
pub(crate) fn follow(
    root: &Path,
    begun: StartedRun,
    prepared: PreparedPolicies,
) -> Result<StartedRun> {
    let PreparedPolicies {
        mut follower,
        followups,
        unevaluated,
        n_reopened,
        ..
    } = prepared;
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

    /// Returns the journal's record of a run's policies, without its turns.
    ///
    /// # Errors
    ///
    /// If a policy has changed since the run that is continued.
    pub(crate) fn policies_record(
        &self,
        loaded: &LoadedPolicies,
        request: PolicyRequest<'_>,
    ) -> Result<PoliciesRecord> {
        let PolicyRequest {
            run,
            kind,
            followup,
            metadata,
            mut excluded,
            earlier,
            if_changed,
        } = request;
        let then = earlier.map(|earlier| &earlier.record);
        for path in then.map_or(&[][..], |it| &it.excluded) {
            if !excluded.contains(path) {
                excluded.push(path.clone());
            }
        }
        let record = PoliciesRecord {
            workflow: then.map_or(run, |it| &it.workflow).to_owned(),
            kind: kind.to_owned(),
            followup: followup
                .or(then.and_then(|it| it.followup.as_ref()))
                .cloned(),
            metadata: match then {
                Some(then) if metadata.is_empty() => then.metadata.clone(),
                _ => metadata.to_vec(),
            },
            excluded,
            digests: self.policy_digests(loaded),
            turns: Vec::new(),
            asked: Vec::new(),
        };
        if let Some(earlier) = earlier.filter(|it| !it.allows_changed_policies) {
            let checked = check_digests(&record, &earlier.record);
            checked.map_err(|error| error.hint(if_changed))?;
        }
        Ok(record)
    }

    /// Returns the follower of a run: the loaded policies, with a workflow of the turns of earlier
    /// runs and the first turns of this one. The excluded stacks never follow.
    pub(crate) fn follower(
        &self,
        loaded: LoadedPolicies,
        facts: RunFacts,
        run: &str,
        excluded: &[String],
        (earlier, turns): (Vec<WorkflowTurn>, Vec<WorkflowTurn>),
    ) -> Follower {
        let stacks = &self.project.stacks;
        let excluded = excluded.iter().filter_map(|path| stacks.named(path));
        let names = StackNames::new(stacks, excluded.collect());
        let settings = self.project.settings.policies;
        let workflow = Workflow::new(run.to_owned(), names, settings, earlier, turns);
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

    fn policy_digests(&self, loaded: &LoadedPolicies) -> BTreeMap<String, String> {
        let blocks = self.project.policies.iter().zip(&loaded.policies);
        let digests = blocks.filter_map(|(block, policy)| {
            let digest = policy.as_ref()?.digest.clone();
            Some((block.name.value.clone(), digest))
        });
        digests.collect()
    }
}

/// Checks that the policies are those of an earlier run.
fn check_digests(now: &PoliciesRecord, then: &PoliciesRecord) -> Result<()> {
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
        let attached = PolicyAttachments::resolve(project, &mut Vec::new());
        let all = &turns.turns;
        let is_asked = |position: &usize| {
            let stack = all[*position].stack;
            stack.is_some_and(|stack| !attached.to_stack(stack).is_empty())
        };
        turns.unevaluated = turns.unevaluated.iter().copied().filter(is_asked).collect();
        turns.ended = turns.ended.iter().copied().filter(is_asked).collect();
        let is_ignored = |name: &str| {
            let mut blocks = project.policies.iter();
            let block = blocks.find(|block| block.name.value == name);
            block.is_some_and(|block| block.on_error == OnPolicyError::Ignore)
        };
        let has_failed = |policy: &PolicyAnswer| {
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
        let is_of_jobs = |record: &&&RunRecord| record.header.is_of_work_order();
        let mut troubled = records.iter().rev().filter(|it| !is_of_jobs(it));
        let troubled = troubled.find(is_troubled);
        let ids = records.iter().map(|record| record.header.run.clone());
        EarlierWorkflow {
            record,
            runs: ids.collect(),
            earlier: turns,
            troubled: troubled.map(|record| record.header.run.clone()),
            allows_changed_policies: false,
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
