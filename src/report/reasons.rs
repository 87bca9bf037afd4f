//! Why a stack is selected, as text and JSON: also its status according to the state, and at the release of a module.
//!
//! The source of a call is not shown: it may contain a password.

use serde::Serialize;

use super::changes::{
    CauseJson, TriggerJson, UseJson, cause_text, chain_text, location_text, trigger_text,
};
use crate::change::{ChangeCause, Difference, Pending, StackStatus};
use crate::git::CommitId;
use crate::path::ProjectPath;
use crate::printable::first_of;
use crate::project::Project;
use crate::project::stack::{StackIndex, Stacks};
use crate::release::{Consumer, RequestedVersion};
use crate::selection::graph::{NeighbourStep, Origin, SearchDirection};
use crate::selection::select::{DirectoryMatch, Reach, ReachBy, Released, SelectionReason};
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

/// Returns the policies that select a stack, and whether its call allows the new version.
pub(super) fn released_text(released: &Released) -> String {
    let Released {
        module, old, new, ..
    } = released;
    let policies = released.policies.join(", ");
    let word = if released.policies.len() == 1 {
        "policy"
    } else {
        "policies"
    };
    let call = call_text(released);
    format!("{word} {policies}, release of {module} {old}..{new}: {call}")
}

/// Returns why a release leaves out a stack.
pub(super) fn unreleased_text(released: &Released) -> String {
    let Released {
        module, old, new, ..
    } = released;
    let call = call_text(released);
    format!("no policy names it at the release of {module} {old}..{new}: {call}")
}

fn call_text(released: &Released) -> String {
    let Released {
        old, new, consumer, ..
    } = released;
    let Some(Consumer {
        call,
        asked,
        allows_new,
    }) = consumer
    else {
        return format!("none of its calls resolves to {old}");
    };
    let place = location_text(&call.call.location);
    let via = match chain_text(&call.chain) {
        chain if chain.is_empty() => chain,
        chain => format!(", {chain}"),
    };
    let allows = match (allows_new, asked) {
        (true, _) => format!("allows {new}"),
        (false, RequestedVersion::Ref(_)) => format!("keeps {old}"),
        (false, _) => format!("does not allow {new}"),
    };
    format!("its call in {place} ({asked}{via}) resolves to {old} and {allows}")
}

/// The status of a stack at the release of a module.
#[derive(Serialize)]
pub(super) struct ReleasedJson<'a> {
    module: &'a str,
    from: &'a str,
    to: &'a str,
    policies: &'a [String],
    /// Absent if none of the stack's calls resolves to the old version.
    call: Option<CallJson<'a>>,
}

#[derive(Serialize)]
struct CallJson<'a> {
    name: &'a str,
    file: &'a str,
    line: Option<usize>,
    /// The modules from the stack to it.
    via: Vec<UseJson<'a>>,
    version: Option<&'a str>,
    #[serde(rename = "ref")]
    git_ref: Option<&'a str>,
    /// Whether it allows the new version.
    allows: bool,
}

impl<'a> ReleasedJson<'a> {
    pub(super) fn new(released: &'a Released) -> Self {
        ReleasedJson {
            module: &released.module,
            from: &released.old,
            to: &released.new,
            policies: &released.policies,
            call: released.consumer.as_ref().map(CallJson::new),
        }
    }
}

impl<'a> CallJson<'a> {
    fn new(consumer: &'a Consumer) -> Self {
        let Consumer {
            call,
            asked,
            allows_new,
        } = consumer;
        let (version, git_ref) = match asked {
            RequestedVersion::Newest => (None, None),
            RequestedVersion::Constraint(constraint) => (Some(constraint.as_str()), None),
            RequestedVersion::Ref(name) => (None, Some(name.as_str())),
        };
        CallJson {
            name: &call.call.name,
            file: call.call.location.file.relative(),
            line: call.call.location.line,
            via: call.chain.iter().map(UseJson::new).collect(),
            version,
            git_ref,
            allows: *allows_new,
        }
    }
}

/// How many parts that differ are named; JSON has all.
const MAX_PARTS: usize = 5;

pub(super) fn status_text(status: &StackStatus) -> String {
    let word = status.kind().word();
    match why_text(status) {
        Some(why) => format!("{word}: {why}"),
        None => word.to_owned(),
    }
}

/// Returns the reason for the status of a stack, if there is more to say than the word.
pub(super) fn why_text(status: &StackStatus) -> Option<String> {
    match status {
        StackStatus::Failed(why) => Some((*why).to_owned()),
        StackStatus::Pending(pending) => Some(match pending {
            Pending::NeverApplied => "never applied".to_owned(),
            Pending::Unknown(why) | Pending::Outputs(why) => why.clone(),
            Pending::Differs(difference) => difference_text(difference),
            Pending::OtherRules => {
                "the definition of its inputs has changed since it was applied".to_owned()
            }
            Pending::OtherIgnored => {
                "its inputs differ, and `ignore_changes` has changed since it was applied"
                    .to_owned()
            }
            Pending::Triggered(file) => format!("triggered ({})", file.relative()),
            Pending::Generation { of, now } => format!("{of} now has generation {now}"),
        }),
        StackStatus::Running
        | StackStatus::Applied
        | StackStatus::Removed
        | StackStatus::Absent => None,
    }
}

fn difference_text(difference: &Difference) -> String {
    let Difference {
        since,
        parts,
        cause,
    } = difference;
    let mut texts = Vec::new();
    if !parts.is_empty() {
        let named = first_of(parts.iter(), MAX_PARTS);
        let verb = if parts.len() == 1 {
            "differs"
        } else {
            "differ"
        };
        let since = since
            .as_ref()
            .map_or_else(String::new, |commit| format!(" from {}", commit.short()));
        texts.push(format!("{named} {verb}{since}"));
    }
    texts.extend(cause.as_ref().map(cause_text));
    if texts.is_empty() {
        texts.push("its inputs differ".to_owned());
    }
    texts.join("; ")
}

#[derive(Serialize)]
pub(super) struct StatusJson<'a> {
    status: &'static str,
    /// The commit that was applied, if its inputs differ from that.
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<&'a str>,
    /// The parts of its inputs that differ.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    parts: &'a [String],
    /// The changed file, if git shows one.
    #[serde(flatten)]
    cause: Option<CauseJson<'a>>,
}

impl<'a> StatusJson<'a> {
    pub(super) fn new(status: &'a StackStatus) -> Self {
        let difference = match status {
            StackStatus::Pending(Pending::Differs(difference)) => Some(difference),
            _ => None,
        };
        let cause: Option<&ChangeCause> = difference.and_then(|it| it.cause.as_ref());
        let applied = difference.and_then(|it| it.since.as_ref());
        StatusJson {
            status: status.kind().word(),
            applied: applied.map(CommitId::as_str),
            parts: difference.map_or(&[], |it| &it.parts),
            cause: cause.map(CauseJson::new),
        }
    }
}
