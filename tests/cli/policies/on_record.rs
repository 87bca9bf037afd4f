//! What policies are told of the state and the commit of stacks that have had no turn in the run.

use serde_json::Value;

use super::resumed::kill_behind;
use crate::support::{Repository, run_ids};

const FILES: &str = r#"
//- /state.orch.hcl
orch {
  config {
    state {
      project = "acme"
    }
  }
}
policy "trigger" "keep" {
  file = "keep.rego"
}
//- /keep.rego
package keep

sample { true }
//- /done/stack.orch.hcl
stack {
}
//- /failed/stack.orch.hcl
stack {
}
//- /last/stack.orch.hcl
stack {
}
//- /never/stack.orch.hcl
stack {
}
"#;

/// A project in which `/done` was applied, `/failed` was applied and then failed, and then something was
/// committed. Returns the commit that was applied, too.
fn applied() -> (Repository, String) {
    let repository = Repository::new(FILES);
    assert_eq!(repository.orch("state init").code(), 0);
    let apply = |stacks: &str, program: &str| {
        let run = format!("run -q -X --record {stacks} -- {program}");
        repository.orch(&run).code()
    };
    assert_eq!(apply("--match /done --match /failed", "true"), 0);
    let commit = repository.git("rev-parse HEAD").trim().to_owned();
    repository.write("/file", "new");
    repository.commit();
    assert_eq!(apply("--match /failed", "false"), 1);
    (repository, commit)
}

/// What the policy was told when the first turn of the newest run had ended.
#[track_caller]
fn told(repository: &Repository, arguments: &str) -> Value {
    let ran = repository.orch(&format!(
        "run -X --policies --match /last {arguments} -- true"
    ));
    assert_eq!(ran.code(), 0, "{ran}");
    let run = run_ids(repository).pop().unwrap();
    let sample = format!("/.orch/runs/{run}/samples/1.keep.json");
    serde_json::from_str(&repository.read(&sample)).unwrap()
}

/// The state of each stack, and whether its commit is the one that was applied, with its message.
fn stacks(input: &Value, applied: &str) -> Vec<String> {
    let stacks = input["stacks"].as_array().unwrap().iter();
    let head = &input["run"]["commit"];
    let line = |stack: &Value| {
        let commit = &stack["tracked_commit"];
        let which = match commit["hash"].as_str() {
            Some(hash) if hash == applied => "applied",
            _ if commit == head => "HEAD",
            _ => "unknown",
        };
        let is_dated = commit["created_at"].as_i64() > Some(0);
        let is_complete = is_dated && commit["author"] == head["author"];
        let id = stack["id"].as_str().unwrap();
        format!(
            "{id} {} {which} {is_complete}",
            stack["state"].as_str().unwrap()
        )
    };
    stacks.map(line).collect()
}

#[test]
fn policy_input_has_the_recorded_state_and_commit_of_a_stack() {
    let (repository, commit) = applied();
    // The second time, the `git` program answers: libgit2 reads no partial clone.
    for record in ["--record", ""] {
        let input = told(&repository, record);
        let expected = [
            "/done FINISHED applied true",
            "/failed FAILED applied true",
            "/last FINISHED HEAD true",
            "/never NONE HEAD true",
        ];
        assert_eq!(stacks(&input, &commit), expected, "{record}");
        assert_eq!(input["stack"], input["stacks"][2]);
        repository.git("config core.repositoryFormatVersion 1");
        repository.git("config extensions.partialClone origin");
    }
}

#[test]
fn policy_input_has_only_the_id_of_a_commit_that_the_clone_lacks() {
    let (repository, commit) = applied();
    let document = "/.orch/state/default.json";
    let gone = "f".repeat(40);
    repository.write(document, repository.read(document).replace(&commit, &gone));
    let input = told(&repository, "");
    let tracked = &input["stacks"][0]["tracked_commit"];
    assert_eq!(tracked["hash"], *gone);
    assert_eq!(
        (&tracked["author"], &tracked["created_at"]),
        (&"".into(), &0.into())
    );
}

#[test]
fn policy_run_with_an_unreadable_state_is_refused_unless_it_ignores_the_state() {
    let (repository, _) = applied();
    repository.write("/.orch/state/default.json", "{");
    let refused = repository.orch("run -X --policies --match /last -- true");
    assert_eq!(refused.code(), 5, "{refused}");
    assert!(refused.stderr.contains("`--no-record`"), "{refused}");
    let input = told(&repository, "--no-record");
    assert_eq!(stacks(&input, "")[0], "/done NONE HEAD true");
    let imagined = repository.orch("policy eval keep --stack /last --state FAILED");
    assert_eq!(imagined.code(), 0, "{imagined}");
}

/// Keeps a policy that runs `/failed` after `/done`.
fn with_follow_up() -> Repository {
    let repository = Repository::new(FILES);
    let next = "package keep\ntrigger[\"failed\"] { input.stack.id == \"/done\" }\n";
    repository.write("/keep.rego", next);
    repository.commit();
    assert_eq!(repository.orch("state init").code(), 0);
    repository
}

fn listed(repository: &Repository) -> Vec<String> {
    let list = repository.orch("state list").stdout;
    let stacks = list.lines().filter_map(|line| line.split(' ').next());
    stacks.map(str::to_owned).collect()
}

#[test]
fn policy_follow_ups_are_recorded_although_the_run_is_not() {
    let repository = with_follow_up();
    repository.write_program("/bin/terraform", "#!/bin/sh\n");
    repository.commit();
    let run = "run -q --match /done --policies=task --followup '../bin/terraform apply' -- true";
    let ran = repository.orch(run);
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(listed(&repository), ["/failed"]);
}

#[test]
fn resume_records_follow_ups_although_no_other_stack_is_left() {
    let repository = with_follow_up();
    let ran = repository.orch("run -q --match /done --policies --record -- true");
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(listed(&repository), ["/done", "/failed"]);
    // `orch` is killed before it evaluates the policy.
    kill_behind(&repository, |line| line["event"] == "ended");
    assert_eq!(repository.orch("state forget /failed").code(), 0);
    let ran = repository.orch("run -q --resume last");
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(listed(&repository), ["/done", "/failed"]);
}
