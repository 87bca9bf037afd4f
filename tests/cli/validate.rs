//! `orch validate`

use insta::assert_snapshot;
use serde_json::json;

use crate::support::Sandbox;

#[test]
fn a_sound_project_passes() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a",
    );
    assert_snapshot!(sandbox.orch("validate"), @"
    [stderr]
    note: no problems found: 2 stacks, 3 configuration files
    ");
    assert_eq!(
        sandbox.orch("validate --format json").json(),
        json!({"format": 1, "valid": true, "stacks": [{"path": "/a"}, {"path": "/b"}], "diagnostics": [], "errors": []})
    );
}

#[test]
fn warnings_are_errors_wherever_it_is_started() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /nowhere
        c wants tag:nobody",
    );
    let output = sandbox.orch_in("/a", "validate");
    assert_eq!(output.code(), 3);
    assert!(output.stderr.contains("`/nowhere` in `after`"), "{output}");
    assert!(
        output.stderr.contains("`tag:nobody` in `wants`"),
        "{output}"
    );
    assert!(!output.stderr.contains("warning:"), "{output}");
}

#[test]
fn everything_that_can_be_wrong_is_found_in_one_go() {
    let sandbox = Sandbox::new(
        r#"
//- /a/stack.tm
stack {
  after = ["/b"]
  tags  = ["X"]
}
//- /b/stack.tm
stack {
  after = ["/a", "/nowhere"]
}
//- /c/stack.tm
stack {
}
terramate {
  config {
    run {
      env {
        NUMBER = 5
      }
    }
  }
}
//- /d/stack.tm
stack {
"#,
    );
    let output = sandbox.orch("validate");
    assert_eq!(output.code(), 3);
    for said in [
        "`X` cannot be a tag",
        "stacks wait for each other in a cycle",
        "`/nowhere` in `after` matches no stack",
        "`run.env.NUMBER` must be a string",
        "syntax error",
    ] {
        assert!(
            output.stderr.contains(said),
            "`{said}` is missing: {output}"
        );
    }
}

#[test]
fn the_result_is_data_too() {
    let sandbox = Sandbox::layout("a after /nowhere");
    let output = sandbox.orch("validate --format json");
    assert_eq!(output.code(), 3);
    assert_eq!(
        output.data(),
        json!({
            "format": 1,
            "valid": false,
            "stacks": [],
            "diagnostics": [{
                "severity": "error",
                "code": "unknown-reference",
                "message": "`/nowhere` in `after` matches no stack",
                "file": "a/stack.tm",
                "line": 2,
                "column": 12,
                "labels": [{
                    "file": "a/stack.tm",
                    "line": 2,
                    "column": 12,
                    "end_line": 2,
                    "end_column": 22,
                    "text": "no such directory"
                }],
                "notes": [],
                "help": []
            }],
            "errors": []
        })
    );
}

#[test]
fn settings_in_the_wrong_place_fail() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/a/config.tm",
        "terramate {\n  required_version = \">= 1\"\n}\n",
    );
    assert_eq!(sandbox.orch("list").code(), 0);
    assert_snapshot!(sandbox.orch("validate"), @r#"
    [stderr]
    error: this setting applies only in the project root, and is ignored here
     --> a/config.tm:2:3
      |
    2 |   required_version = ">= 1"
      |   ^^^^^^^^^^^^^^^^ ignored
      |
      = help: move it to the project root; only `env`, `lets`, `timeout`, `retry` and the exit codes of `config.run`, `config.driver`, `config.lifecycle` and `config.change_detection.ignore` may be here

    [exit status 3]
    "#);
}

#[test]
fn environments_of_all_stacks_are_checked() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/b/stack.tm",
        "stack {}\nterramate {\n  config {\n    run {\n      env {\n        X = env.MISSING\n      }\n    }\n  }\n}\n",
    );
    assert_eq!(sandbox.orch_in("/a", "run true").code(), 0);
    assert_snapshot!(sandbox.orch_in("/a", "validate"), @"
    [stderr]
    error: the environment has no variable `MISSING`
     --> b/stack.tm:6:17
      |
    6 |         X = env.MISSING
      |                 ^^^^^^^ `env` is the environment that orch was started in
      |
      = note: evaluated for stack `/b`
      = help: set `MISSING` before running orch

    [exit status 3]
    ");
}
