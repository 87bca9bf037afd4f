//! Which stacks policies ask for when others finish or fail, before anything runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::scenario::Scenario;
use crate::context::Context;
use crate::error::Result;
use crate::policy::Problem;
use crate::project::stack::StackIndex;
use crate::run::evaluated::TurnState;
use crate::run::policies::LoadedPolicies;
use crate::run::workflow::{NamedStack, StackNames};

/// The turn states that are evaluated.
const STATES: [TurnState; 2] = [TurnState::Finished, TurnState::Failed];

/// The answers of all policies. Policies are numbered as in the project.
#[derive(Debug, Default)]
pub struct PolicyRequests {
    /// The policies that ask for a stack when another one has ended.
    pub arrows: BTreeMap<(StackIndex, TurnState, StackIndex), Vec<usize>>,
    /// Names that mean no stack, or more than one: the first stack after which a policy asks for it, and why it fails.
    pub unknown: BTreeMap<(usize, String), (StackIndex, &'static str)>,
    pub failed: Vec<FailedRequest>,
    /// How many stacks were left out for lack of time.
    pub n_left_out: usize,
}

/// A policy that fails.
#[derive(Debug)]
pub struct FailedRequest {
    pub policy: usize,
    pub stack: StackIndex,
    pub state: TurnState,
    pub problem: Problem,
}

impl Context {
    /// Evaluates loaded policies for every stack that they are attached to, as if it had finished and as if it had
    /// failed, in a follow-up; all other stacks have finished. Leaves out the stacks whose turn comes after `until`.
    pub fn policy_requests(
        &mut self,
        policies: LoadedPolicies,
        until: Option<Instant>,
    ) -> Result<PolicyRequests> {
        let facts = self.run_facts(&[])?;
        let project = &self.project;
        let names = StackNames::new(&project.stacks, BTreeSet::new());
        let mut scenario = Scenario::new(project, policies.worker, facts);
        let mut requests = PolicyRequests::default();
        for (stack, _) in project.stacks.iter() {
            if until.is_some_and(|until| Instant::now() > until) {
                requests.n_left_out += 1;
                continue;
            }
            for &position in policies.attached.to_stack(stack) {
                let Some(policy) = &policies.policies[position] else {
                    continue;
                };
                let block = &project.policies[position];
                let triggered_by = format!("policy/{}", block.name.value);
                for state in STATES {
                    let asked = (policy.number, block.timeout);
                    match scenario.evaluate(asked, (stack, state), Some(&triggered_by))? {
                        Ok(answer) => {
                            let wanted = answer.trigger;
                            requests.add(position, (stack, state), wanted, &names);
                        }
                        Err(problem) => requests.failed.push(FailedRequest {
                            policy: position,
                            stack,
                            state,
                            problem,
                        }),
                    }
                }
            }
        }
        Ok(requests)
    }
}

impl PolicyRequests {
    fn add(
        &mut self,
        policy: usize,
        (stack, state): (StackIndex, TurnState),
        wanted: BTreeSet<String>,
        names: &StackNames,
    ) {
        for name in wanted {
            let why = match names.find(&name) {
                NamedStack::One(to) => {
                    let by = self.arrows.entry((stack, state, to)).or_default();
                    if by.last() != Some(&policy) {
                        by.push(policy);
                    }
                    continue;
                }
                NamedStack::Ambiguous(..) => "that is the id of one stack and the path of another",
                NamedStack::Unknown => "no stack has that id or path",
            };
            self.unknown.entry((policy, name)).or_insert((stack, why));
        }
    }
}
