use super::*;
use crate::driver::ChangeCounts;
use crate::plan::rows::tests::{created_first, entry, plan};

fn counts(add: u64, change: u64, remove: u64) -> ChangeCounts {
    ChangeCounts {
        add,
        change,
        remove,
    }
}

#[test]
fn totals_count_stacks_once_and_replaced_resources_twice() {
    let mut updated = entry("/a", PlannedAction::Update);
    updated.counts = Some(counts(2, 1, 1));
    let mut replaced = entry("/b", PlannedAction::Replace);
    replaced.counts = Some(counts(0, 0, 3));
    let mut blocked = entry("/c", PlannedAction::NoOp);
    blocked.blocked = Some("taken".to_owned());
    blocked.counts = Some(counts(7, 7, 7));
    let mut plan = plan(
        vec![
            updated,
            replaced,
            blocked,
            entry("/d", PlannedAction::Create),
            entry("/e", PlannedAction::NoOp),
        ],
        &[],
    );
    plan.without_driver = 4;
    assert_eq!(
        plan.totals(),
        Totals {
            stacks: StackTotals {
                create: 1,
                update: 1,
                replace: 1,
                blocked: 1,
                unchanged: 1,
                without_driver: 4,
                ..StackTotals::default()
            },
            resources: ResourceTotals {
                create: 5,
                update: 1,
                delete: 4,
                unknown_in: 1,
                ..ResourceTotals::default()
            },
        }
    );
}

#[test]
fn totals_count_created_first_as_replaced() {
    let mut entries = created_first("/app");
    entries[0].counts = Some(counts(1, 0, 0));
    entries[1].counts = Some(counts(0, 0, 1));
    let totals = plan(entries.into(), &[]).totals();
    let StackTotals {
        replace, delete, ..
    } = totals.stacks;
    assert_eq!((replace, delete), (1, 0));
    assert_eq!((totals.resources.create, totals.resources.delete), (1, 1));
}

#[test]
fn totals_count_drift_only_in_refresh_plans() {
    let mut drifted = entry("/a", PlannedAction::NoOp);
    drifted.has_drifted = true;
    drifted.counts = Some(counts(0, 1, 0));
    let mut read = entry("/b", PlannedAction::Read);
    read.has_drifted = true;
    read.counts = Some(counts(0, 0, 1));
    let mut plan = plan(vec![drifted, read], &[]);
    let totals = plan.totals();
    assert_eq!((totals.stacks.unchanged, totals.stacks.read), (1, 1));
    assert_eq!(totals.resources, ResourceTotals::default());
    plan.mode = PlanMode::RefreshOnly;
    let totals = plan.totals();
    assert_eq!((totals.stacks.drifted, totals.stacks.read), (2, 0));
    assert_eq!((totals.resources.update, totals.resources.delete), (1, 1));
}
