//! Policies of a work order: `orch finish` evaluates each result once, and runs the follow-ups.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::followed::attach;
use super::job_results::{KILL, age_records, export, jobs_of, machine, run_of, shared, shown};
use super::together::HeldUp;
use super::{acts, declare, done, fails, hook, log, unhook, world};
use crate::policies::resumed::kill_behind;
use crate::support::{Repository, ended, opened, run_ids, wait_until};

const SCRIPT: &str = "echo ran $ORCH_STACK_NAME\necho \"$ORCH_STACK_NAME ${ORCH_POLICY-}\" >> $ORCH_ROOT/../log\nwhile [ -e $ORCH_ROOT/../world/hold-$ORCH_STACK_NAME ]; do sleep 0.01; done\n[ ! -e $ORCH_ROOT/../world/no-$ORCH_STACK_NAME ]\n";

/// Asks for `/web` after `/db`, and for `/end` after a failure of `/cache`.
const NEXT: &str = r#"
package next
trigger["web"] { input.stack.id == "/db"; input.run.state == "FINISHED" }
trigger["end"] { input.stack.id == "/cache"; input.run.state == "FAILED" }
"#;

/// A project whose jobs run a script in `/db`, `/cache` and `/app`.
fn project() -> Repository {
    let repository = shared();
    followed(&repository);
    repository
}

fn followed(repository: &Repository) {
    attach(repository, "next", NEXT);
    let settings = "orch {\n  config {\n    policies {\n      run = \"tracked\"\n    }\n  }\n}\n";
    repository.write("/run.orch.hcl", settings);
    repository.write("/script", SCRIPT);
    repository.commit();
}

fn export_command(repository: &Repository) -> BTreeMap<String, String> {
    let stacks = "--match /db --match /cache --match /app";
    let command = "--on-error continue --record=apply -- sh ../script";
    export(repository, &format!("{stacks} {command}"))
}

const FINISH: &str = "finish --work-order order.json";

fn breaks(repository: &Repository, stack: &str, is_broken: bool) {
    let path = repository.outside().join(format!("world/no-{stack}"));
    if is_broken {
        fs::write(path, "").unwrap();
    } else {
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn finish_runs_follow_ups_of_a_command_once_on_any_machine() {
    let repository = project();
    let jobs = export_command(&repository);
    let second = machine(&repository, "second");
    let third = machine(&repository, "third");
    done(&repository, &jobs["/db"]);
    done(&repository, &format!("{second} {}", jobs["/cache"]));
    done(&repository, &jobs["/app"]);
    assert_eq!(log(&repository), ["db ", "cache ", "app "]);
    let output = done(&repository, &format!("{second} {FINISH}"));
    assert!(
        output.contains("/web: follows /db (policy `next`)"),
        "{output}"
    );
    assert_eq!(log(&repository), ["web next"]);
    let list = done(&repository, "state list");
    assert!(list.contains("/web"), "{list}");
    for machine in [&second, &third] {
        let output = done(&repository, &format!("{machine} {FINISH}"));
        assert!(!output.contains("follows"), "{output}");
        assert_eq!(log(&repository), [""; 0]);
    }
}

#[test]
fn runs_show_follow_ups_of_a_work_order_like_those_of_one_machine() {
    for broken in [None, Some("web")] {
        let one = project();
        let many = project();
        for repository in [&one, &many] {
            if let Some(stack) = broken {
                breaks(repository, stack, true);
            }
        }
        let status = i32::from(broken.is_some());
        let stacks = "--match /db --match /cache --match /app";
        let run = format!("run {stacks} --on-error continue --record=apply -- sh ../script");
        assert_eq!(one.orch(&run).code(), status);
        let jobs = export_command(&many);
        for stack in ["/db", "/cache", "/app"] {
            done(&many, &jobs[stack]);
        }
        let finish = format!("{FINISH} --report ../r.json --report ../r.xml");
        assert_eq!(many.orch(&finish).code(), status);
        let expected = shown(&one, "", "last");
        let second = machine(&many, "second");
        for machine in ["", &second] {
            for run in [&run_of(&many), "last"] {
                assert_eq!(shown(&many, machine, run), expected);
            }
            let logs = done(&many, &format!("{machine} runs logs last /web"));
            assert!(logs.contains("ran web"), "{logs}");
        }
        let read = |name: &str| fs::read_to_string(many.outside().join(name)).unwrap();
        let report: Value = serde_json::from_str(&read("r.json")).unwrap();
        assert_eq!(report["run"]["counts"]["failed"], status, "{report}");
        assert!(read("r.xml").contains("/web"));
        let shown = many.orch("runs show").stdout;
        assert!(shown.contains("follows /db"), "{shown}");
        // It is not listed beside the run that it belongs to.
        assert_eq!(many.orch("runs list").stdout.lines().count(), 1);
    }
}

#[test]
fn finish_evaluates_the_result_of_a_job_that_is_run_again() {
    let repository = project();
    let jobs = export_command(&repository);
    let second = machine(&repository, "second");
    breaks(&repository, "cache", true);
    breaks(&repository, "db", true);
    fails(&repository, &jobs["/db"], 1, "");
    fails(&repository, &jobs["/cache"], 1, "");
    fails(
        &repository,
        FINISH,
        1,
        "/end: follows /cache (policy `next`)",
    );
    assert_eq!(log(&repository), ["db ", "cache ", "end next"]);
    breaks(&repository, "db", false);
    done(&repository, &format!("{second} {}", jobs["/db"]));
    // Of the results, only the new one is evaluated, on this machine or another one.
    let output = fails(
        &repository,
        &format!("{second} {FINISH}"),
        1,
        "/web: follows /db (policy `next`)",
    );
    assert!(!output.contains("missing"), "{output}");
    assert_eq!(log(&repository), ["db ", "web next"]);
    fails(&repository, FINISH, 1, "/cache: failed");
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn finish_tries_failed_follow_ups_again_on_any_machine() {
    let repository = project();
    let jobs = export_command(&repository);
    let second = machine(&repository, "second");
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    breaks(&repository, "web", true);
    let failed = fails(
        &repository,
        FINISH,
        1,
        "run `orch finish` again to continue",
    );
    assert!(!failed.contains("--resume"), "{failed}");
    let order = run_of(&repository);
    assert_eq!(shown(&repository, "", &order)["state"], "failed");
    breaks(&repository, "web", false);
    log(&repository);
    // Only `orch finish` takes part in the claim on their results.
    let run = run_ids(&repository).pop().unwrap();
    let resume = format!("run --resume {run}");
    fails(&repository, &resume, 4, "`orch finish --work-order FILE`");
    assert_eq!(log(&repository), [""; 0]);
    done(&repository, &format!("{second} {FINISH}"));
    assert_eq!(log(&repository), ["web "]);
    for machine in ["", &second] {
        done(&repository, &format!("{machine} {FINISH}"));
        assert_eq!(log(&repository), [""; 0]);
    }
    let run = shown(&repository, "", &order);
    assert_eq!(run["state"], "succeeded", "{run}");
    assert_eq!(run["stacks"]["/web"][1].as_array().unwrap().len(), 2);
}

/// Policies make no difference to that.
#[test]
fn job_that_succeeds_when_it_is_run_again_is_shown_as_succeeded() {
    let repository = project();
    let jobs = export_command(&repository);
    breaks(&repository, "cache", true);
    fails(&repository, &jobs["/cache"], 1, "");
    breaks(&repository, "cache", false);
    for stack in ["/cache", "/db", "/app"] {
        done(&repository, &jobs[stack]);
    }
    done(&repository, FINISH);
    let run = shown(&repository, "", &run_of(&repository));
    assert_eq!(run["stacks"]["/cache"][0][0], "succeeded", "{run}");
}

/// A follow-up has applied the stack since its job failed.
#[test]
fn job_does_not_repeat_a_stack_that_a_follow_up_has_repaired() {
    let repository = project();
    let next = r#"
package next
trigger["db"] { input.stack.id == "/db"; input.run.state == "FAILED"; input.run.triggered_by == null }
"#;
    attach(&repository, "next", next);
    repository.commit();
    let jobs = export_command(&repository);
    breaks(&repository, "db", true);
    fails(&repository, &jobs["/db"], 1, "");
    breaks(&repository, "db", false);
    for stack in ["/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    for _ in 0..2 {
        done(&repository, FINISH);
    }
    log(&repository);
    done(&repository, &jobs["/db"]);
    assert_eq!(log(&repository), [""; 0]);
}

/// Removes the last follow-up run from the store, as if it had been killed and its machine were lost.
fn lose(repository: &Repository) {
    let order = order_in_store(repository);
    let names = |prefix: &str, suffix: &str| {
        let files = fs::read_dir(&order).unwrap().map(|it| it.unwrap().path());
        let files = files.filter(|it| {
            let name = it.file_name().unwrap().to_string_lossy();
            name.starts_with(prefix) && name.ends_with(suffix)
        });
        files.max().unwrap()
    };
    fs::remove_file(names("run.", "")).unwrap();
    fs::remove_file(names("claim.", ".end")).unwrap();
}

#[test]
fn finish_repeats_follow_ups_of_a_killed_run_only_with_retry_killed() {
    let repository = project();
    let jobs = export_command(&repository);
    let second = machine(&repository, "second");
    breaks(&repository, "cache", true);
    done(&repository, &jobs["/db"]);
    fails(&repository, &jobs["/cache"], 1, "");
    fails(&repository, FINISH, 1, "/web: follows /db");
    lose(&repository);
    kill_behind(&repository, |line| line["event"] == "started");
    log(&repository);
    // Another machine leaves all of it alone, because the killed run may have done it.
    breaks(&repository, "cache", false);
    for stack in ["/cache", "/app"] {
        done(&repository, &format!("{second} {}", jobs[stack]));
    }
    log(&repository);
    let finish = format!("{second} {FINISH}");
    let why = "is still running or was killed";
    let output = fails(&repository, &finish, 4, why);
    assert!(output.contains("`orch finish --retry-killed`"), "{output}");
    assert_eq!(log(&repository), [""; 0]);
    done(&repository, &format!("{finish} --retry-killed"));
    assert_eq!(log(&repository), ["web next"]);
    for machine in [&*second, ""] {
        for flag in ["--retry-killed", ""] {
            done(&repository, &format!("{machine} {FINISH} {flag}"));
            assert_eq!(log(&repository), [""; 0]);
        }
    }
}

/// Marks the last run of follow-ups as killed, as a user of another machine does with `--retry-killed`.
fn mark_killed(repository: &Repository) {
    lose(repository);
    let order = order_in_store(repository);
    let number = (0..).take_while(|it| order.join(format!("claim.{it}")).exists());
    let end = order.join(format!("claim.{}.end", number.last().unwrap()));
    fs::write(end, r#"{"end":"killed"}"#).unwrap();
}

#[test]
fn finish_after_a_killed_run_keeps_what_complete_runs_have_done() {
    let repository = project();
    let jobs = export_command(&repository);
    let second = machine(&repository, "second");
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    breaks(&repository, "cache", true);
    breaks(&repository, "web", true);
    fails(&repository, FINISH, 1, "/web: failed");
    breaks(&repository, "web", false);
    done(&repository, FINISH);
    assert_eq!(log(&repository).last().unwrap(), "web ");
    // The second run of follow-ups, which only ran `/web` again, is killed on this machine.
    mark_killed(&repository);
    kill_behind(&repository, |line| line["event"] == "started");
    for machine in [&*second, ""] {
        let finish = format!("{machine} {FINISH}");
        let output = fails(&repository, &finish, 1, "`orch finish --retry-killed`");
        assert!(output.contains("was killed"), "{output}");
        assert_eq!(log(&repository), [""; 0]);
    }
    // The machine of the killed run resumes the run before it.
    done(&repository, &format!("{FINISH} --retry-killed"));
    assert_eq!(log(&repository), ["web "]);
    for machine in [&*second, ""] {
        done(&repository, &format!("{machine} {FINISH}"));
        assert_eq!(log(&repository), [""; 0]);
    }
}

#[test]
fn finish_repeats_no_run_that_is_already_in_the_store() {
    let repository = project();
    let jobs = export_command(&repository);
    let second = machine(&repository, "second");
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    done(&repository, FINISH);
    log(&repository);
    fs::remove_file(order_in_store(&repository).join("claim.0.end")).unwrap();
    done(&repository, &format!("{second} {FINISH}"));
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn finish_skips_a_failed_follow_up_after_its_job_succeeds() {
    let repository = project();
    let next = r#"
package next
trigger["web"] { input.stack.id == "/app" }
trigger["db"] { input.stack.id == "/db"; input.run.state == "FAILED"; input.run.triggered_by == null }
"#;
    repository.write("/policies/next.rego", next);
    repository.commit();
    let stacks = "--match /db --match /cache --match /app";
    let command = "--on-error stop --record=apply -- sh ../script";
    let jobs = export(&repository, &format!("{stacks} {command}"));
    done(&repository, &jobs["/cache"]);
    breaks(&repository, "db", true);
    fails(&repository, &jobs["/db"], 1, "");
    fails(&repository, FINISH, 1, "/db: failed");
    // The job succeeds later than the follow-up has failed, which holds nothing and is not run again.
    breaks(&repository, "db", false);
    for stack in ["/db", "/app"] {
        done(&repository, &jobs[stack]);
    }
    log(&repository);
    done(&repository, FINISH);
    assert_eq!(log(&repository), ["web next"]);
    done(&repository, FINISH);
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn finish_reports_and_retries_a_run_that_never_began() {
    let repository = project();
    let jobs = export_command(&repository);
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    done(&repository, FINISH);
    lose(&repository);
    let run = run_ids(&repository).pop().unwrap();
    fs::remove_dir_all(repository.path(&format!("/.orch/runs/{run}"))).unwrap();
    log(&repository);
    let output = fails(&repository, FINISH, 4, "`orch finish --retry-killed`");
    assert!(
        output.contains(&format!("the follow-up run {run} on")),
        "{output}"
    );
    assert_eq!(log(&repository), [""; 0]);
    done(&repository, &format!("{FINISH} --retry-killed"));
    assert_eq!(log(&repository), ["web next"]);
    done(&repository, FINISH);
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn finish_resumes_and_sends_a_killed_run() {
    let repository = project();
    let jobs = export_command(&repository);
    let second = machine(&repository, "second");
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    done(&repository, FINISH);
    lose(&repository);
    kill_behind(&repository, |line| line["event"] == "started");
    log(&repository);
    done(&repository, FINISH);
    assert_eq!(log(&repository), ["web "]);
    done(&repository, &format!("{second} {FINISH}"));
    assert_eq!(log(&repository), [""; 0]);
    let order = run_of(&repository);
    let here = shown(&repository, "", &order);
    assert_eq!(here["state"], "succeeded", "{here}");
    assert_eq!(shown(&repository, &second, &order), here);
}

#[test]
fn finish_leaves_follow_ups_to_the_run_that_holds_the_lock() {
    let repository = project();
    let jobs = export_command(&repository);
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    let second = machine(&repository, "second");
    let hold = repository.outside().join("world/hold-web");
    fs::write(&hold, "").unwrap();
    let mut first = repository.command(FINISH);
    first.stdin(Stdio::null()).stdout(Stdio::null());
    let mut first = first.stderr(Stdio::null()).spawn().unwrap();
    let ran = || fs::read_to_string(repository.outside().join("log")).unwrap_or_default();
    wait_until("it runs", || ran().contains("web next"));
    let why = "is still running or was killed";
    fails(&repository, &format!("{second} {FINISH}"), 4, why);
    let why = "the state is locked by";
    let retry = format!("{second} {FINISH} --retry-killed");
    fails(&repository, &retry, 4, why);
    fs::remove_file(hold).unwrap();
    assert!(ended(&mut first).success());
    done(&repository, &format!("{second} {FINISH}"));
    assert_eq!(ran().matches("web").count(), 1);
}

/// The run may be alive, and another one may have the lock: only who gets the lock knows that it is over.
#[test]
fn finish_marks_a_run_as_killed_only_with_the_lock() {
    for plans in [false, true] {
        let (repository, jobs) = if plans {
            planned("autodeploy = true")
        } else {
            let repository = project();
            let jobs = export_command(&repository);
            (repository, jobs)
        };
        let second = machine(&repository, "second");
        machine(&repository, "third");
        for stack in ["/db", "/cache", "/app"] {
            done(&repository, &jobs[stack]);
        }
        done(&repository, FINISH);
        lose(&repository);
        let end = order_in_store(&repository).join("claim.0.end");
        let other = "apply --match end --auto-approve --policies=off";
        let other = HeldUp::start(&repository, "third", "end", other);
        let retry = format!("{second} {FINISH} --retry-killed");
        fails(&repository, &retry, 4, "the state is locked by");
        assert!(!end.exists());
        let finish = format!("{second} {FINISH}");
        fails(&repository, &finish, 4, "is still running or was killed");
        other.go_on();
        done(&repository, &retry);
        assert!(end.exists());
        done(&repository, &finish);
    }
}

#[test]
fn finish_writes_follow_ups_into_the_step_summary_once() {
    let repository = project();
    let jobs = export_command(&repository);
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    let summary = repository.path("/summary.md");
    let mut finish = repository.command(FINISH);
    finish.env("GITHUB_ACTIONS", "true");
    finish.env("GITHUB_STEP_SUMMARY", &summary);
    assert!(finish.output().unwrap().status.success());
    let text = fs::read_to_string(summary).unwrap();
    assert_eq!(text.matches("| `/web` |").count(), 1, "{text}");
}

#[test]
fn runs_show_an_order_although_a_later_journal_cannot_be_read() {
    let repository = project();
    let jobs = export_command(&repository);
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    done(&repository, FINISH);
    done(&repository, "run -X --no-record -- true");
    let last = run_ids(&repository).pop().unwrap();
    repository.write(&format!("/.orch/runs/{last}/journal.jsonl"), "{}\n");
    let order = run_of(&repository);
    let output = done(&repository, &format!("runs show {order}"));
    let why = format!("the journal of run {last}");
    assert!(output.contains(&why), "{output}");
    let shown = repository.orch(&format!("runs show {order}")).stdout;
    assert!(shown.contains("follows /db"), "{shown}");
    let all = repository.orch("runs list").stdout;
    let of_order = all.lines().find(|it| it.contains(&order)).unwrap();
    // That may be the journal of failed follow-ups.
    assert!(of_order.contains(" unfinished "), "{all}");
    assert!(
        shown.starts_with(&format!("run {order} has not finished")),
        "{shown}"
    );
    repository.remove(&format!("/.orch/runs/{last}/journal.jsonl"));
    let all = repository.orch("runs list").stdout;
    assert!(all.contains(" succeeded "), "{all}");
}

#[test]
fn runs_list_does_not_reopen_journals_for_each_work_order() {
    let repository = project();
    for _ in 0..8 {
        let jobs = export(&repository, "--match /db --no-record -- sh ../script");
        done(&repository, &jobs["/db"]);
    }
    done(&repository, "run -X --no-record -- true");
    let Some(files) = opened(&repository, "runs list", "journal.jsonl") else {
        return;
    };
    // Not more than a few times each.
    let n_runs = run_ids(&repository).len();
    assert!(files.len() <= 4 * n_runs, "{} of {n_runs}", files.len());
}

#[test]
fn finish_sees_claims_after_that_of_a_run_which_never_began() {
    let repository = project();
    let jobs = export_command(&repository);
    let second = machine(&repository, "second");
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    done(&repository, FINISH);
    assert_eq!(log(&repository), ["db ", "cache ", "app ", "web next"]);
    let order = order_in_store(&repository);
    let claim = fs::read_to_string(order.join("claim.0")).unwrap();
    for file in ["claim.0", "claim.0.end"] {
        let later = order.join(file.replace('0', "1"));
        fs::rename(order.join(file), later).unwrap();
    }
    let never_began = claim.replacen("\"run\":\"", "\"run\":\"0", 1);
    assert_ne!(never_began, claim);
    fs::write(order.join("claim.0"), never_began).unwrap();
    fs::write(order.join("claim.0.end"), r#"{"end":"never_began"}"#).unwrap();
    let output = done(&repository, &format!("{second} {FINISH}"));
    assert!(!output.contains("follow"), "{output}");
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn runs_show_the_end_of_follow_ups_that_continue_a_killed_run() {
    let repository = project();
    let jobs = export_command(&repository);
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    done(&repository, FINISH);
    kill_behind(&repository, |line| line["event"] == "started");
    done(&repository, FINISH);
    let run = shown(&repository, "", &run_of(&repository));
    assert_eq!(run["state"], "succeeded", "{run}");
}

#[test]
fn runs_show_an_order_as_failed_whose_replaced_stack_is_only_destroyed() {
    let repository = shared();
    done(&repository, "apply --auto-approve --match /db");
    attach(&repository, "next", NEXT);
    declare(&repository, "/web", "autodeploy = true");
    repository.commit();
    done(
        &repository,
        "plan -o saved --match /db --replace db --allow-destroy 9",
    );
    let jobs = export(&repository, "saved");
    let run = run_of(&repository);
    let state = |machine: &str| shown(&repository, machine, &run)["state"].clone();
    hook(&repository, "apply", "db", KILL);
    let killed = repository.command(&jobs["/db"]).output().unwrap();
    assert_eq!(killed.status.code(), None);
    assert_eq!(state(&machine(&repository, "second")), "unfinished");
    age_records(&repository);
    fails(&repository, FINISH, 1, "/db: failed");
    assert_eq!(state(&machine(&repository, "third")), "failed");
    unhook(&repository, "apply", "db");
    done(&repository, &jobs["/db"]);
    done(&repository, FINISH);
    assert_eq!(world(&repository, "web").as_deref(), Some("1"));
    assert_eq!(state(&machine(&repository, "fourth")), "succeeded");
}

/// Other machines do not call an order succeeded whose follow-ups run, or were killed.
#[test]
fn runs_show_an_order_as_unfinished_while_its_follow_ups_run() {
    let repository = project();
    let jobs = export_command(&repository);
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    let run = run_of(&repository);
    let second = machine(&repository, "second");
    let state = |machine: &str| shown(&repository, machine, &run)["state"].clone();
    assert_eq!(state(&second), "succeeded");
    done(&repository, FINISH);
    assert_eq!(state(&second), "succeeded");
    lose(&repository);
    kill_behind(&repository, |line| line["event"] == "started");
    for machine in [&*second, &machine(&repository, "third")] {
        assert_eq!(state(machine), "unfinished");
    }
}

/// Returns the folder in the store with the results of the work order.
fn order_in_store(repository: &Repository) -> PathBuf {
    let shared = fs::read_dir(repository.outside().join("shared")).unwrap();
    let mut files = shared.map(|file| file.unwrap().path());
    let results = files.find(|it| it.to_string_lossy().ends_with(".results"));
    let mut orders = fs::read_dir(results.unwrap()).unwrap();
    orders.next().unwrap().unwrap().path()
}

/// Runs `orch finish` on two machines at once: both look for follow-ups before one of them has the lock of the state.
/// `other` is a run on a third machine that holds the lock. Returns the exit statuses, and what both said.
fn finish_at_once(
    repository: &Repository,
    second: &str,
    other: HeldUp<'_>,
) -> [(Option<i32>, String); 2] {
    let place = |name: &str| repository.outside().join(name);
    let said = |name: &str| fs::read_to_string(place(name)).unwrap();
    let machines = [("", "first.err"), (second, "second.err")];
    let mut both = machines.map(|(machine, name)| {
        let mut finish = repository.command(&format!("{machine} {FINISH} --lock-timeout 10m"));
        finish.stdin(Stdio::null()).stdout(Stdio::null());
        let finish = finish.stderr(File::create(place(name)).unwrap()).spawn();
        wait_until("it waits", || {
            said(name).contains("waiting for the state lock")
        });
        (finish.unwrap(), name)
    });
    other.go_on();
    both.each_mut()
        .map(|(finish, name)| (ended(finish).code(), said(name)))
}

#[test]
fn finish_on_two_machines_at_once_runs_follow_ups_of_a_command_once() {
    let repository = project();
    let jobs = export_command(&repository);
    let second = machine(&repository, "second");
    machine(&repository, "third");
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    let other = "apply --match end --auto-approve";
    let other = HeldUp::start(&repository, "third", "end", other);
    log(&repository);
    for (status, said) in finish_at_once(&repository, &second, other) {
        assert_eq!(status, Some(0), "{said}");
    }
    let mut log = log(&repository);
    log.retain(|line| line.starts_with("web"));
    assert_eq!(log, ["web next"]);
}

#[test]
fn finish_on_two_machines_at_once_has_the_same_status_on_both() {
    let repository = shared();
    attach(&repository, "next", "package next\nflag := 1\n");
    repository.commit();
    fails(&repository, "plan --match /db -o saved", 1, "");
    let jobs = export(&repository, "saved");
    let second = machine(&repository, "second");
    machine(&repository, "third");
    done(&repository, &jobs["/db"]);
    let other = "apply --match end --auto-approve --policies=off";
    let other = HeldUp::start(&repository, "third", "end", other);
    let outputs = finish_at_once(&repository, &second, other);
    let count = |text: &str| outputs.iter().filter(|it| it.1.contains(text)).count();
    assert_eq!(count("policy `next` failed after /db"), 1);
    assert_eq!(count("follow-ups may be missing: run"), 1);
    for (status, said) in &outputs {
        assert_eq!(*status, Some(1), "{said}");
    }
}

#[test]
fn finish_reports_a_failed_follow_up_and_a_report_that_cannot_be_written() {
    let repository = project();
    let jobs = export_command(&repository);
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    breaks(&repository, "web", true);
    let finish = format!("{FINISH} --report json=/dev/full");
    let output = fails(&repository, &finish, 1, "failed to write the report");
    assert!(output.contains("/web: failed"), "{output}");
    breaks(&repository, "web", false);
    fails(&repository, &finish, 5, "failed to write the report");
}

#[test]
fn finish_runs_follow_ups_without_a_state() {
    let repository = super::project(&[("/app", "after = [\"/db\"]"), ("/db", ""), ("/web", "")]);
    followed(&repository);
    repository.write_program("/bin/terraform", &format!("#!/bin/sh\n{SCRIPT}"));
    repository.commit();
    let command = "--match /db --match /app -- ../bin/terraform apply";
    // A second attempt of the last job gets nothing of the first one.
    let gitlab = format!("export gitlab -o jobs.yml {command}");
    let why = "GitLab gives a retried last job no results of its first attempt";
    fails(&repository, &gitlab, 4, why);
    let jobs = export(&repository, command);
    done(&repository, &jobs["/db"]);
    done(&repository, &jobs["/app"]);
    done(&repository, FINISH);
    assert_eq!(log(&repository), ["db ", "app ", "web next"]);
    done(&repository, FINISH);
    assert_eq!(log(&repository), [""; 0]);
    // An engine hands the results on as artifacts, even to a second attempt of the last job.
    let second = machine(&repository, "second");
    let there = repository.outside().join("second/.orch");
    fs::create_dir(&there).unwrap();
    let state = repository.path("/.orch/state");
    let copied = Command::new("cp").arg("-r").args([state, there]).status();
    assert!(copied.unwrap().success());
    done(&repository, &format!("{second} {FINISH}"));
    assert_eq!(log(&repository), [""; 0]);
}

/// Asks for `/web` if `/db` was changed, so that the answer depends on what only its job knows.
const CHANGED: &str = r#"
package next
trigger["web"] {
    input.stack.id == "/db"
    input.run.changes[_].phase == "apply"
}
"#;

/// A project whose jobs apply a plan of all stacks but `/web`.
fn planned(lines_of_web: &str) -> (Repository, BTreeMap<String, String>) {
    let repository = shared();
    attach(&repository, "next", CHANGED);
    declare(&repository, "/web", lines_of_web);
    repository.commit();
    let stacks = "--match /db --match /cache --match /app";
    done(&repository, &format!("plan {stacks} -o saved"));
    let jobs = export(&repository, "saved");
    (repository, jobs)
}

#[test]
fn finish_runs_follow_ups_of_a_plan_once_on_any_machine() {
    let (repository, jobs) = planned("autodeploy = true");
    let second = machine(&repository, "second");
    let third = machine(&repository, "third");
    done(&repository, &jobs["/db"]);
    done(&repository, &format!("{second} {}", jobs["/cache"]));
    done(&repository, &jobs["/app"]);
    assert_eq!(world(&repository, "web"), None);
    // Not even after others have looked at the results.
    done(&repository, &format!("{third} runs list"));
    let output = done(&repository, &format!("{third} {FINISH}"));
    assert!(output.contains("/web: follows /db"), "{output}");
    assert_eq!(world(&repository, "web").as_deref(), Some("1"));
    log(&repository);
    for machine in ["", &second, &third] {
        let output = done(&repository, &format!("{machine} {FINISH}"));
        assert!(!output.contains("follows"), "{output}");
        assert_eq!(acts(&repository), [""; 0]);
    }
    let list = done(&repository, "state list");
    assert!(list.contains("/web"), "{list}");
}

#[test]
fn finish_evaluates_no_stale_answer_after_a_failed_job() {
    let (repository, jobs) = planned("autodeploy = true");
    hook(&repository, "apply", "db", "exit 1\n");
    fails(&repository, &jobs["/db"], 1, "");
    done(&repository, &jobs["/cache"]);
    fails(&repository, FINISH, 1, "orch: nothing follows");
    unhook(&repository, "apply", "db");
    done(&repository, &jobs["/db"]);
    done(&repository, &jobs["/app"]);
    let output = done(&repository, FINISH);
    assert!(output.contains("/web: follows /db"), "{output}");
    assert_eq!(world(&repository, "web").as_deref(), Some("1"));
}

#[test]
fn finish_runs_follow_ups_of_workers() {
    let (repository, _) = planned("autodeploy = true");
    let flags = "--work-order order.json --workers 2";
    done(
        &repository,
        &format!("export make saved -o jobs.mk {flags}"),
    );
    done(&repository, "work --work-order order.json");
    assert_eq!(world(&repository, "web"), None);
    let output = done(&repository, FINISH);
    assert!(output.contains("/web: follows /db"), "{output}");
    assert_eq!(world(&repository, "web").as_deref(), Some("1"));
}

#[test]
fn finish_leaves_follow_ups_without_approval() {
    let (repository, jobs) = planned("");
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    let output = repository.orch(FINISH);
    assert_eq!(world(&repository, "web"), None, "{output}");
    assert!(output.stderr.contains("/web"), "{output}");
    assert_eq!(acts(&repository).len(), 3);
    assert_eq!(output.code(), 0, "{output}");
}

#[test]
fn finish_reports_a_policy_that_failed_in_a_job() {
    let repository = shared();
    attach(&repository, "next", "package next\nflag := 1\n");
    repository.commit();
    fails(&repository, "plan --match /db -o saved", 1, "");
    let jobs = export(&repository, "saved");
    // A second attempt of the job would not evaluate it again.
    done(&repository, &jobs["/db"]);
    fails(&repository, FINISH, 1, "policy `next` failed after /db");
    fails(&repository, FINISH, 1, "follow-ups may be missing");
    assert_eq!(world(&repository, "db").as_deref(), Some("1"));
}

#[test]
fn finish_holds_follow_ups_back_until_the_whole_order_has_succeeded() {
    let (repository, jobs) = planned("autodeploy = true\n  after = [\"/cache\"]");
    hook(&repository, "apply", "cache", "exit 1\n");
    done(&repository, &jobs["/db"]);
    fails(&repository, &jobs["/cache"], 1, "");
    let held = "the policies of 1 stack are evaluated when all other stacks have succeeded";
    fails(&repository, FINISH, 1, held);
    assert_eq!(world(&repository, "web"), None);
    unhook(&repository, "apply", "cache");
    done(&repository, &jobs["/cache"]);
    done(&repository, &jobs["/app"]);
    done(&repository, FINISH);
    assert_eq!(world(&repository, "web").as_deref(), Some("1"));
}

#[test]
fn finish_does_not_repeat_a_stack_that_ran_after_the_one_that_asks() {
    let repository = project();
    let app = "package next\ntrigger[\"app\"] { input.stack.id == \"/db\" }\n";
    repository.write("/policies/next.rego", app);
    repository.commit();
    let jobs = export_command(&repository);
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    done(&repository, FINISH);
    assert_eq!(log(&repository), ["db ", "cache ", "app "]);
}

#[test]
fn finish_continues_after_it_was_killed() {
    let (repository, jobs) = planned("autodeploy = true");
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    done(&repository, FINISH);
    kill_behind(&repository, |_| true);
    fs::remove_file(repository.outside().join("world/web")).unwrap();
    fs::remove_file(order_in_store(&repository).join("claim.0.end")).unwrap();
    done(&repository, "state forget /web");
    let output = done(&repository, FINISH);
    assert!(output.contains("/web: follows /db"), "{output}");
    assert_eq!(world(&repository, "web").as_deref(), Some("1"));
}

#[test]
fn finish_reapplies_follow_ups_of_a_killed_run_only_with_retry_killed() {
    let (repository, jobs) = planned("autodeploy = true");
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    done(&repository, FINISH);
    lose(&repository);
    fs::remove_file(repository.outside().join("world/web")).unwrap();
    let second = machine(&repository, "second");
    fails(&repository, &format!("{second} {FINISH}"), 4, "was killed");
    assert_eq!(world(&repository, "web"), None);
    done(&repository, &format!("{second} {FINISH} --retry-killed"));
    assert_eq!(world(&repository, "web").as_deref(), Some("1"));
    done(&repository, FINISH);
}

#[test]
fn finish_fails_if_a_job_was_killed_before_it_asked_the_policies() {
    let (repository, jobs) = planned("autodeploy = true");
    for stack in ["/db", "/cache", "/app"] {
        done(&repository, &jobs[stack]);
    }
    for file in fs::read_dir(order_in_store(&repository)).unwrap() {
        let file = file.unwrap().path();
        if file.to_string_lossy().ends_with(".evaluated") {
            fs::remove_file(file).unwrap();
        }
    }
    let unknown = "its changes are unknown because its job ended before it evaluated the policies";
    fails(&repository, FINISH, 1, unknown);
    fails(&repository, FINISH, 1, "follow-ups may be missing");
    assert_eq!(world(&repository, "web"), None);
}

/// Else only `orch finish` would notice, after everything was applied.
#[test]
fn export_and_jobs_are_refused_if_a_policy_cannot_be_loaded() {
    let export = "export make -o jobs.mk --work-order order.json";
    let command = "--match /db --record=apply --on-error continue -- sh ../script";
    for flags in [command, &format!("--workers 2 {command}"), "saved"] {
        let repository = shared();
        // Each machine has to create the policy.
        repository.write("/.gitignore", "*.rego\n");
        followed(&repository);
        done(&repository, "plan --match /db -o saved");
        done(&repository, &format!("{export} {flags}"));
        let second = machine(&repository, "second");
        let run = match jobs_of(&repository).remove("/db") {
            Some(job) => job,
            None => "work --work-order order.json".to_owned(),
        };
        log(&repository);
        let why = "the policy `next` cannot be loaded";
        for command in [&run, &format!("{export} {flags}")] {
            fails(&repository, &format!("{second} {command}"), 3, why);
        }
        assert_eq!(log(&repository), [""; 0]);
        done(&repository, &run);
        done(&repository, FINISH);
    }
}
