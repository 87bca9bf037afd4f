//! What is left where a part has been done: by an attempt that failed, by others, or by nobody.

use super::{
    acts, applied, declare, done, entry, fails, hook, log, unhook, want, with_state, world,
};
use crate::support::Repository;

/// What a driver's step does that fails once although it has done its work.
const DONE_AND_FAILED: &str = "[ -e $ORCH_ROOT/../once ] || { touch $ORCH_ROOT/../once; \
cat $ORCH_PLAN_FILE > $world/$name; exit 1; }";

#[test]
fn apply_keeps_the_record_if_outputs_cannot_be_read() {
    let repository = with_state(&[("/a", "")]);
    declare(&repository, "/a", "driver = \"fragile\"");
    repository.write(
        "/fragile.orch.hcl",
        "driver \"fragile\" {\n  apply = [\"sh\", \"-c\", \"rm printer; echo 1 > ../../world/a\"]\n  outputs = [\"./printer\"]\n}\n",
    );
    repository.write_program("/a/printer", "#!/bin/sh\n");
    repository.commit();
    let said = fails(
        &repository,
        "apply --auto-approve -X",
        1,
        "could not be started",
    );
    assert!(world(&repository, "a").is_some(), "{said}");
    let last = entry(&repository, "/a")["last"].clone();
    assert_eq!(last["outcome"], "failed", "{last}");
}

#[test]
fn apply_treats_outputs_as_changed_after_a_failed_attempt() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    repository.write(
        "/retry.orch.hcl",
        "orch {\n  config {\n    run {\n      retry {\n        attempts = 2\n        on_exit = [1]\n        backoff = \"0s\"\n      }\n    }\n  }\n}\n",
    );
    repository.write("/b/uses", "a");
    repository.commit();
    done(&repository, "apply --auto-approve");
    want(&repository, "/a", "2");
    done(&repository, "plan -o ../saved");
    hook(&repository, "apply", "a", DONE_AND_FAILED);
    log(&repository);
    done(&repository, "apply ../saved");
    assert_eq!(world(&repository, "b").as_deref(), Some("1:2"));
    assert_ne!(entry(&repository, "/a")["outputs"], serde_json::Value::Null);
}

#[test]
fn apply_treats_outputs_as_changed_by_others() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    repository.write("/b/uses", "a");
    repository.commit();
    done(&repository, "apply --auto-approve");
    want(&repository, "/a", "2");
    done(&repository, "plan -o ../saved");
    done(&repository, "apply --auto-approve --match a");
    log(&repository);
    done(&repository, "apply ../saved");
    assert_eq!(acts(&repository), ["apply update b"]);
    assert_eq!(world(&repository, "b").as_deref(), Some("1:2"));
}

#[test]
fn apply_keeps_recorded_outputs_of_stacks_planned_again() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    let before = entry(&repository, "/b")["outputs"].clone();
    assert!(before.is_object(), "{before}");
    want(&repository, "/a", "2");
    done(&repository, "apply --auto-approve");
    assert_eq!(entry(&repository, "/b")["outputs"], before);
}

#[test]
fn apply_refuses_a_driver_that_wants_to_replace() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    repository.write("/b/uses", "a");
    repository.commit();
    done(&repository, "apply --auto-approve");
    want(&repository, "/a", "2");
    hook(
        &repository,
        "plan",
        "b",
        "[ \"$(cat $world/a)\" = 1 ] || { echo '{\"action\":\"replace\"}' > $ORCH_ANSWER; exit 2; }",
    );
    let said = fails(&repository, "apply --auto-approve", 1, "asks to replace it");
    assert_eq!(world(&repository, "b").as_deref(), Some("1:1"), "{said}");
}

#[test]
fn apply_records_adopted_stacks_after_their_dependencies() {
    let repository = with_state(&[("/a", ""), ("/c", "driver = \"none\"\n  after = [\"/a\"]")]);
    hook(&repository, "apply", "a", "exit 1");
    fails(&repository, "apply --auto-approve", 1, "failed /a");
    assert_eq!(entry(&repository, "/c"), serde_json::Value::Null);
    unhook(&repository, "apply", "a");
    done(&repository, "apply --auto-approve");
    assert_eq!(entry(&repository, "/c")["last"]["outcome"], "succeeded");
}

#[test]
fn destroy_removes_only_missing_stacks_from_the_state() {
    let repository = applied(&[("/a", ""), ("/b", "driver = \"none\""), ("/c", "")]);
    declare(&repository, "/c", "mode = \"read\"");
    repository.commit();
    done(&repository, "apply --auto-approve");
    // A status alone says only that nothing differs.
    hook(&repository, "plan", "a", "exit 0");
    fails(&repository, "destroy --auto-approve", 4, "1 destroy");
    done(&repository, "destroy --auto-approve --allow-destroy=1");
    assert_eq!(world(&repository, "a"), None);
    for (stack, is_there) in [("/a", false), ("/b", true), ("/c", true)] {
        assert_eq!(!entry(&repository, stack).is_null(), is_there, "{stack}");
    }
}

#[test]
fn apply_records_tainted_stacks_without_tool() {
    let triggered = "lifecycle {\n    replace_triggered_by = [\"/value\"]\n  }";
    let repository = applied(&[
        ("/value", "driver = \"none\""),
        ("/app", triggered),
        ("/c", ""),
    ]);
    done(&repository, "state taint value");
    // There is nothing to destroy, so nothing blocks it; what is replaced with it is replaced.
    let plan = done(&repository, "plan");
    assert!(!plan.contains("blocked"), "{plan}");
    assert!(plan.contains("/app  replace"), "{plan}");
    assert!(!plan.contains("/value  "), "{plan}");
    done(&repository, "apply --auto-approve --allow-destroy=1");
    assert_eq!(
        acts(&repository),
        ["destroy delete app", "apply create app"]
    );
    let tainted = &entry(&repository, "/value")["tainted"];
    assert_eq!(*tainted, serde_json::Value::Null);
    let plan = done(&repository, "plan --detailed-exitcode");
    assert!(!plan.contains("/app"), "{plan}");
    // Whoever asks for it by name is told that it cannot be done.
    let plan = done(&repository, "plan --replace value");
    let why = "its driver `none` has no `destroy`";
    assert!(plan.contains(why), "{plan}");
}

/// Returns the stacks with a status.
fn with_status(repository: &Repository, status: &str) -> Vec<String> {
    let listed = done(repository, &format!("list --status {status}"));
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn list_shows_users_of_a_stack_that_was_applied_in_part() {
    let repository = applied(&[
        ("/a", ""),
        ("/b", "after = [\"/a\"]"),
        ("/c", "after = [\"/b\"]"),
    ]);
    repository.write("/b/uses", "a");
    repository.commit();
    done(&repository, "apply --auto-approve");
    want(&repository, "/a", "2");
    done(&repository, "apply --auto-approve --match a -- -target=x");
    assert_eq!(with_status(&repository, "pending"), ["a", "b"]);
    let plan = done(&repository, "plan");
    assert!(
        plan.contains("~ /b  update  outputs of /a differ"),
        "{plan}"
    );
    done(&repository, "apply --auto-approve");
    assert_eq!(with_status(&repository, "applied"), ["a", "b", "c"]);
}

/// Nothing is known of its outputs.
#[test]
fn list_shows_users_of_a_stack_that_was_adopted_unverified_or_forgotten() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    done(&repository, "state adopt --no-verify --match a");
    assert_eq!(with_status(&repository, "pending"), ["b"]);
    log(&repository);
    done(&repository, "plan");
    assert_eq!(log(&repository), ["plan update b"]);
    done(&repository, "apply --auto-approve --full");
    assert_eq!(with_status(&repository, "applied"), ["a", "b"]);
    done(&repository, "state forget a");
    assert_eq!(with_status(&repository, "pending"), ["a", "b"]);
}

#[test]
fn apply_does_not_record_a_success_if_it_is_partial() {
    let repository = applied(&[("/a", "")]);
    let target = "--auto-approve --allow-destroy=1 -- -target=x";
    done(&repository, &format!("apply --replace /a {target}"));
    assert_eq!(acts(&repository), ["destroy delete a", "apply create a"]);
    assert_eq!(entry(&repository, "/a")["last"]["outcome"], "unknown");
    assert_eq!(with_status(&repository, "pending"), ["a"]);
    done(&repository, "plan");
    assert_eq!(log(&repository), ["plan update a"]);
    done(&repository, "apply --auto-approve");
    assert_eq!(with_status(&repository, "applied"), ["a"]);
    // An attempt that failed may have done something that is not the part's.
    want(&repository, "/a", "2");
    hook(&repository, "apply", "a", DONE_AND_FAILED);
    fails(&repository, "apply --auto-approve", 1, "failed /a");
    unhook(&repository, "apply", "a");
    want(&repository, "/a", "1");
    done(&repository, &format!("apply {target}"));
    assert_eq!(with_status(&repository, "pending"), ["a"]);
}

#[test]
fn destroy_keeps_the_record_if_it_is_partial() {
    let repository = applied(&[("/a", "")]);
    done(
        &repository,
        "destroy --auto-approve --allow-destroy=1 -- -target=x",
    );
    assert_eq!(acts(&repository), ["destroy delete a"]);
    assert!(entry(&repository, "/a")["applied"].is_object());
}
