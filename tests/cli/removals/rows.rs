//! What becomes of a stack that is recorded but not in the project.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use super::{
    APPROVED, DOCUMENT, acts, applied, applied_of, assert_tidy, declare, done, entry, fails, hook,
    keys, leaves_blocked, log, planned, prepared, remove, vanish, want, world,
};
use crate::support::Repository;

#[test]
fn removal_destroys_existing_stacks() {
    let repository = applied(&[("/legacy/queue", ""), ("/net", "")]);
    let commit = remove(&repository, "legacy");
    let plan = repository.orch("plan");
    assert_eq!(plan.code(), 0, "{plan}");
    let line = format!("  - /legacy/queue  delete  removed in {commit}  +0 ~0 -1\n");
    assert!(plan.stdout.starts_with(&line), "{plan}");
    assert_eq!(plan.stderr, "", "{plan}");
    assert_eq!(repository.orch("plan --detailed-exitcode").code(), 2);
    assert_eq!(acts(&repository), [""; 0]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(
        log(&repository),
        ["plan /legacy/queue", "destroy /legacy/queue"]
    );
    assert_eq!(world(&repository), ["net"]);
    assert_eq!(keys(&repository), ["/net"]);
    assert_tidy(&repository);
    let again = repository.orch("plan --detailed-exitcode");
    assert_eq!(again.code(), 0, "{again}");
    // History remembers.
    let document = repository.read(DOCUMENT);
    let document: Value = serde_json::from_str(&document).unwrap();
    let last = document["history"].as_array().unwrap().last().unwrap();
    assert_eq!(last["destroyed"], 1, "{last}");
}

#[test]
fn removal_forgets_missing_stacks() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    let commit = remove(&repository, "a");
    vanish(&repository, "a");
    let plan = repository.orch("plan");
    assert_eq!(plan.code(), 0, "{plan}");
    let line = format!("  x /a  forget  removed in {commit}\n");
    assert!(plan.stdout.starts_with(&line), "{plan}");
    assert!(plan.stdout.contains("1 to forget"), "{plan}");
    assert_eq!(log(&repository), ["plan /a"]);
    // Nothing is destroyed, so that needs no budget.
    let said = done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(keys(&repository), ["/b"], "{said}");
    assert_tidy(&repository);
}

#[test]
fn removal_forgets_read_only_stacks_without_asking_tools() {
    let repository = applied(&[
        ("/read", "mode = \"read\""),
        ("/none", "driver = \"none\""),
        ("/b", ""),
    ]);
    assert_eq!(keys(&repository).len(), 3);
    remove(&repository, "read none");
    assert_eq!(planned(&repository, ""), ["/none forget", "/read forget"]);
    done(&repository, "apply --auto-approve");
    assert_eq!(log(&repository), [""; 0]);
    assert_eq!(keys(&repository), ["/b"]);
}

#[test]
fn removal_destroys_stacks_whose_driver_cannot_plan() {
    let repository = applied(&[("/a", "driver = \"unasked\""), ("/b", "")]);
    remove(&repository, "a");
    assert_eq!(planned(&repository, ""), ["/a delete"]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /a"]);
    assert_eq!(keys(&repository), ["/b"]);
}

#[test]
fn removal_destroys_stacks_whose_driver_does_not_say_whether_they_exist() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    hook(&repository, "plan", "a", "exit 0");
    remove(&repository, "a");
    assert_eq!(planned(&repository, ""), ["/a delete"]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /a"]);
    assert_eq!(world(&repository), ["b"]);
    assert_eq!(keys(&repository), ["/b"]);
}

#[test]
fn removal_needs_proof() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    fs::remove_dir_all(repository.path("/a")).unwrap();
    let plan = repository.orch("plan");
    assert_snapshot!(plan, @"
      ! /a  blocked: its deletion is not committed

    Plan: 1 blocked, 1 unchanged.
    [stderr]
    warning: `/a` is recorded but not in the project, and is not destroyed: its deletion is not committed
      = help: commit the deletion, or restore the files
    ");
    assert_eq!(repository.orch("plan --detailed-exitcode").code(), 0);
    // Approval is no evidence.
    for command in ["apply", "destroy --match a", "apply --destroy --match a"] {
        let arguments = format!("{command} {APPROVED} --disable-safeguards=all");
        let output = repository.orch(&arguments);
        assert_eq!(output.code(), 0, "{command}: {output}");
        assert!(
            output.stderr.contains("deletion is not committed"),
            "{output}"
        );
    }
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(world(&repository), ["a", "b"]);
    assert_eq!(keys(&repository), ["/a", "/b"]);
    assert_tidy(&repository);
}

#[test]
fn removal_detects_a_move_by_id() {
    let repository = applied(&[("/net", "id = \"one\""), ("/b", "")]);
    repository.write("/net/object", "net");
    repository.commit();
    done(&repository, "apply --auto-approve");
    repository.git("mv net platform-net");
    repository.commit();
    let plan = repository.orch("plan");
    assert!(plan.stdout.contains("/platform-net (was /net)"), "{plan}");
    assert_eq!(planned(&repository, ""), ["/platform-net = /net no-op"]);
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(keys(&repository), ["/b", "/platform-net"]);
    assert_eq!(world(&repository), ["b", "net"]);
    // And where it has changed as well.
    repository.git("mv platform-net third");
    want(&repository, "/third", "2");
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/third = /platform-net update"]);
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), ["apply /third"]);
    assert_eq!(keys(&repository), ["/b", "/third"]);
    assert_eq!(world(&repository), ["b", "net"]);
}

#[test]
fn removal_detects_a_move_by_backend() {
    let placed = "driver = \"placed\"\n  name = \"net\"";
    let repository = applied(&[("/net", placed), ("/b", "")]);
    repository.write("/net/object", "net");
    repository.commit();
    done(&repository, "apply --auto-approve");
    assert_eq!(entry(&repository, "/net")["backend"], "place net");
    log(&repository);
    repository.mkdir("platform");
    repository.git("mv net platform/net");
    repository.commit();
    let plan = repository.orch("plan");
    assert!(plan.stdout.contains("/platform/net (was /net)"), "{plan}");
    assert!(!plan.to_string().contains("- /net"), "{plan}");
    assert_eq!(planned(&repository, ""), ["/platform/net = /net no-op"]);
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn removal_rekeys_a_stack_moved_with_its_backend() {
    let placed = "driver = \"placed\"\n  name = \"net\"";
    let repository = applied(&[("/net", placed), ("/b", "")]);
    repository.write("/net/object", "net");
    repository.commit();
    done(&repository, "apply --auto-approve");
    log(&repository);
    repository.mkdir("platform");
    repository.git("mv net platform/net");
    repository.commit();
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(keys(&repository), ["/b", "/platform/net"]);
    assert_eq!(world(&repository), ["b", "net"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

/// What the entry says holds for the stack wherever it has moved.
#[test]
fn removal_keeps_the_facts_of_a_stack_moved_with_its_backend() {
    let placed = "driver = \"placed\"\n  name = \"net\"";
    let repository = applied(&[("/net", placed), ("/b", "")]);
    repository.write("/net/object", "net");
    repository.commit();
    done(&repository, "apply --auto-approve");
    let first = repository.git("rev-parse HEAD");
    want(&repository, "/net", "2");
    repository.commit();
    done(&repository, "apply --auto-approve");
    done(&repository, "state taint /net");
    log(&repository);
    repository.mkdir("platform");
    repository.git("mv net platform/net");
    repository.commit();
    assert_eq!(
        planned(&repository, ""),
        ["/platform/net = /net delete create"]
    );
    done(&repository, "state untaint /net");
    repository.git(&format!("checkout -q {first}"));
    repository.mkdir("platform");
    repository.git("mv net platform/net");
    repository.commit();
    let plan = planned(&repository, "");
    assert!(
        plan[0].starts_with("/platform/net blocked: HEAD lacks the last applied commit"),
        "{plan:?}"
    );
}

#[test]
fn removal_detects_no_move_to_two_stacks() {
    let placed = "driver = \"placed\"\n  name = \"net\"";
    let repository = applied(&[("/net", placed), ("/b", "")]);
    remove(&repository, "net");
    for path in ["/x", "/y"] {
        want(&repository, path, "as new as can be");
        // Nobody takes it for the old one.
        let lines = (0..40).map(|line| format!("# {path} {line}\n"));
        let lines = lines.collect::<Vec<_>>().concat();
        repository.write(
            &format!("{path}/stack.orch.hcl"),
            format!("stack {{\n  {placed}\n}}\n{lines}"),
        );
    }
    repository.commit();
    let plan = planned(&repository, "");
    assert!(
        plan.iter()
            .any(|it| it.starts_with("/net blocked: it has the same backend as /")),
        "{plan:?}"
    );
    // Alone, neither is taken for it.
    let plan = planned(&repository, "--match x");
    assert!(plan.iter().all(|it| !it.contains("= /net")), "{plan:?}");
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert!(!acts(&repository).contains(&"destroy /net".to_owned()));
    assert!(world(&repository).contains(&"net".to_owned()));
}

#[test]
fn removal_keeps_stacks_whose_driver_cannot_destroy() {
    let repository = applied(&[("/a", "driver = \"lasting\""), ("/b", "")]);
    remove(&repository, "a");
    assert_eq!(
        planned(&repository, ""),
        ["/a blocked: its driver `lasting` has no `destroy`"]
    );
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(keys(&repository), ["/a", "/b"]);
}

#[test]
fn removal_plan_fails_if_a_tool_cannot_answer() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    remove(&repository, "a");
    super::hook(&repository, "plan", "a", "echo no connection >&2; exit 7");
    let said = fails(&repository, "plan", 1, "no connection");
    assert!(said.contains("1 failed"), "{said}");
    assert_eq!(repository.orch(&format!("apply {APPROVED}")).code(), 1);
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(
        entry(&repository, "/a")["last"]["outcome"],
        Value::from("succeeded")
    );
    assert_tidy(&repository);
}

#[test]
fn removal_updates_a_moved_stack_before_its_dependencies() {
    let by_backend = "driver = \"placed\"\n  name = \"net\"";
    for kind in [by_backend, "id = \"one\""] {
        let after = format!("{kind}\n  after = [\"/db\"]");
        let sandbox = prepared(&[("/db", ""), ("/net", &after), ("/z", "")]);
        sandbox.write("/net/object", "net");
        let repository = applied_of(sandbox);
        repository.mkdir("platform");
        repository.git("mv net platform/net");
        declare(&repository, "/platform/net", kind);
        want(&repository, "/platform/net", "2");
        remove_with_the_rest(&repository, "db");
        assert_eq!(
            planned(&repository, ""),
            ["/db delete", "/platform/net = /net update"]
        );
        // Alone, it goes nowhere: what has moved still uses it.
        let alone = planned(&repository, "--match db");
        assert!(alone[0].starts_with("/db blocked: "), "{alone:?}");
        log(&repository);
        done(&repository, &format!("apply {APPROVED}"));
        assert_eq!(acts(&repository), ["apply /platform/net", "destroy /db"]);
        assert_eq!(keys(&repository), ["/platform/net", "/z"]);
        assert_eq!(world(&repository), ["net", "z"]);
    }
}

/// Removes a directory, and commits that with everything else.
fn remove_with_the_rest(repository: &Repository, directory: &str) {
    repository.git(&format!("rm -q -r {directory}"));
    repository.commit();
}
