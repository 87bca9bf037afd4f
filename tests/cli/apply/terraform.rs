//! Applies of real Terraform, whose only provider is built in.

use std::process::Command;

use serde_json::Value;

use super::{STATE, assert_tidy, done, entry, fails};
use crate::policies::command_graph::obeys_the_schema;
use crate::support::{Repository, Sandbox, skipped};

/// A resource whose input is a number, and an output of it.
const NET: &str = r#"variable "x" {
  default = 1
}

resource "terraform_data" "a" {
  input = var.x
}

output "x" {
  value = terraform_data.a.output
}
"#;

/// A stack that reads that output.
const APP: &str = r#"data "terraform_remote_state" "net" {
  backend = "local"
  config = {
    path = "../net/terraform.tfstate"
  }
}

resource "terraform_data" "b" {
  input = data.terraform_remote_state.net.outputs.x
}
"#;

/// A project with both, nothing of which exists; nothing where there is no Terraform.
pub(super) fn project(state: &str) -> Option<Repository> {
    let version = Command::new("terraform").arg("version").output();
    if version.is_err() {
        skipped("there is no terraform on the PATH");
        return None;
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", state);
    sandbox.write("/.gitignore", "*.tfstate*\n.terraform*\n");
    sandbox.write("/net/stack.orch.hcl", "stack {\n}\n");
    sandbox.write("/net/main.tf", NET);
    let after = "stack {\n  after = [\"/net\"]\n}\n";
    sandbox.write("/app/stack.orch.hcl", after);
    sandbox.write("/app/main.tf", APP);
    let repository = Repository::of(sandbox);
    if !state.is_empty() {
        done(&repository, "state init");
    }
    Some(repository)
}

/// Returns the input of the only resource of a stack, as Terraform has it.
fn input(sandbox: &Sandbox, stack: &str) -> Value {
    let state = sandbox.read(&format!("{stack}/terraform.tfstate"));
    let state: Value = serde_json::from_str(&state).unwrap_or_default();
    let resources = state["resources"].as_array().cloned().unwrap_or_default();
    let mut managed = resources.iter().filter(|it| it["mode"] == "managed");
    let instance = managed.next().map(|it| &it["instances"][0]["attributes"]);
    instance.map_or(Value::Null, |it| it["input"]["value"].clone())
}

/// Another default for the variable, committed.
fn change(repository: &Repository, x: u32) {
    let main = NET.replace("default = 1", &format!("default = {x}"));
    repository.write("/net/main.tf", main);
    repository.commit();
}

#[test]
fn apply_runs_terraform_stacks_that_use_each_other() {
    let Some(repository) = project(STATE) else {
        return;
    };
    // `/app` cannot be planned before `/net` exists.
    let plan = done(&repository, "plan -o ../saved");
    let failed =
        "? /app  known after /net; cannot be planned yet: Error: Unable to find remote state";
    assert!(plan.contains(failed), "{plan}");
    done(&repository, "apply ../saved");
    assert_eq!(input(&repository, "/app"), 1);
    assert_tidy(&repository);
    let net = entry(&repository, "/net");
    assert_eq!(net["driver"], "terraform");
    assert!(
        net["backend"].as_str().unwrap().starts_with("local "),
        "{net}"
    );
    assert!(net["outputs"]["x"].is_string(), "{net}");
    assert!(done(&repository, "plan").contains("2 unchanged"));
    // The value comes through.
    change(&repository, 2);
    let plan = done(&repository, "plan -o ../saved");
    assert!(plan.contains("? /app  known after /net"), "{plan}");
    done(&repository, "apply ../saved");
    assert_eq!(
        (input(&repository, "/net"), input(&repository, "/app")),
        (2.into(), 2.into())
    );
    // Nothing of the outputs changes: `/app` is left alone.
    repository.write(
        "/net/more.tf",
        "resource \"terraform_data\" \"more\" {\n}\n",
    );
    repository.commit();
    done(&repository, "plan -o ../saved");
    let said = done(&repository, "apply ../saved");
    assert!(said.contains("/net | "), "{said}");
    assert!(!said.contains("/app | "), "{said}");
    done(&repository, "destroy --auto-approve --allow-destroy=2");
    assert_eq!(input(&repository, "/net"), Value::Null);
    assert_eq!(entry(&repository, "/net"), Value::Null);
}

#[test]
fn apply_runs_exactly_the_shown_terraform_plan() {
    let Some(repository) = project("") else {
        return;
    };
    done(&repository, "plan --match net -o ../saved -- -var x=7");
    done(&repository, "apply ../saved");
    assert_eq!(input(&repository, "/net"), "7");
}

#[test]
fn apply_of_a_file_brings_upstream_and_downstream_forward_in_one_go() {
    let Some(repository) = project(STATE) else {
        return;
    };
    done(&repository, "apply --auto-approve");
    // `/app` has work of its own, planned with what `/net` has now.
    change(&repository, 2);
    let app = format!("{APP}\nresource \"terraform_data\" \"c\" {{\n  input = \"own\"\n}}\n");
    repository.write("/app/main.tf", app);
    repository.commit();
    let plan = done(&repository, "plan -o ../saved");
    assert!(
        plan.contains("app/main.tf differs; planned again after /net"),
        "{plan}"
    );
    done(&repository, "apply ../saved");
    assert_eq!(
        (input(&repository, "/net"), input(&repository, "/app")),
        (2.into(), 2.into())
    );
    assert!(done(&repository, "plan").contains("2 unchanged"));
}

/// Applies `/net` without `orch`.
fn apply_by_hand(repository: &Repository) {
    let mut by_hand = Command::new("terraform");
    repository.isolate(&mut by_hand);
    by_hand.args(["apply", "-auto-approve", "-no-color"]);
    by_hand.current_dir(repository.path("/net"));
    assert!(by_hand.output().unwrap().status.success());
}

/// Then Terraform finds nothing to do there, but its output differs.
#[test]
fn plan_shows_the_users_of_a_terraform_stack_that_was_applied_by_hand() {
    let Some(repository) = project(STATE) else {
        return;
    };
    done(&repository, "apply --auto-approve");
    change(&repository, 2);
    apply_by_hand(&repository);
    let plan = done(&repository, "plan");
    assert!(plan.contains("~ /app  update"), "{plan}");
    done(&repository, "apply --auto-approve");
    assert_eq!(input(&repository, "/app"), 2);
    assert!(done(&repository, "plan").contains("2 unchanged"));
}

/// The attempt has changed nothing, and Terraform knows the outputs.
#[test]
fn plan_leaves_users_of_a_stack_alone_whose_attempt_did_nothing() {
    let Some(repository) = project(STATE) else {
        return;
    };
    done(&repository, "apply --auto-approve");
    change(&repository, 2);
    fails_at_once(&repository, "net");
    // Its value is to change, and that of `/app` after it.
    let plan = done(&repository, "plan");
    assert!(plan.contains("? /app  known after /net"), "{plan}");
    change(&repository, 1);
    let plan = done(&repository, "plan");
    assert!(plan.contains("2 unchanged"), "{plan}");
}

/// Fails to apply a stack, without any effect.
fn fails_at_once(repository: &Repository, stack: &str) {
    let real = std::env::var_os("PATH").unwrap();
    let bin = repository.outside().join("bin");
    std::fs::create_dir(&bin).unwrap();
    repository.write_program(
        "/../bin/terraform",
        "#!/bin/sh\n[ \"$1\" != apply ] || exit 1\nPATH=$REAL exec terraform \"$@\"\n",
    );
    let mut apply = repository.command(&format!("apply --auto-approve --match {stack}"));
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&real)));
    apply.env("PATH", path.unwrap()).env("REAL", real);
    let output = apply.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// A target without work leaves the failure recorded.
#[test]
fn apply_of_a_target_without_work_keeps_the_failure() {
    let Some(repository) = project(STATE) else {
        return;
    };
    done(&repository, "apply --auto-approve");
    change(&repository, 2);
    fails_at_once(&repository, "net");
    let target = "-- -target=terraform_data.none";
    done(
        &repository,
        &format!("apply --auto-approve --match net {target}"),
    );
    assert_eq!(entry(&repository, "/net")["last"]["outcome"], "failed");
    assert!(done(&repository, "plan").contains("~ /net  update"));
}

/// No apply of another stack can mend it.
#[test]
fn plan_fails_if_a_configuration_cannot_be_initialized() {
    for broken in [
        "resource \"terraform_data\" \"c\" {\n",
        "terraform {\n  required_version = \"< 0.1\"\n}\n",
    ] {
        let Some(repository) = project(STATE) else {
            return;
        };
        repository.write("/app/broken.tf", broken);
        repository.commit();
        fails(&repository, "plan", 1, "/app");
    }
}

/// Each look at a sensitive output makes another salt.
#[test]
fn plan_ends_if_a_sensitive_output_that_triggers_was_changed_by_hand() {
    let Some(repository) = project(STATE) else {
        return;
    };
    let secret = |value: &str| {
        let output =
            format!("output \"s\" {{\n  value     = \"{value}\"\n  sensitive = true\n}}\n");
        repository.write("/net/secret.tf", output);
        repository.commit();
    };
    secret("hunter2");
    let by = "stack {\n  after = [\"/net\"]\n  lifecycle {\n    replace_triggered_by = [\"/net#s\"]\n  }\n}\n";
    repository.write("/app/stack.orch.hcl", by);
    repository.commit();
    done(&repository, "apply --auto-approve");
    secret("hunter3");
    apply_by_hand(&repository);
    let plan = done(&repository, "plan");
    assert!(
        plan.contains("-/+ /app  replace  /net#s has changed"),
        "{plan}"
    );
    done(&repository, "apply --auto-approve --allow-destroy=1");
    assert!(done(&repository, "plan").contains("2 unchanged"));
}

#[test]
fn apply_of_a_provisional_entry_destroys_nothing_that_was_not_shown() {
    let Some(repository) = project(STATE) else {
        return;
    };
    done(&repository, "apply --auto-approve");
    change(&repository, 2);
    // What follows from the value of `/net` replaces a resource.
    let more = "\nresource \"terraform_data\" \"c\" {\n  triggers_replace = data.terraform_remote_state.net.outputs.x\n}\n";
    repository.write("/app/main.tf", format!("{APP}{more}"));
    repository.commit();
    done(&repository, "apply --auto-approve");
    change(&repository, 3);
    repository.write("/app/more.tf", "resource \"terraform_data\" \"d\" {\n}\n");
    repository.commit();
    done(&repository, "plan -o ../saved");
    let said = "/app: failed: has changes that the plan does not show";
    fails(&repository, "apply ../saved", 1, said);
    assert_eq!(input(&repository, "/net"), 3);
}

#[test]
fn apply_of_a_targeted_plan_keeps_the_record() {
    let Some(repository) = project(STATE) else {
        return;
    };
    done(&repository, "apply --auto-approve");
    let before = entry(&repository, "/net");
    repository.write(
        "/net/more.tf",
        "resource \"terraform_data\" \"one\" {\n}\nresource \"terraform_data\" \"two\" {\n}\n",
    );
    repository.commit();
    let said = done(
        &repository,
        "apply --auto-approve --match net -- -target terraform_data.one -var=x=3",
    );
    let line = "Planned with -target=terraform_data.one -var: only a part of /net.\n";
    assert!(said.contains(line), "{said}");
    let note = "note: only a part of /net was applied, with `-target=terraform_data.one -var`, so it is not recorded as applied\n";
    assert!(said.contains(note), "{said}");
    assert!(!said.contains("x=3"), "{said}");
    let after = entry(&repository, "/net");
    assert_eq!(after["applied"], before["applied"]);
    let state = repository.read("/net/terraform.tfstate");
    assert!(
        state.contains("\"one\"") && !state.contains("\"two\""),
        "{state}"
    );
    let plan = done(&repository, "plan");
    assert!(plan.contains("~ /net  update"), "{plan}");
    done(&repository, "apply --auto-approve");
    assert!(done(&repository, "plan").contains("2 unchanged"));
}

#[test]
fn apply_of_a_targeted_plan_runs_once() {
    let Some(repository) = project(STATE) else {
        return;
    };
    repository.write(
        "/net/more.tf",
        "resource \"terraform_data\" \"one\" {\n}\nresource \"terraform_data\" \"two\" {\n}\n",
    );
    repository.commit();
    let target = "-- -target=terraform_data.one";
    done(
        &repository,
        &format!("plan --match net -o ../saved {target}"),
    );
    done(&repository, "apply ../saved");
    for again in ["apply ../saved", "apply ../saved --resume"] {
        let said = done(&repository, again);
        assert!(said.contains("nothing to do"), "{said}");
    }
}

#[test]
fn apply_replaces_terraform_stacks() {
    let Some(repository) = project(STATE) else {
        return;
    };
    done(&repository, "apply --auto-approve");
    let id = |repository: &Repository| {
        let state: Value =
            serde_json::from_str(&repository.read("/app/terraform.tfstate")).unwrap();
        let resources = state["resources"].as_array().unwrap().clone();
        let managed = resources.into_iter().find(|it| it["mode"] == "managed");
        managed.unwrap()["instances"][0]["attributes"]["id"].clone()
    };
    let before = id(&repository);
    fails(
        &repository,
        "apply --auto-approve --replace app",
        4,
        "1 destroy",
    );
    done(
        &repository,
        "apply --auto-approve --replace app --allow-destroy=1",
    );
    assert_ne!(id(&repository), before);
    assert!(done(&repository, "plan").contains("2 unchanged"));
}

#[test]
fn apply_records_sensitive_outputs_without_values() {
    let Some(repository) = project(STATE) else {
        return;
    };
    let secret = "output \"secret\" {\n  value     = \"hunter2\"\n  sensitive = true\n}\n";
    repository.write("/net/secret.tf", secret);
    repository.commit();
    done(&repository, "apply --auto-approve");
    let net = entry(&repository, "/net");
    assert!(net["outputs"]["secret"].is_string(), "{net}");
    let first = net["outputs"]["secret"].clone();
    assert!(done(&repository, "plan").contains("2 unchanged"));
    // It differs with any change of its stack.
    change(&repository, 2);
    done(&repository, "apply --auto-approve");
    assert_ne!(entry(&repository, "/net")["outputs"]["secret"], first);
    let document = repository.read(super::DOCUMENT);
    assert!(!document.contains("hunter2"), "{document}");
}

#[test]
fn apply_creates_a_missing_stack_instead_of_replacing() {
    let Some(repository) = project(STATE) else {
        return;
    };
    done(&repository, "apply --auto-approve");
    std::fs::remove_file(repository.path("/app/terraform.tfstate")).unwrap();
    let plan = done(&repository, "plan --replace app -o ../saved");
    assert!(plan.contains("+ /app  create  --replace"), "{plan}");
    assert!(!plan.contains("+0 ~0 -0"), "{plan}");
    done(&repository, "apply ../saved");
    assert_eq!(input(&repository, "/app"), 1);
}

#[test]
fn policies_see_terraform_changes_without_secrets() {
    let Some(repository) = project(STATE) else {
        return;
    };
    let secret = "\nvariable \"password\" {\n  default   = \"hunter2\"\n  sensitive = true\n}\n\nresource \"terraform_data\" \"secret\" {\n  input = { name = \"ada\", password = var.password }\n}\n\noutput \"password\" {\n  value     = var.password\n  sensitive = true\n}\n";
    repository.write("/net/main.tf", format!("{NET}{secret}"));
    repository.write(
        "/policies/list.rego",
        "package list\ntrigger[\"/app\"] { input.stack.id == \"/net\" }\nsample { true }\n",
    );
    let block = "policy \"trigger\" \"list\" { file = \"/policies/list.rego\" }\n";
    repository.write("/list.orch.hcl", block);
    repository.commit();
    done(&repository, "apply --auto-approve --match net");
    assert_eq!(input(&repository, "/app"), 1, "it followed");
    let samples = done(&repository, "policy samples");
    let of_net = samples.lines().find(|line| line.contains(".1.list"));
    let id = of_net.and_then(|line| line.split(' ').next()).unwrap();
    let (run, _) = id.split_once('.').unwrap();
    let kept = repository.read(&format!("/.orch/runs/{run}/samples/1.list.json"));
    assert!(!kept.contains("hunter2"), "{kept}");
    let kept: Value = serde_json::from_str(&kept).unwrap();
    let version = kept["run"]["runtime_config"]["terraform_version"].as_str();
    assert!(
        version.is_some_and(|version| version.contains('.')),
        "{kept}"
    );
    assert_eq!(kept["stack"]["terraform_version"].as_str(), version);
    obeys_the_schema(&kept);
    let changes = kept["run"]["changes"].as_array().unwrap();
    let told = changes.iter().map(|change| {
        let entity = &change["entity"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let words = [&change["phase"], &change["action"], &entity["entity_type"]];
        let words = words.map(text).join(" ");
        // An id is known only after the apply, and another one each time.
        let mut data = entity["data"].clone();
        for place in ["/id", "/values/id"] {
            if let Some(id) = data.pointer_mut(place) {
                assert!(id.is_string(), "{entity}");
                *id = Value::from("…");
            }
        }
        format!("{words} {} {data}", text(&entity["address"]))
    });
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @r#"
    plan added resource terraform_data.a {"input":1,"triggers_replace":null,"values":{"input":1,"triggers_replace":null}}
    plan added resource terraform_data.secret {"input":{"name":"ada","password":"(sensitive)"},"triggers_replace":null,"values":{"input":{"name":"ada","password":"(sensitive)"},"triggers_replace":null}}
    plan added output output.password {"value":"(sensitive)"}
    plan added output output.x {"value":null}
    apply added resource terraform_data.a {"id":"…","input":1,"output":1,"triggers_replace":null,"values":{"id":"…","input":1,"output":1,"triggers_replace":null}}
    apply added resource terraform_data.secret {"id":"…","input":{"name":"ada","password":"(sensitive)"},"output":{"name":"ada","password":"(sensitive)"},"triggers_replace":null,"values":{"id":"…","input":{"name":"ada","password":"(sensitive)"},"output":{"name":"ada","password":"(sensitive)"},"triggers_replace":null}}
    apply added output output.password {"value":"(sensitive)"}
    apply added output output.x {"value":1}
    "#);
}
