use super::*;
use crate::change::Difference;
use crate::driver::Tool;

const TERRAFORM: Driver<'static> = Driver {
    name: "terraform",
    tool: Some(Tool::Terraform),
    block: None,
};

const NONE: Driver<'static> = Driver {
    name: "none",
    tool: None,
    block: None,
};

fn known<'a>(status: Option<&'a StackStatus>, differ: Option<&'a str>) -> StackFacts<'a> {
    StackFacts {
        status,
        driver: TERRAFORM,
        mode: StackMode::Manage,
        is_replaced: false,
        is_created_first: false,
        is_missing: false,
        trigger: None,
        outputs_differ: differ,
        ignored: None,
        accepts_drift: false,
        lacks_outputs: false,
        is_released: false,
    }
}

fn answer(has_changes: bool) -> DriverAnswer {
    DriverAnswer {
        exists: Some(true),
        has_changes,
        is_complete: true,
        ..DriverAnswer::default()
    }
}

fn decided(known: &StackFacts<'_>, has_changes: bool) -> (PlannedAction, String) {
    match known.need(PlanOptions::default()) {
        Decision::Final(action, reason) => (action, reason.text),
        Decision::Ask(_, asked) => {
            let (action, reason) = known.decide(asked, &answer(has_changes)).unwrap();
            (action, reason.text)
        }
    }
}

const DIFFER: &str = "outputs of /net differ";

#[test]
fn entry_is_decided_by_state_and_tool() {
    use PlannedAction::{Adopt, NoOp, Update};
    let never = StackStatus::Pending(Pending::NeverApplied);
    let parts = vec!["config".to_owned()];
    let other = StackStatus::Pending(Pending::Differs(Difference {
        parts,
        ..Difference::default()
    }));
    let failed = StackStatus::Failed("failed");
    let cases: [(Option<&StackStatus>, Option<&str>, _, _); 9] = [
        (
            None,
            None,
            (NoOp, "has no changes"),
            (Update, "has changes"),
        ),
        (
            Some(&never),
            None,
            (Adopt, "exists, and is not recorded"),
            (Update, "not recorded"),
        ),
        (
            Some(&StackStatus::Applied),
            None,
            (NoOp, "unchanged"),
            (NoOp, "unchanged"),
        ),
        (
            Some(&StackStatus::Applied),
            Some(DIFFER),
            (NoOp, "no changes"),
            (Update, DIFFER),
        ),
        (
            Some(&other),
            None,
            (NoOp, "no changes"),
            (Update, "config differs"),
        ),
        // Changes of the stack itself are more specific.
        (
            Some(&other),
            Some(DIFFER),
            (NoOp, "no changes"),
            (Update, "config differs"),
        ),
        (Some(&failed), None, (NoOp, "failed"), (Update, "failed")),
        (
            Some(&failed),
            Some(DIFFER),
            (NoOp, "failed"),
            (Update, "failed"),
        ),
        (
            Some(&StackStatus::Running),
            None,
            (NoOp, "no changes"),
            (Update, "a run is working on it"),
        ),
    ];
    for (status, differ, without, with) in cases {
        let known = known(status, differ);
        for (has_changes, (action, reason)) in [(false, without), (true, with)] {
            let expected = (action, reason.to_owned());
            assert_eq!(
                decided(&known, has_changes),
                expected,
                "{status:?} {differ:?}"
            );
        }
    }
}

#[test]
fn entry_of_missing_stack_depends_on_its_record() {
    let gone = "recorded, but its Terraform state is empty";
    let cases = [
        (StackStatus::Applied, gone),
        (StackStatus::Failed("failed"), "failed; nothing exists"),
        (
            StackStatus::Running,
            "a run is working on it; nothing exists",
        ),
    ];
    for (status, expected) in cases {
        let nothing = DriverAnswer {
            exists: Some(false),
            ..answer(true)
        };
        let known = known(Some(&status), None);
        let (action, reason) = known.decide(AskedAction::Update, &nothing).unwrap();
        assert_eq!(
            (action, reason.text.as_str()),
            (PlannedAction::Update, expected)
        );
    }
}

#[test]
fn entry_of_driver_without_plan_has_work_if_inputs_differ() {
    let block = None;
    let blind = Driver {
        name: "blind",
        tool: None,
        block,
    };
    for (driver, differ, action) in [
        (blind, None, PlannedAction::NoOp),
        (blind, Some(DIFFER), PlannedAction::Update),
        (NONE, None, PlannedAction::NoOp),
        (NONE, Some(DIFFER), PlannedAction::NoOp),
    ] {
        let known = StackFacts {
            driver,
            ..known(Some(&StackStatus::Applied), differ)
        };
        assert_eq!(
            decided(&known, true).0,
            action,
            "{} {differ:?}",
            driver.name
        );
    }
}

#[test]
fn entry_reason_prefers_the_stacks_own_changes() {
    let applied = Some(&StackStatus::Applied);
    let replaced = StackFacts {
        is_replaced: true,
        ..known(applied, Some(DIFFER))
    };
    assert_eq!(
        decided(&replaced, true),
        (PlannedAction::Replace, "--replace".to_owned())
    );
    let read = StackFacts {
        mode: StackMode::Read,
        ..known(applied, Some(DIFFER))
    };
    assert_eq!(
        decided(&read, true),
        (PlannedAction::Read, "it is only read".to_owned())
    );
    let modes = [
        (PlanMode::Destroy, PlanKind::Destroy),
        (PlanMode::RefreshOnly, PlanKind::RefreshOnly),
    ];
    for (mode, kind) in modes {
        let options = PlanOptions {
            mode,
            is_full: false,
        };
        let need = known(applied, Some(DIFFER)).need(options);
        assert!(
            matches!(need, Decision::Ask(asked, _) if asked == kind),
            "{need:?}"
        );
    }
    let full = PlanOptions {
        is_full: true,
        ..PlanOptions::default()
    };
    assert!(matches!(known(applied, None).need(full), Decision::Ask(..)));
}

#[test]
fn entry_with_changes_and_equal_inputs_has_drift() {
    let applied = StackStatus::Applied;
    let unchanged = known(Some(&applied), None);
    let why = |known: &StackFacts<'_>| {
        let (action, reason) = known.decide(AskedAction::Update, &answer(true)).unwrap();
        assert_eq!(action, PlannedAction::Update);
        reason.text
    };
    assert_eq!(why(&unchanged), "drift");
    let released = StackFacts {
        is_released: true,
        ..unchanged
    };
    assert_eq!(why(&released), "calls a released module");
    assert_eq!(why(&known(Some(&applied), Some(DIFFER))), DIFFER);
    let accepted = StackFacts {
        accepts_drift: true,
        ..unchanged
    };
    assert_eq!(
        decided(&accepted, true),
        (PlannedAction::Update, "drift".to_owned())
    );
    assert_eq!(
        decided(&accepted, false),
        (PlannedAction::NoOp, "no changes".to_owned())
    );
}
