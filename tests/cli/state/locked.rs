//! What commands do while a run holds the lock, and what is left of a run that is gone.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{change_document, document, recorded};
use crate::support::Sandbox;

const RUN: &str = "019a0000-0000-7000-8000-000000000001";

/// Locks the document for a run on another machine that has recorded something and was heard from at
/// this time.
fn lock(sandbox: &Sandbox, heard: &str) {
    change_document(sandbox, |document| {
        document["serial"] = json!(3);
        document["lock"] = json!({
            "code": "6a1f", "run": RUN, "action": "apply", "by": "Ada", "host": "ci-7",
            "process": 47, "ci": "https://ci.acme.dev/7", "since": "2026-01-02T03:04:05Z",
        });
    });
    let lineage = document(sandbox)["lineage"].clone();
    let record = json!({
        "format": 1, "lineage": lineage, "serial": 3, "code": "6a1f", "run": RUN,
        "sequence": 7, "at": heard, "stacks": changes(),
    });
    let path = format!("/.orch/state/default.run-{RUN}.json");
    sandbox.write(&path, record.to_string());
    for path in [&path, "/.orch/state/default.json"] {
        put_at(sandbox, path, heard);
    }
}

/// Makes a file as old as if it had been written at a time.
fn put_at(sandbox: &Sandbox, path: &str, time: &str) {
    let time: jiff::Timestamp = time.parse().unwrap();
    let file = std::fs::File::options()
        .write(true)
        .open(sandbox.path(path));
    file.unwrap().set_modified(time.into()).unwrap();
}

/// `/a` was applied, `/a/b` is gone, `/c` has begun.
fn changes() -> Value {
    let entry = |name: &str| json!({ "id": null, "name": name, "tags": [], "after": [], "before": [], "applied": null, "last": null, "intent": null });
    let mut a = entry("a");
    a["applied"] = json!({ "serial": 0, "run": RUN, "at": "2026-01-02T03:05:00Z", "command": "terraform apply", "commit": null, "dirty": false, "seen": null, "inputs": null, "triggers": [] });
    a["last"] = json!({ "serial": 0, "action": "apply", "outcome": "succeeded", "failure": null, "run": RUN, "at": "2026-01-02T03:05:00Z", "commit": null });
    let mut c = entry("c");
    c["intent"] = json!({ "action": "apply", "run": RUN, "since": "2026-01-02T03:05:00Z" });
    json!({ "/a": a, "/a/b": null, "/c": c })
}

const LONG_AGO: &str = "2026-01-02T03:06:00Z";

/// Takes the times of day out.
fn without_times(text: &str) -> String {
    let times = regex::Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d").unwrap();
    times.replace_all(text, "[local time]").into_owned()
}

#[test]
fn lock_blocks_commands_that_write_and_not_those_that_read() {
    let sandbox = recorded();
    lock(&sandbox, LONG_AGO);
    assert_eq!(sandbox.orch("state list").code(), 0);
    let shown = without_times(&sandbox.orch("state show").to_string());
    assert!(shown.contains("Ada on ci-7, process 47"), "{shown}");
    assert!(shown.contains("code 6a1f"), "{shown}");
    let refused = sandbox.orch("state taint a");
    assert_snapshot!(without_times(&refused.to_string()), @"
    [stderr]
    error: the state is locked by Ada on ci-7, process 47, apply in run 019a0000-0000-7000-8000-000000000001 since [local time], last heartbeat at [local time], https://ci.acme.dev/7
      = help: wait until it is free; if that run no longer exists, run `orch state unlock 6a1f`
    [exit status 4]
    ");
    assert_eq!(sandbox.orch("state restore 1").code(), 4);
}

#[test]
fn unlock_removes_a_lock_by_its_code() {
    let sandbox = recorded();
    lock(&sandbox, LONG_AGO);
    assert_eq!(sandbox.orch("state unlock 6a1e").code(), 4);
    assert_eq!(sandbox.orch("state unlock 6a1f --dry-run").code(), 0);
    assert_eq!(document(&sandbox)["serial"], 3);
    assert_snapshot!(sandbox.orch("state unlock 6a1f --reason 'the machine burned'"), @"took the lock away from Ada, run 019a0000-0000-7000-8000-000000000001");
    let document = document(&sandbox);
    assert_eq!(document["lock"], json!(null));
    assert_eq!(document["serial"], 4);
    assert_eq!(document["stacks"]["/a"]["applied"]["serial"], 4);
    assert_eq!(document["stacks"].get("/a/b"), None);
    let last = &document["stacks"]["/c"]["last"];
    assert_eq!(last["outcome"], "failed");
    assert_eq!(last["failure"], "interrupted");
    assert_eq!(document["stacks"]["/c"]["intent"], json!(null));
    let write = document["history"].as_array().unwrap().last().unwrap();
    assert_eq!(write["what"], "unlock");
    assert_eq!(write["reason"], "the machine burned");
    assert_eq!(
        (&write["applied"], &write["failed"], &write["destroyed"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert!(
        !sandbox
            .path(&format!("/.orch/state/default.run-{RUN}.json"))
            .exists()
    );
    assert_snapshot!(sandbox.orch("state unlock 6a1f"), @"
    [stderr]
    error: the state is not locked
    [exit status 4]
    ");
}

#[test]
fn unlock_refuses_after_a_recent_heartbeat() {
    let sandbox = recorded();
    let now = jiff::Timestamp::now().to_string();
    lock(&sandbox, &now);
    let refused = sandbox.orch("state unlock 6a1f");
    assert_snapshot!(without_times(&refused.to_string()), @"
    [stderr]
    error: the holder of the lock may still be running: Ada on ci-7, process 47, apply in run 019a0000-0000-7000-8000-000000000001 since [local time], last heartbeat at [local time], https://ci.acme.dev/7
      = help: wait for that run; if it no longer exists, add `--force`
    [exit status 4]
    ");
    assert_eq!(sandbox.orch("state unlock 6a1f --force").code(), 0);
}

#[test]
fn heartbeat_counts_by_the_clock_of_the_store() {
    let sandbox = recorded();
    lock(&sandbox, LONG_AGO);
    // The clock of the holder is months behind, and it has just written.
    let record = format!("/.orch/state/default.run-{RUN}.json");
    put_at(&sandbox, &record, &jiff::Timestamp::now().to_string());
    let refused = sandbox.orch("state unlock 6a1f");
    assert_eq!(refused.code(), 4, "{refused}");
    assert!(refused.stderr.contains("may still be running"), "{refused}");
    // A clock that is ahead does not help either.
    let ahead = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    lock(&sandbox, &ahead.to_string());
    for path in [&record, "/.orch/state/default.json"] {
        put_at(&sandbox, path, LONG_AGO);
    }
    assert_eq!(sandbox.orch("state unlock 6a1f").code(), 0);
}

/// Lets the lock expire after a quarter of an hour without a heartbeat.
fn let_expire(sandbox: &Sandbox) {
    let path = "/.orch/state/default.json";
    change_document(sandbox, |document| {
        document["lock"]["expires"] = json!(900);
    });
    put_at(sandbox, path, LONG_AGO);
}

#[test]
fn lock_that_has_expired_is_taken_over() {
    let sandbox = recorded();
    lock(&sandbox, LONG_AGO);
    let_expire(&sandbox);
    let taint = sandbox.orch("state taint a");
    assert_eq!(taint.code(), 0, "{taint}");
    let document = document(&sandbox);
    assert_eq!(document["lock"], json!(null));
    assert_eq!(document["stacks"]["/a"]["applied"]["run"], RUN);
    assert_eq!(document["stacks"]["/c"]["last"]["failure"], "interrupted");
    let history = document["history"].as_array().unwrap();
    let unlock = history.iter().find(|write| write["what"] == "unlock");
    assert_eq!(
        unlock.unwrap()["reason"],
        "the run sent no heartbeat for 15m"
    );
}

#[test]
fn lock_that_expires_is_kept_after_a_heartbeat() {
    let sandbox = recorded();
    let now = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(10);
    lock(&sandbox, &now.to_string());
    let_expire(&sandbox);
    let refused = sandbox.orch("state taint a");
    assert_snapshot!(without_times(&refused.to_string()), @"
    [stderr]
    error: the state is locked by Ada on ci-7, process 47, apply in run 019a0000-0000-7000-8000-000000000001 since [local time], last heartbeat at [local time], https://ci.acme.dev/7
      = help: wait until it is free; if that run no longer exists, run `orch state unlock 6a1f`
      = help: the lock expires 15m after the last heartbeat of that run
    [exit status 4]
    ");
}

/// Damages the run record: what it says of `/a` cannot be read.
fn damage(sandbox: &Sandbox) {
    let file = format!("/.orch/state/default.run-{RUN}.json");
    let mut record: Value = serde_json::from_str(&sandbox.read(&file)).unwrap();
    record["stacks"]["/a"]["tags"] = json!(1);
    sandbox.write(&file, record.to_string());
}

#[test]
fn unlock_with_force_keeps_the_readable_part_of_a_damaged_record() {
    let sandbox = recorded();
    lock(&sandbox, LONG_AGO);
    damage(&sandbox);
    assert_snapshot!(sandbox.orch("state unlock 6a1f"), @"
    [stderr]
    error: the run record `.orch/state/default.run-019a0000-0000-7000-8000-000000000001.json` cannot be used: damaged: invalid type: integer `1`, expected a sequence at line 1 column 607
      = help: on ci-7, where it ran, `orch state recover 019a0000-0000-7000-8000-000000000001` may still recover them
      = help: if that run no longer exists, add `--force`; the entries of run 019a0000-0000-7000-8000-000000000001 about `/a` are lost then
    [exit status 5]
    ");
    assert_eq!(document(&sandbox)["lock"]["code"], "6a1f");
    // Everybody else is told who holds the lock.
    for command in ["taint a", "restore 1"] {
        let refused = sandbox.orch(&format!("state {command}"));
        assert_eq!(refused.code(), 4, "{refused}");
    }
    let shown = sandbox.orch("state show");
    assert_eq!(shown.code(), 0, "{shown}");
    assert!(shown.stdout.contains("code 6a1f"), "{shown}");
    assert!(shown.stderr.contains("damaged"), "{shown}");
    let before = document(&sandbox)["stacks"]["/a"].clone();
    assert_snapshot!(sandbox.orch("state unlock 6a1f --force"), @"
    took the lock away from Ada, run 019a0000-0000-7000-8000-000000000001
    [stderr]
    warning: the record of the run, `.orch/state/default.run-019a0000-0000-7000-8000-000000000001.json`, cannot be used: damaged: invalid type: integer `1`, expected a sequence at line 1 column 607; the entries of run 019a0000-0000-7000-8000-000000000001 about `/a` are lost
    ");
    let document = document(&sandbox);
    assert_eq!(document["lock"], json!(null));
    assert_eq!(document["stacks"]["/a"], before);
    assert_eq!(document["stacks"].get("/a/b"), None);
    let write = document["history"].as_array().unwrap().last().unwrap();
    assert_eq!(write["reason"], "the run record was damaged or missing");
    assert_eq!(document["stacks"]["/c"]["last"]["failure"], "interrupted");
}

#[test]
fn unlock_with_force_drops_an_unreadable_record() {
    let sandbox = recorded();
    lock(&sandbox, LONG_AGO);
    sandbox.write(&format!("/.orch/state/default.run-{RUN}.json"), "{\"for");
    assert_snapshot!(sandbox.orch("state unlock 6a1f"), @"
    [stderr]
    error: the run record `.orch/state/default.run-019a0000-0000-7000-8000-000000000001.json` cannot be used: damaged: EOF while parsing a string at line 1 column 5
      = help: on ci-7, where it ran, `orch state recover 019a0000-0000-7000-8000-000000000001` may still recover them
      = help: if that run no longer exists, add `--force`; the entries of run 019a0000-0000-7000-8000-000000000001 are lost then
    [exit status 5]
    ");
    assert_snapshot!(sandbox.orch("state unlock 6a1f --force --dry-run"), @"
    took the lock away from Ada, run 019a0000-0000-7000-8000-000000000001
    [stderr]
    warning: the record of the run, `.orch/state/default.run-019a0000-0000-7000-8000-000000000001.json`, cannot be used: damaged: EOF while parsing a string at line 1 column 5; the entries of run 019a0000-0000-7000-8000-000000000001 are lost
    note: nothing was written: this is a dry run
    ");
    let before = document(&sandbox);
    assert_eq!(sandbox.orch("state unlock 6a1f --force").code(), 0);
    let after = document(&sandbox);
    assert_eq!(after["lock"], json!(null));
    assert_eq!(after["stacks"], before["stacks"]);
    let left = sandbox.path(&format!("/.orch/state/default.run-{RUN}.json"));
    assert!(!left.exists());
}

/// Notes that the run had the lock on this machine last.
fn note_holder(sandbox: &Sandbox) {
    sandbox.write("/.orch/state/default.holder", RUN);
}

#[test]
fn lock_of_a_dead_run_with_a_damaged_record_is_not_taken_over() {
    let sandbox = recorded();
    lock(&sandbox, LONG_AGO);
    note_holder(&sandbox);
    damage(&sandbox);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let Ok(host) = host else {
        return crate::support::skipped("the name of this machine is not in /proc");
    };
    change_document(&sandbox, |document| {
        document["lock"]["host"] = json!(host.trim());
    });
    let before = document(&sandbox);
    let refused = sandbox.orch("state taint a").to_string();
    assert_snapshot!(refused.replace(host.trim(), "[host]"), @"
    [stderr]
    error: the lock of run 019a0000-0000-7000-8000-000000000001 cannot be taken over
      caused by: the run record `.orch/state/default.run-019a0000-0000-7000-8000-000000000001.json` cannot be used: damaged: invalid type: integer `1`, expected a sequence at line 1 column 607
      = help: on [host], where it ran, `orch state recover 019a0000-0000-7000-8000-000000000001` may still recover them
      = help: if that run has ended, run `orch state unlock --force 6a1f`; the entries of run 019a0000-0000-7000-8000-000000000001 about `/a` are lost then
    [exit status 5]
    ");
    assert_eq!(document(&sandbox), before);
    assert_eq!(sandbox.orch("state unlock 6a1f --force").code(), 0);
}

/// The record of a run exists as long as the run holds the lock: without it, what the run recorded is lost.
#[test]
fn unlock_needs_force_where_the_run_record_is_missing_or_foreign() {
    let sandbox = recorded();
    lock(&sandbox, LONG_AGO);
    let record = format!("/.orch/state/default.run-{RUN}.json");
    let of_another_lock = sandbox.read(&record).replacen("6a1f", "0000", 1);
    sandbox.write(&record, of_another_lock);
    put_at(&sandbox, &record, LONG_AGO);
    let refused = sandbox.orch("state unlock 6a1f");
    assert_eq!(refused.code(), 5, "{refused}");
    let why = "it does not belong to the lock";
    assert!(refused.stderr.contains(why), "{refused}");
    std::fs::remove_file(sandbox.path(&record)).unwrap();
    assert_snapshot!(sandbox.orch("state unlock 6a1f"), @"
    [stderr]
    error: the run record `.orch/state/default.run-019a0000-0000-7000-8000-000000000001.json` cannot be used: it is missing
      = help: on ci-7, where it ran, `orch state recover 019a0000-0000-7000-8000-000000000001` may still recover them
      = help: if that run no longer exists, add `--force`; the entries of run 019a0000-0000-7000-8000-000000000001 are lost then
    [exit status 5]
    ");
    assert_eq!(document(&sandbox)["lock"]["code"], "6a1f");
    assert_snapshot!(sandbox.orch("state unlock 6a1f --force"), @"
    took the lock away from Ada, run 019a0000-0000-7000-8000-000000000001
    [stderr]
    warning: the record of the run, `.orch/state/default.run-019a0000-0000-7000-8000-000000000001.json`, cannot be used: it is missing; the entries of run 019a0000-0000-7000-8000-000000000001 are lost
    ");
    let document = document(&sandbox);
    assert_eq!(document["lock"], json!(null));
    let write = document["history"].as_array().unwrap().last().unwrap();
    assert_eq!(write["reason"], "the run record was damaged or missing");
}

#[test]
fn lock_that_has_expired_is_not_taken_over_without_the_run_record() {
    let sandbox = recorded();
    lock(&sandbox, LONG_AGO);
    change_document(&sandbox, |document| {
        document["lock"]["expires"] = json!(900);
    });
    put_at(&sandbox, "/.orch/state/default.json", LONG_AGO);
    std::fs::remove_file(sandbox.path(&format!("/.orch/state/default.run-{RUN}.json"))).unwrap();
    let before = document(&sandbox);
    assert_snapshot!(sandbox.orch("state taint a"), @"
    [stderr]
    error: the lock of run 019a0000-0000-7000-8000-000000000001 cannot be taken over
      caused by: the run record `.orch/state/default.run-019a0000-0000-7000-8000-000000000001.json` cannot be used: it is missing
      = help: on ci-7, where it ran, `orch state recover 019a0000-0000-7000-8000-000000000001` may still recover them
      = help: if that run has ended, run `orch state unlock --force 6a1f`; the entries of run 019a0000-0000-7000-8000-000000000001 are lost then
    [exit status 5]
    ");
    assert_eq!(document(&sandbox), before);
}

#[test]
fn recover_reads_damaged_records_from_the_machine_of_the_run() {
    let sandbox = recorded();
    leave(&sandbox);
    lock(&sandbox, LONG_AGO);
    damage(&sandbox);
    assert_eq!(sandbox.orch("state recover last").code(), 0);
    let document = document(&sandbox);
    assert_eq!(document["lock"], json!(null));
    assert_eq!(document["stacks"]["/a"]["applied"]["run"], RUN);
    assert_eq!(document["stacks"]["/c"]["last"]["failure"], "interrupted");
}

#[test]
fn lock_of_a_run_that_died_on_this_machine_is_taken_over() {
    let sandbox = recorded();
    lock(&sandbox, LONG_AGO);
    note_holder(&sandbox);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let Ok(host) = host else {
        return crate::support::skipped("the name of this machine is not in /proc");
    };
    change_document(&sandbox, |document| {
        document["lock"]["host"] = json!(host.trim());
    });
    assert_eq!(sandbox.orch("state taint a").code(), 0);
    let document = document(&sandbox);
    assert_eq!(document["lock"], json!(null));
    assert_eq!(document["stacks"]["/a"]["applied"]["run"], RUN);
    assert_eq!(document["stacks"]["/c"]["last"]["failure"], "interrupted");
    assert!(
        !sandbox
            .path(&format!("/.orch/state/default.run-{RUN}.json"))
            .exists()
    );
}

/// Leaves what a run has kept on this machine.
fn leave(sandbox: &Sandbox) {
    let document = document(sandbox);
    let record = json!({
        "format": 1, "lineage": document["lineage"], "serial": 3, "code": "6a1f", "run": RUN,
        "sequence": 7, "at": LONG_AGO, "stacks": changes(), "before": document["stacks"],
    });
    let folder = format!("/.orch/runs/{RUN}");
    sandbox.write(&format!("{folder}/state.json"), record.to_string());
    sandbox.write(&format!("{folder}/journal.jsonl"), "{}\n");
}

#[test]
fn recover_writes_the_results_that_a_run_could_not_write() {
    let sandbox = recorded();
    leave(&sandbox);
    assert_snapshot!(sandbox.orch("state recover last --dry-run"), @"
    recovered /a
    recovered /a/b
    recovered /c
    [stderr]
    note: nothing was written: this is a dry run
    ");
    assert_eq!(document(&sandbox)["serial"], 2);
    assert_snapshot!(sandbox.orch("state recover last"), @"
    recovered /a
    recovered /a/b
    recovered /c
    ");
    let document = document(&sandbox);
    assert_eq!(document["serial"], 3);
    assert_eq!(document["stacks"]["/a"]["applied"]["run"], RUN);
    assert_eq!(document["stacks"].get("/a/b"), None);
    assert_snapshot!(sandbox.orch("state recover last"), @"
    [stderr]
    error: run 019a0000-0000-7000-8000-000000000001 has nothing to recover
    [exit status 4]
    ");
}

#[test]
fn prune_keeps_a_run_that_needs_recovery() {
    let sandbox = recorded();
    leave(&sandbox);
    assert_eq!(sandbox.orch("runs prune --keep 0").code(), 0);
    assert_eq!(sandbox.orch("state recover last").code(), 0);
    assert_eq!(sandbox.orch("runs prune --keep 0").code(), 0);
    assert!(!sandbox.path(&format!("/.orch/runs/{RUN}")).exists());
}

#[test]
fn recover_frees_the_lock_of_its_run() {
    let sandbox = recorded();
    leave(&sandbox);
    lock(&sandbox, LONG_AGO);
    assert_eq!(sandbox.orch("state recover last").code(), 0);
    let document = document(&sandbox);
    assert_eq!(document["lock"], json!(null));
    assert_eq!(document["stacks"]["/c"]["last"]["failure"], "interrupted");
}

#[test]
fn recover_ignores_a_withdrawn_intent_that_arrived_late() {
    let sandbox = recorded();
    let before = document(&sandbox)["stacks"]["/c"].clone();
    leave(&sandbox);
    let copy = format!("/.orch/runs/{RUN}/state.json");
    let mut kept: Value = serde_json::from_str(&sandbox.read(&copy)).unwrap();
    kept["stacks"]["/c"] = before.clone();
    sandbox.write(&copy, kept.to_string());
    lock(&sandbox, LONG_AGO);
    let beside = format!("/.orch/state/default.run-{RUN}.json");
    let mut record: Value = serde_json::from_str(&sandbox.read(&beside)).unwrap();
    let intent = record["stacks"]["/c"]["intent"].clone();
    record["stacks"]["/c"] = before.clone();
    record["stacks"]["/c"]["intent"] = intent;
    sandbox.write(&beside, record.to_string());
    assert_snapshot!(sandbox.orch("state recover last"), @"
    recovered /a
    recovered /a/b
    ");
    let document = document(&sandbox);
    assert_eq!(document["lock"], json!(null));
    assert_eq!(document["stacks"]["/c"], before);
    assert_eq!(document["stacks"]["/a"]["applied"]["run"], RUN);
}

#[test]
fn recover_refuses_stacks_that_were_recorded_since_the_unlock() {
    let sandbox = recorded();
    leave(&sandbox);
    lock(&sandbox, LONG_AGO);
    assert_eq!(sandbox.orch("state unlock 6a1f").code(), 0);
    assert_eq!(sandbox.orch("state taint a").code(), 0);
    let before = document(&sandbox);
    assert_snapshot!(sandbox.orch("state recover last"), @"
    [stderr]
    error: others have changed the entries of `/a` since run 019a0000-0000-7000-8000-000000000001
      = help: to write the entry of this run, add `--take STACK`; to keep the other one, add `--drop STACK`
    [exit status 4]
    ");
    assert_eq!(document(&sandbox), before);
}

#[test]
fn recover_frees_the_lock_with_a_damaged_record() {
    let sandbox = recorded();
    lock(&sandbox, LONG_AGO);
    let record = format!("/.orch/state/default.run-{RUN}.json");
    sandbox.write(&record, "{");
    assert_eq!(sandbox.orch("state taint a").code(), 4);
    assert_eq!(sandbox.orch("state show").code(), 0);
    assert_snapshot!(sandbox.orch("state unlock 6a1f"), @"
    [stderr]
    error: the run record `.orch/state/default.run-019a0000-0000-7000-8000-000000000001.json` cannot be used: damaged: EOF while parsing an object at line 1 column 1
      = help: on ci-7, where it ran, `orch state recover 019a0000-0000-7000-8000-000000000001` may still recover them
      = help: if that run no longer exists, add `--force`; the entries of run 019a0000-0000-7000-8000-000000000001 are lost then
    [exit status 5]
    ");
    assert_eq!(
        sandbox.orch("state unlock 6a1f --force --dry-run").code(),
        0
    );
    assert_eq!(sandbox.read(&record), "{");
    assert_eq!(sandbox.orch("state unlock 6a1f --force").code(), 0);
    assert!(!sandbox.path(&record).exists());
    let document = document(&sandbox);
    assert_eq!(document["lock"], json!(null));
    let write = document["history"].as_array().unwrap().last().unwrap();
    assert_eq!(write["reason"], "the run record was damaged or missing");
    // What the run has kept on its machine is not lost.
    leave(&sandbox);
    lock(&sandbox, LONG_AGO);
    sandbox.write(&record, "{");
    assert_eq!(sandbox.orch("state recover last").code(), 0);
    assert_eq!(
        super::document(&sandbox)["stacks"]["/a"]["applied"]["run"],
        RUN
    );
}

#[test]
fn recover_refuses_stacks_that_others_have_recorded_since() {
    let sandbox = recorded();
    leave(&sandbox);
    assert_eq!(sandbox.orch("state taint a a/b c").code(), 0);
    let before = document(&sandbox);
    assert_snapshot!(sandbox.orch("state recover last"), @"
    [stderr]
    error: others have changed the entries of `/a`, `/a/b`, `/c` since run 019a0000-0000-7000-8000-000000000001
      = help: to write the entry of this run, add `--take STACK`; to keep the other one, add `--drop STACK`
    [exit status 4]
    ");
    assert_eq!(
        sandbox
            .orch("state recover last --take /a --drop /c")
            .code(),
        4
    );
    assert_eq!(document(&sandbox), before);
    assert_snapshot!(sandbox.orch("state recover last --take /a --take /a/b --drop /c"), @"
    recovered /a
    recovered /a/b
    ");
    let after = document(&sandbox);
    assert_eq!(after["stacks"]["/a"]["applied"]["run"], RUN);
    assert_eq!(after["stacks"].get("/a/b"), None);
    assert_eq!(after["stacks"]["/c"], before["stacks"]["/c"]);
}

#[test]
fn recover_refuses_to_take_and_drop_a_stack() {
    let sandbox = recorded();
    leave(&sandbox);
    let before = document(&sandbox);
    assert_snapshot!(sandbox.orch("state recover last --take a --drop /a"), @"
    [stderr]
    error: `--take` and `--drop` both name `/a`
    [exit status 64]
    ");
    assert_eq!(document(&sandbox), before);
}

#[test]
fn recover_names_the_damaged_records_of_a_run() {
    let sandbox = recorded();
    leave(&sandbox);
    sandbox.write(&format!("/.orch/runs/{RUN}/state.json"), "{");
    assert_snapshot!(sandbox.orch("state recover last"), @"
    [stderr]
    error: the file of run 019a0000-0000-7000-8000-000000000001 cannot be used
      caused by: damaged: EOF while parsing an object at line 1 column 1
      = help: it is in `.orch/runs/019a0000-0000-7000-8000-000000000001/state.json`; to discard it, remove that file
    [exit status 5]
    ");
}
