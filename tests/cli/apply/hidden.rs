//! Options that reach the tools from somewhere else than `orch`, and make another plan than the one that is shown.

#![cfg(unix)]

use std::process::Command;

use super::{STATE, acts, applied, declare, done, entry, fails, log, want, world};
use crate::support::{Output, Repository, Sandbox, skipped};

fn with(repository: &Repository, arguments: &str, variable: &str, value: &str) -> Output {
    repository.orch_with(arguments, |orch| {
        orch.env(variable, value);
    })
}

/// Writes a variable of `run.env` for the stack `/a`.
fn set(repository: &Repository, variable: &str, value: &str) {
    let text = format!(
        "orch {{\n  config {{\n    run {{\n      env {{\n        {variable} = \"{value}\"\n      }}\n    }}\n  }}\n}}\n"
    );
    repository.write("/a/env.orch.hcl", text);
    repository.commit();
}

#[test]
fn plan_and_apply_refuse_options_in_variables_before_a_tool_runs() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    want(&repository, "/a", "2");
    want(&repository, "/b", "2");
    for (variable, value, option) in [
        ("TF_CLI_ARGS_plan", "-lock=false -destroy", "-destroy"),
        ("TF_CLI_ARGS_plan", "-refresh-only", "-refresh-only"),
        ("TF_CLI_ARGS", "--target 'a.b[\"hunter2\"]'", "-target"),
        ("TF_CLI_ARGS_plan", "-exclude=hunter2", "-exclude"),
        ("TF_CLI_ARGS", "-help", "-help"),
    ] {
        for command in ["plan", "plan -o ../saved", "apply --auto-approve"] {
            let output = with(&repository, command, variable, value);
            assert_eq!(output.code(), 4, "{output}");
            let line =
                format!("\n  `{variable}` has `{option}`, in the environment of `orch`: /a, /b\n");
            assert!(output.stderr.contains(&line), "{output}");
            assert!(!output.stderr.contains("hunter2"), "{output}");
            assert_eq!(log(&repository), [""; 0]);
        }
    }
    assert_eq!(world(&repository, "a").as_deref(), Some("1"));
    assert!(!repository.outside().join("saved").exists());
    // What only the apply would get is refused before that.
    let output = with(
        &repository,
        "apply --auto-approve",
        "TF_CLI_ARGS_apply",
        "-help",
    );
    assert_eq!(output.code(), 4, "{output}");
    assert!(
        output.stderr.contains("`TF_CLI_ARGS_apply` has `-help`"),
        "{output}"
    );
    assert_eq!(world(&repository, "a").as_deref(), Some("1"));
}

#[test]
fn apply_refuses_options_in_the_command_of_a_driver() {
    let repository = applied(&[("/a", "")]);
    let driver = r#"driver "own" {
  plan  = ["sh", "${terramate.root.path.fs.absolute}/tool", "plan"]
  apply = ["terraform", "apply", "-auto-approve", "-destroy"]
}
"#;
    repository.write("/own.orch.hcl", driver);
    declare(&repository, "/a", "driver = \"own\"");
    repository.commit();
    want(&repository, "/a", "2");
    log(&repository);
    let line = "\n  `apply` has `-destroy`, set at own.orch.hcl:3: /a\n";
    fails(&repository, "apply --auto-approve", 4, line);
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn plan_names_the_file_that_sets_the_variable() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    set(&repository, "TF_CLI_ARGS_plan", "-target=hunter2");
    let output = fails(
        &repository,
        "plan",
        4,
        "\n  `TF_CLI_ARGS_plan` has `-target`, set at a/env.orch.hcl:5: /a\n",
    );
    assert!(!output.contains("hunter2"), "{output}");
    // The host's variable is not that of the stack.
    set(&repository, "TF_CLI_ARGS_plan", "-parallelism=3");
    let output = with(
        &repository,
        "plan --match a",
        "TF_CLI_ARGS_plan",
        "-destroy",
    );
    assert_eq!(output.code(), 0, "{output}");
}

#[test]
fn apply_goes_on_with_other_words_in_variables() {
    let repository = applied(&[("/a", "")]);
    want(&repository, "/a", "2");
    for (variable, value) in [
        (
            "TF_CLI_ARGS_plan",
            "-parallelism=3 -lock-timeout=5m -var=target=x",
        ),
        ("TF_CLI_ARGS", "-no-color"),
        ("TF_CLI_ARGS_plan", "-destroy=false"),
        ("TF_CLI_ARGS_import", "-help"),
    ] {
        let output = with(&repository, "plan", variable, value);
        assert_eq!(output.code(), 0, "{output}");
    }
    let output = with(
        &repository,
        "apply --auto-approve",
        "TF_CLI_ARGS_apply",
        "-parallelism=3",
    );
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(world(&repository, "a").as_deref(), Some("2"));
}

#[test]
fn apply_does_not_record_a_part_as_applied_with_any_driver() {
    let repository = applied(&[("/a", "")]);
    want(&repository, "/a", "2");
    let before = entry(&repository, "/a")["applied"].clone();
    done(&repository, "apply --auto-approve -- -target=x");
    assert_eq!(world(&repository, "a").as_deref(), Some("2"));
    assert_eq!(entry(&repository, "/a")["applied"], before);
    let listed = done(&repository, "state list");
    assert!(listed.contains("/a  pending"), "{listed}");
}

const MAIN: &str = r#"variable "x" {
  default = 1
}

resource "terraform_data" "a" {
  input = var.x
}

resource "terraform_data" "b" {
}

output "x" {
  value = var.x
}
"#;

/// A project with one stack of Terraform, whose `terraform` is a script that adds what is in the file `words` to the
/// words of `plan`; nothing where there is no Terraform.
fn wrapped() -> Option<Repository> {
    if Command::new("terraform").arg("version").output().is_err() {
        skipped("there is no terraform on the PATH");
        return None;
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/.gitignore", "*.tfstate*\n.terraform*\n");
    sandbox.write(
        "/env.orch.hcl",
        "orch {\n  config {\n    run {\n      env {\n        PATH = \"${terramate.root.path.fs.absolute}/../bin:${env.PATH}\"\n      }\n    }\n  }\n}\n",
    );
    let script = "#!/bin/sh\nPATH=${PATH#*:}\nwords=$(cat \"$ORCH_ROOT/../words\" 2>/dev/null)\ncase $1 in\nplan) shift; exec terraform plan $words \"$@\" ;;\nversion) [ ! -e \"$ORCH_ROOT/../version\" ] || exec cat \"$ORCH_ROOT/../version\" ;;\nesac\nexec terraform \"$@\"\n";
    sandbox.write_program("/../bin/terraform", script);
    sandbox.write("/app/stack.orch.hcl", "stack {\n}\n");
    sandbox.write("/app/main.tf", MAIN);
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    Some(repository)
}

#[test]
fn apply_refuses_the_plan_of_a_wrapper_that_adds_a_mode() {
    let Some(repository) = wrapped() else {
        return;
    };
    let refused = |words: &str, why: &str| {
        repository.write("/../words", words);
        let said = fails(&repository, "apply --auto-approve", 1, why);
        assert!(said.contains("which `orch` did not ask for"), "{said}");
        fails(&repository, "plan -o ../saved", 1, why);
    };
    let all = |exists: bool| {
        let lacks = "its plan lacks `terraform_data.a`";
        let destroy = if exists {
            "its plan destroys everything"
        } else {
            lacks
        };
        refused("-destroy", destroy);
        refused("-refresh-only", lacks);
        refused("-target=terraform_data.a", "its plan is incomplete");
    };
    all(false);
    assert!(entry(&repository, "/app").is_null());
    repository.write("/../words", "-parallelism=3");
    done(&repository, "apply --auto-approve");
    repository.write("/app/main.tf", MAIN.replace("= 1", "= 2"));
    repository.commit();
    let before = entry(&repository, "/app");
    all(true);
    assert_eq!(entry(&repository, "/app"), before);
    // What is asked for is done, and is no plan of the whole stack.
    repository.write("/../words", "");
    done(
        &repository,
        "apply --auto-approve -- -target=terraform_data.a",
    );
    let listed = done(&repository, "state list");
    assert!(listed.contains("/app  pending"), "{listed}");
    done(&repository, "apply --auto-approve");
    let listed = done(&repository, "state list");
    assert!(listed.contains("/app  applied"), "{listed}");
}

#[test]
fn destroy_refuses_a_plan_that_keeps_something() {
    let Some(repository) = wrapped() else {
        return;
    };
    done(&repository, "apply --auto-approve");
    repository.write_program(
        "/../bin/terraform",
        "#!/bin/sh\nPATH=${PATH#*:}\nfor word; do\n  shift\n  [ \"$word\" = -destroy ] || set -- \"$@\" \"$word\"\ndone\nexec terraform \"$@\"\n",
    );
    let why = "its plan should destroy everything but keeps `terraform_data.a`";
    fails(
        &repository,
        "destroy --auto-approve --allow-destroy=1",
        1,
        why,
    );
    assert!(!entry(&repository, "/app").is_null());
}

#[test]
fn apply_of_a_file_refuses_another_version_or_workspace_of_terraform() {
    let Some(repository) = wrapped() else {
        return;
    };
    done(&repository, "plan -o ../saved");
    repository.write("/../version", "{\"terraform_version\":\"1.99.0\"}");
    let said = fails(
        &repository,
        "apply ../saved",
        4,
        "  /app: planned with terraform ",
    );
    assert!(said.contains(", but the version is now 1.99.0"), "{said}");
    repository.write("/../version", "unreadable");
    fails(
        &repository,
        "apply ../saved",
        5,
        "failed to find the version of `",
    );
    repository.remove("/../version");
    let other = with(&repository, "apply ../saved", "TF_WORKSPACE", "other");
    assert_eq!(other.code(), 4, "{other}");
    let reason = "  /app: the workspace (`TF_WORKSPACE`) differs";
    assert!(other.stderr.contains(reason), "{other}");
    repository.write("/app/.terraform/environment", "other");
    fails(&repository, "apply ../saved", 4, reason);
    assert!(entry(&repository, "/app").is_null());
    repository.write("/app/.terraform/environment", "default");
    done(&repository, "apply ../saved");
}
