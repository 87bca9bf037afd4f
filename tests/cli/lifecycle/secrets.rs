//! Conditions about outputs of real Terraform, of which some are secret.

use std::fs;
use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;

use super::outputs::{ensures, requires, rules, set};
use crate::removals::{APPROVED, STATE, declare, done, entry, fails};
use crate::support::{Repository, Sandbox, skipped};

const SECRET: &str = "hunter2-swordfish";

const MAIN: &str = r#"resource "terraform_data" "a" {
  input = "VALUE"
}

output "open" {
  value = terraform_data.a.output
}

output "key" {
  value     = "${terraform_data.a.output}-swordfish"
  sensitive = true
}
"#;

/// A project with `/net`, and `/app` after it, both applied; nothing where there is no Terraform.
fn applied() -> Option<Repository> {
    if Command::new("terraform").arg("version").output().is_err() {
        skipped("there is no terraform on the PATH");
        return None;
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/.gitignore", "*.tfstate*\n.terraform*\n");
    for (path, lines) in [("/net", ""), ("/app", "after = [\"/net\"]")] {
        declare(&sandbox, path, lines);
        sandbox.write(&format!("{path}/main.tf"), MAIN.replace("VALUE", "hunter2"));
    }
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    done(&repository, &format!("apply {APPROVED}"));
    Some(repository)
}

/// Asserts that the secret occurs in no file of a folder.
fn assert_no_secret(folder: &Path) {
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            assert_no_secret(&path);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(SECRET), "{}", path.display());
    }
}

#[test]
fn conditions_use_sensitive_outputs_without_showing_them() {
    let Some(repository) = applied() else { return };
    let outputs = "stacks[\"/net\"].outputs";
    let holds = format!(
        "{outputs}.key == \"{}-swordfish\" && {outputs}.open == \"hunter2\"",
        "hunter2"
    );
    set(&repository, "/app", &requires(&holds, "m"));
    done(&repository, "plan");
    let fails_so = rules(&[
        (
            "precondition",
            &format!("{outputs}.open == {outputs}.key"),
            "it is ${stacks[\\\"/net\\\"].outputs.key}",
        ),
        (
            "precondition",
            &format!("tm_length({outputs}) == 1"),
            "there are ${tm_length(stacks[\\\"/net\\\"].outputs)}",
        ),
        (
            "precondition",
            &format!("[for k, v in {outputs} : v if v == 1] == {outputs}.key"),
            "m",
        ),
        ("precondition", &format!("{outputs}.key"), "m"),
        ("precondition", &format!("{outputs}.key.none"), "m"),
    ]);
    let fails_so = fails_so.replace("\\\"", "\"");
    set(
        &repository,
        "/app",
        &format!("after = [\"/net\"]\n  {fails_so}"),
    );
    let told = fails(&repository, "plan", 1, "(sensitive)");
    assert_snapshot!(told, @r#"
      ! /app  failed: precondition of `/app` failed: (sensitive) (app/stack.orch.hcl:4, stacks["/net"].outputs.open: this is "hunter2", stacks["/net"].outputs.key: this is (sensitive)); precondition of `/app` faile…

    Plan: 1 failed, 1 unchanged.
    [stderr]
    error: precondition of `/app` failed: (sensitive)
     --> app/stack.orch.hcl:5:23
      |
    5 |       condition     = stacks["/net"].outputs.open == stacks["/net"].outputs.key
      |                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^    -------------------------- this is (sensitive)
      |                       |
      |                       this is "hunter2"

    error: precondition of `/app` failed: (sensitive)
     --> app/stack.orch.hcl:9:33
      |
    9 |       condition     = tm_length(stacks["/net"].outputs) == 1
      |                                 ^^^^^^^^^^^^^^^^^^^^^^ this is (sensitive)

    error: precondition of `/app` failed: m
      --> app/stack.orch.hcl:13:36
       |
    13 |       condition     = [for k, v in stacks["/net"].outputs : v if v == 1] == stacks["/net"].outputs.key
       |                                    ^^^^^^^^^^^^^^^^^^^^^^                   -------------------------- this is (sensitive)
       |                                    |
       |                                    this is (sensitive)

    error: a precondition must be `true` or `false`
      --> app/stack.orch.hcl:17:23
       |
    17 |       condition     = stacks["/net"].outputs.key
       |                       ^^^^^^^^^^^^^^^^^^^^^^^^^^ this is a string
       |
       = note: needed for the precondition of `/app`

    error: no such attribute
      --> app/stack.orch.hcl:21:50
       |
    21 |       condition     = stacks["/net"].outputs.key.none
       |                                                  ^^^^ attributes belong to objects; this is a string
       |
       = note: needed for the precondition of `/app`

    [exit status 1]
    "#);
    assert!(!told.contains(SECRET), "{told}");
    for format in ["json", "markdown"] {
        let told = repository.orch(&format!("plan --format {format}"));
        assert!(!told.to_string().contains(SECRET), "{told}");
    }
    assert_no_secret(&repository.path("/.orch"));
}

#[test]
fn postconditions_fail_without_showing_sensitive_outputs() {
    let Some(repository) = applied() else { return };
    let mut all = Vec::new();
    let lines = ensures("self.outputs.key == \"\"", "it is ${self.outputs.key}");
    set(&repository, "/app", &lines);
    repository.write(
        "/app/main.tf",
        MAIN.replace("VALUE", "hunter2")
            .replace("\"a\"", "\"b\"")
            .replace(".a.", ".b."),
    );
    repository.commit();
    all.push(fails(
        &repository,
        &format!("apply {APPROVED} --allow-resource-destroy"),
        1,
        "postcondition failed: (sensitive)",
    ));
    assert_eq!(entry(&repository, "/app")["applied"]["checks"], "failed");
    all.push(fails(
        &repository,
        "plan -o ../saved",
        1,
        "postcondition of `/app` failed: (sensitive)",
    ));
    all.push(done(&repository, "runs show --format json"));
    all.push(done(&repository, "state show /app --format json"));
    for text in all {
        assert!(!text.contains(SECRET), "{text}");
    }
    assert_no_secret(&repository.path("/.orch"));
}

#[test]
fn conditions_read_outputs_of_read_only_terraform_stacks() {
    let Some(repository) = applied() else { return };
    let read = |key: &str| {
        let condition = format!(
            "self.outputs.key == \"{key}\" && stacks[\"/net\"].outputs.open != \"\" && self.action == \"read\""
        );
        let rules = rules(&[("postcondition", &condition, "m")]);
        format!("mode = \"read\"\n  after = [\"/net\"]\n  {rules}")
    };
    set(&repository, "/app", &read(SECRET));
    done(&repository, "plan");
    repository.write("/net/main.tf", MAIN.replace("VALUE", "else"));
    repository.commit();
    done(&repository, &format!("apply {APPROVED}"));
    repository.write("/net/main.tf", MAIN.replace("VALUE", "again"));
    set(&repository, "/app", &read("other"));
    let told = fails(
        &repository,
        &format!("apply {APPROVED}"),
        1,
        "postcondition of `/app` failed: m",
    );
    assert!(told.contains("this is (sensitive)"), "{told}");
    assert!(!told.contains(SECRET), "{told}");
    assert_no_secret(&repository.path("/.orch"));
}

#[test]
fn plan_finds_the_outputs_of_a_read_stack_that_terraform_never_applied() {
    let Some(repository) = applied() else { return };
    let reads = r#"data "terraform_remote_state" "net" {
  backend = "local"
  config  = { path = "${path.module}/../net/terraform.tfstate" }
}

output "id" {
  value = data.terraform_remote_state.net.outputs.open
}

output "key" {
  value     = data.terraform_remote_state.net.outputs.key
  sensitive = true
}
"#;
    repository.write("/read/main.tf", reads);
    let itself = "self.outputs.key == \"${self.outputs.id}-swordfish\"";
    set(
        &repository,
        "/read",
        &format!(
            "mode = \"read\"\n  after = [\"/net\"]\n  {}",
            ensures(itself, "m")
        ),
    );
    let of_read = "stacks[\"/read\"].outputs";
    let needs = |id: &str| {
        let condition = format!("{of_read}.id == \"{id}\" && {of_read}.key == \"{id}-swordfish\"");
        let rules = rules(&[("precondition", &condition, "m")]);
        format!("after = [\"/read\"]\n  {rules}")
    };
    repository.write("/app/main.tf", MAIN.replace("VALUE", "more"));
    set(&repository, "/app", &needs("hunter2"));
    // Whoever runs this in CI needs no approval to read.
    let read = repository.orch("apply --match read");
    assert_eq!(read.code(), 0, "{read}");
    let recorded = entry(&repository, "/read")["outputs"].clone();
    assert_eq!(recorded.as_object().unwrap().len(), 2, "{recorded}");
    done(&repository, "plan");
    done(&repository, &format!("apply {APPROVED}"));
    let nothing = repository.orch("plan --detailed-exitcode");
    assert_eq!(nothing.code(), 0, "{nothing}");
    // The reader is decided during the apply, and so is what needs its outputs.
    repository.write("/net/main.tf", MAIN.replace("VALUE", "else"));
    set(&repository, "/app", &needs("else"));
    done(&repository, &format!("apply {APPROVED}"));
    assert_ne!(entry(&repository, "/read")["outputs"]["id"], recorded["id"]);
    assert!(!repository.path("/read/terraform.tfstate").exists());
    assert_no_secret(&repository.path("/.orch"));
}
