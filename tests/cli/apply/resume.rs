//! Plans that have begun, and what an apply leaves behind that was killed.

use std::process::Stdio;

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use serde_json::Value;

use super::{
    acts, applied, done, entry, fails, hook, log, project, unhook, want, with_state, world,
};
use crate::support::{Background, Repository, wait_until};

const CHAIN: [(&str, &str); 3] = [
    ("/a", ""),
    ("/b", "after = [\"/a\"]"),
    ("/c", "after = [\"/b\"]"),
];

/// Runs `orch` and kills it, and the tool with it, once the apply of a stack has begun.
fn killed_in(repository: &Repository, name: &str, arguments: &str) {
    let script = "cd $ORCH_ROOT/..; echo $$ > in.new; mv in.new in; exec sleep 100";
    hook(repository, "apply", name, script);
    let mut command = repository.command(arguments);
    command.stdin(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let apply = Background::spawn(repository, command);
    let begun = repository.outside().join("in");
    wait_until("the apply has begun", || begun.exists());
    apply.kill();
    let tool = std::fs::read_to_string(&begun).unwrap().trim().parse();
    signal::kill(Pid::from_raw(tool.unwrap()), Signal::SIGKILL).unwrap();
    std::fs::remove_file(begun).unwrap();
    unhook(repository, "apply", name);
}

/// Asserts that the plan has begun, and that `--resume` does just this.
#[track_caller]
fn resumed(repository: &Repository, expected: &[&str]) {
    log(repository);
    fails(repository, "apply ../saved", 4, "add `--resume`");
    assert_eq!(log(repository), [""; 0]);
    let said = done(repository, "apply ../saved --resume");
    assert_eq!(acts(repository), expected, "{said}");
    for again in ["apply ../saved", "apply ../saved --resume"] {
        let said = done(repository, again);
        assert!(said.contains("nothing to do"), "{said}");
    }
    assert_eq!(log(repository), [""; 0]);
}

#[test]
fn resume_applies_what_runs_after_a_stack_that_failed_to_plan() {
    let repository = applied(&CHAIN);
    repository.write("/b/uses", "a");
    repository.write("/c/uses", "b");
    repository.commit();
    done(&repository, "apply --auto-approve");
    want(&repository, "/a", "2");
    done(&repository, "plan -o ../saved");
    hook(&repository, "plan", "b", "exit 1");
    fails(&repository, "apply ../saved", 1, "/b");
    unhook(&repository, "plan", "b");
    resumed(&repository, &["apply update b", "apply update c"]);
    assert_eq!(world(&repository, "c").as_deref(), Some("1:1:2"));
}

#[test]
fn resume_continues_after_a_failure() {
    for repository in [with_state(&CHAIN), project(&CHAIN)] {
        done(&repository, "plan -o ../saved");
        hook(&repository, "apply", "b", "exit 1");
        fails(&repository, "apply ../saved", 1, "/b");
        unhook(&repository, "apply", "b");
        resumed(&repository, &["apply create b", "apply create c"]);
        assert_eq!(world(&repository, "c").as_deref(), Some("1"));
    }
}

#[test]
fn resume_continues_after_a_kill() {
    for repository in [with_state(&CHAIN), project(&CHAIN)] {
        done(&repository, "plan -o ../saved");
        killed_in(&repository, "b", "apply ../saved");
        let said = fails(&repository, "apply ../saved", 4, "--resume");
        assert!(!said.contains("lock"), "{said}");
        resumed(&repository, &["apply create b", "apply create c"]);
    }
}

#[test]
fn resume_continues_after_the_first_stack_failed() {
    let repository = with_state(&CHAIN);
    done(&repository, "plan -o ../saved");
    hook(&repository, "apply", "a", "exit 1");
    fails(&repository, "apply ../saved", 1, "/a");
    unhook(&repository, "apply", "a");
    let all = ["apply create a", "apply create b", "apply create c"];
    resumed(&repository, &all);
}

#[test]
fn resume_accepts_changes_made_before_the_kill() {
    let repository = with_state(&CHAIN);
    done(&repository, "plan -o ../saved");
    // It was done, and nobody knows.
    hook(&repository, "apply", "b", "printf 1 > $world/b; exit 1");
    fails(&repository, "apply ../saved", 1, "/b");
    unhook(&repository, "apply", "b");
    resumed(&repository, &["apply create c"]);
    assert_eq!(entry(&repository, "/b")["last"]["outcome"], "succeeded");
}

#[test]
fn resume_makes_only_shown_changes() {
    let repository = applied(&CHAIN);
    want(&repository, "/b", "2");
    done(&repository, "plan -o ../saved");
    hook(&repository, "apply", "b", "exit 1");
    fails(&repository, "apply ../saved", 1, "/b");
    unhook(&repository, "apply", "b");
    hook(
        &repository,
        "plan",
        "b",
        "echo '{\"change\":1,\"remove\":1}' > $ORCH_ANSWER; exit 2",
    );
    log(&repository);
    let said = "/b: failed: has changes that the plan does not show (+0 ~1 -1)";
    fails(&repository, "apply ../saved --resume", 1, said);
    assert_eq!(acts(&repository), [""; 0]);
    unhook(&repository, "plan", "b");
    done(&repository, "apply ../saved --resume");
    assert_eq!(acts(&repository), ["apply update b"]);
}

#[test]
fn resume_refuses_other_files() {
    let repository = with_state(&CHAIN);
    done(&repository, "plan -o ../saved");
    hook(&repository, "apply", "b", "exit 1");
    fails(&repository, "apply ../saved", 1, "/b");
    want(&repository, "/c", "2");
    log(&repository);
    fails(
        &repository,
        "apply ../saved --resume",
        4,
        "/c: c/want differs",
    );
    assert_eq!(log(&repository), [""; 0]);
    // What is done may differ.
    want(&repository, "/c", "1");
    want(&repository, "/a", "2");
    unhook(&repository, "apply", "b");
    done(&repository, "apply ../saved --resume");
    assert_eq!(acts(&repository), ["apply create b", "apply create c"]);
}

#[test]
fn resume_continues_destroys() {
    for repository in [applied(&CHAIN), project(&CHAIN)] {
        done(&repository, "apply --auto-approve");
        done(&repository, "plan --destroy --allow-destroy=3 -o ../saved");
        hook(&repository, "destroy", "b", "exit 1");
        fails(&repository, "apply ../saved", 1, "/b");
        unhook(&repository, "destroy", "b");
        resumed(&repository, &["destroy delete b", "destroy delete a"]);
        assert_eq!(world(&repository, "a"), None);
    }
}

#[test]
fn resume_continues_a_replace_between_its_halves() {
    for repository in [applied(&CHAIN), project(&CHAIN)] {
        done(&repository, "apply --auto-approve");
        done(
            &repository,
            "plan --replace b --allow-destroy=1 -o ../saved",
        );
        hook(&repository, "apply", "b", "exit 1");
        fails(&repository, "apply ../saved", 1, "/b");
        unhook(&repository, "apply", "b");
        resumed(&repository, &["apply create b"]);
        assert_eq!(world(&repository, "b").as_deref(), Some("1"));
    }
}

#[test]
fn resume_continues_a_replace_killed_in_its_second_half() {
    for repository in [applied(&CHAIN), project(&CHAIN)] {
        done(&repository, "apply --auto-approve");
        done(
            &repository,
            "plan --replace b --allow-destroy=1 -o ../saved",
        );
        killed_in(&repository, "b", "apply ../saved");
        assert_eq!(world(&repository, "b"), None);
        resumed(&repository, &["apply create b"]);
    }
}

#[test]
fn resume_accepts_a_plan_that_has_not_begun() {
    let repository = with_state(&CHAIN);
    done(&repository, "plan -o ../saved");
    done(&repository, "apply ../saved --resume");
    assert_eq!(acts(&repository).len(), 3);
}

#[test]
fn plan_includes_the_rest_of_a_killed_apply() {
    let goes_on: [&[&str]; 2] = [
        &["apply --auto-approve"],
        &["plan -o ../saved", "apply ../saved"],
    ];
    for commands in goes_on {
        let repository = with_state(&CHAIN);
        killed_in(&repository, "b", "apply --auto-approve");
        log(&repository);
        for command in commands {
            done(&repository, command);
        }
        let expected = ["apply update b", "apply create c"];
        assert_eq!(acts(&repository), expected, "{commands:?}");
        assert_eq!(world(&repository, "c").as_deref(), Some("1"));
        let recorded = entry(&repository, "/b");
        assert_eq!(recorded["last"]["outcome"], "succeeded");
        assert_eq!(recorded["intent"], Value::Null);
    }
}

#[test]
fn run_resume_refuses_the_run_of_an_apply() {
    let repository = project(&CHAIN);
    hook(&repository, "apply", "b", "echo from the tool; exit 1");
    fails(&repository, "apply --auto-approve", 1, "/b");
    let list = done(&repository, "runs list");
    assert!(list.contains("orch apply"), "{list}");
    let show = done(&repository, "runs show last");
    assert!(show.contains("/b") && show.contains("orch apply"), "{show}");
    let logs = done(&repository, "runs logs last b");
    assert!(logs.contains("from the tool"), "{logs}");
    let refused = fails(&repository, "run --resume", 4, "orch apply");
    assert!(refused.contains("help"), "{refused}");
    fails(&repository, "run --only-failed", 4, "orch apply");
}

#[test]
fn plan_reports_a_killed_apply_with_the_fix() {
    let repository = project(&CHAIN);
    killed_in(&repository, "b", "apply --auto-approve");
    let said = fails(&repository, "run --resume", 4, "orch apply");
    assert!(said.contains("`orch plan`"), "{said}");
    let said = done(&repository, "run -X true");
    assert!(!said.contains("orch run --resume"), "{said}");
    assert!(said.contains("`orch apply FILE --resume`"), "{said}");
}

/// Asserts that a plan in a file that is carried out has nothing left to do.
#[track_caller]
fn is_carried_out(repository: &Repository) {
    log(repository);
    for again in ["apply ../saved", "apply ../saved --resume"] {
        let said = done(repository, again);
        assert!(said.contains("nothing to do"), "{said}");
    }
    assert_eq!(log(repository), [""; 0]);
}

#[test]
fn resume_keeps_taints() {
    for (failing, other) in [("b", "a"), ("b", "b"), ("b", "c")] {
        let repository = applied(&CHAIN);
        for path in ["/a", "/b", "/c"] {
            want(&repository, path, "2");
        }
        done(&repository, "plan -o ../saved");
        hook(&repository, "apply", failing, "exit 1");
        fails(&repository, "apply ../saved", 1, "/b");
        unhook(&repository, "apply", failing);
        done(&repository, &format!("state taint {other}"));
        log(&repository);
        let said = format!("/{other}: its record has changed");
        fails(&repository, "apply ../saved --resume", 4, &said);
        assert_eq!(log(&repository), [""; 0]);
    }
}

#[test]
fn resume_continues_the_replace_of_a_tainted_stack() {
    let repository = applied(&CHAIN);
    done(&repository, "state taint b");
    done(&repository, "plan --allow-destroy=1 -o ../saved");
    hook(&repository, "destroy", "b", "exit 1");
    fails(&repository, "apply ../saved", 1, "/b");
    unhook(&repository, "destroy", "b");
    resumed(&repository, &["destroy delete b", "apply create b"]);
}

#[test]
fn resume_does_not_repeat_the_destroy_of_a_replace() {
    for repository in [applied(&CHAIN), project(&CHAIN)] {
        done(&repository, "apply --auto-approve");
        let plan = "plan --replace b --allow-destroy=1 -o ../saved";
        done(&repository, plan);
        hook(&repository, "apply", "b", "exit 1");
        fails(&repository, "apply ../saved", 1, "/b");
        log(&repository);
        fails(&repository, "apply ../saved --resume", 1, "/b");
        assert_eq!(acts(&repository), ["apply create b"]);
        unhook(&repository, "apply", "b");
        log(&repository);
        resumed(&repository, &["apply create b"]);
    }
}

#[test]
fn resume_treats_decided_stacks_without_work_as_done() {
    for repository in [applied(&CHAIN), project(&CHAIN)] {
        done(&repository, "apply --auto-approve");
        want(&repository, "/a", "2");
        let plan = done(&repository, "plan -o ../saved");
        assert!(plan.contains("? /b  known after /a"), "{plan}");
        hook(&repository, "outputs", "a", "echo '{\"id\":\"1\"}'; exit");
        done(&repository, "apply ../saved");
        is_carried_out(&repository);
    }
}

#[test]
fn resume_decides_stacks_that_were_undecided() {
    for driver in ["", "driver = \"mute\""] {
        let repository = applied(&[("/a", driver), ("/b", "after = [\"/a\"]")]);
        want(&repository, "/a", "2");
        done(&repository, "plan -o ../saved");
        let deletes = "echo '{\"remove\":1}' > $ORCH_ANSWER; exit 2";
        hook(&repository, "plan", "b", deletes);
        for command in ["apply ../saved", "apply ../saved --resume"] {
            let said = "/b: failed: has changes that the plan does not show";
            fails(&repository, command, 1, said);
        }
        unhook(&repository, "plan", "b");
        done(&repository, "apply ../saved --resume");
        assert_eq!(acts(&repository), ["apply update a"]);
        is_carried_out(&repository);
    }
}

#[test]
fn resume_does_not_repeat_the_destroy_of_a_missing_stack() {
    let repository = applied(&CHAIN);
    std::fs::remove_file(repository.outside().join("world/c")).unwrap();
    done(&repository, "plan --destroy --allow-destroy=2 -o ../saved");
    done(&repository, "apply ../saved");
    assert_eq!(entry(&repository, "/c"), Value::Null);
    is_carried_out(&repository);
}

#[test]
fn apply_of_a_finished_plan_without_changes_has_nothing_to_do() {
    let repository = applied(&CHAIN);
    want(&repository, "/c", "2");
    done(&repository, "plan --full -o ../saved");
    done(&repository, "apply ../saved");
    is_carried_out(&repository);
}

#[test]
fn plan_ignores_leftovers_of_other_stacks() {
    // When the plan is made, the lock of the killed run is still there; the apply takes it over.
    for killed in ["a", "b"] {
        let last = ("/d", "after = [\"/b\", \"/c\"]");
        let repository = applied(&[CHAIN[0], CHAIN[1], CHAIN[2], last]);
        for path in ["/a", "/b", "/c", "/d"] {
            want(&repository, path, "2");
        }
        killed_in(
            &repository,
            killed,
            "apply --auto-approve --match a --match b",
        );
        done(&repository, "plan -o ../saved --match c --match d");
        hook(&repository, "apply", "d", "exit 1");
        fails(&repository, "apply ../saved", 1, "/d");
        unhook(&repository, "apply", "d");
        resumed(&repository, &["apply update d"]);
    }
}
