//! The causes of follow-ups, back to the first turn, and the problems of policies.
//!
//! This module names turns as the journals do. It knows neither stacks of the project nor the
//! content of policies.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::ShownRun;
use crate::printable::printable;
use crate::record::journal::{EvaluatedRecord, EvaluatedTurn, PolicyAnswer, RunRecord};
use crate::report::alike::{alike, names};

const NAMED: usize = 20;

pub(in crate::report) struct Causes<'a> {
    /// The causes known to each run of the workflow: this one, then earlier ones, the latest first.
    runs: Vec<RunCauses<'a>>,
}

struct RunCauses<'a> {
    id: &'a str,
    /// The request for each turn that followed another one, by stack and number of the turn.
    asked: HashMap<&'a str, BTreeMap<u32, Asked<'a>>>,
    /// The stacks whose first turn here replaces one of an earlier run that policies may have
    /// requested.
    resumed: BTreeSet<&'a str>,
    /// The number of the last turn of each stack.
    last: HashMap<&'a str, u32>,
}

struct Asked<'a> {
    evaluated: &'a EvaluatedTurn,
    policies: &'a [String],
    /// The run of these policies, by position.
    run: usize,
}

#[derive(Debug, Serialize)]
pub(in crate::report) struct Followed<'a> {
    /// Which turn of its stack it is, from 1.
    turn: u32,
    /// The turns that led to it, the latest one first.
    causes: Vec<Cause<'a>>,
    /// Whether further turns led to these.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

/// A turn after which policies requested another one.
#[derive(Debug, Serialize)]
struct Cause<'a> {
    stack: &'a str,
    /// Which turn of its stack it is, from 1.
    turn: u32,
    /// The run that it belongs to, if that is an earlier one.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a str>,
    /// How it ended, in the words of policies.
    state: &'a str,
    /// The policies that requested the next turn.
    policies: &'a [String],
    #[serde(skip)]
    evaluated: &'a EvaluatedRecord,
}

/// A turn that followed another one, with the answers of the policies that requested it.
#[derive(Serialize)]
pub(super) struct AnsweredJson<'a> {
    turn: u32,
    causes: Vec<AnswersJson<'a>>,
    more: bool,
}

#[derive(Serialize)]
struct AnswersJson<'a> {
    #[serde(flatten)]
    cause: &'a Cause<'a>,
    answers: Vec<&'a PolicyAnswer>,
}

impl<'a> From<&'a Followed<'a>> for AnsweredJson<'a> {
    fn from(followed: &'a Followed<'a>) -> Self {
        let causes = followed.causes.iter().map(|cause| {
            let answers = cause
                .evaluated
                .policies
                .iter()
                .filter(|answer| cause.policies.contains(&answer.policy));
            AnswersJson {
                cause,
                answers: answers.collect(),
            }
        });
        AnsweredJson {
            turn: followed.turn,
            causes: causes.collect(),
            more: followed.more,
        }
    }
}

impl<'a> RunCauses<'a> {
    fn new(position: usize, record: &'a RunRecord) -> Self {
        let mut by_stack: HashMap<&str, BTreeMap<u32, Asked<'_>>> = HashMap::new();
        for evaluated in &record.evaluated {
            let follows = &evaluated.evaluated;
            for follow in follows.queued.iter().chain(&follows.joined) {
                let asked = Asked {
                    evaluated,
                    policies: &follow.policies,
                    run: position,
                };
                let turns = by_stack.entry(&follow.stack).or_default();
                turns.insert(follow.turn.unwrap_or(1), asked);
            }
        }
        let kept = record
            .header
            .policies
            .iter()
            .flat_map(|it| &it.asked)
            .filter(|asked| asked.follows || asked.kept);
        let mut last: HashMap<&str, u32> = HashMap::new();
        for turn in &record.turns {
            let number = last.entry(&turn.stack).or_default();
            *number = turn.turn.unwrap_or(1).max(*number);
        }
        RunCauses {
            id: &record.header.run,
            asked: by_stack,
            resumed: kept.map(|asked| asked.stack.as_str()).collect(),
            last,
        }
    }
}

impl<'a> Causes<'a> {
    pub(in crate::report) fn new(run: &'a ShownRun) -> Self {
        let records = std::iter::once(&run.record).chain(&run.earlier);
        let runs = records.enumerate();
        Causes {
            runs: runs
                .map(|(position, record)| RunCauses::new(position, record))
                .collect(),
        }
    }

    pub(in crate::report) fn of(&self, stack: &str) -> Vec<Followed<'a>> {
        let here = &self.runs[0];
        let asked = here.asked.get(stack).into_iter().flat_map(BTreeMap::keys);
        let mut turns: BTreeSet<u32> = asked.copied().collect();
        turns.extend(here.resumed.contains(stack).then_some(1));
        let followed = |turn| Some(self.chain(turn, self.asked(0, stack, turn)?));
        turns.into_iter().filter_map(followed).collect()
    }

    /// Returns the request for a turn of a run, by its own policies, or by those of an earlier run
    /// in which the turn did not succeed.
    fn asked(&self, run: usize, stack: &str, turn: u32) -> Option<&Asked<'a>> {
        let here = &self.runs[run];
        let own = here.asked.get(stack).and_then(|turns| turns.get(&turn));
        if own.is_some() || turn != 1 || !here.resumed.contains(stack) {
            return own;
        }
        let mut earlier = self.runs.iter().enumerate().skip(run + 1);
        let (before, last) =
            earlier.find_map(|(number, run)| Some((number, *run.last.get(stack)?)))?;
        self.asked(before, stack, last)
    }

    fn chain(&self, turn: u32, asked: &Asked<'a>) -> Followed<'a> {
        let mut causes = vec![self.cause(asked)];
        let mut next = self.before(asked);
        while let Some(asked) = next.filter(|_| causes.len() < NAMED) {
            causes.push(self.cause(asked));
            next = self.before(asked);
        }
        Followed {
            turn,
            causes,
            more: next.is_some(),
        }
    }

    /// Returns the request for the turn after which policies requested this one.
    fn before(&self, asked: &Asked<'a>) -> Option<&Asked<'a>> {
        let EvaluatedTurn { evaluated, turn } = asked.evaluated;
        let run = match &evaluated.run {
            None => asked.run,
            Some(id) => self.runs.iter().position(|run| run.id == id)?,
        };
        self.asked(run, &evaluated.stack, turn.unwrap_or(1))
    }

    fn cause(&self, asked: &Asked<'a>) -> Cause<'a> {
        let evaluated = &asked.evaluated.evaluated;
        let of_policies = (asked.run > 0).then_some(self.runs[asked.run].id);
        Cause {
            stack: &evaluated.stack,
            turn: asked.evaluated.turn.unwrap_or(1),
            run: evaluated.run.as_deref().or(of_policies),
            state: &evaluated.state,
            policies: asked.policies,
            evaluated,
        }
    }
}

impl Cause<'_> {
    /// Returns its name, given the run of the cause that is named before it.
    fn name(&self, run: Option<&str>) -> String {
        let run = self.run.filter(|it| Some(*it) != run);
        turn_name(self.stack, self.turn, run)
    }
}

impl Followed<'_> {
    /// Returns its chain of causes: `turn 2 follows /a: FAILED, policy retry`, and so on.
    pub(in crate::report) fn line(&self) -> String {
        let mut line = match self.turn {
            1 => "follows ".to_owned(),
            number => format!("turn {number} follows "),
        };
        let mut run = None;
        for (number, cause) in self.causes.iter().enumerate() {
            if number > 0 {
                line += ", which followed ";
            }
            let (state, policies) = (printable(cause.state), named(cause.policies));
            line += &format!("{}: {state}, {policies}", cause.name(run));
            run = cause.run;
        }
        if self.more {
            line += ", …";
        }
        line
    }

    /// Returns the same in short form: `turn 2 ← retry ← /a`.
    pub(in crate::report) fn arrows(&self) -> String {
        let mut arrows = match self.turn {
            1 => "←".to_owned(),
            number => format!("turn {number} ←"),
        };
        let mut run = None;
        for (number, cause) in self.causes.iter().enumerate() {
            if number > 0 {
                arrows += " ←";
            }
            let policies = cause.policies.join(", ");
            arrows += &format!(" {} ← {}", printable(&policies), cause.name(run));
            run = cause.run;
        }
        if self.more {
            arrows += " ← …";
        }
        arrows
    }
}

/// Returns the stack of a turn, with the turn's number and the run unless they are obvious.
fn turn_name(stack: &str, turn: u32, run: Option<&str>) -> String {
    let mut name = printable(stack).into_owned();
    if turn != 1 {
        name += &format!(" (turn {turn})");
    }
    if let Some(run) = run {
        name += &format!(" in run {}", printable(run));
    }
    name
}

/// Names policies, without control characters.
fn named(policies: &[String]) -> String {
    let word = if policies.len() == 1 {
        "policy"
    } else {
        "policies"
    };
    format!("{word} {}", printable(&policies.join(", ")))
}

/// Returns the problems of policies, and the follow-ups that did not run, each as a sentence
/// without control characters.
pub(in crate::report) fn policy_problems(record: &RunRecord) -> Vec<String> {
    let mut problems = Vec::new();
    for EvaluatedTurn { evaluated, turn } in &record.evaluated {
        let run = evaluated.run.as_deref();
        let after = turn_name(&evaluated.stack, turn.unwrap_or(1), run);
        for policy in &evaluated.policies {
            if let Some(problem) = &policy.problem {
                let (policy, problem) = (printable(&policy.policy), printable(problem));
                problems.push(format!("policy {policy} failed after {after}: {problem}"));
            }
        }
        for group in alike(&evaluated.dropped, |it| (&it.why, &it.policies)) {
            let dropped = group[0];
            let is_one = group.len() == 1;
            let why = match dropped.why.as_str() {
                "unknown" if is_one => "no stack has that id or path".to_owned(),
                "unknown" => "no stack has these ids or paths".to_owned(),
                "ambiguous" => "the id of one stack is the path of another".to_owned(),
                "excluded" if is_one => "`--exclude` leaves it out".to_owned(),
                "excluded" => "`--exclude` leaves them out".to_owned(),
                setting => {
                    let they = if is_one { "it" } else { "they" };
                    format!("{they} would exceed `{}`", printable(setting))
                }
            };
            let mut problem = format!(
                "{} did not follow {after}, {}: {why}",
                names(&group, |it| printable(&it.name).into_owned()),
                named(&dropped.policies)
            );
            if let Some(chain) = &dropped.chain {
                problem += &format!(": {}", printable(chain));
            }
            problems.push(problem);
        }
    }
    problems
}
