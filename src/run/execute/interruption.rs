//! Interruptions in the loop: time limits, signals, and the end of the run.

use std::time::{Duration, Instant};

use super::active::{ActiveTurn, Phase};
use super::run_loop::Alarm;
use super::run_loop::{RunLoop, cut_short};
use super::{Executor, Settlement, Signal, StepEnd};
use crate::run::event::{CancelCause, Failure, Outcome, Reaction, RunEvent};
use crate::run::turn::{Step, TurnIndex};

/// How long to wait for a killed command. It may never end if it hangs in the kernel, or if its output is not read.
const LAST_WAIT: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 5000 });

/// A signal that follows an equal one faster than a person could send it is the same one, delivered
/// to `orch` and again to its process group.
pub(super) const ECHO: Duration = Duration::from_millis(30);

impl<E: Executor> RunLoop<'_, E> {
    /// Performs a due action.
    pub(super) fn alarm(&mut self, alarm: Alarm) {
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
                if let Some(timeout) = timeout
                    && self.is_held(turn, attempt)
                {
                    return self.held_failed(turn, Failure::TimedOut(timeout));
                }
                let is_on_time = |active: &ActiveTurn<_>| active.is_on_time(attempt, None);
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
                            changes: None,
                            output_matches: false,
                            output_lost: None,
                        },
                    );
                }
            }
            Alarm::Retry(turn) => {
                if let Some(active) = self.active.get(&turn)
                    && self.may_go_on(turn)
                {
                    let next = active.stage.attempt + 1;
                    self.start_attempt(turn, next);
                }
            }
        }
    }

    fn is_running(&self, turn: TurnIndex, attempt: u32) -> bool {
        let active = self.active.get(&turn);
        active.is_some_and(|active| active.is_running(attempt, None))
    }

    /// Interrupts a command that can no longer succeed, and ensures that it ends.
    pub(super) fn overdue(&mut self, turn: TurnIndex, failure: Failure) {
        let grace = self.grace;
        let Some(active) = self.active.get_mut(&turn) else {
            return;
        };
        let attempt = active.stage.attempt;
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
            let alarm = Alarm::Lost(turn, active.stage.attempt);
            self.alarms.set(Instant::now() + LAST_WAIT, alarm);
        }
    }

    /// Withdraws open questions when the run is being ended, as if they had never been asked.
    pub(super) fn halt(&mut self) {
        self.schedule.stop();
        let is_question = |turn: TurnIndex, step: usize| {
            matches!(
                self.turns[turn.get()].steps.get(step),
                Some(Step::Confirmation)
            )
        };
        let asking: Vec<(TurnIndex, u32)> = self
            .active
            .iter()
            .filter(|(turn, active)| is_question(**turn, active.stage.step))
            .map(|(turn, active)| (*turn, active.stage.attempt))
            .collect();
        for (turn, attempt) in asking {
            let cause = self
                .ending
                .filter(|cause| attempt > 1 && !cause.is_answered());
            if let (Some(cause), Some(active)) = (cause, self.active.get_mut(&turn)) {
                // An earlier attempt has taken effect.
                active.phase.react(Reaction::Interrupt, None);
                self.turn_ended(turn, Outcome::Failed(cut_short(cause, true)));
            } else if let Some(mut active) = self.active.remove(&turn) {
                active.phase.react(Reaction::Interrupt, None);
                self.schedule.withdraw(turn);
            }
        }
    }

    /// Stops waiting for the effect of ended turns.
    fn give_up_settlements(&mut self) {
        self.n_earlier = 0;
        for (turn, succeeded) in std::mem::take(&mut self.unsettled) {
            self.settle(turn, succeeded, Settlement::by_itself(succeeded));
        }
    }

    fn running(&self) -> Vec<TurnIndex> {
        let is_running = |active: &ActiveTurn<_>| matches!(active.phase, Phase::Running { .. });
        let running = self.active.iter().filter(|(_, active)| is_running(active));
        running.map(|(&turn, _)| turn).collect()
    }

    /// Reacts to a signal, each further one more severely.
    pub(super) fn signal(&mut self, signal: &Signal) {
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
        let is_evaluating = !self.unsettled.is_empty() || self.n_earlier > 0;
        if self.signals > 1 {
            self.give_up_settlements();
        }
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
            is_evaluating,
        });
        for turn in running {
            self.react(turn, reaction, Some(signal));
        }
    }
}
