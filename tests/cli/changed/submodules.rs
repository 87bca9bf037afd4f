//! Repositories in the repository.

use insta::assert_snapshot;

use crate::support::Repository;

/// A project with the stacks `a` and `b` and a repository at `a/sub` that is a submodule.
fn with_submodule() -> Repository {
    let repository = Repository::layout("a\nb");
    let library = repository.outside().join("library");
    std::fs::create_dir(&library).unwrap();
    repository.git_in(&library, "init -q -b main");
    std::fs::write(library.join("x.tf"), "").unwrap();
    repository.git_in(&library, "add -A");
    repository.git_in(&library, "commit -q -m one");
    repository.git("submodule --quiet add ../library a/sub");
    repository.commit();
    repository.git("tag -f base");
    repository
}

#[test]
fn changed_skips_an_unchanged_submodule() {
    assert_snapshot!(with_submodule().changed(), @"
    [stderr]
    note: no stack has changed since 9c50cb5
    ");
}

#[test]
fn changed_counts_a_submodule_at_another_commit() {
    let repository = with_submodule();
    repository.write("/a/sub/x.tf", "# changed\n");
    repository.git_in("/a/sub", "commit -q -a -m two");
    assert_snapshot!(repository.changed(), @"a  # changed: a/sub (uncommitted, submodule); at or below /");
    repository.commit();
    assert_snapshot!(repository.changed(), @"a  # changed: a/sub (submodule); at or below /");
}

#[test]
fn changed_counts_a_submodule_with_changes_inside() {
    let repository = with_submodule();
    repository.write("/a/sub/x.tf", "# changed\n");
    assert_snapshot!(repository.changed(), @"a  # changed: a/sub (uncommitted, submodule); at or below /");
}

#[test]
fn changed_counts_a_submodule_with_untracked_files() {
    let repository = with_submodule();
    repository.write("/a/sub/new.tf", "# changed\n");
    assert_snapshot!(repository.changed(), @"a  # changed: a/sub (uncommitted, submodule); at or below /");
}

#[test]
fn changed_notes_a_submodule_that_is_not_checked_out() {
    let repository = with_submodule();
    repository.git("submodule --quiet deinit a/sub");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: the submodule `a/sub` is not checked out, so stacks may be missing; run `git submodule update --init --recursive`
    note: no stack has changed since 9c50cb5
    ");
    for command in ["run -X -q true", "plan", "validate"] {
        let output = repository.orch(command);
        let notes = output.stderr.matches("is not checked out").count();
        assert_eq!(notes, 1, "{command}: {output}");
    }
}

#[test]
fn changed_does_not_note_a_submodule_with_update_none() {
    let repository = with_submodule();
    repository.git("config -f .gitmodules submodule.a/sub.update none");
    repository.git("submodule --quiet deinit --force a/sub");
    assert_snapshot!(repository.orch("list"), @r"
    a
    b
    ");
}

#[test]
fn changed_counts_an_added_or_removed_submodule() {
    let repository = with_submodule();
    repository.git("rm -q a/sub");
    assert_snapshot!(repository.changed(), @"a  # changed: a/sub (uncommitted, submodule); at or below /");
    repository.git("reset -q --hard");
    repository.git("submodule --quiet update");
    repository.git("tag -f base HEAD~");
    assert_snapshot!(repository.changed(), @"a  # changed: a/sub (submodule); at or below /");
}

#[test]
fn changed_counts_submodules_with_any_ignore_setting() {
    for setting in [
        "config -f .gitmodules submodule.a/sub.ignore all",
        "config submodule.a/sub.ignore all",
        "config diff.ignoreSubmodules all",
    ] {
        let repository = with_submodule();
        repository.git(setting);
        repository.write("/a/sub/x.tf", "# changed\n");
        let uncommitted = "a  # changed: a/sub (uncommitted, submodule); at or below /\n";
        assert_eq!(repository.changed().to_string(), uncommitted, "{setting}");
        repository.git_in("/a/sub", "commit -q -a -m two");
        assert_eq!(repository.changed().to_string(), uncommitted, "{setting}");
        repository.git("-c diff.ignoreSubmodules=none add --force a/sub .gitmodules");
        repository.git("commit -q --allow-empty -m moved");
        let committed = "a  # changed: a/sub (submodule); at or below /\n";
        assert_eq!(repository.changed().to_string(), committed, "{setting}");
    }
}

#[test]
fn changed_selects_stacks_in_a_submodule() {
    let repository = with_submodule();
    repository.write("/a/sub/s/stack.tm", "stack {}\n");
    repository.write("/a/sub/t/stack.tm", "stack {}\n");
    repository.git_in("/a/sub", "add -A");
    repository.git_in("/a/sub", "commit -q -m stacks");
    repository.commit();
    repository.git("tag -f base");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since a77ca2b
    ");
    repository.write("/a/sub/s/x.tf", "");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/sub (uncommitted, submodule); at or below /
    a/sub/s  # changed: a/sub (uncommitted, submodule); at or below /
    a/sub/t  # changed: a/sub (uncommitted, submodule); at or below /
    ");
}
