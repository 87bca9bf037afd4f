//! Which removals a plan is about.

use std::fs;

use super::{APPROVED, acts, applied, done, fails, keys, log, planned, remove, world};
use crate::support::Repository;

/// Three stacks that were removed, one of which was never committed to be, and one that is left.
fn repository() -> Repository {
    let repository = applied(&[
        ("/live", "tags = [\"prod\"]"),
        ("/old/a", "tags = [\"prod\"]"),
        ("/old/b", "tags = [\"dev\"]"),
        ("/other", "tags = [\"dev\"]"),
    ]);
    remove(&repository, "old other");
    repository
}

/// Returns the last line of a plan.
fn footer(repository: &Repository, arguments: &str) -> String {
    let plan = repository.orch(&format!("plan {arguments}"));
    assert_eq!(plan.code(), 0, "{plan}");
    plan.stdout.lines().last().unwrap().to_owned()
}

#[test]
fn removal_respects_all_filters() {
    let repository = repository();
    let (a, b, other) = ("/old/a delete", "/old/b delete", "/other delete");
    for (arguments, expected, out_of_scope) in [
        ("", &[a, b, other][..], 0),
        ("--match old", &[a, b], 1),
        ("--match 'old/*'", &[a, b], 1),
        ("--match live", &[], 3),
        ("--exclude old/a", &[b, other], 1),
        ("--exclude '**'", &[], 3),
        ("--tags dev", &[b, other], 1),
        ("--tags prod,dev", &[a, b, other], 0),
        ("--no-tags dev", &[a], 2),
        ("--tags dev --match old", &[b], 2),
        ("--status removed", &[a, b, other], 0),
        ("--status applied", &[], 3),
        ("--status removed --match other", &[other], 2),
        ("--changed --base base", &[a, b, other], 0),
        ("--changed --base HEAD", &[], 3),
        ("--changed --base base --tags prod", &[a], 2),
    ] {
        assert_eq!(planned(&repository, arguments), expected, "{arguments}");
        let footer = footer(&repository, arguments);
        let counted = match out_of_scope {
            0 => !footer.contains("out of scope"),
            1 => footer.contains(" 1 removal out of scope."),
            n => footer.contains(&format!(" {n} removals out of scope.")),
        };
        assert!(counted, "{arguments}: {footer}");
    }
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn removal_respects_the_current_directory() {
    let repository = repository();
    let plan = repository.orch_in("live", "plan");
    assert!(plan.stdout.contains(", 3 removals out of scope."), "{plan}");
    // The directory may be left, although the stacks are gone.
    repository.mkdir("old");
    let plan = repository.orch_in("old", "plan");
    assert_eq!(plan.code(), 0, "{plan}");
    assert!(
        plan.stdout.contains("- /old/a") && plan.stdout.contains("- /old/b"),
        "{plan}"
    );
    assert!(plan.stdout.contains(", 1 removal out of scope."), "{plan}");
    let applied = repository.orch_in("old", &format!("apply {APPROVED}"));
    assert_eq!(applied.code(), 0, "{applied}");
    assert_eq!(keys(&repository), ["/live", "/other"]);
}

#[test]
fn removal_accepts_stacks_from_a_list() {
    let repository = repository();
    let from = |stacks: &str| {
        let file = repository.outside().join("stacks");
        fs::write(&file, stacks).unwrap();
        planned(&repository, "--stacks-from ../stacks")
    };
    assert_eq!(from("/old/a\n"), ["/old/a delete"]);
    assert_eq!(from("/live\n/other\n"), ["/other delete"]);
    assert_eq!(from("/live\n"), [""; 0]);
    // What was never there is a mistake.
    let file = repository.outside().join("stacks");
    fs::write(file, "/never\n").unwrap();
    let output = repository.orch("plan --stacks-from ../stacks");
    assert_ne!(output.code(), 0, "{output}");
    assert!(output.stderr.contains("/never"), "{output}");
}

#[test]
fn removal_respects_the_selection_of_apply() {
    let repository = repository();
    done(&repository, &format!("apply --tags prod {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /old/a"]);
    done(
        &repository,
        &format!("apply --changed --base base --match other {APPROVED}"),
    );
    assert_eq!(acts(&repository), ["destroy /other"]);
    assert_eq!(keys(&repository), ["/live", "/old/b"]);
}

#[test]
fn no_removals_counts_the_removed_stacks() {
    let repository = repository();
    assert_eq!(planned(&repository, "--no-removals"), [""; 0]);
    assert!(footer(&repository, "--no-removals").contains(" 3 removals left out."));
    let both = footer(&repository, "--no-removals --match old");
    assert!(
        both.contains(" 2 removals left out, 1 removal out of scope."),
        "{both}"
    );
    assert_eq!(
        repository
            .orch("plan --no-removals --detailed-exitcode")
            .code(),
        0
    );
    // Nobody was asked, and nothing was checked out.
    assert_eq!(log(&repository), [""; 0]);
    assert!(!repository.path("/.orch/worktrees").exists());
    done(&repository, "apply --auto-approve --no-removals");
    done(&repository, &format!("destroy --no-removals {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /live"]);
    assert_eq!(world(&repository), ["old_a", "old_b", "other"]);
}

#[test]
fn refresh_only_shows_no_removals() {
    let repository = repository();
    let plan = repository.orch("plan --refresh-only");
    assert_eq!(plan.code(), 0, "{plan}");
    assert!(!plan.stdout.contains("delete  "), "{plan}");
    assert!(!plan.to_string().contains("/old/"), "{plan}");
    let steps = log(&repository);
    assert!(steps.iter().all(|it| it.ends_with("/live")), "{steps:?}");
}

#[test]
fn destroy_includes_removed_stacks() {
    let repository = repository();
    let listed = [
        "/live delete",
        "/old/a delete",
        "/old/b delete",
        "/other delete",
    ];
    assert_eq!(planned(&repository, "--destroy"), listed);
    assert_eq!(
        planned(&repository, "--destroy --tags dev"),
        ["/old/b delete", "/other delete"]
    );
    done(&repository, &format!("destroy --tags dev {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /old/b", "destroy /other"]);
    done(&repository, &format!("destroy {APPROVED}"));
    assert_eq!(world(&repository), [""; 0]);
    assert_eq!(keys(&repository), [""; 0]);
}

#[test]
fn state_forget_ends_a_removal() {
    let repository = repository();
    done(&repository, "state forget /old/a");
    assert_eq!(planned(&repository, ""), ["/old/b delete", "/other delete"]);
    assert_eq!(world(&repository).len(), 4);
}

#[test]
fn removal_is_decided_per_namespace() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    let in_dev = |arguments: &str| {
        let output = repository.orch_with(arguments, |orch| {
            orch.env("ORCH_NAMESPACE", "dev");
        });
        assert_eq!(output.code(), 0, "{output}");
        output.to_string()
    };
    in_dev("state init");
    in_dev("apply --auto-approve --match b");
    remove(&repository, "a");
    let plan = in_dev("plan");
    assert!(plan.contains("Plan: nothing to do. 1 unchanged."), "{plan}");
    assert_eq!(planned(&repository, ""), ["/a delete"]);
    fails(&repository, "apply --auto-approve", 4, "1 destroy");
}
