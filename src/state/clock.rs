//! Time, which tests make up.

use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// What tells the time, and waits.
pub trait Clock {
    /// Returns how much time has passed since some moment, which nobody can set back.
    fn elapsed(&self) -> Duration;

    /// Returns the time of day.
    fn now(&self) -> Timestamp;

    /// Waits.
    fn sleep(&self, duration: Duration);

    /// Returns what ends a wait early, from any thread, if anything does.
    fn alarm(&self) -> Option<Box<dyn FnOnce() + Send>> {
        None
    }
}

/// A moment by both of its clocks: one stops while the machine sleeps, the other may be set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) elapsed: Duration,
    time: Timestamp,
}

impl Moment {
    pub(super) fn now(clock: &dyn Clock) -> Self {
        Moment {
            elapsed: clock.elapsed(),
            time: clock.now(),
        }
    }

    /// Returns how much time has passed since, by the clock that says more.
    pub(super) fn passed(self, clock: &dyn Clock) -> Duration {
        let elapsed = clock.elapsed().saturating_sub(self.elapsed);
        let time = clock.now().duration_since(self.time).unsigned_abs();
        elapsed.max(time)
    }
}

/// When the program began, so that all clocks agree.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The clock of the machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { start: *START }
    }
}

impl Clock for SystemClock {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn now(&self) -> Timestamp {
        // Milliseconds say enough.
        let now = Timestamp::now();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    fn sleep(&self, duration: Duration) {
        thread::sleep(duration);
    }
}
