//! Time, which tests make up.

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
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        let start = Instant::now();
        SystemClock { start }
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
