//! A shell command line up to the cursor, including its quotes and backslashes.

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'l> {
    /// Without their quotes. The cursor is at the end of the last one, which may be empty.
    pub(super) words: Vec<String>,
    /// The last word as it was typed.
    typed: &'l str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

impl<'l> Line<'l> {
    /// Splits the typed text. Quotes may still be open at its end.
    pub(super) fn split(typed: &'l str) -> Self {
        let mut words = Vec::new();
        let mut rest = typed.trim_start();
        loop {
            let (word, _, length) = first_word(rest);
            words.push(word);
            if length == rest.len() {
                return Line { words, typed: rest };
            }
            rest = rest[length..].trim_start();
        }
    }

    /// Returns the text for a word that replaces `replaced`, the end of the last word. `None` if
    /// the word does not begin with the rest, or cannot be typed in its quotes.
    pub(super) fn instead_of(&self, replaced: &str, word: &str) -> Option<String> {
        let kept = self.typed.strip_suffix(replaced)?;
        let (kept, quotes, _) = first_word(kept);
        let rest = word.strip_prefix(&kept)?;
        match quotes {
            Quotes::None => Some(escaped(rest, |c| !is_plain(c))),
            Quotes::Double => Some(escaped(rest, |c| matches!(c, '"' | '\\' | '$' | '`'))),
            Quotes::Single => (!rest.contains('\'')).then(|| rest.to_owned()),
        }
    }
}

/// Returns the first word, the quotes open at its end, and the length of its typed text.
fn first_word(text: &str) -> (String, Quotes, usize) {
    let mut word = String::new();
    let mut quotes = Quotes::None;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match (quotes, character) {
            (Quotes::None, ' ' | '\t' | '\n') => return (word, quotes, at),
            (Quotes::None, '\'') => quotes = Quotes::Single,
            (Quotes::None, '"') => quotes = Quotes::Double,
            (Quotes::Single, '\'') | (Quotes::Double, '"') => quotes = Quotes::None,
            (Quotes::None | Quotes::Double, '\\') => match characters.next() {
                Some((_, next)) => {
                    if quotes == Quotes::Double && !matches!(next, '"' | '\\' | '$' | '`') {
                        word.push('\\');
                    }
                    word.push(next);
                }
                None => break,
            },
            (_, character) => word.push(character),
        }
    }
    (word, quotes, text.len())
}

/// Returns whether a character has no special meaning in any shell.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || "/_-.,:=@%+".contains(character)
}

fn escaped(text: &str, is_special: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_special(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_a_shell_splits_them() {
        let table: [(&str, &[&str]); 9] = [
            ("orch", &["orch"]),
            ("orch ", &["orch", ""]),
            (
                "  orch  list\t--tags a:b",
                &["orch", "list", "--tags", "a:b"],
            ),
            (r"orch why my\ st", &["orch", "why", "my st"]),
            (r#"orch why "my st"#, &["orch", "why", "my st"]),
            (r#"orch why "a\"b\c"'d\'e"#, &["orch", "why", r#"a"b\cd\e"#]),
            ("orch why 'it", &["orch", "why", "it"]),
            ("orch why a\\", &["orch", "why", "a"]),
            ("", &[""]),
        ];
        for (line, words) in table {
            assert_eq!(Line::split(line).words, words, "{line}");
        }
    }

    #[test]
    fn words_are_typed_so_that_the_shell_reads_them_back() {
        let table = [
            ("orch why pr", "pr", "prod/a b", Some(r"prod/a\ b")),
            (
                "orch why my\\ st",
                "my\\ st",
                "my stack",
                Some(r"my\ stack"),
            ),
            ("orch why \"my st", "my st", "my $tack", Some(r"my \$tack")),
            ("orch why 'my st", "my st", "my $tack", Some("my $tack")),
            ("orch why 'my st", "my st", "my st'ack", None),
            ("orch list --tags=a", "a", "--tags=abc", Some("abc")),
            ("orch list --tags a:", "", "a:b", Some("b")),
            ("orch list --tags a:b", "b", "a:bc", Some("bc")),
            ("orch why ", "", "a'b", Some(r"a\'b")),
            ("orch why x:", "", "other", None),
            ("orch why x", "y", "xy", None),
        ];
        for (line, replaced, word, expected) in table {
            let typed = Line::split(line).instead_of(replaced, word);
            assert_eq!(typed.as_deref(), expected, "{line}");
        }
    }
}
