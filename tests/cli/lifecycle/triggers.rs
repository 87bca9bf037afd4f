//! `replace_triggered_by`: what replaces a stack when others change.

use crate::removals::{
    APPROVED, acts, applied, change_entry, done, entry, fails, hook, operations, planned, remove,
    unhook, want,
};
use crate::support::Repository;

/// The lines of a stack that others replace when they change.
fn by(triggers: &str) -> String {
    format!("lifecycle {{\n    replace_triggered_by = [{triggers}]\n  }}")
}

fn change(repository: &Repository, path: &str, wanted: &str) {
    want(repository, path, wanted);
    repository.commit();
}

#[test]
fn an_update_replaces_what_names_it() {
    let repository = applied(&[("/net", ""), ("/app", &by("\"/net\"")), ("/other", "")]);
    assert_eq!(planned(&repository, ""), [""; 0]);
    change(&repository, "/net", "2");
    assert_eq!(
        planned(&repository, ""),
        ["/app delete create", "/net update"]
    );
    assert_eq!(operations(&repository, ""), ["-/app", "~/net", "~/app"]);
    let text = done(&repository, "plan");
    assert!(text.contains("/app  replace  /net is updated"), "{text}");
    let json = repository.orch("plan --format json").json();
    assert_eq!(json["stacks"][0]["reason"]["file"], "app/stack.orch.hcl");
    assert_eq!(json["stacks"][0]["reason"]["line"], 3);
    fails(&repository, "apply --auto-approve", 4, "destroy");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(
        acts(&repository),
        ["destroy /app", "apply /net", "apply /app"]
    );
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn a_replacement_replaces_along_a_chain() {
    let repository = applied(&[
        ("/c", ""),
        ("/b", &by("\"/c\"")),
        ("/a", &by("\"tag:base\"")),
        ("/base", &format!("tags = [\"base\"]\n  {}", by("\"/b\""))),
    ]);
    let all = [
        "/a delete create",
        "/b delete create",
        "/base delete create",
        "/c delete create",
    ];
    assert_eq!(planned(&repository, "--replace /c"), all);
    assert_eq!(
        operations(&repository, "--replace /c"),
        ["-/a", "-/base", "-/b", "-/c", "~/c", "~/b", "~/base", "~/a"]
    );
    done(&repository, "state taint /b");
    assert_eq!(
        planned(&repository, ""),
        [
            "/a delete create",
            "/b delete create",
            "/base delete create"
        ]
    );
}

#[test]
fn what_is_created_or_destroyed_replaces_nothing() {
    let repository = applied(&[("/app", &by("\"/x\"")), ("/x/a", ""), ("/x/b", "")]);
    remove(&repository, "x/a");
    assert_eq!(planned(&repository, ""), ["/x/a delete"]);
    done(&repository, &format!("apply {APPROVED}"));
    repository.write("/x/c/stack.orch.hcl", "stack {\n}\n");
    change(&repository, "/x/c", "1");
    assert_eq!(planned(&repository, ""), ["/x/c create"]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn a_partial_apply_loses_no_trigger() {
    let repository = applied(&[
        ("/net", ""),
        ("/app", &by("\"/net\"")),
        ("/late", &by("\"/net\"")),
    ]);
    change(&repository, "/net", "2");
    done(&repository, &format!("apply {APPROVED} --match net"));
    assert_eq!(acts(&repository), ["apply /net"]);
    let since = ["/app delete create", "/late delete create"];
    assert_eq!(planned(&repository, ""), since);
    let text = done(&repository, "plan --match app");
    assert!(
        text.contains("/net has changed since it was applied"),
        "{text}"
    );
    // It fails, before it has been destroyed, and then afterwards.
    hook(&repository, "destroy", "app", "exit 1\n");
    fails(&repository, &format!("apply {APPROVED}"), 1, "/app");
    assert_eq!(
        acts(&repository),
        ["destroy /app", "destroy /late", "apply /late"]
    );
    assert_eq!(planned(&repository, ""), ["/app delete create"]);
    unhook(&repository, "destroy", "app");
    hook(&repository, "apply", "app", "exit 1\n");
    fails(&repository, &format!("apply {APPROVED}"), 1, "/app");
    assert_eq!(planned(&repository, ""), ["/app update"]);
    unhook(&repository, "apply", "app");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn a_replacement_that_fails_half_way_still_replaces_others() {
    let repository = applied(&[("/net", ""), ("/app", &by("\"/net\""))]);
    hook(&repository, "apply", "net", "exit 1\n");
    fails(
        &repository,
        &format!("apply {APPROVED} --replace /net --match net"),
        1,
        "/net",
    );
    unhook(&repository, "apply", "net");
    assert_eq!(
        planned(&repository, ""),
        ["/app delete create", "/net update"]
    );
    done(&repository, &format!("apply {APPROVED} --match net"));
    assert_eq!(planned(&repository, ""), ["/app delete create"]);
}

#[test]
fn an_output_replaces_only_if_it_differs() {
    let repository = applied(&[("/net", ""), ("/app", &by("\"/net#id\""))]);
    let noted = entry(&repository, "/app")["applied"]["triggered_by"].clone();
    assert_eq!(
        noted["/net#id"],
        entry(&repository, "/net")["outputs"]["id"]
    );
    // The update leaves the output as it is.
    hook(
        &repository,
        "outputs",
        "net",
        "echo '{\"id\":\"1\"}'; exit 0\n",
    );
    change(&repository, "/net", "2");
    let text = done(&repository, "plan");
    assert!(
        text.contains("? /app  known after /net; replaced if /net#id changes"),
        "{text}"
    );
    let json = repository.orch("plan --format json").json();
    assert_eq!(json["stacks"][0]["replaced_if"][0], "/net#id");
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), ["apply /net"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
    // Another update changes it: only a new plan destroys.
    unhook(&repository, "outputs", "net");
    change(&repository, "/net", "3");
    let told = fails(
        &repository,
        "apply --auto-approve",
        1,
        "it is to be replaced, since /net#id has changed, and only a new plan can do that",
    );
    assert!(
        told.contains("a new plan shows what was not carried out"),
        "{told}"
    );
    assert_eq!(acts(&repository), ["apply /net"]);
    let text = done(&repository, "plan");
    assert!(
        text.contains("/app  replace  /net#id has changed since it was applied"),
        "{text}"
    );
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /app", "apply /app"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn what_only_outputs_update_replaces_on_the_way() {
    let repository = applied(&[
        ("/base", ""),
        ("/net", "after = [\"/base\"]"),
        ("/app", &by("\"/net\"")),
    ]);
    change(&repository, "/base", "2");
    let text = done(&repository, "plan");
    assert!(
        text.contains("known after /base; replaced if /net changes"),
        "{text}"
    );
    // Nothing comes of it.
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), ["apply /base"]);
    // What /net is made of has changed behind its back.
    std::fs::write(repository.outside().join("world/net"), "drifted").unwrap();
    change(&repository, "/base", "3");
    fails(
        &repository,
        "apply --auto-approve",
        1,
        "it is to be replaced, since /net has changed",
    );
    assert_eq!(acts(&repository), ["apply /base", "apply /net"]);
    assert_eq!(planned(&repository, ""), ["/app delete create"]);
}

#[test]
fn the_files_of_a_stack_without_a_tool_are_plain_values() {
    let repository = applied(&[("/value", "driver = \"none\""), ("/app", &by("\"/value\""))]);
    change(&repository, "/value", "2");
    assert_eq!(planned(&repository, ""), ["/app delete create"]);
    done(&repository, "apply --auto-approve --match value");
    assert_eq!(planned(&repository, ""), ["/app delete create"]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /app", "apply /app"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn a_new_rule_replaces_nothing_by_itself() {
    let repository = applied(&[("/net", ""), ("/app", "")]);
    change(&repository, "/net", "2");
    done(&repository, "apply --auto-approve");
    repository.write(
        "/app/stack.orch.hcl",
        format!("stack {{\n  {}\n}}\n", by("\"/net#id\"")),
    );
    repository.commit();
    assert_eq!(planned(&repository, ""), [""; 0]);
    done(&repository, "apply --auto-approve");
    let noted = entry(&repository, "/app")["applied"]["triggered_by"].clone();
    assert_eq!(
        noted["/net#id"],
        entry(&repository, "/net")["outputs"]["id"]
    );
}

#[test]
fn what_is_protected_is_not_replaced_by_others() {
    let lines =
        "lifecycle {\n    prevent_destroy = true\n    replace_triggered_by = [\"/net\"]\n  }";
    let repository = applied(&[("/net", ""), ("/app", lines)]);
    change(&repository, "/net", "2");
    fails(
        &repository,
        "plan",
        4,
        "note: /net is updated; protected by app/stack.orch.hcl:3",
    );
}

#[test]
fn instances_trigger_one_by_one_or_all() {
    let one = "for_each = [\"eu\", \"us\"]\n  lifecycle {\n    replace_triggered_by = [\"/net[\\\"${each.key}\\\"]\"]\n  }";
    let repository = applied(&[
        ("/net", "for_each = [\"eu\", \"us\"]"),
        ("/one", one),
        ("/all", &by("\"/net\"")),
    ]);
    done(&repository, "state taint '/net[\"us\"]'");
    assert_eq!(
        planned(&repository, ""),
        [
            "/all delete create",
            "/net[\"us\"] delete create",
            "/one[\"us\"] delete create"
        ]
    );
}

#[test]
fn a_recorded_command_that_applies_other_inputs_is_an_update() {
    let repository = applied(&[("/net", ""), ("/app", &by("\"/net\""))]);
    done(&repository, "run --record=apply --match net -- true");
    assert_eq!(planned(&repository, ""), [""; 0]);
    change(&repository, "/net", "2");
    done(&repository, "run --record=apply --match net -- true");
    assert_eq!(planned(&repository, "--match app"), ["/app delete create"]);
    change_entry(&repository, "/net", |entry| {
        _ = entry.as_object_mut().unwrap().remove("changed");
    });
    assert_eq!(planned(&repository, "--match app"), [""; 0]);
}
