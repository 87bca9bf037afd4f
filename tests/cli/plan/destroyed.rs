//! Plans to destroy: in which order, and what may not stay.

use super::project;
use crate::support::{Repository, Sandbox};

const STATE: &str = "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";

/// The stack block of the driver `fake` with more lines.
fn stack(more: &str) -> String {
    format!("stack {{\n  driver = \"fake\"\n  {more}\n}}\n")
}

/// A project with a state in which no stack is recorded: each with a line of its block.
fn with_state(stacks: &[(&str, &str)]) -> Repository {
    let asked: Vec<(&str, &str)> = stacks.iter().map(|&(path, _)| (path, "exit 2")).collect();
    let sandbox = project(&asked);
    for (path, more) in stacks {
        sandbox.write(&format!("{path}/stack.orch.hcl"), stack(more));
    }
    sandbox.write("/state.orch.hcl", STATE);
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("state init").code(), 0);
    repository
}

/// The same with all stacks recorded.
fn recorded(stacks: &[(&str, &str)]) -> Repository {
    let repository = with_state(stacks);
    let adopted = repository.orch("state adopt --no-verify");
    assert_eq!(adopted.code(), 0, "{adopted:?}");
    repository
}

/// Changes what is recorded of a stack.
fn change_entry(sandbox: &Sandbox, key: &str, change: impl FnOnce(&mut serde_json::Value)) {
    const FILE: &str = "/.orch/state/default.json";
    let mut document: serde_json::Value = serde_json::from_str(&sandbox.read(FILE)).unwrap();
    change(&mut document["stacks"][key]);
    sandbox.write(FILE, document.to_string());
}

/// The stacks of the operations of a plan to destroy, and what it leaves out.
fn destroyed(sandbox: &Sandbox) -> (Vec<String>, serde_json::Value) {
    let plan = sandbox.orch("plan --destroy --format json").json();
    let operations = plan["operations"].as_array().unwrap().iter();
    let path = |operation: &serde_json::Value| operation["path"].as_str().unwrap().to_owned();
    (operations.map(path).collect(), plan["relaxed"].clone())
}

#[test]
fn plan_destroys_in_reverse_recorded_order() {
    let sandbox = recorded(&[("/a", ""), ("/b", "after = [\"/a\"]"), ("/c", "")]);
    // Now it is the other way round, and `/d` was never recorded.
    sandbox.write("/a/stack.orch.hcl", stack("after = [\"/b\"]"));
    sandbox.write("/b/stack.orch.hcl", stack(""));
    sandbox.write("/d/stack.orch.hcl", stack("after = [\"/b\"]"));
    sandbox.write("/d/says", "exit 2");
    let (operations, relaxed) = destroyed(&sandbox);
    assert_eq!(operations, ["/c", "/d", "/b", "/a"]);
    assert_eq!(relaxed, serde_json::json!([]));
}

#[test]
fn plan_destroys_a_moved_stack_before_its_recorded_dependencies() {
    let sandbox = recorded(&[
        ("/a", "id = \"one\""),
        ("/b", "after = [\"/a\"]\n  id = \"other\""),
        ("/c", "after = [\"/b\"]"),
    ]);
    std::fs::rename(sandbox.path("/a"), sandbox.path("/y")).unwrap();
    std::fs::rename(sandbox.path("/b"), sandbox.path("/x")).unwrap();
    sandbox.write("/x/stack.orch.hcl", stack("id = \"other\""));
    sandbox.write("/c/stack.orch.hcl", stack(""));
    assert_eq!(destroyed(&sandbox).0, ["/c", "/x", "/y"]);
    // What is gone still keeps the others apart.
    std::fs::remove_dir_all(sandbox.path("/x")).unwrap();
    std::fs::rename(sandbox.path("/y"), sandbox.path("/b")).unwrap();
    assert_eq!(destroyed(&sandbox).0, ["/c", "/b"]);
}

#[test]
fn plan_reports_contradicting_recorded_constraints() {
    let sandbox = recorded(&[
        ("/a", ""),
        ("/b", "after = [\"/a\"]"),
        ("/c", ""),
        ("/d", ""),
    ]);
    change_entry(&sandbox, "/a", |entry| {
        entry["after"] = serde_json::json!(["/b", "/c"]);
        entry["applied"]["serial"] = serde_json::json!(7);
    });
    let (operations, relaxed) = destroyed(&sandbox);
    assert_eq!(operations, ["/a", "/b", "/c", "/d"]);
    assert_eq!(
        relaxed,
        serde_json::json!([{ "effect": "contradicted", "earlier": "/a", "later": "/b" }])
    );
    let told = "Left out: /b ran after /a by record, which newer constraints contradict.\n";
    let output = sandbox.orch("plan --destroy");
    assert!(output.stdout.contains(told), "{output:?}");
    // Nothing is left out for those that it does not concern.
    let output = sandbox.orch("plan --destroy --match c --match d");
    assert!(!output.stdout.contains("Left out"), "{output:?}");
    assert!(!sandbox.orch("plan").stdout.contains("Left out"));
}

#[test]
fn plan_warns_of_kept_dependents_of_destroyed_stacks() {
    let sandbox = recorded(&[
        ("/a", ""),
        ("/b", "after = [\"/a\"]"),
        ("/c", "after = [\"/b\"]"),
    ]);
    let warnings = |arguments: &str| -> Vec<String> {
        let output = sandbox.orch(&format!("plan --destroy {arguments}"));
        assert_eq!(output.code(), 0, "{output:?}");
        let lines = output.stderr.lines();
        let warnings = lines.filter(|line| line.starts_with("warning: "));
        warnings.map(str::to_owned).collect()
    };
    let stays = |stays: &str, goes: &str| {
        format!(
            "warning: `{stays}` depends on `{goes}`, which would be destroyed: an apply is refused"
        )
    };
    assert_eq!(warnings(""), Vec::<String>::new());
    assert_eq!(warnings("--match c"), Vec::<String>::new());
    assert_eq!(
        warnings("--match a --match b"),
        [stays("/c", "/b")],
        "not in the selection"
    );
    assert_eq!(
        warnings("--match a"),
        [stays("/b", "/a")],
        "the nearest is enough"
    );
    // What the tool knows of does not exist.
    let nothing = "echo '{\"exists\": false}' > \"$ORCH_ANSWER\"";
    sandbox.write("/b/says", nothing);
    assert_eq!(warnings("--match a --match b"), [stays("/c", "/a")]);
    assert_eq!(warnings(""), Vec::<String>::new());
    sandbox.write("/b/says", "exit 2");
    // What is not recorded does not, either, and what is only read is not destroyed.
    assert_eq!(sandbox.orch("state forget b").code(), 0);
    assert_eq!(warnings("--match a"), [stays("/c", "/a")]);
    sandbox.write(
        "/c/stack.orch.hcl",
        stack("after = [\"/b\"]\n  mode = \"read\""),
    );
    assert_eq!(warnings("--match a"), Vec::<String>::new());
    sandbox.write(
        "/c/stack.orch.hcl",
        stack("after = [\"/b\"]").replace("fake", "none"),
    );
    assert_eq!(warnings("--match a"), Vec::<String>::new());
    // Nobody has destroyed what is gone from the tree.
    std::fs::remove_dir_all(sandbox.path("/c")).unwrap();
    assert_eq!(warnings("--match a"), [stays("/c", "/a")]);
    assert_eq!(sandbox.orch("state forget c").code(), 0);
    assert_eq!(warnings("--match a"), Vec::<String>::new());
}

#[test]
fn plan_keeps_blocked_stacks() {
    let repository = with_state(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    repository.write("/b/more", "");
    repository.git("add -A");
    repository.git("commit -q -m more");
    assert_eq!(repository.orch("state adopt --no-verify").code(), 0);
    repository.git("checkout -q HEAD~1");
    let output = repository.orch("plan --destroy");
    assert!(output.stdout.contains("! /b"), "{output:?}");
    let told = "`/b` depends on `/a`, which would be destroyed";
    assert!(output.stderr.contains(told), "{output:?}");
    let output = repository.orch("plan --destroy --allow-rollback");
    assert!(!output.stderr.contains("depends on"), "{output:?}");
}

#[test]
fn plan_without_state_keeps_every_stack_with_a_driver() {
    let sandbox = project(&[("/a", "exit 2"), ("/b", "exit 2"), ("/c", "exit 2")]);
    sandbox.write("/b/stack.orch.hcl", stack("after = [\"/a\"]"));
    sandbox.write("/c/stack.orch.hcl", "stack {\n  after = [\"/a\"]\n}\n");
    let output = sandbox.orch("plan --destroy --match a");
    let warnings = output.stderr.lines();
    let warnings = warnings.filter(|line| line.starts_with("warning: "));
    let expected = "warning: `/b` depends on `/a`, which would be destroyed: an apply is refused";
    assert_eq!(warnings.collect::<Vec<_>>(), [expected], "{output:?}");
    // A plan that destroys nothing leaves nothing behind.
    let output = sandbox.orch("plan --match a");
    assert!(!output.stderr.contains("depends on"), "{output:?}");
}
