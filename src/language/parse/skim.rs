//! Recognises `globals` blocks whose content need not be parsed until it is needed.
//!
//! Repositories have thousands of globals, and most commands use none. Building their tree takes far longer
//! than reading the files, so the content of a block is left alone if a look at it, without building
//! anything, shows that it has no syntax error. Only plain content is recognised: attributes with literals,
//! names, operators, calls, collections, `for` and simple templates. A block with anything else goes to
//! the parser, so this module never has to know what is wrong.

use std::ops::Range;

use memchr::memmem;

/// How deeply expressions may be nested here; the parser accepts more.
const MAX_DEPTH: usize = 16;

/// How many operators may follow each other here; the parser accepts more.
const MAX_OPERATORS: usize = 32;

/// The reserved words of the language.
const KEYWORDS: [&str; 6] = ["else", "endfor", "endif", "for", "if", "in"];

/// A block whose content can wait.
pub(super) struct Skimmed {
    /// Where the word `globals` is.
    pub(super) kind: usize,
    /// What is between the braces.
    pub(super) content: Range<usize>,
}

/// Returns the top-level `globals` blocks whose content is well-formed, up to the first thing that is not
/// recognised.
pub(super) fn globals(text: &str) -> Vec<Skimmed> {
    let mut found = Vec::new();
    if memmem::find(text.as_bytes(), b"globals").is_none() {
        return found;
    }
    let mut skim = Skim {
        text: text.as_bytes(),
        at: 0,
    };
    while skim.top_level(&mut found).is_some() {}
    found
}

struct Skim<'t> {
    text: &'t [u8],
    at: usize,
}

/// What is not recognised is `None`.
impl<'t> Skim<'t> {
    /// Goes over one block.
    fn top_level(&mut self, found: &mut Vec<Skimmed>) -> Option<()> {
        self.blank_lines();
        let kind = self.at;
        let is_globals = self.word()? == "globals";
        loop {
            self.spaces();
            match self.peek()? {
                b'{' => break,
                b'"' => _ = self.plain_string()?,
                _ => _ = self.word()?,
            }
        }
        self.at += 1;
        let start = self.at;
        if !is_globals {
            return self.rest_of_block();
        }
        self.content()?;
        let content = start..self.at;
        self.eat(b'}')?;
        self.end_of_line()?;
        found.push(Skimmed { kind, content });
        Some(())
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

    fn spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
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
                Some(b' ' | b'\t' | b'\n') => self.at += 1,
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

    fn word(&mut self) -> Option<&'t str> {
        let start = self.at;
        let first = self.peek()?;
        if !first.is_ascii_alphabetic() && first != b'_' {
            return None;
        }
        while matches!(self.peek(), Some(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        {
            self.at += 1;
        }
        std::str::from_utf8(&self.text[start..self.at]).ok()
    }

    /// Skips a string without templates or escapes, and returns its content.
    fn plain_string(&mut self) -> Option<&'t [u8]> {
        self.eat(b'"')?;
        let start = self.at;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' | b'$' | b'%' => return None,
                byte if byte.is_ascii_control() => return None,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(&self.text[start..self.at - 1])
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
        let mut names: Vec<&str> = Vec::new();
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
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        (names.len() == count).then_some(())
    }

    fn expression(&mut self, in_brackets: bool, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        for _ in 0..MAX_OPERATORS {
            self.operand(depth)?;
            let before = self.at;
            self.gap(in_brackets);
            let operators: [&[u8]; 13] = [
                b"==", b"!=", b"<=", b">=", b"&&", b"||", b"+", b"-", b"*", b"/", b"%", b"<", b">",
            ];
            if self.eats(b"?") {
                self.gap(in_brackets);
                self.expression(in_brackets, depth + 1)?;
                self.gap(in_brackets);
                self.eat(b':')?;
                self.gap(in_brackets);
                return self.expression(in_brackets, depth + 1);
            }
            let is_comment = self.text[self.at..].starts_with(b"//");
            if is_comment || !operators.iter().any(|operator| self.eats(operator)) {
                self.at = before;
                return Some(());
            }
            self.gap(in_brackets);
        }
        None
    }

    fn operand(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.template(depth)?,
            b'0'..=b'9' => return self.number(),
            b'(' => {
                self.at += 1;
                self.blank_lines();
                self.expression(true, depth + 1)?;
                self.blank_lines();
                self.eat(b')')?;
            }
            b'[' => {
                self.at += 1;
                self.blank_lines();
                if !self.for_expression(b']', depth)? {
                    self.list(b']', depth)?;
                }
            }
            b'{' => {
                self.at += 1;
                self.blank_lines();
                if !self.for_expression(b'}', depth)? {
                    self.object(depth)?;
                }
            }
            b'!' | b'-' => {
                self.at += 1;
                self.spaces();
                if depth == MAX_DEPTH {
                    return None;
                }
                return self.operand(depth + 1);
            }
            _ => {
                let word = self.word()?;
                if KEYWORDS.contains(&word) {
                    return None;
                }
                if self.eats(b"(") {
                    self.blank_lines();
                    self.list(b')', depth)?;
                }
            }
        }
        self.steps(depth)
    }

    fn steps(&mut self, depth: usize) -> Option<()> {
        loop {
            match self.peek() {
                Some(b'.') if !self.text[self.at..].starts_with(b"...") => {
                    self.at += 1;
                    if !self.eats(b"*") {
                        self.word()?;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    if !self.eats(b"*]") {
                        self.expression(false, depth + 1)?;
                        self.eat(b']')?;
                    }
                }
                _ => return Some(()),
            }
        }
    }

    /// Goes over a number that has few digits and no exponent.
    fn number(&mut self) -> Option<()> {
        let mut digits = || {
            let start = self.at;
            while matches!(self.peek(), Some(b'0'..=b'9')) {
                self.at += 1;
            }
            (1..=15).contains(&(self.at - start)).then_some(())
        };
        digits()?;
        if self.eats(b".") {
            let start = self.at;
            while matches!(self.peek(), Some(b'0'..=b'9')) {
                self.at += 1;
            }
            if !(1..=15).contains(&(self.at - start)) {
                return None;
            }
        }
        let follows = self.peek();
        let ends =
            follows.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"._-[\"".contains(&byte));
        ends.then_some(())
    }

    /// Goes over a string whose templates are simple interpolations.
    fn template(&mut self, depth: usize) -> Option<()> {
        self.eat(b'"')?;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => {
                    self.at += 1;
                    if !b"nrt\"\\".contains(&self.peek()?) {
                        return None;
                    }
                }
                b'$' if self.text[self.at..].starts_with(b"${") => {
                    self.at += 2;
                    self.spaces();
                    self.expression(false, depth + 1)?;
                    self.spaces();
                    self.eat(b'}')?;
                    continue;
                }
                // An escape, or something rare.
                b'$' | b'%' => return None,
                byte if byte.is_ascii_control() => return None,
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        Some(())
    }

    /// Goes over elements, or arguments, up to the closing bracket.
    fn list(&mut self, closing: u8, depth: usize) -> Option<()> {
        loop {
            self.blank_lines();
            if self.peek()? == closing {
                break;
            }
            self.expression(true, depth + 1)?;
            self.blank_lines();
            match self.peek()? {
                b',' => self.at += 1,
                byte if byte == closing => break,
                _ => return None,
            }
        }
        self.at += 1;
        Some(())
    }

    /// Goes over the entries of an object, which commas or line ends separate, up to the closing brace.
    fn object(&mut self, depth: usize) -> Option<()> {
        let mut keys: Vec<&[u8]> = Vec::new();
        loop {
            self.blank_lines();
            if self.peek()? == b'}' {
                break;
            }
            let key = match self.peek()? {
                b'"' => self.plain_string()?,
                _ => self
                    .word()
                    .filter(|word| !KEYWORDS.contains(word))?
                    .as_bytes(),
            };
            keys.push(key);
            self.spaces();
            if !self.eats(b"=") && !self.eats(b":") {
                return None;
            }
            self.spaces();
            self.expression(false, depth + 1)?;
            self.spaces();
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => break,
                _ => self.end_of_line()?,
            }
        }
        self.at += 1;
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        (keys.len() == count).then_some(())
    }

    /// Goes over a `for` after its opening bracket, if there is one.
    fn for_expression(&mut self, closing: u8, depth: usize) -> Option<bool> {
        let start = self.at;
        if self.peek().is_none_or(|byte| byte != b'f') || self.word()? != "for" {
            self.at = start;
            return Some(false);
        }
        if self.peek()? != b' ' {
            return None;
        }
        self.spaces();
        self.variable()?;
        self.spaces();
        if self.eats(b",") {
            self.spaces();
            self.variable()?;
            self.spaces();
        }
        if self.word()? != "in" || self.peek()? != b' ' {
            return None;
        }
        self.spaces();
        self.expression(true, depth + 1)?;
        self.blank_lines();
        self.eat(b':')?;
        self.blank_lines();
        self.expression(true, depth + 1)?;
        self.blank_lines();
        if closing == b'}' {
            if !self.eats(b"=>") {
                return None;
            }
            self.blank_lines();
            self.expression(true, depth + 1)?;
            self.blank_lines();
        }
        if self.peek()? == b'i' {
            if self.word()? != "if" || self.peek()? != b' ' {
                return None;
            }
            self.spaces();
            self.expression(true, depth + 1)?;
            self.blank_lines();
        }
        self.eat(closing)?;
        Some(true)
    }

    fn variable(&mut self) -> Option<()> {
        let word = self.word()?;
        (!KEYWORDS.contains(&word)).then_some(())
    }
}

#[cfg(test)]
mod tests;
