//! What `orch state adopt` and `orch state import` verify with the tools of stacks.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Output, Repository, Sandbox};

/// The drivers: `fake` makes a file of the folder `world` for each stack, with what its file `want` says; `mute`
/// has no plan; `vague` does not say whether anything exists.
const DRIVERS: &str = r#"
orch {
  config {
    driver = "fake"
    state {
      project = "acme"
    }
  }
}

driver "fake" {
  plan    = ["sh", "${terramate.root.path.fs.absolute}/tool"]
  apply   = ["sh", "-c", "cp want WORLD/$ORCH_STACK_NAME"]
  destroy = ["sh", "-c", "rm WORLD/$ORCH_STACK_NAME"]
  outputs = ["echo", "{\"id\":1}"]
  backend = "world ${terramate.stack.name}"
}

driver "mute" {
  apply   = ["true"]
  destroy = ["true"]
  backend = "mute ${terramate.stack.name}"
}

driver "vague" {
  plan    = ["sh", "-c", "exit 2"]
  apply   = ["true"]
  destroy = ["true"]
}
"#;

const TOOL: &str = r#"
made=WORLD/$ORCH_STACK_NAME
[ ! -e broken ] || { echo 'no such region' >&2; exit 1; }
if [ "$ORCH_ACTION" = delete ]; then
  [ -e "$made" ] || { echo '{"exists":false}' > "$ORCH_ANSWER"; exit 0; }
  echo '{"remove":1}' > "$ORCH_ANSWER"; exit 2
fi
cp want "$ORCH_PLAN_FILE"
[ -e "$made" ] || { echo '{"exists":false,"add":1}' > "$ORCH_ANSWER"; exit 2; }
cmp -s want "$made" || { echo '{"exists":true,"change":1}' > "$ORCH_ANSWER"; exit 2; }
echo '{"exists":true}' > "$ORCH_ANSWER"
"#;

/// A project with stacks, each with the lines of its block. Those that begin with `x` exist.
fn project(stacks: &[(&str, &str)]) -> Repository {
    let sandbox = Sandbox::new("");
    let world = sandbox.outside().join("world");
    fs::create_dir(&world).unwrap();
    let with_world = |text: &str| text.replace("WORLD", &world.display().to_string());
    sandbox.write("/drivers.orch.hcl", with_world(DRIVERS));
    sandbox.write("/tool", with_world(TOOL));
    for (name, lines) in stacks {
        sandbox.write(
            &format!("/{name}/stack.orch.hcl"),
            format!("stack {{\n  {lines}\n}}\n"),
        );
        sandbox.write(&format!("/{name}/want"), "1");
        if name.starts_with('x') {
            fs::write(world.join(name), "1").unwrap();
        }
    }
    let repository = Repository::of(sandbox);
    _ = done(&repository, "state init");
    repository
}

#[track_caller]
fn done(repository: &Repository, arguments: &str) -> Output {
    let output = repository.orch(arguments);
    assert_eq!(output.code(), 0, "{output}");
    output
}

fn stacks(repository: &Repository) -> Value {
    let shown = done(repository, "state show --format json").json();
    shown["document"]["stacks"].clone()
}

#[test]
fn adopt_refuses_stacks_that_their_tools_would_change() {
    let repository = project(&[("x1", ""), ("x2", "after = [\"/x1\"]"), ("new", "")]);
    repository.write("/x1/want", "2");
    repository.commit();
    assert_snapshot!(repository.orch("state adopt"), @"
    [stderr]
    error: nothing was recorded: these stacks differ from HEAD, according to their tools
        /new (create: not recorded)
        /x1 (update: not recorded)
        /x2 (runs after stacks that would change)
      = help: apply them with `orch apply`, leave them out with `--exclude`, or add `--no-verify` to record them anyway
    [exit status 4]
    ");
    assert_eq!(stacks(&repository), json!({}));
    fs::write(repository.outside().join("world/x1"), "2").unwrap();
    assert_snapshot!(done(&repository, "state adopt --exclude new --dry-run"), @"
    adopted /x1
    adopted /x2
    [stderr]
    note: nothing was written: this is a dry run
    ");
    assert_eq!(stacks(&repository), json!({}));
    assert_snapshot!(done(&repository, "state adopt --exclude new"), @"
    adopted /x1
    adopted /x2
    ");
    let stacks = stacks(&repository);
    assert_eq!(stacks["/x1"]["backend"], "world x1");
    assert_eq!(stacks["/x1"]["driver"], "fake");
    assert!(stacks["/x2"]["applied"]["upstream"].is_string(), "{stacks}");
}

#[test]
fn adopt_refuses_stacks_whose_tools_fail() {
    let repository = project(&[("x1", ""), ("x2", "")]);
    repository.write("/x2/broken", "");
    repository.commit();
    let failed = repository.orch("state adopt");
    assert_eq!(failed.code(), 1, "{failed}");
    assert!(failed.stderr.contains("no such region"), "{failed}");
    assert!(failed.stderr.contains("add `--no-verify`"), "{failed}");
    assert_eq!(stacks(&repository), json!({}));
}

#[test]
fn state_adopted_stack_is_destroyed_when_removed() {
    for adopt in ["state adopt", "state adopt --no-verify"] {
        let repository = project(&[("x1", ""), ("x2", "")]);
        _ = done(&repository, adopt);
        repository.git("rm -q -r x1");
        repository.commit();
        _ = done(&repository, "apply --auto-approve --allow-destroy=1");
        assert!(!repository.outside().join("world/x1").exists(), "{adopt}");
    }
}

#[test]
fn adopt_names_the_stacks_that_it_does_not_verify() {
    let repository = project(&[
        ("x1", ""),
        ("mute", "driver = \"mute\""),
        ("none", "driver = \"none\""),
    ]);
    assert_snapshot!(done(&repository, "state adopt"), @"
    adopted /mute
    adopted /none
    adopted /x1
    [stderr]
    note: not verified with a tool: `/mute` (the driver `mute` has no `plan`)
    ");
    let adopted = stacks(&repository);
    assert_eq!(adopted["/mute"]["backend"], "mute mute");
    assert_eq!(adopted["/none"]["driver"], "none");
    fs::remove_file(repository.outside().join("world/x1")).unwrap();
    assert_eq!(repository.orch("state adopt").code(), 4);
    assert_snapshot!(done(&repository, "state adopt --no-verify --match x1"), @"
    adopted /x1
    [stderr]
    note: nothing was verified with the tools (`--no-verify`)
    ");
    assert_eq!(stacks(&repository)["/x1"]["backend"], "world x1");
}

#[test]
fn outputs_that_change_after_an_adoption_are_noticed() {
    let repository = project(&[("x1", ""), ("x2", "after = [\"/x1\"]")]);
    _ = done(&repository, "state adopt");
    assert_eq!(
        stacks(&repository)["/x1"]["outputs"],
        Value::Null,
        "its driver prints them after an apply"
    );
    let plan = done(&repository, "plan").stdout;
    assert!(plan.contains("2 unchanged"), "{plan}");
    // Nothing is left for an apply to record.
    let apply = done(&repository, "apply --auto-approve");
    assert!(apply.stderr.contains("nothing to do"), "{apply}");
}

#[test]
fn import_refuses_stacks_that_do_not_exist() {
    let repository = project(&[
        ("x1", ""),
        ("new", ""),
        ("mute", "driver = \"mute\""),
        ("vague", "driver = \"vague\""),
    ]);
    repository.write(
        "/../graph.json",
        r#"{"x1": [], "new": ["x1"], "mute": [], "vague": [], "gone": []}"#,
    );
    assert_snapshot!(repository.orch("state import ../graph.json"), @"
    [stderr]
    error: nothing was recorded: these stacks do not exist, according to their tools
        /new (create: not recorded)
      = help: remove them from the file, or add `--no-verify` to record them anyway
    [exit status 4]
    ");
    // What exists and differs is imported: it is not taken for up to date.
    repository.write("/x1/want", "2");
    repository.commit();
    repository.write(
        "/../graph.json",
        r#"{"x1": [], "mute": [], "vague": [], "gone": []}"#,
    );
    assert_snapshot!(done(&repository, "state import ../graph.json"), @"
    imported /gone
    imported /mute
    imported /vague
    imported /x1
    [stderr]
    note: not verified with a tool: `/gone` (not in the working tree)
    note: not verified with a tool: `/mute` (the driver `mute` has no `plan`)
    note: not verified with a tool: `/vague` (the driver `vague` does not report whether anything exists)
    ");
    let imported = stacks(&repository);
    assert_eq!(imported["/x1"]["backend"], "world x1");
    assert_eq!(imported["/mute"]["driver"], "mute");
    repository.write("/../graph.json", r#"{"new": []}"#);
    assert_snapshot!(done(&repository, "state import --no-verify ../graph.json"), @"
    imported /new
    [stderr]
    note: nothing was verified with the tools (`--no-verify`)
    ");
}

#[test]
fn adopted_terraform_stacks_are_verified_and_destroyed_when_they_are_removed() {
    if std::process::Command::new("terraform")
        .arg("version")
        .output()
        .is_err()
    {
        return crate::support::skipped("there is no terraform on the PATH");
    }
    let sandbox = Sandbox::new("");
    sandbox.write(
        "/state.orch.hcl",
        "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n",
    );
    sandbox.write("/.gitignore", "*.tfstate*\n.terraform*\n");
    for stack in ["a", "b", "new"] {
        sandbox.write(&format!("/{stack}/stack.orch.hcl"), "stack {\n}\n");
        sandbox.write(
            &format!("/{stack}/main.tf"),
            "resource \"terraform_data\" \"x\" {\n  input = 1\n}\n",
        );
    }
    let repository = Repository::of(sandbox);
    _ = done(&repository, "state init");
    for command in ["init", "apply -auto-approve"] {
        _ = done(
            &repository,
            &format!("run --no-record --exclude new -- terraform {command}"),
        );
    }
    let refused = repository.orch("state adopt");
    assert_eq!(refused.code(), 4, "{refused}");
    assert!(
        refused.stderr.contains("/new (create: not recorded)"),
        "{refused}"
    );
    assert!(!refused.stderr.contains("/a"), "{refused}");
    _ = done(&repository, "state adopt --exclude new");
    assert_eq!(
        stacks(&repository)["/a"]["backend"],
        "local a/terraform.tfstate@default"
    );
    repository.git("rm -q -r a new");
    repository.commit();
    _ = done(&repository, "apply --auto-approve --allow-destroy=1");
    let state = repository.read("/a/terraform.tfstate");
    assert!(!state.contains("terraform_data"), "{state}");
    assert!(
        repository
            .read("/b/terraform.tfstate")
            .contains("terraform_data")
    );
}

#[test]
fn adopt_shows_each_warning_once() {
    let repository = project(&[("xa", "after = [\"/nowhere\"]")]);
    let output = repository.orch("state adopt");
    assert_eq!(output.code(), 0, "{output}");
    let warning = "warning: `/nowhere` in `after` matches no stack";
    assert_eq!(output.stderr.matches(warning).count(), 1, "{output}");
}
