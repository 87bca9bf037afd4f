//! The end of turns in the loop, and its effect on other turns.

use std::time::Duration;

use super::active::{Phase, TurnStage};
use super::run_loop::RunLoop;
use super::{Executor, Settlement, SettlementSender};
use crate::record::journal::ChangeSummary;
use crate::run::event::{CancelCause, Ending, Outcome, RunEvent};
use crate::run::schedule::Skipped;
use crate::run::turn::TurnIndex;

impl<E: Executor> RunLoop<'_, E> {
    pub(super) fn end_turn(&mut self, turn: TurnIndex, stage: TurnStage, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Succeeded if self.executor.is_unconfirmed(turn) => Outcome::Unconfirmed,
            outcome => outcome,
        };
        let is_done = outcome == Outcome::Succeeded;
        let succeeded = match outcome {
            Outcome::Unconfirmed => !self.lets_failures_count(turn),
            _ => is_done,
        };
        self.schedule.finish(turn, succeeded);
        let changes = stage.changes.or_else(|| {
            let is_changed = self.executor.applies_changes(turn);
            is_changed.then(|| ChangeSummary::uncounted(true))
        });
        let ending = Ending {
            turn,
            outcome,
            elapsed: stage.begun.elapsed(),
            // If there was nothing to do, nothing was started.
            attempts: stage.attempt - u32::from(!stage.has_started),
            changes: changes.filter(|_| is_done),
        };
        self.report_end(ending.clone());
        if ending.outcome == Outcome::Unconfirmed {
            // The turn is not over: policies are not asked.
            return self.settle(turn, succeeded, Settlement::by_itself(succeeded));
        }
        self.ask_meaning(&ending);
    }

    /// Counts the failed turns again that a turn replaced, because it did nothing. Returns whether there were any.
    /// Failures before a succeeded turn of the stack stay replaced.
    fn lets_failures_count(&mut self, turn: TurnIndex) -> bool {
        let stack = &self.turns[turn.get()].stack;
        let is_same = |other: TurnIndex| self.turns[other.get()].stack == *stack;
        let replaced = &mut self.summary.replaced;
        if !replaced.iter().any(|&other| is_same(other)) {
            return false;
        }
        let endings = self.summary.endings.iter();
        let succeeded = endings.filter(|it| it.outcome == Outcome::Succeeded && is_same(it.turn));
        let made_up_for = succeeded.map(|it| it.turn).max();
        let n_replaced = replaced.len();
        replaced.retain(|&other| !is_same(other) || made_up_for.is_some_and(|it| other < it));
        replaced.len() < n_replaced
    }

    /// Cancels the initial turns, which were not approved.
    pub(super) fn reject(&mut self) {
        self.ending.get_or_insert(CancelCause::Rejected);
        self.schedule.stop_all_but_answers();
        let turns: Vec<TurnIndex> = self.schedule.waiting().collect();
        for turn in turns {
            self.cancel(turn);
        }
    }

    /// Asks for the effect of an ended turn on others.
    fn ask_meaning(&mut self, ending: &Ending) {
        let turn = ending.turn;
        let succeeded = ending.outcome == Outcome::Succeeded;
        if self.signals > 1 {
            // No one waits for an answer any more.
            return self.settle(turn, succeeded, Settlement::by_itself(succeeded));
        }
        let later = SettlementSender {
            sender: self.inbox.sender.clone(),
            turn,
            is_told: false,
        };
        match self.executor.settle(ending, later) {
            Some(settlement) => self.settle(turn, succeeded, settlement),
            None => _ = self.unsettled.insert(turn, succeeded),
        }
    }

    /// Cancels a turn that never starts, because another one failed.
    pub(super) fn cancel(&mut self, turn: TurnIndex) {
        let cause = self.ending.unwrap_or(CancelCause::Stuck);
        self.schedule.cancel(turn);
        let ending = never_ran(turn, Outcome::Cancelled(cause));
        self.report_end(ending.clone());
        self.ask_meaning(&ending);
    }

    /// Returns whether the run is being ended from outside: nothing starts any more.
    pub(super) fn is_halted(&self) -> bool {
        self.ending.is_some_and(|cause| !cause.is_answered())
    }

    /// Starts or blocks the turns after an ended one.
    pub(super) fn settle(&mut self, turn: TurnIndex, succeeded: bool, settlement: Settlement) {
        let counts_as_success = settlement.counts_as_success;
        self.add(settlement);
        let is_cancelled = !self.schedule.has_ended(turn);
        if is_cancelled {
            return; // it means nothing for others that it never ran
        }
        // Once the run is being ended, no retry starts.
        if counts_as_success && !succeeded && !self.is_halted() {
            self.summary.replaced.insert(turn);
        }
        let skipped = self.schedule.settle(turn, counts_as_success);
        self.report_skipped(skipped);
        if self.schedule.is_stopped() {
            self.ending.get_or_insert(CancelCause::Failed(turn));
        }
    }

    /// Adds the turns that follow, and reports the answers of policies.
    pub(super) fn add(&mut self, settlement: Settlement) {
        for added in settlement.added {
            let (number, skipped) =
                self.schedule
                    .add(added.node, added.rank, added.answers_failure);
            self.turns.push(added.turn.clone());
            self.attempts.push(added.attempts);
            (self.on_event)(&RunEvent::Added {
                turn: number,
                added: added.turn,
                follows: added.follows,
            });
            self.report_skipped(skipped);
        }
        for joined in settlement.answering {
            self.schedule.answer_failure(joined);
        }
        if let Some(evaluated) = settlement.evaluated {
            self.summary.has_policy_problem |= evaluated.is_problem();
            (self.on_event)(&RunEvent::Evaluated(evaluated));
        }
    }

    fn report_skipped(&mut self, skipped: Vec<Skipped>) {
        for Skipped { turn, cause } in skipped {
            self.report_end(never_ran(turn, Outcome::Skipped { cause }));
        }
    }

    fn report_end(&mut self, ending: Ending) {
        if let Outcome::Skipped { .. } | Outcome::Cancelled(_) = ending.outcome {
            self.lets_failures_count(ending.turn);
        }
        (self.on_event)(&RunEvent::Ended(ending.clone()));
        self.summary.endings.push(ending);
    }

    /// Cancels pending retries, because nothing new starts.
    pub(super) fn give_up_retries(&mut self) {
        if self.ending.is_none() {
            return;
        }
        let waiting: Vec<_> = self
            .active
            .iter()
            .filter_map(|(&turn, active)| match &active.phase {
                Phase::Waiting(failure) if !self.may_go_on(turn) => Some((turn, failure.clone())),
                Phase::Waiting(_) | Phase::Running { .. } => None,
            })
            .collect();
        for (turn, failure) in waiting {
            self.turn_ended(turn, Outcome::Failed(failure));
        }
    }

    /// Reports the turns that never started.
    pub(super) fn cancel_waiting(&mut self) {
        let cause = self.ending.unwrap_or(CancelCause::Stuck);
        let waiting: Vec<TurnIndex> = self.schedule.waiting().collect();
        for turn in waiting {
            self.report_end(never_ran(turn, Outcome::Cancelled(cause)));
        }
    }
}

fn never_ran(turn: TurnIndex, outcome: Outcome) -> Ending {
    Ending {
        turn,
        outcome,
        elapsed: Duration::ZERO,
        attempts: 0,
        changes: None,
    }
}
