//! The default branch, as the clone knows it: what it has is not destroyed, on whatever commit a job works.

use std::fs;

use serde_json::Value;

use super::{
    APPROVED, acts, applied, declare, done, entry, fails, head, keys, leaves_blocked, planned,
    remove, want, world,
};
use crate::support::Repository;

/// A project with an origin, and with everything applied and pushed.
fn published(stacks: &[(&str, &str)]) -> Repository {
    let repository = applied(stacks);
    publish(&repository);
    repository
}

/// Adds an origin, and pushes everything.
pub(super) fn publish(repository: &Repository) {
    repository.git("init -q --bare -b main ../origin.git");
    repository.git("remote add origin ../origin.git");
    repository.git("push -q origin main");
}

/// The first characters of a commit.
fn short(repository: &Repository, revision: &str) -> String {
    let commit = repository.git(&format!("rev-parse --short=7 {revision}"));
    commit.trim().to_owned()
}

/// Says what a plan says of a removed stack that the default branch has.
fn has(commit: &str, place: &str) -> String {
    format!("/app blocked: origin/main has it at commit {commit}: `{place}`")
}

/// A repository at a commit that removes `/app`, which is on the default branch again.
fn late() -> (Repository, String, String) {
    let repository = published(&[("/app", ""), ("/b", "")]);
    let removal = remove(&repository, "app");
    repository.git("revert --no-edit HEAD");
    repository.git("push -q origin main");
    let tip = short(&repository, "main");
    repository.git(&format!("checkout -q {removal}"));
    (repository, removal, tip)
}

#[test]
fn a_late_job_destroys_nothing_that_the_default_branch_has_again() {
    let (repository, _, tip) = late();
    let blocked = has(&tip, "app/stack.orch.hcl");
    assert_eq!(planned(&repository, ""), [&*blocked]);
    let said = leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert!(!said.contains("nothing to do"), "{said}");
    assert_eq!(acts(&repository), [""; 0]);
    assert_eq!(world(&repository), ["app", "b"]);
    let why = done(&repository, "why /app");
    let way_out = "fix      merge origin/main, or check it out: HEAD is behind it\n";
    assert!(why.contains(way_out), "{why}");
    assert!(!why.contains("destroyed"), "{why}");
    let list = repository.orch("list --status removed,absent --why --format json");
    let missing = &list.json()["missing"][0];
    assert_eq!(missing["status"], "absent", "{list}");
    assert_eq!(missing["why"]["kind"], "on-default-branch", "{list}");
}

#[test]
fn a_branch_destroys_what_it_removes_once_it_is_merged() {
    let repository = published(&[("/app", ""), ("/b", "")]);
    let tip = short(&repository, "main");
    repository.git("checkout -q -b feature");
    remove(&repository, "app");
    repository.git("push -q origin feature");
    assert_eq!(planned(&repository, ""), [has(&tip, "app/stack.orch.hcl")]);
    // A pull request fails only where it applies.
    done(&repository, "plan --detailed-exitcode");
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    let why = done(&repository, "why /app");
    let way_out = "fix      merge the deletion into origin/main; if that is done, run `git fetch origin +refs/heads/main:refs/remotes/origin/main`, or add `--fetch`\n";
    assert!(why.contains(way_out), "{why}");
    repository.git("checkout -q main");
    repository.git("merge -q --no-ff -m merged feature");
    // What is merged here alone is not merged.
    assert_eq!(planned(&repository, ""), [has(&tip, "app/stack.orch.hcl")]);
    repository.git("push -q origin main");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(acts(&repository), ["destroy /app"]);
    assert_eq!(keys(&repository), ["/b"]);
}

#[test]
fn the_remote_is_asked_if_the_user_says_so() {
    let (repository, removal, tip) = late();
    let forget = |commit: &str| {
        repository.git(&format!("update-ref refs/remotes/origin/main {commit}"));
    };
    // As this clone knows it, the default branch does not have it.
    forget(&removal);
    assert_eq!(planned(&repository, ""), ["/app delete"]);
    let blocked = has(&tip, "app/stack.orch.hcl");
    assert_eq!(planned(&repository, "--fetch"), [&*blocked]);
    forget(&removal);
    done(&repository, "plan -o ../saved");
    for command in ["apply --fetch", "destroy --match app --fetch"] {
        forget(&removal);
        leaves_blocked(&repository, &format!("{command} {APPROVED}"));
    }
    forget(&removal);
    fails(
        &repository,
        "apply ../saved --allow-destroy=9 --fetch",
        4,
        &blocked["/app blocked: ".len()..],
    );
    assert_eq!(acts(&repository), [""; 0]);
    // What was merged elsewhere is known then, too.
    repository.git("push -q -f origin HEAD:main");
    forget(&tip);
    assert_eq!(planned(&repository, ""), [blocked]);
    assert_eq!(planned(&repository, "--fetch"), ["/app delete"]);
    // A remote that does not answer is no reason to go on.
    fs::rename(
        repository.outside().join("origin.git"),
        repository.outside().join("away.git"),
    )
    .unwrap();
    let arguments = format!("apply {APPROVED} --fetch");
    fails(&repository, &arguments, 5, "failed to fetch");
    assert_eq!(world(&repository), ["app", "b"]);
}

#[test]
fn a_plan_in_a_file_destroys_nothing_that_the_default_branch_has_by_now() {
    let repository = published(&[("/app", ""), ("/b", "")]);
    let removal = remove(&repository, "app");
    repository.git("push -q origin main");
    done(&repository, "plan -o ../saved");
    repository.git("revert --no-edit HEAD");
    repository.git("push -q origin main");
    repository.git(&format!("checkout -q {removal}"));
    let arguments = "apply ../saved --allow-destroy=9";
    fails(&repository, arguments, 4, "origin/main has it at commit");
    assert_eq!(acts(&repository), [""; 0]);
}

#[test]
fn what_the_default_branch_has_elsewhere_is_not_destroyed() {
    for how in ["id", "block", "content"] {
        let block = if how == "id" { "id = \"one\"" } else { "" };
        let repository = published(&[("/app", block), ("/b", "")]);
        repository.git("mv app team");
        if how != "content" {
            want(&repository, "/team", "something else");
        }
        if how == "block" {
            let moved = "moved {\n  from = \"/app\"\n  to   = \"/team\"\n}\n";
            repository.write("/moves.orch.hcl", moved);
        }
        repository.commit();
        repository.git("push -q origin main");
        let tip = short(&repository, "main");
        repository.git("checkout -q -b feature base");
        remove(&repository, "app");
        assert_eq!(planned(&repository, ""), [has(&tip, "team")], "{how}");
    }
}

#[test]
fn what_the_default_branch_may_have_is_not_destroyed() {
    let at = |change: &dyn Fn(&Repository)| {
        let (repository, removal, _) = late();
        repository.git("checkout -q main");
        change(&repository);
        repository.commit();
        repository.git("push -q origin main");
        let tip = short(&repository, "main");
        repository.git(&format!("checkout -q {removal}"));
        let plan = planned(&repository, "");
        assert_eq!(plan.len(), 1, "{plan:?}");
        plan[0].replace(&tip, "TIP")
    };
    let code = at(&|repository| {
        repository.git("rm -q app/stack.orch.hcl");
    });
    assert_eq!(code, has("TIP", "app/want"));
    let broken = at(&|repository| repository.write("/b/stack.orch.hcl", "stack {\n"));
    assert_eq!(
        broken,
        "/app blocked: `b/stack.orch.hcl` of commit TIP cannot be parsed"
    );
}

#[test]
fn a_key_that_the_default_branch_has_is_not_destroyed() {
    let repository = published(&[("/net", "for_each = [\"dev\", \"prod\"]"), ("/b", "")]);
    let tip = short(&repository, "main");
    repository.git("checkout -q -b feature");
    declare(&repository, "/net", "for_each = [\"prod\"]");
    repository.commit();
    assert_eq!(
        planned(&repository, ""),
        [format!(
            "/net[\"dev\"] blocked: origin/main has it at commit {tip}: `net/stack.orch.hcl`"
        )]
    );
    repository.git("push -q origin feature:main");
    assert_eq!(planned(&repository, ""), ["/net[\"dev\"] delete"]);
}

#[test]
fn a_block_that_is_not_merged_takes_nothing_off_the_record() {
    let repository = published(&[("/app", ""), ("/b", "")]);
    let tip = short(&repository, "main");
    repository.git("checkout -q -b feature");
    let block = "removed {\n  from = \"/app\"\n  lifecycle {\n    destroy = false\n  }\n}\n";
    repository.write("/removed.orch.hcl", block);
    repository.git("rm -q -r app");
    repository.commit();
    assert_eq!(planned(&repository, ""), [has(&tip, "app/stack.orch.hcl")]);
    leaves_blocked(&repository, "apply --auto-approve");
    assert_eq!(keys(&repository), ["/app", "/b"]);
    repository.git("push -q origin feature:main");
    done(&repository, "apply --auto-approve");
    assert_eq!(keys(&repository), ["/b"]);
}

#[test]
fn where_the_default_branch_is_unknown_nothing_is_destroyed() {
    let repository = published(&[("/app", ""), ("/b", "")]);
    remove(&repository, "app");
    repository.git("push -q origin main");
    repository.git("update-ref -d refs/remotes/origin/main");
    let blocked = "/app blocked: the default branch `origin/main` is not in this clone";
    assert_eq!(planned(&repository, ""), [blocked]);
    let why = done(&repository, "why /app");
    let way_out = "fix      run `git fetch origin +refs/heads/main:refs/remotes/origin/main`, or add `--fetch`; if another branch is the default one, set `config.git.default_branch`\n";
    assert!(why.contains(way_out), "{why}");
    assert_eq!(planned(&repository, "--fetch"), ["/app delete"]);
    repository.git("remote rename origin first");
    repository.git("remote add second ../origin.git");
    assert_eq!(
        planned(&repository, ""),
        ["/app blocked: the repository has several remotes, `first`, `second`"]
    );
}

#[test]
fn without_a_remote_only_a_usual_or_configured_branch_is_the_default_one() {
    let repository = applied(&[("/app", ""), ("/b", "")]);
    remove(&repository, "app");
    assert_eq!(planned(&repository, ""), ["/app delete"]);
    repository.git("branch -q -m main trunk");
    let unknown = "/app blocked: the default branch is unknown: there is neither a remote nor a branch `main` or `master`";
    assert_eq!(planned(&repository, ""), [unknown]);
    let why = done(&repository, "why /app");
    let way_out = "fix      run `git remote add origin URL`, or set `config.git.default_branch`\n";
    assert!(why.contains(way_out), "{why}");
    repository.git("checkout -q --detach");
    repository.git("branch -q -D trunk");
    assert_eq!(planned(&repository, ""), [unknown]);
    repository.git("checkout -q -b trunk");
    let config = "orch {\n  config {\n    git {\n      default_branch = \"trunk\"\n    }\n  }\n}\n";
    repository.write("/git.orch.hcl", config);
    repository.commit();
    assert_eq!(planned(&repository, ""), ["/app delete"]);
}

#[test]
fn commits_that_were_fetched_without_a_remote_destroy_nothing() {
    let (repository, _, tip) = late();
    repository.git("remote remove origin");
    repository.git("branch -q -D main");
    repository.git("fetch -q ../origin.git main");
    let unknown = "/app blocked: the default branch is unknown: commits were fetched here, but there is no remote";
    assert_eq!(planned(&repository, ""), [unknown]);
    // Any branch of this clone is its own.
    repository.git("checkout -q -b main");
    assert_eq!(planned(&repository, ""), [unknown]);
    let why = done(&repository, "why /app");
    let way_out = "fix      run `git remote add origin URL`\n";
    assert!(why.contains(way_out), "{why}");
    repository.git("remote add origin ../origin.git");
    let blocked = has(&tip, "app/stack.orch.hcl");
    assert_eq!(planned(&repository, "--fetch"), [blocked]);
}

#[test]
fn the_remote_says_which_branch_is_the_default_one() {
    let (repository, removal, tip) = late();
    let origin = repository.outside().join("origin.git");
    repository.git_in(&origin, "branch -m main trunk");
    repository.git("symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main");
    repository.git(&format!("update-ref refs/remotes/origin/main {removal}"));
    assert_eq!(planned(&repository, ""), ["/app delete"]);
    let blocked = has(&tip, "app/stack.orch.hcl").replace("origin/main", "origin/trunk");
    assert_eq!(planned(&repository, "--fetch"), [&*blocked]);
    assert_eq!(planned(&repository, ""), [blocked]);
    // A branch that the remote no longer has proves nothing.
    let config = "orch {\n  config {\n    git {\n      default_branch = \"main\"\n    }\n  }\n}\n";
    repository.write("/git.orch.hcl", config);
    repository.commit();
    let arguments = format!("apply {APPROVED} --fetch");
    fails(
        &repository,
        &arguments,
        5,
        "failed to fetch the default branch",
    );
    assert_eq!(world(&repository), ["app", "b"]);
}

#[test]
fn without_a_remote_the_local_default_branch_counts() {
    let repository = applied(&[("/app", ""), ("/b", "")]);
    let tip = short(&repository, "main");
    repository.git("checkout -q -b feature");
    remove(&repository, "app");
    let blocked = format!("/app blocked: main has it at commit {tip}: `app/stack.orch.hcl`");
    assert_eq!(planned(&repository, ""), [blocked]);
    let why = done(&repository, "why /app");
    assert!(
        why.contains("fix      merge the deletion into main\n"),
        "{why}"
    );
    repository.git("branch -q -f main feature");
    assert_eq!(planned(&repository, ""), ["/app delete"]);
}

#[test]
fn an_apply_with_nothing_to_do_records_that_the_default_branch_has_what_was_applied() {
    let repository = published(&[("/app", ""), ("/b", "")]);
    let seen = |path: &str| entry(&repository, path)["applied"]["seen"].clone();
    want(&repository, "/app", "2");
    repository.commit();
    done(&repository, "apply --auto-approve");
    assert_eq!(seen("/app"), Value::Null, "it is not pushed");
    let writes = || {
        let history = done(&repository, "state history").lines().count();
        (history, done(&repository, "state backups"))
    };
    let before = writes();
    done(&repository, "apply --auto-approve");
    assert_eq!(seen("/app"), Value::Null, "it is not pushed");
    repository.git("push -q origin main");
    let said = done(&repository, "apply --auto-approve");
    assert!(said.contains("nothing to do"), "{said}");
    for path in ["/app", "/b"] {
        assert_eq!(seen(path), head(&repository));
    }
    // So does one after a squash, which has another commit.
    repository.git("reset -q --soft base");
    repository.git("commit -q -m squashed");
    repository.git("push -q -f origin main");
    done(&repository, "apply --auto-approve");
    assert_eq!(seen("/app"), head(&repository));
    // What is not committed is not known to be there.
    want(&repository, "/app", "3");
    done(&repository, "apply --auto-approve --disable-safeguards=all");
    assert_eq!(seen("/app"), Value::Null);
    // Nothing has happened to the stacks.
    let (history, backups) = before;
    assert_eq!(writes().0, history + 1);
    assert_eq!(writes().1.lines().count(), backups.lines().count() + 1);
}

#[test]
fn a_removal_needs_no_apply_between_the_push_and_the_deletion() {
    let repository = published(&[("/b", "")]);
    declare(&repository, "/app", "");
    want(&repository, "/app", "the app");
    repository.commit();
    done(&repository, "apply --auto-approve");
    assert_eq!(entry(&repository, "/app")["applied"]["seen"], Value::Null);
    remove(&repository, "app");
    assert_eq!(planned(&repository, ""), ["/app delete"]);
    repository.git("push -q origin main");
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(world(&repository), ["b"]);
}
