//! Random workflows: policies that are tables, turns that fail, runs that are killed and resumed.
//!
//! Whatever happens, each turn that has ended is evaluated once, answers are those of the table, and what
//! they name follows, or is said not to.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use serde_json::Value;

use crate::support::{Sandbox, journal_of, run_ids};

const STACKS: [&str; 4] = ["/a", "/b", "/c", "/d"];

const STATES: [&str; 3] = ["FINISHED", "FAILED", "CANCELED"];

const MAX_TURNS: usize = 3;

/// Which stacks a policy names after a turn of which stack with which end.
type Table = BTreeMap<(&'static str, &'static str), Vec<&'static str>>;

/// A workflow.
#[derive(Debug, Clone)]
struct Walk {
    /// Pairs of stacks: the second runs after the first.
    after: Vec<(usize, usize)>,
    table: Table,
    /// How often each stack fails.
    fails: Vec<u32>,
    selected: Vec<&'static str>,
    on_error: &'static str,
    jobs: usize,
    /// Behind which line the journal of each run ends, if it was killed.
    kills: Vec<Option<Index>>,
}

fn walk() -> impl Strategy<Value = Walk> {
    let pairs: Vec<(usize, usize)> = vec![(0, 1), (0, 2), (1, 3), (2, 3), (3, 1)];
    let named = || prop::option::weighted(0.35, subsequence(STACKS.to_vec(), 1..3));
    let table = prop::collection::vec(named(), STACKS.len() * STATES.len());
    let table = table.prop_map(|named| {
        let places = STACKS
            .iter()
            .flat_map(|stack| STATES.map(|state| (*stack, state)));
        let rows = places.zip(named);
        rows.filter_map(|(place, named)| Some((place, named?)))
            .collect()
    });
    (
        subsequence(pairs, 0..3),
        table,
        prop::collection::vec(0..3_u32, STACKS.len()),
        subsequence(STACKS.to_vec(), 1..4),
        select(vec!["stop", "skip-dependents", "continue"]),
        1..3_usize,
        prop::collection::vec(prop::option::weighted(0.5, any::<Index>()), 3),
    )
        .prop_map(
            |(after, table, fails, selected, on_error, jobs, kills)| Walk {
                // Both of them would be a cycle.
                after: after.into_iter().filter(|pair| *pair != (3, 1)).collect(),
                table,
                fails,
                selected,
                on_error,
                jobs,
                kills,
            },
        )
}

impl Walk {
    fn sandbox(&self) -> Sandbox {
        let sandbox = Sandbox::new("");
        for (number, stack) in STACKS.iter().enumerate() {
            let before = self.after.iter().filter(|(_, after)| *after == number);
            let before: Vec<String> = before
                .map(|(it, _)| format!("\"{}\"", STACKS[*it]))
                .collect();
            let text = format!("stack {{\n  after = [{}]\n}}\n", before.join(", "));
            sandbox.write(&format!("{stack}/stack.tm"), text);
            sandbox.write(&format!("{stack}/fails"), self.fails[number].to_string());
        }
        let mut rego = "package p\nimport rego.v1\nrun := input.run.state\n".to_owned();
        for ((stack, state), named) in &self.table {
            for name in named {
                rego += &format!(
                    "trigger contains \"{name}\" if {{ input.stack.id == \"{stack}\"; run == \"{state}\" }}\n"
                );
            }
        }
        sandbox.write("/p.rego", rego);
        sandbox.write(
            "/p.orch.hcl",
            format!("policy \"trigger\" \"p\" {{ file = \"p.rego\" }}\norch {{\n  config {{\n    policies {{\n      max_turns = {MAX_TURNS}\n    }}\n  }}\n}}\n"),
        );
        sandbox.write_program(
            "/do",
            "#!/bin/sh\nn=$(cat fails)\n[ \"$n\" -gt 0 ] || exit 0\necho $((n - 1)) > fails\nexit 1\n",
        );
        sandbox
    }

    /// Runs and resumes, and checks what is recorded in the end.
    fn check(&self) -> Result<(), TestCaseError> {
        let sandbox = self.sandbox();
        let selected: Vec<String> = self
            .selected
            .iter()
            .map(|it| format!("--match {it}"))
            .collect();
        let (on_error, jobs) = (self.on_error, self.jobs);
        let arguments = format!(
            "run --policies --on-error {on_error} -j {jobs} {} -- ../do",
            selected.join(" ")
        );
        let mut said = sandbox.orch(&arguments).to_string();
        for kill in &self.kills {
            if let Some(line) = *kill {
                kill_behind(&sandbox, line);
            }
            said += &sandbox.orch("run --resume last").to_string();
        }
        let runs = run_ids(&sandbox);
        let journals: Vec<(String, Vec<Value>)> = runs
            .into_iter()
            .map(|run| {
                let text = sandbox.read(&journal_of(&run));
                let lines = text.lines().skip(1);
                (
                    run,
                    lines
                        .map(|line| serde_json::from_str(line).unwrap())
                        .collect(),
                )
            })
            .collect();
        let checked = self.check_journals(&journals);
        checked.map_err(|problem| TestCaseError::fail(format!("{problem}\n{said}\n{journals:#?}")))
    }

    fn check_journals(&self, journals: &[(String, Vec<Value>)]) -> Result<(), String> {
        let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let turn = |line: &Value| line["turn"].as_u64().unwrap_or(1);
        let mut ended = BTreeSet::new();
        let mut evaluated = BTreeSet::new();
        let mut has_turn: BTreeSet<(usize, String, u64)> = BTreeSet::new();
        for (position, (run, lines)) in journals.iter().enumerate() {
            let mut begun: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
            for line in lines {
                let (stack, number) = (text(line, "stack"), turn(line));
                match &*text(line, "event") {
                    "started" => _ = begun.entry(stack).or_default().insert(number),
                    "ended" => {
                        has_turn.insert((position, stack.clone(), number));
                        let is_by_failure = line["cause"]["kind"] == "failed";
                        let is_asked = match &*text(line, "outcome") {
                            "succeeded" | "failed" => true,
                            "cancelled" => is_by_failure,
                            _ => false,
                        };
                        if is_asked {
                            ended.insert((run.clone(), stack, number));
                        }
                    }
                    "evaluated" => {
                        let of = match &*text(line, "run") {
                            "" => run.clone(),
                            earlier => earlier.to_owned(),
                        };
                        self.check_answer(line)?;
                        if !evaluated.insert((of, stack, number)) {
                            return Err(format!("evaluated twice: {line}"));
                        }
                    }
                    _ => {}
                }
            }
            if let Some((stack, _)) = begun.iter().find(|(_, turns)| turns.len() > MAX_TURNS) {
                return Err(format!("{stack} had too many turns"));
            }
        }
        if ended != evaluated {
            return Err(format!("ended {ended:?}\nevaluated {evaluated:?}"));
        }
        for (position, (_, lines)) in journals.iter().enumerate() {
            let said = lines.iter().filter(|line| line["event"] == "evaluated");
            let queued =
                said.flat_map(|line| line["queued"].as_array().cloned().unwrap_or_default());
            for follow in queued {
                let (stack, number) = (text(&follow, "stack"), turn(&follow));
                let here = has_turn.contains(&(position, stack.clone(), number));
                let later = has_turn
                    .iter()
                    .any(|(it, of, _)| *it > position && *of == stack);
                if !here && !later {
                    return Err(format!("{stack} never followed"));
                }
            }
        }
        Ok(())
    }

    /// Checks that an answer is that of the table, and that something became of each name.
    fn check_answer(&self, line: &Value) -> Result<(), String> {
        let row = self
            .table
            .iter()
            .find(|((stack, state), _)| line["stack"] == *stack && line["state"] == *state);
        let expected: BTreeSet<&str> = row
            .into_iter()
            .flat_map(|(_, named)| named.iter().copied())
            .collect();
        let names = |key: &str, of: &str| -> BTreeSet<String> {
            let list = line[key].as_array().cloned().unwrap_or_default();
            list.iter()
                .filter_map(|it| Some(it[of].as_str()?.to_owned()))
                .collect()
        };
        let answered = line["policies"][0]["trigger"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let answered: BTreeSet<String> = answered
            .iter()
            .filter_map(|it| Some(it.as_str()?.to_owned()))
            .collect();
        let mut became = names("queued", "stack");
        became.extend(names("joined", "stack"));
        became.extend(names("dropped", "name"));
        let is_expected = |found: &BTreeSet<String>| {
            found
                .iter()
                .map(String::as_str)
                .eq(expected.iter().copied())
        };
        if is_expected(&answered) && is_expected(&became) {
            Ok(())
        } else {
            Err(format!("expected {expected:?}: {line}"))
        }
    }
}

/// Cuts the journal of the newest run behind one of its lines, as if `orch` had been killed then.
fn kill_behind(sandbox: &Sandbox, line: Index) {
    let run = run_ids(sandbox).pop().unwrap();
    let text = sandbox.read(&journal_of(&run));
    let lines: Vec<&str> = text.lines().collect();
    let kept = 1 + line.index(lines.len());
    sandbox.write(&journal_of(&run), lines[..kept].join("\n") + "\n");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 10,
        failure_persistence: None,
        max_shrink_iters: 100,
        ..ProptestConfig::default()
    })]

    #[test]
    fn policy_evaluates_each_turn_once_and_starts_its_follow_ups(walk in walk()) {
        walk.check()?;
    }
}
