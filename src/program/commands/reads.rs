//! What a command reads of the project.

use super::selection_flags::SelectArgs;

/// What a command reads besides the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reads {
    pub(super) status: ReadStatus,
    /// Whether the listing that inputs are found by is read.
    pub(super) listing: bool,
}

/// What is read of what git knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReadStatus {
    Nothing,
    /// What is not committed, roughly: for the journal alone.
    Rough,
    /// What is not committed.
    Exact,
}

impl Reads {
    pub(super) const CONFIGURATION: Reads = Reads {
        status: ReadStatus::Nothing,
        listing: false,
    };
    pub(super) const INPUTS: Reads = Reads {
        status: ReadStatus::Nothing,
        listing: true,
    };
    pub(super) const CHANGES: Reads = Reads {
        status: ReadStatus::Exact,
        listing: true,
    };

    /// Returns what a selection needs.
    pub(super) fn for_selection(args: &SelectArgs) -> Self {
        if args.changed || !args.status.is_empty() {
            Reads::CHANGES
        } else if args.released.is_some() {
            Reads::INPUTS
        } else {
            Reads::CONFIGURATION
        }
    }

    /// Adds the listing.
    pub(super) fn with_listing(self) -> Self {
        Reads {
            listing: true,
            ..self
        }
    }

    /// Adds what git knows.
    pub(super) fn with_status(self, status: ReadStatus) -> Self {
        Reads {
            status: self.status.max(status),
            ..self
        }
    }
}
