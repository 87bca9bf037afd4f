//! What looks like a removal and is none: nothing is destroyed, whoever approves it.

use std::fs;

use super::{APPROVED, STATE, applied, declare, forget_log, log, remove, want, world};
use crate::support::Repository;

/// Three stacks that are applied.
fn three() -> Repository {
    let repository = applied(&[("/a", "id = \"first\""), ("/b", ""), ("/c/d", "")]);
    assert_eq!(world(&repository), ["a", "b", "c_d"]);
    repository
}

/// Tries to destroy with all commands that could; asserts that nothing is destroyed.
#[track_caller]
fn nothing_is_destroyed(repository: &Repository, accident: &str) {
    nothing_is_destroyed_in(repository, accident, "/", "");
}

#[track_caller]
fn nothing_is_destroyed_in(repository: &Repository, accident: &str, directory: &str, flags: &str) {
    forget_log(repository);
    let mut said = String::new();
    for command in ["apply", "destroy --match a"] {
        let arguments = format!("{command} {APPROVED} --disable-safeguards=all {flags}");
        let output = repository.orch_in(directory, &arguments);
        said += &format!("{command}: {output}\n");
    }
    let steps = log(repository);
    let destroys = steps.iter().any(|step| step.starts_with("destroy"));
    assert!(!destroys, "{accident}: {steps:?}\n{said}");
    for name in ["a", "b", "c_d"] {
        assert!(
            world(repository).contains(&name.to_owned()),
            "{accident}: {said}"
        );
    }
}

#[test]
fn removal_needs_an_up_to_date_branch() {
    let repository = three();
    repository.git("checkout -q -b behind");
    repository.git("checkout -q main");
    repository.git("commit -q --allow-empty -m later");
    want(&repository, "/a", "2");
    repository.commit();
    super::done(&repository, "apply --auto-approve");
    repository.git("checkout -q behind");
    // The commit that was applied is not here, and the directory went in another one.
    remove(&repository, "a");
    nothing_is_destroyed(&repository, "branch behind");
}

#[test]
fn removal_ignores_merges_that_lose_a_stack() {
    let repository = three();
    // A branch that never had it keeps only its own side.
    repository.git("checkout -q -b old");
    repository.git("rm -q -r a");
    repository.git("commit -q -m 'never had it'");
    let old = repository.git("rev-parse HEAD^{tree}");
    let root = repository.git(&format!("commit-tree -m old {}", old.trim()));
    repository.git(&format!("checkout -q -B old {}", root.trim()));
    repository.git("merge -q --allow-unrelated-histories -s ours main");
    nothing_is_destroyed(&repository, "merge -s ours");
    // A merge that loses it on the way.
    let repository = three();
    repository.git("checkout -q -b other");
    repository.git("rm -q -r a");
    repository.git("commit -q -m other");
    let tree = repository.git("rev-parse HEAD^{tree}");
    let root = repository.git(&format!("commit-tree -m old {}", tree.trim()));
    repository.git("checkout -q main");
    repository.git(&format!(
        "merge -q --no-ff --no-commit --allow-unrelated-histories -s ours {}",
        root.trim()
    ));
    repository.git("rm -q -r a");
    repository.git("commit -q -m evil");
    nothing_is_destroyed(&repository, "evil merge");
}

#[test]
fn removal_keeps_stacks_that_exist_or_are_restored() {
    let repository = three();
    remove(&repository, "a");
    repository.git("revert --no-edit HEAD");
    nothing_is_destroyed_by_apply(&repository, "revert of a removal");

    let repository = three();
    repository.git("mv a/stack.orch.hcl a/other.orch.hcl");
    repository.commit();
    nothing_is_destroyed_by_apply(&repository, "renamed stack file");

    let repository = three();
    repository.git("rm -q a/stack.orch.hcl");
    repository.commit();
    nothing_is_destroyed(&repository, "block without its code");

    let repository = three();
    repository.git("rm -q -r a");
    nothing_is_destroyed(&repository, "deletion that is staged only");
}

#[test]
fn removal_keeps_moved_stacks() {
    let repository = three();
    repository.git("mv b elsewhere");
    repository.commit();
    nothing_is_destroyed_by_apply(&repository, "directory moved");

    let repository = three();
    remove(&repository, "a");
    declare(&repository, "/moved", "id = \"first\"");
    repository.write("/moved/want", "1");
    repository.write("/moved/object", "a");
    repository.commit();
    nothing_is_destroyed_by_apply(&repository, "id moved to another path");

    let repository = three();
    declare(&repository, "/a", "id = \"second\"");
    repository.commit();
    nothing_is_destroyed_by_apply(&repository, "another id at the old path");
}

/// The same for a stack that is in the project: `orch destroy` is meant to destroy that.
#[track_caller]
fn nothing_is_destroyed_by_apply(repository: &Repository, accident: &str) {
    forget_log(repository);
    let output = repository.orch(&format!("apply {APPROVED} --disable-safeguards=all"));
    let steps = log(repository);
    let destroys = steps.iter().any(|step| step.starts_with("destroy"));
    assert!(!destroys, "{accident}: {steps:?}\n{output}");
    let world = world(repository);
    for name in ["a", "b", "c_d"] {
        assert!(world.contains(&name.to_owned()), "{accident}: {output}");
    }
}

#[test]
fn removal_ignores_squashed_or_rebased_branches() {
    for (how, merge) in [
        (
            "squash",
            &["merge -q --squash feature", "commit -q -m squashed"][..],
        ),
        ("rebase", &["cherry-pick main..feature"]),
    ] {
        let repository = three();
        repository.git("checkout -q -b feature");
        want(&repository, "/a", "2");
        repository.commit();
        super::done(&repository, "apply --auto-approve");
        repository.git("checkout -q main");
        want(&repository, "/b", "meanwhile");
        repository.commit();
        for step in merge {
            repository.git(step);
        }
        // No run of the branch has noted yet that it has what was applied.
        remove(&repository, "a");
        nothing_is_destroyed(&repository, how);
        let plan = super::planned(&repository, "--match a");
        assert!(plan[0].starts_with("/a blocked: HEAD lacks "), "{plan:?}");
    }
}

#[test]
fn removal_ignores_commits_older_than_the_stack() {
    let repository = three();
    declare(&repository, "/new", "");
    want(&repository, "/new", "1");
    repository.commit();
    super::done(&repository, "apply --auto-approve");
    repository.git("checkout -q --detach HEAD~1");
    nothing_is_destroyed_by_apply(&repository, "detached head");
    assert!(world(&repository).contains(&"new".to_owned()));
    let plan = super::planned(&repository, "--match new");
    assert!(plan[0].starts_with("/new blocked: HEAD lacks "), "{plan:?}");
}

#[test]
fn removal_keeps_moved_stacks_after_later_commits() {
    // It is changed from the first line to the last.
    let repository = three();
    repository.git("mv b elsewhere");
    repository.commit();
    let other: Vec<String> = (0..40).map(|line| format!("# {line} of another")).collect();
    let other = other.join("\n");
    repository.write(
        "/elsewhere/stack.orch.hcl",
        format!("{other}stack {{\n}}\n"),
    );
    want(&repository, "/elsewhere", &other);
    repository.commit();
    nothing_is_destroyed_by_apply(&repository, "moved and changed");
    // The first apply at the new path fails, and so nothing is known to be there.
    let repository = three();
    repository.git("mv b elsewhere");
    repository.commit();
    super::hook(&repository, "apply", "elsewhere", "exit 1");
    for _ in 0..2 {
        let output = repository.orch(&format!("apply {APPROVED}"));
        assert_eq!(output.code(), 1, "{output}");
    }
    nothing_is_destroyed_by_apply(&repository, "moved and failed");
}

#[test]
fn removal_needs_a_complete_clone() {
    // A sparse checkout.
    let repository = three();
    repository.git("sparse-checkout set --no-cone /tool '/*.hcl' /b /c");
    assert!(!repository.path("/a").exists());
    nothing_is_destroyed(&repository, "sparse checkout");

    // A shallow clone, in which the commit that was applied is missing.
    let repository = three();
    remove(&repository, "a");
    let shallow = repository.path("/.git/shallow");
    fs::write(shallow, repository.git("rev-parse HEAD")).unwrap();
    repository.git("reflog expire --expire=now --all");
    repository.git("tag -d base");
    repository.git("gc -q --prune=now");
    nothing_is_destroyed(&repository, "shallow clone");

    // Another commit without the stack.
    let repository = three();
    repository.git("checkout -q --orphan other");
    repository.git("rm -q -f -r a");
    repository.git("commit -q -m other");
    nothing_is_destroyed(&repository, "another history");
}

#[test]
fn removal_needs_the_right_directory() {
    let repository = three();
    remove(&repository, "a");
    // A stack of its own makes another project of a directory.
    repository.write("/b/root.orch.hcl", "orch { root = true }\n");
    repository.write("/b/state.orch.hcl", STATE);
    repository.write("/b/drivers.orch.hcl", super::DRIVERS);
    repository.mkdir("b/.orch/state");
    let document = repository.read(super::DOCUMENT);
    repository.write("/b/.orch/state/default.json", document);
    repository.commit();
    nothing_is_destroyed_in(&repository, "wrong root", "/b", "");

    let repository = three();
    remove(&repository, "a");
    let state = STATE.replace("acme", "another");
    repository.write("/state.orch.hcl", state);
    repository.commit();
    nothing_is_destroyed(&repository, "document of another project");

    // A directory is no project, and what is elsewhere is out of scope.
    let repository = three();
    remove(&repository, "a");
    nothing_is_destroyed_in(&repository, "wrong directory", "/", "-C b");
}

#[test]
fn removal_refuses_the_state_of_another_project() {
    // That of another namespace.
    let repository = three();
    remove(&repository, "a");
    let document = repository.read(super::DOCUMENT);
    repository.write("/.orch/state/dev.json", document);
    forget_log(&repository);
    let output = repository.orch_with(&format!("apply {APPROVED}"), |orch| {
        orch.env("ORCH_NAMESPACE", "dev");
    });
    assert_eq!(output.code(), 4, "{output}");
    assert!(
        output.stderr.contains("belongs to another namespace"),
        "{output}"
    );
    assert_eq!(log(&repository), [""; 0]);

    // Two repositories keep one document, and have a path in common.
    let repository = three();
    remove(&repository, "a");
    let other = applied(&[("/b", ""), ("/x", "")]);
    other.write(super::DOCUMENT, repository.read(super::DOCUMENT));
    forget_log(&other);
    let output = other.orch(&format!("apply {APPROVED} --disable-safeguards=all"));
    let steps = log(&other);
    let destroys = steps.iter().any(|step| step.starts_with("destroy"));
    assert!(!destroys, "{steps:?}\n{output}");
    for path in ["/a", "/c/d"] {
        let blocked = format!("! {path}  blocked: ");
        let is_blocked = output.stdout.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            blocked.split_whitespace().eq(words.iter().copied().take(3))
        });
        assert!(is_blocked, "{path}: {output}");
    }
}

#[test]
fn removal_needs_a_valid_configuration() {
    let repository = three();
    remove(&repository, "a");
    repository.write("/b/broken.orch.hcl", "stack {\n");
    nothing_is_destroyed(&repository, "file that cannot be parsed");
    repository.commit();
    nothing_is_destroyed(&repository, "file that cannot be parsed at HEAD");
}

#[test]
fn removal_needs_committed_inputs() {
    let repository = three();
    want(&repository, "/a", "uncommitted");
    super::done(&repository, "apply --auto-approve --disable-safeguards=all");
    repository.git("checkout -q a/want");
    remove(&repository, "a");
    nothing_is_destroyed(&repository, "dirty tree");
    let plan = repository.orch("plan");
    assert!(plan.stdout.contains("! /a  blocked: "), "{plan}");
}
