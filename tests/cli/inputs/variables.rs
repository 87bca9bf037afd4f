//! Paths that depend on variables of Terraform.

use insta::assert_snapshot;

use super::NONE;
use crate::support::{Sandbox, changed, commit, project, why, why_changed};

/// A module that reads the file named by a variable.
const READER: &str = r#"variable "name" {
  default = "default"
}
locals {
  x = file("${path.module}/../data/${var.name}")
}
"#;

/// Returns the places of reads whose paths cannot be determined, according to `validate`.
fn unknown(sandbox: &Sandbox) -> Vec<String> {
    let output = sandbox.orch("validate");
    assert_eq!(output.code(), 0, "{output}");
    let place = |line: &str| {
        let (place, rest) = line.strip_prefix("note: read by file (")?.split_once(')')?;
        rest.contains("cannot be determined")
            .then(|| place.to_owned())
    };
    output.stderr.lines().filter_map(place).collect()
}

fn call(arguments: &str) -> String {
    format!("module \"m\" {{\n  source = \"../reader\"\n  {arguments}\n}}\n")
}

#[test]
fn inputs_follow_variables_of_tfvars_files() {
    let sandbox = project("s", &[("/s/main.tf", READER)]);
    assert_eq!(changed(&sandbox, "data/default"), ["s"]);
    // No other file is loaded automatically.
    sandbox.write("/s/prod.tfvars", "name = \"by hand\"\n");
    commit(&sandbox);
    assert_eq!(changed(&sandbox, "data/default"), ["s"]);
    assert_eq!(changed(&sandbox, "data/by hand"), ["s"]);
    let files = [
        ("terraform.tfvars", "name = \"main\"\n"),
        ("terraform.tfvars.json", r#"{"name": "json"}"#),
        ("a.auto.tfvars", "name = \"auto\"\n"),
        ("b.auto.tfvars.json", r#"{"name": "later"}"#),
    ];
    let mut earlier = "default";
    for (file, text) in files {
        sandbox.write(&format!("/s/{file}"), text);
        commit(&sandbox);
        let name = ["main", "json", "auto", "later"]
            .into_iter()
            .find(|name| text.contains(name))
            .unwrap();
        assert_eq!(changed(&sandbox, &format!("data/{name}")), ["s"], "{file}");
        assert_eq!(
            changed(&sandbox, &format!("data/{earlier}")),
            NONE,
            "{file}"
        );
        assert_eq!(changed(&sandbox, "data/by hand"), ["s"]);
        earlier = name;
    }
    assert_eq!(
        why_changed(&sandbox, "data/later"),
        "s  # changed: data/later, read by file (s/main.tf:5)"
    );
}

#[test]
fn inputs_follow_variables_of_run_env() {
    let sandbox = project("s t", &[("/s/main.tf", READER), ("/t/main.tf", READER)]);
    let env = |value: &str| {
        let text = format!(
            "orch {{\n  config {{\n    run {{\n      env {{\n        TF_VAR_name = {value}\n      }}\n    }}\n  }}\n}}\n"
        );
        sandbox.write("/s/env.orch.hcl", text);
        commit(&sandbox);
    };
    env("orch.stack.name");
    assert_eq!(changed(&sandbox, "data/s"), ["s"]);
    // Somebody may run the tool without `orch`.
    assert_eq!(changed(&sandbox, "data/default"), ["s", "t"]);
    assert_eq!(changed(&sandbox, "data/other"), NONE);
    env("tm_try(env.NAME, \"none\")");
    assert_eq!(changed(&sandbox, "data/none"), ["s"]);
    assert_eq!(changed(&sandbox, "data/other"), ["s"]);
}

#[test]
fn inputs_follow_variables_of_callers() {
    let middle = "variable \"it\" {}\nmodule \"m\" {\n  source = \"../reader\"\n  name = \"${var.it}-passed\"\n}\n";
    let files = [
        ("/reader/main.tf", READER),
        ("/middle/main.tf", middle),
        ("/a/main.tf", &call("name = \"a\"")),
        ("/b/main.tf", &call("name = local.b")),
        ("/b/locals.tf", "locals {\n  b = \"b\"\n}\n"),
        ("/c/main.tf", &call("")),
        (
            "/d/main.tf",
            "variable \"v\" {}\nmodule \"m\" {\n  source = \"../middle\"\n  it = var.v\n}\n",
        ),
        ("/d/terraform.tfvars", "v = \"d\"\n"),
        (
            "/e/main.tf.json",
            r#"{"module": {"m": {"source": "../reader", "name": "e"}}}"#,
        ),
        ("/f/main.tf", &call("name = null")),
        (
            "/reader/more_override.tf",
            "variable \"name\" {\n  nullable = false\n}\n",
        ),
    ];
    let sandbox = project("a b c d e f", &files);
    assert_eq!(changed(&sandbox, "data/default"), ["c", "f"]);
    for stack in ["a", "b", "e"] {
        assert_eq!(changed(&sandbox, &format!("data/{stack}")), [stack]);
    }
    assert_eq!(
        why_changed(&sandbox, "data/d-passed"),
        "d  # changed: data/d-passed, module ../middle (d/main.tf:3), module ../reader (middle/main.tf:3), \
         read by file (reader/main.tf:5)"
    );
    assert_eq!(unknown(&sandbox), NONE);
}

#[test]
fn inputs_passed_to_a_module_are_relative_to_the_caller() {
    let reader = "variable \"dir\" {}\nlocals {\n  x = fileset(var.dir, \"*.json\")\n  y = file(\"${dirname(var.dir)}/y\")\n}\n";
    let call =
        |dir: &str| format!("module \"m\" {{\n  source = \"../mods/m\"\n  dir = {dir}\n}}\n");
    let files = [
        ("/mods/m/main.tf", reader),
        ("/a/main.tf", &call("\"${path.module}/conf\"")),
        ("/b/main.tf", &call("\"conf\"")),
        ("/c/main.tf", &call("path.module")),
    ];
    let sandbox = project("a b c", &files);
    assert_eq!(changed(&sandbox, "mods/conf/x.json"), NONE);
    let inputs = |stack: &str| {
        let output = sandbox.orch(&format!("why {stack}")).stdout;
        let reads = output.lines().filter(|line| line.contains("read by"));
        let places = reads.filter_map(|line| line.trim().split(',').next());
        places.map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(inputs("a"), ["/a/conf/*.json", "/a/y"]);
    assert_eq!(inputs("b"), ["/b/conf/*.json", "/b/y"]);
    assert_eq!(inputs("c"), ["/c/*.json", "/y"]);
}

#[test]
fn inputs_of_all_calls_of_one_module_count() {
    let calls = ["x", "y"].map(|name| {
        format!("module \"{name}\" {{\n  source = \"../reader\"\n  name = \"{name}\"\n}}\n")
    });
    let files = [("/reader/main.tf", READER), ("/s/main.tf", &calls.concat())];
    let sandbox = project("s", &files);
    assert_eq!(changed(&sandbox, "data/x"), ["s"]);
    assert_eq!(changed(&sandbox, "data/y"), ["s"]);
    assert_eq!(changed(&sandbox, "data/default"), NONE);
}

#[test]
fn inputs_with_an_argument_that_is_not_constant_count_with_their_directory() {
    let text = "resource \"x\" \"y\" {}\nmodule \"m\" {\n  source = \"../reader\"\n  name = x.y.id\n}\nmodule \"n\" {\n  source = \"../reader\"\n  name = \"known\"\n}\n";
    let sandbox = project("s", &[("/reader/main.tf", READER), ("/s/main.tf", text)]);
    assert_eq!(changed(&sandbox, "data/known"), ["s"]);
    assert_eq!(
        why_changed(&sandbox, "data/below/other"),
        "s  # changed: data/below/other, module ../reader (s/main.tf:3), read by file (reader/main.tf:5)"
    );
}

#[test]
fn inputs_with_a_broken_tfvars_file_count_with_their_directory() {
    let files = [("/s/main.tf", READER), ("/s/terraform.tfvars", "name = \n")];
    let sandbox = project("s", &files);
    assert_eq!(changed(&sandbox, "data/other"), ["s"]);
}

#[test]
fn inputs_follow_inputs_of_terragrunt() {
    let unit = |inputs: &str| format!("terraform {{\n  source = \"../reader\"\n}}\n{inputs}\n");
    let files = [
        ("/reader/main.tf", READER),
        (
            "/a/terragrunt.hcl",
            &unit("locals {\n  name = \"a\"\n}\ninputs = {\n  name = local.name\n}"),
        ),
        ("/b/terragrunt.hcl", &unit("inputs = merge({}, {})")),
        ("/c/terragrunt.hcl", &unit("")),
        ("/c/terraform.tfvars", "name = \"c\"\n"),
    ];
    let sandbox = project("a b c", &files);
    assert_eq!(changed(&sandbox, "data/a"), ["a", "b"]);
    assert_eq!(changed(&sandbox, "data/default"), ["a", "b"]);
    assert_eq!(changed(&sandbox, "data/c"), ["b", "c"]);
}

#[test]
fn inputs_at_a_module_source_that_a_caller_sets_are_warned_of() {
    let files = [
        (
            "/m/main.tf",
            "variable \"dir\" {\n  default = \"x\"\n}\nmodule \"m\" {\n  source = \"../${var.dir}\"\n}\n",
        ),
        ("/x/main.tf", ""),
        ("/y/main.tf", ""),
        ("/a/main.tf", "module \"m\" {\n  source = \"../m\"\n}\n"),
    ];
    let sandbox = project("a", &files);
    assert_eq!(changed(&sandbox, "x/main.tf"), ["a"]);
    assert_eq!(why(&sandbox), "");
    sandbox.write(
        "/a/main.tf",
        "module \"m\" {\n  source = \"../m\"\n  dir = \"y\"\n}\n",
    );
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "y/main.tf"), @r#"
    warning: the source of module `m` cannot be determined
     --> m/main.tf:5:12
      |
    5 |   source = "../${var.dir}"
      |            ^^^^^^^^^^^^^^^ not a constant path
      |
      = note: changes of it go unnoticed
    "#);
}

#[test]
fn inputs_follow_a_module_source_of_tfvars_files() {
    let files = [
        (
            "/s/main.tf",
            "variable \"dir\" {\n  default = \"x\"\n}\nmodule \"m\" {\n  source = \"../${var.dir}\"\n}\n",
        ),
        ("/s/terraform.tfvars", "dir = \"y\"\n"),
        ("/x/main.tf", ""),
        ("/y/main.tf", ""),
    ];
    let sandbox = project("s", &files);
    assert_eq!(changed(&sandbox, "x/main.tf"), NONE);
    assert_eq!(changed(&sandbox, "y/main.tf"), ["s"]);
}

/// The version of the digest rules by which a stack was recorded.
fn version(sandbox: &Sandbox, stack: &str) -> String {
    let shown = sandbox.orch("state show --format json").json();
    let rules = &shown["document"]["stacks"][stack]["applied"]["inputs"]["rules"];
    let rules = rules.as_str().unwrap();
    rules.split(':').next().unwrap().to_owned()
}

#[test]
fn digests_have_the_files_that_variables_name() {
    let state = "orch {\n  config {\n    state {\n      project = \"p\"\n    }\n  }\n}\n";
    let files = [
        ("/root.orch.hcl", state),
        ("/reader/main.tf", READER),
        ("/a/main.tf", &call("name = \"a\"")),
        ("/b/main.tf", READER),
        ("/b/terraform.tfvars", "name = \"b\"\n"),
        // Nothing is followed, so its digest is that of earlier versions.
        (
            "/c/main.tf",
            "variable \"n\" {}\nlocals {\n  x = file(var.n)\n}\n",
        ),
    ];
    let sandbox = project("a b c", &files);
    for command in ["state init", "state adopt --no-verify"] {
        let done = sandbox.orch(command);
        assert_eq!(done.code(), 0, "{done}");
    }
    assert_eq!(version(&sandbox, "/a"), "4");
    assert_eq!(version(&sandbox, "/b"), "4");
    assert_eq!(version(&sandbox, "/c"), "2");
    let pending = || sandbox.orch("list --changed --base applied").stdout;
    assert_eq!(pending(), "");
    for stack in ["a", "b"] {
        sandbox.write(&format!("/data/{stack}"), "changed\n");
        assert_eq!(pending(), format!("{stack}\n"));
        std::fs::remove_file(sandbox.path(&format!("/data/{stack}"))).unwrap();
    }
    sandbox.write("/data/default", "changed\n");
    assert_eq!(pending(), "");
}
