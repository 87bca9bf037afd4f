//! Keys that occur twice in an object. HCL takes the last value; the parser refuses them.

use std::str::FromStr as _;

use hcl_edit::parser::Error;
use hcl_edit::structure::Body;

/// How many keys may occur again.
const MAX_RENAMED: usize = 200;

const FIRST: &[u8] = b"_zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA";

const OTHER: &[u8] = b"_0123456789abcdefghijklmnopqrstuvwxyz";

/// Parses a text. Bare keys that occur again have other names of the same length in the result; their places are right.
pub(super) fn parse(text: &str) -> Result<Body, Error> {
    let mut error = match Body::from_str(text) {
        Ok(body) => return Ok(body),
        Err(error) => error,
    };
    let mut renamed = text.to_owned();
    for number in 0..MAX_RENAMED {
        let offset = error.location().offset();
        if !error.message().contains("unique object key") || !rename(&mut renamed, offset, number) {
            break;
        }
        error = match Body::from_str(&renamed) {
            Ok(body) => return Ok(body),
            Err(error) => error,
        };
    }
    Err(error)
}

/// Replaces the bare word at an offset by another one of the same length; returns whether there is one.
fn rename(text: &mut String, offset: usize, number: usize) -> bool {
    let is_in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let rest = &text[offset..];
    let length = rest.find(|c| !is_in_word(c)).unwrap_or(rest.len());
    let mut number = number;
    let mut digit = |digits: &[u8]| {
        let digit = digits[number % digits.len()];
        number /= digits.len();
        char::from(digit)
    };
    let name: String = (0..length)
        .map(|place| digit(if place == 0 { FIRST } else { OTHER }))
        .collect();
    text.replace_range(offset..offset + length, &name);
    length > 0
}
