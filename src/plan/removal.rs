//! Recorded stacks that this commit lacks: their action, and why some are kept.

use std::collections::BTreeMap;

use super::entry::{
    AskedAction, Decision, NotAllowed, PlanReason, PlannedAction, ReasonSource, Removed, allowed,
};
use super::order::RecordedConstraints;
use crate::driver::{Driver, DriverAnswer, PlanKind};
use crate::git::CommitId;
use crate::project::driver::{DriverStep, NONE};
use crate::state::document::{AttemptOutcome, Entry, READ, RunAction as Written};

/// A stack with proof of removal, before its tool is asked.
#[derive(Debug, Clone, Copy)]
pub struct RemovedStack<'a> {
    pub entry: &'a Entry,
    pub removed: &'a Removed,
}

/// Returns whether it is only removed from the state: others manage it, or it never existed.
pub fn is_only_forgotten(entry: &Entry) -> bool {
    entry.mode.as_deref() == Some(READ) || entry.driver.as_deref() == Some(NONE)
}

impl RemovedStack<'_> {
    fn reason(&self) -> PlanReason {
        let text = match self.removed {
            Removed::Block {
                file,
                line,
                destroys,
            } => {
                let stays = if *destroys {
                    ""
                } else {
                    ", and its resources are kept"
                };
                let text = format!("removed by {file}:{line}{stays}");
                return PlanReason::new(ReasonSource::Config, text).at(Some(file), Some(*line));
            }
            Removed::Commit(commit) => {
                let commit = CommitId::new(commit);
                let commit = commit.as_ref().map_or("", CommitId::short);
                format!("removed in {commit}")
            }
            Removed::Key => "its key was removed".to_owned(),
            Removed::Replaced { by } => format!("replaced by generation {by}"),
            Removed::Unfinished => "it was never finished".to_owned(),
            Removed::Doubtful | Removed::Unknown | Removed::Unproven => {
                "not in the project".to_owned()
            }
        };
        PlanReason::new(ReasonSource::Config, text)
    }

    /// Returns the question for its tool. Fails if the driver has no destroy command.
    pub fn need(&self, driver: &Driver<'_>) -> Result<Decision, String> {
        if driver.is_none() {
            return Ok(Decision::Final(PlannedAction::Forget, self.reason()));
        }
        if !driver.has(DriverStep::Destroy) {
            return Err(format!("its driver `{}` has no `destroy`", driver.name));
        }
        Ok(if driver.has(DriverStep::Plan) {
            Decision::Ask(PlanKind::Destroy, AskedAction::Delete)
        } else {
            let mut reason = self.reason();
            if self.may_be_destroyed() {
                reason.text += "; its last destroy failed, and its driver has no `plan` that finds what is left";
            }
            Decision::Final(PlannedAction::Delete, reason)
        })
    }

    /// Returns whether a destroy started and may have succeeded at least partially.
    fn may_be_destroyed(&self) -> bool {
        let intent = self.entry.intent.as_ref();
        let last = self.entry.last.as_ref();
        intent.is_some_and(|intent| intent.action == Written::Destroy)
            || last.is_some_and(|last| {
                last.action == Written::Destroy && last.outcome != AttemptOutcome::Succeeded
            })
    }

    /// Returns the action if it is only forgotten, which no tool has to confirm.
    pub fn forgotten(&self) -> Option<(PlannedAction, PlanReason)> {
        let is_forgotten = is_only_forgotten(self.entry) || self.removed.leaves();
        is_forgotten.then(|| (PlannedAction::Forget, self.reason()))
    }

    /// Returns the action for the driver's answer. Fails if the answer is not allowed.
    pub fn decide(
        &self,
        driver: &Driver<'_>,
        answer: &DriverAnswer,
    ) -> Result<(PlannedAction, PlanReason), NotAllowed> {
        allowed(driver, AskedAction::Delete, answer)?;
        let action = if answer.is_there(true) {
            PlannedAction::Delete
        } else {
            PlannedAction::Forget
        };
        Ok((action, self.reason()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalRole {
    /// It is destroyed, unless another stack needs it.
    Destroyed,
    /// It exists and the plan does not touch it: the stacks that it depends on must be kept.
    Untouched,
    /// It is kept and updated before the stacks that it used are destroyed.
    Updated,
    /// None of it exists.
    Missing,
}

/// Returns the stacks that cannot be destroyed because kept stacks run after them, each with the
/// first such stack, searching from the lowest. They in turn require others. Stacks have their
/// recorded numbers. Linear in the size of the recorded graph.
pub fn held(
    recorded: &RecordedConstraints,
    part: impl Fn(usize) -> RemovalRole,
) -> BTreeMap<usize, usize> {
    let back = recorded.precedence().reversed();
    let n_stacks = recorded.n_stacks;
    let parts: Vec<RemovalRole> = (0..n_stacks).map(&part).collect();
    let mut held = BTreeMap::new();
    if !parts.contains(&RemovalRole::Destroyed) {
        return held;
    }
    let mut is_seen = vec![false; back.n_nodes()];
    for first in (0..n_stacks).filter(|&stack| parts[stack] == RemovalRole::Untouched) {
        // A node, and the kept stack that runs after it.
        let mut open = vec![(first, first)];
        while let Some((node, holder)) = open.pop() {
            for before in back.successors(node) {
                let before = before.node as usize;
                if std::mem::replace(&mut is_seen[before], true) {
                    continue;
                }
                match parts.get(before) {
                    Some(RemovalRole::Destroyed) => {
                        held.insert(before, holder);
                        open.push((before, before));
                    }
                    Some(RemovalRole::Untouched | RemovalRole::Updated) => {}
                    Some(RemovalRole::Missing) | None => open.push((before, holder)),
                }
            }
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::order::RecordedEdge;

    /// Finds the required stacks: `g` is destroyed, `h` untouched, `m` updated; `edges` is the
    /// recorded precedence. The node after the stacks is a group.
    fn answer(parts: &str, edges: &[(u32, u32)]) -> Vec<(usize, usize)> {
        let parts: Vec<RemovalRole> = parts
            .chars()
            .map(|letter| match letter {
                'g' => RemovalRole::Destroyed,
                'h' => RemovalRole::Untouched,
                'm' => RemovalRole::Updated,
                _ => RemovalRole::Missing,
            })
            .collect();
        let edges = edges.iter().map(|&(earlier, later)| RecordedEdge {
            earlier,
            later,
            serial: None,
        });
        let recorded = RecordedConstraints {
            n_stacks: parts.len(),
            n_nodes: parts.len() + 1,
            edges: edges.collect(),
        };
        held(&recorded, |stack| parts[stack]).into_iter().collect()
    }

    #[test]
    fn kept_stacks_hold_their_dependencies() {
        for (parts, edges, expected) in [
            ("gh", &[(0, 1)][..], &[(0, 1)][..]),
            ("gh", &[(1, 0)], &[]),
            // A planned stack is updated first.
            ("gm", &[(0, 1)], &[]),
            ("gmh", &[(0, 1), (1, 2)], &[]),
            // Through a stack that does not exist, and through a group.
            ("g-h", &[(0, 1), (1, 2)], &[(0, 2)]),
            ("gh", &[(0, 2), (2, 1)], &[(0, 1)]),
            // A kept stack requires others.
            ("ggh", &[(0, 1), (1, 2)], &[(0, 1), (1, 2)]),
            ("gg", &[(0, 1)], &[]),
        ] {
            assert_eq!(answer(parts, edges), expected, "{parts} {edges:?}");
        }
    }
}
