//! Sends the results of a job's turns to the store, each when the turn has ended.
//!
//! A thread sends them, so that a slow store delays no command. A result that cannot be sent is still in the journal on
//! this machine.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryIter, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::record::journal::{Header, JournalEntry};
use crate::record::logs::Logs;
use crate::record::results::{OrderOutline, ResultLines, StoredOrder, TurnResult};
use crate::run::event::{RunEvent, Turns};
use crate::run::turn::{Operation, TurnIndex};
use crate::state::backend::Backend;
use crate::state::clock::{Clock as _, SystemClock};
use crate::state::document::{Entry, RunAction};
use crate::state::job_lease::JobLease;
use crate::state::results::ResultName;
use crate::state::store::{RETRY_TIMEOUT, StoreError};

/// How long to wait before something is tried again that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Where the results of a job go.
pub struct OrderResults {
    pub outline: Arc<OrderOutline>,
    pub backend: Backend,
    /// If no state shows which attempts have begun.
    pub marks: Option<StartMarks>,
    /// The lease of the job, if it has one.
    pub lease: Option<Arc<JobLease>>,
}

/// Marks attempts as begun.
#[derive(Debug)]
pub struct StartMarks {
    /// The store, for the thread that starts commands.
    pub store: Backend,
    /// The number of the first attempt on this machine: the time in seconds, or later.
    pub first_attempt: u32,
}

/// A result that is only on this machine.
#[derive(Debug)]
pub struct UnsentResult {
    pub stack: String,
    pub problem: String,
}

#[derive(Debug)]
pub(super) struct ResultSender {
    lines: ResultLines,
    logs: Option<Logs>,
    sender: Sender<Message>,
    /// The turns whose results are in the store.
    sent: Receiver<TurnIndex>,
    thread: JoinHandle<Vec<UnsentResult>>,
    outline: Arc<OrderOutline>,
    marks: Option<StartMarks>,
    /// The numbers of the attempts that were marked as begun.
    attempts: HashMap<usize, u32>,
    /// The header of the job, until its first turn starts.
    header: Option<Box<Header>>,
    /// Attempts of killed jobs that no other object in the store shows.
    killed: Vec<TurnResult>,
}

enum Message {
    /// The first turn starts.
    Begun(Box<Header>),
    /// A result, the number of its attempt, and its turn if that is one of this job.
    Ended(TurnResult, u32, Option<TurnIndex>),
    /// The answers of policies to a result that was sent.
    Evaluated(TurnResult),
}

impl ResultSender {
    /// Starts the thread. `logs` are those of the job.
    pub(super) fn start(
        results: OrderResults,
        header: &Header,
        logs: Option<Logs>,
    ) -> io::Result<Self> {
        let (sender, receiver) = channel();
        let (confirm, sent) = channel();
        let lines = ResultLines::new(&header.run, &results.outline);
        let OrderResults {
            outline,
            backend,
            marks,
            lease: _,
        } = results;
        let of_thread = Arc::clone(&outline);
        let thread = thread::Builder::new()
            .spawn(move || send_all(&of_thread, &backend, &receiver, &confirm))?;
        Ok(ResultSender {
            lines,
            logs,
            sender,
            sent,
            thread,
            outline,
            marks,
            attempts: HashMap::new(),
            header: Some(Box::new(header.clone())),
            killed: Vec::new(),
        })
    }

    /// Notes the entry of a stack before a turn of the job. The state forgets an attempt of a killed job with the next
    /// one.
    pub(super) fn note_earlier(&mut self, (stack, destroys): (&str, bool), earlier: &Entry) {
        let cut_off = earlier.cut_off_of(&self.outline.run);
        // Otherwise, the mark of its beginning shows it.
        let Some((run, action, since)) = cut_off.filter(|_| self.marks.is_none()) else {
            return;
        };
        let of_action = self.lines.position((stack, *action == RunAction::Destroy));
        let turn = of_action.or_else(|| self.lines.position((stack, destroys)));
        self.killed
            .extend(turn.map(|turn| self.outline.begun(run, turn, since)));
    }

    fn send(&self, message: Message) {
        // If the thread has panicked, joining it shows that.
        _ = self.sender.send(message);
    }

    pub(super) fn line(&mut self, event: &RunEvent, entry: &JournalEntry, turns: &Turns) {
        if let RunEvent::Started { .. } = event
            && let Some(header) = self.header.take()
        {
            if let Some(marks) = &self.marks {
                // Without the order, marks show nothing. If that fails, the thread tries again.
                let order = StoredOrder::new((*self.outline).clone(), (*header).clone());
                _ = marks.store.put_order(&self.outline.run, &order.to_bytes());
            }
            self.send(Message::Begun(header));
            for killed in std::mem::take(&mut self.killed) {
                self.send(Message::Ended(killed, 1, None));
            }
        }
        let index = turn_of(event);
        let of_job = index.map_or(0, |turn| turn.get() + 1);
        let turn = index.map(|turn| &turns[turn]);
        let turn = turn.map(|turn| {
            let destroys = turn.operation == Operation::Destroy;
            (turn.stack.as_str(), destroys)
        });
        if let (RunEvent::Started { attempt: 1, .. }, Some(turn)) = (event, turn) {
            self.mark_start(turn);
        }
        if let RunEvent::Evaluated(_) = event {
            let answers = turn.and_then(|turn| self.lines.answers(entry, turn));
            if let Some(answers) = answers {
                self.send(Message::Evaluated(answers));
            }
            return;
        }
        let logs = self.logs.as_ref().map(|logs| (logs, of_job));
        if let Some(result) = self.lines.add(entry, turn, logs) {
            let attempt = self.attempts.get(&result.turn).copied();
            let first = self.marks.as_ref().map(|it| it.first_attempt);
            let attempt = attempt.or(first).unwrap_or(1);
            self.send(Message::Ended(result, attempt, index));
        }
    }

    /// Marks an attempt as begun, before its command starts.
    fn mark_start(&mut self, turn: (&str, bool)) {
        let (Some(marks), Some(turn)) = (&self.marks, self.lines.position(turn)) else {
            return;
        };
        let attempt = marks.first_attempt;
        let name = ResultName { turn, attempt };
        let job = self.lines.job().as_bytes();
        // If that fails, the result may follow.
        if let Ok(attempt) = marks.store.put_start(&self.outline.run, name, job) {
            self.attempts.insert(turn, attempt);
        }
    }

    /// Returns the turns whose results were sent since the last call.
    pub(super) fn sent(&self) -> TryIter<'_, TurnIndex> {
        self.sent.try_iter()
    }

    /// Waits until everything is sent. Returns the results that are not, and the turns of the others.
    pub(super) fn end(self) -> (Vec<UnsentResult>, Vec<TurnIndex>) {
        drop(self.sender);
        match self.thread.join() {
            Ok(unsent) => (unsent, self.sent.try_iter().collect()),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn turn_of(event: &RunEvent) -> Option<TurnIndex> {
    match event {
        RunEvent::Started { turn, .. }
        | RunEvent::StepStarted { turn, .. }
        | RunEvent::Retrying { turn, .. }
        | RunEvent::TimedOut { turn, .. }
        | RunEvent::Killed(turn)
        | RunEvent::OutputLost { turn, .. } => Some(*turn),
        RunEvent::Ended(ending) => Some(ending.turn),
        RunEvent::Evaluated(evaluated) => evaluated.turn,
        _ => None,
    }
}

fn send_all(
    outline: &Arc<OrderOutline>,
    backend: &Backend,
    receiver: &Receiver<Message>,
    confirm: &Sender<TurnIndex>,
) -> Vec<UnsentResult> {
    let run = &outline.run;
    let mut order = None;
    let mut is_new = false;
    let mut unsent = Vec::new();
    let mut names: HashMap<usize, ResultName> = HashMap::new();
    for message in receiver {
        let (result, attempt, index) = match message {
            Message::Begun(of_job) => {
                let stored = StoredOrder::new((**outline).clone(), *of_job);
                match backend.put_order(run, &stored.to_bytes()) {
                    Ok(has_put) => is_new = has_put,
                    // It is sent with the first result.
                    Err(_) => order = Some(stored),
                }
                continue;
            }
            Message::Evaluated(answers) => {
                let Some(name) = names.get(&answers.turn) else {
                    continue;
                };
                let put = |bytes: Vec<u8>| with_retries(|| backend.put_answers(run, *name, &bytes));
                let bytes = answers.to_bytes().map_err(|error| error.to_string());
                if let Err(problem) = bytes.and_then(put) {
                    let stack = outline.turns[answers.turn].stack.clone();
                    unsent.push(UnsentResult { stack, problem });
                }
                continue;
            }
            Message::Ended(result, attempt, index) => (result, attempt, index),
        };
        let mut send = || -> Result<u32, String> {
            if let Some(stored) = &order {
                is_new = with_retries(|| backend.put_order(run, &stored.to_bytes()))?;
                order = None;
            }
            let bytes = result.to_bytes().map_err(|error| error.to_string())?;
            let name = ResultName {
                turn: result.turn,
                attempt,
            };
            with_retries(|| backend.put_result(run, name, &bytes))
        };
        let turn = result.turn;
        match send() {
            Ok(attempt) => {
                names.insert(turn, ResultName { turn, attempt });
                // At the end of the job, no one asks any more.
                index.map(|index| confirm.send(index));
            }
            Err(problem) => {
                let stack = outline.turns[turn].stack.clone();
                unsent.push(UnsentResult { stack, problem });
            }
        }
    }
    if is_new {
        // Some buckets forbid removal.
        _ = backend.remove_old_orders();
    }
    unsent
}

fn with_retries<T>(mut put: impl FnMut() -> Result<T, StoreError>) -> Result<T, String> {
    let clock = SystemClock::default();
    let start = clock.elapsed();
    loop {
        match put() {
            Err(error) if error.is_transient() => {
                if clock.elapsed().saturating_sub(start) >= RETRY_TIMEOUT {
                    return Err(error.to_string());
                }
                clock.sleep(RETRY);
            }
            put => return put.map_err(|error| error.to_string()),
        }
    }
}
