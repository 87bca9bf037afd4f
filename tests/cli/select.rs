//! Which stacks a command acts on.

use insta::assert_snapshot;

use crate::support::Sandbox;

#[test]
fn select_is_limited_to_the_current_directory() {
    let sandbox = Sandbox::layout(
        "
        a
        a/b
        c",
    );
    assert_snapshot!(sandbox.orch_in("/a", "list --why"), @"
    .  # at or below /a
    b  # at or below /a
    ");
}

#[test]
fn directories_are_compared_by_whole_names() {
    let sandbox = Sandbox::layout(
        "
        test
        test/in
        test-foo
        tests",
    );
    assert_snapshot!(sandbox.orch_in("/test", "list --why"), @"
    .  # at or below /test
    in  # at or below /test
    ");
}

#[test]
fn chdir_is_the_same_as_being_there() {
    let sandbox = Sandbox::layout(
        "
        a/b
        a/c
        d",
    );
    assert_snapshot!(sandbox.orch("-C a list"), @"
    b
    c
    ");
    assert_snapshot!(sandbox.orch("list --chdir a/b"), @".");
    assert_snapshot!(sandbox.orch_in("/d", "--chdir=../a list"), @"
    b
    c
    ");
}

#[test]
fn chdir_to_no_directory_is_a_wrong_command_line() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("-C nowhere list"), @"
    [stderr]
    error: cannot change to `$ROOT/nowhere`: No such file or directory (os error 2)
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("-C a/stack.tm list"), @"
    [stderr]
    error: cannot change to `$ROOT/a/stack.tm`: not a directory
    [exit status 64]
    ");
}

#[cfg(unix)]
#[test]
fn select_resolves_a_linked_directory() {
    let sandbox = Sandbox::layout(
        "
        a/b
        c",
    );
    sandbox.symlink("a", "/link");
    assert_snapshot!(sandbox.orch("-C link list --why"), @"b  # at or below /a");
}

#[test]
fn select_nothing_is_a_success_with_a_note() {
    let sandbox = Sandbox::layout(
        "
        a
        b [x]",
    );
    sandbox.mkdir("/a/modules");
    sandbox.mkdir("/plain");
    assert_snapshot!(sandbox.orch_in("/plain", "list"), @"
    [stderr]
    note: the project has 2 stacks, none of them at or below `/plain`
    ");
    assert_snapshot!(sandbox.orch_in("/a/modules", "list"), @"
    [stderr]
    note: the project has 2 stacks, none of them at or below `/a/modules`; it is inside the stack `/a`
    ");
    assert_snapshot!(sandbox.orch("list --tags y"), @"
    [stderr]
    note: in `--tags`: no stack of the project has the tag `y`; did you mean `x`?
    note: no stack at or below `/` passes the tag filters
    ");
    assert_snapshot!(sandbox.orch("run --tags y false"), @"
    [stderr]
    note: in `--tags`: no stack of the project has the tag `y`; did you mean `x`?
    note: no stack at or below `/` passes the tag filters
    ");
    assert_snapshot!(sandbox.orch("graph --tags y"), @"
    digraph orch {
      rankdir = LR
      node [shape = box]
    }
    [stderr]
    note: in `--tags`: no stack of the project has the tag `y`; did you mean `x`?
    note: no stack at or below `/` passes the tag filters
    ");
}

#[test]
fn tags_have_and_within_or() {
    let sandbox = Sandbox::layout(
        "
        a [a]
        ab [a b]
        abc [a b c]
        c [c]
        none",
    );
    let select = |arguments: &str| {
        let output = sandbox.orch(&format!("list {arguments}"));
        assert_eq!(output.code(), 0);
        output.stdout.lines().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(select("--tags a"), "a ab abc");
    assert_eq!(select("--tags a:b"), "ab abc");
    assert_eq!(select("--tags a:b:c"), "abc");
    assert_eq!(select("--tags b,c"), "ab abc c");
    assert_eq!(select("--tags a:b,c"), "ab abc c");
    assert_eq!(select("--tags b:c,a:c"), "abc");
    assert_eq!(select("--tags b --tags c"), "ab abc c");
    assert_eq!(select("--tags=c"), "abc c");
    assert_eq!(select("--no-tags a"), "c none");
    assert_eq!(select("--no-tags b,c"), "a none");
    assert_eq!(select("--no-tags b --no-tags c"), "a none");
    assert_eq!(select("--tags a --no-tags c"), "a ab");
    assert_eq!(select("--tags a --tags b --no-tags c"), "a ab");
}

#[test]
fn tags_may_have_digits_dashes_dots_slashes_and_underscores() {
    let sandbox = Sandbox::layout(
        "
        a [1x x-y_z.w/v9]
        b",
    );
    assert_snapshot!(sandbox.orch("list --tags 1x:x-y_z.w/v9"), @"a");
}

#[test]
fn select_rejects_invalid_tags() {
    let sandbox = Sandbox::layout("a [x]");
    assert_snapshot!(sandbox.orch("list --tags ~x"), @"
    [stderr]
    error: in --tags: `~x` is not a tag: a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --tags x:-y"), @"
    [stderr]
    error: in --tags: `-y` is not a tag: a tag begins with a lower-case letter or a digit
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --no-tags X"), @"
    [stderr]
    error: in --no-tags: `X` is not a tag: a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --no-tags x:y"), @"
    [stderr]
    error: in --no-tags: `x:y` is not a tag: a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`
    [exit status 64]
    ");
}

#[test]
fn select_adds_wanted_stacks() {
    let sandbox = Sandbox::layout(
        "
        a wants /b /c
        b wants /d
        c
        d
        e",
    );
    assert_snapshot!(sandbox.orch_in("/a", "list --why"), @"
    .  # at or below /a
    ../b  # wanted by /a (a/stack.tm:2)
    ../c  # wanted by /a (a/stack.tm:2)
    ../d  # wanted by /b (b/stack.tm:2)
    ");
    assert_snapshot!(sandbox.orch_in("/d", "list --why"), @".  # at or below /d");
}

#[test]
fn select_follows_wanted_by() {
    let sandbox = Sandbox::layout(
        "
        a
        b wanted_by /a
        c wanted_by tag:x
        d [x] wanted_by /b",
    );
    assert_snapshot!(sandbox.orch_in("/a", "list --why"), @"
    .  # at or below /a
    ../b  # names /a in `wanted_by` (b/stack.tm:2)
    ../c  # names /d in `wanted_by` (c/stack.tm:2)
    ../d  # names /b in `wanted_by` (d/stack.tm:3)
    ");
}

#[test]
fn wants_and_wanted_by_are_closed_over_together() {
    let sandbox = Sandbox::layout(
        "
        1 wants /3 wanted_by /2
        2
        3 wants /4
        4
        5",
    );
    assert_snapshot!(sandbox.orch_in("/2", "list --why"), @"
    ../1  # names /2 in `wanted_by` (1/stack.tm:3)
    .  # at or below /2
    ../3  # wanted by /1 (1/stack.tm:2)
    ../4  # wanted by /3 (3/stack.tm:2)
    ");
}

#[test]
fn select_adds_wanted_stacks_despite_filters() {
    let sandbox = Sandbox::layout(
        "
        a [x] wants /b
        b [y]
        c [y] wanted_by /a",
    );
    assert_snapshot!(sandbox.orch_in("/a", "list --tags x --no-tags y"), @"
    .
    ../b
    ../c
    ");
}

#[test]
fn select_ignores_wants_of_filtered_stacks() {
    let sandbox = Sandbox::layout(
        "
        a [x] wants /b
        b
        c wanted_by /a",
    );
    assert_snapshot!(sandbox.orch_in("/a", "list --tags y"), @"
    [stderr]
    note: in `--tags`: no stack of the project has the tag `y`; did you mean `x`?
    note: no stack at or below `/a` passes the tag filters
    ");
}

#[test]
fn select_follows_wants_of_directories_and_tags() {
    let sandbox = Sandbox::layout(
        "
        a wants tag:prod /dir
        a/sub
        b [prod]
        c [prod]
        d [stage]
        dir/e/f
        dir/g",
    );
    assert_snapshot!(sandbox.orch_in("/a", "list"), @"
    .
    sub
    ../b
    ../c
    ../dir/e/f
    ../dir/g
    ");
}

#[test]
fn select_follows_wanted_by_of_a_directory() {
    let sandbox = Sandbox::layout(
        "
        all/1
        all/2
        stack wanted_by /all",
    );
    assert_snapshot!(sandbox.orch_in("/all/2", "list"), @"
    .
    ../../stack
    ");
}

#[test]
fn wants_gives_no_order() {
    let sandbox = Sandbox::layout(
        "
        a
        b wants /a
        c wants /d
        d",
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    a
    b
    c
    d
    ");
}

#[test]
fn select_no_recursive_adds_wanted_stacks() {
    let sandbox = Sandbox::layout(
        "
        a wants /b
        a/sub
        b
        b/sub
        c wanted_by /a",
    );
    assert_snapshot!(sandbox.orch_in("/a", "list --no-recursive"), @"
    .
    ../b
    ../b/sub
    ../c
    ");
    assert_snapshot!(sandbox.orch_in("/a/sub", "list --no-recursive"), @"
    .
    ../../c
    ");
}

#[test]
fn select_no_recursive_needs_a_stack() {
    let sandbox = Sandbox::layout("a/b");
    assert_snapshot!(sandbox.orch_in("/a", "list --no-recursive"), @"
    [stderr]
    error: --no-recursive needs a stack, and `/a` is not one
    [exit status 64]
    ");
}

#[test]
fn select_is_the_same_in_every_command() {
    let sandbox = Sandbox::layout(
        "
        a [x] wants /b
        a/n [y]
        b
        c [x]",
    );
    let select = "--tags x,y --no-tags y";
    let listed = sandbox.orch_in("/a", &format!("list {select}"));
    assert_eq!(listed.to_string(), ".\n../b\n");
    let dry = sandbox.orch_in("/a", &format!("run --dry-run {select} git"));
    assert_eq!(dry.to_string(), "/a: git\n/b: git\n");
    let env = sandbox.orch_in("/a", &format!("env --format json {select}"));
    let env = env.json();
    assert_eq!(env["stacks"].as_array().unwrap().len(), 2);
    assert_eq!(env["stacks"][1]["path"], "/b");
    let graph = sandbox.orch_in("/a", &format!("graph --format json {select}"));
    let graph = graph.json();
    assert_eq!(graph["nodes"].as_array().unwrap().len(), 2);
}
