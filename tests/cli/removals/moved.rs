//! Stacks that were moved, or look so: drivers that cannot tell two stacks apart, and content that is found again.

use std::fs;

use insta::assert_snapshot;

use super::default_branch::publish;
use super::{
    APPROVED, STATE, change_entry, done, entry, keys, leaves_blocked, planned, remove, world,
};
use crate::support::{Repository, Sandbox};

/// A driver whose resources are named after the stack, wherever that is.
const NAMED: &str = r#"
driver "cf" {
  apply   = ["sh", "-c", "touch OUTSIDE/world/$0", "example-${terramate.stack.name}"]
  destroy = ["sh", "-c", "rm OUTSIDE/world/$0", "example-${terramate.stack.name}"]
}
"#;

/// A driver with the same commands for all stacks.
const NAMELESS: &str = r#"
driver "cf" {
  apply   = ["sh", "-c", "touch OUTSIDE/world/$ORCH_STACK_NAME"]
  destroy = ["sh", "-c", "rm OUTSIDE/world/$ORCH_STACK_NAME"]
}
"#;

/// Lines that no other text has.
fn lines(of: &str, number: usize) -> String {
    let lines = (0..number).map(|line| format!("{of} has line {line} of {of}, and {of} alone\n"));
    lines.collect()
}

/// Writes a stack with these lines in its block, and a template of its own.
fn write(sandbox: &Sandbox, path: &str, block: &str, template: &str) {
    let block = format!("stack {{\n  {block}\n}}\n");
    sandbox.write(&format!("{path}/stack.orch.hcl"), block);
    sandbox.write(&format!("{path}/template.yml"), template);
}

/// A project with a driver and these stacks, all of which are applied.
fn deployed(driver: &str, stacks: &[(&str, &str)]) -> Repository {
    let sandbox = Sandbox::new("");
    let outside = sandbox.outside().to_string_lossy().into_owned();
    let root = "orch {\n  config {\n    driver = \"cf\"\n  }\n}\n";
    let driver = driver.replace("OUTSIDE", &outside);
    sandbox.write("/drivers.orch.hcl", format!("{root}{driver}"));
    sandbox.write("/state.orch.hcl", STATE);
    fs::create_dir(sandbox.outside().join("world")).unwrap();
    for (path, block) in stacks {
        write(&sandbox, path, block, &lines(path, 10));
    }
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    done(&repository, "apply --auto-approve");
    repository
}

fn orders() -> Repository {
    deployed(NAMED, &[("/orders", ""), ("/keep", "")])
}

/// Commits a `removed` block for `/orders`.
fn answer(repository: &Repository, lines: &str) {
    let block = format!("removed {{\n  from = \"/orders\"\n{lines}}}\n");
    repository.write("/removed.orch.hcl", block);
    repository.commit();
}

const SAME: &str = "/orders blocked: its `destroy` command also destroys /team/orders, and its driver `cf` has no `backend`";

#[test]
fn a_renamed_directory_keeps_its_resources_also_once_it_is_applied() {
    let repository = orders();
    repository.mkdir("team");
    repository.git("mv orders team/orders");
    repository.commit();
    let moved = "/orders blocked: it looks moved to `/team/orders`";
    assert_eq!(planned(&repository, ""), [moved, "/team/orders create"]);
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert_eq!(planned(&repository, ""), [moved]);
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert_eq!(world(&repository), ["example-keep", "example-orders"]);
    let why = done(&repository, "why /orders");
    let why: Vec<&str> = why
        .lines()
        .skip_while(|it| !it.starts_with("status"))
        .collect();
    assert_snapshot!(why.join("\n"), @r#"
    status   absent: it looks moved to `/team/orders`
    fix      if it was moved, run `orch state forget /orders`
             if it was removed, and the other stack has resources of its own, add this to an `.orch.hcl` file:
             removed {
               from = "/orders"
             }
    "#);
    done(&repository, "state forget /orders");
    assert_eq!(planned(&repository, ""), [""; 0]);
}

/// `/orders`, rewritten while it was moved.
fn rewritten() -> Repository {
    let repository = orders();
    repository.git("rm -q -r orders");
    write(&repository, "/team/orders", "", &lines("another", 10));
    repository.commit();
    repository
}

#[test]
fn a_stack_that_is_rewritten_while_it_moves_keeps_its_resources() {
    let repository = rewritten();
    assert_eq!(planned(&repository, ""), [SAME, "/team/orders create"]);
    let why = done(&repository, "why /orders");
    let why: Vec<&str> = why
        .lines()
        .skip_while(|it| !it.starts_with("blocked"))
        .collect();
    assert_snapshot!(why.join("\n"), @r#"
    blocked  its `destroy` command also destroys /team/orders, and its driver `cf` has no `backend`
    fix      if it was moved, add this to an `.orch.hcl` file:
             moved {
               from = "/orders"
               to   = "/team/orders"
             }
             if it was removed, and the other stack has resources of its own:
             removed {
               from = "/orders"
             }
             to tell other stacks apart, add `backend` to the driver; see `orch help drivers`
    "#);
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert_eq!(planned(&repository, ""), [SAME]);
    assert_eq!(world(&repository), ["example-keep", "example-orders"]);
    // A plan that somebody has made before does not count either.
    let why = done(&repository, "why /orders");
    assert!(
        why.contains("fix      if it was moved, run `orch state forget /orders`\n"),
        "{why}"
    );
}

/// Removes `/orders` and `/keep`, and writes `/team/orders`.
fn replace_by_another(repository: &Repository) {
    repository.git("rm -q -r orders keep");
    write(repository, "/team/orders", "", &lines("another", 10));
    repository.commit();
}

#[test]
fn words_that_only_say_where_a_stack_is_do_not_tell_it_apart() {
    for place in [
        "${terramate.stack.path.to_root}/cf.sh",
        "STACK=${terramate.stack.path.relative}",
        "STACK=.${terramate.stack.path.absolute}",
        "--in=${terramate.root.path.fs.absolute}${terramate.stack.path.absolute}",
    ] {
        let driver = NAMED.replace("\"example-", &format!("\"{place}\", \"example-"));
        let driver = driver.replace("$0", "$1");
        let repository = deployed(&driver, &[("/orders", ""), ("/keep", "")]);
        replace_by_another(&repository);
        let expected = ["/keep delete", SAME, "/team/orders create"];
        assert_eq!(planned(&repository, ""), expected, "{place}");
    }
}

#[test]
fn a_driver_that_has_changed_since_does_not_tell_stacks_apart() {
    for change in ["word", "name", "global"] {
        let repository = orders();
        let driver = repository.read("/drivers.orch.hcl");
        let changed = match change {
            "word" => driver.replace("\"sh\", \"-c\"", "\"sh\", \"-e\", \"-c\""),
            "name" => driver
                .replace("\"sh\", \"-c\"", "\"sh\", \"-e\", \"-c\"")
                .replace("\"cf\"", "\"cfn\""),
            // The old commit cannot evaluate it.
            _ => driver.replace("example-", "${global.kind}-") + "globals {\n  kind = \"new\"\n}\n",
        };
        repository.write("/drivers.orch.hcl", changed);
        replace_by_another(&repository);
        let expected = ["/keep delete", SAME, "/team/orders create"];
        assert_eq!(planned(&repository, ""), expected, "{change}");
    }
}

#[test]
fn two_drivers_tell_stacks_of_the_same_name_apart() {
    let other = NAMED
        .replace("\"cf\"", "\"other\"")
        .replace("example", "other");
    let stacks = [("/orders", ""), ("/b/orders", "driver = \"other\"")];
    let repository = deployed(&format!("{NAMED}{other}"), &stacks);
    remove(&repository, "orders");
    assert_eq!(planned(&repository, ""), ["/orders delete"]);
}

#[test]
fn a_late_job_destroys_nothing_that_a_stack_of_the_default_branch_has() {
    let repository = deployed(NAMED, &[("/orders", ""), ("/keep", ""), ("/z", "")]);
    publish(&repository);
    let removal = remove(&repository, "orders keep");
    write(&repository, "/team/orders", "", &lines("another", 10));
    repository.commit();
    repository.git("push -q origin main");
    repository.git(&format!("checkout -q {removal}"));
    let same = "/orders blocked: its `destroy` command also destroys /team/orders, which origin/main has, and its driver `cf` has no `backend`";
    assert_eq!(planned(&repository, ""), ["/keep delete", same]);
    let why = done(&repository, "why /orders");
    let way_out = "fix      merge origin/main into this branch; if this branch deletes /team/orders, merge the deletion first\n";
    assert!(why.contains(way_out), "{why}");
    repository.git("checkout -q main");
    done(&repository, "apply --auto-approve --no-removals");
    repository.git(&format!("checkout -q {removal}"));
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert_eq!(world(&repository), ["example-orders", "example-z"]);
}

#[test]
fn nothing_is_destroyed_that_a_recorded_stack_of_another_branch_has() {
    let repository = deployed(NAMED, &[("/orders", ""), ("/keep", ""), ("/z", "")]);
    repository.git("checkout -q -b feature");
    replace_by_another(&repository);
    done(&repository, "apply --auto-approve --no-removals");
    repository.git("checkout -q main");
    remove(&repository, "orders keep");
    let same = "/orders blocked: its `destroy` command also destroys /team/orders, which is recorded, and its driver `cf` has no `backend`";
    let plan = planned(&repository, "");
    assert_eq!(plan[..2], ["/keep delete", same], "{plan:?}");
    let why = done(&repository, "why /orders");
    let way_out = "fix      if it was moved, run `orch state forget /orders`\n";
    assert!(why.contains(way_out), "{why}");
    // Where its commit is unknown, its command is, too.
    change_entry(&repository, "/team/orders", |entry| {
        entry["applied"]["seen"] = "0123456789012345678901234567890123456789".into();
    });
    let unknown = "its driver `cf` has no `backend`, and the `destroy` command of /team/orders, which is recorded, is unknown: commit 0123456 is not in this clone";
    let plan = planned(&repository, "");
    let blocked = ["/keep", "/orders"].map(|path| format!("{path} blocked: {unknown}"));
    assert_eq!(plan[..2], blocked, "{plan:?}");
    change_entry(&repository, "/team/orders", |entry| {
        entry["driver"] = "terraform".into();
    });
    let plan = planned(&repository, "");
    assert_eq!(plan[..2], ["/keep delete", "/orders delete"], "{plan:?}");
}

#[test]
fn a_moved_or_removed_block_answers_whether_a_stack_was_moved() {
    let repository = rewritten();
    let moved = "moved {\n  from = \"/orders\"\n  to   = \"/team/orders\"\n}\n";
    repository.write("/moved.orch.hcl", moved);
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/team/orders = /orders update"]);
    let repository = rewritten();
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    answer(&repository, "  lifecycle {\n    destroy = false\n  }\n");
    assert_eq!(planned(&repository, ""), ["/orders forget"]);
    answer(&repository, "");
    assert_eq!(planned(&repository, ""), ["/orders delete"]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(world(&repository), ["example-keep"]);
    assert_eq!(keys(&repository), ["/keep", "/team/orders"]);
}

#[test]
fn a_plan_in_a_file_destroys_nothing_that_another_stack_has_by_now() {
    let repository = orders();
    remove(&repository, "orders");
    assert_eq!(planned(&repository, ""), ["/orders delete"]);
    done(&repository, "plan -o ../saved");
    write(&repository, "/team/orders", "", &lines("another", 10));
    repository.commit();
    let output = repository.orch("apply ../saved --allow-destroy=9");
    assert_eq!(output.code(), 4, "{output}");
    assert!(
        output.stderr.contains(&SAME["/orders blocked: ".len()..]),
        "{output}"
    );
    assert_eq!(world(&repository), ["example-keep", "example-orders"]);
}

#[test]
fn commands_that_are_the_same_for_all_stacks_destroy_what_a_block_or_a_backend_tells_apart() {
    let repository = deployed(NAMELESS, &[("/orders", ""), ("/keep", "")]);
    remove(&repository, "orders");
    let same = "/orders blocked: its `destroy` command also destroys /keep, and its driver `cf` has no `backend`";
    assert_eq!(planned(&repository, ""), [same]);
    // A backend that comes later does not say where the removed one was.
    let driver = repository.read("/drivers.orch.hcl");
    let placed = driver.replace(
        "  apply",
        "  backend = \"cf ${terramate.stack.name}\"\n  apply",
    );
    repository.write("/drivers.orch.hcl", &placed);
    repository.commit();
    assert!(planned(&repository, "").contains(&same.to_owned()));
    answer(&repository, "");
    assert!(planned(&repository, "").contains(&"/orders delete".to_owned()));

    let placed = NAMELESS.replace(
        "  apply",
        "  backend = \"cf ${terramate.stack.name}\"\n  apply",
    );
    let repository = deployed(&placed, &[("/orders", ""), ("/keep", "")]);
    assert_eq!(entry(&repository, "/orders")["backend"], "cf orders");
    remove(&repository, "orders");
    assert_eq!(planned(&repository, ""), ["/orders delete"]);
}

#[test]
fn a_backend_that_is_not_on_record_is_that_of_the_commit() {
    let driver = NAMED.replace(
        "  apply",
        "  backend = \"cf ${terramate.stack.name}\"\n  apply",
    );
    let repository = deployed(&driver, &[("/orders", ""), ("/keep", "")]);
    change_entry(&repository, "/orders", |entry| {
        entry.as_object_mut().unwrap().remove("backend");
    });
    repository.git("rm -q -r orders");
    write(&repository, "/team/orders", "", &lines("another", 10));
    repository.commit();
    let same = "/orders blocked: it has the same backend as /team/orders, which is in the project";
    assert_eq!(planned(&repository, ""), [same, "/team/orders create"]);
    let why = done(&repository, "why /orders");
    assert!(why.contains(&same["/orders blocked: ".len()..]), "{why}");
    // Nothing else is called so.
    repository.write(
        "/team/orders/stack.orch.hcl",
        "stack {\n  name = \"bills\"\n}\n",
    );
    repository.commit();
    assert_eq!(
        planned(&repository, ""),
        ["/orders delete", "/team/orders create"]
    );
}

#[test]
fn a_command_that_cannot_be_evaluated_may_be_the_same() {
    let driver = NAMED.replace("example-${terramate.stack.name}", "${global.resource}");
    let sandbox_globals = |repository: &Repository, stack: &str| {
        let globals = format!("globals {{\n  resource = \"{stack}\"\n}}\n");
        repository.write(&format!("/{stack}/globals.orch.hcl"), globals);
    };
    let repository = deployed(NAMED, &[("/orders", ""), ("/keep", "")]);
    let outside = repository.outside().to_string_lossy().into_owned();
    let root = "orch {\n  config {\n    driver = \"cf\"\n  }\n}\n";
    let driver = driver.replace("OUTSIDE", &outside);
    repository.write("/drivers.orch.hcl", format!("{root}{driver}"));
    sandbox_globals(&repository, "orders");
    sandbox_globals(&repository, "keep");
    repository.commit();
    done(&repository, "apply --auto-approve");
    repository.git("rm -q -r orders keep/globals.orch.hcl");
    repository.commit();
    let plan = planned(&repository, "--exclude keep");
    let unknown = "/orders blocked: its driver `cf` has no `backend`, and the `destroy` command of /keep is unknown: ";
    assert!(plan[0].starts_with(unknown), "{plan:?}");
}

#[test]
fn an_added_stack_never_blocks_the_removal_of_an_unlike_one() {
    let repository = deployed(NAMED, &[("/s0", ""), ("/keep", "")]);
    for number in 1..4 {
        repository.git(&format!("rm -q -r s{}", number - 1));
        // The blocks are all the same.
        let path = format!("/s{number}");
        let template = lines(&path, if number == 2 { 0 } else { 40 });
        write(&repository, &path, "", &template);
        repository.commit();
        done(&repository, &format!("apply {APPROVED}"));
        let stack = format!("example-s{number}");
        assert_eq!(world(&repository), ["example-keep", &*stack]);
    }
}

#[test]
fn two_ids_are_two_stacks_however_alike_they_are() {
    let repository = deployed(NAMED, &[("/old", "id = \"one\""), ("/keep", "")]);
    repository.git("mv old new");
    repository.write("/new/stack.orch.hcl", "stack {\n  id = \"two\"\n}\n");
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/new create", "/old delete"]);
    // Without an id of its own, it may be the same one.
    repository.write("/new/stack.orch.hcl", "stack {\n}\n");
    repository.commit();
    assert_eq!(
        planned(&repository, ""),
        ["/new create", "/old blocked: it looks moved to `/new`"]
    );
}

#[test]
fn half_of_the_content_makes_a_stack_look_moved() {
    // The lines of two files, how many of each are found in the new stack, and whether it looks moved.
    for (first, second, is_moved) in [
        ((20, 20), (10, 0), true),
        ((10, 10), (20, 0), false),
        ((20, 12), (10, 0), true),
        ((20, 6), (10, 0), false),
        ((0, 0), (10, 8), true),
    ] {
        let repository = deployed(NAMED, &[("/old", ""), ("/keep", "")]);
        let write = |path: &str, name: &str, (all, kept): (usize, usize), of: &str| {
            let text = lines("same", kept) + &lines(of, all - kept);
            repository.write(&format!("{path}/{name}"), text);
        };
        write("/old", "template.yml", first, "before");
        write("/old", "second.yml", second, "earlier");
        repository.commit();
        done(&repository, "apply --auto-approve");
        repository.git("rm -q -r old");
        repository.write("/new/stack.orch.hcl", "stack {\n}\n");
        write("/new", "template.yml", first, "after");
        write("/new", "second.yml", second, "later");
        repository.commit();
        let plan = planned(&repository, "");
        let moved = "/old blocked: it looks moved to `/new`";
        let expected = if is_moved { moved } else { "/old delete" };
        assert_eq!(plan, ["/new create", expected], "{first:?} {second:?}");
    }
}

#[test]
fn a_removal_among_too_many_files_may_be_a_move() {
    let repository = deployed(NAMED, &[("/bulk", ""), ("/orders", ""), ("/keep", "")]);
    for number in 0..4001 {
        repository.write(&format!("/bulk/{number}"), number.to_string());
    }
    repository.commit();
    done(&repository, "apply --auto-approve");
    repository.git("rm -q -r bulk orders");
    let template = lines("/orders", 9) + "another\n";
    write(&repository, "/new", "", &template);
    repository.commit();
    let unknown = "blocked: more than 4000 files were removed or added with it, so git cannot decide whether it was moved";
    let expected = [
        format!("/bulk {unknown}"),
        "/new create".to_owned(),
        format!("/orders {unknown}"),
    ];
    assert_eq!(planned(&repository, ""), expected);
    answer(&repository, "");
    let plan = planned(&repository, "");
    assert_eq!(plan[2], "/orders delete", "{plan:?}");
}
