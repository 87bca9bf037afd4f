//! `create_before_destroy`: what is made anew is another generation, and the old one goes when nobody uses it.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::old_generations::tell;
use crate::removals::{
    APPROVED, acts, applied, applied_of, change_entry, checkouts, done, entry, fails, forget_log,
    hook, operations, planned, prepared, remove, unhook, want, world,
};
use crate::support::{Repository, forge_plan};

const FIRST: &str = "driver = \"many\"\n  lifecycle {\n    create_before_destroy = true\n  }";

const MANY: &str = "driver = \"many\"";

/// A change of a plan in a file.
type Change = fn(&mut Value);

/// A stack, one that is made first and runs after it, and one that runs after both.
fn chain() -> Repository {
    let files = prepared(&[
        ("/net", MANY),
        ("/app", &format!("after = [\"/net\"]\n  {FIRST}")),
        ("/web", &format!("after = [\"/app\"]\n  {MANY}")),
    ]);
    tell(&files, "/web", &["/app", "/net"]);
    applied_of(files)
}

fn approved(repository: &Repository, arguments: &str) -> String {
    done(repository, &format!("apply {APPROVED} {arguments}"))
}

/// Returns the generation of a stack recorded, and those that are not current.
fn generations(repository: &Repository, key: &str) -> (u64, Vec<u64>) {
    let entry = entry(repository, key);
    let number = |value: &Value| value["generation"].as_u64().unwrap_or(1);
    let deposed = entry["deposed"].as_array().cloned().unwrap_or_default();
    (number(&entry), deposed.iter().map(number).collect())
}

/// Replaces `/app`, which fails: a step of it does this instead, from now on.
#[track_caller]
fn replace_fails(repository: &Repository, step: &str, script: &str) {
    hook(repository, step, "app", script);
    let arguments = format!("apply {APPROVED} --replace /app");
    fails(repository, &arguments, 1, "/app");
}

#[test]
fn the_new_one_is_made_before_the_old_one_is_destroyed() {
    let repository = chain();
    let plan = done(&repository, "plan --replace /app");
    assert_snapshot!(plan, @"
      +/- /app  replace (generation 2 first)  --replace  +1 ~0 -1
        ? /web  known after /app

    Plan: 1 to replace, 1 known after apply, 1 unchanged. Resources: 1 to create, 1 to destroy.
    ");
    assert_eq!(
        operations(&repository, "--replace /app"),
        ["~/app", "-/app[generation 1]"]
    );
    let json = repository.orch("plan --format json --replace /app").json();
    assert_eq!(json["stacks"][0]["actions"], json!(["create", "delete"]));
    assert_eq!(json["stacks"][0]["new_generation"], 2);
    assert_eq!(json["stacks"][1]["path"], "/app[generation 1]");
    assert_eq!(json["stacks"][1]["directory"], "/app");
    assert_eq!(json["stacks"][1]["generation"], 1);
    assert_eq!(json["stacks"][1]["removed"], json!({"replaced": {"by": 2}}));
    forget_log(&repository);
    fails(
        &repository,
        "apply --auto-approve --replace /app",
        4,
        "destroy",
    );
    approved(&repository, "--replace /app");
    assert_eq!(acts(&repository), ["apply /app@2", "destroy /app"]);
    assert_eq!(world(&repository), ["app@2", "net", "web"]);
    assert_eq!(generations(&repository, "/app"), (2, vec![]));
    assert_eq!(entry(&repository, "/app")["backend"], "place app 2");
    assert_eq!(planned(&repository, ""), [""; 0]);
    // The next ones count on.
    approved(&repository, "--replace /app");
    assert_eq!(acts(&repository), ["apply /app@3", "destroy /app@2"]);
    want(&repository, "/app", "2");
    repository.commit();
    approved(&repository, "");
    assert_eq!(acts(&repository), ["apply /app@3"]);
    assert_eq!(checkouts(&repository), [""; 0]);
}

#[test]
fn it_extends_to_what_the_stack_runs_after() {
    let repository = chain();
    let rule = |key: &str| {
        let rule = &entry(&repository, key)["lifecycle"]["create_before_destroy"];
        (rule["value"].clone(), rule["from"].clone())
    };
    assert_eq!(rule("/app"), (json!(true), Value::Null));
    assert_eq!(rule("/net"), (json!(true), json!("/app")));
    assert_eq!(rule("/web"), (Value::Null, Value::Null));
    let why = done(&repository, "why net");
    assert!(
        why.contains("create_before_destroy = true, from /app, app/stack.orch.hcl:5"),
        "{why}"
    );
    let list = repository.orch("list --format json").json();
    let rules = list["stacks"].as_array().unwrap().iter();
    let mut rules = rules.filter(|stack| stack["path"] == "/net");
    assert_eq!(
        rules.next().unwrap()["lifecycle"]["create_before_destroy"],
        json!({"value": true, "file": "app/stack.orch.hcl", "line": 5, "from": "/app"})
    );
    // Both are made, each after what it runs after, and destroyed in the opposite order.
    assert_eq!(
        operations(&repository, "--replace /net --replace /app"),
        [
            "~/net",
            "~/app",
            "-/app[generation 1]",
            "-/net[generation 1]"
        ]
    );
    // What runs after them is destroyed first as ever.
    assert_eq!(
        operations(&repository, "--replace /net --replace /web"),
        ["~/net", "-/web", "~/web", "-/net[generation 1]"]
    );
    want(&repository, "/web", "2");
    repository.commit();
    forget_log(&repository);
    approved(&repository, "--replace /app --replace /net");
    assert_eq!(
        acts(&repository),
        [
            "apply /net@2",
            "apply /app@2",
            "apply /web",
            "destroy /app",
            "destroy /net"
        ]
    );
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn it_extends_as_recorded_too() {
    let repository = chain();
    // What ran after it is gone, and still has to go before it.
    remove(&repository, "app");
    let web = format!("stack {{\n  {MANY}\n}}\n");
    repository.write("/web/stack.orch.hcl", web);
    repository.git("rm -q web/generations.orch.hcl");
    repository.commit();
    // What ran after both may still use the old one, until it has changes.
    assert_eq!(
        planned(&repository, "--replace /net"),
        [
            "/app delete",
            "/net create delete",
            "/net[generation 1] blocked: /web may still use it, and has no changes"
        ]
    );
    want(&repository, "/web", "2");
    repository.commit();
    assert_eq!(
        planned(&repository, "--replace /net"),
        [
            "/app delete",
            "/net create delete",
            "/net[generation 1] delete",
            "/web update"
        ]
    );
    let mut order = operations(&repository, "--replace /net");
    order.retain(|operation| operation != "~/web");
    // `/app` stays until `/web` has left it.
    assert_eq!(order, ["~/net", "-/app", "-/net[generation 1]"]);
    approved(&repository, "");
    assert_eq!(
        planned(&repository, "--replace /net"),
        ["/net delete create"]
    );
}

#[test]
fn a_stack_that_says_the_opposite_is_an_error() {
    let repository = Repository::of(prepared(&[
        (
            "/net",
            "lifecycle {\n    create_before_destroy = false\n  }",
        ),
        ("/app", &format!("after = [\"/net\"]\n  {FIRST}")),
    ]));
    assert_snapshot!(fails(&repository, "validate", 3, "/app"), @"
    [stderr]
    error: `create_before_destroy` cannot be `false` in `/net`: `/app`, which runs after it, has `true`
     --> net/stack.orch.hcl:3:5
      |
    3 |     create_before_destroy = false
      |     ^^^^^^^^^^^^^^^^^^^^^ `false` here
      |
     ::: app/stack.orch.hcl:5:5
      |
    5 |     create_before_destroy = true
      |     --------------------- `true` here
      |
      = help: remove one of the two

    [exit status 3]
    ");
    // What a directory says gives way.
    let rule =
        "orch {\n  config {\n    lifecycle {\n      create_before_destroy = false\n    }\n  }\n}\n";
    repository.write("/net/stack.orch.hcl", "stack {\n}\n");
    repository.write("/net/rule.orch.hcl", rule);
    done(&repository, "validate");
    let why = done(&repository, "why net");
    assert!(
        why.contains("create_before_destroy = true, from /app"),
        "{why}"
    );
}

#[test]
fn each_generation_has_a_state_of_its_own() {
    let first = "lifecycle {\n    create_before_destroy = true\n  }";
    let repository = applied(&[
        (
            "/one",
            &format!("driver = \"placed\"\n  name = \"one\"\n  {first}"),
        ),
        ("/two", first),
        ("/three", FIRST),
    ]);
    assert_snapshot!(fails(&repository, "plan --replace /one -o plan", 4, "generation"), @r#"
    [stderr]
    error: generation 2 of `/one` would have the state of generation 1: place one
     --> one/stack.orch.hcl:5:5
      |
    5 |     create_before_destroy = true
      |     ^^^^^^^^^^^^^^^^^^^^^ the new one is created first
      |
      = note: both exist for a while
      = help: give each generation a state of its own, as with `TF_WORKSPACE = orch.stack.generation == 1 ? "default" : "g${orch.stack.generation}"` in `run.env`; see `orch help generations`

    [exit status 4]
    "#);
    assert!(!repository.path("/plan").exists());
    assert_snapshot!(fails(&repository, "plan --replace /two", 4, "generation"), @"
    [stderr]
    error: generation 2 of `/two` may have the state of generation 1
     --> two/stack.orch.hcl:3:5
      |
    3 |     create_before_destroy = true
      |     ^^^^^^^^^^^^^^^^^^^^^ the new one is created first
      |
      = note: the backend of its driver is unknown
      = help: add `backend` to the block of the driver; see `orch help drivers`

    [exit status 4]
    ");
    let exists = "echo '{\"exists\":true,\"change\":1}' > \"$ORCH_ANSWER\"\nexit 2\n";
    hook(&repository, "plan", "three", exists);
    assert_snapshot!(fails(&repository, "plan --replace /three", 4, "generation"), @"
    [stderr]
    error: generation 2 of `/three` exists already: place three 2
     --> three/stack.orch.hcl:4:5
      |
    4 |     create_before_destroy = true
      |     ^^^^^^^^^^^^^^^^^^^^^ the new one is created first
      |
      = note: the resources there are not recorded
      = help: destroy them, or give the generation another state

    [exit status 4]
    ");
    unhook(&repository, "plan", "three");
    change_entry(&repository, "/three", |entry| {
        entry["backend"] = Value::Null;
    });
    assert_snapshot!(fails(&repository, "plan --replace /three", 4, "generation"), @"
    [stderr]
    error: generation 2 of `/three` may have the state of generation 1
     --> three/stack.orch.hcl:4:5
      |
    4 |     create_before_destroy = true
      |     ^^^^^^^^^^^^^^^^^^^^^ the new one is created first
      |
      = note: the backend of generation 1 is not recorded
      = help: `orch apply --full` records it

    [exit status 4]
    ");
    assert_eq!(world(&repository), ["one", "three", "two"]);
}

#[test]
fn without_a_state_nothing_tells_generations_apart() {
    let repository = Repository::of(prepared(&[("/app", FIRST)]));
    std::fs::remove_file(repository.path("/state.orch.hcl")).unwrap();
    repository.commit();
    done(&repository, "apply --auto-approve");
    assert_snapshot!(fails(&repository, "plan --replace /app", 4, "/app"), @"
    [stderr]
    note: the project keeps no state: the tools of all selected stacks are asked, and stacks that were removed go unnoticed
    error: `/app` cannot be created before the old one is destroyed
     --> app/stack.orch.hcl:4:5
      |
    4 |     create_before_destroy = true
      |     ^^^^^^^^^^^^^^^^^^^^^ the new one is created first
      |
      = note: both exist for a while, and would share one state
      = help: configure a state; see `orch help state`

    [exit status 4]
    ");
}

#[test]
fn what_is_not_finished_goes_with_the_next_apply() {
    let repository = chain();
    replace_fails(&repository, "apply", "echo half > \"$thing\"\nexit 1\n");
    assert_eq!(acts(&repository), ["apply /app@2"]);
    assert_eq!(generations(&repository, "/app"), (1, vec![2]));
    assert_eq!(world(&repository), ["app", "app@2", "net", "web"]);
    unhook(&repository, "apply", "app");
    assert_snapshot!(done(&repository, "plan"), @"
      - /app  delete (unfinished generation 2)  it was never finished  +0 ~0 -1

    Plan: 1 to delete, 3 unchanged. Resources: 1 to destroy.
    ");
    assert_snapshot!(done(&repository, "plan --replace /app"), @"
      +/- /app  replace (generation 3 first)      --replace              +1 ~0 -1
        ? /web  known after /app
        - /app  delete (unfinished generation 2)  it was never finished  +0 ~0 -1

    Plan: 1 to replace, 1 to delete, 1 known after apply, 1 unchanged. Resources: 1 to create, 2 to destroy.
    ");
    approved(&repository, "--replace /app");
    assert_eq!(generations(&repository, "/app"), (3, vec![]));
    assert_eq!(world(&repository), ["app@3", "net", "web"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn an_old_one_that_is_left_goes_with_the_next_apply() {
    let repository = chain();
    replace_fails(&repository, "destroy", "exit 1\n");
    assert_eq!(generations(&repository, "/app"), (2, vec![1]));
    let left = ["/app[generation 1] delete"];
    assert_eq!(planned(&repository, ""), left);
    assert_snapshot!(done(&repository, "plan"), @"
      - /app  delete (old generation 1)  replaced by generation 2  +0 ~0 -1

    Plan: 1 to delete, 3 unchanged. Resources: 1 to destroy.
    ");
    unhook(&repository, "destroy", "app");
    // It is destroyed by the code of its commit, whatever has become of the stack.
    want(&repository, "/app", "2");
    let driver = "driver = \"lasting\"";
    repository.write(
        "/app/stack.orch.hcl",
        format!("stack {{\n  after = [\"/net\"]\n  {driver}\n}}\n"),
    );
    repository.commit();
    assert_eq!(
        planned(&repository, "--exclude app"),
        [""; 0],
        "what is left out stays"
    );
    forget_log(&repository);
    approved(&repository, "");
    assert_eq!(acts(&repository), ["apply /app@2", "destroy /app"]);
    assert_eq!(generations(&repository, "/app"), (2, vec![]));
    assert_eq!(world(&repository), ["app@2", "net", "web"]);
}

#[test]
fn nothing_is_destroyed_that_a_failed_stack_still_uses() {
    let repository = chain();
    want(&repository, "/web", "2");
    repository.commit();
    hook(&repository, "apply", "web", "exit 1\n");
    fails(
        &repository,
        &format!("apply {APPROVED} --replace /app"),
        1,
        "/web",
    );
    assert_eq!(acts(&repository), ["apply /app@2", "apply /web"]);
    assert_eq!(generations(&repository, "/app"), (2, vec![1]));
    unhook(&repository, "apply", "web");
    assert_eq!(
        operations(&repository, ""),
        ["~/web", "-/app[generation 1]"]
    );
    approved(&repository, "");
    assert_eq!(acts(&repository), ["apply /web", "destroy /app"]);
}

#[test]
fn what_a_stack_outside_of_the_plan_may_use_stays() {
    let repository = chain();
    let apply = format!("apply {APPROVED} --replace /app --match app");
    let kept = "`/app[generation 1]` is not destroyed: /web may still use it";
    fails(&repository, &apply, 4, kept);
    assert_eq!(acts(&repository), ["apply /app@2"]);
    assert_eq!(generations(&repository, "/app"), (2, vec![1]));
    approved(&repository, "");
    assert_eq!(acts(&repository), ["destroy /app"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn what_is_protected_is_not_made_anew_either() {
    let rule = "driver = \"many\"\n  lifecycle {\n    create_before_destroy = true\n    prevent_destroy = true\n  }";
    let repository = applied(&[("/app", rule)]);
    assert_snapshot!(fails(&repository, "plan --replace /app", 4, "protected"), @"
    [stderr]
    error: the plan would destroy `/app`, which is protected
      = note: --replace; protected by app/stack.orch.hcl:5
      = help: commit `prevent_destroy = false` for it first; `--skip-protected` plans the rest

    [exit status 4]
    ");
    let skipped = fails(&repository, "plan --replace /app --skip-protected", 0, "");
    assert!(!skipped.contains("generation"), "{skipped}");
    assert_eq!(
        operations(&repository, "--replace /app --skip-protected"),
        [""; 0]
    );
}

#[test]
fn every_cause_of_a_replacement_makes_a_generation() {
    let by = "driver = \"many\"\n  lifecycle {\n    create_before_destroy = true\n    replace_triggered_by = [\"/net\"]\n  }";
    let repository = applied(&[("/net", MANY), ("/app", by)]);
    // A trigger.
    want(&repository, "/net", "2");
    repository.commit();
    assert_eq!(
        operations(&repository, ""),
        ["~/net", "~/app", "-/app[generation 1]"]
    );
    approved(&repository, "");
    assert_eq!(
        acts(&repository),
        ["apply /net", "apply /app@2", "destroy /app"]
    );
    assert_eq!(planned(&repository, ""), [""; 0]);
    // Doubt.
    done(&repository, "state taint /app");
    approved(&repository, "");
    assert_eq!(acts(&repository), ["apply /app@3", "destroy /app@2"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
    // The driver.
    let asks = "if [ \"$1\" = plan ] && [ \"$ORCH_GENERATION\" = 3 ] && [ \"$ORCH_ACTION\" = update ]; then\n  echo '{\"action\":\"replace\",\"reason\":\"too old\"}' > \"$ORCH_ANSWER\"\n  exit 2\nfi\n";
    hook(&repository, "plan", "app", asks);
    want(&repository, "/app", "2");
    repository.commit();
    let plan = done(&repository, "plan");
    assert!(
        plan.contains("/app  replace (generation 4 first)  too old"),
        "{plan}"
    );
    approved(&repository, "");
    assert_eq!(acts(&repository), ["apply /app@4", "destroy /app@3"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn a_plan_in_a_file_is_carried_out_as_it_was_shown() {
    let repository = chain();
    done(&repository, "plan --replace /app -o plan --allow-destroy 1");
    let shown = done(&repository, "show plan");
    assert!(shown.contains("replace (generation 2 first)"), "{shown}");
    forget_log(&repository);
    hook(&repository, "destroy", "app", "exit 1\n");
    fails(&repository, "apply plan", 1, "/app[generation 1]");
    assert_eq!(acts(&repository), ["apply /app@2", "destroy /app"]);
    fails(&repository, "apply plan", 4, "was already started");
    unhook(&repository, "destroy", "app");
    done(&repository, "apply plan --resume");
    assert_eq!(acts(&repository), ["destroy /app"]);
    assert_eq!(generations(&repository, "/app"), (2, vec![]));
    let again = done(&repository, "apply plan --resume");
    assert!(again.contains("nothing to do"), "{again}");
    assert_eq!(acts(&repository), [""; 0]);
    // Somebody else has made another generation meanwhile.
    done(&repository, "plan --replace /app -o plan --allow-destroy 1");
    approved(&repository, "--replace /app");
    forget_log(&repository);
    fails(&repository, "apply plan", 4, "no longer holds");
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn a_file_makes_and_destroys_only_what_it_may() {
    let repository = chain();
    repository.write("/.gitignore", "/saved\n/bad\n.orch\n");
    repository.commit();
    // There are two generations already.
    replace_fails(&repository, "destroy", "exit 1\n");
    unhook(&repository, "destroy", "app");
    done(
        &repository,
        "plan --replace /app -o saved --allow-destroy 9",
    );
    forget_log(&repository);
    let saved = std::fs::read(repository.path("/saved")).unwrap();
    let cases: [(&str, Change); 5] = [
        ("its record has changed", |saved| {
            saved["plan"]["entries"][0]["generation"] = 2.into();
        }),
        ("its record has changed", |saved| {
            saved["plan"]["entries"][0]["generation"] = 1.into();
        }),
        ("of another generation", |saved| {
            saved["plan"]["entries"][1]["removed"] = json!({"commit": "0".repeat(40)});
        }),
        ("of another generation", |saved| {
            saved["plan"]["entries"][3]["removed"] = json!({"replaced": {"by": 2}});
        }),
        ("operations", |saved| {
            saved["plan"]["entries"][0]["generation"] = Value::Null;
        }),
    ];
    for (said, change) in cases {
        repository.write("/bad", forge_plan(&saved, |plan, _| change(plan)));
        let output = repository.orch("apply bad --auto-approve");
        assert!(output.stderr.contains(said), "{said}: {output}");
        assert_ne!(output.code(), 0, "{output}");
        assert_eq!(acts(&repository), [""; 0]);
    }
    // Without the replacement, what it would have destroyed is current.
    let alone = forge_plan(&saved, |plan, _| {
        let is_app = |path: &Value| path == "/app";
        let entries = plan["plan"]["entries"].as_array_mut().unwrap();
        entries.retain(|entry| !is_app(&entry["stack"]));
        let operations = plan["plan"]["operations"].as_array_mut().unwrap();
        operations.retain(|it| !is_app(&it["stack"]));
        let stacks = plan["stacks"].as_array_mut().unwrap();
        stacks.retain(|it| !is_app(&it["stack"]));
    });
    repository.write("/bad", alone);
    fails(
        &repository,
        "apply bad --auto-approve",
        4,
        "/app[generation 2]: it is in the project again",
    );
    done(&repository, "apply saved");
    assert_eq!(generations(&repository, "/app"), (3, vec![]));
}

#[test]
fn a_stack_that_has_moved_is_destroyed_where_it_was() {
    let named = format!("name = \"net\"\n  {FIRST}");
    let files = prepared(&[("/net", &named), ("/other", "")]);
    files.write("/net/object", "net");
    let repository = applied_of(files);
    repository.git("mv net platform");
    let moved = "moved {\n  from = \"/net\"\n  to   = \"/platform\"\n}\n";
    repository.write("/moved.orch.hcl", moved);
    repository.commit();
    assert_eq!(
        planned(&repository, "--replace /platform"),
        [
            "/platform = /net create delete",
            "/platform[generation 1] delete"
        ]
    );
    forget_log(&repository);
    approved(&repository, "--replace /platform");
    assert_eq!(acts(&repository), ["apply /platform@2", "destroy /net"]);
    assert_eq!(world(&repository), ["net@2", "other"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn what_was_never_finished_is_held_by_nobody() {
    let repository = chain();
    replace_fails(&repository, "apply", "echo half > \"$thing\"\nexit 1\n");
    unhook(&repository, "apply", "app");
    assert_eq!(
        planned(&repository, "--match app"),
        ["/app[generation 2] delete"]
    );
    approved(&repository, "--match app");
    assert_eq!(world(&repository), ["app", "net", "web"]);
    // A forgotten stack leaves what it has made.
    replace_fails(&repository, "destroy", "exit 1\n");
    let said = done(&repository, "state forget /app");
    assert!(
        said.contains(
            "generation 1 of `/app` is not destroyed either, whose state is in `place app 1`"
        ),
        "{said}"
    );
}

#[test]
fn what_is_current_is_not_destroyed_whatever_the_record_lists() {
    let repository = chain();
    approved(&repository, "--replace /app");
    let commit = entry(&repository, "/app")["applied"]["commit"].clone();
    change_entry(&repository, "/app", |entry| {
        let listed = |number: u32| json!({"generation": number, "commit": commit, "backend": format!("place app {number}"), "driver": "many"});
        entry["deposed"] = json!([listed(2), listed(1)]);
    });
    // Nothing is left of the other one.
    assert_eq!(planned(&repository, ""), ["/app[generation 1] forget"]);
    forget_log(&repository);
    approved(&repository, "");
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(world(&repository), ["app@2", "net", "web"]);
}

#[test]
fn a_run_that_is_killed_leaves_one_generation_after_the_next() {
    let kill = "kill -9 $PPID\nkill -9 $$\n";
    for (step, name) in [
        ("apply", "app"),
        ("apply", "web"),
        ("destroy", "app"),
        ("plan", "web"),
    ] {
        let repository = chain();
        want(&repository, "/web", "2");
        repository.commit();
        hook(&repository, step, name, kill);
        _ = repository.orch(&format!("apply {APPROVED} --replace /app"));
        unhook(&repository, step, name);
        let next = approved(&repository, "");
        assert_eq!(planned(&repository, ""), [""; 0], "{step} {name}: {next}");
        let apps: Vec<String> = world(&repository);
        let apps = apps.iter().filter(|name| name.starts_with("app")).count();
        assert_eq!(apps, 1, "{step} {name}: {next}");
        let (current, deposed) = generations(&repository, "/app");
        assert_eq!(deposed, [0; 0]);
        let thing = if current == 1 {
            "app".to_owned()
        } else {
            format!("app@{current}")
        };
        assert!(world(&repository).contains(&thing), "{step} {name}");
    }
}

#[test]
fn all_generations_of_a_removed_stack_go() {
    let repository = chain();
    replace_fails(&repository, "destroy", "exit 1\n");
    forget_log(&repository);
    remove(&repository, "app web");
    assert_eq!(
        planned(&repository, ""),
        ["/app delete", "/app[generation 1] delete", "/web delete"]
    );
    // One of them cannot be destroyed: it stays recorded.
    hook(
        &repository,
        "destroy",
        "app",
        "[ \"$ORCH_GENERATION\" = 2 ] || exit 1\n",
    );
    fails(&repository, &format!("apply {APPROVED}"), 1, "/app");
    unhook(&repository, "destroy", "app");
    approved(&repository, "");
    assert_eq!(world(&repository), ["net"]);
    assert_eq!(entry(&repository, "/app"), Value::Null);
}

#[test]
fn commands_and_variables_are_those_of_the_current_generation() {
    let repository = chain();
    let env = "orch {\n  config {\n    run {\n      env {\n        PLACE = \"g${orch.stack.generation}\"\n      }\n    }\n  }\n}\n";
    repository.write("/app/env.orch.hcl", env);
    repository.commit();
    let place = |repository: &Repository| {
        let output = repository.orch("run --quiet --match app -- sh -c 'echo at $PLACE'");
        output.stdout.trim().to_owned()
    };
    approved(&repository, "");
    assert!(place(&repository).contains("at g1"));
    approved(&repository, "--replace /app");
    assert!(place(&repository).contains("at g2"));
    assert!(done(&repository, "env --match app").contains("PLACE=g2"));
    let eval = done(&repository, "eval --stack app orch.stack.generation");
    assert!(eval.contains('2'), "{eval}");
    // No command runs for a generation that is not known.
    std::fs::rename(
        repository.path("/.orch/state"),
        repository.path("/.orch/gone"),
    )
    .unwrap();
    fails(&repository, "run --match app -- true", 4, "no state");
    done(&repository, "run --match net -- true");
}

#[test]
fn a_directory_cannot_be_called_like_a_generation() {
    let repository = Repository::of(prepared(&[("/app[generation 1]", "")]));
    assert_snapshot!(fails(&repository, "list", 3, "generation"), @"
    [stderr]
    error: the directory name `/app[generation 1]` is reserved for old generations of stacks
     --> app[generation 1]/stack.orch.hcl:1:1
      |
    1 | stack {
      | ^^^^^ a stack cannot have this name
      |
      = help: rename the directory

    [exit status 3]
    ");
}
