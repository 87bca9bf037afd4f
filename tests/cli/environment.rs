//! `run.env`, `orch env`, the namespaces of expressions.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Output, Sandbox};

/// A block that sets these variables.
fn env(definitions: &str) -> String {
    let lines = definitions.trim().replace('\n', "\n        ");
    format!(
        "terramate {{\n  config {{\n    run {{\n      env {{\n        {lines}\n      }}\n    }}\n  }}\n}}\n"
    )
}

/// What `orch run` says to a project with the stack `/a`, whose `X` is this expression.
fn x_is(expression: &str) -> Output {
    let sandbox = Sandbox::layout("a [t1 t2]");
    sandbox.write("/env.tm", env(&format!("X = {expression}")));
    sandbox.orch_with("run --quiet -- sh -c 'echo \"$X\"'", |orch| {
        orch.env("HOST", "of the host");
    })
}

#[test]
fn environment_includes_that_of_the_host() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox.orch_with("run --quiet -- sh -c 'echo $HOST'", |orch| {
        orch.env("HOST", "of the host");
    });
    assert_snapshot!(output, @"of the host");
}

#[test]
fn environment_describes_the_stack() {
    let sandbox = Sandbox::new(
        r#"
//- /a/b/stack.tm
stack {
  id   = "B-1"
  name = "the b"
  tags = ["x", "y"]
}
"#,
    );
    let output =
        sandbox.orch("run --quiet -- sh -c 'env | grep ^ORCH_ | grep -v ^ORCH_RUN_ID= | sort'");
    assert_snapshot!(output, @"
    ORCH_ROOT=$ROOT
    ORCH_STACK_ID=B-1
    ORCH_STACK_NAME=the b
    ORCH_STACK_PATH=/a/b
    ORCH_STACK_TAGS=x,y
    ");
}

#[test]
fn environment_variables_of_missing_values_are_empty() {
    let sandbox = Sandbox::layout("/");
    let output = sandbox.orch_with(
        "run --quiet -- sh -c 'echo \"[$ORCH_STACK_PATH][$ORCH_STACK_ID][$ORCH_STACK_TAGS]\"'",
        |orch| {
            orch.env("ORCH_STACK_ID", "of an outer run");
        },
    );
    assert_snapshot!(output, @"[/][][]");
}

#[test]
fn environment_has_the_unique_id_of_the_run() {
    let sandbox = Sandbox::layout(
        "
        a
        b",
    );
    let ids = || {
        let output = sandbox.orch("run --quiet -- sh -c 'echo $ORCH_RUN_ID'");
        let ids: Vec<String> = output.stdout.lines().map(str::to_owned).collect();
        assert!(!ids[0].is_empty());
        assert_eq!(ids[0], ids[1]);
        ids[0].clone()
    };
    assert_ne!(ids(), ids());
}

#[test]
fn environment_takes_the_nearest_definition() {
    let sandbox = Sandbox::layout(
        "
        a
        a/b
        a/b/c
        d",
    );
    sandbox.write("/env.tm", env("X = \"root\"\nY = \"root\""));
    sandbox.write("/a/env.tm", env("X = \"a\""));
    sandbox.write("/a/b/c/env.tm", env("X = \"c\""));
    assert_snapshot!(sandbox.orch("run --quiet -- sh -c 'echo $ORCH_STACK_PATH $X $Y'"), @"
    /a a root
    /a/b a root
    /a/b/c c root
    /d root root
    ");
}

#[test]
fn null_and_unset_remove_a_variable_from_there_down() {
    let sandbox = Sandbox::layout(
        "
        a
        a/again
        b
        c",
    );
    sandbox.write("/env.tm", env("X = \"root\""));
    sandbox.write("/a/env.tm", env("X = null"));
    sandbox.write("/a/again/env.tm", env("X = \"again\""));
    sandbox.write("/b/env.tm", env("X = unset"));
    assert_snapshot!(sandbox.orch("run --quiet -- sh -c 'echo $ORCH_STACK_PATH ${X-none}'"), @"
    /a none
    /a/again again
    /b none
    /c root
    ");
}

#[test]
fn environment_may_override_and_remove_host_variables() {
    let sandbox = Sandbox::layout(
        "
        a
        b
        c",
    );
    sandbox.write("/a/env.tm", env("HOST = \"of a\""));
    sandbox.write("/b/env.tm", env("HOST = null"));
    let output = sandbox.orch_with(
        "run --quiet -- sh -c 'echo $ORCH_STACK_PATH ${HOST-none}'",
        |orch| {
            orch.env("HOST", "of the host");
        },
    );
    assert_snapshot!(output, @"
    /a of a
    /b none
    /c of the host
    ");
}

#[test]
fn run_env_cannot_change_what_the_command_knows_of_its_stack() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/env.tm",
        env("ORCH_STACK_PATH = \"/elsewhere\"\nORCH_RUN_ID = \"mine\""),
    );
    let output =
        sandbox.orch("run --quiet -- sh -c 'echo $ORCH_STACK_PATH; test \"$ORCH_RUN_ID\" != mine'");
    assert_snapshot!(output, @r#"
    /a
    [stderr]
    warning: orch sets `ORCH_STACK_PATH` itself and ignores this value
     --> env.tm:5:9
      |
    5 |         ORCH_STACK_PATH = "/elsewhere"
      |         ^^^^^^^^^^^^^^^ no effect
      |
      = help: choose another name

    warning: orch sets `ORCH_RUN_ID` itself and ignores this value
     --> env.tm:6:9
      |
    6 |         ORCH_RUN_ID = "mine"
      |         ^^^^^^^^^^^ no effect
      |
      = help: choose another name
    "#);
}

#[test]
fn environment_applies_imported_definitions_where_they_are_imported() {
    let sandbox = Sandbox::layout(
        "
        a
        a/b
        c",
    );
    sandbox.write("/shared/env.hcl", env("X = \"imported\"\nY = \"imported\""));
    sandbox.write(
        "/a/import.tm",
        "import {\n  source = \"/shared/env.hcl\"\n}\n".to_owned() + &env("Y = \"local\""),
    );
    assert_snapshot!(sandbox.orch("run --quiet -- sh -c 'echo $ORCH_STACK_PATH ${X-none} ${Y-none}'"), @"
    /a imported local
    /a/b imported local
    /c none none
    ");
}

#[test]
fn blocks_of_a_directory_merge_and_terramate_and_orch_are_one() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/env.tm", env("X = \"1\"") + &env("Y = \"2\""));
    sandbox.write(
        "/more.orch.hcl",
        env("Z = \"3\"").replace("terramate", "orch"),
    );
    assert_snapshot!(sandbox.orch("run --quiet -- sh -c 'echo $X $Y $Z'"), @"1 2 3");
    sandbox.write("/twice.tm", env("X = \"4\""));
    assert_snapshot!(sandbox.orch("env"), @r#"
    [stderr]
    error: `config.run.env.X` is set twice in this directory
     --> twice.tm:5:9
      |
    5 |         X = "4"
      |         ^ again here
      |
     ::: env.tm:5:9
      |
    5 |         X = "1"
      |         - first here
      |
      = help: remove one of them

    [exit status 3]
    "#);
}

#[test]
fn expressions_know_the_stack() {
    let expected = [
        ("terramate.stack.name", "a"),
        ("terramate.stack.path.absolute", "/a"),
        ("terramate.stack.path.relative", "a"),
        ("terramate.stack.path.basename", "a"),
        ("terramate.stack.path.to_root", ".."),
        ("terramate.stack.description", ""),
        ("terramate.stack.tags[1]", "t2"),
        ("terramate.path", "/a"),
        ("terramate.name", "a"),
        ("orch.stack.path.absolute", "/a"),
        ("terramate.root.path.fs.basename", "project"),
        ("terramate.root.path.fs.absolute", "$ROOT"),
        ("terramate.stacks.list[0]", "/a"),
        ("env.HOST", "of the host"),
        ("env[\"HOST\"]", "of the host"),
    ];
    for (expression, value) in expected {
        let output = x_is(expression);
        assert_eq!(output.to_string(), format!("{value}\n"), "{expression}");
        let output = x_is(&format!("\"<${{{expression}}}>\""));
        assert_eq!(output.to_string(), format!("<{value}>\n"), "{expression}");
    }
}

#[test]
fn environment_of_the_root_stack_has_a_basename() {
    let sandbox = Sandbox::new("//- /stack.tm\nstack {\n}\n");
    let output = sandbox.orch("eval orch.stack.path.basename orch.stack.path.to_root");
    assert_eq!(output.to_string(), "/\n.\n");
}

#[test]
fn expressions_know_the_stack_above() {
    let sandbox = Sandbox::new(
        r#"
//- /p/stack.tm
stack {
  id   = "parent-1"
  tags = ["up"]
}
//- /p/plain/c/stack.tm
stack {
}
"#,
    );
    sandbox.write(
        "/p/plain/c/env.tm",
        env("X = \"${terramate.stack.parent.id} ${terramate.stack.parent.tags[0]} ${terramate.stack.path.to_root}\""),
    );
    assert_snapshot!(sandbox.orch("-C p/plain run --quiet -- sh -c 'echo $X'"), @"parent-1 up ../../..");
}

#[test]
fn environment_cannot_use_missing_values_of_a_stack() {
    assert_snapshot!(x_is("terramate.stack.id"), @"
    [stderr]
    error: no attribute `id`
     --> env.tm:5:29
      |
    5 |         X = terramate.stack.id
      |                             ^^ it has no such attribute
      |
      = note: evaluated for stack `/a`

    [exit status 3]
    ");
    assert_eq!(x_is("terramate.stack.parent.id").code(), 3);
}

#[test]
fn environment_with_a_missing_host_variable_is_an_error() {
    assert_snapshot!(x_is("\"${env.MISSING}\""), @r#"
    [stderr]
    error: the environment has no variable `MISSING`
     --> env.tm:5:20
      |
    5 |         X = "${env.MISSING}"
      |                    ^^^^^^^ `env` is the environment that orch was started in
      |
      = note: evaluated for stack `/a`
      = help: set `MISSING` before running orch

    [exit status 3]
    "#);
}

#[test]
fn environment_reports_an_inherited_mistake_once() {
    let sandbox = Sandbox::layout("a\nb\nc\nd");
    sandbox.write("/env.tm", env("X = global.naem\nY = \"${global.bad}\""));
    // A mistake in a global is one mistake, however many variables use it; another place is another.
    sandbox.write(
        "/globals.tm",
        "globals {\n  bad = [global.worse]\n  worse = 1 / 0\n}\n",
    );
    sandbox.write("/d/env.tm", env("X = global.naem"));
    let shown = sandbox.orch("validate");
    assert_snapshot!(shown, @r#"
    [stderr]
    error: no global `naem`
     --> d/env.tm:5:20
      |
    5 |         X = global.naem
      |                    ^^^^ not defined for this stack or a directory above it
      |
      = note: evaluated for stack `/d`

    error: no global `naem`
     --> env.tm:5:20
      |
    5 |         X = global.naem
      |                    ^^^^ not defined for this stack or a directory above it
      |
      = note: evaluated for stack `/a` and 2 more

    error: division by zero
     --> globals.tm:3:15
      |
    3 |   worse = 1 / 0
      |               ^ this is zero
      |
     ::: env.tm:6:9
      |
    6 |         Y = "${global.bad}"
      |         - needed here
      |
      = note: evaluated for stack `/a` and 3 more

    [exit status 3]
    "#);
}

#[test]
fn env_is_the_host_and_not_run_env() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/env.tm", env("A = \"set here\"\nB = env.A"));
    assert_eq!(sandbox.orch("env").code(), 3);
}

#[test]
fn environment_variables_must_be_strings() {
    assert_snapshot!(x_is("5"), @r#"
    [stderr]
    error: `run.env.X` must be a string
     --> env.tm:5:13
      |
    5 |         X = 5
      |             ^ this is a number
      |
      = note: evaluated for stack `/a`
      = help: convert it: `tm_tostring(…)` a number or a bool, `tm_jsonencode(…)` anything else

    [exit status 3]
    "#);
    for wrong in ["true", "[\"a\"]", "{ a = 1 }", "terramate.stack.tags"] {
        assert_eq!(x_is(wrong).code(), 3, "{wrong}");
    }
}

#[test]
fn environment_suggests_a_name_for_a_misspelled_one() {
    assert_snapshot!(x_is("terrmate.stack.name"), @"
    [stderr]
    error: unknown name `terrmate`
     --> env.tm:5:13
      |
    5 |         X = terrmate.stack.name
      |             ^^^^^^^^ this name is not defined here
      |
      = note: evaluated for stack `/a`
      = help: did you mean `terramate`?

    [exit status 3]
    ");
    assert_snapshot!(x_is("terramate.stack.nam"), @"
    [stderr]
    error: no attribute `nam`
     --> env.tm:5:29
      |
    5 |         X = terramate.stack.nam
      |                             ^^^ it has no such attribute
      |
      = note: evaluated for stack `/a`
      = help: did you mean `name`?

    [exit status 3]
    ");
}

#[test]
fn globals_are_inherited_overridden_and_unset() {
    let sandbox = Sandbox::new(
        r#"
//- /globals.tm
globals {
  region = "eu"
  name   = "${global.region}-${terramate.stack.name}"
  kept   = "root"
}
globals "nested" "deep" {
  value = "v"
}
//- /env.tm
terramate {
  config {
    run {
      env {
        X = "${global.name} ${global.nested.deep.value} ${global.kept}"
      }
    }
  }
}
//- /a/stack.tm
stack {
}
//- /b/stack.tm
stack {
}
globals {
  region = "us"
}
//- /c/stack.tm
stack {
}
globals {
  kept = unset
}
"#,
    );
    assert_snapshot!(sandbox.orch("-C a run -q -- sh -c 'echo $X'"), @"eu-a v root");
    assert_snapshot!(sandbox.orch("-C b run -q -- sh -c 'echo $X'"), @"us-b v root");
    let output = sandbox.orch("-C c run -q -- sh -c 'echo $X'");
    assert_eq!(output.code(), 3);
    assert!(output.stderr.contains("`global.kept` is unset"), "{output}");
    // It is no misspelling of itself.
    assert!(!output.stderr.contains("did you mean"), "{output}");
}

#[test]
fn environment_evaluates_only_globals_in_use() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/globals.tm",
        "globals {\n  broken = tm_nothing(1)\n  fine   = \"x\"\n}\n",
    );
    sandbox.write("/env.tm", env("X = global.fine"));
    assert_snapshot!(sandbox.orch("run -q -- sh -c 'echo $X'"), @"x");
}

#[test]
fn globals_that_need_each_other_are_an_error() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/globals.tm",
        "globals {\n  a = global.b\n  b = global.a\n}\n",
    );
    sandbox.write("/env.tm", env("X = global.a"));
    assert_snapshot!(sandbox.orch("env"), @"
    [stderr]
    error: globals depend on each other: `global.a`, then `global.b`
     --> globals.tm:2:14
      |
    2 |   a = global.b
      |              ^ `global.b` is used here
    3 |   b = global.a
      |              - and here `global.a` again
      |
     ::: env.tm:5:9
      |
    5 |         X = global.a
      |         - needed here
      |
      = note: evaluated for stack `/a`

    [exit status 3]
    ");
}

#[test]
fn environment_with_an_unknown_function_is_an_error() {
    assert_snapshot!(x_is("tm_uper(\"x\")"), @r#"
    [stderr]
    error: unknown function `tm_uper`
     --> env.tm:5:13
      |
    5 |         X = tm_uper("x")
      |             ^^^^^^^ unknown function
      |
      = note: evaluated for stack `/a`
      = help: did you mean `tm_upper`?

    [exit status 3]
    "#);
}

#[test]
fn tm_fileexists_is_there_and_looks_from_the_stack() {
    let sandbox = Sandbox::layout(
        "
        a
        b",
    );
    sandbox.write("/a/versions.tf", "");
    sandbox.write(
        "/env.tm",
        env("X = tm_fileexists(\"versions.tf\") ? \"yes\" : \"no\""),
    );
    assert_snapshot!(sandbox.orch("run -q -- sh -c 'echo $ORCH_STACK_NAME $X'"), @"
    a yes
    b no
    ");
}

#[cfg(unix)]
#[test]
fn environment_functions_distinguish_unreadable_and_missing_files() {
    let sandbox = Sandbox::layout("a");
    sandbox.symlink("circle", "/a/circle");
    let long = format!("/{}", "n".repeat(300));
    for value in [
        "tm_fileexists(\"circle\") ? \"yes\" : \"no\"".to_owned(),
        "tm_try(tm_fileexists(\"circle\"), false) ? \"yes\" : \"no\"".to_owned(),
        format!("tm_fileexists(\"{long}\") ? \"yes\" : \"no\""),
        "tm_can(tm_file(\"circle/x\")) ? \"yes\" : \"no\"".to_owned(),
        "tm_try(tm_file(\"circle\"), \"default\")".to_owned(),
        "tm_join(\",\", tm_fileset(\".\", \"*\"))".to_owned(),
    ] {
        sandbox.write("/env.tm", env(&format!("X = {value}")));
        let output = sandbox.orch("run -q -- sh -c 'echo $X'");
        assert_eq!(output.code(), 3, "{value}: {output}");
        assert!(output.stderr.contains("failed to "), "{value}: {output}");
    }
    sandbox.write("/env.tm", env("X = tm_try(tm_file(\"none\"), \"default\")"));
    assert_snapshot!(sandbox.orch("run -q -- sh -c 'echo $X'"), @"default");
}

#[test]
fn env_shows_what_a_run_would_add() {
    let sandbox = Sandbox::layout(
        "
        a [x y]
        b",
    );
    sandbox.write("/env.tm", env("TF_IN_AUTOMATION = \"1\"\nGONE = null"));
    assert_snapshot!(sandbox.orch("env"), @"
    a:
      GONE is removed
      ORCH_ROOT=$ROOT
      ORCH_STACK_ID=
      ORCH_STACK_NAME=a
      ORCH_STACK_PATH=/a
      ORCH_STACK_TAGS=x,y
      TF_IN_AUTOMATION=1
    b:
      GONE is removed
      ORCH_ROOT=$ROOT
      ORCH_STACK_ID=
      ORCH_STACK_NAME=b
      ORCH_STACK_PATH=/b
      ORCH_STACK_TAGS=
      TF_IN_AUTOMATION=1
    ");
    assert_snapshot!(sandbox.orch_in("/b", "env"), @"
    .:
      GONE is removed
      ORCH_ROOT=$ROOT
      ORCH_STACK_ID=
      ORCH_STACK_NAME=b
      ORCH_STACK_PATH=/b
      ORCH_STACK_TAGS=
      TF_IN_AUTOMATION=1
    ");
    assert_eq!(
        sandbox.orch("-C a env --format json").json()["stacks"],
        json!([{
            "path": "/a",
            "env": {
                "GONE": null,
                "ORCH_ROOT": "$ROOT",
                "ORCH_STACK_ID": "",
                "ORCH_STACK_NAME": "a",
                "ORCH_STACK_PATH": "/a",
                "ORCH_STACK_TAGS": "x,y",
                "TF_IN_AUTOMATION": "1"
            },
            "definitions": {
                "GONE": {"file": "env.tm", "line": 6, "globals": [], "lets": []},
                "TF_IN_AUTOMATION": {"file": "env.tm", "line": 5, "globals": [], "lets": []}
            }
        }])
    );
}

#[test]
fn environment_shows_a_problem_of_many_stacks_once() {
    let sandbox = Sandbox::layout(
        "
        a
        b
        c",
    );
    sandbox.write("/env.tm", env("X = 5"));
    let output = sandbox.orch("env");
    assert_eq!(output.code(), 3);
    assert_eq!(output.stderr.matches("error:").count(), 1, "{output}");
}

#[test]
fn environment_values_of_the_host_appear_in_no_message() {
    for expression in [
        "env.SECRET + 1",
        "tm_abs(env.SECRET)",
        "\"${env.SECRET}\".x",
        "{ a = \"b\" }[env.SECRET]",
        "[env.SECRET]",
        "tm_jsondecode(env.SECRET)",
        "tm_file(env.SECRET)",
        "tm_try(tm_tonumber(env.SECRET))",
    ] {
        let sandbox = Sandbox::layout("a");
        sandbox.write("/env.tm", env(&format!("X = {expression}")));
        let output = sandbox.orch_with("env", |command| _ = command.env("SECRET", "hunter2"));
        assert_eq!(output.code(), 3, "{output}");
        assert!(!output.to_string().contains("hunter2"), "{output}");
    }
}

#[test]
fn tm_fileexists_may_ask_about_the_machine() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/env.tm", env("X = tm_fileexists(\"/dev/null/no\") ? \"yes\" : \"no\"\nY = tm_fileexists(\"../../../../../../../../../etc/hosts\") ? \"asked\" : \"asked\""));
    assert_snapshot!(sandbox.orch("run -q -- sh -c 'echo $X $Y'"), @"no asked");
    sandbox.write("/env.tm", env("X = tm_file(\"/etc/hosts\")"));
    let output = sandbox.orch("env");
    assert_eq!(output.code(), 3);
    assert!(
        output.stderr.contains("lies outside of the project"),
        "{output}"
    );
}

#[cfg(unix)]
#[test]
fn functions_read_neither_git_nor_what_links_lead_to_outside() {
    let sandbox = Sandbox::layout("a");
    sandbox.git_init();
    std::fs::write(sandbox.outside().join("secret"), "hunter2").unwrap();
    sandbox.symlink(sandbox.outside().join("secret"), "/a/link");
    sandbox.write("/a/file", "");
    sandbox.write(
        "/env.tm",
        env("X = tm_join(\",\", tm_fileset(\".\", \"*\"))"),
    );
    assert_snapshot!(sandbox.orch("run -q -X -- sh -c 'echo $X'"), @"file,stack.tm");
    for read in [
        "tm_file(\"../.git/config\")",
        "tm_file(\"link\")",
        "tm_join(\",\", tm_fileset(\"../.git\", \"*\"))",
    ] {
        sandbox.write("/env.tm", env(&format!("X = {read}")));
        let output = sandbox.orch("env");
        assert_eq!(output.code(), 3, "{output}");
        assert!(
            output.stderr.contains("belongs to git") || output.stderr.contains("leads out of"),
            "{output}"
        );
    }
}

#[test]
fn environment_depth_limit_is_independent_of_the_start() {
    let sandbox = Sandbox::layout("a");
    let mut globals = String::new();
    for index in 0..500 {
        globals += &format!("  g{index} = global.g{}\n", index + 1);
    }
    sandbox.write(
        "/globals.tm",
        format!("globals {{\n{globals}  g500 = \"end\"\n}}\n"),
    );
    let output = sandbox.orch("-C a eval global.g0 global.g300");
    assert!(output.stderr.contains("nested more than"), "{output}");
    assert!(output.stdout.contains("end"), "{output}");
}

#[cfg(unix)]
#[test]
fn environment_with_a_host_variable_that_is_not_utf8_is_an_error() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = Sandbox::layout("a");
    let run = || {
        sandbox.orch_with("run --quiet -- sh -c 'echo \"$X\"'", |orch| {
            orch.env("HOST", OsStr::from_bytes(b"prod\xff"));
        })
    };
    sandbox.write("/env.tm", env("X = tm_try(env.HOST, \"dev\")"));
    let output = run();
    let error = "error: the variable `HOST` of the environment is not UTF-8";
    assert!(output.stderr.starts_with(error), "{output}");
    sandbox.write("/env.tm", env("X = env.HOST"));
    assert_snapshot!(run(), @"
    [stderr]
    error: the variable `HOST` of the environment is not UTF-8
     --> env.tm:5:17
      |
    5 |         X = env.HOST
      |                 ^^^^ no text can be read from it
      |
      = note: evaluated for stack `/a`
      = help: set `HOST` to UTF-8 text before running orch

    [exit status 3]
    ");
}
