//! `ignore_changes`: inputs whose changes bring about nothing; and what is no input at all.

use insta::assert_snapshot;
use serde_json::Value;

use crate::removals::{
    applied, applied_of, change_entry, declare, done, entry, log, planned, prepared, want,
};
use crate::support::{Repository, Sandbox};

/// Rules of a stack with this list.
fn ignoring(list: &str) -> String {
    format!("lifecycle {{\n    ignore_changes = {list}\n  }}")
}

/// A configuration file with this list for the stacks at and below its directory.
fn inherited(list: &str) -> String {
    let rules = format!("lifecycle {{\n      ignore_changes = {list}\n    }}");
    format!("orch {{\n  config {{\n    {rules}\n  }}\n}}\n")
}

/// Writes a file, and commits that.
fn edit(repository: &Repository, file: &str, text: &str) {
    repository.write(file, text);
    repository.commit();
}

fn redeclare(repository: &Repository, path: &str, lines: &str) {
    declare(repository, path, lines);
    repository.commit();
}

/// The action of a stack in a plan, with its reason.
fn decided(repository: &Repository, path: &str, arguments: &str) -> String {
    let plan = repository.orch(&format!("plan --format json {arguments}"));
    let plan = plan.json();
    let mut entries = plan["stacks"].as_array().unwrap().iter();
    let entry = entries.find(|entry| entry["path"] == path).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let reason = &entry["reason"];
    let actions: Vec<String> = entry["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    format!("{}: {}", actions.join(" "), text(&reason["text"]))
}

/// The stacks that count as changed since they were applied.
fn changed(repository: &Repository) -> String {
    repository.orch("list --changed --base applied").stdout
}

/// What is digested of a stack, recorded.
fn digest(repository: &Repository, path: &str) -> String {
    let inputs = &entry(repository, path)["applied"]["inputs"];
    inputs["digest"].as_str().unwrap().to_owned()
}

#[test]
fn inputs_exclude_order_tags_and_rules() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    for lines in [
        "tags = [\"t\"]",
        "wanted_by = [\"/a\"]",
        "description = \"d\"",
        "# why\n\n  wants = [\"/a\"]",
        "lifecycle {\n    prevent_destroy = true\n  }",
        "",
    ] {
        redeclare(&repository, "/b", lines);
        assert_eq!(planned(&repository, ""), [""; 0], "{lines}");
        assert_eq!(changed(&repository), "", "{lines}");
        done(&repository, "apply --auto-approve");
        assert_eq!(log(&repository), [""; 0], "{lines}");
    }
    redeclare(&repository, "/b", "tags = [\"t\"]");
    let before = digest(&repository, "/b");
    done(&repository, "apply --auto-approve");
    assert_eq!(entry(&repository, "/b")["tags"][0], "t");
    assert_eq!(digest(&repository, "/b"), before);
    repository.write("/b/more.orch.hcl", inherited("[\"*.md\"]"));
    repository.commit();
    assert_eq!(changed(&repository), "");
    redeclare(&repository, "/b", "after = [\"/a\"]");
    assert_eq!(changed(&repository), "");
    for lines in ["name = \"n\"", "watch = [\"/tool\"]", "id = \"i\""] {
        redeclare(&repository, "/b", lines);
        assert_eq!(changed(&repository), "b\n", "{lines}");
    }
}

#[test]
fn inputs_ignore_conversions_by_git() {
    let repository = applied(&[("/a", "")]);
    let text = repository.read("/a/stack.orch.hcl").replace('\n', "\r\n");
    edit(&repository, "/a/stack.orch.hcl", &text);
    assert_eq!(changed(&repository), "");
    edit(&repository, "/.gitattributes", "*.hcl text\n");
    assert_eq!(changed(&repository), "");
}

#[test]
fn inputs_recorded_by_older_rules_are_updated() {
    let repository = applied(&[("/a", ""), ("/b", "")]);
    let now = entry(&repository, "/a")["applied"]["inputs"].clone();
    change_entry(&repository, "/a", |entry| {
        entry["applied"]["inputs"]["rules"] = "1:0".into();
        entry["applied"]["inputs"]["digest"] = "sha256:0".into();
    });
    assert_eq!(changed(&repository), "");
    done(&repository, "apply --auto-approve");
    assert_eq!(log(&repository), [""; 0]);
    assert_eq!(entry(&repository, "/a")["applied"]["inputs"], now);
}

#[test]
fn ignore_changes_asks_tools_only_for_other_changes() {
    let repository = applied(&[("/app", &ignoring("[\"**/*.md\"]")), ("/other", "")]);
    let before = digest(&repository, "/app");
    edit(&repository, "/app/docs/x.md", "x");
    edit(&repository, "/other/x.md", "x");
    assert_eq!(
        decided(&repository, "/app", ""),
        "no-op: ignored: app/docs/x.md"
    );
    assert_eq!(changed(&repository), "other\n");
    assert_eq!(repository.orch("list --status pending").stdout, "other\n");
    log(&repository);
    done(&repository, "apply --auto-approve");
    assert!(!log(&repository).iter().any(|step| step.ends_with("/app")));
    // What was not applied is not recorded.
    assert_eq!(digest(&repository, "/app"), before);
    want(&repository, "/app", "2");
    repository.commit();
    assert_eq!(decided(&repository, "/app", ""), "update: app/want differs");
    done(&repository, "apply --auto-approve");
    assert_ne!(digest(&repository, "/app"), before);
    assert_eq!(decided(&repository, "/app", ""), "no-op: unchanged");
}

#[test]
fn ignore_changes_keeps_ignored_changes_for_later() {
    let repository = applied(&[("/app", &ignoring("[\"*.md\"]"))]);
    edit(&repository, "/app/x.md", "x");
    redeclare(&repository, "/app", "");
    assert_eq!(changed(&repository), "app\n");
    redeclare(&repository, "/app", &ignoring("[\"*.txt\"]"));
    assert_eq!(changed(&repository), "app\n");
    redeclare(&repository, "/app", &ignoring("[\"*.txt\", \"x.*\"]"));
    assert_eq!(changed(&repository), "");
}

#[test]
fn ignore_changes_applies_to_earlier_changes() {
    let repository = applied(&[("/app", ""), ("/same", "")]);
    edit(&repository, "/app/x.md", "x");
    redeclare(&repository, "/app", &ignoring("[\"/app/*.md\"]"));
    redeclare(&repository, "/same", &ignoring("[\"*.md\"]"));
    assert_eq!(decided(&repository, "/app", ""), "no-op: ignored: app/x.md");
    assert_eq!(decided(&repository, "/same", ""), "no-op: unchanged");
    done(&repository, "apply --auto-approve");
    assert_eq!(log(&repository), [""; 0]);
    let recorded = &entry(&repository, "/same")["applied"]["inputs"]["counted"]["ignored"];
    assert_eq!(*recorded, serde_json::json!(["*.md"]));
    edit(&repository, "/app/y.txt", "y");
    assert_eq!(changed(&repository), "app\n");
}

#[test]
fn ignore_changes_asks_the_tool_if_git_cannot_tell() {
    let sandbox = prepared(&[("/app", "watch = [\"/shared/**\"]")]);
    sandbox.write("/shared/a.txt", "a");
    let repository = applied_of(sandbox);
    edit(&repository, "/shared/a.md", "a");
    edit(&repository, "/elsewhere.txt", "a");
    let lines = format!("watch = [\"/shared/**\"]\n  {}", ignoring("[\"/**/*.md\"]"));
    redeclare(&repository, "/app", &lines);
    assert_snapshot!(repository.orch("list --status pending --why").stdout, @"app  # at or below /; pending: its inputs differ, and `ignore_changes` has changed since it was applied");
    done(&repository, "apply --auto-approve");
    assert_eq!(log(&repository)[0], "plan /app");
    edit(&repository, "/shared/a.md", "b");
    assert_eq!(
        decided(&repository, "/app", ""),
        "no-op: ignored: watch /shared/**"
    );
}

#[test]
fn ignore_changes_of_module_files_is_per_stack() {
    let main = "module \"m\" {\n  source = \"../modules/m\"\n}\n";
    let rule = |list: &str| ignoring(list);
    let sandbox = prepared(&[
        ("/all", ""),
        ("/root", &rule("[\"/modules/**/*.md\"]")),
        ("/up", &rule("[\"../modules/n/*.md\"]")),
        ("/own", &rule("[\"**/*.md\"]")),
    ]);
    for stack in ["all", "root", "up", "own"] {
        sandbox.write(&format!("/{stack}/main.tf"), main);
    }
    sandbox.write(
        "/modules/m/main.tf",
        "module \"n\" {\n  source = \"../n\"\n}\n",
    );
    sandbox.write("/modules/n/main.tf", "");
    let more = format!("{main}module \"inner\" {{\n  source = \"./inner\"\n}}\n");
    sandbox.write("/own/main.tf", more);
    sandbox.write("/own/inner/main.tf", "");
    let repository = applied_of(sandbox);
    edit(&repository, "/modules/m/a.md", "a");
    assert_eq!(changed(&repository), "all\nown\nup\n");
    done(&repository, "apply --auto-approve");
    edit(&repository, "/modules/n/a.md", "a");
    assert_eq!(changed(&repository), "all\nown\n");
    done(&repository, "apply --auto-approve");
    edit(&repository, "/own/inner/a.md", "a");
    assert_eq!(changed(&repository), "");
    edit(&repository, "/own/inner/b.txt", "b");
    assert_eq!(changed(&repository), "own\n");
    done(&repository, "apply --auto-approve");
    edit(&repository, "/modules/n/b.txt", "b");
    assert_eq!(changed(&repository), "all\nown\nroot\nup\n");
}

#[test]
fn ignore_changes_covers_variables_from_any_source() {
    let env = |build: &str, other: &str| {
        let set = format!("BUILD = \"{build}\"\n        OTHER = \"{other}\"");
        format!(
            "orch {{\n  config {{\n    run {{\n      env {{\n        {set}\n      }}\n    }}\n  }}\n}}\n"
        )
    };
    let sandbox = prepared(&[("/app", &ignoring("[env.BUILD]"))]);
    sandbox.write("/app/env.orch.hcl", env("1", "1"));
    let repository = applied_of(sandbox);
    edit(&repository, "/app/env.orch.hcl", &env("2", "1"));
    assert_eq!(changed(&repository), "");
    edit(&repository, "/app/env.orch.hcl", &env("2", "2"));
    assert_eq!(changed(&repository), "app\n");
}

#[test]
fn ignore_changes_all_allows_only_create_and_replace() {
    let all = ignoring("all");
    let repository = applied(&[("/app", &all), ("/base", "")]);
    want(&repository, "/app", "2");
    want(&repository, "/base", "2");
    let lines = format!("after = [\"/base\"]\n  {all}");
    redeclare(&repository, "/app", &lines);
    for arguments in ["", "--full"] {
        assert_eq!(
            decided(&repository, "/app", arguments),
            "no-op: ignored: app/want",
            "{arguments}"
        );
    }
    log(&repository);
    done(&repository, "apply --auto-approve --full");
    assert!(!log(&repository).iter().any(|step| step.ends_with("/app")));
    assert_eq!(
        decided(&repository, "/app", "--replace /app"),
        "delete create: --replace"
    );
    done(&repository, "state taint /app");
    assert_eq!(decided(&repository, "/app", ""), "delete create: tainted");
    done(&repository, "state untaint /app");
    redeclare(&repository, "/app", "after = [\"/base\"]");
    assert_eq!(decided(&repository, "/app", ""), "update: app/want differs");
    redeclare(&repository, "/app", &lines);
    done(
        &repository,
        "apply --auto-approve --replace /app --allow-destroy=1",
    );
    assert_eq!(decided(&repository, "/app", ""), "no-op: unchanged");
    edit(
        &repository,
        "/new/stack.orch.hcl",
        &format!("stack {{\n  {all}\n}}\n"),
    );
    want(&repository, "/new", "1");
    repository.commit();
    assert!(decided(&repository, "/new", "").starts_with("create: "));
}

#[test]
fn ignore_changes_of_a_directory_is_relative_to_each_stack() {
    let sandbox = prepared(&[("/a", ""), ("/a/nested", ""), ("/b", "mode = \"read\"")]);
    sandbox.write("/rules.orch.hcl", inherited("[\"docs/**\"]"));
    let repository = applied_of(sandbox);
    edit(&repository, "/a/docs/x", "x");
    edit(&repository, "/a/nested/docs/x", "x");
    assert_eq!(changed(&repository), "");
    edit(&repository, "/docs/x", "x");
    edit(&repository, "/b/docs/x", "x");
    edit(&repository, "/a/other/docs/x", "x");
    assert_eq!(changed(&repository), "a\nb\n");
}

#[test]
fn ignore_changes_without_state_has_no_effect_and_a_note() {
    let sandbox = prepared(&[("/app", &ignoring("[\"*.md\"]")), ("/b", &ignoring("all"))]);
    std::fs::remove_file(sandbox.path("/state.orch.hcl")).unwrap();
    let repository = Repository::of(sandbox);
    let told = repository.orch("plan").stderr;
    let note = "`ignore_changes` has no effect without a state (app/stack.orch.hcl:3)";
    assert_eq!(told.matches(note).count(), 1, "{told}");
    assert_eq!(told.matches("ignore_changes").count(), 1, "{told}");
}

#[test]
fn ignore_changes_globs_match_odd_names() {
    let repository = applied(&[("/app", &ignoring("[\"*\\u001b*\", \"[x]\"]"))]);
    edit(&repository, "/app/a\u{1b}[31mb", "a");
    edit(&repository, "/app/x", "x");
    assert_eq!(changed(&repository), "");
    let text = repository.orch("plan").to_string();
    assert!(!text.contains('\u{1b}'), "{text}");
    let text = repository.orch("plan --format json").stdout;
    assert!(!text.contains('\u{1b}'), "{text}");
}

/// An `input` block with this name.
fn input_block(name: &str) -> String {
    format!(
        "input \"{name}\" {{\n  backend       = \"default\"\n  from_stack_id = \"net\"\n  value         = outputs.id.value\n}}\n"
    )
}

/// A project in which `/app` has the inputs `vpc_id` and `zone`, and `/net` has none.
fn with_inputs() -> Sandbox {
    let sandbox = Sandbox::new(
        "//- /net/stack.tm\nstack {\n  id = \"net\"\n}\n//- /app/stack.tm\nstack {\n}\n",
    );
    let inputs = input_block("vpc_id") + &input_block("zone");
    sandbox.write("/app/inputs.tm", inputs);
    sandbox
}

#[test]
fn ignore_changes_refuses_an_unknown_input() {
    let sandbox = with_inputs();
    let own = |list: &str| format!("stack {{\n  {}\n}}\n", ignoring(list));
    sandbox.write("/app/stack.tm", own("[input.vpc_id, input[\"zone\"]]"));
    assert_eq!(sandbox.orch("list").code(), 0);
    sandbox.write(
        "/app/stack.tm",
        own("[input.vpcid, input.zone, input.other]"),
    );
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: `input.vpcid` in `ignore_changes` names no `input` block
     --> app/stack.tm:3:23
      |
    3 |     ignore_changes = [input.vpcid, input.zone, input.other]
      |                       ^^^^^^^^^^^ no stack with this rule has such an input
      |
      = help: did you mean `input.vpc_id`?

    error: `input.other` in `ignore_changes` names no `input` block
     --> app/stack.tm:3:48
      |
    3 |     ignore_changes = [input.vpcid, input.zone, input.other]
      |                                                ^^^^^^^^^^^ no stack with this rule has such an input
      |
      = help: remove the entry, or correct its name

    [exit status 3]
    ");
    // An instance for each key, one block.
    let instances =
        own("[input.vpcid]").replace("stack {\n", "stack {\n  for_each = [\"a\", \"b\"]\n");
    sandbox.write("/app/stack.tm", "");
    sandbox.write("/app/stack.orch.hcl", instances);
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3, "{output}");
    assert_eq!(output.stderr.matches("input.vpcid").count(), 2, "{output}");
}

#[test]
fn ignore_changes_of_a_directory_needs_one_stack_with_the_input() {
    let sandbox = with_inputs();
    sandbox.write("/rules.orch.hcl", inherited("[input.vpc_id, input.zon]"));
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: `input.zon` in `ignore_changes` names no `input` block
     --> rules.orch.hcl:4:39
      |
    4 |       ignore_changes = [input.vpc_id, input.zon]
      |                                       ^^^^^^^^^ no stack with this rule has such an input
      |
      = help: did you mean `input.zone`?

    [exit status 3]
    ");
    // The rule of a nearer directory is the only one for its stacks.
    sandbox.write("/rules.orch.hcl", inherited("[input.vpc_id]"));
    sandbox.write("/app/rules.orch.hcl", inherited("[input.zone]"));
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: `input.vpc_id` in `ignore_changes` names no `input` block
     --> rules.orch.hcl:4:25
      |
    4 |       ignore_changes = [input.vpc_id]
      |                         ^^^^^^^^^^^^ no stack with this rule has such an input
      |
      = help: remove the entry, or correct its name

    [exit status 3]
    ");
    // Without a stack, nothing is known about its inputs.
    sandbox.write("/rules.orch.hcl", "");
    sandbox.write("/empty/rules.orch.hcl", inherited("[input.any]"));
    assert_eq!(sandbox.orch("list").code(), 0);
}

#[test]
fn ignore_changes_sees_imported_inputs_and_is_imported() {
    let sandbox = with_inputs();
    sandbox.write("/shared/inputs.tm", input_block("account"));
    sandbox.write("/shared/rules.orch.hcl", inherited("[input.account]"));
    let import = |file: &str| format!("import {{\n  source = \"/shared/{file}\"\n}}\n");
    // `/net` imports the rule too, and has no inputs.
    sandbox.write("/net/imports.tm", import("rules.orch.hcl"));
    sandbox.write("/app/imports.tm", import("rules.orch.hcl"));
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: `input.account` in `ignore_changes` names no `input` block
     --> shared/rules.orch.hcl:4:25
      |
    4 |       ignore_changes = [input.account]
      |                         ^^^^^^^^^^^^^ no stack with this rule has such an input
      |
      = help: remove the entry, or correct its name

    [exit status 3]
    ");
    sandbox.write("/app/more.tm", import("inputs.tm"));
    assert_eq!(sandbox.orch("list").code(), 0);
}

#[test]
fn ignore_changes_of_an_invalid_input_is_no_second_error() {
    let sandbox = with_inputs();
    sandbox.write("/app/inputs.tm", "input \"vpc_id\" {\n}\n");
    sandbox.write("/rules.orch.hcl", inherited("[input.vpc_id]"));
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3, "{output}");
    assert!(!output.stderr.contains("ignore_changes"), "{output}");
}

#[test]
fn ignore_changes_refuses_an_input_in_quotes() {
    let sandbox = with_inputs();
    sandbox.write(
        "/rules.orch.hcl",
        inherited("[\"input.tf\", \"input.zone\"]"),
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `"input.zone"` in `ignore_changes` names files, not the input `zone`
     --> rules.orch.hcl:4:37
      |
    4 |       ignore_changes = ["input.tf", "input.zone"]
      |                                     ^^^^^^^^^^^^ a glob of files, because it is in quotes
      |
      = help: write `input.zone` without quotes

    [exit status 3]
    "#);
}
