//! The drawing of problems, `stack` attributes, problems as data.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Output, Sandbox};

/// What `orch list` says to a project of the one stack `/s`, whose block has these lines.
fn stack_with(lines: &str) -> Output {
    let sandbox = Sandbox::new("");
    sandbox.write("/s/stack.tm", format!("stack {{\n  {lines}\n}}\n"));
    sandbox.orch("list")
}

#[test]
fn an_id_has_a_charset() {
    assert_snapshot!(stack_with("id = \"not an id\""), @r#"
    [stderr]
    error: `not an id` cannot be the id of a stack
     --> s/stack.tm:2:8
      |
    2 |   id = "not an id"
      |        ^^^^^^^^^^^ an id has only ASCII letters, digits, `-` and `_`

    [exit status 3]
    "#);
}

#[test]
fn an_id_has_a_longest_length() {
    let id = "x".repeat(64);
    assert_eq!(stack_with(&format!("id = \"{id}\"")).code(), 0);
    assert_snapshot!(stack_with(&format!("id = \"{id}y\"")), @r#"
    [stderr]
    error: `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy` cannot be the id of a stack
     --> s/stack.tm:2:8
      |
    2 |   id = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy"
      |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ an id has at most 64 characters; this one has 65

    [exit status 3]
    "#);
}

#[test]
fn an_id_may_have_letters_digits_dashes_and_underscores() {
    assert_eq!(stack_with("id = \"Az09_-\"").code(), 0);
    for bad in ["a.b", "ä", "a/b", "a\\nb"] {
        assert_eq!(stack_with(&format!("id = \"{bad}\"")).code(), 3, "{bad}");
    }
}

#[test]
fn an_empty_id_name_or_description_counts_as_not_set() {
    let sandbox = Sandbox::new(
        r#"
//- /s/stack.tm
stack {
  id          = ""
  name        = ""
  description = ""
}
"#,
    );
    let stack = sandbox.orch("list --format json").json()["stacks"][0].clone();
    assert_eq!(stack["id"], Value::Null);
    assert_eq!(stack["name"], "s");
    assert_eq!(stack["description"], Value::Null);
}

#[test]
fn ids_are_unique_ignoring_case() {
    let sandbox = Sandbox::new(
        r#"
//- /a/stack.tm
stack {
  id = "Network"
}
//- /b/stack.tm
stack {
  id = "network"
}
"#,
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: stacks `/a` and `/b` have the same id `network`
     --> b/stack.tm:2:8
      |
    2 |   id = "network"
      |        ^^^^^^^^^ an id must be unique in the project
      |
     ::: a/stack.tm:2:8
      |
    2 |   id = "Network"
      |        --------- also used here
      |
      = note: ids are compared ignoring case
      = help: give one of the stacks another id

    [exit status 3]
    "#);
}

#[test]
fn a_third_stack_with_the_same_id_is_reported_too() {
    let sandbox = Sandbox::layout("");
    for stack in ["a", "b", "c"] {
        sandbox.write(&format!("/{stack}/stack.tm"), "stack {\n  id = \"x\"\n}\n");
    }
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    assert_eq!(output.stderr.matches("error:").count(), 2, "{output}");
}

#[test]
fn strings_are_not_converted_from_other_types() {
    assert_snapshot!(stack_with("id = 5\n  name = true\n  description = [\"x\"]"), @r#"
    [stderr]
    error: `id` must be a string
     --> s/stack.tm:2:8
      |
    2 |   id = 5
      |        ^ this is a number
      |
      = help: write `id = "…"`

    error: `name` must be a string
     --> s/stack.tm:3:10
      |
    3 |   name = true
      |          ^^^^ this is a bool
      |
      = help: write `name = "…"`

    error: `description` must be a string
     --> s/stack.tm:4:17
      |
    4 |   description = ["x"]
      |                 ^^^^^ this is a list
      |
      = help: write `description = "…"`

    [exit status 3]
    "#);
    assert_eq!(stack_with("name = null").code(), 3);
}

#[test]
fn lists_must_be_lists_of_strings() {
    assert_snapshot!(stack_with("tags = \"x\"\n  after = { a = 1 }\n  wants = 1"), @r#"
    [stderr]
    error: `tags` must be a list of strings
     --> s/stack.tm:2:10
      |
    2 |   tags = "x"
      |          ^^^ this is a string
      |
      = help: write `tags = ["…"]`

    error: `after` must be a list of strings
     --> s/stack.tm:3:11
      |
    3 |   after = { a = 1 }
      |           ^^^^^^^^^ this is an object
      |
      = help: write `after = ["…"]`

    error: `wants` must be a list of strings
     --> s/stack.tm:4:11
      |
    4 |   wants = 1
      |           ^ this is a number
      |
      = help: write `wants = ["…"]`

    [exit status 3]
    "#);
    assert_snapshot!(stack_with("before = [\"/s/x\", 5, null, [\"y\"]]"), @r#"
    [stderr]
    warning: `/s/x` in `before` matches no stack
     --> s/stack.tm:2:13
      |
    2 |   before = ["/s/x", 5, null, ["y"]]
      |             ^^^^^^ no such directory

    error: `before` must be a list of strings
     --> s/stack.tm:2:21
      |
    2 |   before = ["/s/x", 5, null, ["y"]]
      |                     ^ this is a number
      |
      = help: write `before = ["…"]`

    error: `before` must be a list of strings
     --> s/stack.tm:2:24
      |
    2 |   before = ["/s/x", 5, null, ["y"]]
      |                        ^^^^ this is null
      |
      = help: write `before = ["…"]`

    error: `before` must be a list of strings
     --> s/stack.tm:2:30
      |
    2 |   before = ["/s/x", 5, null, ["y"]]
      |                              ^^^^^ this is a list
      |
      = help: write `before = ["…"]`

    [exit status 3]
    "#);
}

#[test]
fn null_means_that_a_list_is_not_set() {
    assert_snapshot!(stack_with("tags = null\n  after = null\n  watch = null"), @"s");
}

#[test]
fn tags_have_a_charset() {
    assert_snapshot!(stack_with("tags = [\"Prod\", \"_x\", \"x-\", \"a b\", \"ä\"]"), @r#"
    [stderr]
    error: `Prod` cannot be a tag
     --> s/stack.tm:2:11
      |
    2 |   tags = ["Prod", "_x", "x-", "a b", "ä"]
      |           ^^^^^^ a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`

    error: `_x` cannot be a tag
     --> s/stack.tm:2:19
      |
    2 |   tags = ["Prod", "_x", "x-", "a b", "ä"]
      |                   ^^^^ a tag begins with a lower-case letter or a digit

    error: `x-` cannot be a tag
     --> s/stack.tm:2:25
      |
    2 |   tags = ["Prod", "_x", "x-", "a b", "ä"]
      |                         ^^^^ a tag ends with a lower-case letter or a digit

    error: `a b` cannot be a tag
     --> s/stack.tm:2:31
      |
    2 |   tags = ["Prod", "_x", "x-", "a b", "ä"]
      |                               ^^^^^ a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`

    error: `ä` cannot be a tag
     --> s/stack.tm:2:38
      |
    2 |   tags = ["Prod", "_x", "x-", "a b", "ä"]
      |                                      ^^^ a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`

    [exit status 3]
    "#);
}

#[test]
fn an_element_may_stand_only_once_in_a_list() {
    assert_snapshot!(stack_with("tags = [\"a\", \"b\", \"a\"]"), @r#"
    [stderr]
    error: `a` occurs twice in `tags` (element 3)
     --> s/stack.tm:2:21
      |
    2 |   tags = ["a", "b", "a"]
      |           ---       ^^^ again here
      |           |
      |           first here
      |
      = help: remove one of them

    [exit status 3]
    "#);
    for attribute in ["after", "before", "wants", "wanted_by", "watch"] {
        let output = stack_with(&format!("{attribute} = [\"/x\", \"/x\"]"));
        let said = format!("`/x` occurs twice in `{attribute}` (element 2)");
        assert!(output.stderr.contains(&said), "{output}");
    }
}

#[test]
fn a_stack_block_has_no_labels() {
    let sandbox = Sandbox::new("//- /s/stack.tm\nstack \"network\" {\n}\n");
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: a `stack` block has no labels
     --> s/stack.tm:1:7
      |
    1 | stack "network" {
      |       ^^^^^^^^^ unexpected label
      |
      = help: remove the label; to name the stack, write `name = "network"` inside the block

    [exit status 3]
    "#);
}

#[test]
fn a_stack_block_has_no_nested_blocks() {
    assert_snapshot!(stack_with("config {\n  }"), @"
    [stderr]
    error: unknown block `config` in `stack`
     --> s/stack.tm:2:3
      |
    1 | stack {
      | ----- in this block
    2 |   config {
      |   ^^^^^^ the blocks in a `stack` block are `run` and `lifecycle`
      |
      = help: attributes are: id, name, description, tags, after, before, wants, wanted_by, watch, for_each, driver, mode, labels, autodeploy

    [exit status 3]
    ");
}

#[test]
fn an_unknown_attribute_comes_with_a_suggestion() {
    assert_snapshot!(stack_with("aftr = [\"/a\"]"), @r#"
    [stderr]
    error: unknown attribute `aftr` in `stack`
     --> s/stack.tm:2:3
      |
    1 | stack {
      | ----- in this block
    2 |   aftr = ["/a"]
      |   ^^^^ not an attribute of `stack`
      |
      = help: did you mean `after`?

    [exit status 3]
    "#);
}

#[test]
fn an_unknown_attribute_like_nothing_known_comes_without() {
    let output = stack_with("zzzzzzzzz = 1");
    assert_eq!(output.code(), 3);
    assert!(!output.stderr.contains("did you mean"), "{output}");
}

#[test]
fn an_attribute_stands_once() {
    assert_snapshot!(stack_with("name = \"a\"\n  name = \"b\""), @r#"
    [stderr]
    error: attribute `name` is set twice in one block
     --> s/stack.tm:3:3
      |
    3 |   name = "b"
      |   ^^^^ again here
      |
      = help: remove one of the two

    [exit status 3]
    "#);
}

#[test]
fn a_directory_has_one_stack_block() {
    let sandbox = Sandbox::new(
        "
//- /s/a.tm
stack {
}
//- /s/b.tm
stack {
}
",
    );
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: a directory can have only one `stack` block
     --> s/b.tm:1:1
      |
    1 | stack {
      | ^^^^^ second block
      |
     ::: s/a.tm:1:1
      |
    1 | stack {
      | ----- first block
      |
      = help: merge the two blocks, or move one to a directory of its own

    [exit status 3]
    ");
}

#[test]
fn an_orch_file_adds_to_the_stack_block_that_terramate_reads() {
    let sandbox = Sandbox::new(
        "
//- /s/stack.tm.hcl
stack {
  name = \"from terramate\"
  tags = [\"a\"]
}
//- /s/more.orch.hcl
stack {
  description = \"from orch\"
  run {
    timeout = \"100ms\"
  }
}
//- /t/more.orch.hcl
stack {
  name = \"on its own\"
}
",
    );
    let listed = sandbox.orch("list --format json").json();
    let of = |index: usize, name: &str| listed["stacks"][index][name].clone();
    assert_eq!(of(0, "name"), "from terramate");
    assert_eq!(of(0, "description"), "from orch");
    assert_eq!(of(0, "tags"), serde_json::json!(["a"]));
    assert_eq!(of(1, "name"), "on its own");
    let run = sandbox.orch("-C s run --quiet -- sleep 20");
    assert_eq!(run.code(), 1, "{run}");
    assert!(run.stderr.contains("100ms"), "{run}");
}

#[test]
fn both_stack_blocks_of_a_directory_cannot_set_one_attribute() {
    let sandbox = Sandbox::new(
        "
//- /s/a.orch.hcl
stack {
  name = \"b\"
}
//- /s/stack.tm.hcl
stack {
  name = \"a\"
}
",
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `name` is set in both `stack` blocks of this directory
     --> s/a.orch.hcl:2:3
      |
    2 |   name = "b"
      |   ^^^^ again here
      |
     ::: s/stack.tm.hcl:2:3
      |
    2 |   name = "a"
      |   ---- first here
      |
      = help: remove one of them

    [exit status 3]
    "#);
    // Two of one kind stay wrong, beside one of the other kind too.
    sandbox.write("/s/a.orch.hcl", "stack {\n}\n");
    assert_eq!(sandbox.orch("list").code(), 0);
    sandbox.write("/s/b.orch.hcl", "stack {\n}\n");
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: the `.orch.hcl` files of a directory have one `stack` block
     --> s/b.orch.hcl:1:1
      |
    1 | stack {
      | ^^^^^ second block
      |
     ::: s/a.orch.hcl:1:1
      |
    1 | stack {
      | ----- first block
      |
      = help: merge the two blocks, or move one to a directory of its own

    [exit status 3]
    ");
}

#[test]
fn an_unknown_block_comes_with_a_suggestion() {
    let sandbox = Sandbox::new("//- /s/stack.tm\nstak {\n}\n");
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: unknown block `stak`
     --> s/stack.tm:1:1
      |
    1 | stak {
      | ^^^^ not a block of this language
      |
      = help: did you mean `stack`?

    [exit status 3]
    ");
}

#[test]
fn an_attribute_outside_of_blocks_is_an_error() {
    let sandbox = Sandbox::new("//- /s/stack.tm\nname = \"x\"\n");
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: attribute `name` outside of any block
     --> s/stack.tm:1:1
      |
    1 | name = "x"
      | ^^^^ a file consists of blocks
      |
      = help: move it into the block it belongs to: `stack { … }`, `globals { … }`

    [exit status 3]
    "#);
}

#[test]
fn watch_names_files_of_the_project() {
    let sandbox = Sandbox::new(
        r#"
//- /dir/file.tf
//- /s/stack.tm
stack {
  watch = ["/dir/file.tf", "missing.tf", "../dir/file.tf", "/dir", "../../decoy.tm"]
}
"#,
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `watch` names files, and `/dir` is not one
     --> s/stack.tm:2:60
      |
    2 |   watch = ["/dir/file.tf", "missing.tf", "../dir/file.tf", "/dir", "../../decoy.tm"]
      |                                                            ^^^^^^ not a regular file
      |
      = help: for everything below it, write `/dir/**`

    error: `../../decoy.tm` leads out of the project
     --> s/stack.tm:2:68
      |
    2 |   watch = ["/dir/file.tf", "missing.tf", "../dir/file.tf", "/dir", "../../decoy.tm"]
      |                                                                    ^^^^^^^^^^^^^^^^ climbs above the project root
      |
      = help: watch files inside the project; a leading `/` is the project root

    [exit status 3]
    "#);
}

#[test]
fn a_stack_block_sees_no_namespaces() {
    assert_snapshot!(stack_with("name = terramate.stack.path.basename"), @"
    [stderr]
    error: `terramate` cannot be used in a `stack` block
     --> s/stack.tm:2:10
      |
    2 |   name = terramate.stack.path.basename
      |          ^^^^^^^^^ not available here
      |
      = help: only literals, operators, templates, `for` and functions are evaluated here

    [exit status 3]
    ");
    assert_eq!(stack_with("name = global.x").code(), 3);
    assert_eq!(stack_with("name = env.HOME").code(), 3);
}

#[test]
fn values_are_expressions() {
    let sandbox = Sandbox::new(
        r#"
//- /s/stack.tm
stack {
  name        = "n${1 + 2 * 3}"
  description = <<-EOT
    two
      lines
  EOT
  tags        = [for t in ["a", "b", "c"] : "t-${t}" if t != "b"]
  after       = 2 > 1 && !false ? [] : ["/x"]
}
"#,
    );
    let stack = sandbox.orch("list --format json").json()["stacks"][0].clone();
    assert_eq!(stack["name"], "n7");
    assert_eq!(stack["description"], "two\n  lines\n");
    assert_eq!(stack["tags"], json!(["t-a", "t-c"]));
    assert_eq!(stack["after"], json!([]));
}

#[test]
fn a_function_that_does_not_exist_is_an_error() {
    assert_snapshot!(stack_with("tags = tm_kontact([\"a\"], [\"b\"])"), @r#"
    [stderr]
    error: unknown function `tm_kontact`
     --> s/stack.tm:2:10
      |
    2 |   tags = tm_kontact(["a"], ["b"])
      |          ^^^^^^^^^^ unknown function
      |
      = help: did you mean `tm_compact`?

    [exit status 3]
    "#);
}

#[test]
fn an_error_within_an_expression_has_its_own_place() {
    assert_snapshot!(stack_with("name = \"a-${[1, 2][7]}\""), @r#"
    [stderr]
    error: no such element
     --> s/stack.tm:2:22
      |
    2 |   name = "a-${[1, 2][7]}"
      |                      ^ the list has 2 elements

    [exit status 3]
    "#);
    assert_snapshot!(stack_with("name = \"${1 / 0}\""), @r#"
    [stderr]
    error: division by zero
     --> s/stack.tm:2:17
      |
    2 |   name = "${1 / 0}"
      |                 ^ this is zero

    [exit status 3]
    "#);
}

#[test]
fn syntax_errors_of_several_files_are_shown_at_once() {
    let sandbox = Sandbox::new(
        r#"
//- /a/stack.tm
stack {
  tags = ["x"
}
//- /b/stack.tm
stack
//- /c/stack.tm
stack {
  name = "unclosed
}
//- /d/stack.tm
stack {
  tags = ["X"]
}
"#,
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: syntax error
     --> a/stack.tm:2:10
      |
    2 |   tags = ["x"
      |          ^ opened here
    3 | }
      | - expected `]`
      |
      = help: close it before the block or bracket around it

    error: syntax error
     --> b/stack.tm:1:6
      |
    1 | stack
      |      ^ invalid structure; expected `{`, `=`, `"` or identifier

    error: syntax error
     --> c/stack.tm:2:10
      |
    2 |   name = "unclosed
      |   -      ^ this string is not closed
      |   |
      |   invalid block body; expected `}`, newline or identifier
      |
      = help: close the string with `"` on the same line

    error: `X` cannot be a tag
     --> d/stack.tm:2:11
      |
    2 |   tags = ["X"]
      |           ^^^ a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`

    [exit status 3]
    "#);
}

#[test]
fn problems_of_all_kinds_come_in_the_order_of_files_and_lines() {
    let sandbox = Sandbox::new(
        r#"
//- /b/stack.tm
stack {
  unknown = 1
  after   = ["/nowhere"]
  id      = "!"
}
//- /a/stack.tm
globas {
}
stack {
  id = 1
}
//- /a/b.tm
stack {
"#,
    );
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    let places: Vec<&str> = output
        .stderr
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("--> "))
        .collect();
    assert_eq!(
        places,
        [
            "a/b.tm:1:7",
            "a/stack.tm:1:1",
            "a/stack.tm:4:8",
            "b/stack.tm:2:3",
            "b/stack.tm:3:14",
            "b/stack.tm:4:13",
        ]
    );
    for _ in 0..5 {
        assert_eq!(sandbox.orch("list").stderr, output.stderr);
    }
}

#[test]
fn every_command_that_reads_the_project_refuses_a_broken_one() {
    let sandbox = Sandbox::new("//- /s/stack.tm\nstack {\n  id = 1\n}\n");
    for command in [
        "list",
        "run true",
        "graph",
        "validate",
        "env",
        "list --order",
    ] {
        let output = sandbox.orch(command);
        assert_eq!((output.code(), &*output.stdout), (3, ""), "{command}");
        assert_eq!(output.stderr.matches("error:").count(), 1, "{command}");
    }
}

#[test]
fn problems_are_data_too() {
    let sandbox = Sandbox::new("//- /s/stack.tm\nstack {\n  aftr = 1\n}\n");
    let expected = json!({
        "format": 1,
        "valid": false,
        "stacks": [],
        "diagnostics": [{
            "severity": "error",
            "code": "unknown-attribute",
            "message": "unknown attribute `aftr` in `stack`",
            "file": "s/stack.tm",
            "line": 2,
            "column": 3,
            "labels": [
                {
                    "file": "s/stack.tm",
                    "line": 2,
                    "column": 3,
                    "end_line": 2,
                    "end_column": 7,
                    "text": "not an attribute of `stack`"
                },
                {
                    "file": "s/stack.tm",
                    "line": 1,
                    "column": 1,
                    "end_line": 1,
                    "end_column": 6,
                    "text": "in this block"
                }
            ],
            "notes": [],
            "help": ["did you mean `after`?"]
        }],
        "errors": []
    });
    for command in ["list", "validate", "env"] {
        let output = sandbox.orch(&format!("{command} --format json"));
        assert_eq!(output.code(), 3, "{command}");
        assert_eq!(output.data(), expected, "{command}");
    }
}

#[test]
fn each_problem_has_a_code() {
    for (project, code) in [
        ("//- /s/stack.tm\nstack {\n", "syntax"),
        (
            "//- /s/stack.tm\nstack {\n  id = \"a\"\n  id = \"b\"\n}\n",
            "duplicate-definition",
        ),
        ("//- /s/stack.tm\nstack \"x\" {}\n", "unexpected-label"),
        ("//- /s/stack.tm\nstack {\n  x {}\n}\n", "unknown-block"),
        ("//- /s/stack.tm\nname = \"x\"\n", "misplaced"),
        (
            "//- /s/a.tm\nglobals {\n  a = 1\n}\norch {\n  required_version = \"1\"\n}\n",
            "misplaced",
        ),
        ("//- /s/stack.tm\nstack {\n  tags = 1\n}\n", "wrong-type"),
        (
            "//- /s/stack.tm\nstack {\n  id = \"ä\"\n}\n",
            "invalid-value",
        ),
        (
            "//- /s/stack.tm\nstack {\n  tags = [\"A B\"]\n}\n",
            "invalid-tag",
        ),
        (
            "//- /s/stack.tm\nstack {\n  tags = [\"a\", \"a\"]\n}\n",
            "duplicate-entry",
        ),
        (
            "//- /s/stack.tm\nstack {\n  name = f()\n}\n",
            "unknown-function",
        ),
        ("//- /s/stack.tm\nstack {\n  name = x\n}\n", "unknown-name"),
        (
            "//- /s/stack.tm\nstack {\n  name = global.x\n}\n",
            "unavailable-name",
        ),
        (
            "//- /s/stack.tm\nstack {\n  name = 1 / 0\n}\n",
            "division-by-zero",
        ),
        (
            "//- /s/stack.tm\nstack {\n  watch = [\"../../x\"]\n}\n",
            "outside-project",
        ),
        (
            "//- /s/stack.tm\nstack {}\nimport {\n  source = \"x.tm\"\n}\n",
            "unknown-import",
        ),
        (
            "//- /s/stack.tm\nstack {}\nimport {}\n",
            "missing-attribute",
        ),
        (
            "//- /s/stack.tm\nstack {\n  after = [\"/x\"]\n}\n",
            "unknown-reference",
        ),
        (
            "//- /s/stack.tm\nstack {\n  after = [\".\"]\n}\n",
            "self-reference",
        ),
        (
            "//- /s/stack.tm\nstack {\n  watch = [\"x\"]\n}\n",
            "unmatched-watch",
        ),
        (
            "//- /a/stack.tm\nstack {\n  id = \"x\"\n}\n//- /b/stack.tm\nstack {\n  id = \"X\"\n}\n",
            "duplicate-id",
        ),
        (
            "//- /a/stack.tm\nstack {\n  after = [\"/b\"]\n}\n//- /b/stack.tm\nstack {\n  after = [\"/a\"]\n}\n",
            "cycle",
        ),
    ] {
        let output = Sandbox::new(project).orch("validate --format json");
        let data = output.data();
        let codes: Vec<&str> = data["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .map(|diagnostic| diagnostic["code"].as_str().unwrap())
            .collect();
        assert_eq!(codes, [code], "{project}");
    }
}

#[test]
fn colours_come_only_when_they_are_forced() {
    let sandbox = Sandbox::new("//- /s/stack.tm\nstack {\n  id = 1\n}\n");
    let plain = sandbox.orch("list").stderr;
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let forced = sandbox.orch_with("list", |orch| {
        orch.env("CLICOLOR_FORCE", "1");
    });
    assert!(forced.stderr.contains('\u{1b}'), "{forced}");
    let refused = sandbox.orch_with("list", |orch| {
        orch.env("NO_COLOR", "1");
    });
    assert_eq!(refused.stderr, plain);
}

/// Every document has the same fields, whether the command succeeds, fails or refuses.
#[test]
fn documents_keep_their_shape() {
    const FAULT: &str = "stack {\n  aftr = 1\n}\n";
    let sandbox = Sandbox::layout(
        "
        a
        b after /a",
    );
    let documents = [
        "list",
        "env",
        "validate",
        "graph",
        "why a",
        "why b --after a",
    ];
    let shape = |document: &Value| -> Vec<(String, bool)> {
        let fields = document.as_object().unwrap().iter();
        let fields = fields.filter(|(name, _)| *name != "refused");
        let mut shape: Vec<_> = fields
            .map(|(name, value)| (name.clone(), value.is_array()))
            .collect();
        shape.sort();
        shape
    };
    let filled = documents.map(|command| {
        let document = sandbox.orch(&format!("{command} --format json")).json();
        assert!(document["stacks"].is_array(), "{command}");
        assert_eq!(document["valid"], true, "{command}");
        shape(&document)
    });
    for (command, filled) in documents.iter().zip(&filled) {
        if !matches!(*command, "validate" | "why b --after a") {
            let refused = sandbox.orch(&format!("{command} --changed --format json"));
            assert_eq!(refused.code(), 4, "{command}");
            let mut refused = shape(&refused.data());
            refused.retain(|(name, _)| !SINCE.contains(&name.as_str()));
            assert_eq!(refused, *filled, "{command}");
        }
    }
    sandbox.write("/broken/stack.tm", FAULT);
    for (command, filled) in documents.iter().zip(filled) {
        let failed = sandbox.orch(&format!("{command} --format json"));
        assert_eq!(failed.code(), 3, "{command}");
        assert_eq!(shape(&failed.data()), filled, "{command}");
        assert_eq!(failed.data()["valid"], false, "{command}");
    }
    for arguments in [
        "list --changed",
        "list --removed",
        "why a --changed",
        "graph --changed",
        "env --changed",
    ] {
        let failed = sandbox.orch(&format!("{arguments} --format json"));
        assert_has_no_base(&failed.data());
    }
    sandbox.remove("/broken/stack.tm");
    let refused = sandbox.orch("list --changed --format json");
    assert_eq!(refused.code(), 4);
    assert_has_no_base(&refused.data());
    for arguments in ["why none", "why a --after none"] {
        let refused = sandbox.orch(&format!("{arguments} --format json"));
        assert_eq!(refused.code(), 64, "{refused}");
        let document = refused.data();
        assert!(document["refused"]["problem"].is_string(), "{refused}");
        assert_eq!(document["stacks"], json!([]), "{refused}");
        assert_eq!(document.get("base"), None, "{refused}");
    }
}

/// The fields that a document has with `--changed`.
const SINCE: [&str; 3] = ["base", "removed", "changed_outside"];

#[track_caller]
fn assert_has_no_base(document: &Value) {
    let fields = SINCE.map(|field| document.get(field));
    let (null, none) = (Value::Null, json!([]));
    assert_eq!(fields, [Some(&null), Some(&none), Some(&null)]);
}
