//! Policies: how long an evaluation takes, against the interpreter alone in this process.
#![expect(clippy::print_stdout, reason = "that is its result")]

use std::cell::RefCell;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use orch::policy::{ListKind, PolicyNumber, Worker};
use regorus::{Engine, Value};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::measure::{medians, peak_memory};
use crate::programs::Programs;

const ROUNDS: usize = 9;

/// Names the clients of a stack by their labels.
const LABELS: &str = r#"package clients

trigger[client.id] {
  client := input.stacks[_]
  input.run.state == "FINISHED"
  input.run.type == "TRACKED"
  client.labels[_] == concat("", ["after:", input.stack.id])
}
"#;

/// Joins two turns of the workflow, every pair of which it looks at.
const JOIN: &str = r#"package join

trigger["last"] {
  a := input.workflow[_]
  b := input.workflow[_]
  a.stack_id == "s-998"
  b.stack_id == "s-999"
  a.state == "FINISHED"
  b.state == "FINISHED"
}
"#;

/// Measures evaluations by a worker and without one.
pub(crate) fn tables(programs: &Programs) -> Result<()> {
    println!(
        "a policy over the labels of 10,000 stacks (wanted: 1.3 times the interpreter, 200 MB)"
    );
    evaluations(programs, LABELS, 10_000, 1)?;
    println!("a join of two of 1,000 turns (wanted: 0.5 s)");
    evaluations(programs, JOIN, 10, 1_000)?;
    Ok(())
}

fn evaluations(programs: &Programs, policy: &str, n_stacks: usize, n_turns: usize) -> Result<()> {
    let timeout = Duration::from_mins(1);
    let stacks: Vec<_> = (0..n_stacks).map(stack).collect();
    let turns: Vec<_> = (0..n_turns).map(turn).collect();
    let small =
        json!({"run": {"id": "1.1", "state": "FINISHED", "type": "TRACKED"}, "stack": stack(1)});
    let mut whole = small.clone();
    whole["stacks"] = json!(stacks);
    whole["workflow"] = json!(turns);

    let mut worker = Worker::new(programs.worker());
    let loaded = worker.load("policy.rego", policy, timeout)?;
    let (number, _) = loaded.ok().context("the policy is wrong")?;
    for (list, entries) in [(ListKind::Stacks, &stacks), (ListKind::Workflow, &turns)] {
        for (position, entry) in entries.iter().enumerate() {
            worker.put(list, position, to_raw_value(entry)?);
        }
    }
    let worker = RefCell::new((worker, number));
    let input = to_raw_value(&small)?;
    let by_worker = || evaluate(&mut worker.borrow_mut(), &input, &stacks[1], timeout);

    let mut engine = Engine::new();
    engine.set_rego_v0(true);
    engine.set_strict_builtin_errors(false);
    let package = engine.add_policy("policy.rego".to_owned(), policy.to_owned())?;
    let query = format!("{package}.trigger");
    let value = Value::from_json_str(&whole.to_string())?;
    let engine = RefCell::new(engine);
    let alone = || {
        let mut engine = engine.borrow_mut();
        engine.set_input(value.clone());
        let found = engine.eval_query(query.clone(), false)?;
        ensure!(found.result.len() == 1, "nothing was found");
        Ok(())
    };

    by_worker()?; // it starts
    let steps: [Box<dyn Fn() -> Result<()>>; 2] = [Box::new(alone), Box::new(by_worker)];
    let times = medians(&steps, ROUNDS)?;
    let times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    println!("  the interpreter alone {:8.1} ms", times[0]);
    println!(
        "  with the worker       {:8.1} ms, {:.2} times",
        times[1],
        times[1] / times[0]
    );

    let directory = tempfile::tempdir()?;
    fs::write(directory.path().join("policy.rego"), policy)?;
    fs::write(directory.path().join("input.json"), whole.to_string())?;
    let job = programs.orch(
        directory.path(),
        "policy eval policy.rego --input input.json",
    );
    if let Some(memory) = peak_memory(&job)? {
        println!("  `orch policy eval`    {memory:8.1} MB at its peak, the worker's or its own");
    }
    Ok(())
}

/// Evaluates as a run does: the stack whose turn has ended has another state since.
fn evaluate(
    (worker, policy): &mut (Worker, PolicyNumber),
    input: &RawValue,
    stack: &serde_json::Value,
    timeout: Duration,
) -> Result<()> {
    worker.put(ListKind::Stacks, 1, to_raw_value(stack)?);
    let evaluated = worker.evaluate(*policy, input.to_owned(), true, timeout)?;
    let answer = evaluated.map_err(|problem| anyhow::Error::msg(problem.in_file("policy.rego")))?;
    ensure!(!answer.trigger.is_empty(), "nothing follows");
    Ok(())
}

fn stack(number: usize) -> serde_json::Value {
    let commit = json!({"author": "ada", "branch": "main", "created_at": 1_753_000_000_000_000_000_u64,
        "hash": "4f2c6d1e4f2c6d1e4f2c6d1e4f2c6d1e4f2c6d1e", "message": "a message of a commit"});
    json!({
        "id": format!("s-{number}"), "name": format!("s-{number}"),
        "labels": [format!("after:s-{}", number / 2), "team:data"],
        "administrative": false, "autodeploy": false, "branch": "main", "namespace": "acme",
        "project_root": format!("stacks/s-{number}"), "repository": "infra", "state": "FINISHED",
        "terraform_version": null, "tracked_commit": commit,
        "worker_pool": {"id": "", "labels": [], "name": "", "public": true},
    })
}

fn turn(number: usize) -> serde_json::Value {
    json!({"id": format!("1.{number}"), "stack_id": format!("s-{number}"), "state": "FINISHED", "type": "TRACKED"})
}
