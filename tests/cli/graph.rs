//! The three drawings.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::Sandbox;

fn project() -> Sandbox {
    Sandbox::layout(
        "
        app [x] after /base /net tag:data
        base/a
        base/b
        db [data x]
        cache [data]
        net
        net/sub [x] before /app",
    )
}

#[test]
fn dot_has_all_edges_with_their_origins() {
    assert_snapshot!(project().orch("graph"), @r#"
    digraph orch {
      rankdir = LR
      node [shape = box]
      "/app"
      "/base/a"
      "/base/b"
      "/cache"
      "/db"
      "/net"
      "/net/sub"
      "/base/a" -> "/app" [label = "after app/stack.tm:3"]
      "/base/b" -> "/app" [label = "after app/stack.tm:3"]
      "/cache" -> "/app" [label = "after app/stack.tm:3"]
      "/db" -> "/app" [label = "after app/stack.tm:3"]
      "/net" -> "/app" [label = "after app/stack.tm:3"]
      "/net" -> "/net/sub" [label = "nesting net/sub/stack.tm:1"]
      "/net/sub" -> "/app" [label = "before net/sub/stack.tm:3\nafter app/stack.tm:3"]
    }
    "#);
}

#[test]
fn mermaid_has_the_same_edges() {
    assert_snapshot!(project().orch("graph --format mermaid"), @r#"
    flowchart LR
      n0["/app"]
      n1["/base/a"]
      n2["/base/b"]
      n3["/cache"]
      n4["/db"]
      n5["/net"]
      n6["/net/sub"]
      n1 -->|"after app/stack.tm:3"| n0
      n2 -->|"after app/stack.tm:3"| n0
      n3 -->|"after app/stack.tm:3"| n0
      n4 -->|"after app/stack.tm:3"| n0
      n5 -->|"after app/stack.tm:3"| n0
      n5 -->|"nesting net/sub/stack.tm:1"| n6
      n6 -->|"before net/sub/stack.tm:3<br>after app/stack.tm:3"| n0
    "#);
}

#[test]
fn json_has_nodes_and_edges() {
    let sandbox = Sandbox::layout(
        "
        a
        a/b before /c
        c after /a/b",
    );
    assert_eq!(
        sandbox.orch("graph --format json").json(),
        json!({
            "format": 1,
            "stacks": [{"path": "/a"}, {"path": "/a/b"}, {"path": "/c"}],
            "nodes": [
                {"id": "/a", "kind": "stack", "path": "/a", "name": "a"},
                {"id": "/a/b", "kind": "stack", "path": "/a/b", "name": "b"},
                {"id": "/c", "kind": "stack", "path": "/c", "name": "c"}
            ],
            "edges": [
                {
                    "from": "/a",
                    "to": "/a/b",
                    "origins": [{"kind": "nesting", "file": "a/b/stack.tm", "line": 1}],
                    "via": [],
                    "cycle": false
                },
                {
                    "from": "/a/b",
                    "to": "/c",
                    "origins": [
                        {"kind": "before", "file": "a/b/stack.tm", "line": 2},
                        {"kind": "after", "file": "c/stack.tm", "line": 2}
                    ],
                    "via": [],
                    "cycle": false
                }
            ],
            "valid": true,
            "diagnostics": [],
            "errors": []
        })
    );
}

#[test]
fn a_reference_to_several_stacks_is_one_node() {
    let mut layout = String::new();
    for n in 10..60 {
        layout += &format!("base/s{n}\nabove{n} after /base\n");
    }
    let graph = Sandbox::layout(&layout).orch("graph --format json").json();
    assert_eq!(graph["nodes"].as_array().unwrap().len(), 101);
    assert_eq!(graph["edges"].as_array().unwrap().len(), 100);
}

#[test]
fn only_the_selection_is_drawn_and_constraints_reach_through_the_rest() {
    let sandbox = Sandbox::layout(
        "
        a [x]
        b after /a
        c [x] after /b
        d",
    );
    assert_snapshot!(sandbox.orch("graph --tags x"), @r#"
    digraph orch {
      rankdir = LR
      node [shape = box]
      "/a"
      "/c"
      "/a" -> "/c" [label = "after b/stack.tm:2\nafter c/stack.tm:3\nvia /b", style = dashed]
    }
    "#);
    assert_snapshot!(sandbox.orch("graph --tags x --format mermaid"), @r#"
    flowchart LR
      n0["/a"]
      n1["/c"]
      n0 -.->|"after b/stack.tm:2<br>after c/stack.tm:3<br>via /b"| n1
    "#);
}

#[test]
fn a_cycle_is_drawn_rather_than_refused() {
    let sandbox = Sandbox::layout(
        "
        a after /b
        b after /a
        c after /b",
    );
    let dot = sandbox.orch("graph");
    assert_eq!(dot.code(), 0);
    assert!(
        dot.stderr
            .starts_with("warning: stacks wait for each other in a cycle"),
        "{dot}"
    );
    assert_snapshot!(dot.stdout, @r#"
    digraph orch {
      rankdir = LR
      node [shape = box]
      "/a"
      "/b"
      "/c"
      "/a" -> "/b" [label = "after b/stack.tm:2", color = red]
      "/b" -> "/a" [label = "after a/stack.tm:2", color = red]
      "/b" -> "/c" [label = "after c/stack.tm:2"]
    }
    "#);
    assert_snapshot!(sandbox.orch("graph --format mermaid").stdout, @r#"
    flowchart LR
      n0["/a"]
      n1["/b"]
      n2["/c"]
      n0 -->|"after b/stack.tm:2"| n1
      n1 -->|"after a/stack.tm:2"| n0
      n1 -->|"after c/stack.tm:2"| n2
      linkStyle 0,1 stroke:red
    "#);
    let edges = sandbox.orch("graph --format json").json()["edges"].clone();
    let in_cycle = |from: &str| {
        let mut edges = edges.as_array().unwrap().iter();
        edges.find(|edge| edge["from"] == from).unwrap()["cycle"].clone()
    };
    assert_eq!(in_cycle("/a"), true);
}

#[test]
fn names_are_quoted_for_each_language() {
    let sandbox = Sandbox::new("");
    sandbox.write("/a \"quoted\" [x]/stack.tm", "stack {}\n");
    sandbox.write("/größe/stack.tm", "stack {}\n");
    assert_snapshot!(sandbox.orch("graph"), @r#"
    digraph orch {
      rankdir = LR
      node [shape = box]
      "/a \"quoted\" [x]"
      "/größe"
    }
    "#);
    assert_snapshot!(sandbox.orch("graph --format mermaid"), @r#"
    flowchart LR
      n0["/a #34;quoted#34; #91;x#93;"]
      n1["/größe"]
    "#);
}

#[test]
fn an_empty_graph_is_a_graph() {
    let sandbox = Sandbox::new("");
    assert_snapshot!(sandbox.orch("graph"), @"
    digraph orch {
      rankdir = LR
      node [shape = box]
    }
    [stderr]
    note: there are no stacks in `$ROOT`
    ");
    assert_eq!(
        sandbox.orch("graph --format json").json(),
        json!({
            "format": 1, "stacks": [], "nodes": [], "edges": [], "valid": true,
            "diagnostics": [], "errors": []
        })
    );
}
