//! Words of a command line as templates: the text inside a quoted string.

use std::ops::Range;
use std::str::FromStr;

use hcl_edit::Span as _;
use hcl_edit::expr::Expression;
use hcl_edit::template::{Directive, Element, Template};

use super::lower::{Lower, span};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::Expr;
use crate::source::FileId;

const QUOTE: &str = "\"";

/// Parses a word as the text between the quotes of a string. Places count from the start of the word.
pub fn parse_word(file: FileId, text: &str) -> Result<Expr, Box<Diagnostic>> {
    let quoted = format!("{QUOTE}{text}{QUOTE}");
    let problem = match Expression::from_str(&quoted) {
        Ok(expr @ (Expression::String(_) | Expression::StringTemplate(_))) => {
            // The parser lets a string span several lines, unlike HCL.
            let Some(at) = line_feed(&expr, &quoted) else {
                let lower = Lower::after(file, &quoted, QUOTE);
                return Ok(Expr {
                    span: span(file, &(0..text.len())),
                    ..lower.expr(&expr)
                });
            };
            WordMistake::LineFeed(at.saturating_sub(QUOTE.len()))
        }
        // The word has ended the string, and continues as another expression.
        Ok(_) => WordMistake::Quote(text.find('"').unwrap_or(text.len())),
        Err(error) => WordMistake::find(text).unwrap_or_else(|| {
            let offset = error.location().offset().saturating_sub(QUOTE.len());
            WordMistake::Other(text.floor_char_boundary(offset.min(text.len())))
        }),
    };
    Err(Box::new(problem.diagnostic(file)))
}

/// Returns where a text between quotes has a line feed, outside of interpolations.
fn line_feed(expr: &Expression, quoted: &str) -> Option<usize> {
    fn in_range(range: Option<Range<usize>>, quoted: &str) -> Option<usize> {
        let range = range?;
        let at = quoted.get(range.clone())?.find('\n')?;
        Some(range.start + at)
    }
    fn in_elements<'e>(elements: impl Iterator<Item = &'e Element>, quoted: &str) -> Option<usize> {
        let mut elements = elements;
        elements.find_map(|element| match element {
            Element::Literal(text) => in_range(text.span(), quoted),
            Element::Interpolation(_) => None,
            Element::Directive(directive) => match &**directive {
                Directive::If(directive) => {
                    let then = in_template(&directive.if_expr.template, quoted);
                    let otherwise = directive.else_expr.as_ref();
                    then.or_else(|| in_template(&otherwise?.template, quoted))
                }
                Directive::For(directive) => in_template(&directive.for_expr.template, quoted),
            },
        })
    }
    fn in_template(template: &Template, quoted: &str) -> Option<usize> {
        in_elements(template.iter(), quoted)
    }
    match expr {
        Expression::StringTemplate(template) => in_elements(template.iter(), quoted),
        _ => in_range(Some(0..quoted.len()), quoted),
    }
}

enum WordMistake {
    /// A quote without a backslash.
    Quote(usize),
    /// A backslash that begins no valid escape sequence.
    Escape(Range<usize>),
    /// A line feed outside of an interpolation.
    LineFeed(usize),
    /// An interpolation without an end.
    Open(Range<usize>),
    /// Something else, which the parser found here.
    Other(usize),
}

impl WordMistake {
    fn diagnostic(self, file: FileId) -> Diagnostic {
        let literally = "for a literal `${` or `%{`, write `$${` or `%%{`";
        let (at, label, help) = match self {
            WordMistake::Quote(at) => (
                at..at + 1,
                "this ends the word",
                "with `--eval`, a word is the text inside a quoted string: write `\\\"`",
            ),
            WordMistake::Escape(range) => (
                range,
                "not an escape sequence",
                "write `\\\\` for a backslash",
            ),
            WordMistake::LineFeed(at) => (
                at..at,
                "a string must end on the line where it begins",
                "write `\\n` for a line feed",
            ),
            WordMistake::Open(range) => (range, "this is never closed", literally),
            WordMistake::Other(at) => (at..at, "the text from here on cannot be parsed", literally),
        };
        Diagnostic::error(Code::Syntax, "this is not a template")
            .label(span(file, &at), label)
            .help(help)
    }

    /// Finds the first such mistake in a text. The content of interpolations is skipped roughly.
    fn find(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' => return Some(WordMistake::Quote(at)),
                b'\n' => return Some(WordMistake::LineFeed(at)),
                b'\\' => {
                    let length = escape_length(&text[at + 1..]);
                    let Some(length) = length else {
                        let next = text[at + 1..].chars().next().map_or(0, char::len_utf8);
                        return Some(WordMistake::Escape(at..at + 1 + next));
                    };
                    at += length;
                }
                b'$' | b'%'
                    if bytes.get(at + 1) == Some(&byte) && bytes.get(at + 2) == Some(&b'{') =>
                {
                    at += 2;
                }
                b'$' | b'%' if bytes.get(at + 1) == Some(&b'{') => {
                    match closing(&bytes[at + 2..]) {
                        Some(length) => at += 1 + length,
                        None => return Some(WordMistake::Open(at..at + 2)),
                    }
                }
                _ => {}
            }
            at += 1;
        }
        None
    }
}

/// Returns how many bytes after a backslash belong to its escape sequence; `None` if it is none.
fn escape_length(rest: &str) -> Option<usize> {
    let digits = |count: usize| {
        let digits = rest.get(1..=count)?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then_some(1 + count)
    };
    match rest.bytes().next()? {
        b'n' | b'r' | b't' | b'"' | b'\\' => Some(1),
        b'u' => digits(4),
        b'U' => digits(8),
        _ => None,
    }
}

/// Returns the length of a text up to and including the brace that closes the one before it.
fn closing(bytes: &[u8]) -> Option<usize> {
    let mut depth = 1_usize;
    let mut is_quoted = false;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if is_quoted => at += 1,
            b'"' => is_quoted = !is_quoted,
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::syntax::ExprKind;

    fn problem(text: &str) -> Option<(usize, String)> {
        let diagnostic = parse_word(FileId::UNPLACED, text).err()?;
        let label = diagnostic.labels.first()?;
        Some((label.span.range().start, label.text.clone()))
    }

    #[test]
    fn words_are_templates() {
        for text in [
            "",
            " ",
            "$",
            "$$",
            "$x",
            "$(z)",
            "%d",
            "100%",
            "{}",
            "#{x}",
            "a\\\"b",
            "c\\\\d",
            "$${x}",
            "%%{ y }",
            "${a}",
            "x${\"q\"}y",
            "${{a = 1}.a}",
            "%{ if a }x%{ endif }",
            "${[\n1,\n2][0]}",
            "é\\u00e9",
            "${<<EOT\nx\nEOT\n}",
            "${<<-EOT\n  a\n  b\n  EOT\n}z",
        ] {
            let parsed = parse_word(FileId::UNPLACED, text);
            assert!(parsed.is_ok(), "{text}: {:?}", parsed.err());
        }
    }

    #[test]
    fn a_mistake_has_a_place() {
        for (text, at) in [
            ("a\"b", 1),
            ("a\" + \"b", 1),
            ("c\\d", 1),
            ("ab${", 2),
            ("ab${1", 2),
            ("a\nb", 1),
            ("x${1 +}", 6),
            ("trailing\\", 8),
        ] {
            let (start, label) = problem(text).unwrap_or_else(|| panic!("{text} is fine"));
            assert_eq!(start, at, "{text}: {label}");
        }
    }

    #[test]
    fn places_count_from_the_start_of_the_word() {
        let expr = parse_word(FileId::UNPLACED, "ab${c}").expect("it is a template");
        let ExprKind::Template(parts) = expr.kind else {
            panic!("{expr:?}");
        };
        let Some(crate::language::syntax::TemplatePart::Interpolation(inner)) = parts.get(1) else {
            panic!("{parts:?}");
        };
        assert_eq!(inner.span.range(), 4..5);
    }
}
