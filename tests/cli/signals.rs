//! What interrupts a run, and how it ends then.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use crate::support::{Background, Sandbox, at_once, in_shell, wait_until};

/// Notes each signal in `/signals` and ends with status 0 once `/go` exists.
const NOTE_SIGNALS: &str = r#"
trap 'echo INT >> "$ORCH_ROOT/signals"' INT
trap 'echo TERM >> "$ORCH_ROOT/signals"' TERM
trap 'echo HUP >> "$ORCH_ROOT/signals"' HUP
trap 'echo QUIT >> "$ORCH_ROOT/signals"' QUIT
echo "$ORCH_STACK_NAME" >> "$ORCH_ROOT/started"
while [ -d "$ORCH_ROOT" ] && [ ! -e "$ORCH_ROOT/go" ]; do sleep 0.01; done
true # the signal may have ended the last `sleep`, which would be the status of the loop
"#;

fn three_stacks() -> Sandbox {
    Sandbox::layout(
        "
        a
        b
        c after /a",
    )
}

#[test]
fn interrupt_of_orch_alone_is_passed_on_once() {
    let sandbox = three_stacks();
    let run = Background::run(&sandbox, "", NOTE_SIGNALS);
    run.wait_for("/started", &["a"]);
    run.signal(Signal::SIGINT);
    run.wait_for("/signals", &["INT"]);
    sandbox.write("/go", "");
    // Even though the command itself exits with 0, nobody knows whether it has done its work.
    assert_snapshot!(run.end(), @"
    [stderr]
    orch: /a: $ROOT/script.sh
    orch: SIGINT: nothing new starts; waiting for /a to end (again: terminate it)
    orch: cancelled /b: the run was interrupted by SIGINT
    orch: cancelled /c: the run was interrupted by SIGINT
    orch: failed /a: interrupted by SIGINT after [time]
    orch: 0 succeeded, 1 failed, 2 cancelled in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 130]
    ");
    assert_eq!(sandbox.read("/signals"), "INT\n", "exactly once");
    assert_eq!(sandbox.read("/started"), "a\n", "nothing new starts");
}

#[test]
fn signals_stop_new_commands_despite_on_error() {
    let sandbox = three_stacks();
    let run = Background::run(&sandbox, "--on-error continue", NOTE_SIGNALS);
    run.wait_for("/started", &["a"]);
    run.signal(Signal::SIGINT);
    run.wait_for("/signals", &["INT"]);
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 130);
    assert_eq!(sandbox.read("/started"), "a\n");
}

#[test]
fn interrupt_that_kills_a_command_is_a_failure() {
    let sandbox = three_stacks();
    let script = "echo x >> \"$ORCH_ROOT/started\"\nexec sleep 600";
    let run = Background::run(&sandbox, "", script);
    run.wait_for("/started", &["x"]);
    run.signal(Signal::SIGINT);
    assert_snapshot!(run.end(), @"
    [stderr]
    orch: /a: $ROOT/script.sh
    orch: SIGINT: nothing new starts; waiting for /a to end (again: terminate it)
    orch: cancelled /b: the run was interrupted by SIGINT
    orch: cancelled /c: the run was interrupted by SIGINT
    orch: failed /a: ended by SIGINT after [time]
    orch: 0 succeeded, 1 failed, 2 cancelled in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 130]
    ");
}

#[test]
fn interrupt_twice_terminates_the_command() {
    let sandbox = three_stacks();
    let run = Background::run(&sandbox, "", NOTE_SIGNALS);
    run.wait_for("/started", &["a"]);
    run.signal(Signal::SIGINT);
    run.wait_for("/signals", &["INT"]);
    run.signal(Signal::SIGINT);
    run.wait_for("/signals", &["INT", "TERM"]);
    sandbox.write("/go", "");
    assert_snapshot!(run.end(), @"
    [stderr]
    orch: /a: $ROOT/script.sh
    orch: SIGINT: nothing new starts; waiting for /a to end (again: terminate it)
    orch: SIGINT: terminating /a (again: kill it)
    orch: cancelled /b: the run was interrupted by SIGINT
    orch: cancelled /c: the run was interrupted by SIGINT
    orch: failed /a: interrupted by SIGINT after [time]
    orch: 0 succeeded, 1 failed, 2 cancelled in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 130]
    ");
}

#[test]
fn interrupt_three_times_kills_the_command() {
    let sandbox = three_stacks();
    let run = Background::run(&sandbox, "", NOTE_SIGNALS);
    run.wait_for("/started", &["a"]);
    run.signal(Signal::SIGINT);
    run.wait_for("/signals", &["INT"]);
    run.signal(Signal::SIGINT);
    run.wait_for("/signals", &["INT", "TERM"]);
    run.signal(Signal::SIGINT);
    assert_snapshot!(run.end(), @"
    [stderr]
    orch: /a: $ROOT/script.sh
    orch: SIGINT: nothing new starts; waiting for /a to end (again: terminate it)
    orch: SIGINT: terminating /a (again: kill it)
    orch: SIGINT: killing /a
    orch: cancelled /b: the run was interrupted by SIGINT
    orch: cancelled /c: the run was interrupted by SIGINT
    orch: failed /a: ended by SIGKILL after [time]
    orch: 0 succeeded, 1 failed, 2 cancelled in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 130]
    ");
}

#[test]
fn terminating_orch_ends_the_run_with_the_status_of_the_signal() {
    // A hang-up or a quit would end terraform at once, with its lock held.
    for (signal, passed_on, status) in [
        (Signal::SIGTERM, "TERM", 143),
        (Signal::SIGHUP, "INT", 129),
        (Signal::SIGQUIT, "INT", 131),
    ] {
        let sandbox = three_stacks();
        let run = Background::run(&sandbox, "", NOTE_SIGNALS);
        run.wait_for("/started", &["a"]);
        run.signal(signal);
        run.wait_for("/signals", &[passed_on]);
        sandbox.write("/go", "");
        let output = run.end();
        assert_eq!(output.code(), status);
        assert_eq!(sandbox.read("/signals"), format!("{passed_on}\n"));
        assert!(
            output
                .stderr
                .contains(&format!("the run was interrupted by {signal}")),
            "{output}"
        );
    }
}

#[test]
fn signal_that_comes_first_decides_the_exit_status() {
    let sandbox = three_stacks();
    let run = Background::run(&sandbox, "", NOTE_SIGNALS);
    run.wait_for("/started", &["a"]);
    run.signal(Signal::SIGINT);
    run.wait_for("/signals", &["INT"]);
    run.signal(Signal::SIGTERM);
    run.wait_for("/signals", &["INT", "TERM"]);
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 130);
}

#[test]
fn quiet_still_says_what_an_interrupt_did() {
    let sandbox = three_stacks();
    let run = Background::run(&sandbox, "--quiet", NOTE_SIGNALS);
    run.wait_for("/started", &["a"]);
    run.signal(Signal::SIGINT);
    run.wait_until_said("SIGINT: nothing new starts");
    sandbox.write("/go", "");
    let output = run.end();
    assert!(output.stderr.contains("1 failed, 2 cancelled"), "{output}");
}

#[test]
fn run_does_not_wait_for_a_process_that_outlives_its_command() {
    let sandbox = Sandbox::layout("a");
    let script = "(while [ -d \"$ORCH_ROOT\" ] && [ ! -e \"$ORCH_ROOT/go\" ]; do sleep 0.01; done) > /dev/null 2>&1 &";
    let run = Background::run(&sandbox, "", script);
    assert_eq!(run.end().code(), 0);
    sandbox.write("/go", "");
}

/// A terminal signals orch and the command alike, so orch must not do it again: terraform loses its
/// state lock on the second interrupt.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_of_the_terminal_reaches_the_command_once() {
    let sandbox = three_stacks();
    sandbox.write_program("/script.sh", &format!("#!/bin/sh\n{NOTE_SIGNALS}\n"));
    let orch = crate::support::orch_program().display();
    let script = sandbox.path("/script.sh");
    let Some(mut script) = sandbox.in_terminal(&format!("'{orch}' run '{}'", script.display()))
    else {
        return;
    };
    script.stdin(Stdio::piped());
    let mut run = Background::spawn(&sandbox, script);
    run.wait_for("/started", &["a"]);
    run.orch.stdin.as_ref().unwrap().write_all(b"\x03").unwrap();
    run.wait_for("/signals", &["INT"]);
    wait_until("orch has seen it too", || {
        String::from_utf8_lossy(&run.log("out")).contains("nothing new starts")
    });
    sandbox.write("/go", "");
    let stdin = run.orch.stdin.take();
    let output = run.end();
    drop(stdin);
    assert_eq!(output.code(), 130, "{output}");
    assert_eq!(sandbox.read("/signals"), "INT\n", "exactly once");
}

#[test]
fn signal_to_the_whole_group_reaches_the_command_once() {
    let sandbox = three_stacks();
    let run = Background::run(&sandbox, "", NOTE_SIGNALS);
    run.wait_for("/started", &["a"]);
    // What `timeout` and many CI systems do: the process, and then its group once more.
    run.signal(Signal::SIGTERM);
    signal::killpg(run.pid(), Signal::SIGTERM).unwrap();
    run.wait_for("/signals", &["TERM"]);
    sandbox.write("/go", "");
    let output = run.end();
    assert_eq!(sandbox.read("/signals"), "TERM\n", "{output}");
    assert_eq!(output.code(), 143, "{output}");
}

#[test]
fn hang_up_that_was_ignored_at_the_start_is_still_ignored() {
    let sandbox = Sandbox::layout("a");
    let orch = sandbox.command("run --quiet --");
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(orch.get_program());
    command
        .args(orch.get_args())
        .current_dir(orch.get_current_dir().unwrap());
    command.args(["sh", "-c", "kill -HUP $PPID $$; echo alive"]);
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "alive\n");
    assert!(output.status.success());
}

#[test]
fn run_continues_when_a_file_reaches_its_size_limit() {
    let sandbox = Sandbox::layout(
        "
        a
        b",
    );
    let script = "i=0; while [ $i -lt 4000 ]; do echo 0123456789; i=$((i + 1)); done";
    let mut command = in_shell(&sandbox, "ulimit -f 32", "--output grouped", script);
    let output = sandbox.output(&command.output().unwrap());
    assert_eq!(output.code(), 0, "{output}");
    assert!(output.stderr.contains("2 succeeded"), "{output}");
}

/// As terraform does: gives up its lock on one interrupt, for which it needs three seconds, and loses
/// it on two.
const TERRAFORM: &str = r#"
state="$ORCH_ROOT/state-$ORCH_STACK_NAME"
signals=0
trap 'signals=$((signals + 1))' INT TERM
echo locked > "$state"
while [ $signals = 0 ] && [ -d "$ORCH_ROOT" ]; do sleep 0.02; done
end=$(($(date +%s) + 3))
while [ $(date +%s) -lt $end ]; do
    [ $signals = 1 ] || { echo 'lock lost' > "$state"; exit 1; }
    sleep 0.02
done
[ $signals = 1 ] || { echo 'lock lost' > "$state"; exit 1; }
echo unlocked > "$state"
exit 1
"#;

fn wait_for_locks(sandbox: &Sandbox, names: &[&str]) {
    for name in names {
        wait_until("the state is locked", || {
            sandbox.read(&format!("/state-{name}")) == "locked\n"
        });
    }
}

#[test]
fn interrupt_leaves_a_command_time_to_unlock() {
    at_once(&[
        || signal_lets_every_terraform_unlock(Signal::SIGINT, 130),
        || signal_lets_every_terraform_unlock(Signal::SIGTERM, 143),
        signal_to_the_whole_group_lets_every_terraform_unlock,
        timeout_lets_terraform_unlock,
    ]);
}

fn signal_lets_every_terraform_unlock(signal: Signal, status: i32) {
    let sandbox = three_stacks();
    let run = Background::run(&sandbox, "-j 2", TERRAFORM);
    wait_for_locks(&sandbox, &["a", "b"]);
    run.signal(signal);
    let output = run.end();
    assert_eq!(sandbox.read("/state-a"), "unlocked\n", "{output}");
    assert_eq!(sandbox.read("/state-b"), "unlocked\n", "{output}");
    assert!(!sandbox.path("/state-c").exists(), "nothing new starts");
    assert_eq!(output.code(), status, "{output}");
}

fn signal_to_the_whole_group_lets_every_terraform_unlock() {
    let sandbox = three_stacks();
    let run = Background::run(&sandbox, "-j 2", TERRAFORM);
    wait_for_locks(&sandbox, &["a", "b"]);
    signal::killpg(run.pid(), Signal::SIGINT).unwrap();
    let output = run.end();
    assert_eq!(sandbox.read("/state-a"), "unlocked\n", "{output}");
    assert_eq!(sandbox.read("/state-b"), "unlocked\n", "{output}");
    assert_eq!(output.code(), 130, "{output}");
}

fn timeout_lets_terraform_unlock() {
    let sandbox = Sandbox::layout("a");
    // Its trap has to be set by then, on a machine that is busy, too.
    let output = Background::run(&sandbox, "--timeout 3s", TERRAFORM).end();
    assert_eq!(sandbox.read("/state-a"), "unlocked\n", "{output}");
    assert_eq!(output.code(), 1, "{output}");
}

#[test]
fn signal_that_follows_reaches_every_command() {
    let sandbox = three_stacks();
    let script = r#"
        note() { echo $1 >> "$ORCH_ROOT/signals-$ORCH_STACK_NAME"; }
        trap 'note INT' INT
        trap 'note TERM' TERM
        # Its own interrupts do not count: the command's are looked at.
        sh -c 'echo $$ >> "$ORCH_ROOT/children"; trap "" INT TERM; while [ -d "$ORCH_ROOT" ]; do sleep 0.01; done' &
        echo $ORCH_STACK_NAME >> "$ORCH_ROOT/started"
        while [ -d "$ORCH_ROOT" ]; do sleep 0.01; done
    "#;
    let run = Background::run(&sandbox, "-j 2", script);
    wait_until("two have started", || {
        sandbox.read("/started").lines().count() == 2
            && sandbox.read("/children").lines().count() == 2
    });
    for noted in [&["INT"][..], &["INT", "TERM"]] {
        run.signal(Signal::SIGINT);
        run.wait_for("/signals-a", noted);
        run.wait_for("/signals-b", noted);
    }
    run.signal(Signal::SIGINT);
    let output = run.end();
    assert_eq!(output.code(), 130, "{output}");
    assert!(output.stderr.contains("2 failed, 1 cancelled"), "{output}");
    assert_eq!(sandbox.read("/signals-a"), "INT\nTERM\n");
    for child in sandbox.read("/children").lines() {
        let child = Pid::from_raw(child.parse().unwrap());
        wait_until("its child is killed too", || {
            signal::kill(child, None).is_err() || is_zombie(child)
        });
    }
}

/// Returns whether a process has ended and nobody has asked how.
fn is_zombie(process: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
    status.is_ok_and(|status| status.contains(") Z "))
}

#[test]
fn interrupt_reaches_the_children_of_a_command() {
    let sandbox = Sandbox::layout("a");
    // As a wrapper does: the shell waits, and what it started is to be interrupted.
    let script = r#"
        sh -c 'trap "echo INT >> \"$ORCH_ROOT/signals\"; exit 0" INT; touch "$ORCH_ROOT/ready"; while [ -d "$ORCH_ROOT" ]; do sleep 0.01; done'
        exit 0
    "#;
    let run = Background::run(&sandbox, "-j 2", script);
    wait_until("it is ready", || sandbox.path("/ready").exists());
    run.signal(Signal::SIGINT);
    let output = run.end();
    assert_eq!(sandbox.read("/signals"), "INT\n", "{output}");
    assert_eq!(output.code(), 130, "{output}");
}

/// Returns what dies at once of an interrupt, and leaves behind what needs a while to unlock, and then
/// says so; as `sh -c 'terraform apply & wait'` does.
#[cfg(target_os = "linux")]
fn wrapper(sandbox: &Sandbox, unlock: &str) -> String {
    let script = format!(
        r#"#!/bin/sh
        trap '{unlock}' INT
        echo $$ > "$ORCH_ROOT/process"
        echo locked > "$ORCH_ROOT/state-$ORCH_STACK_NAME"
        while [ -d "$ORCH_ROOT" ]; do sleep 0.01; done
        "#
    );
    sandbox.write_program("/unlocks.sh", &script);
    // A shell has what it starts in the background ignore interrupts; terraform does not care, but
    // another shell would.
    r#"
        trap 'exit 1' INT
        env --default-signal=INT "$ORCH_ROOT/unlocks.sh" &
        while [ -d "$ORCH_ROOT" ]; do sleep 0.01; done
    "#
    .to_owned()
}

#[cfg(target_os = "linux")]
const UNLOCK: &str =
    r#"sleep 1.5; echo unlocking; echo unlocked > "$ORCH_ROOT/state-$ORCH_STACK_NAME"; exit 0"#;

#[cfg(target_os = "linux")]
#[test]
fn interrupt_waits_for_the_children_of_a_wrapper() {
    at_once(&[
        || signal_lets_the_children_of_a_wrapper_unlock(""),
        || signal_lets_the_children_of_a_wrapper_unlock("-j 2"),
        timeout_lets_the_children_of_a_wrapper_unlock,
        timeout_kills_the_children_of_a_wrapper_that_do_not_end,
        further_signals_reach_what_a_wrapper_leaves_behind,
    ]);
}

#[cfg(target_os = "linux")]
fn signal_lets_the_children_of_a_wrapper_unlock(flags: &str) {
    let sandbox = Sandbox::layout("a");
    let script = wrapper(&sandbox, UNLOCK);
    let run = Background::run(&sandbox, flags, &script);
    wait_for_locks(&sandbox, &["a"]);
    run.signal(Signal::SIGINT);
    let output = run.end();
    assert_eq!(sandbox.read("/state-a"), "unlocked\n", "{output}");
    assert!(output.stdout.contains("unlocking"), "{output}");
    let said = output.stderr.replace("/a: failed", "failed /a");
    assert!(said.contains("failed /a: exit status 1"), "{output}");
    assert_eq!(output.code(), 130, "{output}");
}

#[cfg(target_os = "linux")]
fn timeout_lets_the_children_of_a_wrapper_unlock() {
    let sandbox = Sandbox::layout("a");
    let script = wrapper(&sandbox, UNLOCK);
    // Long enough for it to be ready, on a machine that is busy, too.
    let output = Background::run(&sandbox, "-j 2 --timeout 3s", &script).end();
    assert_eq!(sandbox.read("/state-a"), "unlocked\n", "{output}");
    assert!(output.stdout.contains("unlocking"), "{output}");
    assert_eq!(output.code(), 1, "{output}");
}

#[cfg(target_os = "linux")]
fn timeout_kills_the_children_of_a_wrapper_that_do_not_end() {
    let sandbox = Sandbox::layout("a");
    let script = wrapper(&sandbox, ":");
    let flags = "-j 2 --timeout 3s --grace 2s";
    let output = Background::run(&sandbox, flags, &script).end();
    assert_eq!(output.code(), 1, "{output}");
    assert!(!is_alive(&sandbox.read("/process")), "{output}");
}

#[cfg(target_os = "linux")]
fn further_signals_reach_what_a_wrapper_leaves_behind() {
    let sandbox = Sandbox::layout("a");
    // Later than output is waited for that a process holds open which is left behind.
    let note = r#"sleep 1.5; echo INT > "$ORCH_ROOT/noted""#;
    let script = wrapper(&sandbox, note);
    let run = Background::run(&sandbox, "-j 2", &script);
    wait_for_locks(&sandbox, &["a"]);
    run.signal(Signal::SIGINT);
    run.wait_for("/noted", &["INT"]);
    run.signal(Signal::SIGINT);
    let output = run.end();
    assert_eq!(output.code(), 130, "{output}");
    assert!(!is_alive(&sandbox.read("/process")), "{output}");
}

/// Returns whether a process that a script has noted is alive.
#[cfg(target_os = "linux")]
fn is_alive(process: &str) -> bool {
    let process = Pid::from_raw(process.trim().parse().expect("a process id"));
    !is_zombie(process) && signal::kill(process, None).is_ok()
}

/// Returns the end of a pipe that nobody reads and that nothing more goes into, and the other end.
#[cfg(target_os = "linux")]
fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    use rustix::fs::{OFlags, fcntl_setfl};
    let (reader, mut writer) = std::io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    (reader, writer)
}

#[cfg(target_os = "linux")]
#[test]
fn interrupts_end_orch_where_it_is_stuck_in_writing() {
    let sandbox = Sandbox::layout("a");
    let (_reader, writer) = full_pipe();
    let mut command = sandbox.command("run --output live -- sleep 600");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(writer);
    let orch = command.spawn().unwrap();
    drop(command);
    // What it says comes right after what it has recorded.
    wait_until("it is stuck", || {
        let runs = std::fs::read_dir(sandbox.path("/.orch/runs"));
        runs.is_ok_and(|mut runs| {
            runs.any(|run| {
                let journal = run.unwrap().path().join("journal.jsonl");
                std::fs::read_to_string(journal).is_ok_and(|text| text.contains("\"started\""))
            })
        })
    });
    let status = interrupt_until_the_end(orch);
    assert_eq!(status.signal(), Some(2));
}

/// Interrupts `orch` time and again, as somebody who loses patience does.
#[cfg(target_os = "linux")]
fn interrupt_until_the_end(mut orch: Child) -> ExitStatus {
    let pid = Pid::from_raw(orch.id().cast_signed());
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not end");
        signal::kill(pid, Signal::SIGINT).unwrap();
        let sent = Instant::now();
        while sent.elapsed() < Duration::from_millis(200) {
            if let Some(status) = orch.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn interrupt_reaches_a_stopped_command() {
    let sandbox = Sandbox::layout("a");
    let script = "echo $$ > \"$ORCH_ROOT/process\"; exec sleep 600";
    let run = Background::run(&sandbox, "", script);
    wait_until("it is ready", || sandbox.read("/process").ends_with('\n'));
    let process = Pid::from_raw(sandbox.read("/process").trim().parse().unwrap());
    signal::kill(process, Signal::SIGSTOP).unwrap();
    run.signal(Signal::SIGINT);
    assert_eq!(run.end().code(), 130);
}

/// Runs `orch run` with these flags in a terminal, where a script runs.
#[cfg(target_os = "linux")]
fn in_terminal<'s>(sandbox: &'s Sandbox, line: &str, script: &str) -> Option<Background<'s>> {
    sandbox.write_program("/script.sh", &format!("#!/bin/sh\n{script}\n"));
    let orch = crate::support::orch_program().display();
    let path = sandbox.path("/script.sh");
    let line = line
        .replace("ORCH", &format!("'{orch}'"))
        .replace("SCRIPT", &format!("'{}'", path.display()));
    let mut command = sandbox.in_terminal(&line)?;
    command.stdin(Stdio::piped());
    Some(Background::spawn(sandbox, command))
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_lets_every_terraform_unlock() {
    at_once(&[
        || ctrl_c_lets_terraform_unlock("", &["a"]),
        || ctrl_c_lets_terraform_unlock("-j 2", &["a", "b"]),
    ]);
}

#[cfg(target_os = "linux")]
fn ctrl_c_lets_terraform_unlock(flags: &str, stacks: &[&str]) {
    let sandbox = three_stacks();
    let line = format!("ORCH run {flags} SCRIPT");
    let Some(mut run) = in_terminal(&sandbox, &line, TERRAFORM) else {
        return;
    };
    wait_for_locks(&sandbox, stacks);
    let mut keys = run.orch.stdin.take().unwrap();
    keys.write_all(b"\x03").unwrap();
    let output = run.end();
    drop(keys);
    for name in stacks {
        let state = sandbox.read(&format!("/state-{name}"));
        assert_eq!(state, "unlocked\n", "{output}");
    }
    assert_eq!(output.code(), 130, "{output}");
}

/// The hang-up of a terminal reaches the command without us; and one that only `orch` gets is none of
/// the command's.
#[cfg(target_os = "linux")]
#[test]
fn hang_up_is_not_passed_on_to_a_command_with_the_terminal() {
    let sandbox = three_stacks();
    let script = format!("echo $PPID > \"$ORCH_ROOT/orch\"\n{NOTE_SIGNALS}");
    let Some(mut run) = in_terminal(&sandbox, "ORCH run -q SCRIPT", &script) else {
        return;
    };
    run.wait_for("/started", &["a"]);
    let orch = Pid::from_raw(sandbox.read("/orch").trim().parse().unwrap());
    signal::kill(orch, Signal::SIGHUP).unwrap();
    wait_until("orch has seen it", || {
        String::from_utf8_lossy(&run.log("out")).contains("SIGHUP: nothing new starts")
    });
    sandbox.write("/go", "");
    let keys = run.orch.stdin.take();
    let output = run.end();
    drop(keys);
    assert_eq!(output.code(), 129, "{output}");
    assert!(!sandbox.path("/signals").exists(), "nothing");
}

/// A shell's `kill %1` signals the whole process group of a job.
#[cfg(target_os = "linux")]
#[test]
fn signal_to_a_background_job_reaches_the_command_once() {
    let sandbox = three_stacks();
    let script = format!("echo $PPID > \"$ORCH_ROOT/orch\"\n{NOTE_SIGNALS}");
    let line = "set -m; ORCH run -q SCRIPT & wait $!";
    let Some(mut run) = in_terminal(&sandbox, line, &script) else {
        return;
    };
    run.wait_for("/started", &["a"]);
    let orch = Pid::from_raw(sandbox.read("/orch").trim().parse().unwrap());
    signal::killpg(orch, Signal::SIGTERM).unwrap();
    run.wait_for("/signals", &["TERM"]);
    wait_until("orch has seen it too", || {
        String::from_utf8_lossy(&run.log("out")).contains("nothing new starts")
    });
    sandbox.write("/go", "");
    let keys = run.orch.stdin.take();
    let output = run.end();
    drop(keys);
    assert_eq!(output.code(), 143, "{output}");
    assert_eq!(sandbox.read("/signals"), "TERM\n", "exactly once");
}

/// What asks for the terminal without having it, as `ssh` for a password, is stopped by the kernel.
#[cfg(target_os = "linux")]
#[test]
fn run_fails_a_command_that_asks_for_the_terminal() {
    for ask in ["read answer < /dev/tty", "stty -echo < /dev/tty"] {
        let sandbox = Sandbox::layout(
            "
            a
            b",
        );
        // Nothing of orch is the terminal, so commands are not in front of it.
        let line = "ORCH run -q -j 2 --on-error continue SCRIPT < /dev/null > \"$HOME/out\" 2> \"$HOME/err\"";
        let script = format!("[ $ORCH_STACK_NAME = b ] || {ask}");
        let Some(mut run) = in_terminal(&sandbox, line, &script) else {
            return;
        };
        let keys = run.orch.stdin.take();
        let output = run.end();
        drop(keys);
        let said = sandbox.read("../home/err");
        assert_eq!(output.code(), 1, "{said}");
        assert!(said.contains("failed /a: asked for the terminal"), "{said}");
        assert!(said.contains("1 succeeded, 1 failed"), "{said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn commands_that_run_at_once_cannot_have_the_terminal() {
    let sandbox = Sandbox::layout(
        "
        a
        b",
    );
    let line = "ORCH run -q -j 2 --on-error continue SCRIPT";
    let script = "[ $ORCH_STACK_NAME = b ] || read answer < /dev/tty";
    let Some(mut run) = in_terminal(&sandbox, line, script) else {
        return;
    };
    let keys = run.orch.stdin.take();
    let output = run.end();
    drop(keys);
    assert_eq!(output.code(), 1, "{output}");
    assert!(output.stdout.contains("asked for the terminal"), "{output}");
}

#[cfg(target_os = "linux")]
#[test]
fn run_does_not_fail_a_command_that_is_stopped_otherwise() {
    let sandbox = Sandbox::layout("a");
    let script = "echo $$ > \"$ORCH_ROOT/process\"; kill -STOP $$; touch \"$ORCH_ROOT/done\"";
    let run = Background::run(&sandbox, "", script);
    wait_until("it is ready", || sandbox.read("/process").ends_with('\n'));
    let process = Pid::from_raw(sandbox.read("/process").trim().parse().unwrap());
    wait_until("it is stopped", || {
        let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
        status.is_ok_and(|status| status.contains(") T "))
    });
    signal::kill(process, Signal::SIGCONT).unwrap();
    assert_eq!(run.end().code(), 0);
    assert!(sandbox.path("/done").exists());
}

#[test]
fn run_counts_an_interrupted_command_as_failed_in_every_output_mode() {
    let outputs = ["live", "grouped", "prefixed", "errors", "none"];
    for (at, output) in outputs.into_iter().enumerate() {
        let sent = [
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGQUIT,
        ];
        let sent = sent[at % sent.len()];
        let sandbox = Sandbox::layout("a");
        let run = Background::run(&sandbox, &format!("--output {output}"), NOTE_SIGNALS);
        run.wait_for("/started", &["a"]);
        run.signal(sent);
        wait_until("the signal arrives", || sandbox.path("/signals").exists());
        sandbox.write("/go", "");
        let ended = run.end();
        let name = format!("interrupted by {sent}");
        assert!(ended.stderr.contains(&name), "{output}: {ended}");
        assert!(
            ended.stderr.contains("0 succeeded, 1 failed"),
            "{output}: {ended}"
        );
        // What was interrupted is run again.
        let resumed = sandbox.orch("run --resume");
        assert_eq!(resumed.code(), 0, "{output}: {resumed}");
        assert_eq!(sandbox.read("/started"), "a\na\n", "{output}");
    }
}

#[test]
fn run_counts_an_interrupt_as_success_where_the_configuration_says_so() {
    let sandbox = Sandbox::layout("a");
    let setting =
        "orch {\n  config {\n    run {\n      success_on_interrupt = true\n    }\n  }\n}\n";
    sandbox.write("/run.orch.hcl", setting);
    let run = Background::run(&sandbox, "", NOTE_SIGNALS);
    run.wait_for("/started", &["a"]);
    run.signal(Signal::SIGINT);
    run.wait_for("/signals", &["INT"]);
    sandbox.write("/go", "");
    let ended = run.end();
    assert!(ended.stderr.contains("1 succeeded"), "{ended}");
    assert_eq!(ended.code(), 130, "the run itself was interrupted: {ended}");
    let setting = setting.replace("true", "\"yes\"");
    sandbox.write("/run.orch.hcl", &setting);
    let refused = sandbox.orch("run true");
    assert!(
        refused
            .stderr
            .contains("`success_on_interrupt` must be `true` or `false`"),
        "{refused}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn run_counts_a_command_as_interrupted_that_ctrl_c_reaches_before_orch() {
    // It ends before `orch` can have passed anything on.
    let script = "trap 'exit 0' INT\ntouch \"$ORCH_ROOT/ready\"\nwhile [ -d \"$ORCH_ROOT\" ]; do sleep 0.01; done";
    for _ in 0..5 {
        let sandbox = Sandbox::layout("a");
        let Some(mut run) = in_terminal(&sandbox, "ORCH run SCRIPT", script) else {
            return;
        };
        wait_until("it is ready", || sandbox.path("/ready").exists());
        let mut keys = run.orch.stdin.take().unwrap();
        keys.write_all(b"\x03").unwrap();
        let output = run.end();
        drop(keys);
        assert!(
            output.stdout.contains("failed /a: interrupted by SIGINT"),
            "{output}"
        );
    }
}
