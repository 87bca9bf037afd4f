//! What an entry of `after`, `before`, `wants`, `wanted_by` names.

use insta::assert_snapshot;

use crate::support::Sandbox;

/// Shows that `/m` with this reference runs after `/z`, without a word on stderr.
#[track_caller]
fn runs_after_z(reference: &str) {
    let sandbox = Sandbox::layout(&format!("m after {reference}\nz [last zz]"));
    let output = sandbox.orch("list --order");
    assert_eq!(output.to_string(), "z\nm\n", "{reference}");
}

#[test]
fn references_may_be_absolute_or_relative_paths() {
    for reference in [
        "/z",
        "/z/",
        "../z",
        "../z/",
        "./../z",
        "../m/../z",
        "//z",
        "/./z",
    ] {
        runs_after_z(reference);
    }
}

#[test]
fn references_may_combine_tags_with_and_and_or() {
    for reference in [
        "tag:last",
        "tag:last:zz",
        "tag:none,last",
        "tag:none:zz,last:zz",
    ] {
        runs_after_z(reference);
    }
}

#[test]
fn references_to_a_tag_do_not_match_nested_stacks() {
    let sandbox = Sandbox::layout(
        "
        m after tag:last
        z [last]
        z/nested",
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    z
    m
    z/nested
    ");
}

#[test]
fn references_to_an_own_tag_match_the_other_stacks() {
    let sandbox = Sandbox::layout(
        "
        a [x] after tag:x
        b [x]
        c [x]",
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    b
    c
    a
    ");
}

#[test]
fn references_to_the_stack_itself_are_an_error_in_after_and_before() {
    let sandbox = Sandbox::layout(
        "
        a after /a
        b before .
        c [x] wants tag:x
        d wanted_by ../d
        / after /",
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `/a` in `after` names only the stack itself
     --> a/stack.tm:2:12
      |
    2 |   after = ["/a"]
      |            ^^^^ this is the stack itself
      |
      = help: remove it

    error: `.` in `before` names only the stack itself
     --> b/stack.tm:2:13
      |
    2 |   before = ["."]
      |             ^^^ this is the stack itself
      |
      = help: remove it

    warning: `tag:x` in `wants` matches no stack
     --> c/stack.tm:3:12
      |
    3 |   wants = ["tag:x"]
      |            ^^^^^^^ no other stack has such tags

    warning: `../d` in `wanted_by` names only the stack itself
     --> d/stack.tm:2:16
      |
    2 |   wanted_by = ["../d"]
      |                ^^^^^^ this is the stack itself
      |
      = help: remove it

    error: `/` in `after` names only the stack itself
     --> stack.tm:2:12
      |
    2 |   after = ["/"]
      |            ^^^ this is the stack itself
      |
      = help: remove it

    [exit status 3]
    "#);
}

#[test]
fn references_of_after_to_an_ancestor_stack_match_it_alone() {
    let sandbox = Sandbox::layout(
        "
        parent
        parent/child after /parent ..
        parent/sibling before /parent/child",
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    parent
    parent/sibling
    parent/child
    ");
    assert_snapshot!(sandbox.orch("validate"), @"
    [stderr]
    note: no problems found: 3 stacks, 4 configuration files
    ");
}

#[test]
fn references_to_a_directory_above_match_all_other_stacks_in_it() {
    for (layout, order) in [
        ("env/a\n env/first before /env\n z", "env/first\nenv/a\nz\n"),
        ("env/a\n env/first before ..\n z", "env/first\nenv/a\nz\n"),
        ("a after /\n b\n c/d", "b\nc/d\na\n"),
        (
            "a/b after /a\n a/c/d\n a/c/e\n z before /a",
            "z\na/c/d\na/c/e\na/b\n",
        ),
        // What is nested in the stack runs after it.
        ("e/m after /e\n e/m/n\n e/z", "e/z\ne/m\ne/m/n\n"),
        ("e/a\n e/m before /e\n e/m/n", "e/m\ne/a\ne/m/n\n"),
        // The stacks above, on the way to the directory, are others.
        ("e/m\n e/m/n after /e\n e/z", "e/m\ne/z\ne/m/n\n"),
        (
            "e/f/g/first before /e\n e/a\n e/f/a\n e/f/g/a",
            "e/f/g/first\ne/a\ne/f/a\ne/f/g/a\n",
        ),
    ] {
        let output = Sandbox::layout(layout).orch("list --order");
        assert_eq!(output.to_string(), order, "{layout}");
    }
}

#[test]
fn references_of_wants_may_name_a_directory_above() {
    let sandbox = Sandbox::layout(
        "
        parent
        parent/a wants /parent
        parent/a/nested
        parent/b wanted_by ..",
    );
    assert_snapshot!(sandbox.orch_in("/parent/a", "list --no-recursive --why"), @"
    ..  # wanted by /parent/a (parent/a/stack.tm:2)
    .  # the stack at /parent/a
    ../b  # wanted by /parent/a (parent/a/stack.tm:2)
    ");
    assert_snapshot!(sandbox.orch_in("/parent/a/nested", "list"), @"
    .
    ../../b
    ");
}

#[test]
fn references_before_each_other_are_a_cycle() {
    let sandbox = Sandbox::layout(
        "
        env/a
        env/b before /env
        env/c before /env",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in a cycle: `/env/b` → `/env/c`
     --> env/b/stack.tm:2:13
      |
    2 |   before = ["/env"]
      |             ^^^^^^ `/env/b` runs before `/env/c` (before)
      |
     ::: env/c/stack.tm:2:13
      |
    2 |   before = ["/env"]
      |             ------ `/env/c` runs before `/env/b` (before)
      |
      = help: remove one of these references

    [exit status 3]
    "#);
}

/// Or the last other stack of a directory could not be deleted.
#[test]
fn references_that_match_no_other_stack_are_dangling() {
    let sandbox = Sandbox::layout(
        "
        env/a [x] after /env wants /env before tag:x
        env/a/nested",
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    env/a
    env/a/nested
    [stderr]
    warning: `/env` in `after` matches no stack
     --> env/a/stack.tm:3:12
      |
    3 |   after = ["/env"]
      |            ^^^^^^ no other stack at or below this directory

    warning: `/env` in `wants` matches no stack
     --> env/a/stack.tm:4:12
      |
    4 |   wants = ["/env"]
      |            ^^^^^^ no other stack at or below this directory

    warning: `tag:x` in `before` matches no stack
     --> env/a/stack.tm:5:13
      |
    5 |   before = ["tag:x"]
      |             ^^^^^^^ no other stack has such tags
    "#);
    assert_eq!(sandbox.orch("validate").code(), 3);
}

#[test]
fn thousands_of_stacks_may_refer_to_the_directory_around_them() {
    let mut stacks = "a/first before /a\n".to_owned();
    for number in 0..2_000 {
        stacks += &format!("a/b/s{number} wants /a wanted_by /a\n");
        stacks += &format!("c/s{number} after /a before /\n");
    }
    let sandbox = Sandbox::layout(&stacks);
    let output = sandbox.orch("list");
    assert_eq!((output.code(), output.stdout.lines().count()), (0, 4_001));
}

#[test]
fn references_name_the_root_stack_by_a_slash() {
    let sandbox = Sandbox::layout(
        "
        /
        a/b after / wants ../..
        c",
    );
    assert_snapshot!(sandbox.orch_in("/a", "list --order"), @"
    ..
    b
    ../c
    ");
}

#[test]
fn references_that_match_nothing_get_a_warning_with_a_suggestion() {
    let sandbox = Sandbox::layout(
        "
        prod/network
        prod/app after /prod/netwrok",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    prod/app
    prod/network
    [stderr]
    warning: `/prod/netwrok` in `after` matches no stack
     --> prod/app/stack.tm:2:12
      |
    2 |   after = ["/prod/netwrok"]
      |            ^^^^^^^^^^^^^^^ no such directory
      |
      = help: did you mean `/prod/network`?
    "#);
}

#[test]
fn references_are_never_corrected_to_the_stack_itself() {
    let sandbox = Sandbox::layout("prod/app [only] after /prod/ap tag:onlx");
    let output = sandbox.orch("list");
    assert_eq!(output.stderr.matches("warning:").count(), 2, "{output}");
    assert!(!output.stderr.contains("did you mean"), "{output}");
}

#[test]
fn references_are_corrected_in_case_first() {
    let sandbox = Sandbox::layout(
        "
        a
        b
        c after /B",
    );
    let output = sandbox.orch("list");
    assert!(output.stderr.contains("did you mean `/b`?"), "{output}");
}

#[test]
fn references_are_checked_in_all_four_attributes() {
    let sandbox = Sandbox::layout("a after /n1 before /n2 wants /n3 wanted_by /n4");
    let output = sandbox.orch("list");
    assert_eq!((output.code(), &*output.stdout), (0, "a\n"));
    for said in [
        "`/n1` in `after` matches no stack",
        "`/n2` in `before` matches no stack",
        "`/n3` in `wants` matches no stack",
        "`/n4` in `wanted_by` matches no stack",
    ] {
        assert!(output.stderr.contains(said), "{output}");
    }
}

#[test]
fn references_that_match_nothing_get_a_warning_about_the_path() {
    let sandbox = Sandbox::layout("a after /file.txt /plain /.dotted /skipped");
    sandbox.write("/file.txt", "");
    sandbox.mkdir("/plain");
    sandbox.write("/.dotted/stack.tm", "stack {}\n");
    sandbox.write("/skipped/stack.tm", "stack {}\n");
    sandbox.write("/skipped/.tmskip", "");
    assert_snapshot!(sandbox.orch("list"), @r#"
    a
    [stderr]
    warning: `/file.txt` in `after` matches no stack
     --> a/stack.tm:2:12
      |
    2 |   after = ["/file.txt", "/plain", "/.dotted", "/skipped"]
      |            ^^^^^^^^^^^ a file, and a reference names directories

    warning: `/plain` in `after` matches no stack
     --> a/stack.tm:2:25
      |
    2 |   after = ["/file.txt", "/plain", "/.dotted", "/skipped"]
      |                         ^^^^^^^^ no stack at or below this directory

    warning: `/.dotted` in `after` matches no stack
     --> a/stack.tm:2:35
      |
    2 |   after = ["/file.txt", "/plain", "/.dotted", "/skipped"]
      |                                   ^^^^^^^^^^ no stack at or below this directory

    warning: `/skipped` in `after` matches no stack
     --> a/stack.tm:2:47
      |
    2 |   after = ["/file.txt", "/plain", "/.dotted", "/skipped"]
      |                                               ^^^^^^^^^^ no stack at or below this directory
    "#);
}

#[cfg(unix)]
#[test]
fn references_do_not_follow_symbolic_links() {
    let sandbox = Sandbox::layout(
        "
        a after /link
        b",
    );
    sandbox.symlink("b", "/link");
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    a
    b
    [stderr]
    warning: `/link` in `after` matches no stack
     --> a/stack.tm:2:12
      |
    2 |   after = ["/link"]
      |            ^^^^^^^ a symbolic link, which is not followed
    "#);
}

#[test]
fn references_to_an_unknown_tag_get_a_warning_with_a_suggestion() {
    let sandbox = Sandbox::layout(
        "
        a [network]
        b after tag:netwok",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    a
    b
    [stderr]
    warning: `tag:netwok` in `after` matches no stack
     --> b/stack.tm:2:12
      |
    2 |   after = ["tag:netwok"]
      |            ^^^^^^^^^^^^ no stack has such tags
      |
      = help: did you mean `network`?
    "#);
}

#[test]
fn references_with_an_invalid_tag_filter_are_an_error() {
    let sandbox = Sandbox::layout(
        "
        a after tag:_invalid
        b wants tag:Prod
        c before tag:~dev",
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `tag:_invalid` is not a tag filter
     --> a/stack.tm:2:12
      |
    2 |   after = ["tag:_invalid"]
      |            ^^^^^^^^^^^^^^ `_invalid` is not a tag: a tag begins with a lower-case letter or a digit
      |
      = help: write `tag:a:b` for both tags, `tag:a,b` for either

    error: `tag:Prod` is not a tag filter
     --> b/stack.tm:2:12
      |
    2 |   wants = ["tag:Prod"]
      |            ^^^^^^^^^^ `Prod` is not a tag: a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`
      |
      = help: write `tag:a:b` for both tags, `tag:a,b` for either

    error: `tag:~dev` is not a tag filter
     --> c/stack.tm:2:13
      |
    2 |   before = ["tag:~dev"]
      |             ^^^^^^^^^^ `~dev` is not a tag: a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`
      |
      = help: write `tag:a:b` for both tags, `tag:a,b` for either

    [exit status 3]
    "#);
}

#[test]
fn references_with_an_empty_tag_filter_match_nothing() {
    let sandbox = Sandbox::layout(
        "
        a after tag:
        b [x] after tag:x:",
    );
    let output = sandbox.orch("list");
    assert_eq!((output.code(), &*output.stdout), (0, "a\nb\n"));
    assert_eq!(output.stderr.matches("warning:").count(), 2, "{output}");
}

#[test]
fn references_out_of_the_project_are_an_error() {
    let sandbox = Sandbox::layout(
        "
        a after ../../../x
        b before ../../decoy
        c wants /../project-decoy",
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `../../../x` leads out of the project
     --> a/stack.tm:2:12
      |
    2 |   after = ["../../../x"]
      |            ^^^^^^^^^^^^ climbs above the project root
      |
      = help: name a directory inside the project; a leading `/` is the project root

    error: `../../decoy` leads out of the project
     --> b/stack.tm:2:13
      |
    2 |   before = ["../../decoy"]
      |             ^^^^^^^^^^^^^ climbs above the project root
      |
      = help: name a directory inside the project; a leading `/` is the project root

    error: `/../project-decoy` leads out of the project
     --> c/stack.tm:2:12
      |
    2 |   wants = ["/../project-decoy"]
      |            ^^^^^^^^^^^^^^^^^^^ climbs above the project root
      |
      = help: name a directory inside the project; a leading `/` is the project root

    [exit status 3]
    "#);
}

#[test]
fn strict_references_turn_the_warning_into_an_error() {
    let sandbox = Sandbox::layout(
        "
        a after /nowhere
        b wants tag:nobody",
    );
    sandbox.write(
        "/strict.orch.hcl",
        "orch {\n  config {\n    references = \"strict\"\n  }\n}\n",
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `/nowhere` in `after` matches no stack
     --> a/stack.tm:2:12
      |
    2 |   after = ["/nowhere"]
      |            ^^^^^^^^^^ no such directory
      |
      = note: the project sets `references = "strict"`

    error: `tag:nobody` in `wants` matches no stack
     --> b/stack.tm:2:12
      |
    2 |   wants = ["tag:nobody"]
      |            ^^^^^^^^^^^^ no stack has such tags
      |
      = note: the project sets `references = "strict"`

    [exit status 3]
    "#);
}

#[test]
fn validate_turns_the_warning_into_a_failure() {
    let sandbox = Sandbox::layout("a after /nowhere");
    assert_snapshot!(sandbox.orch("validate"), @r#"
    [stderr]
    error: `/nowhere` in `after` matches no stack
     --> a/stack.tm:2:12
      |
    2 |   after = ["/nowhere"]
      |            ^^^^^^^^^^ no such directory

    [exit status 3]
    "#);
}

#[test]
fn references_that_are_empty_name_the_directory_of_the_stack() {
    let sandbox = Sandbox::new("//- /a/stack.tm\nstack {\n  after = [\"\"]\n}\n");
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3, "{output}");
}

#[test]
fn references_to_a_broken_stack_get_no_warning() {
    // The one problem is the syntax error; that `/b` is no stack is only its consequence.
    let sandbox = Sandbox::layout("a after /b");
    sandbox.write("/b/stack.tm", "stack {\n");
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    assert!(output.stderr.contains("syntax error"), "{output}");
    assert!(!output.stderr.contains("matches no stack"), "{output}");
}

#[test]
fn references_to_an_empty_tag_get_a_warning() {
    let sandbox = Sandbox::layout("a after tag:x,\nb [x]");
    sandbox.write("/c/stack.tm", "stack {\n  tags = [\"\"]\n}\n");
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    b
    a
    c
    [stderr]
    warning: `tag:x,` in `after` has an empty tag
     --> a/stack.tm:2:12
      |
    2 |   after = ["tag:x,"]
      |            ^^^^^^^^ a tag is missing beside `,` or `:`
      |
      = help: name the tag, or remove the separator

    warning: a tag is empty
     --> c/stack.tm:2:11
      |
    2 |   tags = [""]
      |           ^^ no filter matches it
      |
      = help: remove it
    "#);
}
