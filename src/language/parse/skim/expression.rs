//! Skips expressions, without building anything.

use super::{
    are_unique, blank_lines, end_of_line, gap, is_plain, plain_string, spaces, split, word,
};

/// How deeply expressions may be nested here; the parser accepts more.
const MAX_DEPTH: usize = 16;

/// How many operators may follow each other here; the parser accepts more.
const MAX_OPERATORS: usize = 32;

pub(super) fn expression(text: &[u8], in_brackets: bool, depth: usize) -> Option<&[u8]> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut rest = text;
    for _ in 0..MAX_OPERATORS {
        let end = operand(rest, depth)?;
        // Most expressions end here.
        if let [b'\n' | b'}', ..] = end
            && !in_brackets
        {
            return Some(end);
        }
        rest = gap(end, in_brackets);
        if let Some(rest) = rest.strip_prefix(b"?") {
            let rest = expression(gap(rest, in_brackets), in_brackets, depth + 1)?;
            let rest = gap(rest, in_brackets).strip_prefix(b":")?;
            return expression(gap(rest, in_brackets), in_brackets, depth + 1);
        }
        let Some(after) = operator(rest) else {
            return Some(end);
        };
        rest = gap(after, in_brackets);
    }
    None
}

/// Skips a binary operator.
fn operator(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b'/', b'/', ..] => None, // a comment
        [b'=' | b'!' | b'<' | b'>', b'=', rest @ ..]
        | [b'&', b'&', rest @ ..]
        | [b'|', b'|', rest @ ..]
        | [b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>', rest @ ..] => Some(rest),
        _ => None,
    }
}

fn operand(text: &[u8], depth: usize) -> Option<&[u8]> {
    let rest = match text {
        [b'"', rest @ ..] => template(rest, depth)?,
        [b'0'..=b'9', ..] => return number(text),
        [b'(', rest @ ..] => {
            let rest = expression(blank_lines(rest), true, depth + 1)?;
            blank_lines(rest).strip_prefix(b")")?
        }
        [b'[', rest @ ..] => match for_intro(blank_lines(rest))? {
            Some(rest) => for_expression(rest, b']', depth)?,
            None => list(rest, b']', depth)?,
        },
        [b'{', rest @ ..] => match for_intro(blank_lines(rest))? {
            Some(rest) => for_expression(rest, b'}', depth)?,
            None => object(rest, depth)?,
        },
        [b'!' | b'-', rest @ ..] => {
            if depth == MAX_DEPTH {
                return None;
            }
            return operand(spaces(rest), depth + 1);
        }
        _ => {
            let rest = name(text)?;
            match rest.strip_prefix(b"(") {
                Some(rest) => list(rest, b')', depth)?,
                None => rest,
            }
        }
    };
    steps(rest, depth)
}

fn steps(text: &[u8], depth: usize) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        rest = match rest {
            [b'.', b'.', b'.', ..] => return Some(rest),
            [b'.', b'*', rest @ ..] | [b'[', b'*', b']', rest @ ..] => rest,
            [b'.', rest @ ..] => word(rest)?.1,
            [b'[', rest @ ..] => expression(rest, false, depth + 1)?.strip_prefix(b"]")?,
            _ => return Some(rest),
        }
    }
}

/// Skips a number that has few digits and no exponent.
pub(in crate::language::parse) fn number(text: &[u8]) -> Option<&[u8]> {
    let mut rest = digits(text)?;
    if let Some(fraction) = rest.strip_prefix(b".") {
        rest = digits(fraction)?;
    }
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-[\"".contains(byte);
    (!rest.first().is_some_and(goes_on)).then_some(rest)
}

fn digits(text: &[u8]) -> Option<&[u8]> {
    let (digits, rest) = split(text, |byte| byte.is_ascii_digit());
    (1..=15).contains(&digits.len()).then_some(rest)
}

/// Skips the rest of a string whose templates are simple interpolations.
fn template(text: &[u8], depth: usize) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        rest = match split(rest, is_plain).1 {
            [b'"', rest @ ..] => return Some(rest),
            [b'\\', b'n' | b'r' | b't' | b'"' | b'\\', rest @ ..] => rest,
            [b'$', b'{', rest @ ..] => {
                let rest = expression(spaces(rest), false, depth + 1)?;
                spaces(rest).strip_prefix(b"}")?
            }
            // An escape, or something rare.
            _ => return None,
        }
    }
}

/// Skips elements or arguments, up to the closing bracket.
fn list(text: &[u8], closing: u8, depth: usize) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        rest = blank_lines(rest);
        if let Some(rest) = rest.strip_prefix(&[closing]) {
            return Some(rest);
        }
        rest = blank_lines(expression(rest, true, depth + 1)?);
        rest = match rest.strip_prefix(b",") {
            Some(rest) => rest,
            None => return rest.strip_prefix(&[closing]),
        };
    }
}

/// Skips the entries of an object, which commas or line ends separate, up to the closing brace.
fn object(text: &[u8], depth: usize) -> Option<&[u8]> {
    let mut rest = text;
    let mut keys: Vec<&[u8]> = Vec::new();
    loop {
        rest = blank_lines(rest);
        let (key, after) = match rest {
            [b'}', ..] => break,
            [b'"', ..] => plain_string(rest)?,
            _ => word(rest).filter(|(word, _)| !is_keyword(word))?,
        };
        keys.push(key);
        rest = spaces(after);
        rest = rest
            .strip_prefix(b"=")
            .or_else(|| rest.strip_prefix(b":"))?;
        rest = spaces(expression(spaces(rest), false, depth + 1)?);
        rest = match rest {
            [b',', rest @ ..] => rest,
            [b'}', ..] => break,
            _ => end_of_line(rest)?,
        };
    }
    are_unique(&keys).then_some(&rest[1..])
}

/// Skips `for k, v in`. The inner option is `None` if this is not a `for`.
#[expect(
    clippy::option_option,
    reason = "the outer one is that of all functions here"
)]
fn for_intro(text: &[u8]) -> Option<Option<&[u8]>> {
    let Some((b"for", rest)) = word(text) else {
        return Some(None);
    };
    let mut rest = spaces(name(spaces(rest.strip_prefix(b" ")?))?);
    if let Some(second) = rest.strip_prefix(b",") {
        rest = spaces(name(spaces(second))?);
    }
    let (b"in", rest) = word(rest)? else {
        return None;
    };
    rest.strip_prefix(b" ").map(Some)
}

/// Skips the rest of a `for`, after `in`.
fn for_expression(text: &[u8], closing: u8, depth: usize) -> Option<&[u8]> {
    let part = |text| expression(text, true, depth + 1).map(blank_lines);
    let rest = part(spaces(text))?.strip_prefix(b":")?;
    let mut rest = part(blank_lines(rest))?;
    if closing == b'}' {
        rest = part(blank_lines(rest.strip_prefix(b"=>")?))?;
    }
    if let Some((b"if", condition)) = word(rest) {
        rest = part(spaces(condition.strip_prefix(b" ")?))?;
    }
    rest.strip_prefix(&[closing])
}

/// Skips a word that is not reserved.
fn name(text: &[u8]) -> Option<&[u8]> {
    let (word, rest) = word(text)?;
    (!is_keyword(word)).then_some(rest)
}

pub(super) fn is_keyword(word: &[u8]) -> bool {
    matches!(
        word,
        b"else" | b"endfor" | b"endif" | b"for" | b"if" | b"in"
    )
}
