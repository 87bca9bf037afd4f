//! Resources that are destroyed inside stacks that are kept are approved like stacks.

use super::followed::{LIST, attach};
use super::{STATE, acts, applied, declare, done, fails, hook, log, project, want, world};
use crate::support::{Repository, Sandbox, answered_after, skipped};

/// An applied stack `/a` whose next update removes a resource; its driver names none.
fn removing() -> Repository {
    let repository = applied(&[("/a", "")]);
    want(&repository, "/a", "2");
    hook(&repository, "plan", "a", REMOVES);
    log(&repository);
    repository
}

/// What a driver answers that would remove a resource, unless it makes what is wanted.
const REMOVES: &str = "printf 2 > $ORCH_PLAN_FILE; [ \"$(cat $world/$name)\" = 2 ] || { echo '{\"add\":1,\"remove\":1}' > $ORCH_ANSWER; exit 2; }";

/// What is said of resources that nobody has approved.
const REFUSED: &str = "the plan would destroy 1 resource without approval in stacks that are kept:\n  /a: 1 resource, not named by the driver";

#[test]
fn apply_refuses_to_destroy_resources_that_auto_approve_does_not_approve() {
    let repository = removing();
    for flags in ["--auto-approve", "--auto-approve --allow-destroy=9", ""] {
        let said = fails(&repository, &format!("apply {flags}"), 4, REFUSED);
        assert!(said.contains("`--allow-resource-destroy`"), "{said}");
        assert_eq!(acts(&repository), [""; 0]);
    }
    done(&repository, "apply --auto-approve --allow-resource-destroy");
    assert_eq!(acts(&repository), ["apply update a"]);
}

#[test]
fn apply_of_a_file_destroys_the_resources_that_it_shows() {
    let repository = removing();
    done(&repository, "plan -o ../saved");
    done(&repository, "apply ../saved");
    assert_eq!(acts(&repository), ["apply update a"]);
}

#[test]
fn apply_destroys_resources_where_the_nearest_directory_allows_it() {
    let config = |value: &str| {
        format!(
            "orch {{\n  config {{\n    apply {{\n      resource_destroy = \"{value}\"\n    }}\n  }}\n}}\n"
        )
    };
    let repository = removing();
    repository.write("/allow.orch.hcl", config("allow"));
    repository.write("/a/ask.orch.hcl", config("ask"));
    repository.commit();
    fails(&repository, "apply --auto-approve", 4, REFUSED);
    repository.remove("/a/ask.orch.hcl");
    repository.commit();
    done(&repository, "apply --auto-approve");
    assert_eq!(acts(&repository), ["apply update a"]);
    repository.write("/allow.orch.hcl", config("yes"));
    fails(&repository, "plan", 3, "`resource_destroy`");
}

#[test]
fn apply_asks_about_destroyed_resources_with_their_names() {
    let repository = removing();
    let Some((code, said)) = answered_after(&repository, "apply", "no\n", || ()) else {
        return;
    };
    assert_eq!(code, 4, "{said}");
    let list = "These resources will be destroyed in stacks that are kept:";
    assert!(said.contains(list), "{said}");
    assert!(
        said.contains("  /a: 1 resource, not named by the driver"),
        "{said}"
    );
    let (code, said) = answered_after(&repository, "apply", "yes\n", || ()).unwrap();
    assert_eq!(code, 0, "{said}");
    assert_eq!(world(&repository, "a").as_deref(), Some("2"));
}

#[test]
fn apply_of_new_changes_destroys_no_resources_that_were_not_shown() {
    let scene = || {
        let repository = applied(&[("/a", ""), ("/b", "after = [\"/a\"]")]);
        want(&repository, "/a", "2");
        // Once `/a` is applied, `/b` would lose a resource.
        let removes = "[ \"$(cat $world/a)\" = 1 ] || { printf 1 > $ORCH_PLAN_FILE; echo '{\"change\":1,\"remove\":1}' > $ORCH_ANSWER; exit 2; }";
        hook(&repository, "plan", "b", removes);
        log(&repository);
        repository
    };
    for flags in ["--auto-approve", "--auto-approve --new-changes apply"] {
        let repository = scene();
        let said = "/b: failed: has changes that the plan does not show (+0 ~1 -1)";
        fails(&repository, &format!("apply {flags}"), 1, said);
        assert_eq!(acts(&repository), ["apply update a"]);
    }
    let repository = scene();
    done(&repository, "apply --auto-approve --allow-resource-destroy");
    assert_eq!(acts(&repository), ["apply update a", "apply update b"]);
}

#[test]
fn apply_without_a_state_asks_about_destroyed_resources_as_well() {
    let repository = project(&[("/a", "")]);
    done(&repository, "apply --auto-approve");
    want(&repository, "/a", "2");
    hook(&repository, "plan", "a", REMOVES);
    fails(&repository, "apply --auto-approve", 4, REFUSED);
}

#[test]
fn apply_names_the_resources_that_terraform_destroys() {
    if std::process::Command::new("terraform")
        .arg("version")
        .output()
        .is_err()
    {
        return skipped("there is no terraform on the PATH");
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/.gitignore", ".terraform\n*.tfstate*\n");
    declare(&sandbox, "/app", "");
    let main = |name: &str| format!("resource \"terraform_data\" \"{name}\" {{\n}}\n");
    sandbox.write("/app/main.tf", main("old"));
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("state init").code(), 0);
    done(&repository, "apply --auto-approve");
    repository.write("/app/main.tf", main("new"));
    repository.commit();
    let said = "the plan would destroy 1 resource without approval in stacks that are kept:\n  /app: terraform_data.old";
    fails(&repository, "apply --auto-approve", 4, said);
    let state = repository.read("/app/terraform.tfstate");
    assert!(state.contains("\"old\""), "{state}");
    done(&repository, "plan -o ../saved");
    done(&repository, "apply ../saved");
    let state = repository.read("/app/terraform.tfstate");
    assert!(!state.contains("\"old\""), "{state}");
}

#[test]
fn apply_holds_follow_ups_to_the_approval_of_destroyed_resources() {
    let scene = |lines: &str| {
        let repository = applied(&[("/a", ""), ("/b", lines)]);
        attach(&repository, "list", LIST);
        hook(&repository, "plan", "b", REMOVES);
        repository.write("/b/want", "2");
        want(&repository, "/a", "2");
        log(&repository);
        repository
    };
    let waits = "note: these follow-ups would destroy resources without approval:\n  /b: 1 resource, not named by the driver";
    let repository = scene("");
    let said = fails(&repository, "apply --auto-approve --match a", 4, waits);
    assert_eq!(acts(&repository), ["apply update a"]);
    let (_, command) = said.split_once("to apply this plan, run `orch ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    done(&repository, command);
    assert_eq!(acts(&repository), ["apply update b"]);
    // What the stack approves by itself is held to the same.
    let repository = scene("autodeploy = true");
    done(&repository, "plan --match a -o ../saved");
    fails(&repository, "apply ../saved", 4, waits);
    assert_eq!(acts(&repository), ["apply update a"]);
    let approved = "apply --auto-approve --allow-resource-destroy --match a";
    let repository = scene("");
    done(&repository, approved);
    assert_eq!(acts(&repository), ["apply update a", "apply update b"]);
    let repository = scene("autodeploy = true");
    let allows =
        "orch {\n  config {\n    apply {\n      resource_destroy = \"allow\"\n    }\n  }\n}\n";
    repository.write("/b/allow.orch.hcl", allows);
    repository.commit();
    done(&repository, "plan --match a -o ../saved");
    done(&repository, "apply ../saved");
    assert_eq!(acts(&repository), ["apply update a", "apply update b"]);
    // Nothing approves the destruction of protected resources.
    let repository = scene("lifecycle {\n    prevent_resource_destroy = true\n  }");
    let said = "/b: failed: would destroy 1 resource of it, which is protected; protected by b/stack.orch.hcl:3";
    fails(&repository, approved, 1, said);
    assert_eq!(acts(&repository), ["apply update a"]);
}

#[test]
fn apply_names_the_resources_that_follow_ups_destroy() {
    if std::process::Command::new("terraform")
        .arg("version")
        .output()
        .is_err()
    {
        return skipped("there is no terraform on the PATH");
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/.gitignore", ".terraform\n*.tfstate*\n");
    let main = |name: &str| format!("resource \"terraform_data\" \"{name}\" {{\n}}\n");
    for path in ["/a", "/b"] {
        declare(&sandbox, path, "");
        sandbox.write(&format!("{path}/main.tf"), main("old"));
    }
    attach(&sandbox, "list", LIST);
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("state init").code(), 0);
    done(&repository, "apply --auto-approve");
    repository.write("/a/main.tf", main("old") + &main("new"));
    repository.write("/b/main.tf", main("new"));
    repository.commit();
    let waits = "would destroy resources without approval:\n  /b: terraform_data.old";
    fails(&repository, "apply --auto-approve --match a", 4, waits);
    let state = repository.read("/b/terraform.tfstate");
    assert!(state.contains("\"old\""), "{state}");
}
