//! Checks that the changes that a tool would make now are within those that a plan has shown.
//!
//! A provisional entry was planned before a stack that it runs after was applied. It may create and
//! update anything, as may an entry that the apply decides. The second half of a replace may create
//! anything. The plan must have shown every other change: its address, its actions and its known
//! values. Only resources that it has shown are destroyed or replaced.

use std::collections::HashMap;
use std::fmt;

use crate::driver::{ChangeCounts, DriverAction, DriverAnswer, ResourceChange};
use crate::plan::entry::{PlanEntry, PlannedAction};
use crate::printable::{first_of, printable};

#[derive(Debug, Clone)]
pub struct ShownChanges {
    /// `None` if the apply decides the action.
    pub action: Option<PlannedAction>,
    pub counts: Option<ChangeCounts>,
    pub resources: Vec<ResourceChange>,
    /// The digest of the changes, if the driver reports one.
    pub changes: Option<String>,
    /// Whether a stack that it runs after was applied later: its creates and updates may differ.
    pub is_provisional: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnshownChanges {
    counts: Option<ChangeCounts>,
    destroyed: Vec<String>,
}

const MOST: usize = 5;

impl UnshownChanges {
    /// Changes of resources without names.
    fn counted(counts: Option<ChangeCounts>) -> Self {
        UnshownChanges {
            counts,
            destroyed: Vec::new(),
        }
    }
}

impl fmt::Display for UnshownChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("has changes that the plan does not show")?;
        if !self.destroyed.is_empty() {
            let destroyed = self.destroyed.iter();
            let addresses = destroyed.map(|it| format!("`{}`", printable(it)));
            write!(f, ": would destroy {}", first_of(addresses, MOST))?;
        }
        match self.counts {
            None => Ok(()),
            Some(ChangeCounts {
                add,
                change,
                remove,
            }) => write!(f, " (+{add} ~{change} -{remove})"),
        }
    }
}

impl ShownChanges {
    pub fn of(entry: &PlanEntry, changes: Option<String>) -> Self {
        ShownChanges {
            action: (!entry.is_undecided()).then_some(entry.action),
            counts: entry.counts,
            resources: entry.resources.clone(),
            changes,
            is_provisional: !entry.after.is_empty(),
        }
    }

    /// Checks the changes that a tool would make now. `is_partly_applied`: part of the plan may already have
    /// been applied. Then the rest of it is within the plan, and so is replacing a resource whose
    /// creation did not finish.
    pub fn check(
        &self,
        answer: &DriverAnswer,
        is_partly_applied: bool,
    ) -> Result<(), UnshownChanges> {
        if answer.action == Some(DriverAction::Replace) {
            return Err(UnshownChanges::counted(answer.counts));
        }
        if answer.resources.is_empty() {
            return self.check_counts(answer, is_partly_applied);
        }
        let shown: HashMap<&str, &ResourceChange> = self
            .resources
            .iter()
            .map(|resource| (resource.address.as_str(), resource))
            .collect();
        let mut beyond = ChangeCounts::default();
        let mut destroyed = Vec::new();
        for resource in &answer.resources {
            let known = shown.get(&*resource.address);
            // The deposed object of a resource that is replaced.
            let known = known
                .or_else(|| shown.get(resource.base_address()))
                .copied();
            if self.may_add(resource, known, is_partly_applied)
                || known.is_some_and(|known| self.covers(known, resource, is_partly_applied))
            {
                continue;
            }
            if resource.destroys() {
                destroyed.push(resource.address.clone());
            }
            for action in &resource.actions {
                match action.as_str() {
                    "create" => beyond.add += 1,
                    "delete" | "forget" => beyond.remove += 1,
                    _ => beyond.change += 1,
                }
            }
        }
        if beyond == ChangeCounts::default() {
            return Ok(());
        }
        Err(UnshownChanges {
            counts: Some(beyond),
            destroyed,
        })
    }

    /// Checks only that nothing is destroyed that the plan has not shown.
    pub fn check_destroys(
        &self,
        answer: &DriverAnswer,
        is_partly_applied: bool,
    ) -> Result<(), UnshownChanges> {
        if !answer.destroys_resources() {
            return Ok(());
        }
        let shown = ShownChanges {
            is_provisional: true,
            ..self.clone()
        };
        shown.check(answer, is_partly_applied)
    }

    /// Returns whether a change is allowed without having been shown.
    fn may_add(
        &self,
        resource: &ResourceChange,
        known: Option<&ResourceChange>,
        is_partly_applied: bool,
    ) -> bool {
        let is = |actions: &[&str]| resource.actions == actions;
        let is_rest = is_partly_applied && resource.is_tainted && (is(&["delete", "create"]));
        match self.action {
            Some(PlannedAction::Delete) => is(&["delete"]),
            None | Some(_) if self.is_provisional => is(&["create"]) || is(&["update"]) || is_rest,
            // An earlier attempt created it.
            Some(PlannedAction::Create) => {
                is_partly_applied
                    && is(&["update"])
                    && known.is_some_and(|it| values_agree(it, resource))
            }
            // Its plan shows only the first half, the destroy.
            Some(PlannedAction::Replace) => {
                is(&["create"]) || is_partly_applied && is(&["update"]) || is_rest
            }
            None | Some(_) => false,
        }
    }

    /// Returns whether a shown change covers this one. The values of a provisional entry do not
    /// count: they depend on later applies.
    fn covers(
        &self,
        shown: &ResourceChange,
        now: &ResourceChange,
        is_partly_applied: bool,
    ) -> bool {
        let is_same = shown.address == now.address && shown.actions == now.actions;
        let has = |action: &str| shown.actions.iter().any(|it| it == action);
        let is_rest = || {
            let is_part = now.actions.iter().all(|action| has(action));
            is_partly_applied && (is_part || now.is_tainted && has("create"))
        };
        (is_same || is_rest()) && (self.is_provisional || values_agree(shown, now))
    }

    fn check_counts(
        &self,
        answer: &DriverAnswer,
        is_partly_applied: bool,
    ) -> Result<(), UnshownChanges> {
        let now = answer.counts;
        let removes = now.is_some_and(|now| now.remove > 0);
        let is_within = match self.action {
            Some(PlannedAction::Delete) => true,
            Some(PlannedAction::Update | PlannedAction::Create) if self.is_provisional => {
                let shown = self.counts.map_or(0, |shown| shown.remove);
                now.is_none_or(|now| now.remove <= shown)
            }
            None | Some(PlannedAction::Replace) => !removes,
            Some(_) => match (&self.changes, &answer.changes, &self.counts, now) {
                // Tools report both; changes of outputs alone change no resources.
                (Some(_), Some(_), ..) if now == Some(ChangeCounts::default()) => true,
                (Some(shown), Some(now), ..) if shown == now => true,
                // The rest of a partially applied plan has another digest.
                (Some(_), Some(_), counts, _) if !is_partly_applied || counts.is_none() => false,
                (_, _, None, _) => !removes,
                (_, _, Some(_), None) => false,
                (_, _, Some(shown), Some(now)) => {
                    now.add <= shown.add && now.change <= shown.change && now.remove <= shown.remove
                }
            },
        };
        if is_within {
            return Ok(());
        }
        Err(UnshownChanges::counted(now))
    }
}

/// Returns whether all values that were known are unchanged; a deleted resource has none.
fn values_agree(shown: &ResourceChange, now: &ResourceChange) -> bool {
    if now.values.is_empty() {
        return true;
    }
    let mut known = shown.values.iter();
    known.all(|(name, value)| value.is_none() || now.values.get(name) == Some(value))
}

#[cfg(test)]
mod tests;
