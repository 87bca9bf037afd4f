//! Entries follow their stacks, and `seen` follows the published branch.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::Repository;

const FILES: &str = r#"
//- /state.orch.hcl
orch {
  config {
    state {
      project = "acme"
    }
  }
}
//- /a/stack.tm
stack {
  id = "a"
}
//- /b/stack.tm
stack {
  id = "B"
}
//- /c/stack.tm
stack {
}
"#;

fn applied() -> Repository {
    let repository = Repository::new(FILES);
    assert_eq!(repository.orch("state init").code(), 0);
    assert_eq!(repository.orch("state adopt --no-verify").code(), 0);
    repository
}

fn document(repository: &Repository) -> Value {
    serde_json::from_str(&repository.read("/.orch/state/default.json")).unwrap()
}

/// The recorded stacks, each with its id, the commit that it was applied from and its status.
fn entries(repository: &Repository) -> Vec<String> {
    let stacks = document(repository)["stacks"].as_object().unwrap().clone();
    let id = |entry: &Value| entry["id"].as_str().unwrap_or("none").to_owned();
    stacks
        .iter()
        .map(|(key, entry)| format!("{key} {}", id(entry)))
        .collect()
}

#[track_caller]
fn apply(repository: &Repository, flags: &str) {
    let run = repository.orch(&format!("run -q -X --record {flags} true"));
    assert_eq!(run.code(), 0, "{run}");
}

#[test]
fn run_moves_the_entry_of_a_moved_stack() {
    let repository = applied();
    repository.git("mv a moved");
    repository.write("/moved/stack.tm", "stack {\n  id = \"A\"\n}\n");
    repository.commit();
    assert_eq!(repository.orch("run -q --no-record true").code(), 0);
    assert_eq!(entries(&repository), ["/a a", "/b B", "/c none"]);
    let before = document(&repository)["stacks"]["/a"]["applied"].clone();
    // Also if it is about another stack.
    apply(&repository, "--match c");
    assert_eq!(entries(&repository), ["/b B", "/c none", "/moved a"]);
    let after = document(&repository)["stacks"]["/moved"]["applied"].clone();
    assert_eq!(after, before);
    apply(&repository, "--match moved");
    assert_eq!(entries(&repository), ["/b B", "/c none", "/moved A"]);
    assert_eq!(repository.orch("list --changed --base applied").stdout, "");
}

#[test]
fn run_swaps_the_entries_of_two_stacks() {
    let repository = applied();
    let (a, b) = (
        document(&repository)["stacks"]["/a"]["applied"]["inputs"].clone(),
        document(&repository)["stacks"]["/b"]["applied"]["inputs"].clone(),
    );
    repository.git("mv a other");
    repository.git("mv b a");
    repository.git("mv other b");
    repository.commit();
    apply(&repository, "--match c");
    assert_eq!(entries(&repository), ["/a B", "/b a", "/c none"]);
    let document = document(&repository);
    assert_eq!(document["stacks"]["/a"]["applied"]["inputs"], b);
    assert_eq!(document["stacks"]["/b"]["applied"]["inputs"], a);
}

#[test]
fn run_applies_swapped_stacks_at_once() {
    let repository = applied();
    repository.git("mv a other");
    repository.git("mv b a");
    repository.git("mv other b");
    repository.commit();
    apply(&repository, "--match a");
    assert_eq!(entries(&repository), ["/a B", "/b a", "/c none"]);
    let left = repository.orch("list --changed --base applied");
    assert_eq!(left.stdout, "b\n", "{left}");
}

#[test]
fn run_refuses_a_path_that_another_stack_has_recorded() {
    let repository = applied();
    repository.write("/a/stack.tm", "stack {\n  id = \"new\"\n}\n");
    repository.commit();
    let before = document(&repository);
    assert_snapshot!(repository.orch("run -q --record true"), @"
    [stderr]
    error: another stack is recorded at `/a`, with another id; it is not in this project
      = help: if it still exists, run `orch state move /a NEW`; if nothing of it exists, run `orch state forget /a`
    [exit status 4]
    ");
    assert_eq!(document(&repository), before);
    // It is in the way of no other stack.
    apply(&repository, "--match c");
    // The way out.
    assert_eq!(repository.orch("state move a old").code(), 0);
    apply(&repository, "--match a");
    assert_eq!(
        entries(&repository),
        ["/a new", "/b B", "/c none", "/old a"]
    );
}

/// A project whose remote has the commits that are pushed.
fn with_remote() -> Repository {
    let repository = applied();
    let url = repository.outside().join("remote");
    repository.git(&format!("init -q --bare {}", url.display()));
    repository.git(&format!("remote add origin {}", url.display()));
    repository.git("push -q origin main");
    repository
}

fn seen(repository: &Repository, stack: &str) -> Value {
    document(repository)["stacks"][stack]["applied"]["seen"].clone()
}

fn id(repository: &Repository, revision: &str) -> Value {
    json!(repository.git(&format!("rev-parse {revision}")).trim())
}

#[test]
fn state_run_advances_seen_to_a_published_head() {
    let repository = with_remote();
    let first = id(&repository, "HEAD");
    repository.git("commit -q --allow-empty -m second");
    apply(&repository, "--match c");
    assert_eq!(seen(&repository, "/a"), first, "HEAD is not published");
    assert_eq!(seen(&repository, "/c"), first, "nor is what was applied");
    repository.git("push -q origin main");
    apply(&repository, "--match c");
    let second = id(&repository, "HEAD");
    assert_eq!(seen(&repository, "/a"), second);
    assert_eq!(seen(&repository, "/c"), second);
    assert_eq!(
        document(&repository)["stacks"]["/a"]["applied"]["commit"],
        first
    );
    // Never back.
    repository.git("checkout -q HEAD~1");
    apply(&repository, "--match c");
    assert_eq!(seen(&repository, "/a"), second);
    // Not for what differs, and not for what is not committed.
    repository.git("checkout -q main");
    repository.write("/a/main.tf", "# a\n");
    repository.commit();
    repository.git("push -q origin main");
    repository.write("/b/main.tf", "# b\n");
    apply(&repository, "--match c");
    assert_eq!(seen(&repository, "/a"), second);
    assert_eq!(seen(&repository, "/b"), second);
    assert_eq!(seen(&repository, "/c"), id(&repository, "HEAD"));
}

#[test]
fn state_counts_every_head_as_published_without_a_remote() {
    let repository = applied();
    repository.git("commit -q --allow-empty -m second");
    apply(&repository, "--match c");
    assert_eq!(seen(&repository, "/a"), id(&repository, "HEAD"));
}

#[test]
fn state_finds_the_default_branch_without_the_remote_head() {
    let repository = with_remote();
    // As checkouts of CI leave it.
    let (has_head, _) = repository.try_git("/", "symbolic-ref refs/remotes/origin/HEAD");
    assert!(!has_head);
    repository.git("commit -q --allow-empty -m second");
    repository.git("push -q origin main");
    apply(&repository, "--match c");
    assert_eq!(seen(&repository, "/a"), id(&repository, "HEAD"));
    // Another branch of the remote is not enough, unless the configuration says so.
    repository.git("checkout -q -b side");
    repository.git("commit -q --allow-empty -m third");
    repository.git("push -q origin side");
    apply(&repository, "--match c");
    assert_eq!(seen(&repository, "/a"), id(&repository, "HEAD~1"));
    let settings =
        "orch {\n  config {\n    git {\n      default_branch = \"side\"\n    }\n  }\n}\n";
    repository.write("/git.orch.hcl", settings);
    apply(&repository, "--match c");
    assert_eq!(seen(&repository, "/a"), id(&repository, "HEAD"));
}

#[test]
fn state_takes_the_tip_as_the_newest_after_a_force_push() {
    let repository = with_remote();
    repository.git("commit -q --allow-empty -m second");
    repository.git("push -q origin main");
    apply(&repository, "--match c");
    repository.git("reset -q --hard HEAD~1");
    repository.git("commit -q --allow-empty -m third");
    repository.git("push -q --force origin main");
    apply(&repository, "--match c");
    assert_eq!(seen(&repository, "/a"), id(&repository, "HEAD"));
}
