//! Asks whether a plan is to be carried out.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::Context as _;
use orch::plan::DestroyedResources;
use orch::printable::{count, printable};

use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// What has been approved already.
#[derive(Clone, Copy)]
pub(super) struct Approval {
    /// Whether nobody has to be asked about what destroys nothing.
    pub(super) is_given: bool,
    /// How many destroys nobody has to be asked about.
    pub(super) destroys: usize,
}

impl Approval {
    /// Returns whether the approval covers a plan with this many destroys, and these resources in
    /// stacks that are kept.
    pub(super) fn covers(self, n_destroys: usize, resources: &[DestroyedResources<'_>]) -> bool {
        self.is_given && n_destroys <= self.destroys && resources.is_empty()
    }
}

/// What has come of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Approved {
    /// Nobody was asked.
    Unasked,
    /// Somebody was, and approves this many destroys.
    Yes(usize),
    /// Somebody was, and does not.
    No,
}

/// Returns what it means that a plan is not approved.
pub(super) fn rejected() -> ProgramError {
    ProgramError::refused("not approved; nothing was run")
}

/// Asks for approval of a plan with this many destroys, this many stacks that may turn out to be replaced, and these
/// resources in stacks that are kept, unless all but the second are approved.
///
/// # Errors
///
/// If nobody can be asked.
pub(super) fn approve(
    (n_destroys, n_late): (usize, usize),
    resources: &[DestroyedResources<'_>],
    approval: Approval,
) -> Result<Approved> {
    if approval.covers(n_destroys, resources) {
        return Ok(Approved::Unasked);
    }
    // A user who skips the prompt has not seen them.
    if approval.is_given && !resources.is_empty() {
        return Err(unapproved(resources));
    }
    let is_asked_to_destroy = n_destroys > approval.destroys;
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !can_ask {
        return Err(nobody_to_ask(n_destroys, resources, approval));
    }
    if !resources.is_empty() {
        let all = first(resources, usize::MAX);
        let text = format!("These resources will be destroyed in stacks that are kept:{all}\n");
        let mut err = console::stderr();
        err.write_all(text.as_bytes())
            .context("failed to ask for approval")?;
    }
    let (question, expected) = if is_asked_to_destroy {
        let stacks = count(n_destroys, "destroy");
        (
            format!("This plan has {stacks}. To carry it out, type the number of destroys: "),
            n_destroys.to_string(),
        )
    } else {
        (
            "To carry this plan out, type `yes`: ".to_owned(),
            "yes".to_owned(),
        )
    };
    if n_late > 0 {
        let stacks = count(n_late, "stack");
        let text = format!(
            "{stacks} may have to be replaced during the apply. To allow that as well, type {}.\n",
            n_destroys + n_late
        );
        let mut err = console::stderr();
        err.write_all(text.as_bytes())
            .context("failed to ask for approval")?;
    }
    let answer = ask(&question)?;
    Ok(if answer == expected {
        Approved::Yes(n_destroys)
    } else if n_late > 0 && answer == (n_destroys + n_late).to_string() {
        Approved::Yes(n_destroys + n_late)
    } else {
        Approved::No
    })
}

/// Lists resources, a line each, and how many more there are.
pub(super) fn listed(resources: &[DestroyedResources<'_>]) -> String {
    /// How many are named.
    const MOST: usize = 20;
    first(resources, MOST)
}

/// Lists at most this many resources, a line each.
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
fn unapproved(resources: &[DestroyedResources<'_>]) -> ProgramError {
    let n: u64 = resources.iter().map(DestroyedResources::count).sum();
    let what = count(usize::try_from(n).unwrap_or(usize::MAX), "resource");
    ProgramError::refused(format!(
        "the plan would destroy {what} without approval in stacks that are kept:{}",
        listed(resources)
    ))
    .hint("to approve it, add `--auto-approve` and `--allow-resource-destroy`; or write the plan to a file with `orch plan -o FILE`, read it, and run `orch apply FILE`")
}

fn nobody_to_ask(
    n_destroys: usize,
    resources: &[DestroyedResources<'_>],
    approval: Approval,
) -> ProgramError {
    if n_destroys > approval.destroys {
        let what = match approval.destroys {
            0 => format!(
                "this plan has {}, and there is no terminal to approve it",
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
        return ProgramError::refused(what).hint(format!(
            "to approve it, add `--allow-destroy={n_destroys}`{also}"
        ));
    }
    if !resources.is_empty() {
        return unapproved(resources);
    }
    ProgramError::refused("there is no terminal to approve this plan")
        .hint("to approve it, add `--auto-approve`; or write it to a file with `orch plan -o FILE`, read it, and run `orch apply FILE`")
}

/// Asks a question and returns the answer, without what surrounds it.
fn ask(question: &str) -> Result<String> {
    let failed = "failed to ask for approval";
    let mut err = console::stderr();
    err.write_all(question.as_bytes()).context(failed)?;
    err.flush().context(failed)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context(failed)?;
    Ok(answer.trim().to_owned())
}
