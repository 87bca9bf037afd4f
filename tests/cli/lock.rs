//! One run at a time in a project.

use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::journal::on_a_full_disk;
use crate::support::{Background, Sandbox, is_free, run_ids, said, wait_until};

/// Says that it has begun, and ends once `/go` exists.
const UNTIL_GO: &str = r#"
echo "$ORCH_STACK_NAME" >> "$ORCH_ROOT/started"
while [ -d "$ORCH_ROOT" ] && [ ! -e "$ORCH_ROOT/go" ]; do sleep 0.01; done
echo "$ORCH_STACK_NAME" >> "$ORCH_ROOT/ended"
"#;

fn two_stacks() -> Sandbox {
    Sandbox::layout(
        "
        a
        b",
    )
}

#[test]
fn lock_refuses_a_second_run() {
    let sandbox = two_stacks();
    let run = Background::run(&sandbox, "", UNTIL_GO);
    run.wait_for("/started", &["a"]);
    let second = sandbox.orch("run -- echo second");
    assert_snapshot!(said(&sandbox, &second), @"
    [stderr]
    error: another run is in progress in this project: <run 1> (`$ROOT/script.sh`, begun <time>), process <number>
      = help: wait until it has ended, or run at the same time with `--allow-concurrent`
    [exit status 4]
    ");
    assert_eq!(run_ids(&sandbox).len(), 1, "it left nothing");
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 0);
    assert_eq!(sandbox.orch("run -q true").code(), 0);
}

#[test]
fn lock_can_be_ignored_by_allow_concurrent() {
    let sandbox = two_stacks();
    let run = Background::run(&sandbox, "", UNTIL_GO);
    run.wait_for("/started", &["a"]);
    let second = sandbox.orch("run -q --allow-concurrent -- echo second");
    assert_snapshot!(second, @"
    second
    second
    ");
    // That one has not given away the lock of the first.
    assert_eq!(sandbox.orch("run true").code(), 4);
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 0);
}

#[test]
fn lock_does_not_affect_commands_that_only_read() {
    let sandbox = two_stacks();
    let run = Background::run(&sandbox, "", UNTIL_GO);
    run.wait_for("/started", &["a"]);
    for command in [
        "list",
        "run --dry-run true",
        "run --tags none true",
        "runs show",
    ] {
        assert_eq!(sandbox.orch(command).code(), 0, "{command}");
    }
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 0);
}

#[test]
fn lock_explains_why_a_command_cannot_start_a_run() {
    let sandbox = Sandbox::layout("a");
    let orch = crate::support::orch_program().display();
    sandbox.write_program(
        "/inner.sh",
        &format!("#!/bin/sh\nexec '{orch}' run \"$@\" true\n"),
    );
    let output = sandbox.orch("run -- ../inner.sh");
    assert_snapshot!(said(&sandbox, &output), @"
    [stderr]
    orch: /a: ../inner.sh
    error: another run is in progress in this project: <run 1> (`../inner.sh`, begun <time>), process <number>; this orch was started by one of its commands
      = help: if that is intended, add `--allow-concurrent`
    orch: failed /a: exit status 4 after [time]
    orch: 0 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
    let output = sandbox.orch("run -q -- ../inner.sh -q --allow-concurrent");
    assert_eq!(output.code(), 0, "{output}");
}

#[test]
fn lock_belongs_to_one_project() {
    let sandbox = two_stacks();
    sandbox.write("/b/root.orch.hcl", "orch { root = true }\n");
    let run = Background::run(&sandbox, "", UNTIL_GO);
    run.wait_for("/started", &["a"]);
    assert_eq!(sandbox.orch("-C b run -q true").code(), 0);
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 0);
}

#[test]
fn lock_is_held_by_the_commands_of_a_killed_orch() {
    let sandbox = two_stacks();
    let run = Background::run(&sandbox, "", UNTIL_GO);
    run.wait_for("/started", &["a"]);
    run.kill();
    let second = sandbox.orch("run true");
    assert_snapshot!(said(&sandbox, &second), @"
    [stderr]
    error: orch was killed during run <run 1> (`$ROOT/script.sh`, begun <time>), but its command in /a, or a process that it started, is still running
      = help: wait until it has ended, then run `orch run --resume <run 1>`; or run at the same time with `--allow-concurrent`
    [exit status 4]
    ");
    assert_eq!(sandbox.orch("run --resume").code(), 4);
    sandbox.write("/go", "");
    wait_until("the command has ended, and with it the lock", || {
        sandbox.read("/ended") == "a\n" && sandbox.orch("run -q true").code() == 0
    });
}

#[test]
fn lock_of_a_dead_run_is_taken_over() {
    let sandbox = two_stacks();
    let run = Background::run(&sandbox, "", UNTIL_GO);
    run.wait_for("/started", &["a"]);
    run.kill();
    sandbox.write("/go", "");
    wait_until("nothing holds the lock", || is_free(&sandbox));
    let second = sandbox.orch("run -- echo second");
    assert_snapshot!(said(&sandbox, &second), @"
    second
    second
    [stderr]
    note: orch was killed during run <run 1> (`$ROOT/script.sh`, begun <time>); `orch run --resume <run 1>` resumes it
    orch: /a: echo second
    orch: /b: echo second
    orch: 2 succeeded in [time]
    ");
    // That is said once.
    let third = sandbox.orch("run -q true");
    assert_snapshot!(third, @"");
}

#[test]
fn lock_is_not_held_by_daemons_of_a_command() {
    let sandbox = two_stacks();
    let script = "(while [ -d \"$ORCH_ROOT\" ] && [ ! -e \"$ORCH_ROOT/go\" ]; do sleep 0.01; done; echo >> \"$ORCH_ROOT/over\") > /dev/null 2>&1 &";
    let run = Background::run(&sandbox, "", script);
    assert_eq!(run.end().code(), 0);
    let second = sandbox.orch("run -q -- echo second");
    assert_snapshot!(second, @"
    second
    second
    ");
    assert_eq!(sandbox.read("/over"), "", "they are still there");
    sandbox.write("/go", "");
}

#[test]
fn lock_with_invalid_content_is_taken_over() {
    for text in ["", "nonsense", "{}", "{\"run\": 1}", "\u{0}\u{0}"] {
        let sandbox = Sandbox::layout("a");
        sandbox.write("/.orch/lock", text);
        let output = sandbox.orch("run -q -- echo done");
        assert_eq!(output.to_string(), "done\n", "{text}");
    }
}

#[test]
fn lock_content_is_escaped_for_the_terminal() {
    let sandbox = two_stacks();
    let run = Background::run(&sandbox, "", UNTIL_GO);
    run.wait_for("/started", &["a"]);
    let lock = sandbox.read("/.orch/lock");
    let mut holder: serde_json::Value = serde_json::from_str(&lock).unwrap();
    for name in ["run", "host"] {
        holder[name] = "\u{1b}[31mx\ny".into();
    }
    holder["command"] = serde_json::json!(["\u{1b}[2J"]);
    sandbox.write("/.orch/lock", holder.to_string());
    let second = sandbox.orch("run true");
    assert_eq!(second.code(), 4);
    assert!(!second.stderr.contains('\u{1b}'), "{second}");
    assert_eq!(second.stderr.lines().count(), 2, "{second}");
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 0);
}

/// On a full disk the lock cannot say whose it is.
#[test]
fn lock_without_a_description_is_still_held() {
    let sandbox = two_stacks();
    assert_eq!(sandbox.orch("run -q true").code(), 0);
    let script = "#!/bin/sh\nmkdir \"$ORCH_ROOT/started\"\nwhile [ -d \"$ORCH_ROOT\" ] && [ ! -e \"$ORCH_ROOT/go\" ]; do sleep 0.01; done\n";
    sandbox.write_program("/script.sh", script);
    let orch = sandbox.command("run -q --match a -- ../script.sh");
    let mut command = on_a_full_disk(&sandbox, &orch);
    command.process_group(0);
    let run = Background::spawn(&sandbox, command);
    wait_until("the command runs", || sandbox.path("/started").exists());
    let second = sandbox.orch("run -- echo second");
    assert_snapshot!(second, @"
    [stderr]
    error: another run is in progress in this project; its id is unknown
      = help: wait until it has ended, or run at the same time with `--allow-concurrent`
    [exit status 4]
    ");
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 0);
    assert_eq!(sandbox.orch("run -q true").code(), 0);
}

#[test]
fn lock_refuses_a_run_beside_one_that_ignored_it() {
    let sandbox = two_stacks();
    let first = Background::run(&sandbox, "", UNTIL_GO);
    first.wait_for("/started", &["a"]);
    let script = "mkdir -p \"$ORCH_ROOT/second\"; while [ -d \"$ORCH_ROOT\" ] && [ ! -e \"$ORCH_ROOT/go2\" ]; do sleep 0.01; done";
    let mut command = sandbox.command("run --allow-concurrent -- sh -c");
    command.arg(script).process_group(0).stdin(Stdio::null());
    let second = Background::spawn(&sandbox, command);
    wait_until("the second one runs", || sandbox.path("/second").exists());
    sandbox.write("/go", "");
    assert_eq!(first.end().code(), 0);
    let third = sandbox.orch("run -- echo third");
    assert_eq!(third.code(), 4, "{third}");
    let second_id = run_ids(&sandbox).remove(1);
    let message = format!("another run is in progress in this project: {second_id}");
    assert!(third.stderr.contains(&message), "{third}");
    let third = sandbox.orch("run -q --allow-concurrent -- true");
    assert_eq!(third.code(), 0, "{third}");
    sandbox.write("/go2", "");
    assert_eq!(second.end().code(), 0);
    assert_eq!(sandbox.orch("run -q true").code(), 0);
}
