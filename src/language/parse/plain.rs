//! Reads plain configuration without the HCL parser.
//!
//! Most files of stacks are blocks and attributes with literal values. The parser takes longer for them than the rest
//! of `orch list`, so this module builds the same tree from their bytes. A file with anything else goes to the parser,
//! so this module never has to report errors.
//!
//! Functions take a text that begins with the item that they are named after, and return the item and the rest of the
//! text, or `None` if they do not recognise it.

use std::str::FromStr;

use bigdecimal::BigDecimal;

use super::USED;
use super::skim::{
    Places, are_unique, blank_lines, end_of_line, number, plain_string, spaces, word,
};
use crate::language::syntax::{Attribute, Block, Body, Expr, ExprKind, Name};
use crate::source::FileId;

/// How deeply blocks and lists may be nested here; the parser accepts more.
const MAX_DEPTH: usize = 16;

/// Parses a text that is a body by itself and begins at `start` in its file. Of top-level blocks that are not used, it
/// keeps only the head.
pub(super) fn parse(file: FileId, text: &str, start: usize) -> Option<Body> {
    let places = Places {
        file,
        length: start + text.len(),
    };
    let (mut body, rest) = places.body(text.as_bytes(), 0)?;
    for block in &mut body.blocks {
        if !USED.contains(&&*block.kind.text) {
            block.body = Body::default();
        }
    }
    rest.is_empty().then_some(body)
}

impl Places {
    /// Reads attributes and blocks, each on lines of its own.
    fn body(self, text: &[u8], depth: usize) -> Option<(Body, &[u8])> {
        let mut body = Body::default();
        let mut rest = text;
        loop {
            let start = blank_lines(rest);
            if matches!(start, [] | [b'}', ..]) {
                // A vector that grows begins with more than most bodies have.
                body.attributes.shrink_to_fit();
                body.blocks.shrink_to_fit();
                let names = body.attributes.iter();
                let names: Vec<&[u8]> = names.map(|it| it.name.text.as_bytes()).collect();
                return are_unique(&names).then_some((body, start));
            }
            let (name, after) = self.word(start)?;
            let after = spaces(after);
            let end = if let Some(value) = after.strip_prefix(b"=") {
                let (value, end) = self.value(spaces(value), depth)?;
                body.attributes.push(Attribute { name, value });
                end
            } else {
                let (block, end) = self.block(name, start, after, depth)?;
                body.blocks.push(block);
                end
            };
            rest = end_of_line(end)?;
        }
    }

    /// Reads the rest of the block that begins with `kind` at `start`.
    fn block<'t>(
        self,
        kind: Name,
        start: &[u8],
        after: &'t [u8],
        depth: usize,
    ) -> Option<(Block, &'t [u8])> {
        let (labels, content) = self.labels(after)?;
        let content = spaces(content);
        let (body, end) = if content.starts_with(b"}") {
            (Body::default(), content)
        } else if depth < MAX_DEPTH {
            self.body(end_of_line(content)?, depth + 1)?
        } else {
            return None;
        };
        let end = end.strip_prefix(b"}")?;
        let block = Block {
            kind,
            labels,
            span: self.span(start, end),
            body,
        };
        Some((block, end))
    }

    fn value(self, text: &[u8], depth: usize) -> Option<(Expr, &[u8])> {
        let (kind, rest) = match text {
            [b'"', ..] => {
                let (content, rest) = plain_string(text)?;
                let content = std::str::from_utf8(content).ok()?;
                (ExprKind::String(content.into()), rest)
            }
            [b'[', rest @ ..] if depth < MAX_DEPTH => self.list(rest, depth + 1)?,
            [b'0'..=b'9', ..] => {
                let rest = number(text)?;
                let digits = std::str::from_utf8(&text[..text.len() - rest.len()]).ok()?;
                let number = BigDecimal::from_str(digits).ok()?;
                (ExprKind::Number(Box::new(number)), rest)
            }
            _ => match word(text)? {
                (b"true", rest) => (ExprKind::Bool(true), rest),
                (b"false", rest) => (ExprKind::Bool(false), rest),
                (b"null", rest) => (ExprKind::Null, rest),
                _ => return None,
            },
        };
        let span = self.span(text, rest);
        Some((Expr { span, kind }, rest))
    }

    /// Reads values up to the closing bracket.
    fn list(self, text: &[u8], depth: usize) -> Option<(ExprKind, &[u8])> {
        let mut values = Vec::new();
        let mut rest = blank_lines(text);
        loop {
            if let Some(rest) = rest.strip_prefix(b"]") {
                values.shrink_to_fit();
                return Some((ExprKind::List(values), rest));
            }
            let (value, after) = self.value(rest, depth)?;
            values.push(value);
            rest = blank_lines(after);
            if let Some(after) = rest.strip_prefix(b",") {
                rest = blank_lines(after);
            } else if !rest.starts_with(b"]") {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_files_need_no_parser() {
        for text in [
            "",
            "# a comment",
            "stack {}",
            "stack {\n  name = \"a\" # why\n\n  tags = [] // none\n}\n",
            "stack \"é\" b-1 {\n  after = [\n    \"../a\", # first\n    \"/b\",\n  ]\n}",
            "a = [[true, false], [null], 12, 0.5]\norch {\n  config {\n    b { }\n  }\n}\n",
        ] {
            assert!(parse(FileId::UNPLACED, text, 0).is_some(), "{text}");
        }
    }

    #[test]
    fn other_files_go_to_the_parser() {
        for text in [
            "a = 1\na = 2",
            "a = b",
            "a = \"${b}\"",
            "a = \"\\n\"",
            "a = 1 + 1",
            "a = 1 b = 2",
            "a = [1 2]",
            "a = [1,, 2]",
            "a = 1e3",
            "a = {}",
            "a == 1",
            "for = 1",
            "a",
            "a {",
            "a }",
            "a { b = 1 }",
            "a {} b {}",
            "}",
            "a = 1\r\n",
            "/* */",
        ] {
            assert!(parse(FileId::UNPLACED, text, 0).is_none(), "{text}");
        }
    }

    #[test]
    fn depth_is_limited() {
        for (open, close) in [("[", "]"), ("a {\n", "}\n")] {
            let nested = |depth| format!("{}{}", open.repeat(depth), close.repeat(depth));
            let parse = |depth| {
                let text = nested(depth);
                let text = if open == "[" {
                    format!("a = {text}")
                } else {
                    text
                };
                parse(FileId::UNPLACED, &text, 0)
            };
            assert!(parse(MAX_DEPTH).is_some());
            assert!(parse(MAX_DEPTH + 1).is_none());
            assert!(parse(100_000).is_none());
        }
    }
}
