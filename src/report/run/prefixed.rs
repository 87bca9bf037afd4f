//! Lines with the path of their stack as prefix.

use super::terminal::RESET;

/// The longest line that is not broken, in bytes.
const LONGEST_LINE: usize = 64 << 10;

/// Splits a stream that arrives in pieces into complete lines, each with the same prefix.
pub struct PrefixedLines {
    prefix: Vec<u8>,
    /// The beginning of a line that has not ended.
    begun: Vec<u8>,
    is_for_terminal: bool,
}

impl PrefixedLines {
    /// Begins a stream. `prefix` is written unchanged before each line. On a terminal, a line can
    /// neither colour the next one, which may be another command's, nor hide its prefix.
    pub fn new(prefix: String, is_for_terminal: bool) -> Self {
        PrefixedLines {
            prefix: prefix.into_bytes(),
            begun: Vec::new(),
            is_for_terminal,
        }
    }

    /// Takes the next bytes, and adds the lines that they complete to `out`. A line that is too long
    /// is broken at a character.
    pub fn add(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let end = memchr::memchr(b'\n', bytes);
            let room = LONGEST_LINE - self.begun.len();
            let length = end.unwrap_or(bytes.len());
            if length <= room {
                let (line, rest) = bytes.split_at(length);
                match end {
                    None => self.begun.extend_from_slice(line),
                    Some(_) => self.print(line, out),
                }
                bytes = rest.get(1..).unwrap_or_default();
            } else {
                let (line, rest) = bytes.split_at(room);
                self.begun.extend_from_slice(line);
                bytes = rest;
                let kept = self.begun.split_off(last_boundary(&self.begun));
                self.end(out);
                self.begun = kept;
            }
        }
    }

    /// Adds the last line, if it has no line feed.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if !self.begun.is_empty() {
            self.print(b"", out);
        }
    }

    /// Adds the current line, which ends with these bytes.
    fn print(&mut self, end: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        let start = out.len();
        out.append(&mut self.begun);
        out.extend_from_slice(end);
        if self.is_for_terminal {
            if memchr::memchr(b'\r', &out[start..]).is_some() {
                // Each returns to the beginning of the line, where the prefix is.
                let line = out.split_off(start);
                let mut pieces = line.split(|&byte| byte == b'\r');
                out.extend_from_slice(pieces.next().unwrap_or_default());
                for piece in pieces.filter(|piece| !piece.is_empty()) {
                    out.push(b'\r');
                    out.extend_from_slice(&self.prefix);
                    out.extend_from_slice(piece);
                }
            }
            if memchr::memchr(b'\x1b', &out[start..]).is_some() {
                out.extend_from_slice(RESET);
            }
        }
        out.push(b'\n');
    }
}

/// Returns where a text can be cut near its end without cutting a character of UTF-8.
fn last_boundary(text: &[u8]) -> usize {
    let mut followers = text.iter().rev().take_while(|&&byte| byte & 0xc0 == 0x80);
    let n_followers = followers.by_ref().take(4).count();
    let Some(first) = text.len().checked_sub(n_followers + 1) else {
        return text.len();
    };
    let length = match text[first] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return text.len(),
    };
    if n_followers + 1 < length {
        first
    } else {
        text.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<u8> {
        let mut lines = PrefixedLines::new("/a | ".to_owned(), false);
        let mut out = Vec::new();
        for piece in pieces {
            lines.add(piece, &mut out);
        }
        lines.end(&mut out);
        out
    }

    #[test]
    fn each_line_has_the_prefix_and_an_end() {
        assert_eq!(lines(&[b"one\n\ntw", b"o"]), b"/a | one\n/a | \n/a | two\n");
        assert_eq!(lines(&[b""]), b"");
    }

    #[test]
    fn on_a_terminal_no_line_touches_another_or_its_prefix() {
        let mut lines = PrefixedLines::new("/a | ".to_owned(), true);
        let mut out = Vec::new();
        lines.add(b"10%\r20%\r\n\x1b[31mred\n\rx\n", &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "/a | 10%\r/a | 20%\n/a | \x1b[31mred\x1b[0m\n/a | \r/a | x\n"
        );
    }

    #[test]
    fn a_long_line_is_broken_between_characters() {
        let text = "ü".repeat(LONGEST_LINE);
        let odd = format!("x{text}");
        let out = String::from_utf8(lines(&[odd.as_bytes()])).expect("no character is broken");
        assert!(out.lines().all(|line| line.len() <= LONGEST_LINE + 5));
        assert_eq!(out.replace("/a | ", "").replace('\n', ""), odd);
        let exact = "x".repeat(LONGEST_LINE) + "\n";
        assert_eq!(lines(&[exact.as_bytes()]).len(), exact.len() + 5);
    }

    #[test]
    fn bytes_that_are_no_text_are_broken_anywhere() {
        for byte in [0x80, 0xff, 0xf0] {
            let out = lines(&[&vec![byte; 3 * LONGEST_LINE]]);
            let kept: Vec<u8> = out.into_iter().filter(|&other| other == byte).collect();
            assert_eq!(kept.len(), 3 * LONGEST_LINE);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn how_a_text_is_cut_into_pieces_does_not_matter(
            text in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'x'), any::<u8>()], 0..200),
            cuts in prop::collection::vec(0_usize..200, 0..8),
            n_long in 0_usize..3,
        ) {
            // Somewhere in it a line that has to be broken.
            let mut long = text.clone();
            long.extend("ö€🚀x".repeat(n_long * 10_000).into_bytes());
            long.extend(&text);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut * long.len() / 200).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut start = 0;
            for cut in cuts {
                pieces.push(&long[start..cut]);
                start = cut;
            }
            pieces.push(&long[start..]);
            prop_assert_eq!(lines(&pieces), lines(&[&long]));
        }
    }
}
