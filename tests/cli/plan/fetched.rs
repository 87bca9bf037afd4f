//! `--fetch`: a plan gets the commits that prove a removal, and whose code destroys what was removed.

use std::fs;

use insta::assert_snapshot;

use crate::support::{Repository, Sandbox};

const ROOT: &str = r#"orch {
  config {
    driver = "fake"
    state {
      project = "acme"
      backend "local" {
        path = "../shared/acme"
      }
    }
  }
}
driver "fake" {
  apply   = ["true"]
  destroy = ["true", "${terramate.stack.name}"]
}
"#;

/// A shallow clone in which `/a` is gone, which is recorded, and why that is unknown.
fn shallow() -> Repository {
    shallow_without("a")
}

/// A shallow clone in which some of the stacks `/a` and `/b` are gone, which are recorded, and why that is unknown.
fn shallow_without(removed: &str) -> Repository {
    let sandbox = Repository::prepare("a\nb");
    sandbox.write("/root.orch.hcl", ROOT);
    let origin = Repository::of(sandbox);
    for command in ["state init", "state adopt --no-verify"] {
        assert_eq!(origin.orch(command).code(), 0);
    }
    origin.git(&format!("rm -q -r {removed}"));
    origin.commit();
    // The clone outlives what it is made of.
    let place = Sandbox::new("");
    fs::remove_dir_all(place.path("/")).unwrap();
    let url = place.outside().join("origin");
    fs::rename(origin.path("/"), &url).unwrap();
    fs::rename(
        origin.outside().join("shared"),
        place.outside().join("shared"),
    )
    .unwrap();
    let url = shell_words::quote(url.to_str().unwrap()).into_owned();
    let clone = Repository::clone(place, &format!("--depth 1 file://{url}"));
    let seen = clone.git("ls-remote -q origin refs/tags/base");
    clone.learn(&seen[..7], "[base]");
    clone
}

#[test]
fn plan_fetches_commits_that_prove_a_removal() {
    let clone = shallow();
    assert_snapshot!(clone.orch("plan"), @"
      ! /a  blocked: the applied commit [base] is not in this shallow clone

    Plan: 1 blocked, 1 unchanged.
    [stderr]
    warning: `/a` is recorded but not in the project, and is not destroyed: the applied commit [base] is not in this shallow clone
      = help: run `git fetch --unshallow origin`, or add `--fetch`
    ");
    let plan = clone.orch("plan --fetch");
    let head = clone.git("rev-parse --short=7 HEAD");
    assert_snapshot!(plan.without_git().replace(head.trim(), "[head]"), @"
      - /a  delete  removed in [head]

    Plan: 1 to delete, 1 unchanged.
    [stderr]
    note: running `git fetch origin +refs/heads/main:refs/remotes/origin/main`
    note: running `git fetch --unshallow origin`
    ");
}

#[test]
fn apply_fetches_the_code_of_removed_stacks() {
    let clone = shallow();
    let applied = clone.orch("apply --fetch --auto-approve --allow-destroy=1");
    assert_eq!(applied.code(), 0, "{applied}");
    assert!(
        applied.stderr.contains("orch: /a (destroy): succeeded"),
        "{applied}"
    );
    let list = clone.orch("state list --format json").json();
    let stacks = list["stacks"].as_array().unwrap();
    assert!(stacks.iter().all(|stack| stack["path"] != "/a"), "{list}");
}

#[test]
fn apply_of_a_removal_that_is_unknown_is_blocked() {
    let clone = shallow();
    let applied = clone.orch("apply --auto-approve --allow-destroy=1");
    assert_eq!(applied.code(), 4, "{applied}");
    let blocked = "1 stack is blocked and left unchanged: /a";
    for said in [blocked, "or add `--fetch`"] {
        assert!(applied.stderr.contains(said), "{said}: {applied}");
    }
    assert!(!applied.stderr.contains("nothing to do"), "{applied}");
    let planned = clone.orch("plan --detailed-exitcode");
    assert_eq!(planned.code(), 4, "{planned}");
    // So says a plan file.
    assert_eq!(clone.orch("plan -o ../saved").code(), 0);
    let applied = clone.orch("apply ../saved");
    assert_eq!(applied.code(), 4, "{applied}");
    assert!(applied.stderr.contains(blocked), "{applied}");
}

#[test]
fn plan_fetches_proof_that_the_state_belongs_to_the_project() {
    let clone = shallow_without("a b");
    let refused = clone.orch("plan");
    assert_eq!(refused.code(), 4, "{refused}");
    let way_out = "in a shallow clone, run `git fetch --unshallow`";
    assert!(refused.stderr.contains(way_out), "{refused}");
    let plan = clone.orch("plan --fetch");
    let head = clone.git("rev-parse --short=7 HEAD");
    assert_snapshot!(plan.without_git().replace(head.trim(), "[head]"), @"
      - /a  delete  removed in [head]
      - /b  delete  removed in [head]

    Plan: 2 to delete.
    [stderr]
    note: running `git fetch origin +refs/heads/main:refs/remotes/origin/main`
    note: running `git fetch --unshallow origin`
    ");
    // Nothing is fetched for the document of another project.
    let clone = shallow_without("a b");
    let root = ROOT.replace("\"acme\"", "\"other\"");
    clone.write("/root.orch.hcl", root);
    let refused = clone.orch("plan --fetch");
    assert_eq!(refused.code(), 4, "{refused}");
    assert!(!refused.stderr.contains("git fetch"), "{refused}");
}

#[test]
fn plan_without_state_fetches_nothing() {
    let sandbox = Sandbox::layout("a");
    for command in ["apply --fetch", "destroy --fetch"] {
        assert_eq!(sandbox.orch(command).code(), 64, "{command}");
    }
    assert_snapshot!(sandbox.orch("plan --fetch"), @"
    [stderr]
    error: `--fetch` has no effect without `--changed` or `--status`; add `--changed` or `--status`
    [exit status 64]
    ");
}
