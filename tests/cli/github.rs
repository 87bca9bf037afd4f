//! What GitHub Actions shows besides the log, and the log of a run in CI.

use insta::assert_snapshot;

use crate::support::{Output, Sandbox};

fn in_job(sandbox: &Sandbox, arguments: &str) -> Output {
    sandbox.orch_with(arguments, |command| {
        command
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_WORKSPACE", sandbox.path("/.."));
    })
}

#[test]
fn problems_are_shown_at_their_lines() {
    let sandbox = Sandbox::new("//- /a/stack.tm\nstack {\n  aftr = [\"x, y\"]\n}\n");
    let output = in_job(&sandbox, "list");
    assert_eq!(output.code(), 3);
    let annotations = output.stderr.lines().filter(|line| line.starts_with("::"));
    let project = sandbox.path("/");
    let project = project.file_name().unwrap().to_string_lossy().into_owned();
    let annotations = annotations
        .collect::<Vec<_>>()
        .join("\n")
        .replace(&project, "project");
    assert_snapshot!(annotations, @"::error file=project/a/stack.tm,line=2,col=3,title=orch%3A unknown-attribute::unknown attribute `aftr` in `stack`%0Ahelp: did you mean `after`?");
    assert!(!sandbox.orch("list").stderr.contains("::error"));
}

/// A word of the command line is not in a file.
#[test]
fn problems_of_the_command_line_name_no_file() {
    let sandbox = Sandbox::layout("a");
    for (arguments, expected) in [
        (
            "run --eval -- echo '${global.x}'",
            "::error title=orch%3A unknown-name::argument 2: no global `x`",
        ),
        (
            "eval --stack a global.y",
            "::error title=orch%3A unknown-name::expression 1: no global `y`",
        ),
        (
            "eval --stack a --global z=[ global.z",
            "::error title=orch%3A syntax::global z: ",
        ),
    ] {
        let output = in_job(&sandbox, arguments);
        assert_eq!(output.code(), 3, "{output}");
        let found = output.stderr.lines().find(|line| line.starts_with("::"));
        assert!(
            found.is_some_and(|line| line.starts_with(expected)),
            "{output}"
        );
    }
}

/// A refusal has no line, but would otherwise be found in the log only.
#[test]
fn refusals_are_shown() {
    let sandbox = Sandbox::layout("a");
    let annotation = |arguments: &str| {
        let output = in_job(&sandbox, arguments);
        let mut lines = output.stderr.lines();
        let found = lines.find(|line| line.starts_with("::"));
        (output.code(), found.unwrap_or_default().to_owned())
    };
    assert_eq!(
        annotation("list --exclude a --fail-if-empty"),
        (
            4,
            "::error title=orch%3A refused::no stack is selected, and `--fail-if-empty` is given"
                .to_owned()
        )
    );
    let (code, text) = annotation("list --changed");
    assert_eq!(code, 4);
    assert!(
        text.starts_with("::error title=orch%3A refused::the changes are unknown%0Acaused by: ")
            && text.contains("%0Ahelp: "),
        "{text}"
    );
    assert_eq!(
        annotation("why nothing"),
        (
            64,
            "::error title=orch::`nothing`: does not exist".to_owned()
        )
    );
    assert!(!sandbox.orch("why nothing").stderr.contains("::"));
}

#[test]
fn failures_are_shown_where_stacks_are_declared() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a
        c after /b",
    );
    let output = in_job(
        &sandbox,
        "run --on-error continue -- sh -c 'test $ORCH_STACK_NAME != b'",
    );
    assert_eq!(output.code(), 1);
    let project = sandbox.path("/");
    let project = project.file_name().unwrap().to_string_lossy().into_owned();
    assert_snapshot!(output.to_string().replace(&project, "project"), @"
    [stderr]
    orch: /a: succeeded in [time]
    orch: /b: failed: exit status 1 after [time]
    orch: /c: succeeded in [time]
    orch: failed /b: exit status 1 after [time]
    orch: 2 succeeded, 1 failed in [time]
    ::error file=project/b/stack.tm,line=1,col=1,title=orch%3A /b failed::exit status 1 after 0.0s
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

/// A run with thousands of failures does not flood the page.
#[test]
fn no_more_than_ten_of_a_kind_are_shown() {
    let names: Vec<String> = (0..30).map(|number| format!("s{number}")).collect();
    let sandbox = Sandbox::layout(&names.join("\n"));
    let output = in_job(&sandbox, "run --on-error continue false");
    assert_eq!(output.stderr.matches("::error ").count(), 10);
}

#[test]
fn a_serial_run_is_captured_and_its_logs_are_kept() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a",
    );
    for variable in ["CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE"] {
        let output = sandbox.orch_with("run -q -- sh -c 'echo $ORCH_STACK_NAME'", |command| {
            command.env(variable, "true");
        });
        assert_eq!(output.stdout, "a\nb\n", "{variable}");
        let logs = sandbox.orch("runs logs");
        assert!(logs.stdout.contains("a\n"), "{variable}: {logs}");
    }
    let live = sandbox.orch("run -q -- sh -c 'echo $ORCH_STACK_NAME'");
    assert_eq!(live.stdout, "a\nb\n");
    assert_eq!(sandbox.orch("runs logs").stdout, "");
    let output = sandbox.orch_with("run -q --output live -- echo x", |command| {
        command.env("CI", "true");
    });
    assert_eq!(output.stdout, "x\nx\n");
    assert_eq!(sandbox.orch("runs logs").stdout, "");
}

/// Earlier content of the summary stays, and the summary never gets too long for GitHub.
#[test]
fn the_summary_of_the_step_gets_a_report() {
    let sandbox = Sandbox::layout("a\nb");
    let summary = sandbox.path("/summary.md");
    let run = |arguments: &str| {
        sandbox.orch_with(arguments, |command| {
            command
                .env("GITHUB_ACTIONS", "true")
                .env("GITHUB_STEP_SUMMARY", &summary);
        })
    };
    sandbox.write("/summary.md", "before\n");
    assert_eq!(
        run("run -q --on-error continue -- sh -c 'test $ORCH_STACK_NAME = a'").code(),
        1
    );
    let text = sandbox.read("/summary.md");
    assert!(
        text.starts_with("before\n") && text.contains("/b"),
        "{text}"
    );
    assert_eq!(run("run -q --dry-run true").code(), 0);
    assert_eq!(run("list").code(), 0);
    assert_eq!(sandbox.read("/summary.md"), text);
    let full = "x".repeat((1 << 20) - 100);
    sandbox.write("/summary.md", &full);
    assert_eq!(run("run -q true").code(), 0);
    assert_eq!(sandbox.read("/summary.md").len(), full.len());
}

/// If both streams are merged, as a CI system reads them, each section has its own output.
#[test]
fn markers_and_output_are_in_exact_order() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a",
    );
    let script = "cd \"$1\" && exec \"$2\" run -- sh -c 'echo out $ORCH_STACK_NAME; echo err $ORCH_STACK_NAME >&2; echo end $ORCH_STACK_NAME' 2>&1";
    let orch = sandbox.command("");
    let program = orch.get_program().to_owned();
    let mut shell = std::process::Command::new("sh");
    sandbox.isolate(&mut shell);
    shell.env("GITHUB_ACTIONS", "true");
    shell
        .args(["-c", script, "sh"])
        .arg(sandbox.path("/"))
        .arg(program);
    let output = sandbox.output(&shell.output().unwrap());
    assert_snapshot!(output, @"
    ::group::orch: /a: succeeded in [time]
    out a
    err a
    end a
    ::endgroup::
    ::group::orch: /b: succeeded in [time]
    out b
    err b
    end b
    ::endgroup::
    orch: 2 succeeded in [time]
    ");
}
