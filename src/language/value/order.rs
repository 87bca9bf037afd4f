//! The orders of values: a total one for lookups, and the one in which Terraform iterates over sets.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization;

use super::{Value, number_text};

impl Value {
    /// Orders values; equal ones, and only those, are `Equal`. Bools, numbers and strings are ordered by
    /// value, and null comes last.
    pub fn order(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
            (Value::Number(left), Value::Number(right)) => left.cmp(right),
            (Value::String(left), Value::String(right)) => by_text(left, right),
            (Value::Tuple(left), Value::Tuple(right))
            | (Value::List(left), Value::List(right))
            | (Value::Set(left), Value::Set(right)) => {
                let order = first_difference(left.iter().zip(right.iter()));
                order.then(left.len().cmp(&right.len()))
            }
            (Value::Object(left), Value::Object(right)) | (Value::Map(left), Value::Map(right)) => {
                by_entries(left, right)
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Bool(_) => 0,
            Value::Number(_) => 1,
            Value::String(_) => 2,
            Value::Tuple(_) => 3,
            Value::List(_) => 4,
            Value::Set(_) => 5,
            Value::Object(_) => 6,
            Value::Map(_) => 7,
            Value::Null => 8,
        }
    }

    fn is_collection(&self) -> bool {
        self.items().is_some() || self.entries().is_some()
    }
}

/// A value as a key of a map or an element of a set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByOrder<'a>(pub(crate) &'a Value);

impl Ord for ByOrder<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.order(other.0)
    }
}

impl PartialOrd for ByOrder<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByOrder<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByOrder<'_> {}

/// Puts elements in the order of a set, and keeps only one of those that are equal.
pub(super) fn in_set(items: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut items: Vec<Value> = items.into_iter().collect();
    items.sort_by(Value::order);
    items.dedup_by(|left, right| left.order(right).is_eq());
    if items.iter().any(Value::is_collection) {
        items.sort_by_cached_key(|item| {
            let mut key = String::new();
            write_key(item, &mut key);
            key
        });
    }
    items
}

/// Compares in Unicode's normal form C, as strings are compared for equality.
fn by_text(left: &str, right: &str) -> Ordering {
    if left.is_ascii() && right.is_ascii() {
        left.cmp(right)
    } else {
        left.nfc().cmp(right.nfc())
    }
}

fn by_entries(left: &BTreeMap<Arc<str>, Value>, right: &BTreeMap<Arc<str>, Value>) -> Ordering {
    let keys = left.keys().cmp(right.keys());
    keys.then_with(|| first_difference(left.values().zip(right.values())))
}

fn first_difference<'v>(mut pairs: impl Iterator<Item = (&'v Value, &'v Value)>) -> Ordering {
    pairs
        .find_map(|(left, right)| Some(left.order(right)).filter(|order| order.is_ne()))
        .unwrap_or(Ordering::Equal)
}

/// Writes the text by which Terraform orders collections in a set. It looks arbitrary, but results such as
/// those of `toset` show it.
fn write_key(value: &Value, key: &mut String) {
    let (open, close) = match value {
        Value::Null => return key.push('~'),
        Value::Bool(value) => return key.push(if *value { 'T' } else { 'F' }),
        Value::Number(number) => return key.push_str(&number_text(number)),
        Value::String(text) => return key.push_str(&format!("{text:?}")),
        Value::Tuple(_) | Value::Object(_) => ('<', '>'),
        Value::List(_) | Value::Set(_) => ('[', ']'),
        Value::Map(_) => ('{', '}'),
    };
    key.push(open);
    for item in value.items().iter().flat_map(|items| items.iter()) {
        write_key(item, key);
        key.push(';');
    }
    for (name, item) in value.entries().iter().flat_map(|entries| entries.iter()) {
        if let Value::Map(_) = value {
            key.push_str(&format!("{name:?}:"));
        }
        write_key(item, key);
        key.push(';');
    }
    key.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_ordered_by_its_normal_form() {
        let mut texts = ["\u{e9}", "f", "e\u{301}", "e"].map(Value::string);
        texts.sort_by(Value::order);
        assert_eq!(texts, ["e", "f", "\u{e9}", "\u{e9}"].map(Value::string));
    }

    #[test]
    fn null_is_the_last_element_of_a_set() {
        let set = Value::set([Value::Null, Value::string("a"), Value::Null]);
        let items = set.items().unwrap();
        assert_eq!(**items, [Value::string("a"), Value::Null]);
    }
}
