//! What asks the policies of a project what follows, in any command.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use orch::folder::GuardedFolder;
use orch::project::policy::OnPolicyError;
use orch::record::samples::Samples;
use orch::run::begun::BegunRun;
use orch::run::following::PreparedFollowUp;
use orch::run::workflow::{self, FollowedPolicy, Follower, RunFacts, StackInput, Workflow};

use super::Loaded;
use super::policy_files::LoadedPolicies;
use crate::program::error::Result;

/// The word of a journal for turns that deploy.
pub(super) const TRACKED: &str = "tracked";

/// Lets policies follow a run that has begun. First, they are asked about turns of earlier runs, given by their
/// positions in the workflow.
pub(super) fn follow(
    root: &Path,
    begun: BegunRun,
    mut follower: Follower,
    followups: Vec<PreparedFollowUp>,
    unevaluated: Vec<usize>,
) -> Result<BegunRun> {
    if begun.folder().is_some()
        && let Ok(Some(place)) = GuardedFolder::find(root)
    {
        let samples = Samples::of_run(place, begun.id());
        follower.keep_samples(samples);
    }
    let result: io::Result<BegunRun> = begun.follow(follower, followups, unevaluated);
    Ok(result.context("failed to start the thread that asks policies")?)
}

impl Loaded {
    /// Returns what follows a workflow with policies that were loaded.
    pub(super) fn follower(
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
        let inputs = project.stacks.iter().map(|(_, stack)| {
            let input = StackInput::new(stack, &facts, &project.settings);
            (workflow::id(stack), input)
        });
        let inputs: Vec<(String, StackInput)> = inputs.collect();
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

    /// Returns the digests of policies that were loaded, by name.
    pub(super) fn policy_digests(&self, loaded: &LoadedPolicies) -> BTreeMap<String, String> {
        let blocks = self.project.policies.iter().zip(&loaded.policies);
        let digests = blocks.filter_map(|(block, policy)| {
            let digest = policy.as_ref()?.digest.clone();
            Some((block.name.value.clone(), digest))
        });
        digests.collect()
    }
}
