//! What people type out of habit, and what `orch` says to that.

use nix::sys::signal::Signal;

use insta::assert_snapshot;

use crate::support::{Background, Sandbox, run_ids};

fn nested() -> Sandbox {
    let sandbox = Sandbox::layout(
        "
        envs/dev
        envs/dev/app
        envs/prod",
    );
    sandbox.git_init();
    sandbox
}

/// The commands that a help line names, without quotes.
fn flags(stderr: &str) -> Vec<String> {
    let help = stderr.lines().find(|line| line.contains("= help: "));
    let help = help.unwrap_or_else(|| panic!("{stderr}"));
    let parts = help.split('`').skip(1).step_by(2);
    parts.map(str::to_owned).collect()
}

#[test]
fn commands_that_select_stacks_name_the_flags_for_a_path() {
    let sandbox = nested();
    for line in [
        "list",
        "list --changed",
        "plan",
        "plan --destroy",
        "destroy",
        "graph",
        "env",
        "globals",
        "apply",
    ] {
        let output = sandbox.orch(&format!("{line} envs/dev"));
        assert_eq!(output.code(), 64, "{line}: {output}");
        assert!(output.stderr.contains("`envs/dev`"), "{line}: {output}");
        assert_eq!(
            flags(&output.stderr),
            ["--match envs/dev", "-C envs/dev"],
            "{line}: {output}"
        );
    }
}

#[test]
fn commands_that_select_stacks_can_be_told_so_as_advised() {
    let sandbox = nested();
    let advised = flags(&sandbox.orch("list envs/dev").stderr);
    let matched = sandbox.orch(&format!("list {}", advised[0]));
    assert_eq!(matched.stdout, "envs/dev\nenvs/dev/app\n");
    let inside = sandbox.orch(&format!("{} list", advised[1]));
    assert_eq!(inside.stdout, ".\napp\n");
}

#[test]
fn apply_names_the_flags_for_a_directory_also_beside_others() {
    let sandbox = nested();
    for line in [
        "apply --changed envs/dev",
        "apply --auto-approve /envs/dev",
        "-C envs apply dev",
    ] {
        let output = sandbox.orch(line);
        assert_eq!(output.code(), 64, "{line}: {output}");
        assert!(
            output.stderr.contains("is a directory, not a plan file"),
            "{line}: {output}"
        );
    }
    // What is no directory is a plan that is not there.
    let missing = sandbox.orch("apply plan");
    assert_eq!(missing.code(), 5, "{missing}");
    assert!(!missing.stderr.contains("--match"), "{missing}");
}

#[test]
fn a_stack_path_is_no_directory_to_work_in() {
    let sandbox = nested();
    let output = sandbox.orch("list /envs/dev");
    assert_eq!(flags(&output.stderr), ["--match /envs/dev"], "{output}");
}

#[test]
fn commands_that_select_stacks_quote_the_path_that_they_name() {
    let sandbox = nested();
    for (word, quoted) in [
        ("a b", "--match 'a b'"),
        ("a\nnote: `x`", r"--match 'a\nnote: `x`'"),
        ("\u{1b}[31m$(x)", r"--match '\u{1b}[31m$(x)'"),
    ] {
        let output = sandbox.orch_with("list", |command| {
            command.arg(word);
        });
        assert_eq!(output.code(), 64, "{output}");
        assert!(output.stderr.contains(quoted), "{output}");
        assert!(!output.stderr.contains("\nnote"), "{output}");
    }
}

#[test]
fn commands_without_a_selection_keep_their_errors() {
    let sandbox = nested();
    for line in [
        "validate envs/dev",
        "why envs/dev envs/prod",
        "list --fromat",
    ] {
        let output = sandbox.orch(line);
        assert_eq!(output.code(), 64, "{output}");
        assert!(output.stderr.contains("unexpected argument '"), "{output}");
    }
}

#[test]
fn run_notes_its_flags_after_the_command_and_passes_them_on() {
    let sandbox = nested();
    for (typed, flag, instead) in [
        (
            "run echo deploy --changed",
            "--changed",
            "orch run --changed -- echo deploy",
        ),
        (
            "run -j2 echo --tags prod --reverse x",
            "--tags",
            "orch run -j2 --tags prod --reverse -- echo x",
        ),
        (
            "run echo --include-dependents=2",
            "--include-dependents",
            "orch run '--include-dependents=2' -- echo",
        ),
        (
            "run echo --match=a --match",
            "--match",
            "orch run '--match=a' --match -- echo",
        ),
        (
            "--reverse run echo --dry-run",
            "--dry-run",
            "orch --reverse run --dry-run -- echo",
        ),
    ] {
        let output = sandbox.orch(typed);
        let note = format!(
            "note: `{flag}` after the command is passed to `echo`; to pass it to orch, write `{instead}`\n"
        );
        assert_eq!(output.stderr.matches("note: ").count(), 1, "{output}");
        assert!(output.stderr.contains(&note), "{output}");
        let passed = typed.split_once("echo ").unwrap().1;
        assert_eq!(output.stdout, format!("{passed}\n").repeat(3), "{output}");
    }
}

#[test]
fn run_says_nothing_of_flags_that_the_command_is_to_get() {
    let sandbox = nested();
    for typed in [
        "run -- echo deploy --changed",
        "run echo -- --changed",
        "run echo --quiet --output x --timeout 3s -j2 --parallelism 3",
        "run echo --dry-run=client --tagsx",
        "--reverse run -- echo --changed",
    ] {
        let output = sandbox.orch(typed);
        assert_eq!(output.code(), 0, "{output}");
        assert!(!output.stderr.contains("note: `"), "{output}");
    }
}

#[test]
fn run_shortens_a_long_command_in_the_note() {
    let sandbox = nested();
    let long = "x".repeat(200);
    let output = sandbox.orch(&format!("run echo {long} --changed"));
    let instead = "write `orch run --changed -- echo …`\n";
    assert!(output.stderr.contains(instead), "{output}");
}

#[test]
fn a_failed_run_ends_with_the_command_that_resumes_it() {
    let sandbox = nested();
    let failed = sandbox.orch("run --on-error continue -- test -e ok");
    assert_eq!(failed.code(), 1, "{failed}");
    let end = "\norch: to run what is left: orch run --resume [run]\n";
    assert!(failed.stderr.ends_with(end), "{failed}");
    // Quiet runs say what goes wrong, and so what to do then.
    let quiet = sandbox.orch("run -q -- test -e ok");
    assert!(quiet.stderr.ends_with(end), "{quiet}");
    // The command works as it is, with whichever run is the last one by then.
    let raw = sandbox
        .command("-C envs/dev run -- test -e ok")
        .output()
        .unwrap();
    let stderr = String::from_utf8(raw.stderr).unwrap();
    let last = stderr.lines().last().unwrap();
    let command = last.strip_prefix("orch: to run what is left: ").unwrap();
    let arguments = command.strip_prefix("orch -C envs/dev run --resume ");
    assert_eq!(arguments, Some(&*run_ids(&sandbox)[2]), "{stderr}");
    for stack in ["envs/dev", "envs/dev/app"] {
        sandbox.write(&format!("/{stack}/ok"), "");
    }
    assert_eq!(sandbox.orch("run -X -- true").code(), 0);
    let resumed = sandbox.orch(command.strip_prefix("orch ").unwrap());
    assert_eq!(resumed.code(), 0, "{resumed}");
    assert!(resumed.stderr.contains("2 succeeded"), "{resumed}");
    assert!(!resumed.stderr.contains("--resume"), "{resumed}");
}

#[test]
fn a_run_that_cannot_be_resumed_does_not_propose_it() {
    let unmarked = Sandbox::unmarked("");
    unmarked.write("/a/stack.tm.hcl", "stack {}");
    let output = unmarked.orch("run false");
    assert_eq!(output.code(), 1, "{output}");
    assert!(!output.stderr.contains("--resume"), "{output}");
}

#[test]
fn an_interrupted_run_reports_each_stack_once_and_how_to_resume() {
    let sandbox = nested();
    let script = "echo \"$ORCH_STACK_PATH\"; echo x >> \"$ORCH_ROOT/started\"\nexec sleep 600";
    let run = Background::run(&sandbox, "-j3 -X --output grouped", script);
    run.wait_for("/started", &["x", "x"]);
    run.signal(Signal::SIGINT);
    let output = run.end();
    assert_eq!(output.code(), 130, "{output}");
    for stack in ["/envs/dev", "/envs/prod"] {
        let ended = format!("{stack}: failed: ended by SIGINT");
        assert_eq!(output.stderr.matches(&ended).count(), 1, "{output}");
        assert!(
            !output.stderr.contains(&format!("failed {stack}")),
            "{output}"
        );
        let printed = output.stdout.lines().filter(|line| *line == stack);
        assert_eq!(printed.count(), 1, "{output}");
    }
    assert!(
        output.stderr.contains("0 succeeded, 2 failed, 1 cancelled"),
        "{output}"
    );
    let end = "\norch: to run what is left: orch run --resume [run]\n";
    assert!(output.stderr.ends_with(end), "{output}");
}

#[test]
fn flags_of_terramates_log_and_update_check_are_accepted() {
    let sandbox = Sandbox::layout("a");
    let flags = "--log-level debug --log-fmt json --log-destination=stdout --disable-checkpoint";
    assert_snapshot!(sandbox.orch(&format!("{flags} list")), @"a");
    assert_snapshot!(sandbox.orch("list --log-level=error --disable-checkpoint-signature"), @"a");
}

#[test]
fn run_warns_of_flags_that_report_to_terramates_cloud() {
    let sandbox = Sandbox::layout("a");
    let flags = "--sync-deployment --terragrunt --terraform-plan-file=out.tfplan -q";
    assert_snapshot!(sandbox.orch(&format!("run {flags} -- echo a")), @"
    a
    [stderr]
    warning: `--sync-deployment` has no effect: orch does not report to Terramate Cloud; `orch runs` shows this run
    ");
    assert_snapshot!(sandbox.orch("run --terragrunt -q -- echo a"), @"a");
}
