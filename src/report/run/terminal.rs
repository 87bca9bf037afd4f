//! Which parts of a command's output reach a terminal, and what `NO_COLOR` removes.
//!
//! A terminal obeys what is printed to it: a command could move the cursor over another one's lines,
//! change the title or make the terminal type an answer. Of captured output, `orch` prints only text,
//! line ends, tabs and colours to a terminal. Elsewhere bytes pass unchanged, but `NO_COLOR` drops
//! colours everywhere.

use std::io::Write as _;

use anstyle_parse::{Params, Parser, Perform, Utf8Parser};

/// A filter for a stream of output. Sequences may be cut anywhere between two calls.
pub enum Filter {
    /// Everything passes.
    Untouched,
    /// Colours are dropped.
    Colourless(Colours),
    /// Only text, line ends, tabs and, if wanted, colours stay.
    Terminal(Box<Cleaner>),
}

impl Filter {
    /// Returns the filter for a stream that leads to a terminal or elsewhere.
    pub fn new(is_terminal: bool, no_color: bool) -> Self {
        match (is_terminal, no_color) {
            (false, false) => Filter::Untouched,
            (false, true) => Filter::Colourless(Colours::default()),
            (true, no_color) => Filter::Terminal(Box::new(Cleaner::new(!no_color))),
        }
    }

    /// Returns what is left of the next bytes. `room` is scratch space.
    pub fn clean<'b>(&mut self, bytes: &'b [u8], room: &'b mut Vec<u8>) -> &'b [u8] {
        room.clear();
        match self {
            Filter::Untouched => return bytes,
            Filter::Colourless(colours) => colours.drop(bytes, room),
            Filter::Terminal(cleaner) => cleaner.clean(bytes, room),
        }
        room
    }

    /// Begins a new text, and returns what must be printed after the last one: what was held back, or
    /// what ends its colours.
    pub fn end(&mut self) -> Vec<u8> {
        let fresh = self.fresh();
        match std::mem::replace(self, fresh) {
            Filter::Colourless(colours) => colours.held,
            Filter::Terminal(cleaner) => cleaner.end(),
            Filter::Untouched => Vec::new(),
        }
    }

    /// Returns the same filter at the beginning of a text.
    #[must_use]
    pub fn fresh(&self) -> Self {
        match self {
            Filter::Untouched => Filter::Untouched,
            Filter::Colourless(_) => Filter::Colourless(Colours::default()),
            Filter::Terminal(cleaner) => {
                Filter::Terminal(Box::new(Cleaner::new(cleaner.kept.keeps_colours)))
            }
        }
    }

    pub fn is_for_terminal(&self) -> bool {
        matches!(self, Filter::Terminal(_))
    }
}

/// Ends all colours.
pub(super) const RESET: &[u8] = b"\x1b[0m";

pub struct Cleaner {
    parser: Parser<Utf8Parser>,
    kept: Kept,
    /// The beginning of a character whose other bytes are yet to come.
    half: Vec<u8>,
}

/// What the parser found that may stay.
struct Kept {
    text: Vec<u8>,
    keeps_colours: bool,
    /// Whether the last sequence has turned something on.
    is_coloured: bool,
}

impl Cleaner {
    fn new(keeps_colours: bool) -> Self {
        Cleaner {
            parser: Parser::default(),
            kept: Kept {
                text: Vec::new(),
                keeps_colours,
                is_coloured: false,
            },
            half: Vec::new(),
        }
    }

    fn clean(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        std::mem::swap(&mut self.kept.text, out);
        let mut half = std::mem::take(&mut self.half);
        if half.is_empty() {
            self.add(bytes);
        } else {
            half.extend_from_slice(bytes);
            self.add(&half);
        }
        std::mem::swap(&mut self.kept.text, out);
    }

    /// The parser sees whole characters only: it would take the byte after half a character for the
    /// rest of it, even the end of a line.
    fn add(&mut self, mut bytes: &[u8]) {
        loop {
            let (text, n_invalid) = match str::from_utf8(bytes) {
                Ok(_) => (bytes, Some(0)),
                Err(error) => (&bytes[..error.valid_up_to()], error.error_len()),
            };
            for &byte in text {
                self.parser.advance(&mut self.kept, byte);
            }
            bytes = &bytes[text.len()..];
            match n_invalid {
                Some(0) => return,
                Some(n_invalid) => {
                    self.kept.print(char::REPLACEMENT_CHARACTER);
                    bytes = &bytes[n_invalid..];
                }
                None => {
                    self.half = bytes.to_vec();
                    return;
                }
            }
        }
    }

    fn end(mut self) -> Vec<u8> {
        if !self.half.is_empty() {
            self.kept.print(char::REPLACEMENT_CHARACTER);
        }
        if self.kept.is_coloured {
            self.kept.text.extend_from_slice(RESET);
        }
        self.kept.text
    }
}

impl Perform for Kept {
    fn print(&mut self, character: char) {
        // Those above ASCII begin sequences for some terminals.
        if !character.is_control() {
            let mut room = [0; 4];
            let text = character.encode_utf8(&mut room);
            self.text.extend_from_slice(text.as_bytes());
        }
    }

    fn execute(&mut self, byte: u8) {
        if matches!(byte, b'\n' | b'\t' | b'\r') {
            self.text.push(byte);
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: u8) {
        if action != b'm' || !intermediates.is_empty() || ignore || !self.keeps_colours {
            return;
        }
        self.is_coloured = params.iter().any(|param| param != [0]);
        self.text.extend_from_slice(b"\x1b[");
        for (place, param) in params.iter().enumerate() {
            for (part, number) in param.iter().enumerate() {
                let separator = match (place, part) {
                    (0, 0) => "",
                    (_, 0) => ";",
                    (_, _) => ":",
                };
                write!(self.text, "{separator}{number}").expect("a vector takes everything");
            }
        }
        self.text.push(b'm');
    }
}

/// Drops colours from bytes of any kind.
#[derive(Debug, Default)]
pub struct Colours {
    /// The beginning of what may be a sequence that sets a colour.
    held: Vec<u8>,
}

/// A longer sequence sets no colour.
const LONGEST_COLOUR: usize = 64;

impl Colours {
    fn drop(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            if self.held.is_empty() {
                let text = memchr::memchr(b'\x1b', bytes).unwrap_or(bytes.len());
                out.extend_from_slice(&bytes[..text]);
                bytes = &bytes[text..];
            }
            let Some((&byte, rest)) = bytes.split_first() else {
                return;
            };
            let may_go_on = match (self.held.len(), byte) {
                (0, b'\x1b') | (1, b'[') => true,
                (length, b'0'..=b'9' | b';' | b':') => (2..LONGEST_COLOUR).contains(&length),
                (2.., b'm') => {
                    self.held.clear();
                    bytes = rest;
                    continue;
                }
                _ => false,
            };
            if may_go_on {
                self.held.push(byte);
                bytes = rest;
            } else {
                // It was something else; the byte may begin the next one.
                out.append(&mut self.held);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Filters a text in one piece and byte by byte, which must be the same.
    fn filtered(is_terminal: bool, no_color: bool, text: &[u8]) -> String {
        let mut room = Vec::new();
        let mut filter = Filter::new(is_terminal, no_color);
        let mut whole = filter.clean(text, &mut room).to_vec();
        whole.extend(filter.end());
        let mut pieces = Vec::new();
        for byte in text {
            pieces.extend_from_slice(filter.clean(&[*byte], &mut room));
        }
        pieces.extend(filter.end());
        assert_eq!(whole, pieces);
        String::from_utf8_lossy(&whole).into_owned()
    }

    #[test]
    fn a_terminal_gets_text_and_colours_only() {
        let cleaned = |text: &str| filtered(true, false, text.as_bytes());
        assert_eq!(cleaned("größe\t\u{1f680}\r\n"), "größe\t\u{1f680}\r\n");
        assert_eq!(
            cleaned("\u{1b}[1;31mred\u{1b}[0m \u{1b}[38:5:1mx\u{1b}[m"),
            "\u{1b}[1;31mred\u{1b}[0m \u{1b}[38:5:1mx\u{1b}[0m"
        );
        assert_eq!(cleaned("a\u{1b}[2Jb\u{1b}[1Ac\u{1b}[?25ld"), "abcd");
        assert_eq!(
            cleaned("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b"),
            "ab"
        );
        assert_eq!(cleaned("a\u{8}\u{7}\u{0}\u{9b}b\u{1b}c"), "ab");
        assert_eq!(cleaned("\u{1b}[>4;2ma\u{1b}[1\"mb"), "ab");
        assert_eq!(filtered(true, true, b"\x1b[31mred\x1b[0m"), "red");
        assert_eq!(
            filtered(true, false, b"a\xffb\xe9\nc\xc3"),
            "a\u{fffd}b\u{fffd}\nc\u{fffd}"
        );
    }

    #[test]
    fn colours_do_not_leak() {
        assert_eq!(
            filtered(true, false, b"\x1b[31mred"),
            "\u{1b}[31mred\u{1b}[0m"
        );
    }

    #[test]
    fn elsewhere_bytes_stay_as_they_are() {
        assert_eq!(
            filtered(false, false, b"\x1b[2J\x1b[31ma"),
            "\u{1b}[2J\u{1b}[31ma"
        );
    }

    #[test]
    fn no_color_takes_colours_and_nothing_else() {
        let colourless = |text: &str| filtered(false, true, text.as_bytes());
        assert_eq!(colourless("\u{1b}[1;31mred\u{1b}[0m\0\u{7}"), "red\0\u{7}");
        assert_eq!(colourless("\u{1b}[2J\u{1b}\u{1b}[31ma"), "\u{1b}[2J\u{1b}a");
        assert_eq!(colourless("at the end \u{1b}[3"), "at the end \u{1b}[3");
        let long = format!("\u{1b}[{}m", "1;".repeat(100));
        assert_eq!(colourless(&long), long);
    }
}
