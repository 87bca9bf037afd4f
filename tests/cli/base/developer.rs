//! The base in a clone of a developer.

use super::*;

#[test]
fn base_of_a_branch_is_the_merge_base_with_the_default_branch() {
    let repositories = two_branches();
    let project = repositories.clone("--branch=feature");
    assert_snapshot!(project.orch(LIST), @"
    a
    [stderr]
    base <start>: merge base of HEAD and origin/main
    ");
    assert_snapshot!(project.orch("list --changed --format json").data()["base"], @r#"{"commit":"<start>","reason":"merge base of HEAD and origin/main","rule":"merge-base"}"#);
}

#[test]
fn base_comparison_counts_uncommitted_changes_on_every_branch() {
    let repositories = two_branches();
    let project = repositories.clone("");
    project.git("checkout -q -b new");
    project.write("c/file.txt", "");
    assert_snapshot!(project.orch(LIST), @"
    c
    [stderr]
    base <second>: merge base of HEAD and origin/main, which is HEAD itself
    ");
}

#[test]
fn base_of_the_default_branch_at_its_remote_tip_is_the_parent() {
    let repositories = two_branches();
    let project = repositories.clone("");
    assert_snapshot!(project.orch(LIST), @"
    b
    [stderr]
    base <start>: first parent of HEAD, which is at origin/main
    ");
}

#[test]
fn base_may_be_either_merge_base_of_a_criss_cross() {
    let repositories = two_branches();
    let author = repositories.author();
    let (main, feature) = (author.id("main"), author.id("feature"));
    author.merge("main-merge", &feature);
    author.git("checkout -q feature");
    author.merge("feature-merge", &main);
    author.commit("third", "c");
    let project = repositories.clone("--branch=feature");
    let output = project.orch(LIST);
    assert_eq!(output.code(), 0, "{output}");
    assert!(output.stdout.contains("c\n"), "{output}");
    assert!(!output.stdout.contains('d'), "{output}");
}

#[test]
fn base_of_the_first_commit_is_unknown() {
    let repositories = Repositories::new();
    let project = repositories.clone("");
    assert_snapshot!(project.orch(LIST), @"
    [stderr]
    error: the changes are unknown
      caused by: HEAD is the first commit of the repository and has no parent to compare with
      = help: remove `--changed` to select all stacks, or name a base with `--base REV`
    [exit status 4]
    ");
}

#[test]
fn base_is_unknown_without_a_commit() {
    let sandbox = Sandbox::layout("a");
    sandbox.git_init();
    assert_snapshot!(sandbox.orch(LIST), @"
    [stderr]
    error: the changes are unknown
      caused by: the repository has no commit yet to compare with
      = help: commit first, or remove `--changed` to select all stacks
    [exit status 4]
    ");
    assert_snapshot!(sandbox.orch("list --changed --base HEAD"), @"
    [stderr]
    error: the changes are unknown
      caused by: the repository has no commit yet to compare with
      = help: commit first, or remove `--changed` to select all stacks
    [exit status 4]
    ");
}

#[test]
fn base_is_unknown_without_git() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch(LIST), @"
    [stderr]
    error: the changes are unknown
      caused by: `$ROOT` is not in a git repository
      = help: change into a git repository, or remove `--changed` to select all stacks
    [exit status 4]
    ");
    assert_snapshot!(sandbox.orch("list --changed --base HEAD --format json"), @r#"
    {"format":1,"refused":{"problem":"`$ROOT` is not in a git repository","command":null},"stacks":[],"base":null,"removed":[],"changed_outside":null,"valid":true,"diagnostics":[],"errors":[]}
    [stderr]
    error: the changes are unknown
      caused by: `$ROOT` is not in a git repository
      = help: change into a git repository, or remove `--changed` to select all stacks
    [exit status 4]
    "#);
}

#[test]
fn base_is_unknown_without_a_common_commit() {
    let repositories = Repositories::new();
    let author = repositories.author();
    author.git("checkout -q --orphan other");
    author.commit("other", "a");
    let project = repositories.clone("--branch=other");
    assert_snapshot!(project.orch(LIST), @"
    [stderr]
    error: the changes are unknown
      caused by: HEAD and origin/main have no common commit
      = help: name a base with `--base REV`
    [exit status 4]
    ");
    let fetched = project.orch("list --changed --fetch");
    assert_eq!(fetched.to_string(), project.orch(LIST).to_string());
}

#[test]
fn base_branch_and_remote_come_from_the_configuration() {
    let repositories = two_branches();
    let author = repositories.author();
    let git = "git {\n default_remote = \"hub\"\n default_branch = \"develop\"\n}\n";
    author.write(
        "git.tm.hcl",
        &format!("terramate {{\nconfig {{\n{git}}}\n}}\n"),
    );
    author.git("checkout -q -b develop");
    author.commit("configured", "");
    author.git("checkout -q -b new");
    author.commit("new", "d");
    let project = repositories.clone("--origin=hub --branch=new");
    project.git("remote add origin $URL");
    assert_snapshot!(project.orch(LIST), @"
    d
    [stderr]
    base <configured>: merge base of HEAD and hub/develop
    ");
}
