//! Turns that answer a failure, and turns that a failure cancels.

use super::{Done, Schedule, State, Stop};
use crate::run::turn::TurnIndex;

impl Schedule {
    /// Marks a turn as answering a failure. A started one is not affected.
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

    /// From now on only turns that answer a failure start.
    pub fn stop_all_but_answers(&mut self) {
        self.stopped.get_or_insert(Stop::AfterFailure);
    }

    /// Returns the first turn that a failure keeps from ever starting.
    pub fn next_to_cancel(&self) -> Option<TurnIndex> {
        let is_stopped = self.stopped == Some(Stop::AfterFailure);
        let mut waiting = is_stopped.then(|| self.waiting()).into_iter().flatten();
        waiting.find(|turn| !self.answers_failure(*turn))
    }

    /// Cancels a turn that has not started, and releases the turns that wait for it.
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
