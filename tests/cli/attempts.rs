//! What is tried again, and after what: flags and the `run` block.

use insta::assert_snapshot;
use nix::sys::signal::Signal;

use crate::support::{Background, Output, Sandbox};

/// Notes each attempt, and succeeds at the third.
const THIRD: &str = r#"
echo $ORCH_STACK_NAME >> "$ORCH_ROOT/attempts"
[ "$(grep -c "^$ORCH_STACK_NAME\$" "$ORCH_ROOT/attempts")" -ge 3 ] || exit 7
"#;

/// Runs a script; returns what orch said, and how often the script was started.
fn attempts(sandbox: &Sandbox, flags: &str, script: &str) -> (Output, usize) {
    _ = std::fs::remove_file(sandbox.path("/attempts"));
    let output = Background::run(sandbox, &format!("--retry-backoff 0s {flags}"), script).end();
    (output, sandbox.read("/attempts").lines().count())
}

/// The same where no flag is about retries.
fn configured_attempts(sandbox: &Sandbox, script: &str) -> (Output, usize) {
    _ = std::fs::remove_file(sandbox.path("/attempts"));
    let output = Background::run(sandbox, "", script).end();
    (output, sandbox.read("/attempts").lines().count())
}

#[test]
fn retry_follows_the_given_exit_statuses() {
    let sandbox = Sandbox::layout("a");
    let (output, n) = attempts(&sandbox, "--retries 5 --retry-on-exit 1,7", THIRD);
    assert_eq!((output.code(), n), (0, 3), "{output}");
    assert!(output.stderr.contains("1 succeeded in"), "{output}");
}

#[test]
fn attempts_end_after_other_failures() {
    let sandbox = Sandbox::layout("a");
    let (output, n) = attempts(&sandbox, "--retries 5 --retry-on-exit 1", THIRD);
    assert_eq!((output.code(), n), (1, 1), "{output}");
    assert!(
        output.stderr.contains("failed /a: exit status 7"),
        "{output}"
    );
}

#[test]
fn attempts_are_limited() {
    let sandbox = Sandbox::layout("a");
    let (output, n) = attempts(&sandbox, "--retries 1 --retry-on-exit 7", THIRD);
    assert_eq!((output.code(), n), (1, 2), "{output}");
    assert!(
        output.stderr.contains("failed /a: exit status 7"),
        "{output}"
    );
}

#[test]
fn retry_never_follows_a_success() {
    let sandbox = Sandbox::layout("a");
    let script = "echo x >> \"$ORCH_ROOT/attempts\"; echo busy";
    let flags = "-j 2 --retries 2 --retry-on-exit 1 --retry-on-output busy";
    let (output, n) = attempts(&sandbox, flags, script);
    assert_eq!((output.code(), n), (0, 1), "{output}");
}

#[test]
fn retry_never_follows_a_signal() {
    let sandbox = Sandbox::layout("a");
    let script = "echo x >> \"$ORCH_ROOT/attempts\"; kill -TERM $$";
    let (output, n) = attempts(&sandbox, "--retries 2 --retry-on-exit 143", script);
    assert_eq!((output.code(), n), (1, 1), "{output}");
    assert!(output.stderr.contains("ended by SIGTERM"), "{output}");
}

#[test]
fn retry_never_follows_a_timeout() {
    let sandbox = Sandbox::layout("a");
    let script = "trap 'exit 7' INT; echo x >> \"$ORCH_ROOT/attempts\"; await never";
    let flags = "--retries 2 --retry-on-exit 7 --timeout 1s";
    let (output, n) = attempts(&sandbox, flags, script);
    assert_eq!((output.code(), n), (1, 1), "{output}");
    assert!(output.stderr.contains("took longer than 1s"), "{output}");
}

#[test]
fn dependents_wait_for_the_last_attempt() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a",
    );
    let script = format!("[ $ORCH_STACK_NAME != b ] || echo b >> \"$ORCH_ROOT/attempts\"\n{THIRD}");
    let script = script.replace("-ge 3 ]", "-ge 3 ] || [ $ORCH_STACK_NAME = b ]");
    let (output, _) = attempts(&sandbox, "-j 2 --retries 5 --retry-on-exit 7", &script);
    assert_eq!(output.code(), 0, "{output}");
    assert!(sandbox.read("/attempts").starts_with("a\na\na\nb\n"));
}

#[test]
fn retry_is_dropped_after_an_interrupt() {
    let sandbox = Sandbox::layout(
        "
        a
        b",
    );
    let flags = "--retries 5 --retry-on-exit 7 --retry-backoff 1h --on-error continue";
    let run = Background::run(&sandbox, flags, THIRD);
    run.wait_for("/attempts", &["a"]);
    // Whether it is still running or waits already makes no difference.
    run.signal(Signal::SIGINT);
    let output = run.end();
    assert_eq!(output.code(), 130, "{output}");
    assert_eq!(sandbox.read("/attempts"), "a\n");
    assert!(
        output
            .stderr
            .contains("cancelled /b: the run was interrupted by SIGINT"),
        "{output}"
    );
}

#[test]
fn flags_that_would_do_nothing_are_usage_errors() {
    let sandbox = Sandbox::layout("a");
    for (flags, problem) in [
        ("--retries 100", "100 is not in 0..100"),
        ("--retries x", "invalid value 'x' for '--retries <N>'"),
        ("--retries 1 --retry-on-exit 0", "0 is not in 1..=255"),
        ("--retries 1 --retry-on-exit 256", "256 is not in 1..=255"),
        (
            "--retries 1 --retry-on-output '(x'",
            "invalid value '(x' for '--retry-on-output <REGEX>': unclosed group",
        ),
        (
            "--retries 1 --retry-on-output ''",
            "an empty pattern matches every line",
        ),
        (
            "--retry-on-exit 1",
            "--retry-on-exit has no effect without --retries N",
        ),
        (
            "--retry-on-output x",
            "--retry-on-output has no effect without --retries N",
        ),
        (
            "--retry-backoff 1s",
            "--retry-backoff has no effect without --retries N",
        ),
        (
            "--retries 1",
            "--retries 1 needs a condition for stack `/a`: add --retry-on-exit STATUS",
        ),
        ("--timeout soon", "not a duration like `90s` or `1h 30m`"),
        ("--timeout 0s", "longer than zero"),
        ("--run-timeout 0s", "longer than zero"),
        ("--grace=-1s", "a duration cannot be negative"),
        ("--timeout 9000h", "longer than a year"),
        ("--retry-backoff 99999999999999999999h", "not a duration"),
    ] {
        let output = sandbox.orch(&format!("run {flags} touch ran"));
        assert_eq!(output.code(), 64, "{flags}: {output}");
        assert!(output.stderr.contains(problem), "{flags}: {output}");
        assert!(!sandbox.path("/a/ran").exists(), "{flags}");
    }
    assert_eq!(sandbox.orch("run -q --retries 0 true").code(), 0);
}

/// Three attempts, of which the configuration says nothing else than this.
fn retry(rest: &str) -> String {
    format!(
        "run {{\n    retry {{\n      attempts = 3\n      backoff = \"0s\"\n      {rest}\n    }}\n  }}\n"
    )
}

fn config_run(run: &str) -> String {
    format!("orch {{\n  config {{\n  {run}\n  }}\n}}\n")
}

#[test]
fn retry_is_configured_in_a_stack() {
    let sandbox = Sandbox::layout("b");
    let run = retry("on_exit = [7]");
    sandbox.write("/a/stack.orch.hcl", format!("stack {{\n  {run}}}\n"));
    let (output, _) = configured_attempts(&sandbox, THIRD);
    assert_eq!(sandbox.read("/attempts"), "a\na\na\nb\n", "{output}");
    assert_eq!(output.code(), 1);
}

#[test]
fn retry_is_inherited_by_nested_stacks() {
    let sandbox = Sandbox::layout(
        "
        a/b/c
        z",
    );
    let run = retry("on_exit = [7]");
    sandbox.write("/a/stack.orch.hcl", format!("stack {{\n  {run}}}\n"));
    let (output, _) = configured_attempts(&sandbox, THIRD);
    assert_eq!(
        sandbox.read("/attempts"),
        "a\na\na\nc\nc\nc\nz\n",
        "{output}"
    );
}

#[test]
fn attempts_can_be_set_for_a_directory() {
    let sandbox = Sandbox::layout(
        "
        x/a
        z",
    );
    sandbox.write("/x/run.orch.hcl", config_run(&retry("on_exit = [7]")));
    let (output, _) = configured_attempts(&sandbox, THIRD);
    assert_eq!(sandbox.read("/attempts"), "a\na\na\nz\n", "{output}");
}

#[test]
fn retry_is_taken_as_a_whole_from_the_nearest_directory() {
    let sandbox = Sandbox::layout("x/a");
    sandbox.write("/run.orch.hcl", config_run(&retry("on_exit = [7]")));
    let (output, n) = configured_attempts(&sandbox, THIRD);
    assert_eq!((output.code(), n), (0, 3), "{output}");
    sandbox.write("/x/run.orch.hcl", config_run(&retry("on_exit = [6]")));
    assert_eq!(configured_attempts(&sandbox, THIRD).1, 1);
    // In one directory, what the stack says comes first.
    sandbox.write("/x/a/run.orch.hcl", config_run(&retry("on_exit = [6]")));
    let run = retry("on_exit = [7]");
    sandbox.write("/x/a/stack.tm", format!("stack {{\n  {run}}}\n"));
    assert_eq!(configured_attempts(&sandbox, THIRD).1, 3);
    sandbox.write(
        "/x/a/stack.tm",
        "stack {\n  run {\n    retry {\n      attempts = 1\n    }\n  }\n}\n",
    );
    assert_eq!(configured_attempts(&sandbox, THIRD).1, 1, "switched off");
}

#[test]
fn timeout_and_retry_are_inherited_one_by_one() {
    let sandbox = Sandbox::layout("x/a");
    sandbox.write(
        "/run.orch.hcl",
        config_run("run {\n    timeout = \"2s\"\n  }"),
    );
    sandbox.write("/x/run.orch.hcl", config_run(&retry("on_exit = [7]")));
    let (output, n) = configured_attempts(&sandbox, THIRD);
    assert_eq!((output.code(), n), (0, 3), "{output}");
    let script = "echo x >> \"$ORCH_ROOT/attempts\"; exec sleep 600";
    let (output, n) = configured_attempts(&sandbox, script);
    assert_eq!((output.code(), n), (1, 1), "{output}");
    assert!(output.stderr.contains("took longer than 2s"), "{output}");
}

#[test]
fn timeout_from_above_can_be_disabled() {
    let sandbox = Sandbox::layout("x/a");
    sandbox.write(
        "/run.orch.hcl",
        config_run("run {\n    timeout = \"1ms\"\n  }"),
    );
    sandbox.write("/x/a/run.tm", config_run("run {\n    timeout = null\n  }"));
    let script = "sleep 0.05";
    let (output, _) = configured_attempts(&sandbox, script);
    assert_eq!(output.code(), 0, "{output}");
    let output = Background::run(&sandbox, "--timeout 1ms", script).end();
    assert!(output.stderr.contains("took longer than 1ms"), "{output}");
}

#[test]
fn flags_replace_what_is_configured_one_by_one() {
    let sandbox = Sandbox::layout("a");
    let block = retry("on_exit = [7]\n on_output = [\"x\"]");
    sandbox.write("/run.orch.hcl", config_run(&block));
    let n = |flags| attempts(&sandbox, flags, THIRD).1;
    assert_eq!(n(""), 3);
    assert_eq!(n("--retries 1"), 2);
    assert_eq!(n("--retries 0"), 1);
    assert_eq!(n("--retry-on-exit 6"), 1);
    assert_eq!(n("--retry-on-exit 6,7"), 3);
    assert_eq!(n("--retry-on-output y"), 1, "both conditions are replaced");
    let block = "run {\n    retry {\n      attempts = 1\n    }\n  }";
    sandbox.write("/run.orch.hcl", config_run(block));
    let output = sandbox.orch("run --retry-on-exit 1 true");
    assert_eq!(output.code(), 64, "{output}");
    assert_eq!(sandbox.orch("run --retries 2 true").code(), 64);
}

#[test]
fn output_decides_when_it_passes_through_orch() {
    for (script, expected) in [
        ("echo is busy now", 3),
        ("echo is busy now >&2", 3),
        ("printf 'is bu'; sleep 0.05; printf 'sy now'", 3),
        ("printf 'is bu'; printf 'sy now\\n' >&2", 1),
        ("printf 'is\\nbusy'", 1),
        ("echo is Busy now", 1),
        ("seq 100000; echo is busy now; seq 100000", 3),
    ] {
        let sandbox = Sandbox::layout("a");
        let script = format!("echo x >> \"$ORCH_ROOT/attempts\"\n{script}\nexit 1");
        let flags = "-q -j 2 --retries 2 --retry-on-output 'is busy'";
        let (output, n) = attempts(&sandbox, flags, &script);
        assert_eq!((output.code(), n), (1, expected), "{script}");
    }
}

#[test]
fn validate_reports_errors_in_a_run_block() {
    let sandbox = Sandbox::new("");
    let stack = r#"stack {
  run "label" {
    timeout = 30
    tiemout = "1m"
    backoff = "1m"
    retries {
    }
    retry {
      attempts = 1
    }
    retry {
    }
  }
  run {
  }
}
"#;
    sandbox.write("/a/stack.orch.hcl", stack);
    assert_snapshot!(sandbox.orch("run true"), @r#"
    [stderr]
    error: a `run` block has no labels
     --> a/stack.orch.hcl:2:7
      |
    2 |   run "label" {
      |       ^^^^^^^ unexpected label
      |
      = help: remove the label

    error: `timeout` must be a duration
     --> a/stack.orch.hcl:3:15
      |
    3 |     timeout = 30
      |               ^^ this is a number
      |
      = help: write it with units: `"90s"`, `"30m"`, `"1h 30m"`

    error: unknown attribute `tiemout` in `run`
     --> a/stack.orch.hcl:4:5
      |
    2 |   run "label" {
      |   --- in this block
    3 |     timeout = 30
    4 |     tiemout = "1m"
      |     ^^^^^^^ not an attribute of `run`
      |
      = help: did you mean `timeout`?

    error: unknown attribute `backoff` in `run`
     --> a/stack.orch.hcl:5:5
      |
    2 |   run "label" {
      |   --- in this block
    ...
    5 |     backoff = "1m"
      |     ^^^^^^^ not an attribute of `run`
      |
      = help: attributes are: timeout, success_exit_codes, changes_exit_codes, success_on_interrupt

    error: unknown block `retries` in `run`
     --> a/stack.orch.hcl:6:5
      |
    2 |   run "label" {
      |   --- in this block
    ...
    6 |     retries {
      |     ^^^^^^^ not a block of `run`
      |
      = help: a `run` block has `timeout = "30m"` and `retry { … }`

    error: only one `retry` block is allowed here
      --> a/stack.orch.hcl:11:5
       |
     8 |     retry {
       |     ----- first block
    ...
    11 |     retry {
       |     ^^^^^ second block
       |
       = help: merge the two blocks, or remove one

    error: only one `run` block is allowed here
      --> a/stack.orch.hcl:14:3
       |
     2 |   run "label" {
       |   --- first block
    ...
    14 |   run {
       |   ^^^ second block
       |
       = help: merge the two blocks, or remove one

    [exit status 3]
    "#);
}

#[test]
fn validate_reports_errors_in_a_retry_block() {
    let sandbox = Sandbox::new("");
    let stack = r#"stack {
  run {
    retry {
      attempts  = 0
      backoff   = "soon"
      on_exit   = [0, 1.5, "1", 256, 7]
      on_output = ["ok", "(", 3]
      on_error  = []
      nested {
      }
    }
  }
}
"#;
    sandbox.write("/a/stack.orch.hcl", stack);
    assert_snapshot!(sandbox.orch("run true"), @r#"
    [stderr]
    error: `attempts` must be a whole number from 1 to 100
     --> a/stack.orch.hcl:4:19
      |
    4 |       attempts  = 0
      |                   ^ this is 0
      |
      = help: the first attempt counts: 3 allows two retries

    error: `backoff` must be a duration
     --> a/stack.orch.hcl:5:19
      |
    5 |       backoff   = "soon"
      |                   ^^^^^^ not a duration like `90s` or `1h 30m`
      |
      = help: write it with units: `"90s"`, `"30m"`, `"1h 30m"`

    error: `on_exit` must be a list of exit statuses from 1 to 255
     --> a/stack.orch.hcl:6:20
      |
    6 |       on_exit   = [0, 1.5, "1", 256, 7]
      |                    ^ this is 0
      |
      = help: 0 is success, which is never retried

    error: `on_exit` must be a list of exit statuses from 1 to 255
     --> a/stack.orch.hcl:6:23
      |
    6 |       on_exit   = [0, 1.5, "1", 256, 7]
      |                       ^^^ this is 1.5
      |
      = help: 0 is success, which is never retried

    error: `on_exit` must be a list of exit statuses from 1 to 255
     --> a/stack.orch.hcl:6:28
      |
    6 |       on_exit   = [0, 1.5, "1", 256, 7]
      |                            ^^^ this is a string
      |
      = help: 0 is success, which is never retried

    error: `on_exit` must be a list of exit statuses from 1 to 255
     --> a/stack.orch.hcl:6:33
      |
    6 |       on_exit   = [0, 1.5, "1", 256, 7]
      |                                 ^^^ this is 256
      |
      = help: 0 is success, which is never retried

    error: `(` is not a valid pattern for output
     --> a/stack.orch.hcl:7:26
      |
    7 |       on_output = ["ok", "(", 3]
      |                          ^^^ unclosed group
      |
      = help: a pattern is a regular expression that is matched against each line: write `\\(` for the character `(`

    error: `on_output` must be a list of regular expressions
     --> a/stack.orch.hcl:7:31
      |
    7 |       on_output = ["ok", "(", 3]
      |                               ^ this is a number
      |
      = help: write each as a string: `on_output = ["timed out"]`

    error: unknown attribute `on_error` in `retry`
     --> a/stack.orch.hcl:8:7
      |
    3 |     retry {
      |     ----- in this block
    ...
    8 |       on_error  = []
      |       ^^^^^^^^ not an attribute of `retry`
      |
      = help: attributes are: attempts, backoff, on_exit, on_output

    error: unknown block `nested` in `retry`
     --> a/stack.orch.hcl:9:7
      |
    3 |     retry {
      |     ----- in this block
    ...
    9 |       nested {
      |       ^^^^^^ not a block of `retry`
      |
      = help: attributes are: attempts, backoff, on_exit, on_output

    [exit status 3]
    "#);
}

#[test]
fn durations_and_numbers_have_bounds() {
    let sandbox = Sandbox::new("");
    for (block, problem) in [
        ("timeout = \"0s\"", "the limit must be longer than zero"),
        ("timeout = \"-1m\"", "a duration cannot be negative"),
        ("timeout = \"9000h\"", "longer than a year"),
        ("timeout = \"99999999999999999999h\"", "not a duration"),
        ("timeout = [\"1m\"]", "this is a list"),
        (
            "timeout = global.timeout",
            "`global` cannot be used in a `run` block",
        ),
        (
            "retry {\n attempts = 101\n on_exit = [1]\n }",
            "this is 101",
        ),
        (
            "retry {\n attempts = 99999999999999999999\n on_exit = [1]\n }",
            "from 1 to 100",
        ),
        (
            "retry {\n attempts = -1\n on_exit = [1]\n }",
            "from 1 to 100",
        ),
        ("retry {\n on_exit = [1]\n }", "`attempts` is missing"),
        ("retry {\n attempts = 2\n }", "never retries"),
        (
            "retry {\n attempts = 2\n on_exit = []\n on_output = null\n }",
            "never retries",
        ),
        (
            "retry {\n attempts = 2\n on_exit = 1\n }",
            "`on_exit` must be a list",
        ),
        (
            "retry {\n attempts = 2\n on_output = [\"\"]\n }",
            "an empty pattern matches every line",
        ),
        (
            "retry {\n attempts = 2\n on_output = [\"(a{1000}){1000}\"]\n }",
            "size limit",
        ),
    ] {
        for text in [
            format!("stack {{\n run {{\n {block}\n }}\n}}\n"),
            format!(
                "stack {{}}\n{}",
                config_run(&format!("run {{\n {block}\n }}"))
            ),
        ] {
            sandbox.write("/a/stack.orch.hcl", &text);
            let output = sandbox.orch("run true");
            assert_eq!(output.code(), 3, "{text}{output}");
            assert!(output.stderr.contains(problem), "{text}{output}");
        }
    }
}

#[test]
fn config_run_is_checked_like_the_block_of_a_stack() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/a/one.tm",
        config_run("run {\n timeout = \"1m\"\n retry {\n attempts = 1\n }\n }"),
    );
    sandbox.write(
        "/a/two.tm",
        config_run("run {\n timeout = \"2m\"\n retry {\n attempts = 1\n }\n }"),
    );
    assert_snapshot!(sandbox.orch("run true"), @r#"
    [stderr]
    error: `config.run.timeout` is set twice in this directory
     --> a/two.tm:4:2
      |
    4 |  timeout = "2m"
      |  ^^^^^^^ again here
      |
     ::: a/one.tm:4:2
      |
    4 |  timeout = "1m"
      |  ------- first here
      |
      = help: remove one of them

    error: only one `retry` block is allowed here
     --> a/two.tm:5:2
      |
    5 |  retry {
      |  ^^^^^ second block
      |
     ::: a/one.tm:5:2
      |
    5 |  retry {
      |  ----- first block
      |
      = help: merge the two blocks, or remove one

    [exit status 3]
    "#);
}

#[test]
fn run_reports_a_vanished_stack_directory() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a",
    );
    let output = Background::run(&sandbox, "-q", r#"rm -r "$ORCH_ROOT/b""#).end();
    assert_snapshot!(output, @"
    [stderr]
    orch: failed /b: could not be started: the stack directory no longer exists after [time]
    orch: 1 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn retry_matches_output_without_its_colours() {
    let sandbox = Sandbox::layout("a");
    // As terraform prints it, to pipes too.
    let script = r"
        printf '\033[31m\342\225\267\033[0m\n\033[31m\342\224\202\033[0m \033[0m\033[1m\033[31mError: \033[0m\033[0m\033[1mbusy here\033[0m\n'
        exit 1
    ";
    let flags = "-q --retries 1 --retry-on-output Error:.busy --retry-backoff 1ms";
    let output = Background::run(&sandbox, flags, script).end();
    assert!(output.stderr.contains("after 2 attempts"), "{output}");
}
