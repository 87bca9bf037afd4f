//! Jobs of a work order: the gate before each stack, the lock that they share, and the end of all.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::followed::attach;
use super::{DOCUMENT, applied, declare, done, fails, hook, log, want, with_state, world};
use crate::support::{Background, Repository, wait_until};

/// `/app` runs after `/db` and `/cache`; `/web` stands alone.
const STACKS: [(&str, &str); 4] = [
    ("/app", "after = [\"/db\", \"/cache\"]"),
    ("/cache", ""),
    ("/db", ""),
    ("/web", ""),
];

fn exported(repository: &Repository) -> Value {
    done(repository, "plan -o saved --allow-destroy 9");
    done(
        repository,
        "export make saved -o jobs.mk --work-order order.json",
    );
    log(repository);
    order_of(repository)
}

fn order_of(repository: &Repository) -> Value {
    let text = std::fs::read(repository.path("/order.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// The id of the job with a turn of this stack.
fn job_of(order: &Value, stack: &str) -> String {
    let turns = order["turns"].as_array().unwrap();
    let is_turn =
        |turn: &Value| turns[usize::try_from(turn.as_u64().unwrap()).unwrap()]["stack"] == stack;
    let mut jobs = order["jobs"].as_array().unwrap().iter();
    let job = jobs.find(|job| job["turns"].as_array().unwrap().iter().any(is_turn));
    job.unwrap()["id"].as_str().unwrap().to_owned()
}

fn job(order: &Value, stack: &str) -> String {
    format!("job {} --work-order order.json", job_of(order, stack))
}

fn lock(repository: &Repository) -> Value {
    let document = std::fs::read(repository.path(DOCUMENT)).unwrap();
    let document: Value = serde_json::from_slice(&document).unwrap();
    document["lock"].clone()
}

#[test]
fn job_applies_its_stacks_and_the_last_one_frees_the_lock() {
    let repository = with_state(&STACKS);
    let order = exported(&repository);
    done(&repository, &job(&order, "/db"));
    let shared = lock(&repository);
    assert_eq!(shared["run"], order["run"], "{shared}");
    assert_eq!(shared["shared"]["jobs"].as_object().unwrap().len(), 3);
    // No other run changes a stack in between.
    fails(
        &repository,
        "apply -X --auto-approve",
        4,
        "the state is locked",
    );
    for stack in ["/cache", "/app", "/web"] {
        assert_eq!(world(&repository, &stack[1..]), None);
        done(&repository, &job(&order, stack));
        assert_eq!(world(&repository, &stack[1..]).as_deref(), Some("1"));
    }
    assert_eq!(lock(&repository), Value::Null);
    let output = done(&repository, "finish --work-order order.json");
    assert!(output.contains("4 stacks done"), "{output}");
    assert_eq!(repository.orch("plan --detailed-exitcode").code(), 0);
}

#[test]
fn job_names_the_variable_that_disables_a_safeguard() {
    let repository = with_state(&STACKS);
    let plan = exported(&repository);
    let of_plan = job(&plan, "/db");
    repository.write("/junk", "");
    let hint = "or disable this safeguard with `ORCH_DISABLE_SAFEGUARDS=git-untracked`";
    fails(&repository, &of_plan, 4, hint);
    let command = exported_command(&repository);
    fails(&repository, &job(&command, "/db"), 4, hint);
    repository.write("/note", "true\n");
    let output = repository.orch_with(&job(&command, "/db"), |orch| {
        orch.env("ORCH_DISABLE_SAFEGUARDS", "git-untracked");
    });
    assert_eq!(output.code(), 0, "{output}");
}

/// The number is that of the whole plan, and not of each job.
#[test]
fn jobs_are_refused_if_the_plan_destroys_more_stacks_than_it_allows() {
    let repository = applied(&STACKS);
    want(&repository, "/web", "2");
    let export = "export make saved -o jobs.mk --work-order order.json --jobs 9";
    for (allowed, hint) in [
        ("", "there is no terminal to ask"),
        (
            "--allow-destroy 2",
            "this plan has 4 destroys, and `--allow-destroy` allows 2",
        ),
    ] {
        done(&repository, &format!("plan --destroy {allowed} -o saved"));
        done(&repository, export);
        let order = order_of(&repository);
        for stack in ["/app", "/web"] {
            let refused = fails(&repository, &job(&order, stack), 4, hint);
            let fix = "make a new plan with `--allow-destroy=4`, and run `orch export` again";
            assert!(refused.contains(fix), "{refused}");
        }
        fails(
            &repository,
            "finish --work-order order.json",
            1,
            "4 of 4 stacks not done",
        );
    }
    log(&repository);
    done(&repository, "plan --destroy --allow-destroy 4 -o saved");
    done(&repository, export);
    let order = order_of(&repository);
    for stack in ["/app", "/web", "/db", "/cache"] {
        done(&repository, &job(&order, stack));
    }
    done(&repository, "finish --work-order order.json");
    assert_eq!(world(&repository, "app"), None);
}

#[test]
fn job_that_starts_too_early_does_nothing() {
    let repository = with_state(&STACKS);
    let order = exported(&repository);
    let early = job(&order, "/app");
    let why = "/app was skipped: it runs after /cache";
    fails(&repository, &early, 1, why);
    done(&repository, &job(&order, "/cache"));
    fails(
        &repository,
        &early,
        1,
        "/app was skipped: it runs after /db",
    );
    assert_eq!(world(&repository, "app"), None);
    done(&repository, &job(&order, "/db"));
    done(&repository, &early);
    assert_eq!(world(&repository, "app").as_deref(), Some("1"));
}

#[test]
fn job_is_skipped_after_a_failure_and_succeeds_when_it_is_retried() {
    let repository = with_state(&STACKS);
    hook(&repository, "apply", "db", "exit 1\n");
    let order = exported(&repository);
    fails(&repository, &job(&order, "/db"), 1, "");
    done(&repository, &job(&order, "/cache"));
    fails(&repository, &job(&order, "/app"), 1, "it runs after /db");
    done(&repository, &job(&order, "/web"));
    let output = repository.orch("finish --work-order order.json");
    assert_eq!(output.code(), 1, "{output}");
    for line in ["2 of 4 stacks not done", "/db: failed", "/app: not run"] {
        assert!(output.stderr.contains(line), "{line}: {output}");
    }
    assert_eq!(lock(&repository), Value::Null, "{output}");
    // A retried job takes the lock again.
    hook(&repository, "apply", "db", "");
    for stack in ["/db", "/app"] {
        done(&repository, &job(&order, stack));
    }
    assert_eq!(lock(&repository), Value::Null);
    done(&repository, "finish --work-order order.json");
}

#[test]
fn job_that_runs_again_does_nothing() {
    let repository = with_state(&STACKS);
    let order = exported(&repository);
    done(&repository, &job(&order, "/db"));
    log(&repository);
    let output = done(&repository, &job(&order, "/db"));
    assert_eq!(log(&repository), [""; 0], "{output}");
}

#[test]
fn job_refuses_another_plan_and_a_changed_work_order() {
    let repository = applied(&STACKS);
    want(&repository, "/db", "2");
    let order = exported(&repository);
    let run = job(&order, "/db");
    fails(
        &repository,
        "job none --work-order order.json",
        64,
        "no job `none`",
    );
    fails(
        &repository,
        "job none --work-order none.json",
        5,
        "failed to read the work order `none.json`",
    );
    let text = std::fs::read_to_string(repository.path("/order.json")).unwrap();
    repository.write("/order.json", text.replace("make", "mbke"));
    fails(&repository, &run, 4, "cannot be used");
    repository.write("/order.json", text);
    done(&repository, "plan -o saved");
    fails(
        &repository,
        &run,
        4,
        "not the plan that the work order was written for",
    );
    assert_eq!(world(&repository, "db").as_deref(), Some("1"));
}

#[test]
fn jobs_run_at_the_same_time() {
    let repository = with_state(&STACKS);
    // Each waits for the other.
    for (stack, other) in [("db", "cache"), ("cache", "db")] {
        let meet = format!(
            "touch $world/here-{stack}\nuntil [ -e $world/here-{other} ]; do sleep 0.05; done\n"
        );
        hook(&repository, "apply", stack, &meet);
    }
    let order = exported(&repository);
    let jobs = ["/db", "/cache"].map(|stack| {
        let mut command = repository.command(&job(&order, stack));
        command.stdout(Stdio::null()).spawn().unwrap()
    });
    for mut job in jobs {
        assert!(job.wait().unwrap().success());
    }
    done(&repository, &job(&order, "/app"));
    done(&repository, &job(&order, "/web"));
    assert_eq!(lock(&repository), Value::Null);
}

#[test]
fn jobs_of_a_command_wait_for_what_the_state_lacks() {
    let repository = with_state(&STACKS);
    repository.write("/note", "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n");
    repository.commit();
    let order = exported_command(&repository);
    fails(
        &repository,
        &job(&order, "/app"),
        1,
        "/app was skipped: it runs after /cache",
    );
    assert_eq!(log(&repository), [""; 0]);
    for stack in ["/db", "/cache", "/app", "/web"] {
        done(&repository, &job(&order, stack));
        let output = done(&repository, &job(&order, stack));
        assert!(output.contains("nothing to do"), "{output}");
    }
    assert_eq!(log(&repository), ["db", "cache", "app", "web"]);
    assert_eq!(lock(&repository), Value::Null);
    done(&repository, "finish --work-order order.json");
}

/// Exports a command that writes the name of its stack into the log, and that the state records.
fn exported_command(repository: &Repository) -> Value {
    done(
        repository,
        "export make -o jobs.mk --work-order order.json --record=apply -- sh ../note",
    );
    let text = std::fs::read(repository.path("/order.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn job_of_a_command_runs_what_other_runs_have_applied() {
    let repository = with_state(&STACKS);
    repository.write("/note", "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n");
    repository.commit();
    done(&repository, "run --record=apply -- sh ../note");
    repository.write("/README", "");
    repository.commit();
    // Of this commit, perhaps by another command.
    done(
        &repository,
        "run --match cache --record=apply -- sh ../note",
    );
    log(&repository);
    let order = exported_command(&repository);
    for stack in ["/db", "/cache", "/app", "/web"] {
        done(&repository, &job(&order, stack));
    }
    assert_eq!(log(&repository), ["db", "cache", "app", "web"]);
    // The lock is free, and the results show what is done.
    for stack in ["/db", "/web"] {
        done(&repository, &job(&order, stack));
    }
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn job_of_a_command_with_changes_succeeds_and_finish_reports_them() {
    for flags in ["--no-record", "--record=apply"] {
        let repository = with_state(&[("/app", "after = [\"/db\"]"), ("/db", "")]);
        done(
            &repository,
            &format!(
                "export make -j 1 -o jobs.mk --work-order order.json {flags} --detailed-exitcode --changes-exit-code 2 -- sh -c 'exit 2'"
            ),
        );
        let order = order_of(&repository);
        for job in order["jobs"].as_array().unwrap() {
            let id = job["id"].as_str().unwrap();
            done(&repository, &format!("job {id} --work-order order.json"));
        }
        let output = repository.orch("finish --work-order order.json");
        assert_eq!(output.code(), 2, "{flags}: {output}");
    }
}

/// With a state, and by results alone.
#[test]
fn job_of_a_command_waits_for_the_end_of_those_before_it_with_on_error_continue() {
    for record in ["--record=apply", "--no-record"] {
        let repository = with_state(&STACKS);
        let text = "[ $ORCH_STACK_NAME != db ] && echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n";
        repository.write("/note", text);
        repository.commit();
        done(
            &repository,
            &format!(
                "export make -o jobs.mk --work-order order.json {record} --on-error continue -- sh ../note"
            ),
        );
        let order = order_of(&repository);
        let app = job(&order, "/app");
        let waits = |stack: &str| {
            let why = format!("/app was skipped: it runs after {stack}, which has not ended");
            fails(&repository, &app, 1, &why);
        };
        waits("/cache");
        done(&repository, &job(&order, "/cache"));
        waits("/db");
        fails(&repository, &job(&order, "/db"), 1, "");
        done(&repository, &app);
        assert_eq!(log(&repository), ["cache", "app"]);
    }
}

#[test]
fn jobs_and_workers_run_after_failures_with_on_error_continue() {
    for workers in ["", "--workers 2"] {
        let repository = with_state(&STACKS);
        hook(&repository, "apply", "db", "exit 1\n");
        done(&repository, "plan -o saved");
        done(
            &repository,
            &format!(
                "export make saved -o jobs.mk --work-order order.json {workers} --on-error continue"
            ),
        );
        if workers.is_empty() {
            let order = order_of(&repository);
            done(&repository, &job(&order, "/cache"));
            let why = "/app was skipped: it runs after /db, which has not ended";
            fails(&repository, &job(&order, "/app"), 1, why);
            fails(&repository, &job(&order, "/db"), 1, "");
            done(&repository, &job(&order, "/app"));
        } else {
            let not_done = "1 of 4 stacks not done:\nnote: /db: failed\n";
            fails(&repository, "work --work-order order.json", 1, not_done);
        }
        assert_eq!(world(&repository, "app").as_deref(), Some("1"));
    }
}

#[test]
fn job_of_a_command_refuses_another_order_of_its_stacks() {
    let repository = with_state(&STACKS);
    repository.write("/note", "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n");
    repository.commit();
    let order = exported_command(&repository);
    declare(&repository, "/web", "after = [\"/db\"]");
    let why = "the stacks or their order have changed since the work order was written";
    fails(&repository, &job(&order, "/web"), 4, why);
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn job_of_a_command_skips_all_that_runs_after_a_skipped_stack() {
    let repository = with_state(&[
        ("/app", "after = [\"/db\"]"),
        ("/db", "after = [\"/net\"]"),
        ("/net", ""),
        ("/web", "after = [\"/net\"]"),
    ]);
    repository.write("/note", "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n");
    repository.commit();
    let order = exported_command(&repository);
    let both = job_of(&order, "/app");
    assert_eq!(both, job_of(&order, "/db"), "one job has the chain");
    assert_ne!(both, job_of(&order, "/net"));
    let output = fails(
        &repository,
        &job(&order, "/db"),
        1,
        "/db was skipped: it runs after /net",
    );
    assert!(
        output.contains("/app was skipped: it runs after /db"),
        "{output}"
    );
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn workers_share_the_stacks_of_a_plan() {
    let repository = with_state(&STACKS);
    done(&repository, "plan -o saved");
    done(
        &repository,
        "export make saved -o jobs.mk --work-order order.json --workers 2",
    );
    log(&repository);
    let workers = [(); 2].map(|()| {
        let mut command = repository.command("work --work-order order.json");
        command.stdout(Stdio::null()).spawn().unwrap()
    });
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    let acts = super::acts(&repository);
    let mut sorted = acts.clone();
    sorted.sort();
    let all = ["app", "cache", "db", "web"].map(|stack| format!("apply create {stack}"));
    assert_eq!(sorted, all);
    let at = |stack: &str| acts.iter().position(|act| act.ends_with(stack));
    assert!(at("db") < at("app") && at("cache") < at("app"), "{acts:?}");
    assert_eq!(lock(&repository), Value::Null);
    done(&repository, "finish --work-order order.json");
}

#[test]
fn work_skips_what_runs_after_a_failure() {
    let repository = with_state(&STACKS);
    hook(&repository, "apply", "db", "exit 1\n");
    done(&repository, "plan -o saved");
    done(
        &repository,
        "export make saved -o jobs.mk --work-order order.json --workers 2 --on-error skip-dependents",
    );
    let not_done = "2 of 4 stacks not done:\nnote: /app: not run\nnote: /db: failed\n";
    fails(&repository, "work --work-order order.json", 1, not_done);
    assert_eq!(world(&repository, "app"), None);
    assert_eq!(world(&repository, "web").as_deref(), Some("1"));
    // A second worker finds nothing that may run.
    log(&repository);
    fails(&repository, "work --work-order order.json", 1, not_done);
    assert_eq!(log(&repository), [""; 0]);
    fails(
        &repository,
        "finish --work-order order.json",
        1,
        "2 of 4 stacks not done",
    );
    assert_eq!(lock(&repository), Value::Null);
}

#[test]
fn workers_share_the_stacks_of_a_recorded_command() {
    let repository = with_state(&STACKS);
    repository.write("/note", "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n");
    repository.commit();
    let export = "export make -o jobs.mk --work-order order.json --workers 2";
    done(&repository, &format!("{export} -- sh ../note"));
    fails(
        &repository,
        "work --work-order order.json",
        4,
        "does not record this command",
    );
    done(
        &repository,
        &format!("{export} --record=apply -- sh ../note"),
    );
    let workers = [(); 2].map(|()| {
        let mut command = repository.command("work --work-order order.json");
        command.stdout(Stdio::null()).spawn().unwrap()
    });
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    let order = log(&repository);
    let mut sorted = order.clone();
    sorted.sort();
    assert_eq!(sorted, ["app", "cache", "db", "web"], "{order:?}");
    assert!(
        order.iter().position(|it| it == "app") >= Some(2),
        "{order:?}"
    );
    done(&repository, "finish --work-order order.json");
    assert_eq!(lock(&repository), Value::Null);
}

#[test]
fn work_of_a_command_names_the_stacks_that_it_cannot_run() {
    let repository = with_state(&STACKS);
    repository.write("/note", "[ $ORCH_STACK_NAME != db ]\n");
    repository.commit();
    let export = "export make -o jobs.mk --work-order order.json --workers 2 --record=apply";
    let command = "--on-error skip-dependents -- sh ../note";
    done(&repository, &format!("{export} {command}"));
    for _ in 0..2 {
        let not_done = "2 of 4 stacks not done:\nnote: /app: not run\nnote: /db: failed\n";
        fails(&repository, "work --work-order order.json", 1, not_done);
    }
}

/// A job and a worker of one order would not know of each other.
#[test]
fn work_refuses_a_work_order_with_jobs() {
    let repository = with_state(&STACKS);
    exported(&repository);
    let why = "the work order has jobs";
    fails(&repository, "work --work-order order.json", 4, why);
    assert_eq!(super::acts(&repository), [""; 0]);
}

#[test]
fn finish_reports_the_stacks_that_the_plan_blocks() {
    let repository = super::applied(&[("/app", "after = [\"/db\"]"), ("/db", "")]);
    repository.git("rm -q -r app");
    super::want(&repository, "/db", "2");
    let order = exported(&repository);
    done(&repository, &job(&order, "/db"));
    let blocked = "1 stack is blocked and left unchanged: /app";
    fails(&repository, "finish --work-order order.json", 4, blocked);
}

/// It has no entry, and is run as on one machine.
#[test]
fn jobs_of_a_destroy_run_in_stacks_that_were_never_recorded() {
    let repository = with_state(&[("/app", "after = [\"/db\"]"), ("/db", "")]);
    repository.write("/note", "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n");
    repository.commit();
    done(&repository, "run --match /db --record=apply -- sh ../note");
    log(&repository);
    let export = "export make -o jobs.mk --work-order order.json";
    let command = "--record=destroy --reverse -- sh ../note";
    done(&repository, &format!("{export} {command}"));
    let order = order_of(&repository);
    for _ in 0..2 {
        for stack in ["/app", "/db"] {
            done(&repository, &job(&order, stack));
        }
    }
    assert_eq!(log(&repository), ["app", "db"]);
    done(&repository, "finish --work-order order.json");
}

/// What could not be destroyed may still need its dependencies.
#[test]
fn jobs_and_workers_keep_what_a_failed_destroy_needs_with_on_error_continue() {
    for workers in ["", "--workers 2"] {
        let after = "after = [\"/db\"]";
        let repository = with_state(&[("/app", after), ("/web", after), ("/db", "")]);
        let text = "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n[ ! -e $ORCH_ROOT/../no-$ORCH_STACK_NAME ]\n";
        repository.write("/note", text);
        repository.commit();
        done(&repository, "run --record=apply -- sh ../note");
        log(&repository);
        std::fs::write(repository.outside().join("no-app"), "").unwrap();
        let export = format!("export make {workers} -o jobs.mk --work-order order.json");
        let command = "--on-error continue --record=destroy --reverse -- sh ../note";
        done(&repository, &format!("{export} {command}"));
        let order = order_of(&repository);
        if workers.is_empty() {
            fails(&repository, &job(&order, "/app"), 1, "");
            done(&repository, &job(&order, "/web"));
            fails(&repository, &job(&order, "/db"), 1, "it runs after /app");
        } else {
            fails(
                &repository,
                "work --work-order order.json",
                1,
                "/db: not run",
            );
        }
        let mut ran = log(&repository);
        ran.sort();
        assert_eq!(ran, ["app", "web"], "{workers}");
    }
}

/// The command succeeded, although it may have done only a part of the work.
#[test]
fn job_with_a_targeted_command_is_done() {
    let repository = super::tool::project(&[("/db", ""), ("/web", "after = [\"/db\"]")]);
    let export = "export make -o jobs.mk --work-order order.json";
    let command = "-- terraform apply -auto-approve -target=x";
    done(&repository, &format!("{export} {command}"));
    let order = order_of(&repository);
    for stack in ["/db", "/web"] {
        done(&repository, &job(&order, stack));
    }
    log(&repository);
    done(&repository, &job(&order, "/db"));
    assert_eq!(log(&repository), [""; 0]);
    done(&repository, "finish --work-order order.json");
}

/// A failed stack of a command is not run again after `orch finish` either, as with a plan.
#[test]
fn worker_that_starts_after_finish_repeats_no_failed_stack() {
    let repository = with_state(&STACKS);
    let text = "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n[ $ORCH_STACK_NAME != db ]\n";
    repository.write("/note", text);
    repository.commit();
    let export = "export make -o jobs.mk --work-order order.json --workers 2 --record=apply";
    let command = "--on-error skip-dependents -- sh ../note";
    done(&repository, &format!("{export} {command}"));
    let not_done = "2 of 4 stacks not done:\nnote: /app: not run\nnote: /db: failed\n";
    fails(&repository, "work --work-order order.json", 1, not_done);
    fails(&repository, "finish --work-order order.json", 1, not_done);
    log(&repository);
    fails(&repository, "work --work-order order.json", 1, not_done);
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn finish_waits_for_a_running_job_and_needs_its_secret() {
    for record in ["--record=apply", "--no-record"] {
        let repository = with_state(&[("/db", ""), ("/web", "")]);
        let waits = "exec > /dev/null 2>&1\n[ $ORCH_STACK_NAME = db ] || exit 0\ntouch $ORCH_ROOT/../begun\nwhile [ -d $ORCH_ROOT ] && [ ! -e $ORCH_ROOT/../go ]; do sleep 0.01; done\n";
        repository.write("/note", waits);
        repository.commit();
        let export = "export make --jobs 9 -o jobs.mk --work-order order.json";
        done(&repository, &format!("{export} {record} -- sh ../note"));
        let order = order_of(&repository);
        let with_secret = |arguments: &str| {
            let mut command = repository.command(arguments);
            command
                .env("ORCH_ORDER_SECRET", "known")
                .stdin(Stdio::null());
            command.stderr(Stdio::piped());
            command
        };
        let mut first = with_secret(&job(&order, "/db")).spawn().unwrap();
        let begun = repository.outside().join("begun");
        wait_until("the command runs", || begun.exists());
        let finish = "finish --work-order order.json";
        let output = with_secret(finish).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        if record == "--record=apply" {
            let secret = "give all jobs and `orch finish` the same `ORCH_ORDER_SECRET`";
            for command in [finish, &job(&order, "/web")] {
                fails(&repository, command, 4, secret);
            }
            // Its lock has the code of the order.
            let again = with_secret(&job(&order, "/db")).output().unwrap();
            let said = String::from_utf8_lossy(&again.stderr).into_owned();
            let code = lock(&repository)["code"].as_str().unwrap().to_owned();
            let unlock = format!("run `orch state unlock {code}`");
            assert!(said.contains(&unlock), "{said}");
        }
        let mut last = with_secret(&format!("{finish} --lock-timeout 10m"))
            .spawn()
            .unwrap();
        let mut said = BufReader::new(last.stderr.take().unwrap()).lines();
        let mut waits = said.by_ref().map(Result::unwrap);
        assert!(waits.any(|line| line.contains("waiting for the jobs of the work order to end")));
        std::fs::write(repository.outside().join("go"), "").unwrap();
        assert!(first.wait().unwrap().success());
        let rest: Vec<String> = waits.collect();
        assert_eq!(last.wait().unwrap().code(), Some(1), "{rest:?}");
        assert!(
            rest.iter().any(|line| line.contains("/web: not run")),
            "{rest:?}"
        );
        assert!(rest.iter().all(|line| !line.contains("/db")), "{rest:?}");
    }
}

#[test]
fn work_names_the_stack_of_a_worker_that_was_killed() {
    let repository = with_state(&[("/db", ""), ("/web", "")]);
    hook(&repository, "apply", "db", "kill -KILL $PPID\nexit 1\n");
    done(&repository, "plan -o saved");
    let export = "export make saved -o jobs.mk --work-order order.json --workers 2";
    done(&repository, export);
    let work = "work --work-order order.json";
    let killed = repository.command(work).output().unwrap();
    assert_eq!(killed.status.code(), None);
    age_records(&repository);
    let output = repository.orch(work);
    assert_eq!(output.code(), 1, "{output}");
    assert!(output.stderr.contains("/db: failed"), "{output}");
    assert!(!output.stderr.contains("/web: failed"), "{output}");
}

/// What a killed worker has done is unknown, so nothing runs after it.
#[test]
fn work_of_a_command_runs_nothing_after_a_killed_stack_with_on_error_continue() {
    let repository = with_state(&STACKS);
    repository.write("/note", "[ $ORCH_STACK_NAME != db ] || kill -KILL $PPID\n");
    repository.commit();
    let export = "export make -o jobs.mk --work-order order.json --workers 2";
    let command = "--record=apply --on-error continue -- sh ../note";
    done(&repository, &format!("{export} {command}"));
    let work = "work --work-order order.json";
    let killed = repository.command(work).output().unwrap();
    assert_eq!(killed.status.code(), None);
    age_records(&repository);
    let not_done = "2 of 4 stacks not done:\nnote: /app: not run\nnote: /db: failed\n";
    fails(&repository, work, 1, not_done);
}

/// Makes the last heartbeat of all runs some time ago.
pub(super) fn age_records(repository: &Repository) {
    for file in std::fs::read_dir(repository.path("/.orch/state")).unwrap() {
        let path = file.unwrap().path();
        if path.to_string_lossy().contains(".run-") {
            let record = std::fs::File::options().write(true).open(path).unwrap();
            let then = SystemTime::now() - Duration::from_mins(10);
            record.set_modified(then).unwrap();
        }
    }
}

#[test]
fn job_of_a_plan_is_refused_without_a_state() {
    let repository = super::project(&STACKS);
    let order = exported(&repository);
    let why = "the jobs of a plan share a state, and this project keeps none";
    fails(&repository, &job(&order, "/db"), 4, why);
    fails(&repository, "finish --work-order order.json", 4, why);
    assert_eq!(log(&repository), [""; 0]);
}

#[test]
fn job_that_was_killed_runs_again_once_its_lock_has_expired() {
    let repository = with_state(&STACKS);
    let waits = "touch $world/begun\nwhile [ -e $world/begun ]; do sleep 0.05; done\n";
    hook(&repository, "apply", "db", waits);
    let order = exported(&repository);
    let run = job(&order, "/db");
    let mut command = repository.command(&run);
    let mut killed = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = repository.outside().join("world/begun");
    wait_until("the apply has begun", || begun.exists());
    killed.kill().unwrap();
    killed.wait().unwrap();
    std::fs::remove_file(begun).unwrap();
    hook(&repository, "apply", "db", "");
    fails(&repository, &run, 4, "the state is locked");
    fails(&repository, &job(&order, "/app"), 1, "it runs after /cache");
    fails(
        &repository,
        "finish --work-order order.json",
        4,
        "may still be running",
    );
    age_records(&repository);
    let output = done(&repository, &run);
    assert!(
        output.contains("its unfinished stacks count as interrupted"),
        "{output}"
    );
    for stack in ["/cache", "/app", "/web"] {
        done(&repository, &job(&order, stack));
    }
    assert_eq!(lock(&repository), Value::Null);
    done(&repository, "finish --work-order order.json");
}

#[test]
fn jobs_take_over_the_lock_of_a_run_that_was_killed_on_their_machine() {
    let repository = with_state(&STACKS);
    let note = "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n[ ! -e $ORCH_ROOT/../world/dies ] || kill -KILL $PPID\n";
    repository.write("/note", note);
    repository.commit();
    let order = exported_command(&repository);
    let dies = repository.outside().join("world/dies");
    let dies_in = |command: &str| {
        std::fs::write(&dies, "").unwrap();
        let killed = repository.command(command).output().unwrap();
        assert_eq!(killed.status.code(), None);
        std::fs::remove_file(&dies).unwrap();
    };
    let run = "run -q -X --match db --record=apply -- sh ../note";
    dies_in(run);
    let start = |stack: &str| {
        let mut command = repository.command(&job(&order, stack));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut took_over = 0;
    for job in ["/cache", "/db", "/web"].map(start) {
        let output = job.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        took_over += said.matches("was killed while it held").count();
    }
    assert_eq!(took_over, 1);
    let mut ran = log(&repository);
    ran.sort();
    assert_eq!(ran, ["cache", "db", "db", "web"]);
    // That a job was killed does not end its order.
    let last = job(&order, "/app");
    dies_in(&last);
    fails(&repository, run, 4, "the state is locked");
    age_records(&repository);
    done(&repository, &last);
    assert_eq!(lock(&repository), Value::Null);
    done(&repository, run);
}

#[test]
fn job_waits_for_the_commands_of_a_killed_run_that_holds_the_lock() {
    let repository = with_state(&STACKS);
    let waits = "exec > /dev/null 2>&1\ntouch $ORCH_ROOT/../begun-$ORCH_STACK_NAME\nwhile [ -d $ORCH_ROOT ] && [ -e $ORCH_ROOT/../holds-$ORCH_STACK_NAME ]; do sleep 0.01; done\n";
    repository.write("/note", waits);
    repository.commit();
    let order = exported_command(&repository);
    let place = |name: &str| repository.outside().join(name);
    std::fs::write(place("holds-db"), "").unwrap();
    let mut command = repository.command("run -q -X --match db --record=apply -- sh ../note");
    command.process_group(0).stdin(Stdio::null());
    let killed = Background::spawn(&repository, command);
    wait_until("its command runs", || place("begun-db").exists());
    killed.kill();
    let web = job(&order, "/web");
    let refused = fails(&repository, &web, 4, "the state is locked");
    assert!(refused.contains("still running"), "{refused}");
    let waiting = repository.command(&format!("{web} --lock-timeout 10m"));
    let waiting = Background::spawn(&repository, waiting);
    waiting.wait_until_said("waiting");
    std::fs::remove_file(place("holds-db")).unwrap();
    assert_eq!(waiting.end().code(), 0);
}

#[test]
fn job_of_a_command_that_fails_is_run_again_and_not_resumed() {
    let repository = with_state(&STACKS);
    repository.write("/note", "[ -e $ORCH_ROOT/../world/fixed ]\n");
    repository.commit();
    let export = "export make -o jobs.mk --work-order order.json --record=apply -- sh ../note";
    done(&repository, export);
    let order = order_of(&repository);
    let output = fails(&repository, &job(&order, "/db"), 1, "/db: failed");
    assert!(!output.contains("--resume"), "{output}");
    // Nothing starts after a failure.
    fails(
        &repository,
        &job(&order, "/web"),
        1,
        "/web was skipped: /db has failed",
    );
    fails(
        &repository,
        "finish --work-order order.json",
        1,
        "4 of 4 stacks not done",
    );
    std::fs::write(repository.outside().join("world/fixed"), "").unwrap();
    for stack in ["/db", "/cache", "/app", "/web"] {
        done(&repository, &job(&order, stack));
    }
    done(&repository, "finish --work-order order.json");
}

/// Two jobs at the same time: neither is new when it is run again.
#[test]
fn jobs_that_failed_together_are_run_again_with_on_error_stop() {
    let meets = "cd $ORCH_ROOT/../world\ntouch here-$ORCH_STACK_NAME\nuntil [ -e here-db ] && [ -e here-web ]; do sleep 0.05; done\n[ -e fixed ] || exit 1\ncd - > /dev/null\n";
    for task in ["saved", "--record=apply -- sh ../note"] {
        let repository = with_state(&STACKS);
        repository.write("/note", meets);
        for stack in ["db", "web"] {
            hook(&repository, "apply", stack, meets);
        }
        repository.commit();
        done(&repository, "plan -o saved");
        let export = "export make -o jobs.mk --work-order order.json --jobs 9 --on-error stop";
        done(&repository, &format!("{export} {task}"));
        let order = order_of(&repository);
        let failed = ["/db", "/web"].map(|stack| {
            let mut command = repository.command(&job(&order, stack));
            let command = command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        });
        for mut job in failed {
            assert!(!job.wait().unwrap().success(), "{task}");
        }
        std::fs::write(repository.outside().join("world/fixed"), "").unwrap();
        let new = job(&order, "/cache");
        let why = "/cache was skipped: /db has failed, and nothing new starts until it succeeds";
        fails(&repository, &new, 1, why);
        for stack in ["/db", "/web", "/cache", "/app"] {
            done(&repository, &job(&order, stack));
        }
        let output = done(&repository, "finish --work-order order.json");
        assert!(output.contains("4 stacks done"), "{task}: {output}");
    }
}

/// Their results show that they were applied, although the state no longer has them.
#[test]
fn job_that_runs_again_recreates_no_stack_that_was_destroyed_since() {
    for task in ["saved", "--record=apply -- sh ../note"] {
        let repository = with_state(&STACKS);
        repository.write("/note", "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n");
        repository.commit();
        done(&repository, "plan -o saved");
        let export = "export make -o jobs.mk --work-order order.json --jobs 9";
        done(&repository, &format!("{export} {task}"));
        let order = order_of(&repository);
        for stack in ["/db", "/web", "/cache"] {
            done(&repository, &job(&order, stack));
        }
        fails(
            &repository,
            "finish --work-order order.json",
            1,
            "/app: not run",
        );
        let destroy = "destroy --auto-approve --allow-destroy 1 --match";
        done(&repository, &format!("{destroy} web"));
        log(&repository);
        let output = done(&repository, &job(&order, "/web"));
        let nothing = "nothing to do: all stacks of the job are done";
        assert!(output.contains(nothing), "{output}");
        assert_eq!(log(&repository), [""; 0]);
        if task == "saved" {
            // A stack that runs before another one is missing.
            done(&repository, &format!("{destroy} db"));
            fails(&repository, &job(&order, "/app"), 4, "/db");
            assert_eq!(world(&repository, "app"), None);
        }
    }
}

/// The state does not tell whether it did what the order would have done.
#[test]
fn job_of_a_command_that_failed_runs_again_whatever_other_runs_have_applied() {
    let repository = with_state(&STACKS);
    repository.write(
        "/note",
        "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n[ -e $ORCH_ROOT/../world/fixed ]\n",
    );
    repository.commit();
    done(
        &repository,
        "export make -o jobs.mk --work-order order.json --on-error skip-dependents --record=apply -- sh ../note",
    );
    let order = order_of(&repository);
    fails(&repository, &job(&order, "/db"), 1, "");
    fails(
        &repository,
        "finish --work-order order.json",
        1,
        "/db: failed",
    );
    done(&repository, "run --match db --record=apply -- true");
    fails(
        &repository,
        "finish --work-order order.json",
        1,
        "/db: failed",
    );
    fails(&repository, &job(&order, "/app"), 1, "");
    std::fs::write(repository.outside().join("world/fixed"), "").unwrap();
    log(&repository);
    for stack in ["/db", "/cache", "/app", "/web"] {
        done(&repository, &job(&order, stack));
    }
    assert_eq!(log(&repository), ["db", "cache", "app", "web"]);
    done(&repository, "finish --work-order order.json");
}

#[test]
fn export_notes_that_policies_follow_the_jobs() {
    let repository = with_state(&STACKS);
    attach(
        &repository,
        "never",
        "package never\ntrigger[stack.id] {\n    stack := input.stack\n    input.run.state == \"NEVER\"\n}\n",
    );
    let run = "orch {\n  config {\n    policies {\n      run = \"tracked\"\n    }\n  }\n}\n";
    repository.write("/run.orch.hcl", run);
    repository.commit();
    let after = "`orch finish` runs the follow-ups of policies";
    for (plan, command, expected) in [
        ("plan -o saved", "saved", true),
        ("plan --policies=off -o saved", "saved", false),
        ("list", "-- terraform apply", true),
        ("list", "-- terraform plan", false),
    ] {
        done(&repository, plan);
        let export = format!("export make -o jobs.mk --work-order order.json {command}");
        let output = done(&repository, &export);
        assert_eq!(output.contains(after), expected, "{command}: {output}");
    }
}

/// What a policy asks for would be destroyed too.
#[test]
fn export_refuses_policies_beside_a_command_that_destroys() {
    let repository = with_state(&STACKS);
    attach(&repository, "never", "package never\n");
    let run = "orch {\n  config {\n    policies {\n      run = \"tracked\"\n    }\n  }\n}\n";
    repository.write("/run.orch.hcl", run);
    let destroys = "orch {\n  config {\n    run {\n      env {\n        TF_CLI_ARGS_apply = \"-destroy\"\n      }\n    }\n  }\n}\n";
    repository.write("/db/run.orch.hcl", destroys);
    repository.commit();
    let why = "policies cannot be combined with a command that destroys";
    let export = "export make -o jobs.mk --work-order order.json";
    let of_run = "add `--policies=off`";
    let off = "set `run = \"off\"` in `config { policies {} }`";
    let destroy = "use `--record=destroy`";
    for (command, flags, hint) in [
        (export, "-- terraform apply", off),
        ("run -X", "-- terraform apply", of_run),
        (export, "--record=apply -- terraform destroy", destroy),
        ("run -X", "--record=apply -- terraform destroy", destroy),
    ] {
        let refused = fails(&repository, &format!("{command} {flags}"), 64, why);
        assert!(refused.contains(hint), "{refused}");
    }
    assert!(!repository.path("/order.json").exists());
    let output = done(
        &repository,
        &format!("{export} --record=destroy --reverse -- terraform destroy"),
    );
    assert!(!output.contains("follow-ups"), "{output}");
}

/// A job would see the other stacks only in the state.
#[test]
fn export_refuses_a_recorded_destroy_before_dependents() {
    let repository = with_state(&STACKS);
    let why = "the run destroys stacks before others that run after them";
    let export = "export make -o jobs.mk --work-order order.json --record=destroy";
    fails(&repository, &format!("{export} -- true"), 4, why);
    let of_two = format!("{export} --match db --match web --reverse -- true");
    done(&repository, &of_two);
    done(&repository, "run -q --record=apply -- true");
    let refused = fails(&repository, &of_two, 4, "keeps others that run after them");
    assert!(refused.contains("/app runs after /db"), "{refused}");
    done(&repository, &format!("{export} --reverse -- true"));
}

/// As for one run: otherwise only the job of that stack would be refused, after others.
#[test]
fn first_job_of_a_command_is_refused_if_a_later_one_would_roll_back() {
    let repository = with_state(&STACKS);
    repository.write("/note", "echo $ORCH_STACK_NAME >> $ORCH_ROOT/../log\n");
    repository.commit();
    want(&repository, "/web", "2");
    done(&repository, "run -q --match web --record=apply -- true");
    repository.git("checkout -q HEAD~1");
    let export = "export make -o jobs.mk --work-order order.json --jobs 9 --record=apply";
    done(&repository, &format!("{export} -- sh ../note"));
    let order = order_of(&repository);
    let why = "would roll back stack `/web`";
    for stack in ["/db", "/web"] {
        fails(&repository, &job(&order, stack), 4, why);
    }
    assert_eq!(log(&repository), [""; 0]);
    let of_others = "--exclude web -- sh ../note";
    done(&repository, &format!("{export} {of_others}"));
    done(&repository, &job(&order_of(&repository), "/db"));
    assert_eq!(log(&repository), ["db"]);
}
