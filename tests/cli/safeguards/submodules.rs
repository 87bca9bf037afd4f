//! Repositories inside of the repository.

use super::verdict;
use crate::support::{Repository, Sandbox};

/// A repository with a submodule `sub`, which lies in the stack at the root.
fn with_submodule() -> Repository {
    let repository = Repository::layout("/");
    let library = repository.outside().join("library");
    std::fs::create_dir(&library).unwrap();
    std::fs::write(library.join("x"), "").unwrap();
    repository.git_in(&library, "init -q -b main");
    repository.git_in(&library, "add x");
    repository.git_in(&library, "commit -q -m library");
    repository.git("submodule add -q ../library sub");
    repository.commit();
    repository
}

const OBJECTION: &str = "git-uncommitted: sub (submodule)\n";

#[test]
fn run_allows_an_unchanged_submodule() {
    let repository = with_submodule();
    assert_eq!(verdict(&repository), "");
}

#[test]
fn run_refuses_a_submodule_with_changes() {
    let repository = with_submodule();
    repository.write("/sub/x", "changed");
    assert_eq!(verdict(&repository), OBJECTION);
    repository.git_in("/sub", "add x");
    assert_eq!(verdict(&repository), OBJECTION, "staged");
}

#[test]
fn run_refuses_a_submodule_with_new_files() {
    let repository = with_submodule();
    repository.write("/sub/new", "");
    assert_eq!(verdict(&repository), OBJECTION);
}

#[test]
fn run_refuses_a_submodule_at_another_commit() {
    let repository = with_submodule();
    repository.git_in("/sub", "commit -q --allow-empty -m other");
    assert_eq!(verdict(&repository), OBJECTION);
    repository.git("add sub");
    assert_eq!(verdict(&repository), OBJECTION, "staged");
    repository.git("commit -q -m moved");
    assert_eq!(verdict(&repository), "");
}

/// Whatever says that git is not to look at the submodule, the safeguard does.
#[track_caller]
fn assert_is_seen(tell: impl Fn(&Repository)) {
    let repository = with_submodule();
    tell(&repository);
    assert_eq!(verdict(&repository), "", "as committed");
    repository.write("/sub/new", "");
    assert_eq!(verdict(&repository), OBJECTION, "new file");
    repository.git_in("/sub", "add new");
    assert_eq!(verdict(&repository), OBJECTION, "staged inside");
    repository.git_in("/sub", "commit -q -m new");
    assert_eq!(verdict(&repository), OBJECTION, "at another commit");
    repository.git("-c diff.ignoreSubmodules=none add --force sub");
    assert_eq!(verdict(&repository), OBJECTION, "staged");
    repository.git("submodule deinit -q -f sub");
    repository.git("reset -q --hard");
    assert_eq!(verdict(&repository), "", "not checked out");
}

#[test]
fn run_checks_a_submodule_that_git_is_configured_to_ignore() {
    assert_is_seen(|repository| _ = repository.git("config submodule.sub.ignore all"));
    assert_is_seen(|repository| _ = repository.git("config submodule.sub.ignore dirty"));
}

#[test]
fn submodules_that_git_is_configured_to_ignore() {
    assert_is_seen(|repository| _ = repository.git("config diff.ignoreSubmodules all"));
}

#[test]
fn run_checks_a_submodule_that_gitmodules_ignores() {
    assert_is_seen(|repository| {
        repository.git("config -f .gitmodules submodule.sub.ignore all");
        repository.commit();
    });
}

#[test]
fn run_checks_a_committed_repository_that_is_no_submodule() {
    let repository = Repository::layout("/");
    repository.git("init -q sub");
    repository.git_in("/sub", "commit -q --allow-empty -m one");
    repository.commit();
    repository.git("config diff.ignoreSubmodules all");
    assert_eq!(verdict(&repository), "");
    repository.git_in("/sub", "commit -q --allow-empty -m two");
    assert_eq!(verdict(&repository), OBJECTION);
}

#[test]
fn run_refuses_an_added_submodule() {
    let repository = with_submodule();
    repository.git("submodule add -q ../library other");
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: .gitmodules (modified), other (submodule)\n"
    );
}

#[test]
fn run_allows_a_submodule_that_is_not_checked_out() {
    let repository = with_submodule();
    repository.git("submodule deinit -q -f sub");
    assert_eq!(verdict(&repository), "");
}

#[test]
fn run_in_a_submodule_checks_the_submodule() {
    let repository = with_submodule();
    repository.write("/sub/root.orch.hcl", "orch { root = true }\n");
    repository.write("/sub/s/stack.tm", "stack {}\n");
    repository.git_in("/sub", "add -A");
    repository.git_in("/sub", "commit -q -m stack");
    repository.write("/new", "");
    assert_eq!(super::verdict_at(&repository, "/sub"), "");
    repository.write("/sub/new", "");
    assert_eq!(
        super::verdict_at(&repository, "/sub"),
        "git-untracked: new\n"
    );
}

#[test]
fn run_refuses_an_untracked_repository() {
    let repository = Repository::layout("a");
    repository.git("init -q a/nested");
    repository.write("/a/nested/x", "");
    assert_eq!(
        verdict(&repository),
        "git-untracked: a/nested (repository)\n"
    );
    repository.write("/a/.gitignore", "nested/\n");
    repository.commit();
    assert_eq!(verdict(&repository), "");
}

#[cfg(unix)]
#[test]
fn submodules_that_cannot_be_looked_for_may_be_missing() {
    let sandbox = Sandbox::layout("a");
    sandbox.git_init();
    sandbox.symlink(".gitmodules", "/.gitmodules");
    let output = sandbox.orch("list");
    let note = "note: failed to look for submodules, so stacks may be missing: `$ROOT/.gitmodules` cannot be read";
    assert!(output.stderr.starts_with(note), "{output}");
}
