//! How long the writer of a run waits.

use std::time::Duration;

use crate::state::store::RETRY_TIMEOUT;

#[derive(Debug, Clone, Copy)]
pub struct Pauses {
    /// Between the beginnings of two writes.
    pub between: Duration,
    /// Between two heartbeats.
    pub heartbeat: Duration,
    /// For a backend that fails to return.
    pub retry_timeout: Duration,
    /// Before a failed write is tried again.
    pub retry: Duration,
}

impl Pauses {
    pub const LOCAL: Pauses = Pauses {
        between: Duration::ZERO,
        heartbeat: Duration::from_mins(1),
        retry_timeout: RETRY_TIMEOUT,
        retry: Duration::from_secs(1),
    };

    pub const REMOTE: Pauses = Pauses {
        between: Duration::from_millis(250),
        ..Pauses::LOCAL
    };
}
