//! `orch policy graph`, `schema` and `samples`, and the inputs of `eval`.

use std::fs;

use serde_json::{Value, json};

use crate::support::Sandbox;

/// Prints its whole input.
const SHOW: &str = "package show\n\ntrigger contains \"net\" if print(json.marshal(input))\n";

fn sandbox(rego: &str) -> Sandbox {
    let sandbox = Sandbox::layout("net [base]\n app\n app/web [front]");
    sandbox.write("/p.rego", rego);
    sandbox.write(
        "/p.orch.hcl",
        "policy \"trigger\" \"p\" { file = \"p.rego\" }",
    );
    sandbox
}

/// Checks a value against a schema: types, enumerations, required and unknown keys.
fn check(schema: &Value, all: &Value, value: &Value, place: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/$defs/").unwrap();
        return check(&all["$defs"][name], all, value, place);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() || number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_of_type = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|allowed| allowed == kind),
        allowed => allowed == kind,
    };
    assert!(is_of_type, "{place} is {value}");
    if let Some(allowed) = schema["enum"].as_array() {
        assert!(allowed.contains(value), "{place} is {value}");
    }
    for item in value.as_array().into_iter().flatten() {
        check(&schema["items"], all, item, &format!("{place}[]"));
    }
    let Some(object) = value
        .as_object()
        .filter(|_| !schema["properties"].is_null())
    else {
        return;
    };
    for key in schema["required"].as_array().unwrap() {
        assert!(
            object.contains_key(key.as_str().unwrap()),
            "{place} has no {key}"
        );
    }
    for (key, value) in object {
        let property = &schema["properties"][key];
        let is_described = property["description"].is_string();
        assert!(is_described, "{place}.{key} is not described");
        check(property, all, value, &format!("{place}.{key}"));
    }
}

fn schema() -> Value {
    let printed = Sandbox::new("").orch("policy schema");
    assert_eq!((printed.code(), &*printed.stderr), (0, ""));
    serde_json::from_str(&printed.stdout).unwrap()
}

/// Checks that an input of a turn obeys the schema.
pub(crate) fn obeys_the_schema(input: &Value) {
    let schema = schema();
    check(&schema["$defs"]["run_input"], &schema, input, "input");
}

/// The input that was printed by [`SHOW`].
fn shown(printed: &str) -> Value {
    let start = printed.find('{').unwrap();
    serde_json::from_str(&printed[start..]).unwrap()
}

#[test]
fn policy_input_of_a_hypothetical_result_matches_the_schema() {
    let sandbox = sandbox(SHOW);
    let evaluated = sandbox.orch("policy eval p --stack app --state FAILED --format json");
    let json = evaluated.json();
    let input = shown(json["prints"][0].as_str().unwrap());
    let schema = schema();
    check(&schema["$defs"]["run_input"], &schema, &input, "input");
    assert_eq!(input["run"]["state"], "FAILED");
    assert_eq!(input["stack"]["id"], "/app");
    assert_eq!(input["run"]["triggered_by"], Value::Null);
    let states = input["stacks"].as_array().unwrap().iter();
    let states: Vec<_> = states
        .map(|stack| (&stack["id"], &stack["state"]))
        .collect();
    assert_eq!(
        json!(states),
        json!([
            ["/app", "FAILED"],
            ["/app/web", "FINISHED"],
            ["/net", "FINISHED"]
        ])
    );
    assert_eq!(input["workflow"][0]["state"], "FAILED");
    assert_eq!(input["workflow"][2]["stack_id"], "/net");
}

#[cfg(unix)]
#[test]
fn policy_input_of_a_finished_turn_matches_the_schema() {
    let sandbox = sandbox(
        "package show\n\nflag contains json.marshal(input) if input.stack.id == \"/net\"\n",
    );
    let run = sandbox.orch("run --policies -- true");
    assert_eq!(run.code(), 0, "{}", run.stderr);
    let runs = fs::read_dir(sandbox.path("/.orch/runs")).unwrap();
    let journals = runs.map(|run| run.unwrap().path().join("journal.jsonl"));
    let journals: Vec<_> = journals.filter(|journal| journal.exists()).collect();
    let journal = fs::read_to_string(&journals[0]).unwrap();
    let line = journal.lines().find(|line| line.contains("worker_pool"));
    let line: Value = serde_json::from_str(line.unwrap()).unwrap();
    let input = shown(line["policies"][0]["flag"][0].as_str().unwrap());
    let schema = schema();
    check(&schema["$defs"]["run_input"], &schema, &input, "input");
}

#[test]
fn policy_eval_takes_exactly_one_input() {
    let sandbox = sandbox(SHOW);
    for arguments in [
        "",
        "--input a.json --stack net",
        "--state FAILED",
        "--input a.json --state FAILED",
        "--stack nowhere",
        "--stack net --state WRONG",
    ] {
        let refused = sandbox.orch(&format!("policy eval p {arguments}"));
        assert_eq!(refused.code(), 64, "{arguments}: {}", refused.stderr);
    }
}

/// A failure of a stack is followed by itself, `/app` by `/net`, and `/net` by `/app/web`.
const ROUND: &str = r#"
package round

trigger contains input.stack.id if input.run.state == "FAILED"
trigger contains "/net" if { input.run.state == "FINISHED"; input.stack.id == "/app" }
trigger contains "/app/web" if { input.run.state == "FINISHED"; input.stack.id == "/net" }
"#;

#[test]
fn policy_graph_shows_follow_ups_and_warns_of_loops() {
    let sandbox = sandbox(ROUND);
    let graph = sandbox.orch("policy graph");
    assert_eq!(graph.code(), 0);
    assert_eq!(
        graph.stdout,
        "/app FAILED → /app  (p)\n/app FINISHED → /net  (p)\n/app/web FAILED → /app/web  (p)\n\
         /net FAILED → /net  (p)\n/net FINISHED → /app/web  (p)\n"
    );
    let loops = graph
        .stderr
        .lines()
        .filter(|line| line.starts_with("warning"));
    let loops: Vec<_> = loops.collect();
    assert_eq!(
        loops,
        [
            "warning: follow-ups may repeat forever: /app → p (FAILED) → /app",
            "warning: follow-ups may repeat forever: /app/web → p (FAILED) → /app/web",
            "warning: follow-ups may repeat forever: /net → p (FAILED) → /net",
        ]
    );
    let json = sandbox.orch("policy graph --format json").json();
    assert_eq!(json["format"], 1);
    assert_eq!(
        json["arrows"][1],
        json!({"from": "/app", "state": "FINISHED", "to": "/net", "policies": ["p"]})
    );
    assert_eq!(json["loops"][0], json!([json["arrows"][0]]));
    let dot = sandbox.orch("policy graph --format dot").stdout;
    assert!(
        dot.contains("  \"/app\" -> \"/net\" [label = \"p: FINISHED\"]\n"),
        "{dot}"
    );
    assert!(
        dot.contains(
            "  \"/net\" -> \"/net\" [label = \"p: FAILED\", style = dashed, color = red]\n"
        ),
        "{dot}"
    );
}

#[test]
fn policy_graph_shows_a_loop_over_several_stacks_as_a_chain() {
    let sandbox = sandbox(
        "package p\n\nnext := {\"/app\": \"/net\", \"/net\": \"/app/web\", \"/app/web\": \"/app\"}\n\n\
         trigger contains next[input.stack.id] if input.run.state == \"FINISHED\"\n",
    );
    let graph = sandbox.orch("policy graph");
    let expected = "/app → p (FINISHED) → /net → p (FINISHED) → /app/web → p (FINISHED) → /app";
    assert!(graph.stderr.contains(expected), "{}", graph.stderr);
}

#[test]
fn policy_graph_does_not_count_a_retry_as_a_loop() {
    let sandbox = sandbox(
        "package p\n\ntrigger contains input.stack.id if {\n\tinput.run.state == \"FAILED\"\n\
         \tinput.run.triggered_by == null\n}\n",
    );
    let graph = sandbox.orch("policy graph");
    assert_eq!((&*graph.stdout, &*graph.stderr), ("", ""));
    let evaluated = sandbox.orch("policy eval p --stack net --state FAILED");
    assert_eq!(evaluated.stdout, "trigger: /net\n");
}

#[test]
fn policy_graph_reports_unknown_names_and_failing_policies() {
    let sandbox = sandbox("package p\n\ntrigger contains \"nobody\"\n");
    let graph = sandbox.orch("policy graph");
    assert_eq!(graph.code(), 0);
    assert_eq!(
        graph.stderr,
        "warning: the policy `p` names `nobody` after `/app`, \
         but no stack has that id or path\n"
    );
    sandbox.write("/p.rego", "package p\n\ntrigger := 1\n");
    let graph = sandbox.orch("policy graph");
    assert_eq!(graph.code(), 1);
    assert!(
        graph
            .stderr
            .contains("the policy `p` fails when `/app` is FINISHED"),
        "{}",
        graph.stderr
    );
}

#[test]
fn policy_samples_are_listed_and_evaluated_again() {
    let sandbox = sandbox("package p\n\ntrigger contains input.stack.id\n");
    let none = sandbox.orch("policy samples");
    assert_eq!(none.code(), 4, "{}", none.stderr);
    assert_eq!(sandbox.orch("run -- true").code(), 0);
    let json = sandbox.orch("policy samples --format json").json();
    let run = json["run"].as_str().unwrap();
    assert_eq!(json, json!({"format": 1, "run": run, "samples": []}));
    let input = "{\"stack\": {\"id\": \"kept\"}}";
    sandbox.write(&format!("/.orch/runs/{run}/samples/2.p.json"), input);
    let listed = sandbox.orch("policy samples");
    assert_eq!(listed.stdout, format!("{run}.2.p\n"));
    let evaluated = sandbox.orch(&format!("policy eval p --sample {}", listed.stdout.trim()));
    assert_eq!(evaluated.stdout, "trigger: kept\n");
    assert_eq!(
        sandbox.orch("policy eval p --sample last.2.p").stdout,
        "trigger: kept\n"
    );
    for id in ["last.3.p", "last", "last.2.p/q", "nothing.2.p"] {
        let refused = sandbox.orch(&format!("policy eval p --sample {id}"));
        assert_eq!(refused.code(), 64, "{id}: {}", refused.stderr);
    }
}

#[test]
fn graph_has_an_edge_for_each_label_that_names_a_stack() {
    let sandbox = sandbox(
        "package clients\n\ntrigger contains client.id if {\n    some client in input.stacks\n    input.run.state == \"FINISHED\"\n    sprintf(\"depends-on:%s\", [input.stack.id]) in client.labels\n}\n",
    );
    for number in 1..200 {
        let labels = format!("\"depends-on:s{}\", \"team:{}\"", number - 1, number % 20);
        let text = format!("stack {{\n  id = \"s{number}\"\n  labels = [{labels}]\n}}\n");
        sandbox.write(&format!("/s/{number}/stack.orch.hcl"), text);
    }
    let graph = sandbox.orch("policy graph");
    assert_eq!(graph.stdout.lines().count(), 198, "{}", graph.stderr);
}
