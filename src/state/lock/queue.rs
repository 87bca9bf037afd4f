//! The queue of runs that wait for a lock in a bucket, which the kernel cannot watch. Each has a ticket.
//!
//! Tickets only decide the order; the lock is safe without them. A run that does not take a free lock in time loses
//! its place, so cancelled runs block no one.

use std::time::Duration;

use uuid::Uuid;

use super::super::backend::Backend;
use super::super::clock::Clock;

/// How long a free lock is left to each run ahead.
const TURN: Duration = Duration::from_secs(3);

/// The time between two checks of the first in the queue; the others wait longer.
const PAUSE: Duration = Duration::from_millis(100);

/// The same while a lock is held for long.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// The longest pause of those that are not the first.
const MAX_PAUSE_BEHIND: Duration = Duration::from_secs(5);

/// The poll interval is at most this fraction of the time waited so far.
const SHARE: u32 = 20;

pub(super) struct QueuePlace<'b> {
    backend: &'b Backend,
    run: String,
    /// Its ticket, once it has one.
    ticket: Option<String>,
    /// How many runs are ahead, as far as is known.
    ahead: usize,
    /// Since when the lock has been free while others were ahead.
    free_since: Option<Duration>,
}

impl<'b> QueuePlace<'b> {
    pub(super) fn new(backend: &'b Backend, run: &str) -> Self {
        QueuePlace {
            backend,
            run: run.to_owned(),
            ticket: None,
            ahead: 0,
            free_since: None,
        }
    }

    /// Joins the queue, or finds out how many are ahead now.
    pub(super) fn join(&mut self, clock: &dyn Clock) {
        let ticket = self.ticket.get_or_insert_with(|| {
            let time = self.backend.time().unwrap_or_else(|| clock.now());
            format!("{:015}-{}", time.as_millisecond().max(0), self.run)
        });
        let tickets = self.backend.tickets();
        if !tickets.contains(ticket) {
            self.backend.put_ticket(ticket);
        }
        self.ahead = tickets.iter().filter(|other| *other < &*ticket).count();
    }

    /// Returns how many runs are ahead, as far as is known.
    pub(super) fn ahead(&self) -> usize {
        self.ahead
    }

    pub(super) fn note_held(&mut self) {
        self.free_since = None;
    }

    /// Returns whether the run may take the free lock.
    pub(super) fn is_next(&mut self, clock: &dyn Clock) -> bool {
        let tickets = self.backend.tickets();
        let ahead = |other: &&String| self.ticket.as_ref().is_none_or(|own| *other < own);
        let ahead: Vec<&String> = tickets.iter().filter(ahead).collect();
        self.ahead = ahead.len();
        if ahead.is_empty() {
            return true;
        }
        let now = clock.elapsed();
        let since = *self.free_since.get_or_insert(now);
        let n_turns = u32::try_from(ahead.len()).unwrap_or(u32::MAX);
        if now.saturating_sub(since) < TURN.saturating_mul(n_turns) {
            return false;
        }
        for ticket in ahead {
            self.backend.delete_ticket(ticket);
        }
        true
    }

    /// Returns how long to wait before the next look, after so long with the same holder.
    pub(super) fn pause(&self, waited: Duration) -> Duration {
        let n_looking = u32::try_from(self.ahead)
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        let longest = match self.ahead {
            0 => MAX_PAUSE,
            _ => MAX_PAUSE_BEHIND,
        };
        let pause = PAUSE.saturating_mul(n_looking).max(waited / SHARE);
        jittered(pause.min(longest))
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = &self.ticket {
            self.backend.delete_ticket(ticket);
        }
    }
}

/// Returns a duration between half of this one and one and a half of it: runs that wait must not look all at once.
pub(super) fn jittered(duration: Duration) -> Duration {
    let [random, ..] = Uuid::new_v4().into_bytes();
    duration / 2 + duration * u32::from(random) / 256
}
