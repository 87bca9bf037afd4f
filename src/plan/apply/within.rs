//! Whether what a tool would do now is within what a plan has shown.
//!
//! A provisional entry was planned before a stack that it runs after was applied. It may create and
//! update anything, and so may one that is decided during the apply. The second half of a replace
//! may create anything. The plan must show every other change: its address, its actions, and the
//! known values. Only resources that it shows are destroyed or replaced.

use std::collections::HashMap;
use std::fmt;

use crate::driver::{Answer, AnswerAction, Counts, ResourceChange};
use crate::plan::entry::{Action, PlanEntry};
use crate::printable::printable;

/// What a plan has shown of a stack.
#[derive(Debug, Clone)]
pub struct Shown {
    /// What is done; none if that is decided during the apply.
    pub action: Option<Action>,
    /// How many resources change, if that was known.
    pub counts: Option<Counts>,
    /// What changes, if that was known.
    pub resources: Vec<ResourceChange>,
    /// The digest of the changes, if the driver has answered one.
    pub changes: Option<String>,
    /// Whether it was planned before something that it runs after was applied. What it creates and updates may
    /// then differ from what was shown.
    pub is_provisional: bool,
}

/// Changes that were not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotShown {
    counts: Option<Counts>,
    /// The addresses of the resources that would be destroyed, if they are known.
    destroyed: Vec<String>,
}

/// How many addresses are named.
const MOST: usize = 5;

impl NotShown {
    /// Returns changes of resources that are not named.
    fn counted(counts: Option<Counts>) -> Self {
        NotShown {
            counts,
            destroyed: Vec::new(),
        }
    }
}

impl fmt::Display for NotShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("has changes that the plan does not show")?;
        let named = self.destroyed.iter().take(MOST);
        for (number, address) in named.enumerate() {
            let before = if number == 0 { ": would destroy" } else { "," };
            write!(f, "{before} `{}`", printable(address))?;
        }
        if let Some(more @ 1..) = self.destroyed.len().checked_sub(MOST) {
            write!(f, " and {more} more")?;
        }
        match self.counts {
            None => Ok(()),
            Some(Counts {
                add,
                change,
                remove,
            }) => write!(f, " (+{add} ~{change} -{remove})"),
        }
    }
}

impl Shown {
    /// Returns the shown changes of a stack, with the digest that its driver has answered.
    pub fn of(entry: &PlanEntry, changes: Option<String>) -> Self {
        Shown {
            action: (!entry.is_undecided()).then_some(entry.action),
            counts: entry.counts,
            resources: entry.resources.clone(),
            changes,
            is_provisional: !entry.after.is_empty(),
        }
    }

    /// Checks what a tool would do now. `is_again` says that a part of the plan may have been carried out
    /// already: then the rest of it is within the plan, and so is what replaces a resource whose creation
    /// was not finished.
    ///
    /// # Errors
    ///
    /// If it would do more than was shown.
    pub fn check(&self, answer: &Answer, is_again: bool) -> Result<(), NotShown> {
        if answer.action == Some(AnswerAction::Replace) {
            return Err(NotShown::counted(answer.counts));
        }
        if answer.resources.is_empty() {
            return self.check_counts(answer, is_again);
        }
        let shown: HashMap<&str, &ResourceChange> = self
            .resources
            .iter()
            .map(|resource| (resource.address.as_str(), resource))
            .collect();
        let mut beyond = Counts::default();
        let mut destroyed = Vec::new();
        for resource in &answer.resources {
            let known = shown.get(&*resource.address);
            // The deposed object of a resource that is replaced.
            let known = known
                .or_else(|| shown.get(resource.base_address()))
                .copied();
            if self.may_add(resource, known, is_again)
                || known.is_some_and(|known| self.covers(known, resource, is_again))
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
        if beyond == Counts::default() {
            return Ok(());
        }
        Err(NotShown {
            counts: Some(beyond),
            destroyed,
        })
    }

    /// Checks only that a tool would destroy nothing that the plan does not show.
    ///
    /// # Errors
    ///
    /// If it would.
    pub fn check_destroys(&self, answer: &Answer, is_again: bool) -> Result<(), NotShown> {
        if !answer.destroys_resources() {
            return Ok(());
        }
        let shown = Shown {
            is_provisional: true,
            ..self.clone()
        };
        shown.check(answer, is_again)
    }

    /// Returns whether a change needs not have been shown.
    fn may_add(
        &self,
        resource: &ResourceChange,
        known: Option<&ResourceChange>,
        is_again: bool,
    ) -> bool {
        let is = |actions: &[&str]| resource.actions == actions;
        let is_rest = is_again && resource.is_tainted && (is(&["delete", "create"]));
        match self.action {
            Some(Action::Delete) => is(&["delete"]),
            None | Some(_) if self.is_provisional => is(&["create"]) || is(&["update"]) || is_rest,
            // An earlier attempt has created it.
            Some(Action::Create) => {
                is_again && is(&["update"]) && known.is_some_and(|it| values_agree(it, resource))
            }
            // Its plan shows only what is destroyed first.
            Some(Action::Replace) => is(&["create"]) || is_again && is(&["update"]) || is_rest,
            None | Some(_) => false,
        }
    }

    /// Returns whether a shown change covers the change that would be made now. The values of a
    /// provisional entry do not count: they depend on later applies.
    fn covers(&self, shown: &ResourceChange, now: &ResourceChange, is_again: bool) -> bool {
        let is_same = shown.address == now.address && shown.actions == now.actions;
        let has = |action: &str| shown.actions.iter().any(|it| it == action);
        let is_rest = || {
            let is_part = now.actions.iter().all(|action| has(action));
            is_again && (is_part || now.is_tainted && has("create"))
        };
        (is_same || is_rest()) && (self.is_provisional || values_agree(shown, now))
    }

    /// Checks what a driver says that names no resources.
    fn check_counts(&self, answer: &Answer, is_again: bool) -> Result<(), NotShown> {
        let now = answer.counts;
        let removes = now.is_some_and(|now| now.remove > 0);
        let is_within = match self.action {
            Some(Action::Delete) => true,
            Some(Action::Update | Action::Create) if self.is_provisional => {
                let shown = self.counts.map_or(0, |shown| shown.remove);
                now.is_none_or(|now| now.remove <= shown)
            }
            None | Some(Action::Replace) => !removes,
            Some(_) => match (&self.changes, &answer.changes, &self.counts, now) {
                // Tools have both, and no change of a resource is one of outputs alone.
                (Some(_), Some(_), ..) if now == Some(Counts::default()) => true,
                (Some(shown), Some(now), ..) if shown == now => true,
                // The rest of what was shown has another digest.
                (Some(_), Some(_), counts, _) if !is_again || counts.is_none() => false,
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
        Err(NotShown::counted(now))
    }
}

/// Returns whether all values that were known are the same now; what is deleted has none.
fn values_agree(shown: &ResourceChange, now: &ResourceChange) -> bool {
    if now.values.is_empty() {
        return true;
    }
    let mut known = shown.values.iter();
    known.all(|(name, value)| value.is_none() || now.values.get(name) == Some(value))
}

#[cfg(test)]
mod tests;
