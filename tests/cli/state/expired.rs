//! Locks in a bucket whose holders send no heartbeat, and runs that wait for a lock.

use std::process::Command;

use jiff::SignedDuration;
use nix::sys::signal::{self, Signal};
use serde_json::Value;

use super::project;
use crate::support::{
    Background, BucketServer, Dialect, Lost, Output, Repository, ended, run_ids, wait_until,
};

const KEY: &str = "acme/default.json";

const LOCK: &str = "lock {\n  expires = \"15m\"\n}";

/// A checkout of a project whose state is in a bucket, and a second one beside it.
fn in_bucket(server: &BucketServer, lock: &str) -> Repository {
    let sandbox = project(&format!("{}\n{lock}", server.backend()));
    let repository = Repository::of(sandbox);
    assert_eq!(orch(&repository, server, "state init").code(), 0);
    let elsewhere = repository.outside().join("elsewhere");
    repository.git(&format!("clone -q . {}", elsewhere.display()));
    repository
}

fn orch(repository: &Repository, server: &BucketServer, arguments: &str) -> Output {
    repository.orch_with(arguments, |command| {
        command.envs(server.credentials());
    })
}

fn elsewhere(repository: &Repository, server: &BucketServer, arguments: &str) -> Output {
    repository.orch_with(arguments, |command| {
        command
            .envs(server.credentials())
            .current_dir(repository.outside().join("elsewhere"));
    })
}

fn document(server: &BucketServer) -> Value {
    serde_json::from_str(&server.object(KEY)).unwrap()
}

/// A run over all stacks that is held up in the first.
fn holder<'r>(
    repository: &'r Repository,
    server: &BucketServer,
    change: impl FnOnce(&mut Command),
) -> Background<'r> {
    let script = "#!/bin/sh\necho \"$ORCH_STACK_NAME\" >> \"$ORCH_ROOT/ran\"\nuntil [ -e \"$ORCH_ROOT/free\" ]; do [ -d \"$ORCH_ROOT\" ] || exit 99; sleep 0.01; done\n";
    repository.write_program("/../work", script);
    let mut command = repository.command("run -q -X --record --output none --");
    command.arg(repository.path("/../work"));
    command.envs(server.credentials());
    change(&mut command);
    let holder = Background::spawn(repository, command);
    wait_until("the lock is held", || repository.path("/ran").exists());
    holder
}

#[test]
fn run_takes_over_a_lock_that_has_expired_and_the_overtaken_run_starts_nothing_more() {
    for beside in [false, true] {
        let server = BucketServer::new(Dialect::S3);
        let repository = in_bucket(&server, LOCK);
        let holder = holder(&repository, &server, |_| {});
        let run = "run -q -X --allow-concurrent --record --match c -- true";
        let next = |arguments: &str| {
            if beside {
                orch(&repository, &server, arguments)
            } else {
                elsewhere(&repository, &server, arguments)
            }
        };
        let refused = next(run);
        assert_eq!(refused.code(), 4, "{refused}");
        assert!(
            refused.stderr.contains("the lock expires 15m after"),
            "{refused}"
        );
        server.advance(SignedDuration::from_mins(16));
        let taken = next(run);
        assert_eq!(taken.code(), 0, "{taken}");
        let note = "the state lock was taken over from run";
        assert!(taken.stderr.contains(note), "{taken}");
        assert!(
            taken.stderr.contains("sent no heartbeat for 15m"),
            "{taken}"
        );
        let before = document(&server);
        assert_eq!(before["lock"], Value::Null);
        let last = &before["stacks"]["/a"]["last"];
        assert_eq!(last["failure"], "interrupted");
        repository.write("/free", "");
        let overtaken = holder.end();
        assert_eq!(overtaken.code(), 5, "{overtaken}");
        let taken = "took the state lock";
        assert!(overtaken.stderr.contains(taken), "{overtaken}");
        assert_eq!(repository.read("/ran"), "a\n");
        assert_eq!(document(&server), before, "it has written");
        let run = run_ids(&repository).into_iter().next().unwrap();
        let recovered = orch(&repository, &server, &format!("state recover {run}"));
        assert_eq!(recovered.code(), 0, "{recovered}");
        assert_eq!(
            document(&server)["stacks"]["/a"]["last"]["outcome"],
            "succeeded"
        );
    }
}

#[test]
fn lock_without_an_expiry_is_never_taken_over() {
    let server = BucketServer::new(Dialect::S3);
    let repository = in_bucket(&server, "");
    let holder = holder(&repository, &server, |_| {});
    server.advance(SignedDuration::from_hours(24));
    let run = "run -q -X --record --match c -- true";
    assert_eq!(elsewhere(&repository, &server, run).code(), 4);
    repository.write("/free", "");
    assert_eq!(holder.end().code(), 0);
}

#[test]
fn unlock_refuses_after_a_recent_heartbeat_by_the_clock_of_the_store() {
    let server = BucketServer::new(Dialect::S3);
    let repository = in_bucket(&server, "");
    // The clock of the store is far from that of the holder.
    server.advance(SignedDuration::from_hours(1));
    let holder = holder(&repository, &server, |_| {});
    let code = document(&server)["lock"]["code"].clone();
    let unlock = format!("state unlock {}", code.as_str().unwrap());
    let refused = elsewhere(&repository, &server, &unlock);
    assert_eq!(refused.code(), 4, "{refused}");
    assert!(refused.stderr.contains("may still be running"), "{refused}");
    server.advance(SignedDuration::from_mins(3));
    assert_eq!(elsewhere(&repository, &server, &unlock).code(), 0);
    repository.write("/free", "");
    assert_eq!(holder.end().code(), 5);
}

#[test]
fn lock_of_a_killed_run_is_taken_over_in_its_checkout_once_its_command_has_ended() {
    let server = BucketServer::new(Dialect::S3);
    let repository = in_bucket(&server, "");
    let holder = holder(&repository, &server, |command| {
        std::os::unix::process::CommandExt::process_group(command, 0);
    });
    signal::killpg(holder.pid(), Signal::SIGKILL).unwrap();
    holder.kill();
    let run = "run -q -X --allow-concurrent --record --match c -- true";
    let refused = orch(&repository, &server, run);
    assert_eq!(refused.code(), 4, "{refused}");
    assert!(refused.stderr.contains("still running"), "{refused}");
    // Nobody knows that elsewhere.
    let refused = elsewhere(&repository, &server, run);
    assert_eq!(refused.code(), 4, "{refused}");
    repository.write("/free", "");
    let waited = format!("{} -- true", run.replace("-- true", "--lock-timeout 1m"));
    let taken = orch(&repository, &server, &waited);
    assert_eq!(taken.code(), 0, "{taken}");
    assert!(
        taken
            .stderr
            .contains("was killed while it held the state lock"),
        "{taken}"
    );
    assert_eq!(document(&server)["lock"], Value::Null);
}

#[test]
fn run_that_waits_names_the_holder_and_its_job() {
    let server = BucketServer::new(Dialect::S3);
    let repository = in_bucket(&server, "");
    let holder = holder(&repository, &server, |command| {
        command.env("CI_JOB_URL", "https://ci.acme.dev/7");
    });
    let mut waiting = repository.command("run -q -X --record --match c --lock-timeout 1m -- true");
    waiting
        .envs(server.credentials())
        .current_dir(repository.outside().join("elsewhere"));
    let place = repository.outside().join("waiting.err");
    waiting.stderr(std::fs::File::create(&place).unwrap());
    let mut waiting = waiting.spawn().unwrap();
    let said = || std::fs::read_to_string(&place).unwrap();
    wait_until("it waits", || said().contains("waiting for the state lock"));
    let said = said();
    let run = run_ids(&repository).pop().unwrap();
    for part in [
        "held by ",
        "apply in run ",
        &run,
        " since ",
        "https://ci.acme.dev/7",
    ] {
        assert!(said.contains(part), "{said}");
    }
    // A store that fails for a while does not end the wait.
    server.lose_next(8, Lost::Refused(500, "InternalError"));
    repository.write("/free", "");
    assert_eq!(holder.end().code(), 0);
    assert!(ended(&mut waiting).success());
    let queue = |key: &String| key.contains(".queue/");
    assert!(!server.keys().iter().any(queue), "{:?}", server.keys());
}

#[test]
fn run_retries_a_store_that_fails_while_it_starts() {
    let server = BucketServer::new(Dialect::S3);
    let repository = in_bucket(&server, "");
    server.lose_next(6, Lost::Refused(503, "SlowDown"));
    let output = orch(&repository, &server, "run -q -X --record -- true");
    assert_eq!(output.code(), 0, "{output}");
    let note = "the store failed (503 SlowDown); trying again for up to a minute";
    assert!(output.stderr.contains(note), "{output}");
}
