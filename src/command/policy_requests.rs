//! Which stacks policies ask for when others finish or fail, before anything runs.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;
use std::time::Instant;

use rayon::prelude::*;

use super::scenario::Scenario;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::policy::{Problem, Worker};
use crate::project::stack::StackIndex;
use crate::project::{self, Project};
use crate::run::evaluated::TurnState;
use crate::run::policies::{LoadedPolicies, LoadedPolicy};
use crate::run::workflow::{NamedStack, RunFacts, StackNames};
use crate::selection::attached::PolicyAttachments;

/// How many stacks are worth a worker of their own.
const MIN_STACKS: usize = 500;

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
        let LoadedPolicies {
            worker,
            attached,
            policies,
        } = policies;
        let questions = Questions {
            project,
            attached,
            policies,
            names: StackNames::new(&project.stacks, BTreeSet::new()),
            until,
        };
        let stacks: Vec<StackIndex> = project.stacks.iter().map(|(stack, _)| stack).collect();
        let pool = project::pool().map_err(Error::external)?;
        let size = stacks.len().div_ceil(pool.current_num_threads());
        let parts = stacks.chunks(size.max(MIN_STACKS));
        let others: Vec<Worker> = parts.clone().skip(1).map(|_| worker.another()).collect();
        let parts: Vec<_> = parts.zip(once(worker).chain(others)).collect();
        let answer = |(stacks, worker)| questions.ask(stacks, worker, facts.clone());
        let parts: Vec<_> = pool.install(|| parts.into_par_iter().map(answer).collect());
        let mut all = PolicyRequests::default();
        for part in parts {
            all.append(part?);
        }
        Ok(all)
    }
}

struct Questions<'a> {
    project: &'a Project,
    attached: PolicyAttachments,
    policies: Vec<Option<LoadedPolicy>>,
    names: StackNames,
    until: Option<Instant>,
}

impl Questions<'_> {
    fn ask(
        &self,
        stacks: &[StackIndex],
        worker: Worker,
        facts: RunFacts,
    ) -> Result<PolicyRequests> {
        let mut scenario = Scenario::new(self.project, worker, facts);
        let mut requests = PolicyRequests::default();
        for &stack in stacks {
            if self.until.is_some_and(|until| Instant::now() > until) {
                requests.n_left_out += 1;
                continue;
            }
            for &position in self.attached.to_stack(stack) {
                let Some(policy) = &self.policies[position] else {
                    continue;
                };
                let block = &self.project.policies[position];
                let triggered_by = format!("policy/{}", block.name.value);
                for state in STATES {
                    let asked = (policy.number, block.timeout);
                    match scenario.evaluate(asked, (stack, state), Some(&triggered_by))? {
                        Ok(answer) => {
                            let wanted = answer.trigger;
                            requests.add(position, (stack, state), wanted, &self.names);
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
    /// Adds the answers for later stacks.
    fn append(&mut self, later: PolicyRequests) {
        self.arrows.extend(later.arrows);
        for (name, first) in later.unknown {
            self.unknown.entry(name).or_insert(first);
        }
        self.failed.extend(later.failed);
        self.n_left_out += later.n_left_out;
    }

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
