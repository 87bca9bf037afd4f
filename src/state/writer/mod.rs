//! Writes the results of a run while it holds the lock.
//!
//! A run sends the writer each intent and each result. The writer adds them to the run record, as many as there are
//! with each write, and confirms them. It has threads of its own: the network must not delay signals, timers and
//! other stacks.
//!
//! Each change is first stored in a file on this machine, for recovery if the backend fails or the lock is lost. The
//! file is written at once, however slow the backend is.

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The changes with these tickets, and all earlier ones, are written.
    Confirmed(Vec<u64>),
    /// The backend has not taken due changes for some seconds.
    Slow {
        /// The error of the last write, if it failed.
        problem: Option<String>,
    },
    /// Unconfirmed changes will not be written: no further command may start. Reported once.
    Lost(Loss),
}

/// Why nothing can be written any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// The lock was taken, or the document was replaced.
    Taken {
        /// Who, if known.
        by: Option<String>,
    },
    /// The backend did not return in time.
    Gone { problem: String },
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Taken { by: Some(by) } => {
                write!(f, "{by} took the state lock")
            }
            Loss::Taken { by: None } => f.write_str("the state lock was taken"),
            Loss::Gone { problem } => write!(f, "the state cannot be written: {problem}"),
        }
    }
}

/// How a run's writing ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriterEnd {
    /// Everything is in the document, in the write with this serial, and the lock is free.
    Written { serial: u64 },
    /// Some changes are missing there. They can be recovered from the file of the run.
    Lost {
        loss: Loss,
        /// Why not even the file of the run has it, if it has not.
        unkept: Option<String>,
    },
}

/// The copy of a run's changes on this machine.
#[derive(Debug, Clone)]
pub struct LocalCopy {
    /// The folder `.orch`.
    folder: GuardedFolder,
    /// The file in it, whose directory exists: `runs/01a2…/state.json`.
    path: String,
}

impl LocalCopy {
    pub(crate) const FILE: &str = "state.json";

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

    fn write(&self, bytes: &[u8]) -> Result<(), Unusable> {
        self.folder.replace(&self.path, bytes)
    }
}

enum Message {
    /// A change, from the run.
    Change(String, Change, u64),
    /// The question whether the lock is still held, from the run.
    Renew(u64),
    Finish(Option<String>),
    /// From the backend.
    Answer(Box<WriterAnswer>),
    /// No more messages can arrive.
    Gone,
}

/// Sends messages to the writer, the last one when it is dropped.
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

/// The writer of a run that holds the lock. Dropping it keeps the lock.
pub struct StateWriter {
    outbox: Outbox,
    thread: JoinHandle<WriterEnd>,
}

impl StateWriter {
    /// Starts the writer of a run. It reports the progress of changes to `report`, which must not
    /// block. Fails if no thread can be started. The lock is kept.
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

    /// Sends a change of a stack to the writer. The key is the name that `orch list` prints. The ticket is confirmed
    /// when the change is written. Returns at once.
    pub fn change(&self, stack: &str, change: Change, ticket: u64) {
        let message = Message::Change(stack.to_owned(), change, ticket);
        self.outbox.send(message);
    }

    /// Asks whether the lock is still held. If so, the ticket is confirmed. Returns at once.
    pub fn renew(&self, ticket: u64) {
        self.outbox.send(Message::Renew(ticket));
    }

    /// Waits until everything is in the document and the lock is free, or until that has failed. Open intents count
    /// as interrupted. `reason` is for the history.
    pub fn finish(self, reason: Option<String>) -> WriterEnd {
        self.outbox.send(Message::Finish(reason));
        match self.thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn ask(backend: &Backend, due: &Receiver<WriterRequest>, answers: &Outbox) {
    for request in due {
        let answer = request.make(backend);
        answers.send(Message::Answer(Box::new(answer)));
    }
}

/// Handles messages until the run ends.
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
        match receiver.recv_timeout(wait.min(core.until_tick())) {
            Ok(message) => first = Some(message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return core.abandon(),
        }
    }
}
