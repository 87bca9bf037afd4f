//! `orch fmt`

use std::io::Write as _;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::support::{Output, Sandbox};

const UNFORMATTED: &str = "stack {\nname=\"x\" # a name\n\tdescription = \"y\"\n}\n";

const FORMATTED: &str = "stack {\n  name        = \"x\" # a name\n  description = \"y\"\n}\n";

/// A project with files that are not formatted.
fn project() -> Sandbox {
    let sandbox = Sandbox::new("");
    for file in [
        "a/stack.tm",
        "a/b/stack.tm.hcl",
        "c/stack.orch.hcl",
        ".hidden/stack.tm",
        "skipped/stack.tm",
        "a/main.tf",
    ] {
        sandbox.write(file, UNFORMATTED);
    }
    sandbox.write("/skipped/.tmskip", "");
    sandbox.write("/d/stack.tm", FORMATTED);
    sandbox
}

/// Runs `orch` with a text as its standard input.
fn with_input(sandbox: &Sandbox, arguments: &str, text: &str) -> Output {
    let mut command = sandbox.command(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    sandbox.output(&child.wait_with_output().unwrap())
}

#[test]
fn fmt_formats_the_configuration_files_of_the_current_directory() {
    let sandbox = project();
    assert_snapshot!(sandbox.orch_in("/a", "fmt"), @"
    b/stack.tm.hcl
    stack.tm
    ");
    assert_snapshot!(sandbox.orch("fmt"), @"c/stack.orch.hcl");
    assert_snapshot!(sandbox.orch("fmt"), @"");
    for file in [
        "a/stack.tm",
        "a/b/stack.tm.hcl",
        "c/stack.orch.hcl",
        "d/stack.tm",
    ] {
        assert_eq!(sandbox.read(file), FORMATTED, "{file}");
    }
    for file in [".hidden/stack.tm", "skipped/stack.tm", "a/main.tf"] {
        assert_eq!(sandbox.read(file), UNFORMATTED, "{file}");
    }
}

#[test]
fn fmt_check_changes_nothing_and_exits_with_1() {
    let sandbox = project();
    assert_snapshot!(sandbox.orch("fmt --check"), @"
    a/b/stack.tm.hcl
    a/stack.tm
    c/stack.orch.hcl
    [exit status 1]
    ");
    assert_eq!(sandbox.read("/a/stack.tm"), UNFORMATTED);
    assert_snapshot!(sandbox.orch("fmt --check d/stack.tm"), @"");
    assert_eq!(sandbox.orch("fmt --check --detailed-exit-code").code(), 64);
}

#[test]
fn fmt_detailed_exit_code_is_2_after_changes() {
    let sandbox = project();
    assert_eq!(sandbox.orch("fmt --detailed-exit-code").code(), 2);
    assert_eq!(sandbox.read("/a/stack.tm"), FORMATTED);
    assert_eq!(sandbox.orch("fmt --detailed-exit-code").code(), 0);
}

#[test]
fn fmt_formats_named_files() {
    let sandbox = project();
    assert_snapshot!(sandbox.orch("fmt a/main.tf a/stack.tm d/stack.tm"), @"
    a/main.tf
    a/stack.tm
    ");
    assert_eq!(sandbox.read("/a/main.tf"), FORMATTED);
    let absolute = sandbox.path("/a/b/stack.tm.hcl").display().to_string();
    assert_snapshot!(sandbox.orch(&format!("fmt {absolute}")), @"a/b/stack.tm.hcl");
    assert_snapshot!(sandbox.orch("fmt none.tm c/stack.orch.hcl"), @"
    [stderr]
    error: failed to read `none.tm`
      caused by: No such file or directory (os error 2)
    [exit status 5]
    ");
    assert_eq!(sandbox.read("/c/stack.orch.hcl"), UNFORMATTED);
}

#[test]
fn fmt_reads_stdin() {
    let sandbox = Sandbox::new("");
    assert_eq!(
        with_input(&sandbox, "fmt -", UNFORMATTED).to_string(),
        FORMATTED
    );
    assert_snapshot!(with_input(&sandbox, "fmt -", ""), @"");
    assert_snapshot!(with_input(&sandbox, "fmt --check -", UNFORMATTED), @"[exit status 1]");
    assert_snapshot!(with_input(&sandbox, "fmt --check -", FORMATTED), @"");
    assert_snapshot!(with_input(&sandbox, "fmt -", "stack {\n"), @"
    [stderr]
    error: syntax error
     --> stdin:1:7
      |
    1 | stack {
      |       ^- invalid block body; expected `}`, newline or identifier
      |       |
      |       never closed
      |
      = help: add the missing `}`

    [exit status 3]
    ");
}

#[test]
fn fmt_reports_all_broken_files_and_changes_none() {
    let sandbox = project();
    sandbox.write("/a/broken.tm", "stack {\n");
    sandbox.write("/c/broken.tm", "a = = 1\n");
    assert_snapshot!(sandbox.orch("fmt"), @r#"
    [stderr]
    error: syntax error
     --> a/broken.tm:1:7
      |
    1 | stack {
      |       ^- invalid block body; expected `}`, newline or identifier
      |       |
      |       never closed
      |
      = help: add the missing `}`

    error: syntax error
     --> c/broken.tm:1:5
      |
    1 | a = = 1
      |     ^ invalid expression; expected `"`, `[`, `{`, `-`, `!`, `(`, `_`, `<`, letter or digit

    [exit status 3]
    "#);
    assert_eq!(sandbox.read("/a/stack.tm"), UNFORMATTED);
}

#[test]
fn fmt_needs_no_valid_project() {
    let sandbox = Sandbox::new("//- a/x.tm\nnonsense{\n}\n");
    assert_snapshot!(sandbox.orch("fmt"), @"a/x.tm");
    assert_eq!(sandbox.read("/a/x.tm"), "nonsense {\n}\n");
}

#[cfg(unix)]
#[test]
fn fmt_keeps_links_permissions_and_the_byte_order_mark() {
    use std::os::unix::fs::PermissionsExt as _;

    let sandbox = Sandbox::new("");
    sandbox.write_program("/a.tm", &format!("\u{feff}{UNFORMATTED}"));
    sandbox.symlink("a.tm", "/link.tm");
    assert_snapshot!(sandbox.orch("fmt link.tm"), @"link.tm");
    assert!(sandbox.path("/link.tm").is_symlink());
    assert_eq!(sandbox.read("/a.tm"), format!("\u{feff}{FORMATTED}"));
    let mode = std::fs::metadata(sandbox.path("/a.tm"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
}
