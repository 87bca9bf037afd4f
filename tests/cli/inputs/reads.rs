//! Files that functions read.

use std::fs;

use insta::assert_snapshot;

use super::{NONE, module, stack_with};
#[cfg(unix)]
use crate::support::commit;
use crate::support::{changed, project, why, why_changed};

#[test]
fn inputs_include_the_files_of_every_reading_function() {
    for function in [
        "file",
        "filebase64",
        "filebase64sha256",
        "filebase64sha512",
        "fileexists",
        "filemd5",
        "filesha1",
        "filesha256",
        "filesha512",
        "templatefile",
        "core::file",
    ] {
        let sandbox = stack_with(&format!(
            "locals {{\n  x = {function}(\"${{path.module}}/../data/x\", {{}})\n}}\n"
        ));
        let function = function.trim_start_matches("core::");
        assert_eq!(
            why_changed(&sandbox, "/data/x"),
            format!("s  # changed: data/x, read by {function} (s/main.tf:2)")
        );
        assert_eq!(changed(&sandbox, "/data/x2"), NONE);
    }
}

#[test]
fn inputs_resolve_path_module_root_and_cwd() {
    let module_text = "locals {
  module = file(\"${path.module}/../data/module\")
  root   = file(\"${path.root}/../data/root\")
  cwd    = file(\"${path.cwd}/../data/cwd\")
  plain  = file(\"../data/plain\")
}\n";
    let sandbox = project(
        "a/s b/s",
        &[
            ("/a/s/main.tf", &module("../../modules/m")),
            ("/b/s/main.tf", &module("../../modules/m")),
            ("/modules/m/main.tf", module_text),
        ],
    );
    assert_eq!(changed(&sandbox, "/modules/data/module"), ["a/s", "b/s"]);
    for name in ["root", "cwd", "plain"] {
        assert_eq!(
            changed(&sandbox, &format!("/a/data/{name}")),
            ["a/s"],
            "{name}"
        );
        assert_eq!(
            changed(&sandbox, &format!("/modules/data/{name}")),
            NONE,
            "{name}"
        );
    }
    assert_snapshot!(why_changed(&sandbox, "/b/data/root"), @"b/s  # changed: b/data/root, module ../../modules/m (b/s/main.tf:2), read by file (modules/m/main.tf:3)");
}

#[test]
fn inputs_include_reads_anywhere_in_a_file() {
    let sandbox = stack_with(
        r#"
locals {
  template    = "a ${file("../data/template")} b"
  nested      = jsondecode(file("../data/nested"))
  for         = [for x in [1] : file("../data/for") if fileexists("../data/if")]
  object      = { for k in [1] : file("../data/key") => file("../data/value") }
  conditional = true ? file("../data/then") : file("../data/else")
  index       = jsondecode(file("../data/index"))["${file("../data/in-index")}"].x
  argument    = templatefile("../data/t.tpl", { x = file("../data/argument") })
  parens      = !(file("../data/parens") == "")
  inner       = file("../data/${"inner"}")
  heredoc     = <<-EOT
    %{ if fileexists("../data/directive") }${file("../data/heredoc")}%{ endif }
  EOT
}
resource "x" "y" {
  deep {
    deeper {
      x = file("../data/deep")
    }
  }
}
"#,
    );
    for name in [
        "template",
        "nested",
        "for",
        "if",
        "key",
        "value",
        "then",
        "else",
        "index",
        "in-index",
        "t.tpl",
        "argument",
        "parens",
        "inner",
        "directive",
        "heredoc",
        "deep",
    ] {
        assert_eq!(changed(&sandbox, &format!("/data/{name}")), ["s"], "{name}");
    }
}

#[test]
fn inputs_of_a_fileset_include_added_and_deleted_files() {
    let sandbox = project(
        "s t u",
        &[
            (
                "/s/main.tf",
                "locals {\n  x = fileset(\"${path.module}/../data\", \"**/*.json\")\n}\n",
            ),
            (
                "/t/main.tf",
                "locals {\n  x = fileset(\"../data\", \"*.{json,yml}\")\n}\n",
            ),
            (
                "/u/main.tf",
                "locals {\n  x = fileset(path.module, \"../data/?.yml\")\n}\n",
            ),
            ("/data/a.json", ""),
            ("/data/deep/er/b.json", ""),
            ("/data/c.yml", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/data/a.json"), @"
    s  # changed: data/a.json, read by fileset (s/main.tf:2)
    t  # changed: data/a.json, read by fileset (t/main.tf:2)
    ");
    assert_eq!(changed(&sandbox, "/data/deep/er/b.json"), ["s"]);
    assert_eq!(changed(&sandbox, "/data/c.yml"), ["t", "u"]);
    assert_eq!(changed(&sandbox, "/data/.new.json"), ["s", "t"]);
    assert_eq!(changed(&sandbox, "/data/x.txt"), NONE);
    fs::remove_file(sandbox.path("/data/a.json")).unwrap();
    assert_eq!(why(&sandbox).lines().count(), 2);
}

#[test]
fn inputs_skip_computed_and_absolute_paths() {
    let sandbox = stack_with(
        r#"
locals {
  a = file(var.x)
  b = file("${var.x}/data")
  c = file("/etc/hostname")
  d = file("~/.ssh/id_rsa.pub")
  f = file()
  g = file("")
  h = fileset("..")
  j = fileset("..", "[")
  k = profile("../data")
  l = "file(\"../data\")"
  m = fileset("..", "../../*")
}
"#,
    );
    assert_snapshot!(why_changed(&sandbox, "/data"), @"");
}

#[test]
fn inputs_at_paths_with_a_known_beginning_count_with_their_directory() {
    let sandbox = stack_with(
        r#"
locals {
  conf = "${path.module}/../conf/${each.key}"
  a    = file("${local.conf}/${var.x.y}.json")
  b    = templatefile("../tpl/${each.value}", {})
  c    = fileset("../set", var.x.y)
  d    = file("${path.module}/own/${each.key}")
  e    = file("../a[b]/${each.key}/[x]")
  f    = fileset("../sets/${var.x.y}/z", "*.json")
}
data "archive_file" "g" {
  source_dir = "../code/${var.x.y}/src"
}
"#,
    );
    let counts = |path: &str| why_changed(&sandbox, path);
    assert_eq!(
        counts("/conf/p/q.json"),
        "s  # changed: conf/p/q.json, read by file (s/main.tf:4)"
    );
    assert_eq!(counts("/conf/p/q.yaml"), "");
    assert_eq!(
        counts("/tpl/below/x"),
        "s  # changed: tpl/below/x, read by templatefile (s/main.tf:5)"
    );
    assert_eq!(
        counts("/set/x"),
        "s  # changed: set/x, read by fileset (s/main.tf:6)"
    );
    let why = sandbox.orch("why s").stdout;
    let reads = why.lines().filter(|line| line.contains("read by"));
    let reads: Vec<&str> = reads.map(str::trim).collect();
    assert_eq!(
        reads,
        [
            "/conf/**/*.json, read by file (s/main.tf:4)",
            "/tpl/**, read by templatefile (s/main.tf:5)",
            "/set/**, read by fileset (s/main.tf:6)",
            "/a[b]/**, read by file (s/main.tf:8)",
            "/sets/**, read by fileset (s/main.tf:9)",
            "/code/**, read by archive_file (s/main.tf:12)",
        ]
    );
    assert!(!why.contains("cannot be determined"), "{why}");
}

#[test]
fn inputs_outside_of_the_project_get_one_warning() {
    let reads = "locals {\n  a = file(\"../../outside\")\n  \
                 b = fileset(\"${path.module}/../..\", \"*\")\n  c = file(\"/x\")\n}\n";
    let json = r#"{"locals": {"a": "${file(\"${path.module}/../../outside\")}"}}"#;
    let sandbox = project(
        "s t deep/u",
        &[
            ("/s/main.tf", &module("../m")),
            ("/t/main.tf", &module("../m")),
            ("/deep/u/main.tf", &module("../../m")),
            ("/m/main.tf", reads),
            ("/m/x.tf.json", json),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/x"), @r#"
    warning: the path `../../outside` leads out of the project
     --> m/main.tf:2:7
      |
    2 |   a = file("../../outside")
      |       ^^^^ reads a file outside of the project
      |
      = note: changes there go unnoticed

    warning: the path `./../..` leads out of the project
     --> m/main.tf:3:7
      |
    3 |   b = fileset("${path.module}/../..", "*")
      |       ^^^^^^^ reads a file outside of the project
      |
      = note: changes there go unnoticed

    warning: the path `./../../outside`, which `m/x.tf.json` reads, leads out of the project
      = note: changes there go unnoticed
    "#);
}

#[test]
fn inputs_include_a_deleted_file() {
    let sandbox = project(
        "s",
        &[
            ("/s/main.tf", "locals {\n  x = file(\"../data/x\")\n}\n"),
            ("/data/x", ""),
        ],
    );
    fs::remove_dir_all(sandbox.path("/data")).unwrap();
    assert_snapshot!(why(&sandbox), @"s  # changed: data/x (uncommitted, deleted), read by file (s/main.tf:2)");
}

#[cfg(unix)]
#[test]
fn inputs_include_files_behind_links() {
    let sandbox = project(
        "s",
        &[
            (
                "/s/main.tf",
                "locals {\n  x = file(\"../a/x\")\n  y = fileset(\"../a\", \"*.json\")\n}\n",
            ),
            ("/c/x", ""),
        ],
    );
    sandbox.symlink("b", "/a");
    sandbox.symlink("c", "/b");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/c/x"), @"s  # changed: c/x, read by file (s/main.tf:2), target of the link a, target of the link b");
    assert_snapshot!(why_changed(&sandbox, "/c/new.json"), @"s  # changed: c/new.json, read by fileset (s/main.tf:3), target of the link a, target of the link b");
    assert_eq!(changed(&sandbox, "/c/y"), NONE);
    fs::remove_file(sandbox.path("/b")).unwrap();
    sandbox.symlink("d", "/b");
    assert_snapshot!(why(&sandbox), @"s  # changed: b, read by file (s/main.tf:2), target of the link a");
}

#[test]
fn inputs_include_reads_of_json_files() {
    let sandbox = project(
        "s",
        &[(
            "/s/main.tf.json",
            r#"{"locals": {"a": ["x ${file(\"${path.module}/../data/a\")}"], "b": "file(\"../data/b\")",
               "c": "%{ if fileexists(\"../data/c\") }x%{ endif }"}}"#,
        )],
    );
    assert_snapshot!(why_changed(&sandbox, "/data/a"), @"s  # changed: data/a, read by file (s/main.tf.json)");
    assert_eq!(changed(&sandbox, "/data/b"), NONE);
    assert_eq!(changed(&sandbox, "/data/c"), ["s"]);
}
