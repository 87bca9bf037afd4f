//! What a job of each CI provider is compared with.
//!
//! What the providers do before a job begins is done here by the same commands of git.

use super::*;

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
    fn base_of_a_pull_request_at_depth_1_needs_one_fetch() {
        let (repositories, event) = pull_request();
        let merge = repositories.author().id("refs/pull/1/merge");
        let project = check_out(&repositories, "1", &merge);
        let refused = event.orch(&project, LIST);
        assert_snapshot!(refused, @"
        [stderr]
        error: the changes are unknown
          caused by: commit <second> is not in this shallow clone: first parent of the merge commit of GitHub Actions
          = help: run `git fetch --depth=1 origin <second>`, or add `--fetch`
        ::error title=orch%3A refused::the changes are unknown%0Acaused by: commit <second> is not in this shallow clone: first parent of the merge commit of GitHub Actions%0Ahelp: run `git fetch --depth=1 origin <second>`, or add `--fetch`
        [exit status 4]
        ");
        let data = event.orch(&project, "list --changed --format json").data();
        assert_snapshot!(data["refused"], @r#"{"command":"git fetch --depth=1 origin <second>","problem":"commit <second> is not in this shallow clone: first parent of the merge commit of GitHub Actions"}"#);
        mend(&project, &refused);
        assert_snapshot!(event.orch(&project, LIST), @"
        a
        [stderr]
        base <second>: first parent of the merge commit of GitHub Actions
        ");
    }

    #[test]
    fn base_of_a_pull_request_at_depth_1_is_fetched_with_fetch() {
        let (repositories, event) = pull_request();
        let merge = repositories.author().id("refs/pull/1/merge");
        let project = check_out(&repositories, "1", &merge);
        let output = event.orch(&project, "list --changed --fetch");
        assert_snapshot!(output.without_git(), @"
        a
        [stderr]
        note: running `git fetch --depth=1 origin <second>`
        base <second>: first parent of the merge commit of GitHub Actions
        ");
        assert!(project.is_shallow());
    }

    #[test]
    fn base_of_a_pull_request_head_at_depth_1_fetches_history() {
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
    fn base_of_a_push_is_the_commit_before_all_its_commits() {
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
    fn base_of_a_forced_push_is_fetched_by_id() {
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
        error: the changes are unknown
          caused by: commit <replaced> is not in this clone: the commit before this push (GitHub Actions)
          = help: run `git fetch origin <replaced>`, or add `--fetch`
        ::error title=orch%3A refused::the changes are unknown%0Acaused by: commit <replaced> is not in this clone: the commit before this push (GitHub Actions)%0Ahelp: run `git fetch origin <replaced>`, or add `--fetch`
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
    fn base_of_a_push_with_an_unreadable_event_is_refused() {
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
        error: the changes are unknown
          caused by: GitHub Actions runs this for a `push`, and its event file (GITHUB_EVENT_PATH) is not set
          = help: name a base with `--base REV`
        ::error title=orch%3A refused::the changes are unknown%0Acaused by: GitHub Actions runs this for a `push`, and its event file (GITHUB_EVENT_PATH) is not set%0Ahelp: name a base with `--base REV`
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
    fn base_of_a_merge_request_is_its_diff_base() {
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
}

mod bitbucket {
    use super::*;

    #[test]
    fn base_of_a_pull_request_fetches_its_missing_destination() {
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
        error: the changes are unknown
          caused by: the target of this change, `main`, is not in this clone (Bitbucket Pipelines)
          = help: run `git fetch origin +refs/heads/main:refs/remotes/origin/main`, or add `--fetch`
        [exit status 4]
        ");
        mend(&project, &refused);
        assert_snapshot!(project.orch_in_ci(LIST, &variables), @"
        a
        [stderr]
        base <start>: merge base of HEAD and origin/main (Bitbucket Pipelines)
        ");
    }
}

mod azure {
    use super::*;

    #[test]
    fn base_of_a_merged_pull_request_is_the_first_parent() {
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
        base <second>: first parent of the merge commit of Azure Pipelines
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
    fn base_of_a_pull_request_is_the_merge_base() {
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
}
