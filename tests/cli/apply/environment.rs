//! Plans in files that are applied in another environment than they were made in.

use std::fs;

use super::{acts, done, hook, log, project, world};
use crate::support::{Output, Repository, plan_contents};

/// Variables that stacks get, from the environment of `orch`.
const ENVIRONMENT: &str = r#"
orch {
  config {
    run {
      env {
        ZONE          = tm_try(env.Z, "a")
        PASSWORD      = tm_try(env.PW, "")
        SCRATCH       = "${terramate.root.path.fs.absolute}/scratch"
        VAULT_TOKEN   = tm_try(env.CI_TOKEN, "")
        TF_VAR_region = "eu"
      }
    }
  }
}
"#;

/// A project with two stacks that do not exist, and a plan of both that was made with these variables.
fn planned(variables: &[(&str, &str)]) -> Repository {
    let repository = project(&[("/a", ""), ("/b", "")]);
    repository.write("/env.orch.hcl", ENVIRONMENT);
    repository.commit();
    let plan = with(&repository, "plan -o ../saved", variables);
    assert_eq!(plan.code(), 0, "{plan}");
    log(&repository);
    repository
}

fn with(repository: &Repository, arguments: &str, variables: &[(&str, &str)]) -> Output {
    repository.orch_with(arguments, |orch| {
        orch.envs(variables.iter().copied());
    })
}

/// Asserts that the plan is stale with these variables, for these reasons, and that nothing runs.
#[track_caller]
fn stale(repository: &Repository, variables: &[(&str, &str)], reasons: &[&str]) {
    let output = with(repository, "apply ../saved", variables);
    assert_eq!(output.code(), 4, "{output}");
    let lines = output.stderr.lines();
    let named: Vec<&str> = lines.filter_map(|line| line.strip_prefix("  /")).collect();
    assert_eq!(named, reasons, "{output}");
    for (_, value) in variables.iter().filter(|(_, value)| value.len() > 3) {
        assert!(!output.stderr.contains(value), "{output}");
    }
    assert_eq!(log(repository), [""; 0]);
}

#[test]
fn apply_of_a_file_refuses_another_value_of_run_env() {
    let repository = planned(&[("Z", "prod-zone"), ("PW", "hunter2")]);
    let both = [
        "a: the variable `ZONE` differs",
        "b: the variable `ZONE` differs",
    ];
    stale(&repository, &[("Z", "dev-zone"), ("PW", "hunter2")], &both);
    let both = [
        "a: the variable `PASSWORD` differs",
        "b: the variable `PASSWORD` differs",
    ];
    stale(&repository, &[("Z", "prod-zone"), ("PW", "hunter3")], &both);
    let applied = with(
        &repository,
        "apply ../saved",
        &[("Z", "prod-zone"), ("PW", "hunter2")],
    );
    assert_eq!(applied.code(), 0, "{applied}");
    assert_eq!(world(&repository, "a").as_deref(), Some("1"));
}

#[test]
fn apply_of_a_file_refuses_other_variables_of_tools() {
    let repository = planned(&[("TF_VAR_size", "large"), ("TG_TF_PATH", "tofu")]);
    let reasons = |variable: &str| {
        ["a", "b"].map(|stack| format!("{stack}: the variable `{variable}` differs"))
    };
    for (size, path, more, variable) in [
        ("small", "tofu", "TF_LOG", "TF_VAR_size"),
        ("large", "terraform", "TF_LOG", "TG_TF_PATH"),
        ("large", "tofu", "TF_VAR_more", "TF_VAR_more"),
        ("large", "tofu", "TF_CLI_ARGS_plan", "TF_CLI_ARGS_plan"),
    ] {
        let variables = [("TF_VAR_size", size), ("TG_TF_PATH", path), (more, "trace")];
        let reasons = reasons(variable);
        stale(&repository, &variables, &[&*reasons[0], &*reasons[1]]);
    }
    let reasons = reasons("TF_VAR_size");
    let variables = [("TG_TF_PATH", "tofu")];
    stale(&repository, &variables, &[&*reasons[0], &*reasons[1]]);
}

#[test]
fn apply_of_a_file_allows_what_changes_nothing_of_the_plan() {
    let repository = planned(&[("CI_TOKEN", "first"), ("TF_HTTP_PASSWORD", "first")]);
    let variables = [
        ("CI_TOKEN", "second"),
        ("TF_HTTP_PASSWORD", "second"),
        ("TF_TOKEN_app_terraform_io", "second"),
        ("TF_LOG", "trace"),
        ("TF_CLI_ARGS_init", "-backend-config=password=second"),
        ("TF_PLUGIN_CACHE_DIR", "/elsewhere"),
        // `run.env` sets it.
        ("TF_VAR_region", "us"),
        ("OTHER", "second"),
    ];
    let applied = with(&repository, "apply ../saved", &variables);
    assert_eq!(applied.code(), 0, "{applied}");
    assert_eq!(acts(&repository), ["apply create a", "apply create b"]);
}

#[test]
fn apply_of_a_file_refuses_another_command_of_the_driver() {
    let repository = project(&[("/a", "driver = \"words\"")]);
    let drivers = "driver \"words\" {\n  plan = [\"sh\", \"../tool\", \"plan\"]\n  apply = [\"sh\", \"../tool\", \"apply\", tm_try(env.Z, \"\")]\n}\n";
    repository.write("/words.orch.hcl", drivers);
    repository.commit();
    let plan = with(&repository, "plan -o ../saved", &[("Z", "prod-zone")]);
    assert_eq!(plan.code(), 0, "{plan}");
    log(&repository);
    let reason = "a: the command `apply` of its driver differs";
    stale(&repository, &[("Z", "dev-zone")], &[reason]);
}

#[test]
fn apply_of_a_file_refuses_another_value_of_what_a_script_reads() {
    let repository = project(&[("/a", "driver = \"script\"")]);
    let drivers = "driver \"script\" {\n  plan = [\"sh\", \"../tool\", \"plan\"]\n  apply = [\"sh\", \"apply.sh\"]\n  destroy = [\"sh\", \"-c\", \"delete ${SIZE}\"]\n}\n";
    repository.write("/script.orch.hcl", drivers.replace("${SIZE}", "$${SIZE}"));
    repository.write(
        "/a/apply.sh",
        "world=$ZONE; echo $world $GITHUB_SHA > ../../world/a\n",
    );
    repository.commit();
    let before = [
        ("ZONE", "prod-zone"),
        ("GITHUB_SHA", "12345"),
        ("world", "x"),
    ];
    let plan = with(&repository, "plan -o ../saved", &before);
    assert_eq!(plan.code(), 0, "{plan}");
    log(&repository);
    stale(
        &repository,
        &[("ZONE", "dev-zone"), ("world", "x")],
        &["a: the variable `ZONE` differs"],
    );
    let more = [("ZONE", "prod-zone"), ("SIZE", "large"), ("world", "x")];
    stale(&repository, &more, &["a: the variable `SIZE` differs"]);
    let other_job = [
        ("ZONE", "prod-zone"),
        ("GITHUB_SHA", "67890"),
        ("world", "x"),
    ];
    let applied = with(&repository, "apply ../saved", &other_job);
    assert_eq!(applied.code(), 0, "{applied}");
    assert_eq!(
        world(&repository, "a").as_deref(),
        Some("prod-zone 67890\n")
    );
}

#[test]
fn apply_of_a_file_in_another_clone_has_the_same_environment() {
    let repository = planned(&[]);
    let outside = repository.outside();
    let other = outside.join("elsewhere");
    let root = repository.path("/");
    repository.git(&format!("clone -q {} {}", root.display(), other.display()));
    let file = outside.join("saved");
    let output = repository.orch_with(&format!("apply {}", file.display()), |orch| {
        orch.current_dir(&other);
    });
    assert_eq!(output.code(), 0, "{output}");
}

#[test]
fn plan_writes_no_value_of_the_environment_into_its_file() {
    let repository = planned(&[("Z", "prod-zone"), ("TF_VAR_secret", "hunter2")]);
    let read = || plan_contents(&fs::read(repository.outside().join("saved")).unwrap()).remove(0);
    let text = |json: Vec<u8>| String::from_utf8(json).unwrap();
    let first = text(read());
    assert!(first.contains("TF_VAR_secret"), "{first}");
    for value in ["prod-zone", "hunter2"] {
        assert!(!first.contains(value), "{first}");
    }
    // Equal values have other digests in another file.
    let again = [("Z", "prod-zone"), ("TF_VAR_secret", "hunter2")];
    assert_eq!(with(&repository, "plan -o ../saved", &again).code(), 0);
    let second = text(read());
    let digest = |text: &str| {
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        json["environment"]["host"]["TF_VAR_secret"].to_string()
    };
    assert_eq!(digest(&first).len(), 34);
    assert_ne!(digest(&first), digest(&second));
}

#[test]
fn apply_resume_compares_the_environment_of_what_is_left() {
    let repository = planned(&[("Z", "prod-zone")]);
    hook(&repository, "apply", "b", "exit 1");
    let failed = with(&repository, "apply ../saved", &[("Z", "prod-zone")]);
    assert_eq!(failed.code(), 1, "{failed}");
    let other = [("Z", "dev-zone")];
    let refused = with(&repository, "apply ../saved --resume", &other);
    assert_eq!(refused.code(), 4, "{refused}");
    assert!(
        refused.stderr.contains("/b: the variable `ZONE` differs"),
        "{refused}"
    );
    assert!(!refused.stderr.contains("/a: "), "{refused}");
}

#[test]
fn apply_of_a_file_of_an_earlier_version_compares_no_environment() {
    let repository = planned(&[("Z", "prod-zone")]);
    let file = repository.outside().join("saved");
    let earlier = crate::support::forge_plan(&fs::read(&file).unwrap(), |plan, _| {
        plan.as_object_mut().unwrap().remove("environment");
        for stack in plan["stacks"].as_array_mut().unwrap() {
            stack.as_object_mut().unwrap().remove("tool_version");
        }
    });
    fs::write(&file, earlier).unwrap();
    done(&repository, "apply ../saved");
}
