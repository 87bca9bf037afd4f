//! What `--changed` adds to the story.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::Repository;

/// Two stacks that share a module, which uses another one; the inner one has changed.
fn modules() -> Repository {
    let repository = Repository::new(
        r#"
//- /app/stack.tm
stack {
  watch = ["/policies/*.json"]
}
//- /app/main.tf
module "outer" {
  source = "../modules/outer"
}
//- /app/nested/stack.tm
stack {}
//- /app/nested/main.tf
# nothing
//- /modules/outer/main.tf
module "inner" {
  source = "../inner"
}
locals {
  text = file("${path.module}/text.txt")
}
//- /modules/outer/text.txt
hello
//- /modules/inner/main.tf
# nothing
"#,
    );
    repository.write("/modules/inner/main.tf", "# changed\n");
    repository.commit();
    repository
}

#[test]
fn why_lists_all_inputs_and_the_changed_ones_first() {
    let repository = modules();
    assert_snapshot!(repository.orch("why app --changed --base base"), @r#"
        /app is selected
          changed: modules/inner/main.tf, module ../modules/outer (app/main.tf:2), module ../inner (modules/outer/main.tf:2)
          at or below /

        its inputs, 1 of 5 changed since 4931519
          /modules/inner, module ../modules/outer (app/main.tf:2), module ../inner (modules/outer/main.tf:2)
            changed: modules/inner/main.tf
          /app, its own directory without the stacks below it
          /policies/*.json, watched (app/stack.tm:2)
          /modules/outer, module ../modules/outer (app/main.tf:2)
          /modules/outer/text.txt, module ../modules/outer (app/main.tf:2), read by file (modules/outer/main.tf:5)

        nothing runs before it

        it runs before
          /app/nested, nesting app/nested/stack.tm:1, not selected
        [stderr]
        base 4931519: --base base
        warning: no file matches `/policies/*.json`, which `watch` names
         --> app/stack.tm:2:12
          |
        2 |   watch = ["/policies/*.json"]
          |            ^^^^^^^^^^^^^^^^^^ nothing to watch now
        "#);
}

#[test]
fn why_says_what_would_select_an_unchanged_stack() {
    let repository = modules();
    assert_snapshot!(repository.orch("why app/nested --changed --base base"), @r#"
        /app/nested is not selected
          has not changed since 4931519

        its inputs, 0 of 1 changed since 4931519
          /app/nested, its own directory

        it runs after
          /app, nesting app/nested/stack.tm:1, selected

        nothing runs after it

        what would select it
          a change of one of its inputs, or `orch trigger /app/nested`
          --include-dependents=1, since it runs after /app, which is selected
        [stderr]
        base 4931519: --base base
        warning: no file matches `/policies/*.json`, which `watch` names
         --> app/stack.tm:2:12
          |
        2 |   watch = ["/policies/*.json"]
          |            ^^^^^^^^^^^^^^^^^^ nothing to watch now
        "#);
}

#[test]
fn why_shows_triggers_and_ignoring_triggers() {
    let repository = modules();
    repository.write(
        "/.tmtriggers/app/nested/changed-1.tm.hcl",
        "trigger {\n  ctime = 1\n  reason = \"drift\"\n}\n",
    );
    repository.write(
        "/.tmtriggers/app/ignore-1.tm.hcl",
        "trigger {\n  ctime = 1\n  reason = \"only a comment\"\n  type = ignore-change\n}\n",
    );
    assert_snapshot!(repository.orch("why app/nested --changed --base base"), @r#"
        /app/nested is selected
          triggered: drift (.tmtriggers/app/nested/changed-1.tm.hcl, untracked)
          at or below /

        its inputs, 0 of 1 changed since 4931519
          /app/nested, its own directory

        it runs after
          /app, nesting app/nested/stack.tm:1, not selected

        nothing runs after it
        [stderr]
        base 4931519: --base base
        warning: no file matches `/policies/*.json`, which `watch` names
         --> app/stack.tm:2:12
          |
        2 |   watch = ["/policies/*.json"]
          |            ^^^^^^^^^^^^^^^^^^ nothing to watch now
        "#);
    assert_snapshot!(repository.orch("why app --changed --base base"), @r#"
        /app is not selected
          its changes are ignored, although there are some: only a comment (.tmtriggers/app/ignore-1.tm.hcl, untracked)

        its inputs, 1 of 5 changed since 4931519
          /modules/inner, module ../modules/outer (app/main.tf:2), module ../inner (modules/outer/main.tf:2)
            changed: modules/inner/main.tf
          /app, its own directory without the stacks below it
          /policies/*.json, watched (app/stack.tm:2)
          /modules/outer, module ../modules/outer (app/main.tf:2)
          /modules/outer/text.txt, module ../modules/outer (app/main.tf:2), read by file (modules/outer/main.tf:5)

        nothing runs before it

        it runs before
          /app/nested, nesting app/nested/stack.tm:1, selected

        what would select it
          no trigger .tmtriggers/app/ignore-1.tm.hcl
          --include-dependencies=1, since it runs before /app/nested, which is selected
        [stderr]
        base 4931519: --base base
        warning: no file matches `/policies/*.json`, which `watch` names
         --> app/stack.tm:2:12
          |
        2 |   watch = ["/policies/*.json"]
          |            ^^^^^^^^^^^^^^^^^^ nothing to watch now
        "#);
    let story = repository
        .orch("why app --changed --base base --format json")
        .json();
    assert_eq!(story["base"]["rule"], "named");
    assert_eq!(
        story["left_out"],
        json!([{
            "kind": "ignore_change",
            "detail": "its changes are ignored, although there are some: only a comment (.tmtriggers/app/ignore-1.tm.hcl, untracked)",
            "file": ".tmtriggers/app/ignore-1.tm.hcl",
            "state": "untracked",
            "trigger_reason": "only a comment",
        }])
    );
    assert_eq!(
        story["inputs"][3],
        json!({
            "place": "/modules/inner",
            "rule": "module",
            "via": [
                {
                    "kind": "module",
                    "detail": "module ../modules/outer (app/main.tf:2)",
                    "file": "app/main.tf",
                    "line": 2,
                },
                {
                    "kind": "module",
                    "detail": "module ../inner (modules/outer/main.tf:2)",
                    "file": "modules/outer/main.tf",
                    "line": 2,
                },
            ],
            "changed": {
                "file": "modules/inner/main.tf",
                "change": "modified",
                "state": "committed",
            },
        })
    );
}

#[test]
fn why_names_every_trigger_that_ignores_a_stack() {
    let repository = Repository::layout("a\nb after /a");
    for (number, reason) in [(2, "only a comment"), (1, "not now")] {
        repository.write(
            &format!("/.tmtriggers/a/{number}.tm.hcl"),
            format!(
                "trigger {{\n  ctime = 1\n  reason = \"{reason}\"\n  type = ignore-change\n}}\n"
            ),
        );
    }
    assert_snapshot!(repository.orch("why a --changed --base base"), @"
        /a is not selected
          its changes are ignored: not now (.tmtriggers/a/1.tm.hcl, untracked); only a comment (.tmtriggers/a/2.tm.hcl, untracked)

        its inputs, 0 of 1 changed since 044d8d3
          /a, its own directory

        nothing runs before it

        it runs before
          /b, after b/stack.tm:2, not selected

        what would select it
          no trigger .tmtriggers/a/1.tm.hcl and no trigger .tmtriggers/a/2.tm.hcl, and a change of one of its inputs, or `orch trigger /a`
        [stderr]
        base 044d8d3: --base base, which is HEAD itself
        ");
    repository.write("/a/main.tf", "# changed\n");
    assert_snapshot!(repository.orch("why a --changed --base base"), @"
        /a is not selected
          its changes are ignored, although there are some: not now (.tmtriggers/a/1.tm.hcl, untracked); only a comment (.tmtriggers/a/2.tm.hcl, untracked)

        its inputs, 1 of 1 changed since 044d8d3
          /a, its own directory
            changed: a/main.tf (uncommitted)

        nothing runs before it

        it runs before
          /b, after b/stack.tm:2, not selected

        what would select it
          no trigger .tmtriggers/a/1.tm.hcl and no trigger .tmtriggers/a/2.tm.hcl
        [stderr]
        base 044d8d3: --base base, which is HEAD itself
        ");
    let story = repository.orch("why a --changed --base base --format json");
    let story = story.json();
    assert_eq!(
        story["left_out"],
        json!([
            {
                "kind": "ignore_change",
                "detail": "its changes are ignored, although there are some: not now (.tmtriggers/a/1.tm.hcl, untracked)",
                "file": ".tmtriggers/a/1.tm.hcl",
                "state": "untracked",
                "trigger_reason": "not now",
            },
            {
                "kind": "ignore_change",
                "detail": "its changes are ignored, although there are some: only a comment (.tmtriggers/a/2.tm.hcl, untracked)",
                "file": ".tmtriggers/a/2.tm.hcl",
                "state": "untracked",
                "trigger_reason": "only a comment",
            },
        ])
    );
}

#[test]
fn why_reports_a_removed_stack() {
    let repository = Repository::layout("a\nb");
    repository.git("rm -q -r b");
    repository.commit();
    assert_snapshot!(repository.orch("why b --changed --base base"), @"
        [stderr]
        base 7063b5e: --base base
        error: `b` is no longer a stack; it was one in the base 7063b5e
        [exit status 64]
        ");
}

#[test]
fn why_agrees_with_list() {
    let repository = modules();
    for flags in [
        "",
        "--tags none",
        "--match app",
        "--only-dependents",
        "--exclude app/nested",
    ] {
        let flags = format!("--changed --base base {flags}");
        let listed = repository.orch(&format!("list {flags}")).stdout;
        for stack in ["app", "app/nested"] {
            let why = repository.orch(&format!("why {stack} {flags} --format json"));
            let is_listed = listed.lines().any(|line| line == stack);
            assert_eq!(why.json()["selected"], is_listed, "{stack} {flags}");
        }
    }
}

/// What `why a` says with these flags about its inputs and what would select it.
fn told(repository: &Repository, flags: &str) -> String {
    let told = repository.orch(&format!("why a --changed --base base {flags}"));
    let is_told = |section: &&str| {
        ["/a is", "its inputs", "what would"]
            .iter()
            .any(|title| section.starts_with(title))
    };
    let sections: Vec<&str> = told.stdout.split("\n\n").filter(is_told).collect();
    sections.join("\n")
}

#[test]
fn why_shows_a_change_that_a_flag_leaves_out() {
    let repository = Repository::layout("a\nb");
    repository.write("/a/main.tf", "# changed\n");
    let off = "--disable-change-detection";
    assert_snapshot!(told(&repository, &format!("{off} git-uncommitted")), @"
        /a is not selected
          has not changed since 7063b5e
        its inputs, 0 of 1 changed since 7063b5e
          /a, its own directory
            differs, but does not count: a/main.tf (uncommitted), switched off by --disable-change-detection git-uncommitted
        what would select it
          a change of one of its inputs (commit a/main.tf, which does not count yet), or `orch trigger /a`
        ");
    repository.git("checkout -q a/main.tf");
    repository.write("/a/y.tf", "");
    repository.write("/b/y.tf", "");
    assert_snapshot!(told(&repository, &format!("{off} git-untracked")), @"
        /a is not selected
          has not changed since 7063b5e
        its inputs, 0 of 1 changed since 7063b5e
          /a, its own directory
            differs, but does not count: a/y.tf (untracked), switched off by --disable-change-detection git-untracked
        what would select it
          a change of one of its inputs (commit a/y.tf, which does not count yet), or `orch trigger /a`, whose file counts when it is committed
        ");
    let list = format!("list --changed --base base {off} git-untracked");
    assert_snapshot!(repository.orch(&list), @"
        [stderr]
        base 7063b5e: --base base, which is HEAD itself
        note: no stack has changed since 7063b5e; 2 files differ that do not count
        ");
    // What does not count of a change that does.
    repository.write("/a/main.tf", "# changed\n");
    repository.commit();
    repository.write("/a/main.tf", "# changed again\n");
    assert_snapshot!(told(&repository, &format!("{off} git-uncommitted")), @"
        /a is selected
          changed: a/main.tf
          at or below /
        its inputs, 1 of 1 changed since 7063b5e
          /a, its own directory
            changed: a/main.tf
        ");
}

#[test]
fn why_shows_a_change_that_the_configuration_leaves_out() {
    let repository = Repository::new(
        r#"
//- /orch.tm
orch {
  config {
    change_detection {
      git {
        untracked   = "off"
        uncommitted = "off"
      }
    }
  }
}
//- /a/stack.tm
stack {}
//- /lib/x.txt
hello
//- /a/main.tf
locals {
  x = file("../lib/x.txt")
}
"#,
    );
    repository.write("/lib/x.txt", "changed\n");
    assert_snapshot!(told(&repository, ""), @"
        /a is not selected
          has not changed since bfcc327
        its inputs, 0 of 2 changed since bfcc327
          /lib/x.txt, read by file (a/main.tf:2)
            differs, but does not count: lib/x.txt (uncommitted), switched off by config.change_detection.git.uncommitted
          /a, its own directory
        what would select it
          a change of one of its inputs (commit lib/x.txt, which does not count yet), or `orch trigger /a`, whose file counts when it is committed
        ");
    let flags = "--enable-change-detection git-uncommitted";
    assert_snapshot!(told(&repository, flags), @"
        /a is selected
          changed: lib/x.txt (uncommitted), read by file (a/main.tf:2)
          at or below /
        its inputs, 1 of 2 changed since bfcc327
          /lib/x.txt, read by file (a/main.tf:2)
            changed: lib/x.txt (uncommitted)
          /a, its own directory
        ");
}

#[test]
fn why_shows_an_ignored_change() {
    let repository = Repository::new(
        r#"
//- /modules/orch.tm
orch {
  config {
    change_detection {
      ignore = [
        "*.txt",
        "*.md",
      ]
    }
  }
}
//- /a/stack.tm
stack {}
//- /a/main.tf
module "m" {
  source = "../modules/m"
}
//- /modules/m/main.tf
# nothing
"#,
    );
    repository.write("/modules/m/README.md", "# changed\n");
    repository.commit();
    assert_snapshot!(told(&repository, ""), @"
        /a is not selected
          has not changed since 6e85ca1
        its inputs, 0 of 2 changed since 6e85ca1
          /modules/m, module ../modules/m (a/main.tf:2)
            differs, but does not count: modules/m/README.md (added), ignored by `*.md` (modules/orch.tm:6)
          /a, its own directory
        what would select it
          a change of one of its inputs, or `orch trigger /a`
        ");
    assert_snapshot!(repository.orch("list --changed --base base"), @"
        [stderr]
        base 6e85ca1: --base base
        note: no stack has changed since 6e85ca1; 1 file differs that does not count
        ");
    // A file that would count comes before one that never does.
    repository.write("/modules/m/x.tf", "module {\n");
    let flags = "--disable-change-detection git-untracked";
    assert_snapshot!(told(&repository, flags), @"
        /a is not selected
          has not changed since 6e85ca1
        its inputs, 0 of 2 changed since 6e85ca1
          /modules/m, module ../modules/m (a/main.tf:2)
            differs, but does not count: modules/m/x.tf (untracked), switched off by --disable-change-detection git-untracked
          /a, its own directory
        what would select it
          a change of one of its inputs (commit modules/m/x.tf, which does not count yet), or `orch trigger /a`, whose file counts when it is committed
        ");
    let why = format!("why a --changed --base base {flags} --format json");
    let story = repository.orch(&why).json();
    assert_eq!(story["inputs"][0].get("uncounted"), None);
    assert_eq!(
        story["inputs"][1]["uncounted"],
        json!([
            {
                "file": "modules/m/x.tf",
                "change": "added",
                "state": "untracked",
                "why": "switched_off",
                "detail": "switched off by --disable-change-detection git-untracked",
            },
            {
                "file": "modules/m/README.md",
                "change": "added",
                "state": "committed",
                "why": "ignored",
                "detail": "ignored by `*.md` (modules/orch.tm:6)",
            },
        ])
    );
    // What is ignored is so in any state.
    repository.write("/modules/m/x.md", "");
    std::fs::remove_file(repository.path("/modules/m/x.tf")).unwrap();
    repository.write("/modules/m/README.md", "# again\n");
    assert_snapshot!(told(&repository, flags), @"
        /a is not selected
          has not changed since 6e85ca1
        its inputs, 0 of 2 changed since 6e85ca1
          /modules/m, module ../modules/m (a/main.tf:2)
            differs, but does not count: modules/m/README.md (added), ignored by `*.md` (modules/orch.tm:6)
          /a, its own directory
        what would select it
          a change of one of its inputs, or `orch trigger /a`, whose file counts when it is committed
        ");
}

#[test]
fn why_shows_a_trigger_that_does_not_count() {
    let repository = Repository::layout("a\nb");
    let trigger = |kind: &str| {
        format!("trigger {{\n  ctime = 1\n  reason = \"drift\"\n  type = {kind}\n}}\n")
    };
    let below = "/.tmtriggers/a";
    repository.write(&format!("{below}/1.tm.hcl"), "broken {");
    repository.write(&format!("{below}/2.tm.hcl"), trigger("ignore-change"));
    repository.write("/.tmtriggers/b/3.tm.hcl", trigger("changed"));
    let flags = "--disable-change-detection git-untracked";
    assert_snapshot!(told(&repository, flags), @"
        /a is not selected
          has not changed since 7063b5e
        its inputs, 0 of 1 changed since 7063b5e
          /a, its own directory
        what would select it
          a change of one of its inputs, or `orch trigger /a`, whose file counts when it is committed
        ");
    repository.write(&format!("{below}/4.tm.hcl"), trigger("changed"));
    assert_snapshot!(told(&repository, flags), @"
        /a is not selected
          has not changed since 7063b5e
        its inputs, 0 of 1 changed since 7063b5e
          /a, its own directory
        what would select it
          a change of one of its inputs, or committing the trigger .tmtriggers/a/4.tm.hcl (untracked)
        ");
    assert_snapshot!(repository.orch(&format!("list --changed --base base {flags}")), @"
        [stderr]
        base 7063b5e: --base base, which is HEAD itself
        note: no stack has changed since 7063b5e; 4 files differ that do not count
        ");
}
