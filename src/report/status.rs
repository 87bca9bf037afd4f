//! The status of a stack according to the state, as text and JSON.

use serde::Serialize;

use super::changes::{CauseJson, cause_text};
use crate::change::{ChangeCause, Difference, Pending, StackStatus};
use crate::git::CommitId;
use crate::printable::first_of;

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
            Pending::Unknown(why) => why.clone(),
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
