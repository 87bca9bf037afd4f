//! Processes and signals on Unix.

mod keeper;
mod pipes;

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use rustix::fs::Access;
use rustix::process::{
    Pid, Resource, Rlimit, WaitId, WaitIdOptions, getpgrp, getrlimit, kill_process,
    kill_process_group, setrlimit, test_kill_process_group, waitid,
};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTTIN, SIGTTOU, SIGXFSZ};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::emulate_default_handler;
use signal_hook::low_level::siginfo::Cause;

pub(super) use self::keeper::Kept;
pub use self::keeper::{OutputKeeper, keep_output};
pub(super) use self::pipes::Pipes;
use super::{Message, SIGNAL_TIMEOUT, Signal};
use crate::run::event::Failure;

/// The inboxes that receive the signals of this process, the oldest first. A run may begin and end while an older inbox
/// is waiting, so that one thread decides for all whether a signal still reaches anything.
static INBOXES: Mutex<SignalInboxes> = Mutex::new(SignalInboxes {
    has_thread: false,
    inboxes: Vec::new(),
});

struct SignalInboxes {
    has_thread: bool,
    inboxes: Vec<SignalInbox>,
}

struct SignalInbox {
    sender: Sender<Message>,
    n_untaken: Arc<AtomicU32>,
}

impl SignalInboxes {
    /// Sends a signal to all inboxes that are left, and returns the counter of the newest one.
    fn send(&mut self, signal: &Signal) -> Option<Arc<AtomicU32>> {
        self.inboxes.retain(|inbox| {
            inbox.n_untaken.fetch_add(1, Ordering::SeqCst);
            inbox.sender.send(Message::Signal(*signal)).is_ok()
        });
        let newest = self.inboxes.last();
        newest.map(|inbox| inbox.n_untaken.clone())
    }
}

fn inboxes() -> MutexGuard<'static, SignalInboxes> {
    INBOXES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Knows of signals before they come through the channel.
pub(super) struct Signals {
    has_arrived: Arc<AtomicBool>,
    n_untaken: Arc<AtomicU32>,
}

impl Signals {
    /// Returns whether a signal has arrived since the last call, even if it is not in the channel yet.
    pub(super) fn has_arrived(&self) -> bool {
        self.has_arrived.swap(false, Ordering::SeqCst)
    }

    /// Records that one has come through the channel.
    pub(super) fn taken(&self) {
        self.n_untaken.store(0, Ordering::SeqCst);
    }
}

pub(super) fn receive_signals(sender: Sender<Message>) -> io::Result<Signals> {
    // If we were started with SIGCHLD ignored, the kernel would throw exit statuses away. A handler
    // that does nothing undoes that, for us and for the commands.
    signal_hook::flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)))?;
    // A file at its size limit (`ulimit -f`) fails the write, and the run continues; commands keep the default
    // signal.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let mut numbers = vec![SIGINT, SIGTERM, SIGQUIT];
    // Under nohup a hang-up is ignored, by us and by the commands.
    if !is_ignored(SIGHUP) {
        numbers.push(SIGHUP);
    }
    let has_arrived = Arc::new(AtomicBool::new(false));
    for &number in &numbers {
        signal_hook::flag::register(number, has_arrived.clone())?;
    }
    let n_untaken = Arc::new(AtomicU32::new(0));
    let mut all = inboxes();
    if !all.has_thread {
        let signals = SignalsInfo::<WithOrigin>::new(numbers)?;
        thread::Builder::new().spawn(move || distribute(signals))?;
        all.has_thread = true;
    }
    all.inboxes.push(SignalInbox {
        sender,
        n_untaken: n_untaken.clone(),
    });
    Ok(Signals {
        has_arrived,
        n_untaken,
    })
}

/// Sends signals to the inboxes.
fn distribute(mut signals: SignalsInfo<WithOrigin>) {
    for origin in &mut signals {
        let signal = Signal {
            number: origin.signal,
            // A terminal's Ctrl-C comes from the kernel and reaches the whole process group.
            from_process: matches!(origin.cause, Cause::Sent(_)),
            at: Instant::now(),
        };
        let newest = inboxes().send(&signal);
        // Without an inbox, no run is left, and nothing is worth waiting for. The same holds if the loop takes no
        // signals any more.
        if newest.is_none_or(|n_untaken| nobody_takes_them(&n_untaken)) {
            _ = emulate_default_handler(origin.signal);
        }
    }
}

/// Applies the default effect of a signal to this process.
pub(super) fn end_process(signal: i32) {
    _ = emulate_default_handler(signal);
}

/// Returns whether the loop is stuck: it has taken none of the signals that should have killed the
/// commands.
fn nobody_takes_them(n_untaken: &AtomicU32) -> bool {
    let is_stuck = || n_untaken.load(Ordering::SeqCst) >= 3;
    if !is_stuck() {
        return false;
    }
    thread::sleep(SIGNAL_TIMEOUT); // it may only be slow
    is_stuck()
}

/// Returns whether this process was started with a signal ignored, as far as the system reports it.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

/// Returns whether we are in the foreground of a terminal, where a person may answer prompts and press
/// Ctrl-C. A background job is not: a shell's `kill %1` signals its whole process group, and a command
/// in that group would be signalled twice.
pub(super) fn is_interactive() -> bool {
    let our_group = getpgrp();
    let is_in_front = |stream: BorrowedFd| tcgetpgrp(stream).is_ok_and(|group| group == our_group);
    is_in_front(io::stdin().as_fd())
        || is_in_front(io::stdout().as_fd())
        || is_in_front(io::stderr().as_fd())
}

/// The modes of the terminal on our standard input.
pub(super) struct TerminalModes(Termios);

impl TerminalModes {
    /// Returns the current modes; `None` without a terminal.
    pub(super) fn now() -> Option<Self> {
        tcgetattr(io::stdin()).ok().map(TerminalModes)
    }

    /// Restores these modes if we have the terminal: a process in the background would be stopped.
    pub(super) fn restore(&self) {
        if tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp()) {
            // A closed terminal needs no restoring.
            _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.0);
        }
    }
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

/// Returns why a program that exists and is executable did not start.
pub(super) fn start_problem(error: &io::Error) -> String {
    match error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error)
    {
        Some(rustix::io::Errno::NOENT) => {
            "the interpreter in its `#!` line does not exist".to_owned()
        }
        Some(rustix::io::Errno::NOEXEC) => "not a program; a script needs a `#!` line".to_owned(),
        _ => error.to_string(),
    }
}

fn pid(process: u32) -> Option<Pid> {
    Pid::from_raw(process.cast_signed())
}

/// Blocks until the process has ended, and does not reap it. Calls `wants_terminal` each time it was
/// stopped for asking for the terminal.
pub(super) fn wait_without_reaping(process: u32, wants_terminal: impl Fn()) {
    let Some(pid) = pid(process) else {
        return;
    };
    let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(Some(status)) if status.stopped() => {
                if has_wanted_terminal(process) {
                    wants_terminal();
                }
            }
            _ => return,
        }
    }
}

/// Returns whether a child process has ended; does not reap it.
pub(super) fn has_ended(process: u32) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    pid(process).is_none_or(|pid| {
        !matches!(
            waitid(WaitId::Pid(pid), options),
            Ok(None) | Err(rustix::io::Errno::INTR)
        )
    })
}

/// Returns whether the process group of a reaped command is empty, or, with `or_zombies`, holds nothing
/// alive.
pub(super) fn has_group_ended(process: u32, or_zombies: bool) -> bool {
    let Some(group) = pid(process) else {
        return true;
    };
    // As the first process of a container, we inherit orphans.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    while let Ok(Some(_)) = waitid(WaitId::Pgid(Some(group)), options) {}
    test_kill_process_group(group) == Err(rustix::io::Errno::SRCH)
        || or_zombies && is_group_of_zombies(group)
}

/// Returns whether a process group holds only zombies, as far as the system reports it: some init processes of
/// containers never reap them.
fn is_group_of_zombies(group: Pid) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return false;
    };
    let mut has_members = false;
    for process in processes.flatten() {
        let name = process.file_name();
        if !name.as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let status = std::fs::read(process.path().join("stat")).unwrap_or_default();
        // The name of the program, in parentheses, may hold anything.
        let Some(end) = status.iter().rposition(|&byte| byte == b')') else {
            continue;
        };
        let status = String::from_utf8_lossy(&status[end + 1..]);
        let mut fields = status.split_ascii_whitespace();
        let (state, its_group) = (fields.next(), fields.nth(1));
        if its_group == Some(group.as_raw_pid().to_string().as_str()) {
            has_members = true;
            if !matches!(state, Some("Z" | "X")) {
                return false;
            }
        }
    }
    has_members
}

/// Returns whether a child process was stopped since the last call because it asked for the terminal.
fn has_wanted_terminal(process: u32) -> bool {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    let status = pid(process).and_then(|pid| waitid(WaitId::Pid(pid), options).ok()?);
    let signal = status.and_then(|status| status.stopping_signal());
    signal.is_some_and(|signal| [SIGTTIN, SIGTTOU].contains(&signal))
}

/// Passes the first signal on to a process, or to all of its group.
///
/// A hang-up and a quit are passed on as an interrupt: terraform dies of either and keeps its lock. A
/// hang-up of the terminal reaches a process in our own group anyway.
pub(super) fn pass_on(process: u32, whole_group: bool, signal: i32) {
    match signal {
        SIGHUP if !whole_group => {}
        SIGTERM => terminate(process, whole_group),
        _ => interrupt(process, whole_group),
    }
}

/// Sends a signal to a process, or to its whole group. If it has just ended, does nothing.
fn send(process: u32, whole_group: bool, signal: i32) {
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

/// Continues a stopped process and its group, so that it receives pending signals.
pub(super) fn resume(process: u32) {
    send(process, true, signal_hook::consts::SIGCONT);
}

pub(super) fn kill(process: u32, whole_group: bool) {
    send(process, whole_group, signal_hook::consts::SIGKILL);
}

/// Raises the limit of open files to this many if it is lower. The error is how many may be open,
/// if fewer.
pub(super) fn allow_open_files(needed: u64) -> Result<(), u64> {
    let limit = getrlimit(Resource::Nofile);
    let is_enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if is_enough(limit.current) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(needed),
        maximum: limit.maximum,
    };
    if is_enough(limit.maximum) && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    Err(limit
        .maximum
        .or(limit.current)
        .unwrap_or_default()
        .min(needed - 1))
}

/// Returns whether we may execute a file.
pub(super) fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok()
}
