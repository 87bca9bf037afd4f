//! The order of values in OPA, where objects come before sets. The library has it the other way round.

use std::cmp::Ordering;

use regorus::Value;

pub(super) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => lists(left.iter(), right.iter()),
        (Value::Set(left), Value::Set(right)) => {
            let [left, right] = [left, right].map(|set| sorted(set.iter()));
            lists(left, right)
        }
        (Value::Object(left), Value::Object(right)) => {
            let [left, right] = [left, right].map(|object| {
                let entries = entries(object.iter()).into_iter();
                entries.flat_map(|(key, value)| [key, value])
            });
            lists(left, right)
        }
        (Value::Set(_), Value::Object(_)) => Ordering::Greater,
        (Value::Object(_), Value::Set(_)) => Ordering::Less,
        _ => left.cmp(right),
    }
}

/// Compares lists: by the first items that differ, else by their lengths.
fn lists<'v>(
    left: impl IntoIterator<Item = &'v Value>,
    right: impl IntoIterator<Item = &'v Value>,
) -> Ordering {
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(left), Some(right)) => match compare(left, right) {
                Ordering::Equal => {}
                different => return different,
            },
        }
    }
}

/// Returns values in their order.
pub(super) fn sorted<'v>(values: impl Iterator<Item = &'v Value>) -> Vec<&'v Value> {
    let mut values: Vec<&Value> = values.collect();
    values.sort_by(|left, right| compare(left, right));
    values
}

/// Returns the entries of an object in the order of their keys.
pub(super) fn entries<'v>(
    entries: impl Iterator<Item = (&'v Value, &'v Value)>,
) -> Vec<(&'v Value, &'v Value)> {
    let mut entries: Vec<(&Value, &Value)> = entries.collect();
    entries.sort_by(|left, right| compare(left.0, right.0));
    entries
}

/// Returns the items of a list or a set in their order.
fn items(value: &Value) -> Option<Vec<&Value>> {
    Some(sorted(super::items(value)?.into_iter()))
}

pub(super) fn sort(arguments: &[Value]) -> Option<Value> {
    let items: Vec<Value> = items(&arguments[0])?.into_iter().cloned().collect();
    Some(items.into())
}

pub(super) fn min(arguments: &[Value]) -> Option<Value> {
    let items = items(&arguments[0])?.into_iter().rev();
    // Of `1.0` and `1`, the last.
    items.min_by(|left, right| compare(left, right)).cloned()
}

pub(super) fn max(arguments: &[Value]) -> Option<Value> {
    items(&arguments[0])?.last().map(|it| (*it).clone())
}
