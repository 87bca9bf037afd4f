//! Recognises `globals` blocks whose content need not be parsed until it is needed.
//!
//! Repositories have thousands of globals, and most commands use none. Building their tree takes far longer
//! than reading the files, so the content of a block is left alone if a look at it, without building
//! anything, shows that it has no syntax error. Only plain content is recognised: attributes with literals,
//! names, operators, calls, collections, `for` and simple templates. A block with anything else goes to
//! the parser, so this module never has to know what is wrong.

mod expression;

use std::ops::Range;

use memchr::memmem;

use super::lower::span;
use crate::language::syntax::{DeferredBlock, Name};
use crate::source::FileId;

/// A block whose content can wait.
pub(super) struct Skimmed {
    /// The block.
    pub(super) block: DeferredBlock,
    /// Where it is, with the rest of its last line.
    pub(super) range: Range<usize>,
}

/// Returns the top-level `globals` blocks whose content is well-formed, up to the first thing that is not
/// recognised.
pub(super) fn globals(file: FileId, text: &str) -> Vec<Skimmed> {
    let mut found = Vec::new();
    if memmem::find(text.as_bytes(), b"globals").is_none() {
        return found;
    }
    let mut skim = Skim {
        file,
        text: text.as_bytes(),
        at: 0,
    };
    while skim.top_level(&mut found).is_some() {}
    found
}

struct Skim<'t> {
    file: FileId,
    text: &'t [u8],
    at: usize,
}

/// What is not recognised is `None`.
impl<'t> Skim<'t> {
    /// Goes over one block.
    fn top_level(&mut self, found: &mut Vec<Skimmed>) -> Option<()> {
        self.blank_lines();
        let start = self.at;
        let kind = self.word()?;
        let kind = self.name(kind, start)?;
        let mut labels = Vec::new();
        loop {
            self.spaces();
            let start = self.at;
            let label = match self.peek()? {
                b'{' => break,
                b'"' => self.plain_string()?,
                _ => self.word()?,
            };
            labels.push(self.name(label, start)?);
        }
        self.at += 1;
        if &*kind.text != "globals" {
            return self.rest_of_block();
        }
        let content = self.at;
        self.content()?;
        let content = span(self.file, &(content..self.at));
        self.eat(b'}')?;
        self.end_of_line()?;
        found.push(Skimmed {
            block: DeferredBlock {
                kind,
                labels,
                content,
            },
            range: start..self.at,
        });
        Some(())
    }

    /// Makes a name of a text that began at `start` and ends here.
    fn name(&self, text: &[u8], start: usize) -> Option<Name> {
        Some(Name {
            text: std::str::from_utf8(text).ok()?.into(),
            span: span(self.file, &(start..self.at)),
        })
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn eats(&mut self, word: &[u8]) -> bool {
        let starts = self.text[self.at..].starts_with(word);
        if starts {
            self.at += word.len();
        }
        starts
    }

    /// Skips bytes of a kind, and returns them.
    fn skip(&mut self, is_kind: impl Fn(u8) -> bool) -> &'t [u8] {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|&byte| !is_kind(byte));
        let skipped = &rest[..length.unwrap_or(rest.len())];
        self.at += skipped.len();
        skipped
    }

    fn spaces(&mut self) {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
    }

    /// Skips blanks and comments up to the end of the line. Nothing else may come before it.
    fn end_of_line(&mut self) -> Option<()> {
        self.spaces();
        match self.peek() {
            None => Some(()),
            Some(b'\n') => {
                self.at += 1;
                Some(())
            }
            Some(b'#' | b'/') => self.comment(),
            Some(_) => None,
        }
    }

    /// Skips a comment up to the end of its line.
    fn comment(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        if !rest.starts_with(b"#") && !rest.starts_with(b"//") {
            return None;
        }
        let line = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        if rest[..line]
            .iter()
            .any(|byte| byte.is_ascii_control() && *byte != b'\t')
        {
            return None;
        }
        self.at = (self.at + line + 1).min(self.text.len());
        Some(())
    }

    /// Skips blanks, line ends and comments.
    fn blank_lines(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n') => {
                    self.skip(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
                }
                Some(b'#' | b'/') if self.comment().is_some() => {}
                _ => return,
            }
        }
    }

    /// Skips blanks, and inside of brackets also line ends and comments.
    fn gap(&mut self, in_brackets: bool) {
        if in_brackets {
            self.blank_lines();
        } else {
            self.spaces();
        }
    }

    fn word(&mut self) -> Option<&'t [u8]> {
        let first = self.peek()?;
        if !first.is_ascii_alphabetic() && first != b'_' {
            return None;
        }
        Some(self.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')))
    }

    /// Skips a string without templates or escapes, and returns its content.
    fn plain_string(&mut self) -> Option<&'t [u8]> {
        self.eat(b'"')?;
        let content = self.skip(is_plain);
        self.eat(b'"')?;
        Some(content)
    }

    /// Skips the rest of another block. Braces in strings and comments do not count.
    fn rest_of_block(&mut self) -> Option<()> {
        let mut depth = 1;
        loop {
            match self.peek()? {
                b'{' => depth += 1,
                b'}' if depth == 1 => {
                    self.at += 1;
                    return self.end_of_line();
                }
                b'}' => depth -= 1,
                b'"' => {
                    self.plain_string()?;
                    continue;
                }
                b'#' | b'/' => {
                    self.comment()?;
                    continue;
                }
                b'<' | b'\r' => return None, // maybe a heredoc
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Goes over attributes, each on lines of its own, up to the closing brace.
    fn content(&mut self) -> Option<()> {
        self.spaces();
        if self.peek()? == b'}' {
            return Some(());
        }
        self.end_of_line()?;
        let mut names: Vec<&[u8]> = Vec::new();
        loop {
            self.blank_lines();
            if self.peek()? == b'}' {
                break;
            }
            names.push(self.word()?);
            self.spaces();
            self.eat(b'=')?;
            self.spaces();
            self.expression(false, 0)?;
            self.end_of_line()?;
        }
        are_unique(&names).then_some(())
    }
}

/// Returns whether a byte means itself in a string.
fn is_plain(byte: u8) -> bool {
    !matches!(byte, b'"' | b'\\' | b'$' | b'%') && !byte.is_ascii_control()
}

/// Returns whether no two names are equal.
fn are_unique(names: &[&[u8]]) -> bool {
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
