//! Where a project begins and ends.

use insta::assert_snapshot;

use crate::support::Sandbox;

#[test]
fn the_nearest_declared_root_wins_over_git_and_over_outer_ones() {
    let sandbox = Sandbox::new(
        "
//- /inner/root.orch.hcl
orch {
  root = true
}
//- /inner/deep/stack.tm
stack {
}
//- /outer/stack.tm
stack {
}
",
    );
    sandbox.git_init();
    assert_snapshot!(sandbox.orch_in("/inner/deep", "list --why"), @".  # at or below /deep");
}

#[test]
fn stacks_of_another_project_below_do_not_belong_to_this_one() {
    let sandbox = Sandbox::new(
        "
//- /a/stack.tm
stack {
}
//- /inner/root.orch.hcl
orch {
  root = true
}
//- /inner/stack.tm
stack {
}
//- /inner/deep/broken.tm
stack {
",
    );
    assert_snapshot!(sandbox.orch("list"), @"a");
}

#[test]
fn a_project_of_nothing_but_other_projects_says_so() {
    let sandbox = Sandbox::new("//- /inner/root.tm\nterramate {\n  root = true\n}\nstack {\n}\n");
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    note: there are no stacks in `$ROOT`; `/inner` is a project of its own: change into it
    ");
}

#[test]
fn without_a_declared_root_the_top_level_of_git_is_the_root() {
    let sandbox = Sandbox::unmarked(
        "
//- /a/b/stack.tm
stack {
}
//- /a/version.tm
terramate {
  required_version = \">= 0\"
}
//- /c/stack.tm
stack {
  after = [\"/a\"]
}
",
    );
    sandbox.git_init();
    let output = sandbox.orch_in("/a/b", "list --why");
    assert_eq!(output.stdout, ".  # at or below /a/b\n", "{output}");
    let output = sandbox.orch("list --order");
    assert_eq!(output.stdout, "a/b\nc\n", "{output}");
}

#[test]
fn a_repository_within_a_repository_is_a_project_of_its_own() {
    let sandbox =
        Sandbox::unmarked("//- /a/stack.tm\nstack {\n}\n//- /sub/b/stack.tm\nstack {\n}\n");
    sandbox.git_init();
    sandbox.git_init_at("/sub");
    assert_snapshot!(sandbox.orch("list"), @"
    a
    sub/b
    ");
    assert_snapshot!(sandbox.orch_in("/sub", "list --why"), @"b  # at or below /");
}

#[test]
fn a_worktree_or_submodule_is_marked_by_a_file() {
    let sandbox = Sandbox::unmarked("//- /a/stack.tm\nstack {\n}\n");
    sandbox.write("/.git", "gitdir: /elsewhere\n");
    assert_snapshot!(sandbox.orch_in("/a", "list --why"), @".  # at or below /a");
}

#[test]
fn without_git_the_nearest_required_version_marks_the_root() {
    let sandbox = Sandbox::unmarked(
        "
//- /version.tm
terramate {
  required_version = \"\"
}
//- /a/stack.tm
stack {
  after = [\"/b\"]
}
//- /b/stack.tm
stack {
}
",
    );
    assert_snapshot!(sandbox.orch_in("/a", "list --why"), @".  # at or below /a");
}

#[test]
fn without_any_mark_the_current_directory_is_the_root_and_a_note_says_so() {
    let sandbox = Sandbox::unmarked("//- /a/stack.tm\nstack {\n}\n");
    assert_snapshot!(sandbox.orch("list"), @"
    a
    [stderr]
    note: nothing marks the root of a project here, so it is `$ROOT`; write `orch { root = true }` to a file `orch.orch.hcl` in the root
    ");
    assert_snapshot!(sandbox.orch_in("/a", "list"), @"
    .
    [stderr]
    note: nothing marks the root of a project here, so it is `$ROOT/a`; write `orch { root = true }` to a file `orch.orch.hcl` in the root
    ");
}

#[test]
fn a_broken_file_above_the_root_does_no_harm() {
    let sandbox = Sandbox::unmarked(
        "//- /in/root.tm\norch {\n  root = true\n}\n//- /in/s/stack.tm\nstack {\n}\n",
    );
    sandbox.write("/broken.tm", "stack {");
    std::fs::write(sandbox.outside().join("broken.tm"), [0xff, 0xfe]).unwrap();
    assert_snapshot!(sandbox.orch_in("/in", "list"), @"s");
}

#[test]
fn a_broken_root_is_not_passed_over_in_silence() {
    // Nothing else marks a root, so what was meant to must not be dropped with all it hands down.
    let sandbox = Sandbox::unmarked("//- /s/stack.tm\nstack {\n}\n");
    sandbox.write("/root.orch.hcl", "orch {\n  root = true\n");
    let output = sandbox.orch_in("/s", "list");
    assert_eq!((output.code(), &*output.stdout), (3, ""), "{output}");
    assert!(output.stderr.contains("syntax error"), "{output}");
}

#[test]
fn git_is_not_needed() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox.orch_with("list", |orch| {
        orch.env("PATH", "/nowhere");
    });
    assert_eq!(output.to_string(), "a\n");
}
