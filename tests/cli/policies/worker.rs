//! The process in which policies are evaluated: what it knows, what its death costs, and when it ends.

use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use orch::policy::{ListKind, PolicyNumber, Worker};
use serde_json::json;
use serde_json::value::to_raw_value;

const ENDLESS: &str = "package p
r := numbers.range(1, 3000)
sample if { some i in r; some j in r; some k in r; i * j * k == -1 }
";

const NAMES: &str = "package p
trigger contains s.id if some s in input.stacks
flag contains input.run
";

fn worker() -> Worker {
    Worker::new(vec![cargo_bin("orch").into(), "policy-worker".into()])
}

fn load(worker: &mut Worker, text: &str) -> PolicyNumber {
    let loaded = worker.load("p.rego", text, Duration::from_mins(1)).unwrap();
    loaded.unwrap().0
}

#[test]
fn policy_evaluation_works_after_a_worker_has_died() {
    let mut worker = worker();
    let names = load(&mut worker, NAMES);
    let policies = [
        (ENDLESS, "takes longer than 200ms"),
        ("package p\ntrigger := 1", "`trigger` must be"),
        (ENDLESS, "takes longer than 200ms"),
    ];
    let policies = policies.map(|(text, problem)| (load(&mut worker, text), problem));
    // Deeper than its stack.
    let signs = format!("package p\nx := {}1\n", "-".repeat(200_000));
    let crashed = worker.load("signs.rego", &signs, Duration::from_mins(1));
    let crashed = crashed.unwrap().unwrap_err();
    let said = crashed.problems()[0].1.in_file("signs.rego");
    assert_eq!(said, "signs.rego: loading it crashes the interpreter");
    for (position, id) in ["a", "b"].into_iter().enumerate() {
        worker.put(
            ListKind::Stacks,
            position,
            to_raw_value(&json!({"id": id})).unwrap(),
        );
    }
    let input = |run: &str| to_raw_value(&json!({"run": run})).unwrap();
    for (round, (policy, problem)) in policies.into_iter().enumerate() {
        let hostile = worker.evaluate(policy, input("x"), true, Duration::from_millis(200));
        let said = hostile.unwrap().unwrap_err().in_file("p.rego");
        assert!(said.contains(problem), "{said}");
        // What was put before, and what has changed since.
        let changed = format!("b{round}");
        worker.put(
            ListKind::Stacks,
            1,
            to_raw_value(&json!({"id": changed})).unwrap(),
        );
        let run = format!("run {round}");
        let answer = worker.evaluate(names, input(&run), true, Duration::from_mins(1));
        let answer = answer.unwrap().unwrap();
        assert_eq!(answer.trigger, ["a".to_owned(), changed].into());
        assert_eq!(answer.flag, [run].into());
    }
}

#[cfg(target_os = "linux")]
mod on_linux {
    use std::fs;
    use std::path::PathBuf;
    use std::process::Stdio;

    use nix::sys::signal::{self, Signal};
    use nix::unistd::Pid;

    use super::ENDLESS;
    use crate::policies::loaded::policy;
    use crate::support::{Background, wait_until};

    /// Returns the folders in which the system tells of the children of a process.
    fn children(of: u32) -> Vec<PathBuf> {
        let parent = format!(" {of} ");
        let is_child = |folder: &PathBuf| {
            let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
            // The name of the program, in parentheses, may be anything; after it are the state and the parent.
            let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
            !rest.starts_with('Z') && rest.get(1..).is_some_and(|rest| rest.starts_with(&parent))
        };
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes
            .map(|process| process.path())
            .filter(is_child)
            .collect()
    }

    #[test]
    fn policy_worker_has_no_environment_and_no_files_and_ends_with_orch() {
        let sandbox = policy(ENDLESS);
        sandbox.write(
            "/p.orch.hcl",
            "policy \"trigger\" \"p\" {\n  file = \"p.rego\"\n  timeout = \"1h\"\n}",
        );
        let mut command = sandbox.command("policy eval p --input input.json");
        command.env("TOKEN", "secret").stdin(Stdio::null());
        let mut orch = Background::spawn(&sandbox, command);
        let id = orch.orch.id();
        wait_until("there is a worker", || {
            let workers = children(id);
            let named = |worker: &PathBuf| fs::read_to_string(worker.join("cmdline"));
            workers
                .iter()
                .any(|worker| named(worker).is_ok_and(|name| name.contains("policy-worker")))
        });
        let worker = children(id).pop().unwrap();
        let environment = fs::read_to_string(worker.join("environ"));
        let files = fs::read_dir(worker.join("fd")).unwrap().flatten();
        let files: Vec<PathBuf> = files.flat_map(|file| fs::read_link(file.path())).collect();
        // Killed, `orch` can say nothing to anybody.
        signal::kill(Pid::from_raw(id.try_into().unwrap()), Signal::SIGKILL).unwrap();
        crate::support::ended(&mut orch.orch);
        assert_eq!(environment.unwrap(), "");
        let of_orch = files
            .iter()
            .find(|file| file.starts_with(sandbox.outside()));
        assert_eq!(of_orch, None);
        wait_until("the worker is gone", || {
            let stat = fs::read_to_string(worker.join("stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        });
    }
}
