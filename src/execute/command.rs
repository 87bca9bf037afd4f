//! Commands as processes.
//!
//! A thread for each command reads what it prints, where that is to be kept, waits for its end, and
//! tells the loop.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use tracing::debug;

use super::{AttemptEnd, Control, End, Executor, Signal, os};
use crate::attempt::{Attempts, OutputWatch};
use crate::environment::Environment;
use crate::event::{Failure, Reaction, Stream};
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

/// What takes the output of one attempt, in a thread of its own.
pub trait Recorder: Send {
    /// Takes the next bytes of a stream.
    ///
    /// # Errors
    ///
    /// If they cannot be kept; nothing more is then given to it.
    fn output(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()>;

    /// Takes note that there is no more.
    ///
    /// # Errors
    ///
    /// If what was given before cannot be kept.
    fn end(&mut self) -> io::Result<()>;
}

/// Where the streams of commands lead.
pub enum Streams<'a> {
    /// They are our own, stdin included.
    Live,
    /// What is printed goes to a recorder; there is nothing to read.
    Recorded {
        /// Whether commands print to a terminal of their own, which makes one stream of two.
        pty: bool,
        /// Returns what takes the output of an attempt in a stack, counted from 1.
        recorder: RecorderFor<'a>,
    },
}

/// Returns what takes the output of an attempt in a stack, counted from 1.
pub type RecorderFor<'a> = Box<dyn FnMut(StackIndex, u32) -> io::Result<Box<dyn Recorder>> + 'a>;

/// Runs the command of each stack as a process.
pub struct Commands<'a> {
    /// The command of a stack.
    pub task: Box<dyn Fn(StackIndex) -> Task + 'a>,
    /// Where the streams of commands lead.
    pub streams: Streams<'a>,
}

impl Executor for Commands<'_> {
    type Command = Running;

    fn start(
        &mut self,
        stack: StackIndex,
        attempts: &Attempts,
        attempt: u32,
        end: End,
    ) -> Result<Running, Failure> {
        let task = (self.task)(stack);
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
        let (has_own_group, reading) = match &mut self.streams {
            Streams::Live => (!os::is_interactive(), None),
            Streams::Recorded { pty, recorder } => {
                let no_room = |error: io::Error| {
                    Failure::NotStarted(format!("there is no room for its output: {error}"))
                };
                let recorder = recorder(stack, attempt).map_err(no_room)?;
                command.stdin(Stdio::null());
                let pipes = os::Pipes::attach(&mut command, *pty).map_err(|error| {
                    Failure::NotStarted(format!("its output cannot be read: {error}"))
                })?;
                let recording = Recording {
                    recorder,
                    watch: OutputWatch::new(attempts),
                    problem: None,
                };
                (true, Some((pipes, recording)))
            }
        };
        if has_own_group {
            os::set_own_group(&mut command);
        }
        let not_started = |error: io::Error| Failure::NotStarted(os::start_problem(&error));
        // The thread that waits exists before there is anything to wait for: a command that nobody
        // could wait for must not start.
        let is_reaped = Arc::new(Mutex::new(false));
        let (to_waiter, from_loop) = mpsc::channel::<Child>();
        let attendant = {
            let is_reaped = is_reaped.clone();
            move || {
                if let Ok(child) = from_loop.recv() {
                    end.tell(attend(child, reading, &is_reaped));
                }
            }
        };
        thread::Builder::new()
            .spawn(attendant)
            .map_err(not_started)?;
        let started = Instant::now();
        let child = command.spawn().map_err(not_started)?;
        // Our copies of its ends of the pipes are closed, or its output would never end.
        drop(command);
        let process = child.id();
        debug!(process, "started");
        to_waiter.send(child).expect("the attendant waits for it");
        Ok(Running {
            process,
            started,
            has_own_group,
            is_reaped,
        })
    }
}

/// A command that has been started.
#[derive(Debug)]
pub struct Running {
    process: u32,
    started: Instant,
    /// Whether the command has a process group of its own.
    has_own_group: bool,
    /// Once the process is reaped its number may belong to another, so it is signalled no more.
    is_reaped: Arc<Mutex<bool>>,
}

impl Control for Running {
    fn react(&self, reaction: Reaction, signal: Option<&Signal>) {
        let is_reaped = self
            .is_reaped
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *is_reaped {
            return;
        }
        // The terminal reaches what was running at that moment.
        let has_reached = signal.is_some_and(|signal| {
            !self.has_own_group && !signal.from_process && signal.at > self.started
        });
        match (reaction, signal) {
            (Reaction::Interrupt, _) if has_reached => {}
            (Reaction::Interrupt, Some(signal)) => {
                os::send(self.process, self.has_own_group, signal.number);
            }
            (Reaction::Interrupt, None) => os::interrupt(self.process, self.has_own_group),
            (Reaction::Terminate, _) => os::terminate(self.process, self.has_own_group),
            (Reaction::Kill, _) => os::kill(self.process, self.has_own_group),
        }
    }
}

/// The output of one attempt on its way.
struct Recording {
    recorder: Box<dyn Recorder>,
    watch: Option<OutputWatch>,
    /// Why the recorder gets nothing more.
    problem: Option<String>,
}

impl Recording {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if let Some(watch) = &mut self.watch {
            watch.output(stream, bytes);
        }
        if self.problem.is_none()
            && let Err(error) = self.recorder.output(stream, bytes)
        {
            self.problem = Some(error.to_string());
        }
    }

    fn end(&mut self) {
        if let Err(error) = self.recorder.end() {
            self.problem.get_or_insert(error.to_string());
        }
    }
}

/// Stays with a command to its end.
fn attend(
    mut child: Child,
    reading: Option<(os::Pipes, Recording)>,
    is_reaped: &Mutex<bool>,
) -> AttemptEnd {
    let mut output_matches = false;
    let mut output_lost = None;
    if let Some((pipes, mut recording)) = reading {
        let process = child.id();
        let read = pipes.read(process, |stream, bytes| recording.output(stream, bytes));
        recording.end();
        output_matches = recording.watch.is_some_and(|watch| watch.has_matched());
        output_lost = recording.problem.or(read.err());
    }
    os::wait_without_reaping(child.id());
    let mut is_reaped = is_reaped.lock().unwrap_or_else(PoisonError::into_inner);
    let status = child.wait();
    *is_reaped = true;
    drop(is_reaped);
    AttemptEnd {
        result: result(status),
        output_matches,
        output_lost,
    }
}

fn result(status: io::Result<ExitStatus>) -> Result<(), Failure> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(os::failure(status)),
        Err(error) => Err(Failure::Lost(error.to_string())),
    }
}
