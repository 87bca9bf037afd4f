//! Jobs of a work order in one checkout: which of them run beside each other, and what they exclude.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use orch::export::WorkOrder;

use super::job_results::{self, STATE};
use super::jobs::age_records;
use super::{done, fails, hook, log, with_state};
use crate::support::{Background, Repository, Sandbox, ended, wait_until};

/// Writes a line into the log, and waits for the file `go-<stack>` if there is a file `waits-<stack>`.
const SCRIPT: &str = "#!/bin/sh\nexec > /dev/null 2>&1\necho $ORCH_STACK_NAME >> \"$ORCH_ROOT/../log\"\n[ -e \"$ORCH_ROOT/../waits-$ORCH_STACK_NAME\" ] || exit 0\nwhile [ -d \"$ORCH_ROOT\" ] && [ ! -e \"$ORCH_ROOT/../go-$ORCH_STACK_NAME\" ]; do sleep 0.01; done\n";

/// A project of three stacks without a state.
fn project() -> Repository {
    let sandbox = Sandbox::layout("a\nb\nc");
    sandbox.write_program("/script.sh", SCRIPT);
    let repository = Repository::of(sandbox);
    export(&repository, "order.json");
    repository
}

/// Writes a work order with a job for each stack.
fn export(repository: &Repository, file: &str) {
    let export = format!("export make -o {file}.mk --work-order {file} --jobs 9");
    done(repository, &format!("{export} -- ../script.sh"));
}

/// The command for the job of a stack.
fn job(repository: &Repository, file: &str, stack: &str) -> String {
    let order = fs::read(repository.path(&format!("/{file}"))).unwrap();
    let order = WorkOrder::parse(&order).unwrap();
    let has = |turns: &[usize]| {
        let mut turns = turns.iter();
        turns.any(|&turn| order.turns[turn].stack.as_str() == stack)
    };
    let job = order.jobs.iter().find(|job| has(&job.turns)).unwrap();
    format!("job {} --work-order {file}", job.id)
}

fn set(repository: &Repository, flag: &str) {
    fs::write(repository.outside().join(flag), "").unwrap();
}

/// Starts a command, and waits until that of a stack runs.
fn begin<'s>(repository: &'s Repository, arguments: &str, stack: &str) -> Background<'s> {
    set(repository, &format!("waits-{stack}"));
    let mut command = repository.command(arguments);
    command.process_group(0).stdin(Stdio::null());
    let run = Background::spawn(repository, command);
    wait_until("its command runs", || has_run(repository, stack));
    run
}

fn has_run(repository: &Repository, stack: &str) -> bool {
    let log = fs::read_to_string(repository.outside().join("log"));
    log.is_ok_and(|log| log.lines().any(|line| line == stack))
}

const AGAIN: &str = "wait until it has ended, then run the job again";

#[test]
fn job_is_refused_while_another_run_of_it_is_in_progress() {
    let repository = project();
    let run = job(&repository, "order.json", "/a");
    let first = begin(&repository, &run, "a");
    let refused = fails(
        &repository,
        &run,
        4,
        "a job of this work order is already running /a: ",
    );
    assert!(refused.contains(AGAIN), "{refused}");
    // Jobs of other stacks run beside it.
    done(&repository, &job(&repository, "order.json", "/c"));
    set(&repository, "go-a");
    assert_eq!(first.end().code(), 0);
    let again = done(&repository, &run);
    assert!(again.contains("nothing to do"), "{again}");
    done(&repository, &job(&repository, "order.json", "/b"));
    assert_eq!(log(&repository), ["a", "c", "b"]);
}

#[test]
fn job_and_other_runs_exclude_each_other() {
    let repository = project();
    export(&repository, "other.json");
    let run = job(&repository, "order.json", "/a");
    let first = begin(&repository, &run, "a");
    // Also while another job was the last to begin.
    done(&repository, &job(&repository, "order.json", "/c"));
    let other = job(&repository, "other.json", "/c");
    for command in ["run -X true", &other] {
        let refused = fails(
            &repository,
            command,
            4,
            "a job of a work order is in progress",
        );
        assert!(refused.contains("wait until it has ended"), "{refused}");
    }
    done(&repository, "run -q -X --allow-concurrent true");
    set(&repository, "go-a");
    assert_eq!(first.end().code(), 0);

    log(&repository);
    let ordinary = begin(&repository, "run -X --match c ../script.sh", "c");
    let why = "another run is in progress in this project";
    let refused = fails(&repository, &job(&repository, "order.json", "/b"), 4, why);
    assert!(!refused.contains("--allow-concurrent"), "{refused}");
    set(&repository, "go-c");
    assert_eq!(ordinary.end().code(), 0);
    done(&repository, &job(&repository, "order.json", "/b"));
    done(&repository, &other);
}

#[test]
fn job_is_refused_while_a_command_of_its_killed_run_lives() {
    let repository = project();
    export(&repository, "other.json");
    let run = job(&repository, "order.json", "/a");
    begin(&repository, &run, "a").kill();
    let said = "orch was killed during a job of a work order, run";
    let refused = fails(&repository, &run, 4, said);
    for part in [
        "but its command in /a, or a process that it started, is still running",
        AGAIN,
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    done(&repository, &job(&repository, "order.json", "/c"));
    let other = job(&repository, "other.json", "/c");
    for command in ["run -X true", &other] {
        fails(&repository, command, 4, said);
    }
    // The job is not forgotten, however many runs come after it.
    for _ in 0..60 {
        done(&repository, "run -q -X --allow-concurrent true");
    }
    fails(&repository, &run, 4, said);
    set(&repository, "go-a");
    wait_until("the command has ended", || {
        repository.orch("run -q -X true").code() == 0
    });
    done(&repository, &run);
    assert_eq!(log(&repository), ["a", "c", "a"]);
}

#[test]
fn job_waits_for_an_earlier_run_of_it_and_its_commands() {
    for is_killed in [true, false] {
        let repository = project();
        let run = job(&repository, "order.json", "/a");
        let first = begin(&repository, &run, "a");
        let first = if is_killed {
            first.kill();
            None
        } else {
            Some(first)
        };
        let timeout = |timeout: &str| format!("{run} --lock-timeout {timeout}");
        let refused = fails(&repository, &timeout("1s"), 4, AGAIN);
        assert!(refused.contains("waiting for run "), "{refused}");
        let mut again = repository.command(&timeout("10m"));
        again.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut again = again.spawn().unwrap();
        let mut said = BufReader::new(again.stderr.take().unwrap()).lines();
        let mut said = said.by_ref().map(Result::unwrap);
        assert!(said.any(|line| line.contains("waiting for run ")));
        // Jobs of other stacks need not wait.
        let other = job(&repository, "order.json", "/c");
        let other = done(&repository, &format!("{other} --lock-timeout 10m"));
        assert!(!other.contains("waiting"), "{other}");
        set(&repository, "go-a");
        let rest: Vec<String> = said.collect();
        assert!(ended(&mut again).success(), "{rest:?}");
        let ran: &[&str] = match first {
            None => &["a", "c", "a"],
            Some(first) => {
                assert_eq!(first.end().code(), 0);
                let done = |line: &String| line.contains("nothing to do");
                assert!(rest.iter().any(done), "{rest:?}");
                &["a", "c"]
            }
        };
        assert_eq!(log(&repository), ran);
    }
}

#[test]
fn job_waits_for_the_commands_of_an_ordinary_run_that_was_killed() {
    let repository = project();
    begin(&repository, "run --match a ../script.sh", "a").kill();
    let run = job(&repository, "order.json", "/b");
    fails(
        &repository,
        &run,
        4,
        "but its command in /a, or a process that it started",
    );
    let mut waiting = repository.command(&format!("{run} --lock-timeout 10m"));
    waiting.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut waiting = waiting.spawn().unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let mut said = said.by_ref().map(Result::unwrap);
    assert!(said.any(|line| line.contains("waiting for run ")));
    set(&repository, "go-a");
    let rest: Vec<String> = said.collect();
    assert!(ended(&mut waiting).success(), "{rest:?}");
    assert_eq!(log(&repository), ["a", "b"]);
}

#[test]
fn job_of_a_state_is_refused_or_waits_while_a_command_of_its_killed_run_lives() {
    let repository = with_state(&[("/db", ""), ("/web", "")]);
    let waits = "exec > /dev/null 2>&1\ntouch $world/begun\nwhile [ -e $world/begun ]; do sleep 0.01; done\n";
    hook(&repository, "apply", "db", waits);
    done(&repository, "plan -o saved");
    done(
        &repository,
        "export make saved -o jobs.mk --work-order order.json --jobs 9",
    );
    let run = job(&repository, "order.json", "/db");
    let mut command = repository.command(&run);
    command.process_group(0).stdin(Stdio::null());
    let killed = Background::spawn(&repository, command);
    let begun = repository.outside().join("world/begun");
    wait_until("the apply has begun", || begun.exists());
    killed.kill();
    fails(&repository, &run, 4, "the state is locked");
    age_records(&repository);
    log(&repository);
    for _ in 0..2 {
        let refused = fails(&repository, &run, 4, "its command in /db");
        assert!(refused.contains(AGAIN), "{refused}");
    }
    assert_eq!(super::acts(&repository), [""; 0]);
    done(&repository, &job(&repository, "order.json", "/web"));
    let mut waiting = repository.command(&format!("{run} --lock-timeout 10m"));
    waiting.stdin(Stdio::null());
    let waiting = Background::spawn(&repository, waiting);
    waiting.wait_until_said("waiting for run ");
    hook(&repository, "apply", "db", "");
    fs::remove_file(begun).unwrap();
    assert_eq!(waiting.end().code(), 0);
    done(&repository, "finish --work-order order.json");
}

#[test]
fn finish_of_a_state_is_refused_or_waits_while_a_command_of_a_killed_job_lives() {
    for exported in ["saved", "--record=apply -- sh ../note"] {
        let repository = with_state(&[("/db", ""), ("/web", "")]);
        let waits = "exec > /dev/null 2>&1\n[ $ORCH_STACK_NAME = db ] || exit 0\ntouch $ORCH_ROOT/../begun\nwhile [ -e $ORCH_ROOT/../begun ]; do sleep 0.01; done\n";
        hook(&repository, "apply", "db", waits);
        repository.write("/note", waits);
        repository.commit();
        done(&repository, "plan -o saved");
        let export = "export make -o jobs.mk --work-order order.json --jobs 9";
        done(&repository, &format!("{export} {exported}"));
        done(&repository, &job(&repository, "order.json", "/web"));
        let mut command = repository.command(&job(&repository, "order.json", "/db"));
        command.process_group(0).stdin(Stdio::null());
        let killed = Background::spawn(&repository, command);
        let begun = repository.outside().join("begun");
        wait_until("its command runs", || begun.exists());
        killed.kill();
        age_records(&repository);
        let finish = "finish --work-order order.json";
        let refused = fails(&repository, finish, 4, "orch was killed during run");
        let hint = "wait until it has ended, then run `orch finish` again";
        assert!(refused.contains(hint), "{refused}");
        let mut waiting = repository.command(&format!("{finish} --lock-timeout 10m"));
        waiting.stdin(Stdio::null());
        let waiting = Background::spawn(&repository, waiting);
        waiting.wait_until_said("waiting for the jobs of the work order to end");
        fs::remove_file(begun).unwrap();
        let ended = waiting.end();
        assert_eq!(ended.code(), 1, "{ended}");
        assert!(ended.stderr.contains("/db: failed"), "{ended}");
    }
}

/// The second one found the stack undone before the first one ended.
#[cfg(target_os = "linux")]
#[test]
fn job_that_began_while_another_run_of_it_ended_runs_nothing_again() {
    let repository = project();
    let run = job(&repository, "order.json", "/a");
    let first = begin(&repository, &run, "a");
    let gate = File::open(repository.path("/.orch/lock.begin")).unwrap();
    gate.lock().unwrap();
    let mut command = repository.command(&run);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let second = command.spawn().unwrap();
    wait_until("the second one waits", || {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let waiting = locks.lines().filter(|line| line.contains("->"));
        let process = format!(" {} ", second.id());
        waiting.into_iter().any(|line| line.contains(&process))
    });
    set(&repository, "go-a");
    assert_eq!(first.end().code(), 0);
    drop(gate);
    let second = second.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(4), "{said}");
    assert!(
        said.contains("another run of the job has run /a meanwhile"),
        "{said}"
    );
    assert!(said.contains("run the job again"), "{said}");
    assert_eq!(log(&repository), ["a"]);
    let again = done(&repository, &run);
    assert!(again.contains("nothing to do"), "{again}");
}

#[test]
fn jobs_that_make_starts_twice_run_each_stack_once_at_a_time() {
    let repository = project();
    let locked = "#!/bin/sh\nmkdir \"$ORCH_ROOT/../busy-$ORCH_STACK_NAME\" || exit 9\necho $ORCH_STACK_NAME >> \"$ORCH_ROOT/../log\"\nrmdir \"$ORCH_ROOT/../busy-$ORCH_STACK_NAME\"\n";
    repository.write_program("/script.sh", locked);
    repository.commit();
    export(&repository, "order.json");
    let stacks = ["/a", "/c", "/b"];
    let makes = [(); 4].map(|()| {
        let line = stacks.map(|stack| job(&repository, "order.json", stack));
        let orch = repository.command("");
        let line = line.map(|job| format!("\"$0\" {job}")).join("; ");
        let mut shell = std::process::Command::new("sh");
        repository.isolate(&mut shell);
        shell.args(["-c", &line]).arg(orch.get_program());
        shell.current_dir(repository.path("/")).stdin(Stdio::null());
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        shell.spawn().unwrap()
    });
    for mut make in makes {
        make.wait().unwrap();
    }
    for stack in stacks {
        done(&repository, &job(&repository, "order.json", stack));
    }
    let mut ran = log(&repository);
    ran.sort();
    assert_eq!(ran, ["a", "b", "c"]);
}

#[test]
fn finish_is_refused_while_a_job_runs_that_no_state_knows() {
    let repository = project();
    done(&repository, &job(&repository, "order.json", "/c"));
    let run = job(&repository, "order.json", "/a");
    let first = begin(&repository, &run, "a");
    let finish = "finish --work-order order.json";
    fails(
        &repository,
        finish,
        4,
        "a job of the work order, is still in progress",
    );
    let shown = done(&repository, "runs show");
    assert!(shown.contains(" has not finished: 1 succeeded"), "{shown}");
    assert!(
        shown.contains("/a: its command is running, or orch was killed while it ran"),
        "{shown}"
    );
    first.kill();
    let refused = fails(&repository, finish, 4, "orch was killed during run");
    assert!(
        refused.contains("wait until it has ended, then run `orch finish` again"),
        "{refused}"
    );
    set(&repository, "go-a");
    wait_until("the command has ended", || {
        repository.orch(finish).code() == 1
    });
    done(&repository, &run);
    done(&repository, &job(&repository, "order.json", "/b"));
    done(&repository, finish);
}

#[test]
fn finish_names_the_way_out_if_a_job_may_be_running() {
    let repository = project();
    begin(&repository, &job(&repository, "order.json", "/a"), "a").kill();
    set(&repository, "go-a");
    let runs = fs::read_dir(repository.path("/.orch/runs")).unwrap();
    let folder = runs.map(|run| run.unwrap().path()).next().unwrap();
    let journal = folder.join("journal.jsonl");
    fs::remove_file(&journal).unwrap();
    std::os::unix::fs::symlink("elsewhere", &journal).unwrap();
    let finish = "finish --work-order order.json";
    let refused = fails(&repository, finish, 4, "may still be in progress");
    let folder = folder.strip_prefix(repository.path("/")).unwrap();
    let remove = format!("remove `{}` if that run has ended", folder.display());
    assert!(refused.contains(&remove), "{refused}");
    fs::remove_dir_all(repository.path("/").join(folder)).unwrap();
    assert_eq!(repository.orch(finish).code(), 1);
}

/// Two pipelines of one work order, or a job that the engine believes dead: the state does not record its command.
#[test]
fn job_that_no_state_records_runs_on_one_machine_at_a_time() {
    let sandbox = Sandbox::layout("a\nb");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write_program("/script.sh", SCRIPT);
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    export(&repository, "../order.json");
    repository.git_in(repository.outside(), "clone -q project elsewhere");
    let run = job(&repository, "../order.json", "/a");
    let elsewhere = format!("-C ../elsewhere {run}");
    let first = begin(&repository, &run, "a");
    let refused = "another run of the job may still be in progress on ";
    fails(&repository, &elsewhere, 4, refused);
    let said = repository.outside().join("said");
    let mut waiting = repository
        .command(&format!("{elsewhere} --lock-timeout 1m"))
        .stderr(File::create(&said).unwrap())
        .spawn()
        .unwrap();
    let has_said = |text: &str| fs::read_to_string(&said).unwrap().contains(text);
    wait_until("it waits", || has_said("waiting for another run"));
    set(&repository, "go-a");
    assert_eq!(first.end().code(), 0);
    assert!(ended(&mut waiting).success());
    assert!(has_said("all stacks of the job are done"));
    assert_eq!(log(&repository), ["a"]);
    // A killed one counts as running until it has renewed its lease for too long.
    let run = job(&repository, "../order.json", "/b");
    let elsewhere = format!("-C ../elsewhere {run}");
    begin(&repository, &run, "b").kill();
    set(&repository, "go-b");
    fails(&repository, &elsewhere, 4, refused);
    let finish = "-C ../elsewhere finish --work-order ../order.json";
    fails(
        &repository,
        finish,
        4,
        "a job of the work order may still be in progress on ",
    );
    job_results::age_records(&repository);
    assert_eq!(repository.orch(finish).code(), 1);
    done(&repository, &elsewhere);
    done(&repository, finish);
}
