//! Commands that go on after `orch` was killed.

use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{self, Signal};
use serde_json::Value;

use crate::support::{Background, Repository, Sandbox, run_ids, skipped, wait_until};

/// More than a pipe holds.
const MUCH: &str = "echo first\necho other >&2\ntouch \"$ORCH_ROOT/ready\"\nawait go\ni=0\nwhile [ $i -lt 4000 ]; do\n  echo \"line $i of more than a pipe holds, by far\" && echo \"problem $i\" >&2 || exit 9\n  i=$((i + 1))\ndone\necho last\ntouch \"$ORCH_ROOT/ended\"\n";

/// Returns the log of the only stack of the newest run.
fn log(sandbox: &Sandbox) -> String {
    let run = run_ids(sandbox).pop().unwrap();
    sandbox.read(&format!("/.orch/runs/{run}/logs/0001-a.log"))
}

#[test]
fn run_that_is_killed_leaves_its_command_alone_in_every_output_mode() {
    let modes = [
        "--output grouped",
        "--output prefixed",
        "--output errors",
        "--output none",
        "--output grouped --pty",
        "--output live",
    ];
    for (at, flags) in modes.into_iter().enumerate() {
        let sandbox = Sandbox::layout("a");
        let run = Background::run(&sandbox, flags, MUCH);
        wait_until("it is ready", || sandbox.path("/ready").exists());
        // Live output has no log, and is in the group of `orch` if that has a terminal.
        let is_live = flags.contains("live");
        if !is_live {
            wait_until("its log begins", || log(&sandbox).contains("other"));
        }
        if at % 2 == 0 {
            signal::killpg(run.pid(), Signal::SIGKILL).unwrap();
        }
        run.kill();
        let refused = sandbox.orch("run true");
        assert_eq!(refused.code(), 4, "{flags}: {refused}");
        let said = "orch was killed during run";
        assert!(refused.stderr.contains(said), "{flags}: {refused}");
        sandbox.write("/go", "");
        wait_until("it ends by itself", || sandbox.path("/ended").exists());
        if !is_live {
            // The last line can come before lines of the other stream.
            wait_until("its log is whole", || log(&sandbox).lines().count() >= 8003);
            let log = log(&sandbox);
            assert_eq!(log.lines().count(), 8003, "{flags}");
            for line in ["line 3999 of", "problem 3999\n", "last\n"] {
                assert!(log.contains(line), "{flags}");
            }
        }
        let next = sandbox.orch("run true");
        assert_eq!(next.code(), 0, "{flags}: {next}");
    }
}

/// Somebody has killed the process that keeps output: the next command gets a new one.
#[cfg(target_os = "linux")]
#[test]
fn run_keeps_the_output_of_a_command_after_its_keeper_was_killed() {
    let sandbox = Sandbox::layout("a\nb");
    let script = "case $ORCH_STACK_PATH in\n  /a) touch \"$ORCH_ROOT/first\"; await on ;;\n  *) touch \"$ORCH_ROOT/ready\"; await go; echo one; echo two; touch \"$ORCH_ROOT/ended\" ;;\nesac\n";
    let run = Background::run(&sandbox, "--output grouped", script);
    wait_until("the first command runs", || sandbox.path("/first").exists());
    let orch = run.pid();
    let read = |process: &Path, file: &str| {
        let text = std::fs::read_to_string(process.join(file));
        text.unwrap_or_default()
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    let processes = processes.map(|process| process.unwrap().path());
    let mut keepers = processes.filter(|process| {
        read(process, "cmdline").starts_with("orch\0")
            && read(process, "status").contains(&format!("\nPPid:\t{orch}\n"))
    });
    let keeper = keepers.next().unwrap();
    let name = keeper.file_name().and_then(|name| name.to_str()).unwrap();
    let process = nix::unistd::Pid::from_raw(name.parse().unwrap());
    signal::kill(process, Signal::SIGKILL).unwrap();
    // Its socket takes messages until the last of its threads has ended.
    wait_until("the keeper has died", || {
        let threads = std::fs::read_dir(keeper.join("task"));
        let n_threads = threads.map_or(0, Iterator::count);
        n_threads == 0 || n_threads == 1 && read(&keeper, "status").contains("State:\tZ")
    });
    sandbox.write("/on", "");
    wait_until("the second command runs", || {
        sandbox.path("/ready").exists()
    });
    run.kill();
    sandbox.write("/go", "");
    wait_until("it ends by itself", || sandbox.path("/ended").exists());
    let id = run_ids(&sandbox).pop().unwrap();
    let log = format!("/.orch/runs/{id}/logs/0002-b.log");
    wait_until("its log is whole", || sandbox.read(&log).contains("two\n"));
}

#[test]
fn runs_logs_tells_the_streams_apart_that_were_kept_after_a_kill() {
    let sandbox = Sandbox::layout("a");
    let run = Background::run(&sandbox, "--output grouped", MUCH);
    wait_until("it is ready", || sandbox.path("/ready").exists());
    wait_until("its log begins", || log(&sandbox).contains("other"));
    run.kill();
    sandbox.write("/go", "");
    wait_until("its log is whole", || log(&sandbox).contains("last\n"));
    let run = run_ids(&sandbox).pop().unwrap();
    let logs = sandbox.orch(&format!("runs logs {run} a"));
    assert_eq!(logs.stdout.lines().count(), 4002, "{}", logs.stdout);
    assert!(!logs.stdout.contains("problem"));
    let problems = logs.stderr.lines().filter(|it| it.starts_with("problem"));
    assert_eq!(problems.count(), 4000);
}

#[test]
fn second_checkout_leaves_the_lock_to_a_killed_run_until_its_command_has_ended() {
    let sandbox = Sandbox::layout("a");
    let state = "orch {\n  config {\n    state {\n      project = \"acme\"\n      backend \"local\" {\n        path = \"../state.json\"\n      }\n    }\n  }\n}\n";
    sandbox.write("/state.orch.hcl", state);
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("state init").code(), 0);
    let elsewhere = repository.outside().join("elsewhere");
    repository.git(&format!("clone -q . {}", elsewhere.display()));
    let elsewhere = |arguments: &str| {
        repository.orch_with(arguments, |command| {
            command.current_dir(&elsewhere);
        })
    };
    let script = ": > \"$ORCH_ROOT/ready\"\nawait go\n: > \"$ORCH_ROOT/ended\"\n";
    let run = Background::run(&repository, "--record -X --output none", script);
    wait_until("it is ready", || repository.path("/ready").exists());
    signal::killpg(run.pid(), Signal::SIGKILL).unwrap();
    run.kill();
    for command in ["run -X --record true", "state forget a"] {
        let refused = elsewhere(command);
        assert_eq!(refused.code(), 4, "{refused}");
        let said = "orch was killed during that run, but a process of it is still running";
        assert!(refused.stderr.contains(said), "{refused}");
    }
    repository.write("/go", "");
    let next = elsewhere("run -X --record --lock-timeout 1m true");
    assert_eq!(next.code(), 0, "{next}");
    assert!(repository.path("/ended").exists());
    assert!(
        next.stderr
            .contains("was killed while it held the state lock"),
        "{next}"
    );
}

const TWO: &str = r#"resource "terraform_data" "first" {
  provisioner "local-exec" {
    command = "touch ../first; until [ -e ../go ]; do sleep 0.05; done; echo went"
  }
}

resource "terraform_data" "second" {
  input = terraform_data.first.id
}
"#;

#[test]
fn apply_that_is_killed_loses_nothing_of_the_state_of_the_tool() {
    if Command::new("terraform").arg("version").output().is_err() {
        return skipped("there is no terraform on the PATH");
    }
    for with_state in [false, true] {
        let sandbox = Sandbox::layout("web");
        sandbox.write(
            "/.gitignore",
            "*.tfstate*\n.terraform*\n/first\n/go\n/.orch\n",
        );
        sandbox.write("/web/main.tf", TWO);
        if with_state {
            let state =
                "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";
            sandbox.write("/state.orch.hcl", state);
        }
        let repository = Repository::of(sandbox);
        if with_state {
            assert_eq!(repository.orch("state init").code(), 0);
        }
        let mut command = repository.command("apply --auto-approve");
        command.stdin(Stdio::null());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let apply = Background::spawn(&repository, command);
        wait_until("it is at work", || repository.path("/first").exists());
        signal::killpg(apply.pid(), Signal::SIGKILL).unwrap();
        apply.kill();
        let refused = repository.orch("apply --auto-approve");
        assert_eq!(refused.code(), 4, "{refused}");
        assert!(
            refused.stderr.contains("orch was killed during run"),
            "{refused}"
        );
        assert!(refused.stderr.contains("/web"), "{refused}");
        repository.write("/go", "");
        let lock = repository.path("/web/.terraform.tfstate.lock.info");
        wait_until("the tool has ended", || !lock.exists());
        let state = std::fs::read(repository.path("/web/terraform.tfstate")).unwrap();
        let state: Value = serde_json::from_slice(&state).unwrap();
        assert_eq!(state["resources"].as_array().unwrap().len(), 2, "{state}");
        wait_until("the lock is free", || repository.orch("plan").code() == 0);
        let next = repository.orch("apply --auto-approve");
        assert_eq!(next.code(), 0, "{next}");
        assert!(
            next.stderr.contains("nothing to do") || with_state,
            "{next}"
        );
        let after = std::fs::read(repository.path("/web/terraform.tfstate")).unwrap();
        let after: Value = serde_json::from_slice(&after).unwrap();
        assert_eq!(
            after["resources"], state["resources"],
            "nothing is made again"
        );
    }
}
