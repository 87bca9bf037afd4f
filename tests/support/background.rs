//! An `orch run` in the background, to be watched and signalled.

use std::cell::Cell;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output as Raw, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::host::{ended, orch_program, wait_until};
use super::output::Output;
use super::sandbox::Sandbox;

/// Waits for what another command does; gives up when the test has long failed.
const AWAIT: &str = r#"
await() {
  tries=0
  while [ ! -e "$ORCH_ROOT/$1" ]; do
    tries=$((tries + 1))
    [ -d "$ORCH_ROOT" ] && [ $tries -lt 6000 ] || { echo "never: $1" >&2; exit 99; }
    sleep 0.01
  done
}
"#;

/// An `orch run` that can be watched and signalled while it runs.
pub(crate) struct Background<'s> {
    sandbox: &'s Sandbox,
    pub(crate) orch: Child,
    signalled: Cell<Option<Instant>>,
}

/// People do not press Ctrl-C faster; what comes faster counts as the echo of one signal.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(60);

impl<'s> Background<'s> {
    /// Starts `orch run` of a shell script, in a process group of its own. The script may say
    /// `await FILE` to wait until a file of the project exists.
    pub(crate) fn run(sandbox: &'s Sandbox, flags: &str, script: &str) -> Self {
        sandbox.write_program("/script.sh", &format!("#!/bin/sh\n{AWAIT}\n{script}\n"));
        let script = sandbox.path("/script.sh");
        let mut command = sandbox.command(&format!("run {flags} --"));
        command.arg(script).process_group(0).stdin(Stdio::null());
        Self::spawn(sandbox, command)
    }

    pub(crate) fn spawn(sandbox: &'s Sandbox, mut command: Command) -> Self {
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

    pub(crate) fn log(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.sandbox.outside().join(name)).unwrap()
    }

    /// Waits until a file of the project exists and has a line for each of these words.
    pub(crate) fn wait_for(&self, path: &str, words: &[&str]) {
        let what = format!("{path} says {words:?}");
        wait_until(&what, || {
            self.sandbox.read(path).lines().eq(words.iter().copied())
        });
        self.signal_arrived();
    }

    /// Waits until `orch` has said something on stderr.
    pub(crate) fn wait_until_said(&self, text: &str) {
        wait_until(&format!("orch says `{text}`"), || {
            String::from_utf8_lossy(&self.log("err")).contains(text)
        });
        self.signal_arrived();
    }

    /// Takes what has just been seen as the effect of the last signal. On a busy machine, `orch` sees
    /// a signal long after it was sent, so the time to the next one is counted from here.
    fn signal_arrived(&self) {
        if self.signalled.get().is_some() {
            self.signalled.set(Some(Instant::now()));
        }
    }

    /// Sends a signal to `orch` and to nobody else.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(last) = self.signalled.replace(Some(Instant::now())) {
            wait_until("time for another signal", || {
                last.elapsed() > BETWEEN_SIGNALS
            });
            self.signalled.set(Some(Instant::now()));
        }
        signal::kill(self.pid(), signal).unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.orch.id().cast_signed())
    }

    /// Ends `orch` so that it cannot do anything about it; its command goes on.
    pub(crate) fn kill(mut self) {
        self.orch.kill().unwrap();
        ended(&mut self.orch);
    }

    pub(crate) fn end(mut self) -> Output {
        let status = ended(&mut self.orch);
        // Signals go to the whole group of the command; the shell says when one ends its `sleep`.
        let stderr = String::from_utf8(self.log("err")).unwrap();
        self.sandbox.output(&Raw {
            status,
            stdout: self.log("out"),
            stderr: stderr.replace("Terminated\n", "").into_bytes(),
        })
    }
}

/// Returns a shell line with `orch run` of a script at its end, for what only a shell can set up.
pub(crate) fn in_shell(sandbox: &Sandbox, before: &str, arguments: &str, script: &str) -> Command {
    sandbox.write_program("/script.sh", &format!("#!/bin/sh\n{script}\n"));
    let orch = sandbox.command(&format!("run {arguments} --"));
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{before}; exec \"$@\""), "sh"])
        .arg(orch.get_program())
        .args(orch.get_args())
        .arg(sandbox.path("/script.sh"))
        .current_dir(orch.get_current_dir().unwrap());
    sandbox.isolate(&mut command);
    command
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

/// Runs `orch` on a terminal and, once it asks for approval, calls a function and types something. Returns its
/// exit status with all that it said; nothing where there is no terminal.
pub(crate) fn answered_after(
    sandbox: &Sandbox,
    arguments: &str,
    keys: &str,
    meanwhile: impl FnOnce(),
) -> Option<(i32, String)> {
    let line = format!("'{}' {arguments}", orch_program().display());
    let mut command = sandbox.in_terminal(&line)?;
    command.stdin(Stdio::piped());
    let mut terminal = Background::spawn(sandbox, command);
    let said = || String::from_utf8_lossy(&terminal.log("out")).into_owned();
    wait_until("it asks", || said().contains("type "));
    meanwhile();
    let mut stdin = terminal.orch.stdin.take().unwrap();
    stdin.write_all(keys.as_bytes()).unwrap();
    let status = ended(&mut terminal.orch);
    let said = String::from_utf8_lossy(&terminal.log("out")).into_owned();
    Some((status.code().unwrap(), said))
}
