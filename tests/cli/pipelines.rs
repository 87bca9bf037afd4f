//! The pipelines with `orch plan` and `orch apply` in `examples/ci`: runs their scripts as the provider
//! would, each job in a checkout of its own, with stand-ins for `terraform`, `gh` and `curl`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Output, Repository, orch_program};

/// Keeps what it has applied in files outside of all checkouts, and records what it is asked.
const TERRAFORM: &str = r#"#!/bin/sh
live="$LIVE/$(basename "$ORCH_STACK_PATH")"
echo "$ORCH_STACK_PATH: $1" >> "$ASKED"
for word in "$@"; do
    case "$word" in -out=*) file="${word#-out=}" ;; esac
    last="$word"
done
case "$1" in
plan)
    cp main.tf "$file"
    cmp -s main.tf "$live" && exit 0
    echo "Plan: 1 to add, 0 to change, 0 to destroy."
    exit 2
    ;;
show)
    action=create
    if [ -e "$live" ]; then action=update; fi
    if cmp -s "$last" "$live"; then action=no-op; fi
    resources='{"mode":"managed","type":"t","name":"r","values":{}}'
    if [ "$action" = create ]; then resources=; fi
    cat <<END
{"format_version":"1.2","complete":true,
 "resource_changes":[{"address":"t.r","mode":"managed","change":{"actions":["$action"]}}],
 "prior_state":{"values":{"root_module":{"resources":[$resources]}}}}
END
    ;;
apply)
    [ ! -e "$BROKEN" ] || exit 1
    cp "$last" "$live"
    ;;
output) echo '{}' ;;
esac
"#;

/// Knows the last commit of the pull request that was merged, its run, and the artefact of that.
const GH: &str = r#"#!/bin/sh
echo "gh $*" >> "$ASKED"
case "$*" in
*--paginate*) ;;
*/pulls*) cat "$KEPT/head" ;;
"run list"*) echo 7 ;;
"run download 7 --name plan") cp "$KEPT/plan" . ;;
esac
"#;

/// The same of GitLab, where `jq` takes what it reads for the result.
const CURL: &str = r#"#!/bin/sh
for word in "$@"; do last="$word"; done
echo "curl $last" >> "$ASKED"
case "$last" in
*/commits/*/merge_requests) echo 3 ;;
*/merge_requests/3/pipelines) echo 5 ;;
*/pipelines/5/jobs*) echo 7 ;;
*/jobs/7/artifacts/plan) cp "$KEPT/plan" plan ;;
esac
"#;

const JQ: &str = "#!/bin/sh\ncat\n";

/// A repository that keeps a state, with programs beside it.
struct Provider {
    repository: Repository,
    /// The branch that the pull request goes to, before it is merged.
    base: String,
}

impl Provider {
    /// Two stacks, of which `/web` runs after `/app`; a branch has changed `/app`, and is checked out.
    fn new() -> Self {
        let repository = Repository::layout(
            "
            app
            web after /app",
        );
        for (name, program) in [
            ("terraform", TERRAFORM),
            ("gh", GH),
            ("curl", CURL),
            ("jq", JQ),
        ] {
            repository.write_program(&format!("../bin/{name}"), program);
        }
        let provider = Provider {
            base: String::new(),
            repository,
        };
        for folder in ["live", "kept"] {
            fs::create_dir_all(provider.outside(folder)).unwrap();
        }
        let state = "orch {
  config {
    state {
      project = \"p\"
      backend \"local\" {
        path = \"../state.json\"
      }
    }
  }
}
";
        provider.repository.write("/state.orch.hcl", state);
        provider.repository.write("/app/main.tf", "# 1\n");
        provider.repository.write("/web/main.tf", "# 1\n");
        provider.repository.commit();
        let begin = "orch state init && orch apply --auto-approve";
        let output = provider.run(begin, &[]);
        assert_eq!(output.code(), 0, "{output}");
        provider.repository.git("checkout -q -b feature");
        provider.repository.write("/app/main.tf", "# 2\n");
        provider.repository.commit();
        _ = provider.asked();
        let base = provider.repository.git("rev-parse main").trim().to_owned();
        Provider { base, ..provider }
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.repository.outside().join(name)
    }

    /// Runs a script in a checkout, as the jobs do.
    fn run(&self, script: &str, variables: &[(&str, &str)]) -> Output {
        let event = format!(
            r#"{{"before": "{base}", "pull_request": {{"base": {{"sha": "{base}", "ref": "main"}}}}}}"#,
            base = self.base
        );
        fs::write(self.outside("event.json"), event).unwrap();
        let programs = orch_program().parent().unwrap().to_owned();
        let mut path = vec![self.outside("bin"), programs];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap()));
        let mut shell = Command::new("bash");
        self.repository.isolate(&mut shell);
        shell
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(self.repository.path("/"))
            .env("PATH", env::join_paths(path).unwrap())
            .envs([("CI", "true"), ("TF_IN_AUTOMATION", "1")])
            .envs(
                ["asked", "live", "kept", "broken"].map(|it| (it.to_uppercase(), self.outside(it))),
            )
            .env("GITHUB_EVENT_PATH", self.outside("event.json"))
            .env("GITHUB_STEP_SUMMARY", self.outside("summary.md"))
            .env("GITHUB_WORKSPACE", self.repository.path("/"))
            .envs(variables.iter().copied());
        self.repository.output(&shell.output().unwrap())
    }

    /// Keeps the plan as an artefact, and merges the branch: as one new commit of the same content. The
    /// next job finds nothing of the earlier one in its checkout.
    fn merge(&self) {
        fs::rename(self.repository.path("/plan"), self.outside("kept/plan")).unwrap();
        let head = self.repository.git("rev-parse HEAD");
        fs::write(self.outside("kept/head"), head).unwrap();
        self.repository.git("checkout -q main");
        self.repository.git("merge -q --squash feature");
        self.repository.git("commit -q -m squashed");
        self.next_job();
    }

    /// Leaves a fresh checkout.
    fn next_job(&self) {
        self.repository.git("clean -q -d -f -x");
    }

    /// Returns what the stand-ins were asked since the last call.
    fn asked(&self) -> Vec<String> {
        let asked = fs::read_to_string(self.outside("asked")).unwrap_or_default();
        _ = fs::remove_file(self.outside("asked"));
        asked.lines().map(str::to_owned).collect()
    }

    /// Returns what exists of a stack.
    fn live(&self, stack: &str) -> String {
        fs::read_to_string(self.outside("live").join(stack)).unwrap_or_default()
    }

    fn is(&self, path: &str) -> bool {
        Path::new(&self.repository.path(path)).exists()
    }
}

fn example(path: &str) -> String {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/ci");
    fs::read_to_string(examples.join(path)).unwrap()
}

/// Returns the script after a line, which is indented more.
fn block<'a>(lines: &mut impl Iterator<Item = &'a str>, indent: usize) -> String {
    let lines = lines.map_while(|line| {
        line.get(indent..)
            .filter(|_| line[..indent].trim().is_empty())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the script of a step of the workflow of GitHub.
fn github_step(wanted: &str) -> String {
    let workflow = example("github/plan.yml");
    let (_, step) = workflow.split_once(&format!("- name: {wanted}\n")).unwrap();
    let (_, script) = step.split_once("        run: |\n").unwrap();
    let script = block(&mut script.lines(), 10);
    assert!(
        !script.contains("${{"),
        "values come in variables: {script}"
    );
    script
}

/// Returns the last script below a line of the pipeline of GitLab.
fn gitlab_script(job: &str, key: &str) -> String {
    let pipeline = example("gitlab/plan.gitlab-ci.yml");
    let (_, job) = pipeline.split_once(&format!("\n{job}:")).unwrap();
    let (_, after) = job.split_once(&format!("  {key}:")).unwrap();
    let (_, after) = after.split_once("    - ").unwrap();
    match after.strip_prefix("|\n") {
        Some(script) => block(&mut script.lines(), 6),
        None => after.lines().next().unwrap().to_owned(),
    }
}

const GITHUB: [(&str, &str); 2] = [("GITHUB_ACTIONS", "true"), ("GITHUB_REPOSITORY", "o/r")];

fn on_pull_request() -> Vec<(&'static str, &'static str)> {
    let event = [
        ("GITHUB_EVENT_NAME", "pull_request"),
        ("GITHUB_BASE_REF", "main"),
        ("PULL_REQUEST", "12"),
    ];
    [&event[..], &GITHUB].concat()
}

fn on_push(attempt: &'static str) -> Vec<(&'static str, &'static str)> {
    let event = [
        ("GITHUB_EVENT_NAME", "push"),
        ("GITHUB_REF", "refs/heads/main"),
        ("GITHUB_SHA", "c0ffee"),
        ("GITHUB_WORKFLOW", "terraform"),
        ("GITHUB_RUN_ATTEMPT", attempt),
    ];
    [&event[..], &GITHUB].concat()
}

#[test]
fn github_shows_a_plan_and_applies_it_after_a_squash() {
    let provider = Provider::new();
    let output = provider.run(&github_step("plan"), &on_pull_request());
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(provider.asked(), ["/app: init", "/app: plan", "/app: show"]);
    let output = provider.run(&github_step("comment"), &on_pull_request());
    assert_eq!(output.code(), 0, "{output}");
    let comment = provider.repository.read("/comment.md");
    assert!(comment.starts_with("<!-- orch plan -->\n"), "{comment}");
    assert!(comment.contains("| `/app` |"), "{comment}");
    _ = provider.asked();

    provider.merge();
    let output = provider.run(&github_step("get the plan"), &on_push("1"));
    assert_eq!(output.code(), 0, "{output}");
    let head = fs::read_to_string(provider.outside("kept/head")).unwrap();
    insta::assert_snapshot!(provider.asked().join("\n").replace(head.trim(), "HEAD"), @"
    gh api repos/o/r/commits/c0ffee/pulls --jq .[0].head.sha // empty
    gh run list --workflow terraform --event pull_request --status success --commit HEAD --limit 1 --json databaseId --jq .[0].databaseId // empty
    gh run download 7 --name plan
    ");
    let output = provider.run(&github_step("apply"), &on_push("1"));
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(
        provider.asked(),
        ["/app: init", "/app: show", "/app: apply", "/app: output"]
    );
    assert_eq!(provider.live("app"), "# 2\n");
}

#[test]
fn the_second_attempt_at_github_goes_on_with_the_plan() {
    let provider = Provider::new();
    let output = provider.run(&github_step("plan"), &on_pull_request());
    assert_eq!(output.code(), 0, "{output}");
    provider.merge();
    fs::write(provider.outside("broken"), "").unwrap();
    let both = format!("{}\n{}", github_step("get the plan"), github_step("apply"));
    let output = provider.run(&both, &on_push("1"));
    assert_eq!(output.code(), 1, "{output}");
    fs::remove_file(provider.outside("broken")).unwrap();
    provider.next_job();
    let output = provider.run(&both, &on_push("1"));
    assert_eq!(output.code(), 4, "{output}");
    let output = provider.run(&both, &on_push("2"));
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(provider.live("app"), "# 2\n");
}

#[test]
fn at_github_a_plan_is_stale_that_another_merge_has_touched_and_what_is_pending_is_applied_anew() {
    let provider = Provider::new();
    let output = provider.run(&github_step("plan"), &on_pull_request());
    assert_eq!(output.code(), 0, "{output}");
    provider.merge();
    provider.repository.write("/app/main.tf", "# 3\n");
    provider.repository.commit();
    let both = format!("{}\n{}", github_step("get the plan"), github_step("apply"));
    let output = provider.run(&both, &on_push("1"));
    assert_eq!(output.code(), 4, "{output}");
    assert!(
        output.to_string().contains("app/main.tf differs"),
        "{output}"
    );
    provider.next_job();
    let variables = [("DESTROYS", "0"), GITHUB[0]];
    let output = provider.run(&github_step("plan and apply"), &variables);
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(provider.live("app"), "# 3\n");
}

#[test]
fn at_github_a_commit_without_a_pull_request_has_no_plan() {
    let provider = Provider::new();
    fs::write(provider.outside("kept/head"), "").unwrap();
    let output = provider.run(&github_step("get the plan"), &on_push("1"));
    assert_ne!(output.code(), 0, "{output}");
    assert_eq!(provider.asked().len(), 1);
    assert!(!provider.is("/plan"));
}

/// A plan that was not made is not shown as the earlier one.
#[test]
fn a_comment_says_that_no_plan_was_made() {
    let provider = Provider::new();
    provider
        .repository
        .write("/broken.tm.hcl", "stack {\n  aftr = 1\n}\n");
    let output = provider.run(&github_step("plan"), &on_pull_request());
    assert_eq!(output.code(), 3, "{output}");
    let output = provider.run(&github_step("comment"), &on_pull_request());
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(
        provider.repository.read("/comment.md"),
        "<!-- orch plan -->\nThe plan was not made; see the log.\n"
    );
}

#[test]
fn gitlab_shows_a_plan_and_applies_it_after_a_squash() {
    let provider = Provider::new();
    let variables = [
        ("GITLAB_CI", "true"),
        ("CI_PIPELINE_SOURCE", "merge_request_event"),
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", provider.base.as_str()),
        ("CI_API_V4_URL", "https://gitlab/api/v4"),
        ("CI_PROJECT_ID", "1"),
        ("CI_MERGE_REQUEST_IID", "3"),
        ("API_TOKEN", "secret"),
    ];
    let output = provider.run(&gitlab_script("plan", "script"), &variables);
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(provider.asked(), ["/app: init", "/app: plan", "/app: show"]);
    let output = provider.run(&gitlab_script("plan", "after_script"), &variables);
    assert_eq!(output.code(), 0, "{output}");
    let note = provider.repository.read("/note.md");
    assert!(note.starts_with("<!-- orch plan -->\n"), "{note}");
    assert!(note.contains("| `/app` |"), "{note}");
    _ = provider.asked();

    provider.merge();
    let variables = [
        ("GITLAB_CI", "true"),
        ("CI_PIPELINE_SOURCE", "push"),
        ("CI_COMMIT_BRANCH", "main"),
        ("CI_DEFAULT_BRANCH", "main"),
        ("CI_COMMIT_SHA", "c0ffee"),
        ("CI_API_V4_URL", "https://gitlab/api/v4"),
        ("CI_PROJECT_ID", "1"),
        ("API_TOKEN", "secret"),
    ];
    let job = |name: &str| {
        let get = gitlab_script(".apply", "before_script");
        let script = gitlab_script(name, "script");
        let output = provider.run(&format!("{get}\n{script}"), &variables);
        (output.code(), provider.asked())
    };
    fs::write(provider.outside("broken"), "").unwrap();
    let (code, asked) = job("apply");
    assert_eq!(code, 1);
    insta::assert_snapshot!(asked.join("\n"), @"
    curl https://gitlab/api/v4/projects/1/repository/commits/c0ffee/merge_requests
    curl https://gitlab/api/v4/projects/1/merge_requests/3/pipelines
    curl https://gitlab/api/v4/projects/1/pipelines/5/jobs?scope=success
    curl https://gitlab/api/v4/projects/1/jobs/7/artifacts/plan
    /app: init
    /app: show
    /app: apply
    ");
    fs::remove_file(provider.outside("broken")).unwrap();
    provider.next_job();
    assert_eq!(job("resume").0, 0);
    assert_eq!(provider.live("app"), "# 2\n");
    provider.repository.write("/web/main.tf", "# 2\n");
    provider.repository.commit();
    provider.next_job();
    let output = provider.run(&gitlab_script("pending", "script"), &variables);
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(provider.live("web"), "# 2\n");
}

/// The help names both.
#[test]
fn pipelines_of_the_help_are_the_tested_examples() {
    let topic = concat!(env!("CARGO_MANIFEST_DIR"), "/src/program/help/pipelines.md");
    let topic = fs::read_to_string(topic).unwrap();
    for path in ["github/plan.yml", "gitlab/plan.gitlab-ci.yml"] {
        assert!(!example(path).is_empty());
        assert!(topic.contains(&format!("`{path}`")), "{path}");
    }
}
