//! Functions of texts and of queries of URLs.

use std::collections::BTreeMap;

use regorus::Value;

use super::{numbers, text};
use crate::ascii::{decode_query, encode_query};

/// Returns where a text is in another one, in characters from 0; `None` for an empty one.
fn positions(arguments: &[Value]) -> Option<Vec<i64>> {
    let (text, wanted) = (text(&arguments[0])?, text(&arguments[1])?);
    if wanted.is_empty() {
        return None;
    }
    let places = (0_i64..).zip(text.char_indices());
    let found = places.filter(|(_, (at, _))| text[*at..].starts_with(wanted));
    Some(found.map(|(position, _)| position).collect())
}

pub(super) fn index_of(arguments: &[Value]) -> Option<Value> {
    let positions = positions(arguments)?;
    Some(positions.first().copied().unwrap_or(-1).into())
}

pub(super) fn index_of_n(arguments: &[Value]) -> Option<Value> {
    let positions = positions(arguments)?.into_iter().map(Value::from);
    Some(Value::from(positions.collect::<Vec<_>>()))
}

/// The function `strings.count`: an empty text is between all characters, and around them.
pub(super) fn count(arguments: &[Value]) -> Option<Value> {
    let (text, wanted) = (text(&arguments[0])?, text(&arguments[1])?);
    Some(text.matches(wanted).count().into())
}

/// The function `substring`; a negative length means all that follows.
pub(super) fn substring(arguments: &[Value]) -> Option<Value> {
    let number = |value: &Value| match value {
        Value::Number(number) if number.is_integer() => number.as_i64(),
        _ => None,
    };
    let (text, first, length) = (
        text(&arguments[0])?,
        usize::try_from(number(&arguments[1])?).ok()?,
        usize::try_from(number(&arguments[2])?).unwrap_or(usize::MAX),
    );
    Some(
        text.chars()
            .skip(first)
            .take(length)
            .collect::<String>()
            .into(),
    )
}

/// Changes the case of each character that stays one.
fn cased(value: &Value, change: fn(char) -> Option<char>) -> Option<Value> {
    let changed = text(value)?.chars().map(|it| change(it).unwrap_or(it));
    Some(changed.collect::<String>().into())
}

fn only(mut characters: impl Iterator<Item = char>) -> Option<char> {
    characters.next().filter(|_| characters.next().is_none())
}

pub(super) fn upper(arguments: &[Value]) -> Option<Value> {
    cased(&arguments[0], |it| only(it.to_uppercase()))
}

pub(super) fn lower(arguments: &[Value]) -> Option<Value> {
    // The only one that becomes two characters.
    cased(&arguments[0], |it| match it {
        'İ' => Some('i'),
        other => only(other.to_lowercase()),
    })
}

/// Decodes a part of the query of a URL; `None` if it has a `%` without two digits.
fn decoded(text: &str) -> Option<String> {
    let decoded = String::from_utf8(decode_query(text)?);
    decoded
        .map_err(|_| numbers::fail("the result of `urlquery.decode` is no UTF-8".to_owned()))
        .ok()
}

pub(super) fn url_decode(arguments: &[Value]) -> Option<Value> {
    Some(decoded(text(&arguments[0])?)?.into())
}

pub(super) fn url_encode(arguments: &[Value]) -> Option<Value> {
    Some(encode_query(text(&arguments[0])?).into())
}

pub(super) fn url_decode_object(arguments: &[Value]) -> Option<Value> {
    let mut fields: BTreeMap<Value, Vec<Value>> = BTreeMap::new();
    for field in text(&arguments[0])?.split('&').filter(|it| !it.is_empty()) {
        if field.contains(';') {
            return None;
        }
        let (key, value) = field.split_once('=').unwrap_or((field, ""));
        let values = fields.entry(decoded(key)?.into()).or_default();
        values.push(decoded(value)?.into());
    }
    let fields = fields.into_iter();
    let fields = fields.map(|(key, values)| (key, Value::from(values)));
    Some(Value::from(fields.collect::<BTreeMap<_, _>>()))
}

pub(super) fn url_encode_object(arguments: &[Value]) -> Option<Value> {
    let mut encoded = String::new();
    for (key, value) in arguments[0].as_object().ok()?.iter() {
        let values: Vec<&Value> = match value {
            Value::String(_) => vec![value],
            Value::Array(items) => items.iter().collect(),
            Value::Set(items) => items.iter().collect(),
            _ => return None,
        };
        for value in values {
            if !encoded.is_empty() {
                encoded.push('&');
            }
            encoded += &encode_query(text(key)?);
            encoded.push('=');
            encoded += &encode_query(text(value)?);
        }
    }
    Some(encoded.into())
}
