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
