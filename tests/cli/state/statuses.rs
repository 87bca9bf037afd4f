//! What `orch state adopt` puts recorded, and how stacks stand afterwards.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::Repository;

const FILES: &str = r#"
//- /state.orch.hcl
orch {
  config {
    state {
      project = "acme"
    }
  }
}
//- /app/stack.tm
stack {
  tags  = ["web"]
  after = ["../net", "tag:base"]
}
//- /app/main.tf
module "x" {
  source = "../mods/x"
}
//- /mods/x/main.tf
//- /net/stack.orch.hcl
stack {
  for_each = ["dev", "prod"]
  watch    = ["/watched/${each.key}.txt"]
}
//- /watched/dev.txt
//- /base/stack.tm
stack {
  id   = "base"
  tags = ["base"]
}
"#;

fn adopted() -> Repository {
    let repository = Repository::new(FILES);
    assert_eq!(repository.orch("state init").code(), 0);
    let adopted = repository.orch("state adopt --no-verify --reason 'they exist'");
    let note = "note: nothing was verified with the tools (`--no-verify`)\n";
    assert_eq!((adopted.code(), &*adopted.stderr), (0, note), "{adopted}");
    repository
}

/// The recorded stacks, each with its status and the reason for it.
fn statuses(repository: &Repository) -> Vec<String> {
    let list = repository.orch("state list --format json").json();
    let stacks = list["stacks"].as_array().unwrap().iter();
    let line = |stack: &Value| {
        let text = |name: &str| stack[name].as_str().unwrap_or_default().to_owned();
        let line = format!("{} {} {}", text("path"), text("status"), text("why"));
        line.trim_end().to_owned()
    };
    stacks.map(line).collect()
}

/// Those that are not as they were applied.
fn others(repository: &Repository) -> Vec<String> {
    let mut all = statuses(repository);
    all.retain(|line| !line.ends_with(" applied"));
    // Commits differ each time.
    let without_commit = |line: String| match line.split_once(" from ") {
        Some((line, _)) => format!("{line} from COMMIT"),
        None => line,
    };
    all.into_iter().map(without_commit).collect()
}

#[test]
fn adopted_stacks_are_on_record_as_applied_at_head() {
    let repository = adopted();
    assert_eq!(
        statuses(&repository),
        [
            "/app applied",
            "/base applied",
            r#"/net["dev"] applied"#,
            r#"/net["prod"] applied"#
        ]
    );
    let shown = repository.orch("state show --format json").json();
    let stacks = &shown["document"]["stacks"];
    let stacks = if stacks.is_null() {
        &shown["stacks"]
    } else {
        stacks
    };
    let app = &stacks["/app"];
    assert_eq!(app["after"], json!(["/net", "tag:base"]));
    assert_eq!(stacks["/base"]["id"], "base");
    let applied = &app["applied"];
    let head = repository.git("rev-parse HEAD").trim().to_owned();
    assert_eq!(applied["commit"], head.as_str());
    assert_eq!(applied["seen"], head.as_str());
    assert_eq!(
        (&applied["run"], &applied["command"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(applied["dirty"], false);
    let inputs = &applied["inputs"];
    assert!(inputs["digest"].as_str().unwrap().starts_with("sha256:"));
    let parts: Vec<&String> = inputs["parts"].as_object().unwrap().keys().collect();
    assert_eq!(parts, ["module /mods/x", "own"]);
    let history = repository.orch("state history --format json").json();
    assert_eq!(history["history"][0]["what"], "adopt");
    assert_eq!(history["history"][0]["reason"], "they exist");
}

#[test]
fn status_pending_names_the_inputs_that_differ() {
    let repository = adopted();
    repository.write("/mods/x/main.tf", "variable \"a\" {}\n");
    repository.write("/watched/dev.txt", "1");
    repository.write("/watched/prod.txt", "new");
    assert_eq!(
        others(&repository),
        [
            "/app pending module /mods/x differs from COMMIT",
            r#"/net["dev"] pending watch /watched/dev.txt differs from COMMIT"#,
            r#"/net["prod"] pending watch /watched/prod.txt differs from COMMIT"#,
        ]
    );
    // As it was, whatever the commit.
    repository.git("checkout -q -- mods watched");
    repository.remove("/watched/prod.txt");
    repository.git("commit -q --allow-empty -m same");
    assert!(others(&repository).is_empty());
    // What the configuration computes counts too; the host's environment is only named.
    let with_env = "orch {\n  config {\n    run {\n      env {\n        A = \"a ${env.HOME}\"\n      }\n    }\n  }\n}\n";
    repository.write("/base/env.orch.hcl", with_env);
    assert_eq!(
        others(&repository),
        ["/base pending environment A, own differ from COMMIT"]
    );
    repository.git("add base");
    repository.git("commit -q -m env");
    assert_eq!(
        repository
            .orch("state adopt --no-verify --match base")
            .code(),
        0
    );
    let elsewhere = repository.orch_with("state list", |orch| {
        orch.env("HOME", "/somewhere/else");
    });
    assert!(!elsewhere.stdout.contains("pending"), "{elsewhere}");
}

#[test]
fn status_pending_by_a_trigger_ends_with_the_apply() {
    let repository = adopted();
    assert_eq!(
        repository.orch("trigger 'net[\"dev\"]' --reason x").code(),
        0
    );
    let pending = others(&repository);
    assert_eq!(pending.len(), 1, "{pending:?}");
    assert!(pending[0].starts_with(r#"/net["dev"] pending triggered (.tmtriggers/net/changed-"#));
    repository.git("add .tmtriggers");
    repository.git("commit -q -m trigger");
    assert_eq!(repository.orch("state adopt --no-verify").code(), 0);
    assert!(others(&repository).is_empty());
}

#[test]
fn failed_and_interrupted_stacks_come_before_what_differs() {
    let repository = adopted();
    assert_eq!(
        repository
            .orch("state taint app base --reason 'by hand'")
            .code(),
        0
    );
    repository.write("/mods/x/main.tf", "variable \"a\" {}\n");
    assert_eq!(
        others(&repository),
        ["/app failed tainted", "/base failed tainted"]
    );
    assert_eq!(repository.orch("state untaint base").code(), 0);
    repository.git("checkout -q -- mods");
    assert_eq!(
        repository
            .orch("state adopt --no-verify --match app")
            .code(),
        0
    );
    assert!(others(&repository).is_empty());
}

#[test]
fn status_removed_needs_proof_in_the_history() {
    let repository = adopted();
    repository.git("rm -q -r app");
    assert_eq!(others(&repository), ["/app absent"], "HEAD has it still");
    repository.git("commit -q -m 'without app'");
    assert_eq!(others(&repository), ["/app removed"]);
    let last = repository.git("rev-parse HEAD").trim().to_owned();
    repository.git("checkout -q --orphan other");
    repository.git("commit -q -m 'another history'");
    assert_eq!(
        others(&repository),
        ["/app absent"],
        "its commit is in no history of HEAD"
    );
    repository.git("checkout -q -f main");
    assert_eq!(repository.git("rev-parse HEAD").trim(), last);
    repository.write(
        "/net/stack.orch.hcl",
        "stack {\n  for_each = [\"dev\"]\n}\n",
    );
    repository.git("commit -q -a -m 'without prod'");
    assert_eq!(
        others(&repository),
        [
            "/app removed",
            r#"/net["dev"] pending own, watch /watched/dev.txt differ from COMMIT"#,
            r#"/net["prod"] removed"#
        ]
    );
}

#[test]
fn state_adopt_refuses_uncommitted_inputs() {
    let repository = adopted();
    repository.write("/mods/x/main.tf", "variable \"a\" {}\n");
    let before = repository.read("/.orch/state/default.json");
    assert_snapshot!(repository.orch("state adopt --no-verify"), @"
    [stderr]
    error: inputs of stack `/app` are not committed, so HEAD does not have them
      = help: commit them, or leave these stacks out with `--exclude`
    [exit status 4]
    ");
    assert_eq!(repository.read("/.orch/state/default.json"), before);
    assert_snapshot!(repository.orch("state adopt --no-verify --exclude app --dry-run"), @r#"
    adopted /base
    adopted /net["dev"]
    adopted /net["prod"]
    [stderr]
    note: nothing was verified with the tools (`--no-verify`)
    note: nothing was written: this is a dry run
    "#);
    assert_eq!(repository.read("/.orch/state/default.json"), before);
    assert_snapshot!(repository.orch("state adopt --no-verify --tags none"), @"
    [stderr]
    note: in `--tags`: no stack of the project has the tag `none`
    note: no stack at or below `/` passes the tag filters
    ");
}
