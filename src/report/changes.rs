//! Changes, and why a stack counts as changed, as text and JSON.

use serde::Serialize;

use super::document::PathJson;
use crate::change::trigger::Trigger;
use crate::change::{
    Baseline, ChangeBase, ChangeCause, Ignored, Input, Location, SwitchedOff, UncountedChange, Use,
    UseKind, WhyUncounted,
};
use crate::git::{ChangedFile, FileChange, FileState};

/// Returns the file that makes a stack count as changed, and the steps from the stack to it.
pub(super) fn cause_text(cause: &ChangeCause) -> String {
    let file = file_text(&cause.file);
    match chain_text(&cause.chain) {
        chain if chain.is_empty() => format!("changed: {file}"),
        chain => format!("changed: {file}, {chain}"),
    }
}

/// Returns the path of a changed file, and its change unless it is obvious.
pub(super) fn file_text(file: &ChangedFile) -> String {
    let state = state_word(file.state);
    let change = match file.change {
        FileChange::Modified => None,
        FileChange::Added if file.state == FileState::Untracked => None,
        change => Some(change.word()),
    };
    let path = file.path.relative();
    match (state, change) {
        (Some(state), Some(change)) => format!("{path} ({state}, {change})"),
        (Some(word), None) | (None, Some(word)) => format!("{path} ({word})"),
        (None, None) => path.to_owned(),
    }
}

pub(super) fn chain_text(chain: &[Use]) -> String {
    let steps: Vec<String> = chain.iter().map(use_text).collect();
    steps.join(", ")
}

/// Returns the reason in a trigger, and its position.
pub(super) fn trigger_text(trigger: &Trigger) -> String {
    let state = state_word(trigger.state).map_or_else(String::new, |state| format!(", {state}"));
    let file = trigger.file.relative();
    format!("{} ({file}{state})", trigger.reason)
}

/// Returns the word for the state of a change, unless it is committed.
fn state_word(state: FileState) -> Option<&'static str> {
    match state {
        FileState::Committed => None,
        FileState::Uncommitted => Some("uncommitted"),
        FileState::Untracked => Some("untracked"),
    }
}

fn state_json(state: FileState) -> &'static str {
    state_word(state).unwrap_or("committed")
}

/// Returns the reference that makes a file an input, and its position.
fn use_text(step: &Use) -> String {
    let what = match &step.kind {
        UseKind::Watch => "watched".to_owned(),
        UseKind::Module(source) => format!("module {source}"),
        UseKind::Read(function) => format!("read by {function}"),
        UseKind::Link => return format!("target of the link {}", step.location.file.relative()),
        UseKind::Import => "imported".to_owned(),
        UseKind::Terragrunt(name) => format!("Terragrunt {name}"),
        UseKind::Environment { name, was } => format!("environment variable {name}{}", past(*was)),
        UseKind::Global { name, was } | UseKind::Let { name, was } => {
            format!("{name}{}", past(*was))
        }
        UseKind::Attribute(name) => format!("attribute {name}"),
        UseKind::Hidden => return "which hid the stack at the base".to_owned(),
        UseKind::StackList => "the list of all stacks".to_owned(),
    };
    format!("{what} ({})", location_text(&step.location))
}

/// Returns the words for a definition at the base, perhaps on a line that no longer exists.
fn past(was: bool) -> &'static str {
    if was { " at the base" } else { "" }
}

pub(super) fn location_text(location: &Location) -> String {
    let file = location.file.relative();
    match location.line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    }
}

/// Returns the part of an input that `ignore_changes` excludes, if any.
pub(super) fn ignored_text(ignored: &Ignored) -> Option<String> {
    match ignored {
        Ignored::Nothing => None,
        Ignored::Matching(entries) => {
            let entries: Vec<String> = entries.iter().map(|entry| format!("`{entry}`")).collect();
            Some(format!(
                "`ignore_changes` leaves out files that {} matches",
                entries.join(" or ")
            ))
        }
        Ignored::All => Some("left out by `ignore_changes`".to_owned()),
    }
}

/// Returns a change that does not count, with the reason.
pub(super) fn uncounted_text(change: &UncountedChange) -> String {
    let mut text = file_text(&change.file);
    if !change.links.is_empty() {
        text += &format!(", {}", chain_text(&change.links));
    }
    format!("{text}, {}", why_uncounted_text(change))
}

/// The consequence of a path that cannot be determined.
pub(super) const UNKNOWN_PATH: &str =
    "its path cannot be determined, so changes of the file do not count";

const MAX_UNKNOWN: usize = 5;

/// Returns the notes about references to files whose paths cannot be determined.
pub fn unknown_path_notes(unknown: &[Use]) -> Vec<String> {
    let named = unknown
        .iter()
        .take(MAX_UNKNOWN)
        .map(|read| format!("{}: {UNKNOWN_PATH}", use_text(read)));
    let mut notes: Vec<String> = named.collect();
    if unknown.len() > MAX_UNKNOWN {
        let more = unknown.len() - MAX_UNKNOWN;
        notes.push(format!(
            "and {more} more such paths; `orch why STACK` shows those of a stack"
        ));
    }
    notes
}

/// Returns why a change does not count.
fn why_uncounted_text(change: &UncountedChange) -> String {
    match &change.why {
        WhyUncounted::Ignored { entry, location } => {
            format!("ignored by `{entry}` ({})", location_text(location))
        }
        WhyUncounted::NoInput => {
            "only in comments, layout or settings that are no inputs".to_owned()
        }
        WhyUncounted::Off(by) => {
            let state = state_json(change.file.state);
            match by {
                SwitchedOff::Flag => {
                    format!("switched off by --disable-change-detection git-{state}")
                }
                SwitchedOff::Configuration => {
                    format!("switched off by config.change_detection.git.{state}")
                }
            }
        }
    }
}

/// The base of the changes, in each document about a selection of changed stacks.
#[derive(Serialize)]
pub(super) struct SinceJson<'a> {
    base: BaseJson<'a>,
    removed: Vec<PathJson<'a>>,
    /// Whether files of the repository outside the project differ too.
    changed_outside: bool,
}

#[derive(Serialize)]
struct BaseJson<'a> {
    /// `null` if the base is the state.
    commit: Option<&'a str>,
    rule: String,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    serial: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lineage: Option<&'a str>,
}

impl<'a> SinceJson<'a> {
    pub(super) fn new(since: &'a Baseline) -> Self {
        let Baseline {
            base,
            removed,
            outside,
        } = since;
        let removed = removed.iter().map(PathJson::new);
        SinceJson {
            base: match base {
                ChangeBase::Commit(base) => BaseJson {
                    commit: Some(base.commit.as_str()),
                    rule: base.rule.to_string(),
                    reason: base.reason.clone(),
                    serial: None,
                    lineage: None,
                },
                ChangeBase::Applied(base) => BaseJson {
                    commit: None,
                    rule: "applied".to_owned(),
                    reason: base.to_string(),
                    serial: Some(base.serial),
                    lineage: Some(&base.lineage),
                },
            },
            removed: removed.collect(),
            changed_outside: *outside,
        }
    }
}

#[derive(Serialize)]
pub(super) struct FileJson<'a> {
    file: &'a str,
    change: &'static str,
    state: &'static str,
}

impl<'a> FileJson<'a> {
    pub(super) fn new(file: &'a ChangedFile) -> Self {
        FileJson {
            file: file.path.relative(),
            change: match file.change {
                FileChange::Retyped => "type_changed",
                change => change.word(),
            },
            state: state_json(file.state),
        }
    }
}

/// Why a stack counts as changed.
#[derive(Serialize)]
pub(super) struct CauseJson<'a> {
    /// The reference that makes the file an input of the stack: `own`, or the kind of the first
    /// step.
    rule: &'static str,
    #[serde(flatten)]
    file: FileJson<'a>,
    /// The steps from the stack to the file.
    via: Vec<UseJson<'a>>,
}

#[derive(Serialize)]
pub(super) struct UseJson<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    detail: String,
    file: &'a str,
    line: Option<usize>,
}

impl<'a> CauseJson<'a> {
    pub(super) fn new(cause: &'a ChangeCause) -> Self {
        CauseJson {
            rule: rule(&cause.chain),
            file: FileJson::new(&cause.file),
            via: cause.chain.iter().map(UseJson::new).collect(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct InputJson<'a> {
    /// Absolute in the project; with wildcards if it matches several files.
    place: String,
    rule: &'static str,
    via: Vec<UseJson<'a>>,
    /// The changed file there, or where its links lead; `null` if none has changed, or if changes
    /// are not requested.
    changed: Option<FileJson<'a>>,
    /// The links from the place to the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<UseJson<'a>>,
    /// Changed files there that do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    uncounted: Vec<UncountedJson<'a>>,
    /// The entries of `ignore_changes` that exclude something there; `true` if they exclude all of
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignored: Option<IgnoredJson<'a>>,
}

/// The part of an input that `ignore_changes` excludes.
#[derive(Serialize)]
#[serde(untagged)]
enum IgnoredJson<'a> {
    All(bool),
    Matching(&'a [String]),
}

/// A changed file that does not count.
#[derive(Serialize)]
struct UncountedJson<'a> {
    #[serde(flatten)]
    file: FileJson<'a>,
    /// The links from the place to the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<UseJson<'a>>,
    /// `switched_off`, `ignored` or `no_input`.
    why: &'static str,
    detail: String,
}

impl<'a> UncountedJson<'a> {
    fn new(change: &'a UncountedChange) -> Self {
        UncountedJson {
            file: FileJson::new(&change.file),
            links: change.links.iter().map(UseJson::new).collect(),
            why: match change.why {
                WhyUncounted::Off(_) => "switched_off",
                WhyUncounted::Ignored { .. } => "ignored",
                WhyUncounted::NoInput => "no_input",
            },
            detail: why_uncounted_text(change),
        }
    }
}

impl<'a> InputJson<'a> {
    pub(super) fn new(input: &'a Input) -> Self {
        InputJson {
            place: input.location.to_string(),
            rule: rule(&input.chain),
            via: input.chain.iter().map(UseJson::new).collect(),
            changed: input.change.as_ref().map(FileJson::new),
            links: input.links.iter().map(UseJson::new).collect(),
            uncounted: input.uncounted.iter().map(UncountedJson::new).collect(),
            ignored: match &input.ignored {
                Ignored::Nothing => None,
                Ignored::Matching(entries) => Some(IgnoredJson::Matching(entries)),
                Ignored::All => Some(IgnoredJson::All(true)),
            },
        }
    }
}

/// Returns the name of the rule by which a chain makes something an input of a stack.
fn rule(chain: &[Use]) -> &'static str {
    chain.first().map_or("own", |step| use_kind(&step.kind))
}

/// A trigger that makes a stack count as changed or unchanged.
#[derive(Serialize)]
pub(super) struct TriggerJson<'a> {
    file: &'a str,
    state: &'static str,
    trigger_reason: &'a str,
}

impl<'a> TriggerJson<'a> {
    pub(super) fn new(trigger: &'a Trigger) -> Self {
        TriggerJson {
            file: trigger.file.relative(),
            state: state_json(trigger.state),
            trigger_reason: &trigger.reason,
        }
    }
}

impl<'a> UseJson<'a> {
    pub(super) fn new(step: &'a Use) -> Self {
        UseJson {
            kind: use_kind(&step.kind),
            name: match &step.kind {
                UseKind::Environment { name, .. }
                | UseKind::Global { name, .. }
                | UseKind::Let { name, .. }
                | UseKind::Attribute(name) => Some(name),
                _ => None,
            },
            detail: use_text(step),
            file: step.location.file.relative(),
            line: step.location.line,
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
        UseKind::Environment { .. } => "environment",
        UseKind::Global { .. } => "global",
        UseKind::Let { .. } => "let",
        UseKind::Attribute(_) => "attribute",
        UseKind::Hidden => "hidden",
        UseKind::StackList => "stack_list",
    }
}
