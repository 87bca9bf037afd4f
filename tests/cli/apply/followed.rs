//! `orch apply` with trigger policies: what follows is planned, and applied if that is approved.

use serde_json::{Value, json};

use super::{
    acts, applied, assert_tidy, declare, done, entry, fails, hook, log, project, unhook, want,
    with_state, world,
};
use crate::policies::command_graph::obeys_the_schema;
use crate::support::{Repository, Sandbox, answered_after, journal_of, run_ids};

/// What follows `/a` once it has finished: `/b`.
pub(super) const LIST: &str = r#"
package list
trigger["/b"] { input.run.state == "FINISHED"; input.stack.id == "/a" }
sample { true }
"#;

/// Tries a stack again that has failed.
const RETRY: &str = r#"
package retry
trigger[stack.id] {
    stack := input.stack
    input.run.state == "FAILED"
    is_null(input.run.triggered_by)
}
"#;

/// Attaches a policy to all stacks.
pub(super) fn attach(sandbox: &Sandbox, name: &str, text: &str) {
    sandbox.write(&format!("/policies/{name}.rego"), text);
    let block = format!("policy \"trigger\" \"{name}\" {{ file = \"/policies/{name}.rego\" }}\n");
    sandbox.write(&format!("/{name}.orch.hcl"), block);
}

/// A project with everything applied, in which `/a` and `/b` want something else and `/b` follows `/a`.
pub(super) fn changed(lines_of_b: &str) -> Repository {
    let repository = applied(&[("/a", ""), ("/b", lines_of_b), ("/c", "")]);
    attach(&repository, "list", LIST);
    repository.write("/b/want", "2");
    want(&repository, "/a", "2");
    repository
}

/// The lines of the journal of the last apply.
fn last_apply(sandbox: &Sandbox) -> (String, Vec<Value>) {
    let read = |id: String| {
        let text = sandbox.read(&journal_of(&id));
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        (id, lines.collect::<Vec<Value>>())
    };
    let applies = run_ids(sandbox).into_iter().rev().map(read);
    let mut applies = applies.filter(|(_, lines)| lines[0]["purpose"] == "apply");
    applies.next().expect("there was an apply")
}

/// The lines of a kind in that journal.
fn lines(sandbox: &Sandbox, event: &str) -> Vec<Value> {
    let (_, mut lines) = last_apply(sandbox);
    lines.retain(|line| line["event"] == event);
    lines
}

/// The last input that a policy has kept for a stack.
fn sample(sandbox: &Sandbox, policy: &str, stack: &str) -> Value {
    let (run, _) = last_apply(sandbox);
    let folder = sandbox.path(&format!("/.orch/runs/{run}/samples"));
    let files = std::fs::read_dir(folder).unwrap().flatten();
    let inputs = files.filter(|file| {
        let name = file.file_name().into_string().unwrap();
        name.ends_with(&format!(".{policy}.json"))
    });
    let inputs = inputs.map(|file| std::fs::read_to_string(file.path()).unwrap());
    let mut inputs = inputs.map(|text| serde_json::from_str::<Value>(&text).unwrap());
    let input = inputs.find(|input| input["stack"]["id"] == stack);
    input.unwrap_or_else(|| panic!("no input of {stack} was kept"))
}

/// How the turns ended: the stack, which turn of it, the outcome.
pub(super) fn endings(sandbox: &Sandbox) -> Vec<String> {
    let lines = lines(sandbox, "ended").into_iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ending = |line: Value| match line["turn"].as_u64() {
        None => format!("{} {}", text(&line["stack"]), text(&line["outcome"])),
        Some(turn) => format!("{}.{turn} {}", text(&line["stack"]), text(&line["outcome"])),
    };
    lines.map(ending).collect()
}

#[test]
fn followups_are_planned_and_wait_for_approval() {
    let repository = changed("");
    let said = done(&repository, "apply --auto-approve --policies=off --match c");
    assert_eq!(acts(&repository), [""; 0], "{said}");
    done(&repository, "plan --match a -o ../saved");
    log(&repository);
    let said = done(&repository, "apply ../saved");
    let planned_again = "plan update b";
    let expected = [
        "apply update a",
        "outputs update a",
        "plan update b",
        planned_again,
    ];
    assert_eq!(log(&repository), expected);
    assert_eq!(world(&repository, "b").as_deref(), Some("1"));
    assert_eq!(endings(&repository), ["/a succeeded", "/b unconfirmed"]);
    assert!(
        said.contains("1 succeeded (1 with changes), 1 unconfirmed in"),
        "{said}"
    );
    let (run, _) = last_apply(&repository);
    let file = format!(".orch/runs/{run}/followup.plan");
    assert!(
        said.contains(&format!("to apply this plan, run `orch apply {file}`")),
        "{said}"
    );
    assert_tidy(&repository);
    // The last run is the apply, not the one in which its follow-ups were planned.
    let shown = done(&repository, "runs show");
    assert!(shown.contains(&format!("run {run} succeeded")), "{shown}");
    let before = done(&repository, "runs show last~1");
    assert!(before.contains("typed    orch plan --match a"), "{before}");
    let newest = run_ids(&repository).pop().unwrap();
    fails(
        &repository,
        &format!("run --resume {newest}"),
        4,
        "it is a run of `orch plan`",
    );
    let shown = done(&repository, &format!("show {file}"));
    assert!(shown.contains("/b  update"), "{shown}");
    log(&repository);
    done(&repository, &format!("apply {file}"));
    assert_eq!(acts(&repository), ["apply update b"]);
    assert_eq!(world(&repository, "b").as_deref(), Some("2"));
    let said = done(&repository, "plan");
    assert!(said.contains("3 unchanged"), "{said}");
}

#[test]
fn followups_that_only_revert_drift_wait_for_approval() {
    let repository = changed("");
    repository.write("/b/want", "1");
    repository.commit();
    done(&repository, "plan --match a -o ../saved");
    std::fs::write(repository.outside().join("world/b"), "3").unwrap();
    let said = done(&repository, "apply ../saved");
    assert_eq!(endings(&repository), ["/a succeeded", "/b unconfirmed"]);
    assert!(!said.contains("nothing waits for approval"), "{said}");
    let (run, _) = last_apply(&repository);
    log(&repository);
    done(
        &repository,
        &format!("apply .orch/runs/{run}/followup.plan"),
    );
    assert_eq!(acts(&repository), ["apply update b"]);
    assert_eq!(world(&repository, "b").as_deref(), Some("1"));
}

#[test]
fn followups_do_not_repeat_warnings() {
    let repository = changed("");
    repository.write("/warned.orch.hcl", "policy \"trigger\" \"none\" {\n  file = \"/policies/list.rego\"\n  attach = [\"tag:none\"]\n}\n");
    declare(&repository, "/c", "after = [\"/nowhere\"]");
    repository.commit();
    let once = |said: String| {
        for warning in ["`tag:none`", "`/nowhere`"] {
            assert_eq!(said.matches(warning).count(), 1, "{said}");
        }
    };
    done(&repository, "plan --match a -o ../saved");
    once(done(&repository, "apply ../saved"));
    want(&repository, "/a", "3");
    once(done(&repository, "apply --auto-approve --match a"));
}

#[test]
fn followups_without_changes_finish() {
    let repository = changed("");
    repository.write("/b/want", "1");
    repository.commit();
    attach(
        &repository,
        "next",
        "package next\ntrigger[\"/c\"] { input.stack.id == \"/b\"; input.run.state == \"FINISHED\" }\n",
    );
    repository.commit();
    log(&repository);
    let said = done(&repository, "apply --auto-approve --match a");
    assert_eq!(
        endings(&repository),
        ["/a succeeded", "/b succeeded", "/c succeeded"],
        "{said}"
    );
    assert_eq!(acts(&repository), ["apply update a"]);
}

#[test]
fn followups_are_applied_if_approved() {
    // Not if a plan in a file is carried out.
    for (lines, arguments, is_applied) in [
        ("", "apply --match a --auto-approve", true),
        ("autodeploy = true", "apply --match a --auto-approve", true),
        ("autodeploy = true", "apply ../saved", true),
        ("", "apply ../saved --auto-approve", false),
        ("", "apply ../saved", false),
    ] {
        let repository = changed(lines);
        done(&repository, "plan --match a -o ../saved");
        log(&repository);
        done(&repository, arguments);
        let of_b = if is_applied { "2" } else { "1" };
        assert_eq!(
            world(&repository, "b").as_deref(),
            Some(of_b),
            "{lines} {arguments}"
        );
        let outcome = if is_applied {
            "/b succeeded"
        } else {
            "/b unconfirmed"
        };
        assert_eq!(endings(&repository), ["/a succeeded", outcome]);
        if is_applied {
            assert_eq!(entry(&repository, "/b")["last"]["outcome"], "succeeded");
            let said = done(&repository, "plan");
            assert!(said.contains("3 unchanged"), "{said}");
        }
    }
}

#[test]
fn followups_that_retry_unblock_dependents() {
    let repository = with_state(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    attach(&repository, "retry", RETRY);
    repository.commit();
    // Fails the first time.
    let once = "[ -e ../../failed ] || { touch ../../failed; exit 1; }";
    hook(&repository, "apply", "a", once);
    log(&repository);
    done(&repository, "apply --auto-approve");
    let expected = ["apply create a", "apply create a", "apply create b"];
    assert_eq!(acts(&repository), expected);
    assert_eq!(
        endings(&repository),
        ["/a failed", "/a.2 succeeded", "/b succeeded"]
    );
    assert_eq!(entry(&repository, "/a")["last"]["outcome"], "succeeded");
    let said = done(&repository, "plan");
    assert!(said.contains("2 unchanged"), "{said}");
}

#[test]
fn followups_count_stacks_and_turns_separately() {
    let repository = changed("");
    let again = "package again\ntrigger[\"/a\"] { input.stack.id == \"/a\"; is_null(input.run.triggered_by) }\n";
    attach(&repository, "list", again);
    repository.commit();
    let said = done(&repository, "apply --auto-approve --match a");
    assert_eq!(endings(&repository), ["/a succeeded", "/a.2 succeeded"]);
    assert!(!said.contains("no changes in"), "{said}");
    let shown = done(&repository, "runs show");
    assert!(
        shown.contains("  turn 2, attempt 1: ended after"),
        "{shown}"
    );
}

#[test]
fn followups_without_approval_leave_the_failure() {
    let repository = with_state(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    attach(&repository, "retry", RETRY);
    repository.commit();
    hook(
        &repository,
        "apply",
        "a",
        "[ -e ../../failed ] || { touch ../../failed; exit 1; }",
    );
    done(&repository, "plan -o ../saved");
    log(&repository);
    let waits = "1 follow-up waits for approval";
    let said = fails(&repository, "apply ../saved", 1, waits);
    let skipped = "skipped /b: runs after /a, which failed";
    assert!(said.contains(skipped), "{said}");
    assert_eq!(acts(&repository), ["apply create a"]);
    assert_eq!(
        endings(&repository),
        ["/a failed", "/a.2 unconfirmed", "/b skipped"]
    );
    let shown = repository.orch("runs show last").stdout;
    assert!(shown.contains("1 failed"), "{shown}");
    // What is left can be done in either way.
    let (run, _) = last_apply(&repository);
    done(
        &repository,
        &format!("apply .orch/runs/{run}/followup.plan"),
    );
    assert_eq!(acts(&repository), ["apply update a"]);
}

#[test]
fn followups_run_before_their_dependents() {
    let repository = applied(&[
        ("/a", ""),
        ("/b", "autodeploy = true"),
        ("/c", "after = [\"/a\", \"/b\"]"),
    ]);
    attach(&repository, "list", LIST);
    repository.write("/b/want", "2");
    repository.write("/c/want", "2");
    want(&repository, "/a", "2");
    log(&repository);
    done(&repository, "apply --auto-approve --match a --match c -j 1");
    let expected = ["apply update a", "apply update b", "apply update c"];
    assert_eq!(acts(&repository), expected);
    // A failure reaches what runs after it.
    for stack in ["/a", "/b"] {
        want(&repository, stack, "3");
    }
    hook(&repository, "apply", "b", "exit 1");
    want(&repository, "/c", "3");
    let said = fails(
        &repository,
        "apply --auto-approve --match a --match c",
        1,
        "/c",
    );
    assert!(
        said.contains("skipped /c: runs after /b, which failed"),
        "{said}"
    );
}

#[test]
fn policies_see_the_changes_of_a_turn() {
    let repository = changed("autodeploy = true");
    done(&repository, "apply --auto-approve --match a");
    let input = sample(&repository, "list", "/b");
    let changes = json!(["plan", "apply"].map(|phase| json!({
        "action": "changed",
        "phase": phase,
        "entity": {
            "address": "/b", "name": "/b", "type": "stack",
            "entity_vendor": "", "entity_type": "stack", "data": {},
        },
    })));
    assert_eq!(input["run"]["changes"], changes);
    let states = ["QUEUED", "PLANNING", "APPLYING", "FINISHED"];
    let states = json!(states.map(|state| json!({"new_state": state})));
    assert_eq!(input["run"]["states_history"], states);
    assert_eq!(input["run"]["type"], "TRACKED");
    assert_eq!(input["run"]["triggered_by"], "policy/list");
    assert_eq!(input["stack"]["autodeploy"], true);
    let input = sample(&repository, "list", "/a");
    obeys_the_schema(&input);
    let states = ["QUEUED", "APPLYING", "FINISHED"];
    let states = json!(states.map(|state| json!({"new_state": state})));
    assert_eq!(input["run"]["states_history"], states);
}

#[test]
fn followups_never_destroy() {
    let repository = changed("autodeploy = true");
    attach(
        &repository,
        "gone",
        "package gone\ntrigger[\"/b\"] { input.run.type == \"DESTROY\"; input.run.state == \"FINISHED\" }\nsample { true }\n",
    );
    repository.commit();
    log(&repository);
    done(
        &repository,
        "destroy --match a --auto-approve --allow-destroy=1",
    );
    assert_eq!(acts(&repository), ["destroy delete a", "apply update b"]);
    assert_eq!(world(&repository, "b").as_deref(), Some("2"));
    let input = sample(&repository, "gone", "/a");
    assert_eq!(input["run"]["changes"][0]["action"], "deleted");
    assert_eq!(input["run"]["type"], "DESTROY");
    obeys_the_schema(&input);
}

#[test]
fn followups_are_not_approved_by_approving_a_destroy() {
    let repository = changed("");
    let said = done(
        &repository,
        "destroy --match a --auto-approve --allow-destroy=1",
    );
    assert!(said.contains("1 follow-up waits for approval"), "{said}");
    assert_eq!(world(&repository, "b").as_deref(), Some("1"));
}

#[test]
fn followups_create_missing_stacks() {
    let repository = project(&[("/a", ""), ("/b", "autodeploy = true")]);
    attach(&repository, "list", LIST);
    repository.commit();
    done(&repository, "apply --auto-approve --match a");
    // Without a state, only its driver knows.
    let of_b = log(&repository).into_iter().filter(|it| it.ends_with('b'));
    let of_b: Vec<String> = of_b.collect();
    assert_eq!(
        of_b,
        ["plan update b", "apply create b", "outputs create b"]
    );
    let sample = sample(&repository, "list", "/b");
    let changes = sample["run"]["changes"].as_array().unwrap().iter();
    let actions: Vec<&Value> = changes.map(|it| &it["action"]).collect();
    assert_eq!(actions, ["added", "added"]);
}

#[test]
fn apply_reports_a_failure_that_only_the_state_has() {
    let repository = changed("autodeploy = true");
    done(&repository, "plan --match a -o ../saved");
    hook(&repository, "apply", "b", "exit 1");
    fails(&repository, "apply ../saved", 1, "/b");
    unhook(&repository, "apply", "b");
    // On another machine.
    for folder in ["runs", "applied"] {
        std::fs::remove_dir_all(repository.path(&format!("/.orch/{folder}"))).unwrap();
    }
    log(&repository);
    for arguments in ["apply ../saved", "apply ../saved --resume"] {
        let said = fails(
            &repository,
            arguments,
            4,
            "the journal of that run is not on this machine",
        );
        assert!(said.contains("run `orch plan --match /b`"), "{said}");
    }
    assert_eq!(log(&repository), [""; 0]);
    done(&repository, "apply --match b --auto-approve");
    assert_eq!(acts(&repository), ["apply update b"]);
    let said = done(&repository, "apply ../saved");
    assert!(said.contains("nothing to do"), "{said}");
}

#[test]
fn apply_without_policies_names_unevaluated_turns() {
    let repository = changed("");
    done(&repository, "plan --match a --match c -o ../saved");
    done(&repository, "apply ../saved");
    let (run, lines) = last_apply(&repository);
    let ended = |line: &Value| line["event"] == "ended" && line["stack"] == "/a";
    let last = lines.iter().position(ended).unwrap();
    let kept: Vec<String> = lines[..=last].iter().map(Value::to_string).collect();
    repository.write(&journal_of(&run), kept.join("\n") + "\n");
    let said = done(&repository, "apply ../saved --resume --policies=off");
    let warning = "warning: the policies of 1 turn were not evaluated";
    assert!(said.contains(warning), "{said}");
}

#[test]
fn followups_that_failed_and_wait_are_planned() {
    let repository = changed("autodeploy = true");
    done(&repository, "plan --match a -o ../saved");
    hook(&repository, "apply", "b", "exit 1");
    fails(&repository, "apply ../saved", 1, "/b");
    unhook(&repository, "apply", "b");
    declare(&repository, "/b", "");
    repository.commit();
    log(&repository);
    let waits = "1 follow-up waits for approval";
    for _ in 0..2 {
        let said = done(&repository, "apply ../saved --resume");
        assert!(said.contains(waits), "{said}");
        let (run, _) = last_apply(&repository);
        let again = done(&repository, "apply ../saved");
        assert!(again.contains("nothing to do"), "{again}");
        // As if a kill had come before it.
        repository.remove(&format!("/.orch/runs/{run}/followup.plan"));
    }
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn followups_that_wait_are_planned_once() {
    let repository = applied(&[("/a", ""), ("/b", ""), ("/c", "after = [\"/a\"]")]);
    attach(&repository, "list", LIST);
    for stack in ["a", "b", "c"] {
        want(&repository, &format!("/{stack}"), "2");
    }
    done(&repository, "plan --match a --match c -o ../saved");
    hook(&repository, "apply", "c", "exit 1");
    fails(&repository, "apply ../saved", 1, "/c");
    let (run, _) = last_apply(&repository);
    repository.remove(&format!("/.orch/runs/{run}/followup.plan"));
    unhook(&repository, "apply", "c");
    let said = done(&repository, "apply ../saved --resume");
    assert!(said.contains("1 follow-up waits for approval"), "{said}");
    let said = done(&repository, "apply ../saved --resume");
    assert!(said.contains("nothing to do"), "{said}");
}

#[test]
fn resume_ignores_failures_that_a_retry_repaired() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    // `/a` is tried again, then `/b` follows, and then `/a` once more.
    let three = r#"
package three
turns := count([turn | turn := input.workflow[_]; turn.stack_id == "/a"])
trigger["/a"] { input.stack.id == "/a"; input.run.state == "FAILED"; turns == 1 }
trigger["/b"] { input.stack.id == "/a"; input.run.state == "FINISHED"; turns == 2 }
trigger["/a"] { input.stack.id == "/b"; input.run.state == "FINISHED" }
"#;
    attach(&repository, "three", three);
    want(&repository, "/a", "2");
    done(&repository, "plan --match a -o ../saved");
    // It has done all, and fails nevertheless.
    let once = "[ -e ../../failed ] || { touch ../../failed; cat \"$ORCH_PLAN_FILE\" > \"$world/$name\"; exit 1; }";
    hook(&repository, "apply", "a", once);
    let later = "echo \"echo 3 > want\" > ../../hooks/plan-a";
    hook(&repository, "plan", "b", later);
    let said = done(&repository, "apply ../saved");
    assert_eq!(
        endings(&repository),
        [
            "/a failed",
            "/a.2 succeeded",
            "/b succeeded",
            "/a.3 unconfirmed"
        ]
    );
    assert!(said.contains("1 retried"), "{said}");
    let shown = done(&repository, "runs show last");
    assert!(!shown.contains("failed"), "{shown}");
}

#[test]
fn apply_suggests_resume_only_if_it_can_continue() {
    let repository = changed("");
    // What follows is tried once more.
    let again = r#"
package again
trigger["/b"] {
    input.run.state == "FAILED"
    count([turn | turn := input.workflow[_]; turn.stack_id == "/b"]) == 1
}
"#;
    attach(&repository, "again", again);
    repository.commit();
    done(&repository, "plan --match a -o ../saved");
    hook(
        &repository,
        "plan",
        "b",
        "[ -e ../../failed ] || { touch ../../failed; exit 1; }",
    );
    let waits = "1 follow-up waits for approval";
    let said = fails(&repository, "apply ../saved", 1, waits);
    assert_eq!(
        endings(&repository),
        ["/a succeeded", "/b failed", "/b.2 unconfirmed"]
    );
    assert!(!said.contains("--resume"), "{said}");
    let said = done(&repository, "apply ../saved --resume");
    assert!(said.contains("nothing to do"), "{said}");
}

#[test]
fn resume_repeats_followups_that_a_limit_stopped() {
    let repository = changed("autodeploy = true");
    attach(
        &repository,
        "again",
        "package again\ntrigger[\"/b\"] { input.stack.id == \"/b\" }\n",
    );
    let settings = "orch {\n  config {\n    policies {\n      max_turns = 1\n    }\n  }\n}\n";
    repository.write("/limits.orch.hcl", settings);
    repository.commit();
    fails(
        &repository,
        "plan --match a -o ../saved",
        1,
        "an apply of this plan would end with status 1",
    );
    fails(
        &repository,
        "apply ../saved",
        1,
        "it would exceed `max_turns = 1`",
    );
    let (run, _) = last_apply(&repository);
    let said = done(&repository, "apply ../saved --resume");
    let warning = format!("`orch runs show {run}` lists the lost follow-ups");
    assert!(said.contains(&warning), "{said}");
}

#[test]
fn followups_do_not_repair_a_failed_destroy() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    let again = "package again\ntrigger[\"/b\"] { input.run.state == \"FAILED\" }\n";
    attach(&repository, "again", again);
    repository.commit();
    hook(&repository, "destroy", "b", "exit 1");
    fails(
        &repository,
        "destroy --auto-approve --allow-destroy=2",
        1,
        "/b",
    );
    assert!(world(&repository, "a").is_some());
    assert!(world(&repository, "b").is_some());
    let shown = repository.orch("runs show last").stdout;
    assert!(shown.contains("1 failed"), "{shown}");
}

#[test]
fn followups_do_not_repair_a_replace_with_a_failed_destroy() {
    let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
    let again = "package again\ntrigger[\"/a\"] { input.run.state == \"FAILED\" }\n";
    attach(&repository, "again", again);
    repository.commit();
    hook(&repository, "destroy", "a", "exit 1");
    let apply = "apply --auto-approve --allow-destroy=2 --match a --replace a";
    fails(&repository, apply, 1, "/a");
    unhook(&repository, "destroy", "a");
    log(&repository);
    done(&repository, apply);
    assert_eq!(acts(&repository), ["destroy delete a", "apply create a"]);
}

#[test]
fn followups_recreate_a_replaced_stack() {
    let repository = applied(&[("/a", "")]);
    attach(&repository, "retry", RETRY);
    repository.commit();
    hook(
        &repository,
        "apply",
        "a",
        "[ -e ../../failed ] || { touch ../../failed; exit 1; }",
    );
    log(&repository);
    done(
        &repository,
        "apply --auto-approve --replace a --allow-destroy=1",
    );
    let expected = ["destroy delete a", "apply create a", "apply create a"];
    assert_eq!(acts(&repository), expected);
    let states: Vec<String> = lines(&repository, "evaluated")
        .iter()
        .map(|line| format!("{} {}", line["turn"], line["state"].as_str().unwrap()))
        .collect();
    assert_eq!(states, ["null FINISHED", "2 FAILED", "3 FINISHED"]);
    let said = done(&repository, "plan");
    assert!(said.contains("1 unchanged"), "{said}");
}

#[test]
fn followups_run_after_a_rejected_plan() {
    let repository = changed("");
    attach(
        &repository,
        "rejected",
        "package rejected\ntrigger[\"/c\"] { input.run.state == \"DISCARDED\" }\nsample { true }\n",
    );
    repository.write("/c/want", "2");
    repository.commit();
    log(&repository);
    let answered = answered_after(&repository, "apply --match a", "no\n", || ());
    let Some((code, said)) = answered else {
        return;
    };
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("not approved"), "{said}");
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(
        endings(&repository),
        ["/a cancelled", "/c unconfirmed"],
        "{said}"
    );
    let input = sample(&repository, "rejected", "/a");
    assert_eq!(input["run"]["state"], "DISCARDED");
    assert_tidy(&repository);
    // Nothing of it is recorded.
    assert_eq!(entry(&repository, "/a")["last"]["outcome"], "succeeded");
    assert_eq!(entry(&repository, "/a")["intent"], Value::Null);
    let (run, _) = last_apply(&repository);
    done(
        &repository,
        &format!("apply .orch/runs/{run}/followup.plan"),
    );
    assert_eq!(acts(&repository), ["apply update c"]);
}

#[test]
fn apply_with_an_answered_prompt_names_its_user_in_triggered_by() {
    let repository = with_state(&[("/a", "")]);
    attach(&repository, "retry", &format!("{RETRY}sample {{ true }}\n"));
    repository.commit();
    hook(&repository, "apply", "a", "exit 1");
    let Some((code, said)) = answered_after(&repository, "apply", "yes\n", || ()) else {
        return;
    };
    assert_eq!(code, 1, "{said}");
    assert_eq!(endings(&repository), ["/a failed"]);
    let input = sample(&repository, "retry", "/a");
    assert!(input["run"]["triggered_by"].is_string(), "{input}");
    // No user has asked for this one.
    assert_eq!(repository.orch("apply --auto-approve").code(), 1);
    assert_eq!(endings(&repository), ["/a failed", "/a.2 failed"]);
}

#[test]
fn followups_are_not_approved_by_rejecting_a_plan() {
    let repository = changed("");
    attach(
        &repository,
        "rejected",
        "package rejected\ntrigger[\"/b\"] { input.run.state == \"DISCARDED\" }\n",
    );
    repository.commit();
    log(&repository);
    let arguments = "destroy --match a --auto-approve";
    let Some((code, said)) = answered_after(&repository, arguments, "no\n", || ()) else {
        return;
    };
    assert_eq!(code, 4, "{said}");
    assert_eq!(endings(&repository), ["/a cancelled", "/b unconfirmed"]);
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn apply_reports_invalid_policies_before_anything_runs() {
    let repository = changed("");
    repository.write("/policies/list.rego", "package list\ntrigger[");
    repository.commit();
    log(&repository);
    fails(
        &repository,
        "apply --auto-approve",
        3,
        "the policy `list` cannot be loaded",
    );
    assert_eq!(log(&repository), [""; 0]);
    let said = fails(
        &repository,
        "apply --metadata x --policies=off",
        64,
        "--metadata",
    );
    assert!(said.contains("no effect"), "{said}");
    done(&repository, "apply --auto-approve --policies=off");
    assert_eq!(acts(&repository), ["apply update a", "apply update b"]);
}

#[test]
fn followups_skip_excluded_stacks() {
    for is_saved in [false, true] {
        let repository = changed("autodeploy = true");
        let said = if is_saved {
            done(&repository, "plan --exclude b -o ../saved");
            done(&repository, "apply ../saved")
        } else {
            done(&repository, "apply --auto-approve --match a --exclude b")
        };
        assert_eq!(endings(&repository), ["/a succeeded"]);
        assert!(said.contains("/b"), "{said}");
        assert_eq!(world(&repository, "b").as_deref(), Some("1"));
    }
}

#[test]
fn followups_that_cannot_be_planned_fail() {
    let cases = [
        ("after = [\"/d\"]", "", "it is part of a cycle"),
        ("", "exit 3", "exit status 3"),
    ];
    for (lines, of_plan, said) in cases {
        let repository = changed("");
        declare(&repository, "/b", lines);
        declare(&repository, "/d", "after = [\"/b\"]\n  tags = [\"new\"]");
        repository.commit();
        if !of_plan.is_empty() {
            hook(&repository, "plan", "b", of_plan);
        }
        log(&repository);
        let output = repository.orch("apply --auto-approve --match a");
        assert!(output.to_string().contains(said), "{lines}: {output}");
        assert_eq!(acts(&repository)[0], "apply update a", "{output}");
    }
}

#[test]
fn followups_check_conditions() {
    // The outputs of a stack with a turn are known, those of others are not.
    let conditions = [
        ("tm_length(terramate.stack.path.absolute) > 9", "too short"),
        ("stacks[\"/c\"].outputs.id == \"1\"", "outputs"),
        ("stacks[\"/a\"].outputs.id == \"1\"", "too short"),
    ];
    for (condition, said) in conditions {
        let repository = changed("");
        let condition = format!(
            "autodeploy = true\n  after = [\"/a\", \"/c\"]\n  lifecycle {{\n    precondition {{\n      condition = {condition}\n      error_message = \"too short\"\n    }}\n  }}"
        );
        declare(&repository, "/b", &condition);
        repository.commit();
        log(&repository);
        let said = fails(&repository, "apply --auto-approve --match a", 1, said);
        assert_eq!(acts(&repository), ["apply update a"], "{said}");
    }
}

#[test]
fn followups_do_not_roll_back() {
    let repository = changed("autodeploy = true");
    let old = repository.git("rev-parse HEAD");
    want(&repository, "/b", "3");
    done(&repository, "apply --auto-approve --match b");
    repository.git(&format!("checkout -q {}", old.trim()));
    log(&repository);
    let said = fails(
        &repository,
        "apply --auto-approve --match a",
        1,
        "HEAD is behind the last applied commit",
    );
    assert_eq!(acts(&repository), ["apply update a"], "{said}");
    assert_eq!(world(&repository, "b").as_deref(), Some("3"));
    want(&repository, "/a", "4");
    done(
        &repository,
        "apply --auto-approve --match a --allow-rollback",
    );
    assert_eq!(world(&repository, "b").as_deref(), Some("2"));
}

#[test]
fn resume_runs_unfinished_followups() {
    // It fails, or `orch` is killed in it.
    for script in ["exit 1", "kill -9 $PPID; exit 1"] {
        let repository = changed("autodeploy = true");
        done(&repository, "plan --match a -o ../saved");
        log(&repository);
        hook(&repository, "apply", "b", script);
        let output = repository.command("apply ../saved").output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        assert_eq!(acts(&repository), ["apply update a", "apply update b"]);
        // What is left open is not "nothing to do".
        fails(&repository, "apply ../saved", 4, "add `--resume`");
        let said = done(&repository, "apply ../saved --resume --policies=off");
        assert!(said.contains("1 follow-up of an earlier run"), "{said}");
        unhook(&repository, "apply", "b");
        let said = done(&repository, "apply ../saved --resume");
        assert_eq!(acts(&repository), ["apply update b"], "{said}");
        assert_eq!(endings(&repository), ["/b succeeded"]);
        assert_eq!(world(&repository, "b").as_deref(), Some("2"));
        let input = sample(&repository, "list", "/b");
        let by = input["run"]["triggered_by"].as_str().unwrap();
        assert!(!by.starts_with("policy/"), "{by}");
        let states = |input: &Value| input["workflow"].as_array().unwrap().len();
        assert_eq!(states(&input), 3, "{input}");
        let said = done(&repository, "apply ../saved --resume");
        assert!(said.contains("nothing to do"), "{said}");
        let (first, second) = (&lines(&repository, "evaluated")[0], "FINISHED");
        assert_eq!(first["state"], second);
    }
}

#[test]
fn resume_counts_a_repeated_followup_once() {
    let open = "autodeploy = true";
    let repository = applied(&[("/a", ""), ("/b", open), ("/c", open)]);
    let next = "trigger[\"/c\"] { input.run.state == \"FINISHED\"; input.stack.id == \"/b\" }\n";
    attach(&repository, "list", &format!("{LIST}{next}"));
    let limit = "orch {\n  config {\n    policies {\n      max_followups = 2\n    }\n  }\n}\n";
    repository.write("/limit.orch.hcl", limit);
    for stack in ["a", "b", "c"] {
        want(&repository, &format!("/{stack}"), "2");
    }
    done(&repository, "plan --match a -o ../saved");
    hook(&repository, "apply", "b", "exit 1");
    for arguments in ["", "--resume", "--resume"] {
        fails(&repository, &format!("apply ../saved {arguments}"), 1, "/b");
    }
    unhook(&repository, "apply", "b");
    done(&repository, "apply ../saved --resume");
    assert_eq!(endings(&repository), ["/b succeeded", "/c succeeded"]);
}

#[test]
fn resume_plans_waiting_followups_of_a_killed_run() {
    let repository = changed("");
    done(&repository, "plan --match a -o ../saved");
    done(&repository, "apply ../saved");
    let (run, _) = last_apply(&repository);
    let file = format!(".orch/runs/{run}/followup.plan");
    repository.remove(&format!("/{file}"));
    let said = done(&repository, "apply ../saved --resume");
    assert!(said.contains(&format!("`orch apply {file}`")), "{said}");
    assert!(!said.contains("nothing to do"), "{said}");
    let said = done(&repository, "apply ../saved --resume");
    assert!(said.contains("nothing to do"), "{said}");
    log(&repository);
    done(&repository, &format!("apply {file}"));
    assert_eq!(acts(&repository), ["apply update b"]);
}

#[test]
fn resume_accepts_changes_by_followups() {
    let repository = applied(&[("/a", "autodeploy = true"), ("/b", "after = [\"/a\"]")]);
    attach(&repository, "retry", RETRY);
    want(&repository, "/b", "2");
    want(&repository, "/a", "2");
    done(&repository, "plan -o ../saved");
    log(&repository);
    hook(&repository, "apply", "a", "exit 1");
    fails(&repository, "apply ../saved", 1, "/a (turn 2): failed");
    assert_eq!(acts(&repository), ["apply update a", "apply update a"]);
    unhook(&repository, "apply", "a");
    done(&repository, "apply ../saved --resume");
    assert_eq!(acts(&repository), ["apply update a", "apply update b"]);
    // What anybody else has done makes it stale.
    want(&repository, "/a", "3");
    done(&repository, "plan -o ../saved");
    hook(&repository, "apply", "a", "exit 1");
    fails(&repository, "apply ../saved", 1, "/a (turn 2): failed");
    fails(&repository, "apply --auto-approve --policies=off", 1, "/a");
    fails(&repository, "apply ../saved --resume", 4, "no longer holds");
}

#[test]
fn resume_repeats_unrecorded_followups() {
    let repository = changed("autodeploy = true");
    done(&repository, "plan --match a -o ../saved");
    hook(&repository, "apply", "b", "kill -9 $PPID");
    log(&repository);
    let output = repository.command("apply ../saved").output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(acts(&repository), ["apply update a", "apply update b"]);
    // The journal was written in time, and the state was not.
    let (run, _) = last_apply(&repository);
    let ended = r#"{"at":"2026-11-23T14:14:50Z","operation":"apply","event":"ended","stack":"/b","outcome":"succeeded","elapsed_ms":6,"attempts":1}"#;
    let journal = journal_of(&run);
    let text = repository.read(&journal);
    repository.write(&journal, format!("{text}{ended}\n"));
    unhook(&repository, "apply", "b");
    done(&repository, "apply ../saved --resume");
    assert_eq!(endings(&repository), ["/b succeeded"]);
    assert_eq!(entry(&repository, "/b")["last"]["outcome"], "succeeded");
}

#[test]
fn resume_continues_after_followups() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    attach(
        &repository,
        "clean",
        "package clean\ntrigger[\"/b\"] { input.run.state == \"FAILED\" }\n",
    );
    want(&repository, "/b", "2");
    done(
        &repository,
        "plan --match a --replace a --allow-destroy=1 -o ../saved",
    );
    log(&repository);
    hook(&repository, "apply", "a", "exit 1");
    fails(&repository, "apply ../saved", 1, "unconfirmed");
    let expected = ["destroy delete a", "apply create a"];
    assert_eq!(acts(&repository), expected);
    let (run, _) = last_apply(&repository);
    let logs = done(&repository, &format!("runs logs {run} /a"));
    assert!(
        !logs.contains("would make 2"),
        "the log of another stack: {logs}"
    );
    let why = done(&repository, &format!("why /b --run {run}"));
    assert!(why.contains("clean"), "{why}");
    unhook(&repository, "apply", "a");
    done(&repository, "apply ../saved --resume");
    assert_eq!(acts(&repository), ["apply create a"]);
}

#[test]
fn policies_see_recorded_stacks_without_turns() {
    let repository = changed("");
    let applied = repository.git("rev-parse HEAD~1").trim().to_owned();
    done(&repository, "apply --auto-approve --match a");
    let input = sample(&repository, "list", "/a");
    let told = input["stacks"].as_array().unwrap().iter();
    let told = told.map(|stack| {
        let hash = stack["tracked_commit"]["hash"].as_str();
        (stack["state"].as_str().unwrap(), hash == Some(&*applied))
    });
    let told: Vec<(&str, bool)> = told.collect();
    assert_eq!(
        told,
        [("FINISHED", false), ("FINISHED", true), ("FINISHED", true)]
    );
    assert_eq!(input["stack"]["tracked_commit"], input["run"]["commit"]);
}

#[test]
fn followups_are_planned_without_a_state() {
    let repository = project(&[("/a", ""), ("/b", "")]);
    attach(&repository, "list", LIST);
    repository.commit();
    done(&repository, "plan --match a -o ../saved");
    log(&repository);
    let said = done(&repository, "apply ../saved");
    assert_eq!(endings(&repository), ["/a succeeded", "/b unconfirmed"]);
    assert!(!said.contains("keeps no state"), "it is known: {said}");
    assert_eq!(acts(&repository), ["apply create a"]);
    let (run, _) = last_apply(&repository);
    let file = format!(".orch/runs/{run}/followup.plan");
    done(&repository, &format!("apply {file}"));
    assert_eq!(world(&repository, "b").as_deref(), Some("1"));
}
