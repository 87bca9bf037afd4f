//! What `lifecycle` blocks may say, and which rules are in force for which stack.

use insta::assert_snapshot;

use crate::support::Sandbox;

/// A project with one stack that has these rules.
fn with_rules(rules: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.write(
        "/app/stack.orch.hcl",
        format!("stack {{\n  lifecycle {{\n{rules}\n  }}\n}}\n"),
    );
    sandbox
}

/// Returns what is wrong with these rules.
#[track_caller]
fn refused(rules: &str) -> String {
    let output = with_rules(rules).orch("list");
    assert_eq!(output.code(), 3, "{output}");
    output.stderr
}

#[test]
fn rules_are_shown_with_their_positions() {
    let sandbox = Sandbox::new("");
    sandbox.write(
        "/prod/config.orch.hcl",
        r#"orch {
  config {
    lifecycle {
      prevent_destroy = true
      ignore_changes  = ["**/*.md"]
      precondition {
        condition     = true
        error_message = "outer"
      }
    }
  }
}
"#,
    );
    sandbox.write("/prod/net/stack.tm.hcl", "stack {\n}\n");
    sandbox.write(
        "/prod/app/stack.orch.hcl",
        r#"stack {
  lifecycle {
    prevent_destroy       = 1 > 2
    create_before_destroy = true
    ignore_changes        = ["docs/**", "/modules/tags/**", env.BUILD, env["OTHER"]]
    replace_triggered_by  = ["../net", "/prod/net#id"]
    precondition {
      condition     = true
      error_message = "inner"
    }
    postcondition {
      condition     = true
      error_message = "after"
    }
  }
}
"#,
    );
    let text = sandbox.orch("why /prod/app").stdout;
    let rules = text.split("its lifecycle rules\n").nth(1).unwrap();
    assert_snapshot!(rules.split("\n\n").next().unwrap(), @"
    prevent_destroy = false, prod/app/stack.orch.hcl:3
    create_before_destroy = true, prod/app/stack.orch.hcl:4
    ignore_changes: docs/**, /modules/tags/**, env.BUILD, env.OTHER, prod/app/stack.orch.hcl:5
    replace_triggered_by: ../net, prod/app/stack.orch.hcl:6
    replace_triggered_by: /prod/net#id, prod/app/stack.orch.hcl:6
    precondition, prod/config.orch.hcl:6
    precondition, prod/app/stack.orch.hcl:7
    postcondition, prod/app/stack.orch.hcl:11
    ");
    let json = sandbox.orch("list --format json").json();
    let stacks = json["stacks"].as_array().unwrap();
    assert_snapshot!(serde_json::to_string_pretty(&stacks[0]["lifecycle"]).unwrap(), @r#"
    {
      "conditions": [
        {
          "file": "prod/config.orch.hcl",
          "kind": "precondition",
          "line": 6
        },
        {
          "file": "prod/app/stack.orch.hcl",
          "kind": "precondition",
          "line": 7
        },
        {
          "file": "prod/app/stack.orch.hcl",
          "kind": "postcondition",
          "line": 11
        }
      ],
      "create_before_destroy": {
        "file": "prod/app/stack.orch.hcl",
        "line": 4,
        "value": true
      },
      "ignore_changes": {
        "file": "prod/app/stack.orch.hcl",
        "line": 5,
        "value": [
          "docs/**",
          "/modules/tags/**",
          "env.BUILD",
          "env.OTHER"
        ]
      },
      "prevent_destroy": {
        "file": "prod/app/stack.orch.hcl",
        "line": 3,
        "value": false
      },
      "replace_triggered_by": [
        {
          "file": "prod/app/stack.orch.hcl",
          "line": 6,
          "value": "../net"
        },
        {
          "file": "prod/app/stack.orch.hcl",
          "line": 6,
          "value": "/prod/net#id"
        }
      ]
    }
    "#);
    assert_snapshot!(stacks[1]["lifecycle"], @r#"{"conditions":[{"file":"prod/config.orch.hcl","kind":"precondition","line":6}],"create_before_destroy":{"file":"prod/app/stack.orch.hcl","from":"/prod/app","line":4,"value":true},"ignore_changes":{"file":"prod/config.orch.hcl","line":5,"value":["**/*.md"]},"prevent_destroy":{"file":"prod/config.orch.hcl","line":4,"value":true}}"#);
    let json = sandbox.orch("why /prod/net --format json").json();
    assert_eq!(json["lifecycle"], stacks[1]["lifecycle"]);
}

#[test]
fn rules_of_the_nearest_directory_win_and_conditions_add_up() {
    let sandbox = Sandbox::new("");
    let config = |rules: &str| {
        format!("orch {{\n  config {{\n    lifecycle {{\n      {rules}\n    }}\n  }}\n}}\n")
    };
    sandbox.write("/a.orch.hcl", config("prevent_destroy = true"));
    let condition = "precondition {\n  condition = true\n  error_message = \"m\"\n}";
    sandbox.write(
        "/b.orch.hcl",
        config(&format!("create_before_destroy = true\n{condition}")),
    );
    sandbox.write(
        "/e/a.orch.hcl",
        config(&format!("prevent_destroy = false\n{condition}")),
    );
    sandbox.write("/s/stack.tm", "stack {\n}\n");
    sandbox.write("/e/s/stack.tm", "stack {\n}\n");
    sandbox.write(
        "/e/t/stack.tm",
        "stack {\n  lifecycle {\n    prevent_destroy = true\n    ignore_changes = all\n  }\n}\n",
    );
    sandbox.write(
        "/e/n/stack.tm",
        "stack {\n  lifecycle {\n    prevent_destroy = null\n  }\n}\n",
    );
    sandbox.write("/e/r/stack.tm", "stack {\n  mode = \"read\"\n}\n");
    let json = sandbox.orch("list --format json").json();
    let line = |stack: &serde_json::Value| {
        let rules = &stack["lifecycle"];
        let conditions = rules["conditions"].as_array().map_or(0, Vec::len);
        let protected = &rules["prevent_destroy"]["value"];
        let first = &rules["create_before_destroy"]["value"];
        let ignored = &rules["ignore_changes"]["value"];
        let path = stack["path"].as_str().unwrap();
        format!("{path} {protected} {first} {ignored} {conditions}")
    };
    let stacks = json["stacks"].as_array().unwrap();
    let lines: Vec<String> = stacks.iter().map(line).collect();
    assert_snapshot!(lines.join("\n"), @r#"
    /e/n false true null 2
    /e/r null null null 2
    /e/s false true null 2
    /e/t true true ["all"] 2
    /s true true null 1
    "#);
}

#[test]
fn rules_override_imports() {
    let sandbox = Sandbox::new("");
    sandbox.write(
        "/import.tm",
        "import {\n  source = \"/shared/rules.orch.hcl\"\n}\n",
    );
    let condition = |message: &str| {
        format!("precondition {{\n  condition = true\n  error_message = \"{message}\"\n}}")
    };
    let config = |rules: &str| {
        format!("orch {{\n  config {{\n    lifecycle {{\n      {rules}\n    }}\n  }}\n}}\n")
    };
    sandbox.write("/shared/.tmskip", "");
    let imported = format!(
        "prevent_destroy = true\nignore_changes = all\n{}",
        condition("imported")
    );
    sandbox.write("/shared/rules.orch.hcl", config(&imported));
    sandbox.write(
        "/own.orch.hcl",
        config(&format!("prevent_destroy = false\n{}", condition("own"))),
    );
    sandbox.write("/s/stack.tm", "stack {\n}\n");
    let text = sandbox.orch("why /s").stdout;
    let rules = text.split("its lifecycle rules\n").nth(1).unwrap();
    assert_snapshot!(rules.split("\n\n").next().unwrap(), @"
    prevent_destroy = false, own.orch.hcl:4
    ignore_changes: all, shared/rules.orch.hcl:5
    precondition, shared/rules.orch.hcl:6
    precondition, own.orch.hcl:5
    ");
}

#[test]
fn rules_of_instances_see_each() {
    let sandbox = Sandbox::new("");
    sandbox.write(
        "/net/stack.orch.hcl",
        "stack {\n  for_each = [\"eu\", \"us\"]\n  lifecycle {\n    prevent_destroy = each.key == \"eu\"\n    replace_triggered_by = [\"/base[\\\"${each.key}\\\"]\"]\n  }\n}\n",
    );
    sandbox.write(
        "/base/stack.tm",
        "stack {\n  for_each = [\"eu\", \"us\"]\n}\n",
    );
    let json = sandbox.orch("list --format json").json();
    let line = |stack: &serde_json::Value| {
        let rules = &stack["lifecycle"];
        let path = stack["path"].as_str().unwrap();
        let trigger = &rules["replace_triggered_by"][0]["value"];
        format!("{path} {} {trigger}", rules["prevent_destroy"]["value"])
    };
    let stacks = json["stacks"].as_array().unwrap();
    let lines: Vec<String> = stacks.iter().map(line).collect();
    assert_snapshot!(lines.join("\n"), @r#"
    /base["eu"] null null
    /base["us"] null null
    /net["eu"] true "/base[\"eu\"]"
    /net["us"] false "/base[\"us\"]"
    "#);
}

#[test]
fn rules_make_triggers_dependencies() {
    let sandbox = Sandbox::new("");
    let stack = |rule: &str| {
        format!("stack {{\n  lifecycle {{\n    replace_triggered_by = [{rule}]\n  }}\n}}\n")
    };
    sandbox.write("/a/stack.tm", stack("\"/z\", \"tag:base\""));
    sandbox.write("/z/stack.tm", "stack {\n}\n");
    sandbox.write("/y/stack.tm", "stack {\n  tags = [\"base\"]\n}\n");
    assert_eq!(sandbox.orch("list --order").stdout, "y\nz\na\n");
    assert_snapshot!(sandbox.orch("why /a --after /z").stdout, @"
    /a runs after /z
      /a runs after /z, replace_triggered_by a/stack.tm:3
    ");
    sandbox.write("/z/stack.tm", stack("\"/a\""));
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in a cycle: `/a` → `/z`
     --> z/stack.tm:3:29
      |
    3 |     replace_triggered_by = ["/a"]
      |                             ^^^^ `/a` runs before `/z` (replace_triggered_by)
      |
     ::: a/stack.tm:3:29
      |
    3 |     replace_triggered_by = ["/z", "tag:base"]
      |                             ---- `/z` runs before `/a` (replace_triggered_by)
      |
      = help: remove one of these references

    [exit status 3]
    "#);
}

#[test]
fn rules_refuse_invalid_triggers() {
    let sandbox = with_rules(
        "    replace_triggered_by = [\"/read\", \"/app\", \"/gone\", \"/e#x\", \"tag:a#x\", \"/e\", \"/e\"]",
    );
    sandbox.write("/read/stack.tm", "stack {\n  mode = \"read\"\n}\n");
    sandbox.write("/e/a/stack.tm", "stack {\n}\n");
    sandbox.write("/e/b/stack.tm", "stack {\n}\n");
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    assert_snapshot!(output.stderr, @r#"
    error: `/read` in `replace_triggered_by` is only read, and never changes
     --> app/stack.orch.hcl:3:29
      |
    3 |     replace_triggered_by = ["/read", "/app", "/gone", "/e#x", "tag:a#x", "/e", "/e"]
      |                             ^^^^^^^ its `mode` is `"read"`
      |
      = help: name the stack that manages it

    error: `/app` in `replace_triggered_by` names only the stack itself
     --> app/stack.orch.hcl:3:38
      |
    3 |     replace_triggered_by = ["/read", "/app", "/gone", "/e#x", "tag:a#x", "/e", "/e"]
      |                                      ^^^^^^ this is the stack itself
      |
      = help: remove it

    warning: `/gone` in `replace_triggered_by` matches no stack
     --> app/stack.orch.hcl:3:46
      |
    3 |     replace_triggered_by = ["/read", "/app", "/gone", "/e#x", "tag:a#x", "/e", "/e"]
      |                                              ^^^^^^^ no such directory

    error: `/e` in `replace_triggered_by` names an output of several stacks
     --> app/stack.orch.hcl:3:55
      |
    3 |     replace_triggered_by = ["/read", "/app", "/gone", "/e#x", "tag:a#x", "/e", "/e"]
      |                                                       ^^^^^^ an output belongs to one stack
      |
      = help: write one stack before the `#`

    error: `tag:a#x` names an output of several stacks
     --> app/stack.orch.hcl:3:63
      |
    3 |     replace_triggered_by = ["/read", "/app", "/gone", "/e#x", "tag:a#x", "/e", "/e"]
      |                                                               ^^^^^^^^^ a tag can match several stacks
      |
      = help: name the output of one stack: `"/cluster#endpoint"`

    error: `/e` occurs twice in `replace_triggered_by`
     --> app/stack.orch.hcl:3:80
      |
    3 |     replace_triggered_by = ["/read", "/app", "/gone", "/e#x", "tag:a#x", "/e", "/e"]
      |                                                                          ----  ^^^^ again here
      |                                                                          |
      |                                                                          first here
      |
      = help: remove one of them
    "#);
}

/// Returns what is wrong with each of these rules.
fn all_refused(rules: &[&str]) -> String {
    let told: Vec<String> = rules.iter().map(|rules| refused(rules)).collect();
    told.join("")
}

#[test]
fn rules_that_are_switches_must_be_booleans() {
    let wrong = [
        "prevent_destroy = \"true\"",
        "prevent_destroy = stacks[\"/x\"].outputs.y",
        "prevent_destory = true",
        "destroy = false",
    ];
    assert_snapshot!(all_refused(&wrong), @r#"
    error: `prevent_destroy` must be `true` or `false`
     --> app/stack.orch.hcl:3:19
      |
    3 | prevent_destroy = "true"
      |                   ^^^^^^ this is a string

    error: unknown name `stacks`
     --> app/stack.orch.hcl:3:19
      |
    3 | prevent_destroy = stacks["/x"].outputs.y
      |                   ^^^^^^ this name is not defined here

    error: unknown attribute `prevent_destory` in `lifecycle`
     --> app/stack.orch.hcl:3:1
      |
    2 |   lifecycle {
      |   --------- in this block
    3 | prevent_destory = true
      | ^^^^^^^^^^^^^^^ not a lifecycle rule
      |
      = help: did you mean `prevent_destroy`?

    error: `destroy` is a rule of a `removed` block
     --> app/stack.orch.hcl:3:1
      |
    3 | destroy = false
      | ^^^^^^^ not in a `removed` block
      |
      = help: to protect its resources, write `prevent_destroy = true`
    "#);
}

#[test]
fn rules_refuse_ignore_changes_without_inputs() {
    let wrong = [
        "ignore_changes = [all]",
        "ignore_changes = \"all\"",
        "ignore_changes = [env]",
        "ignore_changes = [env.A.b]",
        "ignore_changes = [input[1]]",
        "ignore_changes = [7]",
        "ignore_changes = [\"!a\"]",
        "ignore_changes = [\"/\"]",
        "ignore_changes = [\"../../x\"]",
        "ignore_changes = [\"[a\"]",
    ];
    assert_snapshot!(all_refused(&wrong), @r#"
    error: `ignore_changes` names files, variables, inputs, or `all` of them
     --> app/stack.orch.hcl:3:19
      |
    3 | ignore_changes = [all]
      |                   ^^^ `all` cannot be in a list
      |
      = help: write `ignore_changes = ["**/*.md", env.BUILD]`, or `ignore_changes = all`

    error: `ignore_changes` names files, variables, inputs, or `all` of them
     --> app/stack.orch.hcl:3:18
      |
    3 | ignore_changes = "all"
      |                  ^^^^^ this is a string
      |
      = help: write `ignore_changes = ["**/*.md", env.BUILD]`, or `ignore_changes = all`

    error: `ignore_changes` names files, variables, inputs, or `all` of them
     --> app/stack.orch.hcl:3:19
      |
    3 | ignore_changes = [env]
      |                   ^^^ expected a name: `env.NAME`
      |
      = help: write `ignore_changes = ["**/*.md", env.BUILD]`, or `ignore_changes = all`

    error: `ignore_changes` names files, variables, inputs, or `all` of them
     --> app/stack.orch.hcl:3:19
      |
    3 | ignore_changes = [env.A.b]
      |                   ^^^^^^^ expected a name: `env.NAME`
      |
      = help: write `ignore_changes = ["**/*.md", env.BUILD]`, or `ignore_changes = all`

    error: `ignore_changes` names files, variables, inputs, or `all` of them
     --> app/stack.orch.hcl:3:19
      |
    3 | ignore_changes = [input[1]]
      |                   ^^^^^^^^ expected a name: `input.NAME`
      |
      = help: write `ignore_changes = ["**/*.md", env.BUILD]`, or `ignore_changes = all`

    error: `ignore_changes` names files, variables, inputs, or `all` of them
     --> app/stack.orch.hcl:3:19
      |
    3 | ignore_changes = [7]
      |                   ^ this is a number
      |
      = help: write `ignore_changes = ["**/*.md", env.BUILD]`, or `ignore_changes = all`

    error: `!a` in `ignore_changes` names no files
     --> app/stack.orch.hcl:3:19
      |
    3 | ignore_changes = ["!a"]
      |                   ^^^^ `!` does not re-include files
      |
      = help: list only globs of files to ignore

    error: `/` in `ignore_changes` names no files
     --> app/stack.orch.hcl:3:19
      |
    3 | ignore_changes = ["/"]
      |                   ^^^ names no file
      |
      = help: for every input, write `ignore_changes = all`

    error: `../../x` in `ignore_changes` names no files
     --> app/stack.orch.hcl:3:19
      |
    3 | ignore_changes = ["../../x"]
      |                   ^^^^^^^^^ leads out of the project
      |
      = help: a leading `/` is the project root

    error: `[a` in `ignore_changes` names no files
     --> app/stack.orch.hcl:3:19
      |
    3 | ignore_changes = ["[a"]
      |                   ^^^^ unclosed character class; missing ']'
      |
      = help: `*` and `?` match within a name, `**` across directories, `{a,b}` either of two
    "#);
}

#[test]
fn rules_require_a_list_of_triggers() {
    let wrong = [
        "replace_triggered_by = \"/x\"",
        "replace_triggered_by = [1]",
    ];
    assert_snapshot!(all_refused(&wrong), @r#"
    error: `replace_triggered_by` must be a list of strings
     --> app/stack.orch.hcl:3:24
      |
    3 | replace_triggered_by = "/x"
      |                        ^^^^ this is a string
      |
      = help: write `replace_triggered_by = ["/network", "tag:base", "/cluster#endpoint"]`

    error: `replace_triggered_by` must be a list of strings
     --> app/stack.orch.hcl:3:25
      |
    3 | replace_triggered_by = [1]
      |                         ^ this is a number
      |
      = help: write `replace_triggered_by = ["/network", "tag:base", "/cluster#endpoint"]`
    "#);
}

#[test]
fn rules_require_both_arguments_of_a_condition() {
    let wrong = [
        "preconditions {}",
        "precondition {}",
        "precondition \"x\" {\n condition = true\n error_message = \"m\"\n extra = 1\n inner {}\n}",
        "postcondition {\n condition = true\n}",
    ];
    assert_snapshot!(all_refused(&wrong), @r#"
    error: unknown block `preconditions` in `lifecycle`
     --> app/stack.orch.hcl:3:1
      |
    2 |   lifecycle {
      |   --------- in this block
    3 | preconditions {}
      | ^^^^^^^^^^^^^ not a lifecycle rule
      |
      = help: did you mean `precondition`?

    error: this `precondition` has no `condition`
     --> app/stack.orch.hcl:3:1
      |
    3 | precondition {}
      | ^^^^^^^^^^^^ `condition` is missing
      |
      = help: add `condition = …`, an expression that must be true

    error: this `precondition` has no `error_message`
     --> app/stack.orch.hcl:3:1
      |
    3 | precondition {}
      | ^^^^^^^^^^^^ `error_message` is missing
      |
      = help: add `error_message = "…"`, which is shown if the condition does not hold

    error: a `precondition` block has no labels
     --> app/stack.orch.hcl:3:14
      |
    3 | precondition "x" {
      |              ^^^ unexpected label
      |
      = help: remove the label

    error: unknown attribute `extra` in `precondition`
     --> app/stack.orch.hcl:6:2
      |
    3 | precondition "x" {
      | ------------ in this block
    ...
    6 |  extra = 1
      |  ^^^^^ not an attribute of a condition

    error: unknown block `inner` in `precondition`
     --> app/stack.orch.hcl:7:2
      |
    3 | precondition "x" {
      | ------------ in this block
    ...
    7 |  inner {}
      |  ^^^^^ a condition has no blocks

    error: this `postcondition` has no `error_message`
     --> app/stack.orch.hcl:3:1
      |
    3 | postcondition {
      | ^^^^^^^^^^^^^ `error_message` is missing
      |
      = help: add `error_message = "…"`, which is shown if the condition does not hold
    "#);
}

#[test]
fn rules_refuse_misplaced_blocks() {
    let sandbox = Sandbox::new("");
    sandbox.write("/config.orch.hcl", "orch {\n  config {\n    lifecycle {\n      replace_triggered_by = [\"/a\"]\n      prevent_destroy = each.key\n    }\n  }\n}\n");
    sandbox.write(
        "/r/stack.tm",
        "stack {\n  mode = \"read\"\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n",
    );
    sandbox.write(
        "/t/stack.tm",
        "stack {\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n",
    );
    sandbox.write(
        "/t/own.orch.hcl",
        "stack {\n  lifecycle {\n    ignore_changes = all\n  }\n}\n",
    );
    sandbox.write("/u/stack.tm", "stack {\n  lifecycle \"x\" {\n  }\n}\n");
    sandbox.write(
        "/v/a.tm",
        "orch {\n  config {\n    lifecycle {\n      prevent_destroy = true\n    }\n  }\n}\n",
    );
    sandbox.write(
        "/v/b.tm",
        "orch {\n  config {\n    lifecycle {\n      prevent_destroy = false\n    }\n  }\n}\n",
    );
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    assert_snapshot!(output.stderr, @r#"
    error: `replace_triggered_by` is a rule of one stack, and is not inherited
     --> config.orch.hcl:4:7
      |
    4 |       replace_triggered_by = ["/a"]
      |       ^^^^^^^^^^^^^^^^^^^^ not in a `stack` block
      |
      = help: move it to the `lifecycle` block of the stack

    error: unknown name `each`
     --> config.orch.hcl:5:25
      |
    5 |       prevent_destroy = each.key
      |                         ^^^^ this name is not defined here

    error: `prevent_destroy` has no effect in a stack that is only read
     --> r/stack.tm:4:5
      |
    4 |     prevent_destroy = true
      |     ^^^^^^^^^^^^^^^ the stack sets `mode = "read"`
      |
      = help: remove it; only `precondition` and `postcondition` apply to such a stack

    error: only one `lifecycle` block is allowed here
     --> t/own.orch.hcl:2:3
      |
    2 |   lifecycle {
      |   ^^^^^^^^^ second block
      |
     ::: t/stack.tm:2:3
      |
    2 |   lifecycle {
      |   --------- first block
      |
      = help: merge the two blocks, or remove one

    error: a `lifecycle` block has no labels
     --> u/stack.tm:2:13
      |
    2 |   lifecycle "x" {
      |             ^^^ unexpected label
      |
      = help: remove the label

    error: `prevent_destroy` is set twice
     --> v/b.tm:4:7
      |
    4 |       prevent_destroy = false
      |       ^^^^^^^^^^^^^^^ again here
      |
     ::: v/a.tm:4:7
      |
    4 |       prevent_destroy = true
      |       --------------- first here
      |
      = help: remove one of them
    "#);
}
