//! Values that do not differ, although configuration does.

use super::{env, globals};
use crate::support::Repository;

#[track_caller]
fn nothing_changes(repository: &Repository) {
    let found = repository.changed();
    assert_eq!(found.stdout, "", "{found}");
}

fn simple() -> Repository {
    let sandbox = Repository::prepare("x/a\nx/b");
    sandbox.write("/env.tm", env("A = global.a"));
    sandbox.write("/globals.tm", globals("a = \"1\""));
    Repository::of(sandbox)
}

#[test]
fn changed_ignores_an_equal_value() {
    let repository = simple();
    repository.write("/globals.tm", globals("a = \"${\"1\"}\"\n  b = 2"));
    nothing_changes(&repository);
}

#[test]
fn changed_ignores_a_moved_definition() {
    let repository = simple();
    repository.remove("/globals.tm");
    repository.write("/x/globals.tm", globals("a = \"1\""));
    nothing_changes(&repository);
    repository.commit();
    repository.remove("/env.tm");
    repository.write("/x/env.tm", env("A = global.a"));
    nothing_changes(&repository);
}

#[test]
fn changed_ignores_an_unused_global() {
    let repository = simple();
    repository.write("/more.tm", globals("broken = global.missing\n  c = 3"));
    nothing_changes(&repository);
}

#[test]
fn changed_ignores_an_overridden_value() {
    let repository = simple();
    repository.write("/x/globals.tm", globals("a = \"1\""));
    repository.write("/globals.tm", globals("a = \"2\""));
    nothing_changes(&repository);
}

#[test]
fn changed_uses_the_host_environment_on_both_sides() {
    let sandbox = Repository::prepare("a");
    sandbox.write("/env.tm", env("A = \"${env.HOME}/x\""));
    let repository = Repository::of(sandbox);
    repository.write("/env.tm", env("A = \"${env[\"HOME\"]}/x\""));
    nothing_changes(&repository);
}

#[test]
fn changed_ignores_the_same_error_on_both_sides() {
    let sandbox = Repository::prepare("a");
    sandbox.write("/env.tm", env("A = global.missing"));
    let repository = Repository::of(sandbox);
    repository.write("/env.tm", format!("# more\n{}", env("A = global.missing")));
    nothing_changes(&repository);
}

#[test]
fn changed_list_does_not_report_a_broken_environment_elsewhere() {
    let sandbox = Repository::prepare("a\nb");
    sandbox.write("/a/env.tm", env("A = global.missing"));
    sandbox.write("/env.tm", env("B = \"1\""));
    let repository = Repository::of(sandbox);
    repository.write("/globals.tm", globals("c = 1"));
    let found = repository.list("");
    assert!(!found.to_string().contains("missing"), "{found}");
    assert_eq!(found.code(), 0);
}
