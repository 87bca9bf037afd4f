//! Commands in instances, their environment, and what is recorded of them.

use insta::assert_snapshot;

use super::networks;
use crate::support::{Sandbox, journal, said};

#[test]
fn run_sets_the_key_of_each_instance() {
    let sandbox = networks();
    let show = r#"echo "$ORCH_STACK_PATH $ORCH_STACK_KEY $ORCH_STACK_NAME ${PWD#$ORCH_ROOT}""#;
    assert_snapshot!(sandbox.orch(&format!("run -q sh -c '{show}'")), @r#"
    /account["dev"] dev account /account
    /account["prod"] prod account /account
    /net["dev"] dev network dev /net
    /net["prod"] prod network prod /net
    /net/dns["dev"] dev dns /net/dns
    /net/dns["test"] test dns /net/dns
    /app  app /app
    "#);
    // A plain stack inherits no key, and the configuration cannot give it one.
    let inherited = sandbox.orch_with(
        "run -q --match app -- sh -c 'echo ${ORCH_STACK_KEY-none}'",
        |command| {
            command.env("ORCH_STACK_KEY", "outer");
        },
    );
    assert_snapshot!(inherited, @"none");
    sandbox.write(
        "/env.orch.hcl",
        "orch {\n  config {\n    run {\n      env {\n        ORCH_STACK_KEY = \"x\"\n      }\n    }\n  }\n}\n",
    );
    let show = "run -q --match app --match 'net[*]' -- sh -c 'echo ${ORCH_STACK_KEY-none}'";
    assert_snapshot!(sandbox.orch(show), @r#"
    dev
    prod
    none
    [stderr]
    warning: orch sets `ORCH_STACK_KEY` itself and ignores this value
     --> env.orch.hcl:5:9
      |
    5 |         ORCH_STACK_KEY = "x"
      |         ^^^^^^^^^^^^^^ no effect
      |
      = help: choose another name
    "#);
}

/// Networks whose environment and globals depend on the instance.
fn configured() -> Sandbox {
    let sandbox = networks();
    sandbox.write(
        "/net/env.orch.hcl",
        r#"
globals {
  region = each.value
  broken = each.nothing
}
orch {
  config {
    run {
      lets {
        folder = ".terraform/${each.key}"
      }
      env {
        TF_WORKSPACE  = each.key
        TF_DATA_DIR   = let.folder
        TF_VAR_region = global.region
      }
    }
  }
}
"#,
    );
    sandbox.write(
        "/net/dns/env.orch.hcl",
        "globals {\n  region = each.value\n}\n",
    );
    sandbox
}

#[test]
fn run_env_and_globals_know_each() {
    let sandbox = configured();
    let env = sandbox.orch("env --match net").stdout;
    let own: Vec<&str> = env
        .lines()
        .filter(|line| !line.contains(" ORCH_"))
        .collect();
    assert_snapshot!(own.join("\n"), @r#"
    net["dev"]:
      TF_DATA_DIR=.terraform/dev
      TF_VAR_region=eu-west-1
      TF_WORKSPACE=dev
    net["prod"]:
      TF_DATA_DIR=.terraform/prod
      TF_VAR_region=eu-north-1
      TF_WORKSPACE=prod
    net/dns["dev"]:
      TF_DATA_DIR=.terraform/dev
      TF_VAR_region=dev
      TF_WORKSPACE=dev
    net/dns["test"]:
      TF_DATA_DIR=.terraform/test
      TF_VAR_region=test
      TF_WORKSPACE=test
    "#);
    let why = sandbox.orch("env --why --match 'net[\"dev\"]'").stdout;
    let own: Vec<&str> = why.lines().filter(|line| line.contains("TF_")).collect();
    assert_snapshot!(own.join("\n"), @"
    TF_DATA_DIR=.terraform/dev  # net/env.orch.hcl:14; let.folder (net/env.orch.hcl:10)
    TF_VAR_region=eu-west-1  # net/env.orch.hcl:15; global.region (net/env.orch.hcl:3)
    TF_WORKSPACE=dev  # net/env.orch.hcl:13
    ");
}

#[test]
fn run_and_eval_know_each() {
    let sandbox = configured();
    assert_snapshot!(sandbox.orch("run -q --eval --match net -- echo '${each.key}: ${each.value}'"), @"
    dev: eu-west-1
    prod: eu-north-1
    dev: dev
    test: test
    ");
    assert_snapshot!(sandbox.orch("run --dry-run --eval --match 'net[*]' -- echo '${each.key}'"), @r#"
    /net["dev"]: echo dev
    /net["prod"]: echo prod
    "#);
    assert_snapshot!(sandbox.orch("run -q --eval -- echo '${each.key}'"), @"
    [stderr]
    error: `each` is available only in a stack with `for_each`
     --> argument 2:1:3
      |
    1 | ${each.key}
      |   ^^^^ no instance here
      |
      = note: evaluated for stack `/app`
      = help: add `for_each` to the `stack` block, or write `tm_try(each.key, …)` for stacks without it

    [exit status 3]
    ");
    assert_snapshot!(sandbox.orch("run -q --eval --match app -- echo '${tm_try(each.key, \"none\")}'"), @"none");
    let evaluated =
        sandbox.orch("eval --stack 'net[\"prod\"]' each orch.stack.path.absolute orch.stacks.list");
    assert_snapshot!(evaluated, @r#"
    {
      key   = "prod"
      value = "eu-north-1"
    }
    /net
    ["/account[\"dev\"]", "/account[\"prod\"]", "/app", "/net[\"dev\"]", "/net[\"prod\"]", "/net/dns[\"dev\"]", "/net/dns[\"test\"]"]
    "#);
    assert_snapshot!(sandbox.orch("globals --match 'net[\"dev\"]'"), @r#"
    net["dev"]:
      region = "eu-west-1"
      # broken has no value: no attribute `nothing`
    [stderr]
    error: no attribute `nothing`
     --> net/env.orch.hcl:4:17
      |
    4 |   broken = each.nothing
      |                 ^^^^^^^ it has no such attribute
      |
      = note: evaluated for stack `/net["dev"]`

    [exit status 3]
    "#);
    assert_snapshot!(sandbox.orch("eval --stack app each.key"), @"
    [stderr]
    error: `each` is available only in a stack with `for_each`
     --> expression 1:1:1
      |
    1 | each.key
      | ^^^^ no instance here
      |
      = help: add `for_each` to the `stack` block, or write `tm_try(each.key, …)` for stacks without it

    [exit status 3]
    ");
    assert_snapshot!(sandbox.orch("eval each.key"), @"
    [stderr]
    error: `each` is available only in a stack with `for_each`
     --> expression 1:1:1
      |
    1 | each.key
      | ^^^^ no instance here
      |
      = help: add `for_each` to the `stack` block, or write `tm_try(each.key, …)` for stacks without it

    [exit status 3]
    ");
}

/// Fails in `/net["dev"]`.
const FAILING: &str =
    r#"-- sh -c 'echo "in $ORCH_STACK_PATH"; test "$ORCH_STACK_PATH" != "/net[\"dev\"]"'"#;

#[test]
fn run_skips_dependents_of_a_failed_instance() {
    let sandbox = networks();
    assert_snapshot!(sandbox.orch(&format!("run -q --on-error skip-dependents {FAILING}")), @r#"
    in /account["dev"]
    in /account["prod"]
    in /net["dev"]
    in /net["prod"]
    [stderr]
    orch: skipped /net/dns["dev"]: runs after /net["dev"], which failed
    orch: skipped /net/dns["test"]: runs after /net["dev"], which failed
    orch: skipped /app: runs after /net["dev"], which failed
    orch: failed /net["dev"]: exit status 1 after [time]
    orch: 3 succeeded, 1 failed, 3 skipped in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    "#);
}

#[test]
fn runs_commands_and_logs_name_instances() {
    let sandbox = networks();
    let output = sandbox.orch(&format!(
        "run -q -j 2 --on-error continue --match net --match app {FAILING}"
    ));
    assert_eq!(output.code(), 1, "{output}");
    let show = sandbox.orch("runs show");
    let stacks: Vec<&str> = show
        .stdout
        .lines()
        .skip_while(|line| !line.is_empty())
        .collect();
    let names: Vec<&str> = stacks
        .iter()
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_snapshot!(names.join("\n"), @r#"
    failed     /net["dev"]
    succeeded  /net["prod"]
    succeeded  /net/dns["dev"]
    succeeded  /net/dns["test"]
    succeeded  /app
    "#);
    let logs = |arguments: &str| said(&sandbox, &sandbox.orch(&format!("runs logs {arguments}")));
    assert_snapshot!(logs("last net"), @r#"
    in /net["dev"]
    in /net["prod"]
    [stderr]
    orch: /net["dev"]
    orch: /net["prod"]
    "#);
    assert_snapshot!(logs("last '/net[\"prod\"]' app"), @r#"
    in /net["prod"]
    in /app
    [stderr]
    orch: /net["prod"]
    orch: /app
    "#);
    assert_snapshot!(logs("last 'net[*]' --failed"), @r#"
    in /net["dev"]
    [stderr]
    orch: /net["dev"]
    "#);
    assert_snapshot!(logs("-C net last '[\"prod\"]' 'dns[*]'"), @r#"
    in /net["prod"]
    in /net/dns["dev"]
    in /net/dns["test"]
    [stderr]
    orch: /net["prod"]
    orch: /net/dns["dev"]
    orch: /net/dns["test"]
    "#);
    assert_snapshot!(logs("last net[dev]"), @r#"
    [stderr]
    error: `net[dev]`: the quotes around the key are missing; in a shell, write `'net["dev"]'`
    [exit status 64]
    "#);
    assert_snapshot!(logs("last 'net[\"none\"]'"), @r#"
    [stderr]
    error: `/net["none"]` is not a stack of run <run 1>; did you mean `/net["dev"]`?
    [exit status 64]
    "#);
    let entries = journal(&sandbox);
    assert_eq!(entries[0]["order"][0], "/net[\"dev\"]");
    assert!(
        entries
            .iter()
            .any(|it| it["event"] == "ended" && it["stack"] == "/net[\"dev\"]")
    );
    // Each has a log of its own.
    let logs = std::fs::read_dir(sandbox.path(&format!(
        "/.orch/runs/{}/logs",
        entries[0]["run"].as_str().unwrap()
    )));
    assert_eq!(logs.unwrap().count(), 5);
}

#[test]
fn resume_continues_with_single_instances() {
    let sandbox = networks();
    let failed = sandbox.orch(&format!("run -q {FAILING}"));
    assert_eq!(failed.code(), 1, "{failed}");
    let resumed = sandbox.orch("run -q --resume --dry-run");
    assert_snapshot!(said(&sandbox, &resumed), @r#"
    /net["dev"]: sh -c 'echo "in $ORCH_STACK_PATH"; test "$ORCH_STACK_PATH" != "/net[\"dev\"]"'
    /net["prod"]: sh -c 'echo "in $ORCH_STACK_PATH"; test "$ORCH_STACK_PATH" != "/net[\"dev\"]"'
    /net/dns["dev"]: sh -c 'echo "in $ORCH_STACK_PATH"; test "$ORCH_STACK_PATH" != "/net[\"dev\"]"'
    /net/dns["test"]: sh -c 'echo "in $ORCH_STACK_PATH"; test "$ORCH_STACK_PATH" != "/net[\"dev\"]"'
    /app: sh -c 'echo "in $ORCH_STACK_PATH"; test "$ORCH_STACK_PATH" != "/net[\"dev\"]"'
    "#);
    assert_snapshot!(said(&sandbox, &sandbox.orch("run -q --resume --only-failed")), @r#"
    in /net["dev"]
    [stderr]
    note: 4 stacks of run <run 1> were skipped, cancelled or interrupted, and are left out; to run them too, use `orch run --resume`
    orch: failed /net["dev"]: exit status 1 after [time]
    orch: 0 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    "#);
    // An instance that is gone does not count as done.
    sandbox.write(
        "/net/stack.orch.hcl",
        "stack {\n  for_each = [\"prod\"]\n}\n",
    );
    assert_snapshot!(said(&sandbox, &sandbox.orch("run -q --resume")), @"
    [stderr]
    error: run <run 2> cannot be resumed: the graph has changed: stacks, nesting, `after` or `before` are different
      = help: start a new run, or resume this one anyway with `--allow-stale`
    [exit status 4]
    ");
}

#[test]
fn reports_name_instances() {
    let sandbox = networks();
    let reports = "--report r.xml --report r.md --report r.html --report r.json --report t.csv --events e.jsonl";
    let output = sandbox.orch(&format!(
        "run -q -j 2 --on-error continue --match net --match app {reports} {FAILING}"
    ));
    assert_eq!(output.code(), 1, "{output}");
    let xml = sandbox.read("/r.xml");
    assert!(
        xml.contains("<testcase name=\"/net[&quot;dev&quot;]\""),
        "{xml}"
    );
    let markdown = sandbox.read("/r.md");
    assert!(
        markdown.contains("| `/net[\"dev\"]` | failed |"),
        "{markdown}"
    );
    let html = sandbox.read("/r.html");
    assert!(html.contains(r#"net[\"dev\"]"#), "{html}");
    let data: serde_json::Value = serde_json::from_str(&sandbox.read("/r.json")).unwrap();
    let stacks = data["stacks"].as_array().unwrap();
    assert!(
        stacks.iter().any(|it| it["path"] == "/net[\"dev\"]"),
        "{data}"
    );
    let csv = sandbox.read("/t.csv");
    assert!(csv.contains("net[\"\"dev\"\"]"), "{csv}");
    let events = sandbox.read("/e.jsonl");
    assert!(
        events.contains(r#""event":"started","stack":"/net[\"dev\"]""#),
        "{events}"
    );
}

#[test]
fn run_block_applies_to_each_instance() {
    let sandbox = Sandbox::new(
        r#"
//- /t/stack.orch.hcl
stack {
  for_each = ["a", "b"]
  run {
    retry {
      attempts = 2
      on_exit  = [1]
      backoff  = "0s"
    }
  }
}
"#,
    );
    let once = r#"test -e "$ORCH_STACK_KEY" || { touch "$ORCH_STACK_KEY"; exit 1; }"#;
    assert_snapshot!(sandbox.orch(&format!("run -q -- sh -c '{once}'")), @r#"
    [stderr]
    orch: /t["a"]: attempt 1 failed: exit status 1 after [time]; the next one in [time]
    orch: /t["b"]: attempt 1 failed: exit status 1 after [time]; the next one in [time]
    "#);
}

#[test]
fn run_limits_count_instances_by_tag() {
    let sandbox = Sandbox::new(
        r#"
//- /t/stack.orch.hcl
stack {
  for_each = ["a", "b", "c"]
  tags     = each.key == "c" ? [] : ["limited"]
}
"#,
    );
    // Two at once would collide over the directory.
    let alone = r#"test -z "$ORCH_STACK_TAGS" && exit; for n in $(seq 100); do mkdir busy && rmdir busy || exit 1; done"#;
    let output = sandbox.orch(&format!("run -q -j 3 --limit limited=1 -- sh -c '{alone}'"));
    assert_snapshot!(output, @"");
}

#[test]
fn run_passes_unusual_keys_unchanged() {
    let sandbox = Sandbox::new("");
    let keys = [
        "a b", "$HOME", "a\\b", "*", "ä", "%n", ":", "a=b", "-x", "..", "#",
    ];
    let list = serde_json::to_string(&keys).unwrap();
    sandbox.write("/t/keys.json", list);
    sandbox.write(
        "/t/stack.orch.hcl",
        "stack {\n  for_each = tm_jsondecode(tm_file(\"keys.json\"))\n}\n",
    );
    let output = sandbox
        .orch("run -q -j 2 -- sh -c 'printf \"%s\\n\" \"$ORCH_STACK_KEY\" \"$ORCH_STACK_PATH\"'");
    assert_eq!(output.code(), 0, "{output}");
    for key in keys {
        assert!(
            output.stdout.contains(&format!("{key}\n/t[\"{key}\"]\n")),
            "{key}: {output}"
        );
        let logs = sandbox.orch_with("runs logs last", |command| {
            command.arg(format!("t[\"{key}\"]"));
        });
        assert_eq!(logs.stdout, format!("{key}\n/t[\"{key}\"]\n"), "{key}");
    }
}
