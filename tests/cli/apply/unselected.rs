//! Stacks that are not selected and run after stacks with work.

use super::{applied, declare, done, project, want, with_state};
use crate::support::Repository;

const OUT_OF_SCOPE: &str = "out of scope";

/// An applied project in which `/net` has changed since.
fn changed() -> Repository {
    let repository = applied(&[
        ("/net", ""),
        ("/app", "after = [\"/net\"]"),
        ("/web", "after = [\"/app\"]"),
        ("/other", ""),
    ]);
    want(&repository, "/net", "2");
    repository
}

#[test]
fn plan_counts_dependents_that_are_not_selected() {
    let repository = changed();
    let note = "note: 2 stacks that run after `/net` are not selected: to plan them too, add `--include-dependents`\n";
    let total = "Plan: 1 to update, 2 dependents out of scope.";
    for flags in ["--changed --base HEAD~1", "--match net", "-C net"] {
        let arguments = match flags.strip_prefix("-C ") {
            Some(directory) => format!("-C {directory} plan"),
            None => format!("plan {flags}"),
        };
        let output = repository.orch(&arguments);
        assert!(output.stderr.contains(note), "{output}");
        assert!(output.stdout.contains(total), "{output}");
        let all = repository.orch(&format!("{arguments} --include-dependents"));
        assert!(all.stdout.contains("2 known after apply"), "{all}");
        assert!(!all.stdout.contains(OUT_OF_SCOPE), "{all}");
        assert!(!all.stderr.contains("not selected"), "{all}");
        let json = repository
            .orch(&format!("{arguments} --format json"))
            .data();
        assert_eq!(json["dependents_out_of_scope"], 2);
    }
    let output = repository.orch("plan --match net --match app");
    let note = "note: 1 stack that runs after `/net` is not selected: to plan it too, add";
    assert!(output.stderr.contains(note), "{output}");
    let plan = output.stdout.lines().last().unwrap();
    assert!(plan.contains(", 1 dependent out of scope."), "{plan}");
    // The file has the number.
    let planned = done(&repository, "plan --match net -o ../saved");
    assert!(planned.contains("2 dependents out of scope"), "{planned}");
    let shown = repository.orch("show ../saved").stdout;
    assert!(shown.contains("2 dependents out of scope"), "{shown}");
    let applied = done(&repository, "apply --auto-approve --match net");
    assert!(applied.contains("2 dependents out of scope"), "{applied}");
    // They have work of their own now, which a plan of all stacks shows.
    assert!(!done(&repository, "plan --match net").contains(OUT_OF_SCOPE));
}

#[test]
fn plan_counts_no_dependents_that_cannot_change_or_are_left_out_by_name() {
    let repository = changed();
    for flags in [
        "",
        "--match other",
        "--match app",
        "--exclude app --exclude web",
        "--match net --exclude-dependents",
        "--match net --destroy",
        "--match net --refresh-only",
    ] {
        let plan = repository.orch(&format!("plan {flags}"));
        assert!(!plan.stdout.contains(OUT_OF_SCOPE), "{flags}: {plan}");
    }
    // Stacks that were never applied, ignore all changes, or have no driver.
    let repository = with_state(&[
        ("/net", ""),
        (
            "/quiet",
            "after = [\"/net\"]\nlifecycle {\n  ignore_changes = all\n}",
        ),
    ]);
    done(&repository, "apply --auto-approve");
    declare(&repository, "/new", "after = [\"/net\"]");
    declare(
        &repository,
        "/none",
        "driver = \"none\"\nafter = [\"/net\"]",
    );
    want(&repository, "/net", "2");
    let plan = done(&repository, "plan --match net");
    assert!(!plan.contains(OUT_OF_SCOPE), "{plan}");
}

#[test]
fn plan_without_state_counts_dependents_with_a_driver() {
    let repository = project(&[
        ("/net", ""),
        ("/app", "after = [\"/net\"]"),
        ("/none", "driver = \"none\"\nafter = [\"/net\"]"),
    ]);
    let plan = done(&repository, "plan --match net");
    assert!(plan.contains("1 dependent out of scope"), "{plan}");
}
