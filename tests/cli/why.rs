//! The whole story of one stack.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::Sandbox;

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
    note: `--match */dns` matches no stack of the project; it is relative to `/network`, and `--match /*/dns` is relative to the project root
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
      leaving out --exclude app and --exclude a*, and --include-dependents=1, since it runs after /database, which is selected
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
      /app, through /database, which is not selected
        after database/stack.tm:3, after app/stack.tm:3

    what would select it
      leaving out --exclude-dependencies
    ");
}

#[test]
fn only_flags_that_are_in_the_way_are_to_be_left_out() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a
        c after /b",
    );
    let tail = |flags: &str| {
        let story = sandbox.orch(&format!("why {flags}")).stdout;
        story.rsplit("\n\n").next().unwrap().to_owned()
    };
    assert_snapshot!(tail("b --match a --only-dependents --exclude-dependencies"), @"
    what would select it
      leaving out --exclude-dependencies
    ");
    assert_snapshot!(tail("b --match a --include-dependents --exclude b"), @"
    what would select it
      leaving out --exclude b
    ");
    assert_snapshot!(tail("c --match a --include-dependents=1"), @"
    what would select it
      --match /c
      --include-dependents=2 instead of --include-dependents=1, since it runs after /a, which is selected
    ");
}

#[test]
fn what_is_excluded_cannot_be_selected_to_want_anything() {
    let sandbox = Sandbox::layout(
        "
        a wants /w
        s
        w
        z wanted_by /a /s",
    );
    assert_snapshot!(sandbox.orch("why w --tags none --exclude a"), @"
    /w is not selected
      does not match --tags none (it has no tags)

    its inputs, of which --changed tells the changed ones
      /w, its own directory

    it runs after nothing

    it runs before nothing

    what would select it
      no --tags, since it has none
    ");
    assert_snapshot!(sandbox.orch("why z --tags none --exclude a"), @"
    /z is not selected
      does not match --tags none (it has no tags)

    its inputs, of which --changed tells the changed ones
      /z, its own directory

    it runs after nothing

    it runs before nothing

    what would select it
      no --tags, since it has none
      selecting /s, which it names in `wanted_by` (z/stack.tm:2)
    ");
    assert_snapshot!(sandbox.orch("why w --match a --exclude w"), @"
    /w is not selected
      matches --exclude w

    its inputs, of which --changed tells the changed ones
      /w, its own directory

    it runs after nothing

    it runs before nothing

    what would select it
      leaving out --exclude w
    ");
}

#[cfg(unix)] // not every system has names like these
#[test]
fn what_is_to_be_typed_can_be_typed() {
    let sandbox = Sandbox::layout("app");
    for stack in ["/[g]", "/sp ace", "/it's", "/{a,b}*"] {
        sandbox.write(&format!("{stack}/stack.tm"), "stack {}\n");
        let quoted = shell_words::quote(stack);
        let story = sandbox.orch(&format!("why {quoted} --match app")).stdout;
        let advice = story.lines().find(|line| line.starts_with("  --match "));
        let listed = sandbox.orch(&format!("list {}", advice.unwrap()));
        assert_eq!(listed.stdout.trim_end(), &stack[1..]);
    }
}

#[test]
fn what_is_to_be_typed_selects_nothing_else() {
    let sandbox = Sandbox::layout(
        "
        a/b [x y]
        a/b/nested [x]
        c
        d after /c
        e after /d",
    );
    for (stack, flags, listed) in [
        ("a/b", "--match c", "a/b\n"),
        ("a/b", "--tags none", "a/b\n"),
        ("d", "--match c", "d\n"),
    ] {
        let story = sandbox.orch(&format!("why {stack} {flags} --format json"));
        let filter = &story.json()["would_select"]["filters"][0];
        let list = sandbox.orch(&format!("list {}", filter["flag"].as_str().unwrap()));
        assert_eq!(list.stdout, listed, "{filter}");
    }
    let story = sandbox.orch("why d --match c --format json").json();
    assert_eq!(
        story["would_select"]["or"][0]["flag"],
        "--include-dependents=1"
    );
    let list = sandbox.orch("list --match c --include-dependents=1");
    assert_eq!(list.stdout, "c\nd\n");
}

#[test]
fn effective_neighbours_are_told_with_the_way_to_them() {
    let sandbox = Sandbox::layout(
        "
        a [x]
        b after /a
        c after /b
        d [x] after /c",
    );
    assert_snapshot!(sandbox.orch("why d --tags x"), @"
    /d is selected
      at or below /
      matches --tags x

    its inputs, of which --changed tells the changed ones
      /d, its own directory

    it runs after
      /c, after d/stack.tm:3, not selected
      /a, through /b and /c, which are not selected
        after b/stack.tm:2, after c/stack.tm:2, after d/stack.tm:3

    it runs before nothing
    ");
    assert_snapshot!(sandbox.orch("why b --tags x"), @"
    /b is not selected
      does not match --tags x (it has no tags)

    its inputs, of which --changed tells the changed ones
      /b, its own directory

    it runs after
      /a, after b/stack.tm:2, selected

    it runs before
      /c, after c/stack.tm:2, not selected
      /d, through /c, which is not selected
        after c/stack.tm:2, after d/stack.tm:3

    what would select it
      no --tags, since it has none
      --include-dependents=1, since it runs after /a, which is selected
      --include-dependencies=2, since it runs before /d, which is selected
    ");
    let story = sandbox.orch("why a --tags x --format json").json();
    assert_eq!(
        story["runs_before"],
        json!([
            {
                "path": "/b",
                "selected": false,
                "origins": [{"kind": "after", "file": "b/stack.tm", "line": 2}],
            },
            {
                "path": "/d",
                "selected": true,
                "origins": [
                    {"kind": "after", "file": "b/stack.tm", "line": 2},
                    {"kind": "after", "file": "c/stack.tm", "line": 2},
                    {"kind": "after", "file": "d/stack.tm", "line": 3},
                ],
                "via": ["/b", "/c"],
            },
        ])
    );
}

#[test]
fn why_a_stack_runs_after_another_one() {
    let sandbox = Sandbox::layout(SHOP);
    assert_snapshot!(sandbox.orch("why app --after network"), @"
    /app runs after /network
      /app runs after /database, after app/stack.tm:3
      /database runs after /network, after database/stack.tm:3
    ");
    assert_snapshot!(sandbox.orch("why network --after /app"), @"
    /network does not run after /app, but before it
      /app runs after /database, after app/stack.tm:3
      /database runs after /network, after database/stack.tm:3
    ");
    assert_snapshot!(sandbox.orch("why app --after monitoring"), @"/app does not run after /monitoring: nothing orders the two");
    assert_eq!(
        sandbox.orch("why app --after network --format json").json(),
        json!({
            "format": 1,
            "stacks": [{"path": "/app"}, {"path": "/network"}],
            "path": "/app",
            "after": "/network",
            "runs_after": true,
            "runs_before": false,
            "chain": [
                {"path": "/app", "runs_after": "/database", "kind": "after", "file": "app/stack.tm", "line": 3},
                {"path": "/database", "runs_after": "/network", "kind": "after", "file": "database/stack.tm", "line": 3},
            ],
            "valid": true,
            "diagnostics": [],
            "errors": [],
        })
    );
    let story = sandbox
        .orch("why app --after monitoring --format json")
        .json();
    assert_eq!(
        (&story["runs_after"], &story["chain"]),
        (&json!(false), &json!([]))
    );
    let output = sandbox.orch("why app --after network --tags web");
    assert_eq!(output.code(), 64, "{output}");
    let output = sandbox.orch("why app --after network --include-dependents");
    assert_eq!(output.code(), 64, "{output}");
    let cycle = Sandbox::layout("a after /b\n b after /a");
    assert_snapshot!(cycle.orch("why a --after a").stdout, @"
    /a runs after /a
      /a runs after /b, after a/stack.tm:2
      /b runs after /a, after b/stack.tm:2
    ");
}

#[test]
fn what_is_not_a_path_may_name_stacks_in_other_ways() {
    let sandbox = Sandbox::layout("dev/vpc\nprod/vpc\nprod/db");
    sandbox.write(
        "/prod/db/stack.tm",
        "stack {\n  id = \"Main-DB\"\n  name = \"the database\"\n}\n",
    );
    for (written, told) in [
        (
            "vpc",
            "`vpc`: does not exist; it names `/dev/vpc` (name), `/prod/vpc` (name): write the path",
        ),
        ("main-db", "it names `/prod/db` (id): write the path"),
        (
            "'the database'",
            "it names `/prod/db` (name): write the path",
        ),
        (
            "db",
            "it names `/prod/db` (last part of the path): write the path",
        ),
    ] {
        for command in [
            format!("why {written}"),
            format!("why prod/vpc --after {written}"),
        ] {
            let output = sandbox.orch(&command);
            assert_eq!(output.code(), 64, "{output}");
            assert!(output.stderr.contains(told), "{output}");
        }
    }
}

#[test]
fn what_is_wanted_by_stacks_that_a_flag_leaves_out_says_so() {
    let sandbox = Sandbox::layout(
        "
        a [x]
        b after /a wants /w
        c [y] after /b
        w",
    );
    assert_snapshot!(sandbox.orch("why w --tags x --include-dependents=1 --exclude-dependents"), @"
    /w is not selected
      what would bring it along is left out by --exclude-dependents

    its inputs, of which --changed tells the changed ones
      /w, its own directory

    it runs after nothing

    it runs before nothing

    what would select it
      leaving out --exclude-dependents
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
      /network, through /database, which is not selected
        after database/stack.tm:3, after app/stack.tm:3
      /network/dns, through /database, which is not selected
        after database/stack.tm:3, after app/stack.tm:3

    it runs before nothing

    what would select it
      --tags web
      --include-dependents=2, since it runs after /network, which is selected
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
      --include-dependents=2 instead of --include-dependents=1, since it runs after /network, which is selected
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
    assert_snapshot!(sandbox.orch("why ''"), @"
    [stderr]
    error: the path of the stack is empty; the current directory is `.`
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
    let through = |path: &str| {
        json!({
            "path": path,
            "selected": true,
            "origins": [
                {"kind": "after", "file": "database/stack.tm", "line": 3},
                {"kind": "after", "file": "app/stack.tm", "line": 3},
            ],
            "via": ["/database"],
        })
    };
    assert_eq!(
        story["runs_after"],
        json!([{
            "path": "/database",
            "selected": false,
            "origins": [{"kind": "after", "file": "app/stack.tm", "line": 3}],
        }, through("/network"), through("/network/dns")])
    );
    assert_eq!(
        story["would_select"],
        json!({
            "leaving_out": ["--exclude a*"],
            "filters": [{"kind": "tags", "detail": "--tags web", "flag": "--tags=web"}],
            "or": [{
                "kind": "neighbour",
                "detail": "--include-dependents=2, since it runs after /network, which is selected",
                "stack": "/network",
                "flag": "--include-dependents=2",
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
    fn every_trigger_that_ignores_a_stack_is_named() {
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

        it runs after nothing

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

        it runs after nothing

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
    fn a_change_that_is_switched_off_is_told() {
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
          a change of one of its inputs (commit a/y.tf, which does not count yet), or `orch trigger /a`, whose file counts once it is committed
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
    fn a_change_that_the_configuration_switches_off_is_told() {
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
          a change of one of its inputs (commit lib/x.txt, which does not count yet), or `orch trigger /a`, whose file counts once it is committed
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
    fn a_change_that_is_ignored_is_told() {
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
          a change of one of its inputs (commit modules/m/x.tf, which does not count yet), or `orch trigger /a`, whose file counts once it is committed
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
          a change of one of its inputs, or `orch trigger /a`, whose file counts once it is committed
        ");
    }

    #[test]
    fn a_trigger_that_does_not_count_is_told() {
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
          a change of one of its inputs, or `orch trigger /a`, whose file counts once it is committed
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
}
