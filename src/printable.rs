//! Makes names and texts that come from disk safe to show.
//!
//! A stack's directory may hold line feeds, escape sequences or characters that reverse the reading
//! direction. Printed as they are, they could fake a line of output or repaint the terminal.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write;

/// Returns `text` with control characters and invisible direction marks written as escapes
/// (`\n`, `\u{1b}`); everything else, non-ASCII letters included, stays.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(needs_escape) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if needs_escape(character) {
            _ = write!(cleaned, "{}", character.escape_default());
        } else {
            cleaned.push(character);
        }
    }
    Cow::Owned(cleaned)
}

/// Like [`printable`], but keeps line feeds, for messages of several lines.
pub fn printable_lines(text: &str) -> String {
    text.split('\n')
        .map(printable)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns a command line as a user would type it in a shell, made [`printable`].
pub fn command_line(words: &[OsString]) -> String {
    let words = words.iter().map(|word| word.to_string_lossy());
    printable(&shell_words::join(words)).into_owned()
}

/// Returns whether a character could mislead somebody who reads the output.
pub(crate) fn needs_escape(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Joins the first `most` of some names and counts the others: `/a, /b and 3 more`.
pub fn first_of(names: impl ExactSizeIterator<Item: AsRef<str>>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let mut text = String::new();
    for (number, name) in names.take(most).enumerate() {
        text += if number == 0 { "" } else { ", " };
        text += name.as_ref();
    }
    if more > 0 {
        text += &format!(" and {more} more");
    }
    text
}

/// Joins the first `most` of some names as a sentence does: `/a, /b and /c`, or `/a, /b and 3 more`.
pub fn listed(names: impl ExactSizeIterator<Item: AsRef<str>>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let first = names.take(most).map(|name| name.as_ref().to_owned());
    let mut parts: Vec<String> = first.collect();
    parts.extend((more > 0).then(|| format!("{more} more")));
    match parts.pop() {
        Some(last) if !parts.is_empty() => format!("{} and {last}", parts.join(", ")),
        last => last.unwrap_or_default(),
    }
}

/// Formats a number of things: "1 stack", "2 stacks".
pub fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_could_deceive_is_escaped() {
        assert_eq!(printable("/größe/a b'\""), "/größe/a b'\"");
        assert_eq!(
            printable("a\nb\u{1b}[31m\u{202e}"),
            r"a\nb\u{1b}[31m\u{202e}"
        );
        assert_eq!(printable_lines("a\nb\r"), "a\nb\\r");
    }

    #[test]
    fn long_lists_end_with_a_number() {
        let names = ["a", "b", "c"];
        assert_eq!(first_of(names.iter(), 3), "a, b, c");
        assert_eq!(first_of(names.iter(), 2), "a, b and 1 more");
        assert_eq!(first_of(names[..1].iter(), 1), "a");
        assert_eq!(listed(names.iter(), 3), "a, b and c");
        assert_eq!(listed(names.iter(), 2), "a, b and 1 more");
        assert_eq!(listed(names[..1].iter(), 3), "a");
    }

    #[test]
    fn command_lines_can_be_pasted() {
        let words = ["sh", "-c", "echo $X"].map(OsString::from);
        assert_eq!(command_line(&words), "sh -c 'echo $X'");
    }
}
