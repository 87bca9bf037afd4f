//! Whether the plan of a tool that is about to be carried out is the one that was shown. It may be from a
//! file, and anybody can put another one there.

use super::Shown;
use super::turn::TurnState;
use crate::driver::{Answer, BadPlan, ResourceChange};
use crate::plan::ask::{NoAnswer, answer};
use crate::run::turn::Operation;

/// What is said if it is another one.
const ANOTHER: &str = "the plan in the file is not the one that is shown";

impl TurnState<'_> {
    /// Checks what the tool has told of its plan. Of what a driver does that is no tool, nothing can be told.
    ///
    /// # Errors
    ///
    /// If it is not what was shown, or does not fit the operation: in words.
    pub(super) fn check_shown_plan(&self) -> Result<(), String> {
        let driver = &self.stack.driver;
        if driver.tool.is_none() || !self.has_plan {
            return Ok(());
        }
        // No status of a `plan` counts here: nothing is planned.
        let answer = answer(driver, self.kind, &self.folder, false, self.is_partial);
        let answer = answer.map_err(|problem| match problem {
            NoAnswer::Plan(BadPlan::NotWhole(_)) => ANOTHER.to_owned(),
            problem => problem.to_string(),
        })?;
        let is_whole = answer.is_complete || !self.stack.is_complete;
        let fits = self.operation != Operation::Destroy || only_destroys(&answer);
        if is_whole && fits && is_shown(&answer, &self.stack.shown) {
            return Ok(());
        }
        Err(ANOTHER.to_owned())
    }
}

/// Returns whether nothing is made or changed.
fn only_destroys(answer: &Answer) -> bool {
    let actions = answer.resources.iter().flat_map(|it| &it.actions);
    let mut actions = actions.map(String::as_str);
    actions.all(|action| matches!(action, "delete" | "forget"))
}

fn is_shown(answer: &Answer, shown: &Shown) -> bool {
    let same = |(a, b): (&ResourceChange, &ResourceChange)| {
        a.address == b.address && a.actions == b.actions
    };
    answer.counts == shown.counts
        && answer.resources.len() == shown.resources.len()
        && answer.resources.iter().zip(&shown.resources).all(same)
}
