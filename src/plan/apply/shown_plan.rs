//! Checks that a tool's plan is the one that was shown: someone may have replaced the plan file.

use super::ShownChanges;
use super::turn::ApplyTurn;
use crate::driver::{BadPlan, DriverAnswer, ResourceChange};
use crate::plan::ask::{NoAnswer, answer};
use crate::run::turn::Operation;

const ANOTHER: &str = "the plan in the file differs from the one that is shown";

impl ApplyTurn<'_> {
    /// Compares the tool's plan with the shown one, and with the operation. Drivers without a tool
    /// have no plan to compare. The error is a message.
    pub(super) fn check_shown_plan(&self) -> Result<(), String> {
        let driver = &self.stack.driver;
        if driver.tool.is_none() || !self.has_plan {
            return Ok(());
        }
        // The exit code of `plan` does not matter here: nothing is planned.
        let answer =
            answer(driver, self.kind, &self.folder, false, self.is_partial).map_err(|problem| {
                match problem {
                    NoAnswer::Plan(BadPlan::NotWhole(_)) => ANOTHER.to_owned(),
                    problem => problem.to_string(),
                }
            })?;
        let is_whole = answer.is_complete || !self.stack.is_complete;
        let fits = self.operation != Operation::Destroy || only_destroys(&answer);
        if is_whole && fits && is_shown(&answer, &self.stack.shown) {
            return Ok(());
        }
        Err(ANOTHER.to_owned())
    }
}

fn only_destroys(answer: &DriverAnswer) -> bool {
    let mut actions = answer
        .resources
        .iter()
        .flat_map(|it| &it.actions)
        .map(String::as_str);
    actions.all(|action| matches!(action, "delete" | "forget"))
}

fn is_shown(answer: &DriverAnswer, shown: &ShownChanges) -> bool {
    let same = |(a, b): (&ResourceChange, &ResourceChange)| {
        a.address == b.address && a.actions == b.actions
    };
    answer.counts == shown.counts
        && answer.resources.len() == shown.resources.len()
        && answer.resources.iter().zip(&shown.resources).all(same)
}
