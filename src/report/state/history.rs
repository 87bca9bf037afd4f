//! The history of the document.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{columns, or_dash};
use crate::duration::local_time;
use crate::printable::printable;
use crate::report::document::write_json;
use crate::state::document::{self, Document};

/// How many stacks of each kind the text names.
const NAMED: usize = 5;

/// Writes the history, the newest write first.
pub fn write_history(out: &mut impl Write, document: &Document) -> io::Result<()> {
    let lines: Vec<[String; 7]> = document
        .history
        .iter()
        .rev()
        .map(|write| {
            let stacks = Some(stacks_text(write)).filter(|stacks| !stacks.is_empty());
            [
                write.serial.to_string(),
                local_time(write.at),
                printable(&write.what).into_owned(),
                printable(&write.by).into_owned(),
                or_dash(write.run.as_deref()),
                stacks.unwrap_or_else(|| "-".to_owned()),
                or_dash(write.reason.as_deref()),
            ]
        })
        .collect();
    columns(out, &lines)
}

/// Counts the stacks of a write and names the first: `2 applied (/a, /b), 1 destroyed (/c)`. The
/// stacks of a manual command are only named.
fn stacks_text(write: &document::Write) -> String {
    let stacks = &write.stacks;
    let of_run = [
        (write.applied, "applied", &stacks.applied),
        (write.failed, "failed", &stacks.failed),
        (write.destroyed, "destroyed", &stacks.destroyed),
    ]
    .into_iter()
    .filter(|(number, ..)| *number > 0);
    let of_run = of_run.map(|(number, word, names)| {
        let names = names.iter().collect::<Vec<_>>();
        match &*names {
            // An earlier version wrote it.
            [] => format!("{number} {word}"),
            names => format!("{number} {word} ({})", first_of(names, number)),
        }
    });
    let of_command: Vec<&String> = stacks.removed.iter().chain(&stacks.changed).collect();
    let named = (!of_command.is_empty()).then(|| first_of(&of_command, of_command.len()));
    of_run.chain(named).collect::<Vec<String>>().join(", ")
}

/// Names the first of so many stacks.
fn first_of(names: &[&String], number: usize) -> String {
    let first = names.iter().take(NAMED);
    let mut text = first
        .map(|name| printable(name))
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(more @ 1..) = number.checked_sub(names.len().min(NAMED)) {
        text += &format!(" and {more} more");
    }
    text
}

/// Writes the history as JSON, the newest write first.
pub fn write_history_json(out: &mut impl Write, document: &Document) -> io::Result<()> {
    let history: Vec<_> = document.history.iter().rev().collect();
    write_json(out, &BTreeMap::from([("history", history)]))
}
