//! What the exit statuses of commands mean, and what their output says about changes.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Output, Sandbox};

/// Three stacks; the command of each exits with the status in its file `status` and prints its file
/// `output`.
fn three_stacks() -> Sandbox {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a
        c after /b",
    );
    for (stack, status) in [("a", "0"), ("b", "2"), ("c", "0")] {
        sandbox.write(&format!("/{stack}/status"), status);
        sandbox.write(&format!("/{stack}/output"), "");
    }
    sandbox.write_program(
        "/bin/terraform",
        "#!/bin/sh\ncat output 2>/dev/null\nexit $(cat status)\n",
    );
    sandbox
}

fn terraform(sandbox: &Sandbox, arguments: &str) -> Output {
    let path = sandbox.path("/bin");
    let mut directories = vec![path];
    directories.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let path = std::env::join_paths(directories).unwrap();
    sandbox.orch_with(arguments, |command| {
        command.env("PATH", &path);
    })
}

/// What the journal of the last run says about the changes of each stack.
fn changes(sandbox: &Sandbox) -> Vec<Value> {
    let shown = sandbox.orch("runs show --format json").json();
    let stacks = shown["stacks"].as_array().unwrap().iter();
    stacks.map(|stack| stack["changes"].clone()).collect()
}

#[test]
fn exit_codes_of_success_are_no_failure() {
    let sandbox = three_stacks();
    let output = sandbox.orch("run -- sh -c 'exit $(cat status)'");
    assert_eq!(output.code(), 1, "{output}");
    let output = sandbox.orch("run --success-exit-code 0,2 -- sh -c 'exit $(cat status)'");
    assert_eq!(output.code(), 0, "{output}");
    assert!(output.stderr.contains("orch: 3 succeeded in"), "{output}");
    assert_eq!(changes(&sandbox), vec![Value::Null; 3]);
    let output = sandbox.orch("run --success-exit-code 3 -- sh -c 'exit $(cat status)'");
    assert_eq!(output.code(), 1, "{output}");
}

#[test]
fn exit_codes_can_mean_changes() {
    let sandbox = three_stacks();
    let command = "-- sh -c 'exit $(cat status)'";
    let output = sandbox.orch(&format!("run -q --changes-exit-code 2 {command}"));
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(
        changes(&sandbox),
        [
            json!({"any": false}),
            json!({"any": true}),
            json!({"any": false})
        ]
    );
    let output = sandbox.orch(&format!(
        "run --changes-exit-code 2 --detailed-exitcode {command}"
    ));
    assert_snapshot!(output, @"
    [stderr]
    orch: /a: sh -c 'exit $(cat status)'
    orch: /b: sh -c 'exit $(cat status)'
    orch: /c: sh -c 'exit $(cat status)'
    orch: changes in /b
    orch: no changes in 2 stacks
    orch: 3 succeeded (1 with changes) in [time]
    [exit status 2]
    ");
    sandbox.write("/b/status", "0");
    let output = sandbox.orch(&format!(
        "run --changes-exit-code 2 --detailed-exitcode {command}"
    ));
    assert_eq!(output.code(), 0, "{output}");
    sandbox.write("/b/status", "2");
    sandbox.write("/c/status", "1");
    let output = sandbox.orch(&format!(
        "run --changes-exit-code 2 --detailed-exitcode {command}"
    ));
    assert_eq!(output.code(), 1, "a failure counts first: {output}");
}

#[test]
fn exit_codes_with_changes_count_as_success() {
    let sandbox = three_stacks();
    let command = "-- sh -c 'exit $(cat status)'";
    let output = sandbox.orch(&format!(
        "run -q --changes-exit-code 2 --detailed-exitcode {command}"
    ));
    assert_eq!(output.code(), 2, "{output}");
    let shown = sandbox.orch("runs show --format json").json();
    assert_eq!(
        (&shown["state"], &shown["status"]),
        (&json!("succeeded"), &json!(2))
    );
    assert!(sandbox.orch("run -q --resume").stderr.contains("succeeded"));
}

#[test]
fn exit_codes_can_be_set_for_a_stack_or_a_directory() {
    let sandbox = three_stacks();
    sandbox.write(
        "/b/run.orch.hcl",
        "stack {\n  run {\n    success_exit_codes = [2]\n  }\n}\n",
    );
    let run = "run -q -- sh -c 'exit $(cat status)'";
    assert_eq!(sandbox.orch(run).code(), 0);
    sandbox.write("/c/status", "4");
    assert_eq!(sandbox.orch(run).code(), 1);
    sandbox.write(
        "/config.orch.hcl",
        "orch {\n  config {\n    run {\n      changes_exit_codes = [4]\n    }\n  }\n}\n",
    );
    assert_eq!(sandbox.orch(run).code(), 0);
    assert_eq!(
        changes(&sandbox),
        [
            json!({"any": false}),
            json!({"any": false}),
            json!({"any": true})
        ]
    );
    let output = sandbox.orch("run -q --success-exit-code 9 -- sh -c 'exit $(cat status)'");
    assert_eq!(output.code(), 1, "the flag replaces what /b says: {output}");
}

#[test]
fn wrong_statuses_are_explained() {
    let sandbox = Sandbox::new(
        "//- /a/stack.tm\nstack {\n  run {\n    success_exit_codes = [0, 256]\n    changes_exit_codes = 2\n    success_exit_code = [1]\n  }\n}\n",
    );
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: `success_exit_codes` must be a list of exit statuses from 0 to 255
     --> a/stack.tm:3:30
      |
    3 |     success_exit_codes = [0, 256]
      |                              ^^^ this is 256

    error: `changes_exit_codes` must be a list
     --> a/stack.tm:4:26
      |
    4 |     changes_exit_codes = 2
      |                          ^ this is 2
      |
      = help: write it as in `[0, 2]`

    error: unknown attribute `success_exit_code` in `run`
     --> a/stack.tm:5:5
      |
    2 |   run {
      |   --- in this block
    ...
    5 |     success_exit_code = [1]
      |     ^^^^^^^^^^^^^^^^^ not an attribute of `run`
      |
      = help: did you mean `success_exit_codes`?

    [exit status 3]
    ");
    let sandbox = three_stacks();
    let output = sandbox.orch("run --success-exit-code 256 true");
    assert_eq!(output.code(), 64, "{output}");
}

#[test]
fn exit_codes_of_success_are_not_retried() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox.orch(
        "run --success-exit-code 7 --retries 3 --retry-on-exit 7 --retry-backoff 0s -- sh -c 'echo x >> ../ran; exit 7'",
    );
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(sandbox.read("/ran"), "x\n");
}

#[test]
fn exit_codes_of_a_detailed_plan_are_understood() {
    let sandbox = three_stacks();
    let output = terraform(&sandbox, "run -q terraform plan -detailed-exitcode");
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(
        changes(&sandbox),
        [
            json!({"any": false}),
            json!({"any": true}),
            json!({"any": false})
        ]
    );
    let output = terraform(&sandbox, "run -q terraform plan");
    assert_eq!(output.code(), 1, "{output}");
    let flags = "--changes-exit-code 3";
    let output = terraform(
        &sandbox,
        &format!("run -q {flags} terraform plan -detailed-exitcode"),
    );
    assert_eq!(
        output.code(),
        1,
        "one declared status replaces all defaults: {output}"
    );
}

#[test]
fn terraform_summary_is_shown() {
    let sandbox = three_stacks();
    sandbox.write(
        "/a/output",
        "\x1b[1mPlan:\x1b[0m 3 to add, 1 to change, 0 to destroy.\n",
    );
    sandbox.write(
        "/b/output",
        "Plan: 1 to import, 0 to add, 0 to change, 2 to destroy.\n",
    );
    sandbox.write("/b/status", "0");
    sandbox.write(
        "/c/output",
        "No changes. Your infrastructure matches the configuration.\n",
    );
    let output = terraform(&sandbox, "run --output errors terraform plan");
    assert_snapshot!(output, @"
    [stderr]
    orch: changes in /a: +3 ~1 -0
    orch: changes in /b: +0 ~0 -2, 1 imported
    orch: no changes in 1 stack
    orch: 3 succeeded (2 with changes) in [time]
    ");
    assert_eq!(
        changes(&sandbox),
        [
            json!({"any": true, "add": 3, "change": 1, "destroy": 0, "import": 0, "forget": 0}),
            json!({"any": true, "add": 0, "change": 0, "destroy": 2, "import": 1, "forget": 0}),
            json!({"any": false, "add": 0, "change": 0, "destroy": 0, "import": 0, "forget": 0}),
        ]
    );
    let shown = sandbox.orch("runs show").stdout;
    assert!(
        shown.contains("/a: ") && shown.contains(", +3 ~1 -0\n"),
        "{shown}"
    );
    let output = terraform(
        &sandbox,
        "run -q --output none --detailed-exitcode terraform plan",
    );
    assert_eq!(output.code(), 2, "{output}");
}

#[test]
fn terraform_summary_of_a_failure_is_not_shown() {
    let sandbox = three_stacks();
    sandbox.write("/a/output", "Plan: 3 to add, 1 to change, 0 to destroy.\n");
    sandbox.write("/a/status", "1");
    let output = terraform(&sandbox, "run --output errors terraform apply");
    assert_eq!(output.code(), 1);
    assert!(!output.stderr.contains("changes"), "{output}");
}

/// A status of 0 is that of every success: what the output says then counts.
#[test]
fn terraform_summary_decides_on_the_changes_of_an_apply() {
    let sandbox = three_stacks();
    sandbox.write(
        "/config.orch.hcl",
        "orch {\n  config {\n    run {\n      changes_exit_codes = [2]\n    }\n  }\n}\n",
    );
    sandbox.write("/b/status", "0");
    sandbox.write(
        "/a/output",
        "Apply complete! Resources: 3 added, 1 changed, 0 destroyed.\n",
    );
    let output = terraform(
        &sandbox,
        "run -q --output none --detailed-exitcode terraform apply",
    );
    assert_eq!(output.code(), 2, "{output}");
    let any: Vec<Value> = changes(&sandbox)
        .iter()
        .map(|it| it["any"].clone())
        .collect();
    assert_eq!(any, [json!(true), json!(false), json!(false)]);
}

#[test]
fn further_statuses_of_success_leave_what_a_plan_means() {
    let sandbox = three_stacks();
    let flags = "-q --success-exit-code 3 --detailed-exitcode";
    let output = terraform(
        &sandbox,
        &format!("run {flags} terraform plan -detailed-exitcode"),
    );
    assert_eq!(output.code(), 2, "{output}");
}

/// The retry of a plan that failed in one stack must not say that there are no changes.
#[test]
fn changes_of_a_run_are_those_of_the_run_that_resumes_it_too() {
    let sandbox = three_stacks();
    sandbox.write("/c/status", "1");
    let flags = "-q --on-error continue --detailed-exitcode";
    let run = format!("run {flags} terraform plan -detailed-exitcode");
    assert_eq!(terraform(&sandbox, &run).code(), 1);
    sandbox.write("/c/status", "0");
    for resume in [
        "run -q --resume",
        "run -q --resume",
        "run -q --resume --report r.json",
    ] {
        let output = terraform(&sandbox, resume);
        assert_eq!(output.code(), 2, "{output}");
    }
}
