//! Checks, with its JSON, whether the plan of a tool covers the whole stack. It shows options that `orch` did not
//! pass, as from a wrapper script; the exit status doesn't.

use std::collections::HashSet;

use semver::Version;

use super::command::PlanKind;
use super::plan_json::{MANAGED, PlanJson, ResourceJson};
use crate::printable::printable;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IncompletePlan {
    /// The tool says that it leaves something out.
    #[error("its plan is incomplete, as with `-target`")]
    LeavesOut,
    /// It lacks this resource, which exists or is configured.
    #[error("its plan lacks `{}`, as with `-target`, `-destroy` or `-refresh-only`", printable(.0))]
    Misses(String),
    /// It destroys everything that the configuration still has.
    #[error("its plan destroys everything, as with `-destroy`")]
    Destroys,
    /// It should destroy, but does something else with this resource.
    #[error("its plan should destroy everything but keeps `{}`", printable(.0))]
    Keeps(String),
}

impl IncompletePlan {
    /// Returns whether options like `-target` explain it.
    pub fn is_partial(&self) -> bool {
        matches!(self, IncompletePlan::LeavesOut | IncompletePlan::Misses(_))
    }
}

/// Returns how a plan differs from the one that was asked for, if it does.
pub(super) fn incompleteness(plan: &PlanJson, kind: PlanKind) -> Option<IncompletePlan> {
    // Resources that a provider defers are missing from this plan; the next one has them.
    if !plan.deferred_changes.is_empty() {
        return None;
    }
    if plan.complete == Some(false) {
        return Some(IncompletePlan::LeavesOut);
    }
    // Such a plan has no resource changes.
    if kind == PlanKind::RefreshOnly {
        return None;
    }
    if let Some(missed) = missed(plan, kind) {
        return Some(IncompletePlan::Misses(missed));
    }
    match kind {
        PlanKind::Destroy => current(plan)
            .find(|it| !it.change.only_removes())
            .map(|it| IncompletePlan::Keeps(it.address.clone())),
        PlanKind::Normal | PlanKind::RefreshOnly => {
            destroys(plan).then_some(IncompletePlan::Destroys)
        }
    }
}

/// Returns a resource that this plan lacks, although the plan of a whole stack has it. Resources
/// without changes count too.
fn missed(plan: &PlanJson, kind: PlanKind) -> Option<String> {
    let planned: HashSet<&str> = plan
        .resource_changes
        .iter()
        .flat_map(|it| [Some(&*it.address), it.previous_address.as_deref()])
        .flatten()
        .collect();
    let mut needed = Vec::new();
    if let Some(state) = plan
        .prior_state
        .as_ref()
        .and_then(|state| state.values.as_ref())
    {
        state.root_module.add_managed(&mut needed);
    }
    let mut configured = Vec::new();
    if let Some(configuration) = &plan.configuration
        && kind == PlanKind::Normal
        && !may_be_switched_off(plan)
    {
        configuration.root_module.add_single("", &mut configured);
    }
    // If `for_each` has no references, as in `toset(["eu"])`, the configuration does not show it.
    // So one planned resource, or an instance of it, proves that the configuration was read.
    let is_planned = |address: &String| {
        let is_of = |it: &&str| {
            it.strip_prefix(&**address)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
        };
        planned.iter().any(is_of)
    };
    if !configured.iter().any(is_planned) {
        needed.extend(configured);
    }
    let mut needed = needed.into_iter();
    needed.find(|address| !planned.contains(&**address))
}

/// Returns whether a plan destroys all or a part of the stack, and whether it covers the whole stack, given its kind,
/// if known.
pub(super) fn effect(plan: &PlanJson, known: Option<PlanKind>) -> (bool, bool) {
    let destroys = match known {
        Some(kind) => kind == PlanKind::Destroy,
        None if current(plan).next().is_some() => current(plan).all(is_deleted),
        None => !plan.output_changes.is_empty() && deletes_outputs(plan),
    };
    let kind = if destroys {
        PlanKind::Destroy
    } else {
        PlanKind::Normal
    };
    let is_whole = !plan.errored
        && plan.deferred_changes.is_empty()
        && known != Some(PlanKind::RefreshOnly)
        && incompleteness(plan, kind).is_none();
    (destroys, is_whole)
}

/// Returns whether resources of the configuration may be disabled, which the plan does not show.
fn may_be_switched_off(plan: &PlanJson) -> bool {
    // OpenTofu has this since 1.11; its plans don't report whether they are complete. Those of Terraform do since
    // 1.8.
    const SINCE: Version = Version::new(1, 11, 0);
    let version = Version::parse(&plan.terraform_version);
    plan.complete.is_none() && !version.is_ok_and(|version| version < SINCE)
}

fn destroys(plan: &PlanJson) -> bool {
    let configured = plan.configuration.as_ref();
    if !configured.is_some_and(|it| it.root_module.has_resources()) {
        return false;
    }
    current(plan).next().is_some() && current(plan).all(is_deleted) && deletes_outputs(plan)
}

/// Returns the managed resources, without deposed objects.
fn current(plan: &PlanJson) -> impl Iterator<Item = &ResourceJson> {
    let resources = plan.resource_changes.iter();
    resources.filter(|it| it.mode == MANAGED && it.deposed.is_none())
}

/// Returns whether a resource is deleted without a reason. A plan that was not made to destroy has one.
fn is_deleted(resource: &ResourceJson) -> bool {
    resource.change.actions == ["delete"] && resource.action_reason.is_none()
}

fn deletes_outputs(plan: &PlanJson) -> bool {
    let mut outputs = plan.output_changes.values();
    outputs.all(|output| output.actions == ["delete"])
}

#[cfg(test)]
mod tests;
