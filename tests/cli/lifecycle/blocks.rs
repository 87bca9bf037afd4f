//! What `moved` and `removed` blocks may say, and where they may stand.

use insta::assert_snapshot;

use crate::support::Sandbox;

/// A project with the stacks `/a` and `/b/c`, and a file of `/b` with this content.
fn with(text: &str) -> Sandbox {
    let sandbox = Sandbox::new(
        "
//- /a/stack.tm
stack {
}
//- /b/c/stack.tm
stack {
}
",
    );
    sandbox.write("/b/blocks.orch.hcl", text);
    sandbox
}

/// Returns what `orch` says of a project in which that is wrong.
#[track_caller]
fn problems(text: &str) -> String {
    let output = with(text).orch("list");
    assert_eq!(output.code(), 3, "{text}: {output}");
    output.stderr
}

#[test]
fn removed_blocks_work_in_any_directory_and_in_imports() {
    let sandbox = with(
        r#"
moved {
  from = "old"
  to   = "c"
}
moved {
  from = "/x[\"k\"]"
  to   = tm_format("%s/%s", "..", "a")
}
removed {
  from = "../gone"
  lifecycle {
    destroy         = 1 > 2
    prevent_destroy = false
  }
}
"#,
    );
    sandbox.write(
        "/b/c/blocks.orch.hcl",
        "import {\n  source = \"/files/shared.hcl\"\n}\n",
    );
    sandbox.write(
        "/a/blocks.orch.hcl",
        "import {\n  source = \"/files/shared.hcl\"\n}\n",
    );
    // Several directories may import what is absolute.
    sandbox.write(
        "/files/shared.hcl",
        "moved {\n  from = \"/p\"\n  to = \"/q\"\n}\nremoved {\n  from = \"/r\"\n}\n",
    );
    assert_snapshot!(sandbox.orch("list"), @"
    a
    b/c
    ");
    assert_eq!(sandbox.orch("validate").code(), 0);
}

#[test]
fn removed_blocks_are_refused_in_terramate_files() {
    let files = ["blocks.tm", "blocks.tm.hcl"].map(|name| {
        let sandbox = with("");
        sandbox.write(
            &format!("/b/{name}"),
            "removed {\n  from = \"/gone\"\n}\nmoved {\n  from = \"/x\"\n  to   = \"/a\"\n}\n",
        );
        let output = sandbox.orch("list");
        assert_eq!(output.code(), 3, "{output}");
        output.stderr.replace(name, "FILE")
    });
    assert_eq!(files[0], files[1]);
    assert_snapshot!(files[0], @"
    error: a `removed` block belongs in an `.orch.hcl` file
     --> b/FILE:1:1
      |
    1 | removed {
      | ^^^^^^^ Terramate reads this file and refuses it
      |
      = help: move the block into a file whose name ends in `.orch.hcl`

    error: a `moved` block belongs in an `.orch.hcl` file
     --> b/FILE:4:1
      |
    4 | moved {
      | ^^^^^ Terramate reads this file and refuses it
      |
      = help: move the block into a file whose name ends in `.orch.hcl`
    ");
}

#[test]
fn removed_blocks_report_missing_and_unknown_attributes() {
    assert_snapshot!(problems("moved {\n}\n"), @r#"
    error: a `moved` block needs `from`
     --> b/blocks.orch.hcl:1:1
      |
    1 | moved {
      | ^^^^^ in this block
      |
      = help: write the path of the stacks: `from = "/…"`

    error: a `moved` block needs `to`
     --> b/blocks.orch.hcl:1:1
      |
    1 | moved {
      | ^^^^^ in this block
      |
      = help: write the path of the stacks: `to = "/…"`
    "#);
    assert_snapshot!(problems("removed {\n}\n"), @r#"
    error: a `removed` block needs `from`
     --> b/blocks.orch.hcl:1:1
      |
    1 | removed {
      | ^^^^^^^ in this block
      |
      = help: write the path of the stacks: `from = "/…"`
    "#);
    assert_snapshot!(problems("moved \"net\" {\n  from = \"/x\"\n  into = \"/y\"\n  to = \"/y\"\n  lifecycle {\n  }\n}\n"), @r#"
    error: a `moved` block has no labels
     --> b/blocks.orch.hcl:1:7
      |
    1 | moved "net" {
      |       ^^^^^ unexpected label
      |
      = help: remove the label; the attribute `from` names the stacks

    error: unknown attribute `into` in `moved`
     --> b/blocks.orch.hcl:3:3
      |
    1 | moved "net" {
      | ----- in this block
    2 |   from = "/x"
    3 |   into = "/y"
      |   ^^^^ not an attribute of `moved`

    error: unknown block `lifecycle` in `moved`
     --> b/blocks.orch.hcl:5:3
      |
    5 |   lifecycle {
      |   ^^^^^^^^^ a `moved` block has only `from` and `to`
    "#);
    assert_snapshot!(problems("removed \"net\" {\n  form = \"/x\"\n  from = \"/x\"\n  lifecicle {\n  }\n}\n"), @r#"
    error: a `removed` block has no labels
     --> b/blocks.orch.hcl:1:9
      |
    1 | removed "net" {
      |         ^^^^^ unexpected label
      |
      = help: remove the label; the attribute `from` names the stacks

    error: unknown attribute `form` in `removed`
     --> b/blocks.orch.hcl:2:3
      |
    1 | removed "net" {
      | ------- in this block
    2 |   form = "/x"
      |   ^^^^ not an attribute of `removed`
      |
      = help: did you mean `from`?

    error: unknown block `lifecicle` in `removed`
     --> b/blocks.orch.hcl:4:3
      |
    4 |   lifecicle {
      |   ^^^^^^^^^ only `lifecycle` is allowed here
      |
      = help: did you mean `lifecycle`?
    "#);
}

#[test]
fn removed_blocks_report_useless_rules() {
    assert_snapshot!(
        problems("removed {\n  from = \"/x\"\n  lifecycle \"y\" {\n    prevent_destry = false\n    precondition {\n    }\n  }\n  lifecycle {\n  }\n}\n"),
        @r#"
    error: a `lifecycle` block has no labels
     --> b/blocks.orch.hcl:3:13
      |
    3 |   lifecycle "y" {
      |             ^^^ unexpected label
      |
      = help: remove the label

    error: unknown attribute `prevent_destry` in the `lifecycle` of a `removed` block
     --> b/blocks.orch.hcl:4:5
      |
    1 | removed {
      | ------- in this block
    ...
    4 |     prevent_destry = false
      |     ^^^^^^^^^^^^^^ has no meaning for removed stacks
      |
      = help: did you mean `prevent_destroy`?

    error: unknown block `precondition` in `lifecycle`
     --> b/blocks.orch.hcl:5:5
      |
    5 |     precondition {
      |     ^^^^^^^^^^^^ a removed stack cannot have conditions

    error: a `removed` block has one `lifecycle` block
     --> b/blocks.orch.hcl:8:3
      |
    3 |   lifecycle "y" {
      |   --------- first block
    ...
    8 |   lifecycle {
      |   ^^^^^^^^^ second block
      |
      = help: merge the two blocks
    "#
    );
}

#[test]
fn removed_blocks_take_paths_and_booleans() {
    assert_snapshot!(problems("moved {\n  from = [\"/x\"]\n  to = global.x\n}\n"), @r#"
    error: `from` must be a path
     --> b/blocks.orch.hcl:2:10
      |
    2 |   from = ["/x"]
      |          ^^^^^^ this is a list

    error: `global` cannot be used in a `moved` block
     --> b/blocks.orch.hcl:3:8
      |
    3 |   to = global.x
      |        ^^^^^^ not available here
      |
      = help: only literals, operators, templates, `for` and functions are evaluated here
    "#);
    assert_snapshot!(problems("removed {\n  from = \"/x\"\n  lifecycle {\n    destroy = \"no\"\n    prevent_destroy = 1\n  }\n}\n"), @r#"
    error: `destroy` must be `true` or `false`
     --> b/blocks.orch.hcl:4:15
      |
    4 |     destroy = "no"
      |               ^^^^ this is a string

    error: `prevent_destroy` must be `true` or `false`
     --> b/blocks.orch.hcl:5:23
      |
    5 |     prevent_destroy = 1
      |                       ^ this is a number
    "#);
    assert_snapshot!(problems("moved {\n  from = \"/x\"\n  to = \"../x\"\n}\n"), @r#"
    error: `/x` is moved to itself
     --> b/blocks.orch.hcl:3:8
      |
    2 |   from = "/x"
      |          ---- from here
    3 |   to = "../x"
      |        ^^^^^^ this is where it was
      |
      = help: remove the block, or correct one of the paths
    "#);
    assert_snapshot!(problems("removed {\n  from = \"../../x\"\n}\n"), @r#"
    error: `../../x` leads out of the project
     --> b/blocks.orch.hcl:2:10
      |
    2 |   from = "../../x"
      |          ^^^^^^^^^ climbs above the project root
      |
      = help: a leading `/` is the project root
    "#);
    assert_snapshot!(problems("moved {\n  from = \"\"\n  to = \"tag:x\"\n}\n"), @r#"
    error: `from` is empty
     --> b/blocks.orch.hcl:2:10
      |
    2 |   from = ""
      |          ^^ this names no directory
      |
      = help: `.` is the directory of this file, and `/` the project root

    error: `to` must be a path
     --> b/blocks.orch.hcl:3:8
      |
    3 |   to = "tag:x"
      |        ^^^^^^^ this is a tag
      |
      = help: name the directory, which matches all stacks at and below it, and their instances
    "#);
    assert_snapshot!(problems("removed {\n  from = \"/x[*]\"\n}\nremoved {\n  from = \"/x/**\"\n}\n"), @r#"
    error: `from` must be a path
     --> b/blocks.orch.hcl:2:10
      |
    2 |   from = "/x[*]"
      |          ^^^^^^^ this is a pattern
      |
      = help: name the directory, which matches all stacks at and below it, and their instances

    error: `from` must be a path
     --> b/blocks.orch.hcl:5:10
      |
    5 |   from = "/x/**"
      |          ^^^^^^^ this is a pattern
      |
      = help: name the directory, which matches all stacks at and below it, and their instances
    "#);
}

#[test]
fn removed_blocks_handle_hostile_values() {
    let sandbox = with("removed {\n  from = \"/\\u0000\"\n}\n");
    sandbox.write(
        "/long.orch.hcl",
        format!("removed {{\n  from = \"/{}\"\n}}\n", "x/".repeat(60_000)),
    );
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3, "{output}");
    let said: Vec<&str> = output
        .stderr
        .lines()
        .filter(|line| line.starts_with("error"))
        .collect();
    assert_snapshot!(said.join("\n"), @"
    error: `from` has a NUL character
    error: `from` is longer than any path: it has 120001 bytes
    ");
    assert!(output.stderr.len() < 4_000, "{}", output.stderr.len());
    // What may be the name of a directory is a path.
    let odd = "moved {\n  from = \"/\\u001b[31m\\u202e\\n\"\n  to = \"/a\"\n}\nmoved {\n  from = \"/\\u001b[31m\\u202e\\n\"\n  to = \"/z\"\n}\n";
    let said = problems(odd);
    assert!(!said.contains(['\u{1b}', '\u{202e}']), "{said:?}");
    assert_snapshot!(said, @r#"
    error: two `moved` blocks have `from = "/\u{1b}[31m\u{202e}\n"`
     --> b/blocks.orch.hcl:6:10
      |
    2 |   from = "/\u001b[31m\u202e\n"
      |          --------------------- first here
    ...
    6 |   from = "/\u001b[31m\u202e\n"
      |          ^^^^^^^^^^^^^^^^^^^^^ again here
      |
      = help: remove one of the blocks
    "#);
}

#[test]
fn removed_blocks_must_not_contradict_each_other() {
    let twice = "moved {\n  from = \"/x\"\n  to = \"/y\"\n}\nmoved {\n  from = \"../x\"\n  to = \"/z\"\n}\nmoved {\n  from = \"/w\"\n  to = \"/z\"\n}\n";
    assert_snapshot!(problems(twice), @r#"
    error: two `moved` blocks have `from = "/x"`
     --> b/blocks.orch.hcl:6:10
      |
    2 |   from = "/x"
      |          ---- first here
    ...
    6 |   from = "../x"
      |          ^^^^^^ again here
      |
      = help: remove one of the blocks

    error: two `moved` blocks have `to = "/z"`
      --> b/blocks.orch.hcl:11:8
       |
     7 |   to = "/z"
       |        ---- first here
    ...
    11 |   to = "/z"
       |        ^^^^ again here
       |
       = help: remove one of the blocks
    "#);
    let sandbox = with("moved {\n  from = \"/x\"\n  to = \"/y\"\n}\n");
    sandbox.write(
        "/back.orch.hcl",
        "moved {\n  from = \"/y\"\n  to = \"/x\"\n}\n",
    );
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3, "{output}");
    assert_snapshot!(output.stderr, @"
    error: 2 `moved` blocks form a cycle
     --> b/blocks.orch.hcl:1:1
      |
    1 | moved {
      | ^^^^^ from `/x` to `/y`
      |
     ::: back.orch.hcl:1:1
      |
    1 | moved {
      | ----- from `/y` to `/x`
      |
      = help: to swap stacks, give each an `id` before they move: records follow the id
    ");
    let ring: Vec<String> = (0..12)
        .map(|n| {
            format!(
                "moved {{\n  from = \"/r{n}\"\n  to = \"/r{}\"\n}}\n",
                (n + 1) % 12
            )
        })
        .collect();
    let said = problems(&ring.concat());
    assert!(said.contains("12 `moved` blocks form a cycle"), "{said}");
    assert!(
        said.contains("note: 4 more blocks are part of it"),
        "{said}"
    );
    assert_snapshot!(problems("removed {\n  from = \"/x\"\n}\nremoved {\n  from = \"/x/\"\n}\n"), @r#"
    error: `/x` is removed twice
     --> b/blocks.orch.hcl:5:10
      |
    2 |   from = "/x"
      |          ---- first here
    ...
    5 |   from = "/x/"
      |          ^^^^^ again here
      |
      = help: remove one of the blocks
    "#);
}

#[test]
fn removed_blocks_refuse_existing_stacks() {
    assert_snapshot!(problems("removed {\n  from = \"c\"\n}\n"), @r#"
    error: `/b/c` is in the project, so it cannot be removed
     --> b/blocks.orch.hcl:2:10
      |
    2 |   from = "c"
      |          ^^^ this removes all stacks at and below the path
      |
     ::: b/c/stack.tm:1:1
      |
    1 | stack {
      | ----- this stack exists
      |
      = help: remove the `removed` block, or delete the stack and commit that
    "#);
    assert_snapshot!(problems("removed {\n  from = \"/\"\n}\n"), @r#"
    error: `/a` is in the project, so it cannot be removed
     --> b/blocks.orch.hcl:2:10
      |
    2 |   from = "/"
      |          ^^^ this removes all stacks at and below the path
      |
     ::: a/stack.tm:1:1
      |
    1 | stack {
      | ----- this stack exists
      |
      = note: 1 more stacks are there
      = help: remove the `removed` block, or delete the stack and commit that
    "#);
    let sandbox = with("removed {\n  from = \"/i[\\\"x\\\"]\"\n}\n");
    sandbox.write(
        "/i/stack.orch.hcl",
        "stack {\n  for_each = [\"w\", \"x\"]\n}\n",
    );
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3, "{output}");
    assert!(
        output
            .stderr
            .contains("`/i[\"x\"]` is in the project, so it cannot be removed"),
        "{output}"
    );
    // Another instance may be gone.
    sandbox.write("/i/stack.orch.hcl", "stack {\n  for_each = [\"w\"]\n}\n");
    assert_eq!(sandbox.orch("list").code(), 0);
}
