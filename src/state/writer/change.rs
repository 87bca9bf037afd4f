//! What a run does with a stack on record, and what becomes of its entry.

use jiff::Timestamp;

use crate::path::Generation;
use crate::state::document::Entry;

/// What a run does with a stack on record.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The whole entry: with an intent before the first attempt, with a result after the last one. What
    /// has happened in this run has the serial [`crate::state::document::UNMERGED`].
    Put(Box<Entry>),
    /// The stack has been destroyed, and its entry goes.
    Destroyed,
    /// Nothing yet: a generation of the stack that is not the current one is about to be destroyed.
    Destroying,
    /// A generation of the stack has been destroyed that is not the current one.
    DestroyedGeneration(Generation),
    /// The intent was given up before anything started: the entry becomes what it was before the intent.
    Withdrawn,
}

/// What is known of a stack when it changes.
pub(super) struct ChangeContext<'a> {
    /// Its entry now.
    pub(super) current: Option<&'a Entry>,
    /// Its entry before the last intent.
    pub(super) settled: Option<&'a Entry>,
    /// The generations of it that the run has destroyed, which were not current.
    pub(super) destroyed: &'a [Generation],
    pub(super) run: &'a str,
    /// Now.
    pub(super) at: Timestamp,
}

impl Change {
    /// Returns what becomes of the entry of a stack.
    pub(super) fn entry(self, known: &ChangeContext<'_>) -> Option<Entry> {
        match self {
            Change::Put(mut entry) => {
                // Whoever has made it may not know what has been destroyed since.
                for generation in known.destroyed {
                    entry.forget_generation(*generation);
                }
                entry.keep_serials(known.current);
                Some(*entry)
            }
            // What else has been made of it is still there.
            Change::Destroyed => known.current?.without_current(known.run, known.at),
            Change::Destroying => known.current.cloned(),
            Change::DestroyedGeneration(generation) => {
                known.current?.without_generation(generation)
            }
            Change::Withdrawn => known.settled.cloned(),
        }
    }
}
