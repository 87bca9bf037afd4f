//! What the tools answer, and what becomes of it.

use insta::assert_snapshot;

use super::project;
use crate::support::Repository;

const CHANGES: &str = "echo '{\"add\":1,\"change\":2}' > \"$ORCH_ANSWER\"; exit 2";

#[test]
fn plan_prints_a_line_for_each_stack_with_work() {
    let sandbox = project(&[("/a", CHANGES), ("/b", "exit 0"), ("/c", "exit 2")]);
    let output = sandbox.orch("plan");
    assert_eq!(output.code(), 0, "{output:?}");
    assert_snapshot!(output.stdout, @"
      ~ /a  update  has changes  +1 ~2 -0
      ~ /c  update  has changes

    Plan: 2 to update, 1 unchanged. Resources: 1 to create, 2 to change, unknown in 1 stack.
    ");
    assert!(output.stderr.contains("keeps no state"), "{output:?}");
    assert_eq!(sandbox.orch("plan --detailed-exitcode").code(), 2);
    assert_eq!(sandbox.orch("plan --detailed-exitcode --match b").code(), 0);
}

#[test]
fn plan_marks_stacks_that_the_apply_decides() {
    let sandbox = project(&[("/a", CHANGES), ("/b", "exit 0"), ("/c", "exit 1")]);
    let after = |it: &str| format!("stack {{\n  driver = \"fake\"\n  after = [\"{it}\"]\n}}\n");
    sandbox.write("/b/stack.orch.hcl", after("/a"));
    sandbox.write("/c/stack.orch.hcl", after("/b"));
    // The tool of `/c` fails, perhaps because `/a` is not there yet.
    let output = sandbox.orch("plan");
    assert_eq!(output.code(), 0, "{output:?}");
    assert_snapshot!(output.stdout, @"
      ~ /a  update  has changes  +1 ~2 -0
      ? /b  known after /a
      ? /c  known after /a; cannot be planned yet: exit status 1

    Plan: 1 to update, 2 known after apply. Resources: 1 to create, 2 to change.
    ");
}

#[test]
fn plan_names_the_first_stacks_that_decide_another() {
    let paths: Vec<String> = (0..25).map(|number| format!("/base/{number:02}")).collect();
    let stacks = paths.iter().map(|path| (path.as_str(), "exit 2"));
    let sandbox = project(&stacks.chain([("/top", "exit 0")]).collect::<Vec<_>>());
    let top = "stack {\n  driver = \"fake\"\n  after = [\"/base\"]\n}\n";
    sandbox.write("/top/stack.orch.hcl", top);
    let told = |of: &str, expected: &str, n_named: usize, has_more: bool| {
        let output = sandbox.orch(&format!("plan {of} --match top"));
        let line = format!("known after /base/00, /base/01, /base/02 {expected}\n");
        assert!(output.stdout.contains(&line), "{output:?}");
        let plan = sandbox.orch(&format!("plan {of} --match top --format json"));
        let plan = plan.json();
        let entry = plan["stacks"].as_array().unwrap().last().unwrap();
        assert_eq!(entry["conditional"].as_array().unwrap().len(), n_named);
        assert_eq!(entry["conditional_on_more"], has_more);
    };
    told("--match 'base/*'", "and more than 17 others", 20, true);
    told("--match 'base/[01]*'", "and 17 more", 20, false);
    told("--match 'base/0[0-3]'", "and 1 more", 4, false);
}

#[test]
fn plan_fails_with_the_output_of_a_failed_tool() {
    let sandbox = project(&[
        ("/a", "echo on stdout; echo on stderr >&2; exit 1"),
        ("/b", CHANGES),
    ]);
    let output = sandbox.orch("plan --format json");
    assert_eq!(output.code(), 1, "{output:?}");
    let plan = output.data();
    assert_eq!(plan["errored"], true);
    assert_eq!(plan["applyable"], false);
    assert_eq!(plan["failed"][0]["path"], "/a");
    assert_eq!(plan["stacks"][0]["path"], "/b");
    assert_eq!(plan["stacks"][0]["changes"]["change"], 2);
    for line in ["orch: /a: exit status 1", "on stdout", "on stderr"] {
        assert!(output.stderr.contains(line), "{line}: {output:?}");
    }
}

#[test]
fn plan_checks_the_action_that_a_driver_answers() {
    let says = |action: &str, status: u8| {
        format!("echo '{{\"action\":\"{action}\"}}' > \"$ORCH_ANSWER\"; exit {status}")
    };
    let replace = says("replace", 0);
    let no_op = says("no-op", 2);
    let sandbox = project(&[("/a", &*replace), ("/b", &*no_op)]);
    assert_snapshot!(sandbox.orch("plan").stdout, @"
      -/+ /a  replace  the driver asks for it

    Plan: 1 to replace, 1 unchanged.
    ");
    let without = sandbox
        .read("/orch.orch.hcl")
        .replace("  may_replace = true\n", "");
    sandbox.write("/orch.orch.hcl", without);
    let output = sandbox.orch("plan --match a");
    assert_eq!(output.code(), 1);
    assert!(output.stderr.contains("`may_replace = true`"), "{output:?}");
    sandbox.write("/a/says", "echo '{\"actoin\":1}' > \"$ORCH_ANSWER\"");
    let output = sandbox.orch("plan --match a");
    assert_eq!(output.code(), 1);
    assert!(output.stderr.contains("actoin"), "{output:?}");
}

#[test]
fn plan_passes_the_action_to_the_driver() {
    let says = "echo \"$ORCH_ACTION $1 $2\" > asked";
    let sandbox = project(&[("/a", says)]);
    let asked = |arguments: &str| {
        assert_eq!(sandbox.orch(arguments).code(), 0, "{arguments}");
        sandbox.read("/a/asked").trim().to_owned()
    };
    assert_eq!(asked("plan"), "update");
    assert_eq!(asked("plan --destroy"), "delete");
    assert_eq!(asked("plan -- one two"), "update one two");
    // Nothing is there to be replaced.
    assert_eq!(asked("plan --replace a"), "create");
    let conflict = sandbox.orch("plan --replace nowhere");
    assert_eq!(conflict.code(), 64);
    assert!(conflict.stderr.contains("no stack"), "{conflict:?}");
    assert_eq!(sandbox.orch("plan --destroy --refresh-only").code(), 64);
}

#[test]
fn plan_is_recorded_as_a_run_without_resume() {
    let sandbox = project(&[("/a", "echo from the tool; exit 1")]);
    assert_eq!(sandbox.orch("plan").code(), 1);
    assert!(sandbox.orch("runs list").stdout.contains("orch plan"));
    let logs = sandbox.orch("runs logs last");
    assert!(logs.stdout.contains("from the tool"), "{logs:?}");
    let resumed = sandbox.orch("run --resume");
    assert_eq!(resumed.code(), 4);
    assert!(resumed.stderr.contains("`orch plan`"), "{resumed:?}");
    // What the tools answer may be secret, also that of a plan that was killed.
    sandbox.write("/.orch/plans/orch-killed/0/plan", "secret");
    sandbox.write("/.orch/plans/orch-killed/in-use", "");
    assert_eq!(sandbox.orch("plan").code(), 1);
    let left = std::fs::read_dir(sandbox.path("/.orch/plans")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn plan_asks_only_tools_of_changed_stacks() {
    let sandbox = project(&[
        ("/a", "touch ../asked-a; exit 2"),
        ("/b", "touch ../asked-b"),
    ]);
    let state = "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";
    sandbox.write("/state.orch.hcl", state);
    sandbox.write("/.gitignore", "asked-*\n");
    let sandbox = Repository::of(sandbox);
    assert_eq!(sandbox.orch("state init").code(), 0);
    assert_snapshot!(sandbox.orch("plan").stdout, @"
      + /a  create  not recorded
      = /b  adopt   exists, and is not recorded

    Plan: 1 to create, 1 to adopt.
    ");
    assert_eq!(sandbox.orch("state adopt --no-verify").code(), 0);
    std::fs::remove_file(sandbox.path("/asked-a")).unwrap();
    std::fs::remove_file(sandbox.path("/asked-b")).unwrap();
    assert_snapshot!(sandbox.orch("plan").stdout, @"Plan: nothing to do. 2 unchanged.");
    assert!(
        !sandbox.path("/asked-a").exists(),
        "its inputs are those recorded"
    );
    assert_eq!(sandbox.orch("plan --full").code(), 0);
    assert!(sandbox.path("/asked-a").exists());
    std::fs::rename(sandbox.path("/b"), sandbox.path("/c")).unwrap();
    let output = sandbox.orch("plan");
    let told = "warning: `/b` is recorded but not in the project, and is not destroyed: its deletion is not committed";
    assert!(output.stderr.contains(told), "{output:?}");
    std::fs::rename(sandbox.path("/c"), sandbox.path("/b")).unwrap();
    sandbox.write("/a/more", "");
    assert_eq!(sandbox.orch("state taint b").code(), 0);
    assert_snapshot!(sandbox.orch("plan").stdout, @"
        ~ /a  update   a/more differs
      -/+ /b  replace  tainted

    Plan: 1 to update, 1 to replace.
    ");
}

#[test]
fn plan_blocks_rollbacks() {
    let sandbox = project(&[("/a", "exit 2"), ("/b", "exit 2")]);
    let state = "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";
    sandbox.write("/state.orch.hcl", state);
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("state init").code(), 0);
    repository.write("/a/more", "");
    repository.git("add -A");
    repository.git("commit -q -m more");
    assert_eq!(repository.orch("state adopt --no-verify").code(), 0);
    repository.git("checkout -q HEAD~1");
    let blocked = |arguments: &str| {
        let plan = repository
            .orch(&format!("plan --format json {arguments}"))
            .json();
        let stacks = plan["stacks"].as_array().unwrap().iter();
        let told = stacks.map(|stack| stack["blocked"].is_string());
        told.collect::<Vec<bool>>()
    };
    assert_eq!(blocked(""), [true, false]);
    assert_eq!(blocked("--allow-rollback"), [false, false]);
    assert_eq!(repository.orch("plan --detailed-exitcode").code(), 4);
    // Changes of its own do not bring a branch what it lacks.
    repository.git("checkout -q -b side");
    repository.write("/a/other", "");
    repository.git("add -A");
    repository.git("commit -q -m side");
    assert_eq!(blocked(""), [true, false]);
}
