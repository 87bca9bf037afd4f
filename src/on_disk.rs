//! Tells a missing file from one that cannot be looked at.

use std::io::{self, ErrorKind};

/// Returns what was found, or `None` if nothing is there. Any other error stays an error, unlike with
/// `Path::exists`, which takes it for an absence.
pub(crate) fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
