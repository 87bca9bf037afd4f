//! The tokens of a configuration file, each with the blanks before it.
//!
//! This module checks no syntax: every text has tokens, and they are the text without the blanks between them.

use std::iter::Peekable;
use std::str::CharIndices;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bracket {
    Brace,
    Square,
    Round,
    /// `${` or `%{`, closed by a brace.
    Template,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Number,
    Newline,
    /// With the line break, if it ends with the line.
    Comment,
    Comma,
    Dot,
    Ellipsis,
    DoubleColon,
    Equal,
    Minus,
    Bang,
    /// An operator or a sign after which a minus is a negation.
    Sign,
    Other,
    Open(Bracket),
    Close(Bracket),
    QuoteOpen,
    QuoteClose,
    /// `<<NAME` with its line break.
    HeredocOpen,
    /// The name that ends a heredoc, with the blanks before it.
    HeredocClose,
    /// Plain text in a template.
    Literal,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    /// The number of blanks before it.
    pub(super) blanks: usize,
}

impl Token<'_> {
    pub(super) fn ends_line(&self) -> bool {
        match self.kind {
            Kind::Newline => true,
            Kind::Comment => self.text.ends_with('\n'),
            _ => false,
        }
    }

    /// How many brackets it opens; -1 if it closes one.
    pub(super) fn depth_change(&self) -> isize {
        match self.kind {
            Kind::Open(_) => 1,
            Kind::Close(_) => -1,
            _ => 0,
        }
    }
}

/// What the scanner is in, apart from the file itself.
enum Inside<'t> {
    /// An interpolation or a directive, with its open braces.
    Template(usize),
    Quotes,
    Heredoc(Heredoc<'t>),
}

struct Heredoc<'t> {
    name: &'t str,
    at_line_start: bool,
}

/// Returns the tokens of a text, and the number of blanks after the last one.
pub(super) fn tokens(text: &str) -> (Vec<Token<'_>>, usize) {
    let mut scanner = Scanner {
        text,
        at: 0,
        inside: Vec::new(),
        tokens: Vec::new(),
    };
    let blanks = scanner.all();
    (scanner.tokens, blanks)
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    inside: Vec<Inside<'t>>,
    tokens: Vec<Token<'t>>,
}

impl<'t> Scanner<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn add(&mut self, kind: Kind, length: usize, blanks: usize) {
        let text = &self.rest()[..length];
        self.at += length;
        self.tokens.push(Token { kind, text, blanks });
    }

    fn all(&mut self) -> usize {
        loop {
            match self.inside.last_mut() {
                Some(Inside::Quotes) => self.quoted(),
                Some(Inside::Heredoc(_)) => self.heredoc(),
                Some(Inside::Template(_)) | None => {
                    let rest = self.rest();
                    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
                    self.at += blanks;
                    if self.rest().is_empty() {
                        return blanks;
                    }
                    self.code(blanks);
                }
            }
            if self.rest().is_empty() {
                return 0;
            }
        }
    }

    /// Reads a token outside of quotes and heredocs.
    fn code(&mut self, blanks: usize) {
        let rest = self.rest();
        let first = rest.chars().next().unwrap_or_default();
        if rest.starts_with('#') || rest.starts_with("//") {
            let length = rest.find('\n').map_or(rest.len(), |feed| feed + 1);
            return self.add(Kind::Comment, length, blanks);
        }
        if let Some(inner) = rest.strip_prefix("/*") {
            let length = inner.find("*/").map_or(rest.len(), |end| end + 4);
            return self.add(Kind::Comment, length, blanks);
        }
        if let Some((length, name)) = heredoc_start(rest) {
            self.add(Kind::HeredocOpen, length, blanks);
            let at_line_start = true;
            let heredoc = Heredoc {
                name,
                at_line_start,
            };
            return self.inside.push(Inside::Heredoc(heredoc));
        }
        if first.is_ascii_digit() {
            return self.add(Kind::Number, number_length(rest), blanks);
        }
        if is_word_start(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            return self.add(Kind::Word, length, blanks);
        }
        match first {
            '"' => {
                self.add(Kind::QuoteOpen, 1, blanks);
                self.inside.push(Inside::Quotes);
            }
            '{' => {
                if let Some(Inside::Template(open)) = self.inside.last_mut() {
                    *open += 1;
                }
                self.add(Kind::Open(Bracket::Brace), 1, blanks);
            }
            '}' => self.closing_brace(1, blanks),
            '~' if rest.starts_with("~}") => self.closing_brace(2, blanks),
            _ => {
                let (kind, length) = sign(rest, first);
                self.add(kind, length, blanks);
            }
        }
    }

    fn closing_brace(&mut self, length: usize, blanks: usize) {
        match self.inside.last_mut() {
            Some(Inside::Template(0)) => {
                self.inside.pop();
                self.add(Kind::Close(Bracket::Template), length, blanks);
            }
            Some(Inside::Template(open)) => {
                *open -= 1;
                self.add(Kind::Close(Bracket::Brace), length, blanks);
            }
            _ => self.add(Kind::Close(Bracket::Brace), length, blanks),
        }
    }

    /// Reads text in quotes up to the next template or the closing quote.
    fn quoted(&mut self) {
        let rest = self.rest();
        if rest.starts_with('"') {
            self.inside.pop();
            return self.add(Kind::QuoteClose, 1, 0);
        }
        if self.template_start() {
            return;
        }
        let mut chars = rest.char_indices().peekable();
        let end = loop {
            match chars.next() {
                None => break rest.len(),
                Some((at, '"')) => break at,
                Some((_, '\\')) => _ = chars.next(),
                Some((at, sign @ ('$' | '%'))) => match escape(sign, &mut chars) {
                    Escape::Template if at > 0 => break at,
                    Escape::Template | Escape::Literal => {}
                },
                Some(_) => {}
            }
        };
        self.add(Kind::Literal, end, 0);
    }

    /// Reads text of a heredoc up to the next template, the end of the line, or the end of the heredoc.
    fn heredoc(&mut self) {
        if self.template_start() {
            if let Some(Inside::Heredoc(heredoc)) = self.inside.iter_mut().rev().nth(1) {
                heredoc.at_line_start = false;
            }
            return;
        }
        let rest = self.rest();
        let Some(Inside::Heredoc(heredoc)) = self.inside.last_mut() else {
            return;
        };
        let line = &rest[..rest.find('\n').map_or(rest.len(), |feed| feed + 1)];
        if heredoc.at_line_start && line.trim() == heredoc.name {
            self.inside.pop();
            return self.add(
                Kind::HeredocClose,
                line.trim_end_matches(['\r', '\n']).len(),
                0,
            );
        }
        let mut chars = line.char_indices().peekable();
        let end = loop {
            match chars.next() {
                None => break line.len(),
                Some((at, sign @ ('$' | '%'))) => match escape(sign, &mut chars) {
                    Escape::Template => break at,
                    Escape::Literal => {}
                },
                Some(_) => {}
            }
        };
        heredoc.at_line_start = end == line.len();
        self.add(Kind::Literal, end, 0);
    }

    /// Reads the start of an interpolation or a directive, if the text begins with one.
    fn template_start(&mut self) -> bool {
        let rest = self.rest();
        if !rest.starts_with("${") && !rest.starts_with("%{") {
            return false;
        }
        let length = if rest[2..].starts_with('~') { 3 } else { 2 };
        self.add(Kind::Open(Bracket::Template), length, 0);
        self.inside.push(Inside::Template(0));
        true
    }
}

enum Escape {
    /// The sign begins a template.
    Template,
    /// The sign is text; if it is the first of `$${`, all three have been read.
    Literal,
}

fn escape(sign: char, chars: &mut Peekable<CharIndices<'_>>) -> Escape {
    let next = chars.peek().map(|&(_, c)| c);
    if next == Some('{') {
        return Escape::Template;
    }
    if next == Some(sign) {
        let mut after = chars.clone();
        after.next();
        if after.next().is_some_and(|(_, c)| c == '{') {
            chars.next();
            chars.next();
        }
    }
    Escape::Literal
}

/// Returns the length of the start of a heredoc, and its name.
fn heredoc_start(text: &str) -> Option<(usize, &str)> {
    let inner = text.strip_prefix("<<")?;
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let length = inner.find(|c| !is_word(c))?;
    let (name, rest) = inner.split_at(length);
    let rest = rest
        .strip_prefix("\r\n")
        .or_else(|| rest.strip_prefix('\n'))?;
    let is_name = name.starts_with(is_word_start);
    is_name.then_some((text.len() - rest.len(), name))
}

fn is_word_start(c: char) -> bool {
    c == '_' || c.is_ascii_alphabetic() || !c.is_ascii()
}

fn is_word(c: char) -> bool {
    is_word_start(c) || c == '-' || c.is_ascii_digit()
}

/// Returns the length of a number. A point at its end does not belong to it.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let (mut at, mut end) = (1, 1);
    loop {
        match bytes.get(at) {
            Some(b'0'..=b'9') => {
                at += 1;
                end = at;
            }
            Some(b'.') => at += 1,
            Some(b'e' | b'E') => {
                let digit = match bytes.get(at + 1) {
                    Some(b'+' | b'-') => at + 2,
                    _ => at + 1,
                };
                if !is_digit(digit) {
                    return end;
                }
                at = digit + 1;
                end = at;
            }
            _ => return end,
        }
    }
}

fn sign(text: &str, first: char) -> (Kind, usize) {
    const LONG: [(&str, Kind); 12] = [
        ("\r\n", Kind::Newline),
        ("...", Kind::Ellipsis),
        ("::", Kind::DoubleColon),
        ("==", Kind::Sign),
        ("!=", Kind::Sign),
        (">=", Kind::Sign),
        ("<=", Kind::Sign),
        ("&&", Kind::Sign),
        ("||", Kind::Sign),
        ("=>", Kind::Other),
        ("\n", Kind::Newline),
        ("\r", Kind::Other),
    ];
    for (sign, kind) in LONG {
        if text.starts_with(sign) {
            return (kind, sign.len());
        }
    }
    let kind = match first {
        ',' => Kind::Comma,
        '.' => Kind::Dot,
        '=' => Kind::Equal,
        '-' => Kind::Minus,
        '!' => Kind::Bang,
        '+' | '*' | '/' | '%' | '<' | '>' | '?' | ':' => Kind::Sign,
        '[' => Kind::Open(Bracket::Square),
        ']' => Kind::Close(Bracket::Square),
        '(' => Kind::Open(Bracket::Round),
        ')' => Kind::Close(Bracket::Round),
        _ => Kind::Other,
    };
    (kind, first.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let (tokens, _) = tokens(text);
        let words: Vec<&str> = tokens.iter().map(|token| token.text).collect();
        words.join("|").replace('\n', "⏎")
    }

    #[test]
    fn text_is_split_into_tokens() {
        let table = [
            ("a = 1.5e-3 # x\n", "a|=|1.5e-3|# x⏎"),
            ("a.0.*.b...", "a|.|0|.|*|.|b|..."),
            ("x=\"a${ b }c\"\n", "x|=|\"|a|${|b|}|c|\"|⏎"),
            ("\"$${a} %%{b} $ ${c}\"", "\"|$${a} %%{b} $ |${|c|}|\""),
            ("\"\\\"${{a=1}}\"", "\"|\\\"|${|{|a|=|1|}|}|\""),
            (
                "x = <<-EOT\n  a ${b}\n EOTX\n  EOT\ny = 1\n",
                "x|=|<<-EOT⏎|  a |${|b|}|⏎| EOTX⏎|  EOT|⏎|y|=|1|⏎",
            ),
            ("a-b::c(/* = */-1)", "a-b|::|c|(|/* = */|-|1|)"),
            ("%{~ if x ~}", "%|{|~|if|x|~}"),
            ("é=\"ü\"", "é|=|\"|ü|\""),
            ("1..2", "1..2"),
            ("1em", "1|em"),
            ("a << b", "a|<|<|b"),
        ];
        for (text, expected) in table {
            assert_eq!(words(text), expected, "{text}");
        }
    }
}
