//! Processes and signals on Unix.

mod pipes;

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Instant;

use rustix::fs::Access;
use rustix::process::{Pid, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::emulate_default_handler;
use signal_hook::low_level::siginfo::Cause;

pub(super) use self::pipes::Pipes;
use super::{Message, Signal};
use crate::event::Failure;

/// Knows of signals before they come through the channel.
#[derive(Debug)]
pub(super) struct Signals {
    has_arrived: Arc<AtomicBool>,
}

impl Signals {
    /// Says whether a signal has arrived since the last time, be it that the thread that sends it to
    /// the channel has not got round to it.
    pub(super) fn has_arrived(&self) -> bool {
        self.has_arrived.swap(false, Ordering::SeqCst)
    }
}

pub(super) fn receive_signals(sender: Sender<Message>) -> io::Result<Signals> {
    // Whoever starts us with SIGCHLD ignored would have the kernel throw exit statuses away. A
    // handler that does nothing undoes that, for us and for the commands.
    signal_hook::flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)))?;
    let mut numbers = vec![SIGINT, SIGTERM];
    // Under nohup a hang-up is ignored, and stays so for us and for the commands.
    if !is_ignored(SIGHUP) {
        numbers.push(SIGHUP);
    }
    let has_arrived = Arc::new(AtomicBool::new(false));
    for &number in &numbers {
        signal_hook::flag::register(number, has_arrived.clone())?;
    }
    let mut signals = SignalsInfo::<WithOrigin>::new(numbers)?;
    thread::Builder::new().spawn(move || {
        for origin in &mut signals {
            let signal = Signal {
                number: origin.signal,
                // A terminal's Ctrl-C comes from the kernel and reaches the whole process group.
                from_process: matches!(origin.cause, Cause::Sent(_)),
                at: Instant::now(),
            };
            if sender.send(Message::Signal(signal)).is_err() {
                // The run is over, and whoever waits for what is left of its output waits no more.
                _ = emulate_default_handler(origin.signal);
            }
        }
    })?;
    Ok(Signals { has_arrived })
}

/// Says whether this process was started with a signal ignored, where the system tells.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

/// Says whether a person may be at a terminal, who wants to answer prompts and press Ctrl-C.
pub(super) fn is_interactive() -> bool {
    io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal()
}

pub(super) fn set_name(command: &mut Command, name: &OsStr) {
    command.arg0(name);
}

pub(super) fn set_own_group(command: &mut Command) {
    command.process_group(0);
}

pub(super) fn failure(status: ExitStatus) -> Failure {
    match (status.code(), status.signal()) {
        (Some(code), _) => Failure::Exited(code),
        (None, signal) => Failure::Signalled(signal.unwrap_or_default()),
    }
}

/// Says why a program that exists and may be executed did not start.
pub(super) fn start_problem(error: &io::Error) -> String {
    match error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error)
    {
        Some(rustix::io::Errno::NOENT) => {
            "the interpreter in its `#!` line does not exist".to_owned()
        }
        Some(rustix::io::Errno::NOEXEC) => {
            "it is no program; a script needs a `#!` line".to_owned()
        }
        _ => error.to_string(),
    }
}

fn pid(process: u32) -> Option<Pid> {
    Pid::from_raw(process.cast_signed())
}

/// Returns when the process has ended, and leaves it to be reaped.
pub(super) fn wait_without_reaping(process: u32) {
    let Some(pid) = pid(process) else {
        return;
    };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(
        waitid(WaitId::Pid(pid), options),
        Err(rustix::io::Errno::INTR)
    ) {}
}

/// Sends a signal to a process, or to all of its group. That it has just ended is no error.
pub(super) fn send(process: u32, whole_group: bool, signal: i32) {
    let (Some(pid), Some(signal)) = (
        pid(process),
        rustix::process::Signal::from_named_raw(signal),
    ) else {
        return;
    };
    _ = if whole_group {
        kill_process_group(pid, signal)
    } else {
        kill_process(pid, signal)
    };
}

pub(super) fn interrupt(process: u32, whole_group: bool) {
    send(process, whole_group, SIGINT);
}

pub(super) fn terminate(process: u32, whole_group: bool) {
    send(process, whole_group, SIGTERM);
}

pub(super) fn kill(process: u32, whole_group: bool) {
    send(process, whole_group, signal_hook::consts::SIGKILL);
}

/// Says whether we may execute a file.
pub(super) fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok()
}
