//! A plan as JSON, without values.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use super::is_shown;
use crate::change::AppliedBase;
use crate::driver::ChangeCounts;
use crate::path::{Generation, StackPath};
use crate::plan::checks::FailedCondition;
use crate::plan::entry::{PlanEntry, PlanMode, PlanReason, PlannedAction, Removed};
use crate::plan::{
    Plan, PlannedFollowUps, RelaxedConstraint, RequestedOptions, Totals, UnplannedRemovals,
};
use crate::project::{Problems, Project};
use crate::report::document::{PathJson, write_with_problems};
use crate::run::evaluated::PolicyProblem;

#[derive(Serialize)]
struct PlanJson<'a> {
    id: &'a str,
    mode: PlanMode,
    options: &'a RequestedOptions,
    commit: Option<&'a str>,
    state: Option<&'a AppliedBase>,
    applyable: bool,
    /// Whether nothing failed, is blocked or was left out.
    complete: bool,
    /// Whether a stack failed to plan.
    errored: bool,
    stacks: Vec<EntryJson<'a>>,
    /// In serial order: along the constraints of this commit and against the recorded ones.
    operations: Vec<OperationJson<'a>>,
    /// The recorded constraints that the operations violate, with the effects.
    relaxed: &'a [RelaxedConstraint],
    failed: Vec<FailedJson<'a>>,
    without_driver: usize,
    totals: Totals,
    /// Counts of stacks in the state that are neither in this commit nor in the plan.
    removals: UnplannedRemovals,
    /// The number of stacks that are not selected and run after stacks with work.
    dependents_out_of_scope: usize,
    /// Left out if policies are off.
    #[serde(skip_serializing_if = "Option::is_none")]
    followups: Option<FollowUpsJson<'a>>,
}

/// The follow-ups if the apply succeeds.
#[derive(Serialize)]
struct FollowUpsJson<'a> {
    /// In serial order.
    turns: Vec<FollowUpJson<'a>>,
    problems: &'a [PolicyProblem],
    /// The stacks whose follow-ups may differ, since their changes are known only during the apply.
    uncertain: &'a [StackPath],
}

#[derive(Serialize)]
struct FollowUpJson<'a> {
    #[serde(flatten)]
    path: PathJson<'a>,
    policies: &'a [String],
    /// The stack whose turn it follows.
    after: &'a StackPath,
    autodeploy: bool,
    /// Why it will fail, if that is known.
    problem: Option<&'a str>,
}

#[derive(Serialize)]
struct OperationJson<'a> {
    #[serde(flatten)]
    path: PathJson<'a>,
    operation: &'static str,
}

#[derive(Serialize)]
struct EntryJson<'a> {
    #[serde(flatten)]
    path: PathJson<'a>,
    previous_path: Option<&'a str>,
    /// As in Terraform: a replace is two. `None` if the tool failed.
    actions: Vec<&'static str>,
    /// Whether the tool could plan; otherwise it plans again once the stacks before it are applied.
    planned: bool,
    reason: &'a PlanReason,
    /// The stacks with work after which the apply decides it; `null` if it is decided.
    conditional: Option<&'a [StackPath]>,
    /// Whether there are more of these stacks, which are the first by path.
    conditional_on_more: bool,
    blocked: Option<&'a str>,
    /// The stacks and outputs that replace it if they change during the apply.
    replaced_if: &'a [String],
    mocked_inputs: &'a [String],
    changes: Option<ChangeCounts>,
    resources: Vec<ResourceJson<'a>>,
    /// By name, as far as the tool reports them.
    changed_outputs: &'a [String],
    source_commit: Option<&'a str>,
    /// The generation that a replace creates before the old one is destroyed.
    new_generation: Option<Generation>,
    /// The proof that the stack was removed; `null` for a stack of this commit.
    removed: Option<&'a Removed>,
    drifted: bool,
}

#[derive(Serialize)]
struct ResourceJson<'a> {
    address: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_address: Option<&'a str>,
    actions: &'a [String],
    /// The actions as one word.
    action: Cow<'a, str>,
    imported: bool,
}

#[derive(Serialize)]
struct FailedJson<'a> {
    #[serde(flatten)]
    path: PathJson<'a>,
    why: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    conditions: &'a [FailedCondition],
}

/// Writes a plan as JSON: all of its entries, including those without work.
pub fn write_plan_json(
    out: &mut impl Write,
    plan: &Plan,
    project: &Project,
    problems: &Problems,
) -> io::Result<()> {
    let totals = plan.totals();
    let document = PlanJson {
        id: &plan.id,
        mode: plan.mode,
        options: &plan.options,
        commit: plan.commit.as_deref(),
        state: plan.state.as_ref(),
        applyable: plan.is_applyable(),
        complete: plan.is_complete(),
        errored: !plan.failed.is_empty(),
        stacks: plan.entries.iter().map(entry_json).collect(),
        operations: plan
            .operations
            .iter()
            .map(|it| OperationJson {
                path: PathJson::new(&it.stack),
                operation: if it.destroys { "destroy" } else { "apply" },
            })
            .collect(),
        relaxed: &plan.relaxed,
        failed: plan
            .failed
            .iter()
            .map(|failed| FailedJson {
                path: PathJson::new(&failed.stack),
                why: &failed.why,
                conditions: &failed.conditions,
            })
            .collect(),
        without_driver: plan.without_driver,
        totals,
        removals: plan.removals,
        dependents_out_of_scope: plan.dependents_out_of_scope,
        followups: plan.followups.as_ref().map(followups_json),
    };
    write_with_problems(out, &document, project, problems)
}

fn followups_json(followups: &PlannedFollowUps) -> FollowUpsJson<'_> {
    let turns = followups.turns.iter().map(|followup| FollowUpJson {
        path: PathJson::new(&followup.stack),
        policies: &followup.policies,
        after: &followup.after,
        autodeploy: followup.autodeploy,
        problem: followup.problem.as_deref(),
    });
    FollowUpsJson {
        turns: turns.collect(),
        problems: &followups.problems,
        uncertain: &followups.uncertain,
    }
}

fn entry_json(entry: &PlanEntry) -> EntryJson<'_> {
    let conditional = entry.is_undecided() || entry.action.is_work() && !entry.after.is_empty();
    EntryJson {
        path: PathJson::new(&entry.stack),
        previous_path: entry.previous_path.as_deref(),
        planned: entry.is_planned,
        actions: match entry.action {
            _ if !entry.is_planned => Vec::new(),
            PlannedAction::Replace if entry.generation.is_some() => vec!["create", "delete"],
            PlannedAction::Replace => vec!["delete", "create"],
            action => vec![action.word()],
        },
        reason: &entry.reason,
        conditional: (conditional && is_shown(entry)).then_some(&entry.after.stacks),
        conditional_on_more: conditional && entry.after.has_more,
        blocked: entry.blocked.as_deref(),
        replaced_if: &entry.replaced_if,
        mocked_inputs: &entry.mocked,
        changes: entry.counts,
        resources: entry
            .resources
            .iter()
            .map(|resource| ResourceJson {
                address: &resource.address,
                previous_address: resource.previous_address.as_deref(),
                actions: &resource.actions,
                action: resource.action(),
                imported: resource.is_imported,
            })
            .collect(),
        changed_outputs: &entry.changed_outputs,
        source_commit: entry.source_commit.as_deref(),
        new_generation: entry.generation,
        removed: entry.removed.as_ref(),
        drifted: entry.has_drifted,
    }
}
