//! The workflows in `examples/ci`: runs their scripts as the provider would, in its environment, with
//! stand-ins for `terraform` and `gh`.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use insta::assert_snapshot;

use crate::support::{Output, Repository, orch_program};

/// Prints what Terraform prints, and records its command lines.
const TERRAFORM: &str = r#"#!/bin/sh
echo "$ORCH_STACK_PATH: $*" >> "$ASKED"
case "$1" in
plan) echo "Plan: 1 to add, 0 to change, 0 to destroy." ;;
apply) echo "Apply complete! Resources: 1 added, 0 changed, 0 destroyed." ;;
destroy) echo "Destroy complete! Resources: 1 destroyed." ;;
esac
[ ! -e broken ]
"#;

/// Keeps comments in files: lists the one with the mark, creates it as number 7, replaces it.
const GH: &str = r#"#!/bin/sh
echo "gh $*" >> "$ASKED"
for argument in "$@"; do
    case "$argument" in
    --paginate) if [ -e "$COMMENT" ]; then echo 7; fi; exit ;;
    body=@*) cp "${argument#body=@}" "$COMMENT" ;;
    esac
done
"#;

/// Keeps a note: there is none at first, and then number 7.
const CURL: &str = r#"#!/bin/sh
echo "curl $*" >> "$ASKED"
case "$*" in
*--request*) : > "$COMMENT" ;;
*) if [ -e "$COMMENT" ]; then echo 7; fi ;;
esac
"#;

/// Takes what it reads for the result.
const JQ: &str = "#!/bin/sh\ncat\n";

/// A job: a repository, and programs beside it.
struct Job {
    repository: Repository,
    /// The base of the changes.
    base: String,
}

impl Job {
    /// Two stacks; `/app` has changed since the base.
    fn new() -> Self {
        let repository = Repository::layout(
            "
            app
            db",
        );
        repository.write_program("../bin/terraform", TERRAFORM);
        repository.write_program("../bin/gh", GH);
        repository.write_program("../bin/curl", CURL);
        repository.write_program("../bin/jq", JQ);
        let base = repository.git("rev-parse HEAD").trim().to_owned();
        repository.write("/app/main.tf", "# new\n");
        repository.commit();
        Job { repository, base }
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.repository.outside().join(name)
    }

    /// Runs a script as GitHub does.
    fn run(&self, script: &str, variables: &[(&str, &str)]) -> Output {
        let event = format!(
            r#"{{"before": "{base}", "pull_request": {{"base": {{"sha": "{base}", "ref": "main"}}}}}}"#,
            base = self.base
        );
        fs::write(self.outside("event.json"), event).unwrap();
        let mut path = vec![
            self.outside("bin"),
            orch_program().parent().unwrap().to_owned(),
        ];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap()));
        let mut shell = Command::new("bash");
        self.repository.isolate(&mut shell);
        shell
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(self.repository.path("/"))
            .env("PATH", env::join_paths(path).unwrap())
            .envs([("CI", "true"), ("TF_IN_AUTOMATION", "1")])
            .env("ASKED", self.outside("asked"))
            .env("COMMENT", self.outside("comment"))
            .env("GITHUB_EVENT_PATH", self.outside("event.json"))
            .env("GITHUB_STEP_SUMMARY", self.outside("summary.md"))
            .env("GITHUB_WORKSPACE", self.repository.path("/"))
            .envs(variables.iter().copied());
        self.repository.output(&shell.output().unwrap())
    }

    /// Returns what the stand-ins were asked to do since the last call.
    fn asked(&self) -> String {
        let asked = fs::read_to_string(self.outside("asked")).unwrap_or_default();
        _ = fs::remove_file(self.outside("asked"));
        asked
    }
}

const GITHUB: [(&str, &str); 2] = [("GITHUB_ACTIONS", "true"), ("GITHUB_REPOSITORY", "o/r")];

/// Returns the scripts of a workflow of GitHub by the names of their steps.
fn scripts(workflow: &str) -> Vec<(String, String)> {
    let mut scripts = Vec::new();
    let mut name = String::new();
    let mut lines = workflow.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some((_, found)) = line.split_once("- name: ") {
            found.clone_into(&mut name);
        }
        if line.trim_start() != "run: |" {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let mut script = String::new();
        while let Some(line) = lines.next_if(|line| line.len() - line.trim_start().len() > indent) {
            script += line.trim_start();
            script += "\n";
        }
        assert!(
            !script.contains("${{"),
            "values come in variables: {script}"
        );
        scripts.push((name.clone(), script));
    }
    scripts
}

/// Returns the script of a step.
fn step(file: &str, wanted: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("examples/ci/github")
        .join(file);
    let scripts = scripts(&fs::read_to_string(path).unwrap());
    let mut scripts = scripts.into_iter().filter(|(name, _)| name == wanted);
    scripts.next().expect("there is such a step").1
}

#[test]
fn workflow_plans_a_pull_request_and_keeps_one_comment() {
    let job = Job::new();
    let variables = [
        ("GITHUB_EVENT_NAME", "pull_request"),
        ("GITHUB_BASE_REF", "main"),
        ("PULL_REQUEST", "12"),
        GITHUB[0],
        GITHUB[1],
    ];
    let output = job.run(&step("terraform.yml", "plan"), &variables);
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(job.asked(), "/app: init\n/app: plan -lock=false\n");
    assert!(
        output.stdout.contains("::group::orch: /app: succeeded"),
        "{output}"
    );
    let output = job.run(&step("terraform.yml", "comment"), &variables);
    assert_eq!(output.code(), 0, "{output}");
    assert_snapshot!(job.asked(), @r#"
    gh api --paginate repos/o/r/issues/12/comments --jq .[] | select(.user.type == "Bot" and (.body | startswith("<!-- orch plan -->"))) | .id
    gh api --method POST repos/o/r/issues/12/comments --field body=@comment.md
    "#);
    let comment = fs::read_to_string(job.outside("comment")).unwrap();
    assert!(comment.starts_with("<!-- orch plan -->\n"), "{comment}");
    assert!(
        comment.contains("/app") && comment.contains("+1 ~0 -0"),
        "{comment}"
    );

    job.repository.write("/app/broken", "");
    job.repository.commit();
    let output = job.run(&step("terraform.yml", "plan"), &variables);
    assert_eq!(output.code(), 1, "{output}");
    assert!(
        output.stdout.contains("::error file=app/stack.tm,line=1"),
        "{output}"
    );
    _ = job.asked();
    let output = job.run(&step("terraform.yml", "comment"), &variables);
    assert_eq!(output.code(), 0, "{output}");
    assert!(
        job.asked()
            .contains("--method PATCH repos/o/r/issues/comments/7")
    );
    let comment = fs::read_to_string(job.outside("comment")).unwrap();
    assert!(comment.contains("failed"), "{comment}");

    // A plan that was refused is not shown as the earlier one.
    job.repository.remove("/plan.md");
    let output = job.run(&step("terraform.yml", "comment"), &variables);
    assert_eq!(output.code(), 0, "{output}");
    let comment = fs::read_to_string(job.outside("comment")).unwrap();
    assert_eq!(
        comment,
        "<!-- orch plan -->\nThe plan did not run; see the log.\n"
    );
}

#[test]
fn workflow_applies_a_push() {
    let mut job = Job::new();
    let remote = job.outside("remote.git");
    let remote = remote.to_str().unwrap();
    job.repository.git(&format!("init -q --bare {remote}"));
    job.repository.git(&format!("remote add origin {remote}"));
    let script = step("terraform.yml", "apply");
    let applied = |job: &Job| {
        let variables = [
            ("GITHUB_EVENT_NAME", "push"),
            ("GITHUB_REF", "refs/heads/main"),
            ("GITHUB_REF_NAME", "main"),
            ("GITHUB_REF_TYPE", "branch"),
            GITHUB[0],
        ];
        // Each job has a checkout of its own, with the tags of the remote.
        let fetch = "git fetch -q --force origin 'refs/tags/*:refs/tags/*'\n";
        let output = job.run(&format!("{fetch}{script}"), &variables);
        let tag = job
            .repository
            .git(&format!("-C {remote} for-each-ref --format=%(objectname)"));
        (output.code(), job.asked(), tag.trim().to_owned())
    };
    let apply =
        |stack: &str| format!("{stack}: init\n{stack}: apply -auto-approve -lock-timeout=10m\n");
    let head = |job: &Job| job.repository.git("rev-parse HEAD").trim().to_owned();

    // Nothing was applied before: the base is that of the push.
    let first = head(&job);
    assert_eq!(applied(&job), (0, apply("/app"), first.clone()));

    // One fails, and the next push has another base; what failed is applied with it.
    job.base.clone_from(&first);
    job.repository.write("/app/broken", "");
    job.repository.commit();
    assert_eq!(applied(&job), (1, "/app: init\n".to_owned(), first));
    job.base = head(&job);
    job.repository.remove("/app/broken");
    job.repository.write("/app/main.tf", "# newer\n");
    job.repository.commit();
    // A push whose apply was cancelled.
    job.base = head(&job);
    job.repository.write("/db/main.tf", "# new\n");
    job.repository.commit();
    let last = head(&job);
    let (code, asked, tag) = applied(&job);
    assert_eq!((code, tag), (0, last), "{asked}");
    assert!(
        asked.contains("/app: apply") && asked.contains("/db: apply"),
        "{asked}"
    );
}

#[test]
fn workflow_destroys_only_the_approved_number() {
    let job = Job::new();
    let script = step("destroy.yml", "destroy");
    let run = |stacks: &str| {
        let variables = [
            ("GITHUB_EVENT_NAME", "workflow_dispatch"),
            ("STACKS", stacks),
            GITHUB[0],
        ];
        job.run(&script, &variables).code()
    };
    assert_eq!((run(""), job.asked()), (64, String::new()));
    assert_eq!((run("/nothing/**"), job.asked()), (4, String::new()));
    assert_eq!(run("/db"), 0);
    assert_eq!(job.asked(), "/db: init\n/db: destroy -auto-approve\n");
}

#[test]
fn workflow_of_gitlab_plans_and_applies() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/ci/gitlab/.gitlab-ci.yml");
    let pipeline = fs::read_to_string(path).unwrap();
    let scripts: Vec<&str> = pipeline
        .lines()
        .filter_map(|line| line.strip_prefix("    - orch "))
        .collect();
    let [plan, apply, destroy] = scripts.as_slice() else {
        panic!("there are three scripts: {scripts:?}");
    };
    let job = Job::new();
    let variables = [
        ("GITLAB_CI", "true"),
        ("CI_PIPELINE_SOURCE", "merge_request_event"),
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", job.base.as_str()),
    ];
    let output = job.run(&format!("orch {plan}"), &variables);
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(job.asked(), "/app: init\n/app: plan -lock=false\n");
    let report = job.repository.read("/plan.xml");
    assert!(report.contains("<testcase name=\"/app\""), "{report}");
    let note = note_script(&pipeline);
    assert_eq!(job.run(&note, &[("NOTE_TOKEN", "")]).code(), 0);
    assert_eq!(job.asked(), "");
    let variables = [
        ("NOTE_TOKEN", "secret"),
        ("CI_API_V4_URL", "https://gitlab/api/v4"),
        ("CI_PROJECT_ID", "1"),
        ("CI_MERGE_REQUEST_IID", "2"),
    ];
    for plan_ran in [true, false] {
        let output = job.run(&note, &variables);
        assert_eq!(output.code(), 0, "{output}");
        let note = job.repository.read("/note.md");
        assert!(note.starts_with("<!-- orch plan -->\n"), "{note}");
        assert_eq!(note.contains("/app"), plan_ran, "{note}");
        assert_eq!(note.contains("did not run"), !plan_ran, "{note}");
        job.repository.remove("/note.md");
        if plan_ran {
            job.repository.remove("/plan.md");
        }
    }
    assert_snapshot!(job.asked(), @"
    curl --silent --show-error --fail --header PRIVATE-TOKEN: secret https://gitlab/api/v4/projects/1/merge_requests/2/notes?sort=asc&per_page=100
    curl --silent --show-error --fail --header PRIVATE-TOKEN: secret --request POST --data-urlencode body@note.md https://gitlab/api/v4/projects/1/merge_requests/2/notes
    curl --silent --show-error --fail --header PRIVATE-TOKEN: secret https://gitlab/api/v4/projects/1/merge_requests/2/notes?sort=asc&per_page=100
    curl --silent --show-error --fail --header PRIVATE-TOKEN: secret --request PUT --data-urlencode body@note.md https://gitlab/api/v4/projects/1/merge_requests/2/notes/7
    ");
    // The next job has a checkout of its own.
    job.repository.remove("/plan.xml");
    let variables = [
        ("GITLAB_CI", "true"),
        ("CI_PIPELINE_SOURCE", "push"),
        ("CI_COMMIT_BRANCH", "main"),
        ("CI_DEFAULT_BRANCH", "main"),
        ("CI_COMMIT_BEFORE_SHA", job.base.as_str()),
    ];
    let output = job.run(&format!("orch {apply}"), &variables);
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(
        job.asked(),
        "/app: init\n/app: apply -auto-approve -lock-timeout=10m\n"
    );
    let destroyed = |stacks: &str| {
        let variables = [("GITLAB_CI", "true"), ("DESTROY", stacks)];
        (
            job.run(&format!("orch {destroy}"), &variables).code(),
            job.asked(),
        )
    };
    assert_eq!(destroyed(""), (64, String::new()));
    assert_eq!(destroyed("/nothing/**"), (4, String::new()));
    assert_eq!(
        destroyed("/db"),
        (0, "/db: init\n/db: destroy -auto-approve\n".to_owned())
    );
}

/// Returns the script that writes the note of a merge request.
fn note_script(pipeline: &str) -> String {
    let (_, script) = pipeline.split_once("    - |\n").unwrap();
    let lines = script.lines();
    let lines = lines.map_while(|line| line.strip_prefix("      "));
    lines.collect::<Vec<_>>().join("\n")
}
