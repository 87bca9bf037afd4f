//! What `orch runs` shows of applies, and what killed ones leave behind.

use std::fs;

use serde_json::Value;

use super::{applied, done, hook, want, with_state};

const CHAIN: [(&str, &str); 3] = [
    ("/a", ""),
    ("/b", "after = [\"/a\"]"),
    ("/c", "after = [\"/b\"]"),
];

#[test]
fn apply_counts_every_stack_whose_planned_changes_it_applied() {
    // The tool reports no changes itself.
    let repository = with_state(&CHAIN);
    let said = done(&repository, "apply --auto-approve");
    assert!(
        said.contains("orch: 3 succeeded (3 with changes)"),
        "{said}"
    );
    want(&repository, "/b", "2");
    let said = done(&repository, "apply --auto-approve --full");
    assert!(said.contains("orch: changes in /b\n"), "{said}");
    assert!(said.contains("(1 with changes)"), "{said}");
}

#[test]
fn runs_logs_finds_the_log_of_each_turn_after_a_replace() {
    let repository = applied(&CHAIN);
    for (step, name) in [("destroy", "b"), ("apply", "b"), ("apply", "c")] {
        hook(
            &repository,
            step,
            name,
            &format!("echo 'this is {step} of {name}'"),
        );
    }
    want(&repository, "/c", "2");
    done(
        &repository,
        "apply --replace b --auto-approve --allow-destroy=1",
    );
    let logs = done(&repository, "runs logs");
    let lines: Vec<&str> = logs
        .lines()
        .filter(|line| line.starts_with("this is"))
        .collect();
    assert_eq!(
        lines,
        [
            "this is destroy of b",
            "this is apply of b",
            "this is apply of c"
        ],
        "{logs}"
    );
    let of_c = done(&repository, "runs logs last /c");
    assert!(of_c.contains("this is apply of c"), "{of_c}");
    assert!(!of_c.contains("no such logs"), "{of_c}");
    // Reports find them, too.
    let report = repository.path("/../report.json");
    done(
        &repository,
        &format!("runs report --report {}", report.display()),
    );
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    let log = report["stacks"][1]["log"].as_str().unwrap();
    assert!(
        repository
            .read(&format!("/{log}"))
            .contains("this is apply of c"),
        "{report}"
    );
}

#[test]
fn runs_list_counts_stacks_and_not_turns() {
    let repository = applied(&CHAIN);
    want(&repository, "/c", "2");
    done(
        &repository,
        "apply --replace b --auto-approve --allow-destroy=1",
    );
    let listed: Value =
        serde_json::from_str(&done(&repository, "runs list --format json")).unwrap();
    let shown: Value = serde_json::from_str(&done(&repository, "runs show --format json")).unwrap();
    let newest = &listed["runs"][0];
    assert_eq!(
        (&newest["stacks"], &newest["succeeded"]),
        (&2.into(), &2.into()),
        "{newest}"
    );
    assert_eq!(shown["succeeded"], 2, "{shown}");
    let text = done(&repository, "runs list");
    assert!(
        text.lines().next().unwrap().contains("2 succeeded"),
        "{text}"
    );
}

#[test]
fn plan_removes_the_plans_that_killed_processes_have_left() {
    let repository = applied(&CHAIN);
    let left = repository.path("/.orch/plans/orch-killed");
    for command in [
        "plan",
        "apply --auto-approve",
        "destroy --match c --auto-approve --allow-destroy=1",
    ] {
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("plan"), "secret").unwrap();
        // Nobody holds the lock of its owner.
        fs::write(left.join("in-use"), "").unwrap();
        done(&repository, command);
        assert!(!left.exists(), "{command}");
    }
}

#[test]
fn apply_with_nothing_to_do_writes_nothing() {
    let repository = with_state(&CHAIN);
    // The document is elsewhere, and `.orch` cannot be a folder.
    let state = repository.read("/state.orch.hcl");
    let state = state.replace(
        "project = \"acme\"",
        "project = \"acme\"\n      backend \"local\" {\n        path = \"../document\"\n      }",
    );
    repository.write("/state.orch.hcl", state);
    repository.write("/.gitignore", ".orch\n");
    repository.commit();
    done(&repository, "state init");
    done(&repository, "apply --auto-approve");
    fs::remove_dir_all(repository.path("/.orch")).unwrap();
    repository.write("/.orch", "");
    let applied = done(&repository, "apply --auto-approve");
    assert!(applied.contains("nothing to do"), "{applied}");
}

#[test]
fn apply_works_in_a_checkout_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt as _;
    let repository = with_state(&CHAIN);
    let state = repository.read("/state.orch.hcl");
    let state = state.replace(
        "project = \"acme\"",
        "project = \"acme\"\n      backend \"local\" {\n        path = \"../document\"\n      }",
    );
    repository.write("/state.orch.hcl", state);
    repository.commit();
    done(&repository, "state init");
    fs::remove_dir_all(repository.path("/.orch")).unwrap();
    let root = repository.path("/");
    let set = |mode| fs::set_permissions(&root, fs::Permissions::from_mode(mode)).unwrap();
    set(0o555);
    let is_writable = fs::write(root.join("probe"), "").is_ok();
    let applied = repository.orch("apply --auto-approve");
    set(0o755);
    if is_writable {
        return crate::support::skipped("root may write anywhere");
    }
    assert_eq!(applied.code(), 0, "{applied}");
}
