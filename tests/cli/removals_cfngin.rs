//! Repositories that come from `CFNgin` with its persistent graph: what it would delete is destroyed, in the order
//! that keeps what is still used. `aws` is a program that keeps a file for each `CloudFormation` stack.

use std::fs;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Output, Repository, Sandbox, orch_program};

/// The page of the help that says how it is done.
const PAGE: &str = include_str!("../../src/program/help/cfngin.md");

/// What is called instead of the real program, beside the project.
const AWS: &str = r#"#!/bin/sh
outside=$(dirname "$0")
case "$1 $2" in
"s3 cp")
  echo "$3" > "$outside/downloaded"
  exec cp "$outside/bucket.json" "$4"
  ;;
esac
echo "$2 $4" >> "$outside/log"
case $2 in
deploy) [ -e "$6" ] && touch "$outside/world/$4" ;;
delete-stack) rm "$outside/world/$4" ;;
wait) [ ! -e "$outside/world/$5" ] ;;
esac
"#;

/// Returns the blocks of the page in this language.
fn blocks(language: &str) -> Vec<String> {
    let start = format!("```{language}\n");
    let parts = PAGE.split(start.as_str()).skip(1);
    let block = |part: &str| part.split("```").next().unwrap().to_owned();
    parts.map(block).collect()
}

/// A project with the driver of the page and these stacks, each with what it runs after. All of them but
/// `new_stack` are deployed.
fn prepared(stacks: &[(&str, &str)]) -> Repository {
    let sandbox = Sandbox::unmarked("");
    let driver = blocks("hcl").into_iter();
    let driver = driver.filter(|block| block.starts_with("# root.orch.hcl\n"));
    sandbox.write("/root.orch.hcl", driver.collect::<String>());
    sandbox.write_program("/../aws", AWS);
    fs::create_dir(sandbox.outside().join("world")).unwrap();
    for (path, after) in stacks {
        let name = path.rsplit('/').next().unwrap();
        let attribute = match *after {
            "" => String::new(),
            after => format!("  after = [\"{after}\"]\n"),
        };
        sandbox.write(
            &format!("{path}/stack.tm.hcl"),
            format!("stack {{\n{attribute}}}\n"),
        );
        sandbox.write(&format!("{path}/template.yml"), format!("# {name}\n"));
        if name != "new_stack" {
            fs::write(world(&sandbox).join(format!("example-{name}")), "").unwrap();
        }
    }
    Repository::of(sandbox)
}

fn world(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.outside().join("world")
}

/// Runs `orch` with `aws` on the path.
fn orch(repository: &Repository, arguments: &str) -> Output {
    repository.orch_with(arguments, |command| {
        command.env("PATH", path(repository));
    })
}

/// Runs it, and it succeeds.
#[track_caller]
fn done(repository: &Repository, arguments: &str) -> Output {
    let output = orch(repository, arguments);
    assert_eq!(output.code(), 0, "{output}");
    output
}

fn path(repository: &Repository) -> String {
    let orch = orch_program().parent().unwrap().display().to_string();
    let outside = repository.outside().display();
    format!("{outside}:{orch}:{}", std::env::var("PATH").unwrap())
}

/// Writes a graph and imports it.
#[track_caller]
fn import(repository: &Repository, graph: &Value, flags: &str) -> Output {
    fs::write(repository.outside().join("graph.json"), graph.to_string()).unwrap();
    _ = done(repository, "state init");
    done(repository, &format!("state import ../graph.json {flags}"))
}

/// Removes directories in one commit.
#[track_caller]
fn remove(repository: &Repository, directories: &str) {
    repository.git(&format!("rm -q -r {directories}"));
    repository.commit();
}

/// Returns what `aws` was asked to change.
fn acts(repository: &Repository) -> Vec<String> {
    let log = fs::read_to_string(repository.outside().join("log")).unwrap_or_default();
    let acts = log.lines().filter(|line| !line.starts_with("wait"));
    acts.map(str::to_owned).collect()
}

/// Returns the keys recorded.
fn on_record(repository: &Repository) -> Vec<String> {
    let list = done(repository, "state list --format json").json();
    let stacks = list["stacks"].as_array().unwrap().iter();
    let stacks = stacks.filter(|stack| stack["status"] != "pending");
    stacks
        .map(|stack| stack["path"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_page_of_the_help_is_true() {
    let sandbox = Sandbox::unmarked("");
    sandbox.write_program("/../aws", AWS);
    fs::create_dir(world(&sandbox)).unwrap();
    for block in blocks("hcl") {
        let (file, text) = block.split_once('\n').unwrap();
        let file = file.strip_prefix("# ").unwrap();
        sandbox.write(file, text);
        if let Some(stack) = file.strip_suffix("/stack.tm.hcl") {
            sandbox.write(&format!("{stack}/template.yml"), format!("# {stack}\n"));
        }
    }
    for deployed in ["first_stack", "removed_stack"] {
        fs::write(world(&sandbox).join(format!("example-{deployed}")), "").unwrap();
    }
    fs::write(sandbox.outside().join("bucket.json"), &blocks("json")[0]).unwrap();
    let repository = Repository::of(sandbox);

    let mut said = Vec::new();
    for commands in blocks("sh") {
        let mut shell = Command::new("sh");
        let git = repository.git_at("/").command(&["version"]);
        for (name, value) in git.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell
            .args(["-e", "-c", &commands])
            .env("PATH", path(&repository))
            .current_dir(repository.path("/"));
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{commands}: {output:?}");
        said.push(String::from_utf8(output.stdout).unwrap());
    }
    let head = repository.git("rev-parse --short=7 HEAD");
    let plan = blocks("text")[0].replace("4f2c81d", head.trim());
    assert_eq!(said[1], plan);
    assert_eq!(
        fs::read_to_string(repository.outside().join("downloaded")).unwrap(),
        "s3://cfngin-bucket/persistent_graphs/example/my_graph.json\n"
    );
    let mut acts = acts(&repository);
    acts.sort();
    assert_eq!(
        acts,
        [
            "delete-stack example-removed_stack",
            "deploy example-new_stack"
        ]
    );
    assert_eq!(on_record(&repository), ["/first_stack", "/new_stack"]);
    assert!(!world(&repository).join("example-removed_stack").exists());
}

#[test]
fn removed_stacks_are_destroyed_before_what_they_ran_after() {
    let repository = prepared(&[("a", ""), ("b", "/a"), ("c", "/b"), ("kept", "")]);
    let graph = json!({ "a": [], "b": ["a"], "c": ["b"], "kept": [] });
    _ = import(&repository, &graph, "--commit HEAD");
    remove(&repository, "a b c");
    let why = done(&repository, "why /b").stdout;
    let lines = why.lines().skip_while(|line| !line.starts_with("status"));
    let head = repository.git("rev-parse --short=7 HEAD");
    let told = lines.collect::<Vec<&str>>().join("\n");
    assert_snapshot!(told.replace(head.trim(), "[commit]"), @"
    status   removed in [commit]
    plan     destroyed first: /c
             then: this stack
             then: /a
    ");
    let plan = done(&repository, "plan --format json").json();
    assert_eq!(
        plan["operations"],
        json!([
            { "path": "/c", "operation": "destroy" },
            { "path": "/b", "operation": "destroy" },
            { "path": "/a", "operation": "destroy" },
        ])
    );
    _ = done(&repository, "apply --auto-approve --allow-destroy=3");
    assert_eq!(
        acts(&repository),
        [
            "delete-stack example-c",
            "delete-stack example-b",
            "delete-stack example-a"
        ]
    );
    assert_eq!(on_record(&repository), ["/kept"]);
}

#[test]
fn a_graph_can_be_imported_when_its_stacks_are_already_removed() {
    let repository = prepared(&[
        ("live/first_stack", ""),
        ("live/removed_stack", "/live/first_stack"),
    ]);
    remove(&repository, "live/removed_stack");
    let graph = json!({ "first_stack": [], "removed_stack": ["first_stack"], "lost": [] });
    let base = repository.git("rev-parse --short=7 base");
    repository.learn(base.trim(), "[base]");
    assert_snapshot!(import(&repository, &graph, "--commit base"), @"
    imported /live/first_stack
    imported /live/removed_stack
    imported /lost
    [stderr]
    note: commit [base] has no stack `lost`, so its removal cannot be proved later
    note: not verified with a tool: `/live/removed_stack`, `/lost` (not in the working tree)
    note: not verified with a tool: `/live/first_stack` (the driver `cloudformation` has no `plan`)
    ");
    let plan = done(&repository, "plan");
    let head = repository.git("rev-parse --short=7 HEAD");
    assert_snapshot!(plan.to_string().replace(head.trim(), "[head]"), @"
      - /live/removed_stack  delete  removed in [head]
      ! /lost                blocked: the applied commit [base] does not have it

    Plan: 1 to delete, 1 blocked, 1 unchanged.
    [stderr]
    warning: `/lost` is recorded but not in the project, and is not destroyed: the applied commit [base] does not have it
      = help: restore it and delete it in a commit of its own; if nothing of it is left, run `orch state forget`
    ");
    _ = done(&repository, "apply --auto-approve --allow-destroy=1");
    assert_eq!(acts(&repository), ["delete-stack example-removed_stack"]);
    assert_eq!(on_record(&repository), ["/live/first_stack", "/lost"]);
    let worktrees = fs::read_dir(repository.path("/.orch/worktrees"));
    assert_eq!(worktrees.map_or(0, Iterator::count), 0);
}

#[test]
fn a_name_that_may_mean_two_stacks_of_the_commit_is_not_imported() {
    let repository = prepared(&[("a/removed_stack", ""), ("b/removed_stack", ""), ("c", "")]);
    remove(&repository, "a b");
    fs::write(
        repository.outside().join("graph.json"),
        r#"{"removed_stack": []}"#,
    )
    .unwrap();
    _ = done(&repository, "state init");
    assert_snapshot!(orch(&repository, "state import ../graph.json --commit base"), @"
    [stderr]
    error: several stacks have the name `removed_stack`: `/a/removed_stack`, `/b/removed_stack`
    [exit status 4]
    ");
    assert!(on_record(&repository).is_empty());
}

#[test]
fn a_commit_whose_configuration_is_wrong_tells_no_stacks() {
    let repository = prepared(&[("a", ""), ("b", "")]);
    repository.write("/b/broken.tm", "stack {");
    repository.commit();
    let broken = repository.git("rev-parse --short=7 HEAD");
    repository.git("rm -q -r b");
    repository.commit();
    fs::write(repository.outside().join("graph.json"), r#"{"b": []}"#).unwrap();
    _ = done(&repository, "state init");
    let refused = orch(&repository, "state import ../graph.json --commit HEAD~1");
    assert_snapshot!(refused.to_string().replace(broken.trim(), "[commit]"), @"
    [stderr]
    error: the stacks of commit [commit] are unknown: the configuration of its commit is wrong: b/broken.tm:1: syntax error
      = help: name another commit with `--commit`
    [exit status 4]
    ");
    assert!(on_record(&repository).is_empty());
}

#[test]
fn without_a_commit_nothing_proves_a_removal() {
    let repository = prepared(&[("first_stack", ""), ("removed_stack", "/first_stack")]);
    let graph = json!({ "first_stack": [], "removed_stack": ["first_stack"] });
    _ = import(&repository, &graph, "");
    remove(&repository, "removed_stack");
    let plan = done(&repository, "plan");
    assert!(
        plan.stdout.contains("! /removed_stack  blocked: "),
        "{plan}"
    );
    _ = done(&repository, "apply --auto-approve --allow-destroy=1");
    assert!(
        acts(&repository)
            .iter()
            .all(|act| !act.starts_with("delete"))
    );
    assert!(world(&repository).join("example-removed_stack").exists());
}
