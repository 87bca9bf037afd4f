//! The Markdown of topics: headings, paragraphs, lists, tables, code; `code` and *emphasis* inside.

#[derive(Debug, PartialEq, Eq)]
pub(super) enum TopicBlock {
    Heading {
        level: usize,
        text: Vec<TopicSpan>,
    },
    Paragraph(Vec<TopicSpan>),
    /// Each item with its mark, `-` or `1.`.
    List(Vec<(String, Vec<TopicSpan>)>),
    /// The first row is the heading.
    Table(Vec<Vec<Vec<TopicSpan>>>),
    Code(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TopicSpan {
    Text(String),
    Code(String),
    Emphasis(String),
}

pub(super) fn parse(markdown: &str) -> Vec<TopicBlock> {
    let mut blocks = Vec::new();
    let mut lines = markdown.lines().peekable();
    // The lines of the current paragraph, without the breaks between its sentences.
    let mut paragraph = String::new();
    while let Some(line) = lines.next() {
        let is_text = !line.trim().is_empty()
            && !line.starts_with(['#', '|'])
            && !line.starts_with("```")
            && item(line).is_none();
        if is_text {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph += line;
            continue;
        }
        if !paragraph.is_empty() {
            blocks.push(TopicBlock::Paragraph(spans(&std::mem::take(
                &mut paragraph,
            ))));
        }
        if line.starts_with("```") {
            let code = lines.by_ref().take_while(|line| !line.starts_with("```"));
            blocks.push(TopicBlock::Code(code.map(str::to_owned).collect()));
        } else if line.starts_with('#') {
            let text = line.trim_start_matches('#');
            let level = line.len() - text.len();
            let text = spans(text.trim());
            blocks.push(TopicBlock::Heading { level, text });
        } else if line.starts_with('|') {
            let row = cells(line);
            if row.iter().all(|cell| cell == "---") {
                continue;
            }
            let row = row.iter().map(|cell| spans(cell)).collect();
            match blocks.last_mut() {
                Some(TopicBlock::Table(rows)) => rows.push(row),
                _ => blocks.push(TopicBlock::Table(vec![row])),
            }
        } else if let Some((mark, text)) = item(line) {
            let item = (mark.to_owned(), spans(text));
            match blocks.last_mut() {
                Some(TopicBlock::List(items)) => items.push(item),
                _ => blocks.push(TopicBlock::List(vec![item])),
            }
        }
    }
    if !paragraph.is_empty() {
        blocks.push(TopicBlock::Paragraph(spans(&paragraph)));
    }
    blocks
}

/// Splits an item of a list into its mark and its text.
fn item(line: &str) -> Option<(&str, &str)> {
    let (mark, text) = line.split_once(' ')?;
    let number = mark.strip_suffix('.').unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (mark == "-" || is_number).then_some((mark, text))
}

/// Splits a row of a table at each `|` that has no backslash before it.
fn cells(line: &str) -> Vec<String> {
    const ESCAPED: &str = "\u{1}";
    let line = line.trim().replace("\\|", ESCAPED);
    let inner = line.strip_prefix('|').unwrap_or(&line);
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let cell = |cell: &str| cell.trim().replace(ESCAPED, "|");
    inner.split('|').map(cell).collect()
}

/// Splits a text at code and emphasis.
fn spans(text: &str) -> Vec<TopicSpan> {
    let mut spans = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['`', '*']) {
        let mark = &rest[start..=start];
        let Some(length) = rest[start + 1..].find(mark) else {
            break;
        };
        if start > 0 {
            spans.push(TopicSpan::Text(rest[..start].to_owned()));
        }
        let inner = rest[start + 1..][..length].to_owned();
        spans.push(match mark {
            "`" => TopicSpan::Code(inner),
            _ => TopicSpan::Emphasis(inner),
        });
        rest = &rest[start + length + 2..];
    }
    if !rest.is_empty() {
        spans.push(TopicSpan::Text(rest.to_owned()));
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<TopicSpan> {
        vec![TopicSpan::Text(text.to_owned())]
    }

    #[test]
    fn lines_of_a_paragraph_are_one_text() {
        let blocks = parse("# A title\n\nOne\ntwo.\n\nThree.");
        let expected = [
            TopicBlock::Heading {
                level: 1,
                text: text("A title"),
            },
            TopicBlock::Paragraph(text("One two.")),
            TopicBlock::Paragraph(text("Three.")),
        ];
        assert_eq!(blocks, expected);
    }

    #[test]
    fn code_and_emphasis_are_spans() {
        let expected = [
            TopicSpan::Text("a ".to_owned()),
            TopicSpan::Code("*.md".to_owned()),
            TopicSpan::Text(" is ".to_owned()),
            TopicSpan::Emphasis("b".to_owned()),
            TopicSpan::Text(", 2 * 2".to_owned()),
        ];
        assert_eq!(spans("a `*.md` is *b*, 2 * 2"), expected);
    }

    #[test]
    fn tables_have_rows_of_cells() {
        let blocks = parse("| a | b |\n| --- | --- |\n| c | d \\| e |\n");
        let rows = vec![vec![text("a"), text("b")], vec![text("c"), text("d | e")]];
        assert_eq!(blocks, [TopicBlock::Table(rows)]);
    }

    #[test]
    fn items_have_marks() {
        let item = |mark: &str, item: &str| (mark.to_owned(), text(item));
        let blocks = parse("- a\n- b\n\ntext\n\n1. c\n2. d\n");
        let expected = [
            TopicBlock::List(vec![item("-", "a"), item("-", "b")]),
            TopicBlock::Paragraph(text("text")),
            TopicBlock::List(vec![item("1.", "c"), item("2.", "d")]),
        ];
        assert_eq!(blocks, expected);
    }

    #[test]
    fn code_keeps_its_lines() {
        let blocks = parse("```sh\n# no heading\n\n- no item\n```\n");
        let lines = ["# no heading", "", "- no item"].map(str::to_owned);
        assert_eq!(blocks, [TopicBlock::Code(lines.to_vec())]);
    }
}
