//! The input of policies in an imagined run: all turns have finished, and one has just ended.

use std::time::Duration;

use orch::policy::{ListKind, PolicyNumber, PolicyOutput, Problem, Worker};
use orch::project::Project;
use orch::project::stack::StackIndex;
use orch::run::evaluated::TurnState;
use orch::run::workflow::{self, RunFacts, StackInput, WorkflowTurn, turn_id};
use serde_json::value::to_raw_value;

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
    /// It never started, since its plan was not approved
    Discarded,
}

impl EndState {
    /// Returns the name of the state in policies.
    pub(super) fn word(self) -> &'static str {
        self.turn_state().word()
    }

    fn turn_state(self) -> TurnState {
        match self {
            EndState::Finished => TurnState::Finished,
            EndState::Failed => TurnState::Failed,
            EndState::Stopped => TurnState::Stopped,
            EndState::Canceled => TurnState::Canceled,
            EndState::Discarded => TurnState::Discarded,
        }
    }
}

/// The id of the imagined run.
const RUN: &str = "00000000-0000-7000-8000-000000000000";

/// A worker that knows all stacks and their turns, all of them finished.
pub(super) struct Scenario<'p> {
    project: &'p Project,
    worker: Worker,
    facts: RunFacts,
    stacks: Vec<StackInput>,
}

impl<'p> Scenario<'p> {
    pub(super) fn new(project: &'p Project, worker: Worker, facts: RunFacts) -> Self {
        let stacks = project
            .stacks
            .iter()
            .map(|(_, stack)| StackInput::new(stack, &facts))
            .collect();
        let mut scenario = Scenario {
            project,
            worker,
            facts,
            stacks,
        };
        for (index, _) in project.stacks.iter() {
            scenario.put(index, EndState::Finished);
        }
        scenario
    }

    /// Evaluates a policy as if the turn of a stack had just ended in this state, and all others
    /// had finished. Fails if the worker cannot be started; a failing policy is a result.
    pub(super) fn evaluate(
        &mut self,
        (policy, timeout): (PolicyNumber, Duration),
        (stack, state): (StackIndex, EndState),
        triggered_by: Option<&str>,
    ) -> Result<Result<PolicyOutput, Problem>> {
        let is_other = state != EndState::Finished;
        if is_other {
            self.put(stack, state);
        }
        let turn = self.turn(stack, state, triggered_by);
        let input = workflow::input(&turn, &self.stacks[stack.get()], &self.facts);
        let evaluated = self.worker.evaluate(policy, input, true, timeout);
        if is_other {
            self.put(stack, EndState::Finished);
        }
        Ok(evaluated.map_err(anyhow::Error::from)?)
    }

    /// Returns the input of such an evaluation, with all lists, as JSON.
    pub(super) fn input(&mut self, stack: StackIndex, state: EndState) -> String {
        self.put(stack, state);
        let turn = self.turn(stack, state, None);
        let input = workflow::input(&turn, &self.stacks[stack.get()], &self.facts);
        self.worker.with_lists(&input).to_string()
    }

    pub(super) fn into_worker(self) -> Worker {
        self.worker
    }

    fn put(&mut self, index: StackIndex, state: EndState) {
        let turn = self.turn(index, state, None);
        let id = workflow::id(&self.project.stacks[index]);
        let input = &mut self.stacks[index.get()];
        input.set_state(state.turn_state());
        let input = to_raw_value(input).expect("all keys are texts");
        self.worker.put(ListKind::Stacks, index.get(), input);
        let entry = workflow::workflow_entry(&turn, &id);
        self.worker.put(ListKind::Workflow, index.get(), entry);
    }

    fn turn(&self, index: StackIndex, state: EndState, triggered_by: Option<&str>) -> WorkflowTurn {
        let id = turn_id(RUN, index.get());
        let path = self.project.stacks[index].path.clone();
        let mut turn = WorkflowTurn::new(id, Some(index), path, 0);
        let never_began = matches!(state, EndState::Canceled | EndState::Discarded);
        let begun = (!never_began).then_some(TurnState::Applying);
        turn.history.extend(begun);
        turn.history.push(state.turn_state());
        turn.state = state.turn_state();
        turn.triggered_by = triggered_by.map(str::to_owned);
        turn
    }
}
