//! Removals that fail, are interrupted or killed: nothing is left of the checkouts, and what was not destroyed
//! stays recorded.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::{
    APPROVED, acts, applied, assert_tidy, checkouts, done, entry, fails, forget_log, hook, keys,
    leaves_blocked, planned, remove, unhook, want, world,
};
use crate::support::{Background, Repository, wait_until};

const CHAIN: [(&str, &str); 4] = [
    ("/a", ""),
    ("/b", "after = [\"/a\"]"),
    ("/c", "after = [\"/b\"]"),
    ("/other", ""),
];

/// A project from which a chain of three stacks was removed.
fn chain() -> Repository {
    let repository = applied(&CHAIN);
    remove(&repository, "a b c");
    repository
}

/// Starts `orch` in a process group of its own, and returns when a step of a stack has begun, with the process
/// of that. The step ends with a signal only.
fn held_up<'r>(
    repository: &'r Repository,
    step: &str,
    name: &str,
    arguments: &str,
) -> (Background<'r>, Pid) {
    let script = "cd \"$outside\"; echo $$ > in.new; mv in.new in; exec sleep 100";
    hook(repository, step, name, script);
    let mut command = repository.command(arguments);
    command.stdin(Stdio::null()).process_group(0);
    let orch = Background::spawn(repository, command);
    let begun = repository.outside().join("in");
    wait_until("the step has begun", || begun.exists());
    let tool = fs::read_to_string(&begun).unwrap().trim().parse().unwrap();
    fs::remove_file(begun).unwrap();
    unhook(repository, step, name);
    (orch, Pid::from_raw(tool))
}

#[test]
fn removal_that_fails_keeps_the_entry_and_dependencies() {
    let repository = chain();
    hook(&repository, "destroy", "b", "exit 1");
    let said = fails(&repository, &format!("apply {APPROVED}"), 1, "/b");
    assert!(said.contains("`orch plan` shows what is left"), "{said}");
    assert_eq!(acts(&repository), ["destroy /c", "destroy /b"]);
    assert_eq!(world(&repository), ["a", "b", "other"]);
    assert_eq!(keys(&repository), ["/a", "/b", "/other"]);
    let failed = entry(&repository, "/b");
    assert_eq!(failed["last"]["action"], "destroy");
    assert_eq!(failed["last"]["outcome"], "failed");
    assert!(failed["applied"].is_object(), "{failed}");
    assert_tidy(&repository);
    let listed = done(&repository, "list --status failed");
    assert!(listed.is_empty() || listed.contains('b'), "{listed}");
    // The next plan says the same.
    unhook(&repository, "destroy", "b");
    assert_eq!(planned(&repository, ""), ["/a delete", "/b delete"]);
    forget_log(&repository);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /b", "destroy /a"]);
    assert_eq!(keys(&repository), ["/other"]);
    assert_tidy(&repository);
}

#[test]
fn removal_forgets_a_stack_destroyed_by_a_failed_run() {
    let repository = chain();
    hook(&repository, "destroy", "b", "rm \"$thing\"; exit 1");
    fails(&repository, &format!("apply {APPROVED}"), 1, "/b");
    unhook(&repository, "destroy", "b");
    assert_eq!(planned(&repository, ""), ["/a delete", "/b forget"]);
    forget_log(&repository);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /a"]);
    assert_eq!(keys(&repository), ["/other"]);
}

#[test]
fn removal_plan_that_fails_leaves_no_checkout() {
    let repository = chain();
    hook(&repository, "plan", "b", "exit 1");
    for command in ["plan", "plan -o ../saved", "apply --auto-approve"] {
        fails(&repository, command, 1, "/b");
        assert_tidy(&repository);
    }
    assert!(!repository.outside().join("saved").exists());
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn removal_without_approval_leaves_no_checkout() {
    let repository = chain();
    fails(&repository, "apply --auto-approve", 4, "--allow-destroy=3");
    assert_tidy(&repository);
}

#[test]
fn removal_that_is_interrupted_leaves_no_checkout() {
    for (step, arguments) in [
        ("plan", "plan".to_owned()),
        ("plan", format!("apply {APPROVED}")),
        ("destroy", format!("apply {APPROVED}")),
    ] {
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            let repository = chain();
            forget_log(&repository);
            let (orch, _) = held_up(&repository, step, "c", &arguments);
            assert_eq!(
                checkouts(&repository).len(),
                2,
                "{:?}",
                checkouts(&repository)
            );
            // It passes the signal on. Whoever ends after its last tool hears none any more, so that a tool that
            // got it at the same time could end first.
            orch.signal(signal);
            let output = orch.end();
            assert_eq!(
                output.code(),
                128 + signal as i32,
                "{step} {signal}: {output}"
            );
            assert_tidy(&repository);
            assert_eq!(world(&repository), ["a", "b", "c", "other"], "{output}");
            assert_eq!(keys(&repository).len(), 4);
            let resumed = done(&repository, &format!("apply {APPROVED}"));
            assert_eq!(world(&repository), ["other"], "{resumed}");
            assert_tidy(&repository);
        }
    }
}

#[test]
fn removal_deletes_checkouts_of_killed_runs() {
    for (step, arguments) in [
        ("plan", "plan".to_owned()),
        ("destroy", format!("apply {APPROVED}")),
    ] {
        for next in [
            "plan",
            "plan --no-removals",
            "plan --match other",
            "apply --auto-approve --match other",
        ] {
            let repository = chain();
            let (orch, tool) = held_up(&repository, step, "c", &arguments);
            orch.kill();
            signal::kill(tool, Signal::SIGKILL).unwrap();
            assert_eq!(
                checkouts(&repository).len(),
                2,
                "{:?}",
                checkouts(&repository)
            );
            let output = repository.orch(next);
            assert!(matches!(output.code(), 0 | 4), "{next}: {output}");
            assert_eq!(checkouts(&repository), [""; 0], "{step}, {next}: {output}");
            assert_eq!(world(&repository), ["a", "b", "c", "other"]);
        }
    }
}

#[test]
fn removal_keeps_checkouts_of_running_runs() {
    let repository = chain();
    let (orch, tool) = held_up(&repository, "plan", "c", "plan");
    let before = checkouts(&repository);
    assert_eq!(before.len(), 2, "{before:?}");
    // Both look for what killed runs have left.
    let listed = done(&repository, "plan --no-removals");
    assert!(listed.contains("3 removals left out"), "{listed}");
    fails(&repository, "plan", 4, "another run is in progress");
    assert_eq!(checkouts(&repository), before);
    orch.signal(Signal::SIGINT);
    _ = signal::kill(tool, Signal::SIGINT);
    assert_eq!(orch.end().code(), 130);
    assert_tidy(&repository);
}

#[test]
fn removal_repeats_a_killed_destroy() {
    let repository = chain();
    let (orch, tool) = held_up(&repository, "destroy", "b", &format!("apply {APPROVED}"));
    orch.kill();
    signal::kill(tool, Signal::SIGKILL).unwrap();
    forget_log(&repository);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /b", "destroy /a"]);
    assert_eq!(world(&repository), ["other"]);
    assert_tidy(&repository);
}

#[test]
fn removal_keeps_stacks_of_a_killed_apply_without_recorded_backend() {
    for (kind, is_kept) in [("", true), ("driver = \"placed\"\n  name = \"one\"", false)] {
        let repository = applied(&[("/a", kind), ("/b", "")]);
        want(&repository, "/a", "2");
        repository.commit();
        let (orch, tool) = held_up(&repository, "apply", "a", "apply --auto-approve");
        orch.kill();
        signal::kill(tool, Signal::SIGKILL).unwrap();
        remove(&repository, "a");
        // The code that was applied last does not know what the other commit may have made.
        let expected = if is_kept {
            "/a blocked: its last apply was interrupted"
        } else {
            "/a delete"
        };
        assert_eq!(planned(&repository, ""), [expected], "{kind}");
        forget_log(&repository);
        let apply = format!("apply {APPROVED}");
        if is_kept {
            leaves_blocked(&repository, &apply);
        } else {
            done(&repository, &apply);
        }
        assert_eq!(acts(&repository).is_empty(), is_kept, "{kind}");
        assert_eq!(world(&repository).len(), if is_kept { 2 } else { 1 });
    }
}

#[test]
fn removal_reason_names_an_interrupted_destroy() {
    let repository = applied(&[("/a", "driver = \"unasked\""), ("/b", "")]);
    remove(&repository, "a b");
    let text = |name: &str| {
        let plan = done(&repository, "plan");
        let line = plan
            .lines()
            .find(|line| line.contains(&format!("- /{name} ")));
        line.unwrap_or_else(|| panic!("{plan}")).to_owned()
    };
    let unsure = "its last destroy failed";
    assert!(!text("a").contains(unsure));
    // It is killed once it has destroyed the stack. `b` fails before it does anything.
    hook(&repository, "destroy", "a", "rm \"$thing\"; kill -9 $$");
    hook(&repository, "destroy", "b", "exit 1");
    fails(&repository, &format!("apply {APPROVED}"), 1, "/a");
    assert!(text("a").contains(unsure), "{}", text("a"));
    // A tool that is asked tells.
    assert!(!text("b").contains(unsure), "{}", text("b"));
}

#[test]
fn removal_interrupt_waits_for_running_steps() {
    // The tools of the tree are asked in a run of their own, and so are those of what was removed.
    for step in ["plan", "destroy"] {
        let repository = chain();
        want(&repository, "/other", "2");
        repository.commit();
        let slow = "touch \"$outside/in\"; trap 'exit 1' INT; while :; do sleep 0.01; [ -d \"$outside\" ] || exit; done";
        hook(&repository, step, "c", slow);
        let mut command = repository.command(&format!("apply {APPROVED}"));
        command.stdin(Stdio::null()).process_group(0);
        let orch = Background::spawn(&repository, command);
        let begun = repository.outside().join("in");
        wait_until("the step has begun", || begun.exists());
        orch.signal(Signal::SIGINT);
        orch.wait_until_said("waiting for /c");
        orch.signal(Signal::SIGINT);
        let output = orch.end();
        assert_eq!(output.code(), 130, "{step}: {output}");
        assert_tidy(&repository);
        assert_eq!(keys(&repository).len(), 4, "{output}");
    }
}

#[test]
fn removal_is_not_blocked_by_forgotten_stacks() {
    for (plan, apply) in [
        (None, "apply"),
        (None, "destroy"),
        (Some("plan -o ../saved"), "apply ../saved"),
        (Some("plan --destroy -o ../saved"), "apply ../saved"),
    ] {
        let repository = chain();
        super::vanish(&repository, "b");
        if let Some(plan) = plan {
            done(&repository, plan);
        }
        done(&repository, &format!("{apply} {APPROVED}"));
        let mut acts = acts(&repository);
        acts.retain(|act| act != "destroy /other");
        assert_eq!(acts, ["destroy /c", "destroy /a"], "{apply}");
        assert!(!keys(&repository).contains(&"/b".to_owned()));
        assert_tidy(&repository);
    }
}
