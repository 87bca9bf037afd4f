//! How many commands run at once: `--limit` and `concurrency`.

use insta::assert_snapshot;

use crate::support::{Background, Sandbox};

const DATABASES: &str = "
    db/a [db]
    db/b [db]
    db/c [db slow]
    web/a
    web/b
    web/c";

/// Runs with four slots. The first database waits until all that is no database is done. Returns how
/// many databases ran at once at most.
fn most_databases(sandbox: &Sandbox, flags: &str) -> usize {
    sandbox.mkdir("/running");
    let script = r#"
        cd "$ORCH_ROOT"
        case $ORCH_STACK_PATH in
        /web/*) touch done-$ORCH_STACK_NAME ;;
        *)
            mkdir running/$ORCH_STACK_NAME
            ls running | wc -l >> counts
            await done-a; await done-b; await done-c
            ls running | wc -l >> counts
            touch here-$ORCH_STACK_NAME
            [ -e one ] || { await here-a; await here-b; }
            ls running | wc -l >> counts
            rmdir running/$ORCH_STACK_NAME ;;
        esac
    "#;
    let output = Background::run(sandbox, &format!("-j 4 {flags}"), script).end();
    assert_eq!(output.code(), 0, "{output}");
    let counts = sandbox.read("/counts");
    let counts = counts.lines().map(|count| count.trim().parse().unwrap());
    counts.max().expect("databases ran")
}

#[test]
fn limit_holds_for_stacks_with_its_tag_only() {
    let sandbox = Sandbox::layout(DATABASES);
    sandbox.write("/one", "");
    assert_eq!(most_databases(&sandbox, "--limit db=1"), 1);
    let sandbox = Sandbox::layout(DATABASES);
    assert_eq!(most_databases(&sandbox, "--limit db=2"), 2);
}

#[test]
fn limit_can_be_set_in_the_configuration() {
    let sandbox = Sandbox::layout(DATABASES);
    sandbox.write("/one", "");
    sandbox.write(
        "/limits.orch.hcl",
        "orch {\n  config {\n    run {\n      concurrency = { db = 1 }\n    }\n  }\n}\n",
    );
    assert_eq!(most_databases(&sandbox, ""), 1);
}

#[test]
fn limit_flag_replaces_the_configured_limit_of_its_tag() {
    let limits =
        "orch {\n  config {\n    run {\n      concurrency = { db = 1, slow = 1 }\n    }\n  }\n}\n";
    let sandbox = Sandbox::layout(DATABASES);
    sandbox.write("/limits.orch.hcl", limits);
    assert_eq!(most_databases(&sandbox, "--limit db=2"), 2);
    let sandbox = Sandbox::layout(DATABASES);
    sandbox.write("/limits.orch.hcl", limits);
    sandbox.write("/one", "");
    assert_eq!(most_databases(&sandbox, "--limit slow=3"), 1);
}

#[test]
fn limit_of_two_tags_holds_for_both() {
    let sandbox = Sandbox::layout(DATABASES);
    sandbox.write("/one", "");
    assert_eq!(most_databases(&sandbox, "--limit db=1 --limit slow=2"), 1);
}

#[test]
fn limit_that_is_invalid_is_a_usage_error() {
    let sandbox = Sandbox::layout("a [db]");
    for (flags, problem) in [
        ("--limit db", "not of the form TAG=N"),
        ("--limit =1", "not of the form TAG=N"),
        ("--limit db=0", "N is a number from 1"),
        ("--limit db=", "N is a number from 1"),
        ("--limit db=-1", "N is a number from 1"),
        (
            "--limit DB=1",
            "for '--limit <TAG=N>': `DB` is not a tag: a tag has only",
        ),
        ("--limit a:b=1", "`a:b` is not a tag"),
        (
            "--limit db=1 --limit db=2",
            "in --limit: `db` is limited twice; remove one of them",
        ),
    ] {
        let output = sandbox.orch(&format!("run {flags} true"));
        assert_eq!(output.code(), 64, "{output}");
        assert!(output.stderr.contains(problem), "{output}");
    }
}

#[test]
fn limit_of_an_unknown_tag_gets_a_note() {
    let sandbox = Sandbox::layout("a [database]");
    assert_snapshot!(sandbox.orch("run -q --limit databse=1 true"), @"
    [stderr]
    note: `--limit databse=1` has no effect: no stack has the tag; did you mean `database`?
    ");
}

#[test]
fn limit_of_an_unknown_tag_in_the_configuration_gets_a_warning() {
    let sandbox = Sandbox::layout("a [database]");
    sandbox.write(
        "/limits.orch.hcl",
        "orch {\n  config {\n    run {\n      concurrency = { databse = 1 }\n    }\n  }\n}\n",
    );
    assert_snapshot!(sandbox.orch("run -q true"), @"
    [stderr]
    warning: `databse` in `concurrency` matches no stack
     --> limits.orch.hcl:4:23
      |
    4 |       concurrency = { databse = 1 }
      |                       ^^^^^^^ no stack has this tag
      |
      = help: did you mean `database`?
    ");
    assert_eq!(sandbox.orch("validate").code(), 3);
    sandbox.write(
        "/strict.tm",
        "terramate {\n  config {\n    references = \"strict\"\n  }\n}\n",
    );
    assert_eq!(sandbox.orch("run -q true").code(), 3);
}

#[test]
fn limit_that_is_invalid_in_the_configuration_is_shown() {
    let sandbox = Sandbox::layout("a [db]");
    sandbox.write(
        "/limits.orch.hcl",
        r#"orch {
  config {
    run {
      concurrency = {
        db      = 0
        "DB"    = 1
        ""      = 1
        half    = 0.5
        word    = "two"
        nothing = null
      }
    }
  }
}
"#,
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `db` in `concurrency` must be a whole number from 1
     --> limits.orch.hcl:5:19
      |
    5 |         db      = 0
      |                   ^ this is 0
      |
      = help: write it as in `concurrency = { database = 2 }`: at most two stacks with that tag run at once

    error: `DB` in `concurrency` cannot be a tag
     --> limits.orch.hcl:6:9
      |
    6 |         "DB"    = 1
      |         ^^^^ a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`
      |
      = help: write it as in `concurrency = { database = 2 }`: at most two stacks with that tag run at once

    error: `` in `concurrency` cannot be a tag
     --> limits.orch.hcl:7:9
      |
    7 |         ""      = 1
      |         ^^ a tag cannot be empty
      |
      = help: write it as in `concurrency = { database = 2 }`: at most two stacks with that tag run at once

    error: `half` in `concurrency` must be a whole number from 1
     --> limits.orch.hcl:8:19
      |
    8 |         half    = 0.5
      |                   ^^^ this is 0.5
      |
      = help: write it as in `concurrency = { database = 2 }`: at most two stacks with that tag run at once

    error: `word` in `concurrency` must be a whole number from 1
     --> limits.orch.hcl:9:19
      |
    9 |         word    = "two"
      |                   ^^^^^ this is a string
      |
      = help: write it as in `concurrency = { database = 2 }`: at most two stacks with that tag run at once

    error: `nothing` in `concurrency` must be a whole number from 1
      --> limits.orch.hcl:10:19
       |
    10 |         nothing = null
       |                   ^^^^ this is null
       |
       = help: write it as in `concurrency = { database = 2 }`: at most two stacks with that tag run at once

    [exit status 3]
    "#);
    sandbox.write(
        "/limits.orch.hcl",
        "orch {\n  config {\n    run {\n      concurrency = 4\n    }\n  }\n}\n",
    );
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: `concurrency` must map tags to numbers
     --> limits.orch.hcl:4:21
      |
    4 |       concurrency = 4
      |                     ^ this is 4
      |
      = help: write it as in `concurrency = { database = 2 }`: at most two stacks with that tag run at once

    [exit status 3]
    ");
}

#[test]
fn limits_belong_into_the_project_root() {
    let sandbox = Sandbox::layout("a [db]");
    sandbox.write(
        "/a/limits.orch.hcl",
        "orch {\n  config {\n    run {\n      concurrency = { db = 1 }\n      timeout = \"1h\"\n    }\n  }\n}\n",
    );
    assert_snapshot!(sandbox.orch("run -q true"), @"
    [stderr]
    warning: this setting applies only in the project root, and is ignored here
     --> a/limits.orch.hcl:4:7
      |
    4 |       concurrency = { db = 1 }
      |       ^^^^^^^^^^^ ignored
      |
      = help: move it to the project root; only `env`, `lets`, `timeout`, `retry` and the exit codes of `config.run`, `config.driver`, `config.lifecycle` and `config.change_detection.ignore` may be here
    ");
}
