//! Hostile names and output: every report shows them only as text.

use serde_json::Value;

use super::formats::assert_is_terragrunt;
use super::{read, read_json};
use crate::support::Sandbox;

const NAMES: [&str; 8] = [
    "plain",
    "pipe|`code`\\|x",
    "<script>alert(1)</script>&amp;",
    "@user #1 [a](https:~x) *b* _c_ $d$",
    "red\u{1b}[31m\u{7}",
    "line\nfeed\r",
    "quote\",comma'=cmd",
    "not\u{ffff}xml\u{202e}",
];

const REPORTS: [&str; 6] = [
    "out.json", "out.xml", "out.md", "out.html", "out.csv", "tg.json",
];

/// A run in which a command prints this and then fails, in stacks with these names.
fn reported(output: &[u8]) -> Sandbox {
    let sandbox = Sandbox::new("");
    for name in NAMES {
        sandbox.write(&format!("/{name}/stack.tm"), "stack {}\n");
    }
    std::fs::write(sandbox.outside().join("output"), output).unwrap();
    let reports = REPORTS.map(|name| match name {
        "tg.json" => format!("--report terragrunt-json=../{name}"),
        name => format!("--report ../{name}"),
    });
    let run = sandbox.orch(&format!(
        "run -q --output none --on-error continue {} -- sh -c 'cat \"$ORCH_ROOT/../output\"; exit 1'",
        reports.join(" ")
    ));
    assert_eq!(run.code(), 1, "{run}");
    for name in REPORTS {
        let text = read(&sandbox, name);
        let is_odd = |character: &char| character.is_control() && !"\n\t".contains(*character);
        assert_eq!(text.chars().find(is_odd), None, "{name}: {text}");
    }
    sandbox
}

fn is_xml(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn assert_are_whole(sandbox: &Sandbox) {
    let paths = |report: &Value| -> Vec<String> {
        let stacks = report["stacks"].as_array().unwrap().iter();
        stacks
            .map(|stack| stack["path"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut expected = NAMES.map(|name| format!("/{name}"));
    expected.sort();
    let mut found = paths(&read_json(sandbox, "out.json"));
    found.sort();
    assert_eq!(found, expected);

    let report = read_json(sandbox, "tg.json");
    assert_is_terragrunt(&report);
    assert_eq!(report.as_array().unwrap().len(), NAMES.len());

    let text = read(sandbox, "out.xml");
    let document = roxmltree::Document::parse(&text).unwrap();
    let cases = document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"));
    assert_eq!(cases.count(), NAMES.len());
    for node in document.descendants() {
        let values = node.attributes().map(|attribute| attribute.value());
        for value in values.chain(node.text()) {
            assert!(value.chars().all(is_xml), "{value:?}");
        }
    }

    let rows = read(sandbox, "out.csv");
    assert_eq!(rows.lines().count(), 1 + NAMES.len(), "{rows}");
    for row in rows.lines() {
        assert_eq!(cells(row), 9, "{row}");
    }
}

/// The number of cells in a row of a CSV file.
fn cells(row: &str) -> usize {
    let mut is_quoted = false;
    let separators = row.chars().filter(|&character| {
        is_quoted ^= character == '"';
        character == ',' && !is_quoted
    });
    separators.count() + 1
}

/// Removes the code blocks from Markdown, and returns the rest.
fn without_code(markdown: &str) -> String {
    let mut fence: Option<String> = None;
    let mut rest = String::new();
    for line in markdown.lines() {
        match &fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if line.starts_with("```") => {
                fence = Some(line.trim_end_matches("text").to_owned());
            }
            None => rest += &format!("{line}\n"),
        }
    }
    assert_eq!(fence, None, "a block of code does not end");
    rest
}

#[test]
fn hostile_names_and_output_stand_for_themselves() {
    let output = b"\x1b[31mred\x1b[0m \x1b]0;title\x07\r\n</details>\n```\n````\n]]>&<b>\xff\xfe\0\n| a | b |\n\xef\xbf\xbf<![CDATA[\n";
    let sandbox = reported(output);
    assert_are_whole(&sandbox);
    let markdown = read(&sandbox, "out.md");
    let rest = without_code(&markdown);
    assert_eq!(rest.matches("</details>").count(), NAMES.len(), "{rest}");
    assert!(!rest.contains("]]>") && !rest.contains("<b>"), "{rest}");
    let rows: Vec<&str> = rest.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(rows.len(), 2 + NAMES.len(), "{rest}");
    for row in rows {
        assert_eq!(row.matches('|').count(), 6, "{row}");
    }
    // Outside code in backquotes, no name is markup.
    let plain: String = rest.split('`').step_by(2).collect();
    for markup in ["<script", "@user", "[a]", "*b*", "$d$", "&amp;"] {
        assert!(!plain.contains(markup), "{markup} in {plain}");
    }
}

#[test]
fn report_quotes_the_end_of_an_endless_line() {
    let mut output = b"start".to_vec();
    output.resize(3 << 20, b'x');
    output.extend_from_slice("ü\u{1b}[2Kend".as_bytes());
    let sandbox = reported(&output);
    assert_are_whole(&sandbox);
    for name in ["out.xml", "out.md"] {
        let text = read(&sandbox, name);
        assert!(text.contains("xüend"), "{name}");
        assert!(!text.contains("startx"), "{name}");
        assert!(text.len() < 200 << 10, "{name}: {}", text.len());
    }
}
