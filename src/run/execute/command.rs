//! Commands as processes.
//!
//! A thread for each command reads its output where that is stored, waits for its end, and reports to the loop.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tracing::debug;

use super::retry::OutputWatch;
use super::worker::{Job, WorkerPool};
use super::{Control, OutputKeeper, Signal, StepEnd, StepReporter, StepStart, os};
use crate::project::environment::{Environment, compose};
use crate::record::logs::Stream;
use crate::run::event::{Failure, Reaction};
use crate::run::terraform::summary::SummaryFinder;
use crate::run::turn::{Turn, TurnIndex};

#[derive(Debug, Clone)]
pub struct Task {
    /// The program as typed, which it sees as its own name.
    pub name: OsString,
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Changes to our own environment.
    pub environment: Environment,
    /// The file for its standard output, which is an answer to `orch` and may hold secrets; the run does not show it.
    pub answer: Option<PathBuf>,
    /// Files that an earlier attempt may have left, which are removed before it starts.
    pub stale: Vec<PathBuf>,
}

impl Task {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        os::set_name(&mut command, &self.name);
        command.args(&self.arguments).current_dir(&self.directory);
        compose(&mut command, &self.environment);
        command
    }

    /// Runs it, and returns its standard output. Fails if it cannot be started, or fails.
    pub(in crate::run) fn output(&self) -> io::Result<Vec<u8>> {
        let output = self.command().stdin(Stdio::null()).output()?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(io::Error::other(output.status.to_string()))
        }
    }
}

/// Receives the output of one attempt, in a thread of its own.
pub trait Recorder: Send {
    fn log(&self) -> &Path;

    /// Takes the next bytes of a stream.
    fn output(&mut self, stream: Stream, bytes: &[u8]);

    /// Ends the output of a step; another step of the attempt may follow. Fails if some of the
    /// output could not be stored.
    fn end(&mut self) -> io::Result<()>;
}

/// Where the streams of commands lead.
pub enum Streams<'a> {
    /// They are our own, stdin included.
    Live,
    /// Output is read by a recorder; there is no input.
    Recorded {
        outlet: Outlet,
        /// Returns the recorder for an attempt, counted from 1, with all its steps.
        recorder: RecorderFor<'a>,
        /// Stores the output if `orch` is killed.
        keeper: OutputKeeper,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlet {
    /// A pipe for each of its streams.
    Pipes,
    /// One pipe for both streams, which keeps their order; everything counts as stdout.
    OnePipe,
    /// A terminal of its own, which also merges the two streams.
    Terminal,
}

/// Returns the recorder for an attempt of a turn, counted from 1.
pub type RecorderFor<'a> = Box<dyn FnMut(TurnIndex, &Turn, u32) -> Box<dyn Recorder> + 'a>;

/// Runs the steps of turns as processes.
pub struct Commands<'a> {
    task: Box<dyn Fn(TurnIndex, usize) -> Result<Task, Failure> + 'a>,
    streams: Streams<'a>,
    workers: WorkerPool<Work>,
}

impl<'a> Commands<'a> {
    /// Runs the commands that `task` returns, by turn and step, with these streams. A step without one fails.
    pub fn new(
        task: impl Fn(TurnIndex, usize) -> Result<Task, Failure> + 'a,
        streams: Streams<'a>,
    ) -> Self {
        Commands {
            task: Box::new(task),
            streams,
            workers: WorkerPool::default(),
        }
    }
}

impl Commands<'_> {
    /// Starts the command of a step. `previous` is that of the step before, in the same attempt: they share the log.
    pub(in crate::run) fn start<C>(
        &mut self,
        start: StepStart<'_, C>,
        previous: Option<Running>,
    ) -> Result<Running, Failure> {
        let task = (self.task)(start.index, start.step)?;
        debug!(
            program = %task.program.display(),
            directory = %task.directory.display(),
            "start"
        );
        let mut command = task.command();
        let (has_own_group, reading) = match &mut self.streams {
            Streams::Live => (!os::is_interactive(), None),
            Streams::Recorded {
                outlet,
                recorder,
                keeper,
            } => {
                command.stdin(Stdio::null());
                let pipes = os::Pipes::attach(&mut command, *outlet).map_err(|error| {
                    Failure::NotStarted(format!("its output cannot be read: {error}"))
                })?;
                let previous = previous.and_then(|running| running.recording);
                let recording = previous.unwrap_or_else(|| {
                    Arc::new(Mutex::new(OutputRecording {
                        recorder: recorder(start.index, start.turn, start.attempt),
                        watch: OutputWatch::new(start.attempts),
                        summary: SummaryFinder::default(),
                    }))
                });
                let kept = keeper
                    .keep(lock(&recording).recorder.log(), &pipes)
                    .map_err(|error| {
                        Failure::NotStarted(format!(
                            "the process that stores its output cannot be started: {error}"
                        ))
                    })?;
                let reading = Reading {
                    pipes,
                    recording,
                    kept,
                };
                (true, Some(reading))
            }
        };
        for file in &task.stale {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Failure::NotStarted(format!(
                        "files of an earlier attempt cannot be removed: {error}"
                    )));
                }
                _ => {}
            }
        }
        if let Some(file) = &task.answer {
            // Its folder is private.
            let file = File::create(file).map_err(|error| {
                Failure::NotStarted(format!("its answer cannot be stored: {error}"))
            })?;
            command.stdout(file);
        }
        if has_own_group {
            os::set_own_group(&mut command);
        }
        let terminal = (!has_own_group).then(os::TerminalModes::now).flatten();
        let not_started = |error: io::Error| {
            let problem = if task.directory.is_dir() {
                os::start_problem(&error)
            } else {
                "the stack directory no longer exists".to_owned()
            };
            Failure::NotStarted(problem)
        };
        // The waiting thread comes first: a command that nothing can wait for must not start.
        let worker = self.workers.take().map_err(not_started)?;
        // The next step writes to the same log.
        let recording = reading
            .as_ref()
            .filter(|_| start.step + 1 < start.turn.steps.len())
            .map(|reading| reading.recording.clone());
        let life = Arc::new(Mutex::new(ProcessLife::default()));
        let started = Instant::now();
        let child = command.spawn().map_err(not_started)?;
        // Closes our copies of its ends of the pipes, or its output would never end.
        drop(command);
        let process = child.id();
        debug!(process, "started");
        worker.run(Work {
            monitored: MonitoredProcess {
                child,
                has_own_group,
                life: life.clone(),
                n_looks: 0,
            },
            terminal,
            reading,
            end: start.end,
        });
        Ok(Running {
            recording,
            process,
            started,
            has_own_group,
            life,
        })
    }
}

pub struct Running {
    /// The recorder of its output, if another step follows.
    recording: Option<Arc<Mutex<OutputRecording>>>,
    process: u32,
    started: Instant,
    has_own_group: bool,
    life: Arc<Mutex<ProcessLife>>,
}

/// State of a command that the loop and the worker share.
#[derive(Debug, Default)]
struct ProcessLife {
    /// Whether we have interrupted, terminated or killed it.
    has_reacted: bool,
    /// Once nothing is left of it, its number may belong to another process: it is not signalled again.
    is_over: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Control for Running {
    fn react(&self, reaction: Reaction, signal: Option<&Signal>) -> bool {
        let mut life = lock(&self.life);
        if life.is_over {
            // A process in our group may have got the signal before us.
            return !self.has_own_group;
        }
        life.has_reacted = true;
        // The terminal signals the processes that run at that moment.
        let has_reached = signal.is_some_and(|signal| {
            !self.has_own_group && !signal.from_process && signal.at > self.started
        });
        match (reaction, signal) {
            (Reaction::Interrupt, _) if has_reached => {}
            (Reaction::Interrupt, Some(signal)) => {
                os::pass_on(self.process, self.has_own_group, signal.number);
            }
            (Reaction::Interrupt, None) => os::interrupt(self.process, self.has_own_group),
            (Reaction::Terminate, _) => os::terminate(self.process, self.has_own_group),
            (Reaction::Kill, _) => os::kill(self.process, self.has_own_group),
        }
        // A stopped process would notice nothing.
        if self.has_own_group {
            os::resume(self.process);
        }
        true
    }
}

/// A command, as seen by the thread that waits for it.
///
/// It ends when its process ends, or, once we have signalled it, when its whole process group ends: a wrapper may die
/// of an interrupt at once while its children need a while.
struct MonitoredProcess {
    child: Child,
    has_own_group: bool,
    life: Arc<Mutex<ProcessLife>>,
    /// How often we have checked whether the group has ended.
    n_looks: u32,
}

/// How often to check whether a process group has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Every how many checks a more expensive one is due.
const THOROUGHLY: u32 = 20;

impl MonitoredProcess {
    /// Returns whether the process or group to wait for has ended. A later reaction may extend the wait.
    fn has_ended(&mut self) -> bool {
        let life = self.life.clone();
        let mut life = lock(&life);
        if life.is_over || !os::has_ended(self.child.id()) {
            return life.is_over;
        }
        if !(self.has_own_group && life.has_reacted) {
            return true;
        }
        // An unreaped process keeps the group from being empty. The child keeps the status.
        _ = self.child.wait();
        self.look(&mut life)
    }

    /// Checks whether the group of a reaped command is empty.
    fn look(&mut self, life: &mut ProcessLife) -> bool {
        self.n_looks += 1;
        let is_thorough = self.n_looks.is_multiple_of(THOROUGHLY);
        life.is_over |= os::has_group_ended(self.child.id(), is_thorough);
        life.is_over
    }

    /// Waits for the end, and returns how the command itself ended.
    fn wait(mut self, wants_terminal: impl Fn()) -> io::Result<ExitStatus> {
        let is_over = lock(&self.life).is_over;
        if !is_over {
            os::wait_without_reaping(self.child.id(), wants_terminal);
        }
        let life = self.life.clone();
        let mut life_now = lock(&life);
        let status = self.child.wait();
        if !(self.has_own_group && life_now.has_reacted) {
            life_now.is_over = true;
        }
        // Reaping and the first check happen under one lock: a free process number must not be signalled.
        while !life_now.is_over && !self.look(&mut life_now) {
            drop(life_now);
            thread::sleep(POLL_INTERVAL);
            life_now = lock(&life);
        }
        drop(life_now);
        status
    }
}

/// The output of one attempt on its way.
struct OutputRecording {
    recorder: Box<dyn Recorder>,
    watch: Option<OutputWatch>,
    summary: SummaryFinder,
}

impl OutputRecording {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if let Some(watch) = &mut self.watch {
            watch.output(stream, bytes);
        }
        self.summary.output(stream, bytes);
        self.recorder.output(stream, bytes);
    }
}

/// The output of a command that is being read.
struct Reading {
    pipes: os::Pipes,
    recording: Arc<Mutex<OutputRecording>>,
    kept: os::Kept,
}

struct Work {
    monitored: MonitoredProcess,
    /// The terminal settings before a command that has the terminal.
    terminal: Option<os::TerminalModes>,
    reading: Option<Reading>,
    end: StepReporter,
}

impl Job for Work {
    /// Reads the output of a command until it ends. Returns the function that reports the end.
    fn execute(self) -> impl FnOnce() {
        let Work {
            mut monitored,
            terminal,
            reading,
            end,
        } = self;
        let has_own_group = monitored.has_own_group;
        let wants_terminal = || {
            // Without a group of its own, the shell has stopped `orch` as well and reports that.
            if has_own_group {
                end.wants_terminal();
            }
        };
        let mut output_matches = false;
        let mut output_lost = None;
        let mut changes = None;
        if let Some(reading) = reading {
            let Reading {
                pipes,
                recording,
                kept,
            } = reading;
            let process = monitored.child.id();
            let on_output = |stream, bytes: &[u8]| lock(&recording).output(stream, bytes);
            let has_ended = || monitored.has_ended();
            let read = pipes.read(process, on_output, wants_terminal, has_ended);
            drop(kept);
            let mut recording = lock(&recording);
            let kept = recording.recorder.end();
            let watch = recording.watch.as_ref();
            output_matches = watch.is_some_and(OutputWatch::has_matched);
            changes = recording.summary.end();
            output_lost = kept.err().map(|error| error.to_string()).or(read.err());
        }
        let result = result(monitored.wait(wants_terminal));
        // It could not restore the terminal itself: it may have switched the echo off to ask for a password.
        if let (Some(terminal), Err(Failure::Signalled(_))) = (terminal, &result) {
            terminal.restore();
        }
        let how = StepEnd {
            result,
            changes,
            output_matches,
            output_lost,
        };
        move || end.tell(how)
    }
}

fn result(status: io::Result<ExitStatus>) -> Result<(), Failure> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(os::failure(status)),
        Err(error) => Err(Failure::Lost(error.to_string())),
    }
}
