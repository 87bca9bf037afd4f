//! Files with mistakes.

use insta::assert_snapshot;

use super::{module, stack_with};
use crate::support::{changed, project, why, why_changed};

#[test]
fn inputs_warn_of_a_broken_file_and_count_the_rest() {
    let sandbox = project(
        "s t",
        &[
            ("/s/broken.tf", "module \"x\" {\n"),
            ("/s/main.tf", &module("../m")),
            ("/t/main.tf", &module("../m")),
            ("/m/x", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/m/x"), @r#"
    s  # changed: m/x, module ../m (s/main.tf:2)
    t  # changed: m/x, module ../m (t/main.tf:2)
    warning: syntax error
     --> s/broken.tf:1:12
      |
    1 | module "x" {
      |            ^- invalid block body; expected `}`, newline or identifier
      |            |
      |            never closed
      |
      = note: changes of files that it uses go unnoticed
      = help: add the missing `}`
    "#);
    assert_eq!(why(&sandbox), "");
}

#[test]
fn inputs_include_a_broken_file_that_changed() {
    let sandbox = project("s t", &[("/s/main.tf", "")]);
    sandbox.write("/s/main.tf", "locals {\n  a = = 1\n}\n");
    assert_snapshot!(why(&sandbox), @r#"
    s  # changed: s/main.tf
    warning: syntax error
     --> s/main.tf:2:7
      |
    2 |   a = = 1
      |       ^ invalid expression; expected `"`, `[`, `{`, `-`, `!`, `(`, `_`, `<`, letter or digit
      |
      = note: changes of files that it uses go unnoticed
    "#);
    let run = sandbox.orch("run -X --changed --base HEAD true");
    assert_eq!(run.code(), 0, "{run}");
    assert!(
        run.stderr
            .contains("warning: syntax error\n --> s/main.tf:2:7"),
        "{run}"
    );
    assert!(run.stderr.contains("orch: 1 succeeded"), "{run}");
}

#[test]
fn inputs_warn_of_a_broken_module_once() {
    let sandbox = project(
        "s t u",
        &[
            ("/s/main.tf", &module("../m")),
            ("/t/main.tf", &module("../m")),
            ("/u/main.tf", &(module("../u/../m") + &module("../absent"))),
            ("/m/main.tf", "module {\n"),
            ("/m/other.tf", &module("../n")),
            ("/n/x", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/n/x"), @r#"
    s  # changed: n/x, module ../m (s/main.tf:2), module ../n (m/other.tf:2)
    t  # changed: n/x, module ../m (t/main.tf:2), module ../n (m/other.tf:2)
    u  # changed: n/x, module ../u/../m (u/main.tf:2), module ../n (m/other.tf:2)
    warning: syntax error
     --> m/main.tf:1:8
      |
    1 | module {
      |        ^- invalid block body; expected `}`, newline or identifier
      |        |
      |        never closed
      |
      = note: changes of files that it uses go unnoticed
      = help: add the missing `}`

    warning: the module `../absent` does not exist
     --> u/main.tf:5:12
      |
    5 |   source = "../absent"
      |            ^^^^^^^^^^^ no such directory
      |
      = help: correct the path; changes of this module go unnoticed
    "#);
    let why = why_changed(&sandbox, "/m/main.tf");
    assert_eq!(why.matches("syntax error").count(), 1, "{why}");
    assert!(
        why.contains("s  # changed: m/main.tf, module ../m (s/main.tf:2)"),
        "{why}"
    );
}

#[test]
fn inputs_warn_of_broken_json() {
    let sandbox = project(
        "s",
        &[
            ("/s/a.tf.json", "{\n  \"locals\": {\"a\": 1,}\n}\n"),
            ("/s/b.tf.json", ""),
            ("/s/c.tf.json", "{\"a\": \""),
            ("/s/d.tf.json", "null\n"),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/x"), @r#"
    warning: syntax error
     --> s/a.tf.json:2:21
      |
    2 |   "locals": {"a": 1,}
      |                     ^ trailing comma
      |
      = note: changes of files that it uses go unnoticed

    warning: syntax error
     --> s/b.tf.json:1:1
      |
    1 |
      | ^ EOF while parsing a value
      |
      = note: changes of files that it uses go unnoticed

    warning: syntax error
     --> s/c.tf.json:1:7
      |
    1 | {"a": "
      |       ^ EOF while parsing a string
      |
      = note: changes of files that it uses go unnoticed
    "#);
}

#[test]
fn inputs_warn_of_a_broken_file_without_visible_inputs() {
    let sandbox = stack_with("locals {\n  a = {\n}\n");
    assert_snapshot!(why_changed(&sandbox, "/x"), @"
    warning: syntax error
     --> s/main.tf:1:8
      |
    1 | locals {
      |        ^ never closed
    2 |   a = {
    3 | }
      |  - invalid block body; expected `}`, newline or identifier
      |
      = note: changes of files that it uses go unnoticed
      = help: add the missing `}`
    ");
}

#[test]
fn inputs_warn_of_a_newly_broken_file_anywhere() {
    let sandbox = project("s", &[("/unused/main.tf", "")]);
    sandbox.write("/unused/main.tf", "a b c\n");
    assert_snapshot!(why(&sandbox), @"
    warning: syntax error
     --> unused/main.tf:1:6
      |
    1 | a b c
      |      ^ expected `{`
      |
      = note: changes of files that it uses go unnoticed
    ");
}

#[test]
fn inputs_put_warnings_into_json() {
    let sandbox = project(
        "s",
        &[("/s/main.tf", &module("../no")), ("/s/b.tf", "module {")],
    );
    sandbox.write("/x", "");
    let data = sandbox
        .orch("list --changed --base HEAD --format json")
        .json();
    let shown = |key: &str| -> Vec<String> {
        let all = data["diagnostics"].as_array().unwrap().iter();
        all.map(|one| format!("{} {}:{}", one[key], one["file"], one["line"]))
            .collect()
    };
    assert_eq!(
        shown("message"),
        [
            "\"syntax error\" \"s/b.tf\":1",
            "\"the module `../no` does not exist\" \"s/main.tf\":2"
        ]
    );
    assert_eq!(data["stacks"].as_array().unwrap().len(), 0);
}

#[test]
fn inputs_accept_the_full_syntax_of_terraform() {
    let sandbox = stack_with(TERRAFORM);
    assert_snapshot!(why_changed(&sandbox, "/s2/x"), @"");
    assert_eq!(changed(&sandbox, "/in/heredoc"), ["s"]);
}

const TERRAFORM: &str = r#"
# comment
// comment
/* comment
*/
resource aws_x "y" { count = 1 }
resource "a" "b" {
  for_each = { for k, v in var.x : k => v... if v != null }
  list     = [for x in var.y : upper(x) if !x.z]
  splat    = a.b.*.c[0]
  splat2   = a.b[*].c
  legacy   = a.b.0.c
  neg      = -1 - -2e5 * 1.5E-3 % 2
  cond     = (
    a.b ?
    "x" : null
  )
  call     = provider::aws::f(merge({}, var.l...)...)
  object   = { a : 1, "b-c" = 2, (var.k) = 3, d-e = 4
    "${var.x}-y" = 5,
  }
  escapes  = "$${a} %%{b} \u00e9 \U0001F600 \t\"\\"
  template = "%{ if a ~}x%{ else }y%{~ endif }%{ for a, b in c }${~ a ~}%{ endfor }"
  heredoc  = <<-EOT
    "quotes" { [ (
    ${file("${path.module}/../in/heredoc")}
    %{ for x in y ~}
    ${x}
    %{ endfor ~}
  EOT
  plain    = <<EOT
  $${x}
EOT
  index    = a["b"][0].c["${d}"]
  logic    = !a && b || c == d && e >= f
  nested   = "${a["${b}"]}"
  dynamic "x" {
    for_each = []
    content {}
  }
  multi = [
    1, # one
    2,
  ]
  f = f(
    1,
    2,
  )
}
"#;
