//! Kills a process with all that it has started, at a moment that can be chosen.

use std::fs;
use std::path::Path;
use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::wait_until;

/// Kills a process with all that it has started, at a moment that may be used.
pub(super) fn kill_all(child: &mut Child, may_be_killed: impl Fn() -> bool) {
    let stopped = loop {
        let mut stopped = Vec::new();
        stop(Pid::from_raw(child.id().cast_signed()), &mut stopped);
        // Nothing runs any more: what holds now holds until all are killed.
        if may_be_killed() {
            break stopped;
        }
        for &process in &stopped {
            _ = kill(process, Signal::SIGCONT);
        }
        wait_until("the moment is over", &may_be_killed);
    };
    for &process in &stopped {
        _ = kill(process, Signal::SIGKILL);
    }
    crate::support::ended(child);
    wait_until("all that was killed is gone", || {
        stopped
            .iter()
            .all(|process| threads(*process).all(|it| it.has_ended()))
    });
}

/// Stops a process, then all that it has started: none of them starts another one meanwhile.
fn stop(process: Pid, stopped: &mut Vec<Pid>) {
    if kill(process, Signal::SIGSTOP).is_err() {
        return;
    }
    // Each thread stops only once it returns from what it does in the kernel, such as writing a file.
    wait_until("a process is stopped", || {
        threads(process).all(|thread| thread.is_stopped() || thread.has_ended())
    });
    stopped.push(process);
    for child in children(process) {
        stop(child, stopped);
    }
}

/// Returns the children of a process.
fn children(of: Pid) -> Vec<Pid> {
    let mut children = Vec::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let name = process.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if Stat::read(&process.path()).parent() == Some(of.as_raw()) {
            children.push(Pid::from_raw(id));
        }
    }
    children
}

/// Returns what the system knows of the threads of a process.
fn threads(of: Pid) -> impl Iterator<Item = Stat> {
    let threads = fs::read_dir(format!("/proc/{of}/task"));
    let threads = threads.into_iter().flatten().flatten();
    threads.map(|thread| Stat::read(&thread.path()))
}

/// What the system knows of a process or a thread, from its state on; nothing if it is gone.
struct Stat(String);

impl Stat {
    fn read(folder: &Path) -> Self {
        let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
        // The name of the program, in parentheses, may be anything; after it are the state and the parent.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        Stat(rest.to_owned())
    }

    fn parent(&self) -> Option<i32> {
        self.0.split(' ').nth(1)?.parse().ok()
    }

    fn is_stopped(&self) -> bool {
        self.0.starts_with('T')
    }

    /// Returns whether it is gone, but for its entry in the table of processes.
    fn has_ended(&self) -> bool {
        self.0.is_empty() || self.0.starts_with(['Z', 'X'])
    }
}
