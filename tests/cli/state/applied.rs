//! `--changed --base applied` and `--status`: what is selected by what is recorded.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Output, Repository};

/// `/a` has an id and uses a module; `/c` runs after `/b`.
const FILES: &str = r#"
//- /state.orch.hcl
orch {
  config {
    state {
      project = "acme"
    }
  }
}
//- /a/stack.tm
stack {
  id   = "a"
  tags = ["web"]
}
//- /a/main.tf
module "m" {
  source = "../m"
}
//- /m/main.tf
# m
//- /b/stack.tm
stack {
}
//- /b/main.tf
# b
//- /c/stack.tm
stack {
  after = ["/b"]
}
//- /c/main.tf
# c
"#;

/// A project whose stacks have been applied at the base.
fn applied() -> Repository {
    let repository = Repository::new(FILES);
    assert_eq!(repository.orch("state init").code(), 0);
    let adopted = repository.orch("state adopt --no-verify");
    assert_eq!(adopted.code(), 0, "{adopted}");
    repository
}

/// Runs a script in stacks, recorded.
#[track_caller]
fn apply(repository: &Repository, flags: &str, script: &str) -> Output {
    let script = shell_words::quote(script);
    repository.orch(&format!("run -q -X --record {flags} -- sh -c {script}"))
}

/// What a list says, without the line about the base.
#[track_caller]
fn changed(repository: &Repository, flags: &str) -> Output {
    let mut output = repository.orch(&format!("list --changed --base applied --why {flags}"));
    let stderr = output.stderr.clone();
    let (base, rest) = stderr.split_once('\n').unwrap_or_default();
    assert!(base.starts_with("base "), "{output}");
    rest.clone_into(&mut output.stderr);
    // The names of triggers are random.
    let trigger = regex::Regex::new(r"changed-[0-9a-f-]{36}").unwrap();
    output.stdout = trigger.replace_all(&output.stdout, "ID").into_owned();
    output
}

fn document(repository: &Repository) -> Value {
    serde_json::from_str(&repository.read("/.orch/state/default.json")).unwrap()
}

fn change_document(repository: &Repository, change: impl FnOnce(&mut Value)) {
    let mut document = document(repository);
    change(&mut document);
    repository.write("/.orch/state/default.json", document.to_string());
}

#[test]
fn list_names_the_base_and_no_changes_after_an_apply() {
    let repository = Repository::new(FILES);
    assert_eq!(repository.orch("state init").code(), 0);
    assert_snapshot!(repository.orch("list --changed --base applied --why"), @"
    a  # pending: never applied; at or below /
    b  # pending: never applied; at or below /
    c  # pending: never applied; at or below /
    [stderr]
    base applied: serial 1 of `.orch/state/default.json`
    ");
    assert_eq!(apply(&repository, "", "true").code(), 0);
    assert_snapshot!(repository.orch("list --changed --base applied"), @"
    [stderr]
    base applied: serial 3 of `.orch/state/default.json`
    note: no stack has changed since its last apply
    ");
}

#[test]
fn list_finds_an_entry_by_its_id_and_else_by_its_path() {
    let repository = applied();
    repository.git("mv a moved");
    repository.git("mv b gone");
    repository.commit();
    assert_snapshot!(changed(&repository, ""), @r#"
    gone  # pending: never applied; at or below /
    moved  # pending: own differs from cb667dc; changed: moved/main.tf (added); at or below /
    [stderr]
    note: `/b` (it looks moved to `/gone`) is recorded but not in the project, and no commit proves the removal; see `orch list --status absent --why`
    warning: `/b` in `after` matches no stack
     --> c/stack.tm:2:12
      |
    2 |   after = ["/b"]
      |            ^^^^ no such directory
    "#);
    // The directory goes to a stack with another id: to that, nothing was applied.
    repository.git("mv moved elsewhere");
    repository.write("/a/stack.tm", "stack {\n  id = \"other\"\n}\n");
    repository.commit();
    assert_snapshot!(changed(&repository, "--match a --match elsewhere"), @r#"
    a  # pending: never applied; at or below /; matches --match a
    elsewhere  # pending: own differs from cb667dc; changed: elsewhere/main.tf (added); at or below /; matches --match elsewhere
    [stderr]
    note: `/b` (it looks moved to `/gone`) is recorded but not in the project, and no commit proves the removal; see `orch list --status absent --why`
    warning: `/b` in `after` matches no stack
     --> c/stack.tm:2:12
      |
    2 |   after = ["/b"]
      |            ^^^^ no such directory
      |
      = help: did you mean `/a`?
    "#);
}

#[test]
fn list_keeps_the_entry_of_a_stack_that_gets_or_loses_an_id() {
    let repository = applied();
    repository.write("/a/stack.tm", "stack {\n  tags = [\"web\"]\n}\n");
    repository.write("/b/stack.tm", "stack {\n  id = \"b\"\n}\n");
    assert_snapshot!(changed(&repository, ""), @"
    a  # pending: own differs from cb667dc; changed: a/stack.tm (uncommitted); at or below /
    b  # pending: own differs from cb667dc; changed: b/stack.tm (uncommitted); at or below /
    ");
}

#[test]
fn list_shows_a_failed_stack_as_changed_until_it_succeeds() {
    let repository = applied();
    assert_eq!(apply(&repository, "--match b", "exit 1").code(), 1);
    assert_snapshot!(changed(&repository, ""), @"b  # failed: the last attempt failed; at or below /");
    assert_eq!(
        apply(&repository, "--changed --base applied", "true").code(),
        0
    );
    assert_snapshot!(changed(&repository, ""), @"
    [stderr]
    note: no stack has changed since its last apply
    ");
}

#[test]
fn list_shows_an_interrupted_stack_as_changed() {
    let repository = applied();
    change_document(&repository, |document| {
        document["stacks"]["/b"]["intent"] =
            json!({ "action": "apply", "run": "r1", "since": "2026-01-02T03:04:05Z" });
    });
    assert_snapshot!(changed(&repository, ""), @"b  # failed: interrupted; at or below /");
}

#[test]
fn list_shows_equal_inputs_as_unchanged_after_a_squash_and_a_force_push() {
    let repository = applied();
    repository.git("checkout -q --orphan other");
    repository.write("/README.md", "Another history.\n");
    repository.commit();
    repository.git("branch -q -D main");
    repository.git("tag -d base");
    repository.git("reflog expire --expire=now --all");
    repository.git("gc -q --prune=now");
    assert_snapshot!(changed(&repository, ""), @"
    [stderr]
    note: no stack has changed since its last apply
    ");
    repository.write("/b/main.tf", "# other\n");
    assert_snapshot!(changed(&repository, ""), @"b  # pending: own differs from cb667dc; at or below /");
}

#[test]
fn list_needs_no_history_of_a_shallow_clone() {
    let repository = applied();
    repository.git("commit -q --allow-empty -m next");
    repository.git("commit -q --allow-empty -m last");
    let path = repository.path("/").display().to_string();
    let clone = "../clone";
    repository.git(&format!("clone -q --depth 1 file://{path} {clone}"));
    let document = repository.read("/.orch/state/default.json");
    repository.write("/../clone/.orch/state/default.json", document);
    let list =
        |flags: &str| repository.orch(&format!("-C {clone} list --changed --base applied {flags}"));
    assert_snapshot!(list(""), @"
    [stderr]
    base applied: serial 2 of `.orch/state/default.json`
    note: no stack has changed since its last apply
    ");
    repository.write("/../clone/m/main.tf", "# other\n");
    assert_snapshot!(list("--why"), @"
    a  # pending: module /m differs from cb667dc; at or below /
    [stderr]
    base applied: serial 2 of `.orch/state/default.json`
    ");
}

#[test]
fn list_shows_inputs_that_are_committed_after_their_apply_as_unchanged() {
    let repository = applied();
    repository.write("/b/main.tf", "# other\n");
    repository.write("/b/new.tf", "# new\n");
    assert_eq!(
        apply(&repository, "--changed --base applied", "true").code(),
        0
    );
    assert_eq!(
        document(&repository)["stacks"]["/b"]["applied"]["dirty"],
        true
    );
    assert_snapshot!(changed(&repository, ""), @"
    [stderr]
    note: no stack has changed since its last apply
    ");
    repository.commit();
    assert_snapshot!(changed(&repository, ""), @"
    [stderr]
    note: no stack has changed since its last apply
    ");
    repository.git("reset -q --hard HEAD~1");
    assert_snapshot!(changed(&repository, ""), @"b  # pending: own differs; at or below /");
}

#[test]
fn list_names_changed_inputs_by_part_and_by_file() {
    let repository = applied();
    repository.write("/m/main.tf", "# other\n");
    repository.write("/b/new.tf", "# new\n");
    repository.commit();
    assert_snapshot!(changed(&repository, ""), @"
    a  # pending: module /m differs from cb667dc; changed: m/main.tf, module ../m (a/main.tf:2); at or below /
    b  # pending: own differs from cb667dc; changed: b/new.tf (added); at or below /
    ");
    let list = repository.orch("list --changed --base applied --format json");
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let reasons = &list["stacks"][0]["reasons"][0];
    assert_snapshot!(serde_json::to_string_pretty(reasons).unwrap(), @r#"
    {
      "applied": "cb667dc024af16010ce80125142d2a8ba18bcd89",
      "change": "modified",
      "detail": "pending: module /m differs from cb667dc; changed: m/main.tf, module ../m (a/main.tf:2)",
      "file": "m/main.tf",
      "kind": "status",
      "parts": [
        "module /m"
      ],
      "rule": "module",
      "state": "committed",
      "status": "pending",
      "via": [
        {
          "detail": "module ../m (a/main.tf:2)",
          "file": "a/main.tf",
          "kind": "module",
          "line": 2
        }
      ]
    }
    "#);
    assert_snapshot!(repository.orch("why a --changed --base applied"), @"
    /a is selected
      pending: module /m differs from cb667dc; changed: m/main.tf, module ../m (a/main.tf:2)
      at or below /

    its inputs
      /a, its own directory
      /m, module ../m (a/main.tf:2)

    nothing runs before it

    nothing runs after it
    [stderr]
    base applied: serial 2 of `.orch/state/default.json`
    ");
    assert_snapshot!(repository.orch("why c --changed --base applied"), @"
    /c is not selected
      has not changed since its last apply

    its inputs
      /c, its own directory

    it runs after
      /b, after c/stack.tm:2, selected

    nothing runs after it

    what would select it
      a change of one of its inputs, or `orch trigger /c`
      --include-dependents=1, since it runs after /b, which is selected
    [stderr]
    base applied: serial 2 of `.orch/state/default.json`
    ");
}

/// Makes another set of files count.
fn other_rules(repository: &Repository, of: &str) {
    let ignore =
        "orch {\n  config {\n    change_detection {\n      ignore = [\"*.md\"]\n    }\n  }\n}\n";
    repository.write(&format!("{of}/rules.orch.hcl"), ignore);
}

#[test]
fn state_with_other_digest_rules_compares_with_the_applied_commit() {
    let repository = applied();
    other_rules(&repository, "/c");
    repository.commit();
    assert_snapshot!(changed(&repository, ""), @"c  # pending: changed: c/rules.orch.hcl (added); at or below /");
    repository.write("/b/main.tf", "# other\n");
    repository.write("/c/README.md", "ignored\n");
    repository.commit();
    assert_snapshot!(changed(&repository, ""), @"
    b  # pending: changed: b/main.tf; at or below /
    c  # pending: changed: c/rules.orch.hcl (added); at or below /
    ");
    // By the rules that count now.
    assert_eq!(apply(&repository, "", "true").code(), 0);
    assert_snapshot!(changed(&repository, ""), @"
    [stderr]
    note: no stack has changed since its last apply
    ");
}

#[test]
fn state_with_other_digest_rules_ignores_comments_and_tags() {
    let repository = applied();
    repository.write(
        "/c/stack.tm",
        "# a comment\nstack {\n  after = [\"/b\"]\n  tags  = [\"x\"]\n}\n",
    );
    repository.commit();
    let nothing = "[stderr]\nnote: no stack has changed since its last apply\n";
    assert_eq!(changed(&repository, "").to_string(), nothing);
    other_rules(&repository, "");
    repository.commit();
    assert_eq!(changed(&repository, "").to_string(), nothing);
    // What else has changed still counts.
    repository.write("/b/main.tf", "# other\n");
    repository.commit();
    assert_snapshot!(changed(&repository, ""), @"b  # pending: changed: b/main.tf; at or below /");
}

#[test]
fn state_with_other_digest_rules_and_an_unknown_commit_is_pending() {
    let repository = applied();
    repository.write("/c/main.tf", "# other\n");
    assert_eq!(apply(&repository, "--match c", "true").code(), 0);
    repository.commit();
    change_document(&repository, |document| {
        document["stacks"]["/b"]["applied"]["commit"] =
            json!("1234567890123456789012345678901234567890");
    });
    other_rules(&repository, "/b");
    repository.write("/c/stack.tm", "stack {\n}\n");
    repository.git("checkout -q -- c");
    repository.commit();
    assert_snapshot!(changed(&repository, ""), @"
    b  # pending: the definition of its inputs has changed since it was applied; at or below /
    c  # pending: the definition of its inputs has changed since it was applied; at or below /
    ");
}

#[test]
fn trigger_that_cannot_be_parsed_is_not_ignored() {
    let repository = applied();
    repository.write("/.tmtriggers/b/changed.tm.hcl", "trigger {\n");
    repository.commit();
    let output = repository.orch("list --changed --base applied");
    assert_eq!(output.code(), 5, "{output}");
    let error =
        "`.tmtriggers/b/changed.tm.hcl` is not a valid trigger (run `orch validate` to see why)";
    assert!(output.stderr.contains(error), "{output}");
    let output = repository.orch("validate");
    assert!(output.stderr.contains("changed.tm.hcl"), "{output}");
}

#[test]
fn trigger_counts_once_and_not_if_it_ignores_a_change() {
    let repository = applied();
    assert_eq!(repository.orch("trigger b --reason x").code(), 0);
    repository.write("/c/main.tf", "# other\n");
    assert_eq!(repository.orch("trigger c --ignore-change").code(), 0);
    repository.commit();
    assert_snapshot!(changed(&repository, ""), @"
    b  # pending: triggered (.tmtriggers/b/ID.tm.hcl); at or below /
    c  # pending: own differs from cb667dc; changed: c/main.tf; at or below /
    ");
    assert_eq!(
        apply(&repository, "--changed --base applied", "true").code(),
        0
    );
    assert_snapshot!(changed(&repository, ""), @"
    [stderr]
    note: no stack has changed since its last apply
    ");
    // Another one asks anew.
    assert_eq!(repository.orch("trigger b --reason again").code(), 0);
    assert_snapshot!(changed(&repository, ""), @"b  # pending: triggered (.tmtriggers/b/ID.tm.hcl); at or below /");
}

#[test]
fn statuses_filter_in_every_command() {
    let repository = applied();
    assert_eq!(apply(&repository, "--match b", "exit 1").code(), 1);
    repository.write("/m/main.tf", "# other\n");
    let list = |flags: &str| repository.orch(&format!("list {flags}")).stdout;
    assert_eq!(list("--status failed"), "b\n");
    assert_eq!(list("--status pending"), "a\n");
    assert_eq!(list("--status applied"), "c\n");
    assert_eq!(list("--status pending,failed"), "a\nb\n");
    assert_eq!(list("--status pending --status applied"), "a\nc\n");
    assert_eq!(list("--status running,removed,absent"), "");
    assert_eq!(list("--status pending --tags web"), "a\n");
    assert_eq!(list("--status failed --include-dependents"), "b\nc\n");
    assert_eq!(list("--changed --base base --status failed"), "");
    assert_snapshot!(repository.orch("list --status applied,failed --why"), @"
    b  # at or below /; failed: the last attempt failed
    c  # at or below /; applied
    ");
    assert_snapshot!(repository.orch("list --status failed --changed --base applied --why"), @"
    b  # failed: the last attempt failed; at or below /
    [stderr]
    base applied: serial 4 of `.orch/state/default.json`
    ");
    assert_snapshot!(repository.orch("list --status running"), @"
    [stderr]
    note: no stack at or below `/` passes --status
    ");
    assert_snapshot!(repository.orch("list --status failed --match a"), @"
    [stderr]
    note: no stack at or below `/` passes --match and --status
    ");
    assert_snapshot!(repository.orch("run -q -X --status failed pwd"), @"$ROOT/b");
    assert_snapshot!(repository.orch("why a --status failed"), @"
    /a is not selected
      its status is pending

    its inputs
      /a, its own directory
      /m, module ../m (a/main.tf:2)

    nothing runs before it

    nothing runs after it

    what would select it
      --status pending
    ");
    let graph = repository
        .orch("graph --status pending --format json")
        .json();
    assert_eq!(graph["stacks"].as_array().map(Vec::len), Some(1), "{graph}");
    let why = repository
        .orch("why a --status failed --format json")
        .json();
    assert_snapshot!(serde_json::to_string_pretty(&why["left_out"]).unwrap(), @r#"
    [
      {
        "detail": "its status is pending",
        "kind": "status"
      }
    ]
    "#);
}

#[test]
fn status_is_running_during_a_run() {
    let repository = applied();
    let orch = repository.command("").get_program().to_owned();
    let orch = orch.to_str().unwrap();
    let script = format!(
        "cd \"$ORCH_ROOT\" && {orch} list --status running > ../running && {orch} list --changed --base applied --match b --why > ../changed"
    );
    assert_eq!(apply(&repository, "--match b", &script).code(), 0);
    assert_eq!(repository.read("/../running"), "b\n");
    assert_eq!(
        repository.read("/../changed"),
        "b  # running; at or below /; matches --match b\n"
    );
    assert_eq!(repository.orch("list --status running").stdout, "");
}

#[test]
fn list_alone_shows_recorded_stacks_that_were_removed() {
    let repository = applied();
    repository.git("rm -q -r a");
    repository.commit();
    repository.git("rm -q -r c");
    assert_snapshot!(repository.orch("list --status removed,absent --why"), @"
    a  # removed in 92e4274
    c  # absent: its deletion is not committed
    ");
    assert_snapshot!(repository.orch("list --status absent"), @"c");
    assert_snapshot!(repository.orch_in("/b", "list --status absent,removed"), @"
    [stderr]
    note: no stack at or below `/b` passes --status
    ");
    assert_eq!(
        repository
            .orch("list --status absent,removed --tags web")
            .stdout,
        "a\n"
    );
    assert_eq!(
        repository
            .orch("list --status absent,removed --no-tags web")
            .stdout,
        "c\n"
    );
    assert_eq!(
        repository
            .orch("list --status absent,removed --match a")
            .stdout,
        "a\n"
    );
    assert_eq!(
        repository
            .orch("list --status absent,removed --exclude a")
            .stdout,
        "c\n"
    );
    assert_snapshot!(repository.orch("list --changed --base applied"), @"
    [stderr]
    base applied: serial 2 of `.orch/state/default.json`
    note: `/c` (its deletion is not committed) is recorded but not in the project, and no commit proves the removal; see `orch list --status absent --why`
    note: stack `/a` is recorded, and was removed from the project; nothing is run for it
    note: no stack has changed since its last apply
    ");
    assert_snapshot!(repository.orch("list --removed --base applied"), @"
    a
    [stderr]
    base applied: serial 2 of `.orch/state/default.json`
    note: `/c` (its deletion is not committed) is recorded but not in the project, and no commit proves the removal; see `orch list --status absent --why`
    ");
    let list = repository.orch("list --removed --base applied --format json");
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    assert_eq!(list["removed"], json!([{"path": "/a"}]));
    let list = repository
        .orch("list --status removed,applied --format json")
        .json();
    let missing = &list["missing"];
    assert_eq!(missing.as_array().unwrap().len(), 1);
    for (field, value) in [
        ("path", "/a"),
        ("status", "removed"),
        ("id", "a"),
        ("name", "a"),
    ] {
        assert_eq!(missing[0][field], value);
    }
    assert_eq!(missing[0]["tags"], json!(["web"]));
    assert_eq!(list["stacks"][0]["status"], "applied");
    for command in ["run true", "graph", "why b", "env get", "globals"] {
        let (command, words) = command.split_once(' ').unwrap_or((command, ""));
        let refused = repository.orch(&format!("{command} --status removed {words}"));
        assert_eq!(refused.code(), 64, "{refused}");
    }
    assert_snapshot!(repository.orch("run --status absent true"), @"
    [stderr]
    error: stacks with the status `absent` are not in the project, and this command acts only on stacks of the project
      = help: use `orch list --status absent`, or `plan`, `apply` or `destroy` with this status
    [exit status 64]
    ");
    // Whether or not there is one.
    assert_snapshot!(repository.orch("list --status removed --format github-matrix"), @"
    [stderr]
    error: removed stacks cannot be jobs: with `--status removed` or `absent`, use `--format text` or `json`
    [exit status 64]
    ");
    let refused = repository.orch("list --status absent --match b --format gitlab-matrix");
    assert_eq!(refused.code(), 64, "{refused}");
    assert_snapshot!(repository.orch("list --removed --status removed"), @"
    [stderr]
    error: the argument '--removed' cannot be used with '--status <WORD,…>'

    Usage: orch list --removed

    For more information, try '--help'.
    [exit status 64]
    ");
}

#[test]
fn json_names_the_document_instead_of_a_commit() {
    let repository = applied();
    repository.write("/b/main.tf", "# other\n");
    let list = repository.orch("list --changed --base applied --format json");
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    assert_eq!(
        list["base"],
        json!({
            "commit": null, "rule": "applied", "serial": 2, "lineage": document(&repository)["lineage"],
            "reason": "serial 2 of `.orch/state/default.json`",
        })
    );
    assert_eq!(list["stacks"][0]["path"], "/b");
    assert_eq!(list["stacks"][0]["status"], "pending");
    assert_eq!(list["missing"], json!([]));
    // Where no state is asked, there is nothing of it.
    let plain = repository.orch("list --format json").json();
    assert_eq!(
        (&plain["missing"], &plain["stacks"][0]["status"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn base_needs_the_full_name_of_a_branch_called_like_the_state() {
    let repository = applied();
    repository.git("branch applied");
    repository.write("/b/main.tf", "# other\n");
    repository.commit();
    repository.git("tag applied");
    assert_snapshot!(repository.orch("list --changed --base applied"), @"
    b
    [stderr]
    note: `--base applied` means the state; for the branch of that name, write `--base refs/heads/applied`
    note: `--base applied` means the state; for the tag of that name, write `--base refs/tags/applied`
    base applied: serial 2 of `.orch/state/default.json`
    ");
    assert_snapshot!(repository.orch("list --changed --base refs/heads/applied"), @"
    b
    [stderr]
    base cb667dc: --base refs/heads/applied
    ");
    // Without a state, it is a revision.
    repository.write("/state.orch.hcl", "");
    repository.git("tag -d applied");
    assert_snapshot!(repository.orch("list --changed --base applied"), @"
    b
    [stderr]
    base cb667dc: --base applied
    ");
    repository.git("branch -D applied");
    assert_snapshot!(repository.orch("list --changed --base applied"), @"
    [stderr]
    error: the changes are unknown
      caused by: there is no revision `applied`
      = help: name a commit, branch or tag that exists
    [exit status 4]
    ");
    assert_snapshot!(repository.orch("list --status failed"), @r#"
    [stderr]
    error: this project keeps no state
      = help: add a block `orch { config { state { project = "…" } } }` to its root; see `orch help state`
    [exit status 4]
    "#);
}
