//! Predicts the follow-ups of a run. Each turn is expected to succeed, unless it is known to fail.

use super::{Follower, TurnFacts, TurnKind, WorkflowTurn};
use crate::path::StackPath;
use crate::project::stack::StackIndex;
use crate::run::evaluated::{TurnEvaluation, TurnState};
use crate::run::schedule::Schedule;
use crate::run::turn::TurnIndex;

/// The turns of a run, and the answers of policies to them.
#[derive(Debug, Default)]
pub struct ForeseenRun {
    /// The turns, in the sequence of a serial run.
    pub turns: Vec<ForeseenTurn>,
    /// The answers of policies to the end of each turn, in that sequence, after those to turns of
    /// earlier runs.
    pub evaluated: Vec<TurnEvaluation>,
}

#[derive(Debug)]
pub struct ForeseenTurn {
    pub number: TurnIndex,
    pub turn: WorkflowTurn,
    /// The stack of the turn that it follows, if it follows one.
    pub after: Option<StackPath>,
}

pub enum ExpectedEnd {
    /// It succeeds. Policies see these facts, if they are known before the run.
    Success(Option<TurnFacts>),
    Failure,
}

impl Follower {
    /// Asks the policies about each turn in the sequence of a serial run, and adds the turns that follow. First, they
    /// are asked about turns of earlier runs, given by position. `place` returns the node and the rank of a follow-up
    /// of a stack.
    ///
    /// # Panics
    ///
    /// If the turns of the schedule are not those of the workflow.
    pub fn foresee(
        mut self,
        mut schedule: Schedule,
        unevaluated: Vec<usize>,
        place: impl Fn(StackIndex) -> (usize, u32),
        mut expected_end: impl FnMut(&WorkflowTurn) -> ExpectedEnd,
    ) -> ForeseenRun {
        let mut run = ForeseenRun::default();
        for position in unevaluated {
            let (evaluated, _) = self.foresee_end(position, None, &mut schedule, &place);
            run.evaluated.push(evaluated);
        }
        while let Some(number) = schedule.start_next() {
            let position = self.workflow().position(number);
            let turns = self.workflow().turns();
            let turn = turns[position].clone();
            let after = turn.after.map(|after| turns[after].path.clone());
            let succeeds = match expected_end(&turn) {
                ExpectedEnd::Success(facts) => {
                    if let Some(facts) = facts {
                        self.learn(position, facts);
                    }
                    true
                }
                ExpectedEnd::Failure => false,
            };
            run.turns.push(ForeseenTurn {
                number,
                turn,
                after,
            });
            let kind = self.workflow().turns()[position].kind;
            let states = match (kind, succeeds) {
                (_, false) => &[TurnState::Failed][..],
                (TurnKind::Task, true) => &[TurnState::Performing, TurnState::Finished],
                (_, true) => &[TurnState::Applying, TurnState::Finished],
            };
            for &state in states {
                self.reaches(position, state);
            }
            schedule.finish(number, succeeds);
            let end = self.foresee_end(position, Some(number), &mut schedule, &place);
            let (evaluated, is_retried) = end;
            run.evaluated.push(evaluated);
            schedule.settle(number, succeeds || is_retried);
        }
        run
    }

    /// Asks the policies about an ended turn, and adds its follow-ups. Also returns whether its stack has another
    /// turn, so that this one does not count.
    fn foresee_end(
        &mut self,
        position: usize,
        number: Option<TurnIndex>,
        schedule: &mut Schedule,
        place: impl Fn(StackIndex) -> (usize, u32),
    ) -> (TurnEvaluation, bool) {
        let (evaluated, consequences) = self.ended(position, number, || false);
        let workflow = self.workflow();
        for follow in &consequences.queued {
            let turn = &workflow.turns()[workflow.position(follow.turn)];
            let stack = turn.stack.expect("only stacks of the project follow");
            let (node, rank) = place(stack);
            schedule.add(node, rank, turn.answers_failure);
        }
        (evaluated, consequences.is_retried)
    }
}
