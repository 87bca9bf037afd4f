//! Which files are configuration, which directories are entered, and how files are merged.

use insta::assert_snapshot;

use crate::support::Sandbox;

#[test]
fn three_endings_make_a_configuration_file() {
    let sandbox = Sandbox::new("");
    for name in [
        "a/any.tm",
        "b/any.tm.hcl",
        "c/any.orch.hcl",
        "d/two.dots.tm",
    ] {
        sandbox.write(&format!("/{name}"), "stack {\n}\n");
    }
    for name in [
        "e/any.hcl",
        "f/any.tf",
        "g/.tm",
        "h/.x.tm",
        "i/any.tm.bak",
        "j/.tm.hcl",
        "k/x.TM",
        "l/.orch.hcl",
    ] {
        sandbox.write(&format!("/{name}"), "stack {");
    }
    assert_snapshot!(sandbox.orch("list"), @"
    a
    b
    c
    d
    ");
}

#[test]
fn dot_directories_are_not_entered() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/.hidden/stack.tm", "stack {");
    sandbox.write("/a/.terraform/modules/x/stack.tm", "stack {");
    assert_snapshot!(sandbox.orch("list"), @"a");
}

#[test]
fn marked_directories_are_not_entered() {
    for mark in [".tmskip", ".orchskip"] {
        let sandbox = Sandbox::layout(
            "
            a
            b/c
            d",
        );
        sandbox.write("/b/broken.tm", "stack {");
        sandbox.write(&format!("/b/{mark}"), "");
        assert_eq!(sandbox.orch("list").to_string(), "a\nd\n", "{mark}");
    }
}

#[test]
fn a_mark_at_the_root_leaves_only_the_root() {
    let sandbox = Sandbox::layout(
        "
        /
        a",
    );
    sandbox.write("/.tmskip", "");
    assert_snapshot!(sandbox.orch("list"), @".");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_directory_is_not_entered() {
    let sandbox = Sandbox::layout("a/b");
    sandbox.symlink("a", "/link");
    sandbox.symlink("..", "/a/up");
    sandbox.symlink(".", "/a/self");
    assert_snapshot!(sandbox.orch("list"), @"a/b");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_of_the_project_is_read() {
    let sandbox = Sandbox::layout("a");
    sandbox.mkdir("/b");
    sandbox.symlink("../a/stack.tm", "/b/stack.tm");
    assert_snapshot!(sandbox.orch("list"), @"
    a
    b
    ");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_outside_of_the_project_is_refused() {
    let sandbox = Sandbox::layout("a");
    sandbox.symlink("../../decoy.tm", "/a/linked.tm");
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: `a/linked.tm` is a link that leads out of the project
      = help: copy the file into the project, or link to one inside it

    [exit status 3]
    ");
}

// Merging.

#[test]
fn the_files_of_a_directory_are_one_configuration() {
    let sandbox = Sandbox::new(
        "
//- /a/1.tm
terramate {
}
//- /a/2.tm.hcl
stack {
}
//- /a/3.orch.hcl
globals {
}
orch {
}
",
    );
    assert_snapshot!(sandbox.orch("list"), @"a");
}

#[test]
fn blocks_that_orch_does_not_use_are_accepted_with_any_content() {
    let sandbox = Sandbox::new(
        r#"
//- /a/stack.tm
stack {
}
assert {
  assertion = tm_anything(global.x)
  message   = "m"
}
generate_hcl "x.tf" {
  condition = true
  content {
    resource "a" "b" {
      x = provider::f(1, 2...)
    }
  }
}
generate_file "x" {
  content = tm_jsonencode({ a = 1 })
}
script "deploy" {
  description = "d"
  job {
    commands = [["terraform", "apply"]]
  }
}
vendor {
  dir = "/v"
}
bundle "b" {
}
component "c" {
}
define component {
}
environment {
}
scaffold {
}
"#,
    );
    assert_snapshot!(sandbox.orch("validate"), @"
    [stderr]
    note: no problems found: 1 stack, 2 configuration files
    ");
}
