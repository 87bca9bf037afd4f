//! Which policies load, what they are attached to, and what they answer to an input.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::Sandbox;

/// Asks for the parent's clients by label, in Rego v0.
const CLIENTS: &str = r#"
package clients

trigger[client.id] {
  input.run.state == "FINISHED"
  client := input.stacks[_]
  client.labels[_] == sprintf("after:%s", [input.stack.id])
}
"#;

const INPUT: &str = r#"{
  "run": {"state": "FINISHED", "type": "TRACKED", "triggered_by": null},
  "stack": {"id": "net"},
  "stacks": [{"id": "net", "labels": []}, {"id": "app", "labels": ["after:net"]}],
  "workflow": []
}"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::layout("net [base]\n app\n app/web [front]");
    sandbox.write("/policies/clients.rego", CLIENTS);
    sandbox.write("/input.json", INPUT);
    sandbox
}

/// A project with this text as the policy `p`.
pub(super) fn policy(text: &str) -> Sandbox {
    let sandbox = sandbox();
    sandbox.write("/p.rego", text);
    sandbox.write(
        "/p.orch.hcl",
        "policy \"trigger\" \"p\" { file = \"p.rego\" }",
    );
    sandbox
}

/// What an evaluation of a policy with this text prints.
pub(super) fn answer(text: &str) -> String {
    let evaluated = policy(text).orch("policy eval p --input input.json");
    format!("{}{}", evaluated.stdout, evaluated.stderr)
}

#[test]
fn policy_is_attached_by_directory_or_entry() {
    let sandbox = sandbox();
    sandbox.write(
        "/policies.orch.hcl",
        r#"
module "vpc" {
  source = "acme/vpc/aws"
  tag    = "vpc/v*"
}
policy "trigger" "all" {
  file = "policies/clients.rego"
}
policy "trigger" "some" {
  file   = "/policies/clients.rego"
  attach = ["tag:base", "/app/web", "module:vpc"]
}
"#,
    );
    sandbox.write(
        "/app/policies.orch.hcl",
        "policy \"trigger\" \"below\" { file = \"../policies/clients.rego\" }",
    );
    let validated = sandbox.orch("policy validate");
    assert_snapshot!(validated.stdout, @"
    all  policies/clients.rego (Rego v0), attached to 3 stacks
    below  policies/clients.rego (Rego v0), attached to 2 stacks
    some  policies/clients.rego (Rego v0), attached to 2 stacks and 1 module
    ");
    assert_eq!(validated.stderr, "note: no problems found: 3 policies\n");
    let json = sandbox.orch("policy validate --format json").json();
    assert_eq!(json["valid"], true);
    assert_eq!(
        json["policies"][2],
        json!({
            "name": "some", "file": "/policies/clients.rego", "rego": "v0",
            "stacks": ["/app/web", "/net"], "modules": ["vpc"],
        })
    );
}

#[test]
fn policy_eval_shows_results_and_prints() {
    let sandbox = sandbox();
    sandbox.write(
        "/policies/all.rego",
        r#"
package everything
trigger contains "b" if print("seen", input.stack.id)
trigger contains "a"
flag := ["x"]
reset_flag := {"y": true}
sample := true
"#,
    );
    let evaluated = sandbox.orch("policy eval policies/clients.rego --input input.json");
    assert_eq!(evaluated.stdout, "trigger: app\n");
    let evaluated = sandbox.orch("policy eval policies/all.rego --input input.json");
    assert_snapshot!(evaluated.stdout, @"
    print: policies/all.rego:3: seen net
    trigger: a
    trigger: b
    flag: x
    reset_flag: y
    sample: true
    ");
    let json = sandbox.orch_with(
        "policy eval policies/all.rego --input - --format json",
        |_| {},
    );
    assert_eq!(json.code(), 64);
    let json = sandbox.orch("policy eval policies/all.rego --input input.json --format json");
    assert_eq!(
        json.json(),
        json!({
            "format": 1, "file": "policies/all.rego", "rego": "v1", "trigger": ["a", "b"],
            "flag": ["x"], "reset_flag": ["y"], "sample": true,
            "prints": ["policies/all.rego:3: seen net"],
        })
    );
}

#[test]
fn policy_valid_in_neither_rego_version_shows_both_problems() {
    let sandbox = policy("package p\n\ntrigger contains {\n");
    let validated = sandbox.orch("policy validate");
    assert_eq!(validated.code(), 3);
    assert_snapshot!(validated.stderr, @"
    error: the policy `p` cannot be loaded
     --> p.orch.hcl:1:31
      |
    1 | policy \"trigger\" \"p\" { file = \"p.rego\" }
      |                               ^^^^^^^^ this file
      |
      = note: as Rego v1: p.rego:4:1: expecting expression
      = note: as Rego v0: p.rego:4:1: expecting expression
    ");
}

#[test]
fn policy_refuses_impure_and_unknown_functions_when_loading() {
    let cases = [
        (
            "x := time.now_ns()",
            "p.rego:2:6: `time.now_ns` is not allowed in a policy: it reads the clock",
        ),
        (
            "x := rand.intn(\"a\", 3)",
            "`rand.intn` is not allowed in a policy: it is random",
        ),
        (
            "x := y if { y := 1 with input as opa.runtime }",
            "`opa.runtime` is not allowed",
        ),
        (
            "x := http.send({})",
            "`http.send` is not allowed in a policy: it accesses the network",
        ),
        (
            "x := base46.encode(\"a\")",
            "`base46.encode` is not a function that `orch` has",
        ),
        (
            "x contains 1 { true } { false }",
            "as Rego v0: p.rego:2:23: a rule of a set may have only one body: write the rule again",
        ),
        ("f(x) := f(x)", "p.rego:2:1: `f` is recursive"),
        (
            "f(x) := g(x)\ng(x) := data.p.f(x)",
            "p.rego:2:1: `f` is recursive through `g`",
        ),
        ("a if data.p[input.x]", "p.rego:2:1: `a` is recursive"),
        (
            "trigger(x) := x",
            "p.rego:2:1: `trigger` must be a rule without arguments, not a function",
        ),
        (
            "x := [[[[[[[[[[[1]]]]]]]]]]]",
            "p.rego:2:16: brackets are nested more than 10 deep",
        ),
        (
            "x contains y if y == 1",
            "p.rego:2:17: `y` is not defined: no rule has this name, and nothing gives it a value",
        ),
        ("a if stak.id", "p.rego:2:6: `stak` is not defined"),
        (
            "a if { some s in input.stacks; s.id == nme }",
            "p.rego:2:40: `nme` is not defined",
        ),
    ];
    for (rule, expected) in cases {
        let said = policy(&format!("package p\n{rule}\n")).orch("policy validate");
        assert_eq!(said.code(), 3, "{rule}");
        assert!(said.stderr.contains(expected), "{rule}: {}", said.stderr);
    }
}

#[test]
fn policy_locals_may_have_names_of_rules() {
    let text = r"
package p
stack := input.stack
f(trigger) := trigger.id
named[name] := stack if { some stack in input.stacks; name := stack.id }
trigger contains stack.id if { some stack in named; every trigger in [1] { trigger == 1 } }
trigger contains f(stack)
";
    assert_snapshot!(answer(text), @"
    trigger: app
    trigger: net
    ");
}

#[test]
fn policy_fails_on_wrong_results_but_not_on_errors_of_functions() {
    let wrong = [
        (
            "trigger := \"a\"",
            "`trigger` must be a set or a list of strings",
        ),
        (
            "trigger := [1]",
            "`trigger` must be a set or a list of strings",
        ),
        (
            "flag := {\"a\": false}",
            "or an object whose values are `true`",
        ),
        ("sample := 1", "`sample` must be `true` or `false`"),
        ("x := 1\nx := 2\nsample := x == 1", "p.rego:3:1:"),
    ];
    for (rule, expected) in wrong {
        let sandbox = policy(&format!("package p\n{rule}\n"));
        let said = sandbox.orch("policy eval p --input input.json");
        assert_eq!(said.code(), 1, "{rule}");
        assert!(said.stderr.contains(expected), "{rule}: {}", said.stderr);
    }
    assert_eq!(
        answer("package p\ntrigger contains \"a\" if 1 / 0 == 1\ntrigger contains \"b\"\n"),
        "trigger: b\n"
    );
}

#[test]
fn policy_that_takes_too_much_time_or_memory_is_killed() {
    let cases = [
        (
            "sample if count(numbers.range(1, 100000000)) > 1",
            "evaluating it takes more than 256 MiB of memory",
        ),
        (
            "r := numbers.range(1, 3000)\nsample if { some i in r; some j in r; some k in r; i * j * k == -1 }",
            "evaluating it takes longer than 300ms (`timeout` of the policy)",
        ),
    ];
    for (rule, expected) in cases {
        let sandbox = policy(&format!("package p\n{rule}\n"));
        sandbox.write(
            "/p.orch.hcl",
            "policy \"trigger\" \"p\" {\n  file = \"p.rego\"\n  timeout = \"300ms\"\n}",
        );
        if rule.contains("count(") {
            sandbox.write(
                "/p.orch.hcl",
                "policy \"trigger\" \"p\" { file = \"p.rego\" }",
            );
            if !cfg!(target_os = "linux") {
                continue;
            }
        }
        let said = sandbox.orch("policy eval p --input input.json");
        assert_eq!(said.code(), 1, "{rule}");
        assert!(said.stderr.contains(expected), "{rule}: {}", said.stderr);
    }
}

#[test]
fn policy_blocks_with_mistakes_are_reported_with_their_positions() {
    let sandbox = sandbox();
    sandbox.write(
        "/p.orch.hcl",
        r#"
policy "push" "a" { file = "policies/clients.rego" }
policy "trigger" "b b" { file = "policies/clients.rego" }
policy "trigger" "c" { fil = "policies/clients.rego" }
policy "trigger" "d" { file = "../../x.rego" }
policy "trigger" "e" {
  file     = "policies/clients.rego"
  attach   = ["/nowhere", "tag:nobody", 3]
  on_error = "panic"
  timeout  = "soon"
}
policy "trigger" "e" { file = "policies/clients.rego" }
policy "trigger" "f" { file = "policies/none.rego" }
orch {
  config {
    policies {
      max_turns = 0
      max_followups = 1.5
      run = "task"
    }
  }
}
"#,
    );
    sandbox.write(
        "/t.tm",
        "policy \"trigger\" \"t\" { file = \"policies/clients.rego\" }",
    );
    let said = sandbox.orch("policy validate");
    assert_eq!(said.code(), 3);
    let said = said.stderr;
    let headlines: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("error") || line.starts_with("warning"))
        .collect();
    assert_snapshot!(headlines.join("\n"), @r#"
    error: `push` is not a kind of policy
    error: `b b` cannot be the name of a policy
    error: a `policy` block needs `file`
    error: unknown attribute `fil` in `policy`
    error: `../../x.rego` leads out of the project
    warning: `/nowhere` in `attach` matches no stack
    warning: `tag:nobody` in `attach` matches no stack
    error: `attach` must be a list of strings
    error: `on_error` must be `"fail"` or `"ignore"`
    error: `timeout` must be a duration
    error: the policy `e` is defined twice
    error: the policy `f` cannot be loaded
    error: `max_turns` must be a whole number
    error: `max_followups` must be a whole number
    error: `run` must be `"tracked"` or `"off"`
    error: a `policy` block belongs in an `.orch.hcl` file
    "#);
}

#[cfg(unix)]
#[test]
fn policy_links_must_not_leave_the_project() {
    let sandbox = sandbox();
    let outside = sandbox.outside().join("decoy/clients.rego");
    std::fs::write(&outside, CLIENTS).unwrap();
    sandbox.symlink(&outside, "/linked.rego");
    sandbox.write(
        "/p.orch.hcl",
        "policy \"trigger\" \"p\" { file = \"linked.rego\" }",
    );
    let said = sandbox.orch("policy validate");
    assert_eq!(said.code(), 3);
    assert!(said.stderr.contains("a link leads out of the project"));
}

#[test]
fn validate_checks_the_attachments_of_policies() {
    let sandbox = Sandbox::new("");
    sandbox.write("/a/stack.orch.hcl", "stack {\n}\n");
    sandbox.write("/p.rego", "package p\n");
    let block = "policy \"trigger\" \"p\" {\n  file   = \"p.rego\"\n  attach = [\"/gone\"]\n}\n";
    sandbox.write("/p.orch.hcl", block);
    let output = sandbox.orch("validate");
    assert_eq!(output.code(), 3, "{output}");
    assert!(output.stderr.contains("/gone"), "{output}");
}

#[test]
fn validate_loads_policies() {
    let sandbox = policy("package p\ntrigger[\"a\"] {\n");
    let output = sandbox.orch("validate");
    assert_eq!(output.code(), 3, "{output}");
    let problem = "error: the policy `p` cannot be loaded";
    assert!(output.stderr.starts_with(problem), "{output}");
    sandbox.remove("/p.rego");
    let output = sandbox.orch("validate");
    assert!(output.stderr.starts_with(problem), "{output}");
    sandbox.write("/p.rego", CLIENTS);
    assert_eq!(sandbox.orch("validate").code(), 0);
}

#[test]
fn policy_attach_matches_labels_tags_and_everything() {
    let sandbox = sandbox();
    sandbox.write(
        "/app/stack.orch.hcl",
        "stack {\n  labels = [\"team:web\", \"*\"]\n}\n",
    );
    let attached = |entry: &str| {
        let block = format!(
            "policy \"trigger\" \"p\" {{\n  file   = \"/policies/clients.rego\"\n  attach = [\"{entry}\"]\n}}\n"
        );
        sandbox.write("/app/web/p.orch.hcl", block);
        let output = sandbox.orch("policy validate --format json");
        let policies = output.json()["policies"].clone();
        (output.code(), policies[0]["stacks"].clone())
    };
    let all = json!(["/app", "/app/web", "/net"]);
    assert_eq!(attached("*"), (0, all.clone()));
    assert_eq!(attached("autoattach:*"), (0, all));
    assert_eq!(attached("label:team:web"), (0, json!(["/app"])));
    assert_eq!(attached("autoattach:team:web"), (0, json!(["/app"])));
    assert_eq!(attached("label:front"), (0, json!(["/app/web"])));
    assert_eq!(attached("label:nobody"), (0, json!([])));
    let output = sandbox.orch("policy validate");
    let warning = "warning: `label:nobody` in `attach` matches no stack";
    assert!(output.stderr.contains(warning), "{output}");
}

#[test]
fn policy_input_prints_the_input_for_eval() {
    let sandbox = sandbox();
    let block = "policy \"trigger\" \"p\" { file = \"policies/clients.rego\" }";
    sandbox.write("/p.orch.hcl", block);
    sandbox.write(
        "/app/stack.orch.hcl",
        "stack {\n  labels = [\"after:/net\"]\n}\n",
    );
    for state in ["FINISHED", "FAILED"] {
        let input = sandbox.orch(&format!("policy input --stack net --state {state}"));
        assert_eq!(input.code(), 0, "{input}");
        let keys = input.data();
        assert_eq!(keys["run"]["state"], state);
        assert_eq!(keys["stacks"].as_array().unwrap().len(), 3);
        assert_eq!(keys["workflow"].as_array().unwrap().len(), 3);
        sandbox.write("/made.json", &input.stdout);
        let given = sandbox.orch("policy eval p --input made.json");
        let made = sandbox.orch(&format!("policy eval p --stack net --state {state}"));
        assert_eq!(given.stdout, made.stdout);
        assert_eq!(
            given.stdout.contains("/app"),
            state == "FINISHED",
            "{given}"
        );
    }
    assert_eq!(sandbox.orch("policy input --stack nowhere").code(), 64);
}
