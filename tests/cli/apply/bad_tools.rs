//! Tools that say something else than a plan, or are killed: the stack fails, and nothing else.

use serde_json::Value;

use super::tool::{project, recorded, world};
use super::{done, fails, hook, unhook};

/// What `show -json` prints, as a line of a shell, and what is said of it.
const SHOWN: [(&str, &str); 10] = [
    (":", "is not a plan: line 1, column 0"),
    ("head -c 60 \"$3\"", "is not a plan: line 1, column 60"),
    ("echo no JSON", "is not a plan: line 1"),
    ("echo '[]'", "is not a plan: line 1"),
    ("echo '{\"a\":1}'", "is not a plan: line 1"),
    (
        "echo '{\"format_version\":\"1.0\",\"values\":{}}'",
        "printed a state, not a plan",
    ),
    (
        "echo '{\"format_version\":\"1.2\",\"foo\":1}'",
        "`plan` reported changes, but `show -json` printed none",
    ),
    (
        "echo '{\"format_version\":\"2.0\"}'",
        "the plan has the format 2.0, but orch reads only 1.x",
    ),
    (
        "printf '{\"format_version\":\"\\\\u001b[31m\"}'",
        "the plan has an unknown format",
    ),
    (
        "printf x | dd bs=1 seek=524288000 2> /dev/null",
        "prints a plan of more than 256 MiB",
    ),
];

#[test]
fn plan_fails_only_the_stack_whose_tool_prints_no_plan() {
    let repository = project(&[("/bad", ""), ("/good", "")]);
    for (line, said) in SHOWN {
        hook(&repository, "show", "bad", &format!("{line}; exit"));
        let plan = fails(&repository, "plan", 1, said);
        assert!(plan.contains("! /bad   failed: "), "{plan}");
        assert!(plan.contains("+ /good  create"), "{plan}");
        assert!(!plan.contains('\u{1b}'), "{plan}");
    }
    let said = fails(
        &repository,
        "apply --auto-approve",
        1,
        "nothing was applied",
    );
    assert!(said.contains("--on-error skip-dependents"), "{said}");
    assert_eq!(world(&repository, "good", "real"), None);
    let apply = "apply --auto-approve --on-error skip-dependents";
    fails(
        &repository,
        apply,
        1,
        "left out after failing to plan: /bad",
    );
    assert!(recorded(&repository, "/good")["applied"].is_object());
    assert_eq!(recorded(&repository, "/bad"), Value::Null);
    assert_eq!(world(&repository, "bad", "real"), None);
}

#[test]
fn apply_fails_only_the_stack_whose_tool_prints_no_plan_when_it_is_planned_again() {
    for (line, said) in SHOWN {
        let repository = project(&[("/a", ""), ("/bad", "after = [\"/a\"]"), ("/good", "")]);
        // It is planned once before.
        let script = format!("[ -e \"$world/../a/real\" ] || exec cat \"$3\"; {line}; exit");
        hook(&repository, "show", "bad", &script);
        fails(&repository, "apply --auto-approve", 1, said);
        for stack in ["/a", "/good"] {
            assert!(
                recorded(&repository, stack)["applied"].is_object(),
                "{said}"
            );
        }
        assert_eq!(recorded(&repository, "/bad")["applied"], Value::Null);
        assert_eq!(world(&repository, "bad", "real"), None);
    }
}

#[test]
fn apply_names_the_signal_that_ended_a_tool() {
    let repository = project(&[("/bad", ""), ("/good", "")]);
    for step in ["init", "plan", "show"] {
        hook(&repository, step, "bad", "kill -KILL $$");
        let plan = fails(&repository, "plan --init", 1, "ended by SIGKILL");
        assert!(plan.contains("+ /good  create"), "{plan}");
        unhook(&repository, step, "bad");
    }
    hook(&repository, "apply", "bad", "kill -KILL $$");
    let said = "/bad: failed: ended by SIGKILL";
    fails(&repository, "apply --auto-approve", 1, said);
    let bad = recorded(&repository, "/bad");
    assert_eq!(bad["applied"], Value::Null, "{bad}");
    assert_eq!(bad["last"]["failure"], "signalled", "{bad}");
    assert!(recorded(&repository, "/good")["applied"].is_object());
}

#[test]
fn plan_escapes_control_characters_in_addresses() {
    let repository = project(&[("/a", "")]);
    done(&repository, "apply --auto-approve");
    let address = "x.y[\\\"\\u001b[31mred\\n  + /b  create\\u202e\\\"]";
    let plan = format!(
        r#"{{"format_version":"1.2","prior_state":{{"values":{{"root_module":{{"resources":[{{"mode":"managed"}}]}}}}}},"resource_changes":[{{"address":"{address}","mode":"managed","change":{{"actions":["delete","create"]}}}}]}}"#
    );
    hook(
        &repository,
        "show",
        "a",
        &format!("cat <<'END'\n{plan}\nEND\nexit"),
    );
    repository.write("/a/main.tf", "# 2\n");
    repository.commit();
    done(&repository, "plan -o ../saved");
    for arguments in [
        "plan",
        "plan --format markdown",
        "plan --format json",
        "plan --details=full",
        "show ../saved",
        "show ../saved a",
        "apply --auto-approve",
    ] {
        let output = repository.orch(arguments);
        let said = format!("{}{}", output.stdout, output.stderr);
        assert!(said.contains("red"), "{arguments}: {said}");
        for hidden in ['\u{1b}', '\u{202e}'] {
            let is_json = arguments.ends_with("json") && hidden == '\u{202e}';
            assert!(is_json || !said.contains(hidden), "{arguments}: {said}");
        }
        assert!(!said.contains("\n  + /b"), "{arguments}: {said}");
    }
}
