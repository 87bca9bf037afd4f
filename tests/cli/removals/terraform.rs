//! Removals of stacks of real Terraform, whose only provider is built in.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{
    APPROVED, STATE, assert_tidy, change_entry, declare, done, entry, head, keys, leaves_blocked,
    planned, remove,
};
use crate::support::{Repository, Sandbox, skipped};

const MAIN: &str = r#"resource "terraform_data" "a" {
  input = "made"
  provisioner "local-exec" {
    when    = destroy
    command = "pwd -P >> OUTSIDE/destroyed"
  }
}
"#;

/// A project with `/net`, `/app` after it and `/other`, all applied; nothing where there is no Terraform.
fn applied() -> Option<Repository> {
    if Command::new("terraform").arg("version").output().is_err() {
        skipped("there is no terraform on the PATH");
        return None;
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/.gitignore", "*.tfstate*\n.terraform*\n");
    let main = MAIN.replace("OUTSIDE", &sandbox.outside().to_string_lossy());
    for (path, lines) in [("/net", ""), ("/app", "after = [\"/net\"]"), ("/other", "")] {
        super::declare(&sandbox, path, lines);
        sandbox.write(&format!("{path}/main.tf"), &main);
    }
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    done(&repository, "apply --auto-approve");
    Some(repository)
}

/// Returns how many resources are in the state of a stack; `None` if there is no state.
fn resources(repository: &Repository, stack: &str) -> Option<usize> {
    let text = repository.read(&format!("{stack}/terraform.tfstate"));
    let state: Value = serde_json::from_str(&text).ok()?;
    Some(state["resources"].as_array()?.len())
}

/// Returns where resources were destroyed.
fn destroyed(repository: &Repository) -> Vec<String> {
    let text = fs::read_to_string(repository.outside().join("destroyed"));
    text.unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn removal_uses_the_local_state_in_place() {
    let Some(repository) = applied() else { return };
    let seen = head(&repository);
    remove(&repository, "net app");
    // What git ignores is still there.
    assert_eq!(resources(&repository, "/net"), Some(1));
    assert_eq!(planned(&repository, ""), ["/app delete", "/net delete"]);
    assert_tidy(&repository);
    assert_eq!(resources(&repository, "/net"), Some(1));
    done(&repository, "plan -o ../saved --allow-destroy=2");
    done(&repository, "apply ../saved");
    let places = destroyed(&repository);
    assert_eq!(places.len(), 2, "{places:?}");
    for (place, stack) in places.iter().zip(["app", "net"]) {
        assert!(place.ends_with(&format!("/{seen}/{stack}")), "{places:?}");
        assert!(place.starts_with(&*repository.path("/.orch/worktrees").to_string_lossy()));
        assert_eq!(resources(&repository, &format!("/{stack}")), Some(0));
    }
    assert_eq!(keys(&repository), ["/other"]);
    assert_tidy(&repository);
    assert_eq!(planned(&repository, ""), [""; 0]);
}

#[test]
fn removal_is_blocked_by_a_missing_local_state() {
    let Some(repository) = applied() else { return };
    remove(&repository, "net app");
    fs::remove_dir_all(repository.path("/net")).unwrap();
    let missing =
        "the state of its tool is not on this machine: `net/terraform.tfstate` is missing";
    assert_eq!(
        planned(&repository, ""),
        ["/app delete".to_owned(), format!("/net blocked: {missing}")]
    );
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert_eq!(keys(&repository), ["/net", "/other"]);
    assert_eq!(destroyed(&repository).len(), 1);
    assert_tidy(&repository);
}

#[test]
fn removal_does_not_follow_a_link_instead_of_a_state() {
    let Some(repository) = applied() else { return };
    remove(&repository, "net app");
    let elsewhere = repository.outside().join("stolen.tfstate");
    fs::rename(repository.path("/net/terraform.tfstate"), &elsewhere).unwrap();
    repository.symlink(&elsewhere, "/net/terraform.tfstate");
    let plan = planned(&repository, "");
    assert!(
        plan[1].starts_with("/net blocked: the state of its tool is not on this machine"),
        "{plan:?}"
    );
}

#[test]
fn removal_forgets_stacks_that_terraform_has_destroyed() {
    let Some(repository) = applied() else { return };
    remove(&repository, "app");
    let text = repository.read("/app/terraform.tfstate");
    let mut state: Value = serde_json::from_str(&text).unwrap();
    state["resources"] = serde_json::json!([]);
    repository.write("/app/terraform.tfstate", state.to_string());
    assert_eq!(planned(&repository, ""), ["/app forget"]);
    done(&repository, "apply --auto-approve");
    assert_eq!(keys(&repository), ["/net", "/other"]);
}

#[test]
fn removal_is_blocked_by_new_stacks_with_unknown_backends() {
    let Some(repository) = applied() else { return };
    remove(&repository, "app");
    // Nobody takes it for the old one.
    let lines = (0..40).map(|line| format!("# {line}\n"));
    let lines = lines.collect::<Vec<_>>().concat();
    repository.write("/new/stack.orch.hcl", format!("{lines}stack {{\n}}\n"));
    repository.write(
        "/new/main.tf",
        "terraform {\n  backend \"local\" {\n    path = \"../app/terraform.tfstate\"\n  }\n}\n",
    );
    repository.commit();
    assert_eq!(
        planned(&repository, "--match app"),
        ["/app blocked: /new may have the same backend"]
    );
    // Once it is asked, it is known that it is `/app`.
    let plan = planned(&repository, "");
    assert!(
        plan.iter().all(|it| !it.starts_with("/app delete")),
        "{plan:?}"
    );
    assert!(
        plan.iter().any(|it| it.starts_with("/new = /app ")),
        "{plan:?}"
    );
    assert_eq!(destroyed(&repository).len(), 0);
    assert_eq!(entry(&repository, "/app")["driver"], "terraform");
    // Then everything that is known of `/app` counts.
    done(&repository, "state taint /app");
    let plan = planned(&repository, "");
    assert!(
        plan.contains(&"/new = /app delete create".to_owned()),
        "{plan:?}"
    );
}

#[test]
fn removal_changes_a_committed_state_in_the_working_tree() {
    let Some(repository) = applied() else { return };
    repository.write("/.gitignore", ".terraform*\n");
    repository.commit();
    done(&repository, "apply --auto-approve");
    // Its configuration goes, and its state stays.
    repository.git("rm -q app/main.tf app/stack.orch.hcl");
    repository.git("rm -q --cached app/terraform.tfstate");
    repository.write("/.gitignore", "*.tfstate*\n.terraform*\n");
    repository.commit();
    let plan = planned(&repository, "");
    assert_eq!(plan, ["/app delete"]);
    done(&repository, &format!("apply {APPROVED}"));
    assert_eq!(resources(&repository, "/app"), Some(0));
    assert_eq!(destroyed(&repository).len(), 1);
    assert_tidy(&repository);
}

#[test]
fn removal_that_fails_keeps_the_local_state() {
    let Some(repository) = applied() else { return };
    repository.write(
        "/app/more.tf",
        "resource \"terraform_data\" \"b\" {\n  depends_on = [terraform_data.a]\n}\n",
    );
    let failing = repository
        .read("/app/main.tf")
        .replace("pwd -P", "test -e ../../../../../may && pwd -P");
    repository.write("/app/main.tf", failing);
    repository.commit();
    done(&repository, "apply --auto-approve");
    remove(&repository, "app");
    // One of two resources is destroyed, and the state says so.
    let output = repository.orch(&format!("apply {APPROVED}"));
    assert_eq!(output.code(), 1, "{output}");
    assert_eq!(resources(&repository, "/app"), Some(1), "{output}");
    assert_eq!(entry(&repository, "/app")["last"]["outcome"], "failed");
    assert_tidy(&repository);
    fs::write(repository.outside().join("may"), "").unwrap();
    repository.write("/may", "");
    done(
        &repository,
        &format!("apply {APPROVED} --disable-safeguards=all"),
    );
    assert_eq!(resources(&repository, "/app"), Some(0));
    assert_eq!(keys(&repository), ["/net", "/other"]);
}

#[test]
fn removal_is_blocked_by_unrecorded_backends() {
    let Some(repository) = applied() else { return };
    remove(&repository, "app");
    // As what `orch run terraform apply` has recorded.
    change_entry(&repository, "/other", |entry| {
        entry["backend"] = Value::Null;
    });
    assert_eq!(
        planned(&repository, ""),
        ["/app blocked: /other may have the same backend"]
    );
    leaves_blocked(&repository, &format!("apply {APPROVED}"));
    assert_eq!(destroyed(&repository), [""; 0]);
    assert_eq!(planned(&repository, "--full"), ["/app delete"]);
    done(&repository, &format!("apply --full {APPROVED}"));
    assert_eq!(keys(&repository), ["/net", "/other"]);
}

#[test]
fn removal_forgets_nothing_without_a_known_state() {
    let Some(repository) = applied() else { return };
    remove(&repository, "app");
    change_entry(&repository, "/app", |entry| {
        entry["backend"] = Value::Null;
    });
    // Its state may be where Terraform keeps it by itself, and is linked in.
    assert_eq!(planned(&repository, ""), ["/app delete"]);
    fs::rename(
        repository.path("/app/terraform.tfstate"),
        repository.outside().join("kept"),
    )
    .unwrap();
    assert_eq!(
        planned(&repository, ""),
        ["/app blocked: its tool finds nothing, but its backend is not recorded"]
    );
    leaves_blocked(&repository, "apply --auto-approve");
    assert!(keys(&repository).contains(&"/app".to_owned()));
}

#[test]
fn removal_keeps_stacks_of_a_failed_apply_without_recorded_backend() {
    let Some(repository) = applied() else { return };
    repository.write("/app/more.tf", "# more\n");
    repository.commit();
    let later = head(&repository);
    remove(&repository, "app");
    change_entry(&repository, "/app", |entry| {
        entry["backend"] = Value::Null;
        entry["last"]["outcome"] = "failed".into();
        entry["last"]["commit"] = later.clone().into();
    });
    let short = &later[..7];
    assert_eq!(
        planned(&repository, ""),
        [format!(
            "/app blocked: its last apply, of commit {short}, failed"
        )]
    );
}

#[test]
fn removal_does_not_follow_links_in_the_applied_commit() {
    let Some(repository) = applied() else { return };
    let victim = repository.outside().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("terraform.tfstate"), "of somebody else").unwrap();
    repository.symlink(&victim, "/later");
    repository.commit();
    let seen = head(&repository);
    fs::remove_file(repository.path("/later")).unwrap();
    declare(&repository, "/later", "");
    repository.write("/later/main.tf", "resource \"terraform_data\" \"b\" {\n}\n");
    repository.commit();
    done(&repository, "apply --auto-approve");
    remove(&repository, "app");
    change_entry(&repository, "/app", |entry| {
        entry["applied"]["seen"] = seen.into();
    });
    assert_eq!(planned(&repository, ""), ["/app delete"]);
    done(&repository, &format!("apply {APPROVED}"));
    let left: Vec<_> = fs::read_dir(&victim).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let text = fs::read_to_string(victim.join("terraform.tfstate")).unwrap();
    assert_eq!(text, "of somebody else");
}

#[test]
fn removal_keeps_the_backup_of_a_local_state() {
    let Some(repository) = applied() else { return };
    remove(&repository, "app");
    done(&repository, &format!("apply {APPROVED}"));
    let copy = repository.read("/app/terraform.tfstate.backup");
    let copy: Value = serde_json::from_str(&copy).unwrap();
    assert_eq!(copy["resources"].as_array().map(Vec::len), Some(1));
}
