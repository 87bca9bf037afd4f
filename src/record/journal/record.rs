//! The content of a whole journal.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::entry::EvaluatedRecord;
use super::entry::{
    Counts, EndedTurnRecord, Event, FailureRecord, Finished, JournalEntry, OutcomeRecord, Reaction,
};
use super::header::{Header, Word};
use super::turns::{TurnRecord, TurnState, numbers, turns_of};

#[derive(Debug)]
pub struct RunRecord {
    pub header: Header,
    pub stacks: Vec<StackRecord>,
    /// The interruptions of the run, in order.
    pub stops: Vec<Stop>,
    /// The answers of policies, in the order in which the turns ended.
    pub evaluated: Vec<EvaluatedTurn>,
    /// The turns by number, if policies follow the run.
    pub turns: Vec<TurnRecord>,
    /// The numbers of the ended turns, in the order of their ends.
    pub ended: Vec<usize>,
    pub finished: Option<Finished>,
    pub last: Timestamp,
    positions: HashMap<String, usize>,
    turn_numbers: HashMap<(String, Option<u32>), usize>,
}

#[derive(Debug, Serialize)]
pub struct EvaluatedTurn {
    /// The number of its stack's turn; absent for the first.
    #[serde(serialize_with = "turn_number")]
    pub turn: Option<u32>,
    #[serde(flatten)]
    pub evaluated: EvaluatedRecord,
}

#[derive(Debug, Serialize)]
pub struct Stop {
    pub at: Timestamp,
    #[serde(flatten)]
    pub cause: StopCause,
    /// The stacks whose command was running.
    pub running: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum StopCause {
    Signal {
        signal: i32,
        reaction: Word<Reaction>,
    },
    /// The run took longer than this.
    TimedOut { timeout_ms: u64 },
}

#[derive(Debug)]
pub struct StackRecord {
    pub path: String,
    pub state: StackState,
    /// The operation of the turn in `state`; none if it runs the command of the run.
    pub operation: Option<String>,
    /// When it ended, if it has.
    pub ended_at: Option<Timestamp>,
    pub attempts: Vec<AttemptRecord>,
    /// The turn that [`Self::state`] describes.
    turn: Option<u32>,
    /// The turn that was added last, if any was.
    added: Option<u32>,
    /// The failed turns, if policies follow the run.
    failures: Failures,
}

/// A success of a stack.
pub(super) struct Success {
    ended: EndedTurnRecord,
    at: Timestamp,
    turn: Option<u32>,
    operation: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum StackState {
    LeftOut,
    Waiting,
    /// It was started; this is the latest attempt, from 1.
    Started {
        attempt: u32,
        /// When the first one began.
        since: Timestamp,
    },
    Ended(EndedTurnRecord),
}

/// An attempt, serialized as the JSON of runs has it.
#[derive(Debug, Serialize)]
pub struct AttemptRecord {
    #[serde(rename = "attempt")]
    pub number: u32,
    /// The number of its stack's turn; absent for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The number of the step; absent for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    #[serde(rename = "at")]
    pub began: Timestamp,
    #[serde(rename = "elapsed_ms", serialize_with = "milliseconds")]
    pub elapsed: Option<Duration>,
    pub failure: Option<FailureRecord>,
    /// How long `orch` waited before the next attempt, if one was to follow.
    #[serde(rename = "wait_ms", serialize_with = "milliseconds")]
    pub wait: Option<Duration>,
    /// The limit that it exceeded, so that it was interrupted.
    #[serde(rename = "timeout_ms", serialize_with = "milliseconds")]
    pub timeout: Option<Duration>,
    /// Whether it did not end after that interrupt, and was killed.
    #[serde(rename = "killed")]
    pub was_killed: bool,
    pub output_lost: Option<String>,
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde wants it so"
)]
fn turn_number<S: Serializer>(turn: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(turn.unwrap_or(1))
}

#[expect(clippy::ref_option, reason = "serde wants it so")]
fn milliseconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_millis()).serialize(serializer)
}

impl StackState {
    pub fn is_success(&self) -> bool {
        self.outcome() == Some(&OutcomeRecord::Succeeded)
    }

    pub fn has_changes(&self) -> bool {
        let StackState::Ended(ended) = self else {
            return false;
        };
        ended.changes.is_some_and(|changes| changes.has_changes)
    }

    pub fn is_failure(&self) -> bool {
        self.outcome() == Some(&OutcomeRecord::Failed)
    }

    fn outcome(&self) -> Option<&OutcomeRecord> {
        match self {
            StackState::Ended(ended) => Some(&ended.outcome),
            _ => None,
        }
    }
}

impl RunRecord {
    pub fn new(header: Header) -> Self {
        let waiting = header.order.iter().map(|path| StackRecord::waiting(path));
        let mut stacks: Vec<StackRecord> = waiting.collect();
        let numbered = header.order.iter().cloned().zip(0..);
        let positions: HashMap<String, usize> = numbered.collect();
        for path in &header.left_out {
            if let Some(&position) = positions.get(path) {
                stacks[position].state = StackState::LeftOut;
            }
        }
        let mut turns = turns_of(&header);
        let turn_numbers = numbers(&turns);
        if header.policies.is_none() {
            turns.clear();
        }
        RunRecord {
            stacks,
            stops: Vec::new(),
            evaluated: Vec::new(),
            turn_numbers,
            turns,
            ended: Vec::new(),
            finished: None,
            last: header.at,
            positions,
            header,
        }
    }

    /// Returns the number of a turn in the run, from 0, as in the names of its logs; `None` if the run leaves its
    /// stack out.
    pub fn turn_number(&self, stack: &str, turn: Option<u32>) -> Option<usize> {
        let key = (stack.to_owned(), turn);
        self.turn_numbers.get(&key).copied()
    }

    /// Applies a line about a turn.
    fn follow_turn(&mut self, turn: Option<u32>, operation: Option<&str>, event: &Event) {
        if let Event::Added { stack, .. } = event {
            let number = self.turn_numbers.len();
            self.turn_numbers.insert((stack.clone(), turn), number);
        }
        if self.header.policies.is_none() {
            return;
        }
        let is_stopped = !self.stops.is_empty();
        let stack = match event {
            Event::Added { stack, follows } => {
                return self.turns.push(TurnRecord {
                    is_added: true,
                    follows: follows.clone(),
                    ..TurnRecord::new(stack, turn)
                });
            }
            Event::Started { stack, .. } => stack,
            Event::Ended(ended) => &ended.stack,
            _ => return,
        };
        let Some(&place) = self.turn_numbers.get(&(stack.clone(), turn)) else {
            return;
        };
        if let Some(operation) = operation {
            self.turns[place].operation = Some(operation.to_owned());
        }
        match event {
            Event::Ended(ended) => {
                self.turns[place].outcome = Some(TurnState::of(ended, is_stopped));
                self.turns[place].ended_after = Some(self.ended.len());
                self.ended.push(place);
            }
            _ => self.turns[place].started_after = Some(self.ended.len()),
        }
    }

    /// Adds a line. Lines about stacks that are neither in the order of the run nor added were not
    /// written by `orch`.
    pub fn add(&mut self, entry: JournalEntry) {
        let JournalEntry {
            at,
            turn,
            operation,
            step,
            event,
        } = entry;
        self.last = at;
        self.follow_turn(turn, operation.as_deref(), &event);
        let milliseconds = Duration::from_millis;
        if let Event::Added { stack, .. } = &event {
            let next = self.stacks.len();
            let position = *self.positions.entry(stack.clone()).or_insert(next);
            if position == self.stacks.len() {
                self.stacks.push(StackRecord::waiting(stack));
            }
            // This turn decides the result of the stack, regardless of earlier ones.
            let stack = &mut self.stacks[position];
            (stack.turn, stack.state, stack.ended_at) = (turn, StackState::Waiting, None);
            stack.added = turn;
        }
        match event {
            Event::Started { stack, attempt } => {
                if let Some(position) = self.position(&stack) {
                    self.stacks[position].started(at, turn, step, attempt);
                    self.stacks[position].does(turn, operation);
                }
            }
            Event::Retrying {
                stack,
                attempt: _,
                failure,
                elapsed_ms,
                wait_ms,
            } => {
                if let Some(attempt) = self.attempt(&stack, turn, step) {
                    attempt.failure = Some(failure);
                    attempt.elapsed = Some(milliseconds(elapsed_ms));
                    attempt.wait = Some(milliseconds(wait_ms));
                }
            }
            Event::TimedOut {
                stack, timeout_ms, ..
            } => {
                if let Some(attempt) = self.attempt(&stack, turn, step) {
                    attempt.timeout = Some(milliseconds(timeout_ms));
                }
            }
            Event::Killed { stack } => {
                if let Some(attempt) = self.attempt(&stack, turn, step) {
                    attempt.was_killed = true;
                }
            }
            Event::OutputLost { stack, problem } => {
                if let Some(attempt) = self.attempt(&stack, turn, step) {
                    attempt.output_lost = Some(problem);
                }
            }
            Event::Ended(ended) => {
                if let Some(position) = self.position(&ended.stack) {
                    if self.header.policies.is_some() {
                        let failures = &mut self.stacks[position].failures;
                        failures.ended(turn, at, operation.as_deref(), &ended);
                    }
                    self.stacks[position].ended(at, turn, step, ended);
                    self.stacks[position].does(turn, operation);
                }
            }
            Event::Interrupted {
                signal,
                reaction,
                running,
            } => self.stops.push(Stop {
                at,
                cause: StopCause::Signal { signal, reaction },
                running,
            }),
            Event::RunTimedOut {
                timeout_ms,
                grace_ms: _,
                running,
            } => self.stops.push(Stop {
                at,
                cause: StopCause::TimedOut { timeout_ms },
                running,
            }),
            Event::Finished(finished) => self.finished = Some(finished),
            Event::Evaluated(evaluated) => {
                let position = self.position(&evaluated.stack);
                if let Some(position) = position.filter(|_| evaluated.run.is_none()) {
                    self.stacks[position].failures.evaluated(turn, &evaluated);
                }
                self.evaluated.push(EvaluatedTurn { turn, evaluated });
            }
            Event::Added { .. } | Event::StepStarted { .. } | Event::Other(_) => {}
        }
    }

    /// Adds a turn of a stack that has failed or did not run before: its result counts instead.
    pub(super) fn retry(&mut self, at: Timestamp, stack: String, turn: Option<u32>) {
        if let Some(position) = self.position(&stack) {
            self.stacks[position].failures = Failures::default();
        }
        let follows = None;
        let mut entry = JournalEntry::new(at, Event::Added { stack, follows });
        entry.turn = turn;
        self.add(entry);
    }

    /// Returns the successes after a time.
    pub(super) fn successes_after(&self, at: Timestamp) -> Vec<Success> {
        let all = self.stacks.iter().filter_map(|stack| match &stack.state {
            StackState::Ended(ended) if stack.state.is_success() => Some(Success {
                ended: ended.clone(),
                at: stack.ended_at.filter(|ended_at| *ended_at > at)?,
                turn: stack.turn,
                operation: stack.operation.clone(),
            }),
            _ => None,
        });
        all.collect()
    }

    /// Puts back successes that came after failures in a run that was added later.
    pub(super) fn put_back(&mut self, successes: Vec<Success>) {
        for success in successes {
            let Some(position) = self.position(&success.ended.stack) else {
                continue;
            };
            let stack = &mut self.stacks[position];
            if stack.state.is_failure() && stack.ended_at < Some(success.at) {
                stack.failures.turns.retain(|_, it| it.at > success.at);
                (stack.turn, stack.operation) = (success.turn, success.operation);
                stack.ended_at = Some(success.at);
                stack.state = StackState::Ended(success.ended);
            }
        }
    }

    fn position(&self, stack: &str) -> Option<usize> {
        self.positions.get(stack).copied()
    }

    fn attempt(
        &mut self,
        stack: &str,
        turn: Option<u32>,
        step: Option<u32>,
    ) -> Option<&mut AttemptRecord> {
        let position = self.position(stack)?;
        self.stacks[position].attempt(turn, step)
    }

    /// Returns whether a turn failed without a successful retry, regardless of later turns of its stack.
    pub fn has_unresolved_failure(&self) -> bool {
        self.stacks
            .iter()
            .any(|stack| stack.failures.has_unresolved())
    }

    /// Makes a failed turn without a successful retry decide the result of its stack, as it decides that of the run:
    /// the last turn shows the work that is left, but reports show the failure.
    pub fn show_unresolved_failures(&mut self) {
        for stack in &mut self.stacks {
            let is_hidden =
                matches!(stack.state, StackState::Ended(_)) && !stack.state.is_failure();
            if let Some((turn, failed)) = stack.failures.take_last().filter(|_| is_hidden) {
                stack.turn = Some(turn).filter(|turn| *turn > 1);
                stack.state = StackState::Ended(failed.ended);
                stack.ended_at = Some(failed.at);
                stack.operation = failed.operation;
            }
        }
    }

    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for stack in &self.stacks {
            if let StackState::Ended(ended) = &stack.state {
                counts.add(&ended.outcome);
            }
        }
        counts
    }

    /// Returns the stacks that were started and have not ended, as far as the journal knows.
    pub fn started(&self) -> impl Iterator<Item = &str> {
        let is_started = |stack: &&StackRecord| matches!(stack.state, StackState::Started { .. });
        self.stacks
            .iter()
            .filter(is_started)
            .map(|stack| stack.path.as_str())
    }
}

impl StackRecord {
    /// Returns the number of the turn that the state describes, from 1.
    pub fn turn(&self) -> u32 {
        self.turn.unwrap_or(1)
    }

    fn waiting(path: &str) -> Self {
        StackRecord {
            path: path.to_owned(),
            state: StackState::Waiting,
            operation: None,
            ended_at: None,
            attempts: Vec::new(),
            turn: None,
            added: None,
            failures: Failures::default(),
        }
    }

    fn attempt(&mut self, turn: Option<u32>, step: Option<u32>) -> Option<&mut AttemptRecord> {
        let mut latest = self.attempts.iter_mut().rev();
        latest.find(|attempt| attempt.turn == turn && attempt.step == step)
    }

    fn started(&mut self, at: Timestamp, turn: Option<u32>, step: Option<u32>, number: u32) {
        self.attempts.push(AttemptRecord {
            number,
            turn,
            step,
            began: at,
            elapsed: None,
            failure: None,
            wait: None,
            timeout: None,
            was_killed: false,
            output_lost: None,
        });
        let since = match self.state {
            StackState::Started { since, .. } if self.turn == turn => since,
            _ => at,
        };
        let attempt = number;
        self.set(turn, StackState::Started { attempt, since }, None);
    }

    fn ended(
        &mut self,
        at: Timestamp,
        turn: Option<u32>,
        step: Option<u32>,
        ended: EndedTurnRecord,
    ) {
        // An attempt that was to be followed by another one is already over.
        if let Some(attempt) = self.attempt(turn, step)
            && attempt.elapsed.is_none()
        {
            let elapsed = match attempt.number {
                1 => Some(Duration::from_millis(ended.elapsed_ms)),
                _ => Duration::try_from(at.duration_since(attempt.began)).ok(),
            };
            attempt.elapsed = elapsed;
            attempt.failure.clone_from(&ended.failure);
        }
        self.set(turn, StackState::Ended(ended), Some(at));
    }

    /// Notes the operation of a turn, if the state describes it.
    fn does(&mut self, turn: Option<u32>, operation: Option<String>) {
        if self.turn == turn {
            self.operation = operation;
        }
    }

    /// Sets the state. A stack with several turns has succeeded only if all of them have.
    fn set(&mut self, turn: Option<u32>, state: StackState, ended_at: Option<Timestamp>) {
        let has_failed = matches!(self.state, StackState::Ended(_)) && !self.state.is_success();
        // One that was added decides, however late those before it end.
        let is_before = turn.unwrap_or(1) < self.added.unwrap_or(1);
        if self.turn == turn || !has_failed && !is_before {
            self.turn = turn;
            self.state = state;
            self.ended_at = ended_at;
        }
    }
}

/// The failures of a stack's turns without a successful retry.
///
/// A later turn of the stack may have succeeded as a follow-up of another stack: the run has failed nevertheless.
#[derive(Debug, Default)]
struct Failures {
    /// By the number of the turn, from 1.
    turns: BTreeMap<u32, FailedTurn>,
}

#[derive(Debug)]
struct FailedTurn {
    ended: EndedTurnRecord,
    at: Timestamp,
    operation: Option<String>,
    is_retried: bool,
}

impl Failures {
    fn ended(
        &mut self,
        turn: Option<u32>,
        at: Timestamp,
        operation: Option<&str>,
        ended: &EndedTurnRecord,
    ) {
        match ended.outcome {
            OutcomeRecord::Failed => {
                let failed = FailedTurn {
                    ended: ended.clone(),
                    at,
                    operation: operation.map(ToOwned::to_owned),
                    is_retried: false,
                };
                self.turns.insert(turn.unwrap_or(1), failed);
            }
            // It replaces the failures that it retried, and that of an earlier run of its job.
            OutcomeRecord::Succeeded => {
                self.turns.remove(&turn.unwrap_or(1));
                self.turns.retain(|_, failed| !failed.is_retried);
            }
            // A retry that was not approved leaves the failure, and so does one that has not begun.
            OutcomeRecord::Unconfirmed | OutcomeRecord::Skipped | OutcomeRecord::Cancelled => {
                for failed in self.turns.values_mut() {
                    failed.is_retried = false;
                }
            }
            OutcomeRecord::Other(_) => {}
        }
    }

    /// Notes the answers of policies to the end of a turn.
    fn evaluated(&mut self, turn: Option<u32>, evaluated: &EvaluatedRecord) {
        let Some(failed) = self.turns.get_mut(&turn.unwrap_or(1)) else {
            return;
        };
        let mut follows = evaluated.queued.iter().chain(&evaluated.joined);
        let is_asked_for = follows.any(|follow| follow.stack == evaluated.stack);
        // A destroy is never retried, and nothing starts after an interrupt.
        let is_destroy = failed.operation.as_deref() == Some("destroy");
        failed.is_retried = is_asked_for && evaluated.state == "FAILED" && !is_destroy;
    }

    fn has_unresolved(&self) -> bool {
        self.turns.values().any(|failed| !failed.is_retried)
    }

    /// Removes the last failure that counts, and returns it with the number of the turn, from 1.
    fn take_last(&mut self) -> Option<(u32, FailedTurn)> {
        let mut turns = self.turns.iter().rev();
        let (&number, _) = turns.find(|(_, failed)| !failed.is_retried)?;
        Some((number, self.turns.remove(&number)?))
    }
}
