//! Recognises `globals` blocks whose content need not be parsed until it is needed.
//!
//! Repositories have thousands of globals, and most commands use none. Building their tree takes far longer than
//! reading the files, so the content of a block is left alone if a scan that builds nothing finds no syntax error.
//! Only plain content is recognised: attributes with literals, names, operators, calls, collections, `for` and simple
//! templates. A block with anything else goes to the parser, so this module never has to report errors.
//!
//! Most functions skip the item that they are named after: they take a text that begins with it and return the rest,
//! or `None` if they do not recognise it.

mod expression;

use std::ops::Range;

use memchr::memmem;

pub(super) use self::expression::number;
use self::expression::{expression, is_keyword};
use super::lower::span;
use crate::language::syntax::{DeferredBlock, Name};
use crate::source::{FileId, Span};

/// A block whose content can wait.
pub(super) struct SkimmedBlock {
    pub(super) block: DeferredBlock,
    /// Where it is, with the rest of its last line.
    pub(super) range: Range<usize>,
}

/// Returns the top-level `globals` blocks whose content is well-formed, up to the first thing that is not
/// recognised.
pub(super) fn globals(file: FileId, text: &str) -> Vec<SkimmedBlock> {
    let mut found = Vec::new();
    if memmem::find(text.as_bytes(), b"globals").is_none() {
        return found;
    }
    let places = Places {
        file,
        length: text.len(),
    };
    let mut rest = text.as_bytes();
    while let Some(after) = top_level(rest, places, &mut found) {
        rest = after;
    }
    found
}

/// Finds places in a file. Every text here goes on to the end of the file, so its length says where it
/// begins.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub(super) file: FileId,
    pub(super) length: usize,
}

impl Places {
    /// Returns a word that is not reserved.
    pub(super) fn word(self, text: &[u8]) -> Option<(Name, &[u8])> {
        let (word, rest) = word(text)?;
        let name = self.name(word, text, rest)?;
        (!is_keyword(word)).then_some((name, rest))
    }

    /// Returns the labels of a block, and what follows its opening brace.
    pub(super) fn labels(self, text: &[u8]) -> Option<(Vec<Name>, &[u8])> {
        let mut labels = Vec::new();
        let mut rest = text;
        loop {
            let start = spaces(rest);
            let (label, after) = match start {
                [b'{', content @ ..] => return Some((labels, content)),
                [b'"', ..] => plain_string(start)?,
                _ => word(start)?,
            };
            labels.push(self.name(label, start, after)?);
            rest = after;
        }
    }

    /// Returns a name that reaches from the beginning of `start` to that of `after`.
    fn name(self, name: &[u8], start: &[u8], after: &[u8]) -> Option<Name> {
        Some(Name {
            text: std::str::from_utf8(name).ok()?.into(),
            span: self.span(start, after),
        })
    }

    /// Returns the range from the beginning of `text` to that of `after`.
    fn range(self, text: &[u8], after: &[u8]) -> Range<usize> {
        self.length - text.len()..self.length - after.len()
    }

    pub(super) fn span(self, text: &[u8], after: &[u8]) -> Span {
        span(self.file, &self.range(text, after))
    }
}

fn top_level<'t>(
    text: &'t [u8],
    places: Places,
    found: &mut Vec<SkimmedBlock>,
) -> Option<&'t [u8]> {
    let start = blank_lines(text);
    let (kind, after) = places.word(start)?;
    let (labels, content) = places.labels(after)?;
    if &*kind.text != "globals" {
        return rest_of_block(content);
    }
    let end = attributes(content)?;
    let after = end_of_line(end.strip_prefix(b"}")?)?;
    found.push(SkimmedBlock {
        block: DeferredBlock {
            kind,
            labels,
            content: places.span(content, end),
        },
        range: places.range(start, after),
    });
    Some(after)
}

/// Splits a text before the first byte that is not of a kind.
fn split(text: &[u8], is_kind: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let mut rest = text;
    while let [byte, after @ ..] = rest
        && is_kind(*byte)
    {
        rest = after;
    }
    (&text[..text.len() - rest.len()], rest)
}

pub(super) fn spaces(text: &[u8]) -> &[u8] {
    split(text, |byte| matches!(byte, b' ' | b'\t')).1
}

/// Skips blanks and comments up to the end of the line. Nothing else may come before it.
pub(super) fn end_of_line(text: &[u8]) -> Option<&[u8]> {
    match spaces(text) {
        [] => Some(&[]),
        [b'\n', rest @ ..] => Some(rest),
        rest => comment(rest),
    }
}

/// Skips a comment up to the end of its line.
fn comment(text: &[u8]) -> Option<&[u8]> {
    if !text.starts_with(b"#") && !text.starts_with(b"//") {
        return None;
    }
    let line = memchr::memchr(b'\n', text).unwrap_or(text.len());
    let is_odd = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    if text[..line].iter().any(is_odd) {
        return None;
    }
    Some(text.get(line + 1..).unwrap_or_default())
}

/// Skips blanks, line ends and comments.
pub(super) fn blank_lines(text: &[u8]) -> &[u8] {
    let mut rest = text;
    loop {
        rest = match rest {
            [b' ' | b'\t' | b'\n', rest @ ..] => rest,
            [b'#' | b'/', ..] => match comment(rest) {
                Some(rest) => rest,
                None => return rest,
            },
            _ => return rest,
        };
    }
}

/// Skips blanks, and inside of brackets also line ends and comments.
fn gap(text: &[u8], in_brackets: bool) -> &[u8] {
    if in_brackets {
        blank_lines(text)
    } else {
        spaces(text)
    }
}

pub(super) fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = text.first()?;
    if !first.is_ascii_alphabetic() && *first != b'_' {
        return None;
    }
    Some(split(text, |byte| IS_IN_WORD[usize::from(byte)]))
}

/// Returns the content of a string without templates or escapes, and what follows.
pub(super) fn plain_string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (content, rest) = split(text.strip_prefix(b"\"")?, is_plain);
    Some((content, rest.strip_prefix(b"\"")?))
}

/// Skips the rest of another block. Braces in strings and comments do not count.
fn rest_of_block(text: &[u8]) -> Option<&[u8]> {
    let mut depth = 1;
    let mut rest = text;
    loop {
        rest = match rest {
            [b'{', rest @ ..] => {
                depth += 1;
                rest
            }
            [b'}', rest @ ..] if depth == 1 => return end_of_line(rest),
            [b'}', rest @ ..] => {
                depth -= 1;
                rest
            }
            [b'"', ..] => plain_string(rest)?.1,
            [b'#' | b'/', ..] => comment(rest)?,
            [] | [b'<' | b'\r', ..] => return None, // maybe a heredoc
            [_, rest @ ..] => rest,
        };
    }
}

/// Skips attributes, each on lines of its own, up to the closing brace.
fn attributes(text: &[u8]) -> Option<&[u8]> {
    let mut rest = spaces(text);
    if rest.starts_with(b"}") {
        return Some(rest);
    }
    rest = end_of_line(rest)?;
    let mut names: Vec<&[u8]> = Vec::new();
    loop {
        let line = spaces(rest);
        rest = match line {
            [b'}', ..] => return are_unique(&names).then_some(line),
            [b'\n' | b'#' | b'/', ..] => end_of_line(line)?,
            _ => {
                let (name, rest) = word(line)?;
                names.push(name);
                let value = spaces(rest).strip_prefix(b"=")?;
                end_of_line(expression(spaces(value), false, 0)?)?
            }
        };
    }
}

/// Returns whether a byte is literal in a string.
fn is_plain(byte: u8) -> bool {
    IS_PLAIN[usize::from(byte)]
}

/// Whether a byte can be part of a word, by byte. A look-up is faster than comparisons.
static IS_IN_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        byte += 1;
    }
    table
};

/// Whether a byte is literal in a string, by byte.
static IS_PLAIN: [bool; 256] = {
    let mut table = [true; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        let is_special = matches!(byte, b'"' | b'\\' | b'$' | b'%');
        table[byte as usize] = !is_special && !byte.is_ascii_control();
        byte += 1;
    }
    table
};

pub(super) fn are_unique(names: &[&[u8]]) -> bool {
    // Numbers are compared faster than texts, and few names agree in the first eight bytes.
    let first_bytes = |name: &[u8]| {
        let bytes = name.iter().take(8);
        bytes.fold(0, |number: u64, &byte| number << 8 | u64::from(byte))
    };
    let mut sorted: Vec<(u64, &[u8])> = names.iter().map(|it| (first_bytes(it), *it)).collect();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

#[cfg(test)]
mod tests;
