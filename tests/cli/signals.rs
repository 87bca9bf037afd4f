//! What interrupts a run, and how it ends then.

use std::cell::Cell;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output as Raw, Stdio};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use crate::sandbox::{Output, Sandbox, wait_until};

/// An `orch run` that can be watched and signalled while it runs.
struct Background<'s> {
    sandbox: &'s Sandbox,
    orch: Child,
    signalled: Cell<Option<Instant>>,
}

/// People do not press Ctrl-C faster; what comes faster counts as the echo of one signal.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(60);

impl<'s> Background<'s> {
    /// Starts `orch run` of a shell script, in a process group of its own.
    fn run(sandbox: &'s Sandbox, flags: &str, script: &str) -> Self {
        sandbox.write_program("/script.sh", &format!("#!/bin/sh\n{script}\n"));
        let script = sandbox.path("/script.sh");
        let mut command = sandbox.command(&format!("run {flags} --"));
        command.arg(script).process_group(0).stdin(Stdio::null());
        Self::spawn(sandbox, command)
    }

    fn spawn(sandbox: &'s Sandbox, mut command: Command) -> Self {
        let log = |name: &str| File::create(sandbox.outside().join(name)).unwrap();
        let orch = command.stdout(log("out")).stderr(log("err")).spawn();
        let orch = orch.unwrap();
        let signalled = Cell::new(None);
        Background {
            sandbox,
            orch,
            signalled,
        }
    }

    fn log(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.sandbox.outside().join(name)).unwrap()
    }

    /// Waits until a file of the project exists and has a line for each of these words.
    fn wait_for(&self, path: &str, words: &[&str]) {
        let what = format!("{path} says {words:?}");
        wait_until(&what, || {
            self.sandbox.read(path).lines().eq(words.iter().copied())
        });
    }

    /// Waits until `orch` has said something on stderr.
    fn wait_until_said(&self, text: &str) {
        wait_until(&format!("orch says `{text}`"), || {
            String::from_utf8_lossy(&self.log("err")).contains(text)
        });
    }

    /// Sends a signal to `orch` and to nobody else.
    fn signal(&self, signal: Signal) {
        if let Some(last) = self.signalled.replace(Some(Instant::now())) {
            wait_until("time for another signal", || {
                last.elapsed() > BETWEEN_SIGNALS
            });
            self.signalled.set(Some(Instant::now()));
        }
        signal::kill(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.orch.id().cast_signed())
    }

    fn end(mut self) -> Output {
        let status = self.orch.wait().unwrap();
        // Signals go to the whole group of the command; the shell says when one ends its `sleep`.
        let stderr = String::from_utf8(self.log("err")).unwrap();
        self.sandbox.output(&Raw {
            status,
            stdout: self.log("out"),
            stderr: stderr.replace("Terminated\n", "").into_bytes(),
        })
    }
}

impl Drop for Background<'_> {
    /// Leaves nothing running behind a test that failed.
    fn drop(&mut self) {
        if matches!(self.orch.try_wait(), Ok(None)) {
            _ = signal::killpg(self.pid(), Signal::SIGKILL);
            _ = self.orch.wait();
        }
    }
}

/// Notes each signal in `/signals` and ends with status 0 once `/go` exists.
const NOTE_SIGNALS: &str = r#"
trap 'echo INT >> "$ORCH_ROOT/signals"' INT
trap 'echo TERM >> "$ORCH_ROOT/signals"' TERM
trap 'echo HUP >> "$ORCH_ROOT/signals"' HUP
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
fn an_interrupt_of_orch_alone_is_passed_on_once() {
    let sandbox = three_stacks();
    let run = Background::run(&sandbox, "", NOTE_SIGNALS);
    run.wait_for("/started", &["a"]);
    run.signal(Signal::SIGINT);
    run.wait_for("/signals", &["INT"]);
    sandbox.write("/go", "");
    // Even though the command itself succeeded, the run did not do all that was wanted.
    assert_snapshot!(run.end(), @"
    [stderr]
    orch: /a: $ROOT/script.sh
    orch: SIGINT: nothing new starts; waiting for /a to end (again: terminate it)
    orch: cancelled /b: the run was interrupted by SIGINT
    orch: cancelled /c: the run was interrupted by SIGINT
    orch: 1 succeeded, 2 cancelled in [time]
    [exit status 130]
    ");
    assert_eq!(sandbox.read("/signals"), "INT\n", "exactly once");
    assert_eq!(sandbox.read("/started"), "a\n", "nothing new starts");
}

#[test]
fn nothing_new_starts_after_an_interrupt_whatever_to_do_on_errors() {
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
fn a_command_that_dies_of_the_interrupt_is_a_failure_in_an_interrupted_run() {
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
    orch: failed /a: ended by signal 2 after [time]
    orch: 0 succeeded, 1 failed, 2 cancelled in [time]
    [exit status 130]
    ");
}

#[test]
fn a_second_interrupt_terminates_the_command() {
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
    orch: 1 succeeded, 2 cancelled in [time]
    [exit status 130]
    ");
}

#[test]
fn a_third_interrupt_kills_the_command() {
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
    orch: failed /a: ended by signal 9 after [time]
    orch: 0 succeeded, 1 failed, 2 cancelled in [time]
    [exit status 130]
    ");
}

#[test]
fn terminating_orch_ends_the_run_with_the_status_of_the_signal() {
    for (signal, word, status) in [(Signal::SIGTERM, "TERM", 143), (Signal::SIGHUP, "HUP", 129)] {
        let sandbox = three_stacks();
        let run = Background::run(&sandbox, "", NOTE_SIGNALS);
        run.wait_for("/started", &["a"]);
        run.signal(signal);
        run.wait_for("/signals", &[word]);
        sandbox.write("/go", "");
        let output = run.end();
        assert_eq!(output.code(), status);
        assert!(
            output
                .stderr
                .contains(&format!("the run was interrupted by SIG{word}")),
            "{output}"
        );
    }
}

#[test]
fn the_first_signal_gives_the_status() {
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
    assert!(
        output.stderr.contains("1 succeeded, 2 cancelled"),
        "{output}"
    );
}

#[test]
fn a_process_that_outlives_its_command_holds_nothing_up() {
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
fn a_ctrl_c_of_the_terminal_reaches_the_command_once() {
    let sandbox = three_stacks();
    sandbox.write_program("/script.sh", &format!("#!/bin/sh\n{NOTE_SIGNALS}\n"));
    let orch = assert_cmd::cargo::cargo_bin!("orch").display();
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
fn a_signal_to_the_whole_group_reaches_the_command_once() {
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
fn a_hang_up_that_was_ignored_at_the_start_stays_ignored() {
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
