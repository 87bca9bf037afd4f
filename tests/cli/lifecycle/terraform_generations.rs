//! Generations of stacks of real Terraform: each is a workspace.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::removals::{APPROVED, STATE, declare, done, entry, fails, planned};
use crate::support::{Repository, Sandbox, skipped};

/// Returns the variables of a stack.
fn variables(text: &str) -> String {
    format!(
        "orch {{\n  config {{\n    run {{\n      env {{\n        {text}\n      }}\n    }}\n  }}\n}}\n"
    )
}

/// A project with `/db`, which is made anew before the old one is destroyed; nothing where there is no Terraform.
fn prepared(db: &str) -> Option<Sandbox> {
    if Command::new("terraform").arg("version").output().is_err() {
        skipped("there is no terraform on the PATH");
        return None;
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/.gitignore", "*.tfstate*\n.terraform*\nstates\nfail\n");
    declare(
        &sandbox,
        "/db",
        "lifecycle {\n    create_before_destroy = true\n  }",
    );
    let workspace =
        "TF_WORKSPACE = orch.stack.generation == 1 ? \"default\" : \"g${orch.stack.generation}\"";
    sandbox.write("/db/env.orch.hcl", variables(workspace));
    sandbox.write("/db/main.tf", db);
    Some(sandbox)
}

fn applied(sandbox: Sandbox) -> Repository {
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    done(&repository, &format!("apply {APPROVED}"));
    repository
}

/// Returns the names of the resources in a state of `/db`.
fn resources(repository: &Repository, file: &str) -> Vec<String> {
    let text = fs::read_to_string(repository.path(file)).unwrap();
    let state: Value = serde_json::from_str(&text).unwrap();
    let resources = state["resources"].as_array().unwrap().iter();
    resources
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn generations_move_terraform_readers_before_the_destroy() {
    let db = "resource \"terraform_data\" \"a\" {\n}\n\noutput \"id\" {\n  value = terraform_data.a.id\n}\n";
    let Some(sandbox) = prepared(db) else { return };
    declare(&sandbox, "/app", "after = [\"/db\"]");
    let workspace = "TF_VAR_db_workspace = stacks[\"/db\"].generation == 1 ? \"default\" : \"g${stacks[\"/db\"].generation}\"";
    sandbox.write("/app/env.orch.hcl", variables(workspace));
    sandbox.write(
        "/app/main.tf",
        r#"variable "db_workspace" {
  type = string
}

data "terraform_remote_state" "db" {
  backend   = "local"
  workspace = var.db_workspace
  config = {
    path          = "${path.module}/../db/terraform.tfstate"
    workspace_dir = "${path.module}/../db/terraform.tfstate.d"
  }
}

resource "terraform_data" "b" {
  input = data.terraform_remote_state.db.outputs.id
}

output "db" {
  value = terraform_data.b.output
}
"#,
    );
    let repository = applied(sandbox);
    for generation in [2, 3] {
        done(&repository, &format!("apply {APPROVED} --replace /db"));
        assert_eq!(entry(&repository, "/db")["generation"], generation);
        assert_eq!(entry(&repository, "/db")["deposed"], Value::Null);
        assert_eq!(
            entry(&repository, "/app")["applied"]["generations"],
            json!({"/db": generation})
        );
        // Nothing reads what is gone.
        assert_eq!(planned(&repository, "--full"), [""; 0]);
        let new = format!("/db/terraform.tfstate.d/g{generation}/terraform.tfstate");
        assert_eq!(resources(&repository, &new), ["a"]);
    }
    assert_eq!(resources(&repository, "/db/terraform.tfstate"), [""; 0]);
    let g2 = "/db/terraform.tfstate.d/g2/terraform.tfstate";
    assert_eq!(resources(&repository, g2), [""; 0]);
}

#[test]
fn apply_keeps_the_state_that_a_stack_still_reads() {
    let db = "resource \"terraform_data\" \"a\" {\n}\n\noutput \"id\" {\n  value = terraform_data.a.id\n}\n";
    let Some(sandbox) = prepared(db) else { return };
    declare(&sandbox, "/app", "after = [\"/db\"]");
    sandbox.write(
        "/app/main.tf",
        r#"data "terraform_remote_state" "db" {
  backend = "local"
  config  = { path = "${path.module}/../db/terraform.tfstate" }
}

resource "terraform_data" "b" {
  input = data.terraform_remote_state.db.outputs.id
}
"#,
    );
    let repository = applied(sandbox);
    fails(
        &repository,
        &format!("apply {APPROVED} --replace /db"),
        4,
        "`/db[generation 1]` is not destroyed: /app may still use it",
    );
    assert_eq!(resources(&repository, "/db/terraform.tfstate"), ["a"]);
    // It can still be planned and applied.
    done(&repository, "plan --full --match app");
}

#[test]
fn apply_destroys_a_generation_that_failed_half_way_whatever_its_backend() {
    let db = r#"terraform {
  backend "local" {
    path = "states/db.tfstate"
  }
}

resource "terraform_data" "a" {
}

resource "terraform_data" "b" {
  input = terraform_data.a.id
  provisioner "local-exec" {
    command = "test ! -e ../fail"
  }
}
"#;
    let Some(sandbox) = prepared(db) else { return };
    declare(&sandbox, "/web", "");
    let web = "resource \"terraform_data\" \"a\" {\n  input = \"1\"\n}\n";
    sandbox.write("/web/main.tf", web);
    let repository = applied(sandbox);
    repository.write("/fail", "");
    fails(
        &repository,
        &format!("apply {APPROVED} --replace /db"),
        1,
        "/db",
    );
    assert_eq!(entry(&repository, "/db")["deposed"][0]["generation"], 2);
    let g2 = "/db/terraform.tfstate.d/g2/terraform.tfstate";
    assert_eq!(resources(&repository, g2), ["a", "b"]);
    repository.write("/web/main.tf", web.replace('1', "2"));
    repository.commit();
    assert_eq!(
        planned(&repository, ""),
        ["/db[generation 2] delete", "/web update"]
    );
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(resources(&repository, g2), [""; 0]);
    assert_eq!(resources(&repository, "/db/states/db.tfstate"), ["a", "b"]);
    assert_eq!(planned(&repository, ""), [""; 0]);
    // The old one, too, is destroyed from a checkout in which other states are linked.
    fs::remove_file(repository.path("/fail")).unwrap();
    done(&repository, &format!("apply {APPROVED} --replace /db"));
    assert_eq!(resources(&repository, "/db/states/db.tfstate"), [""; 0]);
    assert_eq!(planned(&repository, ""), [""; 0]);
    // And so is a stack that was removed.
    repository.git("rm -rq db");
    repository.commit();
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(planned(&repository, ""), [""; 0]);
}
