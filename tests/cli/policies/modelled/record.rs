//! Compares the journal of a run, and what policies were told, with the model.

use std::collections::BTreeSet;

use serde_json::Value;

use super::model::{Answer, Evaluated, Model, Phase, Told};
use super::scenario::{IDS, POLICIES, STACKS};

/// What a run has left.
#[derive(Debug)]
pub(super) struct Record {
    /// The ids of the runs of the workflow; it is that of the last one.
    pub(super) runs: Vec<String>,
    /// Its journal, without the header.
    pub(super) lines: Vec<Value>,
    /// What each policy was told.
    pub(super) samples: Vec<(&'static str, Value)>,
}

impl Record {
    /// Follows the run with the model; the error is where they differ.
    pub(super) fn compare(&self, model: &mut Model<'_>) -> Result<(), String> {
        let (lines, n_early) = self.in_order();
        for line in lines {
            let compared = self.compare_line(line, model);
            compared.map_err(|problem| format!("{model:?}\n{line}\n{problem}"))?;
        }
        model.add_early(n_early);
        Ok(())
    }

    /// Returns the lines, and how many turns were added at the end for a reason that is not there; lines of
    /// turns that were added and skipped at once stand behind what added them.
    fn in_order(&self) -> (Vec<&Value>, usize) {
        let mut lines: Vec<&Value> = Vec::new();
        let mut early = Vec::new();
        let mut n_added = 0;
        for line in &self.lines {
            match line["event"].as_str().unwrap_or_default() {
                "added" => n_added += 1,
                "ended" if n_added > 0 => early.push(line),
                _ => {
                    n_added = 0;
                    lines.push(line);
                    lines.append(&mut early);
                }
            }
        }
        (lines, n_added)
    }

    fn compare_line(&self, line: &Value, model: &mut Model<'_>) -> Result<(), String> {
        match line["event"].as_str().unwrap_or_default() {
            "started" => model.start(self.turn_of(line, model)?),
            "ended" => {
                let phase = match line["outcome"].as_str().unwrap_or_default() {
                    "succeeded" => Phase::Succeeded,
                    "failed" => Phase::Failed,
                    "skipped" => Phase::Skipped,
                    _ => Phase::Cancelled,
                };
                model.end(self.turn_of(line, model)?, phase)
            }
            "evaluated" => self.compare_evaluated(line, model),
            "finished" => {
                let expected = model.finish()?;
                same("the exit status", &line["status"], &Value::from(expected))
            }
            _ => Ok(()),
        }
    }

    fn compare_evaluated(&self, line: &Value, model: &mut Model<'_>) -> Result<(), String> {
        let (turn, told) = model.next_event().ok_or("nothing is left to evaluate")?;
        same("the turn", &self.turn_of(line, model)?, &turn)?;
        same("the state", &line["state"], &Value::from(told.state))?;
        let id = self.id_of(turn, model);
        let expected = model.evaluate().ok_or("nothing is left to evaluate")?;
        same("what follows", &self.evaluated_of(line, model)?, &expected)?;
        for (policy, answer) in &expected.answers {
            let is_it = |(of, it): &&(&str, Value)| of == policy && it["run"]["id"] == *id;
            match self.samples.iter().find(is_it) {
                Some((_, sample)) => same("what policies are told", &told_of(sample), &told)?,
                None if answer.has_failed => {}
                None => return Err(format!("no sample of {id} for {policy}")),
            }
        }
        Ok(())
    }

    fn evaluated_of(&self, line: &Value, model: &Model<'_>) -> Result<Evaluated, String> {
        let mut evaluated = Evaluated::default();
        for policy in list(&line["policies"]) {
            let names: Vec<&'static str> = [&IDS[..], &STACKS[..], &["SEA", "nobody"]].concat();
            let answer = Answer {
                trigger: words(&policy["trigger"], &names),
                flag: words(&policy["flag"], &["x", "y", "z"]),
                reset: words(&policy["reset_flag"], &["x", "y", "z"]),
                has_failed: policy.get("problem").is_some(),
            };
            let name = word(&policy["policy"], &POLICIES);
            evaluated.answers.push((name, answer));
        }
        let follows = |key: &str| -> Result<BTreeSet<(usize, Vec<&'static str>)>, String> {
            list(&line[key])
                .map(|it| Ok((self.turn_of(it, model)?, words(&it["policies"], &POLICIES))))
                .collect()
        };
        evaluated.queued = follows("queued")?;
        evaluated.joined = follows("joined")?;
        for dropped in list(&line["dropped"]) {
            let name = dropped["name"].as_str().unwrap_or_default();
            let named = IDS.iter().position(|it| it.eq_ignore_ascii_case(name));
            let name = named.map_or(name, |stack| STACKS[stack]).to_owned();
            let policies = words(&dropped["policies"], &POLICIES);
            let why = ["unknown", "excluded", "max_turns", "max_followups"];
            let why = word(&dropped["why"], &why);
            evaluated.dropped.insert((name, policies, why));
        }
        Ok(evaluated)
    }

    /// Returns the id that policies know a turn by.
    fn id_of(&self, turn: usize, model: &Model<'_>) -> String {
        let runs = model.firsts.iter().rposition(|first| *first <= turn);
        let run = runs.unwrap_or_default();
        format!("{}.{}", self.runs[run], turn + 1 - model.firsts[run])
    }

    /// Returns the turn that a line, or an entry of one, is about.
    fn turn_of(&self, line: &Value, model: &Model<'_>) -> Result<usize, String> {
        let run = match line["run"].as_str() {
            Some(run) => self.runs.iter().position(|it| it == run),
            None => Some(self.runs.len() - 1),
        };
        let stack = STACKS.iter().position(|it| line["stack"] == *it);
        let nth = line["turn"]
            .as_u64()
            .map_or(1, |nth| usize::try_from(nth).unwrap());
        let turn = run.and_then(|run| model.find(run, stack?, nth));
        turn.ok_or_else(|| format!("there is no such turn: {line}"))
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "{what}: found {found:#?}, the model says {expected:#?}"
    ))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns which of these words a value is.
fn word(value: &Value, words: &[&'static str]) -> &'static str {
    let word = words.iter().find(|it| value == **it);
    word.copied().unwrap_or("something unknown")
}

fn words<B: FromIterator<&'static str>>(value: &Value, of: &[&'static str]) -> B {
    list(value).map(|it| word(it, of)).collect()
}

fn told_of(sample: &Value) -> Told {
    let (run, stack) = (&sample["run"], &sample["stack"]);
    let by = run["triggered_by"].as_str();
    let policies = by.and_then(|it| it.strip_prefix("policy/"));
    Told {
        stack: word(&stack["id"], &IDS),
        state: word(&run["state"], &["FINISHED", "FAILED", "CANCELED"]),
        is_tracked: run["type"] == "TRACKED",
        by: policies.map(|it| word(&Value::from(it), &POLICIES)),
        is_by_user: by.is_some() && policies.is_none(),
        flags: words(&run["flags"], &["x", "y", "z"]),
        workflow: list(&sample["workflow"])
            .map(|turn| {
                let states = [
                    "STOPPED",
                    "QUEUED",
                    "APPLYING",
                    "PERFORMING",
                    "FINISHED",
                    "FAILED",
                    "CANCELED",
                    "SKIPPED",
                ];
                let state = word(&turn["state"], &states);
                (
                    word(&turn["stack_id"], &IDS),
                    state,
                    turn["type"] == "TRACKED",
                )
            })
            .collect(),
    }
}
