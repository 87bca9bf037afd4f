//! The input of policies after a turn: planned and applied changes.

use super::turn::{ApplyMode, ApplyTurn};
use crate::driver::{ChangeKind, ChangedPlan};
use crate::plan::ask::{NoAnswer, changed};
use crate::plan::entry::AskedAction;
use crate::plan::facts::{stack_changed, turn_facts};
use crate::run::event::{Ending, Outcome};
use crate::run::turn::Operation;
use crate::run::workflow::TurnFacts;

impl ApplyTurn<'_> {
    pub(super) fn facts(&self, ending: &Ending) -> TurnFacts {
        let is_done = self.has_acted && ending.outcome == Outcome::Succeeded;
        match self.planned(ending) {
            Ok(plan) => turn_facts(plan, is_done),
            Err(problem) => TurnFacts {
                unknown: Some(format!("the planned changes are unknown: {problem}")),
                ..TurnFacts::default()
            },
        }
    }

    /// Returns the planned changes, or the stack itself if its driver names no resources.
    fn planned(&self, ending: &Ending) -> Result<ChangedPlan, NoAnswer> {
        if self.attempt.number == 0 {
            return Ok(ChangedPlan::default()); // its time never came
        }
        if self.stack.driver.tool.is_some() {
            let shows = matches!(
                self.attempt.course,
                ApplyMode::ShownPlan | ApplyMode::Replanned
            );
            // An attempt may fail before its tool has shown a plan.
            let is_needed = self.attempt.is_work.is_some() || ending.outcome == Outcome::Succeeded;
            return match changed(&self.folder) {
                Err(_) if !(shows && is_needed) => Ok(ChangedPlan::default()),
                plan => plan,
            };
        }
        let is_work = self.attempt.is_unconfirmed || self.attempt.is_work == Some(true);
        let kind = is_work.then(|| match (self.operation, self.asked_now()) {
            (Operation::Destroy, _) => ChangeKind::Deleted,
            (_, AskedAction::Create) => ChangeKind::Added,
            _ => ChangeKind::Changed,
        });
        Ok(stack_changed(&self.path, kind))
    }
}
