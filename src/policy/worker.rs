//! The parent's side of the worker: a child process that may die at any time, and is restarted.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::memory;
use super::protocol::{ListKind, WorkerReply, WorkerRequest};
use super::{LoadProblem, PolicyOutline, PolicyOutput, Problem, RegoFile, TestOutcome, TestRule};
use crate::duration;

/// The memory that an evaluation may use besides its input, in bytes.
const MAX_MEMORY: u64 = 256 << 20;

/// The maximum length of a reply, in bytes.
const MAX_REPLY: u64 = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyNumber(usize);

pub type Loaded = Result<(PolicyNumber, PolicyOutline), LoadProblem>;

/// The tests in a file, or a problem with the index of its file.
pub type FoundTests = Result<Vec<TestRule>, (usize, LoadProblem)>;

/// The result of a test, or a problem with the index of its file.
pub type Tested = Result<TestOutcome, (usize, Problem)>;

/// The worker cannot be started, or does not work.
#[derive(Debug, thiserror::Error)]
#[error("cannot evaluate policies: {0}")]
pub struct WorkerError(#[from] io::Error);

/// A child process that evaluates policies, with the data for a restart.
#[derive(Debug)]
pub struct Worker {
    command: Vec<OsString>,
    process: Option<Process>,
    policies: Vec<(String, String)>,
    stacks: Entries,
    workflow: Entries,
}

/// The entries of a list, including those that the process has not received yet.
#[derive(Debug, Default)]
struct Entries {
    all: Vec<Box<RawValue>>,
    untold: Vec<usize>,
}

impl Worker {
    /// Returns a worker that this command starts when it is needed: the program and its arguments.
    pub fn new(command: Vec<OsString>) -> Self {
        assert!(!command.is_empty(), "a command has a program");
        Worker {
            command,
            process: None,
            policies: Vec::new(),
            stacks: Entries::default(),
            workflow: Entries::default(),
        }
    }

    /// Returns a worker with the same policies, whose lists are empty.
    #[must_use]
    pub fn another(&self) -> Self {
        Worker {
            policies: self.policies.clone(),
            ..Worker::new(self.command.clone())
        }
    }

    /// Loads a policy within a time limit. Fails if the worker cannot be started; an invalid policy
    /// is a result.
    pub fn load(
        &mut self,
        file: &str,
        text: &str,
        timeout: Duration,
    ) -> Result<Loaded, WorkerError> {
        let policy = (file.to_owned(), text.to_owned());
        let request = WorkerRequest::Load {
            file: policy.0.clone(),
            text: policy.1.clone(),
        };
        let process = self.running()?;
        let exchanged = process.ask(&request, timeout);
        match exchanged {
            Ok(WorkerReply::Loaded(Ok(outline))) => {
                self.policies.push(policy);
                Ok(Ok((PolicyNumber(self.policies.len() - 1), outline)))
            }
            Ok(WorkerReply::Loaded(Err(problem))) => Ok(Err(problem)),
            Ok(_) => Err(self.out_of_step()),
            Err(death) => {
                self.restart();
                let message = format!("loading it {death}");
                Ok(Err(LoadProblem::Refused(Problem::new(message))))
            }
        }
    }

    /// Puts an entry at a position of a list; one at its end extends it.
    pub fn put(&mut self, list: ListKind, position: usize, entry: Box<RawValue>) {
        let entries = self.entries(list);
        assert!(position <= entries.all.len(), "a list has no gaps");
        if position == entries.all.len() {
            entries.all.push(entry);
        } else {
            entries.all[position] = entry;
        }
        entries.untold.push(position);
    }

    /// Returns an input object with the lists.
    pub fn with_lists(&self, input: &RawValue) -> Box<RawValue> {
        let list = |entries: &Entries| {
            let entries = entries.all.iter().map(|entry| entry.get());
            entries.collect::<Vec<_>>().join(",")
        };
        let (stacks, workflow) = (list(&self.stacks), list(&self.workflow));
        let others = input.get().trim_end().strip_suffix('}').unwrap_or("{");
        let comma = if others.trim_end().ends_with('{') {
            ""
        } else {
            ","
        };
        let whole = format!(r#"{others}{comma}"stacks":[{stacks}],"workflow":[{workflow}]}}"#);
        RawValue::from_string(whole).expect("its parts are JSON")
    }

    /// Evaluates a policy with an input object, optionally with the lists. Fails if the worker
    /// cannot be started; a policy that fails or is killed is a result.
    pub fn evaluate(
        &mut self,
        policy: PolicyNumber,
        input: Box<RawValue>,
        with_lists: bool,
        timeout: Duration,
    ) -> Result<Result<PolicyOutput, Problem>, WorkerError> {
        if self.running()?.has_exited() {
            // It has died since; a new one gets everything.
            self.restart();
            self.running()?;
        }
        if with_lists {
            self.tell_lists()?;
        }
        let process = self.running()?;
        let request = WorkerRequest::Evaluate {
            policy: policy.0,
            is_large: process.queued.len() + input.get().len() > MAX_UNMEASURED,
            input,
            with_lists,
        };
        match process.ask(&request, timeout) {
            Ok(WorkerReply::Evaluated(result)) => Ok(result),
            Ok(_) => Err(self.out_of_step()),
            Err(death) => {
                self.restart();
                Ok(Err(Problem::new(format!("evaluating it {death}"))))
            }
        }
    }

    /// Loads files together within a time limit, and returns the tests in the last of them. Fails
    /// if the worker cannot be started; an invalid file is a result.
    pub fn find_tests(
        &mut self,
        files: &[RegoFile],
        timeout: Duration,
    ) -> Result<FoundTests, WorkerError> {
        let files = files.to_vec();
        let request = WorkerRequest::FindTests { files };
        match self.running()?.ask(&request, timeout) {
            Ok(WorkerReply::Tests(found)) => Ok(found),
            Ok(_) => Err(self.out_of_step()),
            Err(death) => {
                self.restart();
                let problem = Problem::new(format!("loading it {death}"));
                Ok(Err((0, LoadProblem::Refused(problem))))
            }
        }
    }

    /// Runs one of the last found tests, in these files. Fails if the worker cannot be started; a
    /// test that fails or is killed is a result.
    pub fn test(
        &mut self,
        files: &[RegoFile],
        name: &str,
        timeout: Duration,
    ) -> Result<Tested, WorkerError> {
        if self.process.is_none() {
            // The test before has crashed it.
            _ = self.find_tests(files, timeout)?;
        }
        let name = name.to_owned();
        match self.running()?.ask(&WorkerRequest::Test { name }, timeout) {
            Ok(WorkerReply::Tested(result)) => Ok(result),
            Ok(_) => Err(self.out_of_step()),
            Err(death) => {
                self.restart();
                let problem = Problem::new(format!("evaluating it {death}"));
                Ok(Err((files.len().saturating_sub(1), problem)))
            }
        }
    }

    fn entries(&mut self, list: ListKind) -> &mut Entries {
        match list {
            ListKind::Stacks => &mut self.stacks,
            ListKind::Workflow => &mut self.workflow,
        }
    }

    fn restart(&mut self) {
        self.process = None;
        for list in ListKind::ALL {
            let entries = self.entries(list);
            entries.untold = (0..entries.all.len()).collect();
        }
    }

    fn out_of_step(&mut self) -> WorkerError {
        self.restart();
        io::Error::other("the worker gave an answer to another question").into()
    }

    fn running(&mut self) -> Result<&mut Process, WorkerError> {
        if self.process.is_none() {
            let mut process = Process::start(&self.command)?;
            for (file, text) in &self.policies {
                let request = WorkerRequest::Load {
                    file: file.clone(),
                    text: text.clone(),
                };
                // It has been loaded before within its time limit.
                let again = process.ask(&request, Duration::from_mins(1));
                if !matches!(again, Ok(WorkerReply::Loaded(Ok(_)))) {
                    return Err(io::Error::other("a policy cannot be loaded again").into());
                }
            }
            self.process = Some(process);
        }
        Ok(self.process.as_mut().expect("it was just started"))
    }

    fn tell_lists(&mut self) -> io::Result<()> {
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        for list in ListKind::ALL {
            let entries = match list {
                ListKind::Stacks => &mut self.stacks,
                ListKind::Workflow => &mut self.workflow,
            };
            if entries.untold.is_empty() {
                continue;
            }
            let mut positions = std::mem::take(&mut entries.untold);
            positions.sort_unstable();
            positions.dedup();
            let told = positions
                .into_iter()
                .map(|position| (position, entries.all[position].clone()));
            let request = WorkerRequest::Put {
                list,
                entries: told.collect(),
            };
            process.queue(&request)?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Process {
    child: Child,
    requests: Option<ChildStdin>,
    replies: Receiver<String>,
    /// Requests that are sent with the next one: each write wakes the process.
    queued: Vec<u8>,
    /// The memory that it used when it was last asked for, and what it was sent since.
    measured: Option<u64>,
    n_sent: usize,
}

/// How much a process may be sent until its memory is measured again, in bytes.
const MAX_UNMEASURED: usize = 1 << 20;

enum WorkerExit {
    /// It was killed after this time.
    TooLong(Duration),
    /// It was killed because it used too much memory.
    TooLarge,
    Ended,
}

impl fmt::Display for WorkerExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkerExit::TooLong(limit) => write!(
                f,
                "takes longer than {} (`timeout` of the policy)",
                duration::exact(*limit)
            ),
            WorkerExit::TooLarge => write!(f, "takes more than {} MiB of memory", MAX_MEMORY >> 20),
            WorkerExit::Ended => f.write_str("crashes the interpreter"),
        }
    }
}

impl Process {
    fn start(command: &[OsString]) -> io::Result<Self> {
        let mut process = Command::new(&command[0]);
        process
            .args(&command[1..])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // A Ctrl-C must not end it: turns that have ended are still evaluated.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut process, 0);
        let mut child = process.spawn()?;
        let requests = child.stdin.take();
        let output = child.stdout.take().expect("it is a pipe");
        let (sender, replies) = mpsc::channel();
        thread::Builder::new()
            .name("replies".to_owned())
            .spawn(move || {
                let mut output = BufReader::new(output);
                loop {
                    let mut line = String::new();
                    let read = output.by_ref().take(MAX_REPLY).read_line(&mut line);
                    if !matches!(read, Ok(1..)) || !line.ends_with('\n') {
                        return;
                    }
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Process {
            child,
            requests,
            replies,
            queued: Vec::new(),
            measured: None,
            n_sent: 0,
        })
    }

    fn has_exited(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn queue(&mut self, request: &WorkerRequest) -> io::Result<()> {
        serde_json::to_writer(&mut self.queued, request)?;
        self.queued.push(b'\n');
        Ok(())
    }

    fn send(&mut self, request: &WorkerRequest) -> io::Result<()> {
        self.queue(request)?;
        let lines = std::mem::take(&mut self.queued);
        self.n_sent += lines.len();
        let requests = self.requests.as_mut().expect("it is closed last");
        requests.write_all(&lines)?;
        requests.flush()
    }

    /// Returns the reply to a request; after [`WorkerReply::Ready`] the next one.
    fn ask(
        &mut self,
        request: &WorkerRequest,
        timeout: Duration,
    ) -> Result<WorkerReply, WorkerExit> {
        let begun = Instant::now();
        // The memory of an input is not limited, that of its evaluation is.
        let mut allowed = match request {
            WorkerRequest::Load { .. }
            | WorkerRequest::FindTests { .. }
            | WorkerRequest::Evaluate {
                is_large: false, ..
            } => self.allowed(),
            WorkerRequest::Put { .. }
            | WorkerRequest::Evaluate { is_large: true, .. }
            | WorkerRequest::Test { .. } => None,
        };
        if self.send(request).is_err() {
            return Err(WorkerExit::Ended);
        }
        loop {
            match self.replies.recv_timeout(memory::LOOK) {
                Ok(line) => match serde_json::from_str(&line) {
                    Ok(WorkerReply::Ready) => allowed = self.allowed(),
                    Ok(reply) => {
                        if begun.elapsed() > memory::LOOK {
                            // It had the time to grow.
                            self.measured = None;
                        }
                        return Ok(reply);
                    }
                    Err(_) => return Err(WorkerExit::Ended),
                },
                Err(RecvTimeoutError::Disconnected) => return Err(WorkerExit::Ended),
                Err(RecvTimeoutError::Timeout) => {
                    if begun.elapsed() >= timeout {
                        return Err(WorkerExit::TooLong(timeout));
                    }
                    if let Some(allowed) = allowed
                        && memory::used(self.child.id()).is_some_and(|used| used > allowed)
                    {
                        return Err(WorkerExit::TooLarge);
                    }
                }
            }
        }
    }

    /// Returns how much memory it may use from now on, if known.
    fn allowed(&mut self) -> Option<u64> {
        if self.measured.is_none() || self.n_sent > MAX_UNMEASURED {
            self.measured = memory::used(self.child.id());
            self.n_sent = 0;
        }
        self.measured.map(|used| used + MAX_MEMORY)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.requests = None;
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
