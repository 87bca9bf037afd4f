//! Changes of files in each state that git knows.

use insta::assert_snapshot;

use crate::support::{Repository, Sandbox};

#[test]
fn changed_is_empty_without_changes() {
    let repository = Repository::layout("a");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 6e0c8e1
    ");
}

#[test]
fn changed_counts_commits_since_the_base() {
    let repository = Repository::layout("a\nb\nc\nd");
    repository.write("/a/main.tf", "# changed\n");
    repository.write("/b/new.tf", "");
    repository.git("rm -q c/main.tf");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf; at or below /
    b  # changed: b/new.tf (added); at or below /
    c  # changed: c/main.tf (deleted); at or below /
    ");
}

#[test]
fn changed_counts_staged_files() {
    let repository = Repository::layout("a\nb\nc\nd");
    repository.write("/a/main.tf", "# changed\n");
    repository.write("/b/new.tf", "");
    repository.git("add -A");
    repository.git("rm -q c/main.tf");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf (uncommitted); at or below /
    b  # changed: b/new.tf (uncommitted, added); at or below /
    c  # changed: c/main.tf (uncommitted, deleted); at or below /
    ");
}

#[test]
fn changed_counts_unstaged_files() {
    let repository = Repository::layout("a\nb\nc\nd");
    repository.write("/a/main.tf", "# changed\n");
    repository.remove("/c/main.tf");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf (uncommitted); at or below /
    c  # changed: c/main.tf (uncommitted, deleted); at or below /
    ");
}

#[test]
fn changed_counts_staged_changes_undone_in_the_working_tree() {
    let repository = Repository::layout("a\nb");
    repository.write("/a/main.tf", "# changed\n");
    repository.write("/b/new.tf", "");
    repository.git("add -A");
    repository.write("/a/main.tf", "# /a\n");
    repository.remove("/b/new.tf");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf (uncommitted); at or below /
    b  # changed: b/new.tf (uncommitted, deleted); at or below /
    ");
}

#[test]
fn changed_counts_files_removed_from_the_index_only() {
    let repository = Repository::layout("a\nb");
    repository.git("rm -q --cached a/main.tf");
    assert_snapshot!(repository.changed(), @"a  # changed: a/main.tf (uncommitted, deleted); at or below /");
}

#[test]
fn changed_counts_files_with_intent_to_add() {
    let repository = Repository::layout("a\nb");
    repository.write("/a/new.tf", "# new\n");
    repository.git("add --intent-to-add a/new.tf");
    assert_snapshot!(repository.changed(), @"a  # changed: a/new.tf (uncommitted, added); at or below /");
}

#[test]
fn changed_counts_a_rename_on_both_sides() {
    let repository = Repository::layout("a\nb\nc\nd");
    repository.git("mv a/main.tf b/a.tf");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf (uncommitted, deleted); at or below /
    b  # changed: b/a.tf (uncommitted, added); at or below /
    ");
    repository.commit();
    repository.git("mv c/main.tf d/c.tf");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf (deleted); at or below /
    b  # changed: b/a.tf (added); at or below /
    c  # changed: c/main.tf (uncommitted, deleted); at or below /
    d  # changed: d/c.tf (uncommitted, added); at or below /
    ");
}

#[test]
fn changed_counts_renames_with_any_git_configuration() {
    let repository = Repository::layout("a\nb\nc\nd");
    for setting in [
        "diff.renames copies",
        "status.renames copies",
        "status.showUntrackedFiles no",
        "diff.ignoreSubmodules all",
        "core.quotePath true",
        "status.branch true",
        "status.showStash true",
        "status.relativePaths true",
        "diff.mnemonicPrefix true",
        "color.ui always",
        "diff.external false",
    ] {
        repository.git(&format!("config {setting}"));
    }
    repository.git("mv a/main.tf b/a.tf");
    repository.write("/c/new.tf", "");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf (uncommitted, deleted); at or below /
    b  # changed: b/a.tf (uncommitted, added); at or below /
    c  # changed: c/new.tf (untracked); at or below /
    ");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf (deleted); at or below /
    b  # changed: b/a.tf (added); at or below /
    c  # changed: c/new.tf (added); at or below /
    ");
}

#[test]
fn changed_counts_a_copy_only_at_its_target() {
    let repository = Repository::layout("a\nb");
    repository.write("/b/copy.tf", "# a\n");
    repository.commit();
    assert_snapshot!(repository.changed(), @"b  # changed: b/copy.tf (added); at or below /");
}

#[test]
fn changed_counts_a_changed_mode() {
    use std::os::unix::fs::PermissionsExt;
    let repository = Repository::layout("a\nb\nc");
    let executable = |path: &str| {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(repository.path(path), mode).unwrap();
    };
    executable("/a/main.tf");
    repository.commit();
    executable("/b/main.tf");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf; at or below /
    b  # changed: b/main.tf (uncommitted); at or below /
    ");
}

#[test]
fn changed_counts_a_file_that_becomes_a_link() {
    let repository = Repository::layout("a\nb\nc");
    for stack in ["a", "b"] {
        repository.remove(&format!("/{stack}/main.tf"));
        repository.symlink("stack.tm", &format!("/{stack}/main.tf"));
        if stack == "a" {
            repository.commit();
        }
    }
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf (type changed); at or below /
    b  # changed: b/main.tf (uncommitted, type changed); at or below /
    ");
}

#[test]
fn changed_counts_a_link_with_another_target() {
    let sandbox = Sandbox::layout("a\nb\nc");
    for stack in ["a", "b", "c"] {
        sandbox.symlink("old", &format!("/{stack}/link"));
    }
    let repository = Repository::of(sandbox);
    for stack in ["a", "b"] {
        repository.remove(&format!("/{stack}/link"));
        repository.symlink("new", &format!("/{stack}/link"));
        if stack == "a" {
            repository.commit();
        }
    }
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/link; at or below /
    b  # changed: b/link (uncommitted); at or below /
    ");
}

#[test]
fn changed_counts_a_file_that_becomes_a_directory() {
    let repository = Repository::layout("a\nb\nc");
    for stack in ["a", "b"] {
        repository.remove(&format!("/{stack}/main.tf"));
        repository.write(&format!("/{stack}/main.tf/x"), "");
        if stack == "a" {
            repository.commit();
        }
    }
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf (deleted); at or below /
    b  # changed: b/main.tf (uncommitted, deleted); at or below /
    ");
}

#[test]
fn changed_counts_a_directory_that_becomes_a_file() {
    let repository = Repository::new(
        "\
//- /a/stack.tm
stack {}
//- /a/files/x
//- /b/stack.tm
stack {}
//- /b/files/x
//- /c/stack.tm
stack {}
",
    );
    for stack in ["a", "b"] {
        std::fs::remove_dir_all(repository.path(&format!("/{stack}/files"))).unwrap();
        repository.write(&format!("/{stack}/files"), "");
        if stack == "a" {
            repository.commit();
        }
    }
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/files (added); at or below /
    b  # changed: b/files (untracked); at or below /
    ");
}

/// Two branches that change the same line, with `other` checked out.
fn diverged() -> Repository {
    let repository = Repository::layout("a\nb\nc");
    repository.git("checkout -q -b other");
    repository.write("/a/main.tf", "# other\n");
    repository.commit();
    repository.git("checkout -q main");
    repository.write("/a/main.tf", "# main\n");
    repository.write("/b/main.tf", "# main\n");
    repository.commit();
    repository.git("checkout -q other");
    repository
}

#[test]
fn changed_counts_conflicts_of_a_merge() {
    let repository = diverged();
    let (is_success, _) = repository.try_git("/", "merge -q main");
    assert!(!is_success);
    repository.git("tag -f base HEAD");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf (uncommitted, conflicted); at or below /
    b  # changed: b/main.tf (uncommitted); at or below /
    [stderr]
    warning: syntax error
     --> a/main.tf:1:1
      |
    1 | <<<<<<< HEAD
      | ^ unexpected token
      |
      = note: changes of files that it uses go unnoticed
    ");
}

#[test]
fn changed_counts_conflicts_of_a_rebase() {
    let repository = diverged();
    let (is_success, _) = repository.try_git("/", "rebase -q main");
    assert!(!is_success);
    repository.git("tag -f base HEAD");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf (uncommitted, conflicted); at or below /
    [stderr]
    warning: syntax error
     --> a/main.tf:1:1
      |
    1 | <<<<<<< HEAD
      | ^ unexpected token
      |
      = note: changes of files that it uses go unnoticed
    ");
}

#[test]
fn changed_counts_conflicts_with_a_deletion() {
    let repository = Repository::layout("a\nb");
    repository.git("checkout -q -b other");
    repository.git("rm -q a/main.tf");
    repository.write("/b/both.tf", "# other\n");
    repository.commit();
    repository.git("checkout -q main");
    repository.write("/a/main.tf", "# main\n");
    repository.write("/b/both.tf", "# main\n");
    repository.commit();
    let (is_success, _) = repository.try_git("/", "merge -q other");
    assert!(!is_success);
    repository.git("tag -f base HEAD");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf (uncommitted, conflicted); at or below /
    b  # changed: b/both.tf (uncommitted, conflicted); at or below /
    [stderr]
    warning: syntax error
     --> b/both.tf:1:1
      |
    1 | <<<<<<< HEAD
      | ^ unexpected token
      |
      = note: changes of files that it uses go unnoticed
    ");
}

#[test]
fn changed_counts_untracked_files_and_directories() {
    let repository = Repository::layout("a\nb\nc");
    repository.write("/a/new.tf", "");
    repository.write("/b/new/deep/x.tf", "");
    repository.mkdir("/c/empty/deep");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/new.tf (untracked); at or below /
    b  # changed: b/new/deep/x.tf (untracked); at or below /
    ");
}

#[test]
fn changed_counts_an_untracked_stack() {
    let repository = Repository::layout("a");
    repository.write("/new/stack.tm", "stack {}\n");
    assert_snapshot!(repository.changed(), @"new  # changed: new/stack.tm (untracked); at or below /");
}

#[test]
fn changed_skips_files_ignored_by_git() {
    let repository = Repository::new(
        "\
//- /.gitignore
*.log
/a/build/
//- /a/stack.tm
stack {}
//- /b/stack.tm
stack {}
//- /b/.gitignore
cache
!keep.log
//- /c/stack.tm
stack {}
",
    );
    repository.write("/a/x.log", "");
    repository.write("/a/build/x", "");
    repository.write("/b/cache/deep/x", "");
    repository.write("/c/new/x.log", "");
    repository.write("/.git/info/exclude", "excluded\n");
    repository.write("/c/excluded", "");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 7d6fb7c
    ");
    repository.write("/b/keep.log", "");
    repository.write("/c/new/kept", "");
    assert_snapshot!(repository.changed(), @"
    b  # changed: b/keep.log (untracked); at or below /
    c  # changed: c/new/kept (untracked); at or below /
    ");
}

#[test]
fn changed_counts_a_tracked_file_that_is_ignored() {
    let repository = Repository::layout("a");
    repository.write("/.gitignore", "*.tf\n");
    repository.write("/a/main.tf", "# changed\n");
    assert_snapshot!(repository.changed(), @"a  # changed: a/main.tf (uncommitted); at or below /");
}

#[test]
fn changed_counts_an_untracked_repository_once() {
    let repository = Repository::layout("a\nb");
    repository.write("/a/vendor/x.tf", "");
    repository.git_init_at("/a/vendor");
    assert_snapshot!(repository.changed(), @"a  # changed: a/vendor (untracked, submodule); at or below /");
    repository.git_in("/a/vendor", "add x.tf");
    repository.git_in("/a/vendor", "commit -q -m x");
    assert_snapshot!(repository.changed(), @"a  # changed: a/vendor (untracked, submodule); at or below /");
}

#[test]
fn changed_respects_assume_unchanged() {
    let repository = Repository::layout("a\nb");
    repository.git("update-index --assume-unchanged a/main.tf");
    repository.write("/a/main.tf", "# changed\n");
    repository.git("update-index --skip-worktree b/main.tf");
    repository.write("/b/main.tf", "# changed\n");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 7063b5e
    ");
}

#[test]
fn changed_skips_a_file_with_only_a_new_time() {
    let repository = Repository::layout("a");
    let file = std::fs::File::open(repository.path("/a/main.tf")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 6e0c8e1
    ");
}

#[test]
fn changed_skips_a_filtered_file_with_only_a_new_time() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/.gitattributes",
        "*.bin filter=caps\n*.txt text eol=crlf\n*.utf16 working-tree-encoding=UTF-16LE\n",
    );
    sandbox.git_init();
    let repository = Repository::of(sandbox);
    repository.git("config filter.caps.clean 'tr a-z A-Z'");
    repository.git("config filter.caps.smudge 'tr A-Z a-z'");
    repository.write("/a/x.bin", "text\n");
    repository.write("/a/x.txt", "text\r\n");
    repository.write("/a/x.utf16", b"t\0e\0x\0t\0");
    repository.commit();
    repository.git("tag -f base");
    for name in ["bin", "txt", "utf16"] {
        let file = std::fs::File::open(repository.path(&format!("/a/x.{name}"))).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since da44d7c
    ");
}
