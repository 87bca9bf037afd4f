//! The end of what a command printed, as text for reports.

use std::io;

use super::runs::ShownStack;
use crate::printable::needs_escape;
use crate::record::logs::{LogReader, Logs};

/// The end of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Quote {
    /// Lines without escape sequences and control characters, with no line feed after the last.
    pub(super) text: String,
    /// Whether these are all lines of the log.
    pub(super) is_whole: bool,
}

/// Returns the end of the output of the last attempt in a stack, of at most this many bytes, if there
/// is any. If the output cannot be read, the text says so.
pub(super) fn quote(stack: ShownStack, logs: &Logs, limit: usize) -> Option<Quote> {
    let attempt = stack.record.attempts.last()?;
    let quote = match stack.log(logs, attempt) {
        Ok(log) => end_of(log?, limit),
        Err(error) => Err(error),
    };
    let quote = quote.unwrap_or_else(|error| Quote {
        text: clean(format!("orch: the output cannot be read: {error}").as_bytes()),
        is_whole: true,
    });
    Some(quote).filter(|quote| !quote.text.is_empty())
}

fn end_of(mut log: LogReader, limit: usize) -> io::Result<Quote> {
    let start = log.tail(usize::MAX, limit as u64)?;
    log.skip_to(start)?;
    let mut bytes = Vec::new();
    let mut room = vec![0; limit.clamp(1, 8 << 10)];
    while bytes.len() < limit
        && let Some((_, length)) = log.read(&mut room)?
    {
        bytes.extend_from_slice(&room[..length]);
    }
    let text = clean(&bytes);
    let cut = cut(&text, limit);
    Ok(Quote {
        is_whole: start == 0 && cut == 0,
        text: text[cut..].to_owned(),
    })
}

/// Returns where a suffix of at most this length begins: at the beginning of a line, if that leaves
/// anything.
fn cut(text: &str, limit: usize) -> usize {
    if text.len() <= limit {
        return 0;
    }
    let mut start = text.len() - limit;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    match text[start..].find('\n') {
        Some(end) if start + end + 1 < text.len() => start + end + 1,
        _ => start,
    }
}

/// Turns command output into text that any format can quote. A carriage return starts a new line:
/// what a terminal would paint over was printed, too.
fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = anstream::adapter::strip_str(&text).to_string();
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut cleaned = String::with_capacity(text.len());
    for character in text.trim_matches('\n').chars() {
        match character {
            '\n' | '\t' => cleaned.push(character),
            // XML cannot represent these.
            '\u{fffe}' | '\u{ffff}' => cleaned.push(char::REPLACEMENT_CHARACTER),
            character if needs_escape(character) => cleaned.extend(character.escape_default()),
            character => cleaned.push(character),
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_or_xml_would_choke_on_is_left() {
        let bytes = b"\x1b[31mred\x1b[0m\r\n\x1b]0;title\x07 10%\r 20%\r\n\xff\x00\xef\xbf\xbf\n\n";
        assert_eq!(clean(bytes), "red\n 10%\n 20%\n\u{fffd}\u{fffd}");
        assert_eq!(
            clean("a\u{202e}b\tc\u{9b}".as_bytes()),
            "a\\u{202e}b\tc\\u{9b}"
        );
    }

    #[test]
    fn a_text_is_cut_at_a_line_or_else_at_a_character() {
        let rest = |text: &'static str, limit| &text[cut(text, limit)..];
        assert_eq!(rest("one\ntwo", 7), "one\ntwo");
        assert_eq!(rest("one\ntwo", 6), "two");
        assert_eq!(rest("one\ntwo", 2), "wo");
        assert_eq!(rest("äöü", 3), "ü");
        assert_eq!(rest("äöü", 0), "");
    }
}
