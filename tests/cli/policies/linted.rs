//! What in policies is valid, but hardly meant: `orch validate` and `orch policy validate` warn of it.

use super::followed::sandbox;

/// Returns what `orch policy validate` says of a policy in Rego v1 with these rules.
fn said(rules: &str) -> String {
    let text = format!("package p\n\nimport rego.v1\n\n{rules}\n");
    let sandbox = sandbox(&[("p", &text)]);
    let output = sandbox.orch("policy validate");
    assert_eq!(output.code(), 0, "{output}");
    output.stderr
}

const FINE: &str = r#"
trigger contains client.id if {
	input.run.state == "FINISHED"
	some client in input.stacks
	sprintf("depends-on:%s", [input.stack.id]) in client.labels
	some change in input.run.changes
	change.entity.data.values.name == client.tracked_commit.hash
	input.workflow[_].stack_id == "one"
}
sample if input.module.current_version
flag := {"a"}
"#;

#[test]
fn policies_that_are_as_meant_have_no_warnings() {
    let said = said(FINE);
    assert!(!said.contains("warning"), "{said}");
    assert!(said.contains("no problems found"), "{said}");
    let warned = self::said("triger contains \"one\" if true");
    assert!(warned.contains("warning"), "{warned}");
    assert!(!warned.contains("no problems found"), "{warned}");
}

#[test]
fn unknown_keys_of_the_input_are_warnings_with_a_place_and_a_suggestion() {
    for (rule, key, place, meant) in [
        (
            "trigger contains \"one\" if input.runn.state == \"FINISHED\"",
            "input.runn",
            "5:27",
            "run",
        ),
        (
            "trigger contains \"one\" if input.run[\"stat\"] == \"FAILED\"",
            "input.run.stat",
            "5:27",
            "state",
        ),
        (
            "trigger contains s.idd if some s in input.stacks",
            "input.stacks[_].idd",
            "5:18",
            "id",
        ),
        (
            "trigger contains s.id if { s := input.stack; s.lables[_] == \"x\" }",
            "input.stack.lables",
            "5:46",
            "labels",
        ),
    ] {
        let said = said(rule);
        assert!(
            said.contains(&format!("the input has no `{key}`")),
            "{said}"
        );
        assert!(said.contains(&format!("policies/p.rego:{place}")), "{said}");
        assert!(said.contains(&format!("did you mean `{meant}`?")), "{said}");
    }
}

#[test]
fn answers_that_are_none_are_warnings() {
    for (rules, expected) in [
        ("x := 1", "it has no rule that is evaluated"),
        ("triger contains \"one\" if true", "did you mean `trigger`?"),
        (
            "trigger if true",
            "`trigger` must be a set or a list of strings",
        ),
        (
            "trigger := \"one\"",
            "`trigger` must be a set or a list of strings",
        ),
        ("flag contains 1 if true", "`flag` must be a set of strings"),
        ("sample := \"yes\"", "`sample` must be `true` or `false`"),
        (
            "import data.shared\nsample if shared.x",
            "nothing is imported by `data.shared`",
        ),
        (
            "trigger contains \"on\" if true",
            "it asks for `on`, but no stack has this id or path",
        ),
    ] {
        let said = said(rules);
        assert!(said.contains(expected), "{rules}: {said}");
        assert!(said.contains("policies/p.rego:"), "{rules}: {said}");
    }
}

#[test]
fn labels_that_name_a_stack_with_another_spelling_are_warnings() {
    let sandbox = sandbox(&[("p", &format!("package p\nimport rego.v1\n{FINE}"))]);
    sandbox.write("/net/stack.orch.hcl", "stack {\n}\n");
    for (label, meant) in [
        ("depends-on:net", "`/net`"),
        ("depends-on:ONE", "`one`"),
        ("depends-on:two-a,/two-b", "`two-b`"),
    ] {
        let text = format!("stack {{\n  id = \"app\"\n  labels = [\"{label}\"]\n}}\n");
        sandbox.write("/app/stack.orch.hcl", text);
        let said = sandbox.orch("policy validate").stderr;
        let expected = format!("the label `{label}` of /app names");
        assert!(said.contains(&expected) && said.contains(meant), "{said}");
        // There, each warning is an error.
        assert_eq!(sandbox.orch("validate").code(), 3);
    }
    for label in ["depends-on:/net", "depends-on:one,two-a", "depends-on:else"] {
        let text = format!("stack {{\n  labels = [\"{label}\"]\n}}\n");
        sandbox.write("/app/stack.orch.hcl", text);
        let said = sandbox.orch("policy validate").stderr;
        assert!(!said.contains("warning"), "{said}");
    }
}

#[test]
fn why_names_the_policies_that_can_start_a_stack() {
    let clients = "package clients\nimport rego.v1\ntrigger contains \"three\" if {\n    input.run.state == \"FINISHED\"\n    startswith(input.stack.id, \"two\")\n}\n";
    let repair = "package repair\nimport rego.v1\ntrigger contains \"three\" if input.run.state == \"FAILED\"\n";
    let sandbox = sandbox(&[("clients", clients), ("repair", repair)]);
    let output = sandbox.orch("why three");
    let section = output.stdout.split("policies that can start it\n").nth(1);
    let section = section.unwrap_or_else(|| panic!("{output}"));
    let section = section.lines().take(8).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(section, @"
      clients (policies/clients.rego)
        after /two-a FINISHED
        after /two-b FINISHED
      repair (policies/repair.rego)
        after /one FAILED
        after /three FAILED
        after /two-a FAILED
        after /two-b FAILED
    ");
    let json = sandbox.orch("why three --format json").json();
    assert_eq!(
        json["started_by"][0],
        serde_json::json!({
            "policy": "clients",
            "file": "/policies/clients.rego",
            "after": [{"path": "/two-a", "state": "FINISHED"}, {"path": "/two-b", "state": "FINISHED"}],
        })
    );
    assert!(!sandbox.orch("why one").stdout.contains("can start it"));
    // A policy that is wrong keeps nobody from asking.
    sandbox.write("/policies/repair.rego", "package repair\ntrigger[");
    let output = sandbox.orch("why three");
    assert_eq!(output.code(), 0, "{output}");
    assert!(
        output.stderr.contains("see `orch policy validate`"),
        "{output}"
    );
}

#[test]
fn why_notes_policies_that_decide_by_what_only_a_run_knows() {
    let plain = "package plain\nimport rego.v1\ntrigger contains \"one\" if input.run.state == \"FAILED\"\n";
    let grown = "package grown\nimport rego.v1\ntrigger contains \"three\" if count(input.run.changes) > 0\n";
    let drifted = "package drifted\nimport rego.v1\ntrigger contains \"three\" if input.run.drift_detection\n";
    let sandbox = sandbox(&[("plain", plain), ("grown", grown), ("drifted", drifted)]);
    let output = sandbox.orch("why three");
    let note = "note: policies that read `changes` or `drift_detection` of a run may start more stacks than shown: drifted and grown";
    assert!(output.stderr.contains(note), "{output}");
    assert!(!output.stdout.contains("can start it"), "{output}");
}
