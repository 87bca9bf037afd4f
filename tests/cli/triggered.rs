//! Which stacks count as changed, or not, because of trigger files.

use std::fs;

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Repository, Sandbox, without_base};

/// Writes a trigger.
fn write(sandbox: &Sandbox, file: &str, kind: &str, reason: &str) {
    let text = format!(
        "trigger {{\n  ctime   = 1\n  reason  = {reason:?}\n  type    = {kind}\n  context = stack\n}}\n"
    );
    sandbox.write(&format!("/.tmtriggers/{file}"), text);
}

// What a trigger does.

#[test]
fn trigger_marks_only_its_stack_as_changed() {
    let repository = Repository::layout("/\na\na/b\nab");
    write(&repository, "a/t.tm.hcl", "changed", "certificates");
    assert_snapshot!(repository.changed(), @"a  # triggered: certificates (.tmtriggers/a/t.tm.hcl, untracked); at or below /");
    repository.git("add -A");
    assert_snapshot!(repository.changed(), @"a  # triggered: certificates (.tmtriggers/a/t.tm.hcl, uncommitted); at or below /");
    repository.commit();
    assert_snapshot!(repository.changed(), @"a  # triggered: certificates (.tmtriggers/a/t.tm.hcl); at or below /");
    assert_eq!(
        repository.list("--format json").json()["stacks"][0]["reasons"][0],
        json!({
            "kind": "triggered",
            "detail": "triggered: certificates (.tmtriggers/a/t.tm.hcl)",
            "file": ".tmtriggers/a/t.tm.hcl",
            "state": "committed",
            "trigger_reason": "certificates",
        })
    );
}

#[test]
fn trigger_that_ignores_overrides_all_changes() {
    let repository = Repository::layout("a\nb\nc");
    for stack in ["a", "b"] {
        repository.write(&format!("/{stack}/main.tf"), "# changed\n");
    }
    write(&repository, "a/t.tm.hcl", "ignore-change", "only comments");
    write(&repository, "b/1.tm.hcl", "ignore-change", "also");
    write(&repository, "b/2.tm.hcl", "changed", "no, do it");
    write(
        &repository,
        "c/t.tm.hcl",
        "ignore-change",
        "nothing to ignore",
    );
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 58f00aa
    ");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 58f00aa
    ");
}

#[test]
fn trigger_that_ignores_a_stack_does_not_prevent_wants() {
    let repository = Repository::layout("a\nb wanted_by /c\nc wants /a");
    repository.write("/a/main.tf", "# changed\n");
    write(&repository, "a/t.tm.hcl", "ignore-change", "not a");
    write(&repository, "b/t.tm.hcl", "ignore-change", "not b");
    write(&repository, "c/t.tm.hcl", "changed", "but c");
    assert_snapshot!(repository.changed(), @"
    a  # wanted by /c (c/stack.tm:2)
    b  # names /c in `wanted_by` (b/stack.tm:2)
    c  # triggered: but c (.tmtriggers/c/t.tm.hcl, untracked); at or below /
    ");
}

#[test]
fn ignoring_beats_modules_and_what_is_watched() {
    let repository = Repository::of({
        let sandbox = Sandbox::layout("m\nw");
        sandbox.write("/m/main.tf", "module \"x\" {\n  source = \"../lib\"\n}\n");
        sandbox.write("/w/stack.tm", "stack {\n  watch = [\"/lib/x.tf\"]\n}\n");
        sandbox.write("/lib/x.tf", "");
        sandbox
    });
    repository.write("/lib/x.tf", "# changed\n");
    assert_snapshot!(repository.changed(), @"
    m  # changed: lib/x.tf (uncommitted), module ../lib (m/main.tf:2); at or below /
    w  # changed: lib/x.tf (uncommitted), watched (w/stack.tm:2); at or below /
    ");
    write(&repository, "m/t.tm.hcl", "ignore-change", "no");
    write(&repository, "w/t.tm.hcl", "ignore-change", "no");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 78a659b
    ");
}

#[test]
fn trigger_named_as_the_reason_is_the_first_by_path() {
    let repository = Repository::layout("a");
    write(&repository, "a/2.tm.hcl", "changed", "second");
    write(&repository, "a/1.tm.hcl", "changed", "first");
    repository.commit();
    write(&repository, "a/0.tm.hcl", "changed", "new");
    assert_snapshot!(repository.changed(), @"a  # triggered: new (.tmtriggers/a/0.tm.hcl, untracked); at or below /");
}

#[test]
fn trigger_and_change_are_both_reasons() {
    let repository = Repository::layout("a");
    repository.write("/a/main.tf", "# changed\n");
    write(&repository, "a/t.tm.hcl", "changed", "again");
    assert_snapshot!(repository.changed(), @"a  # changed: a/main.tf (uncommitted); triggered: again (.tmtriggers/a/t.tm.hcl, untracked); at or below /");
}

#[test]
fn trigger_kind_comes_from_the_file_and_not_from_its_name() {
    let repository = Repository::layout("a\nb");
    write(&repository, "a/ignore-change-1.tm.hcl", "changed", "r");
    repository.write("/b/main.tf", "# changed\n");
    write(&repository, "b/changed-1.tm", "ignore-change", "r");
    assert_snapshot!(repository.changed(), @"a  # triggered: r (.tmtriggers/a/ignore-change-1.tm.hcl, untracked); at or below /");
}

#[test]
fn trigger_without_a_type_marks_as_changed() {
    let repository = Repository::layout("a");
    repository.write(
        "/.tmtriggers/a/old.tm.hcl",
        "trigger {\n  ctime = 1\n  reason = \"old\"\n}\n",
    );
    assert_snapshot!(repository.changed(), @"a  # triggered: old (.tmtriggers/a/old.tm.hcl, untracked); at or below /");
}

#[test]
fn trigger_files_written_by_the_command_select() {
    let repository = Repository::layout("/\na\nb/c");
    repository.git("config user.name Ada");
    let why = |command: &str| {
        assert_eq!(repository.orch(command).code(), 0);
        let mut list = repository.changed().to_string();
        let root = repository.path("/.tmtriggers");
        for entry in walkdir::WalkDir::new(root) {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some((kind, _)) = name.split_once("changed-") {
                list = list.replace(&name, &format!("{kind}changed-UUID.tm.hcl"));
            }
        }
        list
    };
    assert_snapshot!(why("trigger a --reason R"), @"a  # triggered: R (asked for by Ada) (.tmtriggers/a/changed-UUID.tm.hcl, untracked); at or below /");
    assert_snapshot!(why("trigger --recursive b"), @"
    a  # triggered: R (asked for by Ada) (.tmtriggers/a/changed-UUID.tm.hcl, untracked); at or below /
    b/c  # triggered: triggered by hand (asked for by Ada) (.tmtriggers/b/c/changed-UUID.tm.hcl, untracked); at or below /
    ");
    assert_snapshot!(why("trigger /"), @"
    .  # triggered: triggered by hand (asked for by Ada) (.tmtriggers/changed-UUID.tm.hcl, untracked); at or below /
    a  # triggered: R (asked for by Ada) (.tmtriggers/a/changed-UUID.tm.hcl, untracked); at or below /
    b/c  # triggered: triggered by hand (asked for by Ada) (.tmtriggers/b/c/changed-UUID.tm.hcl, untracked); at or below /
    ");
    assert_snapshot!(why("trigger --ignore-change a"), @"
    .  # triggered: triggered by hand (asked for by Ada) (.tmtriggers/changed-UUID.tm.hcl, untracked); at or below /
    b/c  # triggered: triggered by hand (asked for by Ada) (.tmtriggers/b/c/changed-UUID.tm.hcl, untracked); at or below /
    ");
}

// Which triggers count.

#[test]
fn trigger_counts_only_if_it_differs_from_the_base() {
    let sandbox = Repository::prepare("a\nb\nc");
    for stack in ["a", "b", "c"] {
        write(&sandbox, &format!("{stack}/t.tm.hcl"), "changed", stack);
    }
    let repository = Repository::of(sandbox);
    assert_eq!(repository.changed().stdout, "");
    repository.remove("/.tmtriggers/a/t.tm.hcl");
    repository.git("rm -q .tmtriggers/b/t.tm.hcl");
    assert_eq!(repository.changed().stdout, "");
    repository.commit();
    assert_eq!(repository.changed().stdout, "");
    write(&repository, "c/t.tm.hcl", "changed", "changed");
    assert_snapshot!(repository.changed(), @"c  # triggered: changed (.tmtriggers/c/t.tm.hcl, uncommitted); at or below /");
    fs::remove_dir_all(repository.path("/.tmtriggers")).unwrap();
    assert_eq!(repository.changed().stdout, "");
}

#[test]
fn trigger_that_was_deleted_does_not_count() {
    let repository = Repository::layout("a");
    write(&repository, "a/t.tm.hcl", "changed", "r");
    repository.commit();
    repository.remove("/.tmtriggers/a/t.tm.hcl");
    assert_eq!(repository.changed().stdout, "");
    repository.git("rm -q --cached .tmtriggers/a/t.tm.hcl");
    assert_eq!(repository.changed().stdout, "");
}

#[test]
fn trigger_that_was_restored_counts() {
    let sandbox = Repository::prepare("a");
    write(&sandbox, "a/t.tm.hcl", "changed", "r");
    let repository = Repository::of(sandbox);
    repository.git("rm -q -r .tmtriggers");
    repository.commit();
    write(&repository, "a/t.tm.hcl", "changed", "again");
    assert_snapshot!(repository.changed(), @"a  # triggered: again (.tmtriggers/a/t.tm.hcl, untracked); at or below /");
    assert_eq!(
        repository
            .list("--disable-change-detection git-untracked")
            .stdout,
        ""
    );
}

#[test]
fn trigger_that_was_moved_counts_at_its_new_path() {
    let sandbox = Repository::prepare("a\nb");
    write(&sandbox, "a/t.tm.hcl", "changed", "r");
    let repository = Repository::of(sandbox);
    repository.git("mv .tmtriggers/a .tmtriggers/b");
    assert_snapshot!(repository.changed(), @"b  # triggered: r (.tmtriggers/b/t.tm.hcl, uncommitted); at or below /");
    repository.commit();
    assert_snapshot!(repository.changed(), @"b  # triggered: r (.tmtriggers/b/t.tm.hcl); at or below /");
}

#[test]
fn trigger_of_an_uncounted_kind_does_not_count() {
    let repository = Repository::layout("a\nb\nc");
    write(&repository, "a/t.tm.hcl", "changed", "untracked");
    write(&repository, "b/t.tm.hcl", "changed", "staged");
    repository.git("add .tmtriggers/b");
    write(&repository, "c/t.tm.hcl", "changed", "committed");
    repository.git("add .tmtriggers/c");
    repository.git("commit -q -m c -- .tmtriggers/c");
    let list = |flags: &str| repository.list(&format!("--disable-change-detection {flags}"));
    assert_snapshot!(list("git-untracked"), @"
    b  # triggered: staged (.tmtriggers/b/t.tm.hcl, uncommitted); at or below /
    c  # triggered: committed (.tmtriggers/c/t.tm.hcl); at or below /
    ");
    assert_snapshot!(list("git-uncommitted"), @"
    a  # triggered: untracked (.tmtriggers/a/t.tm.hcl, untracked); at or below /
    c  # triggered: committed (.tmtriggers/c/t.tm.hcl); at or below /
    ");
    assert_snapshot!(list("git-untracked,git-uncommitted"), @"c  # triggered: committed (.tmtriggers/c/t.tm.hcl); at or below /");
    repository.write("/.gitignore", ".tmtriggers/a\n");
    assert_snapshot!(repository.list("--disable-change-detection git-uncommitted"), @"c  # triggered: committed (.tmtriggers/c/t.tm.hcl); at or below /");
}

#[test]
fn triggers_are_not_ignored_like_other_files() {
    let repository = Repository::of({
        let sandbox = Repository::prepare("a");
        sandbox.write(
            "/ignore.orch.hcl",
            "orch {\n  config {\n    change_detection {\n      ignore = [\"**\"]\n    }\n  }\n}\n",
        );
        sandbox
    });
    repository.write("/a/main.tf", "# changed\n");
    assert_eq!(repository.changed().stdout, "");
    write(&repository, "a/t.tm.hcl", "changed", "r");
    assert_snapshot!(repository.changed(), @"a  # triggered: r (.tmtriggers/a/t.tm.hcl, untracked); at or below /");
}

#[test]
fn triggers_are_nothing_but_triggers() {
    let repository = Repository::of({
        let sandbox = Sandbox::layout("/\nm");
        sandbox.write(
            "/w/stack.tm",
            "stack {\n  watch = [\"/.tmtriggers/**\"]\n}\n",
        );
        let module = "module \"x\" {\n  source = \"../.tmtriggers\"\n}\n";
        sandbox.write("/m/main.tf", module);
        sandbox.symlink("../.tmtriggers/m", "/m/link");
        write(&sandbox, "m/t.tm.hcl", "changed", "r");
        sandbox
    });
    repository.write("/.tmtriggers/m/README.md", "");
    repository.write("/.tmtriggers/x.tf.md", "");
    repository.remove("/.tmtriggers/m/t.tm.hcl");
    assert_eq!(repository.changed().stdout, "");
    repository.commit();
    assert_eq!(repository.changed().stdout, "");
}

#[test]
fn trigger_directory_must_have_the_exact_name() {
    let repository = Repository::layout("/\na");
    repository.write("/.tmtriggers-old/a/t.tm.hcl", "nonsense\n");
    repository.write("/a/.tmtriggers/t.tm.hcl", "nonsense\n");
    assert_snapshot!(repository.changed(), @"
    .  # changed: .tmtriggers-old/a/t.tm.hcl (untracked); at or below /
    a  # changed: a/.tmtriggers/t.tm.hcl (untracked); at or below /
    ");
}

#[test]
fn triggers_of_odd_paths_are_read() {
    let repository = Repository::of({
        let sandbox = Sandbox::new("");
        for stack in ["a b", "ö'\"", "x\ny", "-f", "t.tm.hcl"] {
            sandbox.write(&format!("/{stack}/stack.tm"), "stack {}\n");
        }
        sandbox
    });
    write(&repository, "a b/t 1.tm.hcl", "changed", "space");
    write(&repository, "ö'\"/ü.tm.hcl", "changed", "ünïcode");
    write(&repository, "x\ny/\u{1b}.tm.hcl", "changed", "a\nb");
    write(&repository, "-f/t.tm.hcl", "changed", "dash");
    write(&repository, "t.tm.hcl/t.tm.hcl", "changed", "name");
    assert_snapshot!(repository.changed(), @r#"
    -f  # triggered: dash (.tmtriggers/-f/t.tm.hcl, untracked); at or below /
    a b  # triggered: space (.tmtriggers/a b/t 1.tm.hcl, untracked); at or below /
    t.tm.hcl  # triggered: name (.tmtriggers/t.tm.hcl/t.tm.hcl, untracked); at or below /
    x\ny  # triggered: a\nb (.tmtriggers/x\ny/\u{1b}.tm.hcl, untracked); at or below /
    ö'"  # triggered: ünïcode (.tmtriggers/ö'"/ü.tm.hcl, untracked); at or below /
    "#);
    repository.commit();
    assert_snapshot!(repository.changed(), @r#"
    -f  # triggered: dash (.tmtriggers/-f/t.tm.hcl); at or below /
    a b  # triggered: space (.tmtriggers/a b/t 1.tm.hcl); at or below /
    t.tm.hcl  # triggered: name (.tmtriggers/t.tm.hcl/t.tm.hcl); at or below /
    x\ny  # triggered: a\nb (.tmtriggers/x\ny/\u{1b}.tm.hcl); at or below /
    ö'"  # triggered: ünïcode (.tmtriggers/ö'"/ü.tm.hcl); at or below /
    "#);
}

#[test]
fn trigger_directory_belongs_to_the_project_root() {
    let repository = Repository::of({
        let sandbox = Sandbox::unmarked("");
        sandbox.write("/sub/root.orch.hcl", "orch { root = true }\n");
        sandbox.write("/sub/a/stack.tm", "stack {}\n");
        sandbox.write("/sub/sub/a/stack.tm", "stack {}\n");
        sandbox
    });
    write(
        &repository,
        "sub/a/t.tm.hcl",
        "changed",
        "of another project",
    );
    let list =
        || without_base(repository.orch_in("/sub/a", "list --changed --why --base base -C .."));
    assert_eq!(list().stdout, "");
    let trigger = "trigger {\n  ctime = 1\n  reason = \"r\"\n}\n";
    repository.write("/sub/.tmtriggers/a/t.tm.hcl", trigger);
    assert_snapshot!(list(), @"a  # triggered: r (.tmtriggers/a/t.tm.hcl, untracked); at or below /");
}

#[test]
fn trigger_outside_of_a_sparse_checkout_counts() {
    let repository = Repository::layout("a\nb");
    write(&repository, "a/t.tm.hcl", "changed", "r");
    repository.commit();
    repository.git("sparse-checkout set --no-cone '/*' '!/.tmtriggers/'");
    assert!(!repository.path("/.tmtriggers").exists());
    assert_snapshot!(repository.changed(), @"a  # triggered: r (.tmtriggers/a/t.tm.hcl); at or below /");
}

// What is wrong.

#[test]
fn trigger_that_is_broken_is_an_error_with_its_position() {
    let repository = Repository::layout("a\nb");
    write(&repository, "a/1.tm.hcl", "\"changed\"", "r");
    repository.write("/.tmtriggers/b/2.tm.hcl", "trigger {\n");
    assert_snapshot!(repository.changed(), @r#"
    [stderr]
    error: `type` must be `changed` or `ignore-change`
     --> .tmtriggers/a/1.tm.hcl:4:13
      |
    4 |   type    = "changed"
      |             ^^^^^^^^^ this is a string
      |
      = help: write it without quotes: `type = changed`

    error: syntax error
     --> .tmtriggers/b/2.tm.hcl:1:9
      |
    1 | trigger {
      |         ^- invalid block body; expected `}`, newline or identifier
      |         |
      |         never closed
      |
      = help: add the missing `}`

    [exit status 3]
    "#);
    assert_eq!(repository.list("--format json").code(), 3);
    assert_eq!(repository.orch("run --changed --base base true").code(), 3);
    assert_eq!(repository.orch("list").to_string(), "a\nb\n");
}

#[test]
fn trigger_that_is_no_regular_file_is_an_error() {
    let repository = Repository::layout("a");
    repository.mkdir("/.tmtriggers/a");
    repository.symlink("../../a/stack.tm", "/.tmtriggers/a/link.tm.hcl");
    repository.symlink("/dev/zero", "/.tmtriggers/a/zero.tm.hcl");
    repository.symlink("/etc", "/.tmtriggers/a/etc");
    let huge = fs::File::create(repository.path("/.tmtriggers/a/huge.tm.hcl")).unwrap();
    huge.set_len(2 << 20).unwrap();
    write(&repository, "a/pipe.tm.hcl", "changed", "r");
    repository.commit();
    repository.remove("/.tmtriggers/a/pipe.tm.hcl");
    let made = std::process::Command::new("mkfifo")
        .arg(repository.path("/.tmtriggers/a/pipe.tm.hcl"))
        .status();
    assert!(made.unwrap().success());
    assert_snapshot!(repository.list(""), @"
    [stderr]
    warning: `.tmtriggers/a/etc` is a symbolic link
      = help: use a plain file in plain directories; links are not followed

    error: `.tmtriggers/a/huge.tm.hcl` is larger than 1 MiB
      = help: a trigger has one short block

    error: `.tmtriggers/a/link.tm.hcl` is a symbolic link
      = help: use a plain file in plain directories; links are not followed

    error: `.tmtriggers/a/pipe.tm.hcl` is not a regular file
      = help: use a plain file in plain directories; links are not followed

    error: `.tmtriggers/a/zero.tm.hcl` is a symbolic link
      = help: use a plain file in plain directories; links are not followed

    [exit status 3]
    ");
}

#[test]
fn trigger_directory_must_not_be_a_link() {
    let repository = Repository::layout("a");
    repository.symlink("a", "/.tmtriggers");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    error: `.tmtriggers` is a symbolic link
      = help: use a plain file in plain directories; links are not followed

    [exit status 3]
    ");
}

#[test]
fn trigger_is_not_read_through_links_above_it() {
    let repository = Repository::layout("a");
    write(&repository, "a/t.tm.hcl", "changed", "r");
    repository.commit();
    fs::rename(
        repository.path("/.tmtriggers/a"),
        repository.path("/.elsewhere"),
    )
    .unwrap();
    repository.symlink("../.elsewhere", "/.tmtriggers/a");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 6e0c8e1
    warning: `.tmtriggers/a` is a symbolic link
      = help: use a plain file in plain directories; links are not followed
    ");
}

#[test]
fn trigger_directory_with_another_file_gets_a_warning() {
    let repository = Repository::layout("a");
    for name in [
        ".gitkeep",
        "README",
        "readme.md",
        "a/.t.tm.hcl",
        "a/t.hcl",
        "a/t.tm.hcl.orig",
    ] {
        write(&repository, name, "changed", "r");
    }
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 6e0c8e1
    warning: `.tmtriggers/a/t.hcl` is not a trigger because of its name
      = help: the names of triggers end in `.tm.hcl`: rename it, or move it elsewhere

    warning: `.tmtriggers/a/t.tm.hcl.orig` is not a trigger because of its name
      = help: the names of triggers end in `.tm.hcl`: rename it, or move it elsewhere
    ");
}

#[test]
fn trigger_for_a_path_without_a_stack_gets_a_warning() {
    let repository = Repository::layout("a\ndir/b\ndir/c");
    write(&repository, "dir/t.tm.hcl", "changed", "r");
    write(&repository, "dir/bb/t.tm.hcl", "ignore-change", "r");
    write(&repository, "a/sub/t.tm.hcl", "changed", "r");
    write(&repository, "t.tm.hcl", "changed", "r");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 061b404
    warning: `.tmtriggers/a/sub/t.tm.hcl` is a trigger for `/a/sub`, which is not a stack
      = help: delete the file if the stack no longer exists

    warning: `.tmtriggers/dir/bb/t.tm.hcl` is a trigger for `/dir/bb`, which is not a stack
      = help: did you mean `/dir/b`?
      = help: delete the file if the stack no longer exists

    warning: `.tmtriggers/dir/t.tm.hcl` is a trigger for `/dir`, which is not a stack
      = help: to trigger the stacks below it, run `orch trigger --recursive /dir`

    warning: `.tmtriggers/t.tm.hcl` is a trigger for `/`, which is not a stack
      = help: to trigger the stacks below it, run `orch trigger --recursive /`
    ");
}

#[test]
fn trigger_warnings_name_the_first_paths_without_a_stack() {
    let repository = Repository::layout("a");
    for number in 100..120 {
        write(&repository, &format!("s{number}/t.tm.hcl"), "changed", "r");
    }
    let warnings = || {
        let list = repository.list("");
        let warnings = list.stderr.split("\n\n").skip(19);
        warnings.collect::<Vec<_>>().join("\n\n")
    };
    assert_snapshot!(warnings(), @"
    warning: `.tmtriggers/s119/t.tm.hcl` is a trigger for `/s119`, which is not a stack
      = help: delete the file if the stack no longer exists
    ");
    write(&repository, "t/t.tm.hcl", "changed", "r");
    assert_snapshot!(warnings(), @"
    warning: `.tmtriggers/s119/t.tm.hcl` is a trigger for `/s119`, which is not a stack
      = help: delete the file if the stack no longer exists

    warning: 1 more trigger is for a path that is not a stack
      = help: delete those whose stacks no longer exist
    ");
    for number in 0..3 {
        write(&repository, &format!("u{number}/t.tm.hcl"), "changed", "r");
    }
    assert_snapshot!(warnings(), @"
    warning: `.tmtriggers/s119/t.tm.hcl` is a trigger for `/s119`, which is not a stack
      = help: delete the file if the stack no longer exists

    warning: 4 more triggers are for paths that are not stacks
      = help: delete those whose stacks no longer exist
    ");
    let document = repository.list("--format json").json();
    let diagnostics = document["diagnostics"].as_array().unwrap();
    assert_eq!(diagnostics.len(), 21);
    assert_eq!(diagnostics[20]["file"], ".tmtriggers/t/t.tm.hcl");
}

#[test]
fn trigger_of_a_removed_stack_gets_no_warning() {
    let repository = Repository::layout("a\nb");
    write(&repository, "a/t.tm.hcl", "changed", "r");
    repository.commit();
    repository.git("rm -q -r a");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: stack `/a` was removed since the base; nothing is run for it
    note: no stack has changed since 7063b5e
    ");
}

#[test]
fn trigger_with_a_path_that_is_not_utf8_gets_a_warning() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let repository = Repository::layout("a");
    write(&repository, "a/t.tm.hcl", "changed", "r");
    let odd = repository
        .path("/.tmtriggers/a")
        .join(OsStr::from_bytes(b"\xff.tm.hcl"));
    if fs::rename(repository.path("/.tmtriggers/a/t.tm.hcl"), odd).is_err() {
        crate::support::skipped("the file system wants UTF-8");
        return;
    }
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 6e0c8e1
    warning: the path of `.tmtriggers/a/�.tm.hcl` is not UTF-8
      = note: no stack has this path, so the file is not a trigger
      = help: rename it
    ");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 6e0c8e1
    warning: the path of `.tmtriggers/a/�.tm.hcl` is not UTF-8
      = note: no stack has this path, so the file is not a trigger
      = help: rename it
    ");
}

#[test]
fn trigger_directory_with_a_repository_gets_a_warning() {
    let repository = Repository::layout("a");
    repository.git_init_at("/.tmtriggers/a");
    write(&repository, "a/t.tm.hcl", "changed", "r");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 6e0c8e1
    warning: `.tmtriggers/a` is another git repository
      = note: triggers in it go unnoticed
      = help: add the files to the repository of the project
    ");
}
