//! What policies would be given if a run of all stacks were over but for one turn.
//!
//! What only a run knows, its commit and its user, is left empty.

use std::time::Duration;

use orch::policy::{Answer, List, PolicyNumber, Problem, Worker};
use orch::project::Project;
use orch::project::stack::StackIndex;
use orch::run::evaluated::TurnState;
use orch::run::workflow::{self, CommitInput, RunFacts, SessionInput, StackInput, turn_id};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::program::error::Result;

/// How a turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
#[value(rename_all = "UPPER")]
pub(crate) enum EndState {
    /// It succeeded
    Finished,
    /// It failed
    Failed,
    /// It was interrupted
    Stopped,
    /// It never started, since another one failed
    Canceled,
}

impl EndState {
    /// Returns the word by which policies know it.
    pub(super) fn word(self) -> &'static str {
        self.turn_state().word()
    }

    fn turn_state(self) -> TurnState {
        match self {
            EndState::Finished => TurnState::Finished,
            EndState::Failed => TurnState::Failed,
            EndState::Stopped => TurnState::Stopped,
            EndState::Canceled => TurnState::Canceled,
        }
    }
}

/// The id of the run that is imagined.
const RUN: &str = "00000000-0000-7000-8000-000000000000";

/// A worker that knows all stacks and their turns, each of which has finished.
pub(super) struct Scenario<'p> {
    project: &'p Project,
    worker: Worker,
    stacks: Vec<StackInput>,
}

impl<'p> Scenario<'p> {
    /// Tells the worker of all stacks.
    pub(super) fn new(project: &'p Project, worker: Worker) -> Self {
        let (facts, settings) = (RunFacts::default(), &project.settings);
        let stacks = project.stacks.iter();
        let stacks = stacks.map(|(_, stack)| StackInput::new(stack, &facts, settings));
        let stacks = stacks.collect();
        let mut scenario = Scenario {
            project,
            worker,
            stacks,
        };
        for (index, _) in project.stacks.iter() {
            scenario.put(index, EndState::Finished);
        }
        scenario
    }

    /// Evaluates a policy as if the turn of a stack had just ended in this state, and all others had finished.
    ///
    /// # Errors
    ///
    /// If the worker cannot be started. That the policy fails is part of the result.
    pub(super) fn evaluate(
        &mut self,
        (policy, timeout): (PolicyNumber, Duration),
        (stack, state): (StackIndex, EndState),
        triggered_by: Option<&str>,
    ) -> Result<Result<Answer, Problem>> {
        let is_other = state != EndState::Finished;
        if is_other {
            self.put(stack, state);
        }
        let input = self.input(stack, state, triggered_by);
        let evaluated = self.worker.evaluate(policy, input, true, timeout);
        if is_other {
            self.put(stack, EndState::Finished);
        }
        Ok(evaluated.map_err(anyhow::Error::from)?)
    }

    /// Returns the worker.
    pub(super) fn into_worker(self) -> Worker {
        self.worker
    }

    fn put(&mut self, index: StackIndex, state: EndState) {
        let stack = &self.project.stacks[index];
        let turn = json!({
            "id": turn_id(RUN, index.get()), "stack_id": workflow::id(stack), "state": state.word(), "type": "TRACKED",
        });
        let input = &mut self.stacks[index.get()];
        input.set_state(state.turn_state());
        self.worker.put(List::Stacks, index.get(), raw(input));
        self.worker.put(List::Workflow, index.get(), raw(&turn));
    }

    fn input(
        &self,
        index: StackIndex,
        state: EndState,
        triggered_by: Option<&str>,
    ) -> Box<RawValue> {
        let stack = &self.project.stacks[index];
        let has_begun = state != EndState::Canceled;
        let begun = has_begun.then_some("APPLYING");
        let history = ["QUEUED"].into_iter().chain(begun).chain([state.word()]);
        let history: Vec<Value> = history.map(|state| json!({"new_state": state})).collect();
        raw(&json!({
            "run": {
                "id": turn_id(RUN, index.get()), "type": "TRACKED", "state": state.word(), "branch": "",
                "based_on_local_workspace": false, "drift_detection": false, "flags": [],
                "triggered_by": triggered_by, "created_at": 0, "updated_at": 0, "changes": [],
                "commit": CommitInput::default(), "creator_session": SessionInput::default(),
                "runtime_config": {
                    "before_init": [], "project_root": stack.path.directory().relative(),
                    "runner_image": "", "terraform_version": "",
                },
                "states_history": history, "user_provided_metadata": [],
            },
            "stack": self.stacks[index.get()],
        }))
    }
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("all keys are texts")
}
