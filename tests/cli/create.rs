//! `orch create`

use insta::assert_snapshot;

use crate::support::{Output, Sandbox};

/// Takes the random ids out of a text.
fn without_ids(text: &str) -> String {
    let is_uuid = |part: &str| {
        let groups = part.split('-').map(str::len);
        groups.eq([8, 4, 4, 4, 12]) && part.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
    };
    let mut shown = text.to_owned();
    for part in text.split(|c: char| c != '-' && !c.is_ascii_alphanumeric()) {
        if is_uuid(part) {
            shown = shown.replace(part, "UUID");
        }
    }
    shown
}

fn create(sandbox: &Sandbox, arguments: &str) -> Output {
    let mut output = sandbox.orch(&format!("create {arguments}"));
    output.stdout = without_ids(&output.stdout);
    output
}

fn file(sandbox: &Sandbox, path: &str) -> String {
    without_ids(&sandbox.read(path))
}

#[test]
fn create_writes_a_stack_with_defaults() {
    let sandbox = Sandbox::new("");
    assert_snapshot!(create(&sandbox, "prod/network"), @"created stack /prod/network");
    assert_snapshot!(file(&sandbox, "prod/network/stack.tm.hcl"), @r#"
    stack {
      name        = "network"
      description = "network"
      id          = "UUID"
    }
    "#);
    assert_snapshot!(sandbox.orch("list"), @"prod/network");
    assert_snapshot!(sandbox.orch("fmt --check"), @"");
}

#[test]
fn create_path_is_relative_unless_it_begins_with_a_slash() {
    let sandbox = Sandbox::new("");
    sandbox.mkdir("/prod");
    assert_snapshot!(sandbox.orch_in("/prod", "create a"), @"created stack /prod/a");
    assert_snapshot!(sandbox.orch_in("/prod", "create /a/"), @"created stack /a");
    assert_snapshot!(sandbox.orch_in("/prod", "create ."), @"created stack /prod");
    assert_snapshot!(sandbox.orch_in("/prod", "create /"), @"created stack /");
    assert_snapshot!(file(&sandbox, "stack.tm.hcl"), @r#"
    stack {
      name        = "project"
      description = "project"
      id          = "UUID"
    }
    "#);
}

#[test]
fn create_writes_all_attributes() {
    let sandbox = Sandbox::layout("x\ny");
    sandbox.write("/common/a.tm.hcl", "globals {\n}\n");
    let arguments = "stack --id an-ID_1 --name 'a \"name\"' --description '${x}' \
        --tags a,b --tags a --after /x,tag:q --after ../y --before /none --wants /x --wanted-by /y \
        --watch /common/file.txt --import /common/a.tm.hcl --no-generate";
    assert_snapshot!(create(&sandbox, arguments), @"created stack /stack");
    assert_snapshot!(file(&sandbox, "stack/stack.tm.hcl"), @r#"
    stack {
      name        = "a \"name\""
      description = "$${x}"
      tags        = ["a", "b"]
      after       = ["/x", "tag:q", "../y"]
      before      = ["/none"]
      wants       = ["/x"]
      wanted_by   = ["/y"]
      watch       = ["/common/file.txt"]
      id          = "an-ID_1"
    }

    import {
      source = "/common/a.tm.hcl"
    }
    "#);
    assert_snapshot!(sandbox.orch("list --tags a"), @r#"
    stack
    x
    [stderr]
    warning: `tag:q` in `after` matches no stack
     --> stack/stack.tm.hcl:5:24
      |
    5 |   after       = ["/x", "tag:q", "../y"]
      |                        ^^^^^^^ no stack has such tags

    warning: `/none` in `before` matches no stack
     --> stack/stack.tm.hcl:6:18
      |
    6 |   before      = ["/none"]
      |                  ^^^^^^^ no such directory
    "#);
}

#[test]
fn create_dry_run_shows_the_file_and_writes_nothing() {
    let sandbox = Sandbox::new("");
    sandbox.write("/common/a.tm.hcl", "globals {\n}\n");
    assert_snapshot!(create(&sandbox, "a/b --dry-run --import /common/a.tm.hcl"), @r#"
    would create a/b/stack.tm.hcl:
      stack {
        name        = "b"
        description = "b"
        id          = "UUID"
      }

      import {
        source = "/common/a.tm.hcl"
      }
    "#);
    assert!(!sandbox.path("/a").exists());
}

#[test]
fn create_overwrites_nothing() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/b/stack.tm.hcl", "globals {\n}\n");
    sandbox.write("/c/x.tm", "stack {\n  for_each = []\n}\n");
    assert_snapshot!(create(&sandbox, "a"), @"
    [stderr]
    error: cannot create `a`: it is a stack already, by a/stack.tm:1
      = help: `--ignore-existing` makes this no error
    [exit status 64]
    ");
    assert_snapshot!(create(&sandbox, "b"), @"
    [stderr]
    error: cannot create `b`: `b/stack.tm.hcl` exists
      = help: `--ignore-existing` makes this no error
    [exit status 64]
    ");
    assert_snapshot!(create(&sandbox, "c"), @"
    [stderr]
    error: cannot create `c`: it is a stack already, by c/x.tm:2
      = help: `--ignore-existing` makes this no error
    [exit status 64]
    ");
    for path in ["a", "b", "c"] {
        let output = create(&sandbox, &format!("{path} --ignore-existing"));
        assert_eq!(output.to_string(), "", "{path}");
    }
    assert_eq!(sandbox.read("/b/stack.tm.hcl"), "globals {\n}\n");
    assert!(!sandbox.path("/a/stack.tm.hcl").exists());
}

#[cfg(unix)]
#[test]
fn create_refuses_paths_that_are_not_part_of_the_project() {
    let sandbox = Sandbox::new("");
    sandbox.write("/file", "");
    sandbox.write("/skipped/.tmskip", "");
    sandbox.write("/nested/root.orch.hcl", "orch {\n  root = true\n}\n");
    sandbox.mkdir("/real");
    sandbox.symlink("real", "/link");
    let root = sandbox.path("/").display().to_string();
    for (path, why) in [
        ("../outside", "outside of the project"),
        ("a/../../b", "outside of the project"),
        (".hidden", "`.hidden` begins with a dot"),
        ("a/.hidden/b", "`.hidden` begins with a dot"),
        ("file", "`/file` is not a directory"),
        ("file/a", "`/file` is not a directory"),
        ("link/a", "`/link` is a symbolic link"),
        (
            "skipped/a",
            "`/skipped/.tmskip` keeps it out of the project",
        ),
        ("nested/a", "`/nested` is a project of its own"),
        ("'a[\"x\"]'", "names an instance"),
        (&format!("{root}a"), "write `/a`"),
    ] {
        for flag in ["", "--ignore-existing"] {
            let output = create(&sandbox, &format!("{path} {flag}"));
            assert_eq!(output.code(), 64, "{path}: {output}");
            let expected = ["error: cannot create `", why];
            let is_said = expected.iter().all(|text| output.stderr.contains(text));
            assert!(is_said, "{path}: {output}");
        }
    }
    let names = std::fs::read_dir(sandbox.path("/real")).unwrap();
    assert_eq!(names.count(), 0);
}

#[test]
fn create_checks_attributes_before_it_writes() {
    let sandbox =
        Sandbox::new("//- x/x.tm\nstack {\n  id = \"Known\"\n}\n//- c.tm\n\n//- d/e/c.tm\n");
    for (flags, why) in [
        (
            "--id 'a b'",
            "`a b` cannot be the id of a stack: an id has only ASCII letters",
        ),
        ("--id KNOWN", "the stack `/x` has the id `KNOWN` already"),
        ("--tags A", "`A` cannot be a tag"),
        (
            "--watch ../../../x",
            "`../../../x` leads out of the project",
        ),
        ("--import /none/x.tm", "`/none/x.tm` cannot be read"),
        (
            "--import ../../../x",
            "`--import ../../../x`: it leads out of the project",
        ),
        (
            "--import /c.tm",
            "hold for the stacks in it without an import",
        ),
        ("--import /d/e", "it is a directory"),
    ] {
        let output = create(&sandbox, &format!("a/b {flags}"));
        assert_eq!(output.code(), 64, "{flags}: {output}");
        assert!(output.stderr.contains(why), "{flags}: {output}");
    }
    assert!(!sandbox.path("/a").exists());
}

#[test]
fn create_needs_one_thing_to_do() {
    let sandbox = Sandbox::new("");
    let all = [
        "stack",
        "--all-terraform",
        "--all-terragrunt",
        "--ensure-stack-ids",
    ];
    for (index, one) in all.iter().enumerate() {
        for other in &all[index + 1..] {
            let output = create(&sandbox, &format!("{one} {other}"));
            assert_eq!(output.code(), 64, "{one} {other}: {output}");
        }
        if index == 0 {
            continue;
        }
        for flag in [
            "id",
            "name",
            "description",
            "after",
            "before",
            "wants",
            "wanted-by",
            "import",
        ] {
            let output = create(&sandbox, &format!("{one} --{flag}=/test"));
            assert_eq!(output.code(), 64, "{one} {flag}: {output}");
        }
        let output = create(&sandbox, &format!("{one} --ignore-existing"));
        assert_eq!(output.code(), 64, "{one}: {output}");
    }
    assert_eq!(create(&sandbox, "").code(), 64);
}

#[test]
fn create_stops_at_a_broken_project() {
    let sandbox = Sandbox::new("//- x/x.tm\nstack {\n  nam = \"x\"\n}\n");
    assert_eq!(create(&sandbox, "a").code(), 3);
    assert!(!sandbox.path("/a").exists());
}

#[cfg(unix)]
#[test]
fn create_leaves_nothing_if_it_cannot_write() {
    use std::os::unix::fs::PermissionsExt;

    let sandbox =
        Sandbox::new("//- a/main.tf\nprovider \"x\" {\n}\n//- b/main.tf\nprovider \"x\" {\n}\n");
    let closed = sandbox.path("/b");
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o555)).unwrap();
    if std::fs::File::create(closed.join("x")).is_ok() {
        // A superuser may write anywhere.
        std::fs::remove_file(closed.join("x")).unwrap();
        return;
    }
    let output = create(&sandbox, "--all-terraform");
    std::fs::set_permissions(closed, PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(output.code(), 5, "{output}");
    assert!(output.stderr.contains("nothing was written"), "{output}");
    assert!(!sandbox.path("/a/stack.tm.hcl").exists());
}

// Terraform root modules.

const TERRAFORM: &str = r#"
//- main.tf
terraform {
  backend "local" {
  }
}
module "a" {
  source = "./modules/a"
}
//- prod/app/versions.tf
terraform {
  cloud {
  }
}
//- prod/app/nested/main.tofu
provider "aws" {
}
//- prod/db/main.tf.json
{"terraform": [{"backend": {"s3": {}}}]}
//- prod/known/main.tf
provider "aws" {
}
//- prod/known/stack.tm
stack {
}
//- modules/a/main.tf
provider "aws" {
}
module "b" {
  source = "${path.module}/../b"
}
//- modules/b/main.tf
provider "aws" {
}
//- modules/c/main.tf
variable "backend" {
}
terraform {
  required_providers {
  }
}
//- .hidden/main.tf
provider "aws" {
}
"#;

#[test]
fn create_all_terraform_makes_stacks_of_root_modules() {
    let sandbox = Sandbox::new(TERRAFORM);
    assert_snapshot!(create(&sandbox, "--all-terraform --tags tf"), @"
    created stack /
    created stack /prod/app
    created stack /prod/app/nested
    created stack /prod/db
    [stderr]
    note: left out because others call them as modules: `/modules/a` (by main.tf:6), `/modules/b` (by modules/a/main.tf:4)
    ");
    assert_snapshot!(file(&sandbox, "prod/app/nested/stack.tm.hcl"), @r#"
    stack {
      name        = "nested"
      description = "nested"
      tags        = ["tf"]
      id          = "UUID"
    }
    "#);
    assert_snapshot!(sandbox.orch("list"), @"
    .
    prod/app
    prod/app/nested
    prod/db
    prod/known
    ");
    assert_snapshot!(create(&sandbox, "--all-terraform"), @"
    [stderr]
    note: left out because others call them as modules: `/modules/a` (by main.tf:6), `/modules/b` (by modules/a/main.tf:4)
    note: nothing to create: the Terraform files in 1 other directory have no `backend`, `cloud` or `provider` block
    ");
}

#[test]
fn create_all_terraform_is_about_the_current_directory() {
    let sandbox = Sandbox::new(TERRAFORM);
    assert_snapshot!(sandbox.orch_in("/prod/app", "create --all-terraform"), @"
    created stack /prod/app
    created stack /prod/app/nested
    ");
    assert_snapshot!(sandbox.orch_in("/modules", "create --all-terraform"), @"
    [stderr]
    note: left out because others call them as modules: `/modules/a` (by main.tf:6), `/modules/b` (by modules/a/main.tf:4)
    note: nothing to create: the Terraform files in 1 other directory have no `backend`, `cloud` or `provider` block
    ");
    sandbox.mkdir("/empty");
    assert_snapshot!(sandbox.orch_in("/empty", "create --all-terraform"), @"");
    sandbox.write("/empty/main.tf", "variable \"x\" {\n}\n");
    assert_snapshot!(sandbox.orch_in("/empty", "create --all-terraform"), @"
    [stderr]
    note: nothing to create: the Terraform files in 1 other directory have no `backend`, `cloud` or `provider` block
    ");
}

#[test]
fn create_all_terraform_dry_run_writes_nothing() {
    let sandbox = Sandbox::new(TERRAFORM);
    let output = create(&sandbox, "--all-terraform --dry-run");
    assert_eq!(
        output.stdout.matches("would create ").count(),
        4,
        "{output}"
    );
    assert!(!sandbox.path("/stack.tm.hcl").exists());
}

#[test]
fn create_all_terraform_stops_at_files_that_it_cannot_understand() {
    let sandbox = Sandbox::new(
        "//- a/main.tf\nprovider \"x\" {\n}\n//- b/main.tf\nprovider \"x\" {\n//- c/main.tf.json\n{\"provider\": \n",
    );
    assert_snapshot!(create(&sandbox, "--all-terraform"), @r#"
    [stderr]
    error: syntax error
     --> b/main.tf:1:14
      |
    1 | provider "x" {
      |              ^- invalid block body; expected `}`, newline or identifier
      |              |
      |              never closed
      |
      = help: add the missing `}`

    error: syntax error
     --> c/main.tf.json:2:1
      |
    2 |
      | ^ EOF while parsing a value

    [exit status 3]
    "#);
    assert!(!sandbox.path("/a/stack.tm.hcl").exists());
    sandbox.write("/b/.orchskip", "");
    sandbox.write("/c/.orchskip", "");
    assert_snapshot!(create(&sandbox, "--all-terraform"), @"created stack /a");
}

// Ids.

#[test]
fn create_ensure_stack_ids_adds_ids_and_keeps_the_rest() {
    let sandbox = Sandbox::new(
        "//- a/stack.tm\n# first\nstack {\n  name        = \"a\" # name\n  description = \"b\"\n\n  // last\n}\nglobals {\n  x=1\n}\n\
         //- b/stack.tm\nstack {}\n\
         //- c/stack.tm\nstack {\n  id = \"known\"\n}\n\
         //- d/stack.tm\nstack {\n  id = \"\" # empty\n}\n\
         //- e/stack.orch.hcl\nstack {\n  for_each = [\"x\", \"y\"]\n}\n",
    );
    sandbox.write("/bom/stack.tm", "\u{feff}stack {\r\n}\r\n");
    sandbox.mkdir("/deep/down");
    let dry = sandbox.orch_in("/deep/down", "create --ensure-stack-ids --dry-run");
    assert_snapshot!(without_ids(&dry.to_string()), @"
    would set the id of stack /a in ../../a/stack.tm: UUID
    would set the id of stack /b in ../../b/stack.tm: UUID
    would set the id of stack /bom in ../../bom/stack.tm: UUID
    would set the id of stack /d in ../../d/stack.tm: UUID
    [stderr]
    warning: no id for `/e`: its instances need an id each: write one with `each.key` in it
    ");
    assert_eq!(sandbox.read("/b/stack.tm"), "stack {}\n");
    let output = sandbox.orch_in("/deep/down", "create --ensure-stack-ids");
    assert_snapshot!(without_ids(&output.to_string()), @"
    set the id of stack /a: UUID
    set the id of stack /b: UUID
    set the id of stack /bom: UUID
    set the id of stack /d: UUID
    [stderr]
    warning: no id for `/e`: its instances need an id each: write one with `each.key` in it
    ");
    assert_snapshot!(file(&sandbox, "a/stack.tm"), @r#"
    # first
    stack {
      name        = "a" # name
      description = "b"

      // last
      id = "UUID"
    }
    globals {
      x=1
    }
    "#);
    assert_snapshot!(file(&sandbox, "b/stack.tm"), @r#"
    stack {
      id = "UUID"
    }
    "#);
    assert_eq!(
        sandbox.read("/c/stack.tm"),
        "stack {\n  id = \"known\"\n}\n"
    );
    assert_snapshot!(file(&sandbox, "d/stack.tm"), @r#"
    stack {
      id = "UUID" # empty
    }
    "#);
    assert_eq!(
        file(&sandbox, "/bom/stack.tm"),
        "\u{feff}stack {\r\n  id = \"UUID\"\r\n}\r\n"
    );
    let again = sandbox.orch("create --ensure-stack-ids");
    assert_eq!(again.stdout, "");
}

// Terragrunt units.

const TERRAGRUNT: &str = r#"
//- root.hcl
locals {
}
//- a/terragrunt.hcl
terraform {
  source = "github.com/some/repo"
}
dependency "b" {
  config_path = "../b"
}
dependency "off" {
  config_path = "../c"
  enabled     = false
}
dependencies {
  paths = ["../b", "${get_terragrunt_dir()}/../deep/c"]
}
//- a/inner/terragrunt.hcl
include "root" {
  path = find_in_parent_folders("root.hcl")
}
include "common" {
  path = "../../common/unit.hcl"
}
dependency "parent" {
  config_path = ".."
}
//- b/terragrunt.hcl
# Terraform files beside it.
inputs = { a = 1, a = 2 }
//- b/main.tf
resource "x" "y" {
}
//- deep/c/terragrunt.hcl
terraform {
  source = "${get_repo_root()}//modules/c"
}
//- common/unit.hcl
terraform {
  source = "../module"
}
dependency "b" {
  config_path = "../../b"
}
//- known/terragrunt.hcl
terraform {
  source = "x"
}
//- known/stack.tm
stack {
}
//- terragrunt.hcl
terraform {
  extra_arguments "x" {
    commands = []
  }
}
"#;

#[test]
fn create_all_terragrunt_makes_stacks_that_run_after_their_dependencies() {
    let sandbox = Sandbox::new(TERRAGRUNT);
    assert_snapshot!(create(&sandbox, "--all-terragrunt --tags tg"), @"
    created stack /a
    created stack /a/inner
    created stack /b
    created stack /deep/c
    [stderr]
    note: left out because they have neither a `source` in a `terraform` block nor Terraform files: `/`
    ");
    assert_snapshot!(file(&sandbox, "a/stack.tm.hcl"), @r#"
    stack {
      name        = "a"
      description = "a"
      tags        = ["tg"]
      after       = ["/b", "/deep/c"]
      id          = "UUID"
    }
    "#);
    assert_snapshot!(file(&sandbox, "a/inner/stack.tm.hcl"), @r#"
    stack {
      name        = "inner"
      description = "inner"
      tags        = ["tg"]
      after       = ["/b"]
      id          = "UUID"
    }
    "#);
    assert_snapshot!(sandbox.orch("list --order"), @"
    b
    deep/c
    a
    a/inner
    known
    ");
    assert_snapshot!(create(&sandbox, "--all-terragrunt"), @"
    [stderr]
    note: left out because they have neither a `source` in a `terraform` block nor Terraform files: `/`
    ");
    assert_snapshot!(sandbox.orch_in("/common", "create --all-terragrunt"), @"");
}

#[test]
fn create_all_terragrunt_reads_units_in_json() {
    let sandbox = Sandbox::new(
        r#"
//- a/terragrunt.hcl.json
{
  "terraform": {"source": "x"},
  "dependency": {
    "b": {"config_path": "../b"},
    "off": {"config_path": "../e", "enabled": false}
  },
  "dependencies": {"paths": ["../c", "${get_env(\"X\")}"]}
}
//- b/terragrunt.hcl.json
{"include": {"path": "../common.hcl.json"}, "exclude": [{"if": true, "actions": ["all"]}]}
//- c/terragrunt.hcl
terraform {
  source = "x"
}
dependency "d" {
  config_path = "../d/terragrunt.hcl.json"
}
//- d/terragrunt.hcl.json
{}
//- d/main.tf
//- e/terragrunt.hcl.json
{"inputs": {}}
//- common.hcl.json
{"terraform": [{"source": "x"}]}
"#,
    );
    assert_snapshot!(create(&sandbox, "--all-terragrunt"), @r#"
    created stack /a
    created stack /b
    created stack /c
    created stack /d
    [stderr]
    warning: a dependency is left out (a/terragrunt.hcl.json:7): only Terragrunt can evaluate its path; add it to `after`
    warning: `exclude` blocks are not read, so `orch apply` runs `/b` (b/terragrunt.hcl.json:1)
      = help: leave units out with `--exclude`, or with `driver = "none"` in their `stack` block
    note: left out because they have neither a `source` in a `terraform` block nor Terraform files: `/e`
    "#);
    assert_snapshot!(sandbox.orch("list --order"), @"
    b
    a
    d
    c
    ");
    sandbox.write("/e/terragrunt.hcl.json", "{\n,");
    assert_snapshot!(create(&sandbox, "--all-terragrunt"), @"
    [stderr]
    error: syntax error
     --> e/terragrunt.hcl.json:2:1
      |
    2 | ,
      | ^ key must be a string

    [exit status 3]
    ");
}

#[test]
fn create_all_terragrunt_says_which_dependencies_it_leaves_out() {
    let sandbox = Sandbox::new(
        "//- a/terragrunt.hcl\nterraform {\n  source = \"x\"\n}\ndependency \"o\" {\n  config_path = \"../../other\"\n}\n\
         dependencies {\n  paths = [get_env(\"X\"), \"/somewhere\"]\n}\n",
    );
    assert_snapshot!(create(&sandbox, "--all-terragrunt"), @"
    created stack /a
    [stderr]
    warning: a dependency is left out (a/terragrunt.hcl:4): it leads out of the project
    warning: a dependency is left out (a/terragrunt.hcl:7): only Terragrunt can evaluate its path; add it to `after`
    ");
}

#[test]
fn create_all_terragrunt_warns_of_excluded_units() {
    let unit = "terraform {\n  source = \"x\"\n}\n";
    let exclude = "exclude {\n  if      = true\n  actions = [\"apply\"]\n}\n";
    let sandbox = Sandbox::new(&format!(
        "//- a/terragrunt.hcl\n{unit}{exclude}//- b/terragrunt.hcl\n{unit}include {{\n  path = \"../off.hcl\"\n}}\n\
         //- c/terragrunt.hcl\n{unit}//- off.hcl\n{exclude}"
    ));
    assert_snapshot!(create(&sandbox, "--all-terragrunt"), @r#"
    created stack /a
    created stack /b
    created stack /c
    [stderr]
    warning: `exclude` blocks are not read, so `orch apply` runs `/a` (a/terragrunt.hcl:4), `/b` (off.hcl:1)
      = help: leave units out with `--exclude`, or with `driver = "none"` in their `stack` block
    "#);
}

#[test]
fn create_all_terragrunt_leaves_out_orders_that_stacks_cannot_have() {
    let unit = |path: &str, dependency: &str| {
        format!(
            "//- {path}/terragrunt.hcl\nterraform {{\n  source = \"x\"\n}}\ndependencies {{\n  paths = [{dependency}]\n}}\n"
        )
    };
    let sandbox = Sandbox::new(&(unit("a", "\"./b\"") + &unit("a/b", "") + &unit("c", "")));
    assert_snapshot!(create(&sandbox, "--all-terragrunt"), @"
    created stack /a/b
    created stack /c
    [stderr]
    warning: no stack for `/a`: it depends on `/a/b` (a/terragrunt.hcl:4), a directory inside it
      = help: move one of the two: a stack always runs before the stacks nested in it
    ");
    let files = unit("a", "\"../b\"")
        + &unit("b", "\"../c\"")
        + &unit("c", "\"../a\"")
        + &unit("d", "\"../a\"");
    let sandbox = Sandbox::new(&files);
    assert_snapshot!(create(&sandbox, "--all-terragrunt"), @"
    [stderr]
    error: Terragrunt units depend on each other in a cycle: `/a`, `/b`, `/c`
    [exit status 3]
    ");
    assert!(!sandbox.path("/d/stack.tm.hcl").exists());
}

#[test]
fn create_all_terragrunt_stops_at_files_that_it_cannot_understand() {
    let sandbox = Sandbox::new(TERRAGRUNT);
    sandbox.write("/deep/c/terragrunt.hcl", "terraform {\n");
    let output = create(&sandbox, "--all-terragrunt");
    assert_eq!(output.code(), 3, "{output}");
    assert!(!sandbox.path("/a/stack.tm.hcl").exists());
}
