//! Asks for approval of a plan.

use super::ApplyTerminal;
use super::verified::VerifiedPlan;
use crate::context::used_outputs::UsedOutputs;
use crate::error::{Error, Result};
use crate::plan::DestroyedResources;
use crate::plan::verify::{RecordedOutputs, RemainingWork};
use crate::printable::{count, printable};

/// The approval that the flags or the plan file give.
#[derive(Clone, Copy)]
pub struct Approval {
    /// Whether a plan that destroys nothing is approved.
    pub is_given: bool,
    pub destroys: usize,
    /// Whether it is that of a job, whose plan must have it.
    pub is_of_job: bool,
}

impl Approval {
    /// Returns whether the approval covers a plan with this many destroys, and with these destroyed
    /// resources in stacks that are kept.
    pub(super) fn covers(self, n_destroys: usize, resources: &[DestroyedResources<'_>]) -> bool {
        self.is_given && n_destroys <= self.destroys && resources.is_empty()
    }
}

/// The approved rest of a verified plan. Only this can be applied.
pub(super) struct ApprovedPlan<'s> {
    pub(super) verified: &'s VerifiedPlan,
    pub(super) to_do: RemainingWork<'s>,
    /// The digests of the outputs that stacks are applied with.
    pub(super) outputs: UsedOutputs<'s>,
    /// Those of stacks without a turn that are recorded now.
    pub(super) recorded: RecordedOutputs,
    /// Whether the user rejected it: then only policies are evaluated.
    pub(super) is_rejected: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalAnswer {
    NotAsked,
    /// With this many destroys.
    Given(usize),
    Refused,
}

pub(super) fn rejected() -> Error {
    Error::refused("not approved; nothing was run")
}

/// Asks for approval of a plan with this many destroys, stacks that the apply may have to replace,
/// and destroyed resources in kept stacks. Does not ask if the first and the last are already
/// approved. Fails if there is no one to ask.
pub(super) fn approve(
    (n_destroys, n_late): (usize, usize),
    resources: &[DestroyedResources<'_>],
    approval: Approval,
    terminal: &dyn ApplyTerminal,
) -> Result<ApprovalAnswer> {
    if approval.covers(n_destroys, resources) {
        return Ok(ApprovalAnswer::NotAsked);
    }
    // A user who skips the prompt has not seen them.
    if approval.is_given && !resources.is_empty() {
        return Err(unapproved(resources));
    }
    let is_asked_to_destroy = n_destroys > approval.destroys;
    if !terminal.can_ask() {
        return Err(nobody_to_ask(n_destroys, resources, approval));
    }
    let mut text = String::new();
    if !resources.is_empty() {
        let all = first(resources, usize::MAX);
        text += &format!("These resources will be destroyed in stacks that are kept:{all}\n");
    }
    let (question, expected) = if is_asked_to_destroy {
        let stacks = count(n_destroys, "destroy");
        (
            format!("This plan has {stacks}. To apply it, type the number of destroys: "),
            n_destroys.to_string(),
        )
    } else {
        (
            "To apply this plan, type `yes`: ".to_owned(),
            "yes".to_owned(),
        )
    };
    if n_late > 0 {
        let stacks = count(n_late, "stack");
        text += &format!(
            "{stacks} may have to be replaced during the apply. To allow that as well, type {}.\n",
            n_destroys + n_late
        );
    }
    let answer = terminal.ask(&(text + &question))?;
    Ok(if answer == expected {
        ApprovalAnswer::Given(n_destroys)
    } else if n_late > 0 && answer == (n_destroys + n_late).to_string() {
        ApprovalAnswer::Given(n_destroys + n_late)
    } else {
        ApprovalAnswer::Refused
    })
}

/// Lists resources, one per line, and counts the rest.
pub(super) fn listed(resources: &[DestroyedResources<'_>]) -> String {
    const MOST: usize = 20;
    first(resources, MOST)
}

/// Lists at most this many resources, one per line.
fn first(resources: &[DestroyedResources<'_>], most: usize) -> String {
    let mut lines = resources.iter().flat_map(|of_stack| {
        let stack = printable(of_stack.stack.as_str());
        let named = of_stack.addresses.iter().map({
            let stack = stack.clone();
            move |address| format!("\n  {stack}: {}", printable(address))
        });
        let unnamed = (of_stack.unnamed > 0).then(|| {
            let resources = count(
                usize::try_from(of_stack.unnamed).unwrap_or(usize::MAX),
                "resource",
            );
            format!("\n  {stack}: {resources}, not named by the driver")
        });
        named.chain(unnamed)
    });
    let mut text: String = lines.by_ref().take(most).collect();
    let more = lines.count();
    if more > 0 {
        text += &format!("\n  and {more} more");
    }
    text
}

/// Returns the error about resources that would be destroyed without approval.
fn unapproved(resources: &[DestroyedResources<'_>]) -> Error {
    let n: u64 = resources.iter().map(DestroyedResources::count).sum();
    let what = count(usize::try_from(n).unwrap_or(usize::MAX), "resource");
    Error::refused(format!(
        "the plan would destroy {what} without approval in stacks that are kept:{}",
        listed(resources)
    ))
    .hint("to approve it, add `--auto-approve` and `--allow-resource-destroy`; or write the plan to a file with `orch plan -o FILE`, read it, and run `orch apply FILE`")
}

fn nobody_to_ask(
    n_destroys: usize,
    resources: &[DestroyedResources<'_>],
    approval: Approval,
) -> Error {
    if n_destroys > approval.destroys {
        let what = match approval.destroys {
            0 => format!(
                "this plan has {}, and there is no terminal to ask for approval",
                count(n_destroys, "destroy")
            ),
            allowed => format!(
                "this plan has {}, and `--allow-destroy` allows {allowed}",
                count(n_destroys, "destroy")
            ),
        };
        let also = if approval.is_given {
            ""
        } else {
            " and `--auto-approve`"
        };
        if approval.is_of_job {
            return Error::refused(what).hint(format!(
                "make a new plan with `--allow-destroy={n_destroys}`, and run `orch export` again"
            ));
        }
        return Error::refused(what).hint(format!(
            "to approve it, add `--allow-destroy={n_destroys}`{also}"
        ));
    }
    if !resources.is_empty() {
        return unapproved(resources);
    }
    Error::refused("the plan needs approval, and there is no terminal to ask")
        .hint("to approve it, add `--auto-approve`; or write it to a file with `orch plan -o FILE`, read it, and run `orch apply FILE`")
}
