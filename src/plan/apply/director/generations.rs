//! Generations during an apply: which stacks use a new one, and which have left an old one.

use super::ApplyDirector;
use crate::path::StackPath;
use crate::run::event::Failure;
use crate::run::turn::Operation;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptGeneration {
    pub path: StackPath,
    /// A stack that may still use the old generation.
    pub user: StackPath,
}

impl ApplyDirector<'_, '_> {
    pub fn kept(&self) -> &[KeptGeneration] {
        &self.kept
    }

    /// Checks that the generations which the stack's environment refers to have been created.
    pub(super) fn check_generations(&self, number: usize) -> Result<(), Failure> {
        let turn = &self.turns[number];
        if turn.operation != Operation::Apply {
            return Ok(());
        }
        let mut used = turn.stack.generations.iter();
        let missing = used.find(|stack| {
            let is_theirs = |it: &&super::ApplyTurn<'_>| {
                it.operation == Operation::Apply && it.stack.stack.here() == Some(**stack)
            };
            let of_stack = self.turns.iter().find(is_theirs);
            of_stack.is_some() && !self.applied.contains_key(stack)
        });
        let Some(missing) = missing else {
            return Ok(());
        };
        let project = self.updated.project();
        Err(Failure::Refused(format!(
            "it would use a generation of {} that was not created",
            project.stacks[*missing].path
        )))
    }

    /// Returns whether an old generation is kept because a stack may still use it.
    pub(super) fn keeps(&mut self, number: usize) -> bool {
        let turn = &self.turns[number];
        let user = turn.stack.leaving.iter().find(|leaving| {
            let applied = self.applied.get(&leaving.stack);
            !applied.is_some_and(|has_changed| *has_changed || !leaving.must_change)
        });
        let Some(user) = user else {
            return false;
        };
        let kept = KeptGeneration {
            path: turn.path.clone(),
            user: self.updated.project().stacks[user.stack].path.clone(),
        };
        if !self.kept.contains(&kept) {
            self.kept.push(kept);
        }
        true
    }
}
