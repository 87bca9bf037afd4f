//! Which stacks change with what Terragrunt reads.

use std::fs;

use insta::assert_snapshot;

use crate::support::{Sandbox, changed, commit, project, why, why_changed};

/// What no stack changes with.
const NONE: [&str; 0] = [];

/// A project with the stack `/live/app` that has this `terragrunt.hcl`.
fn unit(text: &str) -> Sandbox {
    unit_and(text, &[])
}

/// The same with more files.
fn unit_and(text: &str, files: &[(&str, &str)]) -> Sandbox {
    let own = ("/live/app/terragrunt.hcl", text);
    project("live/app", &[&[own], files].concat())
}

/// Checks that a change of this file changes the stack, for this reason.
#[track_caller]
fn check(sandbox: &Sandbox, path: &str, reason: &str) {
    let expected = format!("live/app  # changed: {path}, {reason}");
    assert_eq!(why_changed(sandbox, path), expected);
}

// Modules.

#[test]
fn the_source_of_a_unit_is_a_module() {
    for source in [
        "../../modules/app",
        "../../modules//app",
        "../../modules//app?ref=v1.2.3",
        "../..//modules/app",
        "${get_repo_root()}/modules/app",
        "${get_terragrunt_dir()}/../../modules//app",
        "${get_path_to_repo_root()}/modules//app",
        "${get_original_terragrunt_dir()}/../../modules//app",
    ] {
        let sandbox = unit_and(
            &format!("terraform {{\n  source = \"{source}\"\n}}\n"),
            &[
                (
                    "/modules/app/main.tf",
                    "module \"lib\" {\n  source = \"../lib\"\n}\n",
                ),
                ("/modules/lib/main.tf", ""),
            ],
        );
        check(
            &sandbox,
            "modules/app/x",
            "Terragrunt terraform.source (live/app/terragrunt.hcl:2)",
        );
        check(
            &sandbox,
            "modules/lib/main.tf",
            "Terragrunt terraform.source (live/app/terragrunt.hcl:2), module ../lib (modules/app/main.tf:2)",
        );
        assert_eq!(changed(&sandbox, "/modules/app2/x"), NONE, "{source}");
    }
}

#[test]
fn sources_elsewhere_are_ignored() {
    for source in [
        "git::https://example.com/modules.git//app?ref=v1",
        "git@github.com:o/modules.git//app",
        "tfr:///terraform-aws-modules/vpc/aws?version=1.0.0",
        "github.com/o/modules//app",
        "/modules/app",
        "${local.unknown}/app",
        "${get_env(\"X\")}/modules/app",
    ] {
        let sandbox = unit(&format!("terraform {{\n  source = \"{source}\"\n}}\n"));
        assert_eq!(why_changed(&sandbox, "/modules/app/x"), "", "{source}");
    }
}

#[test]
fn a_source_that_does_not_exist_is_warned_of() {
    let sandbox = unit("terraform {\n  source = \"../../modules//app\"\n}\n");
    assert_snapshot!(why_changed(&sandbox, "/x"), @r#"
    warning: the module `../../modules//app` does not exist
     --> live/app/terragrunt.hcl:2:12
      |
    2 |   source = "../../modules//app"
      |            ^^^^^^^^^^^^^^^^^^^^ no such directory
      |
      = help: correct the path; changes of this module go unnoticed
    "#);
}

#[test]
fn a_source_outside_of_the_project_is_warned_of() {
    let sandbox = unit("terraform {\n  source = \"../../../decoy\"\n}\n");
    assert_snapshot!(why_changed(&sandbox, "/x"), @r#"
    warning: the module `../../../decoy` leads out of the project
     --> live/app/terragrunt.hcl:2:12
      |
    2 |   source = "../../../decoy"
      |            ^^^^^^^^^^^^^^^^ not below the project root
      |
      = help: changes there go unnoticed; move the module into the project
    "#);
}

/// The project need not be all of the repository.
#[test]
fn the_root_of_the_repository_may_lie_above_the_project() {
    let sandbox = Sandbox::unmarked(
        r#"
//- /infra/root.orch.hcl
orch {
  root = true
}
//- /infra/app/stack.tm
stack {}
//- /infra/app/terragrunt.hcl
terraform {
  source = "${get_repo_root()}/infra/modules/one"
}
locals {
  a = file("${get_terragrunt_dir()}/${get_path_to_repo_root()}/infra/a")
  b = file("${get_repo_root()}/${get_path_from_repo_root()}/../b")
}
//- /infra/modules/one/main.tf
"#,
    );
    commit(&sandbox);
    let changed = |path: &str| {
        sandbox.write(path, "changed\n");
        let output = sandbox.orch_in("/infra", "list --changed --why --base HEAD");
        fs::remove_file(sandbox.path(path)).unwrap();
        assert!(!output.stderr.contains("warning"), "{output}");
        output.stdout
    };
    assert_snapshot!(changed("/infra/modules/one/x"), @"app  # changed: modules/one/x (untracked), Terragrunt terraform.source (app/terragrunt.hcl:2); at or below /");
    assert_snapshot!(changed("/infra/a"), @"app  # changed: a (untracked), Terragrunt file (app/terragrunt.hcl:5); at or below /");
    assert_snapshot!(changed("/infra/b"), @"app  # changed: b (untracked), Terragrunt file (app/terragrunt.hcl:6); at or below /");
    assert_snapshot!(changed("/infra/x"), @"");
}

#[test]
fn a_source_beside_the_project_is_warned_of() {
    for source in [
        "${get_repo_root()}/modules",
        "${get_terragrunt_dir()}/../../modules",
    ] {
        let sandbox = Sandbox::unmarked("");
        sandbox.write("/infra/root.orch.hcl", "orch {\n  root = true\n}\n");
        sandbox.write("/infra/app/stack.tm", "stack {}\n");
        let text = format!("terraform {{\n  source = \"{source}\"\n}}\n");
        sandbox.write("/infra/app/terragrunt.hcl", text);
        sandbox.write("/modules/main.tf", "");
        commit(&sandbox);
        sandbox.write("/infra/x", "");
        let output = sandbox.orch_in("/infra", "list --changed --base HEAD");
        assert!(
            output.stderr.contains("leads out of the project"),
            "{output}"
        );
    }
}

// Includes.

#[test]
fn an_include_finds_the_nearest_file_above() {
    let sandbox = unit_and(
        "include {\n  path = find_in_parent_folders()\n}\n",
        &[("/live/terragrunt.hcl", ""), ("/terragrunt.hcl", "")],
    );
    check(
        &sandbox,
        "live/terragrunt.hcl",
        "Terragrunt include (live/app/terragrunt.hcl:2)",
    );
    assert_eq!(changed(&sandbox, "/terragrunt.hcl"), NONE);
}

#[test]
fn an_include_may_name_what_to_find() {
    let sandbox = unit_and(
        "include \"root\" {\n  path   = find_in_parent_folders(\"root.hcl\")\n  expose = true\n}\n\
         include \"env\" {\n  path = \"${get_terragrunt_dir()}/../_env/app.hcl\"\n}\n",
        &[
            ("/root.hcl", ""),
            ("/live/_env/app.hcl", ""),
            ("/live/other.hcl", ""),
        ],
    );
    check(
        &sandbox,
        "root.hcl",
        "Terragrunt include (live/app/terragrunt.hcl:2)",
    );
    check(
        &sandbox,
        "live/_env/app.hcl",
        "Terragrunt include (live/app/terragrunt.hcl:6)",
    );
    assert_eq!(changed(&sandbox, "/live/other.hcl"), NONE);
    // A nearer one is found instead.
    check(
        &sandbox,
        "live/root.hcl",
        "Terragrunt include (live/app/terragrunt.hcl:2)",
    );
}

#[test]
fn what_is_included_has_a_source_and_reads_files() {
    let sandbox = unit_and(
        "include {\n  path = find_in_parent_folders(\"root.hcl\")\n}\n",
        &[
            (
                "/root.hcl",
                r#"
terraform {
  source = "${get_parent_terragrunt_dir()}/modules//${path_relative_to_include()}"
}
locals {
  common = read_terragrunt_config("common.hcl")
  own    = file("${get_terragrunt_dir()}/../own.txt")
  parent = file("${get_parent_terragrunt_dir("root")}/parent.txt")
}
"#,
            ),
            ("/common.hcl", ""),
            ("/modules/live/app/main.tf", ""),
        ],
    );
    let include = "Terragrunt include (live/app/terragrunt.hcl:2)";
    check(
        &sandbox,
        "modules/live/app/main.tf",
        &format!("{include}, Terragrunt terraform.source (root.hcl:3)"),
    );
    check(
        &sandbox,
        "common.hcl",
        &format!("{include}, Terragrunt read_terragrunt_config (root.hcl:6)"),
    );
    check(
        &sandbox,
        "live/own.txt",
        &format!("{include}, Terragrunt file (root.hcl:7)"),
    );
    check(
        &sandbox,
        "parent.txt",
        &format!("{include}, Terragrunt file (root.hcl:8)"),
    );
}

#[test]
fn an_include_that_does_not_exist_is_quiet() {
    let sandbox = unit(
        "include \"a\" {\n  path = find_in_parent_folders(\"root.hcl\")\n}\n\
         include \"b\" {\n  path = \"../b.hcl\"\n}\n\
         include \"c\" {\n  path = \"../../../../decoy/c.hcl\"\n}\ninclude \"d\" {\n}\n",
    );
    assert_snapshot!(why_changed(&sandbox, "/x"), @"");
    check(
        &sandbox,
        "live/b.hcl",
        "Terragrunt include (live/app/terragrunt.hcl:5)",
    );
}

#[test]
fn an_include_that_was_deleted_counts() {
    let sandbox = unit_and(
        "include {\n  path = find_in_parent_folders(\"root.hcl\")\n}\n",
        &[("/root.hcl", "")],
    );
    fs::remove_file(sandbox.path("/root.hcl")).unwrap();
    assert_snapshot!(why(&sandbox), @"live/app  # changed: root.hcl (uncommitted, deleted), Terragrunt find_in_parent_folders (live/app/terragrunt.hcl:2)");
}

// Files that are read.

#[test]
fn configuration_that_is_read_reads_more() {
    let sandbox = unit_and(
        r#"
locals {
  env    = read_terragrunt_config(find_in_parent_folders("env.hcl"))
  region = local.env.locals.region
}
inputs = merge(local.env.locals, { deep = [read_terragrunt_config("../deep.hcl")] })
"#,
        &[
            (
                "/live/env.hcl",
                "locals {\n  x = read_terragrunt_config(\"${get_terragrunt_dir()}/x/more.hcl\")\n}\n",
            ),
            (
                "/live/x/more.hcl",
                "locals {\n  y = yamldecode(file(\"y.yml\"))\n}\nterraform {\n  source = \"./none\"\n}\n",
            ),
            ("/live/deep.hcl", ""),
        ],
    );
    let first = "Terragrunt read_terragrunt_config (live/app/terragrunt.hcl:3)";
    let second = format!("{first}, Terragrunt read_terragrunt_config (live/env.hcl:2)");
    check(&sandbox, "live/env.hcl", first);
    check(&sandbox, "live/x/more.hcl", &second);
    check(
        &sandbox,
        "live/x/y.yml",
        &format!("{second}, Terragrunt file (live/x/more.hcl:2)"),
    );
    check(
        &sandbox,
        "live/deep.hcl",
        "Terragrunt read_terragrunt_config (live/app/terragrunt.hcl:6)",
    );
}

#[test]
fn locals_may_be_part_of_paths() {
    let sandbox = unit(
        r#"
locals {
  name   = "eu-${local.number}"
  number = "1"
  file   = "${get_terragrunt_dir()}/../${local.name}.yml"
  x      = yamldecode(file(local.file))
  loop   = local.circle
  circle = local.loop
  y      = file(local.loop)
  object = { a = "from-object" }
  z      = file("../${local.object.a}")
}
"#,
    );
    check(
        &sandbox,
        "live/eu-1.yml",
        "Terragrunt file (live/app/terragrunt.hcl:6)",
    );
    check(
        &sandbox,
        "live/from-object",
        "Terragrunt file (live/app/terragrunt.hcl:11)",
    );
}

#[test]
fn files_of_variables_are_inputs() {
    let sandbox = unit(
        r#"
terraform {
  extra_arguments "vars" {
    commands           = ["plan"]
    required_var_files = ["${get_terragrunt_dir()}/../required.tfvars", "${find_in_parent_folders("found.tfvars")}"]
    optional_var_files = [
      "../optional.tfvars",
    ]
  }
}
inputs = {
  a = read_tfvars_file("../read.tfvars")
  b = sops_decrypt_file("../secret.yml")
  c = templatefile("../t.tpl", {})
}
"#,
    );
    check(
        &sandbox,
        "live/required.tfvars",
        "Terragrunt required_var_files (live/app/terragrunt.hcl:5)",
    );
    check(
        &sandbox,
        "live/optional.tfvars",
        "Terragrunt optional_var_files (live/app/terragrunt.hcl:7)",
    );
    check(
        &sandbox,
        "found.tfvars",
        "Terragrunt find_in_parent_folders (live/app/terragrunt.hcl:5)",
    );
    check(
        &sandbox,
        "live/read.tfvars",
        "Terragrunt read_tfvars_file (live/app/terragrunt.hcl:12)",
    );
    check(
        &sandbox,
        "live/secret.yml",
        "Terragrunt sops_decrypt_file (live/app/terragrunt.hcl:13)",
    );
    check(
        &sandbox,
        "live/t.tpl",
        "Terragrunt templatefile (live/app/terragrunt.hcl:14)",
    );
}

#[test]
fn what_is_not_in_the_project_is_ignored() {
    let sandbox = unit(
        "locals {\n  a = file(\"/x\")\n  b = file(\"~/x\")\n  c = file(\"../../../x\")\n  d = file(local.e)\n}\n",
    );
    assert_snapshot!(why_changed(&sandbox, "/x"), @"");
}

// Dependencies.

#[test]
fn dependencies_select_nothing() {
    let sandbox = project(
        "live/app live/vpc live/db",
        &[
            (
                "/live/app/terragrunt.hcl",
                "dependency \"vpc\" {\n  config_path = \"../vpc\"\n}\ndependencies {\n  paths = [\"../db\"]\n}\n\
                 dependency \"dns\" {\n  config_path = find_in_parent_folders(\"dns\")\n}\n",
            ),
            ("/live/vpc/terragrunt.hcl", ""),
            ("/live/db/terragrunt.hcl", ""),
            ("/live/dns/terragrunt.hcl", ""),
        ],
    );
    assert_eq!(changed(&sandbox, "/live/vpc/terragrunt.hcl"), ["live/vpc"]);
    assert_eq!(changed(&sandbox, "/live/db/terragrunt.hcl"), ["live/db"]);
    assert_eq!(changed(&sandbox, "/live/dns/terragrunt.hcl"), NONE);
}

// Everything else.

#[test]
fn terragrunt_may_be_switched_off() {
    let sandbox = unit_and(
        "include {\n  path = \"../root.hcl\"\n}\n",
        &[("/live/root.hcl", "")],
    );
    assert_eq!(changed(&sandbox, "/live/root.hcl"), ["live/app"]);
    sandbox.write(
        "/off.tm",
        "terramate {\n  config {\n    change_detection {\n      terragrunt {\n        enabled = \"off\"\n      }\n    }\n  }\n}\n",
    );
    commit(&sandbox);
    assert_eq!(changed(&sandbox, "/live/root.hcl"), NONE);
}

#[test]
fn files_that_are_read_may_include_others() {
    let sandbox = unit_and(
        r#"
locals {
  env = read_terragrunt_config("../env/env.hcl").locals
}
terraform {
  source = "../../modules/${local.env.name}"
}
inputs = {
  x = file("../${local.env.place}/x")
}
"#,
        &[
            (
                "/live/env/env.hcl",
                "include \"root\" {\n  path   = find_in_parent_folders(\"common.hcl\")\n  expose = true\n}\nlocals {\n  name  = include.root.locals.name\n  place = path_relative_to_include()\n}\n",
            ),
            ("/live/common.hcl", "locals {\n  name = \"app\"\n}\n"),
            ("/modules/app/main.tf", ""),
        ],
    );
    check(
        &sandbox,
        "modules/app/x",
        "Terragrunt terraform.source (live/app/terragrunt.hcl:6)",
    );
    check(
        &sandbox,
        "live/env/x",
        "Terragrunt file (live/app/terragrunt.hcl:9)",
    );
    assert_eq!(changed(&sandbox, "/live/common.hcl"), ["live/app"]);
}

#[test]
fn units_may_be_written_in_json() {
    let unit = r#"{
  "locals": {
    "up": "../../",
    "common": "${read_terragrunt_config(find_in_parent_folders(\"common.hcl.json\"))}"
  },
  "include": [
    {"root": {"path": "${find_in_parent_folders()}", "expose": true}},
    {"other": {"path": "../other.hcl"}}
  ],
  "terraform": {
    "source": "${local.up}modules//${local.common.locals.name}",
    "extra_arguments": {
      "vars": {
        "commands": ["plan"],
        "required_var_files": [
          "../x.tfvars"
        ]
      }
    }
  },
  "inputs": {
    "a": 1,
    "text": "a \"b\" ${file(\"../text\")}"
  }
}
"#;
    let sandbox = project(
        "live/app",
        &[
            ("/live/app/terragrunt.hcl.json", unit),
            ("/live/common.hcl.json", "{\"locals\": {\"name\": \"app\"}}"),
            ("/live/other.hcl", ""),
            (
                "/terragrunt.hcl.json",
                "{\"inputs\": {\"x\": \"${file(\\\"../read\\\")}\"}}",
            ),
            ("/modules/app/main.tf", ""),
        ],
    );
    let reasons = [
        "modules/app/main.tf",
        "live/other.hcl",
        "live/x.tfvars",
        "live/text",
        "live/read",
    ];
    let reasons = reasons.map(|path| why_changed(&sandbox, path));
    assert_snapshot!(reasons.join("\n"), @"
    live/app  # changed: modules/app/main.tf, Terragrunt terraform.source (live/app/terragrunt.hcl.json:11)
    live/app  # changed: live/other.hcl, Terragrunt include (live/app/terragrunt.hcl.json:8)
    live/app  # changed: live/x.tfvars, Terragrunt required_var_files (live/app/terragrunt.hcl.json:16)
    live/app  # changed: live/text, Terragrunt file (live/app/terragrunt.hcl.json:23)
    live/app  # changed: live/read, Terragrunt include (live/app/terragrunt.hcl.json:7), Terragrunt file (terragrunt.hcl.json:1)
    ");
    for file in ["/live/common.hcl.json", "/terragrunt.hcl.json"] {
        assert_eq!(changed(&sandbox, file), ["live/app"]);
    }
    // The native file comes first.
    sandbox.write("/live/app/terragrunt.hcl", "");
    commit(&sandbox);
    assert_eq!(changed(&sandbox, "/live/x.tfvars"), NONE);
    // Without a label, and with a mistake.
    fs::remove_file(sandbox.path("/live/app/terragrunt.hcl")).unwrap();
    sandbox.write(
        "/live/app/terragrunt.hcl.json",
        "{\"include\": {\"path\": \"../other.hcl\"}}",
    );
    commit(&sandbox);
    assert_eq!(changed(&sandbox, "/live/other.hcl"), ["live/app"]);
    sandbox.write("/live/app/terragrunt.hcl.json", "{\"include\": {,}}");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/x"), @r#"
    warning: syntax error
     --> live/app/terragrunt.hcl.json:1:14
      |
    1 | {"include": {,}}
      |              ^ key must be a string
      |
      = note: changes of files that it uses go unnoticed
    "#);
}

#[test]
fn files_of_variables_may_be_arguments() {
    let sandbox = unit(
        r#"
terraform {
  extra_arguments "vars" {
    arguments = ["-var-file=../x.tfvars", "-var-file", "../y.tfvars", "-var-file=${get_terragrunt_dir()}/../z.tfvars"]
  }
}
"#,
    );
    let reason = "Terragrunt arguments (live/app/terragrunt.hcl:4)";
    check(&sandbox, "live/x.tfvars", reason);
    check(&sandbox, "live/z.tfvars", reason);
    assert_eq!(changed(&sandbox, "/live/y.tfvars"), NONE);
}

#[test]
fn a_broken_file_is_warned_of_once() {
    let sandbox = project(
        "live/a live/b live/c",
        &[
            (
                "/live/a/terragrunt.hcl",
                "include {\n  path = \"../root.hcl\"\n}\n",
            ),
            (
                "/live/b/terragrunt.hcl",
                "include {\n  path = \"../root.hcl\"\n}\n",
            ),
            ("/live/c/terragrunt.hcl", "include {\n"),
            ("/live/root.hcl", "locals {\n  x = \n}\n"),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/x"), @r#"
    warning: syntax error
     --> live/c/terragrunt.hcl:1:9
      |
    1 | include {
      |         ^- invalid block body; expected `}`, newline or identifier
      |         |
      |         never closed
      |
      = note: changes of files that it uses go unnoticed
      = help: add the missing `}`

    warning: syntax error
     --> live/root.hcl:2:7
      |
    2 |   x = 
      |       ^ invalid expression; expected `"`, `[`, `{`, `-`, `!`, `(`, `_`, `<`, letter or digit
      |
      = note: changes of files that it uses go unnoticed
    "#);
    assert_eq!(changed(&sandbox, "/live/root.hcl"), ["live/a", "live/b"]);
}

#[test]
fn a_broken_file_that_changed_is_the_change_of_its_stack() {
    let sandbox = unit("");
    sandbox.write("/live/app/terragrunt.hcl", "include {\n");
    assert_snapshot!(why(&sandbox), @"live/app  # changed: live/app/terragrunt.hcl");
}

#[test]
fn files_in_a_circle_end() {
    let sandbox = unit_and(
        "include {\n  path = \"../a.hcl\"\n}\n",
        &[
            (
                "/live/a.hcl",
                "include {\n  path = \"../b.hcl\"\n}\nlocals {\n  x = read_terragrunt_config(\"b.hcl\")\n}\n",
            ),
            (
                "/live/b.hcl",
                "locals {\n  x = read_terragrunt_config(\"a.hcl\")\n  y = read_terragrunt_config(\"b.hcl\")\n  z = file(\"z\")\n}\n",
            ),
        ],
    );
    check(
        &sandbox,
        "live/z",
        "Terragrunt include (live/app/terragrunt.hcl:2), Terragrunt include (live/a.hcl:2), Terragrunt file (live/b.hcl:4)",
    );
}

#[test]
fn whoever_uses_a_unit_as_module_has_nothing_to_do_with_its_terragrunt() {
    let sandbox = project(
        "s unit",
        &[
            ("/s/main.tf", "module \"m\" {\n  source = \"../unit\"\n}\n"),
            (
                "/unit/terragrunt.hcl",
                "include {\n  path = \"../root.hcl\"\n}\n",
            ),
            ("/root.hcl", ""),
        ],
    );
    assert_eq!(changed(&sandbox, "/root.hcl"), ["unit"]);
}

#[test]
fn a_directory_without_a_stack_is_of_no_interest() {
    let sandbox = project(
        "s",
        &[
            ("/unit/terragrunt.hcl", "include {\n"),
            ("/s/deep/terragrunt.hcl", "include {\n  path = \"/x\"\n}\n"),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/x"), @"");
}

#[cfg(unix)]
#[test]
fn what_is_included_may_lie_behind_a_link() {
    let sandbox = unit_and(
        "include {\n  path = find_in_parent_folders(\"root.hcl\")\n}\n",
        &[("/shared/root.hcl", "locals {\n  x = file(\"x\")\n}\n")],
    );
    sandbox.symlink("../shared/root.hcl", "/live/root.hcl");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/shared/root.hcl"), @"live/app  # changed: shared/root.hcl, Terragrunt include (live/app/terragrunt.hcl:2), target of the link live/root.hcl");
    assert_eq!(changed(&sandbox, "/live/x"), ["live/app"]);
}

#[test]
fn marks_sets_and_functions_of_paths_are_followed() {
    let sandbox = unit(
        r#"
locals {
  a = mark_as_read("${get_terragrunt_dir()}/../a.yml")
  b = file(mark_as_read("../b.yml"))
  c = mark_glob_as_read("${get_terragrunt_dir()}/../globs/*.yml")
  d = fileset("../sets", "**/*.json")
  e = file(abspath("../e"))
  f = file(join("/", [dirname(get_terragrunt_dir()), format("f-%d", 1)]))
}
"#,
    );
    let reason =
        |what: &str, line: usize| format!("Terragrunt {what} (live/app/terragrunt.hcl:{line})");
    check(&sandbox, "live/a.yml", &reason("mark_as_read", 3));
    check(&sandbox, "live/b.yml", &reason("file", 4));
    check(
        &sandbox,
        "live/globs/x.yml",
        &reason("mark_glob_as_read", 5),
    );
    check(&sandbox, "live/sets/deep/x.json", &reason("fileset", 6));
    check(&sandbox, "live/e", &reason("file", 7));
    check(&sandbox, "live/f-1", &reason("file", 8));
    assert_eq!(changed(&sandbox, "live/globs/x.json"), NONE);
}

#[test]
fn locals_of_other_files_may_be_part_of_paths() {
    let env = "locals {\n  base   = \"../../modules\"\n  module = \"${local.base}/app\"\n}\n";
    let module = ("/modules/app/main.tf", "");
    let read = "locals {\n  env = read_terragrunt_config(find_in_parent_folders(\"env.hcl\"))\n}\n";
    for (own, source) in [
        (read, "local.env.locals.module"),
        (read, "\"${local.env.locals.base}/app\""),
        ("", "read_terragrunt_config(\"../env.hcl\").locals.module"),
        (
            "include \"env\" {\n  path   = \"../env.hcl\"\n  expose = true\n}\n",
            "include.env.locals.module",
        ),
        (
            "include {\n  path = \"../env.hcl\"\n}\n",
            "include.locals.module",
        ),
        (
            "include \"env\" {\n  path           = \"../env.hcl\"\n  merge_strategy = \"no_merge\"\n}\n",
            "include.env.locals.module",
        ),
    ] {
        let text = format!("{own}terraform {{\n  source = {source}\n}}\n");
        let sandbox = unit_and(&text, &[("/live/env.hcl", env), module]);
        let line = text
            .lines()
            .position(|line| line.contains("source"))
            .unwrap()
            + 1;
        check(
            &sandbox,
            "modules/app/x",
            &format!("Terragrunt terraform.source (live/app/terragrunt.hcl:{line})"),
        );
    }
}

#[test]
fn files_that_read_each_other_have_an_end() {
    let names = ["a", "b"];
    let reads = names.map(|name| format!("  {name} = read_terragrunt_config(\"{name}.hcl\")\n"));
    let text = format!("locals {{\n{}  x = \"../m\"\n}}\n", reads.concat());
    let files = names.map(|name| format!("/live/app/{name}.hcl"));
    let source = "terraform {\n  source = local.b.locals.a.locals.x\n}\n";
    let sandbox = unit_and(
        &format!("{text}{source}"),
        &[
            (&*files[0], &text),
            (&files[1], &text),
            ("/live/m/main.tf", ""),
        ],
    );
    check(
        &sandbox,
        "live/m/x",
        "Terragrunt terraform.source (live/app/terragrunt.hcl:7)",
    );
}

#[test]
fn paths_that_only_terragrunt_can_evaluate_are_reported() {
    let sandbox = unit(
        "include {\n  path = get_env(\"X\")\n}\nterraform {\n  source = dependency.x.outputs.source\n}\n",
    );
    let why = sandbox.orch("why live/app").stdout;
    for place in [
        "include (live/app/terragrunt.hcl:2)",
        "terraform.source (live/app/terragrunt.hcl:5)",
    ] {
        let expected = format!("Terragrunt {place}\n    its path cannot be determined");
        assert!(why.contains(&expected), "{why}");
    }
    assert_snapshot!(sandbox.orch("validate"), @"
    [stderr]
    note: Terragrunt include (live/app/terragrunt.hcl:2): its path cannot be determined, so changes of the file do not count
    note: Terragrunt terraform.source (live/app/terragrunt.hcl:5): its path cannot be determined, so changes of the file do not count
    note: no problems found: 1 stack, 2 configuration files
    ");
}

#[test]
fn dependencies_of_exposed_files_are_not_those_of_the_unit() {
    let sandbox = Sandbox::new(
        r#"
//- config.orch.hcl
orch {
  config {
    order_from = ["terragrunt"]
  }
}
//- shared.hcl
dependencies {
  paths = ["../b"]
}
//- a/stack.tm
stack {}
//- a/terragrunt.hcl
include "shared" {
  path           = "../shared.hcl"
  merge_strategy = "no_merge"
}
//- b/stack.tm
stack {}
//- b/terragrunt.hcl
locals {
  names = read_terragrunt_config("../names.hcl")
}
dependency "a" {
  config_path = local.names.locals.a
}
//- names.hcl
locals {
  a = "../a"
}
"#,
    );
    assert_snapshot!(sandbox.orch("list --order"), @"
    a
    b
    ");
}
