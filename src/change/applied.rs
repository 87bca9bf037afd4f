//! How what is on record of a stack compares with what is here.
//!
//! Digests decide, so no history is asked: the answer is the same in a shallow clone, after a squash, and
//! when what was applied is committed later.

use std::collections::BTreeSet;

use super::digest::InputDigest;
use super::error::ChangeError;
use crate::git::{CommitId, CommitTree, Repository};
use crate::path::{ProjectPath, StackPath};
use crate::project::{self, Project};
use crate::state::document::{Applied, Entry, Lock, Outcome};

/// Whether a stack is as it was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// A run is at it.
    Running,
    /// The last attempt failed or was interrupted, or somebody does not trust its result.
    Failed(&'static str),
    /// It was never applied, or something has changed since.
    Pending(Pending),
    /// It is as it was applied.
    Applied,
    /// It is on record and no longer here: HEAD does not have it, and its history has what was applied.
    Removed,
    /// It is on record and not here, without evidence that it was removed.
    Absent,
}

/// Why a stack is to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pending {
    /// Nothing is on record.
    NeverApplied,
    /// These parts of its inputs differ.
    Differs(Vec<String>),
    /// It was recorded by other rules of what counts, so that digests cannot be compared.
    OtherRules,
    /// This trigger asks for it.
    Triggered(ProjectPath),
}

impl Standing {
    /// Returns the word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Standing::Running => "running",
            Standing::Failed(_) => "failed",
            Standing::Pending(_) => "pending",
            Standing::Applied => "applied",
            Standing::Removed => "removed",
            Standing::Absent => "absent",
        }
    }

    /// Returns the standing of a stack: what is on record of it, the lock of the document, the rules and the
    /// digest of its inputs now, and the triggers that ask for it.
    pub fn new(
        entry: Option<&Entry>,
        lock: Option<&Lock>,
        rules: &str,
        now: &InputDigest,
        triggers: &[ProjectPath],
    ) -> Self {
        if let Some(attempted) = entry.and_then(|entry| Self::of_attempt(entry, lock)) {
            return attempted;
        }
        let Some(applied) = entry.and_then(|entry| entry.applied.as_ref()) else {
            return Standing::Pending(Pending::NeverApplied);
        };
        let differs = difference(applied, rules, now);
        let triggered = || {
            let answered: BTreeSet<&str> = applied.triggers.iter().map(String::as_str).collect();
            let mut new = triggers.iter();
            let new = new.find(|trigger| !answered.contains(trigger.as_str()));
            new.cloned().map(Pending::Triggered)
        };
        match differs.or_else(triggered) {
            Some(pending) => Standing::Pending(pending),
            None => Standing::Applied,
        }
    }

    /// Returns what the last attempt says by itself.
    fn of_attempt(entry: &Entry, lock: Option<&Lock>) -> Option<Self> {
        if let Some(intent) = &entry.intent {
            let is_running = lock.is_some_and(|lock| lock.run == intent.run);
            return Some(if is_running {
                Standing::Running
            } else {
                Standing::Failed("interrupted")
            });
        }
        if entry.tainted.is_some() {
            return Some(Standing::Failed("tainted"));
        }
        let last = entry.last.as_ref()?;
        let has_failed = last.outcome != Outcome::Succeeded;
        has_failed.then_some(Standing::Failed("the last attempt failed"))
    }
}

/// Returns which of some stacks on record, none of which is here, were removed: HEAD does not have them
/// either, and its history has the commit that was last seen to have them. The others are only absent.
///
/// # Errors
///
/// If git cannot answer.
pub fn removed_since_applied<'e>(
    project: &Project,
    repository: &Repository,
    head: &CommitId,
    missing: impl Iterator<Item = (&'e str, &'e Entry)>,
) -> Result<BTreeSet<&'e str>, ChangeError> {
    let seen = missing.filter_map(|(key, entry)| {
        let seen = entry.applied.as_ref()?.seen.as_deref();
        Some((key, CommitId::new(seen?)?))
    });
    let seen: Vec<(&str, CommitId)> = seen.collect();
    if seen.is_empty() {
        return Ok(BTreeSet::new());
    }
    let tree = CommitTree::new(Repository::open(&project.root)?, head.clone());
    let committed = project::stacks_of_tree(&project.root, &tree)?;
    let stacks: BTreeSet<&str> = committed.stacks.iter().map(StackPath::as_str).collect();
    let mut removed = BTreeSet::new();
    for (key, seen) in seen {
        if stacks.contains(key) || repository.commit(seen.as_str())?.is_none() {
            continue;
        }
        if repository.is_ancestor(&seen, head)? {
            removed.insert(key);
        }
    }
    Ok(removed)
}

/// Returns how the inputs differ from those that were applied, if they do.
fn difference(applied: &Applied, rules: &str, now: &InputDigest) -> Option<Pending> {
    let Some(inputs) = &applied.inputs else {
        return Some(Pending::OtherRules);
    };
    if inputs.rules != rules {
        return Some(Pending::OtherRules);
    }
    if inputs.digest == now.digest {
        return None;
    }
    let names: BTreeSet<&String> = inputs.parts.keys().chain(now.parts.keys()).collect();
    let differing = names
        .into_iter()
        .filter(|name| inputs.parts.get(*name) != now.parts.get(*name));
    Some(Pending::Differs(differing.cloned().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(parts: &[(&str, &str)]) -> InputDigest {
        let parts = parts
            .iter()
            .map(|(name, part)| ((*name).to_owned(), (*part).to_owned()));
        let parts: std::collections::BTreeMap<String, String> = parts.collect();
        InputDigest {
            digest: format!("sha256:{parts:?}"),
            parts,
            is_dirty: false,
        }
    }

    fn entry(text: serde_json::Value) -> Entry {
        serde_json::from_value(text).unwrap()
    }

    fn applied(parts: &[(&str, &str)]) -> serde_json::Value {
        let digest = digest(parts);
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
        let now = digest(&[("own", "1")]);
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
            (serde_json::json!({ "last": last("succeeded") }), "pending"),
            (serde_json::json!({}), "pending"),
        ];
        for (text, expected) in table {
            let entry = entry(text);
            let standing = Standing::new(Some(&entry), Some(&lock), "1:a", &now, &[]);
            assert_eq!(standing.word(), expected, "{entry:?}");
        }
        let never = Standing::new(None, None, "1:a", &now, &[]);
        assert_eq!(never, Standing::Pending(Pending::NeverApplied));
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
            Standing::new(Some(&entry), None, rules, &digest(parts), &triggers)
        };
        let same = [("own", "1"), ("watch /x", "2")];
        assert_eq!(
            pending("1:a", &same, &["/.tmtriggers/a/1.tm"]),
            Standing::Applied
        );
        assert_eq!(
            pending("1:a", &[("own", "9"), ("read /y", "3")], &[]),
            Standing::Pending(Pending::Differs(vec![
                "own".to_owned(),
                "read /y".to_owned(),
                "watch /x".to_owned()
            ]))
        );
        assert_eq!(
            pending("2:a", &same, &[]),
            Standing::Pending(Pending::OtherRules)
        );
        let new = ProjectPath::root().resolve("/.tmtriggers/a/2.tm").unwrap();
        assert_eq!(
            pending(
                "1:a",
                &same,
                &["/.tmtriggers/a/1.tm", "/.tmtriggers/a/2.tm"]
            ),
            Standing::Pending(Pending::Triggered(new))
        );
    }
}
