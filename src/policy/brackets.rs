//! Limits how deep the brackets of a policy nest.
//!
//! The interpreter's parser takes twice as long for each further level, so the depth is checked
//! first. Strings and comments do not count.

use super::Problem;

const MAX_DEPTH: usize = 10;

/// Checks a text. The error has the position of the first bracket that is too deep.
pub(super) fn check(text: &str) -> Result<(), Problem> {
    let (mut line, mut column, mut depth) = (1_u32, 0_u32, 0_usize);
    let mut inside = Inside::Code;
    for character in text.chars() {
        column += 1;
        if character == '\n' {
            (line, column) = (line + 1, 0);
        }
        let is_code = inside == Inside::Code;
        inside = inside.after(character);
        match character {
            '(' | '[' | '{' if is_code => {
                depth += 1;
                if depth > MAX_DEPTH {
                    let message = format!(
                        "brackets are nested more than {MAX_DEPTH} deep; move the inner part to a rule of its own"
                    );
                    return Err(Problem::at((line, column), message));
                }
            }
            ')' | ']' | '}' if is_code => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// The context of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    Code,
    Text { is_escaped: bool },
    RawText,
    Comment,
}

impl Inside {
    /// Returns the context after a character.
    pub(super) fn after(self, character: char) -> Self {
        match (self, character) {
            (Inside::Code, '`') => Inside::RawText,
            (Inside::Code, '#') => Inside::Comment,
            (Inside::Text { is_escaped: false }, '\\') => Inside::Text { is_escaped: true },
            // No string continues on the next line.
            (Inside::Text { .. } | Inside::Comment, '\n')
            | (Inside::Text { is_escaped: false }, '"')
            | (Inside::RawText, '`') => Inside::Code,
            (Inside::Code, '"') | (Inside::Text { .. }, _) => Inside::Text { is_escaped: false },
            (unchanged, _) => unchanged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_levels_are_allowed_and_strings_and_comments_do_not_count() {
        let nested = |depth: usize| format!("x := {}{}", "[".repeat(depth), "]".repeat(depth));
        let place = |text: &str| check(text).err().and_then(|problem| problem.place);
        assert_eq!(place(&nested(10)), None);
        assert_eq!(place(&nested(11)), Some((1, 16)));
        assert_eq!(place(&format!("a\n{}", nested(11))), Some((2, 16)));
        assert_eq!(place(&format!("{0}\n{0}", nested(10))), None);
        assert_eq!(place("x := \"[[[[[[[[[[[[ \\\" [[\""), None);
        assert_eq!(place("x := `[[[[[[\n[[[[[ \\`"), None);
        assert_eq!(place("# [[[[[[[[[[[[[[[["), None);
        assert_eq!(place("x := \"\\\\\" # [\n[[[[[[[[[[["), Some((2, 11)));
    }
}
