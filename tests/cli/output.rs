//! Which output of commands a run shows.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use crate::support::{Output, Sandbox, ended, wait_until};

fn three_stacks() -> Sandbox {
    Sandbox::layout(
        "
        a
        b
        c",
    )
}

/// Runs a shell script in each stack.
fn run(sandbox: &Sandbox, flags: &str, script: &str) -> Output {
    run_with(sandbox, flags, script, |_| {})
}

fn run_with(
    sandbox: &Sandbox,
    flags: &str,
    script: &str,
    change: impl FnOnce(&mut Command),
) -> Output {
    sandbox.write_program("/script.sh", &format!("#!/bin/sh\n{script}\n"));
    fs::create_dir_all(sandbox.outside().join("tmp")).unwrap();
    sandbox.orch_with(&format!("run {flags} -- ../script.sh"), |command| {
        command.env("TMPDIR", sandbox.outside().join("tmp"));
        change(command);
    })
}

/// For scripts: waits until the log of the stack holds a text.
const LOGGED: &str = r#"logged() {
  until grep -qs "$1" "$ORCH_ROOT/.orch/runs/$ORCH_RUN_ID"/logs/*-"$ORCH_STACK_NAME".log; do :; done
}"#;

const FAIL_IN_B: &str = "echo out of $ORCH_STACK_NAME; test $ORCH_STACK_NAME != b";

#[test]
fn output_of_a_stack_comes_in_one_piece() {
    let sandbox = Sandbox::layout(
        "
        a
        b",
    );
    let script = r#"
echo "$ORCH_STACK_NAME 1"
touch "../$ORCH_STACK_NAME.begun"
until [ -e ../a.begun ] && [ -e ../b.begun ]; do :; done
echo "$ORCH_STACK_NAME 2""#;
    let output = run(&sandbox, "-j 2", script);
    let (a, b) = ("a 1\na 2\n", "b 1\nb 2\n");
    assert!(
        output.stdout == format!("{a}{b}") || output.stdout == format!("{b}{a}"),
        "{output}"
    );
}

#[test]
fn groups_have_titles_and_failures_come_again_at_the_end() {
    let flags = "--output grouped --on-error continue";
    assert_snapshot!(run(&three_stacks(), flags, FAIL_IN_B), @"
    out of a
    out of b
    out of c
    out of b
    [stderr]
    orch: /a: succeeded in [time]
    orch: /b: failed: exit status 1 after [time]
    orch: /c: succeeded in [time]
    orch: /b: failed: exit status 1 after [time]
    orch: failed /b: exit status 1 after [time]; log: .orch/runs/[run]/logs/0002-b.log
    orch: 2 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn output_of_the_last_failure_is_not_repeated() {
    assert_snapshot!(run(&three_stacks(), "--output grouped", FAIL_IN_B), @"
    out of a
    out of b
    [stderr]
    orch: /a: succeeded in [time]
    orch: /b: failed: exit status 1 after [time]
    orch: cancelled /c: the run stopped when /b failed
    orch: failed /b: exit status 1 after [time]; log: .orch/runs/[run]/logs/0002-b.log
    orch: 1 succeeded, 1 failed, 1 cancelled in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn output_of_a_silent_command_is_one_line() {
    assert_snapshot!(three_stacks().orch("run --output grouped true"), @"
    [stderr]
    orch: /a: succeeded in [time]
    orch: /b: succeeded in [time]
    orch: /c: succeeded in [time]
    orch: 3 succeeded in [time]
    ");
}

#[test]
fn output_of_a_long_failure_is_repeated_from_its_end() {
    let script = "test $ORCH_STACK_NAME = a || exit 0\nseq 300\nexit 1";
    let output = run(
        &three_stacks(),
        "--output grouped --on-error continue",
        script,
    );
    let numbers = (1..=300).chain(101..=300);
    let expected: Vec<String> = numbers.map(|number: u32| number.to_string()).collect();
    assert_eq!(output.stdout.lines().collect::<Vec<_>>(), expected);
    assert_snapshot!(output.stderr, @"
    orch: /a: failed: exit status 1 after [time]
    orch: /b: succeeded in [time]
    orch: /c: succeeded in [time]
    orch: /a: failed: exit status 1 after [time]
    orch: 292 bytes before this are in .orch/runs/[run]/logs/0001-a.log, or: orch runs logs [run] /a
    orch: failed /a: exit status 1 after [time]; log: .orch/runs/[run]/logs/0001-a.log
    orch: 2 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    ");
}

#[test]
fn not_all_of_many_failures_come_again() {
    let many = |number| {
        let stacks: Vec<String> = (1..=number).map(|number| format!("s{number}")).collect();
        Sandbox::layout(&stacks.join("\n"))
    };
    let flags = "--output grouped --on-error continue";
    let output = run(&many(23), flags, "echo out; exit 1");
    assert_eq!(output.stdout.lines().count(), 23 + 20);
    let (_, end) = output.stderr.split_once("orch: 3 more").unwrap();
    let (line, end) = end.split_once('\n').unwrap();
    assert_snapshot!(line, @" failures are not shown again; their logs are in .orch/runs/[run]/logs, or: orch runs logs [run] --failed");
    assert_eq!(end.matches("orch: failed /s").count(), 23, "{end}");
    // Neither do all of a few long ones: each is cut, and all together.
    let script = "head -c 100000 /dev/zero | tr '\\0' x; exit 1";
    let output = run(&many(6), flags, script);
    let printed = output.stdout.matches('x').count();
    assert_eq!(printed, 6 * 100_000 + (256 << 10));
    assert!(
        output.stderr.contains("2 more failures are not"),
        "{output}"
    );
}

#[test]
fn errors_shows_failed_stacks_only() {
    let flags = "--output errors --on-error continue";
    assert_snapshot!(run(&three_stacks(), flags, FAIL_IN_B), @"
    out of b
    [stderr]
    orch: /b: failed: exit status 1 after [time]
    orch: failed /b: exit status 1 after [time]; log: .orch/runs/[run]/logs/0002-b.log
    orch: 2 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn output_none_shows_no_output_of_commands() {
    let flags = "--output none --on-error continue";
    assert_snapshot!(run(&three_stacks(), flags, FAIL_IN_B), @"
    [stderr]
    orch: /a: succeeded in [time]
    orch: /b: failed: exit status 1 after [time]
    orch: /c: succeeded in [time]
    orch: failed /b: exit status 1 after [time]; log: .orch/runs/[run]/logs/0002-b.log
    orch: 2 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn prefixed_shows_whole_lines_with_their_stack() {
    let sandbox = Sandbox::layout("a/b");
    let script = "echo one; printf two; echo three >&2; printf four >&2; printf '\\n\\n'";
    sandbox.write_program("/a/script.sh", &format!("#!/bin/sh\n{script}\n"));
    let output = sandbox.orch("run --output prefixed -- ../script.sh");
    assert_eq!(output.stdout, "/a/b | one\n/a/b | two\n/a/b | \n");
    assert_snapshot!(output.stderr, @"
    /a/b | three
    /a/b | four
    orch: /a/b: succeeded in [time]
    orch: 1 succeeded in [time]
    ");
}

#[test]
fn output_keeps_a_character_split_across_reads() {
    let script = format!("{LOGGED}\nprintf 'x\\303'; logged x; printf '\\251\\n'");
    let output = run(&Sandbox::layout("a"), "--output prefixed", &script);
    assert_eq!(output.stdout, "/a | xé\n");
}

#[test]
fn output_prints_an_endless_line_in_pieces() {
    let sandbox = Sandbox::layout("a");
    let script = "head -c 20000000 /dev/zero | tr '\\000' x";
    let output = run(&sandbox, "-q --output prefixed", script);
    let lines: Vec<&str> = output.stdout.lines().collect();
    let text = |line: &&str| line.strip_prefix("/a | ").map_or(0, str::len);
    assert!(lines.iter().all(|line| line.len() < 100_000));
    assert_eq!(lines.iter().map(text).sum::<usize>(), 20_000_000);
}

#[test]
fn quiet_groups_are_the_output_and_nothing_else() {
    let script = "echo out; echo err >&2";
    assert_snapshot!(run(&three_stacks(), "-q -j 1 --output grouped", script), @"
    out
    out
    out
    [stderr]
    err
    err
    err
    ");
    let sandbox = Sandbox::layout("a");
    let mut command = sandbox.command("run -q --output grouped printf x");
    assert_eq!(command.output().unwrap().stdout, b"x");
}

#[test]
fn output_auto_is_live_for_one_command_and_grouped_for_more() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(run(&sandbox, "", "echo out"), @"
    out
    [stderr]
    orch: /a: ../script.sh
    orch: 1 succeeded in [time]
    ");
    assert_snapshot!(run(&sandbox, "-j 2", "echo out"), @"
    out
    [stderr]
    orch: /a: succeeded in [time]
    orch: 1 succeeded in [time]
    ");
}

#[test]
fn live_needs_the_streams_for_one_command() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("run --output live -j 2 touch ran"), @"
    [stderr]
    error: `--output live`: parallel commands cannot share the streams of orch; remove --parallel, or use `--output prefixed`
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("run --output live --pty touch ran"), @"
    [stderr]
    error: `--output live`: commands have the streams of orch, and no terminal of their own; remove --pty, or use `--output grouped`
    [exit status 64]
    ");
    assert!(!sandbox.path("/a/ran").exists());
}

#[test]
fn captured_commands_have_nothing_to_read() {
    let sandbox = Sandbox::layout("a");
    let mut orch = sandbox.command("run -q --output grouped cat");
    let mut orch = orch.stdin(Stdio::piped()).spawn().unwrap();
    // It would wait for this to be closed.
    let stdin = orch.stdin.take();
    assert!(ended(&mut orch).success());
    drop(stdin);
}

#[test]
fn output_keeps_the_order_of_both_streams_in_one_file() {
    let sandbox = Sandbox::layout("a");
    let script =
        format!("{LOGGED}\necho 1; logged 1; echo 2 >&2; logged 2; echo 3; logged 3; echo 4 >&2");
    let both = sandbox.outside().join("both");
    let file = File::create(&both).unwrap();
    let mut command = sandbox.command("run --output grouped -- ../script.sh");
    sandbox.write_program("/script.sh", &format!("#!/bin/sh\n{script}\n"));
    let tmp = sandbox.outside().join("tmp");
    fs::create_dir(&tmp).unwrap();
    command
        .env("TMPDIR", &tmp)
        .stdout(file.try_clone().unwrap())
        .stderr(file);
    assert!(command.status().unwrap().success());
    let text = fs::read_to_string(both).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1..5], ["1", "2", "3", "4"], "{text}");
    assert!(lines[0].starts_with("orch: /a: succeeded in "), "{text}");
    assert_eq!(
        fs::read_dir(tmp).unwrap().count(),
        0,
        "nothing is left behind"
    );
}

#[test]
fn bytes_that_are_no_text_go_out_as_they_are() {
    let sandbox = Sandbox::layout("a");
    let script = "printf '\\000\\377\\033[31m\\200\\n'";
    sandbox.write_program("/script.sh", &format!("#!/bin/sh\n{script}\n"));
    let printed = |variable: &str| {
        let mut command = sandbox.command("run -q --output grouped -- ../script.sh");
        command.env(variable, "1").output().unwrap().stdout
    };
    assert_eq!(printed("X"), b"\x00\xff\x1b[31m\x80\n");
    assert_eq!(printed("NO_COLOR"), b"\x00\xff\x80\n");
}

#[test]
fn output_to_a_closed_pipe_stops_no_run() {
    let sandbox = three_stacks();
    sandbox.write_program("/script.sh", "#!/bin/sh\nseq 100000\ntouch ran\n");
    let orch = crate::support::orch_program().display();
    for how in ["grouped", "prefixed"] {
        let mut shell = Command::new("sh");
        sandbox.isolate(&mut shell);
        let line = format!(
            "('{orch}' run -j 2 --output {how} -- ../script.sh; echo $? > status) | head -n 1 > /dev/null"
        );
        let output = shell.args(["-c", &line]).current_dir(sandbox.path("/"));
        let output = sandbox.output(&output.output().unwrap());
        assert_eq!(sandbox.read("/status"), "0\n", "{output}");
        for stack in ["a", "b", "c"] {
            assert!(sandbox.path(&format!("/{stack}/ran")).exists());
            sandbox.remove(&format!("/{stack}/ran"));
        }
        assert_eq!(output.stderr.lines().count(), 4, "{output}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_to_a_full_disk_gets_one_warning_and_stops_no_run() {
    let sandbox = three_stacks();
    sandbox.write_program("/script.sh", "#!/bin/sh\nseq 1000\n");
    let mut command = sandbox.command("run --output grouped -- ../script.sh");
    let output = command.stdout(File::create("/dev/full").unwrap()).output();
    assert_snapshot!(sandbox.output(&output.unwrap()), @"
    [stderr]
    orch: /a: succeeded in [time]
    orch: cannot write to stdout: No space left on device (os error 28); the run continues
    orch: /b: succeeded in [time]
    orch: /c: succeeded in [time]
    orch: 3 succeeded in [time]
    ");
}

#[test]
fn logs_that_cannot_be_written_stop_no_run() {
    let sandbox = Sandbox::layout("a");
    // The command puts a file where their directory is.
    let script = "touch \"$ORCH_ROOT/.orch/runs/$ORCH_RUN_ID/logs\"; echo out";
    let output = run(&sandbox, "--output prefixed", script);
    assert_eq!(output.stdout, "/a | out\n");
    assert!(
        output.stderr.contains("some of its output was lost"),
        "{output}"
    );
}

#[test]
fn output_held_open_by_a_process_delays_nothing() {
    let sandbox = Sandbox::layout("a");
    for behind in ["sleep 600", "yes"] {
        let script = format!("echo out\n{behind} &\necho $! > ../left\nexit 3");
        let output = run(&sandbox, "--output none", &script);
        let left = sandbox.read("/left").trim().parse().unwrap();
        _ = signal::kill(Pid::from_raw(left), Signal::SIGKILL);
        insta::allow_duplicates! {
            assert_snapshot!(output, @"
            [stderr]
            orch: /a: some of its output was lost: a process that the command left behind still holds it open
            orch: /a: failed: exit status 3 after [time]
            orch: failed /a: exit status 3 after [time]; log: .orch/runs/[run]/logs/0001-a.log
            orch: 0 succeeded, 1 failed in [time]
            orch: to run what is left: orch run --resume [run]
            [exit status 1]
            ");
        }
    }
}

#[test]
fn output_may_be_closed_by_a_running_command() {
    let sandbox = Sandbox::layout("a");
    let script = "echo out; exec > /dev/null 2>&1; touch done";
    let output = run(&sandbox, "--output grouped", script);
    assert_eq!((output.code(), &*output.stdout), (0, "out\n"), "{output}");
    assert!(sandbox.path("/a/done").exists());
}

#[test]
fn output_printed_at_the_end_is_not_lost() {
    // More than a pipe holds, from a process that the command does not wait for.
    let script = "(seq 100000; echo last) &";
    let output = run(&Sandbox::layout("a"), "--output grouped", script);
    assert!(
        output.stdout.ends_with("\nlast\n"),
        "{}",
        output.stdout.len()
    );
}

/// Where nobody reads, the run still goes on, and can be interrupted.
#[test]
fn output_that_is_not_read_does_not_prevent_an_interrupt() {
    let sandbox = Sandbox::layout(
        "
        a
        b
        c",
    );
    let script = r#"
test "$ORCH_STACK_NAME" = a && exec seq 100000
trap 'touch interrupted; exit 1' INT
touch running
while [ -d "$ORCH_ROOT" ]; do sleep 0.01; done"#;
    sandbox.write_program("/script.sh", &format!("#!/bin/sh\n{script}\n"));
    let mut orch = sandbox.command("run -j 2 -- ../script.sh");
    // What ends like this leaves its temporary logs behind.
    orch.env("TMPDIR", sandbox.outside());
    orch.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut orch = orch.spawn().unwrap();
    // That c runs shows that the group of a, which fills the pipe, does not hold up the run.
    for stack in ["b", "c"] {
        let running = sandbox.path(&format!("/{stack}/running"));
        wait_until("it runs", || running.exists());
    }
    let pid = Pid::from_raw(orch.id().cast_signed());
    signal::kill(pid, Signal::SIGINT).unwrap();
    for stack in ["b", "c"] {
        let interrupted = sandbox.path(&format!("/{stack}/interrupted"));
        wait_until("it is interrupted", || interrupted.exists());
    }
    // Once the run is over, nothing but what nobody reads is left, and a signal ends that.
    let orch = std::cell::RefCell::new(&mut orch);
    wait_until("a further interrupt ends it", || {
        _ = signal::kill(pid, Signal::SIGINT);
        orch.borrow_mut().try_wait().unwrap().is_some()
    });
}
