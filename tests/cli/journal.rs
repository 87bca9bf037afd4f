//! What a run leaves on disk.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{
    Background, Repository, Sandbox, journal, journal_of, run_ids, skipped, wait_until,
};

/// The entries of a journal, in a form to compare.
fn entries(journal: &[Value]) -> String {
    let mut text = String::new();
    for entry in &journal[1..] {
        let mut entry = entry.clone();
        let entry = entry.as_object_mut().unwrap();
        let at = entry.remove("at").unwrap();
        at.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        if let Some(elapsed) = entry.get_mut("elapsed_ms") {
            assert!(elapsed.is_u64());
            *elapsed = 0.into();
        }
        writeln!(text, "{}", Value::Object(entry.clone())).unwrap();
    }
    text
}

fn three_stacks() -> Sandbox {
    Sandbox::layout(
        "
        a
        b after /a
        c",
    )
}

#[test]
fn journal_has_a_line_for_each_transition() {
    let sandbox = three_stacks();
    let output =
        sandbox.orch("run --on-error skip-dependents -- sh -c 'test $ORCH_STACK_NAME = c'");
    assert_eq!(output.code(), 1);
    assert_snapshot!(entries(&journal(&sandbox)), @r#"
    {"attempt":1,"event":"started","stack":"/a"}
    {"attempts":1,"elapsed_ms":0,"event":"ended","failure":{"kind":"exited","status":1},"outcome":"failed","stack":"/a"}
    {"attempts":0,"cause":{"kind":"failed","stack":"/a"},"elapsed_ms":0,"event":"ended","outcome":"skipped","stack":"/b"}
    {"attempt":1,"event":"started","stack":"/c"}
    {"attempts":1,"elapsed_ms":0,"event":"ended","outcome":"succeeded","stack":"/c"}
    {"cancelled":0,"elapsed_ms":0,"event":"finished","failed":1,"skipped":1,"status":1,"succeeded":1}
    "#);
}

#[test]
fn journal_begins_with_the_purpose_of_the_run() {
    let sandbox = Repository::of(three_stacks());
    sandbox.write("/a/x", "");
    sandbox.write("/c/x", "");
    sandbox.git("add .");
    let output = sandbox.orch_with(
        "-C a run -X --changed --base HEAD --include-dependents --reverse --timeout 1h -j 2 --limit x=3 -- sh -c 'exit 0'",
        |command| {
            command.env("A_SECRET", "zyxwvu");
        },
    );
    assert_eq!(output.code(), 0, "{output}");
    let header = journal(&sandbox)[0].clone();
    assert_eq!(header["format"], 1);
    assert_eq!(header["run"], run_ids(&sandbox)[0]);
    assert_eq!(header["orch"], env!("CARGO_PKG_VERSION"));
    assert_eq!(header["directory"], "/a");
    assert_eq!(header["command"], serde_json::json!(["sh", "-c", "exit 0"]));
    assert_eq!(header["arguments"][5], "--base");
    assert_eq!(header["order"], serde_json::json!(["/b", "/a"]));
    assert_eq!(header["direction"], "reverse");
    assert_eq!(header["settings"]["jobs"], 2);
    assert_eq!(header["settings"]["on_error"], "stop");
    assert_eq!(header["settings"]["timeout_ms"], 3_600_000);
    assert_eq!(header["settings"]["limits"][0]["tag"], "x");
    let head = sandbox.git("rev-parse HEAD");
    assert_eq!(header["head"], head.trim());
    assert_eq!(header["base"]["commit"], head.trim());
    // The same on every machine and in every version: else no run could be resumed after an update.
    assert_eq!(header["graph"], "93f2daaafc766783bca6f039c862b40eda890664");
    let names = header["environment"].as_array().unwrap();
    assert!(names.contains(&"A_SECRET".into()), "{names:?}");
    assert!(names.contains(&"ORCH_STACK_NAME".into()), "{names:?}");
    assert!(!header.to_string().contains("zyxwvu"));
}

#[test]
fn variables_that_are_removed_are_not_named() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/env.orch.hcl",
        "orch {\n  config {\n    run {\n      env {\n        GONE = null\n        NEW = \"1\"\n      }\n    }\n  }\n}\n",
    );
    let output = sandbox.orch_with("run -q true", |command| {
        command.env("GONE", "1").env("KEPT", "1");
    });
    assert_eq!(output.code(), 0, "{output}");
    let names = journal(&sandbox)[0]["environment"].clone();
    let has = |name: &str| names.as_array().unwrap().contains(&name.into());
    assert!(has("KEPT") && has("NEW") && !has("GONE"), "{names}");
}

#[test]
fn journal_is_written_during_the_run() {
    let sandbox = three_stacks();
    let script = "while [ -d \"$ORCH_ROOT\" ] && [ ! -e \"$ORCH_ROOT/go\" ]; do sleep 0.01; done";
    let run = Background::run(&sandbox, "", script);
    let is_started = |line: &Value| line["event"] == "started" && line["stack"] == "/a";
    wait_until("the journal has the start", || {
        !run_ids(&sandbox).is_empty() && journal(&sandbox).iter().any(is_started)
    });
    assert!(
        !journal(&sandbox)
            .iter()
            .any(|line| line["event"] == "ended")
    );
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 0);
    assert_eq!(journal(&sandbox).last().unwrap()["event"], "finished");
}

/// The command finds in the journal that it was started.
#[test]
fn journal_has_a_start_before_the_command_runs() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox
        .orch("run -q -- sh -c 'grep -c started $ORCH_ROOT/.orch/runs/$ORCH_RUN_ID/journal.jsonl'");
    assert_snapshot!(output, @"2");
}

#[test]
fn journal_has_an_interrupt() {
    let sandbox = three_stacks();
    let script = "echo x >> \"$ORCH_ROOT/started\"\nexec sleep 600";
    let run = Background::run(&sandbox, "", script);
    run.wait_for("/started", &["x"]);
    run.signal(Signal::SIGINT);
    assert_eq!(run.end().code(), 130);
    assert_snapshot!(entries(&journal(&sandbox)), @r#"
    {"attempt":1,"event":"started","stack":"/a"}
    {"event":"interrupted","reaction":"interrupt","running":["/a"],"signal":2}
    {"attempts":1,"elapsed_ms":0,"event":"ended","failure":{"kind":"signalled","signal":2},"outcome":"failed","stack":"/a"}
    {"attempts":0,"cause":{"kind":"signal","signal":2},"elapsed_ms":0,"event":"ended","outcome":"cancelled","stack":"/b"}
    {"attempts":0,"cause":{"kind":"signal","signal":2},"elapsed_ms":0,"event":"ended","outcome":"cancelled","stack":"/c"}
    {"cancelled":2,"elapsed_ms":0,"event":"finished","failed":1,"skipped":0,"status":130,"succeeded":0}
    "#);
}

#[test]
fn nobody_else_may_look() {
    let sandbox = Sandbox::layout("a");
    assert_eq!(sandbox.orch("run -q true").code(), 0);
    let mode = |path: &str| {
        let metadata = fs::metadata(sandbox.path(path)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    let id = &run_ids(&sandbox)[0];
    for folder in ["/.orch", "/.orch/runs", &format!("/.orch/runs/{id}")] {
        assert_eq!(mode(folder), 0o700, "{folder}");
    }
    for file in ["/.orch/lock", "/.orch/.gitignore", &journal_of(id)] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
}

#[test]
fn git_does_not_see_the_folder_and_nothing_changes_by_it() {
    let sandbox = Repository::of(Sandbox::layout(
        "
        /
        a",
    ));
    for _ in 0..2 {
        // The safeguards are on.
        let output = sandbox.orch("run -q true");
        assert_eq!(output.code(), 0, "{output}");
    }
    assert_eq!(run_ids(&sandbox).len(), 2);
    assert_eq!(sandbox.git("status --porcelain --untracked-files=all"), "");
    assert_eq!(sandbox.orch("list --changed --base HEAD").stdout, "");
}

#[test]
fn git_does_not_see_the_folder_wherever_it_was_left_incomplete() {
    let sandbox = Repository::of(three_stacks());
    let orch = sandbox.command("run -q true");
    let output = on_a_full_disk(&sandbox, &orch).output().unwrap();
    let output = sandbox.output(&output);
    assert_snapshot!(output, @"
    [stderr]
    warning: this run is not recorded: failed to write `.orch/.gitignore`: File too large (os error 27); it cannot be resumed, and a second run can start at the same time
    ");
    assert_eq!(sandbox.git("status --porcelain --untracked-files=all"), "");
    // The safeguards are on.
    assert_eq!(sandbox.orch("run -q true").code(), 0);
    for left in [Some(""), None] {
        sandbox.remove("/.orch/.gitignore");
        if let Some(text) = left {
            sandbox.write("/.orch/.gitignore", text);
        }
        let output = sandbox.orch("run -q true");
        assert_eq!(output.code(), 0, "{output}");
        assert_eq!(sandbox.read("/.orch/.gitignore"), "*\n");
    }
    sandbox.write("/.orch/.gitignore", "/*\n");
    assert_eq!(sandbox.orch("run -q true").code(), 0);
    assert_eq!(sandbox.read("/.orch/.gitignore"), "/*\n", "that is theirs");
}

#[test]
fn journal_needs_a_marked_root() {
    let sandbox = Sandbox::unmarked("//- /a/stack.tm\nstack {\n}\n");
    assert_snapshot!(sandbox.orch("run -q -- echo done"), @"
    done
    [stderr]
    note: nothing marks the root of a project here, so it is `$ROOT`, and this run is not recorded: it cannot be resumed, and a second run can start at the same time; write `orch { root = true }` to a file `orch.orch.hcl` in the root
    ");
    assert!(!sandbox.path("/.orch").exists());
    assert_snapshot!(sandbox.orch("run --dry-run -- echo done"), @"
    /a: echo done
    [stderr]
    note: nothing marks the root of a project here, so it is `$ROOT`; write `orch { root = true }` to a file `orch.orch.hcl` in the root
    ");
    for command in ["run --resume", "runs list"] {
        let output = sandbox.orch(command);
        assert_eq!(output.code(), 4, "{output}");
    }
    assert_snapshot!(sandbox.orch("run --only-failed"), @"
    [stderr]
    error: no run to resume: nothing marks the root of a project here, so none is recorded
      = help: write `orch { root = true }` to a file `orch.orch.hcl` in the root
    [exit status 4]
    ");
    let listed = sandbox.orch("runs list --format json").data();
    assert!(listed["refused"]["problem"].is_string(), "{listed}");
    assert_snapshot!(sandbox.orch("runs show"), @"
    [stderr]
    error: no runs are recorded: nothing marks the root of a project here
      = help: write `orch { root = true }` to a file `orch.orch.hcl` in the root
    [exit status 4]
    ");
}

/// The clock was put back between two runs.
#[test]
fn journal_ids_grow_even_if_the_clock_is_set_back() {
    let sandbox = Sandbox::layout("a");
    assert_eq!(sandbox.orch("run -q true").code(), 0);
    let future = "0fffffff-ffff-7fff-bfff-ffffffffffff";
    let runs = sandbox.path("/.orch/runs");
    fs::rename(runs.join(&run_ids(&sandbox)[0]), runs.join(future)).unwrap();
    for word in ["one", "two"] {
        let output = sandbox.orch(&format!("run -q -- echo {word}"));
        assert_eq!(output.code(), 0, "{output}");
        assert_eq!(journal(&sandbox)[0]["command"][1], word);
    }
    assert_eq!(run_ids(&sandbox)[0], future);
}

#[test]
fn journal_is_not_written_by_a_run_of_nothing() {
    let sandbox = Repository::of(three_stacks());
    for command in [
        "list",
        "graph",
        "env",
        "validate",
        "why a",
        "runs list",
        "runs prune",
        "run --dry-run true",
        "run --tags none true",
        "run no-such-program",
    ] {
        _ = sandbox.orch(command);
        assert!(!sandbox.path("/.orch").exists(), "{command}");
    }
    sandbox.write("/untracked", "");
    assert_eq!(sandbox.orch("run true").code(), 4);
    assert!(!sandbox.path("/.orch").exists());
}

#[test]
fn run_works_in_a_read_only_project() {
    let sandbox = Sandbox::layout("a");
    let root = sandbox.path("/");
    fs::set_permissions(&root, fs::Permissions::from_mode(0o555)).unwrap();
    let is_writable = fs::write(root.join("probe"), "").is_ok();
    let output = sandbox.orch("run -q -- echo done");
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    if is_writable {
        return skipped("root may write anywhere");
    }
    assert_snapshot!(output, @"
    done
    [stderr]
    warning: this run is not recorded: failed to create `.orch`: Permission denied (os error 13); it cannot be resumed, and a second run can start at the same time
    ");
}

/// Another user may hold a lock that this one may not open.
#[test]
fn run_refuses_a_lock_or_a_journal_that_may_not_be_opened() {
    use std::os::unix::process::CommandExt as _;
    let sandbox = Sandbox::layout("a");
    assert_eq!(sandbox.orch("run -q true").code(), 0);
    let set = |path: &str, mode| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(sandbox.path(path), mode).unwrap();
    };
    let run = &run_ids(&sandbox)[0];
    let folder = format!("/.orch/runs/{run}");
    let journal = format!("{folder}/journal.jsonl");
    let orch = |arguments: &str| {
        let mut command = sandbox.command(arguments);
        if fs::read(sandbox.path("/.orch/lock")).is_ok() {
            // Root may read everything, so somebody else has to run.
            fs::set_permissions(sandbox.outside(), fs::Permissions::from_mode(0o755)).unwrap();
            command.uid(65_534).gid(65_534);
        }
        command.output().map(|output| sandbox.output(&output))
    };
    let output = match orch("run -q -- echo done") {
        Ok(output) => output,
        Err(error) => return skipped(format!("nobody else can start orch: {error}")),
    };
    assert_snapshot!(output, @"
    [stderr]
    error: another run may hold the lock
      caused by: failed to open `.orch/.gitignore`: Permission denied (os error 13)
      = help: make `.orch` and its files readable and writable, or run at the same time with `--allow-concurrent`
    [exit status 5]
    ");
    for path in ["/.orch", "/.orch/runs", &folder] {
        set(path, 0o777);
    }
    for path in ["/.orch/.gitignore", &journal] {
        set(path, 0o666);
    }
    set("/.orch/lock", 0o000);
    assert_snapshot!(orch("run -q -- echo done").unwrap(), @"
    [stderr]
    error: another run may hold the lock
      caused by: failed to open `.orch/lock`: Permission denied (os error 13)
      = help: make `.orch` and its files readable and writable, or run at the same time with `--allow-concurrent`
    [exit status 5]
    ");
    set("/.orch/lock", 0o666);
    set(&journal, 0o000);
    let output = orch("run -q -- echo done").unwrap().to_string();
    assert_snapshot!(output.replace(run.as_str(), "[run]"), @"
    [stderr]
    error: run [run] may still be in progress: neither its journal nor its process shows that it has ended
      = help: if it has ended, remove `.orch/runs/[run]`, or run at the same time with `--allow-concurrent`
    [exit status 4]
    ");
    let output = orch("run -q --allow-concurrent -- echo done").unwrap();
    assert_eq!(output.stdout, "done\n", "{output}");
}

#[test]
fn journal_never_replaces_a_file_in_place_of_its_folder() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/.orch", "mine");
    assert_snapshot!(sandbox.orch("run -q -- echo done"), @"
    done
    [stderr]
    warning: this run is not recorded: `.orch` is not a directory; it cannot be resumed, and a second run can start at the same time
    ");
    assert_eq!(sandbox.read("/.orch"), "mine");
    assert_snapshot!(sandbox.orch("runs list"), @"
    [stderr]
    warning: runs of work orders on other machines may be missing: failed to list `.orch/state/default.orders/`: `.orch` is not a directory
    error: no runs can be read
      caused by: `.orch` is not a directory
    [exit status 5]
    ");
    assert_snapshot!(sandbox.orch("run --resume"), @"
    [stderr]
    error: no earlier run can be read
      caused by: `.orch` is not a directory
    [exit status 5]
    ");
}

#[test]
fn links_are_not_followed() {
    for link in ["/.orch", "/.orch/runs", "/.orch/.gitignore"] {
        let sandbox = Sandbox::layout("a");
        let outside = sandbox.outside().join("elsewhere");
        fs::create_dir(&outside).unwrap();
        if link != "/.orch" {
            sandbox.mkdir("/.orch");
        }
        sandbox.symlink(&outside, link);
        let output = sandbox.orch("run -q -- echo done");
        assert_eq!(output.stdout, "done\n", "{output}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{link}");
        let is_refused = output.stderr.contains(&format!("`{}`", &link[1..]));
        assert!(is_refused || link.ends_with(".gitignore"), "{output}");
    }
}

#[test]
fn run_does_not_wait_for_a_pipe_in_place_of_the_lock() {
    let sandbox = Sandbox::layout("a");
    sandbox.mkdir("/.orch");
    let made = Command::new("mkfifo")
        .arg(sandbox.path("/.orch/lock"))
        .status();
    assert!(made.unwrap().success());
    let output = sandbox.orch("run -q -- echo done");
    assert_snapshot!(output, @"
    done
    [stderr]
    warning: the run has no lock: `.orch/lock` is not a file; a second run can start at the same time
    ");
    assert_eq!(run_ids(&sandbox).len(), 1);
}

/// Prepares to run `orch` so that no file gets longer than this, in blocks.
fn on_a_disk_of(sandbox: &Sandbox, blocks: u32, orch: &Command) -> Command {
    let mut command = Command::new("sh");
    sandbox.isolate(&mut command);
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    command
        .args(["-c", &script, "sh"])
        .arg(orch.get_program())
        .args(orch.get_args())
        .current_dir(sandbox.path("/"))
        .stdin(Stdio::null());
    command
}

/// Prepares to run `orch` so that nothing can be written to any file.
pub(crate) fn on_a_full_disk(sandbox: &Sandbox, orch: &Command) -> Command {
    on_a_disk_of(sandbox, 0, orch)
}

/// The disk is full from a certain point on.
#[test]
fn run_continues_when_its_journal_cannot_be_written() {
    let stacks: Vec<String> = (0..40).map(|number| format!("s{number}")).collect();
    let sandbox = Sandbox::layout(&stacks.join("\n"));
    let orch = sandbox.command("run -q -- echo x");
    let mut command = on_a_disk_of(&sandbox, 8, &orch);
    let output = sandbox.output(&command.output().unwrap());
    assert_eq!(output.stdout, "x\n".repeat(40));
    assert_snapshot!(output.stderr, @"warning: the journal of this run can no longer be written: File too large (os error 27); the run continues, but `--resume` may later repeat stacks that succeed from now on");
    // What could be written can be read.
    let listed = sandbox.orch("runs list --format json").json();
    assert_eq!(listed["runs"][0]["state"], "killed");
}

#[test]
fn arguments_that_are_no_text_survive() {
    let sandbox = Sandbox::layout("a");
    let mut orch =
        sandbox.command("run -q -- sh -c 'printf %s \"$1\" >> \"$ORCH_ROOT/out\"; false' sh");
    orch.arg(OsStr::from_bytes(b"\xff\xfe x"));
    assert_eq!(orch.status().unwrap().code(), Some(1));
    let header = &journal(&sandbox)[0];
    assert_eq!(header["command"][4], serde_json::json!([255, 254, 32, 120]));
    assert_eq!(sandbox.orch("run --resume -q").code(), 1);
    let out = fs::read(sandbox.path("/out")).unwrap();
    assert_eq!(out, b"\xff\xfe x\xff\xfe x");
}
