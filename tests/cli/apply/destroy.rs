//! What is destroyed: who approves it, in which order, and what may not stay.

use std::fs;

use serde_json::Value;

use super::{acts, applied, done, entry, fails, hook, log, project, unhook, world};

const CHAIN: [(&str, &str); 3] = [
    ("/a", "after = [\"/b\"]"),
    ("/b", "after = [\"/c\"]"),
    ("/c", ""),
];

/// What could not be destroyed may still need its dependencies.
#[test]
fn destroy_keeps_dependencies_of_a_failed_destroy_with_on_error_continue() {
    let repository = applied(&CHAIN);
    hook(&repository, "destroy", "a", "exit 1\n");
    let destroy = "destroy --auto-approve --allow-destroy=3 --on-error continue";
    fails(&repository, destroy, 1, "/a");
    assert_eq!(acts(&repository), ["destroy delete a"]);
}

#[test]
fn destroy_is_approved_by_number() {
    let repository = applied(&CHAIN);
    let refused = |arguments: &str, said: &str| {
        fails(&repository, arguments, 4, said);
        assert_eq!(acts(&repository), [""; 0]);
    };
    refused("destroy", "this plan has 3 destroys");
    refused("destroy --auto-approve", "add `--allow-destroy=3`");
    refused("destroy --auto-approve --allow-destroy=2", "allows 2");
    refused("apply --destroy --auto-approve", "3 destroys");
    refused("destroy --allow-destroy=3", "--auto-approve");
    done(&repository, "destroy --auto-approve --allow-destroy=3");
    assert_eq!(
        acts(&repository),
        ["destroy delete a", "destroy delete b", "destroy delete c"]
    );
    assert_eq!(entry(&repository, "/a"), Value::Null);
    let again = done(&repository, "destroy");
    assert!(again.contains("nothing to do"), "{again}");
}

#[test]
fn destroy_accepts_a_larger_allowance() {
    let repository = project(&CHAIN);
    done(&repository, "apply --auto-approve");
    log(&repository);
    done(&repository, "destroy --auto-approve --allow-destroy=9");
    assert_eq!(acts(&repository).len(), 3);
    assert_eq!(world(&repository, "c"), None);
}

#[test]
fn destroy_budget_counts_replaces() {
    let repository = applied(&CHAIN);
    let replace = "apply --auto-approve --replace b";
    fails(&repository, replace, 4, "this plan has 1 destroy");
    assert_eq!(acts(&repository), [""; 0]);
    done(&repository, &format!("{replace} --allow-destroy=1"));
    assert_eq!(acts(&repository), ["destroy delete b", "apply create b"]);
    assert_eq!(world(&repository, "b").as_deref(), Some("1"));
    assert_eq!(entry(&repository, "/b")["last"]["outcome"], "succeeded");
}

#[test]
fn destroy_does_not_recreate_tainted_stacks() {
    let repository = applied(&CHAIN);
    done(&repository, "state taint a");
    done(
        &repository,
        "destroy --match a --auto-approve --allow-destroy=1",
    );
    assert_eq!(acts(&repository), ["destroy delete a"]);
    assert_eq!(world(&repository, "a"), None);
    assert_eq!(entry(&repository, "/a"), Value::Null);
    // Nor is it made if nothing of it exists.
    done(&repository, "state taint b");
    fs::remove_file(repository.outside().join("world/b")).unwrap();
    done(&repository, "destroy --match b --auto-approve");
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(entry(&repository, "/b"), Value::Null);
}

#[test]
fn apply_uses_the_destroy_allowance_of_the_file() {
    let repository = applied(&CHAIN);
    done(&repository, "plan --destroy -o saved");
    fails(&repository, "apply saved", 4, "--allow-destroy=3");
    fails(
        &repository,
        "apply saved --auto-approve",
        4,
        "--allow-destroy=3",
    );
    done(&repository, "plan --destroy -o saved --allow-destroy=2");
    fails(&repository, "apply saved", 4, "--allow-destroy=3");
    fails(
        &repository,
        "apply saved --allow-destroy=1",
        4,
        "--allow-destroy=3",
    );
    assert_eq!(acts(&repository), [""; 0]);
    done(&repository, "apply saved --allow-destroy=3");
    assert_eq!(acts(&repository).len(), 3);
    done(&repository, "apply --auto-approve");
    log(&repository);
    done(&repository, "plan --destroy -o saved --allow-destroy=3");
    done(&repository, "apply saved");
    assert_eq!(acts(&repository).len(), 3);
}

#[test]
fn destroy_refuses_while_a_kept_stack_depends_on_it() {
    let repository = applied(&CHAIN);
    let destroy = "--auto-approve --allow-destroy=2";
    fails(
        &repository,
        &format!("destroy {destroy} --match c"),
        4,
        "/b",
    );
    fails(
        &repository,
        &format!("apply --destroy {destroy} --match b --match c"),
        4,
        "/a",
    );
    done(
        &repository,
        "plan --destroy --allow-destroy=1 --match c -o saved",
    );
    fails(&repository, "apply saved", 4, "/b");
    assert_eq!(acts(&repository), [""; 0]);
    done(
        &repository,
        &format!("destroy {destroy} --match a --match b"),
    );
    assert_eq!(acts(&repository), ["destroy delete a", "destroy delete b"]);
    assert_eq!(entry(&repository, "/b"), Value::Null);
    done(&repository, &format!("destroy {destroy} --match c"));
}

#[test]
fn destroy_keeps_dependencies_of_a_failed_destroy() {
    let repository = applied(&CHAIN);
    hook(&repository, "destroy", "b", "exit 1");
    let destroy = "destroy --auto-approve --allow-destroy=3";
    let again = "note: run the same command again to continue";
    fails(&repository, destroy, 1, again);
    assert_eq!(acts(&repository), ["destroy delete a", "destroy delete b"]);
    assert_eq!(entry(&repository, "/a"), Value::Null);
    let failed = entry(&repository, "/b");
    assert_eq!(failed["last"]["action"], "destroy");
    assert_eq!(failed["last"]["outcome"], "failed");
    unhook(&repository, "destroy", "b");
    done(&repository, destroy);
    assert_eq!(acts(&repository), ["destroy delete b", "destroy delete c"]);
}

#[test]
fn replace_is_not_applied_if_its_second_half_fails() {
    let repository = applied(&CHAIN);
    hook(&repository, "apply", "b", "exit 1");
    let replace = "apply --auto-approve --replace b --allow-destroy=1";
    fails(&repository, replace, 1, "/b");
    assert_eq!(acts(&repository), ["destroy delete b", "apply create b"]);
    let failed = entry(&repository, "/b");
    assert_eq!(failed["applied"], Value::Null, "{failed}");
    assert_eq!(failed["last"]["outcome"], "failed");
    assert_eq!(failed["outputs"]["id"], Value::Null, "{failed}");
    unhook(&repository, "apply", "b");
    let plan = done(&repository, "plan");
    assert!(plan.contains("/b"), "{plan}");
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository)[0].split(' ').next_back(), Some("b"));
    assert_eq!(world(&repository, "b").as_deref(), Some("1"));
    assert!(entry(&repository, "/b")["applied"].is_object());
}
