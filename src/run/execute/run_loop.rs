//! The main loop of a run: handles events, timers and starts one at a time, until nothing is left.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::active::{ActiveTurn, HeldTurn, Phase, TurnStage};
use super::retry::wait;
use super::{
    Execution, Executor, Inbox, Message, SIGNAL_TIMEOUT, Settlement, StepEnd, StepReporter,
    StepStart, UpcomingStep, os,
};
use crate::project::attempt::Attempts;
use crate::record::journal::ChangeSummary;
use crate::run::event::{CancelCause, Failure, Outcome, RunEvent, RunSummary};
use crate::run::schedule::Schedule;
use crate::run::turn::{Step, Turn, TurnIndex};

/// Runs turns until nothing is left to do. A failed command is data in the summary.
pub fn execute<E: Executor>(
    execution: Execution,
    executor: &mut E,
    inbox: &Inbox,
    on_event: &mut dyn FnMut(&RunEvent),
) -> Arc<RunSummary> {
    let begun = Instant::now();
    let mut alarms = Alarms::default();
    let timeout = execution.timeout;
    if let Some(at) = timeout.and_then(|timeout| begun.checked_add(timeout)) {
        alarms.set(at, Alarm::Run);
    }
    on_event(&RunEvent::RunStarted {
        turns: execution.turns.as_slice().into(),
    });
    let run = RunLoop {
        begun,
        schedule: execution.schedule,
        turns: execution.turns,
        attempts: execution.attempts,
        timeout,
        grace: execution.grace,
        executor,
        inbox,
        alarms,
        active: BTreeMap::new(),
        held: Vec::new(),
        unsettled: BTreeMap::new(),
        n_earlier: execution.n_earlier,
        is_rejected: execution.is_rejected,
        summary: RunSummary {
            detailed_exit_code: execution.detailed_exit_code,
            had_changes: execution.had_changes,
            left_out_status: execution.left_out_status,
            ..RunSummary::default()
        },
        pending: VecDeque::new(),
        signals: 0,
        last_signal: None,
        ending: None,
        on_event,
    };
    run.go()
}

pub(super) struct RunLoop<'a, E: Executor> {
    pub(super) begun: Instant,
    pub(super) schedule: Schedule,
    pub(super) turns: Vec<Turn>,
    pub(super) attempts: Vec<Attempts>,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
    pub(super) executor: &'a mut E,
    pub(super) inbox: &'a Inbox,
    pub(super) alarms: Alarms,
    pub(super) active: BTreeMap<TurnIndex, ActiveTurn<E::Command>>,
    pub(super) held: Vec<HeldTurn<E::Command>>,
    /// Turns that have ended, with their success, whose effect on others is not known yet.
    pub(super) unsettled: BTreeMap<TurnIndex, bool>,
    /// How many turns of earlier runs have an unknown effect.
    pub(super) n_earlier: usize,
    /// Whether the initial turns were not approved.
    pub(super) is_rejected: bool,
    pub(super) summary: RunSummary,
    /// Messages that came before an awaited signal.
    pending: VecDeque<Message>,
    pub(super) signals: u32,
    pub(super) last_signal: Option<(i32, Instant)>,
    /// The first reason why nothing new starts.
    pub(super) ending: Option<CancelCause>,
    pub(super) on_event: &'a mut dyn FnMut(&RunEvent),
}

impl<E: Executor> RunLoop<'_, E> {
    /// Handles one thing at a time: messages and due actions before starts.
    fn go(mut self) -> Arc<RunSummary> {
        if self.is_rejected {
            self.reject();
        }
        loop {
            self.drain_inbox();
            if let Some(alarm) = self.alarms.due(Instant::now()) {
                self.alarm(alarm);
                continue;
            }
            self.give_up_retries();
            if self.go_on_held() {
                continue;
            }
            if !self.is_halted()
                && self.n_earlier == 0
                && let Some(turn) = self.schedule.start_next()
            {
                self.start_attempt(turn, 1);
                continue;
            }
            let is_idle = self.active.is_empty() && self.held.is_empty();
            if is_idle && self.unsettled.is_empty() && self.n_earlier == 0 {
                let Some(turn) = self.schedule.next_to_cancel() else {
                    break;
                };
                self.cancel(turn);
                continue;
            }
            self.wait();
        }
        self.cancel_waiting();
        self.summary.is_refused = self.executor.has_refused();
        self.summary.elapsed = self.begun.elapsed();
        let summary = Arc::new(self.summary);
        (self.on_event)(&RunEvent::RunFinished(summary.clone()));
        summary
    }

    /// Returns whether another attempt of a turn may start.
    pub(super) fn may_go_on(&self, turn: TurnIndex) -> bool {
        match self.ending {
            None => true,
            Some(cause) => cause.is_answered() && self.schedule.answers_failure(turn),
        }
    }

    /// Handles the messages in the inbox, so that nothing starts after a signal.
    fn drain_inbox(&mut self) {
        self.await_signal();
        while let Some(message) = self
            .pending
            .pop_front()
            .or_else(|| self.inbox.receiver.try_recv().ok())
        {
            self.handle(message);
        }
    }

    /// Waits for a signal that has arrived and is not in the inbox yet, and reacts to it before anything else.
    ///
    /// A Ctrl-C reaches commands and us at once, and our handler runs before a command can have ended; only the
    /// thread that passes the signal on may be late.
    fn await_signal(&mut self) {
        let signals = self.inbox.signals.as_ref();
        let is_late = signals.is_some_and(os::Signals::has_arrived) && self.signals == 0;
        if !is_late {
            return;
        }
        let deadline = Instant::now() + SIGNAL_TIMEOUT;
        loop {
            let timeout = deadline.saturating_duration_since(Instant::now());
            match self.inbox.receiver.recv_timeout(timeout) {
                Ok(signal @ Message::Signal(_)) => return self.handle(signal),
                Ok(message) => self.pending.push_back(message),
                Err(_) => return,
            }
        }
    }

    /// Waits until something happens or is due.
    fn wait(&mut self) {
        // The sender that we hold ourselves keeps the channel open.
        let message = match self.alarms.next() {
            None => self.inbox.receiver.recv().map_err(RecvTimeoutError::from),
            Some(at) => {
                let timeout = at.saturating_duration_since(Instant::now());
                self.inbox.receiver.recv_timeout(timeout)
            }
        };
        if let Ok(message) = message {
            self.handle(message);
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Signal(signal) => {
                if let Some(signals) = &self.inbox.signals {
                    signals.taken();
                }
                self.signal(&signal);
            }
            Message::Ended {
                turn,
                attempt,
                step,
                end,
            } => {
                self.await_signal();
                let is_running = |active: &ActiveTurn<_>| active.is_running(attempt, Some(step));
                if self.active.get(&turn).is_some_and(is_running) {
                    self.step_ended(turn, end);
                } // else it was killed and given up
            }
            Message::WantsTerminal {
                turn,
                attempt,
                step,
            } => {
                let is_on_time = |active: &ActiveTurn<_>| active.is_on_time(attempt, Some(step));
                if self.active.get(&turn).is_some_and(is_on_time) {
                    let grace = self.grace;
                    (self.on_event)(&RunEvent::WantsTerminal { turn, grace });
                    self.overdue(turn, Failure::WantedTerminal);
                }
            }
            Message::StateLost(why) => {
                self.summary.is_state_lost = true;
                self.ending.get_or_insert(CancelCause::StateLost);
                self.halt();
                let told = format!("{why}: nothing new starts; running commands continue");
                (self.on_event)(&RunEvent::NotKept(told));
            }
            Message::Unsettled(turn) => {
                if let Some(succeeded) = self.unsettled.remove(&turn) {
                    self.summary.has_policy_problem = true;
                    self.settle(turn, succeeded, Settlement::by_itself(succeeded));
                } // else it is settled
            }
            Message::Woken => {}
            Message::NoMoreEarlier => {
                self.summary.has_policy_problem |= self.n_earlier > 0;
                self.n_earlier = 0;
            }
            Message::Earlier(settlement) => {
                self.n_earlier = self.n_earlier.saturating_sub(1);
                self.add(settlement);
            }
            Message::Settled { turn, settlement } => {
                if let Some(succeeded) = self.unsettled.remove(&turn) {
                    self.settle(turn, succeeded, settlement);
                } // else the run is being ended, and it was settled by how it ended
            }
        }
    }

    pub(super) fn start_attempt(&mut self, turn: TurnIndex, attempt: u32) {
        let now = Instant::now();
        let begun = self
            .active
            .get(&turn)
            .map_or(now, |active| active.stage.begun);
        let stage = TurnStage {
            begun,
            attempt,
            attempt_begun: now,
            step: 0,
            has_started: false,
            has_command: false,
            changes: None,
        };
        self.go_on(turn, stage, None);
    }

    /// Starts the first needed step from the current one on.
    fn go_on(&mut self, turn: TurnIndex, mut stage: TurnStage, previous: Option<E::Command>) {
        for step in stage.step..self.turns[turn.get()].steps.len() {
            stage.step = step;
            let upcoming = UpcomingStep {
                index: turn,
                turn: &self.turns[turn.get()],
                attempt: stage.attempt,
                step,
                changes: stage.changes,
            };
            if self.executor.is_held(&upcoming) {
                self.active.remove(&turn);
                let held = HeldTurn {
                    turn,
                    stage,
                    previous,
                };
                return self.held.push(held);
            }
            match self.executor.is_needed(&upcoming) {
                Ok(true) => return self.start_step(turn, stage, previous),
                Ok(false) => {}
                Err(failure) => {
                    self.tell_start(turn, &mut stage);
                    let phase = Phase::Waiting(failure.clone());
                    self.active.insert(turn, ActiveTurn { stage, phase });
                    return self.attempt_failed(turn, failure, false);
                }
            }
        }
        self.end_turn(turn, stage, Outcome::Succeeded);
    }

    pub(super) fn is_held(&self, turn: TurnIndex, attempt: u32) -> bool {
        let mut held = self.held.iter();
        held.any(|held| held.turn == turn && held.stage.attempt == attempt)
    }

    /// Ends the attempt of a turn that is held.
    pub(super) fn held_failed(&mut self, turn: TurnIndex, failure: Failure) {
        for held in self.held.extract_if(.., |held| held.turn == turn) {
            let phase = Phase::Waiting(failure.clone());
            let stage = held.stage;
            self.active.insert(turn, ActiveTurn { stage, phase });
        }
        self.attempt_failed(turn, failure, false);
    }

    /// Asks again about the turns that are held. Returns whether any of them resumed.
    fn go_on_held(&mut self) -> bool {
        let held = std::mem::take(&mut self.held);
        let n_held = held.len();
        for held in held {
            let HeldTurn {
                turn,
                stage,
                previous,
            } = held;
            let has_begun = stage.has_started || stage.attempt > 1;
            match self.ending {
                Some(cause) if has_begun && !cause.is_answered() => {
                    let failure = cut_short(cause, stage.has_command || stage.attempt > 1);
                    self.end_turn(turn, stage, Outcome::Failed(failure));
                }
                Some(_) if !has_begun && !self.may_go_on(turn) => self.schedule.withdraw(turn),
                _ => self.go_on(turn, stage, previous),
            }
        }
        self.held.len() < n_held
    }

    /// Reports the start of a turn or step; nothing starts before that.
    fn tell_start(&mut self, turn: TurnIndex, stage: &mut TurnStage) {
        let TurnStage { attempt, step, .. } = *stage;
        let is_first = !std::mem::replace(&mut stage.has_started, true);
        if is_first {
            (self.on_event)(&RunEvent::Started { turn, attempt });
        }
        if step > 0 {
            (self.on_event)(&RunEvent::StepStarted { turn, step });
        }
    }

    fn start_step(&mut self, turn: TurnIndex, mut stage: TurnStage, previous: Option<E::Command>) {
        self.tell_start(turn, &mut stage);
        let TurnStage { attempt, step, .. } = stage;
        let is_command = self.turns[turn.get()].steps[step].is_command();
        if is_command && !std::mem::replace(&mut stage.has_command, true) {
            // The time for an answer doesn't count as time of the command.
            let now = Instant::now();
            stage.attempt_begun = now;
            let timeout = self.attempts[turn.get()].timeout;
            if let Some(at) = timeout.and_then(|timeout| now.checked_add(timeout)) {
                self.alarms.set(at, Alarm::Attempt(turn, attempt));
            }
        }
        let end = StepReporter {
            sender: self.inbox.sender.clone(),
            turn,
            attempt,
            step,
        };
        let started = self.executor.start(StepStart {
            index: turn,
            turn: &self.turns[turn.get()],
            attempt,
            step,
            attempts: &self.attempts[turn.get()],
            previous,
            end,
        });
        let (phase, failure) = match started {
            Ok(command) => (Phase::running(command), None),
            Err(failure) => (Phase::Waiting(failure.clone()), Some(failure)),
        };
        self.active.insert(turn, ActiveTurn { stage, phase });
        if let Some(failure) = failure {
            self.attempt_failed(turn, failure, false);
        }
    }

    pub(super) fn step_ended(&mut self, turn: TurnIndex, end: StepEnd) {
        if let Some(problem) = end.output_lost {
            (self.on_event)(&RunEvent::OutputLost { turn, problem });
        }
        let active = self.active.get_mut(&turn).expect("it is running");
        // Regardless of its result: after an interrupt, the work may be half done.
        let result = match active.overdue() {
            Some(failure) => Err(failure),
            None => end.result,
        };
        let exit_codes = match self.turns[turn.get()].steps.get(active.stage.step) {
            Some(Step::CommandWith(_, exit_codes)) => exit_codes,
            _ => &self.attempts[turn.get()].exit_codes,
        };
        let status = match result {
            Ok(()) => 0,
            Err(Failure::Exited(status)) if exit_codes.is_success(status) => status,
            Err(failure) => return self.attempt_failed(turn, failure, end.output_matches),
        };
        if let Some(signal) = self.summary.signal
            && active.is_interrupted()
            && exit_codes.success_on_interrupt != Some(true)
        {
            return self.turn_ended(turn, Outcome::Failed(Failure::Interrupted(signal)));
        }
        let mut changes = end.changes;
        if let Some(has_changes) = exit_codes.has_changes(status) {
            let summary = changes.get_or_insert(ChangeSummary::uncounted(has_changes));
            // A status that means changes decides, since output can be read wrongly. Another one is
            // that of every success: an apply that has changed something exits with 0.
            summary.has_changes |= has_changes;
        }
        active.stage.changes = changes.or(active.stage.changes);
        self.step_succeeded(turn);
    }

    fn step_succeeded(&mut self, turn: TurnIndex) {
        let Some(active) = self.active.get(&turn) else {
            return;
        };
        let step = active.stage.step + 1;
        if step == self.turns[turn.get()].steps.len() {
            return self.turn_ended(turn, Outcome::Succeeded);
        }
        if let Some(cause) = self.ending
            && !cause.is_answered()
        {
            let failure = cut_short(cause, active.stage.has_command);
            return self.turn_ended(turn, Outcome::Failed(failure));
        }
        let active = self.active.remove(&turn).expect("looked up above");
        let stage = TurnStage {
            step,
            ..active.stage
        };
        self.go_on(turn, stage, active.phase.into_command());
    }

    fn attempt_failed(&mut self, turn: TurnIndex, failure: Failure, output_matches: bool) {
        let may_go_on = self.may_go_on(turn);
        let active = self.active.get_mut(&turn).expect("it was started");
        let attempt = active.stage.attempt;
        let retry = self.attempts[turn.get()].retry.as_ref();
        let pause = retry.and_then(|retry| wait(retry, attempt, &failure, output_matches));
        let next = pause.filter(|_| may_go_on);
        let Some((wait, at)) =
            next.and_then(|wait| Some((wait, Instant::now().checked_add(wait)?)))
        else {
            return self.turn_ended(turn, Outcome::Failed(failure));
        };
        active.phase = Phase::Waiting(failure.clone());
        self.alarms.set(at, Alarm::Retry(turn));
        let elapsed = active.stage.attempt_begun.elapsed();
        (self.on_event)(&RunEvent::Retrying {
            turn,
            attempt,
            failure,
            elapsed,
            wait,
        });
    }

    pub(super) fn turn_ended(&mut self, turn: TurnIndex, outcome: Outcome) {
        let active = self.active.remove(&turn).expect("it was started");
        self.end_turn(turn, active.stage, outcome);
    }
}

/// Returns the failure of a turn between two steps when the run is being ended.
pub(super) fn cut_short(cause: CancelCause, has_command: bool) -> Failure {
    match cause {
        CancelCause::RunTimedOut(timeout) => Failure::RunTimedOut(timeout),
        CancelCause::Signal(signal) => Failure::Signalled(signal),
        CancelCause::StateLost => {
            let why =
                "the state can no longer be written, or the job has lost its lease".to_owned();
            if has_command {
                Failure::Lost(why)
            } else {
                Failure::NotStarted(why)
            }
        }
        CancelCause::Failed(_) | CancelCause::Rejected | CancelCause::Stuck => {
            unreachable!("what is answered goes on")
        }
    }
}

/// A scheduled action. If it is obsolete when it is due, it does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// The time of the run is over.
    Run,
    /// The time of an attempt is over.
    Attempt(TurnIndex, u32),
    /// The grace period of an attempt is over.
    Grace(TurnIndex, u32),
    /// A killed command is no longer waited for.
    Lost(TurnIndex, u32),
    /// The next attempt begins.
    Retry(TurnIndex),
}

/// All scheduled actions, the earliest first.
#[derive(Debug, Default)]
pub(super) struct Alarms(BinaryHeap<Reverse<(Instant, Alarm)>>);

impl Alarms {
    pub(super) fn set(&mut self, at: Instant, alarm: Alarm) {
        self.0.push(Reverse((at, alarm)));
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes out the next one if it is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<Alarm> {
        self.next().filter(|&at| at <= now)?;
        self.0.pop().map(|Reverse((_, alarm))| alarm)
    }
}
