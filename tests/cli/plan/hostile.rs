//! Drivers that answer what nobody expects, and tools that misbehave.

use super::project;
use crate::support::Output;

/// Plans a stack whose `plan` does this.
fn planned(says: &str) -> Output {
    project(&[("/a", says)]).orch("plan")
}

/// Plans a stack whose `plan` writes this answer; returns why that failed.
fn refused(answer: &str) -> String {
    let sandbox = project(&[("/a", "cp answer \"$ORCH_ANSWER\"")]);
    sandbox.write("/a/answer", answer);
    let output = sandbox.orch("plan");
    assert_eq!(output.code(), 1, "{output:?}");
    let mut lines = output.stderr.lines();
    let why = lines.find_map(|line| line.strip_prefix("orch: /a: "));
    why.expect("the stack is named").to_owned()
}

#[test]
fn plan_refuses_invalid_driver_answers() {
    for (answer, why) in [
        ("[]", "the answer is not a JSON object"),
        ("yes", "the answer is not a JSON object"),
        ("{\"add\": -1}", "invalid value: integer `-1`, expected u64"),
        (
            "{\"action\": \"create\"}",
            "expected one of `no-op`, `update`, `replace`",
        ),
        ("{\"\\u001b[31m\\n\": 1}", "unknown field `\\u{1b}[31m\\n`"),
        (&" ".repeat(2 << 20), "the answer is longer than 1 MiB"),
    ] {
        let refused = refused(answer);
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn plan_does_not_wait_for_an_answer_that_is_no_file() {
    for makes in ["mkfifo", "mkdir"] {
        let output = planned(&format!("{makes} \"$ORCH_ANSWER\""));
        assert_eq!(output.code(), 1, "{output:?}");
        assert!(
            output
                .stderr
                .contains("orch: /a: the answer cannot be read"),
            "{output:?}"
        );
    }
}

#[test]
fn plan_cuts_long_reasons() {
    let output = planned(
        r#"{ printf '{"reason":"'; printf 'x%.0s' $(seq 70000); printf '"}'; } > "$ORCH_ANSWER"; exit 2"#,
    );
    assert_eq!(output.code(), 0, "{output:?}");
    let line = output.stdout.lines().next().unwrap();
    assert!(line.ends_with("xxx…"), "{line}");
    assert!(line.chars().count() < 300, "{line}");
}

#[test]
fn plan_hides_the_first_answer_from_a_retry() {
    let sandbox = project(&[(
        "/a",
        "if [ -e again ]; then ls \"$(dirname \"$ORCH_ANSWER\")\" > seen; exit 2; fi; touch again; \
         echo '{\"add\":5}' > \"$ORCH_ANSWER\"; echo > \"$ORCH_PLAN_FILE\"; exit 1",
    )]);
    sandbox.write(
        "/retry.orch.hcl",
        "orch {\n  config {\n    run {\n      retry {\n        attempts = 2\n        on_exit = [1]\n        backoff = \"1ms\"\n      }\n    }\n  }\n}\n",
    );
    let output = sandbox.orch("plan");
    assert_eq!(output.code(), 0, "{output:?}");
    assert_eq!(sandbox.read("/a/seen"), "");
    assert_eq!(
        output.stdout.lines().next(),
        Some("  ~ /a  update  has changes")
    );
}

#[cfg(unix)]
#[test]
fn plan_files_are_private() {
    let says = "ls -ld \"$(dirname \"$(dirname \"$ORCH_PLAN_FILE\")\")\" | cut -c1-10 > mode";
    let sandbox = project(&[("/a", says)]);
    assert_eq!(sandbox.orch("plan").code(), 0);
    assert_eq!(sandbox.read("/a/mode"), "drwx------\n");
}

#[test]
fn plan_does_not_delete_missing_stacks() {
    let says = "echo '{\"exists\":false}' > \"$ORCH_ANSWER\"; exit 2";
    let output = project(&[("/a", says)]).orch("plan --destroy");
    assert!(
        output.stdout.starts_with("Plan: nothing to do."),
        "{output:?}"
    );
}
