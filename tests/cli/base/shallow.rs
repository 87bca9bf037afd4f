//! Shallow clones, and what is fetched for them.

use super::*;

#[test]
fn base_fetch_gets_a_branch() {
    let repositories = two_branches();
    let project = repositories.clone("--depth=1");
    let output = project.orch("list --changed --base feature --fetch");
    assert_snapshot!(output.without_git(), @"
    a
    b
    [stderr]
    note: running `git fetch --depth=1 origin +refs/heads/feature:refs/remotes/origin/feature`
    base <feature>: --base feature, which is origin/feature
    ");
}

#[test]
fn base_missing_from_the_clone_is_refused_until_fetched() {
    let repositories = two_branches();
    let start = repositories.author().id("main~1");
    let project = repositories.clone("--depth=1");
    let list = format!("list --changed --base {start}");
    let refused = project.orch(&list);
    assert_snapshot!(refused, @"
    [stderr]
    error: the changes are unknown
      caused by: there is no revision `<start>` in this shallow clone
      = help: run `git fetch --depth=1 origin <start>`, or add `--fetch`
    [exit status 4]
    ");
    mend(&project, &refused);
    assert_snapshot!(project.orch(&list), @"
    b
    [stderr]
    base <start>: --base <start>
    ");
    assert!(project.is_shallow());
}

#[test]
fn base_fetch_gets_a_missing_tag_alone() {
    let repositories = two_branches();
    let author = repositories.author();
    author.git("tag v1 main~1");
    author.git("tag v2 main");
    let project = repositories.clone("--depth=1 --no-tags");
    let refused = project.orch("list --changed --base v1");
    assert_snapshot!(refused, @"
    [stderr]
    error: the changes are unknown
      caused by: there is no revision `v1` in this shallow clone
      = help: run `git fetch --depth=1 origin tag v1`, or add `--fetch`
    [exit status 4]
    ");
    mend(&project, &refused);
    assert_snapshot!(project.orch("list --changed --base v1"), @"
    b
    [stderr]
    base <start>: --base v1
    ");
    assert_eq!(project.git("tag"), "v1");
}

/// A branch of 120 commits, which left a `main` of 300 commits; both are cloned at depth 1.
fn long() -> Repositories {
    let repositories = Repositories::new();
    let author = repositories.author();
    author.grow(300);
    author.git("reset -q --hard");
    author.commit("left", "d");
    author.git("checkout -q -b feature");
    author.commit("feature", "a");
    author.grow(120);
    author.git("checkout -q main");
    author.commit("second", "b");
    repositories.clone("--depth=1 --no-single-branch --branch=feature");
    repositories
}

#[test]
fn base_without_a_merge_base_in_the_clone_is_refused_until_unshallowed() {
    let repositories = long();
    let project = repositories.project();
    let refused = project.orch(LIST);
    let tip = project.id("HEAD");
    let shown = refused.to_string().replace(&tip, "<tip>");
    assert_snapshot!(shown, @"
    [stderr]
    error: the changes are unknown
      caused by: HEAD and origin/main have no common commit in this shallow clone
      = help: run `git fetch --unshallow origin <tip> <second>`, or add `--fetch`
    [exit status 4]
    ");
    mend(&project, &refused);
    assert_snapshot!(project.orch(LIST), @"
    a
    [stderr]
    base <left>: merge base of HEAD and origin/main
    ");
    assert!(!project.is_shallow());
}

#[test]
fn base_fetch_deepens_only_to_the_merge_base() {
    let repositories = long();
    let project = repositories.project();
    let tip = project.id("HEAD");
    let output = project.orch("list --changed --fetch").without_git();
    assert_snapshot!(output.replace(&tip, "<tip>"), @"
    a
    [stderr]
    note: running `git fetch --deepen=50 origin <tip> <second>`
    note: running `git fetch --deepen=200 origin <tip> <second>`
    base <left>: merge base of HEAD and origin/main
    ");
    assert!(project.is_shallow());
}

#[test]
fn base_fetch_gets_and_deepens_the_default_branch() {
    let repositories = long();
    let project = repositories.project();
    project.git("config remote.origin.fetch +refs/heads/feature:refs/remotes/origin/feature");
    project.git("update-ref -d refs/remotes/origin/main");
    let tip = project.id("HEAD");
    let output = project.orch("list --changed --fetch").without_git();
    assert_snapshot!(output.replace(&tip, "<tip>"), @"
    a
    [stderr]
    note: running `git fetch --depth=1 origin +refs/heads/main:refs/remotes/origin/main`
    note: running `git fetch --deepen=50 origin <tip> <second>`
    note: running `git fetch --deepen=200 origin <tip> <second>`
    base <left>: merge base of HEAD and origin/main
    ");
    assert!(project.is_shallow());
}

#[test]
fn base_fetch_works_with_unpushed_commits() {
    let unpushed = || {
        let repositories = two_branches();
        let project = repositories.clone("--depth=1 --no-single-branch --branch=feature");
        project.commit("unpushed", "c");
        repositories
    };
    let repositories = unpushed();
    let project = repositories.project();
    let refused = project.orch(LIST);
    assert_snapshot!(refused, @"
    [stderr]
    error: the changes are unknown
      caused by: HEAD and origin/main have no common commit in this shallow clone
      = help: run `git fetch --unshallow origin <feature> <second>`, or add `--fetch`
    [exit status 4]
    ");
    mend(&project, &refused);
    assert_snapshot!(project.orch(LIST), @"
    a
    c
    [stderr]
    base <start>: merge base of HEAD and origin/main
    ");
    let repositories = unpushed();
    let output = repositories.project().orch("list --changed --fetch");
    assert_snapshot!(output.without_git(), @"
    a
    c
    [stderr]
    note: running `git fetch --deepen=50 origin <feature> <second>`
    base <start>: merge base of HEAD and origin/main
    ");
}

#[test]
fn base_fetch_works_with_a_local_merge() {
    let repositories = two_branches();
    let author = repositories.author();
    author.git("checkout -q feature");
    author.grow(60);
    let main = author.id("main");
    let project = repositories.clone("--branch=feature --single-branch --depth=50");
    project.git(&format!("fetch -q --depth=50 origin {main}"));
    project.git(&format!(
        "merge -q --no-ff --allow-unrelated-histories -m merge {main}"
    ));
    let variables = [
        ("BITBUCKET_BUILD_NUMBER", "1"),
        ("BITBUCKET_BRANCH", "feature"),
    ];
    let refused = project.orch_in_ci(LIST, &variables);
    mend(&project, &refused);
    assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
    a
    [stderr]
    base <second>: merge base of HEAD and origin/main
    ");
}

#[test]
fn base_fetch_stops_deepening_at_a_limit() {
    let repositories = two_branches();
    let author = repositories.author();
    author.git("checkout -q feature");
    author.grow(4_500);
    let project = repositories.clone("--depth=1 --no-single-branch --branch=feature");
    let tip = project.id("HEAD");
    let output = project.orch("list --changed --fetch").without_git();
    assert_snapshot!(output.replace(&tip, "<tip>"), @"
    [stderr]
    note: running `git fetch --deepen=50 origin <tip> <second>`
    note: running `git fetch --deepen=200 origin <tip> <second>`
    note: running `git fetch --deepen=800 origin <tip> <second>`
    note: running `git fetch --deepen=3200 origin <tip> <second>`
    error: the changes are unknown
      caused by: HEAD and origin/main have no common commit in this shallow clone
      = help: run `git fetch --unshallow origin <tip> <second>`
    [exit status 4]
    ");
    assert!(project.is_shallow());
}

#[test]
fn base_fetch_fails_if_the_remote_does_not_answer() {
    let repositories = long();
    let project = repositories.project();
    project.git("remote set-url origin $URL.gone");
    let output = project.orch("list --changed --fetch");
    assert_eq!(output.code(), 4, "{output}");
    assert_eq!(
        output.stderr.matches("note: running").count(),
        1,
        "{output}"
    );
    assert!(output.stderr.contains("fatal:"), "{output}");
    assert!(
        output.stderr.contains("= help: see git's message above"),
        "{output}"
    );
    let data = project.orch("list --changed --fetch --format json").data();
    assert!(
        data["refused"]["problem"]
            .as_str()
            .unwrap()
            .contains("git fetch"),
        "{data}"
    );
}

#[test]
fn base_is_not_fetched_without_fetch() {
    let repositories = long();
    let project = repositories.project();
    let before = fs::read(project.path(".git/shallow")).unwrap();
    assert_eq!(project.orch(LIST).code(), 4);
    assert_eq!(fs::read(project.path(".git/shallow")).unwrap(), before);
}
