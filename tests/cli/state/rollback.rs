//! No run reverts a commit that was applied later, unless a flag allows it.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{Checkout, Output, Repositories};

const STATE: &str = r#"
orch {
  config {
    state {
      project = "acme"
    }
  }
}
"#;

const DOCUMENT: &str = ".orch/state/default.json";

/// An author has committed files as "first", beside the configuration of the state.
fn first(files: &[(&str, &str)]) -> Repositories {
    let all = Repositories::new();
    let author = all.author();
    author.write("state.orch.hcl", STATE);
    for (path, text) in files {
        author.write(path, text);
    }
    author.commit("first", "");
    assert_eq!(author.orch("state init").code(), 0);
    all
}

/// An author has applied the commit "first", and a project is a clone of that. Then the author has changed
/// and applied `/a` in the commit "second".
fn scene(options: &str) -> Repositories {
    let all = first(&[("a/main.tf", "# 1\n")]);
    let author = all.author();
    author.git("remote add origin $URL");
    all.clone(options);
    author.git("fetch -q origin");
    assert_eq!(apply(&author, "").code(), 0);
    author.write("a/main.tf", "# 2\n");
    author.commit("second", "");
    assert_eq!(apply(&author, "--match a").code(), 0);
    share(&author, &all.project());
    all
}

/// Gives another checkout the document.
fn share(from: &Checkout<'_>, to: &Checkout<'_>) {
    let document = std::fs::read_to_string(from.path(DOCUMENT)).unwrap();
    to.write(DOCUMENT, &document);
}

fn document(checkout: &Checkout<'_>) -> Value {
    let text = std::fs::read_to_string(checkout.path(DOCUMENT)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn apply(checkout: &Checkout<'_>, flags: &str) -> Output {
    checkout.orch(&format!("run -q -X --record {flags} true"))
}

#[test]
fn rollback_of_a_later_commit_is_refused() {
    let all = scene("");
    let author = all.author();
    author.git("checkout -q <first>");
    let before = document(&author);
    assert_snapshot!(apply(&author, ""), @"
    [stderr]
    error: this run would roll back stack `/a`: HEAD is behind the last applied commit <second> of main
      = help: merge or check out that commit; to revert it, add `--allow-rollback`
    [exit status 4]
    ");
    assert_snapshot!(apply(&author, "--changed --base applied"), @"
    [stderr]
    base applied: serial 5 of `.orch/state/default.json`
    error: this run would roll back stack `/a`: HEAD is behind the last applied commit <second> of main
      = help: merge or check out that commit; to revert it, add `--allow-rollback`
    [exit status 4]
    ");
    assert_eq!(document(&author), before);
    // What is the same everywhere may be applied, and what is not recorded is nobody's business.
    assert_eq!(apply(&author, "--match b").code(), 0);
    assert_eq!(author.orch("run -q -X --no-record true").code(), 0);
    assert_snapshot!(apply(&author, "--allow-rollback"), @"");
    let a = &document(&author)["stacks"]["/a"]["applied"];
    assert_eq!(a["commit"], author.id("HEAD"));
    // From now on, the older commit is what is out there.
    assert_eq!(apply(&author, "").code(), 0);
    author.git("checkout -q <second>");
    assert_eq!(apply(&author, "").code(), 0);
}

/// The later commit changed a file that the older one lacks, because it has another path there.
#[test]
fn rollback_of_a_renamed_stack_or_input_is_refused() {
    let behind = "HEAD is behind the last applied commit";
    let all = scene("");
    let author = all.author();
    author.git("checkout -q <first>");
    author.git("mv a lan");
    let moved = "moved {\n  from = \"/a\"\n  to   = \"/lan\"\n}\n";
    author.write("moved.orch.hcl", moved);
    for is_committed in [false, true] {
        if is_committed {
            author.git("add -A");
            author.git("commit -qm rename");
        }
        let output = apply(&author, "--match lan");
        assert_eq!(output.code(), 4, "{is_committed}: {output}");
        let lacks = "HEAD lacks the last applied commit";
        let why = if is_committed { lacks } else { behind };
        assert!(output.stderr.contains(why), "{output}");
    }
    let reads = |file: &str| format!("locals {{\n  x = file(\"${{path.module}}/../{file}\")\n}}\n");
    let all = first(&[("a/main.tf", &reads("mod/m.txt")), ("mod/m.txt", "1\n")]);
    let author = all.author();
    assert_eq!(apply(&author, "").code(), 0);
    author.write("mod/m.txt", "2\n");
    author.commit("second", "");
    assert_eq!(apply(&author, "--match a").code(), 0);
    author.git("checkout -q <first>");
    author.git("mv mod lib");
    author.write("a/main.tf", &reads("lib/m.txt"));
    let output = apply(&author, "--match a");
    assert_eq!(output.code(), 4, "{output}");
    assert!(output.stderr.contains(behind), "{output}");
    // With the later content, nothing is reverted.
    author.write("lib/m.txt", "2\n");
    assert_eq!(apply(&author, "--match a").code(), 0);
}

/// The later commit deleted a file, which the older one has under another path.
#[test]
fn rollback_of_a_deletion_in_a_renamed_module_is_refused() {
    let calls = |module: &str| format!("module \"m\" {{\n  source = \"../{module}\"\n}}\n");
    let all = first(&[
        ("a/main.tf", &calls("mod")),
        ("mod/main.tf", "# 1\n"),
        ("mod/bucket.tf", "# A bucket\n"),
    ]);
    let author = all.author();
    author.git("rm -q mod/bucket.tf");
    author.commit("second", "");
    assert_eq!(apply(&author, "--match a").code(), 0);
    author.git("checkout -q <first>");
    author.git("mv mod lib");
    author.write("a/main.tf", &calls("lib"));
    let output = apply(&author, "--match a");
    assert_eq!(output.code(), 4, "{output}");
    author.git("rm -qf lib/bucket.tf");
    assert_eq!(apply(&author, "--match a").code(), 0);
}

/// Files of other stacks show nothing of where those of a stack are now.
#[test]
fn rollback_check_looks_at_the_files_of_the_stack_itself() {
    let all = scene("");
    let author = all.author();
    author.git("checkout -q <first>");
    author.git("mv a lan");
    let moved = "moved {\n  from = \"/a\"\n  to   = \"/lan\"\n}\n";
    author.write("moved.orch.hcl", moved);
    // The same name and content, in another stack.
    author.write("b/main.tf", "# 2\n");
    let output = apply(&author, "--match lan");
    assert_eq!(output.code(), 4, "{output}");
    author.git("checkout -q b");
    // A file at the earlier path, in a new stack.
    author.write("a/main.tf", "# 3\n");
    author.write("a/stack.tm", "stack {\n  id = \"new\"\n}\n");
    author.write("lan/stack.tm", "stack {\n  id = \"old\"\n}\n");
    let output = apply(&author, "--match lan");
    assert_eq!(output.code(), 4, "{output}");
}

/// The later commit deleted a file, which the older one has under another name.
#[test]
fn rollback_of_a_deletion_of_a_renamed_file_is_refused() {
    let all = first(&[("a/main.tf", "# 1\n"), ("a/bucket.tf", "# A bucket\n")]);
    let author = all.author();
    author.git("rm -q a/bucket.tf");
    author.commit("second", "");
    assert_eq!(apply(&author, "--match a").code(), 0);
    author.git("checkout -q <first>");
    author.git("mv a/bucket.tf a/storage.tf");
    author.commit("third", "");
    let output = apply(&author, "--match a");
    assert_eq!(output.code(), 4, "{output}");
}

/// The attempt at a branch failed. Its commit was merged without a new file that no stack has.
#[test]
fn rollback_check_ignores_new_files_that_were_dropped() {
    let all = scene("");
    let author = all.author();
    author.git("checkout -qb work");
    author.write("a/main.tf", "# 3\n");
    author.write("notes.md", "");
    author.commit("third", "");
    let failed = author.orch("run -q -X --record --match a false");
    assert_eq!(failed.code(), 1);
    author.git("checkout -q main");
    author.write("a/main.tf", "# 3\n");
    author.commit("merged", "");
    let output = apply(&author, "--match a");
    assert_eq!(output.code(), 0, "{output}");
}

/// A branch was applied and then merged as one commit, which changed what `/a` never used.
#[test]
fn rollback_check_ignores_deleted_files_that_were_no_inputs() {
    let all = first(&[
        ("a/main.tf", "module \"m\" {\n  source = \"../mod\"\n}\n"),
        ("mod/main.tf", "# 1\n"),
        ("unused/main.tf", "# 1\n"),
    ]);
    let author = all.author();
    author.git("checkout -qb work");
    author.write("unused/main.tf", "# 2\n");
    author.commit("second", "");
    assert_eq!(apply(&author, "--match a").code(), 0);
    author.git("checkout -q main");
    author.git("rm -qr unused");
    author.write(
        "a/main.tf",
        "module \"m\" {\n  source = \"../mod\"\n}\n# More\n",
    );
    author.commit("third", "");
    let output = apply(&author, "--match a");
    assert_eq!(output.code(), 0, "{output}");
    // What a module uses is not recorded by name.
    author.git("checkout -q work");
    author.write("unused/main.tf", "# 3\n");
    author.commit("fourth", "");
    assert_eq!(apply(&author, "--match a --allow-rollback").code(), 0);
    author.git("checkout -q main");
    author.write("mod/main.tf", "# 2\n");
    let output = apply(&author, "--match a");
    assert_eq!(output.code(), 4, "{output}");
}

#[test]
fn rollback_of_a_later_failed_attempt_is_refused() {
    let all = scene("");
    let author = all.author();
    author.write("b/main.tf", "# 3\n");
    author.commit("third", "");
    assert_eq!(author.orch("run -q -X --record --match b false").code(), 1);
    author.git("checkout -q <second>");
    author.write("b/main.tf", "# 4\n");
    assert_snapshot!(apply(&author, "--match b"), @"
    [stderr]
    error: this run would roll back stack `/b`: HEAD is behind the last applied commit <third> of main
      = help: merge or check out that commit; to revert it, add `--allow-rollback`
    [exit status 4]
    ");
}

#[test]
fn rollback_check_fetches_a_missing_commit_with_fetch() {
    let all = scene("");
    all.publish();
    let project = all.project();
    assert_snapshot!(apply(&project, ""), @"
    [stderr]
    error: this run would roll back stack `/a`: the last applied commit <second> is not in this clone
      = help: run `git fetch origin <second>`, or add `--fetch`
      = help: to apply HEAD anyway, add `--allow-rollback`
    [exit status 4]
    ");
    assert_snapshot!(apply(&project, "--fetch"), @"
    [stderr]
    note: running `git fetch origin <second>`
    From $URL
     * branch            <second> -> FETCH_HEAD
    error: this run would roll back stack `/a`: HEAD is behind the last applied commit <second>
      = help: merge or check out that commit; to revert it, add `--allow-rollback`
    [exit status 4]
    ");
    project.git("merge -q --ff-only FETCH_HEAD");
    assert_snapshot!(apply(&project, "--fetch"), @"");
    // It has an effect only where a run is recorded.
    assert_snapshot!(project.orch("run -q -X --fetch true"), @"
    [stderr]
    error: `--fetch` has no effect without `--changed` in a run that is not recorded
    [exit status 64]
    ");
    assert_snapshot!(project.orch("list --fetch"), @"
    [stderr]
    error: `--fetch` has no effect without `--changed` or `--status`; add `--changed` or `--status`
    [exit status 64]
    ");
}

#[test]
fn rollback_is_allowed_without_the_commit_by_a_flag() {
    let all = scene("");
    let project = all.project();
    assert_eq!(apply(&project, "--allow-rollback").code(), 0);
    let a = &document(&project)["stacks"]["/a"]["applied"];
    assert_eq!(a["commit"], project.id("HEAD"));
}

#[test]
fn rollback_of_a_commit_lost_by_the_remote_is_refused() {
    let all = scene("");
    let project = all.project();
    // It never got there.
    assert_snapshot!(apply(&project, "--fetch").without_git(), @"
    [stderr]
    note: running `git fetch origin <second>`
    note: running `git fetch origin`
    error: this run would roll back stack `/a`: the last applied commit <second> is neither in this clone nor on the remote
      = help: merge or check out that commit; to revert it, add `--allow-rollback`
    [exit status 4]
    ");
}

#[test]
fn rollback_of_a_commit_on_another_branch_is_refused() {
    let all = scene("");
    let author = all.author();
    author.git("checkout -q <first>");
    author.write("a/main.tf", "# 3\n");
    author.commit("beside", "");
    assert_snapshot!(apply(&author, ""), @"
    [stderr]
    error: this run would roll back stack `/a`: HEAD lacks the last applied commit <second> of main
      = help: merge or check out that commit; to revert it, add `--allow-rollback`
    [exit status 4]
    ");
    assert_eq!(apply(&author, "--allow-rollback").code(), 0);
}

#[test]
fn rollback_check_in_a_shallow_clone_fetches_the_applied_commit() {
    let all = scene("");
    let author = all.author();
    author.write("a/main.tf", "# 3\n");
    author.commit("third", "");
    all.publish();
    all.at("").git("clone -q --depth 1 $URL shallow");
    let shallow = all.at("shallow");
    share(&author, &shallow);
    // Where the history is cut off, it still has the names of the commits before.
    assert_eq!(apply(&shallow, "--dry-run").code(), 0);
    author.write("a/main.tf", "# 4\n");
    author.commit("fourth", "");
    all.publish();
    shallow.git("fetch -q --depth 1 origin main");
    shallow.git("reset -q --hard FETCH_HEAD");
    assert_snapshot!(apply(&shallow, ""), @"
    [stderr]
    error: this run would roll back stack `/a`: the last applied commit <second> is not in this clone
      = help: run `git fetch origin <second>`, or add `--fetch`
      = help: to apply HEAD anyway, add `--allow-rollback`
    [exit status 4]
    ");
    assert_snapshot!(apply(&shallow, "--fetch").without_git(), @"
    [stderr]
    note: running `git fetch origin <second>`
    note: running `git fetch --unshallow origin`
    ");
}
