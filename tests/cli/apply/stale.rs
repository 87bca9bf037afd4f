//! Plans in files that do not hold any more: each says what has changed, and nothing of it runs.

use super::{
    STATE, acts, applied, change_document, declare, done, entry, fails, log, project, want,
    with_state, world,
};
use crate::support::Repository;

/// A project with two stacks to update, of which `/b` runs after `/a`, and a plan of that.
fn planned() -> Repository {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]"), ("/c", "")]);
    repository.write("/a/want", "2");
    want(&repository, "/b", "2");
    done(&repository, "plan -o ../saved");
    log(&repository);
    repository
}

/// Asserts that the plan is refused with these reasons, and that nothing of it runs.
#[track_caller]
fn refused(repository: &Repository, reasons: &[&str]) {
    log(repository);
    let said = fails(repository, "apply ../saved", 4, "nothing was run");
    let told = said
        .lines()
        .filter(|line| line.starts_with("  /") || line.starts_with("  the"));
    let told: Vec<&str> = told.map(str::trim).collect();
    assert_eq!(told, reasons, "{said}");
    assert!(said.contains("help: make a new plan"), "{said}");
    assert_eq!(log(repository), [""; 0]);
}

#[test]
fn apply_refuses_a_plan_if_a_file_differs() {
    let repository = planned();
    want(&repository, "/a", "3");
    refused(&repository, &["/a: a/want differs"]);
    repository.write("/b/more", "");
    repository.commit();
    refused(&repository, &["/a: a/want differs", "/b: b/more differs"]);
    // What is as it was again has not changed.
    repository.git("rm -q b/more");
    want(&repository, "/a", "2");
    done(&repository, "apply ../saved");
    assert_eq!(acts(&repository), ["apply update a", "apply update b"]);
}

#[test]
fn apply_refuses_a_plan_of_a_missing_commit() {
    let repository = planned();
    want(&repository, "/a", "3");
    // The commit of the plan was never pushed.
    let commit = repository.git("rev-parse HEAD~1");
    repository.git("checkout -q --orphan other");
    repository.commit();
    repository.git("branch -q -D main");
    repository.git("reflog expire --expire=now --all");
    repository.git("prune --expire=now");
    let (is_there, _) = repository.try_git("/", &format!("cat-file -e {}", commit.trim()));
    assert!(!is_there);
    refused(&repository, &["/a: a file of its own differs"]);
}

#[test]
fn apply_accepts_differences_outside_the_plan() {
    let repository = planned();
    want(&repository, "/c", "9");
    repository.write("/elsewhere/file", "");
    repository.commit();
    done(&repository, "apply ../saved");
    assert_eq!(acts(&repository), ["apply update a", "apply update b"]);
}

#[test]
fn apply_refuses_a_plan_if_the_driver_differs() {
    let repository = planned();
    let drivers = repository.read("/drivers.orch.hcl");
    let other = drivers.replace("driver = \"fake\"", "driver = \"mute\"");
    repository.write("/drivers.orch.hcl", other);
    repository.commit();
    refused(
        &repository,
        &["/a: it has another driver", "/b: it has another driver"],
    );
}

#[test]
fn apply_refuses_a_plan_if_the_order_differs() {
    let repository = planned();
    declare(&repository, "/c", "before = [\"/a\"]");
    repository.commit();
    refused(&repository, &["/a: it runs after other stacks"]);
}

#[test]
fn apply_refuses_a_plan_with_a_missing_stack() {
    let repository = planned();
    repository.git("rm -q -r a");
    declare(&repository, "/b", "");
    repository.commit();
    refused(
        &repository,
        &["/a: it no longer exists", "/b: it runs after other stacks"],
    );
}

#[test]
fn apply_refuses_a_plan_of_stacks_applied_since() {
    let repository = planned();
    want(&repository, "/a", "3");
    done(&repository, "apply --auto-approve --match a");
    want(&repository, "/a", "2");
    refused(
        &repository,
        &[
            "/a: its record has changed",
            "/b: it runs after /a, whose record has changed",
        ],
    );
}

#[test]
fn apply_refuses_a_plan_if_a_dependency_was_applied_since() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    want(&repository, "/b", "2");
    done(&repository, "plan -o ../saved");
    want(&repository, "/a", "3");
    done(&repository, "apply --auto-approve --match a");
    refused(
        &repository,
        &["/b: it runs after /a, whose record has changed"],
    );
}

#[test]
fn apply_refuses_a_plan_if_a_dependency_was_forgotten() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    want(&repository, "/b", "2");
    done(&repository, "plan -o ../saved");
    done(&repository, "state forget a");
    refused(
        &repository,
        &["/b: a stack that it runs after is no longer recorded"],
    );
}

#[test]
fn apply_refuses_a_plan_of_stacks_tainted_since() {
    let repository = planned();
    done(&repository, "state taint a");
    let said = fails(
        &repository,
        "apply ../saved",
        4,
        "/a: its record has changed",
    );
    assert_eq!(acts(&repository), [""; 0], "{said}");
}

#[test]
fn apply_refuses_a_plan_of_stacks_created_since() {
    let repository = with_state(&[("/a", "")]);
    done(&repository, "plan -o ../saved");
    want(&repository, "/a", "2");
    done(&repository, "apply --auto-approve");
    want(&repository, "/a", "1");
    refused(&repository, &["/a: its record has changed"]);
}

#[test]
fn apply_refuses_a_plan_of_another_state() {
    let repository = planned();
    change_document(&repository, |document| {
        document["lineage"] = "00000000-0000-0000-0000-000000000000".into();
    });
    refused(&repository, &["the plan was made with another state"]);
}

#[test]
fn apply_refuses_a_plan_of_another_project() {
    let repository = planned();
    repository.write("/state.orch.hcl", STATE.replace("acme", "other"));
    std::fs::remove_dir_all(repository.path("/.orch/state")).unwrap();
    repository.commit();
    done(&repository, "state init");
    refused(
        &repository,
        &["the plan is of the project `acme/default`, and this is `other/default`"],
    );
}

#[test]
fn apply_refuses_a_plan_if_a_state_was_added_or_removed() {
    let repository = planned();
    repository.git("rm -q state.orch.hcl");
    repository.commit();
    refused(
        &repository,
        &["the plan was made with a state, and the project has none now"],
    );
    done(&repository, "plan -o ../saved");
    repository.write("/state.orch.hcl", STATE);
    repository.commit();
    refused(
        &repository,
        &["the plan was made without a state, and the project has one now"],
    );
}

#[test]
fn apply_without_state_compares_files_and_order() {
    let repository = project(&[("/a", ""), ("/b", "")]);
    done(&repository, "plan -o ../saved");
    want(&repository, "/a", "3");
    refused(&repository, &["/a: a/want differs"]);
    want(&repository, "/a", "1");
    declare(&repository, "/c", "before = [\"/b\"]");
    repository.commit();
    refused(&repository, &["/b: it runs after other stacks"]);
}

#[test]
fn apply_lists_the_first_reasons_of_a_stale_plan() {
    let paths: Vec<String> = (0..25).map(|number| format!("/s{number:02}")).collect();
    let stacks: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
    let repository = project(&stacks);
    done(&repository, "plan -o ../saved");
    for path in &paths {
        repository.write(&format!("{path}/want"), "2");
    }
    repository.commit();
    let said = fails(&repository, "apply ../saved", 4, "and 5 more");
    assert_eq!(said.matches("/want differs").count(), 20, "{said}");
}

#[test]
fn apply_accepts_stacks_that_others_applied_with_equal_inputs() {
    let repository = planned();
    done(&repository, "apply --auto-approve --match a");
    log(&repository);
    let said = done(&repository, "apply ../saved");
    assert_eq!(acts(&repository), ["apply update b"], "{said}");
    let said = done(&repository, "apply ../saved");
    assert!(said.contains("nothing to do"), "{said}");
}

#[test]
fn apply_has_nothing_to_do_after_others_applied_everything() {
    let repository = planned();
    done(&repository, "apply --auto-approve");
    let before = entry(&repository, "/a");
    log(&repository);
    let said = done(&repository, "apply ../saved");
    assert!(said.contains("nothing to do"), "{said}");
    assert_eq!(log(&repository), [""; 0]);
    assert_eq!(entry(&repository, "/a"), before);
}

#[test]
fn apply_accepts_stacks_that_others_destroyed() {
    let repository = planned();
    done(&repository, "plan --destroy --allow-destroy=3 -o ../saved");
    done(
        &repository,
        "destroy --auto-approve --allow-destroy=1 --match b",
    );
    log(&repository);
    done(&repository, "apply ../saved");
    assert_eq!(acts(&repository), ["destroy delete a", "destroy delete c"]);
}

#[test]
fn apply_does_not_destroy_stacks_forgotten_since() {
    for plan in [
        "plan --replace c --allow-destroy=1 -o ../saved",
        "plan --destroy --allow-destroy=3 -o ../saved",
    ] {
        let repository = applied(&[("/a", ""), ("/c", ""), ("/d", "")]);
        done(&repository, plan);
        done(&repository, "state forget c");
        refused(&repository, &["/c: its record has changed"]);
        assert!(world(&repository, "c").is_some(), "{plan}");
        // Somebody else destroys another one: that says nothing about this one.
        let other = "destroy --auto-approve --allow-destroy=1 --match d";
        done(&repository, other);
        log(&repository);
        let said = "/c: its record has changed";
        fails(&repository, "apply ../saved", 4, said);
        assert_eq!(log(&repository), [""; 0]);
    }
}

#[test]
fn apply_refuses_a_plan_if_a_dependency_was_tainted_since() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    want(&repository, "/b", "2");
    done(&repository, "plan -o ../saved");
    done(&repository, "state taint a");
    refused(
        &repository,
        &["/b: it runs after /a, whose record has changed"],
    );
}

#[test]
fn apply_refuses_a_plan_if_an_indirect_dependency_was_applied_since() {
    let repository = applied(&[
        ("/a", ""),
        ("/b", "after = [\"/a\"]"),
        ("/c", "after = [\"/b\"]"),
        ("/d", ""),
    ]);
    want(&repository, "/c", "2");
    done(&repository, "plan -o ../saved");
    want(&repository, "/d", "3");
    done(&repository, "apply --auto-approve --match d");
    done(&repository, "apply ../saved");
    assert_eq!(world(&repository, "c").as_deref(), Some("2"));
    want(&repository, "/c", "3");
    done(&repository, "plan -o ../saved");
    want(&repository, "/a", "3");
    done(&repository, "apply --auto-approve --match a");
    refused(
        &repository,
        &["/c: it runs after /a, whose record has changed"],
    );
}
