//! Random workflows against a naive model of them: turns, causes, states, flags, what follows and what
//! does not, what is cancelled, and the exit status.

mod model;
mod record;
mod scenario;

use std::fs;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{TestError, TestRunner};
use serde_json::Value;

use self::model::Model;
use self::record::Record;
use self::scenario::{POLICIES, Scenario, scenario};
use crate::support::{Output, Sandbox, journal_of, run_ids};

/// Returns what the newest run has left.
fn record(sandbox: &Sandbox) -> Record {
    let runs = run_ids(sandbox);
    let run = runs.last().unwrap();
    let text = sandbox.read(&journal_of(run));
    let lines = text.lines().skip(1);
    let folders = runs
        .iter()
        .filter_map(|run| fs::read_dir(sandbox.path(&format!("/.orch/runs/{run}/samples"))).ok());
    let mut samples = Vec::new();
    for file in folders.flatten() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        let of = |policy: &&&str| name.ends_with(&format!(".{policy}.json"));
        let policy = *POLICIES.iter().find(of).expect("samples name their policy");
        let text = fs::read(file.path()).unwrap();
        samples.push((policy, serde_json::from_slice(&text).unwrap()));
    }
    Record {
        lines: lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
        samples,
        runs,
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

/// Runs and resumes, and lets the model follow.
fn check(scenario: &Scenario) -> Result<(), TestCaseError> {
    let sandbox = scenario.sandbox();
    let mut model = Model::new(scenario);
    let mut kills = scenario.kills.iter();
    let mut output = sandbox.orch(&scenario.arguments());
    let mut said = output.to_string();
    let mut n_runs = run_ids(&sandbox).len();
    prop_assert_eq!(n_runs, usize::from(!model.turns.is_empty()), "{}", said);
    while n_runs > 0 {
        let kill = kills.next();
        let is_killed = kill.is_some_and(Option::is_some);
        if let Some(Some(line)) = kill {
            kill_behind(&sandbox, *line);
        }
        let record = record(&sandbox);
        let compared = compare(
            &sandbox,
            &record,
            &mut model,
            (!is_killed).then_some(&output),
        );
        compared.map_err(|problem| {
            let lines: Vec<String> = record.lines.iter().map(Value::to_string).collect();
            let lines = lines.join("\n");
            TestCaseError::fail(format!("{said}\n{lines}\n{problem}"))
        })?;
        if kill.is_none() {
            break;
        }
        let is_left = model.resume();
        sandbox.write("/log", "");
        output = sandbox.orch("run --resume last");
        said += &output.to_string();
        n_runs += 1;
        if !is_left {
            prop_assert_eq!(run_ids(&sandbox).len(), n_runs - 1, "{}", said);
            break;
        }
        prop_assert_eq!(run_ids(&sandbox).len(), n_runs, "{}", said);
    }
    Ok(())
}

/// Compares what a run has left with the model. What it has put out is known if it was not killed.
fn compare(
    sandbox: &Sandbox,
    record: &Record,
    model: &mut Model<'_>,
    output: Option<&Output>,
) -> Result<(), String> {
    record.compare(model)?;
    let log = fs::read_to_string(sandbox.path("/log")).unwrap_or_default();
    let mut log: Vec<&str> = log.lines().collect();
    for line in &model.log {
        let found = log.iter().position(|it| it == line);
        let found = found.ok_or_else(|| format!("no command has found `{line}`: {log:?}"))?;
        log.remove(found);
    }
    let Some(output) = output else {
        return Ok(());
    };
    let finished = record.lines.last().map_or(&Value::Null, |line| line);
    if finished["event"] != "finished" || finished["status"] != output.code() || !log.is_empty() {
        return Err(format!("{finished}, {}, {log:?}", output.code()));
    }
    Ok(())
}

/// Checks random workflows, each resumed so often. How one differs stands last in what a failure puts out, which
/// is long.
fn check_random(resumes: usize) {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: ProptestConfig::default().cases / 20,
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    });
    match runner.run(&scenario(resumes), |scenario| check(&scenario)) {
        Ok(()) => {}
        Err(TestError::Abort(reason)) => panic!("{reason}"),
        Err(TestError::Fail(reason, scenario)) => panic!("{scenario:?}\n{reason}"),
    }
}

#[test]
fn policy_workflow_matches_the_model() {
    check_random(0);
}

#[test]
fn resume_of_a_killed_workflow_matches_the_model() {
    check_random(3);
}
