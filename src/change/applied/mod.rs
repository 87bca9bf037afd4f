//! Compares recorded stacks with the project.
//!
//! Digests decide, so the answer needs no history: it is the same in a shallow clone, after a squash, and if
//! the applied changes are committed later. Where digests cannot be compared, git diffs against the applied
//! commit.

mod at_commit;
mod compare;
mod default_branch;
mod deletions;
mod entry_index;
mod ignored;
mod proof;
mod range;
mod relocate;
mod removed;
mod similarity;

use std::collections::{BTreeMap, BTreeSet};

pub use self::compare::stack_statuses;
pub use self::deletions::{CommitRange, Deletion, RangeCommit, RemovedDirectory, deletions};
pub use self::entry_index::EntryIndex;
pub use self::entry_index::had_stack_on_record;
pub use self::proof::{NoProof, ProvenRemoval, RemovedBy, RemovingBlock, moved_or_removed};
pub use self::relocate::{MoveConflict, relocate};
use super::baseline::AppliedBase;
use super::cause::ChangeCause;
use crate::git::CommitId;
use crate::path::{Generation, ProjectPath, StackPath};
use crate::printable::printable;
use crate::project::stack::StackIndex;
use crate::state::document::{
    Applied, Attempt, AttemptOutcome, CONDITION, Entry, Inputs, Lock, OTHER_BACKEND, OUTDATED_PLAN,
    PARTIAL_PLAN, REFUSED, RunAction, UNREADABLE_PLAN,
};

/// The status of each stack of a project, according to the document.
#[derive(Debug, Clone)]
pub struct StackStatuses {
    pub base: AppliedBase,
    pub stacks: BTreeMap<StackIndex, StackStatus>,
    /// The ignored differences of stacks whose status is `applied`: files and other inputs by name. Filled
    /// only to explain statuses.
    pub ignored: BTreeMap<StackIndex, Vec<String>>,
    /// The recorded stacks that the project lacks, by key: removed or absent.
    pub missing: BTreeMap<String, MissingStack>,
}

#[derive(Debug, Clone)]
pub struct MissingStack {
    /// Removed if that is proven, otherwise absent.
    pub status: StackStatus,
    pub id: Option<String>,
    pub name: String,
    pub tags: Vec<String>,
    /// The proof, or why there is none.
    pub evidence: Result<ProvenRemoval, NoProof>,
}

impl MissingStack {
    /// Returns the `removed` block that keeps the stack's resources, if one does.
    pub fn leaving(&self) -> Option<&RemovingBlock> {
        self.evidence.as_ref().ok()?.by.leaving()
    }
}

impl StackStatuses {
    pub fn removed(&self) -> Vec<StackPath> {
        let missing = self.missing.iter();
        let removed = missing.filter(|(_, stack)| stack.status == StackStatus::Removed);
        removed
            .filter_map(|(key, _)| StackPath::parse(key))
            .collect()
    }

    /// Notes that the remote was asked for the commits that are missing from this clone, and does not have
    /// them.
    pub fn lose_commits(&mut self) {
        for stack in self.missing.values_mut() {
            if let Err(NoProof::NotInClone {
                is_shallow: false,
                is_lost,
                ..
            }) = &mut stack.evidence
            {
                *is_lost = true;
            }
        }
    }

    /// Returns the stacks whose status is not `applied`.
    pub fn changed(&self) -> impl Iterator<Item = StackIndex> {
        let stacks = self.stacks.iter();
        let changed = stacks.filter(|(_, status)| **status != StackStatus::Applied);
        changed.map(|(&stack, _)| stack)
    }
}

/// The status of a stack, compared with the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StackStatus {
    /// A run is in progress for it.
    Running,
    /// The last attempt failed or was interrupted, or the stack is tainted.
    Failed(&'static str),
    /// It was never applied, or it changed since.
    Pending(Pending),
    Applied,
    /// It is recorded and missing, and its removal is proven: see [`ProvenRemoval`].
    Removed,
    /// It is recorded and missing, without proof: see [`NoProof`].
    Absent,
}

/// The kind of a status, without its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatusKind {
    Running,
    Failed,
    Pending,
    Applied,
    Removed,
    Absent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pending {
    NeverApplied,
    /// The last attempt may have done its work only in part or not at all, for this reason.
    Unknown(String),
    Differs(Difference),
    /// It was recorded under other digest rules, and the applied commit is not in this clone.
    OtherRules,
    /// Another `ignore_changes` was in force when it was applied, and it is unknown whether the differences
    /// are ignored now.
    OtherIgnored,
    /// A trigger marks it as changed.
    Triggered(ProjectPath),
    /// It was applied with another generation of a stack.
    Generation {
        /// The stack, as recorded.
        of: String,
        now: Generation,
    },
    /// Outputs that it uses have changed since it was applied: which ones.
    Outputs(String),
}

/// The difference between the inputs of a stack and the applied ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// A commit with exactly the applied inputs, if one is known.
    pub since: Option<CommitId>,
    /// The names of the differing parts; empty if only git could show the difference.
    pub parts: Vec<String>,
    /// A file that changed since, if git was asked.
    pub cause: Option<ChangeCause>,
}

impl StatusKind {
    pub fn word(self) -> &'static str {
        match self {
            StatusKind::Running => "running",
            StatusKind::Failed => "failed",
            StatusKind::Pending => "pending",
            StatusKind::Applied => "applied",
            StatusKind::Removed => "removed",
            StatusKind::Absent => "absent",
        }
    }
}

impl StackStatus {
    pub fn kind(&self) -> StatusKind {
        match self {
            StackStatus::Running => StatusKind::Running,
            StackStatus::Failed(_) => StatusKind::Failed,
            StackStatus::Pending(_) => StatusKind::Pending,
            StackStatus::Applied => StatusKind::Applied,
            StackStatus::Removed => StatusKind::Removed,
            StackStatus::Absent => StatusKind::Absent,
        }
    }

    /// Returns the status of a stack, given its entry, the lock, whether it ignores all inputs, its digest,
    /// and the triggers that mark it.
    fn new(
        entry: Option<&Entry>,
        lock: Option<&Lock>,
        ignores_all: bool,
        now: &Inputs,
        triggers: &[ProjectPath],
    ) -> Self {
        if let Some(attempted) = entry.and_then(|entry| Self::of_attempt(entry, lock)) {
            return attempted;
        }
        let Some(applied) = entry.and_then(|entry| entry.applied.as_ref()) else {
            return StackStatus::Pending(Pending::NeverApplied);
        };
        // It is never pending, so the cause does not matter.
        if ignores_all {
            return StackStatus::Applied;
        }
        match difference(applied, now) {
            Some(pending) => StackStatus::Pending(pending),
            None => Self::of_triggers(applied, triggers),
        }
    }

    /// Returns the status that follows from the last attempt alone.
    fn of_attempt(entry: &Entry, lock: Option<&Lock>) -> Option<Self> {
        if let Some(intent) = &entry.intent {
            let is_running = lock.is_some_and(|lock| lock.is_of(&intent.run));
            return Some(if is_running {
                StackStatus::Running
            } else {
                StackStatus::Failed("interrupted")
            });
        }
        if entry.tainted.is_some() {
            return Some(StackStatus::Failed("tainted"));
        }
        let last = entry.last.as_ref()?;
        if last.outcome == AttemptOutcome::Unknown {
            return Some(StackStatus::Pending(Pending::Unknown(unknown(last))));
        }
        let has_failed = last.outcome != AttemptOutcome::Succeeded;
        let checks = entry.applied.as_ref().and_then(|it| it.checks.as_deref());
        if has_failed && last.failure.as_deref() == Some(CONDITION) && checks.is_some() {
            return Some(StackStatus::Failed("a postcondition failed"));
        }
        let is_refused = last.failure.as_deref() == Some(REFUSED);
        has_failed.then_some(StackStatus::Failed(if is_refused {
            "the last attempt was refused"
        } else {
            "the last attempt failed"
        }))
    }

    fn of_triggers(applied: &Applied, triggers: &[ProjectPath]) -> Self {
        let answered: BTreeSet<&str> = applied.triggers.iter().map(String::as_str).collect();
        let mut new = triggers.iter();
        match new.find(|trigger| !answered.contains(trigger.as_str())) {
            Some(new) => StackStatus::Pending(Pending::Triggered(new.clone())),
            None => StackStatus::Applied,
        }
    }
}

/// Returns why the result of an attempt is unknown.
fn unknown(attempt: &Attempt) -> String {
    let action = match &attempt.action {
        RunAction::Other(_) => "attempt",
        action => action.word(),
    };
    match attempt.failure.as_deref() {
        Some(PARTIAL_PLAN) => {
            format!("the last {action} used an incomplete plan file")
        }
        Some(UNREADABLE_PLAN) => {
            format!("the last {action} used a plan file that the tool could not show")
        }
        Some(OUTDATED_PLAN) => {
            format!("the last {action} used a plan file that was made from other inputs")
        }
        Some(OTHER_BACKEND) => {
            format!(
                "the last {action} used another backend than the recorded one, or an unknown one"
            )
        }
        Some(option) => format!(
            "the last {action} ran with `{}`, so it may be incomplete",
            printable(option)
        ),
        None => format!("the last {action} may be incomplete"),
    }
}

/// Returns the commit that has exactly the applied inputs.
fn clean_commit(applied: &Applied) -> Option<CommitId> {
    let commit = applied.commit.as_deref().filter(|_| !applied.dirty);
    CommitId::new(commit.or(applied.seen.as_deref())?)
}

/// Returns the difference from the applied inputs, if there is one.
fn difference(applied: &Applied, now: &Inputs) -> Option<Pending> {
    let Some(inputs) = &applied.inputs else {
        return Some(Pending::OtherRules);
    };
    if inputs.rules != now.rules {
        return Some(Pending::OtherRules);
    }
    if inputs.digest == now.digest {
        return None;
    }
    match (&inputs.counted, &now.counted) {
        (Some(was), Some(now)) if was.ignored == now.ignored => {
            if was.digest == now.digest {
                return None;
            }
        }
        (_, Some(_)) => return Some(Pending::OtherIgnored),
        (_, None) => {}
    }
    Some(part_difference(applied, now))
}

/// Returns the difference from the applied inputs by recorded parts.
fn part_difference(applied: &Applied, now: &Inputs) -> Pending {
    Pending::Differs(Difference {
        since: clean_commit(applied),
        parts: ignored::differing(applied.inputs.as_ref(), now),
        cause: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(rules: &str, parts: &[(&str, &str)]) -> Inputs {
        let parts: std::collections::BTreeMap<String, String> = parts
            .iter()
            .map(|(name, part)| ((*name).to_owned(), (*part).to_owned()))
            .collect();
        Inputs {
            rules: rules.into(),
            digest: format!("sha256:{parts:?}"),
            parts,
            ..Inputs::default()
        }
    }

    fn entry(text: serde_json::Value) -> Entry {
        serde_json::from_value(text).unwrap()
    }

    fn applied(parts: &[(&str, &str)]) -> serde_json::Value {
        let digest = digest("1:a", parts);
        serde_json::json!({
            "serial": 1, "at": "2026-01-01T00:00:00Z", "dirty": false, "triggers": ["/.tmtriggers/a/1.tm"],
            "inputs": { "rules": "1:a", "digest": digest.digest, "parts": digest.parts },
        })
    }

    #[test]
    fn what_failed_comes_before_what_differs() {
        let lock: Lock = serde_json::from_value(serde_json::json!({
            "code": "c", "run": "r2", "action": "apply", "by": "b", "host": "h", "process": 1,
            "ci": null, "since": "2026-01-01T00:00:00Z",
        }))
        .unwrap();
        let now = digest("1:a", &[("own", "1")]);
        let same = applied(&[("own", "1")]);
        let intent = |run: &str| serde_json::json!({ "action": "apply", "run": run, "since": "2026-01-01T00:00:00Z" });
        let last = |outcome: &str| {
            serde_json::json!({
                "serial": 1, "action": "apply", "outcome": outcome, "at": "2026-01-01T00:00:00Z",
            })
        };
        let table = [
            (
                serde_json::json!({ "applied": same, "last": last("succeeded") }),
                "applied",
            ),
            (
                serde_json::json!({ "applied": same, "last": last("failed") }),
                "failed",
            ),
            (
                serde_json::json!({ "applied": same, "last": last("a later word") }),
                "failed",
            ),
            (
                serde_json::json!({ "applied": same, "intent": intent("r1") }),
                "failed",
            ),
            (
                serde_json::json!({ "applied": same, "intent": intent("r2") }),
                "running",
            ),
            (
                serde_json::json!({ "applied": same, "tainted": { "by": "b", "at": "2026-01-01T00:00:00Z" } }),
                "failed",
            ),
            (
                serde_json::json!({ "applied": same, "last": last("unknown") }),
                "pending",
            ),
            (serde_json::json!({ "last": last("succeeded") }), "pending"),
            (serde_json::json!({}), "pending"),
        ];
        for (text, expected) in table {
            let entry = entry(text);
            let status = StackStatus::new(Some(&entry), Some(&lock), false, &now, &[]);
            assert_eq!(status.kind().word(), expected, "{entry:?}");
            // With all inputs ignored, only a first apply and a failure make it pending.
            let other = digest("1:b", &[("own", "2")]);
            let all = StackStatus::new(Some(&entry), Some(&lock), true, &other, &[]);
            assert_eq!(all, status, "{entry:?}");
        }
        let never = StackStatus::new(None, None, false, &now, &[]);
        assert_eq!(never, StackStatus::Pending(Pending::NeverApplied));
    }

    #[test]
    fn digests_and_triggers_decide_what_is_pending() {
        let entry =
            entry(serde_json::json!({ "applied": applied(&[("own", "1"), ("watch /x", "2")]) }));
        let pending = |rules: &str, parts: &[(&str, &str)], triggers: &[&str]| {
            let triggers: Vec<ProjectPath> = triggers
                .iter()
                .map(|trigger| ProjectPath::root().resolve(trigger).unwrap())
                .collect();
            StackStatus::new(Some(&entry), None, false, &digest(rules, parts), &triggers)
        };
        let same = [("own", "1"), ("watch /x", "2")];
        assert_eq!(
            pending("1:a", &same, &["/.tmtriggers/a/1.tm"]),
            StackStatus::Applied
        );
        assert_eq!(
            pending("1:a", &[("own", "9"), ("read /y", "3")], &[]),
            StackStatus::Pending(Pending::Differs(Difference {
                parts: vec![
                    "own".to_owned(),
                    "read /y".to_owned(),
                    "watch /x".to_owned()
                ],
                ..Difference::default()
            }))
        );
        assert_eq!(
            pending("2:a", &same, &[]),
            StackStatus::Pending(Pending::OtherRules)
        );
        let new = ProjectPath::root().resolve("/.tmtriggers/a/2.tm").unwrap();
        assert_eq!(
            pending(
                "1:a",
                &same,
                &["/.tmtriggers/a/1.tm", "/.tmtriggers/a/2.tm"]
            ),
            StackStatus::Pending(Pending::Triggered(new))
        );
    }
}
