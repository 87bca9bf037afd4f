//! Upper, lower and title case, character by character as in Terraform: `ß` stays `ß`.

pub(super) fn upper(text: &str) -> String {
    text.chars().map(upper_char).collect()
}

pub(super) fn lower(text: &str) -> String {
    // The only character that becomes two is the capital I with a dot, whose dot is lost.
    let lower = |c: char| c.to_lowercase().next().unwrap_or(c);
    text.chars().map(lower).collect()
}

pub(super) fn title(text: &str) -> String {
    let mut previous = ' ';
    let mut titled = String::with_capacity(text.len());
    for c in text.chars() {
        let begins_word = is_separator(previous);
        titled.push(if begins_word { title_char(c) } else { c });
        previous = c;
    }
    titled
}

fn is_separator(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_alphanumeric() && c != '_';
    }
    !c.is_alphanumeric() && c.is_whitespace()
}

fn upper_char(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None) => upper,
        _ => upper_of_greek(c),
    }
}

/// Greek vowels with an iota below become two letters, or one with the iota beside it. Other characters
/// that become several stay as they are.
fn upper_of_greek(c: char) -> char {
    let distance = match c {
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => 8,
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => 9,
        _ => 0,
    };
    char::from_u32(u32::from(c) + distance).unwrap_or(c)
}

/// Title case is upper case, except for digraphs and for Georgian, which has no title case.
fn title_char(c: char) -> char {
    match c {
        '\u{1c4}'..='\u{1c6}' => '\u{1c5}',
        '\u{1c7}'..='\u{1c9}' => '\u{1c8}',
        '\u{1ca}'..='\u{1cc}' => '\u{1cb}',
        '\u{1f1}'..='\u{1f3}' => '\u{1f2}',
        '\u{10d0}'..='\u{10ff}' => c,
        _ => upper_char(c),
    }
}
