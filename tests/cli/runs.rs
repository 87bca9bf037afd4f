//! `orch runs`: the runs that are recorded.

use std::fs;
use std::process::Command;

use insta::assert_snapshot;
use nix::sys::signal::Signal;

use crate::support::{Background, Sandbox, journal_of, redact_runs, run_ids, said};

const UNTIL_GO: &str = "echo x >> \"$ORCH_ROOT/started\"\nwhile [ -d \"$ORCH_ROOT\" ] && [ ! -e \"$ORCH_ROOT/go\" ]; do sleep 0.01; done";

fn three_stacks() -> Sandbox {
    Sandbox::layout(
        "
        a
        b after /a
        c",
    )
}

#[test]
fn runs_commands_work_without_runs() {
    let sandbox = three_stacks();
    assert_snapshot!(sandbox.orch("runs list"), @"
    [stderr]
    note: no run of this project is recorded
    ");
    assert_snapshot!(sandbox.orch("runs list --format json"), @r#"
    {
      "format": 1,
      "runs": []
    }
    [stderr]
    note: no run of this project is recorded
    "#);
    assert_snapshot!(sandbox.orch("runs show"), @"
    [stderr]
    error: no run of this project is recorded
      = help: start one with `orch run COMMAND`
    [exit status 4]
    ");
    assert_snapshot!(sandbox.orch("runs show --format json"), @r#"
    {"cancelled":null,"diagnostics":[],"elapsed_ms":null,"errors":[],"failed":null,"folder":null,"format":1,"header":null,"id":null,"refused":{"command":null,"problem":"no run of this project is recorded"},"skipped":null,"stacks":[],"state":null,"status":null,"stops":[],"succeeded":null,"valid":true}
    [stderr]
    error: no run of this project is recorded
      = help: start one with `orch run COMMAND`
    [exit status 4]
    "#);
    assert_snapshot!(sandbox.orch("runs logs"), @"
    [stderr]
    error: no run of this project is recorded
      = help: start one with `orch run COMMAND`
    [exit status 4]
    ");
    assert_snapshot!(sandbox.orch("runs prune"), @"
    [stderr]
    note: no run of this project is recorded
    ");
}

#[test]
fn runs_are_listed_with_how_they_ended() {
    let sandbox = three_stacks();
    assert_eq!(sandbox.orch("run -q true").code(), 0);
    _ = sandbox.orch("run -q --on-error skip-dependents -- sh -c 'test $ORCH_STACK_NAME = c'");
    for end in [Signal::SIGINT, Signal::SIGKILL] {
        let run = Background::run(&sandbox, "", UNTIL_GO);
        run.wait_for("/started", &["x"]);
        if end == Signal::SIGINT {
            run.signal(end);
            assert_eq!(run.end().code(), 130);
        } else {
            run.kill();
        }
        sandbox.remove("/started");
    }
    let run = Background::run(&sandbox, "--allow-concurrent", UNTIL_GO);
    run.wait_for("/started", &["x"]);
    let listed = sandbox.orch("runs list");
    assert_snapshot!(said(&sandbox, &listed), @"
    <run 5>  <time>  running      nothing has ended                 <s>  $ROOT/script.sh
    <run 4>  <time>  killed       nothing has ended                 -     $ROOT/script.sh
    <run 3>  <time>  interrupted  1 failed, 2 cancelled             <s>  $ROOT/script.sh
    <run 2>  <time>  failed       1 succeeded, 1 failed, 1 skipped  <s>  sh -c 'test $ORCH_STACK_NAME = c'
    <run 1>  <time>  succeeded    3 succeeded                       <s>  true
    ");
    let data = sandbox.orch("runs list --format json").json();
    assert_eq!(data["format"], 1);
    let states: Vec<_> = data["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["state"])
        .collect();
    assert_eq!(
        states,
        ["running", "killed", "interrupted", "failed", "succeeded"]
    );
    assert_eq!(data["runs"][3]["skipped"], 1);
    assert_eq!(data["runs"][3]["stacks"], 3);
    assert_snapshot!(said(&sandbox, &sandbox.orch("runs show")), @"
    run <run 5> is in progress: nothing has ended
      command  $ROOT/script.sh
      typed    orch run --allow-concurrent -- $ROOT/script.sh
      in       /
      began    <time>
      by       orch 0.1.0, process <number>
      kept in  $ROOT/.orch/runs/<run 5>

    running    /a: for <s>
    waiting    /b
    waiting    /c
    ");
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 0);
}

#[test]
fn runs_show_lists_each_stack() {
    let sandbox = three_stacks();
    _ = sandbox.orch("run -q --on-error skip-dependents -- sh -c 'test $ORCH_STACK_NAME = c'");
    _ = sandbox.orch("run -q --only-failed");
    let ids = run_ids(&sandbox);
    let shown = sandbox.orch(&format!("runs show {}", ids[0]));
    assert_snapshot!(said(&sandbox, &shown), @"
    run <run 1> failed: 1 succeeded, 1 failed, 1 skipped
      command  sh -c 'test $ORCH_STACK_NAME = c'
      typed    orch run -q --on-error skip-dependents -- sh -c 'test $ORCH_STACK_NAME = c'
      in       /
      began    <time>, took <s>
      by       orch 0.1.0, process <number>
      kept in  $ROOT/.orch/runs/<run 1>

    failed     /a: exit status 1 after <s>
    skipped    /b: runs after /a, which failed
    succeeded  /c: <s>
    ");
    let shown = sandbox.orch_in("/a", "runs show last");
    assert_snapshot!(said(&sandbox, &shown), @"
    run <run 2> failed: 1 failed, 1 left out
      command  sh -c 'test $ORCH_STACK_NAME = c'
      typed    orch run -q --only-failed
      in       /
      began    <time>, took <s>
      by       orch 0.1.0, process <number>
      resumes  <run 1>
      kept in  $ROOT/.orch/runs/<run 2>

    failed     /a: exit status 1 after <s>
    left out   /b: left out by --only-failed
    ");
    let data = sandbox.orch("runs show --format json").json();
    assert_eq!(data["format"], 1);
    assert_eq!(data["state"], "failed");
    assert_eq!(data["status"], 1);
    assert_eq!(data["header"]["resumes"], ids[0]);
    assert_eq!(
        data["stacks"][0]["failure"],
        serde_json::json!({"kind": "exited", "status": 1})
    );
    assert_eq!(data["stacks"][1]["state"], "left out");
}

#[test]
fn runs_show_works_for_a_killed_run() {
    let sandbox = three_stacks();
    let run = Background::run(&sandbox, "", UNTIL_GO);
    run.wait_for("/started", &["x"]);
    run.kill();
    sandbox.write("/go", "");
    assert_snapshot!(said(&sandbox, &sandbox.orch("runs show")), @"
    run <run 1> was killed: nothing has ended
      command  $ROOT/script.sh
      typed    orch run -- $ROOT/script.sh
      in       /
      began    <time>, last heard from <time>
      by       orch 0.1.0, process <number>
      kept in  $ROOT/.orch/runs/<run 1>

    unknown    /a: orch was killed while its command ran
    not run    /b
    not run    /c
    ");
}

#[test]
fn runs_show_reads_a_torn_journal() {
    let sandbox = three_stacks();
    _ = sandbox.orch("run -q --on-error continue -- sh -c 'test $ORCH_STACK_NAME != b'");
    let path = journal_of(&run_ids(&sandbox)[0]);
    let text = sandbox.read(&path);
    let header = text.find('\n').unwrap() + 1;
    // The last entry is known as soon as only the end of its line is missing.
    for length in (header..text.len() - 1).step_by(37) {
        sandbox.write(&path, &text[..length]);
        let data = sandbox.orch("runs show --format json").json();
        assert_eq!(data["state"], "killed", "at {length}");
        let ended = text[..length].matches("\"attempts\":1}").count();
        let known = data["stacks"].as_array().unwrap().iter();
        let known = known
            .filter(|stack| stack["elapsed_ms"].is_number())
            .count();
        assert_eq!(known, ended, "at {length}");
    }
    sandbox.write(&path, &text[..header - 1]);
    assert_snapshot!(said(&sandbox, &sandbox.orch("runs list")), @"<run 1>  -  unreadable  -  -  it has no header");
}

#[test]
fn fifty_runs_are_kept_and_those_that_are_going_on() {
    let sandbox = three_stacks();
    let run = Background::run(&sandbox, "", UNTIL_GO);
    run.wait_for("/started", &["x"]);
    let oldest = run_ids(&sandbox).remove(0);
    for _ in 0..51 {
        let output = sandbox.orch("run -q --allow-concurrent --match c -- true");
        assert_eq!(output.code(), 0, "{output}");
    }
    let ids = run_ids(&sandbox);
    assert_eq!(ids.len(), 51, "50, and the one that is going on");
    assert_eq!(ids[0], oldest);
    assert_eq!(sandbox.orch("runs prune --keep 0").code(), 0);
    assert_eq!(run_ids(&sandbox), [oldest.as_str()]);
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 0);
    let pruned = sandbox.orch("runs prune --keep 0");
    assert_snapshot!(pruned.to_string().replace(&oldest, "<run 1>"), @"
    removed <run 1>
    [stderr]
    note: 1 run removed, 0 runs left
    ");
    assert!(run_ids(&sandbox).is_empty());
}

#[test]
fn runs_prune_keeps_foreign_files() {
    let sandbox = three_stacks();
    _ = sandbox.orch("run -q true");
    sandbox.write("/.orch/runs/notes/mine", "");
    let elsewhere = sandbox.outside().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("mine"), "").unwrap();
    sandbox.symlink(
        &elsewhere,
        "/.orch/runs/01a1ffb4-2d7d-73ea-bf75-7943d5cb88e1",
    );
    assert_eq!(
        sandbox.orch("runs prune --keep 0").stdout.lines().count(),
        1
    );
    assert!(sandbox.path("/.orch/runs/notes/mine").exists());
    assert!(elsewhere.join("mine").exists());
}

#[test]
fn names_cannot_repaint_the_terminal() {
    let sandbox = Sandbox::new("");
    sandbox.write("/a\u{1b}[31m\nb/stack.tm", "stack {\n}\n");
    let output = sandbox.orch("run -q -- sh -c 'exit 3' 'x\u{1b}[2J\ny'");
    assert_eq!(output.code(), 1, "{output}");
    for command in ["runs list", "runs show", "run --resume", "runs logs"] {
        let output = sandbox.orch(command);
        assert!(!output.to_string().contains('\u{1b}'), "{output}");
    }
    let shown = sandbox.orch("runs show").to_string();
    let stack = redact_runs(&run_ids(&sandbox), shown.lines().last().unwrap());
    assert_snapshot!(stack, @r"failed     /a\u{1b}[31m\nb: exit status 3 after <s>");
}

#[test]
fn runs_show_escapes_a_hostile_journal() {
    let sandbox = Sandbox::layout("a");
    _ = sandbox.orch("run -q false");
    let path = journal_of(&run_ids(&sandbox)[0]);
    let text = sandbox.read(&path);
    for (from, to) in [
        ("\"/a\"", "\"/../../x\""),
        ("\"/a\"", "\"\\u001b[31m\""),
        (
            "\"elapsed_ms\":",
            "\"elapsed_ms\":18446744073709551615,\"x\":",
        ),
        ("\"attempts\":1", "\"attempts\":4294967295"),
        ("\"at\":\"2", "\"at\":\"-009998-01-01T00:00:00Z\",\"x\":\"2"),
        ("\"jobs\":1", "\"jobs\":0"),
        ("\"process\":", "\"process\":\"x\",\"x\":"),
        ("\"order\":[", "\"order\":[\"/a\",\"/a\","),
        ("\"run\":\"", "\"run\":\"../../../"),
        ("\"command\":[", "\"command\":[],\"x\":["),
        ("\"command\":[", "\"command\":[\"\","),
        ("\"command\":[", "\"command\":[[256],"),
    ] {
        sandbox.write(&path, text.replace(from, to));
        for command in [
            "runs list",
            "runs show",
            "runs show --format json",
            "runs logs",
        ] {
            let output = sandbox.orch(command);
            assert!(
                [0, 5].contains(&output.code()),
                "{from}: {command}: {output}"
            );
            assert!(!output.stderr.contains("panicked"), "{output}");
        }
        let output = sandbox.orch("run -q --resume");
        assert!([1, 4, 5].contains(&output.code()), "{from}: {output}");
        assert!(!output.stderr.contains("panicked"), "{output}");
        for id in run_ids(&sandbox).into_iter().skip(1) {
            fs::remove_dir_all(sandbox.path(&format!("/.orch/runs/{id}"))).unwrap();
        }
    }
}

#[test]
fn logs_of_stacks_that_the_run_did_not_have_are_a_mistake() {
    let sandbox = three_stacks();
    _ = sandbox.orch("run -q --match a -- true");
    assert_snapshot!(said(&sandbox, &sandbox.orch("runs logs last b")), @"
    [stderr]
    error: `/b` is not a stack of run <run 1>; did you mean `/a`?
    [exit status 64]
    ");
    assert_snapshot!(said(&sandbox, &sandbox.orch("runs logs last a")), @"
    [stderr]
    note: run <run 1> has no such logs: its commands printed nothing, used `--output live`, or did not run
    ");
}

#[test]
fn runs_show_lists_omitted_stacks() {
    let sandbox = three_stacks();
    let script = "run -q -- sh -c '[ -e \"$ORCH_ROOT/ok\" ]'";
    assert_eq!(sandbox.orch(script).code(), 1);
    sandbox.write("/ok", "");
    assert_eq!(sandbox.orch("run -q --only-failed").code(), 0);
    let listed = sandbox.orch("runs list");
    assert_snapshot!(said(&sandbox, &listed), @r#"
    <run 2>  <time>  succeeded  1 succeeded, 2 left out  <s>  sh -c '[ -e "$ORCH_ROOT/ok" ]'
    <run 1>  <time>  failed     1 failed, 2 cancelled    <s>  sh -c '[ -e "$ORCH_ROOT/ok" ]'
    "#);
    let data = sandbox.orch("runs list --format json").json();
    assert_eq!(data["runs"][0]["left_out"], 2);
}

#[test]
fn runs_commands_take_a_stack_in_place_of_a_run() {
    let sandbox = three_stacks();
    _ = sandbox.orch("run -q true");
    assert_snapshot!(sandbox.orch("runs logs a"), @"
    [stderr]
    error: no run has an id that begins with `a`; for the logs of stack `/a`, run `orch runs logs last a`
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("runs logs z"), @"
    [stderr]
    error: no run has an id that begins or ends with `z`
    [exit status 64]
    ");
}

#[test]
fn logs_are_regular_files() {
    let sandbox = Sandbox::layout("a");
    _ = sandbox.orch("run -q --output grouped -- echo done");
    assert_eq!(sandbox.orch("runs logs").stdout, "done\n");
    let log = format!("/.orch/runs/{}/logs/0001-a.log", run_ids(&sandbox)[0]);
    sandbox.remove(&log);
    let secret = sandbox.outside().join("secret");
    fs::write(&secret, "secret\n").unwrap();
    sandbox.symlink(&secret, &log);
    assert_snapshot!(sandbox.orch("runs logs"), @"
    [stderr]
    error: failed to read the log of `/a`
      caused by: it is not a regular file
    [exit status 5]
    ");
    sandbox.remove(&log);
    let made = Command::new("mkfifo").arg(sandbox.path(&log)).status();
    assert!(made.unwrap().success());
    // Nobody writes to it.
    assert_snapshot!(sandbox.orch("runs logs"), @"
    [stderr]
    error: failed to read the log of `/a`
      caused by: it is not a regular file
    [exit status 5]
    ");
}

/// A program finds the same fields whether there is a run or not.
#[test]
fn documents_of_runs_keep_their_shape() {
    let sandbox = Sandbox::layout("a");
    let fields = |arguments: &str| -> (i32, Vec<String>) {
        let output = sandbox.orch(&format!("runs {arguments} --format json"));
        let document = output.data();
        let names = document.as_object().unwrap().keys().cloned();
        (output.code(), names.collect())
    };
    let (code, refused) = fields("show");
    assert_eq!(code, 4);
    assert_eq!(sandbox.orch("run -q true").code(), 0);
    let (code, unknown) = fields("show nothing");
    assert_eq!((code, &unknown), (64, &refused));
    let (_, shown) = fields("show");
    for field in shown {
        assert!(refused.contains(&field), "{field}");
    }
    for field in ["refused", "valid", "diagnostics", "errors"] {
        assert!(refused.iter().any(|name| name == field), "{field}");
    }
}

#[test]
fn runs_list_shows_times_of_the_named_time_zone() {
    if !std::path::Path::new("/usr/share/zoneinfo/Asia/Tokyo").exists() {
        return crate::support::skipped("this machine has no time zones by name");
    }
    let sandbox = Sandbox::layout("a");
    assert_eq!(sandbox.orch("run -q -- true").code(), 0);
    let listed = |zone: &str| {
        let output = sandbox.orch_with("runs list", |command| {
            command.env("TZ", zone);
        });
        assert_eq!(output.code(), 0, "{output}");
        output.stdout
    };
    assert_eq!(listed("Asia/Tokyo"), listed("JST-9"));
    assert_ne!(listed("Asia/Tokyo"), listed("UTC"));
}

#[test]
fn runs_list_json_without_records_has_its_shape() {
    let sandbox = Sandbox::unmarked("//- /a/stack.tm\nstack {\n}\n");
    let output = sandbox.orch("runs list --format json");
    assert_eq!(output.code(), 4, "{output}");
    let document = output.data();
    assert!(document["refused"]["problem"].is_string(), "{output}");
    assert_eq!(document["runs"], serde_json::json!([]));
    assert_eq!(document["valid"], true);
}
