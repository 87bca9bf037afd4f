//! The recorded stacks with their statuses.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::{columns, or_dash, short};
use crate::change::StackStatus;
use crate::duration::local_time;
use crate::printable::printable;
use crate::report::document::write_json;
use crate::report::status::why_text;
use crate::state::document::{Document, Entry};

pub struct StateList {
    pub address: String,
    pub document: Document,
    /// The status of each, as far as known.
    pub statuses: BTreeMap<String, StackStatus>,
}

/// Writes the recorded stacks: path, status, and the commit, time and run of the last apply.
pub fn write_recorded(out: &mut impl Write, list: &StateList) -> io::Result<()> {
    let line = |(key, entry): (&String, &Entry)| {
        let applied = entry.applied.as_ref();
        let commit =
            applied.and_then(|applied| applied.commit.as_deref().or(applied.seen.as_deref()));
        let mut commit = commit.map_or_else(|| "-".to_owned(), short);
        if applied.is_some_and(|applied| applied.dirty) {
            commit += "+";
        }
        let at = applied
            .map(|applied| applied.at)
            .or(entry.last.as_ref().map(|last| last.at));
        let run = applied
            .and_then(|applied| applied.run.as_deref())
            .or(entry.last.as_ref().and_then(|last| last.run.as_deref()));
        [
            printable(key).into_owned(),
            or_dash(list.statuses.get(key).map(|it| it.kind().word())),
            commit,
            at.map_or_else(|| "-".to_owned(), local_time),
            or_dash(run),
        ]
    };
    let lines: Vec<[String; 5]> = list.document.stacks.iter().map(line).collect();
    columns(out, &lines)
}

pub fn write_recorded_json(out: &mut impl Write, list: &StateList) -> io::Result<()> {
    #[derive(Serialize)]
    struct StackJson<'a> {
        path: &'a str,
        /// `null` outside of a git repository.
        status: Option<&'static str>,
        /// The reason, if it is not applied.
        why: Option<String>,
        #[serde(flatten)]
        entry: &'a Entry,
    }
    #[derive(Serialize)]
    struct ListJson<'a> {
        address: &'a str,
        lineage: &'a str,
        serial: u64,
        stacks: Vec<StackJson<'a>>,
    }
    let stacks = list.document.stacks.iter().map(|(path, entry)| {
        let status = list.statuses.get(path);
        StackJson {
            path,
            status: status.map(|it| it.kind().word()),
            why: status.and_then(why_text),
            entry,
        }
    });
    let list = ListJson {
        address: &list.address,
        lineage: &list.document.lineage,
        serial: list.document.serial,
        stacks: stacks.collect(),
    };
    write_json(out, &list)
}
