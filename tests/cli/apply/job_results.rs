//! The results of jobs on several machines, which make one run on each of them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::followed::attach;
use super::{declare, done, fails, hook, log, prepared, unhook, want};
use crate::support::{BucketServer, Dialect, Repository, wait_until};

/// `/app` runs after `/db` and `/cache`, `/end` after it; `/web` stands alone.
const STACKS: [(&str, &str); 5] = [
    ("/app", "after = [\"/db\", \"/cache\"]"),
    ("/cache", ""),
    ("/db", ""),
    ("/end", "after = [\"/app\"]"),
    ("/web", ""),
];

pub(super) const STATE: &str = "orch {\n  config {\n    state {\n      project = \"acme\"\n      backend \"local\" {\n        path = \"../shared/acme\"\n      }\n    }\n  }\n}\n";

/// A project with a state that other checkouts share.
pub(super) fn shared() -> Repository {
    let sandbox = prepared(&STACKS);
    sandbox.write("/state.orch.hcl", STATE);
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("state init").code(), 0);
    repository
}

/// Makes another checkout beside the project, with the plan and the work order.
pub(super) fn machine(repository: &Repository, name: &str) -> String {
    repository.git(&format!("clone -q . ../{name}"));
    let there = repository.outside().join(name);
    for file in ["saved", "order.json"] {
        if repository.path(&format!("/{file}")).exists() {
            fs::copy(repository.path(&format!("/{file}")), there.join(file)).unwrap();
        }
    }
    format!("-C ../{name}")
}

pub(super) fn export(repository: &Repository, flags: &str) -> BTreeMap<String, String> {
    done(
        repository,
        &format!("export make -o jobs.mk --work-order order.json {flags}"),
    );
    log(repository);
    jobs_of(repository)
}

/// The command for the job of each stack in a work order.
pub(super) fn jobs_of(repository: &Repository) -> BTreeMap<String, String> {
    let order: Value =
        serde_json::from_slice(&fs::read(repository.path("/order.json")).unwrap()).unwrap();
    let mut jobs = BTreeMap::new();
    for job in order["jobs"].as_array().unwrap() {
        for turn in job["turns"].as_array().unwrap() {
            let turn = usize::try_from(turn.as_u64().unwrap()).unwrap();
            let stack = order["turns"][turn]["stack"].as_str().unwrap();
            let id = job["id"].as_str().unwrap();
            jobs.insert(
                stack.to_owned(),
                format!("job {id} --work-order order.json"),
            );
        }
    }
    jobs
}

/// A run as JSON shows it, without ids, times and places.
pub(super) fn shown(repository: &Repository, machine: &str, run: &str) -> Value {
    let run = done_json(
        repository,
        &format!("{machine} runs show {run} --format json"),
    );
    let stack = |stack: &Value| {
        let attempts = stack["history"].as_array().unwrap().iter();
        let attempts = attempts.map(|it| json!([it["attempt"], it["failure"]]));
        let attempts: Vec<Value> = attempts.collect();
        let path = stack["path"].as_str().unwrap().to_owned();
        let fields = ["state", "failure", "cause", "operation"].map(|it| stack[it].clone());
        (path, json!([fields, attempts]))
    };
    let stacks = run["stacks"].as_array().unwrap().iter().map(stack);
    let stacks: BTreeMap<String, Value> = stacks.collect();
    json!({
        "state": run["state"],
        "status": run["status"],
        "counts": [run["succeeded"], run["failed"], run["skipped"], run["cancelled"]],
        "purpose": run["header"]["purpose"],
        "stacks": stacks,
    })
}

fn done_json(repository: &Repository, arguments: &str) -> Value {
    let output = repository.orch(arguments);
    assert_eq!(output.code(), 0, "{output}");
    serde_json::from_str(&output.stdout).unwrap()
}

pub(super) fn run_of(repository: &Repository) -> String {
    let order = fs::read(repository.path("/order.json")).unwrap();
    let order: Value = serde_json::from_slice(&order).unwrap();
    order["run"].as_str().unwrap().to_owned()
}

#[test]
fn runs_show_on_each_machine_what_one_machine_would_have_run() {
    for (on_error, of_web) in [("skip-dependents", 0), ("stop", 1)] {
        let one = shared();
        hook(&one, "apply", "db", "echo cannot connect >&2\nexit 1\n");
        done(&one, "plan -o saved");
        let apply = format!("apply saved --on-error {on_error}");
        assert_eq!(one.orch(&apply).code(), 1);
        let expected = shown(&one, "", "last");

        let many = shared();
        hook(&many, "apply", "db", "echo cannot connect >&2\nexit 1\n");
        done(&many, "plan -o saved");
        let jobs = export(&many, &format!("saved --on-error {on_error}"));
        let second = machine(&many, "second");
        let third = machine(&many, "third");
        done(&many, &jobs["/cache"]);
        fails(&many, &format!("{second} {}", jobs["/db"]), 1, "");
        fails(
            &many,
            &format!("{second} {}", jobs["/app"]),
            1,
            "it runs after /db",
        );
        let run = run_of(&many);
        // While jobs are left, the run is not over.
        let now = shown(&many, &third, "last");
        assert_eq!(now["state"], "unfinished", "{now}");
        assert_eq!(now["stacks"]["/web"][0][0], "not run", "{now}");
        let web = many.orch(&format!("{third} {}", jobs["/web"]));
        assert_eq!(web.code(), of_web, "{web}");
        let finish = "finish --work-order order.json";
        fails(&many, finish, 1, "of 5 stacks not done");
        for machine in ["", &second, &third] {
            assert_eq!(shown(&many, machine, &run), expected, "{on_error}");
            assert_eq!(shown(&many, machine, "last"), expected, "{on_error}");
            let list = done_json(&many, &format!("{machine} runs list --format json"));
            let listed = list["runs"].as_array().unwrap().iter();
            let listed: Vec<&str> = listed.filter_map(|it| it["id"].as_str()).collect();
            assert_eq!(listed[0], run, "{list}");
            let logs = done(&many, &format!("{machine} runs logs last /db"));
            assert!(logs.contains("cannot connect"), "{logs}");
        }
    }
}

#[test]
fn finish_writes_reports_of_all_jobs_and_twice_is_once() {
    let repository = shared();
    hook(
        &repository,
        "apply",
        "db",
        "echo cannot connect >&2\nexit 1\n",
    );
    done(&repository, "plan -o saved");
    let jobs = export(&repository, "saved --on-error skip-dependents");
    let second = machine(&repository, "second");
    done(&repository, &jobs["/cache"]);
    done(&repository, &jobs["/web"]);
    fails(&repository, &format!("{second} {}", jobs["/db"]), 1, "");
    let third = machine(&repository, "third");
    let reports = "--report ../r.json --report ../r.xml --report ../r.md --report ../r.html";
    let finish = format!("{third} finish --work-order order.json {reports}");
    let place = repository.outside();
    let read = || {
        ["r.json", "r.xml", "r.md", "r.html"].map(|it| fs::read_to_string(place.join(it)).unwrap())
    };
    let first = fails(&repository, &finish, 1, "/db: failed");
    let written = read();
    let report: Value = serde_json::from_str(&written[0]).unwrap();
    assert_eq!(report["run"]["counts"]["failed"], 1, "{report}");
    assert_eq!(report["run"]["counts"]["skipped"], 2, "{report}");
    for report in &written[1..] {
        assert!(report.contains("cannot connect"), "{report}");
        assert!(report.contains("/cache"), "{report}");
    }
    let again = fails(&repository, &finish, 1, "/db: failed");
    assert_eq!(again, first);
    assert_eq!(read(), written);
}

/// A plan that updates `/db`, and only records `/cache` and `/web`: their resources already match.
fn with_records() -> (Repository, BTreeMap<String, String>) {
    let repository = shared();
    done(&repository, "apply --auto-approve");
    want(&repository, "/db", "2");
    for stack in ["cache", "web"] {
        want(&repository, &format!("/{stack}"), "2");
        fs::write(repository.outside().join("world").join(stack), "2").unwrap();
    }
    done(&repository, "plan -o saved");
    let jobs = export(&repository, "saved");
    (repository, jobs)
}

#[test]
fn finish_records_stacks_without_work_once() {
    let (repository, jobs) = with_records();
    done(&repository, &jobs["/db"]);
    let finish = "finish --work-order order.json";
    let output = done(&repository, finish);
    assert!(output.contains("2 stacks recorded"), "{output}");
    let again = done(&repository, finish);
    assert!(!again.contains("recorded"), "{again}");
    log(&repository);
    assert_eq!(repository.orch("plan --detailed-exitcode").code(), 0);
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn finish_after_another_apply_records_nothing_outdated() {
    let (repository, jobs) = with_records();
    let other = machine(&repository, "other");
    done(&repository, &jobs["/db"]);
    // Another commit is applied to the stack of the job, and to one that the plan only records.
    let place = repository.outside().join("other");
    for stack in ["db", "cache"] {
        fs::write(place.join(stack).join("want"), "3").unwrap();
    }
    repository.git_in(&place, "commit -q -a -m other");
    let flags = "--match db --match cache --auto-approve --disable-safeguards=git-out-of-sync";
    done(&repository, &format!("{other} apply {flags}"));
    let output = done(&repository, "finish --work-order order.json");
    for line in [
        "not recorded, because changed since the plan: /cache;",
        "1 stack recorded",
        "3 stacks done",
    ] {
        assert!(output.contains(line), "{line}: {output}");
    }
    log(&repository);
    let plan = format!("{other} plan --detailed-exitcode --match db --match cache --match web");
    assert_eq!(repository.orch(&plan).code(), 0);
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn runs_count_the_attempts_of_a_job_that_is_run_again() {
    let repository = shared();
    hook(&repository, "apply", "db", "echo first\nexit 1\n");
    done(&repository, "plan -o saved");
    let jobs = export(&repository, "saved --on-error skip-dependents");
    let second = machine(&repository, "second");
    let third = machine(&repository, "third");
    fails(
        &repository,
        &jobs["/db"],
        1,
        "run the job again to continue",
    );
    unhook(&repository, "apply", "db");
    for stack in ["/db", "/cache", "/app", "/end", "/web"] {
        done(&repository, &format!("{second} {}", jobs[stack]));
    }
    let run = shown(&repository, &third, "last");
    assert_eq!(run["state"], "succeeded", "{run}");
    let attempts = &run["stacks"]["/db"][1];
    assert_eq!(attempts[0][0], 1, "{run}");
    assert_eq!(attempts[1][0], 2, "{run}");
    assert_eq!(attempts[1][1], Value::Null, "{run}");
    let logs = done(&repository, &format!("{third} runs logs last /db"));
    for line in ["/db, attempt 1", "first", "/db, attempt 2"] {
        assert!(logs.contains(line), "{line}: {logs}");
    }
    // A machine keeps no folder of a job that has succeeded and whose results are in the store.
    let folders = fs::read_dir(repository.outside().join("second/.orch/runs"));
    assert_eq!(folders.unwrap().count(), 0);
    // All is done: nothing is left to ask the store for.
    fs::remove_dir_all(repository.outside().join("shared")).unwrap();
    let run = run_of(&repository);
    let again = shown(&repository, &third, &run[..30]);
    assert_eq!(again["state"], "succeeded", "{again}");
}

#[test]
fn runs_show_stacks_that_an_earlier_work_order_has_applied() {
    for flags in ["saved --on-error skip-dependents", "saved --workers 1"] {
        let repository = shared();
        let finish = "finish --work-order order.json";
        done(&repository, "plan -o saved");
        let jobs = export(&repository, "saved");
        done(&repository, &jobs["/cache"]);
        done(&repository, &jobs["/db"]);
        fails(&repository, finish, 1, "3 of 5 stacks not done");
        let earlier = run_of(&repository);
        let jobs = export(&repository, flags);
        if jobs.is_empty() {
            done(&repository, "work --work-order order.json");
        }
        for job in ["/cache", "/db", "/app", "/web"].map(|it| jobs.get(it)) {
            job.map(|job| done(&repository, job));
        }
        let second = machine(&repository, "second");
        let run = shown(&repository, &second, "last");
        assert_eq!(run["state"], "succeeded", "{flags}: {run}");
        assert_eq!(run["counts"], json!([5, 0, 0, 0]), "{flags}: {run}");
        let report = "--report ../report.md";
        done(&repository, &format!("{second} {finish} {report}"));
        let report = fs::read_to_string(repository.outside().join("report.md")).unwrap();
        for text in [report, done(&repository, "runs show last")] {
            let line = format!("already done by run {earlier}");
            assert_eq!(text.matches(&line).count(), 2, "{flags}: {text}");
        }
        // Its own machine has stopped in the middle.
        let run = shown(&repository, "", &earlier);
        assert_eq!(run["state"], "failed", "{run}");
        assert_eq!(run["counts"], json!([2, 0, 0, 0]), "{run}");
    }
}

#[test]
fn runs_show_a_failed_stack_that_another_run_has_applied_since() {
    let repository = shared();
    hook(&repository, "apply", "web", "exit 1\n");
    done(&repository, "plan -o saved");
    let jobs = export(&repository, "saved --on-error skip-dependents");
    for stack in ["/cache", "/db", "/app", "/end"] {
        done(&repository, &jobs[stack]);
    }
    fails(&repository, &jobs["/web"], 1, "");
    let finish = "finish --work-order order.json --report ../report.md";
    fails(&repository, finish, 1, "/web: failed");
    unhook(&repository, "apply", "web");
    done(&repository, "apply --auto-approve");
    let by = done_json(&repository, "runs show last --format json");
    let by = by["header"]["run"].as_str().unwrap().to_owned();
    let output = done(&repository, &jobs["/web"]);
    assert!(
        output.contains("nothing to do: all stacks of the job are done"),
        "{output}"
    );
    for _ in 0..2 {
        let output = done(&repository, finish);
        assert!(output.contains("5 stacks done"), "{output}");
        let report = fs::read_to_string(repository.outside().join("report.md")).unwrap();
        assert!(
            report.contains(&format!("already done by run {by}")),
            "{report}"
        );
        let run = shown(&repository, "", &run_of(&repository));
        assert_eq!(run["state"], "succeeded", "{run}");
        assert_eq!(run["counts"], json!([5, 0, 0, 0]), "{run}");
    }
}

#[test]
fn workers_on_two_machines_make_one_run() {
    let repository = shared();
    done(&repository, "plan -o saved");
    export(&repository, "saved --workers 2");
    let second = machine(&repository, "second");
    let workers = ["", &second].map(|machine| {
        let mut command = repository.command(&format!("{machine} work --work-order order.json"));
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    });
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    for machine in ["", &second] {
        let run = shown(&repository, machine, "last");
        assert_eq!(run["counts"], json!([5, 0, 0, 0]), "{run}");
        assert_eq!(run["status"], 0, "{run}");
        let list = done_json(&repository, &format!("{machine} runs list --format json"));
        let ids = list["runs"].as_array().unwrap().iter();
        let runs = ids.filter(|it| it["id"] == run_of(&repository)).count();
        assert_eq!(runs, 1, "{list}");
    }
}

#[test]
fn finish_has_the_results_of_a_command_that_the_state_does_not_record() {
    let repository = shared();
    repository.write(
        "/note",
        "echo checked $ORCH_STACK_NAME\n[ $ORCH_STACK_NAME != db ]\n",
    );
    repository.commit();
    let jobs = export(&repository, "--on-error continue -- sh ../note");
    let second = machine(&repository, "second");
    fails(&repository, &jobs["/db"], 1, "");
    for stack in ["/cache", "/app"] {
        done(&repository, &format!("{second} {}", jobs[stack]));
    }
    let third = machine(&repository, "third");
    let run = shown(&repository, &third, "last");
    assert_eq!(run["state"], "unfinished", "{run}");
    let output = fails(
        &repository,
        &format!("{third} finish --work-order order.json"),
        1,
        "2 of 5 stacks not done",
    );
    for line in ["/db: failed", "/web: not run"] {
        assert!(output.contains(line), "{output}");
    }
    let run = shown(&repository, "", "last");
    assert_eq!(run["state"], "failed", "{run}");
    assert_eq!(run["counts"], json!([3, 1, 0, 0]), "{run}");
    let logs = done(&repository, "runs logs last /app");
    assert!(logs.contains("checked app"), "{logs}");
    fails(
        &repository,
        "run --resume last",
        4,
        "it is part of a work order",
    );
}

/// A hook that kills the job.
pub(super) const KILL: &str = "kill -KILL $PPID\nexit 1\n";

/// Makes the last heartbeats some time ago.
pub(super) fn age_records(repository: &Repository) {
    age(&repository.outside().join("shared"));
}

fn age(folder: &Path) {
    for file in fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_name().unwrap().to_string_lossy();
        if file.is_dir() {
            age(&file);
        } else if name.contains(".run-") || name.starts_with("job.") {
            let record = File::options().write(true).open(file).unwrap();
            let then = SystemTime::now() - Duration::from_mins(10);
            record.set_modified(then).unwrap();
        }
    }
}

#[test]
fn runs_show_a_killed_stack_after_the_lock_is_free() {
    let repository = shared();
    hook(&repository, "apply", "web", "exit 1\n");
    done(&repository, "plan -o saved");
    let jobs = export(&repository, "saved");
    fails(&repository, &jobs["/web"], 1, "");
    hook(&repository, "apply", "web", KILL);
    let killed = repository.command(&jobs["/web"]).output().unwrap();
    assert_eq!(killed.status.code(), None);
    age_records(&repository);
    fails(
        &repository,
        "finish --work-order order.json --report ../report.md",
        1,
        "/web: failed",
    );
    let report = fs::read_to_string(repository.outside().join("report.md")).unwrap();
    assert!(report.contains("killed"), "{report}");
    for machine in ["", &machine(&repository, "second")] {
        let run = shown(&repository, machine, &run_of(&repository));
        assert_eq!(run["stacks"]["/web"][0][0], "unknown", "{run}");
        assert_eq!(run["stacks"]["/db"][0][0], "not run", "{run}");
    }
    unhook(&repository, "apply", "web");
    done(&repository, &jobs["/web"]);
    let failed = json!({"kind": "exited", "status": 1});
    let attempts = json!([[1, failed], [2, null], [3, null]]);
    for machine in ["", &machine(&repository, "third")] {
        let run = shown(&repository, machine, &run_of(&repository));
        assert_eq!(run["stacks"]["/web"][0][0], "succeeded", "{run}");
        assert_eq!(run["stacks"]["/web"][1], attempts, "{run}");
        let text = done(&repository, &format!("{machine} runs show last"));
        let line = "attempt 2: its end was not recorded";
        assert!(text.contains(line), "{text}");
    }
}

/// Keeps the jobs of work orders from sending results until the returned function is called.
fn blocked_store(repository: &Repository) -> impl FnOnce() {
    let file = repository.outside().join("shared/acme.orders");
    fs::write(&file, "").unwrap();
    move || fs::remove_file(file).unwrap()
}

#[test]
fn finish_reports_what_the_state_knows_if_no_job_could_send_results() {
    for command in ["saved", "--record=apply -- sh ../note"] {
        let repository = shared();
        repository.write("/note", "[ $ORCH_STACK_NAME != web ] || kill -KILL $PPID\n");
        hook(&repository, "apply", "web", KILL);
        repository.commit();
        done(&repository, "plan -o saved");
        let jobs = export(&repository, command);
        let unblock = blocked_store(&repository);
        done(&repository, &jobs["/db"]);
        let killed = repository.command(&jobs["/web"]).output().unwrap();
        assert_eq!(killed.status.code(), None);
        age_records(&repository);
        unblock();
        let second = machine(&repository, "second");
        let finish = format!("{second} finish --work-order order.json --report ../report.md");
        fails(&repository, &finish, 1, "/web: failed");
        let report = fs::read_to_string(repository.outside().join("report.md")).unwrap();
        assert!(report.contains("orch was killed"), "{report}");
        for machine in [&second, ""] {
            let run = shown(&repository, machine, &run_of(&repository));
            assert_eq!(run["state"], "failed", "{command}: {run}");
            assert_eq!(run["stacks"]["/web"][0][0], "unknown", "{command}: {run}");
            assert_eq!(run["stacks"]["/db"][0][0], "succeeded", "{command}: {run}");
            assert_eq!(run["counts"], json!([1, 0, 0, 0]), "{command}: {run}");
        }
    }
}

#[test]
fn runs_show_a_killed_destroy_after_the_lock_is_free() {
    let repository = shared();
    repository.write("/note", "[ ! -e ../../kills ] || kill -KILL $PPID\n");
    repository.commit();
    done(&repository, "run --record=apply -- sh ../note");
    let command = "--match /web --record=destroy --reverse -- sh ../note";
    let jobs = export(&repository, command);
    fs::write(repository.outside().join("kills"), "").unwrap();
    let killed = repository.command(&jobs["/web"]).output().unwrap();
    assert_eq!(killed.status.code(), None);
    age_records(&repository);
    let finish = "finish --work-order order.json";
    fails(&repository, finish, 1, "/web: failed");
    let run = shown(&repository, "", &run_of(&repository));
    assert_eq!(run["stacks"]["/web"][0][0], "unknown", "{run}");
}

/// Without its entry, nothing would show that the stack was destroyed.
#[test]
fn job_of_a_destroy_whose_result_cannot_be_sent_fails_and_runs_again() {
    for command in ["--record=destroy --reverse -- sh ../note", "gone"] {
        let repository = shared();
        repository.write("/note", "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n");
        repository.commit();
        done(&repository, "apply --auto-approve");
        done(&repository, "plan --destroy -o gone --allow-destroy 9");
        let jobs = export(&repository, command);
        let second = machine(&repository, "second");
        fs::copy(
            repository.path("/gone"),
            repository.outside().join("second/gone"),
        )
        .unwrap();
        let unblock = blocked_store(&repository);
        let output = fails(&repository, &jobs["/web"], 5, "are recorded as failed");
        for text in ["/web is only on this machine", "run the job again"] {
            assert!(output.contains(text), "{output}");
        }
        unblock();
        let finish = format!("{second} finish --work-order order.json --report ../report.md");
        fails(&repository, &finish, 1, "/web: failed");
        let report = fs::read_to_string(repository.outside().join("report.md")).unwrap();
        assert!(report.contains("| `/web` | failed |"), "{report}");
        for stack in ["/web", "/end", "/db", "/cache"] {
            let job = format!("{second} {}", jobs[stack]);
            done(&repository, &job);
            assert!(!log(&repository).is_empty(), "{stack}");
            // Now it is done.
            done(&repository, &job);
            assert_eq!(log(&repository), [""; 0], "{stack}");
        }
        done(&repository, &finish);
        let run = shown(&repository, "", &run_of(&repository));
        assert_eq!(run["counts"], json!([5, 0, 0, 0]), "{run}");
        assert_eq!(run["state"], "succeeded", "{run}");
    }
}

#[cfg(unix)]
#[test]
fn finish_reports_a_destroy_whose_job_was_killed_before_it_sent_the_result() {
    let server = BucketServer::new(Dialect::S3);
    let (repository, orch) = in_bucket(&server);
    let orch = |arguments: &str| orch(&repository, arguments);
    repository.write("/note", "touch ../../ran\n");
    repository.commit();
    orch("run --record=apply -- true");
    let command = "--match /web --record=destroy --reverse -- sh ../note";
    orch(&format!(
        "export make -o jobs.mk --work-order order.json {command}"
    ));
    let ran = repository.outside().join("ran");
    let order = format!("acme/default.orders/{}.json", run_of(&repository));
    let (was_put, answer) = server.hold(&order);
    let mut job = repository.command(&jobs_of(&repository)["/web"]);
    job.envs(server.credentials()).stderr(Stdio::null());
    let mut job = job.stdout(Stdio::null()).spawn().unwrap();
    was_put.recv_timeout(Duration::from_secs(30)).unwrap();
    wait_until("its command has run", || ran.exists());
    let runs = repository.path("/.orch/runs");
    let has_ended = |run: fs::DirEntry| {
        let journal = fs::read_to_string(run.path().join("journal.jsonl"));
        journal.is_ok_and(|it| it.contains("\"part_of\"") && it.contains("\"event\":\"ended\""))
    };
    wait_until("the end is in its journal", || {
        let mut runs = fs::read_dir(&runs).unwrap();
        runs.any(|run| has_ended(run.unwrap()))
    });
    job.kill().unwrap();
    job.wait().unwrap();
    drop(answer);
    server.advance(SignedDuration::from_mins(10));
    let finish = |status: i32| {
        let mut finish = repository.command("finish --work-order order.json");
        let finish = finish.envs(server.credentials()).output().unwrap();
        let text = String::from_utf8_lossy(&finish.stderr).into_owned();
        assert_eq!(finish.status.code(), Some(status), "{text}");
        text
    };
    let text = finish(1);
    assert!(text.contains("/web: failed"), "{text}");
    orch(&jobs_of(&repository)["/web"]);
    finish(0);
}

/// A job that lost the lock while its command ran still sends its result.
#[test]
fn runs_ignore_the_result_of_a_job_that_lost_the_lock() {
    let repository = shared();
    let waits = "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n[ ! -e ../../fails ] || exit 1\ntouch ../../fails\nwhile [ -d $ORCH_ROOT ] && [ ! -e ../../go ]; do sleep 0.01; done\n";
    repository.write("/note", waits);
    repository.commit();
    let jobs = export(&repository, "--match /web --record=apply -- sh ../note");
    let second = machine(&repository, "second");
    let mut slow = repository.command(&jobs["/web"]);
    slow.stdout(Stdio::null()).stderr(Stdio::null());
    let mut slow = slow.spawn().unwrap();
    let begun = repository.outside().join("fails");
    wait_until("its command runs", || begun.exists());
    let signal = |name: &str| {
        let mut kill = Command::new("kill");
        let sent = kill.args([name, &slow.id().to_string()]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    age_records(&repository);
    fails(&repository, &format!("{second} {}", jobs["/web"]), 1, "");
    fs::write(repository.outside().join("go"), "").unwrap();
    signal("-CONT");
    assert_eq!(slow.wait().unwrap().code(), Some(5));
    let finish = format!("{second} finish --work-order order.json");
    fails(&repository, &finish, 1, "/web: failed");
    for machine in ["", &second] {
        let run = shown(&repository, machine, &run_of(&repository));
        assert_eq!(run["state"], "failed", "{run}");
    }
}

#[test]
fn work_orders_in_use_keep_their_results() {
    let repository = shared();
    done(&repository, "plan -o saved");
    let jobs = export(&repository, "saved --jobs 9");
    done(&repository, &jobs["/web"]);
    let orders = repository.outside().join("shared/acme.orders");
    let order = orders.join(format!("{}.json", run_of(&repository)));
    for number in 0..60 {
        let newer = format!("ffffffff-ffff-7fff-bfff-{number:012x}.json");
        fs::copy(&order, orders.join(newer)).unwrap();
    }
    export(&repository, "-- true");
    let other = jobs_of(&repository)["/db"].clone();
    done(&repository, &other);
    assert!(order.exists());
}

/// Without a state, marks in the store show it.
#[test]
fn runs_show_a_killed_stack_of_a_command_in_a_bucket() {
    let server = BucketServer::new(Dialect::S3);
    let (repository, orch) = in_bucket(&server);
    let orch = |arguments: &str| orch(&repository, arguments);
    repository.write(
        "/note",
        "[ $ORCH_STACK_NAME != db ] || [ -e ../../go ] || kill -KILL $PPID\n",
    );
    repository.commit();
    orch("export make -o jobs.mk --work-order order.json -- sh ../note");
    let jobs = jobs_of(&repository);
    let mut killed = repository.command(&jobs["/db"]);
    let killed = killed.envs(server.credentials()).output().unwrap();
    assert_eq!(killed.status.code(), None);
    let second = machine(&repository, "second");
    let shown = || -> Value {
        let shown = orch(&format!("{second} runs show last --format json"));
        serde_json::from_str(&shown).unwrap()
    };
    let run = shown();
    assert_eq!(run["stacks"][1]["state"], "unknown", "{run}");
    fs::write(repository.outside().join("go"), "").unwrap();
    // Its lease runs out.
    server.advance(SignedDuration::from_mins(3));
    orch(&jobs["/db"]);
    let run = shown();
    assert_eq!(run["succeeded"], 1, "{run}");
    let attempts = run["stacks"][1]["history"].as_array().unwrap().iter();
    let ends: Vec<bool> = attempts.map(|it| it["elapsed_ms"].is_u64()).collect();
    assert_eq!(ends, [false, true], "{run}");
}

/// The state is the truth about what was applied, whether or not its result was sent.
#[test]
fn job_of_a_command_whose_result_was_not_sent_runs_nothing_again() {
    let repository = shared();
    repository.write("/note", "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n");
    repository.commit();
    let jobs = export(&repository, "--record=apply -- sh ../note");
    let unsent = repository.outside().join("shared/acme.results");
    fs::write(&unsent, "").unwrap();
    let output = done(&repository, &jobs["/web"]);
    assert!(output.contains("is only on this machine"), "{output}");
    fs::remove_file(unsent).unwrap();
    for stack in ["/db", "/cache", "/app", "/end"] {
        done(&repository, &jobs[stack]);
    }
    done(&repository, "finish --work-order order.json");
    log(&repository);
    // The lock is free.
    let second = machine(&repository, "second");
    let again = done(&repository, &format!("{second} {}", jobs["/web"]));
    assert!(again.contains("nothing to do"), "{again}");
    assert_eq!(log(&repository), [""; 0]);
    let run = shown(&repository, &second, &run_of(&repository));
    assert_eq!(run["counts"], json!([5, 0, 0, 0]), "{run}");
    let said = done(&repository, &format!("{second} runs show last"));
    assert!(said.contains("its job sent no result"), "{said}");
}

#[test]
fn job_whose_result_cannot_be_sent_keeps_it_and_says_so() {
    let repository = shared();
    done(&repository, "plan -o saved");
    let jobs = export(&repository, "saved");
    // There is something else in its place.
    fs::write(repository.outside().join("shared/acme.results"), "").unwrap();
    let output = done(&repository, &jobs["/web"]);
    let why = "the result of /web is only on this machine";
    assert!(output.contains(why), "{output}");
    let run = shown(&repository, "", "last");
    assert_eq!(run["counts"], json!([1, 0, 0, 0]), "{run}");
}

#[test]
fn runs_are_shown_although_the_store_is_out_of_reach() {
    let repository = shared();
    done(&repository, "run -X --no-record -- true");
    let broken = STATE.replace("../shared/acme", "/dev/null/acme");
    repository.write("/state.orch.hcl", broken);
    let output = done(&repository, "runs show last");
    let why = "runs of work orders on other machines may be missing";
    assert!(output.contains(why), "{output}");
    assert!(output.contains("true"), "{output}");
}

#[test]
fn results_of_a_replaced_stack_keep_its_turns_apart() {
    let repository = shared();
    done(&repository, "apply --auto-approve");
    declare(&repository, "/db", "");
    done(&repository, "plan -o saved --replace db --allow-destroy 9");
    let jobs = export(&repository, "saved");
    let second = machine(&repository, "second");
    for job in jobs.values() {
        done(&repository, &format!("{second} {job}"));
    }
    done(&repository, "finish --work-order order.json");
    let run = shown(&repository, "", "last");
    assert_eq!(run["state"], "succeeded", "{run}");
    assert_eq!(
        run["stacks"]["/db"][1].as_array().unwrap().len(),
        2,
        "{run}"
    );
}

#[test]
fn finish_fails_if_a_replaced_stack_is_only_destroyed() {
    let repository = shared();
    done(&repository, "apply --auto-approve");
    let plan = "plan -o saved --match /db --replace db --allow-destroy 9";
    done(&repository, plan);
    let jobs = export(&repository, "saved");
    let mut job = repository.command(&jobs["/db"]);
    job.stdout(Stdio::null()).stderr(Stdio::null());
    let held = "[ -e $world/db ] || until [ -e $world/on ]; do sleep 0.01; done\n";
    hook(&repository, "plan", "db", held);
    let mut killed = job.spawn().unwrap();
    let state = repository.outside().join("shared");
    let files = |folder: &Path| -> Vec<PathBuf> {
        let files = fs::read_dir(folder).into_iter().flatten();
        files.map(|file| file.unwrap().path()).collect()
    };
    let is = |path: &Path, part: &str| path.to_string_lossy().contains(part);
    wait_until("it is destroyed", || {
        let results = files(&state).into_iter().filter(|it| is(it, ".results"));
        let mut results = results.flat_map(|it| files(&it)).flat_map(|it| files(&it));
        results.any(|it| is(&it, "00000.") && is(&it, ".result"))
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    fs::write(repository.outside().join("world/on"), "").unwrap();
    age_records(&repository);
    let finish = "finish --work-order order.json";
    fails(&repository, finish, 1, "1 of 1 stack not done");
    let run = shown(&repository, "", "last");
    assert_eq!(run["state"], "failed", "{run}");
    // Unknown if the job was killed before the state had the destroy.
    let shown = &run["stacks"]["/db"][0][0];
    assert!(shown == "cancelled" || shown == "unknown", "{run}");
}

#[test]
fn finish_shows_a_replaced_stack_whose_destroy_was_killed_as_unknown() {
    let repository = shared();
    done(&repository, "apply --auto-approve");
    let plan = "plan -o saved --match /db --replace db --allow-destroy 9";
    done(&repository, plan);
    let jobs = export(&repository, "saved");
    hook(&repository, "destroy", "db", KILL);
    let killed = repository.command(&jobs["/db"]).output().unwrap();
    assert_eq!(killed.status.code(), None);
    unhook(&repository, "destroy", "db");
    age_records(&repository);
    fails(
        &repository,
        "finish --work-order order.json",
        1,
        "/db: failed",
    );
    let run = shown(&repository, "", "last");
    assert_eq!(run["stacks"]["/db"][0][0], "unknown", "{run}");
}

/// A project whose state is in a bucket, and a function that runs `orch` there.
fn in_bucket(server: &BucketServer) -> (Repository, impl Fn(&Repository, &str) -> String) {
    let sandbox = prepared(&STACKS);
    let state = STATE.replace(
        "backend \"local\" {\n        path = \"../shared/acme\"\n      }",
        &server.backend(),
    );
    sandbox.write("/state.orch.hcl", state);
    let credentials = server.credentials();
    let orch = move |repository: &Repository, arguments: &str| {
        let mut command = repository.command(arguments);
        let output = command.envs(credentials).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{text}");
        String::from_utf8(output.stdout).unwrap()
    };
    let repository = Repository::of(sandbox);
    orch(&repository, "state init");
    (repository, orch)
}

#[test]
fn results_of_jobs_go_to_the_bucket_of_the_state() {
    let server = BucketServer::new(Dialect::S3);
    let (repository, orch) = in_bucket(&server);
    let orch = |arguments: &str| orch(&repository, arguments);
    orch("plan -o saved");
    orch("export make saved -o jobs.mk --work-order order.json --workers 2");
    orch("work --work-order order.json");
    let keys = server.keys();
    let results = keys.iter().filter(|key| key.contains(".results/"));
    assert_eq!(results.count(), STACKS.len(), "{keys:?}");
    let second = machine(&repository, "second");
    let shown = orch(&format!("{second} runs show last --format json"));
    let run: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(run["succeeded"], STACKS.len(), "{run}");
    let logs = orch(&format!("{second} runs logs last /web"));
    assert!(logs.contains("would make 1"), "{logs}");
}

/// Returns how many requests a command sends that has run before.
fn requests_again(server: &BucketServer, run: impl Fn()) -> usize {
    run();
    let before = server.requests();
    run();
    server.requests() - before
}

#[test]
fn results_and_answers_of_policies_are_read_once_from_a_bucket() {
    let server = BucketServer::new(Dialect::S3);
    let (repository, orch) = in_bucket(&server);
    let orch = |arguments: &str| orch(&repository, arguments);
    attach(
        &repository,
        "next",
        "package next\nflag[\"seen\"] { true }\n",
    );
    repository.commit();
    orch("plan -o saved");
    orch("export make saved -o jobs.mk --work-order order.json");
    let jobs = jobs_of(&repository);
    let second = machine(&repository, "second");
    let list = format!("{second} runs list");
    let n_requests = || requests_again(&server, || drop(orch(&list)));
    orch(&jobs["/db"]);
    let of_one = n_requests();
    orch(&jobs["/cache"]);
    orch(&jobs["/web"]);
    assert!(server.keys().iter().any(|key| key.ends_with(".evaluated")));
    assert_eq!(n_requests(), of_one);
}

#[test]
fn runs_list_reads_the_state_once_for_all_work_orders() {
    let server = BucketServer::new(Dialect::S3);
    let (repository, orch) = in_bucket(&server);
    let orch = |arguments: &str| orch(&repository, arguments);
    let second = machine(&repository, "second");
    let list = format!("{second} runs list");
    let n_requests = || requests_again(&server, || drop(orch(&list)));
    let of_none = n_requests();
    let of_orders = ["/db", "/cache"].map(|stack| {
        orch("plan -o saved");
        orch("export make saved -o jobs.mk --work-order order.json");
        orch(&jobs_of(&repository)[stack]);
        let mut finish = repository.command("finish --work-order order.json");
        let finished = finish.envs(server.credentials()).output().unwrap();
        assert_eq!(finished.status.code(), Some(1));
        n_requests()
    });
    assert!(of_orders[1] - of_orders[0] < of_orders[0] - of_none);
}

#[test]
fn runs_list_does_not_fetch_pruned_work_orders_again() {
    let repository = shared();
    done(&repository, "plan -o saved");
    let jobs = export(&repository, "saved");
    done(&repository, &jobs["/web"]);
    let order = run_of(&repository);
    done(&repository, "runs list");
    let runs = repository.path("/.orch/runs");
    let newer = |number: usize| format!("ffffffff-ffff-7fff-bfff-{number:012x}");
    for number in 0..50 {
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .args([runs.join(&order), runs.join(newer(number))])
            .status();
        assert!(copied.unwrap().success());
    }
    done(&repository, "runs prune");
    assert!(!runs.join(&order).exists());
    done(&repository, "runs list");
    done(&repository, "runs show last");
    assert!(!runs.join(&order).exists(), "it was fetched");
    let run = shown(&repository, "", &order);
    assert_eq!(run["counts"], json!([1, 0, 0, 0]), "{run}");
}
