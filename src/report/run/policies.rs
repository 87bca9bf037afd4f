//! Describes the effects of policies in a run.

use super::text::{BAD, PALE, RunText};
use crate::printable::printable;
use crate::record::journal::PolicyAnswer;
use crate::report::alike::{alike, names};
use crate::run::evaluated::{
    DroppedFollowUp, PolicyProblem, ProblemSeverity, TurnEvaluation, WhyDropped,
};
use crate::run::event::RunEvent;

impl RunText<'_> {
    /// Returns the follow-ups of a turn's end; `None` if there are none.
    pub fn follows(self, event: &RunEvent) -> Option<String> {
        let RunEvent::Evaluated(evaluated) = event else {
            return None;
        };
        let mut lines = String::new();
        let after = self.ended_turn(evaluated);
        for follow in &evaluated.queued {
            let (path, by) = (self.path(follow.turn), by(&follow.policies));
            lines += &format!("orch: {path}: follows {after} ({by})\n");
        }
        (!lines.is_empty()).then_some(lines)
    }

    fn ended_turn(self, evaluated: &TurnEvaluation) -> String {
        match evaluated.turn {
            Some(turn) => self.path(turn),
            None => printable(evaluated.stack.as_str()).into_owned(),
        }
    }

    /// Returns the problems of the policies that were evaluated when a turn ended, and the missing
    /// follow-ups; `None` if there are none.
    pub fn policy_problems(self, evaluated: &TurnEvaluation) -> Option<String> {
        let problems = policy_problems(evaluated, &self.ended_turn(evaluated));
        let lines: String = problems
            .into_iter()
            .map(|problem| {
                let text = problem.text;
                match problem.severity {
                    ProblemSeverity::Error => format!("{BAD}error{BAD:#}: {text}\n"),
                    ProblemSeverity::Warning => format!("{PALE}warning{PALE:#}: {text}\n"),
                    ProblemSeverity::Note => format!("orch: {text}\n"),
                }
            })
            .collect();
        (!lines.is_empty()).then_some(lines)
    }
}

/// Returns the problems of the policies that were evaluated when a turn ended, and the stacks that
/// do not follow. `after` is the name of the turn.
pub fn policy_problems(evaluated: &TurnEvaluation, after: &str) -> Vec<PolicyProblem> {
    let mut problems = Vec::new();
    for PolicyAnswer {
        policy,
        problem,
        is_ignored,
        ..
    } in &evaluated.policies
    {
        let Some(problem) = problem else {
            continue;
        };
        let problem = printable(problem);
        problems.push(PolicyProblem {
            severity: if *is_ignored {
                ProblemSeverity::Warning
            } else {
                ProblemSeverity::Error
            },
            text: format!("policy `{policy}` failed after {after}: {problem}"),
        });
    }
    let key = |dropped: &&DroppedFollowUp| {
        let kind = match dropped.why {
            WhyDropped::Unknown => "unknown",
            WhyDropped::Ambiguous { .. } => "ambiguous",
            WhyDropped::Excluded => "excluded",
            WhyDropped::Limit { setting, .. } => setting,
        };
        // Each ambiguous name has stacks of its own.
        let name = (kind == "ambiguous").then(|| dropped.name.clone());
        (kind, name, dropped.policies.clone())
    };
    for group in alike(&evaluated.dropped, key) {
        problems.push(dropped(&group, after));
    }
    problems
}

/// Reports stacks that do not follow a turn, all for the same reason.
fn dropped(group: &[&DroppedFollowUp], after: &str) -> PolicyProblem {
    let DroppedFollowUp { policies, why, .. } = group[0];
    let is_one = group.len() == 1;
    let asks = if policies.len() == 1 { "asks" } else { "ask" };
    let by = by(policies);
    let plain = |dropped: &&DroppedFollowUp| printable(&dropped.name).into_owned();
    let (severity, text) = match why {
        WhyDropped::Unknown => {
            let unknown = names(group, |dropped| format!("`{}`", plain(dropped)));
            let that = if is_one {
                "that id or path"
            } else {
                "these ids or paths"
            };
            (
                ProblemSeverity::Warning,
                format!("{by} {asks} for {unknown} after {after}, but no stack has {that}"),
            )
        }
        WhyDropped::Ambiguous {
            stacks: [one, other],
        } => (
            ProblemSeverity::Error,
            format!(
                "{by} {asks} for `{}` after {after}, but that is the id of {} and the path of {}",
                plain(&group[0]),
                printable(one.as_str()),
                printable(other.as_str())
            ),
        ),
        WhyDropped::Excluded => {
            let (stacks, it) = (names(group, plain), if is_one { "it" } else { "them" });
            (
                ProblemSeverity::Note,
                format!("{by} {asks} for {stacks} after {after}, but `--exclude` leaves {it} out"),
            )
        }
        WhyDropped::Limit {
            setting,
            allowed,
            chain,
        } => {
            let stacks = names(group, plain);
            let (does, it) = if is_one {
                ("does", "it")
            } else {
                ("do", "they")
            };
            (
                ProblemSeverity::Error,
                format!(
                    "{stacks} {does} not follow {after}: {it} would exceed `{setting} = {allowed}` of `config.policies`: {}",
                    printable(chain)
                ),
            )
        }
    };
    PolicyProblem { severity, text }
}

fn by(policies: &[String]) -> String {
    match policies {
        [policy] => format!("policy `{policy}`"),
        policies => format!("policies `{}`", policies.join("`, `")),
    }
}
