//! Journals that an earlier `orch` wrote: they are shown, and can be resumed.

use insta::assert_snapshot;

use crate::support::{Sandbox, said};

/// The project that these journals are about, with one of them recorded.
fn with_journal(id: &str, text: &str) -> Sandbox {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a
        c
        d after /c",
    );
    sandbox.write(&format!("/.orch/runs/{id}/journal.jsonl"), text);
    sandbox
}

fn finished() -> Sandbox {
    with_journal(
        "019df2a1-1000-7000-8000-000000000001",
        include_str!("journals/finished.jsonl"),
    )
}

fn killed() -> Sandbox {
    with_journal(
        "019df2a1-2000-7000-8000-000000000002",
        include_str!("journals/killed.jsonl"),
    )
}

#[test]
fn attempts_and_timeouts_are_shown() {
    let sandbox = finished();
    assert_snapshot!(said(&sandbox, &sandbox.orch("runs show")), @r#"
    run <run 1> failed: 1 succeeded, 2 failed, 1 skipped
      command  sh -c 'echo "$ORCH_STACK_NAME" >> "$ORCH_ROOT/ran"'
      typed    orch run --on-error continue -- sh -c 'echo "$ORCH_STACK_NAME" >> "$ORCH_ROOT/ran"'
      in       /
      began    <time>, took <s>
      by       orch 0.1.0, process <number>
      kept in  $ROOT/.orch/runs/<run 1>

    succeeded  /a: <s>
    failed     /b: exit status 1 after 2 attempts in <s>
                 attempt 1: exit status 7 after <s>; the next one was due in 50ms
                 attempt 2: exit status 1 after <s>
    failed     /c: took longer than 1s, ended after <s>
                 attempt 1: took longer than 1s, ended after <s>; killed, since it did not end when interrupted; some output was lost: No space left on device (os error 28)
    skipped    /d: runs after /c, which failed
    "#);
    let data = sandbox.orch("runs show --format json").json();
    assert_eq!(data["stacks"][1]["attempts"], 2);
    assert_eq!(
        data["stacks"][1]["history"],
        serde_json::json!([
            {
                "attempt": 1,
                "at": "2026-05-04T09:00:04Z",
                "elapsed_ms": 1500,
                "failure": {"kind": "exited", "status": 7},
                "wait_ms": 50,
                "timeout_ms": null,
                "killed": false,
                "output_lost": null,
            },
            {
                "attempt": 2,
                "at": "2026-05-04T09:00:06Z",
                "elapsed_ms": 1000,
                "failure": {"kind": "exited", "status": 1},
                "wait_ms": null,
                "timeout_ms": null,
                "killed": false,
                "output_lost": null,
            },
        ])
    );
    let interrupted = &data["stacks"][2]["history"][0];
    assert_eq!(interrupted["timeout_ms"], 1000);
    assert_eq!(interrupted["killed"], true);
    assert_eq!(
        interrupted["output_lost"],
        "No space left on device (os error 28)"
    );
}

#[test]
fn what_stopped_a_run_is_shown() {
    let sandbox = killed();
    assert_snapshot!(said(&sandbox, &sandbox.orch("runs show")), @r#"
    run <run 1> was killed: 1 succeeded
      command  sh -c 'echo "$ORCH_STACK_NAME" >> "$ORCH_ROOT/ran"'
      typed    orch run --on-error continue -- sh -c 'echo "$ORCH_STACK_NAME" >> "$ORCH_ROOT/ran"'
      in       /
      began    <time>, last heard from <time>
      by       orch 0.1.0, process <number>
      stopped  <time> by SIGINT: commands were interrupted
      stopped  <time> by SIGINT: commands were terminated
      stopped  <time>: it took longer than 5s
      order    reverse
      kept in  $ROOT/.orch/runs/<run 1>

    succeeded  /d: <s>
    unknown    /c: orch was killed while its command ran
    not run    /b
    not run    /a
    "#);
    let data = sandbox.orch("runs show --format json").json();
    assert_eq!(
        data["stops"],
        serde_json::json!([
            {
                "at": "2026-05-04T09:00:04Z",
                "kind": "signal",
                "signal": 2,
                "reaction": "interrupt",
                "running": ["/c"],
            },
            {
                "at": "2026-05-04T09:00:05Z",
                "kind": "signal",
                "signal": 2,
                "reaction": "terminate",
                "running": ["/c"],
            },
            {
                "at": "2026-05-04T09:00:06Z",
                "kind": "timed-out",
                "timeout_ms": 5000,
                "running": ["/c"],
            },
        ])
    );
}

#[test]
fn they_can_be_resumed() {
    for (sandbox, order) in [(finished(), "b\nc\nd\n"), (killed(), "c\nb\na\n")] {
        let output = sandbox.orch("run -q --resume");
        assert_eq!(output.code(), 0, "{output}");
        assert_eq!(sandbox.read("/ran"), order);
    }
}
