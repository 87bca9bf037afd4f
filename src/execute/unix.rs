//! Processes and signals on Unix.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

use nix::sys::signal::{self, Signal as NixSignal};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

use super::{Message, Signal};
use crate::event::Failure;

/// While this lives, signals go to the channel.
pub(super) struct Signals {
    handle: signal_hook::iterator::Handle,
    has_arrived: Arc<AtomicBool>,
}

impl Signals {
    /// Says whether a signal has arrived since the last time, be it that the thread that sends it to
    /// the channel has not got round to it.
    pub(super) fn has_arrived(&self) -> bool {
        self.has_arrived.swap(false, Ordering::SeqCst)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
    }
}

pub(super) fn receive_signals(sender: Sender<Message>) -> io::Result<Signals> {
    let numbers = [SIGHUP, SIGINT, SIGTERM];
    let has_arrived = Arc::new(AtomicBool::new(false));
    for number in numbers {
        signal_hook::flag::register(number, has_arrived.clone())?;
    }
    let mut signals = SignalsInfo::<WithOrigin>::new(numbers)?;
    let handle = signals.handle();
    thread::spawn(move || {
        for origin in &mut signals {
            // What the kernel sends comes from the terminal, which signals the whole process group.
            let reached_commands = matches!(origin.cause, Cause::Kernel);
            let signal = Signal {
                number: origin.signal,
                reached_commands,
            };
            if sender.send(Message::Signal(signal)).is_err() {
                return;
            }
        }
    });
    Ok(Signals {
        handle,
        has_arrived,
    })
}

pub(super) fn set_name(command: &mut Command, name: &OsStr) {
    command.arg0(name);
}

pub(super) fn failure(status: ExitStatus) -> Failure {
    match (status.code(), status.signal()) {
        (Some(code), _) => Failure::Exited(code),
        (None, signal) => Failure::Signalled(signal.unwrap_or_default()),
    }
}

fn pid(process: u32) -> Pid {
    Pid::from_raw(process.cast_signed())
}

/// Returns when the process has ended, and leaves it to be reaped.
pub(super) fn wait_without_reaping(process: u32) {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    while waitid(Id::Pid(pid(process)), flags) == Err(nix::errno::Errno::EINTR) {}
}

/// Sends a signal. That the process has just ended is no error.
pub(super) fn send(process: u32, signal: i32) {
    if let Ok(signal) = NixSignal::try_from(signal) {
        _ = signal::kill(pid(process), signal);
    }
}

pub(super) fn terminate(process: u32) {
    send(process, SIGTERM);
}

pub(super) fn kill(process: u32) {
    _ = signal::kill(pid(process), NixSignal::SIGKILL);
}

/// Says whether a file may be executed, by somebody.
pub(super) fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}
