//! Entries that a run writes more than once: parts that an earlier turn recorded keep their serials.

use super::document::{Entry, Refreshed, UNMERGED};

/// A placeholder for the serial that a part of an earlier turn has by now.
const KEPT: u64 = u64::MAX;

impl Entry {
    /// Returns the entry as a later turn of the run sees it, without the serials, which it cannot know.
    #[must_use]
    pub fn as_kept(&self) -> Entry {
        let mut kept = self.clone();
        let keep = |serial: &mut u64| {
            if *serial == UNMERGED {
                *serial = KEPT;
            }
        };
        kept.applied.iter_mut().for_each(|it| keep(&mut it.serial));
        kept.last.iter_mut().for_each(|it| keep(&mut it.serial));
        let refreshed = kept.refreshed.iter_mut();
        refreshed.for_each(|it| keep(&mut it.serial));
        let writes = kept.writes_mut().into_iter().flatten();
        writes.for_each(keep);
        kept
    }

    /// Sets the serials of parts that an earlier turn recorded.
    pub(super) fn keep_serials(&mut self, current: Option<&Entry>) {
        let applied = current.and_then(|it| it.applied.as_ref());
        let last = current.and_then(|it| it.last.as_ref());
        if let Some(own) = self.applied.as_mut().filter(|it| it.serial == KEPT) {
            own.serial = applied.map_or(UNMERGED, |it| it.serial);
        }
        if let Some(own) = self.last.as_mut().filter(|it| it.serial == KEPT) {
            own.serial = last.map_or(UNMERGED, |it| it.serial);
        }
        let refreshed = current.and_then(|it| it.refreshed.as_ref());
        if let Some(own) = self.refreshed.as_mut().filter(|it| it.serial == KEPT) {
            own.serial = refreshed.map_or(UNMERGED, |it| it.serial);
        }
        let writes = current.map(Entry::writes).unwrap_or_default();
        for (write, current) in self.writes_mut().into_iter().zip(writes) {
            if *write == Some(KEPT) {
                *write = current;
            }
        }
    }
}

impl Refreshed {
    /// Gives it a serial, unless it has one.
    pub(super) fn number(&mut self, serial: u64) {
        if self.serial == UNMERGED {
            self.serial = serial;
        }
    }
}
