//! Serials of abandoned timelines.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbandonedSerials {
    /// The first.
    pub from: u64,
    pub to: u64,
}

impl AbandonedSerials {
    /// Returns the serials that a restored document abandoned, given a backup with a serial above them. Includes the
    /// serial of the document: another timeline may have had a document with it.
    pub(super) fn between(document: u64, backup: u64) -> Self {
        AbandonedSerials {
            from: document,
            to: backup - 1,
        }
    }

    fn contain(&self, serial: u64) -> bool {
        (self.from..=self.to).contains(&serial)
    }
}

pub(super) fn is_abandoned(abandoned: &[AbandonedSerials], serial: u64) -> bool {
    abandoned.iter().any(|serials| serials.contain(serial))
}
