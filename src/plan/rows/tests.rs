use super::*;
use crate::path::Generation;
use crate::plan::PlannedOperation;
use crate::plan::entry::{PlanReason, ReasonSource};

pub(in crate::plan) fn path(text: &str) -> StackPath {
    StackPath::parse(text).unwrap()
}

pub(in crate::plan) fn entry(stack: &str, action: PlannedAction) -> PlanEntry {
    let reason = PlanReason::new(ReasonSource::State, "not recorded");
    PlanEntry::new(path(stack), action, reason)
}

pub(in crate::plan) fn plan(mut entries: Vec<PlanEntry>, operations: &[(&str, bool)]) -> Plan {
    entries.sort_by(|a, b| a.stack.cmp(&b.stack));
    let operations = operations
        .iter()
        .map(|&(stack, destroys)| PlannedOperation {
            stack: path(stack),
            destroys,
        });
    Plan {
        id: "x".to_owned(),
        entries,
        operations: operations.collect(),
        ..Plan::default()
    }
}

/// Returns the entries of a stack that is created before its generation 1 is destroyed.
pub(in crate::plan) fn created_first(stack: &str) -> [PlanEntry; 2] {
    let (old, new) = (Generation::FIRST, Generation::FIRST.next());
    let mut made = entry(stack, PlannedAction::Replace);
    made.generation = Some(new);
    let mut destroyed = entry(stack, PlannedAction::Delete);
    destroyed.stack = path(stack).of_generation(old);
    destroyed.removed = Some(Removed::Replaced { by: new });
    [made, destroyed]
}

fn stacks(plan: &Plan) -> Vec<&str> {
    let rows = plan.rows().into_iter();
    rows.map(|row| row.entry.stack.as_str()).collect()
}

#[test]
fn rows_follow_the_run_with_one_row_per_stack() {
    let entries = vec![
        entry("/adopted", PlannedAction::Adopt),
        entry("/app", PlannedAction::Replace),
        entry("/gone", PlannedAction::Forget),
        entry("/net", PlannedAction::Update),
        entry("/read", PlannedAction::Read),
        entry("/unchanged", PlannedAction::NoOp),
        entry("/web", PlannedAction::Delete),
    ];
    let operations = [
        ("/web", true),
        ("/app", true),
        ("/net", false),
        ("/app", false),
    ];
    let plan = plan(entries, &operations);
    let expected = [
        "/read",
        "/web",
        "/app",
        "/net",
        "/adopted",
        "/gone",
        "/unchanged",
    ];
    assert_eq!(stacks(&plan), expected);
}

#[test]
fn rows_put_blocked_stacks_last() {
    let mut undecided = entry("/b", PlannedAction::NoOp);
    undecided.after.stacks.push(path("/z"));
    let mut blocked = entry("/a", PlannedAction::NoOp);
    blocked.blocked = Some("taken".to_owned());
    let entries = vec![
        blocked,
        undecided,
        entry("/c", PlannedAction::Update),
        entry("/z", PlannedAction::Update),
    ];
    let mut plan = plan(entries, &[("/c", false), ("/z", false)]);
    assert_eq!(stacks(&plan), ["/c", "/z", "/b", "/a"]);
    plan.sequence = ["/z", "/b", "/c"].map(path).to_vec();
    assert_eq!(stacks(&plan), ["/z", "/b", "/c", "/a"]);
}

#[test]
fn rows_join_generations_that_this_plan_replaces() {
    let [made, destroyed] = created_first("/app");
    let operations = [("/app", false), ("/app[generation 1]", true)];
    let whole = plan(vec![made.clone(), destroyed.clone()], &operations);
    let rows = whole.rows();
    assert_eq!(stacks(&whole), ["/app"]);
    assert_eq!(rows[0].old, Some(&destroyed));
    assert_eq!(rows[0].action(), PlannedAction::Replace);
    // The old generation is kept.
    let mut kept = destroyed.clone();
    kept.action = PlannedAction::NoOp;
    kept.blocked = Some("/web runs after it".to_owned());
    let kept = plan(vec![made, kept], &operations[..1]);
    assert_eq!(stacks(&kept), ["/app", "/app[generation 1]"]);
    assert_eq!(kept.rows()[0].action(), PlannedAction::Create);
    // An earlier plan has replaced it.
    let earlier = plan(
        vec![entry("/app", PlannedAction::Update), destroyed],
        &operations,
    );
    assert_eq!(stacks(&earlier), ["/app", "/app[generation 1]"]);
}
