//! `orch run`: streams, failures, look-up of programs.

use std::io::Write as _;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::support::Sandbox;

fn three_stacks() -> Sandbox {
    Sandbox::layout(
        "
        a after /b
        b
        c",
    )
}

#[test]
fn run_starts_the_command_in_each_stack_in_order() {
    assert_snapshot!(three_stacks().orch("run pwd"), @"
    $ROOT/b
    $ROOT/a
    $ROOT/c
    [stderr]
    orch: /b: pwd
    orch: /a: pwd
    orch: /c: pwd
    orch: 3 succeeded in [time]
    ");
}

#[test]
fn run_uses_the_directory_of_the_stack() {
    let sandbox = Sandbox::layout(
        "
        a/b
        a/c wants /d
        d",
    );
    assert_snapshot!(sandbox.orch_in("/a", "run --quiet pwd"), @"
    $ROOT/a/b
    $ROOT/a/c
    $ROOT/d
    ");
    assert_snapshot!(sandbox.orch("-C a/b run --quiet -- pwd"), @"$ROOT/a/b");
}

#[test]
fn arguments_reach_the_command_as_they_are() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox.orch("run -- printf '[%s]' 'a b' '' '$HOME' '*' \"'\" --tags -q --");
    assert_snapshot!(output, @r"
    [a b][][$HOME][*]['][--tags][-q][--]
    [stderr]
    orch: /a: printf '[%s]' 'a b' '' '$HOME' '*' ''\''' --tags -q --
    orch: 1 succeeded in [time]
    ");
}

#[test]
fn run_passes_words_after_the_command_to_it() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox.orch("run --quiet printf '%s ' --reverse --dry-run -x --help");
    assert_snapshot!(output, @"--reverse --dry-run -x --help");
}

#[test]
fn run_uses_no_shell() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("run -q -- echo '$ORCH_STACK_PATH' '|' 'false;'"), @"$ORCH_STACK_PATH | false;");
}

#[test]
fn output_and_errors_stay_apart() {
    let sandbox = three_stacks();
    let output = sandbox.orch("run -- sh -c 'echo out; echo err >&2'");
    assert_eq!(output.stdout, "out\nout\nout\n");
    assert_snapshot!(output.stderr, @"
    orch: /b: sh -c 'echo out; echo err >&2'
    err
    orch: /a: sh -c 'echo out; echo err >&2'
    err
    orch: /c: sh -c 'echo out; echo err >&2'
    err
    orch: 3 succeeded in [time]
    ");
}

#[test]
fn run_passes_on_an_unfinished_line() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox.command("run -q -- printf 'no newline'").output();
    assert_eq!(output.unwrap().stdout, b"no newline");
}

#[test]
fn run_gives_the_command_stdin() {
    let sandbox = Sandbox::layout(
        "
        a
        b",
    );
    let mut orch = sandbox
        .command("run -q -- sh -c 'read line; echo $ORCH_STACK_NAME got $line'")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = orch.stdin.take().unwrap();
    stdin.write_all(b"one\ntwo\n").unwrap();
    drop(stdin);
    let output = orch.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "a got one\nb got two\n"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn run_gives_the_command_the_terminal() {
    let sandbox = Sandbox::layout("a");
    sandbox.write_program(
        "/a/tool",
        "#!/bin/sh\ntest -t 0 && test -t 1 && test -t 2 && echo yes > ../terminal\n",
    );
    let orch = crate::support::orch_program().display();
    if let Some(mut terminal) = sandbox.in_terminal(&format!("'{orch}' run ./tool")) {
        let output = sandbox.output(&terminal.output().unwrap());
        assert_eq!(sandbox.read("/terminal"), "yes\n", "{output}");
    }
}

#[test]
fn reverse_is_exactly_the_opposite_order() {
    let sandbox = Sandbox::layout(
        "
        a
        a/n
        b after /z
        c before /a
        y
        z after /y",
    );
    let forward = sandbox.orch("list --order").stdout;
    let mut expected: Vec<&str> = forward.lines().collect();
    expected.reverse();
    let output = sandbox.orch("run --quiet --reverse -- sh -c 'echo $ORCH_STACK_PATH'");
    let ran: Vec<&str> = output
        .stdout
        .lines()
        .map(|path| path.trim_start_matches('/'))
        .collect();
    assert_eq!(ran, expected);
    assert_snapshot!(sandbox.orch("run --reverse --dry-run true"), @"
    /b: true
    /z: true
    /y: true
    /a/n: true
    /a: true
    /c: true
    ");
}

#[test]
fn dry_run_prints_what_would_run_and_runs_nothing() {
    let sandbox = three_stacks();
    assert_snapshot!(sandbox.orch("run --dry-run -- touch 'the file' \"it's\""), @r"
    /b: touch 'the file' 'it'\''s'
    /a: touch 'the file' 'it'\''s'
    /c: touch 'the file' 'it'\''s'
    ");
    assert!(!sandbox.path("/a/the file").exists());
}

#[test]
fn dry_run_finds_what_a_run_would_find() {
    let sandbox = three_stacks();
    assert_eq!(sandbox.orch("run --dry-run no-such-program").code(), 5);
}

#[test]
fn by_default_a_failure_stops_the_run() {
    let sandbox = three_stacks();
    assert_snapshot!(sandbox.orch("run -- sh -c 'exit 7'"), @"
    [stderr]
    orch: /b: sh -c 'exit 7'
    orch: cancelled /a: the run stopped when /b failed
    orch: cancelled /c: the run stopped when /b failed
    orch: failed /b: exit status 7 after [time]
    orch: 0 succeeded, 1 failed, 2 cancelled in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
    let stop = sandbox.orch("run --on-error stop -- sh -c 'exit 7'");
    let default = sandbox.orch("run -- sh -c 'exit 7'");
    assert_eq!(stop.to_string(), default.to_string());
}

#[test]
fn run_summary_names_the_first_stacks_that_did_not_run() {
    let stacks = |last: usize, rest: &str| -> String {
        let stacks = (0..=last).map(|number| format!("s{number}{rest}"));
        stacks.collect::<Vec<_>>().join("\n")
    };
    let sandbox = Sandbox::layout(&stacks(5, ""));
    let few = sandbox.orch("run -q false");
    assert_eq!(few.stderr.matches("orch: cancelled /s").count(), 5, "{few}");
    let sandbox = Sandbox::layout(&stacks(8, ""));
    let run = sandbox.orch("run -q false");
    assert_snapshot!(run, @"
    [stderr]
    orch: cancelled /s1, /s2, /s3 and 5 more: the run stopped when /s0 failed
    orch: all of them: orch runs show [run]
    orch: failed /s0: exit status 1 after [time]
    orch: 0 succeeded, 1 failed, 8 cancelled in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
    // What it says to see them all is true.
    let all = run
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("orch: all of them: orch "));
    let all = sandbox.orch(&all.unwrap().replace("[run]", "last"));
    assert_eq!(all.stdout.matches("cancelled").count(), 8 + 1, "{all}");
    // Each cause has its own line, and without a record there is nowhere to look.
    let layout = stacks(8, " after /x") + "\nx\ny\ny/z";
    let sandbox = Sandbox::layout(&layout);
    sandbox.write("/.orch", "no folder");
    let command = "run -q --on-error skip-dependents -- sh -c 'test $ORCH_STACK_NAME = z'";
    assert_snapshot!(sandbox.orch(command), @"
    [stderr]
    warning: this run is not recorded: `.orch` is not a directory; it cannot be resumed, and a second run can start at the same time

    orch: skipped /s0, /s1, /s2 and 6 more: they run after /x, which failed
    orch: skipped /y/z: runs after /y, which failed
    orch: failed /x: exit status 1 after [time]
    orch: failed /y: exit status 1 after [time]
    orch: 0 succeeded, 2 failed, 10 skipped in [time]
    [exit status 1]
    ");
}

#[test]
fn run_summary_counts_successes_before_a_failure() {
    let sandbox = three_stacks();
    let command = "run -- sh -c 'test $ORCH_STACK_NAME != a'";
    assert_snapshot!(sandbox.orch(command), @"
    [stderr]
    orch: /b: sh -c 'test $ORCH_STACK_NAME != a'
    orch: /a: sh -c 'test $ORCH_STACK_NAME != a'
    orch: cancelled /c: the run stopped when /a failed
    orch: failed /a: exit status 1 after [time]
    orch: 1 succeeded, 1 failed, 1 cancelled in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn dependents_of_a_failure_can_be_skipped() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a
        c after /b
        d
        e after /d",
    );
    let command = "run --on-error skip-dependents -- sh -c 'test $ORCH_STACK_NAME != a'";
    assert_snapshot!(sandbox.orch(command), @"
    [stderr]
    orch: /a: sh -c 'test $ORCH_STACK_NAME != a'
    orch: /d: sh -c 'test $ORCH_STACK_NAME != a'
    orch: /e: sh -c 'test $ORCH_STACK_NAME != a'
    orch: skipped /b: runs after /a, which failed
    orch: skipped /c: runs after /a, which failed
    orch: failed /a: exit status 1 after [time]
    orch: 2 succeeded, 1 failed, 2 skipped in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn dependents_are_skipped_through_a_stack_that_is_not_selected() {
    let sandbox = Sandbox::layout(
        "
        a [x]
        b after /a
        c [x] after /b
        d [x]",
    );
    let command =
        "run -q --tags x --on-error skip-dependents -- sh -c 'test $ORCH_STACK_NAME != a'";
    assert_snapshot!(sandbox.orch(command), @"
    [stderr]
    orch: skipped /c: runs after /a, which failed
    orch: failed /a: exit status 1 after [time]
    orch: 1 succeeded, 1 failed, 1 skipped in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn run_reverse_skips_the_dependencies_of_a_failed_stack() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a
        c after /b
        d",
    );
    let command =
        "run -q --reverse --on-error skip-dependents -- sh -c 'test $ORCH_STACK_NAME != c'";
    assert_snapshot!(sandbox.orch(command), @"
    [stderr]
    orch: skipped /b: runs after /c, which failed
    orch: skipped /a: runs after /c, which failed
    orch: failed /c: exit status 1 after [time]
    orch: 1 succeeded, 1 failed, 2 skipped in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn run_continues_after_failures_with_on_error() {
    let sandbox = three_stacks();
    let command = "-- sh -c 'test $ORCH_STACK_NAME = a'";
    let output = sandbox.orch(&format!("run --on-error continue {command}"));
    assert_snapshot!(output, @"
    [stderr]
    orch: /b: sh -c 'test $ORCH_STACK_NAME = a'
    orch: /a: sh -c 'test $ORCH_STACK_NAME = a'
    orch: /c: sh -c 'test $ORCH_STACK_NAME = a'
    orch: failed /b: exit status 1 after [time]
    orch: failed /c: exit status 1 after [time]
    orch: 1 succeeded, 2 failed in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
    let other = sandbox.orch(&format!("run --continue-on-error {command}"));
    assert_eq!(other.to_string(), output.to_string());
}

#[test]
fn quiet_says_nothing_where_all_is_well() {
    assert_snapshot!(three_stacks().orch("run --quiet true"), @"");
}

#[test]
fn quiet_still_says_what_went_wrong() {
    assert_snapshot!(three_stacks().orch("run -q false"), @"
    [stderr]
    orch: cancelled /a: the run stopped when /b failed
    orch: cancelled /c: the run stopped when /b failed
    orch: failed /b: exit status 1 after [time]
    orch: 0 succeeded, 1 failed, 2 cancelled in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn run_counts_a_killed_command_as_failed() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("run -- sh -c 'kill -9 $$'"), @"
    [stderr]
    orch: /a: sh -c 'kill -9 $$'
    orch: failed /a: ended by SIGKILL after [time]
    orch: 0 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn run_counts_an_exit_status_of_130_as_a_failure() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("run -- sh -c 'exit 130'"), @"
    [stderr]
    orch: /a: sh -c 'exit 130'
    orch: failed /a: exit status 130 after [time]
    orch: 0 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn run_with_a_missing_program_runs_nothing() {
    let sandbox = three_stacks();
    assert_snapshot!(sandbox.orch("run no-such-program --version"), @"
    [stderr]
    error: program `no-such-program` was not found in the PATH
    note: needed in stack `/a` and 2 more; nothing was run
    [exit status 5]
    ");
}

#[test]
fn run_with_a_program_missing_in_one_stack_runs_nothing() {
    let sandbox = three_stacks();
    for stack in ["a", "b"] {
        sandbox.write_program(&format!("/{stack}/tool.sh"), "#!/bin/sh\ntouch ran\n");
    }
    assert_snapshot!(sandbox.orch("run ./tool.sh"), @"
    [stderr]
    error: program `./tool.sh` does not exist
    note: needed in stack `/c`; nothing was run
    [exit status 5]
    ");
    assert!(!sandbox.path("/b/ran").exists(), "nothing runs");
}

#[cfg(unix)]
#[test]
fn run_reports_an_unreadable_program_path() {
    let sandbox = Sandbox::layout("a");
    sandbox.symlink("tool", "/a/tool");
    let output = sandbox.orch("run ./tool");
    assert_eq!(output.code(), 5, "{output}");
    let error = "error: program `./tool` cannot be looked up: ";
    assert!(output.stderr.starts_with(error), "{output}");
}

#[test]
fn run_looks_up_a_relative_program_in_the_stack_directory() {
    let sandbox = Sandbox::layout(
        "
        a
        a/b",
    );
    sandbox.write_program("/a/tool.sh", "#!/bin/sh\necho own of a\n");
    sandbox.write_program("/a/b/tool.sh", "#!/bin/sh\necho own of b\n");
    sandbox.write_program("/tool.sh", "#!/bin/sh\necho of the root, which is wrong\n");
    assert_snapshot!(sandbox.orch("run --quiet ./tool.sh"), @"
    own of a
    own of b
    ");
    assert_snapshot!(sandbox.orch_in("/a/b", "run --quiet ../tool.sh"), @"own of a");
}

#[test]
fn run_takes_an_absolute_program_as_it_is() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("run --quiet /bin/sh -c 'echo $0'"), @"/bin/sh");
}

#[test]
fn run_rejects_a_file_that_is_not_executable() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/a/tool.sh", "#!/bin/sh\n");
    assert_snapshot!(sandbox.orch("run ./tool.sh"), @"
    [stderr]
    error: program `./tool.sh` is not an executable file
    note: needed in stack `/a`; nothing was run
    [exit status 5]
    ");
}

#[test]
fn run_rejects_a_directory_as_a_program() {
    let sandbox = Sandbox::layout("a");
    sandbox.mkdir("/a/tool");
    assert_eq!(sandbox.orch("run ./tool").code(), 5);
}

#[test]
fn run_looks_up_programs_in_the_path_of_the_command() {
    let sandbox = Sandbox::new(
        r#"
//- /env.tm
terramate {
  config {
    run {
      env {
        PATH = "${terramate.root.path.fs.absolute}/bin-of-root:/usr/bin:/bin"
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
terramate {
  config {
    run {
      env {
        PATH = "${terramate.root.path.fs.absolute}/bin-of-b"
      }
    }
  }
}
"#,
    );
    sandbox.write_program("/bin-of-root/tool", "#!/bin/sh\necho from the root\n");
    sandbox.write_program("/bin-of-b/tool", "#!/bin/sh\necho from b\n");
    assert_snapshot!(sandbox.orch("run --quiet tool"), @"
    from the root
    from b
    ");
}

#[test]
fn run_ignores_the_host_path_if_a_stack_sets_its_own() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/env.tm",
        "terramate {\n  config {\n    run {\n      env {\n        PATH = \"/nowhere\"\n      }\n    }\n  }\n}\n",
    );
    assert_snapshot!(sandbox.orch("run ls"), @"
    [stderr]
    error: program `ls` was not found in the PATH
    note: needed in stack `/a`; nothing was run
    [exit status 5]
    ");
}

#[test]
fn run_finds_no_program_without_a_path() {
    // An empty PATH would mean the stack directory, so that a file in it could pass for a program.
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/env.tm",
        "terramate {\n  config {\n    run {\n      env {\n        PATH = null\n      }\n    }\n  }\n}\n",
    );
    sandbox.write_program("/a/tool", "#!/bin/sh\necho ran\n");
    let output = sandbox.orch("run --quiet tool");
    assert_eq!((output.code(), &*output.stdout), (5, ""), "{output}");
}

#[test]
fn run_with_a_script_without_a_shebang_fails_only_its_stack() {
    let sandbox = Sandbox::layout(
        "
        a
        b",
    );
    sandbox.write_program("/a/tool", "\u{1}no program at all\n");
    sandbox.write_program("/b/tool", "#!/bin/sh\necho fine\n");
    let output = sandbox.orch("run -q --on-error continue ./tool");
    assert_eq!((output.code(), &*output.stdout), (1, "fine\n"), "{output}");
    assert!(
        output.stderr.contains("failed /a: could not be started: "),
        "{output}"
    );
}

#[test]
fn run_with_a_wrong_environment_of_one_stack_runs_nothing() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/b/stack.tm",
        "stack {\n}\nterramate {\n  config {\n    run {\n      env {\n        X = 1\n      }\n    }\n  }\n}\n",
    );
    let output = sandbox.orch("run touch ran");
    assert_eq!(output.code(), 3, "{output}");
    assert!(!sandbox.path("/a/ran").exists());
}

#[test]
fn run_with_a_wrong_configuration_runs_nothing() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/elsewhere/stack.tm", "stack {\n  id = 1\n}\n");
    let output = sandbox.orch_in("/a", "run touch ran");
    assert_eq!(output.code(), 3);
    assert!(!sandbox.path("/a/ran").exists());
}

#[test]
fn run_continues_despite_warnings() {
    let sandbox = Sandbox::layout("a after /nowhere");
    let output = sandbox.orch("run --quiet echo ran");
    assert_eq!((output.code(), &*output.stdout), (0, "ran\n"));
    assert!(output.stderr.starts_with("warning: "), "{output}");
}

#[test]
fn run_fails_a_stack_whose_directory_vanishes() {
    let sandbox = Sandbox::layout(
        "
        a
        b
        c",
    );
    let output =
        sandbox.orch("run -q --on-error continue -- sh -c 'rm -rf ../b; echo $ORCH_STACK_NAME'");
    assert_eq!((output.code(), &*output.stdout), (1, "a\nc\n"), "{output}");
    assert!(
        output.stderr.contains("failed /b: could not be started"),
        "{output}"
    );
}

#[test]
fn orch_may_run_orch() {
    let sandbox = Sandbox::layout(
        "
        a
        a/b",
    );
    let orch = crate::support::orch_program().display().to_string();
    let output = sandbox.orch(&format!("run --quiet --exclude nothing '{orch}' list"));
    assert_snapshot!(output, @"
    .
    b
    .
    [stderr]
    note: `--exclude nothing` matches no stack of the project
    ");
}
