//! What `--changed` says, and the flags that go with it.

use insta::assert_snapshot;

use crate::support::Repository;

/// A project with a change of each state, in a stack named after it.
fn of_each_state() -> Repository {
    let repository = Repository::layout("committed\nstaged\nunstaged\nuntracked\nnone");
    repository.write("/committed/main.tf", "# changed\n");
    repository.commit();
    repository.write("/staged/main.tf", "# changed\n");
    repository.git("add -A");
    repository.write("/unstaged/main.tf", "# changed\n");
    repository.write("/untracked/new.tf", "");
    repository
}

#[test]
fn changed_flags_leave_out_uncommitted_files() {
    let repository = of_each_state();
    assert_snapshot!(repository.changed(), @"
    committed  # changed: committed/main.tf; at or below /
    staged  # changed: staged/main.tf (uncommitted); at or below /
    unstaged  # changed: unstaged/main.tf (uncommitted); at or below /
    untracked  # changed: untracked/new.tf (untracked); at or below /
    ");
    assert_snapshot!(repository.list("--disable-change-detection git-untracked"), @"
    committed  # changed: committed/main.tf; at or below /
    staged  # changed: staged/main.tf (uncommitted); at or below /
    unstaged  # changed: unstaged/main.tf (uncommitted); at or below /
    ");
    assert_snapshot!(repository.list("--disable-change-detection=git-uncommitted"), @"
    committed  # changed: committed/main.tf; at or below /
    untracked  # changed: untracked/new.tf (untracked); at or below /
    ");
    assert_snapshot!(repository.list("--disable-change-detection git-untracked,git-uncommitted"), @"committed  # changed: committed/main.tf; at or below /");
}

#[test]
fn changed_settings_leave_out_uncommitted_files() {
    let repository = of_each_state();
    let configure = |untracked: &str, uncommitted: &str| {
        repository.write(
            "/root.orch.hcl",
            format!(
                "
orch {{
  root = true
  config {{
    change_detection {{
      git {{
        untracked = {untracked}
        uncommitted = {uncommitted}
      }}
    }}
  }}
}}
"
            ),
        );
    };
    configure("\"off\"", "\"on\"");
    assert_snapshot!(repository.list(""), @"
    committed  # changed: committed/main.tf; at or below /
    staged  # changed: staged/main.tf (uncommitted); at or below /
    unstaged  # changed: unstaged/main.tf (uncommitted); at or below /
    ");
    configure("true", "false");
    assert_snapshot!(repository.list(""), @"
    committed  # changed: committed/main.tf; at or below /
    untracked  # changed: untracked/new.tf (untracked); at or below /
    ");
    configure("false", "\"off\"");
    assert_snapshot!(repository.list(""), @"committed  # changed: committed/main.tf; at or below /");
    assert_snapshot!(repository.list("--enable-change-detection git-untracked"), @"
    committed  # changed: committed/main.tf; at or below /
    untracked  # changed: untracked/new.tf (untracked); at or below /
    ");
    assert_snapshot!(repository.list("--enable-change-detection git-untracked --enable-change-detection git-uncommitted"), @"
    committed  # changed: committed/main.tf; at or below /
    staged  # changed: staged/main.tf (uncommitted); at or below /
    unstaged  # changed: unstaged/main.tf (uncommitted); at or below /
    untracked  # changed: untracked/new.tf (untracked); at or below /
    ");
    configure("true", "true");
    assert_snapshot!(repository.list("--disable-change-detection git-untracked,git-uncommitted"), @"committed  # changed: committed/main.tf; at or below /");
}

#[test]
fn changed_flags_that_conflict_are_refused() {
    let repository = Repository::layout("a");
    assert_snapshot!(repository.orch("list --changed --enable-change-detection git-untracked --disable-change-detection git-untracked"), @"
    [stderr]
    error: `git-untracked` is in --enable-change-detection and in --disable-change-detection
    [exit status 64]
    ");
    assert_snapshot!(repository.orch("list --changed --enable-change-detection git-untracked --disable-change-detection git-uncommitted,git-untracked"), @"
    [stderr]
    error: `git-untracked` is in --enable-change-detection and in --disable-change-detection
    [exit status 64]
    ");
    assert_snapshot!(repository.orch("list --changed --disable-change-detection untracked"), @"
    [stderr]
    error: invalid value 'untracked' for '--disable-change-detection <WHAT,…>'
      [possible values: git-untracked, git-uncommitted]

      tip: a similar value exists: 'git-untracked'

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(repository.orch("list --disable-change-detection git-untracked"), @"
    [stderr]
    error: `--disable-change-detection` has no effect without `--changed`; add `--changed`
    [exit status 64]
    ");
}

#[test]
fn changed_prints_reasons_as_json() {
    let repository = Repository::new(
        "\
//- /shared.tf
//- /own/stack.tm
stack {}
//- /watching/stack.tm
stack {
  watch = [\"/shared.tf\"]
}
//- /importing/stack.tm
stack {}
import {
  source = \"/common/c.tm.hcl\"
}
//- /common/c.tm.hcl
globals {}
",
    );
    repository.write("/own/x.tf", "");
    repository.write("/shared.tf", "# changed\n");
    repository.commit();
    repository.write("/common/c.tm.hcl", "globals {\n  a = 1\n}\n");
    let list = repository.list("--format json").json();
    let reasons: Vec<_> = list["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stack| &stack["reasons"])
        .collect();
    assert_snapshot!(serde_json::to_string_pretty(&reasons).unwrap(), @r#"
    [
      [
        {
          "change": "modified",
          "detail": "changed: common/c.tm.hcl (uncommitted), imported (importing/stack.tm:3)",
          "file": "common/c.tm.hcl",
          "kind": "changed",
          "rule": "import",
          "state": "uncommitted",
          "via": [
            {
              "detail": "imported (importing/stack.tm:3)",
              "file": "importing/stack.tm",
              "kind": "import",
              "line": 3
            }
          ]
        },
        {
          "detail": "at or below /",
          "kind": "directory"
        }
      ],
      [
        {
          "change": "added",
          "detail": "changed: own/x.tf (added)",
          "file": "own/x.tf",
          "kind": "changed",
          "rule": "own",
          "state": "committed",
          "via": []
        },
        {
          "detail": "at or below /",
          "kind": "directory"
        }
      ],
      [
        {
          "change": "modified",
          "detail": "changed: shared.tf, watched (watching/stack.tm:2)",
          "file": "shared.tf",
          "kind": "changed",
          "rule": "watch",
          "state": "committed",
          "via": [
            {
              "detail": "watched (watching/stack.tm:2)",
              "file": "watching/stack.tm",
              "kind": "watch",
              "line": 2
            }
          ]
        },
        {
          "detail": "at or below /",
          "kind": "directory"
        }
      ]
    ]
    "#);
    assert_eq!(list["base"]["rule"], "named");
    assert_eq!(list["removed"], serde_json::json!([]));
}

#[test]
fn changed_combines_with_other_filters() {
    let repository = Repository::layout("a [x]\na/b [y] wants /c\nc\nd [x]\ne wanted_by /a/b");
    repository.write("/a/new.tf", "");
    repository.write("/a/b/new.tf", "");
    repository.write("/d/new.tf", "");
    assert_snapshot!(repository.list(""), @"
    a  # changed: a/new.tf (untracked); at or below /
    a/b  # changed: a/b/new.tf (untracked); at or below /
    c  # wanted by /a/b (a/b/stack.tm:3)
    d  # changed: d/new.tf (untracked); at or below /
    e  # names /a/b in `wanted_by` (e/stack.tm:2)
    ");
    assert_snapshot!(repository.list("--tags x"), @"
    a  # changed: a/new.tf (untracked); at or below /; matches --tags x
    d  # changed: d/new.tf (untracked); at or below /; matches --tags x
    ");
    assert_snapshot!(repository.list("--no-tags x"), @"
    a/b  # changed: a/b/new.tf (untracked); at or below /
    c  # wanted by /a/b (a/b/stack.tm:3)
    e  # names /a/b in `wanted_by` (e/stack.tm:2)
    ");
    assert_snapshot!(repository.list("-C a"), @"
    .  # changed: a/new.tf (untracked); at or below /a
    b  # changed: a/b/new.tf (untracked); at or below /a
    ../c  # wanted by /a/b (a/b/stack.tm:3)
    ../e  # names /a/b in `wanted_by` (e/stack.tm:2)
    ");
    assert_snapshot!(repository.list("-C a --no-recursive"), @".  # changed: a/new.tf (untracked); the stack at /a");
}

#[test]
fn changed_explains_an_empty_selection() {
    let repository = Repository::layout("a [x]\na/b\nc");
    assert_snapshot!(repository.list(""), @"
    [stderr]
    note: no stack has changed since a09be9b
    ");
    repository.write("/a/b/new.tf", "");
    assert_snapshot!(repository.list("-C c"), @"
    [stderr]
    note: 1 stack has changed since a09be9b, but none at or below `/c`
    ");
    assert_snapshot!(repository.list("--tags x"), @"
    [stderr]
    note: 1 stack has changed since a09be9b, but none at or below `/` passes the tag filters
    ");
    assert_snapshot!(repository.list("-C a --no-recursive"), @"
    [stderr]
    note: 1 stack has changed since a09be9b, but none at `/a`
    ");
    repository.write("/a/new.tf", "");
    assert_snapshot!(repository.list("-C c"), @"
    [stderr]
    note: 2 stacks have changed since a09be9b, but none at or below `/c`
    ");
}

#[test]
fn changed_selects_the_same_in_run_and_list() {
    let repository = Repository::layout("a after /b\nb\nc wants /d after /d\nd\ne");
    repository.write("/a/new.tf", "");
    repository.write("/b/new.tf", "");
    repository.write("/c/new.tf", "");
    let list = repository.orch("list --changed --base base --order").stdout;
    assert_eq!(list, "b\na\nd\nc\n");
    let run = repository
        .orch("run -X --quiet --changed --base base -- sh -c 'echo ${ORCH_STACK_PATH#/}'")
        .stdout;
    assert_eq!(run, list);
}

#[test]
fn changed_run_without_changes_runs_nothing() {
    let repository = Repository::layout("a");
    assert_snapshot!(repository.orch("run --changed --base HEAD false"), @"
    [stderr]
    base 6e0c8e1: --base HEAD, which is HEAD itself
    note: no stack has changed since 6e0c8e1
    ");
}

#[test]
fn changed_is_the_same_from_every_directory() {
    let repository = Repository::layout("a\na/b\nc");
    repository.write("/a/b/new.tf", "");
    repository.write("/c/new.tf", "");
    repository.mkdir("/a/b/deep");
    assert_snapshot!(repository.orch_in("/a", "list --changed --base base --why"), @"
    b  # changed: a/b/new.tf (untracked); at or below /a
    [stderr]
    base 0b8ccbf: --base base, which is HEAD itself
    ");
    assert_snapshot!(repository.orch_in("/a/b/deep", "list --changed --base base --why -C ../.."), @"
    b  # changed: a/b/new.tf (untracked); at or below /a
    [stderr]
    base 0b8ccbf: --base base, which is HEAD itself
    ");
}

#[test]
fn changed_combines_with_all_other_flags() {
    let repository = Repository::layout(
        "a [x] wants /d
        b after /a
        c [x] after /b
        d
        e",
    );
    repository.write("/a/x", "");
    repository.write("/c/x", "");
    repository.write("/names", "a\ne\n");
    let list = |flags: &str| {
        let output = repository.list(flags);
        assert_eq!(output.code(), 0, "{output}");
        let paths = output
            .stdout
            .lines()
            .map(|line| line.split_once(' ').unwrap().0);
        paths.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(list(""), "a c d");
    assert_eq!(list("--match a"), "a d");
    assert_eq!(list("--exclude a"), "c");
    assert_eq!(list("--exclude d"), "a c");
    assert_eq!(list("--stacks-from names"), "a d");
    assert_eq!(list("--match b"), "");
    assert_eq!(list("--match a --include-dependents=1"), "a b d");
    assert_eq!(list("--match a --include-dependents"), "a b c d");
    assert_eq!(list("--match a --only-dependents"), "b c");
    assert_eq!(list("--only-dependencies=1"), "b");
    assert_eq!(list("--exclude-dependents"), "a d");
    assert_eq!(list("--exclude-dependencies"), "c d");
    assert_eq!(
        list("-C a --no-recursive --include-dependents=1"),
        ". ../b ../d"
    );
    assert_snapshot!(repository.list("--match c --include-dependencies"), @"
    a  # runs before /b, after b/stack.tm:2 (--include-dependencies)
    b  # runs before /c, after c/stack.tm:3 (--include-dependencies)
    c  # changed: c/x (untracked); at or below /; matches --match c
    d  # wanted by /a (a/stack.tm:3)
    ");
    assert_snapshot!(repository.list("--match b --tags x"), @"
    [stderr]
    note: 2 stacks have changed since 8701c1a, but none at or below `/` passes --match and the tag filters
    ");
    assert_snapshot!(repository.list("--match e --only-dependents"), @"
    [stderr]
    note: 2 stacks have changed since 8701c1a, but none at or below `/` passes --match
    ");
    assert_snapshot!(repository.list("--match c --only-dependents"), @"
    [stderr]
    note: 1 stack would be selected, but `--only-dependents` leaves none
    ");
}
