//! Actions scheduled for a certain time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use crate::run::turn::TurnIndex;

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
