//! Digests of JSON values. Equivalent values have equal digests, however they are written.

use std::collections::BTreeMap;

use crate::ascii::hex;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// The maximum depth for normalising. Deeper values count as written.
const MAX_DEPTH: usize = 100;

/// Returns a digest of parts, each prefixed by its length.
pub(super) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize()[..16])
}

/// Returns a digest of a value, independent of white space, the order of keys, escapes in strings and the form of
/// numbers. Numbers keep all their digits.
pub(super) fn digest_of(value: &RawValue) -> String {
    let mut text = String::with_capacity(value.get().len());
    write(value, MAX_DEPTH, &mut text);
    digest([text.as_bytes()])
}

/// Returns whether a value is or contains `true`. Plans mark unknown or sensitive parts of another value like this.
pub(super) fn has_true(value: &RawValue) -> bool {
    has_true_within(value, MAX_DEPTH)
}

fn has_true_within(value: &RawValue, depth: usize) -> bool {
    let text = value.get();
    match parts(value, depth) {
        Parts::Object(values) => values.values().any(|it| has_true_within(it, depth - 1)),
        Parts::List(values) => values.iter().any(|it| has_true_within(it, depth - 1)),
        Parts::Unknown => text.contains("true"),
        Parts::None => text == "true",
    }
}

enum Parts<'a> {
    Object(BTreeMap<String, &'a RawValue>),
    List(Vec<&'a RawValue>),
    /// It is too deep, or a name is no text.
    Unknown,
    None,
}

fn parts(value: &RawValue, depth: usize) -> Parts<'_> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'{' | b'[') if depth == 0 => Parts::Unknown,
        Some(b'{') => object(text).map_or(Parts::Unknown, Parts::Object),
        Some(b'[') => list(text).map_or(Parts::Unknown, Parts::List),
        _ => Parts::None,
    }
}

/// Writes a value in the one form that counts.
fn write(value: &RawValue, depth: usize, out: &mut String) {
    let text = value.get();
    match parts(value, depth) {
        Parts::Object(values) => {
            out.push('{');
            for (name, value) in values {
                write_string(&name, out);
                out.push(':');
                write(value, depth - 1, out);
                out.push(',');
            }
            out.push('}');
        }
        Parts::List(values) => {
            out.push('[');
            for value in values {
                write(value, depth - 1, out);
                out.push(',');
            }
            out.push(']');
        }
        Parts::Unknown => out.push_str(text),
        Parts::None => match text.as_bytes().first() {
            Some(b'"') => match serde_json::from_str::<String>(text) {
                Ok(string) => write_string(&string, out),
                // Half a surrogate pair is not text, but still a value.
                Err(_) => out.push_str(text),
            },
            Some(b'-' | b'0'..=b'9') => write_number(text, out),
            _ => out.push_str(text),
        },
    }
}

fn write_string(string: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(string).expect("a string is JSON"));
}

/// Writes a number as its digits, without zeros at either end, and a power of ten.
fn write_number(text: &str, out: &mut String) {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let kept = digits.trim_end_matches('0');
    let significant = kept.trim_start_matches('0');
    if significant.is_empty() {
        out.push('0');
        return;
    }
    let shift = |length: usize| i64::try_from(length).ok();
    let power = || -> Option<i64> {
        let exponent: i64 = exponent.parse().ok()?;
        let exponent = exponent.checked_sub(shift(fraction.len())?)?;
        exponent.checked_add(shift(digits.len() - kept.len())?)
    };
    match power() {
        Some(power) => out.push_str(&format!("{sign}{significant}e{power}")),
        None => out.push_str(text),
    }
}

/// Returns the attributes of an object; `None` if it is another value, or a name is no text.
pub(super) fn object(text: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(text).ok()
}

fn list(text: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        digest_of(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn values_that_mean_the_same_have_equal_digests() {
        let equal = [
            ("1", "1.0"),
            ("100", "1e2"),
            ("0.5", "5E-1"),
            ("0", "-0.000"),
            ("[1,2]", " [ 1 ,2.00 ] "),
            (r#"{"a":1,"b":[null]}"#, r#"{ "b": [null], "a": 1 }"#),
            (r#""\u0061\/""#, r#""a/""#),
            (r#"{"\u0061":true}"#, r#"{"a":true}"#),
        ];
        for (one, other) in equal {
            assert_eq!(of(one), of(other), "{one} {other}");
        }
    }

    #[test]
    fn values_that_differ_have_different_digests() {
        let texts = [
            "null",
            "true",
            "false",
            "0",
            "1",
            "-1",
            "10",
            "0.1",
            "12345678901234567890123",
            "12345678901234567890124",
            "1e99999999999999999999",
            "1e99999999999999999998",
            r#""""#,
            r#""1""#,
            r#""null""#,
            r#""\ud800""#,
            "[]",
            "{}",
            "[[]]",
            "[1,2]",
            "[2,1]",
            "[12]",
            r#"["1,2"]"#,
            r#"{"a":1}"#,
            r#"{"a":null}"#,
            r#"{"\ud800":null}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":{},"b":1}"#,
        ];
        let digests: std::collections::BTreeSet<String> = texts.map(of).into();
        assert_eq!(digests.len(), texts.len());
    }

    #[test]
    fn deep_values_are_digested_too() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(5_000), "]".repeat(5_000));
        assert_ne!(of(&deep("1")), of(&deep("2")));
        let (yes, no) = (deep("true"), deep("false"));
        assert!(has_true(serde_json::from_str(&yes).unwrap()));
        assert!(!has_true(serde_json::from_str(&no).unwrap()));
    }
}
