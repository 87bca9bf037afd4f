//! Paths that are more than text.

use insta::assert_snapshot;

use super::{NONE, module, stack_with};
use crate::support::{changed, project, why_changed};

#[test]
fn inputs_follow_constant_paths() {
    let sandbox = project(
        "s",
        &[
            (
                "/s/main.tf",
                r#"variable "dir" {
  default = "conf"
}
locals {
  a = file("${local.dir}/a.json")
  b = file(abspath("../data/b"))
  c = file(join("/", [local.data, "c"]))
  d = file(format("%s/d-%s", local.data, var.dir))
  e = fileset(local.data, "${var.dir}/*.yaml")
}
data "archive_file" "code" {
  type       = "zip"
  source_dir = "${path.module}/../code"
}
data "local_file" "f" {
  filename = "../data/f"
}
"#,
            ),
            (
                "/s/locals.tf",
                "locals {\n  data = \"${path.module}/../data\"\n  dir  = \"${local.data}/${var.dir}\"\n}\n",
            ),
        ],
    );
    let check = |path: &str, reader: &str, line: usize| {
        let expected = format!("s  # changed: {path}, read by {reader} (s/main.tf:{line})");
        assert_eq!(why_changed(&sandbox, path), expected);
    };
    check("data/conf/a.json", "file", 5);
    check("data/b", "file", 6);
    check("data/c", "file", 7);
    check("data/d-conf", "file", 8);
    check("data/conf/e.yaml", "fileset", 9);
    check("code/deep/x.py", "archive_file", 13);
    check("data/f", "local_file", 16);
    assert_eq!(changed(&sandbox, "data/conf/e.json"), NONE);
}

#[test]
fn inputs_computed_in_a_module_are_relative_to_it() {
    let sandbox = project(
        "s",
        &[
            ("/s/main.tf", &module("../modules/m")),
            (
                "/modules/m/main.tf",
                "locals {\n  x = file(\"${dirname(path.module)}/shared/x\")\n}\n",
            ),
        ],
    );
    assert_eq!(
        why_changed(&sandbox, "modules/shared/x"),
        "s  # changed: modules/shared/x, module ../modules/m (s/main.tf:2), read by file (modules/m/main.tf:2)"
    );
}

#[test]
fn inputs_follow_a_constant_module_source() {
    let sandbox = project(
        "s",
        &[
            (
                "/s/main.tf",
                "locals {\n  m = \"../modules/m\"\n}\nmodule \"m\" {\n  source = local.m\n}\n",
            ),
            ("/modules/m/main.tf", ""),
        ],
    );
    assert_eq!(
        why_changed(&sandbox, "modules/m/main.tf"),
        "s  # changed: modules/m/main.tf, module ../modules/m (s/main.tf:5)"
    );
}

#[test]
fn inputs_with_an_unknown_path_get_a_note() {
    let sandbox =
        stack_with("locals {\n  a = file(var.a)\n  b = file(local.b)\n}\nvariable \"a\" {}\n");
    assert_eq!(why_changed(&sandbox, "data/x"), "");
    assert_snapshot!(sandbox.orch("why s").stdout, @"
    /s is selected
      at or below /

    its inputs (add --changed to see which have changed)
      /s, its own directory
      read by file (s/main.tf:2)
        its path cannot be determined, so changes of the file do not count
      read by file (s/main.tf:3)
        its path cannot be determined, so changes of the file do not count

    nothing runs before it

    nothing runs after it
    ");
    assert_snapshot!(sandbox.orch("validate"), @"
    [stderr]
    note: read by file (s/main.tf:2): its path cannot be determined, so changes of the file do not count
    note: read by file (s/main.tf:3): its path cannot be determined, so changes of the file do not count
    note: no problems found: 1 stack, 2 configuration files
    ");
    let story = sandbox.orch("why s --format json").json();
    assert_eq!(story["unknown_paths"][0]["line"], 2, "{story}");
}

#[test]
fn inputs_keep_digests_without_newer_rules() {
    let state = "orch {\n  config {\n    state {\n      project = \"p\"\n    }\n  }\n}\n";
    let literal = "locals {\n  x = file(\"../data/x\")\n}\n";
    let computed = "locals {\n  d = \"../data\"\n  x = file(\"${local.d}/x\")\n}\n";
    let files = [
        ("/root.orch.hcl", state),
        ("/literal/main.tf", literal),
        ("/computed/main.tf", computed),
        ("/data/x", ""),
    ];
    let sandbox = project("literal computed", &files);
    for command in ["state init", "state adopt --no-verify"] {
        let done = sandbox.orch(command);
        assert_eq!(done.code(), 0, "{done}");
    }
    let shown = sandbox.orch("state show --format json").json();
    let version = |stack: &str| {
        let rules = &shown["document"]["stacks"][stack]["applied"]["inputs"]["rules"];
        rules
            .as_str()
            .unwrap()
            .split_once(':')
            .unwrap()
            .0
            .to_owned()
    };
    assert_eq!(version("/literal"), "2");
    assert_eq!(version("/computed"), "3");
}
