//! `--enable-sharing`: outputs of stacks as variables of others.

use std::fs;

use insta::assert_snapshot;

use crate::support::Sandbox;

/// `/vpc` writes its outputs when it runs, and `/app` and `/web` have inputs of them.
const PROJECT: &str = r#"
//- /sharing.tm
sharing_backend "default" {
  type     = terraform
  filename = "sharing.tf"
  command  = ["sh", "-c", "echo read >> ../reads; cat outputs.json"]
}
//- /vpc/stack.tm
stack {
  id = "vpc"
}
//- /vpc/run.sh
echo '{"id": {"value": "vpc-s3cret", "sensitive": true}, "net": {"value": {"a": [1, "x\"${y}"]}}}' > outputs.json
//- /app/stack.tm
stack {}
//- /app/inputs.tm
input "id" {
  backend       = "default"
  from_stack_id = "vpc"
  value         = outputs.id.value
}
input "net" {
  backend       = "default"
  from_stack_id = "vpc"
  value         = outputs.net.value
  mock          = "none"
}
//- /app/run.sh
echo "$TF_VAR_id $TF_VAR_net" > got
//- /web/stack.tm
stack {}
//- /web/inputs.tm
input "id" {
  backend       = "default"
  from_stack_id = "vpc"
  value         = "web-${outputs.id.value}"
  mock          = "mocked"
}
//- /web/run.sh
echo "$TF_VAR_id" > got
"#;

const RUN: &str = "run --enable-sharing";

/// An input of `/vpc`.
const ID: &str = r#"
input "id" {
  backend       = "default"
  from_stack_id = "vpc"
  value         = outputs.id.value
}
"#;

fn got(sandbox: &Sandbox, stack: &str) -> String {
    fs::read_to_string(sandbox.path(&format!("{stack}/got"))).unwrap_or_default()
}

#[test]
fn sharing_passes_outputs_on_as_variables() {
    let sandbox = Sandbox::new(PROJECT);
    let output = sandbox.orch(&format!("{RUN} sh run.sh"));
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(
        got(&sandbox, "/app"),
        "\"vpc-s3cret\" {\n  a = [1, \"x\\\"$${y}\"]\n}\n"
    );
    assert_eq!(got(&sandbox, "/web"), "\"web-vpc-s3cret\"\n");
    // Once for both.
    assert_eq!(sandbox.read("/reads"), "read\n");
    // Nothing is left of the values.
    assert!(!output.to_string().contains("s3cret"), "{output}");
    let kept = fs::read_dir(sandbox.path("/.orch/runs")).unwrap();
    for run in kept {
        for file in fs::read_dir(run.unwrap().path()).unwrap() {
            let text = fs::read(file.unwrap().path()).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&text).contains("s3cret"));
        }
    }
}

#[test]
fn sharing_needs_its_flag() {
    let sandbox = Sandbox::new(PROJECT);
    let output = sandbox.orch("run sh run.sh");
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(got(&sandbox, "/web"), "\n");
    assert!(!sandbox.path("/reads").exists());
    // A dry run reads nothing.
    assert_eq!(
        sandbox.orch(&format!("{RUN} --dry-run sh run.sh")).code(),
        0
    );
    assert!(!sandbox.path("/reads").exists());
}

#[test]
fn sharing_reads_the_present_outputs_of_a_stack_outside_of_the_run() {
    let sandbox = Sandbox::new(PROJECT);
    sandbox.write("/vpc/outputs.json", "{\"id\": {\"value\": \"earlier\"}}");
    let output = sandbox.orch(&format!("{RUN} --match web sh run.sh"));
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(got(&sandbox, "/web"), "\"web-earlier\"\n");
}

#[test]
fn sharing_fails_the_stack_without_outputs() {
    let sandbox = Sandbox::new(PROJECT);
    sandbox.write("/vpc/run.sh", "true");
    assert_snapshot!(sandbox.orch(&format!("{RUN} --on-error continue sh run.sh")), @"
    [stderr]
    orch: /vpc: sh run.sh
    orch: /app: sh run.sh
    cat: outputs.json: No such file or directory
    orch: /web: sh run.sh
    cat: outputs.json: No such file or directory
    orch: failed /app: exit status 1 after [time]
    orch: failed /web: exit status 1 after [time]
    orch: 1 succeeded, 2 failed in [time]
    note: `/app` did not run its command: the outputs of `/vpc` could not be read
    note: `/web` did not run its command: the outputs of `/vpc` could not be read
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
    assert_eq!(got(&sandbox, "/web"), "");
    for (outputs, said) in [
        ("{\"x\": s3cret", "they are not JSON"),
        ("{}", "the input `id` has no value"),
    ] {
        sandbox.write("/vpc/outputs.json", outputs);
        let output = sandbox.orch(&format!("{RUN} --match web sh run.sh"));
        assert_eq!(output.code(), 1, "{output}");
        assert!(output.stderr.contains(said), "{output}");
        assert!(!output.stderr.contains("s3cret"), "{output}");
    }
}

#[test]
fn mock_on_fail_takes_the_place_of_missing_outputs() {
    let sandbox = Sandbox::new(PROJECT);
    let run = "run --enable-sharing --mock-on-fail --match web sh run.sh";
    for outputs in [None, Some("{}"), Some("nothing")] {
        if let Some(outputs) = outputs {
            sandbox.write("/vpc/outputs.json", outputs);
        }
        let output = sandbox.orch(run);
        assert_eq!(output.code(), 0, "{output}");
        assert_eq!(got(&sandbox, "/web"), "\"mocked\"\n");
        let said = "note: `/web` ran with the mock of its input `id`";
        assert!(output.stderr.contains(said), "{output}");
    }
    // An input without a mock still fails.
    let output = sandbox.orch("run --enable-sharing --mock-on-fail --match app sh run.sh");
    assert_eq!(output.code(), 1, "{output}");
    sandbox.write("/vpc/outputs.json", "{\"id\": {\"value\": 1}}");
    let output = sandbox.orch(run);
    assert_eq!(got(&sandbox, "/web"), "\"web-1\"\n");
    assert!(!output.stderr.contains("mock"), "{output}");
    assert_eq!(sandbox.orch("run --mock-on-fail sh run.sh").code(), 64);
}

#[test]
fn sharing_checks_inputs_before_anything_runs() {
    let sandbox = Sandbox::new(PROJECT);
    sandbox.write(
        "/web/inputs.tm",
        "input \"id\" {\n  backend = \"other\"\n  from_stack_id = \"vpc\"\n  value = 1\n}\n\
         input \"x\" {\n  backend = \"default\"\n  from_stack_id = \"nobody\"\n  value = 1\n}\n",
    );
    let output = sandbox.orch(&format!("{RUN} sh run.sh"));
    assert_eq!(output.code(), 3, "{output}");
    for said in [
        "the input `id` has no backend",
        "the input `x` comes from no stack",
    ] {
        assert!(output.stderr.contains(said), "{said}: {output}");
    }
    assert!(!sandbox.path("/vpc/outputs.json").exists());
    let sandbox = Sandbox::new(PROJECT);
    sandbox.write(
        "/sharing.tm",
        "sharing_backend \"default\" {\n  type = terraform\n  filename = \"f\"\n  command = [\"no-such\"]\n}\n",
    );
    let output = sandbox.orch(&format!("{RUN} sh run.sh"));
    assert_eq!(output.code(), 5, "{output}");
    assert!(output.stderr.contains("no-such"), "{output}");
    assert!(!sandbox.path("/vpc/outputs.json").exists());
}

#[test]
fn sharing_uses_the_environment_of_the_stack_whose_outputs_are_read() {
    let sandbox = Sandbox::new(PROJECT);
    sandbox.write(
        "/sharing.tm",
        "sharing_backend \"default\" {\n  type = terraform\n  filename = \"f\"\n  command = [\"sh\", \"-c\", \"echo {\\\\\\\"id\\\\\\\": {\\\\\\\"value\\\\\\\": \\\\\\\"$NAME\\\\\\\"}}\"]\n}\n",
    );
    sandbox.write(
        "/vpc/env.tm",
        "terramate {\n  config {\n    run {\n      env {\n        NAME = \"of-vpc\"\n      }\n    }\n  }\n}\n",
    );
    let output = sandbox.orch(&format!("{RUN} --match web sh run.sh"));
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(got(&sandbox, "/web"), "\"web-of-vpc\"\n");
}

#[test]
fn resume_shares_outputs_as_the_run_did() {
    let sandbox = Sandbox::new(PROJECT);
    sandbox.write("/app/run.sh", "exit 1");
    assert_eq!(sandbox.orch(&format!("{RUN} sh run.sh")).code(), 1);
    sandbox.write("/app/run.sh", "echo \"$TF_VAR_id\" > got");
    let output = sandbox.orch("run --resume");
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(got(&sandbox, "/app"), "\"vpc-s3cret\"\n");
    assert_eq!(got(&sandbox, "/web"), "\"web-vpc-s3cret\"\n");
}

#[test]
fn sharing_reads_once_for_stacks_that_start_at_once() {
    let sandbox = Sandbox::new(PROJECT);
    for n in 0..20 {
        sandbox.write(&format!("/web{n}/inputs.tm"), format!("stack {{}}\n{ID}"));
        sandbox.write(&format!("/web{n}/run.sh"), "echo \"$TF_VAR_id\" > got");
    }
    let output = sandbox.orch(&format!("{RUN} -j 9 sh run.sh"));
    assert_eq!(output.code(), 0, "{output}");
    for n in 0..20 {
        assert_eq!(got(&sandbox, &format!("/web{n}")), "\"vpc-s3cret\"\n");
    }
    assert_eq!(sandbox.read("/reads"), "read\n");
}

#[test]
fn sharing_passes_outputs_on_to_follow_ups() {
    let sandbox = Sandbox::new(PROJECT);
    sandbox.write("/app/run.sh", "echo \"$TF_VAR_id\" >> ../all");
    sandbox.write(
        "/vpc/run.sh",
        "echo >> ../ran; printf '{\"id\": {\"value\": %s}}' $(wc -l < ../ran) > outputs.json",
    );
    sandbox.write("/app/inputs.tm", ID);
    sandbox.write(
        "/policies.orch.hcl",
        "policy \"trigger\" \"both\" {\n  file   = \"/both.rego\"\n  attach = [\"/app\"]\n}\n",
    );
    sandbox.write(
        "/both.rego",
        "package both\n\nimport rego.v1\n\ntrigger contains id if {\n\tcount(input.workflow) == 2\n\tsome id in [\"vpc\", \"app\"]\n}\n",
    );
    let output = sandbox.orch(&format!(
        "{RUN} --policies=tracked --match app --match vpc sh run.sh"
    ));
    assert_eq!(output.code(), 0, "{output}");
    // The follow-up of `/vpc` has other outputs.
    assert_eq!(sandbox.read("/all"), "1\n2\n", "{output}");
}

#[test]
fn sharing_fails_follow_ups_that_cannot_run() {
    let sandbox = Sandbox::new(PROJECT);
    sandbox.write("/app/inputs.tm", ID);
    sandbox.write(
        "/app/script.tm",
        "script \"deploy\" {\n  job {\n    command = [\"sh\", \"run.sh\"]\n  }\n}\n",
    );
    sandbox.write("/vpc/outputs.json", "{\"id\": {\"value\": \"earlier\"}}");
    sandbox.write(
        "/policies.orch.hcl",
        "policy \"trigger\" \"web\" {\n  file   = \"/web.rego\"\n  attach = [\"/app\"]\n}\n",
    );
    sandbox.write(
        "/web.rego",
        "package web\n\nimport rego.v1\n\ntrigger contains \"web\" if count(input.workflow) == 1\n",
    );
    let run = "script run --enable-sharing --policies=tracked --match app deploy";
    let output = sandbox.orch(run);
    assert_eq!(output.code(), 1, "{output}");
    let why = "failed /web: could not be started: it does not have the script `deploy`";
    assert!(output.stderr.contains(why), "{output}");
}

#[test]
fn sharing_waits_for_no_retry_of_another_stack() {
    let sandbox = Sandbox::new(PROJECT);
    // Only the read of `/web` succeeds, which begins while that of `/app` waits for its retry.
    sandbox.write(
        "/sharing.tm",
        "sharing_backend \"default\" {\n  type     = terraform\n  filename = \"x\"\n  command  = [\"sh\", \"-c\", \"echo read >> ../reads; test $(wc -l < ../reads) = 2 && cat outputs.json\"]\n}\n",
    );
    sandbox.write("/app/inputs.tm", ID);
    sandbox.write(
        "/app/retry.orch.hcl",
        "orch {\n  config {\n    run {\n      retry {\n        attempts = 2\n        backoff  = \"1h\"\n        on_exit  = [1]\n      }\n    }\n  }\n}\n",
    );
    sandbox.write("/vpc/outputs.json", "{\"id\": {\"value\": \"earlier\"}}");
    sandbox.write("/web/run.sh", "echo $TF_VAR_id > got; kill -INT $PPID");
    let output = sandbox.orch(&format!(
        "{RUN} -j 2 --on-error continue --match app --match web sh run.sh"
    ));
    assert_eq!(output.code(), 130, "{output}");
    assert_eq!(got(&sandbox, "/web"), "\"web-earlier\"\n");
}

#[test]
fn script_option_enables_sharing() {
    let sandbox = Sandbox::new(PROJECT);
    sandbox.write(
        "/script.tm",
        "script \"go\" {\n  job {\n    commands = [\n      [\"sh\", \"-c\", \"true\"],\n      [\"sh\", \"run.sh\", { enable_sharing = true }],\n    ]\n  }\n}\n",
    );
    let output = sandbox.orch("script run go");
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(got(&sandbox, "/web"), "\"web-vpc-s3cret\"\n");
}

#[test]
fn sharing_quotes_strings_only_where_terraform_reads_an_expression() {
    let sandbox = Sandbox::new(PROJECT);
    let table = [
        ("main.tf", "variable \"id\" { type = any }", true),
        ("main.tf", "variable \"id\" { type = set(string) }", true),
        ("main.tf", "variable \"other\" {}", true),
        (
            "main.tf",
            "variable \"id\" { type = any }\nvariable \"id\" {}",
            true,
        ),
        ("main.tf", "variable \"id\" {}", false),
        ("main.tf", "variable \"id\" { type = string }", false),
        ("main.tf", "variable \"id\" { type = \"string\" }", false),
        ("main.tofu", "variable \"id\" {}", false),
        (
            "main.tf.json",
            "{\"variable\": {\"id\": {\"type\": \"any\"}}}",
            true,
        ),
        (
            "main.tf.json",
            "{\"variable\": {\"id\": {\"type\": \"string\"}}}",
            false,
        ),
        ("terragrunt.hcl", "terraform { source = \"x\" }", false),
    ];
    for (file, text, is_quoted) in table {
        let file = format!("/web/{file}");
        sandbox.write(&file, text);
        let output = sandbox.orch(&format!("{RUN} sh run.sh"));
        assert_eq!(output.code(), 0, "{output}");
        let quote = if is_quoted { "\"" } else { "" };
        let expected = format!("{quote}web-vpc-s3cret{quote}\n");
        assert_eq!(got(&sandbox, "/web"), expected, "{text}");
        fs::remove_file(sandbox.path(&file)).unwrap();
    }
}

#[test]
fn sharing_fails_a_stack_whose_variables_are_unknown() {
    let sandbox = Sandbox::new(PROJECT);
    sandbox.write("/web/main.tf", "variable \"id\" {\n");
    let output = sandbox.orch(&format!("{RUN} sh run.sh"));
    assert_eq!(output.code(), 1, "{output}");
    let why = "the input `id` has no value: `main.tf`, which may declare it, cannot be read";
    assert!(output.stderr.contains(why), "{output}");
    assert_eq!(got(&sandbox, "/web"), "");
    // Another file declares it.
    sandbox.write("/web/variables.tf", "variable \"id\" {}\n");
    let output = sandbox.orch(&format!("{RUN} sh run.sh"));
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(got(&sandbox, "/web"), "web-vpc-s3cret\n");
}
