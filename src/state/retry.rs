//! Retries of a failing store, before a run as during it.

use std::time::Duration;

use super::backend::BackendReadError;
use super::clock::Clock;
use super::store::{RETRY_TIMEOUT, StoreError};

/// How long to wait before something is tried again that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Reads something, with retries while the store has transient failures. `note` receives the first
/// one. Fails if it cannot be read, or the store fails for too long.
pub fn with_retries<T>(
    clock: &dyn Clock,
    note: &dyn Fn(&StoreError),
    mut read: impl FnMut() -> Result<T, BackendReadError>,
) -> Result<T, BackendReadError> {
    let mut failing = None;
    loop {
        let error = match read() {
            Err(BackendReadError::Store(error)) if error.is_transient() => error,
            read => return read,
        };
        let now = clock.elapsed();
        if failing.is_none() {
            note(&error);
        }
        if now.saturating_sub(*failing.get_or_insert(now)) >= RETRY_TIMEOUT {
            return Err(error.into());
        }
        clock.sleep(RETRY);
    }
}
