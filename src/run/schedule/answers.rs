//! Turns that answer a failure, and those that it stops for good.

use super::{Done, Schedule, State, Stop};
use crate::run::turn::TurnIndex;

impl Schedule {
    /// Lets a turn answer a failure from now on. One that has started goes on as it is.
    pub fn answer_failure(&mut self, turn: TurnIndex) {
        let entry = &mut self.turns[turn.get()];
        entry.answers_failure = true;
        if entry.state == State::Waiting && entry.n_waits == 0 {
            self.queue(turn); // it may have been passed over
        }
    }

    pub fn answers_failure(&self, turn: TurnIndex) -> bool {
        self.turns[turn.get()].answers_failure
    }

    /// From now on nothing starts but what answers a failure.
    pub fn stop_all_but_answers(&mut self) {
        self.stopped.get_or_insert(Stop::AfterFailure);
    }

    /// Returns the first of the turns that will never start because of a failure that stopped the others.
    pub fn next_to_cancel(&self) -> Option<TurnIndex> {
        let is_stopped = self.stopped == Some(Stop::AfterFailure);
        let mut waiting = is_stopped.then(|| self.waiting()).into_iter().flatten();
        waiting.find(|turn| !self.answers_failure(*turn))
    }

    /// Cancels a turn that has not started: what waits for it waits no longer.
    pub fn cancel(&mut self, turn: TurnIndex) {
        let entry = &mut self.turns[turn.get()];
        assert!(
            entry.state == State::Waiting,
            "only what waits can be cancelled"
        );
        entry.state = State::Over(None);
        self.n_left -= 1;
        if entry.n_waits == 0 {
            self.complete(vec![Done::Turn(turn)]);
        } // else it is done once nothing is left that it waits for
    }
}
