//! Stacks with several instances: a key that was removed, and the whole directory.

use std::fs;

use super::{
    APPROVED, DRIVERS, acts, applied, assert_tidy, declare, details, done, fails, forget_log, head,
    keys, planned, remove, world,
};
use crate::support::Repository;

/// `/net` with two instances.
fn networks() -> Repository {
    applied(&[("/net", "for_each = [\"dev\", \"prod\"]"), ("/b", "")])
}

/// Takes the key `dev` away.
fn without_dev(repository: &Repository) {
    declare(repository, "/net", "for_each = [\"prod\"]");
    repository.commit();
}

#[test]
fn removal_destroys_an_instance_whose_key_is_removed() {
    let repository = networks();
    let seen = head(&repository);
    without_dev(&repository);
    // Its driver and its tool are those of the commit, too.
    repository.write(
        "/drivers.orch.hcl",
        DRIVERS.replace("as applied", "at HEAD"),
    );
    repository.commit();
    let plan = done(&repository, "plan");
    let line = "  - /net[\"dev\"]  delete  its key was removed  +0 ~0 -1\n";
    assert!(plan.contains(line), "{plan}");
    forget_log(&repository);
    done(&repository, &format!("apply {APPROVED}"));
    let details = details(&repository);
    let destroyed: Vec<&String> = details
        .iter()
        .filter(|it| it.starts_with("destroy"))
        .collect();
    assert_eq!(destroyed.len(), 1, "{details:?}");
    assert!(
        destroyed[0].starts_with("destroy /net[\"dev\"] action=delete "),
        "{destroyed:?}"
    );
    assert!(
        destroyed[0].contains(&format!("{seen}/net want=1 greeting=as applied")),
        "{destroyed:?}"
    );
    assert_eq!(world(&repository), ["b", "net__prod__"]);
    assert_eq!(keys(&repository), ["/b", "/net[\"prod\"]"]);
    assert_tidy(&repository);
    assert!(
        planned(&repository, "")
            .iter()
            .all(|it| !it.contains("dev"))
    );
}

#[test]
fn removal_destroys_instances_of_a_removed_directory() {
    let repository = networks();
    let commit = remove(&repository, "net");
    let plan = done(&repository, "plan");
    for key in ["dev", "prod"] {
        let start = format!("  - /net[\"{key}\"]");
        let line = plan.lines().find(|line| line.starts_with(&start)).unwrap();
        assert!(
            line.contains(&format!("  delete  removed in {commit}  +0 ~0 -1")),
            "{plan}"
        );
    }
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(
        acts(&repository),
        ["destroy /net[\"dev\"]", "destroy /net[\"prod\"]"]
    );
    assert_eq!(world(&repository), ["b"]);
    assert_eq!(keys(&repository), ["/b"]);
}

#[test]
fn removal_ignores_uncommitted_removals_of_keys() {
    let repository = networks();
    declare(&repository, "/net", "for_each = [\"prod\"]");
    let plan = planned(&repository, "");
    let dev = plan
        .iter()
        .find(|it| it.starts_with("/net[\"dev\"]"))
        .unwrap();
    assert!(dev.starts_with("/net[\"dev\"] blocked: "), "{plan:?}");
    done(
        &repository,
        &format!("apply {APPROVED} --disable-safeguards=all"),
    );
    assert!(
        acts(&repository)
            .iter()
            .all(|it| !it.starts_with("destroy"))
    );
    assert_eq!(world(&repository), ["b", "net__dev__", "net__prod__"]);
}

#[test]
fn removal_destroys_instances_that_become_one_stack() {
    let repository = networks();
    declare(&repository, "/net", "");
    repository.commit();
    let plan = planned(&repository, "");
    assert_eq!(plan[0], "/net create", "{plan:?}");
    // Whatever is said of the instances: without a key there is no evidence that one was removed.
    done(&repository, &format!("apply {APPROVED}"));
    let destroyed = acts(&repository)
        .into_iter()
        .filter(|it| it.starts_with("destroy"))
        .count();
    let blocked = plan.iter().filter(|it| it.contains(" blocked: ")).count();
    assert_eq!(destroyed + blocked, 2, "{plan:?}");
}

#[test]
fn removal_is_reverted_by_restoring_the_key() {
    let repository = networks();
    without_dev(&repository);
    done(&repository, "plan -o ../saved --allow-destroy=9");
    declare(&repository, "/net", "for_each = [\"dev\", \"prod\"]");
    repository.commit();
    forget_log(&repository);
    fails(
        &repository,
        "apply ../saved",
        4,
        "/net[\"dev\"]: it is in the project again",
    );
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(world(&repository).len(), 3);
}

#[test]
fn removal_filters_match_instances() {
    let repository = networks();
    remove(&repository, "net");
    let named = repository.outside().join("stacks");
    fs::write(&named, "/net[\"dev\"]\n").unwrap();
    let dev = ["/net[\"dev\"] delete"];
    assert_eq!(planned(&repository, "--match 'net[\"dev\"]'"), dev);
    assert_eq!(planned(&repository, "--exclude 'net[\"prod\"]'"), dev);
    assert_eq!(planned(&repository, "--stacks-from ../stacks"), dev);
    assert_eq!(planned(&repository, "--match net").len(), 2);
}
