//! `orch plan` with trigger policies: what follows an apply is part of its plan.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::followed::{attach, changed, endings};
use super::{STATE, acts, applied, declare, done, fails, log, want, with_state};
use crate::support::Repository;

/// What follows a plan, as JSON has it.
fn followups(repository: &Repository, arguments: &str) -> Value {
    let output = repository.orch(&format!("{arguments} --format json"));
    let plan: Value = serde_json::from_str(&output.stdout).unwrap();
    plan["followups"].clone()
}

/// The stacks of these turns.
fn stacks(followups: &Value) -> Vec<&str> {
    let turns = followups["turns"].as_array().unwrap().iter();
    turns.map(|turn| turn["path"].as_str().unwrap()).collect()
}

/// A project in which `/b` follows `/a` and `/c`, which is applied automatically, follows `/b`.
fn chain() -> Repository {
    let repository = changed("");
    let promote = r#"
package promote
trigger["/c"] { input.run.state == "FINISHED"; input.stack.id == "/b" }
"#;
    attach(&repository, "promote", promote);
    declare(&repository, "/c", "autodeploy = true");
    repository.commit();
    repository
}

/// Without the commit in the reasons.
fn rows(text: &str) -> String {
    let rows = text.lines().skip_while(|line| !line.starts_with("then"));
    rows.map(|row| row.to_owned() + "\n").collect()
}

#[test]
fn plan_shows_what_follows_by_policy_in_each_format() {
    let repository = chain();
    let text = repository.orch("plan --match a -o ../saved");
    assert_eq!(text.code(), 0, "{text}");
    assert_snapshot!(rows(&text.stdout), @"
    then, by policy list:
      ? /b  known after /a; needs approval
    then, by policy promote:
      ? /c  known after /b; applied automatically
    Follow-ups of /b and /c may differ: their changes are known only during the apply.

    Plan: 1 to update, 2 follow-ups. Resources: 1 to change.
    ");
    assert_eq!(repository.orch("show ../saved").stdout, text.stdout);
    let found = followups(&repository, "plan --match a");
    assert_eq!(
        found,
        json!({
            "turns": [
                {"path": "/b", "policies": ["list"], "after": "/a", "autodeploy": false, "problem": null},
                {"path": "/c", "policies": ["promote"], "after": "/b", "autodeploy": true, "problem": null},
            ],
            "problems": [],
            "uncertain": ["/b", "/c"],
        })
    );
    assert_eq!(followups(&repository, "show ../saved"), found);
    for arguments in ["plan --match a", "show ../saved"] {
        let page = repository.orch(&format!("{arguments} --format markdown"));
        let row = "| `?` | `/b` | then | by policy list; known after /a; needs approval |  |";
        assert!(page.stdout.contains(row), "{page}");
        assert!(
            page.stdout.contains("Follow-ups of 2 stacks may differ"),
            "{page}"
        );
    }
}

#[test]
fn plan_without_policies_says_nothing_of_what_follows() {
    let repository = changed("");
    let off = "plan --policies=off";
    assert_eq!(followups(&repository, off), Value::Null);
    let said = done(&repository, off);
    assert!(!said.contains("then, by"), "{said}");
    // A turn is the follow-up of another one if it comes anyway; a plan with no turns is followed by none.
    let nothing = json!({"turns": [], "problems": [], "uncertain": []});
    assert_eq!(followups(&repository, "plan --match a --match b"), nothing);
    assert_eq!(followups(&repository, "plan --match c"), nothing);
    // Nothing is attached to any stack.
    repository.write(
        "/list.orch.hcl",
        "policy \"trigger\" \"list\" {\n  file = \"/policies/list.rego\"\n  attach = [\"tag:none\"]\n}\n",
    );
    repository.commit();
    assert_eq!(followups(&repository, "plan --match a"), Value::Null);
}

#[test]
fn plan_refuses_policies_that_cannot_be_loaded_unless_they_are_off() {
    let repository = changed("");
    repository.write("/policies/list.rego", "package list\ntrigger[");
    repository.commit();
    fails(&repository, "plan", 3, "the policy `list` cannot be loaded");
    done(&repository, "plan --policies=off");
    done(&repository, "plan --refresh-only --policies=off");
    fails(
        &repository,
        "plan --policies=off --metadata x",
        64,
        "`--metadata` has no effect",
    );
}

#[test]
fn apply_does_what_its_plan_says_that_follows() {
    for flags in ["--auto-approve", "--auto-approve -j 2"] {
        let repository = chain();
        repository.write("/c/want", "2");
        repository.commit();
        let planned = followups(&repository, "plan --match a");
        assert_eq!(stacks(&planned), ["/b", "/c"]);
        log(&repository);
        let said = done(&repository, &format!("apply --match a {flags}"));
        let shown = said.find("then, by policy list:\n  ? /b").unwrap();
        assert!(shown < said.find("Plan: 1 to update, 2 follow-ups.").unwrap());
        assert_eq!(
            endings(&repository),
            ["/a succeeded", "/b succeeded", "/c succeeded"]
        );
    }
}

#[test]
fn plan_of_a_destroy_shows_what_follows() {
    let repository = applied(&[("/a", ""), ("/b", ""), ("/c", "")]);
    let gone = "package gone\ntrigger[\"/b\"] { input.run.type == \"DESTROY\"; input.run.changes[_].action == \"deleted\"; input.stack.id == \"/a\" }\n";
    attach(&repository, "gone", gone);
    repository.commit();
    for arguments in ["plan --destroy --match a", "plan --replace /a --match a"] {
        let found = followups(&repository, arguments);
        assert_eq!(stacks(&found), ["/b"], "{arguments}: {found}");
    }
}

#[test]
fn plan_says_after_which_stacks_something_else_may_follow() {
    let repository = changed("");
    declare(&repository, "/c", "after = [\"/a\"]");
    let many = "package many\ntrigger[\"/b\"] { count(input.run.changes) > 2; input.stack.id == \"/c\" }\n";
    attach(&repository, "many", many);
    repository.write("/c/uses", "a");
    repository.write("/c/want", "2");
    repository.commit();
    // /c is planned again after /a.
    let found = followups(&repository, "plan --match a --match c");
    assert_eq!(found["uncertain"], json!(["/b", "/c"]), "{found}");
    let found = followups(&repository, "plan --match c");
    assert_eq!(found["uncertain"], json!([]), "{found}");
}

#[test]
fn plan_tells_policies_of_the_resources_that_change() {
    let Some(repository) = super::terraform::project(STATE) else {
        return;
    };
    let policy = |address: &str| {
        format!(
            "package made\nimport rego.v1\ntrigger contains \"/app\" if {{\n  input.stack.id == \"/net\"\n  some change in input.run.changes\n  change.entity.address == \"{address}\"\n  change.action == \"added\"\n  change.phase == \"apply\"\n}}\n"
        )
    };
    for (address, followed) in [("terraform_data.a", true), ("terraform_data.b", false)] {
        attach(&repository, "made", &policy(address));
        repository.commit();
        let found = followups(&repository, "plan --match net");
        assert_eq!(stacks(&found).contains(&"/app"), followed, "{found}");
        assert_eq!(
            found["uncertain"],
            json!(if followed { &["/app"][..] } else { &[] })
        );
    }
}

#[test]
fn plan_fails_where_an_apply_will_fail_because_of_policies() {
    let cases = [
        // Two values of one rule.
        (
            "package bad\nx = 1 { true }\nx = 2 { true }\ntrigger[\"/b\"] { x == 1 }\n",
            "",
            1,
            "error: policy `bad` failed after /a",
        ),
        (
            "package bad\ntrigger[\"/c\"] { true }\n",
            "orch {\n  config {\n    policies {\n      max_followups = 1\n    }\n  }\n}\n",
            1,
            "would exceed `max_followups = 1`",
        ),
        (
            "package bad\ntrigger[\"/nowhere\"] { true }\n",
            "",
            0,
            "warning: policy `bad` asks for `/nowhere` after /a, but no stack has that id or path",
        ),
    ];
    for (policy, settings, code, said) in cases {
        let repository = changed("");
        attach(&repository, "bad", policy);
        repository.write("/settings.orch.hcl", settings);
        repository.commit();
        for arguments in ["plan --match a", "plan --match a -o ../saved"] {
            let output = repository.orch(arguments);
            assert_eq!(output.code(), code, "{output}");
            assert!(output.stdout.contains(said), "{said}: {output}");
            let is_error = output
                .stderr
                .contains("an apply of this plan would end with status 1");
            assert_eq!(is_error, code == 1, "{output}");
        }
        let shown = done(&repository, "show ../saved");
        assert!(shown.contains(said), "{said}: {shown}");
        let page = repository.orch("plan --match a --format markdown");
        assert!(page.stdout.contains("Policies had problems"), "{page}");
        let failed = repository.orch("apply --match a --auto-approve");
        assert_eq!(failed.code(), code, "{failed}");
    }
}

#[test]
fn plan_shows_what_exclude_keeps_from_following() {
    let repository = changed("");
    let said = done(&repository, "plan --match a --exclude b");
    let line = "policy `list` asks for /b after /a, but `--exclude` leaves it out";
    assert!(said.contains(line), "{said}");
    assert_eq!(
        followups(&repository, "plan --match a --exclude b")["turns"],
        json!([])
    );
}

#[test]
fn plan_shows_follow_ups_that_will_fail() {
    let repository = changed("");
    declare(&repository, "/b", "after = [\"/d\"]");
    declare(&repository, "/d", "after = [\"/b\"]\n  tags = [\"new\"]");
    // What follows a failure is no follow-up of a success.
    let after_b = "package after\ntrigger[\"/c\"] { input.stack.id == \"/b\"; input.run.state == \"FINISHED\" }\n";
    attach(&repository, "after", after_b);
    repository.commit();
    let said = done(&repository, "plan --match a");
    let row = "  ! /b  will fail after /a: it is part of a cycle (see `orch validate`)\n";
    assert!(said.contains(row), "{said}");
    assert_eq!(stacks(&followups(&repository, "plan --match a")), ["/b"]);
    // A commit was applied to /b that HEAD lacks.
    let repository = changed("autodeploy = true");
    let old = repository.git("rev-parse HEAD");
    want(&repository, "/b", "3");
    done(&repository, "apply --auto-approve --match b");
    repository.git(&format!("checkout -q {}", old.trim()));
    let said = done(&repository, "plan --match a");
    assert!(
        said.contains("  ! /b  will fail after /a: HEAD is behind the last applied commit"),
        "{said}"
    );
    let allowed = followups(&repository, "plan --match a --allow-rollback");
    assert_eq!(allowed["turns"][0]["problem"], Value::Null, "{allowed}");
}

#[test]
fn plan_in_a_file_keeps_the_flags_about_policies() {
    let repository = changed("autodeploy = true");
    let metadata = "package meta\ntrigger[\"/c\"] { input.run.user_provided_metadata[_] == \"all\"; input.stack.id == \"/a\" }\n";
    attach(&repository, "meta", metadata);
    declare(&repository, "/c", "autodeploy = true");
    repository.write("/c/want", "2");
    repository.commit();
    log(&repository);
    done(&repository, "plan --match a --metadata all -o ../all");
    let planned = followups(&repository, "show ../all");
    assert_eq!(stacks(&planned), ["/b", "/c"]);
    done(&repository, "apply ../all");
    assert_eq!(
        acts(&repository),
        ["apply update a", "apply update b", "apply update c"]
    );
    // Both follow again if they are not off.
    for (flags, followed) in [("", false), ("--policies", true)] {
        let wanted = if followed { "5" } else { "4" };
        repository.write("/b/want", wanted);
        want(&repository, "/a", wanted);
        done(&repository, "plan --match a --policies=off -o ../off");
        log(&repository);
        done(&repository, &format!("apply ../off {flags}"));
        let acted = acts(&repository);
        assert_eq!(acted.contains(&"apply update b".to_owned()), followed);
    }
}

#[test]
fn plan_without_a_state_shows_what_follows_as_well() {
    let repository = super::project(&[("/a", ""), ("/b", "")]);
    attach(
        &repository,
        "list",
        "package list\ntrigger[\"/b\"] { input.stack.id == \"/a\" }\n",
    );
    repository.commit();
    assert_eq!(stacks(&followups(&repository, "plan --match a")), ["/b"]);
    let empty = with_state(&[("/a", ""), ("/b", "")]);
    attach(
        &empty,
        "list",
        "package list\ntrigger[\"/b\"] { input.stack.id == \"/a\" }\n",
    );
    empty.commit();
    assert_eq!(stacks(&followups(&empty, "plan --match a")), ["/b"]);
}
