//! The words and marks of a Rust file, without comments and literals.

/// A word (identifier, keyword, number) or a mark. `::` is one mark; every other mark is a character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// Splits a file.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = source;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let n_skipped = skipped(rest);
        let length = match n_skipped {
            0 => token(rest),
            n => n,
        };
        let (text, after) = rest.split_at(length);
        if n_skipped == 0 && !first.is_whitespace() {
            let text = text.to_owned();
            tokens.push(Token { text, line });
        }
        line += text.matches('\n').count();
        rest = after;
    }
    tokens
}

/// Returns the length of the word or mark that a text begins with.
fn token(text: &str) -> usize {
    let is_in_word = |c: char| c.is_alphanumeric() || c == '_';
    let word = text.find(|c| !is_in_word(c)).unwrap_or(text.len());
    if word > 0 {
        word
    } else if text.starts_with("::") {
        2
    } else {
        text.chars().next().map_or(0, char::len_utf8)
    }
}

/// Returns the length of the comment or literal that a text begins with; 0 if it begins with neither.
fn skipped(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    let prefix = ["br", "cr", "b", "c", "r"]
        .into_iter()
        .find(|prefix| text.starts_with(prefix))
        .unwrap_or_default();
    let literal = &text[prefix.len()..];
    let hashes = literal.len() - literal.trim_start_matches('#').len();
    if prefix.ends_with('r') && literal[hashes..].starts_with('"') {
        let begin = hashes + 1;
        let end = format!("\"{}", "#".repeat(hashes));
        let inner = literal[begin..].find(&end);
        return inner.map_or(text.len(), |inner| prefix.len() + begin + inner + end.len());
    }
    if literal.starts_with('"') && !prefix.ends_with('r') {
        return prefix.len() + quoted(literal, '"');
    }
    let mut after_quote = literal.strip_prefix('\'').unwrap_or_default().chars();
    let is_character = match after_quote.next() {
        Some('\\') => true,
        Some(_) => after_quote.next() == Some('\''), // otherwise it is a lifetime
        None => false,
    };
    if is_character && matches!(prefix, "" | "b") {
        return prefix.len() + quoted(literal, '\'');
    }
    0
}

/// Returns the length of a literal with its quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a block comment, which may hold others.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

#[test]
fn comments_and_literals_are_no_tokens() {
    let source = r##"
        /// crate::a
        use b; // crate::c
        /* crate::d /* nested */ crate::e */
        let f: &'static str = "crate::g \" crate::h";
        let i = ['\'', '"', b'"', 'é'];
        let j = r#"crate::k " crate::l"#;
    "##;
    let tokens = tokens(source);
    let words: Vec<&str> = tokens
        .iter()
        .map(|token| token.text.as_str())
        .filter(|text| text.chars().all(char::is_alphabetic))
        .collect();
    assert_eq!(
        words,
        [
            "use", "b", "let", "f", "static", "str", "let", "i", "let", "j"
        ]
    );
    let last = tokens.last().map(|token| (token.text.as_str(), token.line));
    assert_eq!(last, Some((";", 7)));
}
