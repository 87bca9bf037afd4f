//! Decides when to write, without threads: tests control the time.

use std::collections::BTreeMap;
use std::time::Duration;

use tracing::debug;

use super::change::ChangeContext;
use super::pauses::Pauses;
use super::request::{AnswerKind, RequestKind, WriterAnswer, WriterRequest};
use super::{Change, LocalCopy, Loss, Report, WriterEnd};
use crate::path::Generation;
use crate::state::backend::PutOutcome;
use crate::state::clock::{Clock, Moment};
use crate::state::document::{Document, Entry, Lock};
use crate::state::holder::LockedFile;
use crate::state::lock::Locked;
use crate::state::run_record::RunChanges;
use crate::state::store::{StoreError, StoredObject, Version};
use crate::state::written::{RunWrite, Tally};

/// A backend that takes longer than this for due changes is reported.
const SLOW: Duration = Duration::from_secs(5);

/// A run record that is larger is folded into the document.
const FOLD_BYTES: usize = 256 << 10;

/// The writer of a run. It returns the due request, and receives its answer; there is one at a time.
pub struct Core {
    copy: Option<LocalCopy>,
    pauses: Pauses,
    clock: Box<dyn Clock + Send>,
    lock: Lock,
    document: Document,
    version: Version,
    /// The record in the store, as far as is known.
    record: RunChanges,
    record_version: Version,
    /// The content of the next record.
    wanted: BTreeMap<String, Option<Entry>>,
    destroyed: BTreeMap<String, Vec<Generation>>,
    /// The entries of the run's stacks before it.
    before: BTreeMap<String, Option<Entry>>,
    /// The entries after the last results, to which a withdrawn intent returns.
    settled: BTreeMap<String, Option<Entry>>,
    /// The tickets of changes that are in no request.
    pending: Vec<u64>,
    /// The tickets of changes that are in the request that is under way.
    asked: Vec<u64>,
    is_busy: bool,
    is_fold_due: bool,
    last_write: Option<Moment>,
    /// When the last successful heartbeat was sent.
    sure: Moment,
    /// When the last write succeeded, or the lock was taken.
    last_success: Duration,
    /// The writes that have failed since then.
    failures: Option<Failures>,
    /// When the first request without a later success began, until that is reported.
    slow_since: Option<Duration>,
    /// Set once the run has ended.
    end: Option<RunEnd>,
    /// The serial of the write that completed the document.
    written: Option<u64>,
    ended: Option<WriterEnd>,
    /// Whether the copy lacks something.
    is_copy_due: bool,
    /// Why the copy could not be written, the last time.
    copy_problem: Option<String>,
    /// Keeps other processes of this machine from taking the lock over.
    _claim: Option<LockedFile>,
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
        locked: Locked,
        copy: Option<LocalCopy>,
        pauses: Pauses,
        clock: Box<dyn Clock + Send>,
    ) -> Self {
        let now = clock.elapsed();
        Core {
            copy,
            pauses: Pauses {
                heartbeat: locked.lock.heartbeat(pauses.heartbeat),
                ..pauses
            },
            sure: locked.sure,
            lock: locked.lock,
            document: locked.document,
            version: locked.version,
            record: locked.record,
            record_version: locked.record_version,
            wanted: BTreeMap::new(),
            destroyed: BTreeMap::new(),
            before: BTreeMap::new(),
            settled: BTreeMap::new(),
            pending: Vec::new(),
            asked: Vec::new(),
            is_busy: false,
            is_fold_due: false,
            last_write: None,
            last_success: now,
            failures: None,
            slow_since: None,
            end: None,
            written: None,
            ended: None,
            is_copy_due: false,
            copy_problem: None,
            _claim: locked.claim,
            clock,
        }
    }

    /// Takes a change, which a later request writes. Until [`Self::keep`], it is only in memory.
    pub fn change(&mut self, stack: String, change: Change, ticket: u64) {
        let document = &self.document;
        let before = self
            .before
            .entry(stack.clone())
            .or_insert_with(|| document.stacks.get(&stack).cloned());
        let destroyed = self.destroyed.entry(stack.clone()).or_default();
        if let Change::DestroyedGeneration(generation) = change {
            destroyed.push(generation);
        }
        let entry = change.entry(&ChangeContext {
            current: self.wanted.get(&stack).unwrap_or(before).as_ref(),
            settled: self.settled.get(&stack).unwrap_or(before).as_ref(),
            destroyed,
            run: &self.lock.run,
            at: self.clock.now(),
        });
        if entry.as_ref().is_none_or(|entry| entry.intent.is_none()) {
            self.settled.insert(stack.clone(), entry.clone());
        }
        self.wanted.insert(stack, entry);
        self.pending.push(ticket);
        self.is_copy_due = true;
    }

    /// Asks whether the lock is still held: the ticket is confirmed if no one can have taken it over, or after the
    /// next heartbeat.
    pub fn renew(&mut self, ticket: u64) -> Option<Report> {
        if self.ended.is_none() && self.is_sure(self.sure) {
            return Some(Report::Confirmed(vec![ticket]));
        }
        self.pending.push(ticket);
        None
    }

    /// Returns whether no one can have taken the lock over, given a successful heartbeat that was sent at this
    /// moment.
    fn is_sure(&self, sent: Moment) -> bool {
        sent.passed(&*self.clock) < self.lock.lease() / 4 * 3
    }

    /// Saves new changes on this machine.
    pub fn keep(&mut self) {
        if !std::mem::take(&mut self.is_copy_due) {
            return;
        }
        let Some(copy) = &self.copy else {
            self.copy_problem = Some("it has no folder".to_owned());
            return;
        };
        let before = self.wanted.keys().filter_map(|stack| {
            let before = self.before.get(stack)?;
            Some((stack.clone(), before.clone()))
        });
        let record = RunChanges {
            stacks: self.wanted.clone(),
            before: before.collect(),
            ..self.record.clone()
        };
        let written = copy.write(&record.to_bytes());
        self.copy_problem = written.err().map(|error| error.to_string());
    }

    /// Ends the run: the next requests bring everything into the document and free the lock.
    pub fn finish(&mut self, reason: Option<String>) {
        self.end = Some(RunEnd { reason });
    }

    pub fn is_finishing(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the result of the writing, once the run has ended.
    pub fn ended(&self) -> Option<&WriterEnd> {
        self.ended.as_ref().filter(|_| self.is_finishing())
    }

    /// Ends the writing of a run that stopped without a final write.
    pub(super) fn abandon(&self) -> WriterEnd {
        let problem = "the run ended without its last write".to_owned();
        let lost = || self.lost(Loss::Gone { problem });
        self.ended.clone().unwrap_or_else(lost)
    }

    fn lost(&self, loss: Loss) -> WriterEnd {
        let unkept = self.copy_problem.clone();
        WriterEnd::Lost { loss, unkept }
    }

    /// Returns the time until a request is due, unless a change or an answer arrives; zero if one is due.
    pub fn wait(&self) -> Duration {
        if self.ended.is_some() || self.is_busy {
            return Duration::MAX;
        }
        let next = self.last_write.map_or(Duration::ZERO, |last| {
            let pause = match self.failures {
                Some(_) => self.pauses.retry.max(self.pauses.between),
                None if self.written.is_some() => Duration::ZERO,
                None => self.pauses.between,
            };
            last.elapsed + pause
        });
        let is_due = self.is_finishing() || self.is_fold_due || !self.pending.is_empty();
        let due = if is_due || self.failures.is_some() {
            next
        } else {
            next.max(self.last_success + self.pauses.heartbeat)
        };
        due.saturating_sub(self.clock.elapsed())
    }

    /// Returns the time until [`Self::tick`] has a report, if no answer arrives.
    pub fn until_tick(&self) -> Duration {
        let slow = self.slow_since.map(|since| since + SLOW);
        let lost = self
            .unanswered_since()
            .map(|since| since + self.pauses.retry_timeout);
        let next = slow.into_iter().chain(lost).min();
        next.map_or(Duration::MAX, |next| {
            next.saturating_sub(self.clock.elapsed())
        })
    }

    /// Returns a report on a backend that doesn't answer.
    pub fn tick(&mut self) -> Option<Report> {
        let now = self.clock.elapsed();
        let is_over = |since: Duration, time: Duration| now.saturating_sub(since) >= time;
        let timeout = self.pauses.retry_timeout;
        if let Some(since) = self.unanswered_since()
            && is_over(since, timeout)
        {
            let silent = || format!("no answer for {} seconds", timeout.as_secs());
            let problem = self.problem().unwrap_or_else(silent);
            return Some(self.lose(Loss::Gone { problem }));
        }
        let slow = self.slow_since.take_if(|since| is_over(*since, SLOW));
        slow.map(|_| Report::Slow {
            problem: self.problem(),
        })
    }

    /// Returns why the last write failed, if none has succeeded since.
    fn problem(&self) -> Option<String> {
        self.failures.as_ref().map(|it| it.problem.clone())
    }

    /// Returns since when the backend has not done a request.
    fn unanswered_since(&self) -> Option<Duration> {
        let is_waiting = self.is_busy && self.ended.is_none();
        let begun = self.last_write.map(|begun| begun.elapsed);
        let failing = self.failures.as_ref().map(|it| it.since);
        let since = failing.or(begun);
        since.filter(|_| is_waiting)
    }

    fn lose(&mut self, loss: Loss) -> Report {
        self.slow_since = None;
        self.ended = Some(self.lost(loss.clone()));
        Report::Lost(loss)
    }

    /// Returns the due request; [`Self::hear`] takes its answer. Its content is on this machine already.
    pub fn ask(&mut self) -> WriterRequest {
        self.keep();
        self.is_busy = true;
        let now = Moment::now(&*self.clock);
        self.last_write = Some(now);
        if self.failures.is_none() {
            self.slow_since = Some(now.elapsed);
        }
        WriterRequest(if self.written.is_some() {
            RequestKind::Removal(self.lock.run.clone())
        } else if self.is_finishing() {
            RequestKind::End(self.end_document(), self.version.clone())
        } else if self.is_fold_due {
            RequestKind::Fold(self.folded_document(), self.version.clone())
        } else {
            self.record.sequence += 1;
            self.record.at = self.clock.now();
            self.record.serial = self.document.serial;
            self.record.stacks.clone_from(&self.wanted);
            self.asked.append(&mut self.pending);
            RequestKind::Record(self.record.clone(), self.record_version.clone())
        })
    }

    /// Takes the answer to the current request, and returns a report for the run.
    pub fn hear(&mut self, answer: WriterAnswer) -> Option<Report> {
        self.is_busy = false;
        if self.ended.is_some() {
            return None; // it came too late
        }
        let result = match answer.0 {
            AnswerKind::Record(Ok(swap), breaker) => self.record_written(swap, breaker),
            AnswerKind::Fold(document, Ok(swap)) => self.folded(document, swap).map(|()| None),
            AnswerKind::End(document, Ok(swap)) => self.end_written(&document, swap).map(|()| None),
            AnswerKind::Removal => {
                self.removed();
                Ok(None)
            }
            AnswerKind::Record(Err(error), _)
            | AnswerKind::Fold(_, Err(error))
            | AnswerKind::End(_, Err(error)) => self.failed(&error).map(|()| None),
        };
        match result {
            Ok(report) => report,
            Err(loss) => Some(self.lose(loss)),
        }
    }

    fn succeeded(&mut self) {
        self.last_success = self.clock.elapsed();
        self.failures = None;
        self.slow_since = None;
    }

    /// Repeats the request, unless the backend has failed for too long.
    fn failed(&mut self, error: &StoreError) -> Result<(), Loss> {
        debug!(%error, "the state cannot be written");
        self.pending.append(&mut self.asked);
        let now = self.clock.elapsed();
        let problem = error.to_string();
        let begun = self.last_write.map_or(now, |begun| begun.elapsed);
        let since = self.failures.as_ref().map_or(begun, |it| it.since);
        if now.saturating_sub(since) >= self.pauses.retry_timeout {
            return Err(Loss::Gone { problem });
        }
        self.failures = Some(Failures { since, problem });
        Ok(())
    }

    fn record_written(
        &mut self,
        swap: PutOutcome,
        breaker: Option<String>,
    ) -> Result<Option<Report>, Loss> {
        let report = match swap {
            PutOutcome::Done(version) => {
                self.record_version = version;
                self.is_fold_due = self.record.to_bytes().len() > FOLD_BYTES;
                self.sure = self.last_write.unwrap_or(self.sure);
                if !self.is_sure(self.sure) {
                    // Another run may have taken the lock over since it was sent.
                    self.pending.append(&mut self.asked);
                }
                let tickets = std::mem::take(&mut self.asked);
                (!tickets.is_empty()).then_some(Report::Confirmed(tickets))
            }
            PutOutcome::Refused(found) => {
                // An earlier write of ours, whose answer was lost, may have arrived by now.
                self.record_version = self.own_record(found, breaker)?;
                self.pending.append(&mut self.asked);
                None
            }
        };
        self.succeeded();
        Ok(report)
    }

    /// Returns the version of a record that was found, if it is this run's.
    fn own_record(
        &self,
        found: Option<StoredObject>,
        breaker: Option<String>,
    ) -> Result<Version, Loss> {
        let Some(object) = found else {
            return Err(Loss::Taken { by: breaker });
        };
        match RunChanges::parse(&object.bytes) {
            Ok(found) if found.code == self.lock.code && found.broken.is_none() => {
                Ok(object.version)
            }
            Ok(found) => Err(Loss::Taken {
                by: found.broken.map(|broken| broken.by),
            }),
            Err(_) => Err(Loss::Taken { by: None }),
        }
    }

    /// Returns the document with the record as it is in the store: a tombstone has no less.
    fn folded_document(&self) -> Document {
        let mut document = self.document.clone();
        document.serial += 1;
        document.merge(&self.record.stacks);
        document
    }

    fn folded(&mut self, document: Document, swap: PutOutcome) -> Result<(), Loss> {
        match swap {
            PutOutcome::Done(version) => {
                self.document = document;
                self.version = version;
                self.is_fold_due = false;
                let folded = std::mem::take(&mut self.record.stacks);
                self.wanted
                    .retain(|stack, entry| folded.get(stack) != Some(&*entry));
            }
            PutOutcome::Refused(found) => self.adopt(found)?,
        }
        self.succeeded();
        Ok(())
    }

    /// Returns the document with everything, and without the lock.
    fn end_document(&self) -> Document {
        let mut document = self.document.clone();
        document.serial += 1;
        document.merge(&self.wanted);
        document.interrupt(&self.lock.run, self.clock.now());
        document.release(&self.lock.code);
        let entry = |stack: &String| document.stacks.get(stack);
        let changed = self
            .before
            .iter()
            .filter(|(stack, before)| entry(stack) != before.as_ref())
            .map(|(stack, _)| (stack.as_str(), entry(stack)));
        let write = Tally::of(&self.lock.run, changed).written(RunWrite {
            run: &self.lock.run,
            by: &self.lock.by,
            what: self.lock.action.word(),
            at: self.clock.now(),
            reason: self.end.as_ref().and_then(|end| end.reason.clone()),
        });
        document.remember(write);
        document
    }

    fn end_written(&mut self, document: &Document, swap: PutOutcome) -> Result<(), Loss> {
        match swap {
            PutOutcome::Done(_) => self.written = Some(document.serial),
            PutOutcome::Refused(found) => self.adopt(found)?,
        }
        self.succeeded();
        Ok(())
    }

    /// The record was removed, or the next holder of the lock removes it.
    fn removed(&mut self) {
        if let Some(copy) = &self.copy {
            // A leftover copy has nothing that is not in the document.
            _ = copy.remove();
        }
        self.ended = self.written.map(|serial| WriterEnd::Written { serial });
    }

    /// Continues from a document that replaced the one that was read: it is this run's own if an answer was lost.
    fn adopt(&mut self, found: Option<StoredObject>) -> Result<(), Loss> {
        let taken = Loss::Taken { by: None };
        let Some(object) = found else {
            return Err(taken);
        };
        let Ok(document) = Document::parse(&object.bytes) else {
            return Err(taken);
        };
        if document.lock_with(&self.lock.code).is_some() {
            self.document = document;
            self.version = object.version;
            return Ok(());
        }
        if self.is_finishing()
            && let Some(serial) = document.end_of(&self.lock.run)
        {
            self.written = Some(serial);
            return Ok(());
        }
        let by = document.ended_by(&self.lock.run);
        Err(Loss::Taken { by })
    }
}

struct Failures {
    /// When the first of the writes began.
    since: Duration,
    /// Why the last one failed.
    problem: String,
}

struct RunEnd {
    /// Why the run was made, for the history.
    reason: Option<String>,
}
