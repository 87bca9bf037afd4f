//! What keeps stacks from being destroyed that were removed.

use std::fs;

use super::{
    APPROVED, acts, applied, assert_tidy, change_entry, declare, done, entry, forget_log, head,
    keys, leaves_blocked, planned, remove, want, world,
};
use crate::support::Repository;

fn after(path: &str) -> String {
    format!("after = [\"{path}\"]")
}

/// `/app` runs after `/db`, which was removed.
fn used() -> Repository {
    let repository = applied(&[("/app", &after("/db")), ("/db", ""), ("/z", "")]);
    remove(&repository, "db");
    declare(&repository, "/app", "");
    want(&repository, "/app", "2");
    repository.commit();
    repository
}

#[test]
fn removal_is_blocked_by_dependents_outside_the_plan() {
    let repository = used();
    let blocked = "/db blocked: /app runs after it, and is kept";
    assert_eq!(planned(&repository, "--match db"), [blocked]);
    assert_eq!(planned(&repository, "--match db --match z"), [blocked]);
    assert_eq!(planned(&repository, ""), ["/app update", "/db delete"]);
    let output = repository.orch("plan --match db");
    assert!(
        output.stderr.contains("help: plan that stack as well"),
        "{output}"
    );
    assert_eq!(
        repository
            .orch("plan --match db --detailed-exitcode")
            .code(),
        4
    );
    leaves_blocked(&repository, &format!("apply --match db {APPROVED}"));
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(keys(&repository), ["/app", "/db", "/z"]);
    assert_tidy(&repository);
}

#[test]
fn removal_is_blocked_by_removed_dependents_out_of_scope() {
    let repository = applied(&[("/a", ""), ("/b", &after("/a")), ("/z", "")]);
    remove(&repository, "a b");
    let blocked = "/a blocked: /b runs after it, and is kept";
    assert_eq!(planned(&repository, "--match a"), [blocked]);
    assert_eq!(planned(&repository, "--match b"), ["/b delete"]);
    leaves_blocked(&repository, &format!("apply --match a {APPROVED}"));
    assert_eq!(acts(&repository), [""; 0]);
    done(&repository, &format!("apply --match b {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /b"]);
    done(&repository, &format!("apply --match a {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /a"]);
}

#[test]
fn removal_is_blocked_by_blocked_dependents() {
    let repository = applied(&[
        ("/a", ""),
        ("/b", &after("/a")),
        ("/c", &after("/b")),
        ("/z", ""),
    ]);
    remove(&repository, "a b");
    fs::remove_dir_all(repository.path("/c")).unwrap();
    assert_eq!(
        planned(&repository, ""),
        [
            "/a blocked: /b runs after it, and is kept",
            "/b blocked: /c runs after it, and is kept",
            "/c blocked: its deletion is not committed"
        ]
    );
    leaves_blocked(
        &repository,
        &format!("apply {APPROVED} --disable-safeguards=all"),
    );
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(world(&repository).len(), 4);
    repository.commit();
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(
        acts(&repository),
        ["destroy /c", "destroy /b", "destroy /a"]
    );
}

#[test]
fn removal_is_blocked_by_blocked_kept_stacks() {
    let repository = applied(&[("/app", &after("/db")), ("/db", ""), ("/z", "")]);
    // `/app` was applied from a commit that HEAD does not have.
    let seen = entry(&repository, "/db");
    repository.git("checkout -q -b later");
    want(&repository, "/app", "3");
    repository.commit();
    done(&repository, "apply --auto-approve");
    repository.git("checkout -q main");
    change_entry(&repository, "/db", |entry| *entry = seen);
    remove(&repository, "db");
    forget_log(&repository);
    let plan = planned(&repository, "");
    assert!(plan[0].starts_with("/app blocked: "), "{plan:?}");
    assert_eq!(plan[1], "/db blocked: /app runs after it, and is kept");
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn removal_is_not_blocked_by_read_only_stacks() {
    let repository = applied(&[
        ("/app", "mode = \"read\"\n  after = [\"/db\"]"),
        ("/none", "driver = \"none\"\n  after = [\"/db\"]"),
        ("/db", ""),
        ("/z", ""),
    ]);
    remove(&repository, "db");
    assert_eq!(planned(&repository, "--match db"), ["/db delete"]);
}

#[test]
fn removal_is_not_blocked_by_missing_stacks() {
    let repository = applied(&[("/a", ""), ("/b", &after("/a")), ("/z", "")]);
    remove(&repository, "a b");
    super::vanish(&repository, "b");
    assert_eq!(planned(&repository, ""), ["/a delete", "/b forget"]);
    // Nobody has asked about it, if it is out of scope.
    let blocked = "/a blocked: /b runs after it, and is kept";
    assert_eq!(planned(&repository, "--match a"), [blocked]);
}

#[test]
fn removal_is_blocked_by_a_shared_backend() {
    let placed = |name: &str| format!("driver = \"placed\"\n  name = \"{name}\"");
    let repository = applied(&[("/a", &placed("one")), ("/b", &placed("two")), ("/z", "")]);
    // A stack of the tree has it now.
    remove(&repository, "a");
    declare(&repository, "/b", &placed("one"));
    repository.commit();
    let plan = planned(&repository, "--match a");
    assert_eq!(plan.len(), 1, "{plan:?}");
    assert!(plan[0].starts_with("/a blocked: "), "{plan:?}");
    let plan = planned(&repository, "");
    assert!(
        plan.iter()
            .any(|it| it.starts_with("/a blocked: it has the same backend as /b")),
        "{plan:?}"
    );
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert!(!acts(&repository).contains(&"destroy /a".to_owned()));

    // Two that are gone.
    let repository = applied(&[("/a", &placed("one")), ("/b", &placed("two")), ("/z", "")]);
    change_entry(&repository, "/b", |entry| {
        entry["backend"] = "place one".into();
    });
    remove(&repository, "a b");
    assert_eq!(
        planned(&repository, ""),
        [
            "/a blocked: it has the same recorded backend as /b",
            "/b blocked: it has the same recorded backend as /a"
        ]
    );
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn removal_is_blocked_by_a_changed_backend() {
    let repository = applied(&[("/a", "driver = \"placed\"\n  name = \"one\""), ("/z", "")]);
    change_entry(&repository, "/a", |entry| {
        entry["backend"] = "place elsewhere".into();
    });
    remove(&repository, "a");
    assert_eq!(
        planned(&repository, ""),
        ["/a blocked: its backend differs from the recorded one"]
    );
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn removal_from_a_file_notices_new_dependents() {
    let repository = applied(&[("/a", ""), ("/b", &after("/a")), ("/z", "")]);
    remove(&repository, "a");
    declare(&repository, "/b", "");
    want(&repository, "/b", "2");
    repository.commit();
    done(&repository, "plan -o ../saved --allow-destroy=9");
    // Somebody else records a stack that runs after it.
    let head = head(&repository);
    let mut document: serde_json::Value =
        serde_json::from_str(&repository.read(super::DOCUMENT)).unwrap();
    let mut new = document["stacks"]["/z"].clone();
    new["after"] = serde_json::json!(["/a"]);
    new["applied"]["commit"] = head.clone().into();
    new["driver"] = "placed".into();
    document["stacks"]["/new"] = new;
    repository.write(super::DOCUMENT, document.to_string());
    forget_log(&repository);
    let said = super::fails(
        &repository,
        "apply ../saved",
        4,
        "/a: it must not be destroyed: /new runs after it",
    );
    assert!(said.contains("nothing was run"), "{said}");
    assert_eq!(acts(&repository), [""; 0]);
    assert_tidy(&repository);
}

#[test]
fn removal_counts_many_blocked_stacks() {
    let names: Vec<String> = (10..25).map(|number| format!("/s{number}")).collect();
    let stacks: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let repository = applied(&[&stacks[..], &[("/z", "")]].concat());
    for name in &names {
        fs::remove_dir_all(repository.path(name)).unwrap();
    }
    let plan = repository.orch("plan");
    assert_eq!(plan.code(), 0, "{plan}");
    assert_eq!(
        plan.stderr
            .matches("is recorded but not in the project")
            .count(),
        10,
        "{plan}"
    );
    assert!(
        plan.stderr
            .contains("warning: 5 more recorded stacks are kept for such reasons\n"),
        "{plan}"
    );
    assert_eq!(plan.stdout.matches("blocked: ").count(), 15, "{plan}");
}
