//! Untrusted text that Markdown shows literally.
//!
//! Stack names, command lines and output may contain markup, mentions of people or links. Such text
//! is written as code, in which no character is special.

use std::fmt::Write as _;

use crate::printable::printable;

/// Returns a text as code, for a line of text or a cell of a table.
pub(in crate::report) fn code(text: &str) -> String {
    let text = printable(text);
    if text.is_empty() {
        return String::new();
    }
    let has_meaning = |character| matches!(character, '`' | '|' | '\\');
    if text.contains(has_meaning) || text.starts_with(' ') || text.ends_with(' ') {
        return html_code(&text);
    }
    format!("`{text}`")
}

/// Returns a text as code in HTML, for places without Markdown.
pub(super) fn html_code(text: &str) -> String {
    let mut code = String::from("<code>");
    for character in printable(text).chars() {
        match character {
            '/' | '-' => code.push(character),
            character if character.is_ascii_punctuation() => {
                _ = write!(code, "&#{};", u32::from(character));
            }
            character => code.push(character),
        }
    }
    code + "</code>"
}

/// Returns a text unchanged if it has no special characters, otherwise as code.
pub(in crate::report) fn text(text: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || " ,.;/-()=".contains(character);
    if text.chars().all(is_plain) && !text.contains("www") && text == text.trim() {
        return text.to_owned();
    }
    code(text)
}

/// Returns lines in a code block that they cannot end.
pub(super) fn fenced(lines: &str) -> String {
    let longest = lines
        .split(|character| character != '`')
        .map(str::len)
        .max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    format!("{fence}text\n{lines}\n{fence}\n")
}

/// Cuts a text to a maximum number of characters, with an ellipsis if it was longer.
pub(in crate::report) fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_syntax_is_put_in_code() {
        assert_eq!(code("/prod/db"), "`/prod/db`");
        assert_eq!(code("/<b>*_&"), "`/<b>*_&`");
        assert_eq!(code("/a`b"), "<code>/a&#96;b</code>");
        assert_eq!(code("/a|b"), "<code>/a&#124;b</code>");
        assert_eq!(code("/a\nb"), "<code>/a&#92;nb</code>");
        assert_eq!(code("/a "), "<code>/a </code>");
        assert_eq!(html_code("/<b>"), "<code>/&#60;b&#62;</code>");
        assert_eq!(text("exit status 1 after 0.1s"), "exit status 1 after 0.1s");
        assert_eq!(
            text("runs after /@me, which failed"),
            "`runs after /@me, which failed`"
        );
        assert_eq!(text("see www.example.com"), "`see www.example.com`");
    }

    #[test]
    fn a_block_of_code_ends_where_it_should() {
        assert_eq!(fenced("a"), "```text\na\n```\n");
        assert_eq!(fenced("```\n````x"), "`````text\n```\n````x\n`````\n");
    }

    #[test]
    fn a_long_text_is_shortened_at_a_character() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöü", 2), "äö…");
    }
}
