//! How cycles are reported, and when they are fatal.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::Sandbox;

#[test]
fn cycle_shows_each_step_with_its_position() {
    let sandbox = Sandbox::layout(
        "
        a after /c
        b after /a
        c after /b
        d after /c",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in a cycle: `/a` → `/b` → `/c`
     --> b/stack.tm:2:12
      |
    2 |   after = ["/a"]
      |            ^^^^ `/a` runs before `/b` (after)
      |
     ::: c/stack.tm:2:12
      |
    2 |   after = ["/b"]
      |            ---- `/b` runs before `/c` (after)
      |
     ::: a/stack.tm:2:12
      |
    2 |   after = ["/c"]
      |            ---- `/c` runs before `/a` (after)
      |
      = help: remove one of these references

    [exit status 3]
    "#);
}

#[test]
fn cycle_stops_a_run_before_anything_starts() {
    let sandbox = Sandbox::layout(
        "
        a
        b before /c
        c before /b",
    );
    let output = sandbox.orch("run touch ran");
    assert_eq!(output.code(), 3);
    assert!(!sandbox.path("/a/ran").exists());
}

#[test]
fn cycle_of_after_a_nested_stack() {
    let sandbox = Sandbox::layout(
        "
        parent after /parent/child
        parent/child",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in a cycle: `/parent` → `/parent/child`
     --> parent/child/stack.tm:1:1
      |
    1 | stack {
      | ^^^^^ `/parent` runs before `/parent/child` (nesting)
      |
     ::: parent/stack.tm:2:12
      |
    2 |   after = ["/parent/child"]
      |            --------------- `/parent/child` runs before `/parent` (after)
      |
      = help: a stack always runs before the stacks nested in it: remove a reference, or move a stack

    [exit status 3]
    "#);
}

#[test]
fn cycle_of_before_a_parent_stack() {
    let sandbox = Sandbox::layout(
        "
        parent
        parent/child before /parent",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in a cycle: `/parent` → `/parent/child`
     --> parent/child/stack.tm:1:1
      |
    1 | stack {
      | ^^^^^ `/parent` runs before `/parent/child` (nesting)
    2 |   before = ["/parent"]
      |             --------- `/parent/child` runs before `/parent` (before)
      |
      = help: a stack always runs before the stacks nested in it: remove a reference, or move a stack

    [exit status 3]
    "#);
}

#[test]
fn cycle_of_before_the_root_stack() {
    let sandbox = Sandbox::layout(
        "
        / after /a
        a",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in a cycle: `/` → `/a`
     --> a/stack.tm:1:1
      |
    1 | stack {
      | ^^^^^ `/` runs before `/a` (nesting)
      |
     ::: stack.tm:2:12
      |
    2 |   after = ["/a"]
      |            ---- `/a` runs before `/` (after)
      |
      = help: a stack always runs before the stacks nested in it: remove a reference, or move a stack

    [exit status 3]
    "#);
}

#[test]
fn cycle_over_several_levels_lists_each_stack_once() {
    let sandbox = Sandbox::layout(
        "
        a after /z
        a/b
        a/b/c before /z
        z",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in a cycle: `/a` → `/a/b` → `/a/b/c` → `/z`
     --> a/b/stack.tm:1:1
      |
    1 | stack {
      | ^^^^^ `/a` runs before `/a/b` (nesting)
      |
     ::: a/b/c/stack.tm:1:1
      |
    1 | stack {
      | ----- `/a/b` runs before `/a/b/c` (nesting)
    2 |   before = ["/z"]
      |             ---- `/a/b/c` runs before `/z` (before)
      |
     ::: a/stack.tm:2:12
      |
    2 |   after = ["/z"]
      |            ---- `/z` runs before `/a` (after)
      |
      = help: a stack always runs before the stacks nested in it: remove a reference, or move a stack

    [exit status 3]
    "#);
}

#[test]
fn cycle_of_one_stack_in_before_and_after_has_its_own_explanation() {
    let sandbox = Sandbox::layout(
        "
        a
        b before /a after /a",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in a cycle: `/a` → `/b`
     --> b/stack.tm:3:12
      |
    2 |   before = ["/a"]
      |             ---- `/b` runs before `/a` (before)
    3 |   after = ["/a"]
      |            ^^^^ `/a` runs before `/b` (after)
      |
      = note: `/b` names `/a` in both `before` and `after`
      = help: keep one of the two

    [exit status 3]
    "#);
}

#[test]
fn cycle_is_shown_by_its_shortest_path() {
    let sandbox = Sandbox::layout(
        "
        a
        a/n
        b before /a after /a",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in a cycle: `/a` → `/b`
     --> b/stack.tm:3:12
      |
    2 |   before = ["/a"]
      |             ---- `/b` runs before `/a` (before)
    3 |   after = ["/a"]
      |            ^^^^ `/a` runs before `/b` (after)
      |
      = note: `/b` names `/a` in both `before` and `after`
      = note: cycle by the same references: `/a/n` → `/b`
      = help: keep one of the two

    [exit status 3]
    "#);
    let sandbox = Sandbox::layout(
        "
        a
        a/b
        a/b/c before /z
        z before /a",
    );
    let output = sandbox.orch("list --order");
    for said in [
        "in a cycle: `/a/b/c` → `/z`\n",
        "note: cycle by the same references: `/a` → `/a/b` → `/a/b/c` → `/z`\n",
        "help: remove one of these references\n",
    ] {
        assert!(output.stderr.contains(said), "{output}");
    }
}

#[test]
fn short_cycles_come_before_long_ones_and_are_not_covered_by_them() {
    // Each of the references of `/m` and `/n` to each other is also part of a cycle of four.
    let sandbox = Sandbox::layout(
        "
        a after /n
        b after /a
        m after /b /n
        n after /m /d
        c after /m
        d after /c",
    );
    let output = sandbox.orch("list --order");
    assert_eq!(output.code(), 3);
    let cycles: Vec<&str> = output
        .stderr
        .lines()
        .filter_map(|line| line.split_once("note: cycle: "))
        .map(|(_, cycle)| cycle)
        .collect();
    assert_eq!(
        cycles,
        [
            "`/m` → `/n`",
            "`/m` → `/n` → `/a` → `/b`",
            "`/c` → `/d` → `/n` → `/m`"
        ],
        "{output}"
    );
}

#[test]
fn cycle_of_one_tag_in_before_and_after_contains_each_stack() {
    let sandbox = Sandbox::layout(
        "
        a [x]
        b [x]
        c before tag:x after tag:x",
    );
    let output = sandbox.orch("list --order --format json");
    assert_eq!(output.code(), 3);
    for stack in ["`/a` → `/c`", "`/b` → `/c`"] {
        assert!(output.stderr.contains(stack), "{output}");
    }
}

#[test]
fn cycles_are_reported_together() {
    let sandbox = Sandbox::layout(
        "
        a after /b
        b after /a
        c after /d
        d after /c",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in a cycle: `/a` → `/b`
     --> b/stack.tm:2:12
      |
    2 |   after = ["/a"]
      |            ^^^^ `/a` runs before `/b` (after)
      |
     ::: a/stack.tm:2:12
      |
    2 |   after = ["/b"]
      |            ---- `/b` runs before `/a` (after)
      |
      = help: remove one of these references

    error: stacks wait for each other in a cycle: `/c` → `/d`
     --> d/stack.tm:2:12
      |
    2 |   after = ["/c"]
      |            ^^^^ `/c` runs before `/d` (after)
      |
     ::: c/stack.tm:2:12
      |
    2 |   after = ["/d"]
      |            ---- `/d` runs before `/c` (after)
      |
      = help: remove one of these references

    [exit status 3]
    "#);
}

#[test]
fn cycles_through_one_stack_are_both_reported() {
    let sandbox = Sandbox::layout(
        "
        a after /hub
        b after /hub
        hub after /a /b",
    );
    let output = sandbox.orch("list --order");
    assert_eq!(output.code(), 3);
    for cycle in ["`/a` → `/hub`\n", "`/b` → `/hub`\n"] {
        assert!(output.stderr.contains(cycle), "{output}");
    }
    assert_eq!(output.stderr.matches("error:").count(), 2, "{output}");
}

#[test]
fn cycle_through_a_directory_names_stacks() {
    let sandbox = Sandbox::layout(
        "
        a after /dir
        dir/s1
        dir/s2 after /a",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in a cycle: `/a` → `/dir/s2`
     --> dir/s2/stack.tm:2:12
      |
    2 |   after = ["/a"]
      |            ^^^^ `/a` runs before `/dir/s2` (after)
      |
     ::: a/stack.tm:2:12
      |
    2 |   after = ["/dir"]
      |            ------ `/dir/s2` runs before `/a` (after)
      |
      = help: remove one of these references

    [exit status 3]
    "#);
}

#[test]
fn cycle_begins_at_the_same_stack_for_any_order_of_files() {
    let sandbox = Sandbox::layout(
        "
        m after /z
        z after /n
        n after /m",
    );
    let output = sandbox.orch("list --order");
    assert!(
        output.stderr.contains("`/m` → `/n` → `/z`\n"),
        "the smallest path comes first: {output}"
    );
}

#[test]
fn cycle_with_a_selected_stack_is_an_error() {
    let sandbox = Sandbox::layout(
        "
        a [x] after /b
        b after /a",
    );
    assert_eq!(sandbox.orch("list --order --tags x").code(), 3);
    assert_eq!(sandbox.orch("run --tags x true").code(), 3);
    assert_eq!(sandbox.orch("-C b run --dry-run true").code(), 3);
}

#[test]
fn cycle_without_selected_stacks_is_a_warning() {
    let sandbox = Sandbox::layout(
        "
        a [x]
        b after /c
        c after /b
        d [x] after /c",
    );
    assert_snapshot!(sandbox.orch("list --order --tags x"), @r#"
    a
    d
    [stderr]
    warning: stacks wait for each other in a cycle: `/b` → `/c`
     --> c/stack.tm:2:12
      |
    2 |   after = ["/b"]
      |            ^^^^ `/b` runs before `/c` (after)
      |
     ::: b/stack.tm:2:12
      |
    2 |   after = ["/c"]
      |            ---- `/c` runs before `/b` (after)
      |
      = help: remove one of these references
    "#);
}

#[test]
fn cycle_without_selected_stacks_stops_no_run() {
    let sandbox = Sandbox::layout(
        "
        a [x] after /b
        b after /c
        c after /b",
    );
    let output = sandbox.orch("run --quiet --tags x pwd");
    assert_eq!((output.code(), &*output.stdout), (0, "$ROOT/a\n"));
    assert!(
        output
            .stderr
            .starts_with("warning: stacks wait for each other in a cycle")
    );
}

#[test]
fn cycle_without_selected_stacks_keeps_the_order() {
    // a → c → d → z, where c and d are a cycle of their own.
    let sandbox = Sandbox::layout(
        "
        a [x] after /d
        c after /z /d
        d after /c
        z [x]",
    );
    let output = sandbox.orch("list --order --tags x");
    assert_eq!((output.code(), &*output.stdout), (0, "z\na\n"), "{output}");
}

#[test]
fn cycle_is_a_warning_in_a_list_without_order() {
    let sandbox = Sandbox::layout(
        "
        a after /b
        b after /a",
    );
    let output = sandbox.orch("list");
    assert_eq!((output.code(), &*output.stdout), (0, "a\nb\n"));
    assert!(
        output
            .stderr
            .starts_with("warning: stacks wait for each other in a cycle")
    );
}

#[test]
fn validate_makes_every_cycle_an_error() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /c
        c after /b",
    );
    let output = sandbox.orch_in("/a", "validate");
    assert_eq!(output.code(), 3);
    assert!(
        output
            .stderr
            .starts_with("error: stacks wait for each other in a cycle")
    );
}

#[test]
fn cycle_is_reported_in_json() {
    let sandbox = Sandbox::layout(
        "
        a after /b
        b after /a",
    );
    let output = sandbox.orch("list --order --format json");
    assert_eq!(output.code(), 3);
    assert_eq!(output.data()["stacks"], json!([]));
    let diagnostic = &output.data()["diagnostics"][0];
    assert_eq!(diagnostic["severity"], "error");
    assert_eq!(diagnostic["code"], "cycle");
    let places: Vec<_> = diagnostic["labels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|label| json!([label["file"], label["line"]]))
        .collect();
    assert_eq!(places, [json!(["b/stack.tm", 2]), json!(["a/stack.tm", 2])]);
}

#[test]
fn cycle_makes_waves_null_in_json() {
    let sandbox = Sandbox::layout(
        "
        a after /b
        b after /a
        c after /b
        d",
    );
    let output = sandbox.orch("list --format json");
    assert_eq!(output.code(), 0);
    let list = output.data();
    assert_eq!(list["diagnostics"][0]["severity"], "warning");
    let stacks = list["stacks"].as_array().unwrap().iter();
    let known = |stack: &Value| {
        let after = stack["runs_after"].as_array();
        let after = after.map(|after| {
            after
                .iter()
                .map(|it| it["path"].clone())
                .collect::<Vec<_>>()
        });
        json!([stack["path"], stack["wave"], after])
    };
    assert_eq!(
        stacks.map(known).collect::<Vec<Value>>(),
        [
            json!(["/a", null, null]),
            json!(["/b", null, null]),
            json!(["/c", null, ["/b"]]),
            json!(["/d", 0, []]),
        ]
    );
    // Unselected, it orders what is around it.
    let list = sandbox.orch("list --format json --match c").data();
    assert_eq!(list["stacks"][0]["wave"], 0);
}

#[test]
fn cycles_that_share_a_hop_are_shown_together() {
    let sandbox = Sandbox::layout(
        "
        a after /d
        b after /a
        c after /a
        d after /b /c",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in 2 cycles, all through `/d` → `/a`
     --> a/stack.tm:2:12
      |
    2 |   after = ["/d"]
      |            ^^^^ `/d` runs before `/a` (after, in 2 of the cycles)
      |
     ::: b/stack.tm:2:12
      |
    2 |   after = ["/a"]
      |            ---- `/a` runs before `/b` (after)
      |
     ::: d/stack.tm:2:12
      |
    2 |   after = ["/b", "/c"]
      |            ---- `/b` runs before `/d` (after)
      |
     ::: c/stack.tm:2:12
      |
    2 |   after = ["/a"]
      |            ---- `/a` runs before `/c` (after)
      |
     ::: d/stack.tm:2:18
      |
    2 |   after = ["/b", "/c"]
      |                  ---- `/c` runs before `/d` (after)
      |
      = note: cycle: `/d` → `/a` → `/b`
      = note: cycle: `/d` → `/a` → `/c`
      = help: remove the first of these references, or one of each cycle

    [exit status 3]
    "#);
    let sandbox = Sandbox::layout(
        "
        a after /c /d
        b after /a
        c after /b
        d after /c",
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    [stderr]
    error: stacks wait for each other in 2 cycles, all through `/a` → `/b`
     --> b/stack.tm:2:12
      |
    2 |   after = ["/a"]
      |            ^^^^ `/a` runs before `/b` (after, in 2 of the cycles)
      |
     ::: c/stack.tm:2:12
      |
    2 |   after = ["/b"]
      |            ---- `/b` runs before `/c` (after, in 2 of the cycles)
      |
     ::: a/stack.tm:2:12
      |
    2 |   after = ["/c", "/d"]
      |            ---- `/c` runs before `/a` (after)
      |
     ::: d/stack.tm:2:12
      |
    2 |   after = ["/c"]
      |            ---- `/c` runs before `/d` (after)
      |
     ::: a/stack.tm:2:18
      |
    2 |   after = ["/c", "/d"]
      |                  ---- `/d` runs before `/a` (after)
      |
      = note: cycle: `/a` → `/b` → `/c`
      = note: cycle: `/a` → `/b` → `/c` → `/d`
      = help: remove the first of these references, or one of each cycle

    [exit status 3]
    "#);
}

#[test]
fn cycle_of_wants_is_allowed() {
    let sandbox = Sandbox::layout(
        "
        a wants /b
        b wants /a",
    );
    assert_snapshot!(sandbox.orch_in("/a", "list --order"), @"
    .
    ../b
    ");
}

#[test]
fn cycles_beyond_a_limit_are_cut_with_a_note() {
    // Each of 30 stacks after each other: more cycles than anybody would read.
    let mut layout = String::new();
    for own in 10..40 {
        let others = (10..40).filter(|&other| other != own);
        let others: Vec<String> = others.map(|other| format!("/s{other}")).collect();
        layout += &format!("s{own} after {}\n", others.join(" "));
    }
    let output = Sandbox::layout(&layout).orch("list --order");
    assert_eq!(output.code(), 3);
    assert!(output.stderr.matches("error:").count() <= 100);
    assert!(output.stderr.contains("more cycles than"), "{output}");
}

#[test]
fn cycles_beyond_a_limit_through_one_tag_are_cut() {
    let mut layout = String::new();
    for n in 10..40 {
        layout += &format!("s{n} [x] after tag:x\n");
    }
    let output = Sandbox::layout(&layout).orch("list --order");
    assert_eq!(output.code(), 3);
    assert!(output.stderr.matches("error:").count() <= 100);
}

#[test]
fn cycle_that_is_long_lists_its_first_stacks() {
    let stacks = (0..200).map(|n| format!("s{n:03} after /s{:03}\n", (n + 1) % 200));
    let sandbox = Sandbox::layout(&stacks.collect::<String>());
    let output = sandbox.orch("list --order");
    assert_eq!(output.code(), 3);
    let message = output.stderr.lines().next().unwrap();
    assert!(message.ends_with("… (150 more)"), "{message}");
    let more = "150 more hops; `orch graph` draws all of them";
    assert!(output.stderr.contains(more), "{output}");
    let n_hops = output.stderr.matches(" runs before ").count();
    assert_eq!(n_hops, 50);
}
