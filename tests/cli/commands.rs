//! Help, version, completions, usage errors, exit statuses, broken pipes.

use std::process::Stdio;

use insta::assert_snapshot;

use crate::support::Sandbox;

#[test]
fn the_exit_status_tells_what_happened() {
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
fn a_command_that_fails_gives_one_whatever_its_own_status() {
    let sandbox = Sandbox::layout("a");
    for status in [1, 2, 3, 5, 64, 255] {
        let output = sandbox.orch(&format!("run -q -- sh -c 'exit {status}'"));
        assert_eq!(output.code(), 1, "{status}");
    }
}

#[test]
fn without_arguments_the_help_is_shown_as_a_usage_error() {
    let output = Sandbox::new("").orch("");
    assert_eq!(output.code(), 64);
    assert!(output.stderr.contains("Usage: orch"), "{output}");
}

#[test]
fn help_has_examples_and_exit_statuses() {
    assert_snapshot!(Sandbox::new("").orch("--help"), @"
    Finds the stacks of an infrastructure monorepo, puts them in order and runs a command in each

    A stack is a directory with a `stack {}` block in a file ending in .tm, .tm.hcl or .orch.hcl.
    Terramate projects work as they are.

    Usage: orch [OPTIONS] <COMMAND>

    Commands:
      list         List stacks, one per line
      run          Run a command in each stack, in order
      runs         Look at earlier runs, which are on record in `.orch/runs`
      why          Tell the whole story of one stack
      graph        Draw which stack runs before which
      trigger      Let a stack count as changed, or not, without a change of its own
      validate     Check everything that can be wrong with the configuration
      env          Show what a run adds to the environment of each stack
      completions  Print a completion script for a shell

    Options:
      -C, --chdir <DIR>
              Work in this directory instead of the current one
              
              Can be repeated: each is relative to the one before.

      -v, --verbose...
              Tell on stderr what is going on; more with -vv and -vvv
              
              `ORCH_LOG` gives finer control: `ORCH_LOG=debug`, or `ORCH_LOG=orch::run::execute=trace`.

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Examples:
      orch list                           the stacks at and below the current directory
      orch list --order --why             in the order of a run, with the reasons
      orch run terraform plan             run a command in each of them, in order
      orch run --tags prod -- make deploy only in stacks tagged `prod`
      orch list --changed --why           what has changed, and because of which file
      orch run --resume                   what the last run left undone
      orch runs show                      how the last run went, stack by stack
      orch why prod/network --changed     the whole story of one stack
      orch -C prod graph | dot -Tsvg      draw what runs before what

    Exit status:
      0 done, or nothing to do              1 a command failed
      3 the configuration is wrong          4 refused: unknown base, safeguard, other run
      5 I/O, git or a missing program        64 the command line is wrong
      128+n ended by signal n
    ");
}

#[test]
fn every_command_has_help() {
    let sandbox = Sandbox::new("");
    for command in [
        "list",
        "run",
        "why",
        "graph",
        "trigger",
        "validate",
        "env",
        "completions",
    ] {
        let output = sandbox.orch(&format!("{command} --help"));
        assert_eq!((output.code(), &*output.stderr), (0, ""), "{command}");
        let usage = format!("Usage: orch {command}");
        assert!(output.stdout.contains(&usage), "{output}");
        for line in output.stdout.lines() {
            assert!(line.chars().count() <= 100, "too wide: {line}");
        }
    }
}

#[test]
fn the_help_tells_how_selection_flags_work_together_and_what_terramate_calls_them() {
    let sandbox = Sandbox::new("");
    for command in ["list", "run", "why", "graph", "env"] {
        let help = sandbox.orch(&format!("{command} --help")).stdout;
        for text in [
            "Selection, step by step:\n  1. all stacks of the project\n",
            "--include-all-dependencies, only data that stacks share counts",
            "--only-direct-dependents",
        ] {
            let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(help.contains(&text), "{command}: {text}");
        }
    }
}

#[test]
fn the_help_of_run_names_its_flags() {
    let help = Sandbox::new("").orch("run -h").stdout;
    for flag in [
        "--chdir <DIR>",
        "--tags <FILTER>",
        "--no-tags <TAG,…>",
        "--no-recursive",
        "--reverse",
        "--dry-run",
        "--on-error <WHAT>",
        "--continue-on-error",
        "-q, --quiet",
        "[COMMAND]...",
        "Examples:",
    ] {
        assert!(help.contains(flag), "`{flag}` is missing: {help}");
    }
}

#[test]
fn only_flags_that_select_stand_under_selection() {
    for (command, flag) in [
        ("run", "--reverse"),
        ("list", "--order"),
        ("graph", "--format"),
    ] {
        let help = Sandbox::new("").orch(&format!("{command} -h")).stdout;
        let (options, selection) = help.split_once("\nSelection:\n").unwrap();
        let selection = selection.split("\n\n").next().unwrap();
        assert!(selection.contains("--no-tags"), "{help}");
        assert!(!selection.contains(flag), "{help}");
        assert!(help.contains(flag) && options.contains("--chdir"), "{help}");
    }
}

#[test]
fn version_says_which() {
    let output = Sandbox::new("").orch("--version");
    let expected = format!("orch {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(output.to_string(), expected);
    assert_eq!(Sandbox::new("").orch("-V").to_string(), expected);
}

#[test]
fn help_and_version_need_no_project() {
    let sandbox = Sandbox::new("//- /broken.tm\nstack {\n");
    for arguments in ["--help", "--version", "run --help", "completions bash"] {
        assert_eq!(sandbox.orch(arguments).code(), 0, "{arguments}");
    }
}

#[test]
fn completions_are_there_for_common_shells() {
    let sandbox = Sandbox::new("");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = sandbox.orch(&format!("completions {shell}"));
        assert_eq!((output.code(), &*output.stderr), (0, ""), "{shell}");
        assert!(output.stdout.contains("on-error"), "{shell}");
    }
    assert_eq!(sandbox.orch("completions tcsh").code(), 64);
    assert_eq!(sandbox.orch("completions").code(), 64);
}

#[test]
fn a_wrong_command_line_is_explained() {
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
      [possible values: text, json]

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
    error: the argument '--continue-on-error' cannot be used with '--on-error <WHAT>'

    Usage: orch run --continue-on-error <COMMAND>...

    For more information, try '--help'.
    [exit status 64]
    ");
}

#[test]
fn run_needs_a_command() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("run"), @"
    [stderr]
    error: the following required arguments were not provided:
      <COMMAND>...

    Usage: orch run <COMMAND>...

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_eq!(sandbox.orch("run --").code(), 64);
    assert_eq!(sandbox.orch("run --reverse --").code(), 64);
}

#[test]
fn an_empty_command_is_no_command() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox.orch("run ''");
    assert!([5, 64].contains(&output.code()), "{output}");
    assert!(output.stderr.starts_with("error: "), "{output}");
}

#[test]
fn a_wrong_command_line_is_noticed_before_the_configuration_is() {
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
fn a_wrong_orch_log_is_a_usage_error() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox.orch_with("list", |orch| {
        orch.env("ORCH_LOG", "orch=shouting");
    });
    assert_eq!(output.code(), 64);
    assert!(output.stderr.starts_with("error: in ORCH_LOG"), "{output}");
}

#[test]
fn a_closed_pipe_is_silent() {
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
        "validate --format json",
        "run --dry-run git",
        "completions bash",
        "--help",
        "--version",
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
fn a_closed_stderr_stops_no_run() {
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
fn a_full_disk_ends_in_an_external_failure() {
    let sandbox = Sandbox::layout("a");
    for arguments in [
        "list",
        "list --format json",
        "graph",
        "env",
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
fn a_current_directory_that_is_gone_ends_in_an_external_failure() {
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
fn a_closed_pipe_does_not_hide_that_something_is_wrong() {
    let sandbox = Sandbox::new("//- /a/stack.tm\nstack {\n  nonsense = 1\n}\n");
    for command in ["validate", "list", "graph", "env"] {
        let mut orch = sandbox.command(&format!("{command} --format json"));
        let mut orch = orch.stdout(std::process::Stdio::piped()).spawn().unwrap();
        drop(orch.stdout.take());
        assert_eq!(orch.wait().unwrap().code(), Some(3), "{command}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named() {
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
