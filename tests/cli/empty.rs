//! Empty selections: `--fail-if-empty`, and filters that no stack passes.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::Sandbox;

fn project() -> Sandbox {
    Sandbox::layout(
        "
        prod/app [production web]
        prod/db [production]
        dev/app [dev web]",
    )
}

#[test]
fn an_empty_selection_can_be_a_failure() {
    let sandbox = project();
    for command in ["list", "run"] {
        let end = if command == "run" { "true" } else { "" };
        let output = sandbox.orch(&format!("{command} --tags db {end}"));
        assert_eq!(output.code(), 0, "{output}");
        let output = sandbox.orch(&format!("{command} --fail-if-empty --tags db {end}"));
        assert_eq!(output.code(), 4, "{output}");
        let output = sandbox.orch(&format!("{command} --fail-if-empty --tags web {end}"));
        assert_eq!(output.code(), 0, "{output}");
    }
    assert_snapshot!(sandbox.orch("run --fail-if-empty --tags production:dev true"), @"
    [stderr]
    note: no stack at or below `/` passes the tag filters
    error: no stack is selected, and `--fail-if-empty` is given
    [exit status 4]
    ");
    let output = sandbox.orch("list --fail-if-empty --tags production:dev --format json");
    assert_eq!(output.code(), 4);
    let document = output.data();
    assert_eq!(
        (&document["refused"]["command"], &document["stacks"]),
        (&json!(null), &json!([]))
    );
}

#[test]
fn a_tag_that_no_stack_carries_is_noted() {
    let sandbox = project();
    assert_snapshot!(sandbox.orch("list --tags prodution:web,wed"), @"
    [stderr]
    note: in `--tags`: no stack of the project has the tag `prodution`; did you mean `production`?
    note: in `--tags`: no stack of the project has the tag `wed`; did you mean `web`?
    note: no stack at or below `/` passes the tag filters
    ");
    assert_snapshot!(sandbox.orch("list --no-tags devv"), @"
    dev/app
    prod/app
    prod/db
    [stderr]
    note: in `--no-tags`: no stack of the project has the tag `devv`; did you mean `dev`?
    ");
    let output = sandbox.orch("list --tags production:dev");
    assert!(!output.stderr.contains("carries"), "{output}");
}

#[test]
fn a_glob_that_matches_no_stack_is_noted() {
    let sandbox = project();
    assert_snapshot!(sandbox.orch("list --match prdo/**"), @"
    [stderr]
    note: `--match prdo/**` matches no stack of the project; did you mean `/prod/**`?
    note: no stack at or below `/` passes --match
    ");
    assert_snapshot!(sandbox.orch("list --match /prod/apq"), @"
    [stderr]
    note: `--match /prod/apq` matches no stack of the project; did you mean `/prod/app`?
    note: no stack at or below `/` passes --match
    ");
    assert_snapshot!(sandbox.orch("-C prod list --exclude prod/app"), @"
    app
    db
    [stderr]
    note: `--exclude prod/app` matches no stack of the project; it is relative to `/prod`, and `--exclude /prod/app` is relative to the project root
    ");
    assert_snapshot!(sandbox.orch("-C prod list --match ap"), @"
    [stderr]
    note: `--match ap` matches no stack of the project; it is relative to `/prod`; did you mean `/prod/app`?
    note: no stack at or below `/prod` passes --match
    ");
    for (written, meant) in [
        ("**/ap", "**/app"),
        ("ap", "**/app"),
        ("app", "**/app"),
        ("*/ap", "*/app"),
    ] {
        let output = sandbox.orch(&format!("list --match {written}"));
        let expected =
            format!("`--match {written}` matches no stack of the project; did you mean `{meant}`?");
        assert!(output.stderr.contains(&expected), "{output}");
    }
    assert_snapshot!(sandbox.orch("list --match nothing/like/that"), @"
    [stderr]
    note: `--match nothing/like/that` matches no stack of the project
    note: no stack at or below `/` passes --match
    ");
}
