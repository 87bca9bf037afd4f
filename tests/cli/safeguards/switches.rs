//! What the command line and the environment switch, and which commands look.

use insta::assert_snapshot;

use super::{RUN, Recorder, objections};
use crate::support::Repository;

const UNTRACKED: &str = "git-untracked: a/new.tf\n";

const UNCOMMITTED: &str = "git-uncommitted: a/main.tf (modified)\n";

/// There is no remote here.
const NO_REMOTE: &str = "git-out-of-sync:\n";

/// A file that git does not know, and one that is not committed.
fn dirty() -> Repository {
    let repository = Repository::layout("a");
    repository.write("/a/new.tf", "");
    repository.write("/a/main.tf", "# changed\n");
    repository
}

#[track_caller]
fn check(repository: &Repository, flags: &str, variables: &[(&str, &str)], expected: &[&str]) {
    let output = repository.orch_with(&format!("run -q {flags} -- true"), |orch| {
        orch.envs(variables.iter().copied());
    });
    let context = format!("{flags} {variables:?}");
    assert_eq!(objections(&output), expected.concat(), "{context}");
}

#[test]
fn flags_lift_safeguards() {
    let repository = dirty();
    let check = |flags: &str, expected: &[&str]| check(&repository, flags, &[], expected);
    check("", &[UNTRACKED, UNCOMMITTED]);
    check("--disable-safeguards=git-untracked", &[UNCOMMITTED]);
    check("--disable-safeguards git-uncommitted", &[UNTRACKED]);
    check("--disable-safeguards=git-untracked,git-uncommitted", &[]);
    check(
        "--disable-safeguards=git-untracked --disable-safeguards git-uncommitted",
        &[],
    );
    check("-X", &[]);
    check("-X -X", &[]);
    check("-XX", &[]);
    check("-X --disable-safeguards=git-untracked", &[]);
    check("--changed --base base -X", &[]);
    check(
        "--disable-safeguards=none,git-untracked",
        &[UNCOMMITTED, NO_REMOTE],
    );
}

#[test]
fn flags_of_old_terramate_disable_safeguards() {
    let repository = dirty();
    let check = |flags: &str, expected: &[&str]| check(&repository, flags, &[], expected);
    check("--disable-check-git-untracked", &[UNCOMMITTED]);
    check("--disable-check-git-uncommitted", &[UNTRACKED]);
    check(
        "--disable-check-git-untracked --disable-check-git-uncommitted",
        &[],
    );
    check(
        "--disable-check-git-untracked --disable-safeguards git-uncommitted",
        &[],
    );
    check(
        "--disable-safeguards=none --disable-check-git-remote",
        &[UNTRACKED, UNCOMMITTED],
    );
    check(
        "--disable-check-gen-code --disable-check-gen-code",
        &[UNTRACKED, UNCOMMITTED],
    );
    // The command line decides alone, and Terramate's old variables do not.
    let variables = [
        ("ORCH_DISABLE_SAFEGUARDS", "all"),
        ("TM_DISABLE_CHECK_GIT_UNCOMMITTED", "true"),
    ];
    let flag = "--disable-check-git-untracked";
    self::check(&repository, flag, &variables, &[UNCOMMITTED]);
    let help = repository.orch("run --help").stdout;
    assert!(!help.contains("--disable-check"), "{help}");
}

#[test]
fn variables_lift_safeguards() {
    let repository = dirty();
    let check = |flags: &str, variables: &[(&str, &str)], expected: &[&str]| {
        check(&repository, flags, variables, expected);
    };
    for name in ["ORCH_DISABLE_SAFEGUARDS", "TM_DISABLE_SAFEGUARDS"] {
        check("", &[(name, "git-untracked")], &[UNCOMMITTED]);
        check("", &[(name, "git-untracked,git-uncommitted")], &[]);
        check("", &[(name, "git-untracked, git-uncommitted")], &[]);
        check("", &[(name, "git")], &[]);
        check("", &[(name, "all")], &[]);
        check("", &[(name, "outdated-code")], &[UNTRACKED, UNCOMMITTED]);
        check("", &[(name, "")], &[UNTRACKED, UNCOMMITTED]);
        // The command line decides alone.
        check(
            "--disable-safeguards=git-uncommitted",
            &[(name, "all")],
            &[UNTRACKED],
        );
        check("-X", &[(name, "none")], &[]);
        check("-X", &[(name, "nonsense")], &[]);
    }
    let both = |orch, terramate| {
        [
            ("ORCH_DISABLE_SAFEGUARDS", orch),
            ("TM_DISABLE_SAFEGUARDS", terramate),
        ]
    };
    check("", &both("git-untracked", "all"), &[UNCOMMITTED]);
    check("", &both("", "all"), &[]);
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let repository = dirty();
    assert_snapshot!(repository.orch("run --disable-safeguards=none,all true"), @"
    [stderr]
    error: in --disable-safeguards: `all` and `none` cannot be combined
    [exit status 64]
    ");
    let repeated = "run --disable-safeguards=all --disable-safeguards=none true";
    assert_eq!(repository.orch(repeated).code(), 64);
    assert_snapshot!(repository.orch("run -X --disable-safeguards=none true"), @"
    [stderr]
    error: `-X` and `--disable-safeguards=none` exclude each other
    [exit status 64]
    ");
    for name in ["ORCH_DISABLE_SAFEGUARDS", "TM_DISABLE_SAFEGUARDS"] {
        let run = |value| repository.orch_with(RUN, |orch| _ = orch.env(name, value));
        let output = run("none,all");
        assert_eq!(output.code(), 64, "{output}");
        assert_eq!(
            output.stderr,
            format!("error: in {name}: `all` and `none` cannot be combined\n")
        );
        let output = run("git,untracked");
        assert_eq!(output.code(), 64, "{output}");
        assert_eq!(
            output.stderr,
            format!(
                "error: in {name}: `untracked` is not a safeguard; possible values: all, none, git, \
                 git-untracked, git-uncommitted, git-out-of-sync, destroy-order, outdated-code\n"
            )
        );
    }
}

#[test]
fn unknown_safeguards_are_refused() {
    let repository = dirty();
    assert_snapshot!(repository.orch("run --disable-safeguards=git-untraked true"), @"
    [stderr]
    error: invalid value 'git-untraked' for '--disable-safeguards <WHAT,…>'
      [possible values: all, none, git, git-untracked, git-uncommitted, git-out-of-sync, destroy-order, outdated-code]

      tip: a similar value exists: 'git-untracked'

    For more information, try '--help'.
    [exit status 64]
    ");
    for list in ["GIT", "git,", "''"] {
        let output = repository.orch(&format!("run --disable-safeguards={list} true"));
        assert_eq!(output.code(), 64, "{output}");
    }
}

#[test]
fn run_alone_checks_safeguards() {
    let repository = dirty();
    let commands = [
        "list",
        "list --why --order",
        "list --changed --base base",
        "graph",
        "env",
        "validate",
        "run --dry-run true",
        "run --dry-run --disable-safeguards=none true",
        "run --dry-run --changed --base base true",
    ];
    for command in commands {
        for value in ["none", "nonsense", "none,all"] {
            let output = repository.orch_with(command, |orch| {
                orch.env("ORCH_DISABLE_SAFEGUARDS", value);
            });
            assert_eq!(output.code(), 0, "{command} {value}: {output}");
        }
    }
}

#[test]
fn run_of_an_empty_selection_is_not_refused() {
    let repository = dirty();
    assert_snapshot!(repository.orch("run --tags none true"), @"
    [stderr]
    note: in `--tags`: no stack of the project has the tag `none`
    note: no stack at or below `/` passes the tag filters
    ");
}

#[test]
fn run_reports_other_errors_before_safeguards() {
    let repository = dirty();
    assert_eq!(repository.orch("run -- no-such-program").code(), 5);
    repository.write("/a/wrong.tm", "stack {\n nonsense = 1\n}\n");
    assert_eq!(repository.orch(RUN).code(), 3);
}

#[test]
fn git_is_asked_once_and_only_if_needed() {
    let repository = Repository::layout("a\nb\nc\nd");
    repository.git("remote add origin /nowhere");
    let recorder = Recorder::new(&repository.outside().join("recorder"));
    let asked = |arguments: &str, code: i32| {
        let output = repository.orch_with(arguments, |orch| recorder.watch(orch));
        assert_eq!(output.code(), code, "{output}");
        recorder.asked()
    };
    assert_eq!(asked(RUN, 0), ["status"]);
    assert_eq!(asked("run --changed --base base -- true", 0), ["status"]);
    repository.write("/a/new.tf", "");
    assert_eq!(asked(RUN, 4), ["status"]);
    assert_eq!(asked("run --changed --base base -- true", 4), ["status"]);
    for arguments in [
        "list",
        "graph",
        "env",
        "validate",
        "run --dry-run true",
        "run -X true",
        "run --disable-safeguards=git true",
        "run --disable-safeguards=git-untracked,git-uncommitted true",
    ] {
        assert!(asked(arguments, 0).is_empty(), "{arguments}");
    }
    assert!(
        asked("run --disable-safeguards=none,git-untracked -- true", 4)
            .contains(&"ls-remote".to_owned())
    );
}
