//! Runs the command of each stack.
//!
//! One loop owns the schedule, the running commands and time. A thread per command waits for its
//! end, a thread receives signals, and both send to the one channel that the loop reads. What the
//! loop decides it tells as [`RunEvent`]s.
//!
//! # Signals
//!
//! A command must be interrupted exactly once: terraform gives up its lock cleanly on the first
//! interrupt and loses it on the second. Two cases:
//!
//! - At a terminal, commands run in our process group, so that prompts work. A Ctrl-C then reaches
//!   the command without our doing, and only a signal that a process sent to `orch` is passed on.
//! - Elsewhere, as in CI, each command has a process group of its own. Whether a signal was sent to
//!   `orch` alone or to its whole group, the command gets it from us and nobody else, and so do the
//!   processes that it has started.
//!
//! After the first signal nothing new starts; a second one terminates the command, a third kills it.

mod lookup;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(not(unix), path = "other.rs")]
mod os;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub use lookup::{LookupError, ProgramFinder};
use tracing::debug;

use crate::environment::Environment;
use crate::event::{CancelCause, Ending, Failure, Outcome, Reaction, RunEvent, RunSummary};
use crate::schedule::Schedule;
use crate::stack::StackIndex;

/// A command in a stack.
#[derive(Debug, Clone)]
pub struct Task {
    /// The program as typed, which it sees as its own name.
    pub name: OsString,
    /// The program file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Changes to our own environment.
    pub environment: Environment,
}

/// How long to wait for a signal that has arrived to come through the channel.
const PATIENCE: Duration = Duration::from_secs(1);

/// What can happen while the loop waits.
enum Message {
    Ended(io::Result<ExitStatus>),
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no signals"))]
    Signal(Signal),
}

/// A signal that `orch` received.
struct Signal {
    number: i32,
    /// Whether a process sent it, rather than the terminal.
    from_process: bool,
    at: Instant,
}

/// A signal that follows an equal one faster than a person could send it is the same one, delivered
/// to `orch` and again to its process group.
const ECHO: Duration = Duration::from_millis(30);

/// Runs what the schedule lets run, one command at a time, until nothing is left to do.
/// `selected` is every stack of the run, in order; `task` gives the command of a stack.
///
/// # Errors
///
/// If signals cannot be received. That a command fails is data in the summary.
pub fn execute(
    mut schedule: Schedule,
    selected: &[StackIndex],
    mut task: impl FnMut(StackIndex) -> Task,
    mut on_event: impl FnMut(&RunEvent),
) -> io::Result<RunSummary> {
    let (sender, receiver) = mpsc::channel();
    let signals_from_os = os::receive_signals(sender.clone())?;
    let mut run = Run {
        begun: Instant::now(),
        sender,
        receiver,
        signals_from_os,
        summary: RunSummary::default(),
        signals: 0,
        last_signal: None,
        on_event: &mut on_event,
    };
    while let Some(stack) = run.next(&mut schedule) {
        (run.on_event)(&RunEvent::Started(stack));
        let begun = Instant::now();
        let outcome = run.one(stack, &task(stack));
        run.ended(stack, outcome.clone(), begun.elapsed());
        for (skipped, cause) in schedule.finish(stack, outcome == Outcome::Succeeded) {
            run.ended(skipped, Outcome::Skipped { cause }, Duration::ZERO);
        }
    }
    Ok(run.finish(selected))
}

struct Run<'a> {
    begun: Instant,
    sender: Sender<Message>,
    receiver: Receiver<Message>,
    signals_from_os: os::Signals,
    summary: RunSummary,
    signals: u32,
    last_signal: Option<(i32, Instant)>,
    on_event: &'a mut dyn FnMut(&RunEvent),
}

impl Run<'_> {
    /// Returns the next stack, unless a signal has arrived.
    fn next(&mut self, schedule: &mut Schedule) -> Option<StackIndex> {
        // A Ctrl-C reaches the command and us at once, and our handler runs before the command can
        // have ended; only the thread that passes the signal on may be late.
        let is_late = self.summary.signal.is_none() && self.signals_from_os.has_arrived();
        let mut patience = if is_late { PATIENCE } else { Duration::ZERO };
        while let Ok(Message::Signal(signal)) = self.receiver.recv_timeout(patience) {
            self.signal(&signal, None);
            patience = Duration::ZERO;
        }
        if self.summary.signal.is_some() {
            schedule.stop();
        }
        schedule.start_next()
    }

    /// Runs one command to its end.
    fn one(&mut self, stack: StackIndex, task: &Task) -> Outcome {
        let running = match Running::start(stack, task, self.sender.clone()) {
            Ok(running) => running,
            Err(error) => return Outcome::Failed(Failure::NotStarted(os::start_problem(&error))),
        };
        loop {
            // The sender that we hold ourselves keeps the channel open.
            match self.receiver.recv().expect("the channel is open") {
                Message::Signal(signal) => self.signal(&signal, Some(&running)),
                Message::Ended(Ok(status)) if status.success() => return Outcome::Succeeded,
                Message::Ended(Ok(status)) => return Outcome::Failed(os::failure(status)),
                Message::Ended(Err(error)) => {
                    return Outcome::Failed(Failure::Lost(error.to_string()));
                }
            }
        }
    }

    fn signal(&mut self, signal: &Signal, running: Option<&Running>) {
        let is_echo = self.last_signal.is_some_and(|(number, at)| {
            number == signal.number && signal.at.saturating_duration_since(at) < ECHO
        });
        self.last_signal = Some((signal.number, signal.at));
        if is_echo {
            return;
        }
        self.signals += 1;
        self.summary.signal.get_or_insert(signal.number);
        let reaction = match self.signals {
            1 => Reaction::Wait,
            2 => Reaction::Terminate,
            _ => Reaction::Kill,
        };
        (self.on_event)(&RunEvent::Interrupted {
            signal: signal.number,
            reaction,
            running: running.iter().map(|running| running.stack).collect(),
        });
        if let Some(running) = running {
            running.react(reaction, signal);
        }
    }

    fn ended(&mut self, stack: StackIndex, outcome: Outcome, elapsed: Duration) {
        let ending = Ending {
            stack,
            outcome,
            elapsed,
        };
        (self.on_event)(&RunEvent::Ended(ending.clone()));
        self.summary.endings.push(ending);
    }

    /// Accounts for the stacks whose turn never came.
    fn finish(mut self, selected: &[StackIndex]) -> RunSummary {
        let failed = self
            .summary
            .endings
            .iter()
            .find_map(|ending| match ending.outcome {
                Outcome::Failed(_) => Some(CancelCause::Failed(ending.stack)),
                _ => None,
            });
        let cause = self.summary.signal.map(CancelCause::Signal).or(failed);
        let mut ended: Vec<StackIndex> = self
            .summary
            .endings
            .iter()
            .map(|ending| ending.stack)
            .collect();
        ended.sort_unstable();
        for &stack in selected {
            if ended.binary_search(&stack).is_err() {
                let cause = cause.expect("a run ends early only after a failure or a signal");
                self.ended(stack, Outcome::Cancelled(cause), Duration::ZERO);
            }
        }
        self.summary.elapsed = self.begun.elapsed();
        self.summary
    }
}

/// A command that has been started.
struct Running {
    stack: StackIndex,
    process: u32,
    started: Instant,
    /// Whether the command has a process group of its own.
    has_own_group: bool,
    /// Once the process is reaped its number may belong to another, so it is signalled no more.
    is_reaped: Arc<Mutex<bool>>,
}

impl Running {
    fn start(stack: StackIndex, task: &Task, sender: Sender<Message>) -> io::Result<Self> {
        debug!(
            program = %task.program.display(),
            directory = %task.directory.display(),
            "start"
        );
        let mut command = Command::new(&task.program);
        os::set_name(&mut command, &task.name);
        command.args(&task.arguments).current_dir(&task.directory);
        for (name, value) in &task.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let has_own_group = !os::is_interactive();
        if has_own_group {
            os::set_own_group(&mut command);
        }
        // The thread that waits exists before there is anything to wait for: a command that nobody
        // could wait for must not start.
        let is_reaped = Arc::new(Mutex::new(false));
        let (to_waiter, from_loop) = mpsc::channel::<Child>();
        let waiter = wait_for(from_loop, is_reaped.clone(), sender);
        thread::Builder::new().spawn(waiter)?;
        let started = Instant::now();
        let child = command.spawn()?;
        let process = child.id();
        debug!(process, "started");
        to_waiter.send(child).expect("the waiter waits for it");
        Ok(Running {
            stack,
            process,
            started,
            has_own_group,
            is_reaped,
        })
    }

    fn react(&self, reaction: Reaction, signal: &Signal) {
        let is_reaped = self
            .is_reaped
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *is_reaped {
            return;
        }
        // The terminal reaches what was running at that moment.
        let has_reached = !self.has_own_group && !signal.from_process && signal.at > self.started;
        match reaction {
            Reaction::Wait if has_reached => {}
            Reaction::Wait => os::send(self.process, self.has_own_group, signal.number),
            Reaction::Terminate => os::terminate(self.process, self.has_own_group),
            Reaction::Kill => os::kill(self.process, self.has_own_group),
        }
    }
}

/// Returns what waits for the end of a command and tells the loop.
fn wait_for(
    from_loop: Receiver<Child>,
    is_reaped: Arc<Mutex<bool>>,
    sender: Sender<Message>,
) -> impl FnOnce() {
    move || {
        let Ok(mut child) = from_loop.recv() else {
            return; // it was not started
        };
        os::wait_without_reaping(child.id());
        let mut is_reaped = is_reaped.lock().unwrap_or_else(PoisonError::into_inner);
        let status = child.wait();
        *is_reaped = true;
        drop(is_reaped);
        // If the loop is gone, nobody wants to know.
        _ = sender.send(Message::Ended(status));
    }
}
