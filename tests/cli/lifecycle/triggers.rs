//! `replace_triggered_by`: what replaces a stack when others change.

use std::fs;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::Value;

use crate::removals::{
    APPROVED, STATE, acts, applied, change_entry, declare, done, entry, fails, forget_log, hook,
    operations, planned, prepared, remove, unhook, want, world,
};
use crate::support::{Repository, Sandbox, skipped};

/// The lines of a stack that others replace when they change.
fn by(triggers: &str) -> String {
    format!("lifecycle {{\n    replace_triggered_by = [{triggers}]\n  }}")
}

fn change(repository: &Repository, path: &str, wanted: &str) {
    want(repository, path, wanted);
    repository.commit();
}

#[test]
fn triggers_replace_on_update() {
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
fn triggers_replace_along_a_chain() {
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
fn triggers_ignore_creates_and_destroys() {
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
fn triggers_survive_a_partial_apply() {
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

/// Changes `/net` with an attempt that then fails.
fn fail_after_update(repository: &Repository) {
    change(repository, "/net", "2");
    let update = "cat \"$ORCH_PLAN_FILE\" > \"$thing\"\nexit 1\n";
    hook(repository, "apply", "net", update);
    fails(repository, "apply --auto-approve --match net", 1, "/net");
    unhook(repository, "apply", "net");
}

/// The failed attempt may have changed the stack, and the next one finds nothing left to do.
#[test]
fn triggers_survive_a_failed_or_killed_update() {
    for end in ["exit 1", "kill -KILL $PPID\nexit 1"] {
        let repository = applied(&[("/net", ""), ("/app", &by("\"/net\""))]);
        change(&repository, "/net", "2");
        let update = format!("cat \"$ORCH_PLAN_FILE\" > \"$thing\"\n{end}\n");
        hook(&repository, "apply", "net", &update);
        let apply = format!("apply {APPROVED}");
        let mut failed = repository.command(&format!("{apply} --match net"));
        assert!(!failed.output().unwrap().status.success());
        unhook(&repository, "apply", "net");
        acts(&repository);
        assert_eq!(planned(&repository, ""), ["/app delete create"], "{end}");
        let text = done(&repository, "plan");
        let why = "/app  replace  /net may have changed since it was applied";
        assert!(text.contains(why), "{text}");
        // Also if only the other one is applied first.
        done(&repository, &format!("{apply} --match net"));
        assert_eq!(planned(&repository, ""), ["/app delete create"], "{end}");
        done(&repository, &apply);
        assert_eq!(acts(&repository), ["destroy /app", "apply /app"]);
        assert_eq!(planned(&repository, ""), [""; 0]);
    }
}

/// The last job records the stack that changed, after the other one was replaced.
#[test]
fn triggers_do_not_fire_twice_after_jobs() {
    let repository = applied(&[("/net", ""), ("/app", &by("\"/net\""))]);
    fail_after_update(&repository);
    acts(&repository);
    done(&repository, "plan -o saved --allow-destroy 9");
    done(
        &repository,
        "export make saved -o jobs.mk --work-order order.json",
    );
    let order = std::fs::read(repository.path("/order.json")).unwrap();
    let order: Value = serde_json::from_slice(&order).unwrap();
    for job in order["jobs"].as_array().unwrap() {
        let id = job["id"].as_str().unwrap();
        done(&repository, &format!("job {id} --work-order order.json"));
    }
    done(&repository, "finish --work-order order.json");
    assert_eq!(acts(&repository), ["destroy /app", "apply /app"]);
    assert!(entry(&repository, "/net")["changed"].is_u64());
    assert_eq!(planned(&repository, ""), [""; 0]);
}

/// It was applied after the attempt that may have changed the other one.
#[test]
fn triggers_do_not_fire_for_an_attempt_before_the_last_apply() {
    let repository = applied(&[("/net", ""), ("/app", &by("\"/net\""))]);
    fail_after_update(&repository);
    done(&repository, &format!("apply {APPROVED} --match app"));
    acts(&repository);
    assert_eq!(planned(&repository, ""), [""; 0]);
    change(&repository, "/app", "2");
    assert_eq!(planned(&repository, ""), ["/app update"]);
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), ["apply /app"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn triggers_survive_an_adoption() {
    let repository = applied(&[("/net", ""), ("/app", &by("\"/net\""))]);
    fail_after_update(&repository);
    done(&repository, "state adopt --match net");
    assert_eq!(planned(&repository, ""), ["/app delete create"]);
    // Its tool finds no changes, but it has not been replaced.
    done(&repository, "state adopt");
    assert_eq!(planned(&repository, ""), ["/app delete create"]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn triggers_on_outputs_survive_an_adoption() {
    let repository = applied(&[("/net", ""), ("/app", &by("\"/net#id\""))]);
    change(&repository, "/net", "2");
    done(&repository, "apply --auto-approve --match net");
    done(&repository, "state adopt");
    assert_eq!(planned(&repository, ""), ["/app delete create"]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(planned(&repository, ""), [""; 0]);
}

/// An attempt may have changed the output, which is unknown since.
#[test]
fn triggers_on_outputs_survive_a_killed_update() {
    let repository = applied(&[("/net", ""), ("/app", &by("\"/net#id\""))]);
    change(&repository, "/net", "2");
    let update = "cat \"$ORCH_PLAN_FILE\" > \"$thing\"\nkill -KILL $PPID\nexit 1\n";
    hook(&repository, "apply", "net", update);
    let killed = repository.command("apply --auto-approve --match net");
    assert_eq!({ killed }.output().unwrap().status.code(), None);
    unhook(&repository, "apply", "net");
    assert_eq!(planned(&repository, ""), ["/app delete create"]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn triggers_survive_a_failed_replace() {
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
fn triggers_on_outputs_need_a_different_value() {
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
    // Another update changes it: nothing is destroyed that was not allowed.
    unhook(&repository, "outputs", "net");
    change(&repository, "/net", "3");
    let told = fails(
        &repository,
        "apply --auto-approve",
        1,
        "it must be replaced, since /net#id has changed: make a new plan",
    );
    assert!(told.contains("`orch plan` shows what is left"), "{told}");
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
fn triggers_fire_after_updates_by_outputs() {
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
        "it must be replaced, since /net has changed",
    );
    assert_eq!(acts(&repository), ["apply /base", "apply /net"]);
    assert_eq!(planned(&repository, ""), ["/app delete create"]);
}

#[test]
fn triggers_fire_on_files_of_stacks_without_tool() {
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
fn triggers_do_not_fire_when_added() {
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
fn triggers_respect_protection() {
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
fn triggers_may_name_one_or_all_instances() {
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
fn triggers_fire_after_recorded_runs() {
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

#[test]
fn plan_reports_a_trigger_on_an_output_that_does_not_exist() {
    let repository = applied(&[
        ("/net", ""),
        ("/app", &by("\"/net#idd\"")),
        ("/late", &by("\"/placed#id\"")),
        ("/placed", "driver = \"placed\""),
    ]);
    let warnings = done(&repository, "plan");
    assert_snapshot!(warnings, @r#"
    Plan: nothing to do. 4 unchanged.
    [stderr]
    warning: `/net` has no output `idd`
     --> app/stack.orch.hcl:3:29
      |
    3 |     replace_triggered_by = ["/net#idd"]
      |                             ^^^^^^^^^^ it has no such output, so this replaces nothing
      |
      = note: its outputs are `id`
      = help: did you mean `id`?

    warning: the outputs of `/placed` are unknown
     --> late/stack.orch.hcl:3:29
      |
    3 |     replace_triggered_by = ["/placed#id"]
      |                             ^^^^^^^^^^^^ its driver `placed` has no `outputs`, so this replaces nothing
    "#);
    // It is about what is planned.
    let other = done(&repository, "plan --match net");
    assert!(!other.contains("warning"), "{other}");
}

/// The same stacks in a project without a state, all applied.
fn stateless(stacks: &[(&str, &str)]) -> Repository {
    let repository = Repository::of(prepared(stacks));
    fs::remove_file(repository.path("/state.orch.hcl")).unwrap();
    repository.commit();
    done(&repository, "apply --auto-approve");
    forget_log(&repository);
    repository
}

#[test]
fn triggers_without_state_fire_within_a_plan() {
    let repository = stateless(&[
        ("/net", ""),
        ("/app", &by("\"/net\"")),
        ("/web", &by("\"/app\"")),
    ]);
    assert_eq!(planned(&repository, ""), [""; 0]);
    change(&repository, "/net", "2");
    assert_eq!(
        planned(&repository, ""),
        ["/app delete create", "/net update", "/web delete create"]
    );
    fails(&repository, "apply --auto-approve", 4, "destroy");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(
        acts(&repository),
        [
            "destroy /web",
            "destroy /app",
            "apply /net",
            "apply /app",
            "apply /web"
        ]
    );
    assert_eq!(planned(&repository, ""), [""; 0]);
    // What does not exist is created.
    fs::remove_file(repository.outside().join("world/app")).unwrap();
    change(&repository, "/net", "3");
    assert_eq!(planned(&repository, ""), ["/app create", "/net update"]);
}

#[test]
fn triggers_without_state_that_are_lost_are_reported() {
    let repository = stateless(&[("/net", ""), ("/app", &by("\"/net\""))]);
    let lost = "warning: `/app` was not replaced although /net has changed, and without a state the next plan does not know that";
    change(&repository, "/net", "2");
    hook(&repository, "destroy", "app", "exit 1\n");
    let told = fails(&repository, &format!("apply {APPROVED}"), 1, lost);
    assert!(told.contains("run `orch apply --replace /app`"), "{told}");
    unhook(&repository, "destroy", "app");
    assert_eq!(planned(&repository, ""), [""; 0]);
    forget_log(&repository);
    done(&repository, &format!("apply {APPROVED} --replace /app"));
    assert_eq!(acts(&repository), ["destroy /app", "apply /app"]);
    // It is not part of the plan.
    change(&repository, "/net", "3");
    let told = done(&repository, "apply --auto-approve --match net");
    assert!(told.contains(lost), "{told}");
    // Nothing is lost if it is made anew by the next plan anyway, or nothing has changed.
    change(&repository, "/net", "4");
    hook(&repository, "apply", "app", "exit 1\n");
    let told = fails(&repository, &format!("apply {APPROVED}"), 1, "/app");
    assert!(!told.contains("cannot know"), "{told}");
    unhook(&repository, "apply", "app");
    assert_eq!(planned(&repository, ""), ["/app create"]);
    done(&repository, "apply --auto-approve");
    change(&repository, "/net", "5");
    hook(&repository, "apply", "net", "exit 1\n");
    let told = fails(
        &repository,
        &format!("apply {APPROVED} --on-error skip-dependents"),
        1,
        "/net",
    );
    assert!(!told.contains("cannot know"), "{told}");
    assert_eq!(world(&repository), ["net"]);
}

/// A project with `/db` and `/app` after it, which `/db#password` replaces, both of real Terraform and applied; nothing
/// where there is no Terraform.
fn with_password(state: bool) -> Option<Repository> {
    if Command::new("terraform").arg("version").output().is_err() {
        skipped("there is no terraform on the PATH");
        return None;
    }
    let sandbox = Sandbox::new("");
    if state {
        sandbox.write("/state.orch.hcl", STATE);
    }
    sandbox.write("/.gitignore", "*.tfstate*\n.terraform*\n");
    declare(&sandbox, "/db", "");
    declare(&sandbox, "/app", &by("\"/db#password\""));
    sandbox.write("/db/main.tf", database("1", "hunter2-swordfish"));
    sandbox.write("/app/main.tf", "resource \"terraform_data\" \"a\" {\n}\n");
    let repository = Repository::of(sandbox);
    if state {
        done(&repository, "state init");
    }
    done(&repository, &format!("apply {APPROVED}"));
    Some(repository)
}

fn database(size: &str, password: &str) -> String {
    format!(
        "resource \"terraform_data\" \"a\" {{\n  input = \"{size}\"\n}}\n\noutput \"password\" {{\n  value     = \"{password}\"\n  sensitive = true\n}}\n"
    )
}

#[test]
fn triggers_on_sensitive_outputs_need_a_different_value() {
    let Some(repository) = with_password(true) else {
        return;
    };
    let recorded = |repository: &Repository| {
        let password = entry(repository, "/db")["outputs"]["password"].clone();
        password.as_str().unwrap().to_owned()
    };
    let first = recorded(&repository);
    assert!(first.starts_with("bcrypt:"), "{first}");
    repository.write("/db/main.tf", database("2", "hunter2-swordfish"));
    repository.commit();
    done(&repository, "apply --auto-approve");
    assert_eq!(recorded(&repository), first);
    assert_eq!(planned(&repository, ""), [""; 0]);
    repository.write("/db/main.tf", database("2", "correct-horse"));
    repository.commit();
    done(&repository, &format!("apply {APPROVED} --match db"));
    assert_ne!(recorded(&repository), first);
    let plan = done(&repository, "plan");
    assert!(
        plan.contains("/app  replace  /db#password has changed since it was applied"),
        "{plan}"
    );
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(planned(&repository, ""), [""; 0]);
    // A plan in a file says as little.
    repository.write("/db/main.tf", database("3", "correct-horse"));
    repository.commit();
    done(&repository, "plan -o ../saved");
    let saved = fs::read(repository.outside().join("saved")).unwrap();
    let plan_json = String::from_utf8_lossy(&saved);
    let end = plan_json.find("\"outputs_before\"").unwrap();
    assert!(!plan_json[..end].contains("correct-horse"));
    done(&repository, "apply ../saved");
    assert_eq!(planned(&repository, ""), [""; 0]);
}

/// After `orch run`, the outputs are unknown until a plan reads them.
#[test]
fn triggers_on_outputs_survive_a_run() {
    let Some(repository) = with_password(true) else {
        return;
    };
    let run = "run -q --match db -- terraform apply -auto-approve -input=false";
    let password = |password: &str| {
        repository.write("/db/main.tf", database("1", password));
        repository.commit();
        done(&repository, run);
    };
    password("correct-horse");
    let plan = done(&repository, "plan");
    assert!(
        plan.contains("/app  replace  /db#password has changed since it was applied"),
        "{plan}"
    );
    // Without `/db`, that stays unknown.
    let plan = done(&repository, "plan --match app");
    assert!(
        plan.contains("/app  replace  /db#password may have changed since it was applied"),
        "{plan}"
    );
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(planned(&repository, ""), [""; 0]);
    // It has the same value.
    done(&repository, run);
    assert_eq!(planned(&repository, ""), [""; 0]);
    done(&repository, "apply --auto-approve");
    assert_eq!(planned(&repository, ""), [""; 0]);
    // A plan that was made before does not know it.
    repository.write("/db/main.tf", database("2", "correct-horse"));
    repository.commit();
    done(&repository, "plan -o ../saved --allow-destroy 9");
    done(&repository, run);
    let unknown = "/db#password may have changed, and a change replaces this stack";
    fails(&repository, "apply ../saved", 1, unknown);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn triggers_ignore_damaged_digests() {
    let Some(repository) = with_password(true) else {
        return;
    };
    change_entry(&repository, "/db", |db| {
        db["outputs"]["password"] = "bcrypt:$2b$10$damaged".into();
    });
    change_entry(&repository, "/app", |app| {
        app["applied"]["triggered_by"]["/db#password"] = "bcrypt:$2b$10$damaged".into();
    });
    repository.write("/db/main.tf", database("2", "hunter2-swordfish"));
    repository.commit();
    let damaged = "the recorded digest of the sensitive output `password` is damaged";
    fails(&repository, "plan -o ../saved", 5, damaged);
    fails(&repository, &format!("apply {APPROVED}"), 5, damaged);
    assert_eq!(planned(&repository, ""), ["/db update"]);
}

#[test]
fn triggers_without_state_compare_sensitive_outputs_within_an_apply() {
    let Some(repository) = with_password(false) else {
        return;
    };
    repository.write("/db/main.tf", database("2", "hunter2-swordfish"));
    repository.commit();
    done(&repository, "apply --auto-approve");
    repository.write("/db/main.tf", database("3", "correct-horse"));
    repository.commit();
    fails(
        &repository,
        "apply --auto-approve",
        1,
        "`/app` was not replaced although /db#password has changed",
    );
}
