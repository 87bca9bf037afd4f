//! What policies see of a turn that has ended: the planned changes and those that were made.

use super::turn::TurnState;
use crate::driver::{ChangeKind, ChangedPlan};
use crate::plan::ask::open_shown;
use crate::plan::entry::Asked;
use crate::plan::facts::{stack_changed, turn_facts};
use crate::run::event::{Ending, Outcome};
use crate::run::turn::Operation;
use crate::run::workflow::TurnFacts;

impl TurnState<'_> {
    /// Returns what is known of the turn, which has ended.
    pub(super) fn facts(&self, ending: &Ending) -> TurnFacts {
        let is_done = self.has_acted && ending.outcome == Outcome::Succeeded;
        turn_facts(self.planned(), is_done)
    }

    /// Returns what its tool has planned. Of a driver that names no resources, the stack is what changes.
    fn planned(&self) -> ChangedPlan {
        if self.attempt.number == 0 {
            return ChangedPlan::default(); // its time never came
        }
        if self.stack.driver.tool.is_some() {
            let shown = open_shown(&self.folder);
            return shown.map(ChangedPlan::read).unwrap_or_default();
        }
        let is_work = self.attempt.is_unconfirmed || self.attempt.is_work == Some(true);
        let kind = is_work.then(|| match (self.operation, self.asked_now()) {
            (Operation::Destroy, _) => ChangeKind::Deleted,
            (_, Asked::Create) => ChangeKind::Added,
            _ => ChangeKind::Changed,
        });
        stack_changed(&self.path, kind)
    }
}
