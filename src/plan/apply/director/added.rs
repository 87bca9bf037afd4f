//! Turns that are added while a plan is applied.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::ApplyDirector;
use crate::driver::StepRole;
use crate::path::StackPath;
use crate::plan::apply::TurnPlaces;
use crate::plan::apply::followups::ApplyFollowUps;
use crate::plan::apply::turn::ApplyStepRole;
use crate::plan::ask::{attempts_of, folder_of};
use crate::plan::stack::PlanStack;
use crate::run::event::Failure;
use crate::run::following::{FollowUpWork, PreparedFollowUp};
use crate::run::turn::{Step, Turn, TurnIndex};

impl<'a, 'p> ApplyDirector<'a, 'p> {
    /// Allows turns to be added at `places`; returns the facts of each stack. Call it after
    /// [`Self::check_with`].
    pub fn follow(
        &mut self,
        followups: ApplyFollowUps<'a, 'p>,
        places: &TurnPlaces,
    ) -> Vec<PreparedFollowUp> {
        let needs_outputs = self.checker.is_some();
        let stacks = followups.codes.tree.project.stacks.iter();
        let prepared = stacks
            .map(|(stack, of_stack)| {
                let turn = followups.turn(stack, PathBuf::new(), needs_outputs);
                let steps = followups.steps(&turn);
                let is_acting = |(role, _): &(ApplyStepRole, Step)| {
                    matches!(
                        role,
                        ApplyStepRole::Confirm | ApplyStepRole::Driver(StepRole::Act)
                    )
                };
                let acting = steps.iter().position(is_acting).unwrap_or(steps.len());
                let steps: Arc<[Step]> = steps.into_iter().map(|(_, step)| step).collect();
                let (node, rank) = places.of_stack(stack);
                PreparedFollowUp {
                    stack: of_stack.path.clone(),
                    work: FollowUpWork::Driver {
                        operation: turn.operation,
                        steps,
                        acting,
                    },
                    attempts: attempts_of(followups.codes, PlanStack::Here(stack)),
                    node,
                    rank,
                }
            })
            .collect();
        self.followups = Some(followups);
        prepared
    }

    /// Returns the stacks, by path, whose last turn left changes unapplied for lack of approval.
    pub fn unconfirmed(&self) -> Vec<StackPath> {
        let begun = self.turns.iter().filter(|turn| turn.attempt.number > 0);
        let last: BTreeMap<&StackPath, bool> = begun
            .map(|turn| (&turn.path, turn.attempt.is_unconfirmed))
            .collect();
        let unconfirmed = last.into_iter().filter(|(_, is_it)| *is_it);
        unconfirmed.map(|(path, _)| path.clone()).collect()
    }

    /// Returns whether a follow-up was skipped only because it would destroy resources.
    pub fn refuses_destroy(&self) -> bool {
        self.turns.iter().any(|turn| turn.attempt.refuses_destroy)
    }

    /// Returns the added turns with a later turn of their stack: a resume continues only from that.
    pub fn superseded(&self) -> BTreeSet<TurnIndex> {
        let mut later = HashSet::new();
        let turns = self.turns.iter().enumerate().rev();
        let superseded =
            turns.filter(|(_, turn)| !later.insert(&turn.path) && turn.followup.is_some());
        superseded
            .map(|(number, _)| TurnIndex::new(number))
            .collect()
    }

    pub fn had_turns(&self) -> BTreeSet<StackPath> {
        let begun = self.turns.iter().filter(|turn| turn.attempt.number > 0);
        begun.map(|turn| turn.path.clone()).collect()
    }

    pub(super) fn add_followup(&mut self, turn: &Turn) {
        let followups = self.followups.as_ref().expect("turns may be added");
        let stacks = &followups.codes.tree.project.stacks;
        let stack = stacks
            .find(&turn.stack)
            .expect("only stacks of the project are added");
        let folder = folder_of(&followups.folder, self.turns.len());
        let state = followups.turn(stack, folder, self.checker.is_some());
        self.turns.push(state);
    }

    /// Makes the commands of an added turn when it begins, since its stack's status is known only
    /// then.
    pub(super) fn prepare_followup(&mut self, number: usize) -> Result<(), Failure> {
        let turn = &self.turns[number];
        let (Some(followups), Some(known)) = (&self.followups, &turn.followup) else {
            return Ok(());
        };
        if known.tasks.is_none()
            && let Some(stack) = turn.stack.stack.here()
        {
            let folder = turn.folder.clone();
            let turn = followups.turn(stack, folder, self.checker.is_some());
            self.turns[number] = followups.prepared(turn);
        }
        let known = self.turns[number].followup.as_ref();
        match known.and_then(|known| known.tasks.as_ref()) {
            Some(Err(problem)) => Err(Failure::NotStarted(problem.clone())),
            _ => Ok(()),
        }
    }
}
