//! The base in the clones that CI providers make.

#![expect(clippy::too_many_lines, reason = "a table is as long as it has rows")]

use insta::assert_snapshot;

use super::{ROW, Row, table};

/// What actions/checkout does for the merge that GitHub made of a pull request, with all history.
const PULL: &str = "init\nfetch -q origin +refs/heads/*:refs/remotes/origin/* +refs/heads/pull:refs/remotes/pull/1/merge\ncheckout -q refs/remotes/pull/1/merge";

/// What it does for the head of a pull request, with all history.
const PULL_HEAD: &str = "init\nfetch -q origin +refs/heads/*:refs/remotes/origin/* +refs/heads/feature:refs/remotes/pull/1/merge\ncheckout -q refs/remotes/pull/1/merge";

/// What it does for the push of a branch, without its history.
const PUSH_OF_NEXT: &str = "init\nfetch -q --no-tags --depth=1 origin +refs/heads/next:refs/remotes/origin/next\ncheckout -q -B next refs/remotes/origin/next";

const PULL_REQUEST: &str = r#"{"pull_request": {"head": {"sha": "<feature>", "ref": "feature"}, "base": {"sha": "<second>", "ref": "main"}}}"#;

/// A row about an event; `ci` begins with its name.
fn on_github(
    what: &'static str,
    clone: &'static str,
    ci: &'static str,
    event: &'static str,
) -> Row {
    let ci = format!("GITHUB_ACTIONS=true GITHUB_EVENT_PATH=event.json GITHUB_EVENT_NAME={ci}");
    Row {
        what,
        clone,
        ci,
        event,
        ..ROW
    }
}

#[test]
fn pull_requests_on_github_actions() {
    let rows = [
        (
            "a pull request",
            PULL,
            "pull_request GITHUB_BASE_REF=main",
            PULL_REQUEST,
        ),
        (
            "a pull request at depth 2",
            "init\nfetch -q --no-tags --depth=2 origin +refs/heads/pull:refs/remotes/pull/1/merge\ncheckout -q refs/remotes/pull/1/merge",
            "pull_request",
            PULL_REQUEST,
        ),
        (
            "a pull request at depth 1",
            "init\nfetch -q --no-tags --depth=1 origin +refs/heads/pull:refs/remotes/pull/1/merge\ncheckout -q refs/remotes/pull/1/merge",
            "pull_request",
            PULL_REQUEST,
        ),
        (
            "a pull request whose target moved on",
            PULL,
            "pull_request",
            r#"{"pull_request": {"head": {"sha": "<feature>"}, "base": {"sha": "<second>", "ref": "next"}}}"#,
        ),
        (
            "the head of a pull request",
            PULL_HEAD,
            "pull_request",
            PULL_REQUEST,
        ),
        (
            "the head of a pull request that has merged what its target gained",
            "clone --branch=updated",
            "pull_request",
            r#"{"pull_request": {"head": {"sha": "<update>"}, "base": {"sha": "<second>", "ref": "next"}}}"#,
        ),
        (
            "the head of a pull request that is merged already",
            PULL_HEAD,
            "pull_request",
            r#"{"pull_request": {"head": {"sha": "<feature>"}, "base": {"sha": "<second>", "ref": "pull"}}}"#,
        ),
        (
            "the head of a pull request at depth 1",
            "init\nfetch -q --no-tags --depth=1 origin +refs/heads/feature:refs/remotes/pull/1/merge\ncheckout -q refs/remotes/pull/1/merge",
            "pull_request",
            PULL_REQUEST,
        ),
        (
            "the target of a pull request",
            "clone",
            "pull_request_target",
            PULL_REQUEST,
        ),
        (
            "a review of a pull request",
            PULL,
            "pull_request_review",
            PULL_REQUEST,
        ),
        (
            "a pull request without its event",
            PULL,
            "pull_request GITHUB_BASE_REF=main",
            "",
        ),
        (
            "a pull request without its event and its target",
            PULL,
            "pull_request",
            "",
        ),
        (
            "a pull request of what are no names",
            PULL,
            "pull_request",
            r#"{"pull_request": {"base": {"ref": "a b", "sha": "HEAD"}}}"#,
        ),
    ];
    let rows = rows.map(|(what, clone, ci, event)| on_github(what, clone, ci, event));
    assert_snapshot!(table(&rows), @"
    a pull request
      base <second>, ci: first parent of the merge commit of GitHub Actions
    a pull request at depth 2
      base <second>, ci: first parent of the merge commit of GitHub Actions, in a shallow clone
    a pull request at depth 1
      commit <second> is not in this shallow clone: first parent of the merge commit of GitHub Actions
      run git fetch --depth=1 origin <second>
      base <second>, ci: first parent of the merge commit of GitHub Actions, in a shallow clone
    a pull request whose target moved on
      base <second>, ci: first parent of the merge commit of GitHub Actions
    the head of a pull request
      base <start>, ci: merge base of HEAD and origin/main (GitHub Actions)
    the head of a pull request that has merged what its target gained
      base <third>, ci: merge base of HEAD and origin/next (GitHub Actions)
    the head of a pull request that is merged already
      base <start>, ci: merge base of HEAD and pull at <second> (GitHub Actions)
    the head of a pull request at depth 1
      the target of this change, `main`, is not in this clone (GitHub Actions)
      run git fetch --unshallow origin <second> <feature>
      base <start>, ci: merge base of HEAD and main at <second> (GitHub Actions)
    the target of a pull request
      HEAD (<second>) is part of origin/main, so it is not the change that GitHub Actions checks
      check out the change itself, or name a base with `--base REV`
    a review of a pull request
      base <second>, ci: first parent of the merge commit of GitHub Actions
    a pull request without its event
      base <second>, ci: merge base of HEAD and origin/main (GitHub Actions)
    a pull request without its event and its target
      unclear: GitHub Actions runs this for a `pull_request`, and its event file (GITHUB_EVENT_PATH) cannot be read: no such file
    a pull request of what are no names
      base <second>, merge-base: merge base of HEAD and origin/main
    ");
}

#[test]
fn pushes_on_github_actions() {
    let rows = [
        (
            "a push",
            "clone --branch=next",
            "push GITHUB_REF_NAME=next GITHUB_REF_TYPE=branch",
            r#"{"before": "<second>"}"#,
        ),
        (
            "a push at depth 1",
            PUSH_OF_NEXT,
            "push",
            r#"{"before": "<second>"}"#,
        ),
        (
            "a push of a new branch",
            "clone --branch=next\nremote set-head origin next",
            "push GITHUB_REF_NAME=next GITHUB_REF_TYPE=branch",
            r#"{"before": "0000000000000000000000000000000000000000"}"#,
        ),
        (
            "a push of a tag at the tip",
            "clone",
            "push GITHUB_REF_NAME=v2 GITHUB_REF_TYPE=tag",
            r#"{"before": "0000000000000000000000000000000000000000"}"#,
        ),
        (
            "a push of what is no name",
            "clone",
            "push",
            r#"{"before": "--upload-pack=x"}"#,
        ),
        ("a push whose event is missing", "clone", "push", ""),
        ("a push whose event is no JSON", "clone", "push", "{"),
        (
            "a merge group",
            "clone --branch=train",
            "merge_group",
            r#"{"merge_group": {"base_sha": "<other>", "base_ref": "refs/heads/main"}}"#,
        ),
        (
            "a merge group at depth 1",
            "clone --branch=train --depth=1",
            "merge_group",
            r#"{"merge_group": {"base_sha": "<other>"}}"#,
        ),
        (
            "an event without a base",
            "clone",
            "workflow_dispatch GITHUB_REF_NAME=main",
            "{}",
        ),
        (
            "an event without a base, when the branch has moved on",
            "clone\ncheckout -q --detach <second>\nupdate-ref refs/remotes/origin/main refs/remotes/origin/next",
            "workflow_dispatch GITHUB_REF_NAME=main GITHUB_REF_TYPE=branch",
            "{}",
        ),
        (
            "a tag, when the branch of its name has moved on",
            "clone\ncheckout -q --detach <second>\nupdate-ref refs/remotes/origin/main refs/remotes/origin/next",
            "workflow_dispatch GITHUB_REF_NAME=main GITHUB_REF_TYPE=tag",
            "{}",
        ),
    ];
    let rows = rows.map(|(what, clone, ci, event)| on_github(what, clone, ci, event));
    assert_snapshot!(table(&rows), @"
    a push
      base <second>, ci: the commit before this push (GitHub Actions)
    a push at depth 1
      commit <second> is not in this shallow clone: the commit before this push (GitHub Actions)
      run git fetch --depth=1 origin <second>
      base <second>, ci: the commit before this push (GitHub Actions), in a shallow clone
    a push of a new branch
      base <third>, first-parent: first parent of HEAD, which is at origin/next
    a push of a tag at the tip
      base <start>, first-parent: first parent of HEAD, which is at origin/main
    a push of what is no name
      base <start>, first-parent: first parent of HEAD, which is at origin/main
    a push whose event is missing
      unclear: GitHub Actions runs this for a `push`, and its event file (GITHUB_EVENT_PATH) cannot be read: no such file
    a push whose event is no JSON
      unclear: GitHub Actions runs this for a `push`, and its event file (GITHUB_EVENT_PATH) is not JSON: EOF while parsing an object at line 1 column 1
    a merge group
      base <other>, ci: the commit before this entry of the merge queue (GitHub Actions)
    a merge group at depth 1
      commit <other> is not in this shallow clone: the commit before this entry of the merge queue (GitHub Actions)
      run git fetch --depth=1 origin <other>
      base <other>, ci: the commit before this entry of the merge queue (GitHub Actions), in a shallow clone
    an event without a base
      base <start>, first-parent: first parent of HEAD, which is at origin/main
    an event without a base, when the branch has moved on
      base <start>, first-parent: first parent of HEAD, a commit of origin/main (GitHub Actions)
    a tag, when the branch of its name has moved on
      base <start>, first-parent: first parent of HEAD, a commit of origin/main
    ");
}

#[test]
fn gitlab_ci() {
    /// What a runner does, without the history.
    const FEATURE: &str = "init\nfetch -q --depth=20 --no-tags origin +refs/heads/feature:refs/pipelines/7\ncheckout -q --detach refs/pipelines/7";
    const PULL: &str = "init\nfetch -q --depth=20 --no-tags origin +refs/heads/pull:refs/pipelines/7\ncheckout -q --detach refs/pipelines/7";
    const ZEROS: &str = "CI_COMMIT_BEFORE_SHA=0000000000000000000000000000000000000000";
    let rows = [
        (
            "a merge request",
            FEATURE,
            "CI_MERGE_REQUEST_DIFF_BASE_SHA=<start> CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main",
        ),
        (
            "a merge request without its diff base",
            "clone --branch=feature",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main",
        ),
        (
            "a long merge request",
            "init\nfetch -q --depth=1 --no-tags origin +refs/heads/feature:refs/pipelines/7\ncheckout -q --detach refs/pipelines/7",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA=<start> CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main",
        ),
        (
            "merged results",
            PULL,
            "CI_MERGE_REQUEST_DIFF_BASE_SHA=<start> CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main CI_MERGE_REQUEST_TARGET_BRANCH_SHA=<second> CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=<feature>",
        ),
        (
            "merged results at depth 1",
            "init\nfetch -q --depth=1 --no-tags origin +refs/heads/pull:refs/pipelines/7\ncheckout -q --detach refs/pipelines/7",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main CI_MERGE_REQUEST_TARGET_BRANCH_SHA=<second> CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=<feature>",
        ),
        (
            "an entry of a merge train",
            "clone --branch=train",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main CI_MERGE_REQUEST_TARGET_BRANCH_SHA=<other> CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=<feature>",
        ),
        (
            "a push",
            "clone --branch=next",
            "CI_COMMIT_BRANCH=next CI_COMMIT_BEFORE_SHA=<second>",
        ),
        (
            "a new branch at the tip of the default branch",
            "clone\ncheckout -q --detach",
            "CI_COMMIT_BRANCH=new",
        ),
        (
            "a new branch without the default branch",
            FEATURE,
            "CI_COMMIT_BRANCH=feature",
        ),
    ];
    let rows = rows.map(|(what, clone, ci)| Row {
        what,
        clone,
        // The first of two values of a variable counts.
        ci: format!("GITLAB_CI=true {ci} {ZEROS}"),
        ..ROW
    });
    assert_snapshot!(table(&rows), @"
    a merge request
      base <start>, ci: the diff base of this merge request (GitLab CI)
    a merge request without its diff base
      base <start>, ci: merge base of HEAD and origin/main (GitLab CI)
    a long merge request
      commit <start> is not in this shallow clone: the diff base of this merge request (GitLab CI)
      run git fetch --depth=1 origin <start>
      base <start>, ci: the diff base of this merge request (GitLab CI), in a shallow clone
    merged results
      base <second>, ci: first parent of the merge commit of GitLab CI
    merged results at depth 1
      commit <second> is not in this shallow clone: first parent of the merge commit of GitLab CI
      run git fetch --depth=1 origin <second>
      base <second>, ci: first parent of the merge commit of GitLab CI, in a shallow clone
    an entry of a merge train
      base <other>, ci: first parent of the merge commit of GitLab CI
    a push
      base <second>, ci: the commit before this push (GitLab CI)
    a new branch at the tip of the default branch
      base <second>, merge-base: merge base of HEAD and origin/main, which is HEAD itself
    a new branch without the default branch
      the default branch `origin/main` is not in this clone
      run git fetch origin +refs/heads/main:refs/remotes/origin/main
      base <start>, merge-base: merge base of HEAD and origin/main
    ");
}

#[test]
fn other_providers() {
    const FEATURE: &str = "clone --branch=feature --single-branch --depth=50";
    let rows = [
        (
            "Bitbucket: a pull request",
            "clone --branch=feature --single-branch --depth=50\nfetch -q origin <second>\nmerge -q -m merge <second>",
            "BITBUCKET_BUILD_NUMBER=1 BITBUCKET_PR_ID=1 BITBUCKET_BRANCH=feature BITBUCKET_PR_DESTINATION_BRANCH=main BITBUCKET_PR_DESTINATION_COMMIT=<second>/12",
        ),
        (
            "Bitbucket: a pull request without its destination",
            FEATURE,
            "BITBUCKET_BUILD_NUMBER=1 BITBUCKET_PR_ID=1 BITBUCKET_BRANCH=feature BITBUCKET_PR_DESTINATION_BRANCH=main BITBUCKET_PR_DESTINATION_COMMIT=<second>/12",
        ),
        (
            "Bitbucket: a push of the default branch",
            "clone --branch=main --single-branch --depth=50",
            "BITBUCKET_BUILD_NUMBER=1 BITBUCKET_BRANCH=main",
        ),
        (
            "Bitbucket: a push of another branch",
            FEATURE,
            "BITBUCKET_BUILD_NUMBER=1 BITBUCKET_BRANCH=feature BITBUCKET_PR_DESTINATION_BRANCH=next",
        ),
        (
            "Azure: a pull request whose target moved on",
            "clone\ncheckout -q --detach origin/pull",
            "TF_BUILD=True BUILD_REASON=PullRequest BUILD_SOURCEBRANCH=refs/pull/1/merge SYSTEM_PULLREQUEST_SOURCECOMMITID=<feature> SYSTEM_PULLREQUEST_TARGETBRANCH=refs/heads/next",
        ),
        (
            "Azure: a pull request at depth 1",
            "init\nfetch -q --depth=1 origin +refs/heads/pull:refs/remotes/pull/1/merge\ncheckout -q refs/remotes/pull/1/merge",
            "TF_BUILD=True BUILD_REASON=PullRequest SYSTEM_PULLREQUEST_SOURCECOMMITID=<feature> SYSTEM_PULLREQUEST_TARGETBRANCH=main",
        ),
        (
            "Azure: a push that is built late",
            "clone\ncheckout -q --detach <second>\nupdate-ref refs/remotes/origin/main refs/remotes/origin/next",
            "TF_BUILD=True BUILD_REASON=IndividualCI BUILD_SOURCEBRANCH=refs/heads/main SYSTEM_PULLREQUEST_TARGETBRANCH=next",
        ),
        (
            "Buildkite: a pull request",
            "clone --branch=fix",
            "BUILDKITE=true BUILDKITE_BRANCH=fix BUILDKITE_PULL_REQUEST=1 BUILDKITE_PULL_REQUEST_BASE_BRANCH=next",
        ),
        (
            "Buildkite: a push of the default branch",
            "clone",
            "BUILDKITE=true BUILDKITE_BRANCH=main BUILDKITE_PULL_REQUEST=false BUILDKITE_PULL_REQUEST_BASE_BRANCH=",
        ),
        (
            "Buildkite: a push of another branch",
            "clone --branch=feature",
            "BUILDKITE=true BUILDKITE_BRANCH=feature BUILDKITE_PULL_REQUEST=false BUILDKITE_PULL_REQUEST_BASE_BRANCH=next",
        ),
        (
            "Buildkite: a tag whose branch has moved on",
            "clone\ncheckout -q --detach <second>\nupdate-ref refs/remotes/origin/main refs/remotes/origin/next",
            "BUILDKITE=true BUILDKITE_BRANCH=main BUILDKITE_TAG=v2 BUILDKITE_PULL_REQUEST=false",
        ),
        (
            "Buildkite: an entry of a merge queue",
            "clone --branch=train",
            "BUILDKITE=true BUILDKITE_BRANCH=queue/pr-1 BUILDKITE_PULL_REQUEST=false BUILDKITE_MERGE_QUEUE_BASE_COMMIT=<other>",
        ),
        ("no provider that is known", "clone", "CI=true"),
        (
            "a provider that is switched off",
            "clone",
            "GITHUB_ACTIONS=false GITLAB_CI= BUILDKITE=no TF_BUILD=0",
        ),
    ];
    let rows = rows.map(|(what, clone, ci)| Row {
        what,
        clone,
        ci: ci.to_owned(),
        ..ROW
    });
    assert_snapshot!(table(&rows), @"
    Bitbucket: a pull request
      base <second>, ci: merge base of HEAD and main at <second> (Bitbucket Pipelines)
    Bitbucket: a pull request without its destination
      the target of this change, `main`, is not in this clone (Bitbucket Pipelines)
      run git fetch origin +refs/heads/main:refs/remotes/origin/main
      base <start>, ci: merge base of HEAD and origin/main (Bitbucket Pipelines)
    Bitbucket: a push of the default branch
      base <start>, first-parent: first parent of HEAD, which is at origin/main
    Bitbucket: a push of another branch
      the default branch `origin/main` is not in this clone
      run git fetch origin +refs/heads/main:refs/remotes/origin/main
      base <start>, merge-base: merge base of HEAD and origin/main
    Azure: a pull request whose target moved on
      base <second>, ci: first parent of the merge commit of Azure Pipelines
    Azure: a pull request at depth 1
      commit <second> is not in this shallow clone: first parent of the merge commit of Azure Pipelines
      run git fetch --depth=1 origin <second>
      base <second>, ci: first parent of the merge commit of Azure Pipelines, in a shallow clone
    Azure: a push that is built late
      base <start>, first-parent: first parent of HEAD, a commit of origin/main (Azure Pipelines)
    Buildkite: a pull request
      base <second>, ci: merge base of HEAD and origin/next (Buildkite)
    Buildkite: a push of the default branch
      base <start>, first-parent: first parent of HEAD, which is at origin/main
    Buildkite: a push of another branch
      base <start>, merge-base: merge base of HEAD and origin/main
    Buildkite: a tag whose branch has moved on
      base <start>, first-parent: first parent of HEAD, a commit of origin/main
    Buildkite: an entry of a merge queue
      base <other>, ci: the commit before this entry of the merge queue (Buildkite)
    no provider that is known
      base <start>, first-parent: first parent of HEAD, which is at origin/main
    a provider that is switched off
      base <start>, first-parent: first parent of HEAD, which is at origin/main
    ");
}
