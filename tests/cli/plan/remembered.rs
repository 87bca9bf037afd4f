//! What is recorded besides inputs: outputs that stacks were applied with, and where tools keep their states.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{FAKE, project};
use crate::support::{Repository, Sandbox, skipped};

const STATE: &str = "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";

/// The digest of no outputs at all.
const NOTHING: &str = "00000000000000000000000000000000";

/// Puts the stacks of a project recorded as applied.
fn recorded(sandbox: Sandbox) -> Repository {
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/.gitignore", "asked\n*.tfstate*\n.terraform*\n");
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("state init").code(), 0);
    assert_eq!(repository.orch("state adopt --no-verify").code(), 0);
    repository
}

/// Changes the entry of a stack.
fn edit(repository: &Repository, stack: &str, change: impl FnOnce(&mut Value)) {
    let path = "/.orch/state/default.json";
    let mut document: Value = serde_json::from_str(&repository.read(path)).unwrap();
    change(&mut document["stacks"][stack]);
    repository.write(path, document.to_string());
}

/// Returns whether the tool of a stack has been asked since.
fn is_asked(repository: &Repository, stack: &str) -> bool {
    let asked = repository.path(&format!("{stack}/asked"));
    let is_asked = asked.exists();
    if is_asked {
        std::fs::remove_file(asked).unwrap();
    }
    is_asked
}

fn after(stack: &str, driver: &str) -> String {
    format!("stack {{\n  driver = \"{driver}\"\n  after  = [\"{stack}\"]\n}}\n")
}

#[test]
fn plan_asks_stacks_whose_used_outputs_differ() {
    let says = "touch asked; exit 2";
    let sandbox = project(&[
        ("/a", says),
        ("/b", says),
        ("/c", says),
        ("/d", "touch asked"),
    ]);
    sandbox.write("/b/stack.orch.hcl", after("/a", "fake"));
    sandbox.write("/c/stack.orch.hcl", after("/b", "fake"));
    sandbox.write("/d/stack.orch.hcl", after("/a", "fake"));
    let repository = recorded(sandbox);
    let unchanged = "Plan: nothing to do. 4 unchanged.\n";
    for stack in ["/b", "/d"] {
        let upstream = |entry: &mut Value| entry["applied"]["upstream"] = NOTHING.into();
        edit(&repository, stack, upstream);
    }
    assert_eq!(repository.orch("plan").stdout, unchanged);
    edit(&repository, "/a", |entry| {
        entry["outputs"] = json!({"id": "1"});
        entry["applied"]["serial"] = 100.into();
    });
    assert_snapshot!(repository.orch("plan").stdout, @"
      ~ /b  update  outputs of /a differ
      ? /c  known after /b

    Plan: 1 to update, 1 known after apply, 2 unchanged.
    ");
    assert!(!is_asked(&repository, "/a"), "nothing is before it");
    assert!(
        !is_asked(&repository, "/c"),
        "it is not known what it was applied with"
    );
    assert!(is_asked(&repository, "/b") && is_asked(&repository, "/d"));
    let plan = repository.orch("plan --format json").json();
    assert_eq!(plan["stacks"][3]["reason"]["text"], "no changes");
    // What has no outputs stands for what is before it.
    let upstream = |entry: &mut Value| entry["applied"]["upstream"] = NOTHING.into();
    edit(&repository, "/c", upstream);
    let plan = repository.orch("plan --match c").stdout;
    assert!(plan.contains("outputs of /a differ"), "{plan}");
    edit(&repository, "/b", |entry| {
        entry["outputs"] = json!({"id": "1"});
    });
    let plan = repository.orch("plan --match c").stdout;
    assert!(
        plan.contains("outputs of stacks that it runs after differ"),
        "{plan}"
    );
    // None of that matters where all is destroyed.
    let plan = repository.orch("plan --destroy --match c").stdout;
    assert!(plan.contains("--destroy"), "{plan}");
}

#[test]
fn list_shows_stacks_as_pending_whose_used_outputs_differ() {
    let sandbox = project(&[("/a", "touch asked"), ("/b", "touch asked"), ("/c", "")]);
    sandbox.write("/b/stack.orch.hcl", after("/a", "fake"));
    sandbox.write("/c/stack.orch.hcl", after("/a", "fake"));
    let repository = recorded(sandbox);
    let upstream = |entry: &mut Value| entry["applied"]["upstream"] = NOTHING.into();
    edit(&repository, "/b", upstream);
    let pending = |arguments: &str| repository.orch(&format!("list {arguments}")).stdout;
    assert_eq!(pending("--status applied"), "a\nb\nc\n");
    assert_eq!(pending("--changed --base applied"), "");
    edit(&repository, "/a", |entry| {
        entry["outputs"] = json!({"id": "1"});
        entry["applied"]["serial"] = 100.into();
    });
    // The outputs that `/c` was applied with are not recorded.
    assert_eq!(pending("--status applied"), "a\nc\n");
    assert_eq!(pending("--changed --base applied"), "b\n");
    let why = pending("--status pending --why");
    assert!(why.contains("pending: outputs of /a differ"), "{why}");
    let listed = repository.orch("state list").stdout;
    assert!(listed.contains("\n/b  pending "), "{listed}");
    assert!(!is_asked(&repository, "/b"), "no tool is asked");
    let ignores = "stack {\n  driver = \"fake\"\n  after  = [\"/a\"]\n  lifecycle {\n    ignore_changes = all\n  }\n}\n";
    repository.write("/b/stack.orch.hcl", ignores);
    assert_eq!(pending("--changed --base applied"), "");
}

#[test]
fn plan_gives_a_driver_without_plan_work_if_used_outputs_differ() {
    let sandbox = project(&[("/a", "true")]);
    let driver = "\ndriver \"blind\" {\n  apply = [\"true\"]\n}\n";
    sandbox.write("/orch.orch.hcl", format!("{FAKE}{driver}"));
    sandbox.write("/b/stack.orch.hcl", after("/a", "blind"));
    sandbox.write("/c/stack.orch.hcl", after("/a", "none"));
    let repository = recorded(sandbox);
    let upstream = |entry: &mut Value| entry["applied"]["upstream"] = NOTHING.into();
    edit(&repository, "/b", upstream);
    edit(&repository, "/c", upstream);
    let unchanged = "Plan: nothing to do. 3 unchanged.\n";
    assert_eq!(repository.orch("plan").stdout, unchanged);
    edit(&repository, "/a", |entry| {
        entry["outputs"] = json!({"id": "1"});
        entry["applied"]["serial"] = 100.into();
    });
    assert_snapshot!(repository.orch("plan").stdout, @"
      ~ /b  update  outputs of /a differ

    Plan: 1 to update, 2 unchanged.
    ");
}

/// A `terraform` whose state has an output with the text of the file `is`.
#[cfg(unix)]
const READ: &str = r#"#!/bin/sh
echo "$1" >> asked
case $1 in
show) echo '{"format_version":"1.2","output_changes":{"id":{"actions":["no-op"],"before":"'"$(cat ../is)"'","after":"?"}}}' ;;
esac
"#;

#[cfg(unix)]
#[test]
fn plan_reads_stacks_before_the_users_of_their_outputs() {
    let sandbox = project(&[("/use", "touch asked; exit 2")]);
    let read = "stack {\n  mode   = \"read\"\n  before = [\"/use\"]\n}\n";
    sandbox.write("/net/stack.orch.hcl", read);
    sandbox.write("/net/main.tf", "");
    let path = "orch {\n  config {\n    run {\n      env {\n        PATH = \"${terramate.root.path.fs.absolute}/bin:${env.PATH}\"\n      }\n    }\n  }\n}\n";
    sandbox.write("/path.orch.hcl", path);
    sandbox.write_program("/bin/terraform", READ);
    sandbox.write("/is", "one");
    let repository = recorded(sandbox);
    repository.write("/.gitignore", "asked\n*.tfstate*\n.terraform*\nis\n");
    // The outputs that are recorded are those that it has.
    let digest = "3c2a7b5e";
    edit(&repository, "/net", |entry| {
        entry["outputs"] = json!({"id": digest});
    });
    edit(&repository, "/use", |entry| {
        entry["applied"]["upstream"] = NOTHING.into();
    });
    assert_snapshot!(repository.orch("plan").stdout, @"
      < /net  read    it is only read  +0 ~0 -0
      ~ /use  update  outputs of /net differ

    Plan: 1 to update, 1 to read.
    ");
    assert_eq!(repository.read("/net/asked"), "init\nplan\nshow\n", "once");
    assert!(is_asked(&repository, "/net") && is_asked(&repository, "/use"));
    // A tool that does not say that its plan is incomplete is known by its command.
    let is_complete = |arguments: &str| {
        let plan = repository.orch(&format!("plan --match net --format json {arguments}"));
        plan.json()["complete"].as_bool().unwrap()
    };
    assert!(is_complete(""));
    assert!(!is_complete("-- -exclude=terraform_data.a"));
}

#[test]
fn plan_blocks_stacks_whose_backend_has_changed() {
    let sandbox = project(&[("/a", "touch asked; exit 2"), ("/b", "touch asked; exit 2")]);
    let backend = "  backend     = \"kube ${global.cluster}${terramate.stack.path.absolute}\"\n";
    let driver = FAKE.replace("  may_replace", &format!("{backend}  may_replace"));
    sandbox.write("/orch.orch.hcl", driver);
    sandbox.write("/globals.tm", "globals {\n  cluster = \"prod\"\n}\n");
    let repository = recorded(sandbox);
    edit(&repository, "/a", |entry| {
        entry["backend"] = "kube prod/a".into();
    });
    edit(&repository, "/b", |entry| {
        entry["backend"] = "kube old/b".into();
    });
    let output = repository.orch("plan");
    assert_snapshot!(output.stdout, @"
      ! /b  blocked: its backend differs from the recorded one

    Plan: 1 blocked, 1 unchanged.
    ");
    assert_snapshot!(output.stderr, @"warning: the state of /b is in `kube prod/b`, and the recorded backend is `kube old/b`; if it was moved on purpose, run `orch state forget /b`");
    assert_snapshot!(repository.orch("plan --destroy").stdout, @"
      - /a  delete  --destroy
      ! /b  blocked: its backend differs from the recorded one

    Plan: 1 to delete, 1 blocked.
    ");
    assert_eq!(
        repository.orch("plan --detailed-exitcode --match a").code(),
        0
    );
    assert_eq!(
        repository.orch("plan --detailed-exitcode --match b").code(),
        4
    );
    assert_eq!(repository.orch("state forget /b").code(), 0);
    let plan = repository.orch("plan --match b").stdout;
    assert!(plan.contains("+ /b"), "{plan}");
    repository.write("/globals.tm", "globals {\n  cluster = [1]\n}\n");
    let listed = FAKE.replace("  may_replace", "  backend = global.cluster\n  may_replace");
    repository.write("/orch.orch.hcl", listed);
    let output = repository.orch("plan");
    assert_eq!(output.code(), 3);
    assert!(
        output.stderr.contains("`backend` must be a string"),
        "{output}"
    );
}

#[test]
fn plan_blocks_stacks_that_share_a_backend() {
    let sandbox = project(&[("/a", "exit 2"), ("/b", "exit 2"), ("/c", "exit 2")]);
    let backend = "  backend     = \"kube ${tm_try(global.name, terramate.stack.name)}\"\n";
    let driver = FAKE.replace("  may_replace", &format!("{backend}  may_replace"));
    sandbox.write("/orch.orch.hcl", driver);
    for stack in ["/a", "/b"] {
        sandbox.write(
            &format!("{stack}/globals.tm"),
            "globals {\n  name = \"one\"\n}\n",
        );
    }
    let output = sandbox.orch("plan");
    assert_snapshot!(output.stdout, @"
      ~ /c  update  has changes
      ! /a  blocked: it has the same backend as /b
      ! /b  blocked: it has the same backend as /a

    Plan: 1 to update, 2 blocked.
    ");
    assert_snapshot!(output.stderr, @r#"
    note: the project keeps no state: the tools of all selected stacks are asked, and stacks that were removed go unnoticed
    warning: /a and /b have the same backend, `kube one`; give each its own, or set `mode = "read"` in all but one
    "#);
    // Only what is recorded tells of stacks that are not planned.
    let alone = sandbox.orch("plan --match a").stdout;
    assert!(alone.contains("~ /a"), "{alone}");
    let repository = recorded(sandbox);
    edit(&repository, "/b", |entry| {
        entry["backend"] = "kube one".into();
    });
    let alone = repository.orch("plan --full --match a").stdout;
    assert!(alone.contains("! /a"), "{alone}");
    let read = "stack {\n  driver = \"fake\"\n  mode   = \"read\"\n}\n";
    repository.write("/b/stack.orch.hcl", read);
    let plan = repository.orch("plan --full").stdout;
    assert!(plan.contains("~ /a") && plan.contains("< /b"), "{plan}");
}

#[test]
fn plan_blocks_instances_that_share_a_local_state() {
    if std::process::Command::new("terraform")
        .arg("version")
        .output()
        .is_err()
    {
        return skipped("there is no terraform on the PATH");
    }
    let sandbox = Sandbox::new("");
    let stack = "stack {\n  for_each = [\"blue\", \"green\"]\n}\n";
    sandbox.write("/net/stack.orch.hcl", stack);
    sandbox.write("/net/main.tf", "resource \"terraform_data\" \"a\" {\n}\n");
    assert_snapshot!(sandbox.orch("plan").stdout, @r#"
      ! /net["blue"]   blocked: it has the same backend as /net["green"]
      ! /net["green"]  blocked: it has the same backend as /net["blue"]

    Plan: 2 blocked.
    "#);
    let own = "terraform {\n  backend \"local\" {\n  }\n}\n";
    sandbox.write("/net/backend.tf", own);
    let init = "orch {\n  config {\n    run {\n      env {\n        TF_CLI_ARGS_init = \"-backend-config=path=${each.key}.tfstate\"\n      }\n    }\n  }\n}\n";
    sandbox.write("/net/env.orch.hcl", init);
    assert_snapshot!(sandbox.orch("plan --init").stdout, @r#"
      + /net["blue"]   create  nothing exists  +1 ~0 -0
          + terraform_data.a
      + /net["green"]  create  nothing exists  +1 ~0 -0
          + terraform_data.a

    Plan: 2 to create. Resources: 2 to create.
    "#);
}

#[test]
fn plan_with_a_target_is_incomplete() {
    if std::process::Command::new("terraform")
        .arg("version")
        .output()
        .is_err()
    {
        return skipped("there is no terraform on the PATH");
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/net/stack.orch.hcl", "stack {\n}\n");
    let main = "resource \"terraform_data\" \"a\" {\n}\n\nresource \"terraform_data\" \"b\" {\n}\n";
    sandbox.write("/net/main.tf", main);
    let is_complete = |arguments: &str| {
        let plan = sandbox
            .orch(&format!("plan --format json {arguments}"))
            .json();
        plan["complete"].as_bool().unwrap()
    };
    assert!(is_complete(""));
    assert!(!is_complete("-- -target=terraform_data.a"));
}

/// A driver that prints what the file beside the stack says as its outputs.
const PRINTS: &str = r#"
driver "prints" {
  plan    = ["sh", "./says"]
  apply   = ["true"]
  read    = ["true"]
  outputs = ["cat", "../${terramate.stack.name}.json"]
}
"#;

/// A project of a stack `/net`, as its block says, and `/use` after it; both applied.
fn with_outputs(net: &str) -> Repository {
    let sandbox = project(&[
        ("/net", "touch asked; exit 2"),
        ("/use", "touch asked; exit $(cat ../status.json)"),
    ]);
    sandbox.write("/orch.orch.hcl", PRINTS);
    sandbox.write("/status.json", "2");
    sandbox.write("/net/stack.orch.hcl", net);
    sandbox.write("/use/stack.orch.hcl", after("/net", "prints"));
    sandbox.write("/net.json", "{\"id\": [1, 2]}");
    sandbox.write("/use.json", "{}");
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/.gitignore", "asked\n*.json\n");
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("state init").code(), 0);
    let applied = repository.orch("apply --auto-approve");
    assert_eq!(applied.code(), 0, "{applied}");
    is_asked(&repository, "/net");
    is_asked(&repository, "/use");
    repository
}

/// Changes what `/net` prints, and applies it with that.
fn print(repository: &Repository, outputs: &str) {
    repository.write("/net.json", outputs);
    let says = repository.read("/net/says");
    repository.write("/net/says", format!("{says}\n"));
    repository.commit();
    let applied = repository.orch("apply --auto-approve --match net");
    assert_eq!(applied.code(), 0, "{applied}");
    assert!(is_asked(repository, "/net") && !is_asked(repository, "/use"));
}

#[test]
fn plan_asks_stacks_applied_with_other_outputs_once() {
    let repository = with_outputs("stack {\n  driver = \"prints\"\n}\n");
    let unchanged = "Plan: nothing to do. 2 unchanged.\n";
    assert_eq!(repository.orch("plan").stdout, unchanged);
    print(&repository, "{ \"id\": [1.0, 2e0] }");
    assert_eq!(
        repository.orch("plan").stdout,
        unchanged,
        "they mean the same"
    );
    print(&repository, "{\"id\": [1, 3]}");
    assert_snapshot!(repository.orch("plan").stdout, @"
      ~ /use  update  outputs of /net differ

    Plan: 1 to update, 1 unchanged.
    ");
    assert!(is_asked(&repository, "/use") && !is_asked(&repository, "/net"));
    assert_eq!(repository.orch("apply --auto-approve").code(), 0);
    assert_eq!(repository.orch("plan").stdout, unchanged);
    // If its tool finds no changes, that is recorded.
    is_asked(&repository, "/use");
    print(&repository, "{}");
    repository.write("/status.json", "0");
    assert_eq!(repository.orch("apply --auto-approve").code(), 0);
    assert!(is_asked(&repository, "/use"));
    assert_eq!(repository.orch("plan").stdout, unchanged);
    assert!(!is_asked(&repository, "/use"));
}

#[test]
fn plan_uses_current_outputs_of_read_only_stacks() {
    let read = "stack {\n  driver = \"prints\"\n  mode   = \"read\"\n}\n";
    let repository = with_outputs(read);
    let as_before = "Plan: nothing to do. 1 to read, 1 unchanged.";
    let plan = repository.orch("plan").stdout;
    assert!(plan.ends_with(&format!("{as_before}\n")), "{plan}");
    assert!(!is_asked(&repository, "/use"));
    repository.write("/net.json", "{\"id\": \"new\"}");
    assert_snapshot!(repository.orch("plan").stdout, @"
      < /net  read    it is only read
      ~ /use  update  outputs of /net differ

    Plan: 1 to update, 1 to read.
    ");
    assert_eq!(repository.orch("apply --auto-approve").code(), 0);
    is_asked(&repository, "/use");
    let plan = repository.orch("plan").stdout;
    assert!(plan.ends_with(&format!("{as_before}\n")), "{plan}");
    assert!(!is_asked(&repository, "/use"));
    repository.write("/net.json", "[\"hunter2\"]");
    let output = repository.orch("plan");
    assert_eq!(output.code(), 1);
    assert_snapshot!(output.stderr, @"orch: /net: the outputs are not a JSON object");
}

const NET: &str = r#"resource "terraform_data" "id" {
  input = "one"
}

output "id" {
  value = terraform_data.id.output
}

output "password" {
  value     = "hunter2"
  sensitive = true
}
"#;

const USE: &str = r#"data "terraform_remote_state" "net" {
  backend = "local"
  config = {
    path = "../net/terraform.tfstate"
  }
}

resource "terraform_data" "use" {
  input = data.terraform_remote_state.net.outputs.id
}
"#;

#[test]
fn plan_needs_only_the_order_for_terraform_remote_state() {
    if std::process::Command::new("terraform")
        .arg("version")
        .output()
        .is_err()
    {
        return skipped("there is no terraform on the PATH");
    }
    let sandbox = Sandbox::new("");
    sandbox.write("/net/stack.orch.hcl", "stack {\n}\n");
    sandbox.write("/net/main.tf", NET);
    sandbox.write("/use/stack.orch.hcl", "stack {\n  after = [\"/net\"]\n}\n");
    sandbox.write("/use/main.tf", USE);
    sandbox.write("/state.orch.hcl", STATE);
    sandbox.write("/.gitignore", "*.tfstate*\n.terraform*\n");
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("state init").code(), 0);
    let apply = |flags: &str| {
        let applied = repository.orch(&format!("apply --auto-approve {flags}"));
        assert_eq!(applied.code(), 0, "{applied}");
    };
    apply("");
    let document = || repository.read("/.orch/state/default.json");
    let entry = |stack: &str| -> Value {
        let document: Value = serde_json::from_str(&document()).unwrap();
        document["stacks"][stack].clone()
    };
    for stack in ["net", "use"] {
        let backend = format!("local {stack}/terraform.tfstate@default");
        assert_eq!(entry(&format!("/{stack}"))["backend"], backend);
    }
    assert!(!document().contains("hunter2"));
    let password = |entry: Value| entry["outputs"]["password"].as_str().unwrap().to_owned();
    let first = password(entry("/net"));
    assert!(first.starts_with("run:"), "{first}");
    let unchanged = "Plan: nothing to do. 2 unchanged.\n";
    assert_eq!(repository.orch("plan").stdout, unchanged);
    repository.write("/net/main.tf", NET.replace("one", "two"));
    repository.commit();
    apply("--match net");
    assert_ne!(password(entry("/net")), first);
    assert_snapshot!(repository.orch("plan").stdout, @"
      ~ /use  update  outputs of /net differ  +0 ~1 -0
          ~ terraform_data.use

    Plan: 1 to update, 1 unchanged. Resources: 1 to change.
    ");
    apply("");
    assert_eq!(repository.orch("plan").stdout, unchanged);
    // Nothing is derived from it, so any apply of its stack may have changed it.
    repository.write(
        "/net/main.tf",
        NET.replace("one", "two").replace("hunter2", "hunter3"),
    );
    repository.commit();
    assert_snapshot!(repository.orch("plan").stdout, @"
      ~ /net  update  net/main.tf differs  outputs only
      ? /use  known after /net

    Plan: 1 to update, 1 known after apply.
    ");
    apply("");
    assert_eq!(repository.orch("plan").stdout, unchanged);
}
