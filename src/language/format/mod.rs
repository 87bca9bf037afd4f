//! The layout of configuration files, as Terramate and Terraform have it: an indentation of two blanks for each
//! open bracket, single blanks between the parts of an expression, and aligned `=` signs and comments of neighbouring
//! lines.
//!
//! Only blanks within and before lines change. Line breaks, comments and the text of strings stay.

mod tokens;

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

use self::tokens::{Bracket, Kind, Token, tokens};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::canonical::canonical;
use crate::language::parse::parse_whole;
use crate::language::syntax::Body;
use crate::source::{FileId, Span};

const INDENT: usize = 2;

/// Returns a text in the usual layout. Fails if the text has a syntax error. The spans in it name
/// no file yet.
pub fn format(text: &str) -> Result<String, Box<Diagnostic>> {
    let file = FileId::UNPLACED;
    let before = parse_whole(file, text)?;
    let formatted = layout(text);
    // The parser may see a difference where the language has none.
    let is_same =
        parse_whole(file, &formatted).is_ok_and(|after| meaning(&after) == meaning(&before));
    if is_same {
        return Ok(formatted);
    }
    let (start, end) = (0, 0);
    let diagnostic = Diagnostic::error(Code::Unsupported, "this file cannot be formatted");
    let here = Span { file, start, end };
    Err(Box::new(diagnostic.label(here, "its layout has a meaning")))
}

fn meaning(body: &Body) -> String {
    canonical(body, &|_, _| true, &|_, _| false)
}

/// Lays out a text, valid or not.
fn layout(text: &str) -> String {
    let (mut tokens, blanks_at_end) = tokens(text);
    let lines = lines(&tokens);
    indent(&lines, &mut tokens);
    for line in &lines {
        space(&mut tokens[line.lead.clone()]);
        space(&mut tokens[line.assign.clone()]);
    }
    align(&lines, &mut tokens, |line| (line.lead.start, &line.assign));
    align(&lines, &mut tokens, |line| (line.lead.start, &line.comment));
    let mut laid_out = String::with_capacity(text.len());
    for token in &tokens {
        laid_out.extend(std::iter::repeat_n(' ', token.blanks));
        laid_out.push_str(token.text);
    }
    laid_out.extend(std::iter::repeat_n(' ', blanks_at_end));
    laid_out
}

/// The tokens of a line, in three columns. A heredoc is part of the line that it begins on.
struct Line {
    lead: Range<usize>,
    /// From the `=` on; empty unless the line has a whole attribute.
    assign: Range<usize>,
    /// A comment after something else, up to the end of the line.
    comment: Range<usize>,
}

fn lines(tokens: &[Token]) -> Vec<Line> {
    let mut start = 0;
    let mut lines = Vec::new();
    for line in tokens.split_inclusive(Token::ends_line) {
        let end = start + line.len();
        let is_comment = line.len() > 1 && line[line.len() - 1].kind == Kind::Comment;
        let comment = if is_comment { end - 1..end } else { end..end };
        let code = &tokens[start..comment.start];
        let sign = code
            .iter()
            .skip(1)
            .position(|token| token.kind == Kind::Equal);
        let assign = match sign.map(|sign| sign + 1) {
            // An open bracket begins an expression of several lines.
            Some(sign) if depth_change(&code[sign..]) == 0 => start + sign..comment.start,
            _ => comment.start..comment.start,
        };
        lines.push(Line {
            lead: start..assign.start,
            assign,
            comment,
        });
        start = end;
    }
    lines
}

fn depth_change(tokens: &[Token]) -> isize {
    tokens.iter().map(Token::depth_change).sum()
}

/// Indents lines. All brackets that one line leaves open are one level.
fn indent(lines: &[Line], tokens: &mut [Token]) {
    let mut levels: Vec<isize> = Vec::new();
    for line in lines {
        let lead = &tokens[line.lead.clone()];
        if lead[0].kind == Kind::Newline {
            tokens[line.lead.start].blanks = 0;
            continue;
        }
        let heredoc = lead.iter().position(|it| it.kind == Kind::HeredocOpen);
        let counted = &lead[..heredoc.unwrap_or(lead.len())];
        let change = depth_change(counted) + depth_change(&tokens[line.assign.clone()]);
        let mut closed = -change;
        while closed > 0
            && let Some(open) = levels.last_mut()
        {
            let level = *open;
            if level > closed {
                *open -= closed;
            } else {
                levels.pop();
            }
            closed -= level;
        }
        tokens[line.lead.start].blanks = INDENT * levels.len();
        if change > 0 {
            levels.push(change);
        }
    }
}

/// Sets the blanks between the tokens of a column.
fn space(tokens: &mut [Token]) {
    for at in 1..tokens.len() {
        let before = at.checked_sub(2).map(|before| tokens[before].kind);
        let is_apart = is_apart(before, &tokens[at - 1], tokens[at].kind);
        tokens[at].blanks = usize::from(is_apart);
    }
}

/// Returns whether there is a blank between a token and the next one.
fn is_apart(before: Option<Kind>, token: &Token, next: Kind) -> bool {
    use Bracket::{Brace, Round, Square, Template};
    use Kind::{
        Bang, Close, Comma, Dot, DoubleColon, Ellipsis, HeredocClose, HeredocOpen, Literal, Minus,
        Newline, Number, Open, QuoteClose, QuoteOpen, Word,
    };
    let pair = (token.kind, next);
    if matches!(
        pair,
        (Dot, _)
            | (_, Newline | Dot | Comma | Ellipsis)
            | (Word, Open(Round) | DoubleColon)
            | (DoubleColon, Word)
    ) {
        return false;
    }
    if token.kind == Comma {
        return true;
    }
    if matches!(
        pair,
        (Literal | QuoteOpen | HeredocOpen, _) | (_, Literal | QuoteClose | HeredocClose)
    ) {
        return false;
    }
    // `for x in [1]`
    if token.text == "in" && token.kind == Word && before == Some(Word) {
        return true;
    }
    if matches!(
        pair,
        (Bang, _) | (Word | Number | Close(_), Open(Square)) | (Open(Brace), Close(Brace))
    ) {
        return false;
    }
    if token.kind == Minus {
        return !before.is_none_or(precedes_negation);
    }
    let is_spacious = matches!(
        pair,
        (Open(Brace), _)
            | (_, Close(Brace))
            | (Open(Template), Open(Brace))
            | (Close(Brace), Close(Template))
    );
    let is_tight = matches!(
        pair,
        (Open(_), _) | (_, Close(_)) | (Close(Template), Open(Template))
    );
    is_spacious || !is_tight
}

/// Returns whether a minus after a token is a negation.
fn precedes_negation(kind: Kind) -> bool {
    match kind {
        Kind::Open(bracket) => bracket != Bracket::Template,
        Kind::Equal | Kind::Comma | Kind::Minus | Kind::Bang | Kind::Sign => true,
        _ => false,
    }
}

/// Aligns a column of neighbouring lines that have it. `column` returns the first token of a line and the column.
fn align(lines: &[Line], tokens: &mut [Token], column: impl Fn(&Line) -> (usize, &Range<usize>)) {
    let has_column = |line: &Line| !column(line).1.is_empty();
    for chunk in lines.chunk_by(|a, b| has_column(a) == has_column(b)) {
        if !has_column(&chunk[0]) {
            continue;
        }
        let widths = chunk.iter().map(|line| {
            let (start, column) = column(line);
            width(&tokens[start..column.start])
        });
        let widths: Vec<usize> = widths.collect();
        let widest = widths.iter().max().copied().unwrap_or_default();
        for (line, width) in chunk.iter().zip(widths) {
            tokens[column(line).1.start].blanks = widest - width + 1;
        }
    }
}

/// Returns the width of tokens with the blanks before them, in characters as a reader sees them.
fn width(tokens: &[Token]) -> usize {
    let width = |token: &Token| token.blanks + token.text.graphemes(true).count();
    tokens.iter().map(width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_follow_the_usual_layout() {
        let table = [
            ("a=1\n", "a = 1\n"),
            ("a   =    1", "a = 1"),
            ("\n\n  \na = 1\n\n\n", "\n\n\na = 1\n\n\n"),
            (
                "stack{\nname=\"a\"\n\tdescription = \"b\"#x\nid=1 // y\n}\n",
                "stack {\n  name        = \"a\"\n  description = \"b\" #x\n  id          = 1   // y\n}\n",
            ),
            (
                "a = [\n1,\n {\nb=2\n}\n]\nbb = 3\n",
                "a = [\n  1,\n  {\n    b = 2\n  }\n]\nbb = 3\n",
            ),
            (
                "a = f( x ,y )+-1 - 2*( 3 )\n",
                "a = f(x, y) + -1 - 2 * (3)\n",
            ),
            ("a = {b=1}\nc = { }\n", "a = { b = 1 }\nc = {}\n"),
            (
                "a = [ for x in [1] :x if ! x ]\nb = c [0] . d\n",
                "a = [for x in [1] : x if !x]\nb = c[0].d\n",
            ),
            (
                "a = \"${ x }%{ if y }z%{ endif }\"\n",
                "a = \"${x}%{if y}z%{endif}\"\n",
            ),
            (
                "a = <<-EOT\n   x = ${ 1 }\n  EOT\nbbb = 1\n",
                "a   = <<-EOT\n   x = ${1}\n  EOT\nbbb = 1\n",
            ),
            (
                "x {\ny = f([{\na = 1\n}])\nz = 1\n}\n",
                "x {\n  y = f([{\n    a = 1\n  }])\n  z = 1\n}\n",
            ),
            ("a =\t1\r\nbb = 2\r\n", "a  = 1\r\nbb = 2\r\n"),
            ("é = 1\naa = 2\n", "é  = 1\naa = 2\n"),
            ("script \"a\"  \"b\"{}\n", "script \"a\" \"b\" {}\n"),
        ];
        for (text, expected) in table {
            let formatted = format(text).unwrap();
            assert_eq!(formatted, expected, "{text}");
        }
    }
}
