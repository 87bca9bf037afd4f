//! Commits that are checked out in `.orch`: those that killed processes have left are removed, others are not.

use std::fs::{self, File};

use crate::support::Repository;

use super::project;

/// Where a process checks out commits.
const FOLDER: &str = ".orch/worktrees/orch-left";

/// A repository with a checkout that a process has made which runs no more.
fn left() -> Repository {
    let sandbox = project(&[("a", "exit 0")]);
    let state = "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";
    sandbox.write("/state.orch.hcl", state);
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("state init").code(), 0);
    repository.write(&format!("{FOLDER}/in-use"), "");
    repository.git(&format!("worktree add -q --detach {FOLDER}/commit"));
    repository
}

/// Plans, and returns what git knows of checkouts then: the last part of each path.
#[track_caller]
fn after_a_plan(repository: &Repository) -> Vec<String> {
    let planned = repository.orch("plan");
    assert_eq!(planned.code(), 0, "{planned}");
    let list = repository.git("worktree list --porcelain");
    let paths = list
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "));
    let names = paths.filter_map(|path| path.rsplit('/').next());
    names.map(str::to_owned).collect()
}

#[track_caller]
fn nothing_is_left_of(repository: &Repository) {
    assert_eq!(after_a_plan(repository), ["project"]);
    let place = repository.path(FOLDER);
    assert!(!place.exists(), "{}", place.display());
    let known = repository.path(".git/worktrees");
    assert!(!known.exists(), "{}", known.display());
}

#[test]
fn plan_removes_checkouts_of_killed_processes() {
    nothing_is_left_of(&left());
}

#[test]
fn plan_removes_incomplete_checkouts() {
    let repository = left();
    // As git leaves it if it is killed before it writes `.git`.
    fs::remove_file(repository.path(&format!("{FOLDER}/commit/.git"))).unwrap();
    repository.write(".git/worktrees/commit/locked", "initializing\n");
    nothing_is_left_of(&repository);
}

#[test]
fn plan_removes_partially_removed_checkouts() {
    let repository = left();
    // As git leaves it if it is killed after it has removed the directory.
    fs::remove_dir_all(repository.path(&format!("{FOLDER}/commit"))).unwrap();
    nothing_is_left_of(&repository);
}

#[test]
fn plan_keeps_checkouts_in_use() {
    let repository = left();
    let in_use = File::open(repository.path(&format!("{FOLDER}/in-use"))).unwrap();
    in_use.lock().unwrap();
    assert_eq!(after_a_plan(&repository), ["project", "commit"]);
    drop(in_use);
    nothing_is_left_of(&repository);
}

#[test]
fn plan_keeps_worktrees_of_the_user() {
    let repository = left();
    repository.git("worktree add -q --detach ../missing");
    fs::remove_dir_all(repository.outside().join("missing")).unwrap();
    repository.git("worktree add -q --detach .orch/worktrees/own");
    assert_eq!(after_a_plan(&repository), ["project", "missing", "own"]);
}
