//! `orch run --policies`: what follows a turn, and what is told of it.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Output, Sandbox, journal};

/// Four stacks with ids, and a command that leaves a line for each turn in `log`.
pub(super) fn sandbox(policies: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new("");
    for (id, labels) in [("one", ""), ("two-a", ""), ("two-b", ""), ("three", "")] {
        let text = format!("stack {{\n  id = \"{id}\"\n  labels = [{labels}]\n}}\n");
        sandbox.write(&format!("/{id}/stack.orch.hcl"), text);
    }
    for (name, text) in policies {
        sandbox.write(&format!("/policies/{name}.rego"), text);
        let block =
            format!("policy \"trigger\" \"{name}\" {{ file = \"policies/{name}.rego\" }}\n");
        sandbox.write(&format!("/{name}.orch.hcl"), block);
    }
    // Fails as often as a file says.
    sandbox.write_program(
        "/do",
        "#!/bin/sh\necho \"$ORCH_STACK_PATH $ORCH_TURN ${ORCH_POLICY-}\" >> ../log\n\
         n=$(cat fails 2>/dev/null || echo 0)\n\
         [ \"$n\" -gt 0 ] || exit 0\necho $((n - 1)) > fails\nexit 1\n",
    );
    sandbox
}

/// The turns that ran, in order: the stack, the number of the turn, the policy.
pub(super) fn turns(sandbox: &Sandbox) -> Vec<String> {
    let log = sandbox.read("/log");
    log.lines().map(|line| line.trim().to_owned()).collect()
}

pub(super) fn run(sandbox: &Sandbox, arguments: &str) -> Output {
    sandbox.orch(&format!("run {arguments} -- ../do"))
}

/// The lines of a kind in the journal of the last run.
pub(super) fn lines(sandbox: &Sandbox, event: &str) -> Vec<Value> {
    let lines = journal(sandbox).into_iter().skip(1);
    lines.filter(|line| line["event"] == event).collect()
}

pub(super) const LIST: &str = r#"
package list
trigger["two-a"] { done }
trigger["two-b"] { done }
done { input.run.state == "FINISHED"; input.run.type == "TRACKED"; input.stack.id == "one" }
"#;

const JOIN: &str = r#"
package join
has_finished(id) { input.workflow[i].stack_id == id; input.workflow[i].state == "FINISHED" }
trigger["three"] { has_finished("two-a"); has_finished("two-b"); startswith(input.stack.id, "two") }
"#;

pub(super) const RETRY: &str = r#"
package retry
import rego.v1
trigger contains input.stack.id if { input.run.state == "FAILED"; input.run.triggered_by == null }
"#;

#[test]
fn follow_ups_need_no_selection_and_a_join_waits_for_both() {
    for jobs in [1, 2] {
        let sandbox = sandbox(&[("list", LIST), ("join", JOIN)]);
        let ran = run(&sandbox, &format!("--policies --match /one -j {jobs}"));
        assert_eq!(ran.code(), 0, "{ran}");
        let mut ran = turns(&sandbox);
        ran[1..3].sort();
        assert_eq!(
            ran,
            ["/one 1", "/two-a 2 list", "/two-b 3 list", "/three 4 join"]
        );
    }
}

#[test]
fn follow_ups_are_off_without_policies() {
    let sandbox = sandbox(&[("list", "this is no Rego")]);
    assert_eq!(run(&sandbox, "--match /one").code(), 0);
    assert_eq!(turns(&sandbox), ["/one"]);
    assert_eq!(run(&sandbox, "--policies=off").code(), 0);
    assert_eq!(run(&sandbox, "--policies").code(), 3);
}

#[test]
fn follow_ups_that_do_not_start_are_summarized_in_one_line() {
    let all = "package all\n\
        trigger[s.id] { s := input.stacks[_]; startswith(s.id, \"/s\") }\n\
        trigger[name] { some i; name := sprintf(\"nobody-%d\", [[1, 2, 3, 4, 5, 6][i]]) }\n";
    let sandbox = sandbox(&[("all", all)]);
    let settings = "orch {\n  config {\n    policies {\n      max_followups = 1\n    }\n  }\n}\n";
    sandbox.write("/limits.orch.hcl", settings);
    for number in 1..=8 {
        sandbox.write(&format!("/s{number}/stack.orch.hcl"), "stack {\n}\n");
    }
    let ran = run(&sandbox, "--policies --match /one");
    assert_eq!(ran.code(), 1, "{ran}");
    let said = ran.to_string();
    let count = |what: &str| said.matches(what).count();
    assert_eq!(
        count(
            "warning: policy `all` asks for `nobody-1`, `nobody-2`, `nobody-3` and 3 more after /one, but no stack has these ids or paths"
        ),
        1,
        "{ran}"
    );
    assert_eq!(
        count(
            "error: /s2, /s3, /s4 and 4 more do not follow /one: they would exceed `max_followups = 1`"
        ),
        1,
        "{ran}"
    );
    let shown = sandbox.orch("runs show").stdout;
    let problem = "/s2, /s3, /s4 and 4 more did not follow /one, policy all: they would exceed `max_followups`";
    assert!(shown.contains(problem), "{shown}");
}

#[test]
fn follow_ups_retry_a_failed_turn_once_while_its_dependents_wait() {
    let sandbox = sandbox(&[("retry", RETRY)]);
    sandbox.write("/one/fails", "1");
    sandbox.write(
        "/three/stack.orch.hcl",
        "stack {\n  after = [\"/one\"]\n}\n",
    );
    let ran = run(&sandbox, "--policies --match /one --match /three");
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(turns(&sandbox), ["/one 1", "/one 3 retry", "/three 2"]);
    let said = ran.to_string();
    assert!(said.contains("orch: retried /one: exit status 1"), "{ran}");
    assert!(said.contains("orch: 2 succeeded, 1 retried in"), "{ran}");

    sandbox.remove("/log");
    sandbox.write("/one/fails", "2");
    let ran = run(&sandbox, "--policies --match /one --match /three");
    assert_eq!(ran.code(), 1, "a retry is not retried: {ran}");
    let counted = "orch: 0 succeeded, 1 failed, 1 retried, 1 cancelled in";
    assert!(ran.to_string().contains(counted), "{ran}");
    assert_eq!(turns(&sandbox), ["/one 1", "/one 3 retry"]);
}

#[test]
fn follow_ups_of_a_failure_run_despite_on_error() {
    let clean = r#"
package clean
trigger["three"] { input.run.state == "FAILED" }
trigger["two-b"] { input.stack.id == "three" }
"#;
    for mode in ["stop", "skip-dependents", "continue"] {
        let sandbox = sandbox(&[("clean", clean)]);
        sandbox.write("/one/fails", "1");
        sandbox.write(
            "/three/stack.orch.hcl",
            "stack {\n  id = \"three\"\n  after = [\"/one\"]\n}\n",
        );
        let ran = run(
            &sandbox,
            &format!("--policies --match /one --match /two-a --on-error {mode}"),
        );
        assert_eq!(ran.code(), 1, "{ran}");
        let ran = turns(&sandbox);
        let answers: Vec<&String> = ran.iter().filter(|turn| turn.contains("clean")).collect();
        assert_eq!(answers, ["/three 3 clean", "/two-b 4 clean"], "{mode}");
        assert_eq!(
            ran.iter().any(|turn| turn == "/two-a 2"),
            mode != "stop",
            "{mode}"
        );
    }
}

#[test]
fn follow_ups_reuse_a_waiting_turn() {
    let clean = "package clean\ntrigger[\"two-a\"] { input.run.state == \"FAILED\" }\n";
    let sandbox = sandbox(&[("clean", clean)]);
    sandbox.write("/one/fails", "1");
    let ran = run(
        &sandbox,
        "--policies --match /one --match /two-a --match /two-b",
    );
    assert_eq!(ran.code(), 1, "{ran}");
    assert_eq!(turns(&sandbox), ["/one 1", "/two-a 2 clean"]);
    let evaluated = &lines(&sandbox, "evaluated")[0];
    assert_eq!(
        evaluated["joined"],
        json!([{"stack": "/two-a", "policies": ["clean"]}])
    );
    assert_eq!(evaluated.get("queued"), None);
}

#[test]
fn follow_ups_are_evaluated_for_cancelled_turns() {
    let canceled = r#"
package canceled
trigger["three"] { input.run.state == "CANCELED" }
"#;
    let sandbox = sandbox(&[("canceled", canceled)]);
    sandbox.write("/one/fails", "1");
    let ran = run(&sandbox, "--policies --match /one --match /two-a");
    assert_eq!(ran.code(), 1, "{ran}");
    assert_eq!(turns(&sandbox), ["/one 1", "/three 3 canceled"]);
}

#[test]
fn follow_ups_in_a_loop_end_at_a_limit() {
    let again = "package again\ntrigger[input.stack.id] { true }\n";
    let sandbox = sandbox(&[("again", again)]);
    let ran = run(&sandbox, "--policies --match /one");
    assert_eq!(ran.code(), 1);
    assert_eq!(turns(&sandbox).len(), 5);
    let error = ran.stderr.lines().find(|line| line.starts_with("error"));
    assert_snapshot!(error.unwrap(), @"error: /one does not follow /one (turn 5): it would exceed `max_turns = 5` of `config.policies`: /one ← again ← /one ← again ← /one ← again ← /one ← again ← /one ← again ← /one");

    sandbox.remove("/log");
    sandbox.write(
        "/limits.orch.hcl",
        "orch {\n  config {\n    policies {\n      max_followups = 2\n    }\n  }\n}\n",
    );
    let ran = run(&sandbox, "--policies --match /one");
    assert_eq!(ran.code(), 1);
    assert_eq!(turns(&sandbox).len(), 3);
    assert!(ran.stderr.contains("`max_followups = 2`"), "{ran}");
}

#[test]
fn follow_ups_do_not_include_turns_that_were_due_anyway() {
    let sandbox = sandbox(&[("list", LIST), ("join", JOIN)]);
    sandbox.write(
        "/limits.orch.hcl",
        "orch {\n  config {\n    policies {\n      max_followups = 1\n    }\n  }\n}\n",
    );
    let ran = run(
        &sandbox,
        "--policies --match /one --match /two-a --match /two-b",
    );
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(turns(&sandbox)[3], "/three 4 join");
}

#[test]
fn follow_ups_skip_unknown_and_excluded_stacks() {
    let names = r#"
package names
trigger["nobody"] { input.stack.id == "one" }
trigger["three"] { input.stack.id == "one" }
trigger["/two-a"] { input.stack.id == "one" }
trigger["TWO-B"] { input.stack.id == "one" }
"#;
    let sandbox = sandbox(&[("names", names)]);
    let ran = run(&sandbox, "--policies --match /one --exclude /three");
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(
        turns(&sandbox),
        ["/one 1", "/two-a 2 names", "/two-b 3 names"]
    );
    let told: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.contains("asks for"))
        .collect();
    assert_snapshot!(told.join("\n"), @"
    warning: policy `names` asks for `nobody` after /one, but no stack has that id or path
    orch: policy `names` asks for /three after /one, but `--exclude` leaves it out
    ");
}

#[test]
fn follow_ups_take_paths_without_a_slash_and_reject_ambiguous_names() {
    let names = r#"
package names
trigger["plain"] { input.stack.id == "one" }
trigger["three"] { input.stack.id == "one" }
"#;
    let sandbox = sandbox(&[("names", names)]);
    sandbox.write("/plain/stack.orch.hcl", "stack {\n}\n");
    let ran = run(&sandbox, "--policies --match /one");
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(
        turns(&sandbox),
        ["/one 1", "/plain 2 names", "/three 3 names"]
    );
    // The id of a stack is the path of another one.
    sandbox.write("/three/stack.orch.hcl", "stack {\n}\n");
    sandbox.write("/other/stack.orch.hcl", "stack {\n  id = \"three\"\n}\n");
    let ran = run(&sandbox, "--policies --match /one");
    assert_eq!(ran.code(), 1, "{ran}");
    let problem = "error: policy `names` asks for `three` after /one, but that is the id of /other and the path of /three\n";
    assert!(ran.stderr.contains(problem), "{ran}");
    let dropped = &lines(&sandbox, "evaluated")[0]["dropped"][0];
    assert_eq!(
        (&dropped["name"], &dropped["why"]),
        (&json!("three"), &json!("ambiguous"))
    );
    let shown = sandbox.orch("runs show");
    assert!(
        shown
            .stdout
            .contains("the id of one stack is the path of another"),
        "{shown}"
    );
    let graph = sandbox.orch("policy graph");
    let warning =
        "names `three` after `/one`, but that is the id of one stack and the path of another";
    assert!(graph.stderr.contains(warning), "{graph}");
}

#[test]
fn follow_ups_journal_prints_and_show_them_with_v() {
    let talks = r#"
package talks
trigger["three"] { input.stack.id == "one"; print("saw", input.run.state) }
"#;
    let sandbox = sandbox(&[("talks", talks)]);
    let ran = run(&sandbox, "--policies --match /one");
    assert!(!ran.stderr.contains("saw FINISHED"), "{ran}");
    let printed = &lines(&sandbox, "evaluated")[0]["policies"][0]["prints"];
    assert_eq!(printed, &json!(["policies/talks.rego:3: saw FINISHED"]));
    let ran = run(&sandbox, "-v --policies --match /one");
    assert!(ran.stderr.contains("saw FINISHED"), "{ran}");
}

#[test]
fn follow_ups_of_a_failed_policy_are_ignored_and_the_run_fails() {
    let wrong = r#"
package wrong
trigger["three"] { true }
flag := 1
"#;
    let sandbox = sandbox(&[("wrong", wrong)]);
    let ran = run(&sandbox, "--policies --match /one");
    assert_eq!(ran.code(), 1);
    assert_eq!(turns(&sandbox), ["/one 1"]);
    assert!(
        ran.stderr.contains(
            "error: policy `wrong` failed after /one: policies/wrong.rego: `flag` must be"
        ),
        "{ran}"
    );
    let block = "policy \"trigger\" \"wrong\" {\n  file = \"policies/wrong.rego\"\n  on_error = \"ignore\"\n}\n";
    sandbox.write("/wrong.orch.hcl", block);
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 0);
}

#[test]
fn follow_ups_of_the_same_stack_get_flags_and_count_retries() {
    let counted = r#"
package counted
import rego.v1
tries := count([one | some one in input.run.flags; startswith(one, "try:")])
again if { input.run.state == "FAILED"; tries < 2 }
trigger contains input.stack.id if again
flag contains sprintf("try:%d", [tries + 1]) if again
trigger contains "three" if { input.run.state == "FINISHED"; input.stack.id == "one" }
flag contains "kept" if { input.stack.id == "one"; input.run.state == "FINISHED" }
reset_flag contains "kept" if input.stack.id == "three"
"#;
    let sandbox = sandbox(&[("counted", counted)]);
    sandbox.write("/one/fails", "5");
    let ran = run(&sandbox, "--policies --match /one");
    assert_eq!(ran.code(), 1);
    assert_eq!(
        turns(&sandbox),
        ["/one 1", "/one 2 counted", "/one 3 counted"]
    );

    sandbox.remove("/log");
    sandbox.write("/one/fails", "1");
    let ran = run(&sandbox, "--policies --match /one");
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(
        turns(&sandbox),
        ["/one 1", "/one 2 counted", "/three 3 counted"]
    );
}

#[test]
fn follow_ups_of_a_task_need_a_tracked_command() {
    let task = r#"
package task
trigger["three"] { input.run.type == "TASK" }
trigger["two-a"] { input.run.type == "TRACKED"; input.stack.id == "three" }
"#;
    let sandbox = sandbox(&[("task", task)]);
    assert_eq!(run(&sandbox, "--policies=task --match /one").code(), 64);
    let ran = run(
        &sandbox,
        "--policies=task --followup '../do apply' --match /one",
    );
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(
        turns(&sandbox),
        ["/one 1", "/three 2 task", "/two-a 3 task"]
    );
    for refused in ["--policies --reverse", "--followup x", "--metadata x"] {
        assert_eq!(run(&sandbox, refused).code(), 64, "{refused}");
    }
    for destroys in [
        "run --policies -- terraform destroy",
        "run --policies --followup 'terraform apply -destroy' -- true",
        "run --policies --no-record -- terraform destroy",
        "run --policies --record=apply -- terraform destroy",
        "run --policies --eval -- terraform '${tm_lower(\"DESTROY\")}'",
        "run --policies --dry-run --no-record --eval -- terraform '${tm_lower(\"DESTROY\")}'",
    ] {
        let refused = sandbox.orch(destroys);
        assert_eq!(refused.code(), 64, "{destroys}: {refused}");
        assert!(refused.stderr.contains("would be destroyed"), "{refused}");
    }
}

#[test]
fn follow_ups_never_destroy_an_unselected_stack() {
    let ask = "package ask\ntrigger[\"three\"] { input.stack.id == \"one\" }\n";
    let sandbox = sandbox(&[("ask", ask)]);
    sandbox.write_program(
        "/bin/terraform",
        "#!/bin/sh\necho \"$PWD $*\" >> ../asked\n",
    );
    let environment = "orch {\n  config {\n    run {\n      env {\n        TF_CLI_ARGS_apply = \"-destroy\"\n      }\n    }\n  }\n}\n";
    sandbox.write("/three/env.orch.hcl", environment);
    let evaluated = "--eval -- ../bin/terraform '${terramate.stack.name == \"three\" ? \"destroy\" : \"apply\"}'";
    for command in ["-- ../bin/terraform apply", evaluated] {
        let ran = sandbox.orch(&format!(
            "run --policies --no-record --match /one {command}"
        ));
        assert_eq!(ran.code(), 1, "{ran}");
        assert!(
            ran.stderr
                .contains("it would destroy, and no follow-up may do that"),
            "{ran}"
        );
        let asked = sandbox.read("/asked");
        assert!(
            asked.contains("/one ") && !asked.contains("/three "),
            "{asked}"
        );
    }
}

#[test]
fn follow_ups_are_announced_with_their_command() {
    let ask = "package ask\ntrigger[\"three\"] { input.stack.id == \"one\" }\n";
    let sandbox = sandbox(&[("ask", ask)]);
    let command = "--eval -- ../do '${terramate.stack.name}'";
    let ran = sandbox.orch(&format!("run --policies --match /one {command}"));
    assert!(ran.stderr.contains("orch: /three: ../do three\n"), "{ran}");
    let shown = sandbox.orch(&format!("run --policies --dry-run --match /one {command}"));
    assert_eq!(
        shown.stdout,
        "/one: ../do one\n/three: ../do three  (policy ask)\n"
    );
}

#[test]
fn follow_ups_fail_where_a_run_would_be_refused() {
    let ask = "package ask\ntrigger[\"three\"] { input.stack.id == \"one\" }\n";
    let sandbox = sandbox(&[("ask", ask)]);
    let ran = run(
        &sandbox,
        "--policies --match /one --followup 'no-such-program'",
    );
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr.contains("no-such-program"), "{ran}");
    sandbox.write(
        "/three/env.orch.hcl",
        "orch {\n  config {\n    run {\n      env {\n        A = env.NOT_SET\n      }\n    }\n  }\n}\n",
    );
    let ran = run(&sandbox, "--policies --match /one");
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr.contains("NOT_SET"), "{ran}");
}

#[test]
fn follow_ups_are_journaled_with_policy_results() {
    let sandbox = sandbox(&[("list", LIST), ("join", JOIN)]);
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 0);
    let mut evaluated = lines(&sandbox, "evaluated");
    for line in &mut evaluated {
        line.as_object_mut().unwrap().remove("at");
        for policy in line["policies"].as_array_mut().unwrap() {
            policy["elapsed_ms"] = json!(0);
        }
    }
    let nothing = json!({"policy": "list", "elapsed_ms": 0});
    assert_eq!(
        evaluated[0],
        json!({
            "event": "evaluated", "stack": "/one", "state": "FINISHED",
            "policies": [
                {"policy": "join", "elapsed_ms": 0},
                {"policy": "list", "trigger": ["two-a", "two-b"], "elapsed_ms": 0},
            ],
            "queued": [
                {"stack": "/two-a", "policies": ["list"]},
                {"stack": "/two-b", "policies": ["list"]},
            ],
        })
    );
    assert_eq!(
        evaluated[1]["policies"],
        json!([{"policy": "join", "elapsed_ms": 0}, nothing])
    );
    let added = lines(&sandbox, "added");
    assert_eq!(
        added[2]["follows"],
        json!({"policies": ["join"], "stack": "/two-b"})
    );
}

#[test]
fn follow_ups_are_shown_by_a_dry_run() {
    let sandbox = sandbox(&[("list", LIST), ("join", JOIN), ("retry", RETRY)]);
    let ran = sandbox.orch("run --policies --match /one --dry-run --followup '../do it' -- ../do");
    assert_snapshot!(ran, @"
    /one: ../do
    /two-a: ../do it  (policy list)
    /two-b: ../do it  (policy list)
    /three: ../do it  (policy join)
    ");
    assert_eq!(turns(&sandbox).len(), 0);
}

#[test]
fn follow_ups_report_causes_back_to_the_first_turn() {
    let sandbox = sandbox(&[("list", LIST), ("join", JOIN)]);
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 0);
    let why = sandbox.orch("why /three --run last").stdout;
    let causes: Vec<&str> = why.lines().skip(1).collect();
    assert_eq!(
        causes,
        ["  follows /two-b: FINISHED, policy join, which followed /one: FINISHED, policy list"]
    );
    let shown = sandbox.orch("runs show").stdout;
    assert!(
        shown.contains("follows /one: FINISHED, policy list"),
        "{shown}"
    );
    let json = sandbox.orch("runs show --format json").json();
    assert_eq!(json["evaluated"][0]["stack"], "/one");
    let why = sandbox.orch("why /one").stdout;
    assert!(
        why.contains("its policies\n  join (policies/join.rego)\n  list (policies/list.rego)\n"),
        "{why}"
    );
}

#[test]
fn follow_ups_have_logs_of_their_own() {
    let sandbox = sandbox(&[("retry", RETRY)]);
    sandbox.write("/one/fails", "1");
    let command =
        "run --policies --match /one --output grouped -- sh -c 'echo turn $ORCH_TURN; ../do'";
    assert_eq!(sandbox.orch(command).code(), 0);
    let logs = sandbox.orch("runs logs");
    assert_eq!(logs.stdout, "turn 1\nturn 2\n");
}

#[test]
fn follow_ups_are_not_announced_with_quiet() {
    let sandbox = sandbox(&[("list", LIST)]);
    let ran = run(&sandbox, "--policies --match /one --quiet");
    assert_eq!((ran.code(), &*ran.stderr), (0, ""));
}

#[test]
fn policy_samples_keep_an_input_for_a_later_evaluation() {
    let text = r#"
package sampled
import rego.v1
sample := input.stack.id == "one"
trigger contains "three" if { input.stack.id == "one"; count(input.stacks) == 4; count(input.workflow) == 1 }
"#;
    let sandbox = sandbox(&[("sampled", text)]);
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 0);
    let kept = sandbox.orch("policy samples").stdout;
    let ids: Vec<&str> = kept
        .split_whitespace()
        .filter(|it| it.ends_with(".sampled"))
        .collect();
    assert_eq!(ids.len(), 1, "{kept}");
    assert!(ids[0].ends_with(".1.sampled"), "{kept}");
    let again = sandbox.orch(&format!("policy eval sampled --sample {}", ids[0]));
    assert_eq!(again.stdout, "trigger: three\nsample: true\n", "{again}");
    let input = sandbox.orch(&format!("policy input --sample {}", ids[0]));
    assert_eq!(input.json()["stack"]["id"], "one", "{input}");
}

#[test]
fn follow_ups_without_policies_get_a_note() {
    let ran = run(&sandbox(&[]), "--policies --match /one");
    assert_eq!(ran.code(), 0);
    let note = "note: no policy is attached to any stack, so nothing follows\n";
    assert!(ran.stderr.starts_with(note), "{ran}");
}

#[test]
fn follow_ups_of_applies_can_be_turned_on_in_the_configuration() {
    let sandbox = sandbox(&[("list", LIST)]);
    sandbox.write(
        "/policies.orch.hcl",
        "orch {\n  config {\n    policies {\n      run = \"tracked\"\n    }\n  }\n}\n",
    );
    sandbox.write_program(
        "/bin/terraform",
        "#!/bin/sh\necho \"$1 $ORCH_STACK_ID\" >> \"$ORCH_ROOT/log\"\n",
    );
    let with_tool = |arguments: &str| {
        let path = sandbox.path("/bin");
        let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
        let ran = sandbox.orch_with(arguments, |command| _ = command.env("PATH", path));
        assert_eq!(ran.code(), 0, "{ran}");
        let ran = turns(&sandbox);
        sandbox.remove("/log");
        ran
    };
    assert_eq!(
        with_tool("run --match /one -- terraform plan"),
        ["plan one"]
    );
    assert_eq!(
        with_tool("run --match /one -- terraform apply -auto-approve"),
        ["apply one", "apply two-a", "apply two-b"]
    );
    assert_eq!(
        with_tool("run --match /one --policies=off -- terraform apply"),
        ["apply one"]
    );
}
