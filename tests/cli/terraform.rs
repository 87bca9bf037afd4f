//! Real terraform, where it is installed: its lock, and its questions.

use std::io::Write as _;
use std::process::{Command, Stdio};

use nix::sys::signal::{self, Signal};

use crate::support::{Background, Output, Sandbox, skipped, wait_until};

/// Stacks a, b and c, each with one resource that takes until somebody interrupts it; nothing where
/// terraform is not installed.
fn stacks(provisioner: &str) -> Option<Sandbox> {
    let version = Command::new("terraform").arg("version").output();
    if version.is_err() {
        skipped("terraform is not installed");
        return None;
    }
    let sandbox = Sandbox::layout(
        "
        a
        b
        c",
    );
    let main = format!("resource \"terraform_data\" \"this\" {{\n{provisioner}\n}}\n");
    for name in ["a", "b", "c"] {
        sandbox.write(&format!("/{name}/main.tf"), &main);
    }
    let output = terraform(&sandbox, "run -q terraform init -input=false");
    assert_eq!(output.code(), 0, "{output}");
    Some(sandbox)
}

fn terraform(sandbox: &Sandbox, arguments: &str) -> Output {
    sandbox.orch_with(arguments, |command| {
        offline(command);
    })
}

/// Terraform asks its maker for new versions unless it is told not to.
fn offline(command: &mut Command) {
    command.env("CHECKPOINT_DISABLE", "1");
}

const SLOW: &str =
    "  provisioner \"local-exec\" {\n    command = \"touch running; exec sleep 600\"\n  }";

fn interrupted(run: Background, sandbox: &Sandbox, interrupt: impl FnOnce(&Background)) {
    for name in ["a", "b"] {
        wait_until("terraform applies", || {
            sandbox.path(&format!("/{name}/running")).exists()
        });
        let lock = format!("/{name}/.terraform.tfstate.lock.info");
        assert!(sandbox.path(&lock).exists(), "it holds its lock");
    }
    interrupt(&run);
    let output = run.end();
    assert_eq!(output.code(), 130, "{output}");
    assert!(!sandbox.path("/c/running").exists(), "nothing new starts");
    for name in ["a", "b"] {
        let lock = format!("/{name}/.terraform.tfstate.lock.info");
        assert!(!sandbox.path(&lock).exists(), "{output}");
    }
    let plan = terraform(sandbox, "run -q terraform plan -input=false");
    assert_eq!(plan.code(), 0, "{plan}");
}

fn apply(sandbox: &Sandbox) -> Background<'_> {
    use std::os::unix::process::CommandExt as _;
    let arguments = "run -j 2 -- terraform apply -auto-approve -input=false";
    let mut command = sandbox.command(arguments);
    offline(&mut command);
    command.process_group(0).stdin(Stdio::null());
    Background::spawn(sandbox, command)
}

#[test]
fn an_interrupt_of_orch_alone_lets_terraform_give_up_its_lock() {
    let Some(sandbox) = stacks(SLOW) else {
        return;
    };
    let run = apply(&sandbox);
    interrupted(run, &sandbox, |run| run.signal(Signal::SIGINT));
}

#[test]
fn an_interrupt_of_the_whole_group_lets_terraform_give_up_its_lock() {
    let Some(sandbox) = stacks(SLOW) else {
        return;
    };
    let run = apply(&sandbox);
    interrupted(run, &sandbox, |run| {
        signal::killpg(run.pid(), Signal::SIGINT).unwrap();
    });
}

#[cfg(target_os = "linux")]
#[test]
fn terraform_asks_for_approval_in_each_stack() {
    let Some(sandbox) = stacks("") else {
        return;
    };
    let orch = crate::support::orch_program().display();
    let line = format!("'{orch}' run terraform apply -no-color");
    let Some(mut command) = sandbox.in_terminal(&line) else {
        return;
    };
    offline(&mut command);
    command.stdin(Stdio::piped());
    let mut run = Background::spawn(&sandbox, command);
    let mut keys = run.orch.stdin.take().unwrap();
    for (answer, n_asked) in [("yes\n", 1), ("yes\n", 2), ("no\n", 3)] {
        wait_until("terraform asks", || {
            let said = String::from_utf8_lossy(&run.log("out")).into_owned();
            said.matches("Enter a value:").count() == n_asked
        });
        keys.write_all(answer.as_bytes()).unwrap();
    }
    let output = run.end();
    drop(keys);
    assert_eq!(output.code(), 1, "the last one was refused: {output}");
    for (name, is_applied) in [("a", true), ("b", true), ("c", false)] {
        let state = sandbox.read(&format!("/{name}/terraform.tfstate"));
        assert_eq!(state.contains("terraform_data"), is_applied, "{output}");
    }
}

#[test]
fn create_all_terraform_leads_to_the_first_plan() {
    if Command::new("terraform").arg("version").output().is_err() {
        return skipped("terraform is not installed");
    }
    let sandbox = Sandbox::unmarked("");
    let backend = "terraform {\n  backend \"local\" {\n  }\n}\n";
    let resource = "resource \"terraform_data\" \"this\" {\n}\n";
    sandbox.write("/net/main.tf", format!("{backend}{resource}"));
    let call = "module \"label\" {\n  source = \"../modules/label\"\n}\n";
    sandbox.write("/app/main.tf", format!("{backend}{call}"));
    sandbox.write("/modules/label/main.tf", resource);
    sandbox.git_init();
    let created = terraform(&sandbox, "create --all-terraform");
    let expected = "created stack /app\ncreated stack /net\n";
    assert_eq!(created.to_string(), expected);
    let plan = terraform(&sandbox, "plan");
    assert_eq!(plan.code(), 0, "{plan}");
    let expected = "Plan: 2 to create. Resources: 2 to create.";
    assert!(plan.stdout.contains(expected), "{plan}");
}
