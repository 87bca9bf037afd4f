//! Runs that are recorded: what is written before, during and after the commands.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::Repository;

const FILES: &str = r#"
//- /state.orch.hcl
orch {
  config {
    state {
      project = "acme"
      record {
        apply   = ["deploy up"]
        destroy = ["deploy down"]
        never   = ["deploy up --half"]
      }
    }
  }
}
//- /a/stack.tm
stack {
}
//- /b/stack.tm
stack {
  after = ["/a"]
}
//- /c/stack.orch.hcl
stack {
  for_each = ["x"]
  after    = ["/b"]
}
"#;

/// A project with a state and a program `deploy`, which prints the run record that is there before it does
/// anything, then reads the file `/does` as a script.
fn project() -> Repository {
    let repository = Repository::new(FILES);
    let deploy = "#!/bin/sh\ncat \"$ORCH_ROOT\"/.orch/state/default.run-*.json > \"$ORCH_ROOT/../seen-$ORCH_STACK_NAME\" 2>/dev/null\n[ ! -f \"$ORCH_ROOT/../does\" ] || . \"$ORCH_ROOT/../does\"\n";
    repository.write_program("/../deploy", deploy);
    assert_eq!(repository.orch("state init").code(), 0);
    repository
}

fn deploy(repository: &Repository, arguments: &str) -> (i32, String) {
    let output = repository.orch(&format!("run -q -X {arguments}"));
    (output.code(), output.stderr.clone())
}

fn document(repository: &Repository) -> Value {
    serde_json::from_str(&repository.read("/.orch/state/default.json")).unwrap()
}

fn does(repository: &Repository, script: &str) {
    repository.write("/../does", script);
}

/// The stacks recorded, each with its status.
fn statuses(repository: &Repository) -> String {
    let list = repository.orch("state list --format json").json();
    let stacks = list["stacks"].as_array().unwrap().iter();
    let line = |stack: &Value| {
        let text = |name: &str| stack[name].as_str().unwrap().to_owned();
        format!("{} {}", text("path"), text("status"))
    };
    stacks.map(line).collect::<Vec<_>>().join(", ")
}

#[test]
fn run_records_the_intent_before_the_command_and_the_result_after_it() {
    let repository = project();
    assert_eq!(
        deploy(&repository, "../../deploy up -v=3"),
        (0, String::new())
    );
    let seen: Value = serde_json::from_str(&repository.read("/../seen-b")).unwrap();
    assert_eq!(seen["stacks"]["/b"]["intent"]["action"], "apply");
    assert_eq!(seen["stacks"]["/b"]["applied"], Value::Null);
    let document = document(&repository);
    assert_eq!(document["lock"], Value::Null);
    let run = document["history"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&run["what"], &run["applied"]),
        (&json!("apply"), &json!(3))
    );
    let b = &document["stacks"]["/b"];
    assert_eq!(b["intent"], Value::Null);
    assert_eq!(b["last"]["outcome"], "succeeded");
    assert_eq!(b["after"], json!(["/a"]));
    let applied = &b["applied"];
    assert_eq!(applied["serial"], run["serial"]);
    assert_eq!(applied["run"], run["run"]);
    assert_eq!(
        applied["command"], "deploy up",
        "the pattern, never the arguments"
    );
    assert_eq!(applied["commit"], repository.git("rev-parse HEAD").trim());
    assert_eq!(applied["dirty"], false);
    assert_eq!(
        statuses(&repository),
        r#"/a applied, /b applied, /c["x"] applied"#
    );
    // Nothing is left beside the document but backups, and what a local lock is on.
    let state = repository.path("/.orch/state");
    let mut names: Vec<String> = std::fs::read_dir(state)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !["default.holder", "default.lock"].contains(&name.as_str()))
        .collect();
    names.sort();
    assert_eq!(names, ["default.backups", "default.json"]);
}

#[test]
fn run_records_a_failure_as_the_last_attempt_and_nothing_of_unstarted_stacks() {
    let repository = project();
    assert_eq!(deploy(&repository, "../../deploy up").0, 0);
    let before = document(&repository)["stacks"].clone();
    repository.write("/b/more.tf", "");
    does(&repository, "[ \"$ORCH_STACK_NAME\" != b ] || exit 7\n");
    let (code, _) = deploy(&repository, "../../deploy up");
    assert_eq!(code, 1);
    let after = document(&repository)["stacks"].clone();
    assert_eq!(after["/b"]["applied"], before["/b"]["applied"]);
    assert_eq!(after["/b"]["last"]["outcome"], "failed");
    assert_eq!(after["/b"]["last"]["failure"], "exited");
    assert_eq!(after["/c[\"x\"]"], before["/c[\"x\"]"], "it was cancelled");
    assert_eq!(
        statuses(&repository),
        r#"/a applied, /b failed, /c["x"] applied"#
    );
    // A success that follows replaces both; what was not committed is told.
    does(&repository, "");
    assert_eq!(deploy(&repository, "--match b ../../deploy up").0, 0);
    assert_eq!(
        document(&repository)["stacks"]["/b"]["applied"]["dirty"],
        true
    );
    assert_eq!(
        statuses(&repository),
        r#"/a applied, /b applied, /c["x"] applied"#
    );
}

#[test]
fn run_records_nothing_of_a_command_that_cannot_start() {
    let repository = project();
    assert_eq!(deploy(&repository, "../../deploy up").0, 0);
    let before = document(&repository)["stacks"].clone();
    // The first command removes the program.
    does(&repository, "rm \"$0\"\n");
    let (code, stderr) = deploy(&repository, "../../deploy up");
    assert_eq!(code, 1, "{stderr}");
    let after = document(&repository)["stacks"].clone();
    assert_ne!(after["/a"], before["/a"]);
    assert_eq!(after["/b"], before["/b"]);
}

#[test]
fn run_removes_the_record_of_a_destroyed_stack() {
    let repository = project();
    assert_eq!(deploy(&repository, "../../deploy up").0, 0);
    assert_eq!(
        deploy(
            &repository,
            "--reverse --match c --match b ../../deploy down"
        )
        .0,
        0
    );
    assert_eq!(statuses(&repository), "/a applied");
    let document = document(&repository);
    let last = document["history"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["what"], &last["destroyed"]),
        (&json!("destroy"), &json!(2))
    );
}

#[test]
fn run_records_only_matching_commands_unless_flags_override_it() {
    let repository = project();
    for arguments in [
        "../../deploy status",
        "../../deploy up --half",
        "../../deploy up --half=1",
        "--no-record ../../deploy up",
        "--dry-run ../../deploy up",
        "-- sh -c true",
    ] {
        assert_eq!(
            repository.orch(&format!("run -q {arguments}")).code(),
            0,
            "{arguments}"
        );
        assert_eq!(document(&repository)["serial"], 1, "{arguments}");
    }
    assert_eq!(deploy(&repository, "--record --match a -- sh -c true").0, 0);
    assert_eq!(
        document(&repository)["stacks"]["/a"]["applied"]["command"],
        "sh"
    );
    assert_eq!(
        deploy(&repository, "--record=destroy --match a -- sh -c true").0,
        0
    );
    assert_eq!(statuses(&repository), "");
    // The words of each stack count.
    let evaluated = "--eval ../../deploy '${orch.stack.name == \"a\" ? \"up\" : \"status\"}'";
    assert_eq!(deploy(&repository, evaluated).0, 0);
    assert_eq!(statuses(&repository), "/a applied");
    let both = repository.orch("run --record --no-record true");
    assert_eq!(both.code(), 64);
}

#[test]
fn run_without_a_record_needs_no_patterns_but_those_of_destroys() {
    let repository = project();
    let missing = |list: &str| {
        let files = FILES.split("//- /a").next().unwrap();
        let block = files.split_once("hcl\n").unwrap().1;
        let written = format!("{list} = [\"deploy");
        let wanted = format!("{list} = [env.NOT_SET, \"deploy");
        let block = block.replace(&format!("{list}   = [\"deploy"), &written);
        assert!(block.contains(&written), "{block}");
        repository.write("/state.orch.hcl", block.replace(&written, &wanted));
    };
    missing("apply");
    for flags in [
        "--no-record",
        "--no-record --dry-run",
        "--no-record --resume",
    ] {
        let command = if flags.ends_with("resume") {
            ""
        } else {
            " ../../deploy up"
        };
        let (code, said) = deploy(&repository, &format!("{flags}{command}"));
        assert_eq!(code, 0, "{flags}: {said}");
    }
    assert_eq!(statuses(&repository), "");
    let (code, said) = deploy(&repository, "../../deploy up");
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("`NOT_SET`"), "{said}");
    missing("destroy");
    let (code, said) = deploy(&repository, "--no-record ../../deploy down");
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("the commands that destroy"), "{said}");
}

#[test]
fn run_selects_the_same_stacks_before_and_under_the_lock() {
    for switched_off in [
        "git-untracked",
        "git-uncommitted",
        "git-untracked,git-uncommitted",
    ] {
        let repository = project();
        assert_eq!(deploy(&repository, "../../deploy up").0, 0);
        repository.write("/a/new", "");
        repository.write("/b/file", "");
        repository.commit();
        repository.write("/a/more", "");
        let flags = format!(
            "--changed --base HEAD~1 --disable-change-detection={switched_off} --status pending"
        );
        let listed = repository.orch(&format!("list {flags}"));
        assert_eq!(listed.stdout, "a\nb\n", "{switched_off}: {listed}");
        does(&repository, "echo $ORCH_STACK_PATH >> $ORCH_ROOT/../ran");
        let (code, said) = deploy(&repository, &format!("{flags} ../../deploy up"));
        assert_eq!(code, 0, "{switched_off}: {said}");
        assert!(!said.contains("meanwhile"), "{switched_off}: {said}");
        assert_eq!(repository.read("/../ran"), "/a\n/b\n", "{switched_off}");
    }
}

#[test]
fn resume_records_as_the_earlier_run_did() {
    let repository = project();
    let fails = |it: bool| does(&repository, if it { "exit 7\n" } else { "" });
    let statuses = || statuses(&repository);
    let run = |arguments: &str, code: i32| {
        let (found, stderr) = deploy(&repository, arguments);
        assert_eq!(found, code, "{arguments}: {stderr}");
    };
    fails(true);
    run("--match a --record ../../deploy status", 1);
    assert_eq!(statuses(), "/a failed");
    run("--resume", 1);
    fails(false);
    run("--resume", 0);
    assert_eq!(statuses(), "/a applied", "through two runs");
    // As a destroy too.
    fails(true);
    run("--match a --record=destroy ../../deploy status", 1);
    fails(false);
    run("--only-failed", 0);
    assert_eq!(statuses(), "");
    // What is said anew counts, and so does it from then on.
    fails(true);
    run("--match a --no-record ../../deploy up", 1);
    run("--resume", 1);
    assert_eq!(statuses(), "");
    run("--resume --record=apply", 1);
    assert_eq!(statuses(), "/a failed");
    run("--resume --no-record", 1);
    fails(false);
    run("--resume", 0);
    assert_eq!(statuses(), "/a failed", "nobody has recorded the success");
    // Where no flag said anything, the patterns decide once more.
    fails(true);
    run("--match b ../../deploy up", 1);
    fails(false);
    run("--resume", 0);
    assert_eq!(statuses(), "/a failed, /b applied");
}

#[test]
fn resume_needs_a_flag_for_an_unknown_kind_of_recording() {
    let repository = project();
    does(&repository, "exit 7\n");
    assert_eq!(deploy(&repository, "--no-record ../../deploy up").0, 1);
    let runs = repository.path("/.orch/runs");
    let folders = std::fs::read_dir(runs).unwrap();
    let mut journals = folders.map(|folder| folder.unwrap().path().join("journal.jsonl"));
    let journal = journals.find(|path| path.exists()).unwrap();
    let text = std::fs::read_to_string(&journal).unwrap();
    let later = text.replace("\"recording\":\"never\"", "\"recording\":\"half\"");
    assert_ne!(text, later);
    std::fs::write(&journal, later).unwrap();
    let (code, stderr) = deploy(&repository, "--resume");
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("`half`"), "{stderr}");
    assert!(
        stderr.contains("with `--record` or `--no-record`"),
        "{stderr}"
    );
    assert_eq!(deploy(&repository, "--resume --no-record").0, 1);
}

#[test]
fn run_uses_the_backend_only_for_recorded_commands() {
    let repository = project();
    let files = repository.read("/state.orch.hcl");
    let elsewhere = "project = \"acme\"\n      namespace = env.NOT_SET\n";
    repository.write(
        "/state.orch.hcl",
        files.replace("project = \"acme\"\n", elsewhere),
    );
    assert_eq!(repository.orch("run -q -X true").code(), 0);
    assert_snapshot!(repository.orch("run -q -X ../../deploy up"), @"
    [stderr]
    error: the environment has no variable `NOT_SET`
     --> state.orch.hcl:5:23
      |
    5 |       namespace = env.NOT_SET
      |                       ^^^^^^^ `env` is the environment that orch was started in
      |
      = help: set `NOT_SET` before running orch

    error: the configuration of the state is wrong
      = help: to run without recording, add `--no-record`
    [exit status 3]
    ");
    assert_eq!(
        repository
            .orch("run -q -X --no-record ../../deploy up")
            .code(),
        0
    );
    repository.write("/state.orch.hcl", "");
    assert_snapshot!(repository.orch("run -q -X --record true"), @"
    [stderr]
    error: `--record` was given, and this project keeps no state
      = help: see `orch help state`
    [exit status 4]
    ");
}

#[test]
fn run_refuses_a_held_lock() {
    let repository = project();
    let mut locked = document(&repository);
    locked["lock"] = json!({
        "code": "6a1f", "run": "r1", "action": "apply", "by": "Ada", "host": "ci-7",
        "process": 47, "ci": null, "since": "2026-01-02T03:04:05Z",
    });
    repository.write("/.orch/state/default.json", locked.to_string());
    let (code, stderr) = deploy(&repository, "../../deploy up");
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("locked by Ada on ci-7"), "{stderr}");
    assert!(!repository.path("/../seen-a").exists());
    assert_eq!(
        deploy(&repository, "../../deploy status").0,
        0,
        "it needs no lock"
    );
    assert_eq!(document(&repository), locked);
}

#[test]
fn run_starts_nothing_more_after_losing_the_lock() {
    let repository = project();
    // The first command takes the lock away from its own run.
    let orch = repository
        .command("")
        .get_program()
        .to_str()
        .unwrap()
        .to_owned();
    does(
        &repository,
        &format!(
            "code=$(sed 's/.*\"code\":\"\\([^\"]*\\)\".*/\\1/' \"$ORCH_ROOT/.orch/state/default.json\")\n{orch} state unlock --force \"$code\" > /dev/null || exit 9\n"
        ),
    );
    let (code, stderr) = deploy(&repository, "../../deploy up");
    assert_eq!(code, 5, "{stderr}");
    assert!(stderr.contains("took the state lock"), "{stderr}");
    assert!(
        stderr.contains("lock: nothing new starts; running commands continue"),
        "{stderr}"
    );
    assert!(stderr.contains("orch state recover"), "{stderr}");
    assert!(!repository.path("/../seen-b").exists(), "{stderr}");
    // What had begun was written down as interrupted; its end is recovered.
    assert_eq!(statuses(&repository), "/a failed");
    let run = document(&repository)["stacks"]["/a"]["last"]["run"].clone();
    let recovered = repository.orch(&format!("state recover {}", run.as_str().unwrap()));
    assert_eq!(recovered.code(), 0, "{recovered}");
    assert_eq!(statuses(&repository), "/a applied");
}

#[test]
fn run_ends_the_intents_of_a_killed_one() {
    let repository = project();
    does(&repository, "kill -9 $PPID\n");
    let mut killed = repository
        .command("run -q ../../deploy up")
        .spawn()
        .unwrap();
    assert!(!crate::support::ended(&mut killed).success());
    does(&repository, "");
    let (code, stderr) = deploy(&repository, "--match b ../../deploy up");
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("was killed while it held the state lock"),
        "{stderr}"
    );
    assert_eq!(statuses(&repository), "/a failed, /b applied");
}

#[test]
fn run_refuses_the_document_of_another_project() {
    let repository = project();
    let mut other = document(&repository);
    other["project"] = json!("other");
    repository.write("/.orch/state/default.json", other.to_string());
    assert_eq!(deploy(&repository, "../../deploy up").0, 4);
    repository.write("/.orch/state/default.json", "{");
    assert_eq!(deploy(&repository, "../../deploy up").0, 5);
    std::fs::remove_file(repository.path("/.orch/state/default.json")).unwrap();
    let (code, stderr) = deploy(&repository, "../../deploy up");
    assert_eq!(code, 4);
    assert!(
        stderr.contains("`orch state init` creates a new document"),
        "{stderr}"
    );
    assert!(!repository.path("/../seen-a").exists());
}
