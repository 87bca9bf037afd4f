//! `orch apply` without a file: what is done, in which order, and what a failure means.

use std::fs;

use super::{
    acts, applied, assert_tidy, declare, done, entry, fails, hook, log, prepared, project, unhook,
    want, with_state, world,
};

const CHAIN: [(&str, &str); 3] = [
    ("/a", "after = [\"/b\"]"),
    ("/b", "after = [\"/c\"]"),
    ("/c", ""),
];

#[test]
fn apply_shows_its_plan_and_runs_in_order() {
    let repository = project(&CHAIN);
    let output = done(&repository, "apply --auto-approve");
    assert!(output.contains("Plan: 3 to create"), "{output}");
    let expected = ["apply create c", "apply create b", "apply create a"];
    assert_eq!(acts(&repository), expected);
    assert_eq!(world(&repository, "a").as_deref(), Some("1"));
    assert_tidy(&repository);
    let again = done(&repository, "apply --auto-approve");
    assert!(again.contains("nothing to do"), "{again}");
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn apply_works_without_git() {
    let sandbox = prepared(&CHAIN);
    done(&sandbox, "apply --auto-approve");
    assert_eq!(world(&sandbox, "a").as_deref(), Some("1"));
    done(&sandbox, "destroy --auto-approve --allow-destroy=3");
    assert_eq!(world(&sandbox, "a"), None);
}

#[test]
fn apply_without_terminal_needs_approval() {
    let repository = project(&CHAIN);
    let output = fails(&repository, "apply", 4, "--auto-approve");
    assert!(output.contains("Plan: 3 to create"), "{output}");
    assert_eq!(acts(&repository), [""; 0]);
    assert_tidy(&repository);
    // There is nothing to approve.
    done(&repository, "apply --auto-approve");
    done(&repository, "apply");
}

#[test]
fn apply_skips_dependents_of_a_failed_stack() {
    let repository = project(&[CHAIN[0], CHAIN[1], CHAIN[2], ("/d", "")]);
    hook(&repository, "apply", "b", "exit 7");
    let output = fails(&repository, "apply --auto-approve", 1, "/b: failed");
    assert!(
        output.contains("skipped /a: runs after /b, which failed"),
        "{output}"
    );
    let expected = ["apply create c", "apply create b", "apply create d"];
    assert_eq!(acts(&repository), expected);
    unhook(&repository, "apply", "b");
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), ["apply create b", "apply create a"]);
}

#[test]
fn apply_stops_after_a_failure_with_on_error_stop() {
    let repository = project(&[CHAIN[0], CHAIN[1], CHAIN[2], ("/d", "")]);
    hook(&repository, "apply", "b", "exit 7");
    fails(&repository, "apply --auto-approve --on-error stop", 1, "/b");
    assert_eq!(acts(&repository), ["apply create c", "apply create b"]);
    assert_eq!(world(&repository, "d"), None);
}

#[test]
fn apply_runs_nothing_if_a_tool_fails_to_plan() {
    let repository = project(&CHAIN);
    hook(&repository, "plan", "c", "exit 1");
    fails(&repository, "apply --auto-approve", 1, "/c");
    assert_eq!(acts(&repository), [""; 0]);
    assert_tidy(&repository);
}

#[test]
fn apply_refuses_uncommitted_files() {
    let repository = project(&CHAIN);
    repository.write("/a/new", "");
    fails(&repository, "apply --auto-approve", 4, "a/new");
    assert_eq!(log(&repository), [""; 0], "not even a plan");
    done(&repository, "plan -o saved");
    fails(&repository, "apply saved", 4, "a/new");
    assert_eq!(acts(&repository), [""; 0]);
    done(&repository, "apply -X saved");
    assert_eq!(acts(&repository).len(), 3);
    want(&repository, "/a", "2");
    repository.write("/a/newer", "");
    done(&repository, "apply -X --auto-approve");
    assert_eq!(acts(&repository), ["apply update a"]);
}

#[test]
fn apply_runs_only_the_selection() {
    let repository = with_state(&CHAIN);
    done(&repository, "apply --auto-approve --match b");
    assert_eq!(acts(&repository), ["apply create b"]);
    done(&repository, "apply --auto-approve --match c --match a");
    assert_eq!(acts(&repository), ["apply create c", "apply create a"]);
}

#[test]
fn apply_plans_again_before_a_retry() {
    let repository = project(&CHAIN);
    let retry = "orch {\n  config {\n    run {\n      retry {\n        attempts = 2\n        backoff  = \"0s\"\n        on_exit  = [1]\n      }\n    }\n  }\n}\n";
    repository.write("/retry.orch.hcl", retry);
    repository.commit();
    let once = "if [ ! -e $ORCH_ROOT/../tried ]; then touch $ORCH_ROOT/../tried; exit 1; fi";
    hook(&repository, "apply", "c", once);
    done(&repository, "apply --auto-approve --match c");
    let expected = [
        "plan update c",
        "apply create c",
        "plan create c",
        "apply create c",
        "outputs create c",
    ];
    assert_eq!(log(&repository), expected);
}

#[test]
fn apply_runs_a_driver_without_plan() {
    let repository = with_state(&[("/a", "driver = \"blind\"")]);
    let output = done(&repository, "apply --auto-approve");
    assert!(output.contains("create"), "{output}");
    assert_eq!(world(&repository, "a").as_deref(), Some("blind\n"));
    let again = done(&repository, "apply --auto-approve");
    assert!(again.contains("nothing to do"), "{again}");
    // It has nothing that destroys.
    for arguments in ["destroy", "apply --replace a"] {
        let blocked = fails(&repository, arguments, 4, "1 stack is blocked");
        assert!(
            blocked.contains("its driver `blind` has no `destroy`"),
            "{blocked}"
        );
        assert!(entry(&repository, "/a")["applied"].is_object());
    }
}

#[test]
fn apply_runs_other_stacks_beside_a_blocked_one() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    super::change_document(&repository, |document| {
        document["stacks"]["/a"]["backend"] = "local elsewhere".into();
    });
    let blocked = repository.read("/drivers.orch.hcl").replace(
        "may_replace = true",
        "may_replace = true\n  backend = \"local here\"",
    );
    repository.write("/drivers.orch.hcl", blocked);
    declare(&repository, "/a", "driver = \"fake\"");
    declare(&repository, "/b", "driver = \"mute\"");
    fs::write(repository.path("/a/want"), "2").unwrap();
    fs::write(repository.path("/b/want"), "2").unwrap();
    repository.commit();
    let left = "1 stack is blocked and left unchanged: /a";
    fails(&repository, "apply --auto-approve", 4, left);
    assert_eq!(acts(&repository), ["apply update b"]);
}

#[test]
fn apply_warns_where_replace_has_no_effect() {
    let repository = applied(&[("/a", ""), ("/read", "mode = \"read\"\n  tags = [\"x\"]")]);
    declare(&repository, "/new", "");
    want(&repository, "/new", "1");
    let warnings = |said: &str| -> Vec<String> {
        let lines = said.lines().filter(|line| line.starts_with("warning:"));
        lines.map(str::to_owned).collect()
    };
    let said = done(
        &repository,
        "plan --replace new --replace tag:x --replace a",
    );
    assert_eq!(
        warnings(&said),
        [
            "warning: `--replace` has no effect on `/new`: the plan creates it",
            "warning: `--replace` has no effect on `/read`: it is only read",
        ]
    );
    // A stack that is not selected is no part of the plan.
    let said = "in --replace: `a` is not selected";
    fails(&repository, "plan --replace a --match new", 64, said);
    done(&repository, "plan --replace '*' --match new");
}
