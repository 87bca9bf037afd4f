//! A topic as a man page.

use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use super::markdown::{TopicBlock, TopicSpan};
use super::{MANUAL, Topic};

pub(super) fn render(topic: &Topic, blocks: &[TopicBlock]) -> Vec<u8> {
    let mut page = Roff::default();
    let name = format!("orch-{}", topic.name);
    let source = concat!("orch ", env!("CARGO_PKG_VERSION"));
    page.control(
        "TH",
        [name.to_uppercase().as_str(), "7", "\"\"", source, MANUAL],
    );
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{name} - {}", topic.summary))]);
    page.control("SH", ["DESCRIPTION"]);
    for block in blocks {
        match block {
            // The name of the page has it.
            TopicBlock::Heading { level: 1, .. } => {}
            TopicBlock::Heading { text, .. } => {
                let text = text.iter().map(plain).collect::<String>();
                page.control("SH", [text.to_uppercase().as_str()]);
            }
            TopicBlock::Paragraph(spans) => {
                page.control("PP", []);
                page.text(inlines(spans));
            }
            TopicBlock::List(items) => {
                for (mark, spans) in items {
                    page.control("IP", [mark.as_str(), "4"]);
                    page.text(inlines(spans));
                }
            }
            TopicBlock::Table(rows) => {
                for row in rows.iter().skip(1) {
                    let Some((explanation, explained)) = row.split_last() else {
                        continue;
                    };
                    page.control("TP", []);
                    let mut term = Vec::new();
                    for cell in explained.iter().filter(|cell| !cell.is_empty()) {
                        if !term.is_empty() {
                            term.push(roman(", "));
                        }
                        term.extend(inlines(cell));
                    }
                    page.text(term);
                    page.text(inlines(explanation));
                }
            }
            TopicBlock::Code(lines) => {
                page.control("PP", []);
                page.control("RS", ["4"]);
                page.control("nf", []);
                for line in lines {
                    page.text([roman(line.as_str())]);
                }
                page.control("fi", []);
                page.control("RE", []);
            }
        }
    }
    page.render().into_bytes()
}

fn inlines(spans: &[TopicSpan]) -> Vec<Inline> {
    let inline = |span: &TopicSpan| match span {
        TopicSpan::Text(text) => roman(text.as_str()),
        TopicSpan::Code(text) => bold(text.as_str()),
        TopicSpan::Emphasis(text) => italic(text.as_str()),
    };
    spans.iter().map(inline).collect()
}

fn plain(span: &TopicSpan) -> &str {
    match span {
        TopicSpan::Text(text) | TopicSpan::Code(text) | TopicSpan::Emphasis(text) => text,
    }
}
