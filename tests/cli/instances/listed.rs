//! Instances in lists, graphs and globs, and from their directory.

use insta::assert_snapshot;
use serde_json::json;

use super::networks;
use crate::support::Sandbox;

#[test]
fn list_sorts_instances_by_directory_then_key() {
    let sandbox = networks();
    assert_snapshot!(sandbox.orch("list"), @r#"
    account["dev"]
    account["prod"]
    app
    net["dev"]
    net["prod"]
    net/dns["dev"]
    net/dns["test"]
    "#);
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    account["dev"]
    account["prod"]
    net["dev"]
    net["prod"]
    net/dns["dev"]
    net/dns["test"]
    app
    "#);
    assert_snapshot!(sandbox.orch("list --why --tags net"), @r#"
    net["dev"]  # at or below /; matches --tags net
    net["prod"]  # at or below /; matches --tags net
    "#);
    assert_snapshot!(sandbox.orch("-C net list"), @r#"
    .["dev"]
    .["prod"]
    dns["dev"]
    dns["test"]
    "#);
    assert_snapshot!(sandbox.orch("-C net/dns list --match '/net[*]' --match /account"), @"
    [stderr]
    note: no stack at or below `/net/dns` passes --match
    ");
    assert_snapshot!(sandbox.orch("-C net list --no-recursive"), @r#"
    .["dev"]
    .["prod"]
    "#);
    assert_snapshot!(sandbox.orch("-C account list --match '..'"), @r#"
    .["dev"]
    .["prod"]
    "#);
}

#[test]
fn order_breaks_ties_by_path_then_key() {
    let sandbox = Sandbox::new("");
    for (path, keys) in [
        ("a", r#"["z", "B", "b"]"#),
        ("a-b", r#"["a"]"#),
        ("a/c", r#"["a"]"#),
    ] {
        let text = format!("stack {{\n  for_each = {keys}\n}}\n");
        sandbox.write(&format!("/{path}/stack.orch.hcl"), text);
    }
    sandbox.write("/a!/stack.tm", "stack {\n}\n");
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    a["B"]
    a["b"]
    a["z"]
    a!
    a-b["a"]
    a/c["a"]
    "#);
    assert_snapshot!(sandbox.orch("list"), @r#"
    a["B"]
    a["b"]
    a["z"]
    a!
    a-b["a"]
    a/c["a"]
    "#);
}

#[test]
fn list_json_has_the_directory_and_the_key() {
    let sandbox = networks();
    let list = sandbox.orch("list --format json").json();
    let stacks = list["stacks"].as_array().unwrap();
    let instance = stacks
        .iter()
        .find(|it| it["path"] == "/net[\"dev\"]")
        .unwrap();
    assert_snapshot!(serde_json::to_string_pretty(instance).unwrap(), @r#"
    {
      "after": [
        "/account[\"dev\"]"
      ],
      "before": [],
      "description": null,
      "dir": "net",
      "directory": "/net",
      "id": null,
      "key": "dev",
      "name": "network dev",
      "path": "/net[\"dev\"]",
      "reasons": [
        {
          "detail": "at or below /",
          "kind": "directory"
        }
      ],
      "runs_after": [
        {
          "origins": [
            {
              "file": "net/stack.orch.hcl",
              "kind": "after",
              "line": 5
            }
          ],
          "path": "/account[\"dev\"]"
        }
      ],
      "tags": [
        "dev",
        "net"
      ],
      "wanted_by": [],
      "wants": [],
      "watch": [],
      "wave": 1
    }
    "#);
    let plain = stacks.iter().find(|it| it["path"] == "/app").unwrap();
    assert_eq!((plain.get("directory"), plain.get("key")), (None, None));
    assert_eq!(plain["after"], json!(["/net"]));
    for (command, place) in [
        ("env --format json --match net", "/stacks/0"),
        ("globals --format json --match net", "/stacks/0"),
        ("graph --format json --match net", "/stacks/0"),
        ("graph --format json --match net", "/nodes/0"),
        ("why --format json 'net[\"dev\"]'", ""),
        ("eval --format json --stack 'net[\"dev\"]' 1", "/stacks/0"),
    ] {
        let output = sandbox.orch(command);
        let data = output.json();
        let told = data
            .pointer(place)
            .unwrap_or_else(|| panic!("{command}: {output}"));
        assert_eq!(told["path"], "/net[\"dev\"]", "{command}: {told}");
        if place != "/nodes/0" {
            assert_eq!(
                (&told["directory"], &told["key"]),
                (&json!("/net"), &json!("dev")),
                "{command}"
            );
        }
    }
}

#[test]
fn graph_names_instances_in_every_format() {
    let sandbox = networks();
    assert_snapshot!(sandbox.orch("graph --match /net --match /app"), @r#"
    digraph orch {
      rankdir = LR
      node [shape = box]
      "/app"
      "/net[\"dev\"]"
      "/net[\"prod\"]"
      "/net/dns[\"dev\"]"
      "/net/dns[\"test\"]"
      "/net[\"dev\"]" -> "/app" [label = "after app/stack.tm:2"]
      "/net[\"dev\"]" -> "/net/dns[\"dev\"]" [label = "nesting net/dns/stack.orch.hcl:1"]
      "/net[\"dev\"]" -> "/net/dns[\"test\"]" [label = "nesting net/dns/stack.orch.hcl:1"]
      "/net[\"prod\"]" -> "/app" [label = "after app/stack.tm:2"]
      "/net[\"prod\"]" -> "/net/dns[\"test\"]" [label = "nesting net/dns/stack.orch.hcl:1"]
      "/net/dns[\"dev\"]" -> "/app" [label = "after app/stack.tm:2"]
      "/net/dns[\"test\"]" -> "/app" [label = "after app/stack.tm:2"]
    }
    "#);
    assert_snapshot!(sandbox.orch("graph --match '/net[*]' --match /app --format mermaid"), @r#"
    flowchart LR
      n0["/app"]
      n1["/net#91;#34;dev#34;#93;"]
      n2["/net#91;#34;prod#34;#93;"]
      n1 -->|"after app/stack.tm:2"| n0
      n2 -->|"after app/stack.tm:2"| n0
    "#);
    let graph = sandbox
        .orch("graph --match '/account' --match '/net[*]' --format json")
        .json();
    assert_snapshot!(serde_json::to_string_pretty(&graph["edges"]).unwrap(), @r#"
    [
      {
        "cycle": false,
        "from": "/account[\"dev\"]",
        "origins": [
          {
            "file": "net/stack.orch.hcl",
            "kind": "after",
            "line": 5
          }
        ],
        "to": "/net[\"dev\"]",
        "via": []
      },
      {
        "cycle": false,
        "from": "/account[\"prod\"]",
        "origins": [
          {
            "file": "net/stack.orch.hcl",
            "kind": "after",
            "line": 5
          }
        ],
        "to": "/net[\"prod\"]",
        "via": []
      }
    ]
    "#);
}

#[test]
fn list_matrix_makes_a_job_of_each_instance() {
    let sandbox = networks();
    assert_snapshot!(sandbox.orch("list --match net --format github-matrix"), @r#"{"include":[{"name":"net[\"dev\"]","stacks":"net[\"dev\"]"},{"name":"net[\"prod\"]","stacks":"net[\"prod\"]"},{"name":"net/dns[\"dev\"]","stacks":"net/dns[\"dev\"]"},{"name":"net/dns[\"test\"]","stacks":"net/dns[\"test\"]"}]}"#);
    assert_snapshot!(sandbox.orch("-C net list --no-recursive --format gitlab-matrix"), @r#"[{"ORCH_STACKS":".[\"dev\"]"},{"ORCH_STACKS":".[\"prod\"]"}]"#);
}

/// Lists the stacks that a flag selects, in one line.
#[track_caller]
fn selected(sandbox: &Sandbox, arguments: &str) -> String {
    let output = sandbox.orch(&format!("list {arguments}"));
    assert_eq!(output.code(), 0, "{arguments}: {output}");
    output.stdout.lines().collect::<Vec<_>>().join(" ")
}

#[test]
fn globs_match_a_key_at_their_end() {
    let sandbox = networks();
    let all = r#"net["dev"] net["prod"] net/dns["dev"] net/dns["test"]"#;
    let table = [
        ("net", all),
        ("net/**", all),
        ("net[*]", r#"net["dev"] net["prod"]"#),
        ("/net[\"dev\"]", r#"net["dev"]"#),
        ("./net/[\"dev\"]", r#"net["dev"]"#),
        ("net/dns[*]", r#"net/dns["dev"] net/dns["test"]"#),
        ("*[\"dev\"]", r#"account["dev"] net["dev"]"#),
        ("**[\"dev\"]", r#"account["dev"] net["dev"] net/dns["dev"]"#),
        ("**/dns[\"dev\"]", r#"net/dns["dev"]"#),
        ("net/**[\"dev\"]", r#"net["dev"] net/dns["dev"]"#),
        ("{net,account}[\"prod\"]", r#"account["prod"] net["prod"]"#),
        (
            "*[*]",
            r#"account["dev"] account["prod"] net["dev"] net["prod"]"#,
        ),
        // Other brackets match characters.
        ("ne[t]", r#"net["dev"] net["prod"]"#),
        ("ne[t]/**", all),
        ("[an]et[\"dev\"]", r#"net["dev"]"#),
        ("n[e]t[*]", r#"net["dev"] net["prod"]"#),
    ];
    for (glob, expected) in table {
        assert_eq!(
            selected(&sandbox, &format!("--match '{glob}'")),
            expected,
            "{glob}"
        );
        let rest = selected(&sandbox, &format!("--exclude '{glob}'"));
        let mut together: Vec<&str> = rest.split(' ').chain(expected.split(' ')).collect();
        together.sort_unstable();
        let mut listed: Vec<String> = sandbox
            .orch("list")
            .stdout
            .lines()
            .map(str::to_owned)
            .collect();
        listed.sort_unstable();
        assert_eq!(together, listed, "--exclude {glob}");
    }
    assert_eq!(
        selected(&sandbox, "-C net --match '[\"dev\"]'"),
        r#".["dev"]"#
    );
    assert_eq!(
        selected(&sandbox, "-C net --match '.[*]'"),
        r#".["dev"] .["prod"]"#
    );
    assert_eq!(selected(&sandbox, "-C net/dns --match '..[\"dev\"]'"), "");
}

#[test]
fn list_json_has_no_key_for_a_plain_stack() {
    let sandbox = networks();
    assert_snapshot!(sandbox.orch("list --match 'app[*]'"), @"
    [stderr]
    note: `--match app[*]` matches no stack of the project
    note: no stack at or below `/` passes --match
    ");
    assert_snapshot!(sandbox.orch("list --match 'app[\"dev\"]'"), @r#"
    [stderr]
    note: `--match app["dev"]` matches no stack of the project
    note: no stack at or below `/` passes --match
    "#);
    assert_snapshot!(sandbox.orch("list --match 'net[\"none\"]'"), @r#"
    [stderr]
    note: `--match net["none"]` matches no stack of the project
    note: no stack at or below `/` passes --match
    "#);
    assert_snapshot!(sandbox.orch("list --match '**/net[\"prd\"]'"), @r#"
    [stderr]
    note: `--match **/net["prd"]` matches no stack of the project; did you mean `**/net["prod"]`?
    note: no stack at or below `/` passes --match
    "#);
}

#[test]
fn list_prints_instances_that_stacks_from_reads() {
    let sandbox = networks();
    sandbox.write(
        "/odd/stack.orch.hcl",
        "stack {\n  for_each = [\" a\", \"b \", \"*\", \"$HOME\", \"\\\\\"]\n}\n",
    );
    sandbox.write("/stack.orch.hcl", "stack {\n  for_each = [\"r\"]\n}\n");
    for directory in ["/", "/net", "/odd"] {
        let listed = sandbox.orch_in(directory, "list").stdout;
        sandbox.write("/names", &listed);
        let names = sandbox.path("/names");
        let again = sandbox.orch_in(
            directory,
            &format!("list --stacks-from {}", names.display()),
        );
        assert_eq!(
            (again.code(), &*again.stdout, &*again.stderr),
            (0, &*listed, "")
        );
        assert!(listed.contains("[\""), "{listed}");
    }
    // A directory means its instances, and nothing below it.
    let chosen = |text: &str| {
        sandbox.write("/names", text);
        sandbox.orch("list --why --stacks-from names")
    };
    assert_snapshot!(chosen("net\n"), @r#"
    net["dev"]  # at or below /; named in names, line 1
    net["prod"]  # at or below /; named in names, line 1
    "#);
    assert_snapshot!(chosen("/net[*]\napp\n"), @r#"
    app  # at or below /; named in names, line 2
    net["dev"]  # at or below /; named in names, line 1
    net["prod"]  # at or below /; named in names, line 1
    "#);
    assert_snapshot!(chosen("net[\"dev\"]\nnet\nnet[*]\n"), @r#"
    net["dev"]  # at or below /; named in names, line 1
    net["prod"]  # at or below /; named in names, line 2
    "#);
    assert_snapshot!(chosen("net[\"none\"]\napp[*]\nnet[dev]\nnet[none]\n"), @r#"
    [stderr]
    error: names names paths that are not stacks:
      line 1: `net["none"]`: no instance has the key `none`
      line 2: `app[*]`: this stack has no instances
      line 3: `net[dev]`: the quotes around the key are missing; in a shell, write `'net["dev"]'`
      line 4: `net[none]`: no instance has the key `none`
    [exit status 64]
    "#);
}

#[cfg(unix)]
#[test]
fn globs_prefer_a_directory_whose_name_ends_like_a_key() {
    let sandbox = networks();
    sandbox.write("/zone[\"a\"]/stack.tm", "stack {\n}\n");
    sandbox.write(
        "/user/stack.tm",
        "stack {\n  after = [\"/zone[\\\"a\\\"]\"]\n}\n",
    );
    assert_snapshot!(sandbox.orch("list --order --match user --match 'zone*'"), @r#"
    zone["a"]
    user
    "#);
    assert_snapshot!(sandbox.orch("why user --after 'zone[\"a\"]'"), @r#"
    /user runs after /zone["a"]
      /user runs after /zone["a"], after user/stack.tm:2
    "#);
    sandbox.write("/names", "zone[\"a\"]\n");
    assert_eq!(
        sandbox.orch("list --stacks-from names").stdout,
        "zone[\"a\"]\n"
    );
}
