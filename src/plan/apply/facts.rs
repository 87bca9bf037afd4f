//! What policies are told of a turn that has ended: what it was to change, and has changed.

use super::turn::TurnState;
use crate::driver::{ChangeKind, Changed, ChangedPlan};
use crate::plan::ask::open_shown;
use crate::plan::entry::Asked;
use crate::run::event::{Ending, Outcome};
use crate::run::turn::Operation;
use crate::run::workflow::{ChangeAction, ChangeInput, ChangePhase, EntityInput, TurnFacts};

impl TurnState<'_> {
    /// Returns what is known of the turn, which has ended.
    pub(super) fn facts(&self, ending: &Ending) -> TurnFacts {
        let ChangedPlan {
            terraform_version,
            changes,
        } = self.planned();
        let planned = changes.into_iter().map(|it| input(it, ChangePhase::Plan));
        let mut changes: Vec<ChangeInput> = planned.collect();
        if self.has_acted && ending.outcome == Outcome::Succeeded {
            let done = changes.clone().into_iter().map(|change| ChangeInput {
                phase: ChangePhase::Apply,
                ..change
            });
            changes.extend(done.collect::<Vec<_>>());
        }
        TurnFacts {
            changes,
            terraform_version,
        }
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
        let change = is_work.then(|| Changed {
            kind: match (self.operation, self.asked_now()) {
                (Operation::Destroy, _) => ChangeKind::Deleted,
                (_, Asked::Create) => ChangeKind::Added,
                _ => ChangeKind::Changed,
            },
            address: self.path.to_string(),
            name: self.path.to_string(),
            type_name: "stack".to_owned(),
            vendor: "",
            entity: "stack",
            data: serde_json::Map::new(),
        });
        ChangedPlan {
            terraform_version: String::new(),
            changes: change.into_iter().collect(),
        }
    }
}

fn input(changed: Changed, phase: ChangePhase) -> ChangeInput {
    ChangeInput {
        action: match changed.kind {
            ChangeKind::Added => ChangeAction::Added,
            ChangeKind::Changed => ChangeAction::Changed,
            ChangeKind::Deleted => ChangeAction::Deleted,
        },
        phase,
        entity: EntityInput {
            address: changed.address,
            name: changed.name,
            type_name: changed.type_name,
            entity_vendor: changed.vendor,
            entity_type: changed.entity,
            data: changed.data,
        },
    }
}
