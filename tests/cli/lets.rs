//! `lets` in `config.run`: values that a directory names for its own `env`.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Output, Sandbox};

/// A file with these `lets` and variables. The first of the `lets` is on line 5.
fn run(lets: &str, env: &str) -> String {
    let blocks = [("lets", lets), ("env", env)];
    let blocks = blocks
        .iter()
        .filter(|(_, definitions)| !definitions.is_empty());
    let blocks =
        blocks.map(|(name, definitions)| format!("      {name} {{\n{definitions}\n      }}\n"));
    let blocks: String = blocks.collect();
    format!("orch {{\n  config {{\n    run {{\n{blocks}    }}\n  }}\n}}\n")
}

/// What a command prints in a project with the stack `/a`, these `lets`, and this expression as `X`.
fn x_is(lets: &str, expression: &str) -> Output {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/run.orch.hcl", run(lets, &format!("X = {expression}")));
    sandbox.orch_with("run --quiet -- sh -c 'echo \"$X\"'", |orch| {
        orch.env("HOST", "of the host");
    })
}

#[test]
fn a_let_is_evaluated_for_each_stack() {
    let sandbox = Sandbox::layout("eu\nus");
    sandbox.write("/eu/g.tm", "globals {\n  env = \"eu\"\n}\n");
    sandbox.write("/us/g.tm", "globals {\n  env = \"us\"\n}\n");
    sandbox.write(
        "/g.tm",
        "globals {\n  regions = { eu = \"eu-west-1\", us = \"us-east-1\" }\n}\n",
    );
    let lets = "region = global.regions[global.env]\nname = \"${orch.stack.name}-${let.region}\"";
    let env = "TF_VAR_region = let.region\nAWS_REGION = let.region\nNAME = let.name";
    sandbox.write("/run.orch.hcl", run(lets, env));
    assert_snapshot!(sandbox.orch("run --quiet -- sh -c 'echo $TF_VAR_region $AWS_REGION $NAME'"), @"
    eu-west-1 eu-west-1 eu-eu-west-1
    us-east-1 us-east-1 us-us-east-1
    ");
}

#[test]
fn lets_may_use_what_variables_may_use_and_other_lets() {
    for (lets, expression, expected) in [
        ("a = env.HOST", "let.a", "of the host"),
        ("a = let.b\nb = \"later\"", "let.a", "later"),
        ("a = { b = [1, \"deep\"] }", "let.a.b[1]", "deep"),
        ("a = { b = \"key\" }\nc = \"b\"", "let[\"a\"][let.c]", "key"),
        ("a = 1\nb = 2", "\"${let.a + let.b}!\"", "3!"),
        (
            "a = \"x\"\nb = \"y\"",
            "tm_jsonencode(let)",
            "{\"a\":\"x\",\"b\":\"y\"}",
        ),
        ("a = orch.stack.path.absolute", "\"<${let.a}>\"", "</a>"),
        ("a = global.missing", "tm_try(let.a, \"none\")", "none"),
        ("a = 1", "tm_try(let.b, \"none\")", "none"),
        ("", "tm_try(let.b, \"none\")", "none"),
        ("a = global.missing\nb = \"fine\"", "let.b", "fine"),
        (
            "a = 1",
            "tm_join(\"\", [for let in [\"own\"] : let])",
            "own",
        ),
    ] {
        let output = x_is(lets, expression);
        assert_eq!(
            output.to_string(),
            format!("{expected}\n"),
            "{lets}: {expression}"
        );
    }
    // A value that is new in each call is the same in all variables of a stack.
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/run.orch.hcl",
        run("id = tm_uuid()", "A = let.id\nB = let.id"),
    );
    let output = sandbox.orch("run --quiet -- sh -c 'test -n \"$A\" && test \"$A\" = \"$B\"'");
    assert_eq!(output.code(), 0, "{output}");
}

#[test]
fn lets_belong_to_their_directory() {
    let sandbox = Sandbox::layout("a\nb\nc");
    sandbox.write(
        "/run.orch.hcl",
        run("name = \"root's\"", "X = let.name\nY = let.name"),
    );
    // A directory below does not change what the definition from above uses.
    sandbox.write("/a/run.orch.hcl", run("name = \"a's\"", "Y = let.name"));
    sandbox.write("/b/run.orch.hcl", run("other = 1", ""));
    assert_snapshot!(sandbox.orch("run --quiet -- sh -c 'echo $X, $Y'"), @"
    root's, a's
    root's, root's
    root's, root's
    ");
    sandbox.write("/c/run.orch.hcl", run("nam = 1", "Y = let.name"));
    assert_snapshot!(sandbox.orch("validate"), @"
    [stderr]
    error: no `let.name`
     --> c/run.orch.hcl:8:9
      |
    8 | Y = let.name
      |         ^^^^ not in the `lets` of this directory
      |
      = note: evaluated for stack `/c`
      = help: did you mean `nam`?
      = help: `env` sees only the `lets` of its own directory, not those above it

    [exit status 3]
    ");
}

#[test]
fn lets_of_a_directory_merge_as_its_env_does() {
    let sandbox = Sandbox::layout("a\nb");
    // Each part is in a file of its own.
    sandbox.write("/a/lets.orch.hcl", run("x = \"from a file beside\"", ""));
    sandbox.write(
        "/a/env.orch.hcl",
        run("", "X = let.x\nY = tm_try(let.y, \"no y\")"),
    );
    // A directory that imports a file may replace its lets, also for the variables of that file.
    sandbox.write(
        "/shared/run.hcl",
        run("x = \"imported\"\ny = \"imported\"", "X = let.x\nY = let.y"),
    );
    sandbox.write(
        "/b/import.tm",
        "import {\n  source = \"/shared/run.hcl\"\n}\n",
    );
    sandbox.write("/b/lets.orch.hcl", run("x = \"own\"", ""));
    assert_snapshot!(sandbox.orch("run --quiet -- sh -c 'echo $X, $Y'"), @"
    from a file beside, no y
    own, imported
    ");
    sandbox.write("/b/again.orch.hcl", run("x = \"twice\"", ""));
    assert_snapshot!(sandbox.orch("validate"), @r#"
    [stderr]
    error: `config.run.lets.x` is set twice in this directory
     --> b/lets.orch.hcl:5:1
      |
    5 | x = "own"
      | ^ again here
      |
     ::: b/again.orch.hcl:5:1
      |
    5 | x = "twice"
      | - first here
      |
      = help: remove one of them

    [exit status 3]
    "#);
}

#[test]
fn a_mistake_in_lets_names_its_place_and_where_it_is_needed() {
    assert_snapshot!(x_is("region = 1", "let.regoin"), @"
    [stderr]
    error: no `let.regoin`
     --> run.orch.hcl:8:9
      |
    8 | X = let.regoin
      |         ^^^^^^ not in the `lets` of this directory
      |
      = note: evaluated for stack `/a`
      = help: did you mean `region`?
      = help: `env` sees only the `lets` of its own directory, not those above it

    [exit status 3]
    ");
    assert_snapshot!(x_is("a = 1 / 0", "\"${let.a}\""), @r#"
    [stderr]
    error: division by zero
     --> run.orch.hcl:5:9
      |
    5 | a = 1 / 0
      |         ^ this is zero
    ...
    8 | X = "${let.a}"
      | - needed here
      |
      = note: evaluated for stack `/a`

    [exit status 3]
    "#);
    assert_snapshot!(x_is("a = \"x\"", "let.a.b"), @r#"
    [stderr]
    error: no such attribute
     --> run.orch.hcl:8:11
      |
    8 | X = let.a.b
      |           ^ attributes belong to objects; this is the string `"x"`
      |
      = note: evaluated for stack `/a`

    [exit status 3]
    "#);
}

#[test]
fn lets_that_need_each_other_are_shown_with_each_place() {
    assert_snapshot!(x_is("a = let.b\nb = \"x-${let.c}\"\nc = let.a", "let.a"), @r#"
    [stderr]
    error: lets depend on each other: `let.a`, then `let.b`, then `let.c`
      --> run.orch.hcl:5:9
       |
     5 | a = let.b
       |         ^ `let.b` is used here
     6 | b = "x-${let.c}"
       |              - `let.c` is used here
     7 | c = let.a
       |         - and here `let.a` again
    ...
    10 | X = let.a
       | - needed here
       |
       = note: evaluated for stack `/a`

    [exit status 3]
    "#);
    assert_snapshot!(x_is("a = tm_try(let.a, 1)", "let.a"), @"
    [stderr]
    error: `let.a` depends on itself
     --> run.orch.hcl:5:16
      |
    5 | a = tm_try(let.a, 1)
      | - defined here ^ used here in its own definition
    ...
    8 | X = let.a
      | - needed here
      |
      = note: evaluated for stack `/a`

    [exit status 3]
    ");
    assert_snapshot!(x_is("a = tm_jsonencode(let)", "let.a"), @"
    [stderr]
    error: `let.a` depends on itself
     --> run.orch.hcl:5:19
      |
    5 | a = tm_jsonencode(let)
      | - defined here    ^^^ used here in its own definition
    ...
    8 | X = let.a
      | - needed here
      |
      = note: evaluated for stack `/a`

    [exit status 3]
    ");
}

#[test]
fn a_long_chain_of_lets_is_an_error_not_a_crash() {
    let lets: Vec<String> = (0..2000)
        .map(|number| format!("l{number} = let.l{}", number + 1))
        .collect();
    let output = x_is(&lets.join("\n"), "let.l0");
    assert_eq!(output.code(), 3, "{output}");
    assert!(output.stderr.contains("nested"), "{output}");
}

#[test]
fn a_lets_block_holds_only_attributes() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/run.orch.hcl",
        "orch {\n  config {\n    run {\n      lets \"label\" {\n        map \"m\" {\n        }\n      }\n    }\n  }\n}\n",
    );
    assert_snapshot!(sandbox.orch("validate"), @r#"
    [stderr]
    error: a `lets` block has no labels
     --> run.orch.hcl:4:12
      |
    4 |       lets "label" {
      |            ^^^^^^^ unexpected label
      |
      = help: remove the label

    error: unknown block `map` in `lets`
     --> run.orch.hcl:5:9
      |
    4 |       lets "label" {
      |       ---- in this block
    5 |         map "m" {
      |         ^^^ not a block of `lets`

    [exit status 3]
    "#);
}

#[test]
fn let_is_known_only_in_env_and_lets() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/run.orch.hcl", run("x = 1", ""));
    assert_snapshot!(sandbox.orch("-C a eval let.x"), @"
    [stderr]
    error: `let` cannot be used outside of `run.env` and scripts
     --> expression 1:1:1
      |
    1 | let.x
      | ^^^ not available here
      |
      = help: `lets` in `config.run` names values for `env` in the same directory, and `lets` in a `script` for that script; elsewhere, use `global`

    [exit status 3]
    ");
    assert_snapshot!(sandbox.orch("run --eval -- echo '${let.x}'"), @"
    [stderr]
    error: `let` cannot be used outside of `run.env` and scripts
     --> argument 2:1:3
      |
    1 | ${let.x}
      |   ^^^ not available here
      |
      = note: evaluated for stack `/a`
      = help: `lets` in `config.run` names values for `env` in the same directory, and `lets` in a `script` for that script; elsewhere, use `global`

    [exit status 3]
    ");
    sandbox.write("/g.tm", "globals {\n  g = let.x\n}\n");
    assert_snapshot!(sandbox.orch("-C a eval global.g"), @"
    [stderr]
    error: `let` cannot be used in `globals`
     --> g.tm:2:7
      |
    2 |   g = let.x
      |       ^^^ not available here
      |
      = help: `lets` in `config.run` names values for `env` in the same directory, and `lets` in a `script` for that script; elsewhere, use `global`

    [exit status 3]
    ");
    sandbox.write("/a/stack.tm", "stack {\n  tags = [let.x]\n}\n");
    assert_snapshot!(sandbox.orch("validate"), @"
    [stderr]
    error: `let` cannot be used in a `stack` block
     --> a/stack.tm:2:11
      |
    2 |   tags = [let.x]
      |           ^^^ not available here
      |
      = help: `let` is known only in `env` and `lets` of `config.run`

    [exit status 3]
    ");
}

#[test]
fn a_password_in_a_let_appears_in_no_message() {
    for expression in [
        "let.password.x",
        "1 + let.password",
        "{ a = 1 }[let.password]",
    ] {
        let sandbox = Sandbox::layout("a");
        let env = format!("X = {expression}");
        sandbox.write("/run.orch.hcl", run("password = env.PASSWORD", &env));
        let output = sandbox.orch_with("validate", |orch| {
            orch.env("PASSWORD", "hunter2");
        });
        assert_eq!(output.code(), 3, "{output}");
        assert!(!output.to_string().contains("hunter2"), "{output}");
    }
}

#[test]
fn env_shows_which_lets_a_variable_comes_from() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/g.tm", "globals {\n  env = \"eu\"\n}\n");
    sandbox.write(
        "/run.orch.hcl",
        run(
            "long = \"${let.short}-west\"\nshort = global.env",
            "X = let.long\nY = \"1\"",
        ),
    );
    assert_snapshot!(sandbox.orch("env --why"), @"
    a:
      ORCH_ROOT=$ROOT  # set by orch
      ORCH_STACK_ID=  # set by orch
      ORCH_STACK_NAME=a  # set by orch
      ORCH_STACK_PATH=/a  # set by orch
      ORCH_STACK_TAGS=  # set by orch
      X=eu-west  # run.orch.hcl:9; let.long (run.orch.hcl:5); let.short (run.orch.hcl:6); global.env (g.tm:2)
      Y=1  # run.orch.hcl:10
    ");
    let shown = sandbox.orch("env --format json").json();
    assert_eq!(
        shown["stacks"][0]["definitions"]["X"],
        json!({
            "file": "run.orch.hcl",
            "line": 9,
            "globals": [{"name": "global.env", "file": "g.tm", "line": 2}],
            "lets": [
                {"name": "let.long", "file": "run.orch.hcl", "line": 5},
                {"name": "let.short", "file": "run.orch.hcl", "line": 6},
            ],
        })
    );
}
