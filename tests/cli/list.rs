//! `orch list`: text, reasons, JSON.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::Sandbox;

#[test]
fn stacks_are_listed_in_path_order() {
    let sandbox = Sandbox::layout(
        "
        b
        a-b
        a/c
        a
        a/c/d/e",
    );
    assert_snapshot!(sandbox.orch("list"), @"
    a
    a-b
    a/c
    a/c/d/e
    b
    ");
}

#[test]
fn paths_are_relative_to_the_current_directory() {
    let sandbox = Sandbox::layout(
        "
        a wants /b /a/c/d
        a/c
        a/c/d
        b",
    );
    assert_snapshot!(sandbox.orch_in("/a", "list"), @"
    .
    c
    c/d
    ../b
    ");
    assert_snapshot!(sandbox.orch_in("/a/c", "list"), @"
    .
    d
    ");
    assert_snapshot!(sandbox.orch("-C a/c list"), @"
    .
    d
    ");
}

#[test]
fn the_stack_at_the_root_is_listed_as_a_dot() {
    let sandbox = Sandbox::layout(
        "
        /
        a",
    );
    assert_snapshot!(sandbox.orch("list"), @"
    .
    a
    ");
    assert_snapshot!(sandbox.orch("list --order"), @"
    .
    a
    ");
}

#[test]
fn order_lists_in_the_order_of_a_run() {
    let sandbox = Sandbox::layout(
        "
        a after /b
        b after /c
        c",
    );
    assert_snapshot!(sandbox.orch("list"), @"
    a
    b
    c
    ");
    assert_snapshot!(sandbox.orch("list --order"), @"
    c
    b
    a
    ");
}

#[test]
fn run_order_is_another_name_of_order() {
    let sandbox = Sandbox::layout(
        "
        a after /b
        b",
    );
    assert_eq!(
        sandbox.orch("list --run-order").to_string(),
        sandbox.orch("list --order").to_string()
    );
}

#[test]
fn why_gives_the_reasons_of_each_stack() {
    let sandbox = Sandbox::layout(
        "
        apps/web [web] wants /base
        apps/api
        base wants /deep
        deep
        monitoring wanted_by /apps",
    );
    assert_snapshot!(sandbox.orch("list --why"), @"
    apps/api  # at or below /
    apps/web  # at or below /
    base  # at or below /
    deep  # at or below /
    monitoring  # at or below /
    ");
    assert_snapshot!(sandbox.orch_in("/apps", "list --why --tags web,api"), @"
    web  # at or below /apps; matches --tags web,api
    ../base  # wanted by /apps/web (apps/web/stack.tm:3)
    ../deep  # wanted by /base (base/stack.tm:2)
    ../monitoring  # names /apps/web in `wanted_by` (monitoring/stack.tm:2)
    [stderr]
    note: in `--tags`: no stack of the project has the tag `api`
    ");
    assert_snapshot!(sandbox.orch_in("/apps/web", "list --why --no-recursive"), @"
    .  # the stack at /apps/web
    ../../base  # wanted by /apps/web (apps/web/stack.tm:3)
    ../../deep  # wanted by /base (base/stack.tm:2)
    ../../monitoring  # names /apps/web in `wanted_by` (monitoring/stack.tm:2)
    ");
}

#[test]
fn json_has_the_promised_shape() {
    let sandbox = Sandbox::new(
        r#"
//- /a/stack.tm.hcl
stack {
  id          = "the-A"
  name        = "first"
  description = "does a"
  tags        = ["x", "w"]
  wants       = ["/b"]
  wanted_by   = ["tag:y"]
  watch       = ["main.tf", "/shared/x.tf"]
  before      = ["../b"]
}
//- /b/stack.tm.hcl
stack {
  tags  = ["y"]
  after = ["tag:x"]
}
//- /b/c/stack.tm.hcl
stack {
}
"#,
    );
    let document = sandbox.orch("list --format json").json();
    assert_eq!(document["format"], 1);
    assert_eq!(
        document["stacks"],
        json!([
            {
                "path": "/a",
                "dir": "a",
                "id": "the-A",
                "name": "first",
                "description": "does a",
                "tags": ["x", "w"],
                "after": [],
                "before": ["../b"],
                "wants": ["/b"],
                "wanted_by": ["tag:y"],
                "watch": ["/a/main.tf", "/shared/x.tf"],
                "reasons": [{"kind": "directory", "detail": "at or below /"}],
                "wave": 0,
                "runs_after": []
            },
            {
                "path": "/b",
                "dir": "b",
                "id": null,
                "name": "b",
                "description": null,
                "tags": ["y"],
                "after": ["tag:x"],
                "before": [],
                "wants": [],
                "wanted_by": [],
                "watch": [],
                "reasons": [{"kind": "directory", "detail": "at or below /"}],
                "wave": 1,
                "runs_after": [{
                    "path": "/a",
                    "origins": [
                        {"kind": "before", "file": "a/stack.tm.hcl", "line": 9},
                        {"kind": "after", "file": "b/stack.tm.hcl", "line": 3}
                    ]
                }]
            },
            {
                "path": "/b/c",
                "dir": "b/c",
                "id": null,
                "name": "c",
                "description": null,
                "tags": [],
                "after": [],
                "before": [],
                "wants": [],
                "wanted_by": [],
                "watch": [],
                "reasons": [{"kind": "directory", "detail": "at or below /"}],
                "wave": 2,
                "runs_after": [
                    // `before = ["../b"]` names every stack at or below `/b`.
                    {
                        "path": "/a",
                        "origins": [{"kind": "before", "file": "a/stack.tm.hcl", "line": 9}]
                    },
                    {
                        "path": "/b",
                        "origins": [{"kind": "nesting", "file": "b/c/stack.tm.hcl", "line": 1}]
                    }
                ]
            }
        ])
    );
}

#[test]
fn json_is_one_line_with_its_keys_in_the_documented_order() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("list --format json"), @r#"{"format":1,"stacks":[{"path":"/a","dir":"a","id":null,"name":"a","description":null,"tags":[],"after":[],"before":[],"wants":[],"wanted_by":[],"watch":[],"reasons":[{"kind":"directory","detail":"at or below /"}],"wave":0,"runs_after":[]}],"valid":true,"diagnostics":[],"errors":[]}"#);
}

#[test]
fn json_paths_do_not_depend_on_the_current_directory() {
    let sandbox = Sandbox::layout(
        "
        /
        a/b wants /",
    );
    let stacks = sandbox.orch("-C a list --format json").json()["stacks"].clone();
    assert_eq!(stacks[0]["path"], "/");
    assert_eq!(stacks[0]["dir"], ".");
    assert_eq!(
        stacks[0]["reasons"],
        json!([{
            "kind": "wants",
            "detail": "wanted by /a/b (a/b/stack.tm:2)",
            "stack": "/a/b",
            "file": "a/b/stack.tm",
            "line": 2
        }])
    );
    assert_eq!(stacks[1]["path"], "/a/b");
    assert_eq!(stacks[1]["dir"], "a/b");
}

#[test]
fn json_comes_in_path_order_or_in_run_order() {
    let sandbox = Sandbox::layout(
        "
        a after /b
        b",
    );
    let paths = |arguments| {
        let document = sandbox.orch(arguments).json();
        let stacks = document["stacks"].as_array().unwrap().clone();
        stacks
            .iter()
            .map(|stack| stack["path"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(paths("list --format json"), ["/a", "/b"]);
    assert_eq!(paths("list --format json --order"), ["/b", "/a"]);
}

#[test]
fn json_waves_and_predecessors_are_those_of_the_selection() {
    let sandbox = Sandbox::layout(
        "
        a [x]
        b after /a
        c [x] after /b
        d [x]",
    );
    let document = sandbox.orch("list --format json --tags x").json();
    let [a, c, d] = document["stacks"].as_array().unwrap().as_slice() else {
        panic!("not three stacks: {document}");
    };
    assert_eq!(
        (&a["wave"], &c["wave"], &d["wave"]),
        (&json!(0), &json!(1), &json!(0))
    );
    // b is not selected, and still keeps a before c.
    assert_eq!(c["runs_after"].as_array().unwrap().len(), 1);
    assert_eq!(c["runs_after"][0]["path"], "/a");
    assert_eq!(c["runs_after"][0]["via"], json!(["/b"]));
    assert_eq!(
        c["reasons"],
        json!([
            {"kind": "directory", "detail": "at or below /"},
            {"kind": "tags", "detail": "matches --tags x"}
        ])
    );
}

#[test]
fn json_carries_the_warnings_too() {
    let sandbox = Sandbox::layout("a after /nowhere");
    let document = sandbox.orch("list --format json").json();
    assert_eq!(document["diagnostics"][0]["severity"], "warning");
    assert_eq!(document["diagnostics"][0]["file"], "a/stack.tm");
    assert_eq!(document["diagnostics"][0]["line"], 2);
}

#[test]
fn an_empty_project_is_no_failure() {
    let sandbox = Sandbox::new("");
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    note: there are no stacks in `$ROOT`
    ");
    assert_eq!(
        sandbox.orch("list --format json").json()["stacks"],
        json!([])
    );
}

#[test]
fn the_same_project_gives_the_same_bytes() {
    let mut layout = String::new();
    for n in 0..60 {
        layout += &format!("s{n} [t{} all] after tag:t{}\n", n % 7, n % 7 + 1);
    }
    let sandbox = Sandbox::layout(&layout);
    for arguments in ["list --why", "graph", "env", "list --format json"] {
        let first = sandbox.orch(arguments).to_string();
        for _ in 0..3 {
            assert_eq!(sandbox.orch(arguments).to_string(), first, "{arguments}");
        }
    }
}
