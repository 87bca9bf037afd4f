//! Projects of which no stack recorded is left in the tree.

use serde_json::json;

use super::{
    APPROVED, DOCUMENT, DRIVERS, STATE, acts, applied, change_entry, done, fails, keys, planned,
    prepared, remove, world,
};
use crate::support::Repository;

const NOT_HERE: &str =
    "none of the stacks recorded in `.orch/state/default.json` is in this project, or was in";

/// Asserts that no command destroys anything, since the document says nothing about this project.
#[track_caller]
fn is_refused(repository: &Repository, directory: &str) {
    for arguments in ["plan", "apply", "destroy", "list --status removed"] {
        let flags = match arguments {
            "apply" | "destroy" => APPROVED,
            _ => "",
        };
        let arguments = format!("{arguments} {flags}");
        let output = repository.orch_in(directory, &arguments);
        assert_eq!(output.code(), 4, "{arguments}: {output}");
        assert!(output.stderr.contains(NOT_HERE), "{arguments}: {output}");
    }
    assert_eq!(acts(repository), [""; 0]);
}

#[test]
fn removal_destroys_the_last_stack() {
    let repository = applied(&[("/a", "")]);
    remove(&repository, "a");
    assert_eq!(planned(&repository, ""), ["/a delete"]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /a"]);
    assert_eq!(keys(&repository), [""; 0]);
    assert_eq!(world(&repository), [""; 0]);
    done(&repository, "plan");
}

#[test]
fn removal_destroys_all_stacks_beside_new_ones() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    remove(&repository, "a b");
    // Its files are like none of theirs: nothing looks moved.
    repository.write("/new/new.orch.hcl", "stack { name = \"another\" }\n");
    repository.write("/new/want", "something else");
    repository.commit();
    assert_eq!(
        planned(&repository, ""),
        ["/a delete", "/b delete", "/new create"]
    );
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(keys(&repository), ["/new"]);
    assert_eq!(world(&repository), ["new"]);
}

#[test]
fn removal_destroys_the_last_instance() {
    let repository = applied(&[("/a", "for_each = [\"x\"]")]);
    remove(&repository, "a");
    assert_eq!(planned(&repository, ""), ["/a[\"x\"] delete"]);
}

#[test]
fn removal_needs_proof_for_each_of_the_last_stacks() {
    let placed = "driver = \"placed\"";
    let repository = applied(&[("/a", placed), ("/b", ""), ("/c", "")]);
    remove(&repository, "a b c");
    change_entry(&repository, "/b", |entry| {
        entry["applied"]["seen"] = json!("0123456789012345678901234567890123456789");
    });
    change_entry(&repository, "/c", |entry| {
        entry["applied"]["seen"] = json!(null);
        entry["applied"]["commit"] = json!(null);
    });
    assert_eq!(
        planned(&repository, ""),
        [
            "/a delete",
            "/b blocked: the applied commit 0123456 is not in this clone",
            "/c blocked: no commit is recorded for it, so its code is unknown",
        ]
    );
    // Another clone may have the commit of `/b`.
    let why = "1 stack is blocked and left unchanged: /b";
    fails(&repository, &format!("apply {APPROVED}"), 4, why);
    assert_eq!(acts(&repository), ["destroy /a"]);
}

#[test]
fn state_show_works_after_the_last_removal() {
    let repository = applied(&[("/a", "")]);
    remove(&repository, "a");
    let said = done(&repository, "state list");
    assert!(said.contains("/a"), "{said}");
    let said = done(&repository, "why /a");
    assert!(said.contains("removed"), "{said}");
}

#[test]
fn removal_refuses_a_state_of_unknown_stacks() {
    // The stacks of another repository, whose commits this one does not have.
    let other = applied(&[("/x", "")]);
    let repository = applied(&[("/a", "")]);
    repository.write(DOCUMENT, other.read(DOCUMENT));
    // Two repositories that begin alike have the same first commit.
    change_entry(&repository, "/x", |entry| {
        entry["applied"]["seen"] = json!("0123456789012345678901234567890123456789");
        entry["applied"]["commit"] = json!("0123456789012345678901234567890123456789");
    });
    is_refused(&repository, "/");
    // Nor do commits of this one help that never had its stacks.
    change_entry(&repository, "/x", |entry| {
        let head = repository.git("rev-parse HEAD");
        entry["applied"]["seen"] = json!(head.trim());
        entry["applied"]["commit"] = json!(head.trim());
    });
    is_refused(&repository, "/");
}

#[test]
fn removal_refuses_a_state_of_unknown_commits() {
    let repository = applied(&[("/a", "")]);
    repository.git("checkout -q --orphan other");
    repository.git("rm -q -f -r a");
    repository.git("commit -q -m other");
    is_refused(&repository, "/");
    // A stack that is only mentioned.
    let repository = prepared(&[("/a", "")]);
    let repository = super::applied_of(repository);
    repository.git("rm -q -r a");
    repository.git("commit -q --amend -m without");
    is_refused(&repository, "/");
}

#[test]
fn removal_refuses_the_state_of_another_root() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    repository.write("/b/root.orch.hcl", "orch { root = true }\n");
    repository.write("/b/state.orch.hcl", STATE);
    repository.write("/b/drivers.orch.hcl", DRIVERS);
    repository.mkdir("b/.orch/state");
    // Even if somebody says that it is the document of this root.
    let mut document: serde_json::Value = serde_json::from_str(&repository.read(DOCUMENT)).unwrap();
    document["root"] = json!("b");
    document["stacks"].as_object_mut().unwrap().remove("/b");
    repository.write("/b/.orch/state/default.json", document.to_string());
    repository.git("rm -q -r a");
    repository.commit();
    is_refused(&repository, "/b");
    let output = repository.orch(&format!("apply {APPROVED} -C b"));
    assert_eq!(output.code(), 4, "{output}");
    assert_eq!(acts(&repository), [""; 0]);
    // As it is written, it says where it belongs.
    document["root"] = json!("");
    repository.write("/b/.orch/state/default.json", document.to_string());
    fails(
        &repository,
        &format!("apply {APPROVED} -C b"),
        4,
        "belongs to another root",
    );
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn removal_refuses_uncommitted_stacks_with_a_fix() {
    let repository = applied(&[("/a", "")]);
    remove(&repository, "a");
    change_entry(&repository, "/a", |entry| {
        entry["applied"]["seen"] = json!(null);
        entry["applied"]["commit"] = json!(null);
    });
    fails(&repository, "plan", 4, NOT_HERE);
    let said = fails(&repository, "plan", 4, "orch state forget");
    assert!(said.contains("`project`"), "{said}");
    done(&repository, "state forget /a");
    done(&repository, "plan");
}
