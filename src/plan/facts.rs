//! The input of policies after a turn: planned and applied changes.

use super::entry::{PlanEntry, PlannedAction};
use crate::driver::{ChangeKind, Changed, ChangedPlan};
use crate::path::StackPath;
use crate::run::turn::Operation;
use crate::run::workflow::{ChangeAction, ChangeInput, ChangePhase, EntityInput, TurnFacts};

/// Returns the facts of a turn with planned changes, and with applied ones if it has succeeded.
pub fn turn_facts(plan: ChangedPlan, applied: Vec<Changed>) -> TurnFacts {
    let ChangedPlan {
        terraform_version,
        changes,
    } = plan;
    let planned = changes.into_iter().map(|it| input(it, ChangePhase::Plan));
    let applied = applied.into_iter().map(|it| input(it, ChangePhase::Apply));
    TurnFacts {
        changes: planned.chain(applied).collect(),
        terraform_version,
        unknown: None,
    }
}

/// Returns the changes of a driver that names no resources: the stack itself changes.
pub fn stack_changed(stack: &StackPath, kind: Option<ChangeKind>) -> ChangedPlan {
    let change = kind.map(|kind| Changed {
        kind,
        address: stack.to_string(),
        name: stack.to_string(),
        type_name: "stack".to_owned(),
        vendor: "",
        entity: "stack",
        data: serde_json::Map::new(),
        sensitive: None,
    });
    ChangedPlan {
        terraform_version: String::new(),
        changes: change.into_iter().collect(),
    }
}

/// Returns the facts of a turn that applies the plan as shown; `None` if only the apply knows them.
/// `shown`: the tool's planned changes, if it names resources.
pub fn foreseen_facts(
    entry: &PlanEntry,
    operation: Operation,
    shown: NamedChanges,
) -> Option<TurnFacts> {
    let is_later = operation == Operation::Apply
        && entry.action == PlannedAction::Replace
        && entry.generation.is_none();
    let is_decided = entry.is_planned && entry.after.is_empty();
    if !is_decided {
        return None;
    }
    let changed = match shown {
        // Its tool has planned only the destroy.
        NamedChanges::Resources(_) if is_later => return None,
        NamedChanges::Resources(changed) => changed?,
        NamedChanges::Stack => {
            let kind = match (operation, entry.action) {
                (Operation::Destroy, _) => ChangeKind::Deleted,
                (_, PlannedAction::Create | PlannedAction::Replace) => ChangeKind::Added,
                _ => ChangeKind::Changed,
            };
            stack_changed(&entry.stack, Some(kind))
        }
    };
    // The values after the apply are those of the plan, as far as the latter knows them.
    let applied = changed.changes.clone();
    Some(turn_facts(changed, applied))
}

pub enum NamedChanges {
    /// Resources; `None` if they cannot be read.
    Resources(Option<ChangedPlan>),
    Stack,
}

fn input(changed: Changed, phase: ChangePhase) -> ChangeInput {
    let mut data = changed.data;
    if changed.entity == "resource" {
        // Policies of Spacelift read `data.values.NAME`; `data.NAME` is kept for our own.
        let values = serde_json::Value::Object(data.clone());
        data.insert("values".to_owned(), values);
    }
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
            data,
        },
    }
}
