//! Before and after what removed stacks are destroyed.

use super::{
    APPROVED, acts, applied, applied_of, declare, done, entry, fails, forget_log, hook, keys,
    operations, planned, prepared, remove, unhook, want, world,
};
use crate::support::{Repository, Sandbox};

/// The block of a stack that runs after another.
fn after(path: &str) -> String {
    format!("after = [\"{path}\"]")
}

/// Changes what stacks want, and commits.
fn change(repository: &Repository, paths: &[&str]) {
    for path in paths {
        want(repository, path, "2");
    }
    repository.commit();
}

/// Carries the plan out, after it has shown the same operations: `~` for an apply, `-` for a destroy.
#[track_caller]
fn carried_out(repository: &Repository, expected: &[&str]) -> String {
    assert_eq!(operations(repository, ""), expected);
    forget_log(repository);
    let said = done(repository, &format!("apply {APPROVED}"));
    let acts = acts(repository).into_iter();
    let acts = acts.map(|act| act.replace("apply ", "~").replace("destroy ", "-"));
    assert_eq!(acts.collect::<Vec<_>>(), expected, "{said}");
    assert_eq!(planned(repository, ""), [""; 0]);
    said
}

/// `/a`, `/b` after it, `/c` after that, all removed.
fn chain() -> Repository {
    let repository = applied(&[
        ("/a", ""),
        ("/b", &after("/a")),
        ("/c", &after("/b")),
        ("/z", ""),
    ]);
    remove(&repository, "a b c");
    repository
}

#[test]
fn removal_destroys_dependents_first() {
    carried_out(&chain(), &["-/c", "-/b", "-/a"]);
    // In several commits, in the wrong order.
    let repository = applied(&[
        ("/a", ""),
        ("/b", &after("/a")),
        ("/c", &after("/b")),
        ("/z", ""),
    ]);
    for path in ["a", "b", "c"] {
        remove(&repository, path);
    }
    carried_out(&repository, &["-/c", "-/b", "-/a"]);
}

#[test]
fn removal_destroys_dependents_first_in_parallel() {
    let repository = chain();
    done(&repository, &format!("apply -j 4 {APPROVED}"));
    assert_eq!(
        acts(&repository),
        ["destroy /c", "destroy /b", "destroy /a"]
    );
}

#[test]
fn removal_destroys_the_users_of_data_first() {
    let uses = |sandbox: &Sandbox, path: &str, id: &str| {
        let text = format!(
            "input \"x\" {{\n  backend = \"b\"\n  from_stack_id = \"{id}\"\n  value = 1\n}}\n"
        );
        sandbox.write(&format!("{path}/inputs.tm"), text);
    };
    let sandbox = prepared(&[
        ("/a", ""),
        ("/b", "id = \"b\""),
        ("/c", "id = \"c\""),
        ("/d", ""),
        ("/z", ""),
    ]);
    uses(&sandbox, "/a", "b");
    uses(&sandbox, "/d", "c");
    sandbox.write(
        "/sharing.tm",
        "sharing_backend \"b\" {\n  type = terraform\n  filename = \"f\"\n  command = [\"echo\", \"{}\"]\n}\n",
    );
    let repository = applied_of(sandbox);
    remove(&repository, "a b c d");
    carried_out(&repository, &["-/a", "-/b", "-/d", "-/c"]);
}

#[test]
fn removal_order_uses_declarations_of_removed_stacks() {
    let repository = applied(&[("/a", "before = [\"/b\"]"), ("/b", ""), ("/z", "")]);
    remove(&repository, "a b");
    carried_out(&repository, &["-/b", "-/a"]);
    // A survivor that is as it was moves away by staying as it is.
    let repository = applied(&[("/a", "before = [\"/b\"]"), ("/b", ""), ("/z", "")]);
    remove(&repository, "a");
    carried_out(&repository, &["-/a"]);
}

#[test]
fn removal_runs_after_the_update_of_kept_dependents() {
    let repository = applied(&[("/app", &after("/db")), ("/db", "")]);
    remove(&repository, "db");
    declare(&repository, "/app", "");
    change(&repository, &["/app"]);
    carried_out(&repository, &["~/app", "-/db"]);
    // The other names.
    let repository = applied(&[("/z-app", &after("/a-db")), ("/a-db", "")]);
    remove(&repository, "a-db");
    declare(&repository, "/z-app", "");
    change(&repository, &["/z-app"]);
    carried_out(&repository, &["~/z-app", "-/a-db"]);
}

#[test]
fn removal_is_skipped_if_a_kept_dependent_fails() {
    let repository = applied(&[("/app", &after("/db")), ("/db", "")]);
    remove(&repository, "db");
    declare(&repository, "/app", "");
    change(&repository, &["/app"]);
    hook(&repository, "apply", "app", "exit 1");
    fails(&repository, &format!("apply {APPROVED}"), 1, "/db");
    assert_eq!(acts(&repository), ["apply /app"]);
    assert_eq!(world(&repository), ["app", "db"]);
    unhook(&repository, "apply", "app");
    carried_out(&repository, &["~/app", "-/db"]);
}

#[test]
fn removal_runs_before_changes_of_dependencies() {
    let repository = applied(&[("/a", ""), ("/b", &after("/a"))]);
    remove(&repository, "b");
    change(&repository, &["/a"]);
    carried_out(&repository, &["-/b", "~/a"]);
}

#[test]
fn removal_that_fails_does_not_block_changes_of_dependencies() {
    let repository = applied(&[("/a", ""), ("/b", &after("/a"))]);
    remove(&repository, "b");
    change(&repository, &["/a"]);
    hook(&repository, "destroy", "b", "exit 1");
    fails(&repository, &format!("apply {APPROVED}"), 1, "/b");
    assert_eq!(acts(&repository), ["destroy /b", "apply /a"]);
    assert_eq!(entry(&repository, "/b")["last"]["outcome"], "failed");
    assert_eq!(entry(&repository, "/a")["last"]["outcome"], "succeeded");
}

#[test]
fn removal_runs_after_changes_of_kept_dependents() {
    let repository = applied(&[("/a", ""), ("/b", &after("/a"))]);
    remove(&repository, "a");
    declare(&repository, "/b", "");
    change(&repository, &["/b"]);
    carried_out(&repository, &["~/b", "-/a"]);
}

/// `/y` ran after `/x`, which ran after `/d`. `/x` is removed, and `/y` runs after `/d` now; both are to be
/// updated.
fn by_passed() -> Repository {
    let repository = applied(&[("/d", ""), ("/x", &after("/d")), ("/y", &after("/x"))]);
    remove(&repository, "x");
    declare(&repository, "/y", &after("/d"));
    change(&repository, &["/d", "/y"]);
    repository
}

#[test]
fn removal_order_reports_violated_constraints() {
    let repository = by_passed();
    let plan = done(&repository, "plan");
    let told = "/d is changed while /x still refers to it, which is then destroyed.\n";
    assert!(plan.contains(told), "{plan}");
    let json = repository.orch("plan --format json").json();
    let relaxed = serde_json::json!([{"effect": "changed-first", "earlier": "/d", "later": "/x"}]);
    assert_eq!(json["relaxed"], relaxed);
    let said = carried_out(&repository, &["~/d", "~/y", "-/x"]);
    assert!(said.contains(told), "{said}");
}

#[test]
fn removal_order_reports_constraints_violated_by_a_replace() {
    let repository = by_passed();
    assert_eq!(
        operations(&repository, "--replace d"),
        ["-/x", "-/d", "~/d", "~/y"]
    );
    let plan = done(&repository, "plan --replace d");
    assert!(
        plan.contains("/x is destroyed while /y still refers to it.\n"),
        "{plan}"
    );
    forget_log(&repository);
    let said = done(&repository, &format!("apply --replace d {APPROVED}"));
    assert_eq!(
        acts(&repository),
        ["destroy /x", "destroy /d", "apply /d", "apply /y"]
    );
    assert!(
        said.contains("/x is destroyed while /y still refers to it.\n"),
        "{said}"
    );
}

#[test]
fn removal_order_handles_one_side_of_a_diamond() {
    let repository = applied(&[
        ("/s1", ""),
        ("/s2a", &after("/s1")),
        ("/s2b", &after("/s1")),
        ("/s3", "after = [\"/s2a\", \"/s2b\"]"),
    ]);
    remove(&repository, "s2a");
    declare(&repository, "/s3", &after("/s2b"));
    change(&repository, &["/s1", "/s2b", "/s3"]);
    carried_out(&repository, &["~/s1", "~/s2b", "~/s3", "-/s2a"]);
}

#[test]
fn removal_order_uses_recorded_tags() {
    let repository = applied(&[
        ("/base", "tags = [\"net\"]"),
        ("/a", "after = [\"tag:net\"]"),
        ("/dir/x", ""),
        ("/user", "after = [\"/dir\"]"),
        ("/z", ""),
    ]);
    remove(&repository, "base a dir user");
    let order = operations(&repository, "");
    let position = |what: &str| order.iter().position(|it| it == what).unwrap();
    assert!(position("-/a") < position("-/base"), "{order:?}");
    assert!(position("-/user") < position("-/dir/x"), "{order:?}");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(keys(&repository), ["/z"]);
}

#[test]
fn removal_destroys_nested_stacks_before_their_parents() {
    let repository = applied(&[("/a", ""), ("/a/b", ""), ("/a/b/c", ""), ("/z", "")]);
    remove(&repository, "a");
    carried_out(&repository, &["-/a/b/c", "-/a/b", "-/a"]);
}

#[test]
fn removal_order_reports_recorded_cycles() {
    let repository = applied(&[("/a", ""), ("/b", &after("/a")), ("/z", "")]);
    // Newer: now it is the other way round, and only `/a` is applied again.
    declare(&repository, "/b", "");
    declare(&repository, "/a", &after("/b"));
    want(&repository, "/a", "2");
    repository.commit();
    done(&repository, "apply --auto-approve --match a");
    super::change_entry(&repository, "/b", |entry| {
        entry["after"] = serde_json::json!(["/a"]);
    });
    remove(&repository, "a b");
    let plan = done(&repository, "plan");
    let told = "Left out: /b ran after /a by record, which newer constraints contradict.\n";
    assert!(plan.contains(told), "{plan}");
    carried_out(&repository, &["-/a", "-/b"]);
}
