//! What a run writes while it holds the lock.
//!
//! A run tells the writer of each stack what it is about to do, and what came of it. The writer brings
//! that to the run record, as much as there is with each write, and reports what has arrived. It works
//! on threads of its own: the network must not hold up signals, time and other stacks.
//!
//! Whatever is to be written is in a file of the run first, from which it can be recovered if the
//! backend is gone or the lock was taken away. The file is written at once, however long the backend
//! takes to answer.

mod change;
mod core;
mod pauses;
mod request;

use std::fmt;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use self::change::Change;
pub use self::core::Core;
pub use self::pauses::Pauses;
pub use self::request::{WriterAnswer, WriterRequest};
use super::backend::Backend;
use super::clock::Clock;
use super::lock::Locked;
use crate::folder::{GuardedFolder, Unusable};

/// What the writer tells the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The changes with these tickets are written; so is whatever was told before them.
    Confirmed(Vec<u64>),
    /// The backend has not taken what is due for some seconds.
    Slow,
    /// Nothing that is not confirmed will be: no command may start any more. Comes once.
    Lost(Loss),
}

/// Why nothing can be written any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// Somebody has taken the lock away, or has put something else in its place.
    Taken {
        /// Who, if that is known.
        by: Option<String>,
    },
    /// The backend did not return in time.
    Gone {
        /// What was wrong with it last.
        problem: String,
    },
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Taken { by: Some(by) } => {
                write!(f, "{by} has taken the lock of the state away")
            }
            Loss::Taken { by: None } => f.write_str("the lock of the state was taken away"),
            Loss::Gone { problem } => write!(f, "the state cannot be written: {problem}"),
        }
    }
}

/// How a run's writing ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriterEnd {
    /// Everything is in the document, in the write with this serial, and the lock is free.
    Written { serial: u64 },
    /// Not everything is. What is missing can be recovered from the file of the run.
    Lost {
        /// Why.
        loss: Loss,
        /// Why not even the file of the run has it, if it has not.
        unkept: Option<String>,
    },
}

/// Where a run keeps a copy of what it is about to write.
#[derive(Debug, Clone)]
pub struct LocalCopy {
    /// The folder `.orch`.
    folder: GuardedFolder,
    /// The file in it, whose directory exists: `runs/01a2…/state.json`.
    path: String,
}

impl LocalCopy {
    /// The name of the file in the folder of a run.
    pub(crate) const FILE: &str = "state.json";

    /// Returns the copy of a run.
    pub fn of(folder: GuardedFolder, run: &str) -> Self {
        let path = format!("runs/{run}/{}", Self::FILE);
        LocalCopy { folder, path }
    }

    /// Reads the copy, if there is one.
    pub fn read(&self) -> Result<Option<Vec<u8>>, Unusable> {
        self.folder.read(&self.path)
    }

    /// Removes the copy, whose content is in the document.
    pub fn remove(&self) -> Result<(), Unusable> {
        self.folder.remove(&self.path)
    }

    /// Writes the copy.
    fn write(&self, bytes: &[u8]) -> Result<(), Unusable> {
        self.folder.replace(&self.path, bytes)
    }
}

/// What the writer hears.
enum Message {
    /// A change, from the run.
    Change(String, Change, u64),
    /// The question whether the lock is still held, from the run.
    Renew(u64),
    /// The end of the run.
    Finish(Option<String>),
    /// From the backend.
    Answer(Box<WriterAnswer>),
    /// Whoever could send more has gone.
    Gone,
}

/// Sends messages to the writer, the last one when it is dropped.
#[derive(Debug)]
struct Outbox(Sender<Message>);

impl Outbox {
    fn send(&self, message: Message) {
        // A writer that has ended hears nothing more.
        _ = self.0.send(message);
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.send(Message::Gone);
    }
}

/// The writer of a run that holds the lock. One that is dropped leaves the lock where it is.
#[derive(Debug)]
pub struct StateWriter {
    outbox: Outbox,
    thread: JoinHandle<WriterEnd>,
}

impl StateWriter {
    /// Starts the writer of a run. It tells the run what has become of its changes by `report`, which
    /// must not block.
    ///
    /// # Errors
    ///
    /// If no thread can be started. The lock stays where it is.
    pub fn start(
        backend: Backend,
        locked: Locked,
        copy: Option<LocalCopy>,
        pauses: Pauses,
        clock: impl Clock + Send + 'static,
        report: impl FnMut(Report) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let (requests, due) = mpsc::channel();
        let answers = Outbox(sender.clone());
        thread::Builder::new()
            .name("backend".to_owned())
            .spawn(move || ask(&backend, &due, &answers))?;
        let core = Core::new(locked, copy, pauses, Box::new(clock));
        let thread = thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || write(core, &requests, &receiver, report))?;
        let outbox = Outbox(sender);
        Ok(StateWriter { outbox, thread })
    }

    /// Tells the writer of a change of a stack, whose key is the text that `orch list` prints. The
    /// ticket comes back when the change is written. Returns at once.
    pub fn change(&self, stack: &str, change: Change, ticket: u64) {
        let message = Message::Change(stack.to_owned(), change, ticket);
        self.outbox.send(message);
    }

    /// Asks whether the lock is still held. The ticket comes back if it is. Returns at once.
    pub fn renew(&self, ticket: u64) {
        self.outbox.send(Message::Renew(ticket));
    }

    /// Waits until everything is in the document and the lock is free, or until that cannot be any
    /// more. What has begun and not ended counts as interrupted. `reason` is for the history.
    pub fn finish(self, reason: Option<String>) -> WriterEnd {
        self.outbox.send(Message::Finish(reason));
        match self.thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Makes requests, one at a time.
fn ask(backend: &Backend, due: &Receiver<WriterRequest>, answers: &Outbox) {
    for request in due {
        let answer = request.make(backend);
        answers.send(Message::Answer(Box::new(answer)));
    }
}

/// Does what messages ask for until the run ends.
fn write(
    mut core: Core,
    requests: &Sender<WriterRequest>,
    receiver: &Receiver<Message>,
    mut report: impl FnMut(Report) + Send,
) -> WriterEnd {
    let mut first = None;
    loop {
        for message in first.take().into_iter().chain(receiver.try_iter()) {
            match message {
                Message::Change(stack, change, ticket) => core.change(stack, change, ticket),
                Message::Renew(ticket) => core.renew(ticket).into_iter().for_each(&mut report),
                Message::Finish(reason) => core.finish(reason),
                Message::Answer(answer) => core.hear(*answer).into_iter().for_each(&mut report),
                Message::Gone => return core.abandon(),
            }
        }
        core.keep();
        if let Some(ended) = core.ended() {
            return ended.clone();
        }
        let wait = core.wait();
        if wait == Duration::ZERO {
            if requests.send(core.ask()).is_err() {
                return core.abandon();
            }
            continue;
        }
        if let Some(told) = core.tick() {
            report(told);
            continue;
        }
        match receiver.recv_timeout(wait.min(core.patience())) {
            Ok(message) => first = Some(message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return core.abandon(),
        }
    }
}
