//! Drift: what `--refresh-only` finds, and what it means to accept that.

use serde_json::Value;

use super::tool::{applied, by_hand, project, recorded, world};
use super::{STATE, done, fails, hook, log, prepared};
use crate::support::Repository;

fn status(repository: &Repository, arguments: &str) -> i32 {
    repository.orch(arguments).code()
}

#[test]
fn apply_accepts_drift_from_a_file_and_records_it() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    let before = recorded(&repository, "/a");
    by_hand(&repository, "a", Some("by hand\n"));
    let plan = "plan --refresh-only --detailed-exitcode";
    assert_eq!(status(&repository, &format!("{plan} -o ../saved")), 2);
    let shown = done(&repository, "show ../saved");
    assert!(
        shown.contains("/a  no-op  has drifted  +0 ~1 -0"),
        "{shown}"
    );
    log(&repository);
    done(&repository, "apply ../saved");
    let applies: Vec<String> = log(&repository);
    let applies = applies.iter().filter(|line| line.contains(": apply "));
    assert_eq!(applies.count(), 1);
    // What exists is as it was left by hand, and the tool knows it.
    for what in ["real", "known"] {
        assert_eq!(world(&repository, "a", what).unwrap(), "by hand\n");
    }
    let after = recorded(&repository, "/a");
    assert_eq!(after["applied"], before["applied"]);
    assert_eq!(after["last"], before["last"]);
    assert_ne!(after["outputs"], before["outputs"]);
    assert_ne!(after["refreshed"]["run"], Value::Null, "{after}");
    let history = done(&repository, "state history");
    assert!(history.contains("  refresh  "), "{history}");
    assert!(done(&repository, "state show /a").contains("drift accepted at"));
    // It is accepted once, and what exists still differs from what the configuration says.
    assert_eq!(status(&repository, plan), 0);
    assert!(done(&repository, "apply ../saved").contains("nothing to do"));
    let plan = done(&repository, "plan");
    assert!(plan.contains("~ /a  update  drift"), "{plan}");
    done(&repository, "apply --auto-approve");
    assert_eq!(world(&repository, "a", "real").unwrap(), "# 1\n");
    assert_eq!(recorded(&repository, "/a")["refreshed"], Value::Null);
    assert_eq!(status(&repository, "plan --detailed-exitcode"), 0);
}

#[test]
fn apply_refresh_only_applies_no_configuration() {
    let repository = applied(&[("/a", "")]);
    let before = recorded(&repository, "/a");
    repository.write("/a/main.tf", "# 2\n");
    repository.commit();
    by_hand(&repository, "a", Some("by hand\n"));
    let refused = fails(&repository, "apply --refresh-only", 4, "no terminal");
    assert!(refused.contains("/a  no-op  has drifted"), "{refused}");
    done(&repository, "apply --refresh-only --auto-approve");
    assert_eq!(world(&repository, "a", "known").unwrap(), "by hand\n");
    assert_eq!(recorded(&repository, "/a")["applied"], before["applied"]);
    assert_eq!(done(&repository, "list --status pending"), "a\n");
    let plan = done(&repository, "plan");
    assert!(plan.contains("~ /a  update  a/main.tf differs"), "{plan}");
}

#[test]
fn apply_accepts_that_a_resource_was_deleted_by_hand_and_destroys_nothing() {
    let repository = applied(&[("/a", "")]);
    by_hand(&repository, "a", None);
    let shown = done(&repository, "plan --refresh-only");
    assert!(shown.contains("- x.y"), "{shown}");
    assert!(shown.contains("Resources: 1 destroyed."), "{shown}");
    done(&repository, "apply --refresh-only --auto-approve");
    assert_eq!(world(&repository, "a", "known"), None);
    let plan = done(&repository, "plan");
    assert!(
        plan.contains("recorded, but its Terraform state is empty"),
        "{plan}"
    );
}

#[test]
fn apply_refuses_a_refresh_of_what_was_applied_since() {
    let repository = applied(&[("/a", "")]);
    by_hand(&repository, "a", Some("by hand\n"));
    done(&repository, "plan --refresh-only -o ../saved");
    done(&repository, "apply --full --auto-approve");
    let said = "/a: its record has changed";
    fails(&repository, "apply ../saved", 4, said);
    assert_eq!(recorded(&repository, "/a")["refreshed"], Value::Null);
    // And the other way round.
    by_hand(&repository, "a", Some("again\n"));
    done(&repository, "plan --full -o ../saved");
    done(&repository, "apply --refresh-only --auto-approve");
    fails(&repository, "apply ../saved", 4, said);
}

#[test]
fn refresh_that_fails_is_not_recorded_and_resumes() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    for stack in ["a", "b"] {
        by_hand(&repository, stack, Some("by hand\n"));
    }
    done(&repository, "plan --refresh-only -o ../saved");
    hook(&repository, "apply", "b", "kill -KILL $$");
    fails(
        &repository,
        "apply ../saved",
        1,
        "/b: failed: ended by SIGKILL",
    );
    let failed = recorded(&repository, "/b");
    assert_eq!(failed["refreshed"], Value::Null);
    assert_eq!(failed["last"]["outcome"], "succeeded");
    assert_eq!(failed["intent"], Value::Null);
    super::unhook(&repository, "apply", "b");
    done(&repository, "apply ../saved --resume");
    assert_eq!(world(&repository, "b", "known").unwrap(), "by hand\n");
    assert_ne!(recorded(&repository, "/b")["refreshed"], Value::Null);
}

#[test]
fn plan_names_drift_where_no_input_differs() {
    let repository = applied(&[("/a", "")]);
    by_hand(&repository, "a", Some("by hand\n"));
    let plan = done(&repository, "plan --full");
    assert!(plan.contains("~ /a  update  drift  +0 ~1 -0"), "{plan}");
    repository.write("/a/main.tf", "# 2\n");
    repository.commit();
    let plan = done(&repository, "plan --full");
    assert!(plan.contains("~ /a  update  a/main.tf differs"), "{plan}");
}

#[test]
fn refresh_finds_no_drift_in_stacks_that_were_never_applied() {
    let repository = project(&[("/a", "")]);
    let outputs = r#"{"format_version":"1.2","output_changes":{"id":{"actions":["create"],"before":null,"after":1}}}"#;
    hook(&repository, "show", "a", &format!("echo '{outputs}'; exit"));
    let plan = done(&repository, "plan --refresh-only");
    assert_eq!(plan, "Plan: no drift. 1 unchanged.\n");
    let said = done(&repository, "apply --refresh-only --auto-approve");
    assert!(said.contains("nothing to do"), "{said}");
    assert_eq!(recorded(&repository, "/a"), Value::Null);
}

#[test]
fn apply_refuses_drift_that_a_driver_cannot_accept() {
    let sandbox = prepared(&[("/a", "")]);
    sandbox.write("/state.orch.hcl", STATE);
    let drivers = sandbox.read("/drivers.orch.hcl");
    let read = "  read        = [\"sh\", \"-c\", \"exit 2\"]\n  may_replace";
    sandbox.write("/drivers.orch.hcl", drivers.replace("  may_replace", read));
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    done(&repository, "apply --auto-approve");
    done(&repository, "plan --refresh-only -o ../saved");
    log(&repository);
    for apply in ["apply ../saved", "apply --refresh-only --auto-approve"] {
        let said = "drift cannot be accepted in /a: the driver `fake` has no command for it";
        fails(&repository, apply, 4, said);
    }
    assert_eq!(super::acts(&repository), [""; 0]);
}
