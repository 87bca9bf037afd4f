//! Bearing with a store that fails for a while, before a run as during it.

use std::time::Duration;

use super::backend::BackendReadError;
use super::clock::Clock;
use super::store::{PATIENCE, StoreError};

/// How long to wait before something is tried again that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Reads something, again and again while the store fails in a way that may be over soon. `note` is told of the first
/// failure.
///
/// # Errors
///
/// If it cannot be read, or the store does not return in time.
pub fn patiently<T>(
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
        if now.saturating_sub(*failing.get_or_insert(now)) >= PATIENCE {
            return Err(error.into());
        }
        clock.sleep(RETRY);
    }
}
