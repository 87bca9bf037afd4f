//! The state as text and JSON.

mod history;
mod recorded;
mod written;

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use serde::Serialize;

pub use self::history::{write_history, write_history_json};
pub use self::recorded::{StateList, write_recorded, write_recorded_json};
pub use self::written::{DocumentChange, Written, write_written, write_written_json};
use crate::duration::local_time;
use crate::printable::printable;
use crate::report::document::write_json;
use crate::selection::recorded::dependencies;
use crate::state::cfngin::CfnginGraph;
use crate::state::document::{AttemptOutcome, Document, Entry};
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
