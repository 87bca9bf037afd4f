//! The README and the help topics tell the truth: their console blocks are run in the bundled example
//! and compared.

use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

/// A command of a console block and the output printed below it.
pub(crate) struct Transcript {
    pub(crate) command: String,
    pub(crate) output: String,
}

/// Returns the commands of the console blocks of a text.
pub(crate) fn transcripts(markdown: &str) -> Vec<Transcript> {
    let mut transcripts: Vec<Transcript> = Vec::new();
    let mut in_console = false;
    for line in markdown.lines() {
        if line.starts_with("```") {
            in_console = line == "```console";
        } else if !in_console {
        } else if let Some(command) = line.strip_prefix("$ ") {
            transcripts.push(Transcript {
                command: command.to_owned(),
                output: String::new(),
            });
        } else if let Some(transcript) = transcripts.last_mut() {
            transcript.output += line;
            transcript.output += "\n";
        }
    }
    transcripts
}

/// Durations and ids differ from run to run.
fn without_durations(output: &str) -> String {
    let mut cleaned = String::new();
    for line in output.lines() {
        let is_orch = line.starts_with("orch: ");
        let resumes = line.split_once(" orch run --resume ");
        if let Some((before, _)) = resumes.filter(|_| is_orch) {
            cleaned += &format!("{before} orch run --resume (run)\n");
            continue;
        }
        match line.rsplit_once(' ') {
            Some((rest, last))
                if is_orch
                    && last.ends_with('s')
                    && last.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                cleaned += rest;
                cleaned += " (time)";
            }
            _ => cleaned += line,
        }
        cleaned += "\n";
    }
    cleaned
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[cfg(unix)]
#[test]
fn every_console_block_shows_what_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(root.join("src/program/help")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            texts.push(path);
        }
    }
    // It makes the example a repository.
    texts.push(root.join("README.md"));
    let transcripts: Vec<(String, Transcript)> = texts
        .iter()
        .flat_map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let transcripts = transcripts(&std::fs::read_to_string(path).unwrap());
            transcripts
                .into_iter()
                .map(move |transcript| (name.clone(), transcript))
        })
        .collect();
    assert!(
        transcripts.len() >= 17,
        "only {} commands found",
        transcripts.len()
    );
    let directory = tempfile::tempdir().unwrap();
    let shop = directory.path().join("shop");
    for example in ["shop", "workspaces"] {
        let example = root.join("examples").join(example);
        copy(
            &example,
            &directory.path().join(example.file_name().unwrap()),
        );
    }
    let programs = cargo_bin("orch").parent().unwrap().to_owned();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    for (file, Transcript { command, output }) in transcripts {
        let result = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(&shop)
            // The texts show what a person sees, and these tests run in CI, too.
            .env_clear()
            .env("PATH", &path)
            .env("HOME", directory.path())
            .output()
            .unwrap();
        let actual = String::from_utf8(result.stdout).unwrap();
        // A blank line after the last diagnostic need not stand in the text.
        assert_eq!(
            without_durations(&output).trim_end(),
            without_durations(&actual).trim_end(),
            "of `{command}` in {file}"
        );
    }
}

#[test]
fn every_example_is_valid_and_has_an_order() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let expected = [
        (
            "environments",
            "prod/network\nprod/app\nstaging/network\nstaging/app\n",
        ),
        (
            "lifecycle",
            "legacy\nnetwork\nprod/database\nprod/app\nsite\n",
        ),
        ("releases", "lab\nlegacy\nnetwork\napp\n"),
        (
            "shop",
            "network\nnetwork/dns\ndatabase\nservices/cart\nservices/checkout\nmonitoring\n",
        ),
        ("terraform", "bucket\npolicy\n"),
        (
            "workspaces",
            "network[\"dev\"]\napp[\"dev\"]\nnetwork[\"prod\"]\napp[\"prod\"]\n",
        ),
    ];
    let mut projects = Vec::new();
    for entry in std::fs::read_dir(&examples).unwrap().map(Result::unwrap) {
        if entry.path().join("orch.orch.hcl").exists() {
            projects.push(entry.file_name().into_string().unwrap());
        }
    }
    projects.sort();
    assert_eq!(
        projects,
        expected.map(|(name, _)| name),
        "each example has its test"
    );
    for (name, order) in expected {
        let orch = |arguments: &[&str]| {
            let output = Command::new(cargo_bin("orch"))
                .arg("-C")
                .arg(examples.join(name))
                .args(arguments)
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{name}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8(output.stdout).unwrap()
        };
        orch(&["validate"]);
        assert_eq!(orch(&["list", "--order"]), order, "{name}");
        assert_eq!(
            orch(&["run", "--dry-run", "cargo"]).lines().count(),
            order.lines().count()
        );
    }
}

#[test]
fn the_environments_example_hands_settings_down() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/environments");
    let output = Command::new(cargo_bin("orch"))
        .arg("-C")
        .arg(example)
        .args(["env", "--format", "json"])
        .output()
        .unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |path: &str, name: &str| {
        let stacks = document["stacks"].as_array().unwrap();
        let stack = stacks.iter().find(|stack| stack["path"] == path).unwrap();
        stack["env"][name].clone()
    };
    assert_eq!(of("/prod/app", "APP_REGION"), "eu-west-1");
    assert_eq!(of("/staging/app", "APP_REGION"), "eu-central-1");
    assert_eq!(of("/prod/app", "AUDIT_LOG"), "audit/app.log");
    assert_eq!(of("/staging/app", "AUDIT_LOG"), serde_json::Value::Null);
    assert_eq!(of("/staging/network", "APP_STACK"), "staging-network");
}

#[test]
#[expect(clippy::print_stderr, reason = "whoever runs the tests wants to know")]
fn the_terraform_example_applies_in_order_and_is_destroyed_in_reverse() {
    if Command::new("terraform").arg("version").output().is_err() {
        eprintln!("skipped: there is no terraform on the PATH");
        return;
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/terraform");
    let directory = tempfile::tempdir().unwrap();
    copy(&example, directory.path());
    let orch = |arguments: &[&str]| {
        let output = Command::new(cargo_bin("orch"))
            .arg("-C")
            .arg(directory.path())
            .args(arguments)
            .env("TF_IN_AUTOMATION", "1")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    orch(&["run", "terraform", "init", "-no-color"]);
    orch(&["run", "terraform", "apply", "-auto-approve", "-no-color"]);
    let outputs = orch(&["-C", "bucket", "run", "terraform", "output", "-json"]);
    let outputs: serde_json::Value = serde_json::from_str(&outputs).unwrap();
    assert_eq!(outputs["name"]["value"], "a-bucket");
    orch(&[
        "run",
        "--reverse",
        "terraform",
        "destroy",
        "-auto-approve",
        "-no-color",
    ]);
}

#[test]
fn the_help_has_the_stack_of_the_workspaces_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("examples/workspaces/network/stack.orch.hcl");
    let text = std::fs::read_to_string(file).unwrap();
    let topic = std::fs::read_to_string(root.join("src/program/help/instances.md")).unwrap();
    assert!(topic.contains(&format!("```hcl\n{text}```\n")), "{text}");
}

#[test]
#[expect(clippy::print_stderr, reason = "whoever runs the tests wants to know")]
fn the_workspaces_example_applies_all_instances_at_once_each_in_its_workspace() {
    if Command::new("terraform").arg("version").output().is_err() {
        eprintln!("skipped: there is no terraform on the PATH");
        return;
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/workspaces");
    let directory = tempfile::tempdir().unwrap();
    copy(&example, directory.path());
    let orch = |arguments: &str| {
        let output = Command::new(cargo_bin("orch"))
            .arg("-C")
            .arg(directory.path())
            .args(arguments.split(' '))
            .env("TF_IN_AUTOMATION", "1")
            .env("CHECKPOINT_DISABLE", "1")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {stderr}");
        (
            String::from_utf8(output.stdout).unwrap(),
            stderr.into_owned(),
        )
    };
    orch("run -j 4 -- terraform init -input=false -no-color");
    let apply = "run -j 4 -- terraform apply -auto-approve -input=false -no-color";
    let (_, said) = orch(apply);
    assert!(
        said.contains("orch: 4 succeeded (4 with changes)"),
        "{said}"
    );
    for stack in ["network", "app"] {
        for key in ["dev", "prod"] {
            let state = format!("{stack}/terraform.tfstate.d/{key}/terraform.tfstate");
            let state = std::fs::read_to_string(directory.path().join(state)).unwrap();
            assert!(state.contains(&format!("{key}-{stack}")), "{state}");
        }
    }
    let state = directory.path().join("network/terraform.tfstate");
    assert!(!state.exists(), "nothing is in the default workspace");
    let (names, _) = orch("-C network run -q -- terraform output -json name");
    let names: Vec<&str> = names.lines().collect();
    assert_eq!(
        names,
        [
            "\"dev-network in eu-west-1\"",
            "\"prod-network in eu-north-1\""
        ]
    );
    let (_, said) = orch(apply);
    assert!(said.contains("orch: no changes in 4 stacks"), "{said}");
    orch("run -j 4 --reverse --tags dev -- terraform destroy -auto-approve -input=false -no-color");
    let (_, said) = orch("run -j 4 -- terraform plan -input=false -no-color");
    assert!(said.contains("orch: no changes in 2 stacks"), "{said}");
}
