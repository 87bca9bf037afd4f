//! Recorded stacks that this commit lacks: the proof of their removal, or why there is none.

use std::io::{self, Write};

use serde::Serialize;

use super::document::write_with_problems;
use super::state::{columns, entry_lines};
use crate::change::{MissingStack, ProvenRemoval, RemovedBy};
use crate::git::CommitId;
use crate::plan::entry::PlannedAction;
use crate::plan::planner::RemovalOutlook;
use crate::printable::printable;
use crate::project::{Problems, Project};
use crate::state::document::Entry;

/// Such a stack as JSON.
#[derive(Serialize)]
pub(super) struct MissingJson<'a> {
    path: &'a str,
    status: &'static str,
    id: Option<&'a str>,
    name: &'a str,
    tags: &'a [String],
    /// The proof that it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<EvidenceJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<WhyJson>,
}

#[derive(Serialize)]
struct EvidenceJson<'a> {
    /// The commit that last applied it; `null` if that is unknown, and nothing is destroyed.
    seen: Option<&'a str>,
    /// The kind of proof: `commit`, `key` of `for_each`, or a `removed` `block`.
    removed_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    /// The file of that block, and the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// Whether that block destroys the stack's resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    destroy: Option<bool>,
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
            status: stack.status.kind().word(),
            id: stack.id.as_deref(),
            name: &stack.name,
            tags: &stack.tags,
            evidence: stack.evidence.as_ref().ok().map(EvidenceJson::new),
            why: stack.evidence.as_ref().err().map(|why| WhyJson {
                kind: why.word(),
                detail: why.to_string(),
                way_out: why.fix(),
            }),
        }
    }
}

impl<'a> EvidenceJson<'a> {
    fn new(removal: &'a ProvenRemoval) -> Self {
        let (removed_by, commit, block) = match &removal.by {
            RemovedBy::Commit(commit) => ("commit", Some(commit.as_str()), None),
            RemovedBy::Key => ("key", None, None),
            RemovedBy::Block(block) => ("block", None, Some(block)),
        };
        EvidenceJson {
            seen: removal.seen.as_ref().map(CommitId::as_str),
            removed_by,
            commit,
            file: block.map(|block| block.file.as_str()),
            line: block.map(|block| block.line),
            destroy: block.map(|block| block.destroys),
        }
    }
}

/// Returns the status of a stack that this commit lacks, and why: `removed in 4f2c81d`.
pub fn missing_text(stack: &MissingStack) -> String {
    match &stack.evidence {
        Ok(removal) => match &removal.by {
            RemovedBy::Commit(commit) => format!("removed in {}", commit.short()),
            RemovedBy::Key => "removed from `for_each`".to_owned(),
            RemovedBy::Block(block) => format!("removed by {block}"),
        },
        Err(why) => format!("absent: {why}"),
    }
}

/// A recorded stack that this commit lacks, with its removal.
pub struct MissingStory<'a> {
    /// Its key in the state.
    pub path: &'a str,
    pub entry: &'a Entry,
    /// The proof of its removal, according to git.
    pub stack: &'a MissingStack,
    pub outlook: RemovalOutlook,
}

/// The most stacks that are named before a stack, after it, or as its users; JSON has all.
const MAX_NAMED: usize = 10;

/// Writes the records of stacks that this commit lacks, the proofs of removal, and what an apply
/// would do.
pub fn write_missing(out: &mut impl Write, stories: &[MissingStory<'_>]) -> io::Result<()> {
    for (number, story) in stories.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let mut lines = entry_lines(story.path, story.entry);
        let mut line = |label: &str, text: &str| {
            for (number, text) in text.lines().enumerate() {
                let label = if number == 0 { label } else { "" };
                lines.push([label.to_owned(), printable(text).into_owned()]);
            }
        };
        line("status", &missing_text(story.stack));
        if let Err(why) = &story.stack.evidence {
            line("fix", &why.fix());
        }
        let RemovalOutlook {
            action,
            blocked,
            order,
            users,
        } = &story.outlook;
        if let Some((why, way_out)) = blocked {
            line("blocked", why);
            line("fix", way_out);
        }
        if *action == PlannedAction::Forget {
            line("plan", "removed from the state; nothing is destroyed");
        }
        for (number, text) in order_texts(order, story.path).iter().enumerate() {
            line(if number == 0 { "plan" } else { "" }, text);
        }
        for (number, user) in users.iter().take(MAX_NAMED).enumerate() {
            let label = if number == 0 { "used by" } else { "" };
            line(label, &format!("{user}, which is kept"));
        }
        if let Some(more @ 1..) = users.len().checked_sub(MAX_NAMED) {
            line("", &format!("{more} more, listed by --format json"));
        }
        columns(out, &lines)?;
    }
    Ok(())
}

/// Returns the order in which stacks are destroyed, including this one: a line for each stack near
/// it.
fn order_texts(order: &[String], this: &str) -> Vec<String> {
    let Some(place) = order.iter().position(|path| path == this) else {
        return Vec::new();
    };
    if order.len() == 1 {
        return vec!["destroyed".to_owned()];
    }
    let first = place.saturating_sub(MAX_NAMED);
    let end = order.len().min(place + 1 + MAX_NAMED);
    let mut texts = Vec::new();
    if first > 0 {
        texts.push(format!(
            "destroyed after {first} more, listed by --format json"
        ));
    }
    for (number, path) in order.iter().enumerate().take(end).skip(first) {
        let when = if number == 0 {
            "destroyed first"
        } else {
            "then"
        };
        let what = if number == place { "this stack" } else { path };
        texts.push(format!("{when}: {what}"));
    }
    if let Some(more @ 1..) = order.len().checked_sub(end) {
        texts.push(format!("then: {more} more, listed by --format json"));
    }
    texts
}

/// Like [`write_missing`], as JSON.
pub fn write_missing_json(
    out: &mut impl Write,
    project: &Project,
    problems: &Problems,
    stories: &[MissingStory<'_>],
) -> io::Result<()> {
    #[derive(Serialize)]
    struct RecordedJson<'a> {
        #[serde(flatten)]
        stack: MissingJson<'a>,
        entry: &'a Entry,
        actions: [&'static str; 1],
        blocked: Option<BlockedJson<'a>>,
        order: &'a [String],
        used_by: &'a [String],
    }
    #[derive(Serialize)]
    struct BlockedJson<'a> {
        detail: &'a str,
        way_out: &'a str,
    }
    #[derive(Serialize)]
    struct DocumentJson<'a> {
        stacks: [(); 0],
        missing: Vec<RecordedJson<'a>>,
    }
    let missing = stories.iter().map(|story| {
        let outlook = &story.outlook;
        let blocked = outlook.blocked.as_ref();
        RecordedJson {
            stack: MissingJson::new(story.path, story.stack),
            entry: story.entry,
            actions: [outlook.action.word()],
            blocked: blocked.map(|(detail, way_out)| BlockedJson { detail, way_out }),
            order: &outlook.order,
            used_by: &outlook.users,
        }
    });
    let document = DocumentJson {
        stacks: [],
        missing: missing.collect(),
    };
    write_with_problems(out, &document, project, problems)
}
