//! The plan of a tool, from the output of `show -json`.

use std::collections::BTreeSet;
use std::io::Read;

use super::answer::{ChangeCounts, DEPOSED, DriverAnswer, ResourceChange};
use super::command::PlanKind;
use super::completeness::{IncompletePlan, incompleteness};
use super::outputs::Outputs;
use super::plan_json::{PlanJson, ResourceJson, ResourceObject, StateJson};
use super::value::digest;
use crate::printable::printable;

/// The first number of the formats that can be read.
const FORMAT: &str = "1.";

/// Why a resource whose creation did not finish is recreated.
const TAINTED: &str = "replace_because_tainted";

#[derive(Debug, thiserror::Error)]
pub enum BadPlan {
    /// The text is not the JSON of a plan.
    ///
    /// Its text is not quoted: it may be a secret.
    #[error("the output of `show -json` is not a plan: line {line}, column {column}")]
    Malformed { line: usize, column: usize },
    #[error("the output of `show -json` is not a state: line {line}, column {column}")]
    NoState { line: usize, column: usize },
    #[error(
        "the plan has {0}, but orch reads only 1.x: use a version of the tool that writes 1.x, or upgrade orch"
    )]
    Format(String),
    #[error("`show -json` printed a state, not a plan")]
    State,
    #[error("the plan changes resources, but should only refresh")]
    NotRefreshOnly,
    #[error("the plan is not finished: the tool reported an error")]
    Errored,
    #[error(
        "the plan has an action for `{}` that orch does not know: upgrade orch", printable(.0)
    )]
    Action(String),
    #[error("`plan` reported changes, but `show -json` printed none")]
    LacksChanges,
    #[error("{0}, which `orch` did not ask for: check wrapper scripts and `terragrunt.hcl`")]
    NotWhole(IncompletePlan),
}

/// Names a format. If it is no version, it is not quoted.
fn named_format(version: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-');
    if version.is_empty() || version.len() > 20 || !version.chars().all(is_plain) {
        return "an unknown format".to_owned();
    }
    format!("the format {version}")
}

pub(super) fn check_format(version: &str) -> Result<(), BadPlan> {
    if version.starts_with(FORMAT) {
        return Ok(());
    }
    Err(BadPlan::Format(named_format(version)))
}

pub(super) fn parse(text: impl Read) -> Result<PlanJson, BadPlan> {
    let plan: PlanJson = serde_json::from_reader(text).map_err(|error| BadPlan::Malformed {
        line: error.line(),
        column: error.column(),
    })?;
    check_format(&plan.format_version)?;
    if plan.values.is_some() {
        return Err(BadPlan::State);
    }
    Ok(plan)
}

/// Reads a plan of a kind from the output of `show -json`.
///
/// The stack exists if the state has a resource, or an output that the plan does not create: constant outputs are
/// part of the state before the first apply. `has_changes` is the result of the exit status of `plan`.
pub fn read_plan(
    text: impl Read,
    kind: PlanKind,
    has_changes: bool,
) -> Result<DriverAnswer, BadPlan> {
    let plan = parse(text)?;
    check(&plan, kind)?;
    let changed = match kind {
        PlanKind::Normal | PlanKind::Destroy => &plan.resource_changes,
        PlanKind::RefreshOnly => &plan.resource_drift,
    };
    let mut counts = ChangeCounts::default();
    let mut resources = Vec::new();
    let mut lines = Vec::new();
    for resource in changed {
        let actions = resource.effects();
        if actions.is_empty() {
            continue;
        }
        for action in &actions {
            match action.as_str() {
                "create" => counts.add += 1,
                "update" => counts.change += 1,
                "delete" => counts.remove += 1,
                _ => {}
            }
        }
        let address = match &resource.deposed {
            Some(key) => format!("{}{DEPOSED}{key})", resource.address),
            None => resource.address.clone(),
        };
        let change = &resource.change;
        lines.push(format!(
            "{address} {} {}",
            actions.join(","),
            change.digest()
        ));
        resources.push(ResourceChange {
            previous_address: resource.previous_address.clone(),
            address,
            actions,
            values: change.values(),
            is_tainted: resource.action_reason.as_deref() == Some(TAINTED),
            is_imported: change.importing.is_some(),
        });
    }
    let mut outputs = plan.output_changes.iter();
    let of_outputs = outputs.clone().filter(|(_, change)| change.changes());
    let changed_outputs = of_outputs.clone().map(|(name, _)| name.clone());
    let changed_outputs = changed_outputs.collect();
    lines.extend(of_outputs.map(|(name, change)| {
        let actions = change.actions.join(",");
        format!("output.{name} {actions} {}", change.digest())
    }));
    if has_changes && lines.is_empty() && kind == PlanKind::Normal && !is_quiet(&plan) {
        return Err(BadPlan::LacksChanges);
    }
    let had_outputs = outputs.any(|(_, change)| change.actions != ["create"]);
    let owns = |state: &StateJson| {
        let values = state.values.as_ref();
        values.is_some_and(|values| values.root_module.owns())
    };
    // Those of `prior_state` don't help: they are already updated from the configuration.
    let outputs = plan.output_changes.iter();
    let before: Outputs = outputs
        .clone()
        .filter_map(|(name, it)| it.output_before(name))
        .collect();
    let after: Outputs = outputs
        .filter_map(|(name, it)| it.output_after(name))
        .collect();
    let answer = DriverAnswer {
        exists: Some(plan.prior_state.as_ref().is_some_and(owns) || had_outputs),
        action: None,
        reason: None,
        has_changes: !lines.is_empty(),
        counts: Some(counts),
        changes: Some(digest(lines.iter().map(String::as_bytes))),
        is_complete: true,
        resources,
        changed_outputs,
        outputs: Some(match kind {
            PlanKind::Normal | PlanKind::Destroy => after,
            // The outputs that others can read. A state that was never written has none, so those
            // of the refresh count.
            PlanKind::RefreshOnly if before.is_empty() => after,
            PlanKind::RefreshOnly => before.clone(),
        }),
        outputs_before: Some(before),
        backend: None,
        tool_version: Some(plan.terraform_version.clone()).filter(|version| !version.is_empty()),
        unasked: incompleteness(&plan, kind),
        leaves_nothing: kind == PlanKind::Normal && leaves_nothing(&plan),
    };
    Ok(match plan.complete {
        Some(false) => answer.left_out(),
        // Older versions don't report it: see `leaves_out`.
        Some(true) | None => answer,
    })
}

/// Checks that it is a plan of a kind, finished, in a known format.
fn check(plan: &PlanJson, kind: PlanKind) -> Result<(), BadPlan> {
    if plan.errored {
        return Err(BadPlan::Errored);
    }
    if let Some(unknown) = plan
        .resource_changes
        .iter()
        .find(|it| !it.change.is_known())
    {
        return Err(BadPlan::Action(unknown.address.clone()));
    }
    let changes_something = |it: &ResourceJson| it.mode != "data" && it.change.changes();
    if kind == PlanKind::RefreshOnly && plan.resource_changes.iter().any(changes_something) {
        return Err(BadPlan::NotRefreshOnly);
    }
    Ok(())
}

/// Returns whether a plan has work that changes neither resources nor outputs: data sources that are read during the
/// apply, and deferred actions.
fn is_quiet(plan: &PlanJson) -> bool {
    let mut changes = plan.resource_changes.iter();
    !plan.deferred_changes.is_empty() || changes.any(|it| it.change.reads())
}

/// Returns whether a plan destroys resources and none is left once it is applied. Forgotten
/// resources count as removed.
fn leaves_nothing(plan: &PlanJson) -> bool {
    let managed = plan.resource_changes.iter().filter(|it| it.mode != "data");
    let is_gone = |it: &&ResourceJson| matches!(&*it.change.actions, [it] if it == "delete" || it == "forget");
    let (gone, others): (Vec<&ResourceJson>, Vec<&ResourceJson>) = managed.partition(is_gone);
    let destroys = |it: &&ResourceJson| it.change.actions == ["delete"];
    let objects: BTreeSet<ResourceObject<'_>> = gone
        .iter()
        .flat_map(|it| {
            let addresses = [Some(&*it.address), it.previous_address.as_deref()]
                .into_iter()
                .flatten();
            addresses.map(|address| (address, it.deposed.as_deref()))
        })
        .collect();
    let values = plan.prior_state.as_ref().and_then(|it| it.values.as_ref());
    others.is_empty()
        && gone.iter().any(destroys)
        && values.is_none_or(|it| it.root_module.owns_only(&objects))
}

#[cfg(test)]
mod tests;
