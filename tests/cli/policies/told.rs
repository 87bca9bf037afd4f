//! What policies are told of a run: who began it, where its code is from, and how its turns ended.

use std::process::Command;

use serde_json::{Value, json};

use super::followed::{lines, run, sandbox, turns};
use crate::support::{Repository, Sandbox, run_ids};

const KEEP: &str = "package keep\nsample { true }\n";

/// The inputs that were kept in the newest run, by turn.
fn kept(sandbox: &Sandbox) -> Vec<Value> {
    let run = run_ids(sandbox).pop().unwrap();
    let folder = sandbox.path(&format!("/.orch/runs/{run}/samples"));
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let text = files.iter().map(|file| std::fs::read(file).unwrap());
    text.map(|text| serde_json::from_slice(&text).unwrap())
        .collect()
}

/// Returns where nothing is known: the places of `null` in a value.
fn nulls(at: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null => found.push(at.to_owned()),
        Value::Object(values) => {
            for (key, value) in values {
                nulls(&format!("{at}.{key}"), value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| nulls(at, value, found)),
        _ => {}
    }
}

#[test]
fn policy_input_has_the_user_and_the_commit_of_the_run() {
    let repository = Repository::of(sandbox(&[("keep", KEEP)]));
    repository.git("remote add origin git@example.com:acme/network/infra.git");
    repository.git("update-ref refs/remotes/origin/trunk HEAD");
    repository.git("symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/trunk");
    repository.git("checkout -q -b feature");
    let words = "run --policies -X --match /one --metadata first --metadata second -- true";
    let mut command: Command = repository.command(words);
    command.env("ORCH_TEAMS", "ops, net ,").env("CI", "true");
    assert!(command.status().unwrap().success());
    let input = &kept(&repository)[0];
    let (run, stack) = (&input["run"], &input["stack"]);
    assert_eq!(run["user_provided_metadata"], json!(["first", "second"]));
    let session = &run["creator_session"];
    assert_eq!(session["teams"], json!(["ops", "net"]));
    assert_eq!(session["machine"], true);
    assert_eq!(session["admin"], false);
    assert_eq!(stack["namespace"], "acme/network");
    assert_eq!(stack["repository"], "infra");
    assert_eq!(stack["branch"], "trunk");
    assert_eq!(run["branch"], "feature");
    assert_eq!(run["commit"], stack["tracked_commit"]);
    let head = repository.git("rev-parse HEAD");
    assert_eq!(run["commit"]["hash"], head.trim());
    assert_eq!(run["based_on_local_workspace"], false);
    // `not stack.locked_by` holds.
    assert!(stack.get("locked_by").is_none(), "{stack}");
    let mut found = Vec::new();
    nulls("", input, &mut found);
    found.sort();
    found.dedup();
    let known = [
        ".run.triggered_by",
        ".stack.terraform_version",
        ".stacks.terraform_version",
    ];
    assert_eq!(found, known);
}

#[test]
fn policy_input_has_empty_values_for_unknown_facts() {
    let sandbox = sandbox(&[("keep", KEEP)]);
    let ran = sandbox.orch("run --policies --match /one -- true");
    assert_eq!(ran.code(), 0, "{ran}");
    let input = &kept(&sandbox)[0];
    let (run, stack) = (&input["run"], &input["stack"]);
    let session = &run["creator_session"];
    for unknown in [
        &run["branch"],
        &run["commit"]["hash"],
        &session["login"],
        &session["name"],
        &stack["branch"],
        &stack["namespace"],
        &stack["repository"],
    ] {
        assert_eq!(unknown, "", "{input}");
    }
}

#[test]
fn policy_input_shows_a_turn_ended_by_the_time_limit_as_stopped() {
    let sandbox = sandbox(&[("keep", KEEP)]);
    let ran = sandbox.orch("run --policies --match /one --run-timeout 100ms -- sleep 60");
    assert_ne!(ran.code(), 0, "{ran}");
    let evaluated = lines(&sandbox, "evaluated");
    let states: Vec<&Value> = evaluated.iter().map(|line| &line["state"]).collect();
    assert_eq!(states, ["STOPPED"], "{ran}");
    let history = &kept(&sandbox)[0]["run"]["states_history"];
    let last = history.as_array().unwrap().last().unwrap();
    assert_eq!(last["new_state"], "STOPPED");
}

#[test]
fn policy_join_of_two_branches_runs_once_in_any_order() {
    let join = r#"
package join
done(id) { run := input.workflow[_]; run.stack_id == id; run.state == "FINISHED" }
trigger["three"] { startswith(input.stack.id, "two-"); done("two-a"); done("two-b") }
"#;
    // What a branch waits for before it ends.
    for (of_a, of_b) in [
        ("true", "[ -e ../a ]"),
        ("[ -e ../b ]", "true"),
        ("[ -e ../began-b ]", "[ -e ../began-a ]"),
    ] {
        let sandbox = sandbox(&[("join", join)]);
        let script = format!(
            "#!/bin/sh\necho \"$ORCH_STACK_PATH $ORCH_TURN ${{ORCH_POLICY-}}\" >> ../log\n\
             touch ../began-${{ORCH_STACK_ID#two-}}\n\
             case $ORCH_STACK_ID in\n\
             two-a) while [ -e ../do ] && ! {of_a}; do :; done; touch ../a ;;\n\
             two-b) while [ -e ../do ] && ! {of_b}; do :; done; touch ../b ;;\n\
             esac\n"
        );
        sandbox.write_program("/do", &script);
        let ran = run(&sandbox, "--policies -j 2 --match '/two-*'");
        assert_eq!(ran.code(), 0, "{ran}");
        let mut ran = turns(&sandbox);
        let joined = ran.pop();
        ran.sort();
        assert_eq!(ran, ["/two-a 1", "/two-b 2"]);
        assert_eq!(joined.as_deref(), Some("/three 3 join"));
        let queued = lines(&sandbox, "evaluated");
        let queued = queued.iter().filter(|line| line.get("queued").is_some());
        assert_eq!(queued.count(), 1);
    }
}
