//! Asks the policies what follows a turn that has ended.

use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tracing::{debug, info};

use super::input::{self, RunFacts, StackInput, TurnFacts};
use super::{Consequences, RecordedStack, TurnKind, Workflow};
use crate::folder::GuardedFolder;
use crate::policy::{ListKind, PolicyNumber, PolicyOutput, Worker};
use crate::project::stack::StackIndex;
use crate::record::journal::PolicyAnswer;
use crate::record::samples::{Sample, Samples};
use crate::run::evaluated::{TurnEvaluation, TurnState};
use crate::run::journaled::milliseconds;
use crate::run::turn::TurnIndex;

#[derive(Debug, Clone)]
pub struct FollowedPolicy {
    pub name: String,
    pub file: String,
    /// How the worker knows it.
    pub number: PolicyNumber,
    /// How long an evaluation may take.
    pub timeout: Duration,
    /// Whether a failed evaluation doesn't fail the run.
    pub is_ignored: bool,
}

/// Follows a run, and asks policies when a turn has ended.
pub struct Follower {
    worker: Worker,
    /// The policies of the project; `None` for one that is not attached to any stack.
    policies: Vec<Option<FollowedPolicy>>,
    /// Which of them are attached to each stack.
    attached: Vec<Vec<usize>>,
    facts: RunFacts,
    stacks: Vec<StackInput>,
    ids: Vec<String>,
    workflow: Workflow,
    /// Whether nothing follows in this run: another one runs what the policies ask for.
    only_asks: bool,
    /// The folder of runs that stores the inputs of policies that request it.
    samples: Option<GuardedFolder>,
}

impl Follower {
    /// Creates a follower of a new run. Stacks are in path order, each with its attached policies.
    pub fn new(
        worker: Worker,
        policies: Vec<Option<FollowedPolicy>>,
        attached: Vec<Vec<usize>>,
        facts: RunFacts,
        stacks: Vec<(String, StackInput)>,
        workflow: Workflow,
    ) -> Self {
        let (ids, stacks) = stacks.into_iter().unzip();
        let mut follower = Follower {
            worker,
            policies,
            attached,
            facts,
            stacks,
            ids,
            workflow,
            only_asks: false,
            samples: None,
        };
        for position in 0..follower.workflow.turns().len() {
            let turn = &follower.workflow.turns()[position];
            if let Some(stack) = turn.stack {
                follower.stacks[stack.get()].set_state(turn.state);
            }
            follower.tell_turn(position);
        }
        for stack in 0..follower.stacks.len() {
            follower.tell_stack(stack);
        }
        follower
    }

    /// Passes the records of stacks to policies. A stack with a turn has the state of that turn.
    pub fn recall(&mut self, records: impl IntoIterator<Item = (StackIndex, RecordedStack)>) {
        for (stack, record) in records {
            record.tell(&mut self.stacks[stack.get()]);
        }
        for turn in self.workflow.turns() {
            if let Some(stack) = turn.stack {
                self.stacks[stack.get()].set_state(turn.state);
            }
        }
        for stack in 0..self.stacks.len() {
            self.tell_stack(stack);
        }
    }

    /// Lets another run do what the policies ask for, and report how they fail.
    #[must_use]
    pub fn only_asking(self) -> Self {
        Follower {
            only_asks: true,
            ..self
        }
    }

    /// Stores the inputs of policies that request it, from now on.
    pub fn keep_samples(&mut self, place: GuardedFolder) {
        self.samples = Some(place);
    }

    pub fn workflow(&self) -> &Workflow {
        &self.workflow
    }

    /// Returns whether a policy is asked when a turn of a stack has ended.
    pub fn is_attached(&self, stack: StackIndex) -> bool {
        !self.attached[stack.get()].is_empty()
    }

    pub fn reaches(&mut self, position: usize, state: TurnState) {
        self.workflow.reaches(position, state, now());
        self.tell_turn(position);
        let turn = &self.workflow.turns()[position];
        if let Some(stack) = turn.stack {
            let input = &mut self.stacks[stack.get()];
            input.set_state(state);
            if state == TurnState::Finished && turn.kind == TurnKind::Tracked {
                input.set_tracked_commit(self.facts.commit.clone());
            }
            self.tell_stack(stack.get());
        }
    }

    pub fn learn(&mut self, position: usize, facts: TurnFacts) {
        if let Some(stack) = self.workflow.turns()[position].stack {
            self.stacks[stack.get()].set_version(&facts.terraform_version);
        }
        self.workflow.learn(position, facts);
    }

    /// Asks the policies of an ended turn for follow-ups. `turn` is its number, if it is one of this run; no further
    /// policy is asked once `is_given_up` is true.
    pub fn ended(
        &mut self,
        position: usize,
        turn: Option<TurnIndex>,
        is_given_up: impl Fn() -> bool,
    ) -> (TurnEvaluation, Consequences) {
        let ended = &self.workflow.turns()[position];
        let (state, path, stack) = (ended.state, ended.path.clone(), ended.stack);
        let earlier = turn
            .is_none()
            .then(|| self.workflow.place_of_earlier(position));
        let mut answers = Vec::new();
        if let Some(recorded) = &ended.answers {
            let named = |name: &str| {
                let mut policies = self.policies.iter().flatten();
                policies.find(|policy| policy.name == name)
            };
            answers.extend(recorded.iter().cloned().map(|answer| PolicyAnswer {
                is_ignored: named(&answer.policy).is_some_and(|policy| policy.is_ignored),
                ..answer
            }));
        } else if let Some(stack) = stack {
            let input = input::input(ended, &self.stacks[stack.get()], &self.facts);
            for &policy in &self.attached[stack.get()] {
                let Some(policy) = self.policies[policy].as_ref() else {
                    continue;
                };
                if is_given_up() {
                    break;
                }
                let begun = Instant::now();
                let evaluate = || {
                    let (number, timeout) = (policy.number, policy.timeout);
                    let answer = self
                        .worker
                        .evaluate(number, input.clone(), true, timeout)
                        .map_err(|error| error.to_string())?;
                    answer.map_err(|problem| problem.in_file(&policy.file))
                };
                let answer = ended.facts.unknown.clone().map_or_else(evaluate, Err);
                let (answer, problem) = match answer {
                    Ok(answer) => (answer, None),
                    Err(problem) => (PolicyOutput::default(), Some(problem)),
                };
                for text in &answer.prints {
                    info!(policy = policy.name, stack = path.as_str(), "print: {text}");
                }
                if earlier.is_some() {
                    // It may have been evaluated before a kill, without effect.
                    self.forget_sample(&ended.id, &policy.name);
                }
                if answer.sample {
                    self.keep_sample(&ended.id, &policy.name, &input);
                }
                answers.push(PolicyAnswer {
                    policy: policy.name.clone(),
                    answer,
                    problem,
                    is_ignored: policy.is_ignored || self.only_asks,
                    elapsed_ms: milliseconds(begun.elapsed()),
                });
            }
        }
        let consequences = if self.only_asks {
            Consequences::default()
        } else {
            self.workflow.follow(position, &answers, now())
        };
        for follow in &consequences.queued {
            let position = self.workflow.position(follow.turn);
            self.tell_turn(position);
            if let Some(stack) = self.workflow.turns()[position].stack {
                self.stacks[stack.get()].set_state(TurnState::Queued);
                self.tell_stack(stack.get());
            }
        }
        let evaluated = TurnEvaluation {
            turn,
            stack: path,
            earlier,
            state,
            policies: answers,
            queued: consequences.queued.clone(),
            joined: consequences.joined.clone(),
            dropped: consequences.dropped.clone(),
        };
        (evaluated, consequences)
    }

    fn keep_sample(&self, turn: &str, policy: &str, input: &RawValue) {
        let Some((samples, sample)) = self.sample(turn, policy) else {
            return;
        };
        // A sample is not worth failing a run.
        if let Err(error) = samples.write(&sample, &self.worker.with_lists(input)) {
            debug!(%error, "a sample cannot be kept");
        }
    }

    fn forget_sample(&self, turn: &str, policy: &str) {
        let Some((samples, sample)) = self.sample(turn, policy) else {
            return;
        };
        if let Err(error) = samples.remove(&sample) {
            debug!(%error, "a sample cannot be removed");
        }
    }

    /// Returns the sample of a turn for a policy, if samples are stored. It belongs to the run of its turn: in
    /// another run of the workflow, another turn has its number.
    fn sample(&self, turn: &str, policy: &str) -> Option<(Samples, Sample)> {
        let (run, number) = turn.rsplit_once('.')?;
        let place = self.samples.clone()?;
        let sample = Sample {
            turn: number.parse().unwrap_or_default(),
            policy: policy.to_owned(),
        };
        Some((Samples::of_run(place, run), sample))
    }

    fn tell_turn(&mut self, position: usize) {
        let turn = &self.workflow.turns()[position];
        let id = match turn.stack {
            Some(stack) => self.ids[stack.get()].as_str(),
            None => turn.path.as_str(),
        };
        let entry = input::workflow_entry(turn, id);
        self.worker.put(ListKind::Workflow, position, entry);
    }

    fn tell_stack(&mut self, stack: usize) {
        let entry = input::raw(&self.stacks[stack]);
        self.worker.put(ListKind::Stacks, stack, entry);
    }
}

/// Returns the time, in nanoseconds since 1970.
pub fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or_default()
}
