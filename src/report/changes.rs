//! What has changed, and why a stack counts as changed: the words of text and JSON.

use serde::Serialize;

use crate::change::{Cause, Since, Use, UseKind};
use crate::git::{ChangedFile, FileChange, FileState};

/// Says which file makes a stack count as changed, and how one gets from the stack to the file.
pub(super) fn cause_text(cause: &Cause) -> String {
    let ChangedFile {
        path,
        change,
        state,
    } = &cause.file;
    let state = match state {
        FileState::Committed => None,
        FileState::Uncommitted => Some("uncommitted"),
        FileState::Untracked => Some("untracked"),
    };
    let change = match change {
        FileChange::Modified => None,
        FileChange::Added if state == Some("untracked") => None,
        change => Some(change_word(*change)),
    };
    let mut text = format!("changed: {}", path.relative());
    match (state, change) {
        (Some(state), Some(change)) => text += &format!(" ({state}, {change})"),
        (Some(word), None) | (None, Some(word)) => text += &format!(" ({word})"),
        (None, None) => {}
    }
    for step in &cause.chain {
        text += &format!(", {}", use_text(step));
    }
    text
}

/// The word for what happened to a file, in text and in JSON.
fn change_word(change: FileChange) -> &'static str {
    match change {
        FileChange::Added => "added",
        FileChange::Deleted => "deleted",
        FileChange::Modified => "modified",
        FileChange::Retyped => "type changed",
        FileChange::Repository => "submodule",
    }
}

/// Says what makes a file an input, and where that is written.
fn use_text(step: &Use) -> String {
    let what = match &step.kind {
        UseKind::Watch => "watched".to_owned(),
        UseKind::Module(source) => format!("module {source}"),
        UseKind::Read(function) => format!("read by {function}"),
        UseKind::Link => return format!("target of the link {}", step.place.file.relative()),
        UseKind::Import => "imported".to_owned(),
        UseKind::Terragrunt(name) => format!("Terragrunt {name}"),
    };
    let file = step.place.file.relative();
    match step.place.line {
        Some(line) => format!("{what} ({file}:{line})"),
        None => format!("{what} ({file})"),
    }
}

/// What changes are measured from, in every document about a selection of what has changed.
#[derive(Serialize)]
pub(super) struct SinceJson<'a> {
    base: BaseJson<'a>,
    removed: Vec<RemovedJson<'a>>,
    /// Whether files of the repository outside of the project differ too.
    changed_outside: bool,
}

#[derive(Serialize)]
struct BaseJson<'a> {
    commit: &'a str,
    rule: String,
    reason: &'a str,
}

#[derive(Serialize)]
struct RemovedJson<'a> {
    path: &'a str,
}

impl<'a> SinceJson<'a> {
    pub(super) fn new(since: &'a Since) -> Self {
        let Since {
            base,
            removed,
            outside,
        } = since;
        let removed = removed.iter().map(|path| RemovedJson {
            path: path.as_str(),
        });
        SinceJson {
            base: BaseJson {
                commit: base.commit.as_str(),
                rule: base.rule.to_string(),
                reason: &base.reason,
            },
            removed: removed.collect(),
            changed_outside: *outside,
        }
    }
}

/// Why a stack counts as changed.
#[derive(Serialize)]
pub(super) struct CauseJson<'a> {
    /// What makes the file an input of the stack: `own`, or the kind of the first step.
    rule: &'static str,
    file: &'a str,
    change: &'static str,
    state: &'static str,
    /// The steps from the stack to the file.
    via: Vec<UseJson<'a>>,
}

#[derive(Serialize)]
struct UseJson<'a> {
    kind: &'static str,
    detail: String,
    file: &'a str,
    line: Option<usize>,
}

impl<'a> CauseJson<'a> {
    pub(super) fn new(cause: &'a Cause) -> Self {
        CauseJson {
            rule: cause
                .chain
                .first()
                .map_or("own", |step| use_kind(&step.kind)),
            file: cause.file.path.relative(),
            change: match cause.file.change {
                FileChange::Retyped => "type_changed",
                change => change_word(change),
            },
            state: match cause.file.state {
                FileState::Committed => "committed",
                FileState::Uncommitted => "uncommitted",
                FileState::Untracked => "untracked",
            },
            via: cause.chain.iter().map(UseJson::new).collect(),
        }
    }
}

impl<'a> UseJson<'a> {
    fn new(step: &'a Use) -> Self {
        UseJson {
            kind: use_kind(&step.kind),
            detail: use_text(step),
            file: step.place.file.relative(),
            line: step.place.line,
        }
    }
}

fn use_kind(kind: &UseKind) -> &'static str {
    match kind {
        UseKind::Watch => "watch",
        UseKind::Module(_) => "module",
        UseKind::Read(_) => "read",
        UseKind::Link => "link",
        UseKind::Import => "import",
        UseKind::Terragrunt(_) => "terragrunt",
    }
}
