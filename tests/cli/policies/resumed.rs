//! `orch run --resume` with policies: the workflow goes on.

use serde_json::{Value, json};

use super::followed::{LIST, RETRY, lines, run, sandbox, turns};
use crate::support::{Sandbox, journal, journal_of, run_ids};

const AGAIN: &str = r#"
package again
trigger["two-a"] { input.stack.id == "one"; input.run.state == "FINISHED" }
trigger["three"] { input.stack.id == "two-a"; input.run.state == "FINISHED" }
"#;

fn resume(sandbox: &Sandbox, arguments: &str) -> crate::support::Output {
    sandbox.orch(&format!("run --resume last {arguments}"))
}

/// Cuts the journal of the newest run behind the first line of which this is true, as if `orch` had been
/// killed then.
pub(crate) fn kill_behind(sandbox: &Sandbox, is_last: impl Fn(&Value) -> bool) {
    let run = run_ids(sandbox).pop().unwrap();
    let text = sandbox.read(&journal_of(&run));
    let mut kept = String::new();
    for line in text.lines() {
        kept += &format!("{line}\n");
        if is_last(&serde_json::from_str(line).unwrap()) {
            break;
        }
    }
    assert!(kept.len() < text.len(), "nothing was cut");
    sandbox.write(&journal_of(&run), kept);
}

#[test]
fn resume_retries_a_failed_follow_up_and_starts_its_follow_ups() {
    let sandbox = sandbox(&[("again", AGAIN)]);
    sandbox.write("/two-a/fails", "1");
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 1);
    assert_eq!(turns(&sandbox), ["/one 1", "/two-a 2 again"]);
    sandbox.remove("/log");
    let ran = resume(&sandbox, "");
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(turns(&sandbox), ["/two-a 1", "/three 2 again"]);
    let header = &journal(&sandbox)[0];
    let first = run_ids(&sandbox)[0].clone();
    assert_eq!(header["policies"]["workflow"], first);
    assert_eq!(header["policies"]["as"], "tracked");
    assert_eq!(header["policies"]["asked"][0]["follows"], true);
}

#[test]
fn resume_reports_causes_back_to_the_first_run() {
    let sandbox = sandbox(&[("again", AGAIN)]);
    sandbox.write("/two-a/fails", "2");
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 1);
    assert_eq!(resume(&sandbox, "").code(), 1);
    let resumed = resume(&sandbox, "--report ../at-once.json");
    assert_eq!(resumed.code(), 0, "{resumed}");
    let first = run_ids(&sandbox)[0].clone();
    let why = |stack: &str| sandbox.orch(&format!("why {stack} --run last")).stdout;
    let of_one = format!("/one in run {first}: FINISHED, policy again");
    let last = why("/two-a");
    assert!(last.contains(&format!("  follows {of_one}\n")), "{last}");
    let last = why("/three");
    let line = format!("  follows /two-a: FINISHED, policy again, which followed {of_one}\n");
    assert!(last.contains(&line), "{last}");
    assert!(sandbox.orch("runs show").stdout.contains(&line));
    // A report that is written at once says the same as one that is written later.
    let later = sandbox.orch("runs report --report ../later.json");
    assert_eq!(later.code(), 0, "{later}");
    let read = |name: &str| std::fs::read_to_string(sandbox.outside().join(name)).unwrap();
    assert_eq!(read("at-once.json"), read("later.json"));
    assert!(read("later.json").contains(&format!("\"run\": \"{first}\"")));
}

#[test]
fn resume_warns_of_a_policy_that_failed_earlier() {
    let wrong = "package wrong\nflag := 1\n";
    let sandbox = sandbox(&[("wrong", wrong)]);
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 1);
    let first = run_ids(&sandbox)[0].clone();
    let warning = format!(
        "warning: a policy failed or a limit was reached in run {first}: `orch runs show {first}` lists"
    );
    let ran = resume(&sandbox, "");
    assert_eq!(ran.code(), 0, "{ran}");
    assert!(ran.stderr.contains(&warning), "{ran}");
    // What may be ignored is no trouble.
    let ignored = "policy \"trigger\" \"wrong\" {\n  file = \"policies/wrong.rego\"\n  on_error = \"ignore\"\n}\n";
    sandbox.write("/wrong.orch.hcl", ignored);
    let ran = resume(&sandbox, "");
    assert_eq!(ran.code(), 0, "{ran}");
    assert!(!ran.stderr.contains("warning"), "{ran}");
}

#[test]
fn resume_does_not_count_a_rerun_as_a_retry() {
    let sandbox = sandbox(&[("retry", RETRY)]);
    sandbox.write("/one/fails", "9");
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 1);
    assert_eq!(turns(&sandbox), ["/one 1", "/one 2 retry"]);
    sandbox.remove("/log");
    let ran = resume(&sandbox, "");
    assert_eq!(ran.code(), 1, "{ran}");
    assert_eq!(turns(&sandbox), ["/one 1"]);
}

#[test]
fn resume_first_evaluates_turns_that_were_not_evaluated() {
    let sandbox = sandbox(&[("again", AGAIN), ("list", LIST)]);
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 0);
    kill_behind(&sandbox, |line| line["event"] == "ended");
    sandbox.remove("/log");
    let ran = resume(&sandbox, "");
    assert_eq!(ran.code(), 0, "{ran}");
    // What comes first of the last two is up to how long policies take.
    let mut ran = turns(&sandbox);
    ran.sort();
    assert_eq!(
        ran,
        ["/three 3 again", "/two-a 1 again,list", "/two-b 2 list"]
    );
    let first = run_ids(&sandbox)[0].clone();
    let evaluated = &lines(&sandbox, "evaluated")[0];
    assert_eq!(evaluated["run"], first);
    assert_eq!(evaluated["stack"], "/one");
    // Once is enough.
    sandbox.remove("/log");
    assert_eq!(resume(&sandbox, "").code(), 0);
    assert!(turns(&sandbox).is_empty());
}

#[test]
fn resume_keeps_a_sample_with_the_run_of_its_turn() {
    let sampled =
        "package sampled\nsample { true }\ntrigger[\"two-a\"] { input.stack.id == \"one\" }\n";
    let sandbox = sandbox(&[("sampled", sampled)]);
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 0);
    kill_behind(&sandbox, |line| line["event"] == "ended");
    assert_eq!(resume(&sandbox, "").code(), 0);
    for (run, stack) in run_ids(&sandbox).iter().zip(["one", "two-a"]) {
        let sample = format!("/.orch/runs/{run}/samples/1.sampled.json");
        let input: Value = serde_json::from_str(&sandbox.read(&sample)).unwrap();
        assert_eq!(input["run"]["id"], format!("{run}.1"));
        assert_eq!(input["stack"]["id"], stack);
    }
}

#[test]
fn resume_replaces_a_sample_of_an_unrecorded_evaluation() {
    // A kill lets turns be skipped: then one policy wants no sample, and the other one fails.
    let unsampled = "package unsampled\nsample { count(skipped) == 0 }\n\
        skipped[turn.stack_id] { turn := input.workflow[_]; turn.state == \"SKIPPED\" }\n";
    let failing =
        "package failing\nsample { true }\nflag[1] { input.workflow[_].state == \"SKIPPED\" }\n";
    let sandbox = sandbox(&[("unsampled", unsampled), ("failing", failing)]);
    let ran = run(&sandbox, "--policies --match /one --match /three");
    assert_eq!(ran.code(), 0, "{ran}");
    let run = run_ids(&sandbox).pop().unwrap();
    let samples = || sandbox.orch(&format!("policy samples {run}")).stdout;
    let of_one = |policy: &str| samples().contains(&format!("{run}.1.{policy}"));
    assert!(of_one("unsampled") && of_one("failing"), "{}", samples());
    kill_behind(&sandbox, |line| line["event"] == "ended");
    let resumed = resume(&sandbox, "");
    assert_eq!(resumed.code(), 1, "{resumed}");
    let is_left = of_one("unsampled") || of_one("failing");
    assert!(!is_left, "{}", samples());
}

#[test]
fn resume_keeps_the_cause_of_a_turn_that_was_due_anyway() {
    let sandbox = sandbox(&[("again", AGAIN)]);
    let after = "stack {\n  id    = \"two-a\"\n  after = [\"/one\"]\n}\n";
    sandbox.write("/two-a/stack.orch.hcl", after);
    let arguments = "--policies --match /one --match /two-a";
    assert_eq!(run(&sandbox, arguments).code(), 0);
    kill_behind(&sandbox, |line| line["event"] == "evaluated");
    sandbox.remove("/log");
    assert_eq!(resume(&sandbox, "").code(), 0);
    assert_eq!(turns(&sandbox), ["/two-a 1 again", "/three 2 again"]);
    let first = run_ids(&sandbox)[0].clone();
    let why = sandbox.orch("why /two-a --run last");
    let expected = format!("follows /one in run {first}: FINISHED, policy again");
    assert!(why.stdout.contains(&expected), "{why}");
}

#[test]
fn resume_dry_run_shows_follow_ups_of_finished_turns() {
    let sandbox = sandbox(&[("again", AGAIN)]);
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 0);
    kill_behind(&sandbox, |line| line["event"] == "ended");
    let shown = resume(&sandbox, "--dry-run");
    let lines: Vec<&str> = shown.stdout.lines().collect();
    let expected = [
        "/two-a: ../do  (policy again)",
        "/three: ../do  (policy again)",
    ];
    assert_eq!(lines, expected, "{shown}");
}

#[test]
fn resume_without_policies_warns_of_unevaluated_turns() {
    let sandbox = sandbox(&[("again", AGAIN)]);
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 0);
    kill_behind(&sandbox, |line| line["event"] == "ended");
    let ran = resume(&sandbox, "--policies=off");
    assert_eq!(ran.code(), 0, "{ran}");
    let warning = "warning: the policies of 1 turn were not evaluated";
    assert!(ran.stderr.contains(warning), "{ran}");
    assert!(ran.stderr.contains("nothing to resume"), "{ran}");
}

#[test]
fn resume_keeps_the_command_of_a_follow_up() {
    let sandbox = sandbox(&[("again", AGAIN)]);
    sandbox.write("/two-a/fails", "1");
    let arguments = "--policies --followup '../do apply' --match /one";
    assert_eq!(run(&sandbox, arguments).code(), 1);
    let refused = resume(&sandbox, "--policies=off");
    assert_eq!(refused.code(), 64, "{refused}");
    assert!(
        refused.stderr.contains("`/two-a` cannot be resumed"),
        "{refused}"
    );
    let ran = resume(&sandbox, "");
    assert_eq!(ran.code(), 0, "{ran}");
    assert!(ran.stderr.contains("orch: /two-a: ../do apply\n"), "{ran}");
}

#[test]
fn resume_keeps_the_cause_and_command_of_a_queued_turn() {
    let sandbox = sandbox(&[("again", AGAIN)]);
    let arguments = "--policies --followup '../do apply' --match /one";
    assert_eq!(run(&sandbox, arguments).code(), 0);
    kill_behind(&sandbox, |line| line["event"] == "evaluated");
    sandbox.remove("/log");
    let ran = resume(&sandbox, "");
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(turns(&sandbox), ["/two-a 1 again", "/three 2 again"]);
    let asked = &journal(&sandbox)[0]["policies"]["asked"];
    let expected =
        json!([{"stack": "/two-a", "by": "policy/again", "kept": true, "follows": true}]);
    assert_eq!(*asked, expected);
}

#[test]
fn resume_treats_an_added_turn_without_a_recorded_cause_as_a_follow_up() {
    let sandbox = sandbox(&[("again", AGAIN)]);
    let arguments = "--policies=task --followup 'sh -c \"echo follow-up >> ../log\"' --match /one";
    assert_eq!(run(&sandbox, arguments).code(), 0);
    kill_behind(&sandbox, |line| line["event"] == "added");
    sandbox.remove("/log");
    let ran = resume(&sandbox, "");
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(turns(&sandbox), ["follow-up", "follow-up"]);
}

#[test]
fn resume_keeps_the_cause_of_an_added_turn_if_its_policy_has_changed() {
    // A kill lets the turn that was added be skipped.
    let once = "package once\ntrigger[\"two-a\"] { input.stack.id == \"one\"; count(skipped) == 0 }\n\
        skipped[turn.stack_id] { turn := input.workflow[_]; turn.state == \"SKIPPED\" }\n";
    let next = "package next\ntrigger[\"three\"] { input.run.triggered_by == \"policy/once\" }\n";
    let sandbox = sandbox(&[("once", once), ("next", next)]);
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 0);
    kill_behind(&sandbox, |line| line["event"] == "added");
    sandbox.remove("/log");
    let ran = resume(&sandbox, "");
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(turns(&sandbox), ["/two-a 1 once", "/three 2 next"]);
}

#[test]
fn resume_names_the_run_that_caused_an_added_turn() {
    let sandbox = sandbox(&[("again", AGAIN)]);
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 0);
    kill_behind(&sandbox, |line| line["event"] == "ended");
    assert_eq!(resume(&sandbox, "").code(), 0);
    let first = run_ids(&sandbox)[0].clone();
    let lines = journal(&sandbox);
    let follows: Vec<&Value> = lines.iter().map(|line| &line["follows"]).collect();
    let follows: Vec<_> = follows.into_iter().filter(|it| !it.is_null()).collect();
    let expected = [
        json!({"policies": ["again"], "stack": "/one", "run": first}),
        json!({"policies": ["again"], "stack": "/two-a"}),
    ];
    assert_eq!(follows, expected.iter().collect::<Vec<_>>());
}

#[test]
fn resume_counts_follow_ups_added_before_a_kill() {
    for last in ["added", "evaluated"] {
        let sandbox = sandbox(&[("again", AGAIN)]);
        let limit = "orch {\n  config {\n    policies {\n      max_followups = 1\n    }\n  }\n}\n";
        sandbox.write("/limit.orch.hcl", limit);
        assert_eq!(run(&sandbox, "--policies --match /one").code(), 1);
        assert_eq!(turns(&sandbox), ["/one 1", "/two-a 2 again"]);
        kill_behind(&sandbox, |line| line["event"] == last);
        sandbox.remove("/log");
        let ran = resume(&sandbox, "");
        assert_eq!(ran.code(), 1, "{last}: {ran}");
        assert_eq!(turns(&sandbox), ["/two-a 1 again"], "{last}");
        assert!(ran.stderr.contains("`max_followups = 1`"), "{last}: {ran}");
    }
}

#[test]
fn resume_keeps_the_follow_up_of_a_failure() {
    let policy = r#"
package clean
trigger["three"] { input.stack.id == "one"; input.run.state == "FAILED"; is_null(input.run.triggered_by) }
"#;
    let sandbox = sandbox(&[("clean", policy)]);
    sandbox.write("/one/fails", "9");
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 1);
    assert_eq!(turns(&sandbox), ["/one 1", "/three 2 clean"]);
    kill_behind(&sandbox, |line| line["event"] == "evaluated");
    sandbox.remove("/log");
    let ran = resume(&sandbox, "");
    assert_eq!(ran.code(), 1, "{ran}");
    assert_eq!(turns(&sandbox), ["/one 1", "/three 2 clean"], "{ran}");
}

#[test]
fn resume_refuses_changed_policies() {
    let sandbox = sandbox(&[("again", AGAIN)]);
    sandbox.write("/two-a/fails", "1");
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 1);
    sandbox.write("/policies/again.rego", "package again\n");
    let refused = resume(&sandbox, "");
    assert_eq!(refused.code(), 4);
    assert!(
        refused.stderr.contains("the policy `again` has changed"),
        "{refused}"
    );
    assert_eq!(resume(&sandbox, "--allow-stale").code(), 0);
}
