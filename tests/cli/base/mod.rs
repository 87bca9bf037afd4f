//! The base of `--changed`: what it is, and when it is refused. What it is in each kind of clone and
//! for each CI provider is a table in `tests/laws/base`; here stands what the program does with it.

mod ci; // what a job of each CI provider is compared with
mod commands; // which commands look at git, and in which repositories
mod developer; // a clone of a developer
mod named; // `--base`
mod shallow; // shallow clones, and what is fetched for them

use std::fs;

use insta::assert_snapshot;

use crate::support::{Checkout, Output, Repositories, Sandbox};

/// The command that shows what has changed, and the base.
const LIST: &str = "list --changed";

/// A remote whose `main` went on after a branch `feature` was made: "feature" touched a, "second"
/// touched b.
fn two_branches() -> Repositories {
    let repositories = Repositories::new();
    let author = repositories.author();
    author.git("checkout -q -b feature");
    author.commit("feature", "a");
    author.git("checkout -q main");
    author.commit("second", "b");
    repositories
}

/// Runs what `orch` advises to run, exactly as it says.
#[track_caller]
fn mend(project: &Checkout<'_>, refused: &Output) {
    assert_eq!(refused.code(), 4, "{refused}");
    project.run(refused.advice());
}
