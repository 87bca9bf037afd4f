//! `--lock-timeout` without a file: the lock is waited for before anything is planned.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::together::{AWAIT, HeldUp, in_two_clones, waiting};
use super::{acts, assert_tidy, done, fails, hook, log, tool, unhook, world};
use crate::support::{Background, Repository, answered_after, skipped, wait_until};

/// Returns the document of the state that two clones share.
fn document(repository: &Repository) -> Value {
    let text = fs::read(repository.outside().join("state.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// An apply in the other clone that is held up in `/a`, after it has applied other contents to `/b`.
fn other(repository: &Repository) -> HeldUp<'_> {
    let elsewhere = repository.outside().join("elsewhere");
    fs::write(elsewhere.join("b/want"), "3").unwrap();
    repository.git_in(&elsewhere, "commit -q -a -m other");
    let other = "apply --auto-approve --match a --match b --disable-safeguards=git-out-of-sync";
    HeldUp::start(repository, "elsewhere", "a", other)
}

#[test]
fn apply_waits_for_the_lock_before_it_plans() {
    let repository = in_two_clones();
    let other = other(&repository);
    log(&repository);
    let waiting = waiting(
        &repository,
        "apply --auto-approve --allow-rollback --lock-timeout 10m",
    );
    assert_eq!(log(&repository), [""; 0], "nothing is planned yet");
    other.go_on();
    let output = waiting.end();
    assert_eq!(output.code(), 0, "{output}");
    // What the other has applied is what it was planned with.
    for name in ["a", "b", "c"] {
        assert_eq!(world(&repository, name).as_deref(), Some("2"), "{name}");
    }
    let acts = acts(&repository);
    assert!(!acts.contains(&"apply update a".to_owned()), "{acts:?}");
    assert_eq!(document(&repository)["lock"], Value::Null);
    assert_tidy(&repository);
}

#[test]
fn apply_gives_up_before_it_plans_if_the_lock_stays_held() {
    let repository = in_two_clones();
    let other = other(&repository);
    log(&repository);
    for flags in ["--auto-approve", "", "--destroy --auto-approve"] {
        let apply = format!("apply {flags} --lock-timeout 0s");
        fails(&repository, &apply, 4, "is locked");
        assert_eq!(log(&repository), [""; 0]);
    }
    other.go_on();
}

#[test]
fn apply_holds_the_lock_while_it_plans_only_if_nobody_is_asked() {
    let repository = in_two_clones();
    let script = format!("{AWAIT}: > $ORCH_ROOT/../planning; await planned");
    hook(&repository, "plan", "b", &script);
    let mut command = repository.command("apply --auto-approve --match b --lock-timeout 10m");
    command.stdin(Stdio::null());
    let apply = Background::spawn(&repository, command);
    let place = |name: &str| repository.outside().join(name);
    wait_until("it plans", || place("planning").exists());
    assert_ne!(document(&repository)["lock"], Value::Null);
    fs::write(place("planned"), "").unwrap();
    assert_eq!(apply.end().code(), 0);
    unhook(&repository, "plan", "b");
    assert_eq!(document(&repository)["lock"], Value::Null);
    // Somebody who is asked keeps nobody waiting.
    let elsewhere = repository.outside().join("elsewhere");
    let meanwhile = || {
        assert_eq!(document(&repository)["lock"], Value::Null);
        let output = repository.orch_with("apply --auto-approve --match a", |command| {
            command.current_dir(&elsewhere);
        });
        assert_eq!(output.code(), 0, "{output}");
    };
    let answered = answered_after(&repository, "apply --lock-timeout 10m", "yes\n", meanwhile);
    let Some((status, said)) = answered else {
        skipped("there is no terminal");
        return;
    };
    assert_eq!(status, 0, "{said}");
    assert_eq!(world(&repository, "c").as_deref(), Some("2"));
    assert_eq!(document(&repository)["lock"], Value::Null);
}

#[test]
fn apply_frees_the_lock_if_it_is_interrupted_while_it_plans() {
    let repository = in_two_clones();
    hook(
        &repository,
        "plan",
        "b",
        &format!("{AWAIT}: > $ORCH_ROOT/../planning; await never"),
    );
    let mut command = repository.command("apply --auto-approve --match b --lock-timeout 10m");
    command.stdin(Stdio::null()).process_group(0);
    let apply = Background::spawn(&repository, command);
    let planning = repository.outside().join("planning");
    wait_until("it plans", || planning.exists());
    apply.signal(Signal::SIGINT);
    let output = apply.end();
    assert_eq!(output.code(), 130, "{output}");
    assert_eq!(document(&repository)["lock"], Value::Null);
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn apply_lets_the_tools_wait_for_their_own_locks_as_long() {
    let repository = tool::project(&[("/a", "")]);
    done(&repository, "apply --auto-approve --lock-timeout 20s");
    let calls = log(&repository);
    let with_option = |command: &str| {
        let option = format!("a: {command} -lock-timeout=20000ms -input=false ");
        calls.iter().any(|call| call.starts_with(&option))
    };
    assert!(with_option("plan") && with_option("apply"), "{calls:?}");
    repository.write("/a/main.tf", "# 2\n");
    repository.commit();
    done(&repository, "plan -o ../saved");
    assert!(
        !log(&repository)
            .iter()
            .any(|it| it.contains("lock-timeout"))
    );
    done(&repository, "apply ../saved --lock-timeout 20s");
    let calls = log(&repository);
    let apply = "a: apply -lock-timeout=20000ms -input=false ";
    assert!(calls.iter().any(|it| it.starts_with(apply)), "{calls:?}");
}
