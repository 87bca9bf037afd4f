//! Stacks that are on record and not here: what git proves about them, or why nothing.

use std::io::{self, Write};

use serde::Serialize;

use super::document::{FORMAT, ProblemsJson};
use super::state::{columns, entry_lines};
use crate::change::{MissingStack, RemovedBy};
use crate::printable::printable;
use crate::project::{Problems, Project};
use crate::state::document::Entry;

/// What programs read of such a stack.
#[derive(Serialize)]
pub(super) struct MissingJson<'a> {
    path: &'a str,
    status: &'static str,
    id: Option<&'a str>,
    name: &'a str,
    tags: &'a [String],
    /// What proves that it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<EvidenceJson<'a>>,
    /// Why nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<WhyJson>,
}

#[derive(Serialize)]
struct EvidenceJson<'a> {
    /// The commit whose code made it.
    seen: &'a str,
    /// What removed it: `commit`, or `key` of `for_each`.
    removed_by: &'static str,
    /// That commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
}

#[derive(Serialize)]
struct WhyJson {
    kind: &'static str,
    detail: String,
    way_out: String,
}

impl<'a> MissingJson<'a> {
    pub(super) fn new(path: &'a str, stack: &'a MissingStack) -> Self {
        MissingJson {
            path,
            status: stack.standing.status().word(),
            id: stack.id.as_deref(),
            name: &stack.name,
            tags: &stack.tags,
            evidence: stack.evidence.as_ref().ok().map(|removal| EvidenceJson {
                seen: removal.seen.as_str(),
                removed_by: match removal.by {
                    RemovedBy::Commit(_) => "commit",
                    RemovedBy::Key => "key",
                },
                commit: match &removal.by {
                    RemovedBy::Commit(commit) => Some(commit.as_str()),
                    RemovedBy::Key => None,
                },
            }),
            why: stack.evidence.as_ref().err().map(|why| WhyJson {
                kind: why.word(),
                detail: why.to_string(),
                way_out: why.way_out(),
            }),
        }
    }
}

/// Returns how a stack that is not here stands, and why: `removed in 4f2c81d`.
pub fn missing_text(stack: &MissingStack) -> String {
    match &stack.evidence {
        Ok(removal) => match &removal.by {
            RemovedBy::Commit(commit) => format!("removed in {}", commit.short()),
            RemovedBy::Key => "removed from `for_each`".to_owned(),
        },
        Err(why) => format!("absent: {why}"),
    }
}

/// Writes what is on record of stacks that are not here, and what git proves about each.
///
/// # Errors
///
/// If it cannot be written.
pub fn write_missing(
    out: &mut impl Write,
    stacks: &[(&str, &Entry, &MissingStack)],
) -> io::Result<()> {
    for (number, (key, entry, stack)) in stacks.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let mut lines = entry_lines(key, entry);
        lines.push([
            "status".to_owned(),
            printable(&missing_text(stack)).into_owned(),
        ]);
        if let Err(why) = &stack.evidence {
            let way_out = printable(&why.way_out()).into_owned();
            lines.push(["way out".to_owned(), way_out]);
        }
        columns(out, &lines)?;
    }
    Ok(())
}

/// Writes the same as JSON.
///
/// # Errors
///
/// If it cannot be written.
pub fn write_missing_json(
    out: &mut impl Write,
    project: &Project,
    problems: &Problems,
    stacks: &[(&str, &Entry, &MissingStack)],
) -> io::Result<()> {
    #[derive(Serialize)]
    struct RecordedJson<'a> {
        #[serde(flatten)]
        stack: MissingJson<'a>,
        entry: &'a Entry,
    }
    #[derive(Serialize)]
    struct DocumentJson<'a> {
        format: u32,
        stacks: [(); 0],
        missing: Vec<RecordedJson<'a>>,
        #[serde(flatten)]
        problems: ProblemsJson<'a>,
    }
    let missing = stacks.iter().map(|(key, entry, stack)| RecordedJson {
        stack: MissingJson::new(key, stack),
        entry,
    });
    let document = DocumentJson {
        format: FORMAT,
        stacks: [],
        missing: missing.collect(),
        problems: ProblemsJson::new(problems, project),
    };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}
