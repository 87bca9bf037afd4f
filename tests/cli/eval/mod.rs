//! `orch eval`, and `orch env --why`, which shows where values come from.

mod run;

use insta::assert_snapshot;
use serde_json::json;

use crate::support::Sandbox;

/// Two stacks and some globals.
fn project() -> Sandbox {
    let sandbox = Sandbox::layout("st [infra prod]\nst/c");
    sandbox.write("/st/id.orch.hcl", "stack {\n  id = \"stackid\"\n}\n");
    sandbox.write(
        "/g.tm",
        r#"
globals {
  env    = "prod"
  n      = 5
  yes    = true
  nul    = null
  list   = ["a", "b"]
  o      = { x = 1 }
  prog   = "echo"
  broken = global.missing
  user   = global.broken
}
"#,
    );
    sandbox.write("/st/c/g.tm", "globals {\n  env = \"child\"\n}\n");
    sandbox
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[test]
fn eval_takes_expressions_that_begin_with_a_minus() {
    let sandbox = project();
    assert_snapshot!(sandbox.orch("eval '-7 % 3' 1 '-(2 + 3)' --as-json"), @"
    -1
    1
    -5
    ");
    let refused = sandbox.orch("eval --globl region=1 '-7 % 3'");
    assert_eq!(refused.code(), 64, "{refused}");
    assert!(refused.stderr.contains("--globl"), "{refused}");
}

#[test]
fn eval_prints_values_like_terramate() {
    let sandbox = project();
    let expressions = "'\"lit ${global.env}\"' global.n '[1,\"x\"]' true null 1.50 '\"multi\\nline\"' '{a=1, \"b c\"=[1,{}]}' '{}' 'true && false' '[1,1+0,5+3]' '\"E%2BkKhZA%3D\"' -1";
    assert_snapshot!(sandbox.orch(&format!("eval {expressions}")), @r#"
    lit prod
    5
    [1, "x"]
    true
    null
    1.5
    multi
    line
    {
      a     = 1
      "b c" = [1, {}]
    }
    {}
    false
    [1, 1, 8]
    E%2BkKhZA%3D
    -1
    "#);
    assert_snapshot!(sandbox.orch(&format!("experimental eval --as-json {expressions} '\"<&>\"'")), @r#"
    "lit prod"
    5
    [1,"x"]
    true
    null
    1.5
    "multi\nline"
    {"a":1,"b c":[1,{}]}
    {}
    false
    [1,1,8]
    "E%2BkKhZA%3D"
    -1
    "\u003c\u0026\u003e"
    "#);
}

#[test]
fn eval_works_for_a_stack_or_a_directory() {
    let sandbox = project();
    for (directory, line, expected) in [
        (
            "/st",
            "eval '\"stack path: ${terramate.stack.path.absolute}\"'",
            "stack path: /st\n",
        ),
        (
            "/",
            "eval --stack st global.env orch.stack.name",
            "prod\nst\n",
        ),
        ("/", "eval --stack /st/c global.env", "child\n"),
        (
            "/st/c",
            "eval terramate.stack.parent.tags",
            "[\"infra\", \"prod\"]\n",
        ),
        ("/", "eval global.env", "prod\n"),
        (
            "/",
            "experimental get-config-value terramate.stacks.list",
            "[\"/st\", \"/st/c\"]\n",
        ),
    ] {
        let output = sandbox.orch_in(directory, line);
        assert_eq!(output.stdout, expected, "{line}: {output}");
    }
    assert_snapshot!(sandbox.orch("eval global.env orch.stack.name global.n"), @"
    prod
    5
    [stderr]
    error: `/` is not a stack
     --> expression 2:1:1
      |
    1 | orch.stack.name
      | ^^^^^^^^^^^^^^^ only a stack has this
      |
      = help: evaluate it in a stack, or choose one with `--stack`

    [exit status 3]
    ");
    assert_snapshot!(sandbox.orch("eval --stack nowhere global.env"), @"
    [stderr]
    error: `nowhere`: does not exist
    [exit status 64]
    ");
}

#[test]
fn eval_takes_globals_from_the_command_line() {
    let sandbox = project();
    for (flags, expression, expected) in [
        ("-g value='\"BBB\"'", "global.value", "BBB"),
        ("--global env='\"AAA\"'", "global.env", "AAA"),
        ("--global broken=1", "global.user", "1"),
        (
            "-g leaf='\"leaf\"' -g mid='\"mid-${global.leaf}\"' -g root='\"root-${global.mid}\"'",
            "global.root",
            "root-mid-leaf",
        ),
        ("-g o.y=2", "global.o == { x = 1, y = 2 }", "true"),
        ("-g o.x=2", "global.o.x", "2"),
        (
            "-g o.x=2 -g 'o={ z = 3 }'",
            "global.o == { x = 2, z = 3 }",
            "true",
        ),
        ("-g 'new.deep.x=[1,2]'", "global.new.deep.x", "[1, 2]"),
        ("-g a=terramate.stack.name", "global.a", "st"),
        ("-g n=unset", "tm_try(global.n, \"gone\")", "gone"),
        ("-g n=1 -g n=2", "global.n", "2"),
        ("-g 'n = 1 + 1'", "global.n", "2"),
    ] {
        let line = format!("eval {flags} {}", quoted(expression));
        let output = sandbox.orch_in("/st", &line);
        assert_eq!(output.stdout.trim_end(), expected, "{line}: {output}");
    }
    for wrong in ["a", "a=", "=1", "'bad name=1'", "global..a=1"] {
        let output = sandbox.orch(&format!("eval -g {wrong} 1"));
        assert_eq!(output.code(), 64, "{wrong}: {output}");
    }
    assert_snapshot!(sandbox.orch("eval -g 'a=1 +' -g b=nothing global.b"), @"
    [stderr]
    error: syntax error
     --> global a:1:2
      |
    1 | 1 +
      |  ^ unexpected token

    [exit status 3]
    ");
    assert_snapshot!(sandbox.orch("eval -g b=nothing global.b"), @r#"
    [stderr]
    error: unknown name `nothing`
     --> global b:1:1
      |
    1 | nothing
      | ^^^^^^^ this name is not defined here
      |
      = help: if it is text, put it in quotes: `"nothing"`

    [exit status 3]
    "#);
}

#[test]
fn eval_points_at_mistakes_in_expressions() {
    let sandbox = project();
    assert_snapshot!(sandbox.orch("eval '1 +' global.nope '\"a\" \"b\"' global.n"), @r#"
    5
    [stderr]
    error: syntax error
     --> expression 1:1:2
      |
    1 | 1 +
      |  ^ unexpected token

    error: no global `nope`
     --> expression 2:1:8
      |
    1 | global.nope
      |        ^^^^ not defined for this stack or a directory above it

    error: syntax error
     --> expression 3:1:4
      |
    1 | "a" "b"
      |    ^ unexpected token

    [exit status 3]
    "#);
    assert_eq!(sandbox.orch("eval").code(), 64);
    assert_snapshot!(sandbox.orch("experimental partial-eval --anything 'foo.bar'"), @"
    [stderr]
    error: orch has no partial evaluation, which only code generation needs
      = help: `orch eval` evaluates whole expressions
    [exit status 64]
    ");
}

#[test]
fn eval_prints_values_and_problems_in_one_json_document() {
    let sandbox = project();
    let output = sandbox.orch_in(
        "/st",
        "eval --format json global.o 12345678901234567890 global.nope null",
    );
    assert_eq!(output.code(), 3, "{output}");
    let data = output.data();
    assert_eq!(data["path"], "/st");
    assert_eq!(data["stacks"], json!([{"path": "/st"}]));
    let expected = json!([
        {"expression": "global.o", "valid": true, "value": {"x": 1}},
        {"expression": "12345678901234567890", "valid": true, "value": 12_345_678_901_234_567_890_u64},
        {"expression": "global.nope", "valid": false, "value": null},
        {"expression": "null", "valid": true, "value": null},
    ]);
    assert_eq!(data["expressions"], expected);
    assert_eq!(data["diagnostics"][0]["file"], "expression 3");
}

#[test]
fn env_shows_where_variables_come_from() {
    let sandbox = project();
    sandbox.write(
        "/env.tm",
        "terramate {\n  config {\n    run {\n      env {\n        A = \"${global.env}-${global.n}\"\n        B = null\n        C = \"c\"\n        D = global.user\n      }\n    }\n  }\n}\n",
    );
    sandbox.write("/fix.tm", "globals {\n  missing = \"fixed\"\n}\n");
    assert_snapshot!(sandbox.orch("env --why --match st"), @"
    st:
      A=prod-5  # env.tm:5; global.env (g.tm:3); global.n (g.tm:4)
      B is removed  # env.tm:6
      C=c  # env.tm:7
      D=fixed  # env.tm:8; global.user (g.tm:11); global.broken (g.tm:10); global.missing (fix.tm:2)
      ORCH_ROOT=$ROOT  # set by orch
      ORCH_STACK_ID=stackid  # set by orch
      ORCH_STACK_NAME=st  # set by orch
      ORCH_STACK_PATH=/st  # set by orch
      ORCH_STACK_TAGS=infra,prod  # set by orch
    st/c:
      A=child-5  # env.tm:5; global.env (st/c/g.tm:2); global.n (g.tm:4)
      B is removed  # env.tm:6
      C=c  # env.tm:7
      D=fixed  # env.tm:8; global.user (g.tm:11); global.broken (g.tm:10); global.missing (fix.tm:2)
      ORCH_ROOT=$ROOT  # set by orch
      ORCH_STACK_ID=  # set by orch
      ORCH_STACK_NAME=c  # set by orch
      ORCH_STACK_PATH=/st/c  # set by orch
      ORCH_STACK_TAGS=  # set by orch
    ");
    let output = sandbox.orch("env --format json --match st");
    assert_snapshot!(output.json()["stacks"][0]["definitions"], @r#"{"A":{"file":"env.tm","globals":[{"file":"g.tm","line":3,"name":"global.env"},{"file":"g.tm","line":4,"name":"global.n"}],"lets":[],"line":5},"B":{"file":"env.tm","globals":[],"lets":[],"line":6},"C":{"file":"env.tm","globals":[],"lets":[],"line":7},"D":{"file":"env.tm","globals":[{"file":"g.tm","line":11,"name":"global.user"},{"file":"g.tm","line":10,"name":"global.broken"},{"file":"fix.tm","line":2,"name":"global.missing"}],"lets":[],"line":8}}"#);
    sandbox.remove("/fix.tm");
    assert_snapshot!(sandbox.orch("debug show runtime-env --match st"), @"
    [stderr]
    error: no global `missing`
      --> g.tm:10:19
       |
    10 |   broken = global.missing
       |                   ^^^^^^^ not defined for this stack or a directory above it
       |
      ::: env.tm:8:9
       |
     8 |         D = global.user
       |         - needed here
       |
       = note: evaluated for stack `/st` and 1 more

    [exit status 3]
    ");
}

#[test]
fn eval_keeps_line_ends_in_heredocs() {
    let sandbox = Sandbox::layout("a");
    let files =
        "globals {\n  flush = <<-EOT\n    x\n\n      y\n  EOT\n  plain = <<EOT\nx\nEOT\n}\n";
    sandbox.write("/globals.tm", files.replace('\n', "\r\n"));
    let output = sandbox.orch("eval --as-json global.flush global.plain");
    assert_snapshot!(output, @r#"
    "x\r\n\r\n  y\r\n"
    "x\r\n"
    "#);
}
