//! Why a stack is selected, as text and JSON.

use serde::Serialize;

use super::changes::{CauseJson, TriggerJson, cause_text, trigger_text};
use super::released::{ReleasedJson, released_text};
use super::status::{StatusJson, status_text};
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::stack::{StackIndex, Stacks};
use crate::selection::graph::{NeighbourStep, Origin, SearchDirection};
use crate::selection::select::{DirectoryMatch, Reach, ReachBy, SelectionReason};
use crate::source::{Sources, Span};

/// Returns why a stack is selected, as text.
pub fn reason_text(reason: &SelectionReason, stacks: &Stacks, sources: &Sources) -> String {
    match reason {
        SelectionReason::Changed(cause) => cause_text(cause),
        SelectionReason::Triggered(trigger) => format!("triggered: {}", trigger_text(trigger)),
        SelectionReason::Released(released) => released_text(released),
        SelectionReason::Status(status) => status_text(status),
        SelectionReason::Directory(directory, scope) => directory_text(directory, *scope),
        SelectionReason::Glob(filter) => format!("matches --match {filter}"),
        SelectionReason::Named(source, line) => format!("named in {source}, line {line}"),
        SelectionReason::Tags(filter) => format!("matches --tags {filter}"),
        SelectionReason::Wants(by, span) => {
            format!("wanted by {} ({})", stacks[*by].path, sources.line(*span))
        }
        SelectionReason::WantedBy(by, span) => {
            format!(
                "names {} in `wanted_by` ({})",
                stacks[*by].path,
                sources.line(*span)
            )
        }
        SelectionReason::Neighbour(reach, step) => {
            format!("{} ({reach})", step_text(*reach, step, stacks, sources))
        }
    }
}

/// Returns how a directory limits a selection.
pub(super) fn directory_text(directory: &ProjectPath, scope: DirectoryMatch) -> String {
    match scope {
        DirectoryMatch::Recursive => format!("at or below {directory}"),
        DirectoryMatch::Exact => format!("the stack at {directory}"),
    }
}

/// Returns when a neighbour runs, relative to the stack from which the search reached it.
pub(super) fn direction(towards: SearchDirection) -> &'static str {
    match towards {
        SearchDirection::Dependencies => "before",
        SearchDirection::Dependents => "after",
    }
}

/// Returns how a neighbour is reached, from its own point of view.
pub(super) fn step_text(
    reach: Reach,
    step: &NeighbourStep,
    stacks: &Stacks,
    sources: &Sources,
) -> String {
    let other = &stacks[step.from].path;
    let Origin { kind, span, .. } = step.origin;
    let place = sources.line(span);
    match (reach.by, reach.towards) {
        (ReachBy::Order, towards) => {
            format!("runs {} {other}, {kind} {place}", direction(towards))
        }
        (ReachBy::Data, SearchDirection::Dependents) => {
            format!("uses data of {other}, {kind} {place}")
        }
        (ReachBy::Data, SearchDirection::Dependencies) => {
            format!("its data is used by {other}, {kind} {place}")
        }
    }
}

/// Returns the origins of a constraint, with their places: `after a/stack.tm:3, nesting …`.
pub(super) fn origins_text(origins: &[Origin], sources: &Sources) -> String {
    let origin = |Origin { kind, span, .. }: &Origin| format!("{kind} {}", sources.line(*span));
    origins
        .iter()
        .map(origin)
        .collect::<Vec<String>>()
        .join(", ")
}

#[derive(Serialize)]
pub(super) struct ReasonJson<'a> {
    pub(super) kind: &'static str,
    pub(super) detail: String,
    #[serde(flatten)]
    pub(super) evidence: Option<EvidenceJson<'a>>,
}

/// The data behind a reason that depends on more than the command line.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum EvidenceJson<'a> {
    Cause(CauseJson<'a>),
    Trigger(TriggerJson<'a>),
    Released(ReleasedJson<'a>),
    Status(StatusJson<'a>),
    Line {
        file: &'a str,
        line: usize,
    },
    /// Another stack, and the position of the reference between the two.
    Stack {
        stack: &'a str,
        file: &'a str,
        line: usize,
    },
}

/// Returns why a stack is selected, as JSON.
pub(super) fn reason_json<'a>(reason: &'a SelectionReason, project: &'a Project) -> ReasonJson<'a> {
    let stack = |stack: StackIndex, span: Span| {
        let (file, line) = project.sources.file_and_line(span);
        let stack = project.stacks[stack].path.as_str();
        Some(EvidenceJson::Stack { stack, file, line })
    };
    let (kind, evidence) = match reason {
        SelectionReason::Changed(cause) => {
            let evidence = EvidenceJson::Cause(CauseJson::new(cause));
            ("changed", Some(evidence))
        }
        SelectionReason::Triggered(trigger) => {
            let evidence = EvidenceJson::Trigger(TriggerJson::new(trigger));
            ("triggered", Some(evidence))
        }
        SelectionReason::Released(released) => {
            let evidence = ReleasedJson::new(released);
            ("policy", Some(EvidenceJson::Released(evidence)))
        }
        SelectionReason::Status(status) => {
            let evidence = StatusJson::new(status);
            ("status", Some(EvidenceJson::Status(evidence)))
        }
        SelectionReason::Directory(..) => ("directory", None),
        SelectionReason::Glob(_) => ("match", None),
        SelectionReason::Named(file, line) => {
            ("named", Some(EvidenceJson::Line { file, line: *line }))
        }
        SelectionReason::Tags(_) => ("tags", None),
        SelectionReason::Wants(by, span) => ("wants", stack(*by, *span)),
        SelectionReason::WantedBy(by, span) => ("wanted_by", stack(*by, *span)),
        SelectionReason::Neighbour(reach, step) => {
            let kind = match reach.towards {
                SearchDirection::Dependencies => "dependency",
                SearchDirection::Dependents => "dependent",
            };
            (kind, stack(step.from, step.origin.span))
        }
    };
    ReasonJson {
        kind,
        detail: reason_text(reason, &project.stacks, &project.sources),
        evidence,
    }
}
