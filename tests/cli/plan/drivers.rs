//! Which driver a stack has, and what is wrong with a `driver` block.

use insta::assert_snapshot;

use crate::support::Sandbox;

#[test]
fn plan_reports_an_unknown_driver_with_the_fix() {
    let sandbox = Sandbox::new("");
    sandbox.write(
        "/orch.orch.hcl",
        r#"driver "make" {
  aply    = ["make"]
  destroy = []
}
driver "make" {
  apply = ["make"]
}
driver "none" {
  apply = ["make"]
}
driver {
  apply = ["make"]
}
"#,
    );
    sandbox.write(
        "/a/stack.orch.hcl",
        "stack {\n  driver = \"terrafrom\"\n  mode = \"watch\"\n}\n",
    );
    sandbox.write(
        "/b/stack.orch.hcl",
        "stack {\n}\ndriver \"x\" {\n  apply = [\"x\"]\n}\n",
    );
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    assert_snapshot!(output.stderr, @r#"
    error: unknown driver `terrafrom`
     --> a/stack.orch.hcl:2:12
      |
    2 |   driver = "terrafrom"
      |            ^^^^^^^^^^^ chosen here
      |
      = help: did you mean `terraform`?
      = help: define it at the root: `driver "NAME" { … }`

    error: `watch` is not a mode of a stack
     --> a/stack.orch.hcl:3:10
      |
    3 |   mode = "watch"
      |          ^^^^^^^ expected `"manage"` or `"read"`
      |
      = help: `read` is for stacks that own nothing: they are only read, for the outputs that others use

    error: a `driver` block must be in the project root
     --> b/stack.orch.hcl:3:1
      |
    3 | driver "x" {
      | ^^^^^^ not at the root
      |
      = help: move the block there; to choose a driver here, set `driver = "NAME"` in `orch.config`

    error: the driver `make` has no `apply`
     --> orch.orch.hcl:1:8
      |
    1 | driver "make" {
      |        ^^^^^^ `apply` is missing
      |
      = help: write the command as a list of words: `apply = ["make", "apply"]`

    error: unknown attribute `aply` in `driver`
     --> orch.orch.hcl:2:3
      |
    1 | driver "make" {
      | ------ in this block
    2 |   aply    = ["make"]
      |   ^^^^ not an attribute of `driver`
      |
      = help: did you mean `apply`?

    error: `destroy` is empty
     --> orch.orch.hcl:3:13
      |
    3 |   destroy = []
      |             ^^ a command needs a program
      |
      = help: remove the attribute, or name the program

    error: the driver `make` is defined twice
     --> orch.orch.hcl:5:8
      |
    1 | driver "make" {
      |        ------ first here
    ...
    5 | driver "make" {
      |        ^^^^^^ again here
      |
      = help: remove or rename one of them

    error: `none` cannot be the name of a driver
     --> orch.orch.hcl:8:8
      |
    8 | driver "none" {
      |        ^^^^^^ the driver `none` does nothing

    error: a `driver` block has one label: its name
      --> orch.orch.hcl:11:1
       |
    11 | driver {
       | ^^^^^^ in this block
       |
       = help: write `driver "make" { … }`
    "#);
}

#[test]
fn plan_uses_the_nearest_driver() {
    let sandbox = Sandbox::new("");
    let driver = |name: &str| {
        format!(
            "driver \"{name}\" {{\n  plan = [\"sh\", \"-c\", \"echo {name} > by\"]\n  apply = [\"true\"]\n}}\n"
        )
    };
    let root = format!(
        "orch {{\n  config {{\n    driver = \"one\"\n  }}\n}}\n{}{}{}",
        driver("one"),
        driver("two"),
        driver("three")
    );
    sandbox.write("/orch.orch.hcl", root);
    sandbox.write(
        "/in/orch.orch.hcl",
        "orch {\n  config {\n    driver = \"two\"\n  }\n}\n",
    );
    sandbox.write("/a/stack.orch.hcl", "stack {\n}\n");
    sandbox.write("/in/b/stack.orch.hcl", "stack {\n}\n");
    sandbox.write("/in/c/stack.orch.hcl", "stack {\n  driver = \"three\"\n}\n");
    assert_eq!(sandbox.orch("plan").code(), 0);
    let by = |path: &str| sandbox.read(&format!("{path}/by")).trim().to_owned();
    assert_eq!(
        [by("/a"), by("/in/b"), by("/in/c")],
        ["one", "two", "three"]
    );
}

#[test]
fn plan_counts_stacks_without_driver() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("plan").stdout, @"Plan: nothing to do. 1 without a driver.");
}

#[test]
fn plan_evaluates_driver_arguments_for_each_stack() {
    let sandbox = Sandbox::new("");
    let root = "orch {\n  config {\n    driver = \"x\"\n  }\n}\nglobals {\n  who = \"world\"\n}\ndriver \"x\" {\n  plan = [\"sh\", \"-c\", \"echo ${global.who} ${terramate.stack.name} > by\"]\n  apply = [\"true\"]\n}\n";
    sandbox.write("/orch.orch.hcl", root);
    sandbox.write("/a/stack.orch.hcl", "stack {\n}\n");
    assert_eq!(sandbox.orch("plan").code(), 0);
    assert_eq!(sandbox.read("/a/by"), "world a\n");
    sandbox.write(
        "/orch.orch.hcl",
        root.replace("global.who", "global.nobody"),
    );
    let output = sandbox.orch("plan");
    assert_eq!(output.code(), 3);
    assert!(output.stderr.contains("nobody"), "{output:?}");
    sandbox.write(
        "/orch.orch.hcl",
        root.replace("\"sh\", \"-c\"", "\"no-such-program\""),
    );
    let output = sandbox.orch("plan");
    assert_eq!(output.code(), 5);
    assert!(output.stderr.contains("no-such-program"), "{output:?}");
}
