//! Time, which tests can control.

use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;

pub trait Clock {
    /// Returns the time since some fixed moment; it never decreases.
    fn elapsed(&self) -> Duration;

    fn now(&self) -> Timestamp;

    fn sleep(&self, duration: Duration);

    /// Returns a function that ends a wait early, from any thread, if there is one.
    fn alarm(&self) -> Option<Box<dyn FnOnce() + Send>> {
        None
    }
}

/// A moment on two clocks: one stops while the machine sleeps, the other can be set.
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

    /// Returns the time since then, by the clock with the larger value.
    pub(super) fn passed(self, clock: &dyn Clock) -> Duration {
        let elapsed = clock.elapsed().saturating_sub(self.elapsed);
        let time = clock.now().duration_since(self.time).unsigned_abs();
        elapsed.max(time)
    }
}

/// When the program began, so that all clocks agree.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

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
        // Milliseconds are precise enough.
        let now = Timestamp::now();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    fn sleep(&self, duration: Duration) {
        thread::sleep(duration);
    }
}
