//! What runs after work is decided when that has ended, within what the plan has shown.

use super::{
    acts, applied, change_document, done, entry, fails, hook, log, project, unhook, want, world,
};
use crate::support::Repository;

/// A project with everything applied, in which `/b` uses what `/a` makes, and `/a` wants something else.
fn changed(driver_of_a: &str) -> Repository {
    let repository = applied(&[
        ("/a", driver_of_a),
        ("/b", "after = [\"/a\"]"),
        ("/c", "after = [\"/b\"]"),
    ]);
    repository.write("/b/uses", "a");
    repository.write("/a/want", "1");
    repository.commit();
    done(&repository, "apply --auto-approve");
    want(&repository, "/a", "2");
    log(&repository);
    repository
}

/// The steps of a stack that have run since the last look.
fn steps(repository: &Repository, name: &str) -> Vec<String> {
    let mut all = log(repository);
    all.retain(|step| step.split(' ').next_back() == Some(name));
    all
}

#[test]
fn apply_skips_conditional_stacks_if_outputs_are_unchanged() {
    let repository = changed("");
    hook(&repository, "outputs", "a", "echo '{\"id\":\"1\"}'; exit");
    let plan = done(&repository, "plan -o ../saved");
    assert!(plan.contains("? /b  known after /a"), "{plan}");
    log(&repository);
    done(&repository, "apply ../saved");
    assert_eq!(log(&repository), ["apply update a", "outputs update a"]);
    assert_eq!(world(&repository, "a").as_deref(), Some("2"));
}

#[test]
fn apply_plans_and_applies_users_of_changed_outputs() {
    let repository = changed("");
    done(&repository, "plan -o ../saved");
    log(&repository);
    done(&repository, "apply ../saved");
    let expected = [
        "apply update a",
        "outputs update a",
        "plan update b",
        "apply update b",
        "outputs update b",
        "plan update c",
    ];
    assert_eq!(log(&repository), expected);
    assert_eq!(world(&repository, "b").as_deref(), Some("1:2"));
    assert_eq!(done(&repository, "plan").matches("unchanged").count(), 1);
}

/// Its outputs differ from those that `/b` was applied with, although its tool finds nothing to do.
#[test]
fn plan_shows_users_of_a_stack_that_somebody_else_has_applied() {
    let repository = changed("");
    std::fs::write(repository.outside().join("world/a"), "2").unwrap();
    let plan = done(&repository, "plan");
    assert!(plan.contains("~ /b  update"), "{plan}");
    done(&repository, "apply --auto-approve");
    assert_eq!(world(&repository, "b").as_deref(), Some("1:2"));
    assert_eq!(done(&repository, "plan").matches("3 unchanged").count(), 1);
}

/// Unknown outputs equal no other unknown ones.
#[test]
fn plan_shows_users_of_a_stack_that_somebody_else_has_applied_twice() {
    let repository = changed("");
    for wanted in ["2", "3"] {
        want(&repository, "/a", wanted);
        std::fs::write(repository.outside().join("world/a"), wanted).unwrap();
        // Not selected, they are noted.
        let plan = repository.orch("plan --match a").to_string();
        let noted = "stacks that run after `/a` are not selected";
        assert!(plan.contains(noted), "{plan}");
        done(&repository, "apply --auto-approve");
        let made = format!("1:{wanted}");
        assert_eq!(world(&repository, "b"), Some(made));
        assert_eq!(done(&repository, "plan").matches("3 unchanged").count(), 1);
    }
}

#[test]
fn plan_shows_users_of_a_stack_whose_apply_was_killed() {
    let repository = changed("");
    let kill = "cat \"$ORCH_PLAN_FILE\" > \"$world/a\"\nkill -KILL $PPID\nexit 1\n";
    hook(&repository, "apply", "a", kill);
    let killed = repository.command("apply --auto-approve").output().unwrap();
    assert_eq!(killed.status.code(), None);
    unhook(&repository, "apply", "a");
    let plan = done(&repository, "plan");
    assert!(plan.contains("~ /b  update"), "{plan}");
    done(&repository, "apply --auto-approve");
    assert_eq!(world(&repository, "b").as_deref(), Some("1:2"));
    assert_eq!(done(&repository, "plan").matches("3 unchanged").count(), 1);
}

/// The outputs of an attempt that failed are unknown.
#[test]
fn apply_plans_users_of_a_stack_that_has_failed() {
    let repository = changed("");
    let update = "cat \"$ORCH_PLAN_FILE\" > \"$world/a\"\nexit 1\n";
    hook(&repository, "apply", "a", update);
    let arguments = "apply --auto-approve --on-error continue";
    fails(
        &repository,
        arguments,
        1,
        "2 succeeded (1 with changes), 1 failed",
    );
    assert_eq!(world(&repository, "b").as_deref(), Some("1:2"));
    assert_eq!(
        steps(&repository, "c").last().map(String::as_str),
        Some("plan update c")
    );
}

/// The attempt that failed has updated `/b`, and the next one finds nothing left to do there.
#[test]
fn apply_resumes_a_plan_with_the_replacements_of_a_failed_attempt() {
    let repository = changed("");
    let rule = "lifecycle {\n    replace_triggered_by = [\"/b\"]\n  }";
    super::declare(&repository, "/c", &format!("after = [\"/b\"]\n  {rule}"));
    repository.commit();
    let plan = done(&repository, "plan -o ../saved");
    assert!(plan.contains("replaced if /b changes"), "{plan}");
    let update = "cat \"$ORCH_PLAN_FILE\" > \"$world/b\"\nexit 1\n";
    hook(&repository, "apply", "b", update);
    fails(&repository, "apply ../saved --allow-destroy=1", 1, "/b");
    unhook(&repository, "apply", "b");
    log(&repository);
    done(&repository, "apply ../saved --resume --allow-destroy=1");
    let acts = acts(&repository);
    assert_eq!(acts, ["destroy delete c", "apply create c"]);
    assert_eq!(done(&repository, "plan").matches("3 unchanged").count(), 1);
}

#[test]
fn apply_treats_a_driver_without_outputs_as_changed() {
    let repository = changed("driver = \"mute\"");
    done(&repository, "plan -o ../saved");
    log(&repository);
    done(&repository, "apply ../saved");
    assert_eq!(world(&repository, "b").as_deref(), Some("1:2"));
    assert!(log(&repository).contains(&"plan update b".to_owned()));
}

#[test]
fn apply_without_state_asks_dependents_again() {
    let repository = project(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    repository.write("/b/uses", "a");
    repository.commit();
    // `/b` cannot be planned before `/a` exists.
    let plan = done(&repository, "plan -o ../saved");
    let row = "? /b  known after /a; cannot be planned yet: exit status 1";
    assert!(plan.contains(row), "{plan}");
    log(&repository);
    done(&repository, "apply ../saved");
    assert_eq!(world(&repository, "b").as_deref(), Some("1:1"));
    want(&repository, "/a", "2");
    done(&repository, "apply --auto-approve");
    assert_eq!(world(&repository, "b").as_deref(), Some("1:2"));
}

#[test]
fn apply_refuses_unshown_deletes() {
    let repository = changed("");
    done(&repository, "plan -o ../saved");
    let deletes = "echo '{\"remove\":1}' > $ORCH_ANSWER; exit 2";
    hook(&repository, "plan", "b", deletes);
    log(&repository);
    let said = "/b: failed: has changes that the plan does not show (+0 ~0 -1)";
    let said = fails(&repository, "apply ../saved", 1, said);
    // What runs after it is skipped.
    assert!(said.contains("skipped /c"), "{said}");
    assert_eq!(acts(&repository), ["apply update a"]);
    // Nothing was done with it, and it is still to be done.
    let recorded = entry(&repository, "/b");
    assert_eq!(recorded["last"]["outcome"], "failed", "{recorded}");
    assert_eq!(recorded["last"]["failure"], "refused", "{recorded}");
    assert!(recorded["outputs"].is_object(), "{recorded}");
    let plan = done(&repository, "plan");
    let row = "~ /b  update  the last attempt was refused  +0 ~0 -1";
    assert!(plan.contains(row), "{plan}");
    let listed = done(&repository, "state list");
    assert!(listed.contains("\n/b  failed "), "{listed}");
    unhook(&repository, "plan", "b");
    done(&repository, "apply --auto-approve");
    let plan = done(&repository, "plan");
    assert!(plan.contains("3 unchanged"), "{plan}");
}

/// As after `orch run`, it is not known which outputs `/b` was applied with.
#[test]
fn apply_records_that_a_stack_failed_before_its_command() {
    for (script, failure) in [
        ("echo '{\"remove\":1}' > $ORCH_ANSWER; exit 2", "refused"),
        ("exit 1", "exited"),
    ] {
        let repository = changed("");
        change_document(&repository, |document| {
            let applied = &mut document["stacks"]["/b"]["applied"];
            applied.as_object_mut().unwrap().remove("upstream");
        });
        done(&repository, "plan -o ../saved");
        hook(&repository, "plan", "b", script);
        log(&repository);
        fails(&repository, "apply ../saved", 1, "/b: failed");
        assert_eq!(acts(&repository), ["apply update a"]);
        let last = entry(&repository, "/b")["last"].clone();
        assert_eq!(last["failure"], failure, "{last}");
        let failed = repository.orch("list --status failed").stdout;
        assert_eq!(failed, "b\n");
        unhook(&repository, "plan", "b");
        let plan = done(&repository, "plan");
        assert!(plan.contains("~ /b  update"), "{plan}");
    }
}

#[test]
fn apply_refuses_unshown_replacements() {
    let repository = changed("");
    done(&repository, "plan -o ../saved");
    let replaces = "echo '{\"action\":\"replace\"}' > $ORCH_ANSWER; exit 2";
    hook(&repository, "plan", "b", replaces);
    log(&repository);
    let said = "has changes that the plan does not show";
    fails(&repository, "apply ../saved --new-changes fail", 1, said);
    assert_eq!(acts(&repository), ["apply update a"]);
}

#[test]
fn apply_makes_new_changes_if_allowed() {
    let allowing = [
        ("plan -o ../saved", "apply ../saved --new-changes apply"),
        ("list", "apply --auto-approve"),
        ("list", "apply --auto-approve --new-changes apply"),
    ]
    .map(|(before, apply)| (before, format!("{apply} --allow-resource-destroy")));
    let deletes = "[ ! -e $ORCH_ROOT/../acting ] || { printf less > $ORCH_PLAN_FILE; echo '{\"remove\":1}' > $ORCH_ANSWER; exit 2; }";
    for (before, apply) in allowing {
        let repository = changed("");
        hook(&repository, "plan", "b", deletes);
        hook(&repository, "apply", "a", "touch $ORCH_ROOT/../acting");
        done(&repository, before);
        done(&repository, &apply);
        assert_eq!(world(&repository, "b").as_deref(), Some("less"), "{apply}");
    }
    let repository = changed("");
    hook(&repository, "plan", "b", deletes);
    hook(&repository, "apply", "a", "touch $ORCH_ROOT/../acting");
    let apply = "apply --auto-approve --new-changes fail";
    fails(
        &repository,
        apply,
        1,
        "that the plan does not show (+0 ~0 -1)",
    );
    assert_eq!(world(&repository, "b").as_deref(), Some("1:1"));
}

#[test]
fn apply_skips_dependents_of_a_stack_that_fails_to_plan_again() {
    let repository = changed("");
    done(&repository, "plan -o ../saved");
    hook(&repository, "plan", "b", "exit 1");
    log(&repository);
    let said = fails(&repository, "apply ../saved", 1, "skipped /c");
    assert_eq!(acts(&repository), ["apply update a"], "{said}");
    unhook(&repository, "plan", "b");
    done(&repository, "apply --auto-approve");
    assert_eq!(world(&repository, "b").as_deref(), Some("1:2"));
}

/// Plans work of `/b` behind work of `/a`, and carries it out after another answer of the tool of `/b`:
/// returns what has been done with it, and what was said if that fails.
fn planned_again(shown: &str, now: &str) -> Result<Vec<String>, String> {
    let repository = changed("");
    want(&repository, "/b", "2");
    let answers = |answer: &str| {
        let script = format!("echo '{answer}' > $ORCH_ANSWER; printf x > $ORCH_PLAN_FILE; exit 2");
        hook(&repository, "plan", "b", &script);
    };
    answers(shown);
    let plan = done(&repository, "plan -o ../saved");
    assert!(plan.contains("b/want differs"), "{plan}");
    answers(now);
    log(&repository);
    let output = repository.orch("apply ../saved");
    let steps = steps(&repository, "b");
    assert_eq!(steps.first().map(String::as_str), Some("plan update b"));
    match output.code() {
        0 => Ok(steps),
        1 => {
            assert_eq!(steps, ["plan update b"]);
            let line = output
                .stderr
                .lines()
                .find(|line| line.contains("/b: failed"));
            let line = line.unwrap_or_default().to_owned();
            let (_, why) = line.split_once("failed: ").unwrap_or_default();
            Err(why.split(" after ").next().unwrap().to_owned())
        }
        _ => panic!("{output}"),
    }
}

#[test]
fn apply_lets_a_provisional_entry_create_and_update_and_destroys_only_what_was_shown() {
    let not_shown = |counts: &str| Err(format!("has changes that the plan does not show{counts}"));
    let done = || {
        let steps = ["plan update b", "apply update b", "outputs update b"];
        Ok(steps.map(str::to_owned).to_vec())
    };
    let shown = r#"{"change":2,"changes":"x"}"#;
    let other = r#"{"add":1,"change":3,"changes":"y"}"#;
    assert_eq!(planned_again(shown, shown), done());
    assert_eq!(planned_again(shown, other), done());
    assert_eq!(planned_again(r#"{"remove":1}"#, r#"{"remove":1}"#), done());
    assert_eq!(
        planned_again(shown, r#"{"remove":1,"changes":"y"}"#),
        not_shown(" (+0 ~0 -1)")
    );
    assert_eq!(
        planned_again(r#"{"change":2}"#, r#"{"action":"replace"}"#),
        not_shown("")
    );
}

#[test]
fn apply_records_a_stack_whose_changes_have_vanished() {
    let repository = changed("");
    want(&repository, "/b", "2");
    done(&repository, "plan -o ../saved");
    hook(&repository, "plan", "b", "exit 0");
    log(&repository);
    done(&repository, "apply ../saved");
    assert_eq!(acts(&repository), ["apply update a"]);
    let recorded = entry(&repository, "/b");
    assert_eq!(recorded["last"]["outcome"], "succeeded");
    unhook(&repository, "plan", "b");
}

#[test]
fn apply_of_a_file_that_was_finished_elsewhere_names_that_run() {
    let last = |repository: &Repository| crate::support::run_ids(repository).pop().unwrap();
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    want(&repository, "/a", "2");
    want(&repository, "/b", "2");
    done(&repository, "plan -o ../saved");
    hook(&repository, "apply", "b", "exit 1");
    fails(&repository, "apply ../saved", 1, "/b");
    unhook(&repository, "apply", "b");
    // Only the state is on the other machine as well.
    let folders = ["runs", "applied"].map(|folder| {
        let here = repository.path(&format!("/.orch/{folder}"));
        (here, repository.outside().join(folder))
    });
    for (here, away) in &folders {
        std::fs::rename(here, away).unwrap();
    }
    done(&repository, "apply ../saved --resume");
    let by = format!(" by run {}", last(&repository));
    for (here, away) in &folders {
        std::fs::remove_dir_all(here).unwrap();
        std::fs::rename(away, here).unwrap();
    }
    let said = done(&repository, "apply ../saved --resume");
    assert!(said.contains(&by), "{by}: {said}");
}

#[test]
fn apply_of_a_finished_file_says_when_it_was_applied() {
    let last = |repository: &Repository| crate::support::run_ids(repository).pop().unwrap();
    for keeps_state in [true, false] {
        let stacks = [("/a", ""), ("/b", "after = [\"/a\"]")];
        let repository = if keeps_state {
            let repository = applied(&stacks);
            // What a command has applied is recorded without the outputs that it was applied with.
            done(&repository, "run --record=apply -- true");
            repository
        } else {
            let repository = project(&stacks);
            done(&repository, "apply --auto-approve");
            repository
        };
        want(&repository, "/a", "2");
        hook(&repository, "outputs", "a", "echo '{\"id\":\"1\"}'; exit");
        done(&repository, "plan -o ../saved");
        done(&repository, "apply ../saved");
        let by = format!(" by run {}", last(&repository));
        log(&repository);
        for flags in ["", " --resume"] {
            let said = done(&repository, &format!("apply ../saved{flags}"));
            let applied = "note: nothing to do: the plan was applied at ";
            assert!(said.contains(applied) && said.contains(&by), "{said}");
        }
        // The state tells it on other machines.
        if keeps_state {
            for folder in ["runs", "applied"] {
                let folder = repository.path(&format!("/.orch/{folder}"));
                std::fs::remove_dir_all(folder).unwrap();
            }
            let said = done(&repository, "apply ../saved");
            assert!(said.contains(&by), "{said}");
        }
        assert_eq!(acts(&repository), [""; 0]);
    }
}
