//! The input of policies in an imagined run: all turns have finished, and one has just ended.

use std::time::Duration;

use serde_json::value::to_raw_value;

use crate::error::{Error, Result};
use crate::policy::{ListKind, PolicyNumber, PolicyOutput, Problem, Worker};
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::run::evaluated::TurnState;
use crate::run::workflow::{self, RunFacts, StackInput, WorkflowTurn, turn_id};

/// The id of the imagined run.
const RUN: &str = "00000000-0000-7000-8000-000000000000";

/// A worker that knows all stacks and their turns, all of them finished.
pub struct Scenario<'p> {
    project: &'p Project,
    worker: Worker,
    facts: RunFacts,
    stacks: Vec<StackInput>,
}

impl<'p> Scenario<'p> {
    pub fn new(project: &'p Project, worker: Worker, facts: RunFacts) -> Self {
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
            scenario.put(index, TurnState::Finished);
        }
        scenario
    }

    /// Evaluates a policy as if the turn of a stack had just ended in this state, and all others
    /// had finished. Fails if the worker cannot be started; a failing policy is a result.
    pub fn evaluate(
        &mut self,
        (policy, timeout): (PolicyNumber, Duration),
        (stack, state): (StackIndex, TurnState),
        triggered_by: Option<&str>,
    ) -> Result<Result<PolicyOutput, Problem>> {
        let is_other = state != TurnState::Finished;
        if is_other {
            self.put(stack, state);
        }
        let turn = self.turn(stack, state, triggered_by);
        let input = workflow::input(&turn, &self.stacks[stack.get()], &self.facts);
        let evaluated = self.worker.evaluate(policy, input, true, timeout);
        if is_other {
            self.put(stack, TurnState::Finished);
        }
        evaluated.map_err(Error::external)
    }

    /// Returns the input of such an evaluation, with all lists, as JSON.
    pub fn input(&mut self, stack: StackIndex, state: TurnState) -> String {
        self.put(stack, state);
        let turn = self.turn(stack, state, None);
        let input = workflow::input(&turn, &self.stacks[stack.get()], &self.facts);
        self.worker.with_lists(&input).to_string()
    }

    pub fn into_worker(self) -> Worker {
        self.worker
    }

    fn put(&mut self, index: StackIndex, state: TurnState) {
        let turn = self.turn(index, state, None);
        let id = workflow::id(&self.project.stacks[index]);
        let input = &mut self.stacks[index.get()];
        input.set_state(state);
        let input = to_raw_value(input).expect("all keys are texts");
        self.worker.put(ListKind::Stacks, index.get(), input);
        let entry = workflow::workflow_entry(&turn, &id);
        self.worker.put(ListKind::Workflow, index.get(), entry);
    }

    fn turn(
        &self,
        index: StackIndex,
        state: TurnState,
        triggered_by: Option<&str>,
    ) -> WorkflowTurn {
        let id = turn_id(RUN, index.get());
        let path = self.project.stacks[index].path.clone();
        let mut turn = WorkflowTurn::new(id, Some(index), path, 0);
        let never_began = matches!(state, TurnState::Canceled | TurnState::Discarded);
        let begun = (!never_began).then_some(TurnState::Applying);
        turn.history.extend(begun);
        turn.history.push(state);
        turn.state = state;
        turn.triggered_by = triggered_by.map(str::to_owned);
        turn
    }
}
