//! `moved` blocks: what is recorded follows them before anything is compared.

use insta::assert_snapshot;
use serde_json::Value;

use crate::removals::{
    APPROVED, DOCUMENT, acts, applied, assert_tidy, declare, done, entry, fails, forget_log, keys,
    planned, remove, want, world,
};
use crate::support::{Repository, Sandbox};

/// Returns the text of blocks.
fn blocks(moves: &[(&str, &str)]) -> String {
    let block = |(from, to): &(&str, &str)| {
        format!("moved {{\n  from = \"{from}\"\n  to   = \"{to}\"\n}}\n")
    };
    moves.iter().map(block).collect()
}

/// Writes blocks into the file that has them all.
fn say(sandbox: &Sandbox, moves: &[(&str, &str)]) {
    sandbox.write("/moves.orch.hcl", blocks(moves));
}

/// Moves a directory together with what its tool finds, and says so.
fn move_directory(repository: &Repository, from: &str, to: &str) {
    if let Some((above, _)) = to.rsplit_once('/') {
        repository.mkdir(above);
    }
    repository.git(&format!("mv {from} {to}"));
}

/// A project with a state whose stacks find what they manage wherever they lie.
fn placed(stacks: &[(&str, &str)]) -> Repository {
    let repository = applied(stacks);
    for (path, _) in stacks {
        let name = path.trim_start_matches('/').replace('/', "_");
        repository.write(&format!("{path}/object"), name);
    }
    repository.commit();
    done(&repository, "apply --auto-approve");
    forget_log(&repository);
    repository
}

#[test]
fn moved_turns_delete_and_create_into_an_update() {
    let repository = placed(&[("/net", ""), ("/app", "after = [\"/net\"]"), ("/b", "")]);
    move_directory(&repository, "net", "platform/net");
    declare(&repository, "/app", "after = [\"/platform/net\"]");
    repository.commit();
    let before = planned(&repository, "");
    assert!(
        before[0].contains("it looks moved to `/platform/net`"),
        "{before:?}"
    );
    say(&repository, &[("/net", "/platform/net")]);
    repository.commit();
    let plan = repository.orch("plan");
    assert_snapshot!(plan, @"
        /platform/net (was /net)  no-op  only its record is moved

    Plan: nothing to do. 3 unchanged.
    ");
    let entry_of = |plan: Value| plan["stacks"][2].clone();
    let moved = entry_of(repository.orch("plan --format json").json());
    assert_eq!(moved["path"], "/platform/net");
    assert_eq!(moved["previous_path"], "/net");
    assert_eq!(moved["actions"][0], "no-op");
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(keys(&repository), ["/app", "/b", "/platform/net"]);
    assert_eq!(entry(&repository, "/app")["after"][0], "/platform/net");
    assert_tidy(&repository);
    // The block may stay.
    assert_snapshot!(repository.orch("plan"), @"Plan: nothing to do. 3 unchanged.");
    // And where it has changed as well.
    move_directory(&repository, "platform/net", "third");
    want(&repository, "/third", "2");
    declare(&repository, "/app", "after = [\"/third\"]");
    say(
        &repository,
        &[("/net", "/platform/net"), ("/platform/net", "/third")],
    );
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/third = /platform/net update"]);
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), ["apply /third"]);
    assert_eq!(keys(&repository), ["/app", "/b", "/third"]);
    assert_eq!(world(&repository), ["app", "b", "net"]);
}

#[test]
fn moved_directories_follow_chains() {
    let repository = placed(&[
        ("/env/a", "for_each = [\"x\", \"y\"]"),
        ("/env/b", "after = [\"/env/a\"]"),
        ("/top", "after = [\"/env\"]"),
    ]);
    repository.git("rm -q env/a/object");
    repository.commit();
    done(&repository, "apply --auto-approve");
    repository.git("mv env envs");
    declare(&repository, "/envs/b", "after = [\"/envs/a\"]");
    declare(&repository, "/top", "after = [\"/envs\"]");
    say(&repository, &[("/middle", "/envs"), ("/env", "/middle")]);
    repository.commit();
    let list = repository.orch("state list").stdout;
    for key in [r#"/envs/a["x"]"#, r#"/envs/a["y"]"#, "/envs/b"] {
        assert!(list.contains(key), "{list}");
    }
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(
        keys(&repository),
        [r#"/envs/a["x"]"#, r#"/envs/a["y"]"#, "/envs/b", "/top"]
    );
    assert_eq!(entry(&repository, "/top")["after"][0], "/envs");
    assert_eq!(entry(&repository, "/envs/b")["after"][0], "/envs/a");
}

#[test]
fn moved_stacks_may_become_instances() {
    let repository = placed(&[("/net", ""), ("/b", "")]);
    declare(&repository, "/net", "for_each = [\"eu\"]");
    say(&repository, &[("/net", "/net[\\\"eu\\\"]")]);
    repository.commit();
    assert_eq!(planned(&repository, "")[0], r#"/net["eu"] = /net no-op"#);
    done(&repository, "apply --auto-approve");
    assert_eq!(keys(&repository), ["/b", r#"/net["eu"]"#]);
}

#[test]
fn moved_records_are_seen_by_every_command() {
    let repository = placed(&[("/net", ""), ("/b", "")]);
    move_directory(&repository, "net", "platform/net");
    say(&repository, &[("/net", "/platform/net")]);
    repository.commit();
    // Another path may mean other results, so it is applied again, and not for the first time.
    let changed = repository
        .orch("list --changed --base applied --why")
        .stdout;
    let differs = "platform/net  # pending: own differs from ";
    assert!(changed.starts_with(differs), "{changed}");
    assert_snapshot!(repository.orch("list --status applied").stdout, @"b");
    assert_snapshot!(repository.orch("list --status removed,absent").stdout, @"");
    let list = repository.orch("state list").stdout;
    assert!(list.contains("/platform/net"), "{list}");
    let shown = repository
        .orch("state show /platform/net --format json")
        .json();
    assert_eq!(shown["path"], "/platform/net");
    assert_snapshot!(repository.orch("why /net"), @"
    [stderr]
    note: `/net` was moved to `/platform/net`, by moves.orch.hcl:1
    error: `/net`: does not exist
    [exit status 64]
    ");
    assert_eq!(repository.orch("why /platform/net").code(), 0);
    // Nothing has been written so far.
    assert_eq!(keys(&repository), ["/b", "/net"]);
    // Those that change one entry find it by its new path.
    done(&repository, "state taint /platform/net");
    done(&repository, "state untaint /platform/net");
    assert_eq!(keys(&repository), ["/b", "/net"]);
    // A run recorded renames it in the document, whatever stack it is about.
    done(&repository, "run -q -X --record --match b true");
    assert_eq!(keys(&repository), ["/b", "/platform/net"]);
    done(&repository, "run -q -X --record --match platform/net true");
    assert_eq!(repository.orch("list --changed --base applied").stdout, "");
}

#[test]
fn moved_stacks_free_their_old_path() {
    let repository = placed(&[("/net", ""), ("/b", "")]);
    move_directory(&repository, "net", "platform/net");
    declare(&repository, "/net", "");
    want(&repository, "/net", "1");
    repository.write("/net/object", "another");
    say(&repository, &[("/net", "/platform/net")]);
    repository.commit();
    assert_eq!(
        planned(&repository, ""),
        ["/net create", "/platform/net = /net no-op"]
    );
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), ["apply /net"]);
    assert_eq!(keys(&repository), ["/b", "/net", "/platform/net"]);
    // The block stays, and says nothing about the new one.
    assert_eq!(planned(&repository, ""), [""; 0]);
    // Not even when the moved one is gone.
    repository.git("rm -q -r platform");
    repository.write(
        "/gone.orch.hcl",
        "removed {\n  from = \"/platform/net\"\n}\n",
    );
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/platform/net delete"]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(planned(&repository, ""), [""; 0]);
    assert_eq!(keys(&repository), ["/b", "/net"]);
}

#[test]
fn moved_refuses_to_merge_recorded_stacks() {
    let repository = placed(&[("/net", ""), ("/platform/net", ""), ("/b", "")]);
    repository.git("rm -q -r net");
    say(&repository, &[("/net", "/platform/net")]);
    repository.commit();
    let plan = repository.orch("plan");
    assert_snapshot!(plan, @"
    [stderr]
    error: moves.orch.hcl:1 moves `/net` to `/platform/net`, but both are recorded
      = help: if one of them no longer exists, run `orch state forget /net` or `orch state forget /platform/net`
      = help: if they are two stacks, remove the block
    [exit status 4]
    ");
    for command in [
        "apply --auto-approve",
        "list --changed --base applied",
        "list --status applied",
        "run -X --record true",
        "state adopt",
    ] {
        let output = repository.orch(command);
        assert_eq!(output.code(), 4, "{command}: {output}");
        assert!(
            output.stderr.contains("both are recorded"),
            "{command}: {output}"
        );
    }
    let list = repository.orch("state list");
    assert_eq!(list.code(), 0, "{list}");
    assert!(
        list.stderr.contains("warning: moves.orch.hcl:1 moves"),
        "{list}"
    );
    assert_eq!(keys(&repository), ["/b", "/net", "/platform/net"]);
    // The way out.
    done(&repository, "state forget /platform/net");
    assert_eq!(planned(&repository, "")[0], "/platform/net = /net no-op");
    // By a chain.
    let repository = placed(&[("/x", ""), ("/y", ""), ("/b", "")]);
    repository.git("mv x z");
    repository.git("rm -q -r y");
    say(&repository, &[("/x", "/y"), ("/y", "/z")]);
    repository.commit();
    assert_snapshot!(repository.orch("plan"), @"
    [stderr]
    error: moves.orch.hcl:1 and other blocks move `/x` and `/y` to the same path, and both are recorded
      = help: if one of them no longer exists, run `orch state forget /x` or `orch state forget /y`
      = help: if they are two stacks, remove the block
    [exit status 4]
    ");
}

#[test]
fn moved_is_implied_by_ids() {
    let repository = placed(&[("/net", "id = \"one\""), ("/b", "")]);
    move_directory(&repository, "net", "platform/net");
    say(&repository, &[("/net", "/platform/net")]);
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/platform/net = /net no-op"]);
    // The id says that it is still there.
    declare(&repository, "/net", "id = \"ONE\"");
    want(&repository, "/net", "1");
    declare(&repository, "/platform/net", "id = \"two\"");
    repository.commit();
    assert_snapshot!(repository.orch("plan"), @"
    [stderr]
    error: moves.orch.hcl:1 moves `/net` to `/platform/net`, but its recorded id is that of `/net`
      = help: remove the block, or correct the ids
    [exit status 4]
    ");
    // The stack there has another id recorded.
    let repository = placed(&[("/net", ""), ("/other", "id = \"two\""), ("/b", "")]);
    repository.git("mv net moved");
    repository.git("rm -q -r other");
    declare(&repository, "/moved", "id = \"two\"");
    say(&repository, &[("/net", "/moved")]);
    repository.commit();
    let said = fails(&repository, "plan", 4, "both are recorded");
    assert!(said.contains("moves `/net` to `/other`"), "{said}");
    // Where nobody else has it, the block says that the new id is that of the old stack.
    let repository = placed(&[("/net", "id = \"one\""), ("/b", "")]);
    repository.git("mv net moved");
    declare(&repository, "/moved", "id = \"new\"");
    say(&repository, &[("/net", "/moved")]);
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/moved = /net no-op"]);
    done(&repository, "apply --auto-approve");
    assert_eq!(entry(&repository, "/moved")["id"], "new");
}

#[test]
fn moved_reports_a_backend_that_depends_on_the_path() {
    let repository = placed(&[
        ("/net", "driver = \"placed\"\n  name = \"net\""),
        ("/b", ""),
    ]);
    assert_eq!(entry(&repository, "/net")["backend"], "place net");
    move_directory(&repository, "net", "platform/net");
    declare(
        &repository,
        "/platform/net",
        "driver = \"placed\"\n  name = \"platform\"",
    );
    say(&repository, &[("/net", "/platform/net")]);
    repository.commit();
    let plan = repository.orch("plan");
    assert_snapshot!(plan, @"
      ! /platform/net (was /net)  blocked: moved from /net, but its backend was not

    Plan: 1 blocked, 1 unchanged.
    [stderr]
    warning: the state of /platform/net, which was /net, is in `place net`, and its backend is now `place platform`; move it there, then run `orch state adopt --match /platform/net`
    ");
    let left = "1 stack is blocked and left unchanged: /platform/net";
    fails(&repository, "apply --auto-approve", 4, left);
    assert_eq!(acts(&repository), [""; 0]);
    done(&repository, "state adopt --match platform/net");
    assert_eq!(keys(&repository), ["/b", "/platform/net"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
    // Another stack has the place that is recorded.
    let repository = placed(&[
        ("/net", "driver = \"placed\"\n  name = \"net\""),
        ("/b", ""),
    ]);
    repository.git("mv net x");
    declare(&repository, "/y", "driver = \"placed\"\n  name = \"net\"");
    declare(&repository, "/x", "driver = \"placed\"\n  name = \"x\"");
    want(&repository, "/y", "1");
    say(&repository, &[("/net", "/x")]);
    repository.commit();
    let all = planned(&repository, "");
    assert!(all.iter().all(|line| line.contains("blocked")), "{all:?}");
}

#[test]
fn moved_and_removed_stacks_need_a_removed_block() {
    let repository = placed(&[("/net", ""), ("/b", "")]);
    move_directory(&repository, "net", "platform/net");
    say(&repository, &[("/net", "/platform/net")]);
    repository.commit();
    remove(&repository, "platform");
    let plan = repository.orch("plan");
    assert_snapshot!(plan, @r#"
      ! /net  blocked: moves.orch.hcl:1 moves it to `/platform/net`, where no stack is

    Plan: 1 blocked, 1 unchanged.
    [stderr]
    warning: `/net` is recorded but not in the project, and is not destroyed: moves.orch.hcl:1 moves it to `/platform/net`, where no stack is
      = help: restore that stack; if it was removed, add this to an `.orch.hcl` file:
    removed {
      from = "/platform/net"
    }
    "#);
    // The old path is not where it was removed.
    repository.write("/gone.orch.hcl", "removed {\n  from = \"/net\"\n}\n");
    repository.commit();
    assert!(planned(&repository, "")[0].contains("blocked"));
    repository.write("/gone.orch.hcl", "removed {\n  from = \"/platform\"\n}\n");
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/net delete"]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /net"]);
    assert_eq!(keys(&repository), ["/b"]);
}

#[test]
fn moved_stacks_in_a_sparse_checkout_are_kept() {
    let repository = placed(&[("/legacy/net", ""), ("/legacy/x", ""), ("/b", "")]);
    repository.git("mv legacy/net net");
    repository.git("rm -q -r legacy");
    say(&repository, &[("/legacy/net", "/net")]);
    repository.write("/gone.orch.hcl", "removed {\n  from = \"/legacy\"\n}\n");
    repository.commit();
    assert_eq!(
        planned(&repository, ""),
        ["/legacy/x delete", "/net = /legacy/net no-op"]
    );
    repository.git("sparse-checkout set --no-cone /tool '/*.hcl' /b");
    assert!(!repository.path("/net").exists());
    let all = planned(&repository, "");
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(
        all[0].contains("/legacy/net blocked: moves.orch.hcl:1 moves"),
        "{all:?}"
    );
    assert_eq!(all[1], "/legacy/x delete");
}

#[test]
fn moved_stacks_in_a_plan_file_are_moved_as_shown() {
    let repository = placed(&[("/net", ""), ("/app", "after = [\"/net\"]"), ("/b", "")]);
    move_directory(&repository, "net", "platform/net");
    declare(&repository, "/app", "after = [\"/platform/net\"]");
    want(&repository, "/app", "2");
    say(&repository, &[("/net", "/platform/net")]);
    repository.commit();
    done(&repository, "plan -o ../plan");
    done(&repository, "apply ../plan --auto-approve");
    assert_eq!(acts(&repository), ["apply /app"]);
    assert_eq!(keys(&repository), ["/app", "/b", "/platform/net"]);
    assert_tidy(&repository);
}

#[test]
fn moved_paths_are_updated_in_other_records() {
    let repository = placed(&[("/net", ""), ("/gone", "after = [\"/net\"]"), ("/b", "")]);
    move_directory(&repository, "net", "platform/net");
    say(&repository, &[("/net", "/platform/net")]);
    want(&repository, "/platform/net", "2");
    remove(&repository, "gone");
    repository.commit();
    // It is destroyed before what it ran after is changed.
    let plan = repository.orch("plan --format json").json();
    let operations = plan["operations"].as_array().unwrap();
    let operations: Vec<&str> = operations
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    assert_eq!(operations, ["/gone", "/platform/net"]);
    let document: Value = serde_json::from_str(&repository.read(DOCUMENT)).unwrap();
    assert_eq!(document["stacks"]["/gone"]["after"][0], "/net");
}
