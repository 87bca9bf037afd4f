//! The JSON report, which has everything.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{PLAN, RUN, mixed, read_json};
use crate::support::{Background, Sandbox, run_ids};

/// The path, outcome, kind of cause and number of attempts of each stack.
fn told(report: &Value) -> Vec<Value> {
    let stacks = report["stacks"].as_array().unwrap().iter();
    let told = |stack: &Value| {
        let attempts = stack["attempts"].as_array().unwrap().len();
        json!([
            stack["path"],
            stack["outcome"],
            stack["cause"]["kind"],
            attempts
        ])
    };
    stacks.map(told).collect()
}

#[test]
fn report_json_has_all_stacks_and_a_cause_for_each_failure() {
    let sandbox = mixed();
    let output = sandbox.orch(&format!("{RUN} --report ../out.json {PLAN}"));
    assert_eq!(output.code(), 1, "{output}");
    let report = read_json(&sandbox, "out.json");
    assert_eq!(report["format"], 1);
    let run = &report["run"];
    assert_eq!(run["id"], *run_ids(&sandbox).last().unwrap());
    assert_eq!(
        (&run["state"], &run["status"]),
        (&json!("failed"), &json!(1))
    );
    assert_eq!(run["command"], json!(["../bin/terraform", "plan"]));
    assert_eq!(
        run["counts"],
        json!({
            "stacks": 5, "succeeded": 3, "failed": 1, "skipped": 1, "cancelled": 0, "left_out": 0,
            "changed": 1
        })
    );
    assert_eq!(
        told(&report),
        [
            json!(["/changed", "succeeded", null, 1]),
            json!(["/fails", "failed", "exited", 1]),
            json!(["/skipped", "skipped", "failed", 0]),
            json!(["/succeeds", "succeeded", null, 1]),
            json!(["/unchanged", "succeeded", null, 1]),
        ]
    );
    let stack = |position: usize| &report["stacks"][position];
    assert_eq!(
        stack(0)["changes"],
        json!({ "any": true, "add": 3, "change": 1, "destroy": 0, "import": 0, "forget": 0 })
    );
    let failed = stack(1);
    assert_eq!(failed["cause"]["status"], 3);
    let message = failed["cause"]["message"].as_str().unwrap();
    assert!(message.starts_with("exit status 3 after "), "{message}");
    let log = sandbox.read(&format!("/{}", failed["log"].as_str().unwrap()));
    assert_eq!(log, "about to fail\nno such bucket\n");
    assert_eq!(failed["attempts"][0]["log"], failed["log"]);
    assert_eq!(stack(2)["cause"]["stack"], "/fails");
    assert_eq!(
        stack(2)["cause"]["message"],
        "runs after /fails, which failed"
    );
    assert!(stack(2)["started_at"].is_null());
    assert_eq!(stack(3)["log"], Value::Null, "it printed nothing");
    assert!(run["ended_at"].as_str() >= failed["ended_at"].as_str());
    assert!(failed["ended_at"].as_str() >= failed["started_at"].as_str());
    assert!(failed["started_at"].as_str() >= run["started_at"].as_str());
}

#[test]
fn report_json_is_the_same_from_the_record() {
    let sandbox = mixed();
    _ = sandbox.orch(&format!("{RUN} --report ../out.json {PLAN}"));
    let later = sandbox.orch("runs report --report json=-").json();
    assert_eq!(later, read_json(&sandbox, "out.json"));
}

#[test]
fn report_json_needs_no_record() {
    let sandbox = Sandbox::unmarked("//- /a/stack.tm\nstack {}\n");
    let output =
        sandbox.orch("run -q --output none --report ../out.json -- sh -c 'echo x; exit 7'");
    assert_eq!(output.code(), 1, "{output}");
    let report = read_json(&sandbox, "out.json");
    assert_eq!(told(&report), [json!(["/a", "failed", "exited", 1])]);
    assert_eq!(report["stacks"][0]["log"], Value::Null, "it is gone");
    assert!(run_ids(&sandbox).is_empty());
}

#[test]
fn report_json_of_a_dry_run_shows_what_would_run() {
    let sandbox = mixed();
    let output = sandbox.orch("run --dry-run --report ../out.json true");
    assert_eq!(output.code(), 0, "{output}");
    let report = read_json(&sandbox, "out.json");
    assert_eq!(report["run"]["state"], "dry run");
    let stacks = report["stacks"].as_array().unwrap();
    assert_eq!(stacks.len(), 5);
    assert!(stacks.iter().all(|stack| stack["outcome"] == "would run"));
}

#[test]
fn report_json_of_an_empty_run_has_no_stacks() {
    let sandbox = mixed();
    let output = sandbox.orch("run --tags none-has-it --report ../out.json true");
    assert_eq!(output.code(), 0, "{output}");
    let report = read_json(&sandbox, "out.json");
    assert_eq!(report["run"]["state"], "succeeded");
    assert_eq!(report["stacks"], json!([]));
    assert!(run_ids(&sandbox).is_empty());
}

#[test]
fn report_json_of_a_resumed_run_lists_omitted_stacks() {
    let sandbox = mixed();
    _ = sandbox.orch(&format!("{RUN} {PLAN}"));
    _ = sandbox.orch("run -q --only-failed --report ../out.json");
    assert_eq!(
        told(&read_json(&sandbox, "out.json")),
        [
            json!(["/fails", "failed", "exited", 1]),
            json!(["/skipped", "left out", "left-out", 0]),
        ]
    );
}

#[test]
fn report_json_of_a_killed_run_separates_unfinished_and_unstarted_stacks() {
    let sandbox = Sandbox::layout("a\nb after /a\nc after /b");
    let run = Background::run(
        &sandbox,
        "",
        "test $ORCH_STACK_NAME = a && exit\necho x >> \"$ORCH_ROOT/started\"\nawait go",
    );
    run.wait_for("/started", &["x"]);
    let going_on = sandbox.orch("runs report --report json=-").json();
    assert_eq!(going_on["run"]["state"], "running");
    assert_eq!(going_on["stacks"][1]["outcome"], "running");
    assert_eq!(
        going_on["stacks"][2]["cause"]["message"],
        "its turn has not come yet"
    );
    run.kill();
    sandbox.write("/go", "");
    let report = sandbox.orch("runs report --report json=-").json();
    assert_eq!(report["run"]["state"], "killed");
    assert_eq!(report["run"]["status"], Value::Null);
    assert_eq!(
        told(&report),
        [
            json!(["/a", "succeeded", null, 1]),
            json!(["/b", "unknown", "not-ended", 1]),
            json!(["/c", "not run", "not-run", 0]),
        ]
    );
}

#[test]
fn report_json_of_an_interrupted_run() {
    let sandbox = Sandbox::layout("a\nb after /a");
    let script = "echo x >> \"$ORCH_ROOT/started\"\nawait go";
    let run = Background::run(&sandbox, "--report ../out.json", script);
    run.wait_for("/started", &["x"]);
    run.signal(Signal::SIGTERM);
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 143);
    let report = read_json(&sandbox, "out.json");
    assert_eq!(report["run"]["state"], "interrupted");
    assert_eq!(report["run"]["stops"][0]["signal"], 15);
    assert_eq!(told(&report)[1], json!(["/b", "cancelled", "signal", 0]));
}

#[test]
fn values_of_variables_are_not_in_it() {
    let sandbox = mixed();
    let output = sandbox.orch_with(&format!("{RUN} --report ../out.json {PLAN}"), |command| {
        command.env("TOKEN", "hunter2");
    });
    assert_eq!(output.code(), 1, "{output}");
    assert!(
        !read_json(&sandbox, "out.json")
            .to_string()
            .contains("hunter2")
    );
}
