//! The follow-ups that policies add to the apply of a plan.

use std::io::{self, Write};

use crate::path::StackPath;
use crate::plan::{PlannedFollowUp, PlannedFollowUps};
use crate::printable::{listed, printable};
use crate::run::evaluated::ProblemSeverity;

const MAX_NAMED: usize = 3;

pub(super) fn sign(followup: &PlannedFollowUp) -> &'static str {
    match followup.problem {
        Some(_) => "!",
        None => "?",
    }
}

/// Describes when the changes of a follow-up are known, and whether they need approval.
pub(super) fn outlook(followup: &PlannedFollowUp) -> String {
    let after = &followup.after;
    match &followup.problem {
        Some(problem) => format!("will fail after {after}: {problem}"),
        None if followup.autodeploy => format!("known after {after}; applied automatically"),
        None => format!("known after {after}; needs approval"),
    }
}

/// Names policies: `policy promote`.
pub(super) fn by(policies: &[String]) -> String {
    match policies {
        [policy] => format!("policy {policy}"),
        policies => format!("policies {}", policies.join(", ")),
    }
}

/// Names the stacks whose follow-ups may differ, if there are any.
pub(super) fn uncertain(followups: &PlannedFollowUps) -> Option<String> {
    let whose = match &followups.uncertain[..] {
        [] => return None,
        [_] => "its",
        _ => "their",
    };
    let names = listed(followups.uncertain.iter().map(StackPath::as_str), MAX_NAMED);
    Some(format!(
        "Follow-ups of {names} may differ: {whose} changes are known only during the apply."
    ))
}

/// Writes the follow-ups, each in a row below the policies that request it, and the problems with
/// policies.
pub(super) fn write_followups(
    out: &mut impl Write,
    followups: &PlannedFollowUps,
) -> io::Result<()> {
    for group in followups
        .turns
        .chunk_by(|one, next| one.policies == next.policies)
    {
        writeln!(out, "then, by {}:", printable(&by(&group[0].policies)))?;
        let path = |followup: &PlannedFollowUp| printable(followup.stack.as_str()).into_owned();
        let widths = group.iter().map(|it| path(it).chars().count());
        let width = widths.max().unwrap_or_default();
        for followup in group {
            let (sign, path, outlook) = (sign(followup), path(followup), outlook(followup));
            writeln!(out, "  {sign} {path:width$}  {}", printable(&outlook))?;
        }
    }
    for problem in &followups.problems {
        let word = match problem.severity {
            ProblemSeverity::Error => "error: ",
            ProblemSeverity::Warning => "warning: ",
            ProblemSeverity::Note => "",
        };
        writeln!(out, "{word}{}", printable(&problem.text))?;
    }
    let uncertain = uncertain(followups);
    if let Some(text) = &uncertain {
        writeln!(out, "{}", printable(text))?;
    }
    let is_empty = followups.turns.is_empty() && followups.problems.is_empty();
    if !is_empty || uncertain.is_some() {
        writeln!(out)?;
    }
    Ok(())
}
