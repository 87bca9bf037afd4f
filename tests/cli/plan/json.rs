//! What the JSON of a plan says besides actions.

use serde_json::{Value, json};

use super::project;
use crate::support::{Output, Repository, Sandbox};

const CHANGES: &str = "exit 2";

const STATE: &str = "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";

/// A repository whose stacks are recorded as they are.
fn recorded(sandbox: Sandbox) -> Repository {
    sandbox.write("/state.orch.hcl", STATE);
    let repository = Repository::of(sandbox);
    for command in ["state init", "state adopt --no-verify"] {
        assert_eq!(repository.orch(command).code(), 0, "{command}");
    }
    repository
}

/// Returns a field of each stack.
#[track_caller]
fn of_stacks(output: &Output, field: &str) -> Vec<Value> {
    let plan = output.json();
    let stacks = plan["stacks"].as_array().unwrap().iter();
    stacks.map(|stack| stack[field].clone()).collect()
}

#[test]
fn plan_json_has_the_options_without_values_of_tool_options() {
    let sandbox = project(&[("/a", CHANGES)]);
    let plan = sandbox.orch("plan --format json").json();
    let nothing = json!({
        "full": false, "init": false, "allow_rollback": false, "replace": [], "arguments": false
    });
    assert_eq!(plan["options"], nothing);
    let output =
        sandbox.orch("plan -o plan --full --replace a --init --allow-rollback -- -var s=hunter2");
    assert_eq!(output.code(), 0, "{output:?}");
    let shown = sandbox.orch("show plan --format json");
    let all = json!({
        "full": true, "init": true, "allow_rollback": true, "replace": ["a"], "arguments": true,
        "tool_options": ["-var"]
    });
    assert_eq!(shown.json()["options"], all);
    assert!(!shown.stdout.contains("hunter2"), "{shown:?}");
}

#[test]
fn plan_json_has_the_file_of_a_reason() {
    let sandbox = project(&[("/a", CHANGES), ("/b", "exit 0"), ("/c", CHANGES)]);
    let repository = recorded(sandbox);
    repository.write("/a/more", "");
    let read = "\n\nstack {\n  driver = \"fake\"\n  mode   = \"read\"\n}\n";
    repository.write("/b/stack.orch.hcl", read);
    assert_eq!(repository.orch("trigger c --reason why").code(), 0);
    let says = "echo '{\"action\":\"replace\"}' > \"$ORCH_ANSWER\"";
    repository.write("/a/says", says);
    let reasons = of_stacks(&repository.orch("plan --format json"), "reason");
    let place = |reason: &Value| (reason["file"].clone(), reason["line"].clone());
    // `/a` is replaced because its driver says so: the place is that of the driver.
    assert_eq!(place(&reasons[0]), (json!("orch.orch.hcl"), json!(2)));
    assert_eq!(place(&reasons[1]), (json!("b/stack.orch.hcl"), json!(3)));
    let trigger = reasons[2]["file"].as_str().unwrap();
    assert!(repository.path("/").join(trigger).is_file(), "{reasons:?}");
    repository.write("/a/says", CHANGES);
    let reasons = of_stacks(&repository.orch("plan --format json"), "reason");
    let differs = json!({
        "source": "config", "text": "a/more differs", "file": "a/more", "line": null
    });
    assert_eq!(reasons[0], differs);
}

#[test]
fn plan_json_has_the_applied_commit_and_path() {
    let sandbox = project(&[("/a", "exit 0"), ("/b", "exit 0")]);
    let with_id = "stack {\n  id = \"one\"\n  driver = \"fake\"\n}\n";
    sandbox.write("/a/stack.orch.hcl", with_id);
    let repository = recorded(sandbox);
    let applied = json!(repository.git("rev-parse HEAD").trim());
    repository.git("mv a moved");
    repository.git("commit -q -m moved");
    repository.write("/new/stack.orch.hcl", "stack {\n  driver = \"fake\"\n}\n");
    repository.write("/new/says", CHANGES);
    let output = repository.orch("plan --format json");
    let expected = [Value::Null, json!("/a"), Value::Null];
    assert_eq!(
        of_stacks(&output, "path"),
        [json!("/b"), json!("/moved"), json!("/new")]
    );
    assert_eq!(of_stacks(&output, "previous_path"), expected);
    let expected = [applied.clone(), applied, Value::Null];
    assert_eq!(of_stacks(&output, "source_commit"), expected);
}
