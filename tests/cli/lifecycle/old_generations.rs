//! Old generations: who uses which, and when one is destroyed.

use insta::assert_snapshot;
use serde_json::json;

use crate::removals::{
    APPROVED, acts, applied_of, done, entry, fails, forget_log, hook, log, operations, planned,
    prepared, unhook, want, world,
};
use crate::support::{Repository, Sandbox};

const FIRST: &str = "driver = \"many\"\n  lifecycle {\n    create_before_destroy = true\n  }";

const MANY: &str = "driver = \"many\"";

/// Gives a stack variables that are computed from the generations of others.
pub(super) fn tell(sandbox: &Sandbox, path: &str, of: &[&str]) {
    let variables = of.iter().map(|of| {
        let name = of[1..].to_uppercase();
        format!("        OF_{name} = \"g${{stacks[\"{of}\"].generation}}\"\n")
    });
    let variables: String = variables.collect();
    let text = format!(
        "orch {{\n  config {{\n    run {{\n      env {{\n{variables}      }}\n    }}\n  }}\n}}\n"
    );
    sandbox.write(&format!("{path}/generations.orch.hcl"), text);
}

/// `/net`, `/app` after it, made first, and `/web` after that; all of these are told the generation of what they run
/// right after, but for those in `untold`.
fn chain(untold: &[&str]) -> Repository {
    let files = prepared(&[
        ("/net", MANY),
        ("/app", &format!("after = [\"/net\"]\n  {FIRST}")),
        ("/web", &format!("after = [\"/app\"]\n  {MANY}")),
    ]);
    for (path, of) in [("/app", "/net"), ("/web", "/app")] {
        if !untold.contains(&path) {
            tell(&files, path, &[of]);
        }
    }
    applied_of(files)
}

fn approved(repository: &Repository, arguments: &str) -> String {
    done(repository, &format!("apply {APPROVED} {arguments}"))
}

/// Has each `plan` and `apply` of a stack log the value of a variable.
fn show_variable(repository: &Repository, name: &str, variable: &str) {
    for step in ["plan", "apply"] {
        let script = format!("echo \"{step} sees ${variable}\" >> \"$outside/log\"\n");
        hook(repository, step, name, &script);
    }
}

#[test]
fn apply_gives_others_the_new_generation_before_it_destroys_the_old_one() {
    let repository = chain(&[]);
    show_variable(&repository, "web", "OF_APP");
    assert_eq!(
        entry(&repository, "/web")["applied"]["generations"],
        json!({"/app": 1})
    );
    approved(&repository, "--replace /app");
    let steps = log(&repository);
    let at = |step: &str| {
        let found = steps.iter().position(|it| it == step);
        found.unwrap_or_else(|| panic!("{step}: {steps:?}"))
    };
    assert!(at("apply /app@2") < at("plan sees g2"), "{steps:?}");
    let destroy = steps.iter().rposition(|it| it == "destroy /app").unwrap();
    assert!(at("plan sees g2") < destroy, "{steps:?}");
    assert_eq!(world(&repository), ["app@2", "net", "web"]);
    assert_eq!(
        entry(&repository, "/web")["applied"]["generations"],
        json!({"/app": 2})
    );
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn plan_finds_stacks_that_were_applied_with_another_generation() {
    let repository = chain(&[]);
    let apply = format!("apply {APPROVED} --replace /app --match app");
    let kept =
        "`/app[generation 1]` is not destroyed: /web may still use it, and is not part of the plan";
    fails(&repository, &apply, 4, kept);
    let list = done(&repository, "list --status pending --why");
    assert!(list.contains("/app now has generation 2"), "{list}");
    // It is to be destroyed after that one.
    assert_snapshot!(done(&repository, "plan"), @"
      - /app  delete (old generation 1)  replaced by generation 2  +0 ~0 -1

    Plan: 1 to delete, 3 unchanged. Resources: 1 to destroy.
    ");
    forget_log(&repository);
    approved(&repository, "");
    assert_eq!(acts(&repository), ["destroy /app"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn env_and_run_use_current_generations_of_others() {
    let repository = chain(&[]);
    let seen = |expected: &str| {
        assert!(done(&repository, "env --match web").contains(expected));
        let run = done(
            &repository,
            "run --match web -- sh -c 'echo OF_APP=$OF_APP'",
        );
        assert!(run.contains(expected), "{run}");
    };
    seen("OF_APP=g1");
    approved(&repository, "--replace /app");
    seen("OF_APP=g2");
    // A recorded command is applied with it.
    done(&repository, "run --record=apply --match web -- true");
    assert_eq!(
        entry(&repository, "/web")["applied"]["generations"],
        json!({"/app": 2})
    );
}

#[test]
fn apply_keeps_an_old_generation_that_an_unchanged_stack_may_use() {
    let repository = chain(&["/web"]);
    let told = fails(
        &repository,
        &format!("apply {APPROVED} --replace /app"),
        4,
        "",
    );
    assert!(
        told.contains(
            "warning: `/app[generation 1]` is not destroyed: /web may still use it, and had no changes"
        ) && told.contains("stacks[\"/app\"].generation")
            && told.contains("orch state release /app"),
        "{told}"
    );
    let last = repository.orch("runs show last --format json").json();
    assert_eq!(last["status"], 4, "{last}");
    assert_eq!(acts(&repository), ["apply /app@2"]);
    assert_eq!(world(&repository), ["app", "app@2", "net", "web"]);
    let blocked = "/app[generation 1] blocked: /web may still use it, and has no changes";
    assert_eq!(planned(&repository, ""), [blocked]);
    fails(
        &repository,
        &format!("apply {APPROVED}"),
        4,
        "orch state release /app",
    );
    assert_eq!(acts(&repository), [""; 0]);
    // The user knows better.
    assert_eq!(
        done(&repository, "state release app"),
        "released the old generations of /app\n"
    );
    assert_eq!(planned(&repository, ""), ["/app[generation 1] delete"]);
    approved(&repository, "");
    assert_eq!(acts(&repository), ["destroy /app"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
    fails(
        &repository,
        "state release app",
        4,
        "`/app` has no old generation",
    );
}

#[test]
fn apply_destroys_an_old_generation_once_its_users_have_changed() {
    let repository = chain(&["/web"]);
    // In the same apply.
    want(&repository, "/web", "2");
    repository.commit();
    approved(&repository, "--replace /app");
    assert_eq!(
        acts(&repository),
        [
            "apply /app@2",
            "apply /web",
            "destroy /app@1".trim_end_matches("@1")
        ]
    );
    // In a later one.
    fails(
        &repository,
        &format!("apply {APPROVED} --replace /app"),
        4,
        "/web may still use it",
    );
    want(&repository, "/web", "3");
    repository.commit();
    forget_log(&repository);
    approved(&repository, "");
    assert_eq!(acts(&repository), ["apply /web", "destroy /app@2"]);
    // Or without the rest.
    fails(
        &repository,
        &format!("apply {APPROVED} --replace /app"),
        4,
        "/web may still use it",
    );
    want(&repository, "/web", "4");
    repository.commit();
    done(&repository, &format!("apply {APPROVED} --match web"));
    forget_log(&repository);
    approved(&repository, "");
    assert_eq!(acts(&repository), ["destroy /app@3"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn run_leaves_an_old_generation_only_with_the_new_number() {
    let repository = chain(&["/web"]);
    fails(
        &repository,
        &format!("apply {APPROVED} --replace /app"),
        4,
        "/web may still use it",
    );
    repository.write("/web/README.md", "other inputs");
    repository.commit();
    done(&repository, "run --record=apply --match web -- true");
    let blocked = "/app[generation 1] blocked: /web may still use it, and has no changes";
    assert_eq!(planned(&repository, ""), [blocked]);
    tell(&repository, "/web", &["/app"]);
    repository.commit();
    done(&repository, "run --record=apply --match web -- true");
    assert_eq!(planned(&repository, ""), ["/app[generation 1] delete"]);
}

#[test]
fn apply_keeps_an_old_generation_if_a_stack_behind_its_users_fails() {
    let many = |after: &str| format!("after = [\"{after}\"]\n  {MANY}");
    let files = prepared(&[
        ("/net", FIRST),
        ("/db", &many("/net")),
        ("/late", &many("/db")),
    ]);
    tell(&files, "/db", &["/net"]);
    tell(&files, "/late", &["/net"]);
    let repository = applied_of(files);
    want(&repository, "/db", "2");
    want(&repository, "/late", "2");
    repository.commit();
    assert_eq!(
        operations(&repository, "--replace /net"),
        ["~/net", "~/db", "~/late", "-/net[generation 1]"]
    );
    hook(&repository, "apply", "late", "exit 1\n");
    forget_log(&repository);
    for flags in ["", "--on-error continue"] {
        fails(
            &repository,
            &format!("apply {APPROVED} --replace /net {flags}"),
            1,
            "/late",
        );
        let acts = acts(&repository);
        assert!(
            !acts.iter().any(|act| act == "destroy /net"),
            "{flags}: {acts:?}"
        );
        assert!(world(&repository).contains(&"net".to_owned()));
    }
    unhook(&repository, "apply", "late");
    approved(&repository, "");
    assert_eq!(world(&repository), ["db", "late", "net@3"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn apply_destroys_an_old_generation_whose_last_user_was_found_to_be_destroyed() {
    let files = prepared(&[
        ("/net", FIRST),
        ("/app", &format!("after = [\"/net\"]\n  {FIRST}")),
    ]);
    tell(&files, "/app", &["/net"]);
    let repository = applied_of(files);
    hook(&repository, "destroy", "app", "rm \"$thing\"\nexit 1\n");
    let replace = format!("apply {APPROVED} --replace /net --replace /app");
    fails(&repository, &replace, 1, "/app");
    unhook(&repository, "destroy", "app");
    assert_eq!(world(&repository), ["app@2", "net", "net@2"]);
    assert_eq!(operations(&repository, ""), ["-/net[generation 1]"]);
    approved(&repository, "");
    assert_eq!(world(&repository), ["app@2", "net@2"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn apply_destroys_an_old_generation_that_a_stack_to_be_created_cannot_use() {
    let files = prepared(&[
        ("/db", FIRST),
        ("/app", &format!("after = [\"/db\"]\n  {FIRST}")),
        ("/web", &format!("after = [\"/app\"]\n  {MANY}")),
    ]);
    tell(&files, "/app", &["/db"]);
    tell(&files, "/web", &["/app", "/db"]);
    let repository = applied_of(files);
    done(&repository, "state taint /app");
    // /web is destroyed, and not created again, since /app is planned again in between and fails.
    hook(&repository, "plan", "app", "exit 1\n");
    let replace = format!("apply {APPROVED} --replace /db --replace /web");
    fails(&repository, &replace, 1, "/app");
    unhook(&repository, "plan", "app");
    assert!(!world(&repository).contains(&"web".to_owned()));
    approved(&repository, "");
    assert_eq!(world(&repository), ["app@2", "db@2", "web"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn apply_uses_no_generation_that_was_not_made() {
    let repository = chain(&[]);
    want(&repository, "/web", "2");
    repository.commit();
    hook(&repository, "apply", "app", "exit 1\n");
    fails(
        &repository,
        &format!("apply {APPROVED} --replace /app --on-error continue"),
        1,
        "it would use a generation of /app that was not created",
    );
    assert_eq!(acts(&repository), ["apply /app@2"]);
    unhook(&repository, "apply", "app");
    show_variable(&repository, "web", "OF_APP");
    approved(&repository, "");
    assert!(log(&repository).contains(&"apply sees g1".to_owned()));
}

#[test]
fn plan_keeps_a_generation_whose_tool_fails_and_goes_on() {
    let repository = chain(&[]);
    hook(
        &repository,
        "apply",
        "app",
        "echo half > \"$thing\"\nexit 1\n",
    );
    fails(
        &repository,
        &format!("apply {APPROVED} --replace /app"),
        1,
        "/app",
    );
    unhook(&repository, "apply", "app");
    hook(
        &repository,
        "plan",
        "app",
        "if [ \"$ORCH_GENERATION\" = 2 ]; then echo 'no way' >&2; exit 1; fi\n",
    );
    want(&repository, "/net", "2");
    repository.commit();
    forget_log(&repository);
    let told = fails(
        &repository,
        &format!("apply {APPROVED}"),
        4,
        "its tool failed to plan",
    );
    assert!(
        told.contains("`/app[generation 2]` is not destroyed"),
        "{told}"
    );
    assert_eq!(acts(&repository), ["apply /net"]);
    unhook(&repository, "plan", "app");
    approved(&repository, "");
    assert_eq!(world(&repository), ["app", "net", "web"]);
}

#[test]
fn validate_checks_the_stacks_whose_generations_are_used() {
    let named = |text: &str, place: &str| {
        let files = prepared(&[
            ("/net", MANY),
            ("/app", &format!("after = [\"/net\"]\n  {FIRST}")),
            ("/web", MANY),
        ]);
        files.write(
            &format!("{place}/generations.orch.hcl"),
            format!("orch {{\n  config {{\n    run {{\n      env {{\n        A = \"g${{{text}}}\"\n      }}\n    }}\n  }}\n}}\n"),
        );
        Repository::of(files)
    };
    done(&named("stacks[\"/net\"].generation", "/app"), "validate");
    done(&named("stacks[\"../net\"].generation", "/app"), "validate");
    let repository = named("stacks[\"/net\"].generation", "/web");
    assert_snapshot!(fails(&repository, "validate", 3, "after"), @r#"
    [stderr]
    error: `/web` uses the generation of `/net`, but does not run after it
     --> web/generations.orch.hcl:5:17
      |
    5 |         A = "g${stacks["/net"].generation}"
      |                 ^^^^^^^^^^^^^^^^^^^^^^^^^ an `after` is missing
      |
     ::: web/stack.orch.hcl:1:1
      |
    1 | stack {
      | ----- in this stack
      |
      = help: add `after = ["/net"]` to `/web`

    [exit status 3]
    "#);
    done(&repository, "state init");
    fails(&repository, "plan", 3, "add `after = [\"/net\"]` to `/web`");
    // Its number is there whatever runs first.
    done(&repository, "env --match web");
    for (text, problem) in [
        (
            "stacks[\"/app\"].generation",
            "write `orch.stack.generation`",
        ),
        ("stacks[\"/nett\"].generation", "did you mean `/net`?"),
        (
            "stacks[\"/net\"].outputs.id",
            "`outputs` of another stack is not available in `run.env`",
        ),
        ("stacks", "`stacks` needs the path of a stack"),
    ] {
        fails(&named(text, "/app"), "validate", 3, problem);
    }
    let repository = named("global.a", "/app");
    repository.write(
        "/globals.tm",
        "globals {\n  a = stacks[\"/net\"].generation\n}\n",
    );
    fails(&repository, "validate", 3, "`stacks` cannot be used here");
}

#[test]
fn conditions_see_generations_of_others() {
    let condition = |number: u32| {
        format!(
            "after = [\"/app\"]\n  {MANY}\n  lifecycle {{\n    precondition {{\n      condition = stacks[\"/app\"].generation == {number}\n      error_message = \"not {number}\"\n    }}\n  }}"
        )
    };
    let files = prepared(&[("/app", FIRST), ("/web", &condition(1))]);
    tell(&files, "/web", &["/app"]);
    let repository = applied_of(files);
    done(&repository, "plan");
    let block = |number: u32| format!("stack {{\n  {}\n}}\n", condition(number));
    repository.write("/web/stack.orch.hcl", block(2));
    repository.commit();
    fails(&repository, "plan", 1, "not 2");
    // It is decided when the generation has been made.
    approved(&repository, "--replace /app");
    assert_eq!(world(&repository), ["app@2", "web"]);
    fails(
        &repository,
        &format!("apply {APPROVED} --replace /app"),
        1,
        "not 2",
    );
    assert_eq!(world(&repository), ["app@2", "app@3", "web"]);
}

#[test]
fn generations_are_destroyed_with_their_recorded_numbers() {
    let repository = chain(&[]);
    tell(&repository, "/web", &["/net", "/app"]);
    repository.commit();
    approved(&repository, "");
    show_variable(&repository, "app", "OF_NET");
    hook(
        &repository,
        "destroy",
        "app",
        "echo \"destroy sees $OF_NET\" >> \"$outside/log\"\n",
    );
    approved(&repository, "--replace /app --replace /net");
    let steps = log(&repository);
    assert!(steps.contains(&"apply sees g2".to_owned()), "{steps:?}");
    assert!(steps.contains(&"destroy sees g1".to_owned()), "{steps:?}");
    assert_eq!(world(&repository), ["app@2", "net@2", "web"]);
}

/// Plans to replace `/app`, and exports that for workers.
fn exported(untold: &[&str]) -> Repository {
    let repository = chain(untold);
    done(
        &repository,
        "plan -o saved --replace /app --allow-destroy 9",
    );
    let export = "export make saved -o jobs.mk --work-order order.json --workers 2";
    done(&repository, export);
    forget_log(&repository);
    repository
}

const WORK: &str = "work --work-order order.json";

const FINISH: &str = "finish --work-order order.json";

#[test]
fn workers_move_others_to_the_new_generation_before_they_destroy_the_old_one() {
    let repository = exported(&[]);
    show_variable(&repository, "web", "OF_APP");
    done(&repository, WORK);
    let steps = log(&repository);
    let at = |step: &str| steps.iter().position(|it| it == step);
    assert!(at("apply /app@2") < at("plan sees g2"), "{steps:?}");
    assert!(at("plan sees g2") < at("destroy /app"), "{steps:?}");
    assert_eq!(world(&repository), ["app@2", "net", "web"]);
    let finished = done(&repository, FINISH);
    assert!(finished.contains("3 stacks done"), "{finished}");
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn workers_keep_an_old_generation_that_others_may_still_use() {
    let repository = exported(&["/web"]);
    let why = "/app[generation 1]: it must not be destroyed: /web may still use it";
    fails(&repository, WORK, 4, why);
    let left = "/app[generation 1]: not run";
    fails(&repository, FINISH, 1, left);
    assert_eq!(world(&repository), ["app", "app@2", "net", "web"]);
}

#[test]
fn workers_destroy_generations_that_an_earlier_apply_has_kept() {
    let repository = chain(&[]);
    let apply = format!("apply {APPROVED} --replace /app --match app");
    fails(&repository, &apply, 4, "is not destroyed");
    want(&repository, "/web", "2");
    repository.commit();
    done(&repository, "plan -o saved --allow-destroy 9");
    let export = "export make saved -o jobs.mk --work-order order.json --workers 2";
    done(&repository, export);
    done(&repository, WORK);
    assert_eq!(world(&repository), ["app@2", "net", "web"]);
    let finished = done(&repository, FINISH);
    assert!(finished.contains("2 stacks done"), "{finished}");
}

#[test]
fn apply_that_goes_on_moves_others_before_it_destroys_an_old_generation() {
    let repository = chain(&[]);
    done(
        &repository,
        "plan -o saved --replace /app --allow-destroy 9",
    );
    hook(&repository, "plan", "web", "kill -KILL $PPID\nexit 1\n");
    let killed = repository.command("apply saved").output().unwrap();
    assert_eq!(killed.status.code(), None);
    unhook(&repository, "plan", "web");
    show_variable(&repository, "web", "OF_APP");
    forget_log(&repository);
    done(&repository, "apply saved --resume");
    let steps = log(&repository);
    let at = |step: &str| steps.iter().position(|it| it == step);
    assert!(at("plan sees g2").is_some(), "{steps:?}");
    assert!(at("plan sees g2") < at("destroy /app"), "{steps:?}");
    assert_eq!(
        entry(&repository, "/web")["applied"]["generations"],
        json!({"/app": 2})
    );
}
