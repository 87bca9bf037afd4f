//! Text to [`syntax`](crate::language::syntax): the only user of the HCL parser.
//!
//! Each file is parsed once, in the task that reads it, and unused parts are dropped at once: the content of
//! top-level blocks such as `generate_hcl` is only checked for syntax. The content of most `globals` blocks is parsed
//! only when it is needed, since most commands do not need it. Files that consist of literal values need no parser. The
//! parser stops at the first syntax error of a file, so a file gives at most one.

mod duplicate_key;
mod for_object;
mod heredoc;
mod lower;
mod plain;
mod skim;
mod word;

use std::ops::Range;
use std::str::FromStr;

use hcl_edit::expr::Expression;
use hcl_edit::{structure, template};

use self::lower::{Lower, span};
use self::skim::SkimmedBlock;
pub use self::word::parse_word;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::{Block, Body, DeferredBlock, Expr, TemplatePart};
use crate::source::{FileId, Span};

/// Top-level blocks whose content `orch` reads.
const USED: [&str; 14] = [
    "driver",
    "globals",
    "import",
    "input",
    "module",
    "moved",
    "orch",
    "output",
    "policy",
    "removed",
    "script",
    "sharing_backend",
    "stack",
    "terramate",
];

pub fn parse(file: FileId, text: &str) -> Result<Body, Box<Diagnostic>> {
    let skimmed = skim::globals(file, text);
    let around = if skimmed.is_empty() {
        plain::parse(file, text, 0)
    } else {
        parse_around(file, text, skimmed)
    };
    // The parser finds the problem of a file only if it sees the whole of it.
    let parsed = around.map_or_else(|| parse_keeping(file, text, is_used), Ok);
    parsed.map_err(|diagnostic| {
        let mut labels = diagnostic.labels.iter();
        match labels.find(|label| label.text.contains("nested levels")) {
            None => diagnostic,
            Some(label) => {
                let help = if opens_block(text, label.span.start as usize) {
                    "nest fewer blocks in each other"
                } else {
                    "split the expression: move its inner parts into `globals`"
                };
                Box::new(diagnostic.help(help))
            }
        }
    })
}

/// Returns whether the bracket at a position is that of a block: `name "label" {`.
fn opens_block(text: &str, position: usize) -> bool {
    let (before, after) = text.split_at_checked(position).unwrap_or_default();
    let head = before.rsplit('\n').next().unwrap_or_default().trim();
    let is_of_expression = |character| matches!(character, '=' | ':' | '(' | '[' | '?');
    after.starts_with('{') && !head.is_empty() && !head.contains(is_of_expression)
}

/// Parses the pieces of a file between the blocks that are deferred; `None` if a piece has a syntax error.
/// Deferred blocks are on lines of their own, so each piece is a body by itself.
fn parse_around(file: FileId, text: &str, skimmed: Vec<SkimmedBlock>) -> Option<Body> {
    let mut lowered = Body::default();
    let mut start = 0;
    let after = text.len()..text.len();
    let ranges = skimmed.iter().map(|it| &it.range).chain([&after]);
    for Range {
        start: end,
        end: next,
    } in ranges
    {
        let piece = &text[start..*end];
        let body = plain::parse(file, piece, start).or_else(|| {
            let body = structure::Body::from_str(piece).ok()?;
            Some(Lower::from(file, piece, start).body(&body, is_used))
        })?;
        lowered.attributes.extend(body.attributes);
        lowered.blocks.extend(body.blocks);
        start = *next;
    }
    lowered.deferred = skimmed.into_iter().map(|it| it.block).collect();
    Some(lowered)
}

fn is_used(block: &structure::Block) -> bool {
    USED.contains(&block.ident.as_str())
}

/// Returns whether [`parse`] kept the whole content of a file: nothing was dropped, and nothing is deferred.
pub(crate) fn is_whole(body: &Body) -> bool {
    let mut kinds = body.blocks.iter().map(|block| &*block.kind.text);
    body.deferred.is_empty() && kinds.all(|kind| USED.contains(&kind))
}

/// Parses the content of a block that was deferred. The text is that of its file.
///
/// If the text is a different one: the block has been found to be well-formed.
pub fn deferred(block: &DeferredBlock, text: &str) -> Block {
    let DeferredBlock {
        kind,
        labels,
        content,
    } = block.clone();
    let whole = Span {
        start: kind.span.start,
        end: content.end + 1, // the bracket
        ..content
    };
    let text = &text[content.range()];
    let body = structure::Body::from_str(text).expect("the block has been found to be well-formed");
    Block {
        kind,
        labels,
        span: whole,
        body: Lower::from(content.file, text, content.start as usize).body(&body, |_| true),
    }
}

/// Parses a file of another HCL-based language and keeps all of it.
pub(crate) fn parse_whole(file: FileId, text: &str) -> Result<Body, Box<Diagnostic>> {
    parse_keeping(file, text, |_| true)
}

/// What turns an expression into an attribute.
const BEFORE: &str = "x=(\n";

/// Parses an expression that stands alone. It may end with a heredoc.
pub fn parse_expression(file: FileId, text: &str) -> Result<Expr, Box<Diagnostic>> {
    let error = match Expression::from_str(text) {
        Ok(expr) => return Ok(Lower::new(file, text).expr(&expr)),
        Err(error) => error,
    };
    // Only inside brackets may an expression span several lines, and only there does the parser expect
    // the line that ends a heredoc.
    let wrapped = format!("{BEFORE}{text}\n)\n");
    if let Ok(body) = structure::Body::from_str(&wrapped)
        && let Some(attribute) = only_attribute(&body)
        && let Expression::Parenthesis(inner) = &attribute.value
    {
        let lower = Lower::after(file, &wrapped, BEFORE);
        return Ok(lower.expr(inner.inner()));
    }
    Err(Box::new(syntax_error(file, text, &error)))
}

fn only_attribute(body: &structure::Body) -> Option<&structure::Attribute> {
    let mut structures = body.iter();
    let first = structures.next()?;
    structures.next().is_none().then_some(first)?.as_attribute()
}

/// Parses the text between the quotes of a string, which begins at a place in its file; `None` if it has a syntax
/// error.
pub(crate) fn parse_template(file: FileId, text: &str, place: usize) -> Option<Vec<TemplatePart>> {
    let template = template::Template::from_str(text).ok()?;
    Some(Lower::from(file, text, place).template(&template))
}

/// Parses the text of a file that is a template: backslashes and line ends are plain text.
pub(crate) fn parse_text(file: FileId, text: &str) -> Result<Expr, Box<Diagnostic>> {
    match template::Template::from_str(text) {
        Ok(template) => Ok(Lower::new(file, text).text(&template)),
        Err(error) => {
            let offset = text.floor_char_boundary(error.location().offset());
            let diagnostic = Diagnostic::error(Code::Syntax, "syntax error in a template");
            let here = span(file, &(offset..offset));
            Err(Box::new(diagnostic.label(here, error.message())))
        }
    }
}

fn parse_keeping(
    file: FileId,
    text: &str,
    keep: fn(&structure::Block) -> bool,
) -> Result<Body, Box<Diagnostic>> {
    let error = match duplicate_key::parse(text) {
        Ok(body) => return Ok(Lower::new(file, text).body(&body, keep)),
        Err(error) => error,
    };
    if let Some(text) = for_object::on_one_line(text)
        && let Ok(body) = duplicate_key::parse(&text)
    {
        return Ok(Lower::new(file, &text).body(&body, keep));
    }
    Err(Box::new(syntax_error(file, text, &error)))
}

fn syntax_error(file: FileId, text: &str, error: &hcl_edit::parser::Error) -> Diagnostic {
    // The parser may report a byte inside a character.
    let offset = text.floor_char_boundary(error.location().offset());
    let message = error.message();
    let here = span(file, &(offset..offset));
    if message.contains("redefined attribute") {
        let rest = &text[offset..];
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let message = format!("attribute `{}` is set twice in one block", &rest[..length]);
        return Diagnostic::error(Code::DuplicateDefinition, message)
            .label(span(file, &(offset..offset + length)), "again here")
            .help("remove one of the two");
    }
    // The parser may stop inside of the number.
    let before = text[..offset].trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if let Some(number) = too_large(&text[before.len()..]) {
        let range = before.len() + number.start..before.len() + number.end;
        return Diagnostic::error(Code::Limit, "this number is too large for a literal")
            .label(span(file, &range), "the limit is about 10^308")
            .help("compute it, or write it in quotes and convert it with `tonumber`");
    }
    let Some((at, what, help)) = unbalanced(text) else {
        return match block_on_one_line(text, offset, message) {
            Some(start) => one_line_block(text, offset, span(file, &(start..start + 1)), here),
            None => Diagnostic::error(Code::Syntax, "syntax error").label(here, message),
        };
    };
    let diagnostic =
        Diagnostic::error(Code::Syntax, "syntax error").label(span(file, &(at..at + 1)), what);
    if at == offset {
        diagnostic.help(help)
    } else {
        diagnostic.label(here, message).help(help)
    }
}

/// Finds a number that the parser cannot represent, which it reports as if no expression were there. Strings and
/// comments are not told apart: a wrong guess only affects a message.
fn too_large(text: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(length) = bytes[at..].iter().position(u8::is_ascii_digit) {
        let start = at + length;
        let is_part =
            |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+');
        let rest = bytes[start..].iter().position(|byte| !is_part(byte));
        let end = rest.map_or(bytes.len(), |length| start + length);
        if text[start..end].parse::<f64>().is_ok_and(f64::is_infinite) {
            return Some(start..end);
        }
        at = end;
    }
    None
}

/// Returns the brace that opens a block on the line of an error, if the error is that the line holds
/// more of the block than one attribute.
fn block_on_one_line(text: &str, offset: usize, message: &str) -> Option<usize> {
    let rest = &text[offset..];
    let is_second = message.contains("invalid block body");
    let is_block = message.contains("invalid attribute") && rest.starts_with(['{', '"']);
    if !is_second && !is_block {
        return None;
    }
    let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text.as_bytes()[start..offset];
    let mut open: Vec<usize> = Vec::new();
    let mut in_string = false;
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' | b'(' => open.push(at),
            b'}' | b']' | b')' => _ = open.pop(),
            _ => {}
        }
        at += 1;
    }
    let brace = open.pop().filter(|&at| line[at] == b'{')?;
    // The brace of an object follows `=` or another sign; that of a block, a word or a label.
    let before = text[start..start + brace].trim_end();
    let is_header = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '"');
    before.ends_with(is_header).then_some(start + brace)
}

/// Explains HCL's rule for blocks that begin and end on one line.
fn one_line_block(text: &str, offset: usize, brace: Span, here: Span) -> Diagnostic {
    let message = "a block on one line has at most one attribute, and no block in it";
    let is_at_end = text[offset..].chars().next().is_none_or(char::is_control);
    let label = if is_at_end {
        "the block must end on this line"
    } else {
        "this needs a line of its own"
    };
    Diagnostic::error(Code::Syntax, message)
        .label(here, label)
        .label(brace, "the block is opened on the same line")
        .help("end the line after `{`, and give each attribute, each inner block and `}` a line of its own")
}

/// Finds the bracket or quote that is never closed, or that closes nothing, which the parser reports
/// far from where it is. Strings, comments and heredocs are skipped roughly; a wrong guess only
/// affects a hint.
fn unbalanced(text: &str) -> Option<(usize, &'static str, String)> {
    let bytes = text.as_bytes();
    let mut open: Vec<(usize, u8)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let line = || {
            bytes[at..]
                .iter()
                .position(|&byte| byte == b'\n')
                .map_or(bytes.len(), |end| at + end)
        };
        match bytes[at] {
            b'#' => at = line(),
            b'/' if bytes.get(at + 1) == Some(&b'/') => at = line(),
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let Some(length) = text[at + 2..].find("*/") else {
                    return Some((
                        at,
                        "this comment is not closed",
                        "close the comment with `*/`".into(),
                    ));
                };
                at += length + 3;
            }
            b'<' if bytes[at..].starts_with(b"<<") => return None, // heredoc: not worth guessing
            b'"' => {
                let start = at;
                let end = line();
                at += 1;
                while at < end && bytes[at] != b'"' {
                    if bytes[at..].starts_with(b"${") || bytes[at..].starts_with(b"%{") {
                        return None;
                    }
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                if at >= end {
                    return Some((
                        start,
                        "this string is not closed",
                        "close the string with `\"` on the same line".into(),
                    ));
                }
            }
            byte @ (b'{' | b'[' | b'(') => open.push((at, byte)),
            byte @ (b'}' | b']' | b')') => {
                let opening = match byte {
                    b'}' => b'{',
                    b']' => b'[',
                    _ => b'(',
                };
                match open.pop() {
                    Some((_, found)) if found == opening => {}
                    Some((start, _)) => {
                        return Some((
                            start,
                            "opened here",
                            "close it before the block or bracket around it".into(),
                        ));
                    }
                    None => {
                        let help = format!("nothing is open here: remove this `{}`", byte as char);
                        return Some((at, "closes nothing", help));
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
    open.pop().map(|(start, byte)| {
        let closing = match byte {
            b'{' => '}',
            b'[' => ']',
            _ => ')',
        };
        (
            start,
            "never closed",
            format!("add the missing `{closing}`"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{RenderStyle, render};
    use crate::language::NoNamespaces;
    use crate::language::evaluate::evaluate;
    use crate::language::value::Value;
    use crate::path::ProjectPath;
    use crate::source::{SourceFile, Sources};

    fn problem(text: &str) -> String {
        let mut sources = Sources::default();
        let path = ProjectPath::root().join("stack.tm");
        let file = sources.add(SourceFile {
            path,
            text: text.to_owned(),
        });
        match parse(file, text) {
            Ok(_) => "fine".to_owned(),
            Err(diagnostic) => render(&diagnostic, &sources, RenderStyle::Plain),
        }
    }

    #[test]
    fn an_unclosed_block_is_reported_where_it_was_opened() {
        insta::assert_snapshot!(problem("globals {}\nstack {\n  tags = [\"a\"]\n"), @r#"
        error: syntax error
         --> stack.tm:2:7
          |
        2 | stack {
          |       ^ never closed
        3 |   tags = ["a"]
          |               - invalid block body; expected `}`, newline or identifier
          |
          = help: add the missing `}`
        "#);
    }

    #[test]
    fn a_block_on_one_line_has_one_attribute_at_most() {
        let rule = "a block on one line has at most one attribute, and no block in it";
        for text in [
            "stack { name = \"a\" tags = [] }",
            "stack { name = \"{\", tags = [] }",
            "stack { name = \"a\"; tags = [] }",
            "stack { run { timeout = \"1m\" } }",
            "stack { name = \"a\" run { timeout = \"1m\" } }",
            "stack {\n  run { timeout = \"1m\" retry {} }\n}",
            "a \"label\" { b \"c\" { d = 1 } }",
            "orch { root = true\n}",
        ] {
            let shown = problem(text);
            assert!(shown.contains(rule), "{text}\n{shown}");
        }
        for text in [
            "stack { name = }",
            "stack {\n  tags = [\"a\" \"b\"]\n}",
            "stack {\n  a = { b { c = 1 } }\n}",
            "stack {\n  a = 1 b = 2\n}",
        ] {
            let shown = problem(text);
            assert!(!shown.contains(rule), "{text}\n{shown}");
        }
        assert!(parse(FileId::UNPLACED, "stack { name = \"a\" }").is_ok());
        insta::assert_snapshot!(problem("stack { name = \"a\", tags = [] }"), @r#"
        error: a block on one line has at most one attribute, and no block in it
         --> stack.tm:1:19
          |
        1 | stack { name = "a", tags = [] }
          |       -           ^ this needs a line of its own
          |       |
          |       the block is opened on the same line
          |
          = help: end the line after `{`, and give each attribute, each inner block and `}` a line of its own
        "#);
    }

    #[test]
    fn an_unclosed_string_is_pointed_at() {
        insta::assert_snapshot!(problem("stack {\n  name = \"app\n}\n"), @r#"
        error: syntax error
         --> stack.tm:2:10
          |
        2 |   name = "app
          |   -      ^ this string is not closed
          |   |
          |   invalid block body; expected `}`, newline or identifier
          |
          = help: close the string with `"` on the same line
        "#);
    }

    #[test]
    fn an_attribute_twice_is_an_error() {
        insta::assert_snapshot!(problem("stack {\n  name = \"a\"\n  name = \"b\"\n}\n"), @r#"
        error: attribute `name` is set twice in one block
         --> stack.tm:3:3
          |
        3 |   name = "b"
          |   ^^^^ again here
          |
          = help: remove one of the two
        "#);
    }

    #[test]
    fn a_key_may_occur_twice_in_an_object() {
        let value = |text: &str| {
            let body = parse(FileId::UNPLACED, text).map_err(|it| it.message)?;
            let value = evaluate(&body.attributes[0].value, &NoNamespaces("a test"));
            Ok(value.unwrap())
        };
        let object = |a: u64, b: u64| {
            let fields = [("a", Value::from(a)), ("long-name", Value::from(b))];
            Ok::<_, String>(Value::object(fields))
        };
        for text in [
            "x = { a = 0, a = 1, long-name = 2 }",
            "x = {\n  a = 0\n  long-name = 3\n  a = 1\n  long-name = 2\n}\n",
            "x = { a = 3, a = 3, a = 1, long-name = 3, long-name = 2 }",
        ] {
            assert_eq!(value(text), object(1, 2), "{text}");
        }
        // The problem of a file with such a key is another one.
        assert!(problem("x = { a = 1, a = 2 }\ny = [\n").contains("never closed"));
        assert!(problem("x = { \"a\" = 1, \"a\" = 2 }").contains("unique object key"));
    }

    #[test]
    fn a_number_that_is_too_large_is_named() {
        let digits = "9".repeat(400);
        for expression in [
            digits.clone(),
            "1e400".to_owned(),
            format!("max({digits}, 1)"),
            format!("[for x in [1]: ({digits})]"),
        ] {
            let problem = problem(&format!("a = {expression}\n"));
            assert!(problem.contains("this number is too large"), "{problem}");
        }
        assert_eq!(problem(&format!("a = {}\n", &digits[..308])), "fine");
    }

    #[test]
    fn depth_is_limited() {
        let nested = |depth| format!("a = {}1{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(problem(&nested(63)), "fine");
        assert!(problem(&nested(65)).contains("at most 64 nested levels"));
        assert!(problem(&nested(100_000)).contains("at most 64 nested levels"));
    }

    #[test]
    fn an_error_inside_a_character_does_not_panic() {
        assert!(problem("e \"e:\"eƚ").contains("syntax error"));
    }
}
