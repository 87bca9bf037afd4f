//! Preconditions: what must hold before something is done with a stack.

use insta::assert_snapshot;

use crate::removals::{
    APPROVED, acts, applied, done, fails, forget_log, log, operations, planned, want,
};
use crate::support::Repository;

/// The lines of a stack with this precondition.
fn requires(condition: &str, message: &str) -> String {
    format!(
        "lifecycle {{\n    precondition {{\n      condition     = {condition}\n      error_message = {message:?}\n    }}\n  }}"
    )
}

/// Writes globals at the root, and commits that.
fn set(repository: &Repository, globals: &str) {
    repository.write(
        "/globals.orch.hcl",
        format!("globals {{\n  {globals}\n}}\n"),
    );
    repository.commit();
}

#[test]
fn plan_reports_all_failed_conditions_and_writes_no_file() {
    let lines = requires(
        "global.url != \"http://10.0.0.7\" && tm_length(global.zones) > 2",
        "the service must be reached by https",
    );
    let repository = applied(&[("/net", ""), ("/db", "")]);
    set(
        &repository,
        "url = \"http://10.0.0.7\"\n  zones = [\"a\", \"b\"]\n  size = 3",
    );
    repository.write("/app/stack.orch.hcl", format!("stack {{\n  {lines}\n}}\n"));
    repository.write("/app/want", "1");
    let both = requires("global.size > 3", "too small").replace("  }\n  }", "  }\n    precondition {\n      condition = false\n      error_message = \"never\"\n    }\n  }");
    repository.write("/db/stack.orch.hcl", format!("stack {{\n  {both}\n}}\n"));
    want(&repository, "/net", "2");
    repository.commit();
    let output = repository.orch("plan -o plan.file");
    assert_eq!(output.code(), 1, "{output}");
    assert_snapshot!(output, @r#"
      ~ /net  update  net/want differs  +0 ~1 -0
      ! /app  failed: precondition of `/app` failed: the service must be reached by https (app/stack.orch.hcl:3, global.url: this is "http://10.0.0.7", global.zones: this is a list of 2)
      ! /db   failed: precondition of `/db` failed: too small (db/stack.orch.hcl:3, global.size: this is 3); precondition of `/db` failed: never (db/stack.orch.hcl:7, false: this is false)

    Plan: 1 to update, 2 failed. Resources: 1 to change.
    [stderr]
    error: precondition of `/app` failed: the service must be reached by https
     --> app/stack.orch.hcl:4:23
      |
    4 |       condition     = global.url != "http://10.0.0.7" && tm_length(global.zones) > 2
      |                       ^^^^^^^^^^ this is "http://10.0.0.7"         ------------ this is a list of 2

    error: precondition of `/db` failed: too small
     --> db/stack.orch.hcl:4:23
      |
    4 |       condition     = global.size > 3
      |                       ^^^^^^^^^^^ this is 3

    error: precondition of `/db` failed: never
     --> db/stack.orch.hcl:8:19
      |
    8 |       condition = false
      |                   ^^^^^ this is false

    note: no file was written because a stack failed to plan
      = help: to leave out the failed stacks and those that run after them, add `--on-error skip-dependents`
    [exit status 1]
    "#);
    assert!(!repository.path("/plan.file").exists());
    // Their tools are not asked, so theirs are the only errors.
    assert_eq!(log(&repository), ["plan /net"]);
    assert_eq!(repository.orch("apply --auto-approve").code(), 1);
    assert_eq!(acts(&repository), [""; 0]);
    let output = repository.orch("plan --format json");
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(json["failed"][0]["path"], "/app");
    assert_eq!(
        json["failed"][0]["why"],
        "precondition failed: the service must be reached by https"
    );
    assert_eq!(json["errored"], true);
}

#[test]
fn conditions_see_the_names_of_the_environment_and_the_namespace() {
    let condition = "orch.namespace == \"default\" && orch.stack.name == \"app\" && global.on && env.HOME != \"\" && tm_can(tm_regex(\"^a\", orch.stack.name))";
    let repository = applied(&[("/app", "")]);
    repository.write(
        "/app/stack.orch.hcl",
        format!("stack {{\n  {}\n}}\n", requires(condition, "m")),
    );
    set(&repository, "on = true");
    assert_eq!(planned(&repository, ""), [""; 0]);
    set(&repository, "on = false");
    let told = fails(&repository, "plan", 1, "precondition of `/app` failed: m");
    assert!(told.contains("this is \"default\""), "{told}");
    // The environment may hold passwords.
    assert!(told.contains("this is (sensitive)"), "{told}");
    let home = std::env::var("HOME").unwrap_or_default();
    assert!(
        home.len() < 3 || !told.contains(&format!("{home:?}")),
        "{told}"
    );
}

#[test]
fn conditions_that_cannot_be_evaluated_fail() {
    let repository = applied(&[("/app", "")]);
    for (condition, message, said) in [
        ("null", "m", "a precondition must be `true` or `false`"),
        ("\"yes\"", "m", "this is a string"),
        ("global.none", "m", "needed for the precondition of `/app`"),
        (
            "false",
            "${global.none}",
            "its `error_message` cannot be evaluated",
        ),
        (
            "false",
            "${env.HOME} is secret",
            "precondition of `/app` failed: (sensitive)",
        ),
    ] {
        repository.write(
            "/app/stack.orch.hcl",
            format!("stack {{\n  {}\n}}\n", requires(condition, message)),
        );
        repository.commit();
        fails(&repository, "plan", 1, said);
    }
}

#[test]
fn conditions_are_inherited_by_each_instance() {
    let repository = applied(&[
        ("/net", "for_each = [\"eu\", \"us\"]"),
        ("/read", "mode = \"read\""),
    ]);
    repository.write(
        "/config.orch.hcl",
        "orch {\n  config {\n    lifecycle {\n      precondition {\n        condition     = tm_try(each.key, \"none\") != \"us\"\n        error_message = \"not in ${each.key}\"\n      }\n    }\n  }\n}\n",
    );
    repository.commit();
    let told = fails(
        &repository,
        "plan",
        1,
        "precondition of `/net[\"us\"]` failed: not in us",
    );
    assert!(!told.contains("[\"eu\"]` failed"), "{told}");
    assert_eq!(operations(&repository, "--exclude '/net[\"us\"]'"), [""; 0]);
}

#[test]
fn conditions_of_destroyed_stacks_are_not_checked() {
    let repository = applied(&[("/app", "")]);
    repository.write(
        "/app/stack.orch.hcl",
        format!("stack {{\n  {}\n}}\n", requires("false", "never")),
    );
    repository.commit();
    fails(&repository, "plan", 1, "failed: never");
    done(&repository, &format!("destroy {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /app"]);
}

#[test]
fn apply_of_a_file_checks_conditions_again() {
    let repository = applied(&[("/app", ""), ("/late", "after = [\"/app\"]")]);
    repository.write(
        "/app/stack.orch.hcl",
        format!(
            "stack {{\n  {}\n}}\n",
            requires(
                "tm_fileexists(\"/tmp/orch-never\") || global.on",
                "it is off"
            )
        ),
    );
    set(&repository, "on = true");
    done(&repository, "plan --replace /app -o plan.file");
    set(&repository, "on = false");
    forget_log(&repository);
    let told = fails(
        &repository,
        &format!("apply {APPROVED} plan.file"),
        1,
        "precondition failed: it is off",
    );
    assert!(
        told.contains("precondition of `/app` failed: it is off"),
        "{told}"
    );
    assert_eq!(log(&repository), [""; 0]);
}
