//! Applies at the same time, several stacks at once, and applies that are interrupted.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{
    acts, applied, assert_tidy, done, entry, fails, hook, log, prepared, project, unhook, want,
    with_state, world,
};
use crate::support::{Background, Repository, ended, wait_until};

/// An apply that is held up in the step of a stack until it may go on.
pub(super) struct HeldUp<'r> {
    repository: &'r Repository,
    apply: Child,
}

/// Waits until a file beside the project exists, as long as the project does.
pub(super) const AWAIT: &str = "await() {
  while [ ! -e \"$ORCH_ROOT/../$1\" ]; do
    [ -d \"$ORCH_ROOT\" ] || exit 1
    sleep 0.01
  done
}
";

impl<'r> HeldUp<'r> {
    /// Starts one in a directory beside the project, and returns when it is held up.
    pub(super) fn start(
        repository: &'r Repository,
        directory: &str,
        name: &str,
        arguments: &str,
    ) -> Self {
        let script = format!("{AWAIT}: > $ORCH_ROOT/../held; await go");
        hook(repository, "apply", name, &script);
        let mut command = repository.command(arguments);
        command
            .current_dir(repository.outside().join(directory))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let apply = command.spawn().unwrap();
        let held = repository.outside().join("held");
        wait_until("the apply is held up", || held.exists());
        HeldUp { repository, apply }
    }

    /// Lets it go on, and waits for its end.
    pub(super) fn go_on(mut self) {
        fs::write(self.repository.outside().join("go"), "").unwrap();
        assert!(ended(&mut self.apply).success());
    }
}

/// Starts `orch`, which waits for the lock of the state.
pub(super) fn waiting<'r>(repository: &'r Repository, arguments: &str) -> Background<'r> {
    let mut command = repository.command(arguments);
    command.stdin(Stdio::null());
    let waiting = Background::spawn(repository, command);
    waiting.wait_until_said("waiting for the state lock");
    waiting
}

/// A project whose state lies beside it, with everything applied and other contents wanted; a plan of that for
/// `/b` and `/c`; and another clone, `elsewhere`.
pub(super) fn in_two_clones() -> Repository {
    let sandbox = prepared(&[("/a", ""), ("/b", ""), ("/c", "after = [\"/b\"]")]);
    let state = "orch {\n  config {\n    state {\n      project = \"acme\"\n      backend \"local\" {\n        path = \"../state.json\"\n      }\n    }\n  }\n}\n";
    sandbox.write("/state.orch.hcl", state);
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    done(&repository, "apply --auto-approve");
    for path in ["/a", "/b", "/c"] {
        want(&repository, path, "2");
    }
    done(&repository, "plan --match b --match c -o ../saved");
    let place = repository.outside().to_path_buf();
    repository.git_in(&place, "clone -q project elsewhere");
    log(&repository);
    repository
}

#[test]
fn apply_verifies_the_plan_again_after_waiting_for_the_lock() {
    let repository = in_two_clones();
    let elsewhere = repository.outside().join("elsewhere");
    fs::write(elsewhere.join("b/want"), "3").unwrap();
    repository.git_in(&elsewhere, "commit -q -a -m other");
    let other = "apply --auto-approve --match a --match b --disable-safeguards=git-out-of-sync";
    let other = HeldUp::start(&repository, "elsewhere", "a", other);
    let waiting = waiting(&repository, "apply ../saved --lock-timeout 10m");
    other.go_on();
    let output = waiting.end();
    assert_eq!(output.code(), 4, "{output}");
    let said = "/b: its record has changed";
    assert!(output.stderr.contains(said), "{output}");
    assert_eq!(acts(&repository), ["apply update a", "apply update b"]);
    assert_eq!(world(&repository, "b").as_deref(), Some("3"));
    assert_tidy(&repository);
}

#[test]
fn apply_accepts_work_done_while_it_waited() {
    let repository = in_two_clones();
    let other = HeldUp::start(&repository, "elsewhere", "a", "apply --auto-approve");
    let waiting = waiting(&repository, "apply ../saved --lock-timeout 10m");
    other.go_on();
    let output = waiting.end();
    assert_eq!(output.code(), 0, "{output}");
    let said = "nothing to do";
    assert!(output.stderr.contains(said), "{output}");
    let once = ["apply update a", "apply update b", "apply update c"];
    assert_eq!(acts(&repository), once);
}

#[test]
fn apply_of_a_file_waits_for_a_run_that_has_done_a_part_of_it() {
    let repository = in_two_clones();
    let other = HeldUp::start(&repository, "elsewhere", "c", "apply --auto-approve");
    fails(&repository, "apply ../saved", 4, "its record has changed");
    let waiting = waiting(&repository, "apply ../saved --lock-timeout 10m");
    other.go_on();
    let output = waiting.end();
    assert_eq!(output.code(), 0, "{output}");
    let said = "nothing to do";
    assert!(output.stderr.contains(said), "{output}");
    let once = ["apply update a", "apply update b", "apply update c"];
    assert_eq!(acts(&repository), once);
}

#[test]
fn apply_runs_a_plan_once_at_a_time() {
    for make in [project, with_state] {
        let repository = make(&[("/a", ""), ("/b", "")]);
        done(&repository, "plan -o ../saved");
        let first = HeldUp::start(&repository, "project", "b", "apply ../saved");
        log(&repository);
        fails(&repository, "apply ../saved", 4, "add `--resume`");
        let said = fails(&repository, "apply ../saved --resume", 4, "");
        assert!(!said.contains("nothing to do"), "{said}");
        assert_eq!(log(&repository), [""; 0], "{said}");
        first.go_on();
        for again in ["apply ../saved", "apply ../saved --resume"] {
            let said = done(&repository, again);
            assert!(said.contains("nothing to do"), "{said}");
        }
        assert_eq!(acts(&repository), [""; 0]);
    }
}

#[test]
fn resume_of_a_finished_plan_needs_no_lock() {
    let repository = with_state(&[("/a", ""), ("/b", "")]);
    done(&repository, "plan --match a -o ../saved");
    done(&repository, "apply ../saved");
    let other = HeldUp::start(&repository, "project", "b", "apply --auto-approve");
    let said = done(&repository, "apply ../saved --resume --lock-timeout 10m");
    assert!(said.contains("nothing to do"), "{said}");
    other.go_on();
}

#[test]
fn apply_runs_independent_stacks_in_parallel() {
    let repository = with_state(&[
        ("/a", ""),
        ("/b", ""),
        ("/c", ""),
        ("/d", "after = [\"/a\", \"/b\", \"/c\"]"),
        ("/e", "after = [\"/d\"]"),
    ]);
    for name in ["a", "b", "c"] {
        let script =
            format!("{AWAIT}: > $ORCH_ROOT/../in-{name}; await in-a; await in-b; await in-c");
        hook(&repository, "apply", name, &script);
    }
    let all = "for it in a b c; do [ -e $world/$it ] || exit 1; done";
    hook(&repository, "apply", "d", all);
    done(&repository, "plan -o ../saved");
    done(&repository, "apply ../saved -j 3");
    let acts = acts(&repository);
    assert_eq!(acts[3..], ["apply create d", "apply create e"], "{acts:?}");
    for name in ["a", "b", "c", "d", "e"] {
        assert_eq!(world(&repository, name).as_deref(), Some("1"), "{name}");
    }
    assert!(done(&repository, "plan").contains("5 unchanged"));
}

#[test]
fn resume_continues_after_ctrl_c() {
    for make in [project, with_state] {
        let repository = make(&[
            ("/a", ""),
            ("/b", "after = [\"/a\"]"),
            ("/c", "after = [\"/b\"]"),
        ]);
        done(&repository, "plan -o ../saved");
        hook(
            &repository,
            "apply",
            "b",
            ": > $ORCH_ROOT/../held; exec sleep 100",
        );
        let mut command = repository.command("apply ../saved");
        command.stdin(Stdio::null());
        command.process_group(0);
        let apply = Background::spawn(&repository, command);
        let held = repository.outside().join("held");
        wait_until("it has begun", || held.exists());
        apply.signal(Signal::SIGINT);
        let output = apply.end();
        assert_eq!(output.code(), 130, "{output}");
        let goes_on = "`orch apply ../saved --resume` continues this plan";
        assert!(output.stderr.contains(goes_on), "{output}");
        assert_tidy(&repository);
        unhook(&repository, "apply", "b");
        log(&repository);
        fails(&repository, "apply ../saved", 4, "add `--resume`");
        done(&repository, "apply ../saved --resume");
        assert_eq!(acts(&repository), ["apply create b", "apply create c"]);
    }
}

#[test]
fn apply_keeps_changes_of_an_attempt_if_the_retry_cannot_plan() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    let retry = "orch {\n  config {\n    run {\n      retry {\n        attempts = 2\n        backoff  = \"0s\"\n        on_exit  = [1]\n      }\n    }\n  }\n}\n";
    repository.write("/retry.orch.hcl", retry);
    want(&repository, "/a", "2");
    done(&repository, "plan -o ../saved");
    let half = "printf half > $world/a; exit 1";
    hook(&repository, "apply", "a", half);
    let deletes = "echo '{\"remove\":1}' > $ORCH_ANSWER; exit 2";
    hook(&repository, "plan", "a", deletes);
    let said = "/a: failed: has changes that the plan does not show";
    fails(&repository, "apply ../saved", 1, said);
    let recorded = entry(&repository, "/a");
    assert_eq!(recorded["last"]["outcome"], "failed", "{recorded}");
    assert_eq!(recorded["intent"], Value::Null, "{recorded}");
    unhook(&repository, "apply", "a");
    unhook(&repository, "plan", "a");
    let plan = done(&repository, "plan");
    assert!(plan.contains("~ /a  update"), "{plan}");
}
