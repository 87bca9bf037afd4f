use super::*;
use crate::driver::ResourceChange;
use crate::plan::rows::tests::{entry, path};
use crate::plan::{FailedAsk, Plan};
use crate::record::journal::Argument;

fn on(stack: &str, destroys: bool) -> PlannedOperation {
    let stack = path(stack);
    PlannedOperation { stack, destroys }
}

fn rests_on(stack: &str, plan: Option<usize>) -> SavedStack {
    SavedStack {
        stack: path(stack),
        driver: "fake".to_owned(),
        inputs: None,
        order: String::new(),
        record: None,
        records_before: None,
        backend: None,
        outputs_before: None,
        outputs: None,
        changes: None,
        plan,
        tool_version: None,
    }
}

/// A plan with an entry of each kind: its file has two plans.
fn consistent() -> SavedPlan {
    let mut blocked = entry("/b", PlannedAction::NoOp);
    blocked.blocked = Some("its backend differs from the recorded one".to_owned());
    let mut undecided = entry("/d", PlannedAction::NoOp);
    undecided.after.stacks.push(path("/a"));
    undecided.is_planned = false;
    let plan = Plan {
        id: "x".to_owned(),
        entries: vec![
            entry("/a", PlannedAction::Update),
            blocked,
            entry("/c", PlannedAction::Replace),
            undecided,
            entry("/e", PlannedAction::Adopt),
            entry("/f", PlannedAction::NoOp),
            entry("/g", PlannedAction::NoOp),
        ],
        operations: vec![on("/c", true), on("/a", false), on("/c", false)],
        ..Plan::default()
    };
    let stacks = vec![
        rests_on("/a", Some(1)),
        rests_on("/c", Some(0)),
        rests_on("/d", None),
        rests_on("/e", None),
        rests_on("/f", None),
    ];
    SavedPlan::new(plan, stacks)
}

#[test]
fn consistency_accepts_a_consistent_plan() {
    assert_eq!(check(&consistent(), 2), Ok(()));
    let mut destroys = consistent();
    destroys.plan.mode = PlanMode::Destroy;
    destroys.plan.entries = vec![
        entry("/a", PlannedAction::Delete),
        entry("/b", PlannedAction::NoOp),
        entry("/c", PlannedAction::Read),
    ];
    destroys.plan.operations = vec![on("/a", true)];
    destroys.stacks = vec![rests_on("/a", None), rests_on("/c", None)];
    assert_eq!(check(&destroys, 0), Ok(()));
    let mut looks = destroys;
    looks.plan.mode = PlanMode::RefreshOnly;
    looks.plan.entries[0].action = PlannedAction::NoOp;
    looks.plan.operations.clear();
    assert_eq!(check(&looks, 0), Ok(()));
}

#[test]
fn consistency_requires_forgotten_stacks_without_resources() {
    let forgets = || {
        let mut saved = consistent();
        let mut forgotten = entry("/a", PlannedAction::Forget);
        forgotten.removed = Some(Removed::Key);
        saved.plan.entries = vec![forgotten];
        saved.plan.operations.clear();
        saved.stacks = vec![rests_on("/a", None)];
        saved
    };
    assert_eq!(check(&forgets(), 1), Ok(()));
    let cases: [fn(&mut SavedPlan); 3] = [
        |saved| saved.stacks[0].plan = Some(0),
        |saved| {
            let remove = 1;
            saved.plan.entries[0].counts = Some(ChangeCounts {
                remove,
                ..ChangeCounts::default()
            });
        },
        |saved| {
            saved.plan.entries[0].resources.push(ResourceChange {
                address: "x.y".to_owned(),
                previous_address: None,
                actions: vec!["delete".to_owned()],
                values: BTreeMap::new(),
                is_tainted: false,
                is_imported: false,
            });
        },
    ];
    for change in cases {
        let mut saved = forgets();
        change(&mut saved);
        let found = check(&saved, 1).unwrap_err();
        assert!(
            found.starts_with("the entry of `/a` says `forget`"),
            "{found}"
        );
    }
}

/// A change to the plan, and the start of the message about it.
type Case = (fn(&mut SavedPlan), &'static str);

#[track_caller]
fn assert_refused(cases: &[Case]) {
    for (change, expected) in cases {
        let mut saved = consistent();
        change(&mut saved);
        let found = check(&saved, 2).unwrap_err();
        assert!(found.starts_with(expected), "{expected}: {found}");
    }
}

#[test]
fn consistency_requires_an_entry_and_a_plan_for_all_work() {
    assert_refused(&[
        (
            |saved| {
                let (stack, why) = (path("/a"), String::new());
                saved.plan.failed.push(FailedAsk {
                    stack,
                    why,
                    conditions: Vec::new(),
                });
            },
            "`/a` failed to plan, but has an entry",
        ),
        (
            |saved| saved.plan.entries.swap(0, 1),
            "the entry of `/a` is not in its place",
        ),
        (
            |saved| {
                saved
                    .plan
                    .entries
                    .insert(1, entry("/a", PlannedAction::NoOp));
            },
            "the entry of `/a` is not in its place",
        ),
        (
            |saved| saved.stacks.swap(0, 1),
            "the inputs of the entry of `/a` are out of place",
        ),
        (
            |saved| saved.stacks.insert(1, rests_on("/a", None)),
            "the inputs of the entry of `/a` are out of place",
        ),
        (
            |saved| saved.stacks.clear(),
            "the inputs of the entry of `/a` are missing",
        ),
        (
            |saved| drop(saved.stacks.remove(2)),
            "the inputs of the entry of `/d` are missing",
        ),
        (
            |saved| drop(saved.stacks.remove(3)),
            "the inputs of the entry of `/e` are missing",
        ),
        (
            |saved| saved.stacks.insert(1, rests_on("/b", None)),
            "`/b` is applied, and its entry is blocked",
        ),
        (
            |saved| saved.stacks.push(rests_on("/x\u{1b}", None)),
            "`/x\\u{1b}` is applied, and has no entry",
        ),
        (
            |saved| saved.plan.entries[0].blocked = Some(String::new()),
            "the entry of `/a` is blocked, and says `update`",
        ),
        (
            |saved| saved.stacks[0].plan = Some(2),
            "the plan 2 of `/a` is not in the file",
        ),
        (
            |saved| saved.stacks[1].plan = Some(1),
            "the plan 1 of `/c` is that of another stack too",
        ),
    ]);
}

#[test]
fn consistency_compares_entries_with_mode_and_operations() {
    assert_refused(&[
        (
            |saved| saved.plan.entries[0].action = PlannedAction::Delete,
            "the entry of `/a` says `delete`, and the mode of the plan is `normal`",
        ),
        (
            |saved| saved.plan.mode = PlanMode::Destroy,
            "the entry of `/a` says `update`, and the mode of the plan is `destroy`",
        ),
        (
            |saved| saved.plan.mode = PlanMode::RefreshOnly,
            "the entry of `/a` says `update`, and the mode of the plan is `refresh-only`",
        ),
        (
            |saved| {
                saved.plan.mode = PlanMode::Destroy;
                saved.plan.entries.drain(..3);
            },
            "the entry of `/d` is planned later, and the mode of the plan is `destroy`",
        ),
        (
            |saved| saved.plan.entries[0].is_planned = false,
            "the entry of `/a` is neither planned nor planned later",
        ),
        (
            |saved| drop(saved.plan.operations.pop()),
            "the operations on `/c` are not those of its entry",
        ),
        (
            |saved| saved.plan.operations.push(on("/a", false)),
            "the operations on `/a` are not those of its entry",
        ),
        (
            |saved| saved.plan.operations.push(on("/f", true)),
            "the operations on `/f` are not those of its entry",
        ),
        (
            |saved| saved.plan.operations[1].destroys = true,
            "the operations on `/a` are not those of its entry",
        ),
        (
            |saved| saved.plan.operations.clear(),
            "the operations on `/a` are not those of its entry",
        ),
        (
            |saved| saved.extra.push(Argument("-destroy".into())),
            "its arguments for the tools have `-destroy`",
        ),
    ]);
}
