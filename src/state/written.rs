//! The entries of writes in the history.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Map;

use super::document::{Document, Entry, RunAction};
use super::document::{Write, WrittenStacks};

/// How many writes the history remembers.
const KEPT_HISTORY: usize = 200;

/// How many applied or failed stacks a write names. Their entries name the run, too.
const NAMED: usize = 100;

impl Document {
    /// Returns the serial of the write with which a run freed its lock, if it has.
    pub fn end_of(&self, run: &str) -> Option<u64> {
        let ends = [RunAction::Apply, RunAction::Destroy, RunAction::Refresh];
        let is_end = |write: &&Write| {
            write.run.as_deref() == Some(run) && ends.iter().any(|end| write.what == end.word())
        };
        Some(self.history.iter().rev().find(is_end)?.serial)
    }

    /// Returns who has written last about a run.
    pub fn ended_by(&self, run: &str) -> Option<String> {
        let mut writes = self.history.iter().rev();
        let last = writes.find(|write| write.run.as_deref() == Some(run));
        last.map(|write| write.by.clone())
    }

    /// Returns whether stacks may have been removed since the write with a serial: destroyed or forgotten.
    pub fn may_lack_stacks(&self, serial: u64) -> bool {
        let history = &self.history;
        let is_later = |write: &&Write| write.serial > serial;
        let is_cut =
            history.len() >= KEPT_HISTORY && history.first().as_ref().is_some_and(is_later);
        let mut since = history.iter().filter(is_later);
        is_cut || since.any(|write| write.destroyed > 0 || write.forgets())
    }

    /// Adds a write to the history, with the serial that the document has now.
    pub fn remember(&mut self, write: Write) {
        self.history.push(Write {
            serial: self.serial,
            ..write
        });
        let excess = self.history.len().saturating_sub(KEPT_HISTORY);
        self.history.drain(..excess);
    }
}

impl WrittenStacks {
    /// Compares the entries after a command with those before it.
    pub(super) fn of_edit(
        before: &BTreeMap<String, Entry>,
        after: &BTreeMap<String, Entry>,
    ) -> Self {
        let is_changed = |(key, entry): &(&String, &Entry)| before.get(*key) != Some(*entry);
        let changed = after.iter().filter(is_changed).map(|(key, _)| key.clone());
        let removed = before.keys().filter(|key| !after.contains_key(*key));
        WrittenStacks {
            changed: changed.collect(),
            removed: removed.cloned().collect(),
            ..WrittenStacks::default()
        }
    }
}

/// The results of a run, by stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally<'e> {
    pub(super) applied: Vec<&'e str>,
    pub(super) failed: Vec<&'e str>,
    pub(super) destroyed: Vec<&'e str>,
}

pub(super) struct RunWrite<'a> {
    pub(super) run: &'a str,
    pub(super) by: &'a str,
    pub(super) what: &'a str,
    pub(super) at: Timestamp,
    /// Why, in the user's words.
    pub(super) reason: Option<String>,
}

impl<'e> Tally<'e> {
    /// Sorts entries by the results of a run. An open intent has failed; an attempt with an unknown effect belongs to
    /// none of these.
    pub(super) fn of(
        run: &str,
        entries: impl IntoIterator<Item = (&'e str, Option<&'e Entry>)>,
    ) -> Self {
        let mut tally = Tally::default();
        for (key, entry) in entries {
            match entry {
                None => tally.destroyed.push(key),
                Some(entry) if !entry.is_of(run) || entry.is_unknown() => {}
                Some(entry) if entry.intent.is_none() && entry.has_succeeded() => {
                    tally.applied.push(key);
                }
                Some(_) => tally.failed.push(key),
            }
        }
        tally
    }

    /// Returns the history entry of a write with this outcome. The document sets its serial.
    pub(super) fn written(&self, write: RunWrite<'_>) -> Write {
        let names = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect();
        let first = |keys: &[&str]| names(&keys[..keys.len().min(NAMED)]);
        Write {
            serial: 0,
            at: write.at,
            by: write.by.to_owned(),
            run: Some(write.run.to_owned()),
            what: write.what.to_owned(),
            reason: write.reason,
            applied: self.applied.len(),
            failed: self.failed.len(),
            destroyed: self.destroyed.len(),
            stacks: WrittenStacks {
                applied: first(&self.applied),
                failed: first(&self.failed),
                destroyed: names(&self.destroyed),
                ..WrittenStacks::default()
            },
            other: Map::new(),
        }
    }
}
