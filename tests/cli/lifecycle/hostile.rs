//! Messages about rules and blocks, where the values in them are made to mislead whoever reads them.

use std::path::PathBuf;

use walkdir::WalkDir;

use crate::removals::{done, prepared, world};
use crate::support::{Repository, Sandbox};

/// What is written between the quotes, and what a message says instead of it.
const CONTROL: [&str; 2] = ["a\\u001b[31mb\\u0007", "a\\u{1b}[31mb\\u{7}"];
const RAW: [&str; 2] = ["a\u{1b}[31mb", "a\\u{1b}[31mb"];
const BIDI: [&str; 2] = ["a\u{202e}b\u{2066}", "a\\u{202e}b\\u{2066}"];

/// Returns what `orch` says of a stack with these lines, and of these blocks beside it.
fn said(lines: &str, blocks: &str) -> String {
    let sandbox = Sandbox::new("");
    let block = format!("stack {{\n{lines}}}\n{blocks}");
    sandbox.write("/a/stack.orch.hcl", block);
    let output = sandbox.orch("validate");
    assert_eq!(output.code(), 3, "{output}");
    assert_clean(&output.stderr);
    output.stderr
}

/// Nothing reaches the terminal that moves its cursor, colours text or turns it round.
#[track_caller]
fn assert_clean(text: &str) {
    let is_bad = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(is_bad), "{text:?}");
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest < Some(300), "{text}");
}

fn rule(line: &str) -> String {
    format!("  lifecycle {{\n    {line}\n  }}\n")
}

#[test]
fn rules_escape_and_cut_invalid_values() {
    let long = "x".repeat(5000);
    for written in [CONTROL[0], RAW[0], BIDI[0], &long, "../../x"] {
        for name in ["prevent_destroy", "create_before_destroy"] {
            let said = said(&rule(&format!("{name} = \"{written}\"")), "");
            let column = "    ".len() + name.len() + " = ".len() + 1;
            let first = format!(
                "error: `{name}` must be `true` or `false`\n --> a/stack.orch.hcl:3:{column}\n"
            );
            assert!(said.starts_with(&first), "{said}");
            assert!(said.ends_with(" this is a string\n\n"), "{said}");
        }
    }
}

#[test]
fn rules_escape_invalid_globs() {
    for [written, shown] in [CONTROL, RAW] {
        let said = said(&rule(&format!("ignore_changes = [\"{written}\"]")), "");
        let first = format!(
            "error: `{shown}` in `ignore_changes` names no files\n --> a/stack.orch.hcl:3:23\n"
        );
        assert!(said.starts_with(&first), "{said}");
        assert!(said.contains("unclosed character class"), "{said}");
    }
    insta::assert_snapshot!(said(&rule("ignore_changes = [\"../../x\"]"), ""), @r#"
    error: `../../x` in `ignore_changes` names no files
     --> a/stack.orch.hcl:3:23
      |
    3 |     ignore_changes = ["../../x"]
      |                       ^^^^^^^^^ leads out of the project
      |
      = help: a leading `/` is the project root
    "#);
}

#[test]
fn rules_escape_paths_of_blocks() {
    for [written, shown] in [CONTROL, RAW, BIDI] {
        let moved =
            |to: &str| format!("moved {{\n  from = \"/{written}\"\n  to   = \"{to}\"\n}}\n");
        let twice = said("", &(moved("/x") + &moved("/y")));
        let first = format!(
            "error: two `moved` blocks have `from = \"/{shown}\"`\n --> a/stack.orch.hcl:8:10\n"
        );
        assert!(twice.starts_with(&first), "{twice}");
        let nowhere = said("", &moved(&format!("/{written}")));
        let first = format!("error: `/{shown}` is moved to itself\n");
        assert!(nowhere.starts_with(&first), "{nowhere}");
        let removed = format!("removed {{\n  from = \"/{written}\"\n}}\n");
        let twice = said("", &removed.repeat(2));
        let first = format!("error: `/{shown}` is removed twice\n");
        assert!(twice.starts_with(&first), "{twice}");
    }
    let long = "x".repeat(5000);
    for (block, rest) in [("moved", "  to   = \"/b\"\n"), ("removed", "")] {
        let from = |path: &str| said("", &format!("{block} {{\n  from = \"{path}\"\n{rest}}}\n"));
        let outside = from("../../x");
        let first = "error: `../../x` leads out of the project\n --> a/stack.orch.hcl:4:10\n";
        assert!(outside.starts_with(first), "{outside}");
        let first = "error: `from` is longer than any path: it has 5000 bytes\n";
        let too_long = from(&long);
        assert!(too_long.starts_with(first), "{too_long}");
        let first = "error: `from` has a NUL character\n";
        let nul = from("/a\\u0000");
        assert!(nul.starts_with(first), "{nul}");
    }
}

/// A project with a stack of which nothing holds: this message says so.
fn failing(message: &str, condition: &str) -> Repository {
    let sandbox = prepared(&[]);
    let rules = format!(
        "precondition {{\n      condition     = {condition}\n      error_message = \"{message}\"\n    }}"
    );
    sandbox.write(
        "/a/stack.orch.hcl",
        format!("stack {{\n{}}}\n", rule(&rules)),
    );
    let repository = Repository::of(sandbox);
    done(&repository, "state init");
    repository
}

#[test]
fn conditions_escape_their_messages() {
    for [written, shown] in [CONTROL, RAW, BIDI] {
        let output = failing(written, "false").orch("plan");
        assert_eq!(output.code(), 1, "{output}");
        assert_clean(&output.stderr);
        let first = format!("error: precondition of `/a` failed: {shown}\n");
        assert!(output.stderr.contains(&first), "{output}");
    }
}

#[test]
fn conditions_leak_no_variables() {
    let secret = "hunter2-of-the-environment";
    for (condition, holds) in [("env.TOKEN == null", false), ("env.TOKEN != null", true)] {
        let repository = failing("the token is ${env.TOKEN}", condition);
        repository.write("/a/want", "1");
        repository.write(
            "/a/more.orch.hcl",
            "orch {\n  config {\n    run {\n      env {\n        COPY = \"copy of ${env.TOKEN}\"\n      }\n    }\n    lifecycle {\n      ignore_changes = [env.COPY]\n    }\n  }\n}\n",
        );
        repository.write("/.gitignore", "made.plan\n.orch\n");
        repository.commit();
        for (arguments, checks) in [
            ("plan", true),
            ("plan --format json", true),
            ("plan --format markdown", true),
            ("plan -o made.plan", true),
            ("apply --auto-approve", true),
            ("why a", false),
            ("why a --format json", false),
            ("list --format json", false),
        ] {
            let output = repository.orch_with(arguments, |command| {
                command.env("TOKEN", secret);
            });
            let text = output.to_string();
            assert!(!text.contains(secret), "{arguments}: {text}");
            let expected = i32::from(checks && !holds);
            assert_eq!(output.code(), expected, "{arguments}: {text}");
            if arguments == "plan" && !holds {
                assert!(output.stderr.contains("this is (sensitive)"), "{text}");
            }
        }
        assert_eq!(repository.path("/made.plan").exists(), holds);
        assert_eq!(world(&repository).len(), usize::from(holds));
        assert_nowhere(&repository, secret);
    }
}

/// No file of a project contains a text.
fn assert_nowhere(repository: &Repository, text: &str) {
    let files = WalkDir::new(repository.path("/")).into_iter();
    let files = files
        .map(Result::unwrap)
        .filter(|it| it.file_type().is_file());
    let kept: Vec<PathBuf> = files.map(walkdir::DirEntry::into_path).collect();
    assert!(kept.len() > 5, "{kept:?}");
    for file in kept {
        let bytes = std::fs::read(&file).unwrap();
        let mut windows = bytes.windows(text.len());
        let is_there = windows.any(|it| it == text.as_bytes());
        assert!(!is_there, "{}", file.display());
    }
}
