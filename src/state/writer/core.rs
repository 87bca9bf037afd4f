//! What is to be written when, without a thread: tests make the time up.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Map;
use tracing::debug;

use super::{Change, Ended, LocalCopy, Loss, Report};
use crate::state::backend::{Backend, Swap};
use crate::state::clock::Clock;
use crate::state::document::{Document, Entry, Lock, Write};
use crate::state::lock::Locked;
use crate::state::run_record::{RunRecord, Tally};
use crate::state::store::{Condition, Object, Presence, StoreError, Version};

/// How long the writer waits for what.
#[derive(Debug, Clone, Copy)]
pub struct Pauses {
    /// Between the beginnings of two writes.
    pub between: Duration,
    /// Between two signs of life.
    pub sign_of_life: Duration,
    /// For a backend that fails to return.
    pub patience: Duration,
    /// Before a failed write is tried again.
    pub retry: Duration,
}

impl Pauses {
    /// The pauses for a folder.
    pub const LOCAL: Pauses = Pauses {
        between: Duration::ZERO,
        sign_of_life: Duration::from_mins(1),
        patience: Duration::from_mins(1),
        retry: Duration::from_secs(1),
    };

    /// The pauses for a bucket.
    pub const REMOTE: Pauses = Pauses {
        between: Duration::from_millis(250),
        ..Pauses::LOCAL
    };
}

/// A run record that is larger is folded into the document.
const FOLD_BYTES: usize = 256 << 10;

/// The writer of a run. Each [`Self::step`] makes one write at most.
pub struct Core {
    backend: Backend,
    copy: Option<LocalCopy>,
    pauses: Pauses,
    clock: Box<dyn Clock>,
    lock: Lock,
    document: Document,
    version: Version,
    /// The record as it is in the store, as far as is known.
    record: RunRecord,
    record_version: Version,
    /// What the next record holds.
    wanted: BTreeMap<String, Option<Entry>>,
    /// What the stacks that the run has touched were before it.
    before: BTreeMap<String, Option<Entry>>,
    /// The tickets of changes that are not written.
    pending: Vec<u64>,
    is_fold_due: bool,
    /// When the last write began.
    last_write: Option<Duration>,
    /// When the last write succeeded, or the lock was taken.
    last_success: Duration,
    /// When the first of the writes began that have failed since then.
    failing_since: Option<Duration>,
    /// Set once the run has ended.
    end: Option<RunEnd>,
    ended: Option<Ended>,
    /// Whether the run knows of the loss.
    is_reported: bool,
    /// Whether the copy lacks something.
    is_copy_due: bool,
    /// Tells other processes of this machine that the holder of the lock is alive.
    _presence: Presence,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Core");
        shown.field("run", &self.lock.run);
        shown.finish_non_exhaustive()
    }
}

impl Core {
    /// Returns the writer of a run that has just taken the lock.
    pub fn new(
        backend: Backend,
        locked: Locked,
        copy: Option<LocalCopy>,
        pauses: Pauses,
        clock: Box<dyn Clock>,
    ) -> Self {
        let now = clock.elapsed();
        Core {
            backend,
            copy,
            pauses,
            lock: locked.lock,
            document: locked.document,
            version: locked.version,
            record: locked.record,
            record_version: locked.record_version,
            wanted: BTreeMap::new(),
            before: BTreeMap::new(),
            pending: Vec::new(),
            is_fold_due: false,
            last_write: None,
            last_success: now,
            failing_since: None,
            end: None,
            ended: None,
            is_reported: false,
            is_copy_due: false,
            _presence: locked.presence,
            clock,
        }
    }

    /// Takes in a change, which a later step writes.
    pub fn change(&mut self, stack: String, change: Change, ticket: u64) {
        let document = &self.document;
        let before = self.before.entry(stack.clone());
        let before = before.or_insert_with(|| document.stacks.get(&stack).cloned());
        let entry = match change {
            Change::Put(entry) => Some(*entry),
            Change::Destroyed => None,
            Change::Withdrawn => before.clone(),
        };
        self.wanted.insert(stack, entry);
        self.pending.push(ticket);
        self.is_copy_due = true;
        if self.ended.is_some() {
            self.save_copy();
        }
    }

    /// Ends the run: the next steps bring everything into the document and free the lock.
    pub fn finish(&mut self, reason: Option<String>) {
        self.end = Some(RunEnd { reason });
    }

    /// Returns whether the run has ended.
    pub fn is_finishing(&self) -> bool {
        self.end.is_some()
    }

    /// Returns how the writing has ended, once the run has, and knows.
    pub fn ended(&self) -> Option<&Ended> {
        let is_known = self.is_finishing() && (self.is_reported || !self.is_lost());
        self.ended.as_ref().filter(|_| is_known)
    }

    fn is_lost(&self) -> bool {
        matches!(self.ended, Some(Ended::Lost(_)))
    }

    /// Ends the writing of a run that went away without a word.
    pub(super) fn abandon(&self) -> Ended {
        let problem = "the run ended without a word".to_owned();
        self.ended
            .clone()
            .unwrap_or(Ended::Lost(Loss::Gone { problem }))
    }

    pub(super) fn sleep(&self, duration: Duration) {
        self.clock.sleep(duration);
    }

    /// Returns how long there is nothing to do unless the run says something; zero if a step is due.
    pub fn wait(&self) -> Duration {
        if self.ended.is_some() {
            return if self.is_reported {
                Duration::MAX
            } else {
                Duration::ZERO
            };
        }
        let next = self.last_write.map_or(Duration::ZERO, |last| {
            let pause = match self.failing_since {
                Some(_) => self.pauses.retry.max(self.pauses.between),
                None => self.pauses.between,
            };
            last + pause
        });
        let is_due = self.is_finishing() || self.is_fold_due || !self.pending.is_empty();
        let due = if is_due || self.failing_since.is_some() {
            next
        } else {
            next.max(self.last_success + self.pauses.sign_of_life)
        };
        due.saturating_sub(self.clock.elapsed())
    }

    /// Makes the write that is due, and returns what the run has to know.
    pub fn step(&mut self) -> Vec<Report> {
        let mut reports = Vec::new();
        if self.ended.is_none() {
            let began = self.clock.elapsed();
            self.last_write = Some(began);
            let result = if self.is_finishing() {
                self.write_end()
            } else if self.is_fold_due {
                self.fold()
            } else {
                self.write_record().map(|tickets| {
                    reports.extend((!tickets.is_empty()).then_some(Report::Confirmed(tickets)));
                })
            };
            match result {
                Ok(()) => {}
                Err(Failure::Lost(loss)) => self.ended = Some(Ended::Lost(loss)),
                Err(Failure::Store(error)) => self.failed(began, &error),
            }
        }
        if let Some(Ended::Lost(loss)) = &self.ended
            && !self.is_reported
        {
            self.is_reported = true;
            reports.push(Report::Lost(loss.clone()));
            self.save_copy();
        }
        reports
    }

    fn succeeded(&mut self) {
        self.last_success = self.clock.elapsed();
        self.failing_since = None;
    }

    fn failed(&mut self, began: Duration, error: &StoreError) {
        debug!(%error, "the state cannot be written");
        let since = *self.failing_since.get_or_insert(began);
        if self.clock.elapsed().saturating_sub(since) >= self.pauses.patience {
            let problem = error.to_string();
            self.ended = Some(Ended::Lost(Loss::Gone { problem }));
        }
    }

    /// Writes the record: what has changed, or a sign of life. Returns the tickets of what is written.
    fn write_record(&mut self) -> Result<Vec<u64>, Failure> {
        self.record.sequence += 1;
        self.record.at = self.clock.now();
        self.record.serial = self.document.serial;
        self.record.stacks.clone_from(&self.wanted);
        self.save_copy();
        let condition = Condition::Unchanged(self.record_version.clone());
        match self.backend.swap_record(&self.record, &condition)? {
            Swap::Done(version) => {
                self.record_version = version;
                self.succeeded();
                self.is_fold_due = self.record.to_bytes().len() > FOLD_BYTES;
                Ok(std::mem::take(&mut self.pending))
            }
            Swap::Refused(found) => {
                // An earlier write of ours, whose answer was lost, may have arrived by now.
                self.record_version = self.own_record(found)?;
                self.succeeded();
                Ok(Vec::new())
            }
        }
    }

    /// Returns the version of a record that was found, if it is this run's.
    fn own_record(&self, found: Option<Object>) -> Result<Version, Failure> {
        let Some(object) = found else {
            return Err(Failure::Lost(Loss::Taken { by: None }));
        };
        match RunRecord::parse(&object.bytes) {
            Ok(found) if found.code == self.lock.code && found.broken.is_none() => {
                Ok(object.version)
            }
            Ok(found) => Err(Failure::Lost(Loss::Taken {
                by: found.broken.map(|broken| broken.by),
            })),
            Err(_) => Err(Failure::Lost(Loss::Taken { by: None })),
        }
    }

    /// Merges the record into the document, as it is in the store: a tombstone has no less.
    fn fold(&mut self) -> Result<(), Failure> {
        let mut document = self.document.clone();
        document.serial += 1;
        document.merge(&self.record.stacks);
        let condition = Condition::Unchanged(self.version.clone());
        match self.backend.swap(&document, &condition)? {
            Swap::Done(version) => {
                self.document = document;
                self.version = version;
                self.is_fold_due = false;
                let folded = std::mem::take(&mut self.record.stacks);
                self.wanted
                    .retain(|stack, entry| folded.get(stack) != Some(&*entry));
            }
            Swap::Refused(found) => self.adopt(found)?,
        }
        self.succeeded();
        Ok(())
    }

    /// Brings everything into the document and frees the lock.
    fn write_end(&mut self) -> Result<(), Failure> {
        self.save_copy();
        let mut document = self.document.clone();
        document.serial += 1;
        document.merge(&self.wanted);
        document.interrupt(&self.lock.run, self.clock.now());
        document.lock = None;
        let entry = |stack: &String| document.stacks.get(stack);
        let changed = self
            .before
            .iter()
            .filter(|(stack, before)| entry(stack) != before.as_ref());
        let tally = Tally::of(&self.lock.run, changed.map(|(stack, _)| entry(stack)));
        document.remember(Write {
            serial: document.serial,
            at: self.clock.now(),
            by: self.lock.by.clone(),
            run: Some(self.lock.run.clone()),
            what: self.lock.action.word().to_owned(),
            reason: self.end.as_ref().and_then(|end| end.reason.clone()),
            applied: tally.applied,
            failed: tally.failed,
            destroyed: tally.destroyed,
            other: Map::new(),
        });
        let condition = Condition::Unchanged(self.version.clone());
        match self.backend.swap(&document, &condition)? {
            Swap::Done(_) => self.written(document.serial),
            Swap::Refused(found) => self.adopt(found)?,
        }
        self.succeeded();
        Ok(())
    }

    fn written(&mut self, serial: u64) {
        self.backend.delete_record(&self.lock.run);
        if let Some(copy) = &self.copy {
            // One that stays says nothing that is not in the document.
            _ = copy.remove();
        }
        self.ended = Some(Ended::Written { serial });
    }

    /// Goes on from a document that was found in place of the one that was read: it is this run's if an
    /// answer was lost.
    fn adopt(&mut self, found: Option<Object>) -> Result<(), Failure> {
        let taken = Failure::Lost(Loss::Taken { by: None });
        let Some(object) = found else {
            return Err(taken);
        };
        let Ok(read) = self.backend.understood(object) else {
            return Err(taken);
        };
        let is_locked = |lock: &Lock| lock.code == self.lock.code;
        if read.document.lock.as_ref().is_some_and(is_locked) {
            self.document = read.document;
            self.version = read.version;
            return Ok(());
        }
        if self.is_finishing()
            && let Some(serial) = read.document.end_of(&self.lock.run)
        {
            self.written(serial);
            return Ok(());
        }
        let mut writes = read.document.history.into_iter().rev();
        let breaking = writes.find(|write| write.run.as_ref() == Some(&self.lock.run));
        let by = breaking.map(|write| write.by);
        Err(Failure::Lost(Loss::Taken { by }))
    }

    /// Saves what is due on this machine.
    fn save_copy(&mut self) {
        if !std::mem::take(&mut self.is_copy_due) {
            return;
        }
        let Some(copy) = &self.copy else {
            return;
        };
        let before = self.wanted.keys().filter_map(|stack| {
            let before = self.before.get(stack)?;
            Some((stack.clone(), before.clone()))
        });
        let record = RunRecord {
            stacks: self.wanted.clone(),
            before: before.collect(),
            ..self.record.clone()
        };
        if let Err(error) = copy.write(&record.to_bytes()) {
            debug!(%error, "what is to be recorded is not on this machine");
        }
    }
}

/// The end of a run.
struct RunEnd {
    /// Why the run was made, for the history.
    reason: Option<String>,
}

/// Why a write failed.
enum Failure {
    /// It may succeed later.
    Store(StoreError),
    /// It never will.
    Lost(Loss),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Store(error)
    }
}
