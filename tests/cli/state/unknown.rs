//! Commands of `orch run` that do only a part of their work, or something else than they seem to.

use std::process::Command;

use serde_json::Value;

use crate::support::{Repository, Sandbox, skipped};

const STATE: &str = "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";

const TWO: &str = "resource \"terraform_data\" \"a\" {\n  input = 1\n}\n\nresource \"terraform_data\" \"b\" {\n  input = 1\n}\n";

/// A project with a stack `/app` of real Terraform, of which nothing exists; nothing where there is no Terraform.
fn project() -> Option<Repository> {
    if Command::new("terraform").arg("version").output().is_err() {
        skipped("there is no terraform on the PATH");
        return None;
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/.gitignore", "*.tfstate*\n.terraform*\n*.tfplan\n");
    sandbox.write("/app/stack.orch.hcl", "stack {\n}\n");
    sandbox.write("/app/main.tf", TWO);
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    done(&repository, "run -q -X terraform init");
    Some(repository)
}

fn done(repository: &Repository, arguments: &str) {
    done_with(repository, arguments, ("UNUSED", ""));
}

fn done_with(repository: &Repository, arguments: &str, (variable, value): (&str, &str)) {
    let output = repository.orch_with(arguments, |orch| {
        orch.env(variable, value);
    });
    assert_eq!(output.code(), 0, "{arguments}: {output}");
}

/// Returns the status of `/app` and why, and how many resources Terraform has.
fn stands(repository: &Repository) -> (String, String, usize) {
    let list = repository.orch("state list --format json").json();
    let stack = &list["stacks"][0];
    let text = |name: &str| stack[name].as_str().unwrap_or_default().to_owned();
    let resources = std::fs::read(repository.path("/app/terraform.tfstate")).unwrap_or_default();
    let resources: Value = serde_json::from_slice(&resources).unwrap_or_default();
    let n_resources = resources["resources"].as_array().map_or(0, Vec::len);
    (text("status"), text("why"), n_resources)
}

#[test]
fn run_records_a_partial_or_empty_destroy_as_unknown() {
    let Some(repository) = project() else { return };
    let destroy = "run -q -X terraform destroy -auto-approve";
    for (command, variable, left, option) in [
        (
            format!("{destroy} -target=terraform_data.a"),
            ("UNUSED", ""),
            1,
            "-target",
        ),
        (
            destroy.to_owned(),
            ("TF_CLI_ARGS_destroy", "-target=terraform_data.a"),
            1,
            "-target",
        ),
        (format!("{destroy} -help"), ("UNUSED", ""), 2, "-help"),
        (
            "run -q -X --record=destroy terraform destroy -auto-approve -target=terraform_data.b"
                .to_owned(),
            ("UNUSED", ""),
            1,
            "-target",
        ),
        (
            "run -q -X terraform apply -auto-approve -refresh-only".to_owned(),
            ("UNUSED", ""),
            2,
            "-refresh-only",
        ),
    ] {
        done(&repository, "run -q -X terraform apply -auto-approve");
        assert_eq!(
            stands(&repository),
            ("applied".to_owned(), String::new(), 2)
        );
        done_with(&repository, &command, variable);
        let (status, why, n_resources) = stands(&repository);
        assert_eq!((&*status, n_resources), ("pending", left), "{command}");
        assert!(
            why.contains(&format!("ran with `{option}`")),
            "{command}: {why}"
        );
        // It stays pending until all of it is known again.
        let changed = repository.orch("list --changed --base applied");
        assert_eq!(changed.stdout, "app\n", "{changed}");
    }
    // The tool is asked, and finds nothing to do.
    done(&repository, "apply --auto-approve");
    assert_eq!(stands(&repository).0, "applied");
    // What is really destroyed is removed from the state.
    done(&repository, "run -q -X terraform destroy -auto-approve");
    assert_eq!(stands(&repository).2, 0);
    let list = repository.orch("state list --format json").json();
    assert_eq!(list["stacks"], serde_json::json!([]));
}

#[test]
fn run_does_not_record_an_apply_that_only_helps_as_applied() {
    let Some(repository) = project() else { return };
    done(&repository, "run -q -X terraform apply -help");
    let (status, why, n_resources) = stands(&repository);
    assert_eq!((&*status, n_resources), ("pending", 0), "{why}");
    done(
        &repository,
        "run -q -X terraform apply -auto-approve -target=terraform_data.a",
    );
    assert_eq!(
        (stands(&repository).0.as_str(), stands(&repository).2),
        ("pending", 1)
    );
    // Its code goes, and the state still has it.
    repository.write("/other/stack.orch.hcl", "stack {\n}\n");
    done(&repository, "run -q -X --match other --record true");
    repository.remove("/app/main.tf");
    repository.remove("/app/stack.orch.hcl");
    repository.commit();
    let list = repository.orch("state list --format json").json();
    assert_eq!(list["stacks"][0]["status"], "absent", "{list}");
}

#[test]
fn run_records_a_plan_file_of_the_tool_as_what_it_does() {
    let Some(repository) = project() else { return };
    let plan = |words: &str| {
        done(
            &repository,
            &format!("run -q -X terraform plan -out=p.tfplan {words}"),
        );
    };
    let apply = || done(&repository, "run -q -X terraform apply p.tfplan");
    plan("-target=terraform_data.a");
    apply();
    let (status, why, n_resources) = stands(&repository);
    assert_eq!((&*status, n_resources), ("pending", 1));
    assert!(why.contains("used an incomplete plan file"), "{why}");
    plan("");
    apply();
    assert_eq!(
        stands(&repository),
        ("applied".to_owned(), String::new(), 2)
    );
    plan("-refresh-only");
    apply();
    assert_eq!(stands(&repository).0, "pending");
    plan("-destroy -target=terraform_data.a");
    apply();
    assert_eq!(
        (stands(&repository).0.as_str(), stands(&repository).2),
        ("pending", 1)
    );
    // A variable can hold the name of the file.
    plan("");
    done_with(
        &repository,
        "run -q -X terraform apply",
        ("TF_CLI_ARGS_apply", "p.tfplan"),
    );
    assert_eq!(
        stands(&repository),
        ("applied".to_owned(), String::new(), 2)
    );
    plan("-destroy");
    apply();
    let list = repository.orch("state list --format json").json();
    assert_eq!(list["stacks"], serde_json::json!([]));
}

/// Returns why the last attempt in `/app` is unknown; nothing if it is not.
fn unknown(repository: &Repository) -> Option<String> {
    let list = repository.orch("state list --format json").json();
    let attempt = &list["stacks"][0]["last"];
    let is_unknown = attempt["outcome"] == "unknown";
    is_unknown.then(|| attempt["failure"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn run_records_a_partial_or_empty_use_of_a_tool_behind_a_wrapper_as_unknown() {
    let Some(repository) = project() else { return };
    let record = "      record {\n        destroy = [\"env terraform destroy\"]\n      }\n";
    let block = STATE.replace("      project", &format!("{record}      project"));
    repository.write("/state.orch.hcl", block);
    let target = ("TF_CLI_ARGS_destroy", "-target=terraform_data.a");
    let none = ("UNUSED", "");
    let destroy = "terraform destroy -auto-approve";
    for (command, variable, option) in [
        (
            format!("--record=destroy -- env {destroy} -target=terraform_data.a"),
            none,
            "-target",
        ),
        (
            format!("--record=destroy -- env {destroy} -help"),
            none,
            "-help",
        ),
        (
            format!("-- env {destroy} -target=terraform_data.a"),
            none,
            "-target",
        ),
        (
            format!("--record=destroy -- nice {destroy}"),
            target,
            "-target",
        ),
        (
            format!(
                "--record=destroy -- env {}={} {destroy}",
                target.0, target.1
            ),
            none,
            "-target",
        ),
        (
            "--record -- sh -c 'terraform apply -auto-approve -target=terraform_data.a'".to_owned(),
            none,
            "-target",
        ),
        (
            "--record -- sh -c 'cd ../other && terraform apply -auto-approve'".to_owned(),
            none,
            "-chdir",
        ),
    ] {
        repository.write("/other/main.tf", "");
        done(&repository, "run -q -X terraform apply -auto-approve");
        assert_eq!(unknown(&repository), None);
        done_with(&repository, &format!("run -q -X {command}"), variable);
        assert_eq!(unknown(&repository).as_deref(), Some(option), "{command}");
    }
    done(&repository, &format!("run -q -X -- env {destroy}"));
    let list = repository.orch("state list --format json").json();
    assert_eq!(list["stacks"], serde_json::json!([]));
}

#[test]
fn run_records_a_plan_file_of_other_inputs_as_unknown() {
    let Some(repository) = project() else { return };
    let main = "variable \"v\" {\n  default = \"x\"\n}\n\nvariable \"l\" {\n  type    = list(number)\n  default = []\n}\n\n\
                module \"m\" {\n  source = \"../m\"\n}\n\nresource \"terraform_data\" \"a\" {\n  input = [var.v, var.l, 1]\n}\n";
    let module = "resource \"terraform_data\" \"b\" {\n  input = 1\n}\n";
    repository.write("/app/main.tf", main);
    repository.write("/m/main.tf", module);
    done(&repository, "run -q -X terraform init");
    let plan = |variable| {
        done_with(
            &repository,
            "run -q -X terraform plan -out=p.tfplan",
            variable,
        );
    };
    let apply = |variable| {
        done_with(&repository, "run -q -X terraform apply p.tfplan", variable);
        unknown(&repository)
    };
    let outdated = Some("outdated-plan".to_owned());
    let none = ("UNUSED", "");
    plan(none);
    assert_eq!(apply(none), None);
    for (file, before, after) in [
        ("/app/main.tf", main.to_owned(), main.replace("1]", "2]")),
        ("/m/main.tf", module.to_owned(), module.replace('1', "2")),
        ("/app/more.tf", String::new(), "locals {\n}\n".to_owned()),
        (
            "/app/terraform.tfvars",
            "v = \"y\"\n".to_owned(),
            "v = \"z\"\n".to_owned(),
        ),
        (
            "/app/x.auto.tfvars.json",
            "{\"l\": [1]}".to_owned(),
            "{\"l\": [1, 2]}".to_owned(),
        ),
    ] {
        repository.write(file, &before);
        plan(none);
        repository.write(file, &after);
        assert_eq!(apply(none), outdated, "{file}");
        plan(none);
        assert_eq!(apply(none), None, "{file}");
    }
    repository.remove("/app/more.tf");
    plan(none);
    assert_eq!(apply(none), None);
    repository.remove("/app/terraform.tfvars");
    repository.remove("/app/x.auto.tfvars.json");
    for (name, value, other) in [("TF_VAR_v", "7", "8"), ("TF_VAR_l", "[2, 1]", "[1, 2]")] {
        plan((name, value));
        assert_eq!(apply((name, other)), outdated, "{name}");
        plan((name, value));
        assert_eq!(apply((name, value)), None, "{name}");
    }
    // Whatever it was made of, it destroys everything.
    done(
        &repository,
        "run -q -X terraform plan -destroy -out=p.tfplan",
    );
    repository.write("/app/main.tf", main.replace("1]", "3]"));
    done(&repository, "run -q -X terraform apply p.tfplan");
    let list = repository.orch("state list --format json").json();
    assert_eq!(list["stacks"], serde_json::json!([]));
}

#[test]
fn run_records_a_plan_file_without_resources_as_applied() {
    let Some(repository) = project() else { return };
    repository.write(
        "/app/main.tf",
        "resource \"terraform_data\" \"a\" {\n  count = 0\n}\n",
    );
    for (words, expected) in [("-refresh-only", Some("partial-plan")), ("", None)] {
        done(
            &repository,
            &format!("run -q -X terraform plan -out=p.tfplan {words}"),
        );
        done(&repository, "run -q -X terraform apply p.tfplan");
        assert_eq!(unknown(&repository).as_deref(), expected, "{words}");
    }
    assert_eq!(stands(&repository).0, "applied");
}

#[test]
fn run_that_uses_another_backend_than_recorded_is_unknown() {
    let Some(repository) = project() else { return };
    repository.write("/other/main.tf", TWO);
    repository.commit();
    let none = ("UNUSED", "");
    let destroy = "terraform destroy -auto-approve";
    for (command, variable, why) in [
        (destroy.to_owned(), ("TF_WORKSPACE", "x"), "other-backend"),
        (
            "terraform apply -auto-approve".to_owned(),
            ("TF_WORKSPACE", "typo"),
            "other-backend",
        ),
        (
            format!("--record=destroy -- env TF_WORKSPACE=x {destroy}"),
            none,
            "other-backend",
        ),
        (format!("{destroy} -state=other.tfstate"), none, "-state"),
        (
            "terraform -chdir=../other destroy -auto-approve".to_owned(),
            none,
            "-chdir",
        ),
    ] {
        done(&repository, "apply --auto-approve");
        assert_eq!(unknown(&repository), None);
        done_with(&repository, &format!("run -q -X {command}"), variable);
        assert_eq!(unknown(&repository).as_deref(), Some(why), "{command}");
        assert_eq!(stands(&repository).2, 2, "{command}");
    }
    done(&repository, "apply --auto-approve");
    let plan = "run -q -X terraform plan -out=p.tfplan";
    let workspace = ("TF_WORKSPACE", "y");
    done_with(&repository, plan, workspace);
    done_with(&repository, "run -q -X terraform apply p.tfplan", workspace);
    assert_eq!(unknown(&repository).as_deref(), Some("other-backend"));
    done(&repository, plan);
    done(&repository, "run -q -X terraform apply p.tfplan");
    assert_eq!(unknown(&repository), None);
    done(
        &repository,
        &format!("run -q -X terraform -chdir=../app {}", &destroy[10..]),
    );
    let list = repository.orch("state list --format json").json();
    assert_eq!(list["stacks"], serde_json::json!([]));
}

#[test]
fn run_refuses_a_plan_file_that_destroys_what_is_protected_or_used() {
    let Some(repository) = project() else { return };
    repository.write("/db/stack.orch.hcl", "stack {\n  after = [\"/app\"]\n}\n");
    repository.write("/db/main.tf", TWO);
    repository.commit();
    done(&repository, "run -q -X terraform init");
    done(&repository, "apply --auto-approve");
    let apply = "run -q --disable-safeguards=git --match app terraform apply p.tfplan";
    for words in ["", "-target=terraform_data.a"] {
        let plan = format!("run -q -X terraform plan -destroy -out=p.tfplan {words}");
        done(&repository, &plan);
        let refused = repository.orch(apply);
        assert_eq!(refused.code(), 4, "{refused}");
        assert!(refused.stderr.contains("/db"), "{refused}");
        assert_eq!(stands(&repository).2, 2);
    }
    repository.write(
        "/app/stack.orch.hcl",
        "stack {\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n",
    );
    for no_record in ["", "--no-record"] {
        let refused = repository.orch(
            &apply
                .replace("--match", &format!("-X {no_record} --match"))
                .replace("--disable-safeguards=git ", ""),
        );
        assert_eq!(refused.code(), 4, "{refused}");
        assert!(
            refused.stderr.contains("`p.tfplan` destroys it"),
            "{refused}"
        );
        assert_eq!(stands(&repository).2, 2);
    }
}

#[test]
fn run_does_not_apply_a_plan_file_that_has_changed_since_it_was_shown() {
    let sandbox = Sandbox::new("");
    sandbox.write("/app/stack.orch.hcl", "stack {\n}\n");
    sandbox.write("/app/p.tfplan", "a plan\n");
    let tool = "#!/bin/sh\nif [ $1 = show ]; then echo >> p.tfplan; else touch applied; fi\n";
    sandbox.write("/state.orch.hcl", STATE);
    let repository = Repository::of(sandbox);
    repository.write_program("/../terraform", tool);
    done(&repository, "state init");
    let output = repository.orch("run -q -X ../../terraform apply p.tfplan");
    assert_eq!(output.code(), 1, "{output}");
    assert!(output.stderr.contains("has changed since"), "{output}");
    assert!(!repository.path("/app/applied").exists());
}

#[test]
fn run_records_a_plan_file_that_the_tool_cannot_show_as_unknown() {
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/app/stack.orch.hcl", "stack {\n}\n");
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    for show in ["exit 1", "echo no JSON", "exit 0"] {
        let tool = format!("#!/bin/sh\n[ $1 != show ] || {{ {show}; exit; }}\n");
        repository.write_program("/../terraform", &tool);
        done(&repository, "run -q -X ../../terraform apply p.tfplan");
        let (status, why, _) = stands(&repository);
        assert_eq!(status, "pending", "{why}");
        assert!(why.contains("could not show"), "{why}");
    }
}

#[test]
fn run_notes_that_a_tool_behind_a_wrapper_is_not_recorded() {
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/app/stack.orch.hcl", "stack {\n}\n");
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    repository.write_program("/../terraform", "#!/bin/sh\nexit 0\n");
    for command in [
        "env ../../terraform apply",
        "sh -c '../../terraform apply'",
        "nice ../../terraform destroy",
        "sh -c '\"../../terraform\" apply'",
        "sh -c '../../terraform apply>/dev/null'",
    ] {
        let output = repository.orch(&format!("run -q -X -- {command}"));
        assert_eq!(output.code(), 0, "{output}");
        let said = "note: this run takes no lock and is not recorded in the state";
        assert!(output.stderr.contains(said), "{command}: {output}");
        assert!(output.stderr.contains("`--record`"), "{command}: {output}");
    }
    for command in [
        "--record -- env ../../terraform apply",
        "--no-record -- env ../../terraform apply",
        "-- env ../../terraform plan",
        "-- ../../terraform apply",
        "-- sh -c true",
    ] {
        let output = repository.orch(&format!("run -q -X {command}"));
        assert!(!output.stderr.contains("note:"), "{command}: {output}");
    }
    // The two settings.
    for (list, is_recorded) in [("apply", true), ("never", false)] {
        let record = format!(
            "      record {{\n        {list} = [\"env ../../terraform apply\"]\n      }}\n"
        );
        let block = STATE.replace("      project", &format!("{record}      project"));
        repository.write("/state.orch.hcl", block);
        done(&repository, "state forget /app");
        let output = repository.orch("run -q -X -- env ../../terraform apply");
        assert!(!output.stderr.contains("note:"), "{output}");
        assert_eq!(stands(&repository).0 == "applied", is_recorded, "{output}");
    }
}
