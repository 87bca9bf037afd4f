//! The changes of a run to recorded stacks, and their effects on entries.

use jiff::Timestamp;

use crate::path::Generation;
use crate::state::document::Entry;

#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The whole entry: with an intent before the first attempt, with a result after the last one. Parts from this
    /// run have the serial [`crate::state::document::UNMERGED`].
    Put(Box<Entry>),
    /// The stack was destroyed, and its entry is removed.
    Destroyed,
    /// Nothing yet: a generation of the stack that is not the current one is about to be destroyed.
    Destroying,
    /// A generation of the stack has been destroyed that is not the current one.
    DestroyedGeneration(Generation),
    /// The intent was withdrawn before anything started: the entry is as before the intent.
    Withdrawn,
}

pub(super) struct ChangeContext<'a> {
    pub(super) current: Option<&'a Entry>,
    /// Its entry before the last intent.
    pub(super) settled: Option<&'a Entry>,
    pub(super) destroyed: &'a [Generation],
    pub(super) run: &'a str,
    pub(super) at: Timestamp,
}

impl Change {
    pub(super) fn entry(self, known: &ChangeContext<'_>) -> Option<Entry> {
        match self {
            Change::Put(mut entry) => {
                // The author of the entry may not know of later destroys.
                for generation in known.destroyed {
                    entry.forget_generation(*generation);
                }
                entry.keep_serials(known.current);
                Some(*entry)
            }
            // The other generations still exist.
            Change::Destroyed => known.current?.without_current(known.run, known.at),
            Change::Destroying => known.current.cloned(),
            Change::DestroyedGeneration(generation) => {
                known.current?.without_generation(generation)
            }
            Change::Withdrawn => known.settled.cloned(),
        }
    }
}
