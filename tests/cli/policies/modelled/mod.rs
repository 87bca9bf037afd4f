//! Random workflows against a naive model of them: turns, causes, states, flags, what follows and what
//! does not, what is cancelled, and the exit status.

mod model;
mod record;
mod scenario;

use std::fs;

use proptest::prelude::*;
use serde_json::Value;

use self::model::Model;
use self::record::Record;
use self::scenario::{POLICIES, Scenario, scenario};
use crate::support::{Output, Sandbox, journal_of, run_ids};

/// Returns what the newest run has left.
fn record(sandbox: &Sandbox) -> Record {
    let run = run_ids(sandbox).pop().unwrap();
    let text = sandbox.read(&journal_of(&run));
    let lines = text.lines().skip(1);
    let folder = fs::read_dir(sandbox.path(&format!("/.orch/runs/{run}/samples")));
    let mut samples = Vec::new();
    for file in folder.into_iter().flatten() {
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
        run,
    }
}

/// Runs, and lets the model follow.
fn check(scenario: &Scenario) -> Result<(), TestCaseError> {
    let sandbox = scenario.sandbox();
    let mut model = Model::new(scenario);
    let output = sandbox.orch(&scenario.arguments());
    if model.turns.is_empty() {
        prop_assert!(run_ids(&sandbox).is_empty(), "{}", output);
        return Ok(());
    }
    let record = record(&sandbox);
    let compared = compare(&sandbox, &record, &mut model, &output);
    compared
        .map_err(|problem| TestCaseError::fail(format!("{problem}\n{output}\n{:#?}", record.lines)))
}

/// Compares what a run has left and put out with the model.
fn compare(
    sandbox: &Sandbox,
    record: &Record,
    model: &mut Model<'_>,
    output: &Output,
) -> Result<(), String> {
    record.compare(model)?;
    let log = fs::read_to_string(sandbox.path("/log")).unwrap_or_default();
    let mut log: Vec<&str> = log.lines().collect();
    for line in &model.log {
        let found = log.iter().position(|it| it == line);
        let found = found.ok_or_else(|| format!("no command has found `{line}`: {log:?}"))?;
        log.remove(found);
    }
    let finished = record.lines.last().map_or(&Value::Null, |line| line);
    if finished["event"] != "finished" || finished["status"] != output.code() || !log.is_empty() {
        return Err(format!("{finished}, {}, {log:?}", output.code()));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 20,
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_workflow_goes_as_the_model_says(scenario in scenario()) {
        check(&scenario)?;
    }
}
