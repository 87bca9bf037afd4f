//! The result of a writing `orch state` command.

use std::io::{self, Write};

use serde::Serialize;

use crate::printable::printable;
use crate::report::document::write_json;

/// The change that a command has made, or would make.
#[derive(Debug, Serialize)]
pub struct Written {
    pub dry_run: bool,
    pub address: String,
    pub lineage: String,
    pub serial: u64,
    /// The stacks whose entries have changed.
    pub stacks: Vec<String>,
    #[serde(skip)]
    pub change: DocumentChange,
    /// Further notes.
    #[serde(skip)]
    pub notes: Vec<String>,
}

#[derive(Debug)]
pub enum DocumentChange {
    Created,
    /// Each stack was changed in this way, such as `tainted`.
    Each(&'static str),
    /// The first of the stacks was moved to the second.
    Moved,
    /// It was replaced with the backup of this serial.
    Restored(u64),
    /// Its lock was removed.
    Unlocked {
        by: String,
        run: String,
    },
}

pub fn write_written(out: &mut impl Write, written: &Written) -> io::Result<()> {
    let stacks = written.stacks.iter().map(|stack| printable(stack));
    match &written.change {
        DocumentChange::Created => writeln!(out, "created {}", printable(&written.address)),
        DocumentChange::Each(did) => {
            let mut stacks = stacks;
            stacks.try_for_each(|stack| writeln!(out, "{did} {stack}"))
        }
        DocumentChange::Moved => {
            let stacks: Vec<_> = stacks.collect();
            writeln!(out, "moved {}", stacks.join(" to "))
        }
        DocumentChange::Restored(serial) => {
            writeln!(out, "restored backup {serial} as serial {}", written.serial)
        }
        DocumentChange::Unlocked { by, run } => {
            let (by, run) = (printable(by), printable(run));
            writeln!(out, "took the lock away from {by}, run {run}")
        }
    }
}

pub fn write_written_json(out: &mut impl Write, written: &Written) -> io::Result<()> {
    write_json(out, written)
}
