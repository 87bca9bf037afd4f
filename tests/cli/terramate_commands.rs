//! Terramate's commands and variables: what `orch` does for them, or who does it.

use insta::assert_snapshot;

use crate::support::{Output, Sandbox};

#[test]
fn debug_show_metadata_has_terramates_shape() {
    let sandbox = Sandbox::layout("/\na [t u] after /b before /c\nb wants /a wanted_by tag:t");
    sandbox.write("/a/c/stack.tm", "stack {\n  id          = \"an-id\"\n  name        = \"a \\\"c\\\"\"\n  description = \"d\"\n}\n");
    assert_snapshot!(sandbox.orch("debug show metadata"), @r#"
    Available metadata:

    stack "/":
    	terramate.stack.name="project"
    	terramate.stack.description=""
    	terramate.stack.tags=[]
    	terramate.stack.before=[]
    	terramate.stack.after=[]
    	terramate.stack.wants=[]
    	terramate.stack.wanted_by=[]
    	terramate.stack.path.absolute="/"
    	terramate.stack.path.basename="/"
    	terramate.stack.path.relative=""
    	terramate.stack.path.to_root="."

    stack "/a":
    	terramate.stack.name="a"
    	terramate.stack.description=""
    	terramate.stack.tags=["t","u"]
    	terramate.stack.before=["/c"]
    	terramate.stack.after=["/b"]
    	terramate.stack.wants=[]
    	terramate.stack.wanted_by=[]
    	terramate.stack.path.absolute="/a"
    	terramate.stack.path.basename="a"
    	terramate.stack.path.relative="a"
    	terramate.stack.path.to_root=".."

    stack "/a/c":
    	terramate.stack.id="an-id"
    	terramate.stack.name="a \"c\""
    	terramate.stack.description="d"
    	terramate.stack.tags=[]
    	terramate.stack.before=[]
    	terramate.stack.after=[]
    	terramate.stack.wants=[]
    	terramate.stack.wanted_by=[]
    	terramate.stack.path.absolute="/a/c"
    	terramate.stack.path.basename="c"
    	terramate.stack.path.relative="a/c"
    	terramate.stack.path.to_root="../.."

    stack "/b":
    	terramate.stack.name="b"
    	terramate.stack.description=""
    	terramate.stack.tags=[]
    	terramate.stack.before=[]
    	terramate.stack.after=[]
    	terramate.stack.wants=["/a"]
    	terramate.stack.wanted_by=["tag:t"]
    	terramate.stack.path.absolute="/b"
    	terramate.stack.path.basename="b"
    	terramate.stack.path.relative="b"
    	terramate.stack.path.to_root=".."
    [stderr]
    warning: `/c` in `before` matches no stack
     --> a/stack.tm:4:13
      |
    4 |   before = ["/c"]
      |             ^^^^ no such directory
      |
      = help: did you mean `/`?
    "#);
    assert_snapshot!(sandbox.orch_in("/a/c", "debug show metadata --no-tags t"), @r#"
    Available metadata:

    stack "/a/c":
    	terramate.stack.id="an-id"
    	terramate.stack.name="a \"c\""
    	terramate.stack.description="d"
    	terramate.stack.tags=[]
    	terramate.stack.before=[]
    	terramate.stack.after=[]
    	terramate.stack.wants=[]
    	terramate.stack.wanted_by=[]
    	terramate.stack.path.absolute="/a/c"
    	terramate.stack.path.basename="c"
    	terramate.stack.path.relative="a/c"
    	terramate.stack.path.to_root="../.."
    [stderr]
    warning: `/c` in `before` matches no stack
     --> a/stack.tm:4:13
      |
    4 |   before = ["/c"]
      |             ^^^^ no such directory
      |
      = help: did you mean `/`?
    "#);
    sandbox.mkdir("/none");
    assert_eq!(sandbox.orch_in("/none", "debug show metadata").stdout, "");
}

#[test]
fn debug_show_globals_has_terramates_shape() {
    let sandbox = Sandbox::layout("a\nb");
    sandbox.write(
        "/a/g.tm",
        "globals {\n  z = 1\n  a = \"x\"\n  list = [1, 2]\n  o = { b = 1, aa = \"y\" }\n}\n",
    );
    assert_snapshot!(sandbox.orch("debug show globals"), @r#"
    stack "/a":
    	a    = "x"
    	list = [1, 2]
    	o = {
    	  aa = "y"
    	  b  = 1
    	}
    	z = 1
    "#);
}

#[test]
fn debug_show_runtime_env_has_only_what_run_env_sets() {
    let sandbox = Sandbox::layout("a\nb");
    sandbox.write("/env.tm", "terramate {\n  config {\n    run {\n      env {\n        Z = \"1\"\n        A = terramate.stack.name\n        GONE = null\n      }\n    }\n  }\n}\n");
    assert_snapshot!(sandbox.orch("debug show runtime-env --match a"), @r#"
    stack "/a":
    	A=a
    	Z=1
    "#);
}

#[test]
fn commands_that_orch_does_not_have_name_the_one_that_does() {
    let sandbox = Sandbox::layout("a");
    for (command, hint) in [
        ("generate -j 4", "terramate generate"),
        ("cloud login --github", "terramate cloud"),
        ("cloud drift show", "orch plan"),
        ("experimental cloud info", "terramate cloud"),
        (
            "experimental vendor download x v1",
            "terramate experimental vendor download",
        ),
        (
            "debug show generate-origins",
            "terramate debug show generate-origins",
        ),
        ("ui", "terramate ui"),
        ("scaffold", "orch create PATH"),
        ("component create x", "orch create PATH"),
        ("package create x", "orch create PATH"),
        ("install-completions", "orch completions"),
    ] {
        let output = sandbox.orch(command);
        assert_eq!(output.code(), 64, "{command}: {output}");
        assert!(output.stderr.contains("  = help: "), "{command}: {output}");
        assert!(output.stderr.contains(hint), "{command}: {output}");
    }
    assert_snapshot!(sandbox.orch("generate"), @"
    [stderr]
    error: orch generates no code
      = help: run `terramate generate` before orch; both read the same files
    [exit status 64]
    ");
}

fn orch_with(sandbox: &Sandbox, arguments: &str, variables: &[(&str, &str)]) -> Output {
    sandbox.orch_with(arguments, |command| {
        command.envs(variables.iter().copied());
    })
}

#[test]
fn environment_sets_flags_as_in_terramate() {
    let sandbox = Sandbox::layout("a [x]\na/b [y]\nc [x y]");
    let list = |variables: &[(&str, &str)]| orch_with(&sandbox, "list", variables);
    assert_snapshot!(list(&[("TM_ARG_CHDIR", "a")]), @"
    .
    b
    ");
    assert_snapshot!(orch_with(&sandbox, "-C c list", &[("TM_ARG_CHDIR", "a")]), @".");
    assert_snapshot!(list(&[("TM_ARG_TAGS", "x:y")]), @"c");
    assert_snapshot!(list(&[("TM_ARG_TAGS", "x"), ("TM_ARG_NO_TAGS", "y,z")]), @"
    a
    [stderr]
    note: in `--no-tags`: no stack of the project has the tag `z`; did you mean `x`?
    ");
    assert_snapshot!(orch_with(&sandbox, "list --tags y", &[("TM_ARG_TAGS", "x")]), @"
    a/b
    c
    ");
    assert_snapshot!(list(&[("TM_ARG_TAGS", ""), ("TM_ARG_CHANGED", "false"), ("TM_ARG_CHDIR", "")]), @"
    a
    a/b
    c
    ");
    let run = |variables: &[(&str, &str)]| orch_with(&sandbox, "run --dry-run git", variables);
    assert_snapshot!(run(&[("TM_ARG_RUN_REVERSE", "1"), ("TM_ARG_RUN_PARALLEL", "2")]), @"
    /c: git
    /a/b: git
    /a: git
    ");
    assert_snapshot!(run(&[("TM_ARG_CHDIR", "a"), ("TM_ARG_RUN_NO_RECURSIVE", "true")]), @"/a: git");
    assert_snapshot!(run(&[("TM_ARG_RUN_REVERSE", "maybe")]), @"
    [stderr]
    error: invalid value 'maybe' for '--reverse': value was not a boolean

    For more information, try '--help'.
    [exit status 64]
    ");
    let changed = list(&[("TM_ARG_CHANGED", "1")]);
    assert_eq!(changed.code(), 4, "{changed}");
    // Commands that Terramate does not have are not changed by its variables.
    let why = orch_with(&sandbox, "graph", &[("TM_ARG_TAGS", "nothing")]);
    assert!(why.stdout.contains("\"/a\""), "{why}");
}
