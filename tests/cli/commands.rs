//! Version, flags before the command, usage errors, exit statuses, broken pipes.

use std::process::Stdio;

use insta::assert_snapshot;

use crate::support::Sandbox;

#[test]
fn exit_status_reports_the_result() {
    let sandbox = Sandbox::layout("a");
    assert_eq!(sandbox.orch("list").code(), 0);
    assert_eq!(sandbox.orch("list --tags nothing").code(), 0);
    assert_eq!(sandbox.orch("run no-such-program").code(), 5);
    assert_eq!(sandbox.orch("list --no-such-flag").code(), 64);
    sandbox.write("/a/more.tm", "unknown {\n}\n");
    assert_eq!(sandbox.orch("list").code(), 3);
}

#[cfg(unix)]
#[test]
fn exit_status_of_a_failed_command_is_one() {
    let sandbox = Sandbox::layout("a");
    for status in [1, 2, 3, 5, 64, 255] {
        let output = sandbox.orch(&format!("run -q -- sh -c 'exit {status}'"));
        assert_eq!(output.code(), 1, "{status}");
    }
}

#[test]
fn usage_error_without_arguments_shows_the_help() {
    let output = Sandbox::new("").orch("");
    assert_eq!(output.code(), 64);
    assert!(output.stderr.contains("Usage: orch"), "{output}");
}

#[test]
fn version_says_which() {
    let expected = format!("orch {}\n", env!("CARGO_PKG_VERSION"));
    for arguments in ["--version", "-V", "version"] {
        let output = Sandbox::new("").orch(arguments);
        assert_eq!(output.to_string(), expected, "{arguments}");
    }
}

#[test]
fn version_says_what_it_is_built_from_if_asked() {
    let sandbox = Sandbox::new("");
    let expected = sandbox.orch("version -v").to_string();
    let names = expected.lines().skip(1).map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        assert!(!value.is_empty(), "{expected}");
        name
    });
    let known = ["commit", "commit date", "target", "rustc", "features"];
    assert_eq!(names.collect::<Vec<_>>(), known);
    assert!(expected.contains(std::env::consts::ARCH), "{expected}");
    let brief = format!("orch {}\n", env!("CARGO_PKG_VERSION"));
    assert!(expected.starts_with(&brief), "{expected}");
    for arguments in [
        "--version -v",
        "-v --version",
        "-vV",
        "-V --verbose",
        "-v version",
    ] {
        let output = sandbox.orch(arguments);
        assert_eq!(output.to_string(), expected, "{arguments}");
    }
}

#[test]
fn help_and_version_need_no_project() {
    let sandbox = Sandbox::new("//- /broken.tm\nstack {\n");
    for arguments in [
        "--help",
        "--version",
        "version",
        "run --help",
        "help",
        "help run",
        "help changes",
        "completions bash",
    ] {
        assert_eq!(sandbox.orch(arguments).code(), 0, "{arguments}");
    }
}

#[test]
fn usage_error_is_explained() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("lst"), @"
    [stderr]
    error: unrecognized subcommand 'lst'

      tip: a similar subcommand exists: 'list'

    Usage: orch [OPTIONS] <COMMAND>

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --fromat json"), @"
    [stderr]
    error: unexpected argument '--fromat' found

      tip: a similar argument exists: '--format'

    Usage: orch list --format <FORMAT>

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --format yaml"), @"
    [stderr]
    error: invalid value 'yaml' for '--format <FORMAT>'
      [possible values: text, json, github-matrix, gitlab-matrix]

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("run --on-error ignore true"), @"
    [stderr]
    error: invalid value 'ignore' for '--on-error <WHAT>'
      [possible values: stop, skip-dependents, continue]

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("run --continue-on-error --on-error stop true"), @"
    [stderr]
    error: the argument '--continue-on-error[=<true|false>]' cannot be used with '--on-error <WHAT>'

    Usage: orch run [OPTIONS] [--] COMMAND…
           orch run [OPTIONS] --resume [RUN]

    For more information, try '--help'.
    [exit status 64]
    ");
}

#[test]
fn flags_of_a_command_may_stand_before_it() {
    let sandbox = Sandbox::layout(
        "
        a [x]
        b [y] after /a",
    );
    for (early, late) in [
        ("--tags x list", "list --tags x"),
        ("--tags=y --why list", "list --tags=y --why"),
        ("-C b --no-recursive list", "list --no-recursive -C b"),
        ("--quiet run git --version", "run --quiet git --version"),
        ("-qX run -- git --version", "run -qX -- git --version"),
        (
            "--disable-safeguards git run --dry-run git",
            "run --disable-safeguards git --dry-run git",
        ),
        (
            "--include-dependents --match a run --reverse --dry-run -- git --tags",
            "run --include-dependents --match a --reverse --dry-run -- git --tags",
        ),
        ("--changed list", "list --changed"),
        ("--format json runs list", "runs list --format json"),
        ("--chagned list", "list --chagned"),
    ] {
        let [early_output, late_output] = [early, late].map(|line| sandbox.orch(line).to_string());
        assert_eq!(early_output, late_output, "{early}");
    }
}

#[test]
fn usage_error_for_a_flag_before_a_command_that_does_not_take_it() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("--tags a validate"), @"
    [stderr]
    error: `--tags` is before the command, and `orch validate` does not take it

    Usage: orch validate [OPTIONS]

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("-qX --reverse runs list"), @"
    [stderr]
    error: `--reverse` is before the command, and `orch runs list` does not take it

    Usage: orch runs list [OPTIONS]

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("--changed"), @"
    [stderr]
    error: `--changed` belongs to a command, and no command is given

    Usage: orch [OPTIONS] <COMMAND>

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("--changed lst"), @"
    [stderr]
    error: unrecognized subcommand 'lst'

      tip: a similar subcommand exists: 'list'

    Usage: orch [OPTIONS] <COMMAND>

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("--fromat json list"), @"
    [stderr]
    error: unexpected argument '--fromat' found

      tip: a similar argument exists: '--root'

    Usage: orch --root <COMMAND>

    For more information, try '--help'.
    [exit status 64]
    ");
}

#[test]
fn flags_of_terramate_that_change_nothing_may_stand_before_any_command() {
    let sandbox = Sandbox::layout("a [x]\nb");
    for flags in [
        "--quiet",
        "-q",
        "-X",
        "-qX",
        "--disable-safeguards=all",
        "--disable-safeguards git,none",
        "--disable-check-git-untracked",
        "--disable-check-git-uncommitted",
        "--quiet -v -X",
    ] {
        for (command, shown) in [("list", "a\nb\n"), ("list --tags x", "a\n")] {
            let output = sandbox.orch(&format!("{flags} {command}"));
            assert_eq!((output.code(), &*output.stdout), (0, shown), "{flags}");
        }
    }
    assert_eq!(sandbox.orch("-qXc list").code(), 4, "outside of git");
    assert_eq!(sandbox.orch("--quiet --tags x list").stdout, "a\n");
    for line in [
        "list --quiet",
        "list -X",
        "list --disable-safeguards=all",
        "--no-recursive validate",
        "--changed validate",
        "--quiet",
    ] {
        assert_eq!(sandbox.orch(line).code(), 64, "{line}");
    }
}

#[cfg(unix)]
#[test]
fn continue_on_error_takes_a_value() {
    let sandbox = Sandbox::layout(
        "
        a
        b",
    );
    for (flag, status, ran) in [
        ("--continue-on-error", 1, 2),
        ("--continue-on-error=true", 1, 2),
        ("--continue-on-error=false", 1, 1),
        ("--continue-on-error=maybe", 64, 0),
    ] {
        let output = sandbox.orch(&format!("run {flag} -- sh -c 'echo ran; false'"));
        let lines = output.stdout.lines().count();
        assert_eq!((output.code(), lines), (status, ran), "{output}");
    }
}

#[test]
fn usage_error_for_an_empty_tag_filter() {
    let sandbox = Sandbox::layout("a [dev]");
    assert_snapshot!(sandbox.orch("run --reverse --tags '' git --version"), @"
    [stderr]
    error: the value of `--tags` is empty
      = help: remove `--tags` to select stacks regardless of tags
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --tags dev:"), @"
    [stderr]
    error: in --tags: a tag is missing in `dev:`
      = help: remove `--tags` to select stacks regardless of tags
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --no-tags ''"), @"
    [stderr]
    error: the value of `--no-tags` is empty
      = help: remove `--no-tags` to exclude no stacks by tag
    [exit status 64]
    ");
    for arguments in [
        "list --tags ,",
        "list --tags :",
        "list --tags :dev",
        "list --tags dev,",
        "list --tags ,dev",
        "list --tags dev,,x",
        "run --tags dev, git --version",
        "list --tags dev --tags ''",
        "list --no-tags dev,",
        "list --no-tags ,dev",
        "trigger --recursive --tags '' a",
        "list --match ''",
        "list --exclude ''",
        "list --stacks-from ''",
        "list --changed --base ''",
        "run --limit '' git",
        "-C '' list",
    ] {
        let output = sandbox.orch(arguments);
        assert_eq!((output.code(), &*output.stdout), (64, ""), "{output}");
    }
    assert_eq!(sandbox.orch("list --tags a,dev").stdout, "a\n");
}

#[test]
fn flags_of_changed_name_it_if_it_is_missing() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("list --base main"), @"
    [stderr]
    error: `--base` has no effect without `--changed`; add `--changed`
    [exit status 64]
    ");
    for flag in [
        "--fetch",
        "--enable-change-detection=git-untracked",
        "--disable-change-detection=git-untracked",
    ] {
        let output = sandbox.orch(&format!("list {flag}"));
        assert_eq!(output.code(), 64, "{output}");
        assert!(output.stderr.contains("add `--changed`"), "{output}");
    }
}

#[test]
fn root_ignores_the_current_directory() {
    let sandbox = Sandbox::layout(
        "
        a
        b/c",
    );
    assert_eq!(sandbox.orch("-C b/c list").to_string(), ".\n");
    for arguments in [
        "-C b/c --root list",
        "-C b/c list --root",
        "--root -C b list --match a --match b",
    ] {
        assert_eq!(sandbox.orch(arguments).stdout, "a\nb/c\n", "{arguments}");
    }
    assert_eq!(sandbox.orch("-C b why --root b/c").code(), 0);
}

#[test]
fn run_needs_a_command() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("run"), @"
    [stderr]
    error: the following required arguments were not provided:
      <COMMAND>...

    Usage: orch run [OPTIONS] [--] COMMAND…
           orch run [OPTIONS] --resume [RUN]

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_eq!(sandbox.orch("run --").code(), 64);
    assert_eq!(sandbox.orch("run --reverse --").code(), 64);
}

#[test]
fn usage_error_for_an_empty_command() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox.orch("run ''");
    assert!([5, 64].contains(&output.code()), "{output}");
    assert!(output.stderr.starts_with("error: "), "{output}");
}

#[test]
fn usage_error_comes_before_configuration_errors() {
    let sandbox = Sandbox::new("//- /broken.tm\nstack {\n");
    assert_eq!(sandbox.orch("list --tags NO").code(), 64);
}

#[test]
fn verbose_and_orch_log_tell_what_goes_on() {
    let sandbox = Sandbox::layout("a");
    let verbose = sandbox.orch("-v list");
    assert_eq!((verbose.code(), &*verbose.stdout), (0, "a\n"));
    assert!(verbose.stderr.contains("INFO"), "{verbose}");
    let more = sandbox.orch("list -vvv");
    assert!(more.stderr.lines().count() > verbose.stderr.lines().count());
    let log = sandbox.orch_with("list", |orch| {
        orch.env("ORCH_LOG", "orch=info");
    });
    assert!(log.stderr.contains("INFO"), "{log}");
    assert_eq!(sandbox.orch("list").stderr, "", "silent otherwise");
}

#[test]
fn usage_error_for_an_invalid_orch_log() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox.orch_with("list", |orch| {
        orch.env("ORCH_LOG", "orch=shouting");
    });
    assert_eq!(output.code(), 64);
    assert!(output.stderr.starts_with("error: in ORCH_LOG"), "{output}");
}

#[test]
fn closed_pipe_is_silent() {
    let sandbox = Sandbox::layout(
        "
        a after /b
        b",
    );
    for arguments in [
        "list",
        "list --order --why",
        "list --format json",
        "graph",
        "graph --format mermaid",
        "graph --format json",
        "env",
        "env --format json",
        "globals",
        "globals --format json",
        "eval 1",
        "eval 1 --format json",
        "validate --format json",
        "run --dry-run git",
        "completions bash",
        "--help",
        "--version",
        "version",
        "help",
        "help changes",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = sandbox.command(arguments);
        let output = command.stdout(writer).stderr(Stdio::piped()).spawn();
        let output = output.unwrap().wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stderr = stderr.lines().find(|line| !line.starts_with("note: "));
        assert_eq!(stderr, None, "{arguments}");
        assert_eq!(output.status.code(), Some(0), "{arguments}");
    }
}

#[test]
fn closed_stderr_stops_no_run() {
    let sandbox = Sandbox::layout(
        "
        a after /nowhere
        b",
    );
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = sandbox.command("run git --version");
    let output = command.stderr(writer).stdout(Stdio::piped()).spawn();
    let output = output.unwrap().wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
    assert_eq!(output.status.code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_exits_with_an_external_failure() {
    let sandbox = Sandbox::layout("a");
    for arguments in [
        "list",
        "list --format json",
        "graph",
        "env",
        "eval 1",
        "completions bash",
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let mut command = sandbox.command(arguments);
        let output = command.stdout(full.unwrap()).stderr(Stdio::piped()).spawn();
        let output = output.unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{arguments}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.starts_with("error: "), "{arguments}: {stderr}");
    }
}

#[cfg(unix)]
#[test]
fn deleted_current_directory_exits_with_an_external_failure() {
    let sandbox = Sandbox::layout("a");
    sandbox.mkdir("/gone");
    let orch = crate::support::orch_program().display().to_string();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "rmdir ../gone && exec \"$0\" list", &orch]);
    let output = shell.current_dir(sandbox.path("/gone")).output().unwrap();
    let output = sandbox.output(&output);
    assert_eq!(output.code(), 5, "{output}");
    assert!(output.stderr.starts_with("error: "), "{output}");
}

#[cfg(unix)]
#[test]
fn closed_pipe_does_not_hide_an_error() {
    let sandbox = Sandbox::new("//- /a/stack.tm\nstack {\n  nonsense = 1\n}\n");
    for command in ["validate", "list", "graph", "env", "globals", "eval 1"] {
        let mut orch = sandbox.command(&format!("{command} --format json"));
        let mut orch = orch.stdout(std::process::Stdio::piped()).spawn().unwrap();
        drop(orch.stdout.take());
        assert_eq!(
            crate::support::ended(&mut orch).code(),
            Some(3),
            "{command}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_named() {
    let sandbox = Sandbox::layout("a");
    for command in [
        "list",
        "graph",
        "env",
        "--help",
        "--version",
        "completions bash",
    ] {
        let mut orch = sandbox.command(command);
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = orch.stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{command}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            stderr.contains("No space left on device"),
            "{command}: {stderr}"
        );
    }
}
