//! The code that destroys a stack is that of the commit that was applied to it.

use std::collections::BTreeSet;
use std::fs;

use super::{
    APPROVED, DRIVERS, acts, applied, applied_of, assert_tidy, change_entry, declare, details,
    done, forget_log, head, hook, keys, leaves_blocked, log, planned, prepared, remove, want,
    world,
};
use crate::support::Repository;

/// Returns where in the project a step ran, from its details: the checkout, and the rest of the path.
fn place<'d>(repository: &Repository, details: &'d str) -> (&'d str, &'d str) {
    let place = details
        .split(" in=")
        .nth(1)
        .unwrap()
        .split(" want=")
        .next()
        .unwrap();
    let checkouts = repository.path("/.orch/worktrees");
    let checkouts = checkouts.to_str().unwrap();
    let Some(within) = place.strip_prefix(checkouts) else {
        panic!("not in a checkout: {details}");
    };
    let (run_and_commit, rest) = within.trim_start_matches('/').split_at(
        within
            .trim_start_matches('/')
            .match_indices('/')
            .nth(1)
            .map_or(0, |(at, _)| at),
    );
    (run_and_commit, rest)
}

#[test]
fn removal_runs_commands_in_the_applied_commit() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    let seen = head(&repository);
    remove(&repository, "a");
    // Everything differs at HEAD: the driver, the environment, the program.
    repository.write(
        "/drivers.orch.hcl",
        DRIVERS
            .replace("\"destroy\"]", "\"broken\"]")
            .replace("as applied", "at HEAD"),
    );
    repository.write("/tool", "exit 99\n");
    repository.commit();
    let only = "--match a";
    done(&repository, &format!("plan {only}"));
    done(&repository, &format!("apply {APPROVED} {only}"));
    assert_eq!(world(&repository), ["b"]);
    let details = details(&repository);
    assert_eq!(details.len(), 3, "{details:?}");
    for (line, step) in details.iter().zip(["plan", "plan", "destroy"]) {
        assert!(
            line.starts_with(&format!("{step} /a action=delete ")),
            "{line}"
        );
        assert!(line.ends_with(" want=1 greeting=as applied"), "{line}");
        let (commit, rest) = place(&repository, line);
        assert!(commit.ends_with(&seen), "{line}");
        assert_eq!(rest, "/a", "{line}");
        let root = repository.path(&format!("/.orch/worktrees/{commit}"));
        assert!(
            line.contains(&format!(" root={} ", root.display())),
            "{line}"
        );
    }
    assert_tidy(&repository);
}

#[test]
fn removal_shows_git_the_applied_commit() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    let applied = head(&repository);
    remove(&repository, "a");
    let answer = repository.outside().join("answer");
    let script = format!("git rev-parse HEAD > '{}'\n", answer.display());
    hook(&repository, "destroy", "a", &script);
    let output = repository.orch_with(&format!("apply {APPROVED}"), |orch| {
        // As a hook of git runs it.
        orch.env("GIT_DIR", repository.path("/.git"))
            .env("GIT_INDEX_FILE", repository.path("/.git/index"));
    });
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(fs::read_to_string(answer).unwrap().trim(), applied);
}

#[test]
fn removal_does_not_touch_the_working_tree() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    remove(&repository, "a");
    let before = head(&repository);
    done(&repository, "plan");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(head(&repository), before);
    assert_eq!(repository.git("status --porcelain"), "");
    assert_eq!(repository.git("branch --list").trim(), "* main");
    assert_eq!(repository.git("stash list"), "");
}

#[test]
fn removal_uses_a_driver_that_head_lacks() {
    let repository = applied(&[("/a", "driver = \"placed\"\n  name = \"one\""), ("/b", "")]);
    remove(&repository, "a");
    let (before, rest) = DRIVERS.split_once("driver \"placed\" {").unwrap();
    let (_, after) = rest.split_once("}\n\n").unwrap();
    repository.write("/drivers.orch.hcl", format!("{before}{after}"));
    repository.commit();
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /a"]);
    assert_eq!(keys(&repository), ["/b"]);
}

#[test]
fn removal_checks_out_each_commit_once() {
    let repository = applied(&[
        ("/a", ""),
        ("/b", ""),
        ("/c", "after = [\"/a\"]"),
        ("/d", ""),
    ]);
    let first = head(&repository);
    remove(&repository, "b c");
    want(&repository, "/a", "2");
    repository.commit();
    done(&repository, "apply --auto-approve --no-removals");
    let second = head(&repository);
    remove(&repository, "a");
    forget_log(&repository);
    done(&repository, &format!("apply {APPROVED}"));
    let details = details(&repository);
    let stack = |step: &str| step.split(' ').nth(1).unwrap().to_owned();
    let destroys = details.iter().filter(|it| it.starts_with("destroy"));
    let order: Vec<String> = destroys.map(|it| stack(it)).collect();
    assert_eq!(order, ["/b", "/c", "/a"]);
    let places: BTreeSet<(String, &str)> = details
        .iter()
        .map(|it| (stack(it), place(&repository, it).0))
        .collect();
    let commits = places.iter().map(|(stack, place)| {
        let commit = place.rsplit_once('/').unwrap().1;
        (stack.as_str(), commit)
    });
    assert_eq!(
        commits.collect::<Vec<_>>(),
        [("/a", &second[..]), ("/b", &first[..]), ("/c", &first[..])]
    );
    let folders: BTreeSet<&str> = places.iter().map(|(_, place)| *place).collect();
    assert_eq!(folders.len(), 2, "{folders:?}");
    assert_eq!(world(&repository), ["d"]);
    assert_tidy(&repository);
}

#[test]
fn removal_refuses_a_commit_with_other_files() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    remove(&repository, "a");
    change_entry(&repository, "/a", |entry| {
        let digest = entry["applied"]["inputs"]["digest"].as_str().unwrap();
        let (head, tail) = digest.split_at(digest.len() - 1);
        let other = if tail == "0" { "1" } else { "0" };
        entry["applied"]["inputs"]["digest"] = format!("{head}{other}").into();
    });
    assert_eq!(
        planned(&repository, ""),
        ["/a blocked: the files of its commit differ from the applied ones"]
    );
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert_eq!(log(&repository), [""; 0]);
    assert_eq!(world(&repository), ["a", "b"]);
    assert_tidy(&repository);
}

#[test]
fn removal_runs_no_git_hooks() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    let marker = repository.outside().join("hooked");
    let script = format!("#!/bin/sh\n: > '{}'\n", marker.display());
    for name in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
    ] {
        repository.write_program(&format!("/.git/hooks/{name}"), &script);
    }
    repository.git("worktree add -q --detach ../other");
    repository.git("worktree remove ../other");
    assert!(marker.exists(), "the hooks can run");
    remove(&repository, "a");
    fs::remove_file(&marker).unwrap();
    done(&repository, "plan");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(world(&repository), ["b"]);
    assert!(!marker.exists());
    assert_tidy(&repository);
}

#[test]
fn removal_orders_stacks_of_different_commits() {
    let repository = applied(&[("/base", ""), ("/other", "")]);
    for (path, after) in [("/a", "/base"), ("/z", "/a"), ("/m", "/z")] {
        declare(&repository, path, &format!("after = [\"{after}\"]"));
        want(&repository, path, path);
        repository.commit();
        done(&repository, "apply --auto-approve");
    }
    // The first to be removed is what the others need, and the others are applied after that.
    for path in ["base", "a", "z", "m"] {
        remove(&repository, path);
        want(&repository, "/other", path);
        repository.commit();
        done(&repository, "apply --auto-approve --no-removals");
    }
    forget_log(&repository);
    done(&repository, &format!("apply {APPROVED}"));
    let details = details(&repository);
    let folders: BTreeSet<&str> = details.iter().map(|it| place(&repository, it).0).collect();
    assert_eq!(folders.len(), 4, "{folders:?}");
    assert_eq!(
        acts(&repository),
        ["destroy /m", "destroy /z", "destroy /a", "destroy /base"]
    );
    assert_eq!(world(&repository), ["other"]);
    assert_tidy(&repository);
}

#[test]
fn removal_destroys_nested_stacks_alone() {
    // One that is nested in a living one, and one in which a living one is nested.
    let repository = applied(&[
        ("/live", ""),
        ("/live/gone", ""),
        ("/gone", ""),
        ("/gone/live", ""),
    ]);
    repository.git("rm -q -r live/gone gone/want gone/stack.orch.hcl");
    repository.commit();
    assert_eq!(
        planned(&repository, ""),
        ["/gone delete", "/live/gone delete"]
    );
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(world(&repository), ["gone_live", "live"]);
    assert_eq!(keys(&repository), ["/gone/live", "/live"]);
}

#[test]
fn removal_reports_missing_variables_before_anything_runs() {
    let sandbox = prepared(&[("/b", "")]);
    declare(&sandbox, "/a", "");
    want(&sandbox, "/a", "1");
    let run = "orch {\n  config {\n    run {\n      env {\n        TOKEN = env.TOKEN_OF_A\n      }\n    }\n  }\n}\n";
    sandbox.write("/a/env.orch.hcl", run);
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    let output = repository.orch_with("apply --auto-approve", |orch| {
        orch.env("TOKEN_OF_A", "secret-1");
    });
    assert_eq!(output.code(), 0, "{output}");
    remove(&repository, "a");
    forget_log(&repository);
    let plan = planned(&repository, "");
    assert_eq!(plan.len(), 1, "{plan:?}");
    assert!(
        plan[0].starts_with("/a blocked: ") && plan[0].contains("TOKEN_OF_A"),
        "{plan:?}"
    );
    assert_eq!(log(&repository), [""; 0]);
    let output = repository.orch_with(&format!("apply {APPROVED}"), |orch| {
        orch.env("TOKEN_OF_A", "secret-1");
    });
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(acts(&repository), ["destroy /a"]);
}

#[test]
fn removal_reports_missing_git_filters() {
    let sandbox = prepared(&[("/a", ""), ("/b", "")]);
    sandbox.write("/a/big.bin", "version 1\n");
    sandbox.write("/.gitattributes", "*.bin filter=large\n");
    let repository = applied_of(sandbox);
    remove(&repository, "a");
    assert_eq!(
        planned(&repository, ""),
        ["/a blocked: `a/big.bin` needs the filter `large` of git, which is not installed"]
    );
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), [""; 0]);
    // With the filter, it works.
    repository.git("config filter.large.smudge cat");
    repository.git("config filter.large.clean cat");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /a"]);
    assert_tidy(&repository);
}

#[test]
fn removal_fills_submodules_or_reports_them() {
    let sandbox = prepared(&[("/a", ""), ("/b", "")]);
    let module = sandbox.outside().join("module");
    fs::create_dir(&module).unwrap();
    fs::write(module.join("answer"), "42").unwrap();
    let repository = Repository::of(sandbox);
    repository.git_in(&module, "init -q -b main");
    repository.git_in(&module, "add -A");
    repository.git_in(&module, "commit -q -m module");
    repository.git("submodule --quiet add ../module modules/m");
    repository.commit();
    done(&repository, "state init");
    done(&repository, "apply --auto-approve");
    forget_log(&repository);
    remove(&repository, "a modules .gitmodules");
    hook(
        &repository,
        "destroy",
        "a",
        "cp ../modules/m/answer \"$outside/answer\"",
    );
    // Where the module comes from is gone, and nothing of it is on this machine.
    fs::rename(&module, repository.outside().join("away")).unwrap();
    fs::rename(
        repository.path("/.git/modules"),
        repository.outside().join("modules"),
    )
    .unwrap();
    let apply = |code: i32, said: &str| {
        let output = repository.orch_with(&format!("apply {APPROVED} --match a"), |orch| {
            orch.env("GIT_ALLOW_PROTOCOL", "file");
        });
        assert_eq!(output.code(), code, "{output}");
        assert!(output.to_string().contains(said), "{said}: {output}");
    };
    apply(4, "! /a  blocked: its commit cannot be checked out: ");
    assert_eq!(acts(&repository), [""; 0]);
    assert_tidy(&repository);
    fs::rename(repository.outside().join("away"), &module).unwrap();
    fs::rename(
        repository.outside().join("modules"),
        repository.path("/.git/modules"),
    )
    .unwrap();
    apply(0, "- /a  delete");
    assert_eq!(acts(&repository), ["destroy /a"]);
    assert_eq!(
        fs::read_to_string(repository.outside().join("answer")).unwrap(),
        "42"
    );
    assert_tidy(&repository);
}

#[test]
fn removal_reports_an_invalid_applied_commit() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    repository.write("/c/stack.orch.hcl", "stack {\n  nonsense = 1\n}\n");
    repository.commit();
    let broken = head(&repository);
    repository.git("rm -q -r c");
    repository.commit();
    remove(&repository, "a");
    change_entry(&repository, "/a", |entry| {
        entry["seen"] = broken.clone().into();
        entry["applied"]["commit"] = broken.clone().into();
        entry["applied"]["seen"] = broken.into();
    });
    let plan = planned(&repository, "");
    assert_eq!(plan.len(), 1, "{plan:?}");
    assert!(
        plan[0].contains("the configuration of its commit is wrong: c/stack.orch.hcl:2: "),
        "{plan:?}"
    );
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), [""; 0]);
    assert_tidy(&repository);
}
