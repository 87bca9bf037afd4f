//! What policies hear of a run that is ended from outside.

use nix::sys::signal::Signal;
use serde_json::json;

use super::followed::lines;
use crate::support::{Background, Sandbox, journal_of, run_ids, wait_until};

/// Notes that it has begun, and fails when it is interrupted.
const INTERRUPTED: &str = r#"
trap 'exit 1' INT
echo "$ORCH_STACK_NAME" >> "$ORCH_ROOT/started"
while [ -d "$ORCH_ROOT" ] && [ ! -e "$ORCH_ROOT/go" ]; do sleep 0.01; done
exit 1
"#;

fn sandbox(rule: &str) -> Sandbox {
    let sandbox = Sandbox::layout("a\n b\n c");
    sandbox.write("/p.rego", format!("package p\nimport rego.v1\n{rule}\n"));
    let block = "policy \"trigger\" \"p\" { file = \"p.rego\" }";
    sandbox.write("/p.orch.hcl", block);
    sandbox
}

#[test]
fn follow_ups_of_an_interrupted_turn_are_queued_and_cancelled() {
    let sandbox = sandbox("trigger contains \"/c\" if input.run.state == \"STOPPED\"");
    let run = Background::run(&sandbox, "--policies --match /a --match /b", INTERRUPTED);
    run.wait_for("/started", &["a"]);
    run.signal(Signal::SIGINT);
    let ended = run.end();
    assert_eq!(ended.code(), 130, "{ended}");
    assert_eq!(sandbox.read("/started"), "a\n");
    let evaluated = lines(&sandbox, "evaluated");
    assert_eq!(evaluated.len(), 1, "what never started is not evaluated");
    assert_eq!(evaluated[0]["state"], "STOPPED");
    assert_eq!(
        evaluated[0]["queued"],
        json!([{"stack": "/c", "policies": ["p"]}])
    );
    let cancelled = lines(&sandbox, "ended");
    let cancelled = cancelled
        .iter()
        .filter(|line| line["outcome"] == "cancelled");
    let cancelled: Vec<_> = cancelled.map(|line| line["stack"].clone()).collect();
    assert_eq!(cancelled, ["/b", "/c"]);
}

#[test]
fn follow_ups_never_count_an_interrupted_turn_as_retried() {
    let sandbox = sandbox("trigger contains \"/a\" if input.run.state == \"STOPPED\"");
    let run = Background::run(&sandbox, "--policies --match /a", INTERRUPTED);
    run.wait_for("/started", &["a"]);
    run.signal(Signal::SIGINT);
    let ended = run.end();
    assert_eq!(ended.code(), 130, "{ended}");
    assert!(!ended.stderr.contains("retried"), "{ended}");
    assert!(
        ended.stderr.contains("0 succeeded, 1 failed, 1 cancelled"),
        "{ended}"
    );
}

#[test]
fn follow_ups_cancelled_by_a_signal_leave_the_failure() {
    // The retry of `/c` waits for the other follow-up, which is that of a stack that it runs after.
    let sandbox = sandbox("trigger contains [\"/b\", \"/c\"][_] if input.run.state == \"FAILED\"");
    sandbox.write("/c/stack.tm", "stack {\n  after = [\"/b\"]\n}\n");
    let script = format!("[ $ORCH_STACK_NAME != c ] || exit 1\n{INTERRUPTED}");
    let run = Background::run(&sandbox, "--policies --match /c", &script);
    run.wait_for("/started", &["b"]);
    run.signal(Signal::SIGINT);
    let ended = run.end();
    assert_eq!(ended.code(), 130, "{ended}");
    assert!(!ended.stderr.contains("retried"), "{ended}");
    let shown = sandbox.orch("runs show last");
    assert!(
        shown.stdout.contains("was interrupted: 2 failed\n"),
        "{shown}"
    );
    let finished = lines(&sandbox, "finished");
    assert_eq!(finished[0]["failed"], 2, "{finished:?}");
}

#[test]
fn resume_starts_follow_ups_cancelled_by_a_signal() {
    let sandbox = sandbox("trigger contains \"/c\" if input.run.state == \"STOPPED\"");
    let run = Background::run(&sandbox, "--policies --match /a", INTERRUPTED);
    run.wait_for("/started", &["a"]);
    run.signal(Signal::SIGINT);
    assert_eq!(run.end().code(), 130);
    sandbox.write("/go", "");
    sandbox.write(
        "/script.sh",
        "#!/bin/sh\necho \"$ORCH_STACK_NAME ${ORCH_POLICY-}\" >> \"$ORCH_ROOT/started\"\n",
    );
    let resumed = sandbox.orch("run --resume last");
    assert_eq!(resumed.code(), 0, "{resumed}");
    assert_eq!(sandbox.read("/started"), "a\na \nc p\n");
}

#[test]
fn signals_end_the_wait_for_policies_at_the_second_one() {
    // It would take minutes.
    let slow = "trigger contains \"/c\" if { some i in numbers.range(1, 3000); some j in numbers.range(1, 3000); some k in numbers.range(1, 3000); i * j * k == -1 }";
    let sandbox = sandbox(slow);
    let block = "policy \"trigger\" \"p\" {\n  file = \"p.rego\"\n  timeout = \"10m\"\n}";
    sandbox.write("/p.orch.hcl", block);
    sandbox.write("/go", "");
    let run = Background::run(&sandbox, "--policies --match /a", INTERRUPTED);
    wait_until("/a has ended", || {
        let run = run_ids(&sandbox).pop();
        run.is_some_and(|run| {
            sandbox
                .read(&journal_of(&run))
                .contains("\"event\":\"ended\"")
        })
    });
    run.signal(Signal::SIGINT);
    run.wait_until_said("SIGINT");
    run.signal(Signal::SIGTERM);
    let ended = run.end();
    assert_eq!(ended.code(), 130, "{ended}");
    for said in [
        "SIGINT: nothing new starts; waiting for policies to be evaluated (again: stop waiting)",
        "SIGTERM: policies are not evaluated any more",
    ] {
        assert!(ended.stderr.contains(said), "{said}: {ended}");
    }
    assert!(lines(&sandbox, "evaluated").is_empty());
    assert_eq!(lines(&sandbox, "finished").len(), 1);
}
