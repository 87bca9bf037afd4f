//! `orch run --resume`, `--only-failed`: what an earlier run left undone.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::support::{
    Background, Repository, Sandbox, is_free, journal, journal_of, run_ids, said, wait_until,
};

/// b runs after a, and d after c.
fn four_stacks() -> Sandbox {
    Sandbox::layout(
        "
        a
        b after /a
        c
        d after /c",
    )
}

/// A run of a script that notes where it runs, and succeeds where no file `fail`.
fn noting(sandbox: &Sandbox, flags: &str) -> String {
    sandbox.write_program(
        "/note.sh",
        "#!/bin/sh\necho \"$ORCH_STACK_NAME\" >> \"$ORCH_ROOT/ran\"\n[ ! -e fail ]\n",
    );
    format!("run -q {flags} -- ../note.sh")
}

/// Where commands have run since this was asked last.
fn ran(sandbox: &Sandbox) -> String {
    let ran = sandbox.read("/ran").replace('\n', " ");
    sandbox.write("/ran", "");
    ran.trim_end().to_owned()
}

#[test]
fn resume_runs_unsucceeded_stacks_with_the_same_command_and_order() {
    let sandbox = four_stacks();
    sandbox.write("/c/fail", "");
    assert_eq!(sandbox.orch(&noting(&sandbox, "")).code(), 1);
    assert_eq!(ran(&sandbox), "a b c");
    let again = sandbox.orch("run --resume");
    assert_snapshot!(again, @"
    [stderr]
    orch: /c: ../note.sh
    orch: cancelled /d: the run stopped when /c failed
    orch: failed /c: exit status 1 after [time]
    orch: 0 succeeded, 1 failed, 1 cancelled in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
    assert_eq!(ran(&sandbox), "c");
    sandbox.remove("/c/fail");
    let last = sandbox.orch("run --resume");
    assert_snapshot!(last, @"
    [stderr]
    orch: /c: ../note.sh
    orch: /d: ../note.sh
    orch: 2 succeeded in [time]
    ");
    assert_eq!(ran(&sandbox), "c d");
    let ids = run_ids(&sandbox);
    assert_eq!(journal(&sandbox)[0]["resumes"], ids[1]);
}

#[test]
fn resume_skips_stacks_that_succeeded_in_an_earlier_resume() {
    let sandbox = four_stacks();
    for stack in ["/a/fail", "/c/fail"] {
        sandbox.write(stack, "");
    }
    let script = noting(&sandbox, "--on-error skip-dependents");
    assert_eq!(sandbox.orch(&script).code(), 1);
    sandbox.remove("/a/fail");
    assert_eq!(sandbox.orch("run -q --resume").code(), 1);
    sandbox.remove("/c/fail");
    ran(&sandbox);
    // Whoever names the first run means what is left to do now.
    let ids = run_ids(&sandbox);
    let output = sandbox.orch(&format!("run -q --resume {}", ids[0]));
    assert_eq!((output.code(), &*ran(&sandbox)), (0, "c d"), "{output}");
    let note = format!(
        "run {} was already resumed: resuming run {}",
        ids[0], ids[1]
    );
    assert!(output.stderr.contains(&note), "{output}");
}

#[test]
fn resume_works_from_any_directory() {
    let sandbox = four_stacks();
    sandbox.write("/c/fail", "");
    _ = sandbox.orch(&noting(&sandbox, ""));
    _ = ran(&sandbox);
    _ = sandbox.orch_in("/a", "run -q --resume");
    assert_eq!(ran(&sandbox), "c");
}

#[test]
fn resume_may_have_nothing_to_do() {
    let sandbox = four_stacks();
    assert_eq!(sandbox.orch("run -q true").code(), 0);
    let output = sandbox.orch("run --resume");
    assert_snapshot!(said(&sandbox, &output), @"
    [stderr]
    note: nothing to resume in run <run 1>: every stack has succeeded
    ");
    assert_eq!(run_ids(&sandbox).len(), 1, "that was no run");
    let output = sandbox.orch("run --only-failed");
    assert_snapshot!(said(&sandbox, &output), @"
    [stderr]
    note: nothing to resume in run <run 1>: every stack has succeeded
    ");
}

#[test]
fn resume_with_only_failed_keeps_the_rest_for_later() {
    let sandbox = four_stacks();
    sandbox.write("/a/fail", "");
    sandbox.write("/c/fail", "");
    let flags = "--on-error skip-dependents";
    assert_eq!(sandbox.orch(&noting(&sandbox, flags)).code(), 1);
    assert_eq!(ran(&sandbox), "a c");
    sandbox.remove("/a/fail");
    let output = sandbox.orch("run --only-failed");
    assert_snapshot!(said(&sandbox, &output), @"
    [stderr]
    note: 2 stacks of run <run 1> were skipped, cancelled or interrupted, and are left out; to run them too, use `orch run --resume`
    orch: /a: ../note.sh
    orch: /c: ../note.sh
    orch: failed /c: exit status 1 after [time]
    orch: 1 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
    assert_eq!(ran(&sandbox), "a c");
    sandbox.remove("/c/fail");
    let output = sandbox.orch("run --resume");
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(ran(&sandbox), "b c d");
}

#[test]
fn resume_only_failed_names_other_unfinished_stacks() {
    let sandbox = four_stacks();
    let script = "echo x >> \"$ORCH_ROOT/started\"\nexec sleep 600";
    let run = Background::run(&sandbox, "", script);
    run.wait_for("/started", &["x"]);
    // As if orch had been killed.
    let id = &run_ids(&sandbox)[0];
    let text = sandbox.read(&journal_of(id));
    run.signal(nix::sys::signal::Signal::SIGINT);
    _ = run.end();
    sandbox.write(&journal_of(id), text);
    let output = sandbox.orch("run --only-failed");
    assert_snapshot!(said(&sandbox, &output), @"
    [stderr]
    note: nothing failed in run <run 1>, but 4 stacks were skipped, cancelled or interrupted; to run them, use `orch run --resume <run 1>`
    ");
}

#[test]
fn resume_keeps_the_reverse_direction() {
    let sandbox = four_stacks();
    sandbox.write("/b/fail", "");
    let flags = "--reverse --on-error skip-dependents";
    assert_eq!(sandbox.orch(&noting(&sandbox, flags)).code(), 1);
    assert_eq!(ran(&sandbox), "d c b");
    sandbox.write("/a/fail", "");
    assert_eq!(sandbox.orch("run -q --resume").code(), 1);
    assert_eq!(ran(&sandbox), "b", "what b needs stays");
    sandbox.remove("/b/fail");
    sandbox.remove("/a/fail");
    assert_eq!(sandbox.orch("run -q --resume").code(), 0);
    assert_eq!(ran(&sandbox), "b a");
    let order = journal(&sandbox)[0]["order"].clone();
    assert_eq!(order, serde_json::json!(["/b", "/a"]));
}

#[test]
fn how_a_run_goes_stays_unless_it_is_said_anew() {
    let sandbox = four_stacks();
    sandbox.write("/a/fail", "");
    sandbox.write("/c/fail", "");
    let flags = "--on-error continue --parallel 3 --timeout 1h --grace 5s --limit x=2 --limit y=1";
    _ = sandbox.orch(&noting(&sandbox, flags));
    let then = journal(&sandbox)[0]["settings"].clone();
    _ = sandbox.orch("run -q --resume");
    assert_eq!(journal(&sandbox)[0]["settings"], then);
    _ = sandbox.orch("run -q --resume --on-error stop -j 1 --timeout 2h --limit y=7");
    let now = journal(&sandbox)[0]["settings"].clone();
    assert_eq!(now["on_error"], "stop");
    assert_eq!(now["jobs"], 1);
    assert_eq!(now["timeout_ms"], 7_200_000);
    assert_eq!(now["grace_ms"], then["grace_ms"]);
    assert_eq!(
        now["limits"],
        serde_json::json!([{"tag": "y", "at_once": 7}, {"tag": "x", "at_once": 2}])
    );
}

#[test]
fn resume_computes_the_environment_again() {
    let sandbox = Sandbox::layout("a");
    let run = "run -q -- sh -c 'echo $WORD; false'";
    let with = |arguments: &str, word: &str| {
        sandbox.orch_with(arguments, |command| {
            command.env("WORD", word);
        })
    };
    assert_eq!(with(run, "one").stdout, "one\n");
    assert_eq!(with("run -q --resume", "two").stdout, "two\n");
}

#[test]
fn resume_runs_stacks_again_that_a_kill_interrupted() {
    let sandbox = four_stacks();
    let script = r#"
echo "$ORCH_STACK_NAME" >> "$ORCH_ROOT/ran"
while [ "$ORCH_STACK_NAME" = c ] && [ -d "$ORCH_ROOT" ] && [ ! -e "$ORCH_ROOT/go" ]; do
    sleep 0.01
done
echo "$ORCH_STACK_NAME" >> "$ORCH_ROOT/over""#;
    let run = Background::run(&sandbox, "", script);
    run.wait_for("/ran", &["a", "b", "c"]);
    run.kill();
    sandbox.write("/go", "");
    wait_until("the command has ended", || {
        sandbox.read("/over") == "a\nb\nc\n"
    });
    _ = ran(&sandbox);
    wait_until("the lock is free", || {
        sandbox.orch("run -q --resume").code() == 0
    });
    assert_eq!(ran(&sandbox), "c d");
}

fn newest_has_finished(sandbox: &Sandbox) -> bool {
    let newest = run_ids(sandbox).pop();
    newest.is_some_and(|id| sandbox.read(&journal_of(&id)).contains("\"finished\""))
}

/// What has ended well by the time orch is killed does not run again, and all the rest does.
#[test]
fn resume_finishes_a_run_that_is_killed_repeatedly() {
    let stacks: Vec<String> = (0..16).map(|number| format!("s{number:02}")).collect();
    let sandbox = Sandbox::layout(&stacks.join("\n"));
    let script = "sleep 0.0$(($$ % 3))\necho \"/$ORCH_STACK_NAME\" >> \"$ORCH_ROOT/ran\"";
    let ran = |stack: &str| {
        let ran = sandbox.read("/ran");
        ran.lines().filter(|&line| line == stack).count()
    };
    let mut run = Background::run(&sandbox, "-q -j 2", script);
    // How often each stack that is done had run when that was first known.
    let mut done: BTreeMap<String, usize> = BTreeMap::new();
    for kill in 1.. {
        let lines = || sandbox.read("/ran").lines().count();
        let enough = lines() + kill % 4;
        wait_until("it has come a little further, or to its end", || {
            lines() >= enough || newest_has_finished(&sandbox)
        });
        run.kill();
        wait_until("nothing of it runs any more", || is_free(&sandbox));
        let shown = sandbox.orch("runs show --format json").json();
        for stack in shown["stacks"].as_array().unwrap() {
            let path = stack["path"].as_str().unwrap();
            if stack["state"] == "succeeded" {
                done.entry(path.to_owned()).or_insert_with(|| ran(path));
            }
        }
        for (stack, times) in &done {
            assert_eq!(ran(stack), *times, "{stack} has run again");
        }
        // It may have been killed after its last stack, before it recorded its end.
        if shown["state"] == "succeeded" || done.len() == stacks.len() {
            break;
        }
        let mut resume = sandbox.command("run -q --resume");
        resume.stdin(Stdio::null()).process_group(0);
        run = Background::spawn(&sandbox, resume);
    }
    assert_eq!(done.len(), stacks.len(), "{done:?}");
}

/// Four stacks in a repository whose commands fail where there is a file `fail`, as in `/c`: there a
/// run has failed, and `/a` and `/b` have succeeded. The run had these flags.
fn failed_in_c(flags: &str) -> Repository {
    let sandbox = Repository::of(four_stacks());
    sandbox.write("/c/fail", "");
    sandbox.write(
        "/b/main.tf",
        "module \"m\" {\n  source = \"../module\"\n}\n",
    );
    sandbox.write("/module/main.tf", "");
    sandbox.commit();
    run_in_c(&sandbox, flags);
    sandbox
}

/// Runs, which fails in `/c`.
#[track_caller]
fn run_in_c(sandbox: &Repository, flags: &str) {
    let output = sandbox.orch(&format!("run -q {flags} -- sh -c 'test ! -e fail'"));
    assert_eq!(output.code(), 1, "{output}");
}

/// What was said, without what differs from run to run, and without commits.
fn said_of_commits(sandbox: &Repository, output: &crate::support::Output) -> String {
    let mut text = said(sandbox, output);
    for (name, instead) in [("HEAD", "<new>"), ("HEAD~", "<old>")] {
        let commit = sandbox.git(&format!("rev-parse --short=7 {name}"));
        text = text.replace(commit.trim(), instead);
    }
    text
}

#[test]
fn resume_works_after_a_fix() {
    let sandbox = failed_in_c("");
    sandbox.remove("/c/fail");
    let uncommitted = sandbox.orch("run --resume");
    assert_snapshot!(said(&sandbox, &uncommitted), @"
    [stderr]
    note: uncommitted files have changed since run <run 1>; `/c` has changed; it had not succeeded, so that is fine
    error: refused: 1 file has uncommitted changes (safeguard `git-uncommitted`)
        c/fail (deleted)
      = help: commit or stash it, or disable this safeguard with `--disable-safeguards=git-uncommitted`
    note: nothing was run
    [exit status 4]
    ");
    sandbox.commit();
    let output = sandbox.orch("run --resume");
    assert_snapshot!(said_of_commits(&sandbox, &output), @"
    [stderr]
    note: HEAD was `<old>` in run <run 1>, and is now `<new>`; `/c` has changed; it had not succeeded, so that is fine
    orch: /c: sh -c 'test ! -e fail'
    orch: /d: sh -c 'test ! -e fail'
    orch: 2 succeeded in [time]
    ");
}

#[test]
fn resume_accepts_another_head() {
    let sandbox = failed_in_c("");
    sandbox.git("commit -q --allow-empty -m more");
    let output = sandbox.orch("run -q --resume");
    assert_snapshot!(said_of_commits(&sandbox, &output), @"
    [stderr]
    note: HEAD was `<old>` in run <run 1>, and is now `<new>`; none of its stacks has changed
    orch: cancelled /d: the run stopped when /c failed
    orch: failed /c: exit status 1 after [time]
    orch: 0 succeeded, 1 failed, 1 cancelled in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn resume_names_succeeded_stacks_that_have_changed() {
    let sandbox = failed_in_c("");
    sandbox.write("/a/main.tf", "# more\n");
    sandbox.write("/module/main.tf", "# more\n");
    sandbox.remove("/c/fail");
    sandbox.commit();
    let refused = sandbox.orch("run --resume");
    assert_snapshot!(said_of_commits(&sandbox, &refused), @"
    [stderr]
    error: run <run 1> cannot be resumed: `/a` (a/main.tf) and `/b` (module/main.tf) succeeded and have changed since
      = help: start a new run, or resume this one anyway with `--allow-stale`
    [exit status 4]
    ");
    let output = sandbox.orch("run --resume --allow-stale");
    assert_snapshot!(said_of_commits(&sandbox, &output), @"
    [stderr]
    note: resuming run <run 1> anyway: `/a` (a/main.tf) and `/b` (module/main.tf) succeeded and have changed since
    orch: /c: sh -c 'test ! -e fail'
    orch: /d: sh -c 'test ! -e fail'
    orch: 2 succeeded in [time]
    ");
}

#[test]
fn files_that_never_count_as_changed_do_no_harm() {
    let sandbox = Repository::of(four_stacks());
    sandbox.write("/c/fail", "");
    sandbox.write(
        "/ignore.orch.hcl",
        "orch {\n  config {\n    change_detection {\n      ignore = [\"*.md\"]\n    }\n  }\n}\n",
    );
    sandbox.commit();
    run_in_c(&sandbox, "");
    sandbox.write("/a/notes.md", "");
    sandbox.write("/elsewhere", "");
    sandbox.commit();
    let output = sandbox.orch("run -q --resume");
    assert_eq!(output.code(), 1, "{output}");
    assert!(output.stderr.contains("none of its stacks"), "{output}");
    assert_eq!(sandbox.orch("trigger /a").code(), 0);
    sandbox.commit();
    let output = sandbox.orch("run -q --resume");
    assert_eq!(output.code(), 4, "{output}");
    assert!(output.stderr.contains("`/a` (.tmtriggers/"), "{output}");
}

/// Whoever runs over uncommitted files has run with their contents.
#[test]
fn uncommitted_files_are_those_that_the_run_began_with() {
    let dirty = || {
        let sandbox = Repository::of(four_stacks());
        sandbox.write("/c/fail", "");
        sandbox.write("/a/main.tf", "# then\n");
        sandbox.commit();
        sandbox.write("/a/main.tf", "# tried\n");
        sandbox.write("/b/new.tf", "# tried\n");
        run_in_c(&sandbox, "-X");
        sandbox
    };
    let resumed = |sandbox: &Repository| {
        let output = sandbox.orch("run -q -X --resume");
        let named = ["/a", "/b"].map(|stack| output.stderr.contains(&format!("`{stack}` (")));
        (output.code(), named)
    };
    let sandbox = dirty();
    let mut expected = serde_json::json!([
        {"path": "/a/main.tf", "blob": sandbox.git("hash-object a/main.tf").trim()},
        {"path": "/b/new.tf", "blob": sandbox.git("hash-object b/new.tf").trim()},
    ]);
    if cfg!(unix) {
        for file in expected.as_array_mut().unwrap() {
            file["executable"] = false.into();
        }
    }
    assert_eq!(journal(&sandbox)[0]["uncommitted"], expected);
    assert_eq!(resumed(&sandbox), (1, [false, false]), "as they were");
    sandbox.commit();
    assert_eq!(resumed(&sandbox), (1, [false, false]), "committed");
    sandbox.write("/b/new.tf", "# more\n");
    assert_eq!(resumed(&sandbox), (4, [false, true]), "edited");

    let sandbox = dirty();
    sandbox.git("checkout -q a/main.tf");
    sandbox.remove("/b/new.tf");
    assert_eq!(resumed(&sandbox), (4, [true, true]), "taken back");

    let sandbox = dirty();
    sandbox.write("/a/new.tf", "");
    assert_eq!(resumed(&sandbox), (4, [true, false]), "added");
}

/// git records the bit too, and a script behaves differently with it.
#[cfg(unix)]
#[test]
fn resume_notices_an_uncommitted_file_that_became_executable() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Repository::of(four_stacks());
    sandbox.write("/c/fail", "");
    sandbox.commit();
    sandbox.write("/a/new.sh", "true\n");
    run_in_c(&sandbox, "-X");
    let set_mode = |mode: u32| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(sandbox.path("/a/new.sh"), permissions).unwrap();
    };
    set_mode(0o755);
    let output = sandbox.orch("run -q -X --resume");
    assert_eq!(output.code(), 4, "{output}");
    assert!(output.stderr.contains("`/a` (a/new.sh)"), "{output}");

    set_mode(0o600);
    assert_eq!(sandbox.orch("run -q -X --resume").code(), 1, "as it was");

    // The journal of an earlier `orch` does not record it.
    for run in run_ids(&sandbox) {
        let path = journal_of(&run);
        let text = sandbox.read(&path);
        let earlier = text.replacen(",\"executable\":false", "", 1);
        assert_ne!(text, earlier);
        sandbox.write(&path, &earlier);
    }
    set_mode(0o755);
    assert_eq!(sandbox.orch("run -q -X --resume").code(), 1);
}

#[test]
fn resume_refuses_a_run_whose_uncommitted_files_are_unknown() {
    let sandbox = failed_in_c("");
    assert_eq!(journal(&sandbox)[0]["uncommitted"], serde_json::json!([]));
    let path = journal_of(&run_ids(&sandbox)[0]);
    let text = sandbox.read(&path);
    let unknown = text.replacen("\"uncommitted\":[],", "", 1);
    assert_ne!(text, unknown);
    sandbox.write(&path, &unknown);
    let output = sandbox.orch("run -q --resume");
    assert_eq!(output.code(), 4, "{output}");
    let message = "its journal lacks the files that were uncommitted then";
    assert!(output.stderr.contains(message), "{output}");
    let output = sandbox.orch("run -q --resume --allow-stale");
    assert_eq!(output.code(), 1, "{output}");
}

#[test]
fn resume_counts_successes_of_all_earlier_runs() {
    let sandbox = failed_in_c("");
    assert_eq!(sandbox.orch("run -q --resume").code(), 1);
    sandbox.write("/a/main.tf", "# more\n");
    sandbox.commit();
    let output = sandbox.orch("run -q --resume");
    assert_eq!(output.code(), 4, "{output}");
    assert!(output.stderr.contains("`/a` (a/main.tf)"), "{output}");
}

#[test]
fn resume_refuses_unknown_changes() {
    let sandbox = failed_in_c("");
    let path = journal_of(&run_ids(&sandbox)[0]);
    let text = sandbox.read(&path);
    let head = sandbox.git("rev-parse HEAD");
    for (head_then, message) in [
        (
            "\"0123456789012345678901234567890123456789\"",
            "HEAD was `0123456` then, which is not in this clone",
        ),
        ("\"../../x\"", "which is not in this clone"),
        ("null", "HEAD was no commit then, and is"),
    ] {
        let head = format!("\"head\":\"{}\"", head.trim());
        sandbox.write(&path, text.replace(&head, &format!("\"head\":{head_then}")));
        let output = sandbox.orch("run -q --resume");
        assert_eq!(output.code(), 4, "{output}");
        assert!(output.stderr.contains(message), "{output}");
        let output = sandbox.orch("run -q --resume --allow-stale --dry-run");
        assert_eq!(output.code(), 0, "{output}");
    }
}

#[test]
fn resume_refuses_another_graph() {
    let sandbox = four_stacks();
    assert_eq!(sandbox.orch("run -q false").code(), 1);
    // What does not matter for the order may change.
    sandbox.write(
        "/b/stack.tm",
        "stack {\n\n  name = \"other\"\n  after = [\"../a\"]\n}\n",
    );
    sandbox.write("/globals.tm", "globals {\n  a = 1\n}\n");
    assert_eq!(sandbox.orch("run -q --resume").code(), 1);
    for (file, text) in [
        ("/b/stack.tm", "stack {\n  after = [\"/c\"]\n}\n"),
        ("/b/stack.tm", "stack {\n  before = [\"/a\"]\n}\n"),
        ("/b/stack.tm", "stack {\n}\n"),
        ("/e/stack.tm", "stack {\n}\n"),
    ] {
        let before = sandbox.read(file);
        sandbox.write(file, text);
        let output = sandbox.orch("run -q --resume");
        assert_eq!(output.code(), 4, "{text}: {output}");
        assert!(output.stderr.contains("the graph has changed"), "{output}");
        if before.is_empty() {
            sandbox.remove(file);
        } else {
            sandbox.write(file, before);
        }
    }
    assert_eq!(sandbox.orch("run -q --resume").code(), 1);
}

#[test]
fn resume_leaves_out_a_removed_stack_on_request() {
    let sandbox = four_stacks();
    assert_eq!(sandbox.orch("run -q false").code(), 1);
    sandbox.remove("/b/stack.tm");
    assert_snapshot!(said(&sandbox, &sandbox.orch("run --resume")), @"
    [stderr]
    error: run <run 1> cannot be resumed: the graph has changed: stacks, nesting, `after` or `before` are different
      = help: start a new run, or resume this one anyway with `--allow-stale`
    [exit status 4]
    ");
    let output = sandbox.orch("run --resume --allow-stale");
    assert_snapshot!(said(&sandbox, &output), @"
    [stderr]
    note: resuming run <run 1> anyway: the graph has changed: stacks, nesting, `after` or `before` are different
    note: `/b` from run <run 1> no longer exists; it is left out
    orch: /a: false
    orch: cancelled /c: the run stopped when /a failed
    orch: cancelled /d: the run stopped when /a failed
    orch: failed /a: exit status 1 after [time]
    orch: 0 succeeded, 1 failed, 2 cancelled in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn resume_checks_safeguards() {
    let sandbox = Repository::of(four_stacks());
    assert_eq!(sandbox.orch("run -q false").code(), 1);
    sandbox.write("/untracked", "");
    let output = sandbox.orch("run --resume");
    assert_eq!(output.code(), 4);
    assert!(output.stderr.contains("untracked"), "{output}");
    assert_eq!(run_ids(&sandbox).len(), 1);
}

#[test]
fn resume_has_a_dry_run() {
    let sandbox = four_stacks();
    sandbox.write("/c/fail", "");
    _ = sandbox.orch(&noting(&sandbox, ""));
    assert_snapshot!(sandbox.orch("run --resume --dry-run"), @"
    /c: ../note.sh
    /d: ../note.sh
    ");
}

#[test]
fn resume_refuses_a_run_in_progress() {
    let sandbox = four_stacks();
    let script = "echo x >> \"$ORCH_ROOT/started\"\nwhile [ -d \"$ORCH_ROOT\" ] && [ ! -e \"$ORCH_ROOT/go\" ]; do sleep 0.01; done";
    let run = Background::run(&sandbox, "", script);
    run.wait_for("/started", &["x"]);
    let output = sandbox.orch("run --resume --allow-concurrent");
    assert_snapshot!(said(&sandbox, &output), @"
    [stderr]
    error: run <run 1> is still in progress
      = help: wait until it has ended
    [exit status 4]
    ");
    sandbox.write("/go", "");
    assert_eq!(run.end().code(), 0);
}

#[test]
fn resume_finds_a_run_by_the_beginning_of_its_id() {
    let sandbox = four_stacks();
    assert_snapshot!(sandbox.orch("run --resume"), @"
    [stderr]
    error: no run to resume: this project has no recorded runs
      = help: start one with `orch run COMMAND`
    [exit status 4]
    ");
    for word in ["one", "two"] {
        _ = sandbox.orch(&format!("run -q -- sh -c 'echo {word}; false'"));
    }
    let ids = run_ids(&sandbox);
    let first = sandbox.orch(&format!("run -q --resume {}", ids[0].to_uppercase()));
    assert_eq!(first.stdout, "one\n", "{first}");
    assert_snapshot!(sandbox.orch("run --resume ffff"), @"
    [stderr]
    error: in --resume: no run has an id that begins or ends with `ffff`; `orch runs list` lists all runs
    [exit status 64]
    ");
    let ambiguous = sandbox.orch("run --resume 0");
    assert_snapshot!(said(&sandbox, &ambiguous), @"
    [stderr]
    error: in --resume: several runs have ids that begin or end with `0`: `<run 3>`, `<run 2>` and `<run 1>`; `orch runs list` lists all runs
    [exit status 64]
    ");
}

#[test]
fn resume_refuses_flags_that_the_journal_has() {
    let sandbox = four_stacks();
    assert_eq!(sandbox.orch("run -q false").code(), 1);
    for arguments in [
        "--resume --reverse",
        "--resume --tags a",
        "--resume --changed",
        "--resume --match a",
        "--resume --no-recursive",
        "--resume --include-dependents",
        "--resume --stacks-from -",
        "--resume -- true",
        "--resume last true",
        "--only-failed true",
        "--only-failed --tags a",
        "--allow-stale true",
        "",
    ] {
        let output = sandbox.orch(&format!("run {arguments}"));
        assert_eq!(output.code(), 64, "{arguments}: {output}");
    }
    assert_eq!(run_ids(&sandbox).len(), 1);
    assert_snapshot!(sandbox.orch("run --resume --match a"), @"
    [stderr]
    error: with `--resume`, the selection is that of the earlier run: remove `--match`
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("run --include-dependents=1 --only-failed"), @"
    [stderr]
    error: with `--only-failed`, the selection is that of the earlier run: remove `--include-dependents`
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("run --resume last --reverse"), @"
    [stderr]
    error: with `--resume`, the direction is that of the earlier run: remove `--reverse`
    [exit status 64]
    ");
}

#[test]
fn resume_refuses_a_journal_of_a_later_orch() {
    let sandbox = Sandbox::layout("a");
    assert_eq!(sandbox.orch("run -q false").code(), 1);
    let path = journal_of(&run_ids(&sandbox)[0]);
    let text = sandbox.read(&path);
    // Events that nobody knows yet do no harm.
    let event = "{\"at\":\"2030-01-01T00:00:00Z\",\"event\":\"teleported\",\"stack\":\"/a\"}\n";
    sandbox.write(&path, format!("{text}{event}"));
    assert_eq!(sandbox.orch("run -q --resume").code(), 1);

    let sandbox = Sandbox::layout("a");
    assert_eq!(sandbox.orch("run -q false").code(), 1);
    let path = journal_of(&run_ids(&sandbox)[0]);
    let text = sandbox.read(&path);
    let text = text.replacen("\"format\":1", "\"format\":2", 1);
    sandbox.write(&path, text.replacen("\"orch\":\"", "\"orch\":\"9.", 1));
    let id = &run_ids(&sandbox)[0];
    let output = sandbox.orch(&format!("run --resume {id}"));
    let text = said(&sandbox, &output).replace(env!("CARGO_PKG_VERSION"), "<version>");
    assert_snapshot!(text, @"
    [stderr]
    error: the journal of run <run 1> cannot be read: it has format 2, written by orch 9.<version>; this orch reads format 1
      = help: resume it with the orch that wrote it
    [exit status 4]
    ");
}

#[test]
fn resume_refuses_a_damaged_journal() {
    let sandbox = four_stacks();
    assert_eq!(sandbox.orch("run -q false").code(), 1);
    let id = &run_ids(&sandbox)[0];
    let text = sandbox.read(&journal_of(id));
    sandbox.write(&journal_of(id), text.replacen("ended", "en\u{1}ded", 1));
    assert_snapshot!(said(&sandbox, &sandbox.orch("run --resume")), @"
    [stderr]
    error: failed to read the journal of run <run 1>
      caused by: line 3 is damaged at column <number>
    [exit status 5]
    ");
    sandbox.write(&journal_of(id), "");
    assert_snapshot!(said(&sandbox, &sandbox.orch("run --resume")), @"
    [stderr]
    error: failed to read the journal of run <run 1>
      caused by: it has no header
    [exit status 5]
    ");
}

#[test]
fn resume_ignores_an_empty_run() {
    let sandbox = four_stacks();
    assert_eq!(sandbox.orch("run -q false").code(), 1);
    for arguments in ["run --resume ''", "run --resume=", "runs show ''"] {
        let output = sandbox.orch(arguments);
        assert_eq!(output.code(), 64, "{arguments}: {output}");
        assert!(output.stderr.contains("RUN is empty"), "{output}");
    }
    assert_eq!(run_ids(&sandbox).len(), 1);
}

#[test]
fn resume_refuses_another_command() {
    let sandbox = four_stacks();
    assert_eq!(sandbox.orch("run -q false").code(), 1);
    assert_snapshot!(sandbox.orch("run --resume terraform apply"), @"
    [stderr]
    error: with `--resume terraform`, the command is that of the earlier run: remove `apply`
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("run --only-failed true"), @"
    [stderr]
    error: with `--only-failed`, the command is that of the earlier run: remove `true`
    [exit status 64]
    ");
}

#[test]
fn resume_refuses_an_unreadable_head() {
    let sandbox = Repository::of(four_stacks());
    let config = sandbox.read("/.git/config");
    sandbox.write("/.git/config", "[nonsense");
    assert_eq!(sandbox.orch("run -q -X false").code(), 1);
    let output = sandbox.orch("run -q -X --resume");
    assert_eq!(output.code(), 4, "{output}");
    assert!(output.stderr.contains("HEAD cannot be read"), "{output}");
    sandbox.write("/.git/config", config);
    assert_eq!(sandbox.orch("run -q -X false").code(), 1);
    sandbox.write("/.git/config", "[nonsense");
    let output = sandbox.orch("run -q -X --resume");
    assert_eq!(output.code(), 4, "{output}");
    assert!(output.stderr.contains("HEAD cannot be read"), "{output}");
    let output = sandbox.orch("run -q -X --resume --allow-stale");
    assert_eq!(output.code(), 1, "{output}");
}

#[test]
fn resume_reports_that_the_remaining_stacks_no_longer_exist() {
    let sandbox = four_stacks();
    sandbox.write("/d/fail", "");
    assert_eq!(sandbox.orch(&noting(&sandbox, "")).code(), 1);
    sandbox.remove("/d/stack.tm");
    let output = sandbox.orch("run --resume --allow-stale");
    assert_snapshot!(said(&sandbox, &output), @"
    [stderr]
    note: resuming run <run 1> anyway: the graph has changed: stacks, nesting, `after` or `before` are different
    note: `/d` from run <run 1> no longer exists; it is left out
    note: nothing to resume in run <run 1>: the stacks that had not succeeded no longer exist
    ");
}

#[test]
fn resume_follows_a_changed_graph_and_reports_it() {
    let sandbox = Sandbox::layout("a\nb\nc");
    assert_eq!(sandbox.orch("run -q false").code(), 1);
    sandbox.write("/a/stack.tm", "stack {\n  after = [\"/b\"]\n}\n");
    let output = sandbox.orch("run -q --resume --allow-stale --dry-run");
    assert_eq!(output.stdout, "/b: false\n/a: false\n/c: false\n");
    _ = sandbox.orch("run -q --resume --allow-stale");
    let journal = journal(&sandbox);
    assert_eq!(journal[1]["stack"], "/b");
    assert_eq!(journal[0]["order"], serde_json::json!(["/b", "/a", "/c"]));
    // Where the graph says nothing any more, it stays as it was.
    sandbox.write("/a/stack.tm", "stack {\n}\n");
    let output = sandbox.orch("run -q --resume --allow-stale --dry-run");
    assert_eq!(output.stdout, "/b: false\n/a: false\n/c: false\n");
}

#[test]
fn ties_of_a_reverse_run_stay_as_they_were() {
    let sandbox = Sandbox::layout("a\nb\nc");
    sandbox.write("/c/fail", "");
    assert_eq!(sandbox.orch(&noting(&sandbox, "--reverse")).code(), 1);
    assert_eq!(ran(&sandbox), "c");
    sandbox.remove("/c/fail");
    assert_eq!(sandbox.orch("run -q --resume").code(), 0);
    assert_eq!(ran(&sandbox), "c b a");
}

#[test]
fn conditions_of_retries_that_are_given_replace_the_recorded_ones() {
    let sandbox = Sandbox::layout("a");
    let flags = "--retries 1 --retry-backoff 0s --retry-on-exit 7 --retry-on-output busy";
    _ = sandbox.orch(&format!("run -q {flags} -- false"));
    let conditions = |arguments: &str| {
        assert_eq!(sandbox.orch(arguments).code(), 1);
        let settings = journal(&sandbox)[0]["settings"].clone();
        (
            settings["retry_on_exit"].clone(),
            settings["retry_on_output"].clone(),
        )
    };
    let recorded = (serde_json::json!([7]), serde_json::json!(["busy"]));
    assert_eq!(conditions("run -q --resume"), recorded);
    let given = (serde_json::json!([9]), serde_json::json!([]));
    assert_eq!(conditions("run -q --resume --retry-on-exit 9"), given);
}

#[test]
fn resume_keeps_the_base_of_the_earlier_run() {
    let sandbox = Repository::layout("a\nb");
    sandbox.write("/a/main.tf", "# more\n");
    sandbox.commit();
    let output = sandbox.orch("run -q --changed --base base -- false");
    assert_eq!(output.code(), 1, "{output}");
    let base = journal(&sandbox)[0]["base"].clone();
    assert_eq!(base["commit"], sandbox.git("rev-parse base").trim());
    assert_eq!(sandbox.orch("run -q --resume").code(), 1);
    assert_eq!(journal(&sandbox)[0]["base"], base);
}
