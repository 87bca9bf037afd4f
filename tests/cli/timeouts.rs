//! What takes too long: `--timeout`, `--run-timeout` and `--grace`.
//!
//! Where a script has to have its trap set before the time is over, that is three seconds: a machine
//! that is busy may take two until a script does its first line.

use insta::assert_snapshot;
use nix::sys::signal::Signal;

use crate::support::{Background, Sandbox, at_once, wait_until};

/// Ignores interrupts, as does a process that it starts; notes the process ids.
const STUBBORN: &str = r#"
trap '' INT
sh -c 'echo $$ >> "$ORCH_ROOT/processes"; while [ -d "$ORCH_ROOT" ]; do sleep 0.01; done' &
echo $$ >> "$ORCH_ROOT/processes"
while [ -d "$ORCH_ROOT" ]; do sleep 0.01; done
"#;

/// Returns whether a process that a script has noted is alive.
fn is_alive(process: &str) -> bool {
    let process = process.trim().parse().expect("a process id");
    let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
    let is_zombie = status.is_ok_and(|status| status.contains(") Z "));
    let process = nix::unistd::Pid::from_raw(process);
    !is_zombie && nix::sys::signal::kill(process, None).is_ok()
}

#[test]
fn timeouts_end_slow_commands() {
    at_once(&[
        a_command_that_takes_too_long_is_interrupted_and_has_failed,
        a_command_that_ignores_its_interrupt_is_killed_with_its_children,
        the_grace_period_may_be_nothing,
        each_stack_has_the_time_for_itself,
        what_runs_after_a_stack_that_took_too_long_is_skipped,
        when_the_run_takes_too_long_everything_is_interrupted_and_the_rest_cancelled,
        a_run_that_takes_too_long_kills_what_does_not_end,
        what_would_be_tried_again_is_given_up_when_the_run_takes_too_long,
        a_timeout_after_an_interrupt_does_not_interrupt_again,
    ]);
}

fn a_command_that_takes_too_long_is_interrupted_and_has_failed() {
    let sandbox = Sandbox::layout(
        "
        a
        b",
    );
    let script = r#"
        [ $ORCH_STACK_NAME = a ] || exit 0
        trap 'echo INT >> "$ORCH_ROOT/signals"; exit 0' INT
        await never
    "#;
    let flags = "-q --timeout 3s --on-error continue";
    let output = Background::run(&sandbox, flags, script).end();
    // What it says of itself does not count: half of the work may be done.
    let last: Vec<&str> = output.stderr.lines().rev().take(3).collect();
    assert_snapshot!(last.join("\n"), @"
    orch: to run what is left: orch run --resume [run]
    orch: 1 succeeded, 1 failed in [time]
    orch: failed /a: took longer than 3s, ended after [time]
    ");
    assert_eq!(output.code(), 1);
    assert_eq!(sandbox.read("/signals"), "INT\n", "exactly once");
}

fn a_command_that_ignores_its_interrupt_is_killed_with_its_children() {
    let sandbox = Sandbox::layout("a");
    let run = Background::run(&sandbox, "-q --timeout 3s --grace 100ms", STUBBORN);
    let output = run.end();
    assert_eq!(output.code(), 1, "{output}");
    assert!(
        output.stderr.contains("failed /a: took longer than 3s"),
        "{output}"
    );
    let processes = sandbox.read("/processes");
    assert_eq!(processes.lines().count(), 2, "{output}");
    for process in processes.lines() {
        wait_until("it is gone", || !is_alive(process));
    }
}

fn the_grace_period_may_be_nothing() {
    let sandbox = Sandbox::layout("a");
    let output = Background::run(&sandbox, "-q --timeout 100ms --grace 0s", STUBBORN).end();
    assert_eq!(output.code(), 1, "{output}");
}

fn each_stack_has_the_time_for_itself() {
    let sandbox = Sandbox::layout(
        "
        a
        b
        c",
    );
    let script = "[ $ORCH_STACK_NAME != b ] || exec sleep 600";
    let flags = "-q -j 2 --timeout 3s --on-error continue";
    let output = Background::run(&sandbox, flags, script).end();
    assert_eq!(output.code(), 1);
    assert!(
        output.stderr.contains("failed /b: took longer than 3s"),
        "{output}"
    );
    assert!(output.stderr.contains("2 succeeded, 1 failed"), "{output}");
}

fn what_runs_after_a_stack_that_took_too_long_is_skipped() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a
        c",
    );
    let script = "[ $ORCH_STACK_NAME != a ] || exec sleep 600";
    let flags = "-q -j 2 --timeout 3s --on-error skip-dependents";
    let output = Background::run(&sandbox, flags, script).end();
    assert!(
        output
            .stderr
            .contains("skipped /b: runs after /a, which failed"),
        "{output}"
    );
    assert!(
        output.stderr.contains("1 succeeded, 1 failed, 1 skipped"),
        "{output}"
    );
}

fn when_the_run_takes_too_long_everything_is_interrupted_and_the_rest_cancelled() {
    let sandbox = Sandbox::layout(
        "
        a
        b
        c
        d after /a",
    );
    let script = r#"
        trap 'echo $ORCH_STACK_NAME >> "$ORCH_ROOT/interrupted"; exit 0' INT
        await never
    "#;
    let flags = "-q -j 2 --run-timeout 3s --on-error continue";
    let output = Background::run(&sandbox, flags, script).end();
    let mut last: Vec<&str> = output.stderr.lines().rev().take(6).collect();
    last.sort_unstable();
    assert_snapshot!(last.join("\n"), @"
    orch: 0 succeeded, 2 failed, 2 cancelled in [time]
    orch: cancelled /c: the run took longer than 3s
    orch: cancelled /d: the run took longer than 3s
    orch: failed /a: the run took longer than 3s, ended after [time]
    orch: failed /b: the run took longer than 3s, ended after [time]
    orch: to run what is left: orch run --resume [run]
    ");
    assert_eq!(output.code(), 1);
    let interrupted = sandbox.read("/interrupted");
    let mut interrupted: Vec<&str> = interrupted.lines().collect();
    interrupted.sort_unstable();
    assert_eq!(interrupted, ["a", "b"], "each once");
}

fn a_run_that_takes_too_long_kills_what_does_not_end() {
    let sandbox = Sandbox::layout(
        "
        a
        b",
    );
    let flags = "-q -j 2 --run-timeout 3s --grace 100ms";
    let output = Background::run(&sandbox, flags, STUBBORN).end();
    assert_eq!(output.code(), 1, "{output}");
    for process in sandbox.read("/processes").lines() {
        wait_until("it is gone", || !is_alive(process));
    }
}

fn what_would_be_tried_again_is_given_up_when_the_run_takes_too_long() {
    let sandbox = Sandbox::layout("a");
    let script = "echo x >> \"$ORCH_ROOT/attempts\"; exit 1";
    let flags = "-q --retries 5 --retry-on-exit 1 --retry-backoff 1h --run-timeout 1500ms";
    let output = Background::run(&sandbox, flags, script).end();
    assert_eq!(output.code(), 1, "{output}");
    assert_eq!(sandbox.read("/attempts"), "x\n");
    assert!(
        output.stderr.contains("failed /a: exit status 1"),
        "{output}"
    );
}

fn a_timeout_after_an_interrupt_does_not_interrupt_again() {
    let sandbox = Sandbox::layout("a");
    let script = r#"
        trap 'echo INT >> "$ORCH_ROOT/signals"' INT
        touch "$ORCH_ROOT/ready"
        while [ -d "$ORCH_ROOT" ]; do sleep 0.01; done
    "#;
    let run = Background::run(&sandbox, "-q --timeout 3s --grace 100ms", script);
    wait_until("it is ready", || sandbox.path("/ready").exists());
    run.signal(Signal::SIGINT);
    let output = run.end();
    assert_eq!(output.code(), 130, "{output}");
    assert_eq!(sandbox.read("/signals"), "INT\n", "exactly once");
}
