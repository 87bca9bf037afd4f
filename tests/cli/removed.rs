//! Stacks that exist in the base but no longer in the project.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Output, Repository, Sandbox, without_base};

fn remove_all(sandbox: &Sandbox, path: &str) {
    std::fs::remove_dir_all(sandbox.path(path)).unwrap();
}

#[test]
fn removed_lists_a_stack_without_its_directory() {
    let repository = Repository::layout("a\nb\nc\nd");
    repository.git("rm -q -r a");
    repository.git("commit -q -m gone");
    repository.git("rm -q -r b");
    remove_all(&repository, "/c");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: stack `/a` was removed since the base; nothing is run for it
    note: stack `/b` was removed since the base; nothing is run for it
    note: stack `/c` was removed since the base; nothing is run for it
    note: no stack has changed since 1790d18
    ");
    let list = repository.list("--format json").json();
    assert_eq!(
        list["removed"],
        json!([{"path": "/a"}, {"path": "/b"}, {"path": "/c"}])
    );
    assert_eq!(list["stacks"], json!([]));
}

#[test]
fn removed_stack_is_named_in_warnings_about_references() {
    let repository = Repository::layout("a after /b /c/d /never\nb\nc/d/e");
    repository.git("rm -q -r b c");
    let output = repository.changed();
    for note in [
        "= note: the stack `/b` was removed since the base",
        "= note: the stacks below `/c/d` were removed since the base",
    ] {
        assert!(output.stderr.contains(note), "{output}");
    }
    assert_eq!(output.stderr.matches("= note").count(), 2, "{output}");
}

#[test]
fn list_removed_says_so_of_references_too() {
    let repository = Repository::layout("a after /b /c/d /never\nb\nc/d/e");
    repository.git("rm -q -r b c");
    let notes = |output: &Output| {
        let lines = output.stderr.lines().map(str::trim_start);
        let notes = lines.filter(|line| line.starts_with("= note: the stack"));
        notes.map(str::to_owned).collect::<Vec<_>>()
    };
    let all = notes(&repository.changed());
    assert_eq!(all.len(), 2);
    // Flags that narrow the list of removed stacks make no difference.
    for arguments in ["", "--match nothing", "--exclude '**'", "-C a"] {
        let output = removed(&repository, arguments);
        assert_eq!(output.code(), 0, "{output}");
        assert_eq!(notes(&output), all, "{arguments}: {output}");
    }
    assert_eq!(notes(&repository.list("-C a")), all);
}

#[test]
fn strict_references_to_removed_stacks_say_so() {
    let repository = Repository::layout("a after /b\nb\nc");
    repository.write(
        "/strict.orch.hcl",
        "orch {\n  config {\n    references = \"strict\"\n  }\n}\n",
    );
    repository.commit();
    repository.git("rm -q -r b");
    assert_snapshot!(repository.orch("list --changed --base base"), @r#"
    [stderr]
    base d6258d6: --base base
    error: `/b` in `after` matches no stack
     --> a/stack.tm:2:12
      |
    2 |   after = ["/b"]
      |            ^^^^ no such directory
      |
      = note: the project sets `references = "strict"`
      = note: the stack `/b` was removed since the base d6258d6
      = help: did you mean `/c`?

    [exit status 3]
    "#);
    for command in [
        "list --removed",
        "run --changed true",
        "env --changed",
        "graph --changed",
        "why --changed a",
    ] {
        let output = repository.orch(&format!("{command} --base base"));
        assert_eq!(output.code(), 3, "{output}");
        let note = "= note: the stack `/b` was removed since the base";
        assert!(output.stderr.contains(note), "{command}: {output}");
    }
    // An unknown base does not change the errors.
    let output = repository.orch("list --changed --base nowhere");
    assert_eq!(output.code(), 3, "{output}");
    assert!(!output.stderr.contains("nowhere"), "{output}");
    // A stack that cannot be read is not removed.
    repository.write("/c/stack.tm", "stack {\n");
    let output = repository.orch("list --changed --base base");
    assert!(!output.stderr.contains("removed since"), "{output}");
}

#[test]
fn removed_lists_a_stack_changed_before_its_deletion() {
    let repository = Repository::layout("a\nb");
    repository.write("/a/stack.tm", "stack {\n}\n# changed\n");
    repository.commit();
    remove_all(&repository, "/a");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: stack `/a` was removed since the base; nothing is run for it
    note: no stack has changed since 7063b5e
    ");
}

#[test]
fn removed_omits_a_stack_added_and_deleted_since_the_base() {
    let repository = Repository::layout("a");
    repository.write("/b/stack.tm", "stack {}\n");
    repository.commit();
    remove_all(&repository, "/b");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 6e0c8e1
    ");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 6e0c8e1
    ");
}

#[test]
fn removed_lists_a_directory_without_its_stack_block() {
    let repository = Repository::layout("a\nb\nc");
    repository.write("/a/stack.tm", "globals {}\n");
    repository.commit();
    repository.write("/b/stack.tm", "globals {}\n");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: stack `/a` was removed since the base; nothing is run for it
    note: stack `/b` was removed since the base; nothing is run for it
    note: no stack has changed since 58f00aa
    ");
}

#[test]
fn removed_omits_a_stack_whose_block_moved_to_another_file() {
    let repository = Repository::layout("a\nb");
    repository.git("mv a/stack.tm a/other.tm.hcl");
    assert_snapshot!(repository.changed(), @"a  # changed: a/other.tm.hcl (uncommitted, added); at or below /");
}

#[test]
fn removed_lists_the_old_path_of_a_moved_stack() {
    let repository = Repository::layout("a\nb");
    repository.git("mv a moved");
    assert_snapshot!(repository.changed(), @"
    moved  # changed: moved/main.tf (uncommitted, added); at or below /
    [stderr]
    note: stack `/a` was removed since the base; nothing is run for it
    ");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    moved  # changed: moved/main.tf (added); at or below /
    [stderr]
    note: stack `/a` was removed since the base; nothing is run for it
    ");
}

#[test]
fn stacks_below_a_new_mark_are_removed() {
    let repository = Repository::layout("a\na/b\nc\nd");
    repository.write("/a/.tmskip", "");
    repository.commit();
    repository.write("/c/.orchskip", "");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: stack `/a` was removed since the base; nothing is run for it
    note: stack `/a/b` was removed since the base; nothing is run for it
    note: stack `/c` was removed since the base; nothing is run for it
    note: no stack has changed since 8899c25
    ");
}

#[test]
fn stacks_below_an_old_mark_never_were_stacks() {
    let repository = Repository::layout("a\na/b\nc");
    repository.write("/a/.tmskip", "");
    repository.commit();
    repository.git("tag -f base");
    repository.git("rm -q -r a/b");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since f261646
    ");
}

#[test]
fn stacks_that_leave_for_a_project_of_their_own_are_removed() {
    let repository = Repository::layout("a\na/b\nc\nc/d");
    repository.write("/a/own.tm", "orch {\n  root = true\n}\n");
    repository.commit();
    repository.write("/c/stack.tm", "stack {}\norch {\n  root = true\n}\n");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: stack `/a` was removed since the base; nothing is run for it
    note: stack `/a/b` was removed since the base; nothing is run for it
    note: stack `/c` was removed since the base; nothing is run for it
    note: stack `/c/d` was removed since the base; nothing is run for it
    note: there are no stacks in `$ROOT`; `/a` is a project of its own: change into it
    ");
}

#[test]
fn removed_stack_marks_its_parent_as_changed() {
    let repository = Repository::layout("/\na\na/b\na/b/c");
    repository.git("rm -q -r a/b");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/b/c/main.tf (uncommitted, deleted); at or below /
    [stderr]
    note: stack `/a/b` was removed since the base; nothing is run for it
    note: stack `/a/b/c` was removed since the base; nothing is run for it
    ");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/b/c/main.tf (deleted); at or below /
    [stderr]
    note: stack `/a/b` was removed since the base; nothing is run for it
    note: stack `/a/b/c` was removed since the base; nothing is run for it
    ");
}

#[test]
fn removed_omits_directories_that_were_no_stacks() {
    let sandbox = Sandbox::layout("a\n.hidden/b\nc/.d");
    sandbox.write("/broken/stack.tm", "stack {\n");
    sandbox.write("/broken/.tmskip", "");
    sandbox.write("/plain/x.tm", "globals {}\n");
    sandbox.write("/text/stack.txt", "stack {}\n");
    sandbox.write("/own/x.tm", "terramate {\n  root = true\n}\nstack {}\n");
    let repository = Repository::of(sandbox);
    repository.git("rm -q -r .hidden c broken plain text own");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 9f48bc6
    ");
}

#[test]
fn removed_stacks_are_those_at_or_below_the_current_directory() {
    let repository = Repository::layout("a/b\na/c\nab/c\nd");
    repository.git("rm -q -r a/b ab/c");
    assert_snapshot!(repository.list("-C a"), @"
    [stderr]
    note: stack `/a/b` was removed since the base; nothing is run for it
    note: no stack has changed since 2ba4797
    ");
    assert_snapshot!(repository.list("-C d"), @"
    [stderr]
    note: no stack has changed since 2ba4797
    ");
    assert_eq!(
        repository.list("-C a --format json").json()["removed"],
        json!([{"path": "/a/b"}])
    );
}

#[test]
fn removed_stacks_are_noted_by_a_run() {
    let repository = Repository::layout("a\nb");
    repository.git("rm -q -r a");
    repository.write("/b/x", "");
    assert_snapshot!(repository.orch("run -X --changed --base base pwd"), @"
    $ROOT/b
    [stderr]
    base 7063b5e: --base base, which is HEAD itself
    note: stack `/a` was removed since the base; nothing is run for it
    orch: /b: pwd
    orch: 1 succeeded in [time]
    ");
}

#[test]
fn removed_omits_a_stack_removed_only_from_the_index() {
    let repository = Repository::layout("a\nb");
    repository.git("rm -q -r --cached a");
    assert_snapshot!(repository.changed(), @"a  # changed: a/main.tf (uncommitted, deleted); at or below /");
}

#[test]
fn removed_lists_a_stack_whose_files_are_ignored() {
    let repository = Repository::layout("a\nb");
    repository.write(
        "/root.orch.hcl",
        "orch {\n  root = true\n  config {\n    change_detection {\n      ignore = [\"*\"]\n    }\n  }\n}\n",
    );
    repository.git("rm -q -r a");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: stack `/a` was removed since the base; nothing is run for it
    note: no stack has changed since 7063b5e; 3 files differ that do not count
    ");
}

#[test]
fn removed_ignores_uncounted_uncommitted_deletions() {
    let repository = Repository::layout("a\nb");
    remove_all(&repository, "/a");
    repository.write("/b/.tmskip", "");
    let switches = "--disable-change-detection git-untracked,git-uncommitted";
    assert_snapshot!(repository.list(switches), @"
    [stderr]
    note: there are no stacks in `$ROOT`
    ");
}

#[test]
fn removed_lists_a_directory_replaced_by_a_file_or_link() {
    let repository = Repository::layout("a\nb\nc");
    remove_all(&repository, "/a");
    repository.write("/a", "");
    remove_all(&repository, "/b");
    repository.symlink("c", "/b");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: stack `/a` was removed since the base; nothing is run for it
    note: stack `/b` was removed since the base; nothing is run for it
    note: no stack has changed since 58f00aa
    ");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: stack `/a` was removed since the base; nothing is run for it
    note: stack `/b` was removed since the base; nothing is run for it
    note: no stack has changed since 58f00aa
    ");
}

/// Lists what was removed since the base.
#[track_caller]
fn removed(repository: &Repository, arguments: &str) -> Output {
    without_base(repository.orch(&format!("list --removed --base base {arguments}")))
}

#[test]
fn list_removed_lists_what_the_base_had_and_the_tree_has_not() {
    let repository = Repository::layout("a\na/n\nb\nc\nd\nd/n\ne\nf\nkept");
    // The whole directory, only the block, a mark, a move, a project of its own.
    repository.git("rm -q -r a");
    repository.git("commit -q -m gone");
    repository.write("/b/stack.tm", "globals {}\n");
    remove_all(&repository, "/c");
    repository.write("/d/.tmskip", "");
    repository.git("mv e moved");
    repository.write("/f/own.tm", "orch {\n  root = true\n}\n");
    assert_snapshot!(removed(&repository, ""), @"
    a
    a/n
    b
    c
    d
    d/n
    e
    f
    ");
    repository.commit();
    assert_snapshot!(removed(&repository, ""), @"
    a
    a/n
    b
    c
    d
    d/n
    e
    f
    ");
}

#[test]
fn list_removed_names_the_base() {
    let repository = Repository::layout("a\nb");
    repository.git("rm -q -r a");
    repository.commit();
    repository.git("rm -q -r b");
    assert_snapshot!(repository.orch("list --removed --base base"), @"
    a
    b
    [stderr]
    base 7063b5e: --base base
    ");
    assert_snapshot!(repository.orch("list --removed -B HEAD"), @"
    b
    [stderr]
    base 63d40be: --base HEAD, which is HEAD itself
    ");
    assert_snapshot!(repository.orch("list --removed"), @"
    a
    b
    [stderr]
    base 7063b5e: first parent of HEAD, which is at main
    ");
    assert_snapshot!(repository.orch("list --removed --base nowhere"), @"
    [stderr]
    error: the changes are unknown
      caused by: there is no revision `nowhere`
      = help: name a commit, branch or tag that exists
    [exit status 4]
    ");
}

#[test]
fn list_removed_as_data() {
    let repository = Repository::layout("a\nb/c\nd");
    repository.git("rm -q -r a b");
    let list = removed(&repository, "--format json").json();
    assert_eq!(list["format"], 1);
    assert_eq!(list["stacks"], json!([]));
    assert_eq!(list["removed"], json!([{"path": "/a"}, {"path": "/b/c"}]));
    assert_eq!(list["base"]["rule"], "named");
    let list = removed(&repository, "--format json -C d").json();
    assert_eq!(list["removed"], json!([]));
}

#[test]
fn list_removed_is_limited_by_the_current_directory_and_globs() {
    let repository = Repository::layout("test/a\ntest/b\ntests/a\ntest-foo\nkept");
    repository.write("/test/x", "");
    repository.write("/tests/x", "");
    repository.git("rm -q -r test/a test/b tests/a test-foo");
    let list = |arguments: &str| {
        let output = removed(&repository, arguments);
        assert_eq!(output.code(), 0, "{output}");
        output.stdout.lines().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(list(""), "test-foo test/a test/b tests/a");
    assert_eq!(list("-C test"), "a b");
    assert_eq!(list("-C tests"), "a");
    assert_eq!(list("--match test"), "test/a test/b");
    assert_eq!(list("--match '*/a'"), "test/a tests/a");
    assert_eq!(
        list("--match test --match test-foo"),
        "test-foo test/a test/b"
    );
    assert_eq!(list("--exclude test"), "test-foo tests/a");
    assert_eq!(list("--match '**/a' --exclude 'tests/**'"), "test/a");
    assert_eq!(list("-C test --match 'a*'"), "a");
    assert_eq!(list("-C test --exclude /test/a"), "b");
    assert_eq!(list("--match kept"), "");
    assert_snapshot!(repository.orch("list --removed --base base --match ''"), @"
    [stderr]
    error: `--match` is empty; use `**` to match all stacks
    [exit status 64]
    ");
    let subdirectory = repository.orch_in("/test", "list --removed --base base");
    assert_eq!(subdirectory.stdout, "a\nb\n");
}

#[test]
fn list_removed_says_that_nothing_was() {
    let repository = Repository::layout("a\nb");
    repository.write("/a/x", "");
    assert_snapshot!(removed(&repository, ""), @"
    [stderr]
    note: no stack was removed since 7063b5e
    ");
    repository.git("rm -q -r b");
    assert_snapshot!(removed(&repository, "--match a"), @"
    [stderr]
    note: no such stack was removed since 7063b5e
    ");
    assert_snapshot!(removed(&repository, "-C a"), @"
    [stderr]
    note: no such stack was removed since 7063b5e
    ");
}

#[test]
fn list_removed_knows_no_flags_that_ask_for_more_than_a_path() {
    let repository = Repository::layout("a");
    for flags in [
        "--order",
        "--why",
        "--stacks-from -",
        "--tags x",
        "--no-tags x",
        "--no-recursive",
        "--include-dependents",
        "--include-dependencies=1",
        "--only-direct-dependents",
        "--exclude-dependencies",
        "--include-all-dependents",
    ] {
        let output = repository.orch(&format!("list --removed --base base {flags}"));
        assert_eq!(output.code(), 64, "{flags}: {output}");
    }
    assert_eq!(repository.orch("run --removed true").code(), 64);
    assert_eq!(repository.orch("list --base base").code(), 64);
    assert_snapshot!(repository.orch("list --removed --changed --base base"), @"
    [stderr]
    base 6e0c8e1: --base base, which is HEAD itself
    note: no stack was removed since 6e0c8e1
    ");
}

#[test]
fn list_removed_leaves_out_what_a_sparse_checkout_leaves_out() {
    let repository = Repository::layout("a\nb\nc");
    repository.git("rm -q -r c");
    repository.commit();
    repository.git("sparse-checkout set a");
    assert_snapshot!(removed(&repository, ""), @"c");
}

#[test]
fn list_removed_knows_what_does_not_count() {
    let repository = Repository::layout("a\nb");
    remove_all(&repository, "/a");
    let switch = "--disable-change-detection git-uncommitted";
    assert_snapshot!(removed(&repository, switch), @"
    [stderr]
    note: no stack was removed since 7063b5e
    ");
    repository.commit();
    assert_snapshot!(removed(&repository, switch), @"a");
}

#[test]
fn list_removed_shows_strange_names_safely() {
    let repository = Repository::layout("a");
    repository.write("/b\u{1b}[2J/stack.tm", "stack {}\n");
    repository.write("/c d/stack.tm", "stack {}\n");
    repository.commit();
    repository.git("tag -f base");
    remove_all(&repository, "/b\u{1b}[2J");
    remove_all(&repository, "/c d");
    assert_snapshot!(removed(&repository, ""), @r"
    b\u{1b}[2J
    c d
    ");
}
