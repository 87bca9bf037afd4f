//! What references to instances name, and the order that they make.

use insta::assert_snapshot;

use super::networks;
use crate::support::Sandbox;

/// Returns what runs before a stack because of its `after`, in one line.
#[track_caller]
fn named(sandbox: &Sandbox, stack: &str) -> String {
    let list = sandbox.orch("list --format json").json();
    let stacks = list["stacks"].as_array().unwrap();
    let stack = stacks.iter().find(|it| it["path"] == stack);
    let before = stack.unwrap()["runs_after"].as_array().unwrap();
    let paths = before.iter().map(|it| it["path"].as_str().unwrap());
    paths.collect::<Vec<_>>().join(" ")
}

#[test]
fn references_match_all_instances_or_one() {
    let sandbox = networks();
    let table = [
        (
            "/net",
            r#"/net["dev"] /net["prod"] /net/dns["dev"] /net/dns["test"]"#,
        ),
        (
            "../net",
            r#"/net["dev"] /net["prod"] /net/dns["dev"] /net/dns["test"]"#,
        ),
        ("/net[*]", r#"/net["dev"] /net["prod"]"#),
        ("/net[\\\"dev\\\"]", r#"/net["dev"]"#),
        ("../net[\\\"dev\\\"]", r#"/net["dev"]"#),
        ("/net/[\\\"dev\\\"]", r#"/net["dev"]"#),
        ("/net/dns[\\\"test\\\"]", r#"/net/dns["test"]"#),
        ("tag:dev", r#"/account["dev"] /net["dev"]"#),
    ];
    for (reference, expected) in table {
        sandbox.write(
            "/user/stack.tm",
            format!("stack {{\n  after = [\"{reference}\"]\n}}\n"),
        );
        assert_eq!(named(&sandbox, "/user"), expected, "{reference}");
        let wants = format!("stack {{\n  wants = [\"{reference}\"]\n}}\n");
        sandbox.write("/user/stack.tm", wants);
        let wanted = sandbox.orch("-C user list --format json").json();
        let wanted = wanted["stacks"].as_array().unwrap().iter();
        let wanted: Vec<&str> = wanted
            .map(|it| it["path"].as_str().unwrap())
            .filter(|path| *path != "/user")
            .collect();
        assert_eq!(wanted.join(" "), expected, "{reference}");
    }
}

#[test]
fn references_to_a_missing_instance_say_why() {
    let sandbox = networks();
    sandbox.write(
        "/user/stack.tm",
        "stack {\n  after = [\n    \"/net[\\\"dve\\\"]\",\n    \"/app[\\\"dev\\\"]\",\n    \"/app[*]\",\n    \"/none[*]\",\n    \"/net[dev]\",\n    \"/net[\\\"dev\\\"]/dns\",\n    \"../../x[\\\"a\\\"]\",\n  ]\n}\n",
    );
    assert_snapshot!(sandbox.orch("validate"), @r#"
    [stderr]
    error: `/net["dve"]` in `after` matches no stack
     --> user/stack.tm:3:5
      |
    3 |     "/net[\"dve\"]",
      |     ^^^^^^^^^^^^^^^ no instance has this key
      |
      = help: did you mean `/net["dev"]`?

    error: `/app["dev"]` in `after` matches no stack
     --> user/stack.tm:4:5
      |
    4 |     "/app[\"dev\"]",
      |     ^^^^^^^^^^^^^^^ this stack has no instances

    error: `/app[*]` in `after` matches no stack
     --> user/stack.tm:5:5
      |
    5 |     "/app[*]",
      |     ^^^^^^^^^ this stack has no instances

    error: `/none[*]` in `after` matches no stack
     --> user/stack.tm:6:5
      |
    6 |     "/none[*]",
      |     ^^^^^^^^^^ no such directory

    error: `/net[dev]` in `after` matches no stack
     --> user/stack.tm:7:5
      |
    7 |     "/net[dev]",
      |     ^^^^^^^^^^^ no such directory
      |
      = help: did you mean `/net["dev"]`?

    error: `/net["dev"]/dns` in `after` matches no stack
     --> user/stack.tm:8:5
      |
    8 |     "/net[\"dev\"]/dns",
      |     ^^^^^^^^^^^^^^^^^^^ no such directory
      |
      = help: did you mean `/net["dev"]`?

    error: `../../x["a"]` leads out of the project
     --> user/stack.tm:9:5
      |
    9 |     "../../x[\"a\"]",
      |     ^^^^^^^^^^^^^^^^ climbs above the project root
      |
      = help: name a directory inside the project; a leading `/` is the project root

    [exit status 3]
    "#);
}

#[test]
fn nested_stacks_run_after_all_instances_or_the_one_with_their_key() {
    let sandbox = networks();
    sandbox.write("/net/plain/stack.tm", "stack {\n}\n");
    sandbox.write(
        "/net/dns/deep/stack.orch.hcl",
        "stack {\n  for_each = [\"prod\", \"test\"]\n}\n",
    );
    let both = r#"/net["dev"] /net["prod"]"#;
    assert_eq!(named(&sandbox, "/net/plain"), both);
    assert_eq!(named(&sandbox, "/net/dns[\"dev\"]"), r#"/net["dev"]"#);
    assert_eq!(named(&sandbox, "/net/dns[\"test\"]"), both);
    assert_eq!(
        named(&sandbox, "/net/dns/deep[\"test\"]"),
        r#"/net/dns["test"]"#
    );
    // Where no instance has its key, those further up count too: they may have other keys.
    assert_eq!(
        named(&sandbox, "/net/dns/deep[\"prod\"]"),
        r#"/net["prod"] /net/dns["dev"] /net/dns["test"]"#
    );
    sandbox.write("/net/dns/flat/stack.tm", "stack {\n}\n");
    assert_eq!(
        named(&sandbox, "/net/dns/flat"),
        r#"/net["dev"] /net["prod"] /net/dns["dev"] /net/dns["test"]"#
    );
    sandbox.write("/stack.orch.hcl", "stack {\n  for_each = [\"dev\"]\n}\n");
    assert_eq!(named(&sandbox, "/account[\"dev\"]"), r#"/["dev"]"#);
    assert_eq!(
        named(&sandbox, "/app").split(' ').next(),
        Some(r#"/["dev"]"#)
    );
}

/// All instances share one block, so what it says about its own directory concerns the others.
#[test]
fn references_to_the_own_directory_match_the_other_instances() {
    let sandbox = Sandbox::new("");
    let order = |attribute: &str| {
        let text = format!("stack {{\n  for_each = [\"a\", \"b\", \"c\"]\n  {attribute}\n}}\n");
        sandbox.write("/t/stack.orch.hcl", text);
        let output = sandbox.orch("list --order");
        assert_eq!(
            (output.code(), &*output.stderr),
            (0, ""),
            "{attribute}: {output}"
        );
        output.stdout.lines().collect::<Vec<_>>().join(" ")
    };
    // A reference to the instance's own key has no effect.
    assert_eq!(
        order("after = [\"/t[\\\"b\\\"]\"]"),
        r#"t["b"] t["a"] t["c"]"#
    );
    assert_eq!(
        order("after = [\".[\\\"c\\\"]\"]"),
        r#"t["c"] t["a"] t["b"]"#
    );
    assert_eq!(
        order("before = [\"[\\\"b\\\"]\"]"),
        r#"t["a"] t["c"] t["b"]"#
    );
    // Nor has a tag that no other stack carries.
    assert_eq!(
        order("tags = [each.key]\n  after = [\"tag:b\"]"),
        r#"t["b"] t["a"] t["c"]"#
    );
    assert_eq!(
        order("after = each.key == \"a\" ? [\".\"] : []"),
        r#"t["b"] t["c"] t["a"]"#
    );
    assert_eq!(
        order("after = each.key == \"a\" ? [\"/t[*]\"] : []"),
        r#"t["b"] t["c"] t["a"]"#
    );
    assert_eq!(order("wants = [\".\"]"), r#"t["a"] t["b"] t["c"]"#);
    let wanting = sandbox.orch("list --why --match 't[\"b\"]'");
    assert_snapshot!(wanting, @r#"
    t["a"]  # wanted by /t["b"] (t/stack.orch.hcl:3)
    t["b"]  # at or below /; matches --match t["b"]
    t["c"]  # wanted by /t["b"] (t/stack.orch.hcl:3)
    "#);
    // If each runs after the others, that is a cycle.
    sandbox.write(
        "/t/stack.orch.hcl",
        "stack {\n  for_each = [\"a\", \"b\"]\n  after    = [\"/t\"]\n}\n",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in a cycle: `/t["a"]` → `/t["b"]`
     --> t/stack.orch.hcl:3:15
      |
    3 |   after    = ["/t"]
      |               ^^^^
      |               |
      |               `/t["a"]` runs before `/t["b"]` (after)
      |               `/t["b"]` runs before `/t["a"]` (after)
      |
      = help: remove one of these references

    [exit status 3]
    "#);
    // Where there are no others, there is nothing to wait for.
    sandbox.write(
        "/t/stack.orch.hcl",
        "stack {\n  for_each = [\"a\"]\n  after    = [\"/t\", \"/t[*]\", \".\"]\n}\n",
    );
    assert_snapshot!(sandbox.orch("validate"), @"
    [stderr]
    note: no problems found: 1 stack, 2 configuration files
    ");
}

#[test]
fn references_to_a_directory_above_skip_sibling_instances_and_their_nested_stacks() {
    let sandbox = Sandbox::new(
        r#"
//- /env/net/stack.orch.hcl
stack {
  for_each = ["a", "b"]
  before   = ["/env"]
}
//- /env/net/nested/stack.tm
stack {
}
//- /env/app/stack.orch.hcl
stack {
  for_each = ["x", "y"]
}
"#,
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    env/net["a"]
    env/net["b"]
    env/app["x"]
    env/app["y"]
    env/net/nested
    "#);
    let both = r#"/env/net["a"] /env/net["b"]"#;
    assert_eq!(named(&sandbox, "/env/app[\"x\"]"), both);
    assert_eq!(named(&sandbox, "/env/net/nested"), both);
    assert_eq!(named(&sandbox, "/env/net[\"b\"]"), "");
    // `after` with an ancestor that has instances means these, and nothing else below it.
    sandbox.write(
        "/env/stack.orch.hcl",
        "stack {\n  for_each = [\"p\", \"q\"]\n}\n",
    );
    sandbox.write(
        "/env/net/stack.orch.hcl",
        "stack {\n  for_each = [\"a\"]\n  after = [\"/env\"]\n}\n",
    );
    assert_eq!(named(&sandbox, "/env/net[\"a\"]"), r#"/env["p"] /env["q"]"#);
}

#[test]
fn neighbour_flags_add_single_instances() {
    let sandbox = networks();
    let list = |arguments: &str| {
        let output = sandbox.orch(&format!("list {arguments}"));
        assert_eq!(output.code(), 0, "{output}");
        output.stdout.lines().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        list("--match 'net[\"dev\"]' --include-dependencies"),
        r#"account["dev"] net["dev"]"#
    );
    assert_eq!(
        list("--match 'account[\"prod\"]' --only-dependents=1"),
        r#"net["prod"]"#
    );
    assert_eq!(
        list("--match 'account[\"prod\"]' --include-dependents"),
        r#"account["prod"] app net["prod"] net/dns["test"]"#
    );
    assert_eq!(list("--match 'net[\"none\"]' --include-dependents"), "");
}

#[test]
fn order_holds_through_instances_that_are_not_selected() {
    let sandbox = networks();
    assert_snapshot!(sandbox.orch("list --order --match app --match 'account[\"prod\"]'"), @r#"
    account["prod"]
    app
    "#);
    assert_snapshot!(sandbox.orch("why app --after 'account[\"prod\"]'"), @r#"
    /app runs after /account["prod"]
      /app runs after /net["prod"], after app/stack.tm:2
      /net["prod"] runs after /account["prod"], after net/stack.orch.hcl:5
    "#);
    assert_snapshot!(sandbox.orch("run --dry-run --reverse --tags dev git status"), @r#"
    /net["dev"]: git status
    /account["dev"]: git status
    "#);
}

/// A collection may be empty for a while: what is nested waits for nothing then.
#[test]
fn references_to_an_enclosing_empty_for_each_match_nothing() {
    let sandbox = Sandbox::new("");
    sandbox.write("/net/stack.orch.hcl", "stack {\n  for_each = {}\n}\n");
    for name in ["a", "b", "c"] {
        let stack = "stack {\n  after = [\"/net\"]\n}\n";
        sandbox.write(&format!("/net/{name}/stack.tm"), stack);
    }
    assert_snapshot!(sandbox.orch("list --order"), @"
    net/a
    net/b
    net/c
    ");
}
