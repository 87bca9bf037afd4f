//! `orch trigger`, and what `orch validate` says about trigger files.

use std::fs;

use insta::assert_snapshot;

use crate::support::{Output, Repository, Sandbox, ended};

/// Runs `orch trigger` in a directory, and takes what is random out of the names of files.
#[track_caller]
fn trigger(sandbox: &Sandbox, directory: &str, arguments: &str) -> Output {
    timeless(sandbox.orch_in(directory, &format!("trigger {arguments}")))
}

/// Takes what is random out of the names of files.
fn timeless(mut output: Output) -> Output {
    let n_random = "01234567-0123-4123-8123-0123456789ab.tm.hcl".len();
    for line in output.stdout.clone().lines() {
        let Some(file) = line.strip_prefix("created ") else {
            continue;
        };
        let shown = format!("{}UUID.tm.hcl", &file[..file.len() - n_random]);
        output.stdout = output.stdout.replace(file, &shown);
        output.stderr = output.stderr.replace(file, &shown);
    }
    output
}

/// The files in a directory of triggers, with their texts; what differs from run to run is left out.
fn written(sandbox: &Sandbox, directory: &str) -> String {
    let entries = fs::read_dir(sandbox.path(directory)).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let text = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let timeless = |line: &str| match line.split_once("ctime   = ") {
            Some((before, seconds)) => {
                assert!(seconds.parse::<u64>().unwrap() > 1_700_000_000, "{line}");
                format!("{before}ctime   = NOW\n")
            }
            None => format!("{line}\n"),
        };
        text.lines().map(timeless).collect::<String>()
    };
    files.iter().map(text).collect()
}

fn ada(repository: &Repository) {
    repository.git("config user.name 'Ada Lovelace'");
    repository.git("config user.email ada@example.org");
}

// What is written.

#[test]
fn trigger_records_the_author_and_the_reason() {
    let repository = Repository::layout("a\nb");
    ada(&repository);
    assert_snapshot!(trigger(&repository, "/", "a --reason 'new certificates'"), @"
    created .tmtriggers/a/changed-UUID.tm.hcl
    [stderr]
    note: the stack will count as changed as long as this file differs from the base: commit it
    ");
    assert_snapshot!(written(&repository, "/.tmtriggers/a"), @r#"
    trigger {
      ctime   = NOW
      reason  = "new certificates (asked for by Ada Lovelace <ada@example.org>)"
      type    = changed
      context = stack
    }
    "#);
}

#[test]
fn trigger_without_a_reason_gets_a_default() {
    let repository = Repository::layout("a\nb");
    ada(&repository);
    assert_snapshot!(trigger(&repository, "/", "/a --ignore-change"), @"
    created .tmtriggers/a/ignore-change-UUID.tm.hcl
    [stderr]
    note: the stack will not count as changed as long as this file differs from the base: commit it
    ");
    assert_snapshot!(written(&repository, "/.tmtriggers/a"), @r#"
    trigger {
      ctime   = NOW
      reason  = "triggered by hand (asked for by Ada Lovelace <ada@example.org>)"
      type    = ignore-change
      context = stack
    }
    "#);
}

#[test]
fn who_asked_is_known_from_git_then_from_ci_then_from_the_system() {
    let ask = |sandbox: &Sandbox, variables: &[(&str, &str)]| {
        let output = sandbox.orch_with("trigger a --reason R", |command| {
            command.envs(variables.iter().copied());
        });
        assert_eq!(output.code(), 0, "{output}");
        let text = written(sandbox, "/.tmtriggers/a");
        fs::remove_dir_all(sandbox.path("/.tmtriggers")).unwrap();
        let (_, who) = text.split_once("R (asked for by ").unwrap();
        who.split_once(")\"").unwrap().0.to_owned()
    };
    let sandbox = Sandbox::layout("a");
    assert_eq!(ask(&sandbox, &[]), "somebody unknown");
    assert_eq!(ask(&sandbox, &[("USERNAME", "bob")]), "bob");
    assert_eq!(
        ask(&sandbox, &[("USER", "ann"), ("USERNAME", "bob")]),
        "ann"
    );
    for variable in [
        "GITHUB_ACTOR",
        "GITLAB_USER_LOGIN",
        "BUILD_REQUESTEDFOR",
        "BUILDKITE_BUILD_CREATOR",
    ] {
        let variables = [("USER", "runner"), (variable, "Änne \"X\"")];
        assert_eq!(ask(&sandbox, &variables), "Änne \\\"X\\\"");
    }
    assert_eq!(
        ask(&sandbox, &[("GITHUB_ACTOR", ""), ("USER", "ann")]),
        "ann"
    );
    let repository = Repository::of(sandbox);
    repository.git("config user.email ada@example.org");
    let actor = [("GITHUB_ACTOR", "bot")];
    assert_eq!(ask(&repository, &actor), "ada@example.org");
    repository.git("config user.name Ada");
    assert_eq!(ask(&repository, &actor), "Ada <ada@example.org>");
    repository.git("config --unset user.email");
    assert_eq!(ask(&repository, &actor), "Ada");
}

#[test]
fn trigger_reason_may_be_any_text() {
    let repository = Repository::layout("a");
    ada(&repository);
    let reason = "\"${a}\" %{if} $${x} \\n\n\t\u{1b}[31m ü 日本";
    let output = repository.orch_with("trigger a --reason", |command| {
        command.arg(reason);
    });
    assert_eq!(output.code(), 0, "{output}");
    assert_snapshot!(written(&repository, "/.tmtriggers/a"), @r#"
    trigger {
      ctime   = NOW
      reason  = "\"$${a}\" %%{if} $$${x} \\n\n\t\u001b[31m ü 日本 (asked for by Ada Lovelace <ada@example.org>)"
      type    = changed
      context = stack
    }
    "#);
    let list = repository.list("--format json").json();
    let reason = format!("{reason} (asked for by Ada Lovelace <ada@example.org>)");
    assert_eq!(list["stacks"][0]["reasons"][0]["trigger_reason"], *reason);
}

#[test]
fn trigger_writes_a_new_file_each_time() {
    let sandbox = Sandbox::layout("a");
    for _ in 0..3 {
        assert_eq!(sandbox.orch("trigger a").code(), 0);
    }
    assert_eq!(
        fs::read_dir(sandbox.path("/.tmtriggers/a"))
            .unwrap()
            .count(),
        3
    );
}

// Whether it will count.

#[test]
fn trigger_without_a_repository_gets_a_warning() {
    let sandbox = Sandbox::layout("a\nb");
    assert_snapshot!(trigger(&sandbox, "/", "a"), @"
    created .tmtriggers/a/changed-UUID.tm.hcl
    [stderr]
    note: the project is not in a git repository; without one, no stack counts as changed
    ");
    assert_snapshot!(trigger(&sandbox, "/", "--recursive --ignore-change /"), @"
    created .tmtriggers/a/ignore-change-UUID.tm.hcl
    created .tmtriggers/b/ignore-change-UUID.tm.hcl
    [stderr]
    note: the project is not in a git repository; without one, no stack counts as changed
    ");
    assert!(sandbox.path("/.tmtriggers/b").is_dir());
}

#[test]
fn trigger_file_ignored_by_git_gets_a_warning() {
    let repository = Repository::layout("a\nb\nc");
    repository.write("/.gitignore", ".tmtriggers/\n");
    assert_snapshot!(trigger(&repository, "/a", "--ignore-change ."), @"
    created ../.tmtriggers/a/ignore-change-UUID.tm.hcl
    [stderr]
    warning: git ignores `../.tmtriggers/a/ignore-change-UUID.tm.hcl`, so this trigger has no effect
      = help: remove it from the ignore rules, or run `git add --force`
    ");
    assert_eq!(repository.changed().stdout, "");
    assert_snapshot!(trigger(&repository, "/", "--recursive /"), @"
    created .tmtriggers/a/changed-UUID.tm.hcl
    created .tmtriggers/b/changed-UUID.tm.hcl
    created .tmtriggers/c/changed-UUID.tm.hcl
    [stderr]
    warning: git ignores `.tmtriggers/a/changed-UUID.tm.hcl`, `.tmtriggers/b/changed-UUID.tm.hcl` and `.tmtriggers/c/changed-UUID.tm.hcl`, so these triggers have no effect
      = help: remove them from the ignore rules, or run `git add --force`
    ");
    let without_git = repository.orch_with("trigger b", |command| {
        command.env("PATH", "");
    });
    assert_snapshot!(timeless(without_git), @"
    created .tmtriggers/b/changed-UUID.tm.hcl
    [stderr]
    warning: git ignores `.tmtriggers/b/changed-UUID.tm.hcl`, so this trigger has no effect
      = help: remove it from the ignore rules, or run `git add --force`
    ");
    repository.git("add --force .tmtriggers/a");
    repository.write("/.gitignore", "");
    repository.write("/.tmtriggers/.gitignore", "a\nb\n!/a\n");
    assert_snapshot!(trigger(&repository, "/", "--recursive /"), @"
    created .tmtriggers/a/changed-UUID.tm.hcl
    created .tmtriggers/b/changed-UUID.tm.hcl
    created .tmtriggers/c/changed-UUID.tm.hcl
    [stderr]
    warning: git ignores `.tmtriggers/b/changed-UUID.tm.hcl`, so this trigger has no effect
      = help: remove it from the ignore rules, or run `git add --force`

    note: the other stacks will count as changed as long as their files differ from the base: commit them
    ");
}

#[test]
fn trigger_files_ignored_by_git_are_named_up_to_a_limit() {
    let names: Vec<String> = (10..40).map(|number| format!("s{number}")).collect();
    let repository = Repository::layout(&names.join("\n"));
    repository.write("/.git/info/exclude", "*.tm.hcl\n");
    let output = trigger(&repository, "/", "--recursive /");
    assert_eq!(output.code(), 0, "{output}");
    assert_snapshot!(output.stderr, @"
    warning: git ignores `.tmtriggers/s10/changed-UUID.tm.hcl`, `.tmtriggers/s11/changed-UUID.tm.hcl`, `.tmtriggers/s12/changed-UUID.tm.hcl`, `.tmtriggers/s13/changed-UUID.tm.hcl`, `.tmtriggers/s14/changed-UUID.tm.hcl` and 25 more, so these triggers have no effect
      = help: remove them from the ignore rules, or run `git add --force`
    ");
}

#[test]
fn odd_paths_are_looked_up_among_what_git_ignores() {
    let repository = Repository::of({
        let sandbox = Sandbox::unmarked("");
        for stack in ["a*", "ab", ":x", "-f", "n\nl", "ö"] {
            let stack = format!("/:(top)*/{stack}/stack.tm");
            sandbox.write(&stack, "stack {}\n");
        }
        sandbox.write("/:(top)*/root.orch.hcl", "orch { root = true }\n");
        sandbox
    });
    for (ignored, rule) in [
        (&[][..], "nothing"),
        (&["a*"], "a\\*"),
        (&["ab"], "ab"),
        (&[":x"], ":x"),
        (&["-f"], "-f"),
        (&["n\\nl"], "n?l"),
        (&["ö"], "ö"),
    ] {
        let rules = format!("{rule}/\n");
        repository.write("/:(top)*/.tmtriggers/.gitignore", rules);
        let output = trigger(&repository, "/:(top)*", "--recursive /");
        assert_eq!(output.code(), 0, "{output}");
        let warned: Vec<&str> = output
            .stderr
            .match_indices("`.tmtriggers/")
            .map(|(start, found)| {
                output.stderr[start + found.len()..]
                    .split('/')
                    .next()
                    .unwrap()
            })
            .collect();
        assert_eq!(warned, ignored, "{output}");
    }
}

// Which stacks.

#[test]
fn paths_are_relative_to_the_current_directory_or_the_project_root() {
    let sandbox = Sandbox::layout("/\na\na/b\nö'\"");
    sandbox.write("/c d/stack.tm", "stack {}\n");
    for (directory, path, stack) in [
        ("/", "a", "a"),
        ("/", "./a/", "a"),
        ("/", "a/../a/b", "a/b"),
        ("/", ".", ""),
        ("/", "/", ""),
        ("/a", ".", "a"),
        ("/a", "b", "a/b"),
        ("/a/b", "..", "a"),
        ("/a/b", "/a/b", "a/b"),
        ("/a/b", "'../../c d'", "c d"),
        ("/a", "\"../ö'\\\"\"", "ö'\""),
    ] {
        let output = trigger(&sandbox, directory, path);
        assert_eq!(output.code(), 0, "{path}: {output}");
        let place = sandbox.path("/.tmtriggers").join(stack);
        let mut names = fs::read_dir(&place)
            .unwrap()
            .map(|it| it.unwrap().file_name());
        assert!(
            names.any(|name| name.to_str().unwrap().starts_with("changed-")),
            "{path}: {output}"
        );
        fs::remove_dir_all(sandbox.path("/.tmtriggers")).unwrap();
    }
}

#[test]
fn trigger_shows_paths_relative_to_the_current_directory() {
    let sandbox = Repository::layout("a/b");
    assert_snapshot!(trigger(&sandbox, "/a", "b"), @"
    created ../.tmtriggers/a/b/changed-UUID.tm.hcl
    [stderr]
    note: the stack will count as changed as long as this file differs from the base: commit it
    ");
    assert_snapshot!(trigger(&sandbox, "/", "-C a -C b ."), @"
    created ../../.tmtriggers/a/b/changed-UUID.tm.hcl
    [stderr]
    note: the stack will count as changed as long as this file differs from the base: commit it
    ");
}

#[test]
fn recursive_means_the_stacks_at_and_below() {
    let sandbox = Repository::layout("a\na/b/c\na-b\nab\nd");
    assert_snapshot!(trigger(&sandbox, "/", "--recursive a"), @"
    created .tmtriggers/a/changed-UUID.tm.hcl
    created .tmtriggers/a/b/c/changed-UUID.tm.hcl
    [stderr]
    note: the stacks will count as changed as long as these files differ from the base: commit them
    ");
    assert_snapshot!(trigger(&sandbox, "/a/b", "--recursive --ignore-change ."), @"
    created ../../.tmtriggers/a/b/c/ignore-change-UUID.tm.hcl
    [stderr]
    note: the stack will not count as changed as long as this file differs from the base: commit it
    ");
    assert_snapshot!(trigger(&sandbox, "/", "--recursive --change /"), @"
    created .tmtriggers/a/changed-UUID.tm.hcl
    created .tmtriggers/a-b/changed-UUID.tm.hcl
    created .tmtriggers/a/b/c/changed-UUID.tm.hcl
    created .tmtriggers/ab/changed-UUID.tm.hcl
    created .tmtriggers/d/changed-UUID.tm.hcl
    [stderr]
    note: the stacks will count as changed as long as these files differ from the base: commit them
    ");
}

#[test]
fn recursive_goes_by_tags() {
    let sandbox = Repository::layout("a [x]\na/b [y]\na/b/c [x y]\nd [x]");
    let triggered = |arguments: &str| trigger(&sandbox, "/", &format!("--recursive {arguments}"));
    assert_snapshot!(triggered("a --tags x,y --no-tags y"), @"
    created .tmtriggers/a/changed-UUID.tm.hcl
    [stderr]
    note: the stack will count as changed as long as this file differs from the base: commit it
    ");
    assert_snapshot!(triggered("/ --tags x:y"), @"
    created .tmtriggers/a/b/c/changed-UUID.tm.hcl
    [stderr]
    note: the stack will count as changed as long as this file differs from the base: commit it
    ");
    assert_snapshot!(triggered("a --tags z"), @"
    [stderr]
    note: no stack at or below `/a` passes the tag filters
    ");
    assert_snapshot!(triggered("a --tags X"), @"
    [stderr]
    error: in --tags: `X` is not a tag: a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`
    [exit status 64]
    ");
    assert_snapshot!(triggered("a --no-tags x:y"), @"
    [stderr]
    error: in --no-tags: `x:y` is not a tag: a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`
    [exit status 64]
    ");
}

#[test]
fn trigger_marks_no_wanted_stacks() {
    let sandbox = Repository::layout("a wants /b\nb\nc wanted_by /a");
    assert_snapshot!(trigger(&sandbox, "/", "--recursive a"), @"
    created .tmtriggers/a/changed-UUID.tm.hcl
    [stderr]
    note: the stack will count as changed as long as this file differs from the base: commit it
    ");
}

#[test]
fn recursive_may_find_nothing() {
    let sandbox = Sandbox::layout("a");
    sandbox.mkdir("/empty");
    sandbox.mkdir("/a/sub");
    assert_snapshot!(trigger(&sandbox, "/", "--recursive empty"), @"
    [stderr]
    note: no stack at or below `/empty`
    ");
    assert_snapshot!(trigger(&sandbox, "/", "--recursive a/sub"), @"
    [stderr]
    note: no stack at or below `/a/sub`; it is inside the stack `/a`
    ");
    assert!(!sandbox.path("/.tmtriggers").exists());
}

// What is refused.

#[test]
fn trigger_on_a_path_without_a_stack_is_an_error_with_a_hint() {
    let sandbox = Sandbox::layout("a\ndir/one\ndir/two\nskipped/x");
    sandbox.write("/a/sub/main.tf", "");
    sandbox.write("/plain.txt", "");
    sandbox.write("/skipped/.tmskip", "");
    assert_snapshot!(trigger(&sandbox, "/", "dir"), @"
    [stderr]
    error: cannot trigger `dir`: not a stack, but 2 stacks lie below it; add `--recursive`
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/", "a/sub"), @"
    [stderr]
    error: cannot trigger `a/sub`: not a stack, but inside of the stack `/a`
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/", "skipped/x"), @"
    [stderr]
    error: cannot trigger `skipped/x`: not a stack
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/", "a/sub/main.tf"), @"
    [stderr]
    error: cannot trigger `a/sub/main.tf`: not a directory; it belongs to the stack `/a`
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/", "plain.txt"), @"
    [stderr]
    error: cannot trigger `plain.txt`: not a directory
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/", "dir/tow"), @"
    [stderr]
    error: cannot trigger `dir/tow`: does not exist; did you mean `/dir/two`?
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/", "--recursive nowhere/at/all"), @"
    [stderr]
    error: cannot trigger `nowhere/at/all`: does not exist
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/", sandbox.path("/dir/one").to_str().unwrap()), @"
    [stderr]
    error: cannot trigger `$ROOT/dir/one`: does not exist; a leading `/` is the project root, so write `/dir/one`
    [exit status 64]
    ");
    assert!(!sandbox.path("/.tmtriggers").exists());
}

#[test]
fn trigger_on_a_path_outside_of_the_project_is_an_error() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(trigger(&sandbox, "/", "../decoy"), @"
    [stderr]
    error: cannot trigger `../decoy`: outside of the project `$ROOT`
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/a", "../../project-decoy"), @"
    [stderr]
    error: cannot trigger `../../project-decoy`: outside of the project `$ROOT`
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/", "/../decoy"), @"
    [stderr]
    error: cannot trigger `/../decoy`: outside of the project `$ROOT`
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/", "--recursive .."), @"
    [stderr]
    error: cannot trigger `..`: outside of the project `$ROOT`
    [exit status 64]
    ");
}

#[test]
fn trigger_in_a_nested_project_writes_there() {
    let sandbox = Sandbox::layout("a\nown/b");
    sandbox.write("/own/own.orch.hcl", "orch { root = true }\n");
    assert_snapshot!(trigger(&sandbox, "/", "own/b"), @"
    [stderr]
    error: cannot trigger `own/b`: `/own` is a project of its own: change into it
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/own", "b"), @"
    created .tmtriggers/b/changed-UUID.tm.hcl
    [stderr]
    note: the project is not in a git repository; without one, no stack counts as changed
    ");
    assert!(sandbox.path("/own/.tmtriggers/b").is_dir());
}

#[test]
fn links_are_not_followed() {
    let sandbox = Sandbox::layout("dir/stack");
    sandbox.symlink("stack", "/dir/link");
    sandbox.symlink("dir", "/link");
    sandbox.symlink("../decoy", "/out");
    sandbox.symlink("nowhere", "/dangling");
    assert_snapshot!(trigger(&sandbox, "/dir", "link"), @"
    [stderr]
    error: cannot trigger `link`: `/dir/link` is a symbolic link; use its target: `/dir/stack`
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/", "/link/stack"), @"
    [stderr]
    error: cannot trigger `/link/stack`: `/link` is a symbolic link; use its target: `/dir/stack`
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/", "--recursive link"), @"
    [stderr]
    error: cannot trigger `link`: `/link` is a symbolic link; use its target: `/dir`
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/", "out"), @"
    [stderr]
    error: cannot trigger `out`: `/out` is a symbolic link that leads out of the project
    [exit status 64]
    ");
    assert_snapshot!(trigger(&sandbox, "/", "dangling"), @"
    [stderr]
    error: cannot trigger `dangling`: `/dangling` is a symbolic link that leads nowhere
    [exit status 64]
    ");
}

#[test]
fn trigger_writes_through_no_link() {
    let sandbox = Sandbox::layout("a\nb");
    sandbox.symlink("../decoy", "/.tmtriggers");
    assert_snapshot!(trigger(&sandbox, "/", "a"), @"
    [stderr]
    error: only 0 of 1 trigger could be created
      caused by: `.tmtriggers` is a symbolic link, but triggers need a directory
    [exit status 5]
    ");
    sandbox.remove("/.tmtriggers");
    sandbox.mkdir("/.tmtriggers");
    sandbox.symlink("../../decoy", "/.tmtriggers/b");
    assert_snapshot!(trigger(&sandbox, "/", "--recursive ."), @"
    created .tmtriggers/a/changed-UUID.tm.hcl
    [stderr]
    error: only 1 of 2 triggers could be created
      caused by: `.tmtriggers/b` is a symbolic link, but triggers need a directory
    [exit status 5]
    ");
    let names = fs::read_dir(sandbox.outside().join("decoy")).unwrap();
    assert_eq!(names.count(), 1);
}

#[test]
fn trigger_names_the_file_that_cannot_be_written() {
    let sandbox = Sandbox::layout("a\nb");
    sandbox.write("/.tmtriggers/b", "");
    assert_snapshot!(trigger(&sandbox, "/", "--recursive ."), @"
    created .tmtriggers/a/changed-UUID.tm.hcl
    [stderr]
    error: only 1 of 2 triggers could be created
      caused by: `.tmtriggers/b` is a file, but triggers need a directory
    [exit status 5]
    ");
    let sandbox = Sandbox::layout("a");
    sandbox.write("/.tmtriggers", "");
    assert_snapshot!(trigger(&sandbox, "/", "a"), @"
    [stderr]
    error: only 0 of 1 trigger could be created
      caused by: `.tmtriggers` is a file, but triggers need a directory
    [exit status 5]
    ");
}

#[test]
fn trigger_reports_a_broken_project_first() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/b/stack.tm", "stack {\n  aftr = []\n}\n");
    assert_snapshot!(trigger(&sandbox, "/", "nowhere"), @"
    [stderr]
    error: unknown attribute `aftr` in `stack`
     --> b/stack.tm:2:3
      |
    1 | stack {
      | ----- in this block
    2 |   aftr = []
      |   ^^^^ not an attribute of `stack`
      |
      = help: did you mean `after`?

    [exit status 3]
    ");
    assert!(!sandbox.path("/.tmtriggers").exists());
}

#[test]
fn flags_that_exclude_or_need_each_other_are_usage_errors() {
    let sandbox = Sandbox::layout("a");
    for arguments in [
        "",
        "''",
        "a --change --ignore-change",
        "a --tags x",
        "a --no-tags x",
        "a --reason ''",
        "a --reason ' '",
        "a --reason '\t\u{a0}\n'",
        "a b",
    ] {
        let output = trigger(&sandbox, "/", arguments);
        assert_eq!(output.code(), 64, "{arguments}: {output}");
    }
    assert!(!sandbox.path("/.tmtriggers").exists());
}

#[test]
fn trigger_writes_all_files_if_its_output_is_closed() {
    let names: Vec<String> = (0..200).map(|number| format!("s{number}")).collect();
    let sandbox = Sandbox::layout(&names.join("\n"));
    let mut command = sandbox.command("trigger --recursive .");
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(ended(&mut child).code(), Some(0));
    assert_eq!(
        fs::read_dir(sandbox.path("/.tmtriggers")).unwrap().count(),
        200
    );
}

// `orch validate`.

#[test]
fn validate_passes_what_trigger_writes() {
    let sandbox = Sandbox::layout("a\nb/c");
    assert_eq!(sandbox.orch("trigger --recursive .").code(), 0);
    assert_eq!(sandbox.orch("trigger --ignore-change a").code(), 0);
    sandbox.write("/.tmtriggers/.gitkeep", "");
    sandbox.write("/.tmtriggers/README.md", "");
    assert_snapshot!(sandbox.orch("validate"), @"
    [stderr]
    note: no problems found: 2 stacks, 3 configuration files
    ");
}

#[test]
fn validate_finds_every_broken_trigger() {
    let sandbox = Sandbox::layout("a\nb");
    sandbox.write("/.tmtriggers/a/1.tm.hcl", "trigger {\n  ctime = 1\n}\n");
    sandbox.write("/.tmtriggers/a/2.tm.hcl", "triger {\n");
    sandbox.write("/.tmtriggers/a/notes.txt", "");
    sandbox.write("/.tmtriggers/b/stack.tm", "stack {}\n");
    sandbox.write("/.tmtriggers/b/\u{e9}\n.tm", b"trigger {\n  # caf\xe9\n}\n");
    assert_snapshot!(sandbox.orch("validate"), @r#"
    [stderr]
    error: a `trigger` block needs `reason`
     --> .tmtriggers/a/1.tm.hcl:1:1
      |
    1 | trigger {
      | ^^^^^^^ missing in this block
      |
      = help: write `reason = "…"`

    error: syntax error
     --> .tmtriggers/a/2.tm.hcl:1:8
      |
    1 | triger {
      |        ^- invalid block body; expected `}`, newline or identifier
      |        |
      |        never closed
      |
      = help: add the missing `}`

    error: `.tmtriggers/a/notes.txt` is not a trigger because of its name
      = help: the names of triggers end in `.tm.hcl`: rename it, or move it elsewhere

    error: unknown block `stack`
     --> .tmtriggers/b/stack.tm:1:1
      |
    1 | stack {}
      | ^^^^^ not a block of a trigger file

    error: this file is not UTF-8
     --> .tmtriggers/b/é\n.tm:2:8
      |
    2 |   # caf�
      |        ^ the first byte that is not text
      |
      = help: save the file as UTF-8

    [exit status 3]
    "#);
    let document = sandbox.orch("validate --format json").data();
    let place = |index: usize| {
        let diagnostic = &document["diagnostics"][index];
        (diagnostic["file"].clone(), diagnostic["line"].clone())
    };
    assert_eq!(place(0), (".tmtriggers/a/1.tm.hcl".into(), 1.into()));
    assert_eq!(sandbox.orch("list").to_string(), "a\nb\n");
}

#[test]
fn validate_reads_nothing_but_files() {
    let sandbox = Sandbox::layout("a");
    sandbox.mkdir("/.tmtriggers/a/dir.tm.hcl");
    sandbox.symlink("nowhere", "/.tmtriggers/a/dangling.tm.hcl");
    sandbox.symlink("../../a/stack.tm", "/.tmtriggers/a/link.tm.hcl");
    sandbox.symlink("..", "/.tmtriggers/a/loop");
    let made = std::process::Command::new("mkfifo")
        .arg(sandbox.path("/.tmtriggers/a/pipe.tm.hcl"))
        .status();
    assert!(made.unwrap().success());
    let huge = fs::File::create(sandbox.path("/.tmtriggers/a/huge.tm.hcl")).unwrap();
    huge.set_len(1 << 40).unwrap();
    assert_snapshot!(sandbox.orch("validate"), @"
    [stderr]
    error: `.tmtriggers/a/dangling.tm.hcl` is a symbolic link
      = help: use a plain file in plain directories; links are not followed

    error: `.tmtriggers/a/huge.tm.hcl` is larger than 1 MiB
      = help: a trigger has one short block

    error: `.tmtriggers/a/link.tm.hcl` is a symbolic link
      = help: use a plain file in plain directories; links are not followed

    error: `.tmtriggers/a/loop` is a symbolic link
      = help: use a plain file in plain directories; links are not followed

    error: `.tmtriggers/a/pipe.tm.hcl` is not a regular file
      = help: use a plain file in plain directories; links are not followed

    [exit status 3]
    ");
}

#[test]
fn validate_wants_a_directory_of_triggers() {
    let sandbox = Sandbox::layout("a");
    sandbox.symlink("../decoy", "/.tmtriggers");
    assert_snapshot!(sandbox.orch("validate"), @"
    [stderr]
    error: `.tmtriggers` is a symbolic link
      = help: use a plain file in plain directories; links are not followed

    [exit status 3]
    ");
    sandbox.remove("/.tmtriggers");
    sandbox.write("/.tmtriggers", "");
    assert_snapshot!(sandbox.orch("validate"), @"
    [stderr]
    error: `.tmtriggers` is a file
      = help: make it a directory, which contains triggers

    [exit status 3]
    ");
}
