//! Plans of real Terraform.

use insta::assert_snapshot;

use crate::support::{Sandbox, skipped};

const MAIN: &str = r#"variable "x" {
  default = 1
}

resource "terraform_data" "a" {
  input = var.x
}

output "fixed" {
  value = "known before anything exists"
}
"#;

/// Returns whether there is Terraform.
fn has_terraform() -> bool {
    let version = std::process::Command::new("terraform")
        .arg("version")
        .output();
    version.is_ok()
}

#[test]
fn plan_markdown_has_the_terraform_plan_without_init() {
    if !has_terraform() {
        return skipped("there is no terraform on the PATH");
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/net/stack.orch.hcl", "stack {\n}\n");
    let many = "resource \"terraform_data\" \"a\" {\n  count = 40\n}\n";
    sandbox.write("/net/main.tf", many);
    let page = sandbox.orch("plan --format markdown --max-bytes 4000 -o saved");
    assert_eq!(page.code(), 0, "{page:?}");
    assert!(
        page.stdout.contains("```text\n+ terraform_data.a[0]\n"),
        "{page:?}"
    );
    assert!(page.stdout.contains("\n\nTerraform used"), "{page:?}");
    assert!(page.stdout.contains("Plan: 40 to add"), "{page:?}");
    let all = "all of it: orch show saved /net";
    assert!(page.stdout.contains(all), "{page:?}");
    let whole = sandbox.orch("show saved /net").stdout;
    assert_eq!(whole.matches("will be created").count(), 40, "{whole}");
}

#[test]
fn plan_detects_terraform_and_reads_its_plan() {
    if !has_terraform() {
        return skipped("there is no terraform on the PATH");
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/net/stack.orch.hcl", "stack {\n}\n");
    sandbox.write("/net/main.tf", MAIN);
    let planned = |arguments: &str| {
        let output = sandbox.orch(&format!("plan --format json {arguments}"));
        assert_eq!(output.code(), 0, "{output:?}");
        let plan = output.json();
        let stack = &plan["stacks"][0];
        (stack["actions"].to_string(), stack["changes"].to_string())
    };
    let counts = |add: u8, change: u8, remove: u8| {
        format!(r#"{{"add":{add},"change":{change},"remove":{remove}}}"#)
    };
    assert_eq!(planned(""), (r#"["create"]"#.to_owned(), counts(1, 0, 0)));
    assert_eq!(sandbox.orch("plan -o saved").code(), 0);
    let shown = sandbox.orch("show saved net");
    assert_eq!(shown.code(), 0, "{shown:?}");
    assert!(shown.stdout.contains("terraform_data.a will be created"));
    let applied = sandbox.orch("run -- terraform apply -auto-approve -input=false");
    assert_eq!(applied.code(), 0, "{applied:?}");
    assert_eq!(planned(""), (r#"["no-op"]"#.to_owned(), counts(0, 0, 0)));
    assert_eq!(
        planned("-- -var x=2"),
        (r#"["update"]"#.to_owned(), counts(0, 1, 0))
    );
    assert_eq!(
        planned("--destroy"),
        (r#"["delete"]"#.to_owned(), counts(0, 0, 1))
    );
    assert_eq!(
        planned("--refresh-only"),
        (r#"["no-op"]"#.to_owned(), counts(0, 0, 0))
    );
    assert_eq!(
        planned("--replace net"),
        (r#"["delete","create"]"#.to_owned(), counts(0, 0, 1))
    );
    // A change of outputs alone is a change.
    sandbox.write(
        "/net/more.tf",
        "output \"more\" {\n  value = terraform_data.a.id\n}\n",
    );
    assert_eq!(planned(""), (r#"["update"]"#.to_owned(), counts(0, 0, 0)));
    let plan = sandbox.orch("plan");
    let row = "  ~ /net  update  has changes  outputs only\n";
    assert!(plan.stdout.contains(row), "{plan}");
    let page = sandbox.orch("plan --format markdown").stdout;
    assert!(page.contains("| has changes | `outputs only` |"), "{page}");
    let outputs = sandbox.orch("plan --format json").json()["stacks"][0]["changed_outputs"].clone();
    assert_eq!(outputs, serde_json::json!(["more"]));
}

/// A `terraform` whose state differs from what is there.
const DRIFTED: &str = r#"#!/bin/sh
echo "$@" >> calls
case $1 in
plan) case "$*" in *-refresh-only*) exit 2 ;; esac ;;
show) echo '{"format_version":"1.2","resource_drift":[{"address":"x.y","mode":"managed","change":{"actions":["update"]}}]}' ;;
esac
"#;

#[cfg(unix)]
#[test]
fn plan_shows_drift() {
    let sandbox = Sandbox::new("");
    sandbox.write("/a/stack.orch.hcl", "stack {\n}\n");
    sandbox.write("/a/main.tf", "");
    let path = "orch {\n  config {\n    run {\n      env {\n        PATH = \"${terramate.root.path.fs.absolute}/bin:${env.PATH}\"\n      }\n    }\n  }\n}\n";
    sandbox.write("/path.orch.hcl", path);
    sandbox.write_program("/bin/terraform", DRIFTED);
    let output = sandbox.orch("plan --refresh-only");
    assert_eq!(output.code(), 0, "{output:?}");
    assert_snapshot!(output.stdout, @"
        /a  no-op  has drifted  +0 ~1 -0
          ~ x.y

    Plan: 1 drifted. Resources: 1 changed.
    ");
    assert!(sandbox.read("/a/calls").contains(" -refresh-only\n"));
    // Drift alone is no change.
    assert!(
        sandbox
            .orch("plan")
            .stdout
            .starts_with("Plan: nothing to do.")
    );
    let own = "driver \"terraform\" {\n  read = [\"terraform\", \"own\"]\n}\n";
    sandbox.write("/driver.orch.hcl", own);
    assert_eq!(sandbox.orch("plan --refresh-only").code(), 0);
    assert!(sandbox.read("/a/calls").contains("\nown\n"));
}

#[test]
fn plan_explains_stale_backends_after_directories_were_swapped() {
    if !has_terraform() {
        return skipped("there is no terraform on the PATH");
    }
    let sandbox = Sandbox::new("");
    let main = |stack: &str, state: &str| {
        let backend = format!(
            "terraform {{\n  backend \"local\" {{\n    path = \"../{state}.tfstate\"\n  }}\n}}\n"
        );
        sandbox.write(&format!("/{stack}/main.tf"), backend);
    };
    for stack in ["a", "b"] {
        sandbox.write(&format!("/{stack}/stack.orch.hcl"), "stack {\n}\n");
        main(stack, stack);
    }
    assert_eq!(sandbox.orch("plan").code(), 0);
    main("a", "b");
    main("b", "a");
    for arguments in ["plan", "plan --init"] {
        let output = sandbox.orch(arguments);
        let help = "help: if directories were moved or swapped, remove the `.terraform` of /a and /b and plan again";
        assert!(output.stderr.contains(help), "{output}");
    }
    for stack in ["a", "b"] {
        std::fs::remove_dir_all(sandbox.path(&format!("/{stack}/.terraform"))).unwrap();
    }
    assert_eq!(sandbox.orch("plan").code(), 0);
}
