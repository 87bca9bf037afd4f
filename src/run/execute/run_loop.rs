//! The loop: what comes, what is due, what may start, one at a time, until nothing is left to do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::active::{Active, Phase};
use super::alarm::{Alarm, Alarms};
use super::retry::wait;
use super::{
    End, Execution, Executor, Inbox, Later, Message, PATIENCE, Settlement, Signal, Start, StepEnd,
    os,
};
use crate::project::attempt::Attempts;
use crate::run::event::{CancelCause, Ending, Failure, Outcome, Reaction, RunEvent, RunSummary};
use crate::run::schedule::{Schedule, Skipped};
use crate::run::turn::{Step, Turn, TurnIndex};

/// How long a command that was killed is waited for. One that hangs in the kernel, or whose output
/// nobody takes from us, may never end.
const LAST_WAIT: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 5000 });

/// A signal that follows an equal one faster than a person could send it is the same one, delivered
/// to `orch` and again to its process group.
pub(super) const ECHO: Duration = Duration::from_millis(30);

/// Runs turns until nothing is left to do. That a command fails is data in the summary.
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
        unsettled: BTreeMap::new(),
        summary: RunSummary::default(),
        signals: 0,
        last_signal: None,
        ending: None,
        on_event,
    };
    run.go()
}

struct RunLoop<'a, E: Executor> {
    begun: Instant,
    schedule: Schedule,
    turns: Vec<Turn>,
    attempts: Vec<Attempts>,
    timeout: Option<Duration>,
    grace: Duration,
    executor: &'a mut E,
    inbox: &'a Inbox,
    alarms: Alarms,
    active: BTreeMap<TurnIndex, Active<E::Command>>,
    /// Turns that have ended, and whether they succeeded. What that means for others is not known.
    unsettled: BTreeMap<TurnIndex, bool>,
    summary: RunSummary,
    signals: u32,
    last_signal: Option<(i32, Instant)>,
    /// Why nothing new starts any more: what came first.
    ending: Option<CancelCause>,
    on_event: &'a mut dyn FnMut(&RunEvent),
}

impl<E: Executor> RunLoop<'_, E> {
    /// Does one thing at a time: what has come meanwhile, and what is due, counts before anything
    /// starts.
    fn go(mut self) -> Arc<RunSummary> {
        loop {
            self.drain_inbox();
            if let Some(alarm) = self.alarms.due(Instant::now()) {
                self.alarm(alarm);
                continue;
            }
            if self.is_ending() {
                self.give_up_retries();
            } else if let Some(turn) = self.schedule.start_next() {
                self.start_attempt(turn, 1);
                continue;
            }
            if self.active.is_empty() && self.unsettled.is_empty() {
                break;
            }
            self.wait();
        }
        self.cancel_waiting();
        self.summary.elapsed = self.begun.elapsed();
        let summary = Arc::new(self.summary);
        (self.on_event)(&RunEvent::RunFinished(summary.clone()));
        summary
    }

    /// Returns whether nothing new starts any more.
    fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Handles what is in the inbox, so that nothing starts after a signal.
    fn drain_inbox(&mut self) {
        // A Ctrl-C reaches commands and us at once, and our handler runs before a command can have
        // ended; only the thread that passes the signal on may be late.
        let signals = self.inbox.signals.as_ref();
        let is_late = signals.is_some_and(os::Signals::has_arrived);
        let deadline = Instant::now() + PATIENCE;
        let mut is_late = is_late && self.signals == 0;
        loop {
            let message = if is_late {
                let patience = deadline.saturating_duration_since(Instant::now());
                self.inbox.receiver.recv_timeout(patience).ok()
            } else {
                self.inbox.receiver.try_recv().ok()
            };
            let Some(message) = message else {
                break;
            };
            is_late &= !matches!(message, Message::Signal(_));
            self.handle(message);
        }
    }

    /// Waits until something happens or is due.
    fn wait(&mut self) {
        // The sender that we hold ourselves keeps the channel open.
        let message = match self.alarms.next() {
            None => self.inbox.receiver.recv().map_err(RecvTimeoutError::from),
            Some(at) => {
                let patience = at.saturating_duration_since(Instant::now());
                self.inbox.receiver.recv_timeout(patience)
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
                let is_running = |active: &Active<_>| active.is_running(attempt, Some(step));
                if self.active.get(&turn).is_some_and(is_running) {
                    self.step_ended(turn, end);
                } // else it was killed and given up
            }
            Message::WantsTerminal {
                turn,
                attempt,
                step,
            } => {
                let is_on_time = |active: &Active<_>| active.is_on_time(attempt, Some(step));
                if self.active.get(&turn).is_some_and(is_on_time) {
                    self.overdue(turn, Failure::WantedTerminal);
                }
            }
            Message::Settled { turn, settlement } => {
                if let Some(succeeded) = self.unsettled.remove(&turn) {
                    self.settle(turn, succeeded, settlement);
                } // else the run is being ended, and it was settled by how it ended
            }
        }
    }

    fn start_attempt(&mut self, turn: TurnIndex, attempt: u32) {
        (self.on_event)(&RunEvent::Started { turn, attempt });
        let now = Instant::now();
        let timeout = self.attempts[turn.get()].timeout;
        if let Some(at) = timeout.and_then(|timeout| now.checked_add(timeout)) {
            self.alarms.set(at, Alarm::Attempt(turn, attempt));
        }
        let begun = self.active.get(&turn).map_or(now, |active| active.begun);
        self.start_step(turn, begun, now, attempt, 0, None);
    }

    fn start_step(
        &mut self,
        turn: TurnIndex,
        begun: Instant,
        attempt_begun: Instant,
        attempt: u32,
        step: usize,
        previous: Option<E::Command>,
    ) {
        let end = End {
            sender: self.inbox.sender.clone(),
            turn,
            attempt,
            step,
        };
        let started = self.executor.start(Start {
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
        self.active.insert(
            turn,
            Active {
                begun,
                attempt,
                attempt_begun,
                step,
                phase,
            },
        );
        if let Some(failure) = failure {
            self.attempt_failed(turn, failure, false);
        }
    }

    fn step_ended(&mut self, turn: TurnIndex, end: StepEnd) {
        if let Some(problem) = end.output_lost {
            (self.on_event)(&RunEvent::OutputLost { turn, problem });
        }
        let active = self.active.get_mut(&turn).expect("it is running");
        // Whatever it says: if it was interrupted, half of the work may be done.
        let result = match active.overdue() {
            Some(failure) => Err(failure),
            None => end.result,
        };
        match result {
            Err(failure) => self.attempt_failed(turn, failure, end.output_matches),
            Ok(()) => self.step_succeeded(turn),
        }
    }

    fn step_succeeded(&mut self, turn: TurnIndex) {
        let Some(active) = self.active.get(&turn) else {
            return;
        };
        let step = active.step + 1;
        if step == self.turns[turn.get()].steps.len() {
            return self.turn_ended(turn, Outcome::Succeeded);
        }
        if let Some(cause) = self.ending
            && !matches!(cause, CancelCause::Failed(_))
        {
            let failure = match cause {
                CancelCause::RunTimedOut(timeout) => Failure::RunTimedOut(timeout),
                CancelCause::Signal(signal) => Failure::Signalled(signal),
                CancelCause::Failed(_) | CancelCause::Stuck => unreachable!("excluded above"),
            };
            return self.turn_ended(turn, Outcome::Failed(failure));
        }
        let active = self.active.remove(&turn).expect("looked up above");
        (self.on_event)(&RunEvent::StepStarted { turn, step });
        let (begun, attempt_begun) = (active.begun, active.attempt_begun);
        let (attempt, previous) = (active.attempt, active.phase.into_command());
        self.start_step(turn, begun, attempt_begun, attempt, step, previous);
    }

    fn attempt_failed(&mut self, turn: TurnIndex, failure: Failure, output_matches: bool) {
        let is_ending = self.is_ending();
        let active = self.active.get_mut(&turn).expect("it was started");
        let attempt = active.attempt;
        let retry = self.attempts[turn.get()].retry.as_ref();
        let pause = retry.and_then(|retry| wait(retry, attempt, &failure, output_matches));
        let next = pause.filter(|_| !is_ending);
        let Some((wait, at)) =
            next.and_then(|wait| Some((wait, Instant::now().checked_add(wait)?)))
        else {
            return self.turn_ended(turn, Outcome::Failed(failure));
        };
        active.phase = Phase::Waiting(failure.clone());
        self.alarms.set(at, Alarm::Retry(turn));
        let elapsed = active.attempt_begun.elapsed();
        (self.on_event)(&RunEvent::Retrying {
            turn,
            attempt,
            failure,
            elapsed,
            wait,
        });
    }

    fn turn_ended(&mut self, turn: TurnIndex, outcome: Outcome) {
        let active = self.active.remove(&turn).expect("it was started");
        let succeeded = outcome == Outcome::Succeeded;
        self.schedule.finish(turn, succeeded);
        let ending = Ending {
            turn,
            outcome,
            elapsed: active.begun.elapsed(),
            attempts: active.attempt,
        };
        self.tell_end(ending.clone());
        if self.is_halted() {
            return self.settle(turn, succeeded, Settlement::by_itself(succeeded));
        }
        let later = Later {
            sender: self.inbox.sender.clone(),
            turn,
        };
        match self.executor.settle(&ending, later) {
            Some(settlement) => self.settle(turn, succeeded, settlement),
            None => _ = self.unsettled.insert(turn, succeeded),
        }
    }

    /// Returns whether the run is being ended from outside: nothing can be added to it any more.
    fn is_halted(&self) -> bool {
        self.ending
            .is_some_and(|cause| !matches!(cause, CancelCause::Failed(_)))
    }

    /// Lets others go on, or not, after a turn that has ended.
    fn settle(&mut self, turn: TurnIndex, succeeded: bool, settlement: Settlement) {
        for added in settlement.added {
            let (number, skipped) = self.schedule.add(added.node, added.rank);
            self.turns.push(added.turn.clone());
            self.attempts.push(added.attempts);
            (self.on_event)(&RunEvent::Added {
                turn: number,
                added: added.turn,
            });
            self.tell_skipped(skipped);
        }
        if settlement.counts_as_success && !succeeded {
            self.summary.replaced.insert(turn);
        }
        let skipped = self.schedule.settle(turn, settlement.counts_as_success);
        self.tell_skipped(skipped);
        if self.schedule.is_stopped() {
            self.ending.get_or_insert(CancelCause::Failed(turn));
        }
    }

    fn tell_skipped(&mut self, skipped: Vec<Skipped>) {
        for Skipped { turn, cause } in skipped {
            self.tell_end(never_ran(turn, Outcome::Skipped { cause }));
        }
    }

    fn tell_end(&mut self, ending: Ending) {
        (self.on_event)(&RunEvent::Ended(ending.clone()));
        self.summary.endings.push(ending);
    }

    /// Once nothing new starts, neither does another attempt.
    fn give_up_retries(&mut self) {
        let waiting: Vec<_> = self
            .active
            .iter()
            .filter_map(|(&turn, active)| match &active.phase {
                Phase::Waiting(failure) => Some((turn, failure.clone())),
                Phase::Running { .. } => None,
            })
            .collect();
        for (turn, failure) in waiting {
            self.turn_ended(turn, Outcome::Failed(failure));
        }
    }

    fn alarm(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::Run => {
                let (Some(timeout), false) = (self.timeout, self.schedule.is_over()) else {
                    return; // the last turn has just ended
                };
                self.ending.get_or_insert(CancelCause::RunTimedOut(timeout));
                self.halt();
                let running = self.running();
                (self.on_event)(&RunEvent::RunTimedOut {
                    timeout,
                    grace: self.grace,
                    running: running.clone(),
                });
                for turn in running {
                    self.overdue(turn, Failure::RunTimedOut(timeout));
                }
            }
            Alarm::Attempt(turn, attempt) => {
                let timeout = self.attempts[turn.get()].timeout;
                let is_on_time = |active: &Active<_>| active.is_on_time(attempt, None);
                let is_on_time = self.active.get(&turn).is_some_and(is_on_time);
                let (Some(timeout), true) = (timeout, is_on_time) else {
                    return; // it has ended, or is being ended
                };
                let grace = self.grace;
                (self.on_event)(&RunEvent::TimedOut {
                    turn,
                    timeout,
                    grace,
                });
                self.overdue(turn, Failure::TimedOut(timeout));
            }
            Alarm::Grace(turn, attempt) => {
                if self.is_running(turn, attempt) {
                    (self.on_event)(&RunEvent::Killed(turn));
                    self.react(turn, Reaction::Kill, None);
                }
            }
            Alarm::Lost(turn, attempt) => {
                if self.is_running(turn, attempt) {
                    let problem = "it was killed and has not ended";
                    self.step_ended(
                        turn,
                        StepEnd {
                            result: Err(Failure::Lost(problem.to_owned())),
                            output_matches: false,
                            output_lost: None,
                        },
                    );
                }
            }
            Alarm::Retry(turn) => {
                if let Some(active) = self.active.get(&turn)
                    && !self.is_ending()
                {
                    let next = active.attempt + 1;
                    self.start_attempt(turn, next);
                }
            }
        }
    }

    /// Returns whether an attempt is running.
    fn is_running(&self, turn: TurnIndex, attempt: u32) -> bool {
        let active = self.active.get(&turn);
        active.is_some_and(|active| active.is_running(attempt, None))
    }

    /// Interrupts a command that cannot succeed any more, and makes sure that it ends.
    fn overdue(&mut self, turn: TurnIndex, failure: Failure) {
        let grace = self.grace;
        let Some(active) = self.active.get_mut(&turn) else {
            return;
        };
        let attempt = active.attempt;
        if let Phase::Running {
            overdue: overdue @ None,
            ..
        } = &mut active.phase
        {
            *overdue = Some(failure);
            self.react(turn, Reaction::Interrupt, None);
            if let Some(at) = Instant::now().checked_add(grace) {
                self.alarms.set(at, Alarm::Grace(turn, attempt));
            }
        }
    }

    /// Interrupts, at most once, terminates or kills the command of a turn, if one is running.
    fn react(&mut self, turn: TurnIndex, reaction: Reaction, signal: Option<&Signal>) {
        let Some(active) = self.active.get_mut(&turn) else {
            return;
        };
        active.phase.react(reaction, signal);
        if reaction == Reaction::Kill && matches!(active.phase, Phase::Running { .. }) {
            let alarm = Alarm::Lost(turn, active.attempt);
            self.alarms.set(Instant::now() + LAST_WAIT, alarm);
        }
    }

    /// Ends what waits for somebody outside once the run is being ended: questions, which are as if
    /// they had never been asked, and what ended turns mean.
    fn halt(&mut self) {
        self.schedule.stop();
        let is_question = |turn: TurnIndex, step: usize| {
            matches!(
                self.turns[turn.get()].steps.get(step),
                Some(Step::Confirmation)
            )
        };
        let asking: Vec<TurnIndex> = self
            .active
            .iter()
            .filter(|(turn, active)| is_question(**turn, active.step))
            .map(|(turn, _)| *turn)
            .collect();
        for turn in asking {
            if let Some(mut active) = self.active.remove(&turn) {
                active.phase.react(Reaction::Interrupt, None);
                self.schedule.withdraw(turn);
            }
        }
        for (turn, succeeded) in std::mem::take(&mut self.unsettled) {
            self.settle(turn, succeeded, Settlement::by_itself(succeeded));
        }
    }

    fn running(&self) -> Vec<TurnIndex> {
        let is_running = |active: &Active<_>| matches!(active.phase, Phase::Running { .. });
        let running = self.active.iter().filter(|(_, active)| is_running(active));
        running.map(|(&turn, _)| turn).collect()
    }

    fn signal(&mut self, signal: &Signal) {
        let is_echo = self.last_signal.is_some_and(|(number, at)| {
            number == signal.number && signal.at.saturating_duration_since(at) < ECHO
        });
        self.last_signal = Some((signal.number, signal.at));
        if is_echo {
            return;
        }
        self.signals += 1;
        self.summary.signal.get_or_insert(signal.number);
        self.ending
            .get_or_insert(CancelCause::Signal(signal.number));
        self.halt();
        let reaction = match self.signals {
            1 => Reaction::Interrupt,
            2 => Reaction::Terminate,
            _ => Reaction::Kill,
        };
        let running = self.running();
        (self.on_event)(&RunEvent::Interrupted {
            signal: signal.number,
            reaction,
            running: running.clone(),
        });
        for turn in running {
            self.react(turn, reaction, Some(signal));
        }
    }

    /// Tells of the turns that never started.
    fn cancel_waiting(&mut self) {
        let cause = self.ending.unwrap_or(CancelCause::Stuck);
        let waiting: Vec<TurnIndex> = self.schedule.waiting().collect();
        for turn in waiting {
            self.tell_end(never_ran(turn, Outcome::Cancelled(cause)));
        }
    }
}

fn never_ran(turn: TurnIndex, outcome: Outcome) -> Ending {
    Ending {
        turn,
        outcome,
        elapsed: Duration::ZERO,
        attempts: 0,
    }
}
