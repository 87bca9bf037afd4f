//! Which changes of files count, and which stacks they concern.

use insta::assert_snapshot;

use crate::support::{Repository, Sandbox};

#[test]
fn nothing_has_changed() {
    let repository = Repository::layout("a");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 6e0c8e1
    ");
}

#[test]
fn a_commit_since_the_base_counts() {
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
fn what_is_staged_counts() {
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
fn what_is_not_staged_counts() {
    let repository = Repository::layout("a\nb\nc\nd");
    repository.write("/a/main.tf", "# changed\n");
    repository.remove("/c/main.tf");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/main.tf (uncommitted); at or below /
    c  # changed: c/main.tf (uncommitted, deleted); at or below /
    ");
}

#[test]
fn what_is_staged_and_undone_in_the_working_tree_counts() {
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
fn a_file_that_git_shall_forget_counts_though_it_stays() {
    let repository = Repository::layout("a\nb");
    repository.git("rm -q --cached a/main.tf");
    assert_snapshot!(repository.changed(), @"a  # changed: a/main.tf (uncommitted, deleted); at or below /");
}

#[test]
fn a_file_that_is_announced_with_intent_to_add_counts() {
    let repository = Repository::layout("a\nb");
    repository.write("/a/new.tf", "# new\n");
    repository.git("add --intent-to-add a/new.tf");
    assert_snapshot!(repository.changed(), @"a  # changed: a/new.tf (uncommitted, added); at or below /");
}

#[test]
fn a_renamed_file_counts_on_both_sides() {
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
fn renames_count_on_both_sides_whatever_git_is_configured_to_show() {
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
fn a_copy_concerns_only_the_place_it_goes_to() {
    let repository = Repository::layout("a\nb");
    repository.write("/b/copy.tf", "# a\n");
    repository.commit();
    assert_snapshot!(repository.changed(), @"b  # changed: b/copy.tf (added); at or below /");
}

#[test]
fn a_changed_mode_counts() {
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
fn a_file_that_becomes_a_link_counts() {
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
fn a_link_with_another_target_counts() {
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
fn a_file_that_becomes_a_directory_counts() {
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
fn a_directory_that_becomes_a_file_counts() {
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
fn conflicts_of_a_merge_count() {
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
      = note: changes of what this file uses cannot be seen
    ");
}

#[test]
fn conflicts_of_a_rebase_count() {
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
      = note: changes of what this file uses cannot be seen
    ");
}

#[test]
fn conflicts_with_a_deletion_count() {
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
      = note: changes of what this file uses cannot be seen
    ");
}

#[test]
fn untracked_files_and_directories_count() {
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
fn an_untracked_stack_counts() {
    let repository = Repository::layout("a");
    repository.write("/new/stack.tm", "stack {}\n");
    assert_snapshot!(repository.changed(), @"new  # changed: new/stack.tm (untracked); at or below /");
}

#[test]
fn what_git_ignores_does_not_count() {
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
fn an_ignored_file_that_git_knows_counts() {
    let repository = Repository::layout("a");
    repository.write("/.gitignore", "*.tf\n");
    repository.write("/a/main.tf", "# changed\n");
    assert_snapshot!(repository.changed(), @"a  # changed: a/main.tf (uncommitted); at or below /");
}

#[test]
fn an_untracked_repository_is_one_change() {
    let repository = Repository::layout("a\nb");
    repository.write("/a/vendor/x.tf", "");
    repository.git_init_at("/a/vendor");
    assert_snapshot!(repository.changed(), @"a  # changed: a/vendor (untracked, submodule); at or below /");
    repository.git_in("/a/vendor", "add x.tf");
    repository.git_in("/a/vendor", "commit -q -m x");
    assert_snapshot!(repository.changed(), @"a  # changed: a/vendor (untracked, submodule); at or below /");
}

#[test]
fn what_git_shall_assume_unchanged_is_unchanged() {
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
fn a_file_that_is_only_touched_has_not_changed() {
    let repository = Repository::layout("a");
    let file = std::fs::File::open(repository.path("/a/main.tf")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 6e0c8e1
    ");
}

#[test]
fn a_file_that_git_filters_has_not_changed_when_it_is_touched() {
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
fn a_submodule_that_stays_has_not_changed() {
    assert_snapshot!(with_submodule().changed(), @"
    [stderr]
    note: no stack has changed since 9c50cb5
    ");
}

#[test]
fn a_submodule_at_another_commit_is_one_change() {
    let repository = with_submodule();
    repository.write("/a/sub/x.tf", "# changed\n");
    repository.git_in("/a/sub", "commit -q -a -m two");
    assert_snapshot!(repository.changed(), @"a  # changed: a/sub (uncommitted, submodule); at or below /");
    repository.commit();
    assert_snapshot!(repository.changed(), @"a  # changed: a/sub (submodule); at or below /");
}

#[test]
fn a_submodule_with_changes_inside_is_one_change() {
    let repository = with_submodule();
    repository.write("/a/sub/x.tf", "# changed\n");
    assert_snapshot!(repository.changed(), @"a  # changed: a/sub (uncommitted, submodule); at or below /");
}

#[test]
fn a_submodule_with_untracked_files_is_one_change() {
    let repository = with_submodule();
    repository.write("/a/sub/new.tf", "# changed\n");
    assert_snapshot!(repository.changed(), @"a  # changed: a/sub (uncommitted, submodule); at or below /");
}

#[test]
fn a_submodule_that_is_not_checked_out_has_not_changed() {
    let repository = with_submodule();
    repository.git("submodule --quiet deinit a/sub");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 9c50cb5
    ");
}

#[test]
fn a_submodule_that_comes_or_goes_is_one_change() {
    let repository = with_submodule();
    repository.git("rm -q a/sub");
    assert_snapshot!(repository.changed(), @"a  # changed: a/sub (uncommitted, submodule); at or below /");
    repository.git("reset -q --hard");
    repository.git("tag -f base HEAD~");
    assert_snapshot!(repository.changed(), @"a  # changed: a/sub (submodule); at or below /");
}

#[test]
fn a_submodule_counts_whatever_git_is_told_to_ignore() {
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
fn stacks_in_a_submodule_change_with_it() {
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

#[test]
fn neighbours_with_similar_names_do_not_change() {
    let repository = Repository::layout("a\nab\na-b\na.b\nA");
    repository.write("/a/x.tf", "");
    assert_snapshot!(repository.changed(), @"a  # changed: a/x.tf (untracked); at or below /");
    repository.write("/a-b/x.tf", "");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/x.tf (added); at or below /
    a-b  # changed: a-b/x.tf (added); at or below /
    ");
}

#[test]
fn only_the_nearest_stack_changes() {
    let repository = Repository::layout("/\na\na/b/c\na/b/c-d");
    repository.write("/a/b/c/deep/x.tf", "");
    assert_snapshot!(repository.changed(), @"a/b/c  # changed: a/b/c/deep/x.tf (untracked); at or below /");
    repository.write("/a/b/x.tf", "");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/b/x.tf (untracked); at or below /
    a/b/c  # changed: a/b/c/deep/x.tf (untracked); at or below /
    ");
    repository.write("/x.tf", "");
    assert_snapshot!(repository.changed(), @"
    .  # changed: x.tf (untracked); at or below /
    a  # changed: a/b/x.tf (untracked); at or below /
    a/b/c  # changed: a/b/c/deep/x.tf (untracked); at or below /
    ");
}

#[test]
fn hidden_and_skipped_files_of_a_stack_count() {
    let repository = Repository::layout("a\nb\nc\nd\ne");
    repository.write("/a/.hidden", "");
    repository.write("/b/.github/deep/x.yml", "");
    repository.write("/c/skipped/.tmskip", "");
    repository.write("/d/node_modules/x.js", "");
    repository.write("/e/README", "");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/.hidden (untracked); at or below /
    b  # changed: b/.github/deep/x.yml (untracked); at or below /
    c  # changed: c/skipped/.tmskip (untracked); at or below /
    d  # changed: d/node_modules/x.js (untracked); at or below /
    e  # changed: e/README (untracked); at or below /
    ");
}

#[test]
fn a_file_in_no_stack_selects_nothing() {
    let repository = Repository::layout("a\nb");
    repository.write("/x.tf", "");
    repository.write("/modules/m/x.tf", "");
    repository.write("/more.orch.hcl", "globals {}\n");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 7063b5e
    ");
}

#[test]
fn names_that_a_file_system_allows_are_shown_and_kept() {
    let mut names = vec![
        "a b",
        "-x",
        "q'uo\"te",
        "new\nline",
        "tab\tname",
        "back\\slash",
        "*",
        "\u{e9}",
        "\u{1b}[31m",
        "[x]",
        "#",
        "a\u{202e}b",
    ];
    let long = "l".repeat(200);
    names.push(&long);
    for is_committed in [false, true] {
        let repository = Repository::layout("none");
        for index in 0..names.len() {
            repository.write(&format!("/s{index:02}/stack.tm"), "stack {}\n");
        }
        repository.commit();
        repository.git("tag -f base");
        for (index, name) in names.iter().enumerate() {
            repository.write(&format!("/s{index:02}/{name}"), "");
        }
        if is_committed {
            repository.commit();
        } else {
            assert_snapshot!(repository.changed(), @r#"
            s00  # changed: s00/a b (untracked); at or below /
            s01  # changed: s01/-x (untracked); at or below /
            s02  # changed: s02/q'uo"te (untracked); at or below /
            s03  # changed: s03/new\nline (untracked); at or below /
            s04  # changed: s04/tab\tname (untracked); at or below /
            s05  # changed: s05/back\slash (untracked); at or below /
            s06  # changed: s06/* (untracked); at or below /
            s07  # changed: s07/é (untracked); at or below /
            s08  # changed: s08/\u{1b}[31m (untracked); at or below /
            s09  # changed: s09/[x] (untracked); at or below /
            s10  # changed: s10/# (untracked); at or below /
            s11  # changed: s11/a\u{202e}b (untracked); at or below /
            s12  # changed: s12/llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll (untracked); at or below /
            "#);
        }
        let list = repository.list("--format json").json();
        let files: Vec<String> = list["stacks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|stack| {
                let file = stack["reasons"][0]["file"].as_str().unwrap();
                file.split_once('/').unwrap().1.to_owned()
            })
            .collect();
        assert_eq!(files, names);
    }
}

#[test]
fn stacks_have_names_that_a_file_system_allows() {
    let repository = Repository::layout("none");
    for name in [
        "a b",
        "-x",
        "q'uo\"te",
        "new\nline",
        "back\\slash",
        "*",
        "[x]",
        "é",
    ] {
        repository.write(&format!("/{name}/stack.tm"), "stack {}\n");
        repository.write(&format!("/gone/{name}/stack.tm"), "stack {}\n");
    }
    repository.commit();
    repository.git("tag -f base");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 29d488a
    ");
    for name in [
        "a b",
        "-x",
        "q'uo\"te",
        "new\nline",
        "back\\slash",
        "*",
        "[x]",
        "é",
    ] {
        repository.write(&format!("/{name}/x"), "");
        repository.remove(&format!("/gone/{name}/stack.tm"));
    }
    assert_snapshot!(repository.changed(), @r#"
    *  # changed: */x (untracked); at or below /
    -x  # changed: -x/x (untracked); at or below /
    [x]  # changed: [x]/x (untracked); at or below /
    a b  # changed: a b/x (untracked); at or below /
    back\slash  # changed: back\slash/x (untracked); at or below /
    new\nline  # changed: new\nline/x (untracked); at or below /
    q'uo"te  # changed: q'uo"te/x (untracked); at or below /
    é  # changed: é/x (untracked); at or below /
    [stderr]
    note: stack `/gone/*` was removed since the base; nothing is run for it
    note: stack `/gone/-x` was removed since the base; nothing is run for it
    note: stack `/gone/[x]` was removed since the base; nothing is run for it
    note: stack `/gone/a b` was removed since the base; nothing is run for it
    note: stack `/gone/back\slash` was removed since the base; nothing is run for it
    note: stack `/gone/new\nline` was removed since the base; nothing is run for it
    note: stack `/gone/q'uo"te` was removed since the base; nothing is run for it
    note: stack `/gone/é` was removed since the base; nothing is run for it
    "#);
}

#[cfg(target_os = "linux")]
#[test]
fn names_are_compared_byte_by_byte() {
    let repository = Repository::layout("e\u{301}\n\u{e9}\ngone/e\u{301}\ngone/\u{e9}");
    repository.write("/e\u{301}/x", "");
    repository.git("rm -q -r gone/e\u{301}");
    let output = repository.changed();
    let expected = "e\u{301}  # changed: e\u{301}/x (untracked); at or below /\n";
    assert_eq!(output.stdout, expected);
    assert!(
        output.stderr.contains("`/gone/e\u{301}` was removed"),
        "{output}"
    );
    assert_eq!(output.stderr.lines().count(), 1, "{output}");
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_no_text_count() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let repository = Repository::layout("a\nb\nc\nd");
    let odd = |name: &[u8]| repository.path("/").join(OsStr::from_bytes(name));
    std::fs::create_dir(odd(b"b/\xff")).unwrap();
    std::fs::write(odd(b"b/\xff/x"), "").unwrap();
    repository.commit();
    repository.git("tag -f base");
    std::fs::write(odd(b"a/\xfe\xff"), "").unwrap();
    std::fs::write(odd(b"b/\xff/x"), "# changed\n").unwrap();
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/�� (untracked); at or below /
    b  # changed: b/�/x (uncommitted); at or below /
    ");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/�� (added); at or below /
    b  # changed: b/�/x; at or below /
    ");
}

#[cfg(target_os = "linux")]
#[test]
fn what_was_no_text_in_the_base_was_no_stack() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let repository = Repository::layout("a\nb");
    let odd = |name: &[u8]| repository.path("/").join(OsStr::from_bytes(name));
    std::fs::create_dir(odd(b"odd\xff")).unwrap();
    std::fs::write(odd(b"odd\xff/stack.tm"), "stack {}\n").unwrap();
    std::fs::write(odd(b"a/\xff.tm"), "globals {}\n").unwrap();
    repository.write("/b/more.tm", "globals {}\n");
    repository.commit();
    repository.git("tag -f base");
    std::fs::remove_dir_all(odd(b"odd\xff")).unwrap();
    std::fs::remove_file(odd(b"a/\xff.tm")).unwrap();
    std::fs::remove_dir_all(repository.path("/b")).unwrap();
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/�.tm (uncommitted, deleted); at or below /
    [stderr]
    note: stack `/b` was removed since the base; nothing is run for it
    ");
}

#[test]
fn two_thousand_files_change_at_once() {
    let repository = Repository::layout("a\nb");
    for number in 0..1000 {
        repository.write(&format!("/a/{number}.tf"), "");
    }
    repository.commit();
    for number in 0..1000 {
        repository.write(&format!("/b/dir{}/{number}.tf", number % 10), "");
    }
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/0.tf (added); at or below /
    b  # changed: b/dir0/0.tf (untracked); at or below /
    ");
}

/// A project with a change of each state, in a stack named after it.
fn of_each_state() -> Repository {
    let repository = Repository::layout("committed\nstaged\nunstaged\nuntracked\nnone");
    repository.write("/committed/main.tf", "# changed\n");
    repository.commit();
    repository.write("/staged/main.tf", "# changed\n");
    repository.git("add -A");
    repository.write("/unstaged/main.tf", "# changed\n");
    repository.write("/untracked/new.tf", "");
    repository
}

#[test]
fn what_is_not_committed_can_be_left_out_on_the_command_line() {
    let repository = of_each_state();
    assert_snapshot!(repository.changed(), @"
    committed  # changed: committed/main.tf; at or below /
    staged  # changed: staged/main.tf (uncommitted); at or below /
    unstaged  # changed: unstaged/main.tf (uncommitted); at or below /
    untracked  # changed: untracked/new.tf (untracked); at or below /
    ");
    assert_snapshot!(repository.list("--disable-change-detection git-untracked"), @"
    committed  # changed: committed/main.tf; at or below /
    staged  # changed: staged/main.tf (uncommitted); at or below /
    unstaged  # changed: unstaged/main.tf (uncommitted); at or below /
    ");
    assert_snapshot!(repository.list("--disable-change-detection=git-uncommitted"), @"
    committed  # changed: committed/main.tf; at or below /
    untracked  # changed: untracked/new.tf (untracked); at or below /
    ");
    assert_snapshot!(repository.list("--disable-change-detection git-untracked,git-uncommitted"), @"committed  # changed: committed/main.tf; at or below /");
}

#[test]
fn what_is_not_committed_can_be_left_out_by_the_configuration() {
    let repository = of_each_state();
    let configure = |untracked: &str, uncommitted: &str| {
        repository.write(
            "/root.orch.hcl",
            format!(
                "
orch {{
  root = true
  config {{
    change_detection {{
      git {{
        untracked = {untracked}
        uncommitted = {uncommitted}
      }}
    }}
  }}
}}
"
            ),
        );
    };
    configure("\"off\"", "\"on\"");
    assert_snapshot!(repository.list(""), @"
    committed  # changed: committed/main.tf; at or below /
    staged  # changed: staged/main.tf (uncommitted); at or below /
    unstaged  # changed: unstaged/main.tf (uncommitted); at or below /
    ");
    configure("true", "false");
    assert_snapshot!(repository.list(""), @"
    committed  # changed: committed/main.tf; at or below /
    untracked  # changed: untracked/new.tf (untracked); at or below /
    ");
    configure("false", "\"off\"");
    assert_snapshot!(repository.list(""), @"committed  # changed: committed/main.tf; at or below /");
    assert_snapshot!(repository.list("--enable-change-detection git-untracked"), @"
    committed  # changed: committed/main.tf; at or below /
    untracked  # changed: untracked/new.tf (untracked); at or below /
    ");
    assert_snapshot!(repository.list("--enable-change-detection git-untracked --enable-change-detection git-uncommitted"), @"
    committed  # changed: committed/main.tf; at or below /
    staged  # changed: staged/main.tf (uncommitted); at or below /
    unstaged  # changed: unstaged/main.tf (uncommitted); at or below /
    untracked  # changed: untracked/new.tf (untracked); at or below /
    ");
    configure("true", "true");
    assert_snapshot!(repository.list("--disable-change-detection git-untracked,git-uncommitted"), @"committed  # changed: committed/main.tf; at or below /");
}

#[test]
fn what_is_switched_on_and_off_is_a_wrong_command_line() {
    let repository = Repository::layout("a");
    assert_snapshot!(repository.orch("list --changed --enable-change-detection git-untracked --disable-change-detection git-untracked"), @"
    [stderr]
    error: `git-untracked` is in --enable-change-detection and in --disable-change-detection
    [exit status 64]
    ");
    assert_snapshot!(repository.orch("list --changed --enable-change-detection git-untracked --disable-change-detection git-uncommitted,git-untracked"), @"
    [stderr]
    error: `git-untracked` is in --enable-change-detection and in --disable-change-detection
    [exit status 64]
    ");
    assert_snapshot!(repository.orch("list --changed --disable-change-detection untracked"), @"
    [stderr]
    error: invalid value 'untracked' for '--disable-change-detection <WHAT,…>'
      [possible values: git-untracked, git-uncommitted]

      tip: a similar value exists: 'git-untracked'

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(repository.orch("list --disable-change-detection git-untracked"), @"
    [stderr]
    error: `--disable-change-detection` changes nothing without `--changed`; add `--changed`
    [exit status 64]
    ");
}

#[test]
fn reasons_are_data_too() {
    let repository = Repository::new(
        "\
//- /shared.tf
//- /own/stack.tm
stack {}
//- /watching/stack.tm
stack {
  watch = [\"/shared.tf\"]
}
//- /importing/stack.tm
stack {}
import {
  source = \"/common/c.tm.hcl\"
}
//- /common/c.tm.hcl
globals {}
",
    );
    repository.write("/own/x.tf", "");
    repository.write("/shared.tf", "# changed\n");
    repository.commit();
    repository.write("/common/c.tm.hcl", "globals {\n}\n");
    let list = repository.list("--format json").json();
    let reasons: Vec<_> = list["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stack| &stack["reasons"])
        .collect();
    assert_snapshot!(serde_json::to_string_pretty(&reasons).unwrap(), @r#"
    [
      [
        {
          "change": "modified",
          "detail": "changed: common/c.tm.hcl (uncommitted), imported (importing/stack.tm:3)",
          "file": "common/c.tm.hcl",
          "kind": "changed",
          "rule": "import",
          "state": "uncommitted",
          "via": [
            {
              "detail": "imported (importing/stack.tm:3)",
              "file": "importing/stack.tm",
              "kind": "import",
              "line": 3
            }
          ]
        },
        {
          "detail": "at or below /",
          "kind": "directory"
        }
      ],
      [
        {
          "change": "added",
          "detail": "changed: own/x.tf (added)",
          "file": "own/x.tf",
          "kind": "changed",
          "rule": "own",
          "state": "committed",
          "via": []
        },
        {
          "detail": "at or below /",
          "kind": "directory"
        }
      ],
      [
        {
          "change": "modified",
          "detail": "changed: shared.tf, watched (watching/stack.tm:2)",
          "file": "shared.tf",
          "kind": "changed",
          "rule": "watch",
          "state": "committed",
          "via": [
            {
              "detail": "watched (watching/stack.tm:2)",
              "file": "watching/stack.tm",
              "kind": "watch",
              "line": 2
            }
          ]
        },
        {
          "detail": "at or below /",
          "kind": "directory"
        }
      ]
    ]
    "#);
    assert_eq!(list["base"]["rule"], "named");
    assert_eq!(list["removed"], serde_json::json!([]));
}

#[test]
fn changes_are_one_filter_among_others() {
    let repository = Repository::layout("a [x]\na/b [y] wants /c\nc\nd [x]\ne wanted_by /a/b");
    repository.write("/a/new.tf", "");
    repository.write("/a/b/new.tf", "");
    repository.write("/d/new.tf", "");
    assert_snapshot!(repository.list(""), @"
    a  # changed: a/new.tf (untracked); at or below /
    a/b  # changed: a/b/new.tf (untracked); at or below /
    c  # wanted by /a/b (a/b/stack.tm:3)
    d  # changed: d/new.tf (untracked); at or below /
    e  # names /a/b in `wanted_by` (e/stack.tm:2)
    ");
    assert_snapshot!(repository.list("--tags x"), @"
    a  # changed: a/new.tf (untracked); at or below /; matches --tags x
    d  # changed: d/new.tf (untracked); at or below /; matches --tags x
    ");
    assert_snapshot!(repository.list("--no-tags x"), @"
    a/b  # changed: a/b/new.tf (untracked); at or below /
    c  # wanted by /a/b (a/b/stack.tm:3)
    e  # names /a/b in `wanted_by` (e/stack.tm:2)
    ");
    assert_snapshot!(repository.list("-C a"), @"
    .  # changed: a/new.tf (untracked); at or below /a
    b  # changed: a/b/new.tf (untracked); at or below /a
    ../c  # wanted by /a/b (a/b/stack.tm:3)
    ../e  # names /a/b in `wanted_by` (e/stack.tm:2)
    ");
    assert_snapshot!(repository.list("-C a --no-recursive"), @".  # changed: a/new.tf (untracked); the stack at /a");
}

#[test]
fn nothing_to_do_is_explained() {
    let repository = Repository::layout("a [x]\na/b\nc");
    assert_snapshot!(repository.list(""), @"
    [stderr]
    note: no stack has changed since a09be9b
    ");
    repository.write("/a/b/new.tf", "");
    assert_snapshot!(repository.list("-C c"), @"
    [stderr]
    note: 1 stack has changed since a09be9b, but none at or below `/c`
    ");
    assert_snapshot!(repository.list("--tags x"), @"
    [stderr]
    note: 1 stack has changed since a09be9b, but none at or below `/` passes the tag filters
    ");
    assert_snapshot!(repository.list("-C a --no-recursive"), @"
    [stderr]
    note: 1 stack has changed since a09be9b, but none at `/a`
    ");
    repository.write("/a/new.tf", "");
    assert_snapshot!(repository.list("-C c"), @"
    [stderr]
    note: 2 stacks have changed since a09be9b, but none at or below `/c`
    ");
}

#[test]
fn run_acts_on_what_list_shows() {
    let repository = Repository::layout("a after /b\nb\nc wants /d after /d\nd\ne");
    repository.write("/a/new.tf", "");
    repository.write("/b/new.tf", "");
    repository.write("/c/new.tf", "");
    let list = repository.orch("list --changed --base base --order").stdout;
    assert_eq!(list, "b\na\nd\nc\n");
    let run = repository
        .orch("run -X --quiet --changed --base base -- sh -c 'echo ${ORCH_STACK_PATH#/}'")
        .stdout;
    assert_eq!(run, list);
}

#[test]
fn a_run_without_changes_runs_nothing() {
    let repository = Repository::layout("a");
    assert_snapshot!(repository.orch("run --changed --base HEAD false"), @"
    [stderr]
    base 6e0c8e1: --base HEAD, which is HEAD itself
    note: no stack has changed since 6e0c8e1
    ");
}

#[test]
fn changes_are_the_same_from_every_directory() {
    let repository = Repository::layout("a\na/b\nc");
    repository.write("/a/b/new.tf", "");
    repository.write("/c/new.tf", "");
    repository.mkdir("/a/b/deep");
    assert_snapshot!(repository.orch_in("/a", "list --changed --base base --why"), @"
    b  # changed: a/b/new.tf (untracked); at or below /a
    [stderr]
    base 0b8ccbf: --base base, which is HEAD itself
    ");
    assert_snapshot!(repository.orch_in("/a/b/deep", "list --changed --base base --why -C ../.."), @"
    b  # changed: a/b/new.tf (untracked); at or below /a
    [stderr]
    base 0b8ccbf: --base base, which is HEAD itself
    ");
}

#[test]
fn what_has_changed_goes_together_with_all_other_flags() {
    let repository = Repository::layout(
        "a [x] wants /d
        b after /a
        c [x] after /b
        d
        e",
    );
    repository.write("/a/x", "");
    repository.write("/c/x", "");
    repository.write("/names", "a\ne\n");
    let list = |flags: &str| {
        let output = repository.list(flags);
        assert_eq!(output.code(), 0, "{output}");
        let paths = output
            .stdout
            .lines()
            .map(|line| line.split_once(' ').unwrap().0);
        paths.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(list(""), "a c d");
    assert_eq!(list("--match a"), "a d");
    assert_eq!(list("--exclude a"), "c");
    assert_eq!(list("--exclude d"), "a c");
    assert_eq!(list("--stacks-from names"), "a d");
    assert_eq!(list("--match b"), "");
    assert_eq!(list("--match a --include-dependents=1"), "a b d");
    assert_eq!(list("--match a --include-dependents"), "a b c d");
    assert_eq!(list("--match a --only-dependents"), "b c");
    assert_eq!(list("--only-direct-dependencies"), "b");
    assert_eq!(list("--exclude-dependents"), "a d");
    assert_eq!(list("--exclude-dependencies"), "c d");
    assert_eq!(
        list("-C a --no-recursive --include-dependents=1"),
        ". ../b ../d"
    );
    assert_snapshot!(repository.list("--match c --include-dependencies"), @"
    a  # runs before /b, after b/stack.tm:2 (--include-dependencies)
    b  # runs before /c, after c/stack.tm:3 (--include-dependencies)
    c  # changed: c/x (untracked); at or below /; matches --match c
    d  # wanted by /a (a/stack.tm:3)
    ");
    assert_snapshot!(repository.list("--match b --tags x"), @"
    [stderr]
    note: 2 stacks have changed since 8701c1a, but none at or below `/` passes --match and the tag filters
    ");
    assert_snapshot!(repository.list("--match e --only-dependents"), @"
    [stderr]
    note: 2 stacks have changed since 8701c1a, but none at or below `/` passes --match
    ");
    assert_snapshot!(repository.list("--match c --only-dependents"), @"
    [stderr]
    note: 1 stack would be selected, but `--only-dependents` leaves none
    ");
}
