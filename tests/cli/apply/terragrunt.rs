//! Units of Terragrunt. The program on the `PATH` is a fake: it knows one resource, which exists once it is
//! applied.
#![cfg(unix)]

use serde_json::Value;

use super::{STATE, done, entry, fails};
use crate::support::{Repository, Sandbox};

const TERRAGRUNT: &str = r#"#!/bin/sh
[ -e "$ORCH_ROOT/../there" ] && action=no-op || action=create
case $1 in
plan)
  [ ! -e excluded ] || exit 0
  for word; do
    case $word in -out=*) : > "${word#-out=}" ;; esac
  done
  [ $action = no-op ] || exit 2
  ;;
show)
  for file; do :; done
  [ -e "$file" ] || exit 0
  echo '{"format_version":"1.2","resource_changes":[{"address":"a.b","mode":"managed","change":{"actions":["'$action'"]}}]}'
  ;;
apply) : > "$ORCH_ROOT/../there" ;;
output) echo '{}' ;;
esac
"#;

const PATH: &str = r#"
orch {
  config {
    run {
      env {
        PATH = "${terramate.root.path.fs.absolute}/bin:${env.PATH}"
      }
    }
  }
}
"#;

/// A project that keeps a state, with one unit.
fn project() -> Repository {
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/path.orch.hcl", PATH);
    sandbox.write("/.gitignore", ".terraform\n");
    sandbox.write_program("/bin/terragrunt", TERRAGRUNT);
    sandbox.write("/unit/stack.orch.hcl", "stack {\n}\n");
    sandbox.write("/unit/terragrunt.hcl", "");
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    repository
}

#[test]
fn apply_does_not_guess_the_backend_of_a_terragrunt_unit() {
    let repository = project();
    // What an older version has left: today's are in the cache of Terragrunt.
    let left = r#"{"backend":{"type":"s3","config":{"bucket":"acme","key":"unit"}}}"#;
    repository.write("/unit/.terraform/terraform.tfstate", left);
    done(&repository, "apply --auto-approve");
    let recorded = entry(&repository, "/unit");
    assert_eq!(recorded["driver"], "terragrunt");
    assert_eq!(recorded["backend"], Value::Null, "{recorded}");
    // The file does not exist on another machine.
    std::fs::remove_dir_all(repository.path("/unit/.terraform")).unwrap();
    repository.write("/unit/terragrunt.hcl", "# changed\n");
    repository.commit();
    let plan = done(&repository, "plan");
    assert!(plan.contains("1 unchanged"), "{plan}");
    done(&repository, "apply --auto-approve");
}

#[test]
fn plan_reports_units_that_terragrunt_excludes() {
    let repository = project();
    repository.write("/unit/excluded", "");
    repository.commit();
    let said = fails(&repository, "plan", 1, "wrote no plan");
    assert!(said.contains("`exclude`"), "{said}");
}

#[test]
fn apply_of_a_file_refuses_another_value_of_what_terragrunt_reads() {
    let repository = project();
    repository.write(
        "/unit/terragrunt.hcl",
        "include \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n}\n\ninputs = {\n  zone = get_env(\"ZONE\", \"a\")\n}\n",
    );
    repository.write("/root.hcl", "locals {\n  size = get_env( \"SIZE\" )\n}\n");
    repository.commit();
    let with = |arguments: &str, zone: &str, size: &str| {
        repository.orch_with(arguments, |orch| {
            orch.env("ZONE", zone).env("SIZE", size);
        })
    };
    let plan = with("plan -o ../saved", "prod", "large");
    assert_eq!(plan.code(), 0, "{plan}");
    for (zone, size, name) in [("dev", "large", "ZONE"), ("prod", "small", "SIZE")] {
        let output = with("apply ../saved", zone, size);
        assert_eq!(output.code(), 4, "{output}");
        let reason = format!("  /unit: the variable `{name}` differs\n");
        assert!(output.stderr.contains(&reason), "{output}");
    }
    let applied = with("apply ../saved", "prod", "large");
    assert_eq!(applied.code(), 0, "{applied}");
}
