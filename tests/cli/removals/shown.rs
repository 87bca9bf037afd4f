//! Removals as they are shown: text, JSON, Markdown, and `orch show` of a plan in a file.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{applied, done, head, remove, vanish, want};
use crate::support::Repository;

/// One of each kind: deleted, forgotten, blocked, updated; the first with the commit that deletes it.
fn each() -> (Repository, String) {
    let repository = applied(&[
        ("/gone/queue", ""),
        ("/gone/nothing", ""),
        ("/lost", ""),
        ("/net", ""),
    ]);
    let commit = remove(&repository, "gone");
    vanish(&repository, "gone_nothing");
    want(&repository, "/net", "2");
    repository.commit();
    fs::remove_dir_all(repository.path("/lost")).unwrap();
    (repository, commit)
}

#[test]
fn removal_text_has_the_deleting_commit() {
    let (repository, commit) = each();
    repository.learn(&commit, "COMMIT");
    assert_snapshot!(repository.orch("plan"), @"
      - /gone/queue    delete  removed in COMMIT  +0 ~0 -1
      ~ /net           update  net/want differs    +0 ~1 -0
      x /gone/nothing  forget  removed in COMMIT
      ! /lost          blocked: its deletion is not committed

    Plan: 1 to update, 1 to delete, 1 to forget, 1 blocked. Resources: 1 to change, 1 to destroy.
    [stderr]
    warning: `/lost` is recorded but not in the project, and is not destroyed: its deletion is not committed
      = help: commit the deletion, or restore the files
    ");
    // A file shows the same.
    done(&repository, "plan -o ../saved");
    let plan = repository.orch("plan").stdout;
    let shown = repository.orch("show ../saved");
    assert!(shown.stdout.ends_with(&plan), "{shown}\n{plan}");
    // Its tool would need the code to show its own plan.
    let applied = repository.git("rev-parse --short=7 base");
    repository.learn(applied.trim(), "APPLIED");
    assert_snapshot!(repository.orch("show ../saved /gone/queue"), @"
    -  /gone/queue  delete  removed in COMMIT  +0 ~0 -1
    [stderr]
    note: its tool can show its own plan only where commit APPLIED is checked out
      = help: to see the output of its plan, run `orch runs logs`
    ");
    for (name, line) in [
        ("gone/nothing", "x  /gone/nothing  forget  removed in"),
        ("lost", "!  /lost  blocked: its deletion is not committed"),
    ] {
        let shown = done(&repository, &format!("show ../saved {name}"));
        assert!(shown.starts_with(line), "{shown}");
    }
}

#[test]
fn removal_json_is_complete() {
    let (repository, commit) = each();
    let applied = repository.git("rev-parse base");
    let plan = repository.orch("plan --format json").json();
    let stacks = plan["stacks"].as_array().unwrap();
    let of = |path: &str| stacks.iter().find(|it| it["path"] == path).unwrap();
    let queue = of("/gone/queue");
    assert_eq!(queue["actions"], json!(["delete"]));
    assert_eq!(queue["source_commit"], applied.trim());
    assert_eq!(queue["reason"]["text"], format!("removed in {commit}"));
    assert_eq!(
        queue["changes"],
        json!({"add": 0, "change": 0, "remove": 1})
    );
    assert_eq!(queue["blocked"], Value::Null);
    assert_eq!(of("/gone/nothing")["actions"], json!(["forget"]));
    let lost = of("/lost");
    assert_eq!(lost["actions"], json!(["no-op"]));
    assert_eq!(lost["blocked"], "its deletion is not committed");
    assert_eq!(plan["complete"], false);
    let operations = json!([
        {"path": "/gone/queue", "operation": "destroy"},
        {"path": "/net", "operation": "apply"}
    ]);
    assert_eq!(plan["operations"], operations);
    assert_eq!(plan["commit"], head(&repository));
    // A file shows the same, but for the name of the plan.
    done(&repository, "plan -o ../saved");
    let mut shown = repository.orch("show ../saved --format json").json();
    shown["id"] = plan["id"].clone();
    assert_eq!(shown["stacks"], plan["stacks"]);
    assert_eq!(shown["operations"], plan["operations"]);
}

#[test]
fn removal_markdown_has_a_row_for_each_stack() {
    let (repository, commit) = each();
    repository.learn(&commit, "COMMIT");
    let page = repository.orch("plan --format markdown");
    assert_eq!(page.code(), 0, "{page}");
    let rows = page.stdout.lines().filter(|line| {
        line.starts_with('|') || line.starts_with("Plan:") || line.contains("Plan: ")
    });
    assert_snapshot!(rows.collect::<Vec<_>>().join("\n"), @"
    Plan: 1 to update, 1 to delete, 1 to forget, 1 blocked. Resources: 1 to change, 1 to destroy.
    | | stack | action | reason | resources |
    | --- | --- | --- | --- | --- |
    | `!` | `/lost` | blocked | its deletion is not committed |  |
    | `-` | `/gone/queue` | delete | removed in COMMIT | `+0 ~0 -1` |
    | `~` | `/net` | update | net/want differs | `+0 ~1 -0` |
    | `x` | `/gone/nothing` | forget | removed in COMMIT |  |
    ");
}

#[test]
fn removal_output_shows_each_destroy_and_its_end() {
    let (repository, _) = each();
    let output = repository.orch("apply --auto-approve --allow-destroy=1 --disable-safeguards=all");
    assert_eq!(output.code(), 0, "{output}");
    assert!(output.to_string().contains("- /gone/queue"), "{output}");
    let listed = done(&repository, "runs list");
    assert!(listed.contains("apply"), "{listed}");
    let shown = done(&repository, "runs show");
    assert!(shown.contains("/gone/queue"), "{shown}");
}

#[test]
fn why_shows_what_a_plan_would_do_with_a_removed_stack() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    let commit = remove(&repository, "a");
    let why = done(&repository, "why /a");
    assert!(why.contains(&commit), "{why}");
    let listed = done(&repository, "list --status removed");
    assert_eq!(listed, "a\n");
}

#[test]
fn removal_output_escapes_odd_paths() {
    let repository = applied(&[("/odd\u{7}dir", ""), ("/b", "")]);
    repository.git("rm -q -r --ignore-unmatch odd*");
    let (_, listed) = repository.try_git("/", "ls-files");
    assert!(listed.contains("odd"), "the pattern is taken literally");
    fs::remove_dir_all(repository.path("/odd\u{7}dir")).unwrap();
    repository.commit();
    let plan = repository.orch("plan");
    assert_eq!(plan.code(), 0, "{plan}");
    assert!(!plan.to_string().contains('\u{7}'), "{plan}");
    assert!(plan.stdout.contains("1 to delete"), "{plan}");
    done(&repository, "apply --auto-approve --allow-destroy=1");
}
