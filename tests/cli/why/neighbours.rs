//! What runs before and after a stack.

use insta::assert_snapshot;
use serde_json::json;

use super::SHOP;
use crate::support::Sandbox;

#[test]
fn why_shows_effective_neighbours_with_the_path_to_them() {
    let sandbox = Sandbox::layout(
        "
        a [x]
        b after /a
        c after /b
        d [x] after /c",
    );
    assert_snapshot!(sandbox.orch("why d --tags x"), @"
    /d is selected
      at or below /
      matches --tags x

    its inputs (add --changed to see which have changed)
      /d, its own directory

    it runs after
      /c, after d/stack.tm:3, not selected
      /a, through /b and /c, which are not selected
        after b/stack.tm:2, after c/stack.tm:2, after d/stack.tm:3

    nothing runs after it
    ");
    assert_snapshot!(sandbox.orch("why b --tags x"), @"
    /b is not selected
      does not match --tags x (it has no tags)

    its inputs (add --changed to see which have changed)
      /b, its own directory

    it runs after
      /a, after b/stack.tm:2, selected

    it runs before
      /c, after c/stack.tm:2, not selected
      /d, through /c, which is not selected
        after c/stack.tm:2, after d/stack.tm:3

    what would select it
      no --tags, since it has none
      --include-dependents=1, since it runs after /a, which is selected
      --include-dependencies=2, since it runs before /d, which is selected
    ");
    let story = sandbox.orch("why a --tags x --format json").json();
    assert_eq!(
        story["runs_before"],
        json!([
            {
                "path": "/b",
                "selected": false,
                "origins": [{"kind": "after", "file": "b/stack.tm", "line": 2}],
            },
            {
                "path": "/d",
                "selected": true,
                "origins": [
                    {"kind": "after", "file": "b/stack.tm", "line": 2},
                    {"kind": "after", "file": "c/stack.tm", "line": 2},
                    {"kind": "after", "file": "d/stack.tm", "line": 3},
                ],
                "via": ["/b", "/c"],
            },
        ])
    );
}

#[test]
fn why_after_explains_each_hop() {
    let sandbox = Sandbox::layout(SHOP);
    assert_snapshot!(sandbox.orch("why app --after network"), @"
    /app runs after /network
      /app runs after /database, after app/stack.tm:3
      /database runs after /network, after database/stack.tm:3
    ");
    assert_snapshot!(sandbox.orch("why network --after /app"), @"
    /network does not run after /app, but before it
      /app runs after /database, after app/stack.tm:3
      /database runs after /network, after database/stack.tm:3
    ");
    assert_snapshot!(sandbox.orch("why app --after monitoring"), @"/app does not run after /monitoring: nothing orders the two");
    assert_eq!(
        sandbox.orch("why app --after network --format json").json(),
        json!({
            "format": 1,
            "stacks": [{"path": "/app"}, {"path": "/network"}],
            "path": "/app",
            "after": "/network",
            "runs_after": true,
            "runs_before": false,
            "chain": [
                {"path": "/app", "runs_after": "/database", "kind": "after", "file": "app/stack.tm", "line": 3},
                {"path": "/database", "runs_after": "/network", "kind": "after", "file": "database/stack.tm", "line": 3},
            ],
            "valid": true,
            "diagnostics": [],
            "errors": [],
        })
    );
    let story = sandbox
        .orch("why app --after monitoring --format json")
        .json();
    assert_eq!(
        (&story["runs_after"], &story["chain"]),
        (&json!(false), &json!([]))
    );
    let output = sandbox.orch("why app --after network --tags web");
    assert_eq!(output.code(), 64, "{output}");
    let output = sandbox.orch("why app --after network --include-dependents");
    assert_eq!(output.code(), 64, "{output}");
    let cycle = Sandbox::layout("a after /b\n b after /a");
    assert_snapshot!(cycle.orch("why a --after a").stdout, @"
    /a runs after /a
      /a runs after /b, after a/stack.tm:2
      /b runs after /a, after b/stack.tm:2
    ");
}

#[test]
fn why_after_names_every_origin_of_a_constraint() {
    let sandbox = Sandbox::layout(
        "
        a before /a/b
        a/b [x] after /a tag:x
        a/c [x] after /a/b
        d before /a",
    );
    assert_snapshot!(sandbox.orch("why a/b"), @r#"
    /a/b is selected
      at or below /

    its inputs (add --changed to see which have changed)
      /a/b, its own directory

    it runs after
      /a, nesting a/b/stack.tm:1, before a/stack.tm:2, after a/b/stack.tm:3, selected
      /a/c, after a/b/stack.tm:3, selected
      /d, before d/stack.tm:2, selected

    it runs before
      /a/c, after a/c/stack.tm:3, selected
    [stderr]
    warning: stacks wait for each other in a cycle: `/a/b` → `/a/c`
     --> a/c/stack.tm:3:12
      |
    3 |   after = ["/a/b"]
      |            ^^^^^^ `/a/b` runs before `/a/c` (after)
      |
     ::: a/b/stack.tm:3:18
      |
    3 |   after = ["/a", "tag:x"]
      |                  ------- `/a/c` runs before `/a/b` (after)
      |
      = help: remove one of these references
    "#);
}

#[test]
fn why_explains_a_stack_in_a_cycle() {
    let sandbox = Sandbox::layout(
        "
        a after /b
        b after /a",
    );
    assert_snapshot!(sandbox.orch("why a"), @r#"
    /a is selected
      at or below /

    its inputs (add --changed to see which have changed)
      /a, its own directory

    it runs after
      /b, after a/stack.tm:2, selected

    it runs before
      /b, after b/stack.tm:2, selected
    [stderr]
    warning: stacks wait for each other in a cycle: `/a` → `/b`
     --> b/stack.tm:2:12
      |
    2 |   after = ["/a"]
      |            ^^^^ `/a` runs before `/b` (after)
      |
     ::: a/stack.tm:2:12
      |
    2 |   after = ["/b"]
      |            ---- `/b` runs before `/a` (after)
      |
      = help: remove one of these references
    "#);
}
