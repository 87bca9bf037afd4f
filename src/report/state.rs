//! The state as text and JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use serde::Serialize;

use crate::change::StackStatus;
use crate::duration::local_time;
use crate::printable::printable;
use crate::report::document::write_json;
use crate::report::reasons::why_text;
use crate::selection::recorded::dependencies;
use crate::state::cfngin::CfnginGraph;
use crate::state::document::{self, AttemptOutcome, Document, Entry};
use crate::state::lock::LockConflict;
use crate::state::timeline::Backup;

/// How many characters of a commit are shown.
const COMMIT: usize = 12;

/// A document with its lock, backups and address.
pub struct ShownState {
    pub address: String,
    pub document: Document,
    /// When the holder of the lock was last heard from, if it is locked.
    pub heard: Option<Timestamp>,
    /// The backups, oldest first.
    pub backups: Vec<Backup>,
}

pub struct RecordedGraph {
    pub address: String,
    pub document: Document,
}

/// Writes lines in columns; the last column is not padded.
pub(super) fn columns<const N: usize>(
    out: &mut impl Write,
    lines: &[[String; N]],
) -> io::Result<()> {
    let mut widths = [0; N];
    for line in lines {
        for (width, column) in widths.iter_mut().zip(line) {
            *width = column.chars().count().max(*width);
        }
    }
    for line in lines {
        let mut text = String::new();
        for (width, column) in widths.iter().zip(line) {
            text += &format!("{column:width$}  ");
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

fn or_dash(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| printable(text).into_owned())
}

fn short(commit: &str) -> String {
    let short: String = commit.chars().take(COMMIT).collect();
    printable(&short).into_owned()
}

pub fn write_state(out: &mut impl Write, shown: &ShownState) -> io::Result<()> {
    let document = &shown.document;
    let stacks = document.stacks.values();
    let applied = stacks
        .clone()
        .filter(|entry| entry.applied.is_some())
        .count();
    let failed = stacks.clone().filter(|entry| has_failed(entry)).count();
    let begun = stacks
        .clone()
        .filter(|entry| entry.intent.is_some())
        .count();
    let tainted = stacks.filter(|entry| entry.tainted.is_some()).count();
    let mut counts = format!("{} recorded", document.stacks.len());
    for (number, what) in [
        (applied, "applied"),
        (failed, "failed"),
        (begun, "begun and not ended"),
        (tainted, "tainted"),
    ] {
        if number > 0 {
            counts += &format!(", {number} {what}");
        }
    }
    let last = document.history.last();
    let serial = last.map_or_else(String::new, |write| {
        let (what, by) = (printable(&write.what), printable(&write.by));
        format!(", last {what} by {by} at {}", local_time(write.at))
    });
    let lock = document.lock.as_ref().map_or_else(
        || "free".to_owned(),
        |lock| {
            let held = LockConflict {
                lock: Some(lock.clone()),
                heard: shown.heard,
                ..LockConflict::default()
            };
            format!("{held}; code {}", printable(&lock.code))
        },
    );
    let backups: Vec<String> = shown.backups.iter().map(backup_text).collect();
    let backups = if backups.is_empty() {
        "none".to_owned()
    } else {
        backups.join(", ")
    };
    let root = match document.root.as_str() {
        "" => ".",
        root => root,
    };
    columns(
        out,
        &[
            ["address".to_owned(), printable(&shown.address).into_owned()],
            [
                "project".to_owned(),
                printable(&document.project).into_owned(),
            ],
            [
                "namespace".to_owned(),
                printable(&document.namespace).into_owned(),
            ],
            ["root".to_owned(), printable(root).into_owned()],
            [
                "lineage".to_owned(),
                printable(&document.lineage).into_owned(),
            ],
            ["serial".to_owned(), format!("{}{serial}", document.serial)],
            ["lock".to_owned(), lock],
            ["stacks".to_owned(), counts],
            ["backups".to_owned(), backups],
        ],
    )
}

pub fn write_state_json(out: &mut impl Write, shown: &ShownState) -> io::Result<()> {
    #[derive(Serialize)]
    struct StateJson<'a> {
        address: &'a str,
        heard: Option<Timestamp>,
        backups: Vec<u64>,
        document: &'a Document,
    }
    let state = StateJson {
        address: &shown.address,
        heard: shown.heard,
        backups: shown.backups.iter().map(|it| it.serial).collect(),
        document: &shown.document,
    };
    write_json(out, &state)
}

fn has_failed(entry: &Entry) -> bool {
    let last = entry.last.as_ref();
    last.is_some_and(|last| last.outcome != AttemptOutcome::Succeeded)
}

pub fn write_entry(out: &mut impl Write, key: &str, entry: &Entry) -> io::Result<()> {
    columns(out, &entry_lines(key, entry))
}

pub(super) fn entry_lines(key: &str, entry: &Entry) -> Vec<[String; 2]> {
    let list = |texts: &[String]| {
        if texts.is_empty() {
            "-".to_owned()
        } else {
            printable(&texts.join(", ")).into_owned()
        }
    };
    let mut lines = vec![
        ["stack".to_owned(), printable(key).into_owned()],
        ["id".to_owned(), or_dash(entry.id.as_deref())],
        ["name".to_owned(), printable(&entry.name).into_owned()],
        ["tags".to_owned(), list(&entry.tags)],
        ["after".to_owned(), list(&entry.after)],
        ["before".to_owned(), list(&entry.before)],
    ];
    let at_commit = |commit: Option<&str>| match commit {
        Some(commit) => format!(" at commit {}", short(commit)),
        None => String::new(),
    };
    let in_run = |run: Option<&str>| match run {
        Some(run) => format!(" in run {}", printable(run)),
        None => String::new(),
    };
    if let Some(applied) = &entry.applied {
        let mut text = local_time(applied.at);
        text += &in_run(applied.run.as_deref());
        text += &at_commit(applied.commit.as_deref());
        if applied.dirty {
            text += ", with inputs that were not committed";
        }
        if let Some(command) = &applied.command {
            text += &format!(", by `{}`", printable(command));
        }
        lines.push(["applied".to_owned(), text]);
        if let Some(seen) = &applied.seen {
            lines.push(["seen".to_owned(), format!("commit {}", short(seen))]);
        }
        if let Some(inputs) = &applied.inputs {
            lines.push(["inputs".to_owned(), printable(&inputs.digest).into_owned()]);
        }
    }
    let checks = entry.applied.as_ref().and_then(|it| it.checks.as_deref());
    if let Some(checks) = checks {
        lines.push(["checks".to_owned(), printable(checks).into_owned()]);
    }
    if let Some(refreshed) = &entry.refreshed {
        let at = local_time(refreshed.at);
        let text = format!("drift accepted at {at}{}", in_run(Some(&refreshed.run)));
        lines.push(["refreshed".to_owned(), text]);
    }
    if let Some(last) = &entry.last {
        let outcome = match &last.outcome {
            AttemptOutcome::Succeeded => "succeeded",
            AttemptOutcome::Failed => "failed",
            AttemptOutcome::Unknown => "unknown",
            AttemptOutcome::Other(word) => word,
        };
        let mut text = format!(
            "{} {} at {}",
            printable(last.action.word()),
            printable(outcome),
            local_time(last.at)
        );
        text += &in_run(last.run.as_deref());
        if let Some(failure) = &last.failure {
            text += &format!(": {}", printable(failure));
        }
        lines.push(["last".to_owned(), text]);
    }
    if let Some(intent) = &entry.intent {
        let text = format!(
            "{} since {}{}",
            printable(intent.action.word()),
            local_time(intent.since),
            in_run(Some(&intent.run))
        );
        lines.push(["begun".to_owned(), text]);
    }
    if let Some(taint) = &entry.tainted {
        let mut text = format!("by {} at {}", printable(&taint.by), local_time(taint.at));
        if let Some(reason) = &taint.reason {
            text += &format!(": {}", printable(reason));
        }
        lines.push(["tainted".to_owned(), text]);
    }
    lines
}

pub fn write_entry_json(out: &mut impl Write, key: &str, entry: &Entry) -> io::Result<()> {
    #[derive(Serialize)]
    struct EntryJson<'a> {
        path: &'a str,
        #[serde(flatten)]
        entry: &'a Entry,
    }
    write_json(out, &EntryJson { path: key, entry })
}

/// Returns the serial of a backup, and whether it is abandoned.
fn backup_text(backup: &Backup) -> String {
    if backup.is_abandoned {
        format!("{} (abandoned)", backup.serial)
    } else {
        backup.serial.to_string()
    }
}

/// Writes a line for each backup, the oldest first.
pub fn write_backups(out: &mut impl Write, backups: &[Backup]) -> io::Result<()> {
    let mut lines = backups.iter().map(backup_text);
    lines.try_for_each(|line| writeln!(out, "{line}"))
}

/// Writes backups as JSON, the oldest first.
pub fn write_backups_json(out: &mut impl Write, backups: &[Backup]) -> io::Result<()> {
    #[derive(Serialize)]
    struct BackupJson {
        serial: u64,
        abandoned: bool,
    }
    let backups = backups.iter().map(|backup| BackupJson {
        serial: backup.serial,
        abandoned: backup.is_abandoned,
    });
    let backups: Vec<BackupJson> = backups.collect();
    write_json(out, &BTreeMap::from([("backups", backups)]))
}

/// Writes the graph of the recorded stacks as JSON, with the direct predecessors of each.
pub fn write_recorded_graph_json(out: &mut impl Write, graph: &RecordedGraph) -> io::Result<()> {
    #[derive(Serialize)]
    struct StackJson<'a> {
        path: &'a str,
        name: &'a str,
        after: &'a [&'a str],
    }
    #[derive(Serialize)]
    struct GraphJson<'a> {
        address: &'a str,
        lineage: &'a str,
        serial: u64,
        stacks: Vec<StackJson<'a>>,
    }
    let document = &graph.document;
    let dependencies = dependencies(document);
    let stacks = document.stacks.iter().map(|(key, entry)| StackJson {
        path: key,
        name: &entry.name,
        after: dependencies.get(key.as_str()).map_or(&[], Vec::as_slice),
    });
    let graph = GraphJson {
        address: &graph.address,
        lineage: &document.lineage,
        serial: document.serial,
        stacks: stacks.collect(),
    };
    write_json(out, &graph)
}

/// Writes the graph in the format of `CFNgin`.
pub fn write_cfngin_graph(out: &mut impl Write, graph: &CfnginGraph) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, graph)?;
    writeln!(out)
}

/// Writes the refusal of an `orch state` command as JSON.
pub fn write_state_refusal_json(out: &mut impl Write, problem: &str) -> io::Result<()> {
    let refused = serde_json::json!({ "refused": { "problem": problem, "command": null } });
    write_json(out, &refused)
}

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
