//! `removed` blocks: they stand for the commit that deletes a stack, and for nothing else.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::removals::{
    APPROVED, DRIVERS, STATE, acts, applied, assert_tidy, change_entry, declare, done, fails,
    forget_log, keys, log, planned, remove, vanish, want, world,
};
use crate::support::Repository;

/// Writes a block that says that what is below a path is gone.
fn give_up(repository: &Repository, from: &str, rules: &str) {
    let lifecycle = match rules {
        "" => String::new(),
        rules => format!("  lifecycle {{\n    {rules}\n  }}\n"),
    };
    let block = format!("\nremoved {{\n  from = \"{from}\"\n{lifecycle}}}\n");
    repository.write("/gone/blocks.orch.hcl", block);
}

/// Removes a directory in a merge that loses it, which is no evidence by itself.
fn lose(repository: &Repository, directory: &str) {
    repository.git("checkout -q -b never-had-it");
    repository.git(&format!("rm -q -r {directory}"));
    repository.git("commit -q -m other");
    let tree = repository.git("rev-parse HEAD^{tree}");
    let root = repository.git(&format!("commit-tree -m old {}", tree.trim()));
    repository.git("checkout -q main");
    repository.git(&format!(
        "merge -q --no-ff --no-commit --allow-unrelated-histories -s ours {}",
        root.trim()
    ));
    repository.git(&format!("rm -q -r {directory}"));
    repository.git("commit -q -m lost");
}

/// Returns what is known of the stacks that are not here.
fn missing(repository: &Repository) -> String {
    repository.orch("list --status removed,absent --why").stdout
}

#[test]
fn a_block_that_is_committed_stands_for_the_commit_that_deletes() {
    let repository = applied(&[("/legacy/topic", ""), ("/net", "")]);
    repository.git("mv legacy/topic topic");
    repository.commit();
    assert_eq!(
        planned(&repository, ""),
        [
            "/legacy/topic blocked: it looks moved to `/topic`",
            "/topic create",
        ]
    );
    // What is not committed is no evidence, whatever git shows.
    give_up(&repository, "/legacy", "");
    let uncommitted = "blocked: the `removed` block at gone/blocks.orch.hcl:2 is not committed";
    assert_eq!(
        planned(&repository, ""),
        [
            format!("/legacy/topic {uncommitted}"),
            "/topic create".to_owned(),
        ]
    );
    repository.commit();
    let plan = repository.orch("plan");
    assert_snapshot!(plan, @"
      - /legacy/topic  delete  removed by gone/blocks.orch.hcl:2  +0 ~0 -1
      + /topic         create  not recorded                       +1 ~0 -0

    Plan: 1 to create, 1 to delete, 1 unchanged. Resources: 1 to create, 1 to destroy.
    ");
    assert_snapshot!(missing(&repository), @"legacy/topic  # removed by gone/blocks.orch.hcl:2");
    let why = repository.orch("why /legacy/topic").stdout;
    assert!(
        why.contains("status   removed by gone/blocks.orch.hcl:2"),
        "{why}"
    );
    assert!(why.contains("destroyed"), "{why}");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(keys(&repository), ["/net", "/topic"]);
    assert_eq!(world(&repository), ["net", "topic"]);
    assert_tidy(&repository);
    // It may stay.
    assert_eq!(repository.orch("plan --detailed-exitcode").code(), 0);
}

#[test]
fn the_block_is_shown_to_programs() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    give_up(&repository, "../a", "");
    remove(&repository, "a");
    repository.commit();
    let plan = repository.orch("plan --format json").json();
    let entry = &plan["stacks"][0];
    assert_eq!(entry["path"], "/a");
    assert_snapshot!(entry["removed"], @r#"{"block":{"destroys":true,"file":"gone/blocks.orch.hcl","line":2}}"#);
    assert_snapshot!(entry["reason"], @r#"{"file":"gone/blocks.orch.hcl","line":2,"source":"config","text":"removed by gone/blocks.orch.hcl:2"}"#);
    let list = repository
        .orch("list --status removed --format json")
        .json();
    let evidence = &list["missing"][0]["evidence"];
    assert_eq!(evidence["removed_by"], "block", "{list}");
    assert_eq!(evidence["file"], "gone/blocks.orch.hcl");
    assert_eq!(evidence["line"], 2);
    assert_eq!(evidence["destroy"], true);
    let why = repository.orch("why a --format json").json();
    assert_eq!(why["missing"][0]["evidence"], *evidence, "{why}");
}

#[test]
fn a_merge_that_loses_a_stack_and_a_stack_that_came_back_need_a_block() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    lose(&repository, "a");
    assert!(missing(&repository).contains("a merge may have lost it"));
    give_up(&repository, "/a", "");
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/a delete"]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /a"]);

    let repository = applied(&[("/a", ""), ("/b", "")]);
    remove(&repository, "a");
    repository.git("revert --no-edit HEAD");
    lose(&repository, "a");
    assert!(missing(&repository).contains("has it again"));
    give_up(&repository, "/a", "");
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/a delete"]);
}

#[test]
fn the_nearest_block_counts() {
    let repository = applied(&[("/legacy/a", ""), ("/legacy/kept/b", ""), ("/net", "")]);
    repository.write(
        "/gone/blocks.orch.hcl",
        "removed {\n  from = \"/legacy\"\n}\nremoved {\n  from = \"/legacy/kept\"\n  lifecycle {\n    destroy = false\n  }\n}\n",
    );
    remove(&repository, "legacy");
    repository.commit();
    assert_snapshot!(repository.orch("plan").stdout, @"
      - /legacy/a       delete  removed by gone/blocks.orch.hcl:1  +0 ~0 -1
      x /legacy/kept/b  forget  removed by gone/blocks.orch.hcl:4, and its resources are kept

    Plan: 1 to delete, 1 to forget, 1 unchanged. Resources: 1 to destroy.
    ");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /legacy/a"]);
    assert_eq!(keys(&repository), ["/net"]);
    assert_eq!(world(&repository), ["legacy_kept_b", "net"]);
}

#[test]
fn an_instance_is_given_up_by_its_name() {
    let repository = applied(&[("/i", "for_each = [\"x\", \"y\", \"z\"]"), ("/b", "")]);
    declare(&repository, "/i", "for_each = [\"x\"]");
    give_up(&repository, "/i[\\\"y\\\"]", "destroy = false");
    repository.commit();
    assert_eq!(
        planned(&repository, ""),
        [r#"/i["y"] forget"#, r#"/i["z"] delete"#]
    );
    assert_snapshot!(missing(&repository), @r#"
    i["y"]  # removed by gone/blocks.orch.hcl:2
    i["z"]  # removed from `for_each`
    "#);
}

#[test]
fn what_is_not_to_be_destroyed_is_forgotten_and_stays() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    give_up(&repository, "/a", "destroy = false");
    remove(&repository, "a");
    repository.commit();
    assert_snapshot!(repository.orch("plan"), @"
      x /a  forget  removed by gone/blocks.orch.hcl:2, and its resources are kept

    Plan: 1 to forget, 1 unchanged.
    ");
    // No tool is asked, and no budget is needed.
    done(&repository, "apply --auto-approve");
    assert_eq!(log(&repository), [""; 0]);
    assert_eq!(keys(&repository), ["/b"]);
    assert_eq!(world(&repository), ["a", "b"]);
    assert_tidy(&repository);
}

#[test]
fn forgetting_needs_no_code_that_could_destroy() {
    // It was applied from files that are in no commit, and its directory is somebody else's now.
    let repository = applied(&[("/a", ""), ("/b", "")]);
    want(&repository, "/a", "uncommitted");
    done(&repository, "apply --auto-approve --disable-safeguards=all");
    repository.git("checkout -q a/want");
    repository.git("rm -q a/stack.orch.hcl");
    give_up(&repository, "/a", "");
    repository.commit();
    assert!(missing(&repository).contains("its code is still there"));
    give_up(&repository, "/a", "destroy = false");
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/a forget"]);
    let list = repository
        .orch("list --status removed --format json")
        .json();
    assert_eq!(list["missing"][0]["evidence"]["seen"], Value::Null);
}

#[test]
fn forgetting_needs_the_history_too() {
    // The stack is alive on the branch that was applied.
    let repository = applied(&[("/a", ""), ("/b", "")]);
    repository.git("checkout -q -b behind");
    repository.git("checkout -q main");
    repository.git("commit -q --allow-empty -m later");
    want(&repository, "/a", "2");
    repository.commit();
    done(&repository, "apply --auto-approve");
    forget_log(&repository);
    repository.git("checkout -q behind");
    give_up(&repository, "/a", "destroy = false");
    remove(&repository, "a");
    repository.commit();
    let all = planned(&repository, "");
    assert!(
        all[0].starts_with("/a blocked: HEAD lacks the applied commit"),
        "{all:?}"
    );
    done(&repository, "apply --auto-approve");
    assert_eq!(keys(&repository), ["/a", "/b"]);
}

#[test]
fn what_stays_keeps_what_it_ran_after() {
    let repository = applied(&[("/net", ""), ("/app", "after = [\"/net\"]"), ("/b", "")]);
    repository.write(
        "/gone/blocks.orch.hcl",
        "removed {\n  from = \"/app\"\n  lifecycle {\n    destroy = false\n  }\n}\n",
    );
    remove(&repository, "net app");
    repository.commit();
    let plan = repository.orch("plan");
    assert_snapshot!(plan, @"
      x /app  forget  removed by gone/blocks.orch.hcl:1, and its resources are kept
      ! /net  blocked: /app runs after it, and is kept

    Plan: 1 to forget, 1 blocked, 1 unchanged.
    [stderr]
    warning: `/net` is recorded but not in the project, and is not destroyed: /app runs after it, and is kept
      = help: its `removed` block keeps its resources: if they don't need this stack, apply that first, and plan again
    ");
    let why = repository.orch("why /net").stdout;
    assert!(why.contains("/app, which is kept"), "{why}");
    let left = "1 stack is blocked and left unchanged: /net";
    fails(&repository, &format!("apply {APPROVED}"), 4, left);
    assert_eq!(keys(&repository), ["/b", "/net"]);
    // Once nobody knows of it any more.
    assert_eq!(planned(&repository, ""), ["/net delete"]);
}

/// Tries to destroy with everything approved; asserts that nothing is.
#[track_caller]
fn still_blocked(repository: &Repository, flags: &str, why: &str) {
    forget_log(repository);
    let output = repository.orch(&format!(
        "apply {APPROVED} --disable-safeguards=all {flags}"
    ));
    let steps = log(repository);
    assert!(
        !steps.iter().any(|step| step.starts_with("destroy")),
        "{steps:?} {output}"
    );
    assert!(world(repository).contains(&"a".to_owned()), "{output}");
    assert!(output.to_string().contains(why), "{why}: {output}");
}

#[test]
fn whatever_else_keeps_a_stack_still_does() {
    let two = || applied(&[("/a", ""), ("/b", "")]);
    // A branch behind.
    let repository = two();
    repository.git("checkout -q -b behind");
    repository.git("checkout -q main");
    want(&repository, "/a", "2");
    repository.commit();
    done(&repository, "apply --auto-approve");
    repository.git("checkout -q behind");
    give_up(&repository, "/a", "");
    remove(&repository, "a");
    repository.commit();
    still_blocked(&repository, "", "HEAD lacks the applied commit");
    // Another history.
    let repository = two();
    repository.git("checkout -q --orphan other");
    give_up(&repository, "/a", "");
    repository.git("rm -q -f -r a");
    repository.commit();
    still_blocked(&repository, "", "HEAD lacks the applied commit");
    // Applied from files that are in no commit.
    let repository = two();
    want(&repository, "/a", "uncommitted");
    done(&repository, "apply --auto-approve --disable-safeguards=all");
    repository.git("checkout -q a/want");
    give_up(&repository, "/a", "");
    remove(&repository, "a");
    repository.commit();
    still_blocked(&repository, "", "inputs that were not committed");
    // The code is still there, in part.
    let repository = two();
    give_up(&repository, "/a", "");
    repository.git("rm -q a/stack.orch.hcl");
    repository.commit();
    still_blocked(
        &repository,
        "",
        "its code is still there: HEAD has `a/want`",
    );
    // A deletion that is staged only.
    let repository = two();
    repository.git("rm -q -r a");
    give_up(&repository, "/a", "");
    still_blocked(&repository, "", "is not committed");
    // The block is, but not the deletion; at HEAD they contradict each other.
    let repository = two();
    give_up(&repository, "/a", "");
    repository.commit();
    repository.git("rm -q -r a");
    still_blocked(
        &repository,
        "",
        "the `removed` block at gone/blocks.orch.hcl:2 is not committed",
    );
    // Another rule than HEAD has.
    let repository = two();
    give_up(&repository, "/a", "destroy = false");
    remove(&repository, "a");
    repository.commit();
    give_up(&repository, "/a", "");
    still_blocked(&repository, "", "is not committed");
    // A file that git ignores.
    let repository = two();
    repository.write("/.gitignore", "gone\n");
    remove(&repository, "a");
    repository.commit();
    give_up(&repository, "/a", "");
    still_blocked(&repository, "", "is not committed");
    // A file that cannot be parsed at HEAD.
    let repository = two();
    give_up(&repository, "/a", "");
    remove(&repository, "a");
    repository.write("/b/broken.orch.hcl", "stack {\n");
    repository.commit();
    fs::remove_file(repository.path("/b/broken.orch.hcl")).unwrap();
    still_blocked(&repository, "", "cannot be parsed");
}

#[test]
fn a_sparse_or_shallow_clone_and_a_wrong_root_destroy_nothing() {
    let two = || applied(&[("/a", ""), ("/b", "")]);
    let repository = two();
    give_up(&repository, "/a", "");
    repository.commit();
    repository.git("sparse-checkout set --no-cone /tool '/*.hcl' /b /gone");
    assert!(!repository.path("/a").exists());
    still_blocked(&repository, "", "is not committed");

    let repository = two();
    give_up(&repository, "/a", "");
    remove(&repository, "a");
    repository.commit();
    let shallow = repository.path("/.git/shallow");
    fs::write(shallow, repository.git("rev-parse HEAD")).unwrap();
    repository.git("reflog expire --expire=now --all");
    repository.git("tag -d base");
    repository.git("gc -q --prune=now");
    still_blocked(&repository, "", "is not in this shallow clone");

    let repository = two();
    give_up(&repository, "/a", "");
    remove(&repository, "a");
    repository.write("/b/root.orch.hcl", "orch { root = true }\n");
    repository.write("/b/state.orch.hcl", STATE);
    repository.write("/b/drivers.orch.hcl", DRIVERS);
    repository.write("/b/blocks.orch.hcl", "removed {\n  from = \"/a\"\n}\n");
    repository.mkdir("b/.orch/state");
    let document = repository.read(crate::removals::DOCUMENT);
    repository.write("/b/.orch/state/default.json", document);
    repository.commit();
    let output = repository.orch_in("/b", &format!("apply {APPROVED} --disable-safeguards=all"));
    assert_eq!(output.code(), 4, "{output}");
    assert!(world(&repository).contains(&"a".to_owned()));
}

#[test]
fn another_stack_with_the_same_backend_keeps_it() {
    let placed = "driver = \"placed\"\n  name = \"one\"";
    let repository = applied(&[("/a", placed), ("/b", "")]);
    declare(&repository, "/c", "driver = \"placed\"\n  name = \"two\"");
    want(&repository, "/c", "1");
    repository.commit();
    done(&repository, "apply --auto-approve");
    give_up(&repository, "/a", "");
    declare(&repository, "/c", placed);
    remove(&repository, "a");
    repository.commit();
    still_blocked(
        &repository,
        "",
        "it has the same backend as /c, which is in the project",
    );
}

#[test]
fn a_last_apply_that_failed_keeps_it() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    let seen = crate::removals::head(&repository);
    repository.git("commit -q --allow-empty -m later");
    let failed = crate::removals::head(&repository);
    change_entry(&repository, "/a", |entry| {
        entry["last"]["outcome"] = "failed".into();
        entry["last"]["commit"] = failed.clone().into();
    });
    assert_ne!(seen, failed);
    give_up(&repository, "/a", "");
    remove(&repository, "a");
    repository.commit();
    still_blocked(&repository, "", "failed");
}

#[test]
fn a_plan_does_not_hold_if_the_block_changes() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    give_up(&repository, "/a", "");
    remove(&repository, "a");
    repository.commit();
    done(&repository, "plan -o ../plan --allow-destroy 1");
    give_up(&repository, "/a", "destroy = false");
    repository.commit();
    let said = fails(
        &repository,
        "apply ../plan --auto-approve",
        4,
        "its `removed` block differs",
    );
    assert!(said.contains("/a"), "{said}");
    assert_eq!(acts(&repository), [""; 0]);
    done(&repository, "plan -o ../plan");
    give_up(&repository, "/a", "");
    repository.commit();
    fails(
        &repository,
        "apply ../plan --auto-approve",
        4,
        "its `removed` block differs",
    );
    give_up(&repository, "/a", "destroy = false");
    repository.commit();
    done(&repository, "apply ../plan --auto-approve");
    assert_eq!(keys(&repository), ["/b"]);
    assert_eq!(world(&repository), ["a", "b"]);
}

#[test]
fn a_block_removes_nothing_that_its_tool_does_not_find() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    vanish(&repository, "a");
    give_up(&repository, "/a", "");
    remove(&repository, "a");
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/a forget"]);
}

#[test]
fn what_looks_moved_names_both_blocks() {
    let repository = applied(&[("/a${x}", ""), ("/b", "")]);
    repository.git("mv 'a${x}' c");
    repository.commit();
    let plan = repository.orch("plan");
    assert_snapshot!(plan, @r#"
      + /c      create  not recorded  +1 ~0 -0
      ! /a${x}  blocked: it looks moved to `/c`

    Plan: 1 to create, 1 blocked, 1 unchanged. Resources: 1 to create.
    [stderr]
    warning: `/a${x}` is recorded but not in the project, and is not destroyed: it looks moved to `/c`
      = help: if it was moved, add this to an `.orch.hcl` file:
    moved {
      from = "/a$${x}"
      to   = "/c"
    }
    if it was removed, and the other stack has resources of its own:
    removed {
      from = "/a$${x}"
    }
    "#);
    let why = repository.orch("why '/a${x}'");
    assert_snapshot!(why.stdout.lines().skip_while(|line| !line.starts_with("status")).collect::<Vec<_>>().join("\n"), @r#"
    status   absent: it looks moved to `/c`
    fix      if it was moved, add this to an `.orch.hcl` file:
             moved {
               from = "/a$${x}"
               to   = "/c"
             }
             if it was removed, and the other stack has resources of its own:
             removed {
               from = "/a$${x}"
             }
    "#);
    // What it says can be pasted.
    let removed = "removed {\n  from = \"/a$${x}\"\n}\n";
    assert!(plan.stderr.contains(removed.trim()), "{plan}");
    repository.write("/blocks.orch.hcl", removed);
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/a${x} delete", "/c create"]);
}

#[test]
fn a_block_lifts_what_protects_a_stack_that_is_gone() {
    let protected = "lifecycle {\n    prevent_destroy = true\n  }";
    let repository = applied(&[("/a", protected), ("/b", "")]);
    give_up(&repository, "/a", "");
    remove(&repository, "a");
    repository.commit();
    fails(
        &repository,
        "plan",
        4,
        "would destroy `/a`, which is protected",
    );
    give_up(&repository, "/a", "prevent_destroy = true");
    repository.commit();
    fails(
        &repository,
        "plan",
        4,
        "would destroy `/a`, which is protected",
    );
    // An author who has not committed it lifts nothing.
    give_up(&repository, "/a", "prevent_destroy = false");
    still_blocked(&repository, "", "is not committed");
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/a delete"]);
    done(&repository, "plan -o ../plan --allow-destroy 1");
    give_up(&repository, "/a", "");
    repository.commit();
    fails(
        &repository,
        "apply ../plan --auto-approve",
        4,
        "would destroy `/a`, which is protected",
    );
    assert_eq!(acts(&repository), [""; 0]);
    give_up(&repository, "/a", "prevent_destroy = false");
    repository.commit();
    done(&repository, "apply ../plan --auto-approve");
    assert_eq!(acts(&repository), ["destroy /a"]);
    // After a move, the block of the new path counts.
    let repository = applied(&[("/a", protected), ("/b", "")]);
    repository.write(
        "/moves.orch.hcl",
        "moved {\n  from = \"/a\"\n  to   = \"/c\"\n}\n",
    );
    give_up(&repository, "/c", "prevent_destroy = false");
    remove(&repository, "a");
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/a delete"]);
}
