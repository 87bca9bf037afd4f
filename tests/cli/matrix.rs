//! `orch list` as the jobs of a CI pipeline.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::Sandbox;

#[test]
fn each_stack_is_a_job() {
    let sandbox = Sandbox::layout(
        "
        prod/app after /prod/db
        prod/db
        x",
    );
    assert_snapshot!(sandbox.orch("list --format github-matrix --order"), @r#"{"include":[{"name":"prod/db","stacks":"prod/db"},{"name":"prod/app","stacks":"prod/app"},{"name":"x","stacks":"x"}]}"#);
    assert_snapshot!(sandbox.orch("-C prod list --format gitlab-matrix"), @r#"[{"ORCH_STACKS":"app"},{"ORCH_STACKS":"db"}]"#);
    assert_snapshot!(sandbox.orch("list --format github-matrix --tags none"), @r#"
    {"include":[]}
    [stderr]
    note: in `--tags`: no stack of the project has the tag `none`
    note: no stack at or below `/` passes the tag filters
    "#);
    assert_eq!(
        sandbox.orch("list --removed --format github-matrix").code(),
        64
    );
}

/// Paths are data here: what escapes is JSON.
#[test]
fn unusual_names_reach_the_job_unchanged() {
    let sandbox = Sandbox::new("");
    let name = "a\u{202e}b\u{7}c";
    sandbox.write(&format!("/{name}/stack.tm"), "stack {}\n");
    let matrix = sandbox.orch("list --format github-matrix").json();
    assert_eq!(matrix["include"][0]["stacks"], name);
    sandbox.write("/job", name);
    let all = sandbox.orch("list");
    let chosen = sandbox.orch("list --stacks-from job");
    assert_eq!((chosen.code(), chosen.stdout), (0, all.stdout));
    let matrix = sandbox.orch("list --format gitlab-matrix").json();
    assert_eq!(matrix[0]["ORCH_STACKS"], name);
}

/// What a job gets is what `--stacks-from` takes.
#[test]
fn the_jobs_select_all_stacks_and_each_once() {
    let names: Vec<String> = (0..300).map(|number| format!("s{number:03}")).collect();
    let sandbox = Sandbox::layout(&names.join("\n"));
    let matrix = sandbox.orch("list --format github-matrix").json();
    let jobs = matrix["include"].as_array().unwrap();
    assert_eq!(jobs.len(), 150);
    assert_eq!(jobs[149]["name"], "s298 and 1 more");
    let stacks = jobs
        .iter()
        .map(|job: &Value| job["stacks"].as_str().unwrap());
    let all = stacks.collect::<Vec<_>>().join("\n");
    assert_eq!(all.lines().collect::<Vec<_>>(), names);
    sandbox.write("/job", jobs[149]["stacks"].as_str().unwrap());
    assert_eq!(
        sandbox.orch("list --stacks-from job").stdout,
        "s298\ns299\n"
    );
}
