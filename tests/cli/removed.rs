//! Stacks that the base had and that are no more.

use insta::assert_snapshot;
use serde_json::json;

use crate::repository::Repository;
use crate::sandbox::Sandbox;

fn remove_all(sandbox: &Sandbox, path: &str) {
    std::fs::remove_dir_all(sandbox.path(path)).unwrap();
}

#[test]
fn a_stack_whose_directory_is_gone_is_removed() {
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
fn a_stack_that_was_changed_before_it_was_deleted_is_removed() {
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
fn a_stack_that_was_added_and_deleted_since_is_not_removed() {
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
fn a_directory_that_loses_its_stack_block_is_a_removed_stack() {
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
fn a_stack_whose_block_moves_to_another_file_has_changed() {
    let repository = Repository::layout("a\nb");
    repository.git("mv a/stack.tm a/other.tm.hcl");
    assert_snapshot!(repository.changed(), @"a  # changed: a/other.tm.hcl (uncommitted, added); at or below /");
}

#[test]
fn a_stack_that_moves_is_removed_and_changed() {
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
    note: there are no stacks in `$ROOT`; `/a` is a project of its own, change into it
    ");
}

#[test]
fn the_parent_of_a_removed_stack_has_changed() {
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
fn what_never_was_a_stack_is_not_removed() {
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
fn a_run_says_what_is_removed_and_runs_the_rest() {
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
fn a_stack_whose_files_git_shall_forget_is_still_there() {
    let repository = Repository::layout("a\nb");
    repository.git("rm -q -r --cached a");
    assert_snapshot!(repository.changed(), @"a  # changed: a/main.tf (uncommitted, deleted); at or below /");
}

#[test]
fn a_removed_stack_whose_files_are_ignored_is_removed_all_the_same() {
    let repository = Repository::layout("a\nb");
    repository.write(
        "/root.orch.hcl",
        "orch {\n  root = true\n  config {\n    change_detection {\n      ignore = [\"*\"]\n    }\n  }\n}\n",
    );
    repository.git("rm -q -r a");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: stack `/a` was removed since the base; nothing is run for it
    note: no stack has changed since 7063b5e
    ");
}

#[test]
fn what_is_not_committed_and_does_not_count_removes_nothing() {
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
fn a_directory_replaced_by_a_file_or_a_link_is_no_stack() {
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
