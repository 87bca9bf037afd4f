//! Records a run in the state: before the first attempt in a stack its intent, after the last one its result.
//!
//! No command starts before its intent is confirmed. The confirmation is a step of its own, [`Step::Confirmation`](super::turn::Step::Confirmation),
//! so that signals, time limits and other stacks do not wait for the network. This module doesn't know which commands
//! are recorded, or where the document is.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::event::{Ending, Failure, Outcome};
use super::execute::{Inbox, StateAlarm, StepEnd, StepReporter};
pub use super::stack_record::{Effect, Findings, NewEntry, NewGeneration};
use super::turn::TurnIndex;
use crate::path::StackPath;
use crate::state::document::{Entry, RunAction};
use crate::state::writer::{Change, Report, StateWriter, WriterEnd};

/// The ticket of changes that no one waits for.
const NO_TICKET: u64 = u64::MAX;

/// The progress of the intents, by turn.
#[derive(Debug, Default)]
struct Intents {
    /// Those that are not confirmed yet.
    open: HashMap<u64, StepReporter>,
    /// Those that are confirmed and not withdrawn.
    confirmed: HashSet<u64>,
    /// Those whose command has started, which may have taken effect.
    begun: HashSet<u64>,
    /// The records of turns whose tool was asked for the effect of its plan file.
    asked: HashMap<u64, NewEntry>,
}

type Questions = Arc<Mutex<Intents>>;

fn lock(questions: &Questions) -> MutexGuard<'_, Intents> {
    questions.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ticket(turn: TurnIndex) -> u64 {
    turn.get() as u64
}

pub struct RunState {
    run: String,
    writer: Arc<StateWriter>,
    /// By turn; none for a stack whose command is not recorded.
    records: RefCell<Vec<Option<NewEntry>>>,
    /// The records of added turns, by stack.
    followups: HashMap<StackPath, NewEntry>,
    /// The keys of stacks that have several turns from the beginning.
    several: HashSet<String>,
    /// The recorded entries of stacks whose turns have ended, by key, if turns may be added.
    latest: RefCell<HashMap<String, Option<Entry>>>,
    questions: Questions,
    /// Whether results are sent. Without its entry, only its result shows that a stack was destroyed.
    sends_results: bool,
    /// The stacks that were destroyed and whose results are not sent yet, by turn.
    destroyed: RefCell<BTreeMap<TurnIndex, NewEntry>>,
}

/// Receives the reports of the state writer: see [`StateWriter::start`].
pub struct WriterReports {
    questions: Questions,
    alarm: StateAlarm,
}

impl WriterReports {
    pub fn take(&self, report: Report) {
        match report {
            Report::Confirmed(tickets) => {
                for ticket in tickets {
                    let mut intents = lock(&self.questions);
                    if let Some(end) = intents.open.remove(&ticket) {
                        intents.confirmed.insert(ticket);
                        end.tell(answered(Ok(())));
                    }
                }
            }
            Report::Slow { .. } => {}
            Report::Lost(loss) => self.alarm.ring(&loss),
        }
    }
}

fn answered(result: Result<(), Failure>) -> StepEnd {
    StepEnd {
        result,
        changes: None,
        output_matches: false,
        output_lost: None,
    }
}

pub struct StatePlan {
    records: Vec<Option<NewEntry>>,
    /// Changes to record at once, by key.
    changes: Vec<(String, Change)>,
    followups: HashMap<StackPath, NewEntry>,
    questions: Questions,
}

impl StatePlan {
    /// Plans the records, by turn.
    pub fn new(records: Vec<Option<NewEntry>>) -> Self {
        StatePlan {
            records,
            changes: Vec::new(),
            followups: HashMap::new(),
            questions: Questions::default(),
        }
    }

    /// Adds changes to record at once, by key.
    #[must_use]
    pub fn with_changes(mut self, changes: Vec<(String, Change)>) -> Self {
        self.changes = changes;
        self
    }

    /// Adds the records of added turns, by stack.
    pub fn add_followups(&mut self, followups: HashMap<StackPath, NewEntry>) {
        self.followups = followups;
    }

    pub(super) fn reports(&self, inbox: &Inbox) -> WriterReports {
        WriterReports {
            questions: self.questions.clone(),
            alarm: inbox.state_alarm(),
        }
    }

    pub(super) fn record(&self, turn: usize) -> Option<&NewEntry> {
        self.records.get(turn)?.as_ref()
    }

    /// Begins, with the writer that reports to [`Self::reports`].
    pub(super) fn begin(self, run: String, writer: StateWriter, sends_results: bool) -> RunState {
        for (key, change) in self.changes {
            writer.change(&key, change, NO_TICKET);
        }
        let mut seen = HashSet::new();
        let keys = self.records.iter().flatten().map(|record| &record.key);
        let several = keys.filter(|key| !seen.insert(*key)).cloned().collect();
        RunState {
            run,
            several,
            writer: Arc::new(writer),
            records: RefCell::new(self.records),
            followups: self.followups,
            latest: RefCell::default(),
            questions: self.questions,
            sends_results,
            destroyed: RefCell::default(),
        }
    }
}

impl RunState {
    fn record(&self, turn: TurnIndex) -> Option<Ref<'_, NewEntry>> {
        let records = self.records.borrow();
        Ref::filter_map(records, |records| records.get(turn.get())?.as_ref()).ok()
    }

    /// Returns the record of a turn of a stack that is added, if it is recorded.
    pub(super) fn followup(&self, stack: &StackPath) -> Option<&NewEntry> {
        self.followups.get(stack)
    }

    /// Notes that a turn is added: the next by number.
    pub(super) fn added(&self, stack: &StackPath) {
        let mut record = self.followups.get(stack).cloned();
        if let Some(record) = &mut record
            && let Some(latest) = self.latest.borrow().get(&record.key)
        {
            record.earlier.clone_from(latest);
        }
        self.records.borrow_mut().push(record);
    }

    /// Notes the recorded entry, for later turns of the stack.
    fn note(&self, turn: TurnIndex, key: &str, change: &Change) {
        let now = match change {
            Change::Put(entry) => Some(entry.as_kept()),
            Change::Destroyed => None,
            _ => return,
        };
        if self.followups.is_empty() && !self.several.contains(key) {
            return;
        }
        let mut records = self.records.borrow_mut();
        let n_known = records.len();
        let added = (0..n_known).filter(|number| *number > turn.get());
        for number in added {
            if let Some(record) = &mut records[number]
                && record.key == key
            {
                record.earlier.clone_from(&now);
                // It was destroyed to be recreated.
                let is_first = self.several.contains(key) && now.is_none();
                record.is_made_anew |= is_first && record.action == RunAction::Apply;
            }
        }
        self.latest.borrow_mut().insert(key.to_owned(), now);
    }

    /// Asks for the confirmation of an intent, and before further attempts, whether the lock is still held.
    pub(super) fn ask(&self, turn: TurnIndex, end: StepReporter) -> OpenIntent {
        self.send_question(turn, end);
        OpenIntent {
            ticket: ticket(turn),
            key: self
                .record(turn)
                .map(|it| it.key.clone())
                .unwrap_or_default(),
            questions: self.questions.clone(),
            writer: self.writer.clone(),
        }
    }

    /// Notes that a command has started, which may have taken effect.
    pub(super) fn started(&self, turn: TurnIndex) {
        let mut intents = lock(&self.questions);
        if intents.confirmed.contains(&ticket(turn)) {
            intents.begun.insert(ticket(turn));
        }
    }

    fn send_question(&self, turn: TurnIndex, end: StepReporter) {
        let ticket = ticket(turn);
        let is_confirmed = lock(&self.questions).confirmed.contains(&ticket);
        let Some(record) = self.record(turn) else {
            return end.tell(answered(Ok(())));
        };
        lock(&self.questions).open.insert(ticket, end);
        if is_confirmed {
            return self.writer.renew(ticket);
        }
        if record.plan_file.is_none() {
            return self
                .writer
                .change(&record.key, record.intent(&self.run), ticket);
        }
        let mut record = record.clone();
        let (run, questions) = (self.run.clone(), self.questions.clone());
        let writer = Arc::downgrade(&self.writer);
        let asking = thread::Builder::new().spawn(move || {
            let asked = record.ask_tool();
            let mut intents = lock(&questions);
            if let Err(problem) = asked {
                if let Some(end) = intents.open.remove(&ticket) {
                    end.tell(answered(Err(Failure::NotStarted(problem))));
                }
                return;
            }
            // A withdrawn question has no writer any more.
            if intents.open.contains_key(&ticket)
                && let Some(writer) = writer.upgrade()
            {
                writer.change(&record.key, record.intent(&run), ticket);
                intents.asked.insert(ticket, record);
            }
        });
        if let Err(error) = asking
            && let Some(end) = lock(&self.questions).open.remove(&ticket)
        {
            let problem = format!("its plan file cannot be read: {error}");
            end.tell(answered(Err(Failure::NotStarted(problem))));
        }
    }

    /// Records the result of a turn that had begun.
    pub(super) fn ended(&self, ending: &Ending, findings: Option<Findings>) {
        let failure = match &ending.outcome {
            Outcome::Succeeded => None,
            Outcome::Failed(failure) => Some(failure),
            Outcome::Unconfirmed | Outcome::Skipped { .. } | Outcome::Cancelled(_) => return,
        };
        let asked = lock(&self.questions).asked.remove(&ticket(ending.turn));
        let Some(record) = asked.or_else(|| self.record(ending.turn).as_deref().cloned()) else {
            return;
        };
        let has_begun = lock(&self.questions)
            .confirmed
            .contains(&ticket(ending.turn));
        let has_failed_checks = findings.as_ref().is_some_and(|it| it.has_failed_checks);
        let is_undone = failure.is_some() && !has_failed_checks;
        // Only the turns of a plan have findings.
        let is_of_plan = findings.is_some();
        let has_acted = lock(&self.questions).begun.contains(&ticket(ending.turn));
        let change = match failure {
            // Its outputs or inputs may be as recorded, so nothing else would show that it needs an apply.
            Some(failure) if is_undone && !has_begun && is_of_plan => {
                let Some(refused) = record.refused(&self.run, failure) else {
                    return;
                };
                refused
            }
            // A turn that needed no command may still have findings to record.
            _ if !has_begun && (is_undone || !is_of_plan) => return,
            _ if is_undone && !has_acted => Change::Withdrawn,
            _ => record.ended(&self.run, failure, findings),
        };
        self.note(ending.turn, &record.key, &change);
        // Its next turn needs the change at once.
        let is_last = !self.several.contains(&record.key);
        if self.sends_results && is_last && change == Change::Destroyed {
            self.destroyed.borrow_mut().insert(ending.turn, record);
            return;
        }
        self.writer.change(&record.key, change, NO_TICKET);
    }

    /// Removes the entry of a stack that a turn has destroyed, now that the result of the turn is sent.
    pub(super) fn sent(&self, turn: TurnIndex) {
        if let Some(record) = self.destroyed.borrow_mut().remove(&turn) {
            self.writer
                .change(&record.key, Change::Destroyed, NO_TICKET);
        }
    }

    /// Returns whether stacks were destroyed whose results are not sent yet.
    pub(super) fn has_unsent(&self) -> bool {
        !self.destroyed.borrow().is_empty()
    }

    /// Records destroys as failed whose results could not be sent. Returns whether there are any.
    pub(super) fn fail_unsent(&self) -> bool {
        let unsent = self.destroyed.take();
        for record in unsent.values() {
            let failure = Failure::Lost("its result could not be sent".to_owned());
            let change = record.ended(&self.run, Some(&failure), None);
            self.writer.change(&record.key, change, NO_TICKET);
        }
        !unsent.is_empty()
    }

    /// Waits until everything is written, or cannot be written any more.
    pub(super) fn finish(self) -> WriterEnd {
        match Arc::try_unwrap(self.writer) {
            Ok(writer) => writer.finish(None),
            Err(_) => unreachable!("every question ends with its turn"),
        }
    }
}

/// An intent that is not confirmed yet.
pub(super) struct OpenIntent {
    ticket: u64,
    key: String,
    questions: Questions,
    writer: Arc<StateWriter>,
}

impl OpenIntent {
    /// Withdraws the intent, as if it had never been recorded. It may have been confirmed just now.
    pub(super) fn withdraw(&self) {
        let mut intents = lock(&self.questions);
        // The effect of an earlier attempt remains.
        if !intents.begun.contains(&self.ticket) {
            self.writer.change(&self.key, Change::Withdrawn, NO_TICKET);
            intents.confirmed.remove(&self.ticket);
        }
        if let Some(end) = intents.open.remove(&self.ticket) {
            let failure = Failure::NotStarted("its intent was not confirmed".to_owned());
            end.tell(answered(Err(failure)));
        }
    }
}
