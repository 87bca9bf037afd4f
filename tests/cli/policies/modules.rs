//! `module` blocks: what they may say, and where.

use crate::support::Sandbox;

/// What `orch validate` says of a project with this file.
#[track_caller]
fn refused(path: &str, text: &str) -> String {
    let sandbox = Sandbox::layout("a");
    sandbox.write(path, text);
    let output = sandbox.orch("validate");
    assert_eq!(output.code(), 3, "{output}");
    output.stderr
}

#[track_caller]
fn first_line(path: &str, text: &str) -> String {
    let said = refused(path, text);
    said.lines().next().unwrap_or_default().to_owned()
}

const RIGHT: &str = r#"
module "vpc" {
  source = "acme/vpc/aws"
  tag    = "modules/vpc/v*"
  labels = ["network", "depends-on:a,b"]
}
"#;

#[test]
fn module_block_may_stand_in_any_directory() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/a/modules.orch.hcl", RIGHT);
    let other = RIGHT.replace("\"vpc\"", "\"dns\"");
    sandbox.write("/b/c/modules.orch.hcl", other);
    let output = sandbox.orch("validate");
    assert_eq!(output.code(), 0, "{output}");
}

#[test]
fn module_block_needs_an_orch_file() {
    for file in ["/modules.tm", "/a/modules.tm.hcl"] {
        let said = refused(file, RIGHT);
        let expected = "error: a `module` block belongs in an `.orch.hcl` file\n";
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn module_block_needs_a_source_and_a_tag() {
    assert_eq!(
        refused("/modules.orch.hcl", "module \"vpc\" {\n}\n"),
        r#"error: a `module` block needs `source`
 --> modules.orch.hcl:1:1
  |
1 | module "vpc" {
  | ^^^^^^ in this block
  |
  = help: write `source = "acme/vpc/aws"`

error: a `module` block needs `tag`
 --> modules.orch.hcl:1:1
  |
1 | module "vpc" {
  | ^^^^^^ in this block
  |
  = help: write `tag = "modules/vpc/v*"`

"#
    );
}

#[test]
fn module_block_names_are_unique() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/a/modules.orch.hcl", RIGHT);
    sandbox.write("/modules.orch.hcl", RIGHT);
    let output = sandbox.orch("validate");
    assert_eq!(output.code(), 3, "{output}");
    let expected = "error: the module `vpc` is defined twice\n";
    assert!(output.stderr.starts_with(expected), "{output}");
}

#[test]
fn module_block_imported_twice_counts_once() {
    let sandbox = Sandbox::layout("a\nb");
    sandbox.write("/shared/modules.orch.hcl", RIGHT);
    for directory in ["a", "b"] {
        let import = "import {\n  source = \"/shared/modules.orch.hcl\"\n}\n";
        sandbox.write(&format!("/{directory}/import.orch.hcl"), import);
    }
    let output = sandbox.orch("validate");
    assert_eq!(output.code(), 0, "{output}");
}

#[test]
fn module_block_rejects_invalid_sources() {
    let table = [
        (
            "module {\n  source = \"x/y/z\"\n  tag = \"v*\"\n}",
            "a `module` block has one label: its name",
        ),
        (
            "module \"a\" \"b\" {\n  source = \"x/y/z\"\n  tag = \"v*\"\n}",
            "a `module` block has one label: its name",
        ),
        (
            "module \"a/b\" {\n  source = \"x/y/z\"\n  tag = \"v*\"\n}",
            "`a/b` cannot be the name of a module",
        ),
        (
            "module \"a\" {\n  source = \"x/y/z\"\n  tag = \"v1\"\n}",
            "`v1` is not a pattern for tags",
        ),
        (
            "module \"a\" {\n  source = \"x/y/z\"\n  tag = \"*/v*\"\n}",
            "`*/v*` is not a pattern for tags",
        ),
        (
            "module \"a\" {\n  source = \"x/y/z\"\n  tag = \"\"\n}",
            "`tag` is empty",
        ),
        (
            "module \"a\" {\n  source = \"x/y\"\n  tag = \"v*\"\n}",
            "`x/y` cannot be the source of a module",
        ),
        (
            "module \"a\" {\n  source = \"git::https://x.org/y?ref=v1\"\n  tag = \"v*\"\n}",
            "`git::https://x.org/y?ref=v1` cannot be the source of a module",
        ),
        (
            "module \"a\" {\n  source = \"../x\"\n  tag = \"v*\"\n}",
            "`../x` leads out of the project",
        ),
        (
            "module \"a\" {\n  source = [\"x\"]\n  tag = \"v*\"\n}",
            "`source` must be a string",
        ),
        (
            "module \"a\" {\n  source = global.x\n  tag = \"v*\"\n}",
            "`global` cannot be used in a `module` block",
        ),
        (
            "module \"a\" {\n  source = \"x/y/z\"\n  tag = \"v*\"\n  labels = [1]\n}",
            "`labels` must be a list of strings",
        ),
        (
            "module \"a\" {\n  source = \"x/y/z\"\n  tag = \"v*\"\n  lables = []\n}",
            "unknown attribute `lables` in `module`",
        ),
        (
            "module \"a\" {\n  source = \"x/y/z\"\n  tag = \"v*\"\n  x {}\n}",
            "unknown block `x` in `module`",
        ),
    ];
    for (text, message) in table {
        let expected = format!("error: {message}");
        assert_eq!(first_line("/modules.orch.hcl", text), expected, "{text}");
    }
}

#[test]
fn module_block_of_terraform_in_a_configuration_file_gets_a_hint() {
    let text = "module \"a\" {\n  source  = \"x/y/z\"\n  version = \"1.0.0\"\n}\n";
    let said = refused("/modules.orch.hcl", text);
    assert!(said.contains("calls belong in Terraform files"), "{said}");
}
