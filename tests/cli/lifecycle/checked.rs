//! What conditions are checked of, when, and how what does not hold is told.

use insta::assert_snapshot;
use serde_json::Value;

use super::outputs::{ensures, requires, rules, set, wants};
use crate::removals::{
    APPROVED, acts, applied, done, entry, fails, forget_log, hook, log, operations, planned,
};

#[test]
fn conditions_read_shared_outputs_once() {
    let repository = applied(&[("/net", "")]);
    let keys: Vec<String> = (0..1000).map(|number| format!("\"n{number}\"")).collect();
    let lines = requires("stacks[\"/net\"].outputs.id == \"2\"", "m");
    let lines = format!("for_each = [{}]\n  {lines}", keys.join(", "));
    set(&repository, "/app", &lines);
    let told = fails(&repository, "plan", 1, "failed: m");
    assert!(told.contains("1000 failed, 1 unchanged"), "{told}");
    assert_eq!(log(&repository), ["outputs /net"]);
}

#[test]
fn conditions_that_fail_are_in_json() {
    let repository = applied(&[("/net", ""), ("/app", "after = [\"/net\"]")]);
    let both = rules(&[
        (
            "precondition",
            "stacks[\"/net\"].outputs.id == \"2\"",
            "first",
        ),
        ("precondition", "null", "second"),
    ]);
    set(
        &repository,
        "/app",
        &format!("after = [\"/net\"]\n  {both}"),
    );
    let json = repository.orch("plan --format json");
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_snapshot!(serde_json::to_string_pretty(&json["failed"]).unwrap(), @r#"
    [
      {
        "conditions": [
          {
            "file": "app/stack.orch.hcl",
            "kind": "precondition",
            "line": 4,
            "message": "precondition of `/app` failed: first",
            "values": [
              {
                "expression": "stacks[\"/net\"].outputs.id",
                "line": 5,
                "text": "this is \"1\""
              }
            ]
          },
          {
            "file": "app/stack.orch.hcl",
            "kind": "precondition",
            "line": 8,
            "message": "a precondition must be `true` or `false`",
            "values": [
              {
                "expression": "null",
                "line": 9,
                "text": "this is null"
              }
            ]
          }
        ],
        "path": "/app",
        "why": "precondition failed: first"
      }
    ]
    "#);
    assert_snapshot!(repository.orch("plan --format markdown").stdout, @"
    ### `orch plan`

    Plan: 1 failed, 1 unchanged.

    | | stack | action | reason | resources |
    | --- | --- | --- | --- | --- |
    | `!` | `/app` | failed | <code>precondition of &#96;/app&#96; failed&#58; first &#40;app/stack&#46;orch&#46;hcl&#58;4&#44; stacks&#91;&#34;/net&#34;&#93;&#46;outputs&#46;id&#58; this is &#34;1&#34;&#41;&#59; a precondition must be &#96;true&#96; or &#96;false&#96; &#40;app/stack&#46;orch&#46;hcl&#58;8&#44; null&#58; this is null&#41;</code> |  |

    `orch apply` changes nothing while stacks fail to plan. To leave them out, add `--on-error=skip-dependents`.
    ");
}

#[test]
fn conditions_escape_hostile_values() {
    let repository = applied(&[("/net", ""), ("/app", "after = [\"/net\"]")]);
    let script = r#"printf '{"id":"%s\\u001b[31m\\nerror: none\\u0000","list":["a","b"],"map":{"k":1},"n":null}' "$(printf %0300d 0)"; exit 0"#;
    hook(&repository, "outputs", "net", script);
    let outputs = "stacks[\"/net\"].outputs";
    let condition = format!(
        "{outputs}.id == {outputs}.list && {outputs}.map == {outputs}.n || {outputs}.id == \"\""
    );
    let lines = requires(&condition, &format!("id ${{{outputs}.id}} end"));
    set(&repository, "/app", &lines);
    let told = fails(&repository, "plan", 1, "precondition of `/app` failed");
    assert!(!told.contains('\u{1b}') && !told.contains('\0'), "{told}");
    assert!(
        !told.lines().any(|line| line.starts_with("error: none")),
        "{told}"
    );
    assert!(told.contains("this is a list of 2"), "{told}");
    let shown = format!("this is \"{}\"…", "0".repeat(200));
    assert!(told.contains(&shown), "{told}");
    for format in ["json", "markdown"] {
        let output = repository.orch(&format!("plan --format {format}"));
        assert!(!output.stdout.contains('\u{1b}'), "{output}");
    }
}

#[test]
fn conditions_must_be_booleans() {
    let repository = applied(&[("/net", ""), ("/app", "after = [\"/net\"]")]);
    let outputs = "stacks[\"/net\"].outputs";
    for (condition, said) in [
        (format!("{outputs}.id"), "this is a string"),
        (outputs.to_owned(), "this is an object"),
        (format!("tm_try({outputs}.none, null)"), "this is null"),
    ] {
        set(&repository, "/app", &requires(&condition, "m"));
        let told = fails(&repository, "plan", 1, said);
        assert!(
            told.contains("a precondition must be `true` or `false`"),
            "{told}"
        );
    }
}

#[test]
fn postconditions_that_fail_are_not_retried() {
    let repository = applied(&[("/app", "")]);
    let lines = ensures("self.action != \"update\"", "never");
    let lines = format!(
        "{lines}\n  run {{\n    retry {{\n      attempts = 3\n      on_exit  = [1]\n      on_output = [\".\"]\n    }}\n  }}"
    );
    set(&repository, "/app", &lines);
    wants(&repository, &["/app"], "2");
    fails(
        &repository,
        &format!("apply {APPROVED}"),
        1,
        "postcondition failed: never",
    );
    assert_eq!(acts(&repository), ["apply /app"]);
    let run = done(&repository, "runs show --format json");
    assert!(run.contains("\"kind\": \"condition\""), "{run}");
    let run = done(&repository, "runs show");
    assert!(run.contains("postcondition failed: never"), "{run}");
}

#[test]
fn conditions_of_a_replaced_stack_are_checked_around_the_replace() {
    let repository = applied(&[("/net", ""), ("/app", "after = [\"/net\"]")]);
    let both = rules(&[
        (
            "precondition",
            "stacks[\"/net\"].outputs.id != \"2\"",
            "first",
        ),
        (
            "postcondition",
            "self.action != \"replace\" || self.outputs.id != \"1\"",
            "second",
        ),
    ]);
    set(
        &repository,
        "/app",
        &format!("after = [\"/net\"]\n  {both}"),
    );
    fails(
        &repository,
        &format!("apply {APPROVED} --replace /app"),
        1,
        "second",
    );
    assert_eq!(acts(&repository), ["destroy /app", "apply /app"]);
    assert_eq!(entry(&repository, "/app")["applied"]["checks"], "failed");
    set(
        &repository,
        "/app",
        &format!(
            "after = [\"/net\"]\n  {}",
            rules(&[(
                "precondition",
                "stacks[\"/net\"].outputs.id != \"1\"",
                "first"
            )])
        ),
    );
    fails(
        &repository,
        &format!("apply {APPROVED} --replace /app"),
        1,
        "first",
    );
    assert_eq!(acts(&repository), [""; 0]);
    // Nothing is checked of what is destroyed.
    done(&repository, &format!("destroy {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /app", "destroy /net"]);
}

#[test]
fn conditions_of_read_only_stacks_are_checked() {
    let repository = applied(&[("/net", ""), ("/app", "")]);
    let read = |id: &str| {
        let both = rules(&[
            (
                "precondition",
                "stacks[\"/net\"].outputs.id != \"\"",
                "first",
            ),
            (
                "postcondition",
                &format!("self.outputs.id == \"{id}\" && self.action == \"read\""),
                "second",
            ),
        ]);
        format!("mode = \"read\"\n  after = [\"/net\"]\n  {both}")
    };
    hook(
        &repository,
        "outputs",
        "read",
        "echo '{\"id\":\"7\"}'; exit 0",
    );
    set(&repository, "/read", &read("7"));
    assert_eq!(planned(&repository, ""), ["/read read"]);
    set(&repository, "/read", &read("8"));
    let told = fails(
        &repository,
        "plan",
        1,
        "postcondition of `/read` failed: second",
    );
    assert!(told.contains("this is \"7\""), "{told}");
    // With work before it, the apply decides.
    wants(&repository, &["/net"], "2");
    done(&repository, "plan");
    forget_log(&repository);
    fails(
        &repository,
        &format!("apply {APPROVED}"),
        1,
        "postcondition failed: second",
    );
    assert_eq!(acts(&repository), ["apply /net"]);
}

#[test]
fn postconditions_see_other_stacks_and_changes() {
    let repository = applied(&[
        ("/net", ""),
        ("/db", ""),
        ("/app", "after = [\"/net\", \"/db\"]"),
    ]);
    let after = "after = [\"/net\", \"/db\"]\n  ";
    let condition = "self.outputs.id == stacks[\"/net\"].outputs.id && stacks[\"/db\"].outputs.id == \"1\" && self.changes.change == 1";
    set(
        &repository,
        "/app",
        &format!("{after}{}", ensures(condition, "m")),
    );
    wants(&repository, &["/app", "/net"], "2");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(entry(&repository, "/app")["last"]["outcome"], "succeeded");
    // What nothing is done with is looked at where its conditions need that.
    let condition = "self.outputs.id == \"2\" && stacks[\"/net\"].outputs.id == \"3\" && self.action == \"no-op\" && self.changes.change == 0";
    set(
        &repository,
        "/app",
        &format!("{after}{}", ensures(condition, "m")),
    );
    wants(&repository, &["/net"], "3");
    forget_log(&repository);
    done(&repository, &format!("apply {APPROVED}"));
    let logged = log(&repository);
    assert!(logged.contains(&"outputs /app".to_owned()), "{logged:?}");
    assert!(!logged.contains(&"apply /app".to_owned()), "{logged:?}");
    // What has no turn may fail as well.
    wants(&repository, &["/net"], "4");
    fails(
        &repository,
        &format!("apply {APPROVED}"),
        1,
        "postcondition failed: m",
    );
    assert_eq!(entry(&repository, "/app")["applied"]["checks"], "failed");
    assert_eq!(acts(&repository), ["apply /net"]);
}

#[test]
fn postconditions_see_no_changes_of_a_driver_without_counts() {
    let repository = applied(&[("/app", "driver = \"unasked\"")]);
    let lines = format!(
        "driver = \"unasked\"\n  {}",
        ensures("self.changes.add == 0", "m")
    );
    set(&repository, "/app", &lines);
    wants(&repository, &["/app"], "2");
    let told = fails(
        &repository,
        &format!("apply {APPROVED}"),
        1,
        "the number of changed resources is unknown",
    );
    assert!(told.contains("its driver does not report it"), "{told}");
    let lines = format!(
        "driver = \"unasked\"\n  {}",
        ensures("self.outputs.id == \"\"", "m")
    );
    set(&repository, "/app", &lines);
    fails(
        &repository,
        &format!("apply {APPROVED}"),
        1,
        "its driver `unasked` has no `outputs`",
    );
}

#[test]
fn conditions_warn_of_duplicates_on_a_reader() {
    let own = |mode: &str, message: &str| {
        let rules = rules(&[("precondition", "true", message)]);
        format!("name = \"same\"\n  driver = \"placed\"\n  {mode}\n  {rules}")
    };
    let repository = applied(&[
        ("/net", &own("", "a")),
        ("/read", &own("mode = \"read\"", "b")),
    ]);
    let warning =
        "warning: /read and /net have conditions on the same infrastructure, `place same`";
    let told = done(&repository, "plan");
    assert!(told.contains(warning), "{told}");
    assert_eq!(operations(&repository, ""), [""; 0]);
    set(
        &repository,
        "/read",
        "name = \"same\"\n  driver = \"placed\"\n  mode = \"read\"",
    );
    let told = done(&repository, "plan");
    assert!(!told.contains("warning"), "{told}");
}

#[test]
fn conditions_of_stacks_without_tool_are_checked_before_recording() {
    let repository = applied(&[("/net", "")]);
    let plain = |id: &str| {
        let condition = format!("stacks[\"/net\"].outputs.id == \"{id}\"");
        let rules = rules(&[("postcondition", &condition, "m")]);
        format!("driver = \"none\"\n  after = [\"/net\"]\n  {rules}")
    };
    set(&repository, "/plain", &plain("2"));
    fails(
        &repository,
        &format!("apply {APPROVED}"),
        1,
        "postcondition of `/plain` failed: m",
    );
    set(&repository, "/plain", &plain("1"));
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(entry(&repository, "/plain")["last"]["outcome"], "succeeded");
}

#[test]
fn conditions_accept_secret_stack_paths() {
    let repository = applied(&[("/net", ""), ("/app", "after = [\"/net\"]")]);
    let condition = "env.HOME != \"\" && tm_alltrue([for path in [\"/net\"] : stacks[path].outputs.id == \"1\"])";
    set(&repository, "/app", &requires(condition, "m"));
    done(&repository, "plan");
}

#[test]
fn conditions_that_fail_are_annotated() {
    let repository = applied(&[("/net", ""), ("/app", "after = [\"/net\"]")]);
    let lines = requires("stacks[\"/net\"].outputs.id == \"2\"", "not yet");
    set(&repository, "/app", &lines);
    let output = repository.orch_with("plan", |command| {
        command.env("GITHUB_ACTIONS", "true");
    });
    let mut lines = output.stderr.lines();
    let annotation = lines.find(|line| line.starts_with("::error"));
    let annotation = annotation.unwrap_or_else(|| panic!("{output}"));
    assert!(
        annotation.contains("app/stack.orch.hcl,line=5,"),
        "{annotation}"
    );
    let said = "failed-condition::precondition of `/app` failed: not yet";
    assert!(annotation.ends_with(said), "{annotation}");
}
