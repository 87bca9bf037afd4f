use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::diagnostic::{RenderStyle, render};
use crate::path::ProjectPath;
use crate::project::Problems;
use crate::source::{SourceFile, Sources};

/// Returns the content of a text, or its problems.
fn parsed(text: &str) -> String {
    match parse(text) {
        Ok(Statement { kind, reason, .. }) => format!("{}: {reason}", kind.keyword()),
        Err(problems) => {
            let path = ProjectPath::root().join("t.tm.hcl");
            let text = text.to_owned();
            let (mut all, mut sources) = (Problems::default(), Sources::default());
            all.add_file(SourceFile { path, text }, problems);
            all.settle(&mut sources);
            let draw = |problem| render(problem, &sources, RenderStyle::Plain);
            all.diagnostics.iter().map(draw).collect()
        }
    }
}

fn block(attributes: &str) -> String {
    parsed(&format!("trigger {{\n{attributes}\n}}\n"))
}

#[test]
fn both_kinds_are_understood() {
    let with = |kind: &str| block(&format!("ctime = 1\nreason = \"r\"\n{kind}"));
    assert_eq!(with("type = changed\ncontext = stack"), "changed: r");
    assert_eq!(with("type = ignore-change"), "ignore-change: r");
    assert_eq!(with(""), "changed: r");
    let old =
        "// written by hand\r\ntrigger {\r\n reason = \"${1 + 1} things\"\r\n ctime = 1.5\r\n}";
    assert_eq!(parsed(old), "changed: 2 things");
}

#[test]
fn a_file_has_one_block_and_nothing_else() {
    assert_snapshot!(parsed(""), @"
    error: a trigger file has a `trigger` block
     --> t.tm.hcl:1:1
      |
    1 |
      | ^ there is none here
      |
      = help: delete the file, or write it with `orch trigger`
    ");
    assert_snapshot!(parsed("triger {\n}\n"), @"
    error: unknown block `triger`
     --> t.tm.hcl:1:1
      |
    1 | triger {
      | ^^^^^^ not a block of a trigger file
      |
      = help: did you mean `trigger`?
    ");
    assert_snapshot!(parsed("ctime = 1\n"), @"
    error: attribute `ctime` outside of any block
     --> t.tm.hcl:1:1
      |
    1 | ctime = 1
      | ^^^^^ not in a `trigger` block
      |
      = help: move it into the block: `trigger { … }`
    ");
    let twice = "trigger {\n  ctime = 1\n  reason = \"a\"\n}\n".repeat(2);
    assert_snapshot!(parsed(&twice), @"
    error: a trigger file has one `trigger` block
     --> t.tm.hcl:5:1
      |
    1 | trigger {
      | ------- first block
    ...
    5 | trigger {
      | ^^^^^^^ another block
      |
      = help: give each a file of its own
    ");
}

#[test]
fn what_a_block_needs_is_named() {
    assert_snapshot!(block(""), @r#"
    error: a `trigger` block needs `reason`
     --> t.tm.hcl:1:1
      |
    1 | trigger {
      | ^^^^^^^ missing in this block
      |
      = help: write `reason = "…"`
    error: a `trigger` block needs `ctime`
     --> t.tm.hcl:1:1
      |
    1 | trigger {
      | ^^^^^^^ missing in this block
      |
      = help: write when, in seconds: `ctime = 1700000000`
    "#);
}

#[test]
fn what_does_not_belong_into_a_block_is_named() {
    let text = "trigger \"a\" {\n  ctime = 1\n  reason = \"r\"\n  reson = 1\n  stack {\n  }\n}\n";
    assert_snapshot!(parsed(text), @r#"
    error: a `trigger` block has no labels
     --> t.tm.hcl:1:9
      |
    1 | trigger "a" {
      |         ^^^ unexpected label
      |
      = help: remove the label
    error: unknown block `stack` in `trigger`
     --> t.tm.hcl:5:3
      |
    1 | trigger "a" {
      | ------- in this block
    ...
    5 |   stack {
      |   ^^^^^ a `trigger` block has no nested blocks
      |
      = help: attributes are: ctime, reason, type, context, key
    error: unknown attribute `reson` in `trigger`
     --> t.tm.hcl:4:3
      |
    1 | trigger "a" {
      | ------- in this block
    ...
    4 |   reson = 1
      |   ^^^^^ not an attribute of `trigger`
      |
      = help: did you mean `reason`?
    "#);
}

#[test]
fn types_are_checked() {
    assert_snapshot!(block("  ctime = \"1\"\n  reason = [\"r\"]"), @r#"
    error: `reason` must be a string
     --> t.tm.hcl:3:12
      |
    3 |   reason = ["r"]
      |            ^^^^^ this is a list
    error: `ctime` must be a number
     --> t.tm.hcl:2:11
      |
    2 |   ctime = "1"
      |           ^^^ this is a string
    "#);
    assert_snapshot!(block("  ctime = null\n  reason = tm_nonsense(\"r\")"), @r#"
    error: unknown function `tm_nonsense`
     --> t.tm.hcl:3:12
      |
    3 |   reason = tm_nonsense("r")
      |            ^^^^^^^^^^^ unknown function
    error: `ctime` must be a number
     --> t.tm.hcl:2:11
      |
    2 |   ctime = null
      |           ^^^^ this is null
    "#);
    assert_snapshot!(block("  ctime = 1\n  reason = global.reason"), @"
    error: `global` cannot be used in a `trigger` block
     --> t.tm.hcl:3:12
      |
    3 |   reason = global.reason
      |            ^^^^^^ not available here
      |
      = help: only literals, operators, templates, `for` and functions are evaluated here
    ");
}

/// Everything here matches Terramate's result.
#[test]
fn values_are_evaluated_as_far_as_they_need_nothing() {
    for (ctime, reason, says) in [
        ("1 + 1", "\"r${1}\"", "r1"),
        ("-(1.5)", "(\"r\")", "r"),
        ("true ? 1 : 2", "[\"r\"][0]", "r"),
        ("{ a = 1 }.a", "\"%{if true}r%{endif}\"", "r"),
        ("\"${1}\"", "\"${[for x in [\"r\"] : x][0]}\"", "r"),
        ("1", "\"\"", ""),
    ] {
        let said = block(&format!("ctime = {ctime}\nreason = {reason}"));
        assert_eq!(said, format!("changed: {says}"));
    }
}

#[test]
fn keywords_stand_without_quotes() {
    let with = |keywords: &str| block(&format!("  ctime = 1\n  reason = \"r\"\n{keywords}"));
    assert_snapshot!(with("  type = \"ignore-change\"\n  context = \"stack\""), @r#"
    error: `type` must be `changed` or `ignore-change`
     --> t.tm.hcl:4:10
      |
    4 |   type = "ignore-change"
      |          ^^^^^^^^^^^^^^^ this is a string
      |
      = help: write it without quotes: `type = ignore-change`
    error: `context` must be `stack`
     --> t.tm.hcl:5:13
      |
    5 |   context = "stack"
      |             ^^^^^^^ this is a string
      |
      = help: write it without quotes: `context = stack`
    "#);
    assert_snapshot!(with("  type = change\n  context = project"), @"
    error: `type` must be `changed` or `ignore-change`
     --> t.tm.hcl:4:10
      |
    4 |   type = change
      |          ^^^^^^ this is `change`
      |
      = help: did you mean `changed`?
    error: `context` must be `stack`
     --> t.tm.hcl:5:13
      |
    5 |   context = project
      |             ^^^^^^^ this is `project`
    ");
    assert_snapshot!(with("  type = (ignore-change)\n  context = ( stack )"), @"
    error: `type` must be `changed` or `ignore-change`
     --> t.tm.hcl:4:10
      |
    4 |   type = (ignore-change)
      |          ^^^^^^^^^^^^^^^ this is not a bare word
      |
      = help: write it without parentheses: `type = ignore-change`
    error: `context` must be `stack`
     --> t.tm.hcl:5:13
      |
    5 |   context = ( stack )
      |             ^^^^^^^^^ this is not a bare word
      |
      = help: write it without parentheses: `context = stack`
    ");
    assert_snapshot!(with("  type = ignore - change\n  context = true"), @"
    error: `type` must be `changed` or `ignore-change`
     --> t.tm.hcl:4:10
      |
    4 |   type = ignore - change
      |          ^^^^^^^^^^^^^^^ this is not one of them
    error: `context` must be `stack`
     --> t.tm.hcl:5:13
      |
    5 |   context = true
      |             ^^^^ this is not one of them
    ");
}

#[test]
fn a_syntax_error_has_its_place() {
    assert_snapshot!(parsed("trigger {\n  ctime = 1\n  reason = \"r\n}\n"), @r#"
    error: syntax error
     --> t.tm.hcl:3:12
      |
    3 |   reason = "r
      |   -        ^ this string is not closed
      |   |
      |   invalid block body; expected `}`, newline or identifier
      |
      = help: close the string with `"` on the same line
    "#);
}

#[test]
fn the_layout_is_that_of_terramate() {
    let statement = Statement {
        kind: TriggerKind::IgnoreChange,
        reason: "say \"${a}\" %{b} $c\\\n\u{1b}ü".to_owned(),
        key: None,
    };
    assert_snapshot!(write(&statement, 1_700_000_000), @r#"
    trigger {
      ctime   = 1700000000
      reason  = "say \"$${a}\" %%{b} $c\\\n\u001bü"
      type    = ignore-change
      context = stack
    }
    "#);
}

/// Strings that need escapes, and arbitrary ones.
fn reason() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        prop::sample::select(vec![
            "$", "%", "{", "}", "\"", "\\", "\n", "~", "u0041", "\u{1b}"
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_back_the_same(reason in reason(), is_ignore in any::<bool>(), seconds: u64) {
        let kind = KINDS[usize::from(is_ignore)];
        let statement = Statement {
            kind,
            reason,
            key: None,
        };
        let text = write(&statement, seconds);
        let is_clean = !text.chars().any(|c| c != '\n' && needs_escape(c));
        prop_assert!(is_clean && text.lines().count() == 6, "{:?}", text);
        prop_assert_eq!(parse(&text), Ok(statement));
    }
}
