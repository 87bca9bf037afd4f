//! The whole story of one stack.

use insta::assert_snapshot;
use serde_json::json;

use crate::sandbox::Sandbox;

const SHOP: &str = "
    network [base]
    network/dns [base]
    database [data] after tag:base
    app [web] after /database wants /monitoring
    monitoring [ops]
    sandbox [dev] wanted_by tag:web";

#[test]
fn a_selected_stack_has_reasons_and_neighbours() {
    let sandbox = Sandbox::layout(SHOP);
    assert_snapshot!(sandbox.orch("why database --tags data"), @"
    /database is selected
      at or below /
      matches --tags data

    its inputs, of which --changed tells the changed ones
      /database, its own directory

    it runs after
      /network, after database/stack.tm:3, not selected
      /network/dns, after database/stack.tm:3, not selected

    it runs before
      /app, after app/stack.tm:3, not selected
    ");
}

#[test]
fn a_stack_that_is_wanted_says_by_whom() {
    let sandbox = Sandbox::layout(SHOP);
    assert_snapshot!(sandbox.orch("why monitoring --tags web"), @"
    /monitoring is selected
      wanted by /app (app/stack.tm:4)

    its inputs, of which --changed tells the changed ones
      /monitoring, its own directory

    it runs after nothing

    it runs before nothing
    ");
    assert_snapshot!(sandbox.orch("why sandbox --tags web"), @"
    /sandbox is selected
      names /app in `wanted_by` (sandbox/stack.tm:3)

    its inputs, of which --changed tells the changed ones
      /sandbox, its own directory

    it runs after nothing

    it runs before nothing
    ");
}

#[test]
fn every_filter_that_leaves_a_stack_out_is_told_with_its_remedy() {
    let sandbox = Sandbox::layout(SHOP);
    sandbox.write("/chosen", "/network\n");
    let flags = "--tags data --no-tags web --match '*/dns' --stacks-from ../chosen";
    assert_snapshot!(sandbox.orch(&format!("-C network why /app {flags}")), @"
    /app is not selected
      not at or below /network
      does not match --match */dns
      not named in ../chosen
      does not match --tags data (its tags: web)
      matches --no-tags web

    its inputs, of which --changed tells the changed ones
      /app, its own directory

    it runs after
      /database, after app/stack.tm:3, not selected

    it runs before nothing

    what would select it
      a start in /app, or in a directory above it; and --match /app; and a line /app in ../chosen; and --tags web; and no --no-tags web
    [stderr]
    note: `--match */dns` matches no stack of the project
    ");
}

#[test]
fn a_stack_that_flags_take_away_says_which() {
    let sandbox = Sandbox::layout(SHOP);
    assert_snapshot!(sandbox.orch("why app --exclude app --exclude 'a*' --tags data"), @"
    /app is not selected
      does not match --tags data (its tags: web)
      matches --exclude app and a*

    its inputs, of which --changed tells the changed ones
      /app, its own directory

    it runs after
      /database, after app/stack.tm:3, selected

    it runs before nothing

    what would select it
      leaving out --exclude app and --exclude a*, and --tags web
      leaving out --exclude app and --exclude a*, and --include-dependents, since it runs after /database, which is selected
    ");
    assert_snapshot!(sandbox.orch("why database --tags data --only-dependencies"), @"
    /database is not selected
      not what --only-dependencies means, though it would be selected without it

    its inputs, of which --changed tells the changed ones
      /database, its own directory

    it runs after
      /network, after database/stack.tm:3, selected
      /network/dns, after database/stack.tm:3, selected

    it runs before
      /app, after app/stack.tm:3, not selected

    what would select it
      leaving out --only-dependencies
    ");
    assert_snapshot!(sandbox.orch("why network --exclude-dependencies"), @"
    /network is not selected
      runs before /database, after database/stack.tm:3 (--exclude-dependencies)

    its inputs, of which --changed tells the changed ones
      /network, its own directory without the stacks below it

    it runs after nothing

    it runs before
      /database, after database/stack.tm:3, not selected
      /network/dns, nesting network/dns/stack.tm:1, not selected

    what would select it
      leaving out --exclude-dependencies
    ");
}

#[test]
fn neighbours_of_what_is_selected_are_one_flag_away() {
    let sandbox = Sandbox::layout(SHOP);
    assert_snapshot!(sandbox.orch("why app --tags base"), @"
    /app is not selected
      does not match --tags base (its tags: web)

    its inputs, of which --changed tells the changed ones
      /app, its own directory

    it runs after
      /database, after app/stack.tm:3, not selected

    it runs before nothing

    what would select it
      --tags web
      --include-dependents, since it runs after /network, which is selected
    ");
    assert_snapshot!(sandbox.orch("why app --tags base --include-dependents=1"), @"
    /app is not selected
      does not match --tags base (its tags: web)

    its inputs, of which --changed tells the changed ones
      /app, its own directory

    it runs after
      /database, after app/stack.tm:3, selected

    it runs before nothing

    what would select it
      --tags web
      --include-dependents, since it runs after /network, which is selected
    ");
    assert_snapshot!(sandbox.orch("why app --tags base --include-dependents"), @"
    /app is selected
      runs after /database, after app/stack.tm:3 (--include-dependents)

    its inputs, of which --changed tells the changed ones
      /app, its own directory

    it runs after
      /database, after app/stack.tm:3, selected

    it runs before nothing
    ");
}

#[test]
fn a_constraint_that_several_demand_names_all_of_them() {
    let sandbox = Sandbox::layout(
        "
        a before /a/b
        a/b [x] after /a tag:x
        a/c [x] after /a/b
        d before /a",
    );
    assert_snapshot!(sandbox.orch("why a/b"), @r#"
    /a/b is selected
      at or below /

    its inputs, of which --changed tells the changed ones
      /a/b, its own directory

    it runs after
      /a, nesting a/b/stack.tm:1, before a/stack.tm:2, after a/b/stack.tm:3, selected
      /a/c, after a/b/stack.tm:3, selected
      /d, before d/stack.tm:2, selected

    it runs before
      /a/c, after a/c/stack.tm:3, selected
    [stderr]
    warning: stacks wait for each other in a cycle: `/a/b` → `/a/c`
     --> a/c/stack.tm:3:12
      |
    3 |   after = ["/a/b"]
      |            ^^^^^^ `/a/b` runs before `/a/c` (after)
      |
     ::: a/b/stack.tm:3:18
      |
    3 |   after = ["/a", "tag:x"]
      |                  ------- `/a/c` runs before `/a/b` (after)
      |
      = help: remove one of these references
    "#);
}

#[test]
fn a_stack_in_a_cycle_has_a_story() {
    let sandbox = Sandbox::layout(
        "
        a after /b
        b after /a",
    );
    assert_snapshot!(sandbox.orch("why a"), @r#"
    /a is selected
      at or below /

    its inputs, of which --changed tells the changed ones
      /a, its own directory

    it runs after
      /b, after a/stack.tm:2, selected

    it runs before
      /b, after b/stack.tm:2, selected
    [stderr]
    warning: stacks wait for each other in a cycle: `/a` → `/b`
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
    "#);
}

#[test]
fn what_is_no_stack_is_a_wrong_command_line() {
    let sandbox = Sandbox::layout(
        "
        prod/network
        prod/database",
    );
    sandbox.mkdir("/prod/network/files");
    sandbox.mkdir("/docs");
    assert_snapshot!(sandbox.orch("why prod/netwrok"), @"
    [stderr]
    error: `prod/netwrok`: does not exist; did you mean `/prod/network`?
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("why prod"), @"
    [stderr]
    error: `prod`: not a stack, but 2 stacks lie below it
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("why prod/network/files"), @"
    [stderr]
    error: `prod/network/files`: not a stack, but inside of the stack `/prod/network`; did you mean `/prod/network`?
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("why docs"), @"
    [stderr]
    error: `docs`: not a stack
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("why ../elsewhere"), @"
    [stderr]
    error: `../elsewhere` lies outside of the project
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("why"), @"
    [stderr]
    error: the following required arguments were not provided:
      <STACK>

    Usage: orch why <STACK>

    For more information, try '--help'.
    [exit status 64]
    ");
}

#[test]
fn the_stack_is_named_from_where_one_is() {
    let sandbox = Sandbox::layout("a/b");
    let here = sandbox.orch_in("/a/b", "why .").stdout;
    assert!(here.starts_with("/a/b is selected\n"), "{here}");
    assert_eq!(
        sandbox
            .orch_in("/a", "why b")
            .stdout
            .replace("below /a", ""),
        here.replace("below /a/b", "")
    );
    let elsewhere = sandbox.orch_in("/a", "why /a/b");
    assert!(
        elsewhere.stdout.starts_with("/a/b is selected\n"),
        "{elsewhere}"
    );
}

#[test]
fn long_lists_are_cut_in_text_and_complete_in_json() {
    let mut layout = "z after /n".to_owned();
    for number in 0..40 {
        layout += &format!("\nn/{number:02} wants /z");
    }
    let sandbox = Sandbox::layout(&layout);
    let text = sandbox.orch("why z").stdout;
    assert_eq!(
        text.matches("and 10 more, which --format json has").count(),
        2,
        "{text}"
    );
    let story = sandbox.orch("why z --format json").json();
    assert_eq!(story["runs_after"].as_array().unwrap().len(), 40);
    assert_eq!(story["would_select"]["or"].as_array().unwrap().len(), 40);
}

#[test]
fn programs_get_the_same_story() {
    let sandbox = Sandbox::layout(SHOP);
    let story = sandbox
        .orch("why app --tags base --exclude 'a*' --format json")
        .json();
    assert_eq!(story["format"], 1);
    assert_eq!(story["path"], "/app");
    assert_eq!(story["selected"], false);
    assert_eq!(story["reasons"], json!([]));
    assert_eq!(
        story["left_out"],
        json!([
            {"kind": "tags", "detail": "does not match --tags base (its tags: web)"},
            {"kind": "exclude", "detail": "matches --exclude a*"},
        ])
    );
    assert_eq!(
        story["runs_after"],
        json!([{
            "path": "/database",
            "selected": false,
            "origins": [{"kind": "after", "file": "app/stack.tm", "line": 3}],
        }])
    );
    assert_eq!(
        story["would_select"],
        json!({
            "leaving_out": ["--exclude a*"],
            "filters": ["--tags web"],
            "or": [{
                "kind": "neighbour",
                "detail": "--include-dependents, since it runs after /network, which is selected",
                "stack": "/network",
                "flag": "--include-dependents",
                "file": null,
                "line": null,
            }],
        })
    );
}

#[cfg(unix)]
mod with_changes {
    use insta::assert_snapshot;
    use serde_json::json;

    use crate::repository::Repository;

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
    fn a_changed_stack_shows_all_its_inputs_and_the_changed_ones_first() {
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

        it runs after nothing

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
    fn an_unchanged_stack_says_what_would_select_it() {
        let repository = modules();
        assert_snapshot!(repository.orch("why app/nested --changed --base base"), @r#"
        /app/nested is not selected
          has not changed since 4931519

        its inputs, 0 of 1 changed since 4931519
          /app/nested, its own directory

        it runs after
          /app, nesting app/nested/stack.tm:1, selected

        it runs before nothing

        what would select it
          a change of one of its inputs, or `orch trigger /app/nested`
          --include-dependents, since it runs after /app, which is selected
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
    fn a_trigger_is_a_reason_and_an_ignoring_one_an_obstacle() {
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

        it runs before nothing
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

        it runs after nothing

        it runs before
          /app/nested, nesting app/nested/stack.tm:1, selected

        what would select it
          no trigger .tmtriggers/app/ignore-1.tm.hcl
          --include-dependencies, since it runs before /app/nested, which is selected
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
    fn a_removed_stack_has_no_story_but_is_not_forgotten() {
        let repository = Repository::layout("a\nb");
        repository.git("rm -q -r b");
        repository.commit();
        assert_snapshot!(repository.orch("why b --changed --base base"), @"
        [stderr]
        base 7063b5e: --base base
        error: `b` is no stack any more: it was one in the base 7063b5e
        [exit status 64]
        ");
    }

    #[test]
    fn whether_a_stack_is_selected_is_what_list_says() {
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
}
