//! `--base`.

use super::*;

#[test]
fn base_flag_means_that_commit_and_not_the_merge_base() {
    let repositories = two_branches();
    let project = repositories.clone("--branch=feature");
    assert_snapshot!(project.orch("list -c -B origin/main"), @"
    a
    b
    [stderr]
    base <second>: --base origin/main
    ");
    assert_snapshot!(project.orch("list --changed --git-change-base=HEAD"), @"
    [stderr]
    base <feature>: --base HEAD, which is HEAD itself
    note: no stack has changed since <feature>
    ");
    let id = project.id("HEAD~1");
    assert_snapshot!(project.orch(&format!("list -c -B {id}")), @"
    a
    [stderr]
    base <start>: --base <start>
    ");
    assert_snapshot!(project.orch(&format!("list -c -B {}", &id[..7])), @"
    a
    [stderr]
    base <start>: --base <start>
    ");
}

#[test]
fn base_flag_requires_changed() {
    let sandbox = Sandbox::layout("a");
    for arguments in [
        "list --base HEAD",
        "list --fetch",
        "list --git-change-base HEAD",
    ] {
        let output = sandbox.orch(arguments);
        assert_eq!(output.code(), 64, "{output}");
        assert!(output.stderr.contains("--changed"), "{output}");
    }
}

#[test]
fn base_flag_rejects_an_empty_value() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("list --changed --base ''"), @"
    [stderr]
    error: a value is required for '--base <REV|applied>' but none was supplied

    For more information, try '--help'.
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("list --changed --base="), @"
    [stderr]
    error: a value is required for '--base <REV|applied>' but none was supplied

    For more information, try '--help'.
    [exit status 64]
    ");
}

#[test]
fn base_flag_never_becomes_a_git_option() {
    let repositories = two_branches();
    let project = repositories.clone("");
    let output = project.orch("list --changed --base --all");
    assert_eq!(output.code(), 64, "{output}");
    assert_snapshot!(project.orch("list --changed --base=--all"), @"
    [stderr]
    error: the changes are unknown
      caused by: there is no revision `--all`
      = help: name a commit, branch or tag that exists
    [exit status 4]
    ");
    assert_snapshot!(project.orch("list --changed --base=origin/--upload-pack=x"), @"
    [stderr]
    error: the changes are unknown
      caused by: there is no revision `origin/--upload-pack=x`
      = help: name a commit, branch or tag that exists
    [exit status 4]
    ");
    assert_snapshot!(project.orch("list --changed '--base=origin/a b'"), @"
    [stderr]
    error: the changes are unknown
      caused by: there is no revision `origin/a b`
      = help: name a commit, branch or tag that exists
    [exit status 4]
    ");
}

#[test]
fn base_fetch_tries_a_missing_revision_once() {
    let repositories = two_branches();
    let project = repositories.clone("");
    let output = project.orch("list --changed --fetch --base nonsense");
    assert_snapshot!(output.without_git(), @"
    [stderr]
    note: running `git fetch --tags origin`
    error: the changes are unknown
      caused by: there is no revision `nonsense`
      = help: fetching did not help: name another base with `--base REV`
    [exit status 4]
    ");
}

#[test]
fn base_flag_overrides_the_base_of_ci() {
    let repositories = two_branches();
    let project = repositories.clone("");
    let variables = [("GITHUB_ACTIONS", "true"), ("GITHUB_EVENT_NAME", "push")];
    let output = project.orch_in_ci("list --changed --base=HEAD", &variables);
    assert_snapshot!(output, @"
    [stderr]
    base <second>: --base HEAD, which is HEAD itself
    note: no stack has changed since <second>
    ");
}
