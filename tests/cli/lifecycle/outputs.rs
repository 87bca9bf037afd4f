//! Conditions about outputs: of stacks that theirs runs after, and of the stack itself.

use insta::assert_snapshot;

use crate::removals::{
    APPROVED, acts, applied, done, entry, fails, forget_log, log, operations, prepared, want,
};
use crate::support::Repository;

/// A `lifecycle` block with these conditions: the kind, the condition and the message of each.
pub(super) fn rules(conditions: &[(&str, &str, &str)]) -> String {
    let blocks = conditions.iter().map(|(kind, condition, message)| {
        format!(
            "    {kind} {{\n      condition     = {condition}\n      error_message = \"{message}\"\n    }}\n"
        )
    });
    format!("lifecycle {{\n{}  }}", blocks.collect::<String>())
}

/// The lines of a stack that requires something, and runs after `/net`.
pub(super) fn requires(condition: &str, message: &str) -> String {
    let rules = rules(&[("precondition", condition, message)]);
    format!("after = [\"/net\"]\n  {rules}")
}

/// The lines of a stack of which something must hold afterwards.
pub(super) fn ensures(condition: &str, message: &str) -> String {
    rules(&[("postcondition", condition, message)])
}

/// Sets the lines of a stack, and commits that.
pub(super) fn set(repository: &Repository, stack: &str, lines: &str) {
    let block = format!("stack {{\n  {lines}\n}}\n");
    repository.write(&format!("{stack}/stack.orch.hcl"), block);
    repository.commit();
}

/// Makes stacks want something else, and commits that.
pub(super) fn wants(repository: &Repository, stacks: &[&str], wanted: &str) {
    for stack in stacks {
        want(repository, stack, wanted);
    }
    repository.commit();
}

#[test]
fn preconditions_see_outputs_of_dependencies() {
    let repository = applied(&[("/net", ""), ("/app", "after = [\"/net\"]")]);
    let about = |id: &str| {
        requires(
            &format!("stacks[\"/net\"].outputs.id == \"{id}\""),
            "id is ${stacks[\"../net\"].outputs.id}",
        )
    };
    set(&repository, "/app", &about("1"));
    wants(&repository, &["/app"], "2");
    assert_eq!(operations(&repository, ""), ["~/app"]);
    assert_eq!(log(&repository), ["outputs /net", "plan /app"]);
    set(&repository, "/app", &about("2"));
    assert_snapshot!(fails(&repository, "plan", 1, "id is 1"), @r#"
      ! /app  failed: precondition of `/app` failed: id is 1 (app/stack.orch.hcl:4, stacks["/net"].outputs.id: this is "1")

    Plan: 1 failed, 1 unchanged.
    [stderr]
    error: precondition of `/app` failed: id is 1
     --> app/stack.orch.hcl:5:23
      |
    5 |       condition     = stacks["/net"].outputs.id == "2"
      |                       ^^^^^^^^^^^^^^^^^^^^^^^^^ this is "1"

    [exit status 1]
    "#);
    assert_eq!(log(&repository), ["outputs /net"]);
}

#[test]
fn preconditions_after_work_are_decided_by_the_apply() {
    let repository = applied(&[("/net", ""), ("/app", "after = [\"/net\"]")]);
    let lines = requires("stacks[\"/net\"].outputs.id == \"2\"", "not yet");
    set(&repository, "/app", &lines);
    wants(&repository, &["/net", "/app"], "2");
    done(&repository, "plan -o plan.file");
    assert_eq!(log(&repository), ["plan /net", "plan /app"]);
    done(&repository, &format!("apply {APPROVED} plan.file"));
    assert_eq!(acts(&repository), ["apply /net", "apply /app"]);
    wants(&repository, &["/net", "/app"], "3");
    forget_log(&repository);
    let told = fails(&repository, &format!("apply {APPROVED}"), 1, "not yet");
    assert_snapshot!(told, @r#"
      ~ /net  update  net/want differs                            +0 ~1 -0
      ~ /app  update  app/want differs; planned again after /net  +0 ~1 -0

    Plan: 2 to update. Resources: 2 to change.
    [stderr]
    orch: /net: succeeded in [time]: changes
    orch: /app: failed: precondition failed: not yet after [time]
    orch: changes in /net
    orch: failed /app: precondition failed: not yet after [time]
    orch: 1 succeeded (1 with changes), 1 failed in [time]
    error: precondition of `/app` failed: not yet
     --> app/stack.orch.hcl:5:23
      |
    5 |       condition     = stacks["/net"].outputs.id == "2"
      |                       ^^^^^^^^^^^^^^^^^^^^^^^^^ this is "3"

    note: `orch plan` shows what is left
    [exit status 1]
    "#);
    assert_eq!(acts(&repository), ["apply /net"]);
    assert_eq!(entry(&repository, "/app")["last"]["outcome"], "succeeded");
}

#[test]
fn conditions_do_not_read_needless_outputs() {
    let repository = applied(&[("/net", ""), ("/other", ""), ("/app", "after = [\"/net\"]")]);
    for condition in [
        "orch.namespace != \"prod\" || stacks[\"/net\"].outputs.none",
        "!(orch.namespace == \"prod\" && stacks[\"/net\"].outputs.none)",
        "orch.namespace == \"prod\" ? stacks[\"/net\"].outputs.none : true",
    ] {
        set(&repository, "/app", &requires(condition, "m"));
        wants(&repository, &["/app"], "2");
        assert_eq!(operations(&repository, ""), ["~/app"], "{condition}");
        assert_eq!(log(&repository), ["plan /app"], "{condition}");
    }
    let after = "after = [\"/net\", \"/other\"]\n  ";
    let of_two = "stacks[\"/net\"].outputs.id == \"1\" || stacks[\"/other\"].outputs.id == \"1\"";
    let rules = rules(&[("precondition", of_two, "m")]);
    set(&repository, "/app", &format!("{after}{rules}"));
    assert_eq!(operations(&repository, ""), ["~/app"]);
    assert_eq!(log(&repository), ["outputs /net", "plan /app"]);
}

#[test]
fn conditions_with_invalid_stacks_are_reported_first() {
    let repository = Repository::of(prepared(&[
        ("/net", ""),
        ("/app", ""),
        ("/many", "for_each = [\"a\", \"b\"]"),
        ("/far", "after = [\"/mid\"]"),
        ("/mid", "after = [\"/net\"]"),
    ]));
    done(&repository, "state init");
    let condition = "stacks[\"/net\"].outputs.on && stacks[\"/nett\"].outputs.on && stacks[\"/app\"].outputs.on && stacks[\"/many\"].outputs.on && stacks[\"../../x\"].outputs.on && self.action == \"create\"";
    let lines = rules(&[("precondition", condition, "m")]);
    set(&repository, "/app", &lines);
    assert_snapshot!(fails(&repository, "plan", 3, "does not run after it"), @r#"
    [stderr]
    error: `/app` uses outputs of `/net`, but does not run after it
     --> app/stack.orch.hcl:4:30
      |
    1 | stack {
      | ----- in this stack
    ...
    4 |       condition     = stacks["/net"].outputs.on && stacks["/nett"].outputs.on && stacks["/app"].outputs.on && stacks["/many"].outputs...
      |                              ^^^^^^ an `after` is missing
      |
      = help: add `after = ["/net"]` to `/app`

    error: `/nett` is not a stack
     --> app/stack.orch.hcl:4:59
      |
    4 |       condition     = stacks["/net"].outputs.on && stacks["/nett"].outputs.on && stacks["/app"].outputs.on && stacks["/many"].outputs...
      |                                                           ^^^^^^^ no stack has this path
      |
      = help: did you mean `/net`?

    error: `/app` is the stack itself
     --> app/stack.orch.hcl:4:89
      |
    4 |       condition     = stacks["/net"].outputs.on && stacks["/nett"].outputs.on && stacks["/app"].outputs.on && stacks["/many"].outputs...
      |                                                                                         ^^^^^^ the condition is one of `/app`
      |
      = help: in a `postcondition`, write `self.outputs`

    error: `/many` matches several instances
     --> app/stack.orch.hcl:4:118
      |
    4 | ...outputs.on && stacks["/app"].outputs.on && stacks["/many"].outputs.on && stacks["../../x"].outputs.on && self.action == "create"
      |                                                      ^^^^^^^ this needs one of them
      |
      = help: name one of them: `stacks["/many[\"a\"]"]`

    error: `../../x` leads out of the project
     --> app/stack.orch.hcl:4:148
      |
    4 | ...s.on && stacks["/many"].outputs.on && stacks["../../x"].outputs.on && self.action == "create"
      |                                                 ^^^^^^^^^ climbs above the project root
      |
      = help: name a stack of the project; a leading `/` is the project root

    error: a precondition has no `self`
     --> app/stack.orch.hcl:4:173
      |
    4 | ...].outputs.on && stacks["../../x"].outputs.on && self.action == "create"
      |                                                    ^^^^ the stack was not applied yet
      |
      = help: move the condition to a `postcondition` block

    [exit status 3]
    "#);
    fails(&repository, "validate", 3, "does not run after it");
    fails(
        &repository,
        &format!("apply {APPROVED}"),
        3,
        "does not run after it",
    );
    // Nothing is checked of what is destroyed.
    done(&repository, "plan --destroy");
    // After others is after, too.
    let lines = rules(&[("precondition", "stacks[\"/net\"].outputs.id == \"1\"", "m")]);
    set(&repository, "/app", "");
    set(
        &repository,
        "/far",
        &format!("after = [\"/mid\"]\n  {lines}"),
    );
    done(&repository, "validate");
    done(&repository, &format!("apply {APPROVED}"));
}

#[test]
fn conditions_report_an_inherited_problem_once() {
    let repository = applied(&[("/net", ""), ("/a", ""), ("/b", "")]);
    let lines = rules(&[("precondition", "stacks[\"/net\"].outputs.id != \"\"", "m")]);
    repository.write(
        "/config.orch.hcl",
        format!("orch {{\n  config {{\n  {lines}\n}}\n}}\n"),
    );
    repository.commit();
    let told = fails(&repository, "validate", 3, "`/a` uses outputs of `/net`");
    assert!(
        told.contains("this applies to 1 more of its stacks"),
        "{told}"
    );
    assert!(told.contains("`/net` is the stack itself"), "{told}");
}

#[test]
fn conditions_check_computed_stacks_at_evaluation() {
    let repository = applied(&[("/net", ""), ("/db", ""), ("/app", "after = [\"/net\"]")]);
    let all = "tm_alltrue([for path in [\"/net\", \"/db\"] : stacks[path].outputs.id == \"1\"])";
    set(&repository, "/app", &requires(all, "m"));
    wants(&repository, &["/app"], "2");
    let told = fails(&repository, "plan", 1, "`/app` uses outputs of `/db`");
    assert!(told.contains("add `after = [\"/db\"]` to `/app`"), "{told}");
    forget_log(&repository);
    let lines = requires(all, "m").replace("[\"/net\"]\n", "[\"/net\", \"/db\"]\n");
    set(&repository, "/app", &lines);
    assert_eq!(operations(&repository, ""), ["~/app"]);
    let mut logged = log(&repository);
    // They are read at once.
    logged[..2].sort();
    assert_eq!(logged, ["outputs /db", "outputs /net", "plan /app"]);
    // On the way, too.
    wants(&repository, &["/app", "/net"], "3");
    fails(
        &repository,
        &format!("apply {APPROVED}"),
        1,
        "precondition failed: m",
    );
    assert_eq!(acts(&repository), ["apply /net"]);
}

#[test]
fn conditions_report_missing_and_unreadable_outputs() {
    let repository = applied(&[
        ("/net", ""),
        ("/blind", "driver = \"placed\""),
        ("/app", "after = [\"/net\", \"/blind\"]"),
    ]);
    let about = |condition: &str| {
        requires(condition, "m").replace("[\"/net\"]\n", "[\"/net\", \"/blind\"]\n")
    };
    set(&repository, "/app", &about("stacks[\"/net\"].outputs.it"));
    wants(&repository, &["/app"], "2");
    assert_snapshot!(fails(&repository, "plan", 1, "has no output `it`"), @r#"
      ! /app  failed: `/net` has no output `it` (app/stack.orch.hcl:4, it: it has no such output)

    Plan: 1 failed, 2 unchanged.
    [stderr]
    error: `/net` has no output `it`
     --> app/stack.orch.hcl:5:46
      |
    5 |       condition     = stacks["/net"].outputs.it
      |                                              ^^ it has no such output
      |
      = note: its outputs are `id`
      = note: needed for the precondition of `/app`
      = help: did you mean `id`?

    [exit status 1]
    "#);
    set(&repository, "/app", &about("stacks[\"/blind\"].outputs.it"));
    assert_snapshot!(fails(&repository, "plan", 1, "cannot be read"), @r#"
      ! /app  failed: the outputs of `/blind` cannot be read (app/stack.orch.hcl:4, stacks["/blind"].outputs.it: its driver `placed` has no `outputs`)

    Plan: 1 failed, 2 unchanged.
    [stderr]
    error: the outputs of `/blind` cannot be read
     --> app/stack.orch.hcl:5:23
      |
    5 |       condition     = stacks["/blind"].outputs.it
      |                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^ its driver `placed` has no `outputs`
      |
      = note: needed for the precondition of `/app`

    [exit status 1]
    "#);
    set(
        &repository,
        "/app",
        &about("stacks[\"/net\"].outputs.id == \"1\""),
    );
    crate::removals::hook(&repository, "outputs", "net", "echo broken >&2; exit 3");
    assert_snapshot!(fails(&repository, "plan", 1, "exit status 3"), @r#"
      ! /app  failed: the outputs of `/net` cannot be read (app/stack.orch.hcl:4, stacks["/net"].outputs.id: the command that prints them failed)

    Plan: 1 failed, 2 unchanged.
    [stderr]
    orch: /net: its outputs cannot be read: exit status 3 after [time]
    broken
    error: the outputs of `/net` cannot be read
     --> app/stack.orch.hcl:5:23
      |
    5 |       condition     = stacks["/net"].outputs.id == "1"
      |                       ^^^^^^^^^^^^^^^^^^^^^^^^^ the command that prints them failed
      |
      = note: needed for the precondition of `/app`

    [exit status 1]
    "#);
    // Whoever can do without says so.
    set(
        &repository,
        "/app",
        &about("tm_try(stacks[\"/net\"].outputs.id, \"none\") == \"none\""),
    );
    assert_eq!(operations(&repository, ""), ["~/app"]);
}

#[test]
fn preconditions_in_a_chain_are_decided_in_rounds() {
    let repository = applied(&[
        ("/net", ""),
        ("/mid", "after = [\"/net\"]"),
        ("/end", "after = [\"/mid\"]"),
    ]);
    let of = |after: &str| {
        let condition = format!("stacks[\"{after}\"].outputs.id == \"1\"");
        let rules = rules(&[("precondition", &condition, "m")]);
        format!("after = [\"{after}\"]\n  {rules}")
    };
    set(&repository, "/mid", &of("/net"));
    set(&repository, "/end", &of("/mid"));
    wants(&repository, &["/end"], "2");
    assert_eq!(operations(&repository, ""), ["~/end"]);
    assert_eq!(
        log(&repository),
        ["outputs /net", "outputs /mid", "plan /end"]
    );
    wants(&repository, &["/mid"], "3");
    // It is not known what `/mid` will have.
    assert_eq!(operations(&repository, ""), ["~/mid", "~/end"]);
    assert_eq!(log(&repository), ["outputs /net", "plan /mid", "plan /end"]);
    fails(
        &repository,
        &format!("apply {APPROVED}"),
        1,
        "precondition failed: m",
    );
    assert_eq!(acts(&repository), ["apply /mid"]);
}

#[test]
fn postconditions_fail_applied_stacks() {
    let repository = applied(&[
        ("/app", ""),
        ("/late", "after = [\"/app\"]"),
        ("/other", ""),
    ]);
    let condition = "self.outputs.id != \"2\" || self.action == \"create\" || self.changes.change + self.changes.add + self.changes.remove > 1";
    set(
        &repository,
        "/app",
        &ensures(condition, "never ${self.outputs.id}"),
    );
    wants(&repository, &["/app", "/late", "/other"], "2");
    let told = fails(&repository, &format!("apply {APPROVED}"), 1, "never 2");
    assert_snapshot!(told, @r#"
      ~ /app    update  app/want differs                             +0 ~1 -0
      ~ /late   update  late/want differs; planned again after /app  +0 ~1 -0
      ~ /other  update  other/want differs                           +0 ~1 -0

    Plan: 3 to update. Resources: 3 to change.
    [stderr]
    orch: /app: failed: postcondition failed: never 2 after [time]
    orch: /other: succeeded in [time]: changes
    orch: changes in /other
    orch: skipped /late: runs after /app, which failed
    orch: failed /app: postcondition failed: never 2 after [time]
    orch: 1 succeeded (1 with changes), 1 failed, 1 skipped in [time]
    error: postcondition of `/app` failed: never 2
     --> app/stack.orch.hcl:4:23
      |
    4 | ... = self.outputs.id != "2" || self.action == "create" || self.changes.change + self.changes.add + self.changes.remove > 1
      |       ^^^^^^^^^^^^^^^           -----------                -------------------   ----------------   ------------------- this is 0
      |       |                         |                          |                     |
      |       |                         |                          |                     this is 0
      |       |                         |                          this is 1
      |       |                         this is "update"
      |       this is "2"

    note: `orch plan` shows what is left
    [exit status 1]
    "#);
    let mut acted = acts(&repository);
    acted.sort();
    assert_eq!(acted, ["apply /app", "apply /other"]);
    let recorded = entry(&repository, "/app");
    assert_eq!(recorded["applied"]["checks"], "failed");
    assert_eq!(recorded["last"]["outcome"], "failed");
    assert_eq!(recorded["last"]["failure"], "condition");
    assert_eq!(done(&repository, "list --status failed"), "app\n");
    assert_snapshot!(done(&repository, "why /app --status failed"), @"
    /app is selected
      at or below /
      failed: a postcondition failed

    its inputs
      /app, its own directory
      /drivers.orch.hcl, environment variable GREETING (drivers.orch.hcl:7)

    its lifecycle rules
      postcondition, app/stack.orch.hcl:3

    nothing runs before it

    it runs before
      /late, after late/stack.orch.hcl:2, not selected
    ");
    let told = done(&repository, "state show /app");
    assert!(
        told.contains("checks") && told.contains("condition"),
        "{told}"
    );
    // The next plan asks again, and what does not hold still fails.
    let told = fails(&repository, "plan -o plan.file", 1, "never 2");
    assert!(told.contains("postcondition of `/app` failed"), "{told}");
    let mut logged = log(&repository);
    logged.sort();
    assert_eq!(logged, ["outputs /app", "plan /app", "plan /late"]);
    set(
        &repository,
        "/app",
        &ensures("self.action == \"no-op\" && self.changes.add == 0", "m"),
    );
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["apply /late"]);
    assert_eq!(entry(&repository, "/app")["applied"].get("checks"), None);
    assert_eq!(
        done(&repository, "list --status applied"),
        "app\nlate\nother\n"
    );
}
