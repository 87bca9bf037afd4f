//! The input of policies after a turn: planned and applied changes.

use super::turn::{ApplyMode, ApplyStepRole, ApplyTurn};
use crate::driver::{ChangeKind, ChangedPlan, PlanKind, StepRole};
use crate::plan::ask::{NoAnswer, applied, changed};
use crate::plan::entry::AskedAction;
use crate::plan::facts::{stack_changed, turn_facts};
use crate::run::event::{Ending, Outcome};
use crate::run::turn::Operation;
use crate::run::workflow::TurnFacts;

impl ApplyTurn<'_> {
    pub(super) fn facts(&self, ending: &Ending) -> TurnFacts {
        let unknown = |which: &str, problem: &NoAnswer| TurnFacts {
            unknown: Some(format!("the {which} changes are unknown: {problem}")),
            ..TurnFacts::default()
        };
        let plan = match self.planned(ending) {
            Ok(plan) => plan,
            Err(problem) => return unknown("planned", &problem),
        };
        if !self.has_acted || ending.outcome != Outcome::Succeeded {
            return turn_facts(plan, Vec::new());
        }
        let state = ApplyStepRole::Driver(StepRole::State);
        let applied = if self.roles.contains(&state) {
            applied(&plan, &self.folder)
        } else {
            // The values of destroyed resources are those of the plan; other drivers have none.
            Ok(plan.changes.clone())
        };
        match applied {
            Ok(applied) => turn_facts(plan, applied),
            Err(problem) => unknown("applied", &problem),
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
            let kind = match self.asked {
                AskedAction::Refresh => PlanKind::RefreshOnly,
                _ => PlanKind::Normal,
            };
            return match changed(&self.folder, kind) {
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
