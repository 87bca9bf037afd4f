//! The base of `--changed`: what it is, and when it is refused.
//!
//! What CI providers do before a job begins is done here by the same commands of git.

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

mod developer {
    use super::*;

    #[test]
    fn a_branch_has_changed_what_it_did_since_it_left_the_default_branch() {
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
    fn what_a_branch_merged_from_the_default_branch_is_not_its_change() {
        let repositories = two_branches();
        let project = repositories.clone("--branch=feature");
        project.merge("merge", "origin/main");
        assert_snapshot!(project.orch(LIST), @"
        a
        [stderr]
        base <second>: merge base of HEAD and origin/main
        ");
    }

    #[test]
    fn a_branch_without_commits_of_its_own_has_changed_nothing() {
        let repositories = two_branches();
        let project = repositories.clone("");
        project.git("checkout -q -b new");
        assert_snapshot!(project.orch(LIST), @"
        [stderr]
        base <second>: merge base of HEAD and origin/main, which is HEAD itself
        note: no stack has changed since <second>
        ");
    }

    #[test]
    fn a_branch_that_is_behind_has_changed_nothing() {
        let repositories = two_branches();
        let project = repositories.clone("");
        project.git("checkout -q -b old HEAD~1");
        assert_snapshot!(project.orch(LIST), @"
        [stderr]
        base <start>: merge base of HEAD and origin/main, which is HEAD itself
        note: no stack has changed since <start>
        ");
    }

    #[test]
    fn what_is_not_committed_counts_on_every_branch() {
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
    fn the_default_branch_at_the_tip_of_the_remote_has_changed_what_its_last_commit_did() {
        let repositories = two_branches();
        let project = repositories.clone("");
        assert_snapshot!(project.orch(LIST), @"
        b
        [stderr]
        base <start>: first parent of HEAD, which is at origin/main
        ");
    }

    #[test]
    fn of_a_merge_commit_on_the_default_branch_the_first_parent_counts() {
        let repositories = two_branches();
        repositories.author().merge("merge", "feature");
        let project = repositories.clone("");
        assert_snapshot!(project.orch(LIST), @"
        a
        [stderr]
        base <second>: first parent of HEAD, which is at origin/main
        ");
    }

    #[test]
    fn the_default_branch_ahead_of_the_remote_has_changed_what_is_not_pushed() {
        let repositories = two_branches();
        let project = repositories.clone("");
        project.commit("third", "c");
        project.commit("fourth", "d");
        assert_snapshot!(project.orch(LIST), @"
        c
        d
        [stderr]
        base <second>: merge base of HEAD and origin/main
        ");
    }

    #[test]
    fn the_default_branch_behind_the_remote_has_changed_nothing() {
        let repositories = two_branches();
        let project = repositories.clone("");
        project.git("reset -q --hard HEAD~1");
        assert_snapshot!(project.orch(LIST), @"
        [stderr]
        base <start>: merge base of HEAD and origin/main, which is HEAD itself
        note: no stack has changed since <start>
        ");
    }

    #[test]
    fn a_detached_head_at_the_tip_of_the_default_branch_is_like_the_branch() {
        let repositories = two_branches();
        let project = repositories.clone("");
        project.git("checkout -q --detach");
        assert_snapshot!(project.orch(LIST), @"
        b
        [stderr]
        base <start>: first parent of HEAD, which is at origin/main
        ");
    }

    #[test]
    fn a_detached_head_elsewhere_is_like_a_branch() {
        let repositories = two_branches();
        let project = repositories.clone("");
        project.git("checkout -q --detach origin/feature");
        assert_snapshot!(project.orch(LIST), @"
        a
        [stderr]
        base <start>: merge base of HEAD and origin/main
        ");
    }

    #[test]
    fn where_branches_cross_either_base_does() {
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
    fn the_first_commit_has_no_parent() {
        let repositories = Repositories::new();
        let project = repositories.clone("");
        assert_snapshot!(project.orch(LIST), @"
        [stderr]
        error: what has changed is unknown
          caused by: HEAD is the first commit of the repository and has no parent to compare with
          = help: leave out `--changed` to act on all stacks, or name a base with `--base REV`
        [exit status 4]
        ");
    }

    #[test]
    fn without_a_commit_there_is_no_base() {
        let sandbox = Sandbox::layout("a");
        sandbox.git_init();
        assert_snapshot!(sandbox.orch(LIST), @"
        [stderr]
        error: what has changed is unknown
          caused by: the repository has no commit yet, so nothing can have changed since one
          = help: commit first, or leave out `--changed` to act on all stacks
        [exit status 4]
        ");
        assert_snapshot!(sandbox.orch("list --changed --base HEAD"), @"
        [stderr]
        error: what has changed is unknown
          caused by: the repository has no commit yet, so nothing can have changed since one
          = help: commit first, or leave out `--changed` to act on all stacks
        [exit status 4]
        ");
    }

    #[test]
    fn without_git_there_is_no_base() {
        let sandbox = Sandbox::layout("a");
        assert_snapshot!(sandbox.orch(LIST), @"
        [stderr]
        error: what has changed is unknown
          caused by: `$ROOT` is not in a git repository
          = help: change into a git repository, or leave out `--changed` to act on all stacks
        [exit status 4]
        ");
        assert_snapshot!(sandbox.orch("list --changed --base HEAD --format json"), @r#"
        {"format":1,"refused":{"problem":"`$ROOT` is not in a git repository","command":null},"diagnostics":[],"errors":[]}
        [stderr]
        error: what has changed is unknown
          caused by: `$ROOT` is not in a git repository
          = help: change into a git repository, or leave out `--changed` to act on all stacks
        [exit status 4]
        "#);
    }

    #[test]
    fn histories_without_a_common_commit_have_no_base() {
        let repositories = Repositories::new();
        let author = repositories.author();
        author.git("checkout -q --orphan other");
        author.commit("other", "a");
        let project = repositories.clone("--branch=other");
        assert_snapshot!(project.orch(LIST), @"
        [stderr]
        error: what has changed is unknown
          caused by: HEAD and origin/main have no commit in common
          = help: name a base with `--base REV`
        [exit status 4]
        ");
        let fetched = project.orch("list --changed --fetch");
        assert_eq!(fetched.to_string(), project.orch(LIST).to_string());
    }
}

mod remote {
    use super::*;

    /// A repository that was never pushed anywhere.
    fn without_remote() -> Repositories {
        let repositories = two_branches();
        let project = repositories.clone("");
        project.git("branch feature origin/feature");
        project.git("remote remove origin");
        repositories
    }

    #[test]
    fn without_one_the_default_branch_has_changed_what_its_last_commit_did() {
        let repositories = without_remote();
        assert_snapshot!(repositories.project().orch(LIST), @"
        b
        [stderr]
        base <start>: first parent of HEAD, which is at main
        ");
    }

    #[test]
    fn without_one_a_branch_is_compared_with_the_local_default_branch() {
        let repositories = without_remote();
        let project = repositories.project();
        project.git("checkout -q feature");
        assert_snapshot!(project.orch(LIST), @"
        a
        [stderr]
        base <start>: merge base of HEAD and main
        ");
    }

    #[test]
    fn without_one_a_single_branch_is_the_default_branch_whatever_its_name() {
        let repositories = without_remote();
        let project = repositories.project();
        project.git("branch -q -D feature");
        project.git("branch -q -m main trunk");
        assert_snapshot!(project.orch(LIST), @"
        b
        [stderr]
        base <start>: first parent of HEAD, which is at trunk
        ");
    }

    #[test]
    fn without_one_git_may_say_how_default_branches_are_called() {
        let repositories = without_remote();
        let project = repositories.project();
        project.git("branch -q -m main trunk");
        assert_snapshot!(project.orch(LIST), @"
        [stderr]
        error: what has changed is unknown
          caused by: the default branch is unknown: there is neither a remote nor a branch `main` or `master`
          = help: set `config.git.default_branch`, or name a base with `--base REV`
        [exit status 4]
        ");
        project.git("config init.defaultBranch trunk");
        assert_snapshot!(project.orch(LIST), @"
        b
        [stderr]
        base <start>: first parent of HEAD, which is at trunk
        ");
    }

    #[test]
    fn a_single_one_is_it_whatever_its_name() {
        let repositories = two_branches();
        let project = repositories.clone("--origin=hub");
        assert_snapshot!(project.orch(LIST), @"
        b
        [stderr]
        base <start>: first parent of HEAD, which is at hub/main
        ");
    }

    #[test]
    fn of_several_origin_is_it() {
        let repositories = two_branches();
        let project = repositories.clone("");
        project.git("remote add fork $URL");
        assert_snapshot!(project.orch(LIST), @"
        b
        [stderr]
        base <start>: first parent of HEAD, which is at origin/main
        ");
    }

    #[test]
    fn of_several_others_it_is_the_one_that_the_branch_follows() {
        let repositories = two_branches();
        let project = repositories.clone("--origin=hub");
        project.git("remote add fork $URL");
        assert_snapshot!(project.orch(LIST), @"
        b
        [stderr]
        base <start>: first parent of HEAD, which is at hub/main
        ");
        project.git("checkout -q --no-track -b new");
        assert_snapshot!(project.orch(LIST), @"
        [stderr]
        error: what has changed is unknown
          caused by: the repository has several remotes, `fork`, `hub`
          = help: choose one: `config.git.default_remote` in the configuration
        [exit status 4]
        ");
    }

    #[test]
    fn the_configuration_decides() {
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

    #[test]
    fn a_configuration_that_names_what_does_not_exist_is_refused() {
        let configured = |name: &str, value: &str| {
            let repositories = two_branches();
            let project = repositories.clone("");
            let text = format!("orch {{\nconfig {{\ngit {{\n{name} = \"{value}\"\n}}\n}}\n}}\n");
            project.write("git.tm.hcl", &text);
            project.orch(LIST)
        };
        assert_snapshot!(configured("default_remote", "hub"), @"
        [stderr]
        error: what has changed is unknown
          caused by: the repository has no remote `hub`, which `config.git.default_remote` names
          = help: run `git remote add hub URL`, or correct the configuration
        [exit status 4]
        ");
        assert_snapshot!(configured("default_remote", "--upload-pack=x"), @"
        [stderr]
        error: what has changed is unknown
          caused by: the repository has no remote `--upload-pack=x`, which `config.git.default_remote` names
          = help: run `git remote add '--upload-pack=x' URL`, or correct the configuration
        [exit status 4]
        ");
        assert_snapshot!(configured("default_branch", "develop"), @"
        [stderr]
        error: what has changed is unknown
          caused by: the default branch `origin/develop` is not in this clone
          = help: run `git fetch origin +refs/heads/develop:refs/remotes/origin/develop`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        assert_snapshot!(configured("default_branch", "a..b"), @"
        [stderr]
        error: what has changed is unknown
          caused by: `config.git.default_branch` is `a..b`, which cannot be a branch
          = help: correct the configuration
        [exit status 4]
        ");
        assert_snapshot!(configured("default_branch", "--all"), @"
        [stderr]
        error: what has changed is unknown
          caused by: `config.git.default_branch` is `--all`, which cannot be a branch
          = help: correct the configuration
        [exit status 4]
        ");
    }

    #[test]
    fn its_head_says_what_the_default_branch_is() {
        let repositories = Repositories::new();
        let author = repositories.author();
        author.git("branch -q -m main develop");
        author.git("checkout -q -b main");
        author.commit("released", "a");
        author.git("checkout -q develop");
        author.commit("developed", "b");
        let project = repositories.clone("--branch=develop");
        project.git("remote set-head origin develop");
        project.git("checkout -q -b new");
        project.commit("new", "c");
        assert_snapshot!(project.orch(LIST), @"
        c
        [stderr]
        base <developed>: merge base of HEAD and origin/develop
        ");
    }

    #[test]
    fn where_its_head_was_never_seen_the_usual_names_count() {
        let repositories = two_branches();
        let project = repositories.runner();
        project.git("fetch -q origin");
        project.git("checkout -q feature");
        assert_snapshot!(project.orch(LIST), @"
        a
        [stderr]
        base <start>: merge base of HEAD and origin/main
        ");
        project.git("update-ref -d refs/remotes/origin/main");
        project.git("update-ref refs/remotes/origin/master feature~1");
        assert_snapshot!(project.orch(LIST), @"
        a
        [stderr]
        base <start>: merge base of HEAD and origin/master
        ");
    }

    #[test]
    fn a_branch_that_was_not_cloned_can_be_fetched() {
        let repositories = two_branches();
        let project = repositories.clone("--single-branch --branch=feature");
        let refused = project.orch(LIST);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: the default branch `origin/main` is not in this clone
          = help: run `git fetch origin +refs/heads/main:refs/remotes/origin/main`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch(LIST), @"
        a
        [stderr]
        base <start>: merge base of HEAD and origin/main
        ");
        assert!(!project.is_shallow());
    }
}

mod named {
    use super::*;

    #[test]
    fn a_base_is_that_commit_and_no_merge_base() {
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
    fn a_tag_stands_for_its_commit() {
        let repositories = two_branches();
        repositories.author().git("tag -a -m release v1 main~1");
        let project = repositories.clone("");
        assert_snapshot!(project.orch("list -c -B v1"), @"
        b
        [stderr]
        base <start>: --base v1
        ");
    }

    #[test]
    fn a_base_without_changed_is_a_wrong_command_line() {
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
    fn an_empty_base_is_a_wrong_command_line() {
        let sandbox = Sandbox::layout("a");
        assert_snapshot!(sandbox.orch("list --changed --base ''"), @"
        [stderr]
        error: a value is required for '--base <REV>' but none was supplied

        For more information, try '--help'.
        [exit status 64]
        ");
        assert_snapshot!(sandbox.orch("list --changed --base="), @"
        [stderr]
        error: a value is required for '--base <REV>' but none was supplied

        For more information, try '--help'.
        [exit status 64]
        ");
    }

    #[test]
    fn a_base_never_becomes_an_option_of_git() {
        let repositories = two_branches();
        let project = repositories.clone("");
        let output = project.orch("list --changed --base --all");
        assert_eq!(output.code(), 64, "{output}");
        assert_snapshot!(project.orch("list --changed --base=--all"), @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `--all`
          = help: name a commit, branch or tag that exists
        [exit status 4]
        ");
        assert_snapshot!(project.orch("list --changed --base=origin/--upload-pack=x"), @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `origin/--upload-pack=x`
          = help: name a commit, branch or tag that exists
        [exit status 4]
        ");
        assert_snapshot!(project.orch("list --changed '--base=origin/a b'"), @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `origin/a b`
          = help: name a commit, branch or tag that exists
        [exit status 4]
        ");
    }

    #[test]
    fn a_range_is_no_revision() {
        let repositories = two_branches();
        let project = repositories.clone("");
        for range in [
            "main..origin/feature",
            "main...origin/feature",
            "^main",
            "HEAD^@",
            "HEAD^!",
        ] {
            let output = project.orch(&format!("list --changed --base={range}"));
            assert_eq!(output.code(), 4, "{output}");
        }
        assert_snapshot!(project.orch("list --changed --base=main..origin/feature"), @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `main..origin/feature`
          = help: name a commit, branch or tag that exists
        [exit status 4]
        ");
    }

    #[test]
    fn what_is_no_commit_is_no_base() {
        let repositories = two_branches();
        let project = repositories.clone("");
        assert_snapshot!(project.orch("list --changed --base=HEAD:a"), @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `HEAD:a`
          = help: name a commit, branch or tag that exists
        [exit status 4]
        ");
    }

    #[test]
    fn a_branch_that_is_not_here_is_that_of_the_remote() {
        let repositories = two_branches();
        let project = repositories.clone("");
        assert_snapshot!(project.orch("list --changed --base=feature"), @"
        a
        b
        [stderr]
        base <feature>: --base feature, which is origin/feature
        ");
    }

    #[test]
    fn a_branch_of_the_remote_that_was_not_cloned_can_be_fetched() {
        let repositories = two_branches();
        let project = repositories.clone("--single-branch");
        let refused = project.orch("list --changed --base origin/feature");
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `origin/feature`
          = help: run `git fetch origin +refs/heads/feature:refs/remotes/origin/feature`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch("list --changed --base origin/feature"), @"
        a
        b
        [stderr]
        base <feature>: --base origin/feature
        ");
    }

    #[test]
    fn a_tag_that_was_not_cloned_can_be_fetched() {
        let repositories = two_branches();
        repositories.author().git("tag v1 main~1");
        let project = repositories.clone("--no-tags");
        let refused = project.orch("list --changed --base v1");
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `v1`
          = help: run `git fetch --tags origin`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch("list --changed --base v1"), @"
        b
        [stderr]
        base <start>: --base v1
        ");
    }

    #[test]
    fn what_the_remote_does_not_have_is_fetched_once() {
        let repositories = two_branches();
        let project = repositories.clone("");
        let output = project.orch("list --changed --fetch --base nonsense");
        assert_snapshot!(output.without_git(), @"
        [stderr]
        note: running `git fetch --tags origin`
        error: what has changed is unknown
          caused by: there is no revision `nonsense`
          = help: fetching did not help; name another base with `--base REV`
        [exit status 4]
        ");
    }

    #[test]
    fn without_a_remote_nothing_can_be_fetched() {
        let repositories = two_branches();
        let project = repositories.clone("");
        project.git("remote remove origin");
        assert_snapshot!(project.orch("list --changed --base nonsense"), @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `nonsense`
          = help: name a commit, branch or tag that exists
        [exit status 4]
        ");
    }

    #[test]
    fn what_is_no_name_is_not_fetched() {
        let repositories = two_branches();
        let project = repositories.clone("");
        for base in [
            "main..origin/feature",
            "origin/--upload-pack=x",
            "origin/a..b",
            "--all",
            "HEAD~99",
            "@~99",
            "HEAD:a",
        ] {
            let output = project.orch(&format!("list --changed --fetch --base={base}"));
            assert_eq!(output.code(), 4, "{output}");
            assert!(!output.stderr.contains("git fetch"), "{output}");
        }
    }

    #[test]
    fn a_named_base_goes_before_what_ci_says() {
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
}

mod github {
    use super::*;

    /// What GitHub says in a job for an event.
    struct Event {
        name: &'static str,
        file: String,
    }

    impl Event {
        fn new(repositories: &Repositories, name: &'static str, text: &str) -> Self {
            Event {
                name,
                file: repositories.write_outside("event.json", text),
            }
        }

        fn orch(&self, project: &Checkout<'_>, arguments: &str) -> Output {
            let mut variables = vec![
                ("CI", "true"),
                ("GITHUB_ACTIONS", "true"),
                ("GITHUB_EVENT_NAME", self.name),
                ("GITHUB_EVENT_PATH", &self.file),
            ];
            match self.name {
                "push" | "workflow_dispatch" => variables.extend([
                    ("GITHUB_REF_NAME", "main"),
                    ("GITHUB_REF_TYPE", "branch"),
                    ("GITHUB_REF", "refs/heads/main"),
                ]),
                _ => variables.push(("GITHUB_BASE_REF", "main")),
            }
            project.orch_in_ci(arguments, &variables)
        }
    }

    /// A pull request of `feature`, which GitHub has merged into `main` to see whether that works.
    fn pull_request() -> (Repositories, Event) {
        let repositories = two_branches();
        let author = repositories.author();
        author.git("checkout -q --detach main");
        author.merge("synthetic", "feature");
        author.git("update-ref refs/pull/1/merge HEAD");
        author.git("checkout -q main");
        let text = format!(
            r#"{{"pull_request": {{
                "head": {{"sha": "{}", "ref": "feature"}},
                "base": {{"sha": "{}", "ref": "main"}}
            }}}}"#,
            author.id("feature"),
            author.id("main"),
        );
        let event = Event::new(&repositories, "pull_request", &text);
        (repositories, event)
    }

    /// What actions/checkout does by default, but for the depth.
    fn check_out<'r>(repositories: &'r Repositories, depth: &str, commit: &str) -> Checkout<'r> {
        let project = repositories.runner();
        if depth == "0" {
            project.git("fetch -q --prune origin +refs/heads/*:refs/remotes/origin/* +refs/tags/*:refs/tags/*");
            project.git(&format!(
                "fetch -q origin +{commit}:refs/remotes/pull/1/merge"
            ));
        } else {
            let refspec = format!("+{commit}:refs/remotes/pull/1/merge");
            project.git(&format!(
                "fetch -q --no-tags --depth={depth} origin {refspec}"
            ));
        }
        project.git("checkout -q --force refs/remotes/pull/1/merge");
        project
    }

    /// What actions/checkout does for the push of a branch.
    fn check_out_branch(repositories: &Repositories, depth: u32) -> Checkout<'_> {
        let project = repositories.runner();
        let main = repositories.author().id("main");
        let refspec = format!("+{main}:refs/remotes/origin/main");
        project.git(&format!(
            "fetch -q --no-tags --depth={depth} origin {refspec}"
        ));
        project.git("checkout -q --force -B main refs/remotes/origin/main");
        project
    }

    #[test]
    fn a_pull_request_at_depth_1_lacks_its_base_and_one_fetch_mends_that() {
        let (repositories, event) = pull_request();
        let merge = repositories.author().id("refs/pull/1/merge");
        let project = check_out(&repositories, "1", &merge);
        let refused = event.orch(&project, LIST);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: commit <second> is not in this shallow clone: first parent of the merge commit that GitHub Actions made
          = help: run `git fetch --depth=1 origin <second>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        let data = event.orch(&project, "list --changed --format json").data();
        assert_snapshot!(data["refused"], @r#"{"command":"git fetch --depth=1 origin <second>","problem":"commit <second> is not in this shallow clone: first parent of the merge commit that GitHub Actions made"}"#);
        mend(&project, &refused);
        assert_snapshot!(event.orch(&project, LIST), @"
        a
        [stderr]
        base <second>: first parent of the merge commit that GitHub Actions made
        ");
    }

    #[test]
    fn a_pull_request_at_depth_1_can_fetch_its_base_itself() {
        let (repositories, event) = pull_request();
        let merge = repositories.author().id("refs/pull/1/merge");
        let project = check_out(&repositories, "1", &merge);
        let output = event.orch(&project, "list --changed --fetch");
        assert_snapshot!(output.without_git(), @"
        a
        [stderr]
        note: running `git fetch --depth=1 origin <second>`
        base <second>: first parent of the merge commit that GitHub Actions made
        ");
        assert!(project.is_shallow());
    }

    #[test]
    fn a_pull_request_at_depth_2_has_its_base() {
        let (repositories, event) = pull_request();
        let merge = repositories.author().id("refs/pull/1/merge");
        let project = check_out(&repositories, "2", &merge);
        assert_snapshot!(event.orch(&project, LIST), @"
        a
        [stderr]
        base <second>: first parent of the merge commit that GitHub Actions made
        ");
    }

    #[test]
    fn a_pull_request_with_all_history_has_its_base() {
        let (repositories, event) = pull_request();
        let merge = repositories.author().id("refs/pull/1/merge");
        let project = check_out(&repositories, "0", &merge);
        assert_snapshot!(event.orch(&project, LIST), @"
        a
        [stderr]
        base <second>: first parent of the merge commit that GitHub Actions made
        ");
    }

    #[test]
    fn a_pull_request_whose_target_moved_on_is_compared_with_what_was_merged() {
        let (repositories, event) = pull_request();
        let author = repositories.author();
        let merge = author.id("refs/pull/1/merge");
        author.commit("later", "d");
        let project = check_out(&repositories, "0", &merge);
        assert_snapshot!(event.orch(&project, LIST), @"
        a
        [stderr]
        base <second>: first parent of the merge commit that GitHub Actions made
        ");
    }

    #[test]
    fn the_head_of_a_pull_request_is_compared_with_where_it_left_the_target() {
        let (repositories, event) = pull_request();
        let feature = repositories.author().id("feature");
        let project = check_out(&repositories, "0", &feature);
        assert_snapshot!(event.orch(&project, LIST), @"
        a
        [stderr]
        base <start>: merge base of HEAD and origin/main (GitHub Actions)
        ");
    }

    #[test]
    fn the_head_of_a_pull_request_may_have_merged_what_its_target_gained_since() {
        let (repositories, event) = pull_request();
        let author = repositories.author();
        author.commit("third", "c");
        author.git("checkout -q feature");
        let feature = author.merge("update", "main");
        author.git("checkout -q main");
        author.commit("later", "d");
        let project = check_out(&repositories, "0", &feature);
        assert_snapshot!(event.orch(&project, LIST), @"
        a
        [stderr]
        base <third>: merge base of HEAD and origin/main (GitHub Actions)
        ");
    }

    #[test]
    fn a_pull_request_that_is_already_merged_still_has_its_changes() {
        let (repositories, event) = pull_request();
        let author = repositories.author();
        let feature = author.id("feature");
        author.merge("merged", "feature");
        let project = check_out(&repositories, "0", &feature);
        assert_snapshot!(event.orch(&project, LIST), @"
        a
        [stderr]
        base <start>: merge base of HEAD and main at <second> (GitHub Actions)
        ");
    }

    #[test]
    fn the_head_of_a_pull_request_at_depth_1_needs_history() {
        let (repositories, event) = pull_request();
        let feature = repositories.author().id("feature");
        let project = check_out(&repositories, "1", &feature);
        let refused = event.orch(&project, LIST);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: the target of this change, `main`, is not in this clone (GitHub Actions)
          = help: run `git fetch --unshallow origin <second> <feature>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(event.orch(&project, LIST), @"
        a
        [stderr]
        base <start>: merge base of HEAD and main at <second> (GitHub Actions)
        ");
    }

    #[test]
    fn the_head_of_a_pull_request_at_depth_1_can_fetch_history_itself() {
        let (repositories, event) = pull_request();
        let feature = repositories.author().id("feature");
        let project = check_out(&repositories, "1", &feature);
        let output = event.orch(&project, "list --changed --fetch");
        assert_snapshot!(output.without_git(), @"
        a
        [stderr]
        note: running `git fetch --depth=1 origin <second>`
        note: running `git fetch --deepen=50 origin <feature> <second>`
        base <start>: merge base of HEAD and main at <second> (GitHub Actions)
        ");
    }

    #[test]
    fn a_pull_request_target_has_the_target_checked_out() {
        let (repositories, mut event) = pull_request();
        event.name = "pull_request_target";
        let main = repositories.author().id("main");
        let project = check_out(&repositories, "0", &main);
        assert_snapshot!(event.orch(&project, LIST), @"
        [stderr]
        error: what has changed is unknown
          caused by: HEAD (<second>) is part of origin/main, so it is not the change that GitHub Actions is to check
          = help: check out the change itself, or name a base with `--base REV`
        [exit status 4]
        ");
    }

    #[test]
    fn a_pull_request_does_without_its_event_file() {
        let (repositories, mut event) = pull_request();
        event.file = "missing.json".to_owned();
        let merge = repositories.author().id("refs/pull/1/merge");
        let project = check_out(&repositories, "0", &merge);
        assert_snapshot!(event.orch(&project, LIST), @"
        a
        [stderr]
        base <second>: merge base of HEAD and origin/main (GitHub Actions)
        ");
    }

    /// A push of the last two commits of `main`.
    fn push() -> (Repositories, Event) {
        let repositories = Repositories::new();
        let author = repositories.author();
        author.commit("second", "a");
        author.commit("third", "b");
        author.commit("fourth", "c");
        let text = format!(r#"{{"before": "{}"}}"#, author.id("main~2"));
        let event = Event::new(&repositories, "push", &text);
        (repositories, event)
    }

    #[test]
    fn a_push_has_changed_what_all_its_commits_did() {
        let (repositories, event) = push();
        let project = check_out_branch(&repositories, 10);
        assert_snapshot!(event.orch(&project, LIST), @"
        b
        c
        [stderr]
        base <second>: the commit before this push (GitHub Actions)
        ");
    }

    #[test]
    fn a_push_at_depth_1_lacks_its_base_and_one_fetch_mends_that() {
        let (repositories, event) = push();
        let project = check_out_branch(&repositories, 1);
        let refused = event.orch(&project, LIST);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: commit <second> is not in this shallow clone: the commit before this push (GitHub Actions)
          = help: run `git fetch --depth=1 origin <second>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(event.orch(&project, LIST), @"
        b
        c
        [stderr]
        base <second>: the commit before this push (GitHub Actions)
        ");
    }

    #[test]
    fn the_push_of_a_new_branch_has_no_commit_before_it() {
        let (repositories, mut event) = push();
        event.file =
            repositories.write_outside("event.json", &format!(r#"{{"before": "{:040}"}}"#, 0));
        let project = check_out_branch(&repositories, 10);
        assert_snapshot!(event.orch(&project, LIST), @"
        c
        [stderr]
        base <third>: first parent of HEAD, which is at origin/main
        ");
    }

    #[test]
    fn after_a_forced_push_the_commit_before_it_is_fetched_by_its_name() {
        let repositories = Repositories::new();
        let author = repositories.author();
        let old = author.commit("replaced", "a");
        repositories.publish();
        author.git("reset -q --hard HEAD~1");
        author.commit("forced", "b");
        let event = Event::new(&repositories, "push", &format!(r#"{{"before": "{old}"}}"#));
        let project = repositories.clone("");
        let refused = event.orch(&project, LIST);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: commit <replaced> is not in this clone: the commit before this push (GitHub Actions)
          = help: run `git fetch origin <replaced>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(event.orch(&project, LIST), @"
        a
        b
        [stderr]
        base <replaced>: the commit before this push (GitHub Actions)
        ");
        assert!(!project.is_shallow());
    }

    #[test]
    fn a_merge_group_has_changed_what_its_entry_did() {
        let repositories = two_branches();
        let author = repositories.author();
        author.git("checkout -q -b queue");
        author.commit("ahead", "c");
        author.merge("entry", "feature");
        let text = format!(
            r#"{{"merge_group": {{"base_sha": "{}", "base_ref": "refs/heads/main"}}}}"#,
            author.id("queue~1"),
        );
        let event = Event::new(&repositories, "merge_group", &text);
        let entry = author.id("queue");
        let project = check_out(&repositories, "0", &entry);
        assert_snapshot!(event.orch(&project, LIST), @"
        a
        [stderr]
        base <ahead>: the commit before this entry of the merge queue (GitHub Actions)
        ");
    }

    #[test]
    fn a_merge_group_at_depth_1_lacks_its_base_and_one_fetch_mends_that() {
        let repositories = two_branches();
        let author = repositories.author();
        let base = author.id("main");
        author.git("checkout -q -b queue");
        let entry = author.merge("entry", "feature");
        let text = format!(r#"{{"merge_group": {{"base_sha": "{base}"}}}}"#);
        let event = Event::new(&repositories, "merge_group", &text);
        let project = check_out(&repositories, "1", &entry);
        mend(&project, &event.orch(&project, LIST));
        assert_snapshot!(event.orch(&project, LIST), @"
        a
        [stderr]
        base <second>: the commit before this entry of the merge queue (GitHub Actions)
        ");
    }

    #[test]
    fn an_event_without_a_base_is_no_obstacle() {
        let (repositories, _) = push();
        let event = Event::new(&repositories, "workflow_dispatch", "{}");
        let project = check_out_branch(&repositories, 2);
        assert_snapshot!(event.orch(&project, LIST), @"
        c
        [stderr]
        base <third>: first parent of HEAD, which is at origin/main
        ");
    }

    #[test]
    fn the_push_of_a_tag_at_the_tip_is_compared_with_the_first_parent() {
        let (repositories, _) = push();
        let file =
            repositories.write_outside("event.json", &format!(r#"{{"before": "{:040}"}}"#, 0));
        let main = repositories.author().id("main");
        let project = check_out(&repositories, "0", &main);
        let variables = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_EVENT_NAME", "push"),
            ("GITHUB_EVENT_PATH", &*file),
            ("GITHUB_REF_NAME", "v1"),
            ("GITHUB_REF_TYPE", "tag"),
        ];
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        c
        [stderr]
        base <third>: first parent of HEAD, which is at origin/main
        ");
    }

    #[test]
    fn a_job_that_comes_late_is_still_compared_with_the_first_parent() {
        let (repositories, _) = push();
        let author = repositories.author();
        let event = Event::new(&repositories, "workflow_dispatch", "{}");
        let project = check_out_branch(&repositories, 10);
        author.commit("later", "d");
        repositories.publish();
        project.git("fetch -q origin");
        assert_snapshot!(event.orch(&project, LIST), @"
        c
        [stderr]
        base <third>: first parent of HEAD, a commit of origin/main (GitHub Actions)
        ");
    }

    #[test]
    fn a_push_whose_event_cannot_be_read_is_refused() {
        let (repositories, mut event) = push();
        let project = check_out_branch(&repositories, 10);
        event.file = "missing.json".to_owned();
        let output = event.orch(&project, LIST);
        assert_eq!(output.code(), 4, "{output}");
        assert!(output.stderr.contains("cannot be read"), "{output}");
        event.file = repositories.write_outside("event.json", "{");
        let output = event.orch(&project, LIST);
        assert_eq!(output.code(), 4, "{output}");
        assert!(output.stderr.contains("is not JSON"), "{output}");
        event.file = String::new();
        assert_snapshot!(event.orch(&project, LIST), @"
        [stderr]
        error: what has changed is unknown
          caused by: GitHub Actions runs this for a `push`, and its event file (GITHUB_EVENT_PATH) is not set
          = help: name a base with `--base REV`
        [exit status 4]
        ");
        assert_snapshot!(event.orch(&project, "list --changed --base HEAD~1"), @"
        c
        [stderr]
        base <third>: --base HEAD~1
        ");
    }
}

mod gitlab {
    use super::*;

    const ZEROS: &str = "0000000000000000000000000000000000000000";

    /// What a runner of GitLab does for a pipeline of this commit.
    fn check_out<'r>(repositories: &'r Repositories, reference: &str, depth: u32) -> Checkout<'r> {
        let author = repositories.author();
        let commit = author.id(reference);
        author.git(&format!("update-ref refs/pipelines/7 {commit}"));
        let project = repositories.runner();
        project.git(&format!(
            "fetch -q --depth={depth} --no-tags origin +refs/pipelines/7:refs/pipelines/7"
        ));
        project.git(&format!("checkout -q --force --detach {commit}"));
        project
    }

    #[test]
    fn a_merge_request_is_compared_with_its_diff_base() {
        let repositories = two_branches();
        let start = repositories.author().id("feature~1");
        let project = check_out(&repositories, "feature", 20);
        let variables = [
            ("GITLAB_CI", "true"),
            ("CI_PIPELINE_SOURCE", "merge_request_event"),
            ("CI_MERGE_REQUEST_IID", "1"),
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", &start),
            ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
            ("CI_COMMIT_BEFORE_SHA", ZEROS),
        ];
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <start>: the diff base of this merge request (GitLab CI)
        ");
    }

    #[test]
    fn the_diff_base_of_a_long_merge_request_is_fetched_by_its_name() {
        let repositories = two_branches();
        let author = repositories.author();
        author.git("checkout -q feature");
        author.grow(30);
        let start = author.id("main~1");
        let project = check_out(&repositories, "feature", 20);
        let variables = [
            ("GITLAB_CI", "true"),
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", &*start),
            ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
        ];
        let refused = project.orch_in_ci(LIST, &variables);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: commit <start> is not in this shallow clone: the diff base of this merge request (GitLab CI)
          = help: run `git fetch --depth=1 origin <start>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <start>: the diff base of this merge request (GitLab CI)
        ");
    }

    #[test]
    fn merged_results_are_compared_with_the_target() {
        let repositories = two_branches();
        let author = repositories.author();
        let (main, feature) = (author.id("main"), author.id("feature"));
        let start = author.id("feature~1");
        author.git("checkout -q --detach main");
        let merged = author.merge("merged", "feature");
        author.git("checkout -q main");
        let variables = [
            ("GITLAB_CI", "true"),
            ("CI_MERGE_REQUEST_EVENT_TYPE", "merged_result"),
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", &start),
            ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
            ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", &main),
            ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", &feature),
            ("CI_COMMIT_BEFORE_SHA", ZEROS),
        ];
        let project = check_out(&repositories, &merged, 20);
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <second>: first parent of the merge commit that GitLab CI made
        ");
    }

    #[test]
    fn an_entry_of_a_merge_train_is_compared_with_the_entry_before() {
        let repositories = two_branches();
        let author = repositories.author();
        author.git("checkout -q -b other main");
        author.commit("other", "c");
        author.git("checkout -q --detach main");
        let before = author.merge("before", "other");
        let merged = author.merge("merged", "feature");
        let (main, feature) = (author.id("main"), author.id("feature"));
        author.git("checkout -q main");
        let variables = [
            ("GITLAB_CI", "true"),
            ("CI_MERGE_REQUEST_EVENT_TYPE", "merge_train"),
            ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
            ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", &before),
            ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", &feature),
        ];
        assert_ne!(main, before);
        let project = check_out(&repositories, &merged, 20);
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <before>: first parent of the merge commit that GitLab CI made
        ");
    }

    #[test]
    fn merged_results_at_depth_1_lack_their_base_and_one_fetch_mends_that() {
        let repositories = two_branches();
        let author = repositories.author();
        let (main, feature) = (author.id("main"), author.id("feature"));
        author.git("checkout -q --detach main");
        let merged = author.merge("merged", "feature");
        author.git("checkout -q main");
        let variables = [
            ("GITLAB_CI", "true"),
            ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
            ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", &main),
            ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", &feature),
        ];
        let project = check_out(&repositories, &merged, 1);
        mend(&project, &project.orch_in_ci(LIST, &variables));
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <second>: first parent of the merge commit that GitLab CI made
        ");
    }

    #[test]
    fn a_push_is_compared_with_the_commit_before_it() {
        let repositories = two_branches();
        let author = repositories.author();
        author.commit("third", "c");
        let before = author.id("main~2");
        let project = check_out(&repositories, "main", 20);
        let variables = [
            ("GITLAB_CI", "true"),
            ("CI_COMMIT_BRANCH", "main"),
            ("CI_COMMIT_BEFORE_SHA", &*before),
        ];
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        b
        c
        [stderr]
        base <start>: the commit before this push (GitLab CI)
        ");
    }

    #[test]
    fn a_new_branch_at_the_tip_of_the_default_branch_has_changed_nothing() {
        let repositories = two_branches();
        let project = check_out(&repositories, "main", 20);
        project.git("fetch -q origin");
        let variables = [
            ("GITLAB_CI", "true"),
            ("CI_COMMIT_BRANCH", "new"),
            ("CI_COMMIT_BEFORE_SHA", ZEROS),
        ];
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        [stderr]
        base <second>: merge base of HEAD and origin/main, which is HEAD itself
        note: no stack has changed since <second>
        ");
    }

    #[test]
    fn a_new_branch_has_no_commit_before_it_and_lacks_the_default_branch() {
        let repositories = two_branches();
        let project = check_out(&repositories, "feature", 20);
        let variables = [
            ("GITLAB_CI", "true"),
            ("CI_COMMIT_BRANCH", "feature"),
            ("CI_COMMIT_BEFORE_SHA", ZEROS),
        ];
        let refused = project.orch_in_ci(LIST, &variables);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: the default branch `origin/main` is not in this clone
          = help: run `git fetch origin +refs/heads/main:refs/remotes/origin/main`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <start>: merge base of HEAD and origin/main
        ");
    }
}

mod bitbucket {
    use super::*;

    #[test]
    fn a_pull_request_has_its_destination_merged_into_it() {
        let repositories = two_branches();
        let main = repositories.author().id("main");
        let project = repositories.clone("--branch=feature --single-branch --depth=50");
        project.git(&format!("fetch -q origin {main}"));
        project.merge("merge", &main);
        let variables = [
            ("BITBUCKET_BUILD_NUMBER", "1"),
            ("BITBUCKET_PR_ID", "1"),
            ("BITBUCKET_BRANCH", "feature"),
            ("BITBUCKET_PR_DESTINATION_BRANCH", "main"),
            ("BITBUCKET_PR_DESTINATION_COMMIT", &main[..12]),
        ];
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <second>: merge base of HEAD and main at <second> (Bitbucket Pipelines)
        ");
    }

    #[test]
    fn a_pull_request_without_its_destination_can_fetch_it() {
        let repositories = two_branches();
        let author = repositories.author();
        let main = author.id("main");
        let project = repositories.clone("--branch=feature --single-branch --depth=50");
        let variables = [
            ("BITBUCKET_BUILD_NUMBER", "1"),
            ("BITBUCKET_PR_ID", "1"),
            ("BITBUCKET_BRANCH", "feature"),
            ("BITBUCKET_PR_DESTINATION_BRANCH", "main"),
            ("BITBUCKET_PR_DESTINATION_COMMIT", &main[..12]),
        ];
        let refused = project.orch_in_ci(LIST, &variables);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: the target of this change, `main`, is not in this clone (Bitbucket Pipelines)
          = help: run `git fetch origin +refs/heads/main:refs/remotes/origin/main`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <start>: merge base of HEAD and origin/main (Bitbucket Pipelines)
        ");
    }

    #[test]
    fn a_push_of_the_default_branch_is_compared_with_the_first_parent() {
        let repositories = two_branches();
        let project = repositories.clone("--branch=main --single-branch --depth=50");
        let variables = [
            ("BITBUCKET_BUILD_NUMBER", "1"),
            ("BITBUCKET_BRANCH", "main"),
        ];
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        b
        [stderr]
        base <start>: first parent of HEAD, which is at origin/main
        ");
    }

    #[test]
    fn a_push_of_another_branch_needs_the_default_branch() {
        let repositories = two_branches();
        let project = repositories.clone("--branch=feature --single-branch --depth=50");
        let variables = [
            ("BITBUCKET_BUILD_NUMBER", "1"),
            ("BITBUCKET_BRANCH", "feature"),
        ];
        let refused = project.orch_in_ci(LIST, &variables);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: the default branch `origin/main` is not in this clone
          = help: run `git fetch origin +refs/heads/main:refs/remotes/origin/main`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <start>: merge base of HEAD and origin/main
        ");
    }
}

mod azure {
    use super::*;

    #[test]
    fn a_pull_request_is_compared_with_what_it_was_merged_into() {
        let repositories = two_branches();
        let author = repositories.author();
        let feature = author.id("feature");
        author.git("checkout -q --detach main");
        let merge = author.merge("synthetic", "feature");
        author.git("update-ref refs/pull/1/merge HEAD");
        author.git("checkout -q main");
        author.commit("later", "d");
        let project = repositories.runner();
        project.git("fetch -q --tags origin +refs/heads/*:refs/remotes/origin/* +refs/pull/1/merge:refs/remotes/pull/1/merge");
        project.git(&format!("checkout -q --force {merge}"));
        let variables = [
            ("TF_BUILD", "True"),
            ("BUILD_REASON", "PullRequest"),
            ("BUILD_SOURCEBRANCH", "refs/pull/1/merge"),
            ("SYSTEM_PULLREQUEST_SOURCECOMMITID", &feature),
            ("SYSTEM_PULLREQUEST_TARGETBRANCH", "refs/heads/main"),
        ];
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <second>: first parent of the merge commit that Azure Pipelines made
        ");
    }

    #[test]
    fn a_pull_request_at_depth_1_lacks_its_base_and_one_fetch_mends_that() {
        let repositories = two_branches();
        let author = repositories.author();
        let feature = author.id("feature");
        author.git("checkout -q --detach main");
        let merge = author.merge("synthetic", "feature");
        author.git("update-ref refs/pull/1/merge HEAD");
        author.git("checkout -q main");
        let project = repositories.runner();
        project.git("fetch -q --depth=1 origin +refs/pull/1/merge:refs/remotes/pull/1/merge");
        project.git(&format!("checkout -q --force {merge}"));
        let variables = [
            ("TF_BUILD", "True"),
            ("BUILD_REASON", "PullRequest"),
            ("SYSTEM_PULLREQUEST_SOURCECOMMITID", &*feature),
            ("SYSTEM_PULLREQUEST_TARGETBRANCH", "main"),
        ];
        let refused = project.orch_in_ci(LIST, &variables);
        mend(&project, &refused);
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <second>: first parent of the merge commit that Azure Pipelines made
        ");
    }

    #[test]
    fn a_push_that_is_built_late_is_still_compared_with_its_first_parent() {
        let repositories = two_branches();
        let author = repositories.author();
        let built = author.id("main");
        author.commit("later", "d");
        let project = repositories.runner();
        project.git("fetch -q origin");
        project.git(&format!("checkout -q --force {built}"));
        let variables = [
            ("TF_BUILD", "True"),
            ("BUILD_REASON", "IndividualCI"),
            ("BUILD_SOURCEBRANCH", "refs/heads/main"),
        ];
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        b
        [stderr]
        base <start>: first parent of HEAD, a commit of origin/main (Azure Pipelines)
        ");
    }
}

mod buildkite {
    use super::*;

    /// What an agent of Buildkite does for a commit.
    fn check_out<'r>(repositories: &'r Repositories, commit: &str) -> Checkout<'r> {
        let project = repositories.clone("");
        project.git(&format!("fetch -q origin {commit}"));
        project.git(&format!("checkout -q --force {commit}"));
        project
    }

    #[test]
    fn a_pull_request_is_compared_with_where_it_left_its_base_branch() {
        let repositories = two_branches();
        let author = repositories.author();
        author.git("branch release main");
        author.git("checkout -q -b fix release");
        let fix = author.commit("fix", "c");
        author.git("checkout -q main");
        let project = check_out(&repositories, &fix);
        let variables = [
            ("BUILDKITE", "true"),
            ("BUILDKITE_BRANCH", "fix"),
            ("BUILDKITE_PULL_REQUEST", "1"),
            ("BUILDKITE_PULL_REQUEST_BASE_BRANCH", "release"),
        ];
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        c
        [stderr]
        base <second>: merge base of HEAD and origin/release (Buildkite)
        ");
    }

    #[test]
    fn a_push_of_the_default_branch_is_compared_with_the_first_parent() {
        let repositories = two_branches();
        let main = repositories.author().id("main");
        let project = check_out(&repositories, &main);
        let variables = [
            ("BUILDKITE", "true"),
            ("BUILDKITE_BRANCH", "main"),
            ("BUILDKITE_PULL_REQUEST", "false"),
            ("BUILDKITE_PULL_REQUEST_BASE_BRANCH", ""),
        ];
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        b
        [stderr]
        base <start>: first parent of HEAD, which is at origin/main
        ");
    }

    #[test]
    fn a_push_of_another_branch_is_compared_with_where_it_left_the_default_branch() {
        let repositories = two_branches();
        let feature = repositories.author().id("feature");
        let project = check_out(&repositories, &feature);
        let variables = [
            ("BUILDKITE", "true"),
            ("BUILDKITE_BRANCH", "feature"),
            ("BUILDKITE_PULL_REQUEST", "false"),
        ];
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <start>: merge base of HEAD and origin/main
        ");
    }

    #[test]
    fn an_entry_of_a_merge_queue_is_compared_with_the_entry_before() {
        let repositories = two_branches();
        let author = repositories.author();
        author.git("checkout -q -b queue");
        let before = author.commit("before", "c");
        let entry = author.merge("entry", "feature");
        let project = check_out(&repositories, &entry);
        let variables = [
            ("BUILDKITE", "true"),
            ("BUILDKITE_BRANCH", "gh-readonly-queue/main/pr-1"),
            ("BUILDKITE_PULL_REQUEST", "false"),
            ("BUILDKITE_MERGE_QUEUE_BASE_BRANCH", "main"),
            ("BUILDKITE_MERGE_QUEUE_BASE_COMMIT", &before),
        ];
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <before>: the commit before this entry of the merge queue (Buildkite)
        ");
    }
}

mod shallow {
    use super::*;

    #[test]
    fn a_branch_or_a_tag_that_is_not_there_is_fetched() {
        let repositories = two_branches();
        repositories.author().git("tag v1 main~1");
        let project = repositories.clone("--depth=1");
        let refused = project.orch("list --changed --base feature");
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `feature` in this shallow clone
          = help: run `git fetch --depth=1 origin +refs/heads/feature:refs/remotes/origin/feature`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch("list --changed --base feature"), @"
        a
        b
        [stderr]
        base <feature>: --base feature, which is origin/feature
        ");
        let refused = project.orch("list --changed --base v1");
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `v1` in this shallow clone
          = help: run `git fetch --depth=1 origin tag v1`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch("list --changed --base v1"), @"
        b
        [stderr]
        base <start>: --base v1
        ");
    }

    #[test]
    fn a_branch_is_fetched_by_orch() {
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
    fn a_base_that_is_there_is_enough() {
        let repositories = two_branches();
        let project = repositories.clone("--depth=1 --no-single-branch");
        assert_snapshot!(project.orch("list --changed --base origin/feature"), @"
        a
        b
        [stderr]
        base <feature>: --base origin/feature
        ");
        assert_snapshot!(project.orch("list --changed --base HEAD"), @"
        [stderr]
        base <second>: --base HEAD, which is HEAD itself
        note: no stack has changed since <second>
        ");
    }

    #[test]
    fn a_base_that_is_not_there_is_refused_and_one_fetch_mends_that() {
        let repositories = two_branches();
        let start = repositories.author().id("main~1");
        let project = repositories.clone("--depth=1");
        let list = format!("list --changed --base {start}");
        let refused = project.orch(&list);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `<start>` in this shallow clone
          = help: run `git fetch --depth=1 origin <start>`, or let orch get what it needs with `--fetch`
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
    fn an_ancestor_that_is_not_there_needs_history() {
        let repositories = two_branches();
        let project = repositories.clone("--depth=1");
        let refused = project.orch("list --changed --base HEAD~1");
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `HEAD~1` in this shallow clone
          = help: run `git fetch --unshallow origin <second>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch("list --changed --base HEAD~1"), @"
        b
        [stderr]
        base <start>: --base HEAD~1
        ");
    }

    #[test]
    fn a_tag_that_is_not_there_is_fetched_alone() {
        let repositories = two_branches();
        let author = repositories.author();
        author.git("tag v1 main~1");
        author.git("tag v2 main");
        let project = repositories.clone("--depth=1 --no-tags");
        let refused = project.orch("list --changed --base v1");
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `v1` in this shallow clone
          = help: run `git fetch --depth=1 origin tag v1`, or let orch get what it needs with `--fetch`
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

    #[test]
    fn history_is_fetched_of_what_the_base_is_an_ancestor_of() {
        let repositories = two_branches();
        let project = repositories.clone("--depth=1 --no-single-branch");
        let refused = project.orch("list --changed --base origin/feature~1");
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `origin/feature~1` in this shallow clone
          = help: run `git fetch --unshallow origin <feature>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch("list --changed --base origin/feature~1"), @"
        b
        [stderr]
        base <start>: --base origin/feature~1
        ");
    }

    #[test]
    fn history_is_fetched_of_what_the_remote_has() {
        let repositories = two_branches();
        let project = repositories.clone("--depth=1");
        project.commit("unpushed", "c");
        let refused = project.orch("list --changed --base HEAD~2");
        mend(&project, &refused);
        assert_snapshot!(project.orch("list --changed --base HEAD~2"), @"
        b
        c
        [stderr]
        base <start>: --base HEAD~2
        ");
    }

    #[test]
    fn an_abbreviation_that_is_not_there_needs_history() {
        let repositories = two_branches();
        let start = repositories.author().id("main~1");
        let project = repositories.clone("--depth=1");
        let list = format!("list --changed --base {}", &start[..7]);
        let refused = project.orch(&list);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: there is no revision `<start>` in this shallow clone
          = help: run `git fetch --unshallow origin <second>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch(&list), @"
        b
        [stderr]
        base <start>: --base <start>
        ");
    }

    #[test]
    fn the_first_parent_that_is_not_there_is_refused_and_one_fetch_mends_that() {
        let repositories = two_branches();
        let project = repositories.clone("--depth=1");
        let refused = project.orch(LIST);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: commit <start> is not in this shallow clone: first parent of HEAD, which is at origin/main
          = help: run `git fetch --depth=1 origin <start>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch(LIST), @"
        b
        [stderr]
        base <start>: first parent of HEAD, which is at origin/main
        ");
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
    fn a_merge_base_at_the_very_depth_is_there() {
        let repositories = Repositories::new();
        let author = repositories.author();
        author.commit("second", "d");
        author.git("checkout -q -b feature");
        author.commit("feature", "a");
        author.git("checkout -q main");
        author.commit("third", "b");
        let project = repositories.clone("--depth=2 --no-single-branch --branch=feature");
        assert_snapshot!(project.orch(LIST), @"
        a
        [stderr]
        base <second>: merge base of HEAD and origin/main
        ");
    }

    #[test]
    fn a_merge_base_that_is_not_there_is_refused_and_all_history_mends_that() {
        let repositories = long();
        let project = repositories.project();
        let refused = project.orch(LIST);
        let tip = project.id("HEAD");
        let shown = refused.to_string().replace(&tip, "<tip>");
        assert_snapshot!(shown, @"
        [stderr]
        error: what has changed is unknown
          caused by: HEAD and origin/main have no commit in common in this shallow clone
          = help: run `git fetch --unshallow origin <tip> <second>`, or let orch get what it needs with `--fetch`
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
    fn a_merge_base_that_is_not_there_is_found_by_deepening_no_more_than_needed() {
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
    fn the_default_branch_that_was_not_cloned_is_fetched_and_deepened() {
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
    fn commits_that_were_never_pushed_are_no_obstacle() {
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
        error: what has changed is unknown
          caused by: HEAD and origin/main have no commit in common in this shallow clone
          = help: run `git fetch --unshallow origin <feature> <second>`, or let orch get what it needs with `--fetch`
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
    fn a_merge_that_was_made_in_the_clone_is_no_obstacle() {
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
    fn deepening_ends_at_some_depth_and_leaves_the_rest_to_the_user() {
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
        error: what has changed is unknown
          caused by: HEAD and origin/main have no commit in common in this shallow clone
          = help: run `git fetch --unshallow origin <tip> <second>`
        [exit status 4]
        ");
        assert!(project.is_shallow());
    }

    #[test]
    fn a_remote_that_does_not_answer_ends_the_fetching() {
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
            output.stderr.contains("= help: see what git says above"),
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
    fn without_fetch_nothing_is_fetched() {
        let repositories = long();
        let project = repositories.project();
        let before = fs::read(project.path(".git/shallow")).unwrap();
        assert_eq!(project.orch(LIST).code(), 4);
        assert_eq!(fs::read(project.path(".git/shallow")).unwrap(), before);
    }
}

mod commands {
    use super::*;

    #[test]
    fn without_changed_no_command_looks_at_git() {
        let repositories = two_branches();
        let project = repositories.clone("");
        project.write(
            "env.tm",
            "orch {\nconfig {\nrun {\nenv {\nX = \"x\"\n}\n}\n}\n}\n",
        );
        fs::remove_dir_all(project.path(".git/objects")).unwrap();
        fs::create_dir(project.path(".git/objects")).unwrap();
        project.write(".git/HEAD", "garbage");
        project.write(".git/index", "garbage");
        project.write(".git/config", "[garbage");
        for arguments in [
            "list",
            "list --why",
            "run -X -- git --version",
            "run --dry-run -- git --version",
            "graph",
            "env",
            "validate",
        ] {
            let output = project.orch(arguments);
            assert_eq!(output.code(), 0, "{output}");
        }
        let output = project.orch(LIST);
        assert_eq!(output.code(), 4, "{output}");
    }

    #[test]
    fn without_changed_no_repository_is_opened() {
        let repositories = two_branches();
        let project = repositories.clone("");
        let opens = |arguments: &str| {
            let said = project.orch_in_ci(arguments, &[("ORCH_LOG", "orch::git=debug")]);
            said.stderr.contains("repository opened")
        };
        assert!(opens(LIST));
        for arguments in [
            "list",
            "run -X --dry-run -- git --version", // a run notes the commit
            "graph",
            "env",
            "validate",
        ] {
            assert!(!opens(arguments), "{arguments}");
        }
    }

    #[test]
    fn run_runs_what_list_lists() {
        let repositories = two_branches();
        let author = repositories.author();
        author.write("d/stack.tm", "stack {\n wants = [\"/c\"]\n}\n");
        author.commit("third", "a d");
        let project = repositories.clone("");
        assert_snapshot!(project.orch(LIST), @"
        a
        c
        d
        [stderr]
        base <second>: first parent of HEAD, which is at origin/main
        ");
        assert_snapshot!(project.orch("run --changed --dry-run -- git status"), @"
        /a: git status
        /c: git status
        /d: git status
        [stderr]
        base <second>: first parent of HEAD, which is at origin/main
        ");
        for command in ["graph", "env"] {
            let output = project.orch(&format!("{command} --changed"));
            assert_eq!(output.code(), 0, "{output}");
            assert!(output.stderr.contains("base "), "{output}");
        }
    }

    #[test]
    fn a_refusal_runs_nothing() {
        let repositories = Repositories::new();
        let project = repositories.clone("");
        assert_snapshot!(project.orch("run --changed -- git init elsewhere"), @"
        [stderr]
        error: what has changed is unknown
          caused by: HEAD is the first commit of the repository and has no parent to compare with
          = help: leave out `--changed` to act on all stacks, or name a base with `--base REV`
        [exit status 4]
        ");
        assert!(!project.path("a/elsewhere").exists());
    }

    #[test]
    fn a_refusal_is_one_document() {
        let repositories = two_branches();
        let project = repositories.clone("--depth=1");
        for command in ["list", "graph", "env"] {
            let output = project.orch(&format!("{command} --changed --format json"));
            assert_eq!(output.code(), 4, "{output}");
            let refused = &output.data()["refused"];
            assert!(
                refused["problem"].as_str().unwrap().contains("shallow"),
                "{output}"
            );
            assert!(
                refused["command"]
                    .as_str()
                    .unwrap()
                    .starts_with("git fetch"),
                "{output}"
            );
        }
        assert_snapshot!(project.orch("list --changed --format json"), @r#"
        {"format":1,"refused":{"problem":"commit <start> is not in this shallow clone: first parent of HEAD, which is at origin/main","command":"git fetch --depth=1 origin <start>"},"diagnostics":[],"errors":[]}
        [stderr]
        error: what has changed is unknown
          caused by: commit <start> is not in this shallow clone: first parent of HEAD, which is at origin/main
          = help: run `git fetch --depth=1 origin <start>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        "#);
    }

    #[test]
    fn a_hook_of_another_repository_does_not_mislead() {
        let repositories = two_branches();
        let project = repositories.clone("--depth=1");
        let variables = [("GIT_DIR", "/nowhere"), ("GIT_INDEX_FILE", "/nowhere")];
        let output = project.orch_in_ci("list --changed --fetch", &variables);
        assert_snapshot!(output.without_git(), @"
        b
        [stderr]
        note: running `git fetch --depth=1 origin <start>`
        base <start>: first parent of HEAD, which is at origin/main
        ");
    }

    #[cfg(unix)]
    #[test]
    fn a_project_behind_a_link_is_the_project() {
        let repositories = two_branches();
        let project = repositories.clone("");
        std::os::unix::fs::symlink(project.path(""), project.path("../link")).unwrap();
        let output = project.orch("-C ../link list --changed");
        assert_snapshot!(output, @"
        b
        [stderr]
        base <start>: first parent of HEAD, which is at origin/main
        ");
    }

    #[test]
    fn a_project_may_be_a_part_of_its_repository() {
        let repositories = Repositories::new();
        let author = repositories.author();
        author.write("part/orch.orch.hcl", "orch { root = true }\n");
        author.write("part/x/stack.tm", "stack {}\n");
        author.write("part/y/stack.tm", "stack {}\n");
        author.commit("second", "a");
        author.commit("third", "b part/x");
        let project = repositories.clone("");
        assert_snapshot!(project.orch("-C part list --changed"), @"
        x
        [stderr]
        base <second>: first parent of HEAD, which is at origin/main
        note: files of the repository outside of the project have changed; these select nothing
        ");
    }

    #[test]
    fn a_linked_worktree_is_like_any_other() {
        let repositories = two_branches();
        let project = repositories.clone("--depth=1 --no-single-branch");
        project.git("worktree add -q -b work ../work origin/feature");
        let work = repositories.at("work");
        let refused = work.orch(LIST);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: HEAD and origin/main have no commit in common in this shallow clone
          = help: run `git fetch --unshallow origin <feature> <second>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&work, &refused);
        assert_snapshot!(work.orch(LIST), @"
        a
        [stderr]
        base <start>: merge base of HEAD and origin/main
        ");
    }

    #[test]
    fn a_linked_worktree_can_fetch_history_itself() {
        let repositories = two_branches();
        let project = repositories.clone("--depth=1 --no-single-branch");
        project.git("worktree add -q -b work ../work origin/feature");
        let output = repositories.at("work").orch("list --changed --fetch");
        assert_snapshot!(output.without_git(), @"
        a
        [stderr]
        note: running `git fetch --deepen=50 origin <feature> <second>`
        base <start>: merge base of HEAD and origin/main
        ");
    }

    #[test]
    fn where_libgit2_knows_nothing_git_is_asked() {
        let repositories = Repositories::with("--object-format=sha256");
        let author = repositories.author();
        author.git("checkout -q -b feature");
        author.commit("feature", "a");
        author.git("checkout -q main");
        author.commit("second", "b");
        let project = repositories.clone("--depth=1 --no-single-branch");
        let output = project.orch("list --changed --fetch");
        assert_snapshot!(output.without_git(), @"
        b
        [stderr]
        note: running `git fetch --depth=1 origin <start>`
        base <start>: first parent of HEAD, which is at origin/main
        ");
        project.git("checkout -q -b feature origin/feature");
        let refused = project.orch(LIST);
        assert_snapshot!(refused, @"
        [stderr]
        error: what has changed is unknown
          caused by: HEAD and origin/main have no commit in common in this shallow clone
          = help: run `git fetch --unshallow origin <feature> <second>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch(LIST), @"
        a
        [stderr]
        base <start>: merge base of HEAD and origin/main
        ");
    }

    #[test]
    fn a_partial_clone_gets_what_it_lacks() {
        let repositories = two_branches();
        let author = repositories.author();
        author.git("rm -q -r d");
        author.commit("third", "c");
        repositories
            .at("remote")
            .git("config uploadpack.allowFilter true");
        let list = |filter: &str| {
            let project = repositories.clone(&format!("--filter={filter}"));
            let said = project.orch(LIST).to_string();
            fs::remove_dir_all(project.path("")).unwrap();
            said
        };
        let without_trees = list("tree:0");
        assert_snapshot!(without_trees, @"
        c
        [stderr]
        base <second>: first parent of HEAD, which is at origin/main
        note: stack `/d` was removed since the base; nothing is run for it
        ");
        assert_eq!(list("blob:none"), without_trees);
    }

    #[test]
    fn without_the_program_nothing_can_be_fetched_but_much_be_known() {
        let repositories = two_branches();
        let project = repositories.clone("--depth=1 --no-single-branch");
        let no_programs = [("PATH", "/nowhere")];
        assert_snapshot!(project.orch_in_ci("list --changed --base origin/feature", &no_programs), @"
        a
        b
        [stderr]
        base <feature>: --base origin/feature
        ");
        assert_snapshot!(project.orch_in_ci(LIST, &no_programs), @"
        [stderr]
        error: what has changed is unknown
          caused by: commit <start> is not in this shallow clone: first parent of HEAD, which is at origin/main
          = help: run `git fetch --depth=1 origin <start>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
        let output = project.orch_in_ci("list --changed --fetch", &no_programs);
        assert_eq!(output.code(), 4, "{output}");
        assert!(output.stderr.contains("failed to start `git`"), "{output}");
        project.git("checkout -q -b feature origin/feature");
        assert_snapshot!(project.orch_in_ci(LIST, &no_programs), @"
        [stderr]
        error: what has changed is unknown
          caused by: HEAD and origin/main have no commit in common in this shallow clone
          = help: run `git fetch --unshallow origin <feature> <second>`, or let orch get what it needs with `--fetch`
        [exit status 4]
        ");
    }
}
