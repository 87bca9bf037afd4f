//! `orch policy test`: which tests are found, and what they come to.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::Sandbox;

/// Tries a failed stack again, once.
const RETRY: &str = r#"
package retry

trigger contains input.stack.id if {
	print("state", input.run.state)
	input.run.state == "FAILED"
	input.run.triggered_by == null
}
"#;

const RETRY_TEST: &str = r#"
package retry

failed := {"run": {"state": "FAILED", "triggered_by": null}, "stack": {"id": "a"}}

test_a_failure_is_tried_again if trigger == {"a"} with input as failed

test_a_success_is_not if {
	count(trigger) == 0 with input as {"run": {"state": "FINISHED"}, "stack": {"id": "a"}}
}

todo_test_later if false
"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.write("/policies/retry.rego", RETRY);
    sandbox.write("/policies/retry_test.rego", RETRY_TEST);
    sandbox
}

#[test]
fn policy_test_runs_the_tests_beside_a_policy() {
    let sandbox = sandbox();
    let tested = sandbox.orch("policy test");
    assert_snapshot!(tested.stdout, @"
    PASS  policies/retry_test.rego:6: test_a_failure_is_tried_again
    PASS  policies/retry_test.rego:8: test_a_success_is_not
    SKIP  policies/retry_test.rego:12: todo_test_later
    --------------------
    PASS: 2/3
    SKIP: 1/3
    ");
    assert_eq!((tested.code(), &*tested.stderr), (0, ""));
    for path in [
        "policies",
        "policies/retry.rego",
        "policies/retry_test.rego",
    ] {
        let named = sandbox.orch(&format!("policy test {path}"));
        assert_eq!(named.stdout, tested.stdout, "{path}");
    }
}

#[test]
fn policy_test_shows_a_failed_test_with_its_prints() {
    let sandbox = sandbox();
    sandbox.write(
        "/policies/retry_test.rego",
        "package retry\n\ntest_wrong if trigger == {\"b\"} with input as {\"run\": {\"state\": \"FAILED\"}}\n\n\
         test_false := false\n\ntest_text := \"yes\"\n\ntest_true := true\n",
    );
    let tested = sandbox.orch("policy test");
    assert_eq!(tested.code(), 1);
    assert_snapshot!(tested.stdout, @"
    FAIL  policies/retry_test.rego:3: test_wrong
      print: policies/retry.rego:5: state FAILED
    FAIL  policies/retry_test.rego:5: test_false
    FAIL  policies/retry_test.rego:7: test_text
    PASS  policies/retry_test.rego:9: test_true
    --------------------
    PASS: 1/4
    FAIL: 3/4
    ");
    let json = sandbox.orch("policy test --format json");
    assert_eq!(json.code(), 1);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["format"], 1);
    assert_eq!(
        json["tests"][3],
        json!({
            "file": "policies/retry_test.rego", "line": 9, "name": "test_true",
            "result": "passed", "prints": [],
        })
    );
}

#[test]
fn policy_test_runs_rego_v0() {
    let sandbox = sandbox();
    sandbox.write(
        "/policies/retry.rego",
        "package old\n\ntrigger[input.stack.id] { input.run.state == \"FAILED\" }\n",
    );
    sandbox.write(
        "/policies/retry_test.rego",
        "package old_test\n\nimport data.old.trigger\n\n\
         test_old { trigger[\"a\"] with input as {\"run\": {\"state\": \"FAILED\"}, \"stack\": {\"id\": \"a\"}} }\n",
    );
    assert_eq!(
        sandbox.orch("policy test").stdout,
        "PASS  policies/retry_test.rego:5: test_old\n--------------------\nPASS: 1/1\n"
    );
    sandbox.write("/policies/retry.rego", RETRY);
    sandbox.write(
        "/policies/retry_test.rego",
        "package old_test\n\ntest_mixed { count(data.retry.trigger) == 0 }\n",
    );
    assert_eq!(sandbox.orch("policy test").code(), 0);
}

#[test]
fn policy_test_skips_ignored_directories() {
    let sandbox = sandbox();
    let failing = "package p\n\ntest_never := false\n";
    sandbox.write("/.hidden/p_test.rego", failing);
    sandbox.write("/left/out/p_test.rego", failing);
    sandbox.write("/left/.orchskip", "");
    let tested = sandbox.orch("policy test");
    assert_eq!(tested.code(), 0, "{}", tested.stdout);
    assert_eq!(sandbox.orch("policy test left/out").code(), 1);
}

#[test]
fn policy_test_fails_for_a_named_path_without_tests() {
    let sandbox = Sandbox::new("");
    sandbox.write("/p.rego", "package p\n");
    sandbox.write("/q_test.rego", "package q\n\nhelper := 1\n");
    let nothing = sandbox.orch("policy test");
    assert_eq!(nothing.code(), 0);
    assert_snapshot!(nothing.stderr, @"note: no test was found: tests are rules `test_…` in files `…_test.rego`");
    for path in ["p.rego", "q_test.rego"] {
        let named = sandbox.orch(&format!("policy test {path}"));
        assert_eq!(named.code(), 1, "{path}");
        assert_eq!(
            named.stderr,
            format!("error: no test was found in `{path}`\n")
        );
    }
    assert_eq!(sandbox.orch("policy test p.txt").code(), 5);
    sandbox.write("/p.txt", "");
    assert_eq!(sandbox.orch("policy test p.txt").code(), 64);
}

#[test]
fn policy_test_names_a_file_that_cannot_be_loaded() {
    let sandbox = sandbox();
    sandbox.write(
        "/policies/retry.rego",
        "package retry\n\ntrigger contains {\n",
    );
    let broken = sandbox.orch("policy test");
    assert_eq!(broken.code(), 3);
    assert!(
        broken.stderr.contains("as Rego v1: policies/retry.rego:"),
        "{}",
        broken.stderr
    );
    sandbox.write("/policies/retry.rego", RETRY);
    sandbox.write(
        "/policies/retry_test.rego",
        "package retry\n\ntest_now if time.now_ns() > 0\n",
    );
    let refused = sandbox.orch("policy test");
    assert_eq!(refused.code(), 3);
    assert!(
        refused
            .stderr
            .contains("`time.now_ns` is not allowed in a policy"),
        "{}",
        refused.stderr
    );
}

#[test]
fn policy_test_refuses_recursion_across_the_two_files() {
    let sandbox = sandbox();
    sandbox.write("/policies/retry.rego", "package p\n\na := data.q.b\n");
    sandbox.write(
        "/policies/retry_test.rego",
        "package q\n\nb := data.p.a\n\ntest_b if b\n",
    );
    assert_eq!(sandbox.orch("policy test").code(), 3);
}

#[test]
fn policy_test_continues_after_a_test_that_takes_too_long() {
    let sandbox = sandbox();
    sandbox.write(
        "/policies/retry_test.rego",
        "package retry\n\ntest_endless if {\n\tsome a in numbers.range(1, 3000)\n\
         \tsome b in numbers.range(1, 3000)\n\tsome c in numbers.range(1, 3000)\n\ta + b + c < 0\n}\n\n\
         test_quick := true\n",
    );
    let tested = sandbox.orch("policy test");
    assert_eq!(tested.code(), 1);
    assert!(
        tested
            .stdout
            .contains("ERROR  policies/retry_test.rego:3: test_endless\n"),
        "{}",
        tested.stdout
    );
    assert!(
        tested
            .stdout
            .contains("PASS   policies/retry_test.rego:10: test_quick\n"),
        "{}",
        tested.stdout
    );
}

#[test]
fn policy_test_reports_the_file_and_position_of_a_problem() {
    let sandbox = sandbox();
    sandbox.write(
        "/policies/retry.rego",
        "package retry\nodd(s) if { not startswith(s, lower(\"B\")); [i | some i in [s]; two(i) == 0] }\n\
         two(x) := y if { some y in [x, 2] }\n",
    );
    sandbox.write(
        "/policies/retry_test.rego",
        "package retry\ntest_policy if odd(\"a\")\n\
         test_own if { some s in [\"a\"]; [s | some s in [\"b\"]; two(s) == 0] }\n",
    );
    let tested = sandbox.orch("policy test");
    assert_eq!(tested.code(), 1);
    assert_snapshot!(tested.stdout, @"
    ERROR  policies/retry_test.rego:2: test_policy
      policies/retry.rego:2:67: the function has more than one value for the same arguments
    ERROR  policies/retry_test.rego:3: test_own
      policies/retry_test.rego:3:57: the function has more than one value for the same arguments
    --------------------
    PASS: 0/2
    ERROR: 2/2
    ");
    sandbox.write(
        "/policies/retry_test.rego",
        "package retry\ntest_odd if { some s in [\"a\"]; [s | t := 1; s != \"c\"; t := 2] }\n",
    );
    let tested = sandbox.orch("policy test");
    assert_eq!(tested.code(), 3);
    assert_snapshot!(tested.stderr, @"
    error: `policies/retry_test.rego` cannot be loaded:
    policies/retry_test.rego:2:37: var `t` used before definition below
    ");
}
