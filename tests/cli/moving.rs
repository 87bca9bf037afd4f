//! Projects that come from Terraform, Terragrunt and Terramate.

use insta::assert_snapshot;

use crate::support::{Output, Sandbox};

/// Runs the command of the last hint.
#[track_caller]
fn follow_hint(sandbox: &Sandbox, output: &Output) -> Output {
    let mut hints = output.stderr.lines().rev();
    let hint = hints.find_map(|line| line.split_once("help: run `orch ")?.1.split_once('`'));
    let (command, _) = hint.expect("there is a hint");
    sandbox.orch(command)
}

#[test]
fn units_of_terragrunt_can_become_stacks() {
    let sandbox = Sandbox::new("");
    for unit in [
        "/prod/app",
        "/prod/my vpc",
        "/",
        "/prod/db/.terragrunt-cache/x",
    ] {
        let text = "terraform {\n  source = \"x\"\n}\n";
        let text = if unit == "/" { "" } else { text };
        sandbox.write(&format!("{unit}/terragrunt.hcl"), text);
    }
    sandbox.write("/json/terragrunt.hcl.json", "{}");
    sandbox.write("/.hidden/unit/terragrunt.hcl", "");
    let output = sandbox.orch("list");
    assert_snapshot!(output, @r#"
    [stderr]
    note: there are no stacks in `$ROOT`
    note: 3 directories are each a Terragrunt unit that could be a stack
      = help: run `orch create --all-terragrunt` in the project root
    "#);
    assert_eq!(output.code(), 0);
    let created = follow_hint(&sandbox, &sandbox.orch("run -- true"));
    assert_snapshot!(created, @"
    created stack /prod/app
    created stack /prod/my vpc
    [stderr]
    note: left out because they have neither a `source` in a `terraform` block nor Terraform files: `/`, `/json`
    ");
    for cache in ["/prod/db/.terragrunt-cache/x", "/.hidden/unit"] {
        let stack = sandbox.path(&format!("{cache}/stack.tm.hcl"));
        assert!(!stack.exists(), "{cache}");
    }
    assert_eq!(sandbox.orch("list").stdout, "prod/app\nprod/my vpc\n");
}

#[test]
fn root_modules_of_terraform_can_become_stacks() {
    let sandbox = Sandbox::new("");
    sandbox.write("/app/main.tf", "terraform {\n  backend \"s3\" {}\n}\n");
    sandbox.write("/db/providers.tf", "provider \"aws\" {\n}\n");
    sandbox.write("/hcp/main.tf", "terraform {\n  cloud {\n  }\n}\n");
    sandbox.write("/tofu/main.tofu", "provider \"aws\" {\n}\n");
    let cache = "/app/.terragrunt-cache/x";
    sandbox.write(&format!("{cache}/main.tf"), "provider \"aws\" {\n}\n");
    sandbox.write("/modules/vpc/main.tf", "resource \"aws_vpc\" \"main\" {}\n");
    let output = sandbox.orch("list");
    assert_snapshot!(output, @r#"
    [stderr]
    note: there are no stacks in `$ROOT`
    note: 5 directories have files of Terraform; those with a `backend`, `cloud` or `provider` block could be stacks
      = help: run `orch create --all-terraform` in the project root
    "#);
    assert_eq!(follow_hint(&sandbox, &output).code(), 0);
    assert!(!sandbox.path(&format!("{cache}/stack.tm.hcl")).exists());
    assert_eq!(sandbox.orch("list").stdout, "app\ndb\nhcp\ntofu\n");
}

/// A file in the root alone is no unit.
#[test]
fn what_units_include_is_no_unit() {
    let sandbox = Sandbox::new("");
    sandbox.write("/terragrunt.hcl", "");
    assert!(!sandbox.orch("list").stderr.contains("Terragrunt"));
}

#[test]
fn a_project_with_stacks_gets_no_advice() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/b/terragrunt.hcl", "");
    assert_eq!(sandbox.orch("list").to_string(), "a\n");
    assert_snapshot!(Sandbox::new("").orch("list"), @"
    [stderr]
    note: there are no stacks in `$ROOT`
    ");
}

#[test]
fn validate_lists_blocks_that_only_terramate_uses() {
    let sandbox = Sandbox::layout("a\nb");
    sandbox.write(
        "/gen.tm",
        "generate_hcl \"x.tf\" {\n  content {\n  }\n}\ngenerate_file \"y\" {\n  content = \"\"\n}\nscript \"deploy\" {\n  job {\n    command = [\"x\"]\n  }\n}\n",
    );
    sandbox.write(
        "/a/more.tm",
        "generate_hcl \"z.tf\" {\n  content {\n  }\n}\nvendor {\n}\n",
    );
    sandbox.write(
        "/cloud.tm",
        "terramate {\n  config {\n    cloud {\n      organization = \"o\"\n    }\n  }\n}\n",
    );
    let quiet = sandbox.orch("validate");
    assert!(!quiet.stderr.contains("Terramate"), "{quiet}");
    let verbose = sandbox.orch("validate -v");
    let told = verbose.stderr.split_once("note: orch ignores");
    assert_snapshot!(told.map_or("", |(_, told)| told), @"
     blocks that only Terramate uses: 1 `cloud`, 1 `generate_file`, 2 `generate_hcl`, 1 `vendor`
      cloud.tm:3: `cloud`
      gen.tm:5: `generate_file`
      gen.tm:1: `generate_hcl`
      a/more.tm:1: `generate_hcl`
      a/more.tm:5: `vendor`
    ");
}
