//! A topic as text, for a terminal or a pipe.

use std::fmt::Write as _;

use super::markdown::{TopicBlock, TopicSpan};

const BOLD: anstyle::Style = anstyle::Style::new().bold();

/// The indentation of code and explanations.
const INDENT: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopicStyle {
    /// Headings and code are bold.
    Terminal,
    /// Headings are in capitals, code is in backticks.
    Plain,
}

/// Writes lines of at most this width, except code.
pub(super) fn render(blocks: &[TopicBlock], width: usize, style: TopicStyle) -> String {
    let mut out = String::new();
    for block in blocks {
        if !out.is_empty() {
            out.push('\n');
        }
        match block {
            TopicBlock::Heading { text, .. } => {
                let text = plain(text);
                _ = match style {
                    TopicStyle::Terminal => writeln!(out, "{BOLD}{text}{BOLD:#}"),
                    TopicStyle::Plain => writeln!(out, "{}", text.to_uppercase()),
                };
            }
            TopicBlock::Paragraph(spans) => fill(&mut out, spans, 0, 0, width, style),
            TopicBlock::List(items) => {
                let indent = items
                    .iter()
                    .map(|(mark, _)| mark.len() + 1)
                    .max()
                    .unwrap_or_default();
                for (mark, spans) in items {
                    _ = write!(out, "{mark:<indent$}");
                    fill(&mut out, spans, indent, indent, width, style);
                }
            }
            TopicBlock::Table(rows) => table(&mut out, rows, width, style),
            TopicBlock::Code(lines) => {
                for line in lines {
                    _ = match line.as_str() {
                        "" => writeln!(out),
                        line => writeln!(out, "{:INDENT$}{line}", ""),
                    };
                }
            }
        }
    }
    out
}

/// Writes a table as a list: the first cell of a row on one line, the others below it.
fn table(out: &mut String, rows: &[Vec<Vec<TopicSpan>>], width: usize, style: TopicStyle) {
    for row in rows.iter().skip(1) {
        let Some((explanation, explained)) = row.split_last() else {
            continue;
        };
        let cells = explained.iter().filter(|cell| !cell.is_empty());
        let explained = cells
            .cloned()
            .collect::<Vec<_>>()
            .join(&TopicSpan::Text(", ".to_owned()));
        out.push_str("  ");
        fill(out, &explained, 2, 2, width, style);
        _ = write!(out, "{:1$}", "", 2 + INDENT);
        fill(out, explanation, 2 + INDENT, 2 + INDENT, width, style);
    }
}

/// Writes words from a column on, with an indent for further lines.
fn fill(
    out: &mut String,
    spans: &[TopicSpan],
    mut column: usize,
    indent: usize,
    width: usize,
    style: TopicStyle,
) {
    let mut is_first = true;
    for (shown, length) in words(spans, style) {
        if !is_first && column + 1 + length > width {
            _ = write!(out, "\n{:indent$}", "");
            column = indent;
        } else if !is_first {
            out.push(' ');
            column += 1;
        }
        out.push_str(&shown);
        column += length;
        is_first = false;
    }
    out.push('\n');
}

/// Splits spans at blanks into words, each with its width; code is one word, with adjacent text.
fn words(spans: &[TopicSpan], style: TopicStyle) -> Vec<(String, usize)> {
    let mut words: Vec<(String, usize)> = Vec::new();
    // Whether the next word continues the last one.
    let mut sticks = false;
    for span in spans {
        let (pieces, ends_open): (Vec<(String, usize)>, bool) = match span {
            TopicSpan::Text(text) => {
                if text.starts_with(' ') {
                    sticks = false;
                }
                let pieces = text
                    .split_whitespace()
                    .map(|piece| (piece.to_owned(), piece.chars().count()));
                (pieces.collect(), !text.ends_with(' '))
            }
            TopicSpan::Code(text) | TopicSpan::Emphasis(text) => {
                let marks = match (span, style) {
                    (TopicSpan::Code(_), TopicStyle::Plain) => 2,
                    _ => 0,
                };
                let length = text.chars().count() + marks;
                (vec![(word(span, style), length)], true)
            }
        };
        for (piece, length) in pieces {
            match words.last_mut() {
                Some((last, width)) if sticks => {
                    last.push_str(&piece);
                    *width += length;
                }
                _ => words.push((piece, length)),
            }
            sticks = false;
        }
        sticks = ends_open;
    }
    words
}

fn word(span: &TopicSpan, style: TopicStyle) -> String {
    match (span, style) {
        (TopicSpan::Code(code), TopicStyle::Terminal) => format!("{BOLD}{code}{BOLD:#}"),
        (TopicSpan::Code(code), TopicStyle::Plain) => format!("`{code}`"),
        (TopicSpan::Text(text) | TopicSpan::Emphasis(text), _) => text.clone(),
    }
}

/// Returns spans without their marks.
fn plain(spans: &[TopicSpan]) -> String {
    let text = |span: &TopicSpan| match span {
        TopicSpan::Text(text) | TopicSpan::Code(text) | TopicSpan::Emphasis(text) => text.clone(),
    };
    spans.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::super::markdown::parse;
    use super::*;

    #[test]
    fn text_is_wrapped_and_code_is_not() {
        let blocks = parse(
            "# Title\n\nSome words, `some code`.\n\n- an item of two lines\n\n```\na long line of code\n```\n",
        );
        let expected = "\
TITLE

Some words,
`some code`.

- an item of
  two lines

    a long line of code
";
        assert_eq!(render(&blocks, 14, TopicStyle::Plain), expected);
    }

    #[test]
    fn a_table_is_a_list_of_explanations() {
        let blocks = parse("| flag | | |\n| --- | --- | --- |\n| `-a` | b | does it |\n");
        assert_eq!(
            render(&blocks, 80, TopicStyle::Plain),
            "  `-a`, b\n      does it\n"
        );
        let bold = "  \u{1b}[1m-a\u{1b}[0m, b\n      does it\n";
        assert_eq!(render(&blocks, 80, TopicStyle::Terminal), bold);
    }
}
