//! How a stack is named, and how the answer is given.

use insta::assert_snapshot;
use serde_json::json;

use super::SHOP;
use crate::support::Sandbox;

#[test]
fn why_suggests_no_stack_for_the_root() {
    let sandbox = Sandbox::layout("a\nb");
    assert_snapshot!(sandbox.orch("why /"), @"
    [stderr]
    error: `/`: not a stack, but 2 stacks lie below it
    [exit status 64]
    ");
    let output = sandbox.orch("why /c");
    assert!(output.stderr.contains("did you mean `/a`?"), "{output}");
}

#[test]
fn why_suggests_the_path_for_a_name_id_or_suffix() {
    let sandbox = Sandbox::layout("dev/vpc\nprod/vpc\nprod/db");
    sandbox.write(
        "/prod/db/stack.tm",
        "stack {\n  id = \"Main-DB\"\n  name = \"the database\"\n}\n",
    );
    for (written, told) in [
        (
            "vpc",
            "`vpc`: does not exist; did you mean `/dev/vpc` or `/prod/vpc`?",
        ),
        (
            "main-db",
            "`main-db`: does not exist; did you mean `/prod/db`?",
        ),
        ("'the database'", "does not exist; did you mean `/prod/db`?"),
        ("db", "`db`: does not exist; did you mean `/prod/db`?"),
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
fn why_refuses_a_path_without_a_stack() {
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
    error: `../elsewhere` is outside of the project
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
fn why_resolves_paths_from_the_working_directory() {
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
fn why_cuts_long_lists_in_text_but_not_in_json() {
    let mut layout = "z after /n".to_owned();
    for number in 0..40 {
        layout += &format!("\nn/{number:02} wants /z");
    }
    let sandbox = Sandbox::layout(&layout);
    let text = sandbox.orch("why z").stdout;
    assert_eq!(
        text.matches("and 10 more, listed by --format json").count(),
        2,
        "{text}"
    );
    let story = sandbox.orch("why z --format json").json();
    assert_eq!(story["runs_after"].as_array().unwrap().len(), 40);
    assert_eq!(story["would_select"]["or"].as_array().unwrap().len(), 40);
}

#[test]
fn why_prints_the_same_facts_as_json() {
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

#[test]
fn why_after_and_run_take_no_selection_flags() {
    let sandbox = Sandbox::layout("a\nb");
    for question in ["--after b", "--run last"] {
        for flag in [
            "--base nonsense",
            "--fetch",
            "--disable-change-detection git-untracked",
            "--only-direct-dependents",
        ] {
            let output = sandbox.orch(&format!("why a {question} {flag}"));
            assert_eq!(output.code(), 64, "{output}");
        }
    }
}
