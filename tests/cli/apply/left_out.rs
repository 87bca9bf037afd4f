//! Stacks that fail to plan, and stacks that are blocked: the rest is planned, shown and applied, and the status is
//! no success.

use super::{
    DRIVERS, TOOL, acts, applied, declare, done, fails, hook, log, unhook, want, with_state, world,
};
use crate::support::{Repository, Sandbox};

/// Applied stacks with changes in all: `/b` runs after `/a`, `/c` after `/b`, and the tool of `/a` fails.
fn failing() -> Repository {
    let repository = applied(&[
        ("/a", ""),
        ("/b", "after = [\"/a\"]"),
        ("/c", "after = [\"/b\"]"),
        ("/d", ""),
    ]);
    for stack in ["/a", "/b", "/c", "/d"] {
        want(&repository, stack, "2");
    }
    hook(
        &repository,
        "plan",
        "a",
        "echo 'Error: no such zone' >&2; exit 1",
    );
    log(&repository);
    repository
}

#[test]
fn plan_shows_other_stacks_when_one_fails_to_plan() {
    let repository = failing();
    let output = repository.orch("plan");
    assert_eq!(output.code(), 1, "{output}");
    for stack in ["/b", "/c", "/d"] {
        let row = format!("~ {stack}  update");
        assert!(output.stdout.contains(&row), "{row}: {output}");
    }
    assert!(output.stdout.contains("1 failed"), "{output}");
    assert!(
        output
            .stderr
            .contains("/a: Error: no such zone (exit status 1"),
        "{output}"
    );
}

#[test]
fn apply_changes_nothing_if_a_stack_fails_to_plan_and_names_the_flag() {
    let repository = failing();
    for flags in ["", "--on-error stop"] {
        let apply = format!("apply --auto-approve {flags}");
        let said = fails(
            &repository,
            &apply,
            1,
            "nothing was applied because a stack failed to plan",
        );
        assert!(said.contains("add `--on-error skip-dependents`"), "{said}");
        assert_eq!(acts(&repository), [""; 0]);
    }
    let said = fails(&repository, "plan -o ../saved", 1, "no file was written");
    assert!(said.contains("add `--on-error skip-dependents`"), "{said}");
    assert!(!repository.outside().join("saved").exists());
}

#[test]
fn apply_leaves_out_stacks_that_fail_to_plan_and_those_behind_if_told_to_go_on() {
    for on_error in ["skip-dependents", "continue"] {
        let repository = failing();
        let apply = format!("apply --auto-approve --on-error {on_error}");
        let said = fails(
            &repository,
            &apply,
            1,
            "1 stack was left out after failing to plan: /a",
        );
        assert!(
            said.contains("blocked: runs after /a, which failed to plan"),
            "{said}"
        );
        assert_eq!(acts(&repository), ["apply update d"]);
        assert_eq!(last_run(&repository), (1, "failed".to_owned()));
        unhook(&repository, "plan", "a");
        done(&repository, "apply --auto-approve");
        assert_eq!(
            acts(&repository),
            ["apply update a", "apply update b", "apply update c"]
        );
    }
}

#[test]
fn apply_of_a_file_applies_what_was_planned_beside_failed_stacks() {
    let repository = failing();
    let plan = "plan -o ../saved --on-error skip-dependents";
    fails(&repository, plan, 1, "/a: Error: no such zone");
    let shown = done(&repository, "show ../saved");
    assert!(shown.contains("1 failed"), "{shown}");
    log(&repository);
    fails(&repository, "apply ../saved", 1, "1 stack was left out");
    assert_eq!(acts(&repository), ["apply update d"]);
    // What is left to do is not what the file has.
    fails(&repository, "apply ../saved", 1, "1 stack was left out");
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn apply_keeps_a_removed_stack_whose_user_fails_to_plan() {
    let repository = with_state(&[("/net", ""), ("/app", "after = [\"/net\"]"), ("/web", "")]);
    // Removed stacks are destroyed in a checkout elsewhere.
    let outside = repository.outside().to_string_lossy().into_owned();
    repository.write("/tool", TOOL.replace("$ORCH_ROOT/..", &outside));
    // All stacks are destroyed by the same words.
    let own = "may_replace = true\n  backend     = \"place ${terramate.stack.name}\"";
    repository.write(
        "/drivers.orch.hcl",
        DRIVERS.replace("may_replace = true", own),
    );
    repository.commit();
    done(&repository, "apply --auto-approve");
    repository.remove("/net/stack.orch.hcl");
    repository.remove("/net/want");
    declare(&repository, "/app", "");
    want(&repository, "/app", "2");
    want(&repository, "/web", "2");
    hook(&repository, "plan", "app", "exit 1");
    log(&repository);
    let apply = "apply --auto-approve --allow-destroy=1 --on-error skip-dependents";
    let said = fails(&repository, apply, 1, "/app runs after it, and is kept");
    assert_eq!(acts(&repository), ["apply update web"], "{said}");
    assert!(world(&repository, "net").is_some());
}

#[test]
fn apply_goes_on_beside_a_postcondition_that_does_not_hold() {
    let condition = "lifecycle {\n    postcondition {\n      condition = self.outputs.id == \"9\"\n      error_message = \"not nine\"\n    }\n  }";
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]"), ("/d", "")]);
    declare(&repository, "/a", condition);
    repository.commit();
    want(&repository, "/b", "2");
    want(&repository, "/d", "2");
    log(&repository);
    fails(&repository, "apply --auto-approve --full", 1, "not nine");
    assert_eq!(acts(&repository), [""; 0]);
    let apply = "apply --auto-approve --full --on-error skip-dependents";
    fails(
        &repository,
        apply,
        1,
        "1 stack was left out after failing to plan: /a",
    );
    assert_eq!(acts(&repository), ["apply update d"]);
}

/// Returns the exit status and the outcome of the last run according to the journal.
fn last_run(repository: &Repository) -> (i64, String) {
    let run = repository.orch("runs show --format json").json();
    let state = run["state"].as_str().unwrap().to_owned();
    (run["status"].as_i64().unwrap(), state)
}

/// Applied stacks of which two now keep their states in the same place.
fn blocked() -> Repository {
    let repository = applied(&[("/a", ""), ("/b", ""), ("/d", "")]);
    let backend = "  backend = terramate.stack.name == \"d\" ? \"d\" : \"same\"\n  may_replace";
    repository.write(
        "/drivers.orch.hcl",
        DRIVERS.replacen("  may_replace", backend, 1),
    );
    want(&repository, "/a", "2");
    want(&repository, "/b", "2");
    log(&repository);
    repository
}

#[test]
fn apply_exits_with_4_if_it_leaves_selected_stacks_blocked() {
    let repository = blocked();
    want(&repository, "/d", "2");
    fails(&repository, "plan --detailed-exitcode", 2, "");
    log(&repository);
    let left = "2 stacks are blocked and left unchanged: /a, /b";
    fails(&repository, "apply --auto-approve", 4, left);
    assert_eq!(acts(&repository), ["apply update d"]);
    assert_eq!(last_run(&repository), (4, "failed".to_owned()));
    // Nothing else is to be done now, and that is no success either.
    let said = fails(&repository, "apply --auto-approve", 4, left);
    assert!(!said.contains("nothing to do"), "{said}");
    fails(&repository, "plan --detailed-exitcode", 4, "");
    done(&repository, "plan");
    done(&repository, "plan -o ../saved");
    fails(&repository, "apply ../saved", 4, left);
    done(&repository, "plan --detailed-exitcode --match d");
    done(&repository, "apply --auto-approve --match d");
}

#[test]
fn plan_counts_reading_a_stack_as_nothing_to_do() {
    let repository = applied(&[("/a", ""), ("/b", "mode = \"read\"")]);
    let plan = repository.orch("plan --detailed-exitcode");
    assert_eq!(plan.code(), 0, "{plan}");
    assert!(plan.stdout.contains("< /b"), "{plan}");
}

/// A `terraform` whose `plan` fails in a directory with a file `fails`, and whose `validate` refuses one with a file
/// `invalid`.
const TERRAFORM: &str = r#"#!/bin/sh
echo "$1" >> steps
case $1 in
init) mkdir -p .terraform ;;
plan)
  if [ -e fails ]; then
    printf '\342\225\267\n\342\224\202 Error: Unsupported argument\n\342\224\202 \n\342\224\202   on main.tf line 3, in resource "x" "y":\n\342\225\265\n' >&2
    exit 1
  fi
  for word; do case $word in -out=*) : > "${word#-out=}" ;; esac; done
  exit 2 ;;
validate) [ ! -e invalid ] ;;
show) echo '{"format_version":"1.2","resource_changes":[{"address":"x.y","mode":"managed","change":{"actions":["create"]}}]}' ;;
esac
"#;

/// A project of two stacks, the second of which runs after the first and fails to plan.
fn terraform() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.write_program("/bin/terraform", TERRAFORM);
    let path = "orch {\n  config {\n    run {\n      env {\n        PATH = \"${terramate.root.path.fs.absolute}/bin:${env.PATH}\"\n      }\n    }\n  }\n}\n";
    sandbox.write("/path.orch.hcl", path);
    sandbox.write("/db/stack.orch.hcl", "stack {\n}\n");
    sandbox.write("/app/stack.orch.hcl", "stack {\n  after = [\"/db\"]\n}\n");
    sandbox.write("/db/main.tf", "");
    sandbox.write("/app/main.tf", "");
    sandbox.write("/app/fails", "");
    sandbox
}

#[test]
fn plan_counts_a_tool_that_fails_behind_work_as_known_after_apply() {
    let sandbox = terraform();
    let plan = sandbox.orch("plan");
    assert_eq!(plan.code(), 0, "{plan}");
    let row = "? /app  known after /db; cannot be planned yet: Error: Unsupported argument, on main.tf line 3";
    assert!(plan.stdout.contains(row), "{plan}");
    let total = "Plan: 1 to create, 1 known after apply.";
    assert!(plan.stdout.contains(total), "{plan}");
    // The tool says that the configuration is fine by itself.
    assert!(sandbox.read("/app/steps").ends_with("plan\nvalidate\n"));
    assert_eq!(sandbox.read("/db/steps").matches("validate").count(), 0);
    let json = sandbox.orch("plan --format json").json();
    // The status is 0, so there is no error.
    assert_eq!(json["errored"], false);
    let totals = &json["totals"]["stacks"];
    assert_eq!(
        (&totals["undecided"], &totals["failed"]),
        (&1.into(), &0.into())
    );
    let app = &json["stacks"][0];
    assert_eq!(app["path"], "/app");
    assert_eq!(app["planned"], false);
    assert_eq!(app["actions"], serde_json::json!([]));
    let text = app["reason"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("Error: Unsupported argument, on main.tf line 3"),
        "{text}"
    );
    assert_eq!(app["conditional"], serde_json::json!(["/db"]));
    let page = sandbox.orch("plan --format markdown");
    assert!(
        page.stdout
            .contains("known after /db; cannot be planned yet: Error: Unsupported argument"),
        "{page}"
    );
}

#[test]
fn plan_fails_if_the_tool_refuses_the_configuration_whatever_runs_before() {
    let sandbox = terraform();
    sandbox.write("/app/invalid", "");
    let plan = sandbox.orch("plan -o saved");
    assert_eq!(plan.code(), 1, "{plan}");
    assert!(plan.stdout.contains("+ /db"), "{plan}");
    assert!(
        plan.stderr
            .contains("/app: Error: Unsupported argument, on main.tf line 3"),
        "{plan}"
    );
    assert!(!sandbox.path("/saved").exists());
}

#[test]
fn plan_fails_if_an_answer_cannot_be_used_whatever_runs_before() {
    let sandbox = terraform();
    sandbox.remove("/app/fails");
    let half = TERRAFORM.replace(
        "show) echo",
        "show) [ -e half ] && echo '{\"format' || echo",
    );
    sandbox.write_program("/bin/terraform", &half);
    sandbox.write("/app/half", "");
    let plan = sandbox.orch("plan");
    assert_eq!(plan.code(), 1, "{plan}");
    assert!(plan.stderr.contains("is not a plan"), "{plan}");
    assert!(plan.stdout.contains("+ /db"), "{plan}");
}
