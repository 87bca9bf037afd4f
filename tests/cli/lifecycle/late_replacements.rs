//! Replacements that only an apply finds out about, allowed beforehand.

use serde_json::Value;

use crate::removals::{
    APPROVED, acts, applied, done, entry, fails, forget_log, hook, planned, unhook, want, world,
};
use crate::support::Repository;

/// A stack, one that an output of it replaces, and one that the second replaces.
fn chain(rules: &str) -> Repository {
    chain_with("", rules)
}

/// The same, where the second stack has further attributes.
fn chain_with(attributes: &str, rules: &str) -> Repository {
    let by = |trigger: &str, rules: &str| {
        format!("lifecycle {{\n    replace_triggered_by = [\"{trigger}\"]\n    {rules}\n  }}")
    };
    applied(&[
        ("/net", ""),
        ("/app", &format!("{attributes}\n  {}", by("/net#id", rules))),
        ("/web", &by("/app", "")),
    ])
}

fn change(repository: &Repository, path: &str, wanted: &str) {
    want(repository, path, wanted);
    repository.commit();
    forget_log(repository);
}

/// Leaves the output of `/net` as it is from now on.
fn fix_output(repository: &Repository) {
    let script = "echo '{\"id\":\"1\"}'; exit 0\n";
    hook(repository, "outputs", "net", script);
}

#[test]
fn late_replacements_run_if_allowed() {
    let repository = chain("");
    change(&repository, "/net", "2");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(
        acts(&repository),
        [
            "apply /net",
            "destroy /app",
            "apply /app",
            "destroy /web",
            "apply /web"
        ]
    );
    assert_eq!(world(&repository), ["app", "net", "web"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
    // If nothing fires, nothing is destroyed, and what is recorded stays.
    let before = entry(&repository, "/app");
    fix_output(&repository);
    change(&repository, "/net", "3");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(
        acts(&repository),
        [
            "apply /net",
            "destroy /app",
            "apply /app",
            "destroy /web",
            "apply /web"
        ]
    );
    change(&repository, "/net", "4");
    let id = |entry: &Value| entry["applied"]["triggered_by"].clone();
    assert_ne!(id(&before), id(&entry(&repository, "/app")));
    let before = entry(&repository, "/app");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["apply /net"]);
    let run = |entry: &Value| entry["applied"]["run"].clone();
    assert_eq!(run(&entry(&repository, "/app")), run(&before));
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn late_replacements_wait_for_a_new_plan() {
    let repository = chain("");
    change(&repository, "/net", "2");
    // Two stacks may be replaced.
    fails(
        &repository,
        "apply --auto-approve --allow-destroy 1",
        1,
        "allow it beforehand with `--allow-destroy`",
    );
    assert_eq!(acts(&repository), ["apply /net"]);
    assert_eq!(
        planned(&repository, ""),
        ["/app delete create", "/web delete create"]
    );
}

#[test]
fn late_replacements_continue_after_a_failure() {
    let repository = chain("");
    hook(&repository, "apply", "app", "exit 1\n");
    change(&repository, "/net", "2");
    fails(&repository, &format!("apply {APPROVED}"), 1, "/app");
    assert_eq!(
        acts(&repository),
        ["apply /net", "destroy /app", "apply /app"]
    );
    assert_eq!(world(&repository), ["net", "web"]);
    unhook(&repository, "apply", "app");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(world(&repository), ["app", "net", "web"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn late_replacements_respect_protection() {
    // The second driver plans nothing, so what a destroy would remove is unknown.
    for (attributes, rule) in [
        ("", "prevent_destroy = true"),
        ("", "prevent_resource_destroy = true"),
        ("driver = \"unasked\"", "prevent_destroy = true"),
        ("driver = \"unasked\"", "prevent_resource_destroy = true"),
    ] {
        let repository = chain_with(attributes, rule);
        change(&repository, "/net", "2");
        _ = repository.orch(&format!("apply {APPROVED}"));
        let acts = acts(&repository);
        assert!(!acts.contains(&"destroy /app".to_owned()), "{acts:?}");
        assert_eq!(world(&repository), ["app", "net", "web"]);
    }
}

/// Another process applies the first stack, so this one does not see what it changes.
#[test]
fn late_replacements_compare_with_the_state() {
    let repository = chain("");
    change(&repository, "/net", "2");
    done(&repository, "plan -o ../saved --allow-destroy 9");
    done(&repository, "apply --auto-approve --match net");
    done(&repository, "apply ../saved");
    assert_eq!(
        acts(&repository),
        [
            "apply /net",
            "destroy /app",
            "apply /app",
            "destroy /web",
            "apply /web"
        ]
    );
    assert_eq!(planned(&repository, ""), [""; 0]);
    // Without approval, nothing is recorded.
    change(&repository, "/net", "3");
    done(&repository, "plan -o ../other");
    done(&repository, "apply --auto-approve --match net");
    let must = "it must be replaced, since /net#id has changed";
    fails(&repository, "apply ../other", 1, must);
    fails(&repository, "apply ../other --resume", 1, must);
    assert_eq!(acts(&repository), ["apply /net"]);
    done(&repository, "apply ../other --resume --allow-destroy 2");
    assert_eq!(
        acts(&repository),
        ["destroy /app", "apply /app", "destroy /web", "apply /web"]
    );
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn late_replacements_survive_a_resume() {
    let by =
        |trigger: &str| format!("lifecycle {{\n    replace_triggered_by = [\"{trigger}\"]\n  }}");
    let repository = applied(&[
        ("/net", ""),
        ("/app", &by("/net#id")),
        ("/mid", "after = [\"/app\"]"),
        ("/web", &by("/app")),
    ]);
    change(&repository, "/net", "2");
    done(&repository, "plan -o ../saved --allow-destroy 9");
    hook(&repository, "plan", "mid", "exit 1\n");
    fails(&repository, "apply ../saved --on-error stop", 1, "/mid");
    assert_eq!(
        acts(&repository),
        ["apply /net", "destroy /app", "apply /app"]
    );
    unhook(&repository, "plan", "mid");
    done(&repository, "apply ../saved --resume");
    assert_eq!(acts(&repository), ["destroy /web", "apply /web"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn late_replacements_follow_replaced_stacks() {
    let repository = chain("");
    change(&repository, "/net", "2");
    done(&repository, &format!("apply {APPROVED} --replace /net"));
    let late = ["destroy /app", "apply /app", "destroy /web", "apply /web"];
    let replaced = ["destroy /net", "apply /net"];
    assert_eq!(acts(&repository), [&replaced[..], &late].concat());
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn late_replacements_follow_new_generations() {
    let by = "lifecycle {\n    replace_triggered_by = [\"/net#id\"]\n  }";
    let first = "driver = \"many\"\n  lifecycle {\n    create_before_destroy = true\n  }";
    let repository = applied(&[("/net", first), ("/app", by)]);
    change(&repository, "/net", "2");
    done(&repository, &format!("apply {APPROVED} --replace /net"));
    assert_eq!(
        acts(&repository),
        ["apply /net@2", "destroy /app", "apply /app", "destroy /net"]
    );
}
