//! The list of all stacks, and stacks and directories that are added or removed.

use std::fs;

use insta::assert_snapshot;

use super::{env, globals};
use crate::support::Repository;

fn listing() -> Repository {
    let sandbox = Repository::prepare("a\nb\nc/d");
    sandbox.write("/a/env.tm", env("ALL = global.all"));
    sandbox.write("/globals.tm", globals("all = \"${tm_try(terramate.stacks.list[1], \"\")} ${tm_try(terramate.stacks.list[3], \"\")}\""));
    Repository::of(sandbox)
}

#[test]
fn changed_list_of_stacks_includes_an_added_stack() {
    let repository = listing();
    repository.write("/z/stack.tm", "stack {}\n");
    assert_snapshot!(repository.changed(), @"
    a  # changed: z/stack.tm (untracked), environment variable ALL (a/env.tm:5), global.all (globals.tm:2), the list of all stacks (globals.tm:2); at or below /
    z  # changed: z/stack.tm (untracked); at or below /
    ");
}

#[test]
fn changed_list_of_stacks_lacks_a_removed_stack() {
    let repository = listing();
    repository.remove("/b/stack.tm");
    assert_snapshot!(repository.changed(), @"
    a  # changed: b/stack.tm (uncommitted, deleted), environment variable ALL (a/env.tm:5), global.all (globals.tm:2), the list of all stacks (globals.tm:2); at or below /
    [stderr]
    note: stack `/b` was removed since the base; nothing is run for it
    ");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    a  # changed: b/stack.tm (deleted), environment variable ALL (a/env.tm:5), global.all (globals.tm:2), the list of all stacks (globals.tm:2); at or below /
    [stderr]
    note: stack `/b` was removed since the base; nothing is run for it
    ");
}

#[test]
fn changed_list_of_stacks_keeps_a_stack_with_other_changes() {
    let repository = listing();
    repository.write("/b/stack.tm", "stack {\n  name = \"x\"\n}\n");
    assert_snapshot!(repository.changed(), @"b  # changed: b/stack.tm (uncommitted); at or below /");
}

#[test]
fn changed_list_of_stacks_follows_skip_files() {
    let repository = listing();
    repository.write("/b/.tmskip", "");
    assert_snapshot!(repository.changed(), @"
    a  # changed: b/.tmskip (untracked), environment variable ALL (a/env.tm:5), global.all (globals.tm:2), the list of all stacks (globals.tm:2); at or below /
    [stderr]
    note: stack `/b` was removed since the base; nothing is run for it
    ");
    repository.commit();
    let tip = repository.git("rev-parse HEAD");
    repository.remove("/b/.tmskip");
    let found = repository.orch(&format!("list --changed --why --base {}", tip.trim()));
    assert_snapshot!(found.stdout, @"
    a  # changed: b/.tmskip (uncommitted, deleted), environment variable ALL (a/env.tm:5), global.all (globals.tm:2), the list of all stacks (globals.tm:2); at or below /
    b  # changed: b/.tmskip (uncommitted, deleted); at or below /
    ");
}

#[test]
fn changed_selects_a_new_stack_by_its_files() {
    let sandbox = Repository::prepare("a");
    sandbox.write("/env.tm", env("A = \"${terramate.stack.name}\""));
    let repository = Repository::of(sandbox);
    repository.write("/new/stack.tm", "stack {}\n");
    repository.write("/new/env.tm", env("B = \"1\""));
    assert_snapshot!(repository.changed(), @"new  # changed: new/env.tm (untracked); at or below /");
}

#[test]
fn changed_follows_configuration_of_a_new_directory() {
    let sandbox = Repository::prepare("a\nb");
    sandbox.write("/env.tm", env("A = tm_try(global.a, \"\")"));
    let repository = Repository::of(sandbox);
    fs::create_dir(repository.path("/x")).unwrap();
    fs::rename(repository.path("/b"), repository.path("/x/b")).unwrap();
    repository.write("/x/globals.tm", globals("a = \"1\""));
    assert_snapshot!(repository.changed(), @"
    x/b  # changed: x/b/main.tf (untracked); at or below /
    [stderr]
    note: stack `/b` was removed since the base; nothing is run for it
    ");
}

#[test]
fn changed_follows_removed_configuration_of_a_directory() {
    let sandbox = Repository::prepare("x/y/a\nb");
    sandbox.write("/x/y/env.tm", env("A = \"1\""));
    sandbox.write("/x/y/a/.keep", "");
    let repository = Repository::of(sandbox);
    repository.remove("/x/y/env.tm");
    assert_snapshot!(repository.changed(), @"x/y/a  # changed: x/y/env.tm (uncommitted, deleted), environment variable A at the base (x/y/env.tm:5); at or below /");
}

#[test]
fn changed_ignores_skipped_configuration_on_both_sides() {
    let sandbox = Repository::prepare("a");
    sandbox.write("/hidden/.tmskip", "");
    sandbox.write("/hidden/globals.tm", globals("a = \"1\""));
    sandbox.write(
        "/env.tm",
        env("A = \"${tm_try(terramate.stacks.list[1], \"\")}\""),
    );
    let repository = Repository::of(sandbox);
    repository.write("/hidden/stack.tm", "stack {}\n");
    repository.write("/hidden/globals.tm", globals("a = \"2\""));
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since c2b1feb
    ");
    repository.commit();
    repository.git("update-ref refs/tags/base HEAD");
    repository.remove("/hidden/stack.tm");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since a56c41e
    ");
}

#[test]
fn changed_list_of_stacks_counts_in_a_whole_namespace() {
    for list in [
        "[terramate][0].stacks.list",
        "[orch][0].stacks.list",
        "(true ? terramate : terramate).stacks.list",
        "[for t in [terramate] : t.stacks.list][0]",
        "{ t = terramate }.t.stacks.list",
        "global.meta.tm.stacks.list",
        "terramate[\"stacks\"].list",
        "[tm_templatestring(\"$${t.stacks.list[0]} $${length(t.stacks.list)}\", { t = terramate })]",
    ] {
        let sandbox = Repository::prepare("b");
        sandbox.write("/env.tm", env("ALL = global.all"));
        sandbox.write(
            "/globals.tm",
            format!(
                "globals {{\n  meta = {{ tm = terramate }}\n  all = tm_join(\" \", {list})\n}}\n"
            ),
        );
        let repository = Repository::of(sandbox);
        repository.write("/z/stack.tm", "stack {}\n");
        let changed = repository.changed().stdout;
        let by_list = "b  # changed: z/stack.tm (untracked), environment variable ALL (env.tm:5)";
        assert!(changed.starts_with(by_list), "{list}: {changed}");
        assert!(
            changed.contains("the list of all stacks (globals.tm:"),
            "{list}: {changed}"
        );
    }
}

#[test]
fn changed_selects_a_stack_that_is_no_longer_skipped() {
    let root = "terramate {\n  root = true\n}\n";
    for (mark, text) in [("x/.tmskip", ""), ("x/.orchskip", ""), ("x/root.tm", root)] {
        let sandbox = Repository::prepare("b\nx/a\nx/y/c");
        sandbox.write(&format!("/{mark}"), text);
        let repository = Repository::of(sandbox);
        repository.remove(&format!("/{mark}"));
        repository.write("/x/y/c/main.tf", "# new\n");
        assert_eq!(
            repository.changed().stdout,
            format!(
                "x/a  # changed: {mark} (uncommitted, deleted), which hid the stack at the base; at or below /\n\
                 x/y/c  # changed: x/y/c/main.tf (uncommitted); at or below /\n"
            )
        );
        repository.write("/x/another.tm", globals("a = 1"));
        repository.write("/x/new/stack.tm", "stack {}\n");
        repository.git("checkout -q -- x/y");
        repository.commit();
        assert_eq!(
            repository.changed().stdout,
            format!(
                "x/a  # changed: {mark} (deleted), which hid the stack at the base; at or below /\n\
                 x/new  # changed: x/new/stack.tm (added); at or below /\n\
                 x/y/c  # changed: {mark} (deleted), which hid the stack at the base; at or below /\n"
            )
        );
    }
}

#[test]
fn changed_names_a_deleted_skip_file() {
    let sandbox = Repository::prepare("b\nx/a");
    sandbox.write("/x/.tmskip", "");
    let repository = Repository::of(sandbox);
    repository.remove("/x/.tmskip");
    // That file says the same as before.
    repository.write("/x/a/stack.tm", "stack {} # the same\n");
    let output = repository.orch("list --changed --base base --format json");
    let reason = &output.json()["stacks"][0]["reasons"][0];
    assert_snapshot!(format!("{reason:#}"), @r#"
    {
      "change": "deleted",
      "detail": "changed: x/.tmskip (uncommitted, deleted), which hid the stack at the base",
      "file": "x/.tmskip",
      "kind": "changed",
      "rule": "hidden",
      "state": "uncommitted",
      "via": [
        {
          "detail": "which hid the stack at the base",
          "file": "x/.tmskip",
          "kind": "hidden",
          "line": null
        }
      ]
    }
    "#);
    assert_snapshot!(repository.orch("why x/a --changed --base base"), @"
    /x/a is selected
      changed: x/.tmskip (uncommitted, deleted), which hid the stack at the base
      at or below /

    its inputs, 1 of 2 changed since 5972a26
      /x/.tmskip, which hid the stack at the base
        changed: x/.tmskip (uncommitted, deleted)
      /x/a, its own directory
        differs, but does not count: x/a/stack.tm (uncommitted), only in comments, layout or settings that are no inputs

    nothing runs before it

    nothing runs after it
    [stderr]
    base 5972a26: --base base, which is HEAD itself
    ");
}
